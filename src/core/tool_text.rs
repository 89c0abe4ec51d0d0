//! Texts about one tool, for the models that choose it: what a match shows, and what an endpoint ranks. Bounded and cleaned.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::text::{clip, one_line, visible};
use super::tool::Tool;

/// Longest description in a brief match, in characters (`product.md`, section 4).
pub const BRIEF_CHARS: usize = 200;
/// Most names in `required[]`, and the longest, in characters; an agent needs the names to call, not all of a bomb.
const MAX_REQUIRED: (usize, usize) = (32, 64);
/// A description on one line, as a brief match shows it.
pub fn brief_description(tool: &Tool) -> String {
    // A multiple of what is shown is cleaned: a description may be a quarter of a megabyte.
    clip(&one_line(head(&tool.description(), 8 * BRIEF_CHARS)), BRIEF_CHARS).into_owned()
}

/// The first characters of a text.
fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

/// A whole description without hidden characters; its lines are kept.
pub fn whole_description(tool: &Tool) -> String {
    visible(&tool.description()).into_owned()
}

/// The required arguments of a schema, bounded and cleaned.
pub fn required_arguments(schema: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Root<'a> {
        #[serde(borrow)]
        required: Option<Vec<Cow<'a, str>>>,
    }
    let root: Option<Root<'_>> = serde_json::from_str(schema).ok();
    let names = root.and_then(|root| root.required).unwrap_or_default();
    names.iter().take(MAX_REQUIRED.0).map(|name| clip(&one_line(name), MAX_REQUIRED.1).into_owned()).collect()
}

/// The text of a tool that an endpoint ranks, most important first: group, name as words and as it is, description, arguments
/// with a few words about each, other names.
pub fn endpoint_text(tool: &Tool, stored_name: &str, group: &str, aliases: &[String]) -> String {
    const MAX_CHARS: usize = 1_500;
    let mut text = format!(
        "{} {} ({stored_name}): {}",
        one_line(group),
        one_line(&words_of(stored_name)),
        // A multiple of what is sent is cleaned: a description may be a quarter of a megabyte.
        one_line(head(&tool.description(), 4 * MAX_CHARS))
    );
    let arguments = arguments(tool);
    if !arguments.is_empty() {
        text.push_str(" Arguments: ");
        text.push_str(&arguments.join(", "));
    }
    for alias in aliases.iter().chain(tool.aliases()) {
        text.push_str(" / ");
        text.push_str(alias);
    }
    clip(&one_line(&text), MAX_CHARS).into_owned()
}

/// `createIssue_v2` as `create Issue v2`.
fn words_of(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut before = ' ';
    for character in name.chars() {
        if before.is_lowercase() && character.is_uppercase() {
            words.push(' ');
        }
        words.push(if character.is_alphanumeric() { character } else { ' ' });
        before = character;
    }
    words
}

/// The first arguments of a tool, each with the beginning of its description. The schema is read over, not kept: it may be a
/// quarter of a megabyte.
fn arguments(tool: &Tool) -> Vec<String> {
    const MAX_CHARS: usize = 60;
    #[derive(Deserialize)]
    struct Root<'a> {
        #[serde(borrow)]
        properties: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Argument<'a> {
        #[serde(borrow)]
        description: Option<Cow<'a, str>>,
    }
    let root: Option<Root<'_>> = serde_json::from_str(tool.parameters()).ok();
    let properties = root.and_then(|root| root.properties).map(RawValue::get);
    let first: Option<FirstMembers<'_>> = properties.and_then(|text| serde_json::from_str(text).ok());
    let told = |(name, schema): (String, &RawValue)| {
        let argument: Option<Argument<'_>> = serde_json::from_str(schema.get()).ok();
        let text = argument.and_then(|argument| argument.description).unwrap_or_default();
        let text = one_line(head(&text, 8 * MAX_CHARS));
        if text.trim().is_empty() { name } else { format!("{name} ({})", clip(&text, MAX_CHARS)) }
    };
    first.map(|first| first.0).unwrap_or_default().into_iter().map(told).collect()
}

/// The first members of an object.
struct FirstMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for FirstMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = FirstMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        const MOST: usize = 10;
        let mut members = Vec::with_capacity(MOST);
        while members.len() < MOST
            && let Some(member) = map.next_entry()?
        {
            members.push(member);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FirstMembers(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::tool::ToolParts;

    #[test]
    fn the_text_for_an_endpoint_holds_the_first_arguments_of_any_schema() {
        let raw = |value: &serde_json::Value| RawValue::from_string(value.to_string()).unwrap();
        let text = |parameters: serde_json::Value| {
            let (description, parameters) = (raw(&json!("d")), raw(&parameters));
            let parts = ToolParts {
                name: "t".into(),
                description: Some(&description),
                parameters: Some(&parameters),
                ..ToolParts::default()
            };
            endpoint_text(&Tool::from_parts(&parts).unwrap(), "t", "g", &[])
        };
        let many: serde_json::Map<String, serde_json::Value> =
            (0..30).map(|at| (format!("a{at:02}"), json!({"description": format!("About {at}.")}))).collect();
        assert!(text(json!({"properties": many})).ends_with("a08 (About 8.), a09 (About 9.)"));
        for (properties, told) in [
            (json!({"a": true, "b": {"description": 7}, "c": {"description": " "}}), " Arguments: a, b, c"),
            (json!({"a": {"description": "čš\n ž"}}), " Arguments: a (čš ž)"),
            (json!([1]), ""),
            (json!({}), ""),
        ] {
            assert_eq!(text(json!({"properties": properties})), format!("g t (t): d{told}"));
        }
    }
}
