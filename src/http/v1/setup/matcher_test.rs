//! `/v1/setup/matcher-test`: trying the settings of a matcher before they are stored.

use std::fmt;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};

use crate::core::id::Id;
use crate::core::keys::Principal;
use crate::http::body::ApiJson;
use crate::http::layers::HttpContext;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::service::{Caller, MatcherTestAnswer, MatcherTestRequest, Toolrack};

/// What is left of a request's time for reading and answering it.
const MARGIN_PARTS: u32 = 20;

/// Settings of a matcher to try.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"user": "ada", "matcher": {"endpoint": "https://rerank.example/v1/rerank"}}))]
pub struct MatcherTestBody {
    /// The user whose tools are ranked, and whose stored key may be used.
    #[schema(value_type = String, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    user: Id,
    /// The project whose tools and stored key are joined with the user's; its key goes before the user's.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    project: Option<Id>,
    #[schema(schema_with = matcher_schema)]
    matcher: Value,
    /// What to look for in the sample, at most 2000 characters (see `GET /v1/limits`). Default: a sample sentence.
    query: Option<String>,
}

impl Scoped for MatcherTestBody {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (Some(&self.user), self.project.as_ref())
    }
}

impl fmt::Debug for MatcherTestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings may hold a key.
        let (user, project) = (&self.user, &self.project);
        f.debug_struct("MatcherTestBody")
            .field("user", user)
            .field("project", project)
            .finish_non_exhaustive()
    }
}

/// What a config takes.
fn matcher_schema() -> RefOr<Schema> {
    let about = "As in a config. An `api_key` that is absent or `{\"set\": true}` means the stored one, if that belongs to \
                 the scheme, host and port of this endpoint.";
    let mut keys = Ref::new("#/components/schemas/ScopeConfig/properties/matcher");
    about.clone_into(&mut keys.description);
    keys.into()
}

/// Try the settings of a matcher
///
/// Nothing is stored. Asks the endpoint with a control pair, then lets it rank a sample: the tools that this user sees and
/// the keyword ranking finds best, at most 30, or a built-in sample where there are none. Settings that a config would refuse
/// are a 422; whatever the endpoint does is an answer. Where it ranks, searches with the same settings ask it again at once.
#[utoipa::path(post, path = "/v1/setup/matcher-test", operation_id = "test_matcher", tag = "configs",
    request_body = MatcherTestBody,
    responses((status = 200, description = "What the endpoint did", body = MatcherTestAnswer)))]
pub(crate) async fn test_matcher(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    Extension(principal): Extension<Principal>,
    ApiJson(body): ApiJson<MatcherTestBody>,
) -> Result<Json<MatcherTestAnswer>, Problem> {
    let MatcherTestBody { user, project, matcher, query } = body;
    let allowances = principal.allowances().cloned();
    let caller = Caller { user, project, session: None, limits: principal.limits(), allowances };
    let within = within(context.limits().request_timeout);
    Ok(Json(service.test_matcher(MatcherTestRequest { caller, draft: None, matcher, query, within }).await?))
}

/// The time of a test, so that a slow endpoint is told as such rather than as a request that took too long.
fn within(request_timeout: Duration) -> Duration {
    request_timeout - request_timeout / MARGIN_PARTS
}
