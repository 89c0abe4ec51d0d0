//! The request body of each dialect.
//!
//! Owns the keys that are sent and how extra ones are merged. Bodies are minimal: strict servers (Cohere v2, Fireworks)
//! answer 422 to an unknown key, others (Scaleway) ask for `top_n`, and vLLM takes no `null` for it.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::providers::{self, Instruction};
use super::request::RerankRequest;
use super::route::Route;
use crate::core::policy::{Dialect, TEXT_FIELDS};

/// What stays the same in all requests of a call.
#[derive(Debug, Clone)]
pub(super) struct Shape<'a> {
    pub dialect: Dialect,
    pub model: Option<&'a str>,
    pub instruction: Option<&'a str>,
    pub place: Instruction,
    /// Characters of the query that are sent.
    pub query_chars: usize,
    /// Whether the number of wanted results is sent.
    pub sends_top: bool,
    pub extra: &'a Map<String, Value>,
}

impl<'a> Shape<'a> {
    /// The shape of a request in a dialect, at the route that was found for it.
    pub(super) fn new(
        request: &'a RerankRequest,
        route: &'a Route,
        dialect: Dialect,
        sends_top: bool,
    ) -> Self {
        let model = route.model.as_deref();
        Self {
            dialect,
            model: model.filter(|_| !request.omit_model),
            instruction: request.instruction.as_deref().filter(|text| !text.trim().is_empty()),
            place: providers::instruction(route.provider, dialect, model),
            query_chars: providers::limits(route.provider, dialect, model).query_chars,
            sends_top,
            extra: &request.extra_body,
        }
    }
}

/// The request body as JSON, for documents that are not blank; `top_n` is at least 1, because some servers refuse 0. Where vectors are
/// wanted, a query stands before the documents, and an empty one does not.
pub(super) fn body(shape: &Shape<'_>, query: &str, documents: &[&str], top_n: usize) -> Vec<u8> {
    let dialect = shape.dialect;
    let query = query_text(shape, query);
    let wrapped = || documents.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>();
    let mut body = Map::new();
    if let Some(model) = shape.model.filter(|_| dialect.names_model()) {
        body.insert("model".to_owned(), model.into());
    }
    let mut parameters = Map::new();
    match dialect {
        Dialect::Cohere | Dialect::Voyage => {
            body.insert("query".to_owned(), query.into());
            body.insert("documents".to_owned(), documents.into());
        }
        Dialect::Tei => {
            body.insert("query".to_owned(), query.into());
            body.insert("texts".to_owned(), documents.into());
            // Older builds refuse long texts otherwise.
            body.insert("truncate".to_owned(), true.into());
        }
        Dialect::Dashscope => {
            body.insert("input".to_owned(), json!({ "query": query, "documents": documents }));
            parameters.insert("return_documents".to_owned(), false.into());
        }
        Dialect::Nim => {
            body.insert("query".to_owned(), json!({ "text": query }));
            body.insert("passages".to_owned(), wrapped().into());
            // Its default is an error for long texts.
            body.insert("truncate".to_owned(), "END".into());
        }
        Dialect::Openai => {
            let query = Some(query).filter(|query| !query.is_empty());
            let texts = query.iter().map(AsRef::as_ref).chain(documents.iter().copied());
            body.insert("input".to_owned(), texts.collect::<Vec<&str>>().into());
        }
        Dialect::Mixedbread | Dialect::Elastic => {
            body.insert("query".to_owned(), query.into());
            body.insert("input".to_owned(), documents.into());
        }
        Dialect::Pinecone => {
            body.insert("query".to_owned(), query.into());
            body.insert("documents".to_owned(), wrapped().into());
            parameters.insert("truncate".to_owned(), "END".into());
        }
    }
    if let Some(key) = dialect.top_key().filter(|_| shape.sends_top) {
        let into = if dialect == Dialect::Dashscope { &mut parameters } else { &mut body };
        into.insert(key.to_owned(), top_n.max(1).into());
    }
    if let (Instruction::Key(key), Some(instruction)) = (shape.place, shape.instruction) {
        let into = if dialect == Dialect::Dashscope { &mut parameters } else { &mut body };
        into.insert(key.to_owned(), instruction.into());
    }
    if !parameters.is_empty() {
        body.insert("parameters".to_owned(), parameters.into());
    }
    merge(&mut body, shape.extra);
    // A map of strings to values always has a JSON text.
    Value::Object(body).to_string().into_bytes()
}

/// The query as it is sent: clipped, with the instruction before it where that is its place.
fn query_text<'a>(shape: &Shape<'_>, query: &'a str) -> Cow<'a, str> {
    let clipped = match query.char_indices().nth(shape.query_chars) {
        Some((end, _)) => &query[..end],
        None => query,
    };
    match (shape.place, shape.instruction) {
        (Instruction::Query, Some(instruction)) => format!("{instruction}\nQuery: {clipped}").into(),
        (Instruction::Before, Some(instruction)) if !clipped.is_empty() => {
            format!("{instruction}{clipped}").into()
        }
        _ => clipped.into(),
    }
}

/// Merges the keys of an administrator: `null` removes, an object is merged into an object one level deep, anything
/// else replaces. Keys that carry texts stay, because an answer could not be matched to the tools any more.
fn merge(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (value, body.get_mut(key)) {
            (Value::Object(inner), Some(Value::Object(there))) => {
                for (key, value) in inner.iter().filter(|(key, _)| !TEXT_FIELDS.contains(&key.as_str())) {
                    set(there, key, value);
                }
            }
            _ if TEXT_FIELDS.contains(&key.as_str()) => {}
            _ => set(body, key, value),
        }
    }
}

fn set(map: &mut Map<String, Value>, key: &str, value: &Value) {
    if value.is_null() {
        map.shift_remove(key);
    } else {
        map.insert(key.to_owned(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(dialect: Dialect, model: Option<&str>, extra: Value) -> String {
        let extra = extra.as_object().unwrap().clone();
        let shape = Shape {
            dialect,
            model,
            instruction: Some("Find tools."),
            place: providers::instruction(None, dialect, model),
            query_chars: 100,
            sends_top: true,
            extra: &extra,
        };
        String::from_utf8(body(&shape, "q", &["a", "b"], 2)).unwrap()
    }

    #[test]
    fn each_dialect_has_its_minimal_body() {
        for (dialect, expected) in [
            (Dialect::Cohere, r#"{"model":"m","query":"q","documents":["a","b"],"top_n":2}"#),
            (Dialect::Tei, r#"{"query":"q","texts":["a","b"],"truncate":true}"#),
            (
                Dialect::Dashscope,
                r#"{"model":"m","input":{"query":"q","documents":["a","b"]},"parameters":{"return_documents":false,"top_n":2,"instruct":"Find tools."}}"#,
            ),
            (
                Dialect::Nim,
                r#"{"model":"m","query":{"text":"q"},"passages":[{"text":"a"},{"text":"b"}],"truncate":"END"}"#,
            ),
            (
                Dialect::Voyage,
                r#"{"model":"m","query":"Find tools.\nQuery: q","documents":["a","b"],"top_k":2}"#,
            ),
            (Dialect::Mixedbread, r#"{"model":"m","query":"q","input":["a","b"],"top_k":2}"#),
            (
                Dialect::Pinecone,
                r#"{"model":"m","query":"q","documents":[{"text":"a"},{"text":"b"}],"top_n":2,"parameters":{"truncate":"END"}}"#,
            ),
            (Dialect::Elastic, r#"{"query":"q","input":["a","b"],"top_n":2}"#),
            (Dialect::Openai, r#"{"model":"m","input":["Find tools.q","a","b"]}"#),
        ] {
            assert_eq!(text(dialect, Some("m"), json!({})), expected);
        }
        assert_eq!(
            text(Dialect::Cohere, None, json!({})),
            r#"{"query":"q","documents":["a","b"],"top_n":2}"#
        );
    }

    #[test]
    fn an_instruction_goes_where_the_provider_takes_it() {
        let extra = Map::new();
        let shape = |place| Shape {
            dialect: Dialect::Cohere,
            model: None,
            instruction: Some("i"),
            place,
            query_chars: 2,
            sends_top: false,
            extra: &extra,
        };
        let text = |place| String::from_utf8(body(&shape(place), "čšž", &["a"], 1)).unwrap();
        assert_eq!(text(Instruction::None), r#"{"query":"čš","documents":["a"]}"#);
        assert_eq!(text(Instruction::Key("task")), r#"{"query":"čš","documents":["a"],"task":"i"}"#);
        assert_eq!(text(Instruction::Query), r#"{"query":"i\nQuery: čš","documents":["a"]}"#);
    }

    #[test]
    fn extra_keys_are_merged_last() {
        for (extra, expected) in [
            (json!({"api_version": 2}), r#"{"query":"q","documents":["a","b"],"top_n":2,"api_version":2}"#),
            (json!({"top_n": null}), r#"{"query":"q","documents":["a","b"]}"#),
            (json!({"top_n": 1}), r#"{"query":"q","documents":["a","b"],"top_n":1}"#),
            (json!({"x": {"y": 1}}), r#"{"query":"q","documents":["a","b"],"top_n":2,"x":{"y":1}}"#),
            (
                json!({"query": "z", "documents": [], "texts": null}),
                r#"{"query":"q","documents":["a","b"],"top_n":2}"#,
            ),
        ] {
            assert_eq!(text(Dialect::Cohere, None, extra), expected);
        }
        assert_eq!(
            text(
                Dialect::Dashscope,
                None,
                json!({"parameters": {"instruct": null, "x": 1}, "input": {"documents": [], "y": 1}})
            ),
            r#"{"input":{"query":"q","documents":["a","b"],"y":1},"parameters":{"return_documents":false,"top_n":2,"x":1}}"#
        );
    }

    proptest! {
        #[test]
        fn whatever_is_merged_top_is_never_null_and_texts_stay(
            key in prop::sample::select(vec!["top_n", "top_k", "query", "documents", "texts", "input", "parameters", "x"]),
            value in prop::sample::select(vec![json!(null), json!(1), json!("s"), json!([]), json!({"top_n": null, "query": 1, "documents": 1})]),
            dialect in prop::sample::select(Dialect::ALL.to_vec()),
        ) {
            let sent = text(dialect, Some("m"), json!({ key: value }));
            let body: Value = serde_json::from_str(&sent).unwrap();
            let holder = if dialect == Dialect::Dashscope { &body["parameters"] } else { &body };
            for key in ["top_n", "top_k"] {
                prop_assert!(holder.get(key).is_none_or(|top| !top.is_null()), "{sent}");
            }
            prop_assert!(sent.contains("\"a\"") && sent.contains("\"b\""), "{sent}");
        }
    }
}
