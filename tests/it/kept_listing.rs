//! The listing that a session keeps while its catalog changes: what stays, what is told, and when it begins anew.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolrack::store::{SqliteStore, Store as _};

use crate::app::{TestApp, User};
use crate::inside::Inside;
use crate::model::{self, array_names, names_after_bridge};
use crate::samples::{painter, paints, shown, warm_each};

fn paint(name: &str, description: &str) -> Value {
    json!({"group": "paints", "name": name, "description": description})
}

/// Adds `umber`, removes `jade`, changes `gold`.
async fn edit(user: &User) {
    let patch = json!({
        "remove": ["jade"],
        "upsert": [paint("umber", "Paints umber."), paint("gold", "Gilds.")]
    });
    user.client().patch(&user.path(&["catalog"]), &patch).await.ok();
}

fn edits() -> Value {
    json!({
        "added": ["umber"], "removed": ["jade"], "changed": ["gold"], "more": 0,
        "text": "Since the tools were listed: added umber; removed jade; changed gold."
    })
}

/// That what a provider would be sent is the same, and nothing is said to have changed.
#[track_caller]
fn assert_kept(before: &Value, after: &Value) {
    for key in ["tools", "fingerprint", "tier", "name_map"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    for key in ["text", "placement", "tokens", "form"] {
        assert_eq!(after["listing"][key], before["listing"][key], "{key}");
    }
    assert_eq!((&after["cache"]["reason"], &after["cache"]["break"]), (&json!("none"), &json!(false)));
    assert_eq!(after["cache"]["stable_prefix_len"], json!(array_names(before).len()));
}

fn listed(answer: &Value) -> Vec<&str> {
    model::Listing::read(answer["listing"]["text"].as_str().unwrap()).names
}

#[tokio::test]
async fn an_edit_of_deferred_tools_costs_a_running_session_nothing() {
    let app = TestApp::start().await;
    for placement in ["separate", "bridge"] {
        let user = painter(&app, json!({"core": ["teal"], "listing_placement": placement})).await;
        warm_each(&user, "s", &["amber"]).await;
        let ask = |more: Value| shown(&user, "s", more);
        let before = ask(json!({"format": "anthropic"})).await;
        assert!(before["listing"].get("changes").is_none() && before.get("listing_changes").is_none());
        edit(&user).await;
        let after = ask(json!({"format": "anthropic"})).await;
        assert_kept(&before, &after);
        assert_eq!((&after["listing"]["changes"], &after["listing_changes"]), (&edits(), &edits()));
        let short = ask(json!({"format": "anthropic", "if_fingerprint": before["fingerprint"]})).await;
        assert_eq!((&short["changed"], &short["listing_changes"]), (&json!(false), &edits()));
        assert!(short.get("listing").is_none(), "what is left out is left out whole");

        // The catalog is the new one for all that is not shown.
        assert_eq!(after["counts"]["deferred"], 19);
        let called =
            user.call(json!({"session": "s", "calls": [{"name": "jade"}, {"name": "umber"}]})).await.ok();
        assert_eq!(called["results"][0]["error"]["code"], "unknown_tool");
        assert_eq!(called["results"][1]["ok"], true);
        let other = shown(&user, "other", json!({"format": "anthropic"})).await;
        assert!(
            other.get("listing_changes").is_none() && other["listing"]["text"] != before["listing"]["text"]
        );
        let stateless = user.assemble(json!({"format": "anthropic"})).await.ok();
        assert_eq!(stateless["listing"]["text"], other["listing"]["text"]);

        // The found tool comes behind what stays. Then the catalog is put back, and there is nothing to tell.
        let grown = ask(json!({"format": "anthropic"})).await;
        assert_eq!((&grown["cache"]["reason"], &grown["cache"]["break"]), (&json!("warm"), &json!(false)));
        assert_eq!(names_after_bridge(&grown), ["amber", "umber"]);
        assert_eq!(grown["listing"]["text"], before["listing"]["text"]);
        user.put_catalog(&paints()).await.ok();
        let back = ask(json!({"format": "anthropic"})).await;
        assert_eq!(
            (&back["fingerprint"], &back["cache"]["reason"]),
            (&before["fingerprint"], &json!("catalog"))
        );
        assert!(back.get("listing_changes").is_none());
    }
}

#[tokio::test]
async fn a_new_start_takes_the_listing_of_the_moment() {
    let app = TestApp::start().await;
    let config = json!({"core": ["teal"], "listing_placement": "bridge"});
    let starts = [
        (json!({"epoch": true}), "epoch"),
        (json!({"deny": ["lilac"]}), "grant"),
        (json!({"unavailable": ["lilac"]}), "grant"),
        (json!({"context_window": 127_000}), "grant"),
        (json!({"format": "anthropic"}), "format"),
        (json!({"config": {"core": ["teal"], "listing_placement": "bridge", "max_warm_tools": 7}}), "config"),
    ];
    for (mut start, reason) in starts {
        let user = painter(&app, config.clone()).await;
        shown(&user, "s", json!({})).await;
        edit(&user).await;
        let kept = shown(&user, "s", json!({})).await;
        assert_eq!((&kept["listing_changes"], &kept["cache"]["reason"]), (&edits(), &json!("none")));
        if let Some(config) = start.as_object_mut().unwrap().remove("config") {
            user.put_config(&config).await.ok();
        }
        let anew = shown(&user, "s", start.clone()).await;
        assert!(anew.get("listing_changes").is_none(), "{start}");
        assert!(listed(&anew).contains(&"umber") && !listed(&anew).contains(&"jade"), "{start}");
        // The bridge holds the listing, so the array breaks behind the core tool.
        let cache = &anew["cache"];
        assert_eq!((&cache["reason"], &cache["break"]), (&json!(reason), &json!(true)), "{start}");
        let stable = if reason == "format" { 0 } else { 1 };
        assert_eq!(cache["stable_prefix_len"], json!(stable), "{start}");
        // From here on the new one is kept.
        start.as_object_mut().unwrap().remove("epoch");
        user.put_catalog(&paints()).await.ok();
        assert_kept(&anew, &shown(&user, "s", start).await);
    }
    // Beside the array the listing changes without a break of it; the reason is told all the same.
    let user = painter(&app, json!({})).await;
    shown(&user, "s", json!({})).await;
    edit(&user).await;
    let anew = shown(&user, "s", json!({"epoch": true})).await;
    assert!(listed(&anew).contains(&"umber"));
    let expected = json!({"stable_prefix_len": 3, "break": false, "reason": "epoch", "breakpoint": 2});
    assert_eq!(anew["cache"], expected);
    let reset = user.path(&["sessions", "s", "reset"]);
    user.put_catalog(&paints()).await.ok();
    user.client().post(&reset, &json!({})).await.ok();
    let first = shown(&user, "s", json!({})).await;
    assert_eq!((&first["cache"]["reason"], first.get("listing_changes")), (&json!("first"), None));
}

#[tokio::test]
async fn tools_that_stand_in_the_array_change_it_and_the_listing_stays() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"core": ["teal"]})).await;
    warm_each(&user, "s", &["amber", "blue"]).await;
    let before = shown(&user, "s", json!({})).await;
    let patch = async |body: Value| {
        user.client().patch(&user.path(&["catalog"]), &body).await.ok();
        shown(&user, "s", json!({})).await
    };
    let warm = patch(json!({"upsert": [paint("amber", "Paints all amber.")]})).await;
    let expected = json!({"stable_prefix_len": 4, "break": true, "reason": "catalog", "breakpoint": 3});
    assert_eq!(warm["cache"], expected);
    assert_eq!(warm["listing_changes"]["changed"], json!(["amber"]), "it stands in the listing as well");
    let core = patch(json!({"upsert": [paint("teal", "Paints all teal.")]})).await;
    let expected = json!({"stable_prefix_len": 0, "break": true, "reason": "catalog", "breakpoint": 3});
    assert_eq!(core["cache"], expected);
    let gone = patch(json!({"remove": ["blue"]})).await;
    let expected = json!({"stable_prefix_len": 5, "break": true, "reason": "catalog", "breakpoint": 3});
    assert_eq!(gone["cache"], expected);
    assert_eq!(names_after_bridge(&gone), ["amber"]);
    for answer in [&warm, &core, &gone] {
        assert_eq!(answer["listing"]["text"], before["listing"]["text"]);
    }
    let text = "Since the tools were listed: removed blue; changed amber.";
    assert_eq!(gone["listing_changes"]["text"], text);
}

#[tokio::test]
async fn what_cannot_run_now_is_no_change_of_the_catalog() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    let ask = async || shown(&user, "s", json!({"unavailable": ["mag*", "umb*"]})).await;
    let before = ask().await;
    edit(&user).await;
    user.client()
        .patch(&user.path(&["catalog"]), &json!({"upsert": [paint("magenta", "Paints it pink.")]}))
        .await
        .ok();
    let after = ask().await;
    assert_kept(&before, &after);
    let changes = &after["listing_changes"];
    assert_eq!((&changes["added"], &changes["changed"]), (&json!([]), &json!(["gold"])), "{changes}");
    assert_eq!(after["unavailable"], json!(["magenta", "umber"]));
    let back = shown(&user, "s", json!({})).await;
    assert!(listed(&back).contains(&"umber") && listed(&back).contains(&"magenta"));
    assert!(back.get("listing_changes").is_none());
}

#[tokio::test]
async fn without_deferred_tools_there_is_nothing_to_keep() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    let listed_first = shown(&user, "s", json!({})).await;
    user.put_catalog(&paints()[..10]).await.ok();
    let whole = shown(&user, "s", json!({})).await;
    assert_eq!((&whole["tier"], &whole["listing"]), (&json!(0), &Value::Null));
    assert_eq!((&whole["cache"]["reason"], &whole["cache"]["breakpoint"]), (&json!("catalog"), &json!(9)));
    user.put_catalog(&[paints(), vec![paint("umber", "Paints umber.")]].concat()).await.ok();
    let again = shown(&user, "s", json!({})).await;
    assert!(again.get("listing_changes").is_none() && listed(&again).contains(&"umber"));
    assert_eq!(again["tools"], listed_first["tools"]);
    let nothing = app.user().assemble(json!({"session": "s"})).await.ok();
    assert_eq!((&nothing["tools"], nothing["cache"].get("breakpoint")), (&Value::Null, None));
}

#[tokio::test]
async fn live_tools_are_a_catalog_like_others() {
    let app = TestApp::start().await;
    let user = app.user();
    let before = shown(&user, "s", json!({"tools": paints()})).await;
    let mut tools = paints();
    tools.truncate(19);
    tools.push(paint("umber", "Paints umber."));
    let after = shown(&user, "s", json!({"tools": tools})).await;
    assert_kept(&before, &after);
    assert_ne!(after["tools_ref"], before["tools_ref"]);
    let text = "Since the tools were listed: added umber; removed teal.";
    assert_eq!(after["listing_changes"]["text"], text);
    let back = shown(&user, "s", json!({"tools_ref": before["tools_ref"]})).await;
    assert_kept(&before, &back);
    assert!(back.get("listing_changes").is_none());
}

#[tokio::test]
async fn the_listing_is_kept_after_a_kill_and_begun_anew_when_it_is_lost() {
    let mut app = TestApp::start().await;
    let id = app.user().id;
    app.user_called(&id).put_catalog(&paints()).await.ok();
    let before = shown(&app.user_called(&id), "s", json!({})).await;
    app.kill();
    app.start_again().await;
    edit(&app.user_called(&id)).await;
    let after = shown(&app.user_called(&id), "s", json!({})).await;
    assert_kept(&before, &after);
    app.kill();
    app.start_again().await;
    let after = shown(&app.user_called(&id), "s", json!({})).await;
    assert_kept(&before, &after);
    assert_eq!(after["listing_changes"], edits());

    app.kill();
    let store = SqliteStore::open(&app.folder().join("toolrack.db"), |_| {}).await.unwrap();
    assert_eq!(store.expire_listing_bases(i64::MAX, 10).await.unwrap().len(), 1, "one for all that share it");
    store.close().await.unwrap();
    app.start_again().await;
    let user = app.user_called(&id);
    let anew = shown(&user, "s", json!({})).await;
    assert!(anew.get("listing_changes").is_none() && listed(&anew).contains(&"umber"));
    let expected = json!({"stable_prefix_len": 3, "break": false, "reason": "catalog", "breakpoint": 2});
    assert_eq!(anew["cache"], expected);
    user.put_catalog(&paints()).await.ok();
    assert_kept(&anew, &shown(&user, "s", json!({})).await);
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

#[tokio::test]
async fn a_listing_that_sessions_keep_stays_as_long_as_they_do() {
    let inside = Inside::start().await;
    inside.put_catalog("u", &paints()).await;
    let assemble = async |session: &str| {
        let answer = inside.assemble("u", &json!({ "session": session })).await;
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    let before = assemble("s").await;
    inside.patch_catalog("u", &[paint("umber", "Paints umber.")], &[]).await;
    assemble("later").await;
    let stored = now_ms();
    while now_ms() == stored {}
    let used = now_ms();
    // Any use of the session renews it, with the next flush.
    inside.search("u", &json!({"session": "s", "query": "indigo"})).await;
    inside.service.flush().await.unwrap();
    assert_eq!(
        inside.store.expire_listing_bases(used, 10).await.unwrap().len(),
        1,
        "that of the idle session"
    );
    let after = assemble("s").await;
    assert_eq!(after["listing"]["text"], before["listing"]["text"]);
    assert_eq!(after["listing_changes"]["added"], json!(["umber"]));
}
