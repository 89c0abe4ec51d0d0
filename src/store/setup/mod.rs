//! What the setup flow keeps: earlier documents of configs, drafts, browsers that are signed in, and configs and catalogs
//! that are written together. What a draft or a document means is not known here.

mod rows;
mod sql;

use async_trait::async_trait;

use super::{Beginner, CatalogWrite, ConfigWrite, ScopeRow, StoreError};
use crate::core::digest::Digest;
use crate::core::id::{Id, Scope};
use crate::core::tool::ToolKey;

pub(super) use rows::note_version;

/// Documents of a config that are kept: the one in force and the ten before it.
pub const CONFIG_VERSIONS: u32 = 11;

/// A document that a config was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigVersion {
    /// [`ScopeRow::raw_revision`] from its write on.
    pub revision: i64,
    /// JSON text, without secrets.
    pub config: String,
    pub at_ms: i64,
    /// Who wrote it: an opaque label, empty when that is not known.
    pub actor: String,
}

/// A setup that is being prepared.
#[derive(Clone, PartialEq, Eq)]
pub struct DraftRow {
    /// Opaque JSON text.
    pub body: String,
    /// The secret in it, sealed by the caller.
    pub sealed: Option<Vec<u8>>,
    pub updated_at_ms: i64,
    /// Counts the writes of this draft.
    pub revision: i64,
}

impl std::fmt::Debug for DraftRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DraftRow").field("revision", &self.revision).finish_non_exhaustive()
    }
}

/// A write of a draft.
#[derive(Debug, Clone)]
pub struct DraftWrite {
    pub body: String,
    pub sealed: Option<Vec<u8>>,
    /// [`DraftRow::revision`] that the write was made for, 0 for none; another one stored is a [`StoreError::Conflict`].
    pub expected_revision: i64,
    pub now_ms: i64,
    /// Who begins the scope with it, if nothing was written of it before.
    pub beginner: Option<Beginner>,
}

/// A browser that is signed in.
#[derive(Clone, PartialEq, Eq)]
pub struct PageSessionRow {
    /// Of what its cookie holds.
    pub digest: Digest,
    /// What tells its key, sealed by the caller.
    pub sealed: Vec<u8>,
    pub expires_at_ms: i64,
}

impl std::fmt::Debug for PageSessionRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageSessionRow").field("expires_at_ms", &self.expires_at_ms).finish_non_exhaustive()
    }
}

/// A config and a catalog that are written together, or not at all.
#[derive(Debug, Clone)]
pub struct SetupWrite {
    pub config: Option<ConfigWrite>,
    pub catalog: Option<CatalogWrite>,
}

/// Setups of a store; part of [`super::Store`], with its promises.
#[async_trait]
pub trait SetupStore {
    /// A page of the scopes that were ever written, by kind and id, after one that was shown last.
    async fn scopes(&self, after: Option<&Scope>, limit: u32) -> Result<Vec<Scope>, StoreError>;

    /// Writes a config and a catalog of a scope in one transaction. Answers the scope as it is then.
    async fn write_setup(&self, scope: &Scope, write: SetupWrite) -> Result<ScopeRow, StoreError>;

    /// The documents of a config that are kept, the latest first; the one in force is among them unless it was deleted.
    async fn config_versions(&self, scope: &Scope) -> Result<Vec<ConfigVersion>, StoreError>;

    /// The draft of a scope; `None` when there is none.
    async fn draft(&self, scope: &Scope) -> Result<Option<DraftRow>, StoreError>;

    /// Stores the draft of a scope, compare-and-set. Answers its revision.
    async fn write_draft(&self, scope: &Scope, write: DraftWrite) -> Result<i64, StoreError>;

    /// Deletes the draft of a scope; deleting nothing is fine.
    async fn delete_draft(&self, scope: &Scope) -> Result<(), StoreError>;

    /// Deletes up to `limit` drafts that were written last before `before_ms`, the oldest first; tells how many.
    async fn expire_drafts(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;

    /// A browser that is signed in; `None` when it is not, also when that has expired.
    async fn page_session(&self, digest: Digest, now_ms: i64) -> Result<Option<PageSessionRow>, StoreError>;

    /// Signs a browser in.
    async fn begin_page_session(&self, row: PageSessionRow) -> Result<(), StoreError>;

    /// Signs a browser out; one that is not signed in stays so.
    async fn end_page_session(&self, digest: Digest) -> Result<(), StoreError>;

    /// In how many sessions of a user each tool is warm, by at most `most` rows of warm sets.
    async fn warm_counts(&self, user: &Id, most: u32) -> Result<Vec<(ToolKey, u64)>, StoreError>;

    /// Deletes up to `limit` that expired before `before_ms`; tells how many.
    async fn expire_page_sessions(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
