//! The API over a real service and a database of its own: what callers send, and what they get for it.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::core::keys::KeyDigest;
use crate::core::slots::SlotLimits;
use crate::http::auth::Auth;
use crate::http::hygiene::Origins;
use crate::http::layers::{HttpContext, HttpLimits};
use crate::http::problem::PROBLEM_JSON;
use crate::http::tests::{no_pages, service};
use crate::http::{app, openapi};
use crate::service::Toolrack;

const BODY_BYTES: usize = 256 * 1024;

struct Api {
    app: Router,
    stop: CancellationToken,
    _directory: tempfile::TempDir,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    #[track_caller]
    fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }

    /// An answer of 200 that is as the OpenAPI document says.
    #[track_caller]
    fn documented_as(self, schema: &str) -> Value {
        let body = self.ok();
        assert_documented(&body, schema);
        body
    }

    #[track_caller]
    fn etag(&self) -> String {
        self.headers[header::ETAG].to_str().unwrap().to_owned()
    }

    /// Status, code and place of a problem.
    #[track_caller]
    fn problem(&self) -> (u16, &str, &str) {
        let content_type = self.headers.get(header::CONTENT_TYPE).expect("a content type");
        assert_eq!(content_type, PROBLEM_JSON, "{} {}", self.status, self.body);
        assert_documented(&self.body, "ProblemDocument");
        let pointer = self.body["errors"][0]["pointer"].as_str().unwrap_or_default();
        (self.status, self.body["code"].as_str().unwrap(), pointer)
    }
}

#[track_caller]
fn assert_documented(body: &Value, schema: &str) {
    let document: Value = serde_json::from_str(&openapi::json(&openapi::document())).unwrap();
    let reference = format!("#/components/schemas/{schema}");
    let schema = json!({"$ref": reference, "components": document["components"]});
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(body).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{reference}: {faults:?}\n{body}");
    let properties = &document.pointer(&reference[1..]).unwrap()["properties"];
    for key in body.as_object().unwrap().keys() {
        assert!(
            properties.get(key).is_some() || schema_is_joined(&document, &reference),
            "{reference}: {key}"
        );
    }
}

/// Flattened documents are joined from several schemas.
fn schema_is_joined(document: &Value, reference: &str) -> bool {
    document.pointer(&reference[1..]).unwrap().get("allOf").is_some()
}

impl Api {
    async fn start() -> Self {
        Self::with_auth(|_| Auth::None).await
    }

    async fn with_auth(auth: impl FnOnce(Toolrack) -> Auth) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let service = service(directory.path()).await;
        let auth = auth(service.clone());
        let limits = HttpLimits {
            body_bytes: BODY_BYTES,
            json_depth: 64,
            request_timeout: Duration::from_secs(30),
            slots: SlotLimits { running: 64, waiting: 64 },
            admin_rate: None,
            slow_request: None,
        };
        let stop = CancellationToken::new();
        let app = app(service, HttpContext::new(limits, auth, Origins::default()), no_pages(), stop.clone());
        Self { app, stop, _directory: directory }
    }

    /// `line` is method and path, for example `GET /v1/limits`.
    async fn send(&self, line: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let (method, path) = line.split_once(' ').unwrap();
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = self.app.clone().call(request.body(body.into()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[], Body::empty()).await
    }

    async fn json(&self, line: &str, body: &Value) -> Answer {
        self.text(line, &body.to_string()).await
    }

    async fn text(&self, line: &str, body: &str) -> Answer {
        self.send(line, &[("content-type", "application/json")], body.to_owned()).await
    }

    /// A user `u` with thirty tools.
    async fn with_tools() -> Self {
        let api = Self::start().await;
        api.json("PUT /v1/users/u/catalog", &json!({"tools": tools(30)}))
            .await
            .documented_as("CatalogWritten");
        api
    }
}

fn tools(count: usize) -> Vec<Value> {
    let tool = |at| {
        json!({
            "group": if at % 2 == 0 { "files" } else { "mail" },
            "name": format!("tool_{at}"),
            "description": format!("Sends letter number {at} to somebody."),
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
        })
    };
    (0..count).map(tool).collect()
}

#[tokio::test]
async fn a_turn_of_an_agent_is_as_documented() {
    let api = Api::with_tools().await;
    let who = |more: Value| {
        let mut body = json!({"user": "u", "session": "s"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let first = api.json("POST /v1/assemble", &who(json!({}))).await.documented_as("AssembleAnswer");
    assert_eq!((first["counts"]["bridge"].as_u64(), first["tools"].as_array().unwrap().len()), (Some(3), 3));

    for query in
        [json!({"query": "letter number 7"}), json!({"query": ["letter"]}), json!({"queries": ["letter"]})]
    {
        let found = api.json("POST /v1/search", &who(query)).await.documented_as("SearchAnswer");
        assert!(!found["results"][0]["matches"].as_array().unwrap().is_empty(), "{found}");
    }
    let described = api.json("POST /v1/describe", &who(json!({"names": ["tool_1", "tool_x"]}))).await;
    let described = described.documented_as("DescribeAnswer");
    assert_eq!(described["tools"].as_array().map(Vec::len), Some(1));
    let call = json!({"name": "tool_1", "arguments": {"to": "me"}, "call_id": "c1"});
    let called = api.json("POST /v1/call", &who(call)).await.documented_as("CallAnswer");
    assert_eq!(called["results"][0]["dispatch"]["id"], "c1:tool:tool_1");
    let calls = json!({"calls": [{"name": "tool_1", "to": "me"}, {"name": "tool_2"}]});
    let called = api.json("POST /v1/call", &who(calls)).await.documented_as("CallAnswer");
    assert_eq!((&called["results"][0]["ok"], &called["results"][1]["ok"]), (&json!(true), &json!(false)));
    let call = json!({"call": {"id": "1", "name": "tool_search", "arguments": {"query": "letter"}}});
    let bridged = api.json("POST /v1/bridge", &who(call)).await.documented_as("BridgeAnswer");
    assert_eq!(bridged["results"][0]["action"], "respond");

    let next = api
        .json("POST /v1/assemble", &who(json!({"used": ["tool_1"]})))
        .await
        .documented_as("AssembleAnswer");
    assert!(!next["warm"].as_array().unwrap().is_empty());
    let again = who(json!({"used": ["tool_1"], "if_fingerprint": next["fingerprint"]}));
    let again = api.json("POST /v1/assemble", &again).await.documented_as("AssembleAnswer");
    assert!(again["changed"] == false && again.get("tools").is_none());
}

#[tokio::test]
async fn live_tools_are_named_by_their_reference() {
    let api = Api::start().await;
    let mut live = tools(20);
    live.push(json!({"name": "", "parameters": 7}));
    let body = json!({"user": "u", "session": "s", "tools": live});
    let answer = api.json("POST /v1/assemble", &body).await.documented_as("AssembleAnswer");
    assert!(answer["warnings"][0]["pointer"].as_str().unwrap().starts_with("/tools/20"), "{answer}");
    let again = json!({"user": "u", "session": "s", "tools_ref": answer["tools_ref"]});
    assert_eq!(api.json("POST /v1/assemble", &again).await.ok()["fingerprint"], answer["fingerprint"]);
    let foreign = json!({"user": "other", "tools_ref": answer["tools_ref"]});
    let refused = api.json("POST /v1/assemble", &foreign).await;
    assert_eq!(refused.problem(), (412, "unknown_tools_ref", "/tools_ref"));
    let not_a_list = json!({"user": "u", "tools": {"a": 1}});
    let refused = api.json("POST /v1/assemble", &not_a_list).await;
    assert_eq!(refused.problem(), (422, "invalid_request", "/tools"));
}

#[tokio::test]
async fn what_is_wrong_is_named_at_its_place() {
    let api = Api::with_tools().await;
    let long = "x".repeat(2_001);
    let names: Vec<String> = (0..21).map(|at| format!("n{at}")).collect();
    for (route, body, pointer) in [
        ("search", json!({"user": "u"}), "/query"),
        ("search", json!({"user": "u", "query": "a", "queries": ["b"]}), "/queries"),
        ("search", json!({"user": "u", "query": ["a"], "queries": ["b"]}), "/queries"),
        ("search", json!({"user": "u", "query": 7}), "/query"),
        ("search", json!({"user": "u", "query": long}), "/query"),
        ("search", json!({"user": "u", "query": ["a", long]}), "/query/1"),
        ("search", json!({"user": "u", "queries": ["a", long]}), "/queries/1"),
        ("search", json!({"user": "u", "query": []}), "/query"),
        ("search", json!({"user": "u", "query": "a", "detail": "all"}), "/detail"),
        ("search", json!({"user": "u", "query": "a", "limit": "5"}), "/limit"),
        ("search", json!({"user": "u", "query": "a", "format": "xml"}), "/format"),
        ("describe", json!({"user": "u"}), "/name"),
        ("describe", json!({"user": "u", "name": "a", "names": ["b"]}), "/names"),
        ("describe", json!({"user": "u", "names": names}), "/names"),
        ("call", json!({"user": "u"}), "/name"),
        ("call", json!({"user": "u", "name": "a", "calls": []}), "/calls"),
        ("call", json!({"user": "u", "calls": [{}], "arguments": {}}), "/arguments"),
        ("call", json!({"user": "u", "name": "a", "to": "me"}), "/to"),
        ("call", json!({"user": "u", "calls": []}), "/calls"),
        ("bridge", json!({"user": "u"}), "/call"),
        ("bridge", json!({"user": "u", "call": {}, "calls": [{}]}), "/calls"),
        ("assemble", json!({"user": "u", "query": "a", "messages": []}), "/messages"),
        ("assemble", json!({"user": "u", "query": long}), "/query"),
        ("assemble", json!({"user": "u", "messages": "a"}), "/messages"),
        ("assemble", json!({"user": "u", "used": [7]}), "/used/0"),
        ("assemble", json!({"user": "u", "toolset": []}), "/toolset"),
        ("assemble", json!({"user": "é"}), "/user"),
    ] {
        let answer = api.json(&format!("POST /v1/{route}"), &body).await;
        assert_eq!(answer.problem(), (422, "invalid_request", pointer), "{route} {body} {}", answer.body);
    }
    for (line, code) in [
        ("GET /v1/users/a%20b/config", "invalid_id"),
        ("GET /v1/projects/%FF/catalog", "invalid_id"),
        ("GET /v1/users/u/sessions/a%2Fb", "invalid_id"),
        ("GET /v1/config/effective", "invalid_request"),
        ("GET /v1/config/effective?usr=u", "invalid_request"),
        ("DELETE /v1/users/u/catalog?dry_run=true", "invalid_request"),
        ("PUT /v1/users/u/config?dry_run=yes", "invalid_request"),
        ("GET /v1/users/u/sessions?limit=201", "invalid_request"),
        ("GET /v1/users/u/sessions?cursor=zz", "invalid_request"),
    ] {
        let answer = api.text(line, "{}").await;
        assert_eq!((answer.problem().0, answer.problem().1), (422, code), "{line}");
    }
}

#[tokio::test]
async fn no_route_is_shaken_by_a_hostile_body() {
    let api = Api::with_tools().await;
    let deep = format!("{{\"user\":{}1{}}}", "[".repeat(64), "]".repeat(64));
    let large = format!("{{\"user\":\"{}\"}}", "x".repeat(BODY_BYTES));
    let lines = [
        "POST /v1/assemble",
        "POST /v1/search",
        "POST /v1/describe",
        "POST /v1/call",
        "POST /v1/bridge",
        "PUT /v1/users/u/config",
        "PATCH /v1/projects/p/config",
        "PUT /v1/users/u/catalog",
        "PATCH /v1/projects/p/catalog",
        "POST /v1/users/u/sessions/s/reset",
        "POST /v1/users/u/sessions/s/pin",
        "POST /v1/users/u/sessions/s/unpin",
        "POST /v1/users/u/sessions/s/release",
    ];
    for line in lines {
        for (body, status, code) in [
            ("{\"user\":", 400, "malformed_json"),
            ("", 400, "malformed_json"),
            ("{\"user\": NaN}", 400, "malformed_json"),
            ("{\"user\":\"a\",\"user\":\"b\"}", 400, "duplicate_key"),
            ("{\"user\":\"\\ud800\"}", 400, "invalid_text"),
            ("{\"user\":\"\\u0000\"}", 400, "nul_character"),
            (&deep, 400, "too_deep"),
            (&large, 413, "payload_too_large"),
            ("[]", 422, "invalid_request"),
            ("null", 422, "invalid_request"),
            ("{\"nothing of ours\":1}", 422, "invalid_request"),
        ] {
            // An empty body is what a reset has.
            if body.is_empty() && line.ends_with("reset") {
                continue;
            }
            let answer = api.text(line, body).await;
            assert_eq!((answer.problem().0, answer.problem().1), (status, code), "{line} {body:.40}");
        }
        let answer =
            api.send(line, &[("content-type", "application/json")], b"{\"user\":\"\xff\"}".to_vec()).await;
        assert_eq!(answer.problem().1, "invalid_utf8", "{line}");
        let answer = api.send(line, &[("content-type", "text/plain")], "{}").await;
        assert_eq!(answer.problem().1, "unsupported_media_type", "{line}");
    }
}

#[tokio::test]
async fn configs_are_written_on_condition() {
    let api = Api::start().await;
    let path = "/v1/projects/p/config";
    let unwritten = api.get(path).await;
    assert_eq!((unwritten.etag(), unwritten.ok()), ("\"0\"".to_owned(), json!({})));

    let tried = api.json(&format!("PUT {path}?dry_run=true"), &json!({"max_warm_tools": 900})).await;
    assert_eq!(tried.etag(), "\"0\"");
    let tried = tried.documented_as("ConfigWritten");
    assert_eq!((&tried["config"], &tried["dry_run"]), (&json!({"max_warm_tools": 64}), &json!(true)));
    assert_eq!(tried["warnings"][0]["pointer"], "/max_warm_tools");
    assert_eq!(api.get(path).await.ok(), json!({}));

    let put = async |tag: &str| {
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        api.send("PUT /v1/projects/p/config", &headers, "{\"core\":[\"a\"]}").await
    };
    let written = put("\"0\"").await;
    written.documented_as("ConfigWritten");
    assert_eq!(put("\"0\"").await.problem().1, "precondition_failed");
    assert_eq!(put("0").await.problem().1, "invalid_request");
    let tag = put("*").await.etag();

    let known = api.send(&format!("GET {path}"), &[("if-none-match", &tag)], Body::empty()).await;
    assert_eq!((known.status, known.etag()), (304, tag));
    let patched =
        api.json(&format!("PATCH {path}"), &json!({"core": null, "usage_prior": {"enabled": true}})).await;
    assert_eq!(patched.problem(), (422, "unsupported", "/usage_prior/enabled"));
    let effective = api.get("/v1/config/effective?project=p").await.documented_as("EffectiveConfig");
    assert_eq!(effective["config"]["core"]["origin"], "project");
    for _ in 0..2 {
        assert_eq!(api.send(&format!("DELETE {path}"), &[], Body::empty()).await.status, 204);
    }
    assert_eq!(api.get(path).await.ok(), json!({}));
}

#[tokio::test]
async fn a_catalog_can_be_sent_back_and_a_bad_tool_stays_alone() {
    let api = Api::start().await;
    let path = "/v1/users/u/catalog";
    assert_eq!(api.get(path).await.documented_as("StoredCatalog")["tools"], json!([]));
    // A duplicate key is the one tool's fault, not the upload's.
    let body = r#"{"tools":[{"name":"a","name":"b"},{"name":"c d","description":"x","inputSchema":{"type":"object"}}]}"#;
    let tried = api.text(&format!("PUT {path}?dry_run=true"), body).await;
    assert!(!tried.headers.contains_key(header::ETAG));
    assert_eq!(tried.documented_as("CatalogWritten")["added"]["names"], json!(["c d"]));
    assert_eq!(api.get(path).await.ok()["tools"], json!([]));
    let written = api.text(&format!("PUT {path}"), body).await;
    let tag = written.etag();
    let written = written.ok();
    assert_eq!(
        (&written["warnings"][0]["code"], &written["added"]["count"]),
        (&json!("tool_quarantined"), &json!(1))
    );

    let stored = api.get(path).await;
    assert_eq!(stored.etag(), tag);
    let stored = stored.documented_as("StoredCatalog");
    let back = api.json(&format!("PUT {path}"), &stored).await.ok();
    assert_eq!(
        (&back["unchanged"]["count"], &back["catalog_version"]),
        (&json!(1), &stored["catalog_version"])
    );

    let tool = api.get(&format!("{path}/tools/c%20d")).await.documented_as("ToolDefinition");
    assert_eq!(tool["name"], "c d");
    assert_eq!(api.get(&format!("{path}/tools/x")).await.problem().1, "unknown_tool");
    for (method, body, code, pointer) in [
        ("PUT", json!({"tools": []}), "empty_catalog_upload", "/tools"),
        ("PUT", json!({"tools": [7]}), "empty_catalog_upload", "/tools/0"),
        ("PUT", json!({"tools": {}}), "invalid_request", "/tools"),
        ("PUT", json!({}), "invalid_request", "/tools"),
        ("PATCH", json!({"upsert": "x"}), "invalid_request", "/upsert"),
        ("PATCH", json!({"remove": [1]}), "invalid_request", "/remove/0"),
        ("PUT", json!({"tools": tools(101)}), "too_many_tools", ""),
    ] {
        let answer = api.json(&format!("{method} {path}"), &body).await;
        assert_eq!(answer.problem(), (422, code, pointer), "{method} {body:.80}");
    }
    let patched = api.json(&format!("PATCH {path}"), &json!({"upsert": tools(2), "remove": ["c d"]})).await;
    assert_eq!(patched.ok()["removed"]["names"], json!(["c d"]));
    let stale = api.send(&format!("DELETE {path}"), &[("if-match", &tag)], Body::empty()).await;
    assert_eq!(stale.problem().0, 412);
    assert_eq!(api.send(&format!("DELETE {path}"), &[], Body::empty()).await.status, 204);
}

#[tokio::test]
async fn qualified_names_survive_the_way_back() {
    let api = Api::start().await;
    let path = "/v1/projects/p/catalog";
    let tool = |group| json!({"group": group, "name": "send", "description": group, "parameters": {"type": "object"}});
    api.json(&format!("PUT {path}"), &json!({"tools": [tool("mail"), tool("fax")]})).await.ok();
    let stored = api.get(path).await.documented_as("StoredCatalog");
    assert_eq!(stored["tools"][0]["name"], "fax__send");
    let back = api.json(&format!("PUT {path}"), &stored).await.ok();
    assert_eq!(back["unchanged"]["count"], 2, "{back}");
    assert_eq!(api.get(&format!("{path}/tools/send")).await.problem(), (422, "ambiguous_name", ""));
}

#[tokio::test]
async fn sessions_are_listed_pinned_and_emptied() {
    let api = Api::with_tools().await;
    let session = "/v1/users/u/sessions/s1";
    assert_eq!(api.get(session).await.documented_as("SessionDocument")["warm"], json!([]));
    let pinned = api.json(&format!("POST {session}/pin"), &json!({"names": ["tool_1"]})).await;
    assert_eq!(pinned.documented_as("SessionDocument")["warm"][0]["pinned"], true);
    let unpinned = api.json(&format!("POST {session}/unpin"), &json!({"names": ["tool_1"]})).await.ok();
    assert_eq!(unpinned["warm"][0]["pinned"], false);
    let released =
        api.json(&format!("POST {session}/release"), &json!({"names": ["tool_1", "no"]})).await.ok();
    assert_eq!((&released["warm"], &released["warnings"][0]["pointer"]), (&json!([]), &json!("/names/1")));
    let refused = api.json(&format!("POST {session}/pin"), &json!({"names": []})).await;
    assert_eq!(refused.problem(), (422, "invalid_request", "/names"));

    api.json("POST /v1/users/u/sessions/s2/pin", &json!({"names": ["tool_2"]})).await.ok();
    let page = api.get("/v1/users/u/sessions?limit=1").await.documented_as("SessionList");
    let cursor = page["next_cursor"].as_str().unwrap();
    let last = api.get(&format!("/v1/users/u/sessions?limit=1&cursor={cursor}")).await.ok();
    assert!(last.get("next_cursor").is_none() && last["sessions"] != page["sessions"]);

    let reset = format!("POST {session}/reset");
    api.send(&reset, &[], Body::empty()).await.documented_as("SessionDocument");
    api.json(&reset, &json!({})).await.ok();
    assert_eq!(api.json(&reset, &json!({"all": true})).await.problem().2, "/all");
    for _ in 0..2 {
        assert_eq!(api.send(&format!("DELETE {session}"), &[], Body::empty()).await.status, 204);
    }
}

#[tokio::test]
async fn operators_see_health_limits_and_metrics() {
    let key = "0123456789abcdef0123456789abcdef";
    let api =
        Api::with_auth(|service| Auth::Keys { admin: Some(KeyDigest::of(key.as_bytes())), service }).await;
    let authorization = format!("Bearer {key}");
    let closed = async |path: &str| {
        assert_eq!(api.get(path).await.problem().0, 401, "{path}");
        api.send(&format!("GET {path}"), &[("authorization", &authorization)], Body::empty()).await
    };
    api.get("/healthz").await.documented_as("HealthDocument");
    let ready = api.get("/readyz").await.documented_as("ReadinessDocument");
    assert_eq!(ready["components"]["database"]["status"], "ok");
    assert_eq!(api.get("/openapi.json").await.ok()["info"]["title"], "Toolrack");
    let limits = closed("/v1/limits").await.documented_as("LimitsDocument");
    assert_eq!((&limits["body_bytes"], &limits["queries"]), (&json!(BODY_BYTES), &json!(10)));
    closed("/v1/users/somebody/config").await.ok();
    let metrics = closed("/metrics").await;
    assert_eq!(metrics.headers[header::CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    let metrics = metrics.ok();
    let metrics = metrics.as_str().unwrap();
    for shown in ["toolrack_cache_entries{cache=\"catalogs\"}", "route=\"/v1/users/{user}/config\""] {
        assert!(metrics.contains(shown), "{shown}");
    }
    assert!(!metrics.contains("somebody"));

    api.stop.cancel();
    let ready = api.get("/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE.as_u16());
    assert_documented(&ready.body, "ReadinessDocument");
    assert_eq!(ready.body["components"]["server"]["status"], "draining");
}
