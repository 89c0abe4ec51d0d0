//! The registry behind the metrics: one handle for each series, found without formatting a label.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use axum::http::{Method, StatusCode};
use metrics::{Counter, Gauge, Histogram, Key, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use super::table::{
    ASSEMBLIES, BREAKER, BREAKERS_OPEN, BUILD_INFO, CACHE_BREAKS, CACHE_BYTES, CACHE_ENTRIES, COMMIT_SECONDS,
    ENDPOINT_CALLS, ENDPOINT_SECONDS, HELD_BACK, IN_FLIGHT, IN_FLIGHT_MAX, LISTENING, Label, METRICS, Metric,
    MetricKind, NO_MATCH, PANICS, POOL, POOL_MAX, PRELOADS, QUARANTINED, READ_WAIT, REQUESTS, SEARCH_SECONDS,
    SEARCHES, STORAGE_FULL, TOKENS_ALL, TOKENS_ANSWERS, TOKENS_SAVED, TOKENS_SENT, TOOLS_HELD, UNKNOWN_CALLS,
    Values, WARM_ADDED, WARM_EVICTIONS, WARM_TOUCHED, WRITE_QUEUE, WRITE_WAIT, WRITER_BATCH,
};

/// A handle to one series of a metric.
pub(super) trait Series {
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
    let labels: Vec<metrics::Label> =
        labels.map(|(label, value)| metrics::Label::new(label.name, (*value).to_owned())).collect();
    Key::from_parts(metric.name, labels)
}

/// The series of one metric that have been seen, by their label values; finding one takes no formatting.
pub(super) struct Family<H, const N: usize> {
    metric: Metric,
    handles: RwLock<HashMap<[&'static str; N], H>>,
}

impl<H: Series, const N: usize> Family<H, N> {
    fn new(metric: Metric) -> Self {
        Self { metric, handles: RwLock::default() }
    }

    pub(super) fn with(
        &self,
        recorder: &PrometheusRecorder,
        values: [&'static str; N],
        record: impl FnOnce(&H),
    ) {
        if let Some(handle) = self.handles.read().unwrap_or_else(PoisonError::into_inner).get(&values) {
            return record(handle);
        }
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        record(handles.entry(values).or_insert_with(|| H::register(recorder, &key(&self.metric, &values))));
    }
}

/// The requests of one route: a few methods and statuses, found by looking along.
type RouteSeries = Vec<(&'static str, &'static str, Histogram)>;

pub(super) struct Registry {
    pub(super) recorder: PrometheusRecorder,
    pub(super) handle: PrometheusHandle,
    requests: RwLock<HashMap<Box<str>, RouteSeries>>,
    pub(super) in_flight: Family<Gauge, 1>,
    pub(super) in_flight_max: Family<Gauge, 1>,
    pub(super) held_back: Family<Counter, 1>,
    pub(super) panics: Counter,
    pub(super) searches: Family<Counter, 2>,
    pub(super) no_match: Family<Counter, 1>,
    pub(super) search_seconds: Family<Histogram, 1>,
    pub(super) endpoint_calls: Family<Counter, 2>,
    pub(super) endpoint_seconds: Family<Histogram, 1>,
    pub(super) breakers_open: Gauge,
    pub(super) breaker: Family<Counter, 1>,
    pub(super) assemblies: Family<Counter, 2>,
    pub(super) preloads: Family<Counter, 2>,
    pub(super) cache_breaks: Family<Counter, 1>,
    pub(super) warm_added: Counter,
    pub(super) warm_touched: Counter,
    pub(super) warm_evictions: Counter,
    pub(super) unknown_calls: Family<Counter, 1>,
    pub(super) tokens_all: Counter,
    pub(super) tokens_sent: Counter,
    pub(super) tokens_answers: Family<Counter, 1>,
    pub(super) tokens_saved: Counter,
    pub(super) quarantined: Family<Counter, 1>,
    pub(super) cache_entries: Family<Gauge, 1>,
    pub(super) cache_bytes: Family<Gauge, 1>,
    pub(super) writer_batch: Histogram,
    pub(super) write_wait: Histogram,
    pub(super) read_wait: Histogram,
    pub(super) commit_seconds: Histogram,
    pub(super) write_queue: Gauge,
    pub(super) pool: Family<Gauge, 1>,
    pub(super) pool_max: Gauge,
    pub(super) storage_full: Gauge,
    pub(super) listening: Gauge,
    pub(super) tools_held: Gauge,
}

impl Registry {
    /// The registry with its described metrics; those of the kernel are written beside it.
    pub(super) fn new() -> Self {
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
        for metric in METRICS.iter().filter(|metric| metric.kind == MetricKind::Counter) {
            // A rate needs the value from before the first event.
            if let [Label { values: Values::Closed(values), .. }] = metric.labels {
                values.iter().for_each(|value| drop(Counter::register(&recorder, &key(metric, &[value]))));
            }
        }
        Gauge::register(&recorder, &key(&BUILD_INFO, &[env!("CARGO_PKG_VERSION")])).set(1.0);
        let counter = |metric: &Metric| Counter::register(&recorder, &key(metric, &[]));
        let gauge = |metric: &Metric| Gauge::register(&recorder, &key(metric, &[]));
        let histogram = |metric: &Metric| Histogram::register(&recorder, &key(metric, &[]));
        Self {
            handle: recorder.handle(),
            requests: RwLock::default(),
            in_flight: Family::new(IN_FLIGHT),
            in_flight_max: Family::new(IN_FLIGHT_MAX),
            held_back: Family::new(HELD_BACK),
            panics: counter(&PANICS),
            searches: Family::new(SEARCHES),
            no_match: Family::new(NO_MATCH),
            search_seconds: Family::new(SEARCH_SECONDS),
            endpoint_calls: Family::new(ENDPOINT_CALLS),
            endpoint_seconds: Family::new(ENDPOINT_SECONDS),
            breakers_open: gauge(&BREAKERS_OPEN),
            breaker: Family::new(BREAKER),
            assemblies: Family::new(ASSEMBLIES),
            preloads: Family::new(PRELOADS),
            cache_breaks: Family::new(CACHE_BREAKS),
            warm_added: counter(&WARM_ADDED),
            warm_touched: counter(&WARM_TOUCHED),
            warm_evictions: counter(&WARM_EVICTIONS),
            unknown_calls: Family::new(UNKNOWN_CALLS),
            tokens_all: counter(&TOKENS_ALL),
            tokens_sent: counter(&TOKENS_SENT),
            tokens_answers: Family::new(TOKENS_ANSWERS),
            tokens_saved: counter(&TOKENS_SAVED),
            quarantined: Family::new(QUARANTINED),
            cache_entries: Family::new(CACHE_ENTRIES),
            cache_bytes: Family::new(CACHE_BYTES),
            writer_batch: histogram(&WRITER_BATCH),
            write_wait: histogram(&WRITE_WAIT),
            read_wait: histogram(&READ_WAIT),
            commit_seconds: histogram(&COMMIT_SECONDS),
            write_queue: gauge(&WRITE_QUEUE),
            pool: Family::new(POOL),
            pool_max: gauge(&POOL_MAX),
            storage_full: gauge(&STORAGE_FULL),
            listening: gauge(&LISTENING),
            tools_held: gauge(&TOOLS_HELD),
            recorder,
        }
    }

    pub(super) fn request(&self, route: &str, method: &Method, status: StatusCode, seconds: f64) {
        let method = method_label(method, status);
        let status = status_label(status);
        let is_this = |entry: &&(&str, &str, Histogram)| entry.0 == method && entry.1 == status;
        {
            let requests = self.requests.read().unwrap_or_else(PoisonError::into_inner);
            if let Some((.., histogram)) = requests.get(route).and_then(|series| series.iter().find(is_this))
            {
                return histogram.record(seconds);
            }
        }
        // The recorder gives the same series for the same key, so a race makes a second handle and no second series.
        let histogram = Histogram::register(&self.recorder, &key(&REQUESTS, &[route, method, status]));
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

/// Clients can invent methods, and send each pattern one that it does not take; series must not grow with them.
fn method_label(method: &Method, status: StatusCode) -> &'static str {
    match *method {
        _ if status == StatusCode::METHOD_NOT_ALLOWED => "other",
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

/// The status, where the table lists it.
fn status_label(status: StatusCode) -> &'static str {
    let Some(Values::Closed(known)) = REQUESTS.labels.get(2).map(|label| label.values) else {
        return "other";
    };
    known.iter().copied().find(|known| *known == status.as_str()).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_buckets_is_taken() {
        assert!(with_buckets().is_ok());
    }

    #[test]
    fn labels_of_requests_do_not_grow_with_what_clients_invent() {
        let odd = Method::from_bytes(b"BREW").unwrap();
        let refused = StatusCode::METHOD_NOT_ALLOWED;
        assert_eq!(
            (method_label(&odd, StatusCode::OK), method_label(&Method::PUT, refused)),
            ("other", "other")
        );
        assert_eq!(method_label(&Method::PUT, StatusCode::OK), "PUT");
        assert_eq!((status_label(refused), status_label(StatusCode::IM_A_TEAPOT)), ("405", "other"));
    }
}
