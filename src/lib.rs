//! Toolrack: an HTTP service that keeps LLM agents' tool lists small without hiding what they can do.
//!
//! The layers, from the outside in; a module may use those to the right of it and never those to the left:
//! `cli` → `http` → `service` → `core`, with `store` and `rerank` behind the traits that `service` asks.
//! `core` is pure: no async, no I/O, no clock, no randomness. ARCHITECTURE.md has the invariants.

pub mod cli;
pub mod config;
pub mod core;
pub mod demo;
pub mod eval;
#[cfg(test)]
mod fuzz_corpus;
pub mod http;
pub mod mcp;
pub mod rerank;
pub mod service;
pub mod store;
pub mod telemetry;
pub mod ui;

/// The target of all spans of `tracing`: they are for traces and never for the log. What stands in one may leave this machine, so it
/// holds no text of a request, no name of a user or session, and no secret.
pub(crate) const SPANS: &str = "toolrack::spans";
