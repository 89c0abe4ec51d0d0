//! Sessions and their warm sets.

mod counts;
mod rows;
mod sql;

use async_trait::async_trait;

use super::{AuditWrite, StoreError};
use crate::core::id::{Id, SessionKey};
use crate::core::tool::ToolKey;

pub use counts::SessionCounts;

/// One tool of a session's warm set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmRow {
    pub tool: ToolKey,
    /// Place in the tools array: ascending, given by the caller at the first warming.
    pub first_seq: i64,
    pub last_used_ms: i64,
    pub pinned: bool,
    /// Found, and waiting for an epoch to enter the array.
    pub pending: bool,
}

/// A session with its warm set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Opaque JSON text; `{}` until first set.
    pub settings: String,
    pub created_at_ms: i64,
    pub last_seen_ms: i64,
    /// What earlier versions wrote of what it did: JSON text, to which the counts are added. `{}` for a session that is younger.
    pub ledger: String,
    pub counts: SessionCounts,
    /// By `first_seq`, then group and name.
    pub warm: Vec<WarmRow>,
    /// Counts the writes of this session; flushes of ages and counts are none.
    pub revision: i64,
}

/// What tells whether a session is still what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionState {
    /// Together with the revision: a session that was deleted and begun anew is another one.
    pub created_at_ms: i64,
    pub revision: i64,
    pub last_seen_ms: i64,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    pub project: Option<Id>,
    pub session: Id,
    pub created_at_ms: i64,
    pub last_seen_ms: i64,
    /// Rows of the warm set, pending ones included.
    pub warm: i64,
}

/// What a write of a session was made for; something else stored is a [`StoreError::Conflict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedSession {
    /// Whatever is stored, or nothing.
    Any,
    /// Nothing. The row begins with this revision, so that one that comes back is not taken for what it was earlier.
    Absent { revision: i64 },
    /// This row.
    Row { created_at_ms: i64, revision: i64 },
}

/// A durable change of a session, which is begun when it does not exist. Order: `clear`, `remove`, `upsert`.
#[derive(Debug, Clone)]
pub struct SessionWrite {
    pub key: SessionKey,
    pub expected: ExpectedSession,
    pub now_ms: i64,
    /// Kept by a row that exists.
    pub created_at_ms: i64,
    /// Of the user: a session that is not there is only begun beside fewer, else it is [`StoreError::TooMany`].
    pub most: Option<u32>,
    /// `None` keeps the stored settings.
    pub settings: Option<String>,
    /// Empties the warm set first.
    pub clear: bool,
    pub remove: Vec<ToolKey>,
    /// A row that exists keeps its `first_seq` (its place) and the later `last_used_ms`, so that two writers
    /// that warm the same tool agree; `pinned` and `pending` are set. To move a tool to a new place, name it in
    /// `remove` too. At most one row of each tool.
    pub upsert: Vec<WarmRow>,
    pub audit: Option<AuditWrite>,
}

impl SessionWrite {
    /// A write that only makes sure that the session exists.
    pub fn new(key: SessionKey, now_ms: i64) -> Self {
        Self {
            key,
            expected: ExpectedSession::Any,
            now_ms,
            created_at_ms: now_ms,
            most: None,
            settings: None,
            clear: false,
            remove: Vec::new(),
            upsert: Vec::new(),
            audit: None,
        }
    }
}

/// What was buffered about a session since the last flush. At most one of each key per call.
/// Sessions and warm rows that are gone stay gone; times never go back.
#[derive(Debug, Clone)]
pub struct SessionTouch {
    pub key: SessionKey,
    /// A session that was begun at another time is another one, and left alone.
    pub created_at_ms: i64,
    pub last_seen_ms: i64,
    /// To be added to those that are stored.
    pub counts: SessionCounts,
    pub warm: Vec<WarmTouch>,
}

/// "This warm tool was in use."
#[derive(Debug, Clone)]
pub struct WarmTouch {
    pub tool: ToolKey,
    pub last_used_ms: i64,
}

/// Which sessions of a user to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectFilter {
    /// Of every project, and of none; by project (none first), then session id.
    Any,
    /// Of this project, or of none; by session id.
    Only(Option<Id>),
}

/// One page of a user's sessions.
#[derive(Debug, Clone)]
pub struct SessionQuery {
    pub user: Id,
    pub project: ProjectFilter,
    /// (project, session) of the last row of the page before; `None` starts at the beginning.
    pub after: Option<(Option<Id>, Id)>,
    /// Rows at most.
    pub limit: u32,
}

/// See the module.
#[async_trait]
pub trait SessionStore {
    /// One session with its warm set; `None` when it does not exist.
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, StoreError>;

    /// What tells whether a session is still what it was; `None` when it does not exist.
    async fn session_state(&self, key: &SessionKey) -> Result<Option<SessionState>, StoreError>;

    /// Changes a session and its warm set as a whole. Answers its revision.
    async fn write_session(&self, write: SessionWrite) -> Result<i64, StoreError>;

    /// Writes buffered touches, all or none. A large flush had better be several calls, which let other writes in between.
    async fn touch_sessions(&self, touches: Vec<SessionTouch>) -> Result<(), StoreError>;

    /// Deletes a session and its warm set. Answers whether there was one; only then an entry is written.
    async fn delete_session(&self, key: &SessionKey, audit: Option<AuditWrite>) -> Result<bool, StoreError>;

    /// Deletes a session that was last seen before a time. Answers whether there was one.
    async fn delete_idle_session(&self, key: &SessionKey, before_ms: i64) -> Result<bool, StoreError>;

    /// One page of a user's sessions, in the order that [`ProjectFilter`] names.
    async fn list_sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, StoreError>;

    /// The projects that a user has sessions in, `None` for sessions outside of all, in no order.
    async fn session_projects(&self, user: &Id) -> Result<Vec<Option<Id>>, StoreError>;

    /// Deletes up to `limit` sessions that were last seen before `before_ms`, the oldest first, and names them
    /// (so that copies in memory can go too).
    async fn expire_sessions(&self, before_ms: i64, limit: u32) -> Result<Vec<SessionKey>, StoreError>;
}
