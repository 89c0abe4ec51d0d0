//! Whose data a request is about: the one check that its key covers it.
//!
//! The extractors of [`crate::http::body`] take nothing that is not [`Scoped`], so that no route can forget it. A foreign
//! user or project is answered as a path that leads nowhere.

use axum::http::Extensions;
use serde_json::Value;

use crate::core::id::Id;
use crate::core::keys::Principal;
use crate::http::problem::Problem;

/// A part of a request that may name users and projects.
pub trait Scoped {
    /// The user and the project that it names.
    fn scope(&self) -> (Option<&Id>, Option<&Id>);
}

/// Says that types name nobody.
macro_rules! names_nobody {
    ($($type:ty),* $(,)?) => {
        $(impl $crate::http::scoped::Scoped for $type {
            fn scope(&self) -> (Option<&$crate::core::id::Id>, Option<&$crate::core::id::Id>) {
                (None, None)
            }
        })*
    };
}

pub(crate) use names_nobody;

// The documents of configs: what they hold belongs to the scope in their path.
names_nobody!(Value);

/// Who sends the request. Only open routes have nobody, and these ask for nobody's data.
pub(crate) fn principal(extensions: &Extensions) -> Result<&Principal, Problem> {
    extensions.get().ok_or_else(|| Problem::internal("a route that needs a key was reached without one"))
}

/// The 404 of a part that names what the principal's key does not cover.
pub(crate) fn check(principal: &Principal, part: &impl Scoped) -> Result<(), Problem> {
    let (user, project) = part.scope();
    if principal.covers(user, project) { Ok(()) } else { Err(Problem::nothing_here()) }
}
