//! Groups for the tools that a config gives none: the server of the upload, else a common beginning, else shared words; and
//! how the config says so.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::describe::describe;
use super::prefixes::prefixed;
use super::topics::{least_tools, topics};
use super::words::Words;
use crate::core::grant::{View, ViewTool};
use crate::core::grouping::Grouping;
use crate::core::policy::{Group, Policy, name_fault};
use crate::core::selector::MAX_SELECTOR_CHARS;
use crate::core::text::one_line;
use crate::core::tool::DEFAULT_GROUP;

/// Most groups of a config, those that are there included (`policy/lists.rs`).
const MAX_GROUPS: usize = 2_000;
/// Longest name of a group that is made here, in characters.
const MAX_NAME_CHARS: usize = 48;
/// Tools without a group from which on words sort them: fewer are read at a glance.
const LEAST_LEFT_OVER: usize = 6;
/// Times that groups with a beginning are held against what it really takes.
const CHECKS: usize = 3;

/// Why a group is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum By {
    Config,
    Server,
    Prefix,
    Words,
    Nothing,
}

/// A group as it will be.
#[derive(Debug)]
pub(super) struct Planned {
    pub name: String,
    pub by: By,
    /// Ids in the view, ascending.
    pub tools: Vec<u32>,
    /// Of names, where one makes the group.
    prefix: Option<String>,
}

impl Planned {
    fn new(name: String, by: By) -> Self {
        Self { name, by, tools: Vec::new(), prefix: None }
    }
}

/// Proposes groups: how all tools are grouped, and the entries that a config needs for it beside those that it has.
pub(super) fn propose(view: &View, policy: &Policy, words: &Words) -> (Vec<Planned>, Vec<Group>) {
    let before = Grouping::new(policy);
    let mut taken: HashSet<String> = policy.groups.iter().map(|group| group.name.to_lowercase()).collect();
    taken.extend(view.groups.iter().map(|group| group.name.to_lowercase()));
    taken.insert(DEFAULT_GROUP.to_owned());
    let has_none =
        |tool: &ViewTool| before.by_config(&tool.tool).is_none() && tool.tool.tool.group() == DEFAULT_GROUP;
    let left: Vec<(u32, &ViewTool)> = (0..).zip(&view.tools).filter(|(_, tool)| has_none(tool)).collect();
    let most = MAX_GROUPS.saturating_sub(policy.groups.len());
    let made = made(view, words, &left, most, &mut taken);
    let entries = entries(view, policy, words, &made);

    // What the entries really do is what is told.
    let mut after = policy.clone();
    after.groups.extend(entries.iter().cloned());
    let after = Grouping::new(&after);
    let made_by: HashMap<&str, By> = made.iter().map(|group| (group.name.as_str(), group.by)).collect();
    let mut planned: BTreeMap<&str, Planned> = BTreeMap::new();
    for (id, tool) in (0..).zip(&view.tools) {
        let name = after.group_of(&tool.tool);
        let by = match (made_by.get(name), before.by_config(&tool.tool)) {
            (Some(by), _) => *by,
            (None, Some(_)) => By::Config,
            (None, None) if name == DEFAULT_GROUP => By::Nothing,
            (None, None) => By::Server,
        };
        let group = planned.entry(name).or_insert_with(|| Planned::new(name.to_owned(), by));
        group.by = group.by.min(by);
        group.tools.push(id);
    }
    let mut planned: Vec<Planned> = planned.into_values().collect();
    planned.sort_by(|a, b| {
        let key = |group: &Planned| (group.by != By::Config, group.by == By::Nothing);
        key(a).cmp(&key(b)).then(b.tools.len().cmp(&a.tools.len())).then_with(|| a.name.cmp(&b.name))
    });
    (planned, entries)
}

/// At most so many groups for tools that nothing groups yet.
fn made(
    view: &View,
    words: &Words,
    left: &[(u32, &ViewTool)],
    most: usize,
    taken: &mut HashSet<String>,
) -> Vec<Planned> {
    let listable: Vec<(u32, &str)> = left
        .iter()
        .map(|(id, tool)| (*id, tool.stored_name()))
        .filter(|(_, name)| is_listable(name))
        .collect();
    let mut grouped: HashSet<u32> = HashSet::new();
    let mut by_name: BTreeMap<String, Planned> = BTreeMap::new();
    for found in prefixed(&listable, view.tools.len()) {
        grouped.extend(&found.tools);
        // Two spellings of one beginning are one group, by exact names.
        let group = by_name.entry(found.name.clone()).or_insert_with(|| Planned {
            prefix: found.prefix.clone(),
            ..Planned::new(found.name, By::Prefix)
        });
        if group.prefix != found.prefix {
            group.prefix = None;
        }
        group.tools.extend(found.tools);
    }
    let mut groups: Vec<Planned> = by_name.into_values().collect();
    let rest: Vec<u32> = listable.iter().map(|(id, _)| *id).filter(|id| !grouped.contains(id)).collect();
    if rest.len() >= LEAST_LEFT_OVER {
        for topic in topics(words, &rest, least_tools(rest.len()), &[]) {
            let Some(term) = words.terms.get(topic.term as usize) else { continue };
            let name = term.told.replace(' ', "-");
            // Names that begin with the word are about the same.
            match groups.iter_mut().find(|group| [&name, &term.written].contains(&&group.name)) {
                Some(group) => group.tools.extend(topic.tools),
                None => groups.push(Planned { tools: topic.tools, ..Planned::new(name, By::Words) }),
            }
        }
    }
    groups.sort_by(|a, b| b.tools.len().cmp(&a.tools.len()).then_with(|| a.name.cmp(&b.name)));
    groups.truncate(most);
    for group in &mut groups {
        group.name = free_name(&group.name, taken);
    }
    groups
}

/// Whether a group of a config can name the tool.
fn is_listable(name: &str) -> bool {
    !name.ends_with('*') && !name.trim().is_empty() && name.chars().nth(MAX_SELECTOR_CHARS).is_none()
}

/// A name that no group has, whatever its case.
pub(super) fn free_name(wanted: &str, taken: &mut HashSet<String>) -> String {
    let short: String = one_line(wanted).chars().take(MAX_NAME_CHARS).collect();
    let base = if short.trim().is_empty() { "group".to_owned() } else { short };
    // One of these is free: there is one more of them than there are taken names.
    let mut names = (1..taken.len() + 2).map(|n| if n == 1 { base.clone() } else { format!("{base}-{n}") });
    let free = names.find(|name| !taken.contains(&name.to_lowercase())).unwrap_or(base);
    taken.insert(free.to_lowercase());
    free
}

/// The entries of a config that make the groups so, and those that describe groups of uploads.
fn entries(view: &View, policy: &Policy, words: &Words, made: &[Planned]) -> Vec<Group> {
    let mut by_prefix: HashSet<&str> =
        made.iter().filter(|group| group.prefix.is_some()).map(|group| group.name.as_str()).collect();
    let mut wanted: Vec<Option<&str>> = vec![None; view.tools.len()];
    for group in made {
        group.tools.iter().for_each(|id| wanted[*id as usize] = Some(group.name.as_str()));
    }
    // A name that means another group's tool as well would take that along.
    let is_own = |name: &str, group: &Planned| {
        view.select(name).iter().all(|id| wanted[*id as usize] == Some(group.name.as_str()))
    };
    let names = |group: &Planned, prefix: Option<&str>| {
        let tools = group.tools.iter().filter_map(|id| view.get(*id)).map(ViewTool::stored_name);
        let beside = tools.filter(|name| prefix.is_none_or(|prefix| !name.starts_with(prefix)));
        beside.filter(|name| is_own(name, group)).map(str::to_owned).collect()
    };
    let entry = |group: &Planned, by_prefix: &HashSet<&str>| {
        let prefix = group.prefix.as_ref().filter(|_| by_prefix.contains(group.name.as_str()));
        Group {
            name: group.name.clone(),
            description: None,
            tools: names(group, prefix.map(String::as_str)),
            prefixes: prefix.cloned().into_iter().collect(),
        }
    };
    let before = Grouping::new(policy);
    for check in 0..=CHECKS {
        let mut trial = policy.clone();
        trial.groups.extend(made.iter().map(|group| entry(group, &by_prefix)));
        let after = Grouping::new(&trial);
        // A beginning that takes others' tools, or not all of its own, gives way to names.
        let mut wrong: HashSet<&str> = HashSet::new();
        for (tool, wanted) in view.tools.iter().zip(&wanted) {
            let (is, should) = (after.by_config(&tool.tool), wanted.or_else(|| before.by_config(&tool.tool)));
            if is != should {
                wrong.extend(is.into_iter().chain(*wanted).filter_map(|name| by_prefix.get(name).copied()));
            }
        }
        if wrong.is_empty() {
            break;
        }
        by_prefix.retain(|name| check < CHECKS && !wrong.contains(name));
    }
    let described = made.iter().map(|group| {
        let description = describe(words, &group.tools, &group.name);
        Group { description, ..entry(group, &by_prefix) }
    });
    let mut entries: Vec<Group> = described.collect();
    entries.extend(server_descriptions(view, policy, words));
    entries.truncate(MAX_GROUPS.saturating_sub(policy.groups.len()));
    entries
}

/// Entries that name no tool and describe the group of an upload, those of the largest first.
fn server_descriptions(view: &View, policy: &Policy, words: &Words) -> Vec<Group> {
    let known: HashSet<&str> = policy.groups.iter().map(|group| group.name.as_str()).collect();
    let mut tools: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (id, tool) in (0..).zip(&view.tools) {
        let name = view.group(tool);
        let can_stand = !name.trim().is_empty() && name_fault(name).is_none();
        if name != DEFAULT_GROUP && !known.contains(name) && can_stand {
            tools.entry(name).or_default().push(id);
        }
    }
    let mut largest: Vec<(&str, Vec<u32>)> = tools.into_iter().collect();
    largest.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(b.0)));
    let entry = |(name, tools): (&str, Vec<u32>)| {
        let description = Some(describe(words, &tools, name)?);
        Some(Group { name: name.to_owned(), description, tools: Vec::new(), prefixes: Vec::new() })
    };
    largest.into_iter().filter_map(entry).collect()
}
