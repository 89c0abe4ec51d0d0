//! Turns what serde says about an input into faults with a place: a JSON pointer, a code and a sentence.
//!
//! serde has no error codes, only texts; this file is the one place that reads them (its tests hold them), and it
//! keeps the caller's values out of what is answered.

use serde_path_to_error::{Path, Segment};

use crate::core::warning::{FieldError, pointer_push};

/// Longest text of a single fault, in characters.
const DETAIL_CHARS: usize = 400;

/// The fault at `path` that serde describes as `message`.
///
/// Codes: `unknown_key`, `missing_key`, `duplicate_key`, `wrong_type`, `invalid_value`.
pub(crate) fn field_error(path: &Path, message: &str) -> FieldError {
    let message = without_position(message);
    let mut pointer = pointer_of(path);
    let (code, detail) = if let Some(rest) = message.strip_prefix("unknown field `") {
        // The last one, because the key itself may hold anything and the names after it are our own.
        let end =
            rest.rfind("`, expected ").or_else(|| rest.rfind("`, there are no fields")).unwrap_or(rest.len());
        name_last(&mut pointer, path, &rest[..end]);
        let known = rest.get(end + 3..).unwrap_or_default();
        ("unknown_key", format!("this key is not known here; {known}"))
    } else if let Some(key) = quoted(message, "missing field `") {
        pointer_push(&mut pointer, key);
        ("missing_key", "this key is required".to_owned())
    } else if let Some(key) = quoted(message, "duplicate field `") {
        name_last(&mut pointer, path, key);
        ("duplicate_key", "this is given twice".to_owned())
    } else if let Some(rest) = message.strip_prefix("invalid type: ") {
        ("wrong_type", expected_found(rest))
    } else if let Some(rest) = message.strip_prefix("invalid value: ") {
        ("invalid_value", expected_found(rest))
    } else if let Some(rest) = message.strip_prefix("invalid length ") {
        let expected = rest.rsplit_once(", expected ").map_or(rest, |(_, expected)| expected);
        ("wrong_type", format!("expected {}", plain_type(expected)))
    } else if message.starts_with("unknown variant `") {
        let expected = message.rfind("`, expected ").map_or("another value", |at| &message[at + 3..]);
        ("invalid_value", expected.to_owned())
    } else if message.starts_with("data did not match any variant") || message == "expected value" {
        // The second is what serde_json says where an enum is expected.
        ("wrong_type", "the value has none of the accepted shapes".to_owned())
    } else {
        ("invalid_value", message.to_owned())
    };
    FieldError::new(pointer, code, clipped(detail))
}

/// Cuts off the ` at line 1 column 2` that serde_json adds; the pointer says it better.
fn without_position(message: &str) -> &str {
    let digits_only = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = message.rsplit_once(" at line ");
    match parts.and_then(|(before, place)| Some((before, place.split_once(" column ")?))) {
        Some((before, (line, column))) if digits_only(line) && digits_only(column) => before,
        _ => message,
    }
}

/// Ends the pointer with the key that serde names, if the path does not (as in query parameters and enums).
fn name_last(pointer: &mut String, path: &Path, key: &str) {
    if !matches!(path.iter().next_back(), Some(Segment::Map { key: last }) if last == key) {
        pointer_push(pointer, key);
    }
}

fn pointer_of(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer_push(&mut pointer, &index.to_string()),
            Segment::Map { key } => pointer_push(&mut pointer, key),
            // An enum's variant is a choice, not a place; what stands for it in the text is the value itself.
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

fn quoted<'a>(message: &'a str, before: &str) -> Option<&'a str> {
    message.strip_prefix(before)?.strip_suffix('`')
}

/// Rewrites `string "secret", expected u64`: the kind of value is told, the value is not.
fn expected_found(rest: &str) -> String {
    let (found, expected) = rest.rsplit_once(", expected ").unwrap_or((rest, "another value"));
    let kind = found.split(['`', '"']).next().unwrap_or_default().trim_end();
    let found = match kind {
        "map" => "an object",
        "sequence" => "an array",
        "string" | "character" => "a string",
        "boolean" => "a boolean",
        "integer" => "an integer",
        "floating point" => "a fraction",
        "null" | "unit value" | "Option value" => "null",
        _ => "something else",
    };
    let expected = plain_type(expected);
    // Both are integers when one is out of range; "expected an integer, found an integer" would help nobody.
    if kind == "integer" {
        let number = found_number(rest).unwrap_or("this one");
        return format!("expected {expected}, found the integer {number}");
    }
    format!("expected {expected}, found {found}")
}

fn found_number(rest: &str) -> Option<&str> {
    let number = rest.strip_prefix("integer `")?.split('`').next()?;
    (number.len() <= 40).then_some(number)
}

/// The words of JSON for the words of Rust.
fn plain_type(expected: &str) -> String {
    match expected {
        "u8" => "an integer from 0 to 255".to_owned(),
        "u16" => "an integer from 0 to 65535".to_owned(),
        "u32" => "an integer from 0 to 4294967295".to_owned(),
        "u64" | "usize" => "an integer that is not negative".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" | "any valid JSON object" => "an object".to_owned(),
        "unit" => "null".to_owned(),
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum ") => {
            "an object".to_owned()
        }
        other if other.starts_with("tuple ") => "an array".to_owned(),
        other if other.starts_with("enum ") || other.starts_with("string or map") => {
            "one of the names".to_owned()
        }
        other => other.to_owned(),
    }
}

fn clipped(mut detail: String) -> String {
    if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS) {
        detail.truncate(end);
        detail.push('…');
    }
    detail
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Detail {
        Brief,
        Full,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        #[expect(dead_code, reason = "only its shape is tested")]
        One(String),
        #[expect(dead_code, reason = "only its shape is tested")]
        Many(Vec<String>),
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape is tested")]
    struct Tool {
        name: String,
        limit: Option<u32>,
        small: Option<u8>,
        detail: Option<Detail>,
        names: Option<OneOrMany>,
        raw: Option<Box<serde_json::value::RawValue>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape is tested")]
    struct Body {
        tools: Vec<Tool>,
        #[serde(default)]
        map: BTreeMap<String, u64>,
    }

    fn fault(text: &str) -> (String, &'static str, String) {
        let mut reader = serde_json::Deserializer::from_str(text);
        let error = serde_path_to_error::deserialize::<_, Body>(&mut reader).expect_err(text);
        let fault = field_error(error.path(), &error.inner().to_string());
        (fault.pointer, fault.code, fault.detail)
    }

    #[test]
    fn every_kind_of_fault_names_its_place() {
        for (text, pointer, code) in [
            (r#"{"tools":[{"name":"a"},{"name":"b","foo":1}]}"#, "/tools/1/foo", "unknown_key"),
            (r#"{"tools":[],"a/b~c":1}"#, "/a~1b~0c", "unknown_key"),
            (r#"{"tools":[],"`, expected x":1}"#, "/`, expected x", "unknown_key"),
            (r#"{"tools":[{"limit":1}]}"#, "/tools/0/name", "missing_key"),
            (r#"{"map":{}}"#, "/tools", "missing_key"),
            (r#"{"tools":[{"name":7}]}"#, "/tools/0/name", "wrong_type"),
            (r#"{"tools":{}}"#, "/tools", "wrong_type"),
            (r#"{"tools":["x"]}"#, "/tools/0", "wrong_type"),
            (r#"{"tools":[],"map":{"k":-1}}"#, "/map/k", "invalid_value"),
            (r#"{"tools":[{"name":"a","detail":"ful"}]}"#, "/tools/0/detail", "invalid_value"),
            (r#"{"tools":[{"name":"a","detail":[]}]}"#, "/tools/0/detail", "wrong_type"),
            (r#"{"tools":[{"name":"a","names":7}]}"#, "/tools/0/names", "wrong_type"),
            (r#"{"tools":[{"name":"a","raw":{"x":[1]},"small":300}]}"#, "/tools/0/small", "invalid_value"),
        ] {
            let (at, kind, detail) = fault(text);
            assert_eq!((&*at, kind), (pointer, code), "{text}: {detail}");
        }
    }

    #[test]
    fn details_help_and_do_not_repeat_values() {
        let secret = r#"{"tools":[{"name":"a","limit":"sk-secret, expected nothing"}]}"#;
        assert_eq!(fault(secret).2, "expected an integer from 0 to 4294967295, found a string");
        assert_eq!(fault(r#"{"tools":[{"name":{}}]}"#).2, "expected a string, found an object");
        assert_eq!(
            fault(r#"{"map":{"k":-1}}"#).2,
            "expected an integer that is not negative, found the integer -1"
        );
        let unknown = fault(r#"{"tool":[]}"#).2;
        assert_eq!(unknown, "this key is not known here; expected `tools` or `map`");
        assert_eq!(fault(r#"{"tools":[{"detail":"x"}]}"#).2, "expected `brief` or `full`");
    }
}
