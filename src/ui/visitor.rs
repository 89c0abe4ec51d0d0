//! Who looks at a page, and whose page it is: what every handler takes.

use std::collections::HashMap;

use axum::extract::{FromRef, FromRequestParts, Path};
use axum::http::request::Parts;
use maud::Markup;

use super::language::Language;
use crate::core::id::{Id, Scope};
use crate::core::keys::{Principal, Role};
use crate::http::auth::Auth;
use crate::http::layers::{HttpContext, RequestId};
use crate::http::pages::FormToken;
use crate::http::problem::Problem;
use crate::service::{Actor, Caller};

/// A person at a browser, signed in unless the server asks for no keys.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(super) principal: Principal,
    pub(super) token: FormToken,
    pub(super) language: Language,
    pub(super) actor: Actor,
    /// Whether the server asks for keys, so that one can sign out.
    pub(super) signed_in: bool,
    /// Path and query of the page.
    pub(super) here: String,
    /// Whether a part of a page is asked for, not a whole one.
    pub(super) part: bool,
}

impl Visitor {
    pub(super) fn is_admin(&self) -> bool {
        self.principal.role() == Role::Admin
    }

    /// Whether the key of this person covers a scope.
    pub(super) fn covers(&self, scope: &Scope) -> bool {
        match scope {
            Scope::User(user) => self.principal.covers(Some(user), None),
            Scope::Project(project) => self.principal.covers(None, Some(project)),
        }
    }
}

impl<S> FromRequestParts<S> for Visitor
where
    S: Send + Sync,
    HttpContext: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let missing = || Problem::internal("a page was reached by nobody");
        let principal: Principal = parts.extensions.get().cloned().ok_or_else(missing)?;
        let token: FormToken = parts.extensions.get().cloned().ok_or_else(missing)?;
        let is_open = matches!(HttpContext::from_ref(state).auth(), Auth::None);
        let request_id = parts.extensions.get::<RequestId>().map(|id| id.as_str().to_owned());
        Ok(Self {
            actor: Actor::of(&principal, is_open, request_id),
            principal,
            token,
            language: Language::of(&parts.headers),
            signed_in: !is_open,
            here: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            part: parts.headers.contains_key("hx-request")
                && !["hx-boosted", "hx-history-restore-request"]
                    .iter()
                    .any(|whole| parts.headers.contains_key(*whole)),
        })
    }
}

/// A page of a user or project: `/ui/users/{id}/…`, `/ui/projects/{id}/…`.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(super) visitor: Visitor,
    pub(super) scope: Scope,
    /// What a page is to say first: of the setup flow, or of a session.
    pub(super) told: Option<Markup>,
}

impl Place {
    /// The path of another page of this scope.
    pub(super) fn path(&self, page: &str) -> String {
        format!("{}/{page}", base(&self.scope))
    }

    /// Who asks for what this scope's agents see: the user, or nobody in particular of the project.
    pub(super) fn caller(&self) -> Caller {
        let (user, project) = match &self.scope {
            Scope::User(user) => (user.clone(), None),
            Scope::Project(project) => (Id::nobody(), Some(project.clone())),
        };
        let principal = &self.visitor.principal;
        let allowances = principal.allowances().cloned();
        Caller { user, project, session: None, limits: principal.limits(), allowances }
    }
}

/// The path that all pages of a scope begin with.
pub(super) fn base(scope: &Scope) -> String {
    let kind = match scope {
        Scope::User(_) => "users",
        Scope::Project(_) => "projects",
    };
    format!("/ui/{kind}/{}", scope.id())
}

/// The scope that two parts of a path name.
pub(super) fn scope_of(kind: &str, id: &str) -> Option<Scope> {
    let id = Id::parse(id).ok()?;
    match kind {
        "users" | "user" => Some(Scope::User(id)),
        "projects" | "project" => Some(Scope::Project(id)),
        _ => None,
    }
}

impl<S> FromRequestParts<S> for Place
where
    S: Send + Sync,
    HttpContext: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let visitor = Visitor::from_request_parts(parts, state).await?;
        let path: Path<HashMap<String, String>> =
            Path::from_request_parts(parts, state).await.map_err(|_| Problem::nothing_here())?;
        let part = |name: &str| path.get(name).map(String::as_str).unwrap_or_default();
        let scope = scope_of(part("kind"), part("id")).filter(|scope| visitor.covers(scope));
        Ok(Self { visitor, scope: scope.ok_or_else(Problem::nothing_here)?, told: None })
    }
}
