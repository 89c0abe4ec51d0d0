//! What a provider would refuse about one schema.

use jsonschema::PatternOptions;
use serde_json::{Map, Value, json};

use super::table::{Keys, Rules};

/// Deeper documents are refused by the parsers of servers.
const DEEPEST: usize = 110;

/// Keywords whose values are schemas by name, one schema, or a list of them.
const MAPS: [&str; 4] = ["properties", "$defs", "patternProperties", "dependentSchemas"];
const SINGLE: [&str; 11] = [
    "items",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
];
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// The schemas right inside of one, each with its place.
pub(super) fn inside(map: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for keyword in MAPS {
        let children = map.get(keyword).and_then(Value::as_object).into_iter().flatten();
        found.extend(children.map(|(key, child)| (format!("/{keyword}/{key}"), child)));
    }
    for keyword in SINGLE {
        found.extend(map.get(keyword).map(|child| (format!("/{keyword}"), child)));
    }
    for keyword in LISTS {
        let children = map.get(keyword).and_then(Value::as_array).into_iter().flatten();
        found.extend(children.enumerate().map(|(at, child)| (format!("/{keyword}/{at}"), child)));
    }
    found
}

/// Whether a schema's `type` is or holds `kind`.
pub(super) fn is_a(map: &Map<String, Value>, kind: &str) -> bool {
    match map.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    }
}

fn depth(value: &Value) -> usize {
    let inside = match value {
        Value::Object(map) => map.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        _ => return 0,
    };
    1 + inside.unwrap_or_default()
}

pub(super) struct Checker<'a> {
    rules: Rules,
    root: &'a Map<String, Value>,
    faults: Vec<String>,
}

impl<'a> Checker<'a> {
    pub(super) fn of(rules: Rules, root: &'a Map<String, Value>) -> Self {
        Self { rules, root, faults: Vec::new() }
    }

    pub(super) fn faults(mut self) -> Vec<String> {
        let (rules, root) = (self.rules, self.root);
        let whole = Value::Object(root.clone());
        if depth(&whole) > DEEPEST {
            return vec!["nested too deeply".to_owned()];
        }
        if root.get("type") != Some(&json!("object")) {
            self.fault("", "the root is no object");
        }
        for keyword in root.keys() {
            let only = rules.root_only.is_none_or(|only| only.contains(&&**keyword));
            if rules.root_without.contains(&&**keyword) || !only {
                self.fault("", &format!("{keyword} at the root"));
            }
        }
        let properties = root.get("properties").and_then(Value::as_object);
        if rules.root_properties && properties.is_none() {
            self.fault("", "no properties");
        }
        let required = root.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !properties.is_some_and(|properties| properties.contains_key(name)) {
                self.fault("", &format!("{name:?} is required and no property"));
            }
        }
        for key in properties.into_iter().flat_map(Map::keys) {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
            let fits = !key.is_empty() && key.len() <= 64 && key.chars().all(plain);
            if rules.keys == Keys::Root && !fits {
                self.fault("", &format!("the key {key:?}"));
            }
        }
        self.schema(root, "");
        // A keyword of a wrong kind anywhere: the whole is no schema of draft 2020-12.
        let mut draft = whole;
        draft.as_object_mut().unwrap().shift_remove("$schema");
        if let Err(error) = jsonschema::meta::validate(&draft) {
            self.fault("", &format!("no schema: {error} at {}", error.instance_path()));
        }
        self.faults
    }

    fn fault(&mut self, at: &str, what: &str) {
        self.faults.push(format!("{at}: {what}"));
    }

    fn schema(&mut self, map: &Map<String, Value>, at: &str) {
        let rules = self.rules;
        for keyword in map.keys().filter(|keyword| rules.without.contains(&&***keyword)) {
            self.fault(at, keyword);
        }
        if rules.items_needed && is_a(map, "array") && !map.contains_key("items") {
            self.fault(at, "an array without items");
        }
        if let Some(values) = map.get("enum").and_then(Value::as_array) {
            let empty_text = !rules.empty_enum_text && values.iter().any(|value| value == "");
            if values.is_empty() || empty_text {
                self.fault(at, "enum");
            }
        }
        if let Some(format) = map.get("format").and_then(Value::as_str)
            && rules.formats.is_some_and(|known| !known.contains(&format))
        {
            self.fault(at, &format!("the format {format:?}"));
        }
        if rules.linear_patterns
            && let Some(pattern) = map.get("pattern").and_then(Value::as_str)
            && !is_linear(pattern)
        {
            self.fault(at, &format!("the pattern {pattern:?}"));
        }
        for keyword in ["minLength", "maxLength", "minItems", "maxItems"] {
            let bound = map.get(keyword).and_then(Value::as_f64);
            if rules.bounds.is_some_and(|first| bound.is_some_and(|bound| bound >= first)) {
                self.fault(at, &format!("{keyword} is too large"));
            }
        }
        if let Some(reference) = map.get("$ref") {
            let alone = rules.beside_references || map.len() == 1;
            if !rules.references || !alone || !self.leads(reference) {
                self.fault(at, &format!("the reference {reference}"));
            }
        }
        for (place, child) in inside(map) {
            let at = format!("{at}{place}");
            match child {
                Value::Object(child) => self.schema(child, &at),
                // Whether other properties and items are allowed is said by a boolean everywhere.
                Value::Bool(_) if at.ends_with("Properties") || at.ends_with("Items") => {}
                other => self.fault(&at, &format!("{other} for a schema")),
            }
        }
    }

    /// Whether a reference means a schema of this document.
    fn leads(&self, reference: &Value) -> bool {
        let Some(pointer) = reference.as_str().and_then(|text| text.strip_prefix('#')) else { return false };
        let pointer = pointer.replace("%20", " ").replace("%24", "$").replace("%25", "%");
        let Some((first, rest)) = pointer.trim_start_matches('/').split_once('/') else {
            return pointer.is_empty();
        };
        self.root.get(first).is_some_and(|part| part.pointer(&format!("/{rest}")).is_some())
    }
}

/// Whether an engine without backtracking takes the expression.
fn is_linear(pattern: &str) -> bool {
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(&json!({ "pattern": pattern })).is_ok()
}

/// What Gemini's `parameters` refuses: a subset of OpenAPI 3.0, where every other field is an error.
pub(super) fn openapi(root: &Map<String, Value>) -> Vec<String> {
    let mut faults = Vec::new();
    if root.get("type") != Some(&json!("object")) {
        faults.push("the root is no object".to_owned());
    }
    if root.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty) {
        faults.push("an object without properties at the root".to_owned());
    }
    for keyword in ["anyOf", "enum"] {
        if root.contains_key(keyword) {
            faults.push(format!("{keyword} at the root"));
        }
    }
    openapi_schema(root, "", &mut faults);
    faults
}

const OPENAPI_FIELDS: [&str; 18] = [
    "type",
    "format",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "anyOf",
];

fn openapi_schema(map: &Map<String, Value>, at: &str, faults: &mut Vec<String>) {
    let mut fault = |what: String| faults.push(format!("{at}: {what}"));
    for (field, value) in map {
        let fits = match field.as_str() {
            "type" => {
                let kinds = ["string", "number", "integer", "boolean", "array", "object"];
                value.as_str().is_some_and(|kind| kinds.contains(&kind))
            }
            "format" | "description" | "pattern" => value.is_string(),
            "nullable" => value.is_boolean(),
            "minimum" | "maximum" => value.is_number(),
            "items" | "properties" => value.is_object(),
            "anyOf" => value.as_array().is_some_and(|branches| !branches.is_empty()),
            "enum" | "required" => value.as_array().is_some_and(|texts| {
                // A list of no names says nothing, an enum of none nothing good.
                (field == "required" || !texts.is_empty())
                    && texts.iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty()))
            }),
            field if OPENAPI_FIELDS.contains(&field) => value.as_i64().is_some_and(|bound| bound >= 0),
            _ => false,
        };
        if !fits {
            fault(format!("{field}: {value}"));
        }
    }
    let kind = map.get("type").and_then(Value::as_str);
    if kind.is_none() && !map.contains_key("anyOf") {
        fault("no type".to_owned());
    }
    if map.contains_key("anyOf") && (kind.is_some() || map.contains_key("properties")) {
        fault("more than alternatives".to_owned());
    }
    if map.contains_key("enum") && kind != Some("string") {
        fault("an enum of no text".to_owned());
    }
    if (kind == Some("array")) != map.contains_key("items") {
        fault("an array and its items".to_owned());
    }
    let known = ["enum", "date-time", "int32", "int64", "float", "double"];
    if map.get("format").and_then(Value::as_str).is_some_and(|format| !known.contains(&format)) {
        fault("format".to_owned());
    }
    let properties = map.get("properties").and_then(Value::as_object);
    for key in properties.into_iter().flat_map(Map::keys) {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let head = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        if !head || key.len() > 64 || !key.chars().all(plain) {
            fault(format!("the key {key:?}"));
        }
    }
    for name in map.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !properties.is_some_and(|properties| properties.contains_key(name)) {
            fault(format!("{name:?} is required and no property"));
        }
    }
    for (place, child) in inside(map) {
        match child {
            Value::Object(child) => openapi_schema(child, &format!("{at}{place}"), faults),
            other => faults.push(format!("{at}{place}: {other} for a schema")),
        }
    }
}
