//! The canonical format: `{name, description, parameters}` tools, `{id, name, arguments}` calls,
//! `{role:"tool", id, name, content}` messages.

use serde_json::{Value, json};

use super::layout::{Layout, NoArguments, PLAIN_ARRAY};
use super::{ModelCall, ReadFault, WireFormat, refuse_text, text_at};

pub(super) struct Canonical;

static LAYOUT: Layout = Layout {
    open: "{\"name\":",
    schema: ",\"parameters\":",
    openapi_schema: None,
    schema_end: "",
    close: "}",
    empty_description: true,
    no_arguments: NoArguments::AsIs,
    members: &[],
    defaults: &[],
    own_schema: None,
    description_limit: None,
    more_tokens: 0,
    array: PLAIN_ARRAY,
};

impl WireFormat for Canonical {
    fn layout(&self) -> &'static Layout {
        &LAYOUT
    }

    fn read_call(&self, call: &Value) -> Result<ModelCall, ReadFault> {
        refuse_text(call)?;
        let id = text_at(call, "id").unwrap_or_default();
        let Some(name) = text_at(call, "name") else {
            return Err(ReadFault::broken(id, "a call is an object with `name` and `arguments`"));
        };
        Ok(ModelCall { id, name, arguments: call.get("arguments").cloned(), ..ModelCall::default() })
    }

    fn result_message(&self, call: &ModelCall, content: &str, _is_error: bool) -> Value {
        json!({"role": "tool", "id": call.id, "name": call.name, "content": content})
    }
}
