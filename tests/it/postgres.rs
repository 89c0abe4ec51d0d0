//! The service on PostgreSQL: what stops its start, what it keeps, and what processes see of each other.

use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection as _;
use tempfile::TempDir;

use crate::app::{Builder, TestApp};
use crate::faults::until;
use crate::samples::painter;

#[path = "../postgres/cluster.rs"]
pub(crate) mod cluster;

pub(crate) const MASTER_KEY: &str = "5ac1e5ac1e5ac1e5ac1e5ac1e5ac1e5ac1e5ac1e5ac1e5ac1e5ac1e5ac1e5ac1";

/// An empty database; `None` where PostgreSQL is not installed.
pub(crate) async fn database() -> Option<String> {
    let name = cluster::new_name();
    let url = cluster::url(&name)?;
    cluster::create(&name, "template0").await;
    Some(url)
}

/// Lets processes into the database of this URL, or cuts their connections and lets none in.
async fn let_in(url: &str, open: bool) {
    let name = url.rsplit('/').next().unwrap();
    let mut connection = sqlx::PgConnection::connect(&cluster::url("postgres").unwrap()).await.unwrap();
    let allow = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {open}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(allow)).execute(&mut connection).await.unwrap();
    if !open {
        let cut = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1";
        sqlx::query(cut).bind(name).execute(&mut connection).await.unwrap();
    }
}

pub(crate) fn on(url: &str) -> Builder {
    TestApp::builder().database(url).set("TOOLRACK_SECRETS_MASTER_KEY", MASTER_KEY)
}

/// What a command that fails says.
fn refusal(url: &str, arguments: &[&str], master_key: Option<&str>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    command.args(arguments).args(["--database-url", url]).env_clear().stdin(Stdio::null());
    command.envs(master_key.map(|key| ("TOOLRACK_SECRETS_MASTER_KEY", key)));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("s3cret") && !text.contains("wr0ng"), "{text}");
    text
}

#[tokio::test]
async fn a_start_that_is_refused_says_what_to_do() {
    let Some(url) = database().await else { return };
    let serve = ["serve", "--listen", "127.0.0.1:0", "--no-auth"];
    let refused = |url: &str| refusal(url, &serve, Some(MASTER_KEY));
    let text = refusal(&url, &serve, None);
    assert!(text.contains("secrets.master_key") && text.contains("openssl rand -hex 32"), "{text}");

    let (_, place) = url.split_once('@').unwrap();
    let (_, port) = place.split_once(':').unwrap();
    let tcp = format!("127.0.0.1:{port}");
    for (url, reason) in [
        (cluster::url("nowhere").unwrap(), "CREATE DATABASE \"nowhere\""),
        (format!("postgres://asked:wr0ng@{tcp}"), "lets the user \"asked\" not in"),
        (format!("postgres://asked:s3cret@{tcp}?sslmode=require"), "no encrypted connection"),
        ("postgres://asked:s3cret@127.0.0.1:1/rack".to_owned(), "cannot be reached"),
        (format!("postgres://asked:s3cret@{tcp}?ssl=yes"), "the parameter \"ssl\" is not known"),
        ("postgres://asked:s3cret@127.0.0.1".to_owned(), "names no database"),
    ] {
        let text = refused(&url);
        assert!(text.contains(reason), "{url}: {text}");
    }
    let text = refusal(&url, &["backup", "somewhere"], Some(MASTER_KEY));
    assert!(text.contains("pg_dump"), "{text}");
    let text = refusal(&url, &["keys", "rotate-master"], None);
    assert!(text.contains("secrets.master_key"), "{text}");
    let text = refusal("postgres://asked:s3cret@db", &["check-config"], None);
    assert!(text.contains("names no database"), "{text}");
}

#[tokio::test]
async fn a_service_needs_no_right_to_make_tables() {
    let Some(url) = database().await else { return };
    let command = |url: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(arguments).args(["--database-url", url]).env_clear().stdin(Stdio::null());
        command.env("TOOLRACK_SECRETS_MASTER_KEY", MASTER_KEY).output().unwrap()
    };
    let name = url.rsplit('/').next().unwrap();
    let role = format!("service_of_{name}");
    let (_, place) = url.split_once('@').unwrap();
    let as_role = format!("postgres://{role}@{place}");
    let mut owner = sqlx::PgConnection::connect(&url).await.unwrap();
    let mut execute = async |statements: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&mut owner).await.unwrap();
    };
    execute(format!("CREATE ROLE {role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")).await;
    let refused = command(&as_role, &["serve", "--listen", "127.0.0.1:0", "--no-auth"]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("permission denied") && text.contains("toolrack migrate"), "{text}");
    assert!(command(&url, &["migrate"]).status.success());
    execute(format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")).await;
    let app = on(&as_role).start().await;
    let user = painter(&app, json!({"max_warm_tools": 3})).await;
    let found = user.search(json!({"session": "s", "query": "amber"})).await.ok();
    assert_eq!(found["warmed"], json!(["amber"]));
}

#[tokio::test]
async fn everything_is_there_after_a_restart_and_after_a_kill() {
    let Some(url) = database().await else { return };
    let mut app = on(&url).start().await;
    let user = painter(&app, json!({"max_warm_tools": 3})).await;
    let found = user.search(json!({"session": "s", "query": "amber"})).await.ok();
    assert_eq!(found["warmed"], json!(["amber"]));
    let array = user.assemble(json!({"session": "s"})).await.ok()["fingerprint"].clone();
    let id = user.path(&[]);
    app.restart().await;
    let again = app.user_called(id.rsplit('/').next().unwrap());
    assert_eq!(again.assemble(json!({"session": "s"})).await.ok()["fingerprint"], array);
    let found = again.search(json!({"session": "s", "query": "crimson"})).await.ok();
    assert_eq!(found["warmed"], json!(["crimson"]));
    app.kill();
    app.start_again().await;
    let again = app.user_called(id.rsplit('/').next().unwrap());
    let answer = again.assemble(json!({"session": "s"})).await.ok();
    assert_eq!(answer["warm"], json!(["amber", "crimson"]), "{answer}");
}

#[tokio::test]
async fn processes_on_one_database_see_what_others_write_within_a_second() {
    let Some(url) = database().await else { return };
    let first = on(&url).start().await;
    let second = on(&url).start().await;
    let user = painter(&first, json!({"max_warm_tools": 3})).await;
    let id = user.path(&[]);
    let there = second.user_called(id.rsplit('/').next().unwrap());
    assert_eq!(there.assemble(json!({})).await.text(), user.assemble(json!({})).await.text());
    user.put_config(&json!({"core": ["teal"]})).await.ok();
    let here = user.assemble(json!({})).await.text().to_owned();
    tokio::time::timeout(Duration::from_secs(10), async {
        while there.assemble(json!({})).await.text() != here {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("the other process reads it again");
}

#[tokio::test]
async fn who_wrote_sees_it_on_every_process() {
    let Some(url) = database().await else { return };
    let first = on(&url).start().await;
    let second = on(&url).start().await;
    let user = painter(&first, json!({"max_warm_tools": 3})).await;
    let path = user.path(&[]);
    let id = path.rsplit('/').next().unwrap();
    let project = format!("{id}-project");
    let body = json!({"user": id, "project": project});
    let assemble = async |app: &TestApp, revision: &str| {
        let headers = [("content-type", "application/json"), ("x-toolrack-revision", revision)];
        app.admin().send(Method::POST, "/v1/assemble", &headers, body.to_string().into()).await
    };
    for round in 0..20 {
        // In memory there, so that only the header makes it look again.
        assemble(&second, "").await.ok();
        let (scope, name) = if round % 2 == 0 {
            (path.clone(), "user")
        } else {
            (format!("/v1/projects/{project}"), "project")
        };
        let config = json!({"core": ["teal"], "max_warm_tools": round});
        let written = first.admin().put(&format!("{scope}/config"), &config).await;
        let revision = written.header("x-toolrack-revision").unwrap().to_owned();
        assert!(revision.starts_with(&format!("{name}=")), "{revision}");
        written.ok();
        let there = assemble(&second, &revision).await;
        assert_eq!(there.text(), assemble(&first, "").await.text(), "round {round}");
    }
    for odd in ["user", "user=1, user=2"] {
        assemble(&second, odd).await.problem(422, "invalid_request");
    }
    // Of a state that is not there it is told nothing, and the newest one is shown.
    assert_eq!(assemble(&second, "user=99999999").await.text(), assemble(&first, "").await.text());
}

#[tokio::test]
async fn while_the_database_is_away_what_is_known_is_answered_and_nothing_promised() {
    let Some(url) = database().await else { return };
    let app = on(&url).start().await;
    let user = painter(&app, json!({"max_warm_tools": 3})).await;
    let found = user.search(json!({"session": "s", "query": "amber"})).await.ok();
    assert_eq!(found["warmed"], json!(["amber"]));
    let before = user.assemble(json!({"session": "s"})).await.ok();
    let_in(&url, false).await;
    let is_told = |answer: &Value| answer["warnings"].to_string().contains("database_away");
    let away = user.assemble(json!({"session": "s"})).await.ok();
    assert!(is_told(&away), "{away}");
    assert_eq!((&away["fingerprint"], &away["warm"]), (&before["fingerprint"], &json!(["amber"])));
    let found = user.search(json!({"session": "s", "query": "crimson"})).await.ok();
    assert_eq!(
        (&found["warmed"], &found["results"][0]["matches"][0]["name"]),
        (&json!([]), &json!("crimson")),
        "{found}"
    );
    assert!(is_told(&found), "{found}");
    user.put_config(&json!({"core": ["teal"]})).await.problem(503, "unavailable");
    user.assemble(json!({"session": "new"})).await.problem(503, "unavailable");
    app.anonymous().get("/readyz").await.expect_status(503);
    let_in(&url, true).await;
    let back = async {
        loop {
            let found = user.search(json!({"session": "s", "query": "crimson"})).await.ok();
            if found["warmed"] == json!(["crimson"]) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let back =
        tokio::time::timeout(Duration::from_secs(10), back).await.expect("the database is asked again");
    assert!(!is_told(&back), "{back}");
    let after = user.assemble(json!({"session": "s"})).await.ok();
    assert_eq!(after["warm"], json!(["amber", "crimson"]));
    app.anonymous().get("/readyz").await.expect_status(200);
    // A line when it went and one when it was back, whatever failed meanwhile; a late answer may be another pair.
    let log = app.logs();
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    let (gone, back) = (lines("the database is away"), lines("the database is back"));
    assert!(gone == back && (1..=2).contains(&gone), "{log}");
    assert_eq!((lines("not ready"), lines("a write failed"), lines("at line")), (0, 0, 0), "{log}");
}

#[tokio::test]
async fn a_session_goes_from_process_to_process() {
    let Some(url) = database().await else { return };
    let first = on(&url).start().await;
    let second = on(&url).start().await;
    let user = painter(&first, json!({"max_warm_tools": 10})).await;
    let id = user.path(&[]);
    let there = second.user_called(id.rsplit('/').next().unwrap());
    let colours = ["amber", "blue", "crimson", "denim", "emerald", "fuchsia"];
    for (at, colour) in colours.into_iter().enumerate() {
        let (now, next) = if at % 2 == 0 { (&user, &there) } else { (&there, &user) };
        let found = now.search(json!({"session": "s", "query": colour})).await.ok();
        assert_eq!(found["warmed"], json!([colour]), "{found}");
        let shown = next.assemble(json!({"session": "s"})).await.ok();
        assert_eq!(shown["warm"], json!(colours[..=at]), "what was promised there is here");
    }
    // At the same time, and one session beside the other: nothing is lost.
    let sessions: Vec<String> = (0..20).map(|at| format!("both-{at}")).collect();
    let warm = async |user: &crate::app::User, session: &str, colour: &str| {
        user.search(json!({"session": session, "query": colour})).await.ok();
    };
    for (mine, theirs) in [("amber", "blue"), ("crimson", "denim"), ("emerald", "fuchsia")] {
        let all = sessions
            .iter()
            .map(|session| async { tokio::join!(warm(&user, session, mine), warm(&there, session, theirs)) });
        futures_util::future::join_all(all).await;
    }
    for session in &sessions {
        let (here, other) =
            (user.assemble(json!({"session": session})), there.assemble(json!({"session": session})));
        let (here, other) = tokio::join!(here, other);
        let (here, other) = (here.ok(), other.ok());
        assert_eq!((&here["warm"], &here["fingerprint"]), (&other["warm"], &other["fingerprint"]));
        let mut warm: Vec<&str> =
            here["warm"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
        warm.sort_unstable();
        assert_eq!(warm, colours, "{session}");
    }
    // One that ends here has ended there.
    first.admin().delete(&user.path(&["sessions", "s"])).await.expect_status(204);
    assert_eq!(there.assemble(json!({"session": "s"})).await.ok()["warm"], json!([]));
}

#[tokio::test]
async fn what_a_session_did_is_counted_wherever_it_went() {
    let Some(url) = database().await else { return };
    let first = on(&url).start().await;
    let second = on(&url).start().await;
    let user = painter(&first, json!({"max_warm_tools": 10})).await;
    let there = second.user_called(&user.id);
    for colour in ["amber", "blue", "crimson"] {
        for user in [&user, &there] {
            user.search(json!({"session": "s", "query": colour})).await.ok();
            user.assemble(json!({"session": "s"})).await.ok();
        }
    }
    let counted = async {
        loop {
            let path = user.path(&["sessions", "s"]);
            let (here, other) = (first.admin().get(&path).await.ok(), second.admin().get(&path).await.ok());
            let all = |document: &Value| {
                document["ledger"]["assemblies"] == json!(6) && document["ledger"]["searches"] == json!(6)
            };
            if all(&here) && here["ledger"] == other["ledger"] {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), counted).await.expect("both know what both counted");
}

/// What makes a process see another time; `None` where it is not installed.
pub(crate) fn fake_time() -> Option<String> {
    let library = |arch: &str| format!("/usr/lib/{arch}-linux-gnu/faketime/libfaketime.so.1");
    let found = ["x86_64", "aarch64"].map(library).into_iter().find(|path| std::fs::exists(path).unwrap());
    let required = std::env::var_os("TOOLRACK_REQUIRE_POSTGRES").is_some();
    assert!(found.is_some() || !required, "libfaketime is not installed (Debian: apt-get install faketime)");
    found
}

#[tokio::test]
async fn a_process_whose_clock_is_wrong_ends_nothing() {
    let (Some(url), Some(library)) = (database().await, fake_time()) else { return };
    let right = on(&url).start().await;
    let user = painter(&right, json!({"max_warm_tools": 10})).await;
    let id = user.path(&[]);
    user.search(json!({"session": "s", "query": "amber"})).await.ok();
    let wrong = on(&url).set("LD_PRELOAD", library).set("FAKETIME", "+400d").start().await;
    let there = wrong.user_called(id.rsplit('/').next().unwrap());
    there.search(json!({"session": "t", "query": "blue"})).await.ok();
    assert_eq!(there.assemble(json!({"session": "s"})).await.ok()["warm"], json!(["amber"]));
    for session in ["s", "t"] {
        let here = user.assemble(json!({"session": session})).await.ok();
        let other = there.assemble(json!({"session": session})).await.ok();
        assert_eq!((&here["warm"], &here["fingerprint"]), (&other["warm"], &other["fingerprint"]));
        assert_eq!(here["counts"]["warm"], json!(1), "{here}");
    }
}

#[tokio::test]
async fn a_service_moves_from_a_file_to_a_server() {
    let Some(url) = database().await else { return };
    let mut app = TestApp::builder().set("TOOLRACK_SECRETS_MASTER_KEY", MASTER_KEY).start().await;
    let user = painter(&app, json!({"max_warm_tools": 10})).await;
    let id = user.path(&[]);
    user.search(json!({"session": "s", "query": "amber"})).await.ok();
    let before = user.assemble(json!({"session": "s"})).await.ok();
    let file = format!("sqlite://{}", app.folder().join("toolrack.db").display());
    let copy = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(["copy", "--from", &file, "--to", &url]).env_clear().output().unwrap()
    };
    let text = String::from_utf8(copy().stderr).unwrap();
    assert!(text.contains("another toolrack serves this database"), "{text}");
    app.stop().await;
    let done = copy();
    assert!(done.status.success(), "{done:?}");
    let text = String::from_utf8(copy().stderr).unwrap();
    assert!(text.contains("holds rows already"), "{text}");
    let moved = on(&url).start().await;
    let there = moved.user_called(id.rsplit('/').next().unwrap());
    let after = there.assemble(json!({"session": "s"})).await.ok();
    assert_eq!((&after["warm"], &after["fingerprint"]), (&before["warm"], &before["fingerprint"]));
}

#[tokio::test]
async fn processes_share_one_master_key_and_change_it_while_they_serve() {
    let Some(url) = database().await else { return };
    let (old, new) = (MASTER_KEY, "2c".repeat(32));
    let (mut first, mut second) = (on(&url).start().await, on(&url).start().await);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--no-auth"];
    // Also while nothing is sealed.
    let text = refusal(&url, &serve, Some(&new));
    assert!(text.contains("another master key") && text.contains("docs/backup.md"), "{text}");
    let mut sealed = 0;
    let mut all_can_read_what_each_seals = async |first: &TestApp, second: &TestApp, step: &str| {
        for app in [first, second] {
            let matcher = json!({"endpoint": "https://rerank.example.com/v2/rerank", "api_key": format!("sk-user-{sealed:08}")});
            app.user_called(&format!("sealed-{sealed}"))
                .put_config(&json!({ "matcher": matcher }))
                .await
                .ok();
            sealed += 1;
        }
        for app in [first, second] {
            for at in 0..sealed {
                let config = app.admin().get(&format!("/v1/users/sealed-{at}/config")).await.ok();
                assert_eq!(config["matcher"]["api_key"]["set"], true, "{step}: {at}");
            }
        }
    };
    all_can_read_what_each_seals(&first, &second, "before").await;
    for (step, key, previous) in [
        ("both can be read", old, new.as_str()),
        ("the new one seals", &new, old),
        ("rotate", "", ""),
        ("the old one is dropped", &new, ""),
    ] {
        if step == "rotate" {
            let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
            command.args(["keys", "rotate-master", "--database-url", &url]).env_clear().stdin(Stdio::null());
            command.env("TOOLRACK_SECRETS_MASTER_KEY", &new).env("TOOLRACK_SECRETS_PREVIOUS_MASTER_KEY", old);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            all_can_read_what_each_seals(&first, &second, step).await;
            continue;
        }
        for one in [true, false] {
            let app = if one { &mut first } else { &mut second };
            app.stop().await;
            app.set("TOOLRACK_SECRETS_MASTER_KEY", key);
            app.set("TOOLRACK_SECRETS_PREVIOUS_MASTER_KEY", previous);
            app.start_again().await;
            all_can_read_what_each_seals(&first, &second, step).await;
        }
    }
    refusal(&url, &serve, Some(old));
}

#[tokio::test]
async fn a_folder_is_not_needed() {
    let Some(url) = database().await else { return };
    let folder = TempDir::new().unwrap();
    let app = on(&url).start_in(folder).await;
    let names: Vec<_> =
        std::fs::read_dir(app.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["log.txt"]);
}

#[tokio::test]
async fn keys_that_the_database_lost_are_lost_though_no_connection_was() {
    let Some(url) = database().await else { return };
    let (first, second) = (on(&url).start().await, on(&url).start().await);
    let make = async |app: &TestApp, name: &str| {
        let body = json!({"name": name, "role": "agent", "users": ["*"]});
        app.admin().post("/v1/keys", &body).await.json()["key"].as_str().unwrap().to_owned()
    };
    let taken = async |key: &str| {
        let mut statuses = Vec::new();
        for app in [&first, &second] {
            statuses.push(app.user_with_key("holder", key).client().get("/v1/limits").await.status);
        }
        statuses
    };
    let seen = async |key: &str, status: u16| {
        until("keys to be read", async || taken(key).await == [status, status]).await;
    };
    let (kept, lost) = (make(&first, "kept").await, make(&first, "lost").await);
    for key in [&kept, &lost] {
        seen(key, 200).await;
    }
    // As rows of a backup that were put in the place of those that there are.
    let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
    let restore = "DELETE FROM api_keys WHERE name = 'lost'; \
                   UPDATE counters SET value = value - 1 WHERE name = 'api_keys'";
    sqlx::raw_sql(restore).execute(&mut connection).await.unwrap();
    let late = make(&second, "late").await;
    seen(&lost, 401).await;
    for key in [&kept, &late] {
        seen(key, 200).await;
    }
}
