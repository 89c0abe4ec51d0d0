//! Every way in which endpoints are known to fail or to answer oddly: the agent gets matches and a true word about
//! what ranked.

use axum::body::{Body, Bytes};
use axum::http::Response;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use super::endpoint::{Call, Endpoint, hanging_up, json_reply, nobody, reply};
use super::{KEY, allowed, matcher, names};
use crate::app::{TestApp, User};

/// The part of an upstream text that nobody may see.
const CANARY: &str = "UPSTREAM-TEXT";
const QUERY: &str = "send a message as a letter";
const TOOLS: usize = 12;

/// A way to fail, the `reason` that it ends in, and the calls that it takes: two where it may pass.
struct Failure(&'static str, &'static str, usize);

const FAILURES: [Failure; 56] = [
    Failure("hang", "timeout", 1),
    Failure("slow_body", "timeout", 1),
    Failure("truncated", "unreachable", 2),
    Failure("300", "redirected", 1),
    Failure("301", "redirected", 1),
    Failure("302", "redirected", 1),
    Failure("307", "redirected", 1),
    Failure("308", "redirected", 1),
    Failure("400", "http_error", 1),
    Failure("401", "unauthorized", 1),
    Failure("402", "payment_required", 1),
    Failure("403", "unauthorized", 1),
    Failure("404", "not_found", 1),
    Failure("405", "not_found", 1),
    Failure("408", "http_error", 2),
    Failure("409", "http_error", 1),
    Failure("415", "http_error", 1),
    Failure("422", "http_error", 1),
    Failure("424", "http_error", 1),
    Failure("425", "http_error", 2),
    Failure("429", "rate_limited", 2),
    Failure("429_soon", "rate_limited", 2),
    Failure("429_later", "rate_limited", 1),
    Failure("429_date", "rate_limited", 1),
    Failure("498", "unauthorized", 1),
    Failure("499", "http_error", 1),
    Failure("500", "http_error", 2),
    Failure("501", "http_error", 2),
    Failure("502", "http_error", 2),
    Failure("503", "http_error", 2),
    Failure("503_later", "http_error", 1),
    Failure("504", "http_error", 2),
    Failure("529", "http_error", 2),
    Failure("html", "web_page", 1),
    Failure("html_as_json", "web_page", 1),
    Failure("empty", "malformed_answer", 1),
    Failure("null", "malformed_answer", 1),
    Failure("garbage", "malformed_answer", 1),
    Failure("not_text", "malformed_answer", 1),
    Failure("deep", "malformed_answer", 1),
    Failure("shape", "malformed_answer", 1),
    Failure("no_results", "malformed_answer", 1),
    Failure("all_nan", "malformed_answer", 1),
    Failure("all_null", "malformed_answer", 1),
    Failure("no_index", "malformed_answer", 1),
    Failure("many_bad", "malformed_answer", 1),
    Failure("from_one", "malformed_answer", 1),
    Failure("positional_short", "malformed_answer", 1),
    Failure("positional_long", "malformed_answer", 1),
    Failure("error_inside", "error_in_answer", 1),
    Failure("error_code_inside", "error_in_answer", 1),
    Failure("error_beside_results", "error_in_answer", 1),
    Failure("401_inside", "unauthorized", 1),
    Failure("402_inside", "payment_required", 1),
    Failure("429_inside", "rate_limited", 2),
    Failure("oversized", "answer_too_large", 1),
];

/// Ways to answer oddly that hold a ranking all the same.
const USABLE: [&str; 27] = [
    "good",
    "created",
    "as_text",
    "as_html",
    "with_mark",
    "unsorted",
    "partial",
    "bare_array",
    "logits",
    "cosines",
    "saturated",
    "some_nan",
    "some_bare_nan",
    "some_null",
    "some_words",
    "duplicated",
    "few_bad",
    "numeric_strings",
    "whole_floats",
    "ids",
    "positional",
    "positional_inside",
    "echoed",
    "null_documents",
    "success_code",
    "empty_error",
    "flaky",
];

/// How a status, or something after it, is answered.
fn status(behaviour: &str) -> Response<Body> {
    let (code, more) = behaviour.split_once('_').unwrap_or((behaviour, ""));
    let status: u16 = code.parse().unwrap();
    let mut answer = json_reply(status, &json!({ "message": CANARY, "error": CANARY }));
    let mut set =
        |name: &'static str, value: &'static str| answer.headers_mut().insert(name, value.parse().unwrap());
    match more {
        "soon" => set("retry-after", "0"),
        "later" => set("retry-after", "120"),
        "date" => set("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
        _ if status < 400 => set("location", "/good"),
        _ => None,
    };
    answer
}

/// An answer that begins well and goes on with this.
fn begun(rest: impl futures_util::Stream<Item = std::io::Result<Bytes>> + Send + 'static) -> Response<Body> {
    let start = stream::once(async { Ok(Bytes::from_static(b"{\"results\": [")) });
    reply(200, "application/json", Body::from_stream(start.chain(rest)))
}

async fn answer(call: Call, seen: usize) -> Response<Body> {
    let behaviour = call.path.trim_start_matches('/').trim_end_matches("/rerank");
    let results = |rows: Vec<Value>| json_reply(200, &json!({ "results": rows }));
    let each = |change: &dyn Fn(usize, &mut Value)| {
        let mut rows = call.rows();
        rows.iter_mut().enumerate().for_each(|(at, row)| change(at, row));
        results(rows)
    };
    // Every second row from the second on: the best one stays as it is.
    let some = |score: Value| {
        each(&|at, row| {
            row["relevance_score"] = if at % 2 == 1 { score.clone() } else { row["relevance_score"].take() }
        })
    };
    let by_position = || {
        let mut scores = call.scores();
        scores.sort_by_key(|(at, _)| *at);
        scores.into_iter().map(|(_, score)| json!(score)).collect::<Vec<_>>()
    };
    let text = |body: &str| reply(200, "application/json", body.to_owned());
    let whole = json!({"results": call.rows()});
    match behaviour {
        "hang" => std::future::pending().await,
        "slow_body" => begun(stream::pending()),
        "truncated" => begun(stream::once(async { Err(std::io::Error::other("gone")) })),
        "html" => reply(200, "text/html; charset=utf-8", format!("<!DOCTYPE html><p>{CANARY}</p>")),
        "html_as_json" => text("\n <html><body>Sign in to the network</body></html>"),
        "empty" => text(""),
        "null" => text("null"),
        "garbage" => text("{\"results\": [{\"index\": \"first\""),
        "not_text" => reply(200, "application/json", vec![0xff, 0xfe, b'{', 0x80]),
        "deep" => text(&"[".repeat(200_000)),
        "shape" => text("{\"data\": {\"nothing\": \"here\"}, \"results\": {}}"),
        "no_results" => text("{\"results\": []}"),
        "all_nan" => each(&|_, row| row["relevance_score"] = json!("NaN")),
        "all_null" => each(&|_, row| row["relevance_score"] = Value::Null),
        "no_index" => {
            results(call.scores().iter().map(|(_, score)| json!({"relevance_score": score})).collect())
        }
        "many_bad" => each(&|at, row| {
            if at % 3 == 1 {
                row["index"] = json!(9_999);
            }
        }),
        "from_one" => each(&|_, row| row["index"] = json!(row["index"].as_u64().unwrap() + 1)),
        "positional_short" => json_reply(200, &json!({"scores": by_position()[1..]})),
        "positional_long" => {
            let scores = [by_position(), vec![json!(0.5)]].concat();
            json_reply(200, &json!({ "scores": scores }))
        }
        "error_inside" => json_reply(200, &json!({"error": {"message": CANARY}})),
        "error_code_inside" => json_reply(200, &json!({"error_code": 336_003, "error_msg": CANARY})),
        "error_beside_results" => json_reply(200, &json!({"error": CANARY, "results": call.rows()})),
        "401_inside" => json_reply(200, &json!({"code": "InvalidApiKey", "message": CANARY})),
        "402_inside" => json_reply(200, &json!({"code": "Arrearage", "message": CANARY})),
        "429_inside" => json_reply(200, &json!({"error": {"code": 429, "message": CANARY}})),
        "oversized" => text(&" ".repeat(6 << 20)),

        "good" => call.ranked(),
        "created" => json_reply(201, &whole),
        "as_text" => reply(200, "text/plain", whole.to_string()),
        "as_html" => reply(200, "text/html", whole.to_string()),
        "with_mark" => text(&format!("\u{feff}{whole}")),
        "unsorted" => {
            let mut rows = call.rows();
            rows.sort_by_key(|row| row["index"].as_u64());
            results(rows)
        }
        "partial" => results(call.rows()[..1].to_vec()),
        "bare_array" => json_reply(200, &json!(call.rows())),
        "logits" => each(&|at, row| row["relevance_score"] = json!(3.5 - at as f64)),
        "cosines" => each(&|at, row| row["relevance_score"] = json!(0.4 - at as f64 / 10.0)),
        "saturated" => each(&|_, row| row["relevance_score"] = json!(1.0)),
        "some_nan" => some(json!("NaN")),
        "some_bare_nan" => {
            let body = json!({"note": "NaN \"Infinity\"", "results": call.rows()}).to_string();
            text(&body.replace(":0.1}", ":NaN}").replace(":0.05}", ":-Infinity}"))
        }
        "some_null" => some(Value::Null),
        "some_words" => some(json!("high")),
        "duplicated" => {
            let again = call.rows().into_iter().map(|mut row| {
                row["relevance_score"] = json!(0.0);
                row
            });
            let again: Vec<Value> = again.collect();
            results([call.rows(), again].concat())
        }
        "few_bad" => {
            let bad = [
                json!({"index": 9_999, "relevance_score": 2.0}),
                json!({"index": -1, "relevance_score": 2.0}),
            ];
            results([bad.to_vec(), call.rows()].concat())
        }
        "numeric_strings" => each(&|_, row| {
            *row = json!({"index": row["index"].to_string(), "score": row["relevance_score"].to_string()});
        }),
        "whole_floats" => each(&|_, row| row["index"] = json!(row["index"].as_f64().unwrap())),
        "ids" => each(&|_, row| {
            *row = json!({"id": row["index"].to_string(), "relevanceScore": row["relevance_score"]});
        }),
        "positional" => json_reply(200, &json!({"scores": by_position()})),
        "positional_inside" => json_reply(200, &json!({"code": 0, "data": {"scores": by_position()}})),
        "echoed" => {
            each(&|_, row| row["document"] = json!({"text": call.documents().concat(), "multi_modal": null}))
        }
        "null_documents" => each(&|_, row| row["document"] = Value::Null),
        "success_code" => json_reply(200, &json!({"code": "Success", "output": {"results": call.rows()}})),
        "empty_error" => json_reply(200, &json!({"error": null, "code": 200, "results": call.rows()})),
        "flaky" if seen == 0 => status("503_soon"),
        "flaky" => call.ranked(),
        other => status(other),
    }
}

/// Each behaviour has a count of its own.
async fn endpoint() -> Endpoint {
    let counts = std::sync::Mutex::new(std::collections::HashMap::<String, usize>::new());
    Endpoint::with(move |call, _| {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(call.path.clone()).or_default();
        *count += 1;
        answer(call, *count - 1)
    })
    .await
}

/// A user with a dozen tools, the pigeon in the middle.
async fn user(app: &TestApp, config: &Value) -> User {
    let user = app.user();
    let tool = |at: usize| match at {
        7 => json!({"name": "fly", "group": "birds", "description": "Let a pigeon carry it."}),
        at => json!({"name": format!("send_letter_{at}"), "group": "mail",
            "description": format!("Send a message as a letter of kind {at}.")}),
    };
    user.put_catalog(&(0..TOOLS).map(tool).collect::<Vec<_>>()).await.ok();
    user.put_config(config).await.ok();
    user
}

#[tokio::test]
async fn every_way_to_fail_ends_in_keywords_with_a_reason() {
    let (app, endpoint) = (allowed().await, endpoint().await);
    let body = json!({"session": "s", "query": QUERY});
    let keywords = user(&app, &json!({"min_catalog_size": 0})).await;
    keywords.assemble(json!({"session": "s"})).await.ok();
    let expected = keywords.search(body.clone()).await.ok();
    assert!(!names(&expected).is_empty());

    let check = async |url: String, reason: &str| {
        let mut config = matcher(&url);
        if reason == "timeout" {
            config["matcher"]["timeout_ms"] = json!(1_500);
        }
        let user = user(&app, &config).await;
        user.assemble(json!({"session": "s"})).await.ok();
        let found = user.search(body.clone()).await.ok();
        assert_eq!(
            (&found["mode"], &found["degraded"], &found["reason"]),
            (&json!("keyword"), &json!(true), &json!(reason)),
            "{url}"
        );
        assert_eq!(
            (&found["results"], &found["warmed"]),
            (&expected["results"], &expected["warmed"]),
            "{url}: as without an endpoint"
        );
        assert!(!found.to_string().contains(CANARY), "{url}");
        user
    };
    let rest = async |user: User, url: &str| {
        assert_eq!(user.assemble(json!({"session": "s"})).await.ok()["warm"], expected["warmed"], "{url}");
        // Through the bridge the model sees the matches all the same.
        let call = json!({"call": {"id": "1", "name": "tool_search", "arguments": {"query": "letter"}}});
        assert_eq!(user.bridge(call).await.ok()["results"][0]["is_error"], false, "{url}");
    };
    let cases = FAILURES.iter().map(async |Failure(behaviour, reason, calls)| {
        let path = format!("/{behaviour}/rerank");
        let user = check(endpoint.url(&path), reason).await;
        assert_eq!(endpoint.count_at(&path), *calls, "{behaviour}");
        rest(user, &path).await;
    });
    join_all(cases).await;
    for address in [nobody().await, hanging_up().await] {
        let url = format!("http://{address}/rerank");
        rest(check(url.clone(), "unreachable").await, &url).await;
    }
    // An answer to half of the documents helps nobody: the limit is learned, and then it fails for good.
    let url = endpoint.url("/413/rerank");
    rest(check(url.clone(), "http_error").await, &url).await;
    assert!(endpoint.count_at("/413/rerank") >= 2);
    assert_eq!(endpoint.count_at("/good"), 0, "a redirect is not followed");

    let metrics = app.admin().get("/metrics").await;
    for Failure(_, reason, _) in FAILURES {
        assert!(metrics.text().contains(&format!("reason=\"{reason}\"")), "{reason}: {}", metrics.text());
    }
    let logs = app.logs();
    assert!(logs.contains("rerank") && logs.contains("unauthorized"), "a log line tells: {logs}");
    for canary in [KEY, CANARY, QUERY] {
        assert!(!logs.contains(canary) && !metrics.text().contains(canary), "{canary}");
    }
}

#[tokio::test]
async fn an_odd_but_usable_answer_is_used() {
    let (app, endpoint) = (allowed().await, endpoint().await);
    let check = async |behaviour: &str| {
        let path = format!("/{behaviour}/rerank");
        let user = user(&app, &matcher(&endpoint.url(&path))).await;
        let found = user.search(json!({"query": QUERY, "limit": 20, "explain": true})).await.ok();
        assert_eq!(
            (&found["mode"], &found["degraded"], found.get("reason")),
            (&json!("rerank"), &json!(false), None),
            "{behaviour}: {found}"
        );
        assert_eq!(names(&found)[0], "fly", "{behaviour}: {found}");
        let mut once = names(&found);
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names(&found).len(), "{behaviour}: {found}");
        let matches = found["results"][0]["matches"].as_array().unwrap();
        let scores: Vec<f64> = matches.iter().map(|found| found["score"].as_f64().unwrap()).collect();
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{behaviour}: {scores:?}");
        assert!(scores.is_sorted_by(|a, b| a >= b), "{behaviour}: {scores:?}");
        (endpoint.count_at(&path), found)
    };
    let found = join_all(USABLE.iter().map(|behaviour| check(behaviour))).await;
    for (behaviour, (calls, found)) in USABLE.iter().zip(&found) {
        assert_eq!(*calls, if *behaviour == "flaky" { 2 } else { 1 }, "{behaviour}");
        // Whoever was given no score comes behind, found by words.
        assert_eq!(names(found).len(), TOOLS, "{behaviour}: {found}");
    }
    let of = |name: &str| &found[USABLE.iter().position(|behaviour| *behaviour == name).unwrap()].1;
    let first = |name: &str| &of(name)["results"][0]["matches"][0];
    // What the endpoint said stays visible, beside a score that compares.
    assert_eq!(first("logits")["explain"]["endpoint_score"], 3.5);
    assert!(first("logits")["score"].as_f64().is_some_and(|score| score > 0.9 && score < 1.0));
    assert_eq!(
        (&first("good")["explain"]["endpoint_score"], &first("good")["score"]),
        (&json!(0.9), &json!(0.9))
    );
    // Each score is its own tool's, wherever it stood in the answer.
    for name in ["unsorted", "bare_array", "duplicated", "few_bad", "numeric_strings", "whole_floats", "ids"]
    {
        assert_eq!(of(name)["results"], of("good")["results"], "{name}");
    }
    for name in ["positional", "positional_inside", "echoed", "success_code", "flaky", "saturated"] {
        assert_eq!(names(of(name)), names(of("good")), "{name}");
    }
}
