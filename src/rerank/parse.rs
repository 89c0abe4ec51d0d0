//! Reads the answer of a rerank endpoint, whatever its server.
//!
//! Owns the shapes that are understood: rows under `results` or `data`, or a bare array; an index as number or numeric
//! string; a score as `relevance_score`, `score` or `logit`. The bytes are hostile: one pass over them, row by row,
//! and never more rows kept than documents were sent.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Ranked, RerankFault};

/// Largest answer that is read. Servers that echo the documents (vLLM, LocalAI) answer with about the size of the
/// request, and 200 tools of 1,500 characters are 0.3 MB.
pub(super) const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// An object around the rows. Raw text, so that echoed documents and unknown keys cost no memory.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    relevance_score: Option<&'a RawValue>,
    #[serde(borrow)]
    score: Option<&'a RawValue>,
    #[serde(borrow)]
    logit: Option<&'a RawValue>,
}

/// The ranking in an answer, best first, each index once and below `documents`.
///
/// Rows without a finite score or without a usable index are dropped, of two rows for one document the first stays.
///
/// # Errors
/// `TooLarge` over [`MAX_ANSWER_BYTES`]; `Malformed` when there is no array of rows or no usable row in it.
pub(super) fn ranking(answer: &[u8], documents: usize) -> Result<Vec<Ranked>, RerankFault> {
    if answer.len() > MAX_ANSWER_BYTES {
        return Err(RerankFault::TooLarge);
    }
    let text = std::str::from_utf8(answer).map_err(|_| RerankFault::Malformed)?;
    let mut ranked = rows(text, documents)
        .or_else(|| rows(&without_bare_nan(text)?, documents))
        .filter(|ranked| !ranked.is_empty())
        .ok_or(RerankFault::Malformed)?;
    // A sorted answer keeps its order: where scores saturate, the provider's order of equal ones says more than ours.
    if !ranked.is_sorted_by(|a, b| a.score >= b.score) {
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
    }
    Ok(ranked)
}

/// The usable rows in the order of the answer; `None` when the text is not JSON of a known shape.
fn rows(text: &str, documents: usize) -> Option<Vec<Ranked>> {
    let array = if text.trim_start().starts_with('{') {
        let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
        [envelope.results, envelope.data]
            .into_iter()
            .flatten()
            .map(RawValue::get)
            .find(|value| value.starts_with('['))?
    } else {
        text
    };
    let mut reader = serde_json::Deserializer::from_str(array);
    let ranked = reader.deserialize_seq(Rows { documents }).ok()?;
    reader.end().ok()?;
    Some(ranked)
}

/// Collects rows one by one, so that an array of millions of junk values is never held.
struct Rows {
    documents: usize,
}

impl<'de> Visitor<'de> for Rows {
    type Value = Vec<Ranked>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of scored rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut ranked = Vec::new();
        let mut scored = vec![false; self.documents];
        let (mut names_first, mut names_one_past_last) = (false, false);
        while let Some(value) = array.next_element::<&'de RawValue>()? {
            let Ok(row) = serde_json::from_str::<Row<'_>>(value.get()) else { continue };
            let Some(index) = row.index.and_then(position) else { continue };
            names_first |= index == 0;
            names_one_past_last |= index == self.documents;
            let score = [row.relevance_score, row.score, row.logit].into_iter().flatten().find_map(number);
            let (Some(score), Some(scored)) = (score, scored.get_mut(index)) else { continue };
            if !std::mem::replace(scored, true) {
                ranked.push(Ranked { index, score });
            }
        }
        // A server that counts from 1 would give every tool its neighbour's score.
        if names_one_past_last && !names_first {
            ranked.clear();
        }
        Ok(ranked)
    }
}

/// A finite number, written as number or as string.
fn number(value: &RawValue) -> Option<f64> {
    value.get().trim_matches('"').trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// A whole number from 0 on; `2.0` is one too.
fn position(value: &RawValue) -> Option<usize> {
    number(value).filter(|number| *number >= 0.0 && number.fract() == 0.0).map(|number| number as usize)
}

/// The text with bare `NaN` and `Infinity`, which Python servers write and JSON does not know, as `null`; `None`
/// when there are none.
fn without_bare_nan(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut mended = String::new();
    let (mut at, mut copied_to, mut in_string) = (0, 0, false);
    while let Some(byte) = bytes.get(at) {
        let mut step = 1;
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => step = 2,
            b'N' | b'I' | b'-' if !in_string => {
                let token = ["NaN", "Infinity", "-Infinity"]
                    .into_iter()
                    .find(|token| bytes[at..].starts_with(token.as_bytes()));
                if let Some(token) = token {
                    mended.push_str(&text[copied_to..at]);
                    mended.push_str("null");
                    step = token.len();
                    copied_to = at + step;
                }
            }
            _ => {}
        }
        at += step;
    }
    mended.push_str(&text[copied_to..]);
    (copied_to > 0).then_some(mended)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Four documents were sent; gives `index:score` in the order of the ranking.
    fn read(answer: &str) -> Result<String, RerankFault> {
        let ranked = ranking(answer.as_bytes(), 4)?;
        Ok(ranked.iter().map(|r| format!("{}:{}", r.index, r.score)).collect::<Vec<_>>().join(" "))
    }

    fn check(answer: &str, expected: &str) {
        assert_eq!(read(answer), Ok(expected.to_owned()), "{answer}");
    }

    #[test]
    fn known_shapes() {
        check(
            r#"{"id":"x","results":[{"index":1,"relevance_score":0.9,"document":{"text":"[b"}},{"index":0,"relevance_score":0.1,"document":null}],"meta":{}}"#,
            "1:0.9 0:0.1",
        );
        check(r#"{"object":"list","data":[{"index":2,"relevance_score":0.5}]}"#, "2:0.5");
        check(r#" [{"index":1,"score":0.9,"text":"x"},{"index":3,"score":-4.5}] "#, "1:0.9 3:-4.5");
        check(r#"{"results":null,"data":[{"index":0,"logit":-1.5}]}"#, "0:-1.5");
        check(r#"{"results":[{"index":"2","score":"0.25"},{"index":1.0,"score":0}]}"#, "2:0.25 1:0");
        check(r#"{"results":[{"index":0,"relevance_score":null,"score":0.5}]}"#, "0:0.5");
    }

    #[test]
    fn an_unsorted_answer_is_sorted_and_ties_of_a_sorted_one_stay() {
        let row = |index, score| format!(r#"{{"index":{index},"score":{score}}}"#);
        check(&format!("[{},{},{}]", row(2, 0.1), row(1, 0.7), row(0, 0.7)), "0:0.7 1:0.7 2:0.1");
        check(&format!("[{},{},{}]", row(3, 1.0), row(1, 1.0), row(2, 0.5)), "3:1 1:1 2:0.5");
    }

    #[test]
    fn bad_rows_are_dropped_alone() {
        check(
            r#"{"results":[1,null,"x",[],{},{"index":0},{"score":1},{"index":true,"score":1},{"index":-1,"score":1},
               {"index":0.5,"score":1},{"index":99,"score":1},{"index":1e300,"score":1},{"index":0,"score":null},
               {"index":0,"score":"high"},{"index":1,"score":0.4},{"index":1,"score":0.9},{"index":0,"score":0.2}]}"#,
            "1:0.4 0:0.2",
        );
    }

    #[test]
    fn bare_nan_costs_its_row_only() {
        check(
            r#"{"note":"NaN \" -Infinity","results":[{"index":0,"score":NaN},{"index":1,"score":0.5},{"index":2,"score":-Infinity},{"index":3,"score":1e999}]}"#,
            "1:0.5",
        );
        check(r#"{"results":[{"index":0,"score":"NaN"},{"index":1,"score":"0.5"}]}"#, "1:0.5");
    }

    #[test]
    fn answers_without_a_usable_row_are_malformed() {
        for answer in [
            "",
            "null",
            "1",
            "\"results\"",
            "{}",
            "[]",
            "<!doctype html><title>Sign in</title>",
            r#"{"results":[]}"#,
            r#"{"results":{"index":0}}"#,
            r#"{"error":{"message":"no quota"}}"#,
            r#"{"data":[{"embedding":[1.0]}]}"#,
            r#"{"results":[{"index":0,"score":NaN}]}"#,
            r#"{"results":[{"index":0,"score":1}]"#,
            r#"[{"index":0,"score":1}] trailing"#,
            "NaN",
        ] {
            assert_eq!(read(answer), Err(RerankFault::Malformed), "{answer}");
        }
        assert_eq!(ranking(b"[\xff]", 4), Err(RerankFault::Malformed));
    }

    #[test]
    fn a_server_that_counts_from_one_is_not_trusted() {
        let answer =
            r#"[{"index":1,"score":4},{"index":2,"score":3},{"index":3,"score":2},{"index":4,"score":1}]"#;
        assert_eq!(read(answer), Err(RerankFault::Malformed));
    }

    #[test]
    fn nesting_and_size_are_bounded() {
        let deep = format!(
            r#"{{"x":{}{},"results":[{{"index":0,"score":1}}]}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        check(&deep, "0:1");
        assert_eq!(ranking(&vec![b' '; MAX_ANSWER_BYTES + 1], 4), Err(RerankFault::TooLarge));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ranking(&bytes, 4);
        }

        #[test]
        fn near_json_is_read_without_a_panic(text in r#"([\[\]{},:"\\]|NaN|-|I|Infinity|index|score|é|[0-9]){0,60}"#) {
            let _ = ranking(text.as_bytes(), 4);
            if let Some(mended) = without_bare_nan(&text) {
                prop_assert!(mended.contains("null"));
            }
        }

        #[test]
        fn a_ranking_is_sorted_unique_and_in_range(
            rows in prop::collection::vec((-2i64..12, -5.0f64..5.0), 1..30),
            documents in 1usize..10,
        ) {
            let answer: Vec<_> = rows.iter().map(|(index, score)| format!(r#"{{"index":{index},"score":{score}}}"#)).collect();
            if let Ok(ranked) = ranking(format!("[{}]", answer.join(",")).as_bytes(), documents) {
                prop_assert!(ranked.is_sorted_by(|a, b| a.score >= b.score));
                let mut indexes: Vec<_> = ranked.iter().map(|r| r.index).collect();
                indexes.sort_unstable();
                indexes.dedup();
                prop_assert_eq!(indexes.len(), ranked.len());
                prop_assert!(indexes.iter().all(|index| *index < documents));
            }
        }

        #[test]
        fn the_order_of_rows_does_not_matter(order in Just((0usize..8).collect::<Vec<_>>()).prop_shuffle()) {
            let answer: Vec<_> = order.iter().map(|index| format!(r#"{{"index":{index},"score":{index}}}"#)).collect();
            let ranked = ranking(format!("[{}]", answer.join(",")).as_bytes(), 8).unwrap();
            let indexes: Vec<_> = ranked.iter().map(|r| r.index).collect();
            prop_assert_eq!(indexes, (0..8).rev().collect::<Vec<_>>());
        }
    }
}
