//! Answers of endpoints that are still good.
//!
//! Bounded by bytes and by age. The tenant is part of the key as it is, not only of a digest, so that an entry is
//! never given to another tenant. Only successes belong here.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::future::Cache;

use super::recent::Recent;
use crate::core::digest::Digest;

/// What an entry costs besides its value: key, links and counters of the cache.
const ENTRY_BYTES: usize = 256;

/// Tenants whose last [`Answers::invalidate_tenant`] is remembered one by one.
const REMEMBERED_TENANTS: usize = 4_096;

/// What an answer belongs to. `Debug` shows nothing, because the digests are made from credentials and private texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnswerKey {
    tenant: Digest,
    epoch: u64,
    call: Digest,
}

impl AnswerKey {
    /// Tenant and call, for a place that other processes look into.
    pub fn shared(&self) -> (Digest, Digest) {
        (self.tenant, self.call)
    }
}

impl fmt::Debug for AnswerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerKey")
    }
}

/// The cache.
pub struct Answers<T> {
    kept: Cache<AnswerKey, T>,
    epochs: Mutex<Epochs>,
}

impl<T> fmt::Debug for Answers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

/// Which entries of a tenant still count. Invalidating is one step whatever the cache holds: the tenant's keys are
/// others from then on, and what was kept under the old ones ages out.
#[derive(Debug)]
struct Epochs {
    last: u64,
    /// The epoch of each tenant that is not remembered. It grows when one is forgotten, so that no tenant's epoch
    /// ever goes back.
    floor: u64,
    tenants: Recent<Digest, u64>,
}

impl Epochs {
    fn of(&self, tenant: &Digest) -> u64 {
        self.tenants.peek(tenant).map_or(self.floor, |epoch| self.floor.max(*epoch))
    }

    fn begin(&mut self, tenant: Digest) {
        self.last += 1;
        if let Some(forgotten) = self.tenants.insert(tenant, self.last) {
            self.floor = self.floor.max(forgotten);
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Answers<T> {
    /// At most `bytes` of answers, none older than `ttl`; with zero for either, none are kept. `size` tells the bytes
    /// of an answer.
    pub fn new(bytes: u64, ttl: Duration, size: impl Fn(&T) -> usize + Send + Sync + 'static) -> Self {
        Self::remembering(REMEMBERED_TENANTS, bytes, ttl, size)
    }

    fn remembering(
        tenants: usize,
        bytes: u64,
        ttl: Duration,
        size: impl Fn(&T) -> usize + Send + Sync + 'static,
    ) -> Self {
        let weigh = move |_: &AnswerKey, value: &T| {
            u32::try_from(size(value).saturating_add(ENTRY_BYTES)).unwrap_or(u32::MAX)
        };
        let kept = Cache::builder()
            .max_capacity(if ttl.is_zero() { 0 } else { bytes })
            // The library refuses more than a thousand years.
            .time_to_live(ttl.min(Duration::from_secs(365 * 24 * 60 * 60)))
            .weigher(weigh)
            .build();
        Self { kept, epochs: Mutex::new(Epochs { last: 0, floor: 0, tenants: Recent::new(tenants) }) }
    }

    /// The key of a call.
    ///
    /// - `tenant`: whose settings and texts these are, the user as well as the project.
    /// - `endpoint`: the URL that is called, with its query string.
    /// - `credential`: digest of the key and of whatever else goes into headers.
    /// - `body`: as it is sent.
    ///
    /// Keys made before an [`Answers::invalidate_tenant`] find nothing after it, so an answer that was under way
    /// meanwhile does no harm.
    pub fn key(&self, tenant: Digest, endpoint: &str, credential: Digest, body: &[u8]) -> AnswerKey {
        let call = Digest::of_parts(&[endpoint.as_bytes(), &credential.0, body]);
        AnswerKey { tenant, epoch: self.epochs().of(&tenant), call }
    }

    /// The answer, if there is one that still counts.
    pub async fn get(&self, key: &AnswerKey) -> Option<T> {
        self.kept.get(key).await
    }

    /// Keeps an answer.
    pub async fn insert(&self, key: AnswerKey, answer: T) {
        self.kept.insert(key, answer).await;
    }

    /// Makes all answers of a tenant count no longer. At times (after thousands of other tenants) those of more
    /// tenants with them, which only costs calls.
    pub fn invalidate_tenant(&self, tenant: Digest) {
        self.epochs().begin(tenant);
    }

    /// Entries held, as of the cache's last upkeep.
    pub fn entries(&self) -> u64 {
        self.kept.entry_count()
    }

    /// Bytes held, as of the cache's last upkeep.
    pub fn bytes(&self) -> u64 {
        self.kept.weighted_size()
    }

    fn epochs(&self) -> MutexGuard<'_, Epochs> {
        // An epoch that was begun and not written down invalidates nothing, and no epoch is used twice.
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
