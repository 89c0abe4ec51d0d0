//! What a matcher adds to its requests: body, headers, how the key travels.

use serde_json::{Value, json};

use super::*;

fn with(key: &str, value: &Value) -> Value {
    json!({"matcher": {"endpoint": "https://a.example", key: value}})
}

fn faults_of(key: &str, value: &Value) -> Vec<String> {
    faults(&with(key, value))
}

fn merged(document: &Value) -> Matcher {
    merge(&layer(document), &Layer::default()).matcher.unwrap()
}

#[test]
fn every_dialect_has_its_name() {
    for (name, dialect) in [
        ("auto", DialectChoice::Auto),
        ("cohere", DialectChoice::Fixed(Dialect::Cohere)),
        ("tei", DialectChoice::Fixed(Dialect::Tei)),
        ("dashscope", DialectChoice::Fixed(Dialect::Dashscope)),
        ("nim", DialectChoice::Fixed(Dialect::Nim)),
        ("voyage", DialectChoice::Fixed(Dialect::Voyage)),
        ("mixedbread", DialectChoice::Fixed(Dialect::Mixedbread)),
        ("pinecone", DialectChoice::Fixed(Dialect::Pinecone)),
        ("elastic", DialectChoice::Fixed(Dialect::Elastic)),
        ("openai", DialectChoice::Fixed(Dialect::Openai)),
    ] {
        let mut document = with("dialect", &json!(name));
        if name == "openai" {
            document["matcher"]["kind"] = json!("embedding");
        }
        assert_eq!((merged(&document).dialect, dialect.name()), (dialect, name));
        assert_eq!(Value::Object(layer(&document).to_json()), document);
    }
    for bad in [json!("jina"), json!("Cohere"), json!("")] {
        assert_eq!(faults_of("dialect", &bad), ["/matcher/dialect invalid_value"], "{bad}");
    }
}

#[test]
fn what_makes_vectors_and_what_ranks_have_their_own_dialects() {
    assert_eq!(faults_of("dialect", &json!("openai")), ["/matcher/dialect invalid_value"]);
    let vectors =
        json!({"matcher": {"kind": "embedding", "endpoint": "https://a.example", "dialect": "tei"}});
    assert_eq!(faults(&vectors), ["/matcher/dialect invalid_value"]);
    let (read, warnings) = load(&vectors);
    assert_eq!(warnings.len(), 1);
    let matcher = merge(&read, &Layer::default()).matcher.unwrap();
    assert_eq!((matcher.kind, matcher.dialect), (MatcherKind::Embedding, DialectChoice::Auto));
}

#[test]
fn the_address_of_an_embedding_model_has_the_origin_that_the_key_belongs_to() {
    let with = |address: &str| json!({"matcher": {"endpoint": "https://a.example/v1/rerank", "embedding_model": "m", "embedding_endpoint": address}});
    let model = merged(&with("https://a.example:443/other"));
    assert_eq!(model.embedding_endpoint.unwrap().path(), "/other");
    for other in ["http://a.example/other", "https://a.example:8443", "https://b.example"] {
        assert_eq!(faults(&with(other)), ["/matcher/embedding_endpoint invalid_value"], "{other}");
        let (read, _) = load(&with(other));
        assert_eq!(merge(&read, &Layer::default()).matcher.unwrap().embedding_endpoint, None);
    }
}

#[test]
fn a_matcher_that_says_nothing_has_the_defaults() {
    let matcher = merged(&json!({"matcher": {"endpoint": "https://a.example"}}));
    assert!(matcher.extra_body.is_empty() && matcher.extra_headers.is_empty() && !matcher.omit_model);
    assert_eq!((matcher.dialect, matcher.auth_scheme), (DialectChoice::Auto, None));
    assert_eq!(matcher.auth_header, "Authorization");
}

#[test]
fn what_is_written_is_what_is_merged_and_stored() {
    let document = json!({"matcher": {
        "endpoint": "https://a.example", "dialect": "tei",
        "extra_body": {"api_version": 2, "parameters": {"truncate": "END"}, "return_documents": null},
        "extra_headers": {"X-Region": "eu 1", "anthropic-beta": ""},
        "auth_header": "X-Api-Key", "auth_scheme": "", "omit_model": true,
    }});
    let layer = layer(&document);
    let mut stored = document.clone();
    stored["matcher"]["extra_headers"] = json!({"X-Region": {"set": true}, "anthropic-beta": {"set": true}});
    assert_eq!(Value::Object(layer.to_json()), stored);
    let (read, warnings) = load(&stored);
    assert_eq!((Value::Object(read.to_json()), warnings), (stored, Vec::new()));
    let matcher = merge(&read, &Layer::default()).matcher.unwrap();
    assert_eq!(matcher.extra_headers, ["X-Region", "anthropic-beta"].map(|name| (name.to_owned(), None)));
    // As it was stored before headers were sealed.
    assert_eq!(load(&document), (layer.clone(), Vec::new()));

    let matcher = merge(&layer, &Layer::default()).matcher.unwrap();
    assert_eq!(Value::Object(matcher.extra_body), document["matcher"]["extra_body"]);
    let headers: Vec<_> =
        matcher.extra_headers.iter().map(|(name, text)| (&**name, text.as_deref())).collect();
    assert_eq!(headers, [("X-Region", Some("eu 1")), ("anthropic-beta", Some(""))]);
    assert_eq!((&*matcher.auth_header, matcher.auth_scheme.as_deref()), ("X-Api-Key", Some("")));
    assert!(matcher.omit_model);
}

#[test]
fn nothing_of_the_users_matcher_joins_the_projects() {
    let user = layer(&json!({"matcher": {
        "endpoint": "https://user.example", "extra_body": {"a": 1}, "extra_headers": {"x-a": "b"},
        "auth_header": "X-Key", "auth_scheme": "Token", "omit_model": true, "dialect": "nim",
    }}));
    let project = layer(&json!({"matcher": {
        "endpoint": "https://project.example", "extra_body": {"b": 2}, "extra_headers": {"x-b": "c"},
    }}));
    let both = merge(&user, &project).matcher.unwrap();
    assert_eq!(Value::Object(both.extra_body), json!({"b": 2}));
    assert_eq!(both.extra_headers, [("x-b".to_owned(), Some("c".to_owned()))]);
    assert_eq!((&*both.auth_header, both.auth_scheme, both.omit_model), ("Authorization", None, false));
    assert_eq!(both.dialect, DialectChoice::Auto);
}

#[test]
fn the_view_claims_nothing_of_the_key_that_a_dialect_may_change() {
    let view = |document: &Value| effective(&layer(document), &Layer::default())["matcher"]["value"].clone();
    let silent = view(&with("dialect", &json!("pinecone")));
    assert_eq!((silent.get("auth_header"), silent.get("auth_scheme")), (None, None));
    assert_eq!(silent["extra_headers"], json!({}));
    let written = view(&with("auth_scheme", &json!("Bearer")));
    assert_eq!(written["auth_scheme"], "Bearer");
}

#[test]
fn an_extra_body_is_a_bounded_object() {
    for bad in [json!("{\"a\": 1}"), json!([1]), json!(true)] {
        assert_eq!(faults_of("extra_body", &bad), ["/matcher/extra_body wrong_type"], "{bad}");
    }
    // `{"a":"…"}` has 8 bytes around the text.
    let filled = |bytes: usize| json!({"a": "x".repeat(bytes - 8)});
    assert!(faults_of("extra_body", &filled(16_384)).is_empty());
    assert_eq!(faults_of("extra_body", &filled(16_385)), ["/matcher/extra_body too_long"]);
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    assert!(faults_of("extra_body", &deep(64)).is_empty());
    assert_eq!(faults_of("extra_body", &deep(65)), ["/matcher/extra_body invalid_value"]);
}

#[test]
fn an_extra_body_leaves_the_texts_alone() {
    for (bad, place) in [
        (json!({"query": "x"}), "query"),
        (json!({"a": 1, "documents": null}), "documents"),
        (json!({"texts": []}), "texts"),
        (json!({"passages": {"a": 1}}), "passages"),
        (json!({"input": ["x"]}), "input"),
        (json!({"input": {"query": "x", "user": 1}}), "input/query"),
    ] {
        let fault = format!("/matcher/extra_body/{place} invalid_value");
        assert_eq!(faults_of("extra_body", &bad), [fault], "{bad}");
    }
    assert!(faults_of("extra_body", &json!({"input": {"user": 1}, "data": {"query": "x"}})).is_empty());
}

#[test]
fn headers_that_cannot_be_sent_are_named_with_their_place() {
    let long = "n".repeat(65);
    for (name, value, fault) in [
        ("Host", json!("b"), "Host invalid_value"),
        ("content-LENGTH", json!("1"), "content-LENGTH invalid_value"),
        ("Content-Type", json!("text/plain"), "Content-Type invalid_value"),
        ("Transfer-Encoding", json!("chunked"), "Transfer-Encoding invalid_value"),
        ("Connection", json!("close"), "Connection invalid_value"),
        ("Proxy-Authorization", json!("x"), "Proxy-Authorization invalid_value"),
        ("X-Forwarded-For", json!("::1"), "X-Forwarded-For invalid_value"),
        ("Cookie", json!("a=b"), "Cookie invalid_value"),
        ("", json!("b"), " invalid_value"),
        ("a b", json!("b"), "a b invalid_value"),
        ("a/b", json!("b"), "a~1b invalid_value"),
        (":path", json!("b"), ":path invalid_value"),
        ("é", json!("b"), "é invalid_value"),
        (long.as_str(), json!("b"), &format!("{long} invalid_value")),
        ("x", json!("a\r\nHost: b"), "x invalid_value"),
        ("x", json!("a\tb"), "x invalid_value"),
        ("x", json!("\u{7f}"), "x invalid_value"),
        ("x", json!("ключ"), "x invalid_value"),
        ("x", json!(" a"), "x invalid_value"),
        ("x", json!("v".repeat(8_193)), "x too_long"),
        ("x", json!(5), "x wrong_type"),
        ("x", json!(["a"]), "x wrong_type"),
        ("x", json!({"set": "a"}), "x wrong_type"),
        ("x", json!({"set": true, "text": "a"}), "x wrong_type"),
    ] {
        let found = faults_of("extra_headers", &json!({ name: value }));
        assert_eq!(found, [format!("/matcher/extra_headers/{fault}")]);
    }
    let twice = json!({"X-A": "1", "x-b": "2", "x-a": "3"});
    assert_eq!(faults_of("extra_headers", &twice), ["/matcher/extra_headers/x-a duplicate_name"]);
    for bad in [json!("a: b"), json!([["a", "b"]])] {
        assert_eq!(faults_of("extra_headers", &bad), ["/matcher/extra_headers wrong_type"], "{bad}");
    }
    let many = |count: usize| Value::Object((0..count).map(|n| (format!("x-{n}"), json!("v"))).collect());
    assert!(faults_of("extra_headers", &many(32)).is_empty());
    assert_eq!(faults_of("extra_headers", &many(33)), ["/matcher/extra_headers too_many"]);
    assert!(
        faults_of("extra_headers", &json!({"x": "v".repeat(8_192), "y": null, "z": {"set": false}}))
            .is_empty()
    );
}

#[test]
fn the_key_travels_in_a_header_that_there_can_be() {
    for good in ["authorization", "api-key", "X-Goog-Api-Key"] {
        assert_eq!(merged(&with("auth_header", &json!(good))).auth_header, good);
    }
    for bad in ["", "Host", "cookie", "Proxy-Authorization", "a b", "a:", "a\n", &"a".repeat(65)] {
        let found = faults_of("auth_header", &json!(bad));
        assert_eq!(found, ["/matcher/auth_header invalid_value"], "{bad:?}");
    }
    for good in ["", "Bearer", "ApiKey", "Api-Key", &"a".repeat(32)] {
        assert_eq!(merged(&with("auth_scheme", &json!(good))).auth_scheme.as_deref(), Some(good));
    }
    for bad in [" ", "Bearer ", "a b", "é", "a\n", &"a".repeat(33)] {
        let found = faults_of("auth_scheme", &json!(bad));
        assert_eq!(found, ["/matcher/auth_scheme invalid_value"], "{bad:?}");
    }
    for key in ["auth_header", "auth_scheme", "omit_model"] {
        assert_eq!(faults_of(key, &json!(7)), [format!("/matcher/{key} wrong_type")]);
    }
}

#[test]
fn what_users_add_is_in_no_message_and_no_debug_text() {
    let good = json!({"matcher": {
        "endpoint": "https://a.example", "extra_body": {"token": "hush"}, "extra_headers": {"x-token": "hush"},
    }});
    let parsed = parse(&good).unwrap();
    let shown = format!("{parsed:?} {:?}", merge(&parsed.layer, &Layer::default()));
    assert!(!shown.contains("hush") && shown.contains("x-token"), "{shown}");
    for (key, value) in [
        ("extra_headers", json!({"x": "hush\n"})),
        ("extra_headers", json!({"x": ["hush"]})),
        ("extra_headers", json!("x: hush")),
        ("extra_body", json!("hush")),
        ("auth_scheme", json!("Bearer hush")),
        ("auth_header", json!("x: hush")),
    ] {
        let document = with(key, &value);
        let told = format!("{:?} {:?}", parse(&document).unwrap_err(), load(&document).1);
        assert!(!told.contains("hush"), "{told}");
    }
}

#[test]
fn what_older_versions_stored_is_still_read_and_a_bad_part_falls_back_alone() {
    let old = json!({"matcher": {
        "endpoint": "https://a.example", "dialect": "cohere", "extra_body": {}, "extra_headers": {},
        "auth_header": "Authorization", "auth_scheme": "Bearer", "omit_model": false,
    }});
    let (read, warnings) = load(&old);
    assert_eq!((Value::Object(read.to_json()), warnings), (old, Vec::new()));

    let (read, warnings) = load(&json!({"matcher": {
        "endpoint": "https://a.example", "dialect": "jina", "extra_body": [], "auth_header": "Host",
        "extra_headers": {"Host": "b", "x-a": "c"},
    }}));
    let places: Vec<_> = warnings.iter().filter_map(|warning| warning.pointer.as_deref()).collect();
    assert_eq!(
        places,
        ["/matcher/dialect", "/matcher/extra_body", "/matcher/auth_header", "/matcher/extra_headers/Host"]
    );
    let matcher = merge(&read, &Layer::default()).matcher.unwrap();
    assert_eq!((matcher.dialect, &*matcher.auth_header), (DialectChoice::Auto, "Authorization"));
    assert!(matcher.extra_body.is_empty());
    assert_eq!(matcher.extra_headers, [("x-a".to_owned(), Some("c".to_owned()))]);
}

proptest! {
    /// Whatever stands there, what is let through can be sent and reads back as the same.
    #[test]
    fn headers_that_pass_the_door_can_be_sent(
        entries in prop::collection::vec(("[ -~\\PC]{0,6}|x-[a-c]", "[ -~]{0,6}|\\PC{0,6}|[\\t\\r\\n]"), 0..5),
    ) {
        let headers = entries.into_iter().map(|(name, text)| (name, Value::from(text))).collect();
        let document = with("extra_headers", &Value::Object(headers));
        let (read, _) = load(&document);
        let written = Value::Object(read.to_json());
        prop_assert_eq!(Value::Object(layer(&written).to_json()), written);
        for (name, text) in merge(&read, &Layer::default()).matcher.unwrap().extra_headers {
            prop_assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()), "{name:?}");
            prop_assert!(!name.contains([':', '/', '"', '(']), "{name:?}");
            let text = text.unwrap();
            prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?}");
        }
    }
}
