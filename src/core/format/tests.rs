//! What holds for every format: counts, limits, calls, and what comes out again of what came in.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::ingest::{EntryLimits, read_entry};
use super::*;
use crate::core::hidden::hidden_in;
use crate::core::tokens;

const LIMITS: EntryLimits = EntryLimits { bytes: 256 * 1024, depth: 64 };

/// As `describe` writes a tool.
const WHOLE: How<'static> = How { whole: true, ..How::PLAIN };

fn tool(description: &str, parameters: &str, more: &str) -> Tool {
    let body = format!(
        r#"{{"group":"g","name":"get_x","description":{},"parameters":{parameters}{more}}}"#,
        json!(description)
    );
    Tool::from_body(body.into()).unwrap()
}

#[test]
fn stored_counts_are_exact_in_every_format() {
    let long = "Reads one thing after the other. ".repeat(60);
    let extras = [
        "",
        r#","annotations":{"readOnlyHint":true,"title":"Größe"}"#,
        r#","extra_of":"openai","extra":{"strict":true,"output_schema":{"type":"object"}}"#,
        r#","extra_of":"anthropic","extra":{"input_examples":[{"a":"b"}],"strict":true}"#,
        r#","extra_of":"gemini","extra":{"parameters":{"type":"OBJECT"},"behavior":"BLOCKING"}"#,
        r#","extra_of":"bedrock","extra":{"strict":true}"#,
        r#","extra":{"title":"Get it","outputSchema":{"type":"object"},"_meta":{"a/b":1}}"#,
    ];
    for description in ["Reads a thing.", "", "[draft] (x", "法令を検索します。", "ends: ", long.as_str()]
    {
        for parameters in [
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
            r#"{"type":"object","properties":{"a":{"description":"法令。"}}}"#,
            r#"{ "type": "object", "properties": { } }"#,
            "{\n  \"type\": \"object\"\n}",
            "{\n\t\"type\": \"object\",\n\t\"required\": []\n\t }",
            "{}",
        ] {
            for more in extras {
                let tool = tool(description, parameters, more);
                let counts = TokenCounts::of("get_x", &tool);
                for format in Format::ALL {
                    let exact = tokens::count(&render(format, "get_x", &tool).json);
                    assert_eq!(counts.get(format), exact, "{format:?} {description} {parameters} {more}");
                }
                assert_eq!(TokenCounts::from_text(&counts.to_text()), Some(counts));
            }
        }
    }
    assert_eq!(TokenCounts::from_text("1,2,3"), None, "an older version had fewer formats");
}

#[test]
fn layouts_cost_what_they_say() {
    let tool = tool("Reads a thing.", r#"{"type":"object","properties":{"a":{}}}"#, "");
    let canonical = tokens::count(&render(Format::Canonical, "get_x", &tool).json);
    for format in Format::ALL {
        let layout = format.layout();
        let mut text = render(format, "get_x", &tool).json;
        // Cut behind the schema and closed like the canonical text.
        let end = text.find(tool.parameters()).unwrap() + tool.parameters().len();
        text.replace_range(end.., "}");
        assert_eq!(tokens::count(&text) - canonical, layout.more_tokens, "{format:?}");
        let array = &layout.array;
        let around = [array.open.strip_prefix('[').unwrap(), array.close.strip_suffix(']').unwrap()];
        let exact: usize = around.iter().map(|text| tokens::count(text)).sum();
        assert_eq!(array.tokens, exact, "{format:?}");
    }
}

#[test]
fn a_description_is_cut_only_where_the_format_has_a_limit() {
    let tool = tool(&"word ".repeat(400), "{}", "");
    for format in Format::ALL {
        assert_eq!(render(format, "get_x", &tool).clipped, format == Format::OpenaiChat, "{format:?}");
        assert!(render_how(format, "get_x", &tool, &WHOLE).json.len() > 2_000);
    }
    let json: Value = serde_json::from_str(&render(Format::OpenaiChat, "get_x", &tool).json).unwrap();
    assert!(json["function"]["description"].as_str().unwrap().chars().count() <= 1_024);
}

/// A call in each format's own shape.
fn calls() -> [(Format, Value); 9] {
    let rpc = json!({"jsonrpc": "2.0", "id": "1", "method": "tools/call",
        "params": {"name": "t", "arguments": {"a": 1}}});
    [
        (Format::Canonical, json!({"id": "1", "name": "t", "arguments": {"a": 1}})),
        (
            Format::OpenaiChat,
            json!({"id": "1", "type": "function", "function": {"name": "t", "arguments": "{\"a\":1}"}}),
        ),
        (
            Format::OpenaiResponses,
            json!({"type": "function_call", "id": "fc_9", "call_id": "1", "name": "t", "arguments": "{\"a\":1}"}),
        ),
        (Format::Anthropic, json!({"type": "tool_use", "id": "1", "name": "t", "input": {"a": 1}})),
        (
            Format::Gemini,
            json!({"functionCall": {"id": "1", "name": "t", "args": {"a": 1}}, "thoughtSignature": "x"}),
        ),
        (Format::Gemini, json!({"function_call": {"id": "1", "name": "t", "args": {"a": 1}}})),
        (Format::BedrockConverse, json!({"toolUse": {"toolUseId": "1", "name": "t", "input": {"a": 1}}})),
        (Format::Mcp, rpc),
        (Format::Mcp, json!({"id": "1", "name": "t", "arguments": {"a": 1}})),
    ]
}

#[test]
fn calls_read_back_what_each_provider_sends() {
    for (format, call) in calls() {
        let read = format.wire().read_call(&call).unwrap();
        assert_eq!((read.id.as_str(), read.name.as_str(), read.is_custom), ("1", "t", false), "{call}");
        let arguments = read.arguments.unwrap();
        assert!(arguments == json!({"a": 1}) || arguments == json!("{\"a\":1}"), "{call}");
        for broken in [json!({}), json!({"id": "1"}), json!({"name": ""}), json!(7), Value::Null, json!([1])]
        {
            let fault = format.wire().read_call(&broken);
            assert!(matches!(fault, Err(ReadFault::Broken { .. })), "{format:?} {broken}: {fault:?}");
        }
        assert_eq!(Format::parse(format.as_str()), Some(format));
    }
    assert_eq!(Format::parse("yaml"), None);
}

#[test]
fn what_lacks_a_name_keeps_its_id_and_what_is_no_call_is_told() {
    for (format, call) in [
        (Format::OpenaiChat, json!({"id": "9", "type": "function", "function": {}})),
        (Format::OpenaiResponses, json!({"type": "function_call", "call_id": "9"})),
        (Format::Anthropic, json!({"type": "tool_use", "id": "9"})),
        (Format::Gemini, json!({"functionCall": {"id": "9"}})),
        (Format::BedrockConverse, json!({"toolUse": {"toolUseId": "9"}})),
        (Format::Mcp, json!({"jsonrpc": "2.0", "id": "9", "method": "tools/call", "params": {}})),
    ] {
        match format.wire().read_call(&call) {
            Err(ReadFault::Broken { call, .. }) => assert_eq!(call.id, "9", "{format:?}"),
            other => panic!("{format:?}: {other:?}"),
        }
    }
    for (format, part) in [
        (Format::OpenaiChat, json!({"type": "text", "text": "hi"})),
        (Format::OpenaiResponses, json!({"type": "message", "role": "assistant", "content": []})),
        (Format::OpenaiResponses, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        (Format::OpenaiResponses, json!({"type": "web_search_call", "id": "ws_1"})),
        (Format::Anthropic, json!({"type": "thinking", "thinking": "so"})),
        (Format::Gemini, json!({"text": "hi"})),
        (Format::BedrockConverse, json!({"reasoningContent": {}})),
        (Format::Mcp, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
    ] {
        let fault = format.wire().read_call(&part);
        assert!(matches!(fault, Err(ReadFault::NotACall(_))), "{format:?}: {fault:?}");
    }
}

#[test]
fn namespaces_and_free_texts_of_responses_are_told() {
    let read = |more: Value| {
        let mut call = json!({"type": "function_call", "call_id": "1", "name": "t", "arguments": "{}"});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Format::OpenaiResponses.wire().read_call(&call).unwrap()
    };
    assert_eq!(read(json!({"namespace": "crm"})).namespace.as_deref(), Some("crm"));
    for none in [json!(null), json!(""), json!("functions"), json!("t")] {
        assert_eq!(read(json!({"namespace": none})).namespace, None);
    }
    let custom = read(json!({"type": "custom_tool_call", "input": "rm -r x"}));
    assert_eq!((custom.is_custom, custom.arguments), (true, Some(json!("rm -r x"))));
    let chat = json!({"id": "1", "type": "custom", "custom": {"name": "sh", "input": "ls"}});
    let chat = Format::OpenaiChat.wire().read_call(&chat).unwrap();
    assert_eq!((chat.is_custom, chat.name.as_str(), chat.arguments), (true, "sh", Some(json!("ls"))));
}

/// Schemas that every format takes as they are, and that take an argument.
fn any_schema() -> impl Strategy<Value = Value> {
    let property = prop_oneof![
        Just(json!({"type": "string", "description": "What."})),
        Just(json!({"type": "array", "items": {"type": "integer", "minimum": 0}})),
        Just(json!({"type": "string", "enum": ["b", "a"]})),
        any::<String>().prop_map(|text| json!({"type": "string", "description": text.replace('\0', "")})),
    ];
    let property = property.prop_recursive(3, 12, 4, |inner| {
        prop::collection::vec(("[a-z]{1,6}", inner), 1..4).prop_map(
            |members| json!({"type": "object", "properties": members.into_iter().collect::<Map<_, _>>()}),
        )
    });
    prop::collection::vec(("[a-z_]{1,8}", property), 1..5).prop_map(|members| {
        let required: Vec<String> = members.iter().take(1).map(|(key, _)| key.clone()).collect();
        let properties: Map<String, Value> = members.into_iter().collect();
        json!({"type": "object", "properties": properties, "required": required})
    })
}

/// The same schema as Gemini's OpenAPI subset writes it.
fn openapi(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let kind = value.as_str().filter(|_| key == "type");
                (key.clone(), kind.map_or_else(|| openapi(value), |kind| json!(kind.to_uppercase())))
            })
            .collect(),
        Value::Array(items) => items.iter().map(openapi).collect(),
        other => other.clone(),
    }
}

/// A tool in a format with some of the members that the format has, none of which needs to be mended.
fn uploads(name: &str, description: &str, schema: &Value, more: usize) -> Vec<(Format, Value)> {
    let extended = |base: Value, extras: &[Value]| {
        let mut tool = base;
        let extra = extras[more % extras.len()].as_object().unwrap().clone();
        tool.as_object_mut().unwrap().extend(extra);
        tool
    };
    let function = json!({"name": name, "description": description, "parameters": schema});
    let chat = extended(function.clone(), &[json!({}), json!({"strict": true}), json!({"strict": false})]);
    let mut flat = json!({"type": "function", "strict": false});
    flat.as_object_mut().unwrap().extend(function.as_object().unwrap().clone());
    let bedrock = json!({"name": name, "description": description, "inputSchema": {"json": schema}});
    vec![
        (Format::Canonical, function),
        (Format::OpenaiChat, json!({"type": "function", "function": chat})),
        (
            Format::OpenaiResponses,
            extended(
                flat,
                &[
                    json!({}),
                    json!({"strict": true}),
                    json!({"output_schema": {"type": "object"}, "allowed_callers": ["direct"]}),
                ],
            ),
        ),
        (
            Format::Anthropic,
            extended(
                json!({"name": name, "description": description, "input_schema": schema}),
                &[
                    json!({}),
                    json!({"type": "custom", "strict": true, "eager_input_streaming": true}),
                    json!({"input_examples": [{"a": 1}], "allowed_callers": ["direct"]}),
                ],
            ),
        ),
        (
            Format::Gemini,
            extended(
                json!({"name": name, "description": description, "parametersJsonSchema": schema}),
                &[
                    json!({}),
                    json!({"behavior": "NON_BLOCKING"}),
                    json!({"responseJsonSchema": {"type": "object"}}),
                ],
            ),
        ),
        (
            Format::Gemini,
            extended(
                json!({"name": name, "description": description, "parameters": openapi(schema)}),
                &[json!({}), json!({"response": {"type": "OBJECT"}})],
            ),
        ),
        (
            Format::BedrockConverse,
            json!({"toolSpec": extended(bedrock, &[json!({}), json!({"strict": true})])}),
        ),
        (
            Format::Mcp,
            extended(
                json!({"name": name, "description": description, "inputSchema": schema}),
                &[
                    json!({}),
                    json!({"title": "T", "annotations": {"readOnlyHint": true, "title": "T", "x": [1]}}),
                    json!({"outputSchema": {"type": "object"}, "_meta": {"a/b": {"c": 1}},
                    "icons": [{"src": "data:,"}], "execution": {"taskSupport": "optional"}}),
                ],
            ),
        ),
    ]
}

proptest! {
    #[test]
    fn a_tool_goes_out_as_it_came_in(
        name in "[A-Za-z_][A-Za-z0-9_-]{0,30}", description in "[^\0]{1,80}", schema in any_schema(), more in 0_usize..3
    ) {
        // What nobody sees goes out to nobody.
        let description = visible(&description);
        prop_assume!(!description.is_empty() && hidden_in(&schema) == 0);
        for (format, upload) in uploads(&name, &description, &schema, more) {
            let tool = read_entry(&upload.to_string(), LIMITS).unwrap();
            let kept: Value = serde_json::from_str(tool.parameters()).unwrap();
            prop_assert_eq!(&kept, &schema, "{:?}: everyone gets the JSON Schema", format);
            let rendered = render(format, &name, &tool).json;
            prop_assert_eq!(&serde_json::from_str::<Value>(&rendered).unwrap(), &upload, "{:?}", format);
            prop_assert_eq!(rendered, render_how(format, &name, &tool, &WHOLE).json);
            // A stored tool is an upload of itself, and nothing of one provider reaches another.
            let again = read_entry(tool.body(), LIMITS).unwrap();
            prop_assert_eq!(&again, &tool);
            for other in Format::ALL {
                let json = render(other, &name, &again).json;
                let plain = Tool::from_parts(&crate::core::tool::ToolParts {
                    name: name.as_str().into(),
                    description: serde_json::from_str(tool.description_json()).unwrap_or_default(),
                    parameters: serde_json::from_str(tool.parameters()).unwrap_or_default(),
                    ..Default::default()
                }).unwrap();
                let same_provider = Format::ALL[1..3].contains(&other) && Format::ALL[1..3].contains(&format);
                if other != format && !same_provider {
                    prop_assert_eq!(json, render(other, &name, &plain).json, "{:?} in {:?}", format, other);
                }
                prop_assert_eq!(
                    TokenCounts::of(&name, &again).get(other),
                    tokens::count(&render(other, &name, &again).json)
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn odd_calls_and_results_never_panic(text in any::<String>(), content in any::<String>(), is_error in any::<bool>()) {
        let value = serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text));
        for (format, mut call) in calls() {
            for key in ["name", "id", "call_id", "namespace", "type", "method", "arguments", "args", "input"] {
                let holder = ["function", "functionCall", "toolUse", "params"].iter().find(|key| call.get(**key).is_some());
                let place = match holder {
                    Some(holder) => &mut call[*holder],
                    None => &mut call,
                };
                place[key] = value.clone();
                if let Ok(read) = format.wire().read_call(&call) {
                    prop_assert!(format.wire().result_message(&read, &content, is_error).is_object());
                }
            }
            let _ = format.wire().read_call(&value);
        }
    }
}

#[test]
fn marks_of_a_place_stand_in_whole_definitions_only() {
    let entry = json!({"name": "t", "input_schema": {"type": "object", "properties": {"a": {}}},
        "cache_control": {"type": "ephemeral"}, "defer_loading": true, "strict": true});
    let tool = read_entry(&entry.to_string(), LIMITS).unwrap();
    let array: Value = serde_json::from_str(&render(Format::Anthropic, "t", &tool).json).unwrap();
    assert_eq!(array.get("cache_control").or(array.get("defer_loading")), None);
    assert_eq!(array["strict"], true);
    let whole: Value = serde_json::from_str(&render_how(Format::Anthropic, "t", &tool, &WHOLE).json).unwrap();
    assert_eq!(whole, entry);
}

#[test]
fn members_that_a_provider_would_refuse_are_left_out() {
    for (format, entry, key) in [
        (
            Format::OpenaiChat,
            json!({"type": "function", "function": {"name": "t", "strict": "yes"}}),
            "strict",
        ),
        (Format::OpenaiChat, json!({"name": "t", "strict": true}), "strict"),
        (Format::OpenaiChat, json!({"name": "t", "input_schema": {}, "strict": true}), "strict"),
        (
            Format::Anthropic,
            json!({"type": "function", "name": "t", "parameters": {}, "strict": true}),
            "strict",
        ),
        (Format::Anthropic, json!({"name": "t", "input_schema": {}, "owner": "me"}), "owner"),
        (
            Format::Mcp,
            json!({"name": "t", "inputSchema": {}, "annotations": {"readOnlyHint": 1}}),
            "annotations",
        ),
        (Format::Mcp, json!({"name": "t", "inputSchema": {}, "title": ["T"]}), "title"),
    ] {
        let tool = read_entry(&entry.to_string(), LIMITS).unwrap();
        let json = render(format, "t", &tool).json;
        assert!(!json.contains(&format!("\"{key}\"")), "{format:?}: {json}");
    }
}

#[test]
fn documented_defaults_stand_for_what_says_nothing() {
    let of = |format: Format, entry: Value| -> Value {
        let tool = read_entry(&entry.to_string(), LIMITS).unwrap();
        serde_json::from_str(&render(format, "t", &tool).json).unwrap()
    };
    let object = json!({"type": "object", "properties": {}});
    assert_eq!(
        of(
            Format::OpenaiResponses,
            json!({"type": "function", "name": "t", "parameters": null, "strict": null})
        ),
        json!({"type": "function", "name": "t", "parameters": object, "strict": false})
    );
    assert_eq!(
        of(Format::Gemini, json!({"name": "t", "description": "", "parametersJsonSchema": object})),
        json!({"name": "t"})
    );
    assert_eq!(
        of(Format::BedrockConverse, json!({"toolSpec": {"name": "t", "inputSchema": {"json": {}}}})),
        json!({"toolSpec": {"name": "t", "inputSchema": {"json": object}}})
    );
    assert_eq!(of(Format::Mcp, json!({"name": "t"})), json!({"name": "t", "inputSchema": object}));
}
