//! `enum` and `const`: which values may be listed, and what is said of those that may not.

use serde_json::{Map, Value, json};

use super::notes::{Notes, say, tell};
use super::types;
use super::walk::{At, dedupe, distinct, put_first};
use crate::core::profile::{Enums, SchemaRules};
use crate::core::text::clip;

/// Longest list of values in a description, in characters.
const LISTED_CHARS: usize = 300;

/// Mends the values of one schema.
pub(super) fn settle(map: &mut Map<String, Value>, at: &At<'_>, rules: &SchemaRules, notes: &mut Notes) {
    if map.contains_key("const") && !rules.keywords.accept("const") {
        constant(map, at, notes);
    }
    if map.contains_key("enum") {
        listed(map, at, rules, notes);
    }
}

/// A constant text is an enum of one value; any other is told in words.
fn constant(map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) {
    let Some(value) = map.shift_remove("const") else { return };
    if !map.contains_key("type") {
        put_first(map, "type", json!(types::type_of(&value)));
    }
    match value {
        Value::String(text) if !text.is_empty() => {
            map.insert("enum".to_owned(), json!([text]));
            notes.mended("constant_rewritten", at, "a constant is written as an enum of one value");
        }
        Value::Null => notes.mended("constant_rewritten", at, "a constant null is a type"),
        other => {
            map.shift_remove("enum");
            tell(map, &say("always", &other));
            notes.lost("constant_rewritten", at, "a constant is told in the description");
        }
    }
}

fn listed(map: &mut Map<String, Value>, at: &At<'_>, rules: &SchemaRules, notes: &mut Notes) {
    let Some(Value::Array(values)) = map.get_mut("enum") else { return };
    if !distinct(values) {
        dedupe(values);
        notes.mended("enum_changed", at, "each value of an enum stands once");
    }
    if rules.enums != Enums::Any {
        let before = values.len();
        values.retain(|value| value != "");
        if values.len() < before {
            notes.lost("enum_changed", at, "an empty text is no value of an enum here");
            if !values.is_empty() {
                tell(map, "may be empty");
            }
        }
    }
    let Some(Value::Array(values)) = map.get_mut("enum") else { return };
    let has_null = values.contains(&Value::Null);
    if has_null && at.is_root() {
        values.retain(|value| !value.is_null());
        notes.mended("enum_changed", at, "arguments are never null");
    } else if has_null && rules.nullable {
        values.retain(|value| !value.is_null());
        map.insert("nullable".to_owned(), Value::Bool(true));
        notes.mended("enum_changed", at, "null among the values is written as `nullable`");
    } else if has_null && map.contains_key("type") && !types::declares(map, "null") {
        if let Some(kind) = map.get_mut("type") {
            let mut kinds = match kind.take() {
                Value::Array(kinds) => kinds,
                one => vec![one],
            };
            kinds.push(json!("null"));
            *kind = Value::Array(kinds);
        }
        notes.mended("enum_changed", at, "null among the values is a type as well");
    }
    let Some(Value::Array(values)) = map.get("enum") else { return };
    if values.is_empty() {
        map.shift_remove("enum");
        notes.mended(
            "enum_changed",
            at,
            "an enum without values is taken out, also where arguments are checked",
        );
    } else if rules.enums == Enums::TextsOnly {
        texts_only(map, at, notes);
    }
}

/// Texts stay, in a schema of type `string`; any other list of values is told in words.
fn texts_only(map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) {
    let Some(Value::Array(values)) = map.get("enum") else { return };
    let texts = values.iter().all(Value::is_string);
    if texts && types::declared(map) == ["string"] {
        return;
    }
    if texts && (!map.contains_key("type") || types::declares(map, "string")) {
        let null = types::declares(map, "null");
        put_first(map, "type", json!("string"));
        if null {
            map.insert("nullable".to_owned(), Value::Bool(true));
        }
        notes.mended("type_changed", at, "an enum of texts has the type `string`");
        return;
    }
    let words: Vec<String> =
        values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
    let kind = types::infer(map);
    map.shift_remove("enum");
    if let Some(kind) = kind.filter(|_| !map.contains_key("type")) {
        put_first(map, "type", json!(kind));
    }
    tell(map, &format!("one of: {}", clip(&words.join(", "), LISTED_CHARS)));
    notes.lost("enum_changed", at, "an enum that is not of texts is told in the description");
}
