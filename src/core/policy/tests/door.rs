//! What the door refuses, clamps and takes.

use serde_json::{Value, json};

use super::*;

#[test]
fn every_fault_is_named_with_its_place() {
    let document = json!({
        "enabled": 3, "min_catalog_size": "12", "core": "read_file", "deny": ["ok", 5, ""],
        "groups": [{"name": "a"}, {"name": "a"}, {"tools": []}, {"name": "b", "tool": []}],
        "toolsets": [{"name": "*"}], "aliases": {"x/y": [1]}, "warm_policy": "sometimes",
        "matcher": {"timeout_ms": 7.5}, "bridge_prefix": "9x", "colour": 1,
    });
    assert_eq!(
        faults(&document),
        [
            "/enabled wrong_type",
            "/min_catalog_size wrong_type",
            "/core wrong_type",
            "/deny/1 wrong_type",
            "/deny/2 invalid_value",
            "/groups/1/name duplicate_name",
            "/groups/2 missing_key",
            "/groups/3/tool unknown_key",
            "/toolsets/0/name invalid_value",
            "/aliases/x~1y/0 wrong_type",
            "/warm_policy invalid_value",
            "/matcher/timeout_ms wrong_type",
            "/matcher missing_key",
            "/bridge_prefix invalid_value",
            "/colour unknown_key",
        ]
    );
    assert_eq!(faults(&json!([])), [" wrong_type"]);
    assert_eq!(faults(&Value::Null), [" wrong_type"]);
}

#[test]
fn a_slip_of_a_key_names_the_key_that_was_meant() {
    for (slip, meant) in [("max_warm_tool", "max_warm_tools"), ("Listing-Max-Tokens", "listing_max_tokens")] {
        let errors = parse(&json!({ slip: 1 })).unwrap_err();
        assert!(errors[0].detail.contains(&format!("did you mean `{meant}`")), "{}", errors[0].detail);
    }
    let errors = parse(&json!({"zzzzzzzz": 1})).unwrap_err();
    assert!(errors[0].detail.contains("known keys are `enabled`"), "{}", errors[0].detail);
}

#[test]
fn numbers_out_of_range_are_clamped_and_told() {
    let parsed = parse(&json!({
        "max_warm_tools": 999, "threshold_pct": -5, "context_window": 1e300, "max_search_limit": 0,
    }));
    let parsed = parsed.unwrap();
    let stored = json!({
        "threshold_pct": 0, "context_window": 10_000_000, "max_search_limit": 1, "max_warm_tools": 64,
    });
    assert_eq!(Value::Object(parsed.layer.to_json()), stored);
    let told: Vec<_> =
        parsed.warnings.iter().map(|w| (w.code, w.pointer.as_deref().unwrap(), w.detail.as_str())).collect();
    assert!(told.contains(&("clamped", "/max_warm_tools", "999 is above 64; 64 is used")), "{told:?}");
    assert!(told.contains(&("clamped", "/threshold_pct", "-5 is below 0; 0 is used")), "{told:?}");
    assert!(told.iter().any(|(_, pointer, _)| *pointer == "/context_window"), "{told:?}");
    assert_eq!(told.len(), 4);
}

#[test]
fn whole_numbers_may_carry_a_point_and_shares_a_fraction() {
    let layer = layer(&json!({"max_warm_tools": 7.0, "threshold_pct": 2.5}));
    assert_eq!(layer.max_warm_tools, Some(7));
    assert_eq!(layer.threshold_pct, Some(2.5));
    assert_eq!(faults(&json!({"max_warm_tools": 7.5})), ["/max_warm_tools wrong_type"]);
    assert_eq!(faults(&json!({"threshold_pct": "5"})), ["/threshold_pct wrong_type"]);
}

#[test]
fn switches_take_words_and_booleans() {
    let layer = layer(&json!({"enabled": true, "listing": false}));
    assert_eq!((layer.enabled, layer.listing), (Some(Switch::On), Some(Switch::Off)));
    assert_eq!(Value::Object(layer.to_json()), json!({"enabled": "on", "listing": "off"}));
    assert_eq!(
        faults(&json!({"enabled": "ON", "warm_policy": true})),
        ["/enabled invalid_value", "/warm_policy wrong_type"]
    );
}

#[test]
fn a_null_inherits() {
    let document = json!({"core": null, "matcher": null, "groups": [{"name": "a", "description": null}]});
    assert_eq!(layer(&document), layer(&json!({"groups": [{"name": "a"}]})));
}

#[test]
fn what_is_not_built_is_refused_but_its_default_is_not() {
    let defaults = json!({
        "preload": {"enabled": false, "top_k": 7},
        "matcher": {
            "kind": "rerank", "endpoint": "https://rank.example", "dialect": "cohere", "fusion": "auto",
            "extra_body": {}, "extra_headers": {}, "auth_header": "Authorization", "auth_scheme": "Bearer",
            "omit_model": false,
        },
        "semantic": true, "profile": "generic", "exposure": "bridge", "management_tools": false,
        "require_review_on_change": false, "keep_missed_queries": false, "hot_tools": {"enabled": false},
        "usage_prior": {"enabled": false},
    });
    assert_eq!(Value::Object(layer(&defaults).to_json()), defaults);

    let unsupported = json!({"usage_prior": {"enabled": true}});
    let found = faults(&unsupported);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found.iter().all(|fault| fault.ends_with(" unsupported")), "{found:#?}");
    let unknown = json!({"exposure": "x", "matcher": {"endpoint": "http://a", "kind": "x", "dialect": "x"}});
    assert!(faults(&unknown).iter().all(|fault| fault.ends_with(" invalid_value")));
}

#[test]
fn hot_tools_join_only_where_both_switches_are_on() {
    for (given, joins) in [
        (json!({"enabled": true}), false),
        (json!({"auto": true}), false),
        (json!({"enabled": true, "auto": true, "top_k": 20, "window_days": 90}), true),
    ] {
        let layer = layer(&json!({ "hot_tools": given }));
        assert_eq!(Value::Object(layer.to_json()), json!({ "hot_tools": given }));
        assert_eq!(merge(&layer, &Layer::default()).hot_tools.join(), joins, "{given}");
    }
    let clamped = layer(&json!({"hot_tools": {"top_k": 21, "window_days": 0}})).hot_tools.unwrap();
    assert_eq!((clamped.top_k, clamped.window_days), (Some(20), Some(1)));
    assert_eq!(faults(&json!({"hot_tools": true})), ["/hot_tools wrong_type"]);
    assert_eq!(faults(&json!({"hot_tools": {"on": true}})), ["/hot_tools/on unknown_key"]);
}

#[test]
fn lists_and_texts_are_bounded() {
    assert_eq!(faults(&json!({"core": vec!["a"; 20_001]})), ["/core too_many"]);
    let groups: Vec<Value> = (0..2_001).map(|n| json!({"name": n.to_string()})).collect();
    assert_eq!(
        faults(&json!({"groups": groups, "toolsets": groups})),
        ["/groups too_many", "/toolsets too_many"]
    );
    assert_eq!(faults(&json!({"groups": [{"name": "n".repeat(129)}]})), ["/groups/0/name too_long"]);
    assert_eq!(faults(&json!({"aliases": {"a": vec!["b"; 51]}})), ["/aliases/a too_many"]);
    assert_eq!(faults(&json!({"aliases": {"a": "b".repeat(201)}})), ["/aliases/a too_long"]);
    assert_eq!(faults(&json!({"deny": ["x".repeat(513)]})), ["/deny/0 invalid_value"]);
}

#[test]
fn a_million_faults_make_a_short_answer() {
    let errors = parse(&json!({"deny": vec![1; 20_000]})).unwrap_err();
    assert_eq!(errors.len(), 101);
    assert_eq!(
        (errors[100].code, errors[100].detail.as_str()),
        ("more_faults", "19900 more faults are not listed")
    );
}

#[test]
fn groups_say_what_is_exact_and_what_is_a_prefix() {
    let layer = layer(
        &json!({"groups": [{"name": "g", "description": "", "tools": ["@a/b"], "prefixes": ["gh_*", "x_"]}]}),
    );
    let groups = layer.groups.unwrap();
    assert_eq!(
        (groups[0].prefixes.as_slice(), &groups[0].description),
        (["gh_".to_owned(), "x_".to_owned()].as_slice(), &None)
    );
    let wrong = json!({"groups": [{"name": "g", "tools": ["gh_*"], "prefixes": ["*"]}]});
    assert_eq!(faults(&wrong), ["/groups/0/tools/0 invalid_value", "/groups/0/prefixes/0 invalid_value"]);
}

#[test]
fn one_alias_may_stand_without_a_list() {
    let layer = layer(&json!({"aliases": {"b": "say", "a": ["发送", "mail"]}}));
    assert_eq!(Value::Object(layer.to_json()), json!({"aliases": {"a": ["发送", "mail"], "b": ["say"]}}));
}

#[test]
fn a_bridge_prefix_begins_a_name() {
    for good in ["", "tr_", "_", &format!("a{}", "b".repeat(31))] {
        assert_eq!(layer(&json!({"bridge_prefix": good})).bridge_prefix.as_deref(), Some(good));
    }
    for bad in ["9", "-a", "a b", "é", &"a".repeat(33)] {
        assert_eq!(faults(&json!({"bridge_prefix": bad})), ["/bridge_prefix invalid_value"]);
    }
}
