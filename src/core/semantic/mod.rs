//! Comparing by meaning: a static table of token vectors, and the vectors of tools and queries made from it.
//!
//! This module owns how a text becomes a vector and how like two of them are. No model runs: a text's vector is the sum of
//! the vectors of its tokens, which were fitted beforehand to those of a sentence-embedding model and are compiled in. It
//! knows nothing of catalogs, grants or keyword search: [`Vectors`] number their tools as they were added, and a [`Part`]
//! says which candidate of the caller's view each of them is. It must not do I/O, read a clock or draw random numbers;
//! sums are made in one order whatever that of the texts, and likeness is counted in whole numbers, so that it is the same
//! on every machine.
//!
//! `table` reads the file, `wordpiece` cuts a text into words of its vocabulary, `vectors` sums, shortens and compares.

mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_hostile;
#[cfg(test)]
mod tests_table;
mod vectors;
mod wordpiece;

pub use table::{Table, table};
pub use vectors::{Builder, Part, Query, ToolText, Vectors, Weights, scan};
