//! JSON Merge Patch (RFC 7396), and what a config needs beside it.

use serde_json::{Map, Value};

/// Deepest level at which a patch is still merged; below it a value is replaced whole. No config is that
/// deep, and a hostile patch must not use up the stack.
const MAX_DEPTH: usize = 64;

/// The target after the patch: null takes a key away, objects merge, everything else replaces (RFC 7396,
/// section 2).
pub fn merge_patch(target: &Value, patch: &Value) -> Value {
    let mut merged = target.clone();
    merge_into(&mut merged, patch, 0);
    merged
}

fn merge_into(target: &mut Value, patch: &Value, depth: usize) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if depth >= MAX_DEPTH {
        *target = patch.clone();
        return;
    }
    let mut entries = match target.take() {
        Value::Object(entries) => entries,
        _ => Map::new(),
    };
    // One pass for all removals: taking keys out of the middle one by one would cost a pass each.
    entries.retain(|key, _| !changes.get(key).is_some_and(Value::is_null));
    for (key, change) in changes.iter().filter(|(_, change)| !change.is_null()) {
        merge_into(entries.entry(key.as_str()).or_insert(Value::Null), change, depth + 1);
    }
    *target = Value::Object(entries);
}

/// [`merge_patch`] for a config document. The stored document never holds `matcher.api_key`, so a patch
/// that takes it away would say nothing after the merge: the null is kept for [`parse`](super::parse) to
/// see.
pub fn apply_patch(stored: &Value, patch: &Value) -> Value {
    let mut merged = merge_patch(stored, patch);
    let clears = patch.pointer("/matcher/api_key").is_some_and(Value::is_null);
    if clears && let Some(Value::Object(matcher)) = merged.get_mut("matcher") {
        matcher.insert("api_key".to_owned(), Value::Null);
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::core::policy::tests::any_json;

    /// RFC 7396, appendix A, line by line.
    #[test]
    fn the_examples_of_the_rfc_hold() {
        let examples = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (target, patch, expected) in examples {
            assert_eq!(merge_patch(&target, &patch), expected, "{target} with {patch}");
        }
    }

    #[test]
    fn a_patch_as_deep_as_json_gets_is_merged() {
        let deep = |leaf: Value| (0..120).fold(leaf, |inner, _| json!({ "a": inner }));
        assert_eq!(merge_patch(&deep(json!(1)), &deep(json!(2))), deep(json!(2)));
    }

    #[test]
    fn clearing_the_key_by_patch_is_not_lost() {
        let stored = json!({"matcher": {"endpoint": "https://a.example/v1"}});
        let cleared = apply_patch(&stored, &json!({"matcher": {"api_key": null}}));
        assert_eq!(cleared, json!({"matcher": {"endpoint": "https://a.example/v1", "api_key": null}}));
        assert_eq!(apply_patch(&stored, &json!({"matcher": null})), json!({}));
        assert_eq!(
            apply_patch(&stored, &json!({"core": ["a"]})),
            json!({"matcher": stored["matcher"], "core": ["a"]})
        );
    }

    proptest! {
        #[test]
        fn a_patch_twice_is_a_patch_once(target in any_json(), patch in any_json()) {
            let once = merge_patch(&target, &patch);
            prop_assert_eq!(merge_patch(&once, &patch), once);
        }

        #[test]
        fn an_empty_patch_changes_no_object(target in any_json()) {
            prop_assume!(target.is_object());
            prop_assert_eq!(merge_patch(&target, &json!({})), target);
        }
    }
}
