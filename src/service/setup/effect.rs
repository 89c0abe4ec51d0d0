//! What a write of a setup would come to for the agents of its scope, told before it is written.

use std::sync::Arc;

use serde_json::Value;

use super::SetupInput;
use super::proposal::{PlanFields, PreviewAnswer};
use crate::core::id::{Id, Scope};
use crate::core::warning::Warning;
use crate::service::{Caller, Error, InlineTools, Toolrack};

/// The code of the warning that a selection leaves no tool.
pub const NO_TOOL_LEFT: &str = "empty_grant";

/// Whoever a scope's agents are: the user, or nobody in particular of the project.
pub(super) fn anybody_of(scope: &Scope) -> Caller {
    let (user, project) = match scope {
        Scope::User(user) => (user.clone(), None),
        Scope::Project(project) => (Id::nobody(), Some(project.clone())),
    };
    Caller { user, project, session: None, limits: None, allowances: None }
}

impl Toolrack {
    /// What an assembly of a caller's scope would warn of with this config and these tools in the place of the stored ones: all that a
    /// preview of them tells, but for what a write tells of itself.
    pub(in crate::service) async fn effect_warnings(
        &self,
        caller: Caller,
        config: Option<Value>,
        tools: Option<InlineTools>,
    ) -> Result<Vec<Warning>, Error> {
        let input = SetupInput { caller, tools, config };
        let preview: Arc<PreviewAnswer> = self.previewed_alone(input, PlanFields::default()).await?;
        Ok(preview.warnings.clone())
    }
}
