//! The providers' own deferred tools: arrays that hold or name them, and searches whose answers load them.

use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::model::{array_names, warning_codes};

/// Two groups of tools, of which one is core.
fn tools() -> Vec<Value> {
    let tool = |group: &str, name: &str, description: &str| {
        json!({"name": name, "group": group, "description": description, "parameters": {"type": "object",
            "properties": {"path": {"type": "string", "description": "Where."}}, "required": ["path"]}})
    };
    let mut tools: Vec<Value> = ["read", "write", "move", "rename", "copy", "compress"]
        .iter()
        .map(|verb| tool("files", &format!("{verb}_file"), &format!("Does {verb} a file on the disk.")))
        .collect();
    tools.extend(["weather", "tide", "moon", "pollen", "river", "snow", "wind", "storm"].iter().map(
        |what| tool("sky", &format!("{what}.report"), &format!("Reports the {what} of a place for today.")),
    ));
    tools
}

async fn user(app: &TestApp, config: Value) -> User {
    let user = app.user();
    user.put_catalog(&tools()).await.ok();
    let mut config = config;
    config["core"] = json!(["read_file"]);
    user.put_config(&config).await.ok();
    user
}

fn entries(answer: &Value) -> &[Value] {
    answer["tools"].as_array().unwrap_or_else(|| panic!("{answer}"))
}

fn is_deferred(entry: &Value) -> bool {
    entry.get("defer_loading") == Some(&json!(true))
}

fn names(entries: impl IntoIterator<Item = impl std::borrow::Borrow<Value>>) -> Vec<String> {
    entries.into_iter().map(|entry| entry.borrow()["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn names_of_references(blocks: &[Value]) -> Vec<&str> {
    blocks.iter().filter_map(|block| block["tool_name"].as_str()).collect()
}

/// Tools that say that they are strict, and are: more than the provider takes in one request.
#[tokio::test]
async fn strict_tools_stay_within_the_bounds_of_a_request() {
    let app = TestApp::start().await;
    let user = app.user();
    let tools: Vec<Value> = (0..30)
        .map(|at| {
            json!({"name": format!("t{at:02}"), "description": format!("Does thing {at}."), "strict": true,
            "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                "additionalProperties": false}})
        })
        .collect();
    user.put_catalog(&tools).await.ok();
    let count = |answer: &Value| entries(answer).iter().filter(|entry| entry["strict"] == true).count();
    for (config, most) in [(json!({"enabled": "off"}), 20), (json!({"enabled": "on"}), 0)] {
        user.put_config(&config).await.ok();
        for profile in ["generic", "anthropic"] {
            let body = json!({"format": "anthropic", "profile": profile, "exposure": "native"});
            let array = user.assemble(body).await.ok();
            assert_eq!((entries(&array).len() >= 30, count(&array)), (true, most), "{profile} {config}");
        }
    }
}

#[tokio::test]
async fn anthropic_arrays_declare_what_a_search_loads() {
    let app = TestApp::start().await;
    let user = user(&app, json!({"exposure": "native"})).await;
    let assemble = |more: Value| {
        let mut body = json!({"session": "s", "format": "anthropic", "profile": "anthropic"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        user.assemble(body)
    };
    let first = assemble(json!({})).await.ok();
    let (shown, deferred): (Vec<&Value>, Vec<&Value>) =
        entries(&first).iter().partition(|it| !is_deferred(it));
    assert_eq!(names(shown.iter().copied()), ["read_file", "tool_search"]);
    assert_eq!((deferred.len(), entries(&first).iter().position(is_deferred)), (13, Some(2)));
    assert_eq!((&first["counts"]["bridge"], &first["counts"]["deferred"]), (&json!(1), &json!(13)));
    assert_eq!(first["cache"]["breakpoint"], 1, "the place of cache_control is never a deferred tool");
    assert!(first["tokens"]["tools"].as_u64() < first["tokens"]["all"].as_u64(), "{}", first["tokens"]);
    assert!(first["listing"]["text"].as_str().unwrap().contains("tool_search"), "{}", first["listing"]);
    assert!(!first["listing"]["text"].as_str().unwrap().contains("tool_call"), "{}", first["listing"]);

    let call = |id: &str, query: &str| {
        json!({"session": "s",
            "call": {"type": "tool_use", "id": id, "name": "tool_search", "input": {"query": query}}})
    };
    let answer = user.bridge(call("c1", "rename a file")).await.ok();
    let result = &answer["results"][0];
    let block = &result["message"]["content"][0];
    assert_eq!((&block["type"], &block["tool_use_id"]), (&json!("tool_result"), &json!("c1")), "{answer}");
    let loaded: Vec<&str> =
        block["content"].as_array().unwrap().iter().map(|it| it["tool_name"].as_str().unwrap()).collect();
    assert_eq!(loaded[0], "rename_file", "{answer}");
    assert!(block["content"].as_array().unwrap().iter().all(|it| it["type"] == "tool_reference"));
    let declared = names(entries(&first));
    assert!(loaded.iter().all(|name| declared.iter().any(|known| known == name)), "{loaded:?}");
    assert!(result["tokens"].as_u64().unwrap() > 0, "{answer}");

    // What was loaded is called directly, under the tool's own name.
    let direct = json!({"session": "s", "call": {"type": "tool_use", "id": "c2", "name": "rename_file", "input": {"path": "a"}}});
    let direct = user.bridge(direct).await.ok();
    assert_eq!(direct["results"][0]["calls"][0]["name"], "rename_file", "{direct}");

    // The conversation holds it: the array stays as it is until the conversation is cut.
    let second = assemble(json!({})).await.ok();
    assert_eq!((&second["tools"], &second["fingerprint"]), (&first["tools"], &first["fingerprint"]));
    assert_eq!(second["cache"]["break"], false);
    let third = assemble(json!({"epoch": true})).await.ok();
    let found = entries(&third).iter().find(|it| it["name"] == "rename_file").unwrap();
    assert!(!is_deferred(found), "{found}");
    let mut all = names(entries(&third));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), entries(&third).len(), "a name twice is refused by the provider");
    assert_eq!(third["warm"][0], "rename_file", "{third}");

    // A search for what the model sees already says so.
    let again = user.bridge(call("c3", "rename_file")).await.ok();
    let block = &again["results"][0]["message"]["content"][0]["content"];
    let named = block.as_array().map(|blocks| names_of_references(blocks)).unwrap_or_default();
    assert!(!named.contains(&"rename_file"), "{again}");

    // What cannot run at the moment stays declared, since the conversation names it, and is not run.
    let fields = json!({"session": "s", "format": "anthropic", "unavailable": ["copy_file"]});
    let fourth = user.assemble(fields).await.ok();
    assert!(names(entries(&fourth)).contains(&"copy_file".to_owned()), "{fourth}");
    let direct = json!({"session": "s", "call": {"type": "tool_use", "id": "c4", "name": "copy_file", "input": {"path": "a"}}});
    let direct = user.bridge(direct).await.ok();
    assert!(direct["results"][0]["content"].as_str().unwrap().contains("tool_unavailable"), "{direct}");
}

#[tokio::test]
async fn an_edit_of_deferred_tools_costs_no_cache() {
    let app = TestApp::start().await;
    let user = user(&app, json!({"exposure": "native"})).await;
    let body = json!({"session": "s", "format": "anthropic"});
    let first = user.assemble(body.clone()).await.ok();
    let mut more = tools();
    more.push(json!({"name": "aurora.report", "group": "sky", "description": "Reports northern lights."}));
    user.put_catalog(&more).await.ok();
    let second = user.assemble(body).await.ok();
    assert_eq!(
        (&second["cache"]["break"], &second["cache"]["reason"]),
        (&json!(false), &json!("none")),
        "{second}"
    );
    assert_eq!(entries(&second).len(), entries(&first).len() + 1);
    assert_ne!(second["fingerprint"], first["fingerprint"], "the array has other bytes");
    assert!(second["listing"]["changes"]["text"].as_str().unwrap().contains("aurora"), "{second}");
}

#[tokio::test]
async fn responses_load_definitions_by_the_item_that_answers_a_search() {
    let app = TestApp::start().await;
    let user = user(&app, json!({})).await;
    let fields =
        json!({"session": "s", "format": "openai_responses", "profile": "openai", "exposure": "native"});
    let first = user.assemble(fields).await.ok();
    assert_eq!(entries(&first).len(), 2, "{first}");
    let search = &entries(&first)[1];
    assert_eq!((&search["type"], &search["execution"]), (&json!("tool_search"), &json!("client")));
    assert!(search["parameters"]["properties"].get("query").is_some(), "{search}");

    let call = json!({"type": "tool_search_call", "call_id": "s1", "execution": "client", "status": "completed",
        "arguments": {"query": ["report of the tide", "copy a file"]}});
    let answer = user.bridge(json!({"session": "s", "call": call})).await.ok();
    let item = &answer["results"][0]["message"];
    assert_eq!((&item["type"], &item["call_id"]), (&json!("tool_search_output"), &json!("s1")), "{answer}");
    let loaded = item["tools"].as_array().unwrap();
    assert!(loaded.iter().all(is_deferred) && loaded.iter().all(|tool| tool["type"] == "function"), "{item}");
    let first_two = names(&loaded[..2]);
    assert!(first_two[0].starts_with("tide_report") && first_two[1] == "copy_file", "{first_two:?}");
    assert_eq!(loaded[1]["parameters"]["required"], json!(["path"]));

    // The provider names a namespace of the function's own name for a loaded one.
    let call = json!({"type": "function_call", "call_id": "f1", "name": first_two[0], "namespace": first_two[0],
        "arguments": "{\"path\":\"Bergen\"}"});
    let called = user.bridge(json!({"session": "s", "call": call})).await.ok();
    assert_eq!(called["results"][0]["calls"][0]["name"], "tide.report", "{called}");

    // Nothing found, and nothing asked: still an item that the provider takes.
    for arguments in [json!({"query": "zzqx wvut"}), json!({}), json!("{")] {
        let call = json!({"type": "tool_search_call", "call_id": "s2", "arguments": arguments});
        let answer = user.bridge(json!({"session": "s", "call": call})).await.ok();
        let item = &answer["results"][0]["message"];
        assert_eq!((&item["type"], &item["tools"]), (&json!("tool_search_output"), &json!([])), "{answer}");
    }
    let hosted =
        json!({"session": "s", "call": {"type": "tool_search_call", "call_id": null, "execution": "server"}});
    user.bridge(hosted).await.problem(422, "invalid_request");
}

#[tokio::test]
async fn namespaces_hold_the_core_tools_of_their_group() {
    let app = TestApp::start().await;
    let user = app.user();
    user.put_catalog(&tools()).await.ok();
    let groups = json!([{"name": "sky", "description": "Weather and\nwater.", "tools": ["tide.report"]}]);
    user.put_config(&json!({"groups": groups, "core": ["read_file", "copy_file", "tide.report"]})).await.ok();
    let fields = json!({"session": "s", "format": "openai_responses", "exposure": "namespaced"});
    let first = user.assemble(fields.clone()).await.ok();
    assert_eq!(names(entries(&first))[..2], ["files", "sky"]);
    let (files, sky) = (&entries(&first)[0], &entries(&first)[1]);
    assert_eq!(
        (&files["type"], names(files["tools"].as_array().unwrap())),
        (&json!("namespace"), vec!["copy_file".to_owned(), "read_file".to_owned()])
    );
    assert_eq!(sky["description"], "Weather and water.");
    assert_eq!((&first["counts"]["core"], &first["cache"]["breakpoint"]), (&json!(3), &json!(4)));
    let call = json!({"type": "function_call", "call_id": "f", "name": sky["tools"][0]["name"], "namespace": "sky", "arguments": "{\"path\":\"x\"}"});
    let called = user.bridge(json!({"session": "s", "call": call})).await.ok();
    assert_eq!(called["results"][0]["calls"][0]["name"], "tide.report", "{called}");

    // What a search finds stands behind, so that no namespace changes.
    user.search(json!({"session": "s", "query": "rename a file"})).await.ok();
    let second = user.assemble(fields).await.ok();
    assert_eq!(second["cache"]["break"], false, "{second}");
    assert_eq!(
        (second["cache"]["stable_prefix_len"].as_u64(), &entries(&second)[5]["type"]),
        (Some(5), &json!("function"))
    );
}

#[tokio::test]
async fn formats_without_it_get_the_bridge_and_say_so() {
    let app = TestApp::start().await;
    let user = user(&app, json!({"exposure": "native"})).await;
    let gemini = user.assemble(json!({"format": "gemini"})).await.ok();
    assert!(warning_codes(&gemini).contains(&"exposure_unavailable"), "{gemini}");
    assert_eq!(gemini["counts"]["bridge"], 3);
    for (format, exposure) in [("gemini", "native"), ("anthropic", "namespaced"), ("anthropic", "magic")] {
        let problem = user
            .assemble(json!({"format": format, "exposure": exposure}))
            .await
            .problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/exposure", "{problem}");
    }
    let bridge = user.assemble(json!({"format": "anthropic", "exposure": "bridge"})).await.ok();
    assert_eq!((bridge["counts"]["bridge"].as_u64(), warning_codes(&bridge).len()), (Some(3), 0), "{bridge}");
    let whole = user.assemble(json!({"format": "anthropic", "allow": ["read_file", "copy_file"]})).await.ok();
    assert_eq!((array_names(&whole).len(), &whole["tier"]), (2, &json!(0)));
    assert!(!entries(&whole).iter().any(is_deferred), "{whole}");
}

#[tokio::test]
async fn a_tool_that_cannot_be_loaded_is_told_and_called() {
    let app = TestApp::start().await;
    let user = app.user();
    let mut all = tools();
    // Written out, as Bedrock wants it, it would be larger than any schema may grow.
    let references: serde_json::Map<String, Value> =
        (0..40).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/B"}))).collect();
    let definitions = json!({"B": {"type": "string", "description": "x".repeat(10_000)}});
    all.push(json!({"name": "endless", "group": "sky", "description": "Follows a comet forever.",
        "parameters": {"type": "object", "properties": references, "$defs": definitions}}));
    user.put_catalog(&all).await.ok();
    user.put_config(&json!({"exposure": "native", "core": ["read_file"]})).await.ok();
    let fields = json!({"session": "s", "format": "anthropic", "profile": "bedrock"});
    let first = user.assemble(fields).await.ok();
    assert!(warning_codes(&first).contains(&"tool_left_out"), "{first}");
    let shown = names(entries(&first).iter().filter(|it| !is_deferred(it)));
    assert_eq!(shown, ["read_file", "tool_search", "tool_describe", "tool_call"]);
    let call =
        json!({"type": "tool_use", "id": "1", "name": "tool_search", "input": {"query": "follow a comet"}});
    let answer = user.bridge(json!({"session": "s", "call": call})).await.ok();
    let text = answer["results"][0]["message"]["content"][0]["content"].as_str().unwrap();
    assert!(text.contains("endless") && text.contains("tool_call"), "{text}");
}

#[tokio::test]
async fn a_search_answers_in_the_form_that_is_asked_for() {
    let app = TestApp::start().await;
    let user = user(&app, json!({})).await;
    let search = |more: Value| {
        let mut body = json!({"query": "rename a file", "format": "anthropic"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        user.search(body)
    };
    let plain = search(json!({})).await.ok();
    assert_eq!(plain.get("answer"), None);
    let text = search(json!({"form": "text"})).await.ok();
    let content: Value = serde_json::from_str(text["answer"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(content["results"][0]["matches"][0]["name"], "rename_file", "{text}");
    let signature = search(json!({"form": "text", "detail": "signature"})).await.ok();
    assert_eq!(
        signature["results"][0]["matches"][0]["signature"],
        "rename_file(path: string) – Does rename a file on the disk."
    );
    assert_eq!(signature["results"][0]["matches"][0].get("description"), None);
    let named = search(json!({"form": "text", "detail": "names"})).await.ok();
    let tokens = |answer: &Value| answer["answer"]["tokens"].as_u64().unwrap();
    assert!(tokens(&named) < tokens(&signature), "{named} {signature}");

    let references = search(json!({"form": "tool_references", "exposure": "native"})).await.ok();
    assert_eq!(
        references["answer"]["content"][0],
        json!({"type": "tool_reference", "tool_name": "rename_file"})
    );
    let output = search(json!({"form": "tool_search_output", "call_id": "x"})).await.ok();
    assert_eq!(
        (&output["answer"]["content"]["call_id"], &output["answer"]["loaded"][0]),
        (&json!("x"), &json!("rename_file"))
    );
    let additional = search(json!({"form": "additional_tools", "limit": 1})).await.ok();
    let item = &additional["answer"]["content"];
    assert_eq!((&item["type"], &item["role"]), (&json!("additional_tools"), &json!("developer")));
    assert_eq!(
        (&item["tools"][0]["name"], item["tools"][0].get("defer_loading")),
        (&json!("rename_file"), None)
    );
    assert!(tokens(&additional) < tokens(&output), "{additional}");
    // References name what the array declares, and an answer answers a call.
    for (body, pointer) in [
        (json!({"form": "poem"}), "/form"),
        (json!({"form": "tool_references"}), "/form"),
        (json!({"form": "tool_search_output"}), "/call_id"),
    ] {
        let problem = search(body).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer);
    }
    // What a search warms is in the next array, not in this one.
    user.assemble(json!({"session": "w", "format": "openai_responses"})).await.ok();
    let loaded =
        search(json!({"session": "w", "format": "openai_responses", "form": "additional_tools"})).await.ok();
    assert_eq!(
        (&loaded["warmed"][0], &loaded["answer"]["loaded"][0]),
        (&json!("rename_file"), &json!("rename_file"))
    );
}

#[tokio::test]
async fn definitions_that_have_no_room_are_told() {
    let app = TestApp::start().await;
    let user = app.user();
    let properties: serde_json::Map<String, Value> = (0..40)
        .map(|at| (format!("field_{at}"), json!({"type": "string", "description": "A field of the record."})))
        .collect();
    let tools: Vec<Value> = (0..14)
        .map(|at| {
            json!({"name": format!("store_record_{at}"), "group": "db", "description": "Stores a record.",
            "parameters": {"type": "object", "properties": properties}})
        })
        .collect();
    user.put_catalog(&tools).await.ok();
    user.put_config(&json!({"max_answer_tokens": 1_200, "exposure": "native"})).await.ok();
    user.assemble(json!({"session": "s", "format": "openai_responses"})).await.ok();
    let call = json!({"type": "tool_search_call", "call_id": "1", "arguments": {"query": "store a record"}});
    let answer = user.bridge(json!({"session": "s", "call": call})).await.ok();
    let result = &answer["results"][0];
    let loaded = result["message"]["tools"].as_array().unwrap().len();
    assert!(0 < loaded && loaded < 5, "{answer}");
    assert!(result["tokens"].as_u64().unwrap() <= 1_200, "{answer}");
    let told = answer["warnings"].as_array().unwrap().iter().filter(|it| it["code"] == "not_loaded").count();
    assert_eq!(loaded + told, 5, "{answer}");
}

#[tokio::test]
async fn the_same_tools_give_the_same_bytes_in_any_order_and_after_a_restart() {
    let mut app = TestApp::start().await;
    let mut bodies = Vec::new();
    for (at, order) in [tools(), tools().into_iter().rev().collect::<Vec<_>>()].iter().enumerate() {
        let user = app.user_called(&format!("u{at}"));
        user.put_catalog(order).await.ok();
        user.put_config(&json!({"exposure": "native", "core": ["read_file"]})).await.ok();
        for format in ["anthropic", "openai_responses"] {
            let body = json!({"session": "s", "format": format});
            user.assemble(body.clone()).await.ok();
            user.search(json!({"session": "s", "query": "rename a file"})).await.ok();
            bodies.push(user.assemble(body).await.ok());
        }
    }
    app.restart().await;
    for (at, format) in ["anthropic", "openai_responses"].iter().enumerate() {
        let again = app.user_called("u1").assemble(json!({"session": "t", "format": format})).await.ok();
        for key in ["tools", "listing", "fingerprint", "name_map"] {
            assert_eq!(bodies[at][key], bodies[at + 2][key]);
            assert_eq!(bodies[at][key], again[key], "{format} {key}");
        }
    }
}
