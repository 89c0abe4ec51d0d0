//! The HTTP client behind [`Reranker`]: one call, one deadline, at most one retry.
//!
//! Owns the connections and what is worth a second attempt. Bodies of refusals are never read: several servers echo
//! query and documents in them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::dns::Resolve;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, redirect, retry};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::guard::{AddressPolicy, BlockedAddress, GuardedResolver, SystemLookup, check_url};
use super::{Ranked, RerankFault, RerankRequest, Reranker, cohere, parse};

/// Below the idle time-outs of the usual proxies (60 s and 75 s), so that they seldom close a connection under us.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Pause before the retry, drawn at random so that callers who failed together do not come back together.
const RETRY_PAUSE_MS: std::ops::RangeInclusive<u64> = 50..=250;

/// Calls rerank endpoints over HTTP. Cheap to share; all callers use the same connections.
#[derive(Debug)]
pub struct HttpReranker {
    policy: Arc<AddressPolicy>,
    https: Client,
    /// For `http` URLs: its resolver admits only addresses that the policy covers.
    plain: Client,
}

impl HttpReranker {
    /// Builds the clients. A rustls crypto provider must have been installed for the process before.
    ///
    /// # Errors
    /// The system's certificate store cannot be used.
    pub fn new(policy: AddressPolicy) -> Result<Self, reqwest::Error> {
        let lookup: Arc<dyn Resolve> = Arc::new(SystemLookup);
        Self::with_lookup(policy, &lookup)
    }

    fn with_lookup(policy: AddressPolicy, lookup: &Arc<dyn Resolve>) -> Result<Self, reqwest::Error> {
        let policy = Arc::new(policy);
        let builder = |plain| {
            let resolver = GuardedResolver { policy: Arc::clone(&policy), lookup: Arc::clone(lookup), plain };
            Client::builder()
                .user_agent(concat!("toolrack/", env!("CARGO_PKG_VERSION")))
                .dns_resolver(resolver)
                // A redirect or a proxy would lead past the address policy.
                .redirect(redirect::Policy::none())
                .no_proxy()
                // The one retry is ours.
                .retry(retry::never())
                .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        };
        let https = builder(false).https_only(true).build()?;
        // It never speaks TLS, so it loads no certificates.
        let plain = builder(true).tls_certs_only([]).build()?;
        Ok(Self { policy, https, plain })
    }

    async fn call(&self, request: &RerankRequest, started: Instant) -> Result<Vec<Ranked>, RerankFault> {
        check_url(&request.endpoint, &self.policy).map_err(|_| RerankFault::Forbidden)?;
        let (positions, documents): (Vec<usize>, Vec<&str>) = request
            .documents
            .iter()
            .map(String::as_str)
            .enumerate()
            .filter(|(_, document)| !document.trim().is_empty())
            .unzip();
        if documents.is_empty() {
            return Ok(Vec::new());
        }
        let top_n = request.top_n.clamp(1, documents.len());
        let call = Call {
            url: cohere::route(&request.endpoint),
            headers: headers(request.api_key.as_ref())?,
            body: cohere::body(request.model.as_deref(), &request.query, &documents, top_n)
                .map_err(|_| RerankFault::Unsendable)?
                .into(),
        };
        let answer = self.send(&call, request.deadline, started).await?;
        let mut ranked = parse::ranking(&answer, documents.len())?;
        // Some servers ignore `top_n`.
        ranked.truncate(top_n);
        for entry in &mut ranked {
            entry.index = positions[entry.index];
        }
        Ok(ranked)
    }

    /// Sends the call, a second time if that may help and the deadline leaves room for the pause.
    async fn send(&self, call: &Call, deadline: Duration, started: Instant) -> Result<Vec<u8>, RerankFault> {
        let failure = match self.attempt(call).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        match failure.retry_in {
            Some(pause) if pause < deadline.saturating_sub(started.elapsed()) => {
                tracing::debug!(reason = failure.fault.reason(), "asking the rerank endpoint again");
                tokio::time::sleep(pause).await;
                self.attempt(call).await.map_err(|failure| failure.fault)
            }
            _ => Err(failure.fault),
        }
    }

    async fn attempt(&self, call: &Call) -> Result<Vec<u8>, Failure> {
        let client = if call.url.scheme() == "http" { &self.plain } else { &self.https };
        let response = client
            .post(call.url.clone())
            .headers(call.headers.clone())
            .body(call.body.clone())
            .send()
            .await
            .map_err(|error| Failure::broken(&error))?;
        if response.status().is_success() { read(response).await } else { Err(Failure::refused(&response)) }
    }
}

#[async_trait]
impl Reranker for HttpReranker {
    async fn rerank(&self, request: RerankRequest) -> Result<Vec<Ranked>, RerankFault> {
        let started = Instant::now();
        let outcome = tokio::time::timeout(request.deadline, self.call(&request, started))
            .await
            .unwrap_or(Err(RerankFault::Timeout));
        if let Err(fault) = &outcome {
            tracing::debug!(host = request.endpoint.host_str(), reason = fault.reason(), %fault, "rerank failed");
        }
        outcome
    }
}

/// What is sent, ready to be sent twice.
struct Call {
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

/// An attempt that gave no answer.
struct Failure {
    fault: RerankFault,
    /// How long to wait before a second attempt; `None` when it would fail in the same way.
    retry_in: Option<Duration>,
}

impl Failure {
    fn lasting(fault: RerankFault) -> Self {
        Self { fault, retry_in: None }
    }

    /// The connection failed or broke. Ranking has no side effects, so asking again is safe whatever was sent.
    fn broken(error: &reqwest::Error) -> Self {
        if BlockedAddress::caused(error) {
            Self::lasting(RerankFault::Forbidden)
        } else {
            Self { fault: RerankFault::Unreachable, retry_in: Some(pause()) }
        }
    }

    fn refused(response: &Response) -> Self {
        let status = response.status().as_u16();
        let retry_in = matches!(status, 408 | 425 | 429 | 500..=599)
            .then(|| asked_pause(response.headers()).unwrap_or_else(pause));
        Self { fault: RerankFault::Refused { status }, retry_in }
    }
}

fn pause() -> Duration {
    Duration::from_millis(rand::random_range(RETRY_PAUSE_MS))
}

/// The pause that the server asks for: `retry-after-ms` (Cohere) or `Retry-After` in seconds. A date is not read.
fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    number("retry-after-ms")
        .map(Duration::from_millis)
        .or_else(|| number(RETRY_AFTER.as_str()).map(Duration::from_secs))
}

fn headers(api_key: Option<&SecretString>) -> Result<HeaderMap, RerankFault> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Gateways refuse an empty Bearer.
    let key = api_key.map_or("", |key| key.expose_secret().trim());
    if !key.is_empty() {
        let mut value =
            HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| RerankFault::Unsendable)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

/// Reads a body of at most [`parse::MAX_ANSWER_BYTES`]; a longer one is given up as soon as that is known.
async fn read(mut response: Response) -> Result<Vec<u8>, Failure> {
    let limit = parse::MAX_ANSWER_BYTES;
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(Failure::lasting(RerankFault::TooLarge));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Failure::broken(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(Failure::lasting(RerankFault::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests;
