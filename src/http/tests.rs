//! The foundation as clients meet it: a real listener, and clients that write bytes to a socket.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::core::id::Id;
use crate::core::json::JsonLimits;
use crate::core::keys::{Access, KeyDigest, Role};
use crate::core::slots::SlotLimits;
use crate::core::warning::FieldError;
use crate::http::access::RouteTable;
use crate::http::auth::Auth;
use crate::http::body::{ApiJson, ApiPath, ApiQuery, RawBody};
use crate::http::hygiene::Origins;
use crate::http::layers::{HttpContext, HttpLayer, HttpLimits};
use crate::http::problem::{Code, Problem};
use crate::http::scoped::names_nobody;
use crate::http::{docs, pages, problem};
use crate::mcp::NoToolSource;
use crate::rerank::{AddressPolicy, NoReranker};
use crate::service::{AuditLimits, CacheLimits, KeyLimits, Limits, Parts, Toolrack};
use crate::store::{MasterKey, SqliteStore};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const BODY_BYTES: usize = 64 * 1024;

/// A service over a database of its own.
pub(super) async fn service(folder: &Path) -> Toolrack {
    let store = SqliteStore::open(&folder.join("t.db"), |_| {}).await.unwrap();
    Toolrack::new(Parts {
        store: Arc::new(store),
        reranker: Arc::new(NoReranker),
        tool_source: Arc::new(NoToolSource),
        addresses: AddressPolicy::default(),
        master_key: MasterKey::from_setting(&"ab".repeat(32)).unwrap(),
        limits: Limits {
            tools_per_catalog: 100,
            tool_bytes: 4_096,
            depth: 64,
            query_chars: 2_000,
            queries: 10,
            names: 20,
            calls: 20,
            session_ttl: Duration::from_secs(3_600),
            request_timeout: Duration::from_secs(60),
            sessions: 100,
            keys: KeyLimits::default(),
            audit: AuditLimits { entries: 100, age_ms: i64::MAX },
            mcp_timeout: Duration::from_secs(60),
        },
        caches: CacheLimits {
            catalogs_bytes: 1 << 24,
            views_bytes: 1 << 24,
            vectors_bytes: 1 << 24,
            answers_bytes: 1 << 24,
            sessions: 100,
        },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestBody {
    user: Id,
    #[serde(default)]
    tools: Vec<TestTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestTool {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestQuery {
    limit: Option<u32>,
}

#[derive(Deserialize)]
struct TestPath {
    user: Id,
}

names_nobody!(TestBody, TestQuery, TestPath, serde_json::Map<String, Value>);

async fn echo(ApiJson(body): ApiJson<TestBody>) -> String {
    let names: Vec<String> = body.tools.into_iter().map(|tool| tool.name).collect();
    format!("{} {}", body.user, names.join(","))
}

async fn raw(body: RawBody) -> Result<String, Problem> {
    let limits = JsonLimits { opaque: &["tools"], ..JsonLimits::strict(8) };
    let body: serde_json::Map<String, Value> = body.parse(limits)?;
    Ok(body.len().to_string())
}

async fn fails() -> Problem {
    Problem::internal("the cause that nobody outside may see")
}

async fn panics() {
    panic!("secret text");
}

/// An answer as it came over the wire.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &&str| line.to_ascii_lowercase().starts_with(&format!("{name}: "));
        self.head.lines().find(line).map(|line| &line[name.len() + 2..])
    }

    fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some(problem::PROBLEM_JSON), "{}", self.body);
        self.json()["code"].as_str().unwrap().to_owned()
    }

    fn error(&self) -> (String, String) {
        let error = self.json()["errors"][0].clone();
        (error["code"].as_str().unwrap().to_owned(), error["pointer"].as_str().unwrap().to_owned())
    }
}

async fn serve() -> SocketAddr {
    let limits = HttpLimits {
        body_bytes: BODY_BYTES,
        json_depth: 16,
        request_timeout: Duration::from_secs(1),
        slots: SlotLimits { running: 8, waiting: 8 },
        admin_rate: None,
        slow_request: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let service = service(folder.path()).await;
    let auth = Auth::Keys { admin: Some(KeyDigest::of(KEY.as_bytes())), service };
    let context = HttpContext::new(limits, auth, Origins::default());
    let mut table = RouteTable::default();
    let role = Access::Roles(&[Role::Admin]);
    for path in ["/v1/limit", "/v1/users/{user}", "/v1/fails", "/v1/panics", "/v1/sleeps"] {
        table.add(Method::GET, path, role);
    }
    for path in ["/v1/echo", "/v1/raw", "/v1/unread"] {
        table.add(Method::POST, path, role);
    }
    let app = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/v1/echo", post(echo))
        .route("/v1/raw", post(raw))
        .route("/v1/unread", post(|| async { StatusCode::CONFLICT }))
        .route(
            "/v1/limit",
            get(|ApiQuery(query): ApiQuery<TestQuery>| async move { format!("{:?}", query.limit) }),
        )
        .route(
            "/v1/users/{user}",
            get(|ApiPath(path): ApiPath<TestPath>| async move { path.user.to_string() }),
        )
        .route("/v1/unlisted", get(|| async { "ok" }))
        .route("/v1/fails", get(fails))
        .route("/v1/panics", get(panics))
        .route("/v1/sleeps", get(std::future::pending::<()>))
        .merge(docs::router("/openapi.json"))
        .layer(HttpLayer::new(context.clone(), table, plain_problem))
        .with_state(context);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let _kept = folder;
        axum::serve(listener, app).await
    });
    address
}

/// A server without pages.
pub(super) fn no_pages() -> pages::Pages {
    pages::Pages { router: Router::new(), routes: Vec::new(), problem: plain_problem }
}

fn plain_problem(problem: &Problem, _: &pages::Visit<'_>) -> Response {
    problem.code().status().into_response()
}

/// Sends bytes as they are, then reads the answer until the connection ends or its length is there.
async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    read_answer(&mut stream).await
}

async fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let status = head[9..12].parse().unwrap();
            let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
            let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return answer;
            }
        }
        assert!(
            stream.read_buf(&mut bytes).await.expect("the answer must be readable") > 0,
            "no answer: {text}"
        );
    }
}

fn with_key(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {KEY}\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

async fn ask(method: &str, path: &str) -> Answer {
    exchange(serve().await, &with_key(method, path, "", b"")).await
}

async fn send(path: &str, body: impl AsRef<[u8]>) -> Answer {
    let request = with_key("POST", path, "content-type: application/json; charset=utf-8\r\n", body.as_ref());
    exchange(serve().await, &request).await
}

#[tokio::test]
async fn a_good_body_arrives() {
    let answer = send("/v1/echo", r#"{"user":"u1","tools":[{"name":"a"},{"name":"ü"}]}"#).await;
    assert_eq!((answer.status, &*answer.body), (200, "u1 a,ü"));
    assert_eq!(answer.header("x-request-id").unwrap().len(), 32);
}

#[tokio::test]
async fn a_body_in_chunks_arrives_whole_and_is_bounded_too() {
    let head =
        with_key("POST", "/v1/echo", "content-type: application/json\r\ntransfer-encoding: chunked\r\n", b"");
    let head = String::from_utf8(head).unwrap().replace("content-length: 0\r\n", "");
    let small = format!("{head}5\r\n{{\"use\r\n8\r\nr\":\"u1\"}}\r\n0\r\n\r\n");
    assert_eq!(exchange(serve().await, small.as_bytes()).await.body, "u1 ");
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    let large = format!("{head}{}0\r\n\r\n", chunk.repeat(BODY_BYTES / 0x1000 + 1));
    assert_eq!(exchange(serve().await, large.as_bytes()).await.code(), "payload_too_large");
}

#[tokio::test]
async fn bodies_that_are_not_strict_json_are_400_with_their_place() {
    for (body, code, pointer) in [
        (&b"{\n \"user\": tru}"[..], "malformed_json", "/user"),
        (b"", "malformed_json", ""),
        (b"{\"user\":\"a\"} x", "malformed_json", ""),
        (b"{\"user\":\"\xff\"}", "invalid_utf8", ""),
        (br#"{"user":"a","tools":[{"name":"a","name":"b"}]}"#, "duplicate_key", "/tools/0/name"),
        (br#"{"user":"a","tools":[{"name":"\ud83d"}]}"#, "invalid_text", "/tools/0/name"),
        (br#"{"user":"a","tools":[{"name":"\u0000"}]}"#, "nul_character", "/tools/0/name"),
        (b"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "too_deep", "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0"),
    ] {
        let answer = send("/v1/echo", body).await;
        let text = String::from_utf8_lossy(body);
        assert_eq!((answer.status, &*answer.code()), (400, code), "{text}");
        assert_eq!(answer.error(), (code.to_owned(), pointer.to_owned()), "{text}");
    }
    let detail = send("/v1/echo", "{\n \"user\": tru}").await.json()["detail"].to_string();
    assert!(detail.contains("line 2 column 1"), "{detail}");
}

#[tokio::test]
async fn bodies_that_do_not_fit_are_422_with_their_place() {
    for (body, code, pointer) in [
        (r#"{"user":"a","tools":[{"name":"a"},{"name":"b","foo":1}]}"#, "unknown_key", "/tools/1/foo"),
        (r#"{"user":"a","tool":[]}"#, "unknown_key", "/tool"),
        (r#"{"tools":[]}"#, "missing_key", "/user"),
        (r#"{"user":7}"#, "wrong_type", "/user"),
        (r#"{"user":"a b"}"#, "invalid_value", "/user"),
        (r#"["a"]"#, "wrong_type", ""),
    ] {
        let answer = send("/v1/echo", body).await;
        assert_eq!((answer.status, &*answer.code()), (422, "invalid_request"), "{body}");
        assert_eq!(answer.error(), (code.to_owned(), pointer.to_owned()), "{body}");
    }
}

#[tokio::test]
async fn a_raw_body_is_read_under_the_handlers_own_limits() {
    let answer = send("/v1/raw", r#"{"tools":[{"a":1,"a":[[[[[[[[[[[[1]]]]]]]]]]]]}]}"#).await;
    assert_eq!((answer.status, &*answer.body), (200, "1"));
    assert_eq!(send("/v1/raw", r#"{"x":[{"a":1,"a":2}]}"#).await.code(), "duplicate_key");
}

#[tokio::test]
async fn other_types_and_encodings_are_415() {
    for headers in [
        "",
        "content-type: text/plain\r\n",
        "content-type: application/jsonx\r\n",
        "content-type: application/json\r\ncontent-encoding: br\r\n",
        "content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-encoding: gzip\r\n",
    ] {
        let answer =
            exchange(serve().await, &with_key("POST", "/v1/echo", headers, br#"{"user":"a"}"#)).await;
        assert_eq!((answer.status, &*answer.code()), (415, "unsupported_media_type"), "{headers}");
    }
    for headers in [
        "content-type: Application/Merge-Patch+JSON\r\n",
        "content-type: application/json\r\ncontent-encoding: identity\r\n",
    ] {
        let answer =
            exchange(serve().await, &with_key("POST", "/v1/echo", headers, br#"{"user":"a"}"#)).await;
        assert_eq!(answer.status, 200, "{headers}");
    }
}

#[tokio::test]
async fn a_client_that_sends_all_of_a_refused_body_sees_the_answer() {
    let large = vec![b' '; 8 * 1024 * 1024];
    let json = "content-type: application/json\r\n";
    let no_key = String::from_utf8(with_key("POST", "/v1/echo", json, b"")).unwrap();
    let no_key = no_key
        .replace(KEY, "wrong")
        .replace("content-length: 0", &format!("content-length: {}", large.len()));
    for (request, status, code) in [
        (with_key("POST", "/v1/echo", json, &large), 413, "payload_too_large"),
        (with_key("POST", "/v1/echo", "", &large), 415, "unsupported_media_type"),
        (with_key("POST", "/v1/nowhere", json, &large), 404, "not_found"),
        (with_key("PUT", "/v1/echo", json, &large), 405, "method_not_allowed"),
        (with_key("POST", "/v1/unread", json, &large), 409, "conflict"),
        ([no_key.as_bytes(), &large].concat(), 401, "unauthorized"),
    ] {
        let address = serve().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&request).await.expect("the whole body must be taken");
        let answer = read_answer(&mut stream).await;
        assert_eq!((answer.status, &*answer.code()), (status, code));
        // The connection is good for the next request.
        stream.write_all(&with_key("GET", "/healthz", "", b"")).await.unwrap();
        assert_eq!(read_answer(&mut stream).await.body, "ok");
    }
}

#[tokio::test]
async fn a_client_that_waits_for_100_continue_is_refused_before_it_sends() {
    let request =
        with_key("POST", "/v1/echo", "content-type: application/json\r\nexpect: 100-continue\r\n", b"");
    let request = String::from_utf8(request).unwrap().replace("content-length: 0", "content-length: 9000000");
    let answer = exchange(serve().await, request.as_bytes()).await;
    assert_eq!((answer.status, &*answer.code()), (413, "payload_too_large"));
}

#[tokio::test]
async fn the_drain_of_a_body_that_never_ends_is_bounded() {
    let request = with_key("POST", "/v1/nowhere", "", b"");
    let request = String::from_utf8(request).unwrap().replace("content-length: 0", "content-length: 50");
    let started = std::time::Instant::now();
    let answer = exchange(serve().await, request.as_bytes()).await;
    assert_eq!((answer.status, answer.header("connection")), (404, Some("close")));
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn authentication_comes_before_everything_else() {
    for (method, path, headers) in [
        ("GET", "/nowhere", ""),
        ("DELETE", "/v1/echo", ""),
        ("POST", "/v1/echo", "content-type: text/plain\r\n"),
        ("GET", "/v1/users/a%20b", ""),
        ("GET", "/docsx", ""),
    ] {
        let request = String::from_utf8(with_key(method, path, headers, b"x")).unwrap().replace(KEY, "x");
        let answer = exchange(serve().await, request.as_bytes()).await;
        assert_eq!((answer.status, &*answer.code()), (401, "unauthorized"), "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    for path in ["/healthz", "/docs/errors", "/docs/"] {
        let answer =
            exchange(serve().await, format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await;
        assert_eq!(answer.status, 200, "{path}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let missing = ask("GET", "/v1/nowhere?x=1").await;
    assert_eq!((missing.status, &*missing.code()), (404, "not_found"));
    let document = missing.json();
    assert_eq!(document["instance"], "/v1/nowhere");
    assert_eq!(document["type"], "/docs/errors#not_found");
    assert_eq!(document["request_id"].as_str(), missing.header("x-request-id"));
    let method = ask("PUT", "/v1/echo").await;
    assert_eq!((method.status, &*method.code()), (405, "method_not_allowed"));
    assert_eq!(method.header("allow"), Some("POST"));
    let listed = ask("DELETE", "/v1/limit").await;
    assert_eq!((&*listed.code(), listed.header("allow")), ("method_not_allowed", Some("GET,HEAD")));
    assert_eq!(ask("GET", "/v1/unlisted").await.code(), "forbidden", "what no table lists is refused");
}

#[tokio::test]
async fn request_ids_are_taken_when_well_formed() {
    for (sent, taken) in
        [("abc-123", true), (&*"x".repeat(128), true), ("a b", false), (&*"x".repeat(129), false)]
    {
        let headers = format!("x-request-id: {sent}\r\n");
        let answer = exchange(serve().await, &with_key("GET", "/v1/nowhere", &headers, b"")).await;
        assert_eq!(answer.header("x-request-id") == Some(sent), taken, "{sent}");
    }
}

#[tokio::test]
async fn failures_tell_the_caller_no_cause() {
    for (path, status, code) in
        [("/v1/fails", 500, "internal"), ("/v1/panics", 500, "internal"), ("/v1/sleeps", 503, "timeout")]
    {
        let answer = ask("GET", path).await;
        assert_eq!((answer.status, &*answer.code()), (status, code), "{path}");
        assert!(!answer.body.contains("cause that") && !answer.body.contains("secret"), "{}", answer.body);
    }
}

#[tokio::test]
async fn parameters_of_query_and_path_are_checked() {
    assert_eq!(ask("GET", "/v1/limit?limit=3").await.body, "Some(3)");
    for (query, code, pointer) in [
        ("limt=3", "unknown_key", "/limt"),
        ("limit=x", "invalid_value", "/limit"),
        ("limit=1&limit=2", "duplicate_key", "/limit"),
    ] {
        let answer = ask("GET", &format!("/v1/limit?{query}")).await;
        assert_eq!((answer.status, &*answer.code()), (422, "invalid_request"), "{query}");
        assert_eq!(answer.error(), (code.to_owned(), pointer.to_owned()), "{query}");
    }
    assert_eq!(ask("GET", "/v1/users/a%40b").await.body, "a@b");
    for path in ["/v1/users/a%20b", "/v1/users/%ff", &format!("/v1/users/{}", "x".repeat(129))] {
        let answer = ask("GET", path).await;
        assert_eq!((answer.status, &*answer.code()), (422, Code::InvalidId.as_str()), "{path}");
    }
}

#[tokio::test]
async fn the_api_browser_needs_nothing_from_outside() {
    let browser = exchange(serve().await, b"GET /docs/ HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(
        !browser.body.contains("src=\"http") && !browser.body.contains("href=\"http"),
        "{}",
        browser.body
    );
    let start =
        exchange(serve().await, b"GET /docs/swagger-initializer.js HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(start.body.contains("/openapi.json"), "{}", start.body);
}

#[test]
fn the_published_shape_of_a_problem_is_the_one_that_is_sent() {
    let schema =
        serde_json::to_value(<problem::ProblemDocument<'_> as utoipa::PartialSchema>::schema()).unwrap();
    let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let problem = Problem::new(Code::Conflict, "x").with_errors(vec![FieldError::new("/a", "b", "c")]);
    let sent = serde_json::to_value(problem.document(Some("/x"), Some("y"))).unwrap();
    assert_eq!(fields, sent.as_object().unwrap().keys().collect::<Vec<_>>());
    assert_eq!(schema["required"], serde_json::json!(["type", "title", "status", "detail", "code"]));
    assert_eq!(schema["properties"]["errors"]["items"]["$ref"], "#/components/schemas/FieldError");
}
