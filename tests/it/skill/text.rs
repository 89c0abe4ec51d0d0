//! The text of the skill: what it names is there, and what it asks for is answered.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::{TOOLS, mail};
use crate::app::{Answer, TestApp, User};

/// Words in backticks that are values, not members.
const VALUES: [&str; 15] = [
    "core",
    "warm",
    "deferred",
    "unavailable",
    "excluded",
    "user",
    "project",
    "setup",
    "immediate",
    "epoch",
    "changed_meanwhile",
    "tool_search",
    "toolrack_catalog",
    "toolrack_update_config",
    "mcp.json",
];

/// A fenced block, and the paragraph right behind it.
struct Block<'a> {
    kind: &'a str,
    text: &'a str,
    behind: &'a str,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut parts = text.split("```").skip(1);
    let mut blocks = Vec::new();
    while let (Some(inside), Some(after)) = (parts.next(), parts.clone().next()) {
        let (kind, text) = inside.split_once('\n').unwrap();
        let behind = after.trim_start_matches('\n').split("\n\n").next().unwrap_or_default();
        blocks.push(Block { kind, text, behind });
        parts.next();
    }
    blocks
}

/// A request of the text.
struct Request<'a> {
    method: Method,
    path: &'a str,
    query: Option<&'a str>,
    headers: Vec<(String, &'a str)>,
    body: Option<Value>,
}

fn request(text: &str) -> Request<'_> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text.trim_end(), ""));
    let mut lines = head.lines();
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    Request {
        method: method.parse().unwrap(),
        path,
        query,
        headers: headers.map(|(name, value)| (name.to_lowercase(), value)).collect(),
        body: (!body.trim().is_empty())
            .then(|| serde_json::from_str(body).unwrap_or_else(|_| panic!("{body}"))),
    }
}

/// Words in backticks that could be members: `a`, `a.b`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_' || letter == '.')
    };
    text.split('`').skip(1).step_by(2).filter(is_word)
}

/// All names of members in a document, also in a schema.
fn members(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                into.insert(key.clone());
                members(value, into);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| members(value, into)),
        _ => {}
    }
}

/// The schema of a place of the document, with everything that it refers to.
fn schema(document: &Value, content: &Value) -> Value {
    let mut whole = content["application/json"]["schema"].clone();
    whole["components"] = document["components"].clone();
    whole
}

/// Names of the members that a schema allows, at any depth.
fn allowed(document: &Value, schema: &Value, depth: usize, into: &mut BTreeSet<String>) {
    let mut schema = schema;
    while let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        schema = document.pointer(target.trim_start_matches('#')).unwrap();
    }
    if depth == 0 {
        return;
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        into.insert(name.clone());
        allowed(document, member, depth - 1, into);
    }
    for part in ["allOf", "oneOf", "anyOf"] {
        let parts = schema[part].as_array().into_iter().flatten();
        parts.for_each(|part| allowed(document, part, depth, into));
    }
    if schema.get("items").is_some() {
        allowed(document, &schema["items"], depth, into);
    }
}

async fn text(app: &TestApp, query: &str) -> String {
    let answer = app.admin().get(&format!("/v1/setup/skill{query}")).await;
    answer.expect_status(200);
    assert_eq!(answer.header("content-type"), Some("text/markdown; charset=utf-8"));
    answer.text().to_owned()
}

#[tokio::test]
async fn it_has_front_matter_and_is_about_whom_the_request_names() {
    let app = TestApp::start().await;
    let plain = text(&app, "").await;
    let (front, _) = plain.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let keys: Vec<&str> = front.lines().map(|line| line.split_once(": ").unwrap().0).collect();
    assert_eq!(keys, ["name", "description"]);
    assert!(plain.contains("{user}") && plain.contains("{project}"));
    let both = text(&app, "?user=ada&project=apollo:1").await;
    assert!(!both.contains("{user}") && !both.contains("{project}"));
    assert!(both.contains("/v1/users/ada/config") && both.contains("/v1/projects/apollo:1"));
    assert!(text(&app, "?user=ada").await.contains("{project}"));
    app.admin().get("/v1/setup/skill?user=a/b").await.problem(422, "invalid_request");
    app.admin().get("/v1/setup/skill?who=ada").await.problem(422, "invalid_request");
}

#[tokio::test]
async fn every_path_and_member_that_it_names_is_there() {
    let app = TestApp::start().await;
    let document = app.anonymous().get("/openapi.json").await.ok();
    let plain = text(&app, "").await;
    // Paths, wherever they stand.
    let is_end = |letter: char| letter.is_whitespace() || "`?\"),".contains(letter);
    for at in plain.match_indices("/v1/").map(|(at, _)| at) {
        let path = plain[at..].split(is_end).next().unwrap();
        let is_prefix = ["/v1/users/{user}", "/v1/projects/{project}"].contains(&path);
        assert!(is_prefix || document["paths"].get(path).is_some(), "{path}");
    }
    let user = app.user();
    user.put_catalog(&[mail("send_mail", "Sends a message.")]).await.ok();
    user.put_config(&json!({"management_tools": true})).await.ok();
    let definitions = user.assemble(json!({})).await.ok()["tools"].clone();
    let mut known: BTreeSet<String> = VALUES.iter().map(|word| (*word).to_owned()).collect();
    members(&document["components"]["schemas"], &mut known);
    members(&definitions, &mut known);
    for (name, arguments) in
        [(TOOLS[0], json!({})), (TOOLS[1], json!({"patch": {}, "scope": "user", "dry_run": true}))]
    {
        let who = json!({"user": user.id});
        members(&super::ask(user.client(), &who, "canonical", name, arguments).await.0, &mut known);
    }
    let effective = format!("/v1/config/effective?user={}", user.id);
    members(&user.client().get(&effective).await.ok(), &mut known);
    for word in words(&plain) {
        assert!(VALUES.contains(&word) || word.split('.').all(|part| known.contains(part)), "`{word}`");
    }
    let filled = text(&app, &format!("?user={0}&project={0}", user.id)).await;
    let all = blocks(&filled);
    let unfilled = blocks(&plain);
    assert!(all.len() > 12 && all.len() == unfilled.len());
    for (block, template) in all.iter().zip(&unfilled) {
        match block.kind {
            "json" => check_call(&definitions, block.text),
            "http" => check_request(&document, &user, block, request(template.text).path).await,
            other => panic!("a block of {other}"),
        }
    }
}

/// A call of the text is one of a management tool, with arguments that it takes.
fn check_call(definitions: &Value, text: &str) {
    let call: Value = serde_json::from_str(text).unwrap();
    let tool = definitions
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == call["name"])
        .expect("a tool of ours");
    let parameters = &tool["parameters"];
    let validator = jsonschema::draft202012::options().build(parameters).unwrap();
    assert!(validator.is_valid(&call["arguments"]), "{text}");
    for name in call["arguments"].as_object().unwrap().keys() {
        assert!(parameters["properties"].get(name).is_some(), "{name}");
    }
}

/// A request of the text is one of the API document, is answered, and its answer has what the text says of it.
async fn check_request(document: &Value, user: &User, block: &Block<'_>, path: &str) {
    let asked = request(block.text);
    let operation = &document["paths"][path][asked.method.as_str().to_lowercase()];
    assert!(operation.is_object(), "{} {path}", asked.method);
    let parameters: Vec<String> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| parameter["name"].as_str().unwrap().to_lowercase())
        .collect();
    let in_query = asked
        .query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .map(|pair| pair.split('=').next().unwrap());
    for name in in_query.chain(asked.headers.iter().map(|(name, _)| name.as_str())) {
        assert!(parameters.iter().any(|known| known == name), "{path}: {name}");
    }
    if let Some(body) = &asked.body {
        let whole = schema(document, &operation["requestBody"]["content"]);
        let validator = jsonschema::draft202012::options().build(&whole).unwrap();
        let errors: Vec<String> = validator.iter_errors(body).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{path}: {errors:?}");
    }
    let mut told = BTreeSet::from(["etag".to_owned()]);
    allowed(document, &operation["responses"]["200"]["content"]["application/json"]["schema"], 6, &mut told);
    // Its endpoint is nobody's.
    if !path.ends_with("/matcher-test") {
        members(&send(user, &asked).await.json(), &mut told);
    }
    if let Some(answer) = block.behind.strip_prefix("Answer: ") {
        let first = answer.split(". ").next().unwrap_or_default();
        for word in words(first) {
            assert!(word.split('.').all(|part| told.contains(part)), "{path} answers no `{word}`");
        }
    }
}

async fn send(user: &User, asked: &Request<'_>) -> Answer {
    let target = asked.query.map_or_else(|| asked.path.to_owned(), |query| format!("{}?{query}", asked.path));
    let mut headers: Vec<(&str, &str)> =
        asked.headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let body = asked.body.as_ref().map(Value::to_string).unwrap_or_default();
    if !body.is_empty() {
        headers.push(("content-type", "application/json"));
    }
    let answer = user.client().send(asked.method.clone(), &target, &headers, body.into()).await;
    // What is a sample in the text: a file, and versions that are not there.
    let sample = match answer.status {
        412 => !asked.headers.is_empty(),
        422 => asked.path.ends_with("/import") || asked.path.ends_with("/restore"),
        _ => false,
    };
    assert!(answer.status == 200 || sample, "{target}: {}", answer.text());
    answer
}
