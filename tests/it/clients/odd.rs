//! Tools that some library or provider refuses as they are, one oddity each; the messy catalog has milder ones.

use serde_json::{Value, json};

/// Every one of them is a tool that an upload keeps.
pub(super) fn tools() -> Vec<Value> {
    let names = [
        "a.dot",
        "a/slash",
        "a space",
        "9starts_with_a_digit",
        "-starts-with-a-dash",
        "schöne_grüße",
        "名前",
        "🦀",
        "constructor",
        "__proto__",
        "toString",
        "tool_search",
    ];
    let named = names.map(|name| json!({"name": name, "description": "Says its name."}));
    let schemas = [
        json!({"oneOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "null"}]}),
        json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}),
        json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"$ref": "#/$defs/b"}],
            "$defs": {"b": {"type": "object", "properties": {"b": {"type": "integer"}}}}}),
        json!({"type": "string", "enum": ["a"]}),
        json!({"type": ["object", "null"], "properties": {"a": {"type": ["string", "null"]}}}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"not": {"type": "null"}}),
        json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
            "next": {"$ref": "#/$defs/node"}, "value": {"type": "integer"}}}}}),
        with("a", &json!({"$ref": "https://schemas.example.com/a.json"})),
        with("a", &json!({"$ref": "#/definitions/none"})),
        json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/b"}}, "definitions": {"b": true}}),
        with("a", &json!({"enum": []})),
        with("a", &json!({"type": "string", "enum": ["", null, "x", "x"]})),
        with("a", &json!({"enum": [1, 2.5, true, null, {"a": 1}, ["b"]]})),
        with("a", &json!({"type": "string", "const": null})),
        with("a", &json!(true)),
        with("a", &json!(false)),
        with("a", &json!(null)),
        with("a", &json!("string")),
        with("a", &json!([{"type": "string"}])),
        with("a", &json!({"type": "array"})),
        with("a", &json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]})),
        with("a", &json!({"type": "array", "items": true, "minItems": -1, "uniqueItems": "yes"})),
        with("a", &json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false})),
        with("a", &json!({"type": "date", "format": 7, "description": ["not a text"]})),
        with("a", &json!({"type": "integer", "minimum": "0", "exclusiveMinimum": true, "multipleOf": 0})),
        with("a", &json!({"type": "string", "minLength": 1.5, "maxLength": 1e20, "pattern": "(?<!a)(b"})),
        with("a", &json!({"type": "string", "required": true, "nullable": true, "default": {"a": [null]}})),
        with(
            "a",
            &json!({"type": "object", "properties": [], "required": "a", "additionalProperties": "no"}),
        ),
        with(
            "a",
            &json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "minProperties": 1}),
        ),
        with("a", &json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "integer"}})),
        with("a", &json!({"anyOf": [{"type": "string"}, {"type": "array"}, true], "type": "string"})),
        with("a", &json!({"type": "OBJECT", "properties": {"b": {"type": "STRING", "nullable": true}}})),
        with("filter[id]", &json!({"type": "string"})),
        with("", &json!({"type": "string"})),
        with("$ref", &json!({"type": "string"})),
        with("type", &json!({"type": "string"})),
        with("properties", &json!({"type": "object", "properties": {"required": {"type": "boolean"}}})),
        with(&"k".repeat(100), &json!({"type": "string"})),
        json!({"type": "object", "properties": null, "required": null}),
        json!({"type": "object", "properties": {"a": {}}, "required": ["a", "a", "b", 7]}),
        json!({"type": "object", "required": ["a"]}),
        json!({"type": "object", "additionalProperties": {"type": "list"}}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "x", "type": "object",
            "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}}),
        json!({"type": "object", "$id": 7, "$defs": [], "definitions": {"a": 1}, "title": {}, "examples": "x"}),
    ];
    let shaped = schemas.into_iter().enumerate().map(|(at, schema)| {
        json!({"name": format!("odd_schema_{at:02}"), "description": "Has an odd schema.", "parameters": schema})
    });
    named.into_iter().chain(shaped).chain(members()).collect()
}

fn with(key: &str, schema: &Value) -> Value {
    json!({"type": "object", "properties": { key: schema }, "required": [key]})
}

/// Members that only one provider has, with values that it refuses and values that it takes.
fn members() -> Vec<Value> {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut tools = Vec::new();
    let mut add = |kind: &str, schema_key: &str, members: Value| {
        let mut tool = json!({"name": format!("{kind}_{:02}", tools.len()), "description": "Has odd members.", schema_key: schema});
        let Value::Object(members) = members else { panic!("not an object: {members}") };
        tool.as_object_mut().unwrap().extend(members);
        tools.push(tool);
    };
    for members in [
        json!({"outputSchema": {"type": "array", "items": {"type": "string"}}}),
        json!({"outputSchema": true}),
        json!({"outputSchema": {"type": "object", "properties": {"a": true}}}),
        json!({"outputSchema": {"type": "object", "properties": {"a": {"type": "text"}}}}),
        json!({"outputSchema": {"type": "object", "properties": {"a": {"enum": []}, "b": {"nullable": true}}}}),
        json!({"outputSchema": {"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string", "format": "odd"}}}}),
        json!({"outputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}}),
        json!({"outputSchema": {"type": "object", "required": "a"}}),
        json!({"outputSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(("}}}}),
        json!({"outputSchema": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}}),
        json!({"outputSchema": {"type": "object", "$id": "same", "properties": {}}}),
        json!({"outputSchema": {"type": "object", "$id": "same", "properties": {"a": {}}}}),
        json!({"annotations": {"title": 7, "readOnlyHint": "yes"}}),
        json!({"annotations": {"title": "T", "readOnlyHint": true, "vendor": [1]}}),
        json!({"icons": [{"src": "https://icons.example.com/a.png", "sizes": "any"}]}),
        json!({"icons": [{"src": "https://icons.example.com/a.png", "sizes": ["48x48"], "mimeType": 7}]}),
        json!({"icons": [{"src": "https://icons.example.com/a.png", "sizes": ["48x48"], "theme": "blue"}]}),
        json!({"icons": {"src": "a.png"}, "title": ["T"], "_meta": "none", "execution": "local"}),
        json!({"title": "T", "_meta": {"a/b": [null]}, "execution": {"taskSupport": "optional"}}),
    ] {
        add("mcp", "inputSchema", members);
    }
    for members in [
        json!({"cache_control": {"type": "ephemeral"}, "defer_loading": true, "type": "custom"}),
        json!({"cache_control": 7, "defer_loading": "yes", "strict": "yes"}),
        json!({"input_examples": [{"a": "x"}], "allowed_callers": ["direct"], "eager_input_streaming": true}),
        json!({"input_examples": "x", "allowed_callers": "direct", "eager_input_streaming": "yes"}),
        json!({"input_examples": ["x", null], "allowed_callers": ["someone"]}),
        json!({"type": null, "eager_input_streaming": null, "strict": null}),
    ] {
        add("anthropic", "input_schema", members);
    }
    for members in [
        json!({"type": "function", "strict": true, "output_schema": {"type": "object"}}),
        json!({"type": "function", "strict": null, "output_schema": null, "allowed_callers": null}),
        json!({"type": "function", "strict": "no", "output_schema": 7, "allowed_callers": ["someone"]}),
        json!({"type": "function", "output_schema": {"type": "text"}, "allowed_callers": "direct"}),
        json!({"type": "function", "defer_loading": true, "async": true}),
    ] {
        add("openai", "parameters", members);
    }
    for members in [
        json!({"behavior": "BLOCKING", "response": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}),
        json!({"behavior": "SLOW", "response": {"type": "text", "$schema": "x"}}),
        json!({"behavior": 7, "responseJsonSchema": {"type": "text"}}),
        json!({"responseJsonSchema": {"type": "object"}, "response": {"type": "OBJECT"}}),
    ] {
        add("gemini", "parametersJsonSchema", members);
    }
    // In Gemini's own subset of OpenAPI, and out of it.
    for (at, property) in [
        json!({"type": "STRING", "nullable": true, "enum": ["x"], "format": "enum"}),
        json!({"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1"}),
        json!({"type": "STRING", "const": "x"}),
        json!({"type": "INTEGER", "exclusiveMinimum": 1}),
        json!({"type": "OBJECT", "additionalProperties": {"type": "STRING"}, "$comment": "x"}),
        json!({"type": "INTEGER", "enum": [1, 2]}),
        json!({"type": "ARRAY"}),
        json!({"oneOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
    ]
    .into_iter()
    .enumerate()
    {
        tools.push(json!({"name": format!("openapi_{at}"), "description": "Has odd parameters.",
            "parameters": {"type": "OBJECT", "properties": {"a": property}}}));
    }
    tools
}
