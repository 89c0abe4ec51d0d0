//! `hedge_ms`: an endpoint that sometimes hangs is asked a second time, where the config says so.

use serde_json::json;

use super::endpoint::Endpoint;
use super::{allowed, matcher, messenger, names};

const QUERY: &str = "send a message";

/// Hangs at its first call.
async fn hanging_once() -> Endpoint {
    Endpoint::with(|call, before| async move {
        if before == 0 { std::future::pending().await } else { call.ranked() }
    })
    .await
}

#[tokio::test]
async fn a_search_waits_no_longer_than_the_config_says_for_one_slow_call() {
    let app = allowed().await;
    for (hedge_ms, timeout_ms, reason, calls) in
        [(json!(20), 10_000, None, 2), (json!(null), 300, Some("timeout"), 1)]
    {
        let endpoint = hanging_once().await;
        let mut config = matcher(&endpoint.url("/rerank"));
        config["matcher"]["hedge_ms"] = hedge_ms;
        config["matcher"]["timeout_ms"] = json!(timeout_ms);
        let user = messenger(&app, config).await;
        let answer = user.search(json!({"query": QUERY})).await.ok();
        assert_eq!(answer["reason"].as_str(), reason, "{answer}");
        assert_eq!(names(&answer)[0] == "fly", reason.is_none(), "{answer}");
        let seen = endpoint.take();
        assert_eq!(seen.len(), calls);
        assert!(seen.iter().all(|call| call.body == seen[0].body), "the same is asked");
    }
}

#[tokio::test]
async fn an_endpoint_that_answers_is_asked_once_and_a_test_of_settings_never_twice() {
    let (app, fast) = (allowed().await, Endpoint::good().await);
    let mut config = matcher(&fast.url("/rerank"));
    config["matcher"]["hedge_ms"] = json!(9_000);
    let user = messenger(&app, config).await;
    assert_eq!(user.search(json!({"query": QUERY})).await.ok()["mode"], "rerank");
    assert_eq!(fast.count(), 1);

    // Answers the control pair, and hangs at the sample.
    let slow = Endpoint::with(|call, _| async move {
        if call.is_probe() { call.ranked() } else { std::future::pending().await }
    })
    .await;
    let body = json!({"user": user.id, "matcher": {"endpoint": slow.url("/rerank"), "dialect": "cohere",
        "hedge_ms": 10, "timeout_ms": 300}});
    let tried = app.admin().post("/v1/setup/matcher-test", &body).await.ok();
    assert_eq!((&tried["ok"], &tried["fault"]["reason"]), (&json!(false), &json!("timeout")), "{tried}");
    let samples = slow.take().iter().filter(|call| !call.is_probe()).count();
    assert_eq!(samples, 1);
}

#[tokio::test]
async fn the_wait_is_kept_within_its_bounds() {
    let app = allowed().await;
    let user = app.user();
    for (written, kept) in [(5, 10), (10, 10), (60_000, 60_000), (70_000, 60_000)] {
        let config = json!({"matcher": {"endpoint": "https://x.example/rerank", "hedge_ms": written}});
        let answer = user.put_config(&config).await.ok();
        assert_eq!(answer["config"]["matcher"]["hedge_ms"], json!(kept), "{answer}");
        let clamped = answer["warnings"].to_string().contains("/matcher/hedge_ms");
        assert_eq!(clamped, written != kept, "{answer}");
    }
    let view = app.admin().get(&format!("/v1/config/effective?user={}", user.id)).await.ok();
    assert_eq!(view["config"]["matcher"]["value"]["hedge_ms"], json!(60_000));
    let absent = json!({"matcher": {"hedge_ms": null}});
    app.admin().patch(&user.path(&["config"]), &absent).await.ok();
    let view = app.admin().get(&format!("/v1/config/effective?user={}", user.id)).await.ok();
    assert!(view["config"]["matcher"]["value"].get("hedge_ms").is_none(), "off where it is absent: {view}");
}
