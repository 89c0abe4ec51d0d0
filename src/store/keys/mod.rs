//! Keys in the store: their rows, and what is done with them. What a role or a binding means is not known here.

mod rows;
mod sql;

use std::fmt;

use async_trait::async_trait;

use super::{AuditWrite, StoreError};
use crate::core::keys::{KeyDigest, KeyId};

/// A stored key.
#[derive(Clone)]
pub struct KeyRow {
    pub id: KeyId,
    pub name: String,
    pub digest: KeyDigest,
    pub role: String,
    /// Opaque JSON text.
    pub bindings: String,
    pub created_at_ms: i64,
    /// From then on it is not accepted; `None`: it does not expire.
    pub expires_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
    /// As of the last flush.
    pub last_used_ms: Option<i64>,
    /// The key that this one was made to take the place of.
    pub predecessor: Option<KeyId>,
    /// The key that takes the place of this one.
    pub successor: Option<KeyId>,
    /// Given by the store: every change of any key gets the next one.
    pub revision: i64,
}

impl fmt::Debug for KeyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRow").field("id", &self.id).field("role", &self.role).finish_non_exhaustive()
    }
}

/// A change of a key; what is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct KeyChange {
    pub name: Option<String>,
    /// `Some(None)`: it does not expire any more.
    pub expires_at_ms: Option<Option<i64>>,
    /// Opaque JSON text.
    pub bindings: Option<String>,
    /// A key that is revoked already keeps its time.
    pub revoked_at_ms: Option<i64>,
    /// Not written where a revoked key is revoked again.
    pub audit: Option<AuditWrite>,
}

/// A key in the place of another.
#[derive(Debug, Clone)]
pub struct KeyRotation {
    pub old: KeyId,
    /// The old key expires then at the latest.
    pub old_expires_at_ms: i64,
    pub now_ms: i64,
    /// Its `predecessor` is set by the store.
    pub new: KeyRow,
    pub audit: Option<AuditWrite>,
}

/// "This key was in use." At most one of each id per call.
#[derive(Debug, Clone, Copy)]
pub struct KeyTouch {
    pub id: KeyId,
    pub last_used_ms: i64,
}

/// The keys of a store; part of [`super::Store`], with its promises.
#[async_trait]
pub trait KeyStore {
    /// The keys that were made or changed after this revision, by revision; 0 answers all. A row that cannot be read is
    /// logged and left out: its key is not accepted.
    async fn key_changes(&self, after_revision: i64) -> Result<Vec<KeyRow>, StoreError>;

    /// One key; `None` when it does not exist.
    async fn key(&self, id: KeyId) -> Result<Option<KeyRow>, StoreError>;

    /// A page of keys, by time of creation and id, after those of a key that was shown last.
    async fn list_keys(&self, after: Option<(i64, KeyId)>, limit: u32) -> Result<Vec<KeyRow>, StoreError>;

    /// Stores a new key. With `only_first` it does so only while there is none at all, and else answers `None`.
    async fn insert_key(
        &self,
        row: KeyRow,
        only_first: bool,
        audit: Option<AuditWrite>,
    ) -> Result<Option<KeyRow>, StoreError>;

    /// Changes a key; answers it as it is then, `None` when it does not exist.
    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<Option<KeyRow>, StoreError>;

    /// Stores a key in the place of another. Answers the old one and the new one as they are then, `None` when the old one
    /// does not exist.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the old one is revoked, expired or rotated already.
    async fn rotate_key(&self, rotation: KeyRotation) -> Result<Option<(KeyRow, KeyRow)>, StoreError>;

    /// Notes when keys were used; times never go back.
    async fn touch_keys(&self, touches: Vec<KeyTouch>) -> Result<(), StoreError>;

    /// Deletes up to `limit` keys that were revoked or expired before `before_ms`; tells how many.
    async fn expire_keys(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
