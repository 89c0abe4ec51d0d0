//! Which tools a catalog's pages tell: those of the grant, and for who may set it up those that the config keeps from it.

use std::collections::HashSet;

use super::page::{CatalogEntry, EntryState};
use crate::core::catalog::CatalogTool;
use crate::core::grant::{Catalogs, View, ViewTool};
use crate::core::grouping::Grouping;
use crate::core::policy::Policy;
use crate::core::text::one_line;

/// Which tools to tell.
#[derive(Debug, Clone, Default)]
pub struct CatalogQuery {
    /// Words that name, group or description hold, all of them, whatever their case.
    pub query: String,
    /// Empty: all groups.
    pub group: String,
    /// Whether tools outside of the grant are told.
    pub with_excluded: bool,
}

/// The tools that fit, by group and name. `state` is asked of those in sight.
pub fn entries<'a>(
    view: &'a View,
    catalogs: &'a Catalogs,
    policy: &'a Policy,
    query: &CatalogQuery,
    state: impl Fn(&ViewTool) -> EntryState,
) -> Vec<CatalogEntry<'a>> {
    let words: Vec<String> = query.query.split_whitespace().map(str::to_lowercase).collect();
    let fits = |tool: &CatalogTool, group: &str| {
        (query.group.is_empty() || group == query.group || one_line(group) == query.group)
            && holds(tool, group, &words)
    };
    let seen = view.tools.iter().map(|tool| CatalogEntry {
        group: view.group(tool),
        stored_name: tool.stored_name(),
        wire_name: tool.mapped_name(),
        state: if tool.unavailable { EntryState::Unavailable } else { state(tool) },
        short: &tool.tool.short,
    });
    let mut found: Vec<CatalogEntry<'a>> = view
        .tools
        .iter()
        .zip(seen)
        .filter(|(tool, entry)| fits(&tool.tool, entry.group))
        .map(|(_, entry)| entry)
        .collect();
    if query.with_excluded {
        let grouping = Grouping::new(policy);
        let mut told = HashSet::new();
        for tool in catalogs.parts().flat_map(|catalog| catalog.tools()) {
            let group = grouping.group_of(tool);
            let is_new = view.by_stored(&tool.stored_name).is_none() && told.insert(&*tool.stored_name);
            if is_new && fits(tool, group) {
                found.push(CatalogEntry {
                    group,
                    stored_name: &tool.stored_name,
                    wire_name: None,
                    state: EntryState::Excluded,
                    short: &tool.short,
                });
            }
        }
    }
    found.sort_by_key(|entry| (entry.group, entry.stored_name));
    found
}

fn holds(tool: &CatalogTool, group: &str, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let texts =
        [tool.stored_name.to_lowercase(), group.to_lowercase(), tool.tool.description().to_lowercase()];
    words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
}
