//! Client for an external rerank endpoint.
//!
//! Owns what goes over the wire to a matcher, how its answer is read, which addresses may be called, and what counts
//! as a fault. Knows nothing of tools, catalogs, sessions or stores: it gets texts and gives back an order. A fault
//! is never an error for the agent; the caller ranks by keyword instead and tells the reason.

mod client;
mod cohere;
mod guard;
mod parse;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use thiserror::Error;
use url::Url;

pub use client::HttpReranker;
pub use guard::{AddressPolicy, check_url};

/// One query over a list of documents, with all that is needed to ask one endpoint.
///
/// `Debug` shows sizes only: query and documents are private, and the URL may carry a token.
pub struct RerankRequest {
    /// Base URL of the provider or full URL of its rerank route; its query string is kept.
    pub endpoint: Url,
    /// Model name as the provider spells it; left out of the body when `None`.
    pub model: Option<String>,
    /// Sent as `Authorization: Bearer`; no header is sent when it is `None` or blank.
    pub api_key: Option<SecretString>,
    /// What is looked for, in the words of the user or the model.
    pub query: String,
    /// Texts to rank. Blank ones are never sent, because several providers refuse the whole request for one of them.
    pub documents: Vec<String>,
    /// How many entries are wanted, at least one; the answer is never longer.
    pub top_n: usize,
    /// Time for the whole call: name lookup, connecting, sending, reading, and the retry.
    pub deadline: Duration,
}

impl fmt::Debug for RerankRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RerankRequest")
            .field("host", &self.endpoint.host_str())
            .field("model", &self.model)
            .field("has_key", &self.api_key.is_some())
            .field("query_bytes", &self.query.len())
            .field("documents", &self.documents.len())
            .field("top_n", &self.top_n)
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// One document of the request with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Position in [`RerankRequest::documents`], from 0.
    pub index: usize,
    /// Always finite. The scale is the provider's: 0..1 for most, raw logits for some.
    pub score: f64,
}

/// Why an endpoint gave no usable ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RerankFault {
    /// The deadline passed before the whole answer was read.
    #[error("the rerank endpoint did not answer in time")]
    Timeout,
    /// No connection, or one that broke: name lookup, refused, TLS, closed in the middle.
    #[error("the rerank endpoint could not be reached")]
    Unreachable,
    /// An answer outside 2xx; redirects are among them, because they are not followed.
    #[error("the rerank endpoint answered with status {status}")]
    Refused { status: u16 },
    /// A 2xx answer without one usable score: not JSON, a web page, another shape, nothing in it.
    #[error("the rerank endpoint's answer holds no usable ranking")]
    Malformed,
    /// The answer is larger than 4 MiB.
    #[error("the rerank endpoint's answer is too large")]
    TooLarge,
    /// The address policy does not let this URL, or an address that its host resolves to, be called.
    #[error("the address policy does not allow the rerank endpoint")]
    Forbidden,
    /// The request cannot be put on the wire: the key has characters that no header can carry.
    #[error("the rerank request cannot be sent: the API key has characters that a header cannot carry")]
    Unsendable,
}

impl RerankFault {
    /// Every value of [`RerankFault::reason`], for metric tables and documentation.
    pub const REASONS: [&str; 10] = [
        "timeout",
        "unreachable",
        "unauthorized",
        "rate_limited",
        "redirected",
        "http_error",
        "malformed_answer",
        "answer_too_large",
        "blocked_address",
        "invalid_request",
    ];

    /// Stable code of the fault, one of [`RerankFault::REASONS`]; fit for answers and metric labels.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Refused { status: 401 | 403 } => "unauthorized",
            Self::Refused { status: 429 } => "rate_limited",
            Self::Refused { status: 300..=399 } => "redirected",
            Self::Refused { .. } => "http_error",
            Self::Malformed => "malformed_answer",
            Self::TooLarge => "answer_too_large",
            Self::Forbidden => "blocked_address",
            Self::Unsendable => "invalid_request",
        }
    }
}

/// What ranks documents for a query.
#[async_trait]
pub trait Reranker: Send + Sync + fmt::Debug {
    /// Ranks the documents of one request.
    ///
    /// The answer is best first, holds each index at most once and in range, and at most `top_n` entries; it is empty
    /// only when no document has any text. Documents that the endpoint left out are absent.
    ///
    /// # Errors
    /// A [`RerankFault`]; the caller falls back to keyword ranking and tells [`RerankFault::reason`].
    async fn rerank(&self, request: RerankRequest) -> Result<Vec<Ranked>, RerankFault>;
}

/// Stands in where no HTTP client could be made: every call is answered as if the endpoint could not be reached.
#[derive(Debug, Clone, Copy)]
pub struct NoReranker;

#[async_trait]
impl Reranker for NoReranker {
    async fn rerank(&self, _request: RerankRequest) -> Result<Vec<Ranked>, RerankFault> {
        Err(RerankFault::Unreachable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_in_the_closed_list() {
        let mut faults: Vec<RerankFault> =
            (100..=599).map(|status| RerankFault::Refused { status }).collect();
        faults.extend([
            RerankFault::Timeout,
            RerankFault::Unreachable,
            RerankFault::Malformed,
            RerankFault::TooLarge,
            RerankFault::Forbidden,
            RerankFault::Unsendable,
        ]);
        let mut reasons: Vec<_> = faults.iter().map(RerankFault::reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let mut listed = RerankFault::REASONS.to_vec();
        listed.sort_unstable();
        assert_eq!(reasons, listed);
    }

    #[test]
    fn debug_shows_neither_texts_nor_tokens() {
        let request = RerankRequest {
            endpoint: Url::parse("https://rerank.example/v1?access_token=hush").unwrap(),
            model: None,
            api_key: Some("hush".to_owned().into()),
            query: "hush".to_owned(),
            documents: vec!["hush".to_owned()],
            top_n: 1,
            deadline: Duration::from_secs(1),
        };
        assert!(!format!("{request:?}").contains("hush"));
    }
}
