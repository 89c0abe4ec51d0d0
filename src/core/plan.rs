//! The plan: all of an answer that does not depend on the session, made once per (view, target, window).
//!
//! Decides tier and listing, and puts core and bridge together. Knows no session: what that adds is `assemble`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::bridge;
use super::digest::{Digest, Hasher, head_text, push_string};
use super::format::Format;
use super::format::native::{self, Exposure};
use super::grant::{BridgeTool, View, ViewTool};
use super::late::LateEntries;
use super::listing::{self, ListedGroup, ListedTool};
use super::listing_base::{ListingBase, ListingChanges};
use super::management::{self, ManagementTool};
use super::policy::{ListingPlacement, Policy, Switch};
use super::strict_room::StrictRoom;
use super::target::{ArrayEntry, Target, TargetTool};
use super::tokens;
use super::told::{Told, left_out_warnings};
use super::warning::Warning;

/// By wire name, the changes of a tool's arguments, see [`TargetTool::arg_map_document`].
pub type ArgMaps = BTreeMap<String, BTreeMap<String, Value>>;

/// A listing in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedListing {
    pub text: String,
    pub placement: ListingPlacement,
    pub tokens: usize,
    pub form: &'static str,
}

/// All of an answer that the session does not change.
#[derive(Debug)]
pub struct Plan {
    pub target: Target,
    /// 0 inactive, 1 full, 2 names, 3 lines.
    pub tier: u8,
    pub listing: Option<PlacedListing>,
    /// Names the [`ListingBase`] of sessions that are sent this listing; nothing where there is none to keep.
    pub listing_base: Option<Digest>,
    /// What the listing does not tell, where it is an earlier one that a session keeps.
    pub changes: Option<ListingChanges>,
    pub warnings: Vec<Warning>,
    pub unavailable: Vec<String>,
    /// Core and bridge entries joined by commas.
    pub(super) base: String,
    /// As in [`super::cache::Sent`].
    pub(super) base_digests: String,
    pub(super) base_names: BTreeMap<String, String>,
    pub(super) base_args: ArgMaps,
    pub(super) base_hash: Hasher,
    pub(super) listing_json: String,
    pub(super) listing_digest: String,
    pub(super) core: usize,
    pub(super) deferred: usize,
    /// With the management tools.
    pub(super) bridge: usize,
    /// Deferred tools, where the provider wants them in the array.
    pub(super) late: Arc<LateEntries>,
    pub(super) tokens_all: usize,
    pub(super) tokens_base: usize,
    /// The part of them that is core.
    pub(super) tokens_core: usize,
    /// The part of them that is management tools.
    pub(super) tokens_management: usize,
    /// Of strict tools, what is left for those that are found.
    pub(super) strict_room: StrictRoom,
}

impl Plan {
    /// Decides tier, listing and the constant part of the array.
    pub fn build(view: &View, policy: &Policy, target: Target, window: u32) -> Self {
        let mut warnings = Vec::new();
        let target = exposed(view, policy, target, &mut warnings);
        let made = made_for(view, target);
        let left_out = |id: u32| made.get(id as usize).is_none_or(|made| made.left_out);
        // What this target does not take is reached like deferred tools, also where it is core.
        let is_deferred = |(id, tool): &(u32, &ViewTool)| !tool.core || left_out(*id);
        let mut tier = 0;
        let mut listing = None;
        if is_active(view, policy, target, window, &made) {
            let deferred: Vec<(u32, &ViewTool)> = view.visible().filter(is_deferred).collect();
            let listed = plan_listing(view, policy, target, window, &deferred, &mut warnings);
            tier =
                listed.as_ref().map_or(if policy.listing == Switch::Off { 3 } else { 1 }, |listed| listed.1);
            listing = listed.map(|listed| listed.0);
        }
        let base = listing.as_ref().map(|listing| ListingBase::of(tier, listing, view, target).to_text());
        let listing_base = base.map(|text| ListingBase::digest(&text));
        Self { listing_base, ..Self::compose(view, target, (tier, listing), warnings) }
    }

    /// The plan of a session that keeps an earlier listing. For views with deferred tools only.
    pub fn with_base(view: &View, policy: &Policy, target: Target, window: u32, base: &ListingBase) -> Self {
        let listing = base.listing.clone();
        let mut warnings = Vec::new();
        let target = exposed(view, policy, target, &mut warnings);
        if [true, false]
            .iter()
            .any(|some| listing.text == listing::header(target, &view.bridge_prefix, *some))
        {
            warnings.push(over_budget(listing_budget(policy, window)));
        }
        if policy.listing_placement != listing.placement {
            warnings.push(placed_separately(target));
        }
        Self {
            listing_base: Some(ListingBase::digest(&base.to_text())),
            changes: base.changes(view, target),
            ..Self::compose(view, target, (base.tier, Some(listing)), warnings)
        }
    }

    /// Puts the parts that no session changes together, for a tier and its listing.
    fn compose(
        view: &View,
        target: Target,
        (tier, listing): (u8, Option<PlacedListing>),
        mut warnings: Vec<Warning>,
    ) -> Self {
        let (active, format) = (tier > 0, target.format);
        let made = made_for(view, target);
        let of = |id: u32| made.get(id as usize).filter(|made| !made.left_out);
        warnings.extend(left_out_warnings(view, &made));
        let sent = || view.visible().filter(|(id, tool)| of(*id).is_some() && (tool.core || !active));
        let mut base: Vec<(u32, &ViewTool)> = sent().collect();
        base.sort_by(|(_, a), (_, b)| {
            (a.tool.tool.group(), a.stored_name()).cmp(&(b.tool.tool.group(), b.stored_name()))
        });

        let mut plan = Self {
            target,
            tier,
            warnings,
            unavailable: view
                .tools
                .iter()
                .filter(|tool| tool.unavailable)
                .map(|tool| tool.stored_name().to_owned())
                .collect(),
            base: String::new(),
            base_digests: String::new(),
            base_names: BTreeMap::new(),
            base_args: ArgMaps::new(),
            base_hash: Hasher::default(),
            listing_json: listing.as_ref().map_or_else(|| "null".to_owned(), listing_json),
            listing_digest: listing.as_ref().map(listing_digest).unwrap_or_default(),
            core: base.len(),
            deferred: if active { view.visible().count() - sent().count() } else { 0 },
            bridge: 0,
            late: Arc::default(),
            tokens_all: with_envelope(
                format,
                view.visible().filter_map(|(id, _)| of(id)).map(|made| made.tokens).sum(),
            ),
            tokens_base: 0,
            tokens_core: 0,
            tokens_management: 0,
            strict_room: StrictRoom::of(target),
            listing: None,
            listing_base: None,
            changes: None,
        };
        plan.base_hash
            .add(format.as_str().as_bytes())
            .add(target.profile.as_str().as_bytes())
            .add(plan.listing_json.as_bytes());
        let mut told = Told::default();
        for group in base.chunk_by(|(_, a), (_, b)| a.tool.tool.group() == b.tool.tool.group()) {
            let mut entries = Vec::with_capacity(group.len());
            for (id, tool) in group {
                let Some(made) = of(*id) else { continue };
                let made = told.fitting(tool, made, target, &mut plan.strict_room);
                told.about(tool, &made);
                plan.note(tool, &made);
                entries.extend(made.entry(tool.wire_name(), &tool.tool.tool).cloned());
            }
            plan.push_group(view, group, &entries);
        }
        plan.tokens_core = plan.tokens_base;
        if active {
            let inside = listing.as_ref().filter(|listing| listing.placement == ListingPlacement::Bridge);
            let bridge = bridge_entries(view, target, inside.map(|listing| listing.text.as_str()), &made);
            plan.push_own(bridge);
        }
        if view.manages {
            // In every tier: a small catalog is set up too.
            let render = |tool| management::render(tool, target, &view.bridge_prefix);
            let before = plan.tokens_base;
            plan.push_own(ManagementTool::ALL.map(render));
            plan.tokens_management = plan.tokens_base - before;
        }
        if active && target.exposure == Exposure::Native && native::declares_deferred(format) {
            plan.declare(view, &mut told);
        }
        // Two tools may look the same and mean different stored names.
        for (wire, stored) in &plan.base_names {
            plan.base_hash.add(wire.as_bytes()).add(stored.as_bytes());
        }
        if !plan.base_args.is_empty() {
            plan.base_hash.add(serde_json::to_string(&plan.base_args).unwrap_or_default().as_bytes());
        }
        plan.warnings.extend(told.warnings());
        plan.listing = listing;
        plan
    }

    /// Takes the deferred entries of another plan of the same view for its own where they are the same. Whether they are.
    pub fn share_late(&mut self, other: &Self) -> bool {
        let same = self.late == other.late;
        if same {
            self.late = Arc::clone(&other.late);
        }
        same
    }

    /// Appends tools of ours.
    fn push_own(&mut self, entries: impl IntoIterator<Item = String>) {
        for json in entries {
            let count = tokens::count(&json);
            self.push(&ArrayEntry::new(json, count, false));
            self.bridge += 1;
        }
    }

    /// Appends core tools of one group: one by one, or as a namespace.
    fn push_group(&mut self, view: &View, tools: &[(u32, &ViewTool)], entries: &[ArrayEntry]) {
        if self.target.exposure != Exposure::Namespaced {
            return entries.iter().for_each(|entry| self.push(entry));
        }
        let Some((_, first)) = tools.first() else { return };
        let group = first.tool.tool.group();
        let told = view.groups.iter().find(|known| *known.name == *group);
        let entries: Vec<&str> = entries.iter().map(|entry| &*entry.json).collect();
        let space = native::namespace(group, told.and_then(|told| told.description.as_deref()), &entries);
        if let Some(json) = space {
            let count = tokens::count(&json);
            self.push(&ArrayEntry::new(json, count, false));
        }
    }

    /// Appends the deferred tools as the provider knows them, in the order of core. Never strict: how many may be is
    /// for those that the model sees.
    fn declare(&mut self, view: &View, told: &mut Told) {
        // Also what cannot run at the moment: a conversation may name it.
        let mut deferred: Vec<(u32, &ViewTool)> =
            (0..).zip(&view.tools).filter(|(_, tool)| !tool.core).collect();
        deferred.sort_by_key(|(_, tool)| (tool.tool.tool.group(), tool.stored_name()));
        let mut late = LateEntries::default();
        for (id, tool) in deferred {
            let made = tool.plain_for(self.target);
            let entry = made.entry_text(tool.wire_name(), &tool.tool.tool);
            let Some(json) = entry.and_then(|entry| native::deferred(&entry)) else { continue };
            late.push(id, &json);
            self.base_hash.add(json.as_bytes());
            told.about(tool, &made);
            self.note(tool, &made);
        }
        self.late = Arc::new(late);
    }

    /// Notes what a tool of the array is called and takes otherwise than it came.
    fn note(&mut self, tool: &ViewTool, made: &TargetTool) {
        self.base_names
            .extend(tool.mapped_name().map(|wire| (wire.to_owned(), tool.stored_name().to_owned())));
        self.base_args.extend(made.arg_map_document().map(|map| (tool.wire_name().to_owned(), map)));
    }

    /// Number of entries that no session changes.
    pub(super) fn base_len(&self) -> usize {
        self.base_digests.len() / 16
    }

    fn push(&mut self, entry: &ArrayEntry) {
        if !self.base.is_empty() {
            self.base.push(',');
        }
        self.base.push_str(&entry.json);
        self.base_digests.push_str(&head_text(entry.digest));
        self.base_hash.add(&entry.digest.to_be_bytes());
        self.tokens_base += entry.tokens;
    }

    /// How many more tools the provider takes; none where it names no figure. An error holds how many there are, where those that
    /// always stand in the array are too many already, and how many it takes.
    pub fn room(&self) -> Result<Option<usize>, (usize, usize)> {
        let Some(most) = self.target.max_tools() else { return Ok(None) };
        let there = self.core + self.bridge;
        most.checked_sub(there).map(Some).ok_or((there, most))
    }

    /// Whether every visible tool stands in the array.
    pub fn sends_all(&self) -> bool {
        self.tier == 0
    }

    /// Approximate size in memory of its deferred entries, which plans may share, in bytes.
    pub fn late_bytes(&self) -> usize {
        self.late.bytes()
    }

    /// Approximate size in memory without them, in bytes.
    pub fn bytes(&self) -> usize {
        let names: usize = self.base_names.iter().map(|(wire, stored)| wire.len() + stored.len() + 64).sum();
        let listing = self.listing.as_ref().map_or(0, |listing| listing.text.len());
        let changes = self.changes.as_ref().map_or(0, |changes| 4 * changes.text.len() + 256);
        self.base.len() + self.base_digests.len() + names + listing + self.listing_json.len() + changes + 512
    }
}

/// Whether tools are deferred: a function of config, grant, window and target, never of the warm set or of what is
/// unavailable at the moment.
fn is_active(view: &View, policy: &Policy, target: Target, window: u32, made: &[Arc<TargetTool>]) -> bool {
    let deferred = || view.tools.iter().zip(made).filter(|(tool, _)| !tool.core);
    match policy.enabled {
        // What does not go into the array must be reached in another way.
        _ if made.iter().any(|made| made.left_out) => true,
        _ if deferred().next().is_none() => false,
        Switch::Off => false,
        Switch::On => true,
        Switch::Auto => {
            if target.max_tools().is_some_and(|most| view.tools.len() + management_tools(view) > most) {
                return true;
            }
            let schemas: usize = deferred().map(|(_, made)| made.tokens).sum();
            let cheap = (schemas as f64) < policy.activation_pct / 100.0 * f64::from(window);
            view.tools.len() > policy.min_catalog_size as usize && !cheap
        }
    }
}

/// The target with the exposure that this view's array can have.
fn exposed(view: &View, policy: &Policy, target: Target, warnings: &mut Vec<Warning>) -> Target {
    let bridge = |detail: String, warnings: &mut Vec<Warning>| {
        warnings.push(Warning::new("exposure_unavailable", detail));
        Target { exposure: Exposure::Bridge, ..target }
    };
    if !policy.exposure.is_of(target.format) && target.exposure == Exposure::Bridge {
        let (wanted, format) = (policy.exposure.as_str(), target.format.as_str());
        return bridge(
            format!("`{format}` has no exposure `{wanted}`; deferred tools are reached through the bridge"),
            warnings,
        );
    }
    let declared = target.exposure == Exposure::Native && native::declares_deferred(target.format);
    let all = view.tools.len() + BridgeTool::ALL.len() + management_tools(view);
    if let Some(most) = target.max_tools().filter(|most| declared && all > *most) {
        let detail = format!("the provider takes at most {most} tools; they are reached through the bridge");
        return bridge(detail, warnings);
    }
    target
}

/// How many management tools stand in an array.
fn management_tools(view: &View) -> usize {
    if view.manages { ManagementTool::ALL.len() } else { 0 }
}

/// The tools by which deferred ones are reached.
fn bridge_entries(
    view: &View,
    target: Target,
    listing: Option<&str>,
    made: &[Arc<TargetTool>],
) -> Vec<String> {
    let prefix = &view.bridge_prefix;
    let render = |tool: BridgeTool| bridge::render(tool, target, prefix, listing);
    if target.exposure != Exposure::Native {
        return BridgeTool::ALL.into_iter().map(render).collect();
    }
    let search = native::search_entry(target.format, &BridgeTool::Search.name(prefix), listing);
    // What the provider does not take cannot be loaded: it is described and called.
    let others = [BridgeTool::Describe, BridgeTool::Call].into_iter().map(render);
    let left_out = view.visible().any(|(id, _)| made.get(id as usize).is_some_and(|made| made.left_out));
    let others = others.filter(|_| left_out);
    search.into_iter().chain(others).collect()
}

/// The listing of an active view with its tier; nothing when there is none.
fn plan_listing(
    view: &View,
    policy: &Policy,
    target: Target,
    window: u32,
    deferred: &[(u32, &ViewTool)],
    warnings: &mut Vec<Warning>,
) -> Option<(PlacedListing, u8)> {
    if policy.listing == Switch::Off {
        let detail = "`listing` is off: the model sees deferred tools only through tool_search";
        warnings.push(Warning::new("listing_off", detail));
        return None;
    }
    let budget = listing_budget(policy, window);
    let some_left_out = deferred.iter().any(|(_, tool)| tool.for_target(target).left_out);
    let header = listing::header(target, &view.bridge_prefix, some_left_out);
    let listing = listing::render(&listed_groups(view, deferred), budget, header)?;
    if listing.header_only {
        warnings.push(over_budget(budget));
    }
    let mut placement = policy.listing_placement;
    if placement == ListingPlacement::Bridge && target.description_limit().is_some() {
        placement = ListingPlacement::Separate;
        warnings.push(placed_separately(target));
    }
    let placed = PlacedListing { text: listing.text, placement, tokens: listing.tokens, form: listing.form };
    Some((placed, listing.tier))
}

/// Most tokens of a listing.
pub(super) fn listing_budget(policy: &Policy, window: u32) -> usize {
    let cap = policy.listing_max_tokens as usize;
    let share = (policy.threshold_pct / 100.0 * f64::from(window)) as usize;
    if policy.listing == Switch::On { cap } else { share.min(cap) }
}

fn over_budget(budget: usize) -> Warning {
    let detail =
        format!("a budget of {budget} tokens is too small for any group; the listing is its header alone");
    Warning::new("listing_over_budget", detail)
}

fn placed_separately(target: Target) -> Warning {
    let detail = format!("`{}` limits descriptions; the listing stands beside the tools", target.name());
    Warning::new("listing_placed_separately", detail)
}

/// The groups of deferred tools as a listing shows them, by name.
pub(super) fn listed_groups<'a>(view: &'a View, deferred: &[(u32, &'a ViewTool)]) -> Vec<ListedGroup<'a>> {
    let mut groups: Vec<ListedGroup<'a>> = view
        .groups
        .iter()
        .map(|group| ListedGroup {
            name: &group.name,
            description: group.description.as_deref(),
            tools: Vec::new(),
        })
        .collect();
    for (_, tool) in deferred {
        let counts = &tool.tool.counts;
        let listed = ListedTool {
            wire_name: tool.wire_name(),
            short: &tool.tool.short,
            line_tokens: counts.line as usize,
            name_tokens: counts.name as usize,
        };
        if let Some(group) = groups.get_mut(tool.group as usize) {
            group.tools.push(listed);
        }
    }
    groups.retain(|group| !group.tools.is_empty());
    groups
}

fn listing_json(listing: &PlacedListing) -> String {
    let mut json = String::from("{\"text\":");
    push_string(&listing.text, &mut json);
    let placement = listing.placement.as_str();
    json.push_str(&format!(
        ",\"placement\":\"{placement}\",\"tokens\":{},\"form\":\"{}\"}}",
        listing.tokens, listing.form
    ));
    json
}

fn listing_digest(listing: &PlacedListing) -> String {
    head_text(Digest::of(listing.text.as_bytes()).short())
}

/// The tools of a view for a target, by id.
fn made_for(view: &View, target: Target) -> Vec<Arc<TargetTool>> {
    view.tools.iter().map(|tool| tool.for_target(target)).collect()
}

/// Tokens of entries with what the format puts around them.
pub(super) fn with_envelope(format: Format, entries: usize) -> usize {
    if entries == 0 { 0 } else { entries + format.layout().array.tokens }
}
