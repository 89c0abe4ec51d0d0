//! Logs, and every metric's name, kind, labels and help in one table.
//!
//! Owns the metric registry and the log set-up. Labels are closed sets: they never hold users, sessions, tools or
//! queries. Nothing has to be started before recording works; a test can make a registry of its own.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{LazyLock, PoisonError, RwLock};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogFormat, LogSettings};

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations in these buckets (upper bounds, in the unit of the metric's name).
    Histogram(&'static [f64]),
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// 0.5 ms to the default request timeout: an assembly takes well under a millisecond, a rerank endpoint seconds.
const REQUEST_BUCKETS: MetricKind = MetricKind::Histogram(&[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
]);

/// 50 µs, a keyword search over a small catalog, to 30 s, beyond the timeout of a usual rerank endpoint.
const SEARCH_BUCKETS: MetricKind = MetricKind::Histogram(&[
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    15.0, 30.0,
]);

/// Powers of two up to the largest batch of the writer.
const BATCH_BUCKETS: MetricKind =
    MetricKind::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);

macro_rules! table {
    ($($id:ident $name:literal $kind:expr, $labels:tt $help:literal)*) => {
        $(const $id: Metric = Metric { name: $name, kind: $kind, labels: &$labels, help: $help };)*

        /// All metrics, as they are documented.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

table! {
    REQUESTS "toolrack_http_request_duration_seconds" REQUEST_BUCKETS, ["route", "method", "status"]
        "Time from a request's headers to its answer."
    SEARCHES "toolrack_search_total" MetricKind::Counter, ["mode", "reason"]
        "Searches by how they were ranked; reason says why a configured endpoint was not used, or none."
    SEARCH_SECONDS "toolrack_search_duration_seconds" SEARCH_BUCKETS, ["mode"]
        "Time that a search took, with its endpoint."
    BREAKER "toolrack_rerank_breaker_changes_total" MetricKind::Counter, ["to"]
        "Changes of a rerank endpoint's circuit breaker: to open, half_open or closed."
    ASSEMBLIES "toolrack_assemble_total" MetricKind::Counter, ["tier", "format"]
        "Assemblies by tier and format."
    PRELOADS "toolrack_preload_total" MetricKind::Counter, ["outcome", "reason"]
        "First assemblies of sessions that asked an endpoint what to preload: found, nothing or failed, and why it failed, or none."
    CACHE_BREAKS "toolrack_cache_break_total" MetricKind::Counter, ["reason"]
        "Assemblies that broke a session's prompt cache prefix."
    WARM_EVICTIONS "toolrack_warm_evictions_total" MetricKind::Counter, []
        "Tools that had to leave a warm set for others."
    UNKNOWN_CALLS "toolrack_unknown_tool_calls_total" MetricKind::Counter, ["route"]
        "Calls and descriptions of tools that the grant does not hold."
    CACHE_ENTRIES "toolrack_cache_entries" MetricKind::Gauge, ["cache"]
        "Entries in an in-memory cache."
    CACHE_BYTES "toolrack_cache_bytes" MetricKind::Gauge, ["cache"]
        "Weight of an in-memory cache."
    TOKENS_ALL "toolrack_tokens_all_total" MetricKind::Counter, []
        "Tokens that all tools would have cost, summed over assemblies. Tokens are exact o200k counts."
    TOKENS_SENT "toolrack_tokens_sent_total" MetricKind::Counter, []
        "Tokens of arrays and separate listings, summed over assemblies."
    TOKENS_ANSWERS "toolrack_tokens_answers_total" MetricKind::Counter, ["route"]
        "Tokens of answers that models read, by route: search, describe, or bridge with its errors. All less sent less answers is the net saving."
    TOKENS_SAVED "toolrack_tokens_saved_total" MetricKind::Counter, []
        "Tokens of tool schemas that assemblies left out, net of their listings and not of answers; an assembly that cost more than it saved counts as 0."
    QUARANTINED "toolrack_quarantined_tools_total" MetricKind::Counter, ["reason"]
        "Uploaded tools that were set aside."
    WRITER_BATCH "toolrack_writer_batch_size" BATCH_BUCKETS, []
        "Writes that one database commit took."
    HELD_BACK "toolrack_requests_held_back_total" MetricKind::Counter, ["reason"]
        "Requests that were answered before they ran: rate (of their key) or overload."
    PANICS "toolrack_panics_total" MetricKind::Counter, []
        "Requests that ended in a panic."
    BUILD_INFO "toolrack_build_info" MetricKind::Gauge, ["version"]
        "Always 1; the label tells the version."
}

/// The metrics of the process.
static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);

/// Records one HTTP request. `route` is the pattern that matched, never the path itself.
pub fn request(route: &str, method: &Method, status: StatusCode, seconds: f64) {
    REGISTRY.request(route, method, status, seconds);
}

/// Records one search: `mode` as in the answer, `reason` as in the answer or `none`.
pub fn search(mode: &'static str, reason: &'static str, seconds: f64) {
    REGISTRY.searches.with(&REGISTRY.recorder, [mode, reason], |counter| counter.increment(1));
    REGISTRY.search_seconds.with(&REGISTRY.recorder, [mode], |histogram| histogram.record(seconds));
}

/// Records that a request was not let in: `rate` or `overload`.
pub fn held_back(reason: &'static str) {
    REGISTRY.held_back.with(&REGISTRY.recorder, [reason], |counter| counter.increment(1));
}

/// Records that an endpoint's breaker changed to this state.
pub fn breaker(to: &'static str) {
    REGISTRY.breaker.with(&REGISTRY.recorder, [to], |counter| counter.increment(1));
}

/// Records one assembly.
pub fn assemble(tier: u8, format: &'static str) {
    const TIERS: [&str; 4] = ["0", "1", "2", "3"];
    let tier = TIERS.get(usize::from(tier)).copied().unwrap_or("other");
    REGISTRY.assemblies.with(&REGISTRY.recorder, [tier, format], |counter| counter.increment(1));
}

/// Records one ranking for a preload: `outcome` is `found`, `nothing` or `failed`, `reason` as in the warning or `none`.
pub fn preload(outcome: &'static str, reason: &'static str) {
    REGISTRY.preloads.with(&REGISTRY.recorder, [outcome, reason], |counter| counter.increment(1));
}

/// Records that an assembly broke a session's cache prefix; `reason` as in the answer.
pub fn cache_break(reason: &'static str) {
    REGISTRY.cache_breaks.with(&REGISTRY.recorder, [reason], |counter| counter.increment(1));
}

/// Records tools that left a warm set for others.
pub fn warm_evictions(tools: usize) {
    REGISTRY.warm_evictions.increment(tools as u64);
}

/// Records a call of a tool that the grant does not hold; `route` is `call`, `describe` or `bridge`.
pub fn unknown_tool_call(route: &'static str) {
    REGISTRY.unknown_calls.with(&REGISTRY.recorder, [route], |counter| counter.increment(1));
}

/// Sets the size of an in-memory cache.
pub fn cache_size(cache: &'static str, entries: u64, bytes: u64) {
    REGISTRY.cache_entries.with(&REGISTRY.recorder, [cache], |gauge| gauge.set(entries as f64));
    REGISTRY.cache_bytes.with(&REGISTRY.recorder, [cache], |gauge| gauge.set(bytes as f64));
}

/// Records what all tools would have cost in an assembly, and what was sent, in tokens.
pub fn assembly_tokens(all: u64, sent: u64) {
    REGISTRY.tokens_all.increment(all);
    REGISTRY.tokens_sent.increment(sent);
    REGISTRY.tokens_saved.increment(all.saturating_sub(sent));
}

/// Records the tokens of an answer that a model reads; `route` is `search`, `describe` or `bridge`.
pub fn answer_tokens(route: &'static str, tokens: u64) {
    REGISTRY.tokens_answers.with(&REGISTRY.recorder, [route], |counter| counter.increment(tokens));
}

/// Records a tool that was set aside; `reason` is the code of its quarantine.
pub fn quarantined(reason: &'static str) {
    REGISTRY.quarantined.with(&REGISTRY.recorder, [reason], |counter| counter.increment(1));
}

/// Records how many writes one commit took.
pub fn writer_batch(writes: usize) {
    REGISTRY.writer_batch.record(writes as f64);
}

/// Records a request that ended in a panic.
pub fn panicked() {
    REGISTRY.panics.increment(1);
}

/// All metrics in the Prometheus text format.
pub fn render() -> String {
    REGISTRY.handle.render()
}

/// Folds what histograms have collected every 5 seconds, so that they do not grow when nobody scrapes. Never ends.
pub async fn upkeep() {
    let mut ticks = tokio::time::interval(Duration::from_secs(5));
    loop {
        ticks.tick().await;
        REGISTRY.handle.run_upkeep();
    }
}

/// A handle to one series of a metric.
trait Series {
    fn register(recorder: &PrometheusRecorder, key: &Key) -> Self;
}

/// The exporter has no use for level and target.
const METADATA: Metadata<'static> = Metadata::new("toolrack", Level::INFO, None);

impl Series for Counter {
    fn register(recorder: &PrometheusRecorder, key: &Key) -> Self {
        recorder.register_counter(key, &METADATA)
    }
}

impl Series for Gauge {
    fn register(recorder: &PrometheusRecorder, key: &Key) -> Self {
        recorder.register_gauge(key, &METADATA)
    }
}

impl Series for Histogram {
    fn register(recorder: &PrometheusRecorder, key: &Key) -> Self {
        recorder.register_histogram(key, &METADATA)
    }
}

fn key(metric: &Metric, values: &[&str]) -> Key {
    let labels = metric.labels.iter().zip(values);
    let labels: Vec<Label> = labels.map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
    Key::from_parts(metric.name, labels)
}

/// The series of one metric that have been seen, by their label values; finding one takes no formatting.
struct Family<H, const N: usize> {
    metric: Metric,
    handles: RwLock<HashMap<[&'static str; N], H>>,
}

impl<H: Series, const N: usize> Family<H, N> {
    fn new(metric: Metric) -> Self {
        Self { metric, handles: RwLock::default() }
    }

    fn with(&self, recorder: &PrometheusRecorder, values: [&'static str; N], record: impl FnOnce(&H)) {
        if let Some(handle) = self.handles.read().unwrap_or_else(PoisonError::into_inner).get(&values) {
            return record(handle);
        }
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        record(handles.entry(values).or_insert_with(|| H::register(recorder, &key(&self.metric, &values))));
    }
}

/// The requests of one route: a few methods and statuses, found by looking along.
type RouteSeries = Vec<(&'static str, StatusCode, Histogram)>;

struct Registry {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    requests: RwLock<HashMap<Box<str>, RouteSeries>>,
    searches: Family<Counter, 2>,
    breaker: Family<Counter, 1>,
    held_back: Family<Counter, 1>,
    search_seconds: Family<Histogram, 1>,
    assemblies: Family<Counter, 2>,
    preloads: Family<Counter, 2>,
    cache_breaks: Family<Counter, 1>,
    unknown_calls: Family<Counter, 1>,
    cache_entries: Family<Gauge, 1>,
    cache_bytes: Family<Gauge, 1>,
    quarantined: Family<Counter, 1>,
    tokens_answers: Family<Counter, 1>,
    warm_evictions: Counter,
    tokens_all: Counter,
    tokens_sent: Counter,
    tokens_saved: Counter,
    writer_batch: Histogram,
    panics: Counter,
}

impl Registry {
    fn new() -> Self {
        // A bucket list is refused only when it is empty, and the test below sees to it that none is.
        let recorder = with_buckets().unwrap_or_else(|_| PrometheusBuilder::new()).build_recorder();
        for metric in METRICS {
            match metric.kind {
                MetricKind::Counter => {
                    recorder.describe_counter(metric.name.into(), None, metric.help.into());
                }
                MetricKind::Gauge => {
                    recorder.describe_gauge(metric.name.into(), None, metric.help.into());
                }
                MetricKind::Histogram(_) => {
                    recorder.describe_histogram(metric.name.into(), None, metric.help.into());
                }
            }
        }
        Gauge::register(&recorder, &key(&BUILD_INFO, &[env!("CARGO_PKG_VERSION")])).set(1.0);
        Self {
            handle: recorder.handle(),
            requests: RwLock::default(),
            searches: Family::new(SEARCHES),
            breaker: Family::new(BREAKER),
            held_back: Family::new(HELD_BACK),
            search_seconds: Family::new(SEARCH_SECONDS),
            assemblies: Family::new(ASSEMBLIES),
            preloads: Family::new(PRELOADS),
            cache_breaks: Family::new(CACHE_BREAKS),
            unknown_calls: Family::new(UNKNOWN_CALLS),
            cache_entries: Family::new(CACHE_ENTRIES),
            cache_bytes: Family::new(CACHE_BYTES),
            quarantined: Family::new(QUARANTINED),
            warm_evictions: Counter::register(&recorder, &key(&WARM_EVICTIONS, &[])),
            tokens_answers: Family::new(TOKENS_ANSWERS),
            tokens_all: Counter::register(&recorder, &key(&TOKENS_ALL, &[])),
            tokens_sent: Counter::register(&recorder, &key(&TOKENS_SENT, &[])),
            tokens_saved: Counter::register(&recorder, &key(&TOKENS_SAVED, &[])),
            writer_batch: Histogram::register(&recorder, &key(&WRITER_BATCH, &[])),
            panics: Counter::register(&recorder, &key(&PANICS, &[])),
            recorder,
        }
    }

    fn request(&self, route: &str, method: &Method, status: StatusCode, seconds: f64) {
        let method = method_label(method);
        let is_this = |entry: &&(&str, StatusCode, Histogram)| entry.0 == method && entry.1 == status;
        {
            let requests = self.requests.read().unwrap_or_else(PoisonError::into_inner);
            if let Some((.., histogram)) = requests.get(route).and_then(|series| series.iter().find(is_this))
            {
                return histogram.record(seconds);
            }
        }
        // The recorder gives the same series for the same key, so a race makes a second handle and no second series.
        let histogram =
            Histogram::register(&self.recorder, &key(&REQUESTS, &[route, method, status.as_str()]));
        histogram.record(seconds);
        let mut requests = self.requests.write().unwrap_or_else(PoisonError::into_inner);
        let series = requests.entry(route.into()).or_default();
        if !series.iter().any(|entry| is_this(&entry)) {
            series.push((method, status, histogram));
        }
    }
}

fn with_buckets() -> Result<PrometheusBuilder, BuildError> {
    METRICS.iter().try_fold(PrometheusBuilder::new(), |builder, metric| match metric.kind {
        MetricKind::Histogram(buckets) => {
            builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)
        }
        MetricKind::Counter | MetricKind::Gauge => Ok(builder),
    })
}

/// Clients can invent methods; a label must not grow with them.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Why logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("log.level: {0}")]
    Level(#[from] tracing_subscriber::filter::ParseError),
    #[error("logs cannot be set up: {0}")]
    Taken(#[from] tracing_subscriber::util::TryInitError),
}

/// Sends logs to standard error from now on; once per process.
pub fn start_logs(settings: &LogSettings) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(&settings.level)?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.format {
        LogFormat::Text => logs.with_ansi(std::io::stderr().is_terminal()).finish().try_init()?,
        LogFormat::Json => logs.json().flatten_event(true).finish().try_init()?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_conventions_of_prometheus() {
        for metric in METRICS {
            assert!(metric.name.starts_with("toolrack_") && !metric.help.is_empty(), "{}", metric.name);
            match metric.kind {
                MetricKind::Counter => assert!(metric.name.ends_with("_total"), "{}", metric.name),
                MetricKind::Gauge => {}
                MetricKind::Histogram(buckets) => assert!(buckets.is_sorted() && !buckets.is_empty()),
            }
            for label in metric.labels {
                assert!(!["user", "project", "session", "tool", "query"].contains(label), "{}", metric.name);
            }
        }
        assert!(with_buckets().is_ok());
    }

    #[test]
    fn requests_are_counted_by_route_method_and_status() {
        let registry = Registry::new();
        let odd = Method::from_bytes(b"BREW").unwrap();
        for method in [&Method::POST, &Method::POST, &odd] {
            registry.request("/v1/assemble", method, StatusCode::OK, 0.002);
        }
        let text = registry.handle.render();
        for line in [
            "toolrack_http_request_duration_seconds_count{route=\"/v1/assemble\",method=\"POST\",status=\"200\"} 2",
            "toolrack_http_request_duration_seconds_count{route=\"/v1/assemble\",method=\"other\",status=\"200\"} 1",
            "method=\"POST\",status=\"200\",le=\"0.0025\"} 2",
            "toolrack_panics_total 0",
            "# TYPE toolrack_http_request_duration_seconds histogram",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(text.contains(concat!("toolrack_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1")));
    }

    #[test]
    fn recorded_values_show_in_the_text() {
        search("test", "timeout", 0.001);
        assemble(2, "test");
        preload("test", "timeout");
        cache_break("test");
        unknown_tool_call("test");
        cache_size("test", 3, 4096);
        quarantined("test");
        warm_evictions(2);
        assembly_tokens(10, 4);
        answer_tokens("test", 7);
        writer_batch(7);
        // Other tests of this process record too, so only labels of this test are looked at with their values.
        let text = render();
        for line in [
            "toolrack_search_total{mode=\"test\",reason=\"timeout\"} 1",
            "toolrack_assemble_total{tier=\"2\",format=\"test\"} 1",
            "toolrack_preload_total{outcome=\"test\",reason=\"timeout\"} 1",
            "toolrack_cache_break_total{reason=\"test\"} 1",
            "toolrack_unknown_tool_calls_total{route=\"test\"} 1",
            "toolrack_cache_bytes{cache=\"test\"} 4096",
            "toolrack_quarantined_tools_total{reason=\"test\"} 1",
            "toolrack_warm_evictions_total ",
            "toolrack_tokens_all_total ",
            "toolrack_tokens_sent_total ",
            "toolrack_tokens_saved_total ",
            "toolrack_tokens_answers_total{route=\"test\"} 7",
            "toolrack_writer_batch_size_bucket{le=\"8\"} ",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
