//! `/v1/setup/proposal` and `/v1/setup/preview`: what a setup could be, and what a draft of one costs.

use std::fmt;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::super::catalogs::ToolDefinition;
use super::{config_schema, input, limits};
use crate::core::id::Id;
use crate::core::keys::Principal;
use crate::core::proposal::Proposal;
use crate::http::body::RawBody;
use crate::http::layers::HttpContext;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::service::{PlanFields, PreviewAnswer, SetupInput, Toolrack};

/// A scope to set up, the project where one is named, with what stands in the place of what it has stored.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupPlanBody {
    /// The user whose catalog and config are used.
    #[schema(value_type = String, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    user: Id,
    /// The project whose catalog and config are joined with the user's. It is the scope that is set up then.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    project: Option<Id>,
    /// Tools in any common format in place of the scope's stored catalog, as in an upload.
    #[schema(value_type = Option<Vec<ToolDefinition>>)]
    tools: Option<Box<RawValue>>,
    /// A whole config in place of the scope's stored one.
    #[schema(schema_with = config_schema)]
    config: Option<Value>,
    /// As in an assembly. Default: `canonical`.
    #[schema(example = "canonical")]
    format: Option<String>,
    /// As in an assembly. Default: the config's.
    #[schema(example = "generic")]
    profile: Option<String>,
    /// The model's context window in tokens, 1000 to 10000000; out of range it is clamped. Default: the config's.
    #[schema(minimum = 1000, maximum = 10_000_000)]
    context_window: Option<f64>,
}

impl Scoped for SetupPlanBody {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (Some(&self.user), self.project.as_ref())
    }
}

impl fmt::Debug for SetupPlanBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The config may hold a key.
        let (user, project) = (&self.user, &self.project);
        f.debug_struct("SetupPlanBody").field("user", user).field("project", project).finish_non_exhaustive()
    }
}

impl SetupPlanBody {
    fn take(self, principal: &Principal) -> (SetupInput, PlanFields) {
        let Self { user, project, tools, config, format, profile, context_window } = self;
        let input = input(principal, (user, project), tools, config);
        (input, PlanFields { format, profile, context_window })
    }
}

/// Propose a setup
///
/// Groups (the server of the upload, else a common beginning of names, else shared words), core tools, toolsets, and the tokens of
/// an assembly with them. What the config has stays. The same tools give the same proposal. Nothing is stored: send `patch`, or what
/// you make of it, to the scope's config.
#[utoipa::path(post, path = "/v1/setup/proposal", operation_id = "propose_setup", tag = "configs",
    request_body = SetupPlanBody,
    responses((status = 200, description = "The proposal", body = Proposal)))]
pub(crate) async fn propose(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    Extension(principal): Extension<Principal>,
    body: RawBody,
) -> Result<Json<Proposal>, Problem> {
    let (draft, fields) = body.parse::<SetupPlanBody>(limits(&context))?.take(&principal);
    Ok(Json(service.propose_setup(draft, fields).await?))
}

/// Preview a setup
///
/// What assemblies cost and which listing they send, with the stored catalog and config or with a draft in their place. Nothing is
/// stored. An assembly without a session answers the same counts once the draft is written.
#[utoipa::path(post, path = "/v1/setup/preview", operation_id = "preview_setup", tag = "configs",
    request_body = SetupPlanBody,
    responses((status = 200, description = "What it costs", body = PreviewAnswer)))]
pub(crate) async fn preview(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    Extension(principal): Extension<Principal>,
    body: RawBody,
) -> Result<Json<PreviewAnswer>, Problem> {
    let (draft, fields) = body.parse::<SetupPlanBody>(limits(&context))?.take(&principal);
    Ok(Json(service.preview_setup(draft, fields).await?))
}
