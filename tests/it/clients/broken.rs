//! Something that each kind of check takes and something like it that it must refuse: a check that takes everything
//! would show nothing.

use serde_json::{Value, json};

/// A value that a library takes and one that it refuses.
#[derive(Debug)]
pub(super) struct Pair {
    /// The library and what the value is for it.
    pub kind: (&'static str, &'static str),
    pub good: Value,
    pub broken: Value,
    /// Stands in what is said of the broken one.
    pub told: &'static str,
}

/// For each kind of check at least one.
pub(super) fn pairs() -> Vec<Pair> {
    let pair = |kind, good, broken, told| Pair { kind, good, broken, told };
    let schema = || json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let anthropic = |more: Value| json!([merged(json!({"name": "t", "input_schema": schema()}), more)]);
    let chat = |more: Value| json!([{"type": "function", "function": merged(json!({"name": "t", "parameters": schema()}), more)}]);
    let function = |more: Value| {
        merged(json!({"type": "function", "name": "t", "parameters": schema(), "strict": false}), more)
    };
    let namespace =
        |tool: Value| json!([{"type": "namespace", "name": "g", "description": "d", "tools": [tool]}]);
    let found = |tool: Value| {
        json!([{"type": "tool_search_output", "call_id": "c", "execution": "client", "status": "completed",
            "tools": [tool]}])
    };
    let added = |tool: Value| json!([{"type": "additional_tools", "role": "developer", "tools": [tool]}]);
    let reference = |key: &str| {
        json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c",
            "content": [{"type": "tool_reference", key: "t"}]}]}])
    };
    let declaration = |more: Value| json!([{"functionDeclarations": [merged(json!({"name": "t"}), more)]}]);
    let content = |response: Value| json!([{"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "t", "response": response}}]}]);
    let spec = |name: &str| json!([{"toolSpec": {"name": name, "inputSchema": {"json": schema()}}}]);
    let result = |status: &str| {
        json!([{"role": "user", "content": [{"toolResult": {"toolUseId": "c", "status": status,
            "content": [{"text": "x"}]}}]}])
    };
    let mcp = |more: Value| json!([merged(json!({"name": "t", "inputSchema": schema()}), more)]);
    let message = |kind: &str| json!({"jsonrpc": "2.0", "id": "c", "result": {"content": [{"type": kind, "text": "x"}], "isError": false}});
    let search = |execution: &str| json!([{"type": "tool_search", "execution": execution}]);
    let deferred = json!({"defer_loading": true});
    let sdk_tools = ("@modelcontextprotocol/sdk", "tools");
    vec![
        pair(("anthropic", "tools"), anthropic(deferred.clone()), anthropic(json!({"defer": true})), "defer"),
        pair(
            ("anthropic", "tools"),
            anthropic(json!({})),
            anthropic(json!({"input_schema": {"type": "string"}})),
            "object",
        ),
        pair(
            ("anthropic", "tools"),
            anthropic(json!({})),
            anthropic(json!({"input_schema": {"type": "object", "properties": {"a": {"type": "text"}}}})),
            "no JSON Schema",
        ),
        pair(("anthropic", "messages"), reference("tool_name"), reference("name"), "tool_name"),
        pair(("openai", "chat_tools"), chat(json!({"strict": false})), chat(json!({"strict": 1})), "strict"),
        pair(("openai", "chat_tools"), chat(json!({})), chat(json!({"strict": true})), "not strict"),
        pair(
            ("openai", "chat_messages"),
            json!([{"role": "tool", "tool_call_id": "c", "content": "x"}]),
            json!([{"role": "tool", "content": "x"}]),
            "tool_call_id",
        ),
        pair(
            ("openai", "responses_tools"),
            json!([function(deferred.clone())]),
            json!([{"type": "function", "name": "t", "parameters": schema()}]),
            "strict",
        ),
        pair(
            ("openai", "responses_tools"),
            namespace(function(deferred.clone())),
            namespace(function(json!({"name": 1}))),
            "name",
        ),
        pair(("openai", "responses_tools"), search("client"), search("agent"), "execution"),
        pair(
            ("openai", "responses_items"),
            found(function(deferred)),
            found(function(json!({"parameters": 1}))),
            "parameters",
        ),
        pair(
            ("openai", "responses_items"),
            added(function(json!({}))),
            added(function(json!({"late": true}))),
            "late",
        ),
        pair(
            ("google-genai", "tools"),
            declaration(json!({"parametersJsonSchema": schema()})),
            declaration(json!({"inputSchema": schema()})),
            "inputSchema",
        ),
        pair(
            ("google-genai", "tools"),
            declaration(json!({"parameters": schema()})),
            declaration(json!({"parameters": {"type": "object", "$schema": "x"}})),
            "$schema",
        ),
        pair(
            ("google-genai", "vertex_tools"),
            declaration(json!({"parameters": schema()})),
            declaration(json!({"parameters": {"type": "object", "properties": {"a": {"enum": [1]}}}})),
            "enum",
        ),
        pair(("google-genai", "contents"), content(json!({"output": "x"})), content(json!("x")), "response"),
        pair(("botocore", "tools"), spec("t"), spec("a.b"), "[a-zA-Z0-9_-]+"),
        pair(("botocore", "tools"), spec("t"), json!([]), "min length"),
        pair(("botocore", "messages"), result("success"), result("fine"), "success"),
        pair(("mcp", "tools"), mcp(json!({})), mcp(json!({"outputSchema": {"type": "array"}})), "object"),
        pair(("mcp", "message"), message("text"), message("words"), "type"),
        pair(sdk_tools, mcp(json!({})), mcp(json!({"annotations": {"readOnlyHint": "yes"}})), "readOnlyHint"),
        pair(
            sdk_tools,
            mcp(json!({})),
            mcp(json!({"outputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}})),
            "$defs/none",
        ),
        pair(("@modelcontextprotocol/sdk", "message"), message("text"), message("words"), "content.0"),
        pair(
            ("ai", "tools"),
            json!([{"name": "t", "parameters": schema()}, {"name": "u", "parameters": schema()}]),
            json!([{"name": "t", "parameters": schema()}, {"name": "t", "parameters": schema()}]),
            "other tools",
        ),
    ]
}

fn merged(mut value: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("not an object: {more}") };
    value.as_object_mut().unwrap().extend(more);
    value
}
