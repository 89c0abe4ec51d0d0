//! The OpenAPI document: made from the routes, finished here with what all of them have in common.

use axum::http::Method;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, Response,
    ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::core::id::MAX_ID_CHARS;
use crate::core::keys::{self, Access, Covers};
use crate::http::problem::{Code, PROBLEM_JSON, ProblemDocument};
use crate::http::router;

/// Name of the security scheme.
const BEARER: &str = "bearer";

/// What a key is.
const KEY: &str = "The admin key of the settings, or a key from `POST /v1/keys`: `trk_<id>_<secret>_<check>`. Each operation \
    says which roles may ask it (403 otherwise); users and projects that a key does not cover are answered with a 404.";

/// In operation ids of routes that exist for users and projects, replaced by `user` or `project`.
const SCOPE: &str = "scope";

const ABOUT: &str = "Keeps the tool lists of LLM agents small without hiding what they can do: holds catalogs of \
    tools, hands each turn a small ready-to-send `tools` array, and lets the model find, read and call the rest on \
    demand. It never runs a tool.\n\nWhatever is not answered as asked is a problem document (RFC 9457) with a stable \
    `code`; all codes are explained at `/docs/errors`. Unknown keys of a body are refused, so that a misspelt one is \
    noticed; in the bodies of the agent's routes a null is an absent key. Users, projects and sessions need no \
    creation.\n\nEvery answer has the `x-request-id` that was sent, or one of its own, and below `/v1` a `server-timing` header: \
    milliseconds for `total` and, where there are such parts, `queue`, `rank`, `endpoint` and `db`. Where the service sends traces, \
    a `traceparent` header puts a request into its caller's trace, and `traceresponse` names the trace of the answer.\n\nAn answer that shows or writes a config or a catalog tells its state in an `x-toolrack-revision` \
    header, and a request with that header is answered from that state or a later one, whichever process it reaches.";

const TAGS: [(&str, &str); 6] = [
    ("agent", "What an agent asks, turn by turn"),
    ("catalogs", "The stored tools of users and projects"),
    ("configs", "The settings of users and projects"),
    ("sessions", "What sessions found and keep"),
    ("keys", "Who may ask what"),
    ("service", "Limits, health and metrics"),
];

/// The whole document, OpenAPI 3.1.
pub fn document() -> OpenApi {
    finished(router::api().1)
}

/// The text of a document.
pub(crate) fn json(document: &OpenApi) -> String {
    // Maps with text keys, texts and numbers always serialise.
    document.to_json().unwrap_or_default()
}

/// The document without routes.
pub(crate) fn base() -> OpenApi {
    let info =
        InfoBuilder::new().title("Toolrack").version(env!("CARGO_PKG_VERSION")).description(Some(ABOUT));
    let tag = |(name, about)| TagBuilder::new().name(name).description(Some(about)).build();
    OpenApiBuilder::new().info(info.build()).tags(Some(TAGS.map(tag))).build()
}

/// Routes that were written for any scope, as those of `user` or `project`.
pub(crate) fn of_scope<S>(mut router: OpenApiRouter<S>, kind: &str) -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    for operation in router.get_openapi_mut().paths.paths.values_mut().flat_map(operations) {
        operation.operation_id = operation.operation_id.take().map(|id| id.replace(SCOPE, kind));
        operation.summary = operation.summary.take().map(|summary| format!("{summary} of a {kind}"));
        let parameter =
            Parameter::builder().name(kind).parameter_in(ParameterIn::Path).required(Required::True);
        operation.parameters.get_or_insert_default().insert(0, parameter.build().into());
    }
    router
}

/// Adds what all operations have in common: identifiers, the key, and the problems that can be answered.
pub(crate) fn finished(mut document: OpenApi) -> OpenApi {
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        operation.parameters.iter_mut().flatten().for_each(complete_parameter);
        let row = operation.operation_id.as_deref().and_then(keys::operation);
        if let Some(row) = row {
            add_access(operation, row);
        }
        add_problems(operation);
    }
    document.security = Some(vec![SecurityRequirement::new(BEARER, Vec::<String>::new())]);
    let components = document.components.get_or_insert_with(Components::new);
    let mut schemas = vec![(ProblemDocument::name().into_owned(), ProblemDocument::schema())];
    ProblemDocument::schemas(&mut schemas);
    components.schemas.extend(schemas);
    for status in problem_statuses() {
        components.responses.insert(problem_name(status), problem_response(status).into());
    }
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(KEY));
    components.security_schemes.insert(BEARER.to_owned(), SecurityScheme::Http(scheme.build()).into());
    document
}

/// The operations of a path that this API uses.
fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete].into_iter().flatten()
}

/// The operations of a path with their methods.
pub(crate) fn operations_by_method(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    let all = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

/// Says once what identifiers look like, and that a header is a text or not there at all.
fn complete_parameter(parameter: &mut RefOr<Parameter>) {
    let RefOr::T(parameter) = parameter else { return };
    let text = ObjectBuilder::new().schema_type(Type::String);
    if parameter.parameter_in == ParameterIn::Header {
        parameter.schema = Some(Schema::from(text.build()).into());
        return;
    }
    let (about, example) = match parameter.name.as_str() {
        "user" => ("Identifier of the user", "ada"),
        "project" => ("Identifier of the project", "apollo"),
        "session" => ("Identifier of the session", "s1"),
        _ => return,
    };
    let schema = ObjectBuilder::new().schema_type(Type::String).examples([example]);
    let schema = schema.min_length(Some(1)).max_length(Some(MAX_ID_CHARS));
    parameter.schema = Some(Schema::from(schema.pattern(Some("^[A-Za-z0-9._@:-]+$")).build()).into());
    if parameter.description.is_none() {
        parameter.description = Some(about.to_owned());
    }
}

/// Tells which roles may ask, and how what a key does not allow is answered.
fn add_access(operation: &mut Operation, row: &keys::Operation) {
    let Access::Roles(roles) = row.access else { return };
    let roles: Vec<String> = roles.iter().map(|role| format!("`{role}`")).collect();
    let roles = format!("Roles: {}.", roles.join(", "));
    operation.description = Some(match operation.description.take() {
        Some(description) => format!("{description}\n\n{roles}"),
        None => roles,
    });
    let responses = &mut operation.responses.responses;
    responses.entry("403".to_owned()).or_insert_with(|| problem_ref(403));
    if row.covers != Covers::Nothing {
        responses.entry("404".to_owned()).or_insert_with(|| problem_ref(404));
    }
}

/// Adds the problems that follow from the form of an operation, and completes those that it lists by status alone.
fn add_problems(operation: &mut Operation) {
    let mut statuses = vec![500, 503];
    if operation.security.is_none() {
        statuses.extend([401, 429]);
    }
    if operation.request_body.is_some() {
        statuses.extend([400, 413, 415]);
    }
    if operation.request_body.is_some() || operation.parameters.is_some() {
        statuses.push(422);
    }
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        let is_bare = matches!(&*response, RefOr::T(response) if response.content.is_empty());
        if let Some(status) = status.parse().ok().filter(|status: &u16| is_bare && *status >= 400) {
            *response = problem_ref(status);
        }
    }
    for status in statuses {
        responses.entry(status.to_string()).or_insert_with(|| problem_ref(status));
    }
}

fn problem_statuses() -> Vec<u16> {
    let mut statuses: Vec<u16> = Code::ALL.iter().map(|code| code.status().as_u16()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn problem_name(status: u16) -> String {
    format!("Problem{status}")
}

fn problem_ref(status: u16) -> RefOr<Response> {
    Ref::from_response_name(problem_name(status)).into()
}

/// The problem of a status, with its codes.
fn problem_response(status: u16) -> Response {
    let codes = Code::ALL.iter().filter(|code| code.status().as_u16() == status);
    let codes: Vec<String> = codes.map(|code| format!("`{}`: {}.", code.as_str(), code.title())).collect();
    let schema = Ref::from_schema_name(ProblemDocument::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().description(codes.join(" ")).content(PROBLEM_JSON, content).build()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;
    use crate::http::auth::is_open;

    fn served() -> Value {
        serde_json::from_str(&json(&document())).unwrap()
    }

    /// Every operation with its path.
    fn each_operation(document: &Value, mut look: impl FnMut(&str, &Value)) {
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                look(&format!("{method} {path}"), operation);
            }
        }
    }

    fn each_ref(value: &Value, look: &mut dyn FnMut(&str)) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get("$ref") {
                    look(target);
                }
                map.values().for_each(|inner| each_ref(inner, look));
            }
            Value::Array(items) => items.iter().for_each(|inner| each_ref(inner, look)),
            _ => {}
        }
    }

    #[test]
    fn every_operation_is_named_and_described() {
        let document = served();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        let (mut ids, mut count) = (HashSet::new(), 0);
        each_operation(&document, |place, operation| {
            let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{place} has no id"));
            assert!(ids.insert(id.to_owned()) && !id.contains(SCOPE), "{place}: {id}");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{place}");
            let tag = operation["tags"][0].as_str().unwrap();
            assert!(TAGS.iter().any(|(name, _)| *name == tag), "{place}: {tag}");
            count += 1;
        });
        assert_eq!(count, 73);
    }

    #[test]
    fn every_operation_tells_its_problems() {
        let document = served();
        each_operation(&document, |place, operation| {
            let path = place.split_once(' ').unwrap().1;
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.contains_key("500"), "{place}");
            assert_eq!(responses.contains_key("401"), !is_open(path), "{place}");
            assert_eq!(responses.contains_key("413"), operation.get("requestBody").is_some(), "{place}");
            let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
            for name in path.split('{').skip(1).map(|part| part.split('}').next().unwrap()) {
                let is_it = |parameter: &&Value| parameter["name"] == name && parameter["in"] == "path";
                let parameter = parameters.iter().find(is_it).unwrap_or_else(|| panic!("{place}: {name}"));
                assert!(
                    parameter["required"] == true && parameter["description"].is_string(),
                    "{place}: {name}"
                );
            }
        });
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = served();
        let mut count = 0;
        each_ref(&document, &mut |target| {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target}");
            count += 1;
        });
        assert!(count > 100);
    }

    #[test]
    fn config_keys_come_from_their_table() {
        let document = served();
        let keys = &document["components"]["schemas"]["ScopeConfig"]["properties"];
        assert_eq!(keys["max_warm_tools"]["default"], 8);
        assert_eq!(keys["matcher"]["properties"]["timeout_ms"]["default"], 15_000);
    }
}
