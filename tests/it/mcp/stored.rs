//! What is stored of a server and what is not: addresses that are refused, headers that move, bounds. No server is needed.

use serde_json::json;

use super::{private, put, running, server_path, sync};
use crate::app::TestApp;

const KEY: &str = "header-canary-77c0aa21";

#[tokio::test]
async fn addresses_that_are_not_allowed_are_refused() {
    let app = TestApp::start().await;
    let user = app.user();
    for url in [
        "http://127.0.0.1:9/mcp",
        "https://127.0.0.1/mcp",
        "https://localhost/mcp",
        "https://[::ffff:10.0.0.1]/mcp",
        "https://0x7f000001/mcp",
        "https://169.254.169.254/latest/meta-data",
        "https://metadata.google.internal/",
        "http://mcp.example/mcp",
        "https://user:pass@mcp.example/mcp",
        "file:///etc/passwd",
    ] {
        let spec = json!({ "url": url });
        let problem =
            app.admin().put(&server_path(&user, &["s"]), &spec).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["code"], "blocked_address", "{url}: {problem}");
        let body = json!({"user": user.id, "server": spec});
        let problem = app.admin().post("/v1/setup/mcp-tools", &body).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/server/url", "{url}: {problem}");
    }
    assert_eq!(app.admin().get(&server_path(&user, &[])).await.ok()["servers"], json!([]));
}

#[tokio::test]
async fn an_address_that_was_allowed_once_is_checked_again() {
    let mut app = private().await;
    let user = app.user();
    put(&app, &user, "s", &json!({"url": "http://127.0.0.1:9/mcp"})).await;
    assert_eq!(sync(&app, &user, "s").await["job"]["fault"]["reason"], "unreachable");
    app.set("TOOLRACK_RERANK_ALLOW_PRIVATE", "false");
    app.restart().await;
    let user = app.user_called(&user.id);
    let failed = sync(&app, &user, "s").await;
    assert_eq!(failed["job"]["fault"]["reason"], "refused_address", "{failed}");
}

#[tokio::test]
async fn headers_stay_with_the_place_that_they_were_set_for() {
    let mut app = private().await;
    let user = app.user();
    let spec = |url: &str, value: serde_json::Value| json!({"url": url, "headers": {"X-Key": value}});
    put(&app, &user, "s", &spec("http://127.0.0.1:9/a", json!(KEY))).await;
    let kept =
        put(&app, &user, "s", &spec("http://127.0.0.1:9/b", json!({"set": true, "last4": "aa21"}))).await;
    assert_eq!((&kept["headers"]["X-Key"]["set"], &kept["warnings"]), (&json!(true), &json!([])), "{kept}");

    // The config's secrets are others, and go with the config.
    let matcher = json!({"matcher": {"endpoint": "http://127.0.0.1:9/rerank", "api_key": "rr-0123456789ab"}});
    user.put_config(&matcher).await.ok();
    app.admin().delete(&user.path(&["config"])).await.expect_status(204);
    app.restart().await;
    let user = app.user_called(&user.id);
    let shown = app.admin().get(&server_path(&user, &["s"])).await.ok();
    assert_eq!(shown["headers"]["X-Key"], json!({"set": true, "last4": "aa21"}), "{shown}");

    let moved = put(&app, &user, "s", &spec("http://127.0.0.1:10/b", json!({"set": true}))).await;
    assert_eq!(moved["warnings"][0]["code"], "secret_cleared", "{moved}");
    assert_eq!(moved["warnings"][0]["pointer"], "/headers/X-Key", "{moved}");
    assert_eq!(moved["headers"], json!({}), "{moved}");
    let back = put(&app, &user, "s", &spec("http://127.0.0.1:9/a", json!({"set": true}))).await;
    assert_eq!(back["warnings"][0]["code"], "secret_missing", "it is gone: {back}");

    put(&app, &user, "s", &spec("http://127.0.0.1:9/a", json!(KEY))).await;
    app.stop().await;
    let rotated = app.command(&["keys", "rotate-master"]);
    assert!(rotated.status.success(), "{rotated:?}");
    app.start_again().await;
    let user = app.user_called(&user.id);
    let shown = app.admin().get(&server_path(&user, &["s"])).await.ok();
    assert_eq!(shown["headers"]["X-Key"]["set"], true, "{shown}");
    app.admin().delete(&server_path(&user, &["s"])).await.expect_status(204);
    app.admin().delete(&server_path(&user, &["s"])).await.expect_status(204);
    let log = app.admin().get("/v1/audit").await.ok();
    let actions: Vec<&str> =
        log["entries"].as_array().unwrap().iter().map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(actions[..2], ["mcp_server.delete", "mcp_server.put"], "{log}");
    assert!(!log.to_string().contains(KEY) && !app.logs().contains(KEY));
}

#[tokio::test]
async fn headers_that_a_write_does_not_speak_of_stay_and_none_goes_in_silence() {
    let app = private().await;
    let user = app.user();
    let url = "http://127.0.0.1:9/a";
    let names = |answer: &serde_json::Value| {
        answer["headers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    put(&app, &user, "s", &json!({"url": url, "headers": {"X-Key": KEY, "X-Team": "a"}})).await;
    let kept = put(&app, &user, "s", &json!({"url": url, "resync_minutes": 5})).await;
    assert_eq!(
        (names(&kept), &kept["warnings"]),
        (vec!["X-Key".to_owned(), "X-Team".to_owned()], &json!([])),
        "{kept}"
    );
    assert_eq!(kept["headers"]["X-Key"]["set"], true, "{kept}");
    let fewer = put(&app, &user, "s", &json!({"url": url, "headers": {"X-Key": {"set": true}}})).await;
    assert_eq!(names(&fewer), ["X-Key"], "{fewer}");
    assert_eq!(
        (&fewer["warnings"][0]["code"], &fewer["warnings"][0]["pointer"]),
        (&json!("secret_cleared"), &json!("/headers/X-Team")),
        "{fewer}"
    );
    let moved = put(&app, &user, "s", &json!({"url": "http://127.0.0.1:10/a"})).await;
    assert_eq!(
        (names(&moved).len(), &moved["warnings"][0]["code"]),
        (0, &json!("secret_cleared")),
        "{moved}"
    );
    put(&app, &user, "s", &json!({"url": url, "headers": {"X-Key": KEY}})).await;
    let none = put(&app, &user, "s", &json!({"url": url, "headers": null})).await;
    assert_eq!((names(&none).len(), &none["warnings"]), (0, &json!([])), "{none}");
}

#[tokio::test]
async fn a_spec_is_refused_at_its_places() {
    let app = private().await;
    let user = app.user();
    for (name, spec, pointer) in [
        ("s", json!({}), "/url"),
        ("s", json!({"url": "https://mcp.example/", "command": "x"}), "/command"),
        ("s", json!({"url": "nonsense"}), "/url"),
        ("s", json!({"url": "https://mcp.example/", "headers": {"Host": "x"}}), "/headers/Host"),
        ("s", json!({"url": "https://mcp.example/", "headers": {"X": "a\nb"}}), "/headers/X"),
        ("s", json!({"url": "https://mcp.example/", "resync_minutes": 99_999}), "/resync_minutes"),
        ("s", json!({"url": "https://mcp.example/", "typo": 1}), "/typo"),
        ("a b", json!({"url": "https://mcp.example/"}), "/name"),
    ] {
        let problem =
            app.admin().put(&server_path(&user, &[name]), &spec).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{spec}: {problem}");
    }
    app.admin().post(&server_path(&user, &["none", "sync"]), &json!({})).await.problem(404, "not_found");
    for at in 0..64 {
        put(&app, &user, &format!("s{at}"), &json!({"url": "https://mcp.example/"})).await;
    }
    let more = app.admin().put(&server_path(&user, &["more"]), &json!({"url": "https://mcp.example/"})).await;
    assert_eq!(more.problem(422, "invalid_request")["errors"][0]["code"], "too_many");
    put(&app, &user, "s7", &json!({"url": "https://mcp.example/b"})).await;
}

#[tokio::test]
async fn a_server_that_answers_badly_is_one_line_in_the_log() {
    let app = private().await;
    let user = app.user();
    for (at, (status, kind, text)) in [
        (200, "text/html", "<h1>Welcome</h1>"),
        (200, "application/json", "{\"jsonrpc\": \"2.0\", \"id\": 0, \"result\": 7}"),
        (200, "text/event-stream", "data: nonsense\n\n"),
        (500, "text/plain", "broken"),
    ]
    .into_iter()
    .enumerate()
    {
        let status = axum::http::StatusCode::from_u16(status).unwrap();
        let answer = move || async move { (status, [("content-type", kind)], text) };
        let server = axum::Router::new().fallback(answer);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, server).await.unwrap() });
        let name = format!("bad{at}");
        put(&app, &user, &name, &json!({ "url": url })).await;
        let failed = sync(&app, &user, &name).await;
        assert_eq!(failed["job"]["state"], "failed", "{failed}");
        let reason = failed["job"]["fault"]["reason"].as_str().unwrap();
        let logs = app.logs();
        let lines: Vec<&str> = logs.lines().filter(|line| line.contains(&name)).collect();
        assert!(lines.len() == 1 && lines[0].contains(reason) && lines[0].contains("WARN"), "{logs}");
        assert!(!logs.contains("ERROR") && !logs.contains("rmcp"), "{logs}");
    }
}

#[tokio::test]
async fn secret_arguments_are_sealed_and_kept_for_their_command_line() {
    let mut app = running(&["sh"]).await;
    let user = app.user();
    let script = "echo \"length ${#2} of $2\" >&2; exit 1";
    let spec = |secret: &str| json!({"command": "sh", "args": ["-c", script, "x", "--api-key", secret]});
    let stored = put(&app, &user, "s", &spec(KEY)).await;
    assert_eq!(stored["args"], spec("***")["args"], "{stored}");
    // Sent back as it was read it stays, and the command gets it.
    let kept = put(&app, &user, "s", &spec("***")).await;
    assert_eq!((&kept["args"], &kept["warnings"]), (&stored["args"], &json!([])), "{kept}");
    let length = format!("length {}", KEY.len());
    let failed = sync(&app, &user, "s").await;
    assert!(failed["job"]["fault"]["detail"].as_str().unwrap().contains(&length), "{failed}");
    assert!(!failed.to_string().contains(KEY), "nor does what it says: {failed}");
    let look = json!({"user": user.id, "name": "s", "server": spec("***")});
    let look = app.admin().post("/v1/setup/mcp-tools", &look).await.ok();
    assert!(look["fault"]["detail"].as_str().unwrap().contains(&length), "{look}");
    // Nowhere else.
    let mut elsewhere = spec("***");
    elsewhere["args"][1] = json!("echo $2 > /dev/null");
    for (name, spec) in [("s", &elsewhere), ("other", &spec("***"))] {
        let problem =
            app.admin().put(&server_path(&user, &[name]), spec).await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/args/4", "{problem}");
    }
    app.kill();
    for entry in std::fs::read_dir(app.folder()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()));
    }
    app.start_again().await;
    let user = app.user_called(&user.id);
    assert!(sync(&app, &user, "s").await["job"]["fault"]["detail"].as_str().unwrap().contains(&length));
    assert!(!app.logs().contains(KEY));
}
