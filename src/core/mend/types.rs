//! The `type` keyword: what servers write there, what a schema without one shows, what a schema allows.

use serde_json::{Map, Value, json};

use super::notes::{Notes, tell};
use super::walk::{At, put_first};

/// The types of JSON Schema.
const NAMES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// What languages and converters call these types.
const ALIASES: &[(&str, &str)] = &[
    ("str", "string"),
    ("text", "string"),
    ("char", "string"),
    ("varchar", "string"),
    ("int", "integer"),
    ("int32", "integer"),
    ("int64", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("numeric", "number"),
    ("bool", "boolean"),
    ("dict", "object"),
    ("dictionary", "object"),
    ("map", "object"),
    ("list", "array"),
    ("tuple", "array"),
    ("set", "array"),
    ("none", "null"),
    ("nonetype", "null"),
    ("nil", "null"),
    ("undefined", "null"),
];

/// Names that say: any type.
const ANY: [&str; 4] = ["any", "mixed", "unknown", "*"];

/// The type of JSON Schema that a name means.
pub(super) fn canonical(name: &str) -> Option<&'static str> {
    let name = name.trim().to_ascii_lowercase();
    let exact = NAMES.into_iter().find(|known| *known == name);
    exact.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, known)| *known))
}

/// Whether the value of `type` is as JSON Schema has it.
pub(super) fn is_fine(value: &Value) -> bool {
    let named = |value: &Value| value.as_str().is_some_and(|name| NAMES.contains(&name));
    match value {
        Value::String(_) => named(value),
        Value::Array(names) => !names.is_empty() && names.iter().all(named) && super::walk::distinct(names),
        _ => false,
    }
}

/// Mends a `type` that is not fine, or takes it out.
///
/// A lone `none` is what converters write for "no type known": it goes, as an empty text does.
pub(super) fn normalise(map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) {
    let Some(written) = map.get("type").cloned() else { return };
    let names: Vec<&str> = match &written {
        Value::String(text) => text.split('|').map(str::trim).collect(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut known: Vec<&str> = Vec::new();
    let mut strange = Vec::new();
    for name in &names {
        match canonical(name) {
            Some(name) if !known.contains(&name) => known.push(name),
            Some(_) => {}
            None => strange.push(*name),
        }
    }
    let anything = strange.iter().any(|name| ANY.contains(&name.to_ascii_lowercase().as_str()));
    if known == ["null"] && written != "null" && !written.is_array() {
        known.clear();
    }
    if anything || known.is_empty() {
        map.shift_remove("type");
        let unknown: Vec<&str> = strange.iter().copied().filter(|name| !name.is_empty()).collect();
        if anything || unknown.is_empty() {
            notes.mended("type_changed", at, "a type that means no type in particular is taken out");
        } else {
            notes.lost("type_changed", at, "a type that JSON Schema does not know is taken out");
            tell(map, &format!("type: {}", unknown.join(", ")));
        }
        return;
    }
    let value = match known.as_slice() {
        [one] => Value::from(*one),
        several => Value::from(several.to_vec()),
    };
    map.insert("type".to_owned(), value);
    if strange.iter().any(|name| !name.is_empty()) {
        notes.lost("type_changed", at, "types that JSON Schema does not know are taken out of a list");
    } else {
        notes.mended("type_changed", at, "the type is written as JSON Schema has it");
    }
}

/// The types that a schema declares; none for any.
pub(super) fn declared(map: &Map<String, Value>) -> Vec<&str> {
    match map.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a schema declares the type, alone or with others.
pub(super) fn declares(map: &Map<String, Value>, kind: &str) -> bool {
    match map.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => false,
    }
}

/// The keywords that say something about values of one type alone.
pub(super) fn belongs_to(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "unevaluatedProperties"
        | "dependentRequired"
        | "dependentSchemas" => "object",
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" | "minContains"
        | "maxContains" | "unevaluatedItems" => "array",
        "pattern" | "minLength" | "maxLength" | "contentEncoding" | "contentMediaType" => "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => "number",
        _ => return None,
    })
}

/// The type that the other keywords of a schema show: its values first, then the keywords of one type, then the
/// default.
pub(super) fn infer(map: &Map<String, Value>) -> Option<&'static str> {
    if let Some(Value::Array(values)) = map.get("enum")
        && let Some(kind) = common_type(values)
    {
        return Some(kind);
    }
    if let Some(value) = map.get("const") {
        return Some(type_of(value));
    }
    let shown = map.keys().find_map(|keyword| belongs_to(keyword));
    let formatted = || map.contains_key("format").then_some("string");
    let defaulted = || map.get("default").map(type_of).filter(|kind| *kind != "null");
    shown.or_else(formatted).or_else(defaulted)
}

/// The type of a value.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The one type of all values that are not null; integers among numbers are numbers.
fn common_type(values: &[Value]) -> Option<&'static str> {
    let mut common = None;
    for kind in values.iter().map(type_of).filter(|kind| *kind != "null") {
        common = match common {
            None => Some(kind),
            Some(known) if known == kind => common,
            Some("integer" | "number") if matches!(kind, "integer" | "number") => Some("number"),
            Some(_) => return None,
        };
    }
    common
}

/// Whether null is among the values of a schema.
pub(super) fn allows_null(map: &Map<String, Value>) -> bool {
    if map.get("nullable") == Some(&Value::Bool(true)) {
        return true;
    }
    if map.contains_key("type") && !declares(map, "null") {
        return false;
    }
    if let Some(Value::Array(values)) = map.get("enum") {
        return values.contains(&Value::Null);
    }
    if let Some(value) = map.get("const") {
        return value.is_null();
    }
    match map.get("anyOf") {
        Some(Value::Array(branches)) => branches.iter().filter_map(Value::as_object).any(allows_null),
        _ => true,
    }
}

/// Allows null beside what a schema allows.
pub(super) fn allow_null(map: &mut Map<String, Value>) {
    if let Some(value) = map.shift_remove("const") {
        if !map.contains_key("type") {
            put_first(map, "type", json!(type_of(&value)));
        }
        map.insert("enum".to_owned(), json!([value]));
    }
    match map.get_mut("type") {
        Some(kind @ Value::String(_)) if *kind != "null" => *kind = json!([kind.take(), "null"]),
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => kinds.push(json!("null")),
        _ => {}
    }
    if let Some(Value::Array(values)) = map.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(branches)) = map.get_mut("anyOf")
        && !branches.iter().filter_map(Value::as_object).any(allows_null)
    {
        branches.push(json!({ "type": "null" }));
    }
}
