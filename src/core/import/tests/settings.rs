//! Settings: `dsh-tool-search.json`, its static part, and Hermes' section.

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;
use crate::core::policy;

/// As the issue has it.
const SAMPLE: &str = r#"{
  "version": 1,
  "groups": [
    { "name": "git", "tools": ["git_status", "git_diff"], "prefixes": [] },
    { "name": "mcp-github", "tools": [], "prefixes": ["mcp_github_"] }
  ],
  "matcher": { "endpoint": "https://dashscope.aliyuncs.com/compatible-mode/v1/rerank", "apiKey": "sk-...", "model": "qwen3-reranker", "topN": 20 },
  "preload": { "enabled": false, "topK": 5 },
  "core": ["read_file", "write_file"]
}"#;

fn config(texts: &[&str]) -> (Value, Vec<&'static str>) {
    let imported = good(texts);
    let document = Value::Object(imported.config);
    policy::parse(&document).unwrap_or_else(|faults| panic!("{document}: {faults:?}"));
    (document, imported.warnings.iter().map(|warning| warning.code).collect())
}

#[test]
fn the_sample_becomes_a_config() {
    let imported = good(&[SAMPLE]);
    assert_eq!((imported.kind, imported.warnings.len()), (Kind::Dsh, 0), "{:?}", imported.warnings);
    assert_eq!(
        Value::Object(imported.config.clone()),
        json!({
            "core": ["read_file", "write_file"],
            "groups": [
                {"name": "git", "tools": ["git_status", "git_diff"]},
                {"name": "mcp-github", "prefixes": ["mcp_github_"]},
            ],
            "preload": {"enabled": false, "top_k": 5},
            "matcher": {
                "endpoint": "https://dashscope.aliyuncs.com/compatible-mode/v1/rerank",
                "model": "qwen3-reranker",
                "top_n": 20,
            },
        })
    );
    assert!(!format!("{imported:?}").contains("sk-..."));
    let key = imported.api_key.unwrap();
    assert_eq!((key.key.expose_secret(), &*key.pointer), ("sk-...", "/texts/0/matcher/apiKey"));
}

#[test]
fn the_static_part_in_yaml_is_joined_with_it() {
    let yaml = "# beside the file\nenabled: on\nthresholdPct: 8\nlistingMaxTokens: 3000\ncontextWindow: 200000\n\
                searchDefaultLimit: 6\nmaxSearchLimit: 25\nminCatalogSize: 20\nconfigScope: project\n\
                core: [ask_user, read_file]\nmatcherTimeoutMs: 2500\nmaxWarmTools: 12\n";
    let imported = good(&[yaml, SAMPLE]);
    assert_eq!(imported.kind, Kind::Dsh);
    let config = Value::Object(imported.config.clone());
    let expected = json!({
        "enabled": "on", "threshold_pct": 8, "listing_max_tokens": 3000, "context_window": 200_000,
        "search_default_limit": 6, "max_search_limit": 25, "min_catalog_size": 20, "max_warm_tools": 12,
        "core": ["ask_user", "read_file", "write_file"],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(config[key], *value, "{key}");
    }
    assert_eq!((&config["matcher"]["timeout_ms"], &config["matcher"]["top_n"]), (&json!(2500), &json!(20)));
    assert_eq!(told(&imported), [("no_counterpart", "/texts/0/configScope")]);
    assert!(imported.warnings[0].detail.contains("user or to a project"));
    // The other way round it is the same config but for the order of core.
    assert_eq!(good(&[SAMPLE, yaml]).config["groups"], config["groups"]);
}

#[test]
fn the_later_document_holds_and_says_so() {
    let imported = good(&[
        "thresholdPct: 8\ngroups: [{name: g, tools: [a]}]\n",
        r#"{"threshold_pct": 9, "groups": [{"name": "h"}, {"name": "g", "tools": ["b"]}], "core": []}"#,
    ]);
    assert_eq!(imported.config["threshold_pct"], json!(9));
    assert_eq!(imported.config["groups"], json!([{"name": "g", "tools": ["b"]}, {"name": "h"}]));
    assert_eq!(
        told(&imported),
        [("import_overridden", "/texts/1/threshold_pct"), ("import_overridden", "/texts/1/groups/1")]
    );
    assert!(imported.warnings[0].detail.contains("/texts/0/thresholdPct"));
}

#[test]
fn what_cannot_be_used_is_told_at_its_place_and_the_rest_stays() {
    let imported = good(&[
        r#"{"version": 2, "core": ["a", 7, "", "a"], "thresholdPct": 300, "contextWindow": "200000",
        "enabled": "perhaps", "colour": "red", "maxWarmTools": 7.9,
        "groups": [{"name": "g", "tools": "one", "prefixes": ["x_*", "*"]}, {"tools": ["b"]}, 5, {"name": "g", "colour": 1}],
        "matcher": {"endpoint": "ftp://a.example", "apiKey": "SECRET-KEY", "model": ""}, "preload": {"enabled": "yes", "topK": 500}}"#,
    ]);
    assert_eq!(
        Value::Object(imported.config.clone()),
        json!({"threshold_pct": 100, "context_window": 200_000, "core": ["a"], "groups": [{"name": "g"}],
            "max_warm_tools": 7, "preload": {"enabled": true, "top_k": 64}})
    );
    let mut places = told(&imported);
    places.sort_unstable();
    assert_eq!(
        places,
        [
            ("clamped", "/texts/0/preload/topK"),
            ("clamped", "/texts/0/thresholdPct"),
            ("import_adapted", "/texts/0/version"),
            ("import_overridden", "/texts/0/groups/3"),
            ("unknown_import_key", "/texts/0/colour"),
            ("unknown_import_key", "/texts/0/groups/3/colour"),
            ("unusable_import_value", "/texts/0/core/1"),
            ("unusable_import_value", "/texts/0/enabled"),
            ("unusable_import_value", "/texts/0/groups/0/prefixes/1"),
            ("unusable_import_value", "/texts/0/groups/1"),
            ("unusable_import_value", "/texts/0/groups/2"),
            ("unusable_import_value", "/texts/0/matcher/apiKey"),
            ("unusable_import_value", "/texts/0/matcher/endpoint"),
        ]
    );
    assert!(imported.api_key.is_none() && !format!("{imported:?}").contains("SECRET-KEY"));
}

#[test]
fn forms_that_were_not_filled_in_say_nothing() {
    let (document, codes) = config(&[
        r#"{"version":1,"groups":[],"matcher":{"endpoint":"","apiKey":"","model":"","topN":null},"core":[]}"#,
    ]);
    assert_eq!((document, codes), (json!({"core": []}), vec![]));
    let (document, codes) = config(&[
        r#"{"matcher":{"enabled":false,"endpoint":"https://a.example","apiKey":"k"},"core":["a"]}"#,
    ]);
    assert_eq!((document, codes), (json!({"core": ["a"]}), vec!["no_counterpart"]));
    let (document, codes) = config(&["matcherTimeoutMs: 3000\ncore: [a]\n"]);
    assert_eq!((document, codes), (json!({"core": ["a"]}), vec!["unusable_import_value"]));
}

#[test]
fn a_key_that_stands_elsewhere_is_asked_for() {
    let imported = good(&[r#"{"matcher":{"endpoint":"https://a.example/rerank","apiKey":"${env:KEY}"}}"#]);
    assert!(imported.api_key.is_none());
    assert_eq!(told(&imported), [("placeholder_kept", "/texts/0/matcher/apiKey")]);
}

#[test]
fn shares_and_per_cent_are_told_apart() {
    assert_eq!(config(&["threshold_share: 0.05\ncore: []"]).0["threshold_pct"], json!(5));
    let (document, codes) = config(&["thresholdPct: 0.05\ncore: []"]);
    assert_eq!((&document["threshold_pct"], codes), (&json!(0.05), vec!["import_adapted"]));
}

#[test]
fn hermes_is_read_in_every_form() {
    let section = "enabled: on\nthreshold_pct: '7.5'\nsearch_default_limit: 7.9\nmax_search_limit: 99\nlisting: 'off'\nlisting_max_tokens: 100\n";
    let indented = |text: &str, by: usize| -> String {
        text.lines().map(|line| format!("{}{line}\n", " ".repeat(by))).collect()
    };
    let expected = json!({"enabled": "on", "threshold_pct": 7.5, "listing": "off", "listing_max_tokens": 200,
        "search_default_limit": 7, "max_search_limit": 50});
    for text in [
        section.to_owned(),
        format!("tool_search:\n{}", indented(section, 2)),
        format!("tools:\n  tool_search:\n{}", indented(section, 4)),
    ] {
        let imported = good(&[&text]);
        assert_eq!(
            (imported.kind, Value::Object(imported.config)),
            (Kind::Hermes, expected.clone()),
            "{text}"
        );
        assert_eq!(
            imported.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>(),
            ["clamped", "clamped"]
        );
    }
    for (text, enabled) in [("tools: {tool_search: true}", "auto"), ("tools: {tool_search: false}", "off")] {
        assert_eq!(config(&[text]), (json!({ "enabled": enabled }), vec![]), "{text}");
    }
    assert_eq!(
        config(&["tools: {tool_search: 'off'}"]),
        (json!({"enabled": "auto"}), vec!["import_adapted"; 2])
    );
    assert_eq!(config(&["tools: {tool_search: }"]), (json!({}), vec![]));
    let only = import_as(&["false"], Some(Kind::Hermes), None).unwrap();
    assert_eq!(Value::Object(only.config), json!({"enabled": "off"}));
}

#[test]
fn what_hermes_means_otherwise_is_translated() {
    let imported = good(&[
        "model: x\nagent: {}\ntools:\n  tool_search:\n    listing: on\n    defer: [cronjob]\n    eager: [clarify, mcp-git]\n    tpyo: 1\nmcp_servers:\n  git: {command: uvx, args: [mcp-git]}\n",
    ]);
    assert_eq!(
        Value::Object(imported.config.clone()),
        json!({"listing": "auto", "core": ["clarify", "@git"]})
    );
    assert_eq!(imported.servers.len(), 1);
    assert_eq!(
        told(&imported),
        [
            ("import_adapted", "/texts/0/tools/tool_search/listing"),
            ("no_counterpart", "/texts/0/tools/tool_search/defer"),
            ("unknown_import_key", "/texts/0/tools/tool_search/tpyo"),
            ("unknown_import_key", "/texts/0"),
        ]
    );
    assert!(imported.warnings[3].detail.contains("model, agent"));
}

#[test]
fn more_than_a_config_takes_is_left_out_with_a_warning() {
    let groups: Vec<Value> = (0..2_001).map(|at| json!({"name": format!("g{at}")})).collect();
    let text = json!({"groups": groups, "core": ["a"]}).to_string();
    assert_eq!(config(&[&text]), (json!({"core": ["a"]}), vec!["unusable_import_value"]));
}

#[test]
fn a_section_is_found_below_its_program_and_settings_are_read_strictly() {
    assert_eq!(config(&["toolSearch:\n  core: [a]\n"]).0, json!({"core": ["a"]}));
    assert_eq!(fault(&[r#"{"core": ["a"], "core": ["b"]}"#]).0, "duplicate_key");
    assert_eq!(fault(&[r#"{"matcher": [], "core": ["\ud800"]}"#]).0, "invalid_text");
    let deep = format!("{{\"core\": {}{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(fault(&[&deep]).0, "too_deep");
}
