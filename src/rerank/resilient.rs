//! A [`Reranker`] that is asked no more than it can take, and no more than needed.
//!
//! Puts the parts of `resilience` in order around another reranker and remembers what was learned about endpoints. Calls
//! run in tasks of their own: whoever stops waiting stops nobody else, and an answer that comes late is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moka::future::Cache;
use secrecy::ExposeSecret;
use tracing::Instrument as _;

use super::resilience::{
    Admission, AnswerKey, Answers, BreakerKey, Breakers, Change, Crowded, Flights, GateLimits, Gates, Missed,
    State, Status, Ticket, Verdict,
};
use super::{
    Detected, Failed, Flaw, Ranked, Ranking, RerankFault, RerankRequest, Reranker, SharedRankings, Vectors,
    shared, vectors,
};
use crate::core::digest::Digest;
use crate::core::embedding::Embedding;

/// Endpoints, with their credentials and settings, whose failures are remembered.
const MAX_BREAKERS: usize = 4_096;
/// Calls to one endpoint at once, and searches that may wait for their turn.
const GATE: GateLimits = GateLimits { calls: 32, waiting: 256, endpoints: 1_024 };
/// The same for texts that nobody may be waiting for, which have places of their own, so that they take none from a search.
const BULK_GATE: GateLimits = GateLimits { calls: 8, waiting: 256, endpoints: 1_024 };
/// Different calls under way.
const MAX_FLIGHTS: usize = 1_024;
/// How long an answer is kept.
const ANSWER_TTL: Duration = Duration::from_secs(600);
/// Endpoints about which something was learned, and how long that holds.
const MAX_LEARNED: u64 = 4_096;
const LEARNED_TTL: Duration = Duration::from_secs(3_600);

/// What was learned about an endpoint by asking it.
#[derive(Debug, Clone, Default)]
struct Learned {
    detected: Option<Detected>,
    limit: Option<usize>,
}

/// How an endpoint does, for display.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointStatus {
    pub state: State,
    /// Failures in a row.
    pub failures: u32,
    /// The last one.
    pub fault: Option<RerankFault>,
    /// Until it is asked again.
    pub retry_in: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ranking,
    /// The vector of a query.
    Query,
    /// Vectors of many texts: never sent twice at once, and not cached, because who asks stores them.
    Texts,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ranking => "rerank",
            Self::Query => "embed_query",
            Self::Texts => "embed_texts",
        }
    }
}

/// What became of a call of an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Called {
    /// `rerank`, `embed_query` or `embed_texts`.
    pub kind: &'static str,
    /// `ok`, or [`RerankFault::reason`].
    pub outcome: &'static str,
    /// With the wait for its turn.
    pub took: Duration,
}

/// Who is told what happens; called at once, so neither may take long.
#[derive(Debug, Clone, Copy)]
pub struct Observer {
    /// Each change of a breaker, by the state after it.
    pub changed: fn(State),
    /// Each call that was made or given up; an answer from the cache is none.
    pub called: fn(Called),
}

/// What is wanted of an endpoint.
#[derive(Debug, Clone, Copy)]
struct Wish {
    kind: Kind,
    /// When its time is over.
    ends: Instant,
}

/// What an endpoint said.
#[derive(Debug, Clone)]
enum Reply {
    Ranking(Arc<Ranking>),
    Vectors(Arc<Vectors>),
}

impl Reply {
    /// Bytes that it takes.
    fn size(&self) -> usize {
        64 + match self {
            Self::Ranking(ranking) => {
                ranking.rows.len() * size_of::<Ranked>()
                    + ranking.notes.iter().map(String::len).sum::<usize>()
            }
            Self::Vectors(vectors) => vectors.rows.iter().flatten().map(Embedding::bytes).sum(),
        }
    }

    /// What was found out about the endpoint on the way.
    fn learned(&self) -> (Option<&Detected>, Option<usize>) {
        match self {
            Self::Ranking(ranking) => (ranking.detected.as_ref(), ranking.learned_limit),
            Self::Vectors(vectors) => (vectors.detected.as_ref(), vectors.learned_limit),
        }
    }
}

type Told = Result<Reply, RerankFault>;

/// See the module.
#[derive(Debug, Clone)]
pub struct Resilient(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    reranker: Arc<dyn Reranker>,
    breakers: Breakers<RerankFault>,
    gates: Gates<Digest>,
    bulk_gates: Gates<Digest>,
    flights: Flights<AnswerKey, Told>,
    answers: Answers<Reply>,
    shared: Option<Arc<dyn SharedRankings>>,
    learned: Cache<Digest, Learned>,
    observer: Observer,
    /// Breakers that are not closed.
    failing: AtomicUsize,
}

/// What one request is known by.
#[derive(Debug, Clone, Copy)]
struct Keys {
    breaker: BreakerKey,
    answer: AnswerKey,
    /// Endpoint, dialect, model and credential: what something is learned about.
    target: Digest,
    endpoint: Digest,
}

impl Resilient {
    /// Answers take at most `answer_bytes`; with 0 none are kept. `shared` is where other processes keep theirs.
    pub fn new(
        reranker: Arc<dyn Reranker>,
        answer_bytes: u64,
        shared: Option<Arc<dyn SharedRankings>>,
        observer: Observer,
    ) -> Self {
        Self(Arc::new(Inner {
            reranker,
            breakers: Breakers::new(MAX_BREAKERS),
            gates: Gates::new(GATE),
            bulk_gates: Gates::new(BULK_GATE),
            flights: Flights::new(MAX_FLIGHTS),
            answers: Answers::new(answer_bytes, ANSWER_TTL, Reply::size),
            shared,
            learned: Cache::builder().max_capacity(MAX_LEARNED).time_to_live(LEARNED_TTL).build(),
            observer,
            failing: AtomicUsize::new(0),
        }))
    }

    /// Whether it is worth while to ask the endpoint of these settings, so that a search need not build its documents for
    /// nothing. Query and documents of `request` do not matter here, nor for [`Resilient::status`] and
    /// [`Resilient::reset`].
    pub fn admits(&self, request: &RerankRequest) -> bool {
        let status = self.0.breakers.status(breaker_key(request), Instant::now());
        status.state != State::Open || status.retry_in.is_none_or(|left| left.is_zero())
    }

    /// Ranks until `ends`, from the cache where the same was asked before by the same tenant. The request's own deadline is that of
    /// its settings: endpoints that are given more time are others.
    ///
    /// # Errors
    /// A [`RerankFault`]: of the endpoint, or that it is not asked.
    pub async fn rerank(
        &self,
        tenant: Digest,
        request: RerankRequest,
        ends: Instant,
    ) -> Result<Arc<Ranking>, RerankFault> {
        match self.ask(tenant, request, Wish { kind: Kind::Ranking, ends }).await? {
            Reply::Ranking(ranking) => Ok(ranking),
            Reply::Vectors(_) => Err(RerankFault::Malformed(Flaw::NoRows)),
        }
    }

    /// The vector of a query, the only document of a request; from the cache where the same was asked before by the same tenant.
    ///
    /// # Errors
    /// As [`Resilient::rerank`].
    pub async fn embed_query(
        &self,
        tenant: Digest,
        request: RerankRequest,
        ends: Instant,
    ) -> Result<Embedding, RerankFault> {
        match self.ask(tenant, request, Wish { kind: Kind::Query, ends }).await? {
            Reply::Vectors(vectors) => vectors.rows.first().cloned().flatten(),
            Reply::Ranking(_) => None,
        }
        .ok_or(RerankFault::Malformed(Flaw::Vectors))
    }

    /// The vectors of the documents of a request.
    ///
    /// # Errors
    /// As [`Resilient::rerank`].
    pub async fn embed_texts(
        &self,
        tenant: Digest,
        request: RerankRequest,
        ends: Instant,
    ) -> Result<Arc<Vectors>, RerankFault> {
        match self.ask(tenant, request, Wish { kind: Kind::Texts, ends }).await? {
            Reply::Vectors(vectors) => Ok(vectors),
            Reply::Ranking(_) => Err(RerankFault::Malformed(Flaw::Vectors)),
        }
    }

    /// How many texts go to the endpoint of these settings in one request, as far as is known.
    pub async fn texts_in_request(&self, request: &RerankRequest) -> usize {
        let learned = self.0.learned.get(&target(request)).await.and_then(|learned| learned.limit);
        vectors::texts(&request.endpoint).min(learned.unwrap_or(usize::MAX)).max(1)
    }

    async fn ask(&self, tenant: Digest, mut request: RerankRequest, wish: Wish) -> Told {
        let keys = self.keys(tenant, &request, wish.kind);
        let learned = self.0.learned.get(&keys.target).await.unwrap_or_default();
        (request.detected, request.known_limit) = (learned.detected, learned.limit);
        if wish.kind == Kind::Texts {
            // What nobody waits for is not paid twice to be a little sooner.
            request.hedge_after = None;
        }
        let inner = &self.0;
        let ticket = match inner.breakers.admit(keys.breaker, Instant::now()) {
            Admission::Refuse => return Err(RerankFault::CircuitOpen),
            Admission::Probe(ticket, change) => {
                inner.tell(&request, change);
                // On nobody's time, and once: what has failed is not asked twice at once.
                request.hedge_after = None;
                tokio::spawn(Arc::clone(inner).call(keys, ticket, request, wish).in_current_span());
                return Err(RerankFault::CircuitOpen);
            }
            Admission::Go(ticket) => ticket,
        };
        if let Some(answer) = inner.answers.get(&keys.answer).await {
            return Ok(answer);
        }
        let (called, documents) = (Arc::clone(inner), request.documents.len());
        let call = || async move {
            // The flight before this one may have landed since.
            if let Some(answer) = called.answers.get(&keys.answer).await {
                return Ok(answer);
            }
            match called.shared_answer(keys.answer, wish.kind, documents).await {
                Some(answer) => Ok(answer),
                None => called.call(keys, ticket, request, wish).await,
            }
        };
        inner.flights.join(keys.answer, wish.ends.into(), call).await.map_err(|missed| match missed {
            Missed::Late => RerankFault::Timeout,
            Missed::Full | Missed::Lost => RerankFault::Overloaded,
        })?
    }

    /// The reranker behind all this, for a test of settings: each call is made, and nothing is learned from it.
    pub fn direct(&self) -> &dyn Reranker {
        &*self.0.reranker
    }

    /// How the endpoint of these settings does.
    pub fn status(&self, request: &RerankRequest) -> EndpointStatus {
        let Status { state, failures, fault, retry_in } =
            self.0.breakers.status(breaker_key(request), Instant::now());
        EndpointStatus { state, failures, fault, retry_in }
    }

    /// Endpoints, with their credentials and settings, that are left alone at present.
    pub fn failing(&self) -> usize {
        self.0.failing.load(Ordering::Relaxed)
    }

    /// Entries and bytes of the answers that are kept.
    pub fn answers(&self) -> (u64, u64) {
        (self.0.answers.entries(), self.0.answers.bytes())
    }

    /// Whether what fails with one of two settings fails with the other.
    pub fn are_one(one: &RerankRequest, other: &RerankRequest) -> bool {
        breaker_key(one) == breaker_key(other)
    }

    /// Forgets failures of these settings, because they were written anew.
    pub async fn renew(&self, request: &RerankRequest) {
        self.0.tell(request, self.0.breakers.reset(breaker_key(request)));
        self.0.learned.invalidate(&target(request)).await;
    }

    /// Forgets failures and answers of these settings: they were written anew, or tried with success.
    pub async fn reset(&self, tenant: Digest, request: &RerankRequest) {
        self.renew(request).await;
        self.0.answers.invalidate_tenant(tenant);
        if let Some(shared) = &self.0.shared {
            shared.forget(tenant).await;
        }
    }

    fn keys(&self, tenant: Digest, request: &RerankRequest, kind: Kind) -> Keys {
        let endpoint = request.endpoint.as_str();
        // An answer of one kind never stands for the other.
        let mut body = vec![u8::from(kind != Kind::Ranking)];
        request.feed(|piece| body.extend_from_slice(piece));
        Keys {
            breaker: breaker_key(request),
            answer: self.0.answers.key(tenant, endpoint, credential(request), &body),
            target: target(request),
            endpoint: Digest::of(request.endpoint.origin().ascii_serialization().as_bytes()),
        }
    }
}

fn breaker_key(request: &RerankRequest) -> BreakerKey {
    BreakerKey::new(request.endpoint.as_str(), credential(request), request.model.as_deref())
}

/// Endpoint, dialect, model and credential: what one tenant learns must not hold for another.
fn target(request: &RerankRequest) -> Digest {
    let model = request.model.as_deref().unwrap_or_default();
    let parts = [request.endpoint.as_str(), request.dialect.name(), model].map(str::as_bytes);
    Digest::of_parts(&[parts[0], parts[1], parts[2], &credential(request).0])
}

/// Digest of the key and of all settings with which another scope may fail where this one does not.
fn credential(request: &RerankRequest) -> Digest {
    let mut text = Vec::new();
    let mut piece = |bytes: &[u8]| {
        text.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        text.extend_from_slice(bytes);
    };
    piece(request.api_key.as_ref().map_or("", |key| key.expose_secret()).as_bytes());
    for setting in [&request.auth_header, &request.auth_scheme] {
        piece(setting.as_deref().unwrap_or_default().as_bytes());
    }
    for (name, value) in &request.extra_headers {
        piece(name.as_bytes());
        piece(value.as_bytes());
    }
    piece(serde_json::Value::Object(request.extra_body.clone()).to_string().as_bytes());
    piece(request.dialect.name().as_bytes());
    piece(&request.deadline.as_millis().to_le_bytes());
    piece(&request.hedge_after.map_or(0, |wait| wait.as_millis()).to_le_bytes());
    Digest::of(&text)
}

impl Inner {
    async fn call(self: Arc<Self>, keys: Keys, ticket: Ticket, request: RerankRequest, wish: Wish) -> Told {
        let began = Instant::now();
        let host = request.endpoint.host_str().unwrap_or_default().to_owned();
        let ends = tokio::time::Instant::from(wish.ends);
        let asked_for = ends.saturating_duration_since(tokio::time::Instant::now());
        let gates = if wish.kind == Kind::Texts { &self.bulk_gates } else { &self.gates };
        let outcome = match gates.enter(keys.endpoint, ends).await {
            Ok(_slot) => {
                let left = ends.saturating_duration_since(tokio::time::Instant::now());
                let asked = RerankRequest { deadline: left, ..request };
                match wish.kind {
                    Kind::Ranking => {
                        self.reranker.rerank(asked).await.map(|told| Reply::Ranking(told.into()))
                    }
                    Kind::Query | Kind::Texts => {
                        self.reranker.embed(asked).await.map(|told| Reply::Vectors(told.into()))
                    }
                }
            }
            Err(Crowded::Full | Crowded::Late) => Err(RerankFault::Overloaded.into()),
        };
        self.learn(keys.target, &outcome).await;
        let outcome = outcome.map_err(|failed| failed.fault);
        (self.observer.called)(Called {
            kind: wish.kind.name(),
            outcome: outcome.as_ref().map_or_else(RerankFault::reason, |_| "ok"),
            took: began.elapsed(),
        });
        if let Ok(answer) = &outcome
            && wish.kind != Kind::Texts
        {
            self.answers.insert(keys.answer, answer.clone()).await;
            self.share(keys.answer, answer);
        }
        let change = self.breakers.report(
            keys.breaker,
            ticket,
            verdict(&outcome, asked_for, wish.kind),
            Instant::now(),
            rand::random(),
        );
        self.told(&host, change);
        outcome
    }

    /// The answer that another process was given.
    async fn shared_answer(&self, key: AnswerKey, kind: Kind, documents: usize) -> Option<Reply> {
        let shared = self.shared.as_ref().filter(|_| kind == Kind::Ranking)?;
        let (tenant, call) = key.shared();
        let ranking = shared::read(&shared.get(tenant, call).await?, documents)?;
        let answer = Reply::Ranking(ranking.into());
        self.answers.insert(key, answer.clone()).await;
        Some(answer)
    }

    /// Lets other processes have an answer; nobody waits for that. Vectors of queries are not given away: they tell what was asked.
    fn share(&self, key: AnswerKey, answer: &Reply) {
        if let (Some(shared), Reply::Ranking(ranking)) = (&self.shared, answer) {
            let (shared, (tenant, call), text) = (Arc::clone(shared), key.shared(), shared::text(ranking));
            tokio::spawn(async move { shared.put(tenant, call, text).await });
        }
    }

    async fn learn(&self, target: Digest, outcome: &Result<Reply, Failed>) {
        let (detected, limit, doubts) = match outcome {
            Ok(answer) => {
                let (detected, limit) = answer.learned();
                (detected, limit, false)
            }
            Err(failed) => (None, failed.learned_limit, failed.fault.doubts_detection()),
        };
        if detected.is_none() && limit.is_none() && !doubts {
            return;
        }
        let mut learned = self.learned.get(&target).await.unwrap_or_default();
        if doubts {
            // A limit holds whatever else is wrong.
            learned.detected = None;
        }
        learned.detected = detected.cloned().or(learned.detected);
        learned.limit = limit.or(learned.limit);
        self.learned.insert(target, learned).await;
    }

    fn tell(&self, request: &RerankRequest, change: Option<Change<RerankFault>>) {
        self.told(request.endpoint.host_str().unwrap_or_default(), change);
    }

    /// One line for each change.
    fn told(&self, host: &str, change: Option<Change<RerankFault>>) {
        let Some(change) = change else { return };
        let (from, to) = (change.from.name(), change.to.name());
        let reason = change.fault.map_or("none", |fault| fault.reason());
        let seconds = change.open_for.map(|time| time.as_secs());
        match change.to {
            State::Open => tracing::warn!(
                host,
                from,
                to,
                reason,
                seconds,
                "the matcher's endpoint is not asked for a while"
            ),
            _ => tracing::info!(host, from, to, "the matcher's endpoint is asked again"),
        }
        match (change.from, change.to) {
            (State::Closed, _) => drop(self.failing.fetch_add(1, Ordering::Relaxed)),
            (_, State::Closed) => drop(self.failing.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        (self.observer.changed)(change.to);
    }
}

/// `deadline` is what the call had: a pause that fits in it was waited for.
fn verdict(outcome: &Told, deadline: Duration, kind: Kind) -> Verdict<RerankFault> {
    match outcome {
        Ok(_) => Verdict::Success,
        // Nothing was asked.
        Err(RerankFault::Overloaded | RerankFault::CircuitOpen) => Verdict::NoCall,
        Err(fault) if fault.is_configuration() => Verdict::Configuration { fault: *fault },
        // It lives, and does not like this one request.
        Err(RerankFault::Refused { status: 400 | 413 | 422, .. }) => Verdict::Success,
        Err(RerankFault::Malformed(_) | RerankFault::TooLarge) if kind == Kind::Texts => Verdict::Success,
        Err(fault) => {
            let retry_after = fault.retry_after().filter(|pause| *pause >= deadline);
            Verdict::Failure { fault: *fault, retry_after }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use url::Url;

    use super::*;

    const NOBODY: Observer = Observer { changed: |_| {}, called: |_| {} };

    /// Wants a second of rest after each call, and keeps what it was told about hedging.
    #[derive(Debug, Default)]
    struct Tired(Mutex<Vec<Option<Duration>>>);

    #[async_trait]
    impl Reranker for Tired {
        async fn rerank(&self, request: RerankRequest) -> Result<Ranking, Failed> {
            self.0.lock().unwrap().push(request.hedge_after);
            Err(RerankFault::Refused { status: 503, retry_after: Some(Duration::from_secs(1)) }.into())
        }

        async fn embed(&self, request: RerankRequest) -> Result<Vectors, Failed> {
            self.0.lock().unwrap().push(request.hedge_after);
            let learned_limit = request.known_limit.or(Some(4));
            Err(Failed { fault: RerankFault::refused(422), learned_limit })
        }

        async fn probe(&self, _: &RerankRequest) -> Result<Detected, RerankFault> {
            Err(RerankFault::Unreachable)
        }
    }

    #[tokio::test]
    async fn only_a_closed_breaker_lets_a_call_be_sent_twice() {
        let tired = Arc::new(Tired::default());
        let resilient = Resilient::new(Arc::<Tired>::clone(&tired), 1 << 20, None, NOBODY);
        let ask = async || {
            let endpoint = Url::parse("https://rerank.example/rerank").unwrap();
            let documents = vec!["d".to_owned()];
            let request = RerankRequest {
                hedge_after: Some(Duration::from_millis(10)),
                ..RerankRequest::new(endpoint, "q".to_owned(), documents, Duration::from_millis(500))
            };
            let ends = Instant::now() + request.deadline;
            resilient.rerank(Digest::of(b"tenant"), request, ends).await
        };
        assert!(ask().await.is_err());
        let started = Instant::now();
        while tired.0.lock().unwrap().len() < 2 {
            assert!(started.elapsed() < Duration::from_secs(30), "the way back is never tried");
            assert_eq!(ask().await, Err(RerankFault::CircuitOpen));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(*tired.0.lock().unwrap(), [Some(Duration::from_millis(10)), None]);
    }

    #[tokio::test]
    async fn a_limit_is_kept_from_a_call_that_failed_and_texts_are_never_sent_twice() {
        let tired = Arc::new(Tired::default());
        let resilient = Resilient::new(Arc::<Tired>::clone(&tired), 1 << 20, None, NOBODY);
        let endpoint = Url::parse("https://rerank.example/v1").unwrap();
        let request = |key: &str| RerankRequest {
            api_key: Some(key.to_owned().into()),
            hedge_after: Some(Duration::from_millis(10)),
            ..RerankRequest::new(
                endpoint.clone(),
                String::new(),
                vec!["d".to_owned()],
                Duration::from_secs(5),
            )
        };
        let ends = Instant::now() + Duration::from_secs(5);
        assert_eq!(resilient.texts_in_request(&request("a")).await, 32);
        for _ in 0..2 {
            let made = resilient.embed_texts(Digest::of(b"tenant"), request("a"), ends).await;
            assert_eq!(made.unwrap_err(), RerankFault::refused(422));
            assert_eq!(resilient.texts_in_request(&request("a")).await, 4);
        }
        assert_eq!(resilient.texts_in_request(&request("b")).await, 32, "another's key, another's limit");
        assert!(resilient.embed_query(Digest::of(b"tenant"), request("a"), ends).await.is_err());
        assert_eq!(*tired.0.lock().unwrap(), [None, None, Some(Duration::from_millis(10))]);
    }

    #[test]
    fn a_request_that_is_refused_by_itself_opens_nothing() {
        let second = Duration::from_secs(1);
        let refused =
            |status| verdict(&Err(RerankFault::Refused { status, retry_after: None }), second, Kind::Query);
        assert!(matches!(refused(422), Verdict::Success));
        assert!(matches!(refused(503), Verdict::Failure { .. }));
        assert!(matches!(refused(401), Verdict::Configuration { .. }));
        assert!(matches!(verdict(&Err(RerankFault::Overloaded), second, Kind::Query), Verdict::NoCall));
        // Of many texts one may be what makes the answer odd; of a query it is the endpoint.
        let odd = |kind| verdict(&Err(RerankFault::TooLarge), second, kind);
        assert!(matches!(odd(Kind::Texts), Verdict::Success));
        assert!(matches!(odd(Kind::Query), Verdict::Failure { .. }));
    }
}
