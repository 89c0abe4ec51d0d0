//! How a group that a listing cannot show with its descriptions could be parted, so that each part keeps more of its own.

use std::collections::HashSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::describe::describe;
use super::groups::{Planned, free_name};
use super::topics::topics;
use super::words::Words;
use crate::core::grant::{View, ViewTool};
use crate::core::target::Target;

/// Fewest tools of a group that is parted, most parts beside the rest, and most groups for which that is said.
const LEAST_TOOLS: usize = 12;
const MAX_PARTS: usize = 5;
const MAX_SPLITS: usize = 20;
/// Fewest tools that are left apart as the rest.
const LEAST_REST: usize = 3;
/// Share that the largest part may have of the group, in percent: a split that leaves it whole is none.
const MAX_PART_PCT: usize = 85;

/// A way to part a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProposedSplit {
    /// What it is good for, in a sentence.
    pub reason: String,
    pub parts: Vec<SplitPart>,
}

/// A part of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SplitPart {
    /// A name that no group has yet; the rest, where there is one, keeps the group's own.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub description: Option<String>,
    /// The word that the tools share; absent for the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub word: Option<String>,
    /// Stored names.
    pub tools: Vec<String>,
    /// With their schemas.
    pub tokens: usize,
}

/// Splits by the places of the groups; `cut` are those that are not shown in full, with why that matters.
pub(super) fn propose(
    view: &View,
    words: &Words,
    target: Target,
    groups: &[Planned],
    cut: &[(usize, String)],
) -> Vec<(usize, ProposedSplit)> {
    let mut taken: HashSet<String> = groups.iter().map(|group| group.name.to_lowercase()).collect();
    let size = |at: usize| groups.get(at).map_or(0, |group| group.tools.len());
    let mut largest: Vec<&(usize, String)> = cut.iter().filter(|(at, _)| size(*at) >= LEAST_TOOLS).collect();
    largest.sort_by_key(|(at, _)| (std::cmp::Reverse(size(*at)), *at));
    let mut splits = Vec::new();
    for (at, reason) in largest.into_iter().take(MAX_SPLITS) {
        let Some(group) = groups.get(*at) else { continue };
        if let Some(parts) = parts(view, words, target, group, &mut taken) {
            splits.push((*at, ProposedSplit { reason: reason.clone(), parts }));
        }
    }
    splits
}

fn parts(
    view: &View,
    words: &Words,
    target: Target,
    group: &Planned,
    taken: &mut HashSet<String>,
) -> Option<Vec<SplitPart>> {
    let own = group.name.to_lowercase();
    let all = group.tools.len();
    // The group's own words, and those that nearly all of its tools have, part nothing.
    let mut counts = vec![0_usize; words.terms.len()];
    group.tools.iter().flat_map(|id| words.of_tool(*id)).for_each(|(term, _)| counts[*term as usize] += 1);
    let without: Vec<u32> = (0_u32..)
        .zip(&words.terms)
        .zip(&counts)
        .filter(|((_, term), count)| **count > 0 && (own.contains(&term.written) || **count * 10 >= all * 6))
        .map(|((at, _), _)| at)
        .collect();
    let mut found = topics(words, &group.tools, (all / 10).max(3), &without);
    found.truncate(MAX_PARTS);
    let gone: HashSet<u32> = found.iter().flat_map(|topic| topic.tools.iter().copied()).collect();
    let rest: Vec<u32> = group.tools.iter().copied().filter(|id| !gone.contains(id)).collect();
    let largest = found.iter().map(|topic| topic.tools.len()).chain([rest.len()]).max().unwrap_or_default();
    let several = found.len() + usize::from(rest.len() >= LEAST_REST);
    if several < 2 || largest * 100 > all * MAX_PART_PCT {
        return None;
    }
    let part = |name: String, word: Option<String>, ids: &[u32]| {
        let tools: Vec<&ViewTool> = ids.iter().filter_map(|id| view.get(*id)).collect();
        SplitPart {
            description: describe(words, ids, &name),
            name,
            word,
            tools: tools.iter().map(|tool| tool.stored_name().to_owned()).collect(),
            tokens: tools.iter().map(|tool| tool.for_target(target).tokens).sum(),
        }
    };
    let mut found = found.into_iter();
    let mut rest = rest;
    if (1..LEAST_REST).contains(&rest.len()) {
        // A handful apart says nothing: it stays with the largest part, under the group's own name.
        rest.extend(found.next().into_iter().flat_map(|topic| topic.tools));
        rest.sort_unstable();
    }
    let mut parts = Vec::with_capacity(found.len() + 1);
    if !rest.is_empty() {
        parts.push(part(group.name.clone(), None, &rest));
    }
    for topic in found {
        let word = words
            .terms
            .get(topic.term as usize)
            .map(|term| term.told_in(&own).to_owned())
            .unwrap_or_default();
        let name = free_name(&format!("{}-{}", group.name, word.replace(' ', "-")), taken);
        parts.push(part(name, Some(word), &topic.tools));
    }
    Some(parts)
}
