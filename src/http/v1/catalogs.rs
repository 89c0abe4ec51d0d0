//! `/catalog` of a user or project: its stored tools.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::fields::{NoQuery, ScopePath, WriteQuery};
use crate::core::json::JsonLimits;
use crate::http::body::{ApiPath, ApiQuery, RawBody};
use crate::http::by::By;
use crate::http::etag::{self, IF_MATCH, IF_NONE_MATCH, IfMatch, IfNoneMatch};
use crate::http::layers::HttpContext;
use crate::http::problem::Problem;
use crate::http::scoped::names_nobody;
use crate::service::{CatalogWritten, GrantFields, LintAnswer, ToolProvenance, Toolrack};

/// A tool as the service keeps and shows it.
#[derive(Debug, ToSchema)]
pub struct ToolDefinition {
    /// Usually the MCP server that the tool is from. Default: `other`.
    pub group: Option<String>,
    /// In answers the stored name: `<group>__<name>` where several groups have a tool of this name.
    pub name: String,
    /// The name as it was uploaded, where the stored one is another.
    pub uploaded_name: Option<String>,
    /// The name that providers see, where it is another one; in answers only.
    #[schema(read_only)]
    pub wire_name: Option<String>,
    pub description: Option<String>,
    /// JSON Schema of the arguments; kept byte by byte.
    #[schema(value_type = Object)]
    pub parameters: Option<Box<RawValue>>,
    /// Hints of the MCP server about the tool.
    #[schema(value_type = Option<Object>)]
    pub annotations: Option<Box<RawValue>>,
    /// Makes the tool a core tool: it always stands in the array.
    pub always_load: Option<bool>,
    /// In a project's catalog: goes before a user's tool of the same name.
    pub r#override: Option<bool>,
    /// Phrases that people use for the tool.
    pub aliases: Option<Vec<String>>,
    /// Members of the upload that are kept and not read; those that a format has go out in it again.
    #[schema(value_type = Option<Object>)]
    pub extra: Option<Box<RawValue>>,
    /// The provider in whose shape the upload came, if `extra` may hold members of its own: `openai`, `anthropic`,
    /// `gemini` or `bedrock`. Only that provider gets them.
    pub extra_of: Option<String>,
    /// In the answer about one tool only; passed over in an upload.
    #[schema(read_only)]
    pub provenance: Option<ToolProvenance>,
}

/// A stored catalog. It can be sent back with `PUT` as it is.
#[derive(Debug, ToSchema)]
pub struct StoredCatalog {
    /// Hash of the content, whatever the order; also in the ETag. Empty for the empty catalog.
    pub catalog_version: String,
    /// By stored name.
    pub tools: Vec<ToolDefinition>,
}

/// A whole catalog to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CatalogUpload {
    /// Tools in any common format (canonical, MCP, or a provider's), told apart per entry. An entry may be a list of
    /// tools: Gemini's `{functionDeclarations}`, a namespace of OpenAI Responses (its name is the group), the result of
    /// `tools/list`. One that cannot be used is set aside with a warning, and the others are stored; at least one must
    /// be left.
    #[schema(value_type = Vec<ToolDefinition>, min_items = 1)]
    tools: Vec<Box<RawValue>>,
    /// Passed over, so that what a GET answered can be sent back.
    #[serde(rename = "catalog_version")]
    #[schema(value_type = Option<String>)]
    _catalog_version: Option<String>,
}

/// Changes of single tools.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CatalogPatch {
    /// Tools to add or to replace, in any common format; one that cannot be used is set aside with a warning.
    #[schema(value_type = Option<Vec<ToolDefinition>>)]
    upsert: Option<Vec<Box<RawValue>>>,
    /// Names of tools to take away.
    remove: Option<Vec<String>>,
}

/// Which tool of a catalog.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolPath {
    name: String,
}

// The scope in the path is read by itself.
names_nobody!(CatalogUpload, CatalogPatch, ToolPath, LintBody);

/// Read the stored catalog
///
/// An unwritten one is empty.
#[utoipa::path(get, path = "/catalog", operation_id = "get_scope_catalog", tag = "catalogs",
    params(("If-None-Match" = Option<String>, Header, description = IF_NONE_MATCH)),
    responses(
        (status = 200, description = "All tools", body = StoredCatalog, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 304, description = "The caller has it already"),
    ))]
pub(crate) async fn read(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    known: IfNoneMatch,
) -> Result<Response, Problem> {
    let catalog = service.catalog_document(&scope).await?;
    etag::document(&catalog.version, &known, catalog.json)
}

/// Replace the stored catalog
///
/// In one transaction. An upload that differs in nothing but order leaves everything as it is.
#[utoipa::path(put, path = "/catalog", operation_id = "put_scope_catalog", tag = "catalogs",
    params(WriteQuery, ("If-Match" = Option<String>, Header, description = IF_MATCH)),
    request_body = CatalogUpload,
    responses(
        (status = 200, description = "What changed", body = CatalogWritten, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 409), (status = 412),
    ))]
pub(crate) async fn replace(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    ScopePath(scope): ScopePath,
    ApiQuery(query): ApiQuery<WriteQuery>,
    By(actor): By,
    expected: IfMatch,
    body: RawBody,
) -> Result<Response, Problem> {
    let upload: CatalogUpload = body.parse(limits(&context, &["tools"]))?;
    // A large body is not held any longer than it is read.
    drop(body);
    written(service.put_catalog(&actor, &scope, upload.tools, expected.version(), query.dry_run()).await?)
}

/// Change single tools of the stored catalog
///
/// In one transaction. A catalog that is larger than one body can be sent like this, in parts.
#[utoipa::path(patch, path = "/catalog", operation_id = "patch_scope_catalog", tag = "catalogs",
    params(WriteQuery, ("If-Match" = Option<String>, Header, description = IF_MATCH)),
    request_body = CatalogPatch,
    responses(
        (status = 200, description = "What changed", body = CatalogWritten, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 409), (status = 412),
    ))]
pub(crate) async fn change(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    ScopePath(scope): ScopePath,
    ApiQuery(query): ApiQuery<WriteQuery>,
    By(actor): By,
    expected: IfMatch,
    body: RawBody,
) -> Result<Response, Problem> {
    let patch: CatalogPatch = body.parse(limits(&context, &["upsert"]))?;
    drop(body);
    let (upsert, remove) = (patch.upsert.unwrap_or_default(), patch.remove.unwrap_or_default());
    written(service.patch_catalog(&actor, &scope, upsert, remove, expected.version(), query.dry_run()).await?)
}

/// Delete the stored catalog
///
/// Deleting nothing is fine.
#[utoipa::path(delete, path = "/catalog", operation_id = "delete_scope_catalog", tag = "catalogs",
    params(("If-Match" = Option<String>, Header, description = IF_MATCH)),
    responses((status = 204, description = "Nothing is stored"), (status = 412)))]
pub(crate) async fn delete(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
    By(actor): By,
    expected: IfMatch,
) -> Result<StatusCode, Problem> {
    service.delete_catalog(&actor, &scope, expected.version()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Read one tool of the stored catalog
///
/// By stored name, by the name that providers see, or by the uploaded name where only one tool has it.
#[utoipa::path(get, path = "/catalog/tools/{name}", operation_id = "get_scope_catalog_tool", tag = "catalogs",
    params(
        ("name" = String, Path, description = "Name of the tool, percent-encoded"),
        ("If-None-Match" = Option<String>, Header, description = IF_NONE_MATCH),
    ),
    responses(
        (status = 200, description = "The tool", body = ToolDefinition, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 304, description = "The caller has it already"),
        (status = 404),
    ))]
pub(crate) async fn read_tool(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    ApiPath(path): ApiPath<ToolPath>,
    known: IfNoneMatch,
) -> Result<Response, Problem> {
    let tool = service.catalog_tool(&scope, &path.name).await?;
    etag::document(&tool.version, &known, tool.json)
}

/// For whom a catalog is looked at.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LintBody {
    /// As in an assembly; default `canonical`.
    format: Option<String>,
    /// As in an assembly; default: the scope's own config, else `generic`.
    profile: Option<String>,
    /// As in an assembly.
    schema_dialect: Option<String>,
    /// As in an assembly.
    strict: Option<bool>,
}

/// Tell what a provider would not take
///
/// Every tool of the stored catalog is made for the target as an assembly makes it: what is mended, what is cut, what is
/// left out, and why. Nothing is changed.
#[utoipa::path(post, path = "/catalog/lint", operation_id = "lint_scope_catalog", tag = "catalogs",
    request_body = LintBody,
    responses((status = 200, description = "What was found", body = LintAnswer)))]
pub(crate) async fn lint(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
    body: RawBody,
) -> Result<Json<LintAnswer>, Problem> {
    let LintBody { format, profile, schema_dialect, strict } = body.parse(limits(&context, &[]))?;
    let fields = GrantFields { format, profile, schema_dialect, strict, ..GrantFields::default() };
    Ok(Json(service.lint_catalog(&scope, fields).await?))
}

/// Tools are checked one by one by the service, so that a bad one does not cost the others.
fn limits(context: &HttpContext, opaque: &'static [&'static str]) -> JsonLimits {
    JsonLimits { opaque, ..JsonLimits::strict(context.limits().json_depth) }
}

/// After a dry run there is no ETag: the version of the answer is not the stored one.
fn written(written: CatalogWritten) -> Result<Response, Problem> {
    if written.dry_run {
        return Ok(Json(written).into_response());
    }
    Ok(([etag::header_of(&written.catalog_version)?], Json(written)).into_response())
}
