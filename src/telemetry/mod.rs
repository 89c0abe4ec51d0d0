//! What operators and their tools are told: logs and metrics.
//!
//! `table` has every metric's name, kind, labels and help; `metrics` records them, `process` adds what the kernel knows of
//! this process and its disk, `logs` sets the log up. Labels are closed sets: they never hold users, sessions, tools, queries, hosts
//! or models.

mod logs;
mod metrics;
mod process;
mod registry;
mod table;

pub use logs::{LogError, start_logs};
pub use metrics::{
    EndpointCall, Load, answer_tokens, assemble, assembly_tokens, breaker, cache_break, cache_size,
    committed, endpoint_call, held_back, in_flight, load, no_match, panicked, preload, quarantined, render,
    request, search, unknown_tool_call, upkeep, warm_change,
};
pub use process::watch_disk;
pub use table::{Label, METRICS, Metric, MetricKind, Values};
