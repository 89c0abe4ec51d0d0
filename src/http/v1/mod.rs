//! Version 1 of the API: per resource one file with its handlers and the documents that they take.
//!
//! What the documents say in their comments is the documentation of the API. Answers are the service's own.

pub mod fields;

pub mod assemble;
pub mod audit;
pub mod bridge;
pub mod calls;
pub mod catalogs;
pub mod configs;
pub mod describe;
pub mod effective;
pub mod keys;
pub mod limits;
pub mod mcp_servers;
pub mod reviews;
pub mod search;
pub mod sessions;
pub mod setup;

#[cfg(test)]
mod tests;
