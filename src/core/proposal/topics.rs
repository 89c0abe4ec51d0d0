//! Tools by the words that they share: each goes to the one word that says most about it among those that enough others have.
//!
//! Bounded: a fixed number of rounds, each linear in the words of the tools. Ties go to the word that sorts first.

use super::words::Words;

/// Rounds in which words that gather too few tools give them up.
const ROUNDS: usize = 12;

/// A word with the tools that it gathers.
#[derive(Debug)]
pub(super) struct Topic {
    pub term: u32,
    /// Ids, ascending.
    pub tools: Vec<u32>,
}

/// Fewest tools of a topic, by how many there are to sort: a few groups help a model, hundreds do not.
pub(super) fn least_tools(tools: usize) -> usize {
    (tools / 60).clamp(3, 12)
}

/// Sorts tools by topic, those with most tools first; a tool that shares no word with enough others is in none. Words of
/// `without` gather nothing.
pub(super) fn topics(words: &Words, tools: &[u32], least: usize, without: &[u32]) -> Vec<Topic> {
    let mut support = vec![0.0_f32; words.terms.len()];
    for (term, weight) in tools.iter().flat_map(|id| words.of_tool(*id)) {
        support[*term as usize] += weight;
    }
    let enough = (tools.len() as f32 / 25.0).clamp(10.0, 100.0).ln_1p();
    let value: Vec<f32> = (0_u32..)
        .zip(&support)
        .map(|(term, support)| {
            let common = (support.ln_1p() / enough).min(1.0);
            words.bits(term) * common
        })
        .collect();
    let mut alive: Vec<bool> = support.iter().map(|support| *support >= least as f32 * 0.4).collect();
    without.iter().for_each(|term| alive[*term as usize] = false);

    let mut chosen: Vec<Option<u32>> = vec![None; tools.len()];
    for round in 0..=ROUNDS {
        let mut gathered = vec![0_usize; alive.len()];
        for (chosen, id) in chosen.iter_mut().zip(tools) {
            *chosen = best(words, *id, &value, &alive);
            chosen.iter().for_each(|term| gathered[*term as usize] += 1);
        }
        let mut small: Vec<u32> = (0_u32..)
            .zip(&gathered)
            .filter(|(_, count)| (1..least).contains(*count))
            .map(|(term, _)| term)
            .collect();
        if small.is_empty() {
            break;
        }
        // The smallest half first: what it lets go may make the others large enough.
        let key = |term: &u32| (gathered[*term as usize], words.terms[*term as usize].stem.as_str());
        small.sort_by(|a, b| key(a).cmp(&key(b)));
        let going = if round + 1 >= ROUNDS { small.len() } else { small.len().div_ceil(2) };
        small.iter().take(going).for_each(|term| alive[*term as usize] = false);
    }
    gather(words, tools, &chosen, least)
}

fn best(words: &Words, id: u32, value: &[f32], alive: &[bool]) -> Option<u32> {
    let mut best: Option<(f32, u32)> = None;
    for (term, weight) in words.of_tool(id).iter().filter(|(term, _)| alive[*term as usize]) {
        let score = weight * value[*term as usize];
        let wins = best.is_none_or(|(known, of)| {
            let stem = |term: u32| words.terms[term as usize].stem.as_str();
            score > known || (score == known && stem(*term) < stem(of))
        });
        if wins {
            best = Some((score, *term));
        }
    }
    best.map(|(_, term)| term)
}

fn gather(words: &Words, tools: &[u32], chosen: &[Option<u32>], least: usize) -> Vec<Topic> {
    let mut pairs: Vec<(u32, u32)> =
        chosen.iter().zip(tools).filter_map(|(term, id)| Some(((*term)?, *id))).collect();
    pairs.sort_unstable();
    let runs = pairs.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() >= least);
    let mut topics: Vec<Topic> =
        runs.map(|run| Topic { term: run[0].0, tools: run.iter().map(|(_, id)| *id).collect() }).collect();
    let stem = |topic: &Topic| words.terms[topic.term as usize].stem.clone();
    topics.sort_by_cached_key(|topic| (std::cmp::Reverse(topic.tools.len()), stem(topic)));
    topics
}
