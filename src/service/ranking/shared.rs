//! Rankings in the database, for the other processes that stand on it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use crate::core::digest::Digest;
use crate::rerank::SharedRankings;
use crate::service::{Error, Toolrack, now_ms};
use crate::store::{MasterKey, RankingKey, Store};
use crate::telemetry::warn_of;

/// How long a ranking is good: as long as one in memory.
const KEPT_MS: i64 = 10 * 60 * 1_000;

/// Of one tenant: what it asks in ten minutes at three searches a second.
const MOST: u32 = 2_000;

/// What a look may take, far less than a call.
const LOOK: Duration = Duration::from_millis(50);

const EXPIRED_AT_ONCE: u32 = 500;

/// See the module.
#[derive(Debug)]
pub(in crate::service) struct StoredRankings {
    store: Arc<dyn Store>,
    blind: Digest,
}

impl StoredRankings {
    /// Nothing where no other process can be.
    pub(in crate::service) fn of(
        store: &Arc<dyn Store>,
        master_key: &MasterKey,
    ) -> Option<Arc<dyn SharedRankings>> {
        let stored = || Self { store: Arc::clone(store), blind: master_key.blind(b"rankings") };
        store.is_shared().then(|| Arc::new(stored()) as Arc<dyn SharedRankings>)
    }

    /// Digests that tell nobody without the key whether a guess about tenant and query is right.
    fn key(&self, tenant: Digest, call: Digest) -> RankingKey {
        let owner = Digest::of_parts(&[&self.blind.0, &tenant.0]);
        RankingKey { owner, call: Digest::of_parts(&[&self.blind.0, &tenant.0, &call.0]) }
    }
}

#[async_trait]
impl SharedRankings for StoredRankings {
    async fn get(&self, tenant: Digest, call: Digest) -> Option<String> {
        let key = self.key(tenant, call);
        let look = self.store.ranking(&key, now_ms() - KEPT_MS);
        timeout(LOOK, look).await.ok()?.ok()?
    }

    async fn put(&self, tenant: Digest, call: Digest, text: String) {
        let written = self.store.write_ranking(self.key(tenant, call), text, now_ms(), MOST).await;
        if let Err(error) = written {
            tracing::debug!(%error, "a ranking is not shared");
        }
    }

    async fn forget(&self, tenant: Digest) {
        let owner = self.key(tenant, tenant).owner;
        if let Err(error) = self.store.forget_rankings(owner).await {
            warn_of!(error, "rankings of other processes count for some minutes more");
        }
    }
}

impl Toolrack {
    /// Deletes rankings that are too old.
    pub(in crate::service) async fn expire_rankings(&self) -> Result<(), Error> {
        let before = now_ms() - KEPT_MS;
        while self.0.store.expire_rankings(before, EXPIRED_AT_ONCE).await? == u64::from(EXPIRED_AT_ONCE) {}
        Ok(())
    }
}
