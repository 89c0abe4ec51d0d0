//! Sending spans to a collector: OTLP over HTTP (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).
//!
//! A thread of its own gathers spans and sends them in batches through the runtime; no request waits for it, and what it cannot take
//! is dropped. Requests to the collector are made outside of any span, so they are never traced themselves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::runtime::Handle;

/// How long spans are gathered.
const GATHER: Duration = Duration::from_secs(1);

/// Spans that may wait; more are dropped. Each takes about 1 KB.
const MAX_WAITING: usize = 8_192;

/// Spans in one request.
const MAX_BATCH: usize = 512;

/// Longest time of a request to the collector.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A collector that does not answer is told this often.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Of an answer so much is read: it may tell how many spans were refused, in a few bytes.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("tracing.otlp_headers: a header cannot be sent")]
    Header,
    #[error("no client for the collector of traces could be made: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the exporter of traces cannot be made: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// What takes ended spans and sends them.
pub(super) fn processor(
    collector: &Url,
    headers: &[(String, SecretString)],
) -> Result<BatchSpanProcessor, ExportError> {
    let sender = Sender::new(collector.clone(), headers)?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(sender)
        .with_endpoint(collector.as_str())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(TIMEOUT)
        .build()?;
    let batches = BatchConfigBuilder::default()
        .with_scheduled_delay(GATHER)
        .with_max_queue_size(MAX_WAITING)
        .with_max_export_batch_size(MAX_BATCH);
    Ok(BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build())
}

/// The way to the collector. What is sent where is decided by the settings alone, also when the environment has variables of
/// OpenTelemetry.
#[derive(Debug)]
struct Sender {
    client: Client,
    collector: Url,
    /// Marked as sensitive, so that `Debug` does not show them.
    headers: HeaderMap,
    /// The thread that gathers spans is none of the runtime's.
    runtime: Handle,
    trouble: Arc<Mutex<Trouble>>,
}

impl Sender {
    fn new(collector: Url, headers: &[(String, SecretString)]) -> Result<Self, ExportError> {
        // A second installation answers with an error that means it is there already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .user_agent(concat!("toolrack/", env!("CARGO_PKG_VERSION")))
            // The headers are for the collector alone.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .timeout(TIMEOUT);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::try_from(name).map_err(|_| ExportError::Header)?;
            let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| ExportError::Header)?;
            value.set_sensitive(true);
            map.append(name, value);
        }
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let (runtime, trouble) = (Handle::current(), Arc::default());
        Ok(Self { client: client.build()?, collector, headers: map, runtime, trouble })
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent =
            self.client.post(self.collector.clone()).headers(self.headers.clone()).body(request.into_body());
        let trouble = Arc::clone(&self.trouble);
        let answered = self.runtime.spawn(async move {
            let outcome = send(sent).await;
            let fault = match &outcome {
                Ok(answer) if answer.status().is_success() => None,
                Ok(answer) => Some(format!("it answered with status {}", answer.status().as_u16())),
                Err(error) => Some(fault(error)),
            };
            trouble.lock().unwrap_or_else(PoisonError::into_inner).note(fault, Instant::now());
            outcome
        });
        Ok(answered.await??)
    }
}

async fn send(request: reqwest::RequestBuilder) -> Result<Response<Bytes>, reqwest::Error> {
    let mut answer = request.send().await.map_err(reqwest::Error::without_url)?;
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        let room = MAX_ANSWER_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == MAX_ANSWER_BYTES {
            body.clear();
            break;
        }
    }
    let mut told = Response::new(Bytes::from(body));
    *told.status_mut() = answer.status();
    Ok(told)
}

/// What went wrong, without the address.
fn fault(error: &reqwest::Error) -> String {
    let kind = if error.is_timeout() {
        "it did not answer in time"
    } else if error.is_connect() {
        "it cannot be reached"
    } else {
        "the connection broke"
    };
    kind.to_owned()
}

/// What is known of a collector that does not take traces.
#[derive(Debug, Default)]
struct Trouble {
    /// Requests that failed since it was told.
    failed: u64,
    told: Option<Instant>,
}

impl Trouble {
    fn note(&mut self, fault: Option<String>, now: Instant) {
        let Some(fault) = fault else { return };
        self.failed += 1;
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < TELL_EVERY) {
            return;
        }
        tracing::warn!(
            fault,
            failed = self.failed,
            "the collector of traces does not take them; they are dropped"
        );
        (self.failed, self.told) = (0, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_fails_is_told_once_a_minute() {
        let (mut trouble, now) = (Trouble::default(), Instant::now());
        let fails = || Some("it cannot be reached".to_owned());
        trouble.note(None, now);
        assert!(trouble.told.is_none());
        trouble.note(fails(), now);
        for second in 1..60 {
            trouble.note(fails(), now + Duration::from_secs(second));
            trouble.note(None, now + Duration::from_secs(second));
        }
        assert_eq!((trouble.told, trouble.failed), (Some(now), 59));
        trouble.note(fails(), now + TELL_EVERY);
        assert_eq!((trouble.told, trouble.failed), (Some(now + TELL_EVERY), 0));
    }

    #[tokio::test]
    async fn headers_are_sent_and_never_shown() {
        let collector = Url::parse("http://127.0.0.1:1/v1/traces").unwrap();
        let headers = [("authorization".to_owned(), "Bearer canary".to_owned().into())];
        let sender = Sender::new(collector, &headers).unwrap();
        assert_eq!(sender.headers["authorization"], "Bearer canary");
        assert!(!format!("{sender:?}").contains("canary"));
    }
}
