//! What a ranking is worth: figures of one query from the places of its right tools, and their summaries.
//!
//! Pure arithmetic; knows neither tools nor the service. Every figure is a share (a sum over a weight), so that summaries
//! and resamples of any group of queries are made in one way.

use std::collections::HashSet;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// What one query came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Number of right tools; 0 for a request that no tool serves.
    pub right: usize,
    /// Places, from 1, at which a further right tool stands; ascending.
    pub places: Vec<usize>,
    /// The answer has no match of high or medium confidence.
    pub answered_none: bool,
    /// A right tool among the first five of the ranking is no match; unknown where an endpoint ranks.
    pub lost: Option<bool>,
    /// Tokens of the answer.
    pub tokens: usize,
    /// Microseconds that the answer took.
    pub took_us: u64,
}

/// A part of a figure: summed over queries, `sum / weight` is the figure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Share {
    pub sum: f64,
    /// 0 where the query says nothing about the figure.
    pub weight: f64,
}

impl Share {
    fn of(sum: f64) -> Self {
        Self { sum, weight: 1.0 }
    }

    fn counting(counts: bool, holds: bool) -> Self {
        if counts { Self::of(f64::from(u8::from(holds))) } else { Self::default() }
    }

    /// The figure of several parts; none where nothing counts.
    pub fn total(parts: impl Iterator<Item = Self>) -> Option<f64> {
        let total = parts.fold(Self::default(), |all, part| Self {
            sum: all.sum + part.sum,
            weight: all.weight + part.weight,
        });
        (total.weight > 0.0).then(|| total.sum / total.weight)
    }
}

/// The figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Share of a query's right tools among the first 1, 5 and 10.
    RecallAt1,
    RecallAt5,
    RecallAt10,
    /// Normalised discounted cumulative gain of the first 10, every right tool worth the same.
    NdcgAt10,
    /// One over the place of the first right tool.
    Mrr,
    /// Queries with a right tool among the first 5.
    HitAt5,
    /// Queries with all right tools among the first 10.
    CompleteAt10,
    /// Of the queries that were answered "no match", those that no tool serves.
    NoMatchPrecision,
    /// Of the queries that no tool serves, those that were answered "no match".
    NoMatchRecall,
    /// Queries that a tool serves and that were answered "no match".
    WrongNoMatch,
    /// Queries of which a right tool was lost to the floor.
    LostToFloor,
}

impl Metric {
    pub const ALL: [Self; 11] = [
        Self::RecallAt1,
        Self::RecallAt5,
        Self::RecallAt10,
        Self::NdcgAt10,
        Self::Mrr,
        Self::HitAt5,
        Self::CompleteAt10,
        Self::NoMatchPrecision,
        Self::NoMatchRecall,
        Self::WrongNoMatch,
        Self::LostToFloor,
    ];

    /// The name in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::RecallAt1 => "recall_at_1",
            Self::RecallAt5 => "recall_at_5",
            Self::RecallAt10 => "recall_at_10",
            Self::NdcgAt10 => "ndcg_at_10",
            Self::Mrr => "mrr",
            Self::HitAt5 => "hit_at_5",
            Self::CompleteAt10 => "complete_at_10",
            Self::NoMatchPrecision => "no_match_precision",
            Self::NoMatchRecall => "no_match_recall",
            Self::WrongNoMatch => "wrong_no_match",
            Self::LostToFloor => "lost_to_floor",
        }
    }

    /// The name in the head of a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::RecallAt1 => "R@1",
            Self::RecallAt5 => "R@5",
            Self::RecallAt10 => "R@10",
            Self::NdcgAt10 => "NDCG@10",
            Self::Mrr => "MRR",
            Self::HitAt5 => "Hit@5",
            Self::CompleteAt10 => "all@10",
            Self::NoMatchPrecision => "none P",
            Self::NoMatchRecall => "none R",
            Self::WrongNoMatch => "unsure",
            Self::LostToFloor => "lost",
        }
    }

    /// Whether less is better.
    pub fn is_loss(self) -> bool {
        matches!(self, Self::WrongNoMatch | Self::LostToFloor)
    }

    /// What a query adds to the figure.
    pub fn share(self, outcome: &Outcome) -> Share {
        let served = outcome.right > 0;
        let first = outcome.places.first();
        let value = match self {
            Self::NoMatchPrecision => return Share::counting(outcome.answered_none, !served),
            Self::NoMatchRecall => return Share::counting(!served, outcome.answered_none),
            Self::WrongNoMatch => return Share::counting(served, outcome.answered_none),
            Self::LostToFloor => {
                return Share::counting(served && outcome.lost.is_some(), outcome.lost == Some(true));
            }
            _ if !served => return Share::default(),
            Self::RecallAt1 => outcome.recall(1),
            Self::RecallAt5 => outcome.recall(5),
            Self::RecallAt10 => outcome.recall(10),
            Self::NdcgAt10 => outcome.ndcg(10),
            Self::Mrr => first.map_or(0.0, |place| 1.0 / *place as f64),
            Self::HitAt5 => return Share::counting(true, first.is_some_and(|place| *place <= 5)),
            Self::CompleteAt10 => return Share::counting(true, outcome.within(10) == outcome.right),
        };
        Share::of(value)
    }

    /// The figure of a group of queries; none where it says nothing about them.
    pub fn of(self, outcomes: &[&Outcome]) -> Option<f64> {
        // Where every query is served, the precision of "no match" is 0 whatever the ranking.
        if self == Self::NoMatchPrecision && outcomes.iter().all(|outcome| outcome.right > 0) {
            return None;
        }
        Share::total(outcomes.iter().map(|outcome| self.share(outcome)))
    }
}

impl Outcome {
    fn within(&self, most: usize) -> usize {
        self.places.iter().filter(|place| **place <= most).count()
    }

    fn recall(&self, most: usize) -> f64 {
        self.within(most) as f64 / self.right as f64
    }

    fn ndcg(&self, most: usize) -> f64 {
        let gain = |place: usize| 1.0 / (place as f64 + 1.0).log2();
        let real: f64 = self.places.iter().filter(|place| **place <= most).map(|place| gain(*place)).sum();
        let ideal: f64 = (1..=self.right.min(most)).map(gain).sum();
        real / ideal
    }
}

/// The places, from 1, at which a further right tool stands. Each entry of `ranking` holds the names of the tool at that
/// place, the one that fits best first; a name of `relevant` that was met once is not met again.
pub fn places<'a>(ranking: impl Iterator<Item = [&'a str; 2]>, relevant: &[String]) -> Vec<usize> {
    let mut open: HashSet<&str> = relevant.iter().map(String::as_str).collect();
    let mut places = Vec::new();
    for (place, names) in (1..).zip(ranking) {
        if open.is_empty() {
            break;
        }
        if names.iter().any(|name| open.remove(name)) {
            places.push(place);
        }
    }
    places
}

/// The smallest value that at least this share of the values does not exceed (nearest rank); 0 of no values.
pub fn quantile(values: &[u64], share: f64) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// All figures of a group, in the order of [`Metric::ALL`].
#[derive(Debug, Clone, PartialEq)]
pub struct Figures([Option<f64>; Metric::ALL.len()]);

impl Figures {
    pub fn get(&self, metric: Metric) -> Option<f64> {
        Metric::ALL.iter().zip(self.0).find(|(known, _)| **known == metric).and_then(|(_, figure)| figure)
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (metric, figure) in Metric::ALL.iter().zip(self.0) {
            map.serialize_entry(metric.key(), &figure)?;
        }
        map.end()
    }
}

/// What a group of queries came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub queries: usize,
    /// Of them, those that a tool serves.
    pub served: usize,
    /// Right tools per query that a tool serves.
    pub right_per_query: f64,
    pub figures: Figures,
    /// Tokens of an answer.
    pub tokens_mean: f64,
    pub tokens_p95: u64,
    /// Microseconds of an answer.
    pub took_us_p50: u64,
    pub took_us_p95: u64,
    pub took_us_p99: u64,
}

impl Summary {
    pub fn of(outcomes: &[&Outcome]) -> Self {
        let served = outcomes.iter().filter(|outcome| outcome.right > 0).count();
        let right: usize = outcomes.iter().map(|outcome| outcome.right).sum();
        let tokens: Vec<u64> = outcomes.iter().map(|outcome| outcome.tokens as u64).collect();
        let took: Vec<u64> = outcomes.iter().map(|outcome| outcome.took_us).collect();
        Self {
            queries: outcomes.len(),
            served,
            right_per_query: right as f64 / served.max(1) as f64,
            figures: Figures(Metric::ALL.map(|metric| metric.of(outcomes))),
            tokens_mean: tokens.iter().sum::<u64>() as f64 / tokens.len().max(1) as f64,
            tokens_p95: quantile(&tokens, 0.95),
            took_us_p50: quantile(&took, 0.5),
            took_us_p95: quantile(&took, 0.95),
            took_us_p99: quantile(&took, 0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(right: usize, places: &[usize]) -> Outcome {
        Outcome {
            right,
            places: places.to_vec(),
            answered_none: false,
            lost: Some(false),
            tokens: 100,
            took_us: 10,
        }
    }

    #[track_caller]
    fn is(metric: Metric, outcomes: &[Outcome], wanted: Option<f64>) {
        let got = metric.of(&outcomes.iter().collect::<Vec<_>>());
        let same = match (got, wanted) {
            (Some(got), Some(wanted)) => (got - wanted).abs() < 1e-9,
            (got, wanted) => got == wanted,
        };
        assert!(same, "{metric:?} is {got:?}, not {wanted:?}");
    }

    #[test]
    fn figures_are_those_of_the_hand() {
        // One of one at the first place; two of three at the second and seventh; none of two.
        let three = [served(1, &[1]), served(3, &[2, 7]), served(2, &[])];
        is(Metric::RecallAt1, &three, Some(1.0 / 3.0));
        is(Metric::RecallAt5, &three, Some((1.0 + 1.0 / 3.0) / 3.0));
        is(Metric::RecallAt10, &three, Some((1.0 + 2.0 / 3.0) / 3.0));
        is(Metric::Mrr, &three, Some((1.0 + 0.5) / 3.0));
        is(Metric::HitAt5, &three, Some(2.0 / 3.0));
        is(Metric::CompleteAt10, &three, Some(1.0 / 3.0));
        // log2(3) and log2(8) below the gains, 1 + 1/log2(3) + 1/2 the best there is for three right tools.
        let second = (1.0 / 3f64.log2() + 1.0 / 3.0) / (1.0 + 1.0 / 3f64.log2() + 0.5);
        is(Metric::NdcgAt10, &three, Some((1.0 + second) / 3.0));
        is(Metric::NdcgAt10, &[served(20, &(1..=10).collect::<Vec<_>>())], Some(1.0));
        is(Metric::RecallAt10, &[served(1, &[11])], Some(0.0));
        is(Metric::Mrr, &[served(1, &[20])], Some(0.05));
    }

    #[test]
    fn requests_that_nothing_serves_count_for_no_match_alone() {
        let none = |answered_none| Outcome { answered_none, ..served(0, &[]) };
        let silent = Outcome { answered_none: true, ..served(1, &[]) };
        let all = [none(true), none(true), none(false), silent, served(1, &[1])];
        is(Metric::NoMatchRecall, &all, Some(2.0 / 3.0));
        is(Metric::NoMatchPrecision, &all, Some(2.0 / 3.0));
        is(Metric::RecallAt5, &all, Some(0.5));
        is(Metric::RecallAt5, &all[..3], None);
        is(Metric::NoMatchRecall, &all[3..], None);
        is(Metric::NoMatchPrecision, &all[3..], None);
        is(Metric::NoMatchPrecision, &all[2..3], None);
        is(Metric::WrongNoMatch, &all, Some(0.5));
    }

    #[test]
    fn the_floor_is_counted_where_it_is_known() {
        let lost = |lost| Outcome { lost, ..served(1, &[]) };
        is(Metric::LostToFloor, &[lost(Some(true)), lost(Some(false)), lost(None)], Some(0.5));
        is(Metric::LostToFloor, &[lost(None)], None);
    }

    #[test]
    fn a_name_is_met_once_by_either_of_its_names() {
        let ranking = [["a__send", "send"], ["b__send", "send"], ["list", "list"], ["c__send", "send"]];
        let met = |relevant: &[&str]| {
            let relevant: Vec<String> = relevant.iter().map(|name| (*name).to_owned()).collect();
            places(ranking.into_iter(), &relevant)
        };
        assert_eq!(met(&["send"]), [1]);
        assert_eq!(met(&["b__send", "list"]), [2, 3]);
        assert_eq!(met(&["a__send", "send"]), [1, 2]);
        assert_eq!(met(&["gone"]), [0; 0]);
        assert_eq!(met(&["list", "list"]), [3]);
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!([0.5, 0.95, 0.99].map(|share| quantile(&hundred, share)), [50, 95, 99]);
        assert_eq!(quantile(&[7], 0.5), 7);
        assert_eq!(quantile(&[1, 9], 0.5), 1);
        assert_eq!(quantile(&[], 0.5), 0);
    }

    #[test]
    fn a_summary_counts_what_it_sums_up() {
        let (one, two) = (served(1, &[1]), Outcome { tokens: 300, took_us: 30, ..served(3, &[]) });
        let none = served(0, &[]);
        let summary = Summary::of(&[&one, &two, &none]);
        assert_eq!((summary.queries, summary.served, summary.tokens_p95), (3, 2, 300));
        assert_eq!((summary.took_us_p50, summary.took_us_p99), (10, 30));
        assert!((summary.right_per_query - 2.0).abs() < 1e-9);
        assert_eq!(summary.figures.get(Metric::HitAt5), Some(0.5));
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["figures"]["hit_at_5"], 0.5);
        assert_eq!(json["figures"]["no_match_precision"], serde_json::Value::Null);
    }
}
