//! Where a stored tool comes from, as its document tells it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::store::Provenance;

/// Where a stored tool comes from.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolProvenance {
    /// Hash of the tool's content, whatever the order of keys.
    pub digest: String,
    /// When this scope first got a tool of this group and name, in milliseconds since 1970. Absent for one that was stored before
    /// this was written down, as the following.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen_ms: Option<i64>,
    /// When it last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at_ms: Option<i64>,
    /// Who uploaded what it is now, as `actor` in the log of changes: the id of a key, `admin`, `no-auth` or `cli`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploaded_by: Option<String>,
}

impl From<Provenance> for ToolProvenance {
    fn from(stored: Provenance) -> Self {
        let time = |ms: i64| (ms > 0).then_some(ms);
        Self {
            digest: stored.digest,
            first_seen_ms: time(stored.first_seen_ms),
            changed_at_ms: time(stored.changed_at_ms),
            uploaded_by: Some(stored.uploaded_by).filter(|by| !by.is_empty()),
        }
    }
}

/// Adds it to a tool's document as its last member.
pub(super) fn push_provenance(document: &mut String, provenance: &ToolProvenance) {
    if let Ok(json) = serde_json::to_string(provenance)
        && document.pop() == Some('}')
    {
        document.push_str(&format!(",\"provenance\":{json}}}"));
    }
}
