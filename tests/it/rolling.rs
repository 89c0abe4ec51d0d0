//! Rolling updates: a new program comes to a database of the schema before, and programs go on beside a newer one that expands it.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use sqlx::Connection as _;

use crate::app::TestApp;
use crate::faults::traffic::Traffic;
use crate::postgres::{database, on};
use crate::samples::{painter, paints};

/// The last file of the schema, and what takes back what it did. A new file gets its own here.
const LAST: (i64, &str) = (
    16,
    "ALTER TABLE mcp_servers DROP COLUMN watch_by; ALTER TABLE mcp_servers DROP COLUMN watch_until; \
     DROP TABLE vector_claims; DROP INDEX rankings_of_owner",
);

/// Requests between two steps of an update.
const BETWEEN: usize = 60;

#[test]
fn the_last_file_of_the_schema_can_be_taken_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let number = |name: String| name.split('_').next().unwrap().parse::<i64>().unwrap();
    let files = std::fs::read_dir(folder).unwrap();
    let last = files.map(|file| number(file.unwrap().file_name().into_string().unwrap())).max();
    assert_eq!(last, Some(LAST.0), "LAST is about the last file");
}

async fn execute(url: &str, statements: &[&str]) {
    let mut operator = sqlx::PgConnection::connect(url).await.unwrap();
    let text = sqlx::AssertSqlSafe(statements.join(";\n"));
    sqlx::raw_sql(text).execute(&mut operator).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_start_together_bring_the_schema_before_up_to_date() {
    let Some(url) = database().await else { return };
    let mut app = on(&url).start().await;
    let user = painter(&app, json!({"max_warm_tools": 10})).await;
    let mut shown = Vec::new();
    for session in ["s", "t"] {
        user.search(json!({"session": session, "query": "amber"})).await.ok();
        user.describe(json!({"session": session, "name": "teal"})).await.ok();
        shown.push(user.assemble(json!({"session": session})).await.ok());
    }
    app.stop().await;
    let forget = format!("DELETE FROM _sqlx_migrations WHERE version = {}", LAST.0);
    execute(&url, &[LAST.1, &forget]).await;

    // Each waits for its first line, so each has a thread.
    let starts = (0..3).map(|_| {
        let builder = on(&url);
        tokio::task::spawn_blocking(|| tokio::runtime::Handle::current().block_on(builder.start()))
    });
    let apps: Vec<TestApp> =
        futures_util::future::join_all(starts).await.into_iter().map(Result::unwrap).collect();
    for (session, before) in ["s", "t"].into_iter().zip(&shown) {
        for app in &apps {
            let after = app.user_called(&user.id).assemble(json!({"session": session})).await.ok();
            assert_eq!((&after["warm"], &after["fingerprint"]), (&before["warm"], &before["fingerprint"]));
        }
    }
    let urls = apps.iter().map(|app| app.url().to_owned()).collect();
    let traffic = Traffic::start(urls, &user.id);
    traffic.goes_on(BETWEEN).await;
    let promised = traffic.end().await;
    assert_eq!((promised.violations.clone(), promised.refused), (Vec::new(), 0));
    promised.is_kept(&apps[0].user_called(&user.id)).await;
}

/// What a newer program does when it starts: its file, in one transaction that keeps others out.
async fn newer(url: &str, version: i64, name: &str, file: &str) {
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('migration', 0))";
    let note = format!(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES ({version}, '{name}', true, '\\x00', 0)"
    );
    execute(url, &["BEGIN", lock, file, &note, "COMMIT"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_go_on_while_a_newer_one_expands_and_contracts_the_schema() {
    let Some(url) = database().await else { return };
    let mut apps = vec![on(&url).start().await, on(&url).start().await];
    let id = "rolling";
    apps[0].user_called(id).put_catalog(&paints()).await.ok();
    apps[0].user_called(id).put_config(&json!({"max_warm_tools": 64})).await.ok();
    let urls = |apps: &[TestApp]| apps.iter().map(|app| app.url().to_owned()).collect();
    let (known, expanded, contracted) = (LAST.0, LAST.0 + 1, LAST.0 + 2);

    let traffic = Traffic::start(urls(&apps), id);
    traffic.goes_on(BETWEEN).await;
    let expansion = "ALTER TABLE sessions ADD COLUMN note TEXT NOT NULL DEFAULT ''; \
                     ALTER TABLE warm ADD COLUMN note TEXT NOT NULL DEFAULT ''; \
                     ALTER TABLE scopes ADD COLUMN note TEXT; \
                     CREATE TABLE notes (name TEXT PRIMARY KEY); \
                     CREATE INDEX sessions_by_note ON sessions (note)";
    newer(&url, expanded, &format!("notes_from_{known}"), expansion).await;
    traffic.goes_on(BETWEEN).await;
    // What the newer program writes beside the others.
    execute(&url, &["UPDATE sessions SET note = 'n'", "UPDATE warm SET note = 'n'"]).await;
    traffic.goes_on(BETWEEN).await;
    let promised = traffic.end().await;
    assert_eq!((promised.violations.clone(), promised.refused), (Vec::new(), 0), "nobody notices");

    // One ends and comes again, as when the update is taken back, while the other is asked.
    let traffic = Traffic::start(urls(&apps[1..]), id);
    apps[0].restart().await;
    assert!(apps[0].logs().contains("a newer program has expanded the schema"), "{}", apps[0].logs());
    promised.sessions_are_kept(&apps[0].user_called(id)).await;
    newer(
        &url,
        contracted,
        &format!("no_notes_from_{known}"),
        "DROP TABLE notes; ALTER TABLE warm DROP COLUMN note",
    )
    .await;
    traffic.goes_on(BETWEEN).await;
    apps[0].restart().await;
    let again = traffic.end().await;
    assert_eq!((again.violations.clone(), again.refused), (Vec::new(), 0));
    for app in &apps {
        again.is_kept(&app.user_called(id)).await;
    }
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(arguments).args(["--database-url", &url]).env_clear().stdin(Stdio::null());
        command.env("TOOLRACK_SECRETS_MASTER_KEY", crate::postgres::MASTER_KEY);
        command.output().unwrap()
    };
    assert!(command(&["migrate"]).status.success());

    // What only newer programs work with is refused before anything is done, and stops nobody who runs.
    newer(&url, LAST.0 + 3, &format!("no_revisions_from_{contracted}"), "SELECT 1").await;
    let refused = command(&["serve", "--listen", "127.0.0.1:0", "--no-auth"]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("use the newer program"), "{text}");
    apps[1].user_called(id).search(json!({"session": "last", "query": "amber"})).await.ok();
}
