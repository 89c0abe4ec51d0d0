//! The HTTP client of sessions: it keeps the address policy, and tells what failed in terms of the table of faults.
//!
//! What was refused, cut or redirected is known here with its types; behind `rmcp`'s worker it would be a text.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::Sse;

use super::fault::{McpFailure, McpFault};
use super::session::Trouble;
use crate::rerank::{BlockedAddress, GuardedClients};

/// What `rmcp`'s client says of an answer that is no success begins with this; the status follows.
const STATUS_PREFIX: &str = "HTTP ";

type Headers = HashMap<HeaderName, HeaderValue>;

/// The client of one session.
#[derive(Clone)]
pub(super) struct GuardedClient {
    client: Client,
    trouble: Trouble,
}

impl GuardedClient {
    pub(super) fn new(clients: &GuardedClients, is_plain: bool, trouble: &Trouble) -> Self {
        Self { client: clients.get(is_plain).clone(), trouble: trouble.clone() }
    }
}

impl fmt::Debug for GuardedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuardedClient")
    }
}

impl StreamableHttpClient for GuardedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<Self::Error>> {
        let asked = self.client.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        );
        let answer = tokio::select! {
            answer = asked => answer,
            () = self.trouble.left() => return Err(StreamableHttpError::TransportChannelClosed),
        };
        match answer {
            Ok(StreamableHttpPostResponse::Sse(events, session)) => {
                Ok(StreamableHttpPostResponse::Sse(self.told_when_too_large(events), session))
            }
            Ok(other) => Ok(other),
            Err(error) => {
                self.trouble.tell(failure(&error));
                Err(error)
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), StreamableHttpError<Self::Error>> {
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<Self::Error>> {
        // Many servers have no stream of their own to offer: tools are listed without one.
        self.client.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<Self::Error>> {
        self.client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                custom_headers,
                most,
            )
            .await
    }
}

impl GuardedClient {
    fn told_when_too_large(
        &self,
        events: BoxStream<'static, Result<Sse, SseError>>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let trouble = self.trouble.clone();
        let tell = move |event: &Result<Sse, SseError>| {
            // A broken connection ends the stream, which the session notices.
            if let Err(SseError::Body(error)) = event
                && !error.is::<reqwest::Error>()
            {
                trouble.tell(too_large());
            }
        };
        events.inspect(tell).boxed()
    }
}

fn too_large() -> McpFailure {
    McpFailure::new(McpFault::TooLarge, "an answer of the server is too large")
}

/// The fault of an answer to a request, or of there being none. What the server wrote is not repeated.
fn failure(error: &StreamableHttpError<reqwest::Error>) -> McpFailure {
    let (fault, detail) = match error {
        StreamableHttpError::Client(error) => return unanswered(error),
        StreamableHttpError::AuthRequired(_) => (McpFault::Unauthorized, "HTTP 401".to_owned()),
        StreamableHttpError::InsufficientScope(_) => (McpFault::Unauthorized, "HTTP 403".to_owned()),
        StreamableHttpError::HttpStatus(error) => (McpFault::Unreachable, format!("HTTP {}", error.status)),
        StreamableHttpError::ResponseBodyTooLarge { .. } => return too_large(),
        StreamableHttpError::UnexpectedServerResponse(text) => return unexpected(text),
        StreamableHttpError::UnexpectedContentType(kind) => {
            (McpFault::NotMcp, format!("the server answers with {}", content(kind.as_deref())))
        }
        StreamableHttpError::Deserialize(_) => {
            (McpFault::NotMcp, "the server answers with something else".to_owned())
        }
        StreamableHttpError::SessionExpired => {
            (McpFault::Protocol, "the server ended the session".to_owned())
        }
        _ => (McpFault::Protocol, "the connection did not go as the protocol wants it".to_owned()),
    };
    McpFailure::new(fault, detail)
}

/// A content type in words of this service.
fn content(kind: Option<&str>) -> &'static str {
    let Some(kind) = kind else { return "no content type" };
    match kind.split(';').next().unwrap_or_default().trim() {
        "text/html" => "a web page (text/html)",
        "text/plain" => "text (text/plain)",
        "application/json" => "JSON that is no answer of MCP",
        _ => "another content type than MCP has",
    }
}

fn unanswered(error: &reqwest::Error) -> McpFailure {
    let (fault, detail) = if BlockedAddress::caused(error) {
        (McpFault::RefusedAddress, "the host resolves to an address that is not allowed")
    } else if error.is_connect() {
        (McpFault::Unreachable, "no connection could be made")
    } else if error.is_timeout() {
        (McpFault::Timeout, "the server did not answer in time")
    } else {
        (McpFault::Unreachable, "the connection broke")
    };
    McpFailure::new(fault, detail)
}

/// An answer that is not what the protocol has: its status tells the most.
fn unexpected(text: &str) -> McpFailure {
    let digits = text.strip_prefix(STATUS_PREFIX).and_then(|rest| rest.get(..3));
    let status: Option<u16> = digits.and_then(|digits| digits.parse().ok());
    match status {
        Some(status @ (401 | 403)) => McpFailure::new(McpFault::Unauthorized, format!("HTTP {status}")),
        Some(status @ 300..=399) => {
            McpFailure::new(McpFault::NotMcp, format!("HTTP {status}: redirects are not followed"))
        }
        Some(status) => McpFailure::new(McpFault::NotMcp, format!("HTTP {status}")),
        None => McpFailure::new(McpFault::NotMcp, "the server answers with something else"),
    }
}
