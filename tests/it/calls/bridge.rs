//! The bridge: the model's raw calls in, what the agent has to do out.

use serde_json::{Value, json};

use super::desk;
use crate::app::TestApp;

/// A model's call in the provider's own shape.
fn model_call(format: &str, id: &str, name: &str, arguments: &Value) -> Value {
    match format {
        "openai_chat" => {
            json!({"id": id, "type": "function", "function": {"name": name,
                "arguments": arguments.to_string()}})
        }
        "anthropic" => json!({"type": "tool_use", "id": id, "name": name, "input": arguments}),
        _ => json!({"id": id, "name": name, "arguments": arguments}),
    }
}

#[tokio::test]
async fn the_bridge_speaks_every_format_and_keeps_id_and_name() {
    let app = TestApp::start().await;
    let user = desk(&app).await;
    for format in ["canonical", "openai_chat", "anthropic"] {
        let calls = json!([
            model_call(format, "c1", "tool_search", &json!({"query": "book a hotel"})),
            model_call(format, "c2", "tool_describe", &json!({"name": "book_hotel"})),
            model_call(
                format,
                "c3",
                "tool_call",
                &json!({"name": "book_hotel", "arguments": {"city": "Oslo", "nights": 1}})
            ),
            model_call(format, "c4", "tool_call", &json!({"name": "book_hotel", "arguments": {}})),
            model_call(format, "c5", "my_own_tool", &json!({"x": [1, {"y": 2}]})),
            model_call(format, "c6", "list_trips", &json!({})),
        ]);
        let answer = user.bridge(json!({"format": format, "calls": calls})).await.ok();
        let results = answer["results"].as_array().unwrap();
        assert_eq!(results.len(), 6, "one answer per call");
        for (at, (result, call)) in results.iter().zip(calls.as_array().unwrap()).enumerate() {
            let name = call.pointer("/function/name").or_else(|| call.get("name")).unwrap();
            assert_eq!(result["reply_to"], json!({"id": format!("c{}", at + 1), "name": name}), "{format}");
        }
        for (at, is_error) in [(0, false), (1, false), (3, true)] {
            let result = &results[at];
            assert_eq!(
                (&result["action"], &result["is_error"]),
                (&json!("respond"), &json!(is_error)),
                "{format} {at}"
            );
            let content = result["content"].as_str().unwrap();
            let (id, name) = (result["reply_to"]["id"].clone(), result["reply_to"]["name"].clone());
            let expected = match format {
                "openai_chat" => json!({"role": "tool", "tool_call_id": id, "content": content}),
                "anthropic" if is_error => {
                    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id,
                        "content": content, "is_error": true}]})
                }
                "anthropic" => {
                    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id,
                        "content": content}]})
                }
                _ => json!({"role": "tool", "id": id, "name": name, "content": content}),
            };
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
        ("anthropic", json!({"id": "9", "type": "tool_use", "input": {}})),
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
    for format in ["canonical", "openai_chat", "anthropic"] {
        let assembled = user.assemble(json!({"format": format, "deny": ["read_file"]})).await.ok();
        let bridge = assembled["tools"].as_array().unwrap();
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
