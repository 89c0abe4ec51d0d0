//! What the first assembly of a session warms for the user's text, with an endpoint that ranks well, late or not at all.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::endpoint::{Endpoint, json_reply, nobody};
use super::resilience::until;
use super::{allowed, matcher, messenger, texts};
use crate::app::{TestApp, User};
use crate::model::{BRIDGE, array_names, names_after_bridge, warning_codes};

const TEXT: &str = "send a message";

/// A matcher that is asked for what to preload, with more keys.
fn preloading(url: &str, more: &Value) -> Value {
    let mut config = matcher(url);
    config["preload"] = json!({"enabled": true});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

async fn first(user: &User, session: &str) -> Value {
    user.assemble(json!({"session": session, "query": TEXT})).await.ok()
}

/// Asserts that nothing was preloaded, and why.
#[track_caller]
fn is_bare(answer: &Value, warning: Option<(&str, &str)>) {
    assert_eq!((&answer["warm"], array_names(answer)), (&json!([]), BRIDGE.to_vec()), "{answer}");
    let (code, detail) = warning.unwrap_or_default();
    assert_eq!(warning_codes(answer), if code.is_empty() { vec![] } else { vec![code] }, "{answer}");
    assert!(answer["warnings"].to_string().contains(detail), "{answer}");
}

/// How often preloads ended so, by the metrics.
async fn count(app: &TestApp, outcome: &str, reason: &str) -> u64 {
    let metrics = app.admin().get("/metrics").await;
    let start = format!("toolrack_preload_total{{outcome=\"{outcome}\",reason=\"{reason}\"}} ");
    let line = metrics.text().lines().find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test]
async fn the_first_array_of_a_session_has_what_fits_the_users_text() {
    let (mut app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = messenger(&app, preloading(&endpoint.url("/rerank"), &json!({}))).await;
    let answer = first(&user, "s").await;
    let warm = texts(&answer["warm"]);
    assert!(warm[0] == "fly" && warm.contains(&"send_message"), "the endpoint's order: {answer}");
    assert_eq!((names_after_bridge(&answer), &answer["counts"]["warm"]), (warm.clone(), &json!(warm.len())));
    assert_eq!(
        answer["cache"],
        json!({"stable_prefix_len": 3, "break": false, "reason": "first", "breakpoint": 2})
    );
    assert_eq!(answer["warnings"], json!([]));
    let seen = endpoint.take();
    assert_eq!((seen.len(), &seen[0].body["query"]), (1, &json!(TEXT)));
    assert!(!seen[0].body.to_string().contains("DENIED-CANARY"));

    // Later assemblies rank nothing, whatever the user says, and send the same bytes; also after a hard end.
    let later = user.assemble(json!({"session": "s", "messages": ["send a letter"]})).await.ok();
    assert_eq!((&later["tools"], &later["fingerprint"]), (&answer["tools"], &answer["fingerprint"]));
    assert_eq!(
        later["cache"],
        json!({"stable_prefix_len": 3 + warm.len(), "break": false, "reason": "none", "breakpoint": 2})
    );
    app.kill();
    app.start_again().await;
    let user = app.user_called(&user.id);
    let again = user.assemble(json!({"session": "s", "query": "send a letter"})).await.ok();
    assert_eq!((&again["tools"], endpoint.count()), (&answer["tools"], 0));

    // What begins anew is preloaded anew.
    let session = user.path(&["sessions", "s"]);
    user.client().post(&format!("{session}/reset"), &json!({})).await.ok();
    let reset = user.assemble(json!({"session": "s", "query": "send a letter"})).await.ok();
    assert_eq!((&reset["cache"]["reason"], endpoint.take().len()), (&json!("first"), 1));
    assert!(texts(&reset["warm"]).contains(&"send_letter"), "{reset}");
    user.client().delete(&session).await.expect_status(204);
    assert_eq!((first(&user, "s").await["warm"].clone(), endpoint.take().len()), (answer["warm"].clone(), 1));
    assert_eq!(count(&app, "found", "none").await, 2);
}

#[tokio::test]
async fn the_users_last_text_is_read_in_every_providers_shape() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let user = messenger(&app, preloading(&endpoint.url("/rerank"), &json!({}))).await;
    let long = "pigeon ".repeat(500);
    for (at, (messages, text)) in [
        (json!(["older", "send one"]), "send one"),
        (json!([{"role": "user", "content": "send two"}, {"role": "assistant", "content": "no"}]), "send two"),
        (
            json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "send three"}]},
                {"type": "function_call_output", "call_id": "1", "output": "no"}]),
            "send three",
        ),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "send four"}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "no"}]}]),
            "send four",
        ),
        (
            json!([{"role": "user", "parts": [{"text": "send five"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {}}}]}]),
            "send five",
        ),
        (
            json!([{"role": "user", "content": [{"text": "send six"}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "no"}]}}]}]),
            "send six",
        ),
        (json!([{"role": "user", "content": long}, 7, {"role": "user"}]), long[..2_000].trim()),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = user.assemble(json!({"session": format!("s{at}"), "messages": messages})).await.ok();
        let seen = endpoint.take();
        assert_eq!((seen.len(), seen[0].body["query"].as_str()), (1, Some(text)), "{messages}");
        assert_eq!(answer["warm"][0], "fly", "{messages}: {answer}");
    }
    let metrics = app.admin().get("/metrics").await;
    for canary in ["send four", "pigeon"] {
        assert!(!app.logs().contains(canary) && !metrics.text().contains(canary), "{canary}");
    }
}

#[tokio::test]
async fn the_bounds_of_the_warm_set_hold() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    for (more, expected) in [
        (json!({"preload": {"enabled": true, "top_k": 1}}), vec!["fly"]),
        (json!({"max_warm_tools": 1}), vec!["fly"]),
        (json!({"preload": {"enabled": true, "top_k": 1}, "core": ["fly"]}), vec!["send_message"]),
        // The start of a session is an epoch: nothing waits.
        (json!({"warm_policy": "epoch", "max_warm_tools": 1}), vec!["fly"]),
    ] {
        let user = messenger(&app, preloading(&endpoint.url("/rerank"), &more)).await;
        let answer = first(&user, "s").await;
        assert_eq!(texts(&answer["warm"]), expected, "{more}: {answer}");
        assert_eq!(names_after_bridge(&answer), expected, "{more}");
        let session = app.admin().get(&user.path(&["sessions", "s"])).await.ok();
        assert_eq!(session["warm"][0]["pending"], json!(false), "{more}: {session}");
    }
    // A tool that is unavailable takes no place, and what is no sure match neither.
    let user = messenger(&app, preloading(&endpoint.url("/rerank"), &json!({}))).await;
    let answer = user.assemble(json!({"session": "s", "query": TEXT, "unavailable": ["fly"]})).await.ok();
    assert!(!texts(&answer["warm"]).contains(&"fly"), "{answer}");
    let even = Endpoint::with(|call, _| async move {
        let rows: Vec<Value> =
            (0..call.documents().len()).map(|at| json!({"index": at, "relevance_score": 0.5})).collect();
        json_reply(200, &json!({ "results": rows }))
    });
    let user = messenger(&app, preloading(&even.await.url("/rerank"), &json!({}))).await;
    is_bare(&user.assemble(json!({"session": "s", "query": "hello there"})).await.ok(), None);
    assert_eq!(count(&app, "nothing", "none").await, 1);
}

#[tokio::test]
async fn tools_that_were_found_before_the_first_assembly_stay() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let more = json!({"warm_policy": "epoch", "preload": {"enabled": true, "top_k": 1}});
    let user = messenger(&app, preloading(&endpoint.url("/rerank"), &more)).await;
    let found = user.search(json!({"session": "s", "query": "send_letter", "limit": 1})).await.ok();
    assert_eq!(found["results"][0]["matches"][0]["state"], "pending", "{found}");
    assert_eq!(texts(&first(&user, "s").await["warm"]), ["send_letter", "fly"]);
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_a_warning() {
    let app = allowed().await;
    let hanging = Endpoint::with(|_, _| std::future::pending()).await;
    let nobody = format!("http://{}/rerank", nobody().await);
    for (url, timeout_ms, reason) in
        [(hanging.url("/rerank"), 200, "timeout"), (nobody, 10_000, "unreachable")]
    {
        let mut config = preloading(&url, &json!({}));
        config["matcher"]["timeout_ms"] = json!(timeout_ms);
        let user = messenger(&app, config).await;
        let answer = first(&user, "s").await;
        is_bare(&answer, Some(("preload_failed", &format!("\"{reason}: "))));
        assert_eq!(answer["cache"]["reason"], "first");
        // It is the start of the session all the same; a search still falls back to words.
        is_bare(&first(&user, "s").await, None);
        assert_eq!(count(&app, "failed", reason).await, 1);
        let found = user.search(json!({"session": "s", "query": "send a letter"})).await.ok();
        assert!(!texts(&found["warmed"]).is_empty(), "{found}");
    }
    assert_eq!(hanging.count(), 2, "one assembly and one search");
}

#[tokio::test]
async fn an_endpoint_that_is_left_alone_is_not_asked() {
    let app = allowed().await;
    let endpoint = Endpoint::with(|_, _| async { json_reply(401, &json!({})) }).await;
    let user = messenger(&app, preloading(&endpoint.url("/rerank"), &json!({}))).await;
    is_bare(&first(&user, "s0").await, Some(("preload_failed", "unauthorized: ")));
    for session in ["s1", "s2"] {
        is_bare(&first(&user, session).await, Some(("preload_failed", "circuit_open: ")));
    }
    assert_eq!((endpoint.count(), count(&app, "failed", "circuit_open").await), (1, 2));
}

#[tokio::test]
async fn settings_that_leave_a_preload_nothing_to_do_are_told() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let enabled = json!({"min_catalog_size": 0, "preload": {"enabled": true}});
    for (config, why) in [
        (enabled.clone(), "`matcher`"),
        (preloading(&endpoint.url("/rerank"), &json!({"warm_policy": "off"})), "`warm_policy`"),
        (preloading(&endpoint.url("/rerank"), &json!({"max_warm_tools": 0})), "`max_warm_tools`"),
    ] {
        let user = messenger(&app, config.clone()).await;
        let written = user.put_config(&config).await.ok();
        assert_eq!(warning_codes(&written), ["preload_inactive"], "{written}");
        assert_eq!(written["warnings"][0]["pointer"], "/preload");
        let effective = app.admin().get(&format!("/v1/config/effective?user={}", user.id)).await.ok();
        assert_eq!(warning_codes(&effective), ["preload_inactive"], "{effective}");
        is_bare(&first(&user, "s").await, Some(("preload_inactive", why)));
        is_bare(&first(&user, "s").await, None);
    }
    assert_eq!(endpoint.count(), 0);

    // The layers are taken together: the project's preload works with the user's matcher.
    let user = messenger(&app, matcher(&endpoint.url("/rerank"))).await;
    let written = app.admin().put(&format!("/v1/projects/{}/config", user.id), &enabled).await.ok();
    assert_eq!(warning_codes(&written), ["preload_inactive"], "{written}");
    let body = json!({"session": "s", "project": user.id, "query": TEXT});
    let answer = user.assemble(body).await.ok();
    assert_eq!((&answer["warm"][0], &answer["warnings"]), (&json!("fly"), &json!([])));
}

#[tokio::test]
async fn nothing_is_preloaded_where_nothing_can_be() {
    let (app, endpoint) = (allowed().await, Endpoint::good().await);
    let url = endpoint.url("/rerank");
    let user = messenger(&app, preloading(&url, &json!({}))).await;
    for body in [
        json!({"query": TEXT}),
        json!({"session": "s1"}),
        json!({"session": "s2", "query": " \n"}),
        json!({"session": "s3", "messages": []}),
        json!({"session": "s4", "messages": [{"role": "assistant", "content": TEXT}, 7, null, {"role": []}]}),
    ] {
        is_bare(&user.assemble(body).await.ok(), None);
    }
    // All tools are in the array anyway.
    let user = messenger(&app, preloading(&url, &json!({"min_catalog_size": 12}))).await;
    let answer = first(&user, "s").await;
    assert_eq!((&answer["tier"], &answer["warm"], &answer["warnings"]), (&json!(0), &json!([]), &json!([])));
    // Not asked for.
    let user = messenger(&app, matcher(&url)).await;
    is_bare(&first(&user, "s").await, None);
    assert_eq!(endpoint.count(), 0);
}

#[tokio::test]
async fn of_two_assemblies_at_once_one_is_the_first() {
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
    let more = json!({"preload": {"enabled": true, "top_k": 2}});
    let user = messenger(&app, preloading(&endpoint.url("/rerank"), &more)).await;
    let assemble = async |text: &str| user.assemble(json!({"session": "s", "query": text})).await.ok();
    let release = async {
        until("two calls", async || endpoint.count() == 2).await;
        gate.add_permits(2);
    };
    let (one, other, ()) = tokio::join!(assemble(TEXT), assemble("send a letter"), release);
    let mut reasons = [&one["cache"]["reason"], &other["cache"]["reason"]];
    reasons.sort_by_key(ToString::to_string);
    assert_eq!(reasons, [&json!("first"), &json!("none")]);
    assert_eq!((&one["tools"], &one["warm"]), (&other["tools"], &other["warm"]));
    assert_eq!(one["counts"]["warm"], 2);
}
