//! Providers and their limits: what is sent to each, how calls find back, and what a catalog would cost before it is used.

use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::model::{array_names, warning_codes};

/// Tools that some provider refuses as they are.
fn odd_tools() -> Vec<Value> {
    vec![
        json!({"name": "filter.list", "group": "a", "description": "Lists what fits a filter.",
            "parameters": {"type": "object", "properties": {"filter[id]": {"type": "string"}}, "required": ["filter[id]"]}}),
        json!({"name": "either", "group": "a", "description": "Takes one or the other.",
        "parameters": {"oneOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]}}),
        json!({"name": "rows", "group": "b", "description": "x".repeat(2_000),
            "parameters": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
                "properties": {"list": {"type": "array"}}}}),
        json!({"name": "plain", "group": "b", "description": "Says hello.",
            "parameters": {"type": "object", "properties": {"who": {"type": "string"}}}}),
    ]
}

async fn user_with(app: &TestApp, tools: &[Value], config: Value) -> User {
    let user = app.user();
    user.put_catalog(tools).await.ok();
    user.put_config(&config).await.ok();
    user
}

fn entry<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let tools = answer["tools"].as_array().unwrap();
    tools
        .iter()
        .find(|tool| tool["name"].as_str().unwrap().starts_with(name))
        .unwrap_or_else(|| panic!("{name}: {answer}"))
}

#[tokio::test]
async fn every_provider_gets_what_it_takes_and_calls_find_back() {
    let app = TestApp::start().await;
    let user = user_with(&app, &odd_tools(), json!({})).await;
    let answer =
        user.assemble(json!({"session": "s", "format": "anthropic", "profile": "anthropic"})).await.ok();
    let filter = entry(&answer, "filter_list_");
    let keys: Vec<&String> = filter["input_schema"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 1);
    let key = keys[0].clone();
    assert!(key.starts_with("filter_id_"), "{key}");
    assert_eq!(filter["input_schema"]["required"], json!([key]));
    let name = filter["name"].as_str().unwrap().to_owned();
    assert_eq!(answer["arg_map"][&name], json!({format!("/{key}"): "filter[id]"}), "{answer}");
    let either = &entry(&answer, "either")["input_schema"];
    assert_eq!((&either["type"], either.get("oneOf")), (&json!("object"), None), "{either}");
    assert!(warning_codes(&answer).contains(&"schema_mended"), "{answer}");

    // The model answers with the keys that it was told; the agent gets those of the tool.
    let called = user.call(json!({"session": "s", "name": name, "arguments": {&key: "7"}})).await.ok();
    assert_eq!(called["results"][0]["dispatch"]["arguments"], json!({"filter[id]": "7"}), "{called}");
    let bridged =
        json!({"session": "s", "call": {"type": "tool_use", "id": "1", "name": name, "input": {&key: "7"}}});
    let bridged = user.bridge(bridged).await.ok();
    assert_eq!(bridged["results"][0]["action"], "dispatch", "{bridged}");
    // Calls are held against the tool's own schema.
    let neither = user.call(json!({"session": "s", "name": "either", "arguments": {}})).await.ok();
    assert_eq!(neither["results"][0]["ok"], false, "{neither}");
    // A call that lacks something is told in the words that the model knows.
    let lacking = user.call(json!({"session": "s", "name": name, "arguments": {}})).await.ok();
    let schema = &lacking["results"][0]["error"]["schema"];
    assert!(schema["properties"].get(&key).is_some(), "{lacking}");
    assert_eq!(lacking["results"][0]["error"]["missing"], json!([key]), "{lacking}");
    let wrong = user.call(json!({"session": "s", "name": name, "arguments": {&key: 7}})).await.ok();
    assert_eq!(wrong["results"][0]["error"]["path"], format!("arguments.{key}"), "{wrong}");

    let openai = user.assemble(json!({"format": "openai_chat", "profile": "openai"})).await.ok();
    let rows =
        openai["tools"].as_array().unwrap().iter().find(|tool| tool["function"]["name"] == "rows").unwrap();
    assert!(rows["function"]["description"].as_str().unwrap().chars().count() <= 1_024);
    assert!(rows["function"]["parameters"]["properties"]["list"].get("items").is_some(), "{rows}");
    let gemini = user
        .assemble(json!({"format": "gemini", "profile": "gemini", "schema_dialect": "openapi"}))
        .await
        .ok();
    for declaration in gemini["tools"][0]["functionDeclarations"].as_array().unwrap() {
        assert!(declaration.get("parametersJsonSchema").is_none(), "{declaration}");
        assert!(!declaration.to_string().contains("$schema"), "{declaration}");
    }
}

#[tokio::test]
async fn what_needs_no_mending_keeps_its_bytes() {
    let app = TestApp::start().await;
    let user = user_with(&app, &odd_tools(), json!({})).await;
    for profile in ["generic", "openai", "anthropic", "bedrock", "gemini", "vllm", "deepseek"] {
        let answer = user.assemble(json!({"profile": profile})).await.ok();
        assert_eq!(
            entry(&answer, "plain")["parameters"],
            json!({"type": "object", "properties": {"who": {"type": "string"}}}),
            "{profile}"
        );
    }
}

#[tokio::test]
async fn names_of_another_profile_still_mean_their_tool() {
    let app = TestApp::start().await;
    let tools = [
        json!({"name": "get-it", "description": "Gets it."}),
        json!({"name": "a.b-c", "description": "Does."}),
    ];
    let user = user_with(&app, &tools, json!({"profile": "bedrock-nova"})).await;
    let nova = user.assemble(json!({"session": "s", "format": "bedrock_converse"})).await.ok();
    let names: Vec<String> = array_names(&nova).into_iter().map(str::to_owned).collect();
    assert!(names.iter().all(|name| !name.contains('-')), "{names:?}");
    // The conversation goes on with another provider.
    let other =
        user.assemble(json!({"session": "s", "format": "anthropic", "profile": "anthropic"})).await.ok();
    assert!(array_names(&other).contains(&"get-it"), "{other}");
    for name in &names {
        let called = user.call(json!({"session": "s", "name": name, "arguments": {}})).await.ok();
        assert_eq!(called["results"][0]["ok"], true, "{name}: {called}");
    }
}

#[tokio::test]
async fn the_bridge_has_names_that_the_provider_takes() {
    let app = TestApp::start().await;
    let config = json!({"enabled": "on", "bridge_prefix": "my-", "profile": "bedrock-nova"});
    let user = user_with(&app, &odd_tools(), config).await;
    let answer = user.assemble(json!({"session": "s", "format": "bedrock_converse"})).await.ok();
    assert_eq!(array_names(&answer), ["my_tool_search", "my_tool_describe", "my_tool_call"]);
    assert!(answer["listing"]["text"].as_str().unwrap().contains("my_tool_call"), "{answer}");
    // Both spellings mean the bridge, also after a change of the provider.
    for profile in ["bedrock-nova", "bedrock"] {
        for name in ["my_tool_search", "my-tool_search"] {
            let call = json!({"toolUse": {"toolUseId": "1", "name": name, "input": {"query": "say hello"}}});
            let body = json!({"format": "bedrock_converse", "profile": profile, "call": call});
            let result = user.bridge(body).await.ok()["results"][0].clone();
            assert_eq!(result["action"], "respond", "{profile} {name}: {result}");
            assert!(result["content"].to_string().contains("plain"), "{profile} {name}: {result}");
        }
    }
}

#[tokio::test]
async fn a_request_holds_no_more_strict_tools_than_the_provider_takes() {
    let app = TestApp::start().await;
    let tools: Vec<Value> = (0..30)
        .map(|at| {
            json!({"name": format!("sort_{at:02}"), "description": "Sorts a box.", "parameters": {"type": "object",
                "properties": {"box": {"type": "string"}}, "required": ["box"], "additionalProperties": false}})
        })
        .collect();
    let user = user_with(&app, &tools, json!({"enabled": "off"})).await;
    let answer =
        user.assemble(json!({"format": "anthropic", "profile": "anthropic", "strict": true})).await.ok();
    let tools = answer["tools"].as_array().unwrap();
    let strict = tools.iter().filter(|tool| tool["strict"] == true).count();
    assert_eq!((tools.len(), strict), (30, 20), "{answer}");
    assert_eq!(warning_codes(&answer), ["not_strict"; 10]);
    // Found tools share what is left.
    let config =
        json!({"enabled": "on", "core": (0..18).map(|at| format!("sort_{at:02}")).collect::<Vec<_>>()});
    user.put_config(&config).await.ok();
    let body = json!({"session": "s", "format": "anthropic", "profile": "anthropic", "strict": true});
    user.assemble(body.clone()).await.ok();
    user.describe(json!({"session": "s", "names": ["sort_25", "sort_26", "sort_27"]})).await.ok();
    let answer = user.assemble(body).await.ok();
    let tools = answer["tools"].as_array().unwrap();
    assert_eq!(tools.iter().filter(|tool| tool["strict"] == true).count(), 20, "{answer}");
    assert_eq!(answer["warm"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn warnings_of_one_kind_are_told_a_few_times_and_counted() {
    let app = TestApp::start().await;
    let tools: Vec<Value> = (0..100)
        .map(|at| {
            json!({"name": format!("t{at}"), "parameters": {"oneOf": [{"type": "object"}, {"type": "object",
            "properties": {"a": {"type": "string"}}}]}})
        })
        .collect();
    let user = user_with(&app, &tools, json!({"enabled": "off"})).await;
    let answer = user.assemble(json!({})).await.ok();
    let warnings = answer["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 21, "{answer}");
    assert!(warnings[20]["detail"].as_str().unwrap().contains("80 more tools"), "{answer}");
}

#[tokio::test]
async fn a_provider_with_a_maximum_gets_no_more() {
    let app = TestApp::start().await;
    let tools: Vec<Value> = (0..200)
        .map(|at| json!({"name": format!("tool_{at:03}"), "description": format!("Sorts the box number {at}.")}))
        .collect();
    // Without a maximum everything would be sent.
    let user = user_with(&app, &tools, json!({"min_catalog_size": 10_000})).await;
    let all = user.assemble(json!({"format": "openai_chat"})).await.ok();
    assert_eq!((all["tier"].as_u64(), array_names(&all).len()), (Some(0), 200));
    let openai = user.assemble(json!({"format": "openai_chat", "profile": "openai"})).await.ok();
    assert!(array_names(&openai).len() <= 128 && openai["tier"].as_u64() > Some(0), "{}", openai["tier"]);

    // Warm tools yield first.
    let core: Vec<String> = (0..123).map(|at| format!("tool_{at:03}")).collect();
    let config = json!({"min_catalog_size": 0, "core": core, "max_warm_tools": 8, "profile": "openai"});
    let user = user_with(&app, &tools, config).await;
    user.assemble(json!({"session": "s", "format": "openai_chat"})).await.ok();
    for box_number in 150..160 {
        user.search(json!({"session": "s", "query": format!("tool_{box_number}")})).await.ok();
    }
    let answer = user.assemble(json!({"session": "s", "format": "openai_chat"})).await.ok();
    assert_eq!(array_names(&answer).len(), 128, "{}", answer["counts"]);
    assert_eq!(answer["counts"]["warm"], 2);

    // Core alone is too much: that is for a person to decide.
    let core: Vec<String> = (0..126).map(|at| format!("tool_{at:03}")).collect();
    let user =
        user_with(&app, &tools, json!({"min_catalog_size": 0, "core": core, "profile": "openai"})).await;
    let problem = user.assemble(json!({"format": "openai_chat"})).await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["code"], "too_many_tools", "{problem}");
}

#[tokio::test]
async fn a_tool_that_cannot_be_sent_is_still_found_and_called() {
    let app = TestApp::start().await;
    // Written out, as Bedrock wants it, it would be larger than any schema may grow.
    let references: serde_json::Map<String, Value> =
        (0..40).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/B"}))).collect();
    let definitions = json!({"B": {"type": "string", "description": "x".repeat(10_000)}});
    let bomb = json!({"name": "bomb", "description": "Grows without end.",
        "parameters": {"type": "object", "properties": references, "$defs": definitions}});
    let user = user_with(&app, &[bomb, odd_tools()[3].clone()], json!({"core": ["bomb"]})).await;
    let answer =
        user.assemble(json!({"session": "s", "format": "bedrock_converse", "profile": "bedrock"})).await.ok();
    let names = array_names(&answer);
    assert!(!names.contains(&"bomb"), "{names:?}");
    assert!(warning_codes(&answer).contains(&"tool_left_out"), "{answer}");
    assert!(answer["listing"]["text"].as_str().unwrap().contains("bomb"), "{answer}");
    assert!(names.contains(&"tool_call"), "{names:?}");
    let found = user.search(json!({"session": "s", "query": "bomb"})).await.ok();
    assert_eq!(found["results"][0]["matches"][0]["name"], "bomb", "{found}");
    assert_eq!(found["warmed"], json!([]), "{found}");
    let called = user.call(json!({"session": "s", "name": "bomb", "arguments": {}})).await.ok();
    assert_eq!(called["results"][0]["ok"], true, "{called}");
}

#[tokio::test]
async fn a_catalog_is_linted_before_it_is_used() {
    let app = TestApp::start().await;
    let user = user_with(&app, &odd_tools(), json!({"profile": "anthropic"})).await;
    let lint = async |body: Value| user.client().post(&user.path(&["catalog", "lint"]), &body).await;
    let answer = lint(json!({})).await.ok();
    assert_eq!((&answer["profile"], &answer["format"]), (&json!("anthropic"), &json!("canonical")));
    let named =
        |name: &str| answer["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).cloned();
    let filter = named("filter.list").unwrap();
    assert_eq!(filter["outcome"], "mended");
    assert!(filter["wire_name"].as_str().unwrap().starts_with("filter_list_"));
    let finding =
        filter["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == "key_renamed");
    assert!(finding.unwrap()["detail"].as_str().unwrap().contains("filter[id]"), "{filter}");
    assert_eq!(named("plain"), None, "a tool without findings is not told");
    assert_eq!(answer["counts"]["kept"], 1, "{answer}");
    let openai = lint(json!({"format": "openai_chat", "profile": "openai"})).await.ok();
    assert_eq!(openai["max_tools"], 128);
    let problem = lint(json!({"profile": "acme"})).await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/profile");
    lint(json!({"schema_dialect": "openapi"})).await.problem(422, "invalid_request");
}

#[tokio::test]
async fn white_space_of_an_upload_is_not_sent() {
    let app = TestApp::start().await;
    let mut answers = Vec::new();
    for pretty in [false, true] {
        let user = app.user();
        let body = json!({"tools": odd_tools()});
        let text = if pretty { serde_json::to_string_pretty(&body).unwrap() } else { body.to_string() };
        let url = user.path(&["catalog"]);
        let headers = [("content-type", "application/json")];
        user.client().send(reqwest::Method::PUT, &url, &headers, text.into()).await.ok();
        for format in ["canonical", "anthropic", "gemini"] {
            let mut answer = user.assemble(json!({"format": format})).await.ok();
            let described = user.describe(json!({"format": format, "names": ["rows", "plain"]})).await;
            answer["described"] = json!(described.text());
            answers.push(answer);
        }
    }
    let (compact, pretty) = answers.split_at(3);
    for (compact, pretty) in compact.iter().zip(pretty) {
        for key in ["fingerprint", "tools", "tokens", "described"] {
            assert_eq!(compact[key], pretty[key], "{key}");
        }
    }
}

#[tokio::test]
async fn an_enum_without_values_refuses_nothing() {
    let app = TestApp::start().await;
    let tool = json!({"name": "pick", "description": "Picks.", "parameters": {"type": "object",
        "properties": {"mode": {"type": "string", "enum": []}}, "required": ["mode"]}});
    let user = user_with(&app, &[tool], json!({})).await;
    let called = user.call(json!({"name": "pick", "arguments": {"mode": "fast"}})).await.ok();
    assert_eq!(called["results"][0]["ok"], true, "{called}");
}
