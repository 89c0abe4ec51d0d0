//! Versions of tools that wait for an administrator, and approved ones that were removed. They change in the transaction of a
//! write of their catalog. When something has to wait is not known here.

mod rows;
mod sql;

use std::sync::Arc;

use async_trait::async_trait;

use super::StoreError;
use crate::core::id::Scope;
use crate::core::tool::ToolKey;

/// A version that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRow {
    pub tool: ToolKey,
    /// The tool's JSON text, byte for byte.
    pub body: Arc<str>,
    pub digest: String,
    pub uploaded_by: String,
    pub held_at_ms: i64,
}

/// The approved version of a tool that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedRow {
    pub tool: ToolKey,
    pub body: Arc<str>,
    pub digest: String,
}

/// All that is kept for the reviews of one scope. Empty, with the revision 0, when nothing ever was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewRows {
    /// Counts every write that changes one of these rows.
    pub revision: i64,
    /// By (group, name), compared as bytes.
    pub held: Vec<HeldRow>,
    /// As `held`.
    pub removed: Vec<RemovedRow>,
}

/// A version that begins to wait; who uploads it and when is told by its [`super::CatalogWrite`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldVersion {
    pub tool: ToolKey,
    pub body: Arc<str>,
    pub digest: String,
}

/// What a write of a catalog does to the reviews of its scope, before it removes and adds tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewWrite {
    /// [`ReviewRows::revision`] that the write was made for; another one stored is a [`StoreError::Conflict`].
    pub expected_revision: i64,
    /// Held tools whose waiting version takes the place of the stored one, with its uploader.
    pub approve: Vec<ToolKey>,
    /// Held tools whose waiting version goes.
    pub drop: Vec<ToolKey>,
    /// Versions to hold, each in the place of the one of its tool.
    pub hold: Vec<HeldVersion>,
    /// Stored tools to copy to the removed ones.
    pub remember: Vec<ToolKey>,
    /// Removed tools to put back among the stored ones, as they were.
    pub restore: Vec<ToolKey>,
    /// Forgets all removed tools.
    pub forget: bool,
}

impl ReviewWrite {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        let Self { expected_revision: _, approve, drop, hold, remember, restore, forget } = self;
        approve.is_empty()
            && drop.is_empty()
            && hold.is_empty()
            && remember.is_empty()
            && restore.is_empty()
            && !forget
    }
}

/// The reviews of a store; part of [`super::Store`], with its promises.
#[async_trait]
pub trait ReviewStore {
    /// What is kept for the reviews of one scope.
    async fn reviews(&self, scope: &Scope) -> Result<ReviewRows, StoreError>;
}

pub(super) use rows::{check, write};
