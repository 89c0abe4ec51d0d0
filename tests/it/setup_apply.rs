//! Applying a setup: config and catalog together, and putting an earlier config back.

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::TestApp;

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}")})
}

async fn stored(app: &TestApp) -> (Value, Value) {
    let config = app.admin().get("/v1/users/alice/config").await.json();
    let catalog = app.admin().get("/v1/users/alice/catalog").await.json();
    (config, catalog["tools"].clone())
}

#[tokio::test]
async fn both_are_written_or_nothing() {
    let app = TestApp::start().await;
    let setup =
        json!({"user": "alice", "config": {"core": ["read"]}, "tools": [tool("read"), tool("write")]});
    let dry = app.admin().post("/v1/setup/apply?dry_run=true", &setup).await;
    assert_eq!(dry.status, 200, "{dry:?}");
    assert_eq!(dry.json()["catalog"]["added"]["names"], json!(["read", "write"]));
    assert_eq!(stored(&app).await, (json!({}), json!([])));

    let applied = app.admin().post("/v1/setup/apply", &setup).await;
    assert_eq!(applied.status, 200, "{applied:?}");
    assert_eq!(applied.json()["config"]["changes"]["added"], json!(["core"]));
    let (config, tools) = stored(&app).await;
    assert_eq!(config, json!({"core": ["read"]}));
    assert_eq!(tools.as_array().unwrap().len(), 2);

    // A config that is refused takes the tools with it, and the other way round.
    for refused in [
        json!({"user": "alice", "config": {"core": 1}, "tools": [tool("other")]}),
        json!({"user": "alice", "config": {"core": ["write"]}, "tools": []}),
        json!({"user": "alice", "config": {"core": ["write"]}, "tools": [1]}),
    ] {
        let answer = app.admin().post("/v1/setup/apply", &refused).await;
        assert_eq!(answer.status, 422, "{refused} {answer:?}");
        assert_eq!(stored(&app).await, (config.clone(), tools.clone()));
    }
    for incomplete in [json!({"user": "alice"}), json!({"config": {}})] {
        let answer = app.admin().post("/v1/setup/apply", &incomplete).await;
        assert_eq!(answer.status, 422, "{answer:?}");
    }
}

#[tokio::test]
async fn who_comes_second_overwrites_nothing() {
    let app = TestApp::start().await;
    let setup = json!({"user": "alice", "config": {"core": ["read"]}, "tools": [tool("read")]});
    let first = app.admin().post("/v1/setup/apply", &setup).await;
    let tag = first.header("etag").unwrap().to_owned();
    // Somebody changes the catalog alone.
    app.admin().patch("/v1/users/alice/catalog", &json!({"upsert": [tool("write")]})).await;
    let before = stored(&app).await;
    let headers = [("if-match", tag.as_str()), ("content-type", "application/json")];
    let body = json!({"user": "alice", "config": {"core": []}}).to_string();
    let late = app.admin().send(Method::POST, "/v1/setup/apply", &headers, body.clone().into()).await;
    assert_eq!(late.status, 412, "{late:?}");
    assert_eq!(stored(&app).await, before);
    // With what is stored now it goes.
    let now = app
        .admin()
        .post("/v1/setup/apply?dry_run=true", &json!({"user": "alice", "config": {"core": []}}))
        .await;
    let tag = now.header("etag").unwrap().to_owned();
    let headers = [("if-match", tag.as_str()), ("content-type", "application/json")];
    let again = app.admin().send(Method::POST, "/v1/setup/apply", &headers, body.into()).await;
    assert_eq!(again.status, 200, "{again:?}");
    for never in ["\"7\"", "\"x-y\"", "\"1\""] {
        let headers = [("if-match", never), ("content-type", "application/json")];
        let body = json!({"user": "alice", "config": {}}).to_string();
        let answer = app.admin().send(Method::POST, "/v1/setup/apply", &headers, body.into()).await;
        assert_eq!(answer.status, 412, "{never}");
    }
}

#[tokio::test]
async fn the_last_ten_configs_can_be_put_back_after_a_restart_too() {
    let mut app = TestApp::start().await;
    for revision in 1..=14 {
        let config = json!({"max_warm_tools": revision});
        app.admin().put("/v1/projects/p/config", &config).await;
    }
    app.restart().await;
    let list = app.admin().get("/v1/projects/p/config/versions").await.json();
    let versions = list["versions"].as_array().unwrap();
    let revisions: Vec<i64> = versions.iter().map(|version| version["revision"].as_i64().unwrap()).collect();
    assert_eq!(revisions, (4..=14).rev().collect::<Vec<i64>>());
    assert!(versions[0]["current"] == true && versions[1]["current"] == false, "{list}");
    assert_eq!(versions[10]["config"], json!({"max_warm_tools": 4}));

    let back = app.admin().post("/v1/projects/p/config/restore", &json!({"revision": 9})).await;
    assert_eq!(back.status, 200, "{back:?}");
    assert_eq!(app.admin().get("/v1/projects/p/config").await.json(), json!({"max_warm_tools": 9}));
    assert_eq!(back.json()["revision"], 15);
    // It is a change like any other: logged, and undone by the next.
    let log = app.admin().get("/v1/audit?project=p").await.json();
    assert_eq!(log["entries"][0]["action"], "config.restore");
    let gone = app.admin().post("/v1/projects/p/config/restore", &json!({"revision": 3})).await;
    assert_eq!(gone.status, 422);
    let headers = [("if-match", "\"14\""), ("content-type", "application/json")];
    let body = json!({"revision": 14}).to_string();
    let late = app.admin().send(Method::POST, "/v1/projects/p/config/restore", &headers, body.into()).await;
    assert_eq!(late.status, 412);
}

#[tokio::test]
async fn a_version_holds_no_secret_and_brings_none_back() {
    let app = TestApp::start().await;
    let matcher = |host: &str, key: &str| json!({"matcher": {"endpoint": format!("https://{host}.example/rerank"), "api_key": key}});
    app.admin().put("/v1/users/alice/config", &matcher("one", "sk-first-secret-0001")).await;
    app.admin().put("/v1/users/alice/config", &matcher("two", "sk-second-secret-0002")).await;
    let list = app.admin().get("/v1/users/alice/config/versions").await;
    assert!(!list.text().contains("secret"), "{list:?}");
    let back = app.admin().post("/v1/users/alice/config/restore", &json!({"revision": 1})).await.json();
    assert_eq!(back["config"]["matcher"]["endpoint"], "https://one.example/rerank");
    assert!(back["config"]["matcher"]["api_key"]["set"] != true, "{back}");
    assert_eq!(back["warnings"][0]["code"], "secret_cleared", "{back}");
}

#[tokio::test]
async fn what_leaves_no_tool_or_means_nothing_is_told_before_it_is_written() {
    let app = TestApp::start().await;
    app.admin().put("/v1/users/alice/catalog", &json!({"tools": [tool("read"), tool("write")]})).await.ok();
    let codes = |answer: &Value| -> Vec<String> {
        let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
        warnings.iter().filter_map(|warning| warning["code"].as_str()).map(str::to_owned).collect()
    };
    for (config, code) in [
        (json!({"deny": ["*"]}), "empty_grant"),
        (json!({"allow": ["nosuch*"]}), "empty_grant"),
        (json!({"core": ["nosuch"]}), "core_not_found"),
        (json!({"default_toolsets": ["zzz"]}), "unknown_toolset"),
    ] {
        let setup = json!({"user": "alice", "config": config});
        let previewed = app.admin().post("/v1/setup/preview", &setup).await.ok();
        let tried = app.admin().post("/v1/setup/apply?dry_run=true", &setup).await.ok();
        assert!(codes(&tried).iter().any(|told| told == code), "{config}: {tried}");
        assert_eq!(codes(&tried), codes(&previewed), "{config}");
        // With tools that come at the same time, too.
        let with_tools = json!({"user": "bob", "config": config, "tools": [tool("read")]});
        let tried = app.admin().post("/v1/setup/apply?dry_run=true", &with_tools).await.ok();
        assert!(codes(&tried).iter().any(|told| told == code), "{config}: {tried}");
        assert_eq!(codes(&app.admin().post("/v1/setup/apply", &with_tools).await.ok()), codes(&tried));
    }
    assert_eq!(stored(&app).await.0, json!({}));
}
