//! The breakers of a process, one for each set of settings that has failed.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::breaker::{Admission, Breaker, Change, Status, Ticket, Verdict};
use super::recent::Recent;
use crate::core::digest::{Digest, Hasher};

/// Which breaker a call belongs to. `Debug` shows nothing, because a digest of a weak key gives the key away.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BreakerKey(Digest);

impl BreakerKey {
    /// - `endpoint`: the configured URL, with its query string: some put a token or a version there.
    /// - `credential`: digest of everything that can make these calls fail where another's to the same endpoint and
    ///   model do not: the key first, then the header that carries it, extra headers, extra body and deadline.
    /// - `model`: as configured.
    pub fn new(endpoint: &str, credential: Digest, model: Option<&str>) -> Self {
        let mut hasher = Hasher::default();
        hasher.add(endpoint.as_bytes()).add(&credential.0);
        if let Some(model) = model {
            hasher.add(model.as_bytes());
        }
        Self(hasher.finish())
    }
}

impl fmt::Debug for BreakerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BreakerKey")
    }
}

/// Breakers by key, bounded in number.
///
/// A key that never failed takes no room. Where there are too many, the one that was asked least recently is
/// forgotten, and so closed: its endpoint costs a few more failures before it is left alone again.
#[derive(Debug)]
pub struct Breakers<F> {
    breakers: Mutex<Recent<BreakerKey, Breaker<F>>>,
}

impl<F: Clone> Breakers<F> {
    /// At most `most` breakers are kept.
    pub fn new(most: usize) -> Self {
        Self { breakers: Mutex::new(Recent::new(most)) }
    }

    /// [`Breaker::admit`] for a key.
    pub fn admit(&self, key: BreakerKey, now: Instant) -> Admission<F> {
        match self.lock().get_mut(&key) {
            Some(breaker) => breaker.admit(now),
            None => Breaker::default().admit(now),
        }
    }

    /// [`Breaker::report`] for a key.
    pub fn report(
        &self,
        key: BreakerKey,
        ticket: Ticket,
        verdict: Verdict<F>,
        now: Instant,
        jitter: f64,
    ) -> Option<Change<F>> {
        let mut breakers = self.lock();
        if let Some(breaker) = breakers.get_mut(&key) {
            return breaker.report(ticket, verdict, now, jitter);
        }
        if matches!(verdict, Verdict::Success | Verdict::NoCall) {
            return None;
        }
        // A ticket of a breaker that was forgotten since is void here too, and the next failure counts.
        let mut breaker = Breaker::default();
        let change = breaker.report(ticket, verdict, now, jitter);
        breakers.insert(key, breaker);
        change
    }

    /// [`Breaker::reset`] for a key.
    pub fn reset(&self, key: BreakerKey) -> Option<Change<F>> {
        self.lock().get_mut(&key)?.reset()
    }

    /// [`Breaker::status`] of a key.
    pub fn status(&self, key: BreakerKey, now: Instant) -> Status<F> {
        match self.lock().peek(&key) {
            Some(breaker) => breaker.status(now),
            None => Breaker::default().status(now),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Recent<BreakerKey, Breaker<F>>> {
        // No step under the lock can leave a breaker half changed.
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
