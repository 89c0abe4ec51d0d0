//! Which tools a list of selectors takes, and which group the config gives a tool. What follows from it is the grant's.

use std::collections::{HashMap, HashSet};

use super::catalog::CatalogTool;
use super::grant::ViewGroup;
use super::policy::Policy;
use super::selector::Selector;

/// Selectors made ready for many tools.
#[derive(Debug, Default)]
pub(super) struct SelectorSet<'a> {
    pub(super) all: bool,
    names: HashSet<&'a str>,
    prefixes: Vec<&'a str>,
    pub(super) groups: HashSet<&'a str>,
}

impl<'a> SelectorSet<'a> {
    pub(super) fn new(selectors: impl IntoIterator<Item = &'a Selector>) -> Self {
        let mut set = Self::default();
        selectors.into_iter().for_each(|selector| set.add(selector));
        set
    }

    pub(super) fn add(&mut self, selector: &'a Selector) {
        match selector {
            Selector::All => self.all = true,
            Selector::Name(name) => {
                self.names.insert(name);
            }
            Selector::Prefix(prefix) => self.prefixes.push(prefix),
            Selector::Group(group) => {
                self.groups.insert(group);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.all && self.names.is_empty() && self.prefixes.is_empty() && self.groups.is_empty()
    }

    /// Whether a tool is taken: by its stored, uploaded or wire name, a prefix of the first two, or its group.
    pub(super) fn hits(&self, tool: &CatalogTool, group: &str) -> bool {
        if self.all || self.groups.contains(group) {
            return true;
        }
        let (stored, uploaded) = (&*tool.stored_name, tool.tool.name());
        let named = |name: &str| self.names.contains(name);
        (!self.names.is_empty() && (named(stored) || named(uploaded) || named(tool.wire_name())))
            || self.prefixes.iter().any(|prefix| stored.starts_with(prefix) || uploaded.starts_with(prefix))
    }
}

/// The config's groups, made ready for many tools.
pub(super) struct Grouping<'a> {
    exact: HashMap<&'a str, &'a str>,
    /// Longer prefixes first, then by group name.
    prefixes: Vec<(&'a str, &'a str)>,
    descriptions: HashMap<&'a str, &'a str>,
}

impl<'a> Grouping<'a> {
    pub(super) fn new(policy: &'a Policy) -> Self {
        let mut exact: HashMap<&str, &str> = HashMap::new();
        let mut prefixes = Vec::new();
        let mut descriptions = HashMap::new();
        for group in &policy.groups {
            for tool in &group.tools {
                let first = exact.entry(tool).or_insert(&group.name);
                *first = (*first).min(&group.name);
            }
            prefixes.extend(group.prefixes.iter().map(|prefix| (prefix.as_str(), group.name.as_str())));
            descriptions.extend(group.description.as_deref().map(|text| (group.name.as_str(), text)));
        }
        prefixes.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.1.cmp(b.1)));
        Self { exact, prefixes, descriptions }
    }

    pub(super) fn group_of<'t>(&self, tool: &'t CatalogTool) -> &'t str
    where
        'a: 't,
    {
        self.by_config(tool).unwrap_or_else(|| tool.tool.group())
    }

    /// The group that the config gives a tool; nothing where it keeps the one of its upload.
    pub(super) fn by_config(&self, tool: &CatalogTool) -> Option<&'a str> {
        let (stored, uploaded) = (&*tool.stored_name, tool.tool.name());
        let exact = self.exact.get(stored).or_else(|| self.exact.get(uploaded)).copied();
        let by_prefix = || {
            let hit = |prefix: &&(&str, &str)| stored.starts_with(prefix.0) || uploaded.starts_with(prefix.0);
            self.prefixes.iter().find(hit).map(|(_, group)| *group)
        };
        exact.or_else(by_prefix)
    }

    pub(super) fn view_group(&self, name: &str) -> ViewGroup {
        ViewGroup { name: name.into(), description: self.descriptions.get(name).map(|text| (*text).into()) }
    }
}
