//! Conjunction: two schemas about the same value as one.

use serde_json::{Map, Value, json};

use super::notes::Notes;
use super::types;
use super::walk::{At, dedupe};

/// Keywords that say nothing about which values are valid. Of two, the first one stays, without being a
/// contradiction.
pub(super) const ANNOTATIONS: &[&str] = &[
    "description",
    "title",
    "default",
    "examples",
    "example",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
];

/// Keywords that say something only beside another one.
const DEPENDENT: [(&str, &str); 4] =
    [("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains")];

/// Takes out what says nothing here and would say something beside the other schema.
fn drop_idle(schema: &mut Map<String, Value>) {
    for (keyword, beside) in DEPENDENT {
        if !schema.contains_key(beside) {
            schema.shift_remove(keyword);
        }
    }
}

/// Adds what `from` asks for to `into`. Where the two cannot both be said, `into` holds and the loss is noted.
pub(super) fn merge(
    into: &mut Map<String, Value>,
    mut from: Map<String, Value>,
    at: &At<'_>,
    notes: &mut Notes,
) {
    drop_idle(into);
    drop_idle(&mut from);
    let conditional = into.contains_key("if");
    for (keyword, new) in from {
        if conditional && matches!(keyword.as_str(), "if" | "then" | "else") {
            contradiction(&keyword, into.get(&keyword), &new, at, notes);
            continue;
        }
        let Some(old) = into.get_mut(&keyword) else {
            into.insert(keyword, new);
            continue;
        };
        if *old == new || ANNOTATIONS.contains(&keyword.as_str()) {
            continue;
        }
        if let Some(both) = conjunction(&keyword, old, new, &at.key(&keyword), notes) {
            *old = both;
        }
    }
}

/// Both values as one; none when the old one has to do.
fn conjunction(keyword: &str, old: &mut Value, new: Value, at: &At<'_>, notes: &mut Notes) -> Option<Value> {
    let both = match keyword {
        "required" | "allOf" => union(old, &new),
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            return members(old, new, at, notes);
        }
        "items"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "propertyNames"
        | "contains" => return schemas(old, new, at, notes),
        "type" => common_types(old, &new),
        "enum" => common_values(old, &new),
        "not" => Some(json!({ "anyOf": [old.clone(), new] })),
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" | "minContains" => {
            return Some(if old.as_f64() < new.as_f64() { new } else { old.take() });
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" | "maxContains" => {
            return Some(if old.as_f64() > new.as_f64() { new } else { old.take() });
        }
        "uniqueItems" => Some(Value::Bool(true)),
        "nullable" => Some(Value::Bool(false)),
        _ => None,
    };
    if both.is_none() {
        contradiction(keyword, Some(old), &new, at, notes);
    }
    both
}

fn contradiction(keyword: &str, old: Option<&Value>, new: &Value, at: &At<'_>, notes: &mut Notes) {
    if old != Some(new) {
        let detail = format!("two schemas say different things in `{keyword}`; the first one holds");
        notes.lost("schemas_merged", at, &detail);
    }
}

/// Both lists, each value once.
fn union(old: &Value, new: &Value) -> Option<Value> {
    let mut all = old.as_array()?.clone();
    all.extend(new.as_array()?.iter().cloned());
    dedupe(&mut all);
    Some(Value::Array(all))
}

/// Both objects; what stands in both has to satisfy both.
fn members(old: &mut Value, new: Value, at: &At<'_>, notes: &mut Notes) -> Option<Value> {
    let (Value::Object(mut all), Value::Object(new)) = (old.take(), new) else { return Some(json!({})) };
    for (name, schema) in new {
        match all.get_mut(&name) {
            Some(there) => {
                if let Some(both) = schemas(there, schema, &at.key(&name), notes) {
                    *there = both;
                }
            }
            None => {
                all.insert(name, schema);
            }
        }
    }
    Some(Value::Object(all))
}

/// Two schemas, or flags, as one.
fn schemas(old: &mut Value, new: Value, at: &At<'_>, notes: &mut Notes) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            merge(old, new, at, notes);
            None
        }
        (Value::Bool(true), new) => Some(new),
        (Value::Object(_), Value::Bool(false)) => Some(Value::Bool(false)),
        _ => None,
    }
}

/// The types that both allow; an integer is a number.
fn common_types(old: &Value, new: &Value) -> Option<Value> {
    let list = |value: &Value| -> Vec<String> {
        let mut map = Map::new();
        map.insert("type".to_owned(), value.clone());
        types::declared(&map).into_iter().map(str::to_owned).collect()
    };
    let (old, new) = (list(old), list(new));
    let among = |kind: &str, kinds: &[String]| {
        kinds.iter().any(|known| known == kind || (kind == "integer" && known == "number"))
    };
    let mut common: Vec<&String> = old.iter().filter(|kind| among(kind, &new)).collect();
    common.extend(new.iter().filter(|kind| among(kind, &old) && !old.contains(kind)));
    match common.as_slice() {
        [] => None,
        [one] => Some(json!(one)),
        several => Some(json!(several)),
    }
}

fn common_values(old: &Value, new: &Value) -> Option<Value> {
    let (old, new) = (old.as_array()?, new.as_array()?);
    let known: std::collections::HashSet<String> = new.iter().map(Value::to_string).collect();
    let common: Vec<Value> = old.iter().filter(|value| known.contains(&value.to_string())).cloned().collect();
    (!common.is_empty()).then_some(Value::Array(common))
}
