//! Durable state: scopes with their configs, secrets, catalogs, reviews and MCP servers, inline catalogs, sessions, warm sets and
//! the listings that sessions keep, keys, usage, setups, and the log of changes.
//!
//! [`Store`] is all that the service knows of a database; [`SqlStore`] implements it, on one SQLite file ([`SqliteStore`]) or in a database of a PostgreSQL server
//! ([`PostgresStore`]).
//! This module owns rows and their transactions. It does not know what a config document, a tool body or a
//! session's settings mean (texts are kept byte for byte), it reads no clock (every time is passed in, as
//! milliseconds since the Unix epoch), and it never sees a secret in the clear: sealing is done by the caller
//! with a [`MasterKey`].
//!
//! Promises of every implementation:
//! - a write is durable (it survives a killed process) and visible to every later read when its future
//!   resolves;
//! - a caller that drops the future of a write does not cancel the write;
//! - a write happens as a whole or not at all, and one that fails does not touch others;
//! - a read shows one moment: a catalog never comes with the version of another.
//!
//! No text holds the character NUL, which PostgreSQL does not take: JSON text never does.

mod audit;
mod backup;
mod changes;
mod check;
mod copy;
mod engine;
mod failures;
mod keys;
mod lock;
mod mcp_servers;
mod open;
mod outage;
mod postgres;
mod private_file;
mod pulse;
mod rankings;
mod reads;
mod reviews;
mod room;
mod rotation;
mod schema;
mod secrets;
mod server;
mod sessions;
mod setup;
mod sql;
mod sql_store;
mod sqlite;
mod usage;
mod vector_claims;
mod writer;
mod writes;

#[cfg(test)]
mod contract;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::core::digest::Digest;
use crate::core::id::{Id, Scope};
use crate::core::keys::KeyId;
use crate::core::tool::ToolKey;

pub use audit::{AuditEntry, AuditQuery, AuditRow, AuditStore, AuditWrite};
pub use backup::{Backup, BackupError, backup};
pub use changes::Changes;
pub use check::Check;
pub use copy::{CopyError, copy};
pub use keys::{KeyChange, KeyRotation, KeyRow, KeyStore, KeyTouch};
pub use lock::{LockError, SERVE_LOCK_WAIT, ServeLock};
pub use mcp_servers::{McpServerRow, McpServerStore, McpServerWrite, McpSyncNote, mcp_secret};
pub use open::{OpenError, Place};
pub use postgres::PostgresStore;
pub use private_file::{SecretFileError, read_secret_file};
pub use rankings::{RankingKey, RankingStore};
pub use reviews::{HeldRow, HeldVersion, RemovedRow, ReviewRows, ReviewStore, ReviewWrite};
pub use rotation::{KeyFileRotation, Resealed, reseal_all};
pub use secrets::{MAX_SECRET_BYTES, MasterKey, MasterKeyError, SecretTooLong, Unreadable, secret_aad};
pub use server::Server;
pub use sessions::{
    ExpectedSession, ProjectFilter, SessionCounts, SessionQuery, SessionRow, SessionState, SessionStore,
    SessionSummary, SessionTouch, SessionWrite, WarmRow, WarmTouch,
};
pub use setup::{
    CONFIG_VERSIONS, ConfigVersion, DraftRow, DraftWrite, PageSessionRow, SetupStore, SetupWrite,
};
pub use sql_store::SqlStore;
pub use sqlite::{SqliteOptions, SqliteStore};
pub use usage::{MissedQuery, ToolUsageAdd, ToolUsageRow, UsageAdd, UsageRow, UsageStore};
pub use vector_claims::VectorClaimStore;

/// Why a read or a write did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The revision or version that the write was made for is no longer the stored one. Read again and decide.
    #[error("the stored state has changed since it was read")]
    Conflict,
    /// As many as may be are there already; nothing was written.
    #[error("there are too many of these already")]
    TooMany,
    /// The database is lost, or does not answer; the cause is for the log.
    #[error("the database does not answer: {}", failures::told(&**.0))]
    Away(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The database failed, and answers; the cause is for the log.
    #[error("the database failed: {}", failures::told(&**.0))]
    Database(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The database takes no such value or statement, which is a fault of this program. Nothing was written.
    #[error("the database takes no such thing: {}", failures::told(&**.0))]
    Refused(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The server is a standby of another one. Nothing was written.
    #[error("the database is a standby, which takes no writes")]
    ReadOnly,
    /// An operation ended by a fault of this program. Nothing was written.
    #[error("this program had a fault in a write")]
    Panicked,
    /// There is no room for it: the disk is full, or the file has its largest size. Nothing was written.
    #[error("the database or its disk is full")]
    Full,
    /// A stored row holds what this program never writes.
    #[error("a stored {0} cannot be read")]
    Corrupt(&'static str),
    /// Too much waits for the disk, for a connection or for what others lock; nothing was written.
    #[error("the database has too much to do")]
    Busy,
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether it is told once, by the store, that the database went away.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Away(_) | Self::ReadOnly)
    }

    /// What kind of fault it is, for traces; nothing where it is an answer to what was asked.
    fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Conflict | Self::TooMany => None,
            Self::Away(_) => Some("away"),
            Self::Database(_) => Some("database"),
            Self::Refused(_) => Some("refused"),
            Self::ReadOnly => Some("read_only"),
            Self::Panicked => Some("panicked"),
            Self::Full => Some("full"),
            Self::Corrupt(_) => Some("corrupt"),
            Self::Busy => Some("busy"),
            Self::Closed => Some("closed"),
        }
    }
}

/// What a store tells of what it does (for metrics). Asked in its tasks, so it must not wait.
pub type Observe = fn(&Observed<'_>);

/// Something that happened in a store.
#[derive(Debug, Clone, Copy)]
pub enum Observed<'a> {
    Committed(Committed<'a>),
    /// How long a read waited for a connection.
    ReadWaited(Duration),
}

/// What is told of one transaction with writes.
#[derive(Debug, Clone, Copy)]
pub struct Committed<'a> {
    /// How long each write waited for it to begin.
    pub waited: &'a [Duration],
    /// From its first statement to its end.
    pub took: Duration,
}

/// How much a store has to do at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLoad {
    /// Writes that wait for their turn.
    pub waiting_writes: usize,
    /// Connections of the pool for reads that are in use, that are open and idle, and that there may be.
    pub connections_in_use: u32,
    pub connections_idle: u32,
    pub connections_most: u32,
}

/// One scope: its config document, the version of its catalog, and what is known of its secrets.
/// A scope that was never written reads as the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeRow {
    /// JSON text of the config document, as written; `{}` when unwritten.
    pub config: String,
    /// Revision to show: 0 while the config is unwritten (also after it was deleted), else `raw_revision`.
    pub config_revision: i64,
    /// Counts every write and every delete of the config, and never goes back, so no revision comes twice.
    pub raw_revision: i64,
    /// Counts every write of config and catalog, and never goes back.
    pub writes: i64,
    /// Counts every [`Store::renew_scope`], and never goes back.
    pub renewals: i64,
    /// Version of the catalog; empty when there is none.
    pub catalog_version: String,
    /// By name.
    pub secrets: Vec<SecretRow>,
}

impl Default for ScopeRow {
    fn default() -> Self {
        Self {
            config: "{}".to_owned(),
            config_revision: 0,
            raw_revision: 0,
            writes: 0,
            renewals: 0,
            catalog_version: String::new(),
            secrets: Vec::new(),
        }
    }
}

/// A stored secret of a scope.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretRow {
    pub name: String,
    pub sealed: SealedSecret,
}

/// A secret as it is stored: what may be shown of it, and its sealed bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// `scheme://host:port` of the endpoint that it was set for; it is never used with another.
    pub origin: String,
    /// Last four characters, when the secret is long enough to show them.
    pub last4: Option<String>,
    /// Made by [`MasterKey::seal`] with [`secret_aad`].
    pub bytes: Vec<u8>,
}

/// A stored secret of whatever scope, with its place.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretPlace {
    pub scope: Scope,
    pub name: String,
    /// As in [`SealedSecret::bytes`].
    pub sealed: Vec<u8>,
}

/// A secret sealed anew.
#[derive(Clone, PartialEq, Eq)]
pub struct Reseal {
    pub place: SecretPlace,
    pub sealed: Vec<u8>,
}

impl fmt::Debug for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretPlace({:?}, {})", self.scope, self.name)
    }
}

impl fmt::Debug for Reseal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reseal({:?})", self.place)
    }
}

impl fmt::Debug for SecretRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRow").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedSecret").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// What a write of a config does to one secret. Secrets that are not named stay as they are.
#[derive(Debug, Clone)]
pub struct SecretChange {
    pub name: String,
    pub action: SecretAction,
}

#[derive(Debug, Clone)]
pub enum SecretAction {
    Set(SealedSecret),
    Clear,
}

/// Who begins a scope that was never written.
#[derive(Debug, Clone, Copy)]
pub struct Beginner {
    pub key: KeyId,
    /// Scopes that the key may begin in all; one more is [`StoreError::TooMany`].
    pub most: u32,
}

/// What a write of a scope is counted and remembered by.
#[derive(Debug, Clone, Default)]
pub struct WriteNotes {
    /// `None`: it is not counted.
    pub beginner: Option<Beginner>,
    /// Written if something changes.
    pub audit: Option<AuditWrite>,
}

/// A write of one scope's config.
#[derive(Debug, Clone)]
pub struct ConfigWrite {
    /// The whole new document; `None` deletes it, together with all secrets of the scope.
    pub config: Option<String>,
    /// [`ScopeRow::raw_revision`] that the write was made for; another one stored is a
    /// [`StoreError::Conflict`]. `None` writes whatever is stored.
    pub expected_raw_revision: Option<i64>,
    /// Applied in order; ignored when `config` is `None`.
    pub secrets: Vec<SecretChange>,
    pub now_ms: i64,
    /// Deletes the scope's queries that found nothing: the new document does not keep them.
    pub forget_missed_queries: bool,
    pub notes: WriteNotes,
}

/// One stored tool. The identity inside its catalog is (`group`, `name`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRow {
    pub group: String,
    pub name: String,
    /// The tool's JSON text, byte for byte.
    pub body: Arc<str>,
    pub digest: String,
    /// Token counts as JSON text.
    pub tokens: String,
}

/// Whose catalog is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CatalogOwner {
    /// The stored catalog of a user or project.
    Scope(Scope),
    /// The live tools that an assembly of this user carried.
    Inline(InlineKey),
}

/// The name of an inline catalog: references of different users never meet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InlineKey {
    pub user: Id,
    /// The `tools_ref` of the answer.
    pub reference: String,
}

/// The tools of one catalog, and the version that they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogRows {
    /// Empty when the catalog does not exist.
    pub version: String,
    /// By (group, name), compared as bytes.
    pub tools: Vec<ToolRow>,
}

/// A change of one scope's catalog. Tools that are not named stay as they are.
#[derive(Debug, Clone)]
pub struct CatalogWrite {
    /// [`ScopeRow::catalog_version`] that the change was made for; another one stored is a
    /// [`StoreError::Conflict`].
    pub expected_version: String,
    /// The empty version stands for "no catalog": every tool of the scope goes, and `upsert` is ignored.
    pub new_version: String,
    /// Removed first.
    pub remove: Vec<ToolKey>,
    /// Added, or put in the place of the stored tool of the same identity.
    pub upsert: Vec<ToolRow>,
    /// Changed before the tools.
    pub reviews: ReviewWrite,
    /// Who uploads them: an opaque label.
    pub by: String,
    pub now_ms: i64,
    pub notes: WriteNotes,
}

/// Where a stored tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    pub digest: String,
    /// When the scope got a tool of this identity; 0 when that was before it was written down.
    pub first_seen_ms: i64,
    /// When it got this content; 0 as above.
    pub changed_at_ms: i64,
    /// Who uploaded this content; empty when that is not known.
    pub uploaded_by: String,
}

/// A whole inline catalog. Its reference is made from its content, so a stored one is never rewritten.
#[derive(Debug, Clone)]
pub struct InlineWrite {
    pub key: InlineKey,
    pub version: String,
    pub tools: Vec<ToolRow>,
    pub now_ms: i64,
}

/// "This inline catalog was in use." At most one of each key per call.
#[derive(Debug, Clone)]
pub struct InlineTouch {
    pub key: InlineKey,
    pub last_used_ms: i64,
}

/// "This listing base was in use." At most one of each digest per call.
#[derive(Debug, Clone)]
pub struct ListingBaseTouch {
    pub digest: Digest,
    pub last_used_ms: i64,
}

/// Where vectors are comparable: made by one endpoint with one model and one way of asking, for one scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VectorSpace {
    /// Whose matcher asks.
    pub owner: Scope,
    pub space: Digest,
}

/// A stored vector of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorRow {
    pub text: Digest,
    /// Opaque.
    pub vector: Vec<u8>,
    pub used_at_ms: i64,
}

/// Durable state. See the module for what every implementation promises.
#[async_trait]
pub trait Store:
    SessionStore
    + KeyStore
    + AuditStore
    + ReviewStore
    + UsageStore
    + McpServerStore
    + SetupStore
    + RankingStore
    + VectorClaimStore
    + Send
    + Sync
    + fmt::Debug
{
    /// Config, catalog version and secrets of one scope; the default when nothing was written.
    async fn scope(&self, scope: &Scope) -> Result<ScopeRow, StoreError>;

    /// Writes or deletes a config and its secrets, compare-and-set. Answers the scope as it is then.
    /// Deleting a config that is not written changes nothing, the revision included.
    async fn write_config(&self, scope: &Scope, write: ConfigWrite) -> Result<ScopeRow, StoreError>;

    /// Counts that a scope's endpoints are to be tried again, and tells the other processes. Answers the scope as it is then; one
    /// that was never written stays so.
    async fn renew_scope(&self, scope: &Scope) -> Result<ScopeRow, StoreError>;

    /// The tools of one catalog with their version; empty when it does not exist.
    async fn catalog(&self, owner: &CatalogOwner) -> Result<CatalogRows, StoreError>;

    /// Changes a scope's catalog, compare-and-set on its version and on the revision of its reviews.
    async fn write_catalog(&self, scope: &Scope, write: CatalogWrite) -> Result<(), StoreError>;

    /// Where one tool of a scope's catalog comes from; `None` when it is not there.
    async fn provenance(&self, scope: &Scope, tool: &ToolKey) -> Result<Option<Provenance>, StoreError>;

    /// The version of an inline catalog; `None` when it is unknown or expired.
    async fn inline_catalog(&self, key: &InlineKey) -> Result<Option<String>, StoreError>;

    /// Stores an inline catalog; one that exists is touched and keeps its tools.
    async fn write_inline(&self, write: InlineWrite) -> Result<(), StoreError>;

    /// Renews the age of inline catalogs. Those that are gone stay gone.
    async fn touch_inline(&self, touches: Vec<InlineTouch>) -> Result<(), StoreError>;

    /// Deletes up to `limit` inline catalogs that were last used before `before_ms`, the oldest first, and names
    /// them.
    async fn expire_inline(&self, before_ms: i64, limit: u32) -> Result<Vec<InlineKey>, StoreError>;

    /// The text of a listing base; `None` when it is unknown or expired.
    async fn listing_base(&self, digest: Digest) -> Result<Option<String>, StoreError>;

    /// Stores a listing base under the digest of its text; one that exists is touched.
    async fn write_listing_base(&self, digest: Digest, body: Arc<str>, now_ms: i64)
    -> Result<(), StoreError>;

    /// Renews the age of listing bases. Those that are gone stay gone.
    async fn touch_listing_bases(&self, touches: Vec<ListingBaseTouch>) -> Result<(), StoreError>;

    /// Deletes up to `limit` listing bases that were last used before `before_ms`, the oldest first, and names them.
    async fn expire_listing_bases(&self, before_ms: i64, limit: u32) -> Result<Vec<Digest>, StoreError>;

    /// The vectors that are there of so many texts, in no order.
    async fn vectors(&self, space: &VectorSpace, texts: &[Digest]) -> Result<Vec<VectorRow>, StoreError>;

    /// Stores vectors, in place of those of the same texts. Of its owner, whatever the space, the `most` that were used last
    /// are left. A large call is committed in several steps.
    async fn write_vectors(
        &self,
        space: &VectorSpace,
        rows: Vec<VectorRow>,
        most: u32,
    ) -> Result<(), StoreError>;

    /// Deletes all vectors of a space.
    async fn drop_vectors(&self, space: &VectorSpace) -> Result<(), StoreError>;

    /// Renews the age of vectors. Those that are gone stay gone. A large call is committed in several steps.
    async fn touch_vectors(
        &self,
        space: &VectorSpace,
        texts: Vec<Digest>,
        now_ms: i64,
    ) -> Result<(), StoreError>;

    /// Deletes up to `limit` vectors that were last used before `before_ms`, the oldest first; tells how many.
    async fn expire_vectors(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;

    /// A value that the program keeps for itself.
    async fn meta(&self, key: &str) -> Result<Option<String>, StoreError>;

    /// Stores such a value unless there is one, and answers the stored one.
    async fn init_meta(&self, key: &str, value: String) -> Result<String, StoreError>;

    /// All secrets of all scopes, as they are sealed, in the order of their places.
    async fn sealed_secrets(&self) -> Result<Vec<SecretPlace>, StoreError>;

    /// Puts secrets in the place of what they were, together with a value that the program keeps for itself: all of it, or
    /// nothing when one is no longer what it was.
    async fn reseal(&self, changes: Vec<Reseal>, meta: (String, String)) -> Result<(), StoreError>;

    /// Whether other processes may serve the same rows: what is kept of them in memory may then be of before.
    fn is_shared(&self) -> bool;

    /// What other processes wrote since this was last asked, once there is something; never where none of them tells.
    async fn next_changes(&self) -> Changes;

    /// Whether what others write is told at present by [`Self::next_changes`].
    fn hears_changes(&self) -> bool;

    /// The time of a database that has a clock of its own, which all of its processes go by; `None`: it has none.
    async fn clock_ms(&self) -> Result<Option<i64>, StoreError>;

    /// Answers once a read has worked and writes are being taken.
    async fn health(&self) -> Result<(), StoreError>;

    /// Whether writes find room, as far as the last ones tell: false since one was refused as [`StoreError::Full`], until one is
    /// stored and none was refused for some seconds.
    fn has_room(&self) -> bool;

    /// How much it has to do at present.
    fn load(&self) -> StoreLoad;

    /// Finishes the writes that were taken, refuses new ones, and lets go of the database.
    async fn close(&self) -> Result<(), StoreError>;
}
