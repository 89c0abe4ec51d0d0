//! From ranked hits to matches: how sure each is, what is too weak to be shown as one, and in which order they are warmed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::lexical::{Hit, Outcome, Unmet};

/// Matches that are shown as possibly unrelated when nothing fits.
pub const MAX_NEAREST: usize = 3;

/// Evidence for a match is `1.1 ln(1 + score) + 1.4 sqrt(coverage) + 0.7 similarity`, less what speaks against it, with the score of the
/// words measured in the rarity of a word that one tool holds, so that catalogs of ten and of ten thousand tools compare. The form and its
/// weights come from a logistic fit on one half of the development sets (right tools against the best of requests that no tool
/// serves, and of requests whose servers were hidden); the other half confirmed it. Margins between the first tools were tried
/// and tell nothing more.
const SCORE_WEIGHT: f32 = 1.1;
const COVERAGE_WEIGHT: f32 = 1.4;
const LIKENESS_WEIGHT: f32 = 0.7;
/// Likeness of a right tool, where meaning was not compared.
const USUAL_LIKENESS: f32 = 0.45;
/// That rarity in a catalog of about a thousand tools.
const COMMON_RAREST: f32 = 12.0;
/// The tool is of another service than the one that the query names, or does nothing that the query asks to do.
const OTHER_SERVICE: f32 = 2.3;
const OTHER_ACTION: f32 = 0.9;
/// In a query of so few words each is meant.
const PLAIN_QUERY_TERMS: usize = 4;
/// Longer queries name services and actions in passing.
const SHORT_QUERY_TERMS: usize = 12;
/// Below this a tool is no match: fewer than one right tool in twenty is lost on every set, one in a hundred on that of agents' queries.
const FLOOR: f32 = 2.0;
/// Six in seven requests that nothing serves have no tool above this.
const MEDIUM: f32 = 4.9;
/// Above this the first match is right nineteen times in twenty.
const HIGH: f32 = 6.2;
/// Tools of a catalog for which these hold, and how much lower they are in a catalog of one.
const USUAL_TOOLS: f32 = 300.0;
const SMALL_FLOOR: f32 = 0.3;
const SMALL_SURE: f32 = 0.7;
/// A name that holds all of the query, or nearly all of several words, is a match whatever they weigh.
const ALL_OF_IT: f32 = 0.999;
const NEARLY_ALL: f32 = 0.85;

/// How sure a match is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// A tool of the view with its place in an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub id: u32,
    pub score: f64,
    pub confidence: Confidence,
    /// What the endpoint said, where one ranked.
    pub raw: Option<f64>,
}

/// What one query found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Best first.
    pub matches: Vec<Scored>,
    /// Tools below the floor, when there are no matches.
    pub nearest: Vec<Scored>,
    /// Content words of the query; 0 means that it says nothing to look for.
    pub terms: usize,
    /// What it demands and no tool has; there are no matches then.
    pub unmet: Option<Unmet>,
    /// It asks what tools there are: the answer is the groups, and neither matches nor nearest tools.
    pub asks_for_all: bool,
}

impl Found {
    /// Whether something was found that is more than a guess.
    pub fn is_sure(&self) -> bool {
        self.matches.iter().any(|scored| scored.confidence > Confidence::Low)
    }

    /// What an outcome says about its query; an empty answer where that decides it.
    pub(super) fn about(words: &Outcome) -> Self {
        Self {
            terms: words.terms,
            unmet: words.unmet.clone(),
            asks_for_all: words.asks_for_all,
            ..Self::default()
        }
    }
}

/// What a confidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Evidence {
    /// What the words' score, the coverage and the similarity say for the tool.
    pub words: f32,
    pub coverage: f32,
    pub similarity: f32,
    /// What is taken off because the tool is of another service than the query names, and because it does nothing that the
    /// query asks to do.
    pub other_service: f32,
    pub other_action: f32,
    /// All of it.
    pub total: f32,
    /// From here on a tool is shown as a match, is of medium and of high confidence, in a catalog of so many tools. A name that
    /// holds all of the query is a match whatever the total.
    pub floor: f32,
    pub medium: f32,
    pub high: f32,
}

impl Evidence {
    /// How much speaks for a hit of an outcome.
    pub fn of(hit: &Hit, outcome: &Outcome) -> Self {
        let score = hit.words / outcome.rarest.max(1.0) * COMMON_RAREST;
        let against =
            |holds: bool, weight: f32| if holds && outcome.terms <= SHORT_QUERY_TERMS { weight } else { 0.0 };
        let small = smallness(outcome.tools);
        let evidence = Self {
            words: SCORE_WEIGHT * score.ln_1p(),
            coverage: COVERAGE_WEIGHT * hit.coverage.sqrt(),
            similarity: LIKENESS_WEIGHT * hit.alike.unwrap_or(USUAL_LIKENESS),
            other_service: against(hit.other_service, OTHER_SERVICE),
            other_action: against(hit.other_action, OTHER_ACTION),
            total: 0.0,
            floor: FLOOR - SMALL_FLOOR * small,
            medium: MEDIUM - SMALL_SURE * small,
            high: HIGH - SMALL_SURE * small,
        };
        let pro = evidence.words + evidence.coverage + evidence.similarity;
        Self { total: pro - evidence.other_service - evidence.other_action, ..evidence }
    }
}

/// 1 for a catalog of one tool, 0 from [`USUAL_TOOLS`] on: the fewer tools, the less likely the best of them has the words
/// of a query by chance.
fn smallness(tools: usize) -> f32 {
    (1.0 - (tools.max(1) as f32).ln() / USUAL_TOOLS.ln()).max(0.0)
}

pub(super) fn confidence(hit: &Hit, outcome: &Outcome) -> Confidence {
    let evidence = Evidence::of(hit, outcome);
    // Names of function words alone, and short requests whose action the tool has not, are no sure thing whatever else they share.
    let doubtful = outcome.terms == 0 || (hit.other_action && outcome.terms <= PLAIN_QUERY_TERMS);
    if doubtful && !hit.exact && !hit.whole {
        return Confidence::Low;
    }
    let several = outcome.terms >= 2;
    let all_of_it = hit.name_coverage >= ALL_OF_IT;
    let nearly_all = several && hit.name_coverage >= NEARLY_ALL && !hit.other_service && !hit.other_action;
    if hit.exact || hit.whole || evidence.total >= evidence.high || (all_of_it && several) {
        Confidence::High
    } else if evidence.total >= evidence.medium || all_of_it || nearly_all {
        Confidence::Medium
    } else {
        Confidence::Low
    }
}

/// Scores are told to four digits, so that the same state gives the same bytes on every machine.
pub(super) fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}

/// The matches of a keyword ranking.
pub fn by_keywords(outcome: &Outcome) -> Found {
    let about = Found::about(outcome);
    if about.asks_for_all {
        return about;
    }
    let scored = |hit: &Hit| Scored {
        id: hit.candidate,
        score: rounded(f64::from(hit.score)),
        confidence: confidence(hit, outcome),
        raw: None,
    };
    let fits = |hit: &&Hit| {
        let sure = confidence(hit, outcome) > Confidence::Low;
        let evidence = Evidence::of(hit, outcome);
        about.unmet.is_none() && (sure || evidence.total >= evidence.floor)
    };
    let mut matches: Vec<Scored> = outcome.hits.iter().filter(fits).map(scored).collect();
    // What stands before a sure match is as sure.
    let mut surest = Confidence::Low;
    for scored in matches.iter_mut().rev() {
        surest = surest.max(scored.confidence);
        scored.confidence = surest;
    }
    let nearest = if matches.is_empty() {
        let nearest = outcome.hits.iter().take(MAX_NEAREST).map(scored);
        nearest.map(|scored| Scored { confidence: Confidence::Low, ..scored }).collect()
    } else {
        Vec::new()
    };
    Found { matches, nearest, ..about }
}

/// The order in which the matches of several queries are warmed: the best of each that may be warmed, the second of
/// each, and so on; sure enough ones only, each tool once.
pub fn warming_order(found: &[Found], may_warm: impl Fn(u32) -> bool) -> Vec<u32> {
    let may_warm = &may_warm;
    let warmable = |found: &Found| -> Vec<u32> {
        let sure = found.matches.iter().filter(|scored| scored.confidence > Confidence::Low);
        sure.map(|scored| scored.id).filter(|id| may_warm(*id)).collect()
    };
    in_turn(&found.iter().map(warmable).collect::<Vec<_>>())
}

/// All matches of several queries, the best of each first, each tool once.
pub fn found_order(found: &[Found]) -> Vec<u32> {
    let ids = |found: &Found| found.matches.iter().map(|scored| scored.id).collect();
    in_turn(&found.iter().map(ids).collect::<Vec<Vec<u32>>>())
}

/// The lists in turn by rank, each number once.
fn in_turn(lists: &[Vec<u32>]) -> Vec<u32> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut order = Vec::new();
    for rank in 0..longest {
        for id in lists.iter().filter_map(|list| list.get(rank)) {
            if !order.contains(id) {
                order.push(*id);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn weak_hits_are_no_matches_and_are_not_lost() {
        let outcome = Outcome {
            hits: vec![hit(3, 0.02), hit(1, 0.01)],
            terms: 3,
            rarest: 12.0,
            tools: 1_000,
            ..Outcome::default()
        };
        let found = by_keywords(&outcome);
        assert!(found.matches.is_empty());
        assert_eq!(found.nearest.iter().map(|scored| scored.id).collect::<Vec<_>>(), [3, 1]);
        let strong = by_keywords(&Outcome {
            hits: vec![hit(3, 0.9), hit(1, 0.4), hit(2, 0.2)],
            terms: 3,
            rarest: 12.0,
            tools: 1_000,
            ..Outcome::default()
        });
        let sure: Vec<Confidence> = strong.matches.iter().map(|scored| scored.confidence).collect();
        assert_eq!(sure, [Confidence::High, Confidence::Medium, Confidence::Low]);
        assert!(strong.nearest.is_empty());
    }

    #[test]
    fn a_tool_of_another_service_or_action_is_less_sure() {
        let sure = |hit: Hit, terms: usize| {
            by_keywords(&Outcome { hits: vec![hit], terms, rarest: 12.0, tools: 1_000, ..Outcome::default() })
                .matches[0]
                .confidence
        };
        assert_eq!(sure(hit(1, 0.5), 3), Confidence::Medium);
        assert_eq!(sure(Hit { other_service: true, ..hit(1, 0.5) }, 3), Confidence::Low);
        assert_eq!(sure(Hit { other_action: true, ..hit(1, 0.5) }, 3), Confidence::Low);
        // A long text names services in passing; a tool's own name settles it.
        assert_eq!(sure(Hit { other_service: true, ..hit(1, 0.5) }, 30), Confidence::Medium);
        assert_eq!(sure(Hit { other_service: true, exact: true, ..hit(1, 0.5) }, 3), Confidence::High);
        assert_eq!(sure(Hit { name_coverage: 1.0, ..hit(1, 0.1) }, 1), Confidence::Medium);
    }

    #[test]
    fn warming_goes_round_the_queries() {
        let found = |ids: &[u32]| Found {
            matches: ids
                .iter()
                .map(|id| Scored { id: *id, score: 1.0, confidence: Confidence::High, raw: None })
                .collect(),
            ..Found::default()
        };
        assert_eq!(warming_order(&[found(&[1, 2, 3]), found(&[4, 1])], |id| id != 3), [1, 4, 2]);
    }
}
