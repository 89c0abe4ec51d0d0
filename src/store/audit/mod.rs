//! The log of changes: an entry is written in the transaction of the change that it tells of. What an action or a summary
//! means is not known here.

mod rows;
mod sql;

use async_trait::async_trait;

use super::StoreError;
use crate::core::id::Id;
use crate::core::keys::KeyId;

/// Who changed what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub at_ms: i64,
    /// The id of a key, or a name that is none.
    pub actor: String,
    pub action: String,
    pub user: Option<Id>,
    pub project: Option<Id>,
    pub session: Option<Id>,
    pub key: Option<KeyId>,
    /// What was there before, by its revision or version; the store sets those of a config.
    pub before: Option<String>,
    pub after: Option<String>,
    /// Opaque JSON text.
    pub summary: String,
    pub request_id: Option<String>,
}

/// An entry to write beside a change.
#[derive(Debug, Clone)]
pub struct AuditWrite {
    pub entry: AuditEntry,
    /// Entries that are kept; older ones go.
    pub most: u32,
}

/// An entry as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Later entries have larger ones.
    pub id: i64,
    pub entry: AuditEntry,
}

/// Which entries to list.
#[derive(Debug, Clone)]
pub struct AuditQuery {
    pub user: Option<Id>,
    pub project: Option<Id>,
    /// Whether changes of sessions are among them.
    pub sessions: bool,
    pub actor: Option<String>,
    pub action: Option<String>,
    pub since_ms: i64,
    /// Only entries before this id; `None`: the latest.
    pub before: Option<i64>,
    pub limit: u32,
}

/// The log of changes of a store; part of [`super::Store`], with its promises.
#[async_trait]
pub trait AuditStore {
    /// A page of entries, the latest first.
    async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditRow>, StoreError>;

    /// Deletes up to `limit` entries from before `before_ms`, the oldest first; tells how many.
    async fn expire_audit(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}

pub(super) use rows::note;
