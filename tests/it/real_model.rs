//! Searching with a real model behind the endpoint: the server of `tests/model`, which `tests/run` starts and names in
//! `TOOLRACK_TEST_MODEL_URL`.

use std::env;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::app::{TestApp, User};

/// Requests, and the tool of the committed set that serves each; the model is sure of all of them. Hardly a word
/// of theirs stands in the tool.
const PARAPHRASES: [(&str, &str); 6] = [
    ("Make a zip of the reports folder", "compress_files"),
    ("Make it 21 degrees in the bedroom", "set_thermostat"),
    ("Look for dead links on our homepage", "check_broken_links"),
    ("Keep only the part of the video from 1:20 to 2:05", "cut_video"),
    ("the build is red and I do not know why", "get_workflow_logs"),
    ("I cannot understand what they say in this recording", "transcribe_audio"),
];

/// The vectors are of single precision, and each shape rounds in its own way.
const ROUNDING: f64 = 1e-5;

/// The server's URL. Without one there is nothing to test, unless `tests/run` says that there has to be.
fn model_url() -> Option<String> {
    let url = env::var("TOOLRACK_TEST_MODEL_URL").ok();
    if url.is_none() {
        assert!(
            env::var_os("TOOLRACK_REQUIRE_MODEL").is_none(),
            "TOOLRACK_REQUIRE_MODEL is set, TOOLRACK_TEST_MODEL_URL is not"
        );
        // Past the harness, which keeps what a passing test prints to itself.
        let line = "skipped: no test with the real model, since TOOLRACK_TEST_MODEL_URL is not set; tests/run sets it\n";
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    url
}

fn committed_tools() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quality/tools.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn user_with(app: &TestApp, tools: &[Value], matcher: Value) -> User {
    let user = app.user();
    user.put_catalog(tools).await.ok();
    user.put_config(&json!({"min_catalog_size": 0, "matcher": matcher})).await.ok();
    user
}

/// The matches of a search that the endpoint ranked: name, score, and what the endpoint said.
async fn ranked(user: &User, query: &str) -> Vec<(String, f64, f64)> {
    ranked_as("rerank", user, query).await
}

async fn ranked_as(mode: &str, user: &User, query: &str) -> Vec<(String, f64, f64)> {
    let answer = user.search(json!({"query": query, "limit": 10, "explain": true})).await.ok();
    assert_eq!(
        (&answer["mode"], &answer["degraded"], answer.get("reason")),
        (&json!(mode), &json!(false), None),
        "{query}: {answer}"
    );
    let matches = answer["results"][0]["matches"].as_array().unwrap();
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number: {value} in {answer}"));
    let rows = matches.iter().map(|tool| {
        let name = tool["name"].as_str().unwrap().to_owned();
        (name, number(&tool["score"]), number(&tool["explain"]["endpoint_score"]))
    });
    rows.collect()
}

#[tokio::test]
async fn paraphrases_are_ranked_by_the_model_in_every_dialect() {
    let Some(url) = model_url() else { return };
    let app = TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start().await;
    let tools = committed_tools();
    // More than one batch of TEI's 32, and all of them sent.
    let matcher = |dialect: &str, path: &str| {
        json!({"endpoint": format!("{url}{path}"), "dialect": dialect, "model": "all-MiniLM-L6-v2", "fusion": "off",
            "max_documents": 1_000, "timeout_ms": 60_000})
    };
    // The first as what the others are held against. `/v2` refuses every field that it does not know; `auto` asks, and
    // is led to Cohere's shape by a base, to TEI's by what the server says to Cohere's.
    let cohere = user_with(&app, &tools, matcher("cohere", "/v1/rerank")).await;
    let others = [
        (user_with(&app, &tools, matcher("cohere", "/v2/rerank")).await, "cohere"),
        (user_with(&app, &tools, matcher("auto", "")).await, "cohere"),
        (user_with(&app, &tools, matcher("tei", "")).await, "tei"),
        (user_with(&app, &tools, matcher("auto", "/rerank")).await, "tei"),
    ];
    for (query, right) in PARAPHRASES {
        let expected = ranked(&cohere, query).await;
        assert_eq!(expected.len(), 10, "{query}: {expected:?}");
        assert_eq!(expected[0].0, right, "{query}: {expected:?}");
        for pair in expected.windows(2) {
            assert!(pair[0].2 >= pair[1].2, "{query}: not the order of the model: {expected:?}");
        }
        for (user, shape) in &others {
            let found = ranked(user, query).await;
            assert_eq!(found.len(), expected.len(), "{shape}: {query}: {found:?}");
            for ((name, score, raw), (same, _, cohere)) in found.iter().zip(&expected) {
                assert_eq!(name, same, "{shape}: {query}: {found:?} and {expected:?}");
                assert!((0.0..=1.0).contains(score), "{shape}: {query}: {name} has {score}");
                // What the endpoint said stays what it said: TEI's cosine, Cohere's in 0..1.
                let said = if *shape == "tei" { 2.0 * cohere - 1.0 } else { *cohere };
                assert!((raw - said).abs() < ROUNDING, "{shape}: {query}: {name} has {raw}, not {said}");
            }
        }
    }
}

#[tokio::test]
async fn vectors_rank_paraphrases_as_their_model_does() {
    let Some(url) = model_url() else { return };
    let app = TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true").start().await;
    let tools = committed_tools();
    let model = "all-MiniLM-L6-v2";
    let matcher = json!({"endpoint": format!("{url}/v1/rerank"), "dialect": "cohere", "model": model, "fusion": "off",
        "max_documents": 1_000, "timeout_ms": 60_000});
    let told = user_with(&app, &tools, matcher).await;
    let matcher = json!({"kind": "embedding", "endpoint": format!("{url}/v1"), "model": model, "fusion": "off",
        "max_documents": 1_000, "timeout_ms": 60_000});
    let compared = user_with(&app, &tools, matcher.clone()).await;
    for (query, right) in PARAPHRASES {
        let expected = ranked(&told, query).await;
        let found = ranked_as("embedding", &compared, query).await;
        assert_eq!(found[0].0, right, "{query}: {found:?}");
        for (name, _, cosine) in &found {
            let Some((_, _, said)) = expected.iter().find(|row| row.0 == *name) else { continue };
            // Vectors are kept in 12 bits.
            assert!((2.0 * said - 1.0 - cosine).abs() < 0.002, "{query}: {name} has {cosine}, not {said}");
        }
    }
    let trial = json!({"user": compared.id, "matcher": matcher});
    let answer = app.admin().post("/v1/setup/matcher-test", &trial).await.ok();
    assert_eq!((&answer["ok"], &answer["dialect"]), (&json!(true), &json!("openai")), "{answer}");
    assert!(answer["url"].as_str().unwrap().ends_with("/v1/embeddings"), "{answer}");
    let floor = answer["min_score_proposed"].as_f64().unwrap();
    assert!((0.1..0.9).contains(&floor), "{answer}");
}

/// What the tests above rest on: three APIs that say the same of the same texts, and refuse as their models do.
#[tokio::test]
async fn the_server_speaks_the_shapes_that_it_stands_for() {
    let Some(url) = model_url() else { return };
    // Installed already by another test: that is the same provider.
    drop(rustls::crypto::ring::default_provider().install_default());
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
    let post = async |path: &str, body: Value| {
        let request = http.post(format!("{url}{path}")).body(body.to_string());
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let ok = async |path: &str, body: Value| {
        let (status, text) = post(path, body).await;
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let (query, texts) = ("weather forecast", ["Send an email message", "Get the weather of a city"]);

    let input = json!({"model": "m", "input": [query, texts[0], texts[1]]});
    let vectors: Vec<Vec<f64>> = {
        let answer = ok("/v1/embeddings", input).await;
        let vectors = answer["data"].as_array().unwrap().iter().map(|row| row["embedding"].clone());
        vectors.map(|vector| serde_json::from_value(vector).unwrap()).collect()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosines = [dot(&vectors[0], &vectors[1]), dot(&vectors[0], &vectors[2])];
    assert!((dot(&vectors[0], &vectors[0]) - 1.0).abs() < ROUNDING);
    assert!(cosines[1] > cosines[0] + 0.2, "{cosines:?}");
    let close = |value: &Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value - expected).abs() < ROUNDING, "{value}, not {expected}");
    };

    let tei = ok("/rerank", json!({"query": query, "texts": texts, "truncate": true})).await;
    assert_eq!((&tei[0]["index"], &tei[1]["index"]), (&json!(1), &json!(0)));
    close(&tei[0]["score"], cosines[1]);
    close(&tei[1]["score"], cosines[0]);
    for path in ["/v1/rerank", "/v2/rerank"] {
        let body = json!({"model": "m", "query": query, "documents": texts, "top_n": 1});
        let results = ok(path, body).await["results"].clone();
        assert_eq!((results.as_array().unwrap().len(), &results[0]["index"]), (1, &json!(1)), "{path}");
        close(&results[0]["relevance_score"], f64::midpoint(1.0, cosines[1]));
    }

    for (path, body, status, said) in [
        ("/v1/rerank", json!({"query": query, "documents": ["a", " "]}), 400, "document at index 1"),
        ("/v2/rerank", json!({"query": query, "documents": ["a"]}), 400, "model is required"),
        (
            "/v2/rerank",
            json!({"model": "m", "query": query, "documents": ["a"], "top_k": 1}),
            422,
            "unknown field: parameter 'top_k'",
        ),
        ("/rerank", json!({"query": query, "documents": ["a"]}), 422, "missing field `texts`"),
        (
            "/rerank",
            json!({"query": query, "texts": vec!["a"; 33]}),
            422,
            "batch size 33 > maximum allowed batch size 32",
        ),
        ("/v1/embeddings", json!({"model": "m", "input": ["a", ""]}), 400, "'$.input' is invalid"),
        ("/v1/elsewhere", json!({}), 404, "Not Found"),
    ] {
        let (found, text) = post(path, body).await;
        assert_eq!((found, text.contains(said)), (status, true), "{path}: {text}");
    }
}
