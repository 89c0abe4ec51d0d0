//! The API document: committed as the code says it, true of the running service, and explained by pages that need
//! nothing from outside.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, User};
use crate::keys::make;

fn committed() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("openapi/toolrack.v1.json")
}

/// What `toolrack openapi` prints.
fn printed() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_toolrack")).arg("openapi").env_clear().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn document() -> Value {
    serde_json::from_str(&printed()).unwrap()
}

/// Method, path and operation of every documented route.
fn operations(document: &Value) -> Vec<(Method, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Ok(method) = method.to_uppercase().parse::<Method>() {
                all.push((method, path.clone(), operation.clone()));
            }
        }
    }
    all
}

#[test]
fn the_committed_document_is_what_the_code_says() {
    let printed = printed();
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::create_dir_all(committed().parent().unwrap()).unwrap();
        std::fs::write(committed(), &printed).unwrap();
    }
    let committed = std::fs::read_to_string(committed()).unwrap_or_default();
    assert!(
        committed == printed,
        "openapi/toolrack.v1.json is not what the code says; write it anew with: UPDATE_OPENAPI=1 cargo test --test it openapi"
    );
}

#[tokio::test]
async fn the_served_document_is_the_same() {
    let app = TestApp::start().await;
    let served = app.anonymous().get("/openapi.json").await;
    assert_eq!(served.header("content-type"), Some("application/json"));
    assert_eq!(served.ok(), document());
}

#[tokio::test]
async fn every_documented_route_is_there_and_nothing_else_is() {
    let app = TestApp::start().await;
    let user = app.user();
    let tool = json!({"tools": [{"name": "echo", "description": "Say it."}]});
    for scope in ["users", "projects"] {
        app.admin().put(&format!("/v1/{scope}/{}/catalog", user.id), &tool).await.ok();
        let server = json!({"url": "https://mcp.invalid/"});
        app.admin().put(&format!("/v1/{scope}/{}/mcp-servers/echo", user.id), &server).await.ok();
    }
    let document = document();
    let all = operations(&document);
    for (method, template, operation) in &all {
        let path = template
            .replace("{user}", &user.id)
            .replace("{project}", &user.id)
            .replace("{session}", "s")
            .replace("{name}", "echo")
            .replace("{id}", make(&app, "metrics", json!({})).await.id());
        assert!(!path.contains('{'), "{template} has a parameter that this test does not know");
        let headers: &[(&str, &str)] = if operation.get("requestBody").is_some() {
            &[("content-type", "application/json")]
        } else {
            &[]
        };
        let body = if headers.is_empty() { "" } else { "{}" };
        // A DELETE would take the tool away before it is read.
        let answer = if *method == Method::DELETE {
            app.anonymous().send(method.clone(), &path, headers, body.into()).await
        } else {
            app.admin().send(method.clone(), &path, headers, body.into()).await
        };
        assert!(![404, 405].contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.text());
        assert!(answer.status < 500, "{method} {path}: {} {}", answer.status, answer.text());
        if *method != Method::DELETE {
            let status = answer.status.to_string();
            assert!(
                operation["responses"].get(&status).is_some(),
                "{method} {path} answers {status}, which it does not tell"
            );
        }
        let known: BTreeSet<&Method> =
            all.iter().filter(|(_, other, _)| other == template).map(|(method, ..)| method).collect();
        for other in [Method::GET, Method::PUT, Method::POST, Method::PATCH, Method::DELETE] {
            if !known.contains(&other) {
                let answer = app
                    .admin()
                    .send(other.clone(), &path, &[("content-type", "application/json")], "{}".into())
                    .await;
                answer.problem(405, "method_not_allowed");
            }
        }
    }
    // The key is asked for exactly where the document says so.
    for (method, template, operation) in &all {
        let path = template
            .replace("{user}", "u")
            .replace("{project}", "p")
            .replace("{session}", "s")
            .replace("{name}", "n");
        let answer = app.anonymous().send(method.clone(), &path, &[], "".into()).await;
        let open =
            operation["security"].as_array().is_some_and(|list| list.is_empty() || list.contains(&json!({})));
        assert_eq!(answer.status == 401, !open, "{method} {path}: {}", answer.status);
    }
}

#[tokio::test]
async fn every_documented_error_code_is_explained() {
    let app = TestApp::start().await;
    let page = app.anonymous().get("/docs/errors").await;
    page.ok();
    let mut codes = BTreeSet::new();
    for response in document()["components"]["responses"].as_object().unwrap().values() {
        let description = response["description"].as_str().unwrap();
        codes.extend(description.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    assert!(codes.len() >= 20, "{codes:?}");
    for code in &codes {
        assert!(page.text().contains(&format!("id=\"{code}\"")), "{code}");
    }
    for (answer, code) in [
        (app.admin().get("/v1/nowhere").await, "not_found"),
        (app.anonymous().get("/v1/limits").await, "unauthorized"),
        (app.user().search(json!({"query": 7})).await, "invalid_request"),
    ] {
        let problem = answer.json();
        assert!(codes.contains(code) && problem["code"] == code);
        let kind = problem["type"].as_str().unwrap();
        let (place, anchor) = kind.split_once('#').unwrap();
        assert!(
            app.anonymous().get(place).await.text().contains(&format!("id=\"{anchor}\"")),
            "{kind} leads nowhere"
        );
    }
}

#[tokio::test]
async fn the_api_browser_loads_local_assets_only() {
    let app = TestApp::start().await;
    let entry = app.anonymous().get("/docs").await;
    let start = match entry.status {
        200 => "/docs/".to_owned(),
        301..=308 => entry.header("location").unwrap().to_owned(),
        status => panic!("/docs answers {status}"),
    };
    let page = app.anonymous().get(&start).await;
    page.ok();
    let mut assets = Vec::new();
    for attribute in ["src=\"", "href=\""] {
        assets.extend(
            page.text().split(attribute).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned),
        );
    }
    assert!(assets.len() >= 3, "{}", page.text());
    for asset in assets {
        assert!(!asset.contains("//"), "{asset} is somewhere else");
        let path = if asset.starts_with('/') {
            asset.clone()
        } else {
            format!("/docs/{}", asset.trim_start_matches("./"))
        };
        let answer = app.anonymous().get(&path).await;
        assert!(answer.status == 200 && !answer.body.is_empty(), "{path}: {}", answer.status);
    }
    let script = app.anonymous().get("/docs/swagger-initializer.js").await;
    assert!(script.text().contains("/openapi.json"), "{}", script.text());
}

#[test]
fn names_of_schemas_and_operations_are_unique_and_all_references_lead_somewhere() {
    /// The names below `"schemas":` as they are written, so that a doubled one is seen.
    fn written_names(text: &str) -> Vec<String> {
        #[derive(serde::Deserialize)]
        struct Document {
            components: Components,
        }
        #[derive(serde::Deserialize)]
        struct Components {
            schemas: Pairs,
        }
        struct Pairs(Vec<String>);
        impl<'de> serde::Deserialize<'de> for Pairs {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Names;
                impl<'de> serde::de::Visitor<'de> for Names {
                    type Value = Pairs;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                        let mut names = Vec::new();
                        while let Some((name, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                            names.push(name);
                        }
                        Ok(Pairs(names))
                    }
                }
                deserializer.deserialize_map(Names)
            }
        }
        serde_json::from_str::<Document>(text).unwrap().components.schemas.0
    }
    let text = printed();
    let names = written_names(&text);
    let unique: BTreeSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "{names:?}");
    let document = document();
    let operations = operations(&document);
    let ids: BTreeSet<&str> =
        operations.iter().map(|(_, _, operation)| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), operations.len());
    for part in text.split("\"$ref\"").skip(1) {
        let target = part.split('"').nth(1).unwrap();
        assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
    }
}

/// Checks an answer against the schema that the document gives for it, and that it tells of every member.
#[track_caller]
fn fits(document: &Value, path: &str, method: &str, answer: &Answer) {
    let status = answer.status.to_string();
    let mut response = &document["paths"][path][method]["responses"][&status];
    while let Some(target) = response.get("$ref").and_then(Value::as_str) {
        response = document.pointer(target.trim_start_matches('#')).unwrap();
    }
    let content =
        response["content"].as_object().unwrap_or_else(|| panic!("{method} {path} {status} has no content"));
    let schema = &content.values().next().unwrap()["schema"];
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::options().build(&whole).unwrap();
    let body = answer.json();
    let errors: Vec<String> =
        validator.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{method} {path} {status}: {errors:?}\n{body}");
    let mut known = schema;
    while let Some(target) = known.get("$ref").and_then(Value::as_str) {
        known = document.pointer(target.trim_start_matches('#')).unwrap();
    }
    // Flattened structs come as a list of parts.
    let mut parts = vec![known];
    parts.extend(known["allOf"].as_array().into_iter().flatten());
    let mut told = BTreeSet::new();
    for mut part in parts {
        while let Some(target) = part.get("$ref").and_then(Value::as_str) {
            part = document.pointer(target.trim_start_matches('#')).unwrap();
        }
        told.extend(
            part["properties"].as_object().into_iter().flat_map(|properties| properties.keys().cloned()),
        );
    }
    for key in body.as_object().unwrap().keys() {
        assert!(told.contains(key), "{method} {path}: `{key}` is not in the document");
    }
}

async fn shop(app: &TestApp) -> User {
    let user = app.user();
    let tools: Vec<Value> = (0..30)
        .map(|at| json!({"name": format!("tool.{at}"), "group": format!("g{}", at % 3),
            "description": format!("Does thing {at}."),
                         "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}))
        .collect();
    user.put_catalog(&tools).await.ok();
    user
}

#[tokio::test]
async fn answers_are_as_documented() {
    let app = TestApp::start().await;
    let user = shop(&app).await;
    let document = document();
    let check = |path: &str, method: &str, answer: Answer| fits(&document, path, method, &answer);
    check("/v1/assemble", "post", user.assemble(json!({})).await);
    let first = user.assemble(json!({"session": "s", "format": "anthropic"})).await;
    let fingerprint = first.ok()["fingerprint"].clone();
    check("/v1/assemble", "post", first);
    check(
        "/v1/assemble",
        "post",
        user.assemble(json!({"session": "s", "format": "anthropic", "if_fingerprint": fingerprint})).await,
    );
    check("/v1/assemble", "post", user.assemble(json!({"tools": [{"name": "a b"}]})).await);
    check("/v1/assemble", "post", user.assemble(json!({"tools": []})).await);
    for detail in ["names", "brief", "full"] {
        check(
            "/v1/search",
            "post",
            user.search(json!({"session": "s", "query": "thing 7", "detail": detail})).await,
        );
    }
    check("/v1/search", "post", user.search(json!({"query": "xylophone"})).await);
    check("/v1/search", "post", user.search(json!({"query": 7})).await);
    check("/v1/describe", "post", user.describe(json!({"names": ["tool.1", "tool.99", "tool_call"]})).await);
    check(
        "/v1/call",
        "post",
        user.call(json!({"calls": [{"name": "tool.1"}, {"name": "tool.1",
        "arguments": {"a": "x"}}, {"name": "z"}, 7]}))
            .await,
    );
    let bridged = json!({"calls": [
        {"id": "1", "name": "tool_search", "arguments": {"query": "thing"}},
        {"id": "2", "name": "tool_call", "arguments": {"name": "tool.1", "arguments": {"a": "x"}}},
    ]});
    check("/v1/bridge", "post", user.bridge(bridged).await);
    let admin = app.admin();
    check(
        "/v1/users/{user}/config",
        "put",
        user.put_config(&json!({"core": ["tool.1"], "max_warm_tools": 99})).await,
    );
    check(
        "/v1/users/{user}/config",
        "patch",
        admin.patch(&user.path(&["config"]), &json!({"core": ["tool.2"]})).await,
    );
    check("/v1/users/{user}/config", "get", admin.get(&user.path(&["config"])).await);
    check("/v1/users/{user}/config", "put", user.put_config(&json!({"cor": []})).await);
    check("/v1/config/effective", "get", admin.get(&format!("/v1/config/effective?user={}", user.id)).await);
    check("/v1/users/{user}/catalog", "get", admin.get(&user.path(&["catalog"])).await);
    check(
        "/v1/users/{user}/catalog",
        "patch",
        admin.patch(&user.path(&["catalog"]), &json!({"upsert": [{"name": "x"}], "remove": ["y"]})).await,
    );
    check("/v1/users/{user}/catalog", "put", user.put_catalog(&[json!(7)]).await);
    check("/v1/users/{user}/sessions/{session}", "get", admin.get(&user.path(&["sessions", "s"])).await);
    check(
        "/v1/users/{user}/sessions/{session}/pin",
        "post",
        admin.post(&user.path(&["sessions", "s", "pin"]), &json!({"names": ["tool.3"]})).await,
    );
    check("/v1/users/{user}/sessions", "get", admin.get(&user.path(&["sessions"])).await);
    check("/v1/limits", "get", admin.get("/v1/limits").await);
    let key = json!({"name": "x", "role": "agent", "users": ["u*"], "deny": ["y"], "expires_in_seconds": 60});
    let made = admin.post("/v1/keys", &key).await;
    let path = made.header("location").unwrap().to_owned();
    check("/v1/keys", "post", made);
    check("/v1/keys", "get", admin.get("/v1/keys?limit=1").await);
    check("/v1/keys/{id}", "get", admin.get(&path).await);
    check("/v1/keys/{id}", "patch", admin.patch(&path, &json!({"expires_in_seconds": null})).await);
    check("/v1/keys/{id}/rotate", "post", admin.post(&format!("{path}/rotate"), &json!({})).await);
    check("/v1/keys/{id}/rotate", "post", admin.post(&format!("{path}/rotate"), &json!({})).await);
    check("/v1/keys/{id}", "get", admin.get("/v1/keys/unknown").await);
    check("/readyz", "get", admin.get("/readyz").await);
    check("/healthz", "get", admin.get("/healthz").await);
    check("/v1/limits", "get", app.anonymous().get("/v1/limits").await);
}
