//! An endpoint that hangs while one key floods: who is let in, who waits, who is refused, and who does not notice.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::endpoint::Endpoint;
use super::resilience::until;
use super::{matcher, messenger, names};
use crate::app::TestApp;
use crate::keys::make;

#[tokio::test]
async fn a_flood_fills_its_share_and_is_shed_while_others_are_served() {
    let app = TestApp::builder()
        .set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true")
        .set("TOOLRACK_LIMITS_CONCURRENT_REQUESTS", 4)
        .set("TOOLRACK_LIMITS_WAITING_REQUESTS", 2)
        .start()
        .await;
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let endpoint = Endpoint::with(move |call, _| {
        let held = Arc::clone(&held);
        async move {
            drop(held.acquire().await.unwrap());
            call.ranked()
        }
    })
    .await;
    let mut config = matcher(&endpoint.url("/rerank"));
    config["matcher"]["timeout_ms"] = json!(30_000);
    let (flood, quiet) = (messenger(&app, config).await, messenger(&app, json!({})).await);
    let flood_key = make(&app, "agent", json!({"users": [flood.id]})).await;
    let quiet_key = make(&app, "agent", json!({"users": [quiet.id]})).await;
    let flood = app.user_with_key(&flood.id, &flood_key.key);
    let quiet = app.user_with_key(&quiet.id, &quiet_key.key);

    let mut searches: FuturesUnordered<_> =
        (0..10).map(|at| flood.search(json!({"query": format!("send message {at}")}))).collect();
    // Two run and one waits; the others are refused at once, while the endpoint hangs.
    for _ in 0..7 {
        let answer = searches.next().await.unwrap();
        answer.problem(503, "overloaded");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let rest = async {
        let mut answers = Vec::new();
        while let Some(answer) = searches.next().await {
            answers.push(answer.ok());
        }
        answers
    };
    let meanwhile = async {
        until("two calls", async || endpoint.count() == 2).await;
        for _ in 0..20 {
            let found = quiet.search(json!({"query": "send a message"})).await.ok();
            assert!(!names(&found).is_empty());
        }
        app.anonymous().get("/healthz").await.ok();
        app.anonymous().get("/readyz").await.ok();
        let metrics = app.admin().get("/metrics").await;
        assert!(metrics.text().contains("toolrack_requests_held_back_total{reason=\"overload\"} 7"));
        gate.add_permits(64);
    };
    let (answers, ()) = tokio::join!(rest, meanwhile);
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|answer| answer["mode"] == "rerank"), "{answers:?}");
    flood.search(json!({"query": "send message again"})).await.ok();
}

#[tokio::test]
async fn who_waits_too_long_leaves_the_queue() {
    let app = TestApp::builder()
        .set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true")
        .set("TOOLRACK_LIMITS_CONCURRENT_REQUESTS", 2)
        .set("TOOLRACK_LIMITS_WAITING_REQUESTS", 2)
        .start()
        .await;
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let endpoint = Endpoint::with(move |call, _| {
        let held = Arc::clone(&held);
        async move {
            drop(held.acquire().await.unwrap());
            call.ranked()
        }
    })
    .await;
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let key = make(&app, "agent", json!({"users": [user.id]})).await;
    let user = app.user_with_key(&user.id, &key.key);
    let running = user.search(json!({"query": "send message 1"}));
    let rest = async {
        until("a call", async || endpoint.count() == 1).await;
        // The client hangs up, and its place is free again for the next.
        let gone = user.search(json!({"query": "send message 2"}));
        assert!(tokio::time::timeout(Duration::from_millis(300), gone).await.is_err(), "it waits");
        let next = user.search(json!({"query": "send message 3"}));
        let open = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            gate.add_permits(64);
        };
        tokio::join!(next, open).0
    };
    let (running, next) = tokio::join!(running, rest);
    running.ok();
    assert!(next.status == 200 || next.status == 503, "{}", next.text());
    user.search(json!({"query": "send message 4"})).await.ok();
}

#[tokio::test]
async fn over_its_rerank_calls_a_key_searches_by_keywords() {
    let app = super::allowed().await;
    let endpoint = Endpoint::good().await;
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let bound = json!({"users": [user.id], "rate": {"rerank_per_minute": 2}});
    let key = make(&app, "agent", bound.clone()).await;
    let other = make(&app, "agent", bound).await;
    let search = async |key: &str, at: usize| -> Value {
        let user = app.user_with_key(&user.id, key);
        user.search(json!({"query": format!("send message {at}")})).await.ok()
    };
    for at in 0..2 {
        let answer = search(&key.key, at).await;
        assert_eq!((&answer["mode"], &answer["warnings"]), (&json!("rerank"), &json!([])), "{answer}");
    }
    let over = search(&key.key, 2).await;
    assert_eq!(
        (&over["mode"], &over["degraded"], &over["reason"]),
        (&json!("keyword"), &json!(true), &json!("rate_limited"))
    );
    assert_eq!(over["warnings"][0]["code"], "rerank_allowance");
    assert!(!names(&over).is_empty());
    assert_eq!(endpoint.take().len(), 2);
    assert_eq!(search(&other.key, 3).await["mode"], "rerank");
}
