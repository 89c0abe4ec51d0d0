//! Who sends a request, as far as it decides what is allowed.

use std::sync::Arc;

use super::{Bindings, KeyId, Role};
use crate::core::grant::Selection;
use crate::core::id::Id;
use crate::core::rate::Allowances;

/// What a key may do.
#[derive(Debug)]
pub struct KeyRights {
    pub id: KeyId,
    pub role: Role,
    bindings: Bindings,
    limits: Option<Arc<Selection>>,
    /// Shared by all states of the key that have the same rate.
    pub allowances: Arc<Allowances>,
}

impl KeyRights {
    pub fn new(id: KeyId, role: Role, bindings: Bindings, allowances: Arc<Allowances>) -> Self {
        Self { id, role, limits: bindings.limits(), bindings, allowances }
    }
}

/// Who sends a request. Stands in the extensions of every request that a handler of a closed route sees.
#[derive(Debug, Clone)]
pub enum Principal {
    /// The admin key of the settings, or anybody where there is no authentication.
    Admin,
    /// The holder of a stored key.
    Key(Arc<KeyRights>),
}

impl Principal {
    pub fn role(&self) -> Role {
        match self {
            Self::Admin => Role::Admin,
            Self::Key(rights) => rights.role,
        }
    }

    /// Whether the data of this user and this project may be asked for, as far as they are named.
    pub fn covers(&self, user: Option<&Id>, project: Option<&Id>) -> bool {
        match self {
            Self::Admin => true,
            Self::Key(rights) => rights.role == Role::Admin || rights.bindings.covers(user, project),
        }
    }

    /// Whether all projects are covered.
    pub fn covers_all_projects(&self) -> bool {
        match self {
            Self::Admin => true,
            Self::Key(rights) => {
                rights.role == Role::Admin || rights.bindings.projects.iter().any(super::Pattern::is_all)
            }
        }
    }

    /// How often the holder may ask; nothing for who has no stored key.
    pub fn allowances(&self) -> Option<&Arc<Allowances>> {
        match self {
            Self::Admin => None,
            Self::Key(rights) => Some(&rights.allowances),
        }
    }

    /// What every grant is narrowed by, beside what the request says.
    pub fn limits(&self) -> Option<Arc<Selection>> {
        match self {
            Self::Admin => None,
            Self::Key(rights) => rights.limits.clone(),
        }
    }
}
