//! Two layers and the defaults in one, and how it is shown.

use serde_json::{Value, json};

use super::*;

#[test]
fn without_layers_the_defaults_of_the_contract_hold() {
    let policy = Policy::default();
    assert_eq!((policy.enabled, policy.min_catalog_size, policy.activation_pct), (Switch::Auto, 12, 0.0));
    assert_eq!(
        (policy.threshold_pct, policy.listing_max_tokens, policy.context_window),
        (5.0, 4_000, 128_000)
    );
    assert_eq!(
        (policy.search_default_limit, policy.max_search_limit, policy.max_answer_tokens),
        (5, 20, 2_000)
    );
    assert_eq!((policy.max_warm_tools, policy.warm_policy), (8, WarmPolicy::Immediate));
    assert_eq!(policy.preload, Preload { enabled: false, top_k: 5 });
    let values: Map<_, _> = effective(&Layer::default(), &Layer::default());
    assert!(values.values().all(|entry| entry["origin"] == "default"));
    assert_eq!(values["matcher"]["value"], Value::Null);
    let cold = json!({"enabled": false, "auto": false, "top_k": 5, "window_days": 14});
    assert_eq!(values["hot_tools"]["value"], cold);
    assert!(!policy.hot_tools.join() && !policy.keep_missed_queries);
}

#[test]
fn the_project_overrides_the_user_key_by_key() {
    let user = layer(&json!({"max_warm_tools": 3, "context_window": 5_000, "default_toolsets": ["a"]}));
    let project = layer(&json!({"max_warm_tools": 4, "default_toolsets": []}));
    let policy = merge(&user, &project);
    assert_eq!((policy.max_warm_tools, policy.context_window), (4, 5_000));
    assert!(policy.default_toolsets.is_empty());
    let view = effective(&user, &project);
    assert_eq!(view["max_warm_tools"], json!({"value": 4, "origin": "project"}));
    assert_eq!(view["context_window"], json!({"value": 5_000, "origin": "user"}));
}

#[test]
fn core_and_deny_are_joined_and_allow_must_hold_twice() {
    let user = layer(&json!({"core": ["a", "b"], "deny": ["x*"], "allow": ["a", "b"]}));
    let project = layer(&json!({"core": ["b", "c"], "deny": [], "allow": ["@g"]}));
    let policy = merge(&user, &project);
    assert_eq!((policy.core, policy.deny), (selectors(&["a", "b", "c"]), selectors(&["x*"])));
    assert_eq!(policy.allow, [selectors(&["a", "b"]), selectors(&["@g"])]);
    let view = effective(&user, &project);
    let parts = json!([{"origin": "user", "value": ["a", "b"]}, {"origin": "project", "value": ["b", "c"]}]);
    assert_eq!(view["core"], json!({"value": ["a", "b", "c"], "origin": "merged", "parts": parts}));
    assert_eq!(view["deny"], json!({"value": ["x*"], "origin": "user"}));
    assert_eq!(view["allow"]["value"], json!({"all_of": [["a", "b"], ["@g"]]}));
    let open = layer(&json!({"allow": []}));
    assert_eq!(merge(&user, &open).allow, [selectors(&["a", "b"])]);
    assert_eq!(effective(&user, &open)["allow"], json!({"value": ["a", "b"], "origin": "user"}));
}

#[test]
fn groups_toolsets_and_aliases_merge_by_name() {
    let user = layer(&json!({
        "groups": [{"name": "b", "tools": ["u"]}, {"name": "a", "tools": ["u"]}],
        "toolsets": [{"name": "s", "tools": ["u", "*"]}], "aliases": {"t": ["one"], "u": ["two"]},
    }));
    let project = layer(&json!({
        "groups": [{"name": "b", "tools": ["p"]}], "toolsets": [{"name": "r", "includes": ["s", "nowhere"]}],
        "aliases": {"t": ["three"]},
    }));
    let policy = merge(&user, &project);
    let names =
        |groups: &[Group]| groups.iter().map(|g| format!("{} {}", g.name, g.tools[0])).collect::<Vec<_>>();
    assert_eq!(names(&policy.groups), ["a u", "b p"]);
    assert_eq!(policy.toolsets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>(), ["r", "s"]);
    assert_eq!(policy.aliases["t"], ["three"]);
    assert_eq!(policy.aliases["u"], ["two"]);
    let view = effective(&user, &project);
    assert_eq!(
        (&view["groups"]["origin"], &view["aliases"]["parts"][1]["value"]),
        (&json!("merged"), &json!({"t": ["three"]}))
    );
}

#[test]
fn the_order_of_groups_in_a_document_means_nothing() {
    let forth = layer(&json!({"groups": [{"name": "a"}, {"name": "b"}]}));
    let back = layer(&json!({"groups": [{"name": "b"}, {"name": "a"}]}));
    assert_eq!(merge(&forth, &Layer::default()), merge(&back, &Layer::default()));
}

#[test]
fn the_default_limit_is_never_above_the_maximum_in_force() {
    let parsed = parse(&json!({"search_default_limit": 30})).unwrap();
    assert_eq!(parsed.warnings[0].pointer.as_deref(), Some("/search_default_limit"));
    let view = effective(&parsed.layer, &Layer::default());
    assert_eq!(view["search_default_limit"], json!({"value": 20, "origin": "user", "clamped_from": 30}));
    let raised = layer(&json!({"max_search_limit": 40}));
    assert_eq!(merge(&parsed.layer, &raised).search_default_limit, 30);
    assert_eq!(
        effective(&parsed.layer, &raised)["search_default_limit"],
        json!({"value": 30, "origin": "user"})
    );
}

#[test]
fn the_view_of_a_matcher_shows_what_is_in_force() {
    let user = layer(&json!({"matcher": {"endpoint": "https://a.example", "top_n": 3}}));
    let view = effective(&user, &Layer::default());
    assert_eq!(view["matcher"]["origin"], "user");
    assert_eq!(
        (&view["matcher"]["value"]["top_n"], &view["matcher"]["value"]["fusion"]),
        (&json!(3), &json!("auto"))
    );
}

#[test]
fn a_diff_names_what_changes() {
    let before = layer(&json!({"core": ["a"], "max_warm_tools": 3, "listing": "on"}));
    let after = layer(&json!({"core": ["a"], "max_warm_tools": 4, "deny": ["b"]}));
    let change = json!({"added": ["deny"], "removed": ["listing"], "changed": [
        {"key": "max_warm_tools", "from": 3, "to": 4},
    ]});
    assert_eq!(serde_json::to_value(diff(&before, &after)).unwrap(), change);
    assert!(diff(&before, &before).is_empty());
}

#[test]
fn every_key_is_documented() {
    let documents = documentation();
    let top: Vec<_> =
        documents.iter().filter(|doc| !doc.key.contains('.')).map(|doc| doc.key.as_str()).collect();
    assert_eq!(top, Layer::KEYS);
    let warm = documents.iter().find(|doc| doc.key == "max_warm_tools").unwrap();
    assert_eq!((&warm.default, warm.range.as_str()), (&json!(8), "0..64"));
    assert!(documents.iter().any(|doc| doc.key == "matcher.api_key"));
    assert!(documents.iter().all(|doc| !doc.range.is_empty() && !doc.meaning.is_empty()));
}
