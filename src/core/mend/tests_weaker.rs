//! A schema that is sent allows at least what the original allows, and a call in its form comes back as it was meant.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::*;
use crate::core::profile::Enums;

const KEYS: &[&str] = &["a", "b", "$top", "x[y]"];

fn key() -> impl Strategy<Value = String> {
    select(KEYS).prop_map(str::to_owned)
}

fn object(entries: Vec<(String, Value)>) -> Value {
    Value::Object(entries.into_iter().collect())
}

fn literal() -> impl Strategy<Value = Value> {
    select(vec![
        json!("a"),
        json!("aa"),
        json!(""),
        json!(1),
        json!(7.5),
        json!(true),
        json!([]),
        json!({"a": "a"}),
    ])
}

/// Valid schemas with little in them that contradicts itself, so that many values are allowed.
fn schema() -> impl Strategy<Value = Value> {
    let kinds = select(vec![
        json!("object"),
        json!("object"),
        json!("string"),
        json!("array"),
        json!("number"),
        json!(["string", "null"]),
        json!(["object", "array"]),
        json!("integer"),
        json!("boolean"),
    ]);
    let leaf = prop_oneof![
        4 => kinds.clone().prop_map(|kind| json!({ "type": kind })),
        1 => Just(json!({})),
        1 => prop::collection::vec(literal(), 1..4).prop_map(|values| json!({ "enum": values })),
        1 => literal().prop_map(|value| json!({ "const": value })),
        1 => select(vec![
            json!({"maxLength": 1}), json!({"type": "string", "format": "uri"}), json!({"pattern": "^(?=a)"}),
            json!({"minItems": 1}), json!({"maximum": 5}), json!({"$ref": "#/$defs/A"}), json!({"$ref": "#/definitions/B"}),
            json!({"$ref": "#"}), json!({"$ref": "#/$defs/A", "maxProperties": 2}), json!({"minLength": 2000}),
        ]),
    ];
    let tree = leaf.prop_recursive(4, 30, 4, move |inner| {
        let map = prop::collection::vec((key(), inner.clone()), 1..4).prop_map(object).boxed();
        let list = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::Array);
        let names = prop::collection::vec(key(), 1..3).prop_map(|mut names| {
            names.sort();
            names.dedup();
            json!(names)
        });
        let named = |keywords: &'static [&'static str], value: BoxedStrategy<Value>| {
            (select(keywords), value).prop_map(|(keyword, value)| (keyword.to_owned(), value)).boxed()
        };
        let member = prop_oneof![
            6 => named(&["properties"], map.clone()),
            3 => named(&["type"], kinds.clone().boxed()),
            4 => named(&["anyOf", "oneOf", "allOf", "prefixItems"], list.boxed()),
            3 => named(&["items", "additionalProperties", "not", "if", "then", "else"], inner.boxed()),
            2 => named(&["required"], names.boxed()),
            1 => named(&["additionalProperties", "items"], any::<bool>().prop_map(Value::from).boxed()),
            1 => named(&["dependentSchemas"], map),
        ];
        prop::collection::vec(member, 1..4).prop_map(object)
    });
    (tree.clone(), tree.clone(), tree).prop_map(|(root, a, b)| {
        let mut root = if let Value::Object(root) = root { root } else { Map::new() };
        // A root without a type means an object, also where something refers to it.
        root.entry("type").or_insert_with(|| json!("object"));
        root.insert("$defs".to_owned(), json!({ "A": a }));
        root.insert("definitions".to_owned(), json!({ "B": b }));
        Value::Object(root)
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![6 => literal(), 1 => Just(json!(null))];
    let tree = leaf.prop_recursive(3, 20, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((key(), inner), 0..4).prop_map(object),
        ]
    });
    prop_oneof![4 => prop::collection::vec((key(), tree.clone()), 0..4).prop_map(object), 1 => tree]
}

proptest! {
    /// Bar strict mode, bar Gemini, where an empty text cannot be listed, and bar joined alternatives: a property that
    /// one of them describes and another leaves open is described.
    #[test]
    fn what_was_allowed_stays_allowed(schema in schema(), candidates in prop::collection::vec(arguments(), 8)) {
        let original = jsonschema::draft202012::new(&schema).unwrap();
        let text = schema.to_string();
        for profile in Profile::ALL {
            let target = SchemaTarget { profile, ..SchemaTarget::default() };
            let done = mend(&text, &target);
            let joined = done.notes.iter().any(|note| note.code == "union_flattened");
            if joined || matches!(done.outcome, Outcome::LeftOut(_)) || profile.limits().schema.enums != Enums::Any {
                continue;
            }
            let mended = jsonschema::draft202012::new(&serde_json::from_str(&done.schema).unwrap()).unwrap();
            for arguments in candidates.iter().filter(|arguments| original.is_valid(arguments)) {
                let mut wire = arguments.clone();
                map(&mut wire, &done.arg_map);
                // Calls have objects as arguments, whatever the schema allows besides.
                if wire.is_object() {
                    prop_assert!(mended.is_valid(&wire), "{profile:?} {text} -> {}\n{arguments}", done.schema);
                }
                unmap(&mut wire, &done.arg_map);
                prop_assert_eq!(&wire, arguments);
            }
        }
    }
}

#[test]
fn a_definition_that_got_weaker_is_negated_nowhere() {
    let schema = json!({"type": "object", "additionalProperties": {"not": {"$ref": "#/definitions/B"}},
        "definitions": {"B": {"oneOf": [{"type": "array"}, {"type": "array"}]}}});
    let arguments = json!({"a": []});
    assert!(jsonschema::draft202012::new(&schema).unwrap().is_valid(&arguments));
    for profile in Profile::ALL {
        let text = schema.to_string();
        let done = mend(&text, &SchemaTarget { profile, ..SchemaTarget::default() });
        let mended = jsonschema::draft202012::new(&serde_json::from_str(&done.schema).unwrap()).unwrap();
        assert!(mended.is_valid(&arguments), "{profile:?} {}", done.schema);
    }
}
