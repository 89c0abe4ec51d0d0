//! The rules of sessions: what becomes and stays warm, what leaves, pins, epochs, and what a session remembers.

use serde_json::{Value, json};

use crate::app::TestApp;
use crate::model::{self, BRIDGE, array_names, names_after_bridge, warning_codes};
use crate::samples::{painter, paints, shown, warm_each};

#[tokio::test]
async fn tools_that_the_agent_used_are_not_the_ones_that_leave() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"max_warm_tools": 3})).await;
    let openai = json!([
        {"role": "user", "content": "paint"},
        {"role": "assistant", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "amber", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "done"}
    ]);
    let anthropic = json!([
        {"role": "user", "content": [{"type": "text", "text": "paint"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "amber", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "done"}]}
    ]);
    let ways = [json!({"used": ["amber"]}), json!({"messages": openai}), json!({"messages": anthropic})];
    for (at, way) in ways.into_iter().enumerate() {
        let session = format!("used-{at}");
        warm_each(&user, &session, &["amber", "blue", "crimson"]).await;
        let answer = shown(&user, &session, way.clone()).await;
        assert_eq!(answer["warm"], json!(["amber", "blue", "crimson"]), "its age is renewed, not its place");
        warm_each(&user, &session, &["denim"]).await;
        let answer = shown(&user, &session, json!({})).await;
        assert_eq!(answer["warm"], json!(["amber", "crimson", "denim"]), "{way}");
    }
    let answer = shown(&user, "used-0", json!({"used": ["nothing_like_it"]})).await;
    assert_eq!(warning_codes(&answer), ["unknown_tool"]);
    let answer = shown(&user, "used-0", json!({"messages": ["plain", "strings"]})).await;
    assert_eq!(warning_codes(&answer), [""; 0]);
}

#[tokio::test]
async fn a_search_warms_within_the_bound_and_never_evicts_what_it_found() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"max_warm_tools": 2, "core": ["teal"]})).await;
    warm_each(&user, "s", &["red", "navy"]).await;
    let body = json!({"session": "s", "queries": ["amber blue", "teal", "crimson"], "limit": 2});
    let found = user.search(body).await.ok();
    let queries: Vec<&Value> =
        found["results"].as_array().unwrap().iter().map(|result| &result["query"]).collect();
    assert_eq!(queries, ["amber blue", "teal", "crimson"]);
    assert_eq!(found["results"][1]["matches"][0]["state"], "core");
    let first = found["results"][0]["matches"][0]["name"].as_str().unwrap();
    assert_eq!(found["warmed"], json!([first, "crimson"]), "round robin over the queries, core left out");
    assert_eq!(found["evicted"], json!(["red", "navy"]));
    assert_eq!(found["results"][2]["matches"][0]["state"], "warm");
    assert_eq!(found["results"][0]["matches"][1]["state"], "deferred", "the rest is returned unwarmed");
    let kept = user.search(json!({"session": "s", "query": "indigo", "warm": false})).await.ok();
    assert_eq!(
        (&kept["warmed"], &kept["results"][0]["matches"][0]["state"]),
        (&json!([]), &json!("deferred"))
    );
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!([first, "crimson"]));
}

#[tokio::test]
async fn pins_stay_and_count_within_the_bound() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"max_warm_tools": 3})).await;
    let change = async |what: &str, names: &[&str]| {
        user.client().post(&user.path(&["sessions", "s", what]), &json!({"names": names})).await
    };
    warm_each(&user, "s", &["amber", "blue", "crimson"]).await;
    let pinned = change("pin", &["amber", "jade"]).await.ok();
    let flags = |document: &Value| -> Vec<(String, bool)> {
        let warm = document["warm"].as_array().unwrap().iter();
        warm.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["pinned"] == true)).collect()
    };
    let named =
        |list: &[(&str, bool)]| list.iter().map(|(name, pin)| ((*name).to_owned(), *pin)).collect::<Vec<_>>();
    assert_eq!(flags(&pinned), named(&[("amber", true), ("crimson", false), ("jade", true)]));
    warm_each(&user, "s", &["denim", "emerald"]).await;
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!(["amber", "jade", "emerald"]));

    let refused = change("pin", &["blue", "gold"]).await.problem(422, "invalid_request");
    assert_eq!(refused["errors"][0]["pointer"], "/names");
    change("pin", &["no_such_tool"]).await.problem(422, "invalid_request");
    assert_eq!(
        shown(&user, "s", json!({})).await["warm"],
        json!(["amber", "jade", "emerald"]),
        "nothing by halves"
    );

    let unpinned = change("unpin", &["amber"]).await.ok();
    assert_eq!(flags(&unpinned), named(&[("amber", false), ("jade", true), ("emerald", false)]));
    let released = change("release", &["jade", "emerald"]).await.ok();
    assert_eq!(flags(&released), named(&[("amber", false)]));
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!(["amber"]));
}

#[tokio::test]
async fn under_the_epoch_policy_found_tools_wait() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"max_warm_tools": 3, "warm_policy": "epoch"})).await;
    let first = shown(&user, "s", json!({})).await;
    let found = user.search(json!({"session": "s", "query": "indigo", "limit": 1})).await.ok();
    assert_eq!(found["results"][0]["matches"][0]["state"], "pending");
    assert_eq!(found["warmed"], json!([]), "what waits is not in the next array");
    warm_each(&user, "s", &["jade"]).await;
    let waiting = shown(&user, "s", json!({"if_fingerprint": first["fingerprint"]})).await;
    assert_eq!((&waiting["changed"], &waiting["warm"]), (&json!(false), &json!([])));
    let document = user.client().get(&user.path(&["sessions", "s"])).await.ok();
    assert!(document["warm"].as_array().unwrap().iter().all(|tool| tool["pending"] == true), "{document}");

    let epoch = shown(&user, "s", json!({"epoch": true})).await;
    assert_eq!(names_after_bridge(&epoch), ["indigo", "jade"]);
    assert_eq!(epoch["cache"]["reason"], "epoch");
    let state = user.search(json!({"session": "s", "query": "indigo", "limit": 1})).await.ok();
    assert_eq!(state["results"][0]["matches"][0]["state"], "warm");

    user.put_config(&json!({"warm_policy": "off"})).await.ok();
    let off = user.describe(json!({"session": "s", "name": "gold"})).await.ok();
    assert_eq!((off["tools"].as_array().unwrap().len(), &off["warmed"]), (1, &json!([])));
}

#[tokio::test]
async fn tools_that_cannot_run_now_keep_their_place() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"core": ["teal"]})).await;
    warm_each(&user, "s", &["amber", "blue"]).await;
    let before = shown(&user, "s", json!({})).await;
    let answer = shown(&user, "s", json!({"unavailable": ["amber", "tea*", "lilac"]})).await;
    assert_eq!(answer["unavailable"], json!(["amber", "lilac", "teal"]));
    assert_eq!((array_names(&answer)[0], names_after_bridge(&answer)), (BRIDGE[0], vec!["blue"]));
    let listed = model::Listing::read(answer["listing"]["text"].as_str().unwrap());
    assert!(!listed.names.contains(&"lilac") && listed.names.contains(&"jade"), "{listed:?}");

    let found = user.search(json!({"session": "s", "query": "paints lilac", "limit": 20})).await;
    let matches = found.ok()["results"][0]["matches"].clone();
    assert!(matches.as_array().unwrap().iter().all(|found| found["name"] != "lilac"), "{matches}");
    let called = user.call(json!({"session": "s", "name": "lilac"})).await.ok();
    assert_eq!(called["results"][0]["error"]["code"], "tool_unavailable");
    let described = user.describe(json!({"session": "s", "names": ["lilac", "jade"]})).await.ok();
    assert_eq!(described["tools"].as_array().unwrap().len(), 1);
    assert_eq!(described["not_found"][0]["code"], "tool_unavailable");

    user.client().post(&user.path(&["sessions", "s", "release"]), &json!({"names": ["jade"]})).await.ok();
    let after = shown(&user, "s", json!({})).await;
    assert_eq!(after["tools"], before["tools"], "back in their old places");
}

#[tokio::test]
async fn a_session_keeps_the_limits_of_its_assembly() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"enabled": "on"})).await;
    shown(&user, "s", json!({"allow": ["amber", "blue"], "deny": ["blue"]})).await;
    let names = async |body: Value| -> Vec<String> {
        let answer = user.search(body).await.ok();
        strings_of(&answer["results"][0]["matches"])
    };
    assert_eq!(names(json!({"session": "s", "query": "amber blue jade"})).await, ["amber"]);
    let wider = json!({"session": "s", "query": "amber blue jade", "allow": ["jade", "blue", "amber"], "toolsets": ["*"]});
    assert_eq!(names(wider).await, ["amber"], "a request of the session may only narrow");
    let narrower = user.describe(json!({"session": "s", "name": "amber", "deny": ["amb*"]})).await.ok();
    assert_eq!(narrower["not_found"][0]["code"], "unknown_tool");
    assert_eq!(names(json!({"session": "never-assembled", "query": "blue", "limit": 1})).await, ["blue"]);
    shown(&user, "s", json!({})).await;
    assert_eq!(
        names(json!({"session": "s", "query": "jade", "limit": 1})).await,
        ["jade"],
        "each assembly states them anew"
    );
}

fn strings_of(matches: &Value) -> Vec<String> {
    let matches = matches.as_array().unwrap().iter();
    matches.map(|found| found["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn sessions_are_read_listed_reset_and_deleted() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    let client = user.client();
    for session in ["a", "b", "c"] {
        warm_each(&user, session, &["amber"]).await;
    }
    let in_project = json!({"session": "a", "project": "p", "name": "blue"});
    user.describe(in_project).await.ok();

    let read = async |suffix: &str| {
        let document = client.get(&format!("{}{suffix}", user.path(&["sessions", "a"]))).await.ok();
        strings_of(&document["warm"])
    };
    assert_eq!((read("").await, read("?project=p").await), (vec!["amber".into()], vec!["blue".into()]));

    let mut listed = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("{}?limit=3{cursor}", user.path(&["sessions"]))).await.ok();
        for session in page["sessions"].as_array().unwrap() {
            listed.push((session["project"].clone(), session["session"].clone(), session["warm"].clone()));
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    listed.sort_by_key(|entry| format!("{entry:?}"));
    let mut expected = vec![(json!("p"), json!("a"), json!(1)), (Value::Null, json!("a"), json!(1))];
    expected.extend(["b", "c"].map(|session| (Value::Null, json!(session), json!(1))));
    expected.sort_by_key(|entry| format!("{entry:?}"));
    assert_eq!(listed, expected);
    let page = client.get(&format!("{}?project=p", user.path(&["sessions"]))).await.ok();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 1);
    let nobody = app.user();
    let page = client.get(&nobody.path(&["sessions"])).await.ok();
    assert_eq!(page["sessions"], json!([]));

    let reset = client.post(&user.path(&["sessions", "b", "reset"]), &json!({})).await.ok();
    assert_eq!(reset["warm"], json!([]));
    assert_eq!(shown(&user, "b", json!({})).await["cache"]["reason"], "first");
    for _ in 0..2 {
        client.delete(&user.path(&["sessions", "a"])).await.expect_status(204);
    }
    assert_eq!((read("").await, read("?project=p").await), (vec![], vec!["blue".into()]));
    assert_eq!(shown(&user, "a", json!({})).await["warm"], json!([]));
    assert_eq!(shown(&user, "c", json!({})).await["warm"], json!(["amber"]));
}

#[tokio::test]
async fn a_change_of_catalog_or_config_is_in_the_next_answer() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    warm_each(&user, "s", &["amber", "blue"]).await;
    let before = shown(&user, "s", json!({})).await;
    let patch = json!({"remove": ["amber"], "upsert": [{"group": "paints", "name": "umber", "description": "Paints umber."}]});
    user.client().patch(&user.path(&["catalog"]), &patch).await.ok();
    let after = shown(&user, "s", json!({})).await;
    assert_eq!((&after["warm"], &after["cache"]["reason"]), (&json!(["blue"]), &json!("catalog")));
    assert_ne!(after["fingerprint"], before["fingerprint"]);
    let found = user.search(json!({"session": "s", "query": "umber"})).await.ok();
    assert_eq!(found["results"][0]["matches"][0]["name"], "umber");
    // The tool comes back, but nobody found it since.
    user.put_catalog(&paints()).await.ok();
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!(["blue"]));

    user.put_config(&json!({"deny": ["blue"]})).await.ok();
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!([]), "denied: hidden");
    user.put_config(&json!({})).await.ok();
    assert_eq!(shown(&user, "s", json!({})).await["warm"], json!(["blue"]), "but kept");
    user.put_config(&json!({"core": ["blue"]})).await.ok();
    let core = shown(&user, "s", json!({})).await;
    assert_eq!((array_names(&core)[0], &core["warm"]), ("blue", &json!([])));
    assert_eq!(core["cache"]["reason"], "config");
}
