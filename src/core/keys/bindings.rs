//! What a key is bound to: users and projects, by exact names or prefixes, and limits on tools.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Role;
use crate::core::grant::Selection;
use crate::core::id::{Id, InvalidId, MAX_ID_CHARS};
use crate::core::rate::{KeyRate, MAX_COUNT};
use crate::core::selector::Selector;
use crate::core::warning::FieldError;

/// Most patterns of one list.
pub const MAX_PATTERNS: usize = 200;

/// Most entries of `toolsets`, `allow` and `deny` each.
pub const MAX_LIMITS: usize = 1_000;

/// Which users or projects are meant: `name`, `prefix*`, or `*` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    Exact(Id),
    /// Without the star; empty means all.
    Prefix(String),
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a name, a beginning as `prefix*`, or `*`; {InvalidId}")]
pub struct InvalidPattern;

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        match text.strip_suffix('*') {
            Some("") => Ok(Self::Prefix(String::new())),
            // The beginning of an identifier is one, unless it is as long as identifiers get.
            Some(prefix) if prefix.len() < MAX_ID_CHARS => {
                Id::parse(prefix).map(|prefix| Self::Prefix(prefix.to_string())).map_err(|_| InvalidPattern)
            }
            Some(_) => Err(InvalidPattern),
            None => Id::parse(text).map(Self::Exact).map_err(|_| InvalidPattern),
        }
    }

    pub fn covers(&self, id: &Id) -> bool {
        match self {
            Self::Exact(exact) => exact == id,
            Self::Prefix(prefix) => id.as_str().starts_with(prefix.as_str()),
        }
    }

    /// Whether every identifier is covered.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::Prefix(prefix) if prefix.is_empty())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(id) => id.fmt(f),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// What a key is bound to. As stored, every field is there (but for a rate that is as usual) and no other: a restriction that
/// a later version adds must not be passed over by an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bindings {
    /// The users that are covered; empty: none.
    pub users: Vec<Pattern>,
    /// The projects that are covered; empty: none, so that only requests without a project pass.
    pub projects: Vec<Pattern>,
    /// Empty: no limit.
    pub toolsets: Vec<String>,
    /// Empty: no limit.
    pub allow: Vec<Selector>,
    pub deny: Vec<Selector>,
    /// How often its holder may ask, where it is not as usual.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub rate: KeyRate,
}

fn is_usual(rate: &KeyRate) -> bool {
    *rate == KeyRate::default()
}

impl Bindings {
    /// Whether both are covered, as far as they are named.
    pub fn covers(&self, user: Option<&Id>, project: Option<&Id>) -> bool {
        let covered = |patterns: &[Pattern], id: Option<&Id>| {
            id.is_none_or(|id| patterns.iter().any(|pattern| pattern.covers(id)))
        };
        covered(&self.users, user) && covered(&self.projects, project)
    }

    /// The limits as one more selection, which every grant is narrowed by; nothing where there are none.
    pub fn limits(&self) -> Option<Arc<Selection>> {
        let selection = Selection {
            toolsets: Some(self.toolsets.clone()).filter(|toolsets| !toolsets.is_empty()),
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            unavailable: Vec::new(),
        };
        (selection != Selection::default()).then(|| Arc::new(selection))
    }

    /// Whether a key of this role can have these bindings; the error names the key of the body.
    pub fn check(&self, role: Role) -> Result<(), FieldError> {
        let refuse =
            |key: &str, detail: String| Err(FieldError::new(format!("/{key}"), "invalid_value", detail));
        for (key, count, most) in [
            ("users", self.users.len(), MAX_PATTERNS),
            ("projects", self.projects.len(), MAX_PATTERNS),
            ("toolsets", self.toolsets.len(), MAX_LIMITS),
            ("allow", self.allow.len(), MAX_LIMITS),
            ("deny", self.deny.len(), MAX_LIMITS),
        ] {
            if count > most {
                return refuse(key, format!("{count} entries are more than {most}; use a prefix"));
            }
            let is_scope = matches!(key, "users" | "projects");
            if count > 0 && is_scope && matches!(role, Role::Admin | Role::Metrics) {
                return refuse(key, format!("a key of the role {role} is bound to no users and projects"));
            }
            if count > 0 && !is_scope && role != Role::Agent {
                return refuse(key, format!("limits on tools hold for the role agent alone, not for {role}"));
            }
        }
        if let Some((name, number)) = self.rate.fault() {
            let least = u8::from(name == "burst");
            return refuse(
                &format!("rate/{name}"),
                format!("{number} is not a number from {least} to {MAX_COUNT}"),
            );
        }
        match role {
            Role::Agent if self.users.is_empty() => refuse(
                "users",
                "every request of an agent names a user: say which ones this key covers, `*` for all"
                    .to_owned(),
            ),
            Role::Setup if self.users.is_empty() && self.projects.is_empty() => {
                refuse("users", "say which users or projects this key covers, `*` for all".to_owned())
            }
            _ => Ok(()),
        }
    }
}
