//! Keys of arguments that the provider refuses get another name, with a hash of the original.
//!
//! A name depends on its own key alone, unless another key of the same object is called like it. Several schemas may
//! speak about one object (alternatives, conditions): they share one naming.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;

use super::args::{ArgChange, ArgEffect, ArgPath};
use super::notes::Notes;
use super::walk::{At, each_schema};
use super::{Budget, Stop, refs};
use crate::core::digest::name_suffix;
use crate::core::profile::KeyRule;

/// Keywords whose schemas speak about the same object.
const SAME_OBJECT: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Renames keys of the document; `changes` leads back.
pub(super) fn rename(
    root: &mut Map<String, Value>,
    rule: KeyRule,
    budget: &mut Budget,
    changes: &mut Vec<ArgChange>,
    notes: &mut Notes,
) -> Result<(), Stop> {
    if rule == KeyRule::Any || !any_refused(root, rule) {
        return Ok(());
    }
    let mut place = Place::default();
    place.gather(root, rule);
    if !place.assign(rule) {
        return Ok(());
    }
    if rule == KeyRule::TopLevel {
        // What refers to the root stands below it, where the keys may stay.
        refs::keep_root(root, budget, notes)?;
        drop_references(root, notes);
    }
    place.apply(root);
    place.tell(&ArgPath::default(), changes);
    for change in changes.iter() {
        if let ArgEffect::Renamed(original) = &change.effect {
            notes.mended(
                "key_renamed",
                &At::ROOT,
                &format!("the argument {original:?} is called {}", change.path),
            );
        }
    }
    Ok(())
}

/// What says something about the root by way of a definition would go on about the old keys, so it goes.
fn drop_references(root: &mut Map<String, Value>, notes: &mut Notes) {
    let refers = |schema: &mut Value| {
        let mut found = false;
        if let Value::Object(map) = schema {
            each_schema(map, &At::ROOT, &mut |map, _| found |= map.contains_key("$ref"));
        }
        found
    };
    let mut dropped = Vec::new();
    if let Some(Value::Object(entries)) = root.get_mut("dependentSchemas")
        && entries.values_mut().any(refers)
    {
        dropped.push("dependentSchemas");
    }
    if root.get_mut("not").is_some_and(refers) {
        dropped.push("not");
    }
    if ["if", "then", "else"].iter().any(|keyword| root.get_mut(*keyword).is_some_and(refers)) {
        dropped.extend(["if", "then", "else"]);
    }
    for keyword in dropped {
        if root.shift_remove(keyword).is_some() {
            notes.lost(
                "keyword_dropped",
                &At::ROOT,
                &format!("`{keyword}` speaks of arguments by their old keys"),
            );
        }
    }
}

/// A quick look before anything is built.
fn any_refused(root: &mut Map<String, Value>, rule: KeyRule) -> bool {
    let refused = |map: &Map<String, Value>| {
        let properties = map.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| properties.keys().any(|key| !rule.fits(key)))
    };
    let others = SAME_OBJECT.iter().chain(&["dependentSchemas"]).any(|keyword| root.contains_key(*keyword));
    if rule == KeyRule::TopLevel && !others {
        return refused(root);
    }
    let mut found = false;
    each_schema(root, &At::ROOT, &mut |map, _| found |= refused(map));
    found
}

/// One object of the arguments, with what lies below it.
#[derive(Default)]
struct Place {
    /// All keys in the order they are met, each with its wire name.
    keys: Vec<(String, String)>,
    wire: HashMap<String, String>,
    below: HashMap<String, Place>,
    items: Option<Box<Place>>,
}

impl Place {
    /// Collects the keys of every schema about this object, and of those below it where the rule goes deeper.
    fn gather(&mut self, map: &Map<String, Value>, rule: KeyRule) {
        for (key, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.add(key);
            if let Value::Object(schema) = schema
                && rule == KeyRule::Everywhere
            {
                self.below.entry(key.clone()).or_default().gather(schema, rule);
            }
        }
        for key in
            map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            self.add(key);
        }
        for keyword in SAME_OBJECT {
            match map.get(keyword) {
                Some(Value::Object(schema)) => self.gather(schema, rule),
                Some(Value::Array(schemas)) => {
                    schemas.iter().filter_map(Value::as_object).for_each(|schema| self.gather(schema, rule));
                }
                _ => {}
            }
        }
        if let Some(Value::Object(schemas)) = map.get("dependentSchemas") {
            for (key, schema) in schemas {
                self.add(key);
                if let Value::Object(schema) = schema {
                    self.gather(schema, rule);
                }
            }
        }
        if let Some(Value::Object(schema)) = map.get("items")
            && rule == KeyRule::Everywhere
        {
            self.items.get_or_insert_default().gather(schema, rule);
        }
    }

    fn add(&mut self, key: &str) {
        if !self.wire.contains_key(key) {
            self.wire.insert(key.to_owned(), String::new());
            self.keys.push((key.to_owned(), String::new()));
        }
    }

    /// Gives every key its wire name. Answers whether any has another one.
    fn assign(&mut self, rule: KeyRule) -> bool {
        let mut taken: HashSet<String> =
            self.keys.iter().map(|(key, _)| key.clone()).filter(|key| rule.fits(key)).collect();
        let mut renamed = false;
        for (key, wire) in &mut self.keys {
            renamed |= !rule.fits(key);
            *wire = if rule.fits(key) { key.clone() } else { wire_key(key, rule, &mut taken) };
            self.wire.insert(key.clone(), wire.clone());
        }
        for place in self.below.values_mut().chain(self.items.as_deref_mut()) {
            renamed |= place.assign(rule);
        }
        renamed
    }

    fn name(&self, key: &str) -> String {
        self.wire.get(key).cloned().unwrap_or_else(|| key.to_owned())
    }

    fn apply(&self, map: &mut Map<String, Value>) {
        for keyword in SAME_OBJECT {
            match map.get_mut(keyword) {
                Some(Value::Object(schema)) => self.apply(schema),
                Some(Value::Array(schemas)) => {
                    schemas.iter_mut().filter_map(Value::as_object_mut).for_each(|schema| self.apply(schema));
                }
                _ => {}
            }
        }
        for keyword in ["dependentSchemas", "dependentRequired", "properties"] {
            let Some(Value::Object(entries)) = map.get_mut(keyword) else { continue };
            for (key, mut entry) in std::mem::take(entries) {
                match &mut entry {
                    Value::Object(schema) if keyword == "dependentSchemas" => self.apply(schema),
                    Value::Object(schema) => {
                        if let Some(place) = self.below.get(&key) {
                            place.apply(schema);
                        }
                    }
                    Value::Array(names) => self.rename_all(names),
                    _ => {}
                }
                entries.insert(self.name(&key), entry);
            }
        }
        if let Some(Value::Array(names)) = map.get_mut("required") {
            self.rename_all(names);
        }
        if let (Some(place), Some(Value::Object(schema))) = (&self.items, map.get_mut("items")) {
            place.apply(schema);
        }
    }

    fn rename_all(&self, names: &mut [Value]) {
        for name in names {
            if let Value::String(key) = name {
                *key = self.name(key);
            }
        }
    }

    /// Adds the way back for this object and those below it.
    fn tell(&self, path: &ArgPath, changes: &mut Vec<ArgChange>) {
        for (key, wire) in &self.keys {
            if key != wire {
                changes.push(ArgChange { path: path.key(wire), effect: ArgEffect::Renamed(key.clone()) });
            }
            if let Some(place) = self.below.get(key) {
                place.tell(&path.key(wire), changes);
            }
        }
        if let Some(items) = &self.items {
            items.tell(&path.items(), changes);
        }
    }
}

/// The name for a key that does not fit: its fitting characters, and eight hexadecimal digits of the SHA-256 of the
/// key. The first free one is taken.
fn wire_key(key: &str, rule: KeyRule, taken: &mut HashSet<String>) -> String {
    let room = KeyRule::MAX_CHARS - 9;
    let mut head = String::with_capacity(KeyRule::MAX_CHARS);
    // Only as much as can stay is normalised: a key may be long.
    for character in key.chars().take(4 * KeyRule::MAX_CHARS).nfc() {
        if head.len() >= room {
            break;
        }
        if head.is_empty() && rule == KeyRule::Everywhere && character.is_ascii_digit() {
            head.push('_');
        }
        head.push(if rule.allows(character) { character } else { '_' });
    }
    let trimmed = head.trim_end_matches('_');
    let head = if trimmed.is_empty() { "arg" } else { trimmed };
    let mut suffix = name_suffix(key);
    let mut round = 1_u32;
    loop {
        let name = format!("{head}_{suffix}");
        if taken.insert(name.clone()) {
            return name;
        }
        round += 1;
        suffix = name_suffix(&format!("{key}\0{round}"));
    }
}
