//! Reads the answer of a rerank endpoint, whatever its dialect.
//!
//! Owns the shapes that are understood and the rules for refusing an answer. The bytes are hostile: one pass over them,
//! row by row, and never more rows kept than documents were sent.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::fault::{Flaw, RerankFault};
use super::vectors;
use crate::core::policy::Dialect;

/// A document with what the endpoint said about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// Position among the documents that were sent.
    pub index: usize,
    /// Finite.
    pub raw: f64,
}

/// Rows that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// No index, or none of a document that was sent.
    pub bad_index: usize,
    /// No score, `null`, NaN, or not a number.
    pub unscored: usize,
    /// Second and later rows of a document.
    pub duplicates: usize,
}

/// What an answer holds: at least one row, best first, each index once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadAnswer {
    pub rows: Vec<Row>,
    pub dropped: Dropped,
}

type Raw<'a> = Option<&'a RawValue>;

/// The keys around the rows. Raw text, so that echoed documents and unknown keys cost no memory.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(borrow)]
    results: Raw<'a>,
    #[serde(borrow)]
    data: Raw<'a>,
    /// NIM.
    #[serde(borrow)]
    rankings: Raw<'a>,
    /// Elastic.
    #[serde(borrow)]
    rerank: Raw<'a>,
    /// Cloudflare, inside `result`.
    #[serde(borrow)]
    response: Raw<'a>,
    /// Vertex.
    #[serde(borrow)]
    records: Raw<'a>,
    /// DeepInfra; VikingDB inside `data`: one score for each document, in the order of the request.
    #[serde(borrow)]
    scores: Raw<'a>,
    /// DashScope's native API.
    #[serde(borrow)]
    output: Raw<'a>,
    #[serde(borrow)]
    result: Raw<'a>,
    #[serde(borrow)]
    error: Raw<'a>,
    #[serde(borrow)]
    code: Raw<'a>,
    /// Baidu's older API.
    #[serde(borrow)]
    error_code: Raw<'a>,
}

/// Where the scores are.
enum List<'a> {
    Rows(&'a str),
    Positional(&'a str),
}

impl<'a> Envelope<'a> {
    fn list(&self) -> Option<List<'a>> {
        let array = |value: Raw<'a>| value.map(RawValue::get).filter(|text| text.starts_with('['));
        [
            self.results,
            self.data,
            self.rankings,
            self.rerank,
            self.response,
            self.records,
            self.result,
            self.output,
        ]
        .into_iter()
        .find_map(array)
        .map(List::Rows)
        .or_else(|| array(self.scores).map(List::Positional))
    }

    fn inner(&self) -> Option<List<'a>> {
        [self.output, self.result, self.data]
            .into_iter()
            .flatten()
            .filter_map(object::<Envelope<'a>>)
            .find_map(|envelope| envelope.list())
    }

    /// The error that a 2xx answer reports; gateways wrap the errors of the servers behind them.
    fn error(&self, has_list: bool) -> Option<RerankFault> {
        let names_error =
            |value: &&RawValue| !matches!(value.get(), "null" | "false" | "0" | "\"\"" | "{}" | "[]");
        let is_success = |value: &RawValue| {
            let text = value.get().trim_matches('"').to_ascii_lowercase();
            matches!(text.as_str(), "null" | "" | "0" | "200" | "success" | "ok")
        };
        if let Some(error) = self.error.filter(names_error) {
            return Some(reported(&[Some(error), self.code]));
        }
        let code = [self.code, self.error_code].into_iter().flatten().find(|code| !is_success(code))?;
        (!has_list).then(|| reported(&[Some(code)]))
    }
}

/// The status inside an error object, its code or its type, where one is recognisable.
fn reported(places: &[Raw<'_>]) -> RerankFault {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Inner<'a> {
        #[serde(borrow)]
        code: Raw<'a>,
        #[serde(borrow)]
        status: Raw<'a>,
        #[serde(borrow, rename = "type")]
        kind: Raw<'a>,
    }
    let mut said = Vec::new();
    for place in places.iter().copied().flatten() {
        let inner: Inner<'_> = object(place).unwrap_or_default();
        said.extend([inner.code, inner.status, inner.kind].into_iter().flatten());
        if !place.get().starts_with('{') {
            said.push(place);
        }
    }
    let status = |value: &RawValue| {
        if let Some(status) = position(value).filter(|status| (400..600).contains(status)) {
            return u16::try_from(status).ok();
        }
        // Codes are single words; prose would be guessing.
        let code = value.get().to_ascii_lowercase().replace(['_', '-', '.'], "");
        if code.contains(' ') {
            return None;
        }
        [
            ("throttl", 429),
            ("ratelimit", 429),
            ("toomanyrequests", 429),
            ("apikey", 401),
            ("unauthorized", 401),
            ("authentication", 401),
            ("arrearage", 402),
            ("insufficient", 402),
            ("accessdenied", 403),
            ("permission", 403),
            ("forbidden", 403),
            ("modelnotfound", 404),
        ]
        .into_iter()
        .find(|(word, _)| code.contains(word))
        .map(|(_, status)| status)
    };
    said.into_iter().find_map(status).map_or(RerankFault::Reported, RerankFault::refused)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawRow<'a> {
    #[serde(borrow)]
    index: Raw<'a>,
    #[serde(borrow)]
    document_index: Raw<'a>,
    #[serde(borrow)]
    corpus_id: Raw<'a>,
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow)]
    relevance_score: Raw<'a>,
    #[serde(borrow)]
    score: Raw<'a>,
    #[serde(borrow)]
    logit: Raw<'a>,
    #[serde(borrow, rename = "relevanceScore")]
    relevance_score_camel: Raw<'a>,
    #[serde(borrow)]
    similarity: Raw<'a>,
    #[serde(borrow)]
    rerank_score: Raw<'a>,
}

impl RawRow<'_> {
    fn position(&self) -> Option<usize> {
        [self.index, self.document_index, self.corpus_id, self.id]
            .into_iter()
            .flatten()
            .next()
            .and_then(position)
    }

    fn score(&self) -> Option<f64> {
        let names = [
            self.relevance_score,
            self.score,
            self.logit,
            self.relevance_score_camel,
            self.similarity,
            self.rerank_score,
        ];
        names.into_iter().flatten().find_map(number)
    }
}

/// The ranking in a 2xx answer of a dialect, be it told or to be made of vectors.
///
/// # Errors
/// As [`read`].
pub(super) fn ranking(
    answer: &[u8],
    dialect: Dialect,
    documents: usize,
    is_html: bool,
) -> Result<ReadAnswer, RerankFault> {
    match dialect {
        Dialect::Openai => vectors::rank(answer, documents, is_html),
        _ => read(answer, documents, is_html),
    }
}

/// The ranking in a 2xx answer for this many documents; `is_html` is what its content type says.
///
/// Of two rows for one document the first stays. Sorted answers keep their order: where scores saturate, the provider's
/// order of equal ones says more than ours.
///
/// # Errors
/// `WebPage`, `Malformed`, `Reported`, or `Refused` with the status that stands inside.
pub(super) fn read(answer: &[u8], documents: usize, is_html: bool) -> Result<ReadAnswer, RerankFault> {
    let text = text_of(answer, is_html)?;
    let not_json = if is_html { RerankFault::WebPage } else { RerankFault::Malformed(Flaw::NotJson) };
    let found = match read_json(text, documents) {
        None => without_bare_nan(text).and_then(|mended| read_json(&mended, documents)),
        found => found,
    };
    let mut answer = found.unwrap_or(Err(not_json))?;
    if !answer.rows.is_sorted_by(|a, b| a.raw >= b.raw) {
        answer.rows.sort_by(|a, b| b.raw.total_cmp(&a.raw).then(a.index.cmp(&b.index)));
    }
    Ok(answer)
}

/// The text of an answer that is no web page.
pub(super) fn text_of(answer: &[u8], is_html: bool) -> Result<&str, RerankFault> {
    let not_text = if is_html { RerankFault::WebPage } else { RerankFault::Malformed(Flaw::NotJson) };
    let text = std::str::from_utf8(answer).map_err(|_| not_text)?.trim_start_matches('\u{feff}').trim();
    if text.starts_with('<') { Err(RerankFault::WebPage) } else { Ok(text) }
}

/// The error that a 2xx answer reports, which holds or does not hold what was asked for.
pub(super) fn error_inside(text: &str, has_list: bool) -> Option<RerankFault> {
    let envelope: Envelope<'_> =
        Some(text).filter(|text| text.starts_with('{')).and_then(|text| serde_json::from_str(text).ok())?;
    envelope.error(has_list)
}

/// `None` when the text is not JSON.
fn read_json(text: &str, documents: usize) -> Option<Result<ReadAnswer, RerankFault>> {
    let list = if text.starts_with('[') {
        Some(List::Rows(text))
    } else if text.starts_with('{') {
        let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
        let list = envelope.list().or_else(|| envelope.inner());
        if let Some(fault) = envelope.error(list.is_some()) {
            return Some(Err(fault));
        }
        list
    } else {
        serde_json::from_str::<&RawValue>(text).ok()?;
        None
    };
    let Some(list) = list else { return Some(Err(RerankFault::Malformed(Flaw::NoRows))) };
    let (array, collector) = match list {
        List::Rows(array) => (array, Collector { documents, positional: false }),
        List::Positional(array) => (array, Collector { documents, positional: true }),
    };
    let mut reader = serde_json::Deserializer::from_str(array);
    let collected = reader.deserialize_seq(collector).ok()?;
    reader.end().ok()?;
    Some(collected.finish(documents))
}

/// Collects rows one by one, so that an array of millions of junk values is never held.
struct Collector {
    documents: usize,
    positional: bool,
}

#[derive(Default)]
struct Collected {
    rows: Vec<Row>,
    dropped: Dropped,
    seen: usize,
    names_first: bool,
    /// The highest index that was named.
    highest: Option<usize>,
    wrong_length: bool,
}

impl<'de> Visitor<'de> for Collector {
    type Value = Collected;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of scores")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Collected, A::Error> {
        let mut found = Collected::default();
        let mut known = vec![false; self.documents];
        while let Some(value) = array.next_element::<&'de RawValue>()? {
            let place = found.seen;
            found.seen += 1;
            let (index, score) = if self.positional {
                (Some(place), number(value))
            } else {
                let row: RawRow<'_> = object(value).unwrap_or_default();
                (row.position(), row.score())
            };
            found.names_first |= index == Some(0);
            found.highest = found.highest.max(index);
            let Some((index, known)) = index.and_then(|index| Some((index, known.get_mut(index)?))) else {
                found.dropped.bad_index += 1;
                continue;
            };
            match score {
                None => found.dropped.unscored += 1,
                Some(_) if *known => found.dropped.duplicates += 1,
                Some(raw) => {
                    *known = true;
                    found.rows.push(Row { index, raw });
                }
            }
        }
        found.wrong_length = self.positional && found.seen != self.documents;
        Ok(found)
    }
}

impl Collected {
    fn finish(self, documents: usize) -> Result<ReadAnswer, RerankFault> {
        let flaw = |flaw| Err(RerankFault::Malformed(flaw));
        if self.wrong_length {
            flaw(Flaw::WrongLength)
        } else if !self.names_first && self.highest == Some(documents) {
            // Every tool would get its neighbour's score.
            flaw(Flaw::CountsFromOne)
        } else if self.dropped.bad_index * 5 > self.seen
            || (!self.names_first && self.highest.is_some_and(|highest| highest > documents))
        {
            flaw(Flaw::BadIndexes)
        } else if self.rows.is_empty() {
            flaw(Flaw::NoScores)
        } else {
            Ok(ReadAnswer { rows: self.rows, dropped: self.dropped })
        }
    }
}

/// An object's known keys; arrays are not objects, though serde would take them for one.
fn object<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Option<T> {
    Some(value.get()).filter(|text| text.starts_with('{')).and_then(|text| serde_json::from_str(text).ok())
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
                let token = ["NaN", "Infinity", "-Infinity", "-NaN"]
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
mod tests;
