//! Stored catalogs: what may be uploaded, what a write changes, and what tools are called.

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, Client, TestApp, User, path, unique};
use crate::model::{self, FORMATS, check_array};

mod names;
mod provenance;

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
    let schema = json!({"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}},
        "required": ["b"]});
    let entries = [
        json!({"name": "plain", "group": "g", "description": "Does it.", "parameters": schema}),
        json!({"type": "function", "function": {"name": "openai_chat", "description": "Does it.",
            "parameters": schema}, "group": "g"}),
        json!({"type": "function", "name": "openai_responses", "description": "Does it.",
            "parameters": schema, "strict": false, "group": "g"}),
        json!({"name": "anthropic", "description": "Does it.", "input_schema": schema, "group": "g"}),
        json!({"name": "mcp", "title": "T", "description": "Does it.", "inputSchema": schema,
            "annotations": {"readOnlyHint": true}, "group": "g"}),
        json!({"toolSpec": {"name": "bedrock", "description": "Does it.", "inputSchema": {"json": schema}},
            "group": "g"}),
        json!({"functionDeclarations": [
            {"name": "gemini", "description": "Does it.", "parametersJsonSchema": schema},
            {"name": "gemini_old", "description": "Does it.", "parameters": {"type": "OBJECT",
                "properties": {"b": {"type": "STRING"}, "a": {"type": "INTEGER"}}, "required": ["b"]}},
        ], "group": "g"}),
        json!({"type": "namespace", "name": "g", "description": "All of it.", "tools": [
            {"type": "function", "name": "spaced", "description": "Does it.", "parameters": schema}]}),
    ];
    let shapes = [
        "anthropic",
        "bedrock",
        "gemini",
        "gemini_old",
        "mcp",
        "openai_chat",
        "openai_responses",
        "plain",
        "spaced",
    ];
    let uploaded = user.put_catalog(&entries).await.ok();
    assert_eq!((&uploaded["added"]["count"], &uploaded["warnings"]), (&json!(shapes.len()), &json!([])));
    for name in shapes {
        let stored = tool(&user, name).await;
        let document = stored.ok();
        assert_eq!(
            (&document["name"], &document["group"], &document["description"]),
            (&json!(name), &json!("g"), &json!("Does it."))
        );
        assert!(stored.text().contains(&schema.to_string()), "byte by byte: {}", stored.text());
    }
    assert_eq!(tool(&user, "mcp").await.ok()["annotations"], json!({"readOnlyHint": true}));
    let inline = user.assemble(json!({"tools": entries})).await.ok();
    assert_eq!(names(&inline), shapes);
    // No group: `other`. No schema: an object without properties, and never a missing field.
    user.put_catalog(&[
        json!({"name": "bare"}),
        json!({"name": "null", "parameters": null, "description": null}),
    ])
    .await
    .ok();
    for name in ["bare", "null"] {
        assert_eq!(tool(&user, name).await.ok()["group"], "other");
    }
    for format in FORMATS {
        let assembled = user.assemble(json!({"format": format})).await.ok();
        let schema = model::schema_of(format, &model::entries(&assembled["tools"])[0]);
        assert_eq!(schema.is_none(), format == "gemini", "{assembled}");
        assert!(schema.is_none_or(|schema| schema["type"] == "object"), "{assembled}");
    }
}

#[tokio::test]
async fn an_array_goes_out_as_it_came_in() {
    let app = TestApp::start().await;
    let schema = json!({"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}},
        "required": ["z"]});
    let closed = json!({"type": "object", "properties": {"z": {"type": "string"}}, "required": ["z"],
        "additionalProperties": false});
    let named = |name: &str, key: &str| json!({"name": name, "description": "Does it.", key: schema});
    // A provider would refuse a strict tool whose schema is not.
    let strict = || json!({"name": "b", "description": "Does it.", "parameters": closed, "strict": true});
    let with = |mut tool: Value, more: Value| {
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool
    };
    let own = json!({"type": "OBJECT", "properties": {"z": {"type": "STRING", "nullable": true}}});
    let arrays = [
        ("canonical", json!([named("a", "parameters"), named("b", "parameters")])),
        (
            "openai_chat",
            json!([
                {"type": "function", "function": named("a", "parameters")},
                {"type": "function", "function": strict()},
            ]),
        ),
        (
            "openai_responses",
            json!([
                with(named("a", "parameters"), json!({"type": "function", "strict": false})),
                with(json!({"type": "function"}), strict()),
            ]),
        ),
        (
            "anthropic",
            json!([
                named("a", "input_schema"),
                with(named("b", "input_schema"), json!({"type": "custom", "input_examples": [{"z": "x"}]})),
            ]),
        ),
        (
            "gemini",
            json!([{"functionDeclarations": [
                named("a", "parametersJsonSchema"),
                {"name": "b", "description": "Does it.", "parameters": own},
                {"name": "c", "description": "Takes nothing."},
            ]}]),
        ),
        (
            "bedrock_converse",
            json!([{"toolSpec": {"name": "a", "description": "Does it.", "inputSchema": {"json": schema}}}]),
        ),
        (
            "mcp",
            json!([
                named("a", "inputSchema"),
                with(
                    named("b", "inputSchema"),
                    json!({"title": "B", "annotations": {"readOnlyHint": true},
                    "outputSchema": {"type": "object"}})
                ),
            ]),
        ),
    ];
    for (format, array) in arrays {
        let user = app.user();
        let live = user.assemble(json!({"format": format, "tools": array})).await;
        assert_eq!(live.ok()["tools"], array, "{format}");
        assert!(format == "gemini" || live.text().contains(&schema.to_string()), "{format}: byte by byte");
        let written = user.put_catalog(array.as_array().unwrap()).await.ok();
        assert_eq!(written["warnings"], json!([]), "{format}");
        let stored = user.assemble(json!({"format": format})).await.ok();
        assert_eq!(stored["tools"], array, "{format}");
        // What a GET shows can be sent back.
        let shown = user.client().get(&user.path(&["catalog"])).await.ok();
        let again = user.put_catalog(shown["tools"].as_array().unwrap()).await.ok();
        assert_eq!(again["unchanged"]["count"], json!(model::entries(&array).len()), "{format}");
        for other in FORMATS {
            check_array(other, &user.assemble(json!({"format": other})).await.ok());
        }
    }
}

#[tokio::test]
async fn a_write_tells_what_it_changed() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let at = user.path(&["catalog"]);
    let first =
        user.put_catalog(&[plain("a", "g", "A."), plain("b", "g", "B."), plain("c", "g", "C.")]).await;
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

    let patch = json!({"upsert": [plain("b", "g", "Better."), plain("e", "g", "E.")], "remove": ["d",
        "never_there"]});
    let patched = client.patch(&at, &patch).await.ok();
    assert_eq!(patched["added"]["names"], json!(["e"]));
    assert_eq!(patched["changed"]["names"], json!(["b"]));
    assert_eq!(patched["removed"]["names"], json!(["d"]));
    assert_eq!(patched["unchanged"]["count"], 1);
    let missing =
        patched["warnings"].as_array().unwrap().iter().find(|warning| warning["pointer"] == "/remove/1");
    assert!(missing.is_some(), "{patched}");
    assert_eq!(names(&client.get(&at).await.ok()), ["b", "c", "e"]);
    let nothing = client.patch(&at, &json!({})).await.ok();
    assert_eq!(
        (&nothing["unchanged"]["count"], &nothing["catalog_version"]),
        (&json!(3), &patched["catalog_version"])
    );

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
    client
        .send(Method::DELETE, &at, &[("if-match", &tag)], "".into())
        .await
        .problem(412, "precondition_failed");
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
        json!({"name": "search", "group": "b", "description": "Search b.", "input_schema": {"type": "object",
            "properties": {}}}),
        json!({"type": "function", "function": {"name": "mit.punkt und leer", "description": "Ü\u{200b}",
            "strict": true}}),
        json!({"name": "tool_search", "description": "Named like the bridge.", "always_load": true,
            "override": true, "aliases": ["x", "y"]}),
        json!({"name": "m", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false},
            "_meta": {"k": [1, 2.50, 1e3]}, "outputSchema": {"type": "object"}}),
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
async fn user_and_project_join_by_name_and_clashes_are_told() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let project = unique("project");
    let at = path(&["v1", "projects", &project, "catalog"]);
    user.put_catalog(&[plain("mine", "g", "Mine."), plain("both", "g", "The user's.")]).await.ok();
    let theirs = |overrides: bool| {
        json!({"tools": [plain("theirs", "g", "Theirs."), {"name": "both",
        "group": "g", "description": "The project's.", "override": overrides}]})
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
        assert_eq!(
            user.call(json!({"name": name})).await.ok()["results"][0]["error"]["code"],
            "unknown_tool"
        );
    }
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let app = TestApp::start().await;
    let user = app.user();
    let at = user.path(&["catalog"]);
    let patches = (0..12).map(|number| {
        let (client, at) = (app.admin().clone(), at.clone());
        let change = json!({"upsert": [plain(&format!("t{number:02}"), "g", "Does it.")]});
        tokio::spawn(async move { client.patch(&at, &change).await.status })
    });
    for patch in patches.collect::<Vec<_>>() {
        assert_eq!(patch.await.unwrap(), 200);
    }
    let expected: Vec<String> = (0..12).map(|number| format!("t{number:02}")).collect();
    assert_eq!(names(&app.admin().get(&at).await.ok()), expected);
    // Whole uploads: one of them is there in the end, never a mixture.
    let uploads = (0..8).map(|number| {
        let user = user.clone();
        let tools: Vec<Value> = (0..5).map(|at| plain(&format!("u{number}_{at}"), "g", "Does it.")).collect();
        tokio::spawn(async move { user.put_catalog(&tools).await.status })
    });
    for upload in uploads.collect::<Vec<_>>() {
        assert_eq!(upload.await.unwrap(), 200);
    }
    let last = names(&app.admin().get(&at).await.ok());
    assert_eq!(last.len(), 5, "{last:?}");
    assert!(last.iter().all(|name| name[..3] == last[0][..3]), "{last:?}");
}
