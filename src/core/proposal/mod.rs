//! The proposal of a setup: groups, core tools and toolsets for the tools that there are, and what an assembly costs with them.
//!
//! [`propose`] is a function of catalogs, both layers of the config and counts of calls: the same tools give the same proposal,
//! in whatever order they came. What a config has already stays, and comes first. Nothing is decided here about what is written:
//! the answer is a patch that an administrator may take, change or leave. Owns what is proposed and why; what a config does is
//! asked of `grant`, `plan` and `assemble`, so that a prediction is what an assembly will say.
//!
//! Work is bounded: each step is linear in tools and their words, or in groups times tools for a fixed number of times.

mod asking;
mod core_tools;
mod describe;
mod groups;
mod prediction;
mod prefixes;
mod splits;
#[cfg(test)]
mod tests;
mod toolsets;
mod topics;
mod words;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

pub use core_tools::ProposedCore;
pub use prediction::{
    ListingPrediction, ListingPreview, Preview, TierPrediction, TokenPrediction, WarmPrediction, preview,
};
pub use splits::{ProposedSplit, SplitPart};
pub use toolsets::ProposedToolset;

use self::groups::{By, Planned};
use self::words::Words;
use super::grant::{Catalogs, Selection, View, ViewTool};
use super::listing::{Form, GroupCost};
use super::policy::{Group, Layer, Policy, merge};
use super::target::Target;
use super::tool::ToolKey;
use super::warning::Warning;

/// Whether a part of a proposal is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ProposalOrigin)]
pub enum Origin {
    /// The config has it, of this scope or of the one below it.
    Existing,
    Proposed,
}

/// A group with what it costs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ProposedGroup {
    pub name: String,
    pub origin: Origin,
    /// `config`, `server` (the group of the upload), `prefix`, `words` or `none` (what is left over).
    #[schema(value_type = String)]
    pub by: &'static str,
    pub description: Option<String>,
    /// Of the config's entry; empty where names or uploads make the group.
    pub prefixes: Vec<String>,
    /// Stored names, sorted: every tool is in one group.
    pub tools: Vec<String>,
    /// All of its tools with their schemas.
    pub tokens: usize,
    /// Absent where all of its tools are core.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub listing: Option<GroupListing>,
    /// How it could be parted, where the listing has no room for its descriptions. Not part of the proposal's patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub split: Option<ProposedSplit>,
}

/// A group's deferred tools in a listing, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupListing {
    /// With descriptions, with names alone, and as one line.
    pub full: usize,
    pub names: usize,
    pub line: usize,
    /// `full`, `names` or `line`; `counted` where it is one of those that are only counted.
    #[schema(value_type = String)]
    pub shown: &'static str,
}

/// A proposal.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Proposal {
    /// Those of the config first, then those with most tools.
    pub groups: Vec<ProposedGroup>,
    /// What is core, then what is proposed.
    pub core: Vec<ProposedCore>,
    pub toolsets: Vec<ProposedToolset>,
    /// What assemblies cost once the patch is written.
    pub tokens: TokenPrediction,
    /// A JSON Merge Patch for the config of the scope: `groups`, `core` and `toolsets` as far as something is proposed, each with
    /// what the scope has already.
    #[schema(value_type = Object)]
    pub patch: Map<String, Value>,
    /// What an assembly would warn of then.
    pub warnings: Vec<Warning>,
}

impl Proposal {
    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let names =
            |names: &[String]| names.iter().map(|name| name.len() + size_of::<String>()).sum::<usize>();
        let of = |group: &ProposedGroup| {
            let parts = group.split.iter().flat_map(|split| &split.parts);
            size_of::<ProposedGroup>()
                + names(&group.tools)
                + parts.map(|part| size_of::<SplitPart>() + names(&part.tools)).sum::<usize>()
        };
        let groups: usize = self.groups.iter().map(of).sum();
        // The patch names tools once more, and a value takes more than its text.
        let core = self.core.len() * size_of::<ProposedCore>();
        3 * groups + core + self.toolsets.iter().map(|set| names(&set.groups)).sum::<usize>()
    }
}

/// What a proposal is made for.
#[derive(Debug, Clone, Copy)]
pub struct ProposalInput<'a> {
    pub catalogs: &'a Catalogs,
    pub user: &'a Layer,
    pub project: &'a Layer,
    /// Whether the project's layer is the one that is set up; else the user's is.
    pub for_project: bool,
    /// Further limits of the one who asks.
    pub selections: &'a [Selection],
    pub target: Target,
    pub window: u32,
    /// Calls by tool.
    pub usage: &'a [(ToolKey, u64)],
}

impl ProposalInput<'_> {
    fn view(&self, policy: &Policy, user: &Layer, first: Selection) -> View {
        let selections: Vec<Selection> =
            std::iter::once(first).chain(self.selections.iter().cloned()).collect();
        let core = user.core.as_deref().unwrap_or_default();
        View::build(self.catalogs, policy, core, &selections, self.target.profile)
    }
}

/// Proposes a setup.
pub fn propose(input: &ProposalInput<'_>) -> Proposal {
    let policy = merge(input.user, input.project);
    let everything = Selection { toolsets: Some(Vec::new()), ..Selection::default() };
    let view = input.view(&policy, input.user, everything.clone());
    let words = Words::of(&view);
    let (planned, entries) = groups::propose(&view, &policy, &words);
    let core = core_tools::propose(&view, &policy, input.target, input.usage);
    let toolsets = toolsets::propose(&view, &policy, &planned);

    let own = if input.for_project { input.project } else { input.user };
    let assembled = |entries: &[Group]| {
        let layer = with_proposal(own, entries, &core, &toolsets);
        let (user, project) = if input.for_project { (input.user, &layer) } else { (&layer, input.project) };
        let policy = merge(user, project);
        let view = input.view(&policy, user, Selection::default());
        let predicted = preview(&view, &policy, input.target, input.window);
        (layer, policy, view, predicted)
    };
    let mut made = assembled(&entries);
    if shown_groups(&made.2, &made.1, &made.3).values().any(|cost| cost.shown.is_none()) {
        // Where not even every group has its line, a name more says more than a description.
        made = assembled(&undescribed(entries));
    }
    let (layer, after, assembled, predicted) = made;
    let patch = patch(own, &layer);

    let shown = shown_groups(&assembled, &after, &predicted);
    let cut = cut(&planned, &shown, predicted.tokens.listing.budget);
    let mut splits = splits::propose(&view, &words, input.target, &planned, &cut);
    let mut groups: Vec<ProposedGroup> = Vec::with_capacity(planned.len());
    for (at, group) in planned.iter().enumerate() {
        let split = splits.iter().position(|(of, _)| *of == at).map(|place| splits.swap_remove(place).1);
        groups.push(document(&view, &policy, &after, input.target, group, split, &shown));
    }
    Proposal { groups, core, toolsets, tokens: predicted.tokens, patch, warnings: predicted.warnings }
}

/// Entries without descriptions; those that did nothing else are gone.
fn undescribed(entries: Vec<Group>) -> Vec<Group> {
    let bare = entries.into_iter().map(|entry| Group { description: None, ..entry });
    bare.filter(|entry| !entry.tools.is_empty() || !entry.prefixes.is_empty()).collect()
}

/// The layer with what is proposed behind what it has.
fn with_proposal(
    own: &Layer,
    groups: &[Group],
    core: &[ProposedCore],
    toolsets: &[ProposedToolset],
) -> Layer {
    let mut layer = own.clone();
    if !groups.is_empty() {
        layer.groups.get_or_insert_default().extend(groups.iter().cloned());
    }
    let is_new = |origin: Origin| origin == Origin::Proposed;
    let core =
        core.iter().filter(|core| is_new(core.origin) && core.chosen).map(|core| core.selector.clone());
    let core: Vec<_> = core.collect();
    if !core.is_empty() {
        layer.core.get_or_insert_default().extend(core);
    }
    let toolsets: Vec<_> =
        toolsets.iter().filter(|toolset| is_new(toolset.origin)).map(ProposedToolset::entry).collect();
    if !toolsets.is_empty() {
        layer.toolsets.get_or_insert_default().extend(toolsets);
    }
    layer
}

/// The keys that a layer has otherwise than before.
fn patch(before: &Layer, after: &Layer) -> Map<String, Value> {
    let before = before.to_json();
    after.to_json().into_iter().filter(|(key, value)| before.get(key) != Some(value)).collect()
}

/// Listing costs by the name of the group.
type Shown<'a> = std::collections::HashMap<&'a str, GroupCost>;

fn shown_groups<'a>(view: &'a View, policy: &Policy, predicted: &Preview) -> Shown<'a> {
    // Without a listing nothing is shown or cut.
    let has_listing = policy.listing != super::policy::Switch::Off;
    let named = view.groups.iter().map(|group| &*group.name).zip(&predicted.groups);
    named.filter_map(|(name, cost)| Some((name, (*cost)?))).filter(|_| has_listing).collect()
}

/// Groups that the listing shows without their descriptions, with why that is worth a thought.
fn cut(planned: &[Planned], shown: &Shown<'_>, budget: usize) -> Vec<(usize, String)> {
    let told = |(at, group): (usize, &Planned)| {
        let cost = shown.get(group.name.as_str()).filter(|cost| cost.shown != Some(Form::Full))?;
        let how = match cost.shown {
            Some(Form::Names) => "by their names alone",
            Some(_) => "as one line",
            None => "not at all",
        };
        let reason = format!(
            "With descriptions its tools take {} tokens of a listing that has {budget}, so they are shown {how}; parts can \
             be shown apart.",
            cost.full
        );
        Some((at, reason))
    };
    planned.iter().enumerate().filter_map(told).collect()
}

fn document(
    view: &View,
    before: &Policy,
    after: &Policy,
    target: Target,
    group: &Planned,
    split: Option<ProposedSplit>,
    shown: &Shown<'_>,
) -> ProposedGroup {
    let entry = after.groups.iter().find(|entry| entry.name == group.name);
    let is_existing = before.groups.iter().any(|entry| entry.name == group.name);
    let tools: Vec<&ViewTool> = group.tools.iter().filter_map(|id| view.get(*id)).collect();
    ProposedGroup {
        name: group.name.clone(),
        origin: if is_existing { Origin::Existing } else { Origin::Proposed },
        by: match group.by {
            By::Config => "config",
            By::Server => "server",
            By::Prefix => "prefix",
            By::Words => "words",
            By::Nothing => "none",
        },
        description: entry.and_then(|entry| entry.description.clone()),
        prefixes: entry.map(|entry| entry.prefixes.clone()).unwrap_or_default(),
        tools: tools.iter().map(|tool| tool.stored_name().to_owned()).collect(),
        tokens: tools.iter().map(|tool| tool.for_target(target).tokens).sum(),
        listing: shown.get(group.name.as_str()).map(|cost| GroupListing {
            full: cost.full,
            names: cost.names,
            line: cost.line,
            shown: match cost.shown {
                Some(Form::Full) => "full",
                Some(Form::Names) => "names",
                Some(Form::Lines) => "line",
                None => "counted",
            },
        }),
        split,
    }
}
