//! From an endpoint's ranking to matches: its order, joined with that of the words, and how sure it makes a match.

use std::collections::HashMap;

use super::lexical::Outcome;
use super::matches::{Confidence, Evidence, Found, MAX_NEAREST, Scored, by_keywords, confidence, rounded};

/// What a deviation of the endpoint's scores counts for beside one of the keyword scores. Chosen with all-MiniLM-L6-v2 as the
/// endpoint: at 1 the sets where the model is much better gain a little more, but one where it is much worse loses .015.
const ENDPOINT_SHARE: f64 = 0.5;
/// By so much the endpoint's first tool must lead to be more than a guess by itself. Weak models hardly ever tell so much: with half of
/// it, three in five requests that nothing serves got a medium match.
const CLEAR_MARGIN: f64 = 0.3;
/// The endpoint's first tool is of medium confidence with so much less evidence from its words.
const FIRST_BY_ENDPOINT: f32 = 0.3;

/// A tool with the score that an endpoint gave it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Endorsed {
    pub id: u32,
    /// 0 to 1.
    pub score: f64,
    /// As the endpoint said it.
    pub raw: f64,
}

/// The matches of an endpoint's ranking, best first. Tools that the query names keep their place in front. Scores of unknown
/// models are not comparable, so confidence comes from the words, with a little trust in the endpoint's first tool, and more
/// where that leads by far.
pub fn by_endpoint(ranked: &[Endorsed], words: &Outcome, rules: &EndpointRules) -> Found {
    let EndpointRules { min_score, limit, fuse } = *rules;
    let about = Found::about(words);
    if about.asks_for_all {
        return about;
    }
    let kept = |tool: &&Endorsed| min_score.is_none_or(|least| tool.score >= least);
    let all = ranked;
    let mut ranked: Vec<Endorsed> = all.iter().filter(kept).copied().collect();
    if fuse {
        join(&mut ranked, words);
    }
    let ranked = ranked.as_slice();
    // A strong model tells the one tool from all others, whatever words they share.
    let leader = match all {
        [first, second, ..] if first.score - second.score >= CLEAR_MARGIN => Some(first.id),
        _ => None,
    };
    let hit_of = |id: u32| words.hits.iter().find(|hit| hit.candidate == id);
    let scored = |at: usize, tool: Endorsed| {
        let hit = hit_of(tool.id);
        let by_words = hit.map_or(Confidence::Low, |hit| confidence(hit, words));
        let nearly = hit.is_some_and(|hit| {
            let evidence = Evidence::of(hit, words);
            evidence.total >= evidence.medium - FIRST_BY_ENDPOINT
        });
        let by_order = at == 0 && (nearly || leader == Some(tool.id));
        let confidence = by_words.max(if by_order { Confidence::Medium } else { Confidence::Low });
        Scored { id: tool.id, score: rounded(tool.score), confidence, raw: Some(tool.raw) }
    };
    let of_name = |id: u32| {
        let ranked = ranked.iter().find(|tool| tool.id == id).copied();
        ranked.map_or_else(
            || Scored { raw: None, ..scored(0, Endorsed { id, score: 0.0, raw: 0.0 }) },
            |tool| scored(0, tool),
        )
    };
    let named: Vec<u32> =
        words.hits.iter().filter(|hit| hit.exact || hit.whole).map(|hit| hit.candidate).collect();
    let rest = ranked.iter().enumerate().filter(|(_, tool)| !named.contains(&tool.id));
    let mut matches: Vec<Scored> = named.iter().map(|id| of_name(*id)).collect();
    let room = limit.saturating_sub(matches.len());
    matches.extend(rest.map(|(at, tool)| scored(at, *tool)).take(room));
    // An endpoint that answered for fewer tools than it was asked about leaves the rest to the words, but where a least score is set.
    let unranked =
        |scored: &Scored| !all.iter().any(|tool| tool.id == scored.id) && !named.contains(&scored.id);
    if min_score.is_none() {
        let by_words = by_keywords(words).matches.into_iter().filter(unranked);
        let room = limit.saturating_sub(matches.len());
        matches.extend(by_words.map(|found| Scored { score: 0.0, ..found }).take(room));
    }
    if about.unmet.is_some() {
        matches.clear();
    }
    let nearest = if matches.is_empty() {
        let weak = all.iter().take(MAX_NEAREST);
        weak.map(|tool| Scored { confidence: Confidence::Low, ..scored(1, *tool) }).collect()
    } else {
        Vec::new()
    };
    Found { matches, nearest, ..about }
}

/// How an endpoint's ranking becomes matches.
#[derive(Debug, Clone, Copy)]
pub struct EndpointRules {
    /// Tools that score lower are left out.
    pub min_score: Option<f64>,
    /// Most matches.
    pub limit: usize,
    /// Whether the keyword order counts as well.
    pub fuse: bool,
}

/// Orders tools by both rankings: each score in deviations from its mean over these tools, summed. The sum is told in 0 to 1.
fn join(ranked: &mut [Endorsed], words: &Outcome) {
    let of_words: HashMap<u32, f64> =
        words.hits.iter().map(|hit| (hit.candidate, f64::from(hit.score))).collect();
    let by_words: Vec<f64> =
        ranked.iter().map(|tool| of_words.get(&tool.id).copied().unwrap_or(0.0)).collect();
    let by_endpoint: Vec<f64> = ranked.iter().map(|tool| tool.score).collect();
    let (of_words, of_endpoint) = (Deviations::of(&by_words), Deviations::of(&by_endpoint));
    let joined: Vec<f64> = by_words
        .iter()
        .zip(&by_endpoint)
        .map(|(words, endpoint)| of_words.z(*words) + ENDPOINT_SHARE * of_endpoint.z(*endpoint))
        .collect();
    let least = joined.iter().copied().fold(f64::INFINITY, f64::min);
    let range = joined.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
    for (tool, sum) in ranked.iter_mut().zip(joined) {
        tool.score = if range > 0.0 { (sum - least) / range } else { tool.score };
    }
    // Stable: where both say the same, the endpoint's order stays.
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
}

/// Mean and deviation of some scores.
#[derive(Debug, Clone, Copy)]
struct Deviations {
    mean: f64,
    deviation: f64,
}

impl Deviations {
    fn of(scores: &[f64]) -> Self {
        let count = scores.len().max(1) as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / count;
        Self { mean, deviation: variance.sqrt() }
    }

    fn z(self, score: f64) -> f64 {
        if self.deviation > 0.0 { (score - self.mean) / self.deviation } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lexical::Hit;

    fn hit(candidate: u32, coverage: f32) -> Hit {
        Hit {
            candidate,
            score: coverage * 100.0,
            words: coverage * 100.0,
            coverage,
            name_coverage: coverage / 2.0,
            exact: false,
            whole: false,
            other_service: false,
            other_action: false,
            alike: None,
        }
    }

    #[test]
    fn a_named_tool_comes_first_whatever_the_endpoint_says() {
        let named = Hit { exact: true, ..hit(7, 0.3) };
        let words = Outcome {
            hits: vec![named, hit(1, 0.5)],
            terms: 2,
            rarest: 12.0,
            tools: 1_000,
            ..Outcome::default()
        };
        let endorsed = |id, score| Endorsed { id, score, raw: score };
        let found = by_endpoint(
            &[endorsed(1, 0.9), endorsed(2, 0.8), endorsed(7, 0.1)],
            &words,
            &EndpointRules { min_score: None, limit: 2, fuse: false },
        );
        assert_eq!(found.matches.iter().map(|scored| scored.id).collect::<Vec<_>>(), [7, 1]);
        let floor = by_endpoint(
            &[endorsed(1, 0.2)],
            &Outcome::default(),
            &EndpointRules { min_score: Some(0.5), limit: 5, fuse: true },
        );
        assert_eq!((floor.matches.len(), floor.nearest.len()), (0, 1));
    }
}
