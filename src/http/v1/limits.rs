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
        session_ttl_seconds: limits.session_ttl.as_secs(),
    })
}
