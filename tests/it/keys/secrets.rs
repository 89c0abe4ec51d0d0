//! A key is shown once, and stands nowhere else.

use serde_json::json;

use super::{Made, make};
use crate::app::TestApp;

#[tokio::test]
async fn no_secret_stands_anywhere_but_in_the_answer_that_made_it() {
    let mut app = TestApp::builder().set("TOOLRACK_LOG_LEVEL", "trace").start().await;
    let agent = make(&app, "agent", json!({"users": ["u"]})).await;
    let metrics = make(&app, "metrics", json!({})).await;
    let rotated = app.admin().post(&format!("{}/rotate", agent.path()), &json!({})).await;
    let rotated = Made::from(rotated.json());
    let mut texts = Vec::new();
    for made in [&agent, &metrics, &rotated] {
        let client = app.with_key(&made.key);
        texts.push(client.get("/v1/limits").await.text().to_owned());
        texts.push(client.get("/v1/keys").await.text().to_owned());
        texts.push(client.post("/v1/search", &json!({"user": "u", "query": "x"})).await.text().to_owned());
        texts.push(client.post("/v1/search", &json!({"user": "other", "query": 7})).await.text().to_owned());
        texts.push(app.with_key(&made.key[..93]).get("/v1/limits").await.text().to_owned());
        texts.push(app.admin().get(&made.path()).await.text().to_owned());
        let patched = app.admin().patch(&made.path(), &json!({"name": "renamed"})).await;
        texts.push(patched.text().to_owned());
    }
    for path in ["/v1/keys", "/metrics", "/readyz", "/v1/config/effective?user=u"] {
        texts.push(app.admin().get(path).await.text().to_owned());
    }
    app.restart().await;
    texts.push(app.logs());
    for entry in std::fs::read_dir(app.folder()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    for made in [&agent, &metrics, &rotated] {
        let secret = &made.key[21..85];
        assert!(made.key[20..21] == *"_" && secret.bytes().all(|byte| byte.is_ascii_hexdigit()));
        for text in &texts {
            assert!(!text.contains(&secret[..16]) && !text.contains(&secret[48..]), "{text:.2000}");
        }
        assert!(texts.iter().any(|text| text.contains(made.id())), "ids are shown");
    }
}
