//! Toolsets: selections that a session can be limited to, where the tools themselves suggest one.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Origin;
use super::groups::{Planned, free_name};
use super::prefixes::NOISE;
use crate::core::grant::{View, ViewTool};
use crate::core::policy::{Policy, Toolset};
use crate::core::selector::Selector;

/// Fewest tools of a proposed toolset; a smaller one saves nothing.
const LEAST_TOOLS: usize = 5;
/// Fewest tools of a family of groups, and most families.
const LEAST_FAMILY: usize = 15;
const MAX_FAMILIES: usize = 8;

/// A toolset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProposedToolset {
    pub name: String,
    pub origin: Origin,
    pub description: Option<String>,
    /// Why it is proposed, in a sentence.
    pub reason: String,
    /// As the config writes them.
    #[schema(value_type = Vec<String>)]
    pub tools: Vec<Selector>,
    pub groups: Vec<String>,
    pub includes: Vec<String>,
}

impl ProposedToolset {
    pub(super) fn entry(&self) -> Toolset {
        Toolset {
            name: self.name.clone(),
            description: self.description.clone(),
            tools: self.tools.clone(),
            groups: self.groups.clone(),
            includes: self.includes.clone(),
        }
    }
}

/// The toolsets of a config, and what is proposed besides.
pub(super) fn propose(view: &View, policy: &Policy, groups: &[Planned]) -> Vec<ProposedToolset> {
    let existing = policy.toolsets.iter().map(|toolset| ProposedToolset {
        name: toolset.name.clone(),
        origin: Origin::Existing,
        description: toolset.description.clone(),
        reason: "The config has it.".to_owned(),
        tools: toolset.tools.clone(),
        groups: toolset.groups.clone(),
        includes: toolset.includes.clone(),
    });
    let mut toolsets: Vec<ProposedToolset> = existing.collect();
    let known: HashSet<String> = toolsets.iter().map(|toolset| toolset.name.to_lowercase()).collect();
    let mut taken = known.clone();
    if !known.contains(READ_ONLY) {
        toolsets.extend(read_only(view, &mut taken));
    }
    toolsets.extend(families(groups).into_iter().filter(|(family, ..)| !known.contains(*family)).map(
        |(family, tools, names)| {
            let count = names.len();
            ProposedToolset {
                name: free_name(family, &mut taken),
                origin: Origin::Proposed,
                description: None,
                reason: format!("{count} groups with {tools} tools are of one family."),
                tools: Vec::new(),
                groups: names.into_iter().map(str::to_owned).collect(),
                includes: Vec::new(),
            }
        },
    ));
    toolsets
}

/// What the toolset of tools that change nothing is called.
const READ_ONLY: &str = "read-only";

/// Tools that say of themselves that they change nothing, where enough do and not all.
fn read_only(view: &View, taken: &mut HashSet<String>) -> Option<ProposedToolset> {
    let says_so: Vec<&ViewTool> = view.tools.iter().filter(|tool| is_read_only(tool)).collect();
    let plain = |tool: &&&ViewTool| {
        let name = tool.stored_name();
        let only = view.select(name).iter().filter_map(|id| view.get(*id)).all(is_read_only);
        only && matches!(Selector::parse(name), Ok(Selector::Name(_)))
    };
    let tools: Vec<Selector> =
        says_so.iter().filter(plain).map(|tool| Selector::Name(tool.stored_name().to_owned())).collect();
    if tools.len() < LEAST_TOOLS || says_so.len() == view.tools.len() {
        return None;
    }
    Some(ProposedToolset {
        name: free_name(READ_ONLY, taken),
        origin: Origin::Proposed,
        description: Some("Tools that say of themselves that they change nothing".to_owned()),
        reason: format!(
            "{} of {} tools say of themselves that they change nothing; nobody has checked that.",
            tools.len(),
            view.tools.len()
        ),
        tools,
        groups: Vec::new(),
        includes: Vec::new(),
    })
}

fn is_read_only(tool: &ViewTool) -> bool {
    #[derive(Deserialize)]
    struct Annotations {
        #[serde(rename = "readOnlyHint", default)]
        read_only: bool,
    }
    let kept = tool.tool.tool.kept();
    let read = kept.annotations.map(|raw| serde_json::from_str::<Annotations>(raw.get()));
    read.is_some_and(|read| read.is_ok_and(|annotations| annotations.read_only))
}

/// Groups whose names begin with one word: the word, how many tools, the groups. Those with most tools first.
fn families(groups: &[Planned]) -> Vec<(&str, usize, Vec<&str>)> {
    let mut families: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for group in groups.iter().filter(|group| group.name != "*") {
        // What stands before a slash is a registry.
        let own = group.name.rsplit('/').next().unwrap_or_default();
        let end = own.find(|character: char| !character.is_alphanumeric()).unwrap_or(own.len());
        if NOISE.split_whitespace().any(|noise| own[..end].eq_ignore_ascii_case(noise)) {
            continue;
        }
        let family = families.entry(&own[..end]).or_default();
        family.0 += group.tools.len();
        family.1.push(&group.name);
    }
    let mut families: Vec<(&str, usize, Vec<&str>)> = families
        .into_iter()
        .filter(|(word, (tools, groups))| {
            word.chars().count() >= 3 && groups.len() >= 2 && *tools >= LEAST_FAMILY
        })
        .map(|(word, (tools, groups))| (word, tools, groups))
        .collect();
    families.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    families.iter_mut().for_each(|(_, _, groups)| groups.sort_unstable());
    families.truncate(MAX_FAMILIES);
    families
}
