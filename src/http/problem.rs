//! Problem documents (RFC 9457): everything that the HTTP interface answers when it does not do what was asked.
//!
//! Owns the one table of error codes. A problem has a detail for the caller and a cause for the log; the cause never
//! goes over the wire. Must not know services or handlers.

use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::core::json::{FaultCode, JsonFault};
use crate::core::warning::FieldError;

/// The media type of problem documents.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Where the table of codes is served; the `type` of a problem is this path with the code as its fragment.
pub const ERRORS_PAGE: &str = "/docs/errors";

macro_rules! codes {
    ($($variant:ident $code:literal $status:ident $title:literal $help:literal)*) => {
        /// Every error code of the API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// All codes, in the order of the error page.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            const fn entry(self) -> Entry {
                match self {
                    $(Self::$variant => Entry {
                        code: $code,
                        status: StatusCode::$status,
                        title: $title,
                        help: $help,
                    },)*
                }
            }
        }
    };
}

struct Entry {
    code: &'static str,
    status: StatusCode,
    title: &'static str,
    help: &'static str,
}

codes! {
    MalformedJson "malformed_json" BAD_REQUEST "The body is not JSON"
        "The detail tells line and column. NaN, Infinity, comments and trailing commas are not JSON."
    InvalidUtf8 "invalid_utf8" BAD_REQUEST "The body is not UTF-8"
        "Send JSON as UTF-8, without a byte order mark."
    DuplicateKey "duplicate_key" BAD_REQUEST "A key occurs twice in one object"
        "Programs disagree on which of the two counts, so neither is taken. Remove one; the pointer names it."
    TooDeep "too_deep" BAD_REQUEST "The body is nested too deeply"
        "GET /v1/limits tells how many arrays and objects may stand inside each other."
    InvalidText "invalid_text" BAD_REQUEST "A string is not Unicode text"
        "A \\u escape holds half of a surrogate pair, often because a text was cut in the middle of an emoji."
    NulCharacter "nul_character" BAD_REQUEST "A string holds U+0000"
        "The null character cannot be stored by every database. Remove it."
    Unauthorized "unauthorized" UNAUTHORIZED "A key is needed"
        "Send 'Authorization: Bearer KEY'. This is checked before anything else, also for paths that do not exist. The detail \
         tells a misspelt key from an unknown one, and its holder that a key has expired or was revoked."
    Forbidden "forbidden" FORBIDDEN "The key does not allow this"
        "The key is known, but its role may not ask this, or not what the pointer names. What its users or projects do not \
         cover is answered as not_found. A server without keys (--no-auth) answers pages of this machine alone, and of \
         server.cors_origins."
    NotFound "not_found" NOT_FOUND "Nothing stands at this path"
        "Check the path against /docs. A user or project that the key does not cover is answered in the same way, wherever \
         the request names it."
    UnknownTool "unknown_tool" NOT_FOUND "No tool of this name"
        "The tool is not in the catalog, or not in what this request may use. The detail may suggest close names."
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED "The path does not take this method"
        "The Allow header lists the methods that it takes."
    Conflict "conflict" CONFLICT "Something else changed the same thing"
        "Another write came first. Read the present state and send the change again."
    PreconditionFailed "precondition_failed" PRECONDITION_FAILED "If-Match does not match"
        "The stored document is not the one that the ETag names. Read it again, apply the change and retry."
    UnknownToolsRef "unknown_tools_ref" PRECONDITION_FAILED "This tools_ref is not known"
        "It is expired, was never stored, or belongs to another user. Send the tools again with an assembly."
    PayloadTooLarge "payload_too_large" PAYLOAD_TOO_LARGE "The body is too large"
        "GET /v1/limits tells the limit. A larger catalog can be sent in parts with PATCH."
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE "The body has the wrong type"
        "Send 'Content-Type: application/json', as it is or with 'Content-Encoding: gzip'."
    InvalidRequest "invalid_request" UNPROCESSABLE_ENTITY "The request does not fit the schema"
        "errors[] lists what is wrong, each with a JSON pointer into the body (for query parameters: into the \
         parameters seen as one object). Unknown keys are refused, so that a misspelt one is noticed."
    InvalidId "invalid_id" UNPROCESSABLE_ENTITY "This is not an identifier"
        "Identifiers of users, projects and sessions are 1 to 128 characters of A-Z a-z 0-9 . _ @ : -"
    Unsupported "unsupported" UNPROCESSABLE_ENTITY "This is not supported yet"
        "The name is reserved for a later version. Leave it out or send its default value."
    EmptyCatalogUpload "empty_catalog_upload" UNPROCESSABLE_ENTITY "No tool of the upload could be used"
        "Every entry was quarantined; errors[] tells why. To empty a catalog on purpose, use DELETE."
    TooManyTools "too_many_tools" UNPROCESSABLE_ENTITY "The catalog would hold too many tools"
        "GET /v1/limits tells the limit. Nothing of the upload was stored."
    TooManySessions "too_many_sessions" UNPROCESSABLE_ENTITY "The user has too many sessions"
        "GET /v1/limits tells the limit. Delete sessions that are not needed, or wait until idle ones end; nothing was stored."
    TooManyScopes "too_many_scopes" UNPROCESSABLE_ENTITY "The key has begun too many users and projects"
        "GET /v1/limits tells how many one setup key can begin to write for. Those that it began can still be written."
    ToolsRefMismatch "tools_ref_mismatch" UNPROCESSABLE_ENTITY "The tools_ref is not the session's"
        "A request of a session may name only the tools_ref of its last assembly. Leave it out, or assemble again."
    AmbiguousName "ambiguous_name" UNPROCESSABLE_ENTITY "Several tools have this name"
        "Use the qualified name, <group>__<name>; the detail lists the candidates."
    RateLimited "rate_limited" TOO_MANY_REQUESTS "Too many requests with this key"
        "Wait as long as Retry-After tells. The RateLimit headers of every answer tell what is left."
    Overloaded "overloaded" SERVICE_UNAVAILABLE "Too many requests at the same time"
        "Neither a slot nor a place in the queue was free, so nothing was done. Try again after the time in Retry-After."
    Timeout "timeout" SERVICE_UNAVAILABLE "The request took too long"
        "Nothing was left half done: a write either happened or did not. Try again, with a smaller body if it was large."
    Unavailable "unavailable" SERVICE_UNAVAILABLE "The service cannot answer now"
        "It is starting, stopping, or its database does not answer. Try again shortly; /readyz tells more."
    StorageFull "storage_full" INSUFFICIENT_STORAGE "There is no room for this write"
        "Nothing of it was stored. The disk is full, or the database has the size that database.max_bytes allows. Reads and \
         searches go on; the operator has to make room."
    Internal "internal" INTERNAL_SERVER_ERROR "Something went wrong inside the service"
        "This is a fault of the service. The log has the cause under the request_id."
}

impl Code {
    /// The code on the wire, for example `not_found`.
    pub const fn as_str(self) -> &'static str {
        self.entry().code
    }

    pub const fn status(self) -> StatusCode {
        self.entry().status
    }

    /// One short line, the same for every problem of this code.
    pub const fn title(self) -> &'static str {
        self.entry().title
    }

    /// What the caller can do about it, for the error page.
    pub const fn help(self) -> &'static str {
        self.entry().help
    }

    /// The code that says most about an answer of this status that no handler of ours wrote.
    pub fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::PRECONDITION_FAILED => Self::PreconditionFailed,
            StatusCode::PAYLOAD_TOO_LARGE => Self::PayloadTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            StatusCode::TOO_MANY_REQUESTS => Self::RateLimited,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            StatusCode::INSUFFICIENT_STORAGE => Self::StorageFull,
            other if other.is_server_error() => Self::Internal,
            _ => Self::InvalidRequest,
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl From<FaultCode> for Code {
    fn from(code: FaultCode) -> Self {
        match code {
            FaultCode::MalformedJson => Self::MalformedJson,
            FaultCode::DuplicateKey => Self::DuplicateKey,
            FaultCode::TooDeep => Self::TooDeep,
            FaultCode::InvalidText => Self::InvalidText,
            FaultCode::NulCharacter => Self::NulCharacter,
            FaultCode::InvalidUtf8 => Self::InvalidUtf8,
        }
    }
}

/// What is sent when a request is refused or fails (RFC 9457), as `application/problem+json`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemDocument<'a> {
    /// A page about this kind of problem: `/docs/errors#<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// One short line, the same for every problem of this code.
    pub title: &'a str,
    /// The HTTP status, repeated.
    #[schema(example = 422)]
    pub status: u16,
    /// What is wrong with this request, in a sentence or two.
    pub detail: &'a str,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<&'a str>,
    /// The stable code that programs can rely on; the error page lists all of them.
    #[schema(value_type = String, example = "invalid_request")]
    pub code: Code,
    /// The value of the `x-request-id` header, under which the log has this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    /// The single faults, where the problem has places in the body; absent if there are none.
    #[serde(skip_serializing_if = "<[FieldError]>::is_empty")]
    pub errors: &'a [FieldError],
}

/// Why a request is not answered as asked. Small, so that it can be the error of any `Result`.
#[derive(Clone)]
pub struct Problem(Box<Inner>);

#[derive(Clone)]
struct Inner {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    headers: Vec<(HeaderName, HeaderValue)>,
    cause: Option<String>,
}

impl Problem {
    /// A problem with its detail for the caller: what is wrong, and what would be right.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let mut headers = Vec::new();
        if code == Code::Unauthorized {
            headers.push((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        Self(Box::new(Inner { code, detail: detail.into(), errors: Vec::new(), headers, cause: None }))
    }

    /// 404 for a path that leads nowhere, and in the same words for what the key of the request may not know of.
    pub fn nothing_here() -> Self {
        Self::new(Code::NotFound, "there is nothing at this path")
    }

    /// 405; the Allow header is the caller's to add.
    pub fn method_not_allowed(method: &Method) -> Self {
        Self::new(Code::MethodNotAllowed, format!("this path does not take {method}"))
    }

    /// 422 `invalid_request` with the faults of the body; the detail repeats the first one.
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        Self::with_first(Code::InvalidRequest, errors)
    }

    /// A problem of this code whose detail repeats the first of its errors.
    pub fn with_first(code: Code, errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [] => code.title().to_owned(),
            [only] => at(only),
            [first, rest @ ..] => format!("{} (and {} more, see errors)", at(first), rest.len()),
        };
        Self::new(code, detail).with_errors(errors)
    }

    /// 500: the caller learns nothing but the request id, the log gets the cause.
    pub fn internal(cause: impl fmt::Display) -> Self {
        Self::new(Code::Internal, "The request failed inside the service; its log has the cause.")
            .with_cause(cause)
    }

    /// 503: the caller learns that trying again may help, the log gets the cause.
    pub fn unavailable(cause: impl fmt::Display) -> Self {
        Self::new(Code::Unavailable, "The service cannot answer at the moment; try again shortly.")
            .with_cause(cause)
    }

    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.0.errors = errors;
        self
    }

    /// Text for the log only.
    #[must_use]
    pub fn with_cause(mut self, cause: impl fmt::Display) -> Self {
        self.0.cause = Some(cause.to_string());
        self
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    pub fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// What the answer says in its headers.
    pub fn headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.0.headers.iter().map(|(name, value)| (name, value))
    }

    /// What the log should say beside the detail.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// The document, with what only the outermost layer knows.
    pub fn document<'a>(
        &'a self,
        instance: Option<&'a str>,
        request_id: Option<&'a str>,
    ) -> ProblemDocument<'a> {
        let code = self.0.code;
        ProblemDocument {
            kind: format!("{ERRORS_PAGE}#{}", code.as_str()),
            title: code.title(),
            status: code.status().as_u16(),
            detail: &self.0.detail,
            instance,
            code,
            request_id,
            errors: &self.0.errors,
        }
    }

    pub(crate) fn body(&self, instance: Option<&str>, request_id: Option<&str>) -> Body {
        // A struct of strings and numbers always serialises; an empty body would still carry the status.
        Body::from(serde_json::to_vec(&self.document(instance, request_id)).unwrap_or_default())
    }
}

fn at(error: &FieldError) -> String {
    if error.pointer.is_empty() {
        error.detail.clone()
    } else {
        format!("{}: {}", error.pointer, error.detail)
    }
}

/// The problem behind an answer, left in its extensions for the layer that adds path and request id.
#[derive(Clone)]
pub(crate) struct Attached(pub(crate) Arc<Problem>);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.body(None, None));
        *response.status_mut() = self.0.code.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        for (name, value) in &self.0.headers {
            headers.append(name, value.clone());
        }
        response.extensions_mut().insert(Attached(Arc::new(self)));
        response
    }
}

impl From<JsonFault> for Problem {
    fn from(fault: JsonFault) -> Self {
        let error = FieldError::new(fault.pointer, fault.code.as_str(), fault.detail);
        Self::with_first(fault.code.into(), vec![error])
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Problem")
            .field("code", &self.0.code.as_str())
            .field("detail", &self.0.detail)
            .field("errors", &self.0.errors)
            .field("cause", &self.0.cause)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique_errors_with_texts() {
        let codes: HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.status().is_client_error() || code.status().is_server_error());
            assert!(!code.title().is_empty() && !code.help().is_empty());
            assert!(
                code.as_str()
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            );
        }
    }

    #[test]
    fn documents_have_the_fields_of_the_standard() {
        let problem = Problem::invalid(vec![FieldError::new("/a", "wrong_type", "expected a string")])
            .with_cause("for the log only");
        let json = serde_json::to_value(problem.document(Some("/v1/x"), Some("r1"))).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "type": "/docs/errors#invalid_request",
                "title": "The request does not fit the schema",
                "status": 422,
                "detail": "/a: expected a string",
                "instance": "/v1/x",
                "code": "invalid_request",
                "request_id": "r1",
                "errors": [{"pointer": "/a", "code": "wrong_type", "detail": "expected a string"}],
            })
        );
    }
}
