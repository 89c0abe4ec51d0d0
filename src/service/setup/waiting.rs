//! Drafts that wait for somebody to go on with them.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::core::id::Scope;
use crate::service::{Error, Toolrack, blocking};

/// A draft that was begun and neither applied nor thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingDraft {
    /// Tools that it would store; nothing where it leaves the stored ones as they are.
    pub tools: Option<usize>,
    pub updated_at_ms: i64,
}

impl Toolrack {
    /// The draft that waits in a scope.
    pub async fn waiting_draft(&self, scope: &Scope) -> Result<Option<WaitingDraft>, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Body {
            tools: Option<Vec<IgnoredAny>>,
        }
        let Some(row) = self.0.store.draft(scope).await? else { return Ok(None) };
        let updated_at_ms = row.updated_at_ms;
        // It may hold all tools of a large catalog; one that cannot be read waits all the same.
        let body = blocking(move || serde_json::from_str::<Body>(&row.body)).await?.unwrap_or_default();
        Ok(Some(WaitingDraft { tools: body.tools.map(|tools| tools.len()), updated_at_ms }))
    }
}
