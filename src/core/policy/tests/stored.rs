//! Stored documents, perhaps of an older version or broken.

use serde_json::{Value, json};

use super::*;

#[test]
fn a_bad_field_falls_back_alone() {
    let (layer, warnings) = load(&json!({
        "max_warm_tools": [], "context_window": 64_000, "old_key": 1, "deny": ["a", 7, "b"],
        "groups": [{"name": "g", "tools": ["t", null]}, 5], "semantic": "no",
        "matcher": {"endpoint": "https://a.example", "timeout_ms": "soon", "top_n": 9},
    }));
    let policy = merge(&layer, &Layer::default());
    assert_eq!((policy.max_warm_tools, policy.context_window), (8, 64_000));
    assert_eq!(policy.deny, selectors(&["a", "b"]));
    assert_eq!(policy.groups[0].tools, ["t"]);
    let matcher = policy.matcher.unwrap();
    assert_eq!((matcher.timeout_ms, matcher.top_n), (15_000, 9));
    assert!(warnings.iter().all(|warning| warning.code == "stored_field_ignored"), "{warnings:?}");
    let places: Vec<_> = warnings.iter().filter_map(|warning| warning.pointer.as_deref()).collect();
    assert_eq!(
        places,
        [
            "/max_warm_tools",
            "/old_key",
            "/deny/1",
            "/groups/0/tools/1",
            "/groups/1",
            "/semantic",
            "/matcher/timeout_ms"
        ]
    );
}

#[test]
fn what_people_mean_is_understood() {
    let (layer, warnings) = load(&json!({
        "enabled": " Yes ", "listing": 0, "max_warm_tools": " 12 ", "threshold_pct": "7.5",
        "core": "read_file",
    }));
    assert_eq!(warnings, []);
    assert_eq!((layer.enabled, layer.listing), (Some(Switch::On), Some(Switch::Off)));
    assert_eq!((layer.max_warm_tools, layer.threshold_pct), (Some(12), Some(7.5)));
    assert_eq!(layer.core, Some(selectors(&["read_file"])));
}

#[test]
fn no_number_is_odd_enough_to_stop_it() {
    for odd in ["NaN", "inf", "-inf", "1e999", "12.5", ""] {
        let (layer, warnings) = load(&json!({"max_search_limit": odd, "core": ["a"]}));
        assert_eq!((layer.max_search_limit, layer.core), (None, Some(selectors(&["a"]))), "{odd}");
        assert_eq!(warnings.len(), 1, "{odd}");
    }
}

#[test]
fn an_unreadable_restriction_does_not_open() {
    for stored in [json!([5]), json!({"a": 1}), json!([""]), json!(7), json!([["a".repeat(1_000)]])] {
        let (layer, warnings) = load(&json!({"allow": stored, "default_toolsets": stored}));
        let policy = merge(&layer, &Layer::default());
        assert!(matches!(policy.allow.as_slice(), [list] if list.len() == 1), "{stored}");
        assert_eq!(policy.default_toolsets.len(), 1, "{stored}");
        assert_eq!(warnings.len(), 2, "{stored}");
        assert!(parse(&Value::Object(layer.to_json())).is_ok(), "{stored}");
    }
    let (layer, _) = load(&json!({"allow": [], "default_toolsets": null}));
    assert_eq!(merge(&layer, &Layer::default()).allow, Vec::<Vec<Selector>>::new());
}

#[test]
fn nothing_at_all_is_an_empty_layer() {
    for nothing in [json!(null), json!({})] {
        assert_eq!(load(&nothing), (Layer::default(), Vec::new()));
    }
    for garbage in [json!([]), json!("off"), json!(1), json!(true)] {
        let (layer, warnings) = load(&garbage);
        assert_eq!((layer, warnings.len()), (Layer::default(), 1));
    }
}
