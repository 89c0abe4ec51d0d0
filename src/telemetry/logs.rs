//! The log: one line for each event, on standard error, with the trace that it belongs to.

use std::fmt;
use std::io::IsTerminal;

use opentelemetry::trace::TraceId;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{Directive, EnvFilter, LevelFilter, filter_fn};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, format};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::traces::{self, ExportError, Traces};
use crate::config::{LogFormat, LogSettings, TracingSettings};

/// What speaks MCP, by the name that its events have; silent unless `log.level` names it.
const MCP_CRATE: &str = "rmcp";

/// How the names of the crates of the databases' client begin.
const SQL_CRATES: &str = "sqlx";

/// Why logs and traces cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("log.level: {0}")]
    Level(#[from] tracing_subscriber::filter::ParseError),
    #[error(transparent)]
    Traces(#[from] ExportError),
    #[error("logs cannot be set up: {0}")]
    Taken(#[from] tracing_subscriber::util::TryInitError),
}

/// Sends logs to standard error, and traces to their collector, from now on; once per process, within its runtime.
///
/// # Errors
/// A setting cannot be used.
pub fn start(log: &LogSettings, tracing: &TracingSettings) -> Result<Traces, StartError> {
    let no_spans: Directive = format!("{}={}", crate::SPANS, LevelFilter::OFF).parse()?;
    let mut filter = EnvFilter::try_new(&log.level)?.add_directive(no_spans);
    // It calls an error what a server merely answers badly; this service tells of that in a line of its own.
    if !log.level.contains(MCP_CRATE) {
        filter = filter.add_directive(format!("{MCP_CRATE}={}", LevelFilter::OFF).parse()?);
    }
    // The store tells when connections are lost, once for all of them.
    if !log.level.contains(SQL_CRATES) {
        filter = filter.add_directive(format!("{SQL_CRATES}={}", LevelFilter::ERROR).parse()?);
    }
    let ansi = std::io::stderr().is_terminal();
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(ansi);
    let logs: Box<dyn Layer<Registry> + Send + Sync> = match log.format {
        LogFormat::Text => logs.event_format(WithTrace(format().with_ansi(ansi))).with_filter(filter).boxed(),
        LogFormat::Json => {
            let json = format().json().flatten_event(true);
            let logs = logs.fmt_fields(format::JsonFields::new()).event_format(WithTrace(json));
            logs.with_filter(filter).boxed()
        }
    };
    let registry = tracing_subscriber::registry().with(logs);
    let (layer, traces) = traces::layer(tracing)?;
    match layer {
        None => registry.try_init()?,
        Some(layer) => {
            let spans = filter_fn(|metadata| metadata.is_span() && metadata.target() == crate::SPANS);
            registry.with(layer.with_filter(spans)).try_init()?;
        }
    }
    Ok(traces)
}

/// Adds `trace_id` to the lines that are written while a request with a trace is answered.
struct WithTrace<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithTrace<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(trace) = traces::current() else { return self.0.format_event(context, writer, event) };
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        writer.write_str(&with_trace(&line, trace))
    }
}

/// A line with a trace at its end: in its object, where it is one.
fn with_trace(line: &str, trace: TraceId) -> String {
    let line = line.trim_end_matches('\n');
    match line.strip_suffix('}').filter(|_| line.starts_with('{')) {
        Some(members) => format!("{members},\"trace_id\":\"{trace}\"}}\n"),
        None => format!("{line} trace_id={trace}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_its_trace() {
        let trace = TraceId::from(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128);
        let text = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(with_trace("INFO a: b\n", trace), format!("INFO a: b trace_id={text}\n"));
        let line = with_trace("{\"message\":\"a\"}\n", trace);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(object, serde_json::json!({"message": "a", "trace_id": text}));
    }
}
