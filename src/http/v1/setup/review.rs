//! `/v1/setup/review`: every tool with what makes it hard to find or to call.

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
use crate::core::remarks::Kind;
use crate::http::body::RawBody;
use crate::http::layers::HttpContext;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::service::{ReviewAnswer, ReviewQuery, Toolrack};

/// Which tools to review, and which of them to tell.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupReviewBody {
    /// The user whose tools are reviewed.
    #[schema(value_type = String, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    user: Id,
    /// The project whose tools and config are joined with the user's. It is the scope that is set up then.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    project: Option<Id>,
    /// Tools in any common format in place of the scope's stored catalog, as in an upload.
    #[schema(value_type = Option<Vec<ToolDefinition>>)]
    tools: Option<Box<RawValue>>,
    /// A whole config in place of the scope's stored one.
    #[schema(schema_with = config_schema)]
    config: Option<Value>,
    /// The provider whose limits are looked at. Default: OpenAI's, Anthropic's, Gemini's and the config's own.
    #[schema(example = "generic")]
    profile: Option<String>,
    /// Tools with a remark of one of these kinds. Absent or empty: all tools.
    #[schema(value_type = Option<Vec<Kind>>)]
    kinds: Option<Vec<String>>,
    /// Tools of one group, as the config groups them.
    group: Option<String>,
    /// Part of a name, a group or the beginning of a description, whatever the case; at most 200 characters.
    query: Option<String>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// Tools of a page, 1 to 1000; out of range it is clamped. Default: 100.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

impl Scoped for SetupReviewBody {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (Some(&self.user), self.project.as_ref())
    }
}

impl fmt::Debug for SetupReviewBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The config may hold a key.
        let (user, project) = (&self.user, &self.project);
        f.debug_struct("SetupReviewBody")
            .field("user", user)
            .field("project", project)
            .finish_non_exhaustive()
    }
}

/// Review the tools of a scope
///
/// Every tool, also those that the config hides, with remarks: what makes it hard to find or to call, what a provider does not take,
/// what should be read before agents get it. Worst first. Nothing is stored.
#[utoipa::path(post, path = "/v1/setup/review", operation_id = "review_setup", tag = "configs",
    request_body = SetupReviewBody,
    responses((status = 200, description = "A page of tools with their remarks", body = ReviewAnswer)))]
pub(crate) async fn review(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    Extension(principal): Extension<Principal>,
    body: RawBody,
) -> Result<Json<ReviewAnswer>, Problem> {
    let SetupReviewBody { user, project, tools, config, profile, kinds, group, query, cursor, limit } =
        body.parse(limits(&context))?;
    let draft = input(&principal, (user, project), tools, config);
    let kinds = kinds.unwrap_or_default();
    let query = ReviewQuery { profile, kinds, group, query, cursor, limit, ..ReviewQuery::default() };
    Ok(Json(service.review_setup(draft, query).await?))
}
