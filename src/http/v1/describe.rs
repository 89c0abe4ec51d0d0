//! `/v1/describe`: full schemas of named tools.

use axum::extract::State;
use axum::{Extension, Json};

use super::fields::{exactly_one, grant_body};
use crate::core::keys::Principal;
use crate::http::body::ApiJson;
use crate::http::problem::Problem;
use crate::http::refusal::placed;
use crate::service::{DescribeAnswer, DescribeRequest, Toolrack};

grant_body! {
    /// Which tools to describe: exactly one of `name` and `names`.
    pub struct DescribeBody {
        /// Stored name of a tool, or the name that providers see.
        name: Option<String>,
        /// Several names, at most 20.
        #[schema(max_items = 20)]
        names: Option<Vec<String>>,
    }
}

/// Describe tools
///
/// Answers the full schemas in the asked format, with close names for those that are not found. The session keeps
/// what was described.
#[utoipa::path(post, path = "/v1/describe", operation_id = "describe", tag = "agent",
    request_body = DescribeBody,
    responses((status = 200, description = "The tools", body = DescribeAnswer), (status = 412)))]
pub(crate) async fn describe(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiJson(mut body): ApiJson<DescribeBody>,
) -> Result<Json<DescribeAnswer>, Problem> {
    let (caller, fields) = body.take_grant(&principal);
    let (names, sent) = exactly_one("name", body.name, "names", body.names)?;
    let request = DescribeRequest { caller, fields, names };
    service.describe(request).await.map(Json).map_err(|error| placed(&error, "names", sent))
}
