//! What is asked and what is answered.
//!
//! Owns the types at the border of this module. `Debug` of a request shows sizes and names only: query and documents
//! are private, and the URL, the headers and the extra keys may carry tokens.

use std::fmt;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;

use super::fault::RerankFault;
use crate::core::embedding::Embedding;
use crate::core::policy::{Dialect, DialectChoice};

/// One query over a list of documents, with all that is needed to ask one endpoint.
#[derive(Clone)]
pub struct RerankRequest {
    /// Base URL of the provider or full URL of its route; its query string is kept.
    pub endpoint: Url,
    /// The shape of the request.
    pub dialect: DialectChoice,
    /// What [`Ranking::detected`] or a probe said before about the same endpoint, dialect setting and model; without
    /// it, an endpoint that its URL does not tell enough about is probed first. Not used when its URL has another
    /// origin than the endpoint.
    pub detected: Option<Detected>,
    /// Model name; left out of the body when `None`.
    pub model: Option<String>,
    /// Keeps the model out of the body where the URL says it already (Bedrock, some Azure deployments).
    pub omit_model: bool,
    /// Key of the provider; no header is sent when it is `None` or blank.
    pub api_key: Option<SecretString>,
    /// Header that carries the key. By default `Api-Key` for Pinecone, `Authorization` for all others.
    pub auth_header: Option<String>,
    /// Word before the key; an empty one sends the key alone. By default `ApiKey` for Elastic, `Bearer` in
    /// `Authorization`, and none in any other header.
    pub auth_scheme: Option<String>,
    /// More headers, sent last, so that they may replace the others; names that frame a message make the
    /// request unsendable. Values may be secrets.
    pub extra_headers: Vec<(String, String)>,
    /// Keys for the body, merged last: `null` removes a key, an object is merged into one that is there, anything
    /// else replaces. The keys that carry query and documents are not touched.
    pub extra_body: Map<String, Value>,
    /// What the ranker is to look for, in a sentence; sent only where the provider is known to take one. With
    /// [`Dialect::Openai`], what stands right before the query.
    pub instruction: Option<String>,
    /// What is looked for, in the words of the user or the model.
    pub query: String,
    /// Texts to rank. Blank ones are never sent, because several providers refuse the whole request for one of them.
    pub documents: Vec<String>,
    /// How many entries are wanted, at least one; the answer is never longer.
    pub top_n: usize,
    /// Documents per request that [`Ranking::learned_limit`] told before for this endpoint.
    pub known_limit: Option<usize>,
    /// Time for everything: name lookup, probe, all batches, the retries.
    pub deadline: Duration,
    /// A call that was not answered by then is sent a second time, in place of the one retry, and the first good answer
    /// counts. Not in the minute after the server said 429.
    pub hedge_after: Option<Duration>,
}

impl RerankRequest {
    /// A request with nothing but the necessary; the rest is set with struct update syntax.
    pub fn new(endpoint: Url, query: String, documents: Vec<String>, deadline: Duration) -> Self {
        Self {
            endpoint,
            dialect: DialectChoice::Auto,
            detected: None,
            model: None,
            omit_model: false,
            api_key: None,
            auth_header: None,
            auth_scheme: None,
            extra_headers: Vec::new(),
            extra_body: Map::new(),
            instruction: None,
            top_n: documents.len().max(1),
            query,
            documents,
            known_limit: None,
            deadline,
            hedge_after: None,
        }
    }

    /// Gives all that decides the answer to a digest, piece by piece and without ambiguity: endpoint, dialect, model,
    /// body and headers. Left out are the API key, which callers digest apart, and deadline, hedging and limits,
    /// which do not change a ranking.
    pub fn feed(&self, mut digest: impl FnMut(&[u8])) {
        let mut piece = |bytes: &[u8]| {
            digest(&(bytes.len() as u64).to_le_bytes());
            digest(bytes);
        };
        piece(self.endpoint.as_str().as_bytes());
        piece(self.dialect.name().as_bytes());
        for text in [&self.model, &self.auth_header, &self.auth_scheme, &self.instruction] {
            piece(&[u8::from(text.is_some())]);
            piece(text.as_deref().unwrap_or_default().as_bytes());
        }
        piece(&[u8::from(self.omit_model)]);
        piece(&(self.extra_headers.len() as u64).to_le_bytes());
        for (name, value) in &self.extra_headers {
            piece(name.as_bytes());
            piece(value.as_bytes());
        }
        piece(&(self.extra_body.len() as u64).to_le_bytes());
        for (key, value) in &self.extra_body {
            piece(key.as_bytes());
            piece(value.to_string().as_bytes());
        }
        piece(&(self.top_n as u64).to_le_bytes());
        piece(self.query.as_bytes());
        for document in &self.documents {
            piece(document.as_bytes());
        }
    }
}

impl fmt::Debug for RerankRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RerankRequest")
            .field("host", &self.endpoint.host_str())
            .field("dialect", &self.dialect.name())
            .field("detected", &self.detected.as_ref().map(|detected| detected.dialect))
            .field("model", &self.model)
            .field("omit_model", &self.omit_model)
            .field("has_key", &self.api_key.is_some())
            .field("extra_headers", &self.extra_headers.len())
            .field("extra_body", &self.extra_body.len())
            .field("has_instruction", &self.instruction.is_some())
            .field("query_bytes", &self.query.len())
            .field("documents", &self.documents.len())
            .field("top_n", &self.top_n)
            .field("known_limit", &self.known_limit)
            .field("deadline", &self.deadline)
            .field("hedge_after", &self.hedge_after)
            .finish_non_exhaustive()
    }
}

/// The vectors of [`RerankRequest::documents`].
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    /// One for each document, in their order, all of one length; none for a blank one, and where the endpoint gave none
    /// that can be used.
    pub rows: Vec<Option<Embedding>>,
    /// As [`Ranking::learned_limit`].
    pub learned_limit: Option<usize>,
    /// As [`Ranking::detected`].
    pub detected: Option<Detected>,
}

/// A call that gave nothing, with what it taught all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    pub fault: RerankFault,
    /// As [`Ranking::learned_limit`].
    pub learned_limit: Option<usize>,
}

impl From<RerankFault> for Failed {
    fn from(fault: RerankFault) -> Self {
        Self { fault, learned_limit: None }
    }
}

/// How an endpoint wants to be asked.
#[derive(Clone, PartialEq, Eq)]
pub struct Detected {
    pub dialect: Dialect,
    /// The URL that is called, query string included.
    pub url: Url,
    /// Whether the number of wanted results is sent; some servers refuse the key.
    pub sends_top: bool,
    /// Most documents per request, where the server says so.
    pub limit: Option<usize>,
    /// What was changed, tried and found, in words for an administrator; never with a query string.
    pub notes: Vec<String>,
}

impl fmt::Debug for Detected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detected")
            .field("dialect", &self.dialect)
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("sends_top", &self.sends_top)
            .field("limit", &self.limit)
            .field("notes", &self.notes)
            .finish()
    }
}

/// One document of the request with its scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Position in [`RerankRequest::documents`], from 0.
    pub index: usize,
    /// 0 to 1; the scale within is the model's own, so it compares within one answer only.
    pub score: f64,
    /// What the endpoint said, always finite: 0 to 1 for most, logits for some.
    pub raw: f64,
}

/// The answer to a [`RerankRequest`].
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Best first, each index once and in range, at most `top_n`; empty only when no document has any text. Documents
    /// that the endpoint left out or gave no score are absent.
    pub rows: Vec<Ranked>,
    pub dialect: Dialect,
    /// What was changed or odd, in words for an administrator.
    pub notes: Vec<String>,
    /// Most documents per request, when an error told it during this call; to be given back as
    /// [`RerankRequest::known_limit`].
    pub learned_limit: Option<usize>,
    /// What a probe found during this call; to be given back as [`RerankRequest::detected`].
    pub detected: Option<Detected>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> RerankRequest {
        let endpoint = Url::parse("https://rerank.example/v1?access_token=hush").unwrap();
        let url = endpoint.clone();
        RerankRequest {
            detected: Some(Detected {
                dialect: Dialect::Tei,
                url,
                sends_top: true,
                limit: None,
                notes: Vec::new(),
            }),
            api_key: Some("hush".to_owned().into()),
            extra_headers: vec![("x".to_owned(), "hush".to_owned())],
            extra_body: Map::from_iter([("token".to_owned(), "hush".into())]),
            instruction: Some("hush".to_owned()),
            ..RerankRequest::new(endpoint, "hush".to_owned(), vec!["hush".to_owned()], Duration::from_secs(1))
        }
    }

    #[test]
    fn debug_shows_neither_texts_nor_tokens() {
        let request = full();
        assert!(!format!("{request:?} {:?}", request.detected).contains("hush"));
    }

    #[test]
    fn a_digest_differs_when_the_answer_may() {
        let fed = |request: &RerankRequest| {
            let mut bytes = Vec::new();
            request.feed(|piece| bytes.extend_from_slice(piece));
            bytes
        };
        let same = fed(&full());
        assert_eq!(fed(&RerankRequest { api_key: None, deadline: Duration::ZERO, ..full() }), same);
        for other in [
            RerankRequest { model: Some(String::new()), ..full() },
            RerankRequest { dialect: DialectChoice::Fixed(Dialect::Tei), ..full() },
            RerankRequest { omit_model: true, ..full() },
            RerankRequest { instruction: None, ..full() },
            RerankRequest { extra_body: Map::new(), ..full() },
            RerankRequest { extra_headers: Vec::new(), ..full() },
            RerankRequest { top_n: 7, ..full() },
            RerankRequest { query: "other".to_owned(), ..full() },
            RerankRequest { documents: vec!["hu".to_owned(), "sh".to_owned()], ..full() },
        ] {
            assert_ne!(fed(&other), same, "{other:?}");
        }
    }
}
