//! The canonical format: `{name, description, parameters}` tools, `{id, name, arguments}` calls,
//! `{role:"tool", id, name, content}` messages.

use serde_json::{Value, json};

use super::{ModelCall, ToolText, WireFormat, object_schema};
use crate::core::digest::push_string;

pub(super) struct Canonical;

impl WireFormat for Canonical {
    fn description_limit(&self) -> Option<usize> {
        None
    }

    fn write_tool(&self, tool: ToolText<'_>, out: &mut String) {
        write_definition(tool, "parameters", out);
    }

    fn read_call(&self, call: &Value) -> Result<ModelCall, String> {
        let name = text_at(call, "name").ok_or("a call is an object with `name` and `arguments`")?;
        Ok(ModelCall {
            id: text_at(call, "id").unwrap_or_default(),
            name,
            arguments: call.get("arguments").cloned(),
        })
    }

    fn result_message(&self, id: &str, name: &str, content: &str, _is_error: bool) -> Value {
        json!({"role": "tool", "id": id, "name": name, "content": content})
    }
}

/// `{"name":…,"description":…,"<schema_key>":…}`.
pub(super) fn write_definition(tool: ToolText<'_>, schema_key: &str, out: &mut String) {
    out.push_str("{\"name\":");
    push_string(tool.wire_name, out);
    out.push_str(",\"description\":");
    out.push_str(tool.description);
    out.push_str(",\"");
    out.push_str(schema_key);
    out.push_str("\":");
    out.push_str(tool.parameters);
    out.push('}');
}

/// As [`write_definition`], without an empty description and with a schema that says at least what it is.
pub(super) fn write_lean_definition(tool: ToolText<'_>, schema_key: &str, out: &mut String) {
    let parameters = object_schema(tool.parameters);
    if tool.description == "\"\"" {
        out.push_str("{\"name\":");
        push_string(tool.wire_name, out);
        out.push_str(",\"");
        out.push_str(schema_key);
        out.push_str("\":");
        out.push_str(&parameters);
        out.push('}');
    } else {
        write_definition(ToolText { parameters: &parameters, ..tool }, schema_key, out);
    }
}

/// A non-empty string member.
pub(super) fn text_at(object: &Value, key: &str) -> Option<String> {
    object.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}
