//! The log: one line for each event, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogFormat, LogSettings};

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
