//! The config as its users see it: the door, stored documents, merging, the effective view.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::core::selector::Selector;

mod door;
mod matcher;
mod merging;
mod request;
mod stored;

fn layer(document: &Value) -> Layer {
    match parse(document) {
        Ok(parsed) => parsed.layer,
        Err(errors) => panic!("{document} was refused: {errors:?}"),
    }
}

/// The faults of a document as `pointer code`.
fn faults(document: &Value) -> Vec<String> {
    let errors = parse(document).err().unwrap_or_default();
    errors.iter().map(|error| format!("{} {}", error.pointer, error.code)).collect()
}

fn selectors(texts: &[&str]) -> Vec<Selector> {
    texts.iter().map(|text| Selector::parse(text).unwrap()).collect()
}

/// Any JSON, with the words of a config in it more often than chance would have them.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["auto", "on", "*", "@g", "x*", "http://a.example", "rerank", "12"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let keys = [
            Layer::KEYS,
            MatcherSetting::KEYS,
            &["name", "tools", "prefixes", "includes", "api_key", "set", "a~/b"],
        ];
        let key = prop::sample::select(keys.concat()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reading_never_panics_and_a_good_field_survives(garbage in any_json()) {
        let mut document = match garbage {
            Value::Object(map) => map,
            other => Map::from_iter([("groups".to_owned(), other)]),
        };
        document.insert("max_warm_tools".to_owned(), json!(11));
        document.insert("deny".to_owned(), json!(["rm_*"]));
        let (layer, _) = load(&Value::Object(document));
        prop_assert_eq!(layer.max_warm_tools, Some(11));
        prop_assert_eq!(layer.deny.clone(), Some(selectors(&["rm_*"])));
        let _ = merge(&layer, &layer);
        let _ = effective(&layer, &layer);
    }

    #[test]
    fn the_door_never_panics(document in any_json()) {
        let _ = parse(&document);
    }

    /// What `load` makes of anything is a good document, and reads back as the same layer.
    #[test]
    fn a_written_layer_reads_back_the_same(
        document in any_json(),
        listed in prop::collection::vec("\\PC{0,8}", 0..5),
    ) {
        let mut document = document.as_object().cloned().unwrap_or_default();
        document.insert("core".to_owned(), json!(listed));
        document.insert("aliases".to_owned(), json!({"a": listed, "b~/c": "phrase"}));
        document.insert("toolsets".to_owned(), json!([{"name": "t", "tools": listed, "groups": listed}]));
        let (layer, _) = load(&Value::Object(document));
        let written = Value::Object(layer.to_json());
        let parsed = parse(&written);
        prop_assert!(parsed.is_ok(), "{written} {parsed:?}");
        prop_assert_eq!(parsed.unwrap().layer, layer.clone());
        prop_assert_eq!(load(&written).0, layer);
    }

    #[test]
    fn the_effective_view_says_what_the_policy_does(left in any_json(), right in any_json()) {
        let (user, project) = (load(&left).0, load(&right).0);
        let (policy, view) = (merge(&user, &project), effective(&user, &project));
        prop_assert_eq!(&view["max_warm_tools"]["value"], &json!(policy.max_warm_tools));
        prop_assert_eq!(&view["search_default_limit"]["value"], &json!(policy.search_default_limit));
        prop_assert_eq!(&view["core"]["value"], &json!(policy.core));
        prop_assert!(policy.search_default_limit <= policy.max_search_limit);
    }
}
