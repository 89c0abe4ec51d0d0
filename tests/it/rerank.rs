//! Searching with an external endpoint that ranks well, badly, late or not at all: the agent always gets an answer.

mod candidates;
mod collector;
mod dialects;
mod drafts;
mod endpoint;
mod faults;
mod filling;
mod hedging;
mod limits;
mod observed;
mod preload;
mod resilience;
mod secrets;
mod shared;
mod traces;
mod vectors;

use serde_json::{Value, json};

use self::endpoint::{Endpoint, json_reply};
use crate::app::{TestApp, User, path, unique};

const KEY: &str = "rr-canary-0b7d2f44c1a95e63";

async fn allowed() -> TestApp {
    TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start().await
}

/// A matcher whose endpoint is asked without a probe, and decides the order alone.
fn matcher(url: &str) -> Value {
    json!({"min_catalog_size": 0, "matcher": {"endpoint": url, "model": "m-1", "api_key": KEY,
        "dialect": "cohere", "fusion": "off", "timeout_ms": 10_000}})
}

async fn messenger(app: &TestApp, config: Value) -> User {
    let user = app.user();
    let tools = [
        json!({"name": "send_message", "group": "mail", "description": "Send a message to a person."}),
        json!({"name": "send_letter", "group": "mail", "description": "Send a message as a letter."}),
        json!({"name": "fly", "group": "birds", "description": "Let a pigeon carry it.",
            "parameters": {"type": "object"}}),
        json!({"name": "hidden_tool", "group": "secret", "description": "DENIED-CANARY pigeon message."}),
    ];
    user.put_catalog(&tools).await.ok();
    let mut config = config;
    config["deny"] = json!(["@secret"]);
    user.put_config(&config).await.ok();
    user
}

fn names(answer: &Value) -> Vec<&str> {
    answer["results"][0]["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_good_ranking_decides_the_order_and_warms() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let keywords = messenger(&app, json!({"min_catalog_size": 0})).await;
    let body = json!({"session": "s", "query": "send a message"});
    assert_ne!(names(&keywords.search(body.clone()).await.ok())[0], "fly");

    user.assemble(json!({"session": "s"})).await.ok();
    let answer = user.search(body.clone()).await.ok();
    assert_eq!(
        (&answer["mode"], &answer["degraded"], answer.get("reason")),
        (&json!("rerank"), &json!(false), None)
    );
    assert_eq!(names(&answer)[0], "fly", "{answer}");
    assert!(texts(&answer["warmed"]).contains(&"fly"), "{answer}");
    assert!(user.assemble(json!({"session": "s"})).await.ok()["warm"].to_string().contains("fly"));

    let seen = endpoint.take();
    assert_eq!(seen.len(), 1);
    let request = &seen[0].body;
    assert_eq!(seen[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!((&request["model"], &request["query"]), (&json!("m-1"), &json!("send a message")));
    assert!(request["top_n"].is_number());
    assert_eq!(request["documents"].as_array().unwrap().len(), 3, "only what the session may see: {request}");
    assert!(!request.to_string().contains("DENIED-CANARY"));

    // A tool that is named in the query is first, whatever the endpoint says; each query is asked on its own.
    let exact = user.search(json!({"query": "send_letter"})).await.ok();
    assert_eq!(names(&exact)[0], "send_letter");
    endpoint.take();
    let three = user.search(json!({"queries": ["send a message", "fly away", "write a letter"]})).await.ok();
    assert_eq!(
        (three["results"].as_array().unwrap().len(), endpoint.take().len()),
        (3, 2),
        "one was asked before"
    );
    // Where nothing is to be seen nothing is sent.
    let nothing = user.search(json!({"query": "send a message", "deny": ["*"]})).await.ok();
    assert_eq!((names(&nothing).len(), endpoint.take().len()), (0, 0), "{nothing}");
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[tokio::test]
async fn matches_below_the_least_score_are_left_out() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let mut config = matcher(&endpoint.url("/rerank"));
    config["matcher"]["min_score"] = json!(0.5);
    let user = messenger(&app, config.clone()).await;
    assert_eq!(names(&user.search(json!({"query": "send a message"})).await.ok()), ["fly"]);
    config["matcher"]["min_score"] = json!(0.95);
    user.put_config(&config).await.ok();
    let none = user.search(json!({"session": "s", "query": "send a message"})).await.ok();
    assert_eq!((names(&none).len(), &none["warmed"], &none["mode"]), (0, &json!([]), &json!("rerank")));
    assert!(none["results"][0]["hint"].is_string() && none["results"][0]["nearest"].is_array(), "{none}");
}

#[tokio::test]
async fn a_key_goes_to_its_own_origin_alone() {
    let (app, mine, theirs) = (allowed().await, Endpoint::good().await, Endpoint::good().await);
    let user = messenger(&app, matcher(&mine.url("/rerank"))).await;
    let project = unique("project");
    let theirs_config = json!({"matcher": {"endpoint": theirs.url("/rerank")}});
    app.admin().put(&path(&["v1", "projects", &project, "config"]), &theirs_config).await.ok();

    // The project's endpoint is in force, and gets nothing of the user's.
    let answer = user.search(json!({"project": project, "query": "send a message"})).await.ok();
    assert_eq!(answer["mode"], "rerank");
    let seen = theirs.take();
    assert!(
        seen.iter().all(|call| call.header("authorization").is_none()) && !format!("{seen:?}").contains(KEY)
    );
    assert_eq!((seen.iter().filter(|call| !call.is_probe()).count(), mine.count()), (1, 0));

    // Nor does the key follow when the user's own endpoint moves, or redirects.
    let moved = json!({"matcher": {"endpoint": theirs.url("/rerank"), "api_key": {"set": true}}});
    let written = app.admin().patch(&user.path(&["config"]), &moved).await.ok();
    assert!(written["warnings"].to_string().contains("secret_cleared"), "{written}");
    user.search(json!({"query": "send a message"})).await.ok();
    let seen = theirs.take();
    assert!(!seen.is_empty() && !format!("{seen:?}").contains(KEY));

    let target = theirs.url("/rerank");
    let elsewhere = Endpoint::with(move |_, _| {
        let mut answer = json_reply(307, &json!({}));
        answer.headers_mut().insert("location", target.parse().unwrap());
        async { answer }
    });
    let elsewhere = elsewhere.await;
    user.put_config(&matcher(&elsewhere.url("/rerank"))).await.ok();
    user.search(json!({"query": "send a message"})).await.ok();
    assert_eq!((elsewhere.count(), theirs.count()), (1, 0), "a redirect is not followed");

    user.put_config(&matcher(&mine.url("/rerank"))).await.ok();
    user.search(json!({"query": "send a message"})).await.ok();
    assert_eq!(mine.take()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
}

#[tokio::test]
async fn private_addresses_are_refused_at_the_door() {
    let (app, endpoint) = (TestApp::start().await, Endpoint::good().await);
    let user = messenger(&app, json!({})).await;
    let before = app.admin().get(&user.path(&["config"])).await.ok();
    for url in [
        endpoint.url("/rerank").as_str(),
        "https://127.0.0.1/rerank",
        "https://localhost/rerank",
        "https://rerank.localhost/",
        "https://10.0.0.8/rerank",
        "https://192.168.1.1/",
        "https://172.16.0.1/",
        "https://100.64.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://metadata.google.internal/",
        "https://100.100.100.200/",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://0.0.0.0/",
        "https://１２７.0.0.1/",
        "http://rerank.example.com/",
    ] {
        for answer in [
            user.put_config(&json!({"matcher": {"endpoint": url}})).await,
            app.admin().patch(&user.path(&["config"]), &json!({"matcher": {"endpoint": url}})).await,
        ] {
            let problem = answer.problem(422, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], "/matcher/endpoint", "{url}: {problem}");
        }
    }
    assert_eq!(app.admin().get(&user.path(&["config"])).await.ok(), before);
    let open = allowed().await;
    let other = open.user();
    other.put_config(&json!({"matcher": {"endpoint": endpoint.url("/rerank")}})).await.ok();
    for url in ["https://169.254.169.254/", "https://metadata.google.internal/", "https://[fe80::1]/"] {
        other.put_config(&json!({"matcher": {"endpoint": url}})).await.problem(422, "invalid_request");
    }
    assert_eq!(endpoint.count(), 0);
}
