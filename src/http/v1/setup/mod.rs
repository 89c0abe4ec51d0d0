//! `/v1/setup`: what administrators ask about users and projects, one file per resource.

pub mod apply;
pub mod import;
pub mod matcher_test;
pub mod mcp_tools;
pub mod overview;
pub mod proposal;
pub mod review;
pub mod skill;

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};

use crate::core::id::Id;
use crate::core::json::JsonLimits;
use crate::core::keys::Principal;
use crate::http::layers::HttpContext;
use crate::service::{Caller, SetupInput};

/// What a scope's config takes.
fn config_schema() -> RefOr<Schema> {
    let mut config = Ref::new("#/components/schemas/ScopeConfig");
    "A whole config in place of the scope's stored one.".clone_into(&mut config.description);
    config.into()
}

/// Limits of a body with tools, which are checked one by one.
fn limits(context: &HttpContext) -> JsonLimits {
    JsonLimits { opaque: &["tools"], ..JsonLimits::strict(context.limits().json_depth) }
}

/// What is stored of a user and a project, or what is sent in its place.
fn input(
    principal: &Principal,
    (user, project): (Id, Option<Id>),
    tools: Option<Box<RawValue>>,
    config: Option<Value>,
) -> SetupInput {
    let allowances = principal.allowances().cloned();
    let caller = Caller { user, project, session: None, limits: principal.limits(), allowances };
    SetupInput { caller, tools: tools.map(|tools| Arc::from(tools.get())), config }
}
