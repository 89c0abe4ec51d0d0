//! One connection to a server: the handshake, the pages of its tools, its notifications.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, ErrorData, Implementation, ListToolsRequest,
    PaginatedRequestParams, PingRequest, ServerResult,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService, ServiceError};
use rmcp::transport::IntoTransport;
use rmcp::{ClientHandler, ClientLifecycleMode, RoleClient, serve_client_with_lifecycle};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::fault::{McpFailure, McpFault};
use super::{McpListing, McpTool, OnRead};

/// Most pages of a list; those of a real server hold tens of tools.
const MAX_PAGES: usize = 1_000;

/// Most bytes of all tools together.
pub(super) const MAX_TOTAL_BYTES: usize = 32 * 1024 * 1024;

/// What a tool has by the protocol. A server's own members are no settings of ours.
const MEMBERS: [&str; 8] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta"];

/// The first thing that went wrong beside the session, which waits for it no longer.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble(Arc<(OnceLock<McpFailure>, CancellationToken)>, CancellationToken);

impl Trouble {
    pub(super) fn tell(&self, failure: McpFailure) {
        if self.0.0.set(failure).is_ok() {
            self.0.1.cancel();
        }
    }

    pub(super) fn first(&self) -> Option<McpFailure> {
        self.0.0.get().cloned()
    }

    /// Ends requests that are under way once it is dropped: the crate's own task would go on waiting for a server that nobody
    /// asks any more.
    pub(super) fn while_asked(&self) -> DropGuard {
        self.1.clone().drop_guard()
    }

    /// Waits until nobody asks any more.
    pub(super) async fn left(&self) {
        self.1.cancelled().await;
    }

    /// Waits for it.
    pub(super) async fn told(&self) -> McpFailure {
        self.0.1.cancelled().await;
        let failure = self.first();
        failure.unwrap_or_else(|| McpFailure::new(McpFault::Protocol, "the connection broke"))
    }
}

/// What the server may ask of us: nothing. It may say that its tools changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Handler {
    pub changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("toolrack", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
    }
}

/// A connection after its handshake.
#[derive(Debug)]
pub(super) struct Session {
    running: RunningService<RoleClient, Handler>,
    is_command: bool,
}

impl Session {
    pub(super) async fn open<T, E, A>(
        transport: T,
        handler: Handler,
        is_command: bool,
    ) -> Result<Self, McpFailure>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let opened = serve_client_with_lifecycle(handler, transport, ClientLifecycleMode::Initialize).await;
        match opened {
            Ok(running) => Ok(Self { running, is_command }),
            Err(error) => Err(refused(&error, is_command)),
        }
    }

    /// Whether the server says that it tells when its tools change.
    pub(super) fn tells_changes(&self) -> bool {
        let tools = self.running.peer_info().and_then(|info| info.capabilities.tools.clone());
        tools.and_then(|tools| tools.list_changed) == Some(true)
    }

    /// All pages of the tools.
    pub(super) async fn list(&self, most: usize, on_read: OnRead<'_>) -> Result<McpListing, McpFailure> {
        let (mut tools, mut bytes) = (Vec::new(), 0);
        let (mut cursor, mut cursors) = (None, HashSet::new());
        for _ in 0..MAX_PAGES {
            let (page, next) = self.page(cursor).await?;
            bytes += page.iter().map(|tool| tool.json.get().len()).sum::<usize>();
            tools.extend(page);
            if tools.len() > most {
                let detail = format!("the server has more than {most} tools");
                return Err(McpFailure::new(McpFault::TooLarge, detail));
            }
            if bytes > MAX_TOTAL_BYTES {
                let detail = format!("its tools have more than {MAX_TOTAL_BYTES} bytes");
                return Err(McpFailure::new(McpFault::TooLarge, detail));
            }
            on_read(tools.len());
            let Some(next) = next else { return Ok(self.listing(tools)) };
            if !cursors.insert(next.clone()) {
                return Err(McpFailure::new(McpFault::Protocol, "the server names the same page twice"));
            }
            cursor = Some(next);
        }
        Err(McpFailure::new(McpFault::TooLarge, format!("the list has more than {MAX_PAGES} pages")))
    }

    async fn page(&self, cursor: Option<String>) -> Result<(Vec<McpTool>, Option<String>), McpFailure> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        match self.running.send_request(request).await.map_err(|error| broke(&error, self.is_command))? {
            ServerResult::ListToolsResult(page) => {
                Ok((page.tools.iter().filter_map(tool).collect(), page.next_cursor))
            }
            // A page with a tool that is not quite as the protocol has it: the others are not lost for that.
            ServerResult::CustomResult(page) => match page.0.get("tools") {
                Some(Value::Array(tools)) => {
                    let next = page.0.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
                    Ok((tools.iter().filter_map(tool).collect(), next))
                }
                _ => Err(no_list()),
            },
            _ => Err(no_list()),
        }
    }

    fn listing(&self, tools: Vec<McpTool>) -> McpListing {
        let info = self.running.peer_info();
        let server = info.as_ref().and_then(|info| info.server_info.clone());
        McpListing {
            tools,
            server_name: server.as_ref().map(|server| server.name.clone()),
            server_version: server.map(|server| server.version),
            instructions: info.and_then(|info| info.instructions.clone()),
        }
    }

    /// Asks for a sign of life.
    pub(super) async fn ping(&self) -> Result<(), McpFailure> {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let answer = self.running.send_request(ping).await;
        answer.map(drop).map_err(|error| broke(&error, self.is_command))
    }

    /// Ends the session on the server, too.
    pub(super) async fn close(self) {
        // Whatever comes of it, nothing is wanted any more.
        drop(self.running.cancel().await);
    }
}

/// A tool with the members that the protocol knows. What is no object is left to the checks of an upload.
fn tool(listed: &impl Serialize) -> Option<McpTool> {
    let mut value = serde_json::to_value(listed).ok()?;
    if let Value::Object(members) = &mut value {
        let known: Map<String, Value> =
            std::mem::take(members).into_iter().filter(|(key, _)| MEMBERS.contains(&key.as_str())).collect();
        *members = known;
    }
    let name = value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let json: Box<RawValue> = to_raw_value(&value).ok()?;
    Some(McpTool { name, json })
}

fn no_list() -> McpFailure {
    McpFailure::new(McpFault::Protocol, "the answer to tools/list is no list of tools")
}

/// An error that the server answered with.
fn answered(method: &str, error: &ErrorData) -> McpFailure {
    let detail = format!("the server answers {method} with error {}: {}", error.code.0, error.message);
    McpFailure::new(McpFault::Protocol, detail)
}

/// Why there is no session.
fn refused(error: &ClientInitializeError, is_command: bool) -> McpFailure {
    match error {
        ClientInitializeError::JsonRpcError(error) => answered("initialize", error),
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            ended(is_command)
        }
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            McpFailure::new(McpFault::NotMcp, "the answer to initialize is no handshake")
        }
        _ => McpFailure::new(McpFault::Protocol, "the handshake failed"),
    }
}

/// Why a session ended.
fn broke(error: &ServiceError, is_command: bool) -> McpFailure {
    match error {
        ServiceError::McpError(error) => answered("tools/list", error),
        ServiceError::UnexpectedResponse => no_list(),
        _ => ended(is_command),
    }
}

fn ended(is_command: bool) -> McpFailure {
    if is_command {
        McpFailure::new(McpFault::CommandFailed, "the command ended before it listed its tools")
    } else {
        McpFailure::new(McpFault::Unreachable, "the connection ended before the tools were listed")
    }
}
