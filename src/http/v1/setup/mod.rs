//! `/v1/setup`: what administrators ask about users and projects, one file per resource.

pub mod apply;
pub mod import;
pub mod matcher_test;
pub mod mcp_tools;
pub mod overview;
