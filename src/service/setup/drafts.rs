//! Setups that are being prepared: one for each scope, kept in the store until it is applied, thrown away or thirty days old.
//! What agents see does not change by a draft.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::SetupInput;
use crate::core::id::Scope;
use crate::service::{Caller, Error, Kind, Toolrack, now_ms};
use crate::store::{DraftRow, DraftWrite, StoreError};

/// How long a draft is kept that nobody goes on with: thirty days.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
const EXPIRED_AT_ONCE: u32 = 100;

/// What a draft was begun from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftBase {
    pub config_revision: i64,
    pub catalog_version: String,
}

/// A setup that is being prepared.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SetupDraft {
    /// Entries of an upload that shall replace the catalog; nothing: the stored catalog stays.
    pub tools: Option<Vec<Box<RawValue>>>,
    /// Where the tools come from, for people.
    pub source: String,
    /// The whole document of the scope's config, as a PUT takes it, without secrets.
    pub config: Map<String, Value>,
    /// Servers that shall be stored with it, as they were imported, without secrets.
    pub servers: Vec<Value>,
    /// Warnings about what was imported, for people.
    pub notes: Vec<Value>,
    /// Entries of the import that were no tools.
    pub set_aside: usize,
    pub base: DraftBase,
    /// A key for the endpoint of the matcher.
    #[serde(skip)]
    pub api_key: Option<SecretString>,
    /// Counts its writes; 0: not stored.
    #[serde(skip)]
    pub revision: i64,
    #[serde(skip)]
    pub updated_at_ms: i64,
}

impl std::fmt::Debug for SetupDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetupDraft").field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl SetupDraft {
    /// The draft as what a review or a proposal is about.
    pub fn input(&self, caller: Caller) -> SetupInput {
        let tools = self.tools.as_ref().map(|tools| {
            let tools: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
            Arc::from(format!("[{}]", tools.join(",")))
        });
        SetupInput { caller, tools, config: Some(Value::Object(self.config.clone())) }
    }
}

fn aad(scope: &Scope) -> String {
    format!("setup_drafts|{}|{}", scope.kind(), scope.id())
}

impl Toolrack {
    /// The draft of a scope; one that nobody began is what is stored.
    pub async fn draft(&self, scope: &Scope) -> Result<SetupDraft, Error> {
        match self.0.store.draft(scope).await? {
            Some(row) => self.read_draft(scope, &row),
            None => self.draft_base(scope).await,
        }
    }

    /// What is stored of a scope, as a draft begins.
    pub async fn draft_base(&self, scope: &Scope) -> Result<SetupDraft, Error> {
        let head = self.fresh_head(scope).await?;
        let base = DraftBase::of(&head);
        Ok(SetupDraft { config: head.layer.to_json(), base, ..SetupDraft::default() })
    }

    fn read_draft(&self, scope: &Scope, row: &DraftRow) -> Result<SetupDraft, Error> {
        let draft: SetupDraft = serde_json::from_str(&row.body).map_err(Error::internal)?;
        // A key that was sealed with another master key has to be given again.
        let open = |sealed: &Vec<u8>| self.0.master_key.open(&aad(scope), sealed).ok();
        let api_key = row.sealed.as_ref().and_then(open);
        Ok(SetupDraft { api_key, revision: row.revision, updated_at_ms: row.updated_at_ms, ..draft })
    }

    /// Stores a draft, in the place of the one that it was made from.
    pub async fn save_draft(&self, scope: &Scope, draft: &SetupDraft) -> Result<i64, Error> {
        let body = serde_json::to_string(draft).map_err(Error::internal)?;
        let seal = |key: &SecretString| self.0.master_key.seal(&aad(scope), key.expose_secret());
        let sealed = draft.api_key.as_ref().map(seal).transpose();
        let sealed =
            sealed.map_err(|error| Error::invalid("/matcher/api_key", "too_long", error.to_string()))?;
        let write = DraftWrite { body, sealed, expected_revision: draft.revision, now_ms: now_ms() };
        self.0.store.write_draft(scope, write).await.map_err(|error| match error {
            StoreError::Conflict => {
                Error::new(Kind::Conflict, "this draft was changed in another window in the meantime")
            }
            other => other.into(),
        })
    }

    /// Throws a draft away.
    pub async fn discard_draft(&self, scope: &Scope) -> Result<(), Error> {
        Ok(self.0.store.delete_draft(scope).await?)
    }

    /// Deletes drafts that nobody goes on with.
    pub(in crate::service) async fn expire_drafts(&self) -> Result<(), Error> {
        let before = now_ms() - KEPT_MS;
        while self.0.store.expire_drafts(before, EXPIRED_AT_ONCE).await? == u64::from(EXPIRED_AT_ONCE) {}
        Ok(())
    }
}
