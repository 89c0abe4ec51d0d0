//! Background work: flushing ages and counters, expiring idle sessions, telling what there is to do.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{CacheUse, Toolrack};
use crate::store::StoreLoad;
use crate::telemetry::{self, Load, warn_of};

/// How often idle sessions are looked for.
const EXPIRY_EVERY: Duration = Duration::from_secs(60);

/// How often a database's clock is looked at.
const CLOCK_EVERY: Duration = Duration::from_secs(30);

impl Toolrack {
    /// Runs until `stop`; then flushes a last time. Failures are logged and tried again at the next turn.
    pub async fn upkeep(&self, flush_every: Duration, stop: CancellationToken) {
        // What is stored of a session's age must not be so old that another process takes it for idle.
        let mut flush = tokio::time::interval(flush_every.min(self.0.limits.session_ttl / 2));
        let mut clock = tokio::time::interval(CLOCK_EVERY);
        let mut expiry = tokio::time::interval(EXPIRY_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = flush.tick() => self.try_flush().await,
                () = self.usage().is_large() => self.try_flush().await,
                _ = expiry.tick() => match self.expire().await {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(count, "expired idle sessions and inline catalogs"),
                    Err(error) => warn_of!(error, "could not expire idle sessions"),
                },
                _ = clock.tick() => if let Err(error) = self.read_clock().await {
                    warn_of!(error, "could not read the clock of the database");
                },
            }
        }
        self.try_flush().await;
    }

    async fn try_flush(&self) {
        if let Err(error) = self.flush().await {
            warn_of!(error, "could not flush usage and the ages of sessions");
        }
    }

    /// Puts the sizes of the caches, and what there is to do at present, into the metrics.
    pub fn report(&self) {
        let StoreLoad { waiting_writes, connections_in_use, connections_idle, connections_most } =
            self.0.store.load();
        telemetry::load(&Load {
            breakers_open: self.failing_endpoints(),
            waiting_writes,
            connections_in_use,
            connections_idle,
            connections_most,
            has_room: self.has_room(),
            is_listening: !self.0.store.is_shared() || self.0.store.hears_changes(),
            tools_held: self.0.caches.tools_held(),
        });
        let sessions = CacheUse { cache: "sessions", entries: self.0.sessions.entry_count(), bytes: 0 };
        let (entries, bytes) = self.0.reranker.answers();
        let answers = CacheUse { cache: "answers", entries, bytes };
        for usage in self.0.caches.usage().into_iter().chain([answers, sessions]) {
            telemetry::cache_size(usage.cache, usage.entries, usage.bytes);
        }
    }
}
