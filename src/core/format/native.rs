//! The providers' own ways to add tools late: deferred entries, namespaces, search tools, and what a search answers in
//! each of them (`tool-formats.md`, sections 1.1 and 2).
//!
//! Pure texts. Which tools are deferred, found or sent is decided elsewhere.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::names::wire_name;
use super::{Format, ToolText};
use crate::core::bridge::SEARCH_PARAMETERS;
use crate::core::digest::push_string;
use crate::core::text::one_line;

/// How tools outside of core reach the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Exposure {
    /// Three bridge tools in a constant array: works everywhere.
    #[default]
    Bridge,
    /// As `Bridge`, and the tools of a group stand in a namespace.
    Namespaced,
    /// The provider's own deferred tools, loaded by what a search answers.
    Native,
}

impl Exposure {
    pub const ALL: [Self; 3] = [Self::Bridge, Self::Namespaced, Self::Native];

    /// The exposure of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|exposure| exposure.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Namespaced => "namespaced",
            Self::Native => "native",
        }
    }

    /// Whether a format has it.
    pub fn is_of(self, format: Format) -> bool {
        match self {
            Self::Bridge => true,
            Self::Namespaced => format == Format::OpenaiResponses,
            Self::Native => matches!(format, Format::OpenaiResponses | Format::Anthropic),
        }
    }
}

/// Whether deferred tools stand in the array. Where they do not, a search's answer brings them.
pub fn declares_deferred(format: Format) -> bool {
    format == Format::Anthropic
}

/// An entry of an array whose definition the model sees only once a search has named it. Nothing for what is no JSON
/// object.
pub fn deferred(entry: &str) -> Option<String> {
    Some(format!("{},\"defer_loading\":true}}", entry.strip_suffix('}')?))
}

/// The namespace that stands for a group: a name that the provider takes, told apart by a hash where it had to be
/// changed.
pub fn namespace_name(group: &str) -> Cow<'_, str> {
    wire_name(group)
}

/// Entries of a group as one namespace of the Responses format; nothing for no entries, which the provider refuses.
///
/// `defer_loading` stands on the entries, never on a namespace. The provider advises fewer than ten functions each.
pub fn namespace(group: &str, description: Option<&str>, entries: &[&str]) -> Option<String> {
    if entries.is_empty() {
        return None;
    }
    let mut out = String::from("{\"type\":\"namespace\",\"name\":");
    push_string(&namespace_name(group), &mut out);
    out.push_str(",\"description\":");
    // A description is required.
    match description.map(one_line).filter(|text| !text.is_empty()) {
        Some(text) => push_string(&text, &mut out),
        None => push_string(&format!("Tools of {}.", one_line(group)), &mut out),
    }
    out.push_str(",\"tools\":");
    push_array(entries, &mut out);
    out.push('}');
    Some(out)
}

/// What the model is told of a search whose finds are loaded by the provider.
const SEARCH_DESCRIPTION: &str = "Find tools that are available but not loaded: describe the task in a few words, or give \
    the exact name of a listed tool. Found tools are loaded and then called directly.";

/// The entry of the search that the agent answers: a `tool_search` of the Responses format, an ordinary tool called
/// `name` of Anthropic's, which must never be deferred itself. Nothing in formats without deferred tools.
///
/// A listing goes into its description.
pub fn search_entry(format: Format, name: &str, listing: Option<&str>) -> Option<String> {
    let mut description = String::new();
    match listing {
        Some(listing) => {
            push_string(&format!("{SEARCH_DESCRIPTION}\n\n{}", listing.trim_end()), &mut description);
        }
        None => push_string(SEARCH_DESCRIPTION, &mut description),
    }
    match format {
        Format::OpenaiResponses => Some(format!(
            "{{\"type\":\"tool_search\",\"execution\":\"client\",\"description\":{description},\"parameters\":{SEARCH_PARAMETERS}}}"
        )),
        Format::Anthropic => {
            let text = ToolText {
                wire_name: name,
                description: &description,
                parameters: SEARCH_PARAMETERS,
                members: Vec::new(),
            };
            let mut out = String::new();
            format.layout().write(&text, &mut out);
            Some(out)
        }
        _ => None,
    }
}

/// Anthropic's content blocks that load deferred tools; each must stand in the request's `tools`.
pub fn tool_references(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"type": "tool_reference", "tool_name": name})).collect()
}

/// The message that answers an Anthropic search call with these blocks.
pub fn reference_message(call_id: &str, blocks: &Value) -> Value {
    json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call_id, "content": blocks}
    ]})
}

/// The item that answers a `tool_search_call` of the Responses format. `entries` are whole definitions, deferred ones
/// or namespaces of them, and need not stand in the request's `tools`.
pub fn tool_search_output(call_id: &str, entries: &[&str]) -> String {
    let mut out = String::from("{\"type\":\"tool_search_output\",\"call_id\":");
    push_string(call_id, &mut out);
    out.push_str(",\"execution\":\"client\",\"status\":\"completed\",\"tools\":");
    push_array(entries, &mut out);
    out.push('}');
    out
}

/// The input item that adds tools to a Responses conversation at its place; nothing for no entries.
pub fn additional_tools(entries: &[&str]) -> Option<String> {
    if entries.is_empty() {
        return None;
    }
    let mut out = String::from("{\"type\":\"additional_tools\",\"role\":\"developer\",\"tools\":");
    push_array(entries, &mut out);
    out.push('}');
    Some(out)
}

fn push_array(entries: &[&str], out: &mut String) {
    out.push('[');
    out.push_str(&entries.join(","));
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::format::render;
    use crate::core::tool::Tool;

    fn tool() -> Tool {
        let body = r#"{"group":"g","name":"t","description":"Does it. Well.","parameters":{"type":"object","properties":{"b":{"type":"string"},"a":{}},"required":["b"]}}"#;
        Tool::from_body(body.into()).unwrap()
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn exposures_are_told_by_name_and_format() {
        for exposure in Exposure::ALL {
            assert_eq!(Exposure::parse(exposure.as_str()), Some(exposure));
        }
        assert_eq!(Exposure::parse("magic"), None);
        let native: Vec<Format> =
            Format::ALL.into_iter().filter(|format| Exposure::Native.is_of(*format)).collect();
        assert_eq!(native, [Format::OpenaiResponses, Format::Anthropic]);
        for format in Format::ALL {
            assert!(Exposure::Bridge.is_of(format));
            assert_eq!(search_entry(format, "tool_search", None).is_some(), native.contains(&format));
        }
    }

    #[test]
    fn a_deferred_entry_is_the_entry_with_one_more_member() {
        for format in [Format::OpenaiResponses, Format::Anthropic] {
            let plain = render(format, "t", &tool()).json;
            let mut wanted = parsed(&plain);
            wanted["defer_loading"] = Value::Bool(true);
            let deferred = deferred(&plain).unwrap();
            assert_eq!(parsed(&deferred), wanted);
            assert!(deferred.ends_with(",\"defer_loading\":true}"));
        }
    }

    #[test]
    fn a_namespace_holds_entries_and_always_describes_itself() {
        let entry = render(Format::OpenaiResponses, "t", &tool()).json;
        let of = |description| parsed(&namespace("git hub", description, &[&entry, &entry]).unwrap());
        let space = of(Some("Issues\nand pulls"));
        assert_eq!(space["type"], "namespace");
        assert_eq!(space["description"], "Issues and pulls");
        assert_eq!(space["tools"], json!([parsed(&entry), parsed(&entry)]));
        assert!(super::super::names::fits(space["name"].as_str().unwrap()));
        assert_eq!(of(Some(" "))["description"], "Tools of git hub.");
        assert_eq!(of(None)["description"], "Tools of git hub.");
        assert_eq!(namespace("g", None, &[]), None);
        assert_ne!(namespace_name("a b"), namespace_name("a_b"));
    }

    #[test]
    fn search_entries_take_the_arguments_of_the_bridge() {
        let responses = parsed(&search_entry(Format::OpenaiResponses, "x_tool_search", None).unwrap());
        assert_eq!((&responses["type"], &responses["execution"]), (&json!("tool_search"), &json!("client")));
        let anthropic = parsed(&search_entry(Format::Anthropic, "x_tool_search", None).unwrap());
        assert_eq!(anthropic["name"], "x_tool_search");
        assert_eq!(anthropic.get("defer_loading"), None);
        assert_eq!(anthropic["input_schema"], parsed(SEARCH_PARAMETERS));
        assert_eq!(responses["parameters"], parsed(SEARCH_PARAMETERS));
        let listed = parsed(&search_entry(Format::Anthropic, "s", Some("a\n- b\n")).unwrap());
        assert!(listed["description"].as_str().unwrap().ends_with("directly.\n\na\n- b"));
    }

    #[test]
    fn answers_load_what_was_found() {
        assert_eq!(
            reference_message("c1", &tool_references(&["a", "b"])),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
                {"type": "tool_reference", "tool_name": "a"}, {"type": "tool_reference", "tool_name": "b"}]}]})
        );
        let entry = deferred(&render(Format::OpenaiResponses, "t", &tool()).json).unwrap();
        assert_eq!(
            parsed(&tool_search_output("c\"2", &[&entry])),
            json!({"type": "tool_search_output", "call_id": "c\"2", "execution": "client",
                "status": "completed", "tools": [parsed(&entry)]})
        );
        assert_eq!(parsed(&tool_search_output("c", &[]))["tools"], json!([]));
        assert_eq!(
            parsed(&additional_tools(&[&entry]).unwrap()),
            json!({"type": "additional_tools", "role": "developer", "tools": [parsed(&entry)]})
        );
        assert_eq!(additional_tools(&[]), None);
    }
}
