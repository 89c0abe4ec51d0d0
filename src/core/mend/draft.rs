//! Older drafts: keywords that draft 2020-12 spells in another way, in one schema.

use serde_json::{Map, Value, json};

use super::notes::Notes;
use super::walk::At;

/// Rewrites the keywords of drafts 4 to 2019-09 in this schema, and answers whether there were any. References
/// are not looked at here.
pub(super) fn upgrade(map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) -> bool {
    let mut upgraded = false;
    if map.get("items").is_some_and(Value::is_array) {
        upgraded |= tuple(map);
    }
    if let Some(anchor) = map.get("$id").and_then(Value::as_str).and_then(|id| id.strip_prefix('#')) {
        let anchor = Value::from(anchor);
        map.shift_remove("$id");
        map.insert("$anchor".to_owned(), anchor);
        upgraded = true;
    }
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(strictly)) = map.get(exclusive) {
            let strictly = *strictly;
            map.shift_remove(exclusive);
            if strictly && let Some(limit) = map.shift_remove(limit) {
                map.insert(exclusive.to_owned(), limit);
            }
            upgraded = true;
        }
    }
    if map.get("dependencies").is_some_and(Value::is_object) {
        upgraded |= dependencies(map);
    }
    if map.get("items") == Some(&Value::Bool(false)) {
        upgraded |= closed_items(map);
    }
    if upgraded {
        notes.mended("dialect_upgraded", at, "keywords are written as draft 2020-12 has them");
    }
    upgraded
}

/// `items` as a list says what each place holds.
fn tuple(map: &mut Map<String, Value>) -> bool {
    let rest = map.shift_remove("additionalItems");
    let Some(places) = map.shift_remove("items") else { return false };
    if places.as_array().is_some_and(|places| !places.is_empty()) {
        map.insert("prefixItems".to_owned(), places);
    }
    if let Some(rest) = rest {
        map.insert("items".to_owned(), rest);
    }
    true
}

/// `dependencies` holds lists of names and schemas; each has a keyword of its own now.
fn dependencies(map: &mut Map<String, Value>) -> bool {
    let Some(Value::Object(entries)) = map.shift_remove("dependencies") else { return false };
    let (mut names, mut schemas) = (Map::new(), Map::new());
    for (key, entry) in entries {
        if entry.is_array() {
            names.insert(key, entry)
        } else {
            schemas.insert(key, entry)
        };
    }
    for (keyword, entries) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
        if entries.is_empty() {
            continue;
        }
        match map.get_mut(keyword) {
            Some(Value::Object(there)) => {
                for (key, entry) in entries {
                    there.entry(key).or_insert(entry);
                }
            }
            _ => {
                map.insert(keyword.to_owned(), Value::Object(entries));
            }
        }
    }
    true
}

/// `items: false` allows no more items than `prefixItems` has; `maxItems` says the same.
fn closed_items(map: &mut Map<String, Value>) -> bool {
    let places = map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let most = map.get("maxItems").and_then(Value::as_u64).map_or(places, |most| most.min(places));
    map.insert("maxItems".to_owned(), json!(most));
    map.insert("items".to_owned(), json!({}));
    true
}
