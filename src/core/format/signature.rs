//! Compact signatures: a tool on one line, like `create_issue(title: string, labels?: string[]) – Creates an issue.`
//!
//! Made of tools' text, which is hostile: a signature is bounded and stays on its line.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::core::text::{clip, first_sentence, one_line};
use crate::core::tool::Tool;

/// Longest list of arguments, in characters. A median tool of the reference catalogs has four arguments and takes 80.
const MAX_ARGUMENTS_CHARS: usize = 400;
/// Longest description behind the arguments, in characters.
const MAX_SENTENCE_CHARS: usize = 120;
/// Most arguments that are looked at.
const MAX_ARGUMENTS: usize = 100;
/// Longest name of an argument, in characters.
const MAX_KEY_CHARS: usize = 64;
/// Longest literal of an enum, in characters.
const MAX_LITERAL_CHARS: usize = 32;
/// Literals and branches of one union that are shown.
const MAX_BRANCHES: usize = 8;
/// The types of JSON Schema.
const KINDS: [&str; 7] = ["string", "number", "integer", "boolean", "null", "array", "object"];
/// How deep objects, arrays and references are followed.
const MAX_DEPTH: usize = 3;

/// How much of a type is shown; less when the arguments do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Members of objects and values of enums.
    Full,
    Plain,
}

/// A tool's signature with the first sentence of its description. `schema` stands in place of its own, where a provider is
/// sent another one.
pub fn signature(wire_name: &str, tool: &Tool, schema: Option<&str>) -> String {
    let schema: Value = serde_json::from_str(schema.unwrap_or(tool.parameters())).unwrap_or_default();
    let mut line = format!("{wire_name}({})", arguments(&schema));
    let description = tool.description();
    // A description may be a quarter of a megabyte; what is shown stands in its beginning.
    let mut end = description.len().min(4 * 1_024);
    while !description.is_char_boundary(end) {
        end -= 1;
    }
    let text = one_line(&description[..end]);
    let sentence = clip(first_sentence(&text), MAX_SENTENCE_CHARS);
    if !sentence.is_empty() {
        line.push_str(" – ");
        line.push_str(&sentence);
    }
    line
}

/// One argument, or one member of an object.
struct Field {
    text: String,
    is_required: bool,
}

fn arguments(schema: &Value) -> String {
    let joined =
        |fields: &[Field]| fields.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(", ");
    for detail in [Detail::Full, Detail::Plain] {
        let list = joined(&Writer { root: schema, detail }.fields(schema, MAX_ARGUMENTS, 0));
        if list.chars().count() <= MAX_ARGUMENTS_CHARS {
            return list;
        }
    }
    // Required ones first: a call without the others works. That some are left out is told.
    let mut fields = Writer { root: schema, detail: Detail::Plain }.fields(schema, MAX_ARGUMENTS, 0);
    fields.sort_by_key(|field| !field.is_required);
    let mut chars = 1;
    fields.retain(|field| {
        chars += field.text.chars().count() + 2;
        chars <= MAX_ARGUMENTS_CHARS
    });
    fields.push(Field { text: "…".to_owned(), is_required: false });
    joined(&fields)
}

struct Writer<'a> {
    root: &'a Value,
    detail: Detail,
}

impl<'a> Writer<'a> {
    /// `name: type` per property, `name?: type` for those that are not required; at most `most`, and of more than
    /// that required ones first.
    fn fields(&self, schema: &'a Value, most: usize, depth: usize) -> Vec<Field> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
        let required = schema.get("required").and_then(Value::as_array);
        let required: HashSet<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut shown: Vec<(&String, &Value)> = properties.iter().collect();
        if shown.len() > most {
            shown.sort_by_key(|(key, _)| !required.contains(key.as_str()));
            shown.truncate(most);
        }
        let field = |(key, value): (&'a String, &'a Value)| {
            let is_required = required.contains(key.as_str());
            let mark = if is_required { "" } else { "?" };
            Field { text: format!("{}{mark}: {}", shown_key(key), self.kind(value, depth)), is_required }
        };
        shown.into_iter().map(field).collect()
    }

    fn kind(&self, schema: &'a Value, depth: usize) -> String {
        if depth >= MAX_DEPTH {
            return plain_kind(schema).to_owned();
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            return match target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                Some(inner) => self.kind(inner, depth + 1),
                None => "any".to_owned(),
            };
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty())
        {
            return match self.detail {
                Detail::Full => union(values.iter().map(literal), values.len()),
                Detail::Plain => plain_kind(schema).to_owned(),
            };
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(key).and_then(Value::as_array).filter(|it| !it.is_empty()) {
                let shown = branches.iter().map(|branch| self.kind(branch, depth + 1));
                return union(shown, branches.len());
            }
        }
        if let Some(kinds) = schema.get("type").and_then(Value::as_array) {
            let of = |kind: &Value| self.typed(kind.as_str().unwrap_or("any"), schema, depth);
            return union(kinds.iter().map(of), kinds.len());
        }
        self.typed(plain_kind(schema), schema, depth)
    }

    fn typed(&self, kind: &str, schema: &'a Value, depth: usize) -> String {
        match kind {
            "array" => {
                let items =
                    schema.get("items").map_or_else(|| "any".to_owned(), |it| self.kind(it, depth + 1));
                if items.contains(['|', ' ']) && !items.starts_with('{') {
                    format!("({items})[]")
                } else {
                    format!("{items}[]")
                }
            }
            "object" if self.detail == Detail::Full && depth + 1 < MAX_DEPTH => {
                let count = schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
                if count == 0 || count > MAX_BRANCHES {
                    return "object".to_owned();
                }
                let fields = self.fields(schema, MAX_BRANCHES, depth + 1);
                let texts: Vec<String> = fields.into_iter().map(|field| field.text).collect();
                format!("{{{}}}", texts.join(", "))
            }
            other => KINDS.into_iter().find(|kind| *kind == other).unwrap_or("any").to_owned(),
        }
    }
}

/// The type that a schema says or means, without what is inside: one of JSON Schema's seven, or `any`.
fn plain_kind(schema: &Value) -> &'static str {
    let said = schema.get("type").and_then(Value::as_str);
    if let Some(said) = said {
        return KINDS.into_iter().find(|kind| *kind == said).unwrap_or("any");
    }
    if schema.get("properties").is_some() {
        return "object";
    }
    if schema.get("items").is_some() {
        return "array";
    }
    match schema.get("enum").and_then(|values| values.get(0)) {
        Some(Value::String(_)) => "string",
        Some(Value::Number(_)) => "number",
        _ => "any",
    }
}

/// Different parts joined by `|`, at most [`MAX_BRANCHES`] of them.
fn union(parts: impl Iterator<Item = String>, count: usize) -> String {
    let mut shown: Vec<String> = Vec::new();
    for part in parts.take(MAX_BRANCHES) {
        if !shown.contains(&part) {
            shown.push(part);
        }
    }
    if count > MAX_BRANCHES {
        shown.push("…".to_owned());
    }
    shown.join("|")
}

/// A value as a literal on one line.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => Value::from(&*clip(&one_line(text), MAX_LITERAL_CHARS)).to_string(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        plain => plain.to_string(),
    }
}

/// The name of an argument, quoted where it could be read as something else.
fn shown_key(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.$".contains(&byte);
    if !key.is_empty() && key.len() <= MAX_KEY_CHARS && key.bytes().all(plain) {
        return key.to_owned();
    }
    Value::from(&*clip(&one_line(key), MAX_KEY_CHARS)).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of(description: &str, parameters: Value) -> String {
        let body = json!({"group": "g", "name": "t", "description": description, "parameters": parameters});
        signature("t", &Tool::from_body(body.to_string().into()).unwrap(), None)
    }

    #[test]
    fn a_signature_tells_what_a_call_needs() {
        let schema = json!({"type": "object", "required": ["title", "repo"], "properties": {
            "title": {"type": "string"},
            "labels": {"type": "array", "items": {"type": "string"}},
            "state": {"enum": ["open", "closed"]},
            "repo": {"$ref": "#/$defs/repo"},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "ids": {"type": "array", "items": {"type": ["integer", "string"]}},
            "first line": {},
        }, "$defs": {"repo": {"type": "object", "properties": {"owner": {"type": "string"}}, "required": ["owner"]}}});
        assert_eq!(
            of("Creates an issue. And more.", schema),
            "t(title: string, labels?: string[], state?: \"open\"|\"closed\", repo: {owner: string}, \
             when?: string|null, ids?: (integer|string)[], \"first line\"?: any) – Creates an issue."
        );
        assert_eq!(of("", json!({"type": "object"})), "t()");
        let odd = json!({"type": "x\ny"});
        let deep = json!({"properties": {"a": {"anyOf": [{"anyOf": [{"anyOf": [odd]}, odd]}, odd]}}});
        assert_eq!(of("", deep), "t(a?: any)");
        assert_eq!(of("", json!({"properties": {"a": {"$ref": "#/properties/a"}}})), "t(a?: any)");
    }

    #[test]
    fn what_does_not_fit_is_left_out_from_the_optional_end() {
        let mut properties: Map<String, Value> =
            (0..60).map(|at| (format!("optional_{at}"), json!({"enum": ["one", "two", "three"]}))).collect();
        properties.insert("needed".to_owned(), json!({"type": "integer"}));
        let line = of("", json!({"properties": properties, "required": ["needed"]}));
        assert!(
            line.starts_with("t(needed: integer, optional_0?: string, ") && line.ends_with(", …)"),
            "{line}"
        );
        assert!(line.chars().count() <= MAX_ARGUMENTS_CHARS + 8, "{line}");
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({})),
            Just(json!(true)),
            Just(json!({"$ref": "#"})),
            any::<String>().prop_map(|text| json!({"const": text})),
            any::<Vec<String>>().prop_map(|texts| json!({"enum": texts})),
            any::<String>().prop_map(|kind| json!({"type": kind})),
        ];
        leaf.prop_recursive(5, 60, 5, |inner| {
            prop_oneof![
                prop::collection::vec((any::<String>(), inner.clone()), 0..6).prop_map(|members| {
                    let required: Vec<String> = members.iter().take(2).map(|(key, _)| key.clone()).collect();
                    json!({"properties": members.into_iter().collect::<Map<_, _>>(), "required": required})
                }),
                inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
                prop::collection::vec(inner, 0..4).prop_map(|branches| json!({"oneOf": branches})),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_signature_stays_on_its_line_and_within_its_bound(
            schema in any_schema(), description in any::<String>()
        ) {
            let line = of(&description, schema);
            prop_assert!(!line.chars().any(|character| character.is_control() || character == '\u{2028}'), "{}", line);
            prop_assert!(line.chars().count() <= MAX_ARGUMENTS_CHARS + MAX_SENTENCE_CHARS + 16, "{}", line);
        }
    }
}
