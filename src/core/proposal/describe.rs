//! What a group is about, in a line made from its tools' words.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::words::{Term, Words};

/// Fewest and most words or pairs of words in a description, and its longest form, in characters: a listing shows 120.
const LEAST_TOLD: usize = 2;
const MAX_TOLD: usize = 6;
const MAX_CHARS: usize = 80;
/// Tools from which on a group is described: fewer say themselves what they are about.
const LEAST_TOOLS: usize = 4;
/// Longest word that is told, in characters; longer ones are identifiers.
const MAX_WORD_CHARS: usize = 24;

/// A line such as `Issues, pull requests, branches`; nothing where the tools share no words, or are few.
pub(super) fn describe(words: &Words, tools: &[u32], name: &str) -> Option<String> {
    if tools.len() < LEAST_TOOLS {
        return None;
    }
    let mut counts: BTreeMap<u32, (f32, usize)> = BTreeMap::new();
    for (term, weight) in tools.iter().flat_map(|id| words.of_tool(*id)) {
        let count = counts.entry(*term).or_default();
        *count = (count.0 + weight, count.1 + 1);
    }
    let name = name.to_lowercase();
    let fits = |word: &str| (2..=MAX_WORD_CHARS).contains(&word.chars().count()) && !name.contains(word);
    let mut scored: Vec<(f32, &Term)> = counts
        .iter()
        .filter(|(_, (_, count))| *count >= 2)
        .filter_map(|(at, (weight, _))| Some((*weight, words.terms.get(*at as usize)?)))
        .filter(|(_, term)| fits(&term.written))
        .map(|(weight, term)| (weight * term.bits, term))
        .collect();
    scored.sort_by(|a, b| {
        b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal).then_with(|| a.1.stem.cmp(&b.1.stem))
    });

    let mut line = String::new();
    let mut parts = 0;
    for (_, term) in scored {
        if line.split([' ', ',']).any(|told| told == term.written) {
            continue;
        }
        let told = term.told_in(&name);
        if parts == MAX_TOLD || line.chars().count() + told.chars().count() + 2 > MAX_CHARS {
            break;
        }
        if parts > 0 {
            line.push_str(", ");
        }
        line.push_str(told);
        parts += 1;
    }
    // One word more than the name is no description.
    let first = line.chars().next().filter(|_| parts >= LEAST_TOLD)?;
    Some(first.to_uppercase().chain(line.chars().skip(1)).collect())
}
