//! Another master key: everything is sealed anew, and at no moment is a secret lost.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::app::{TestApp, command_on};

/// Users with a secret each.
const USERS: usize = 25;

async fn put_secrets(app: &TestApp) {
    for at in 0..USERS {
        let matcher = json!({"endpoint": "https://rerank.example.com/v2/rerank", "api_key": format!("sk-user-{at:08}")});
        app.user_called(&format!("user-{at}")).put_config(&json!({ "matcher": matcher })).await.ok();
    }
}

/// Whether each secret is read.
async fn readable(app: &TestApp) -> usize {
    let mut count = 0;
    for at in 0..USERS {
        let config = app.admin().get(&format!("/v1/users/user-{at}/config")).await.ok();
        let shown = &config["matcher"]["api_key"];
        assert!(shown["set"].is_boolean());
        if shown["set"] == true {
            assert_eq!(shown["last4"], Value::from(format!("{at:04}")));
            count += 1;
        }
    }
    count
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

#[track_caller]
fn failed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

fn key(folder: &Path, end: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(format!("toolrack.db.key{end}"))).ok()
}

#[tokio::test]
async fn a_key_file_is_replaced_and_every_secret_follows() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut app = TestApp::start().await;
    put_secrets(&app).await;
    let first = key(app.folder(), "").unwrap();
    let told = failed(&app.command(&["keys", "rotate-master"]));
    assert!(told.contains("another toolrack serves this database"), "{told}");
    assert_eq!((key(app.folder(), ""), key(app.folder(), ".old")), (Some(first.clone()), None));

    app.stop().await;
    let told = done(&app.command(&["keys", "rotate-master"]));
    assert!(told.contains("25 secrets") && told.contains("25 of them now"), "{told}");
    let second = key(app.folder(), "").unwrap();
    assert!(first != second && !told.contains(&second));
    assert_eq!((key(app.folder(), ".old"), key(app.folder(), ".new")), (None, None));
    let mode = app.folder().join("toolrack.db.key").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    app.start_again().await;
    assert_eq!(readable(&app).await, USERS);
    app.stop().await;

    // A key of the operator's own making, from a private file.
    let own = app.folder().join("own.key");
    std::fs::write(&own, "5a".repeat(32)).unwrap();
    let from = ["keys", "rotate-master", "--from", own.to_str().unwrap()];
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(failed(&app.command(&from)).contains("chmod 600"));
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o600)).unwrap();
    done(&app.command(&from));
    assert_eq!(key(app.folder(), ""), Some("5a".repeat(32)));
    app.start_again().await;
    assert_eq!(readable(&app).await, USERS);
    app.stop().await;

    // The wrong key changes nothing, and the right one finds all as it was.
    std::fs::write(app.folder().join("toolrack.db.key"), &first).unwrap();
    assert!(failed(&app.command(&["keys", "rotate-master"])).contains("sealed with another master key"));
    assert_eq!((key(app.folder(), ""), key(app.folder(), ".old")), (Some(first), None));
    app.start_again().await;
    assert_eq!(readable(&app).await, 0);
    app.stop().await;
    std::fs::write(app.folder().join("toolrack.db.key"), "5a".repeat(32)).unwrap();
    app.start_again().await;
    assert_eq!(readable(&app).await, USERS);
}

#[tokio::test]
async fn a_change_that_is_killed_leaves_all_secrets_readable_and_can_be_ended() {
    let mut app = TestApp::start().await;
    put_secrets(&app).await;
    for round in 0..4 {
        app.stop().await;
        let mut child = command_on(app.folder(), &["keys", "rotate-master"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed as soon as two keys are there; whether the secrets are sealed anew by then is left to chance.
        while key(app.folder(), ".old").is_none() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        drop(child.kill());
        child.wait().unwrap();
        app.start_again().await;
        assert_eq!(readable(&app).await, USERS, "round {round}");
        app.stop().await;
        done(&app.command(&["keys", "rotate-master"]));
        assert_eq!(key(app.folder(), ".old"), None);
        app.start_again().await;
        assert_eq!(readable(&app).await, USERS, "round {round}");
    }
    // Stopped between the files and the database, for certain.
    app.stop().await;
    let present = key(app.folder(), "").unwrap();
    let old = app.folder().join("toolrack.db.key.old");
    std::fs::copy(app.folder().join("toolrack.db.key"), &old).unwrap();
    std::fs::write(app.folder().join("toolrack.db.key"), "c3".repeat(32)).unwrap();
    app.start_again().await;
    assert_eq!(readable(&app).await, USERS);
    // What is written meanwhile is sealed with the new key.
    let matcher = json!({"endpoint": "https://rerank.example.com/v2/rerank", "api_key": "sk-user-00000003"});
    app.user_called("user-3").put_config(&json!({ "matcher": matcher })).await.ok();
    app.stop().await;
    let output = app.command(&["keys", "rotate-master"]);
    assert!(text(&output.stderr).contains("was under way"), "{output:?}");
    assert!(
        done(&output).contains("25 secrets") && text(&output.stdout).contains("24 of them now"),
        "{output:?}"
    );
    assert!(!old.exists() && key(app.folder(), "") == Some("c3".repeat(32)) && present != "c3".repeat(32));
    app.start_again().await;
    assert_eq!(readable(&app).await, USERS);
}

#[tokio::test]
async fn keys_of_the_settings_are_changed_by_the_settings() {
    let mut app = TestApp::builder().set("TOOLRACK_SECRETS_MASTER_KEY", "1b".repeat(32)).start().await;
    put_secrets(&app).await;
    app.stop().await;
    assert!(!app.folder().join("toolrack.db.key").exists());
    let told = failed(&app.command(&["keys", "rotate-master"]));
    assert!(told.contains("secrets.previous_master_key"), "{told}");
    app.set("TOOLRACK_SECRETS_MASTER_KEY", "2c".repeat(32));
    app.set("TOOLRACK_SECRETS_PREVIOUS_MASTER_KEY", "1b".repeat(32));
    app.start_again().await;
    assert_eq!(readable(&app).await, USERS, "a service with both keys reads all");
    app.stop().await;
    let output = app.command(&["keys", "rotate-master"]);
    assert!(done(&output).contains("25 of them now"));
    assert!(text(&output.stderr).contains("take it out of the settings"), "{output:?}");
    app.set("TOOLRACK_SECRETS_PREVIOUS_MASTER_KEY", "");
    app.start_again().await;
    assert_eq!(readable(&app).await, USERS);
}
