//! How documents are cut into requests, and how the answers become one ranking.
//!
//! Pure functions: the limits come from `providers`, the rows from `parse`.

use std::ops::Range;

use super::parse::Row;
use super::providers::Limits;
use super::request::Ranked;
use crate::core::policy::Dialect;

/// A guess that errs to the high side for prose: a token for three characters, and one for each CJK character.
pub(super) fn tokens(text: &str) -> usize {
    let (mut chars, mut cjk) = (0, 0);
    for char in text.chars() {
        chars += 1;
        cjk += usize::from(is_cjk(char));
    }
    (chars / 3).max(cjk)
}

fn is_cjk(char: char) -> bool {
    matches!(u32::from(char), 0x1100..=0x11ff | 0x2e80..=0xa4cf | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0xff00..=0xffef | 0x2_0000..=0x3_ffff)
}

/// Runs of documents that fit into a request each, as even in number as may be, so that none waits for a long one.
/// A document that breaks the token limit by itself is sent alone: the endpoint clips it or says so.
pub(super) fn split(query: &str, documents: &[&str], limits: Limits) -> Vec<Range<usize>> {
    let most = limits.documents.max(1);
    let even = documents.len().div_ceil(documents.len().div_ceil(most).max(1)).max(1);
    let (query_tokens, counts) = match limits.tokens {
        usize::MAX => (0, vec![0; documents.len()]),
        _ => (tokens(query), documents.iter().map(|text| tokens(text)).collect()),
    };
    let mut runs = Vec::new();
    let (mut start, mut sum) = (0, 0_usize);
    for (at, count) in counts.into_iter().enumerate() {
        // The query is counted once for each document.
        let count = query_tokens + count;
        if at > start && (at - start == even || sum + count > limits.tokens) {
            runs.push(start..at);
            (start, sum) = (at, 0);
        }
        sum += count;
    }
    if start < documents.len() {
        runs.push(start..documents.len());
    }
    runs
}

/// What raw scores are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Unknown,
    /// -1 to 1; less than nothing is nothing.
    Cosine,
}

/// The scale of a dialect's scores.
pub(super) fn scale(dialect: Dialect) -> Scale {
    if dialect == Dialect::Openai { Scale::Cosine } else { Scale::Unknown }
}

/// One ranking of the answers to all requests, in the order of the documents, whose rows name documents of the whole.
///
/// Scores of a scale that is not known are made comparable to 0 to 1 once: as they are when all are inside it, otherwise all through
/// the logistic function, which keeps the order. It is decided over all rows, because a request whose logits happen to lie
/// between 0 and 1 would mix scales otherwise.
pub(super) fn merge(answers: Vec<Vec<Row>>, top_n: usize, scale: Scale) -> Vec<Ranked> {
    let is_one = answers.len() == 1;
    let mut rows: Vec<Row> = answers.into_iter().flatten().collect();
    if !is_one {
        // Stable: equal scores stay in the order of the documents' requests, then of the provider.
        rows.sort_by(|a, b| b.raw.total_cmp(&a.raw));
    }
    let is_scaled = rows.iter().all(|row| (0.0..=1.0).contains(&row.raw));
    let score = |raw: f64| match scale {
        Scale::Cosine => raw.max(0.0),
        Scale::Unknown if is_scaled => raw,
        Scale::Unknown => 1.0 / (1.0 + (-raw).exp()),
    };
    rows.truncate(top_n);
    rows.into_iter().map(|Row { index, raw }| Ranked { index, score: score(raw), raw }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(documents: usize, tokens: usize) -> Limits {
        Limits { documents, tokens, query_chars: usize::MAX }
    }

    #[test]
    fn runs_are_even() {
        let documents = vec!["word"; 200];
        let sizes = |most| {
            split("q", &documents, limits(most, usize::MAX)).iter().map(Range::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(1_000), [200]);
        assert_eq!(sizes(128), [100, 100]);
        assert_eq!(sizes(64), [50, 50, 50, 50]);
        assert_eq!(sizes(32), [29, 29, 29, 29, 29, 29, 26]);
        assert!(split("q", &[], limits(5, 5)).is_empty());
    }

    #[test]
    fn tokens_are_counted_with_the_query_for_each_document() {
        assert_eq!(tokens("abcdef"), 2);
        assert_eq!(tokens("天気予報"), 4);
        assert_eq!(tokens("날씨"), 2);
        let documents = vec!["abcdefghi"; 6];
        assert_eq!(split("abcdef", &documents, limits(100, 10)), [0..2, 2..4, 4..6]);
        assert_eq!(split("q", &["天".repeat(50).as_str(), "a"], limits(100, 10)), [0..1, 1..2]);
    }

    #[test]
    fn logits_of_any_request_turn_all_scores() {
        let row = |index, raw| Row { index, raw };
        let ranked =
            merge(vec![vec![row(0, 0.5), row(1, 0.25)], vec![row(2, 3.0), row(3, -4.0)]], 10, Scale::Unknown);
        assert_eq!(ranked.iter().map(|row| row.index).collect::<Vec<_>>(), [2, 0, 1, 3]);
        assert!((ranked[1].score - 0.622_459).abs() < 1e-5);
        assert!((ranked[1].raw - 0.5).abs() < f64::EPSILON, "the raw score stays");
        let ranked = merge(vec![vec![row(0, 1.0)], vec![row(1, 1.0), row(2, 0.0)]], 2, Scale::Unknown);
        assert_eq!(ranked.iter().map(|row| (row.index, row.score)).collect::<Vec<_>>(), [(0, 1.0), (1, 1.0)]);
    }

    proptest! {
        #[test]
        fn runs_cover_all_documents_within_the_limits(
            texts in prop::collection::vec("[a-z天 ]{0,40}", 0..60),
            most in 0usize..40,
            bound in 1usize..80,
        ) {
            let documents: Vec<&str> = texts.iter().map(String::as_str).collect();
            let runs = split("query", &documents, limits(most, bound));
            let covered: Vec<usize> = runs.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..documents.len()).collect::<Vec<_>>());
            for run in runs {
                prop_assert!(run.len() <= most.max(1));
                let sum: usize = documents[run.clone()].iter().map(|text| tokens(text) + tokens("query")).sum();
                prop_assert!(run.len() == 1 || sum <= bound);
            }
        }

        #[test]
        fn scores_are_within_0_and_1_and_keep_the_order(
            answers in prop::collection::vec(prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 1..10), 1..5),
        ) {
            let rows = answers.into_iter().enumerate().map(|(part, mut scores)| {
                scores.sort_by(|a, b| b.total_cmp(a));
                scores.into_iter().enumerate().map(|(at, raw)| Row { index: part * 10 + at, raw }).collect()
            });
            let ranked = merge(rows.collect(), usize::MAX, Scale::Unknown);
            prop_assert!(ranked.iter().all(|row| (0.0..=1.0).contains(&row.score)));
            prop_assert!(ranked.is_sorted_by(|a, b| a.raw >= b.raw && a.score >= b.score));
        }
    }
}
