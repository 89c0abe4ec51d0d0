//! The grant: which tools a request may see. The one place that decides it; every route asks a [`View`].
//!
//! A view is a function of catalogs, config and selections. It joins the catalogs, applies toolsets, `allow`, `deny`
//! and `unavailable`, and gives each tool its group, its wire name and whether it is core. What is not in the view
//! does not exist for the caller.

mod joining;
mod rules;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use self::joining::{Joined, join, unique_wire_names};
use self::rules::{narrow, rules};
use super::catalog::{Catalog, CatalogTool};
use super::grouping::{Grouping, SelectorSet};
use super::management::ManagementTool;
use super::policy::Policy;
use super::profile::Profile;
use super::selector::Selector;
use super::target::{Made, Target, TargetTool};
use super::tool::ToolKey;
use super::warning::Warning;

/// What one request or session asks to be limited to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Absent: nothing is said (for an assembly: the default toolsets). Empty: everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolsets: Option<Vec<String>>,
    /// Empty does not restrict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Selector>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Selector>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Selector>,
}

/// The catalogs that a view joins.
#[derive(Debug, Clone)]
pub enum Catalogs {
    /// The stored catalogs of a user and a project.
    Stored { user: Arc<Catalog>, project: Arc<Catalog> },
    /// The live tools of an assembly, in place of both.
    Inline(Arc<Catalog>),
}

impl Catalogs {
    /// The catalogs in the order of [`ViewTool::part`].
    pub fn parts(&self) -> impl Iterator<Item = &Arc<Catalog>> {
        let (first, second) = match self {
            Self::Stored { user, project } => (user, Some(project)),
            Self::Inline(catalog) => (catalog, None),
        };
        std::iter::once(first).chain(second)
    }

    /// The version that answers carry: of both catalogs where there are two.
    pub fn version(&self) -> Cow<'_, str> {
        match self {
            Self::Inline(catalog) => Cow::Borrowed(catalog.version()),
            Self::Stored { user, project } if project.is_empty() => Cow::Borrowed(user.version()),
            Self::Stored { user, project } if user.is_empty() => Cow::Borrowed(project.version()),
            Self::Stored { user, project } => Cow::Owned(format!("{}.{}", user.version(), project.version())),
        }
    }
}

/// A tool of the grant.
#[derive(Debug)]
pub struct ViewTool {
    pub tool: Arc<CatalogTool>,
    /// Which of the view's catalogs the tool is from.
    pub part: u8,
    /// Index into [`View::groups`].
    pub group: u32,
    pub core: bool,
    /// Named in `unavailable`: of the grant, but out of sight for now.
    pub unavailable: bool,
    /// Set where the catalog's wire name is taken by the bridge or by another catalog's tool.
    renamed: Option<Box<str>>,
    /// Under that name.
    made: Made,
}

impl ViewTool {
    pub fn stored_name(&self) -> &str {
        &self.tool.stored_name
    }

    pub fn wire_name(&self) -> &str {
        self.renamed.as_deref().unwrap_or_else(|| self.tool.wire_name())
    }

    /// The wire name where it is not the stored name.
    pub fn mapped_name(&self) -> Option<&str> {
        Some(self.wire_name()).filter(|wire| *wire != self.stored_name())
    }

    /// The tool without strict mode, whoever wanted it.
    pub fn plain_for(&self, target: Target) -> Arc<TargetTool> {
        let made = self.for_target(Target { strict: false, ..target });
        made.without_own_strict(self.wire_name(), &self.tool.tool).unwrap_or(made)
    }

    /// The tool as it stands in an array for this target.
    pub fn for_target(&self, target: Target) -> Arc<TargetTool> {
        match &self.renamed {
            None => self.tool.for_target(target),
            Some(wire_name) => {
                self.made.get(target, |target| TargetTool::make(target, wire_name, &self.tool.tool, None))
            }
        }
    }
}

/// A group as the config gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewGroup {
    pub name: Box<str>,
    pub description: Option<Box<str>>,
}

/// What a name from outside means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved<'a> {
    Tool(u32),
    Bridge(BridgeTool),
    /// Only where the config says `management_tools`.
    Management(ManagementTool),
    /// An uploaded name that several tools of the grant have.
    Ambiguous(&'a [u32]),
    Unknown,
}

/// One of the three bridge tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeTool {
    Search,
    Describe,
    Call,
}

impl BridgeTool {
    /// In the order in which they stand in an array.
    pub const ALL: [Self; 3] = [Self::Search, Self::Describe, Self::Call];

    /// The name without a prefix.
    pub fn base_name(self) -> &'static str {
        match self {
            Self::Search => "tool_search",
            Self::Describe => "tool_describe",
            Self::Call => "tool_call",
        }
    }

    pub fn name(self, prefix: &str) -> String {
        format!("{prefix}{}", self.base_name())
    }
}

/// What a caller can see. Immutable, and the same for all who ask with the same inputs.
#[derive(Debug)]
pub struct View {
    /// By stored name; a tool's index is its id inside the view.
    pub tools: Vec<ViewTool>,
    /// By name.
    pub groups: Vec<ViewGroup>,
    /// What the selections came to: concerns every request.
    pub warnings: Vec<Warning>,
    /// What joining catalogs and config came to: concerns assemblies.
    pub join_warnings: Vec<Warning>,
    /// As the provider takes it.
    pub bridge_prefix: String,
    /// Whether the management tools stand in arrays.
    pub manages: bool,
    /// Per catalog: the id of each of its tools that can be found now, in the catalog's order, or [`HIDDEN`].
    candidates: Vec<Vec<u32>>,
    mapped: HashMap<Box<str>, u32>,
    uploaded: HashMap<Box<str>, Vec<u32>>,
    /// Names that the tools have on the wire under other profiles, or had before they were qualified, made when one of them is asked for: an agent that
    /// changes its provider in the middle of a conversation still calls by them.
    other_names: OnceLock<HashMap<Box<str>, Vec<u32>>>,
}

/// Warnings of one kind about `core` in one answer, and selectors that are looked at for them.
const MAX_CORE_WARNINGS: usize = 20;
const MAX_CHECKED_CORE: usize = 200;

/// Stands for "not in the view" among candidate ids.
pub const HIDDEN: u32 = u32::MAX;

impl View {
    /// Decides the grant. `selections` all apply; the first one is the assembly's, others only narrow.
    pub fn build(
        catalogs: &Catalogs,
        policy: &Policy,
        user_core: &[Selector],
        selections: &[Selection],
        profile: Profile,
    ) -> Self {
        let (mut warnings, mut join_warnings) = (Vec::new(), Vec::new());
        let grouping = Grouping::new(policy);
        let user_core = SelectorSet::new(user_core);
        let in_user_core = |tool: &CatalogTool| user_core.hits(tool, grouping.group_of(tool));
        let joined = join(catalogs, in_user_core, &mut join_warnings);
        if joined.is_empty() {
            warnings.push(Warning::new(
                "empty_catalog",
                "there are no tools: the catalogs of this request are empty",
            ));
        }
        let group_names: Vec<&str> = joined.iter().map(|(_, _, tool)| grouping.group_of(tool)).collect();
        let mut kept = vec![true; joined.len()];
        narrow(&mut kept, &joined, &group_names, &rules(policy, selections, &mut warnings), &mut warnings);

        join_warnings.extend(core_not_found(policy, &joined, &group_names));
        let core = SelectorSet::new(&policy.core);
        let unavailable = SelectorSet::new(selections.iter().flat_map(|selection| &selection.unavailable));
        let bridge_prefix = profile.fitted(&policy.bridge_prefix);
        let wire_names = unique_wire_names(&joined, &bridge_prefix, profile);
        let mut group_ids: BTreeMap<&str, u32> =
            group_names.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(name, _)| (*name, 0)).collect();
        group_ids.values_mut().zip(0..).for_each(|(id, at)| *id = at);

        let mut candidates: Vec<Vec<u32>> = catalogs.parts().map(|part| vec![HIDDEN; part.len()]).collect();
        let mut view = Self {
            tools: Vec::new(),
            groups: group_ids.keys().map(|name| grouping.view_group(name)).collect(),
            warnings,
            join_warnings,
            bridge_prefix,
            manages: policy.management_tools,
            candidates: Vec::new(),
            mapped: HashMap::new(),
            uploaded: HashMap::new(),
            other_names: OnceLock::new(),
        };
        let chosen = joined.iter().zip(group_names).zip(wire_names).zip(kept).filter(|(_, kept)| *kept);
        for ((((part, at, tool), group), renamed), _) in chosen {
            let id = view.tools.len() as u32;
            if tool.tool.name() != &*tool.stored_name {
                view.uploaded.entry(tool.tool.name().into()).or_default().push(id);
            }
            let entry = ViewTool {
                tool: Arc::clone(tool),
                part: *part,
                group: group_ids.get(group).copied().unwrap_or_default(),
                core: tool.tool.always_load() || core.hits(tool, group),
                unavailable: unavailable.hits(tool, group),
                renamed: renamed.map(Into::into),
                made: Made::default(),
            };
            if !entry.unavailable {
                candidates[usize::from(*part)][*at] = id;
            }
            if let Some(wire) = entry.mapped_name() {
                view.mapped.insert(wire.into(), id);
            }
            view.tools.push(entry);
        }
        view.candidates = candidates;
        // A warning must not tell of a tool outside the grant.
        let mut join_warnings = std::mem::take(&mut view.join_warnings);
        join_warnings
            .retain(|warning| warning.tool.as_deref().is_none_or(|tool| view.by_stored(tool).is_some()));
        view.join_warnings = join_warnings;
        if !view.tools.is_empty() && view.visible().next().is_none() {
            view.warnings.push(Warning::new("empty_grant", "no tool is left after unavailable"));
        }
        view.warn_of_ambiguous_core(policy);
        view
    }

    /// The view with some more core tools, each by its identity; those that it does not hold stay outside.
    #[must_use]
    pub fn with_core(mut self, keys: &[ToolKey]) -> Self {
        let ids: Vec<u32> = keys.iter().flat_map(|key| self.by_key(key)).collect();
        for id in ids {
            if let Some(tool) = self.tools.get_mut(id as usize) {
                tool.core = true;
            }
        }
        self
    }

    fn warn_of_ambiguous_core(&mut self, policy: &Policy) {
        let named = policy.core.iter().filter_map(|selector| match selector {
            Selector::Name(name) => Some((name, self.select(name).len())),
            _ => None,
        });
        let several = named.filter(|(_, hits)| *hits > 1).take(MAX_CORE_WARNINGS).map(|(name, hits)| {
            let detail = format!("`{name}` in `core` means {hits} tools; all of them are core");
            Warning::new("ambiguous_core", detail)
        });
        let mut several: Vec<Warning> = several.collect();
        self.join_warnings.append(&mut several);
    }

    pub fn get(&self, id: u32) -> Option<&ViewTool> {
        self.tools.get(id as usize)
    }

    /// The tools that are to be seen now, with their ids.
    pub fn visible(&self) -> impl Iterator<Item = (u32, &ViewTool)> {
        (0..).zip(&self.tools).filter(|(_, tool)| !tool.unavailable)
    }

    /// Per catalog: the candidate id of each of its tools.
    pub fn candidates(&self) -> &[Vec<u32>] {
        &self.candidates
    }

    pub fn group(&self, tool: &ViewTool) -> &str {
        self.groups.get(tool.group as usize).map_or("", |group| &group.name)
    }

    /// The tool of this stored name.
    pub fn by_stored(&self, name: &str) -> Option<u32> {
        self.tools.binary_search_by(|tool| tool.stored_name().cmp(name)).ok().map(|at| at as u32)
    }

    /// A name by which a caller reaches a tool: the stored one, unless that means something else.
    pub fn callable_name<'t>(&self, tool: &'t ViewTool) -> &'t str {
        let reached = match self.resolve(tool.stored_name()) {
            Resolved::Tool(id) => self.get(id).is_some_and(|found| std::ptr::eq(found, tool)),
            _ => false,
        };
        if reached { tool.stored_name() } else { tool.wire_name() }
    }

    /// What a wire, stored or uploaded name means, in this order; the bridge comes before all, and management with it.
    pub fn resolve(&self, name: &str) -> Resolved<'_> {
        if let Some(own) = self.own_tool(|own| own == name) {
            return own;
        }
        match self.resolve_tool(name) {
            // The prefix as another profile has it.
            Resolved::Unknown => {
                let name = name.replace('-', "_");
                self.own_tool(|own| own.replace('-', "_") == name).unwrap_or(Resolved::Unknown)
            }
            tool => tool,
        }
    }

    /// The tool of ours in these arrays whose name it is.
    fn own_tool(&self, is_it: impl Fn(&str) -> bool) -> Option<Resolved<'_>> {
        let (prefix, manages) = (&self.bridge_prefix, self.manages);
        let bridge = BridgeTool::ALL.into_iter().find(|tool| is_it(&tool.name(prefix)));
        let management = || ManagementTool::ALL.into_iter().find(|tool| is_it(&tool.name(prefix)));
        bridge.map(Resolved::Bridge).or_else(|| management().filter(|_| manages).map(Resolved::Management))
    }

    /// As [`Self::resolve`], for places where a tool of ours is never meant.
    pub fn resolve_tool(&self, name: &str) -> Resolved<'_> {
        if let Some(id) = self.mapped.get(name).copied().or_else(|| self.by_stored(name)) {
            return Resolved::Tool(id);
        }
        let found = self.uploaded.get(name).or_else(|| self.by_other_name(name));
        match found.map(Vec::as_slice) {
            None | Some([]) => Resolved::Unknown,
            Some([one]) => Resolved::Tool(*one),
            Some(several) => Resolved::Ambiguous(several),
        }
    }

    /// Names on the wire that other profiles have, or that a tool had before it was qualified.
    fn by_other_name(&self, name: &str) -> Option<&Vec<u32>> {
        // Each of them ends in a hash.
        let hash = name.rsplit('_').next().filter(|hash| hash.len() == 8)?;
        if !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let names = self.other_names.get_or_init(|| {
            let mut names: HashMap<Box<str>, Vec<u32>> = HashMap::new();
            for (id, tool) in (0..).zip(&self.tools) {
                let uploaded = tool.tool.tool.name();
                let of = |name| Profile::ALL.iter().map(move |profile| profile.wire_name(name));
                let all =
                    of(tool.stored_name()).chain(of(uploaded)).chain([Cow::Borrowed(tool.tool.wire_name())]);
                for other in all {
                    // Most names fit everywhere.
                    if other == tool.stored_name() || other == tool.wire_name() || other == uploaded {
                        continue;
                    }
                    let ids = names.entry(other.into()).or_default();
                    if ids.last() != Some(&id) {
                        ids.push(id);
                    }
                }
            }
            names
        });
        names.get(name)
    }

    /// Every tool that a name selects: by its stored, wire or uploaded name, all that match.
    pub fn select(&self, name: &str) -> Vec<u32> {
        let one = self.mapped.get(name).copied().or_else(|| self.by_stored(name));
        let uploaded = self.uploaded.get(name).into_iter().flatten().copied();
        one.into_iter().chain(uploaded).collect()
    }

    /// The tools of an identity, as warm sets store it: one, or two where user and project have it under different
    /// stored names.
    pub fn by_key(&self, key: &ToolKey) -> Vec<u32> {
        let is_it = |id: &u32| {
            self.get(*id).is_some_and(|tool| {
                tool.tool.tool.group() == &*key.group && tool.tool.tool.name() == &*key.name
            })
        };
        let stored = self.by_stored(&key.name).into_iter();
        stored.chain(self.uploaded.get(&key.name).into_iter().flatten().copied()).filter(is_it).collect()
    }

    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let maps = 64 * (self.mapped.len() + self.uploaded.len());
        let warnings = 256 * (self.warnings.len() + self.join_warnings.len());
        warnings
            + self.tools.len() * size_of::<ViewTool>()
            + self.candidates.iter().map(|part| part.len() * 4).sum::<usize>()
            + maps
    }
}

/// Entries of `core` that mean no tool of the catalogs, as after a misspelling.
fn core_not_found(policy: &Policy, joined: &[Joined<'_>], groups: &[&str]) -> Vec<Warning> {
    let missing = policy.core.iter().take(MAX_CHECKED_CORE).filter(|selector| {
        let set = SelectorSet::new([*selector]);
        !joined.iter().zip(groups).any(|((_, _, tool), group)| set.hits(tool, group))
    });
    let warning = |selector: &Selector| {
        Warning::new("core_not_found", format!("`{selector}` in `core` means no tool of these catalogs"))
    };
    if joined.is_empty() { Vec::new() } else { missing.take(MAX_CORE_WARNINGS).map(warning).collect() }
}

#[cfg(test)]
mod tests;
