//! Writing what was prepared: config and catalog of a scope in one transaction, or the difference that this would make.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::DraftBase;
use super::effect::anybody_of;
use crate::core::catalog::Catalog;
use crate::core::id::Scope;
use crate::core::warning::Warning;
use crate::service::catalog_change::Edit as CatalogEdit;
use crate::service::catalogs::{PlannedCatalog, nothing_uploaded};
use crate::service::heads::Head;
use crate::service::scopes::{Edit, PlannedConfig, begun_too_many};
use crate::service::stripes::Guard;
use crate::service::{
    Actor, CatalogWritten, ConfigWritten, Error, InlineTools, Kind, Toolrack, WRITE_TRIES, uptime_ms,
};
use crate::store::SetupWrite;

/// What shall be written. What is absent stays as it is.
pub struct SetupApply {
    /// The whole document of the config, as a PUT takes it.
    pub config: Option<Value>,
    /// All tools of the catalog, a raw JSON array as a PUT takes it.
    pub tools: Option<InlineTools>,
    /// What the setup was made from; another state is refused.
    pub expected: Option<DraftBase>,
    pub dry_run: bool,
}

impl std::fmt::Debug for SetupApply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The config may hold a key.
        f.debug_struct("SetupApply").field("dry_run", &self.dry_run).finish_non_exhaustive()
    }
}

/// What an application of a setup did, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub struct SetupApplied {
    /// Absent when no config was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigWritten>,
    /// Absent when no tools were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogWritten>,
    /// What an assembly with it warns of, as `POST /v1/setup/preview` tells it: that no tool is left, names that mean nothing.
    pub warnings: Vec<Warning>,
    /// Revision of the config as it is stored now.
    pub config_revision: i64,
    /// Version of the catalog as it is stored now.
    pub catalog_version: String,
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl SetupApplied {
    /// Both as one version, for `If-Match`.
    pub fn version(&self) -> DraftBase {
        DraftBase { config_revision: self.config_revision, catalog_version: self.catalog_version.clone() }
    }
}

impl DraftBase {
    /// As an ETag holds it: `<config revision>-<catalog version>`.
    pub fn to_text(&self) -> String {
        format!("{}-{}", self.config_revision, self.catalog_version)
    }

    /// Reads [`Self::to_text`].
    pub fn from_text(text: &str) -> Option<Self> {
        let (revision, version) = text.split_once('-')?;
        Some(Self { config_revision: revision.parse().ok()?, catalog_version: version.to_owned() })
    }

    pub(super) fn of(head: &Head) -> Self {
        Self {
            config_revision: head.row.config_revision,
            catalog_version: Catalog::version_of(&head.row.catalog_version).to_owned(),
        }
    }
}

impl Toolrack {
    /// What a setup of a scope would be made from now.
    pub async fn setup_base(&self, scope: &Scope) -> Result<DraftBase, Error> {
        Ok(DraftBase::of(&*self.fresh_head(scope).await?))
    }

    /// Writes a config and a catalog together, or tells what that would change.
    ///
    /// # Errors
    /// As a PUT of either; [`Kind::PreconditionFailed`] when something else is stored than what was expected.
    pub async fn apply_setup(
        &self,
        actor: &Actor,
        scope: &Scope,
        apply: SetupApply,
    ) -> Result<SetupApplied, Error> {
        let SetupApply { config, tools, expected, dry_run } = apply;
        let (document, uploaded) = (config.clone(), tools.clone());
        let config = config.map(Edit::Replace);
        let tools = match tools {
            Some(tools) => {
                // What a review or a look at the difference has read is not read again.
                let read = self.read_live(&tools).await?;
                if read.catalog.is_empty() {
                    return Err(nothing_uploaded());
                }
                Some(CatalogEdit::Replace(Arc::new(read.upload()), Some(Arc::clone(&read.catalog))))
            }
            None => None,
        };
        let guard = self.0.scope_writes.guard(scope).await;
        let mut effect = None;
        let mut tries = 0;
        loop {
            tries += 1;
            let before = self.fresh_head(scope).await?;
            if expected.as_ref().is_some_and(|expected| *expected != DraftBase::of(&before)) {
                let detail = "what is stored is not what this setup was made from";
                return Err(Error::new(Kind::PreconditionFailed, detail));
            }
            let planned =
                config.as_ref().map(|edit| self.plan_config(actor, scope, &before, edit)).transpose()?;
            let catalog = match &tools {
                Some(edit) => Some(self.plan_catalog(actor, scope, &before, edit, dry_run).await?),
                None => None,
            };
            // What is written is looked at before, so that nothing is written that cannot be told of.
            if effect.is_none() {
                effect =
                    Some(self.effect_warnings(anybody_of(scope), document.clone(), uploaded.clone()).await?);
            }
            match self.write_planned(scope, planned, catalog, &before, dry_run, &guard).await {
                Err(error) if error.kind() == Kind::Conflict && tries < WRITE_TRIES => {}
                Err(error) => return Err(error),
                Ok(applied) => return Ok(SetupApplied { warnings: effect.unwrap_or_default(), ..applied }),
            }
        }
    }

    async fn write_planned(
        &self,
        scope: &Scope,
        config: Option<PlannedConfig>,
        catalog: Option<PlannedCatalog>,
        before: &Head,
        dry_run: bool,
        guard: &Guard,
    ) -> Result<SetupApplied, Error> {
        let (planned_head, config_write, warnings) = match config {
            Some(PlannedConfig { head, write, warnings }) => (Some(head), write, warnings),
            None => (None, None, Vec::new()),
        };
        let (new_catalog, catalog_write, catalog_written) = match catalog {
            Some(PlannedCatalog { catalog, write, written }) => (Some(catalog), write, Some(written)),
            None => (None, None, None),
        };
        let writes = config_write.is_some() || catalog_write.is_some();
        let after = if dry_run || !writes {
            None
        } else {
            let write = SetupWrite { config: config_write, catalog: catalog_write };
            let forgets = write.config.as_ref().is_some_and(|config| config.forget_missed_queries);
            let asked_ms = uptime_ms();
            let (service, written, kept, guard) =
                (self.clone(), scope.clone(), new_catalog, Guard::clone(guard));
            let after = self.uncancelled_head(scope, async move {
                let _guard = guard;
                let most = service.0.limits.keys.scopes;
                let stored = service.0.store.write_setup(&written, write).await;
                let row = stored.map_err(|error| begun_too_many(error, most))?;
                if forgets {
                    service.usage().forget_missed(&written);
                }
                if let Some(catalog) = kept {
                    service.keep_catalog(&catalog).await;
                }
                Ok(service.written_head(&written, row, asked_ms).await)
            });
            Some(after.await?)
        };
        let stored = after.as_deref().unwrap_or(before);
        if let (Some(after), Some(_)) = (&after, &planned_head) {
            self.renew_matchers(scope, before, after).await;
        }
        let shown = |planned: Head| {
            let head = after.as_deref().unwrap_or(if dry_run { &planned } else { before });
            self.written(scope, before, head, warnings, dry_run)
        };
        let base = DraftBase::of(stored);
        Ok(SetupApplied {
            config: planned_head.map(shown),
            catalog: catalog_written,
            warnings: Vec::new(),
            config_revision: base.config_revision,
            catalog_version: base.catalog_version,
            dry_run,
        })
    }
}
