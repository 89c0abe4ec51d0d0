//! Gemini: declarations inside one `{functionDeclarations:[…]}`, `functionCall` parts, `functionResponse` parts in a
//! user content. Responses of one turn belong in one content: join the `parts` arrays of several.

use serde_json::{Map, Value, json};

use super::layout::{ArrayText, Layout, Member, NoArguments, is_sound_object};
use super::openapi_schema::is_openapi;
use super::{ModelCall, ReadFault, Source, WireFormat, text_at};

pub(super) struct Gemini;

static LAYOUT: Layout = Layout {
    open: "{\"name\":",
    schema: ",\"parametersJsonSchema\":",
    openapi_schema: Some(",\"parameters\":"),
    schema_end: "",
    close: "}",
    empty_description: false,
    no_arguments: NoArguments::LeftOut,
    members: &[
        Member::of(Source::Gemini, "parameters", are_parameters),
        Member::of(Source::Gemini, "response", is_openapi),
        Member::of(Source::Gemini, "responseJsonSchema", is_sound_object),
        Member::of(Source::Gemini, "behavior", is_behavior),
    ],
    defaults: &[],
    own_schema: Some("parameters"),
    description_limit: None,
    more_tokens: 2,
    // `[{functionDeclarations:[]}]` is refused like an empty array (gemini-cli#22210).
    array: ArrayText { open: "[{\"functionDeclarations\":[", close: "]}]", empty: "null", tokens: 5 },
};

/// A schema of OpenAPI's subset that names at least one argument: a root without any is refused.
fn are_parameters(schema: &Value) -> bool {
    let named = schema.get("properties").and_then(Value::as_object).is_some_and(|known| !known.is_empty());
    let is_object =
        schema.get("type").and_then(Value::as_str).is_some_and(|kind| kind.eq_ignore_ascii_case("object"));
    named && is_object && is_openapi(schema)
}

fn is_behavior(behavior: &Value) -> bool {
    matches!(behavior.as_str(), Some("UNSPECIFIED" | "BLOCKING" | "NON_BLOCKING"))
}

impl WireFormat for Gemini {
    fn layout(&self) -> &'static Layout {
        &LAYOUT
    }

    fn read_call(&self, part: &Value) -> Result<ModelCall, ReadFault> {
        // Python's client writes snake case.
        let inner = part.get("functionCall").or_else(|| part.get("function_call")).filter(|it| !it.is_null());
        let other = ["text", "inlineData", "fileData", "executableCode", "codeExecutionResult"];
        if inner.is_none() && other.iter().any(|key| part.get(*key).is_some()) {
            return Err(ReadFault::NotACall("a part without `functionCall` is no call".to_owned()));
        }
        let call = inner.unwrap_or(part);
        let id = text_at(call, "id").unwrap_or_default();
        let Some(name) = text_at(call, "name") else {
            return Err(ReadFault::broken(id, "a gemini call is a part `{functionCall:{name, args}}`"));
        };
        Ok(ModelCall { id, name, arguments: call.get("args").cloned(), ..ModelCall::default() })
    }

    fn result_message(&self, call: &ModelCall, content: &str, is_error: bool) -> Value {
        let mut response = Map::new();
        // The id is the caller's own and optional; one that was never given must not come back.
        if !call.id.is_empty() {
            response.insert("id".to_owned(), Value::from(call.id.as_str()));
        }
        response.insert("name".to_owned(), Value::from(call.name.as_str()));
        response.insert("response".to_owned(), response_object(content, is_error));
        json!({"role": "user", "parts": [{"functionResponse": response}]})
    }
}

/// The object that a response has to be: `output` or `error`, the two keys that the provider knows.
fn response_object(content: &str, is_error: bool) -> Value {
    let parsed = serde_json::from_str::<Value>(content).ok();
    let value = parsed.filter(|value| value.is_object() || value.is_array());
    let value = value.unwrap_or_else(|| Value::from(content));
    if !is_error {
        return json!({"output": value});
    }
    match value {
        Value::Object(object) if object.len() == 1 && object.contains_key("error") => Value::Object(object),
        other => json!({"error": other}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_the_provider_refuses_are_left_out() {
        assert!(are_parameters(&json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}})));
        assert!(!are_parameters(&json!({"type": "OBJECT", "properties": {}})));
        assert!(!are_parameters(&json!({"type": "OBJECT", "properties": {"a": {"const": 1}}})));
        assert!(is_behavior(&json!("BLOCKING")) && !is_behavior(&json!("SLOW")) && !is_behavior(&json!(7)));
    }

    #[test]
    fn a_response_is_an_object_whatever_the_content() {
        let of = |content: &str, is_error| response_object(content, is_error).to_string();
        assert_eq!(of(r#"{"b":1,"a":2}"#, false), r#"{"output":{"b":1,"a":2}}"#);
        assert_eq!(of("[1]", false), r#"{"output":[1]}"#);
        assert_eq!(of("plain", false), r#"{"output":"plain"}"#);
        assert_eq!(of("7", false), r#"{"output":"7"}"#);
        assert_eq!(of(r#"{"error":{"code":"x"}}"#, true), r#"{"error":{"code":"x"}}"#);
        assert_eq!(of(r#"{"results":[]}"#, true), r#"{"error":{"results":[]}}"#);
    }
}
