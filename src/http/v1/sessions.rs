//! `/sessions` of a user: what they found and keep.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::core::id::{Id, SessionKey};
use crate::core::keys::Principal;
use crate::core::warning::FieldError;
use crate::http::body::{ApiJson, ApiPath, ApiQuery, OptionalJson};
use crate::http::by::By;
use crate::http::problem::Problem;
use crate::http::scoped::{Scoped, names_nobody};
use crate::service::{
    Caller, MAX_SESSION_NAMES, SessionDocument, SessionList, SessionListQuery, Toolrack, WarmAction,
};

/// Most sessions of one page.
const MAX_PAGE: u32 = 200;

/// Sessions of one page when the request does not say.
const DEFAULT_PAGE: u32 = 50;

/// Which of the user's sessions of this id is meant.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SessionQuery {
    /// The project that the session is in; without it the session outside all projects.
    #[param(value_type = Option<String>)]
    project: Option<Id>,
}

/// Which sessions to list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SessionPageQuery {
    /// Only sessions of this project; without it those of all projects and of none.
    #[param(value_type = Option<String>)]
    project: Option<Id>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// Sessions per page, 1 to 200. Default: 50.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// Names of tools of a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionNames {
    /// Stored names, or the names that providers see; at most 64.
    #[schema(min_items = 1, max_items = 64)]
    names: Vec<String>,
}

/// An empty object.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetBody {}

/// Whose sessions.
#[derive(Debug, Deserialize)]
pub(crate) struct UserPath {
    user: Id,
}

/// Which of a user's sessions, but for its project.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionPath {
    user: Id,
    session: Id,
}

impl Scoped for UserPath {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (Some(&self.user), None)
    }
}

impl Scoped for SessionPath {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (Some(&self.user), None)
    }
}

impl Scoped for SessionQuery {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (None, self.project.as_ref())
    }
}

impl Scoped for SessionPageQuery {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (None, self.project.as_ref())
    }
}

names_nobody!(SessionNames, ResetBody);

/// List sessions
///
/// Those of a user, in a stable order.
#[utoipa::path(get, path = "/v1/users/{user}/sessions", operation_id = "list_sessions", tag = "sessions",
    params(("user" = String, Path), SessionPageQuery),
    responses((status = 200, description = "A page of sessions", body = SessionList)))]
pub(crate) async fn list(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiPath(path): ApiPath<UserPath>,
    ApiQuery(query): ApiQuery<SessionPageQuery>,
) -> Result<Json<SessionList>, Problem> {
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        let detail = format!("a page has 1 to {MAX_PAGE} sessions");
        return Err(Problem::invalid(vec![FieldError::new("/limit", "invalid_value", detail)]));
    }
    let query =
        SessionListQuery { user: path.user, project: query.project, cursor: query.cursor, limit, principal };
    Ok(Json(service.list_sessions(query).await?))
}

/// Read a session
///
/// An unknown one is empty.
#[utoipa::path(get, path = "/v1/users/{user}/sessions/{session}", operation_id = "get_session", tag = "sessions",
    params(("user" = String, Path), ("session" = String, Path), SessionQuery),
    responses((status = 200, description = "The session", body = SessionDocument), (status = 412)))]
pub(crate) async fn read(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiPath(path): ApiPath<SessionPath>,
    ApiQuery(query): ApiQuery<SessionQuery>,
) -> Result<Json<SessionDocument>, Problem> {
    Ok(Json(service.session_document(&caller(path, query, &principal)).await?))
}

/// Delete a session
///
/// Deleting nothing is fine; the id starts empty again.
#[utoipa::path(delete, path = "/v1/users/{user}/sessions/{session}", operation_id = "delete_session",
    tag = "sessions",
    params(("user" = String, Path), ("session" = String, Path), SessionQuery),
    responses((status = 204, description = "There is no such session")))]
pub(crate) async fn delete(
    State(service): State<Toolrack>,
    By(actor): By,
    ApiPath(path): ApiPath<SessionPath>,
    ApiQuery(query): ApiQuery<SessionQuery>,
) -> Result<StatusCode, Problem> {
    let SessionPath { user, session } = path;
    service.delete_session(&actor, &SessionKey { user, project: query.project, session }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Empty a session
///
/// Warm set, pins and what it kept of its last assembly go; its counters stay. Takes no body, or `{}`.
#[utoipa::path(post, path = "/v1/users/{user}/sessions/{session}/reset", operation_id = "reset_session",
    tag = "sessions",
    params(("user" = String, Path), ("session" = String, Path), SessionQuery),
    request_body(content = ResetBody, description = "An empty object, or no body at all"),
    responses((status = 200, description = "The session as it is now", body = SessionDocument)))]
pub(crate) async fn reset(
    State(service): State<Toolrack>,
    By(actor): By,
    Extension(principal): Extension<Principal>,
    ApiPath(path): ApiPath<SessionPath>,
    ApiQuery(query): ApiQuery<SessionQuery>,
    _body: OptionalJson<ResetBody>,
) -> Result<Json<SessionDocument>, Problem> {
    Ok(Json(service.reset_session(&actor, &caller(path, query, &principal)).await?))
}

/// Release tools
///
/// Takes tools out of the warm set, pinned ones too.
#[utoipa::path(post, path = "/v1/users/{user}/sessions/{session}/release", operation_id = "release_tools",
    tag = "sessions",
    params(("user" = String, Path), ("session" = String, Path), SessionQuery),
    request_body = SessionNames,
    responses((status = 200, description = "The session as it is now", body = SessionDocument), (status = 412)))]
pub(crate) async fn release(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiPath(path): ApiPath<SessionPath>,
    ApiQuery(query): ApiQuery<SessionQuery>,
    ApiJson(body): ApiJson<SessionNames>,
) -> Result<Json<SessionDocument>, Problem> {
    change(&service, &caller(path, query, &principal), WarmAction::Release, &body).await
}

/// Pin tools
///
/// Pinned tools stand in the array and are never evicted; they count within `max_warm_tools`.
#[utoipa::path(post, path = "/v1/users/{user}/sessions/{session}/pin", operation_id = "pin_tools",
    tag = "sessions",
    params(("user" = String, Path), ("session" = String, Path), SessionQuery),
    request_body = SessionNames,
    responses((status = 200, description = "The session as it is now", body = SessionDocument), (status = 412)))]
pub(crate) async fn pin(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiPath(path): ApiPath<SessionPath>,
    ApiQuery(query): ApiQuery<SessionQuery>,
    ApiJson(body): ApiJson<SessionNames>,
) -> Result<Json<SessionDocument>, Problem> {
    change(&service, &caller(path, query, &principal), WarmAction::Pin, &body).await
}

/// Unpin tools
///
/// They stay warm until others take their place.
#[utoipa::path(post, path = "/v1/users/{user}/sessions/{session}/unpin", operation_id = "unpin_tools",
    tag = "sessions",
    params(("user" = String, Path), ("session" = String, Path), SessionQuery),
    request_body = SessionNames,
    responses((status = 200, description = "The session as it is now", body = SessionDocument), (status = 412)))]
pub(crate) async fn unpin(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiPath(path): ApiPath<SessionPath>,
    ApiQuery(query): ApiQuery<SessionQuery>,
    ApiJson(body): ApiJson<SessionNames>,
) -> Result<Json<SessionDocument>, Problem> {
    change(&service, &caller(path, query, &principal), WarmAction::Unpin, &body).await
}

async fn change(
    service: &Toolrack,
    caller: &Caller,
    action: WarmAction,
    body: &SessionNames,
) -> Result<Json<SessionDocument>, Problem> {
    if !(1..=MAX_SESSION_NAMES).contains(&body.names.len()) {
        let detail = format!("send 1 to {MAX_SESSION_NAMES} names");
        return Err(Problem::invalid(vec![FieldError::new("/names", "invalid_value", detail)]));
    }
    Ok(Json(service.change_warm(caller, action, &body.names).await?))
}

fn caller(path: SessionPath, query: SessionQuery, principal: &Principal) -> Caller {
    let SessionPath { user, session } = path;
    let allowances = principal.allowances().cloned();
    Caller { user, project: query.project, session: Some(session), limits: principal.limits(), allowances }
}
