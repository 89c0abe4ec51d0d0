//! Hot tools: proposed, or joined to the core of sessions that begin; an array never changes in between.

use serde_json::{Value, json};

use super::overview;
use crate::app::{TestApp, User};
use crate::model::{array_names, names_after_bridge};
use crate::samples::painter;

const AUTO: &str = r#"{"hot_tools": {"enabled": true, "auto": true, "top_k": 2}}"#;

fn auto() -> Value {
    serde_json::from_str(AUTO).unwrap()
}

/// Calls tools so often, and has the counts stored.
async fn call(app: &TestApp, user: &User, calls: &[(&str, usize)]) {
    for (name, times) in calls {
        for _ in 0..*times {
            user.call(json!({"name": name, "arguments": {}})).await.ok();
        }
    }
    overview(app.admin(), "user", &user.id).await;
}

async fn assemble(user: &User, session: &str, more: Value) -> Value {
    let mut body = more;
    body["session"] = json!(session);
    user.assemble(body).await.ok()
}

/// The core of an array.
fn core(answer: &Value) -> Vec<&str> {
    let names = array_names(answer);
    let end = names.iter().position(|name| *name == "tool_search").unwrap_or(names.len());
    names[..end].to_vec()
}

#[tokio::test]
async fn the_most_called_join_the_core_of_new_sessions_and_no_array_changes_in_between() {
    let mut app = TestApp::start().await;
    let id = painter(&app, auto()).await.id;
    let user = app.user_called(&id);
    let before = assemble(&user, "old", json!({})).await;
    assert!(core(&before).is_empty());
    call(&app, &user, &[("teal", 5), ("navy", 4), ("gold", 3), ("red", 2)]).await;

    let old = assemble(&user, "old", json!({"if_fingerprint": before["fingerprint"]})).await;
    assert_eq!(
        (&old["changed"], &old["cache"]["reason"]),
        (&json!(false), &json!("none")),
        "a running session"
    );
    let new = assemble(&user, "new", json!({})).await;
    assert_eq!(core(&new), ["navy", "teal"], "by group and name, as all core tools");
    assert_eq!((&new["counts"]["core"], &new["counts"]["deferred"]), (&json!(2), &json!(18)));
    assert!(!new["listing"]["text"].as_str().unwrap().contains("navy"), "{}", new["listing"]);
    // Without a session nothing is there that could keep a list.
    assert!(core(&user.assemble(json!({})).await.ok()).is_empty());

    // Others are called more from now on; the session keeps its own, over a restart too.
    call(&app, &user, &[("gold", 9), ("lilac", 9)]).await;
    app.restart().await;
    let user = app.user_called(&id);
    let kept = assemble(&user, "new", json!({"if_fingerprint": new["fingerprint"]})).await;
    assert_eq!((&kept["changed"], &kept["cache"]["reason"]), (&json!(false), &json!("none")));
    let shown = user.client().get(&user.path(&["sessions", "new"])).await.ok();
    assert_eq!(shown["hot"], json!(["navy", "teal"]));
    let newer = assemble(&user, "newer", json!({})).await;
    assert_eq!(core(&newer), ["gold", "lilac"]);
    // What a session finds and calls knows its core.
    let found = user.search(json!({"session": "new", "query": "navy", "limit": 1})).await.ok();
    assert_eq!((&found["results"][0]["matches"][0]["state"], &found["warmed"]), (&json!("core"), &json!([])));
    let found = user.search(json!({"session": "newer", "query": "navy", "limit": 1})).await.ok();
    assert_eq!(found["warmed"], json!(["navy"]));
    let grown = assemble(&user, "newer", json!({})).await;
    assert_eq!((core(&grown), names_after_bridge(&grown)), (vec!["gold", "lilac"], vec!["navy"]));
    assert_eq!(grown["cache"]["break"], json!(false));

    // An epoch is a start, and so is a reset.
    let epoch = assemble(&user, "new", json!({"epoch": true})).await;
    assert_eq!((core(&epoch), &epoch["cache"]["reason"]), (vec!["gold", "lilac"], &json!("epoch")));
    user.client().post(&user.path(&["sessions", "old", "reset"]), &json!({})).await.ok();
    assert_eq!(core(&assemble(&user, "old", json!({})).await), ["gold", "lilac"]);
    // Taken back, they are gone at once: that is a change of the config.
    user.put_config(&json!({"hot_tools": {"enabled": true}})).await.ok();
    let cold = assemble(&user, "new", json!({})).await;
    assert_eq!((core(&cold), &cold["cache"]["reason"]), (vec![], &json!("config")));
}

#[tokio::test]
async fn hot_tools_are_of_the_grant_and_within_their_bounds() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    call(&app, &user, &[("teal", 5), ("navy", 4), ("gold", 3), ("red", 2)]).await;
    let shown = overview(app.admin(), "user", &user.id).await;
    assert_eq!((&shown["hot_tools"]["enabled"], &shown["hot_tools"]["tools"]), (&json!(false), &json!([])));

    user.put_config(&json!({"hot_tools": {"enabled": true}})).await.ok();
    let shown = overview(app.admin(), "user", &user.id).await;
    let hot: Vec<(&str, u64)> = shown["hot_tools"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool["calls"].as_u64().unwrap()))
        .collect();
    assert_eq!(hot, [("teal", 5), ("navy", 4), ("gold", 3)], "two calls are no habit");
    assert!(core(&assemble(&user, "proposed", json!({})).await).is_empty(), "proposed, not joined");

    user.put_config(&auto()).await.ok();
    assert_eq!(core(&assemble(&user, "denied", json!({"deny": ["teal"]})).await), ["gold", "navy"]);
    assert_eq!(core(&assemble(&user, "away", json!({"unavailable": ["navy"]})).await), ["gold", "teal"]);
    let mut config = auto();
    config["core"] = json!(["teal"]);
    user.put_config(&config).await.ok();
    assert_eq!(core(&assemble(&user, "core", json!({})).await), ["gold", "navy", "teal"]);
    // A grant that is sent whole needs no hot tools.
    let whole = assemble(&user, "whole", json!({"allow": ["teal", "navy", "red"]})).await;
    assert_eq!((whole["tier"].as_u64(), array_names(&whole).len()), (Some(0), 3));
}

#[tokio::test]
async fn sessions_that_begin_at_the_same_time_agree() {
    let app = TestApp::start().await;
    let user = painter(&app, auto()).await;
    call(&app, &user, &[("teal", 5), ("navy", 4)]).await;
    let first = async |at: usize| {
        let session = format!("s{}", at % 4);
        (session.clone(), assemble(&user, &session, json!({})).await)
    };
    let answers = futures_util::future::join_all((0..24).map(first)).await;
    for (session, answer) in &answers {
        assert_eq!(core(answer), ["navy", "teal"], "{session}");
        assert!(answer["cache"]["break"] == false, "{session}: {}", answer["cache"]);
    }
}

#[tokio::test]
async fn nothing_is_learned_across_users() {
    let app = TestApp::start().await;
    let (one, other) = (painter(&app, auto()).await, painter(&app, auto()).await);
    call(&app, &one, &[("teal", 9), ("navy", 8)]).await;
    assert_eq!(core(&assemble(&one, "s", json!({})).await), ["navy", "teal"]);
    assert!(core(&assemble(&other, "s", json!({})).await).is_empty());
    // Nor by way of a project that both share: these tools are the users' own.
    let project = json!({"project": crate::app::unique("project")});
    assert_eq!(core(&assemble(&one, "p", project.clone()).await), ["navy", "teal"]);
    assert!(core(&assemble(&other, "p", project).await).is_empty());
}
