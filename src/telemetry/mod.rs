//! What operators and their tools are told: logs, metrics and traces.
//!
//! `table` has every metric's name, kind, labels and help; `metrics` records them, `process` adds what the kernel knows of
//! this process and its disk, `logs` sets the log up, `traces` sends
//! spans to a collector, where there is one. Labels are closed sets: they never hold users, sessions, tools, queries, hosts
//! or models.

/// Warns of a failure of the database or the service. That the database is away is told once, by the store: then quietly.
macro_rules! warn_of {
    ($error:expr, $($what:tt)+) => {
        if $error.is_outage() {
            tracing::debug!(error = %$error, $($what)+)
        } else {
            tracing::warn!(error = %$error, $($what)+)
        }
    };
}
pub(crate) use warn_of;

mod logs;
mod metrics;
mod process;
mod registry;
mod table;
mod traces;

pub use logs::{StartError, start};
pub use metrics::{
    EndpointCall, Load, answer_tokens, assemble, assembly_tokens, breaker, cache_break, cache_size,
    committed, endpoint_call, held_back, in_flight, load, no_match, panicked, preload, quarantined,
    read_waited, render, request, search, unknown_tool_call, upkeep, warm_change,
};
pub use process::watch_disk;
pub use table::{Label, METRICS, Metric, MetricKind, Values};
pub use traces::{ExportError, TRACERESPONSE, Traces, answered, request_span, serve_at};
