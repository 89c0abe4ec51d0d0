//! The parts composed as a client composes them, around an endpoint that the test plays.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::*;
use crate::core::digest::Digest;

/// `Some` when it is an endpoint's, `None` when the endpoint was not asked.
type Fault = Option<u16>;
type Answer = Result<&'static str, Fault>;

/// An endpoint that answers when the test says so.
struct Endpoint {
    answer: watch::Sender<Option<Answer>>,
    calls: AtomicUsize,
}

struct Client {
    breakers: Breakers<Fault>,
    gates: Gates<Digest>,
    flights: Flights<AnswerKey, Answer>,
    answers: Answers<&'static str>,
    endpoint: Endpoint,
    changes: Mutex<Vec<&'static str>>,
    /// What the breaker takes for the time since the start.
    elapsed: Mutex<Duration>,
    start: Instant,
}

impl Client {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            breakers: Breakers::new(64),
            gates: Gates::new(GateLimits { calls: 4, waiting: 64, endpoints: 64 }),
            flights: Flights::new(64),
            answers: Answers::new(1 << 20, Duration::from_secs(600), |answer: &&str| answer.len()),
            endpoint: Endpoint { answer: watch::channel(None).0, calls: AtomicUsize::new(0) },
            changes: Mutex::default(),
            elapsed: Mutex::default(),
            start: Instant::now(),
        })
    }

    fn now(&self) -> Instant {
        self.start + *self.elapsed.lock().unwrap()
    }

    fn log(&self, change: Option<Change<Fault>>) {
        self.changes.lock().unwrap().extend(change.map(|change| change.to.name()));
    }

    async fn rerank(self: &Arc<Self>, query: &'static str) -> Answer {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        let (endpoint, credential) = ("https://rerank.example/v1", Digest::of(b"key"));
        let breaker = BreakerKey::new(endpoint, credential, None);
        let ticket = match self.breakers.admit(breaker, self.now()) {
            Admission::Refuse => return Err(None),
            Admission::Go(ticket) => ticket,
            Admission::Probe(ticket, change) => {
                self.log(change);
                let key = self.answers.key(Digest::of(b"tenant"), endpoint, credential, query.as_bytes());
                tokio::spawn(Arc::clone(self).call(breaker, ticket, key, deadline));
                return Err(None);
            }
        };
        let key = self.answers.key(Digest::of(b"tenant"), endpoint, credential, query.as_bytes());
        if let Some(answer) = self.answers.get(&key).await {
            return Ok(answer);
        }
        let client = Arc::clone(self);
        let call = || async move {
            // The flight before this one may have landed since.
            match client.answers.get(&key).await {
                Some(answer) => Ok(answer),
                None => client.call(breaker, ticket, key, deadline).await,
            }
        };
        self.flights.join(key, deadline, call).await.map_err(|_| None)?
    }

    async fn call(
        self: Arc<Self>,
        breaker: BreakerKey,
        ticket: Ticket,
        key: AnswerKey,
        deadline: tokio::time::Instant,
    ) -> Answer {
        let outcome = match self.gates.enter(Digest::of(b"endpoint"), deadline).await {
            Err(_) => Err(None),
            Ok(_slot) => {
                self.endpoint.calls.fetch_add(1, Ordering::SeqCst);
                let mut answer = self.endpoint.answer.subscribe();
                let answered = answer.wait_for(Option::is_some).await.map(|answer| *answer);
                answered.unwrap().unwrap()
            }
        };
        let verdict = match outcome {
            Ok(answer) => {
                self.answers.insert(key, answer).await;
                Verdict::Success
            }
            Err(None) => Verdict::NoCall,
            Err(fault @ Some(401..=404)) => Verdict::Configuration { fault },
            Err(fault) => Verdict::Failure { fault, retry_after: None },
        };
        self.log(self.breakers.report(breaker, ticket, verdict, self.now(), 0.5));
        outcome
    }

    fn answers_with(&self, answer: Answer) {
        self.endpoint.answer.send_replace(Some(answer));
    }

    fn calls(&self) -> usize {
        self.endpoint.calls.load(Ordering::SeqCst)
    }

    async fn until(&self, reached: impl Fn(&Self) -> bool) {
        while !reached(self) {
            tokio::task::yield_now().await;
        }
    }

    fn wait(&self, seconds: u64) {
        *self.elapsed.lock().unwrap() += Duration::from_secs(seconds);
    }
}

#[tokio::test]
async fn identical_searches_make_one_call_and_later_ones_none() {
    let client = Client::new();
    let searches: Vec<_> = (0..32)
        .map(|_| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.rerank("q").await })
        })
        .collect();
    client.until(|client| client.calls() == 1).await;
    client.answers_with(Ok("ranked"));
    for search in searches {
        assert_eq!(search.await.unwrap(), Ok("ranked"));
    }
    assert_eq!(client.rerank("q").await, Ok("ranked"));
    assert_eq!(client.calls(), 1);
}

#[tokio::test]
async fn an_answer_that_nobody_waited_for_is_kept() {
    let client = Client::new();
    let (started, start) = oneshot::channel();
    let search = tokio::spawn({
        let client = Arc::clone(&client);
        async move {
            started.send(()).unwrap();
            client.rerank("q").await
        }
    });
    start.await.unwrap();
    client.until(|client| client.calls() == 1).await;
    search.abort();
    client.answers_with(Ok("ranked"));
    client.until(|client| client.flights.under_way() == 0).await;
    client.answers_with(Err(Some(500)));
    assert_eq!(client.rerank("q").await, Ok("ranked"));
}

#[tokio::test]
async fn a_dead_endpoint_is_left_alone_and_tried_again_behind_the_callers_backs() {
    let client = Client::new();
    client.answers_with(Err(Some(503)));
    for query in ["1", "2", "3", "4", "5"] {
        assert_eq!(client.rerank(query).await, Err(Some(503)));
    }
    for _ in 0..10 {
        assert_eq!(client.rerank("q").await, Err(None));
    }
    assert_eq!((client.calls(), client.changes.lock().unwrap().clone()), (5, vec!["open"]));

    client.endpoint.answer.send_replace(None);
    client.wait(33);
    for _ in 0..10 {
        assert_eq!(client.rerank("q").await, Err(None));
    }
    client.until(|client| client.calls() == 6).await;
    client.answers_with(Ok("ranked"));
    client.until(|client| client.changes.lock().unwrap().len() == 3).await;
    assert_eq!(*client.changes.lock().unwrap(), ["open", "half_open", "closed"]);
    // The probe asked what was searched for, so its answer is of use.
    assert_eq!(client.rerank("q").await, Ok("ranked"));
    assert_eq!(client.calls(), 6);
}

#[tokio::test]
async fn no_more_calls_at_once_than_the_endpoint_bears() {
    let client = Client::new();
    let searches: Vec<_> = ["1", "2", "3", "4", "5", "6"]
        .map(|query| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.rerank(query).await })
        })
        .into();
    client.until(|client| client.flights.under_way() == 6).await;
    client.until(|client| client.calls() == 4).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.calls(), 4);
    client.answers_with(Ok("ranked"));
    for search in searches {
        assert_eq!(search.await.unwrap(), Ok("ranked"));
    }
}
