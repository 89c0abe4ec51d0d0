//! A rerank endpoint that comes and goes: for some seconds each it ranks, fails, is silent and talks nonsense.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::super::Result;

/// How long each mood lasts, in seconds.
const MOOD: u64 = 4;
/// Longer than an endpoint is waited for.
const SILENCE: Duration = Duration::from_secs(8);

/// Starts it; the address of the route that ranks.
pub(crate) async fn start() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1/rerank", listener.local_addr()?);
    let started = Instant::now();
    let rank = move |body: Bytes| answer(started.elapsed().as_secs() / MOOD, body);
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/v1/rerank", post(rank))).await });
    Ok(url)
}

async fn answer(mood: u64, body: Bytes) -> Response {
    match mood % 5 {
        1 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        2 => {
            tokio::time::sleep(SILENCE).await;
            StatusCode::GATEWAY_TIMEOUT.into_response()
        }
        3 => "<html>maintenance</html>".into_response(),
        _ => {
            let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
            let documents = asked["documents"].as_array().map_or(0, Vec::len);
            let rows =
                (0..documents).map(|at| json!({"index": at, "relevance_score": 1.0 / (at + 1) as f64}));
            axum::Json(json!({"results": rows.collect::<Vec<_>>()})).into_response()
        }
    }
}
