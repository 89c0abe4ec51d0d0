//! What an endpoint is sent in secret is sent to it, and stands nowhere else: not in answers, logs, files, copies or traces.

use axum::http::Response;
use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};

use super::collector::Collector;
use super::endpoint::{Call, Endpoint, json_reply};
use crate::app::{ADMIN_KEY, TestApp};

const KEY: &str = "sk-canary-key-7d1e90ab";
const HEADER: &str = "canary-header-text-93af";
const COLLECTOR_KEY: &str = "otlp-canary-key-55c0d1";
const MASTER: &str = "c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77c0ffee88";

/// An endpoint that says everything it was told, in every way there is.
async fn telltale() -> Endpoint {
    Endpoint::with(|call: Call, _| async move {
        let told: Vec<String> =
            call.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        let (told, path) =
            (told.join("; "), format!("/{}", call.path.split(['/', '?']).nth(1).unwrap_or_default()));
        match &*path {
            "/denied" => json_reply(401, &json!({"error": {"message": told}})),
            "/broken" => json_reply(500, &json!({ "detail": told })),
            "/odd" => json_reply(200, &json!({"results": told})),
            "/moved" => {
                let moved =
                    Response::builder().status(302).header("location", format!("/?key={KEY}&x={HEADER}"));
                moved.body(told.into()).unwrap()
            }
            _ => call.ranked(),
        }
    })
    .await
}

fn config(endpoint: &str) -> Value {
    json!({"preload": {"enabled": true}, "matcher": {
        "endpoint": endpoint, "api_key": KEY, "extra_headers": {"X-Canary": HEADER}, "dialect": "cohere", "timeout_ms": 2000,
    }})
}

/// Every route, as one who sends the secrets to the wrong places.
async fn misplaced(app: &TestApp) -> Vec<String> {
    let mut texts = Vec::new();
    let document = app.admin().get("/openapi.json").await.ok();
    for (path, item) in document["paths"].as_object().unwrap() {
        let place = |name: &str| {
            let path =
                path.replace("{user}", "ada").replace("{project}", "apollo").replace("{session}", name);
            path.replace("{name}", name).replace("{id}", name)
        };
        for method in item.as_object().unwrap().keys() {
            let Ok(method) = method.to_uppercase().parse::<Method>() else { continue };
            if method == Method::DELETE {
                continue;
            }
            let headers = [("content-type", "application/json"), ("x-extra", KEY)];
            for body in [
                json!({"user": "ada", "matcher": {"endpoint": "https://x.example", "api_key": [KEY]}})
                    .to_string(),
                json!({"user": "ada", "name": {"api_key": KEY}, "tools": HEADER, "query": [KEY, 7]})
                    .to_string(),
                format!("{{\"api_key\": \"{KEY}\", {HEADER}"),
            ] {
                let body = if method == Method::GET { Bytes::new() } else { body.into() };
                let answer = app.admin().send(method.clone(), &place("s"), &headers, body).await;
                texts.push(answer.text().to_owned());
            }
        }
    }
    for key in [KEY, MASTER, &ADMIN_KEY[..ADMIN_KEY.len() - 1]] {
        texts.push(app.with_key(key).get("/v1/limits").await.text().to_owned());
    }
    texts
}

/// All files beside the database, the log among them, and the database's own log.
fn files(app: &TestApp) -> Vec<String> {
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        String::from_utf8_lossy(&std::fs::read(entry.unwrap().path()).unwrap()).into_owned()
    };
    std::fs::read_dir(app.folder()).unwrap().map(read).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_stands_in_any_answer_log_file_copy_or_trace() {
    let (endpoint, collector) = (telltale().await, Collector::start().await);
    let mut app = collector
        .service()
        .set("TOOLRACK_LOG_LEVEL", "trace")
        .set("TOOLRACK_TRACING_OTLP_HEADERS", format!("x-key={COLLECTOR_KEY}"))
        .set("TOOLRACK_SECRETS_MASTER_KEY", MASTER)
        .start()
        .await;
    let user = app.user_called("ada");
    let tools = ["send a pigeon", "read a book", "cook a soup"];
    let tool = |(at, text): (usize, &&str)| json!({"name": format!("tool_{at}"), "description": text});
    user.put_catalog(&tools.iter().enumerate().map(tool).collect::<Vec<_>>()).await.ok();
    let mut texts = Vec::new();
    for (at, path) in ["/rerank", "/denied", "/broken", "/odd", "/moved"].into_iter().enumerate() {
        let config = config(&endpoint.url(path));
        texts.push(user.put_config(&config).await.text().to_owned());
        let sent = json!({"query": "something with birds", "explain": true});
        let searched = user.search(sent).await;
        assert_eq!(searched.ok()["degraded"], json!(at > 0), "{path}");
        texts.push(searched.text().to_owned());
        let calls = endpoint.take();
        assert!(!calls.is_empty(), "{path}");
        for call in &calls {
            let bearer = format!("Bearer {KEY}");
            assert_eq!(
                (call.header("authorization"), call.header("x-canary")),
                (Some(&*bearer), Some(HEADER))
            );
        }
        let session = json!({"session": format!("s{at}"), "query": "birds", "format": "openai_chat"});
        texts.push(user.assemble(session).await.text().to_owned());
        for stored in [false, true] {
            let mut matcher = config["matcher"].clone();
            if stored {
                matcher["api_key"] = json!({"set": true});
                matcher["extra_headers"]["X-Canary"] = json!({"set": true});
            }
            endpoint.take();
            let tested = user.post("/v1/setup/matcher-test", json!({ "matcher": matcher })).await;
            assert_eq!(tested.ok()["ok"], json!(at == 0), "{}", tested.text());
            assert!(
                endpoint.take().iter().all(|call| call.header("x-canary") == Some(HEADER)),
                "{path} {stored}"
            );
            texts.push(tested.text().to_owned());
        }
        for place in ["/v1/users/ada/config", "/v1/config/effective?user=ada", "/readyz", "/metrics"] {
            texts.push(app.admin().get(place).await.text().to_owned());
        }
    }
    texts.extend(misplaced(&app).await);
    texts.push(user.client().get("/v1/users/ada/config").await.text().to_owned());
    assert!(texts.last().unwrap().contains(r#""X-Canary":{"set":true}"#), "{:?}", texts.last());
    texts.extend(files(&app));

    let copy = app.folder().join("copy.db");
    for arguments in
        [&["backup", copy.to_str().unwrap()][..], &["check-config"], &["keys", "list"], &["migrate"]]
    {
        let output = app.command(arguments);
        assert!(output.status.success(), "{output:?}");
        texts.push(format!("{output:?}"));
    }
    app.stop().await;
    let traced = collector.sent();
    assert!(traced.len() > 1 && traced.iter().all(|sent| sent.headers["x-key"] == COLLECTOR_KEY));
    texts.extend(traced.iter().map(|sent| String::from_utf8_lossy(&sent.body).into_owned()));
    app.set("TOOLRACK_SECRETS_PREVIOUS_MASTER_KEY", MASTER);
    app.set("TOOLRACK_SECRETS_MASTER_KEY", "ab".repeat(32));
    let output = app.command(&["keys", "rotate-master"]);
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("2 secrets"),
        "{output:?}"
    );
    texts.push(format!("{output:?}"));
    // Neither does a start that fails tell them.
    app.set("TOOLRACK_SECRETS_MASTER_KEY", &MASTER[1..]);
    texts.push(format!("{:?}", app.command(&["migrate"])));
    texts.extend(files(&app));

    for secret in [KEY, HEADER, COLLECTOR_KEY, MASTER, &MASTER[1..], ADMIN_KEY] {
        let hidden = hex::encode(secret);
        for text in &texts {
            if let Some(at) = text.find(secret).or_else(|| text.find(&hidden)) {
                let around: String =
                    text[text.floor_char_boundary(at.saturating_sub(300))..].chars().take(600).collect();
                panic!("{secret} stands in: {around}");
            }
        }
    }
}
