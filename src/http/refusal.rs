//! What the service refuses, as problems: one table.

use axum::http::{HeaderValue, header};

use crate::core::warning::FieldError;
use crate::http::problem::{Code, Problem};
use crate::service::{Error, Kind};

fn code_of(kind: Kind) -> Code {
    match kind {
        Kind::Invalid => Code::InvalidRequest,
        Kind::Unsupported => Code::Unsupported,
        Kind::Forbidden => Code::Forbidden,
        Kind::PreconditionFailed => Code::PreconditionFailed,
        Kind::Conflict => Code::Conflict,
        Kind::NotFound => Code::NotFound,
        Kind::UnknownTool => Code::UnknownTool,
        Kind::AmbiguousName => Code::AmbiguousName,
        Kind::UnknownToolsRef => Code::UnknownToolsRef,
        Kind::ToolsRefMismatch => Code::ToolsRefMismatch,
        Kind::EmptyUpload => Code::EmptyCatalogUpload,
        Kind::TooManyTools => Code::TooManyTools,
        Kind::StorageFull => Code::StorageFull,
        Kind::TooManySessions => Code::TooManySessions,
        Kind::TooManyScopes => Code::TooManyScopes,
        Kind::Unavailable | Kind::ReadOnly => Code::Unavailable,
        Kind::Internal => Code::Internal,
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let places = error.errors().to_vec();
        problem_of(&error, places)
    }
}

fn problem_of(error: &Error, places: Vec<FieldError>) -> Problem {
    let code = code_of(error.kind());
    let mut problem = if places.is_empty() {
        Problem::new(code, error.detail())
    } else {
        Problem::with_first(code, places)
    };
    if let Some(cause) = error.cause() {
        problem = problem.with_cause(cause);
    }
    if code == Code::Unavailable {
        // One second: what makes the service unavailable (a busy writer, a restart of the database) is short.
        problem = problem.with_header(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    problem
}

/// Where a list of the service stood in the body that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// As a list under this key.
    List(&'static str),
    /// As a single value under this key.
    Single(&'static str),
}

/// The problem of an error whose places are in the list `/key` of the service, with places in the body as it was sent.
pub(crate) fn placed(error: &Error, key: &str, sent: Sent) -> Problem {
    let place = |place: &FieldError| {
        let rest = place.pointer.strip_prefix('/').and_then(|pointer| pointer.strip_prefix(key));
        let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
            return place.clone();
        };
        let pointer = match sent {
            Sent::List(key) => format!("/{key}{rest}"),
            Sent::Single(key) => format!("/{key}{}", rest.strip_prefix("/0").unwrap_or(rest)),
        };
        FieldError { pointer, ..place.clone() }
    };
    problem_of(error, error.errors().iter().map(place).collect())
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn places_reach_the_caller_and_causes_do_not() {
        let problem = Problem::from(Error::invalid("/queries/0", "too_long", "at most 2000 characters"));
        assert_eq!(
            (problem.code(), problem.detail()),
            (Code::InvalidRequest, "/queries/0: at most 2000 characters")
        );
        assert_eq!(problem.errors().len(), 1);

        let problem = Problem::from(Error::internal("disk on fire"));
        assert_eq!((problem.code(), problem.cause()), (Code::Internal, Some("disk on fire")));
        assert!(!problem.detail().contains("fire"));
    }

    #[test]
    fn places_are_those_of_the_body_that_was_sent() {
        let pointer = |at: &str, sent| {
            placed(&Error::invalid(at, "too_long", "too long"), "queries", sent).errors()[0].pointer.clone()
        };
        assert_eq!(pointer("/queries/0", Sent::Single("query")), "/query");
        assert_eq!(pointer("/queries/1", Sent::List("query")), "/query/1");
        assert_eq!(pointer("/queries", Sent::List("queries")), "/queries");
        assert_eq!(pointer("/queriesx", Sent::Single("query")), "/queriesx");
        assert_eq!(pointer("/limit", Sent::Single("query")), "/limit");
    }

    #[test]
    fn only_what_will_pass_asks_for_another_try() {
        let answer = Problem::from(Error::new(Kind::Unavailable, "busy")).into_response();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()[header::RETRY_AFTER], "1");
        let answer = Problem::from(Error::new(Kind::Conflict, "no")).into_response();
        assert!(
            answer.status() == StatusCode::CONFLICT && !answer.headers().contains_key(header::RETRY_AFTER)
        );
    }
}
