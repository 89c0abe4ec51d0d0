//! The searchable text of a JSON Schema: parameter names, descriptions, string values of enums.
//!
//! Reads what is there and never judges it: a schema that no validator would take still has words in it.

use serde_json::Value;

use super::analyzer::is_dense;

/// Nesting that is followed. Deeper parameters do not help to tell tools apart.
const MAX_DEPTH: usize = 6;
/// Schema nodes read per tool.
const MAX_NODES: usize = 1_000;
/// Texts of one kind kept per tool.
const MAX_TEXTS: usize = 500;
/// Characters of one parameter's description that are read (recipe of the ranking trial).
const MAX_DESCRIPTION_CHARS: usize = 400;
/// Longest enum value that counts as a word or two rather than as data, in characters (same source).
const MAX_VALUE_CHARS: usize = 40;

/// Text of one schema, borrowed from it, in the order of the document.
#[derive(Debug, Default)]
pub(super) struct SchemaText<'a> {
    pub(super) names: Vec<&'a str>,
    pub(super) descriptions: Vec<&'a str>,
    pub(super) values: Vec<&'a str>,
    references: Vec<&'a str>,
    nodes: usize,
}

impl<'a> SchemaText<'a> {
    /// Collects the text of a tool's parameters.
    pub(super) fn of(schema: &'a Value) -> Self {
        let mut text = Self::default();
        text.node(schema, schema, 0);
        text
    }

    fn node(&mut self, root: &'a Value, schema: &'a Value, depth: usize) {
        let Some(object) = schema.as_object() else { return };
        if depth > MAX_DEPTH || self.nodes >= MAX_NODES {
            return;
        }
        self.nodes += 1;
        for (keyword, value) in object {
            match keyword.as_str() {
                "description" => push(&mut self.descriptions, value, MAX_DESCRIPTION_CHARS),
                "enum" => self.values(value),
                "const" => push_value(&mut self.values, value),
                "properties" | "patternProperties" => self.properties(root, value, depth),
                "items" | "additionalProperties" | "if" | "then" | "else" => {
                    self.node_or_list(root, value, depth);
                }
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => self.node_or_list(root, value, depth),
                "$ref" => self.reference(root, value, depth),
                _ => {}
            }
        }
    }

    fn properties(&mut self, root: &'a Value, value: &'a Value, depth: usize) {
        for (name, schema) in value.as_object().into_iter().flatten() {
            if self.names.len() < MAX_TEXTS {
                self.names.push(name);
            }
            self.node(root, schema, depth + 1);
        }
    }

    fn node_or_list(&mut self, root: &'a Value, value: &'a Value, depth: usize) {
        match value.as_array() {
            Some(list) => list.iter().for_each(|schema| self.node(root, schema, depth + 1)),
            None => self.node(root, value, depth + 1),
        }
    }

    /// Follows a reference into the same document, each target once: that bounds cycles and keeps the counts honest.
    fn reference(&mut self, root: &'a Value, value: &'a Value, depth: usize) {
        let Some(pointer) = value.as_str().and_then(|reference| reference.strip_prefix('#')) else { return };
        if self.references.contains(&pointer) {
            return;
        }
        self.references.push(pointer);
        if let Some(target) = root.pointer(pointer) {
            self.node(root, target, depth + 1);
        }
    }

    fn values(&mut self, value: &'a Value) {
        value.as_array().into_iter().flatten().for_each(|value| push_value(&mut self.values, value));
    }
}

/// The names of a tool's parameters, nested ones too; none of a text that is no JSON.
pub fn parameter_names(parameters: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(parameters).unwrap_or_default();
    SchemaText::of(&schema).names.into_iter().map(str::to_owned).collect()
}

fn push<'a>(texts: &mut Vec<&'a str>, value: &'a Value, max_chars: usize) {
    if let Some(text) = value.as_str().filter(|text| !text.is_empty() && texts.len() < MAX_TEXTS) {
        texts.push(clip(text, max_chars));
    }
}

fn push_value<'a>(values: &mut Vec<&'a str>, value: &'a Value) {
    if value.as_str().is_some_and(|text| text.chars().nth(MAX_VALUE_CHARS).is_none()) {
        push(values, value, MAX_VALUE_CHARS);
    }
}

/// The first `max_chars` characters of `text`.
pub(super) fn clip(text: &str, max_chars: usize) -> &str {
    if text.len() <= max_chars {
        return text;
    }
    text.char_indices().nth(max_chars).map_or(text, |(end, _)| &text[..end])
}

/// A description as (what it leads with, the rest): all of a short one, else up to the end of its first sentence, looked
/// for between 30 and 320 characters (recipe of the ranking trial).
pub(super) fn split_lead(description: &str) -> (&str, &str) {
    const WHOLE_CHARS: usize = 160;
    const EARLIEST: usize = 30;
    const LATEST: usize = 320;
    if clip(description, WHOLE_CHARS).len() == description.len() {
        return (description, "");
    }
    let mut cut = clip(description, LATEST).len();
    let mut characters = description.char_indices().take(LATEST).skip(EARLIEST).peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|&(_, next)| next);
        let ends = match character {
            '.' | '!' | '?' => next.is_none_or(|next| next.is_whitespace() || is_dense(next)),
            '\n' | '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            cut = at + character.len_utf8();
            break;
        }
    }
    description.split_at(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_references_and_unions_are_read_once() {
        let schema = serde_json::json!({
            "properties": {
                "filter": {"$ref": "#/$defs/Filter"},
                "other": {"anyOf": [{"$ref": "#/$defs/Filter"}, {"type": "null"}]},
                "broken": "string",
            },
            "$defs": {"Filter": {
                "description": "Narrows the result",
                "properties": {"color": {"enum": ["red", 4, null, "x".repeat(41)]}, "child": {"$ref": "#/$defs/Filter"}},
            }},
        });
        let text = SchemaText::of(&schema);
        assert_eq!(text.names, ["filter", "color", "child", "other", "broken"]);
        assert_eq!(text.descriptions, ["Narrows the result"]);
        assert_eq!(text.values, ["red"]);
    }

    #[test]
    fn hostile_schemas_are_bounded() {
        let wide: serde_json::Map<_, _> =
            (0..5_000).map(|n| (format!("p{n}"), serde_json::json!({"enum": ["a"]}))).collect();
        assert_eq!(SchemaText::of(&serde_json::json!({"properties": wide})).names.len(), MAX_TEXTS);
        let mut deep = serde_json::json!({});
        for _ in 0..100 {
            deep = serde_json::json!({"properties": {"p": deep}});
        }
        assert_eq!(SchemaText::of(&deep).names.len(), MAX_DEPTH + 1);
        assert!(SchemaText::of(&serde_json::json!([1])).names.is_empty());
    }

    #[test]
    fn a_description_leads_with_its_first_sentence() {
        assert_eq!(split_lead("Short. Still short."), ("Short. Still short.", ""));
        let long = format!("Creates an issue in a repository. {}", "More of it. ".repeat(30));
        assert_eq!(split_lead(&long).0, "Creates an issue in a repository.");
        assert_eq!(split_lead(&"x".repeat(1_000)).0.len(), 320);
    }
}
