//! Joined schemas below the root, where the provider does not read the way they are joined.

use serde_json::{Map, Value, json};

use super::merge::merge;
use super::union::Joiner;
use super::walk::{At, each_child, weight};
use super::{Stop, types};
use crate::core::profile::Refs;

/// What may stay beside `anyOf` where constraints may not.
const BESIDE: [&str; 8] =
    ["anyOf", "description", "title", "nullable", "default", "examples", "example", "deprecated"];

/// Alternatives of one that are written as the schema itself, one inside the other.
const MAX_ROUNDS: usize = 16;

/// Rewrites every schema of the document from the root down.
pub(super) fn settle(root: &mut Map<String, Value>, joiner: &mut Joiner<'_>) -> Result<(), Stop> {
    let mut walk = Walk { joiner, outcome: Ok(()) };
    walk.schema(root, &At::ROOT);
    walk.outcome
}

struct Walk<'a, 'b> {
    joiner: &'a mut Joiner<'b>,
    outcome: Result<(), Stop>,
}

impl Walk<'_, '_> {
    fn schema(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        let outer = self.joiner.open.len();
        if self.outcome.is_ok() {
            self.outcome = one(map, at, self.joiner);
        }
        if self.outcome.is_ok() {
            each_child(map, at, &mut |child, at| self.schema(child, at));
        }
        self.joiner.open.truncate(outer);
    }
}

fn one(map: &mut Map<String, Value>, at: &At<'_>, joiner: &mut Joiner<'_>) -> Result<(), Stop> {
    let rules = *joiner.rules;
    let refused = |map: &Map<String, Value>, keyword: &str| {
        map.contains_key(keyword) && !rules.keywords.accept(keyword)
    };
    for _ in 0..MAX_ROUNDS {
        if refused(map, "allOf") {
            all_of(map, at, joiner)?;
        }
        if refused(map, "oneOf") {
            one_of(map, at, joiner);
        }
        if !rules.keywords.accept("if") {
            joiner.absorb_conditions(map, at)?;
        }
        if rules.nullable {
            null_branch(map, at, joiner);
        }
        // A single alternative that became the schema itself may bring more.
        let again = ["allOf", "oneOf", "if", "dependentSchemas"].iter().any(|keyword| refused(map, keyword));
        if !(again || (rules.nullable && has_null_branch(map))) {
            break;
        }
    }
    if rules.refs == Refs::KeepAlone && map.len() > 1 && !at.is_root() && map.contains_key("$ref") {
        // Merging may have put it there.
        let reference = map.shift_remove("$ref").map(|reference| json!({ "$ref": reference }));
        keep(map, reference, at, joiner)?;
    }
    if !rules.any_of_with_others && map.contains_key("anyOf") {
        alone(map, at, joiner)?;
    }
    Ok(())
}

/// Schemas that all hold become one. A reference among them that may stay is the only alternative of that one.
fn all_of(map: &mut Map<String, Value>, at: &At<'_>, joiner: &mut Joiner<'_>) -> Result<(), Stop> {
    let mut kept = None;
    if joiner.rules.refs != Refs::Inline
        && let Some(Value::Array(branches)) = map.get_mut("allOf")
        && let Some(index) = branches.iter().position(is_reference)
    {
        kept = Some(branches.remove(index));
    }
    joiner.flatten_all(map, at)?;
    keep(map, kept, at, joiner)
}

/// Puts a reference beside what has to hold as well.
fn keep(
    map: &mut Map<String, Value>,
    reference: Option<Value>,
    at: &At<'_>,
    joiner: &mut Joiner<'_>,
) -> Result<(), Stop> {
    match reference {
        Some(Value::Object(mut reference)) if map.contains_key("anyOf") || map.contains_key("$ref") => {
            joiner.resolve(&mut reference, at)?;
            merge(map, reference, at, joiner.notes);
        }
        Some(Value::Object(reference)) if map.is_empty() => *map = reference,
        Some(reference) => {
            map.insert("anyOf".to_owned(), Value::Array(vec![reference]));
        }
        None => {}
    }
    Ok(())
}

fn is_reference(schema: &Value) -> bool {
    schema.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("$ref"))
}

/// `oneOf` asks for exactly one alternative; that one is enough can be said everywhere.
fn one_of(map: &mut Map<String, Value>, at: &At<'_>, joiner: &mut Joiner<'_>) {
    let Some(branches) = map.shift_remove("oneOf") else { return };
    if map.contains_key("anyOf") {
        joiner.notes.lost("alternatives_rewritten", at, "`oneOf` stood beside `anyOf`, which holds");
        return;
    }
    map.insert("anyOf".to_owned(), branches);
    joiner.notes.weaker(at);
    joiner.notes.mended("alternatives_rewritten", at, "`oneOf` is written as `anyOf`");
}

/// Whether [`null_branch`] has something to do.
fn has_null_branch(map: &Map<String, Value>) -> bool {
    let Some(Value::Array(branches)) = map.get("anyOf") else { return false };
    branches.len() < 2 || branches.iter().any(is_null)
}

fn is_null(schema: &Value) -> bool {
    schema.as_object().is_some_and(|map| types::declared(map) == ["null"])
}

/// An alternative that is null is written as `nullable`; a single alternative that is left, as the schema itself.
fn null_branch(map: &mut Map<String, Value>, at: &At<'_>, joiner: &mut Joiner<'_>) {
    let Some(Value::Array(branches)) = map.get_mut("anyOf") else { return };
    let before = branches.len();
    branches.retain(|branch| !is_null(branch));
    let nullable = branches.len() < before;
    if nullable {
        joiner.notes.mended("alternatives_rewritten", at, "null is written as `nullable`");
    }
    if branches.len() <= 1 {
        let only = branches.pop();
        map.shift_remove("anyOf");
        if let Some(Value::Object(only)) = only {
            merge(map, only, at, joiner.notes);
            joiner.notes.mended("alternatives_rewritten", at, "a single alternative is the schema itself");
        }
        if nullable && !map.contains_key("type") && !map.contains_key("anyOf") && types::infer(map).is_none()
        {
            map.insert("type".to_owned(), Value::from("null"));
        }
    }
    if nullable {
        map.insert("nullable".to_owned(), Value::Bool(true));
    }
}

/// Alternatives of an object become one object; the constraints of anything else go into the alternatives.
fn alone(map: &mut Map<String, Value>, at: &At<'_>, joiner: &mut Joiner<'_>) -> Result<(), Stop> {
    if map.contains_key("properties") || types::declared(map) == ["object"] {
        return joiner.unite(map, "anyOf", at, 0);
    }
    let common: Vec<String> =
        map.keys().filter(|keyword| !BESIDE.contains(&keyword.as_str())).cloned().collect();
    if common.is_empty() {
        return Ok(());
    }
    let common: Map<String, Value> =
        common.into_iter().filter_map(|keyword| map.shift_remove_entry(&keyword)).collect();
    joiner.notes.mended("alternatives_rewritten", at, "constraints stand inside of the alternatives");
    let bytes: usize = common.values().map(weight).sum();
    let Some(Value::Array(branches)) = map.get_mut("anyOf") else { return Ok(()) };
    for branch in branches.iter_mut() {
        let Value::Object(branch) = branch else { continue };
        joiner.budget.take(bytes)?;
        merge(branch, common.clone(), at, joiner.notes);
    }
    Ok(())
}
