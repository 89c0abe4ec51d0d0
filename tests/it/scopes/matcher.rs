//! What a matcher says about the requests to its endpoint: written, shown, refused.

use serde_json::{Value, json};

use crate::app::TestApp;

fn matcher(key: &str, value: &Value) -> Value {
    json!({"matcher": {"endpoint": "https://x.example/rerank", key: value}})
}

#[tokio::test]
async fn dialects_and_additions_to_a_request_are_stored_as_they_are_written() {
    let mut app = TestApp::start().await;
    let user = app.user();
    for dialect in
        ["auto", "cohere", "tei", "dashscope", "nim", "voyage", "mixedbread", "pinecone", "elastic"]
    {
        let config = matcher("dialect", &json!(dialect));
        let written = user.put_config(&config).await.ok();
        assert_eq!((&written["config"], &written["warnings"]), (&config, &json!([])));
    }
    let config = json!({"matcher": {
        "endpoint": "https://x.example/rerank", "extra_body": {"api_version": 2, "user": null},
        "extra_headers": {"X-Region": "eu", "x-project": "p 1"}, "auth_header": "api-key", "auth_scheme": "",
        "omit_model": true,
    }});
    let written = user.put_config(&config).await.ok();
    let mut config = config;
    config["matcher"]["extra_headers"] = json!({"X-Region": {"set": true}, "x-project": {"set": true}});
    assert_eq!((&written["config"], &written["warnings"]), (&config, &json!([])));
    app.restart().await;
    let view = app.admin().get(&format!("/v1/config/effective?user={}", user.id)).await.ok();
    for (key, value) in config["matcher"].as_object().unwrap() {
        assert_eq!(&view["config"]["matcher"]["value"][key], value, "{key}");
    }
    // A patch changes single headers and fields, and leaves the others, nulls among them, as they are.
    let patch = json!({"matcher": {"extra_headers": {"x-project": null}, "extra_body": {"api_version": 3}}});
    let patched = app.admin().patch(&user.path(&["config"]), &patch).await.ok();
    assert_eq!(patched["config"]["matcher"]["extra_headers"], json!({"X-Region": {"set": true}}));
    assert_eq!(patched["config"]["matcher"]["extra_body"], json!({"api_version": 3, "user": null}));
}

#[tokio::test]
async fn additions_that_cannot_be_sent_are_refused_with_their_place() {
    let app = TestApp::start().await;
    let user = app.user();
    let many: Value = (0..33).map(|n| (format!("x-{n}"), json!("v"))).collect();
    for (key, value, pointer) in [
        ("dialect", json!("jina"), "/matcher/dialect"),
        ("extra_body", json!([]), "/matcher/extra_body"),
        ("extra_body", json!({"a": "x".repeat(16_384)}), "/matcher/extra_body"),
        ("extra_headers", json!({"Host": "b"}), "/matcher/extra_headers/Host"),
        ("extra_headers", json!({"proxy-authorization": "b"}), "/matcher/extra_headers/proxy-authorization"),
        ("extra_headers", json!({"x": "hush\r\nHost: b"}), "/matcher/extra_headers/x"),
        ("extra_headers", json!({"x/y": "b"}), "/matcher/extra_headers/x~1y"),
        ("extra_headers", json!({"x": 7}), "/matcher/extra_headers/x"),
        ("extra_headers", many, "/matcher/extra_headers"),
        ("auth_header", json!("Cookie"), "/matcher/auth_header"),
        ("auth_scheme", json!("Bearer hush"), "/matcher/auth_scheme"),
        ("omit_model", json!("yes"), "/matcher/omit_model"),
    ] {
        let answer = user.put_config(&matcher(key, &value)).await;
        let problem = answer.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert!(!answer.text().contains("hush"), "{problem}");
    }
    assert_eq!(app.admin().get(&user.path(&["config"])).await.ok(), json!({}));
}
