//! How many calls one endpoint has to bear from this process at the same time.
//!
//! A gate exists only while somebody is in it or before it, so nothing has to be swept up. Who waits, waits in order
//! and no longer than its deadline.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Bounds of [`Gates`].
#[derive(Debug, Clone, Copy)]
pub struct GateLimits {
    /// Calls to one endpoint at the same time, at least one.
    pub calls: usize,
    /// Callers that may wait for one endpoint; the next one is sent away at once.
    pub waiting: usize,
    /// Endpoints in use at the same time, at least one.
    pub endpoints: usize,
}

/// Why a caller was not let in. No call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Crowded {
    /// Too many wait for this endpoint already, or too many endpoints are in use.
    #[error("too many calls wait for the endpoint")]
    Full,
    /// The deadline passed in the queue.
    #[error("the deadline passed before the endpoint was free")]
    Late,
}

#[derive(Debug)]
struct Gate {
    places: Arc<Semaphore>,
    /// Callers in it and before it.
    users: usize,
}

type Open<K> = Arc<Mutex<HashMap<K, Gate>>>;

/// One gate per endpoint in use.
#[derive(Debug)]
pub struct Gates<K: Hash + Eq> {
    open: Open<K>,
    limits: GateLimits,
}

/// A place inside; dropping it lets the next one in.
#[derive(Debug)]
pub struct Slot<K: Hash + Eq> {
    // Given back before the gate may go.
    _place: OwnedSemaphorePermit,
    _user: User<K>,
}

/// Counts as a user of a gate while it lives, also when the caller went away in the queue.
#[derive(Debug)]
struct User<K: Hash + Eq> {
    open: Open<K>,
    key: K,
}

impl<K: Hash + Eq> Drop for User<K> {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if let Some(gate) = open.get_mut(&self.key) {
            gate.users -= 1;
            if gate.users == 0 {
                open.remove(&self.key);
            }
        }
    }
}

impl<K: Hash + Eq + Clone> Gates<K> {
    /// No gate yet.
    pub fn new(limits: GateLimits) -> Self {
        Self { open: Arc::default(), limits }
    }

    /// Waits for a place at an endpoint until the deadline. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// [`Crowded`]: there was none.
    pub async fn enter(&self, key: K, deadline: Instant) -> Result<Slot<K>, Crowded> {
        let (places, user) = self.approach(key)?;
        match timeout_at(deadline, places.acquire_owned()).await {
            Ok(Ok(place)) => Ok(Slot { _place: place, _user: user }),
            // Nobody closes the semaphore.
            Ok(Err(_)) => Err(Crowded::Full),
            Err(_) => Err(Crowded::Late),
        }
    }

    fn approach(&self, key: K) -> Result<(Arc<Semaphore>, User<K>), Crowded> {
        let calls = self.limits.calls.clamp(1, Semaphore::MAX_PERMITS);
        let mut open = lock(&self.open);
        if !open.contains_key(&key) && open.len() >= self.limits.endpoints.max(1) {
            return Err(Crowded::Full);
        }
        let gate = open
            .entry(key.clone())
            .or_insert_with(|| Gate { places: Arc::new(Semaphore::new(calls)), users: 0 });
        if gate.users >= calls.saturating_add(self.limits.waiting) {
            return Err(Crowded::Full);
        }
        gate.users += 1;
        Ok((Arc::clone(&gate.places), User { open: Arc::clone(&self.open), key }))
    }
}

fn lock<K>(open: &Open<K>) -> MutexGuard<'_, HashMap<K, Gate>> {
    // Counts are changed in one step, so they are right even after a panic elsewhere.
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
