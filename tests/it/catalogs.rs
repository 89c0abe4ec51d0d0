//! Stored catalogs: what may be uploaded, what a write changes, and what tools are called.

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, Client, TestApp, User, path, unique};

const JSON: (&str, &str) = ("content-type", "application/json");

fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_default().to_owned()
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn plain(name: &str, group: &str, description: &str) -> Value {
    json!({"name": name, "group": group, "description": description})
}

/// The single tool as stored, and its text.
async fn tool(user: &User, name: &str) -> Answer {
    user.client().get(&user.path(&["catalog", "tools", name])).await
}

async fn raw(client: &Client, method: Method, path: &str, text: impl Into<String>) -> Answer {
    client.send(method, path, &[JSON], text.into().into()).await
}

fn warned(answer: &Value, code: &str) -> Vec<String> {
    let warnings = answer["warnings"].as_array().unwrap().iter();
    let of_code = warnings.filter(|warning| warning["code"] == code);
    of_code.map(|warning| warning["tool"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn every_common_shape_is_told_apart_per_entry() {
    let app = TestApp::start().await;
    let user = app.user();
    let schema = json!({"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}, "required": ["b"]});
    let entries = [
        json!({"name": "plain", "group": "g", "description": "Does it.", "parameters": schema}),
        json!({"type": "function", "function": {"name": "openai_chat", "description": "Does it.", "parameters": schema}, "group": "g"}),
        json!({"type": "function", "name": "openai_responses", "description": "Does it.", "parameters": schema, "strict": false, "group": "g"}),
        json!({"name": "anthropic", "description": "Does it.", "input_schema": schema, "group": "g"}),
        json!({"name": "mcp", "title": "T", "description": "Does it.", "inputSchema": schema, "annotations": {"readOnlyHint": true}, "group": "g"}),
    ];
    let uploaded = user.put_catalog(&entries).await.ok();
    assert_eq!((&uploaded["added"]["count"], &uploaded["warnings"]), (&json!(5), &json!([])));
    for name in ["plain", "openai_chat", "openai_responses", "anthropic", "mcp"] {
        let stored = tool(&user, name).await;
        let document = stored.ok();
        assert_eq!((&document["name"], &document["group"], &document["description"]), (&json!(name), &json!("g"), &json!("Does it.")));
        assert!(stored.text().contains(&schema.to_string()), "byte by byte: {}", stored.text());
    }
    assert_eq!(tool(&user, "mcp").await.ok()["annotations"], json!({"readOnlyHint": true}));
    let inline = user.assemble(json!({"tools": entries})).await.ok();
    assert_eq!(names(&inline), ["anthropic", "mcp", "openai_chat", "openai_responses", "plain"]);
    // No group: `other`. No schema: an object without properties, and never a missing field.
    user.put_catalog(&[json!({"name": "bare"}), json!({"name": "null", "parameters": null, "description": null})]).await.ok();
    for name in ["bare", "null"] {
        assert_eq!(tool(&user, name).await.ok()["group"], "other");
    }
    for (format, key) in [("anthropic", "/input_schema/type"), ("openai_chat", "/function/parameters/type")] {
        let assembled = user.assemble(json!({"format": format})).await.ok();
        assert_eq!(assembled["tools"][0].pointer(key), Some(&json!("object")), "{assembled}");
    }
}

#[tokio::test]
async fn a_write_tells_what_it_changed() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["catalog"]);
    let first = user.put_catalog(&[plain("a", "g", "A."), plain("b", "g", "B."), plain("c", "g", "C.")]).await;
    let (one, first_tag) = (first.ok(), etag(&first));
    assert_eq!(one["added"], json!({"count": 3, "names": ["a", "b", "c"]}));
    assert_eq!(first_tag, format!("\"{}\"", one["catalog_version"].as_str().unwrap()));

    let second = [plain("b", "g", "B."), plain("c", "g", "Changed."), plain("d", "g", "D.")];
    let dry = client.put(&format!("{at}?dry_run=true"), &json!({"tools": second})).await.ok();
    assert_eq!(etag(&client.get(&at).await), first_tag, "a dry run writes nothing");
    let two = user.put_catalog(&second).await.ok();
    for answer in [&dry, &two] {
        assert_eq!(answer["added"], json!({"count": 1, "names": ["d"]}));
        assert_eq!(answer["changed"], json!({"count": 1, "names": ["c"]}));
        assert_eq!(answer["removed"], json!({"count": 1, "names": ["a"]}));
        assert_eq!(answer["unchanged"]["count"], 1);
    }
    assert_eq!((&dry["dry_run"], &two["dry_run"]), (&json!(true), &json!(false)));
    assert_eq!(dry["catalog_version"], two["catalog_version"]);

    let patch = json!({"upsert": [plain("b", "g", "Better."), plain("e", "g", "E.")], "remove": ["d", "never_there"]});
    let patched = client.patch(&at, &patch).await.ok();
    assert_eq!(patched["added"]["names"], json!(["e"]));
    assert_eq!(patched["changed"]["names"], json!(["b"]));
    assert_eq!(patched["removed"]["names"], json!(["d"]));
    assert_eq!(patched["unchanged"]["count"], 1);
    let missing = patched["warnings"].as_array().unwrap().iter().find(|warning| warning["pointer"] == "/remove/1");
    assert!(missing.is_some(), "{patched}");
    assert_eq!(names(&client.get(&at).await.ok()), ["b", "c", "e"]);
    let nothing = client.patch(&at, &json!({})).await.ok();
    assert_eq!((&nothing["unchanged"]["count"], &nothing["catalog_version"]), (&json!(3), &patched["catalog_version"]));

    // The content decides: the same tools give the same version, in any scope.
    let other = app.user();
    other.put_catalog(&second).await.ok();
    assert_eq!(other.put_catalog(&second).await.ok()["catalog_version"], two["catalog_version"]);

    client.delete(&at).await.expect_status(204);
    client.delete(&at).await.expect_status(204);
    let empty = client.get(&at).await;
    assert_eq!(empty.ok()["tools"], json!([]));
    assert_ne!(etag(&empty), first_tag);
}

#[tokio::test]
async fn writes_hold_to_the_version_that_they_name() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["catalog"]);
    let put = user.put_catalog(&[plain("a", "g", "A.")]).await;
    let tag = etag(&put);
    let body = json!({"tools": [plain("b", "g", "B.")]}).to_string();
    for (method, body) in [
        (Method::PUT, body.clone()),
        (Method::PATCH, json!({"remove": ["a"]}).to_string()),
        (Method::DELETE, String::new()),
    ] {
        let headers = [JSON, ("if-match", "\"0000\"")];
        client.send(method, &at, &headers, body.into()).await.problem(412, "precondition_failed");
        assert_eq!(etag(&client.get(&at).await), tag);
    }
    let now = client.send(Method::GET, &at, &[("if-none-match", &tag)], "".into()).await;
    now.expect_status(304);
    let put = client.send(Method::PUT, &at, &[JSON, ("if-match", &tag)], body.into()).await;
    put.ok();
    assert_ne!(etag(&put), tag);
    client.send(Method::DELETE, &at, &[("if-match", &tag)], "".into()).await.problem(412, "precondition_failed");
    client.send(Method::DELETE, &at, &[("if-match", &etag(&put))], "".into()).await.expect_status(204);
}

#[tokio::test]
async fn an_upload_that_differs_in_order_alone_is_unchanged_and_keeps_the_stored_bytes() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["catalog"]);
    let one = r#"{"tools":[{"name":"a","description":"A.","parameters":{"type":"object","properties":{"x":{"type":"string","title":"X"},"y":{}}}},{"name":"b","description":"B\u002e"}]}"#;
    let two = r#"{"tools": [ {"description": "B.", "name": "b"}, {"parameters": {"properties": {"y": {}, "x": {"title": "X", "type": "string"}}, "type": "object"}, "name": "a", "description": "A."} ]}"#;
    let first = raw(client, Method::PUT, &at, one).await;
    first.ok();
    let stored = client.get(&at).await;
    let again = raw(client, Method::PUT, &at, two).await;
    let written = again.ok();
    assert_eq!(written["unchanged"]["count"], 2, "{written}");
    for kind in ["added", "changed", "removed"] {
        assert_eq!(written[kind]["count"], 0, "{written}");
    }
    assert_eq!(etag(&again), etag(&first));
    assert_eq!(client.get(&at).await.text(), stored.text(), "the bytes stay");
    // The order of an array has a meaning, and so has a value.
    let three = one.replace("\"title\":\"X\"", "\"title\":\"Y\"");
    assert_eq!(raw(client, Method::PUT, &at, three).await.ok()["changed"]["names"], json!(["a"]));
}

#[tokio::test]
async fn what_is_read_can_be_written_back() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["catalog"]);
    let entries = [
        json!({"name": "search", "group": "a", "description": "Search a.", "parameters": {"type": "object"}}),
        json!({"name": "search", "group": "b", "description": "Search b.", "input_schema": {"type": "object", "properties": {}}}),
        json!({"type": "function", "function": {"name": "mit.punkt und leer", "description": "Ü\u{200b}", "strict": true}}),
        json!({"name": "tool_search", "description": "Named like the bridge.", "always_load": true, "override": true, "aliases": ["x", "y"]}),
        json!({"name": "m", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false}, "_meta": {"k": [1, 2.50, 1e3]}, "outputSchema": {"type": "object"}}),
        json!({"name": "a__x", "group": "q"}),
    ];
    user.put_catalog(&entries).await.ok();
    let read = client.get(&at).await;
    let back = raw(client, Method::PUT, &at, read.text()).await.ok();
    assert_eq!(back["unchanged"]["count"], 6, "{back}");
    for kind in ["added", "changed", "removed"] {
        assert_eq!(back[kind]["count"], 0, "{back}");
    }
    assert_eq!(client.get(&at).await.text(), read.text());
    // Also into another scope: the same content, the same version.
    let other = app.user();
    raw(client, Method::PUT, &other.path(&["catalog"]), read.text()).await.ok();
    assert_eq!(etag(&client.get(&other.path(&["catalog"])).await), etag(&read));
}

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
    let known = user.client().send(Method::GET, &user.path(&["catalog", "tools", "lone"]), &[("if-none-match", &etag(&read))], "".into()).await;
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
    let mut candidates: Vec<&str> = found["not_found"][0]["suggestions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
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
        "service.doSomething", "josef.prochazka--x", "DELETE_/loadpoints/{id}", "get_/whoami", "MyModule::PingPing",
        "name with spaces", "9starts_with_digit", "-dash", "click_on_link(url=\"x\")", "日本語の道具", "émoji 🦀", "search-a",
        "search_a", "search a", "search.a", "search/a", "a/b/c", "createConfluencePageForASpaceWithAVeryLongNameThatIsCutAtTheEnd_one",
        "createConfluencePageForASpaceWithAVeryLongNameThatIsCutAtTheEnd_two", &long, "fits_as_it_is", "_underscore",
        "tool_search", "tool_describe", "tool_call",
    ];
    let tools: Vec<Value> = uploaded.iter().map(|name| json!({"name": name, "description": "Does it."})).collect();
    user.put_catalog(&tools).await.ok();
    for config in [json!({"enabled": "off"}), json!({"enabled": "on", "core": ["*"]}), json!({"enabled": "on", "core": ["*"], "bridge_prefix": "tr_"})] {
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
            assert!(name.len() <= 64 && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'), "{name}");
        }
        let map = assembled["name_map"].as_object().unwrap();
        let mut back: Vec<&str> = wire.iter().map(|name| map.get(name).and_then(Value::as_str).unwrap_or(name)).collect();
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
            assert!(!wire.iter().any(|name| ["tool_search", "tool_describe", "tool_call"].contains(&name.as_str())), "{wire:?}");
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
    let mut tools: Vec<Value> = (0..20).map(|at| plain(&format!("filler_{at}"), "f", "Does nothing of note.")).collect();
    tools.push(plain("tool_search", "shop", "Search hammers and saws in the shop."));
    user.put_catalog(&tools).await.ok();
    let assembled = user.assemble(json!({"session": "s"})).await.ok();
    let entry = assembled["tools"].as_array().unwrap().iter().filter(|tool| tool["name"] == "tool_search").count();
    assert_eq!(entry, 1, "the bridge alone");
    let found = user.search(json!({"session": "s", "query": "hammers and saws"})).await.ok();
    let best = &found["results"][0]["matches"][0];
    assert_eq!(best["name"], "tool_search");
    let wire = best["wire_name"].as_str().unwrap().to_owned();
    assert!(wire.starts_with("tool_search_"), "{wire}");
    let call = user.call(json!({"session": "s", "name": "tool_search", "arguments": {"query": "x"}})).await.ok();
    assert_eq!(call["results"][0]["error"]["code"], "bridge_tool");
    let call = user.call(json!({"session": "s", "name": wire, "arguments": {}})).await.ok();
    assert_eq!(call["results"][0]["dispatch"]["name"], "tool_search");
    let next = user.assemble(json!({"session": "s"})).await.ok();
    assert_eq!(next["warm"], json!(["tool_search"]));
    assert_eq!(next["name_map"][&wire], "tool_search");
}

#[tokio::test]
async fn user_and_project_join_by_name_and_clashes_are_told() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let project = unique("project");
    let at = path(&["v1", "projects", &project, "catalog"]);
    user.put_catalog(&[plain("mine", "g", "Mine."), plain("both", "g", "The user's.")]).await.ok();
    let theirs = |overrides: bool| {
        json!({"tools": [plain("theirs", "g", "Theirs."), {"name": "both", "group": "g", "description": "The project's.", "override": overrides}]})
    };
    let seen = || async {
        let answer = user.assemble(json!({"project": project})).await.ok();
        let both = answer["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "both").unwrap();
        (names(&answer), both["description"].as_str().unwrap().to_owned(), answer["warnings"].to_string())
    };
    client.put(&at, &theirs(false)).await.ok();
    let (all, both, warnings) = seen().await;
    assert_eq!((all.len(), &*both), (3, "The user's."));
    assert!(warnings.contains("both"), "{warnings}");
    client.put(&at, &theirs(true)).await.ok();
    let (all, both, warnings) = seen().await;
    assert_eq!((all.len(), &*both), (3, "The project's."));
    assert!(warnings.contains("both"), "{warnings}");
    user.put_config(&json!({"core": ["both"], "enabled": "off"})).await.ok();
    assert_eq!(seen().await.1, "The user's.", "not over what the user has in core");
    user.put_config(&json!({})).await.ok();
    client.put(&path(&["v1", "projects", &project, "config"]), &json!({"core": ["both"]})).await.ok();
    assert_eq!(seen().await.1, "The project's.", "the project's own core does not count");
    // Without the project nothing of it is there.
    assert_eq!(names(&user.assemble(json!({})).await.ok()).len(), 2);
    let described = user.describe(json!({"name": "theirs"})).await.ok();
    assert_eq!(described["tools"], json!([]));
}

#[tokio::test]
async fn a_write_is_seen_by_the_next_request() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["catalog"]);
    user.put_config(&json!({"min_catalog_size": 0})).await.ok();
    for round in 0..10 {
        let name = format!("brew_coffee_{round}");
        client.patch(&at, &json!({"upsert": [plain(&name, "kitchen", "Brew a cup of coffee.")]})).await.ok();
        let found = user.search(json!({"query": name})).await.ok();
        assert_eq!(found["results"][0]["matches"][0]["name"], name, "{found}");
        let listing = user.assemble(json!({})).await.ok()["listing"]["text"].as_str().unwrap().to_owned();
        assert!(listing.contains(&name));
        client.patch(&at, &json!({"remove": [name]})).await.ok();
        let found = user.search(json!({"query": name})).await.ok();
        assert!(!found["results"].to_string().contains(&format!("\"name\":\"{name}\"")), "{found}");
        assert_eq!(user.call(json!({"name": name})).await.ok()["results"][0]["error"]["code"], "unknown_tool");
    }
}
