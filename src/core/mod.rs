//! The pure core: every decision is a function of its inputs. No async, no I/O, no clock, no randomness.

pub mod assemble;
pub mod bridge;
pub mod calls;
pub mod catalog;
pub mod digest;
pub mod embedding;
pub mod format;
pub mod grant;
mod grouping;
pub mod id;
pub mod json;
pub mod lexical;
pub mod listing;
pub mod matches;
pub mod messages;
pub mod named;
pub mod policy;
pub mod ranking;
pub mod schema;
pub mod selector;
pub mod semantic;
pub mod text;
pub mod tokens;
pub mod tool;
pub mod warm;
pub mod warning;
