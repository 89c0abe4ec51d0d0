//! `/config` of a user or project: its layer of settings.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema};

use super::fields::{NoQuery, ScopePath, WriteQuery};
use crate::core::policy;
use crate::http::body::{ApiJson, ApiQuery};
use crate::http::by::By;
use crate::http::etag::{self, IF_MATCH, IF_NONE_MATCH, IfMatch, IfNoneMatch};
use crate::http::problem::Problem;
use crate::http::scoped::names_nobody;
use crate::service::{ConfigVersionList, ConfigWritten, Toolrack};

/// What one scope says; every key may be absent, then it is inherited (defaults < user < project).
#[derive(Debug)]
pub struct ScopeConfig;

impl ToSchema for ScopeConfig {
    fn name() -> std::borrow::Cow<'static, str> {
        "ScopeConfig".into()
    }
}

impl utoipa::PartialSchema for ScopeConfig {
    /// Made from the table that reading and merging are made from. Keys inside another key follow it, with a dot.
    fn schema() -> RefOr<Schema> {
        let mut keys: Vec<(String, ObjectBuilder)> = Vec::new();
        for key in policy::documentation() {
            let described = open_schema()
                .description(Some(format!("{} Range: {}.", key.meaning, key.range)))
                .default(Some(key.default).filter(|default| !default.is_null()));
            match (key.key.split_once('.'), keys.pop()) {
                (Some((parent, inner)), Some((name, outer))) if name == parent => {
                    keys.push((name, outer.property(inner, described)));
                }
                (_, last) => {
                    keys.extend(last);
                    keys.push((key.key.clone(), described));
                }
            }
        }
        let about =
            "What one scope says. Every key may be absent; then it is inherited (defaults < user < project).";
        let object = ObjectBuilder::new().description(Some(about));
        let object = object.additional_properties(Some(AdditionalProperties::FreeForm(false)));
        keys.into_iter().fold(object, |object, (name, schema)| object.property(name, schema)).into()
    }
}

/// A schema that takes any value: the range is told in words.
fn open_schema() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::AnyValue)
}

/// Read the stored config
///
/// The layer of this scope alone, as it is stored; `{}` with the ETag `"0"` while it was never written. Secrets read
/// as `{set, last4}`.
#[utoipa::path(get, path = "/config", operation_id = "get_scope_config", tag = "configs",
    params(("If-None-Match" = Option<String>, Header, description = IF_NONE_MATCH)),
    responses(
        (status = 200, description = "The document", body = ScopeConfig, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 304, description = "The caller has it already"),
    ))]
pub(crate) async fn read(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    known: IfNoneMatch,
) -> Result<Response, Problem> {
    let config = service.config(&scope).await?;
    etag::document(&config.revision.to_string(), &known, Value::Object(config.document).to_string())
}

/// Replace the stored config
///
/// Takes the whole layer; what is absent is inherited. A secret that is absent or `{"set": true}` stays as it is
/// while its endpoint has the same scheme, host and port.
#[utoipa::path(put, path = "/config", operation_id = "put_scope_config", tag = "configs",
    params(WriteQuery, ("If-Match" = Option<String>, Header, description = IF_MATCH)),
    request_body = ScopeConfig,
    responses(
        (status = 200, description = "What changed", body = ConfigWritten, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 409), (status = 412),
    ))]
pub(crate) async fn replace(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    ApiQuery(query): ApiQuery<WriteQuery>,
    By(actor): By,
    expected: IfMatch,
    ApiJson(document): ApiJson<Value>,
) -> Result<Response, Problem> {
    written(service.put_config(&actor, &scope, document, expected.revision()?, query.dry_run()).await?)
}

/// Change the stored config
///
/// Takes a JSON Merge Patch (RFC 7396): null means "inherit again", arrays and the objects inside the document are
/// replaced as a whole where their key says so.
#[utoipa::path(patch, path = "/config", operation_id = "patch_scope_config", tag = "configs",
    params(WriteQuery, ("If-Match" = Option<String>, Header, description = IF_MATCH)),
    request_body = ScopeConfig,
    responses(
        (status = 200, description = "What changed", body = ConfigWritten, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 409), (status = 412),
    ))]
pub(crate) async fn change(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    ApiQuery(query): ApiQuery<WriteQuery>,
    By(actor): By,
    expected: IfMatch,
    ApiJson(patch): ApiJson<Value>,
) -> Result<Response, Problem> {
    written(service.patch_config(&actor, &scope, patch, expected.revision()?, query.dry_run()).await?)
}

/// Delete the stored config
///
/// With its secrets. Deleting nothing is fine.
#[utoipa::path(delete, path = "/config", operation_id = "delete_scope_config", tag = "configs",
    params(("If-Match" = Option<String>, Header, description = IF_MATCH)),
    responses((status = 204, description = "Nothing is stored"), (status = 412)))]
pub(crate) async fn delete(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
    By(actor): By,
    expected: IfMatch,
) -> Result<StatusCode, Problem> {
    service.delete_config(&actor, &scope, expected.revision()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List earlier configs
///
/// The documents that this config was, the latest first: the one in force and at most ten before it, without secrets. Deleting
/// a config keeps them.
#[utoipa::path(get, path = "/config/versions", operation_id = "list_scope_config_versions", tag = "configs",
    responses((status = 200, description = "The documents", body = ConfigVersionList)))]
pub(crate) async fn versions(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    _query: ApiQuery<NoQuery>,
) -> Result<Json<ConfigVersionList>, Problem> {
    Ok(Json(service.config_versions(&scope).await?))
}

/// Which document to put back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigRestoreBody {
    /// As `GET …/config/versions` tells it.
    #[schema(example = 1)]
    revision: i64,
}

names_nobody!(ConfigRestoreBody);

/// Put an earlier config back
///
/// Writes a document again that this config was, as a new revision. Secrets are no part of it: the stored ones stay as long as
/// their endpoint has the same scheme, host and port, else they are cleared with a warning.
#[utoipa::path(post, path = "/config/restore", operation_id = "restore_scope_config", tag = "configs",
    params(WriteQuery, ("If-Match" = Option<String>, Header, description = IF_MATCH)),
    request_body = ConfigRestoreBody,
    responses(
        (status = 200, description = "What changed", body = ConfigWritten, headers(("ETag" = String, description = "Its version, for If-Match"))),
        (status = 409), (status = 412),
    ))]
pub(crate) async fn restore(
    State(service): State<Toolrack>,
    ScopePath(scope): ScopePath,
    ApiQuery(query): ApiQuery<WriteQuery>,
    By(actor): By,
    expected: IfMatch,
    ApiJson(body): ApiJson<ConfigRestoreBody>,
) -> Result<Response, Problem> {
    let (expected, dry_run) = (expected.revision()?, query.dry_run());
    written(service.restore_config(&actor, &scope, body.revision, expected, dry_run).await?)
}

/// The ETag of an answer is what is stored: after a dry run still the old one.
fn written(written: ConfigWritten) -> Result<Response, Problem> {
    Ok(([etag::header_of(written.revision)?], Json(written)).into_response())
}
