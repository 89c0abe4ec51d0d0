//! What changes between two versions of one scope's config.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Layer;

/// The keys of a config that a write adds, changes or takes away, each list in table order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct ConfigDiff {
    /// Keys that were inherited and are now set.
    pub added: Vec<String>,
    pub changed: Vec<ConfigChange>,
    /// Keys that are now inherited again.
    pub removed: Vec<String>,
}

/// One key with its value before and after.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ConfigChange {
    pub key: String,
    pub from: Value,
    pub to: Value,
}

impl ConfigDiff {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// What a write of `after` over `before` does. A change of the secret is not in it.
pub fn diff(before: &Layer, after: &Layer) -> ConfigDiff {
    let (mut before, after) = (before.to_json(), after.to_json());
    let mut diff = ConfigDiff::default();
    for (key, to) in after {
        match before.shift_remove(&key) {
            None => diff.added.push(key),
            Some(from) if from != to => diff.changed.push(ConfigChange { key, from, to }),
            Some(_) => {}
        }
    }
    diff.removed = before.into_iter().map(|(key, _)| key).collect();
    diff
}
