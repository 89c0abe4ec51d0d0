//! Traces: one tree for each request, in its caller's trace, with nothing of what was asked in it, and told to the collector alone.

use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use reqwest::Method;
use serde_json::json;

use super::collector::{Collector, Span};
use super::endpoint::{Endpoint, json_reply};
use super::{KEY, matcher};
use crate::app::{Answer, TestApp, User};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
const OTLP_KEY: &str = "otlp-canary-2c4be1d97f";

async fn catalog(user: &User, config: &serde_json::Value) {
    let tools = [
        json!({"name": "canary_tool", "description": "Let a canary-text pigeon carry it."}),
        json!({"name": "read", "description": "Read a book."}),
    ];
    user.put_catalog(&tools).await.ok();
    user.put_config(config).await.ok();
}

/// A search in a trace of the caller's.
async fn search(app: &TestApp, user: &User, traceparent: &str) -> Answer {
    let body = json!({"user": user.id, "query": "canary-query about birds", "session": "canary-session"});
    let headers = [
        ("content-type", "application/json"),
        ("traceparent", traceparent),
        ("tracestate", "vendor=1"),
        ("user-agent", "canary-agent"),
    ];
    app.admin().send(Method::POST, "/v1/search", &headers, body.to_string().into()).await
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let first = found.next().unwrap_or_else(|| panic!("{name} is not in {spans:#?}"));
    assert!(found.next().is_none(), "two spans are called {name}: {spans:#?}");
    first
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_is_one_tree_in_the_trace_of_its_caller_and_holds_none_of_its_texts() {
    let (collector, endpoint) = (Collector::start().await, Endpoint::good().await);
    let app = collector
        .service()
        .set("TOOLRACK_TRACING_OTLP_HEADERS", format!("authorization=Bearer {OTLP_KEY}"))
        .set("TOOLRACK_TRACING_SERVICE_NAME", "rack-7")
        .set("TOOLRACK_LOG_LEVEL", "debug")
        .set("TOOLRACK_LOG_FORMAT", "json")
        .start()
        .await;
    let user = app.user_called("canary-user");
    catalog(&user, &matcher(&endpoint.url("/rerank"))).await;
    let answer = search(&app, &user, &format!("00-{TRACE}-{CALLER}-01")).await;
    assert_eq!(answer.ok()["mode"], "rerank");

    let spans = collector.trace(TRACE, &["POST /v1/search", "retrieval", "rerank m-1", "COMMIT"]).await;
    let server = named(&spans, "POST /v1/search");
    assert_eq!((server.kind, &*server.parent, server.failed), (SpanKind::Server, CALLER, false));
    for (key, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/search"),
        ("http.response.status_code", "200"),
        ("url.scheme", "http"),
        ("server.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
    ] {
        assert_eq!(server.attributes.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!((&*server.resource["service.name"], server.resource.len()), ("rack-7", 5));
    let retrieval = named(&spans, "retrieval");
    assert_eq!((retrieval.kind, &retrieval.parent), (SpanKind::Internal, &server.id));
    assert_eq!(retrieval.attributes["gen_ai.operation.name"], "retrieval");
    assert_eq!(retrieval.attributes["toolrack.search.mode"], "rerank");
    let call = named(&spans, "rerank m-1");
    assert_eq!((call.kind, &call.parent, call.failed), (SpanKind::Client, &retrieval.id, false));
    for (key, value) in [
        ("gen_ai.operation.name", "rerank"),
        ("gen_ai.request.model", "m-1"),
        ("gen_ai.provider.name", "cohere"),
        ("server.address", "127.0.0.1"),
        ("server.port", &*endpoint.address.port().to_string()),
    ] {
        assert_eq!(call.attributes.get(key).map(String::as_str), Some(value), "{key}");
    }
    let commit = named(&spans, "COMMIT");
    assert_eq!((commit.kind, &commit.parent), (SpanKind::Client, &server.id));
    assert_eq!(commit.attributes["db.system.name"], "sqlite");

    assert_eq!(answer.header("traceresponse"), Some(&*format!("00-{TRACE}-{}-01", server.id)));
    let logs = app.logs();
    let of_trace = format!("\"trace_id\":\"{TRACE}\"");
    let line = logs.lines().find(|line| line.contains("/v1/search") && line.contains(&of_trace));
    let line: serde_json::Value =
        serde_json::from_str(line.unwrap_or_else(|| panic!("no line has the trace: {logs}"))).unwrap();
    assert_eq!((&line["trace_id"], &line["route"]), (&json!(TRACE), &json!("/v1/search")));

    // The endpoint is told nothing of it.
    for call in endpoint.take() {
        for name in ["traceparent", "tracestate", "traceresponse", "baggage"] {
            assert_eq!(call.header(name), None, "{call:?}");
        }
        assert!(!format!("{call:?}").contains(TRACE));
    }
    // The collector is told nothing of what was asked, of whom, or with which key.
    for sent in collector.sent() {
        assert_eq!(sent.headers["authorization"], format!("Bearer {OTLP_KEY}"));
        assert!(
            !sent.headers.contains_key("traceparent"),
            "requests to the collector are no part of a trace"
        );
        let body = String::from_utf8_lossy(&sent.body);
        for secret in ["canary", KEY, crate::app::ADMIN_KEY] {
            assert!(!body.contains(secret), "{secret} was sent: {body}");
        }
    }
    assert!(!logs.contains(OTLP_KEY));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_told_by_their_kind() {
    let collector = Collector::start().await;
    let endpoint = Endpoint::with(|_, _| async { json_reply(401, &json!({"detail": "canary"})) }).await;
    let app = collector.service().start().await;
    let user = app.user();
    catalog(&user, &matcher(&endpoint.url("/rerank"))).await;
    let searched = search(&app, &user, &format!("00-{TRACE}-{CALLER}-01")).await;
    assert_eq!(searched.ok()["reason"], "unauthorized");
    let spans = collector.trace(TRACE, &["POST /v1/search", "rerank m-1"]).await;
    let call = named(&spans, "rerank m-1");
    assert_eq!((&*call.attributes["error.type"], call.failed), ("unauthorized", true));
    assert_eq!(named(&spans, "retrieval").attributes["toolrack.search.fallback"], "unauthorized");
    let server = named(&spans, "POST /v1/search");
    assert!(!server.failed && !server.attributes.contains_key("error.type"), "keywords answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caller_decides_what_is_traced_and_the_rest_by_share() {
    let collector = Collector::start().await;
    let mut app = collector.service().set("TOOLRACK_TRACING_SAMPLE_RATIO", "0").start().await;
    let user = app.user();
    catalog(&user, &json!({})).await;
    let not_kept = search(&app, &user, &format!("00-{}-{CALLER}-00", TRACE.replace('4', "5"))).await;
    let by_itself = app.admin().get("/v1/limits").await;
    let malformed = search(&app, &user, "00-zz-01").await;
    for answer in [not_kept, by_itself, malformed] {
        answer.ok();
        assert_eq!(answer.header("traceresponse"), None);
    }
    let kept = search(&app, &user, &format!("00-{TRACE}-{CALLER}-01")).await;
    assert!(kept.header("traceresponse").unwrap().starts_with(&format!("00-{TRACE}-")));
    // What ends shortly before the service does is sent all the same.
    app.stop().await;
    let spans = collector.spans();
    assert!(!spans.is_empty() && spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_and_writes_of_no_request_have_no_trace() {
    let collector = Collector::start().await;
    let mut app = collector.service().set("TOOLRACK_SESSION_FLUSH_MS", 10).start().await;
    let user = app.user();
    catalog(&user, &json!({})).await;
    user.search(json!({"query": "pigeon", "session": "s"})).await.ok();
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(app.admin().get(path).await.header("traceresponse"), None, "{path}");
    }
    app.stop().await;
    let spans = collector.spans();
    for root in spans.iter().filter(|span| span.parent.is_empty()) {
        assert_eq!(root.kind, SpanKind::Server, "{root:#?}");
        assert!(
            root.name.starts_with("PUT /v1/users/{user}/") || root.name == "POST /v1/search",
            "{root:#?}"
        );
    }
    assert_eq!(spans.iter().filter(|span| span.name == "POST /v1/search").count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_servers_are_told_of_no_trace() {
    let (collector, server) = (Collector::start().await, Endpoint::good().await);
    let app = collector.service().start().await;
    let user = app.user();
    let place = user.path(&["mcp-servers", "wiki"]);
    let headers =
        [("content-type", "application/json"), ("traceparent", &*format!("00-{TRACE}-{CALLER}-01"))];
    let spec = json!({"url": server.url("/mcp")}).to_string();
    app.admin().send(Method::PUT, &place, &headers, spec.into()).await.ok();
    app.admin().send(Method::POST, &format!("{place}/sync"), &headers, "{}".into()).await;
    let wait = async {
        while server.count() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait).await.expect("the server is asked");
    for call in server.take() {
        assert!(!format!("{call:?}").contains(TRACE) && call.header("traceparent").is_none(), "{call:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_gone_costs_nothing_and_is_told_once() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut app = TestApp::builder()
        .set("TOOLRACK_TRACING_OTLP_ENDPOINT", format!("http://{gone}"))
        .set("TOOLRACK_TRACING_OTLP_HEADERS", format!("x-key={OTLP_KEY}"))
        .start()
        .await;
    let told = "the collector of traces does not take them";
    let wait = async {
        while !app.logs().contains(told) {
            app.admin().get("/v1/limits").await.ok();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait).await.expect("it is told");
    for _ in 0..20 {
        app.admin().get("/v1/limits").await.ok();
    }
    app.stop().await;
    let logs = app.logs();
    assert_eq!(logs.matches(told).count(), 1, "{logs}");
    assert!(!logs.contains(OTLP_KEY) && !logs.contains(&gone.to_string()), "{logs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_trace_is_made_where_no_collector_is_set() {
    let app = TestApp::builder().set("TOOLRACK_LOG_LEVEL", "trace").start().await;
    let user = app.user();
    catalog(&user, &json!({})).await;
    let answer = search(&app, &user, &format!("00-{TRACE}-{CALLER}-01")).await;
    answer.ok();
    assert_eq!(answer.header("traceresponse"), None);
    assert!(!app.logs().contains(TRACE) && !app.logs().contains("toolrack::spans"));
    let shown = app.command(&["check-config"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("tracing.otlp_endpoint = \"\"  # default"), "{shown}");
}
