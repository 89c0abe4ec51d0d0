//! What a setup could be, and what it costs: the proposal, and the preview of an edited draft.

use serde::Serialize;
use utoipa::ToSchema;

use super::input::{SetupInput, Sources};
use crate::core::grant::{Selection, View};
use crate::core::id::Scope;
use crate::core::proposal::{ListingPreview, Proposal, ProposalInput, TokenPrediction, preview, propose};
use crate::core::target::Target;
use crate::core::warning::Warning;
use crate::service::context::{GrantFields, window};
use crate::service::{Caller, Error, Toolrack, blocking};

/// Calls of so many days tell which tools are used most: the usual window of `hot_tools`.
const USAGE_WINDOW_DAYS: u32 = 14;

/// For whom costs are told. What is absent is the config's, and the format `canonical`.
#[derive(Debug, Clone, Default)]
pub struct PlanFields {
    pub format: Option<String>,
    pub profile: Option<String>,
    pub context_window: Option<f64>,
}

/// What a config comes to, without anything written.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = SetupPreview)]
pub struct PreviewAnswer {
    pub tokens: TokenPrediction,
    /// Null where none is sent.
    pub listing: Option<ListingPreview>,
    pub warnings: Vec<Warning>,
}

impl Toolrack {
    /// Proposes groups, core tools and toolsets for a scope. Nothing is stored.
    pub async fn propose_setup(&self, draft: SetupInput, fields: PlanFields) -> Result<Proposal, Error> {
        let Caller { user, project, .. } = &draft.caller;
        let scope = project.clone().map_or_else(|| Scope::User(user.clone()), Scope::Project);
        let usage = self.tool_calls(&scope, USAGE_WINDOW_DAYS).await?;
        let (mut sources, target, window) = self.planned(draft, fields).await?;
        blocking(move || {
            let mut warnings = std::mem::take(&mut sources.warnings);
            let mut proposal = propose(&ProposalInput {
                catalogs: &sources.catalogs,
                user: &sources.user,
                project: &sources.project,
                for_project: sources.for_project,
                selections: &sources.selections,
                target,
                window,
                usage: &usage,
            });
            warnings.append(&mut proposal.warnings);
            Proposal { warnings, ..proposal }
        })
        .await
    }

    /// Tells what a draft costs. Nothing is stored.
    pub async fn preview_setup(&self, draft: SetupInput, fields: PlanFields) -> Result<PreviewAnswer, Error> {
        let (mut sources, target, window) = self.planned(draft, fields).await?;
        blocking(move || {
            let policy = sources.policy();
            let selections: Vec<Selection> =
                std::iter::once(Selection::default()).chain(sources.selections.iter().cloned()).collect();
            let core = sources.user.core.as_deref().unwrap_or_default();
            let view = View::build(&sources.catalogs, &policy, core, &selections, target.profile);
            let previewed = preview(&view, &policy, target, window);
            let mut warnings = std::mem::take(&mut sources.warnings);
            warnings.extend(previewed.warnings);
            PreviewAnswer { tokens: previewed.tokens, listing: previewed.listing, warnings }
        })
        .await
    }

    async fn planned(&self, draft: SetupInput, fields: PlanFields) -> Result<(Sources, Target, u32), Error> {
        let mut sources = self.sources(draft).await?;
        let policy = sources.policy();
        let PlanFields { format, profile, context_window } = fields;
        let fields = GrantFields { format, profile, ..GrantFields::default() };
        let target = fields.target(GrantFields::usual_target(&policy))?;
        let window = window(context_window, policy.context_window, &mut sources.warnings);
        Ok((sources, target, window))
    }
}
