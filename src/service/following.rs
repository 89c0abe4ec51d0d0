//! Following what other processes write to the same database: what they tell is read at once, and everything is looked at again
//! now and then, so that a write shows within a second whatever was heard of it.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::{Toolrack, uptime_ms};
use crate::core::id::Scope;
use crate::store::Changes;

/// Scopes that are read at the same time after they were changed.
const READ_AT_ONCE: usize = 4;

/// What this process knows of what it has heard.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// What was read before may be outdated: a time of the process in milliseconds, plus one.
    doubted: AtomicU64,
}

impl Following {
    /// Whether what was read at this time of the process may have changed unheard.
    pub(super) fn doubts(&self, read_ms: u64) -> bool {
        read_ms < self.doubted.load(Ordering::Relaxed)
    }
}

impl Toolrack {
    /// Runs until `stop`.
    pub async fn follow(&self, stop: CancellationToken) {
        let following = async {
            loop {
                let changes = self.0.store.next_changes().await;
                self.take_over(changes).await;
            }
        };
        stop.run_until_cancelled(following).await;
    }

    /// Reads what is kept in memory and was changed. What cannot be read now is read by the request that needs it.
    async fn take_over(&self, changes: Changes) {
        if changes.missed {
            self.0.following.doubted.fetch_max(uptime_ms() + 1, Ordering::Relaxed);
        }
        if changes.missed {
            self.reread("keys", self.reread_keys().await);
        } else if changes.keys {
            self.reread("keys", self.refresh_keys().await);
        }
        let kept = changes.scopes.into_iter().filter(|scope| self.0.caches.heads.contains_key(scope));
        let reads = stream::iter(kept).map(|scope: Scope| async move { self.read_head(&scope).await });
        reads.buffer_unordered(READ_AT_ONCE).for_each(async |read| self.reread("a scope", read)).await;
    }

    fn reread<T>(&self, what: &str, read: Result<T, super::Error>) {
        if let Err(error) = read {
            tracing::debug!(%error, what, "what another process changed cannot be read");
        }
    }
}
