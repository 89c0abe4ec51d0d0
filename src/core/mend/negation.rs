//! What turns around: a schema that got weaker inside of `not`, `if` or `oneOf` makes the one around it stricter.
//!
//! A schema that is sent may allow more than the original, never less, so these keywords go as soon as anything inside
//! of them was taken out; `oneOf` becomes `anyOf`.

use serde_json::{Map, Value};

use super::merge::ANNOTATIONS;
use super::notes::Notes;
use super::walk::{At, each_schema};

/// Weakens what has to be, then takes out what no value satisfies. Answers whether anything was taken out.
pub(super) fn settle(root: &mut Map<String, Value>, notes: &mut Notes) -> bool {
    weaken(root, notes);
    let mut dropped = false;
    each_schema(root, &At::ROOT, &mut |map, at| {
        if drop_impossible(map) {
            notes.lost("boolean_schema", at, "what no value satisfies is not offered");
            dropped = true;
        }
    });
    if dropped {
        weaken(root, notes);
    }
    dropped
}

/// Takes out what got stricter.
pub(super) fn weaken(root: &mut Map<String, Value>, notes: &mut Notes) {
    let weakened = notes.weakened();
    if !weakened.negated && !weakened.exclusive {
        return;
    }
    each_schema(root, &At::ROOT, &mut |map, at| {
        for keyword in ["not", "if", "then", "else"] {
            if weakened.negated && map.shift_remove(keyword).is_some() {
                notes.lost("keyword_dropped", at, &format!("`{keyword}` would say more than it did"));
            }
        }
        if weakened.exclusive
            && let Some(branches) = map.shift_remove("oneOf")
        {
            if map.contains_key("anyOf") {
                notes.lost("alternatives_rewritten", at, "`oneOf` stood beside `anyOf`, which holds");
            } else {
                map.insert("anyOf".to_owned(), branches);
                notes.mended("alternatives_rewritten", at, "`oneOf` is written as `anyOf`");
            }
        }
    });
}

/// What is impossible as a property or as an alternative is not offered.
fn drop_impossible(map: &mut Map<String, Value>) -> bool {
    let mut dropped = false;
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        let before = properties.len();
        properties.retain(|_, property| !is_impossible(property));
        dropped |= properties.len() < before;
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = map.get_mut(keyword) {
            let before = branches.len();
            branches.retain(|branch| !is_impossible(branch));
            dropped |= branches.len() < before;
            if branches.is_empty() {
                map.shift_remove(keyword);
            }
        }
    }
    dropped
}

/// A schema that no value satisfies. Converters write one for "may be absent".
fn is_impossible(schema: &Value) -> bool {
    match schema.get("not") {
        Some(Value::Object(all)) => all.keys().all(|keyword| ANNOTATIONS.contains(&keyword.as_str())),
        _ => false,
    }
}
