//! `/v1/setup`: what administrators ask about users and projects, one file per resource.

pub mod apply;
pub mod matcher_test;
//! `/v1/setup`: what the setup of a user or project asks before anything is stored.
pub mod mcp_tools;
pub mod overview;
