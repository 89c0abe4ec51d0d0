//! `/mcp-servers` of a user or project: where its tools come from.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::fields::{NoQuery, ScopePath, WriteQuery};
use crate::http::body::{ApiJson, ApiPath, ApiQuery};
use crate::http::by::By;
use crate::http::problem::Problem;
use crate::http::scoped::names_nobody;
use crate::service::{
    McpServerDocument, McpServerList, McpServerSpec, McpServerWritten, McpSyncAnswer, Toolrack,
};

/// Which server.
#[derive(Debug, Deserialize)]
pub(crate) struct ServerPath {
    name: String,
}

// The scope in the path is read by itself.
names_nobody!(ServerPath, McpServerSpec);

/// List the MCP servers
#[utoipa::path(get, path = "/mcp-servers", operation_id = "list_scope_mcp_servers", tag = "catalogs",
    responses((status = 200, description = "All servers", body = McpServerList)))]
pub(crate) async fn list(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
) -> Result<Json<McpServerList>, Problem> {
    Ok(Json(service.mcp_servers(&scope).await?))
}

/// Read one MCP server
///
/// Its `job` tells how far a sync is.
#[utoipa::path(get, path = "/mcp-servers/{name}", operation_id = "get_scope_mcp_server", tag = "catalogs",
    params(("name" = String, Path, description = "Name of the server", example = "github")),
    responses((status = 200, description = "The server", body = McpServerDocument), (status = 404)))]
pub(crate) async fn read(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
    ApiPath(path): ApiPath<ServerPath>,
) -> Result<Json<McpServerDocument>, Problem> {
    Ok(Json(service.mcp_server(&scope, &path.name).await?))
}

/// Store one MCP server
///
/// In the place of the one of its name. Nothing is read from it yet. Texts of headers and variables are sealed and never shown;
/// they are kept while the server stays where it is, and are cleared when it moves.
#[utoipa::path(put, path = "/mcp-servers/{name}", operation_id = "put_scope_mcp_server", tag = "catalogs",
    params(("name" = String, Path, description = "Name of the server, 1 to 64 characters of A-Z a-z 0-9 . _ -; the group of its tools", example = "github")),
    request_body = McpServerSpec,
    responses((status = 200, description = "The server", body = McpServerWritten)))]
pub(crate) async fn replace(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
    ApiPath(path): ApiPath<ServerPath>,
    By(actor): By,
    ApiJson(spec): ApiJson<McpServerSpec>,
) -> Result<Json<McpServerWritten>, Problem> {
    Ok(Json(service.put_mcp_server(&actor, &scope, &path.name, spec).await?))
}

/// Delete one MCP server
///
/// Its tools stay in the catalog. Deleting nothing is fine.
#[utoipa::path(delete, path = "/mcp-servers/{name}", operation_id = "delete_scope_mcp_server", tag = "catalogs",
    params(("name" = String, Path, description = "Name of the server", example = "github")),
    responses((status = 204, description = "Nothing is stored")))]
pub(crate) async fn delete(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
    ApiPath(path): ApiPath<ServerPath>,
    By(actor): By,
) -> Result<StatusCode, Problem> {
    service.delete_mcp_server(&actor, &scope, &path.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Read the tools of one MCP server into the catalog
///
/// They take the place of those of its group. Waits a few seconds; a sync that takes longer goes on, and reading the server tells
/// how far it is. What goes wrong with the server is an answer.
#[utoipa::path(post, path = "/mcp-servers/{name}/sync", operation_id = "sync_scope_mcp_server", tag = "catalogs",
    params(WriteQuery, ("name" = String, Path, description = "Name of the server", example = "github")),
    responses(
        (status = 200, description = "The sync ended", body = McpSyncAnswer),
        (status = 202, description = "It is still running", body = McpSyncAnswer),
        (status = 404),
    ))]
pub(crate) async fn sync(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    ApiQuery(query): ApiQuery<WriteQuery>,
    ApiPath(path): ApiPath<ServerPath>,
    By(actor): By,
) -> Result<Response, Problem> {
    let answer = service.sync_mcp_server(&actor, &scope, &path.name, query.dry_run()).await?;
    let status = if answer.is_running() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(answer)).into_response())
}
