//! Rerank endpoints on loopback that behave as a test says and remember what they were sent.
//!
//! Owns the server and how texts are scored; knows no setting of the service.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response, header};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

/// What the endpoint was sent.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    /// With the query string.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    /// Null where there was none.
    pub(super) body: Value,
}

impl Call {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The texts to rank, in whatever dialect.
    pub(super) fn documents(&self) -> Vec<String> {
        let body = &self.body;
        let places = [
            &body["documents"],
            &body["texts"],
            &body["passages"],
            &body["input"]["documents"],
            &body["input"],
        ];
        let list = places.into_iter().find_map(Value::as_array).unwrap();
        let text =
            |document: &Value| document.as_str().or_else(|| document["text"].as_str()).unwrap().to_owned();
        list.iter().map(text).collect()
    }

    /// Whether the service only finds out how to ask.
    pub(super) fn is_probe(&self) -> bool {
        self.method == Method::POST && self.documents().iter().any(|text| text.contains("weather forecast"))
    }

    /// Position and score of each text, best first: what speaks of pigeons, then the others as they came.
    pub(super) fn scores(&self) -> Vec<(usize, f64)> {
        let fits = |text: &str| ["pigeon", "weather"].iter().any(|word| text.contains(word));
        let documents = self.documents();
        let texts = documents.iter().map(|text| text.to_lowercase()).enumerate();
        let mut scores: Vec<(usize, f64)> =
            texts.map(|(at, text)| (at, if fits(&text) { 0.9 } else { 0.2 / (at + 1) as f64 })).collect();
        scores.sort_by(|a, b| b.1.total_cmp(&a.1));
        scores
    }

    /// The scores as Cohere gives them.
    pub(super) fn rows(&self) -> Vec<Value> {
        let row = |(at, score)| json!({"index": at, "relevance_score": score});
        self.scores().into_iter().map(row).collect()
    }

    /// A whole good answer.
    pub(super) fn ranked(&self) -> Response<Body> {
        json_reply(200, &json!({"results": self.rows()}))
    }
}

pub(super) fn reply(status: u16, content_type: &str, body: impl Into<Body>) -> Response<Body> {
    let builder = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
    builder.body(body.into()).unwrap()
}

pub(super) fn json_reply(status: u16, body: &Value) -> Response<Body> {
    reply(status, "application/json", body.to_string())
}

type Behaviour = dyn Fn(Call, usize) -> BoxFuture<'static, Response<Body>> + Send + Sync;

struct Server {
    behaviour: Box<Behaviour>,
    seen: Arc<Mutex<Vec<Call>>>,
    count: AtomicUsize,
}

/// An endpoint that answers until the test ends.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Call>>>,
}

impl Endpoint {
    /// Ranks well.
    pub(super) async fn good() -> Self {
        Self::with(|call, _| async move { call.ranked() }).await
    }

    /// Behaves as the function says, which is told the call and how many were there before.
    pub(super) async fn with<F, R>(behaviour: F) -> Self
    where
        F: Fn(Call, usize) -> R + Send + Sync + 'static,
        R: Future<Output = Response<Body>> + Send + 'static,
    {
        let seen = Arc::<Mutex<Vec<Call>>>::default();
        let behaviour: Box<Behaviour> = Box::new(move |call, before| Box::pin(behaviour(call, before)));
        let server = Arc::new(Server { behaviour, seen: Arc::clone(&seen), count: AtomicUsize::new(0) });
        let router = Router::new().fallback(answer).with_state(server);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, seen }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The calls since the last time.
    pub(super) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// How many [`Endpoint::take`] would give.
    pub(super) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The calls to one path.
    pub(super) fn count_at(&self, path: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|call| call.path == path).count()
    }
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 64 << 20).await.unwrap();
    let path = head.uri.path_and_query().unwrap().as_str().to_owned();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    let call = Call { method: head.method, path, headers: head.headers, body };
    server.seen.lock().unwrap().push(call.clone());
    let before = server.count.fetch_add(1, Ordering::Relaxed);
    (server.behaviour)(call, before).await
}

/// The address of a server that hangs up on everybody once it was sent something.
pub(super) async fn hanging_up() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.read(&mut [0; 1_024]).await);
        }
    });
    address
}

/// An address where nobody listens.
pub(super) async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
