//! The field reports about roots and argument keys, each as one case, and the kinds around them.

use serde_json::{Value, json};

use super::tests_checker::refused;
use super::*;

pub(super) fn target(profile: &str) -> SchemaTarget {
    let (name, rest) = profile.split_once(' ').unwrap_or((profile, ""));
    SchemaTarget {
        profile: Profile::parse(name).unwrap(),
        dialect: if rest == "openapi" { Dialect::OpenApi } else { Dialect::JsonSchema },
        strict: rest == "strict",
    }
}

/// The mended schema, checked against the target's rules.
pub(super) fn mended(schema: &Value, to: &str) -> (Value, Vec<(String, String)>) {
    let text = schema.to_string();
    let target = target(to);
    let done = mend(&text, &target);
    assert!(!matches!(done.outcome, Outcome::LeftOut(_)), "{to} {text}: {:?}", done.outcome);
    assert_eq!(done.outcome == Outcome::Kept, done.schema == text, "{text}");
    let faults = refused(&done.schema, &target, done.strict.is_some());
    assert!(faults.is_empty(), "{to} {text} -> {}: {faults:?}", done.schema);
    let again = mend(&done.schema, &target);
    assert_eq!(
        (again.outcome, &again.schema),
        (Outcome::Kept, &done.schema),
        "{to} {text} {:?}",
        again.notes
    );
    for lint in &done.notes {
        assert!(LINTS.iter().any(|(code, _)| *code == lint.code), "{}", lint.code);
    }
    let renamed = done.arg_map.iter().map(|change| {
        let original = match &change.effect {
            ArgEffect::Renamed(original) => original.clone(),
            ArgEffect::Whole => "(whole)".to_owned(),
            ArgEffect::NullIsAbsent => "(absent)".to_owned(),
        };
        (change.path.to_string(), original)
    });
    (serde_json::from_str(&done.schema).unwrap(), renamed.collect())
}

/// Cases of (report, target, schema, what is sent).
pub(super) fn check(cases: Vec<(&str, &str, Value, Value)>) {
    for (report, to, schema, expected) in cases {
        let (sent, _) = mended(&schema, to);
        assert_eq!(sent.to_string(), expected.to_string(), "{report} for {to}");
    }
}

/// An object with one property `p`.
pub(super) fn one(property: Value) -> Value {
    json!({"type": "object", "properties": {"p": property}})
}

pub(super) const JSON_SCHEMA: [&str; 14] = [
    "generic",
    "openai",
    "azure",
    "anthropic",
    "gemini",
    "vertex",
    "bedrock",
    "bedrock-nova",
    "deepseek",
    "groq",
    "mistral",
    "cohere",
    "ollama",
    "vllm",
];

#[test]
fn what_needs_nothing_keeps_its_bytes() {
    for text in [
        r#"{"type":"object","properties":{}}"#,
        "{ \"type\": \"object\",\n \"properties\": { \"z\": {\"type\": \"string\", \"description\": \"caf\\u00e9\"} }, \"required\": [\"z\"] }",
        r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","minimum":1.50}}}}"#,
    ] {
        for to in JSON_SCHEMA {
            let done = mend(text, &target(to));
            assert_eq!(done.outcome, Outcome::Kept, "{to} {text}");
            assert!(matches!(done.schema, Cow::Borrowed(same) if same == text));
            assert!(done.notes.is_empty() && done.arg_map.is_empty());
        }
    }
    let kept = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"u":{"type":"string","format":"uri","title":"U"},"k[]":{"oneOf":[{"type":"string"},{"type":"null"}]}}}"#;
    assert_eq!(mend(kept, &target("openai")).outcome, Outcome::Kept);
}

/// Reports 58 and 59, and the kind: nothing, null, a flag or no object stands for a schema.
#[test]
fn a_missing_schema_takes_no_arguments() {
    for text in [
        "",
        "  ",
        "{}",
        " { } ",
        "null",
        "true",
        "false",
        "[]",
        "7",
        "{\"type\":null}",
        "{\"type\":\"None\"}",
    ] {
        for to in JSON_SCHEMA.into_iter().filter(|to| !matches!(*to, "anthropic" | "bedrock")) {
            let done = mend(text, &target(to));
            assert_eq!(done.schema, r#"{"type":"object","properties":{}}"#, "{to} {text}");
            assert!(done.no_arguments);
        }
        assert_eq!(mend(text, &target("anthropic")).schema, r#"{"type":"object"}"#, "{text}");
    }
    let done = mend("{", &target("generic"));
    assert_eq!((done.notes[0].code, done.schema.as_ref()), ("unreadable", "{"));
    assert!(matches!(done.outcome, Outcome::LeftOut(_)));
    assert!(mend("{}", &target("gemini openapi")).no_arguments);
}

/// Reports 26, 27, 29, 31, 69, 78, 79 and 80.
#[test]
fn alternatives_at_the_root_become_one_object() {
    let pair = json!([
        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind"]},
    ]);
    let properties = json!({"kind": {"enum": ["a", "b"]}, "x": {"type": "string"}, "y": {"type": "integer"}});
    for to in ["generic", "openai", "anthropic", "bedrock", "deepseek", "gemini", "ollama"] {
        for (keyword, word) in [("oneOf", "exactly"), ("anyOf", "at least")] {
            let text = format!("give {word} one of: (kind=a, x) or (kind=b)");
            let (sent, _) = mended(&json!({keyword: pair}), to);
            let expected = json!({
                "type": "object", "description": text, "required": ["kind"], "properties": properties,
            });
            assert_eq!(sent, expected, "{to}");
        }
    }
    check(vec![
        (
            "80",
            "anthropic",
            json!({
                "type": "object",
                "properties": {"paths": {"type": "string"}, "scopes": {"type": "string"}},
                "anyOf": [{"required": ["paths"]}, {"required": ["scopes"]}],
            }),
            json!({
                "type": "object",
                "properties": {"paths": {"type": "string"}, "scopes": {"type": "string"}},
                "description": "give at least one of: (paths) or (scopes)",
            }),
        ),
        (
            "28, lifted to the root",
            "anthropic",
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}}],
            }),
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "if": {"required": ["a"]},
                "then": {"required": ["b"]},
            }),
        ),
        (
            "28, where conditions are not read",
            "gemini openapi",
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "allOf": [{"if": {"required": ["a"]}, "then": {"properties": {"b": {"type": "string"}}}}],
            }),
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "description": "if {\"required\":[\"a\"]} then {\"properties\":{\"b\":{\"type\":\"string\"}}}",
            }),
        ),
        (
            "79",
            "generic",
            json!({
                "type": "object",
                "allOf": [
                    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "string"}}, "required": ["b", "a"]},
                ],
            }),
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "required": ["a", "b"],
            }),
        ),
        (
            "a root that is a reference",
            "openai",
            json!({"$ref": "#/definitions/In", "definitions": {"In": one(json!({"type": "string"}))}}),
            json!({
                "$defs": {"In": one(json!({"type": "string"}))},
                "type": "object",
                "properties": {"p": {"type": "string"}},
            }),
        ),
        (
            "other keywords at the root",
            "openai",
            json!({"type": "object", "properties": {}, "not": {"required": ["a"]}, "enum": [{"a": 1}]}),
            json!({
                "type": "object",
                "properties": {},
                "description": "enum: [{\"a\":1}] (not: {\"required\":[\"a\"]})",
            }),
        ),
    ]);
    let shared = json!({"anyOf": [{"properties": {"v": {"type": "string"}}}, {"properties": {"v": {"type": "integer"}}}]});
    let (sent, _) = mended(&shared, "openai");
    assert_eq!(sent["properties"]["v"], json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
}

/// Report 80: arguments that are no object.
#[test]
fn what_is_no_object_is_wrapped_and_unwrapped() {
    for (schema, arguments) in [
        (json!({"type": "string"}), json!("x")),
        (json!({"type": "array", "items": {"type": "string"}}), json!(["a", "b"])),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), json!(5)),
        (json!({"enum": ["a", "b"]}), json!("a")),
    ] {
        for to in JSON_SCHEMA {
            let (sent, map) = mended(&schema, to);
            assert_eq!(sent["required"], json!(["value"]));
            assert_eq!(map, [("/value".to_owned(), "(whole)".to_owned())], "{to}");
            let done = schema.to_string();
            let done = mend(&done, &target(to));
            let mut wire = json!({ "value": arguments });
            unmap(&mut wire, &done.arg_map);
            assert_eq!(wire, arguments);
        }
    }
    let tree = json!({"type": "array", "items": {"$ref": "#"}});
    let (sent, _) = mended(&tree, "generic");
    assert_eq!(sent["properties"]["value"]["items"], json!({"$ref": "#/$defs/root"}));
    assert_eq!(sent["$defs"]["root"], json!({"type": "array", "items": {"$ref": "#/$defs/root"}}));
}

/// Reports 33 to 35, 37, 68 and 71.
#[test]
fn refused_keys_are_renamed_and_come_back() {
    let schema = json!({
        "type": "object",
        "properties": {
            "filter[id]": {"type": "string"},
            "$top": {"type": "integer"},
            "@microsoft.graph.x": {"type": "string"},
            "plain.key-1": {"type": "object", "properties": {"in[side]": {"type": "string"}}},
        },
        "required": ["$top", "plain.key-1"],
    });
    let arguments = json!({"filter[id]": "5", "$top": 3, "plain.key-1": {"in[side]": "x"}});
    let (sent, map) = mended(&schema, "anthropic");
    let names: Vec<&str> = sent["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["filter_id_665d001d", "_top_81bf98e4", "_microsoft.graph.x_5b8a651c", "plain.key-1"]);
    assert_eq!(sent["required"], json!(["_top_81bf98e4", "plain.key-1"]));
    assert_eq!(sent["properties"]["plain.key-1"], schema["properties"]["plain.key-1"]);
    assert_eq!(map[1], ("/_top_81bf98e4".to_owned(), "$top".to_owned()));
    assert!(
        ["openai", "azure", "deepseek", "ollama", "gemini"].iter().all(|to| mended(&schema, to).0 == schema)
    );
    let (sent, map) = mended(&schema, "gemini openapi");
    let names: Vec<&str> = sent["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(names[0] == "filter_id_665d001d" && names[2].starts_with("_microsoft_graph_x_"));
    assert!(map.iter().any(|(path, key)| path.starts_with("/plain_key_1_")
        && path.contains("/in_side_")
        && key == "in[side]"));
    for to in ["generic", "anthropic", "bedrock", "gemini openapi"] {
        let text = schema.to_string();
        let done = mend(&text, &target(to));
        let mut wire = arguments.clone();
        super::map(&mut wire, &done.arg_map);
        assert_ne!(wire, arguments);
        unmap(&mut wire, &done.arg_map);
        assert_eq!(wire.to_string(), arguments.to_string(), "{to}");
    }
}

#[test]
fn a_key_that_is_called_like_a_renamed_one_keeps_apart() {
    let schema = json!({"properties": {"$top": {"type": "integer"}, "_top_81bf98e4": {"type": "string"}}});
    let (sent, map) = mended(&schema, "generic");
    let properties = sent["properties"].as_object().unwrap();
    assert_eq!(properties["_top_81bf98e4"], json!({"type": "string"}));
    assert_eq!((properties.len(), map.len()), (2, 1));
    let tree = json!({
        "type": "object",
        "properties": {"$a": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
    });
    let (sent, map) = mended(&tree, "anthropic");
    assert_eq!(map.len(), 1);
    assert_eq!(sent["$defs"]["root"]["properties"]["$a"], json!({"type": "string"}));
}
