//! A rerank endpoint of Cohere's shape that does nothing but read, wait and answer, and remembers what it was sent.
//!
//! Runs in a process of its own, served as the bare handler is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};

use super::bare::{json, run};
use super::measure::Result;

/// The path that ranks.
pub(crate) const RERANK: &str = "/v1/rerank";
/// The path that tells how often it was asked to rank.
pub(crate) const CALLS: &str = "/calls";
/// The path that gives the bodies that it was sent since it was asked for them last, in a JSON array.
pub(crate) const TAKE: &str = "/take";

/// Bodies that are kept for [`TAKE`]: more than one search makes.
const KEPT: usize = 16;
/// Stands before the number of wanted rows in a body, whose last key it is.
const TOP: &[u8] = b"\"top_n\":";

#[derive(Debug, Default)]
struct Seen {
    calls: AtomicU64,
    bodies: Mutex<Vec<Bytes>>,
}

impl Seen {
    fn call(&self, body: &Bytes) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut bodies = self.bodies();
        if bodies.len() < KEPT {
            bodies.push(body.clone());
        }
    }

    fn take(&self) -> Vec<u8> {
        let bodies = std::mem::take(&mut *self.bodies());
        [b"[", bodies.join(&b","[..]).as_slice(), b"]"].concat()
    }

    fn bodies(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves until it is killed. The argument says how many milliseconds each answer takes.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let time = Duration::from_millis(arguments.first().ok_or("no time")?.parse()?);
    let seen = Arc::<Seen>::default();
    let (asked, counted, taken) = (Arc::clone(&seen), Arc::clone(&seen), seen);
    let rank = async move |body: Bytes| {
        asked.call(&body);
        // Even a sleep of no time may wait for the next tick.
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        json(answer(wanted(&body)).into())
    };
    let app = Router::new()
        .route("/readyz", get(async || ""))
        .route(RERANK, post(rank))
        .route(CALLS, get(async move || counted.calls.load(Ordering::Relaxed).to_string()))
        .route(TAKE, get(async move || taken.take()));
    run(app)
}

/// How many rows a body asks for; none where it does not say.
fn wanted(body: &[u8]) -> usize {
    let Some(start) = body.windows(TOP.len()).rposition(|window| window == TOP) else { return 0 };
    let digits = body[start + TOP.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| 10 * number + usize::from(digit - b'0'))
}

/// Scores for so many documents: those at even places before those at odd ones, so that the order is not the one in which
/// they came.
fn answer(rows: usize) -> String {
    let order = (0..rows).step_by(2).chain((1..rows).step_by(2)).enumerate();
    let row = |(place, index)| {
        let score = 1.0 / (place as f64 + 1.5);
        format!(r#"{{"index":{index},"relevance_score":{score}}}"#)
    };
    format!(r#"{{"id":"1","results":[{}]}}"#, order.map(row).collect::<Vec<_>>().join(","))
}
