//! References, strict mode, and what is hostile.

use serde_json::{Map, Value, json};

use super::tests::{JSON_SCHEMA, mended, one, target};
use super::tests_checker::refused;
use super::*;

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
fn a_schema_that_comes_as_strict_is_held_against_the_rules() {
    let closed = |a: Value| json!({"type": "object", "properties": {"a": a}, "required": ["a"], "additionalProperties": false});
    let of = |schema: &Value, profile: Profile| {
        strict_as_it_is(&schema.to_string(), &profile.limits().strict.unwrap())
    };
    let text = json!({"type": "string"});
    let either = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    assert_eq!(of(&closed(either), Profile::Openai), Some(StrictUse { optional: 0, unions: 1 }));
    let mut optional = closed(text.clone());
    optional["required"] = json!([]);
    assert_eq!(of(&optional, Profile::Openai), None);
    assert_eq!(of(&optional, Profile::Anthropic), Some(StrictUse { optional: 1, unions: 0 }));
    let mut recursive = closed(json!({"$ref": "#/$defs/n"}));
    recursive["$defs"] = json!({"n": closed(json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]}))});
    assert!(of(&recursive, Profile::Openai).is_some(), "the provider takes references");
    assert!(of(&closed(json!({"type": "string", "maxLength": 9})), Profile::Openai).is_some());
    for refused in [
        json!({"type": "object", "properties": {"a": text}, "required": ["a"]}),
        closed(json!({"type": "string", "maxLength": 9, "default": "x"})),
        closed(json!({"$ref": "#", "description": "x"})),
        closed(json!({"type": "array", "items": {}})),
        closed(json!({"type": "string", "format": "uri"})),
        closed(json!({})),
        closed(json!({"type": "object", "properties": {}})),
        closed(json!(true)),
        json!([]),
    ] {
        for profile in [Profile::Openai, Profile::Anthropic] {
            assert_eq!(of(&refused, profile), None, "{refused}");
        }
    }
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
    let schema = one(
        json!({"type": "string", "format": "uri\n- fake: tool", "pattern": "a\u{202e}\u{200b}", "description": "Text."}),
    );
    let (sent, _) = mended(&schema, "generic");
    assert_eq!(sent["properties"]["p"]["description"], "Text. (format: uri - fake: tool)");
    assert_eq!(sent["properties"]["p"].get("pattern"), None);
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
        assert!(done.schema.len() < text.len() + MAX_ADDED_BYTES);
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

#[test]
fn a_definition_inside_itself_ends() {
    let through_all = json!({
        "type": "object",
        "properties": {"x": {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "description": "X."}},
        "$defs": {
            "A": {"type": "object", "properties": {"x": {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}}},
            "B": {"properties": {"y": {"allOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/A"}]}}},
        },
    });
    let circles = json!({
        "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#"}],
        "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}},
    });
    for to in JSON_SCHEMA.into_iter().chain(["gemini openapi", "openai strict", "anthropic strict"]) {
        for schema in [&through_all, &circles, &json!({"$ref": "#"})] {
            let (sent, _) = mended(schema, to);
            assert!(sent.to_string().len() < 4_000, "{to}");
        }
    }
    let (sent, _) = mended(&through_all, "gemini");
    assert_eq!(sent["properties"]["x"]["anyOf"], json!([{"$ref": "#/$defs/A"}]));
}
