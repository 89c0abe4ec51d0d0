//! The restrictions of a grant: toolsets, allow lists and deny lists, in the order in which they apply.

use std::collections::{HashMap, HashSet};

use super::Selection;
use super::joining::Joined;
use crate::core::grouping::SelectorSet;
use crate::core::policy::{Policy, Toolset};
use crate::core::warning::Warning;

/// One restriction of the grant.
pub(super) struct GrantRule<'a> {
    name: &'static str,
    set: SelectorSet<'a>,
    /// Whether hits stay (an allow list) or go (a deny list).
    keeps: bool,
}

/// Toolsets and allow lists of every layer intersect; deny comes last.
pub(super) fn rules<'a>(
    policy: &'a Policy,
    selections: &'a [Selection],
    warnings: &mut Vec<Warning>,
) -> Vec<GrantRule<'a>> {
    let mut rules = Vec::new();
    let keep = |name, set| GrantRule { name, set, keeps: true };
    for (at, selection) in selections.iter().enumerate() {
        let toolsets = match &selection.toolsets {
            None if at == 0 => &policy.default_toolsets,
            None => continue,
            Some(toolsets) => toolsets,
        };
        rules.extend(toolset_rule(toolsets, policy, warnings).map(|set| keep("toolsets", set)));
    }
    if selections.is_empty() {
        rules.extend(
            toolset_rule(&policy.default_toolsets, policy, warnings).map(|set| keep("toolsets", set)),
        );
    }
    rules.extend(policy.allow.iter().map(|allow| keep("the config's allow", SelectorSet::new(allow))));
    let allows = selections.iter().filter(|selection| !selection.allow.is_empty());
    rules.extend(allows.map(|selection| keep("allow", SelectorSet::new(&selection.allow))));
    let deny = policy.deny.iter().chain(selections.iter().flat_map(|selection| &selection.deny));
    rules.push(GrantRule { name: "deny", set: SelectorSet::new(deny), keeps: false });
    rules
}

/// Applies the rules in their order, and warns of the one that leaves nothing.
pub(super) fn narrow(
    kept: &mut [bool],
    joined: &[Joined<'_>],
    groups: &[&str],
    rules: &[GrantRule<'_>],
    warnings: &mut Vec<Warning>,
) {
    let mut left = kept.len();
    for rule in rules {
        if left == 0 || (!rule.keeps && rule.set.is_empty()) {
            continue;
        }
        for ((kept, (_, _, tool)), group) in kept.iter_mut().zip(joined).zip(groups) {
            *kept = *kept && rule.set.hits(tool, group) == rule.keeps;
        }
        left = kept.iter().filter(|kept| **kept).count();
        if left == 0 {
            let detail = format!("no tool is left after {}", rule.name);
            warnings.push(Warning::new("empty_grant", detail));
        }
    }
}

/// The selectors of named toolsets with all that they include; nothing when they take everything.
fn toolset_rule<'a>(
    names: &'a [String],
    policy: &'a Policy,
    warnings: &mut Vec<Warning>,
) -> Option<SelectorSet<'a>> {
    if names.is_empty() {
        return None;
    }
    let known: HashMap<&str, &Toolset> =
        policy.toolsets.iter().map(|toolset| (toolset.name.as_str(), toolset)).collect();
    let mut set = SelectorSet::default();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut waiting: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    while let Some(name) = waiting.pop() {
        if !seen.insert(name) {
            continue;
        }
        match known.get(name) {
            _ if name == "*" => return None,
            None => {
                let detail = format!("there is no toolset `{name}`; it adds nothing");
                warnings.push(Warning::new("unknown_toolset", detail));
            }
            Some(toolset) => {
                toolset.tools.iter().for_each(|selector| set.add(selector));
                set.groups.extend(toolset.groups.iter().map(String::as_str));
                if set.all || toolset.groups.iter().any(|group| group == "*") {
                    return None;
                }
                waiting.extend(toolset.includes.iter().rev().map(String::as_str));
            }
        }
    }
    Some(set)
}
