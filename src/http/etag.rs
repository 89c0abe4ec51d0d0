//! Conditional requests (RFC 9110, section 13): what `If-Match` and `If-None-Match` say, and the ETags of answers.

use std::convert::Infallible;
use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::problem::{Code, Problem};

/// Documentation of the request header.
pub(crate) const IF_MATCH: &str = "The ETag that the stored document must still have, quotes included; without it (or with `*`) the write is \
     unconditional. 412 `precondition_failed` otherwise.";

/// Documentation of the request header.
pub(crate) const IF_NONE_MATCH: &str =
    "ETags that the caller has; if one is the present one, the answer is a 304.";

/// The ETag that a write is conditional on, without its quotes; nothing where any version will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IfMatch(Option<String>);

/// The ETags that a reader has already.
#[derive(Debug, Clone)]
pub(crate) struct IfNoneMatch(Vec<HeaderValue>);

impl IfMatch {
    /// The expected version as text.
    pub(crate) fn version(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The expected revision. An ETag that no revision has fails the precondition.
    pub(crate) fn revision(&self) -> Result<Option<i64>, Problem> {
        let Some(tag) = &self.0 else { return Ok(None) };
        // Only the one way in which ETags are written counts, so that `"07"` is not `"7"`.
        let revision = tag.parse().ok().filter(|revision: &i64| revision.to_string() == *tag);
        let refuse =
            || Problem::new(Code::PreconditionFailed, "the stored document never had the ETag of If-Match");
        revision.map(Some).ok_or_else(refuse)
    }

    fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut values = headers.get_all(header::IF_MATCH).iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        let malformed = || {
            let detail = "If-Match is not one ETag in double quotes, as answers carry it, and not *";
            Problem::new(Code::InvalidRequest, detail)
        };
        let text = value.to_str().ok().filter(|_| values.next().is_none()).ok_or_else(malformed)?;
        match text.trim() {
            "*" => Ok(Self(None)),
            weak if weak.starts_with("W/") => {
                let detail = "If-Match compares strongly, so that a weak ETag (W/\"…\") never matches";
                Err(Problem::new(Code::PreconditionFailed, detail))
            }
            tag => opaque(tag).map(|tag| Self(Some(tag.to_owned()))).ok_or_else(malformed),
        }
    }
}

impl IfNoneMatch {
    /// Whether the reader has this version. The comparison is weak, as for every GET.
    pub(crate) fn has(&self, version: &str) -> bool {
        let mut tags = self.0.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
        tags.any(|tag| {
            let tag = tag.trim();
            tag == "*" || opaque(tag.strip_prefix("W/").unwrap_or(tag)) == Some(version)
        })
    }
}

/// The inside of `"…"`. What the service makes holds neither quotes nor commas.
fn opaque(tag: &str) -> Option<&str> {
    tag.strip_prefix('"')?.strip_suffix('"').filter(|inner| !inner.contains('"'))
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::read(&parts.headers)
    }
}

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect()))
    }
}

/// The header that tells a version.
pub(crate) fn header_of(version: impl fmt::Display) -> Result<(HeaderName, HeaderValue), Problem> {
    let value = HeaderValue::from_str(&format!("\"{version}\"")).map_err(Problem::internal)?;
    Ok((header::ETAG, value))
}

/// A JSON document with its version, or 304 for a reader who has it.
pub(crate) fn document(version: &str, known: &IfNoneMatch, json: String) -> Result<Response, Problem> {
    let tag = header_of(version)?;
    if known.has(version) {
        return Ok((StatusCode::NOT_MODIFIED, [tag]).into_response());
    }
    let content_type = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(([tag, content_type], json).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    fn if_match(values: &[&str]) -> Result<Option<String>, Code> {
        IfMatch::read(&headers(&header::IF_MATCH, values))
            .map(|read| read.0)
            .map_err(|problem| problem.code())
    }

    #[test]
    fn a_write_is_conditional_on_one_strong_tag() {
        assert_eq!(if_match(&[]), Ok(None));
        assert_eq!(if_match(&["*"]), Ok(None));
        assert_eq!(if_match(&[" \"7\" "]), Ok(Some("7".to_owned())));
        assert_eq!(if_match(&["\"\""]), Ok(Some(String::new())));
        assert_eq!(if_match(&["W/\"7\""]), Err(Code::PreconditionFailed));
        for malformed in [&["7"][..], &["\"7"], &["\""], &[""], &["\"7\", \"8\""], &["\"7\"", "\"8\""]] {
            assert_eq!(if_match(malformed), Err(Code::InvalidRequest), "{malformed:?}");
        }
    }

    #[test]
    fn revisions_are_read_as_they_are_written() {
        let revision = |tag: &str| IfMatch(Some(tag.to_owned())).revision().map_err(|problem| problem.code());
        assert_eq!(revision("7"), Ok(Some(7)));
        for never in ["07", "+7", "x", "", "99999999999999999999"] {
            assert_eq!(revision(never), Err(Code::PreconditionFailed), "{never}");
        }
    }

    #[test]
    fn a_reader_may_have_several_versions() {
        let known = |values: &[&str]| {
            let headers = headers(&header::IF_NONE_MATCH, values);
            IfNoneMatch(headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect())
        };
        assert!(known(&["\"1\", W/\"2\"", "\"3\""]).has("2") && known(&["*"]).has("2"));
        assert!(!known(&["\"1\"", "2", "\"22\""]).has("2") && !known(&[]).has(""));
    }
}
