//! Keys on the command line and at a start.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::app::{ADMIN_KEY, Client, TestApp};

fn keys(folder: &Path, arguments: &[&str]) -> Output {
    let url = format!("sqlite://{}", folder.join("toolrack.db").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    command.arg("keys").args(arguments);
    command.args(["--database-url", &url]);
    command.env_clear().stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap().trim_end().to_owned()
}

/// Asks until the answer has this status; a second is what other processes take at most.
async fn becomes(client: &Client, status: u16) {
    let started = Instant::now();
    while client.get("/v1/limits").await.status != status {
        assert!(started.elapsed() < Duration::from_millis(1_500), "not {status} within a second");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn keys_are_managed_beside_a_running_service() {
    let app = TestApp::start().await;
    let folder = app.folder();
    let create = [
        "create",
        "--name",
        "my agent",
        "--role",
        "agent",
        "--user",
        "ada",
        "--user",
        "team-*",
        "--project",
        "apollo",
        "--deny",
        "@danger",
        "--expires-in-days",
        "2",
    ];
    let created = keys(folder, &create);
    let key = printed(&created);
    assert!(key.starts_with("trk_") && key.len() == 94 && !key.contains('\n'), "the key alone: {key}");
    let told = String::from_utf8_lossy(&created.stderr).into_owned();
    assert!(told.contains("my agent") && !told.contains(&key), "{told}");
    let client = app.with_key(&key);
    becomes(&client, 200).await;
    let id = &key[4..20];
    let document = app.admin().get(&format!("/v1/keys/{id}")).await.ok();
    assert_eq!((&document["users"], &document["deny"]), (&json!(["ada", "team-*"]), &json!(["@danger"])));

    let new = printed(&keys(folder, &["rotate", id, "--overlap-seconds", "0"]));
    becomes(&client, 401).await;
    let client = app.with_key(&new);
    becomes(&client, 200).await;
    let listed: Vec<Value> =
        printed(&keys(folder, &["list"])).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |at: usize| (listed[at]["id"].as_str().unwrap(), listed[at]["status"].as_str().unwrap());
    assert_eq!(of(0), (id, "expired"));
    assert_eq!(of(1), (&new[4..20], "active"));
    assert!(printed(&keys(folder, &["revoke", &new[4..20]])).contains("is revoked"));
    becomes(&client, 401).await;
    // Another way round: what the service makes, the command sees.
    let made = super::make(&app, "metrics", json!({})).await;
    assert!(printed(&keys(folder, &["list"])).contains(made.id()));
}

#[test]
fn what_is_wrong_is_told_and_makes_no_database() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, status, part) in [
        (&["create", "--name", "x", "--role", "owner"][..], 1, "admin, setup, agent, metrics"),
        (&["create", "--name", "x", "--role", "agent"], 1, "user"),
        (&["create", "--name", "x", "--role", "agent", "--user", "a b"], 1, "a b"),
        (&["create", "--name", "x", "--role", "admin", "--user", "*"], 1, "admin"),
        (&["create", "--role", "admin"], 2, "--name"),
        (&["revoke", "nonsense"], 1, "nonsense"),
        (&["revoke"], 2, "ID"),
        (&["rotate-master"], 1, "no database"),
        (&["rotate-master", "--from", "x"], 1, "no database"),
    ] {
        let output = keys(folder.path(), arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {told}");
        assert!(told.contains(part) && output.stdout.is_empty(), "{arguments:?}: {told}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let unknown = keys(folder.path(), &["revoke", "0123456789abcdef"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no key of this id"));
    let name = keys(folder.path(), &["create", "--name", " ", "--role", "admin"]);
    assert_eq!(name.status.code(), Some(1));
}

const SHOWN: &str = "admin key (shown once): ";

fn shown_keys(log: &str) -> Vec<String> {
    log.lines().filter_map(|line| line.strip_prefix(SHOWN)).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_first_start_without_a_key_makes_one_and_shows_it_once() {
    let mut app = TestApp::builder().without_key().start().await;
    let shown = shown_keys(&app.logs());
    assert_eq!(shown.len(), 1, "{}", app.logs());
    app.with_key(&shown[0]).get("/v1/keys").await.ok();
    app.with_key(ADMIN_KEY).get("/v1/keys").await.problem(401, "unauthorized");
    app.restart().await;
    assert_eq!(shown_keys(&app.logs()), shown, "no second key");
    let client = app.with_key(&shown[0]);
    let keys = client.get("/v1/keys").await.ok();
    assert_eq!((keys["keys"].as_array().unwrap().len(), &keys["keys"][0]["role"]), (1, &json!("admin")));
    // Also when it is the last one that was revoked: who holds the database makes another.
    client.delete(&format!("/v1/keys/{}", &shown[0][4..20])).await.expect_status(204);
    client.get("/v1/keys").await.problem(401, "unauthorized");
    app.restart().await;
    assert_eq!(shown_keys(&app.logs()), shown);
    assert!(app.logs().contains("toolrack keys create"), "{}", app.logs());
}

#[tokio::test]
async fn with_a_key_in_the_settings_none_is_made() {
    let app = TestApp::start().await;
    assert!(shown_keys(&app.logs()).is_empty());
    assert_eq!(app.admin().get("/v1/keys").await.ok()["keys"], json!([]));
}

#[tokio::test]
async fn the_settings_may_name_a_file_that_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("admin.key");
    let put = |text: &str, mode| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let url = format!("sqlite://{}", folder.path().join("toolrack.db").display());
    let refused = |more: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--database-url", &url]).env_clear();
        command.env("TOOLRACK_AUTH_KEY_FILE", &file).envs(more.iter().copied());
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&[]).contains("admin.key"), "a missing file");
    for mode in [0o644, 0o640, 0o604] {
        put(ADMIN_KEY, mode);
        assert!(refused(&[]).contains("chmod 600"), "{mode:o}");
    }
    put("too-short", 0o600);
    let told = refused(&[]);
    assert!(told.contains("32 characters") && !told.contains("too-short"), "{told}");
    put(ADMIN_KEY, 0o600);
    assert!(refused(&[("TOOLRACK_AUTH_ADMIN_KEY", ADMIN_KEY)]).contains("auth.key_file"));
    assert!(!folder.path().join("toolrack.db").exists(), "a refused start makes no database");

    put(&format!("{ADMIN_KEY}\n"), 0o600);
    let app = TestApp::builder().without_key().set("TOOLRACK_AUTH_KEY_FILE", file.display()).start().await;
    app.admin().get("/v1/keys").await.ok();
    assert!(shown_keys(&app.logs()).is_empty() && !app.logs().contains(ADMIN_KEY));
}
