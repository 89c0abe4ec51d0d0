//! `/v1/setup`: what administrators ask about users and projects, one file per resource.

pub mod apply;
pub mod import;
pub mod matcher_test;
pub mod mcp_tools;
pub mod overview;
pub mod proposal;
pub mod review;

use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};

/// What a scope's config takes.
fn config_schema() -> RefOr<Schema> {
    let mut config = Ref::new("#/components/schemas/ScopeConfig");
    "A whole config in place of the scope's stored one.".clone_into(&mut config.description);
    config.into()
}
