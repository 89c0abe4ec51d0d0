//! What several processes of one database pay an endpoint for.

use serde_json::json;
use sqlx::Connection as _;

use super::endpoint::Endpoint;
use super::resilience::until;
use super::{matcher, messenger};
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
