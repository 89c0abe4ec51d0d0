//! What a setup is about: the stored catalog and config of a scope, or a draft in their place.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::core::digest::Digest;
use crate::core::grant::{Catalogs, Selection};
use crate::core::policy::{self, Layer, Policy};
use crate::core::warning::{FieldError, Warning};
use crate::service::context::{Caller, Context, GrantFields, Seen};
use crate::service::heads::Head;
use crate::service::scopes::refused;
use crate::service::{Error, InlineTools, Toolrack};
use crate::store::ScopeRow;

/// A scope with what may stand in the place of what it has stored. The scope is the project where one is named, else the user.
#[derive(Clone)]
pub struct SetupInput {
    /// Without a session.
    pub caller: Caller,
    /// A raw JSON array of tools in place of the scope's stored catalog.
    pub tools: Option<InlineTools>,
    /// A whole config document in place of the scope's stored one.
    pub config: Option<Value>,
}

impl fmt::Debug for SetupInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A config may hold a key.
        f.debug_struct("SetupInput").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// A draft, read.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    pub catalogs: Catalogs,
    pub user: Layer,
    pub project: Layer,
    pub for_project: bool,
    /// Limits of the key that asks.
    pub selections: Vec<Selection>,
    /// Of tools that were set aside and settings that were clamped.
    pub warnings: Vec<Warning>,
}

impl Sources {
    pub(super) fn policy(&self) -> Policy {
        policy::merge(&self.user, &self.project)
    }

    /// Names everything that an answer is a function of, but for what is asked.
    pub(super) fn digest(&self) -> Result<Digest, Error> {
        let selections = serde_json::to_string(&self.selections).map_err(Error::internal)?;
        let layer = |layer: &Layer| Value::Object(layer.to_json()).to_string();
        let mut parts: Vec<String> =
            self.catalogs.parts().map(|part| part.content_id().to_string()).collect();
        parts.extend([layer(&self.user), layer(&self.project), selections]);
        Ok(Digest::of_parts(&parts.iter().map(String::as_bytes).collect::<Vec<_>>()))
    }
}

impl Toolrack {
    /// Reads a draft.
    ///
    /// # Errors
    /// What a write of this config, or an assembly with these tools, would be refused for, with places below `/config` and `/tools`.
    pub(super) async fn sources(&self, draft: SetupInput) -> Result<Sources, Error> {
        let SetupInput { caller, tools, config } = draft;
        let heads = self.heads(&caller).await?;
        let for_project = caller.project.is_some();
        let mut warnings = Vec::new();
        let mut catalogs = self.stored_catalogs(&caller, &heads).await?;
        warnings.extend(self.put_tools(&mut catalogs, tools, for_project).await?);
        let (mut user, mut project) = (heads.user.layer.clone(), heads.project.layer.clone());
        let head = if for_project { &heads.project } else { &heads.user };
        match config {
            None => warnings.extend(head.warnings.iter().cloned()),
            Some(document) => {
                let parsed = policy::parse(&document).map_err(|errors| refused(below_config(errors)))?;
                let below = |warning: Warning| match warning.pointer.clone() {
                    Some(pointer) => warning.at(format!("/config{pointer}")),
                    None => warning,
                };
                warnings.extend(parsed.warnings.into_iter().map(below));
                *(if for_project { &mut project } else { &mut user }) = parsed.layer;
            }
        }
        let selections = caller.limits.as_deref().cloned().into_iter().collect();
        Ok(Sources { catalogs, user, project, for_project, selections, warnings })
    }

    /// Puts a draft's tools in the place of those that its scope has stored.
    async fn put_tools(
        &self,
        catalogs: &mut Catalogs,
        tools: Option<InlineTools>,
        for_project: bool,
    ) -> Result<Vec<Warning>, Error> {
        let (Some(tools), Catalogs::Stored { user, project }) = (tools, catalogs) else {
            return Ok(Vec::new());
        };
        let upload = self.read_live(&tools).await?;
        *(if for_project { project } else { user }) = Arc::clone(&upload.catalog);
        Ok(upload.warnings.clone())
    }

    /// What a request without a session would see if a draft were applied. Settings of it that cannot be read are as if they
    /// were not there.
    pub(in crate::service) async fn drafted_context(&self, draft: SetupInput) -> Result<Context, Error> {
        let SetupInput { caller, tools, config } = draft;
        let mut heads = self.heads(&caller).await?;
        let for_project = caller.project.is_some();
        if let Some(config) = config {
            let head = if for_project { &mut heads.project } else { &mut heads.user };
            *head = Arc::new(Head::new(ScopeRow { config: config.to_string(), ..head.row.clone() }));
        }
        let mut catalogs = self.stored_catalogs(&caller, &heads).await?;
        self.put_tools(&mut catalogs, tools, for_project).await?;
        let (_, merged) = self.merged(&heads).await?;
        let selections: Vec<Selection> = caller.limits.as_deref().cloned().into_iter().collect();
        let (target, window) = (GrantFields::usual_target(&merged.policy), merged.policy.context_window);
        let seen = Seen { catalogs, heads, merged, selections: selections.into(), target, window };
        self.context_of(seen, Vec::new()).await
    }
}

fn below_config(errors: Vec<FieldError>) -> Vec<FieldError> {
    let below = |error: FieldError| FieldError { pointer: format!("/config{}", error.pointer), ..error };
    errors.into_iter().map(below).collect()
}
