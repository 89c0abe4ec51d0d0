//! Earlier documents of a config, and putting one back.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::core::id::Scope;
use crate::core::warning::Warning;
use crate::service::scopes::Edit;
use crate::service::{Actor, ConfigWritten, Error, Toolrack};
use crate::store::ConfigVersion;

/// A document that a config was, or is.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConfigVersionDocument {
    /// The revision from its write on; 0: empty, as every config begins.
    pub revision: i64,
    pub at_ms: i64,
    /// The id of a key; or `admin`, `no-auth` or `cli`, as in the log of changes. Empty when that is not known.
    pub actor: String,
    /// Whether it is the one in force.
    pub current: bool,
    /// The document, without secrets.
    #[schema(value_type = Object)]
    pub config: Map<String, Value>,
}

/// The documents of a config that are kept.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConfigVersionList {
    /// The latest first: the one in force and at most ten before it.
    pub versions: Vec<ConfigVersionDocument>,
}

/// Before its first document a config is empty: version 0, while the first one is kept.
fn with_beginning(mut versions: Vec<ConfigVersion>) -> Vec<ConfigVersion> {
    let first = versions.last().filter(|oldest| oldest.revision == 1);
    if let Some(at_ms) = first.map(|first| first.at_ms) {
        versions.push(ConfigVersion { revision: 0, config: "{}".to_owned(), at_ms, actor: String::new() });
    }
    versions
}

impl Toolrack {
    /// The documents of a config that are kept.
    pub async fn config_versions(&self, scope: &Scope) -> Result<ConfigVersionList, Error> {
        let current = self.fresh_head(scope).await?.row.config_revision;
        let versions = with_beginning(self.0.store.config_versions(scope).await?);
        Ok(ConfigVersionList {
            versions: versions.into_iter().map(|version| document(version, current)).collect(),
        })
    }

    /// Writes an earlier document of a config again. Its secrets stay where they belong to the same endpoint; an endpoint that comes
    /// back without its key is a warning.
    pub async fn restore_config(
        &self,
        actor: &Actor,
        scope: &Scope,
        revision: i64,
        expected: Option<i64>,
        dry_run: bool,
    ) -> Result<ConfigWritten, Error> {
        let versions = with_beginning(self.0.store.config_versions(scope).await?);
        let Some(version) = versions.into_iter().find(|version| version.revision == revision) else {
            let detail =
                format!("revision {revision} is not kept; GET …/config/versions lists those that are");
            return Err(Error::invalid("/revision", "unknown", detail));
        };
        let document = Value::Object(document(version, 0).config);
        let mut written = self.edit_config(actor, scope, Edit::Restore(document), expected, dry_run).await?;
        if changes_matcher(&written) && lacks_key(&written.config) {
            let detail = "no key goes with this endpoint: keys are no part of versions; send it if the endpoint wants one";
            let is_told = |warning: &Warning| warning.pointer.as_deref() == Some("/matcher/api_key");
            if !written.warnings.iter().any(is_told) {
                written.warnings.push(Warning::new("secret_missing", detail).at("/matcher/api_key"));
            }
        }
        Ok(written)
    }
}

fn changes_matcher(written: &ConfigWritten) -> bool {
    let changed = written.changes.changed.iter().map(|change| &change.key);
    written.changes.added.iter().chain(changed).any(|key| key == "matcher")
}

/// Whether the endpoint of a config, as it is shown, goes without a key.
fn lacks_key(config: &Map<String, Value>) -> bool {
    let matcher = config.get("matcher").filter(|matcher| matcher.get("endpoint").is_some());
    matcher.is_some_and(|matcher| matcher.pointer("/api_key/set") != Some(&Value::Bool(true)))
}

fn document(version: ConfigVersion, current: i64) -> ConfigVersionDocument {
    let ConfigVersion { revision, config, at_ms, actor } = version;
    // It was written by this program; one that cannot be read shows as empty.
    let config = serde_json::from_str(&config).unwrap_or_default();
    ConfigVersionDocument { revision, at_ms, actor, current: revision == current, config }
}
