//! What a model sees of an answer, read the way a model's harness would: arrays of every format, and the listing.
//!
//! Knows the published shapes only, nothing of how the service makes them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The formats that can be asked for.
pub(crate) const FORMATS: [&str; 3] = ["canonical", "openai_chat", "anthropic"];

pub(crate) const BRIDGE: [&str; 3] = ["tool_search", "tool_describe", "tool_call"];

/// The definition inside an array entry.
fn definition(entry: &Value) -> &Value {
    entry.get("function").unwrap_or(entry)
}

pub(crate) fn entry_name(entry: &Value) -> &str {
    definition(entry)["name"].as_str().expect("every entry has a name")
}

/// The names in an assembly's array, in order; none where it is null.
pub(crate) fn array_names(answer: &Value) -> Vec<&str> {
    match &answer["tools"] {
        Value::Null => Vec::new(),
        tools => tools.as_array().expect("`tools` is an array").iter().map(entry_name).collect(),
    }
}

/// The names behind the bridge: the tools that the session found.
pub(crate) fn names_after_bridge(answer: &Value) -> Vec<&str> {
    let names = array_names(answer);
    let end = names.iter().position(|name| *name == BRIDGE[2]).map_or(names.len(), |at| at + 1);
    names[end..].to_vec()
}

pub(crate) fn strings(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    list.iter().map(|item| item.as_str().expect("a list of texts")).collect()
}

/// The codes of an answer's warnings, sorted.
pub(crate) fn warning_codes(answer: &Value) -> Vec<&str> {
    let warnings = answer["warnings"].as_array().expect("every answer has `warnings`");
    let mut codes: Vec<&str> =
        warnings.iter().map(|warning| warning["code"].as_str().expect("a code")).collect();
    codes.sort_unstable();
    codes
}

/// The providers' rule for names.
pub(crate) fn is_wire_name(name: &str) -> bool {
    let head = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let tail = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    head && name.len() <= 64 && name.bytes().all(tail)
}

/// Holds an array against what the provider of its format demands.
pub(crate) fn check_array(format: &str, answer: &Value) {
    let names = array_names(answer);
    assert_ne!(answer["tools"], json!([]), "an empty array is refused by providers");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a name stands twice");
    for entry in answer["tools"].as_array().into_iter().flatten() {
        let name = entry_name(entry);
        assert!(is_wire_name(name), "{name}");
        let (inner, schema) = match format {
            "canonical" => (entry, "parameters"),
            "anthropic" => (entry, "input_schema"),
            "openai_chat" => {
                assert_eq!(entry["type"], "function", "{name}");
                assert_eq!(entry.as_object().expect("an object").len(), 2, "{name}");
                (&entry["function"], "parameters")
            }
            other => panic!("no such format: {other}"),
        };
        let keys: Vec<&str> = inner.as_object().expect("an object").keys().map(String::as_str).collect();
        assert!(inner[schema].is_object(), "{name}: {}", inner[schema]);
        let known = |key: &&str| ["name", "description", schema].contains(key);
        assert!(keys.iter().all(known) && keys.contains(&schema), "{name}: {keys:?}");
        if format != "canonical" {
            // A schema that says something goes out as it was uploaded.
            assert_ne!(inner[schema], json!({}), "{name}: the root has no type");
            assert_ne!(inner["description"], "", "{name}: an empty description is refused");
        }
        if format == "openai_chat" {
            let length = inner["description"].as_str().unwrap_or_default().chars().count();
            assert!(length <= 1_024, "{name}: a description of {length} characters");
        }
    }
}

/// A call as the model of a format writes it.
pub(crate) fn model_call(format: &str, id: &str, name: &str, arguments: &Value) -> Value {
    match format {
        "canonical" => json!({"id": id, "name": name, "arguments": arguments}),
        "openai_chat" => json!({"id": id, "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}}),
        "anthropic" => json!({"type": "tool_use", "id": id, "name": name, "input": arguments}),
        other => panic!("no such format: {other}"),
    }
}

/// Id and content of a message that answers a call, checked against the format's own shape.
pub(crate) fn read_message<'a>(format: &str, message: &'a Value) -> (&'a str, &'a str) {
    let (id, content) = match format {
        "canonical" => {
            assert_eq!(message["role"], "tool");
            assert!(message["name"].is_string());
            (&message["id"], &message["content"])
        }
        "openai_chat" => {
            assert_eq!(message["role"], "tool");
            (&message["tool_call_id"], &message["content"])
        }
        "anthropic" => {
            assert_eq!(message["role"], "user");
            let block = &message["content"][0];
            assert_eq!(block["type"], "tool_result");
            (&block["tool_use_id"], &block["content"])
        }
        other => panic!("no such format: {other}"),
    };
    (id.as_str().expect("an id"), content.as_str().expect("a text"))
}

/// A listing as a model reads it, line by line.
#[derive(Debug, Default)]
pub(crate) struct Listing<'a> {
    pub(crate) header: &'a str,
    /// Names of tools, wherever they stand.
    pub(crate) names: Vec<&'a str>,
    /// Groups whose tools are named.
    pub(crate) named_groups: Vec<&'a str>,
    /// Groups of which only the number of tools is told.
    pub(crate) counted_groups: Vec<(&'a str, usize)>,
    /// Groups of `and N more groups`.
    pub(crate) more_groups: usize,
}

impl<'a> Listing<'a> {
    /// Reads every line; one that is none of the known kinds ends the test.
    pub(crate) fn read(text: &'a str) -> Self {
        let mut lines = text.lines();
        let mut listing = Self { header: lines.next().unwrap_or_default(), ..Self::default() };
        for line in lines {
            listing.read_line(line);
        }
        listing
    }

    fn read_line(&mut self, line: &'a str) {
        if let Some(tool) = line.strip_prefix("- ") {
            assert!(!self.named_groups.is_empty(), "a tool before its group: {line}");
            self.names.push(tool.split_once(": ").map_or(tool, |(name, _)| name));
        } else if let Some(count) = line.strip_prefix("and ").and_then(|rest| rest.split_once(" more group"))
        {
            self.more_groups += count.0.parse::<usize>().expect("a number of groups");
        } else if let Some(head) = line.strip_suffix(':') {
            self.named_groups.push(head.split_once(" - ").map_or(head, |(label, _)| label));
        } else if let Some((label, count)) = counted(line) {
            self.counted_groups.push((label, count));
        } else if let Some((label, names)) = line.split_once(": ") {
            self.named_groups.push(label);
            self.names.extend(names.split(", "));
        } else {
            panic!("this is no line of a listing: {line:?}");
        }
    }

    pub(crate) fn groups(&self) -> usize {
        self.named_groups.len() + self.counted_groups.len() + self.more_groups
    }

    pub(crate) fn counted_tools(&self) -> usize {
        self.counted_groups.iter().map(|(_, count)| count).sum()
    }
}

/// `group (n tools)`, with or without ` - description`.
fn counted(line: &str) -> Option<(&str, usize)> {
    let (label, rest) = line.split_once(" (")?;
    let (count, rest) = rest.split_once(" tool")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest).strip_prefix(')')?;
    (rest.is_empty() || rest.starts_with(" - ")).then_some(())?;
    Some((label, count.parse().ok()?))
}
