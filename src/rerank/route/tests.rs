use proptest::prelude::*;

use super::*;

fn at(typed: &str, dialect: &str, model: Option<&str>) -> Route {
    let named = |choice: &DialectChoice| choice.name() == dialect;
    let fixed = Dialect::ALL.map(DialectChoice::Fixed);
    let choice = fixed.into_iter().find(named).unwrap_or_default();
    route(&Url::parse(typed).unwrap(), choice, model)
}

/// The paths that are tried for a URL, in order.
fn check(typed: &str, dialect: &str, called: &[&str]) {
    let urls: Vec<String> = at(typed, dialect, None).urls.iter().map(Url::to_string).collect();
    assert_eq!(urls, called, "{typed} as {dialect}");
}

#[test]
fn a_full_route_is_kept() {
    for url in [
        "https://api.cohere.com/v2/rerank",
        "http://tei:8080/rerank",
        "https://api.mixedbread.com/v1/reranking",
        "https://qianfan.baidubce.com/v2/rerankers",
        "http://nim:8000/v1/ranking",
        "http://vllm:8000/v1/score",
        "https://h/v1/Rerank",
        "https://h/a%20b/text-rerank",
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/cohere.rerank-v3-5%3A0/invoke",
        "https://es.test/_inference/rerank/mine",
        "https://es.test/_inference/mine",
        "https://x.services.ai.azure.com/providers/cohere/v2/rerank?api-version=2024-05-01-preview",
        "https://discovery.test/v1/default_ranking_config:rank",
        "https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/baai/bge-reranker-base",
    ] {
        check(url, "auto", &[url]);
    }
    check("http://tei:8080/rerank/", "auto", &["http://tei:8080/rerank"]);
    check("https://h/a/text-rerank//", "auto", &["https://h/a/text-rerank"]);
}

#[test]
fn a_providers_base_is_completed() {
    for (typed, called) in [
        ("https://api.cohere.com", "https://api.cohere.com/v1/rerank"),
        ("https://api.cohere.com/v2/", "https://api.cohere.com/v2/rerank"),
        ("https://x.eastus.models.ai.azure.com", "https://x.eastus.models.ai.azure.com/v1/rerank"),
        ("https://openrouter.ai", "https://openrouter.ai/api/v1/rerank"),
        ("https://openrouter.ai/api", "https://openrouter.ai/api/v1/rerank"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/rerank"),
        ("https://api.fireworks.ai/inference/v1", "https://api.fireworks.ai/inference/v1/rerank"),
        ("https://open.bigmodel.cn/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4/rerank"),
        ("https://api.zeroentropy.dev/v1", "https://api.zeroentropy.dev/v1/models/rerank"),
        ("https://api.zeroentropy.dev/v1/models", "https://api.zeroentropy.dev/v1/models/rerank"),
        ("https://api.novita.ai/v3/openai", "https://api.novita.ai/v3/openai/rerank"),
        ("https://api.mixedbread.com/v1", "https://api.mixedbread.com/v1/reranking"),
        ("https://api.pinecone.io/", "https://api.pinecone.io/rerank"),
        ("https://api.voyageai.com/v1?x=1", "https://api.voyageai.com/v1/rerank?x=1"),
        ("https://x.services.ai.azure.com", "https://x.services.ai.azure.com/providers/cohere/v2/rerank"),
    ] {
        check(typed, "auto", &[called]);
    }
}

#[test]
fn an_unknown_base_has_candidates() {
    check("http://h:1", "auto", &["http://h:1/v1/rerank", "http://h:1/rerank", "http://h:1/"]);
    check("http://h/v1", "auto", &["http://h/v1/rerank", "http://h/rerank"]);
    check("http://h/rerank/v1", "auto", &["http://h/rerank/v1/rerank", "http://h/rerank"]);
    check("http://h/gw/v2", "auto", &["http://h/gw/v2/rerank"]);
    check("http://h/v3/openai", "auto", &["http://h/v3/openai/rerank"]);
    check("https://h/gw", "auto", &["https://h/gw/v1/rerank", "https://h/gw/rerank", "https://h/gw"]);
    check(
        "https://h/reranker-small/",
        "cohere",
        &["https://h/reranker-small/v1/rerank", "https://h/reranker-small/rerank"],
    );
    check(
        "https://rerank.example.com:8443/?key=1",
        "cohere",
        &["https://rerank.example.com:8443/v1/rerank?key=1", "https://rerank.example.com:8443/rerank?key=1"],
    );
    check("http://h/v1/embeddings", "auto", &["http://h/v1/rerank", "http://h/rerank"]);
    check("https://api.cohere.com/v1/chat/completions", "auto", &["https://api.cohere.com/v1/rerank"]);
    check("http://h/v1/models/mine", "auto", &["http://h/v1/models/mine/rerank", "http://h/v1/models/mine"]);
    check("http://tei:80", "tei", &["http://tei/rerank", "http://tei/"]);
    check("http://tei/v1", "tei", &["http://tei/v1/rerank", "http://tei/rerank"]);
    check("http://nim:8000", "nim", &["http://nim:8000/v1/ranking"]);
    check("http://nim:8000/v1", "nim", &["http://nim:8000/v1/ranking"]);
    check("https://h", "mixedbread", &["https://h/v1/reranking"]);
    check("https://h", "pinecone", &["https://h/rerank"]);
    check("https://h", "dashscope", &["https://h/api/v1/services/rerank/text-rerank/text-rerank"]);
    check("https://h/api/v1", "dashscope", &["https://h/api/v1/services/rerank/text-rerank/text-rerank"]);
}

#[test]
fn some_paths_hold_the_model() {
    let called = |typed, dialect, model| at(typed, dialect, Some(model)).urls[0].to_string();
    assert_eq!(
        called("https://ai.api.nvidia.com/v1", "auto", "nvidia/llama-3.2-nv-rerankqa-1b-v2"),
        "https://ai.api.nvidia.com/v1/retrieval/nvidia/llama-3_2-nv-rerankqa-1b-v2/reranking"
    );
    assert_eq!(
        called("https://es.test/", "elastic", "my ranker"),
        "https://es.test/_inference/rerank/my%20ranker"
    );
    assert_eq!(
        called("https://es.test/_inference/rerank", "auto", "../x"),
        "https://es.test/_inference/rerank/..%2Fx"
    );
    assert_eq!(
        called("https://es.test/_inference/rerank/a", "auto", "b"),
        "https://es.test/_inference/rerank/a"
    );
}

#[test]
fn what_people_paste_for_dashscope_is_led_to_the_path_that_serves_it() {
    let flat = "/compatible-api/v1/reranks";
    let native = DASHSCOPE_NATIVE;
    for (typed, model, path, sent, notes) in [
        ("/compatible-mode/v1/rerank", "qwen3-rerank", flat, "qwen3-rerank", 1),
        ("/compatible-mode/v1/rerank", "qwen3-reranker", flat, "qwen3-rerank", 2),
        ("/compatible-mode/v1/rerank", "Qwen3-Reranker", flat, "qwen3-rerank", 2),
        ("/compatible-mode/v1/reranks", "qwen3-rerank", flat, "qwen3-rerank", 1),
        ("/compatible-mode/v1/", "qwen3-rerank", flat, "qwen3-rerank", 1),
        ("/compatible-mode/v1", "gte-rerank-v2", native, "gte-rerank-v2", 1),
        ("/compatible-api/v1/reranks", "qwen3-rerank", flat, "qwen3-rerank", 0),
        ("/compatible-api/v1", "qwen3-rerank", flat, "qwen3-rerank", 0),
        ("/compatible-api/v1/rerank", "qwen3-rerank", flat, "qwen3-rerank", 0),
        ("/compatible-api/v1/reranks", "gte-rerank-v2", native, "gte-rerank-v2", 1),
        ("/compatible-api/v1/reranks", "qwen3-vl-rerank", native, "qwen3-vl-rerank", 1),
        ("", "qwen3-rerank", flat, "qwen3-rerank", 0),
        ("/", "gte-rerank-v2", native, "gte-rerank-v2", 0),
        ("/api/v1", "gte-rerank-v2", native, "gte-rerank-v2", 0),
        ("/api/v1", "qwen3-rerank", flat, "qwen3-rerank", 1),
        ("/v1/rerank", "qwen3-rerank", flat, "qwen3-rerank", 1),
        ("/api/v1/services/rerank", "gte-rerank-v2", native, "gte-rerank-v2", 0),
        ("/compatible-mode/v1/chat/completions", "qwen3-rerank", flat, "qwen3-rerank", 1),
        (native, "qwen3-rerank", native, "qwen3-rerank", 0),
        (native, "gte-rerank-v2", native, "gte-rerank-v2", 0),
    ] {
        for host in ["https://dashscope.aliyuncs.com", "https://w1.ap-southeast-1.maas.aliyuncs.com"] {
            let route = at(&format!("{host}{typed}"), "auto", Some(model));
            assert_eq!(route.urls.len(), 1);
            assert_eq!(route.urls[0].as_str(), format!("{host}{path}"), "{typed} {model}");
            assert_eq!(route.model.as_deref(), Some(sent));
            assert_eq!(route.notes.len(), notes, "{typed} {model}: {:?}", route.notes);
            let dialect = if path == native { Dialect::Dashscope } else { Dialect::Cohere };
            assert_eq!(route.dialect, Some(dialect));
        }
    }
    let route = at("https://proxy.test/qwen/compatible-mode/v1/rerank", "auto", None);
    assert_eq!(route.urls[0].as_str(), "https://proxy.test/qwen/compatible-api/v1/reranks");
    let route = at("https://dashscope.aliyuncs.com/compatible-mode/v1", "dashscope", Some("qwen3-rerank"));
    assert_eq!(route.urls[0].path(), native);
    let route = at("https://dashscope.aliyuncs.com", "cohere", Some("gte-rerank-v2"));
    assert_eq!(route.urls[0].path(), flat);
}

proptest! {
    #[test]
    fn a_completed_route_is_final_and_its_origin_and_query_stay(
        host in prop::sample::select(vec!["h", "api.cohere.com", "dashscope.aliyuncs.com", "api.voyageai.com", "ai.api.nvidia.com", "openrouter.ai"]),
        path in "(/(v[0-9]|rerank|api|compatible-mode|_inference|models|[a-z]{0,4}|%2F)){0,5}/?",
        dialect in 0usize..9,
        model in prop::option::of("[a-z0-9./?#-]{0,12}"),
    ) {
        let choice = Dialect::ALL.get(dialect).map_or(DialectChoice::Auto, |dialect| DialectChoice::Fixed(*dialect));
        let typed = Url::parse(&format!("https://{host}{path}?k=1#f")).unwrap();
        let found = route(&typed, choice, model.as_deref());
        prop_assert!(!found.urls.is_empty() && found.urls.len() <= 3);
        for url in &found.urls {
            prop_assert_eq!(url.origin(), typed.origin());
            prop_assert_eq!(url.query(), Some("k=1"));
            let versions = |path: &str| path.split('/').filter(|part| is_version(part)).count();
            // What stands before DashScope's own path is a proxy's.
            prop_assert!(versions(url.path()) <= versions(typed.path()).max(1) || path.contains("compatible-mode"), "{}", url);
            prop_assert!(!url.path().contains("rerank/rerank") || path.contains("rerank/rerank") || path.contains("_inference"), "{}", url);
        }
        let first = &found.urls[0];
        let again = route(first, choice, model.as_deref());
        prop_assert_eq!(&again.urls[0], first);
    }
}
