//! Extractors: what a handler receives has been checked, and what is refused is a problem document.
//!
//! Owns the rules for bodies (type, size, strict JSON), query parameters and path parameters, and that all of them are
//! [`Scoped`]: what names a user or project that the key of the request does not cover is a 404. Must not know routes or
//! services.

use std::error::Error as _;
use std::io::Read as _;

use axum::body::{Body, HttpBody as _};
use axum::extract::path::ErrorKind;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRef, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;

use crate::core::json::{self, JsonLimits};
use crate::core::keys::Principal;
use crate::core::text::size_in_words;
use crate::core::warning::FieldError;
use crate::http::fields::field_error;
use crate::http::layers::HttpContext;
use crate::http::problem::{Code, Problem};
use crate::http::scoped::{self, Scoped};

/// First allocation for a body that arrives in several parts, in bytes. A client's own Content-Length is only
/// believed up to here, so that memory is taken for what was sent and not for what was announced.
const FIRST_BYTES: usize = 64 * 1024;

/// A JSON body read into `T`, whose structs should say `deny_unknown_fields`.
///
/// Refused with 415 (type), 413 (size), 400 (not strict JSON, see [`json::check`]), 422 `invalid_request` (does not
/// fit `T`, with a JSON pointer). Handlers that check parts of a body on their own take [`RawBody`].
#[derive(Debug, Clone, Copy)]
pub struct ApiJson<T>(pub T);

/// A JSON body as its bytes: type and size are checked, nothing else.
#[derive(Debug, Clone)]
pub struct RawBody {
    bytes: Bytes,
    principal: Principal,
}

/// As [`ApiJson`], and `T`'s default where there is no body at all.
#[derive(Debug, Clone, Copy)]
pub struct OptionalJson<T>(pub T);

/// Query parameters read into `T`; with `deny_unknown_fields` an unknown one is a 422. Pointers of faults go into
/// the parameters seen as one object, for example `/limit`.
#[derive(Debug, Clone, Copy)]
pub struct ApiQuery<T>(pub T);

/// Path parameters read into `T` by their names; a text that is not what `T` asks for is a 422 `invalid_id`.
#[derive(Debug, Clone, Copy)]
pub struct ApiPath<T>(pub T);

impl<T, S> FromRequest<S> for ApiJson<T>
where
    T: DeserializeOwned + Scoped,
    S: Send + Sync,
    HttpContext: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = RawBody::from_request(request, state).await?;
        body.parse(JsonLimits::strict(HttpContext::from_ref(state).limits().json_depth)).map(Self)
    }
}

impl<S> FromRequest<S> for RawBody
where
    S: Send + Sync,
    HttpContext: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let limits = HttpContext::from_ref(state).limits();
        let principal = scoped::principal(request.extensions())?.clone();
        let bytes = read_json_body(request, limits.body_bytes).await?;
        Ok(Self { bytes, principal })
    }
}

impl<T, S> FromRequest<S> for OptionalJson<T>
where
    T: DeserializeOwned + Scoped + Default,
    S: Send + Sync,
    HttpContext: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        ApiJson::from_request(request, state).await.map(|ApiJson(body)| Self(body))
    }
}

impl RawBody {
    /// Reads the body as [`ApiJson`] would, under limits of the handler's choice.
    pub fn parse<T: DeserializeOwned + Scoped>(&self, limits: JsonLimits) -> Result<T, Problem> {
        let body = parse_json(&self.bytes, limits)?;
        scoped::check(&self.principal, &body)?;
        Ok(body)
    }
}

impl<T, S> FromRequestParts<S> for ApiQuery<T>
where
    T: DeserializeOwned + Scoped,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let principal = scoped::principal(&parts.extensions)?;
        let Query(value) =
            Query::<T>::try_from_uri(&parts.uri).map_err(|rejection| query_problem(&rejection))?;
        scoped::check(principal, &value)?;
        Ok(Self(value))
    }
}

impl<T, S> FromRequestParts<S> for ApiPath<T>
where
    T: DeserializeOwned + Scoped + Send,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(value) = Path::<T>::from_request_parts(parts, state).await.map_err(path_problem)?;
        scoped::check(scoped::principal(&parts.extensions)?, &value)?;
        Ok(Self(value))
    }
}

/// Reads a whole JSON text into `T`. The text must be one object.
///
/// Fast path first: the slower reader that keeps track of the place runs only for a text that is refused anyway.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8], limits: JsonLimits) -> Result<T, Problem> {
    let text = json::check(bytes, limits)?;
    // serde reads a struct from an array as well, which no document of this API means.
    if !text.trim_ascii_start().starts_with('{') {
        let error = FieldError::new("", "wrong_type", "the body must be a JSON object");
        return Err(Problem::invalid(vec![error]));
    }
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| Problem::invalid(vec![field_error(error.path(), &error.inner().to_string())]))
}

async fn read_json_body(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    let encoding = check_headers(&parts.headers)?;
    let bytes = read_limited(body, announced(&parts.headers), limit).await?;
    match encoding {
        Encoding::Identity => Ok(bytes),
        Encoding::Gzip => {
            tokio::task::spawn_blocking(move || unpacked(&bytes, limit)).await.map_err(Problem::internal)?
        }
    }
}

/// The length that the client announced, in bytes; 0 when the body comes in chunks.
fn announced(headers: &HeaderMap) -> u64 {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
}

fn check_headers(headers: &HeaderMap) -> Result<Encoding, Problem> {
    let refuse = |detail: &str| Err(Problem::new(Code::UnsupportedMediaType, detail));
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else {
        return refuse("the request has no Content-Type; send application/json");
    };
    if !content_type.to_str().is_ok_and(is_json) {
        return refuse("the Content-Type is not application/json");
    }
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter().map(HeaderValue::as_bytes);
    let encoding = match (encodings.next(), encodings.next()) {
        (None, _) => Some(Encoding::Identity),
        (Some(only), None) if only.eq_ignore_ascii_case(b"identity") => Some(Encoding::Identity),
        (Some(only), None) if only.eq_ignore_ascii_case(b"gzip") => Some(Encoding::Gzip),
        _ => None,
    };
    encoding.ok_or_else(|| {
        let detail = "the only Content-Encoding that is taken is gzip";
        let problem = Problem::new(Code::UnsupportedMediaType, detail);
        problem.with_header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"))
    })
}

/// What a gzip body holds, which is as bounded as a body that is not packed.
fn unpacked(packed: &[u8], limit: usize) -> Result<Bytes, Problem> {
    let mut bytes = Vec::new();
    // One more byte than fits tells that there are more.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut reader = MultiGzDecoder::new(packed).take(most);
    reader.read_to_end(&mut bytes).map_err(|cause| {
        Problem::new(Code::MalformedJson, "the body is not whole gzip data").with_cause(cause)
    })?;
    if bytes.len() > limit { Err(too_large(limit)) } else { Ok(bytes.into()) }
}

/// `application/json` or any `+json` type, with or without parameters.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let Some((_, subtype)) = essence.split_once('/') else { return false };
    let suffix = subtype.rsplit_once('+').map(|(_, suffix)| suffix);
    essence.eq_ignore_ascii_case("application/json")
        || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"))
}

async fn read_limited(mut body: Body, announced: u64, limit: usize) -> Result<Bytes, Problem> {
    if announced > limit as u64 {
        return Err(too_large(limit));
    }
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|cause| {
            Problem::new(Code::MalformedJson, "the body could not be read to its end").with_cause(cause)
        })?;
        let Ok(part) = frame.into_data() else { continue };
        if first.len().max(joined.len()) + part.len() > limit {
            return Err(too_large(limit));
        }
        if first.is_empty() && joined.is_empty() {
            first = part;
            continue;
        }
        if joined.is_empty() {
            joined
                .reserve(usize::try_from(announced).unwrap_or(FIRST_BYTES).min(FIRST_BYTES).max(first.len()));
            joined.extend_from_slice(&first);
        }
        joined.extend_from_slice(&part);
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}

fn too_large(limit: usize) -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("a body may have at most {}", size_in_words(limit)))
}

fn query_problem(rejection: &QueryRejection) -> Problem {
    let mut source = rejection.source();
    while let Some(error) = source {
        // The error type of serde_urlencoded, which axum reads queries with, is serde's own.
        if let Some(error) = error.downcast_ref::<serde_path_to_error::Error<serde::de::value::Error>>() {
            return Problem::invalid(vec![field_error(error.path(), &error.inner().to_string())]);
        }
        source = error.source();
    }
    Problem::invalid(vec![FieldError::new("", "invalid_value", rejection.body_text())])
}

fn path_problem(rejection: PathRejection) -> Problem {
    let PathRejection::FailedToDeserializePathParams(error) = rejection else {
        return Problem::internal(rejection);
    };
    let detail = match error.into_kind() {
        ErrorKind::Message(message) | ErrorKind::DeserializeError { message, .. } => message,
        ErrorKind::ParseErrorAtKey { key, expected_type, .. } => {
            format!("{key} in the path is not {expected_type}")
        }
        ErrorKind::ParseErrorAtIndex { expected_type, .. } | ErrorKind::ParseError { expected_type, .. } => {
            format!("a part of the path is not {expected_type}")
        }
        ErrorKind::InvalidUtf8InPathParam { key } => format!("{key} in the path is not UTF-8"),
        other => return Problem::internal(other),
    };
    Problem::new(Code::InvalidId, detail)
}
