//! Keyword search over tools: text to words, an inverted index per catalog, and ranking over several indexes at once.
//!
//! This module owns what a word is, what a tool's fields weigh and which tool comes first. It knows nothing of
//! catalogs, grants or sessions: an [`Index`] numbers its documents, and a [`Part`] says which candidate of the caller's
//! view each document is, or that it is not visible. It must not do I/O, read a clock or draw random numbers, and its answer
//! depends on the texts alone, never on the order in which they were added.

mod analyzer;
mod background;
mod concepts;
mod index;
mod names;
mod query;
mod schema;
mod search;
mod spelling;
mod stopwords;
mod terms;
#[cfg(test)]
mod tests;
#[cfg(all(test, feature = "data-tests"))]
mod tests_background;
#[cfg(test)]
mod tests_words;

pub use index::{Document, Index};
pub use search::{Hit, NONE, Outcome, Part, search};
