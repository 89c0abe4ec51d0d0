//! Mending of schemas as messy as they come, for every target.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::tests_checker::refused;
use super::*;

fn targets() -> Vec<SchemaTarget> {
    let mut targets = Vec::new();
    for profile in Profile::ALL {
        for strict in [false, true] {
            targets.push(SchemaTarget { profile, dialect: Dialect::JsonSchema, strict });
        }
    }
    for profile in [Profile::Gemini, Profile::Generic] {
        targets.push(SchemaTarget { profile, dialect: Dialect::OpenApi, strict: profile == Profile::Gemini });
    }
    targets
}

const KEYS: &[&str] =
    &["a", "b", "title", "type", "$top", "filter[id]", "x.y", "1st", "ключ", "properties", "", "*", "a/b~c"];

const REFERENCES: &[&str] = &[
    "#",
    "#/$defs/A",
    "#/$defs/B",
    "#/definitions/C",
    "#/properties/a",
    "#/anyOf/0",
    "#/$defs/A/properties/b",
    "https://example.com/x.json",
    "#/nowhere",
    "#anchor",
    "#/%24defs/A",
    "other.json#/a",
];

fn key() -> impl Strategy<Value = String> {
    select(KEYS).prop_map(str::to_owned)
}

/// Values that stand where something else belongs.
fn odd() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!([]),
        json!({}),
        json!(""),
        json!("x\n\u{202e}y"),
        json!(-1),
        json!(2.5),
        json!(4000),
        json!("10"),
        json!([null]),
        json!(["a", "a", 1]),
        json!({"a": null}),
        json!(1e300),
    ])
}

fn kind() -> impl Strategy<Value = Value> {
    select(vec![
        json!("string"),
        json!("object"),
        json!("array"),
        json!("integer"),
        json!("number"),
        json!("boolean"),
        json!("null"),
        json!("STRING"),
        json!("dict"),
        json!("any"),
        json!("None"),
        json!(""),
        json!("strange"),
        json!(["string", "null"]),
        json!(["object", "array", "null"]),
        json!(["integer", "string"]),
        json!([]),
        json!(["null"]),
        json!("string|null"),
        json!(null),
        json!({"type": "string"}),
    ])
}

fn literal() -> impl Strategy<Value = Value> {
    select(vec![
        json!("a"),
        json!(""),
        json!(null),
        json!(1),
        json!(2.5),
        json!(true),
        json!({"k": 1}),
        json!(["v"]),
        json!("b"),
    ])
}

/// One member of a schema.
fn member(inner: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    let map = prop::collection::vec((key(), inner.clone()), 0..4)
        .prop_map(|entries| Value::Object(entries.into_iter().collect()))
        .boxed();
    let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array);
    let names = prop::collection::vec(key(), 0..4).prop_map(|names| json!(names)).boxed();
    let values = prop::collection::vec(literal(), 0..4).prop_map(Value::Array);
    let bound =
        select(vec![json!(0), json!(5), json!(2000), json!(1e19), json!(true), json!("7"), json!(-3)]);
    let named = |keywords: &'static [&'static str], value: BoxedStrategy<Value>| {
        (select(keywords), value).prop_map(|(keyword, value)| (keyword.to_owned(), value)).boxed()
    };
    prop_oneof![
        4 => named(&["type"], kind().boxed()),
        4 => named(&["properties"], map.clone().boxed()),
        1 => named(&["patternProperties", "dependentSchemas", "dependencies"], map.boxed()),
        3 => named(&["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"], inner.boxed()),
        3 => named(&["anyOf", "oneOf", "allOf", "prefixItems", "items"], list.boxed()),
        2 => named(&["required"], names.clone().boxed()),
        1 => key().prop_flat_map(move |key| names.clone().prop_map(move |names| ("dependentRequired".to_owned(), json!({ &key: names })))),
        2 => named(&["enum"], values.boxed()),
        1 => named(&["const", "default", "example", "examples"], literal().boxed()),
        1 => named(
            &["minLength", "maxLength", "minItems", "maxItems", "minimum", "exclusiveMinimum", "maximum", "multipleOf"],
            bound.boxed(),
        ),
        1 => named(&["format"], select(vec![json!("uri"), json!("date-time"), json!("enum"), json!("int32")]).boxed()),
        1 => named(&["pattern"], select(vec![json!("^a+$"), json!("["), json!("(?=x)y"), json!("(a{1000}){1000}")]).boxed()),
        2 => named(&["description", "title"], select(vec![json!("Words."), json!(""), json!(" \n "), json!(["a", "b"])]).boxed()),
        1 => named(&["nullable", "uniqueItems", "deprecated"], any::<bool>().prop_map(Value::from).boxed()),
        2 => named(&["$ref"], select(REFERENCES).prop_map(Value::from).boxed()),
        1 => named(&["$dynamicRef", "$anchor", "$schema", "$id", "visible"], select(vec![json!("anchor"), json!("#anchor"), json!("x")]).boxed()),
        1 => (
            select(vec![
                "type", "properties", "required", "items", "anyOf", "enum", "description", "format", "pattern", "$ref",
                "minLength", "maximum", "additionalProperties", "$defs", "dependentRequired", "allOf", "nullable", "dependencies",
                "exclusiveMinimum", "$id", "const", "not", "dependentSchemas", "prefixItems", "if",
            ]),
            odd(),
        )
            .prop_map(|(keyword, value)| (keyword.to_owned(), value)),
    ]
    .boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => kind().prop_map(|kind| json!({ "type": kind })),
        2 => select(REFERENCES).prop_map(|reference| json!({ "$ref": reference })),
        1 => odd(),
    ];
    let inner = leaf.prop_recursive(4, 40, 4, |inner| {
        prop::collection::vec(member(inner.boxed()), 0..5)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    });
    let defs = (inner.clone(), inner.clone(), inner.clone(), any::<bool>());
    (prop::collection::vec(member(inner.boxed()), 0..6), defs).prop_map(|(members, (a, b, c, with_defs))| {
        let mut root: Map<String, Value> = members.into_iter().collect();
        if with_defs {
            root.insert("$defs".to_owned(), json!({"A": a, "B": b}));
            root.insert("definitions".to_owned(), json!({ "C": c }));
        }
        Value::Object(root)
    })
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![odd(), key().prop_map(Value::from), any::<f64>().prop_map(|number| json!(number))];
    leaf.prop_recursive(5, 60, 5, |inner| {
        let words = prop_oneof![
            key(),
            select(vec!["type", "properties", "items", "anyOf", "allOf", "$ref", "$defs", "enum"])
                .prop_map(str::to_owned)
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((words, inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Arguments out of the same keys, without nulls: strict mode reads these as absent.
fn arguments() -> impl Strategy<Value = Value> {
    let leaf = select(vec![json!(1), json!("x"), json!(true), json!([])]);
    let tree = leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    });
    prop::collection::vec((key(), tree), 0..5)
        .prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

fn check(schema: &Value, arguments: &Value) -> Result<(), TestCaseError> {
    let text = schema.to_string();
    for target in targets() {
        let done = mend(&text, &target);
        for lint in &done.notes {
            prop_assert!(LINTS.iter().any(|(code, _)| *code == lint.code));
        }
        prop_assert!(done.strict.is_none() || target.strict);
        if let Outcome::LeftOut(reason) = &done.outcome {
            prop_assert!(!reason.is_empty());
            prop_assert_eq!(&done.schema, &text);
            continue;
        }
        let faults = refused(&done.schema, &target, done.strict.is_some());
        prop_assert!(faults.is_empty(), "{:?} {} -> {}\n{:?}", target, text, done.schema, faults);
        prop_assert_eq!(done.outcome == Outcome::Kept, matches!(done.schema, Cow::Borrowed(_)));
        if done.outcome == Outcome::Kept {
            prop_assert!(done.notes.iter().all(|note| note.code == "not_strict"));
        } else {
            prop_assert_ne!(done.schema.as_ref(), text.as_str());
        }
        prop_assert!(done.schema.len() <= text.len() + MAX_ADDED_BYTES);
        let again = mend(&done.schema, &target);
        prop_assert_eq!(&again.schema, &done.schema, "{:?} {}\n{:?}", target, text, again.notes);
        prop_assert_eq!(again.outcome, Outcome::Kept, "{:?} {}\n{:?}", target, text, again.notes);
        prop_assert_eq!(&mend(&text, &target), &done);
        let mut wire = arguments.clone();
        map(&mut wire, &done.arg_map);
        unmap(&mut wire, &done.arg_map);
        prop_assert_eq!(wire.to_string(), arguments.to_string(), "{:?} {} {:?}", target, text, done.arg_map);
    }
    Ok(())
}

proptest! {
    #[test]
    fn messy_schemas_become_acceptable_once_and_for_all(schema in schema(), arguments in arguments()) {
        check(&schema, &arguments)?;
    }

    #[test]
    fn any_json_is_mended_or_left_out(schema in anything(), arguments in arguments()) {
        check(&schema, &arguments)?;
    }

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        for target in targets() {
            mend(&text, &target);
        }
    }
}

#[test]
fn null_as_the_only_value_is_one_type() {
    for alone in [json!({"const": null, "enum": [null]}), json!({"enum": [null]}), json!({"const": null})] {
        let schema = json!({"type": "object", "properties": {"x": alone}});
        for schema in [&schema, &alone] {
            check(schema, &json!({"x": null})).unwrap();
        }
    }
}

#[test]
fn a_type_that_a_negation_leaves_one_branch_is_found_once() {
    let schema = json!({
        "type": "array",
        "not": {},
        "anyOf": [{"not": {"type": "string"}}, {"type": "string"}],
    });
    check(&schema, &json!({})).unwrap();
    check(&json!({"type": "object", "properties": {"x": schema}}), &json!({"x": []})).unwrap();
}
