//! The circuit breaker of one endpoint: when it is asked, when it is left alone, and when it is tried again.
//!
//! Pure: the time and the jitter are arguments, and what is logged or counted is a value that is handed back. It
//! knows nothing of requests; what a fault is, the caller says.

use std::time::{Duration, Instant};

/// So many failures in a row open the breaker.
pub const FAILURES_TO_OPEN: u32 = 5;

/// How long the breaker stays open at first; doubled after each probe that fails.
pub const FIRST_OPEN: Duration = Duration::from_secs(30);

/// What the doubling, or a server's `Retry-After`, ends at, before jitter.
pub const LONGEST_OPEN: Duration = Duration::from_secs(5 * 60);

/// Largest part of the time that jitter adds. It only adds: a server that names a time is not asked before it.
pub const JITTER: f64 = 0.2;

/// Least time that a `Retry-After` opens for, so that a server's zero makes no storm of state changes.
const SHORTEST_OPEN: Duration = Duration::from_secs(1);

/// A probe that did not report by then is taken for lost and the next one may start. The longest deadline of a call
/// (`timeout_ms`) is 60 s, so the lost one calls nobody any more.
const PROBE_LEASE: Duration = Duration::from_secs(90);

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Calls go out.
    Closed,
    /// No call goes out.
    Open,
    /// No call goes out except one probe at a time.
    HalfOpen,
}

impl State {
    /// Every value of [`State::name`].
    pub const NAMES: [&str; 3] = ["closed", "open", "half_open"];

    /// Stable name for answers, logs and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// Leave to make one call; its outcome is reported with it. Outcomes of calls that were admitted before the breaker
/// last changed are not counted: they say what was, not what is.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    generation: u64,
}

/// Whether a call may be made now.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission<F> {
    /// Make the call. The ticket may be dropped when no call was needed after all.
    Go(Ticket),
    /// Make no call for this caller, but one in the background to see whether the endpoint is back, and report its
    /// outcome whatever it is. The first probe after an open time brings the change to half-open with it.
    Probe(Ticket, Option<Change<F>>),
    /// Make no call.
    Refuse,
}

/// How an admitted call ended; its retry is part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<F> {
    /// A usable answer.
    Success,
    /// A failure that may pass. `retry_after` is the wait that the server asked for, and only where the caller's
    /// deadline had no room for it.
    Failure { fault: F, retry_after: Option<Duration> },
    /// A failure that lasts until somebody changes settings (401, 402, 403, 404).
    Configuration { fault: F },
    /// No call was made, or its outcome says nothing about the endpoint.
    NoCall,
}

/// A change of state, to be logged and counted once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<F> {
    pub from: State,
    pub to: State,
    /// What the breaker opened for; `None` when it closed.
    pub fault: Option<F>,
    /// How long it will stay open, with jitter; `None` when it did not open.
    pub open_for: Option<Duration>,
}

/// What a breaker looks like from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status<F> {
    /// Half-open as soon as the open time is over, whether or not somebody has asked since.
    pub state: State,
    /// Failures since the last success.
    pub failures: u32,
    /// The last of them.
    pub fault: Option<F>,
    /// Time until the endpoint is tried again; only while open.
    pub retry_in: Option<Duration>,
}

#[derive(Debug)]
enum Phase {
    Closed,
    Open { until: Instant },
    HalfOpen { probe_until: Option<Instant> },
}

/// The breaker itself; `F` is a fault as the caller wants to see it again.
#[derive(Debug)]
pub struct Breaker<F> {
    phase: Phase,
    failures: u32,
    /// Times that the open time was doubled.
    doublings: u32,
    fault: Option<F>,
    /// Changes with the phase and with each probe; tickets of an older one are void.
    generation: u64,
}

impl<F> Default for Breaker<F> {
    fn default() -> Self {
        Self { phase: Phase::Closed, failures: 0, doublings: 0, fault: None, generation: 0 }
    }
}

impl<F: Clone> Breaker<F> {
    /// Asks for leave to make a call. While the breaker is half-open, only one ticket is out.
    pub fn admit(&mut self, now: Instant) -> Admission<F> {
        let change = match self.phase {
            Phase::Closed => return Admission::Go(self.ticket()),
            Phase::Open { until } | Phase::HalfOpen { probe_until: Some(until) } if now < until => {
                return Admission::Refuse;
            }
            Phase::Open { .. } => Some(Change {
                from: State::Open,
                to: State::HalfOpen,
                fault: self.fault.clone(),
                open_for: None,
            }),
            Phase::HalfOpen { .. } => None,
        };
        self.generation += 1;
        self.phase = Phase::HalfOpen { probe_until: Some(later(now, PROBE_LEASE)) };
        Admission::Probe(self.ticket(), change)
    }

    /// Takes in how an admitted call ended. `jitter`, from 0 to 1 and drawn by the caller, spreads the time at which
    /// many breakers try again.
    pub fn report(
        &mut self,
        ticket: Ticket,
        verdict: Verdict<F>,
        now: Instant,
        jitter: f64,
    ) -> Option<Change<F>> {
        if ticket != self.ticket() {
            return None;
        }
        let probed = match &mut self.phase {
            Phase::HalfOpen { probe_until } => {
                *probe_until = None;
                true
            }
            _ => false,
        };
        let wait = match verdict {
            Verdict::NoCall => return None,
            Verdict::Success => return self.close(),
            Verdict::Configuration { fault } => {
                self.count(fault);
                self.back_off()
            }
            Verdict::Failure { fault, retry_after } => {
                self.count(fault);
                match retry_after {
                    // A server whose word did not hold is not taken at it again.
                    Some(asked) if probed => self.back_off().max(asked),
                    Some(asked) => asked.max(SHORTEST_OPEN),
                    None if probed || self.failures >= FAILURES_TO_OPEN => self.back_off(),
                    None => return None,
                }
            }
        };
        Some(self.open(wait, now, jitter))
    }

    /// Closes the breaker and forgets all failures, because the settings were written or a test of them succeeded.
    /// Calls that are under way are no longer counted.
    pub fn reset(&mut self) -> Option<Change<F>> {
        self.generation += 1;
        self.close()
    }

    /// What there is to show.
    pub fn status(&self, now: Instant) -> Status<F> {
        let (state, retry_in) = match self.phase {
            Phase::Open { until } if now < until => (State::Open, Some(until - now)),
            Phase::Closed => (State::Closed, None),
            _ => (State::HalfOpen, None),
        };
        Status { state, failures: self.failures, fault: self.fault.clone(), retry_in }
    }

    fn ticket(&self) -> Ticket {
        Ticket { generation: self.generation }
    }

    fn state(&self) -> State {
        match self.phase {
            Phase::Closed => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
        }
    }

    fn count(&mut self, fault: F) {
        self.failures = self.failures.saturating_add(1);
        self.fault = Some(fault);
    }

    /// The next open time: twice the last one.
    fn back_off(&mut self) -> Duration {
        let wait = FIRST_OPEN.saturating_mul(1 << self.doublings.min(16)).min(LONGEST_OPEN);
        self.doublings = self.doublings.saturating_add(1);
        wait
    }

    fn open(&mut self, wait: Duration, now: Instant, jitter: f64) -> Change<F> {
        let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
        let open_for = wait.min(LONGEST_OPEN).mul_f64(1.0 + JITTER * jitter);
        let from = self.state();
        self.generation += 1;
        self.phase = Phase::Open { until: later(now, open_for) };
        Change { from, to: State::Open, fault: self.fault.clone(), open_for: Some(open_for) }
    }

    fn close(&mut self) -> Option<Change<F>> {
        let from = self.state();
        self.failures = 0;
        self.doublings = 0;
        self.fault = None;
        if from == State::Closed {
            return None;
        }
        self.generation += 1;
        self.phase = Phase::Closed;
        Some(Change { from, to: State::Closed, fault: None, open_for: None })
    }
}

/// `now + wait`; at the end of the clock's range, `now`, which opens for no time rather than for ever.
fn later(now: Instant, wait: Duration) -> Instant {
    now.checked_add(wait).unwrap_or(now)
}

#[cfg(test)]
mod tests;
