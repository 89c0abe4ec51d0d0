//! The one table of what each role may ask, by the operations of the API document. What is not in it is refused.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Admin,
    Setup,
    Agent,
    Metrics,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Admin, Self::Setup, Self::Agent, Self::Metrics];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Setup => "setup",
            Self::Agent => "agent",
            Self::Metrics => "metrics",
        }
    }

    /// The role of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// What the role is for, in a sentence.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Admin => "Everything, keys included. Bound to nothing.",
            Self::Setup => "Configs, catalogs and the setup flow of the users and projects that it covers.",
            Self::Agent => {
                "What an agent asks turn by turn, and the sessions, of the users and projects that it covers; may be \
                 limited to tools."
            }
            Self::Metrics => "The metrics, for a scraper. Bound to nothing.",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who may ask for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody, without a key.
    Open,
    /// Keys of these roles.
    Roles(&'static [Role]),
}

impl Access {
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::Open => true,
            Self::Roles(roles) => roles.contains(&role),
        }
    }
}

/// An operation of the API.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// As in the API document.
    pub id: &'static str,
    pub access: Access,
    /// Whether it is about a user or a project, which the key must cover.
    pub scoped: bool,
}

const ADMIN: Access = Access::Roles(&[Role::Admin]);
const SETUP: Access = Access::Roles(&[Role::Admin, Role::Setup]);
const AGENT: Access = Access::Roles(&[Role::Admin, Role::Agent]);
const BOTH: Access = Access::Roles(&[Role::Admin, Role::Setup, Role::Agent]);
const METRICS: Access = Access::Roles(&[Role::Admin, Role::Metrics]);

const fn scoped(id: &'static str, access: Access) -> Operation {
    Operation { id, access, scoped: true }
}

const fn plain(id: &'static str, access: Access) -> Operation {
    Operation { id, access, scoped: false }
}

/// Every operation of the API document.
pub const OPERATIONS: &[Operation] = &[
    scoped("assemble", AGENT),
    scoped("search", AGENT),
    scoped("describe", AGENT),
    scoped("call", AGENT),
    scoped("bridge", AGENT),
    scoped("list_sessions", AGENT),
    scoped("get_session", AGENT),
    scoped("delete_session", AGENT),
    scoped("reset_session", AGENT),
    scoped("release_tools", AGENT),
    scoped("pin_tools", AGENT),
    scoped("unpin_tools", AGENT),
    scoped("get_effective_config", SETUP),
    scoped("test_matcher", SETUP),
    scoped("get_user_config", SETUP),
    scoped("put_user_config", SETUP),
    scoped("patch_user_config", SETUP),
    scoped("delete_user_config", SETUP),
    scoped("get_user_catalog", SETUP),
    scoped("put_user_catalog", SETUP),
    scoped("patch_user_catalog", SETUP),
    scoped("delete_user_catalog", SETUP),
    scoped("get_user_catalog_tool", SETUP),
    scoped("lint_user_catalog", SETUP),
    scoped("get_project_config", SETUP),
    scoped("put_project_config", SETUP),
    scoped("patch_project_config", SETUP),
    scoped("delete_project_config", SETUP),
    scoped("get_project_catalog", SETUP),
    scoped("put_project_catalog", SETUP),
    scoped("patch_project_catalog", SETUP),
    scoped("delete_project_catalog", SETUP),
    scoped("get_project_catalog_tool", SETUP),
    scoped("lint_project_catalog", SETUP),
    plain("get_limits", BOTH),
    plain("create_key", ADMIN),
    plain("list_keys", ADMIN),
    plain("get_key", ADMIN),
    plain("patch_key", ADMIN),
    plain("revoke_key", ADMIN),
    plain("rotate_key", ADMIN),
    plain("metrics", METRICS),
    plain("healthz", Access::Open),
    plain("readyz", Access::Open),
];

/// The row of an operation; what has none is refused.
pub fn operation(id: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.id == id)
}
