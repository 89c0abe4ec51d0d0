//! `/v1/setup/overview`: what the requests of a user or project come to.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;

use crate::core::id::Id;
use crate::core::warning::FieldError;
use crate::http::body::ApiQuery;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::http::v1::fields::missing;
use crate::service::{Overview, Toolrack, USAGE_DAYS};

/// Days that are told when the request does not say.
const DEFAULT_DAYS: u32 = 30;

/// Whose overview; at least one of both.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OverviewQuery {
    /// The user that the overview is about, if no project is named.
    #[param(value_type = Option<String>)]
    user: Option<Id>,
    /// The project that the overview is about.
    #[param(value_type = Option<String>)]
    project: Option<Id>,
    /// How many days to tell, today included, 1 to 90. Default: 30.
    #[param(minimum = 1, maximum = 90, default = 30)]
    days: Option<u32>,
}

impl Scoped for OverviewQuery {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (self.user.as_ref(), self.project.as_ref())
    }
}

/// Read the overview
///
/// What requests came to, day by day and in all: of the project if one is named (all requests that name it), else of the user
/// (all that name no project). Days are UTC; counts of 90 days are kept. A tool's finds and calls count where its definition
/// is: for the project whose catalog has it, else for the user.
#[utoipa::path(get, path = "/v1/setup/overview", operation_id = "get_overview", tag = "configs",
    params(OverviewQuery),
    responses((status = 200, description = "The overview", body = Overview)))]
pub(crate) async fn read(
    State(service): State<Toolrack>,
    ApiQuery(query): ApiQuery<OverviewQuery>,
) -> Result<Json<Overview>, Problem> {
    let OverviewQuery { user, project, days } = query;
    if user.is_none() && project.is_none() {
        return Err(missing("user", "send `user`, `project` or both".to_owned()));
    }
    let days = days.unwrap_or(DEFAULT_DAYS);
    if !(1..=USAGE_DAYS).contains(&days) {
        let detail = format!("an overview has 1 to {USAGE_DAYS} days");
        return Err(Problem::invalid(vec![FieldError::new("/days", "invalid_value", detail)]));
    }
    Ok(Json(service.overview(user, project, days).await?))
}
