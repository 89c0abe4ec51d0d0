//! `/v1/setup/mcp-tools`: the tools of an MCP server before it is stored.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::core::id::{Id, Scope};
use crate::http::body::ApiJson;
use crate::http::layers::HttpContext;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::service::{McpServerSpec, McpToolsAnswer, McpToolsRequest, Toolrack};

/// What is left of a request's time for reading and answering it.
const MARGIN_PARTS: u32 = 20;

/// The group of the tools where the caller does not name the server.
const DEFAULT_NAME: &str = "server";

/// A server to read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"user": "ada", "name": "github", "server": {"url": "https://mcp.example/mcp"}}))]
pub struct McpToolsBody {
    /// The user that is set up.
    #[schema(value_type = String, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    user: Id,
    /// The project that is set up in place of the user.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    project: Option<Id>,
    /// The name that the server will have, which is the group of its tools; default `server`. Headers and variables that are
    /// `{"set": true}` are those of the stored server of this name.
    name: Option<String>,
    server: McpServerSpec,
}

impl Scoped for McpToolsBody {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (Some(&self.user), self.project.as_ref())
    }
}

/// List the tools of an MCP server
///
/// Nothing is stored. Settings that a write would refuse are a 422; whatever the server does is an answer.
#[utoipa::path(post, path = "/v1/setup/mcp-tools", operation_id = "list_mcp_tools", tag = "catalogs",
    request_body = McpToolsBody,
    responses((status = 200, description = "What the server has", body = McpToolsAnswer)))]
pub(crate) async fn list(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    ApiJson(body): ApiJson<McpToolsBody>,
) -> Result<Json<McpToolsAnswer>, Problem> {
    let McpToolsBody { user, project, name, server } = body;
    let scope = project.map_or(Scope::User(user), Scope::Project);
    let name = name.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    let within = within(context.limits().request_timeout);
    Ok(Json(service.mcp_tools(McpToolsRequest { scope, name, server, within }).await?))
}

/// The time of a server, so that a slow one is told as such rather than as a request that took too long.
fn within(request_timeout: Duration) -> Duration {
    request_timeout - request_timeout / MARGIN_PARTS
}
