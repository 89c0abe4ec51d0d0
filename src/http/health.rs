//! For operators and their machines: `/healthz`, `/readyz`, `/metrics`.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::http::layers::HttpContext;
use crate::service::{Error, Kind, Toolrack};
use crate::telemetry::{self, warn_of};

/// The media type of the Prometheus text format.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// That the process runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct HealthDocument {
    /// Always `ok`.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// Version of the program.
    #[schema(value_type = String)]
    pub version: &'static str,
}

/// Whether requests should be sent here.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadinessDocument {
    /// `ready` or `not_ready`.
    #[schema(value_type = String)]
    pub status: &'static str,
    pub components: ReadinessComponents,
}

/// What has to work for a request to be answered.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadinessComponents {
    pub database: ComponentState,
    /// Room for writes: told, but no reason not to be ready, since reads and searches go on without it. `full` since a write
    /// was answered with `storage_full`, until one is stored and none was refused for some seconds.
    pub storage: ComponentState,
    /// The server itself, which stops taking requests before it ends.
    pub server: ComponentState,
    /// External rerank endpoints: told, but no reason not to be ready, since keywords rank without them.
    pub rerank_endpoints: EndpointsState,
}

/// How the external endpoints do.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct EndpointsState {
    /// `ok`, or `failing` while some endpoint is left alone; a scope's effective config tells which and why.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// Endpoints that are left alone, each with its key and settings.
    pub failing: usize,
}

/// How one component does.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct ComponentState {
    /// `ok`, `unavailable` or `read_only` (database: it is a standby), `full` (storage) or `draining` (server).
    #[schema(value_type = String)]
    pub status: &'static str,
}

/// Tells handlers that the server is about to end.
#[derive(Debug, Clone)]
pub(crate) struct Draining(pub(crate) CancellationToken);

/// Tell that the process runs
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "service", security(()),
    responses((status = 200, description = "It runs", body = HealthDocument)))]
pub(crate) async fn healthz() -> Json<HealthDocument> {
    Json(HealthDocument { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Tell whether requests can be answered
///
/// Names the component that does not work.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "service", security(()),
    responses(
        (status = 200, description = "Requests can be sent", body = ReadinessDocument),
        (status = 503, description = "Requests should go elsewhere", body = ReadinessDocument),
    ))]
pub(crate) async fn readyz(
    State(service): State<Toolrack>,
    State(draining): State<Draining>,
) -> (StatusCode, Json<ReadinessDocument>) {
    let database = service.ready().await;
    if let Err(error) = &database {
        warn_of!(error, "not ready");
    }
    let state = |works: bool, otherwise| ComponentState { status: if works { "ok" } else { otherwise } };
    let serves = !draining.0.is_cancelled();
    let components = ReadinessComponents {
        database: ComponentState { status: database.as_ref().map_or_else(of_database, |()| "ok") },
        storage: state(service.has_room(), "full"),
        server: state(serves, "draining"),
        rerank_endpoints: endpoints(service.failing_endpoints()),
    };
    if database.is_ok() && serves {
        (StatusCode::OK, Json(ReadinessDocument { status: "ready", components }))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Json(ReadinessDocument { status: "not_ready", components }))
    }
}

fn of_database(error: &Error) -> &'static str {
    if error.kind() == Kind::ReadOnly { "read_only" } else { "unavailable" }
}

fn endpoints(failing: usize) -> EndpointsState {
    EndpointsState { status: if failing == 0 { "ok" } else { "failing" }, failing }
}

/// Read the metrics
///
/// In the Prometheus text format.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "service",
    responses((status = 200, description = "All metrics", body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
) -> impl IntoResponse {
    service.report();
    context.report();
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], telemetry::render())
}
