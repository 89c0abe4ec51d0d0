//! Input that no client should send: each is refused with a problem document that names the place, or answered
//! cleanly with a warning; nothing is stored by halves, and the process lives on.

use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, Client, TestApp, path, unique};

mod tools;
mod values;

const JSON: (&str, &str) = ("content-type", "application/json");
const MIB: usize = 1024 * 1024;

/// A route that takes a body, with a body that it would take.
struct Route {
    method: Method,
    path: String,
    good: Value,
}

/// Every route with a body, for a user and project of this id.
fn routes(id: &str) -> Vec<Route> {
    let tool = json!({"name": "other_tool", "description": "Another tool."});
    let mut routes = Vec::new();
    let mut add = |method: Method, path: String, good: Value| routes.push(Route { method, path, good });
    for kind in ["users", "projects"] {
        let config = path(&["v1", kind, id, "config"]);
        let catalog = path(&["v1", kind, id, "catalog"]);
        add(Method::PUT, config.clone(), json!({"max_warm_tools": 3}));
        add(Method::PATCH, config, json!({"max_warm_tools": 4}));
        add(Method::PUT, catalog.clone(), json!({"tools": [tool]}));
        add(Method::PATCH, catalog, json!({"upsert": [tool], "remove": ["echo"]}));
        for verdict in ["approve", "reject"] {
            add(Method::POST, path(&["v1", kind, id, "catalog", "reviews", verdict]), json!({"tools": []}));
        }
    }
    for (action, good) in [
        ("reset", json!({})),
        ("release", json!({"names": ["echo"]})),
        ("pin", json!({"names": ["echo"]})),
        ("unpin", json!({"names": ["echo"]})),
    ] {
        add(Method::POST, path(&["v1", "users", id, "sessions", "s", action]), good);
    }
    for (name, good) in [
        ("assemble", json!({"user": id, "session": "s"})),
        ("search", json!({"user": id, "session": "s", "query": "weather"})),
        ("describe", json!({"user": id, "session": "s", "name": "get_weather"})),
        ("call", json!({"user": id, "session": "s", "name": "get_weather", "arguments": {"city": "Oslo"}})),
        (
            "bridge",
            json!({"user": id, "session": "s", "call": {"id": "c", "name": "tool_search",
                "arguments": {"query": "weather"}}}),
        ),
    ] {
        add(Method::POST, format!("/v1/{name}"), good);
    }
    routes
}

/// What must not change when a request is refused: documents and ETags of user, project and session.
async fn state(client: &Client, id: &str) -> Vec<(Option<String>, Value)> {
    let mut all = Vec::new();
    for place in [
        path(&["v1", "users", id, "config"]),
        path(&["v1", "users", id, "catalog"]),
        path(&["v1", "projects", id, "config"]),
        path(&["v1", "projects", id, "catalog"]),
        path(&["v1", "users", id, "sessions", "s"]),
    ] {
        let answer = client.get(&place).await;
        let mut document = answer.ok();
        // Times and counts of what was asked are not what the session holds.
        for volatile in ["last_seen_ms", "ledger"] {
            document.as_object_mut().map(|document| document.remove(volatile));
        }
        all.push((answer.header("etag").map(str::to_owned), document));
    }
    all
}

/// User, project and session with something in each; a config under which a small catalog is deferred.
async fn prepared(app: &TestApp) -> String {
    let (client, id) = (app.admin(), unique("bad"));
    let tools = json!({"tools": [
        {"name": "get_weather", "group": "sky", "description": "Get the weather of a city.",
         "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
        {"name": "echo", "group": "shell", "description": "Print a text.", "parameters": {"type": "object"}},
    ]});
    for kind in ["users", "projects"] {
        let config = json!({"min_catalog_size": 0, "max_warm_tools": 5});
        client.put(&path(&["v1", kind, &id, "config"]), &config).await.ok();
        client.put(&path(&["v1", kind, &id, "catalog"]), &tools).await.ok();
    }
    let user = app.user_called(&id);
    user.assemble(json!({"session": "s"})).await.ok();
    user.describe(json!({"session": "s", "name": "get_weather"})).await.ok();
    id
}

async fn send(client: &Client, route: &Route, body: impl Into<Bytes>) -> Answer {
    client.send(route.method.clone(), &route.path, &[JSON], body.into()).await
}

/// The first fault of a problem that has every member of the standard and ours.
#[track_caller]
fn fault(answer: &Answer, status: u16, code: &str, at: &str) -> (String, String) {
    let document = answer.problem(status, code);
    assert_eq!(document["type"], format!("/docs/errors#{code}"), "{document}");
    assert_eq!(document["instance"], at, "{document}");
    assert_eq!(document["request_id"].as_str(), answer.header("x-request-id"), "{document}");
    for member in ["title", "detail"] {
        assert!(document[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {document}");
    }
    let first = &document["errors"][0];
    assert!(first["detail"].as_str().is_some_and(|text| !text.is_empty()), "no place: {document}");
    let text = |member: &str| first[member].as_str().unwrap_or_default().to_owned();
    (text("code"), text("pointer"))
}

fn nested(depth: usize) -> String {
    format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test]
async fn what_is_not_strict_json_is_refused_by_every_route_with_its_place() {
    let app = TestApp::start().await;
    let (client, id) = (app.admin(), prepared(&app).await);
    let before = state(client, &id).await;
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (b"{\"x\": tru}".to_vec(), "malformed_json", "/x"),
        (b"{\"x\": NaN}".to_vec(), "malformed_json", "/x"),
        (b"{\"x\": Infinity}".to_vec(), "malformed_json", "/x"),
        (b"{\"x\": 1".to_vec(), "malformed_json", ""),
        (b"{} {}".to_vec(), "malformed_json", ""),
        (b"{'x': 1}".to_vec(), "malformed_json", ""),
        (b"{\"x\": {\"y\": 1, \"y\": 1}}".to_vec(), "duplicate_key", "/x/y"),
        (b"{\"x\": [\"\xff\"]}".to_vec(), "invalid_utf8", ""),
        (b"{\"x\": [0, \"\\ud83d\"]}".to_vec(), "invalid_text", "/x/1"),
        (b"{\"x\": [0, \"\\udc00\\ud83d\"]}".to_vec(), "invalid_text", "/x/1"),
        (b"{\"x\": [\"a\\u0000b\"]}".to_vec(), "nul_character", "/x/0"),
        (format!("{{\"x\": {}}}", nested(64)).into(), "too_deep", "/x"),
        (format!("{{\"x\": {}}}", nested(199)).into(), "too_deep", "/x"),
        (format!("{{\"x\": {}}}", nested(100_000)).into(), "too_deep", "/x"),
    ];
    for route in routes(&id) {
        for (body, code, pointer) in &cases {
            let answer = send(client, &route, body.clone()).await;
            let (fault_code, fault_pointer) = fault(&answer, 400, code, &route.path);
            let case = format!(
                "{} {} {}",
                route.method,
                route.path,
                String::from_utf8_lossy(&body[..body.len().min(60)])
            );
            assert_eq!(fault_code, *code, "{case}");
            let place = if *code == "too_deep" {
                fault_pointer.starts_with(pointer)
            } else {
                fault_pointer == *pointer
            };
            assert!(place, "{case}: {fault_pointer}");
        }
        assert_eq!(state(client, &id).await, before, "{} {} left something", route.method, route.path);
    }
    client.get("/healthz").await.ok();
}

#[tokio::test]
async fn other_shapes_and_unknown_keys_are_refused_by_every_route_with_their_place() {
    let app = TestApp::start().await;
    let (client, id) = (app.admin(), prepared(&app).await);
    let before = state(client, &id).await;
    for route in routes(&id) {
        for body in ["[]", "7", "\"text\"", "true", "[{\"user\": \"u\"}]"] {
            let answer = send(client, &route, body).await;
            let case = format!("{} {} {body}", route.method, route.path);
            assert_eq!(
                fault(&answer, 422, "invalid_request", &route.path),
                ("wrong_type".into(), "".into()),
                "{case}"
            );
        }
        let mut body = route.good.clone();
        body["no~such/key"] = json!(1);
        let answer = send(client, &route, body.to_string()).await;
        let expected = ("unknown_key".to_owned(), "/no~0such~1key".to_owned());
        assert_eq!(
            fault(&answer, 422, "invalid_request", &route.path),
            expected,
            "{} {}",
            route.method,
            route.path
        );

        // As deep as a body may be: not too deep, but still a key that is not known here.
        let answer = send(client, &route, format!("{{\"x\": {}}}", nested(63))).await;
        assert_eq!(fault(&answer, 422, "invalid_request", &route.path).0, "unknown_key", "{}", route.path);

        let url = format!("{}?no_such=1", route.path);
        let answer = client.send(route.method.clone(), &url, &[JSON], route.good.to_string().into()).await;
        if route.path.contains("/config")
            || route.path.contains("/catalog")
            || route.path.contains("/sessions")
        {
            assert_eq!(
                fault(&answer, 422, "invalid_request", &route.path),
                ("unknown_key".into(), "/no_such".into())
            );
            assert_eq!(state(client, &id).await, before, "{} {} left something", route.method, route.path);
        }
    }
    client.get("/healthz").await.ok();
}

#[tokio::test]
async fn an_ordinary_client_sees_that_its_body_is_too_large() {
    let app = TestApp::start().await;
    let (client, id) = (app.admin(), prepared(&app).await);
    let before = state(client, &id).await;
    let large = Bytes::from(vec![b' '; 17 * MIB]);
    for route in routes(&id) {
        let answer = send(client, &route, large.clone()).await;
        let problem = answer.problem(413, "payload_too_large");
        assert!(problem["detail"].as_str().unwrap().contains("16 MiB"), "{problem}");
    }
    for (key, status, code) in [("x".repeat(40), 401, "unauthorized")] {
        let stranger = app.with_key(&key);
        let answer = stranger.send(Method::PUT, "/v1/users/u/catalog", &[JSON], large.clone()).await;
        answer.problem(status, code);
    }
    client.send(Method::PUT, "/v1/nowhere", &[JSON], large.clone()).await.problem(404, "not_found");
    assert_eq!(state(client, &id).await, before);
    client.get("/healthz").await.ok();
}

#[tokio::test]
async fn other_media_types_methods_and_paths_are_problems() {
    let app = TestApp::start().await;
    let (client, id) = (app.admin(), prepared(&app).await);
    let before = state(client, &id).await;
    for route in routes(&id) {
        let body = Bytes::from(route.good.to_string());
        for headers in [
            vec![],
            vec![("content-type", "text/plain")],
            vec![("content-type", "application/x-www-form-urlencoded")],
            vec![JSON, ("content-encoding", "br")],
        ] {
            let answer = client.send(route.method.clone(), &route.path, &headers, body.clone()).await;
            answer.problem(415, "unsupported_media_type");
        }
        let answer = client.send(Method::OPTIONS, &route.path, &[], Bytes::new()).await;
        answer.problem(405, "method_not_allowed");
        assert!(
            answer.header("allow").is_some_and(|allow| allow.contains(route.method.as_str())),
            "{}",
            route.path
        );
    }
    for missing in [
        "/",
        "/v1",
        "/v2/assemble",
        "/v1/assemble/",
        "/v1/users",
        "/v1/users/u",
        "/metrics/x",
        "/v1/users/u/catalog/tools",
    ] {
        client.get(missing).await.problem(404, "not_found");
    }
    assert_eq!(state(client, &id).await, before);
}

#[tokio::test]
async fn any_value_in_any_place_is_answered_or_refused_and_never_breaks_the_process() {
    let app = TestApp::start().await;
    let client = app.admin();
    let id = prepared(&app).await;
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!(""),
        json!("*"),
        json!("@"),
        json!("x".repeat(5_000)),
        json!([]),
        json!([[]]),
        json!([null]),
        json!({}),
        json!({"": {"": null}}),
    ];
    for route in routes(&id) {
        let mut places = Vec::new();
        pointers(&route.good, String::new(), &mut places);
        for place in &places {
            for value in &values {
                let mut body = route.good.clone();
                *body.pointer_mut(place).unwrap() = value.clone();
                let answer = send(client, &route, body.to_string()).await;
                let case = format!("{} {} {place} = {value}", route.method, route.path);
                match answer.status {
                    200 => assert!(answer.json().is_object(), "{case}"),
                    400 | 404 | 412 | 422 => {
                        let code = answer.json()["code"].as_str().unwrap_or_default().to_owned();
                        answer.problem(answer.status, &code);
                    }
                    status => panic!("{case}: {status} {}", answer.text()),
                }
            }
        }
    }
    client.get("/healthz").await.ok();
    assert!(!app.logs().contains("panic"), "{}", app.logs());
}

/// Pointers of all places in a document but the whole.
fn pointers(value: &Value, at: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let place = format!("{at}/{key}");
                out.push(place.clone());
                pointers(inner, place, out);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                let place = format!("{at}/{index}");
                out.push(place.clone());
                pointers(inner, place, out);
            }
        }
        _ => {}
    }
}
