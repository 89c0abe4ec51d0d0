//! `/v1/config/effective`: what a request with this user and project goes by.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;

use super::fields::missing;
use crate::core::id::Id;
use crate::http::body::ApiQuery;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::service::{EffectiveConfig, Toolrack};

/// Whose layers to merge; at least one of both.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EffectiveQuery {
    /// The user whose layer counts.
    #[param(value_type = Option<String>)]
    user: Option<Id>,
    /// The project whose layer counts.
    #[param(value_type = Option<String>)]
    project: Option<Id>,
}

impl Scoped for EffectiveQuery {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (self.user.as_ref(), self.project.as_ref())
    }
}

/// Read the config in force
///
/// Every key with its value and the layer that it came from.
#[utoipa::path(get, path = "/v1/config/effective", operation_id = "get_effective_config", tag = "configs",
    params(EffectiveQuery),
    responses((status = 200, description = "All keys", body = EffectiveConfig)))]
pub(crate) async fn read(
    State(service): State<Toolrack>,
    ApiQuery(query): ApiQuery<EffectiveQuery>,
) -> Result<Json<EffectiveConfig>, Problem> {
    if query.user.is_none() && query.project.is_none() {
        return Err(missing("user", "send `user`, `project` or both".to_owned()));
    }
    Ok(Json(service.effective_config(query.user, query.project).await?))
}
