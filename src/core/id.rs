//! Identifiers of users, projects and sessions. A value of these types is always well formed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest identifier, in characters.
pub const MAX_ID_CHARS: usize = 128;

/// An identifier: 1 to 128 characters of `[A-Za-z0-9._@:-]`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Arc<str>);

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an identifier is 1 to 128 characters of A-Z, a-z, 0-9, '.', '_', '@', ':' and '-'")]
pub struct InvalidId;

impl Id {
    /// Reads an identifier; the error says what one looks like.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._@:-".contains(&byte);
        if text.is_empty() || text.len() > MAX_ID_CHARS || !text.bytes().all(allowed) {
            return Err(InvalidId);
        }
        Ok(Self(text.into()))
    }

    /// An identifier that no request can name and nothing is stored for: whoever asks for a project alone.
    pub fn nobody() -> Self {
        Self("".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The owner of one config and one catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    User(Id),
    Project(Id),
}

impl Scope {
    /// `user` or `project`, as stored and as shown.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Project(_) => "project",
        }
    }

    pub fn id(&self) -> &Id {
        match self {
            Self::User(id) | Self::Project(id) => id,
        }
    }
}

/// The identity of a session: two sessions of one id under different users or projects share nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    pub user: Id,
    pub project: Option<Id>,
    pub session: Id,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_bounded_and_plain() {
        for good in ["a", "team:42", "a.b-c_d@e", &"x".repeat(128)] {
            assert_eq!(Id::parse(good).map(|id| id.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "a b", "a/b", "é", "a\0", &"x".repeat(129)] {
            assert_eq!(Id::parse(bad), Err(InvalidId));
        }
    }
}
