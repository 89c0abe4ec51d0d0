//! What a model sees of an answer, read the way a model's harness would: arrays of every format, and the listing.
//!
//! Knows the published shapes only, nothing of how the service makes them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The formats that can be asked for.
pub(crate) const FORMATS: [&str; 7] =
    ["canonical", "openai_chat", "openai_responses", "anthropic", "gemini", "bedrock_converse", "mcp"];

pub(crate) const BRIDGE: [&str; 3] = ["tool_search", "tool_describe", "tool_call"];

/// The definition inside an array entry.
pub(crate) fn definition(entry: &Value) -> &Value {
    entry.get("function").or_else(|| entry.get("toolSpec")).unwrap_or(entry)
}

pub(crate) fn entry_name(entry: &Value) -> &str {
    definition(entry)["name"].as_str().expect("every entry has a name")
}

/// The tools in the value of a provider's field, whatever stands around them.
pub(crate) fn entries(tools: &Value) -> &[Value] {
    if tools.is_null() {
        return &[];
    }
    let array = tools.as_array().expect("`tools` is an array");
    match array.as_slice() {
        [only] => match only.get("functionDeclarations") {
            Some(inside) => inside.as_array().expect("declarations are an array"),
            None => array,
        },
        _ => array,
    }
}

/// The schema of an entry's arguments; only Gemini leaves it out for a tool that takes none.
pub(crate) fn schema_of<'a>(format: &str, entry: &'a Value) -> Option<&'a Value> {
    let inner = definition(entry);
    match format {
        "anthropic" => inner.get("input_schema"),
        "gemini" => inner.get("parametersJsonSchema"),
        "bedrock_converse" => inner.pointer("/inputSchema/json"),
        "mcp" => inner.get("inputSchema"),
        _ => inner.get("parameters"),
    }
}

/// The names in an assembly's array, in order; none where it is null.
pub(crate) fn array_names(answer: &Value) -> Vec<&str> {
    entries(&answer["tools"]).iter().map(entry_name).collect()
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
    if format == "mcp" {
        assert!(answer["tools"].is_array(), "a list result holds an array");
    } else {
        assert_ne!(answer["tools"], json!([]), "an empty array is refused by providers");
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a name stands twice");
    for entry in entries(&answer["tools"]) {
        let name = entry_name(entry);
        assert!(is_wire_name(name), "{name}");
        // Members that may stand beside name, description and schema, and those of what holds the definition.
        let (around, schema, more): (&[&str], &str, &[&str]) = match format {
            "canonical" => (&[], "parameters", &[]),
            "openai_chat" => (&["type", "function"], "parameters", &["strict"]),
            "openai_responses" => {
                (&[], "parameters", &["type", "strict", "output_schema", "allowed_callers"])
            }
            "anthropic" => {
                let more = &["type", "strict", "input_examples", "eager_input_streaming", "allowed_callers"];
                (&[], "input_schema", more)
            }
            "gemini" => {
                let more = &["parameters", "response", "responseJsonSchema", "behavior"];
                (&[], "parametersJsonSchema", more)
            }
            "bedrock_converse" => (&["toolSpec"], "inputSchema", &["strict"]),
            "mcp" => {
                let more = &["title", "annotations", "outputSchema", "icons", "_meta", "execution"];
                (&[], "inputSchema", more)
            }
            other => panic!("no such format: {other}"),
        };
        let keys = |value: &Value| -> Vec<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        if !around.is_empty() {
            assert_eq!(keys(entry), around, "{name}");
        }
        let inner = definition(entry);
        let known =
            |key: &String| ["name", "description", schema].contains(&&**key) || more.contains(&&**key);
        assert!(keys(inner).iter().all(known), "{name}: {:?}", keys(inner));
        match schema_of(format, entry) {
            Some(schema) => {
                assert!(schema.is_object(), "{name}: {schema}");
                // A schema that says something goes out as it was uploaded.
                assert!(format == "canonical" || *schema != json!({}), "{name}: the root has no type");
            }
            None => assert_eq!(format, "gemini", "{name} has no schema"),
        }
        if format != "canonical" {
            assert_ne!(inner["description"], "", "{name}: an empty description is refused");
        }
        match format {
            "openai_chat" => {
                assert_eq!(entry["type"], "function", "{name}");
                let length = inner["description"].as_str().unwrap_or_default().chars().count();
                assert!(length <= 1_024, "{name}: a description of {length} characters");
            }
            "openai_responses" => {
                assert_eq!(entry["type"], "function", "{name}");
                assert!(entry["strict"].is_boolean(), "{name}: strict would be guessed");
            }
            _ => {}
        }
    }
}

/// A call as the model of a format writes it.
pub(crate) fn model_call(format: &str, id: &str, name: &str, arguments: &Value) -> Value {
    match format {
        "canonical" => json!({"id": id, "name": name, "arguments": arguments}),
        "openai_chat" => json!({"id": id, "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}}),
        "openai_responses" => json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id,
            "name": name, "arguments": arguments.to_string(), "status": "completed"}),
        "anthropic" => json!({"type": "tool_use", "id": id, "name": name, "input": arguments}),
        "gemini" => json!({"functionCall": {"id": id, "name": name, "args": arguments}}),
        "bedrock_converse" => json!({"toolUse": {"toolUseId": id, "name": name, "input": arguments}}),
        "mcp" => json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}}),
        other => panic!("no such format: {other}"),
    }
}

/// Id, content and error mark of a message that answers a call, checked against the format's own shape. Gemini's
/// response is an object: its content is read as the text that it was made from.
pub(crate) fn read_message(format: &str, message: &Value) -> (String, String, Option<bool>) {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    match format {
        "canonical" => {
            assert_eq!(message["role"], "tool");
            assert!(message["name"].is_string());
            (text(&message["id"]), text(&message["content"]), None)
        }
        "openai_chat" => {
            assert_eq!(message["role"], "tool");
            (text(&message["tool_call_id"]), text(&message["content"]), None)
        }
        "openai_responses" => {
            assert_eq!(message["type"], "function_call_output");
            assert_eq!(message.as_object().expect("an object").len(), 3);
            (text(&message["call_id"]), text(&message["output"]), None)
        }
        "anthropic" => {
            assert_eq!(message["role"], "user");
            let block = &message["content"][0];
            assert_eq!(block["type"], "tool_result");
            let is_error = block.get("is_error").is_some_and(|it| *it == json!(true));
            (text(&block["tool_use_id"]), text(&block["content"]), Some(is_error))
        }
        "gemini" => {
            assert_eq!(message["role"], "user");
            let response = &message["parts"][0]["functionResponse"];
            assert!(response["name"].is_string());
            let object = response["response"].as_object().expect("a response is an object");
            assert_eq!(object.len(), 1, "{object:?}");
            let id = response.get("id").map(text).unwrap_or_default();
            match object.get("output") {
                Some(Value::String(output)) => (id, output.clone(), Some(false)),
                Some(output) => (id, output.to_string(), Some(false)),
                None => {
                    assert!(object.contains_key("error"));
                    (id, response["response"].to_string(), Some(true))
                }
            }
        }
        "bedrock_converse" => {
            assert_eq!(message["role"], "user");
            let result = &message["content"][0]["toolResult"];
            let is_error = match result["status"].as_str() {
                Some("success") => false,
                Some("error") => true,
                other => panic!("no such status: {other:?}"),
            };
            (text(&result["toolUseId"]), text(&result["content"][0]["text"]), Some(is_error))
        }
        "mcp" => {
            assert_eq!(message["jsonrpc"], "2.0");
            let block = &message["result"]["content"][0];
            assert_eq!(block["type"], "text");
            let is_error = message["result"]["isError"].as_bool().expect("a boolean");
            (text(&message["id"]), text(&block["text"]), Some(is_error))
        }
        other => panic!("no such format: {other}"),
    }
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
