//! What several processes of one database pay an endpoint for, and what they remember of it together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use sqlx::Connection as _;
use tokio::sync::Semaphore;

use super::endpoint::{Endpoint, json_reply};
use super::filling::with_tools;
use super::resilience::{QUERY, changes, failing, is_degraded, outcome, reranked, until};
use super::vectors::{self, embedded, many, sent};
use super::{matcher, messenger};
use crate::app::User;
use crate::model::warning_codes;
use crate::postgres;

#[tokio::test]
async fn a_ranking_that_one_process_paid_for_is_there_for_the_others() {
    let Some(url) = postgres::database().await else { return };
    let on = || postgres::on(&url).set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start();
    let (first, second) = (on().await, on().await);
    let endpoint = Endpoint::good().await;
    let user = messenger(&first, matcher(&endpoint.url("/rerank"))).await;
    let there = second.user_called(&user.id);
    let ask = json!({"query": "send a message", "explain": true});
    let here = user.search(ask.clone()).await.ok();
    assert_eq!((here["mode"].as_str(), endpoint.count()), (Some("rerank"), 1));
    let mut database = sqlx::PgConnection::connect(&url).await.unwrap();
    until("a ranking in the database", async || {
        let (count,): (i64,) =
            sqlx::query_as("SELECT COUNT(*) FROM rankings").fetch_one(&mut database).await.unwrap();
        count == 1
    })
    .await;
    let other = there.search(ask.clone()).await.ok();
    assert_eq!((&other["results"], &other["mode"]), (&here["results"], &here["mode"]));
    assert_eq!(endpoint.count(), 1, "it was paid for");
    // Another user's is another's, and other texts are another call.
    let stranger = messenger(&second, matcher(&endpoint.url("/rerank"))).await;
    stranger.search(ask).await.ok();
    assert_eq!(endpoint.count(), 2);
    there.search(json!({"query": "carry a message"})).await.ok();
    assert_eq!(endpoint.count(), 3);
    // Nothing of what was asked can be read in the database.
    let rows: Vec<(String, String, String)> =
        sqlx::query_as("SELECT owner, call, body FROM rankings").fetch_all(&mut database).await.unwrap();
    assert!(!format!("{rows:?}").contains("message"), "{rows:?}");
}

#[tokio::test]
async fn an_endpoint_that_one_process_is_to_try_again_is_tried_again_by_all() {
    let Some(url) = postgres::database().await else { return };
    let on = || postgres::on(&url).set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start();
    let (first, second) = (on().await, on().await);
    let (endpoint, is_well) = failing(404).await;
    let mut config = matcher(&endpoint.url("/rerank"));
    config["matcher"].as_object_mut().unwrap().remove("api_key");
    config["deny"] = json!(["@secret"]);
    let user = messenger(&first, config.clone()).await;
    let there = second.user_called(&user.id);
    let broken = async || {
        is_well.store(false, Ordering::Relaxed);
        outcome(&there, "carry a letter").await;
        is_degraded(&outcome(&there, "carry a letter").await, "circuit_open");
        is_well.store(true, Ordering::Relaxed);
    };
    broken().await;
    // The same settings, written where nothing failed.
    let written = user.put_config(&config).await.ok();
    assert_eq!(written["changes"].to_string().matches("matcher").count(), 0, "{written}");
    until("a new attempt", async || outcome(&there, QUERY).await == reranked()).await;
    let probes = async || changes(&second, "half_open").await;
    assert_eq!((changes(&second, "closed").await, probes().await), (1, 0), "it was told, it did not wait");

    // A test that succeeds: failures are forgotten, and so are answers of before.
    broken().await;
    let test = json!({"user": user.id, "matcher": config["matcher"]});
    assert_eq!(first.admin().post("/v1/setup/matcher-test", &test).await.ok()["ok"], true);
    endpoint.take();
    until("an answer that was paid for again", async || {
        outcome(&there, QUERY).await == reranked() && endpoint.count() == 1
    })
    .await;
    assert_eq!((changes(&second, "closed").await, probes().await), (2, 0));
}

#[tokio::test]
async fn an_answer_that_was_under_way_when_they_were_forgotten_is_never_found() {
    let Some(url) = postgres::database().await else { return };
    let on = || postgres::on(&url).set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start();
    let (first, second) = (on().await, on().await);
    let (is_held, gate) = (Arc::new(AtomicBool::new(true)), Arc::new(Semaphore::new(0)));
    let (holds, held) = (Arc::clone(&is_held), Arc::clone(&gate));
    let endpoint = Endpoint::with(move |call, _| {
        let (held, holds) = (Arc::clone(&held), holds.load(Ordering::Relaxed));
        async move {
            if holds {
                held.acquire().await.unwrap().forget();
            }
            call.ranked()
        }
    })
    .await;
    let config = matcher(&endpoint.url("/rerank"));
    let user = messenger(&first, config.clone()).await;
    let there = second.user_called(&user.id);
    let forget = async {
        until("a call", async || endpoint.count() == 1).await;
        is_held.store(false, Ordering::Relaxed);
        let test = json!({"user": user.id, "matcher": config["matcher"]});
        assert_eq!(second.admin().post("/v1/setup/matcher-test", &test).await.ok()["ok"], true);
        gate.add_permits(8);
    };
    let (answer, ()) = tokio::join!(outcome(&user, QUERY), forget);
    assert_eq!(answer, reranked());
    let mut database = sqlx::PgConnection::connect(&url).await.unwrap();
    until("the late ranking in the database", async || {
        let (count,): (i64,) =
            sqlx::query_as("SELECT COUNT(*) FROM rankings").fetch_one(&mut database).await.unwrap();
        count == 1
    })
    .await;
    endpoint.take();
    assert_eq!(outcome(&there, QUERY).await, reranked());
    assert_eq!(endpoint.count(), 1, "it is asked anew");
}

#[tokio::test]
async fn vectors_that_processes_want_at_once_are_paid_for_once() {
    let Some(url) = postgres::database().await else { return };
    let on = || postgres::on(&url).set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start();
    let (first, second) = (on().await, on().await);
    let endpoint = Endpoint::with(|call, _| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        embedded(&call)
    })
    .await;
    let user = with_tools(&first, &many(300), &vectors::matcher(&endpoint)).await;
    let users = [&user, &second.user_called(&user.id)];
    let complete = async |user: &User| {
        let ask = json!({"query": "where is the pigeon"});
        until("all vectors", async || warning_codes(&user.search(ask.clone()).await.ok()).is_empty()).await;
    };
    futures_util::future::join_all(users.map(complete)).await;
    let mut of_tools = sent(&endpoint.take());
    of_tools.retain(|text| text.starts_with("g "));
    let texts = of_tools.len();
    of_tools.sort_unstable();
    of_tools.dedup();
    assert_eq!((texts, of_tools.len()), (301, 301), "each once, whichever process wanted it first");
    claims_are_given_up(&url).await;
}

async fn claims_are_given_up(url: &str) {
    let mut database = sqlx::PgConnection::connect(url).await.unwrap();
    until("claims that are given up", async || {
        let (left,): (i64,) =
            sqlx::query_as("SELECT COUNT(*) FROM vector_claims").fetch_one(&mut database).await.unwrap();
        left == 0
    })
    .await;
}

#[tokio::test]
async fn nobody_waits_for_a_text_that_was_refused_or_has_failed() {
    let Some(url) = postgres::database().await else { return };
    let on = || postgres::on(&url).set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start();
    let (first, second) = (on().await, on().await);
    let is_well = Arc::new(AtomicBool::new(true));
    let well = Arc::clone(&is_well);
    let endpoint = Endpoint::with(move |call, _| {
        let well = well.load(Ordering::Relaxed);
        async move {
            let is_refused = call.documents().iter().any(|text| text.contains("number 7."));
            match (well, is_refused) {
                (false, _) => json_reply(401, &json!({"error": "no"})),
                (true, true) => json_reply(422, &json!({"error": "no"})),
                (true, false) => embedded(&call),
            }
        }
    })
    .await;
    let user = with_tools(&first, &many(40), &vectors::matcher(&endpoint)).await;
    let ask = json!({"query": "where is the pigeon"});
    // Each of them finds out for itself, without waiting until the other one's claim ends.
    for user in [&user, &second.user_called(&user.id)] {
        until("all but one", async || {
            let answer = user.search(ask.clone()).await.ok();
            answer["warnings"].to_string().contains("1 of 41")
                && answer["warnings"].to_string().contains("refuses 1")
        })
        .await;
    }
    claims_are_given_up(&url).await;
    is_well.store(false, Ordering::Relaxed);
    let failing = with_tools(&first, &many(60), &vectors::matcher(&endpoint)).await;
    failing.search(ask.clone()).await.ok();
    claims_are_given_up(&url).await;
}
