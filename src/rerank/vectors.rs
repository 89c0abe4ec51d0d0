//! Endpoints that make vectors of texts: where they are, and how their answers are read.
//!
//! Owns the shape of OpenAI's embeddings API and what others make of it. The bytes are hostile: a vector is read number by
//! number and kept in its small form, and never more vectors than texts were sent.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use url::Url;

use super::fault::{Flaw, RerankFault};
use super::parse::{self, Dropped, ReadAnswer, Row};
use super::route::{self, SIBLINGS};
use crate::core::embedding::{Embedding, MAX_WIDTH};
use crate::core::policy::Dialect;

/// Texts in a request, by host. OpenAI takes 2,048, of which an eighth keeps answers small; Cohere 96, Gemini 100, Voyage 1,000,
/// Mistral is bounded by tokens, DashScope's text-embedding-v3 and -v4 take 10.
const HOSTS: [(&str, usize); 8] = [
    ("openai.com", 256),
    ("openai.azure.com", 256),
    ("services.ai.azure.com", 96),
    ("cohere.com", 96),
    ("googleapis.com", 100),
    ("voyageai.com", 256),
    ("mistral.ai", 64),
    ("aliyuncs.com", 10),
];
/// Of other servers; the default of Text Embeddings Inference.
const UNKNOWN_TEXTS: usize = 32;
/// Last path segments that are a route already: OpenAI's, and what takes its body at SageMaker (vLLM).
const ROUTES: [&str; 3] = ["embeddings", "embedding", "invocations"];
/// Ollama's own route, which takes the same body, and its older one, which does not.
const OLLAMA: [&str; 2] = ["/api/embed", "/api/embeddings"];
/// TEI's own route, whose body is another; it has OpenAI's as well.
const TEI: &str = "embed";
/// The list of models, which people copy as a base.
const MODELS: &str = "models";
/// What is below DashScope's native base; its vectors are at another.
const DASHSCOPE_NATIVE: &str = "/api/v1/services/";
/// Bases without a version in their end: Gemini's and Novita's, Azure's deployments.
const BASES: [&str; 2] = ["/openai", "/deployments/"];

/// Most texts in a request to a host.
pub(super) fn texts(url: &Url) -> usize {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let is_below =
        |known: &str| host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    HOSTS.iter().find(|(known, _)| is_below(known)).map_or(UNKNOWN_TEXTS, |(_, texts)| *texts)
}

/// The path to call for the one that was typed: a route is kept, a base is completed, the route of a sibling is replaced.
pub(super) fn path(typed: &str) -> String {
    let typed = typed.trim_end_matches('/');
    // Its routes have no version.
    if let Some(base) = OLLAMA.iter().find_map(|own| typed.strip_suffix(own))
        && !route::has_version(base)
    {
        return format!("{base}{}", OLLAMA[0]);
    }
    let last = route::last_segment(typed);
    if ROUTES.contains(&last.as_str()) {
        return typed.to_owned();
    }
    if let Some(at) = typed.find(DASHSCOPE_NATIVE) {
        return format!("{}/compatible-mode/v1/embeddings", &typed[..at]);
    }
    let is_sibling = route::is_leaf(&last) || [TEI, MODELS].contains(&last.as_str());
    let base = match SIBLINGS.iter().find_map(|sibling| typed.strip_suffix(sibling)) {
        Some(base) => base,
        None if is_sibling => typed[..typed.len() - last.len()].trim_end_matches('/'),
        None => typed,
    };
    // DashScope has its flat reranker and its vectors at two bases.
    let base = base.replace("/compatible-api", "/compatible-mode");
    let is_base = route::has_version(&base)
        || BASES.iter().any(|known| base.ends_with(known) || (known.ends_with('/') && base.contains(known)));
    if is_base { format!("{base}/embeddings") } else { format!("{base}/v1/embeddings") }
}

/// A list of vectors, or of objects that hold one each.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    /// Ollama's own API; Cohere's, where it is an object of lists by type.
    #[serde(borrow)]
    embeddings: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ByType<'a> {
    #[serde(borrow)]
    float: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry<'a> {
    index: Option<usize>,
    #[serde(borrow)]
    embedding: Option<&'a RawValue>,
}

/// What a list of so many texts' vectors may hold at most, so that a hostile one is given up where it becomes too long.
struct Entries(usize);

impl<'de> DeserializeSeed<'de> for Entries {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vectors", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            if entries.len() == self.0 {
                return Err(de::Error::invalid_length(entries.len() + 1, &self));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// A vector of at most [`MAX_WIDTH`] numbers; null stands for what is none.
struct Numbers(Vec<f32>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MAX_WIDTH} numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
        let mut numbers = Vec::new();
        // A list inside the list fails here: pooled by nobody, one vector a token.
        while let Some(number) = list.next_element::<Option<f64>>()? {
            if numbers.len() == MAX_WIDTH {
                return Err(de::Error::invalid_length(MAX_WIDTH + 1, &self));
            }
            numbers.push(number.map_or(f32::NAN, |number| number as f32));
        }
        Ok(Numbers(numbers))
    }
}

/// The vectors in a 2xx answer to so many documents without a query; none for a text that has no usable one.
///
/// # Errors
/// As [`read`].
pub(super) fn all(
    answer: &[u8],
    _dialect: Dialect,
    documents: usize,
    is_html: bool,
) -> Result<Vec<Option<Embedding>>, RerankFault> {
    read(answer, documents, is_html)
}

/// The vectors in a 2xx answer to so many texts, in their order and of one width; none for a text whose vector cannot be used
/// (null, zeros), at least one in all.
///
/// # Errors
/// `WebPage`, `Malformed`, `Reported`, or `Refused` with the status that stands inside.
fn read(answer: &[u8], texts: usize, is_html: bool) -> Result<Vec<Option<Embedding>>, RerankFault> {
    let text = parse::text_of(answer, is_html)?;
    let not_json = if is_html { RerankFault::WebPage } else { RerankFault::Malformed(Flaw::NotJson) };
    let list = if text.starts_with('[') {
        Some(text)
    } else {
        let answer: Answer<'_> = serde_json::from_str(text).map_err(|_| not_json)?;
        let found = [answer.data, answer.embeddings].into_iter().flatten().map(RawValue::get);
        found.filter_map(list_of).next()
    };
    if let Some(fault) = parse::error_inside(text, list.is_some()) {
        return Err(fault);
    }
    let list = list.ok_or(RerankFault::Malformed(Flaw::NoRows))?;
    let flawed = || RerankFault::Malformed(Flaw::Vectors);
    let mut reader = serde_json::Deserializer::from_str(list);
    let entries = Entries(texts).deserialize(&mut reader);
    let entries = entries.map_err(|error| if error.is_data() { flawed() } else { not_json })?;
    reader.end().map_err(|_| not_json)?;
    if entries.len() != texts {
        return Err(flawed());
    }
    let mut vectors: Vec<Option<Option<Embedding>>> = vec![None; texts];
    for (at, entry) in entries.into_iter().enumerate() {
        let (index, vector) = match entry.get().as_bytes().first() {
            Some(b'{') => {
                let entry: Entry<'_> = serde_json::from_str(entry.get()).map_err(|_| flawed())?;
                (entry.index.unwrap_or(at), entry.embedding)
            }
            Some(b'n') => (at, None),
            _ => (at, Some(entry)),
        };
        let place = vectors.get_mut(index).filter(|place| place.is_none()).ok_or_else(flawed)?;
        *place = Some(match vector {
            Some(vector) => Embedding::of(&numbers_of(vector.get()).ok_or_else(flawed)?),
            None => None,
        });
    }
    let vectors: Vec<Option<Embedding>> = vectors.into_iter().map(Option::flatten).collect();
    let mut widths = vectors.iter().flatten().map(Embedding::width);
    let width = widths.next().ok_or_else(flawed)?;
    if widths.any(|other| other != width) {
        return Err(flawed());
    }
    Ok(vectors)
}

fn list_of(text: &str) -> Option<&str> {
    if text.starts_with('[') {
        return Some(text);
    }
    let by_type: ByType<'_> = serde_json::from_str(text).ok()?;
    by_type.float.map(RawValue::get)
}

/// Numbers, or their bytes in base64, which OpenAI's own clients ask for and some servers send unasked.
fn numbers_of(text: &str) -> Option<Vec<f32>> {
    if !text.starts_with('"') {
        return serde_json::from_str::<Numbers>(text).ok().map(|numbers| numbers.0);
    }
    // Four characters for three bytes.
    let text = Some(text.trim_matches('"')).filter(|text| text.len() <= 4 * MAX_WIDTH * 4 / 3 + 4)?;
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let (fours, rest) = bytes.as_chunks::<4>();
    let is_whole = rest.is_empty() && fours.len() <= MAX_WIDTH;
    is_whole.then(|| fours.iter().map(|four| f32::from_le_bytes(*four)).collect())
}

/// The ranking in an answer to a query and so many documents behind it.
///
/// # Errors
/// As [`read`], and `Malformed` where no document has a usable vector: an order of nothing would hide that nothing was ranked.
pub(super) fn rank(answer: &[u8], documents: usize, is_html: bool) -> Result<ReadAnswer, RerankFault> {
    let vectors = read(answer, documents + 1, is_html)?;
    let Some((query, documents)) = vectors.split_first() else {
        return Err(RerankFault::Malformed(Flaw::Vectors));
    };
    let query = query.as_ref().ok_or(RerankFault::Malformed(Flaw::Vectors))?;
    let cosine = |document: &Option<Embedding>| query.cosine(document.as_ref()?);
    let cosines = documents.iter().map(cosine).enumerate();
    let mut rows: Vec<Row> = cosines.filter_map(|(index, raw)| Some(Row { index, raw: raw? })).collect();
    if rows.is_empty() {
        return Err(RerankFault::Malformed(Flaw::NoScores));
    }
    rows.sort_by(|a, b| b.raw.total_cmp(&a.raw));
    let unscored = documents.len() - rows.len();
    Ok(ReadAnswer { rows, dropped: Dropped { unscored, ..Dropped::default() } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_completed_and_a_sibling_replaced() {
        for (typed, called) in [
            ("/", "/v1/embeddings"),
            ("/v1", "/v1/embeddings"),
            ("/v1/", "/v1/embeddings"),
            ("/v1/embeddings", "/v1/embeddings"),
            ("/api/embed", "/api/embed"),
            ("/v1/chat/completions", "/v1/embeddings"),
            ("/v1/rerank", "/v1/embeddings"),
            ("/rerank", "/v1/embeddings"),
            ("/v1beta/openai", "/v1beta/openai/embeddings"),
            ("/v3/openai/rerank", "/v3/openai/embeddings"),
            ("/api/paas/v4", "/api/paas/v4/embeddings"),
            ("/openai/deployments/small", "/openai/deployments/small/embeddings"),
            ("/compatible-api/v1/reranks", "/compatible-mode/v1/embeddings"),
            ("/proxy", "/proxy/v1/embeddings"),
            ("/api/v1/services/rerank/text-rerank/text-rerank", "/compatible-mode/v1/embeddings"),
            ("/v1/ranking", "/v1/embeddings"),
            ("/v2/rerankers", "/v2/embeddings"),
            ("/v1/models", "/v1/embeddings"),
            ("/embed", "/v1/embeddings"),
            ("/tei/embed", "/tei/v1/embeddings"),
            ("/api/embeddings", "/api/embed"),
            ("/ollama/api/embeddings/", "/ollama/api/embed"),
            ("/invocations", "/invocations"),
        ] {
            assert_eq!(path(typed), called, "{typed}");
            assert_eq!(path(called), called);
        }
    }

    #[test]
    fn hosts_have_their_limits() {
        let of = |url: &str| texts(&Url::parse(url).unwrap());
        assert_eq!(of("https://api.openai.com/v1"), 256);
        assert_eq!(of("https://dashscope.aliyuncs.com/compatible-mode/v1"), 10);
        assert_eq!(of("http://127.0.0.1:8080"), 32);
        assert_eq!(of("https://notopenai.com"), 32);
    }

    #[test]
    fn every_shape_is_read() {
        let vectors = [Embedding::of(&[1.0, 0.0]).unwrap(), Embedding::of(&[0.5, 0.5]).unwrap()];
        let base64 = BASE64_STANDARD.encode([1.0_f32, 0.0].map(f32::to_le_bytes).concat());
        for answer in [
            r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":[0.5,0.5]}],"model":"m"}"#,
            r#"{"data":[{"index":1,"embedding":[0.5,0.5]},{"index":0,"embedding":[1.0,0e0]}]}"#,
            r#"{"data":[{"embedding":[1,0]},{"embedding":[5e-1,0.5]}],"error":null}"#,
            &format!(r#"{{"data":[{{"embedding":"{base64}"}},{{"embedding":[0.5,0.5]}}]}}"#),
            r#"{"embeddings":[[1,0],[0.5,0.5]]}"#,
            r#"{"embeddings":{"float":[[1,0],[0.5,0.5]]}}"#,
            r#" [[1,0],[0.5,0.5]] "#,
        ] {
            let vectors = vectors.each_ref().map(|vector| Some(vector.clone()));
            assert_eq!(read(answer.as_bytes(), 2, false).unwrap(), vectors, "{answer}");
        }
    }

    #[test]
    fn answers_that_cannot_be_told_apart_are_refused() {
        let fault = |answer: &str| read(answer.as_bytes(), 2, false).unwrap_err();
        for answer in [
            r#"{"data":[{"index":0,"embedding":[1,0]}]}"#,
            r#"{"data":[{"index":1,"embedding":[1,0]},{"index":1,"embedding":[0,1]}]}"#,
            r#"{"data":[{"index":1,"embedding":[1,0]},{"index":2,"embedding":[0,1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[0,0]},{"index":1,"embedding":null}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":[0,1]},{"index":1,"embedding":[0,1]}]}"#,
            &format!("[[1,0],[{}1]]", "0,".repeat(MAX_WIDTH)),
            &format!("[[1,0],\"{}\"]", "A".repeat(8 * MAX_WIDTH)),
            &format!("[{}0]", "0,".repeat(100_000)),
            r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":"!"}]}"#,
            r#"{"data":[{"index":0,"embedding":[[1,0],[0,1]]},{"index":1,"embedding":[[1,0]]}]}"#,
            r#"{"data":[1,2]}"#,
        ] {
            assert_eq!(fault(answer), RerankFault::Malformed(Flaw::Vectors), "{answer}");
        }
        assert_eq!(fault(r#"{"object":"list"}"#), RerankFault::Malformed(Flaw::NoRows));
        assert_eq!(fault("<html>"), RerankFault::WebPage);
        assert_eq!(fault("ok"), RerankFault::Malformed(Flaw::NotJson));
        assert_eq!(fault(r#"{"error":{"code":"invalid_api_key"}}"#).reason(), "unauthorized");
        assert_eq!(fault(r#"{"error":"loading"}"#), RerankFault::Reported);
    }

    #[test]
    fn a_text_without_a_usable_vector_takes_none_from_the_others() {
        for bad in ["[0,0]", "[1,null]", "null", "[]", "[1e99,1]"] {
            let answer = format!(r#"{{"data":[{{"embedding":[1,0]}},{{"embedding":{bad}}}]}}"#);
            let read = read(answer.as_bytes(), 2, false).unwrap();
            assert_eq!(read, [Embedding::of(&[1.0, 0.0]), None], "{bad}");
        }
        let ranked = rank(b"[[1,0],null,[1,1]]", 2, false).unwrap();
        assert_eq!((ranked.rows.len(), ranked.rows[0].index, ranked.dropped.unscored), (1, 1, 1));
    }

    #[test]
    fn a_ranking_of_no_document_is_none() {
        for answer in ["[[1,0],null]", "[[1,0],[]]", r#"{"data":[{"embedding":[1,0]},{"embedding":[0,0]}]}"#]
        {
            assert_eq!(
                rank(answer.as_bytes(), 1, false),
                Err(RerankFault::Malformed(Flaw::NoScores)),
                "{answer}"
            );
        }
    }

    #[test]
    fn documents_are_ranked_by_their_cosine_with_the_query() {
        let answer =
            r#"{"data":[{"embedding":[1,0]},{"embedding":[-1,0]},{"embedding":[2,0]},{"embedding":[1,1]}]}"#;
        let ranked = rank(answer.as_bytes(), 3, false).unwrap();
        assert_eq!(ranked.rows.iter().map(|row| row.index).collect::<Vec<_>>(), [1, 2, 0]);
        assert!((ranked.rows[0].raw - 1.0).abs() < 1e-9 && (ranked.rows[2].raw + 1.0).abs() < 1e-9);
    }
}
