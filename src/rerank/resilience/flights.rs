//! Identical calls that are under way at the same time are made once.
//!
//! Each call runs in a task of its own, so that a caller who goes away, even the one who started it, takes the answer
//! from nobody. Nothing is remembered once a call has ended; that is for the cache.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

/// Why a caller got no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missed {
    /// The caller's deadline passed. The call goes on.
    #[error("the deadline passed before the call ended")]
    Late,
    /// Too many different calls are under way; no call was made.
    #[error("too many calls are under way")]
    Full,
    /// The call ended without a result: it panicked, or the runtime is shutting down.
    #[error("the call ended without a result")]
    Lost,
}

type Airborne<K, T> = Arc<Mutex<HashMap<K, watch::Receiver<Option<T>>>>>;

/// The calls that are under way, by what makes them identical; bounded in number.
#[derive(Debug)]
pub struct Flights<K: Hash + Eq, T> {
    airborne: Airborne<K, T>,
    most: usize,
}

/// Takes a call off the list when it ends, whichever way.
struct Landing<K: Hash + Eq, T> {
    airborne: Airborne<K, T>,
    key: K,
}

impl<K: Hash + Eq, T> Drop for Landing<K, T> {
    fn drop(&mut self) {
        lock(&self.airborne).remove(&self.key);
    }
}

impl<K, T> Flights<K, T>
where
    K: Hash + Eq + Clone + Send + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// At most `most` different calls at the same time.
    pub fn new(most: usize) -> Self {
        Self { airborne: Arc::default(), most }
    }

    /// The result of the call with this key: of the one under way, or of `call`, which is started if there is none.
    ///
    /// All who join get the same result, errors too, each until its own deadline. What is started has to bound its
    /// own time, because no waiter ends it. Must run within a tokio runtime.
    ///
    /// # Errors
    /// [`Missed`]: there is no result for this caller.
    pub async fn join<F>(&self, key: K, deadline: Instant, call: impl FnOnce() -> F) -> Result<T, Missed>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut result = self.board(key, call)?;
        match timeout_at(deadline, result.wait_for(Option::is_some)).await {
            Ok(Ok(value)) => value.clone().ok_or(Missed::Lost),
            Ok(Err(_)) => Err(Missed::Lost),
            Err(_) => Err(Missed::Late),
        }
    }

    /// How many calls are under way.
    pub fn under_way(&self) -> usize {
        lock(&self.airborne).len()
    }

    fn board<F>(&self, key: K, call: impl FnOnce() -> F) -> Result<watch::Receiver<Option<T>>, Missed>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (sender, receiver) = watch::channel(None);
        let landing = {
            let mut airborne = lock(&self.airborne);
            if let Some(joined) = airborne.get(&key) {
                return Ok(joined.clone());
            }
            if airborne.len() >= self.most {
                return Err(Missed::Full);
            }
            airborne.insert(key.clone(), receiver.clone());
            Landing { airborne: Arc::clone(&self.airborne), key }
        };
        let call = call();
        let flight = async move {
            let value = call.await;
            // Before the result is out, so that who asks after it makes a new call.
            drop(landing);
            sender.send_replace(Some(value));
        };
        // In the trace of the request that began it.
        tokio::spawn(flight.in_current_span());
        Ok(receiver)
    }
}

fn lock<K, T>(
    airborne: &Mutex<HashMap<K, watch::Receiver<Option<T>>>>,
) -> MutexGuard<'_, HashMap<K, watch::Receiver<Option<T>>>> {
    // Entries are put in and taken out in one step each.
    airborne.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
