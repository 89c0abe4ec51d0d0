//! `/v1/keys`: who may ask what.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use super::fields::NoQuery;
use crate::core::keys::{Bindings, KeyId, Pattern, Role};
use crate::core::selector::Selector;
use crate::core::warning::FieldError;
use crate::http::body::{ApiJson, ApiPath, ApiQuery, OptionalJson};
use crate::http::by::By;
use crate::http::problem::{Code, Problem};
use crate::http::scoped::names_nobody;
use crate::service::{
    DEFAULT_OVERLAP_SECONDS, KeyCreated, KeyDocument, KeyList, KeyListQuery, KeyPatch, KeyRateDocument,
    NewKey, Toolrack,
};

/// Most keys of one page.
const MAX_PAGE: u32 = 200;

/// Keys of one page when the request does not say.
const DEFAULT_PAGE: u32 = 50;

/// A key to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKeyBody {
    /// For people: what the key is for. One line.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    role: Role,
    /// The users that it covers: names, `prefix*`, or `*` for all. An agent's key needs some; keys of the roles `admin` and
    /// `metrics` take none.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 200)]
    users: Vec<Pattern>,
    /// The projects that it covers, written alike. A request that names a project needs both covered. Empty: only
    /// requests without a project pass.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 200)]
    projects: Vec<Pattern>,
    /// Of an agent's key: toolsets that every grant is limited to, whatever a request says. Empty: no limit.
    #[serde(default)]
    #[schema(max_items = 1000)]
    toolsets: Vec<String>,
    /// Of an agent's key: the only tools to be seen, as `name`, `prefix*` or `@group`. Empty: no limit.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 1000)]
    allow: Vec<Selector>,
    /// Of an agent's key: tools not to be seen, written like `allow`.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 1000)]
    deny: Vec<Selector>,
    /// How often its holder may ask, where it is not as usual.
    #[serde(default)]
    #[schema(value_type = Option<KeyRateDocument>)]
    rate: KeyRateDocument,
    /// After this time the key is not accepted any more. Default: it does not expire.
    #[schema(minimum = 1, maximum = 315_360_000)]
    expires_in_seconds: Option<u64>,
}

/// What to change of a key; what is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyPatchBody {
    /// One line.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// From now on. Null: it does not expire any more.
    #[serde(default, deserialize_with = "stated")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 315_360_000)]
    expires_in_seconds: Option<Option<u64>>,
    /// How often its holder may ask from the next request on, in the place of all that was said of it; null: as usual. What
    /// was used up stays so.
    #[serde(default, deserialize_with = "stated")]
    #[schema(value_type = Option<KeyRateDocument>)]
    rate: Option<Option<KeyRateDocument>>,
}

/// Tells null from absent.
fn stated<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// How to rotate a key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateBody {
    /// How long the old key is accepted beside the new one. Default: a day; 0 ends it at once.
    #[schema(minimum = 0, maximum = 2_592_000, default = 86_400)]
    overlap_seconds: Option<u64>,
}

/// Which keys to list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct KeyPageQuery {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// Keys per page, 1 to 200. Default: 50.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// Which key.
#[derive(Debug, Deserialize)]
pub(crate) struct KeyPath {
    id: String,
}

impl KeyPath {
    fn id(&self) -> Result<KeyId, Problem> {
        self.id.parse().map_err(|_| Problem::new(Code::NotFound, "there is no key of this id"))
    }
}

names_nobody!(NewKeyBody, KeyPatchBody, RotateBody, KeyPageQuery, KeyPath);

/// Make a key
///
/// The answer holds the key itself, which is shown this once: only a digest of it is stored.
#[utoipa::path(post, path = "/v1/keys", operation_id = "create_key", tag = "keys",
    request_body = NewKeyBody,
    responses((status = 201, description = "The key", body = KeyCreated, headers(("Location" = String, description = "Its path")))))]
pub(crate) async fn create(
    State(service): State<Toolrack>,
    By(actor): By,
    _query: ApiQuery<NoQuery>,
    ApiJson(body): ApiJson<NewKeyBody>,
) -> Result<Response, Problem> {
    let NewKeyBody { name, role, users, projects, toolsets, allow, deny, rate, expires_in_seconds } = body;
    let bindings = Bindings { users, projects, toolsets, allow, deny, rate: rate.into() };
    created(service.create_key(&actor, NewKey { name, role, bindings, expires_in_seconds }).await?)
}

/// List keys
///
/// By time of creation; expired and revoked ones for 30 days. No secret is among what is shown.
#[utoipa::path(get, path = "/v1/keys", operation_id = "list_keys", tag = "keys",
    params(KeyPageQuery),
    responses((status = 200, description = "A page of keys", body = KeyList)))]
pub(crate) async fn list(
    State(service): State<Toolrack>,
    ApiQuery(query): ApiQuery<KeyPageQuery>,
) -> Result<Json<KeyList>, Problem> {
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        let detail = format!("a page has 1 to {MAX_PAGE} keys");
        return Err(Problem::invalid(vec![FieldError::new("/limit", "invalid_value", detail)]));
    }
    Ok(Json(service.list_keys(KeyListQuery { cursor: query.cursor, limit }).await?))
}

/// Read a key
///
/// Without its secret.
#[utoipa::path(get, path = "/v1/keys/{id}", operation_id = "get_key", tag = "keys",
    params(("id" = String, Path, description = "Id of the key")),
    responses((status = 200, description = "The key", body = KeyDocument), (status = 404)))]
pub(crate) async fn read(
    State(service): State<Toolrack>,
    ApiPath(path): ApiPath<KeyPath>,
) -> Result<Json<KeyDocument>, Problem> {
    Ok(Json(service.key(path.id()?).await?))
}

/// Change name, expiry or rate of a key
///
/// What it is bound to does not change: make another key for that.
#[utoipa::path(patch, path = "/v1/keys/{id}", operation_id = "patch_key", tag = "keys",
    params(("id" = String, Path, description = "Id of the key")),
    request_body = KeyPatchBody,
    responses((status = 200, description = "The key as it is now", body = KeyDocument), (status = 404)))]
pub(crate) async fn change(
    State(service): State<Toolrack>,
    ApiPath(path): ApiPath<KeyPath>,
    By(actor): By,
    _query: ApiQuery<NoQuery>,
    ApiJson(body): ApiJson<KeyPatchBody>,
) -> Result<Json<KeyDocument>, Problem> {
    let rate = body.rate.map(|rate| rate.unwrap_or_default().into());
    let patch = KeyPatch { name: body.name, expires_in_seconds: body.expires_in_seconds, rate };
    Ok(Json(service.change_key(&actor, path.id()?, patch).await?))
}

/// Revoke a key
///
/// The next request with it is refused (other processes on the same database: within a second). Revoking twice is fine.
#[utoipa::path(delete, path = "/v1/keys/{id}", operation_id = "revoke_key", tag = "keys",
    params(("id" = String, Path, description = "Id of the key")),
    responses((status = 204, description = "It is revoked"), (status = 404)))]
pub(crate) async fn revoke(
    State(service): State<Toolrack>,
    ApiPath(path): ApiPath<KeyPath>,
    By(actor): By,
    _query: ApiQuery<NoQuery>,
) -> Result<StatusCode, Problem> {
    service.revoke_key(&actor, path.id()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Rotate a key
///
/// Makes a key of the same rights and the same length of life. Both are accepted until the overlap ends. Takes no body, or
/// an object.
#[utoipa::path(post, path = "/v1/keys/{id}/rotate", operation_id = "rotate_key", tag = "keys",
    params(("id" = String, Path, description = "Id of the key")),
    request_body(content = RotateBody, description = "An object, or no body at all"),
    responses((status = 201, description = "The new key", body = KeyCreated, headers(("Location" = String, description = "Its path"))), (status = 404), (status = 409)))]
pub(crate) async fn rotate(
    State(service): State<Toolrack>,
    ApiPath(path): ApiPath<KeyPath>,
    By(actor): By,
    _query: ApiQuery<NoQuery>,
    OptionalJson(body): OptionalJson<RotateBody>,
) -> Result<Response, Problem> {
    let overlap = body.overlap_seconds.unwrap_or(DEFAULT_OVERLAP_SECONDS);
    created(service.rotate_key(&actor, path.id()?, overlap).await?)
}

/// No cache on the way may keep a key.
fn created(created: KeyCreated) -> Result<Response, Problem> {
    let location = HeaderValue::try_from(format!("/v1/keys/{}", created.document.id));
    let headers = [
        (header::LOCATION, location.map_err(Problem::internal)?),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((StatusCode::CREATED, headers, Json(created)).into_response())
}
