//! OpenAI Responses: flat `{type:"function", name, …}` tools, `function_call` items with the arguments as a string,
//! `function_call_output` items. Namespaces and tool search stand in [`native`].

use serde_json::{Value, json};

use super::layout::{Layout, Member, NoArguments, PLAIN_ARRAY, is_sound_object};
use super::{ModelCall, ReadFault, Source, WireFormat, native, text_at};

pub(super) struct OpenaiResponses;

static LAYOUT: Layout = Layout {
    open: "{\"type\":\"function\",\"name\":",
    schema: ",\"parameters\":",
    openapi_schema: None,
    schema_end: "",
    close: "}",
    empty_description: false,
    no_arguments: NoArguments::Object,
    members: &[
        Member::of(Source::Openai, "strict", Value::is_boolean),
        Member::of(Source::Openai, "output_schema", is_sound_object),
        Member::of(Source::Openai, "allowed_callers", are_callers),
        Member::of(Source::Openai, "defer_loading", Value::is_boolean).mark(),
    ],
    // Without it the provider makes every argument required where the schema lets it (`tool-formats.md`, section 1.4).
    defaults: &[("strict", "false")],
    own_schema: None,
    description_limit: None,
    more_tokens: 4,
    array: PLAIN_ARRAY,
};

/// The type of the items by which a model asks for tools.
const SEARCH_CALL: &str = "tool_search_call";

/// Reads a call of the search. One that the provider runs itself has no id to answer under.
fn read_search(call: &Value) -> Result<ModelCall, ReadFault> {
    let Some(id) = text_at(call, "call_id") else {
        return Err(ReadFault::NotACall(
            "a tool_search_call without `call_id` is answered by the provider".to_owned(),
        ));
    };
    let arguments = call.get("arguments").cloned();
    Ok(ModelCall { id, name: "tool_search".to_owned(), arguments, is_search: true, ..ModelCall::default() })
}

/// The namespace of tools that stand in none.
const DEFAULT_NAMESPACE: &str = "functions";

fn are_callers(callers: &Value) -> bool {
    let is_known = |caller: &Value| matches!(caller.as_str(), Some("direct" | "programmatic"));
    callers.as_array().is_some_and(|callers| !callers.is_empty() && callers.iter().all(is_known))
}

impl WireFormat for OpenaiResponses {
    fn layout(&self) -> &'static Layout {
        &LAYOUT
    }

    fn read_call(&self, call: &Value) -> Result<ModelCall, ReadFault> {
        let kind = call.get("type").and_then(Value::as_str);
        let is_custom = match kind {
            None | Some("function_call") => false,
            Some("custom_tool_call") => true,
            Some(SEARCH_CALL) => return read_search(call),
            Some(other) => {
                let why = format!("an item of type `{other}` is no function call");
                return Err(ReadFault::NotACall(why));
            }
        };
        let id = text_at(call, "call_id").or_else(|| text_at(call, "id")).unwrap_or_default();
        let Some(name) = text_at(call, "name") else {
            let why = "an openai_responses call is `{type:\"function_call\", call_id, name, arguments}`";
            return Err(ReadFault::broken(id, why));
        };
        // A deferred tool outside of namespaces is called in one of its own name.
        let namespace = text_at(call, "namespace")
            .filter(|namespace| *namespace != name && namespace != DEFAULT_NAMESPACE);
        let arguments = call.get(if is_custom { "input" } else { "arguments" }).cloned();
        Ok(ModelCall { id, name, namespace, arguments, is_custom, ..ModelCall::default() })
    }

    fn result_message(&self, call: &ModelCall, content: &str, _is_error: bool) -> Value {
        if call.is_search {
            // The item has no place for words.
            let item = native::tool_search_output(&call.id, &[]);
            return serde_json::from_str(&item).unwrap_or_default();
        }
        json!({"type": "function_call_output", "call_id": call.id, "output": content})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_the_provider_refuses_are_left_out() {
        assert!(are_callers(&json!(["direct", "programmatic"])));
        for callers in [json!(["someone"]), json!([]), json!("direct"), json!([7])] {
            assert!(!are_callers(&callers), "{callers}");
        }
    }
}
