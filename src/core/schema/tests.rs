use proptest::prelude::*;
use serde_json::{Value, json};

use super::{MAX_MESSAGE_CHARS, Validator, Verdict};

fn check(schema: &Value, arguments: &Value) -> Verdict {
    Validator::compile(&schema.to_string()).check(arguments)
}

/// Path and constraint of the violation.
fn broken(schema: &Value, arguments: &Value) -> (String, String) {
    match check(schema, arguments) {
        Verdict::Invalid(violation) => (violation.path, violation.constraint),
        other => panic!("{arguments} against {schema}: {other:?}"),
    }
}

fn message(schema: &Value, arguments: &Value) -> String {
    match check(schema, arguments) {
        Verdict::Invalid(violation) => violation.message,
        other => panic!("{arguments} against {schema}: {other:?}"),
    }
}

fn pair(path: &str, constraint: &str) -> (String, String) {
    (path.to_owned(), constraint.to_owned())
}

#[test]
fn missing_arguments_come_first_and_in_the_order_of_the_schema() {
    let schema = json!({"properties": {"a": {"type": "integer"}}, "required": ["b", 5, "a", "b", "c"]});
    let missing = |keys: &[&str]| Verdict::Missing(keys.iter().map(|key| (*key).to_owned()).collect());
    assert_eq!(check(&schema, &json!({"a": "x"})), missing(&["b", "c"]));
    assert_eq!(check(&schema, &json!({})), missing(&["b", "a", "c"]));
    // A null is there; whether it is allowed is another question.
    let schema = json!({"properties": {"a": {"type": "integer"}}, "required": ["a"]});
    assert_eq!(broken(&schema, &json!({"a": null})), pair("arguments.a", "type"));
}

#[test]
fn required_keys_hold_when_the_rest_is_unusable() {
    let schema = json!({"required": ["a"], "properties": {"a": {"$ref": "https://example.com/a.json"}}});
    let validator = Validator::compile(&schema.to_string());
    assert_eq!(validator.check(&json!({})), Verdict::Missing(vec!["a".to_owned()]));
    assert!(
        matches!(validator.check(&json!({"a": 1})), Verdict::Unchecked(reason) if reason.contains("nothing is fetched"))
    );
    assert!(validator.unusable().is_some());
    for junk in ["", "{", "3", "[]", "\"x\"", "null", "{\"$ref\": 5}", "{\"$ref\": \"#/nowhere\"}"] {
        assert!(matches!(Validator::compile(junk).check(&json!({"a": 1})), Verdict::Unchecked(_)), "{junk}");
    }
}

#[test]
fn violations_name_the_place_and_the_keyword() {
    let schema = json!({
        "type": "object",
        "properties": {
            "mode": {"enum": ["fast", "slow"]},
            "options": {
                "type": "object",
                "properties": {"count": {"type": "integer", "minimum": 1}, "deep": {"required": ["x"]}},
                "required": ["count"],
                "additionalProperties": false
            },
            "list": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "odd key": {"type": "string"},
            "0": {"type": "string"}
        }
    });
    let cases = [
        (json!({"mode": "quick"}), "arguments.mode", "enum"),
        (json!({"options": {"count": "1"}}), "arguments.options.count", "type"),
        (json!({"options": {"count": 0}}), "arguments.options.count", "minimum"),
        (json!({"options": {}}), "arguments.options", "required"),
        (json!({"options": {"count": 1, "deep": {}}}), "arguments.options.deep", "required"),
        (json!({"options": {"count": 1, "more": 2}}), "arguments.options", "additionalProperties"),
        (json!({"list": ["a", 2]}), "arguments.list[1]", "type"),
        (json!({"list": ["a", "b", "c", "d"]}), "arguments.list", "maxItems"),
        (json!({"odd key": 1}), "arguments[\"odd key\"]", "type"),
        (json!({"0": 1}), "arguments.0", "type"),
        (json!([1]), "arguments", "type"),
    ];
    for (arguments, path, constraint) in cases {
        assert_eq!(broken(&schema, &arguments), pair(path, constraint), "{arguments}");
    }
    assert_eq!(check(&schema, &json!({"mode": "fast", "options": {"count": 2}, "x": 1})), Verdict::Valid);
    let list = json!({"items": {"type": "string"}});
    assert_eq!(broken(&list, &json!([1])), pair("arguments[0]", "type"));
}

#[test]
fn a_root_that_no_object_can_meet_stops_no_call() {
    for root in [json!("string"), json!("array"), json!(null), json!("dict"), json!(["string", "null"])] {
        let schema = json!({"type": root, "required": ["a"]});
        assert_eq!(check(&schema, &json!({})), Verdict::Missing(vec!["a".to_owned()]), "{root}");
        assert!(matches!(check(&schema, &json!({"a": 1})), Verdict::Unchecked(_)), "{root}");
    }
    assert_eq!(check(&json!({"type": ["object", "null"]}), &json!({})), Verdict::Valid);
}

#[test]
fn the_most_telling_error_is_chosen() {
    let either = json!({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}});
    assert_eq!(broken(&either, &json!({"a": 4})), pair("arguments.a", "type"));
    assert_eq!(message(&either, &json!({"a": 4})), "4 is not of type string or null");

    let tagged = json!({"properties": {"shape": {"oneOf": [
        {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
        {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}
    ]}}});
    let square = json!({"shape": {"kind": "square", "side": "2"}});
    assert_eq!(broken(&tagged, &square), pair("arguments.shape.side", "type"));

    let one_of_two = json!({"anyOf": [{"required": ["path"]}, {"required": ["url"]}]});
    assert_eq!(broken(&one_of_two, &json!({})), pair("arguments", "anyOf"));
    let text = message(&one_of_two, &json!({}));
    assert!(text.contains("path") && text.contains("url"), "{text}");

    let both = json!({"properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    assert_eq!(broken(&both, &json!({"zzz": 1, "n": "x"})), pair("arguments.n", "type"));
}

#[test]
fn messages_are_short_and_on_one_line() {
    let schema =
        json!({"properties": {"a": {"type": "integer"}, "e": {"enum": ["x\n- forged", "\u{202e}y"]}}});
    let long = "long ".repeat(1_000);
    assert_eq!(message(&schema, &json!({ "a": long })), "this text is not of type integer");
    for arguments in [json!({"e": "a\u{0}b\nc\u{2028}\u{e0041}"}), json!({ "e": long })] {
        let text = message(&schema, &arguments);
        assert!(
            !text.chars().any(|c| c.is_control() || c == '\u{202e}' || c == '\u{2028}' || c == '\u{e0041}')
        );
    }
    let options: Vec<String> = (0..1_000).map(|index| format!("option-{index}")).collect();
    let text = message(&json!({"properties": {"e": {"enum": options}}}), &json!({"e": 1}));
    assert_eq!(text.chars().count(), MAX_MESSAGE_CHARS);
    assert!(text.ends_with('…') && text.contains("option-20"));
}

#[test]
fn nullable_allows_null_and_nothing_else() {
    let schema = json!({
        "properties": {
            "plain": {"type": "string", "nullable": true},
            "choice": {"type": "string", "enum": ["a"], "nullable": true},
            "fixed": {"const": 1, "nullable": true},
            "shared": {"$ref": "#/$defs/s", "nullable": true},
            "either": {"oneOf": [{"type": "integer"}, {"type": "boolean"}], "nullable": true},
            "strict": {"type": "string", "nullable": false},
            // A property that happens to be called so.
            "nullable": {"type": "boolean"}
        },
        "$defs": {"s": {"type": "string"}}
    });
    for key in ["plain", "choice", "fixed", "shared", "either"] {
        assert_eq!(check(&schema, &json!({ key: null })), Verdict::Valid, "{key}");
        assert!(matches!(check(&schema, &json!({ key: {} })), Verdict::Invalid(_)), "{key}");
    }
    assert_eq!(
        check(&schema, &json!({"plain": "x", "choice": "a", "fixed": 1, "shared": "x", "either": 1})),
        Verdict::Valid
    );
    assert_eq!(broken(&schema, &json!({"strict": null})), pair("arguments.strict", "type"));
    assert_eq!(broken(&schema, &json!({"nullable": null})), pair("arguments.nullable", "type"));
}

#[test]
fn literals_are_data() {
    let literal = json!({"type": "string", "nullable": true, "$ref": "https://example.com", "pattern": "("});
    let schema = json!({
        "properties": {
            "e": {"enum": [literal, 1]},
            "c": {"const": literal},
            "d": {"type": "integer", "default": literal, "example": literal, "examples": [literal]}
        }
    });
    let validator = Validator::compile(&schema.to_string());
    assert_eq!(validator.notes(), &[] as &[String]);
    assert_eq!(validator.check(&json!({"e": literal, "c": literal, "d": 1})), Verdict::Valid);
    assert_eq!(broken(&schema, &json!({"c": {"type": "string"}})), pair("arguments.c", "const"));
}

#[test]
fn an_unusable_pattern_does_not_disable_the_rest() {
    let schema = json!({
        "properties": {
            "a": {"type": "string", "pattern": "(?<=x)y(\\1)"},
            "b": {"type": "string", "pattern": "^[a-z]+$"},
            "c": {"patternProperties": {"(": {"type": "integer"}, "^n_": {"type": "integer"}}, "additionalProperties": false}
        }
    });
    let validator = Validator::compile(&schema.to_string());
    assert_eq!(validator.notes().len(), 1);
    assert_eq!(
        validator.check(&json!({"a": "anything", "b": "ok", "c": {"(": 1, "n_a": 2}})),
        Verdict::Valid
    );
    assert_eq!(broken(&schema, &json!({"a": 1})), pair("arguments.a", "type"));
    assert_eq!(broken(&schema, &json!({"b": "NO"})), pair("arguments.b", "pattern"));
    assert_eq!(broken(&schema, &json!({"c": {"n_a": "x"}})), pair("arguments.c.n_a", "type"));
    // Without `if`, what `then` had evaluated would count as unevaluated.
    let conditional = json!({
        "if": {"properties": {"k": {"pattern": "(?<=x)y(\\1)"}}}, "then": {"properties": {"k": true, "x": true}},
        "unevaluatedProperties": false
    });
    assert_eq!(check(&conditional, &json!({"k": "a", "x": 1})), Verdict::Valid);
    // Without its pattern, `not` would refuse everything.
    let negated =
        json!({"properties": {"a": {"not": {"pattern": "(?<=x)y(\\1)"}}, "n": {"type": "integer"}}});
    assert_eq!(check(&negated, &json!({"a": "x"})), Verdict::Valid);
    assert_eq!(broken(&negated, &json!({"n": "x"})), pair("arguments.n", "type"));
}

#[test]
fn one_broken_keyword_does_not_disable_the_rest() {
    let schema = json!({
        "properties": {
            "a": {"type": "any"},
            "b": {"type": "integer", "required": true},
            "c": {"type": "integer", "minimum": "3"},
            "d": "a description instead of a schema",
            "e": {"properties": [], "additionalProperties": false}
        }
    });
    let validator = Validator::compile(&schema.to_string());
    assert_eq!(validator.unusable(), None);
    assert_eq!(validator.notes().len(), 5, "{:?}", validator.notes());
    assert_eq!(validator.check(&json!({"a": [], "b": 1, "c": 1, "d": 4, "e": {"x": 1}})), Verdict::Valid);
    assert_eq!(broken(&schema, &json!({"b": "x"})), pair("arguments.b", "type"));
    assert_eq!(broken(&schema, &json!({"c": "x"})), pair("arguments.c", "type"));
}

#[test]
fn references_stay_inside_the_document() {
    let schema = json!({
        "$id": "https://example.com/tool.json",
        "properties": {
            "a": {"$ref": "#/$defs/A B"},
            "b": {"$ref": "#/$defs/A%20B"},
            "c": {"$ref": "https://example.com/tool.json#/$defs/A%20B"},
            "d": {"$ref": "#anchored"},
            "e": {"$ref": "#/components/schemas/E"},
            "f": {"$ref": "Node"},
            "g": {"$ref": "#/$defs/x~1y"}
        },
        "$defs": {
            "A B": {"type": "integer"},
            "an": {"$anchor": "anchored", "type": "integer"},
            "node": {"$id": "Node", "type": "object", "properties": {"next": {"$ref": "Node"}, "v": {"$ref": "#/$defs/v"}}, "$defs": {"v": {"type": "integer"}}},
            "x/y": {"type": "integer"}
        },
        "components": {"schemas": {"E": {"type": "integer", "nullable": true}}}
    });
    let validator = Validator::compile(&schema.to_string());
    assert_eq!(validator.unusable(), None);
    for key in ["a", "b", "c", "d", "e", "g"] {
        assert_eq!(validator.check(&json!({ key: 1 })), Verdict::Valid, "{key}");
        let Verdict::Invalid(violation) = validator.check(&json!({ key: "x" })) else { panic!("{key}") };
        assert_eq!((violation.path, violation.constraint), pair(&format!("arguments.{key}"), "type"));
    }
    assert_eq!(validator.check(&json!({"e": null})), Verdict::Valid);
    assert_eq!(broken(&schema, &json!({"f": {"next": {"v": "x"}}})), pair("arguments.f.next.v", "type"));
    for outside in ["other.json", "file:///etc/passwd", "http://json-schema.org/draft-07/schema#", "#unknown"]
    {
        let schema = json!({"properties": {"a": {"$ref": outside}}});
        assert!(matches!(check(&schema, &json!({"a": 1})), Verdict::Unchecked(_)), "{outside}");
    }
}

#[test]
fn drafts_and_formats() {
    let tuple = json!({"properties": {"a": {"items": [{"type": "integer"}], "additionalItems": false}}});
    assert_eq!(broken(&tuple, &json!({"a": ["x"]})), pair("arguments.a[0]", "type"));
    assert!(matches!(check(&tuple, &json!({"a": [1, 2]})), Verdict::Invalid(_)));
    for draft in
        ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema", "urn:own"]
    {
        let schema = json!({
            "$schema": draft,
            "properties": {"a": {"type": "integer"}, "d": {"type": "string", "format": "date", "contentEncoding": "base64"}}
        });
        assert_eq!(broken(&schema, &json!({"a": "x"})), pair("arguments.a", "type"), "{draft}");
        assert_eq!(check(&schema, &json!({"d": "no date"})), Verdict::Valid, "{draft}");
    }
    let exclusive = json!({"properties": {"a": {"minimum": 3, "exclusiveMinimum": true}}});
    assert_eq!(broken(&exclusive, &json!({"a": 3})), pair("arguments.a", "exclusiveMinimum"));
}

#[test]
fn validators_are_shared_between_threads() {
    fn shared<T: Send + Sync + std::fmt::Debug + 'static>() {}
    shared::<Validator>();
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-c]|.{0,3}", inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// JSON that looks like a schema, with wrong values here and there.
fn schema_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any_json(),
        prop::sample::select(vec![
            "string", "object", "array", "integer", "any", "(", "a{3}", "^[a-c]$", "#"
        ])
        .prop_map(Value::from),
        prop::sample::select(vec![
            json!({"$ref": "#"}),
            json!({"$ref": "#/properties/a"}),
            json!({"$ref": "#/$defs/b"}),
            json!({"type": "string", "nullable": true}),
            json!(["a", "b"]),
            json!(true),
            json!({"$anchor": "q"}),
        ]),
    ];
    let keywords = vec![
        "type",
        "properties",
        "required",
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "enum",
        "const",
        "pattern",
        "patternProperties",
        "additionalProperties",
        "$defs",
        "$ref",
        "$id",
        "nullable",
        "a",
        "b",
        "minimum",
        "uniqueItems",
        "propertyNames",
        "unevaluatedProperties",
        "contains",
        "dependencies",
        "prefixItems",
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            3 => prop::collection::vec((prop::sample::select(keywords.clone()), inner.clone()), 0..6).prop_map(
                |entries| Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            ),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn never_panics(schema in schema_like(), arguments in prop::collection::vec(any_json(), 1..4)) {
        let validator = Validator::compile(&schema.to_string());
        for arguments in &arguments {
            if let Verdict::Invalid(violation) = validator.check(arguments) {
                prop_assert!(violation.message.chars().count() <= MAX_MESSAGE_CHARS);
                prop_assert!(violation.path.starts_with("arguments"));
            }
        }
    }

    /// Where nothing had to be repaired or translated, the verdict is the library's.
    #[test]
    fn agrees_with_the_library(schema in schema_like(), arguments in any_json()) {
        let text = schema.to_string();
        // An enum without values is taken out.
        let translated = ["nullable", "$id", "$anchor", "items", "exclusive", "\"enum\":[]"];
        if translated.iter().any(|word| text.contains(word)) {
            return Ok(());
        }
        let library = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .should_validate_formats(false)
            .offline()
            .build(&schema);
        let validator = Validator::compile(&text);
        if validator.unusable().is_some() || !validator.notes().is_empty() {
            return Ok(());
        }
        let valid = validator.check(&arguments) == Verdict::Valid;
        prop_assert_eq!(library.map(|library| library.is_valid(&arguments)).ok(), Some(valid));
    }

    /// What is taken out of a schema never makes it refuse what it allowed: a broken keyword at the side changes
    /// no valid argument into an invalid one.
    #[test]
    fn repairs_only_weaken(schema in schema_like(), arguments in any_json()) {
        let plain = json!({"properties": {"a": schema}});
        let broken = json!({"properties": {"a": schema, "zz": {"minimum": "x"}}});
        let arguments = json!({"a": arguments});
        if check(&plain, &arguments) == Verdict::Valid {
            prop_assert!(!matches!(check(&broken, &arguments), Verdict::Invalid(_)));
        }
    }
}
