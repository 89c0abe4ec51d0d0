//! What a service tells of itself beside its answers: metrics whose series are all documented.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;
use toolrack::telemetry::{METRICS, Metric};

use super::endpoint::{Endpoint, json_reply};
use crate::app::TestApp;

/// A service that may ask endpoints of this machine.
fn service() -> crate::app::Builder {
    TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true")
}

/// One line of the text format: name, labels, value.
fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').unwrap().split("\",").filter(|label| !label.is_empty());
    let label = |label: &str| {
        let (name, value) = label.split_once("=\"").unwrap();
        (name.to_owned(), value.trim_end_matches('"').to_owned())
    };
    (name.to_owned(), labels.map(label).collect(), value.parse().unwrap())
}

fn metric_of(name: &str) -> &'static Metric {
    let is_this = |metric: &&Metric| {
        name.strip_prefix(metric.name).is_some_and(|end| ["", "_bucket", "_sum", "_count"].contains(&end))
    };
    METRICS.iter().find(is_this).unwrap_or_else(|| panic!("{name} is not in the table"))
}

/// What Prometheus' own checker says of names, units and help.
fn promtool(metrics: &str) {
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if std::env::var_os("TOOLRACK_REQUIRE_PROMTOOL").is_none() => {
            eprintln!("promtool is not there, so it checks nothing: {error}");
            return;
        }
        Err(error) => panic!("promtool: {error}"),
    };
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.trim().is_empty(), "{told}");
}

/// Asks for a bit of everything, also in the wrong way.
async fn keep_busy(app: &TestApp, endpoint: &Endpoint) {
    let user = app.user();
    let tools: Vec<_> = ["send a pigeon", "read a book", "cook a soup"]
        .iter()
        .enumerate()
        .map(|(at, text)| json!({"name": format!("tool_{at}"), "description": text}))
        .chain([json!({"description": "nameless"})])
        .collect();
    user.put_catalog(&tools).await.ok();
    let session = json!({"session": "s", "query": "something with birds"});
    for path in ["/rerank", "/denied"] {
        let matcher = json!({"endpoint": endpoint.url(path), "dialect": "cohere", "timeout_ms": 2000});
        let config = json!({"min_catalog_size": 0, "matcher": matcher, "preload": {"enabled": true}});
        user.put_config(&config).await.ok();
        for _ in 0..3 {
            user.search(session.clone()).await.ok();
        }
        user.assemble(json!({"session": path.trim_start_matches('/'), "query": "birds"})).await.ok();
    }
    // Another's, because a config that is written anew forgives its endpoint.
    let other = app.user();
    other.put_catalog(&tools).await.ok();
    other.search(json!({"query": "zzqqxx"})).await.ok();
    user.describe(json!({"names": ["tool_0", "tool_99"], "session": "s"})).await.ok();
    user.assemble(json!({"session": "s", "format": "openai_chat"})).await.ok();
    app.anonymous().get("/v1/limits").await.problem(401, "unauthorized");
    app.admin().get("/nowhere").await.problem(404, "not_found");
    for method in ["BREW", "DELETE", "TRACE"] {
        let sent = app.admin().send(method.parse().unwrap(), "/v1/search", &[], bytes::Bytes::new()).await;
        sent.problem(405, "method_not_allowed");
    }
}

async fn endpoint() -> Endpoint {
    Endpoint::with(|call, _| async move {
        if call.path.starts_with("/denied") { json_reply(401, &json!({})) } else { call.ranked() }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_series_of_a_busy_service_is_documented() {
    let (app, endpoint) = (service().start().await, endpoint().await);
    keep_busy(&app, &endpoint).await;
    let answer = app.admin().get("/metrics").await;
    let text = answer.text().to_owned();
    let mut series: HashMap<&str, usize> = HashMap::new();
    let mut values = HashMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, mut labels, value) = sample(line);
        let metric = metric_of(&name);
        *series.entry(metric.name).or_default() += 1;
        values.insert(line.rsplit_once(' ').unwrap().0.to_owned(), value);
        labels.remove("le");
        let known: Vec<&str> = metric.labels.iter().map(|label| label.name).collect();
        assert!(
            labels.keys().all(|label| known.contains(&&**label)) && labels.len() == known.len(),
            "{line}"
        );
        for label in metric.labels {
            assert!(label.values.take(&labels[label.name]), "{line}: {} is not listed", label.name);
        }
    }
    for metric in METRICS {
        assert!(
            series.get(metric.name).copied().unwrap_or_default() <= metric.most_series(),
            "{}",
            metric.name
        );
        let kind = format!("# TYPE {} {}\n", metric.name, metric.kind.name());
        assert!(text.contains(&kind) || !series.contains_key(metric.name), "{}", metric.name);
    }
    for (at_least, name) in [
        (1.0, "toolrack_endpoint_calls_total{kind=\"rerank\",outcome=\"ok\"}"),
        (1.0, "toolrack_endpoint_calls_total{kind=\"rerank\",outcome=\"unauthorized\"}"),
        (2.0, "toolrack_endpoint_call_duration_seconds_count{kind=\"rerank\"}"),
        (1.0, "toolrack_rerank_breakers_open"),
        (1.0, "toolrack_search_no_match_total{mode=\"keyword\"}"),
        (1.0, "toolrack_warm_additions_total"),
        (1.0, "toolrack_warm_touches_total"),
        (1.0, "toolrack_db_write_wait_seconds_count"),
        (1.0, "toolrack_db_commit_duration_seconds_count"),
        (4.0, "toolrack_db_pool_connections_max"),
        (1024.0, "toolrack_http_requests_in_flight_max{state=\"running\"}"),
        (1.0, "toolrack_db_disk_free_bytes"),
        (0.0, "toolrack_cache_entries{cache=\"sessions\"}"),
        (
            3.0,
            "toolrack_http_request_duration_seconds_count{route=\"/v1/search\",method=\"other\",status=\"405\"}",
        ),
    ] {
        let value = values.get(name).unwrap_or_else(|| panic!("{name} is not in {text}"));
        assert!(*value >= at_least, "{name} {value}");
    }
    assert_eq!(values["toolrack_db_storage_full"], 0.0);
    promtool(&text);
    assert!(!text.contains("127.0.0.1") && !text.contains("TRACE") && !text.contains("user-"), "{text}");
}

/// Names and milliseconds of a `Server-Timing` header.
fn times(header: &str) -> Vec<(String, f64)> {
    let part = |part: &str| {
        let (name, time) = part.split_once(";dur=").unwrap();
        assert_eq!(time.split_once('.').unwrap().1.len(), 3, "{header}");
        (name.to_owned(), time.parse().unwrap())
    };
    header.split(", ").map(part).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_the_api_tell_what_their_parts_took() {
    let (app, endpoint) = (service().start().await, endpoint().await);
    let user = app.user();
    let stored = user.put_catalog(&[json!({"name": "fly", "description": "Let a pigeon carry it."})]).await;
    let names = |answer: &crate::app::Answer| -> Vec<String> {
        times(answer.header("server-timing").unwrap()).into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(&stored), ["total", "db"]);
    let searched = user.search(json!({"query": "pigeon", "session": "s"})).await;
    assert_eq!(names(&searched), ["total", "rank", "db"]);
    let matcher = json!({"endpoint": endpoint.url("/rerank"), "dialect": "cohere"});
    user.put_config(&json!({"min_catalog_size": 0, "matcher": matcher})).await.ok();
    let ranked = user.search(json!({"query": "bird", "session": "s"})).await;
    assert_eq!(ranked.ok()["mode"], "rerank");
    let told = times(ranked.header("server-timing").unwrap());
    let total = told[0].1;
    assert!(told.iter().any(|(name, _)| name == "endpoint"), "{told:?}");
    assert!(told.iter().all(|(_, time)| (0.0..=total).contains(time)), "{told:?}");
    assert_eq!(names(&app.admin().get("/v1/nowhere").await), ["total"]);
    assert_eq!(names(&app.anonymous().get("/v1/limits").await)[0], "total");
    for path in ["/healthz", "/metrics", "/ui/", "/nowhere"] {
        assert_eq!(app.admin().get(path).await.header("server-timing"), None, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_request_is_told_with_its_parts_and_without_its_texts() {
    let endpoint = Endpoint::with(|call, _| async move {
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        call.ranked()
    })
    .await;
    let app = service().set("TOOLRACK_LOG_SLOW_REQUEST_MS", 50).start().await;
    let user = app.user_called("canary-user");
    user.put_catalog(&[json!({"name": "fly", "description": "Let a pigeon carry it."})]).await.ok();
    let matcher = json!({"endpoint": endpoint.url("/rerank"), "dialect": "cohere"});
    user.put_config(&json!({"min_catalog_size": 0, "matcher": matcher})).await.ok();
    let headers = [("content-type", "application/json"), ("x-request-id", "slow-one")];
    let body = json!({"user": "canary-user", "query": "canary-query", "session": "canary-session"});
    let sent = app.admin().send(reqwest::Method::POST, "/v1/search", &headers, body.to_string().into());
    assert_eq!(sent.await.ok()["mode"], "rerank");
    let logs = app.logs();
    let line = logs.lines().find(|line| line.contains("slow request") && line.contains("slow-one"));
    let line = line.unwrap_or_else(|| panic!("{logs}"));
    for part in ["WARN", "/v1/search", "POST", "200", "endpoint_ms", "rank_ms", "db_ms", "admin"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!logs.contains("canary"), "{logs}");
}

#[tokio::test]
async fn no_request_is_slow_where_that_is_turned_off() {
    let app = TestApp::builder().set("TOOLRACK_LOG_SLOW_REQUEST_MS", 0).start().await;
    app.admin().get("/v1/limits").await.ok();
    assert!(!app.logs().contains("slow request"));
}
