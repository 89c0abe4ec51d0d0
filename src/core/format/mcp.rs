//! Model Context Protocol: entries of a `tools/list` result, `tools/call` requests or their `params`, and results
//! with `content` and `isError`.

use serde_json::{Map, Value, json};

use super::layout::{ArrayText, Layout, Member, NoArguments};
use super::{ModelCall, ReadFault, WireFormat, text_at};
use crate::core::mend::is_sound;

pub(super) struct Mcp;

static LAYOUT: Layout = Layout {
    open: "{\"name\":",
    schema: ",\"inputSchema\":",
    openapi_schema: None,
    schema_end: "",
    close: "}",
    empty_description: false,
    no_arguments: NoArguments::Object,
    members: &[
        Member::of_any("title", Value::is_string),
        Member::of_any("outputSchema", is_object_schema),
        Member::of_any("annotations", are_annotations),
        Member::of_any("icons", are_icons),
        Member::of_any("execution", is_execution),
        Member::of_any("_meta", Value::is_object),
    ],
    defaults: &[],
    own_schema: None,
    description_limit: None,
    more_tokens: 1,
    // Unlike a provider's field, `tools` of a list result has to be an array.
    array: ArrayText { open: "[", close: "]", empty: "[]", tokens: 0 },
};

/// A schema whose root says that it is an object, as the protocol wants it; clients compile it, and want an object for
/// each of its properties.
fn is_object_schema(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    schema.get("type").is_some_and(|kind| kind == "object")
        && properties.is_none_or(|properties| properties.values().all(Value::is_object))
        && is_sound(schema)
}

/// Annotations whose known members have their types: clients refuse the whole list for a wrong one.
fn are_annotations(annotations: &Value) -> bool {
    let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    annotations.is_object()
        && hints.iter().all(|hint| annotations.get(*hint).is_none_or(Value::is_boolean))
        && annotations.get("title").is_none_or(Value::is_string)
}

fn are_icons(icons: &Value) -> bool {
    let texts = |sizes: &Value| sizes.as_array().is_some_and(|sizes| sizes.iter().all(Value::is_string));
    let is_icon = |icon: &Value| {
        icon.get("src").is_some_and(Value::is_string)
            && icon.get("sizes").is_none_or(texts)
            && icon.get("mimeType").is_none_or(Value::is_string)
            && icon.get("theme").is_none_or(|theme| matches!(theme.as_str(), Some("light" | "dark")))
    };
    icons.as_array().is_some_and(|icons| icons.iter().all(is_icon))
}

fn is_execution(execution: &Value) -> bool {
    let known = |support: &Value| matches!(support.as_str(), Some("forbidden" | "optional" | "required"));
    execution.is_object() && execution.get("taskSupport").is_none_or(known)
}

impl WireFormat for Mcp {
    fn layout(&self) -> &'static Layout {
        &LAYOUT
    }

    fn read_call(&self, call: &Value) -> Result<ModelCall, ReadFault> {
        if let Some(method) = call.get("method").filter(|method| *method != "tools/call") {
            return Err(ReadFault::NotACall(format!("the method {method} is no `tools/call`")));
        }
        let request_id = call.get("id").filter(|id| id.is_string() || id.is_number());
        let mut read = ModelCall {
            id: request_id.map_or_else(String::new, |id| id.as_str().map_or(id.to_string(), str::to_owned)),
            // Bare params have an id only where the caller wants to tell several calls apart.
            request_id: request_id.filter(|_| call.get("method").is_some()).cloned(),
            ..ModelCall::default()
        };
        let params = call.get("params").unwrap_or(call);
        let Some(name) = text_at(params, "name") else {
            let why =
                "an mcp call is `{name, arguments}`, or the JSON-RPC request `tools/call` with it".to_owned();
            return Err(ReadFault::Broken { call: Box::new(read), why });
        };
        read.name = name;
        read.arguments = params.get("arguments").cloned();
        Ok(read)
    }

    fn result_message(&self, call: &ModelCall, content: &str, is_error: bool) -> Value {
        let result = json!({"content": [{"type": "text", "text": content}], "isError": is_error});
        let Some(id) = &call.request_id else { return result };
        Value::Object(Map::from_iter([
            ("jsonrpc".to_owned(), Value::from("2.0")),
            ("id".to_owned(), id.clone()),
            ("result".to_owned(), result),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_the_wrong_kind_is_left_out() {
        assert!(are_annotations(&json!({"title": "T", "readOnlyHint": true, "other": [1]})));
        assert!(!are_annotations(&json!({"readOnlyHint": "yes"})) && !are_annotations(&json!([])));
        assert!(are_icons(&json!([{"src": "https://x.example/a.png"}])) && !are_icons(&json!([{}])));
        for icon in [
            json!({"src": "a", "sizes": "any"}),
            json!({"src": "a", "mimeType": 7}),
            json!({"src": "a", "theme": "blue"}),
        ] {
            assert!(!are_icons(&json!([icon])), "{icon}");
        }
        assert!(are_icons(
            &json!([{"src": "a", "sizes": ["any"], "mimeType": "image/png", "theme": "dark"}])
        ));
        assert!(is_execution(&json!({"taskSupport": "optional"})));
        assert!(!is_execution(&json!({"taskSupport": "maybe"})) && !is_execution(&json!("local")));
        assert!(is_object_schema(&json!({"type": "object"})) && !is_object_schema(&json!({"type": "array"})));
        let result = |property: Value| json!({"type": "object", "properties": {"a": property}});
        assert!(is_object_schema(&result(json!({"type": "string"}))));
        for property in [json!(true), json!({"type": "text"}), json!({"$ref": "#/$defs/none"})] {
            assert!(!is_object_schema(&result(property.clone())), "{property}");
        }
    }

    #[test]
    fn a_request_is_answered_under_its_own_id() {
        let answer = |call: &Value| Mcp.result_message(&Mcp.read_call(call).unwrap(), "x", false);
        let params = json!({"name": "t", "arguments": {}});
        let result = json!({"content": [{"type": "text", "text": "x"}], "isError": false});
        assert_eq!(answer(&params), result);
        for id in [json!(7), json!("7")] {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            assert_eq!(answer(&request), json!({"jsonrpc": "2.0", "id": id, "result": result}));
            assert_eq!(Mcp.read_call(&request).unwrap().id, "7");
        }
        let other = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
        assert!(matches!(Mcp.read_call(&other), Err(ReadFault::NotACall(_))));
    }
}
