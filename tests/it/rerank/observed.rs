//! What a service tells of itself beside its answers: metrics whose series are all documented.

use std::collections::{BTreeMap, HashMap};

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
        user.put_config(&json!({"matcher": matcher, "preload": {"enabled": true}})).await.ok();
        for _ in 0..3 {
            user.search(session.clone()).await.ok();
        }
        user.assemble(json!({"session": path.trim_start_matches('/'), "query": "birds"})).await.ok();
    }
    user.put_config(&json!({})).await.ok();
    user.search(json!({"query": "zzqqxx"})).await.ok();
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
        if call.path == "/denied" { json_reply(401, &json!({})) } else { call.ranked() }
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
        assert!(
            text.contains(&format!("# TYPE {} {}\n", metric.name, metric.kind.name())),
            "{}",
            metric.name
        );
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
        (1.0, "toolrack_cache_entries{cache=\"sessions\"}"),
        (
            3.0,
            "toolrack_http_request_duration_seconds_count{route=\"/v1/search\",method=\"other\",status=\"405\"}",
        ),
    ] {
        let value = values.get(name).unwrap_or_else(|| panic!("{name} is not in {text}"));
        assert!(*value >= at_least, "{name} {value}");
    }
    assert_eq!(values["toolrack_db_storage_full"], 0.0);
    assert!(!text.contains("127.0.0.1") && !text.contains("TRACE") && !text.contains("user-"), "{text}");
}
