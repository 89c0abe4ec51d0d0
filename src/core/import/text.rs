//! From the text that somebody pasted to JSON text: JSON itself, JSON with comments, several JSON values after each other
//! (JSON Lines), or YAML.
//!
//! Settles the syntax alone. Depth, duplicate keys and the like are checked where a part is read, so that one bad tool
//! does not cost the others.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{loose, yaml};

/// Most values after each other in one text.
const MAX_VALUES: usize = 100_000;

/// Where a text stops being what it seems to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// From 1.
    pub(super) line: usize,
    /// From 1; for JSON in bytes.
    pub(super) column: usize,
    pub(super) detail: String,
}

impl Fault {
    pub(super) fn new(line: usize, column: usize, detail: impl Into<String>) -> Self {
        Self { line, column, detail: detail.into() }
    }
}

/// Reads a text; the fault is a sentence with line and column.
pub(super) fn to_json(text: &str) -> Result<Cow<'_, RawValue>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err("the text is empty".to_owned());
    }
    if let Ok(json) = serde_json::from_str::<&RawValue>(text) {
        return Ok(Cow::Borrowed(json));
    }
    let blanked = loose::blank(text);
    let json = match read_values(&blanked) {
        Ok(json) => return Ok(Cow::Owned(json)),
        Err(fault) => fault,
    };
    if let Some(json) = read_lines(&blanked) {
        return Ok(Cow::Owned(json));
    }
    let told = |kind: &str, fault: Fault| {
        let Fault { line, column, detail } = fault;
        Err(format!("the text stops being {kind} at line {line} column {column}: {detail}"))
    };
    if is_json_alone(&blanked) {
        return told("JSON", json);
    }
    match yaml::read(text) {
        Ok(value) if value.is_object() || value.is_array() => {
            RawValue::from_string(value.to_string()).map(Cow::Owned).map_err(|error| error.to_string())
        }
        Ok(_) => Err("the text is neither JSON nor a YAML list or mapping".to_owned()),
        Err(fault) => told("YAML", fault),
    }
}

/// Whether a text was meant as JSON. YAML would take much of what is broken in JSON for something else.
fn is_json_alone(text: &str) -> bool {
    let text = text.trim_start();
    match text.strip_prefix(['{', '[']) {
        Some(rest) => rest.trim_start().starts_with(['"', '{', '[', '}', ']']) || rest.trim().is_empty(),
        None => text.starts_with('"'),
    }
}

/// One value, or several as a list.
fn read_values(text: &str) -> Result<Box<RawValue>, Fault> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let value = value.map_err(|error| json_fault(text, &error))?;
        if values.len() == MAX_VALUES {
            return Err(Fault::new(1, 1, format!("more than {MAX_VALUES} values stand after each other")));
        }
        values.push(value);
    }
    let json = match values.as_slice() {
        [] => return Err(Fault::new(1, 1, "there is no value")),
        [one] => (*one).to_owned(),
        many => serde_json::value::to_raw_value(many).map_err(|error| json_fault(text, &error))?,
    };
    Ok(json)
}

/// JSON Lines of which some cannot be read: these stand in the list as texts, which are no entries, so that they are set aside
/// with their places. Nothing where it does not look like lines, or where most of them are broken.
fn read_lines(text: &str) -> Option<Box<RawValue>> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    if lines().count() > MAX_VALUES {
        return None;
    }
    let mut good = 0;
    let values = lines().map(|(at, line)| match serde_json::from_str::<&RawValue>(line) {
        Ok(value) => {
            good += usize::from(value.get().starts_with('{'));
            Ok(value.to_owned())
        }
        Err(_) => serde_json::value::to_raw_value(&format!("line {} cannot be read", at + 1)),
    });
    let values = values.collect::<Result<Vec<_>, _>>().ok()?;
    if good < 2 || 2 * good < values.len() {
        return None;
    }
    serde_json::value::to_raw_value(&values).ok()
}

/// serde_json counts a line break that it has just read as column 0 of the next line, which no editor shows.
fn json_fault(text: &str, error: &serde_json::Error) -> Fault {
    let (mut line, mut column) = (error.line(), error.column());
    if column == 0 && line > 1 {
        line -= 1;
        column = text.split('\n').nth(line - 1).map_or(0, str::len) + 1;
    }
    let message = error.to_string();
    let message = message.rfind(" at line ").map_or(message.as_str(), |end| &message[..end]);
    Fault::new(line, column.max(1), message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> String {
        to_json(text).map_or_else(|fault| fault, |json| json.get().to_owned())
    }

    #[test]
    fn every_syntax_becomes_json() {
        for (text, expected) in [
            (" {\"b\": 1.50, \"a\": [] } ", "{\"b\": 1.50, \"a\": [] }"),
            ("\u{feff}[1]", "[1]"),
            ("// servers\n{\"a\": 1,}", "{\"a\": 1 }"),
            ("{\"a\":1}\n{\"b\":2}\n", "[{\"a\":1},{\"b\":2}]"),
            ("{\"a\":1}{\"b\":2}", "[{\"a\":1},{\"b\":2}]"),
            ("b: 1\na: [x]\n", "{\"b\":1,\"a\":[\"x\"]}"),
            ("{a: 'x'}", "{\"a\":\"x\"}"),
        ] {
            assert_eq!(json(text), expected, "{text}");
        }
    }

    #[test]
    fn a_broken_line_does_not_cost_the_others() {
        let text = "{\"name\":\"a\"}\n{\"name\":\"b\"\n\n{\"name\":\"c\"}\n";
        assert_eq!(json(text), "[{\"name\":\"a\"},\"line 2 cannot be read\",{\"name\":\"c\"}]");
        let text = "{\"name\":\"a\"}\nnot json\n{\"name\":\"b\"\n{\"name\":\"c\"}\n";
        assert_eq!(
            json(text),
            "[{\"name\":\"a\"},\"line 2 cannot be read\",\"line 3 cannot be read\",{\"name\":\"c\"}]"
        );
        let broken = "{\"name\":\"a\"\n{\"name\":\"b\"\n{\"name\":\"c\"\n{\"name\":\"d\"}";
        assert!(json(broken).starts_with("the text stops being JSON"), "{}", json(broken));
    }

    #[test]
    fn faults_tell_line_and_column() {
        for (text, expected) in [
            ("", "the text is empty"),
            ("{\n  \"a\": 1,\n  \"b\": [1,\n}", "the text stops being JSON at line 4 column 1: "),
            ("{\"a\":1}\n{\"b\":", "the text stops being JSON at line 2 column 5: "),
            ("a: 1\nb: [x\n", "the text stops being YAML at line "),
            ("just some words", "the text is neither JSON nor a YAML list or mapping"),
            ("7", "7"),
        ] {
            assert!(json(text).starts_with(expected), "{text}: {}", json(text));
        }
    }

    proptest! {
        #[test]
        fn what_comes_out_is_json(text in "[a-b0:,\\-{}\\[\\]&*\"'/# \n\\\\\\PC]{0,60}") {
            if let Ok(json) = to_json(&text) {
                prop_assert!(serde_json::from_str::<&RawValue>(json.get()).is_ok());
            }
        }
    }
}
