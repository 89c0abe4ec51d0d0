//! Calls of found tools, as models really write them, on the call route and through the bridge.

use serde_json::{Value, json};

use crate::app::{TestApp, User};

mod bridge;

/// Tools with schemas to break; all deferred but `read_file`.
async fn desk(app: &TestApp) -> User {
    let user = app.user();
    let booking = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 2},
            "nights": {"type": "integer", "minimum": 1, "maximum": 30},
            "room": {"type": "object", "properties": {"kind": {"enum": ["single", "double"]}}, "required": ["kind"]},
            "guests": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city", "nights"],
        "additionalProperties": false,
    });
    let tools = [
        json!({"name": "book_hotel", "group": "travel", "description": "Book a hotel room.",
            "parameters": booking}),
        json!({"name": "book.train", "group": "travel", "description": "Book a seat in a train.",
            "parameters": {"type": "object"}}),
        json!({"name": "list_trips", "group": "travel", "description": "List all trips.",
            "parameters": {"type": "object", "properties": {}}}),
        json!({"name": "run_query", "group": "data", "description": "Run a query.",
               "parameters": {"type": "object", "properties": {"arguments": {"type": "object"}, "input": {"type": "string"}}}}),
        json!({"name": "no_schema", "group": "data", "description": "Takes anything."}),
        json!({"name": "odd_schema", "group": "data", "description": "A schema of no use.",
               "parameters": {"type": "object", "$ref": "https://schemas.example.com/x.json", "properties": {"a": {"pattern": "(?<!x)("}}}}),
        json!({"name": "delete_data", "group": "danger", "description": "Delete all data.",
            "parameters": {"type": "object"}}),
        json!({"name": "read_file", "group": "files", "description": "Read a file.",
            "parameters": {"type": "object"}}),
    ];
    user.put_catalog(&tools).await.ok();
    user.put_config(&json!({"min_catalog_size": 0, "core": ["read_file"], "deny": ["@danger"]})).await.ok();
    user
}

async fn call(user: &User, name: &str, arguments: Value) -> Value {
    user.call(json!({"name": name, "arguments": arguments})).await.ok()["results"][0].clone()
}

#[tokio::test]
async fn arguments_are_taken_in_every_way_that_models_write_them() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let good = json!({"city": "Oslo", "nights": 2});
    for arguments in [
        good.clone(),
        json!(good.to_string()),
        json!(json!(good.to_string()).to_string()),
        json!(format!("  {good}\n")),
        json!({"arguments": good}),
        json!({"arguments": good.to_string()}),
        json!({"name": "book_hotel", "arguments": good}),
        json!({"parameters": good}),
    ] {
        let result = call(&user, "book_hotel", arguments.clone()).await;
        assert_eq!(
            (&result["ok"], &result["dispatch"]["arguments"]),
            (&json!(true), &good),
            "{arguments}: {result}"
        );
    }
    for arguments in [json!({}), json!(""), json!("  "), json!(null), json!("{}"), json!("null")] {
        let result = call(&user, "list_trips", arguments.clone()).await;
        assert_eq!(
            (&result["ok"], &result["dispatch"]["arguments"]),
            (&json!(true), &json!({})),
            "{arguments}: {result}"
        );
    }
    let absent = user.call(json!({"name": "list_trips"})).await.ok();
    assert_eq!(absent["results"][0]["dispatch"]["arguments"], json!({}));
    // What a tool declares itself is never taken for a wrapper.
    let own = json!({"arguments": {"city": "Oslo"}});
    assert_eq!(call(&user, "run_query", own.clone()).await["dispatch"]["arguments"], own);
    let own = json!({"input": "select 1"});
    assert_eq!(call(&user, "run_query", own.clone()).await["dispatch"]["arguments"], own);
    // Beside the name, in entries only: the route itself is strict.
    let hoisted =
        user.call(json!({"calls": [{"name": "book_hotel", "city": "Oslo", "nights": 2}]})).await.ok();
    assert_eq!(hoisted["results"][0]["dispatch"]["arguments"], good);
    user.call(json!({"name": "book_hotel", "city": "Oslo", "nights": 2}))
        .await
        .problem(422, "invalid_request");
    // Numbers, order of keys and texts come through as they are.
    let exact = json!({"z": 1.5, "a": 12345678901234567_u64, "text": "ä\n\"\u{1f980}", "n": null, "list": [1,
        "1", true]});
    assert_eq!(
        call(&user, "no_schema", exact.clone()).await["dispatch"]["arguments"].to_string(),
        exact.to_string()
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_that_says_how_to_mend_it() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    for (arguments, code) in [
        (json!("{\"city\": "), "malformed_arguments"),
        (json!("Oslo please"), "malformed_arguments"),
        (json!([1]), "arguments_not_an_object"),
        (json!(7), "arguments_not_an_object"),
        (json!(true), "arguments_not_an_object"),
        (json!("[1, 2]"), "arguments_not_an_object"),
        (json!(format!("{}1{}", "[".repeat(90), "]".repeat(90))), "arguments_too_deep"),
    ] {
        let result = call(&user, "book_hotel", arguments.clone()).await;
        let error = &result["error"];
        assert_eq!((&result["ok"], &error["code"]), (&json!(false), &json!(code)), "{arguments}: {result}");
        assert_eq!(error["schema"]["required"], json!(["city", "nights"]), "{result}");
        assert!(error["message"].as_str().unwrap().contains("NOT called"), "{result}");
    }
}

#[tokio::test]
async fn missing_arguments_come_back_with_the_schema_and_one_retry_mends_the_call() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let result = call(&user, "book_hotel", json!({"guests": ["Ada"], "nigths": 2})).await;
    let error = &result["error"];
    assert_eq!(
        (&error["code"], &error["missing"]),
        (&json!("missing_arguments"), &json!(["city", "nights"]))
    );
    assert_eq!(error["received_keys"], json!(["guests", "nigths"]));
    assert_eq!(error["schema"]["properties"]["nights"]["maximum"], 30);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("city") && message.contains("nights"), "{message}");
    let mended = call(&user, "book_hotel", json!({"city": "Oslo", "nights": 2})).await;
    assert_eq!(mended["ok"], true);
}

#[tokio::test]
async fn the_whole_schema_is_checked_with_path_and_constraint() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let with = |key: &str, value: Value| {
        let mut arguments = json!({"city": "Oslo", "nights": 2});
        arguments[key] = value;
        arguments
    };
    for (arguments, path, constraint) in [
        (with("city", json!("O")), "city", "minLength"),
        (with("nights", json!(31)), "nights", "maximum"),
        (with("nights", json!(0)), "nights", "minimum"),
        (with("nights", json!(1.5)), "nights", "type"),
        (with("city", json!(["Oslo"])), "city", "type"),
        (with("room", json!({"kind": "suite"})), "room.kind", "enum"),
        (with("room", json!({})), "room", "required"),
        (with("guests", json!(["Ada", 7])), "guests", "type"),
        (with("pets", json!(1)), "", "additionalProperties"),
    ] {
        let result = call(&user, "book_hotel", arguments.clone()).await;
        let error = &result["error"];
        let found =
            (error["code"].as_str().unwrap_or_default(), error["constraint"].as_str().unwrap_or_default());
        assert_eq!(found, ("invalid_arguments", constraint), "{arguments}: {result}");
        assert!(error["path"].as_str().unwrap().contains(path), "{arguments}: {result}");
        assert!(error["schema"].is_object(), "{result}");
    }
    // A schema that cannot be used stops nobody.
    for arguments in [json!({"a": "x"}), json!({}), json!({"b": [1]})] {
        assert_eq!(call(&user, "odd_schema", arguments.clone()).await["ok"], true, "{arguments}");
    }
    assert_eq!(call(&user, "no_schema", json!({"any": {"thing": 1}})).await["ok"], true);
}

#[tokio::test]
async fn unknown_and_forbidden_names_get_the_same_answer() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let same = |result: Value, name: &str| result.to_string().replace(name, "NAME");
    let forbidden = same(call(&user, "delete_data", json!({})).await, "delete_data");
    let unknown = same(call(&user, "qwertz_data", json!({})).await, "qwertz_data");
    assert_eq!(forbidden, unknown);
    assert!(forbidden.contains("unknown_tool"), "{forbidden}");
    for (route, body) in [
        ("/v1/describe", json!({"name": "NAME"})),
        (
            "/v1/bridge",
            json!({"call": {"id": "1", "name": "tool_call", "arguments": {"name": "NAME", "arguments": {}}}}),
        ),
        ("/v1/bridge", json!({"call": {"id": "1", "name": "tool_describe", "arguments": {"name": "NAME"}}})),
        ("/v1/bridge", json!({"call": {"id": "1", "name": "NAME", "arguments": {}}})),
    ] {
        let answer = async |name: &str| {
            let body = serde_json::from_str(&body.to_string().replace("NAME", name)).unwrap();
            let mut answer = user.post(route, body).await.ok();
            // One name may have more tokens than the other.
            if let Some(tokens) = answer.pointer_mut("/results/0/tokens") {
                *tokens = Value::Null;
            }
            same(answer, name)
        };
        assert_eq!(answer("delete_data").await, answer("qwertz_data").await, "{route}");
    }
    for near in ["delete_dat", "deletedata", "delete"] {
        let result = call(&user, near, json!({})).await;
        assert!(!result.to_string().contains("delete_data"), "no suggestion of what is denied: {result}");
    }
    let near = call(&user, "book_hotl", json!({})).await;
    assert_eq!(near["error"]["suggestions"][0], "book_hotel", "{near}");
}

#[tokio::test]
async fn calls_are_dispatched_under_their_real_names_and_ids_that_tell_repeats() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let found = user.search(json!({"query": "seat in a train"})).await.ok();
    let wire = found["results"][0]["matches"][0]["wire_name"].as_str().unwrap().to_owned();
    let calls = json!([
        {"name": "list_trips", "arguments": {}},
        {"name": wire, "arguments": {"a": 1}},
        {"name": "list_trips"},
        {"name": "book_hotel", "arguments": {}},
        {"name": "list_trips", "arguments": "{}"},
        7,
        {"arguments": {}},
        "{\"name\": \"list_trips\"}",
        {"type": "function", "function": {"name": "list_trips", "arguments": "{}"}},
    ]);
    let answer = user.call(json!({"calls": calls, "call_id": "abc"})).await.ok();
    let results = answer["results"].as_array().unwrap();
    let ids: Vec<Option<&str>> = results.iter().map(|result| result["dispatch"]["id"].as_str()).collect();
    assert_eq!(
        ids,
        [
            Some("abc:tool:list_trips"),
            Some("abc:tool:book.train"),
            Some("abc:tool:list_trips#2"),
            None,
            Some("abc:tool:list_trips#3"),
            None,
            None,
            Some("abc:tool:list_trips#4"),
            Some("abc:tool:list_trips#5"),
        ]
    );
    assert_eq!(results[1]["dispatch"]["name"], "book.train");
    assert_eq!(results[3]["error"]["code"], "missing_arguments", "per entry: the others are not lost");
    for at in [5, 6] {
        let message = results[at]["error"]["message"].as_str().unwrap();
        assert!(message.contains(&at.to_string()), "{message}");
    }
    let plain = user.call(json!({"name": "list_trips"})).await.ok();
    assert_eq!(plain["results"][0]["dispatch"]["id"], "call:tool:list_trips");
}

#[tokio::test]
async fn core_and_warm_tools_can_be_called_and_the_bridge_cannot() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    user.assemble(json!({"session": "s"})).await.ok();
    let body = |name: &str| json!({"session": "s", "name": name, "arguments": {}});
    let core = user.call(body("read_file")).await.ok();
    assert_eq!((&core["results"][0]["ok"], &core["warmed"]), (&json!(true), &json!([])));
    let first = user.call(body("list_trips")).await.ok();
    assert_eq!((&first["results"][0]["ok"], &first["warmed"]), (&json!(true), &json!(["list_trips"])));
    let again = user.call(body("list_trips")).await.ok();
    assert_eq!((&again["results"][0]["ok"], &again["warmed"]), (&json!(true), &json!([])));
    // Warm also when the arguments were wrong; the next array has the schema.
    let wrong = user.call(body("book_hotel")).await.ok();
    assert_eq!((&wrong["results"][0]["ok"], &wrong["warmed"]), (&json!(false), &json!(["book_hotel"])));
    assert_eq!(
        user.assemble(json!({"session": "s"})).await.ok()["warm"],
        json!(["list_trips", "book_hotel"])
    );
    for name in ["tool_search", "tool_describe", "tool_call"] {
        let result = call(&user, name, json!({})).await;
        assert_eq!(
            (&result["ok"], &result["error"]["code"]),
            (&json!(false), &json!("bridge_tool")),
            "{name}"
        );
        let arguments = json!({"name": name, "arguments": {"query": "x"}});
        let answer =
            user.bridge(json!({"call": {"id": "1", "name": "tool_call", "arguments": arguments}})).await.ok();
        assert_eq!(
            (&answer["results"][0]["action"], &answer["results"][0]["is_error"]),
            (&json!("respond"), &json!(true))
        );
    }
}

#[tokio::test]
async fn the_grant_of_the_last_assembly_holds_and_can_only_be_narrowed() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    user.assemble(json!({"session": "s", "allow": ["@travel"], "deny": ["book.train"]})).await.ok();
    let ok = async |body: Value| user.call(body).await.ok()["results"][0]["ok"].clone();
    assert_eq!(ok(json!({"session": "s", "name": "list_trips"})).await, true);
    assert_eq!(ok(json!({"session": "s", "name": "no_schema"})).await, false);
    assert_eq!(ok(json!({"session": "s", "name": "no_schema", "allow": ["*"]})).await, false, "never wider");
    assert_eq!(ok(json!({"session": "s", "name": "book.train", "deny": []})).await, false);
    assert_eq!(
        ok(json!({"session": "s", "name": "list_trips", "deny": ["list_*"]})).await,
        false,
        "narrower"
    );
    assert_eq!(ok(json!({"session": "s", "name": "list_trips"})).await, true, "for that request alone");
    user.assemble(json!({"session": "s"})).await.ok();
    assert_eq!(ok(json!({"session": "s", "name": "no_schema"})).await, true, "each assembly states it anew");
}
