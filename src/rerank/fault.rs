//! What can go wrong with an endpoint, in words for an administrator and in a closed list of codes.
//!
//! Owns the faults and their grouping. None of them carries any text of an endpoint or of a request.

use std::time::Duration;

use thiserror::Error;

/// Why an endpoint gave no usable ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RerankFault {
    /// The deadline passed before the whole answer was read.
    #[error("the endpoint did not answer in time")]
    Timeout,
    /// No connection, or one that broke: name lookup, refused, TLS, closed in the middle.
    #[error("the endpoint could not be reached")]
    Unreachable,
    /// An answer outside 2xx, or a 2xx answer that names such a status inside. Redirects are among them, because they
    /// are not followed.
    #[error("the endpoint answered with status {status}: {}", meaning(*.status))]
    Refused {
        status: u16,
        /// The pause that the server asks for, if it does.
        retry_after: Option<Duration>,
    },
    /// A 2xx answer that reports an error of the provider's own numbering.
    #[error("the endpoint answered with status 200 and an error inside: look into the provider's console")]
    Reported,
    /// A 2xx answer that is a web page.
    #[error("the endpoint answered with a web page: the URL leads to a login page, a proxy or a site")]
    WebPage,
    /// A 2xx answer without a usable ranking.
    #[error("the endpoint's answer cannot be used: {0}")]
    Malformed(Flaw),
    /// The answer is larger than echoed documents or vectors explain.
    #[error("the endpoint's answer is too large")]
    TooLarge,
    /// The address policy does not let this URL, or an address that its host resolves to, be called.
    #[error("the address policy does not allow the endpoint")]
    Forbidden,
    /// The request cannot be put on the wire.
    #[error("the request to the endpoint cannot be sent: {0}")]
    Unsendable(Unsendable),
    /// The endpoint failed before and is not asked for a while.
    #[error("the endpoint failed before and is not asked for a while")]
    CircuitOpen,
    /// More calls to this endpoint are under way than it is asked at once, and the wait was too long.
    #[error("too many calls to the endpoint are under way")]
    Overloaded,
}

/// What is wrong with a 2xx answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flaw {
    #[error("it is not JSON")]
    NotJson,
    #[error("it has no list of results in any known place")]
    NoRows,
    #[error("no result has a number as score")]
    NoScores,
    #[error("more than one in five results name no document that was sent")]
    BadIndexes,
    #[error("the server counts documents from 1, so scores cannot be told apart safely")]
    CountsFromOne,
    #[error("the list of scores is not as long as the list of documents")]
    WrongLength,
    #[error("it does not hold a vector of numbers for each text, all of one length")]
    Vectors,
}

/// What keeps a request from being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unsendable {
    #[error("the query is blank")]
    BlankQuery,
    #[error("the API key has characters that a header cannot carry")]
    Key,
    #[error("`auth_header` or `auth_scheme` is not a valid header")]
    AuthHeader,
    #[error("`extra_headers` holds a header that is not valid or may not be set")]
    ExtraHeader,
}

impl RerankFault {
    /// Every value of [`RerankFault::reason`], for metric tables and documentation.
    pub const REASONS: [&str; 16] = [
        "timeout",
        "unreachable",
        "unauthorized",
        "payment_required",
        "not_found",
        "rate_limited",
        "redirected",
        "http_error",
        "error_in_answer",
        "web_page",
        "malformed_answer",
        "answer_too_large",
        "blocked_address",
        "invalid_request",
        "circuit_open",
        "overloaded",
    ];

    /// A refusal that asks for no pause.
    pub(super) const fn refused(status: u16) -> Self {
        Self::Refused { status, retry_after: None }
    }

    /// Stable code of the fault, one of [`RerankFault::REASONS`]; fit for answers and metric labels.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            // 498 is Cohere's "invalid token".
            Self::Refused { status: 401 | 403 | 498, .. } => "unauthorized",
            Self::Refused { status: 402, .. } => "payment_required",
            Self::Refused { status: 404 | 405, .. } => "not_found",
            Self::Refused { status: 429, .. } => "rate_limited",
            Self::Refused { status: 300..=399, .. } => "redirected",
            Self::Refused { .. } => "http_error",
            Self::Reported => "error_in_answer",
            Self::WebPage => "web_page",
            Self::Malformed(_) => "malformed_answer",
            Self::TooLarge => "answer_too_large",
            Self::Forbidden => "blocked_address",
            Self::Unsendable(_) => "invalid_request",
            Self::CircuitOpen => "circuit_open",
            Self::Overloaded => "overloaded",
        }
    }

    /// Whether only a change of settings helps, so that asking again is pointless: a wrong key, an unpaid account, a
    /// path or model that is not there, a redirect, a blocked address, headers that cannot be sent.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 300..=399 | 401..=405 | 498),
            Self::Forbidden => true,
            Self::Unsendable(what) => *what != Unsendable::BlankQuery,
            _ => false,
        }
    }

    /// Whether what was detected about the endpoint may be outdated, so that it is better forgotten.
    pub fn doubts_detection(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 400 | 404 | 405 | 415 | 422),
            Self::Malformed(_) | Self::WebPage => true,
            _ => false,
        }
    }

    /// The pause that the server asks for: it wants no call before that.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// What an administrator can do about a status.
fn meaning(status: u16) -> &'static str {
    match status {
        300..=399 => "redirects are not followed, so set the URL that it leads to",
        400 | 422 => "it does not take this request; check dialect, model and extra_body",
        401 | 498 => "the API key is missing or wrong",
        402 => "the account has no credit",
        403 => "the API key may not use this model or endpoint",
        404 => "there is no such path or model",
        405 => "the path is not one for this",
        408 | 425 | 500..=599 => "the server is in trouble or overloaded",
        413 => "the request is too large for it",
        429 => "its rate limit is reached",
        _ => "it refuses the request",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<RerankFault> {
        let mut faults: Vec<RerankFault> = (100..=599).map(RerankFault::refused).collect();
        faults.extend([
            RerankFault::Timeout,
            RerankFault::Unreachable,
            RerankFault::Reported,
            RerankFault::WebPage,
            RerankFault::Malformed(Flaw::NotJson),
            RerankFault::TooLarge,
            RerankFault::Forbidden,
            RerankFault::CircuitOpen,
            RerankFault::Overloaded,
            RerankFault::Unsendable(Unsendable::Key),
        ]);
        faults
    }

    #[test]
    fn every_reason_is_in_the_closed_list() {
        let mut reasons: Vec<_> = all().iter().map(RerankFault::reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let mut listed = RerankFault::REASONS.to_vec();
        listed.sort_unstable();
        assert_eq!(reasons, listed);
    }

    #[test]
    fn what_settings_can_mend_is_told_from_what_passes() {
        for status in [301, 302, 307, 308, 401, 402, 403, 404, 405, 498] {
            assert!(RerankFault::refused(status).is_configuration(), "{status}");
        }
        for status in [400, 408, 413, 422, 424, 425, 429, 500, 503, 529] {
            assert!(!RerankFault::refused(status).is_configuration(), "{status}");
        }
        assert!(RerankFault::Forbidden.is_configuration());
        assert!(RerankFault::Unsendable(Unsendable::Key).is_configuration());
        assert!(!RerankFault::Unsendable(Unsendable::BlankQuery).is_configuration());
        assert!(!RerankFault::Timeout.is_configuration());
        assert!(RerankFault::refused(422).doubts_detection() && RerankFault::WebPage.doubts_detection());
        assert!(!RerankFault::refused(429).doubts_detection() && !RerankFault::Timeout.doubts_detection());
    }
}
