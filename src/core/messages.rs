//! Reading a conversation in any provider's shape: the calls of its last turn and its last user text.
//!
//! Messages are private: nothing of them is stored or logged.

use serde_json::Value;
use serde_json::value::RawValue;

use super::digest::Digest;

/// The last turn of a conversation in which the model called tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastCalls {
    /// Names of the tools, in the order of the calls.
    pub names: Vec<String>,
    /// Tells this turn from others of the conversation; nothing without calls.
    pub turn: Option<Digest>,
}

/// What the model called in its last turn with calls.
///
/// Understood are `tool_calls[]` (OpenAI Chat), `content[]` with `tool_use` blocks (Anthropic), `function_call` items
/// (OpenAI Responses), `parts[]` with `functionCall` (Gemini), `toolUse` blocks (Bedrock) and `calls[]` (canonical).
/// Read from the end, as far as needed; a message that cannot be read is passed over.
pub fn last_calls(messages: &[Box<RawValue>]) -> LastCalls {
    let mut names: Vec<String> = Vec::new();
    let mut turn = None;
    for (at, message) in messages.iter().enumerate().rev() {
        let text = message.get();
        let Ok(message) = serde_json::from_str::<Value>(text) else { continue };
        let mut called = called_names(&message);
        if called.is_empty() {
            // Results stand behind the calls of a turn; once calls were seen, anything else is before their turn.
            if names.is_empty() {
                continue;
            }
            break;
        }
        // Calls without an id may be the same, word for word, in several turns.
        turn = turn.or_else(|| Some(Digest::of_parts(&[&at.to_be_bytes(), text.as_bytes()])));
        called.reverse();
        names.extend(called);
        // Only call items stand alone; every other message holds all calls of its turn.
        if message.get("type").and_then(Value::as_str) != Some("function_call") {
            break;
        }
    }
    names.reverse();
    LastCalls { names, turn }
}

/// Longest text of a user that is read, in characters (`product.md`, section 3).
pub const MAX_USER_TEXT_CHARS: usize = 2_000;

/// The text of the latest message of the user that has any, its first [`MAX_USER_TEXT_CHARS`] characters.
///
/// Understood are plain strings, and messages of the role `user` with their text in `content`, as a string or in blocks
/// (OpenAI Chat and Responses, Anthropic, Bedrock), or in `parts` (Gemini, where the role may be absent). Results of
/// tools that travel in a message of the user are not the user's text. Read from the end, as far as needed; a message
/// that cannot be read is passed over.
pub fn last_user_text(messages: &[Box<RawValue>]) -> Option<String> {
    messages.iter().rev().find_map(|message| user_text(&serde_json::from_str(message.get()).ok()?))
}

fn user_text(message: &Value) -> Option<String> {
    if message.is_string() {
        return joined_texts(message);
    }
    let is_users = match message.get("role").and_then(Value::as_str) {
        Some(role) => role == "user",
        None => message.get("parts").is_some(),
    };
    // Some libraries say the same in both places.
    let places = ["content", "parts"].iter().filter_map(|key| message.get(*key));
    places.filter(|_| is_users).find_map(joined_texts)
}

/// The texts of one block or of several, on lines of their own.
fn joined_texts(blocks: &Value) -> Option<String> {
    let blocks = blocks.as_array().map_or(std::slice::from_ref(blocks), Vec::as_slice);
    let mut joined = String::new();
    let mut room = MAX_USER_TEXT_CHARS;
    for text in blocks.iter().filter_map(block_text).map(str::trim).filter(|text| !text.is_empty()) {
        if !joined.is_empty() {
            joined.push('\n');
            room = room.saturating_sub(1);
        }
        let end = text.char_indices().nth(room).map_or(text.len(), |(end, _)| end);
        joined.push_str(&text[..end]);
        room -= text[..end].chars().count();
        if room == 0 {
            break;
        }
    }
    joined.truncate(joined.trim_end().len());
    (!joined.is_empty()).then_some(joined)
}

fn block_text(block: &Value) -> Option<&str> {
    if let Value::String(text) = block {
        return Some(text);
    }
    // Bedrock's blocks have no type; all but these two types are no words of the user.
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("text");
    let guarded = || block.pointer("/guardContent/text/text");
    let text = block.get("text").or_else(guarded)?.as_str();
    text.filter(|_| matches!(kind, "text" | "input_text"))
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
            last_calls(&serde_json::from_str::<Vec<_>>(&messages.to_string()).unwrap()).names
        };
        assert_eq!(names(&openai), ["a", "b"]);
        assert_eq!(names(&responses), ["a", "b"]);
        for messages in [&anthropic, &gemini] {
            assert_eq!(names(messages), ["a"], "{messages}");
        }
        assert!(names(&json!(["plain text", {"role": "user", "content": "hi", "name": "bob"}])).is_empty());
    }

    #[test]
    fn a_turn_is_the_same_until_the_model_calls_again() {
        let turn = |messages: &Value| {
            last_calls(&serde_json::from_str::<Vec<_>>(&messages.to_string()).unwrap()).turn
        };
        // Gemini's calls have no ids.
        let call = json!({"role": "model", "parts": [{"functionCall": {"name": "a", "args": {}}}]});
        let mut messages = vec![json!({"role": "user", "parts": [{"text": "go"}]})];
        assert_eq!(turn(&json!(messages)), None);
        messages.push(call.clone());
        let first = turn(&json!(messages));
        messages
            .push(json!({"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {}}}]}));
        messages.push(json!({"role": "model", "parts": [{"text": "done"}]}));
        assert!(first.is_some() && turn(&json!(messages)) == first);
        messages.push(call);
        assert_ne!(turn(&json!(messages)), first);
    }

    fn user_text_of(messages: &Value) -> Option<String> {
        last_user_text(&serde_json::from_str::<Vec<_>>(&messages.to_string()).unwrap())
    }

    #[test]
    fn the_last_user_text_is_found_in_every_shape() {
        for messages in [
            json!(["hello", "book a flight", " "]),
            json!([{"role": "system", "content": "s"}, {"role": "user", "content": "book a flight"},
                {"role": "assistant", "content": "which day?"}, {"role": "tool", "content": "x"}]),
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}},
                {"type": "text", "text": "book a flight"}]}]),
            json!([{"role": "user", "content": "old"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "book a flight"}]},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "function_call", "name": "a", "arguments": "{}", "call_id": "1"},
                {"type": "function_call_output", "call_id": "1", "output": "x"}]),
            json!([{"role": "user", "content": [{"type": "text", "text": "book a flight"}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "a", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "x"}]}]}]),
            json!([{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "x"}, {"type": "text", "text": "book a flight"}]}]),
            json!([{"parts": [{"text": "book a flight"}]}]),
            json!([{"role": "user", "parts": [{"inlineData": {}}, {"text": "book a flight"}]},
                {"role": "model", "parts": [{"text": "so", "thought": true}, {"functionCall": {"name": "a"}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"text": "x"}}}]}]),
            json!([{"role": "user", "content": [{"text": "book a flight"}]},
                {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "a", "input": {}}}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "x"}]}}]}]),
            json!([{"role": "user", "content": [{"guardContent": {"text": {"text": "book a flight"}}}]}]),
            json!([{"role": "user", "content": {"type": "text", "text": "book a flight"}}]),
            json!([{"role": "user", "content": "book a flight", "parts": [{"type": "text", "text": "book a flight"}]}]),
        ] {
            assert_eq!(user_text_of(&messages).as_deref(), Some("book a flight"), "{messages}");
        }
        let several = json!([{"role": "user", "content": [{"type": "text", "text": " book\n"}, "", {"text": "a flight"}]}]);
        assert_eq!(user_text_of(&several).as_deref(), Some("book\na flight"));
        for nothing in [
            json!([]),
            json!([7, null, "", {"role": "assistant", "content": "x"}, {"content": "x"}, {"role": 7, "content": "x"}]),
            json!([{"role": "user"}, {"role": "user", "content": null}, {"role": "user", "content": [{"text": 7}]}]),
        ] {
            assert_eq!(user_text_of(&nothing), None, "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn odd_messages_never_panic(text in any::<String>()) {
            let value = serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text));
            let message = json!({"role": "user", "content": [value], "parts": value, "tool_calls": value});
            let messages = json!([value, message]).to_string();
            let messages = serde_json::from_str::<Vec<_>>(&messages).unwrap();
            last_calls(&messages);
            last_user_text(&messages);
        }

        #[test]
        fn a_user_text_is_never_blank_and_never_too_long(texts in prop::collection::vec("[ é好]{0,1500}", 0..4)) {
            let blocks: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
            let found = user_text_of(&json!([{"role": "user", "content": blocks}]));
            prop_assert_eq!(found.is_some(), texts.iter().any(|text| !text.trim().is_empty()));
            if let Some(text) = found {
                prop_assert!(!text.trim().is_empty() && text.chars().count() <= MAX_USER_TEXT_CHARS);
                prop_assert!(texts.iter().any(|given| text.starts_with(given.trim()) || given.trim().starts_with(&text)));
            }
        }
    }
}
