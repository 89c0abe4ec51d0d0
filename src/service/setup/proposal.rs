//! What a setup could be, and what it costs: the proposal, and the preview of an edited draft.

use std::sync::Arc;

use serde::Serialize;
use tokio::try_join;
use utoipa::ToSchema;

use super::input::{SetupInput, Sources};
use crate::core::digest::Digest;
use crate::core::grant::{Selection, View};
use crate::core::id::Scope;
use crate::core::proposal::{ListingPreview, Proposal, ProposalInput, TokenPrediction, preview, propose};
use crate::core::target::Target;
use crate::core::tool::ToolKey;
use crate::core::warning::Warning;
use crate::service::context::{GrantFields, window};
use crate::service::{Caller, Error, Toolrack, blocking, in_background};

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

impl PreviewAnswer {
    /// Approximate size in memory, in bytes.
    pub(in crate::service) fn bytes(&self) -> usize {
        let warnings: usize = self.warnings.iter().map(|warning| warning.detail.len() + 200).sum();
        size_of::<Self>() + self.listing.as_ref().map_or(0, |listing| listing.text.len()) + warnings
    }
}

/// A setup as a page shows it: what could be, beside what is.
#[derive(Debug)]
pub struct SetupPlan {
    pub proposal: Arc<Proposal>,
    /// Of the draft as it is.
    pub preview: Arc<PreviewAnswer>,
    /// What reading the draft came to, and what an assembly with the proposal would warn of.
    pub warnings: Vec<Warning>,
}

/// What is planned: a draft, read, and for whom. Both answers are functions of it, the proposal of counts of calls as well.
struct Planned {
    sources: Sources,
    target: Target,
    window: u32,
    usage: Vec<(ToolKey, u64)>,
}

impl Planned {
    /// Names all of it.
    fn digest(&self, part: &str) -> Result<Digest, Error> {
        let Self { sources, target, window, usage } = self;
        let place = format!("{part} {} {} {window}", sources.for_project, target.name());
        let mut parts = vec![sources.digest()?.0.to_vec(), place.into_bytes()];
        for (tool, calls) in usage {
            parts.push(format!("{}\0{}\0{calls}", tool.group, tool.name).into_bytes());
        }
        Ok(Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>()))
    }

    fn propose(&self) -> Proposal {
        let Self { sources, target, window, usage } = self;
        propose(&ProposalInput {
            catalogs: &sources.catalogs,
            user: &sources.user,
            project: &sources.project,
            for_project: sources.for_project,
            selections: &sources.selections,
            target: *target,
            window: *window,
            usage,
        })
    }

    fn preview(&self) -> PreviewAnswer {
        let Self { sources, target, window, .. } = self;
        let policy = sources.policy();
        let selections: Vec<Selection> =
            std::iter::once(Selection::default()).chain(sources.selections.iter().cloned()).collect();
        let core = sources.user.core.as_deref().unwrap_or_default();
        let view = View::build(&sources.catalogs, &policy, core, &selections, target.profile);
        let previewed = preview(&view, &policy, *target, *window);
        PreviewAnswer { tokens: previewed.tokens, listing: previewed.listing, warnings: previewed.warnings }
    }
}

impl Toolrack {
    /// Proposes groups, core tools and toolsets for a scope. Nothing is stored.
    pub async fn propose_setup(&self, draft: SetupInput, fields: PlanFields) -> Result<Proposal, Error> {
        let usage = self.usage_of(&draft.caller).await?;
        let (planned, mut warnings) = self.planned(draft, fields, usage).await?;
        let proposal = Proposal::clone(&*self.proposed(&planned).await?);
        warnings.extend(proposal.warnings);
        Ok(Proposal { warnings, ..proposal })
    }

    /// Tells what a draft costs. Nothing is stored.
    pub async fn preview_setup(&self, draft: SetupInput, fields: PlanFields) -> Result<PreviewAnswer, Error> {
        let (planned, mut warnings) = self.planned(draft, fields, Vec::new()).await?;
        let preview = PreviewAnswer::clone(&*self.previewed(&planned).await?);
        warnings.extend(preview.warnings);
        Ok(PreviewAnswer { warnings, ..preview })
    }

    /// What a draft costs and what its assemblies warn of, without what reading it came to.
    pub(super) async fn previewed_alone(
        &self,
        draft: SetupInput,
        fields: PlanFields,
    ) -> Result<Arc<PreviewAnswer>, Error> {
        let (planned, _) = self.planned(draft, fields, Vec::new()).await?;
        self.previewed(&planned).await
    }

    /// Both at once, from one reading of the draft.
    pub async fn plan_setup(&self, draft: SetupInput) -> Result<SetupPlan, Error> {
        let usage = self.usage_of(&draft.caller).await?;
        let (planned, mut warnings) = self.planned(draft, PlanFields::default(), usage).await?;
        let (proposal, preview) = try_join!(self.proposed(&planned), self.previewed(&planned))?;
        warnings.extend(proposal.warnings.iter().cloned());
        Ok(SetupPlan { proposal, preview, warnings })
    }

    /// The same state is proposed for once, and who asks again finds what was begun.
    async fn proposed(&self, planned: &Arc<Planned>) -> Result<Arc<Proposal>, Error> {
        let (key, planned) = (planned.digest("proposal")?, Arc::clone(planned));
        let make = async move { blocking(move || Arc::new(planned.propose())).await };
        let proposals = self.0.caches.proposals.clone();
        in_background(async move { Ok(proposals.try_get_with(key, make).await?) }).await
    }

    async fn previewed(&self, planned: &Arc<Planned>) -> Result<Arc<PreviewAnswer>, Error> {
        let (key, planned) = (planned.digest("preview")?, Arc::clone(planned));
        let make = async move { blocking(move || Arc::new(planned.preview())).await };
        let previews = self.0.caches.previews.clone();
        in_background(async move { Ok(previews.try_get_with(key, make).await?) }).await
    }

    async fn usage_of(&self, caller: &Caller) -> Result<Vec<(ToolKey, u64)>, Error> {
        let Caller { user, project, .. } = caller;
        let scope = project.clone().map_or_else(|| Scope::User(user.clone()), Scope::Project);
        self.tool_calls(&scope, USAGE_WINDOW_DAYS).await
    }

    /// What is planned, with what reading it came to.
    async fn planned(
        &self,
        draft: SetupInput,
        fields: PlanFields,
        usage: Vec<(ToolKey, u64)>,
    ) -> Result<(Arc<Planned>, Vec<Warning>), Error> {
        let mut sources = self.sources(draft).await?;
        let mut warnings = std::mem::take(&mut sources.warnings);
        let policy = sources.policy();
        let PlanFields { format, profile, context_window } = fields;
        let fields = GrantFields { format, profile, ..GrantFields::default() };
        let target = fields.target(GrantFields::usual_target(&policy))?;
        let window = window(context_window, policy.context_window, &mut warnings);
        Ok((Arc::new(Planned { sources, target, window, usage }), warnings))
    }
}
