//! Keyword search over tools: text to words, an inverted index per catalog, and ranking over several indexes at once.
//!
//! This module owns what a word is, what a tool's fields weigh and which tool comes first. It knows nothing of
//! catalogs, grants or sessions: an [`Index`] numbers its documents, and a [`Part`] says which candidate of the caller's
//! view each document is, or that it is not visible. It must not do I/O, read a clock or draw random numbers, and its answer
//! depends on the texts alone, never on the order in which they were added.
//!
//! A text becomes tokens (`analyzer`, `languages`), a tool an entry of the `index` (`schema`, `names`, `spelling`), a query
//! units with forms (`query`, `expand`, `directives`), which `run` adds up per candidate and `search` ranks; `explain` tells
//! the parts of a score. Two data files are read once: `background.txt` (how common words are among tools at large) and
//! `lexicon/*.txt` (synonyms, abbreviations, paraphrases, other languages, names of services, verbs of actions).

mod addresses;
mod analyzer;
mod background;
mod directives;
mod expand;
mod explain;
mod fusion;
mod index;
mod irregular;
mod languages;
mod lexicon;
mod names;
mod overview;
mod query;
mod run;
mod schema;
mod search;
mod spelling;
mod stopwords;
mod stuffing;
mod terms;
#[cfg(test)]
mod tests;
#[cfg(all(test, feature = "data-tests"))]
mod tests_background;
#[cfg(test)]
mod tests_directives;
#[cfg(test)]
mod tests_hostile;
#[cfg(test)]
mod tests_lexicon;
#[cfg(test)]
mod tests_words;
mod vocabulary;

pub use expand::translated;
pub use explain::{Explanation, Matched, TermScore, explain};
pub use index::{Document, Index};
pub use lexicon::prepare;
pub use schema::parameter_names;
pub use search::{Hit, Likeness, NONE, Outcome, Part, UNSEEN, Unmet, search, search_with};
pub use vocabulary::{Vocabulary, Word};
