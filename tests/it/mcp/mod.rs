//! Tools that come from MCP servers: the ones of the official Python library, over HTTP and as commands, and npm's reference
//! server.

mod server;
mod stored;

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::Connection as _;

use self::server::{Server, everything, path as programs, python, script};
use crate::app::{TestApp, User, path};
use crate::{faults, postgres};

const TOKEN: &str = "mcp-canary-5f2e90d1c7b34a68";

async fn private() -> TestApp {
    TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start().await
}

/// A service that may run these programs.
async fn running(commands: &[&str]) -> TestApp {
    let builder = TestApp::builder().set("PATH", programs().display());
    builder.set("TOOLRACK_MCP_ALLOW_COMMANDS", commands.join(",")).start().await
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

fn server_path(user: &User, parts: &[&str]) -> String {
    user.path(&[&["mcp-servers"], parts].concat())
}

/// A sync to its end, however long it takes: its job and result.
async fn sync(app: &TestApp, user: &User, name: &str) -> Value {
    let answer = app.admin().post(&server_path(user, &[name, "sync"]), &json!({})).await;
    let document = answer.json();
    if answer.status != 202 {
        return answer.ok();
    }
    assert_eq!(document["job"]["state"], "running", "{document}");
    until("the sync ends", async || {
        app.admin().get(&server_path(user, &[name])).await.ok()["job"]["state"] != "running"
    })
    .await;
    let shown = app.admin().get(&server_path(user, &[name])).await.ok();
    assert_eq!(shown["job"]["id"], document["job"]["id"]);
    shown
}

async fn put(app: &TestApp, user: &User, name: &str, spec: &Value) -> Value {
    app.admin().put(&server_path(user, &[name]), spec).await.ok()
}

async fn tools(app: &TestApp, user: &User) -> Vec<Value> {
    let catalog = app.admin().get(&user.path(&["catalog"])).await.ok();
    catalog["tools"].as_array().unwrap().clone()
}

async fn names(app: &TestApp, user: &User) -> Vec<String> {
    let tools = tools(app, user).await;
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits for something that the service does by itself.
async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), wait).await.is_ok(), "{what}");
}

#[tokio::test]
async fn all_pages_of_a_server_stand_in_its_group() {
    let five = json!([tool("a", "A."), tool("b", "B."), tool("c", "C."), tool("d", "D."), tool("e", "E.")]);
    let Some(server) = Server::pages(&five, &[("TOKEN", TOKEN)]) else { return };
    let app = private().await;
    let user = app.user();
    user.put_catalog(&[json!({"name": "own", "group": "mine"}), json!({"name": "old", "group": "counts"})])
        .await
        .ok();
    let spec = json!({"url": server.url, "headers": {"Authorization": format!("Bearer {TOKEN}")}});
    let written = put(&app, &user, "counts", &spec).await;
    assert_eq!(written["headers"]["Authorization"], json!({"set": true, "last4": &TOKEN[TOKEN.len() - 4..]}));
    assert_eq!((&written["tools"], written.get("last_status")), (&json!(0), None), "{written}");

    let sync_path = server_path(&user, &["counts", "sync"]);
    let dry = app.admin().post(&format!("{sync_path}?dry_run=true"), &json!({})).await.ok();
    assert_eq!((&dry["job"]["state"], &dry["job"]["dry_run"]), (&json!("done"), &json!(true)), "{dry}");
    assert_eq!(dry["result"]["catalog"]["added"]["names"], json!(["a", "b", "c", "d", "e"]), "{dry}");
    assert_eq!(dry["result"]["catalog"]["removed"]["names"], json!(["old"]), "{dry}");
    assert_eq!(names(&app, &user).await, ["old", "own"], "a dry run stores nothing");
    assert_eq!(server.seen().await["cursors"], json!([null, "2", "4"]));

    let done = sync(&app, &user, "counts").await;
    assert_eq!(done["job"]["tools_read"], 5, "{done}");
    assert_eq!(done["result"]["server"], json!({"name": "pages", "version": "7"}), "{done}");
    let stored = tools(&app, &user).await;
    let groups: Vec<&str> = stored.iter().map(|tool| tool["group"].as_str().unwrap()).collect();
    assert_eq!(groups, ["counts", "counts", "counts", "counts", "counts", "mine"]);
    assert_eq!(stored[0]["parameters"], json!({"type": "object"}));

    server.set_tools(&json!([tool("a", "A."), tool("b", "Else."), tool("f", "F.")])).await;
    let again = sync(&app, &user, "counts").await;
    let diff = &again["result"]["catalog"];
    for (key, wanted) in [
        ("added", json!(["f"])),
        ("changed", json!(["b"])),
        ("removed", json!(["c", "d", "e"])),
        ("unchanged", json!(["a", "own"])),
    ] {
        assert_eq!(diff[key]["names"], wanted, "{key}: {diff}");
    }
    let shown = app.admin().get(&server_path(&user, &["counts"])).await.ok();
    assert_eq!(shown["last_status"], json!({"outcome": "ok", "added": 1, "changed": 1, "removed": 3}));
    assert_eq!((&shown["tools"], &shown["job"]["state"]), (&json!(3), &json!("done")), "{shown}");
    assert!(shown["last_sync_at_ms"].as_i64() > Some(0) && shown.get("next_sync_at_ms").is_none(), "{shown}");
    for text in [shown.to_string(), again.to_string(), app.logs()] {
        assert!(!text.contains(TOKEN), "{text}");
    }
    let tool = app.admin().get(&user.path(&["catalog", "tools", "f"])).await.ok();
    assert_eq!(tool["provenance"]["uploaded_by"], "admin", "{tool}");

    // A server without tools has none here either.
    server.set_tools(&json!([])).await;
    sync(&app, &user, "counts").await;
    assert_eq!(names(&app, &user).await, ["own"]);
}

#[tokio::test]
async fn a_server_that_wants_a_key_is_told_as_such() {
    let Some(server) = Server::pages(&json!([tool("a", "A.")]), &[("TOKEN", TOKEN)]) else { return };
    let app = private().await;
    let user = app.user();
    for headers in [json!({}), json!({"Authorization": "Bearer WRONG-CANARY"})] {
        put(&app, &user, "s", &json!({"url": server.url, "headers": headers})).await;
        let failed = sync(&app, &user, "s").await;
        assert_eq!(failed["job"]["state"], "failed", "{failed}");
        assert_eq!(failed["job"]["fault"]["reason"], "unauthorized", "{failed}");
        let shown = app.admin().get(&server_path(&user, &["s"])).await.ok();
        assert_eq!(shown["last_status"]["fault"], failed["job"]["fault"], "{shown}");
        assert!(!shown.to_string().contains("WRONG-CANARY") && !app.logs().contains("WRONG-CANARY"));
    }
    assert!(names(&app, &user).await.is_empty());
}

#[tokio::test]
async fn a_command_is_run_where_the_settings_name_it() {
    let Some(python) = python() else { return };
    let app = running(&[&python]).await;
    let user = app.user();
    let spec = json!({"command": python, "args": [script(), "plain", "stdio"], "env": {"PLAIN_GREETING": "moin-moin-moin"}});
    let written = put(&app, &user, "notes", &spec).await;
    assert_eq!(written["env"]["PLAIN_GREETING"], json!({"set": true, "last4": "moin"}), "{written}");
    let done = sync(&app, &user, "notes").await;
    assert_eq!(done["job"]["state"], "done", "{done}");
    assert_eq!(done["result"]["group_description"], "Reads and writes notes.", "{done}");
    let stored = tools(&app, &user).await;
    assert_eq!(names(&app, &user).await, ["find_notes", "greet"]);
    assert_eq!(stored[0]["annotations"]["readOnlyHint"], true, "{stored:?}");
    assert!(stored[1]["description"].as_str().unwrap().contains("moin-moin-moin"), "{stored:?}");

    let other = json!({"command": "node", "args": ["x"]});
    let problem = app.admin().put(&server_path(&user, &["x"]), &other).await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["code"], "command_not_allowed", "{problem}");
    let nowhere = private().await;
    let user = nowhere.user();
    let refused = nowhere.admin().put(&server_path(&user, &["notes"]), &spec).await;
    assert_eq!(refused.problem(422, "invalid_request")["errors"][0]["pointer"], "/command");
}

#[tokio::test]
async fn a_command_that_fails_tells_why() {
    let Some(python) = python() else { return };
    let app = running(&[&python]).await;
    let user = app.user();
    let fails = "import sys; sys.exit('no such \\x1b[31mnotebook')";
    put(&app, &user, "bad", &json!({"command": python, "args": ["-c", fails]})).await;
    let failed = sync(&app, &user, "bad").await;
    let fault = &failed["job"]["fault"];
    assert_eq!(fault["reason"], "command_failed", "{failed}");
    let detail = fault["detail"].as_str().unwrap();
    assert!(
        detail.contains("status 1") && detail.contains("notebook") && !detail.contains('\u{1b}'),
        "{detail}"
    );
}

#[tokio::test]
async fn the_reference_server_is_read_over_both_transports() {
    let Some(script) = everything() else { return };
    let app = TestApp::builder()
        .set("PATH", programs().display())
        .set("TOOLRACK_MCP_ALLOW_COMMANDS", "node")
        .set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true")
        .start()
        .await;
    let Some(http) = Server::everything().await else { return };
    let mut lists = Vec::new();
    for spec in [json!({"url": http.url}), json!({"command": "node", "args": [script, "stdio"]})] {
        let user = app.user();
        put(&app, &user, "everything", &spec).await;
        let done = sync(&app, &user, "everything").await;
        assert_eq!(done["job"]["state"], "done", "{done}");
        lists.push(tools(&app, &user).await);
    }
    let names: Vec<&str> = lists[0].iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"echo") && names.len() >= 8, "{names:?}");
    assert_eq!(lists[0], lists[1], "both transports list the same");
    // What was read can be sent to a model.
    let user = app.user();
    user.put_catalog(&lists[0]).await.ok();
    let array = user.assemble(json!({"format": "openai_chat"})).await.ok();
    assert!(array.to_string().contains("get-sum"), "{array}");
}

#[tokio::test]
async fn a_long_sync_tells_how_far_it_is() {
    let three = json!([tool("a", "A."), tool("b", "B."), tool("c", "C.")]);
    let Some(server) = Server::pages(&three, &[("GATE", "1")]) else { return };
    let app = private().await;
    let user = app.user();
    put(&app, &user, "slow", &json!({"url": server.url})).await;
    let answer = app.admin().post(&server_path(&user, &["slow", "sync"]), &json!({})).await;
    answer.expect_status(202);
    let answer = answer.json();
    let shown = app.admin().get(&server_path(&user, &["slow"])).await.ok();
    assert_eq!(shown["job"]["id"], answer["job"]["id"]);
    assert_eq!(
        (&shown["job"]["state"], &shown["job"]["step"], &shown["job"]["tools_read"]),
        (&json!("running"), &json!("listing"), &json!(2)),
        "{shown}"
    );
    server.go().await;
    until("the sync ends", async || names(&app, &user).await == ["a", "b", "c"]).await;
    until("it is noted", async || {
        let shown = app.admin().get(&server_path(&user, &["slow"])).await.ok();
        shown["job"]["state"] == "done" && shown["tools"] == 3
    })
    .await;
}

#[tokio::test]
async fn a_watched_server_tells_of_its_changes() {
    let Some(server) = Server::pages(&json!([tool("a", "A.")]), &[]) else { return };
    let app = private().await;
    let user = app.user();
    put(&app, &user, "live", &json!({"url": server.url, "watch": true})).await;
    until("it is read once it is connected", async || names(&app, &user).await == ["a"]).await;
    server.set_tools(&json!([tool("a", "A."), tool("b", "B.")])).await;
    until("it is read when it changes", async || names(&app, &user).await == ["a", "b"]).await;
    let log = app.admin().get(&path(&["v1", "audit"])).await.ok();
    let by: Vec<&str> =
        log["entries"].as_array().unwrap().iter().map(|row| row["actor"].as_str().unwrap()).collect();
    assert_eq!(by, ["sync", "sync", "admin"], "{log}");

    app.admin().delete(&server_path(&user, &["live"])).await.expect_status(204);
    app.admin().get(&server_path(&user, &["live"])).await.problem(404, "not_found");
    assert_eq!(names(&app, &user).await, ["a", "b"], "tools stay");
}

#[tokio::test]
async fn of_several_processes_one_watches_a_server() {
    let Some(url) = postgres::database().await else { return };
    let Some(server) = Server::pages(&json!([tool("a", "A.")]), &[]) else { return };
    let on = || postgres::on(&url).set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start();
    let (mut first, second) = (on().await, on().await);
    let user = first.user();
    put(&first, &user, "live", &json!({"url": server.url, "watch": true})).await;
    until("it is read once it is connected", async || names(&first, &user).await == ["a"]).await;
    let mut database = sqlx::PgConnection::connect(&url).await.unwrap();
    let mut holder = async || {
        let query = sqlx::query_as("SELECT watch_by FROM mcp_servers");
        let (holder,): (String,) = query.fetch_one(&mut database).await.unwrap();
        holder
    };
    let one = holder().await;
    assert!(!one.is_empty());
    // Another one takes it over at its next look.
    first.stop().await;
    faults::until("another one watches", async || !["", &one].contains(&&*holder().await)).await;
    let user = second.user_called(&user.id);
    until("it is connected", async || {
        server.set_tools(&json!([tool("a", "A."), tool("b", "B.")])).await;
        names(&second, &user).await == ["a", "b"]
    })
    .await;
}

#[tokio::test]
async fn a_server_is_read_again_by_the_clock() {
    let Some(server) = Server::pages(&json!([tool("a", "A.")]), &[]) else { return };
    let mut app = private().await;
    let user = app.user();
    let written = put(&app, &user, "timed", &json!({"url": server.url, "resync_minutes": 1})).await;
    assert!(written["next_sync_at_ms"].as_i64() > Some(0), "{written}");
    assert!(names(&app, &user).await.is_empty());
    app.stop().await;
    // In place of waiting for a minute.
    let file = app.folder().join("toolrack.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
    let mut database = sqlx::ConnectOptions::connect(&options).await.unwrap();
    sqlx::query("UPDATE mcp_servers SET next_sync_at = 1").execute(&mut database).await.unwrap();
    sqlx::Connection::close(database).await.unwrap();
    app.start_again().await;
    let user = app.user_called(&user.id);
    until("it is read", async || names(&app, &user).await == ["a"]).await;
    // The tools stand in the catalog a moment before the next time is noted.
    until("the next time is noted", async || {
        let shown = app.admin().get(&server_path(&user, &["timed"])).await.ok();
        shown["next_sync_at_ms"].as_i64() > Some(1) && shown["last_sync_at_ms"].as_i64() > Some(0)
    })
    .await;
}

#[tokio::test]
async fn instructions_describe_the_group() {
    let Some(server) = Server::pages(&json!([tool("a", "A.")]), &[]) else { return };
    let app = private().await;
    let user = app.user();
    let spec = |write: bool| json!({"url": server.url, "write_group_description": write});
    put(&app, &user, "counts", &spec(false)).await;
    let result = sync(&app, &user, "counts").await["result"].clone();
    assert_eq!(result["group_description"], "Counts things.", "{result}");
    assert_eq!(result["group_description_written"], false, "{result}");
    let config = async || app.admin().get(&user.path(&["config"])).await.ok();
    assert_eq!(config().await.get("groups"), None);

    user.put_config(&json!({"min_catalog_size": 0, "groups": [{"name": "b", "description": "Mine."}]}))
        .await
        .ok();
    put(&app, &user, "counts", &spec(true)).await;
    let result = sync(&app, &user, "counts").await["result"].clone();
    assert_eq!(result["group_description_written"], true, "{result}");
    let after = config().await;
    assert_eq!(after["min_catalog_size"], 0, "{after}");
    let groups = after["groups"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[1]["description"]), (2, &json!("Counts things.")), "{after}");

    // Once it is there it is the administrator's.
    user.put_config(&json!({"groups": [{"name": "counts", "description": "Mine."}]})).await.ok();
    let result = sync(&app, &user, "counts").await["result"].clone();
    assert_eq!(result.get("group_description"), None, "{result}");
    assert_eq!(config().await["groups"][0]["description"], "Mine.");
}

#[tokio::test]
async fn a_server_can_be_looked_at_before_it_is_stored() {
    let Some(server) = Server::start("plain", &[("TOKEN", TOKEN)]) else { return };
    let app = private().await;
    let user = app.user();
    let look = async |headers: Value| {
        let body =
            json!({"user": user.id, "name": "notes", "server": {"url": server.url, "headers": headers}});
        app.admin().post("/v1/setup/mcp-tools", &body).await.ok()
    };
    let seen = look(json!({"Authorization": format!("Bearer {TOKEN}")})).await;
    assert_eq!((&seen["ok"], &seen["group_description"]), (&json!(true), &json!("Reads and writes notes.")));
    assert_eq!(seen["server"], json!({"name": "plain", "version": "1.2.3"}));
    let found = seen["tools"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{seen}");
    assert!(found.iter().all(|tool| tool["group"] == "notes"), "{seen}");
    assert!(names(&app, &user).await.is_empty());
    assert_eq!(app.admin().get(&server_path(&user, &[])).await.ok()["servers"], json!([]));
    user.put_catalog(found).await.ok();
    assert_eq!(names(&app, &user).await, ["find_notes", "greet"]);

    let refused = look(json!({"Authorization": {"set": true}})).await;
    assert_eq!(refused["fault"]["reason"], "unauthorized", "{refused}");
    assert_eq!(refused["warnings"][0]["code"], "secret_missing", "{refused}");
    // The stored one of the same name, for the same place.
    put(
        &app,
        &user,
        "notes",
        &json!({"url": server.url, "headers": {"Authorization": format!("Bearer {TOKEN}")}}),
    )
    .await;
    assert_eq!(look(json!({"Authorization": {"set": true}})).await["ok"], true);
}
