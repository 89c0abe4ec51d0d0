//! Reading a conversation in any provider's shape: the calls of its last turn and its last user text.
//!
//! Messages are private: nothing of them is stored or logged.

use serde_json::Value;
use serde_json::value::RawValue;

/// Names of the tools that the model called in its last turn with calls.
///
/// Understood are `tool_calls[]` (OpenAI Chat), `content[]` with `tool_use` blocks (Anthropic), `function_call` items
/// (OpenAI Responses), `parts[]` with `functionCall` (Gemini), `toolUse` blocks (Bedrock) and `calls[]` (canonical).
/// Read from the end, as far as needed; a message that cannot be read is passed over.
pub fn last_called_names(messages: &[Box<RawValue>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for message in messages.iter().rev() {
        let Ok(message) = serde_json::from_str::<Value>(message.get()) else { continue };
        let mut called = called_names(&message);
        if called.is_empty() {
            // Results stand behind the calls of a turn; once calls were seen, anything else is before their turn.
            if names.is_empty() {
                continue;
            }
            break;
        }
        called.reverse();
        names.extend(called);
        // Only call items stand alone; every other message holds all calls of its turn.
        if message.get("type").and_then(Value::as_str) != Some("function_call") {
            break;
        }
    }
    names.reverse();
    names
}

fn called_names(message: &Value) -> Vec<String> {
    let list = |key: &str| message.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let blocks = list("content").iter().chain(list("parts")).chain(list("tool_calls")).chain(list("calls"));
    blocks.chain([message]).filter_map(called_name).map(str::to_owned).collect()
}

fn called_name(block: &Value) -> Option<&str> {
    let inner =
        ["function", "functionCall", "function_call", "toolUse"].iter().find_map(|key| block.get(*key));
    let kind = block.get("type").and_then(Value::as_str);
    let is_call = inner.is_some()
        || matches!(kind, Some("tool_use" | "function_call" | "tool-call"))
        || (block.get("arguments").is_some() && block.get("role").is_none());
    if !is_call {
        return None;
    }
    let holder = inner.filter(|inner| inner.is_object()).unwrap_or(block);
    holder.get("name").or_else(|| holder.get("toolName"))?.as_str()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_calls_are_found_in_every_shape() {
        let openai = json!([
            {"role": "assistant", "tool_calls": [{"id": "0", "function": {"name": "old", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "0", "content": "x"},
            {"role": "assistant", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}},
                {"id": "2", "type": "function", "function": {"name": "b", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "x"}
        ]);
        let anthropic = json!([
            {"role": "assistant", "content": [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "1", "name": "a", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "name"}]}
        ]);
        let responses = json!([
            {"type": "function_call", "name": "old", "arguments": "{}", "call_id": "0"},
            {"type": "function_call_output", "call_id": "0", "output": "x"},
            {"type": "function_call", "name": "a", "arguments": "{}", "call_id": "1"},
            {"type": "function_call", "name": "b", "arguments": "{}", "call_id": "2"},
            {"type": "function_call_output", "call_id": "1", "output": "x"},
            {"type": "function_call_output", "call_id": "2", "output": "x"}
        ]);
        let gemini = json!([{"role": "model", "parts": [{"functionCall": {"name": "a", "args": {}}}]}]);
        let names = |messages: &Value| {
            last_called_names(&serde_json::from_str::<Vec<_>>(&messages.to_string()).unwrap())
        };
        assert_eq!(names(&openai), ["a", "b"]);
        assert_eq!(names(&responses), ["a", "b"]);
        for messages in [&anthropic, &gemini] {
            assert_eq!(names(messages), ["a"], "{messages}");
        }
        assert!(names(&json!(["plain text", {"role": "user", "content": "hi", "name": "bob"}])).is_empty());
    }

    proptest! {
        #[test]
        fn odd_messages_never_panic(text in any::<String>()) {
            let value = serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text));
            let messages = json!([value, {"content": [value], "tool_calls": value}]).to_string();
            last_called_names(&serde_json::from_str::<Vec<_>>(&messages).unwrap());
        }
    }
}
