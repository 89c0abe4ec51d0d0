//! Heads: the row of a scope as it was read, parsed, and remembered for half a second.
//!
//! A head that was read earlier never takes the place of one that was read later, so that the request after a write
//! sees the write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moka::ops::compute::Op;
use serde_json::Value;

use super::away::REMEMBERED_MS;
use super::timing::{Part, timed};
use super::{Error, Toolrack, request, uncancelled, uptime_ms};
use crate::core::digest::Digest;
use crate::core::id::Scope;
use crate::core::policy::{self, Layer};
use crate::core::warning::Warning;
use crate::store::{ScopeRow, SealedSecret};

/// The secret that is the key of a scope's endpoint.
pub(super) const API_KEY: &str = "matcher.api_key";

/// What the names of the secrets begin with that are more headers for a scope's endpoint.
pub(super) const HEADERS: &str = "matcher.extra_headers.";

/// The secret that is the text of a header.
pub(super) fn header_secret(name: &str) -> String {
    format!("{HEADERS}{}", name.to_ascii_lowercase())
}

/// A head is looked at again after this time, so that a write of another process shows within a second.
pub(super) const FRESH_MS: u64 = 500;

/// As [`FRESH_MS`], while other processes tell what they write.
const HEARD_MS: u64 = 800;

/// While one request reads a head anew, others are shown none that is older.
const OLDEST_MS: u64 = 1_000;

/// A scope as it was read, parsed.
#[derive(Debug)]
pub(super) struct Head {
    pub row: ScopeRow,
    /// The row's catalog version, ready to be a key.
    pub content_id: Arc<str>,
    pub layer: Layer,
    /// What could not be read of the stored document.
    pub warnings: Vec<Warning>,
    /// Of the stored document.
    pub digest: Digest,
}

impl Head {
    pub(super) fn new(row: ScopeRow) -> Self {
        let document: Value = serde_json::from_str(&row.config).unwrap_or(Value::Null);
        let (layer, warnings) = policy::load(&document);
        let digest = Digest::of(row.config.as_bytes());
        Self { content_id: row.catalog_version.as_str().into(), row, layer, warnings, digest }
    }

    /// Whether the scope itself says that queries which find nothing are kept.
    pub(super) fn keeps_missed_queries(&self) -> bool {
        self.layer.keep_missed_queries == Some(true)
    }

    /// Memory that it takes: a config as text, and parsed, which takes two to three times as much.
    pub(super) fn bytes(&self) -> usize {
        let secrets =
            self.row.secrets.iter().map(|secret| secret.name.len() + secret.sealed.bytes.len() + 256);
        size_of::<Self>() + 4 * self.row.config.len() + secrets.sum::<usize>()
    }

    /// What is another with every write of the config, and whenever its endpoints are to be tried again.
    fn tries(&self) -> [i64; 2] {
        [self.row.raw_revision, self.row.renewals]
    }

    pub(super) fn secret(&self, name: &str) -> Option<&SealedSecret> {
        self.row.secrets.iter().find(|secret| secret.name == name).map(|secret| &secret.sealed)
    }
}

/// A head with the times at which the store was asked, in milliseconds of the process.
#[derive(Debug)]
pub(super) struct CachedHead {
    head: Arc<Head>,
    /// Given out when the read began.
    ticket: u64,
    /// When the read began: what was written later may not be in it.
    checked_ms: AtomicU64,
    claimed_ms: AtomicU64,
}

impl CachedHead {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.head.bytes()
    }
}

/// How a row was come by.
struct Look {
    ticket: u64,
    /// As [`CachedHead::checked_ms`].
    asked_ms: u64,
    /// Rather than answered by a write.
    was_read: bool,
}

impl Toolrack {
    /// The head of a scope, at most half a second old, or a second while another request reads it anew; a little older than half a
    /// second while other processes tell what they write, and never older than a second. Writes that the request wants to see are there.
    ///
    /// Where the database does not answer, it is the one that was read last.
    pub(super) async fn head(&self, scope: &Scope) -> Result<Arc<Head>, Error> {
        let Some(cached) = self.0.caches.heads.get(scope).await else {
            return self.read_or_remember(None, self.read_head(scope)).await;
        };
        // Of what others write it is heard at once, and a look now and then is enough.
        let fresh_ms = if self.0.store.hears_changes() { HEARD_MS } else { FRESH_MS };
        let (now, checked) = (uptime_ms(), cached.checked_ms.load(Ordering::Relaxed));
        let age = now.saturating_sub(checked);
        let claimed = cached.claimed_ms.load(Ordering::Relaxed);
        let claims = || {
            let claim = &cached.claimed_ms;
            now.saturating_sub(claimed) >= fresh_ms
                && claim.compare_exchange(claimed, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let has_wanted = cached.head.row.writes >= request::wanted(scope);
        let is_enough = has_wanted && !self.0.following.doubts(checked);
        if is_enough && (age < fresh_ms || (age < OLDEST_MS && !claims())) {
            return Ok(Arc::clone(&cached.head));
        }
        let known = (has_wanted && age < REMEMBERED_MS).then(|| Arc::clone(&cached.head));
        self.read_or_remember(known, self.read_head(scope)).await
    }

    /// Reads a scope past the cache, for an answer that shows it.
    pub(super) async fn fresh_head(&self, scope: &Scope) -> Result<Arc<Head>, Error> {
        let head = self.read_head(scope).await?;
        request::shows(scope, head.row.writes);
        Ok(head)
    }

    /// Reads a scope past the cache.
    pub(super) async fn read_head(&self, scope: &Scope) -> Result<Arc<Head>, Error> {
        let (ticket, asked_ms) = (self.0.caches.next_ticket(), uptime_ms());
        let row = timed(Part::Database, self.0.store.scope(scope)).await?;
        Ok(self.keep_head(scope, row, Look { ticket, asked_ms, was_read: true }).await)
    }

    /// Runs a write of a scope to its end, also when the caller goes away, and answers what is there then.
    pub(super) async fn uncancelled_head(
        &self,
        scope: &Scope,
        write: impl Future<Output = Result<Arc<Head>, Error>> + Send + 'static,
    ) -> Result<Arc<Head>, Error> {
        let head = uncancelled(write).await?;
        request::shows(scope, head.row.writes);
        Ok(head)
    }

    /// Remembers what a write answered that began at a time of the process.
    pub(super) async fn written_head(&self, scope: &Scope, row: ScopeRow, asked_ms: u64) -> Arc<Head> {
        let ticket = self.0.caches.next_ticket();
        self.keep_head(scope, row, Look { ticket, asked_ms, was_read: false }).await
    }

    /// A row that was read takes the place of those that were read before, also where the database has lost writes since; what a
    /// write answered, only of older ones: others may have written after it.
    async fn keep_head(&self, scope: &Scope, row: ScopeRow, look: Look) -> Arc<Head> {
        let Look { ticket, asked_ms, was_read } = look;
        let known = self.0.caches.heads.get(scope).await.map(|known| Arc::clone(&known.head));
        let head = match &known {
            Some(known) if known.row == row => Arc::clone(known),
            _ => Arc::new(Head::new(row)),
        };
        let cached = Arc::new(CachedHead {
            head: Arc::clone(&head),
            ticket,
            checked_ms: asked_ms.into(),
            claimed_ms: asked_ms.into(),
        });
        let newest = self.0.caches.heads.entry(scope.clone()).and_compute_with(|entry| {
            let later = entry.is_some_and(|entry| {
                let known = entry.value();
                known.ticket > ticket || (!was_read && known.head.row.writes > head.row.writes)
            });
            std::future::ready(if later { Op::Nop } else { Op::Put(cached) })
        });
        newest.await;
        // Another process wrote the config, or was asked to try its endpoints again: so does this one.
        if let Some(known) = known.filter(|known| was_read && known.tries() != head.tries()) {
            self.renew_matchers(scope, &known, &head).await;
            if !head.keeps_missed_queries() {
                self.usage().forget_missed(scope);
            }
        }
        head
    }

    /// The head of a scope that may not be named; nothing is stored for none.
    pub(super) async fn optional_head(&self, scope: Option<Scope>) -> Result<Arc<Head>, Error> {
        match scope {
            Some(scope) => self.head(&scope).await,
            None => Ok(Arc::clone(&self.0.nothing.head)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::Id;
    use crate::service::caches::{CacheLimits, Caches};
    use crate::service::context::Merged;

    #[tokio::test]
    async fn configs_are_kept_by_their_size_and_not_by_their_number() {
        let limits = CacheLimits {
            catalogs_bytes: 1,
            views_bytes: 4 << 20,
            vectors_bytes: 1,
            answers_bytes: 1,
            sessions: 1,
        };
        let caches = Caches::new(&limits);
        let names: Vec<String> = (0..2_000).map(|at| format!("a_tool_of_a_rather_long_name_{at}")).collect();
        let config = serde_json::json!({ "core": names }).to_string();
        for at in 0..100 {
            let row = ScopeRow { config: config.clone(), ..ScopeRow::default() };
            let head = Arc::new(Head::new(row));
            let merged = Merged::of(&head, &head);
            caches.merged.insert((Digest::of(&[at]), head.digest), Arc::new(merged)).await;
            let cached = CachedHead { head, ticket: 1, checked_ms: 0.into(), claimed_ms: 0.into() };
            let scope = Scope::User(Id::parse(&format!("user-{at}")).unwrap());
            caches.heads.insert(scope, Arc::new(cached)).await;
        }
        caches.heads.run_pending_tasks().await;
        caches.merged.run_pending_tasks().await;
        let text = config.len() as u64;
        for (what, entries, most) in [
            ("heads", caches.heads.entry_count(), limits.views_bytes / 2 / text),
            ("merged", caches.merged.entry_count(), limits.views_bytes / 4 / text),
        ] {
            assert!(entries > 0 && entries < most, "{what}: {entries} of {text} bytes each");
        }
    }
}
