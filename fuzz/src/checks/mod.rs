//! What must hold whatever comes in: one check for each fuzz target, which panics where it does not hold. The tests of
//! Toolrack run the same checks over the committed corpus (`src/fuzz_corpus.rs`).
//!
//! Inputs are texts that a person can read and write: JSON, and where more is needed, parts with an empty line between.

mod bridge_calls;
mod lexical;
mod listing;
mod mending;
mod upload;

/// Looks at one input, and panics where something does not hold.
pub(crate) type Check = fn(&[u8]);

/// Each target with its check.
pub(crate) const CHECKS: [(&str, Check); 7] = [
    ("bridge_calls", bridge_calls::check),
    ("lexical_build", lexical::build),
    ("lexical_search", lexical::search),
    ("listing", listing::check),
    ("mending", mending::check),
    ("rerank_answer", crate::rerank::answer_check::check),
    ("upload", upload::check),
];

/// The part before the first empty line, and what is behind it.
pub(crate) fn parts(input: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(input).ok()?;
    Some(text.split_once("\n\n").unwrap_or((text, "")))
}
