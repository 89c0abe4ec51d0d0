//! A collector of traces on loopback that keeps what it is sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;
use tokio::net::TcpListener;

use crate::app::{Builder, TestApp};

/// One span, in words.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) trace: String,
    pub(super) id: String,
    /// Empty where it has none.
    pub(super) parent: String,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) failed: bool,
    /// Of the service that it is from.
    pub(super) resource: BTreeMap<String, String>,
}

/// What was sent, as it came.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

type Seen = Arc<Mutex<Vec<Sent>>>;

/// A collector that runs until the test ends.
#[derive(Debug)]
pub(super) struct Collector {
    address: SocketAddr,
    seen: Seen,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let seen = Seen::default();
        let take = |State(seen): State<Seen>, headers: HeaderMap, body: Bytes| async move {
            seen.lock().unwrap().push(Sent { headers, body });
        };
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&seen));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, seen }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A service that sends its traces here.
    pub(super) fn service(&self) -> Builder {
        TestApp::builder()
            .set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true")
            .set("TOOLRACK_TRACING_OTLP_ENDPOINT", self.url())
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.seen.lock().unwrap().clone()
    }

    /// All spans so far.
    pub(super) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for sent in self.sent() {
            let request = ExportTraceServiceRequest::decode(sent.body).unwrap();
            for resource_spans in request.resource_spans {
                let resource = attributes(&resource_spans.resource.unwrap().attributes);
                for span in resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                    assert!(span.events.is_empty() && span.links.is_empty(), "{span:?}");
                    spans.push(Span {
                        kind: span.kind(),
                        failed: span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error),
                        name: span.name,
                        trace: hex::encode(span.trace_id),
                        id: hex::encode(span.span_id),
                        parent: hex::encode(span.parent_span_id),
                        attributes: attributes(&span.attributes),
                        resource: resource.clone(),
                    });
                }
            }
        }
        spans
    }

    /// The spans of a trace, once there is one of each of these names.
    pub(super) async fn trace(&self, trace: &str, names: &[&str]) -> Vec<Span> {
        let wait = async {
            loop {
                let spans: Vec<Span> = self.spans().into_iter().filter(|span| span.trace == trace).collect();
                if names.iter().all(|name| spans.iter().any(|span| span.name == *name)) {
                    return spans;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let spans = tokio::time::timeout(Duration::from_secs(60), wait).await;
        spans.unwrap_or_else(|_| panic!("{names:?} of {trace} are not all in {:#?}", self.spans()))
    }
}

fn attributes(list: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        other => panic!("{other:?} is no text and no number"),
    };
    list.iter().map(|attribute| (attribute.key.clone(), text(&attribute.value))).collect()
}
