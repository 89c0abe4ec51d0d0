//! What goes over the wire in each dialect, and how the dialect is found.

use axum::body::Body;
use axum::http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::endpoint::{Call, Endpoint, json_reply, reply};
use super::{KEY, allowed, messenger, names};
use crate::app::TestApp;

const QUERY: &str = "send a message";
/// As many tools as the user may see.
const TOOLS: usize = 3;

/// A request of one dialect as it must be.
struct Expected {
    dialect: &'static str,
    /// What the config says, and what is called.
    typed: &'static str,
    called: &'static str,
    /// The header of the key.
    key: (&'static str, String),
    /// The whole body, with a word for each text.
    body: Value,
}

/// The scores in the shape of the dialect.
fn answer(dialect: &str, call: &Call) -> Value {
    let rows = |score: &str| -> Value {
        call.scores().iter().map(|(at, number)| json!({"index": at, (score): number})).collect()
    };
    match dialect {
        "tei" => rows("score"),
        "dashscope" => json!({"output": {"results": rows("relevance_score")}, "request_id": "r"}),
        "nim" => json!({"rankings": rows("logit")}),
        "voyage" => json!({"object": "list", "data": rows("relevance_score"), "model": "m"}),
        "mixedbread" => json!({"object": "list", "data": rows("score")}),
        "pinecone" => json!({"data": rows("score"), "usage": {"rerank_units": 1}}),
        "elastic" => json!({"rerank": rows("relevance_score")}),
        _ => json!({"id": "i", "results": rows("relevance_score"), "meta": {}}),
    }
}

/// The body with `TEXT` for each document.
fn without_texts(mut body: Value) -> Value {
    for place in ["/documents", "/texts", "/passages", "/input/documents", "/input"] {
        for document in body.pointer_mut(place).and_then(Value::as_array_mut).into_iter().flatten() {
            let text = if document.is_object() { &mut document["text"] } else { document };
            assert!(text.as_str().is_some_and(|text| text.contains(' ')), "{text}");
            *text = json!("TEXT");
        }
    }
    body
}

#[tokio::test]
async fn each_dialect_is_spoken_as_its_servers_want_it() {
    let app = allowed().await;
    let bearer = ("authorization", format!("Bearer {KEY}"));
    let texts = json!(["TEXT", "TEXT", "TEXT"]);
    let objects = json!([{"text": "TEXT"}, {"text": "TEXT"}, {"text": "TEXT"}]);
    let native = "/api/v1/services/rerank/text-rerank/text-rerank";
    let top = TOOLS;
    for Expected { dialect, typed, called, key, body } in [
        Expected {
            dialect: "cohere",
            typed: "/v2/rerank?api-version=7",
            called: "/v2/rerank?api-version=7",
            key: bearer.clone(),
            body: json!({"model": "m-1", "query": QUERY, "documents": texts, "top_n": top}),
        },
        Expected {
            dialect: "tei",
            typed: "/rerank/",
            called: "/rerank",
            key: bearer.clone(),
            body: json!({"query": QUERY, "texts": texts, "truncate": true}),
        },
        Expected {
            dialect: "dashscope",
            typed: "",
            called: native,
            key: bearer.clone(),
            body: json!({"model": "m-1", "input": {"query": QUERY, "documents": texts},
                "parameters": {"return_documents": false, "top_n": top, "instruct": "Find it."}}),
        },
        Expected {
            dialect: "nim",
            typed: "/v1",
            called: "/v1/ranking",
            key: bearer.clone(),
            body: json!({"model": "m-1", "query": {"text": QUERY}, "passages": objects, "truncate": "END"}),
        },
        Expected {
            dialect: "voyage",
            typed: "/v1/rerank",
            called: "/v1/rerank",
            key: bearer.clone(),
            body: json!({"model": "m-1", "query": format!("Find it.\nQuery: {QUERY}"), "documents": texts,
                "top_k": top}),
        },
        Expected {
            dialect: "mixedbread",
            typed: "/v1",
            called: "/v1/reranking",
            key: bearer.clone(),
            body: json!({"model": "m-1", "query": QUERY, "input": texts, "top_k": top}),
        },
        Expected {
            dialect: "pinecone",
            typed: "",
            called: "/rerank",
            key: ("api-key", KEY.to_owned()),
            body: json!({"model": "m-1", "query": QUERY, "documents": objects, "top_n": top,
                "parameters": {"truncate": "END"}}),
        },
        Expected {
            dialect: "elastic",
            typed: "",
            called: "/_inference/rerank/m-1",
            key: ("authorization", format!("ApiKey {KEY}")),
            body: json!({"query": QUERY, "input": texts, "top_n": top}),
        },
    ] {
        let endpoint =
            Endpoint::with(move |call, _| async move { json_reply(200, &answer(dialect, &call)) }).await;
        let matcher = json!({"endpoint": endpoint.url(typed), "dialect": dialect, "model": "m-1", "api_key": KEY,
            "fusion": "off", "instruction": "Find it."});
        let user = messenger(&app, json!({"min_catalog_size": 0, "matcher": matcher})).await;
        let found = user.search(json!({"query": QUERY})).await.ok();
        assert_eq!((&found["mode"], names(&found)[0]), (&json!("rerank"), "fly"), "{dialect}: {found}");
        let seen = endpoint.take();
        assert_eq!(seen.len(), 1, "{dialect}: nothing needs to be found out");
        let call = &seen[0];
        assert_eq!((&call.method, call.path.as_str()), (&Method::POST, called), "{dialect}");
        assert_eq!(call.header("content-type"), Some("application/json"), "{dialect}");
        assert_eq!(call.header(key.0), Some(key.1.as_str()), "{dialect}");
        let keys = call.headers.values().filter(|value| value.to_str().is_ok_and(|text| text.contains(KEY)));
        assert_eq!(keys.count(), 1, "{dialect}: the key travels once");
        assert_eq!(call.header("x-pinecone-api-version").is_some(), dialect == "pinecone", "{dialect}");
        assert_eq!(without_texts(call.body.clone()), body, "{dialect}");
    }
}

/// What one search with this matcher sends to a good endpoint.
async fn sent(app: &TestApp, path: &str, matcher: Value) -> Call {
    let endpoint = Endpoint::good().await;
    let mut config = json!({"min_catalog_size": 0, "matcher": matcher});
    config["matcher"]["endpoint"] = json!(endpoint.url(path));
    config["matcher"]["fusion"] = json!("off");
    let found = messenger(app, config).await.search(json!({"query": QUERY})).await.ok();
    assert_eq!((&found["mode"], names(&found)[0]), (&json!("rerank"), "fly"), "{found}");
    let mut seen = endpoint.take();
    assert_eq!(seen.len(), 1, "{seen:?}");
    seen.remove(0)
}

#[tokio::test]
async fn additions_to_a_request_arrive() {
    let app = allowed().await;
    // Bedrock's InvokeModel.
    let bedrock = json!({"dialect": "cohere", "model": "cohere.rerank-v3-5:0", "omit_model": true, "api_key": KEY,
        "extra_body": {"api_version": 2, "top_n": 1}});
    let call = sent(&app, "/model/cohere.rerank-v3-5%3A0/invoke", bedrock).await;
    assert_eq!(call.path, "/model/cohere.rerank-v3-5%3A0/invoke");
    assert_eq!(
        without_texts(call.body),
        json!({"query": QUERY, "documents": ["TEXT", "TEXT", "TEXT"], "top_n": 1, "api_version": 2})
    );

    let azure = json!({"dialect": "cohere", "model": "m", "api_key": KEY, "auth_header": "api-key",
        "extra_headers": {"X-Team": "a b", "x-trace": "7"}, "extra_body": {"top_n": null, "user": {"id": 7}}});
    let call = sent(&app, "/v1/rerank", azure).await;
    assert_eq!((call.header("api-key"), call.header("authorization")), (Some(KEY), None));
    assert_eq!((call.header("x-team"), call.header("x-trace")), (Some("a b"), Some("7")));
    assert_eq!(
        without_texts(call.body),
        json!({"model": "m", "query": QUERY, "documents": ["TEXT", "TEXT", "TEXT"], "user": {"id": 7}}),
        "a null takes a field out"
    );

    for (matcher, header, value) in [
        (json!({"auth_scheme": "Token"}), "authorization", format!("Token {KEY}")),
        (json!({"auth_scheme": ""}), "authorization", KEY.to_owned()),
        (json!({"auth_header": "X-Key", "auth_scheme": "Key"}), "x-key", format!("Key {KEY}")),
        (json!({"auth_header": "Authorization"}), "authorization", format!("Bearer {KEY}")),
        (json!({"extra_headers": {"Authorization": "Basic eDp5"}}), "authorization", "Basic eDp5".to_owned()),
    ] {
        let mut matcher = matcher;
        (matcher["dialect"], matcher["api_key"]) = (json!("cohere"), json!(KEY));
        assert_eq!(sent(&app, "/rerank", matcher.clone()).await.header(header), Some(&*value), "{matcher}");
    }
    // No key, no header: gateways refuse an empty one.
    assert_eq!(sent(&app, "/rerank", json!({"dialect": "cohere"})).await.header("authorization"), None);
}

#[tokio::test]
async fn paths_that_say_enough_need_no_probe() {
    let app = allowed().await;
    let native = "/api/v1/services/rerank/text-rerank/text-rerank";
    let flat = "/compatible-api/v1/reranks";
    for (typed, model, called, key, sent_model) in [
        ("/compatible-mode/v1/rerank", "qwen3-reranker", flat, "documents", Some("qwen3-rerank")),
        ("/compatible-mode/v1", "qwen3-rerank", flat, "documents", Some("qwen3-rerank")),
        ("/compatible-mode/v1/chat/completions", "qwen3-rerank", flat, "documents", Some("qwen3-rerank")),
        ("/compatible-mode/v1/rerank", "gte-rerank-v2", native, "input", Some("gte-rerank-v2")),
        (native, "gte-rerank-v2", native, "input", Some("gte-rerank-v2")),
        ("/v1/ranking", "nv-rerank", "/v1/ranking", "passages", Some("nv-rerank")),
        ("/_inference/rerank/mine", "m", "/_inference/rerank/mine", "input", None),
    ] {
        let call = sent(&app, typed, json!({"model": model})).await;
        assert_eq!(call.path, called, "{typed} {model}");
        assert!(call.body.get(key).is_some(), "{typed} {model}: {}", call.body);
        assert_eq!(call.body["model"].as_str(), sent_model, "{typed} {model}");
    }
    // DashScope takes an instruction for tools on both paths.
    let call = sent(&app, "/compatible-mode/v1/rerank", json!({"model": "qwen3-rerank"})).await;
    assert!(call.body["instruct"].as_str().is_some_and(|text| text.contains("tools")), "{}", call.body);
}

/// Text Embeddings Inference with room for two texts, which knows no other shape and no other path.
async fn tei(call: Call) -> Response<Body> {
    let bare = |status: u16, text: &str| reply(status, "text/plain", text.to_owned());
    match (&call.method, call.path.as_str()) {
        (&Method::GET, "/info") => {
            json_reply(200, &json!({"model_type": {"reranker": {}}, "max_client_batch_size": 2}))
        }
        (&Method::POST, "/rerank") if call.body["texts"].is_null() => {
            bare(422, "Failed to deserialize the JSON body into the target type: missing field `texts`")
        }
        (&Method::POST, "/rerank") if call.documents().len() > 2 => json_reply(
            422,
            &json!({"error": "batch size 3 > maximum allowed batch size 2", "error_type": "Validation"}),
        ),
        (&Method::POST, "/rerank") => json_reply(200, &answer("tei", &call)),
        _ => bare(StatusCode::NOT_FOUND.as_u16(), ""),
    }
}

#[tokio::test]
async fn an_unknown_endpoint_is_asked_what_it_speaks_and_remembered() {
    let app = allowed().await;
    // Each search: how many calls find out, how many rank.
    for (path, first) in [("/rerank", (3, 2)), ("", (3, 3))] {
        let endpoint = Endpoint::with(|call, _| tei(call)).await;
        let matcher = json!({"endpoint": endpoint.url(path), "model": "m", "fusion": "off"});
        let config = json!({"min_catalog_size": 0, "matcher": matcher});
        let user = messenger(&app, config).await;
        let mut counts = Vec::new();
        for query in [QUERY, "write a letter"] {
            let found = user.search(json!({"query": query})).await.ok();
            assert_eq!((&found["mode"], names(&found)[0]), (&json!("rerank"), "fly"), "{path}: {found}");
            let seen = endpoint.take();
            let finding = seen.iter().filter(|call| call.method == Method::GET || call.is_probe()).count();
            counts.push((finding, seen.len() - finding));
        }
        assert_eq!(counts, [first, (0, 2)], "{path}");
    }

    // A server that refuses `top_n`, below the second of the usual paths.
    let endpoint = Endpoint::with(|call, _| async move {
        match call.path.as_str() {
            "/rerank" if call.body.get("top_n").is_some() => {
                json_reply(422, &json!({"message": "unknown field: parameter 'top_n' is not a valid field"}))
            }
            "/rerank" => call.ranked(),
            _ => json_reply(404, &json!({"detail": "Not Found"})),
        }
    });
    let endpoint = endpoint.await;
    let user = messenger(&app, json!({"matcher": {"endpoint": endpoint.url("")}})).await;
    for (query, calls) in [(QUERY, 4), ("write a letter", 1)] {
        assert_eq!(user.search(json!({"query": query})).await.ok()["mode"], "rerank");
        let seen = endpoint.take();
        assert_eq!(seen.len(), calls, "{seen:?}");
        assert!(seen[calls - 1].body.get("top_n").is_none() && !seen[calls - 1].is_probe());
    }
}

#[tokio::test]
async fn a_probe_that_finds_nothing_sends_no_tool() {
    let app = allowed().await;
    for (status, body, reason, calls) in [
        (401, "", "unauthorized", 1),
        (404, "", "not_found", 3),
        (422, "no", "http_error", 1),
        (200, "<html>", "web_page", 3),
        (429, "", "rate_limited", 2),
    ] {
        let endpoint = Endpoint::with(move |_, _| async move { reply(status, "text/plain", body) }).await;
        let user = messenger(&app, json!({"matcher": {"endpoint": endpoint.url("")}})).await;
        let found = user.search(json!({"query": QUERY})).await.ok();
        assert_eq!((&found["mode"], &found["reason"]), (&json!("keyword"), &json!(reason)), "{status}");
        let seen = endpoint.take();
        assert_eq!(seen.len(), calls, "{status}: {seen:?}");
        assert!(seen.iter().all(Call::is_probe), "{status}: {seen:?}");
    }
}
