//! Amazon Bedrock Converse: `{toolSpec:{…}}` tools (the value of `toolConfig.tools`), `toolUse` blocks, `toolResult`
//! blocks in a user message. Results of one turn belong in one user message: join the `content` arrays of several.

use serde_json::{Value, json};

use super::layout::{Layout, Member, NoArguments, PLAIN_ARRAY};
use super::{ModelCall, ReadFault, Source, WireFormat, text_at};

pub(super) struct BedrockConverse;

static LAYOUT: Layout = Layout {
    open: "{\"toolSpec\":{\"name\":",
    schema: ",\"inputSchema\":{\"json\":",
    openapi_schema: None,
    schema_end: "}",
    close: "}}",
    empty_description: false,
    no_arguments: NoArguments::Object,
    members: &[Member::of(Source::Bedrock, "strict", Value::is_boolean)],
    defaults: &[],
    own_schema: None,
    description_limit: None,
    more_tokens: 6,
    array: PLAIN_ARRAY,
};

impl WireFormat for BedrockConverse {
    fn layout(&self) -> &'static Layout {
        &LAYOUT
    }

    fn read_call(&self, block: &Value) -> Result<ModelCall, ReadFault> {
        let inner = block.get("toolUse").filter(|inner| !inner.is_null());
        let other = ["text", "reasoningContent", "image", "document", "video", "guardContent", "cachePoint"];
        if inner.is_none() && other.iter().any(|key| block.get(*key).is_some()) {
            return Err(ReadFault::NotACall("a block without `toolUse` is no call".to_owned()));
        }
        let call = inner.unwrap_or(block);
        let id = text_at(call, "toolUseId").unwrap_or_default();
        let Some(name) = text_at(call, "name") else {
            let why = "a bedrock_converse call is a block `{toolUse:{toolUseId, name, input}}`";
            return Err(ReadFault::broken(id, why));
        };
        Ok(ModelCall { id, name, arguments: call.get("input").cloned(), ..ModelCall::default() })
    }

    fn result_message(&self, call: &ModelCall, content: &str, is_error: bool) -> Value {
        let status = if is_error { "error" } else { "success" };
        // A content block must not be empty.
        let text = if content.is_empty() { " " } else { content };
        json!({"role": "user", "content": [
            {"toolResult": {"toolUseId": call.id, "content": [{"text": text}], "status": status}}
        ]})
    }
}
