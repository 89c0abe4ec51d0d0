//! Who changes something, for the log of changes.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;

use crate::http::auth::Auth;
use crate::http::layers::{HttpContext, RequestId};
use crate::http::problem::Problem;
use crate::http::scoped;
use crate::service::Actor;

/// The sender of a request, as the one who changes what it asks to change.
#[derive(Debug)]
pub(crate) struct By(pub(crate) Actor);

impl<S> FromRequestParts<S> for By
where
    S: Send + Sync,
    HttpContext: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let principal = scoped::principal(&parts.extensions)?;
        let is_open = matches!(HttpContext::from_ref(state).auth(), Auth::None);
        let request_id = parts.extensions.get::<RequestId>().map(|id| id.as_str().to_owned());
        Ok(Self(Actor::of(principal, is_open, request_id)))
    }
}
