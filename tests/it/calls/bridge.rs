//! The bridge: the model's raw calls in, what the agent has to do out.

use serde_json::{Value, json};

use super::desk;
use crate::app::TestApp;
use crate::model::{self, FORMATS, model_call, read_message};

/// The message of a format that hands `content` back to the model.
fn expected_message(format: &str, id: &Value, name: &Value, content: &str, is_error: bool) -> Value {
    let parsed = || serde_json::from_str::<Value>(content).unwrap();
    match format {
        "canonical" => json!({"role": "tool", "id": id, "name": name, "content": content}),
        "openai_chat" => json!({"role": "tool", "tool_call_id": id, "content": content}),
        "openai_responses" => json!({"type": "function_call_output", "call_id": id, "output": content}),
        "anthropic" if is_error => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": content,
                "is_error": true}]})
        }
        "anthropic" => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": content}]})
        }
        "gemini" => {
            // Errors of the bridge are `{"error": …}` already.
            let response = if is_error { parsed() } else { json!({"output": parsed()}) };
            json!({"role": "user", "parts": [{"functionResponse": {"id": id, "name": name,
                "response": response}}]})
        }
        "bedrock_converse" => {
            let status = if is_error { "error" } else { "success" };
            json!({"role": "user", "content": [{"toolResult": {"toolUseId": id, "content": [{"text": content}],
                "status": status}}]})
        }
        "mcp" => json!({"jsonrpc": "2.0", "id": id,
            "result": {"content": [{"type": "text", "text": content}], "isError": is_error}}),
        other => panic!("no such format: {other}"),
    }
}

#[tokio::test]
async fn the_bridge_speaks_every_format_and_keeps_id_and_name() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    for format in FORMATS {
        let asked = [
            ("c1", "tool_search", json!({"query": "book a hotel"})),
            ("c2", "tool_describe", json!({"name": "book_hotel"})),
            ("c3", "tool_call", json!({"name": "book_hotel", "arguments": {"city": "Oslo", "nights": 1}})),
            ("c4", "tool_call", json!({"name": "book_hotel", "arguments": {}})),
            ("c5", "my_own_tool", json!({"x": [1, {"y": 2}]})),
            ("c6", "list_trips", json!({})),
        ];
        let calls: Vec<Value> =
            asked.iter().map(|(id, name, arguments)| model_call(format, id, name, arguments)).collect();
        let answer = user.bridge(json!({"format": format, "calls": calls})).await.ok();
        let results = answer["results"].as_array().unwrap();
        assert_eq!(results.len(), 6, "one answer per call");
        for (result, (id, name, _)) in results.iter().zip(&asked) {
            assert_eq!(result["reply_to"], json!({"id": id, "name": name}), "{format}");
        }
        for (at, is_error) in [(0, false), (1, false), (3, true)] {
            let result = &results[at];
            assert_eq!(
                (&result["action"], &result["is_error"]),
                (&json!("respond"), &json!(is_error)),
                "{format} {at}"
            );
            let content = result["content"].as_str().unwrap();
            let (id, name) = (&result["reply_to"]["id"], &result["reply_to"]["name"]);
            let expected = expected_message(format, id, name, content, is_error);
            assert_eq!(result["message"], expected, "{format} {at}");
        }
        assert!(results[0]["content"].as_str().unwrap().contains("book_hotel"), "{format}");
        assert!(results[1]["content"].as_str().unwrap().contains("\"maximum\":30"), "{format}: the schema");
        assert!(results[3]["content"].as_str().unwrap().contains("nights"), "{format}");
        let dispatched = &results[2];
        assert_eq!(dispatched["action"], "dispatch");
        assert_eq!(
            dispatched["calls"],
            json!([{"id": "c3:tool:book_hotel", "name": "book_hotel", "arguments": {"city": "Oslo",
                "nights": 1}}]),
            "{format}"
        );
        // Calls of other tools come back unchanged, known here or not.
        assert_eq!(results[4]["action"], "dispatch");
        assert_eq!(
            results[4]["calls"],
            json!([{"id": "c5", "name": "my_own_tool", "arguments": {"x": [1, {"y": 2}]}}])
        );
        assert_eq!(results[5]["calls"], json!([{"id": "c6", "name": "list_trips", "arguments": {}}]));
    }
}

/// The results of one turn in one message, where the provider wants them there.
#[tokio::test]
async fn results_of_one_turn_join_to_what_the_provider_wants() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    for format in FORMATS {
        let ids = ["c1", "c2", "c3"];
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| model_call(format, id, "tool_search", &json!({"query": format!("hotel {id}")})))
            .collect();
        let answer = user.bridge(json!({"format": format, "calls": calls})).await.ok();
        let messages: Vec<&Value> =
            answer["results"].as_array().unwrap().iter().map(|result| &result["message"]).collect();
        let joined = match format {
            "anthropic" | "bedrock_converse" => Some("content"),
            "gemini" => Some("parts"),
            _ => None,
        };
        for (message, id) in messages.iter().zip(ids) {
            assert_eq!(read_message(format, message).0, id, "{format}");
            if let Some(key) = joined {
                assert_eq!((&message["role"], message[key].as_array().unwrap().len()), (&json!("user"), 1));
            }
        }
    }
}

#[tokio::test]
async fn the_bridge_keeps_what_a_format_has_of_its_own() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let bridge = async |format: &str, call: Value| {
        user.bridge(json!({"format": format, "call": call})).await.ok()["results"][0].clone()
    };
    // Gemini's calls need no id, and then the response must not have one; Python writes snake case.
    for key in ["functionCall", "function_call"] {
        let call =
            json!({key: {"name": "tool_search", "args": {"query": "hotel"}}, "thoughtSignature": "c2ln"});
        let result = bridge("gemini", call).await;
        assert_eq!(result["reply_to"], json!({"id": "", "name": "tool_search"}));
        let response = &result["message"]["parts"][0]["functionResponse"];
        assert_eq!((response.get("id"), &response["name"]), (None, &json!("tool_search")));
        assert!(response["response"]["output"].is_object(), "{response}");
    }
    // MCP: params alone are answered with the result alone, a request under its own id.
    let params = json!({"name": "tool_search", "arguments": {"query": "hotel"}});
    let result = bridge("mcp", params.clone()).await;
    assert_eq!(result["message"]["isError"], json!(false));
    assert_eq!(result["message"].get("jsonrpc"), None);
    let request = json!({"jsonrpc": "2.0", "id": 41, "method": "tools/call", "params": params});
    let result = bridge("mcp", request).await;
    assert_eq!((&result["reply_to"]["id"], &result["message"]["id"]), (&json!("41"), &json!(41)));
    // Responses: the call's id counts, not the item's; a namespace is a group, and comes back.
    let item = |name: &str, more: Value| {
        let mut item = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name,
            "arguments": "{\"city\":\"Oslo\",\"nights\":1}"});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    for (namespace, reply_to) in [
        (json!(null), json!({"id": "call_1", "name": "book_hotel"})),
        (json!("functions"), json!({"id": "call_1", "name": "book_hotel"})),
        (json!("book_hotel"), json!({"id": "call_1", "name": "book_hotel"})),
        (json!("travel"), json!({"id": "call_1", "name": "book_hotel", "namespace": "travel"})),
    ] {
        let result = bridge("openai_responses", item("book_hotel", json!({ "namespace": namespace }))).await;
        assert_eq!((&result["action"], &result["reply_to"]), (&json!("dispatch"), &reply_to));
        assert_eq!(result["calls"][0]["arguments"], json!({"city": "Oslo", "nights": 1}));
    }
    let own = bridge("openai_responses", item("tool_search", json!({"namespace": "mine"}))).await;
    assert_eq!(own["action"], "dispatch", "the agent's own tool of that name in its own namespace");
    assert_eq!(own["reply_to"]["namespace"], "mine");
}

#[tokio::test]
async fn a_namespace_tells_tools_of_one_name_apart() {
    let app = TestApp::start().await;
    let user = app.user();
    let tool =
        |group: &str| json!({"name": "open", "group": group, "description": format!("Open in {group}.")});
    user.put_catalog(&[tool("mail"), tool("my files")]).await.ok();
    let space = toolrack::core::format::native::namespace_name("my files").into_owned();
    for (namespace, stored) in [("mail", "mail__open"), (&space, "my files__open"), ("other", "open")] {
        let call = json!({"type": "function_call", "call_id": "1", "name": "open", "arguments": "{}",
            "namespace": namespace});
        let answer = user.bridge(json!({"format": "openai_responses", "call": call})).await.ok();
        assert_eq!(answer["results"][0]["calls"][0]["name"], json!(stored), "{namespace}");
    }
}

#[tokio::test]
async fn free_texts_are_the_agents_own_and_what_is_no_call_is_refused() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    for (format, call) in [
        (
            "openai_responses",
            json!({"type": "custom_tool_call", "call_id": "9", "name": "tool_search", "input": "*** patch"}),
        ),
        (
            "openai_chat",
            json!({"id": "9", "type": "custom", "custom": {"name": "tool_search", "input": "*** patch"}}),
        ),
    ] {
        let answer = user.bridge(json!({"format": format, "call": call})).await.ok();
        assert_eq!(
            answer["results"][0]["calls"],
            json!([{"id": "9", "name": "tool_search", "arguments": "*** patch"}]),
            "{format}"
        );
    }
    for (format, call) in [
        ("canonical", json!({"type": "text", "text": "so"})),
        ("openai_chat", json!({"type": "text", "text": "so"})),
        ("openai_responses", json!({"type": "message", "role": "assistant", "content": []})),
        ("openai_responses", json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        ("openai_responses", json!({"type": "web_search_call", "id": "ws_1", "status": "completed"})),
        ("anthropic", json!({"type": "thinking", "thinking": "so", "signature": "x"})),
        ("gemini", json!({"text": "so", "thought": true})),
        ("bedrock_converse", json!({"text": "so"})),
        ("mcp", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
    ] {
        let calls = json!([model_call(format, "1", "tool_search", &json!({"query": "hotel"})), call]);
        let problem =
            user.bridge(json!({"format": format, "calls": calls})).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/calls/1", "{format}: {problem}");
        assert_eq!(problem["errors"][0]["code"], "invalid_call");
    }
}

#[tokio::test]
async fn the_bridge_tools_take_what_models_send() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let respond = async |name: &str, arguments: Value| {
        let call = json!({"id": "1", "name": name, "arguments": arguments});
        let answer = user.bridge(json!({"call": call})).await.ok();
        let result = answer["results"][0].clone();
        (result["content"].as_str().unwrap_or_default().to_owned(), result["is_error"].clone())
    };
    for arguments in [
        json!({"query": "hotel room"}),
        json!({"query": ["hotel room", "query"]}),
        json!({"queries": ["hotel room"]}),
        json!({"query": "[\"hotel room\"]"}),
        json!("{\"query\": \"hotel room\"}"),
        json!({"query": "hotel room", "limit": "3"}),
        json!({"query": "hotel room", "limit": 900}),
        json!({"query": format!("hotel room {}", "x".repeat(3_000))}),
    ] {
        let (content, is_error) = respond("tool_search", arguments.clone()).await;
        assert!(is_error == json!(false) && content.contains("book_hotel"), "{arguments}: {content}");
    }
    for arguments in [json!({}), json!(""), json!({"query": ""}), json!({"query": 7}), json!({"query": []})] {
        let (content, is_error) = respond("tool_search", arguments.clone()).await;
        assert!(is_error == json!(true) && !content.is_empty(), "{arguments}: {content}");
    }
    for arguments in [
        json!({"name": "book_hotel"}),
        json!({"names": ["book_hotel"]}),
        json!({"name": ["book_hotel"]}),
        json!("{\"name\":\"book_hotel\"}"),
    ] {
        let (content, is_error) = respond("tool_describe", arguments.clone()).await;
        assert!(
            is_error == json!(false) && content.contains("\"required\":[\"city\",\"nights\"]"),
            "{arguments}: {content}"
        );
    }
    let good = json!({"city": "Oslo", "nights": 1});
    for arguments in [
        json!({"name": "book_hotel", "arguments": good}),
        json!({"name": "book_hotel", "arguments": good.to_string()}),
        json!({"name": "book_hotel", "city": "Oslo", "nights": 1}),
        json!({"name": "book_hotel", "arguments": {"name": "book_hotel", "arguments": good}}),
        json!({"arguments": {"name": "book_hotel", "arguments": good}}),
        json!({"calls": [{"name": "book_hotel", "arguments": good}]}),
        json!({"calls": json!([{"name": "book_hotel", "arguments": good}]).to_string()}),
        json!(json!({"name": "book_hotel", "arguments": good}).to_string()),
    ] {
        let call = json!({"id": "1", "name": "tool_call", "arguments": arguments});
        let answer = user.bridge(json!({"call": call})).await.ok();
        assert_eq!(answer["results"][0]["calls"][0]["arguments"], good, "{arguments}: {answer}");
    }
    for arguments in [
        json!({}),
        json!(""),
        json!({"arguments": {}}),
        json!({"name": ""}),
        json!({"name": 7}),
        json!("nonsense"),
        json!({"calls": []}),
    ] {
        let (content, is_error) = respond("tool_call", arguments.clone()).await;
        assert!(is_error == json!(true) && !content.is_empty(), "{arguments}: {content}");
    }
}

#[tokio::test]
async fn one_wrong_call_of_a_batch_dispatches_nothing_and_all_errors_are_told() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    let bridge = async |calls: Value| {
        let call = json!({"id": "1", "name": "tool_call", "arguments": {"calls": calls}});
        user.bridge(json!({"call": call})).await.ok()["results"][0].clone()
    };
    let good = bridge(json!([
        {"name": "list_trips", "arguments": {}},
        {"name": "book.train", "arguments": {"a": 1}},
        {"name": "list_trips", "arguments": {}},
    ]))
    .await;
    assert_eq!(good["action"], "dispatch");
    let ids: Vec<&str> =
        good["calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["1:tool:list_trips", "1:tool:book.train", "1:tool:list_trips#2"], "in call order");

    let bad = bridge(json!([
        {"name": "list_trips", "arguments": {}},
        {"name": "book_hotel", "arguments": {"city": "Oslo"}},
        {"name": "nowhere", "arguments": {}},
    ]))
    .await;
    assert_eq!((&bad["action"], &bad["is_error"], bad.get("calls")), (&json!("respond"), &json!(true), None));
    let content = bad["content"].as_str().unwrap();
    for part in ["missing_arguments", "nights", "unknown_tool", "nowhere"] {
        assert!(content.contains(part), "{part}: {content}");
    }
    let many: Vec<Value> = (0..21).map(|_| json!({"name": "list_trips"})).collect();
    let too_many = bridge(json!(many)).await;
    assert_eq!(too_many["is_error"], true, "{too_many}");
}

#[tokio::test]
async fn a_call_that_is_none_is_told_to_the_model() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    for (format, call) in [
        ("canonical", json!({"id": "9"})),
        ("canonical", json!({"id": "9", "name": ""})),
        ("canonical", json!({"id": "9", "name": 7})),
        ("openai_chat", json!({"id": "9", "type": "function"})),
        ("openai_chat", json!({"id": "9", "function": {"arguments": "{}"}})),
        ("openai_responses", json!({"type": "function_call", "call_id": "9", "arguments": "{}"})),
        ("anthropic", json!({"id": "9", "type": "tool_use", "input": {}})),
        ("gemini", json!({"functionCall": {"id": "9", "args": {}}})),
        ("gemini", json!({"functionCall": "tool_search"})),
        ("bedrock_converse", json!({"toolUse": {"toolUseId": "9", "name": ""}})),
        ("mcp", json!({"jsonrpc": "2.0", "id": "9", "method": "tools/call"})),
        ("mcp", json!({"jsonrpc": "2.0", "id": "9", "method": "tools/call", "params": {"name": 7}})),
        ("canonical", json!("tool_search")),
        ("canonical", json!(null)),
    ] {
        let others = json!([call, model_call(format, "10", "tool_search", &json!({"query": "hotel"}))]);
        let answer = user.bridge(json!({"format": format, "calls": others})).await.ok();
        let results = answer["results"].as_array().unwrap();
        assert_eq!(
            (&results[0]["action"], &results[0]["is_error"]),
            (&json!("respond"), &json!(true)),
            "{call}"
        );
        let id = if call.to_string().contains("\"9\"") { "9" } else { "" };
        assert_eq!(results[0]["reply_to"], json!({"id": id, "name": ""}), "{call}");
        assert_eq!(results[1]["is_error"], json!(false), "the others are answered: {call}");
    }
}

#[tokio::test]
async fn a_prefix_stands_before_the_bridge_in_every_text() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    user.client().patch(&user.path(&["config"]), &json!({"bridge_prefix": "rack_"})).await.ok();
    let assembled = user.assemble(json!({})).await.ok();
    let names: Vec<&str> =
        assembled["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read_file", "rack_tool_search", "rack_tool_describe", "rack_tool_call"]);
    let bare = |text: &str| text.replace("rack_tool_", "").contains("tool_search");
    assert!(!bare(assembled["listing"]["text"].as_str().unwrap()));
    assert!(!bare(&assembled["tools"].to_string()));
    let found = user
        .bridge(json!({"call": {"id": "1", "name": "rack_tool_search", "arguments": {"query": "hotel"}}}))
        .await
        .ok();
    assert_eq!(found["results"][0]["action"], "respond");
    assert!(found["results"][0]["content"].as_str().unwrap().contains("rack_tool_call"));
    let other = user
        .bridge(json!({"call": {"id": "1", "name": "tool_search", "arguments": {"query": "hotel"}}}))
        .await
        .ok();
    assert_eq!(other["results"][0]["action"], "dispatch", "the agent's own tool of that name");
}

#[tokio::test]
async fn the_bridge_tools_fit_their_budget_in_every_format() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    for format in FORMATS {
        let assembled = user.assemble(json!({"format": format, "deny": ["read_file"]})).await.ok();
        let bridge = model::entries(&assembled["tools"]);
        assert_eq!(bridge.len(), 3, "{assembled}");
        let tokens: usize = bridge.iter().map(|tool| bpe_openai::o200k_base().count(&tool.to_string())).sum();
        assert!(tokens <= 350, "{format}: {tokens} tokens");
        let call = bridge.last().unwrap().to_string();
        assert!(
            call.contains("\"additionalProperties\":true"),
            "constrained decoders must be able to fill it: {call}"
        );
    }
}

#[tokio::test]
async fn nothing_that_a_model_asked_for_is_left_out_in_silence() {
    let app = TestApp::start().await;
    let user = app.user();
    let tools: Vec<Value> =
        (0..30).map(|at| json!({"name": format!("paint_{at}"), "description": "Paint it."})).collect();
    user.put_catalog(&tools).await.ok();
    let content = async |name: &str, arguments: Value| {
        let call = json!({"id": "1", "name": name, "arguments": arguments});
        let answer = user.bridge(json!({"call": call})).await.ok();
        answer["results"][0]["content"].as_str().unwrap().to_owned()
    };
    let names: Vec<String> = (0..25).map(|at| format!("paint_{at}")).collect();
    let described = content("tool_describe", json!({"names": names})).await;
    for name in &names {
        assert!(described.contains(&format!("\"{name}\"")), "{name} is neither described nor mentioned");
    }
    let queries: Vec<String> = (0..12).map(|at| format!("paint {at}")).collect();
    let found = content("tool_search", json!({"query": queries})).await;
    for query in &queries {
        assert!(found.contains(&format!("\"{query}\"")), "`{query}` is neither answered nor mentioned");
    }
    let long = format!("paint it {}", "x".repeat(3_000));
    let found = content("tool_search", json!({"query": long})).await;
    assert!(
        found.contains("2000") || found.contains("truncated"),
        "that the query was cut is told: {}",
        &found[..200]
    );
}
