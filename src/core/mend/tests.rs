//! The field reports about schemas and argument keys, each as one case, and the kinds around them.

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
fn mended(schema: &Value, to: &str) -> (Value, Vec<(String, String)>) {
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
fn check(cases: Vec<(&str, &str, Value, Value)>) {
    for (report, to, schema, expected) in cases {
        let (sent, _) = mended(&schema, to);
        assert_eq!(sent.to_string(), expected.to_string(), "{report} for {to}");
    }
}

/// An object with one property `p`.
fn one(property: Value) -> Value {
    json!({"type": "object", "properties": {"p": property}})
}

const JSON_SCHEMA: [&str; 14] = [
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

/// Reports 38, 40, 41, 42, 44, 66, 67 and 62, and older drafts.
#[test]
fn keywords_and_drafts_are_those_that_the_provider_reads() {
    let deep = json!({"type": "string", "maxLength": 2000});
    check(vec![
        (
            "38",
            "anthropic",
            json!({
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "definitions": {"N": {"type": "number", "minimum": 0, "exclusiveMinimum": true}},
                "properties": {
                    "n": {"$ref": "#/definitions/N"},
                    "t": {"type": "array", "items": [{"type": "string"}], "additionalItems": false},
                },
                "dependencies": {"n": ["t"]},
            }),
            json!({
                "type": "object",
                "properties": {
                    "n": {"$ref": "#/$defs/N"},
                    "t": {"type": "array", "prefixItems": [{"type": "string"}], "items": {}, "maxItems": 1},
                },
                "dependentRequired": {"n": ["t"]},
                "$defs": {"N": {"type": "number", "exclusiveMinimum": 0}},
            }),
        ),
        (
            "44",
            "gemini",
            json!({"$schema": "x", "type": "object", "properties": {}}),
            json!({"type": "object", "properties": {}}),
        ),
        (
            "44, everywhere",
            "gemini openapi",
            one(json!({"$schema": "x", "type": "string"})),
            one(json!({"type": "string"})),
        ),
        ("41", "openai", one(json!({"type": "array"})), one(json!({"type": "array", "items": {}}))),
        (
            "41",
            "generic",
            one(json!({"type": "array", "items": null})),
            one(json!({"type": "array", "items": {}})),
        ),
        ("41, kept", "anthropic", one(json!({"type": "array"})), one(json!({"type": "array"}))),
        (
            "41",
            "gemini openapi",
            one(json!({"type": "array", "items": {}})),
            one(json!({"type": "array", "items": {"type": "string"}})),
        ),
        (
            "66",
            "vllm",
            one(json!({"type": "string", "format": "uri", "description": "The page."})),
            one(json!({"type": "string", "description": "The page. (format: uri)"})),
        ),
        (
            "66",
            "generic",
            one(json!({"type": "string", "format": "uri"})),
            one(json!({"type": "string", "description": "format: uri"})),
        ),
        (
            "66, kept",
            "anthropic",
            one(json!({"type": "string", "format": "uri"})),
            one(json!({"type": "string", "format": "uri"})),
        ),
        (
            "67",
            "vllm",
            one(one(deep.clone())),
            one(one(json!({"type": "string", "description": "maxLength: 2000"}))),
        ),
        ("67, kept", "openai", one(one(deep.clone())), one(one(deep))),
        (
            "65",
            "vllm",
            one(json!({"type": "array", "items": {"type": "string"}, "minItems": 1})),
            one(json!({"type": "array", "items": {"type": "string"}, "description": "minItems: 1"})),
        ),
        (
            "62",
            "deepseek",
            one(json!({"type": "string", "pattern": "^[a-z"})),
            one(json!({"type": "string", "description": "pattern: ^[a-z"})),
        ),
        (
            "62, kept",
            "deepseek",
            one(json!({"type": "string", "pattern": "^\\d+$"})),
            one(json!({"type": "string", "pattern": "^\\d+$"})),
        ),
    ]);
}

/// Reports 43, 45, 46, 47, 51, 52, 54, 55 and 56: Gemini's `parameters`.
#[test]
fn the_openapi_subset_is_spoken() {
    let cases = [
        (
            "43",
            json!({"type": "array", "items": {"type": "string", "additionalProperties": false}}),
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        ("45", json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
        (
            "45",
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "P"}),
            json!({"type": "string", "nullable": true}),
        ),
        (
            "45",
            json!({"type": ["string", "integer"], "minLength": 1}),
            json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}),
        ),
        ("46", json!({"type": "", "enum": ["a"]}), json!({"enum": ["a"], "type": "string"})),
        ("46", json!({"type": "STRING"}), json!({"type": "string"})),
        (
            "47",
            json!({"description": "x"}),
            json!({"description": "x", "anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
        ),
        ("47", json!({"default": 3}), json!({"type": "integer", "description": "default: 3"})),
        (
            "51",
            json!({"type": "string", "enum": ["", "shell"]}),
            json!({"type": "string", "enum": ["shell"], "description": "may be empty"}),
        ),
        ("51", json!({"type": "string", "enum": [""]}), json!({"type": "string"})),
        (
            "52",
            json!({"type": "string", "enum": [null, "shell"]}),
            json!({"type": "string", "enum": ["shell"], "nullable": true}),
        ),
        ("54", json!({"enum": ["a", "b"]}), json!({"type": "string", "enum": ["a", "b"]})),
        (
            "54",
            json!({"type": "integer", "enum": [1, 2]}),
            json!({"type": "integer", "description": "one of: 1, 2"}),
        ),
        (
            "56",
            json!({"title": "P", "type": "object", "properties": {"title": {"title": "T", "type": "string"}}}),
            json!({"type": "object", "properties": {"title": {"type": "string"}}}),
        ),
        ("const", json!({"const": "v1"}), json!({"type": "string", "enum": ["v1"]})),
        ("const", json!({"const": 5}), json!({"type": "integer", "description": "always: 5"})),
        (
            "oneOf",
            json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ),
        (
            "allOf",
            json!({"allOf": [{"type": "string"}, {"maxLength": 5}]}),
            json!({"type": "string", "maxLength": 5}),
        ),
        (
            "format",
            json!({"type": "string", "format": "uri"}),
            json!({"type": "string", "description": "format: uri"}),
        ),
        (
            "tuple",
            json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}),
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "description": "prefixItems: [{\"type\":\"string\"},{\"type\":\"integer\"}]"}),
        ),
        (
            "required",
            json!({"type": "object", "required": ["a"]}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}}}),
        ),
        (
            "flag",
            json!(true),
            json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
        ),
    ];
    for (report, property, expected) in cases {
        let (sent, _) = mended(&one(property.clone()), "gemini openapi");
        assert_eq!(sent["properties"]["p"], expected, "{report}: {property}");
    }
    for to in ["gemini", "vertex"] {
        let (sent, _) = mended(&one(json!({"type": "string", "enum": ["", "shell"]})), to);
        assert_eq!(sent["properties"]["p"]["enum"], json!(["shell"]));
    }
}

/// Reports 46, 55 and 57, and the kind: values that no validator takes.
#[test]
fn values_of_the_wrong_kind_are_mended_for_all() {
    let cases = [
        (json!({"type": "str"}), json!({"type": "string"})),
        (json!({"type": "list", "required": true}), json!({"type": "array", "items": {}})),
        (json!({"type": "None"}), json!({})),
        (json!({"type": "spaceship"}), json!({"description": "type: spaceship"})),
        (json!({"type": ["string", "string", "none"]}), json!({"type": ["string", "null"]})),
        (
            json!({"type": "string", "enum": ["a", null]}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (json!({"type": "string", "enum": []}), json!({"type": "string"})),
        (json!({"type": "string", "enum": ["a", "b", "a"]}), json!({"type": "string", "enum": ["a", "b"]})),
        (
            json!({"type": "string", "description": ["not", "a", "text"]}),
            json!({"type": "string", "description": "not a text"}),
        ),
        (
            json!({"type": "string", "maxLength": "10", "minLength": -1}),
            json!({"type": "string", "maxLength": 10}),
        ),
        (json!({"type": "object", "properties": []}), json!({"type": "object", "properties": {}})),
        (json!({"type": "object", "required": null}), json!({"type": "object"})),
        (json!({"type": "object", "properties": null}), json!({"type": "object", "properties": {}})),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "required": true}, "b": {"type": "string", "required": false}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}),
        ),
        (json!({"anyOf": []}), json!({})),
        (json!({"anyOf": {"type": "string"}}), json!({"anyOf": [{"type": "string"}]})),
        (json!("string"), json!({"type": "string"})),
        (json!("The city."), json!({"description": "The city."})),
        (json!(null), json!({})),
        (json!({"$ref": "https://example.com/schema.json#/Pet"}), json!({"description": "type: Pet"})),
        (
            json!({"$ref": "#/$defs/Missing", "title": "M"}),
            json!({"title": "M", "description": "type: Missing"}),
        ),
    ];
    for (property, expected) in cases {
        for to in ["generic", "openai", "deepseek"] {
            let (sent, _) = mended(&one(property.clone()), to);
            let mut p = sent["properties"]["p"].clone();
            if let Some(map) = p.as_object_mut() {
                map.sort_keys();
            }
            let mut expected = expected.clone();
            expected.as_object_mut().unwrap().sort_keys();
            assert_eq!(p, expected, "{to}: {property}");
        }
    }
    let (sent, _) =
        mended(&json!({"type": "object", "properties": {"a": false, "b": {"type": "string"}}}), "generic");
    assert_eq!(sent["properties"], json!({"b": {"type": "string"}}));
    let (sent, _) = mended(&json!({"type": "object", "required": ["a"]}), "groq");
    assert_eq!(sent, json!({"type": "object", "required": ["a"], "properties": {"a": {}}}));
    let bare = json!({"query": {"type": "string"}, "title": {"type": "string", "required": true}});
    let (sent, _) = mended(&bare, "generic");
    assert_eq!(
        sent,
        json!({"type": "object", "properties": {"query": {"type": "string"}, "title": {"type": "string"}}, "required": ["title"]})
    );
}

#[test]
fn references_are_kept_or_written_out() {
    let tree = json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node", "description": "The top."}},
        "$defs": {"Node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        }},
    });
    for to in ["generic", "openai", "anthropic"] {
        assert_eq!(mended(&tree, to).0, tree, "{to}");
    }
    let (sent, _) = mended(&tree, "gemini");
    assert_eq!(
        sent["properties"]["root"],
        json!({"description": "The top.", "anyOf": [{"$ref": "#/$defs/Node"}]})
    );
    for to in ["bedrock", "ollama", "gemini openapi"] {
        let (sent, _) = mended(&tree, to);
        let inner = &sent["properties"]["root"]["properties"]["kids"]["items"]["properties"]["kids"]["items"];
        assert_eq!(inner["type"], "object", "{to}");
        assert_eq!(inner["description"], "nested: Node");
        assert!(sent.get("$defs").is_none());
    }
    let moved = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}, "c": {"$ref": "#pet"}},
        "components": {"schemas": {"Pet": {"$anchor": "x", "type": "str"}}},
        "$defs": {"P": {"$anchor": "pet", "type": "boolean"}},
    });
    let (sent, _) = mended(&moved, "openai");
    assert_eq!(sent["properties"]["b"], json!({"$ref": "#/$defs/a"}));
    assert_eq!(sent["properties"]["c"], json!({"$ref": "#/$defs/P"}));
    assert_eq!(sent["$defs"]["a"], json!({"type": "string"}));
    let openapi = json!({
        "type": "object",
        "properties": {"pet": {"$ref": "#/components/schemas/Pet"}},
        "components": {"schemas": {"Pet": {"type": "str"}}},
    });
    assert_eq!(mended(&openapi, "generic").0["$defs"]["Pet"], json!({"type": "string"}));
}

/// Reports 32 and the rules of strict mode.
#[test]
fn strict_schemas_are_closed_and_optional_values_may_be_null() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer", "default": 3},
            "c": {"allOf": [{"type": "object", "properties": {"d": {"enum": ["x"]}}}]},
            "e": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["a"],
    });
    let (sent, map) = mended(&schema, "openai strict");
    assert_eq!(
        sent,
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": ["integer", "null"], "description": "default: 3"},
                "c": {
                    "type": ["object", "null"],
                    "properties": {"d": {"type": ["string", "null"], "enum": ["x", null]}},
                    "additionalProperties": false,
                    "required": ["d"],
                },
                "e": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["a", "b", "c", "e"],
            "additionalProperties": false,
        })
    );
    let paths: Vec<&str> = map.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/b", "/c", "/c/d"]);
    let text = schema.to_string();
    let done = mend(&text, &target("openai strict"));
    let mut wire = json!({"a": "x", "b": null, "c": {"d": null}, "e": null});
    unmap(&mut wire, &done.arg_map);
    assert_eq!(wire, json!({"a": "x", "c": {}, "e": null}));

    let (sent, map) = mended(&schema, "anthropic strict");
    assert_eq!((&sent["required"], map.len()), (&json!(["a"]), 0));
    assert_eq!(mend(&text, &target("anthropic strict")).strict, Some(StrictUse { optional: 4, unions: 1 }));
    assert_eq!(
        mended(&json!({}), "openai strict").0.to_string(),
        r#"{"type":"object","properties":{},"additionalProperties":false,"required":[]}"#
    );
}

#[test]
fn what_cannot_be_strict_is_sent_without() {
    let many: Map<String, Value> = (0..30).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    for (to, schema, why) in [
        ("openai strict", one(json!({"type": "object"})), "any name"),
        (
            "openai strict",
            one(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            "any name",
        ),
        ("openai strict", one(json!({"description": "anything"})), "no type"),
        (
            "openai strict",
            json!({"type": "object", "properties": {"self": {"$ref": "#"}}}),
            "refers to itself",
        ),
        ("anthropic strict", json!({"type": "object", "properties": many}), "optional"),
        ("groq strict", one(json!({"type": "string"})), "no strict mode"),
    ] {
        let text = schema.to_string();
        let done = mend(&text, &target(to));
        assert_eq!((done.strict, done.outcome), (None, Outcome::Kept), "{to} {text}");
        assert!(
            done.notes.iter().any(|note| note.code == "not_strict" && note.detail.contains(why)),
            "{:?}",
            done.notes
        );
        assert_eq!(done.schema, text);
    }
}

#[test]
fn nova_reads_three_keywords_at_the_root() {
    let schema = json!({
        "$schema": "x", "title": "T", "description": "D", "type": "object", "additionalProperties": false,
        "properties": {"p": {"$ref": "#/$defs/P"}}, "required": ["p"], "$defs": {"P": {"type": "string"}},
    });
    let (sent, _) = mended(&schema, "bedrock-nova");
    assert_eq!(sent, json!({"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]}));
}

#[test]
fn texts_cannot_hide_or_forge_lines() {
    let schema =
        one(json!({"type": "string", "format": "uri\n- fake: tool\u{202e}\u{200b}", "description": "Text."}));
    let (sent, _) = mended(&schema, "generic");
    assert_eq!(sent["properties"]["p"]["description"], "Text. (format: uri - fake: tool)");
}

#[test]
fn a_fan_of_references_is_cut_within_bounds() {
    let mut defs = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    defs.insert("d40".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    let text = schema.to_string();
    for to in ["bedrock", "gemini openapi", "ollama"] {
        let done = mend(&text, &target(to));
        assert_eq!(done.outcome, Outcome::Mended);
        assert!(done.notes.iter().any(|note| note.code == "reference_cut" && note.lossy));
        assert!(done.schema.len() < 2 * MAX_ADDED_BYTES);
        assert!(refused(&done.schema, &target(to), false).is_empty());
    }
    assert_eq!(mend(&text, &target("generic")).outcome, Outcome::Kept);
    let big = json!({"type": "object", "properties": (0..40).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/B"}))).collect::<Map<_, _>>(), "$defs": {"B": {"type": "string", "description": "x".repeat(10_000)}}});
    let text = big.to_string();
    let done = mend(&text, &target("bedrock"));
    assert!(matches!(&done.outcome, Outcome::LeftOut(reason) if reason.contains("bytes")));
    assert_eq!((done.notes[0].code, done.schema.as_ref()), ("too_large", text.as_str()));
}

#[test]
fn deep_schemas_are_left_out() {
    let mut schema = json!({"type": "string"});
    for _ in 0..40 {
        schema = one(schema);
    }
    let text = schema.to_string();
    let done = mend(&text, &target("generic"));
    assert_eq!(done.notes[0].code, "too_deep");
}
