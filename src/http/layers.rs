//! The outermost layer, around every route and every 404: request id, authentication, roles, timeout, panics, metrics,
//! log.
//!
//! One service and one future for all of it, because it runs in front of answers that take microseconds. Owns the
//! state that extractors need ([`HttpContext`]); must not know routes or services.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tower::{Layer, Service};

use crate::core::keys::Principal;
use crate::http::access::RouteTable;
use crate::http::auth::{Auth, is_open};
use crate::http::drain;
use crate::http::problem::{Attached, Code, Problem};
use crate::telemetry;

/// The header of request ids, in requests and answers.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id that is taken from a client, in characters.
const MAX_REQUEST_ID_CHARS: usize = 128;

/// Limits that hold for every route.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// Largest body, in bytes.
    pub body_bytes: usize,
    /// How many arrays and objects may stand inside each other in a body.
    pub json_depth: usize,
    /// After this time a request is answered with 503 and its handler dropped.
    pub request_timeout: Duration,
}

/// What the layer and the extractors need; cheap to clone. Router states offer it through `FromRef`.
#[derive(Debug, Clone)]
pub struct HttpContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: HttpLimits,
    auth: Auth,
}

impl HttpContext {
    pub fn new(limits: HttpLimits, auth: Auth) -> Self {
        Self(Arc::new(Inner { limits, auth }))
    }

    pub fn limits(&self) -> HttpLimits {
        self.0.limits
    }

    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }
}

/// The id of a request: the client's own if it is well formed, else a random one. In the extensions of every request.
#[derive(Debug, Clone)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The id as text; it is always visible ASCII.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    fn of(sent: Option<&HeaderValue>) -> Self {
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

/// Adds the layer to a finished router: `router.layer(HttpLayer::new(context, routes))`, as the last layer, so that it sees
/// the matched path and also stands in front of the fallback.
#[derive(Debug, Clone)]
pub struct HttpLayer {
    context: HttpContext,
    routes: Arc<RouteTable>,
}

impl HttpLayer {
    pub(crate) fn new(context: HttpContext, routes: RouteTable) -> Self {
        Self { context, routes: Arc::new(routes) }
    }
}

impl<S> Layer<S> for HttpLayer {
    type Service = HttpService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        HttpService { inner, context: self.context.clone(), routes: Arc::clone(&self.routes) }
    }
}

/// See [`HttpLayer`].
#[derive(Debug, Clone)]
pub struct HttpService<S> {
    inner: S,
    context: HttpContext,
    routes: Arc<RouteTable>,
}

impl<S> Service<Request> for HttpService<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let started = Instant::now();
        let (mut parts, body) = request.into_parts();
        let id = RequestId::of(parts.headers.get(&REQUEST_ID));
        parts.extensions.insert(id.clone());
        let exchange = Exchange {
            started,
            id,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            version: parts.version,
            route: parts.extensions.get::<MatchedPath>().cloned(),
        };
        let (body, unread) = drain::watch(body, &parts.headers);

        let limit = self.context.limits().request_timeout;
        let admitted = if is_open(parts.uri.path()) {
            Some(Ok(()))
        } else {
            let identified = self.context.auth().identify(&parts.headers);
            identified.map(|identified| admit(&self.routes, &mut parts, identified))
        };
        match admitted {
            Some(Ok(())) => {
                let answer = self.inner.call(Request::from_parts(parts, body));
                Box::pin(async move { Ok(exchange.finish(answered(answer, limit).await, unread).await) })
            }
            Some(Err(problem)) => {
                drop(body);
                Box::pin(async move { Ok(exchange.finish(problem.into_response(), unread).await) })
            }
            None => {
                // The service that was polled ready goes into the future, its copy stays.
                let copy = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, copy);
                let (context, routes) = (self.context.clone(), Arc::clone(&self.routes));
                Box::pin(async move {
                    let identified = context.auth().identify_anew(&parts.headers);
                    // The time of those that wait for a database counts like that of any answer.
                    let identified = tokio::time::timeout(limit, identified).await;
                    let identified = identified.unwrap_or_else(|_| Err(timed_out(limit)));
                    let response = match admit(&routes, &mut parts, identified) {
                        Ok(()) => answered(inner.call(Request::from_parts(parts, body)), limit).await,
                        Err(problem) => {
                            drop(body);
                            problem.into_response()
                        }
                    };
                    Ok(exchange.finish(response, unread).await)
                })
            }
        }
    }
}

/// Lets a request pass whose role may ask its route; who sends it stands in its extensions then.
fn admit(
    routes: &RouteTable,
    parts: &mut Parts,
    identified: Result<Principal, Problem>,
) -> Result<(), Problem> {
    let principal = identified?;
    let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    routes.check(route, &parts.method, principal.role())?;
    parts.extensions.insert(principal);
    Ok(())
}

/// The answer of a handler, whatever becomes of it.
async fn answered(
    answer: impl Future<Output = Result<Response, Infallible>> + Send,
    limit: Duration,
) -> Response {
    match tokio::time::timeout(limit, AssertUnwindSafe(answer).catch_unwind()).await {
        Ok(Ok(Ok(response))) => response,
        Ok(Ok(Err(never))) => match never {},
        Ok(Err(panic)) => panicked(&*panic).into_response(),
        Err(_) => timed_out(limit).into_response(),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Problem {
    telemetry::panicked();
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Problem::internal(format_args!("panic: {}", text.unwrap_or("without a text")))
}

fn timed_out(limit: Duration) -> Problem {
    Problem::new(Code::Timeout, format!("there was no answer within {} ms", limit.as_millis()))
}

/// What is remembered of a request until its answer goes out.
struct Exchange {
    started: Instant,
    id: RequestId,
    method: Method,
    uri: Uri,
    version: Version,
    route: Option<MatchedPath>,
}

impl Exchange {
    async fn finish(self, mut response: Response, unread: Option<drain::Unread>) -> Response {
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
        self.record(response.status(), problem.as_deref());
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

    fn record(&self, status: StatusCode, problem: Option<&Problem>) {
        let elapsed = self.started.elapsed();
        let route = self.route.as_ref().map_or("unmatched", MatchedPath::as_str);
        telemetry::request(route, &self.method, status, elapsed.as_secs_f64());

        let took_ms = (elapsed.as_secs_f64() * 100_000.0).round() / 100.0;
        let (id, method, status) = (self.id.as_str(), self.method.as_str(), status.as_u16());
        let code = problem.map(|problem| problem.code().as_str());
        let cause = problem.and_then(Problem::cause);
        // Paths hold names of users and tools, so they are told at debug level only.
        if status >= 500 {
            tracing::error!(request_id = id, method, route, status, took_ms, code, cause, "request failed");
        } else if status >= 400 {
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

/// Whether an error answer has no document of its own: what axum says, or a handler that gave a status alone.
fn is_bare(response: &Response<Body>) -> bool {
    response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|value| value.as_bytes().starts_with(b"text/plain"))
}
