//! The client against real servers on the loopback interface.

mod addresses;
mod batches;
mod faults;
mod hedging;
mod probing;

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap as Headers, HeaderName, HeaderValue, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde_json::{Map, Value, json};
use url::Url;

use super::*;
use crate::core::policy::DialectChoice;
use crate::rerank::request::Ranked;

const GOOD: &str = r#"{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.2}]}"#;
const BEST_IS_SECOND: [Ranked; 2] =
    [Ranked { index: 1, score: 0.9, raw: 0.9 }, Ranked { index: 0, score: 0.2, raw: 0.2 }];

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

/// A query whose dialect and path are known.
fn ask(endpoint: &str) -> RerankRequest {
    let mut endpoint = Url::parse(endpoint).unwrap();
    if endpoint.path() == "/" {
        endpoint.set_path("/v1/rerank");
    }
    let documents = vec!["send mail".to_owned(), "weather forecast".to_owned()];
    RerankRequest {
        dialect: DialectChoice::Fixed(Dialect::Cohere),
        ..RerankRequest::new(endpoint, "weather tomorrow".to_owned(), documents, Duration::from_secs(10))
    }
}

/// A query of which nothing is known but the URL.
fn ask_auto(endpoint: &str) -> RerankRequest {
    RerankRequest { endpoint: Url::parse(endpoint).unwrap(), dialect: DialectChoice::Auto, ..ask(endpoint) }
}

async fn rerank(request: RerankRequest) -> Result<Ranking, RerankFault> {
    client(private()).rerank(request).await.map_err(|failed| failed.fault)
}

async fn rows(request: RerankRequest) -> Result<Vec<Ranked>, RerankFault> {
    rerank(request).await.map(|ranking| ranking.rows)
}

/// A request as a server saw it.
struct Seen {
    path: String,
    headers: Headers,
    body: Value,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The texts under a key, be they strings or objects.
    fn texts(&self, key: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().or(value["text"].as_str()).unwrap().to_owned();
        self.body[key].as_array().unwrap().iter().map(text).collect()
    }
}

struct Reply(u16, Vec<(&'static str, &'static str)>, String);

fn reply(status: u16, body: impl Into<String>) -> Reply {
    Reply(status, Vec::new(), body.into())
}

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    fn calls(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|seen| seen.path.clone()).collect()
    }
}

async fn listen(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    format!("http://{address}")
}

/// A server that answers any request by a rule that knows the request and how many came before.
async fn serve(rule: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Server {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let (log, rule) = (Arc::clone(&seen), Arc::new(rule));
    let handler = move |request: Request| {
        let (log, rule) = (Arc::clone(&log), Arc::clone(&rule));
        async move {
            let (head, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 10_000_000).await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let seen = Seen { path: head.uri.to_string(), headers: head.headers, body };
            let mut log = log.lock().unwrap();
            let Reply(status, named, body) = rule(&seen, log.len());
            log.push(seen);
            let mut headers = Headers::new();
            for (name, value) in named {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            (StatusCode::from_u16(status).unwrap(), headers, body)
        }
    };
    Server { url: listen(Router::new().fallback(handler)).await, seen }
}

/// A server that gives the answers one after the other; the last one stays.
async fn serve_in_turn(answers: Vec<(u16, &'static str)>) -> Server {
    serve(move |_, turn| {
        let (status, body) = answers[turn.min(answers.len() - 1)];
        reply(status, body)
    })
    .await
}

/// Rows for documents, those about weather on top.
fn ranked_rows(documents: &[String], score_key: &str) -> Value {
    let score = |text: &String| if text.contains("weather") { 0.9 } else { 0.1 };
    let row = |(index, text)| json!({ "index": index, score_key: score(text) });
    documents.iter().enumerate().map(row).collect::<Vec<_>>().into()
}

#[tokio::test]
async fn a_good_answer_is_a_ranking() {
    let server = serve_in_turn(vec![(200, GOOD)]).await;
    let ranking = rerank(ask(&server.url)).await.unwrap();
    assert_eq!(
        ranking,
        Ranking {
            rows: BEST_IS_SECOND.to_vec(),
            dialect: Dialect::Cohere,
            notes: Vec::new(),
            learned_limit: None,
            detected: None
        }
    );
}

#[tokio::test]
async fn the_request_carries_key_model_texts_and_extras() {
    let server = serve_in_turn(vec![(200, GOOD)]).await;
    let endpoint = format!("{}/api/v2/?version=3", server.url);
    let request = RerankRequest {
        model: Some("rerank-v3.5".to_owned()),
        api_key: Some(" secret ".to_owned().into()),
        extra_headers: vec![("X-Project".to_owned(), "p".to_owned())],
        extra_body: Map::from_iter([("api_version".to_owned(), json!(2))]),
        instruction: Some("unknown hosts may refuse it".to_owned()),
        ..ask(&endpoint)
    };
    rerank(request).await.unwrap();
    let request = RerankRequest {
        model: Some("m".to_owned()),
        omit_model: true,
        api_key: Some(" ".to_owned().into()),
        ..ask(&endpoint)
    };
    rerank(request).await.unwrap();

    let seen = server.seen.lock().unwrap();
    assert_eq!(seen[0].path, "/api/v2/rerank?version=3");
    assert_eq!(seen[0].header("authorization"), Some("Bearer secret"));
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(seen[0].header("x-project"), Some("p"));
    assert_eq!(
        seen[0].body,
        json!({"model": "rerank-v3.5", "query": "weather tomorrow",
               "documents": ["send mail", "weather forecast"], "top_n": 2, "api_version": 2})
    );
    assert_eq!(seen[1].header("authorization"), None, "a blank key sends no header");
    assert_eq!(seen[1].body.get("model"), None);
}

#[tokio::test]
async fn blank_documents_are_not_sent_and_indexes_still_fit() {
    let server = serve_in_turn(vec![(200, GOOD)]).await;
    let documents = ["", "send mail", " \n", "weather forecast"].map(str::to_owned).to_vec();
    let ranked = rows(RerankRequest { documents, ..ask(&server.url) }).await.unwrap();
    assert_eq!(ranked.iter().map(|entry| entry.index).collect::<Vec<_>>(), [3, 1]);
    assert_eq!(server.seen.lock().unwrap()[0].texts("documents"), ["send mail", "weather forecast"]);

    let documents = vec![String::new()];
    assert_eq!(rows(RerankRequest { documents, ..ask(&server.url) }).await, Ok(Vec::new()));
    let blank = RerankRequest { query: " ".to_owned(), ..ask(&server.url) };
    assert_eq!(rows(blank).await, Err(RerankFault::Unsendable(Unsendable::BlankQuery)));
    assert_eq!(server.calls(), 1, "nothing is asked about nothing");
}

#[tokio::test]
async fn an_answer_is_never_longer_than_top_n() {
    let server = serve_in_turn(vec![(200, GOOD)]).await;
    for top_n in [0, 1] {
        assert_eq!(rows(RerankRequest { top_n, ..ask(&server.url) }).await, Ok(BEST_IS_SECOND[..1].to_vec()));
    }
    assert_eq!(server.seen.lock().unwrap()[0].body["top_n"], 1, "some servers refuse 0");
}

#[tokio::test]
async fn logits_become_scores_and_stay_visible() {
    let server =
        serve_in_turn(vec![(200, r#"{"rankings":[{"index":1,"logit":-1.5},{"index":0,"logit":-9}]}"#)]).await;
    let ranked = rows(ask(&server.url)).await.unwrap();
    assert!((ranked[0].score - 0.182_425).abs() < 1e-5 && (ranked[0].raw + 1.5).abs() < f64::EPSILON);
}

#[tokio::test]
async fn every_dialect_is_spoken() {
    for dialect in Dialect::ALL {
        let server = serve(move |seen, _| {
            let rows = |key, score| ranked_rows(&seen.texts(key), score);
            let answer = match dialect {
                Dialect::Cohere => json!({ "results": rows("documents", "relevance_score") }),
                Dialect::Tei => rows("texts", "score"),
                Dialect::Dashscope => {
                    let documents = seen.body["input"]["documents"].as_array().unwrap();
                    let texts: Vec<String> =
                        documents.iter().map(|text| text.as_str().unwrap().to_owned()).collect();
                    json!({ "output": { "results": ranked_rows(&texts, "relevance_score") } })
                }
                Dialect::Nim => json!({ "rankings": rows("passages", "logit") }),
                Dialect::Voyage => json!({ "data": rows("documents", "relevance_score") }),
                Dialect::Mixedbread => json!({ "data": rows("input", "score") }),
                Dialect::Pinecone => json!({ "data": rows("documents", "score") }),
                Dialect::Elastic => json!({ "rerank": rows("input", "relevance_score") }),
                // The query's vector is the first one.
                Dialect::Openai => {
                    let vectors = ranked_rows(&seen.texts("input")[1..], "score");
                    let of = |index: usize| {
                        let rows = vectors.as_array().unwrap();
                        let row = rows.iter().find(|row| row["index"] == index).unwrap();
                        let score = row["score"].as_f64().unwrap();
                        json!({ "index": index + 1, "embedding": [score, (1.0 - score * score).sqrt()] })
                    };
                    let mut data = vec![json!({ "index": 0, "embedding": [1.0, 0.0] })];
                    data.extend((0..vectors.as_array().unwrap().len()).map(of));
                    json!({ "data": data })
                }
            };
            reply(200, answer.to_string())
        })
        .await;
        let endpoint = format!("{}/x/rerank", server.url);
        let request = RerankRequest { dialect: DialectChoice::Fixed(dialect), ..ask(&endpoint) };
        let ranking = rerank(request).await.unwrap();
        assert_eq!(ranking.dialect, dialect);
        assert_eq!(ranking.rows[0].index, 1, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_known_provider_is_asked_in_its_own_way_at_once() {
    let answer = r#"{"results":[{"index":1,"score":0.9},{"index":0,"score":0.2}]}"#;
    let key = || Some("k".to_owned().into());
    for (typed, model, path, auth, body) in [
        (
            "dashscope.aliyuncs.com/compatible-mode/v1/rerank",
            "qwen3-reranker",
            "/compatible-api/v1/reranks",
            ("authorization", "Bearer k"),
            json!({"model": "qwen3-rerank", "query": "q", "documents": ["a", "b"], "top_n": 2, "instruct": "i"}),
        ),
        (
            "dashscope.aliyuncs.com/compatible-mode/v1",
            "gte-rerank-v2",
            "/api/v1/services/rerank/text-rerank/text-rerank",
            ("authorization", "Bearer k"),
            json!({"model": "gte-rerank-v2", "input": {"query": "q", "documents": ["a", "b"]},
                   "parameters": {"return_documents": false, "top_n": 2, "instruct": "i"}}),
        ),
        (
            "api.cohere.com/v2",
            "rerank-v3.5",
            "/v2/rerank",
            ("authorization", "Bearer k"),
            json!({"model": "rerank-v3.5", "query": "q", "documents": ["a", "b"], "top_n": 2}),
        ),
        (
            "api.voyageai.com",
            "rerank-2.5",
            "/v1/rerank",
            ("authorization", "Bearer k"),
            json!({"model": "rerank-2.5", "query": "i\nQuery: q", "documents": ["a", "b"], "top_k": 2}),
        ),
        (
            "api.pinecone.io",
            "bge-reranker-v2-m3",
            "/rerank",
            ("api-key", "k"),
            json!({"model": "bge-reranker-v2-m3", "query": "q", "documents": [{"text": "a"}, {"text": "b"}],
                   "top_n": 2, "parameters": {"truncate": "END"}}),
        ),
        (
            "es.test/_inference/rerank/mine",
            "ignored",
            "/_inference/rerank/mine",
            ("authorization", "ApiKey k"),
            json!({"query": "q", "input": ["a", "b"], "top_n": 2}),
        ),
    ] {
        let server = serve_in_turn(vec![(200, answer)]).await;
        let port = Url::parse(&server.url).unwrap().port().unwrap();
        let (host, rest) = typed.split_once('/').unwrap_or((typed, ""));
        let request = RerankRequest {
            dialect: DialectChoice::Auto,
            endpoint: Url::parse(&format!("http://{host}:{port}/{rest}")).unwrap(),
            model: Some(model.to_owned()),
            api_key: key(),
            instruction: Some("i".to_owned()),
            query: "q".to_owned(),
            documents: vec!["a".to_owned(), "b".to_owned()],
            ..ask(&server.url)
        };
        let names = Names(vec!["127.0.0.1".parse().unwrap()]);
        let ranking = client_with(private(), names).rerank(request).await.unwrap();
        assert_eq!((ranking.rows[0].index, ranking.detected), (1, None), "{typed}");
        assert_eq!(!ranking.notes.is_empty(), typed.contains("compatible-mode"), "{:?}", ranking.notes);
        let seen = server.seen.lock().unwrap();
        assert_eq!((seen.len(), seen[0].path.as_str()), (1, path), "{typed}");
        assert_eq!(seen[0].header(auth.0), Some(auth.1), "{typed}");
        assert_eq!(seen[0].body, body, "{typed}");
    }
}
