//! The client against real servers on the loopback interface.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use axum::routing::{any, post};
use futures_util::stream;
use reqwest::dns::{Addrs, Name, Resolving};
use serde_json::{Value, json};

use super::*;

const GOOD: &str = r#"{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.2}]}"#;
const BEST_IS_SECOND: [Ranked; 2] = [Ranked { index: 1, score: 0.9 }, Ranked { index: 0, score: 0.2 }];

/// Every name has the given addresses.
#[derive(Clone)]
struct Names(Vec<IpAddr>);

impl Resolve for Names {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Vec<_> = self.0.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
        Box::pin(async move { Ok(Box::new(addresses.into_iter()) as Addrs) })
    }
}

fn private() -> AddressPolicy {
    AddressPolicy { allow_private: true, allowed_hosts: Vec::new() }
}

fn client(policy: AddressPolicy) -> HttpReranker {
    client_with(policy, SystemLookup)
}

fn client_with(policy: AddressPolicy, lookup: impl Resolve + 'static) -> HttpReranker {
    // A second installation in the same process is refused, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let lookup: Arc<dyn Resolve> = Arc::new(lookup);
    HttpReranker::with_lookup(policy, &lookup).unwrap()
}

fn ask(endpoint: &str) -> RerankRequest {
    RerankRequest {
        endpoint: Url::parse(endpoint).unwrap(),
        model: None,
        api_key: None,
        query: "weather tomorrow".to_owned(),
        documents: vec!["send mail".to_owned(), "weather forecast".to_owned()],
        top_n: 2,
        deadline: Duration::from_secs(10),
    }
}

async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    format!("http://{address}")
}

/// A server that gives the answers one after the other and counts; the last one stays.
async fn serve_in_turn(answers: Vec<(StatusCode, &'static str)>) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let app = Router::new().route(
        "/v1/rerank",
        post(move || async move {
            let turn = counter.fetch_add(1, Ordering::SeqCst);
            answers[turn.min(answers.len() - 1)]
        }),
    );
    (serve(app).await, asked)
}

async fn serve_one(status: StatusCode, answer: &'static str) -> String {
    serve_in_turn(vec![(status, answer)]).await.0
}

/// A bare TCP server that hands each connection, with its request read, to the next of the actions.
fn serve_raw(actions: Vec<fn(std::net::TcpStream)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for action in actions {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            // The body of `ask` ends with the value of `top_n`.
            while !request.ends_with(b"\"top_n\":2}") {
                let mut chunk = [0; 1024];
                let read = stream.read(&mut chunk).unwrap();
                request.extend_from_slice(&chunk[..read]);
            }
            action(stream);
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_good_answer_is_a_ranking() {
    let endpoint = serve_one(StatusCode::OK, GOOD).await;
    assert_eq!(client(private()).rerank(ask(&endpoint)).await, Ok(BEST_IS_SECOND.to_vec()));
}

#[tokio::test]
async fn the_request_carries_key_model_and_texts() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let app = Router::new().route(
        "/api/v2/rerank",
        post(move |request: Request| async move {
            let (head, body) = request.into_parts();
            let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
            let body = axum::body::to_bytes(body, 10_000).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            log.lock().unwrap().push((
                head.uri.to_string(),
                header("authorization"),
                header("content-type"),
                body,
            ));
            GOOD
        }),
    );
    let endpoint = format!("{}/api/v2/?version=3", serve(app).await);
    let client = client(private());
    let request = RerankRequest {
        model: Some("rerank-v3.5".to_owned()),
        api_key: Some(" secret ".to_owned().into()),
        ..ask(&endpoint)
    };
    client.rerank(request).await.unwrap();
    client.rerank(RerankRequest { api_key: Some(" ".to_owned().into()), ..ask(&endpoint) }).await.unwrap();

    let seen = seen.lock().unwrap();
    let (uri, authorization, content_type, body) = &seen[0];
    assert_eq!(uri, "/api/v2/rerank?version=3");
    assert_eq!(authorization.as_deref(), Some("Bearer secret"));
    assert_eq!(content_type.as_deref(), Some("application/json"));
    assert_eq!(
        *body,
        json!({"model": "rerank-v3.5", "query": "weather tomorrow",
               "documents": ["send mail", "weather forecast"], "top_n": 2})
    );
    assert_eq!(seen[1].1, None, "a blank key sends no header");
}

#[tokio::test]
async fn blank_documents_are_not_sent_and_indexes_still_fit() {
    let endpoint = serve_one(StatusCode::OK, GOOD).await;
    let documents = ["", "send mail", " \n", "weather forecast"].map(str::to_owned).to_vec();
    let ranked = client(private()).rerank(RerankRequest { documents, ..ask(&endpoint) }).await.unwrap();
    assert_eq!(ranked.iter().map(|entry| entry.index).collect::<Vec<_>>(), [3, 1]);

    let documents = vec![String::new()];
    let ranked = client(private()).rerank(RerankRequest { documents, ..ask(&endpoint) }).await;
    assert_eq!(ranked, Ok(Vec::new()));
}

#[tokio::test]
async fn an_answer_is_never_longer_than_top_n() {
    let endpoint = serve_one(StatusCode::OK, GOOD).await;
    for top_n in [0, 1] {
        let ranked = client(private()).rerank(RerankRequest { top_n, ..ask(&endpoint) }).await;
        assert_eq!(ranked, Ok(BEST_IS_SECOND[..1].to_vec()));
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_a_timeout() {
    let app = Router::new().route("/v1/rerank", post(std::future::pending::<&'static str>));
    let endpoint = serve(app).await;
    let request = RerankRequest { deadline: Duration::from_millis(150), ..ask(&endpoint) };
    assert_eq!(client(private()).rerank(request).await, Err(RerankFault::Timeout));
}

#[tokio::test]
async fn a_body_that_never_ends_is_a_timeout() {
    let app = Router::new().route(
        "/v1/rerank",
        post(|| async { Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()) }),
    );
    let endpoint = serve(app).await;
    let request = RerankRequest { deadline: Duration::from_millis(150), ..ask(&endpoint) };
    assert_eq!(client(private()).rerank(request).await, Err(RerankFault::Timeout));
}

#[tokio::test]
async fn passing_refusals_are_tried_a_second_time() {
    for status in [408, 425, 429, 500, 502, 503, 504, 529] {
        let status = StatusCode::from_u16(status).unwrap();
        let (endpoint, asked) = serve_in_turn(vec![(status, "busy"), (StatusCode::OK, GOOD)]).await;
        assert_eq!(client(private()).rerank(ask(&endpoint)).await, Ok(BEST_IS_SECOND.to_vec()), "{status}");
        assert_eq!(asked.load(Ordering::SeqCst), 2, "{status}");
    }
}

#[tokio::test]
async fn a_third_time_is_not_tried() {
    let (endpoint, asked) = serve_in_turn(vec![(StatusCode::INTERNAL_SERVER_ERROR, "broken")]).await;
    assert_eq!(client(private()).rerank(ask(&endpoint)).await, Err(RerankFault::Refused { status: 500 }));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn lasting_refusals_are_not_tried_again() {
    for (status, reason) in
        [(400, "http_error"), (401, "unauthorized"), (403, "unauthorized"), (404, "http_error")]
    {
        let refusal = StatusCode::from_u16(status).unwrap();
        let (endpoint, asked) = serve_in_turn(vec![(refusal, GOOD)]).await;
        let fault = client(private()).rerank(ask(&endpoint)).await.unwrap_err();
        assert_eq!(fault, RerankFault::Refused { status });
        assert_eq!(fault.reason(), reason);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_pause_that_the_deadline_has_no_room_for_ends_the_call() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let app = Router::new().route(
        "/v1/rerank",
        post(move || async move {
            counter.fetch_add(1, Ordering::SeqCst);
            (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "60")], "slow down")
        }),
    );
    let fault = client(private()).rerank(ask(&serve(app).await)).await.unwrap_err();
    assert_eq!(fault.reason(), "rate_limited");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_connection_that_breaks_is_tried_again() {
    let whole = |mut stream: std::net::TcpStream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{GOOD}", GOOD.len()).unwrap();
    };
    let half = |mut stream: std::net::TcpStream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{{\"results\":").unwrap();
    };
    for first in [drop as fn(std::net::TcpStream), half] {
        let endpoint = serve_raw(vec![first, whole]);
        assert_eq!(client(private()).rerank(ask(&endpoint)).await, Ok(BEST_IS_SECOND.to_vec()));
    }
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    // Bound but never listening: the port stays ours and every connection is refused.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = format!("http://{}", socket.local_addr().unwrap());
    assert_eq!(client(private()).rerank(ask(&endpoint)).await, Err(RerankFault::Unreachable));
}

#[tokio::test]
async fn answers_without_a_ranking_are_malformed() {
    for answer in ["<html><body>Sign in</body></html>", r#"{"scores":[1,2]}"#, r#"{"results":[]}"#, ""] {
        let (endpoint, asked) = serve_in_turn(vec![(StatusCode::OK, answer)]).await;
        assert_eq!(client(private()).rerank(ask(&endpoint)).await, Err(RerankFault::Malformed), "{answer}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "asking again would give the same");
    }
}

#[tokio::test]
async fn a_huge_answer_is_given_up() {
    let announced = || async { vec![b' '; parse::MAX_ANSWER_BYTES + 1] };
    let endless = || async {
        let chunk = Bytes::from_static(&[b' '; 65_536]);
        Body::from_stream(stream::repeat(Ok::<_, std::convert::Infallible>(chunk)))
    };
    let endpoint = serve(
        Router::new().route("/announced/rerank", post(announced)).route("/endless/rerank", post(endless)),
    )
    .await;
    for path in ["announced", "endless"] {
        let answer = client(private()).rerank(ask(&format!("{endpoint}/{path}/rerank"))).await;
        assert_eq!(answer, Err(RerankFault::TooLarge), "{path}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let followed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&followed);
    let elsewhere = move || async move {
        counter.fetch_add(1, Ordering::SeqCst);
        GOOD
    };
    let app = Router::new()
        .route("/v1/rerank", post(|| async { Redirect::temporary("/elsewhere").into_response() }))
        .route("/elsewhere", any(elsewhere));
    let fault = client(private()).rerank(ask(&serve(app).await)).await.unwrap_err();
    assert_eq!(fault, RerankFault::Refused { status: 307 });
    assert_eq!(fault.reason(), "redirected");
    assert_eq!(followed.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_private_address_is_not_called() {
    let (endpoint, asked) = serve_in_turn(vec![(StatusCode::OK, GOOD)]).await;
    let strict = client(AddressPolicy::default());
    assert_eq!(strict.rerank(ask(&endpoint)).await, Err(RerankFault::Forbidden));
    let secure = endpoint.replace("http:", "https:");
    assert_eq!(strict.rerank(ask(&secure)).await, Err(RerankFault::Forbidden));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_is_called_at_the_checked_addresses() {
    let endpoint = serve_one(StatusCode::OK, GOOD).await.replace("127.0.0.1", "rerank.test");
    let names = Names(vec!["127.0.0.1".parse().unwrap()]);
    let named = AddressPolicy { allow_private: false, allowed_hosts: vec!["rerank.test".to_owned()] };
    for policy in [private(), named] {
        assert_eq!(
            client_with(policy, names.clone()).rerank(ask(&endpoint)).await,
            Ok(BEST_IS_SECOND.to_vec())
        );
    }
}

#[tokio::test]
async fn one_bad_address_of_a_name_refuses_it() {
    let lookup = |addresses: &[&str]| Names(addresses.iter().map(|ip| ip.parse().unwrap()).collect());
    let named = AddressPolicy { allow_private: false, allowed_hosts: vec!["rerank.test".to_owned()] };
    for (policy, endpoint, addresses) in [
        (AddressPolicy::default(), "https://rerank.test", vec!["127.0.0.1"]),
        (AddressPolicy::default(), "https://rerank.test", vec!["8.8.8.8", "10.0.0.1"]),
        (AddressPolicy::default(), "https://rerank.test", vec!["64:ff9b::a9fe:a9fe"]),
        (private(), "https://rerank.test", vec!["127.0.0.1", "169.254.169.254"]),
        (private(), "http://rerank.test", vec!["8.8.8.8"]),
        (named, "https://rerank.test", vec!["169.254.169.254"]),
    ] {
        let answer = client_with(policy, lookup(&addresses)).rerank(ask(endpoint)).await;
        assert_eq!(answer, Err(RerankFault::Forbidden), "{endpoint} at {addresses:?}");
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_unreachable() {
    let answer = client_with(private(), Names(Vec::new())).rerank(ask("https://rerank.test")).await;
    assert_eq!(answer, Err(RerankFault::Unreachable));
}

#[tokio::test]
async fn a_key_that_no_header_can_carry_is_never_sent() {
    let (endpoint, asked) = serve_in_turn(vec![(StatusCode::OK, GOOD)]).await;
    let request = RerankRequest { api_key: Some("a\r\nx: b".to_owned().into()), ..ask(&endpoint) };
    assert_eq!(client(private()).rerank(request).await, Err(RerankFault::Unsendable));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_deadline_of_any_length_is_kept() {
    let endpoint = serve_one(StatusCode::OK, GOOD).await;
    let request = RerankRequest { deadline: Duration::MAX, ..ask(&endpoint) };
    assert_eq!(client(private()).rerank(request).await, Ok(BEST_IS_SECOND.to_vec()));
}

/// Runs the test of the good answer in a process of its own whose environment names a proxy.
#[test]
fn proxies_of_the_environment_are_ignored() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let module = module_path!().split_once("::").unwrap().1;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::a_good_answer_is_a_ranking")]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, &url);
    }
    let output = command.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("1 passed"), "{printed}");
    assert_eq!(proxy.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
