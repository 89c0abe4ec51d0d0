//! Two processes that change one session at the same moment: the session is what it would be had one come after the other.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::Connection as _;

use crate::app::{TestApp, User};
use crate::postgres::{database, on};
use crate::samples::paints;

/// What a process does to the session. Each changes the session of [`begin`].
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// There is no room: another one leaves.
    Find,
    Pin,
    Unpin,
    Release,
    /// The first assembly, which is an epoch.
    Assemble,
    Reset,
    Delete,
}

const DEEDS: [Deed; 7] =
    [Deed::Find, Deed::Pin, Deed::Unpin, Deed::Release, Deed::Assemble, Deed::Reset, Deed::Delete];

async fn begin(user: &User, session: &str) {
    for tool in ["amber", "blue", "crimson"] {
        user.search(json!({"session": session, "query": tool, "limit": 1})).await.ok();
    }
    change(user, session, "pin", "amber").await;
}

async fn change(user: &User, session: &str, what: &str, tool: &str) {
    let path = user.path(&["sessions", session, what]);
    user.client().post(&path, &json!({"names": [tool]})).await.ok();
}

async fn act(user: &User, session: &str, deed: Deed) {
    match deed {
        Deed::Find => {
            user.search(json!({"session": session, "query": "denim", "limit": 1})).await.ok();
        }
        Deed::Pin => change(user, session, "pin", "blue").await,
        Deed::Unpin => change(user, session, "unpin", "amber").await,
        Deed::Release => change(user, session, "release", "crimson").await,
        Deed::Assemble => {
            user.assemble(json!({"session": session, "epoch": true, "format": "mcp"})).await.ok();
        }
        Deed::Reset => {
            user.client().post(&user.path(&["sessions", session, "reset"]), &json!({})).await.ok();
        }
        Deed::Delete => user.client().delete(&user.path(&["sessions", session])).await.expect_status(204),
    }
}

/// The warm set with its marks, and what was assembled.
async fn shown(user: &User, session: &str) -> Value {
    let document = user.client().get(&user.path(&["sessions", session])).await.ok();
    let tools = document["warm"].as_array().unwrap().iter();
    let warm: Vec<Value> = tools.map(|tool| json!([tool["name"], tool["pinned"], tool["pending"]])).collect();
    json!({"warm": warm, "format": document["format"]})
}

/// Runs deeds on two processes such that both have read the session before either writes it.
async fn at_once(url: &str, users: [&User; 2], session: &str, deeds: [Deed; 2]) {
    let mut holder = sqlx::PgConnection::connect(url).await.unwrap();
    let mut looker = sqlx::PgConnection::connect(url).await.unwrap();
    let mut held = holder.begin().await.unwrap();
    let lock = "SELECT 1 FROM sessions WHERE session_id = $1 FOR UPDATE";
    sqlx::query(lock).bind(session).fetch_one(&mut *held).await.unwrap();
    let both_wait = async {
        let waiting = "SELECT COUNT(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        loop {
            let (count,): (i64,) = sqlx::query_as(waiting).fetch_one(&mut looker).await.unwrap();
            if count == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        held.rollback().await.unwrap();
    };
    let all = async {
        tokio::join!(act(users[0], session, deeds[0]), act(users[1], session, deeds[1]), both_wait);
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("both wait for the row");
}

async fn check(url: &str, apps: &[TestApp; 2], policy: &str) {
    let id = crate::app::unique("painter");
    let [first, second] = [apps[0].user_called(&id), apps[1].user_called(&id)];
    first.put_catalog(&paints()).await.ok();
    first.put_config(&json!({"max_warm_tools": 3, "warm_policy": policy})).await.ok();
    // So that both processes know the user.
    second.search(json!({"query": "amber"})).await.ok();
    for (at, one) in DEEDS.into_iter().enumerate() {
        for other in DEEDS.into_iter().skip(at) {
            let session = |way: &str| format!("{way}-{one:?}-{other:?}");
            let mut expected = Vec::new();
            for (way, order) in [("forth", [one, other]), ("back", [other, one])] {
                begin(&first, &session(way)).await;
                for deed in order {
                    act(&first, &session(way), deed).await;
                }
                expected.push(shown(&first, &session(way)).await);
            }
            let raced = session("raced");
            begin(&first, &raced).await;
            at_once(url, [&first, &second], &raced, [one, other]).await;
            for user in [&first, &second] {
                let is = shown(user, &raced).await;
                assert!(expected.contains(&is), "{policy}: {one:?} and {other:?}: {is} not of {expected:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_processes_do_at_once_is_done_one_after_the_other() {
    let Some(url) = database().await else { return };
    let apps = [on(&url).start().await, on(&url).start().await];
    for policy in ["immediate", "epoch"] {
        check(&url, &apps, policy).await;
    }
}

/// Ages and counters are written by themselves long after the test.
const NO_FLUSH: (&str, u32) = ("TOOLRACK_SESSION_FLUSH_MS", 60_000);

#[tokio::test]
async fn a_session_that_others_take_for_idle_soon_is_written_when_it_is_used() {
    let Some(url) = database().await else { return };
    let mut app = on(&url).set(NO_FLUSH.0, NO_FLUSH.1).start().await;
    let user = app.user();
    user.put_catalog(&paints()).await.ok();
    begin(&user, "s").await;
    user.assemble(json!({"session": "s"})).await.ok();
    app.stop().await;
    let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
    let days = |count: i64| count * 24 * 3_600 * 1_000;
    for (idle, is_due) in [(days(1), false), (days(5), true)] {
        let back = "UPDATE sessions SET last_seen = last_seen - $1";
        sqlx::query(back).bind(idle).execute(&mut connection).await.unwrap();
        let mut seen = async || {
            let row: (i64,) =
                sqlx::query_as("SELECT last_seen FROM sessions").fetch_one(&mut connection).await.unwrap();
            row.0
        };
        app.start_again().await;
        let before = seen().await;
        let user = app.user_called(user.path(&[]).rsplit('/').next().unwrap());
        user.assemble(json!({"session": "s"})).await.ok();
        assert_eq!(seen().await > before, is_due, "{idle}");
        app.stop().await;
    }
}

#[tokio::test]
async fn what_another_process_counted_of_an_earlier_session_is_not_of_this_one() {
    let Some(url) = database().await else { return };
    let start = async || on(&url).set(NO_FLUSH.0, NO_FLUSH.1).start().await;
    let apps = [start().await, start().await];
    let id = crate::app::unique("painter");
    let [first, second] = [apps[0].user_called(&id), apps[1].user_called(&id)];
    first.put_catalog(&paints()).await.ok();
    for _ in 0..8 {
        first.assemble(json!({"session": "s"})).await.ok();
    }
    let path = first.path(&["sessions", "s"]);
    second.client().delete(&path).await.expect_status(204);
    second.assemble(json!({"session": "s"})).await.ok();
    first.assemble(json!({"session": "s"})).await.ok();
    assert_eq!(first.client().get(&path).await.ok()["ledger"]["assemblies"], json!(1), "its own");
    assert_eq!(second.client().get(&path).await.ok()["ledger"]["assemblies"], json!(1), "its own");
}
