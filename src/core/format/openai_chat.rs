//! OpenAI Chat Completions: `{type:"function", function:{…}}` tools, `tool_calls[]` with the arguments as a string,
//! `role: tool` messages. Also what DeepSeek, Groq, Mistral, Ollama and vLLM speak.

use serde_json::{Value, json};

use super::canonical::{text_at, write_lean_definition};
use super::{ModelCall, ToolText, WireFormat};

pub(super) struct OpenaiChat;

/// Tokens of `{"type":"function","function":` in front of the canonical text; a test holds it against the vocabulary.
pub(super) const HEAD_TOKENS: usize = 6;

impl WireFormat for OpenaiChat {
    /// Enforced in reports of 2024 and 2025 as `string_above_max_length` (`tool-formats.md`, section 1.3).
    fn description_limit(&self) -> Option<usize> {
        Some(1_024)
    }

    fn write_tool(&self, tool: ToolText<'_>, out: &mut String) {
        out.push_str("{\"type\":\"function\",\"function\":");
        write_lean_definition(tool, "parameters", out);
        out.push('}');
    }

    fn read_call(&self, call: &Value) -> Result<ModelCall, String> {
        // Some gateways hand the inner object on its own.
        let function = call.get("function").unwrap_or(call);
        let name = text_at(function, "name")
            .ok_or("an openai_chat call is `{id, type:\"function\", function:{name, arguments}}`")?;
        Ok(ModelCall {
            id: text_at(call, "id").unwrap_or_default(),
            name,
            arguments: function.get("arguments").cloned(),
        })
    }

    fn result_message(&self, id: &str, _name: &str, content: &str, _is_error: bool) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": content})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tokens::count;

    #[test]
    fn the_head_costs_what_is_said() {
        let inner = r#"{"name":"x"}"#;
        let wrapped = format!("{{\"type\":\"function\",\"function\":{inner}");
        assert_eq!(count(&wrapped) - count(inner), HEAD_TOKENS);
    }
}
