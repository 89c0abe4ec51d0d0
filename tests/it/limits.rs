//! Limits that keep one key or user from being everybody's problem: rates, packed bodies, sessions, scopes.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::app::TestApp;
use crate::keys::make;

#[tokio::test]
async fn a_key_over_its_rate_waits_as_told_and_others_do_not() {
    let app = TestApp::start().await;
    let rate = json!({"users": ["*"], "rate": {"requests_per_second": 1, "burst": 3}});
    let (flood, quiet) = (make(&app, "agent", rate.clone()).await, make(&app, "agent", rate.clone()).await);
    assert_eq!(flood.document["rate"], rate["rate"]);
    let (flooding, quiet) = (app.with_key(&flood.key), app.with_key(&quiet.key));
    let first = flooding.get("/v1/limits").await;
    first.expect_status(200);
    assert_eq!(first.header("ratelimit-policy"), Some("\"requests\";q=3;w=3"));
    assert_eq!(first.header("ratelimit"), Some("\"requests\";r=2;t=1"));

    let answers = join_all((0..40).map(|_| flooding.get("/v1/limits"))).await;
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert!(refused.len() >= 20, "{}", refused.len());
    for answer in refused {
        let detail = answer.problem(429, "rate_limited")["detail"].to_string();
        assert!(detail.contains("1 s"), "{detail}");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert!(answer.header("ratelimit").unwrap().starts_with("\"requests\";r=0;t="));
    }
    let other = quiet.get("/v1/limits").await;
    other.expect_status(200);
    assert_eq!(other.header("ratelimit"), Some("\"requests\";r=2;t=1"));
    // What a role may not ask is counted too; renaming the key gives nothing back.
    app.admin().patch(&flood.path(), &json!({"name": "renamed"})).await.ok();
    app.with_key(&flood.key).get("/v1/keys").await.problem(429, "rate_limited");
    assert!(app.admin().get("/v1/limits").await.header("ratelimit").is_none(), "the admin has no limit");
    assert!(app.anonymous().get("/healthz").await.header("ratelimit").is_none());

    tokio::time::sleep(Duration::from_secs(1)).await;
    flooding.get("/v1/limits").await.ok();
    let metrics = app.admin().get("/metrics").await;
    assert!(metrics.text().contains("toolrack_requests_held_back_total{reason=\"rate\"}"));
}

#[tokio::test]
async fn a_changed_rate_holds_from_the_next_request_on_and_gives_nothing_back() {
    let app = TestApp::start().await;
    let bound = json!({"users": ["ada"], "deny": ["@shell"], "rate": {"requests_per_second": 1, "burst": 2}});
    let made = make(&app, "agent", bound).await;
    let (admin, holder) = (app.admin(), app.with_key(&made.key));
    let used_up = join_all((0..20).map(|_| holder.get("/v1/limits"))).await;
    assert!(used_up.iter().any(|answer| answer.status == 429));

    let rate = json!({"requests_per_second": 1, "burst": 500});
    let document = admin.patch(&made.path(), &json!({ "rate": rate })).await.ok();
    assert_eq!((&document["rate"], &document["deny"]), (&rate, &json!(["@shell"])));
    let answer = holder.get("/v1/limits").await;
    answer.expect_status(200);
    assert_eq!(answer.header("ratelimit-policy"), Some("\"requests\";q=500;w=500"));
    assert_eq!(answer.header("ratelimit"), Some("\"requests\";r=497;t=3"));
    // Another process reads it from the store.
    assert_eq!(admin.get(&made.path()).await.ok()["rate"], rate);

    admin.patch(&made.path(), &json!({"rate": {"requests_per_second": 1, "burst": 3}})).await.ok();
    holder.get("/v1/limits").await.problem(429, "rate_limited");
    admin.patch(&made.path(), &json!({ "rate": null })).await.ok();
    let usual = admin.get("/v1/limits").await.ok();
    let answer = holder.get("/v1/limits").await;
    answer.expect_status(200);
    let policy = answer.header("ratelimit-policy").unwrap();
    assert!(policy.starts_with(&format!("\"requests\";q={};", usual["burst"])), "{policy}");
    assert_eq!(admin.get(&made.path()).await.ok()["rate"], json!({}));

    let bad = admin.patch(&made.path(), &json!({"rate": {"burst": 0}})).await.problem(422, "invalid_request");
    assert_eq!(bad["errors"][0]["pointer"], "/rate/burst");
    let audit = admin.get("/v1/audit").await.ok();
    assert_eq!(audit["entries"][0]["action"], "key.patch");
    assert_eq!(audit["entries"][0]["summary"]["changed"], json!(["rate"]));
}

#[tokio::test]
async fn the_settings_limit_keys_that_say_nothing() {
    let app = TestApp::builder()
        .set("TOOLRACK_LIMITS_REQUESTS_PER_SECOND", 2)
        .set("TOOLRACK_LIMITS_BURST", 4)
        .start()
        .await;
    let limits = app.admin().get("/v1/limits").await.ok();
    assert_eq!((&limits["requests_per_second"], &limits["burst"]), (&json!(2), &json!(4)));
    for (role, rate, policy) in [
        ("agent", json!({}), Some("\"requests\";q=4;w=2")),
        ("setup", json!({"requests_per_second": 5}), Some("\"requests\";q=10;w=2")),
        ("agent", json!({"requests_per_second": 0}), None),
        ("admin", json!({}), None),
        ("admin", json!({"requests_per_second": 7, "burst": 7}), Some("\"requests\";q=7;w=1")),
    ] {
        let users = if role == "admin" { json!([]) } else { json!(["*"]) };
        let key = make(&app, role, json!({"users": users, "rate": rate})).await;
        let answer = app.with_key(&key.key).get("/v1/limits").await;
        answer.expect_status(200);
        assert_eq!(answer.header("ratelimit-policy"), policy, "{role} {rate}");
    }
    let body = json!({"name": "x", "role": "metrics", "rate": {"burst": 0}});
    let problem = app.admin().post("/v1/keys", &body).await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/rate/burst");
}

#[tokio::test]
async fn the_admin_is_limited_where_the_settings_say_so() {
    let app = TestApp::builder().set("TOOLRACK_LIMITS_ADMIN_REQUESTS_PER_SECOND", 1).start().await;
    let answers = join_all((0..40).map(|_| app.admin().get("/v1/limits"))).await;
    assert_eq!(answers[0].header("ratelimit-policy"), Some("\"requests\";q=2;w=2"));
    assert!(answers.iter().filter(|answer| answer.status == 429).count() >= 20);
    app.anonymous().get("/readyz").await.ok();
}

fn packed(bytes: &[u8], times: usize) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    (0..times).for_each(|_| encoder.write_all(bytes).unwrap());
    encoder.finish().unwrap().into()
}

#[tokio::test]
async fn packed_bodies_are_taken_and_bombs_are_not() {
    let app = TestApp::start().await;
    let put = async |encoding: &str, body: Bytes| {
        let headers = [("content-type", "application/json"), ("content-encoding", encoding)];
        app.admin().send(Method::PUT, "/v1/users/u/catalog", &headers, body).await
    };
    let catalog = json!({"tools": [{"name": "echo", "description": "Says it again. ".repeat(500)}]});
    let body = packed(catalog.to_string().as_bytes(), 1);
    assert_eq!(put("gzip", body.clone()).await.ok()["added"]["count"], 1);
    put("GZIP", body.clone()).await.ok();
    put("gzip", body.slice(..body.len() / 2)).await.problem(400, "malformed_json");
    put("gzip", catalog.to_string().into()).await.problem(400, "malformed_json");
    put("identity", body).await.problem(400, "invalid_utf8");
    let bomb = packed(&[b' '; 1 << 16], 1 << 10);
    assert!(bomb.len() < 1 << 20);
    put("gzip", bomb.clone()).await.problem(413, "payload_too_large");
    let many = Bytes::from([&bomb[..]; 8].concat());
    put("gzip", many).await.problem(413, "payload_too_large");
    for other in ["br", "zstd", "gzip, gzip"] {
        let answer = put(other, Bytes::from_static(b"{}")).await;
        answer.problem(415, "unsupported_media_type");
        assert_eq!(answer.header("accept-encoding"), Some("gzip"));
    }
}

#[tokio::test]
async fn a_user_with_too_many_sessions_is_told_and_keeps_them() {
    let app = TestApp::builder().set("TOOLRACK_LIMITS_SESSIONS_PER_USER", 2).start().await;
    let (user, other) = (app.user(), app.user());
    user.put_catalog(&[json!({"name": "echo", "description": "Says it again."})]).await.ok();
    for session in ["a", "b", "a"] {
        user.assemble(json!({"session": session})).await.ok();
    }
    let problem = user.assemble(json!({"session": "c"})).await.problem(422, "too_many_sessions");
    assert!(problem["detail"].as_str().unwrap().contains('2'), "{problem}");
    // Without a session nothing is in the way, and those that are there go on.
    user.assemble(json!({})).await.ok();
    user.assemble(json!({"session": "b"})).await.ok();
    other.assemble(json!({"session": "c"})).await.ok();
    let listed = app.admin().get(&user.path(&["sessions"])).await.ok();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
    app.admin().delete(&user.path(&["sessions", "a"])).await.expect_status(204);
    user.assemble(json!({"session": "c"})).await.ok();
    assert_eq!(app.admin().get("/v1/limits").await.ok()["sessions_per_user"], 2);
}

#[tokio::test]
async fn a_setup_key_begins_so_many_scopes() {
    let app = TestApp::builder().set("TOOLRACK_LIMITS_SCOPES_PER_KEY", 2).start().await;
    let key = make(&app, "setup", json!({"users": ["*"], "projects": ["*"]})).await;
    let setup = app.with_key(&key.key);
    let (config, catalog) = (json!({"max_warm_tools": 4}), json!({"tools": [{"name": "echo"}]}));
    setup.put("/v1/users/a/config", &config).await.ok();
    setup.put("/v1/users/a/catalog", &catalog).await.ok();
    setup.put("/v1/projects/a/catalog", &catalog).await.ok();
    setup.put("/v1/users/b/config", &config).await.problem(422, "too_many_scopes");
    setup
        .patch("/v1/users/b/catalog", &json!({"upsert": [{"name": "x"}]}))
        .await
        .problem(422, "too_many_scopes");
    setup.delete("/v1/users/a/config").await.expect_status(204);
    setup.put("/v1/users/a/config", &config).await.ok();
    app.admin().put("/v1/users/b/config", &config).await.ok();
    setup.patch("/v1/users/b/config", &json!({"max_warm_tools": 5})).await.ok();
}
