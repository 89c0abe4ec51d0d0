use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn calls(arguments: Value) -> Vec<(String, Value)> {
    read_calls(&map(arguments), 20)
        .unwrap()
        .into_iter()
        .map(|call| call.map(|call| (call.name, Value::Object(call.arguments.unwrap()))).unwrap())
        .collect()
}

fn one(arguments: Value) -> (String, Value) {
    let mut calls = calls(arguments);
    assert_eq!(calls.len(), 1);
    calls.remove(0)
}

#[test]
fn arguments_in_every_form_that_models_send() {
    let wanted = map(json!({"a": 1}));
    for value in [json!({"a": 1}), json!("{\"a\": 1}"), json!(" {\"a\":1}\n"), json!("\"{\\\"a\\\": 1}\"")] {
        assert_eq!(read_arguments(Some(&value)), Ok(wanted.clone()), "{value}");
    }
    assert_eq!(read_arguments(None), Ok(Map::new()));
    for value in [json!(null), json!(""), json!(" \n"), json!("{}"), json!({}), json!("null"), json!("\"\"")]
    {
        assert_eq!(read_arguments(Some(&value)), Ok(Map::new()), "{value}");
    }
}

#[test]
fn arguments_that_are_no_object_say_so() {
    for value in [json!([1]), json!(3), json!(true), json!("[1]"), json!("3"), json!("\"[]\"")] {
        assert_eq!(read_arguments(Some(&value)).unwrap_err().code, "arguments_not_an_object", "{value}");
    }
    let fault = read_arguments(Some(&json!("{\"a\": 1 \"b\": 2}"))).unwrap_err();
    assert_eq!(fault.code, "malformed_arguments");
    assert!(fault.message.contains("line 1 column"), "{fault}");
    let fault = read_arguments(Some(&json!("{\"a\": \"cut off"))).unwrap_err();
    assert!(fault.message.contains("ends too early"), "{fault}");
    let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
    assert_eq!(read_arguments(Some(&json!(deep))).unwrap_err().code, "arguments_too_deep");
    let deeper = "[".repeat(100_000);
    assert_eq!(read_arguments(Some(&json!(deeper))).unwrap_err().code, "malformed_arguments");
}

#[test]
fn single_calls() {
    let wanted = ("x".to_owned(), json!({"path": "/a"}));
    for arguments in [
        json!({"name": "x", "arguments": {"path": "/a"}}),
        json!({"name": " x ", "arguments": "{\"path\":\"/a\"}"}),
        json!({"name": "x", "path": "/a"}),
        json!({"name": "x", "arguments": {}, "path": "/a"}),
        json!({"name": "x", "arguments": null, "calls": null, "path": "/a"}),
        json!({"name": "x", "arguments": {"path": "/a"}, "calls": []}),
        json!({"calls": [{"name": "x", "arguments": {"path": "/a"}}]}),
        json!({"calls": {"name": "x", "path": "/a"}}),
        json!({"calls": "[{\"name\":\"x\",\"arguments\":{\"path\":\"/a\"}}]"}),
        json!({"calls": "{\"name\":\"x\",\"path\":\"/a\"}"}),
        json!({"calls": ["{\"name\":\"x\",\"path\":\"/a\"}"]}),
        json!({"arguments": {"name": "x", "arguments": {"path": "/a"}}}),
        json!({"arguments": "{\"name\":\"x\",\"path\":\"/a\"}"}),
        json!({"input": {"calls": [{"name": "x", "path": "/a"}]}}),
        json!({"type": "function", "function": {"name": "x", "arguments": "{\"path\":\"/a\"}"}}),
        json!({"calls": [{"type": "function", "function": {"name": "x", "arguments": {"path": "/a"}}}]}),
        json!({"tool_name": "x", "arguments": {"path": "/a"}}),
    ] {
        assert_eq!(one(arguments.clone()), wanted, "{arguments}");
    }
}

#[test]
fn synonyms_of_arguments_are_settled_by_the_schema() {
    for key in ["args", "parameters", "params", "input"] {
        for value in [json!({"path": "/a"}), json!("{\"path\":\"/a\"}")] {
            let (name, arguments) = one(json!({"name": "x", key: value}));
            let wrapped = unwrap_nested(map(arguments.clone()), &name, |property| property == key);
            assert_eq!(Value::Object(wrapped), json!({ key: value }));
            let plain = unwrap_nested(map(arguments), &name, |property| property == "path");
            assert_eq!(Value::Object(plain), json!({"path": "/a"}));
        }
    }
    // A text that is no JSON object is an argument, whatever the schema says.
    let (name, arguments) = one(json!({"name": "x", "input": "hello"}));
    assert_eq!(Value::Object(unwrap_nested(map(arguments), &name, |_| false)), json!({"input": "hello"}));
}

#[test]
fn nested_arguments_are_unwrapped_only_where_the_schema_lacks_the_wrapper() {
    let unwrap = |arguments: Value, declared: &[&str]| {
        Value::Object(unwrap_nested(map(arguments), "gh__make_issue", |key| declared.contains(&key)))
    };
    let plain = json!({"title": "t"});
    for wrapped in [
        json!({"arguments": {"title": "t"}}),
        json!({"arguments": "{\"title\":\"t\"}"}),
        json!({"arguments": {"arguments": {"title": "t"}}}),
        json!({"arguments": {"input": {"title": "t"}}}),
        json!({"name": "gh__make_issue", "arguments": {"title": "t"}}),
        json!({"name": "gh__make-issue", "arguments": {"title": "t"}}),
        json!({"arguments": {"name": "functions.gh__make_issue", "parameters": {"title": "t"}}}),
        json!({"title": "t"}),
    ] {
        assert_eq!(unwrap(wrapped.clone(), &["title"]), plain, "{wrapped}");
    }
    assert_eq!(unwrap(json!({"arguments": null}), &[]), json!({}));
    for kept in [
        json!({"input": {"title": "t"}}),
        json!({"arguments": {"title": "t"}, "title": "u"}),
        json!({"name": "other", "arguments": {"title": "t"}}),
        json!({"arguments": [1]}),
    ] {
        assert_eq!(unwrap(kept.clone(), &["input"]), kept);
    }
}

#[test]
fn faults_stay_with_their_entry() {
    let arguments = map(json!({"calls": [
        {"name": "a", "arguments": {}}, 7, {"arguments": {}}, {"name": " "}, {"name": "b", "arguments": "{"}
    ]}));
    let read = read_calls(&arguments, 20).unwrap();
    assert_eq!(read[0].as_ref().unwrap().name, "a");
    let fault = |index: usize| read[index].clone().unwrap_err();
    assert_eq!((fault(1).code, fault(1).index), ("invalid_call", Some(1)));
    assert_eq!((fault(2).code, fault(2).index), ("missing_name", Some(2)));
    assert_eq!((fault(3).code, fault(3).index), ("missing_name", Some(3)));
    assert!(fault(1).message.starts_with("calls[1]: "));
    let broken = read[4].clone().unwrap();
    assert_eq!(broken.arguments.unwrap_err().code, "malformed_arguments");
}

#[test]
fn faults_of_the_whole() {
    let code = |arguments: Value| read_calls(&map(arguments), 20).unwrap_err().code;
    assert_eq!(code(json!({})), "no_calls");
    assert_eq!(code(json!({"arguments": {"a": 1}})), "no_calls");
    assert_eq!(code(json!({"calls": []})), "no_calls");
    assert_eq!(code(json!({"calls": "[{"})), "malformed_calls");
    assert_eq!(code(json!({"calls": 3})), "malformed_calls");
    let many = |count: usize| json!({"calls": vec![json!({"name": "x"}); count]});
    assert_eq!(calls(many(20)).len(), 20);
    assert_eq!(code(many(21)), "too_many_calls");
}

#[test]
fn names_are_repaired_the_name_itself_first() {
    for (raw, wanted) in [
        (" list_issues ", "list_issues"),
        ("`list_issues`", "list_issues"),
        ("\"list_issues\"", "list_issues"),
        ("functions.list_issues", "list_issues"),
        ("default_api:list_issues", "list_issues"),
        ("tools.list_issues", "list_issues"),
        ("Patch_tool", "Patch"),
        ("skills_listskills_list", "skills_list"),
        ("click_on_link(url=\"x\")", "click_on_link"),
        ("`functions.list_issues_tool`", "list_issues"),
    ] {
        let candidates = name_candidates(raw);
        assert_eq!(candidates[0], raw.trim());
        assert!(candidates.iter().any(|candidate| candidate == wanted), "{raw}: {candidates:?}");
    }
    assert_eq!(name_candidates("  "), Vec::<String>::new());
    assert_eq!(name_candidates("plain"), ["plain"]);
    assert_eq!(fold_name(" List-All. Issues "), "list_all__issues");
}

#[test]
fn suggestions_are_close_names_best_first() {
    let names = [
        "github__create_issue",
        "create_issue",
        "create_issues",
        "list_issues",
        "CREATE-ISSUE",
        "delete_file",
        "get_weather",
        "search",
    ];
    let suggest = |wanted: &str| suggest(wanted, names.iter().copied(), 4);
    assert_eq!(
        suggest("create_issue"),
        ["CREATE-ISSUE", "create_issue", "github__create_issue", "create_issues"]
    );
    assert_eq!(suggest("get_wheather"), ["get_weather"]);
    assert!(suggest("issue_create").contains(&"create_issue"));
    assert_eq!(suggest("functions.delete_flie"), ["delete_file"]);
    assert_eq!(suggest("weather_get_forecast_for_city"), Vec::<&str>::new());
    assert_eq!(suggest("zzzzqqq"), Vec::<&str>::new());
    assert_eq!(suggest(""), Vec::<&str>::new());
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = "name|calls|arguments|input|args|function|type|[a-c]|.{0,3}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!("{\"name\":\"x\",\"arguments\":\"{}\"}")),
        Just(json!("[{\"name\":\"x\"}, \"{}\"]")),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reading_never_panics(value in any_json(), declared in any::<bool>()) {
        if let Ok(arguments) = read_arguments(Some(&value)) {
            unwrap_nested(arguments, "x", |_| declared);
        }
        if let Value::Object(arguments) = &value
            && let Ok(calls) = read_calls(arguments, 20)
        {
            prop_assert!(!calls.is_empty() && calls.len() <= 20);
            for call in calls.into_iter().flatten() {
                prop_assert!(!call.name.trim().is_empty());
            }
        }
    }

    /// A well-formed call is read as what it says, whatever the arguments are.
    #[test]
    fn well_formed_calls_are_untouched(arguments in any_json()) {
        prop_assume!(arguments.as_object().is_some_and(|object| !object.is_empty()));
        let read = one(json!({"name": "x", "arguments": arguments}));
        prop_assert_eq!(&read.1, &arguments);
        let kept = unwrap_nested(map(read.1), "x", |_| true);
        prop_assert_eq!(Value::Object(kept), arguments);
    }

    #[test]
    fn names_never_panic(raw in ".{0,40}", names in prop::collection::vec(".{0,20}", 0..20)) {
        let candidates = name_candidates(&raw);
        prop_assert_eq!(candidates.is_empty(), raw.trim().is_empty());
        let found = suggest(&raw, names.iter().map(String::as_str), 3);
        prop_assert!(found.len() <= 3);
    }

    /// The order of the names does not matter.
    #[test]
    fn suggestions_are_deterministic(mut names in prop::collection::vec("[ab_]{1,6}", 0..30)) {
        let found: Vec<String> = suggest("ab_ab", names.iter().map(String::as_str), 5).into_iter().map(str::to_owned).collect();
        names.reverse();
        prop_assert_eq!(found, suggest("ab_ab", names.iter().map(String::as_str), 5));
    }
}
