//! Where a stored tool comes from: since when, who uploaded it, and that it stays out of what is uploaded again.

use serde_json::json;

use super::{plain, tool};
use crate::app::{TestApp, unique};
use crate::keys::make;

#[tokio::test]
async fn a_tool_tells_since_when_it_is_what_it_is_and_from_whom() {
    let mut app = TestApp::start().await;
    let id = unique("u");
    let user = app.user_called(&id);
    let (stays, changes) = (plain("stays", "g", "Stays."), plain("changes", "g", "One."));
    user.put_catalog(&[stays.clone(), changes]).await.ok();
    let before = tool(&user, "changes").await.ok()["provenance"].clone();
    assert_eq!(
        (&before["uploaded_by"], &before["first_seen_ms"]),
        (&json!("admin"), &before["changed_at_ms"])
    );
    assert!(before["first_seen_ms"].as_i64().unwrap() > 1_700_000_000_000);

    let key = make(&app, "setup", json!({"users": [id]})).await;
    let by_key = app.with_key(&key.key);
    let path = user.path(&["catalog"]);
    by_key.put(&path, &json!({"tools": [stays, plain("changes", "g", "Two.")]})).await.ok();
    app.restart().await;
    let user = app.user_called(&id);
    let after = tool(&user, "changes").await.ok()["provenance"].clone();
    assert_eq!(
        (&after["uploaded_by"], &after["first_seen_ms"]),
        (&json!(key.id()), &before["first_seen_ms"])
    );
    assert!(after["changed_at_ms"].as_i64() >= before["changed_at_ms"].as_i64());
    assert_ne!(after["digest"], before["digest"]);
    assert_eq!(tool(&user, "stays").await.ok()["provenance"]["uploaded_by"], "admin");
}

#[tokio::test]
async fn a_tool_that_was_read_is_uploaded_again_as_it_was() {
    let app = TestApp::start().await;
    let user = app.user();
    let own = json!({"name": "b", "group": "g", "provenance": {"vendor": "v"}});
    user.put_catalog(&[plain("a", "g", "A."), own]).await.ok();
    let read = [tool(&user, "a").await.ok(), tool(&user, "b").await.ok()];
    assert!(read.iter().all(|tool| tool["provenance"]["digest"].is_string()), "{read:?}");
    let again = user.put_catalog(&read).await.ok();
    assert_eq!(again["unchanged"]["count"], 2, "{again}");
    // What an uploader calls so stays the uploader's.
    assert_eq!(read[1]["extra"]["provenance"]["vendor"], "v");
    let listed = user.client().get(&user.path(&["catalog"])).await.ok();
    assert!(listed["tools"].as_array().unwrap().iter().all(|tool| tool.get("provenance").is_none()));
}
