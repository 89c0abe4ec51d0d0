//! Hidden characters in JSON: what `text` says of one text, said of all texts and keys of a value.

use serde_json::Value;

use super::text::{counted, hidden_characters};

/// How many hidden characters the texts and keys of a value hold. Recurses as deep as the value is: uploads are bounded.
pub fn hidden_in(value: &Value) -> usize {
    match value {
        Value::String(text) => hidden_characters(text),
        Value::Array(values) => values.iter().map(hidden_in).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| hidden_characters(key) + hidden_in(value)).sum(),
        _ => 0,
    }
}

/// As [`hidden_in`], for JSON text. Plain ASCII is not even read.
pub fn hidden_in_text(raw: &str) -> usize {
    if raw.is_ascii() && !raw.contains("\\u") {
        return 0;
    }
    serde_json::from_str(raw).map_or(0, |value| hidden_in(&value))
}

/// What is told of a tool whose texts hold so many hidden characters.
pub fn told(hidden: usize) -> String {
    let hidden = counted(hidden, "character that is not shown", "characters that are not shown");
    format!("its texts hold {hidden}; what a model sees leaves that out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_depth_hide_nothing() {
        assert_eq!(hidden_in_text(r#"{"a":["plain \\u200b","\u00e9"]}"#), 0);
        assert_eq!(hidden_in_text(r#"{"a":[{"b\u200b":"\ud83d\ude00\udb40\udc41"}]}"#), 2);
        assert_eq!(hidden_in_text("{\"a\":\"\u{202e}\"}"), 1);
        assert_eq!(hidden_in_text("no json \\u"), 0);
    }
}
