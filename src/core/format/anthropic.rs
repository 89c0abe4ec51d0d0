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
        Member::of(Source::Anthropic, "input_examples", are_objects),
        Member::of(Source::Anthropic, "eager_input_streaming", Value::is_boolean),
        Member::of(Source::Anthropic, "allowed_callers", are_callers),
        Member::of(Source::Anthropic, "cache_control", Value::is_object).mark(),
        Member::of(Source::Anthropic, "defer_loading", Value::is_boolean).mark(),
    ],
    defaults: &[],
    own_schema: None,
    description_limit: None,
    more_tokens: 1,
    array: PLAIN_ARRAY,
};

fn are_objects(examples: &Value) -> bool {
    examples.as_array().is_some_and(|examples| examples.iter().all(Value::is_object))
}

/// The model itself, or a version of the code execution tool.
fn are_callers(callers: &Value) -> bool {
    let is_known = |caller: &Value| {
        caller.as_str().is_some_and(|caller| caller == "direct" || caller.starts_with("code_execution_"))
    };
    callers.as_array().is_some_and(|callers| !callers.is_empty() && callers.iter().all(is_known))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_the_provider_refuses_are_left_out() {
        assert!(are_objects(&json!([{"a": 1}])) && !are_objects(&json!(["a"])) && !are_objects(&json!("a")));
        assert!(are_callers(&json!(["direct", "code_execution_20260120"])));
        for callers in [json!(["someone"]), json!([]), json!("direct"), json!([7])] {
            assert!(!are_callers(&callers), "{callers}");
        }
    }
}
