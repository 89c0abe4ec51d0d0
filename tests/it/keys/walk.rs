//! Every route of the API document with every kind of key: only the intended ones pass.

use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Made, make};
use crate::app::{Answer, Client, TestApp};

const USER: &str = "team-ada";
const PROJECT: &str = "apollo";

/// Operations of the document: method, path, id and whether they take a body.
fn operations(document: &Value) -> Vec<(Method, String, String, bool)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Ok(method) = method.to_uppercase().parse::<Method>() else { continue };
            let id = operation["operationId"].as_str().unwrap().to_owned();
            all.push((method, path.clone(), id, operation.get("requestBody").is_some()));
        }
    }
    // What others read is deleted last.
    all.sort_by_key(|(method, ..)| *method == Method::DELETE);
    all
}

/// The roles that should pass, by what a path is about; nothing for open paths. Not the service's own table.
fn intended(path: &str) -> Option<&'static [&'static str]> {
    const AGENT: [&str; 4] = ["/v1/assemble", "/v1/search", "/v1/describe", "/v1/call"];
    Some(match path {
        "/healthz" | "/readyz" => return None,
        "/metrics" => &["admin", "metrics"],
        // Over the bridge a setup key is answered the management tools alone.
        "/v1/limits" | "/v1/bridge" => &["admin", "setup", "agent"],
        "/v1/audit" => &["admin", "setup"],
        path if path.starts_with("/v1/keys") => &["admin"],
        path if path.ends_with("/approve") || path.ends_with("/reject") => &["admin"],
        path if AGENT.contains(&path) => &["admin", "agent"],
        path if path.contains("/sessions") => &["admin", "setup", "agent"],
        path if ["/config", "/catalog", "/setup", "/mcp-servers"].iter().any(|part| path.contains(part)) => {
            &["admin", "setup"]
        }
        other => panic!("{other}: say who may ask it"),
    })
}

/// A body with which the operation does what it is for.
fn body(operation: &str, user: &str, project: Option<&str>) -> Value {
    let tools = json!([{"name": "echo", "description": "Says it again."}]);
    let mut body = match operation {
        "assemble" | "review_setup" | "propose_setup" | "preview_setup" => json!({}),
        "search" => json!({"query": "say"}),
        "describe" | "call" => json!({"name": "echo"}),
        "bridge" => json!({"call": {"id": "1", "name": "echo", "arguments": {}}}),
        "test_matcher" => json!({"matcher": {"endpoint": "https://rerank.example/"}}),
        "import_setup" => json!({"document": tools}),
        "apply_setup" => json!({"config": {}}),
        "list_mcp_tools" => json!({"name": "echo", "server": {"url": MCP_SERVER}}),
        "release_tools" | "pin_tools" | "unpin_tools" => return json!({"names": ["echo"]}),
        "create_key" => return json!({"name": "x", "role": "metrics"}),
        name if name.starts_with("approve_") || name.starts_with("reject_") => return json!({"tools": []}),
        name if name.starts_with("put_") && name.ends_with("_mcp_server") => {
            return json!({"url": MCP_SERVER});
        }
        name if name.starts_with("restore_") => return json!({"revision": 1}),
        name if name.starts_with("put_") && name.ends_with("_catalog") => return json!({"tools": tools}),
        name if name.starts_with("patch_") && name.ends_with("_catalog") => return json!({"upsert": tools}),
        _ => return json!({}),
    };
    body["user"] = json!(user);
    if let Some(project) = project {
        body["project"] = json!(project);
    }
    body
}

/// One operation as the holder of a key asks it.
struct Asked<'a> {
    method: &'a Method,
    path: &'a str,
    id: &'a str,
    has_body: bool,
    key_id: &'a str,
}

impl Asked<'_> {
    async fn send(&self, client: &Client, user: &str, project: Option<&str>) -> Answer {
        let mut path = self
            .path
            .replace("{user}", user)
            .replace("{project}", project.unwrap_or(PROJECT))
            .replace("{session}", "s")
            .replace("{name}", "echo")
            .replace("{id}", self.key_id);
        if let Some(project) = project {
            if self.path.contains("/sessions") {
                path = format!("{path}?project={project}");
            } else if self.asks_by_query() {
                path = format!("{path}?user={user}&project={project}");
            }
        } else if self.asks_by_query() {
            path = format!("{path}?user={user}");
        }
        let headers: &[(&str, &str)] =
            if self.has_body { &[("content-type", "application/json")] } else { &[] };
        let body = if self.has_body { body(self.id, user, project).to_string().into() } else { Bytes::new() };
        client.send(self.method.clone(), &path, headers, body).await
    }

    fn is_about_users(&self) -> bool {
        self.path.contains("{user}")
            || body(self.id, USER, None).get("user").is_some()
            || self.asks_by_query()
    }

    fn is_about_projects(&self) -> bool {
        self.path.contains("{project}")
            || self.path.contains("/sessions")
            || body(self.id, USER, None).get("user").is_some()
            || self.asks_by_query()
    }

    /// Whether user and project stand in the query.
    fn asks_by_query(&self) -> bool {
        ["/v1/config/effective", "/v1/audit", "/v1/setup/overview", "/v1/setup/skill"].contains(&self.path)
    }
}

/// What a problem says, but for the request that it was.
fn without_request(answer: &Answer) -> Value {
    let mut problem = answer.json();
    for key in ["instance", "request_id"] {
        problem.as_object_mut().unwrap().shift_remove(key);
    }
    problem
}

async fn fill(app: &TestApp, user: &str, project: &str) {
    let tools = json!({"tools": [{"name": "echo", "description": "Says it again."}]});
    for scope in [format!("/v1/users/{user}"), format!("/v1/projects/{project}")] {
        app.admin().put(&format!("{scope}/catalog"), &tools).await.ok();
        app.admin().put(&format!("{scope}/config"), &json!({})).await.ok();
    }
    add_servers(app, user, project).await;
}

/// MCP servers, which an operation before may have deleted.
async fn add_servers(app: &TestApp, user: &str, project: &str) {
    for scope in [format!("/v1/users/{user}"), format!("/v1/projects/{project}")] {
        app.admin().put(&format!("{scope}/mcp-servers/echo"), &json!({"url": MCP_SERVER})).await.ok();
    }
}

/// There is no such host (RFC 2606).
const MCP_SERVER: &str = "https://mcp.invalid/mcp";

#[tokio::test]
async fn only_the_intended_keys_pass() {
    let app = TestApp::start().await;
    let document = app.anonymous().get("/openapi.json").await.ok();
    fill(&app, USER, PROJECT).await;
    fill(&app, "team", "apollo-2").await;
    let bound = json!({"users": ["team-*"], "projects": [PROJECT]});
    let roles: [(&str, Made); 4] = [
        ("admin", make(&app, "admin", json!({})).await),
        ("setup", make(&app, "setup", bound.clone()).await),
        ("agent", make(&app, "agent", bound.clone()).await),
        ("metrics", make(&app, "metrics", json!({})).await),
    ];
    let nobody = nobodies(&app, &bound).await;
    let all = operations(&document);
    assert!(all.len() >= 73);
    for (method, path, id, has_body) in &all {
        let spare = make(&app, "metrics", json!({})).await;
        let asked = Asked { method, path, id, has_body: *has_body, key_id: spare.id() };
        for (why, client) in &nobody {
            let answer = asked.send(client, USER, Some(PROJECT)).await;
            match intended(path) {
                None => answer.expect_status(200),
                Some(_) => {
                    answer.problem(401, "unauthorized");
                    assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{id}: {why}");
                }
            }
        }
        let Some(intended) = intended(path) else { continue };
        for (role, key) in &roles {
            add_servers(&app, USER, PROJECT).await;
            let client = app.with_key(&key.key);
            let own = asked.send(&client, USER, Some(PROJECT)).await;
            if !intended.contains(role) {
                own.problem(403, "forbidden");
                // Also where it is about somebody else: nothing shows whether there is such a one.
                asked.send(&client, "team", Some("apollo-2")).await.problem(403, "forbidden");
                continue;
            }
            assert!(
                own.status < 300 || (id == "test_matcher" && own.status == 422),
                "{id} as {role}: {} {}",
                own.status,
                own.text()
            );
            if *role == "admin" {
                continue;
            }
            let nowhere = client.get("/v1/nowhere").await;
            nowhere.problem(404, "not_found");
            let is_hidden = |answer: Answer| {
                answer.problem(404, "not_found");
                assert_eq!(without_request(&answer), without_request(&nowhere), "{id}");
            };
            if asked.is_about_users() {
                is_hidden(asked.send(&client, "team", Some(PROJECT)).await);
                is_hidden(asked.send(&client, "team", None).await);
                is_hidden(asked.send(&client, "nobody-yet", None).await);
                let without_project = asked.send(&client, USER, None).await;
                assert_ne!(without_project.status, 404, "{id} as {role}: {}", without_project.text());
            }
            if asked.is_about_projects() {
                is_hidden(asked.send(&client, USER, Some("apollo-2")).await);
                is_hidden(asked.send(&client, USER, Some("nothing-yet")).await);
            }
        }
    }
}

/// Clients that nothing lets in, each with the reason.
async fn nobodies(app: &TestApp, bound: &Value) -> Vec<(&'static str, Client)> {
    let good = make(app, "agent", bound.clone()).await;
    let revoked = make(app, "admin", json!({})).await;
    app.admin().delete(&revoked.path()).await.expect_status(204);
    let expired = make(app, "admin", json!({})).await;
    let rotation = json!({"overlap_seconds": 0});
    app.admin().post(&format!("{}/rotate", expired.path()), &rotation).await.expect_status(201);
    let other = make(app, "admin", json!({})).await;
    // The id of one key with the secret of another, and a typo in the secret.
    let mixed = good.key.replace(good.id(), other.id());
    let mut typo = other.key.clone();
    let digit = if &typo[40..41] == "0" { "1" } else { "0" };
    typo.replace_range(40..41, digit);
    let mut all = vec![("no key", app.anonymous())];
    for (why, key) in [
        ("a wrong key", "y".repeat(40)),
        ("a revoked key", revoked.key),
        ("an expired key", expired.key),
        ("a cut off key", other.key[..80].to_owned()),
        ("a misspelt key", typo),
        ("a mixed key", mixed),
        ("only an id", format!("trk_{}", other.id())),
    ] {
        all.push((why, app.with_key(&key)));
    }
    all
}

#[tokio::test]
async fn who_has_a_key_learns_why_it_is_refused_and_nobody_else_does() {
    let app = TestApp::start().await;
    let made = make(&app, "metrics", json!({})).await;
    let detail = async |key: &str| {
        let problem = app.with_key(key).get("/metrics").await.problem(401, "unauthorized");
        problem["detail"].as_str().unwrap().to_owned()
    };
    app.with_key(&made.key).get("/metrics").await.ok();
    assert!(detail(&made.key[..93]).await.contains("misspelt"));
    app.admin().delete(&made.path()).await.expect_status(204);
    assert!(detail(&made.key).await.contains("revoked"));
    let forged = made.key.replace(&made.key[21..85], &"0".repeat(64));
    assert!(!detail(&forged).await.contains("revoked"));
}

#[tokio::test]
async fn a_method_that_no_table_lists_runs_nothing() {
    let app = TestApp::start().await;
    let agent = make(&app, "agent", json!({"users": ["u"]})).await;
    let client = app.with_key(&agent.key);
    client.get("/v1/search").await.problem(405, "method_not_allowed");
    client.send(Method::OPTIONS, "/v1/keys", &[], Bytes::new()).await.problem(405, "method_not_allowed");
    client.send(Method::HEAD, "/v1/keys", &[], Bytes::new()).await.expect_status(403);
    client.send(Method::HEAD, "/v1/limits", &[], Bytes::new()).await.expect_status(200);
    client.send(Method::TRACE, "/v1/users/x/config", &[], Bytes::new()).await.expect_status(405);
}
