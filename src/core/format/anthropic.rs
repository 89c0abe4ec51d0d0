//! Anthropic Messages: `{name, description, input_schema}` tools, `tool_use` blocks, `tool_result` blocks in a user
//! message. Results of one turn belong in one user message: join the `content` arrays of several.

use serde_json::{Value, json};

use super::canonical::{text_at, write_lean_definition};
use super::{ModelCall, ToolText, WireFormat};

pub(super) struct Anthropic;

/// Tokens that `input_schema` costs above `parameters`; a test holds it against the vocabulary.
pub(super) const KEY_TOKENS: usize = 1;

impl WireFormat for Anthropic {
    fn description_limit(&self) -> Option<usize> {
        None
    }

    fn write_tool(&self, tool: ToolText<'_>, out: &mut String) {
        write_lean_definition(tool, "input_schema", out);
    }

    fn read_call(&self, call: &Value) -> Result<ModelCall, String> {
        let name =
            text_at(call, "name").ok_or("an anthropic call is `{type:\"tool_use\", id, name, input}`")?;
        Ok(ModelCall {
            id: text_at(call, "id").unwrap_or_default(),
            name,
            arguments: call.get("input").cloned(),
        })
    }

    fn result_message(&self, id: &str, _name: &str, content: &str, is_error: bool) -> Value {
        let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        if is_error {
            block["is_error"] = Value::Bool(true);
        }
        json!({"role": "user", "content": [block]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tokens::count;

    #[test]
    fn the_key_costs_what_is_said() {
        let with =
            |key: &str| count(&format!(r#"{{"name":"x","description":"y","{key}":{{"type":"object"}}}}"#));
        assert_eq!(with("input_schema") - with("parameters"), KEY_TOKENS);
    }
}
