//! Rankings of endpoints that the processes of one database share.

mod rows;
mod sql;

use async_trait::async_trait;

use super::StoreError;
use crate::core::digest::Digest;

/// Whose ranking it is, and of which call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankingKey {
    pub owner: Digest,
    pub call: Digest,
}

/// See the module.
#[async_trait]
pub trait RankingStore {
    /// A ranking that was stored at or after a time; opaque text.
    async fn ranking(&self, key: &RankingKey, since_ms: i64) -> Result<Option<String>, StoreError>;

    /// Stores a ranking in the place of another one. Of its owner at most the `most` that were stored last are left.
    async fn write_ranking(
        &self,
        key: RankingKey,
        body: String,
        now_ms: i64,
        most: u32,
    ) -> Result<(), StoreError>;

    /// Deletes all rankings of an owner.
    async fn forget_rankings(&self, owner: Digest) -> Result<(), StoreError>;

    /// Deletes up to `limit` rankings that were stored before `before_ms`, the oldest first; tells how many.
    async fn expire_rankings(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
