//! One request from its headers to its answer: its id, what every answer carries, and what metrics and log are told.
//!
//! Owns what is remembered of a request meanwhile. Paths hold names of users and tools, so neither metrics nor the usual
//! lines of the log have one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::MatchedPath;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::response::Response;

use tracing::Span;

use crate::core::keys::{KeyId, Principal};
use crate::http::drain;
use crate::http::gate::Counted;
use crate::http::hygiene::{self, Origins};
use crate::http::pages::{ProblemPage, Visit};
use crate::http::problem::{Attached, Code, Problem};
use crate::http::revision;
use crate::http::server_timing::{Times, milliseconds};
use crate::service::Running;
use crate::telemetry;

/// The header of request ids, in requests and answers.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id that is taken from a client, in characters.
const MAX_REQUEST_ID_CHARS: usize = 128;

/// The id of a request: the client's own if it is well formed, else a random one. In the extensions of every request.
#[derive(Debug, Clone)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The id as text; it is always visible ASCII.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub(super) fn of(sent: Option<&HeaderValue>) -> Self {
        match sent {
            Some(id) if is_request_id(id.as_bytes()) => Self(id.clone()),
            _ => Self::random(),
        }
    }

    fn random() -> Self {
        let mut text = [b'0'; 32];
        // 16 bytes always fill 32 hexadecimal digits.
        let _filled = hex::encode_to_slice(rand::random::<u128>().to_be_bytes(), &mut text);
        Self(HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("0")))
    }
}

fn is_request_id(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(byte);
    (1..=MAX_REQUEST_ID_CHARS).contains(&id.len()) && id.iter().all(allowed)
}

/// What every path of the API begins with.
const API: &str = "/v1/";

/// What is remembered of a request until its answer goes out.
pub(super) struct Exchange {
    pub(super) started: Instant,
    pub(super) span: Span,
    /// From which time on it is slow.
    pub(super) slow: Option<Duration>,
    /// What is left to its key.
    pub(super) counted: Option<Counted>,
    pub(super) asker: Asker,
    /// Until it was let in, where it had to wait.
    pub(super) queued: Option<Duration>,
    pub(super) running: Arc<Running>,
    /// What is wrong with the state that it wants to see.
    pub(super) odd_revision: Option<Problem>,
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) route: Option<MatchedPath>,
    /// See [`Origins::reader`].
    pub(super) reader: Option<HeaderValue>,
    /// Where it is for a page.
    pub(super) page: Option<Page>,
}

/// What shows the problem of a page.
pub(super) struct Page {
    pub(super) show: ProblemPage,
    pub(super) headers: HeaderMap,
}

impl Exchange {
    pub(super) async fn finish(self, mut response: Response, unread: Option<drain::Unread>) -> Response {
        if let Some(unread) = unread
            && !unread.drain().await
            && self.version <= Version::HTTP_11
        {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let mut problem = None;
        if response.status().as_u16() >= 400 {
            problem = self.complete(&mut response);
        }
        response.headers_mut().insert(REQUEST_ID, self.id.0.clone());
        revision::write(&self.running.shown(), response.headers_mut());
        if let Some(counted) = self.counted {
            counted.write(response.headers_mut());
        }
        hygiene::protect(response.headers_mut(), self.uri.path());
        self.reader.iter().for_each(|reader| Origins::open(response.headers_mut(), reader));
        let times = Times::of(self.started.elapsed(), self.queued, &self.running.spent);
        if self.uri.path().starts_with(API) {
            times.write(response.headers_mut());
        }
        let error = problem.as_ref().map(|problem| problem.code().as_str());
        if let Some(trace) = telemetry::answered(&self.span, response.status(), error) {
            response.headers_mut().insert(telemetry::TRACERESPONSE, trace);
        }
        self.record(response.status(), problem.as_deref(), &times);
        response
    }

    /// Adds path and request id to a problem, and makes one of an answer that none of our handlers wrote.
    fn complete(&self, response: &mut Response) -> Option<Arc<Problem>> {
        let problem = match response.extensions_mut().remove::<Attached>() {
            Some(Attached(problem)) => problem,
            None if is_bare(response) => {
                let made = self.problem_of(response.status());
                *response.status_mut() = made.code().status();
                let content_type = HeaderValue::from_static(crate::http::problem::PROBLEM_JSON);
                response.headers_mut().insert(header::CONTENT_TYPE, content_type);
                Arc::new(made)
            }
            None => return None,
        };
        if let Some(Page { show, headers }) = &self.page {
            let (uri, method, request_id) = (&self.uri, &self.method, self.id.as_str());
            *response = show(&problem, &Visit { uri, method, headers, request_id });
            return Some(problem);
        }
        *response.body_mut() = problem.body(Some(self.uri.path()), Some(self.id.as_str()));
        response.headers_mut().remove(header::CONTENT_LENGTH);
        Some(problem)
    }

    fn problem_of(&self, status: StatusCode) -> Problem {
        let code = Code::of_status(status);
        match code {
            Code::NotFound => Problem::nothing_here(),
            Code::MethodNotAllowed => Problem::method_not_allowed(&self.method),
            _ => Problem::new(code, code.title()),
        }
    }

    fn record(&self, status: StatusCode, problem: Option<&Problem>, times: &Times) {
        let route = self.route.as_ref().map_or("unmatched", MatchedPath::as_str);
        telemetry::request(route, &self.method, status, times.total.as_secs_f64());

        let took_ms = milliseconds(times.total);
        let (id, method, status) = (self.id.as_str(), self.method.as_str(), status.as_u16());
        let code = problem.map(|problem| problem.code().as_str());
        let cause = problem.and_then(Problem::cause);
        let is_held_back =
            problem.is_some_and(|problem| matches!(problem.code(), Code::RateLimited | Code::Overloaded));
        if self.slow.is_some_and(|slow| times.total >= slow) {
            tracing::warn!(
                request_id = id,
                method,
                route,
                status,
                took_ms,
                queue_ms = times.queue.map(milliseconds),
                rank_ms = times.rank.map(milliseconds),
                endpoint_ms = times.endpoint.map(milliseconds),
                db_ms = times.database.map(milliseconds),
                key = self.asker.name(),
                "slow request"
            );
        }
        // Paths hold names of users and tools, so they are told at debug level only. A flood must not fill the log: what is held
        // back is counted in the metrics.
        if status >= 500 && !is_held_back {
            tracing::error!(request_id = id, method, route, status, took_ms, code, cause, "request failed");
        } else if status >= 400 && !is_held_back {
            tracing::info!(request_id = id, method, route, status, took_ms, code, "request refused");
        } else {
            tracing::debug!(
                request_id = id,
                method,
                route,
                path = self.uri.path(),
                status,
                took_ms,
                code,
                cause,
                "request"
            );
        }
    }
}

/// Who sent a request, as the log may tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Unknown,
    Admin,
    Key(KeyId),
}

impl Asker {
    pub(super) fn of(principal: &Principal) -> Self {
        match principal {
            Principal::Admin => Self::Admin,
            Principal::Key(rights) => Self::Key(rights.id),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Unknown => "none".to_owned(),
            Self::Admin => "admin".to_owned(),
            Self::Key(id) => id.to_string(),
        }
    }
}

/// Whether an error answer has no document of its own: what axum says, or a handler that gave a status alone.
fn is_bare(response: &Response<Body>) -> bool {
    response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|value| value.as_bytes().starts_with(b"text/plain"))
}
