//! The outermost layer, around every route and every 404: authentication, rates, roles, slots, timeout, panics; and what
//! `exchange` adds to each answer and tells of it.
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

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tower::{Layer, Service};
use tracing::Instrument as _;

use crate::core::keys::Principal;
use crate::core::rate::{Allowance, Rate};
use crate::core::slots::SlotLimits;
use crate::http::access::RouteTable;
use crate::http::auth::{Auth, is_open};
use crate::http::drain;
use crate::http::exchange::{Asker, Exchange, Page};
use crate::http::gate::{Counted, Entry, Gate, Slot, Waiting};
use crate::http::hygiene::Origins;
use crate::http::pages::{ProblemPage, check_sender, front_door, is_page};
use crate::http::problem::{Code, Problem};
use crate::http::revision;
use crate::service::{Revisions, Running, watched};
use crate::telemetry;

pub use crate::http::exchange::{REQUEST_ID, RequestId};

/// The route that takes no slot, so that an overload can be seen.
const METRICS: &str = "/metrics";

/// Limits that hold for every route.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// Largest body, in bytes.
    pub body_bytes: usize,
    /// How many arrays and objects may stand inside each other in a body.
    pub json_depth: usize,
    /// After this time a request is answered with 503 and its handler dropped.
    pub request_timeout: Duration,
    /// How many requests run and wait.
    pub slots: SlotLimits,
    /// Of requests without a stored key, all together; nothing: no limit.
    pub admin_rate: Option<Rate>,
    /// A request that takes so long is told in the log; nothing: none is.
    pub slow_request: Option<Duration>,
}

/// What the layer and the extractors need; cheap to clone. Router states offer it through `FromRef`.
#[derive(Debug, Clone)]
pub struct HttpContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: HttpLimits,
    auth: Auth,
    gate: Gate,
    /// Of requests without a stored key.
    admin: Option<Allowance>,
    origins: Origins,
}

impl HttpContext {
    /// `origins`: whose pages may read answers.
    pub fn new(limits: HttpLimits, auth: Auth, origins: Origins) -> Self {
        let gate = Gate::new(limits.slots);
        Self(Arc::new(Inner { limits, auth, gate, admin: limits.admin_rate.map(Allowance::new), origins }))
    }

    pub fn limits(&self) -> HttpLimits {
        self.0.limits
    }

    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    pub fn origins(&self) -> &Origins {
        &self.0.origins
    }

    /// Puts the requests that run and wait into the metrics.
    pub(crate) fn report(&self) {
        let SlotLimits { running, waiting } = self.0.limits.slots;
        let (runs, waits) = self.0.gate.load();
        telemetry::in_flight(runs, waits, (running, waiting));
    }
}

/// Adds the layer to a finished router: `router.layer(HttpLayer::new(context, routes, problem_page))`, as the last layer, so that it sees
/// the matched path and also stands in front of the fallback.
#[derive(Debug, Clone)]
pub struct HttpLayer {
    context: HttpContext,
    routes: Arc<RouteTable>,
    problem_page: ProblemPage,
}

impl HttpLayer {
    pub(crate) fn new(context: HttpContext, routes: RouteTable, problem_page: ProblemPage) -> Self {
        Self { context, routes: Arc::new(routes), problem_page }
    }
}

impl<S> Layer<S> for HttpLayer {
    type Service = HttpService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        let (context, routes) = (self.context.clone(), Arc::clone(&self.routes));
        HttpService { inner, context, routes, problem_page: self.problem_page }
    }
}

/// See [`HttpLayer`].
#[derive(Debug, Clone)]
pub struct HttpService<S> {
    inner: S,
    context: HttpContext,
    routes: Arc<RouteTable>,
    problem_page: ProblemPage,
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
        let route = parts.extensions.get::<MatchedPath>().cloned();
        let span = {
            let route = route.as_ref().map(MatchedPath::as_str);
            telemetry::request_span(&parts.method, parts.uri.path(), route, parts.version, &parts.headers)
        };
        let (wanted, odd_revision) = match revision::wanted(&parts.headers) {
            Ok(wanted) => (wanted, None),
            Err(problem) => (Revisions::default(), Some(problem)),
        };
        let mut exchange = Exchange {
            started,
            span: span.clone(),
            slow: self.context.limits().slow_request,
            counted: None,
            asker: Asker::Unknown,
            queued: None,
            running: Arc::new(Running::new(wanted)),
            odd_revision,
            id,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            version: parts.version,
            route,
            reader: self.context.origins().reader(&parts.headers),
            page: is_page(parts.uri.path())
                .then(|| Page { show: self.problem_page, headers: parts.headers.clone() }),
        };
        let (body, unread) = drain::watch(body, &parts.headers);

        if let Some(answer) = self.context.origins().preflight(&parts) {
            drop(body);
            return Box::pin(async move { Ok(exchange.finish(answer, unread).await) }.instrument(span));
        }

        if let Some(answer) = front_door(&parts) {
            drop(body);
            return Box::pin(async move { Ok(exchange.finish(answer, unread).await) }.instrument(span));
        }

        let limit = self.context.limits().request_timeout;
        let sender = if exchange.page.is_some() { check_sender(&parts) } else { Ok(()) };
        let admission = if let Err(problem) = sender {
            Admission::Refused(problem)
        } else if is_open(parts.uri.path()) {
            // What strangers send is read; what they only ask for costs less than a slot.
            if parts.method == Method::POST {
                Admission::of(self.context.0.gate.enter_stranger())
            } else {
                Admission::Free
            }
        } else if let (Auth::None, Err(problem)) =
            (self.context.auth(), self.context.origins().check_own(&parts))
        {
            Admission::Refused(problem)
        } else if exchange.page.is_some() {
            Admission::Unknown
        } else {
            match self.context.auth().identify(&parts.headers) {
                Some(identified) => exchange.admit(&self.context, &self.routes, &mut parts, identified),
                None => Admission::Unknown,
            }
        };
        let (slot, held) = match admission {
            Admission::Free => (None, None),
            Admission::Slot(slot) => (Some(slot), None),
            Admission::Refused(problem) => {
                drop(body);
                let answer = async move { Ok(exchange.finish(problem.into_response(), unread).await) };
                return Box::pin(answer.instrument(span));
            }
            Admission::Waits(waiting) => (None, Some(Held::Slot(waiting))),
            Admission::Unknown => (None, Some(Held::Keys)),
        };
        let Some(held) = held else {
            let answer = self.inner.call(Request::from_parts(parts, body));
            let answer = watched(Arc::clone(&exchange.running), answer);
            let answer = async move {
                let response = answered(answer, limit, limit).await;
                drop(slot);
                Ok(exchange.finish(response, unread).await)
            };
            return Box::pin(answer.instrument(span));
        };
        // The service that was polled ready goes into the future, its copy stays.
        let copy = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, copy);
        let (context, routes) = (self.context.clone(), Arc::clone(&self.routes));
        let answer = async move {
            // The time of those that wait for a database or a slot counts like that of any answer.
            let entering = exchange.enter(&context, &routes, &mut parts, held);
            let entered = tokio::time::timeout(limit, entering).await;
            exchange.queued = Some(started.elapsed());
            let response = match entered.unwrap_or_else(|_| Err(timed_out(limit))) {
                Ok(slot) => {
                    let left = limit.saturating_sub(started.elapsed());
                    let answer = inner.call(Request::from_parts(parts, body));
                    let answer = watched(Arc::clone(&exchange.running), answer);
                    let response = answered(answer, left, limit).await;
                    drop(slot);
                    response
                }
                Err(problem) => {
                    drop(body);
                    problem.into_response()
                }
            };
            Ok(exchange.finish(response, unread).await)
        };
        Box::pin(answer.instrument(span))
    }
}

/// Whether a request is let in.
enum Admission {
    /// It takes no slot.
    Free,
    Slot(Slot),
    Waits(Waiting),
    Refused(Problem),
    /// Keys have to be read before it is known who sends it.
    Unknown,
}

impl Admission {
    fn of(entry: Result<Entry, Problem>) -> Self {
        match entry {
            Ok(Entry::Now(slot)) => Self::Slot(slot),
            Ok(Entry::Later(waiting)) => Self::Waits(waiting),
            Err(problem) => Self::Refused(problem),
        }
    }
}

/// What a request waits for.
enum Held {
    Keys,
    Slot(Waiting),
}

impl Exchange {
    /// Lets a request pass whose key has sent no more than it may and whose role may ask its route; who sends it stands in its
    /// extensions then.
    fn admit(
        &mut self,
        context: &HttpContext,
        routes: &RouteTable,
        parts: &mut Parts,
        identified: Result<Principal, Problem>,
    ) -> Admission {
        let principal = match identified {
            Ok(principal) => principal,
            Err(problem) => return Admission::Refused(problem),
        };
        self.asker = Asker::of(&principal);
        let allowance = match principal.allowances() {
            Some(allowances) => allowances.requests.as_ref(),
            None => context.0.admin.as_ref(),
        };
        if let Some(allowance) = allowance {
            let (counted, taken) = Counted::take(allowance);
            self.counted = Some(counted);
            if let Err(problem) = taken {
                return Admission::Refused(problem);
            }
        }
        let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        if let Err(problem) = routes.check(route, &parts.method, principal.role()) {
            return Admission::Refused(problem);
        }
        if let Some(problem) = self.odd_revision.take() {
            return Admission::Refused(problem);
        }
        // No text that is stored holds this character, and PostgreSQL takes none that does.
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            let detail = "the query string holds the character U+0000 (%00)";
            return Admission::Refused(Problem::new(Code::InvalidRequest, detail));
        }
        // An overload must show.
        let entry = (route != Some(METRICS)).then(|| context.0.gate.enter(&principal));
        parts.extensions.insert(principal);
        entry.map_or(Admission::Free, Admission::of)
    }

    /// Who sends a request, asked of the store where that is needed.
    async fn identify(&self, context: &HttpContext, parts: &mut Parts) -> Result<Principal, Problem> {
        if self.page.is_none() {
            return context.auth().identify_anew(&parts.headers).await;
        }
        // Each cookie, also an invented one, is read from the database.
        let _slot = match context.0.gate.enter_visitor()? {
            Entry::Now(slot) => slot,
            Entry::Later(waiting) => waiting.slot().await,
        };
        let (principal, token) = context.auth().identify_page(&parts.headers).await?;
        parts.extensions.insert(token);
        Ok(principal)
    }

    /// Waits until a request is let in.
    async fn enter(
        &mut self,
        context: &HttpContext,
        routes: &RouteTable,
        parts: &mut Parts,
        held: Held,
    ) -> Result<Option<Slot>, Problem> {
        let waiting = match held {
            Held::Slot(waiting) => waiting,
            Held::Keys => {
                let identified = self.identify(context, parts).await;
                match self.admit(context, routes, parts, identified) {
                    Admission::Free => return Ok(None),
                    Admission::Slot(slot) => return Ok(Some(slot)),
                    Admission::Waits(waiting) => waiting,
                    Admission::Refused(problem) => return Err(problem),
                    Admission::Unknown => {
                        return Err(Problem::internal("a key was read and is still not known"));
                    }
                }
            }
        };
        Ok(Some(waiting.slot().await))
    }
}

/// The answer of a handler, whatever becomes of it. Of the time that a request has, `left` is left.
async fn answered(
    answer: impl Future<Output = Result<Response, Infallible>> + Send,
    left: Duration,
    limit: Duration,
) -> Response {
    match tokio::time::timeout(left, AssertUnwindSafe(answer).catch_unwind()).await {
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
