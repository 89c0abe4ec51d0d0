//! What people who do this job ran into elsewhere: each test is a whole kind of such reports, with the inputs that were
//! reported and what is right for them. Kinds that a unit test of the core or another file here covers are not repeated.

use serde_json::{Value, json};

use crate::app::{TestApp, User, path, unique};
use crate::model::{self, FORMATS, check_array};

mod formats;
mod ranking;

fn tool(name: &str, group: &str, description: &str) -> Value {
    json!({"name": name, "group": group, "description": description})
}

async fn holder(app: &TestApp, tools: &[Value], config: Value) -> User {
    let user = app.user();
    user.put_catalog(tools).await.ok();
    user.put_config(&config).await.ok();
    user
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn matches(answer: &Value) -> Vec<String> {
    let matches = answer["results"][0]["matches"].as_array().unwrap();
    matches.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn search(user: &User, query: &str) -> Value {
    user.search(json!({"query": query})).await.ok()
}

#[tokio::test]
async fn several_servers_with_the_same_tool_keep_them_apart() {
    let app = TestApp::start().await;
    let tools = [
        tool("list_allowed_directories", "filesystem", "List the directories that may be read."),
        tool("list_allowed_directories", "desktop-commander", "List the directories that may be read."),
        tool("send_email", "gmail", "Send an email."),
        tool("send_email", "outlook", "Send an email."),
        tool("read_resource", "server", "Read a resource."),
    ];
    let user = holder(&app, &tools, json!({})).await;
    let all = names(&user.assemble(json!({})).await.ok());
    assert_eq!(all.len(), 5, "none wins silently: {all:?}");
    for (query, name) in [
        ("filesystem list_allowed_directories", "filesystem__list_allowed_directories"),
        ("desktop-commander list_allowed_directories", "desktop-commander__list_allowed_directories"),
        ("send an email with outlook", "outlook__send_email"),
        ("gmail send email", "gmail__send_email"),
    ] {
        let answer = search(&user, query).await;
        assert_eq!(matches(&answer)[0], name, "{query}");
        let group = answer["results"][0]["matches"][0]["group"].as_str().unwrap().to_owned();
        assert!(name.starts_with(&group), "a match tells its server: {answer}");
        let called = user.call(json!({"name": name})).await.ok();
        let dispatch = &called["results"][0]["dispatch"];
        assert_eq!(
            (&dispatch["group"], &dispatch["name"]),
            (&json!(group), &json!(name)),
            "enough to route the call: {called}"
        );
    }
    let twice = user.call(json!({"name": "send_email"})).await.ok();
    assert_eq!(twice["results"][0]["error"]["code"], "ambiguous_name");
    assert_eq!(twice["results"][0]["error"]["suggestions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn servers_toolsets_and_groups_of_one_name_do_not_hide_each_other() {
    let app = TestApp::start().await;
    let tools = [
        tool("remember", "memory", "Keep a fact."),
        tool("move_card", "kanban", "Move a card."),
        tool("memory", "other", "A tool called so."),
        tool("search", "search", "Search."),
    ];
    let config = json!({"toolsets": [{"name": "memory", "tools": ["move_card"]}, {"name": "kanban",
        "groups": ["memory"]}], "groups": [{"name": "search", "tools": []}]});
    let user = holder(&app, &tools, config).await;
    assert_eq!(names(&user.assemble(json!({})).await.ok()).len(), 4);
    assert_eq!(names(&user.assemble(json!({"toolsets": ["memory"]})).await.ok()), ["move_card"]);
    assert_eq!(names(&user.assemble(json!({"toolsets": ["kanban"]})).await.ok()), ["remember"]);
    assert_eq!(names(&user.assemble(json!({"allow": ["memory"]})).await.ok()), ["memory"]);
    assert_eq!(names(&user.assemble(json!({"allow": ["@memory"]})).await.ok()), ["remember"]);
    assert_eq!(names(&user.assemble(json!({"allow": ["@search"]})).await.ok()), ["search"]);
}

#[tokio::test]
async fn an_upload_of_odd_entries_never_becomes_nothing() {
    let app = TestApp::start().await;
    let user = app.user();
    let odd = [
        json!({"type": "function", "function": {"name": "nested"}}),
        json!({"name": "no_type", "inputSchema": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}),
        json!({"name": "root_all_of", "inputSchema": {"type": "object", "allOf": [{"if": {}, "then": {}}]}}),
        json!({"name": "root_one_of", "inputSchema": {"oneOf": [{"type": "object"}, {"type": "null"}]}}),
        json!({"name": "string_type", "inputSchema": {"type": "string"}}),
        json!({"name": "invalid_schema", "inputSchema": {"type": 7, "properties": [], "required": "x"}}),
        json!({"name": "empty_schema", "parameters": {}}),
        json!({"name": "null_schema", "parameters": null}),
        json!({"name": "old_draft", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object", "definitions": {"a": {}}, "properties": {"x": {"$ref": "#/definitions/a"}}}}),
        json!({"name": "odd_keys", "inputSchema": {"type": "object", "properties": {"filter[id]": {},
            "$top": {}, "@odata.type": {}, "a b": {}}}}),
        json!({"name": "null_description", "description": null, "title": null, "annotations": null,
            "group": null}),
        json!({"name": "extra_keys", "_meta": {"x": 1}, "outputSchema": {"type": "object"}, "tool_type": null,
            "defer_loading": true, "cache_control": {"type": "ephemeral"}}),
    ];
    let uploaded = user.put_catalog(&odd).await.ok();
    assert_eq!(uploaded["added"]["count"], odd.len(), "{uploaded}");
    for format in FORMATS {
        let assembled = user.assemble(json!({"format": format})).await.ok();
        check_array(format, &assembled);
        let tools = model::entries(&assembled["tools"]);
        assert_eq!(tools.len(), odd.len());
        for entry in tools {
            for leaked in ["defer_loading", "cache_control", "_meta", "outputSchema"] {
                let known = format == "mcp" && ["_meta", "outputSchema"].contains(&leaked);
                assert!(
                    known || entry.get(leaked).is_none(),
                    "{format}: only what the provider takes: {entry}"
                );
            }
        }
    }
    for entry in &odd {
        let name = entry.get("function").unwrap_or(entry)["name"].as_str().unwrap();
        let described = user.describe(json!({"name": name})).await.ok();
        assert_eq!(described["tools"].as_array().unwrap().len(), 1, "{name}");
        user.call(json!({"name": name, "arguments": {"a": 1}})).await.ok();
    }
}

#[tokio::test]
async fn arrays_are_the_same_whatever_the_order_of_servers_and_keys() {
    let app = TestApp::start().await;
    let user = app.user();
    let mut tools: Vec<Value> = ["zeta", "alpha", "mu", "beta", "omega"]
        .iter()
        .flat_map(|name| [tool(name, "one", "Does it."), tool(&format!("{name}_2"), "two", "Does it.")])
        .collect();
    let mut seen = Vec::new();
    for _ in 0..tools.len() {
        tools.rotate_left(3);
        tools.swap(0, 4);
        user.put_catalog(&tools).await.ok();
        for config in [json!({"enabled": "off"}), json!({"enabled": "on", "core": ["mu", "@two"]})] {
            user.put_config(&config).await.ok();
            let answer = user.assemble(json!({"format": "openai_chat"})).await.ok();
            seen.push((
                config,
                answer["tools"].to_string(),
                answer["listing"].to_string(),
                answer["fingerprint"].clone(),
            ));
        }
    }
    for (one, other) in seen.iter().zip(&seen[2..]) {
        let same = seen.iter().find(|(config, ..)| *config == other.0).unwrap();
        assert_eq!((&same.1, &same.2, &same.3), (&other.1, &other.2, &other.3), "{}", one.0);
    }
}

#[tokio::test]
async fn the_bridge_is_there_exactly_when_something_is_deferred() {
    let app = TestApp::start().await;
    let tools: Vec<Value> = (0..20).map(|at| tool(&format!("t{at}"), "g", "Does it.")).collect();
    for (config, bridge) in [
        (json!({}), true),
        (json!({"enabled": "on", "core": ["*"]}), false),
        (json!({"enabled": "off"}), false),
        (json!({"min_catalog_size": 20}), false),
        (json!({"min_catalog_size": 19}), true),
        (json!({"activation_pct": 10}), false),
        (json!({"enabled": "on", "deny": ["*"]}), false),
    ] {
        let user = holder(&app, &tools, config.clone()).await;
        let answer = user.assemble(json!({})).await.ok();
        let has = names(&answer).iter().any(|name| name == "tool_search");
        assert_eq!(has, bridge, "{config}: {answer}");
        assert_eq!(!answer["listing"].is_null(), bridge, "{config}");
        let sent = names(&answer).len();
        let denied = config.get("deny").is_some();
        assert_eq!(
            sent,
            if bridge {
                3
            } else if denied {
                0
            } else {
                20
            },
            "hidden tools have a way to them: {config}"
        );
        assert!(
            !answer["tools"].as_array().is_some_and(Vec::is_empty),
            "null, never an empty array: {config}"
        );
    }
    // The listing stands in one place only.
    let user = holder(&app, &tools, json!({"listing_placement": "bridge"})).await;
    let inside = user.assemble(json!({})).await.ok();
    assert_eq!(inside["listing"]["placement"], "bridge");
    assert_eq!(inside["tools"].to_string().matches("- t7: Does it.").count(), 1, "{inside}");
    let separate = holder(&app, &tools, json!({})).await.assemble(json!({})).await.ok();
    assert_eq!(separate["tools"].to_string().matches("t7").count(), 0);
}

#[tokio::test]
async fn callers_without_a_session_and_other_tenants_share_nothing() {
    let app = TestApp::start().await;
    let tools: Vec<Value> = (0..20).map(|at| tool(&format!("paint_{at}"), "g", "Paint it.")).collect();
    let (one, other) = (holder(&app, &tools, json!({})).await, holder(&app, &tools, json!({})).await);
    let project = unique("project");
    app.admin().put(&path(&["v1", "projects", &project, "config"]), &json!({})).await.ok();
    one.assemble(json!({"session": "default"})).await.ok();
    one.describe(json!({"session": "default", "names": ["paint_1", "paint_2"]})).await.ok();
    let warm = async |user: &User, body: Value| user.assemble(body).await.ok()["warm"].clone();
    assert_eq!(warm(&one, json!({"session": "default"})).await, json!(["paint_1", "paint_2"]));
    assert_eq!(warm(&other, json!({"session": "default"})).await, json!([]), "another user");
    assert_eq!(
        warm(&one, json!({"session": "default", "project": project})).await,
        json!([]),
        "another project"
    );
    assert_eq!(warm(&one, json!({"session": "Default"})).await, json!([]), "another id");
    one.describe(json!({"name": "paint_3"})).await.ok();
    assert_eq!(warm(&one, json!({})).await, json!([]), "no session, no shared state");
    assert_eq!(warm(&other, json!({})).await, json!([]));
    assert_eq!(
        app.admin().get(&other.path(&["sessions"])).await.ok()["sessions"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn a_change_of_the_catalog_reaches_every_session_at_once() {
    let app = TestApp::start().await;
    let tools: Vec<Value> = (0..20).map(|at| tool(&format!("paint_{at}"), "g", "Paint it.")).collect();
    let user = holder(&app, &tools, json!({})).await;
    for session in ["a", "b", "c"] {
        user.assemble(json!({"session": session})).await.ok();
        user.describe(json!({"session": session, "names": ["paint_1", "paint_2"]})).await.ok();
    }
    let catalog = user.path(&["catalog"]);
    let change =
        json!({"upsert": [tool("slow_server_tool", "late", "Arrives late.")], "remove": ["paint_1"]});
    let written = app.admin().patch(&catalog, &change).await.ok();
    assert_eq!(
        (&written["added"]["count"], &written["removed"]["count"]),
        (&json!(1), &json!(1)),
        "honest counts"
    );
    for session in ["a", "b", "c"] {
        let found =
            user.search(json!({"session": session, "query": "slow server tool", "warm": false})).await.ok();
        assert_eq!(matches(&found)[0], "slow_server_tool");
        let gone = user.call(json!({"session": session, "name": "paint_1"})).await.ok();
        assert_eq!(gone["results"][0]["error"]["code"], "unknown_tool");
        let answer = user.assemble(json!({"session": session})).await.ok();
        assert_eq!(answer["warm"], json!(["paint_2"]), "what is gone leaves the array");
        // The listing of a running session stays, and what it does not know is told beside it.
        let changes = &answer["listing"]["changes"];
        assert_eq!(
            (&changes["added"], &changes["removed"]),
            (&json!(["slow_server_tool"]), &json!(["paint_1"])),
            "{answer}"
        );
        let anew = user.assemble(json!({"session": session, "epoch": true})).await.ok();
        assert!(anew["listing"]["text"].as_str().unwrap().contains("slow_server_tool"));
        assert!(!anew.to_string().contains("paint_1\""), "{anew}");
    }
    // What is taken away to nothing is told.
    app.admin().delete(&catalog).await.expect_status(204);
    let empty = user.assemble(json!({"session": "a"})).await.ok();
    assert!(empty["tools"].is_null() && empty["warnings"].to_string().contains("empty_catalog"), "{empty}");
}

#[tokio::test]
async fn names_that_models_garble_are_mended_or_answered_with_the_right_one() {
    let app = TestApp::start().await;
    let tools = [
        tool("patch", "files", "Patch a file."),
        tool("todo", "tasks", "Keep a list."),
        tool("skills_list", "skills", "List skills."),
        tool("run_terminal", "shell", "Run a command."),
    ];
    let user = holder(&app, &tools, json!({"min_catalog_size": 0})).await;
    for (wrong, right) in [
        ("Patch_tool", "patch"),
        ("PATCH", "patch"),
        ("TodoTool_tool", "todo"),
        ("skills_listskills_list", "skills_list"),
        ("skillsList", "skills_list"),
        ("`run_terminal`", "run_terminal"),
        (" run_terminal ", "run_terminal"),
        ("run-terminal", "run_terminal"),
        ("run_terminl", "run_terminal"),
        ("functions.run_terminal", "run_terminal"),
    ] {
        let result = user.call(json!({"name": wrong, "arguments": {}})).await.ok()["results"][0].clone();
        let named = result["dispatch"]["name"] == right || result["error"]["suggestions"][0] == right;
        assert!(named, "{wrong}: {result}");
        let bridged = user
            .bridge(json!({"call": {"id": "1", "name": "tool_call", "arguments": {"name": wrong,
            "arguments": {}}}}))
            .await
            .ok();
        let answer = &bridged["results"][0];
        let named = answer["calls"][0]["name"] == right
            || answer["content"].as_str().is_some_and(|text| text.contains(right));
        assert!(named, "{wrong}: {bridged}");
    }
    let far = user.call(json!({"name": "quantum_flux", "arguments": {}})).await.ok();
    let error = &far["results"][0]["error"];
    assert_eq!((&error["code"], error.get("suggestions")), (&json!("unknown_tool"), None));
    assert!(error["message"].as_str().unwrap().contains("tool_search"), "says how to go on: {far}");
}

#[tokio::test]
async fn a_result_goes_back_under_the_name_that_the_model_used() {
    let app = TestApp::start().await;
    let user = holder(
        &app,
        &[tool("delete.everything", "g", "Delete it all."), tool("plain", "g", "Plain.")],
        json!({"min_catalog_size": 0}),
    )
    .await;
    user.assemble(json!({"session": "s"})).await.ok();
    user.describe(json!({"session": "s", "name": "delete.everything"})).await.ok();
    let assembled = user.assemble(json!({"session": "s"})).await.ok();
    let wire = names(&assembled).pop().unwrap();
    assert_ne!(wire, "delete.everything");
    let calls = json!([
        {"id": "a", "name": wire, "arguments": {"x": 1}},
        {"id": "b", "name": "tool_call", "arguments": {"name": wire, "arguments": {"x": 1}}},
        {"id": "", "name": "tool_call", "arguments": {"name": "plain", "arguments": {}}},
    ]);
    let answer = user.bridge(json!({"session": "s", "calls": calls})).await.ok();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0]["reply_to"], json!({"id": "a", "name": wire}));
    assert_eq!(results[0]["calls"][0]["name"], "delete.everything", "the agent runs the real one");
    assert_eq!(results[1]["reply_to"], json!({"id": "b", "name": "tool_call"}));
    assert_eq!(results[1]["calls"][0]["id"], "b:tool:delete.everything");
    assert_eq!(results[2]["calls"][0]["id"], "call:tool:plain");
}

#[tokio::test]
async fn visible_tools_work_through_the_bridge_too() {
    let app = TestApp::start().await;
    let mut tools: Vec<Value> = (0..20).map(|at| tool(&format!("t{at}"), "g", "Does it.")).collect();
    tools.push(json!({"name": "always", "group": "own", "description": "Always there.", "always_load": true,
        "parameters": {"type": "object", "required": ["x"]}}));
    let user = holder(&app, &tools, json!({"core": ["t3"]})).await;
    let assembled = user.assemble(json!({"session": "s"})).await.ok();
    assert_eq!(names(&assembled)[..2], ["t3", "always"], "core by group and name");
    for name in ["always", "t3"] {
        let described = user.describe(json!({"session": "s", "name": name})).await.ok();
        assert_eq!(described["tools"][0]["name"], name);
        assert_eq!(described["warmed"], json!([]));
    }
    let call =
        json!({"id": "1", "name": "tool_call", "arguments": {"name": "always", "arguments": {"x": 1}}});
    let answer = user.bridge(json!({"session": "s", "call": call})).await.ok();
    assert_eq!(answer["results"][0]["action"], "dispatch");
    // One bridge name stays good after the tools shrank below what needs a bridge: an answer, not a dead end.
    user.client().delete(&user.path(&["catalog"])).await.expect_status(204);
    user.put_catalog(&[tool("t1", "g", "Does it.")]).await.ok();
    let late = user
        .bridge(json!({"session": "s", "calls": [
            {"id": "1", "name": "tool_search", "arguments": {"query": "t1"}},
            {"id": "2", "name": "tool_call", "arguments": {"name": "t1", "arguments": {}}},
            {"id": "3", "name": "tool_call", "arguments": {"name": "t5", "arguments": {}}},
        ]}))
        .await
        .ok();
    assert!(late["results"][0]["content"].as_str().unwrap().contains("t1"));
    assert_eq!(late["results"][1]["action"], "dispatch");
    assert_eq!(late["results"][2]["is_error"], true);
}

#[tokio::test]
async fn many_searches_of_one_session_keep_it_bounded() {
    let app = TestApp::start().await;
    let words = [
        "apple", "bread", "cheese", "donut", "eggs", "flour", "grape", "honey", "jelly", "kale", "lemon",
        "melon", "nougat", "olive", "peach",
    ];
    let tools: Vec<Value> =
        words.iter().map(|word| tool(&format!("buy_{word}"), "shop", &format!("Buy {word}."))).collect();
    let user = holder(&app, &tools, json!({})).await;
    user.assemble(json!({"session": "s"})).await.ok();
    for word in words.iter().cycle().take(40) {
        let found =
            user.search(json!({"session": "s", "query": format!("buy {word}"), "limit": 1})).await.ok();
        assert_eq!(matches(&found), [format!("buy_{word}")]);
        let evicted = found["evicted"].as_array().unwrap().len();
        assert!(evicted <= found["warmed"].as_array().unwrap().len() && evicted <= 1, "{found}");
        let answer = user.assemble(json!({"session": "s"})).await.ok();
        let warm = answer["warm"].as_array().unwrap();
        assert!(warm.len() <= 8 && warm.contains(&json!(format!("buy_{word}"))), "{answer}");
        assert_eq!(names(&answer).len(), 3 + warm.len());
        // What left the array is still listed and callable.
        for word in words {
            assert!(answer["listing"]["text"].as_str().unwrap().contains(&format!("buy_{word}")));
        }
    }
    let called = user.call(json!({"name": "buy_apple", "arguments": {}})).await.ok();
    assert_eq!(called["results"][0]["ok"], true);
}
