//! Values that do not fit: identifiers, types, counts and lengths, and what is just allowed.

use reqwest::Method;
use serde_json::{Value, json};

use super::{JSON, MIB, fault, prepared, state};
use crate::app::{TestApp, path};

#[tokio::test]
async fn identifiers_are_checked_wherever_they_stand() {
    let app = TestApp::start().await;
    let client = app.admin();
    let long = "x".repeat(129);
    for bad in ["a%20b", "%00", "%ff", "a%2Fb", "%E2%80%AE", "ä", &long] {
        for (method, place) in [
            (Method::GET, format!("/v1/users/{bad}/config")),
            (Method::PUT, format!("/v1/users/{bad}/config")),
            (Method::GET, format!("/v1/projects/{bad}/catalog")),
            (Method::DELETE, format!("/v1/projects/{bad}/catalog")),
            (Method::GET, format!("/v1/users/u/sessions/{bad}")),
            (Method::DELETE, format!("/v1/users/{bad}/sessions/s")),
            (Method::POST, format!("/v1/users/u/sessions/{bad}/reset")),
        ] {
            let body = if method == Method::PUT { "{}" } else { "" };
            client.send(method, &place, &[JSON], body.into()).await.problem(422, "invalid_id");
        }
    }
    for bad in ["a b", "", "a/b", "a\nb", "ä", &long] {
        for key in ["user", "project", "session"] {
            let mut body = json!({"user": "u"});
            body[key] = json!(bad);
            let answer = client.post("/v1/assemble", &body).await;
            let place = ("invalid_value".to_owned(), format!("/{key}"));
            assert_eq!(fault(&answer, 422, "invalid_request", "/v1/assemble"), place, "{bad:?}");
        }
        let query = url::form_urlencoded::byte_serialize(bad.as_bytes()).collect::<String>();
        let answer = client.get(&format!("/v1/config/effective?user={query}")).await;
        assert_eq!(fault(&answer, 422, "invalid_request", "/v1/config/effective").1, "/user", "{bad:?}");
    }
    // PostgreSQL takes no such text: it never gets there.
    for asked in ["/v1/audit?action=%00", "/v1/audit?actor=a%00"] {
        client.get(asked).await.problem(422, "invalid_request");
    }
    client.get("/v1/users/u/mcp-servers/%00").await.problem(404, "not_found");
    client.delete("/v1/users/u/mcp-servers/%00").await.expect_status(204);
    let longest = "x".repeat(128);
    client.get(&format!("/v1/users/{longest}/config")).await.ok();
    client.get("/v1/users/A-z0_9.@:/config").await.ok();
}

#[tokio::test]
async fn wrong_values_are_refused_with_their_place() {
    let app = TestApp::start().await;
    let (client, id) = (app.admin(), prepared(&app).await);
    let before = state(client, &id).await;
    let long = "q".repeat(2_001);
    let names = |count: usize| (0..count).map(|at| format!("t{at}")).collect::<Vec<_>>();
    let calls = |count: usize| vec![json!({"id": "c", "name": "echo", "arguments": {}}); count];
    let everywhere = [
        (json!({"user": 7}), "wrong_type", "/user"),
        (json!({"project": ["p"]}), "wrong_type", "/project"),
        (json!({"toolsets": "x"}), "wrong_type", "/toolsets"),
        (json!({"toolsets": [7]}), "wrong_type", "/toolsets/0"),
        (json!({"allow": ["a", ""]}), "invalid_value", "/allow/1"),
        (json!({"deny": {}}), "wrong_type", "/deny"),
        (json!({"deny": ["x".repeat(513)]}), "invalid_value", "/deny/0"),
        (json!({"unavailable": [null]}), "wrong_type", "/unavailable/0"),
        (json!({"format": "xml"}), "invalid_value", "/format"),
        (json!({"format": 1}), "wrong_type", "/format"),
        (json!({"context_window": "8k"}), "wrong_type", "/context_window"),
    ];
    let agent = [
        ("assemble", json!({})),
        ("search", json!({"query": "weather"})),
        ("describe", json!({"name": "echo"})),
        ("call", json!({"name": "echo"})),
        ("bridge", json!({"call": {"name": "echo", "arguments": {}}})),
    ];
    let mut cases: Vec<(String, Value, &str, String)> = Vec::new();
    for (route, good) in &agent {
        cases.push((format!("/v1/{route}"), good.clone(), "missing_key", "/user".to_owned()));
        for (bad, code, pointer) in &everywhere {
            let mut body = good.clone();
            body["user"] = json!(id);
            body.as_object_mut().unwrap().extend(bad.as_object().unwrap().clone());
            cases.push((format!("/v1/{route}"), body, code, (*pointer).to_owned()));
        }
    }
    for (route, bad, code, pointer) in [
        ("search", json!({}), "missing_key", "/query"),
        ("search", json!({"query": "a", "queries": ["b"]}), "invalid_value", "/queries"),
        ("search", json!({"query": 7}), "wrong_type", "/query"),
        ("search", json!({"queries": "a"}), "wrong_type", "/queries"),
        ("search", json!({"queries": []}), "missing_key", "/queries"),
        ("search", json!({"queries": ["a", 7]}), "wrong_type", "/queries/1"),
        ("search", json!({"query": long}), "too_long", "/query"),
        ("search", json!({"queries": ["a", long]}), "too_long", "/queries/1"),
        ("search", json!({"query": ["a", long]}), "too_long", "/query/1"),
        ("search", json!({"queries": names(11)}), "too_many", "/queries"),
        ("search", json!({"query": "a", "limit": "5"}), "wrong_type", "/limit"),
        ("search", json!({"query": "a", "limit": 2.5}), "wrong_type", "/limit"),
        ("search", json!({"query": "a", "detail": "all"}), "invalid_value", "/detail"),
        ("search", json!({"query": "a", "warm": "no"}), "wrong_type", "/warm"),
        ("describe", json!({}), "missing_key", "/name"),
        ("describe", json!({"name": ["a"]}), "wrong_type", "/name"),
        ("describe", json!({"name": "a", "names": ["b"]}), "invalid_value", "/names"),
        ("describe", json!({"names": []}), "missing_key", "/names"),
        ("describe", json!({"names": names(21)}), "too_many", "/names"),
        ("call", json!({}), "missing_key", "/name"),
        ("call", json!({"name": 7}), "wrong_type", "/name"),
        ("call", json!({"name": "echo", "calls": calls(1)}), "invalid_value", "/calls"),
        ("call", json!({"calls": calls(1), "arguments": {}}), "invalid_value", "/arguments"),
        ("call", json!({"calls": []}), "missing_key", "/calls"),
        ("call", json!({"calls": calls(21)}), "too_many", "/calls"),
        ("call", json!({"calls": {}}), "wrong_type", "/calls"),
        ("call", json!({"name": "get_weather", "city": "Oslo"}), "unknown_key", "/city"),
        ("call", json!({"name": "echo", "call_id": 1}), "wrong_type", "/call_id"),
        ("bridge", json!({}), "missing_key", "/call"),
        ("bridge", json!({"calls": []}), "missing_key", "/calls"),
        ("bridge", json!({"calls": calls(21)}), "too_many", "/calls"),
        ("bridge", json!({"calls": "x"}), "wrong_type", "/calls"),
        ("assemble", json!({"tools": {}}), "wrong_type", "/tools"),
        ("assemble", json!({"tools": [], "tools_ref": "x"}), "invalid_value", "/tools_ref"),
        ("assemble", json!({"used": "echo"}), "wrong_type", "/used"),
        ("assemble", json!({"epoch": "yes"}), "wrong_type", "/epoch"),
        ("assemble", json!({"messages": {}}), "wrong_type", "/messages"),
        ("assemble", json!({"query": long}), "too_long", "/query"),
        ("assemble", json!({"if_fingerprint": 1}), "wrong_type", "/if_fingerprint"),
    ] {
        let mut body = bad;
        body["user"] = json!(id);
        cases.push((format!("/v1/{route}"), body, code, pointer.to_owned()));
    }
    for (action, bad, code, pointer) in [
        ("pin", json!({}), "missing_key", "/names"),
        ("pin", json!({"names": []}), "invalid_value", "/names"),
        ("pin", json!({"names": [7]}), "wrong_type", "/names/0"),
        ("pin", json!({"names": names(65)}), "invalid_value", "/names"),
        ("pin", json!({"names": ["echo", "no_such_tool"]}), "unknown_tool", "/names/1"),
        ("release", json!({"names": "echo"}), "wrong_type", "/names"),
        ("unpin", json!({"names": {}}), "wrong_type", "/names"),
    ] {
        cases.push((path(&["v1", "users", &id, "sessions", "s", action]), bad, code, pointer.to_owned()));
    }
    for (at, body, code, pointer) in cases {
        let answer = client.post(&at, &body).await;
        let shown: String = body.to_string().chars().take(200).collect();
        assert_eq!(fault(&answer, 422, "invalid_request", &at), (code.to_owned(), pointer), "{at} {shown}");
    }
    assert_eq!(state(client, &id).await, before);
}

#[tokio::test]
async fn a_reference_to_tools_that_nobody_sent_is_412_everywhere() {
    let app = TestApp::start().await;
    let user = app.user();
    let stranger = app.user();
    let made = stranger.assemble(json!({"tools": [{"name": "secret_tool"}]})).await.ok();
    let foreign = made["tools_ref"].as_str().unwrap().to_owned();
    for reference in ["", "x", &"0".repeat(64), "../../etc/passwd", &foreign] {
        for (route, mut body) in [
            ("/v1/assemble", json!({})),
            ("/v1/search", json!({"query": "a"})),
            ("/v1/describe", json!({"name": "secret_tool"})),
            ("/v1/call", json!({"name": "secret_tool"})),
            ("/v1/bridge", json!({"call": {"name": "secret_tool"}})),
        ] {
            body["tools_ref"] = json!(reference);
            let problem = user.post(route, body).await.problem(412, "unknown_tools_ref");
            assert_eq!(problem["errors"][0]["pointer"], "/tools_ref", "{reference}");
        }
    }
}

#[tokio::test]
async fn nothing_known_is_a_clean_answer() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let config = client.get(&user.path(&["config"])).await;
    assert_eq!((config.ok(), config.header("etag")), (json!({}), Some("\"0\"")));
    let catalog = client.get(&user.path(&["catalog"])).await.ok();
    assert_eq!(catalog["tools"], json!([]));
    for body in [json!({}), json!({"session": "never-seen"}), json!({"project": "never-written"})] {
        let assembled = user.assemble(body).await.ok();
        assert_eq!(
            (&assembled["tier"], &assembled["tools"], &assembled["listing"]),
            (&json!(0), &Value::Null, &Value::Null)
        );
        assert!(
            assembled["warnings"]
                .as_array()
                .unwrap()
                .iter()
                .any(|warning| warning["code"] == "empty_catalog"),
            "{assembled}"
        );
    }
    let found = user.search(json!({"session": "new", "query": "send an email"})).await.ok();
    assert_eq!(found["results"][0]["matches"], json!([]));
    assert!(found["results"][0]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{found}");
    let described = user.describe(json!({"session": "new", "name": "send_email"})).await.ok();
    assert_eq!(described["not_found"][0]["name"], "send_email");
    let called = user.call(json!({"session": "new", "name": "send_email", "arguments": {}})).await.ok();
    assert_eq!(called["results"][0]["error"]["code"], "unknown_tool");
    let bridged = user
        .bridge(json!({"session": "new", "call": {"id": "1", "name": "tool_search",
            "arguments": {"query": "email"}}}))
        .await
        .ok();
    assert_eq!(bridged["results"][0]["action"], "respond");

    let session = user.path(&["sessions", "unknown"]);
    assert_eq!(client.get(&session).await.ok()["warm"], json!([]));
    client.post(&user.path(&["sessions", "unknown", "reset"]), &json!({})).await.ok();
    let released =
        client.post(&user.path(&["sessions", "unknown", "release"]), &json!({"names": ["x"]})).await.ok();
    assert_eq!(released["warnings"][0]["code"], "unknown_tool");
    for place in [session, user.path(&["config"]), user.path(&["catalog"])] {
        client.delete(&place).await.expect_status(204);
        client.delete(&place).await.expect_status(204);
    }
}

#[tokio::test]
async fn what_is_just_allowed_is_taken() {
    let app = TestApp::start().await;
    let (client, user) = (app.admin(), app.user());
    let tools: Vec<Value> =
        (0..64).map(|at| json!({"name": format!("t{at}"), "description": "Does it."})).collect();
    user.put_catalog(&tools).await.ok();
    user.put_config(&json!({"max_warm_tools": 64})).await.ok();
    let names = |count: usize| (0..count).map(|at| format!("t{at}")).collect::<Vec<_>>();
    // Characters, not bytes.
    let longest = "ä".repeat(2_000);
    user.search(json!({"query": longest})).await.ok();
    user.assemble(json!({"query": longest})).await.ok();
    let ten = user.search(json!({"queries": vec![longest; 10]})).await.ok();
    assert_eq!(ten["results"].as_array().unwrap().len(), 10);
    let twenty = user.describe(json!({"names": names(20)})).await.ok();
    assert_eq!(twenty["tools"].as_array().unwrap().len(), 20);
    let calls: Vec<Value> =
        names(20).iter().map(|name| json!({"id": "c", "name": name, "arguments": {}})).collect();
    for route in ["/v1/call", "/v1/bridge"] {
        let answer = user.post(route, json!({"calls": calls})).await.ok();
        assert_eq!(answer["results"].as_array().unwrap().len(), 20, "{route}");
    }
    let pinned = client.post(&user.path(&["sessions", "s", "pin"]), &json!({"names": names(64)})).await.ok();
    assert_eq!(pinned["warm"].as_array().unwrap().len(), 64);
    let name = "n".repeat(512);
    client.patch(&user.path(&["catalog"]), &json!({"upsert": [{"name": name}]})).await.ok();
    user.assemble(json!({"allow": [name]})).await.ok();
    let near = format!("{{\"name\": \"near\", \"description\": \"{}\"}}", "x".repeat(256 * 1024 - 40));
    let body = format!("{{\"upsert\": [{near}]}}");
    let kept = client.send(Method::PATCH, &user.path(&["catalog"]), &[JSON], body.into()).await.ok();
    assert_eq!((&kept["added"]["count"], &kept["warnings"]), (&json!(1), &json!([])));
    // A body just below its limit, of which almost all is white space.
    let mut body = vec![b' '; 16 * MIB - 2];
    body.extend_from_slice(b"{}");
    client.send(Method::PATCH, &user.path(&["catalog"]), &[JSON], body.into()).await.ok();
}

#[tokio::test]
async fn pages_and_cursors_are_checked() {
    let app = TestApp::start().await;
    let user = app.user();
    let sessions = user.path(&["sessions"]);
    for (query, pointer) in [
        ("limit=0", "/limit"),
        ("limit=201", "/limit"),
        ("limit=x", "/limit"),
        ("cursor=nonsense", "/cursor"),
        ("project=a%20b", "/project"),
        ("page=2", "/page"),
    ] {
        let answer = app.admin().get(&format!("{sessions}?{query}")).await;
        assert_eq!(fault(&answer, 422, "invalid_request", &sessions).1, pointer, "{query}");
    }
    app.admin().get(&format!("{sessions}?limit=200")).await.ok();
}
