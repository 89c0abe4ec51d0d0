//! The way back: arguments that a model gives for a mended schema, as the tool's own schema has them.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::core::warning::pointer_push;

/// One step into arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ArgStep {
    /// A key as the provider sees it.
    Key(String),
    /// Every item of an array.
    Items,
}

/// A place in arguments as the provider sees them.
///
/// Written as a JSON pointer in which `*` stands for every item of an array; a key that is itself `*` is written
/// `~2`, so that no two paths read alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ArgPath(pub Vec<ArgStep>);

impl ArgPath {
    #[must_use]
    pub(super) fn key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(ArgStep::Key(key.to_owned()));
        Self(steps)
    }

    #[must_use]
    pub(super) fn items(&self) -> Self {
        let mut steps = self.0.clone();
        steps.push(ArgStep::Items);
        Self(steps)
    }
}

impl fmt::Display for ArgPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pointer = String::new();
        for step in &self.0 {
            match step {
                ArgStep::Key(key) if key == "*" => pointer.push_str("/~2"),
                ArgStep::Key(key) => pointer_push(&mut pointer, key),
                ArgStep::Items => pointer.push_str("/*"),
            }
        }
        f.write_str(&pointer)
    }
}

/// What was done to an argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ArgEffect {
    /// It has another key; this is the original one.
    Renamed(String),
    /// Its value is the whole of the original arguments.
    Whole,
    /// Null means that it is absent.
    NullIsAbsent,
}

/// One difference between the arguments of a mended schema and the original ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ArgChange {
    pub path: ArgPath,
    pub effect: ArgEffect,
}

/// The changes by place.
#[derive(Default)]
struct Node<'a> {
    keys: HashMap<&'a str, Node<'a>>,
    items: Option<Box<Node<'a>>>,
    original: Option<&'a str>,
    whole: bool,
    null_is_absent: bool,
}

impl<'a> Node<'a> {
    fn of(changes: &'a [ArgChange]) -> Self {
        let mut root = Node::default();
        for change in changes {
            let mut node = &mut root;
            for step in &change.path.0 {
                node = match step {
                    ArgStep::Key(key) => node.keys.entry(key).or_default(),
                    ArgStep::Items => node.items.get_or_insert_default(),
                };
            }
            match &change.effect {
                ArgEffect::Renamed(original) => node.original = Some(original),
                ArgEffect::Whole => node.whole = true,
                ArgEffect::NullIsAbsent => node.null_is_absent = true,
            }
        }
        root
    }

    fn whole(&self) -> Option<&'a str> {
        self.keys.iter().find(|(_, node)| node.whole).map(|(key, _)| *key)
    }
}

/// Gives arguments of a mended schema the form of the original: keys, absent values and the whole.
///
/// What the changes do not name stays as it is, so arguments that have the original form already pass unchanged.
/// The work is linear in the arguments and the changes.
pub fn unmap(arguments: &mut Value, changes: &[ArgChange]) {
    if !changes.is_empty() {
        unmap_at(arguments, &Node::of(changes));
    }
}

/// The recursion is no deeper than the longest path.
fn unmap_at(value: &mut Value, node: &Node<'_>) {
    match value {
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| unmap_at(item, node));
            }
        }
        Value::Object(map) => {
            for (key, node) in &node.keys {
                if let Some(value) = map.get_mut(*key) {
                    unmap_at(value, node);
                }
            }
            if let Some(whole) = node.whole().and_then(|key| map.shift_remove(key)) {
                *value = whole;
                return;
            }
            let absent = |key: &str, value: &Value| {
                value.is_null() && node.keys.get(key).is_some_and(|node| node.null_is_absent)
            };
            map.retain(|key, value| !absent(key, value));
            rename(map, |key| node.keys.get(key).and_then(|node| node.original));
        }
        _ => {}
    }
}

/// Gives original arguments the form of a mended schema: the other way round, which shows that nothing is lost.
#[cfg(any(test, fuzzing))]
pub fn map(arguments: &mut Value, changes: &[ArgChange]) {
    if !changes.is_empty() {
        map_at(arguments, &Node::of(changes));
    }
}

#[cfg(any(test, fuzzing))]
fn map_at(value: &mut Value, node: &Node<'_>) {
    if let Some(key) = node.whole() {
        let whole = value.take();
        *value = Value::Object(Map::from_iter([(key.to_owned(), whole)]));
    }
    match value {
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| map_at(item, node));
            }
        }
        Value::Object(map) => {
            let renamed: HashMap<&str, &str> = node
                .keys
                .iter()
                .filter_map(|(key, node)| node.original.map(|original| (original, *key)))
                .collect();
            rename(map, |key| renamed.get(key).copied());
            for (key, node) in &node.keys {
                if let Some(value) = map.get_mut(*key) {
                    map_at(value, node);
                }
            }
        }
        _ => {}
    }
}

/// A place in original arguments, a JSON pointer, as the mended schema has it.
pub fn wire_pointer(pointer: &str, changes: &[ArgChange]) -> String {
    let root = Node::of(changes);
    let (mut node, mut wire) = (Some(&root), String::new());
    if let Some(key) = root.whole() {
        pointer_push(&mut wire, key);
        node = root.keys.get(key);
    }
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        let renamed = node.and_then(|node| {
            node.keys.iter().find(|(_, below)| below.original == Some(key.as_str())).map(|(key, _)| *key)
        });
        let key = renamed.unwrap_or(&key);
        pointer_push(&mut wire, key);
        node = node.and_then(|node| node.keys.get(key).or(node.items.as_deref()));
    }
    wire
}

/// The original keys that have another one in the mended schema, each with that one.
pub fn renamed_keys(changes: &[ArgChange]) -> impl Iterator<Item = (&str, &str)> {
    changes.iter().filter_map(|change| match (&change.effect, change.path.0.last()) {
        (ArgEffect::Renamed(original), Some(ArgStep::Key(wire))) => Some((original.as_str(), wire.as_str())),
        _ => None,
    })
}

/// Renames keys in their place. A key whose new name is there already stays: nothing is lost.
fn rename<'a>(map: &mut Map<String, Value>, new_name: impl Fn(&str) -> Option<&'a str>) {
    if !map.keys().any(|key| new_name(key).is_some()) {
        return;
    }
    let old = std::mem::take(map);
    let taken: Vec<String> = old.keys().cloned().collect();
    let taken: std::collections::HashSet<&str> = taken.iter().map(String::as_str).collect();
    for (key, value) in old {
        let name = new_name(&key).filter(|name| !taken.contains(name)).map(str::to_owned);
        map.insert(name.unwrap_or(key), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(path: &[ArgStep], effect: ArgEffect) -> ArgChange {
        ArgChange { path: ArgPath(path.to_vec()), effect }
    }

    fn key(key: &str) -> ArgStep {
        ArgStep::Key(key.to_owned())
    }

    #[test]
    fn keys_come_back_through_objects_and_arrays_in_their_places() {
        let changes = [
            change(&[key("filter_id_1")], ArgEffect::Renamed("filter[id]".into())),
            change(&[key("rows"), ArgStep::Items, key("_a_2")], ArgEffect::Renamed("$a".into())),
            change(&[key("note")], ArgEffect::NullIsAbsent),
        ];
        let wire =
            json!({"z": 1, "filter_id_1": 5, "rows": [{"_a_2": 1, "b": 2}, {"b": 3}, 7], "note": null});
        let original = json!({"z": 1, "filter[id]": 5, "rows": [{"$a": 1, "b": 2}, {"b": 3}, 7]});
        let mut read = wire.clone();
        unmap(&mut read, &changes);
        assert_eq!(read.to_string(), original.to_string());
        map(&mut read, &changes);
        assert_eq!(read["rows"], wire["rows"]);
        assert_eq!(changes[1].path.to_string(), "/rows/*/_a_2");
        assert_eq!(change(&[key("*"), key("a/b")], ArgEffect::Whole).path.to_string(), "/~2/a~1b");
    }

    #[test]
    fn a_place_is_told_in_the_keys_of_the_mended_schema() {
        let changes = [
            change(&[key("filter_id_1")], ArgEffect::Renamed("filter[id]".into())),
            change(&[key("filter_id_1"), ArgStep::Items, key("_a_2")], ArgEffect::Renamed("a/b".into())),
        ];
        for (original, wire) in [
            ("", ""),
            ("/filter[id]/0/a~1b/c", "/filter_id_1/0/_a_2/c"),
            ("/other/filter[id]", "/other/filter[id]"),
        ] {
            assert_eq!(wire_pointer(original, &changes), wire);
        }
        assert_eq!(wire_pointer("/0", &[change(&[key("value")], ArgEffect::Whole)]), "/value/0");
        let renamed: Vec<(&str, &str)> = renamed_keys(&changes).collect();
        assert_eq!(renamed, [("filter[id]", "filter_id_1"), ("a/b", "_a_2")]);
    }

    #[test]
    fn the_whole_is_unwrapped_and_wrapped() {
        let changes = [change(&[key("value")], ArgEffect::Whole)];
        let mut arguments = json!({"value": ["a", "b"]});
        unmap(&mut arguments, &changes);
        assert_eq!(arguments, json!(["a", "b"]));
        unmap(&mut arguments, &changes);
        assert_eq!(arguments, json!(["a", "b"]));
        map(&mut arguments, &changes);
        assert_eq!(arguments, json!({"value": ["a", "b"]}));
    }

    #[test]
    fn nothing_is_lost_when_both_names_are_there() {
        let changes = [change(&[key("_top_1")], ArgEffect::Renamed("$top".into()))];
        let mut arguments = json!({"_top_1": 1, "$top": 2});
        unmap(&mut arguments, &changes);
        assert_eq!(arguments, json!({"_top_1": 1, "$top": 2}));
        let mut original = json!({"$top": 2});
        unmap(&mut original, &changes);
        assert_eq!(original, json!({"$top": 2}));
    }
}
