//! Client for MCP servers: what tools a server has.
//!
//! Owns how a server is connected to (streamable HTTP, or a command that the operator allows), what of its answers is
//! read and how much, and what counts as a fault. The crate `rmcp` is known here and nowhere else. Knows nothing of
//! catalogs, scopes or stores, and never calls a tool.
//!
//! `fault` is the table of what can go wrong, `guarded` the HTTP client that keeps the address policy, `command` runs a
//! command and ends it, `session` is one connection, and `client` puts them in order.

mod client;
mod command;
mod fault;
mod guarded;
mod session;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::value::RawValue;
use url::Url;

pub use client::McpClient;
pub use fault::{McpFailure, McpFault};

/// Where a server is, and what it is sent. `Debug` shows no text of a header or variable, and no argument: each may be a key.
#[derive(Clone)]
pub enum McpAddress {
    /// Streamable HTTP.
    Http { url: Url, headers: Vec<(String, SecretString)> },
    /// A program that speaks over its standard input and output.
    Command { command: String, args: Vec<String>, env: Vec<(String, SecretString)> },
}

impl fmt::Debug for McpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { .. } => f.write_str("Http"),
            Self::Command { command, .. } => {
                f.debug_struct("Command").field("command", command).finish_non_exhaustive()
            }
        }
    }
}

/// How much of a server is read.
#[derive(Debug, Clone, Copy)]
pub struct McpBounds {
    /// More tools are [`McpFault::TooLarge`].
    pub tools: usize,
    /// For everything, from the connection to the last page.
    pub time: Duration,
}

/// What a server says of itself and its tools. Nothing of it is checked.
#[derive(Debug, Clone)]
pub struct McpListing {
    /// In the server's order.
    pub tools: Vec<McpTool>,
    pub server_name: Option<String>,
    pub server_version: Option<String>,
    /// What the server tells models about itself.
    pub instructions: Option<String>,
}

/// A tool as the server lists it.
#[derive(Debug, Clone)]
pub struct McpTool {
    /// Empty where the server gives none.
    pub name: String,
    /// A JSON object with the members of a tool that the protocol knows, and no others.
    pub json: Box<RawValue>,
}

/// Told how many tools have been read: 0 once there is a connection, then after each page.
pub type OnRead<'a> = &'a (dyn Fn(usize) + Send + Sync);

/// Told each time that the tools may be others than before.
pub type OnChange<'a> = &'a (dyn Fn() + Send + Sync);

/// What lists the tools of MCP servers.
#[async_trait]
pub trait ToolSource: Send + Sync + fmt::Debug {
    /// Whether this server may be asked, as far as can be known without asking it.
    ///
    /// # Errors
    /// [`McpFault::RefusedAddress`] or [`McpFault::CommandNotAllowed`].
    fn check(&self, address: &McpAddress) -> Result<(), McpFailure>;

    /// Connects, reads all pages of `tools/list`, and ends the connection.
    ///
    /// # Errors
    /// With a fault of the closed table.
    async fn list(
        &self,
        address: &McpAddress,
        bounds: McpBounds,
        on_read: OnRead<'_>,
    ) -> Result<McpListing, McpFailure>;

    /// Keeps a connection and tells when the server says that its tools changed; once at the beginning too, since they may
    /// have changed before. Ends with why the connection ended.
    async fn watch(&self, address: &McpAddress, on_change: OnChange<'_>) -> McpFailure;
}

/// Stands in where no HTTP client could be made: no server can be reached.
#[derive(Debug, Clone, Copy)]
pub struct NoToolSource;

#[async_trait]
impl ToolSource for NoToolSource {
    fn check(&self, _address: &McpAddress) -> Result<(), McpFailure> {
        Ok(())
    }

    async fn list(
        &self,
        _address: &McpAddress,
        _bounds: McpBounds,
        _on_read: OnRead<'_>,
    ) -> Result<McpListing, McpFailure> {
        Err(no_client())
    }

    async fn watch(&self, _address: &McpAddress, _on_change: OnChange<'_>) -> McpFailure {
        no_client()
    }
}

fn no_client() -> McpFailure {
    McpFailure::new(McpFault::Unreachable, "this service could not make an HTTP client")
}
