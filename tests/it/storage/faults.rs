//! Faults of the file: each is told clearly, makes nothing worse, and takes nothing that was promised.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::tools;
use crate::app::{ADMIN_KEY, TestApp, command_on};

/// The message of a start that is refused.
#[track_caller]
fn refused(folder: &Path) -> String {
    let output = command_on(folder, &["serve", "--listen", "127.0.0.1:0", "--no-auth"]).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(output.stdout.is_empty());
    err
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_loses_nothing() {
    let mut app = TestApp::builder().set("TOOLRACK_DATABASE_MAX_BYTES", 712_000).start().await;
    let made = json!({"name": "filler", "role": "agent", "users": ["*"]});
    let key = app.admin().post("/v1/keys", &made).await.json();
    let mut promised = Vec::new();
    let refused = loop {
        let id = format!("user-{}", promised.len());
        let answer = app.user_called(&id).put_catalog(&tools(100)).await;
        if answer.status != 200 {
            let problem = answer.problem(507, "storage_full");
            assert!(problem["detail"].as_str().unwrap().contains("nothing was written"), "{problem}");
            break id;
        }
        promised.push((id, answer.ok()["catalog_version"].clone()));
        assert!(promised.len() < 100, "the limit holds");
    };
    assert!(!promised.is_empty());
    // Searches find until no session has room any more, and beyond: then without warming.
    let user = app.user_called(&promised[0].0);
    let mut warmed = Vec::new();
    let full = loop {
        let session = format!("s{}", warmed.len());
        let answer = user.search(json!({"query": "thing_7", "limit": 1, "session": session})).await.ok();
        assert_eq!(answer["results"][0]["matches"][0]["name"], "thing_7");
        if answer["warnings"][0]["code"] == "storage_full" {
            assert_eq!(answer["warmed"], json!([]));
            break session;
        }
        assert_eq!(answer["warmed"], json!(["thing_7"]));
        warmed.push(session);
        assert!(warmed.len() < 5_000, "the limit holds");
    };
    let called = user.call(json!({"session": full, "name": "thing_3", "arguments": {}})).await.ok();
    assert_eq!(called["results"][0]["ok"], true);
    assert_eq!(called["warnings"][0]["code"], "storage_full");
    user.search(json!({"query": "thing_9"})).await.ok();
    user.assemble(json!({})).await.ok();
    // Whoever fills it loses the key all the same.
    app.admin().delete(&format!("/v1/keys/{}", key["id"].as_str().unwrap())).await.expect_status(204);
    app.with_key(key["key"].as_str().unwrap()).get("/v1/limits").await.problem(401, "unauthorized");
    // A load balancer goes on sending requests, an operator sees why writes are refused.
    assert_eq!(app.admin().get("/readyz").await.ok()["components"]["storage"]["status"], "full");

    app.signal_stop();
    assert_eq!(app.ended().await.code(), Some(1), "ages that were not written are told");
    app.start_again().await;
    app.user_called(&refused).put_catalog(&tools(100)).await.problem(507, "storage_full");
    // What makes room finds some.
    let (given_up, _) = promised.pop().unwrap();
    app.admin().delete(&format!("/v1/users/{given_up}/catalog")).await.expect_status(204);
    app.set("TOOLRACK_DATABASE_MAX_BYTES", 0);
    app.kill();
    app.start_again().await;
    for (id, version) in &promised {
        let stored = app.admin().get(&format!("/v1/users/{id}/catalog")).await.ok();
        assert_eq!((&stored["catalog_version"], stored["tools"].as_array().unwrap().len()), (version, 100));
    }
    let nothing = app.admin().get(&format!("/v1/users/{refused}/catalog")).await.ok();
    assert_eq!(nothing["tools"], json!([]), "what was refused is not there by halves");
    let user = app.user_called(&promised[0].0);
    for session in &warmed {
        let document = user.client().get(&user.path(&["sessions", session])).await.ok();
        assert_eq!(document["warm"][0]["name"], "thing_7", "{session}");
    }
    app.user_called(&refused).put_catalog(&tools(100)).await.ok();
    assert_eq!(app.admin().get("/readyz").await.ok()["components"]["storage"]["status"], "ok");
}

fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| {
            entry.file_name() != "log.txt" && !entry.file_name().to_string_lossy().ends_with("-shm")
        })
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    // The lock and an empty log say nothing.
    files.retain(|(_, bytes)| !bytes.is_empty());
    files.sort();
    files
}

#[tokio::test]
async fn a_damaged_file_stops_the_start_and_is_left_as_it_is() {
    let mut app = TestApp::start().await;
    app.user_called("ada").put_catalog(&tools(100)).await.ok();
    app.stop().await;
    let file = app.folder().join("toolrack.db");
    let whole = std::fs::read(&file).unwrap();
    let copy = app.folder().join("copy.db");
    let pages = whole.len() / 4096;
    for (damage, page) in [("a page of the middle", pages / 2), ("the last page", pages - 1)] {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        std::fs::write(&file, &bytes).unwrap();
        let before = contents(app.folder());
        let told = refused(app.folder());
        assert!(told.contains("damaged") && told.contains("docs/backup.md"), "{damage}: {told}");
        assert!(contents(app.folder()) == before, "{damage}: nothing was written");
        let backup = app.command(&["backup", copy.to_str().unwrap()]);
        assert_eq!(backup.status.code(), Some(1), "{damage}: {backup:?}");
        assert!(!copy.exists(), "{damage}");
    }
    std::fs::write(&file, &whole[..whole.len() - 3 * 4096]).unwrap();
    assert!(refused(app.folder()).contains("damaged"), "cut off");
    std::fs::write(&file, &whole).unwrap();
    app.set("TOOLRACK_DATABASE_CHECK", "full");
    app.start_again().await;
    let stored = app.admin().get("/v1/users/ada/catalog").await.ok();
    assert_eq!(stored["tools"].as_array().unwrap().len(), 100);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_as_it_is() {
    let mut app = TestApp::start().await;
    app.user_called("ada").put_catalog(&tools(10)).await.ok();
    app.stop().await;
    let options = SqliteConnectOptions::new().filename(app.folder().join("toolrack.db"));
    let mut connection = options.connect().await.unwrap();
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', 1, x'00', 0)";
    sqlx::query(later).execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    let before = contents(app.folder());
    let told = refused(app.folder());
    assert!(told.contains("schema version 9999") && told.contains("newer program"), "{told}");
    assert!(contents(app.folder()) == before);
    let migrate = app.command(&["migrate"]);
    assert!(String::from_utf8_lossy(&migrate.stderr).contains("9999"));
    assert_eq!(migrate.status.code(), Some(1));
}

#[tokio::test]
async fn what_cannot_be_written_is_named() {
    let mut app = TestApp::start().await;
    app.user_called("ada").put_catalog(&tools(10)).await.ok();
    app.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("toolrack");
    // Another user may not reach the folder of the build.
    std::fs::hard_link(env!("CARGO_BIN_EXE_toolrack"), &program)
        .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_toolrack"), &program).map(drop))
        .unwrap();
    let database = folder.path().join("toolrack.db");
    std::fs::copy(app.folder().join("toolrack.db"), &database).unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&program, 0o755);
    let start = || {
        let mut command = std::process::Command::new(&program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-auth", "--database-url"]).env_clear();
        command.arg(format!("sqlite://{}", database.display())).stdin(std::process::Stdio::null());
        // Nobody: what root may not write does not exist.
        if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    mode(&database, 0o444);
    mode(folder.path(), 0o777);
    let told = start();
    assert!(told.contains("toolrack.db for reading and writing"), "a file: {told}");
    std::fs::remove_file(folder.path().join("toolrack.db.lock")).unwrap();
    mode(&database, 0o666);
    mode(folder.path(), 0o555);
    let told = start();
    assert!(told.contains("toolrack.db.lock") && told.contains("folder"), "a folder: {told}");
    mode(folder.path(), 0o755);
    let read = |path: &Path| std::fs::read(path).unwrap();
    assert!(read(&database) == read(&app.folder().join("toolrack.db")));
}

async fn send(address: &str, id: &str, body: &str, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "PUT /v1/users/{id}/catalog HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN_KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body.as_bytes()[..sent]).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_hangs_up_leaves_the_old_or_the_new() {
    let app = TestApp::start().await;
    let user = app.user_called("ada");
    let address = app.url().strip_prefix("http://").unwrap().to_owned();
    let old = user.put_catalog(&tools(50)).await.ok()["catalog_version"].clone();
    let body = json!({"tools": tools(800)}).to_string();
    let stored = async || user.client().get(&user.path(&["catalog"])).await.ok();
    for part in [0, 1, body.len() / 2, body.len() - 1] {
        drop(send(&address, "ada", &body, part).await);
        assert_eq!(stored().await["catalog_version"], old, "{part} of {} bytes are no request", body.len());
    }
    let whole = |document: &Value| document["tools"].as_array().unwrap().len();
    // Gone with the last byte, and while the upload is at work.
    for requests in 0..8 {
        let stream = send(&address, "ada", &body, body.len()).await;
        for _ in 0..requests {
            app.admin().get("/healthz").await.ok();
        }
        drop(stream);
        let document = stored().await;
        assert!([50, 800].contains(&whole(&document)), "{}", whole(&document));
        assert_eq!(whole(&document) == 50, document["catalog_version"] == old);
        // With an answer it is a promise.
        let mut stream = send(&address, "ada", &body, body.len()).await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        drop(stream);
        assert_eq!(whole(&stored().await), 800);
        user.put_catalog(&tools(50)).await.ok();
    }
}
