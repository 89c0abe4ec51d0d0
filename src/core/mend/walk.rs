//! Walking over a schema: the place of each part, and what stands directly below it.

use serde_json::{Map, Value};

use crate::core::schema::keywords::{self, Holds};
use crate::core::warning::pointer_push;

/// A place in the schema, kept on the stack of the walk; it becomes text only when something is told about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    up: Option<&'a At<'a>>,
    step: Step<'a>,
    depth: usize,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    pub(super) const ROOT: At<'static> = At { up: None, step: Step::Index(0), depth: 0 };

    pub(super) fn key<'b>(&'b self, key: &'b str) -> At<'b>
    where
        'a: 'b,
    {
        At { up: Some(self), step: Step::Key(key), depth: self.depth + 1 }
    }

    pub(super) fn index<'b>(&'b self, index: usize) -> At<'b>
    where
        'a: 'b,
    {
        At { up: Some(self), step: Step::Index(index), depth: self.depth + 1 }
    }

    pub(super) fn is_root(&self) -> bool {
        self.up.is_none()
    }

    /// Arrays and objects around the place.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the place lies below a key of this name.
    pub(super) fn is_below(&self, key: &str) -> bool {
        let mut place = self;
        while let Some(up) = place.up {
            if matches!(place.step, Step::Key(step) if step == key) {
                return true;
            }
            place = up;
        }
        false
    }

    /// The JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let mut steps = Vec::with_capacity(self.depth);
        let mut place = self;
        while let Some(up) = place.up {
            steps.push(place.step);
            place = up;
        }
        let mut pointer = String::new();
        for step in steps.iter().rev() {
            match step {
                Step::Key(key) => pointer_push(&mut pointer, key),
                Step::Index(index) => pointer_push(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }
}

/// Calls `visit` for every schema directly below that is an object.
pub(super) fn each_child(
    map: &mut Map<String, Value>,
    at: &At<'_>,
    visit: &mut dyn FnMut(&mut Map<String, Value>, &At<'_>),
) {
    for (keyword, value) in map.iter_mut() {
        let (holds, _) = keywords::of(keyword);
        if holds == Holds::Nothing {
            continue;
        }
        let at = at.key(keyword);
        match (holds, value) {
            (Holds::Schema | Holds::SchemaOrList, Value::Object(schema)) => visit(schema, &at),
            (Holds::List | Holds::SchemaOrList, Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Value::Object(schema) = item {
                        visit(schema, &at.index(index));
                    }
                }
            }
            (Holds::Map | Holds::MapOfSchemas, Value::Object(entries)) => {
                for (name, entry) in entries.iter_mut() {
                    if let Value::Object(schema) = entry {
                        visit(schema, &at.key(name));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Visits a schema and every schema below it, the outer one first.
pub(super) fn each_schema(
    map: &mut Map<String, Value>,
    at: &At<'_>,
    visit: &mut dyn FnMut(&mut Map<String, Value>, &At<'_>),
) {
    visit(map, at);
    each_child(map, at, &mut |child, at| each_schema(child, at, visit));
}

/// Whether more arrays and objects stand inside each other than `levels`. The parser has bounded the recursion.
pub(super) fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|item| is_deeper_than(item, levels - 1)),
        _ => false,
    }
}

/// Approximate bytes of a value as text.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 3,
        Value::Array(items) => 2 + items.iter().map(weight).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(key, item)| key.len() + 4 + weight(item)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 6,
    }
}

/// Adds a member in front of the others, or replaces the one that is there.
pub(super) fn put_first(map: &mut Map<String, Value>, key: &str, value: Value) {
    if let Some(there) = map.get_mut(key) {
        *there = value;
    } else {
        map.shift_insert(0, key.to_owned(), value);
    }
}

/// Leaves the first of several values that are written alike.
pub(super) fn dedupe(values: &mut Vec<Value>) {
    let mut seen = std::collections::HashSet::new();
    values.retain(|value| seen.insert(value.to_string()));
}

/// Whether no two values are written alike.
pub(super) fn distinct(values: &[Value]) -> bool {
    // Lists of a few names are what nearly all schemas have.
    if values.len() <= 16 && values.iter().all(Value::is_string) {
        return values.iter().enumerate().all(|(at, value)| !values[..at].contains(value));
    }
    let mut seen = std::collections::HashSet::with_capacity(values.len());
    values.iter().all(|value| seen.insert(value.to_string()))
}
