//! `/v1/setup/skill`: how an agent sets a scope up together with a person, as a text.

use axum::http::header;
use axum::response::IntoResponse;
use serde::Deserialize;

use crate::core::id::Id;
use crate::http::body::ApiQuery;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::service::setup_skill;

/// Whom the text is about. What is absent stays a placeholder: `{user}`, `{project}`.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SkillQuery {
    /// The user whom the agent works for.
    #[param(value_type = Option<String>)]
    user: Option<Id>,
    /// The project that they work in.
    #[param(value_type = Option<String>)]
    project: Option<Id>,
}

impl Scoped for SkillQuery {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (self.user.as_ref(), self.project.as_ref())
    }
}

/// Read the setup skill
///
/// Markdown with front matter, for an agent: read the catalog, propose, let the person choose, confirm, write. It goes by the
/// management tools where they are wired, else by the routes that it names.
#[utoipa::path(get, path = "/v1/setup/skill", operation_id = "get_setup_skill", tag = "configs",
    params(SkillQuery),
    responses((status = 200, description = "The text", body = String, content_type = "text/markdown")))]
pub(crate) async fn read(ApiQuery(query): ApiQuery<SkillQuery>) -> Result<impl IntoResponse, Problem> {
    let text = setup_skill(query.user.as_ref(), query.project.as_ref());
    Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], text))
}
