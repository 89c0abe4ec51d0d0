//! What holds a request back before its handler runs: the rate of its key, and the number of requests that run at the same
//! time.
//!
//! Owns the clock and the lock around the state machines of `core::rate` and `core::slots`. Must not know routes or services.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use tokio::sync::oneshot;

use crate::core::keys::{KeyId, Principal};
use crate::core::rate::{Allowance, Left, Rate, Taken};
use crate::core::slots::{Asked, Share, SlotLimits, Slots};
use crate::http::problem::{Code, Problem};
use crate::service::uptime_nanos;
use crate::telemetry;

/// The allowances of an answer's key (draft-ietf-httpapi-ratelimit-headers).
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// What is left to the key of a request, for the headers of its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    rate: Rate,
    left: Left,
}

impl Counted {
    /// Counts a request. The problem is that none is left.
    pub(crate) fn take(allowance: &Allowance) -> (Self, Result<(), Problem>) {
        let rate = allowance.rate();
        match allowance.take(uptime_nanos()) {
            Taken::Yes { left, .. } => (Self { rate, left }, Ok(())),
            Taken::No { retry_in, left } => {
                telemetry::held_back("rate");
                let detail =
                    format!("this key has sent too many requests; the next may come in {retry_in} s");
                let problem = Problem::new(Code::RateLimited, detail)
                    .with_header(header::RETRY_AFTER, HeaderValue::from(retry_in));
                (Self { rate, left }, Err(problem))
            }
        }
    }

    pub(crate) fn write(self, headers: &mut HeaderMap) {
        let (quota, window) = (self.rate.burst(), self.rate.window());
        let Left { count, whole_in } = self.left;
        for (name, text) in [
            (RATE_LIMIT_POLICY, format!("\"requests\";q={quota};w={window}")),
            (RATE_LIMIT, format!("\"requests\";r={count};t={whole_in}")),
        ] {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        }
    }
}

/// Whose share of the slots a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Admin,
    Key(KeyId),
    /// Everybody together who signs in.
    Stranger,
    /// Everybody together whose cookie is looked up.
    Visitor,
}

impl Owner {
    fn of(principal: &Principal) -> (Self, Share) {
        match principal {
            // Whoever runs the service may use all of it.
            Principal::Admin => (Self::Admin, Share::Whole),
            Principal::Key(rights) => (Self::Key(rights.id), Share::Half),
        }
    }
}

struct Waiter {
    owner: Owner,
    granted: oneshot::Sender<()>,
}

type State = Slots<Owner, Waiter>;

/// The requests that run and wait. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Mutex<State>>);

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gate")
    }
}

/// How a request is let in.
pub(crate) enum Entry {
    Now(Slot),
    Later(Waiting),
}

impl Gate {
    pub(crate) fn new(limits: SlotLimits) -> Self {
        Self(Arc::new(Mutex::new(Slots::new(limits))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many requests run and wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        self.lock().load()
    }

    /// A slot for a request, or a place in the queue; the problem is that there is neither.
    pub(crate) fn enter(&self, principal: &Principal) -> Result<Entry, Problem> {
        let (owner, share) = Owner::of(principal);
        self.enter_as(owner, share)
    }

    /// The same for somebody who signs in.
    pub(crate) fn enter_stranger(&self) -> Result<Entry, Problem> {
        self.enter_as(Owner::Stranger, Share::Half)
    }

    /// The same for somebody who has to be looked up in the database.
    pub(crate) fn enter_visitor(&self) -> Result<Entry, Problem> {
        self.enter_as(Owner::Visitor, Share::Half)
    }

    fn enter_as(&self, owner: Owner, share: Share) -> Result<Entry, Problem> {
        let mut receiver = None;
        let asked = self.lock().ask(owner, share, || {
            let (granted, wait) = oneshot::channel();
            receiver = Some(wait);
            Waiter { owner, granted }
        });
        match (asked, receiver) {
            (Asked::Runs, _) => Ok(Entry::Now(Slot { gate: self.clone(), owner })),
            (Asked::Waits(ticket), Some(granted)) => {
                Ok(Entry::Later(Waiting { gate: self.clone(), owner, ticket, granted, is_over: false }))
            }
            _ => {
                telemetry::held_back("overload");
                let detail = "too many requests run and wait already; try again shortly";
                let problem = Problem::new(Code::Overloaded, detail);
                Err(problem.with_header(header::RETRY_AFTER, HeaderValue::from_static("1")))
            }
        }
    }
}

/// Gives a slot back, and to the next that waits and is still there.
fn release(slots: &mut State, owner: Owner) {
    let mut ended = owner;
    while let Some(next) = slots.end(ended) {
        if next.granted.send(()).is_ok() {
            return;
        }
        ended = next.owner;
    }
}

/// A request that runs, until this is dropped.
pub(crate) struct Slot {
    gate: Gate,
    owner: Owner,
}

impl Drop for Slot {
    fn drop(&mut self) {
        release(&mut self.gate.lock(), self.owner);
    }
}

/// A request that waits; dropped, it leaves the queue.
pub(crate) struct Waiting {
    gate: Gate,
    owner: Owner,
    ticket: u64,
    granted: oneshot::Receiver<()>,
    /// Its turn has come.
    is_over: bool,
}

impl Waiting {
    pub(crate) async fn slot(mut self) -> Slot {
        // The sender stands in the queue until it is used.
        drop((&mut self.granted).await);
        self.is_over = true;
        Slot { gate: self.gate.clone(), owner: self.owner }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut slots = self.gate.lock();
        if self.granted.try_recv().is_ok() {
            release(&mut slots, self.owner);
        } else {
            slots.give_up(self.owner, self.ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(running: usize, waiting: usize) -> Gate {
        Gate::new(SlotLimits { running, waiting })
    }

    fn now(gate: &Gate) -> Slot {
        match gate.enter(&Principal::Admin) {
            Ok(Entry::Now(slot)) => slot,
            _ => panic!("there is a slot"),
        }
    }

    fn later(gate: &Gate) -> Waiting {
        match gate.enter(&Principal::Admin) {
            Ok(Entry::Later(waiting)) => waiting,
            _ => panic!("there is a place in the queue"),
        }
    }

    #[tokio::test]
    async fn a_slot_goes_to_who_waits() {
        let gate = gate(1, 1);
        let first = now(&gate);
        let second = later(&gate);
        assert_eq!(gate.enter(&Principal::Admin).err().map(|problem| problem.code()), Some(Code::Overloaded));
        drop(first);
        let second = second.slot().await;
        assert_eq!(gate.load(), (1, 0));
        drop(second);
        assert_eq!(gate.load(), (0, 0));
    }

    #[tokio::test]
    async fn who_goes_away_keeps_no_slot() {
        let gate = gate(1, 4);
        let first = now(&gate);
        let (granted, next) = (later(&gate), later(&gate));
        drop(later(&gate));
        assert_eq!(gate.load(), (1, 2));
        drop(first);
        // Its turn has come, and nobody looks.
        drop(granted);
        drop(next.slot().await);
        assert_eq!(gate.load(), (0, 0));
    }
}
