//! Every metric in one table: its name, kind, labels with all their values, and help.
//!
//! Names follow the conventions of Prometheus (<https://prometheus.io/docs/practices/naming/>): base units, `_total` for counters. A
//! value of a label that is not listed here is a defect, which a test over a busy service looks for.

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

impl MetricKind {
    /// As Prometheus calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }

    /// Series for each set of label values: a histogram has its buckets, the one without a bound, the sum and the count.
    pub const fn series(self) -> usize {
        match self {
            Self::Counter | Self::Gauge => 1,
            Self::Histogram(buckets) => buckets.len() + 3,
        }
    }
}

/// The values that a label can have.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// These.
    Closed(&'static [&'static str]),
    /// What the text says, of which there are at most so many.
    AtMost(usize, &'static str),
    /// These, and the label before it counts them in: a pattern has a few methods, not all.
    Paired(&'static [&'static str]),
}

impl Values {
    /// By how many it multiplies the series of a metric at most.
    pub const fn most(self) -> usize {
        match self {
            Self::Closed(values) => values.len(),
            Self::AtMost(most, _) => most,
            Self::Paired(_) => 1,
        }
    }

    /// Whether a label may have this value, as far as the values are listed.
    pub fn take(self, value: &str) -> bool {
        match self {
            Self::Closed(values) | Self::Paired(values) => values.contains(&value),
            Self::AtMost(..) => true,
        }
    }
}

/// One label of a metric.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    pub name: &'static str,
    pub values: Values,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [Label],
    pub help: &'static str,
}

impl Metric {
    /// What its values are counted in, by its name.
    pub fn unit(&self) -> &'static str {
        let name = self.name.trim_end_matches("_total");
        let units = [("_seconds", "seconds"), ("_bytes", "bytes"), ("_ratio", "ratio"), ("_info", "")];
        let unit = units.iter().find(|(end, _)| name.ends_with(end)).map(|(_, unit)| *unit);
        unit.unwrap_or(if name.contains("tokens") { "tokens" } else { "" })
    }

    /// At most so many series, as Prometheus counts them.
    pub fn most_series(&self) -> usize {
        self.labels.iter().map(|label| label.values.most()).product::<usize>() * self.kind.series()
    }
}

const fn closed(name: &'static str, values: &'static [&'static str]) -> Label {
    Label { name, values: Values::Closed(values) }
}

const fn at_most(name: &'static str, most: usize, what: &'static str) -> Label {
    Label { name, values: Values::AtMost(most, what) }
}

/// 100 µs, less than which an assembly takes, to 10 s; what takes longer has a deadline of its own in the settings.
const REQUEST_BUCKETS: MetricKind = MetricKind::Histogram(&[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
]);

/// 50 µs, a keyword search over a small catalog, to 30 s, beyond the timeout of a usual rerank endpoint.
const SEARCH_BUCKETS: MetricKind = MetricKind::Histogram(&[
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    15.0, 30.0,
]);

/// 5 ms, an endpoint in the same rack, to 30 s, the longest `timeout_ms` of a matcher that is usual.
const ENDPOINT_BUCKETS: MetricKind =
    MetricKind::Histogram(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0]);

/// 50 µs, a commit without a disk that syncs, to 5 s, the time that a lock of another process is waited for.
const DATABASE_BUCKETS: MetricKind = MetricKind::Histogram(&[
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
]);

/// Powers of two up to the largest batch of the writer.
const BATCH_BUCKETS: MetricKind =
    MetricKind::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);

/// Operations of the API, routes of pages, and `unmatched`, each with its methods. What a pattern does not take has the method
/// `other`, so that no client makes series.
const ROUTE: Label = at_most(
    "route",
    250,
    "the pattern that matched, such as `/v1/users/{user}/catalog`, or `unmatched`; with the methods that it takes",
);
const METHOD: Label = Label {
    name: "method",
    values: Values::Paired(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "other"]),
};
const STATUS: Label = closed(
    "status",
    &[
        "200", "201", "202", "204", "303", "304", "400", "401", "403", "404", "405", "408", "409", "412",
        "413", "415", "422", "429", "500", "503", "507", "other",
    ],
);

const MODE: Label = closed("mode", &["rerank", "embedding", "keyword"]);

/// What can go wrong with an endpoint.
macro_rules! faults {
    ($($more:literal),*) => {
        &[
            "timeout", "unreachable", "unauthorized", "payment_required", "not_found", "rate_limited", "redirected",
            "http_error", "error_in_answer", "web_page", "malformed_answer", "answer_too_large", "blocked_address",
            "invalid_request", "circuit_open", "overloaded", $($more),*
        ]
    };
}

const FALLBACK: Label = closed("reason", faults!("key_unreadable", "vectors_unreadable", "none"));
const ENDPOINT_KIND: Label = closed("kind", &["rerank", "embed_query", "embed_texts"]);
const ENDPOINT_OUTCOME: Label = closed("outcome", faults!("ok"));

const CACHE: Label = closed(
    "cache",
    &[
        "answers",
        "catalogs",
        "documents",
        "heads",
        "indexes",
        "inspections",
        "kept_plans",
        "listing_bases",
        "merged",
        "plans",
        "previews",
        "proposals",
        "reviews",
        "sessions",
        "uploads",
        "validators",
        "vectors",
        "view_vectors",
        "views",
    ],
);

macro_rules! table {
    ($($id:ident $name:literal $kind:expr, $labels:tt $help:literal)*) => {
        $(pub(super) const $id: Metric = Metric { name: $name, kind: $kind, labels: &$labels, help: $help };)*

        /// All metrics, as they are documented.
        pub const METRICS: &[Metric] = &[$($id),*];
    };
}

table! {
    REQUESTS "toolrack_http_request_duration_seconds" REQUEST_BUCKETS, [ROUTE, METHOD, STATUS]
        "Time from a request's headers to its answer."
    IN_FLIGHT "toolrack_http_requests_in_flight" MetricKind::Gauge, [closed("state", &["running", "waiting"])]
        "Requests that have a slot or wait for one."
    IN_FLIGHT_MAX "toolrack_http_requests_in_flight_max" MetricKind::Gauge, [closed("state", &["running", "waiting"])]
        "Most requests that may have a slot or wait for one."
    HELD_BACK "toolrack_requests_held_back_total" MetricKind::Counter, [closed("reason", &["rate", "overload"])]
        "Requests that were answered before they ran: rate (of their key) or overload."
    PANICS "toolrack_panics_total" MetricKind::Counter, []
        "Requests that ended in a panic."
    SEARCHES "toolrack_search_total" MetricKind::Counter, [MODE, FALLBACK]
        "Searches by how they were ranked; reason says why a configured endpoint was not used, or none."
    NO_MATCH "toolrack_search_no_match_total" MetricKind::Counter, [MODE]
        "Searches of which no query had a match."
    SEARCH_SECONDS "toolrack_search_duration_seconds" SEARCH_BUCKETS, [MODE]
        "Time that a search took, with its endpoint."
    ENDPOINT_CALLS "toolrack_endpoint_calls_total" MetricKind::Counter, [ENDPOINT_KIND, ENDPOINT_OUTCOME]
        "Rankings and vectors that endpoints were asked for, by what became of it; answers from the cache are not among them."
    ENDPOINT_SECONDS "toolrack_endpoint_call_duration_seconds" ENDPOINT_BUCKETS, [ENDPOINT_KIND]
        "Time that an endpoint took for a ranking or vectors, in all its requests, the wait for a turn included."
    BREAKERS_OPEN "toolrack_rerank_breakers_open" MetricKind::Gauge, []
        "Endpoints, each with its key and settings, that are left alone at present."
    BREAKER "toolrack_rerank_breaker_changes_total" MetricKind::Counter, [closed("to", &["open", "half_open", "closed"])]
        "Changes of a rerank endpoint's circuit breaker: to open, half_open or closed."
    ASSEMBLIES "toolrack_assemble_total" MetricKind::Counter, [
        closed("tier", &["0", "1", "2", "3", "other"]),
        closed("format", &["canonical", "openai_chat", "openai_responses", "anthropic", "gemini", "bedrock_converse", "mcp"]),
    ]
        "Assemblies by tier and format."
    PRELOADS "toolrack_preload_total" MetricKind::Counter, [closed("outcome", &["found", "nothing", "failed"]), FALLBACK]
        "First assemblies of sessions that asked an endpoint what to preload: found, nothing or failed, and why it failed, or none."
    CACHE_BREAKS "toolrack_cache_break_total" MetricKind::Counter, [
        closed("reason", &["none", "first", "warm", "evicted", "catalog", "config", "grant", "format", "epoch"]),
    ]
        "Assemblies that broke a session's prompt cache prefix."
    WARM_ADDED "toolrack_warm_additions_total" MetricKind::Counter, []
        "Tools that entered a warm set."
    WARM_TOUCHED "toolrack_warm_touches_total" MetricKind::Counter, []
        "Tools of a warm set that were found, described or called again."
    WARM_EVICTIONS "toolrack_warm_evictions_total" MetricKind::Counter, []
        "Tools that had to leave a warm set for others."
    UNKNOWN_CALLS "toolrack_unknown_tool_calls_total" MetricKind::Counter, [closed("route", &["call", "describe", "bridge"])]
        "Calls and descriptions of tools that the grant does not hold."
    TOKENS_ALL "toolrack_tokens_all_total" MetricKind::Counter, []
        "Tokens that all tools would have cost, summed over assemblies. Tokens are exact o200k counts."
    TOKENS_SENT "toolrack_tokens_sent_total" MetricKind::Counter, []
        "Tokens of arrays and separate listings, summed over assemblies."
    TOKENS_ANSWERS "toolrack_tokens_answers_total" MetricKind::Counter, [closed("route", &["search", "describe", "bridge"])]
        "Tokens of answers that models read, by route: search, describe, or bridge with its errors. All less sent less answers is the net saving."
    TOKENS_SAVED "toolrack_tokens_saved_total" MetricKind::Counter, []
        "Tokens of tool schemas that assemblies left out, net of their listings and not of answers; an assembly that cost more than it saved counts as 0."
    QUARANTINED "toolrack_quarantined_tools_total" MetricKind::Counter, [
        closed("reason", &[
            "bad_schema", "duplicate_key", "duplicate_name", "group_too_long", "malformed_json", "missing_name", "name_too_long",
            "too_large", "too_many", "too_many_aliases", "unsupported_format", "wrong_type",
        ]),
    ]
        "Uploaded tools that were set aside."
    TOOLS_HELD "toolrack_tools_in_memory" MetricKind::Gauge, []
        "Tools of the catalogs that are held in memory."
    CACHE_ENTRIES "toolrack_cache_entries" MetricKind::Gauge, [CACHE]
        "Entries in an in-memory cache."
    CACHE_BYTES "toolrack_cache_bytes" MetricKind::Gauge, [CACHE]
        "Weight of an in-memory cache; 0 where entries are counted alone."
    WRITER_BATCH "toolrack_writer_batch_size" BATCH_BUCKETS, []
        "Writes that one database commit took."
    WRITE_WAIT "toolrack_db_write_wait_seconds" DATABASE_BUCKETS, []
        "Time that a write waited for its turn."
    READ_WAIT "toolrack_db_read_wait_seconds" DATABASE_BUCKETS, []
        "Time that a read waited for a connection."
    COMMIT_SECONDS "toolrack_db_commit_duration_seconds" DATABASE_BUCKETS, []
        "Time from the first statement of a transaction with writes to its commit."
    WRITE_QUEUE "toolrack_db_write_queue_length" MetricKind::Gauge, []
        "Writes that wait for their turn."
    POOL "toolrack_db_pool_connections" MetricKind::Gauge, [closed("state", &["in_use", "idle"])]
        "Open connections of the pool for reads."
    POOL_MAX "toolrack_db_pool_connections_max" MetricKind::Gauge, []
        "Most connections of the pool for reads."
    STORAGE_FULL "toolrack_db_storage_full" MetricKind::Gauge, []
        "1 while writes find no room, as /readyz tells it, else 0."
    LISTENING "toolrack_db_listening" MetricKind::Gauge, []
        "1 while this process hears what others write to its database, or is the only one; 0 while it only looks now and then."
    DISK_FREE "toolrack_db_disk_free_bytes" MetricKind::Gauge, []
        "Bytes that the file system of the database has free for this program; absent where there is no database file."
    DISK_SIZE "toolrack_db_disk_size_bytes" MetricKind::Gauge, []
        "Size of the file system of the database; absent where there is no database file."
    BUILD_INFO "toolrack_build_info" MetricKind::Gauge, [at_most("version", 1, "the version of the program")]
        "Always 1; the label tells the version."
    CPU_SECONDS "process_cpu_seconds_total" MetricKind::Counter, []
        "Processor time that the process has used."
    RESIDENT "process_resident_memory_bytes" MetricKind::Gauge, []
        "Memory of the process that is in RAM."
    VIRTUAL "process_virtual_memory_bytes" MetricKind::Gauge, []
        "Address space of the process."
    OPEN_FDS "process_open_fds" MetricKind::Gauge, []
        "Open files, sockets and the like."
    MAX_FDS "process_max_fds" MetricKind::Gauge, []
        "Most files, sockets and the like that may be open."
    START_TIME "process_start_time_seconds" MetricKind::Gauge, []
        "Unix time at which the process began."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_conventions_of_prometheus() {
        let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            let name = metric.name;
            assert!(name.starts_with("toolrack_") || name.starts_with("process_"), "{name}");
            assert!(metric.help.ends_with('.'), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind == MetricKind::Counter, "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            // What a histogram adds to its name.
            for end in ["_bucket", "_sum", "_count"] {
                assert!(!name.ends_with(end), "{name}");
            }
            for unit in ["_ms", "_milliseconds", "_micros", "_kb", "_mb", "_percent"] {
                assert!(!name.contains(unit), "{name}");
            }
            if let MetricKind::Histogram(buckets) = metric.kind {
                assert!(buckets.is_sorted() && !buckets.is_empty(), "{name}");
            }
            for label in metric.labels {
                let forbidden =
                    ["user", "project", "session", "tool", "query", "host", "model", "le", "quantile"];
                assert!(!forbidden.contains(&label.name), "{name}");
                assert!((1..=250).contains(&label.values.most()), "{name}");
            }
        }
        assert_eq!(REQUESTS.unit(), "seconds");
        assert_eq!((TOKENS_SENT.unit(), CACHE_BYTES.unit(), BUILD_INFO.unit()), ("tokens", "bytes", ""));
    }

    #[test]
    fn requests_are_told_apart_from_100_microseconds_to_10_seconds() {
        let MetricKind::Histogram(buckets) = REQUESTS.kind else { panic!("a histogram") };
        assert_eq!((buckets.first(), buckets.last()), (Some(&0.0001), Some(&10.0)));
        assert_eq!(REQUESTS.kind.series(), 19);
    }
}
