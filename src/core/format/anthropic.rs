//! Anthropic Messages: `{name, description, input_schema}` tools, `tool_use` blocks, `tool_result` blocks in a user
//! message. Results of one turn belong in one user message: join the `content` arrays of several.

use serde_json::{Value, json};

use super::layout::{Layout, Member, NoArguments, PLAIN_ARRAY};
use super::{ModelCall, ReadFault, Source, WireFormat, refuse_text, text_at};

pub(super) struct Anthropic;

static LAYOUT: Layout = Layout {
    open: "{\"name\":",
    schema: ",\"input_schema\":",
    openapi_schema: None,
    schema_end: "",
    close: "}",
    empty_description: false,
    no_arguments: NoArguments::Object,
    members: &[
        Member::of(Source::Anthropic, "type", |kind| kind == "custom"),
        Member::of(Source::Anthropic, "strict", Value::is_boolean),
        Member::of(Source::Anthropic, "input_examples", Value::is_array),
        Member::of(Source::Anthropic, "eager_input_streaming", Value::is_boolean),
        Member::of(Source::Anthropic, "allowed_callers", Value::is_array),
        Member::of(Source::Anthropic, "cache_control", Value::is_object).mark(),
        Member::of(Source::Anthropic, "defer_loading", Value::is_boolean).mark(),
    ],
    defaults: &[],
    own_schema: None,
    description_limit: None,
    more_tokens: 1,
    array: PLAIN_ARRAY,
};

impl WireFormat for Anthropic {
    fn layout(&self) -> &'static Layout {
        &LAYOUT
    }

    fn read_call(&self, call: &Value) -> Result<ModelCall, ReadFault> {
        refuse_text(call)?;
        let id = text_at(call, "id").unwrap_or_default();
        let Some(name) = text_at(call, "name") else {
            let why = "an anthropic call is `{type:\"tool_use\", id, name, input}`";
            return Err(ReadFault::broken(id, why));
        };
        Ok(ModelCall { id, name, arguments: call.get("input").cloned(), ..ModelCall::default() })
    }

    fn result_message(&self, call: &ModelCall, content: &str, is_error: bool) -> Value {
        let mut block = json!({"type": "tool_result", "tool_use_id": call.id, "content": content});
        if is_error {
            block["is_error"] = Value::Bool(true);
        }
        json!({"role": "user", "content": [block]})
    }
}
