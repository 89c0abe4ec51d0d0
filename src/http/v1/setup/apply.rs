//! `/v1/setup/apply`: a config and a catalog in one step.

use std::fmt;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{config_schema, limits};
use crate::core::id::{Id, Scope};
use crate::http::body::{ApiQuery, RawBody};
use crate::http::by::By;
use crate::http::etag::{self, IF_MATCH, IfMatch};
use crate::http::layers::HttpContext;
use crate::http::problem::{Code, Problem};
use crate::http::scoped::Scoped;
use crate::http::v1::fields::{WriteQuery, missing};
use crate::service::{DraftBase, SetupApplied, SetupApply, Toolrack};

/// A setup to apply.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"user": "ada", "config": {"core": ["@files"]}}))]
pub struct SetupApplyBody {
    /// The user that is set up, unless a project is named.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    user: Option<Id>,
    /// The project that is set up.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    project: Option<Id>,
    /// Absent: the config stays as it is.
    #[schema(schema_with = config_schema)]
    config: Option<Value>,
    /// All tools of the catalog, as `PUT …/catalog` takes them; absent: the catalog stays as it is.
    #[schema(value_type = Option<Vec<Object>>, min_items = 1)]
    tools: Option<Box<RawValue>>,
}

impl Scoped for SetupApplyBody {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (self.user.as_ref(), self.project.as_ref())
    }
}

impl fmt::Debug for SetupApplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The config may hold a key.
        let (user, project) = (&self.user, &self.project);
        f.debug_struct("SetupApplyBody").field("user", user).field("project", project).finish_non_exhaustive()
    }
}

/// Apply a setup
///
/// Writes the config and the catalog of a project, or of a user where none is named, in one transaction: both, or nothing. With
/// `dry_run` it tells what would change. The ETag stands for both (`"<config revision>-<catalog version>"`); with it in
/// `If-Match` nothing is written over what somebody else stored in the meantime.
#[utoipa::path(post, path = "/v1/setup/apply", operation_id = "apply_setup", tag = "configs",
    params(WriteQuery, ("If-Match" = Option<String>, Header, description = IF_MATCH)),
    request_body = SetupApplyBody,
    responses(
        (status = 200, description = "What changed", body = SetupApplied, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 409), (status = 412),
    ))]
pub(crate) async fn apply(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    ApiQuery(query): ApiQuery<WriteQuery>,
    By(actor): By,
    expected: IfMatch,
    body: RawBody,
) -> Result<Response, Problem> {
    let SetupApplyBody { user, project, config, tools } = body.parse(limits(&context))?;
    let scope = match (project, user) {
        (Some(project), _) => Scope::Project(project),
        (None, Some(user)) => Scope::User(user),
        (None, None) => return Err(missing("user", "send `user` or `project`".to_owned())),
    };
    if config.is_none() && tools.is_none() {
        return Err(missing("config", "send `config`, `tools` or both".to_owned()));
    }
    let never = || Problem::new(Code::PreconditionFailed, "no setup ever had the ETag of If-Match");
    let expected = expected.version().map(|tag| DraftBase::from_text(tag).ok_or_else(never)).transpose()?;
    let tools = tools.map(|tools| Arc::from(tools.get()));
    let apply = SetupApply { config, tools, expected, dry_run: query.dry_run() };
    let applied = service.apply_setup(&actor, &scope, apply).await?;
    Ok(([etag::header_of(applied.version().to_text())?], Json(applied)).into_response())
}
