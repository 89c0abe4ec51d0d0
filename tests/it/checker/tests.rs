//! What the checker must refuse: a checker that finds nothing shows nothing.

use serde_json::{Value, json};

use super::*;

fn of(format: &'static str, profile: &'static str) -> Asked<'static> {
    Asked { profile, format, openapi: false }
}

/// An array with one tool of this schema.
fn array(asked: Asked<'_>, schema: &Value) -> Value {
    match asked.format {
        "openai_chat" => json!([{"type": "function", "function": {"name": "t", "parameters": schema}}]),
        "openai_responses" => {
            json!([{"type": "function", "name": "t", "parameters": schema, "strict": false}])
        }
        "anthropic" => json!([{"name": "t", "input_schema": schema}]),
        "gemini" if asked.openapi => json!([{"functionDeclarations": [{"name": "t", "parameters": schema}]}]),
        "gemini" => json!([{"functionDeclarations": [{"name": "t", "parametersJsonSchema": schema}]}]),
        "bedrock_converse" => json!([{"toolSpec": {"name": "t", "inputSchema": {"json": schema}}}]),
        _ => json!([{"name": "t", "parameters": schema}]),
    }
}

#[test]
fn a_plain_tool_is_taken_by_all() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    for (profile, formats) in PROFILES {
        for format in formats.iter().filter(|format| **format != "mcp") {
            let asked = of(format, profile);
            assert_eq!(faults(asked, &array(asked, &schema)), Vec::<String>::new(), "{asked:?}");
        }
    }
}

#[test]
fn schemas_that_were_reported_are_refused() {
    let a = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let (openai, anthropic) = (of("openai_chat", "openai"), of("anthropic", "anthropic"));
    let (gemini, vllm) = (of("gemini", "gemini"), of("openai_chat", "vllm"));
    let openapi = Asked { openapi: true, ..gemini };
    let (nova, deepseek) = (of("bedrock_converse", "bedrock-nova"), of("openai_chat", "deepseek"));
    for (asked, schema) in [
        (openai, json!({})),
        (openai, json!({"type": "object"})),
        (openai, json!({"type": "object", "properties": {}, "oneOf": [{}]})),
        (openai, json!({"type": "object", "properties": {}, "required": ["b"]})),
        (openai, a(json!({"type": "array"}))),
        (openai, a(json!({"type": ["array", "null"]}))),
        (openai, a(json!({"enum": []}))),
        (openai, a(json!({"type": ""}))),
        (openai, a(json!({"required": null}))),
        (openai, a(json!({"$ref": "#/$defs/x"}))),
        (anthropic, json!({"type": "object", "anyOf": [{}]})),
        (anthropic, json!({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"})),
        (anthropic, json!({"type": "object", "properties": {"$top": {}}})),
        (gemini, a(json!({"oneOf": [{}]}))),
        (gemini, a(json!({"type": "string", "enum": [""]}))),
        (openapi, a(json!({"type": ["string", "null"]}))),
        (openapi, a(json!({"description": "Untyped."}))),
        (openapi, a(json!({"type": "object", "additionalProperties": false}))),
        (openapi, a(json!({"type": "integer", "enum": [1]}))),
        (openapi, json!({"type": "object", "properties": {}})),
        (openapi, json!({"type": "object", "properties": {"a.b": {"type": "string"}}})),
        (of("bedrock_converse", "bedrock"), a(json!({"$ref": "#"}))),
        (nova, json!({"type": "object", "properties": {}, "description": "D."})),
        (deepseek, a(json!({"type": "string", "pattern": "(?!x)"}))),
        (deepseek, a(json!({"type": "string", "pattern": "["}))),
        (vllm, a(json!({"type": "string", "format": "uri"}))),
        (vllm, a(json!({"type": "array", "items": {}, "minItems": 1}))),
        (vllm, a(json!({"type": "string", "maxLength": 2_000}))),
        (of("openai_chat", "ollama"), a(json!({"allOf": [{}]}))),
        (of("canonical", "generic"), a(json!({"type": "string", "minLength": 9_999}))),
    ] {
        assert!(!faults(asked, &array(asked, &schema)).is_empty(), "{asked:?}: {schema}");
    }
}

#[test]
fn strict_schemas_that_are_none_are_refused() {
    let strict =
        |schema: Value| json!([{"type": "function", "name": "t", "parameters": schema, "strict": true}]);
    let closed = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let asked = of("openai_responses", "openai");
    assert!(faults(asked, &strict(closed(json!({"a": {"type": "string"}}), json!(["a"])))).is_empty());
    let mut deep = json!({"type": "string"});
    for _ in 0..11 {
        deep = closed(json!({"a": deep}), json!(["a"]));
    }
    let many: Map<String, Value> =
        (0..5_001).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
    let all: Vec<&String> = many.keys().collect();
    for schema in [
        json!({"type": "object", "properties": {}}),
        closed(json!({"a": {"type": "string"}}), json!([])),
        closed(json!({"a": {"type": "string", "default": "x"}}), json!(["a"])),
        closed(json!({"a": {}}), json!(["a"])),
        closed(json!({"a": {"type": "array", "items": {}}}), json!(["a"])),
        closed(json!({"a": {"type": "string", "format": "uri"}}), json!(["a"])),
        deep,
        closed(json!(many), json!(all)),
    ] {
        let found = faults(asked, &strict(schema.clone()));
        assert!(found.iter().any(|fault| fault.contains("strict")), "{schema}: {found:?}");
    }
    let one = closed(json!({"a": {"type": "string"}}), json!(["a"]));
    let tools: Vec<Value> =
        (0..21).map(|at| json!({"name": format!("t{at}"), "input_schema": one, "strict": true})).collect();
    assert!(!faults(of("anthropic", "anthropic"), &json!(tools)).is_empty());
}

#[test]
fn arrays_names_and_descriptions_that_were_reported_are_refused() {
    let tool = |name: &str, description: &str| {
        json!({"type": "function", "function": {"name": name, "description": description,
            "parameters": {"type": "object", "properties": {}}}})
    };
    let many: Vec<Value> = (0..129).map(|at| tool(&format!("t{at}"), "D.")).collect();
    for (profile, array) in [
        ("openai", json!([])),
        ("openai", json!(many)),
        ("openai", json!([tool("t", "D."), tool("t", "D.")])),
        ("openai", json!([tool("a.b", "D.")])),
        ("openai", json!([tool(&"x".repeat(65), "D.")])),
        ("openai", json!([tool("t", &"x".repeat(1_025))])),
        ("openai", json!([tool("t", "")])),
        ("openai", json!([{"name": "t", "parameters": {"type": "object", "properties": {}}}])),
        ("generic", json!([tool("2fa", "D.")])),
    ] {
        assert!(!faults(of("openai_chat", profile), &array).is_empty(), "{profile}: {array}");
    }
    let nova =
        json!([{"toolSpec": {"name": "a-b", "inputSchema": {"json": {"type": "object", "properties": {}}}}}]);
    assert!(!faults(of("bedrock_converse", "bedrock-nova"), &nova).is_empty());
    assert!(!faults(of("gemini", "gemini"), &json!([{"functionDeclarations": []}])).is_empty());
    assert!(!faults(of("gemini", "gemini"), &json!([{"name": "t"}])).is_empty());
    assert!(
        !faults(
            of("openai_responses", "openai"),
            &json!([{"type": "function", "name": "t",
        "parameters": {"type": "object", "properties": {}}}])
        )
        .is_empty()
    );
}
