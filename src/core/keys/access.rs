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
            Self::Setup => {
                "Configs, catalogs, sessions and the setup flow, with its pages, of the users and projects that it covers; over \
                 the bridge the management tools alone."
            }
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
    pub covers: Covers,
}

/// Whose data an operation is about, which the key must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    Nothing,
    User,
    Project,
    /// The user, and the project where one is named.
    Both,
}

impl Covers {
    /// For the documentation.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::User => "the user",
            Self::Project => "the project",
            Self::Both => "the user, and the project if one is named",
        }
    }
}

const ADMIN: Access = Access::Roles(&[Role::Admin]);
const SETUP: Access = Access::Roles(&[Role::Admin, Role::Setup]);
const AGENT: Access = Access::Roles(&[Role::Admin, Role::Agent]);
const BOTH: Access = Access::Roles(&[Role::Admin, Role::Setup, Role::Agent]);
const METRICS: Access = Access::Roles(&[Role::Admin, Role::Metrics]);

const fn agent(id: &'static str) -> Operation {
    Operation { id, access: AGENT, covers: Covers::Both }
}

/// Of agents and of those who set up.
const fn both(id: &'static str) -> Operation {
    Operation { id, access: BOTH, covers: Covers::Both }
}

const fn setup(id: &'static str, covers: Covers) -> Operation {
    Operation { id, access: SETUP, covers }
}

const fn admin(id: &'static str, covers: Covers) -> Operation {
    Operation { id, access: ADMIN, covers }
}

const fn plain(id: &'static str, access: Access) -> Operation {
    Operation { id, access, covers: Covers::Nothing }
}

/// Every operation of the API document.
pub const OPERATIONS: &[Operation] = &[
    agent("assemble"),
    agent("search"),
    agent("describe"),
    agent("call"),
    // A setup key is answered the management tools alone.
    both("bridge"),
    both("list_sessions"),
    both("get_session"),
    both("delete_session"),
    both("reset_session"),
    both("release_tools"),
    both("pin_tools"),
    both("unpin_tools"),
    setup("get_effective_config", Covers::Both),
    setup("apply_setup", Covers::Both),
    setup("test_matcher", Covers::Both),
    setup("list_mcp_tools", Covers::Both),
    setup("get_overview", Covers::Both),
    setup("import_setup", Covers::Both),
    setup("review_setup", Covers::Both),
    setup("propose_setup", Covers::Both),
    setup("preview_setup", Covers::Both),
    setup("get_setup_skill", Covers::Both),
    setup("get_user_config", Covers::User),
    setup("put_user_config", Covers::User),
    setup("patch_user_config", Covers::User),
    setup("delete_user_config", Covers::User),
    setup("list_user_config_versions", Covers::User),
    setup("restore_user_config", Covers::User),
    setup("get_user_catalog", Covers::User),
    setup("put_user_catalog", Covers::User),
    setup("patch_user_catalog", Covers::User),
    setup("delete_user_catalog", Covers::User),
    setup("get_user_catalog_tool", Covers::User),
    setup("lint_user_catalog", Covers::User),
    setup("get_user_reviews", Covers::User),
    admin("approve_user_tools", Covers::User),
    admin("reject_user_tools", Covers::User),
    setup("list_user_mcp_servers", Covers::User),
    setup("get_user_mcp_server", Covers::User),
    setup("put_user_mcp_server", Covers::User),
    setup("delete_user_mcp_server", Covers::User),
    setup("sync_user_mcp_server", Covers::User),
    setup("get_project_config", Covers::Project),
    setup("put_project_config", Covers::Project),
    setup("patch_project_config", Covers::Project),
    setup("delete_project_config", Covers::Project),
    setup("list_project_config_versions", Covers::Project),
    setup("restore_project_config", Covers::Project),
    setup("get_project_catalog", Covers::Project),
    setup("put_project_catalog", Covers::Project),
    setup("patch_project_catalog", Covers::Project),
    setup("delete_project_catalog", Covers::Project),
    setup("get_project_catalog_tool", Covers::Project),
    setup("lint_project_catalog", Covers::Project),
    setup("get_project_reviews", Covers::Project),
    admin("approve_project_tools", Covers::Project),
    admin("reject_project_tools", Covers::Project),
    setup("list_project_mcp_servers", Covers::Project),
    setup("get_project_mcp_server", Covers::Project),
    setup("put_project_mcp_server", Covers::Project),
    setup("delete_project_mcp_server", Covers::Project),
    setup("sync_project_mcp_server", Covers::Project),
    setup("get_audit", Covers::Both),
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
