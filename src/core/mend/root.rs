//! The root: an object with properties, and nothing about it that the provider refuses there.

use serde_json::{Map, Value, json};

use super::args::{ArgChange, ArgEffect, ArgPath};
use super::notes::{Notes, say, tell};
use super::union::{Joiner, may_be_object};
use super::walk::At;
use super::{Stop, refs, shape};
use crate::core::profile::SchemaRules;

/// The property that takes arguments which are no object.
const WRAPPER: &str = "value";

/// Settles the root. A wrapped one is noted in `changes`.
pub(super) fn settle(
    root: &mut Map<String, Value>,
    joiner: &mut Joiner<'_>,
    changes: &mut Vec<ArgChange>,
) -> Result<(), Stop> {
    let at = At::ROOT;
    if root.contains_key("$ref") {
        joiner.resolve(root, &at)?;
    }
    if !may_be_object(root, joiner.defs) {
        return wrap(root, joiner, changes);
    }
    let banned =
        |keyword: &str| joiner.rules.root.banned.contains(&keyword) || !joiner.rules.keywords.accept(keyword);
    let (all_of, any_of, one_of) = (banned("allOf"), banned("anyOf"), banned("oneOf"));
    let conditions = !joiner.rules.keywords.accept("if");
    if all_of && root.contains_key("allOf") {
        joiner.flatten_all(root, &at)?;
        joiner.resolve(root, &at)?;
    }
    // The alternatives may mean what the root has taken in already.
    joiner.open.clear();
    for (refused, keyword) in [(one_of, "oneOf"), (any_of, "anyOf")] {
        if refused && root.contains_key(keyword) {
            joiner.unite(root, keyword, &at, 0)?;
        }
    }
    if conditions {
        joiner.absorb_conditions(root, &at)?;
    }
    for keyword in ["enum", "const", "not"] {
        if joiner.rules.root.banned.contains(&keyword)
            && let Some(value) = root.shift_remove(keyword)
        {
            joiner.notes.lost("keyword_dropped", &at, &format!("`{keyword}` is refused at the root"));
            tell(root, &say(keyword, &value));
        }
    }
    if root.get("type") != Some(&json!("object")) {
        if root.contains_key("type") {
            // What refers to the root may be of the other types.
            refs::keep_root(root, joiner.budget, joiner.notes)?;
        }
        shape::set_object_type(root);
        joiner.notes.mended("root_changed", &at, "the type of the root is `object`");
    }
    if joiner.rules.root.properties && !root.contains_key("properties") {
        root.insert("properties".to_owned(), json!({}));
        joiner.notes.mended("root_changed", &at, "the root has `properties`");
    }
    Ok(())
}

/// Puts what is no object into a property.
fn wrap(
    root: &mut Map<String, Value>,
    joiner: &mut Joiner<'_>,
    changes: &mut Vec<ArgChange>,
) -> Result<(), Stop> {
    refs::keep_root(root, joiner.budget, joiner.notes)?;
    let defs = root.shift_remove("$defs");
    for keyword in ["$schema", "$id"] {
        root.shift_remove(keyword);
    }
    let inner = std::mem::take(root);
    let mut properties = Map::new();
    properties.insert(WRAPPER.to_owned(), Value::Object(inner));
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), Value::Object(properties));
    root.insert("required".to_owned(), json!([WRAPPER]));
    if let Some(defs) = defs {
        root.insert("$defs".to_owned(), defs);
    }
    changes.push(ArgChange { path: ArgPath::default().key(WRAPPER), effect: ArgEffect::Whole });
    joiner.notes.mended("root_wrapped", &At::ROOT, "the arguments are passed as the property `value`");
    Ok(())
}

/// Takes out of the root what the provider does not read there.
pub(super) fn keep_only(root: &mut Map<String, Value>, rules: &SchemaRules, notes: &mut Notes) {
    let Some(only) = rules.root.only else { return };
    root.retain(|keyword, _| {
        let kept = only.contains(&keyword.as_str());
        if !kept {
            notes.lost("keyword_dropped", &At::ROOT, &format!("`{keyword}` is refused at the root"));
        }
        kept
    });
}
