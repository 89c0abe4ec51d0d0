//! Searching with an external endpoint that ranks well, badly, late or not at all: the agent always gets an answer.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::post;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::app::{TestApp, User, path, unique};

const KEY: &str = "rr-canary-0b7d2f44c1a95e63";

/// What the endpoint was sent: the key's header, and the body.
type Seen = Arc<Mutex<Vec<(Option<String>, Value)>>>;

/// An endpoint on loopback; the path says how it behaves.
#[derive(Debug)]
struct Endpoint {
    address: SocketAddr,
    seen: Seen,
}

impl Endpoint {
    async fn start() -> Self {
        let seen = Seen::default();
        let router = Router::new().route("/{behaviour}/rerank", post(answer)).with_state(Arc::clone(&seen));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, seen }
    }

    fn url(&self, behaviour: &str) -> String {
        format!("http://{}/{behaviour}/rerank", self.address)
    }

    fn take(&self) -> Vec<(Option<String>, Value)> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

async fn answer(
    State(seen): State<Seen>,
    Path(behaviour): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let key = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    seen.lock().unwrap().push((key, request.clone()));
    let good = ranking(&request).to_string();
    let reply = |status: u16, content_type: &str, body: String| {
        let builder = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
        builder.body(Body::from(body)).unwrap()
    };
    match behaviour.as_str() {
        "good" => reply(200, "application/json", good),
        "hang" => std::future::pending().await,
        // The head comes in time, the rest never.
        "half" => {
            let stream = futures_util::stream::once(async {
                Ok::<_, std::io::Error>(Bytes::from_static(b"{\"results\": ["))
            });
            let endless = futures_util::StreamExt::chain(stream, futures_util::stream::pending());
            Response::new(Body::from_stream(endless))
        }
        "html" => reply(200, "text/html", "<html><body>Sign in to the network</body></html>".to_owned()),
        "garbage" => reply(200, "application/json", "{\"results\": [{\"index\": \"first\"".to_owned()),
        "empty" => reply(200, "application/json", String::new()),
        "shape" => reply(200, "application/json", json!({"data": {"nothing": "here"}}).to_string()),
        "no_results" => reply(200, "application/json", json!({"results": []}).to_string()),
        "large" => reply(200, "application/json", " ".repeat(6 * 1024 * 1024)),
        "redirect" => {
            let elsewhere = (header::LOCATION, "/good/rerank");
            Response::builder()
                .status(StatusCode::TEMPORARY_REDIRECT)
                .header(elsewhere.0, elsewhere.1)
                .body(Body::empty())
                .unwrap()
        }
        // Places that are not there, twice the same, no number: what is usable counts.
        "odd" => {
            let mut results = ranking(&request)["results"].as_array().cloned().unwrap();
            results.insert(0, json!({"index": 9_999, "relevance_score": 2.0}));
            results.insert(0, json!({"index": -1, "relevance_score": 2.0}));
            results.push(results[2].clone());
            results.push(json!({"index": 0, "relevance_score": "high"}));
            results.push(json!(null));
            reply(200, "application/json", json!({"results": results}).to_string())
        }
        status => reply(
            status.parse().unwrap(),
            "application/json",
            json!({"message": "UPSTREAM-TEXT"}).to_string(),
        ),
    }
}

/// Ranks what speaks of pigeons first, then the others as they came.
fn ranking(request: &Value) -> Value {
    let documents = request["documents"].as_array().unwrap();
    let mut results: Vec<(usize, f64)> = documents
        .iter()
        .enumerate()
        .map(|(at, text)| {
            (at, if text.to_string().to_lowercase().contains("pigeon") { 0.9 } else { 0.2 / (at + 1) as f64 })
        })
        .collect();
    results.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rows = results.iter().map(|(index, score)| json!({"index": index, "relevance_score": score}));
    json!({"results": rows.collect::<Vec<_>>()})
}

async fn allowed() -> TestApp {
    TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start().await
}

fn matcher(url: &str) -> Value {
    json!({"min_catalog_size": 0, "matcher": {"endpoint": url, "model": "m-1", "api_key": KEY,
        "timeout_ms": 10_000}})
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
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let user = messenger(&app, matcher(&endpoint.url("good"))).await;
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
    let (key, request) = &seen[0];
    assert_eq!(key.as_deref(), Some(&*format!("Bearer {KEY}")));
    assert_eq!((&request["model"], &request["query"]), (&json!("m-1"), &json!("send a message")));
    assert!(request["top_n"].is_number());
    assert_eq!(request["documents"].as_array().unwrap().len(), 3, "only what the session may see: {request}");
    assert!(!request.to_string().contains("DENIED-CANARY"));

    // A tool that is named in the query is first, whatever the endpoint says; each query is asked on its own.
    let exact = user.search(json!({"query": "send_letter"})).await.ok();
    assert_eq!(names(&exact)[0], "send_letter");
    endpoint.take();
    let three = user.search(json!({"queries": ["send a message", "fly away", "write a letter"]})).await.ok();
    assert_eq!((three["results"].as_array().unwrap().len(), endpoint.take().len()), (3, 3));
    // Where nothing is to be seen nothing is sent.
    let nothing = user.search(json!({"query": "send a message", "deny": ["*"]})).await.ok();
    assert_eq!((names(&nothing).len(), endpoint.take().len()), (0, 0), "{nothing}");
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_way_to_fail_ends_in_keywords_with_a_reason() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut cases: Vec<(String, &str)> = [
        ("hang", "timeout"),
        ("half", "timeout"),
        ("500", "http_error"),
        ("503", "http_error"),
        ("400", "http_error"),
        ("401", "unauthorized"),
        ("403", "unauthorized"),
        ("429", "rate_limited"),
        ("redirect", "redirected"),
        ("html", "malformed_answer"),
        ("garbage", "malformed_answer"),
        ("empty", "malformed_answer"),
        ("shape", "malformed_answer"),
        ("no_results", "malformed_answer"),
        ("large", "answer_too_large"),
    ]
    .map(|(behaviour, reason)| (endpoint.url(behaviour), reason))
    .to_vec();
    cases.push((format!("http://{closed}/rerank"), "unreachable"));

    let keywords = messenger(&app, json!({"min_catalog_size": 0})).await;
    let body = json!({"session": "s", "query": "send a message as a letter"});
    keywords.assemble(json!({"session": "s"})).await.ok();
    let expected = keywords.search(body.clone()).await.ok();
    for (url, reason) in cases {
        let mut config = matcher(&url);
        if reason == "timeout" {
            config["matcher"]["timeout_ms"] = json!(100);
        }
        let user = messenger(&app, config).await;
        user.assemble(json!({"session": "s"})).await.ok();
        let answer = user.search(body.clone()).await.ok();
        assert_eq!(
            (&answer["mode"], &answer["degraded"], &answer["reason"]),
            (&json!("keyword"), &json!(true), &json!(reason)),
            "{url}"
        );
        assert_eq!(
            (&answer["results"], &answer["warmed"]),
            (&expected["results"], &expected["warmed"]),
            "{url}: as without an endpoint"
        );
        assert!(!answer.to_string().contains("UPSTREAM-TEXT"), "{url}");
        assert_eq!(user.assemble(json!({"session": "s"})).await.ok()["warm"], expected["warmed"], "{url}");
        // Through the bridge the model sees the matches all the same.
        let bridged = user
            .bridge(json!({"call": {"id": "1", "name": "tool_search", "arguments": {"query": "letter"}}}))
            .await
            .ok();
        assert_eq!(bridged["results"][0]["is_error"], false, "{url}");
    }
    let metrics = app.admin().get("/metrics").await;
    for reason in ["timeout", "unreachable", "unauthorized", "malformed_answer"] {
        assert!(metrics.text().contains(&format!("reason=\"{reason}\"")), "{reason}: {}", metrics.text());
    }
    let logs = app.logs();
    assert!(logs.contains("rerank") && logs.contains("timeout"), "a log line tells: {logs}");
    for canary in [KEY, "UPSTREAM-TEXT", "send a message as a letter"] {
        assert!(!logs.contains(canary) && !metrics.text().contains(canary), "{canary}");
    }
}

#[tokio::test]
async fn an_odd_but_usable_answer_is_used() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let user = messenger(&app, matcher(&endpoint.url("odd"))).await;
    let answer = user.search(json!({"query": "send a message"})).await.ok();
    assert_eq!((&answer["mode"], names(&answer)[0]), (&json!("rerank"), "fly"), "{answer}");
    let mut unique = names(&answer);
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names(&answer).len(), "{answer}");
}

#[tokio::test]
async fn matches_below_the_least_score_are_left_out() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let mut config = matcher(&endpoint.url("good"));
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
    let (app, mine, theirs) = (allowed().await, Endpoint::start().await, Endpoint::start().await);
    let user = messenger(&app, matcher(&mine.url("good"))).await;
    let project = unique("project");
    let theirs_config = json!({"matcher": {"endpoint": theirs.url("good")}});
    app.admin().put(&path(&["v1", "projects", &project, "config"]), &theirs_config).await.ok();

    // The project's endpoint is in force, and gets nothing of the user's.
    let answer = user.search(json!({"project": project, "query": "send a message"})).await.ok();
    assert_eq!(answer["mode"], "rerank");
    let seen = theirs.take();
    assert_eq!((seen.len(), &seen[0].0, mine.take().len()), (1, &None, 0));

    // Nor does the key follow when the user's own endpoint moves, or redirects.
    let moved = json!({"matcher": {"endpoint": theirs.url("good"), "api_key": {"set": true}}});
    let written = app.admin().patch(&user.path(&["config"]), &moved).await.ok();
    assert!(written["warnings"].to_string().contains("secret_cleared"), "{written}");
    user.search(json!({"query": "send a message"})).await.ok();
    assert_eq!(theirs.take()[0].0, None);

    user.put_config(&matcher(&mine.url("redirect"))).await.ok();
    user.search(json!({"query": "send a message"})).await.ok();
    assert_eq!(mine.take().len(), 1, "a redirect is not followed");

    user.put_config(&matcher(&mine.url("good"))).await.ok();
    user.search(json!({"query": "send a message"})).await.ok();
    assert_eq!(mine.take()[0].0.as_deref(), Some(&*format!("Bearer {KEY}")));
}

#[tokio::test]
async fn private_addresses_are_refused_at_the_door() {
    let (app, endpoint) = (TestApp::start().await, Endpoint::start().await);
    let user = messenger(&app, json!({})).await;
    let before = app.admin().get(&user.path(&["config"])).await.ok();
    for url in [
        endpoint.url("good").as_str(),
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
    other.put_config(&json!({"matcher": {"endpoint": endpoint.url("good")}})).await.ok();
    for url in ["https://169.254.169.254/", "https://metadata.google.internal/", "https://[fe80::1]/"] {
        other.put_config(&json!({"matcher": {"endpoint": url}})).await.problem(422, "invalid_request");
    }
    assert!(endpoint.take().is_empty());
}
