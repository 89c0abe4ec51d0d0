//! What a use case answers instead of a result, in terms of the service.

use std::fmt;
use std::sync::Arc;

use crate::core::warning::{FieldError, told};
use crate::store::StoreError;

const AWAY: &str = "the database does not answer";

const INTERNAL: &str = "the request failed inside the service";

/// What kind of refusal or failure it is; the outermost layer turns it into a status and a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    Unsupported,
    /// The role of the key may not do this.
    Forbidden,
    PreconditionFailed,
    Conflict,
    /// What the path names does not exist.
    NotFound,
    UnknownTool,
    AmbiguousName,
    UnknownToolsRef,
    ToolsRefMismatch,
    EmptyUpload,
    TooManyTools,
    /// There is no room for a write.
    StorageFull,
    TooManySessions,
    TooManyScopes,
    Unavailable,
    /// The database takes no writes at present.
    ReadOnly,
    Internal,
}

/// A refusal or a failure, with what the caller may know of it. Cheap to clone: builds that several requests wait for
/// share it.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: Kind,
    detail: String,
    errors: Vec<FieldError>,
    cause: Option<String>,
    /// The database does not answer.
    is_away: bool,
}

impl Error {
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self::of(kind, told(&detail.into()), Vec::new())
    }

    fn of(kind: Kind, detail: String, errors: Vec<FieldError>) -> Self {
        Self(Arc::new(Inner { kind, detail, errors, cause: None, is_away: false }))
    }

    /// The database does not answer.
    pub(super) fn away() -> Self {
        let detail = AWAY.to_owned();
        let (kind, errors) = (Kind::Unavailable, Vec::new());
        Self(Arc::new(Inner { kind, detail, errors, cause: None, is_away: true }))
    }

    /// Whether it is that the database does not answer: lost, unreachable or silent.
    pub(super) fn is_away(&self) -> bool {
        self.0.is_away
    }

    /// See [`StoreError::is_outage`].
    pub(crate) fn is_outage(&self) -> bool {
        self.0.is_away || self.0.kind == Kind::ReadOnly
    }

    /// A refusal with the places of the faults.
    pub fn with_errors(kind: Kind, errors: Vec<FieldError>) -> Self {
        let detail = errors.first().map_or_else(String::new, |first| first.detail.clone());
        Self::of(kind, detail, errors)
    }

    /// One fault of the request body.
    pub fn invalid(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self::with_errors(Kind::Invalid, vec![FieldError::new(pointer, code, detail)])
    }

    /// A value that is reserved for a later version.
    pub fn unsupported(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::with_errors(Kind::Unsupported, vec![FieldError::new(pointer, "unsupported", detail)])
    }

    pub fn internal(cause: impl fmt::Display) -> Self {
        Self(Arc::new(Inner {
            kind: Kind::Internal,
            detail: INTERNAL.to_owned(),
            errors: Vec::new(),
            cause: Some(cause.to_string()),
            is_away: false,
        }))
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    pub fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// For the log only.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.cause.as_deref().unwrap_or(&self.0.detail))
    }
}

impl std::error::Error for Error {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (kind, detail) = match &error {
            StoreError::Conflict => (Kind::Conflict, "another write came first; read again and retry"),
            StoreError::Closed => (Kind::Unavailable, "the service is stopping"),
            StoreError::Busy => (Kind::Unavailable, "the database has too much to do; try again shortly"),
            StoreError::Full => (
                Kind::StorageFull,
                "nothing was written: the database has no room (its disk is full, or `database.max_bytes` is reached)",
            ),
            StoreError::Away(_) => (Kind::Unavailable, AWAY),
            StoreError::Database(_) => (Kind::Unavailable, "the database failed; try again shortly"),
            StoreError::ReadOnly => (Kind::ReadOnly, "the database is a standby, which takes no writes"),
            StoreError::Refused(_) | StoreError::Panicked => (Kind::Internal, INTERNAL),
            StoreError::TooMany => (Kind::Invalid, "there are too many of these already"),
            StoreError::Corrupt(_) => (Kind::Internal, "a stored row cannot be read"),
        };
        Self(Arc::new(Inner {
            kind,
            detail: detail.to_owned(),
            errors: Vec::new(),
            cause: Some(error.to_string()),
            is_away: matches!(error, StoreError::Away(_)),
        }))
    }
}

impl From<Arc<Self>> for Error {
    fn from(error: Arc<Self>) -> Self {
        (*error).clone()
    }
}
