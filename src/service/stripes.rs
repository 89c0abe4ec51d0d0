//! Locks by key, so that what changes one thing waits for what changes the same thing.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// More than the changes that are ever under way at once.
const STRIPES: usize = 1_024;

/// Held while something is changed; a write that outlives its request holds a copy.
pub(super) type Guard = Arc<OwnedMutexGuard<()>>;

/// A fixed number of locks, shared by keys by their hash.
pub(super) struct Stripes {
    locks: Vec<Arc<Mutex<()>>>,
    hasher: RandomState,
}

impl Default for Stripes {
    fn default() -> Self {
        Self { locks: (0..STRIPES).map(|_| Arc::default()).collect(), hasher: RandomState::new() }
    }
}

impl Stripes {
    pub(super) async fn guard(&self, key: &impl Hash) -> Guard {
        let at = self.hasher.hash_one(key) as usize % STRIPES;
        let lock = self.locks.get(at).map(Arc::clone).unwrap_or_default();
        Arc::new(lock.lock_owned().await)
    }
}
