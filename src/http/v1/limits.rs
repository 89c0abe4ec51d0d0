//! `/v1/limits`: what a request may hold.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::layers::HttpContext;
use crate::service::{MAX_SELECTORS, MAX_SESSION_NAMES, Toolrack};

/// What a request may hold. The operator sets these.
#[derive(Debug, Serialize, ToSchema)]
pub struct LimitsDocument {
    /// Largest body, in bytes.
    pub body_bytes: usize,
    /// Arrays and objects that may stand inside each other in a body.
    pub depth: usize,
    /// Tools in one catalog. A catalog larger than one body is sent with `PATCH`, in parts.
    pub tools_per_catalog: usize,
    /// Largest tool, in bytes of its entry; a larger one is set aside.
    pub tool_bytes: usize,
    /// Longest query, in characters.
    pub query_chars: usize,
    /// Queries in one search.
    pub queries: usize,
    /// Names in one description.
    pub names: usize,
    /// Entries of `toolsets`, `allow`, `deny`, `unavailable` and `used` in one request, each.
    pub selectors: usize,
    /// Names in one change of a session's warm set.
    pub session_names: usize,
    /// Calls in one request.
    pub calls: usize,
    /// After this time a request is answered with a 503, in milliseconds.
    pub request_timeout_ms: u64,
    /// Requests per second with a key that says nothing else, in the long run; over it they are answered with a 429 and
    /// `Retry-After`. What is left tell the headers `RateLimit-Policy` and `RateLimit` of every answer. 0: no limit.
    pub requests_per_second: u32,
    /// Requests with such a key that may come at once.
    pub burst: u32,
    /// Searches per minute with such a key that ask an endpoint; over it they rank by keywords. 0: no limit.
    pub rerank_per_minute: u32,
    /// Requests that run at the same time, no more than half of them with one key.
    pub concurrent_requests: usize,
    /// Requests that wait for others to end; more are answered with a 503 at once.
    pub waiting_requests: usize,
    /// Sessions of one user.
    pub sessions_per_user: u32,
    /// Users and projects that one setup key can begin to write configs or catalogs for.
    pub scopes_per_key: u32,
    /// An idle session, and a `tools_ref` that is not used, end after this time, in seconds.
    pub session_ttl_seconds: u64,
}

/// Read the limits
///
/// What a request may hold, as the operator set it.
#[utoipa::path(get, path = "/v1/limits", operation_id = "get_limits", tag = "service",
    responses((status = 200, description = "All limits", body = LimitsDocument)))]
pub(crate) async fn read(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
) -> Json<LimitsDocument> {
    let (limits, http) = (service.limits(), context.limits());
    let rate = limits.keys.rate;
    Json(LimitsDocument {
        body_bytes: http.body_bytes,
        depth: http.json_depth,
        tools_per_catalog: limits.tools_per_catalog,
        tool_bytes: limits.tool_bytes,
        query_chars: limits.query_chars,
        queries: limits.queries,
        names: limits.names,
        selectors: MAX_SELECTORS,
        session_names: MAX_SESSION_NAMES,
        calls: limits.calls,
        request_timeout_ms: u64::try_from(http.request_timeout.as_millis()).unwrap_or(u64::MAX),
        requests_per_second: rate.requests_per_second.unwrap_or_default(),
        burst: rate.burst.unwrap_or_default(),
        rerank_per_minute: rate.rerank_per_minute.unwrap_or_default(),
        concurrent_requests: http.slots.running,
        waiting_requests: http.slots.waiting,
        sessions_per_user: limits.sessions,
        scopes_per_key: limits.keys.scopes,
        session_ttl_seconds: limits.session_ttl.as_secs(),
    })
}
