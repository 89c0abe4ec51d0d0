//! How the vectors of tools are made: batch by batch, whatever single texts, slow endpoints and swapped models do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::endpoint::{Call, Endpoint, json_reply};
use super::resilience::until;
use super::vectors::{complete, embedded, many, matcher, sent, vector};
use super::{allowed, names};
use crate::app::{TestApp, User};
use crate::model::warning_codes;

const QUERY: &str = "where is the pigeon";

fn is_of_tools(call: &Call) -> bool {
    call.documents().iter().any(|text| text.starts_with("g "))
}

pub(super) async fn with_tools(app: &TestApp, tools: &[Value], config: &Value) -> User {
    let user = app.user();
    user.put_catalog(tools).await.ok();
    user.put_config(config).await.ok();
    user
}

/// The detail of the warning about vectors.
fn told(answer: &Value) -> String {
    let warnings = answer["warnings"].as_array().unwrap();
    let found = warnings.iter().find(|warning| warning["code"] == "vectors_incomplete");
    found.map(|warning| warning["detail"].as_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_text_that_the_endpoint_refuses_takes_no_other_tool_with_it() {
    let app = allowed().await;
    for status in [400, 413, 422, 200] {
        let endpoint = Endpoint::with(move |call, _| async move {
            let documents = call.documents();
            let is_bad = |text: &String| text.contains("poison");
            match status {
                200 => {
                    // A vector of nothing.
                    let row =
                        |text: &String| if is_bad(text) { json!([0, 0, 0]) } else { json!(vector(text)) };
                    json_reply(200, &json!(documents.iter().map(row).collect::<Vec<_>>()))
                }
                _ if documents.iter().any(is_bad) => json_reply(status, &json!({"error": "no"})),
                _ => embedded(&call),
            }
        })
        .await;
        let mut tools = many(40);
        tools.push(json!({"name": "bottle", "group": "g", "description": "Mixes a poison."}));
        let user = with_tools(&app, &tools, &matcher(&endpoint)).await;
        let answer = user.search(json!({"query": QUERY})).await.ok();
        assert_eq!((&answer["mode"], &answer["degraded"]), (&json!("embedding"), &json!(false)), "{answer}");
        assert_eq!(names(&answer)[0], "aviary", "{answer}");
        assert!(told(&answer).contains("1 of 42") && told(&answer).contains("refuses 1"), "{answer}");
        endpoint.take();
        // It is not sent again with each search, and words still find it.
        let answer = user.search(json!({"query": "mix a poison in a bottle"})).await.ok();
        assert!(names(&answer).contains(&"bottle"), "{answer}");
        assert_eq!(sent(&endpoint.take()), ["mix a poison in a bottle"]);
    }
}

#[tokio::test]
async fn an_endpoint_that_refuses_every_tool_is_not_asked_about_each() {
    let endpoint = Endpoint::with(|call, _| async move {
        if is_of_tools(&call) { json_reply(400, &json!({"error": "no"})) } else { embedded(&call) }
    })
    .await;
    let app = allowed().await;
    let user = with_tools(&app, &many(300), &matcher(&endpoint)).await;
    for _ in 0..3 {
        let answer = user.search(json!({"query": QUERY})).await.ok();
        assert_eq!(
            (&answer["degraded"], &answer["reason"]),
            (&json!(true), &json!("http_error")),
            "{answer}"
        );
    }
    assert!(endpoint.count() < 120, "{}", endpoint.count());
}

#[tokio::test]
async fn what_a_slow_endpoint_made_is_used_and_kept() {
    let (started, places) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(1)));
    let (count, held) = (Arc::clone(&started), Arc::clone(&places));
    let endpoint = Endpoint::with(move |call, _| {
        let (count, held) = (Arc::clone(&count), Arc::clone(&held));
        async move {
            if is_of_tools(&call) {
                count.fetch_add(1, Ordering::Relaxed);
                held.acquire().await.unwrap().forget();
            }
            embedded(&call)
        }
    })
    .await;
    let mut app = allowed().await;
    let mut config = matcher(&endpoint);
    config["matcher"]["timeout_ms"] = json!(1_500);
    let user = with_tools(&app, &many(100), &config).await;
    let answer = user.search(json!({"query": QUERY})).await.ok();
    assert_eq!((&answer["mode"], &answer["degraded"]), (&json!("embedding"), &json!(false)), "{answer}");
    assert!(told(&answer).contains("are being made"), "{answer}");
    // Nobody waits for the others, and they are made all the same.
    places.add_permits(100);
    until("all vectors", async || warning_codes(&user.search(json!({"query": QUERY})).await.ok()).is_empty())
        .await;
    let texts = sent(&endpoint.take());
    let of_tools = texts.iter().filter(|text| text.starts_with("g ")).count();
    assert_eq!(of_tools, 101, "each once, whoever asks");
    app.restart().await;
    let answer = app.user_called(&user.id).search(json!({"query": "a dove"})).await.ok();
    assert_eq!((names(&answer)[0], told(&answer)), ("aviary", String::new()), "{answer}");
    assert_eq!(sent(&endpoint.take()), ["a dove"]);
}

#[tokio::test]
async fn who_hangs_up_loses_nothing_that_was_paid_for() {
    let places = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&places);
    let endpoint = Endpoint::with(move |call, _| {
        let held = Arc::clone(&held);
        async move {
            if is_of_tools(&call) {
                held.acquire().await.unwrap().forget();
            }
            embedded(&call)
        }
    })
    .await;
    let app = allowed().await;
    let user = with_tools(&app, &many(20), &matcher(&endpoint)).await;
    {
        let mut search = std::pin::pin!(user.search(json!({"query": QUERY})));
        tokio::select! {
            _ = &mut search => panic!("it waits for the tools"),
            () = until("a call", async || endpoint.count() >= 3) => {}
        }
    }
    places.add_permits(10);
    let answer = complete(&user).await;
    assert_eq!(names(&answer)[0], "aviary", "{answer}");
    assert_eq!(sent(&endpoint.take()).iter().filter(|text| text.starts_with("g ")).count(), 21);
}

#[tokio::test]
async fn views_of_one_scope_share_what_is_made() {
    let places = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&places);
    let endpoint = Endpoint::with(move |call, _| {
        let held = Arc::clone(&held);
        async move {
            if is_of_tools(&call) {
                held.acquire().await.unwrap().forget();
            }
            embedded(&call)
        }
    })
    .await;
    let app = allowed().await;
    let user = with_tools(&app, &many(60), &matcher(&endpoint)).await;
    let one = user.search(json!({"query": QUERY}));
    let other = user.search(json!({"query": QUERY, "deny": ["tool_000"]}));
    let release = async {
        until("the tools", async || endpoint.count() >= 3).await;
        places.add_permits(100);
    };
    let (one, other, ()) = tokio::join!(one, other, release);
    assert_eq!((names(&one.ok())[0], names(&other.ok())[0]), ("aviary", "aviary"));
    let texts = sent(&endpoint.take());
    assert_eq!(texts.iter().filter(|text| text.starts_with("g ")).count(), 61, "{}", texts.len());
}

/// Makes vectors of as many numbers as are asked for, of another kind from a second generation on.
async fn swapped(generation: Arc<AtomicUsize>, width: usize) -> Endpoint {
    Endpoint::with(move |call, _| {
        let is_second = generation.load(Ordering::Relaxed) > 0;
        async move {
            let row = |text: &String| {
                let mut vector = vector(text).to_vec();
                if is_second {
                    vector.resize(width, 0.0);
                    // Alike among themselves as before, and unlike those before.
                    vector.rotate_right(1);
                }
                json!(vector)
            };
            json_reply(200, &json!(call.documents().iter().map(row).collect::<Vec<Value>>()))
                as Response<Body>
        }
    })
    .await
}

#[tokio::test]
async fn a_model_of_another_width_behind_the_same_name_is_noticed() {
    let generation = Arc::new(AtomicUsize::new(0));
    let endpoint = swapped(Arc::clone(&generation), 5).await;
    let app = allowed().await;
    let user = with_tools(&app, &many(50), &matcher(&endpoint)).await;
    complete(&user).await;
    generation.store(1, Ordering::Relaxed);
    endpoint.take();
    for query in ["is there a dove", QUERY] {
        let answer = user.search(json!({"query": query})).await.ok();
        assert_eq!((&answer["mode"], names(&answer)[0]), (&json!("embedding"), "aviary"), "{answer}");
        assert_eq!(told(&answer), "", "{answer}");
    }
    assert_eq!(sent(&endpoint.take()).iter().filter(|text| text.starts_with("g ")).count(), 51);
}

#[tokio::test]
async fn a_model_that_was_swapped_is_noticed_at_a_write_a_test_and_a_start() {
    for occasion in ["write", "test", "start"] {
        let generation = Arc::new(AtomicUsize::new(0));
        let endpoint = swapped(Arc::clone(&generation), 3).await;
        let mut app = allowed().await;
        let config = matcher(&endpoint);
        let user = with_tools(&app, &many(50), &config).await;
        complete(&user).await;
        generation.store(1, Ordering::Relaxed);
        match occasion {
            "write" => drop(user.put_config(&config).await.ok()),
            "test" => {
                let body = json!({"user": user.id, "matcher": config["matcher"]});
                let answer = app.admin().post("/v1/setup/matcher-test", &body).await.ok();
                assert_eq!(answer["ok"], true, "{answer}");
            }
            _ => app.restart().await,
        }
        endpoint.take();
        let answer = app.user_called(&user.id).search(json!({"query": QUERY})).await.ok();
        assert_eq!(
            (&answer["mode"], names(&answer)[0]),
            (&json!("embedding"), "aviary"),
            "{occasion}: {answer}"
        );
        let texts = sent(&endpoint.take());
        let made = texts.iter().filter(|text| text.starts_with("g ")).count();
        assert_eq!(made, 51, "{occasion}");
    }
}

#[tokio::test]
async fn an_endpoint_that_hangs_never_fails_a_search() {
    let endpoint = Endpoint::with(|_, _| std::future::pending()).await;
    let builder = TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true");
    let app = builder.set("TOOLRACK_LIMITS_REQUEST_TIMEOUT_MS", 3_000).start().await;
    for kind in ["embedding", "rerank"] {
        let mut config = matcher(&endpoint);
        (config["matcher"]["kind"], config["matcher"]["timeout_ms"]) = (json!(kind), json!(60_000));
        let user = with_tools(&app, &many(5), &config).await;
        let answer = user.search(json!({"query": "box number 3"})).await.ok();
        assert_eq!((&answer["mode"], &answer["reason"]), (&json!("keyword"), &json!("timeout")), "{answer}");
        assert_eq!(names(&answer)[0], "tool_003", "{answer}");
    }
}

#[tokio::test]
async fn queries_that_need_no_endpoint_do_not_depend_on_it() {
    let (app, endpoint) = (allowed().await, Endpoint::with(|call, _| async move { embedded(&call) }).await);
    let user = with_tools(&app, &many(10), &matcher(&endpoint)).await;
    let answer = user.search(json!({"queries": ["", "what tools do you have", "the dove"]})).await.ok();
    assert_eq!((&answer["mode"], &answer["degraded"]), (&json!("embedding"), &json!(false)), "{answer}");
    assert_eq!(answer["results"][2]["matches"][0]["name"], "aviary", "{answer}");
    let texts = sent(&endpoint.take());
    assert_eq!(texts.iter().filter(|text| !text.starts_with("g ")).collect::<Vec<_>>(), ["the dove"]);
}

#[tokio::test]
async fn the_model_of_a_first_stage_is_tended_like_its_reranker() {
    let endpoint = Endpoint::with(|call, _| async move {
        if call.path.ends_with("/embeddings") { json_reply(401, &json!({})) } else { call.ranked() }
    })
    .await;
    let app = allowed().await;
    let config = json!({"matcher": {"endpoint": endpoint.url("/v1/rerank"), "model": "m", "dialect": "cohere",
        "max_documents": 10, "embedding_model": "e"}});
    let user = with_tools(&app, &many(30), &config).await;
    let state = async || {
        let path = format!("/v1/config/effective?user={}", user.id);
        app.admin().get(&path).await.ok()["matcher"].clone()
    };
    let body = json!({"query": "box number 3"});
    let answer = user.search(body.clone()).await.ok();
    assert_eq!(
        (&answer["mode"], warning_codes(&answer)),
        (&json!("rerank"), vec!["first_stage_failed"]),
        "{answer}"
    );
    let failing = state().await;
    assert_eq!(failing["status"], "failing", "{failing}");
    assert!(failing["detail"].as_str().unwrap().starts_with("The model of `embedding_model`"), "{failing}");
    let test = json!({"user": user.id, "matcher": config["matcher"]});
    let tested = app.admin().post("/v1/setup/matcher-test", &test).await.ok();
    assert!(tested["notes"].to_string().contains("the embedding model"), "{tested}");
    assert_eq!(tested["ok"], true, "{tested}");
    // Written again, it is asked again.
    user.put_config(&config).await.ok();
    assert_eq!(state().await["status"], "configured");
    endpoint.take();
    user.search(json!({"query": "box number 4"})).await.ok();
    assert!(endpoint.count_at("/v1/embeddings") > 0);
}

#[tokio::test]
async fn a_setting_that_does_nothing_is_told_at_the_write() {
    let (app, endpoint) = (allowed().await, Endpoint::with(|call, _| async move { embedded(&call) }).await);
    let user = app.user();
    let url = endpoint.url("/v1");
    for (matcher, pointer) in [
        (json!({"endpoint": url, "embedding_endpoint": url}), "/matcher/embedding_endpoint"),
        (json!({"kind": "embedding", "endpoint": url, "embedding_model": "m"}), "/matcher/embedding_model"),
    ] {
        let answer = user.put_config(&json!({ "matcher": matcher })).await.ok();
        assert_eq!(warning_codes(&answer), ["setting_without_effect"], "{answer}");
        assert_eq!(answer["warnings"][0]["pointer"], pointer);
    }
}

#[tokio::test]
async fn a_catalog_whose_vectors_do_not_fit_is_ranked_as_far_as_words_lead() {
    let endpoint = Endpoint::with(|call, _| async move {
        let row = |text: &String| {
            let mut wide = vector(text).to_vec();
            wide.resize(4_096, 0.0);
            json!(wide)
        };
        json_reply(200, &json!(call.documents().iter().map(row).collect::<Vec<Value>>()))
    })
    .await;
    let builder = TestApp::builder().set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true");
    let app = builder.set("TOOLRACK_CACHE_VECTORS_BYTES", 1 << 20).start().await;
    let mut config = matcher(&endpoint);
    config["matcher"]["max_documents"] = json!(20);
    let user = with_tools(&app, &many(200), &config).await;
    let mut told = String::new();
    until("the bound", async || {
        let answer = user.search(json!({"query": "the dove in box number 7"})).await.ok();
        assert_eq!((&answer["mode"], names(&answer)[0]), (&json!("embedding"), "aviary"), "{answer}");
        told = self::told(&answer);
        told.contains("cache.vectors_bytes")
    })
    .await;
    tokio::time::timeout(Duration::from_secs(30), async {
        while !sent(&endpoint.take()).is_empty() {
            user.search(json!({"query": "the dove in box number 7"})).await.ok();
        }
    })
    .await
    .expect("what was made is read from the store");
}
