//! The client behind [`ToolSource`]: a server is checked, connected to, read and left, under one deadline.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::dns::Resolve;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::{ExponentialBackoff, NeverRetry, SseRetryPolicy};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;
use url::Url;

use super::command::{self, Running};
use super::fault::{McpFailure, McpFault};
use super::guarded::GuardedClient;
use super::session::{Handler, MAX_TOTAL_BYTES, Session, Trouble};
use super::{McpAddress, McpBounds, McpListing, OnChange, OnRead, ToolSource};
use crate::rerank::{AddressPolicy, GuardedClients, SystemLookup, check_url};

/// Largest answer, in bytes: one page of tools.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Servers that are read at once; each may hold some pages in memory.
const PARALLEL: usize = 4;

/// Longest end of a session, after which it is left as it is.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a watched server is asked for a sign of life, and how long that may take.
const PING_EVERY: Duration = Duration::from_secs(60);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Longest time to connect to a server that is to be watched.
const WATCH_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Lists tools of servers over HTTP and of commands that the operator allows.
pub struct McpClient {
    policy: Arc<AddressPolicy>,
    clients: GuardedClients,
    commands: Vec<String>,
    running: Semaphore,
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient").field("commands", &self.commands).finish_non_exhaustive()
    }
}

impl McpClient {
    /// Builds the clients. `commands` may be run, as they are written there. A rustls crypto provider must have been
    /// installed for the process before.
    ///
    /// # Errors
    /// The system's certificate store cannot be used.
    pub fn new(policy: AddressPolicy, commands: Vec<String>) -> Result<Self, reqwest::Error> {
        let lookup: Arc<dyn Resolve> = Arc::new(SystemLookup);
        Self::with_lookup(policy, commands, &lookup)
    }

    fn with_lookup(
        policy: AddressPolicy,
        commands: Vec<String>,
        lookup: &Arc<dyn Resolve>,
    ) -> Result<Self, reqwest::Error> {
        let policy = Arc::new(policy);
        let clients = GuardedClients::new(&policy, lookup)?;
        Ok(Self { policy, clients, commands, running: Semaphore::new(PARALLEL) })
    }

    async fn connect(
        &self,
        url: &Url,
        headers: &[(String, SecretString)],
        streams: Arc<dyn SseRetryPolicy>,
        (handler, trouble): (Handler, &Trouble),
    ) -> Result<Session, McpFailure> {
        let client = GuardedClient::new(&self.clients, url.scheme() == "http", trouble);
        Session::open(transport(client, url, headers, streams)?, handler, false).await
    }

    /// Reads a server once it is its turn.
    async fn read(
        &self,
        address: &McpAddress,
        most: usize,
        on_read: OnRead<'_>,
        trouble: &Trouble,
        child: &mut Option<Running>,
    ) -> Result<McpListing, McpFailure> {
        let _turn = self.running.acquire().await;
        let session = match address {
            McpAddress::Http { url, headers } => {
                let streams = Arc::new(NeverRetry::default());
                self.connect(url, headers, streams, (Handler::default(), trouble)).await?
            }
            McpAddress::Command { command, args, env } => {
                let (running, (output, input)) =
                    command::start((command, args, env), MAX_TOTAL_BYTES, trouble)?;
                *child = Some(running);
                // What is counted ends before a line gets that long.
                let transport =
                    AsyncRwTransport::new_client(output, input).with_max_line_length(MAX_TOTAL_BYTES);
                Session::open(transport, Handler::default(), true).await?
            }
        };
        on_read(0);
        let listing = session.list(most, on_read).await;
        // The list is there, or lost: how the server takes the end is its own affair.
        drop(tokio::time::timeout(CLOSE_TIMEOUT, session.close()).await);
        listing
    }

    /// A session until it fails.
    async fn follow(
        &self,
        (url, headers): (&Url, &[(String, SecretString)]),
        on_change: OnChange<'_>,
        trouble: &Trouble,
    ) -> McpFailure {
        let handler = Handler::default();
        let changed = Arc::clone(&handler.changed);
        // Proxies cut streams on which nothing happens; the session goes on.
        let streams = Arc::new(ExponentialBackoff::default());
        let connect = self.connect(url, headers, streams, (handler, trouble));
        let session = match tokio::time::timeout(WATCH_CONNECT_TIMEOUT, connect).await {
            Ok(Ok(session)) => session,
            Ok(Err(failure)) => return failure,
            Err(_) => return timeout(WATCH_CONNECT_TIMEOUT),
        };
        if !session.tells_changes() {
            return McpFailure::new(McpFault::Protocol, "the server does not tell when its tools change");
        }
        on_change();
        loop {
            tokio::select! {
                () = changed.notified() => on_change(),
                () = tokio::time::sleep(PING_EVERY) => {
                    match tokio::time::timeout(PING_TIMEOUT, session.ping()).await {
                        Ok(Ok(())) => {}
                        Ok(Err(failure)) => return failure,
                        Err(_) => return timeout(PING_TIMEOUT),
                    }
                }
            }
        }
    }
}

#[async_trait]
impl ToolSource for McpClient {
    fn check(&self, address: &McpAddress) -> Result<(), McpFailure> {
        match address {
            McpAddress::Http { url, .. } => {
                check_url(url, &self.policy).map_err(|why| McpFailure::new(McpFault::RefusedAddress, why))
            }
            McpAddress::Command { command, .. } => command::check(command, &self.commands),
        }
    }

    async fn list(
        &self,
        address: &McpAddress,
        bounds: McpBounds,
        on_read: OnRead<'_>,
    ) -> Result<McpListing, McpFailure> {
        self.check(address)?;
        let (trouble, mut child) = (Trouble::default(), None);
        let _asked = trouble.while_asked();
        let read = self.read(address, bounds.tools, on_read, &trouble, &mut child);
        let outcome = tokio::select! {
            biased;
            failure = trouble.told() => Err(failure),
            outcome = tokio::time::timeout(bounds.time, read) => {
                outcome.unwrap_or_else(|_| Err(timeout(bounds.time)))
            }
        };
        // What went wrong first tells more than how the session took it.
        let outcome = outcome.map_err(|failure| trouble.first().unwrap_or(failure));
        let Some(child) = child else { return outcome };
        match outcome {
            Ok(listing) => {
                child.end(None).await;
                Ok(listing)
            }
            Err(failure) => Err(child.end(Some(failure.clone())).await.unwrap_or(failure)),
        }
    }

    async fn watch(&self, address: &McpAddress, on_change: OnChange<'_>) -> McpFailure {
        if let Err(failure) = self.check(address) {
            return failure;
        }
        let McpAddress::Http { url, headers } = address else {
            return McpFailure::new(McpFault::Protocol, "commands are not watched");
        };
        let trouble = Trouble::default();
        let _asked = trouble.while_asked();
        tokio::select! {
            biased;
            failure = trouble.told() => failure,
            failure = self.follow((url, headers), on_change, &trouble) => trouble.first().unwrap_or(failure),
        }
    }
}

fn timeout(after: Duration) -> McpFailure {
    McpFailure::new(McpFault::Timeout, format!("the server was not done after {} ms", after.as_millis()))
}

fn transport(
    client: GuardedClient,
    url: &Url,
    headers: &[(String, SecretString)],
    streams: Arc<dyn SseRetryPolicy>,
) -> Result<StreamableHttpClientTransport<GuardedClient>, McpFailure> {
    let unsendable =
        |name: &str| McpFailure::new(McpFault::Protocol, format!("the header `{name}` cannot be sent"));
    let header = |(name, text): &(String, SecretString)| {
        let parsed = HeaderName::try_from(name.as_str()).map_err(|_| unsendable(name))?;
        let mut value = HeaderValue::try_from(text.expose_secret()).map_err(|_| unsendable(name))?;
        value.set_sensitive(true);
        Ok((parsed, value))
    };
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers.iter().map(header).collect::<Result<_, _>>()?)
        .max_sse_event_size(MAX_ANSWER_BYTES)
        .max_json_response_size(MAX_ANSWER_BYTES)
        .max_concurrent_requests(1);
    config.retry_config = streams;
    config.reinit_on_expired_session = false;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

#[cfg(test)]
mod tests;
