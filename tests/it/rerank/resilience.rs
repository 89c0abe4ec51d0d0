//! An endpoint that fails, hangs or is asked the same again and again: how often it is called, and what the agent
//! waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::endpoint::{Endpoint, json_reply, nobody};
use super::{KEY, allowed, matcher, messenger, names, texts};
use crate::app::{TestApp, User};

pub(super) const QUERY: &str = "send a message";

/// How the user's search ended: `mode`, and why it was not `rerank`.
pub(super) async fn outcome(user: &User, query: &str) -> (String, String) {
    let answer = user.search(json!({"query": query})).await.ok();
    assert!(!names(&answer).is_empty(), "{answer}");
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    (text("mode"), text("reason"))
}

#[track_caller]
pub(super) fn is_degraded(outcome: &(String, String), reason: &str) {
    assert_eq!((outcome.0.as_str(), outcome.1.as_str()), ("keyword", reason));
}

pub(super) fn reranked() -> (String, String) {
    ("rerank".to_owned(), String::new())
}

/// The changes of breakers to a state that the metrics count.
pub(super) async fn changes(app: &TestApp, to: &str) -> u64 {
    let metrics = app.admin().get("/metrics").await;
    let start = format!("toolrack_rerank_breaker_changes_total{{to=\"{to}\"}} ");
    let line = metrics.text().lines().find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |count| count.parse().unwrap())
}

/// Asks time after time until it is so.
pub(super) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < Duration::from_secs(30), "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn identical_searches_at_once_are_one_call() {
    let app = allowed().await;
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
    let other = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let searches = (0..32).map(|at| user.search(json!({"session": format!("s{at}"), "query": QUERY})));
    let release = async {
        until("a call", async || endpoint.count() == 1).await;
        // Another user's answer is another's, though all that is sent is the same.
        let search = other.search(json!({"query": QUERY}));
        let open = async {
            until("the other's call", async || endpoint.count() == 2).await;
            gate.add_permits(64);
        };
        tokio::join!(search, open).0.ok()
    };
    let (answers, theirs) = tokio::join!(join_all(searches), release);
    for answer in &answers {
        let answer = answer.ok();
        assert_eq!((&answer["mode"], names(&answer)[0]), (&json!("rerank"), "fly"), "{answer}");
    }
    assert_eq!(names(&theirs)[0], "fly");
    let seen = endpoint.take();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].body, seen[1].body);
}

#[tokio::test]
async fn an_endpoint_is_asked_so_many_things_at_once_and_no_more() {
    const MOST: usize = 32;
    let app = allowed().await;
    let (gate, under_way) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let most = Arc::new(AtomicUsize::new(0));
    let (held, counted, peak) = (Arc::clone(&gate), Arc::clone(&under_way), Arc::clone(&most));
    let endpoint = Endpoint::with(move |call, _| {
        let (held, counted, peak) = (Arc::clone(&held), Arc::clone(&counted), Arc::clone(&peak));
        async move {
            peak.fetch_max(counted.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            drop(held.acquire().await.unwrap());
            counted.fetch_sub(1, Ordering::Relaxed);
            call.ranked()
        }
    })
    .await;
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let queries: Vec<String> = (0..MOST + 8).map(|at| format!("send message {at}")).collect();
    let searches = join_all(queries.iter().map(|query| outcome(&user, query)));
    let release = async {
        until("as many calls as may be", async || endpoint.count() == MOST).await;
        gate.add_permits(1_000);
    };
    let (outcomes, ()) = tokio::join!(searches, release);
    assert!(outcomes.iter().all(|outcome| *outcome == reranked()), "{outcomes:?}");
    assert_eq!((endpoint.count(), most.load(Ordering::Relaxed)), (queries.len(), MOST));
}

#[tokio::test]
async fn answers_take_no_more_memory_than_the_settings_give() {
    let app = TestApp::builder()
        .set("TOOLRACK_RERANK_ALLOW_PRIVATE", true)
        .set("TOOLRACK_CACHE_ANSWERS_BYTES", 0)
        .start()
        .await;
    let endpoint = Endpoint::with(|call, _| async move { call.ranked() }).await;
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    for asked in 1..4 {
        assert_eq!(outcome(&user, QUERY).await, reranked());
        assert_eq!(endpoint.count(), asked, "nothing was kept");
    }
    assert!(app.admin().get("/metrics").await.text().contains("toolrack_cache_bytes{cache=\"answers\"} 0\n"));
}

#[tokio::test]
async fn the_same_search_again_is_answered_from_memory() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let first = user.search(json!({"query": QUERY})).await.ok();
    let again = user.search(json!({"session": "s", "query": QUERY, "warm": false})).await.ok();
    assert_eq!((&first["results"], &first["mode"]), (&again["results"], &again["mode"]));
    assert_eq!(endpoint.take().len(), 1);

    // What is sent decides: another query, other tools, another key, another user.
    assert_eq!(outcome(&user, "write a letter").await, reranked());
    assert_eq!(endpoint.take().len(), 1);
    let less = user.search(json!({"query": QUERY, "deny": ["send_letter"]})).await.ok();
    assert_eq!((endpoint.take().len(), names(&less).contains(&"send_letter")), (1, false), "{less}");
    let key = json!({"matcher": {"api_key": "another-key-of-this-user"}});
    app.admin().patch(&user.path(&["config"]), &key).await.ok();
    assert_eq!(outcome(&user, QUERY).await, reranked());
    assert_eq!(endpoint.take()[0].header("authorization"), Some("Bearer another-key-of-this-user"));
    let other = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    assert_eq!(outcome(&other, QUERY).await, reranked());
    assert_eq!(endpoint.take().len(), 1);
    // A failure is not kept.
    for user in [&user, &other] {
        assert_eq!(outcome(user, QUERY).await, reranked());
    }
    assert_eq!(endpoint.count(), 0);
}

/// An endpoint that fails with a status until it is told to be well.
pub(super) async fn failing(status: u16) -> (Endpoint, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let endpoint = Endpoint::with(move |call, _| {
        let answer =
            if well.load(Ordering::Relaxed) { call.ranked() } else { json_reply(status, &json!({})) };
        async { answer }
    });
    (endpoint.await, is_well)
}

#[tokio::test]
async fn after_five_failures_in_a_row_the_endpoint_is_left_alone() {
    let app = allowed().await;
    let (endpoint, is_well) = failing(500).await;
    let config = matcher(&endpoint.url("/rerank"));
    let user = messenger(&app, config.clone()).await;
    let same = messenger(&app, config).await;
    // Four failures, a success, and they count from the start.
    for at in 0..10 {
        is_well.store(at == 4, Ordering::Relaxed);
        let found = outcome(&user, &format!("send message {at}")).await;
        if at == 4 {
            assert_eq!(found, reranked());
        } else {
            is_degraded(&found, "http_error");
        }
        assert_eq!(endpoint.take().len(), if at == 4 { 1 } else { 2 }, "{at}: a retry is part of one");
        assert_eq!(changes(&app, "open").await, u64::from(at == 9), "{at}");
    }

    // Whatever the session, the query or the route, nobody is asked, and the words serve as they do without one.
    is_well.store(true, Ordering::Relaxed);
    let keywords = messenger(&app, json!({"min_catalog_size": 0})).await;
    let mut answers = Vec::new();
    for user in [&user, &keywords] {
        user.assemble(json!({"session": "s"})).await.ok();
        let answer = user.search(json!({"session": "s", "queries": [QUERY, "fly away"]})).await.ok();
        let warm = user.assemble(json!({"session": "s"})).await.ok()["warm"].clone();
        answers.push((answer["results"].clone(), answer["warmed"].clone(), warm));
        assert!(!texts(&answer["warmed"]).is_empty(), "{answer}");
    }
    assert_eq!(answers[0], answers[1]);
    let lines = app.logs().lines().count();
    for _ in 0..20 {
        is_degraded(&outcome(&user, QUERY).await, "circuit_open");
    }
    // For another with the same endpoint, key and model it is as dead.
    is_degraded(&outcome(&same, QUERY).await, "circuit_open");
    assert_eq!((endpoint.count(), changes(&app, "open").await), (0, 1));

    // The administrator sees why; the service itself is ready.
    let effective = app.admin().get(&format!("/v1/config/effective?user={}", user.id)).await.ok();
    assert_eq!(effective["matcher"]["status"], "failing", "{effective}");
    assert!(effective["matcher"]["detail"].as_str().is_some_and(|why| why.contains("500")), "{effective}");
    app.admin().get("/readyz").await.ok();
    let more = app.logs().lines().count() - lines;
    assert_eq!(more, 0, "a line for the change of state, none for each search");
}

#[tokio::test]
async fn one_users_fault_is_no_other_users() {
    let app = allowed().await;
    let endpoint = Endpoint::with(|call, _| async move {
        let is_good =
            call.header("authorization") == Some(&*format!("Bearer {KEY}")) && call.body["model"] == "m-1";
        if is_good { call.ranked() } else { json_reply(401, &json!({})) }
    })
    .await;
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let mut config = matcher(&endpoint.url("/rerank"));
    config["matcher"]["api_key"] = json!("a-wrong-key");
    let wrong_key = messenger(&app, config.clone()).await;
    (config["matcher"]["api_key"], config["matcher"]["model"]) = (json!(KEY), json!("m-2"));
    let wrong_model = messenger(&app, config).await;
    for wrong in [&wrong_key, &wrong_model] {
        is_degraded(&outcome(wrong, QUERY).await, "unauthorized");
        is_degraded(&outcome(wrong, QUERY).await, "circuit_open");
        assert_eq!(endpoint.take().len(), 1);
    }
    assert_eq!(outcome(&user, QUERY).await, reranked());

    // The right key is tried as soon as it is there.
    app.admin().patch(&wrong_key.path(&["config"]), &json!({"matcher": {"api_key": KEY}})).await.ok();
    assert_eq!(outcome(&wrong_key, QUERY).await, reranked());
}

#[tokio::test]
async fn what_only_settings_mend_is_asked_once() {
    let app = allowed().await;
    for (at, (status, reason)) in
        [(401, "unauthorized"), (402, "payment_required"), (403, "unauthorized"), (404, "not_found")]
            .into_iter()
            .enumerate()
    {
        let (endpoint, is_well) = failing(status).await;
        let config = matcher(&endpoint.url("/rerank"));
        let user = messenger(&app, config.clone()).await;
        is_degraded(&outcome(&user, QUERY).await, reason);
        for _ in 0..3 {
            is_degraded(&outcome(&user, QUERY).await, "circuit_open");
        }
        assert_eq!(endpoint.take().len(), 1, "{status}");
        assert_eq!(changes(&app, "open").await, at as u64 + 1, "{status}");

        // What was mended at the provider is tried when the settings are written, though they are the same.
        is_well.store(true, Ordering::Relaxed);
        is_degraded(&outcome(&user, QUERY).await, "circuit_open");
        user.put_config(&config).await.ok();
        assert_eq!(outcome(&user, QUERY).await, reranked(), "{status}");
        assert_eq!((endpoint.count(), changes(&app, "closed").await), (1, at as u64 + 1), "{status}");
    }
}

#[tokio::test]
async fn a_write_of_the_same_settings_tries_anew() {
    let app = allowed().await;
    let (endpoint, is_well) = failing(404).await;
    // No key, so nothing at all is stored that was not there before.
    let mut config = matcher(&endpoint.url("/rerank"));
    config["matcher"].as_object_mut().unwrap().remove("api_key");
    config["deny"] = json!(["@secret"]);
    let user = messenger(&app, config.clone()).await;
    is_degraded(&outcome(&user, QUERY).await, "not_found");
    is_degraded(&outcome(&user, QUERY).await, "circuit_open");
    is_well.store(true, Ordering::Relaxed);
    let written = user.put_config(&config).await.ok();
    assert_eq!(written["changes"].to_string().matches("matcher").count(), 0, "{written}");
    assert_eq!(outcome(&user, QUERY).await, reranked());
}

#[tokio::test]
async fn readiness_tells_of_endpoints_that_fail_now() {
    let app = allowed().await;
    let told = async || app.admin().get("/readyz").await.ok()["components"]["rerank_endpoints"].clone();
    assert_eq!(told().await, json!({"status": "ok", "failing": 0}));
    let endpoint = Endpoint::with(|call, _| async move {
        let is_good = call.header("authorization") == Some("Bearer the-right-key");
        if is_good { call.ranked() } else { json_reply(401, &json!({})) }
    })
    .await;
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    is_degraded(&outcome(&user, QUERY).await, "unauthorized");
    assert_eq!(told().await, json!({"status": "failing", "failing": 1}));
    let key = json!({"matcher": {"api_key": "the-right-key"}});
    app.admin().patch(&user.path(&["config"]), &key).await.ok();
    assert_eq!(outcome(&user, QUERY).await, reranked());
    assert_eq!(told().await, json!({"status": "ok", "failing": 0}), "nobody uses the wrong key any more");
}

#[tokio::test]
async fn a_request_that_is_refused_for_itself_leaves_the_endpoint_in_use() {
    let app = allowed().await;
    for status in [400, 422] {
        let (endpoint, is_well) = failing(status).await;
        let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
        for _ in 0..6 {
            is_degraded(&outcome(&user, QUERY).await, "http_error");
        }
        is_well.store(true, Ordering::Relaxed);
        assert_eq!(outcome(&user, QUERY).await, reranked(), "{status}");
        assert_eq!(endpoint.count(), 7, "{status}");
    }
    assert_eq!(changes(&app, "open").await, 0);
}

#[tokio::test]
async fn the_way_back_is_tried_on_nobodys_time() {
    let app = allowed().await;
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    // Refuses once, for a time that the deadline has no room for; then it answers late.
    let endpoint = Endpoint::with(move |call, before| {
        let held = Arc::clone(&held);
        async move {
            if before == 0 {
                let mut answer = json_reply(429, &json!({}));
                answer.headers_mut().insert("retry-after", "2".parse().unwrap());
                return answer;
            }
            drop(held.acquire().await.unwrap());
            call.ranked()
        }
    })
    .await;
    let mut config = matcher(&endpoint.url("/rerank"));
    config["matcher"]["timeout_ms"] = json!(1_900);
    let user = messenger(&app, config).await;
    let asked = Instant::now();
    is_degraded(&outcome(&user, QUERY).await, "rate_limited");
    until("a call in the background", async || {
        is_degraded(&outcome(&user, QUERY).await, "circuit_open");
        endpoint.count() == 2
    })
    .await;
    assert!(asked.elapsed() >= Duration::from_secs(2), "not before the server wants it");
    assert_eq!(changes(&app, "half_open").await, 1);
    // It hangs there, and nobody waits for it or sends another.
    is_degraded(&outcome(&user, "write a letter").await, "circuit_open");
    assert_eq!(endpoint.count(), 2);
    gate.add_permits(64);
    until("an answer", async || outcome(&user, QUERY).await == reranked()).await;
    assert!(endpoint.count() <= 3, "the late answer is kept, or asked for once");
}

#[tokio::test]
async fn a_pause_that_fits_is_waited_for_and_one_that_does_not_is_not() {
    let app = allowed().await;
    for (header, pause, mode) in [
        ("retry-after-ms", "300", "rerank"),
        ("retry-after", "0", "rerank"),
        ("retry-after", "60", "keyword"),
    ] {
        let endpoint = Endpoint::with(move |call, before| async move {
            let mut answer = json_reply(503, &json!({}));
            answer.headers_mut().insert(header, pause.parse().unwrap());
            if before == 0 { answer } else { call.ranked() }
        })
        .await;
        let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
        let started = Instant::now();
        let found = outcome(&user, QUERY).await;
        assert_eq!(found.0, mode, "{header} {pause}: {found:?}");
        assert_eq!(endpoint.count(), if mode == "rerank" { 2 } else { 1 }, "{header} {pause}");
        if pause == "300" {
            assert!(started.elapsed() >= Duration::from_millis(300));
        }
        if mode == "keyword" {
            is_degraded(&outcome(&user, QUERY).await, "circuit_open");
        }
    }
}

#[tokio::test]
async fn a_dead_endpoint_is_told_and_costs_no_more_than_its_deadline() {
    let app = allowed().await;
    let hanging = Endpoint::with(|_, _| std::future::pending()).await;
    let nobody = nobody().await;
    // Reports 85, 86 and 87: an answer in time, in any script, that says what really ranked.
    for (url, reason) in
        [(hanging.url("/rerank"), "timeout"), (format!("http://{nobody}/rerank"), "unreachable")]
    {
        let user = app.user();
        let tools = [
            json!({"name": "weather", "description": "查询城市的天气预报"}),
            json!({"name": "mail", "description": "发送电子邮件"}),
        ];
        user.put_catalog(&tools).await.ok();
        let mut config = matcher(&url);
        config["matcher"]["timeout_ms"] = json!(500);
        user.put_config(&config).await.ok();
        for at in 0..8 {
            let started = Instant::now();
            let answer = user.search(json!({"query": format!("查询北京天气 {at}")})).await.ok();
            assert!(started.elapsed() < Duration::from_secs(5), "{reason}");
            let expected = if at < 5 { reason } else { "circuit_open" };
            let told: Vec<&Value> = ["mode", "degraded", "reason"].iter().map(|key| &answer[*key]).collect();
            assert_eq!(told, [&json!("keyword"), &json!(true), &json!(expected)], "{at}: {answer}");
            assert_eq!(names(&answer)[0], "weather", "{answer}");
        }
        let metrics = app.admin().get("/metrics").await;
        let counted = format!("toolrack_search_total{{mode=\"keyword\",reason=\"{reason}\"}} 5");
        assert!(metrics.text().contains(&counted), "{counted}: {}", metrics.text());
    }
    assert_eq!(hanging.count(), 5);
    assert_eq!(changes(&app, "open").await, 2);
    // One line for each change, not for each search.
    let logs = app.logs();
    let lines = logs.lines().filter(|line| line.contains("is not asked for a while"));
    assert_eq!(lines.count(), 2, "{logs}");
}
