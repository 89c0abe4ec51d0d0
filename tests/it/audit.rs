//! The log of changes: who changed what, without the secrets that were set.

use std::process::Command;

use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Client, TestApp};
use crate::keys::{Made, make};

const SECRET: &str = "audit-canary-5d1e0f8a77-zzqx";

/// All entries under a filter, by pages of two.
async fn entries(client: &Client, filter: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("/v1/audit?limit=2{filter}{cursor}")).await.ok();
        let entries = page["entries"].as_array().unwrap();
        assert!(entries.len() <= 2);
        all.extend(entries.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

fn actions(entries: &[Value]) -> Vec<&str> {
    entries.iter().rev().map(|entry| entry["action"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn each_change_is_told_once_and_without_its_values() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let config = json!({"max_warm_tools": 4, "matcher": {"endpoint": "https://rerank.example/v1", "api_key": SECRET,
        "extra_headers": {"x-token": SECRET}}});
    let headers = [("content-type", "application/json"), ("x-request-id", "change-1")];
    let put =
        admin.send(Method::PUT, "/v1/users/ada/config", &headers, Bytes::from(config.to_string())).await;
    put.ok();
    // What changes nothing is not a change, and a trial is none.
    admin.put("/v1/users/ada/config?dry_run=true", &json!({})).await.ok();
    admin.patch("/v1/users/ada/config", &json!({"max_warm_tools": 5})).await.ok();
    admin.patch("/v1/users/ada/config", &json!({"max_warm_tools": 5})).await.ok();
    admin.put("/v1/users/ada/config", &json!({"max_warm_tools": "many"})).await.expect_status(422);
    admin.delete("/v1/users/ada/config").await.expect_status(204);
    admin.delete("/v1/users/ada/config").await.expect_status(204);
    let tools: Vec<Value> = (0..30).map(|at| json!({"name": format!("tool_{at}")})).collect();
    let stored = admin.put("/v1/projects/apollo/catalog", &json!({"tools": tools})).await.ok();
    admin.put("/v1/projects/apollo/catalog", &json!({"tools": tools})).await.ok();
    admin.patch("/v1/projects/apollo/catalog", &json!({"remove": ["tool_7"]})).await.ok();
    admin.delete("/v1/projects/apollo/catalog").await.expect_status(204);

    let all = entries(admin, "").await;
    assert_eq!(
        actions(&all),
        ["config.put", "config.patch", "config.delete", "catalog.put", "catalog.patch", "catalog.delete"]
    );
    let at = |place: usize| &all[all.len() - 1 - place];
    let put = at(0);
    assert_eq!(
        (&put["actor"], &put["user"], &put["request_id"]),
        (&json!("admin"), &json!("ada"), &json!("change-1"))
    );
    assert_eq!((&put["before"], &put["after"]), (&json!("0"), &json!("1")));
    assert!(put["summary"].to_string().contains("matcher"), "{put}");
    assert_eq!(at(1)["summary"]["changed"], json!({"count": 1, "names": ["max_warm_tools"]}));
    assert_eq!((&at(2)["before"], &at(2)["after"]), (&json!("2"), &json!("0")));
    let upload = at(3);
    assert_eq!((&upload["project"], &upload["after"]), (&json!("apollo"), &stored["catalog_version"]));
    let added = &upload["summary"]["added"];
    assert_eq!((&added["count"], added["names"].as_array().unwrap().len()), (&json!(30), 20));
    assert_eq!(at(4)["summary"]["removed"], json!({"count": 1, "names": ["tool_7"]}));
    assert_eq!(at(5)["summary"]["removed"]["count"], 29);

    let text = format!("{all:?}");
    assert!(!text.contains(SECRET) && !text.contains(&SECRET[SECRET.len() - 4..]), "{text}");
    assert_eq!(actions(&entries(admin, "&user=ada").await), ["config.put", "config.patch", "config.delete"]);
    assert_eq!(entries(admin, "&project=apollo&action=catalog.put").await.len(), 1);
    assert_eq!(entries(admin, "&actor=cli").await.len(), 0);
    let since = at(5)["at_ms"].as_i64().unwrap() + 1;
    assert_eq!(entries(admin, &format!("&since_ms={since}")).await.len(), 0);
    assert_eq!(entries(admin, "&since_ms=0").await, all);
    admin.get("/v1/audit?limit=0").await.problem(422, "invalid_request");
    admin.get("/v1/audit?cursor=nonsense").await.problem(422, "invalid_request");
}

#[tokio::test]
async fn changes_of_keys_and_sessions_are_told() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let agent = make(&app, "agent", json!({"users": ["ada"]})).await;
    admin.patch(&agent.path(), &json!({"name": "renamed", "expires_in_seconds": 9_000})).await.ok();
    let rotated = admin.post(&format!("{}/rotate", agent.path()), &json!({})).await;
    let rotated = rotated.json();
    admin.delete(&agent.path()).await.expect_status(204);
    admin.delete(&agent.path()).await.expect_status(204);
    admin.put("/v1/users/ada/catalog", &json!({"tools": [{"name": "echo"}]})).await.ok();
    let ada = app.user_with_key("ada", rotated["key"].as_str().unwrap());
    for session in ["s", "t"] {
        ada.assemble(json!({"session": session})).await.ok();
    }
    // An agent's own sessions are its own business.
    ada.client().post("/v1/users/ada/sessions/s/reset", &json!({})).await.ok();
    ada.client().delete("/v1/users/ada/sessions/t").await.expect_status(204);
    admin.post("/v1/users/ada/sessions/s/reset", &json!({})).await.ok();
    admin.delete("/v1/users/ada/sessions/s").await.expect_status(204);
    admin.delete("/v1/users/ada/sessions/s").await.expect_status(204);

    let all = entries(admin, "").await;
    assert_eq!(
        actions(&all),
        [
            "key.create",
            "key.patch",
            "key.rotate",
            "key.revoke",
            "catalog.put",
            "session.reset",
            "session.delete"
        ]
    );
    let at = |place: usize| &all[all.len() - 1 - place];
    assert_eq!(at(0)["key"], agent.document["id"]);
    assert_eq!(at(0)["summary"]["users"], json!({"count": 1, "names": ["ada"]}));
    assert_eq!(at(1)["summary"]["changed"], json!(["name", "expires_in_seconds"]));
    assert_eq!(at(2)["summary"]["successor"], rotated["id"]);
    assert_eq!((&at(6)["user"], &at(6)["session"]), (&json!("ada"), &json!("s")));
    let text = format!("{all:?}");
    for key in [&*agent.key, rotated["key"].as_str().unwrap()] {
        assert!(!text.contains(&key[21..40]), "{text}");
    }
}

#[tokio::test]
async fn a_setup_key_sees_the_changes_of_its_scopes_alone() {
    let app = TestApp::start().await;
    let setup: Made = make(&app, "setup", json!({"users": ["team-*"], "projects": ["apollo"]})).await;
    let client = app.with_key(&setup.key);
    let config = json!({"max_warm_tools": 4});
    client.put("/v1/users/team-a/config", &config).await.ok();
    app.admin().put("/v1/users/team-a/config", &json!({})).await.ok();
    app.admin().put("/v1/users/other/config", &config).await.ok();
    let user = app.user_called("team-a");
    user.put_catalog(&[json!({"name": "echo"})]).await.ok();
    user.post("/v1/assemble", json!({"session": "s", "project": "hidden"})).await.ok();
    app.admin().delete("/v1/users/team-a/sessions/s?project=hidden").await.expect_status(204);

    let seen = entries(&client, "&user=team-a").await;
    assert_eq!(actions(&seen), ["config.put", "config.put", "catalog.put"]);
    assert_eq!((&seen[2]["actor"], &seen[1]["actor"]), (&setup.document["id"], &json!("admin")));
    assert!(entries(&client, "&user=team-a&project=apollo").await.is_empty());
    client.get("/v1/audit").await.problem(422, "invalid_request");
    client.get("/v1/audit?user=other").await.problem(404, "not_found");
    client.get("/v1/audit?user=team-a&project=hidden").await.problem(404, "not_found");
    assert_eq!(entries(app.admin(), "&user=team-a&project=hidden").await.len(), 1);
    let agent = make(&app, "agent", json!({"users": ["*"]})).await;
    app.with_key(&agent.key).get("/v1/audit?user=team-a").await.problem(403, "forbidden");
}

#[tokio::test]
async fn commands_are_told_and_old_entries_go() {
    let app = TestApp::builder().set("TOOLRACK_AUDIT_MAX_ENTRIES", 100).start().await;
    let url = format!("sqlite://{}", app.folder().join("toolrack.db").display());
    let file = app.folder().join("tools.json");
    std::fs::write(&file, r#"[{"name":"echo"}]"#).unwrap();
    let file = file.display().to_string();
    for arguments in [
        &["import", file.as_str(), "--user", "ada"][..],
        &["keys", "create", "--name", "x", "--role", "metrics"][..],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        let output = command.args(arguments).args(["--database-url", &url]).env_clear().output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let told = entries(app.admin(), "&actor=cli").await;
    assert_eq!(actions(&told), ["catalog.put", "key.create"]);
    assert!(told[0].get("request_id").is_none());
    let put = async |user: &str, at: usize| {
        let path = format!("/v1/users/{user}/config");
        app.admin().put(&path, &json!({"max_warm_tools": 1 + at % 2})).await.ok();
    };
    // One user's changes push out no other's, and nobody's what only administrators do.
    for at in 0..300 {
        put("busy", at).await;
    }
    let left = entries(app.admin(), "").await;
    assert!(left.len() <= 2 + 10 + 10, "{}", left.len());
    assert_eq!(left[0]["after"], "300");
    assert!(left[left.len() - 2..].iter().all(|entry| entry["actor"] == "cli"));
    for at in 0..300 {
        put(&format!("user-{}", at % 50), at / 50).await;
    }
    let left = entries(app.admin(), "").await;
    assert!((100..=111).contains(&left.len()), "{}", left.len());
    assert_eq!(actions(&left[left.len() - 1..]), ["key.create"]);
}
