//! What requests have in common: the caller and the grant, single-or-many pairs, scopes, query parameters.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::core::id::{Id, Scope};
use crate::core::warning::FieldError;
use crate::http::problem::{Code, Problem};
use crate::http::refusal::Sent;
use crate::http::scoped::{self, Scoped, names_nobody};

/// Defines the body of a route that works on a grant: who asks, the grant fields, and then the route's own fields.
///
/// A macro, because serde cannot flatten one struct into another that refuses unknown keys. In every such body a
/// null is an absent key.
macro_rules! grant_body {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
        #[serde(deny_unknown_fields)]
        $vis struct $name {
            /// The user whose catalog and config are used.
            #[schema(value_type = String, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
            user: $crate::core::id::Id,
            /// The project whose catalog and config are joined with the user's; without it the user's alone.
            #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
            project: Option<$crate::core::id::Id>,
            /// The session, which keeps what it found and the grant of its last assembly. An unknown one begins
            /// empty; without one nothing is kept.
            #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
            session: Option<$crate::core::id::Id>,
            /// Names of toolsets, to be limited to their tools. Empty: everything. Absent: in an assembly the
            /// `default_toolsets` of the config, elsewhere no further limit.
            toolsets: Option<Vec<String>>,
            /// The only tools to be seen: `name`, `prefix*`, `@group` or `*`. Empty or absent: no limit.
            #[schema(value_type = Option<Vec<String>>)]
            allow: Option<Vec<$crate::core::selector::Selector>>,
            /// Tools not to be seen, written like `allow`; subtracted last.
            #[schema(value_type = Option<Vec<String>>)]
            deny: Option<Vec<$crate::core::selector::Selector>>,
            /// Tools that cannot run at the moment, written like `allow`. They leave array, listing and matches, and
            /// keep their warm place.
            #[schema(value_type = Option<Vec<String>>)]
            unavailable: Option<Vec<$crate::core::selector::Selector>>,
            /// Live tools that an assembly of this user has sent, in place of the stored catalogs. In a session it
            /// must be the one of its last assembly.
            tools_ref: Option<String>,
            /// The provider's format of tools, calls and messages: `canonical` (default), `openai_chat`,
            /// `openai_responses`, `anthropic`, `gemini`, `bedrock_converse` or `mcp`.
            #[schema(example = "canonical")]
            format: Option<String>,
            /// The provider whose limits arrays keep: `generic` (what all accept), `openai`, `azure`, `anthropic`, `gemini`,
            /// `vertex`, `bedrock`, `bedrock-nova`, `deepseek`, `groq`, `mistral`, `cohere`, `ollama` or `vllm`. Default: the
            /// config's.
            #[schema(example = "generic")]
            profile: Option<String>,
            /// In the format `gemini`: `json_schema` (default, in `parametersJsonSchema`) or `openapi` (its subset, in
            /// `parameters`).
            schema_dialect: Option<String>,
            /// Whether tools that fit the provider's strict mode are sent as strict. Default: no.
            strict: Option<bool>,
            /// How tools outside of core reach the model: `bridge`, `native` (formats `anthropic` and `openai_responses`) or
            /// `namespaced` (`openai_responses`). Default: the config's.
            #[schema(example = "bridge")]
            exposure: Option<String>,
            /// The model's context window in tokens, 1000 to 10000000; out of range it is clamped. Default: the
            /// config's `context_window`.
            #[schema(minimum = 1000, maximum = 10_000_000)]
            context_window: Option<f64>,
            $($(#[$field_meta])* $field: $type,)*
        }

        impl $crate::http::scoped::Scoped for $name {
            fn scope(&self) -> (Option<&$crate::core::id::Id>, Option<&$crate::core::id::Id>) {
                (Some(&self.user), self.project.as_ref())
            }
        }

        impl $name {
            /// Takes out who asks and what for, within what the key allows; the route's own fields stay.
            fn take_grant(
                &mut self,
                principal: &$crate::core::keys::Principal,
            ) -> ($crate::service::Caller, $crate::service::GrantFields) {
                let caller = $crate::service::Caller {
                    user: self.user.clone(),
                    project: self.project.take(),
                    session: self.session.take(),
                    limits: principal.limits(),
                    allowances: principal.allowances().cloned(),
                };
                let selection = $crate::core::grant::Selection {
                    toolsets: self.toolsets.take(),
                    allow: self.allow.take().unwrap_or_default(),
                    deny: self.deny.take().unwrap_or_default(),
                    unavailable: self.unavailable.take().unwrap_or_default(),
                };
                let fields = $crate::service::GrantFields {
                    selection,
                    tools_ref: self.tools_ref.take(),
                    format: self.format.take(),
                    profile: self.profile.take(),
                    schema_dialect: self.schema_dialect.take(),
                    strict: self.strict,
                    exposure: self.exposure.take(),
                    context_window: self.context_window,
                };
                (caller, fields)
            }
        }
    };
}

pub(super) use grant_body;

/// A text, or several.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The values of a pair of keys, `name` and `names[]`, of which exactly one must be there; and where they stood.
pub(super) fn exactly_one<T>(
    one_key: &'static str,
    one: Option<T>,
    many_key: &'static str,
    many: Option<Vec<T>>,
) -> Result<(Vec<T>, Sent), Problem> {
    match (one, many) {
        (Some(value), None) => Ok((vec![value], Sent::Single(one_key))),
        (None, Some(values)) => Ok((values, Sent::List(many_key))),
        (None, None) => Err(missing(one_key, format!("send `{one_key}` or `{many_key}`"))),
        (Some(_), Some(_)) => Err(excluded(many_key, one_key)),
    }
}

/// A key that is required here.
pub(super) fn missing(key: &str, detail: String) -> Problem {
    Problem::invalid(vec![FieldError::new(format!("/{key}"), "missing_key", detail)])
}

/// A key that must not stand beside another one.
pub(super) fn excluded(key: &str, beside: &str) -> Problem {
    let detail = format!("send either `{beside}` or `{key}`, not both");
    Problem::invalid(vec![FieldError::new(format!("/{key}"), "invalid_value", detail)])
}

/// The user or project of a path below `/v1/users/{user}` or `/v1/projects/{project}`.
#[derive(Debug)]
pub(crate) struct ScopePath(pub(crate) Scope);

impl Scoped for ScopePath {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        match &self.0 {
            Scope::User(user) => (Some(user), None),
            Scope::Project(project) => (None, Some(project)),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ScopePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let invalid = |detail: String| Problem::new(Code::InvalidId, detail);
        let path = RawPathParams::from_request_parts(parts, state).await;
        let path = path.map_err(|rejection| invalid(rejection.body_text()))?;
        for (key, value) in &path {
            let scope = match key {
                "user" => Scope::User,
                "project" => Scope::Project,
                _ => continue,
            };
            let id = Id::parse(value).map_err(|error| invalid(error.to_string()))?;
            let path = Self(scope(id));
            scoped::check(scoped::principal(&parts.extensions)?, &path)?;
            return Ok(path);
        }
        Err(Problem::internal("a scoped route without a scope in its path"))
    }
}

/// How to write.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WriteQuery {
    /// Answers what the write would change, and writes nothing. Default: false.
    dry_run: Option<bool>,
}

impl WriteQuery {
    pub(super) fn dry_run(&self) -> bool {
        self.dry_run.unwrap_or(false)
    }
}

/// A route without query parameters that should notice one: a `dry_run` where there is none must not write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoQuery {}

names_nobody!(WriteQuery, NoQuery);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::core::json::JsonLimits;
    use crate::core::keys::Principal;
    use crate::http::body::parse_json;

    grant_body! {
        /// A body for the tests.
        struct GrantTestBody {
            own: Option<bool>,
        }
    }

    fn read(body: &Value) -> Result<GrantTestBody, Problem> {
        parse_json(body.to_string().as_bytes(), JsonLimits::strict(64))
    }

    #[test]
    fn every_grant_field_reaches_the_service() {
        let mut body = read(&json!({
            "user": "u", "project": "p", "session": "s", "toolsets": [], "allow": ["a*"], "deny": ["@b"],
            "unavailable": ["c"], "tools_ref": "r", "format": "anthropic", "profile": "generic",
            "context_window": 1e5, "own": true
        }))
        .unwrap();
        let (caller, fields) = body.take_grant(&Principal::Admin);
        assert!(caller.session_key().is_some() && caller.project.is_some() && body.own == Some(true));
        let selection = serde_json::to_value(&fields.selection).unwrap();
        assert_eq!(selection, json!({"toolsets": [], "allow": ["a*"], "deny": ["@b"], "unavailable": ["c"]}));
        assert_eq!((fields.tools_ref.as_deref(), fields.format.as_deref()), (Some("r"), Some("anthropic")));
        assert_eq!((fields.profile.as_deref(), fields.context_window), (Some("generic"), Some(100_000.0)));
    }

    #[test]
    fn null_is_absent_and_anything_else_is_named() {
        let mut body = read(&json!({"user": "u", "toolsets": null, "allow": null, "session": null})).unwrap();
        let (caller, fields) = body.take_grant(&Principal::Admin);
        assert!(
            caller.session.is_none()
                && fields.selection.toolsets.is_none()
                && fields.selection.allow.is_empty()
        );
        for (body, pointer) in [
            (json!({"user": "u", "alow": []}), "/alow"),
            (json!({"own": true}), "/user"),
            (json!({"user": "a/b"}), "/user"),
            (json!({"user": "u", "allow": ["a", " "]}), "/allow/1"),
            (json!({"user": "u", "deny": "x"}), "/deny"),
            (json!({"user": "u", "context_window": "8k"}), "/context_window"),
        ] {
            let problem = read(&body).expect_err("refused");
            assert_eq!(problem.errors()[0].pointer, pointer, "{body}");
        }
    }

    #[test]
    fn one_of_a_pair_is_taken_and_the_other_named() {
        let read = |one, many| {
            exactly_one("name", one, "names", many).map_err(|problem| problem.errors()[0].pointer.clone())
        };
        assert_eq!(read(Some(1), None), Ok((vec![1], Sent::Single("name"))));
        assert_eq!(read(None, Some(vec![2, 3])), Ok((vec![2, 3], Sent::List("names"))));
        assert_eq!(read(None, None), Err("/name".to_owned()));
        assert_eq!(read(Some(1), Some(Vec::new())), Err("/names".to_owned()));
    }
}
