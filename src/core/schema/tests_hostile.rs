//! Schemas made to cost time or stack: each must end quickly in a thread with half the default stack.

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Validator, Verdict};

/// Generous for a build without optimisation on a busy machine; without the bounds these would take for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// Compiles and checks on 1 MiB of stack, and answers the verdicts.
fn survive(schema: String, arguments: Vec<Value>) -> Vec<Verdict> {
    let started = Instant::now();
    let verdicts = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || {
            let validator = Validator::compile(&schema);
            arguments.iter().map(|arguments| validator.check(arguments)).collect::<Vec<_>>()
        })
        .unwrap()
        .join()
        .unwrap();
    assert!(started.elapsed() < PATIENCE, "took {:?}", started.elapsed());
    verdicts
}

fn unchecked(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unchecked(_))
}

/// `{"a":{"a":...}}`
fn nested(levels: usize, leaf: Value) -> Value {
    (0..levels).fold(leaf, |inner, _| json!({ "a": inner }))
}

/// `$defs` d0 to dN, each made from the pointer of the next one; the last accepts texts.
fn chain(length: usize, link: impl Fn(&str) -> String) -> String {
    let mut schema = r##"{"$ref":"#/$defs/d0","$defs":{"##.to_owned();
    for index in 0..length {
        let next = format!("{{\"$ref\":\"#/$defs/d{}\"}}", index + 1);
        write!(schema, "\"d{index}\":{},", link(&next)).unwrap();
    }
    write!(schema, "\"d{length}\":{{\"type\":[\"string\",\"object\"]}}}}}}").unwrap();
    schema
}

#[test]
fn references_in_a_fan() {
    let fan = chain(60, |next| format!("{{\"allOf\":[{next},{next}]}}"));
    assert!(unchecked(&survive(fan, vec![json!({})])[0]));
    let fan = chain(95, |next| format!("{{\"properties\":{{\"a\":{next},\"b\":{next}}}}}"));
    let verdicts = survive(fan, vec![json!({"a": {"b": {"a": 1}}}), nested(120, json!(1))]);
    assert_eq!(verdicts[0], Verdict::Valid);
    let fork = chain(60, |next| {
        format!("{{\"anyOf\":[{{\"properties\":{{\"a\":{next}}}}},{{\"additionalProperties\":{next}}}]}}")
    });
    let verdicts = survive(fork, vec![nested(64, json!(1)), nested(2, json!("x"))]);
    assert!(unchecked(&verdicts[0]));
    assert_eq!(verdicts[1], Verdict::Valid);
}

#[test]
fn long_chains() {
    let deep = chain(150, |next| format!("{{\"allOf\":[{next}]}}"));
    assert!(matches!(&survive(deep, vec![json!(1)])[0], Verdict::Unchecked(_)));
    let short = chain(90, |next| format!("{{\"allOf\":[{next}]}}"));
    assert!(matches!(&survive(short, vec![json!(1)])[0], Verdict::Invalid(_)));
    let endless = chain(5_000, |next| format!("{{\"allOf\":[{next}]}}"));
    assert!(unchecked(&survive(endless, vec![json!({})])[0]));
    let endless = chain(5_000, |next| format!("{{\"properties\":{{\"a\":{next}}}}}"));
    assert!(unchecked(&survive(endless, vec![json!({})])[0]));
}

#[test]
fn circles() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"anyOf":[{"not":{"$ref":"#/anyOf/0"}}]}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}"##,
        r##"{"$dynamicAnchor":"m","if":{"$dynamicRef":"#m"},"then":false}"##,
        r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","dependentSchemas":{"a":{"$recursiveRef":"#"}}}"##,
    ] {
        assert!(unchecked(&survive(schema.to_owned(), vec![json!({"x": 1, "a": 1})])[0]), "{schema}");
    }
}

#[test]
fn recursion_that_forks() {
    let fork = r##"{"type":"object","allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}"##;
    let verdicts = survive(fork.to_owned(), vec![nested(60, json!({})), nested(3, json!(1))]);
    assert!(unchecked(&verdicts[0]));
    assert!(matches!(&verdicts[1], Verdict::Invalid(violation) if violation.path == "arguments.a.a.a"));
}

#[test]
fn recursion_in_deep_arguments() {
    let tree =
        r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}}}}}"##;
    let verdicts = survive(tree.to_owned(), vec![nested(64, json!(1)), nested(400, json!(1))]);
    assert!(matches!(&verdicts[0], Verdict::Invalid(_)), "{verdicts:?}");
    // Deeper than a JSON text can be: the check must not descend.
    assert!(unchecked(&verdicts[1]));
    let wide = (0..8).fold(String::new(), |defs, index| {
        let leaf = format!("{{\"$ref\":\"#/$defs/d{}\"}}", (index + 1) % 8);
        let inner = (0..18).fold(leaf, |inner, _| format!("{{\"properties\":{{\"a\":{inner}}}}}"));
        format!("{defs}\"d{index}\":{inner},")
    });
    let wide = format!("{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{wide}\"z\":true}}}}");
    survive(wide, vec![nested(100, json!(1))]);
}

#[test]
fn schemas_as_deep_as_allowed() {
    for (open, close) in [
        ("{\"properties\":{\"a\":", "}}"),
        ("{\"anyOf\":[", "]}"),
        ("{\"items\":", "}"),
        ("{\"not\":", "}"),
        ("{\"unevaluatedProperties\":", "}"),
        ("{\"patternProperties\":{\"a\":", "}}"),
        ("{\"dependentSchemas\":{\"a\":", "}}"),
    ] {
        for levels in [20, 31, 62, 120] {
            let schema = format!("{}{{\"type\":\"string\"}}{}", open.repeat(levels), close.repeat(levels));
            let list = (0..100).fold(json!(1), |inner, _| json!([inner]));
            survive(schema, vec![nested(100, json!(1)), list]);
        }
    }
}

#[test]
fn regular_expressions() {
    let mut properties = serde_json::Map::new();
    for index in 0..1_000 {
        properties.insert(format!("p{index}"), json!({ "pattern": format!("((a{{50}}){{50}}){{{index}}}") }));
        properties.insert(format!("q{index}"), json!({ "pattern": format!("[01]*1[01]{{{index}}}") }));
    }
    properties.insert("n".to_owned(), json!({ "type": "integer" }));
    let schema = json!({ "properties": properties }).to_string();
    let bits = "01101".repeat(20_000);
    let verdicts = survive(schema, vec![json!({"n": "x"}), json!({"q9": bits, "q31": bits, "p3": "a"})]);
    assert!(matches!(&verdicts[0], Verdict::Invalid(violation) if violation.path == "arguments.n"));
    let evil = json!({"properties": {"a": {"pattern": "^(a+)+$"}}}).to_string();
    survive(evil, vec![json!({"a": format!("{}!", "a".repeat(100_000))})]);
}

#[test]
fn large_literals_and_arguments() {
    let options: Vec<Value> = (0..10_000).map(|index| json!([index, { "k": "v" }])).collect();
    let schema = json!({"properties": {"a": {"items": {"enum": options}}}}).to_string();
    let many: Vec<Value> = (0..20_000).map(|index| json!([index, { "k": "w" }])).collect();
    assert!(unchecked(&survive(schema, vec![json!({ "a": many })])[0]));

    let schema =
        json!({"properties": {"a": {"uniqueItems": true, "items": {"uniqueItems": true}}}}).to_string();
    let many: Vec<Value> = (0..5_000).map(|index| json!([index, index + 1])).collect();
    assert_eq!(survive(schema, vec![json!({ "a": many })])[0], Verdict::Valid);

    let branches: Vec<Value> = (0..2_000).map(|index| json!({ "const": index })).collect();
    let schema = json!({"properties": {"a": {"anyOf": branches}, "b": {"type": "string"}}}).to_string();
    let text = "x".repeat(1 << 20);
    let verdicts = survive(schema, vec![json!({ "a": text }), json!({"b": 1, "a": 3})]);
    assert!(matches!(&verdicts[0], Verdict::Invalid(violation) if violation.message.len() < 2_400));
    assert!(matches!(&verdicts[1], Verdict::Invalid(violation) if violation.path == "arguments.b"));

    let inner = (0..25).fold(json!({"type": "string"}), |inner, _| {
        json!({"anyOf": [{"properties": {"a": inner}}, {"required": ["b"]}], "unevaluatedProperties": false})
    });
    survive(inner.to_string(), vec![nested(30, json!(1))]);

    let properties: serde_json::Map<String, Value> =
        (0..20_000).map(|index| (format!("p{index}"), json!({ "type": "integer" }))).collect();
    let schema = json!({ "properties": properties, "additionalProperties": false }).to_string();
    assert!(matches!(&survive(schema, vec![json!({"p7": ""})])[0], Verdict::Invalid(_)));
}
