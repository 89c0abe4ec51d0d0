//! The matcher and its secret.

use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::*;

#[test]
fn an_endpoint_is_a_plain_http_address() {
    for good in ["https://api.example/v1/rerank?version=2", "http://127.0.0.1:9000", "http://[::1]:8080/x"] {
        let stored = layer(&json!({"matcher": {"endpoint": good}})).to_json();
        assert_eq!(stored["matcher"]["endpoint"], json!(good), "shown as it was written");
    }
    for bad in [
        "",
        "rank.example",
        "ftp://a",
        "https://u:p@a",
        "https://a/#x",
        "https://a b",
        "http://",
        "http://a\n",
    ] {
        assert_eq!(
            faults(&json!({"matcher": {"endpoint": bad}})),
            ["/matcher/endpoint invalid_value"],
            "{bad:?}"
        );
    }
}

#[test]
fn an_origin_has_its_port() {
    let origin = |text: &str| origin_of(Endpoint::parse(text).unwrap().url());
    assert_eq!(origin("https://API.example/v1?x=1"), "https://api.example:443");
    assert_eq!(origin("http://[::1]/"), "http://[::1]:80");
    assert_eq!(origin("http://a:9000"), origin("http://a:9000/v2/rerank"));
    assert_ne!(origin("http://a"), origin("https://a"));
}

#[test]
fn a_write_sets_keeps_or_clears_the_key() {
    let write = |key: Value| {
        parse(&json!({"matcher": {"endpoint": "https://a.example", "api_key": key}}))
            .map(|parsed| parsed.secrets)
    };
    assert!(matches!(write(json!("sk-1")), Ok(SecretWrite::Set(key)) if key.expose_secret() == "sk-1"));
    assert!(matches!(write(json!(null)), Ok(SecretWrite::Clear)));
    assert!(matches!(write(json!({"set": true, "last4": "wxyz"})), Ok(SecretWrite::Keep)));
    assert!(matches!(write(json!({"set": false})), Ok(SecretWrite::Clear)));
    let secrets = |document: Value| parse(&document).unwrap().secrets;
    assert!(matches!(secrets(json!({"matcher": {"endpoint": "https://a.example"}})), SecretWrite::Keep));
    assert!(matches!(secrets(json!({"matcher": null})), SecretWrite::Clear));
    assert!(matches!(secrets(json!({})), SecretWrite::Clear));
    for bad in [
        json!(""),
        json!(" k"),
        json!("k\n"),
        json!("ключ"),
        json!(5),
        json!([]),
        json!({}),
        json!({"set": 1}),
    ] {
        assert!(write(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn the_key_is_nowhere_to_be_seen() {
    let document = json!({"matcher": {"endpoint": "https://a.example", "api_key": "sk-verysecret"}});
    let parsed = parse(&document).unwrap();
    let policy = merge(&parsed.layer, &Layer::default());
    let shown = format!(
        "{parsed:?} {policy:?} {} {}",
        Value::Object(parsed.layer.to_json()),
        Value::Object(effective(&parsed.layer, &Layer::default()))
    );
    assert!(!shown.contains("verysecret"));
    let refused = json!({"matcher": {"endpoint": "https://a.example", "api_key": "sk-verysecret\u{1}"}});
    assert!(!format!("{:?}", parse(&refused)).contains("verysecret"));
    let refused = json!({"matcher": {"endpoint": "https://u:verysecret@a.example"}});
    assert!(!format!("{:?}", parse(&refused)).contains("verysecret"));
}

#[test]
fn a_matcher_is_taken_whole_from_one_layer() {
    let user = layer(&json!({"matcher": {"endpoint": "https://user.example", "model": "m", "top_n": 7}}));
    let project = layer(&json!({"matcher": {"endpoint": "https://project.example"}}));
    let both = merge(&user, &project).matcher.unwrap();
    assert_eq!((both.layer, both.endpoint.host_str()), (Origin::Project, Some("project.example")));
    assert_eq!((both.model, both.top_n, both.timeout_ms), (None, 20, 15_000));
    let alone = merge(&user, &Layer::default()).matcher.unwrap();
    assert_eq!((alone.layer, alone.top_n, alone.max_documents), (Origin::User, 7, 200));
    assert_eq!(Policy::default().matcher, None);
}
