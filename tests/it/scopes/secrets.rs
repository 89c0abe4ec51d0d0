//! The key of an endpoint: written, used, never read back.

use serde_json::{Value, json};

use super::has_warning;
use crate::app::{Answer, TestApp};

const SECRET: &str = "sk-canary-5f3a9c71e2b84d06";

fn matcher(endpoint: &str, api_key: Option<Value>) -> Value {
    let mut matcher = json!({"endpoint": endpoint});
    if let Some(key) = api_key {
        matcher["api_key"] = key;
    }
    json!({ "matcher": matcher })
}

#[tokio::test]
async fn a_secret_is_kept_while_its_origin_stays_and_is_never_read_back() {
    let mut app = TestApp::builder().set("TOOLRACK_LOG_LEVEL", "trace").start().await;
    let user = app.user();
    let at = user.path(&["config"]);
    let here = "https://rerank.example.com/v2/rerank";
    let masked = json!({"set": true, "last4": "4d06"});
    let mut seen = String::new();
    let key_of = |answer: &Answer| answer.ok()["matcher"]["api_key"].clone();

    let put = user.put_config(&matcher(here, Some(json!(SECRET)))).await;
    assert_eq!(put.ok()["config"]["matcher"]["api_key"], masked);
    seen.push_str(put.text());
    for (body, kept) in [
        (matcher(here, None), true),
        (matcher(here, Some(json!({"set": true}))), true),
        (matcher(here, Some(masked.clone())), true),
        (matcher("https://rerank.example.com:443/other/path?x=1", None), true),
        (matcher("https://RERANK.example.com/v2/rerank", None), true),
    ] {
        let answer = user.put_config(&body).await;
        seen.push_str(answer.text());
        let read = app.admin().get(&at).await;
        assert_eq!(key_of(&read) == masked, kept, "{body}");
        assert_eq!(answer.ok()["warnings"], json!([]), "{body}");
        seen.push_str(read.text());
    }
    let effective = app.admin().get(&format!("/v1/config/effective?user={}", user.id)).await;
    assert_eq!(effective.ok()["config"]["matcher"]["value"]["api_key"], masked);
    seen.push_str(effective.text());
    let patched = app.admin().patch(&at, &json!({"matcher": {"top_n": 9}})).await;
    seen.push_str(patched.text());
    assert_eq!(key_of(&app.admin().get(&at).await), masked);

    // Another scheme, host or port: the key must not follow.
    for elsewhere in ["https://evil.example.com/v2/rerank", "https://rerank.example.com:8443/v2/rerank"] {
        user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
        for keep in [None, Some(json!({"set": true}))] {
            user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
            let moved = user.put_config(&matcher(elsewhere, keep)).await;
            seen.push_str(moved.text());
            assert!(has_warning(&moved.ok(), "secret_cleared", "/matcher/api_key"), "{}", moved.text());
            assert_eq!(key_of(&app.admin().get(&at).await), Value::Null);
            // Nor does it come back with its host.
            let back = user.put_config(&matcher(here, None)).await.ok();
            assert_eq!(back["config"]["matcher"].get("api_key"), None);
        }
        user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
        let dry = app.admin().put(&format!("{at}?dry_run=true"), &matcher(elsewhere, None)).await;
        assert!(has_warning(&dry.ok(), "secret_cleared", "/matcher/api_key"));
        assert_eq!(key_of(&app.admin().get(&at).await), masked, "a dry run clears nothing");
    }
    let with_both = user
        .put_config(&matcher("https://other.example.com/", Some(json!("new-key-of-the-other-host"))))
        .await;
    assert_eq!(with_both.ok()["config"]["matcher"]["api_key"]["last4"], "host");
    assert_eq!(with_both.ok()["warnings"], json!([]));

    user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
    user.put_config(&matcher(here, Some(Value::Null))).await.ok();
    assert_eq!(key_of(&app.admin().get(&at).await), Value::Null, "null clears");
    let short = user.put_config(&matcher(here, Some(json!("short-key-1")))).await.ok();
    assert_eq!(short["config"]["matcher"]["api_key"], json!({"set": true}), "too short to show a part");
    user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
    user.put_config(&json!({})).await.ok();
    let back = user.put_config(&matcher(here, None)).await.ok();
    assert_eq!(back["config"]["matcher"].get("api_key"), None, "the key went with its matcher");

    // Refusals do not repeat it either, wherever it was put by mistake.
    for bad in [
        json!({"matcher": {"endpoint": here, "api_key": {"value": SECRET}}}),
        json!({"matcher": {"endpoint": here, "apikey": SECRET}}),
        json!({"matcher": {"endpoint": here, "api_key": format!("{SECRET}\n")}}),
        json!({"matcher": {"endpoint": here, "api_key": [SECRET]}}),
        json!({"matcher": {"endpoint": format!("https://x:{SECRET}@rerank.example.com"), "api_key": SECRET}}),
    ] {
        let refused = user.put_config(&bad).await;
        refused.problem(422, "invalid_request");
        seen.push_str(refused.text());
    }
    user.put_config(&matcher(here, Some(json!(SECRET)))).await.ok();
    app.restart().await;
    let read = app.admin().get(&at).await;
    assert_eq!(key_of(&read), masked, "sealed, and there after a restart");
    seen.push_str(read.text());
    for place in ["/metrics", "/openapi.json", "/readyz"] {
        seen.push_str(app.admin().get(place).await.text());
    }
    assert!(!seen.contains(SECRET), "an answer holds the key");
    assert!(!app.logs().contains(SECRET), "the log holds the key");
    for entry in std::fs::read_dir(app.folder()).unwrap() {
        let file = entry.unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{} holds the key", file.display());
    }
}

#[tokio::test]
async fn headers_are_sealed_kept_and_cleared_like_the_key() {
    let mut app = TestApp::start().await;
    let user = app.user();
    let here = "https://rerank.example.com/v2/rerank";
    let config =
        |endpoint: &str, headers: Value| json!({"matcher": {"endpoint": endpoint, "extra_headers": headers}});
    let set = json!({"set": true});
    let shown = async |app: &TestApp| {
        app.admin().get(&user.path(&["config"])).await.ok()["matcher"]["extra_headers"].clone()
    };
    let put = user.put_config(&config(here, json!({"X-Token": SECRET, "x-team": "blue"}))).await.ok();
    assert_eq!(put["config"]["matcher"]["extra_headers"], json!({"X-Token": set, "x-team": set}));
    // What was read can be written back.
    let back = user.put_config(&put["config"]).await.ok();
    assert_eq!((&back["warnings"], &back["revision"]), (&json!([]), &put["revision"]));
    let changed = user.put_config(&config(here, json!({"x-token": set, "x-team": "red"}))).await.ok();
    let keys: Vec<&Value> =
        changed["changes"]["changed"].as_array().unwrap().iter().map(|c| &c["key"]).collect();
    assert!(keys.contains(&&json!("matcher.extra_headers")), "{changed}");
    assert_eq!(changed["warnings"], json!([]));

    let unknown = user.put_config(&config(here, json!({"x-token": set, "x-new": set}))).await.ok();
    assert!(has_warning(&unknown, "secret_missing", "/matcher/extra_headers/x-new"), "{unknown}");
    assert_eq!(shown(&app).await, json!({"x-token": set}), "x-team is not named, and gone");
    let again = user.put_config(&config(here, json!({"x-token": set, "x-team": set}))).await.ok();
    assert!(has_warning(&again, "secret_missing", "/matcher/extra_headers/x-team"), "{again}");

    // Another host gets none of it, nor does it come back.
    let dry = format!("{}?dry_run=true", user.path(&["config"]));
    let elsewhere = "https://evil.example.com/v2/rerank";
    let moved = json!({"matcher": {"endpoint": elsewhere}});
    for path in [&dry, &user.path(&["config"])] {
        let moved = app.admin().patch(path, &moved).await.ok();
        assert!(has_warning(&moved, "secret_cleared", "/matcher/extra_headers/x-token"), "{moved}");
        assert_eq!(moved["config"]["matcher"]["extra_headers"], json!({}));
    }
    let back = user.put_config(&config(here, json!({"x-token": set}))).await.ok();
    assert!(has_warning(&back, "secret_missing", "/matcher/extra_headers/x-token"), "{back}");

    user.put_config(&config(here, json!({"X-Token": SECRET, "x-team": "blue"}))).await.ok();
    app.restart().await;
    let at = user.path(&["config"]);
    let patch = json!({"matcher": {"extra_headers": {"x-team": null}}});
    let patched = app.admin().patch(&at, &patch).await.ok();
    assert_eq!(patched["config"]["matcher"]["extra_headers"], json!({"X-Token": set}));
    app.admin().patch(&at, &json!({"matcher": {"extra_headers": {"X-Token": {"set": false}}}})).await.ok();
    let last = app.admin().get(&at).await.ok();
    assert_eq!(last["matcher"]["extra_headers"], json!({}));
    for entry in std::fs::read_dir(app.folder()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
    }
}
