//! The connections: one request, one answer, at most one more request for the same.
//!
//! Owns the HTTP clients, the size caps, and when a call is sent a second time: after a failure, or beside a request that
//! takes long. Texts of refusals are read only where they may explain what is
//! wanted, and are neither logged nor handed on to callers of this module's API.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures_util::future::select;
use moka::future::Cache;
use reqwest::dns::Resolve;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response};
use url::Url;

use super::clients::GuardedClients;
use super::fault::RerankFault;
use super::guard::{AddressPolicy, BlockedAddress};
use super::refusal::{self, MAX_ERROR_BYTES};
use super::request::RerankRequest;
use super::retry::{asked_pause, may_pass, pause};
use crate::core::embedding::MAX_WIDTH;
use crate::core::policy::Dialect;

/// Servers that echo the documents (vLLM, LocalAI) answer with about the size of the request, escapes make it longer.
const ECHO_FACTOR: usize = 4;
const MIN_ANSWER_BYTES: usize = 4 * 1024 * 1024;
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// A number of a vector as the longest printers write it, on a line of its own: sign, 17 digits, point, exponent, indent.
const NUMBER_BYTES: usize = 48;
/// What stands around vectors.
const AROUND_BYTES: usize = 64 * 1024;
/// A server that reached its rate limit is not asked the same twice at once for so long, to not make that worse.
const LIMITED_FOR: Duration = Duration::from_secs(60);
/// So many of these servers are remembered.
const MAX_LIMITED: u64 = 4_096;

/// What is left of a deadline, and how a call may spend it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub started: Instant,
    pub deadline: Duration,
    /// A request that was not answered by then is sent a second time beside the first.
    pub hedge_after: Option<Duration>,
}

impl Budget {
    /// The time of a request, from now on.
    pub(super) fn of(request: &RerankRequest) -> Self {
        Self { started: Instant::now(), deadline: request.deadline, hedge_after: request.hedge_after }
    }

    pub(super) fn fits(self, pause: Duration) -> bool {
        pause < self.deadline.saturating_sub(self.started.elapsed())
    }
}

/// What is sent, ready to be sent twice.
#[derive(Debug)]
pub(super) struct Call {
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Largest answer that is read, in bytes.
    pub max_answer: usize,
}

/// Reads a 2xx answer; the flag says that its content type is that of a web page.
pub(super) trait Read<T>: Fn(&[u8], bool) -> Result<T, RerankFault> + Sync {}

impl<T, F: Fn(&[u8], bool) -> Result<T, RerankFault> + Sync> Read<T> for F {}

/// The largest answer to a request with so many texts: with vectors, whose length is the model's, or with echoed documents.
pub(super) fn max_answer(dialect: Dialect, body: &[u8], texts: usize) -> usize {
    match dialect {
        Dialect::Openai => {
            let vectors = texts.saturating_mul(MAX_WIDTH * NUMBER_BYTES);
            vectors.saturating_add(AROUND_BYTES).min(MAX_ANSWER_BYTES)
        }
        _ => body.len().saturating_mul(ECHO_FACTOR).clamp(MIN_ANSWER_BYTES, MAX_ANSWER_BYTES),
    }
}

/// An attempt that gave no ranking.
#[derive(Debug)]
pub(super) struct Failure {
    pub fault: RerankFault,
    /// How long to wait before a second attempt; `None` when it would fail in the same way.
    pub retry_in: Option<Duration>,
    /// What the server said, where that may explain the refusal.
    pub text: String,
}

impl Failure {
    /// A fault of the answer itself: some name a status that passes.
    fn inside(fault: RerankFault) -> Self {
        let passes = matches!(fault, RerankFault::Refused { status, .. } if may_pass(status));
        Self { fault, retry_in: passes.then(pause), text: String::new() }
    }

    /// The connection failed or broke. Ranking has no side effects, so asking again is safe whatever was sent.
    fn broken(error: &reqwest::Error) -> Self {
        if BlockedAddress::caused(error) {
            Self { fault: RerankFault::Forbidden, retry_in: None, text: String::new() }
        } else {
            Self { fault: RerankFault::Unreachable, retry_in: Some(pause()), text: String::new() }
        }
    }

    async fn refused(response: Response) -> Self {
        let status = response.status().as_u16();
        let retry_after = asked_pause(response.headers(), SystemTime::now());
        // A pause of nothing would hit a server that has just failed.
        let retry_in = may_pass(status).then(|| retry_after.map_or_else(pause, |asked| asked.max(pause())));
        let text = if refusal::may_explain(status) { read_some(response).await } else { String::new() };
        Self { fault: RerankFault::Refused { status, retry_after }, retry_in, text }
    }

    /// The status of a refusal, 0 for other faults.
    pub(super) fn status(&self) -> u16 {
        match self.fault {
            RerankFault::Refused { status, .. } => status,
            _ => 0,
        }
    }
}

/// The HTTP clients of all calls.
#[derive(Debug)]
pub(super) struct Wire {
    pub policy: Arc<AddressPolicy>,
    clients: GuardedClients,
    /// Origins that said 429 lately.
    limited: Cache<String, ()>,
}

impl Wire {
    pub(super) fn new(policy: AddressPolicy, lookup: &Arc<dyn Resolve>) -> Result<Self, reqwest::Error> {
        let policy = Arc::new(policy);
        let clients = GuardedClients::new(&policy, lookup)?;
        let limited = Cache::builder().max_capacity(MAX_LIMITED).time_to_live(LIMITED_FOR).build();
        Ok(Self { policy, clients, limited })
    }

    fn client(&self, url: &Url) -> &Client {
        self.clients.get(url.scheme() == "http")
    }

    /// Sends the call, a second time if that may help and the deadline leaves room: after a failure and a pause, or beside
    /// a request that takes longer than `hedge_after`. Never a third time.
    pub(super) async fn send<T>(
        &self,
        call: &Call,
        budget: Budget,
        read: impl Read<T>,
    ) -> Result<T, Failure> {
        let mut first = pin!(self.attempt(call, &read));
        let hedge_after = budget.hedge_after.filter(|wait| budget.fits(*wait));
        let in_time = match hedge_after {
            Some(wait) => tokio::time::timeout(wait, first.as_mut()).await.ok(),
            None => None,
        };
        let outcome = match in_time {
            Some(outcome) => outcome,
            None if hedge_after.is_some() && !self.is_limited(&call.url) => {
                tracing::debug!("asking the endpoint a second time beside the first");
                return first_good(first, pin!(self.attempt(call, &read))).await;
            }
            None => first.await,
        };
        let failure = match outcome {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        match failure.retry_in {
            Some(pause) if budget.fits(pause) => {
                tracing::debug!(reason = failure.fault.reason(), "asking the endpoint again");
                tokio::time::sleep(pause).await;
                self.attempt(call, &read).await
            }
            _ => Err(failure),
        }
    }

    /// Sends the call once.
    pub(super) async fn attempt<T>(&self, call: &Call, read: &impl Read<T>) -> Result<T, Failure> {
        let outcome = self.exchange(call, read).await;
        if outcome.as_ref().is_err_and(|failure| failure.status() == 429) {
            self.limited.insert(origin(&call.url), ()).await;
        }
        outcome
    }

    /// Whether the server said 429 in the last minute, to whomever.
    fn is_limited(&self, url: &Url) -> bool {
        self.limited.contains_key(&origin(url))
    }

    async fn exchange<T>(&self, call: &Call, read: &impl Read<T>) -> Result<T, Failure> {
        let response = self
            .client(&call.url)
            .post(call.url.clone())
            .headers(call.headers.clone())
            .body(call.body.clone())
            .send()
            .await
            .map_err(|error| Failure::broken(&error))?;
        if !response.status().is_success() {
            return Err(Failure::refused(response).await);
        }
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_html = kind.trim_start().to_ascii_lowercase().starts_with("text/html");
        let answer = read_whole(response, call.max_answer).await?;
        read(&answer, is_html).map_err(Failure::inside)
    }

    /// A small text from another path of the same server; `None` for whatever reason.
    pub(super) async fn get(&self, url: Url, headers: HeaderMap) -> Option<String> {
        let response = self.client(&url).get(url).headers(headers).send().await.ok()?;
        if response.status().is_success() { Some(read_some(response).await) } else { None }
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The first good answer to two requests for the same; a failure that a second attempt does not mend is one for both.
async fn first_good<T, F>(first: F, second: F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>> + Unpin,
{
    let (outcome, other) = select(first, second).await.factor_first();
    match outcome {
        Err(failure) if failure.retry_in.is_some() => other.await,
        outcome => outcome,
    }
}

/// Reads a body of at most `limit` bytes; a longer one is given up as soon as that is known.
async fn read_whole(mut response: Response, limit: usize) -> Result<Vec<u8>, Failure> {
    let too_large = || Failure::inside(RerankFault::TooLarge);
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Failure::broken(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The beginning of a body, as far as it comes.
async fn read_some(mut response: Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = MAX_ERROR_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == MAX_ERROR_BYTES {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}
