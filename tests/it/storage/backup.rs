//! A backup is whole, and what comes back from it is what was promised; without the key file, all but the secrets.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::json;
use tokio::task::JoinSet;

use super::{log_since, matcher, shown_key, tools};
use crate::app::{TestApp, command_on};

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_service_at_work_is_restored_with_and_without_its_key() {
    let app = TestApp::start().await;
    let user = app.user_called("ada");
    user.put_catalog(&tools(200)).await.ok();
    user.put_config(&matcher()).await.ok();
    let found = user.describe(json!({"session": "s", "names": ["thing_7", "thing_9"]})).await.ok();
    assert_eq!(found["warmed"], json!(["thing_7", "thing_9"]));
    let stored = user.client().get(&user.path(&["catalog"])).await.ok();

    let mut working = JoinSet::new();
    for at in 0..60 {
        let user = app.user_called("bob");
        working.spawn(async move {
            let name = format!("session-{at}");
            user.assemble(json!({"session": name, "tools": tools(15)})).await.ok();
        });
    }
    let file = app.folder().join("copy of it.db");
    let name = file.to_str().unwrap();
    let (status, out, err) = told(&app.command(&["backup", name]));
    assert_eq!(status, Some(0), "{out}{err}");
    assert!(out.contains(name) && out.contains("schema version"), "{out}");
    assert!(err.contains("master key is not in it") && err.contains("toolrack.db.key"), "{err}");
    working.join_all().await;
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let before = std::fs::read(&file).unwrap();
    let (status, out, err) = told(&app.command(&["backup", name]));
    assert!(status == Some(1) && out.is_empty() && err.contains("overwrites nothing"), "{err}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let left: Vec<_> =
        std::fs::read_dir(app.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");

    for with_key in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(&file, folder.path().join("toolrack.db")).unwrap();
        if with_key {
            std::fs::copy(app.folder().join("toolrack.db.key"), folder.path().join("toolrack.db.key"))
                .unwrap();
        }
        let mut restored = TestApp::builder().start_in(folder).await;
        let user = restored.user_called("ada");
        assert_eq!(user.client().get(&user.path(&["catalog"])).await.ok(), stored);
        let assembled = user.assemble(json!({"session": "s"})).await.ok();
        assert_eq!(assembled["warm"], json!(["thing_7", "thing_9"]));
        if with_key {
            assert_eq!(shown_key(&user).await, json!({"set": true, "last4": "4d06"}));
            assert!(!restored.logs().contains("not set"), "{}", restored.logs());
            continue;
        }
        assert_eq!(shown_key(&user).await, json!({"set": false}));
        assert!(restored.logs().contains("1 stored secrets") && restored.logs().contains("read as not set"));
        let effective = user.client().get("/v1/config/effective?user=ada").await.ok();
        assert_eq!(effective["matcher"]["status"], "key_unreadable");
        assert_eq!(effective["config"]["matcher"]["value"]["api_key"], json!({"set": false}));
        let searched = user.search(json!({"query": "thing_7"})).await.ok();
        assert_eq!((&searched["mode"], &searched["reason"]), (&json!("keyword"), &json!("key_unreadable")));
        // Once it is set anew, nothing is missed any more.
        user.put_config(&matcher()).await.ok();
        assert_eq!(shown_key(&user).await, json!({"set": true, "last4": "4d06"}));
        let length = restored.logs().len();
        restored.restart().await;
        assert!(!log_since(&restored, length).contains("not set"), "{}", restored.logs());
        assert_eq!(shown_key(&restored.user_called("ada")).await, json!({"set": true, "last4": "4d06"}));
    }
}

#[test]
fn a_backup_that_cannot_be_made_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("copy.db");
    let backup = |target: &str| told(&command_on(folder.path(), &["backup", target]).output().unwrap());
    let name = target.to_str().unwrap();
    let (status, out, err) = backup(name);
    assert!(status == Some(1) && out.is_empty() && err.contains("there is no database"), "{err}");
    let database = folder.path().join("toolrack.db");
    std::fs::write(&database, "a text, and not what a database looks like at all").unwrap();
    let (status, _, err) = backup(name);
    assert!(status == Some(1) && err.contains("no SQLite database"), "{err}");
    std::fs::remove_file(&database).unwrap();
    assert!(command_on(folder.path(), &["migrate"]).output().unwrap().status.success());
    let (status, _, err) = backup("/no/such/folder/copy.db");
    assert!(status == Some(1) && err.contains("/no/such/folder/copy.db"), "{err}");
    std::fs::write(folder.path().join("copy.db.partial"), "").unwrap();
    let (status, _, err) = backup(name);
    assert!(status == Some(1) && err.contains("interrupted"), "{err}");
    assert!(!target.exists());
    std::fs::remove_file(folder.path().join("copy.db.partial")).unwrap();
    assert_eq!(backup(name).0, Some(0));
    assert_eq!(backup(folder.path().join("second.db").to_str().unwrap()).0, Some(0));
}
