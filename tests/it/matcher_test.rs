//! Trying the settings of a matcher: what works is told, what does not is told in words to act on, and nothing stays.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri, header};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::app::{TestApp, User, path, unique};

const KEY: &str = "mt-canary-77c1e0a94f5d2b38";
const ROUTE: &str = "/v1/setup/matcher-test";

/// An endpoint on loopback; the first segment of the path says how it behaves.
#[derive(Debug)]
struct Endpoint {
    address: SocketAddr,
    state: Arc<Behaviour>,
}

#[derive(Debug, Default)]
struct Behaviour {
    /// Keys and bodies that came.
    seen: Mutex<Vec<(Option<String>, Value)>>,
    /// Whether every key is refused.
    refuses: AtomicBool,
}

impl Endpoint {
    async fn start() -> Self {
        let state = Arc::new(Behaviour::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, state }
    }

    fn url(&self, rest: &str) -> String {
        format!("http://{}/{rest}", self.address)
    }

    fn take(&self) -> Vec<(Option<String>, Value)> {
        std::mem::take(&mut *self.state.seen.lock().unwrap())
    }
}

async fn answer(
    State(state): State<Arc<Behaviour>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let reply = |status: u16, content_type: &str, body: String| {
        let builder = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
        builder.body(Body::from(body)).unwrap()
    };
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let key = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    state.seen.lock().unwrap().push((key.clone(), request.clone()));
    let refused =
        || reply(401, "application/json", json!({"message": format!("no such key: {KEY}")}).to_string());
    if state.refuses.load(Ordering::SeqCst) {
        return refused();
    }
    let ranked = |sign: f64| reply(200, "application/json", ranking(&request, sign).to_string());
    match uri.path() {
        "/good/v2/rerank" => ranked(1.0),
        "/reversed/v2/rerank" => ranked(-1.0),
        // Like cosines: some below 0, but not in each answer.
        "/cosine/v2/rerank" => {
            let mut answer = ranking(&request, 1.0);
            if let Some(row) =
                answer["results"].get_mut(2).filter(|_| request["query"].to_string().contains("weather"))
            {
                row["relevance_score"] = json!(-0.05);
            }
            reply(200, "application/json", answer.to_string())
        }
        "/closed/v2/rerank" if key.as_deref() == Some("Bearer the-right-one") => ranked(1.0),
        "/closed/v2/rerank" => refused(),
        "/hang/v2/rerank" => std::future::pending().await,
        "/forgetful/v2/rerank" if request["documents"].as_array().map_or(0, Vec::len) > 2 => {
            reply(500, "text/plain", "UPSTREAM-TEXT".to_owned())
        }
        "/forgetful/v2/rerank" => ranked(1.0),
        path if path.starts_with("/site/") => {
            reply(200, "text/html", "<html><body>UPSTREAM-TEXT</body></html>".to_owned())
        }
        _ => reply(404, "application/json", json!({"message": "UPSTREAM-TEXT"}).to_string()),
    }
}

/// Scores documents by the words that they share with the query, from 0.05 upwards; with the sign -1 the other way round.
fn ranking(request: &Value, sign: f64) -> Value {
    let words = |text: &str| -> Vec<String> {
        let split = text.to_lowercase();
        let parts = split.split(|character: char| !character.is_alphanumeric()).filter(|word| word.len() > 3);
        parts.map(|word| word.trim_end_matches('s').to_owned()).collect()
    };
    let query = words(request["query"].as_str().unwrap());
    let documents = request["documents"].as_array().unwrap();
    let rows = documents.iter().enumerate().map(|(index, text)| {
        let document = words(text.as_str().unwrap());
        let shared = query.iter().filter(|word| document.contains(word)).count();
        let score = if shared > 0 { 0.85 } else { 0.05 };
        json!({"index": index, "relevance_score": if sign > 0.0 { score } else { 1.0 - score }})
    });
    json!({"results": rows.collect::<Vec<_>>()})
}

async fn allowed() -> TestApp {
    TestApp::builder()
        .set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true")
        .set("TOOLRACK_LOG_LEVEL", "trace")
        .start()
        .await
}

async fn try_it(user: &User, matcher: Value) -> Value {
    let answer = user.post(ROUTE, json!({ "matcher": matcher })).await;
    let document = answer.ok();
    assert_documented(&document);
    for hidden in [KEY, "UPSTREAM-TEXT"] {
        assert!(!answer.text().contains(hidden), "{document}");
    }
    document
}

/// Checks an answer against the committed API document.
fn assert_documented(answer: &Value) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/toolrack.v1.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let whole =
        json!({"$ref": "#/components/schemas/MatcherTestAnswer", "components": document["components"]});
    let validator = jsonschema::draft202012::options().build(&whole).unwrap();
    let errors: Vec<String> = validator.iter_errors(answer).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}: {answer}");
    let told = document["components"]["schemas"]["MatcherTestAnswer"]["properties"].as_object().unwrap();
    assert!(answer.as_object().unwrap().keys().all(|key| told.contains_key(key)), "{answer}");
}

/// Nothing of a config is stored for this user.
async fn assert_nothing_stored(app: &TestApp, user: &User) {
    let stored = app.admin().get(&user.path(&["config"])).await;
    assert_eq!((stored.header("etag"), stored.ok()), (Some("\"0\""), json!({})));
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn notes(answer: &Value) -> String {
    answer["notes"].to_string()
}

#[tokio::test]
async fn a_good_endpoint_is_told_with_its_ranking_beside_the_keywords() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let user = app.user();
    let tools = [
        json!({"name": "fly", "group": "birds", "description": "Let a pigeon carry it."}),
        json!({"name": "send_letter", "group": "mail", "description": "Send a message as a letter."}),
        json!({"name": "paint", "group": "art", "description": "Paint a picture."}),
    ];
    user.put_catalog(&tools).await.ok();
    let url = endpoint.url("good/v2/rerank?token=hush");
    let matcher =
        json!({"endpoint": url, "model": "m-1", "api_key": KEY, "timeout_ms": 10_000, "top_n": 500});
    let body = json!({"matcher": matcher, "query": "write a letter"});
    let answer = user.post(ROUTE, body).await.ok();
    assert_documented(&answer);
    assert_eq!((&answer["ok"], answer.get("fault")), (&json!(true), None), "{answer}");
    assert_eq!((&answer["dialect"], &answer["query"]), (&json!("cohere"), &json!("write a letter")));
    assert_eq!(answer["url"], json!(endpoint.url("good/v2/rerank")), "without its query string");
    assert!(answer["latency_ms"]["probe"].is_u64() && answer["latency_ms"]["ranking"].is_u64(), "{answer}");
    assert_eq!(answer["ranking"][0], json!({"name": "send_letter", "score": 0.85, "raw": 0.85}));
    assert_eq!(names(&answer["ranking"]).len(), 3, "every tool that the caller sees: {answer}");
    assert_eq!(names(&answer["keyword"])[0], "send_letter");
    let floor = answer["min_score_proposed"].as_f64().unwrap();
    assert!((0.44..0.46).contains(&floor), "{answer}");
    // What a write would warn of is told here as well.
    assert_eq!(answer["warnings"][0]["pointer"], "/matcher/top_n", "{answer}");
    assert!(!notes(&answer).contains("wrong way round"), "{answer}");

    let seen = endpoint.take();
    assert!(seen.iter().all(|(key, _)| key.as_deref() == Some(&*format!("Bearer {KEY}"))), "{seen:?}");
    assert_eq!(seen[0].1["documents"].as_array().unwrap().len(), 2, "the control pair comes first");
    assert_eq!(seen[1].1["documents"].as_array().unwrap().len(), 3);
    assert_nothing_stored(&app, &user).await;
    assert_eq!(user.search(json!({"query": "write a letter"})).await.ok()["mode"], "keyword");
    assert!(!app.logs().contains(KEY) && !app.logs().contains("hush"), "{}", app.logs());
}

#[tokio::test]
async fn a_scope_without_tools_is_tried_with_a_sample_of_its_own() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let user = app.user();
    let answer = try_it(&user, json!({"endpoint": endpoint.url("good/v2/rerank")})).await;
    assert_eq!((&answer["ok"], names(&answer["ranking"]).len()), (&json!(true), 10), "{answer}");
    assert_eq!((names(&answer["ranking"])[0], names(&answer["keyword"])[0]), ("send_email", "send_email"));
    assert!(notes(&answer).contains("built-in sample"), "{answer}");
    assert!(!answer["query"].as_str().unwrap().is_empty());
    // A blank query is none; one that is too long is refused at its place.
    let matcher = json!({"endpoint": endpoint.url("good/v2/rerank")});
    let blank = user.post(ROUTE, json!({"matcher": matcher, "query": "  "})).await.ok();
    assert_eq!(blank["query"], answer["query"]);
    let long = user.post(ROUTE, json!({"matcher": matcher, "query": "x".repeat(2_001)})).await;
    assert_eq!(long.problem(422, "invalid_request")["errors"][0]["pointer"], "/query");
}

#[tokio::test]
async fn faults_are_told_in_words_to_act_on() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let user = app.user();
    for (url, reason, advice) in [
        (endpoint.url("closed/v2/rerank"), "unauthorized", "`api_key`"),
        (endpoint.url("site/v2/rerank"), "web_page", "address of the API"),
        (endpoint.url("nowhere/v2/rerank"), "not_found", "the path of `endpoint`"),
        (endpoint.url("hang/v2/rerank"), "timeout", "`timeout_ms`"),
        (format!("http://{closed}/rerank"), "unreachable", "host and port"),
    ] {
        let matcher = json!({"endpoint": url, "api_key": KEY, "timeout_ms": 300});
        let answer = try_it(&user, matcher).await;
        let fault = &answer["fault"];
        assert_eq!((&answer["ok"], &fault["reason"]), (&json!(false), &json!(reason)), "{answer}");
        assert!(fault["detail"].as_str().unwrap().contains(advice), "{answer}");
        assert_eq!((&answer["url"], &answer["ranking"]), (&json!(url), &json!([])), "{answer}");
        assert!(answer.get("dialect").is_none() && answer.get("min_score_proposed").is_none(), "{answer}");
        assert!(answer["latency_ms"]["probe"].is_u64() && answer["latency_ms"].get("ranking").is_none());
        assert_eq!(names(&answer["keyword"])[0], "send_email", "keywords rank all the same");
    }
    // The pair is ranked, the sample is not: what is known is told.
    let answer = try_it(&user, json!({"endpoint": endpoint.url("forgetful/v2/rerank")})).await;
    assert_eq!((&answer["fault"]["reason"], &answer["dialect"]), (&json!("http_error"), &json!("cohere")));
    assert!(answer["latency_ms"]["ranking"].is_u64(), "{answer}");
    assert_nothing_stored(&app, &user).await;
    assert!(!app.logs().contains(KEY), "{}", app.logs());
}

#[tokio::test]
async fn a_control_pair_the_wrong_way_round_is_noted() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let answer = try_it(&app.user(), json!({"endpoint": endpoint.url("reversed/v2/rerank")})).await;
    assert_eq!((&answer["ok"], &answer["is_reversed"]), (&json!(true), &json!(true)), "{answer}");
    assert!(notes(&answer).contains("wrong way round"), "{answer}");
    assert!(answer.get("min_score_proposed").is_none() && notes(&answer).contains("min_score"), "{answer}");
}

#[tokio::test]
async fn no_floor_is_proposed_where_scales_differ() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let answer = try_it(&app.user(), json!({"endpoint": endpoint.url("cosine/v2/rerank")})).await;
    assert_eq!(answer["ok"], true, "{answer}");
    assert!(
        answer.get("min_score_proposed").is_none() && notes(&answer).contains("scale differs"),
        "{answer}"
    );
}

#[tokio::test]
async fn settings_are_checked_as_a_config_would() {
    let (app, endpoint) = (TestApp::start().await, Endpoint::start().await);
    let user = app.user();
    let public = "https://rerank.example.com/v1";
    for (matcher, code, pointer) in [
        (json!({"endpoint": endpoint.url("good/v2/rerank")}), "invalid_request", "/matcher/endpoint"),
        (json!({"endpoint": "https://169.254.169.254/"}), "invalid_request", "/matcher/endpoint"),
        (json!({"endpoint": "ftp://x"}), "invalid_request", "/matcher/endpoint"),
        (json!({"model": "m"}), "invalid_request", "/matcher"),
        (json!({"endpoint": public, "modle": "m"}), "invalid_request", "/matcher/modle"),
        (json!({"endpoint": public, "dialect": "jina"}), "invalid_request", "/matcher/dialect"),
        (json!({"endpoint": public, "api_key": [KEY]}), "invalid_request", "/matcher/api_key"),
        (
            json!({"endpoint": public, "extra_headers": {"Host": KEY}}),
            "invalid_request",
            "/matcher/extra_headers/Host",
        ),
        (json!([KEY]), "invalid_request", "/matcher"),
        (Value::Null, "invalid_request", "/matcher"),
    ] {
        let answer = user.post(ROUTE, json!({ "matcher": matcher })).await;
        let problem = answer.problem(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert!(!answer.text().contains(KEY), "{problem}");
    }
    let missing = user.post(ROUTE, json!({})).await.problem(422, "invalid_request");
    assert_eq!(missing["errors"][0]["pointer"], "/matcher");
    let body = json!({"user": user.id, "matcher": {"endpoint": public}});
    app.anonymous().post(ROUTE, &body).await.problem(401, "unauthorized");
    assert!(endpoint.take().is_empty());
    assert_nothing_stored(&app, &user).await;
}

#[tokio::test]
async fn a_stored_key_goes_to_its_own_origin_alone() {
    let (app, mine, theirs) = (allowed().await, Endpoint::start().await, Endpoint::start().await);
    let user = app.user();
    let stored = json!({"matcher": {"endpoint": mine.url("good/v2/rerank"), "api_key": KEY}});
    let revision = user.put_config(&stored).await.ok()["revision"].clone();
    let bearer = format!("Bearer {KEY}");
    let keys = |endpoint: &Endpoint| -> Vec<Option<String>> {
        endpoint.take().into_iter().map(|(key, _)| key).collect()
    };
    for api_key in [None, Some(json!({"set": true}))] {
        let settings = |endpoint: &Endpoint| {
            let mut matcher = json!({"endpoint": endpoint.url("good/v2/rerank")});
            if let Some(key) = &api_key {
                matcher["api_key"] = key.clone();
            }
            matcher
        };
        assert_eq!(try_it(&user, settings(&mine)).await["ok"], true);
        assert!(keys(&mine).iter().all(|key| key.as_deref() == Some(&bearer)));
        let elsewhere = try_it(&user, settings(&theirs)).await;
        assert_eq!(elsewhere["warnings"][0]["code"], "secret_missing", "{elsewhere}");
        let seen = keys(&theirs);
        assert!(!seen.is_empty() && seen.iter().all(Option::is_none), "{seen:?}");
    }
    // Another user has none; null asks without one; a key in the settings goes before the stored one.
    let other =
        try_it(&app.user(), json!({"endpoint": mine.url("good/v2/rerank"), "api_key": {"set": true}})).await;
    assert_eq!(other["warnings"][0]["pointer"], "/matcher/api_key", "{other}");
    try_it(&user, json!({"endpoint": mine.url("good/v2/rerank"), "api_key": null})).await;
    assert!(keys(&mine).iter().all(Option::is_none));
    try_it(&user, json!({"endpoint": mine.url("closed/v2/rerank"), "api_key": "the-right-one"})).await;
    assert!(keys(&mine).iter().all(|key| key.as_deref() == Some("Bearer the-right-one")));

    // The project's key goes before the user's.
    let project = unique("project");
    let config =
        json!({"matcher": {"endpoint": mine.url("good/v2/rerank"), "api_key": "key-of-the-project"}});
    app.admin().put(&path(&["v1", "projects", &project, "config"]), &config).await.ok();
    let body = json!({"project": project, "matcher": {"endpoint": mine.url("closed/v2/rerank")}});
    user.post(ROUTE, body).await.ok();
    assert!(keys(&mine).iter().all(|key| key.as_deref() == Some("Bearer key-of-the-project")));

    let config = app.admin().get(&user.path(&["config"])).await;
    assert_eq!(config.header("etag"), Some(&*format!("\"{revision}\"")), "nothing was written");
    assert_eq!(config.ok()["matcher"]["endpoint"], stored["matcher"]["endpoint"]);
    assert!(!app.logs().contains(KEY), "{}", app.logs());
}

#[tokio::test]
async fn a_test_goes_past_the_breaker_and_a_success_closes_it() {
    let (app, endpoint) = (allowed().await, Endpoint::start().await);
    let user = app.user();
    user.put_catalog(&[json!({"name": "send_letter", "description": "Send a message as a letter."})])
        .await
        .ok();
    let matcher = json!({"endpoint": endpoint.url("good/v2/rerank"), "api_key": KEY});
    user.put_config(&json!({ "matcher": matcher })).await.ok();
    endpoint.state.refuses.store(true, Ordering::SeqCst);
    let search = async || user.search(json!({"query": "write a letter"})).await.ok();
    assert_eq!(search().await["reason"], "unauthorized");
    assert_eq!(search().await["reason"], "circuit_open");

    let failed = try_it(&user, matcher.clone()).await;
    assert_eq!(failed["fault"]["reason"], "unauthorized", "the endpoint is asked all the same: {failed}");
    assert_eq!(search().await["reason"], "circuit_open", "a test that fails closes nothing");
    endpoint.state.refuses.store(false, Ordering::SeqCst);
    // Other settings are another matter.
    let other = json!({"endpoint": endpoint.url("good/v2/rerank"), "api_key": "another-key"});
    assert_eq!(try_it(&user, other).await["ok"], true);
    assert_eq!(search().await["reason"], "circuit_open");
    assert_eq!(try_it(&user, json!({"endpoint": endpoint.url("good/v2/rerank")})).await["ok"], true);
    let after = search().await;
    assert_eq!((&after["mode"], after.get("reason")), (&json!("rerank"), None), "{after}");
}
