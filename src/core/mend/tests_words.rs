//! The field reports about keywords and values, each as one case, and the kinds around them.

use serde_json::json;

use super::tests::{check, mended, one};

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
        (
            "62, for all",
            "openai",
            one(json!({"type": "string", "pattern": "(?<!a)(b"})),
            one(json!({"type": "string", "description": "pattern: (?<!a)(b"})),
        ),
        (
            "62, with an engine that looks around",
            "openai",
            one(json!({"type": "string", "pattern": "^(?<!a)(b)\\1$"})),
            one(json!({"type": "string", "pattern": "^(?<!a)(b)\\1$"})),
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
    let inside = json!({"type": "object", "properties": {"a": {"type": "string"}, "required": ["a"], "additionalProperties": false}});
    let (sent, _) = mended(&inside, "generic");
    assert_eq!(
        sent,
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false})
    );
    let (sent, _) =
        mended(&one(json!({"anyOf": [{"type": "number"}, {"not": {}}, {"type": "null"}]})), "gemini openapi");
    assert_eq!(sent["properties"]["p"], json!({"type": "number", "nullable": true}));
    let (sent, _) =
        mended(&json!({"properties": {"type": "object", "description": "What to set."}}), "generic");
    assert_eq!(sent["properties"], json!({"properties": {"type": "object", "description": "What to set."}}));
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
fn an_older_keyword_with_a_value_of_the_wrong_kind_is_gone_at_once() {
    for empty in [json!(null), json!([]), json!({})] {
        check(vec![
            (
                "root",
                "generic",
                json!({"type": "object", "properties": {}, "dependencies": empty}),
                json!({"type": "object", "properties": {}}),
            ),
            (
                "below",
                "anthropic",
                one(json!({"type": "object", "dependencies": empty})),
                one(json!({"type": "object"})),
            ),
        ]);
    }
}
