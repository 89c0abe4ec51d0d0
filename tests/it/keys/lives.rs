//! A key from its making to its end, and what it may see of sessions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Made, make};
use crate::app::{Client, TestApp};

/// What a key can be made of, and what not.
#[tokio::test]
async fn what_is_wrong_with_a_key_is_named() {
    let app = TestApp::start().await;
    for (body, pointer) in [
        (json!({"role": "agent", "users": ["u"]}), "/name"),
        (json!({"name": " ", "role": "admin"}), "/name"),
        (json!({"name": "a\nb", "role": "admin"}), "/name"),
        (json!({"name": "x".repeat(201), "role": "admin"}), "/name"),
        (json!({"name": "x"}), "/role"),
        (json!({"name": "x", "role": "owner"}), "/role"),
        (json!({"name": "x", "role": "agent"}), "/users"),
        (json!({"name": "x", "role": "setup"}), "/users"),
        (json!({"name": "x", "role": "admin", "users": ["*"]}), "/users"),
        (json!({"name": "x", "role": "agent", "users": ["a b"]}), "/users/0"),
        (json!({"name": "x", "role": "agent", "users": ["a*b"]}), "/users/0"),
        (json!({"name": "x", "role": "agent", "users": ["a"], "projects": ["ok", ""]}), "/projects/1"),
        (json!({"name": "x", "role": "agent", "users": ["a"], "deny": ["@"]}), "/deny/0"),
        (json!({"name": "x", "role": "setup", "users": ["a"], "deny": ["x"]}), "/deny"),
        (
            json!({"name": "x", "role": "agent", "users": ["a"], "expires_in_seconds": 0}),
            "/expires_in_seconds",
        ),
        (json!({"name": "x", "role": "admin", "key": "my-own"}), "/key"),
    ] {
        let problem = app.admin().post("/v1/keys", &body).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
    }
    assert_eq!(app.admin().get("/v1/keys").await.ok(), json!({"keys": []}));
    for id in ["0123456789abcdef", "nonsense", "0123456789ABCDEF"] {
        let path = format!("/v1/keys/{id}");
        app.admin().get(&path).await.problem(404, "not_found");
        app.admin().patch(&path, &json!({"name": "x"})).await.problem(404, "not_found");
        app.admin().delete(&path).await.problem(404, "not_found");
        app.admin().post(&format!("{path}/rotate"), &json!({})).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn keys_are_listed_changed_and_revoked() {
    let mut app = TestApp::start().await;
    let bindings = json!({"users": ["ada", "team-*"], "projects": ["*"], "toolsets": ["t"], "allow": ["a*"],
        "deny": ["@b"], "expires_in_seconds": 1000});
    let made = make(&app, "agent", bindings.clone()).await;
    let document = app.admin().get(&made.path()).await.ok();
    assert_eq!(document, made.document);
    for key in ["users", "projects", "toolsets", "allow", "deny"] {
        assert_eq!(document[key], bindings[key], "{key}");
    }
    let lives = document["expires_at_ms"].as_i64().unwrap() - document["created_at_ms"].as_i64().unwrap();
    assert_eq!((&document["status"], lives), (&json!("active"), 1_000_000));
    assert_eq!(document["last_used_ms"], Value::Null);

    let client = app.with_key(&made.key);
    client.get("/v1/limits").await.ok();
    let used = app.admin().get(&made.path()).await.ok()["last_used_ms"].clone();
    assert!(used.as_i64() >= document["created_at_ms"].as_i64(), "{used}");
    app.restart().await;
    assert_eq!(app.admin().get(&made.path()).await.ok()["last_used_ms"], used, "flushed before the end");

    let changed =
        app.admin().patch(&made.path(), &json!({"name": "new", "expires_in_seconds": null})).await.ok();
    assert_eq!((&changed["name"], &changed["expires_at_ms"]), (&json!("new"), &Value::Null));
    let kept = app.admin().patch(&made.path(), &json!({})).await.ok();
    assert_eq!(kept, changed);
    for (patch, pointer) in [
        (json!({"name": ""}), "/name"),
        (json!({"expires_in_seconds": 0}), "/expires_in_seconds"),
        (json!({"users": ["*"]}), "/users"),
        (json!({"role": "admin"}), "/role"),
    ] {
        let problem = app.admin().patch(&made.path(), &patch).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{patch}");
    }
    // The very next request is refused.
    let client = app.with_key(&made.key);
    client.get("/v1/limits").await.ok();
    for _ in 0..2 {
        app.admin().delete(&made.path()).await.expect_status(204);
        client.get("/v1/limits").await.problem(401, "unauthorized");
    }
    let revoked = app.admin().get(&made.path()).await.ok();
    assert!(revoked["status"] == "revoked" && revoked["revoked_at_ms"].is_i64(), "{revoked}");
    app.kill();
    app.start_again().await;
    app.with_key(&made.key).get("/v1/limits").await.problem(401, "unauthorized");

    let mut wanted = vec![made.id().to_owned()];
    for _ in 0..4 {
        wanted.push(make(&app, "metrics", json!({})).await.id().to_owned());
    }
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.admin().get(&format!("/v1/keys?limit=2{cursor}")).await.ok();
        let keys = page["keys"].as_array().unwrap();
        assert!((1..=2).contains(&keys.len()));
        listed.extend(keys.iter().map(|key| key["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    // Keys of one millisecond stand by id.
    listed.sort();
    wanted.sort();
    assert_eq!(listed, wanted);
    for query in ["limit=0", "limit=201", "cursor=zz", "role=admin"] {
        app.admin().get(&format!("/v1/keys?{query}")).await.problem(422, "invalid_request");
    }
}

async fn rotate(app: &TestApp, key: &Made, body: Value) -> Made {
    let answer = app.admin().post(&format!("{}/rotate", key.path()), &body).await;
    answer.expect_status(201);
    Made::from(answer.json())
}

#[tokio::test]
async fn old_and_new_key_overlap() {
    let app = TestApp::start().await;
    let bindings = json!({"users": ["ada"], "deny": ["x"], "expires_in_seconds": 500_000});
    let old = make(&app, "agent", bindings).await;
    let new = rotate(&app, &old, json!({})).await;
    for key in [&old, &new] {
        app.with_key(&key.key).post("/v1/assemble", &json!({"user": "ada"})).await.ok();
        app.with_key(&key.key).post("/v1/assemble", &json!({"user": "eve"})).await.problem(404, "not_found");
    }
    let ended = app.admin().get(&old.path()).await.ok();
    let of = |document: &Value, key: &str| document[key].as_i64().unwrap();
    assert_eq!((&ended["successor"], &new.document["predecessor"]), (&json!(new.id()), &json!(old.id())));
    assert_eq!(of(&ended, "expires_at_ms") - of(&new.document, "created_at_ms"), 86_400_000);
    let lives = of(&new.document, "expires_at_ms") - of(&new.document, "created_at_ms");
    assert_eq!(lives, 500_000_000, "as long as the old one was made for");
    assert_eq!(new.document["deny"], json!(["x"]));

    let again = app.admin().post(&format!("{}/rotate", old.path()), &json!({})).await;
    again.problem(409, "conflict");
    // Without an overlap the old one ends at once; a body is not needed.
    let last = rotate(&app, &new, json!({"overlap_seconds": 0})).await;
    app.with_key(&new.key).get("/v1/limits").await.problem(401, "unauthorized");
    app.with_key(&last.key).get("/v1/limits").await.ok();
    let answer =
        app.admin().send(reqwest::Method::POST, &format!("{}/rotate", last.path()), &[], "".into()).await;
    answer.expect_status(201);
    for body in [json!({"overlap_seconds": 2_592_001}), json!({"overlap_seconds": -1}), json!({"overlap": 1})]
    {
        let fresh = make(&app, "metrics", json!({})).await;
        let refused = app.admin().post(&format!("{}/rotate", fresh.path()), &body).await;
        refused.problem(422, "invalid_request");
    }
}

#[tokio::test]
async fn a_key_ends_when_its_time_is_over() {
    let app = TestApp::start().await;
    let key = make(&app, "metrics", json!({"expires_in_seconds": 1})).await;
    let client = app.with_key(&key.key);
    client.get("/metrics").await.ok();
    let started = Instant::now();
    while client.get("/metrics").await.status == 200 {
        assert!(started.elapsed() < Duration::from_secs(10), "it does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.get("/metrics").await.problem(401, "unauthorized");
    assert_eq!(app.admin().get(&key.path()).await.ok()["status"], "expired");
}

async fn listed(client: &Client, query: &str) -> Vec<(Value, Value)> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/users/u/sessions?limit=2{query}{cursor}")).await.ok();
        let sessions = page["sessions"].as_array().unwrap();
        all.extend(sessions.iter().map(|row| (row["project"].clone(), row["session"].clone())));
        let Some(next) = page["next_cursor"].as_str() else { return all };
        assert_eq!(sessions.len(), 2, "a page is full unless it is the last");
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test]
async fn sessions_of_foreign_projects_are_not_listed() {
    let app = TestApp::start().await;
    app.admin().put("/v1/users/u/catalog", &json!({"tools": [{"name": "a"}]})).await.ok();
    let projects = [None, Some("hidden"), Some("p1"), Some("p2"), Some("secret"), Some("zz")];
    for (project, session) in
        projects.iter().flat_map(|project| ["s1", "s2", "s3"].map(|session| (*project, session)))
    {
        let body = json!({"user": "u", "project": project, "session": session});
        app.admin().post("/v1/assemble", &body).await.ok();
    }
    let agent = make(&app, "agent", json!({"users": ["u"], "projects": ["p*", "zz", "none-yet"]})).await;
    let client = app.with_key(&agent.key);
    let seen = listed(&client, "").await;
    let wanted: Vec<(Value, Value)> = [None, Some("p1"), Some("p2"), Some("zz")]
        .iter()
        .flat_map(|project| ["s1", "s2", "s3"].map(|session| (json!(project), json!(session))))
        .collect();
    assert_eq!(seen, wanted);
    assert_eq!(listed(&client, "&project=p2").await.len(), 3);
    client.get("/v1/users/u/sessions?project=secret").await.problem(404, "not_found");
    assert_eq!(listed(app.admin(), "").await.len(), 18);
    let nowhere = make(&app, "agent", json!({"users": ["*"]})).await;
    assert_eq!(listed(&app.with_key(&nowhere.key), "").await.len(), 3, "those outside of projects");
}
