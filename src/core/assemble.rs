//! Assembly: from a view to the array, the listing and the answer's bytes.
//!
//! A [`Plan`] is all of an answer that does not depend on the session: tier, listing, core and bridge. It is made once
//! per (view, format, window). An answer joins its bytes with those of the warm tools; nothing is serialised anew but
//! the small rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::bridge;
use super::cache::{CacheReport, Sent, compare};
use super::digest::{Digest, Hasher, head_text, push_string};
use super::format::Format;
use super::grant::{BridgeTool, View, ViewTool};
use super::listing::{self, ListedGroup, ListedTool};
use super::listing_base::{ListingBase, ListingChanges};
use super::policy::{ListingPlacement, Policy, Switch};
use super::target::{ArrayEntry, StrictRoom, Target, TargetTool};
use super::tokens;
use super::warning::Warning;

/// How many tools of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Tools that always stand in the array. In tier 0 that is every tool.
    pub core: usize,
    /// Found tools in the array.
    pub warm: usize,
    /// Tools outside core, found ones included.
    pub deferred: usize,
    /// Bridge tools in the array: 3 or 0.
    pub bridge: usize,
}

/// What things cost, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// All visible tools of the grant with their schemas, in this format.
    pub all: usize,
    /// The array.
    pub tools: usize,
    /// The listing; part of `tools` where it is placed in the bridge.
    pub listing: usize,
    /// `all` less what is sent. Negative where the bridge costs more than it saves.
    pub saved: i64,
    /// `o200k`: the vocabulary that counted.
    #[schema(value_type = String)]
    pub method: Method,
}

/// The way tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    O200k,
}

/// What an answer was made from, told apart by digests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    pub catalog: String,
    pub config: String,
    pub grant: String,
}

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
    base: String,
    /// As in [`Sent`].
    base_digests: String,
    base_names: BTreeMap<String, String>,
    base_args: ArgMaps,
    base_hash: Hasher,
    listing_json: String,
    listing_digest: String,
    core: usize,
    deferred: usize,
    bridge: usize,
    tokens_all: usize,
    tokens_base: usize,
    /// Of strict tools, what is left for those that are found.
    strict_room: StrictRoom,
}

impl Plan {
    /// Decides tier, listing and the constant part of the array.
    pub fn build(view: &View, policy: &Policy, target: Target, window: u32) -> Self {
        let mut warnings = Vec::new();
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
        let base = listing.as_ref().map(|listing| ListingBase::of(tier, listing, view).to_text());
        let listing_base = base.map(|text| ListingBase::digest(&text));
        Self { listing_base, ..Self::compose(view, target, (tier, listing), warnings) }
    }

    /// The plan of a session that keeps an earlier listing. For views with deferred tools only.
    pub fn with_base(view: &View, policy: &Policy, target: Target, window: u32, base: &ListingBase) -> Self {
        let listing = base.listing.clone();
        let mut warnings = Vec::new();
        if listing.text == listing::header(&view.bridge_prefix) {
            warnings.push(over_budget(listing_budget(policy, window)));
        }
        if policy.listing_placement != listing.placement {
            warnings.push(placed_separately(target));
        }
        Self {
            listing_base: Some(ListingBase::digest(&base.to_text())),
            changes: base.changes(view),
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
            tokens_all: with_envelope(
                format,
                view.visible().filter_map(|(id, _)| of(id)).map(|made| made.tokens).sum(),
            ),
            tokens_base: 0,
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
        for (id, tool) in base {
            let Some(made) = of(id) else { continue };
            let made = &told.fitting(tool, made, target, &mut plan.strict_room);
            let Some(entry) = made.entry(tool.wire_name(), &tool.tool.tool) else { continue };
            plan.push(entry);
            told.about(tool, made);
            plan.base_names
                .extend(tool.mapped_name().map(|wire| (wire.to_owned(), tool.stored_name().to_owned())));
            plan.base_args.extend(made.arg_map_document().map(|map| (tool.wire_name().to_owned(), map)));
        }
        plan.warnings.extend(told.warnings());
        if active {
            plan.bridge = BridgeTool::ALL.len();
            let inside = listing.as_ref().filter(|listing| listing.placement == ListingPlacement::Bridge);
            for tool in BridgeTool::ALL {
                let json = bridge::render(
                    tool,
                    format,
                    &view.bridge_prefix,
                    inside.map(|listing| listing.text.as_str()),
                );
                let count = tokens::count(&json);
                plan.push(&ArrayEntry::new(json, count, false));
            }
        }
        plan.listing = listing;
        plan
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
        let Some(most) = self.target.profile.limits().max_tools.value else { return Ok(None) };
        let there = self.core + self.bridge;
        most.checked_sub(there).map(Some).ok_or((there, most))
    }

    /// Whether every visible tool stands in the array.
    pub fn sends_all(&self) -> bool {
        self.tier == 0
    }

    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let names: usize = self.base_names.iter().map(|(wire, stored)| wire.len() + stored.len() + 64).sum();
        let listing = self.listing.as_ref().map_or(0, |listing| listing.text.len());
        let changes = self.changes.as_ref().map_or(0, |changes| 4 * changes.text.len() + 256);
        self.base.len() + self.base_digests.len() + names + listing + self.listing_json.len() + changes + 512
    }
}

/// Whether tools are deferred: a function of config, grant, window and format, never of the warm set or of what is
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
            if target.profile.limits().max_tools.value.is_some_and(|most| view.tools.len() > most) {
                return true;
            }
            let schemas: usize = deferred().map(|(_, made)| made.tokens).sum();
            let cheap = (schemas as f64) < policy.activation_pct / 100.0 * f64::from(window);
            view.tools.len() > policy.min_catalog_size as usize && !cheap
        }
    }
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
    let listing = listing::render(&listed_groups(view, deferred), budget, &view.bridge_prefix)?;
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
fn listing_budget(policy: &Policy, window: u32) -> usize {
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

fn listed_groups<'a>(view: &'a View, deferred: &[(u32, &'a ViewTool)]) -> Vec<ListedGroup<'a>> {
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
    let placement = match listing.placement {
        ListingPlacement::Separate => "separate",
        ListingPlacement::Bridge => "bridge",
    };
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

/// Warnings of one kind about the tools of an array; more are counted.
const MAX_TOLD: usize = 20;

/// What is said otherwise about the tools of an array than they came.
#[derive(Debug, Default)]
struct Told {
    clipped: Vec<Warning>,
    mended: Vec<Warning>,
    unstrict: Vec<Warning>,
}

impl Told {
    /// A tool as it may stand in the array: without strict mode, where the provider takes no more of that in a request.
    fn fitting(
        &mut self,
        tool: &ViewTool,
        made: &Arc<TargetTool>,
        target: Target,
        room: &mut StrictRoom,
    ) -> Arc<TargetTool> {
        if room.take(made) {
            return Arc::clone(made);
        }
        let detail = "sent without strict mode: the provider takes no more strict tools in one request";
        self.unstrict.push(Warning::new("not_strict", detail).for_tool(tool.stored_name()));
        tool.for_target(Target { strict: false, ..target })
    }

    fn about(&mut self, tool: &ViewTool, made: &TargetTool) {
        let name = tool.stored_name();
        if made.clipped {
            let detail =
                "the description is longer than the format allows and was cut; tool_describe has all of it";
            self.clipped.push(Warning::new("description_clipped", detail).for_tool(name));
        }
        let lossy = || made.lints.iter().filter(|lint| lint.lossy);
        if let Some(lint) = lossy().next() {
            let and = match lossy().count() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let place = if lint.pointer.is_empty() { "in its schema" } else { &lint.pointer };
            let detail =
                format!("{place}: {}{and}; calls are checked against the tool's own schema", lint.detail);
            self.mended.push(Warning::new("schema_mended", detail).for_tool(name));
        }
    }

    fn warnings(self) -> Vec<Warning> {
        let kinds = [self.clipped, self.mended, self.unstrict];
        kinds.into_iter().flat_map(|warnings| bounded(warnings, MAX_TOLD)).collect()
    }
}

/// The first warnings of one kind, and how many more there are.
fn bounded(mut warnings: Vec<Warning>, most: usize) -> Vec<Warning> {
    let more = warnings.len().saturating_sub(most);
    warnings.truncate(most);
    if let Some(code) = warnings.first().map(|warning| warning.code).filter(|_| more > 0) {
        warnings.push(Warning::new(code, format!("the same holds for {more} more tools")));
    }
    warnings
}

fn left_out_warnings(view: &View, made: &[Arc<TargetTool>]) -> Vec<Warning> {
    let left_out = view.tools.iter().zip(made).filter(|(_, made)| made.left_out);
    let warning = |(tool, made): (&ViewTool, &Arc<TargetTool>)| {
        let why = made.lints.first().map_or("it cannot be mended", |lint| &lint.detail);
        let detail = format!("left out of the array: {why}; tool_search and tool_call still reach it");
        Warning::new("tool_left_out", detail).for_tool(tool.stored_name())
    };
    bounded(left_out.map(warning).collect(), MAX_TOLD)
}

/// By wire name, the changes of a tool's arguments, see [`TargetTool::arg_map_document`].
pub type ArgMaps = BTreeMap<String, BTreeMap<String, Value>>;

/// What one answer adds to its plan.
#[derive(Debug, Default)]
pub struct AnswerInput<'a> {
    /// Ids of the warm tools in the order of first warming.
    pub warm: &'a [u32],
    pub origin: Origin,
    /// What this session was sent last.
    pub previous: Option<&'a Sent>,
    /// Whether the caller said that the cache is cold anyway.
    pub epoch: bool,
    pub if_fingerprint: Option<&'a str>,
    pub tools_ref: Option<&'a str>,
    pub warnings: Vec<Warning>,
}

/// An answer, ready to be sent.
#[derive(Debug)]
pub struct Answer {
    /// The JSON body.
    pub body: Vec<u8>,
    pub sent: Sent,
    pub cache: CacheReport,
    pub tokens: Tokens,
}

/// The part of an answer behind `tools` and `listing`.
#[derive(Serialize)]
struct Tail<'a> {
    tier: u8,
    warm: Vec<&'a str>,
    unavailable: &'a [String],
    counts: Counts,
    tokens: Tokens,
    fingerprint: &'a str,
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    listing_changes: Option<&'a ListingChanges>,
    cache: CacheReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools_ref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_map: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arg_map: Option<&'a ArgMaps>,
    warnings: Vec<&'a Warning>,
}

/// Joins a plan and a session's warm tools to the answer's bytes.
pub fn answer(view: &View, plan: &Plan, input: &AnswerInput<'_>) -> Answer {
    let (mut told, mut strict_room) = (Told::default(), plan.strict_room);
    let made: Vec<(&ViewTool, Arc<TargetTool>)> = input
        .warm
        .iter()
        .filter_map(|id| view.get(*id))
        .map(|tool| {
            let made = tool.for_target(plan.target);
            (tool, told.fitting(tool, &made, plan.target, &mut strict_room))
        })
        .collect();
    let warm: Vec<(&ViewTool, &ArrayEntry)> = made
        .iter()
        .filter_map(|(tool, made)| Some((*tool, made.entry(tool.wire_name(), &tool.tool.tool)?)))
        .collect();
    let mut hash = plan.base_hash.clone();
    let mut name_map = plan.base_names.clone();
    let mut arg_map = Cow::Borrowed(&plan.base_args);
    for (tool, made) in &made {
        name_map.extend(tool.mapped_name().map(|wire| (wire.to_owned(), tool.stored_name().to_owned())));
        if let Some(map) = made.arg_map_document() {
            arg_map.to_mut().insert(tool.wire_name().to_owned(), map);
        }
        told.about(tool, made);
    }
    let told = told.warnings();
    for (_, entry) in &warm {
        hash.add(&entry.digest.to_be_bytes());
    }
    // The map names tools of the array only, but two tools may look the same and mean different stored names.
    for (wire, stored) in &name_map {
        hash.add(wire.as_bytes()).add(stored.as_bytes());
    }
    if !arg_map.is_empty() {
        hash.add(serde_json::to_string(&*arg_map).unwrap_or_default().as_bytes());
    }
    let fingerprint = hash.finish().to_string();

    let mut entries = plan.base_digests.clone();
    warm.iter().for_each(|(_, entry)| entries.push_str(&head_text(entry.digest)));
    let sent = Sent {
        format: plan.target.name(),
        catalog: input.origin.catalog.clone(),
        config: input.origin.config.clone(),
        grant: input.origin.grant.clone(),
        entries,
        found: warm.iter().map(|(tool, _)| head_text(tool.tool.tool.digest().short())).collect(),
        listing: plan.listing_digest.clone(),
    };
    let cache = compare(&sent, input.previous, input.epoch, view, plan.core + plan.bridge);
    let entries = plan.tokens_base + warm.iter().map(|(_, entry)| entry.tokens).sum::<usize>();
    let tools = with_envelope(plan.target.format, entries);
    let separate = plan.listing.as_ref().filter(|listing| listing.placement == ListingPlacement::Separate);
    let tokens = Tokens {
        all: plan.tokens_all,
        tools,
        listing: plan.listing.as_ref().map_or(0, |listing| listing.tokens),
        saved: plan.tokens_all as i64 - tools as i64 - separate.map_or(0, |listing| listing.tokens as i64),
        method: Method::O200k,
    };
    let changed = input.if_fingerprint != Some(fingerprint.as_str());
    let tail = Tail {
        tier: plan.tier,
        warm: warm.iter().map(|(tool, _)| tool.stored_name()).collect(),
        unavailable: &plan.unavailable,
        counts: Counts { core: plan.core, warm: warm.len(), deferred: plan.deferred, bridge: plan.bridge },
        tokens,
        fingerprint: &fingerprint,
        changed,
        listing_changes: plan.changes.as_ref(),
        cache,
        tools_ref: input.tools_ref,
        name_map: changed.then_some(&name_map),
        arg_map: Some(&*arg_map).filter(|map| changed && !map.is_empty()),
        warnings: view
            .warnings
            .iter()
            .chain(&view.join_warnings)
            .chain(&plan.warnings)
            .chain(&told)
            .chain(&input.warnings)
            .collect(),
    };
    let tail = serde_json::to_vec(&tail).unwrap_or_default();
    let mut body = Vec::with_capacity(plan.base.len() + plan.listing_json.len() + tail.len() + 64);
    body.push(b'{');
    if changed {
        body.extend_from_slice(b"\"tools\":");
        write_array(plan.target.format, &plan.base, warm.iter().map(|(_, entry)| &*entry.json), &mut body);
        body.extend_from_slice(b",\"listing\":");
        write_listing(plan, &mut body);
        body.push(b',');
    }
    body.extend_from_slice(tail.get(1..).unwrap_or_default());
    Answer { body, sent, cache, tokens }
}

/// Writes the listing, with what it does not tell. The fingerprint leaves that out: it stands at the conversation's end.
fn write_listing(plan: &Plan, body: &mut Vec<u8>) {
    body.extend_from_slice(plan.listing_json.as_bytes());
    if let Some(changes) = plan.changes.as_ref().and_then(|changes| serde_json::to_vec(changes).ok()) {
        body.pop();
        body.extend_from_slice(b",\"changes\":");
        body.extend_from_slice(&changes);
        body.push(b'}');
    }
}

/// Tokens of entries with what the format puts around them.
fn with_envelope(format: Format, entries: usize) -> usize {
    if entries == 0 { 0 } else { entries + format.layout().array.tokens }
}

/// Writes the joined base and further entries as the value of the provider's field.
fn write_array<'a>(format: Format, base: &str, more: impl Iterator<Item = &'a str>, body: &mut Vec<u8>) {
    let array = &format.layout().array;
    let start = body.len();
    body.extend_from_slice(array.open.as_bytes());
    let first = body.len();
    body.extend_from_slice(base.as_bytes());
    for entry in more {
        if body.len() > first {
            body.push(b',');
        }
        body.extend_from_slice(entry.as_bytes());
    }
    if body.len() == first {
        body.truncate(start);
        body.extend_from_slice(array.empty.as_bytes());
    } else {
        body.extend_from_slice(array.close.as_bytes());
    }
}

/// Identity of what an answer was made from besides catalogs and config.
pub fn grant_digest(selections: &impl Serialize, window: u32) -> String {
    let text = serde_json::to_string(selections).unwrap_or_default();
    Digest::of_parts(&[text.as_bytes(), &window.to_be_bytes()]).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::catalog::{Catalog, read_upload, replace};
    use crate::core::format::ingest::EntryLimits;
    use crate::core::grant::Catalogs;
    use crate::core::policy::{Layer, merge, parse};
    use crate::core::profile::Profile;

    fn view(tools: usize, config: Value) -> (View, Policy) {
        let texts: Vec<String> = (0..tools)
            .map(|at| {
                let description = format!("Does the useful thing number {at} with care.");
                json!({"name": format!("tool.{at:03}"), "group": format!("g{}", at % 3), "description": description}).to_string()
            })
            .collect();
        let limits = EntryLimits { bytes: 262_144, depth: 64 };
        let upload = read_upload(texts.iter().map(String::as_str), limits, "/tools");
        let user = Arc::new(replace(&Catalog::default(), upload.tools).catalog);
        let policy = merge(&parse(&config).unwrap().layer, &Layer::default());
        (
            View::build(
                &Catalogs::Stored { user, project: Arc::default() },
                &policy,
                &[],
                &[],
                Profile::Generic,
            ),
            policy,
        )
    }

    fn body(answer: &Answer) -> Value {
        serde_json::from_slice(&answer.body).unwrap()
    }

    #[test]
    fn small_grants_are_sent_whole() {
        let (view, policy) = view(12, json!({}));
        let plan = Plan::build(&view, &policy, Target::of(Format::Canonical), 128_000);
        let answer = body(&answer(&view, &plan, &AnswerInput::default()));
        assert_eq!((answer["tier"].as_u64(), answer["tools"].as_array().unwrap().len()), (Some(0), 12));
        assert_eq!(answer["listing"], Value::Null);
        assert_eq!(answer["counts"], json!({"core": 12, "warm": 0, "deferred": 0, "bridge": 0}));
    }

    #[test]
    fn the_activation_share_keeps_cheap_grants_whole() {
        let (view, policy) = view(20, json!({"activation_pct": 10}));
        assert!(Plan::build(&view, &policy, Target::of(Format::Canonical), 128_000).sends_all());
        assert!(!Plan::build(&view, &policy, Target::of(Format::Canonical), 5_000).sends_all());
    }

    #[test]
    fn the_array_is_core_then_bridge_then_warm() {
        let (view, policy) = view(20, json!({"core": ["tool.004", "tool.003"]}));
        let plan = Plan::build(&view, &policy, Target::of(Format::Canonical), 128_000);
        let input = AnswerInput { warm: &[9, 7], ..AnswerInput::default() };
        let first = answer(&view, &plan, &input);
        let shown = body(&first);
        let names: Vec<&str> =
            shown["name_map"].as_object().unwrap().values().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(names, ["tool.003", "tool.004", "tool.007", "tool.009"]);
        let array: Vec<&str> = shown["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"].as_str().unwrap()[..8])
            .collect();
        assert_eq!(
            array,
            ["tool_003", "tool_004", "tool_sea", "tool_des", "tool_cal", "tool_009", "tool_007"]
        );
        assert_eq!(shown["counts"], json!({"core": 2, "warm": 2, "deferred": 18, "bridge": 3}));
        assert_eq!(
            shown["cache"],
            json!({"stable_prefix_len": 5, "break": false, "reason": "first", "breakpoint": 4})
        );
        assert_eq!(shown["warm"], json!(["tool.009", "tool.007"]));

        let grown = answer(
            &view,
            &plan,
            &AnswerInput { warm: &[9, 7, 5], previous: Some(&first.sent), ..AnswerInput::default() },
        );
        assert_eq!(
            body(&grown)["cache"],
            json!({"stable_prefix_len": 7, "break": false, "reason": "warm", "breakpoint": 4})
        );
        let evicted = answer(
            &view,
            &plan,
            &AnswerInput { warm: &[7, 5], previous: Some(&grown.sent), ..AnswerInput::default() },
        );
        assert_eq!(
            body(&evicted)["cache"],
            json!({"stable_prefix_len": 5, "break": true, "reason": "evicted", "breakpoint": 4})
        );
    }

    #[test]
    fn an_equal_fingerprint_saves_the_bytes() {
        let (view, policy) = view(20, json!({}));
        let plan = Plan::build(&view, &policy, Target::of(Format::OpenaiChat), 128_000);
        let first = body(&answer(&view, &plan, &AnswerInput::default()));
        let fingerprint = first["fingerprint"].as_str();
        let again = body(&answer(
            &view,
            &plan,
            &AnswerInput { if_fingerprint: fingerprint, ..AnswerInput::default() },
        ));
        assert_eq!((again["changed"].as_bool(), &again["fingerprint"]), (Some(false), &first["fingerprint"]));
        assert!(["tools", "listing", "name_map"].iter().all(|key| again.get(*key).is_none()));
        let other = Plan::build(&view, &policy, Target::of(Format::Anthropic), 128_000);
        assert_ne!(
            body(&answer(&view, &other, &AnswerInput::default()))["fingerprint"],
            first["fingerprint"]
        );
    }

    #[test]
    fn a_listing_inside_the_bridge_needs_room_for_it() {
        let (view, policy) = view(20, json!({"listing_placement": "bridge"}));
        let inside = Plan::build(&view, &policy, Target::of(Format::Anthropic), 128_000);
        let shown = body(&answer(&view, &inside, &AnswerInput::default()));
        assert_eq!(shown["listing"]["placement"], "bridge");
        assert!(
            shown["tools"][0]["description"].as_str().unwrap().contains("Does the useful thing number 19")
        );
        let outside = Plan::build(&view, &policy, Target::of(Format::OpenaiChat), 128_000);
        let shown = body(&answer(&view, &outside, &AnswerInput::default()));
        assert_eq!(shown["listing"]["placement"], "separate");
        assert_eq!(shown["warnings"][0]["code"], "listing_placed_separately");
    }

    #[test]
    fn a_kept_listing_keeps_every_byte_of_what_is_sent() {
        for placement in ["separate", "bridge"] {
            let config = json!({"core": ["tool.003"], "listing_placement": placement});
            let (old, policy) = view(20, config.clone());
            let plan = Plan::build(&old, &policy, Target::default(), 128_000);
            let base = ListingBase::of(plan.tier, plan.listing.as_ref().unwrap(), &old);
            let input = AnswerInput { warm: &[9], ..AnswerInput::default() };
            let first = answer(&old, &plan, &input);

            let (new, _) = view(40, config);
            let fresh = Plan::build(&new, &policy, Target::default(), 128_000);
            let kept = Plan::with_base(&new, &policy, Target::default(), 128_000, &base);
            assert_eq!((kept.listing_base, kept.tier), (plan.listing_base, plan.tier));
            assert_ne!(fresh.listing_base, plan.listing_base);
            let origin = Origin { catalog: "new".to_owned(), ..Origin::default() };
            let input = AnswerInput { origin, previous: Some(&first.sent), ..input };
            let second = answer(&new, &kept, &input);
            let (before, mut after) = (body(&first), body(&second));
            assert_eq!(after["cache"]["reason"], "none", "{placement}");
            assert_eq!((&after["fingerprint"], &after["tools"]), (&before["fingerprint"], &before["tools"]));
            assert_eq!(after["counts"]["deferred"], 39, "what can be reached is told as it is");
            let changes = after["listing"].as_object_mut().unwrap().remove("changes").unwrap();
            assert_eq!(after["listing"], before["listing"]);
            assert_eq!(
                (changes["added"].as_array().unwrap().len(), &changes),
                (20, &after["listing_changes"])
            );

            let known = AnswerInput { if_fingerprint: before["fingerprint"].as_str(), ..input };
            let short = body(&answer(&new, &kept, &known));
            assert_eq!((&short["changed"], &short["listing_changes"]), (&json!(false), &changes));
            assert!(short.get("listing").is_none());

            // The next epoch begins with the catalog as it is.
            let anew = AnswerInput { epoch: true, if_fingerprint: None, ..known };
            let anew = body(&answer(&new, &fresh, &anew));
            assert_eq!(anew["cache"]["reason"], "epoch", "{placement}");
            assert!(anew["listing"]["text"].as_str().unwrap().contains("number 39"));
        }
    }

    #[test]
    fn reported_tokens_are_those_of_what_is_sent() {
        let (view, policy) = view(20, json!({"core": ["tool.001"]}));
        for format in Format::ALL {
            let plan = Plan::build(&view, &policy, Target::of(format), 128_000);
            let answered = answer(&view, &plan, &AnswerInput { warm: &[3], ..AnswerInput::default() });
            let shown = body(&answered);
            let inside = shown["tools"].pointer("/0/functionDeclarations").unwrap_or(&shown["tools"]);
            let entries: usize =
                inside.as_array().unwrap().iter().map(|tool| tokens::count(&tool.to_string())).sum();
            let around = if format == Format::Gemini {
                tokens::count("{\"functionDeclarations\":[") + tokens::count("]}")
            } else {
                0
            };
            let entries = entries + around;
            assert_eq!(answered.tokens.tools, entries, "{format:?}");
            assert_eq!(answered.tokens.listing, tokens::count(shown["listing"]["text"].as_str().unwrap()));
            let saved = answered.tokens.all as i64 - entries as i64 - answered.tokens.listing as i64;
            assert_eq!(answered.tokens.saved, saved);
        }
    }
}
