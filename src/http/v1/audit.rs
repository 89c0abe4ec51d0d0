//! `/v1/audit`: who changed what.

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;

use super::fields::missing;
use crate::core::id::Id;
use crate::core::keys::{Principal, Role};
use crate::core::warning::FieldError;
use crate::http::body::ApiQuery;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::service::{AuditListQuery, AuditPage, Toolrack};

/// Most entries of one page.
const MAX_PAGE: u32 = 200;

/// Entries of one page when the request does not say.
const DEFAULT_PAGE: u32 = 50;

/// Which changes to show.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditPageQuery {
    /// Only changes that are about this user. A key of the role `setup` must name a user or a project.
    #[param(value_type = Option<String>)]
    user: Option<Id>,
    /// Only changes that are about this project.
    #[param(value_type = Option<String>)]
    project: Option<Id>,
    /// Only changes by this actor: the id of a key, `admin`, `no-auth`, `cli` or `sync`.
    actor: Option<String>,
    /// Only this action, for example `config.put`.
    action: Option<String>,
    /// Only changes from this time on, in milliseconds since 1970.
    since_ms: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// Entries per page, 1 to 200. Default: 50.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

impl Scoped for AuditPageQuery {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (self.user.as_ref(), self.project.as_ref())
    }
}

/// List changes
///
/// What was changed about configs, catalogs, MCP servers and keys, which changes of tools were approved or rejected, and which sessions an
/// administrator deleted or emptied; the latest first. An entry is written with its change or not at all. Of keys and sessions a
/// key of the role `setup` sees nothing. The oldest entries go, by number and age.
#[utoipa::path(get, path = "/v1/audit", operation_id = "get_audit", tag = "service",
    params(AuditPageQuery),
    responses((status = 200, description = "A page of changes", body = AuditPage)))]
pub(crate) async fn list(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiQuery(query): ApiQuery<AuditPageQuery>,
) -> Result<Json<AuditPage>, Problem> {
    let AuditPageQuery { user, project, actor, action, since_ms, cursor, limit } = query;
    let limit = limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        let detail = format!("a page has 1 to {MAX_PAGE} entries");
        return Err(Problem::invalid(vec![FieldError::new("/limit", "invalid_value", detail)]));
    }
    let scopes_only = principal.role() != Role::Admin;
    if scopes_only && user.is_none() && project.is_none() {
        return Err(missing("user", "send `user` or `project`".to_owned()));
    }
    let query = AuditListQuery { user, project, actor, action, since_ms, cursor, limit, scopes_only };
    Ok(Json(service.audit(query).await?))
}
