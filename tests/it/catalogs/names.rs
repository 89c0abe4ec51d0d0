//! What tools are called: same names, names on the wire, names of the bridge.

use reqwest::Method;
use serde_json::{Value, json};

use super::{etag, names, plain, tool, warned};
use crate::app::TestApp;

#[tokio::test]
async fn a_single_tool_is_read_by_every_name_it_has() {
    let app = TestApp::start().await;
    let user = app.user();
    user.put_catalog(&[
        plain("search", "alpha", "A."),
        plain("search", "beta", "B."),
        plain("lone", "alpha", "L."),
        plain("with space/slash", "alpha", "S."),
        plain("ünï", "alpha", "U."),
    ])
    .await
    .ok();
    for name in ["lone", "with space/slash", "ünï", "alpha__search", "beta__search"] {
        assert_eq!(tool(&user, name).await.ok()["name"], name);
    }
    let wire = tool(&user, "with space/slash").await.ok()["wire_name"].as_str().unwrap().to_owned();
    assert_eq!(tool(&user, &wire).await.ok()["name"], "with space/slash");
    let ambiguous = tool(&user, "search").await.problem(422, "ambiguous_name");
    let detail = ambiguous["detail"].as_str().unwrap();
    assert!(detail.contains("alpha__search") && detail.contains("beta__search"), "{detail}");
    tool(&user, "nowhere").await.problem(404, "unknown_tool");
    tool(&user, "LONE").await.problem(404, "unknown_tool");
    let read = tool(&user, "lone").await;
    let known = user
        .client()
        .send(
            Method::GET,
            &user.path(&["catalog", "tools", "lone"]),
            &[("if-none-match", &etag(&read))],
            "".into(),
        )
        .await;
    known.expect_status(304);
    let stranger = app.user();
    tool(&stranger, "lone").await.problem(404, "unknown_tool");
}

#[tokio::test]
async fn same_names_are_qualified_in_all_their_groups_and_all_are_reachable() {
    let app = TestApp::start().await;
    let user = app.user();
    let uploaded = user
        .put_catalog(&[
            plain("create", "tickets", "Create a ticket."),
            plain("create", "events", "Create an event."),
            plain("events__create", "zoo", "Takes the qualified name."),
            plain("other", "tickets", "Something else."),
        ])
        .await
        .ok();
    assert_eq!(warned(&uploaded, "name_qualified").len(), 2, "{uploaded}");
    let stored = names(&user.client().get(&user.path(&["catalog"])).await.ok());
    assert_eq!(stored, ["events__create", "events__create_2", "other", "tickets__create"]);
    let described = user.describe(json!({"names": stored})).await.ok();
    assert_eq!(described["tools"].as_array().unwrap().len(), 4, "{described}");
    let found = user.describe(json!({"name": "create"})).await.ok();
    let mut candidates: Vec<&str> =
        found["not_found"][0]["suggestions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    candidates.sort_unstable();
    assert_eq!(candidates, ["events__create_2", "tickets__create"]);
    // The bare name is enough where the grant holds one of them.
    let only = user.describe(json!({"name": "create", "allow": ["@tickets"]})).await.ok();
    assert_eq!(only["tools"][0]["name"], "tickets__create");
    let called = user.call(json!({"name": "create", "arguments": {}, "deny": ["@events"]})).await.ok();
    assert_eq!(called["results"][0]["dispatch"]["name"], "tickets__create");
    // A selection takes the uploaded name of all of them: no new upload slips out of a deny.
    let denied = user.assemble(json!({"deny": ["create"]})).await.ok();
    assert_eq!(names(&denied), ["other", "events__create"]);
    let upload = [plain("create", "c", "Again."), plain("create", "tickets", "T."), plain("x", "c", "X.")];
    user.put_catalog(&upload).await.ok();
    assert_eq!(names(&user.assemble(json!({"deny": ["create"]})).await.ok()), ["x"]);
    user.put_config(&json!({"min_catalog_size": 0, "core": ["create"]})).await.ok();
    let core = user.assemble(json!({})).await.ok();
    assert_eq!(core["counts"]["core"], 2);
    assert!(!core["warnings"].as_array().unwrap().is_empty(), "core that takes several is told");
}

#[tokio::test]
async fn equal_entries_are_one_and_different_ones_of_one_name_leave_one() {
    let app = TestApp::start().await;
    let user = app.user();
    let (mine, other) = (plain("t", "g", "One."), plain("t", "g", "Two."));
    let same = user.put_catalog(&[mine.clone(), mine.clone()]).await.ok();
    assert_eq!((&same["added"]["count"], &same["warnings"]), (&json!(1), &json!([])));
    let mut versions = Vec::new();
    for order in [[mine.clone(), other.clone()], [other, mine]] {
        let uploaded = user.put_catalog(&order).await.ok();
        assert_eq!(warned(&uploaded, "tool_quarantined"), ["t"]);
        assert!(uploaded["warnings"].to_string().contains("duplicate_name"));
        versions.push(uploaded["catalog_version"].clone());
    }
    assert_eq!(versions[0], versions[1], "the order of an upload decides nothing");
}

#[tokio::test]
async fn wire_names_fit_every_provider_and_lead_back() {
    let app = TestApp::start().await;
    let user = app.user();
    let long = format!("mcp__plugin_chrome-devtools-mcp_chrome-devtools__{}", "get_console_message");
    let uploaded = [
        "service.doSomething",
        "josef.prochazka--x",
        "DELETE_/loadpoints/{id}",
        "get_/whoami",
        "MyModule::PingPing",
        "name with spaces",
        "9starts_with_digit",
        "-dash",
        "click_on_link(url=\"x\")",
        "日本語の道具",
        "émoji 🦀",
        "search-a",
        "search_a",
        "search a",
        "search.a",
        "search/a",
        "a/b/c",
        "createConfluencePageForASpaceWithAVeryLongNameThatIsCutAtTheEnd_one",
        "createConfluencePageForASpaceWithAVeryLongNameThatIsCutAtTheEnd_two",
        &long,
        "fits_as_it_is",
        "_underscore",
        "tool_search",
        "tool_describe",
        "tool_call",
    ];
    let tools: Vec<Value> =
        uploaded.iter().map(|name| json!({"name": name, "description": "Does it."})).collect();
    user.put_catalog(&tools).await.ok();
    for config in [
        json!({"enabled": "off"}),
        json!({"enabled": "on", "core": ["*"]}),
        json!({"enabled": "on", "core": ["*"], "bridge_prefix": "tr_"}),
    ] {
        user.put_config(&config).await.ok();
        let assembled = user.assemble(json!({})).await.ok();
        let wire = names(&assembled);
        let mut unique = wire.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), wire.len(), "{wire:?}");
        for name in &wire {
            let mut letters = name.chars();
            let first = letters.next().unwrap();
            assert!(first.is_ascii_alphabetic() || first == '_', "{name}");
            assert!(
                name.len() <= 64
                    && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'),
                "{name}"
            );
        }
        let map = assembled["name_map"].as_object().unwrap();
        let mut back: Vec<&str> =
            wire.iter().map(|name| map.get(name).and_then(Value::as_str).unwrap_or(name)).collect();
        back.sort_unstable();
        let mut expected = uploaded.to_vec();
        expected.sort_unstable();
        assert_eq!(back, expected);
        assert!(map.iter().all(|(wire, stored)| stored != wire), "only where they differ: {map:?}");
        for name in ["fits_as_it_is", "search_a", "search-a", "_underscore"] {
            assert!(wire.iter().any(|wire| wire == name), "{name} needs no other name");
        }
        // Bridge names always mean the bridge, also where it is not sent.
        if config.get("bridge_prefix").is_none() {
            assert!(
                !wire
                    .iter()
                    .any(|name| ["tool_search", "tool_describe", "tool_call"].contains(&name.as_str())),
                "{wire:?}"
            );
        }
        for wire in &wire {
            let described = user.describe(json!({"name": wire})).await.ok();
            assert_eq!(described["tools"][0]["name"], json!(wire), "{described}");
            let called = user.call(json!({"name": wire, "arguments": {}})).await.ok();
            let stored = map.get(wire).cloned().unwrap_or_else(|| json!(wire));
            assert_eq!(called["results"][0]["dispatch"]["name"], stored, "the tool's real name is run");
        }
    }
}

#[tokio::test]
async fn a_tool_called_like_the_bridge_is_found_and_called_under_its_other_name() {
    let app = TestApp::start().await;
    let user = app.user();
    let mut tools: Vec<Value> =
        (0..20).map(|at| plain(&format!("filler_{at}"), "f", "Does nothing of note.")).collect();
    tools.push(plain("tool_search", "shop", "Search hammers and saws in the shop."));
    user.put_catalog(&tools).await.ok();
    let assembled = user.assemble(json!({"session": "s"})).await.ok();
    let entry =
        assembled["tools"].as_array().unwrap().iter().filter(|tool| tool["name"] == "tool_search").count();
    assert_eq!(entry, 1, "the bridge alone");
    let found = user.search(json!({"session": "s", "query": "hammers and saws"})).await.ok();
    let best = &found["results"][0]["matches"][0];
    assert_eq!(best["name"], "tool_search");
    let wire = best["wire_name"].as_str().unwrap().to_owned();
    assert!(wire.starts_with("tool_search_"), "{wire}");
    let call =
        user.call(json!({"session": "s", "name": "tool_search", "arguments": {"query": "x"}})).await.ok();
    assert_eq!(call["results"][0]["error"]["code"], "bridge_tool");
    let call = user.call(json!({"session": "s", "name": wire, "arguments": {}})).await.ok();
    assert_eq!(call["results"][0]["dispatch"]["name"], "tool_search");
    let next = user.assemble(json!({"session": "s"})).await.ok();
    assert_eq!(next["warm"], json!(["tool_search"]));
    assert_eq!(next["name_map"][&wire], "tool_search");
}
