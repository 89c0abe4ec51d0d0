//! OpenAI Chat Completions: `{type:"function", function:{…}}` tools, `tool_calls[]` with the arguments as a string,
//! `role: tool` messages. Also what DeepSeek, Groq, Mistral, Ollama and vLLM speak.

use serde_json::{Value, json};

use super::layout::{Layout, Member, NoArguments, PLAIN_ARRAY};
use super::{ModelCall, ReadFault, Source, WireFormat, refuse_text, text_at};

pub(super) struct OpenaiChat;

static LAYOUT: Layout = Layout {
    open: "{\"type\":\"function\",\"function\":{\"name\":",
    schema: ",\"parameters\":",
    openapi_schema: None,
    schema_end: "",
    close: "}}",
    empty_description: false,
    no_arguments: NoArguments::Object,
    members: &[Member::of(Source::Openai, "strict", Value::is_boolean)],
    defaults: &[],
    own_schema: None,
    // Enforced in reports of 2024 and 2025 as `string_above_max_length` (`tool-formats.md`, section 1.3).
    description_limit: Some(1_024),
    more_tokens: 6,
    array: PLAIN_ARRAY,
};

impl WireFormat for OpenaiChat {
    fn layout(&self) -> &'static Layout {
        &LAYOUT
    }

    fn read_call(&self, call: &Value) -> Result<ModelCall, ReadFault> {
        refuse_text(call)?;
        let id = text_at(call, "id").unwrap_or_default();
        if let Some(custom) = call.get("custom")
            && let Some(name) = text_at(custom, "name")
        {
            let arguments = custom.get("input").cloned();
            return Ok(ModelCall { id, name, arguments, is_custom: true, ..ModelCall::default() });
        }
        // Some gateways hand the inner object on its own.
        let function = call.get("function").unwrap_or(call);
        let Some(name) = text_at(function, "name") else {
            let why = "an openai_chat call is `{id, type:\"function\", function:{name, arguments}}`";
            return Err(ReadFault::broken(id, why));
        };
        Ok(ModelCall { id, name, arguments: function.get("arguments").cloned(), ..ModelCall::default() })
    }

    fn result_message(&self, call: &ModelCall, content: &str, _is_error: bool) -> Value {
        json!({"role": "tool", "tool_call_id": call.id, "content": content})
    }
}
