//! `/catalog/reviews` of a user or project: uploaded versions of tools that wait for an administrator.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use super::fields::{NoQuery, ScopePath};
use crate::core::digest::Digest;
use crate::http::body::{ApiJson, ApiQuery};
use crate::http::by::By;
use crate::http::etag::{self, IF_MATCH, IfMatch};
use crate::http::problem::Problem;
use crate::http::scoped::names_nobody;
use crate::service::{HeldTools, ReviewDone, ReviewedTool, Toolrack, Verdict};

/// Where a list of held tools begins.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HeldQuery {
    /// The stored name of the last tool that was listed; only those behind it are.
    after: Option<String>,
}

/// A version of a tool that was looked at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LookedAt {
    /// The group of the upload.
    group: Option<String>,
    /// Stored, wire or uploaded name.
    name: String,
    /// `held_digest` of the version that was looked at.
    #[schema(value_type = String, pattern = "^[0-9a-fA-F]{32}$")]
    digest: Digest,
}

/// Versions of tools to approve or to reject.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewBody {
    tools: Vec<LookedAt>,
}

names_nobody!(HeldQuery, ReviewBody);

impl ReviewBody {
    fn reviewed(self) -> Vec<ReviewedTool> {
        let reviewed = |LookedAt { group, name, digest }| ReviewedTool { group, name, digest };
        self.tools.into_iter().map(reviewed).collect()
    }
}

/// List held tools
///
/// With `require_review_on_change`: tools that an upload changed. Each stays in use in its approved version, until the one that
/// waits is approved, rejected, or overtaken by another upload.
#[utoipa::path(get, path = "/catalog/reviews", operation_id = "get_scope_reviews", tag = "catalogs",
    params(HeldQuery),
    responses((status = 200, description = "The tools that wait, in both versions", body = HeldTools)))]
pub(crate) async fn list(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    ApiQuery(query): ApiQuery<HeldQuery>,
) -> Result<Json<HeldTools>, Problem> {
    Ok(Json(service.held_tools(&scope, query.after).await?))
}

/// Approve held tools
///
/// Puts each held version in the place of the one in use, in one transaction. A 409 tells which of them wait no more as they were
/// looked at; then none is approved.
#[utoipa::path(post, path = "/catalog/reviews/approve", operation_id = "approve_scope_tools", tag = "catalogs",
    params(("If-Match" = Option<String>, Header, description = IF_MATCH)),
    request_body = ReviewBody,
    responses(
        (status = 200, description = "What was approved", body = ReviewDone, headers(("ETag" = String, description = "The catalog's version, for If-Match"))),
        (status = 409), (status = 412),
    ))]
pub(crate) async fn approve(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
    By(actor): By,
    expected: IfMatch,
    ApiJson(body): ApiJson<ReviewBody>,
) -> Result<Response, Problem> {
    let reviewed = body.reviewed();
    done(service.review(&actor, &scope, Verdict::Approve, reviewed, expected.version()).await?)
}

/// Reject held tools
///
/// Drops each held version, in one transaction; the tools stay in use as they are. A 409 tells which of them wait no more as they
/// were looked at; then none is dropped.
#[utoipa::path(post, path = "/catalog/reviews/reject", operation_id = "reject_scope_tools", tag = "catalogs",
    params(("If-Match" = Option<String>, Header, description = IF_MATCH)),
    request_body = ReviewBody,
    responses(
        (status = 200, description = "What was rejected", body = ReviewDone, headers(("ETag" = String, description = "The catalog's version, for If-Match"))),
        (status = 409), (status = 412),
    ))]
pub(crate) async fn reject(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
    By(actor): By,
    expected: IfMatch,
    ApiJson(body): ApiJson<ReviewBody>,
) -> Result<Response, Problem> {
    let reviewed = body.reviewed();
    done(service.review(&actor, &scope, Verdict::Reject, reviewed, expected.version()).await?)
}

fn done(done: ReviewDone) -> Result<Response, Problem> {
    Ok(([etag::header_of(&done.catalog_version)?], Json(done)).into_response())
}
