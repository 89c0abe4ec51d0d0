//! What an administrator can do about a fault of an endpoint: one sentence or two for each reason.
//!
//! The texts name settings of a matcher, and of the service where the operator has to act; they know no provider.

/// By reason, in the order of [`crate::service::FALLBACK_REASONS`].
const ADVICE: [(&str, &str); 18] = [
    ("timeout", "Raise `timeout_ms`, use a faster model, or send fewer tools (`max_documents`)."),
    (
        "unreachable",
        "Check host and port of `endpoint`, that the server runs, that this machine reaches it without a proxy, and that its \
         certificate is valid.",
    ),
    ("unauthorized", "Check `api_key`, and how it is sent: `auth_header` and `auth_scheme`."),
    ("payment_required", "Add credit to the account at the provider, or use another account."),
    (
        "not_found",
        "Check the path of `endpoint` and the name in `model`. The whole URL of the rerank route may be set, and `dialect` \
         by name.",
    ),
    (
        "rate_limited",
        "Wait a minute and test again; where it happens often, ask the provider for a higher limit.",
    ),
    (
        "redirected",
        "Often it is https in place of http, or another host; `curl -I` with the URL shows where it leads.",
    ),
    (
        "http_error",
        "The server's log says more; what a request may hold (`model`, `dialect`, `extra_body`) is in the provider's manual.",
    ),
    ("error_in_answer", "Check `model` and `api_key`; often the account may not use the model."),
    (
        "web_page",
        "Set `endpoint` to the address of the API. Where a gateway asks for a login, let this service pass it.",
    ),
    (
        "malformed_answer",
        "Check that `model` does what `kind` says (models for chat do neither) and that `endpoint` is its route; else set \
         `dialect` by name.",
    ),
    (
        "answer_too_large",
        "Keep the server from sending more than scores or vectors, for example in `extra_body`.",
    ),
    (
        "blocked_address",
        "Use a public https address, or let the operator allow this one (`rerank.allow_private`, `rerank.allowed_hosts`).",
    ),
    ("invalid_request", "Set what is named here anew."),
    ("circuit_open", "Write the matcher anew or wait, then search again."),
    ("overloaded", "Test again in a moment."),
    ("key_unreadable", "Set `api_key` anew."),
    ("vectors_unreadable", "Look into the service's log: its database does not answer."),
];

/// What to do about the fault of this reason.
pub(super) fn advice(reason: &str) -> &'static str {
    ADVICE.iter().find(|(known, _)| *known == reason).map_or("Look into the log.", |(_, advice)| advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::FALLBACK_REASONS;

    #[test]
    fn every_reason_has_its_advice() {
        let advised: Vec<&str> = ADVICE.iter().map(|(reason, _)| *reason).collect();
        assert_eq!(advised, FALLBACK_REASONS);
    }
}
