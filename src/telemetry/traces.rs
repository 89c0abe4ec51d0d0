//! Traces: which requests have one, what is told of a request, and how a caller's trace goes on here.
//!
//! Spans are those of `tracing` with the target [`crate::SPANS`], made where the work is done; names and attributes follow the conventions of
//! OpenTelemetry (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>), but for what would tell whose request it is: no path
//! (`url.path`), no address of a client, no `user_agent.original`, no `Host` that a client chose. Where no collector is set, no span is made.

mod export;

use std::net::SocketAddr;
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{Link, SpanKind, TraceContextExt as _, TraceId, TraceState, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    Sampler, SamplingDecision, SamplingResult, SdkTracerProvider, ShouldSample, Tracer,
};
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::registry::LookupSpan;

pub use self::export::ExportError;
use crate::config::TracingSettings;

/// The caller's trace, and what it knows of it (<https://www.w3.org/TR/trace-context/>).
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Tells the caller which trace its request has (<https://www.w3.org/TR/trace-context-2/#traceresponse-header>).
pub const TRACERESPONSE: HeaderName = HeaderName::from_static("traceresponse");

/// Paths that are asked all the time and tell nothing.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

static PROPAGATOR: LazyLock<TraceContextPropagator> = LazyLock::new(TraceContextPropagator::new);

/// Where this server listens.
static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();

/// Tells traces the address of the server.
pub fn serve_at(address: SocketAddr) {
    // A second server of the process would be a test's.
    let _second = ADDRESS.set(address);
}

/// The traces of the process, to be ended with it.
#[derive(Debug, Default)]
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Sends what is left, for so long at most.
    pub async fn close(self, within: Duration) {
        let Some(provider) = self.0 else { return };
        // It waits for its own thread. What cannot be sent is told where it is sent.
        drop(tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(within)).await);
    }
}

/// The layer that makes traces of spans, where there is a collector. Has to run within a runtime, which sends them.
pub(super) fn layer<S>(
    settings: &TracingSettings,
) -> Result<(Option<OpenTelemetryLayer<S, Tracer>>, Traces), ExportError>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let Some(collector) = &settings.otlp_endpoint else { return Ok((None, Traces::default())) };
    let resource = Resource::builder_empty().with_attributes([
        KeyValue::new("service.name", settings.service_name.clone()),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        // Tells replicas apart.
        KeyValue::new("service.instance.id", hex::encode(rand::random::<[u8; 8]>())),
        KeyValue::new("telemetry.sdk.name", "opentelemetry"),
        KeyValue::new("telemetry.sdk.language", "rust"),
    ]);
    let root = Box::new(RequestSampler(Sampler::TraceIdRatioBased(settings.sample_ratio)));
    let provider = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(root))
        .with_resource(resource.build())
        .with_span_processor(export::processor(collector, &settings.otlp_headers)?)
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("toolrack"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false);
    Ok((Some(layer), Traces(Some(provider))))
}

/// Decides about traces that begin here: a write that belongs to no request is none.
#[derive(Debug, Clone)]
struct RequestSampler(Sampler);

impl ShouldSample for RequestSampler {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        if attributes.iter().any(|attribute| attribute.key.as_str() == "db.system.name") {
            let (decision, attributes) = (SamplingDecision::Drop, Vec::new());
            return SamplingResult { decision, attributes, trace_state: TraceState::NONE };
        }
        self.0.should_sample(parent, trace, name, kind, attributes, links)
    }
}

/// The span of a request: in its caller's trace, where the headers name one. `route` is the pattern that matched.
pub fn request_span(
    method: &Method,
    path: &str,
    route: Option<&str>,
    version: Version,
    headers: &HeaderMap,
) -> Span {
    if PROBES.contains(&path) {
        return Span::none();
    }
    let span = tracing::info_span!(
        target: crate::SPANS,
        parent: None,
        "request",
        "otel.name" = name(method, route),
        "otel.kind" = "server",
        "http.request.method" = known(method).unwrap_or("_OTHER"),
        "http.route" = route,
        "url.scheme" = "http",
        "network.protocol.version" = if version == Version::HTTP_2 { "2" } else { "1.1" },
        // One that means all addresses names none.
        "server.address" =
            ADDRESS.get().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string()),
        "server.port" = ADDRESS.get().map(SocketAddr::port),
        "http.response.status_code" = Empty,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    );
    if !span.is_disabled() && headers.contains_key(TRACEPARENT) {
        let caller = PROPAGATOR.extract(&HeaderExtractor(headers));
        // A span that has begun cannot be moved; this one has not.
        drop(span.set_parent(caller));
    }
    span
}

/// Adds to a request's span how it was answered; `error` is the code of a problem. What the caller is told of its trace, if it is
/// kept.
pub fn answered(span: &Span, status: StatusCode, error: Option<&'static str>) -> Option<HeaderValue> {
    if span.is_disabled() {
        return None;
    }
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("error.type", error.unwrap_or(status.as_str()));
        span.record("otel.status_code", "ERROR");
    }
    let context = span.context();
    let trace = context.span().span_context().clone();
    let text = format!("00-{}-{}-01", trace.trace_id(), trace.span_id());
    trace.is_sampled().then(|| HeaderValue::try_from(text).ok()).flatten()
}

/// The trace that the running code belongs to.
pub(super) fn current() -> Option<TraceId> {
    let context = Context::current();
    let span = context.span();
    let trace = span.span_context();
    trace.is_valid().then(|| trace.trace_id())
}

/// `POST /v1/search`, or the method alone.
fn name(method: &Method, route: Option<&str>) -> String {
    let method = known(method).unwrap_or("HTTP");
    route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"))
}

/// The methods that the conventions know; others are text of a client.
fn known(method: &Method) -> Option<&'static str> {
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"]
        .into_iter()
        .find(|known| *known == method.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_spans_hold_patterns_and_known_methods_only() {
        let odd = Method::from_bytes(b"BREW").unwrap();
        assert_eq!(name(&Method::POST, Some("/v1/users/{user}/config")), "POST /v1/users/{user}/config");
        assert_eq!((name(&Method::GET, None), name(&odd, None)), ("GET".to_owned(), "HTTP".to_owned()));
    }

    #[test]
    fn without_a_collector_there_are_no_spans() {
        let settings = TracingSettings {
            otlp_endpoint: None,
            otlp_headers: Vec::new(),
            sample_ratio: 1.0,
            service_name: "toolrack".to_owned(),
        };
        let (layer, traces) = layer::<tracing_subscriber::Registry>(&settings).unwrap();
        assert!(layer.is_none() && traces.0.is_none());
        let span = request_span(&Method::GET, "/v1/limits", None, Version::HTTP_11, &HeaderMap::new());
        assert!(span.is_disabled() && answered(&span, StatusCode::OK, None).is_none());
    }
}
