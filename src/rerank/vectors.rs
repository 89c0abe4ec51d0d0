//! Endpoints that make vectors of texts: where they are, and how their answers are read.
//!
//! Owns the shape of OpenAI's embeddings API and what others make of it. The bytes are hostile: a vector is read number by
//! number and kept in its small form, and never more vectors than texts were sent.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use url::Url;

use super::fault::{Flaw, RerankFault};
use super::parse::{self, Dropped, ReadAnswer, Row};
use crate::core::embedding::{Embedding, MAX_WIDTH};
use crate::core::policy::Dialect;

/// Texts in a request, by host. OpenAI takes 2,048, of which a quarter keeps answers small; Cohere 96, Gemini 100, Voyage 1,000,
/// Mistral is bounded by tokens, DashScope's text-embedding-v3 and -v4 take 10.
const HOSTS: [(&str, usize); 8] = [
    ("openai.com", 512),
    ("openai.azure.com", 512),
    ("services.ai.azure.com", 96),
    ("cohere.com", 96),
    ("googleapis.com", 100),
    ("voyageai.com", 512),
    ("mistral.ai", 64),
    ("aliyuncs.com", 10),
];
/// Of other servers; the default of Text Embeddings Inference.
const UNKNOWN_TEXTS: usize = 32;
/// Last path segments that are a route already: OpenAI's, and Ollama's own.
const ROUTES: [&str; 3] = ["embeddings", "embedding", "embed"];
/// What people copy from other settings of the same server.
const SIBLINGS: [&str; 6] =
    ["/chat/completions", "/completions", "/models", "/reranking", "/reranks", "/rerank"];
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
    let last = typed.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    if ROUTES.contains(&last.as_str()) {
        return typed.to_owned();
    }
    // DashScope has its flat reranker and its vectors at two bases.
    let base = SIBLINGS.iter().find_map(|sibling| typed.strip_suffix(sibling)).unwrap_or(typed);
    let base = base.replace("/compatible-api", "/compatible-mode");
    let is_version = |part: &str| {
        part.strip_prefix('v').is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    let is_base = base.split('/').any(is_version)
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

/// The vectors in a 2xx answer to so many documents without a query.
///
/// # Errors
/// As [`read`].
pub(super) fn all(
    answer: &[u8],
    _dialect: Dialect,
    documents: usize,
    is_html: bool,
) -> Result<Vec<Embedding>, RerankFault> {
    read(answer, documents, is_html)
}

/// The vectors in a 2xx answer to so many texts, in their order and of one width.
///
/// # Errors
/// `WebPage`, `Malformed`, `Reported`, or `Refused` with the status that stands inside.
fn read(answer: &[u8], texts: usize, is_html: bool) -> Result<Vec<Embedding>, RerankFault> {
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
    let entries: Vec<&RawValue> = serde_json::from_str(list).map_err(|_| not_json)?;
    let flawed = || RerankFault::Malformed(Flaw::Vectors);
    if entries.len() != texts {
        return Err(flawed());
    }
    let mut vectors: Vec<Option<Embedding>> = vec![None; texts];
    for (at, entry) in entries.into_iter().enumerate() {
        let (index, vector) = match entry.get().as_bytes().first() {
            Some(b'{') => {
                let entry: Entry<'_> = serde_json::from_str(entry.get()).map_err(|_| flawed())?;
                (entry.index.unwrap_or(at), entry.embedding.ok_or_else(flawed)?)
            }
            _ => (at, entry),
        };
        let place = vectors.get_mut(index).filter(|place| place.is_none()).ok_or_else(flawed)?;
        *place = Some(vector_of(vector.get()).ok_or_else(flawed)?);
    }
    let vectors: Vec<Embedding> = vectors.into_iter().flatten().collect();
    let width = vectors.first().map(Embedding::width);
    if vectors.iter().any(|vector| Some(vector.width()) != width) {
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
fn vector_of(text: &str) -> Option<Embedding> {
    // A list inside a list: pooled by nobody, one vector a token.
    let numbers: Vec<f32> = if text.starts_with('"') {
        let bytes = BASE64_STANDARD.decode(text.trim_matches('"')).ok()?;
        let (fours, rest) = bytes.as_chunks::<4>();
        let is_whole = rest.is_empty() && fours.len() <= MAX_WIDTH;
        is_whole.then(|| fours.iter().map(|four| f32::from_le_bytes(*four)).collect())?
    } else {
        serde_json::from_str(text).ok()?
    };
    Embedding::of(&numbers)
}

/// The ranking in an answer to a query and so many documents behind it.
///
/// # Errors
/// As [`read`].
pub(super) fn rank(answer: &[u8], documents: usize, is_html: bool) -> Result<ReadAnswer, RerankFault> {
    let vectors = read(answer, documents + 1, is_html)?;
    let Some((query, documents)) = vectors.split_first() else {
        return Err(RerankFault::Malformed(Flaw::Vectors));
    };
    let cosines = documents.iter().filter_map(|document| query.cosine(document));
    let mut rows: Vec<Row> = cosines.enumerate().map(|(index, raw)| Row { index, raw }).collect();
    rows.sort_by(|a, b| b.raw.total_cmp(&a.raw));
    Ok(ReadAnswer { rows, dropped: Dropped::default() })
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
        ] {
            assert_eq!(path(typed), called, "{typed}");
            assert_eq!(path(called), called);
        }
    }

    #[test]
    fn hosts_have_their_limits() {
        let of = |url: &str| texts(&Url::parse(url).unwrap());
        assert_eq!(of("https://api.openai.com/v1"), 512);
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
            r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":[0,0]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":[1,null]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":"!"}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,0]},{"index":1}]}"#,
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
    fn documents_are_ranked_by_their_cosine_with_the_query() {
        let answer =
            r#"{"data":[{"embedding":[1,0]},{"embedding":[-1,0]},{"embedding":[2,0]},{"embedding":[1,1]}]}"#;
        let ranked = rank(answer.as_bytes(), 3, false).unwrap();
        assert_eq!(ranked.rows.iter().map(|row| row.index).collect::<Vec<_>>(), [1, 2, 0]);
        assert!((ranked.rows[0].raw - 1.0).abs() < 1e-9 && (ranked.rows[2].raw + 1.0).abs() < 1e-9);
    }
}
