//! Endpoints that make vectors: tools are ranked by cosine, and no text is paid for twice.

use std::collections::HashSet;

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};

use super::endpoint::{Call, Endpoint, json_reply};
use super::resilience::until;
use super::{allowed, messenger, names};
use crate::app::{TestApp, User};
use crate::model::warning_codes;

/// A text's vector: how much it is about birds, about messages, and anything else.
pub(super) fn vector(text: &str) -> [f64; 3] {
    let text = text.to_lowercase();
    let about = |words: &[&str]| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.0 };
    [about(&["pigeon", "dove"]), 0.4 * about(&["message", "letter"]), 0.1]
}

pub(super) fn embedded(call: &Call) -> Response<Body> {
    let row =
        |(at, text): (usize, String)| json!({"object": "embedding", "index": at, "embedding": vector(&text)});
    let data: Vec<Value> = call.documents().into_iter().enumerate().map(row).collect();
    json_reply(200, &json!({"object": "list", "data": data, "model": "v"}))
}

async fn embedder() -> Endpoint {
    Endpoint::with(|call, _| async move { embedded(&call) }).await
}

pub(super) fn matcher(endpoint: &Endpoint) -> Value {
    json!({"min_catalog_size": 0, "matcher": {"kind": "embedding", "endpoint": endpoint.url("/v1"), "model": "v",
        "fusion": "off", "timeout_ms": 10_000}})
}

/// All texts of some calls, but for the one by which a model is known again.
pub(super) fn sent(calls: &[Call]) -> Vec<String> {
    calls.iter().flat_map(Call::documents).filter(|text| !text.starts_with("toolrack control")).collect()
}

/// Tools of which one is about doves and none else is about birds; each with a group of its own kind.
pub(super) fn many(count: usize) -> Vec<Value> {
    let tool = |at: usize| json!({"name": format!("tool_{at:03}"), "group": "g", "description": format!("Sorts the box number {at}.")});
    let mut tools: Vec<Value> = (0..count).map(tool).collect();
    tools.push(json!({"name": "aviary", "group": "g", "description": "Feeds each dove."}));
    tools
}

/// Searches until every tool has a vector.
pub(super) async fn complete(user: &User) -> Value {
    for _ in 0..600 {
        let answer = user.search(json!({"query": "where is the pigeon"})).await.ok();
        if !warning_codes(&answer).contains(&"vectors_incomplete") {
            return answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the vectors were never complete");
}

#[tokio::test]
async fn tools_are_ranked_by_cosine_and_sent_once() {
    let (mut app, endpoint) = (allowed().await, embedder().await);
    let user = messenger(&app, matcher(&endpoint)).await;
    let body = json!({"query": "ask the dove", "explain": true});
    let answer = user.search(body.clone()).await.ok();
    assert_eq!((&answer["mode"], &answer["degraded"]), (&json!("embedding"), &json!(false)));
    assert_eq!(names(&answer)[0], "fly", "{answer}");
    let best = &answer["results"][0]["matches"][0];
    assert!(best["explain"]["endpoint_score"].as_f64().unwrap() > 0.99, "{best}");
    assert_eq!(best["score"], best["explain"]["endpoint_score"]);

    let calls = endpoint.take();
    assert!(calls.iter().all(|call| call.path == "/v1/embeddings"), "{calls:?}");
    let all = sent(&calls);
    assert_eq!(all.len(), 4, "the query and the three visible tools: {all:?}");
    assert!(!all.iter().any(|text| text.contains("DENIED-CANARY")), "{all:?}");
    let fields: Vec<&String> = calls[0].body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["model", "input"], "unknown fields break some servers");

    // The same query costs nothing, another one itself, and after a restart the tools are still known.
    user.search(body).await.ok();
    assert_eq!(endpoint.count(), 0);
    user.search(json!({"query": "write a letter"})).await.ok();
    assert_eq!(sent(&endpoint.take()), ["write a letter"]);
    app.restart().await;
    let answer = app.user_called(&user.id).search(json!({"query": "a pigeon, please"})).await.ok();
    assert_eq!((&answer["mode"], names(&answer)[0]), (&json!("embedding"), "fly"));
    assert_eq!(sent(&endpoint.take()), ["a pigeon, please"]);
}

#[tokio::test]
async fn a_changed_tool_alone_is_sent_again() {
    let (app, endpoint) = (allowed().await, embedder().await);
    let user = messenger(&app, matcher(&endpoint)).await;
    user.search(json!({"query": "pigeon"})).await.ok();
    endpoint.take();
    let changed =
        json!({"upsert": [{"name": "send_letter", "group": "mail", "description": "Send a dove."}]});
    user.client().patch(&user.path(&["catalog"]), &changed).await.ok();
    let answer = user.search(json!({"query": "pigeon"})).await.ok();
    assert!(names(&answer)[..2].contains(&"send_letter"), "{answer}");
    let texts = sent(&endpoint.take());
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].contains("Send a dove."), "{texts:?}");
}

#[tokio::test]
async fn vectors_belong_to_the_scope_whose_matcher_asks() {
    let (app, endpoint) = (allowed().await, embedder().await);
    let one = messenger(&app, matcher(&endpoint)).await;
    one.search(json!({"query": "pigeon"})).await.ok();
    endpoint.take();
    let two = messenger(&app, matcher(&endpoint)).await;
    two.search(json!({"query": "pigeon"})).await.ok();
    assert_eq!(sent(&endpoint.take()).len(), 4, "another tenant's vectors and answers are not used");

    // Another model makes other vectors.
    let mut config = matcher(&endpoint);
    config["matcher"]["model"] = json!("w");
    one.put_config(&config).await.ok();
    one.search(json!({"query": "pigeon"})).await.ok();
    assert!(sent(&endpoint.take()).len() >= 4);
}

#[tokio::test]
async fn a_large_catalog_is_ranked_at_once_and_completed_in_the_background() {
    let (app, endpoint) = (allowed().await, embedder().await);
    let user = app.user();
    user.put_catalog(&many(300)).await.ok();
    let mut config = matcher(&endpoint);
    config["matcher"]["max_documents"] = json!(20);
    user.put_config(&config).await.ok();
    let first = user.search(json!({"query": "box number 250"})).await.ok();
    assert_eq!(first["mode"], "embedding", "{first}");
    assert!(warning_codes(&first).contains(&"vectors_incomplete"), "{first}");
    let answer = complete(&user).await;
    assert_eq!(names(&answer)[0], "aviary", "{answer}");
    let all = sent(&endpoint.take());
    let tools: Vec<&String> = all.iter().filter(|text| text.starts_with("g ")).collect();
    let different: HashSet<&&String> = tools.iter().collect();
    assert_eq!((different.len(), tools.len()), (301, 301), "no text is paid for twice");
}

#[tokio::test]
async fn an_assembly_begins_what_a_search_needs() {
    let (app, endpoint) = (allowed().await, embedder().await);
    let user = messenger(&app, matcher(&endpoint)).await;
    user.assemble(json!({"session": "s"})).await.ok();
    let mut texts = Vec::new();
    until("the tools", async || {
        texts.extend(sent(&endpoint.take()));
        texts.len() >= 3
    })
    .await;
    assert_eq!(texts.len(), 3, "{texts:?}");
    // Live tools may be others each time: they are sent when they are searched.
    let live = json!({"tools": [{"name": "live", "description": "Feeds a dove."}], "session": "l"});
    user.assemble(live).await.ok();
    assert_eq!(user.search(json!({"session": "l", "query": "pigeon"})).await.ok()["mode"], "embedding");
    let texts = sent(&endpoint.take());
    assert_eq!(texts.iter().filter(|text| text.contains("Feeds a dove.")).count(), 1, "{texts:?}");
}

#[tokio::test]
async fn a_limit_on_texts_is_learned() {
    let endpoint = Endpoint::with(|call, _| async move {
        match call.documents().len() {
            0..=8 => embedded(&call),
            some => json_reply(
                422,
                &json!({"error": format!("batch size {some} > maximum allowed batch size 8")}),
            ),
        }
    })
    .await;
    let app = allowed().await;
    let user = app.user();
    user.put_catalog(&many(20)).await.ok();
    user.put_config(&matcher(&endpoint)).await.ok();
    let answer = user.search(json!({"query": "pigeon"})).await.ok();
    assert_eq!((&answer["mode"], names(&answer)[0]), (&json!("embedding"), "aviary"), "{answer}");
    let sizes = |calls: &[Call]| calls.iter().map(|call| call.documents().len()).max();
    assert_eq!(sizes(&endpoint.take()), Some(21));

    let mut tools = many(20);
    for tool in &mut tools {
        tool["description"] = json!(format!("Also: {}", tool["description"]));
    }
    user.put_catalog(&tools).await.ok();
    user.search(json!({"query": "pigeon"})).await.ok();
    let calls = endpoint.take();
    assert_eq!((sent(&calls).len(), sizes(&calls)), (21, Some(8)), "one error is enough");
}

#[tokio::test]
async fn an_endpoint_that_fails_leaves_the_words() {
    let app = allowed().await;
    for (answer, reason) in [
        ((200, json!({"data": [{"index": 0, "embedding": [0, 0]}]})), "malformed_answer"),
        ((401, json!({"error": {"message": "bad key"}})), "unauthorized"),
        ((404, json!({"detail": "Not Found"})), "not_found"),
    ] {
        let endpoint = Endpoint::with(move |_, _| {
            let reply = json_reply(answer.0, &answer.1);
            async move { reply }
        })
        .await;
        let user = messenger(&app, matcher(&endpoint)).await;
        let answer = user.search(json!({"query": "send a letter"})).await.ok();
        assert_eq!(
            (&answer["mode"], &answer["degraded"], &answer["reason"]),
            (&json!("keyword"), &json!(true), &json!(reason))
        );
        assert_eq!(names(&answer)[0], "send_letter", "{answer}");
    }
}

#[tokio::test]
async fn an_instruction_stands_right_before_the_query_alone() {
    let (app, endpoint) = (allowed().await, embedder().await);
    let mut config = matcher(&endpoint);
    config["matcher"]["instruction"] = json!("query: ");
    let user = messenger(&app, config).await;
    user.search(json!({"query": "a dove"})).await.ok();
    let texts = sent(&endpoint.take());
    assert_eq!(texts.iter().filter(|text| text.contains("query: ")).count(), 1, "{texts:?}");
    assert!(texts.contains(&"query: a dove".to_owned()), "{texts:?}");
}

#[tokio::test]
async fn scores_below_the_floor_are_left_out() {
    let (app, endpoint) = (allowed().await, embedder().await);
    let mut config = matcher(&endpoint);
    config["matcher"]["min_score"] = json!(0.9);
    let user = messenger(&app, config).await;
    let answer = user.search(json!({"query": "a dove"})).await.ok();
    assert_eq!(names(&answer), ["fly"], "{answer}");
}

/// An endpoint that has a reranker and an embedding model, as LiteLLM and many providers do.
async fn both() -> Endpoint {
    Endpoint::with(|call, _| async move {
        if call.path.ends_with("/embeddings") { embedded(&call) } else { call.ranked() }
    })
    .await
}

fn reranker(endpoint: &Endpoint, embedding_model: Option<&str>) -> Value {
    let mut config = json!({"min_catalog_size": 0, "matcher": {"endpoint": endpoint.url("/v1/rerank"), "model": "m",
        "dialect": "cohere", "fusion": "off", "timeout_ms": 10_000, "max_documents": 10, "api_key": super::KEY,
        "extra_body": {"rank_fields": ["text"]}}});
    if let Some(model) = embedding_model {
        config["matcher"]["embedding_model"] = json!(model);
    }
    config
}

async fn searcher(app: &TestApp, config: &Value) -> User {
    let user = app.user();
    let mut tools = many(60);
    tools.push(json!({"name": "wings", "group": "g", "description": "Sends a pigeon."}));
    user.put_catalog(&tools).await.ok();
    // The built-in vectors know what a dove is; without them only the endpoint's do.
    let mut config = config.clone();
    config["semantic"] = json!(false);
    user.put_config(&config).await.ok();
    user
}

#[tokio::test]
async fn vectors_choose_what_a_reranker_gets_of_a_large_catalog() {
    let (app, endpoint) = (allowed().await, both().await);
    let query = json!({"query": "box for a dove"});
    let of_reranker = |calls: &[Call]| {
        let last = calls.iter().rfind(|call| call.path == "/v1/rerank").unwrap();
        last.documents()
    };

    let plain = searcher(&app, &reranker(&endpoint, None)).await;
    plain.search(query.clone()).await.ok();
    let calls = endpoint.take();
    assert!(calls.iter().all(|call| call.path == "/v1/rerank"));
    assert!(!of_reranker(&calls).iter().any(|text| text.contains("pigeon")), "no word is shared");

    let staged = searcher(&app, &reranker(&endpoint, Some("e"))).await;
    complete(&staged).await;
    let answer = staged.search(query).await.ok();
    assert_eq!((&answer["mode"], &answer["degraded"]), (&json!("rerank"), &json!(false)), "{answer}");
    let calls = endpoint.take();
    let documents = of_reranker(&calls);
    assert_eq!(documents.len(), 10);
    assert!(documents.iter().any(|text| text.contains("pigeon")), "{documents:?}");
    for call in calls.iter().filter(|call| call.path == "/v1/embeddings") {
        assert_eq!(call.body["model"], "e");
        assert_eq!(
            call.body.get("rank_fields"),
            None,
            "what the reranker gets besides is not for this model"
        );
        assert!(call.header("authorization").is_some());
    }
}

#[tokio::test]
async fn without_its_first_stage_a_reranker_still_ranks() {
    let endpoint = Endpoint::with(|call, _| async move {
        if call.path.ends_with("/embeddings") { json_reply(500, &json!({})) } else { call.ranked() }
    })
    .await;
    let app = allowed().await;
    let user = searcher(&app, &reranker(&endpoint, Some("e"))).await;
    let answer = user.search(json!({"query": "box number 7"})).await.ok();
    assert_eq!((&answer["mode"], &answer["degraded"]), (&json!("rerank"), &json!(false)), "{answer}");
    assert!(warning_codes(&answer).contains(&"first_stage_failed"), "{answer}");
    assert!(answer["warnings"].to_string().contains("(http_error)"), "{answer}");
}
