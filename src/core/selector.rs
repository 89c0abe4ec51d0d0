//! Selectors: how a config or a request names tools (`name`, `prefix*`, `@group`, `*`). Owns their text
//! form and its bounds; knows nothing of catalogs, so what a selector takes is decided elsewhere.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest selector, in characters; as long as the longest tool name.
pub const MAX_SELECTOR_CHARS: usize = 512;

/// One entry of `core`, `allow`, `deny`, `unavailable` and the `tools` of a toolset.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Selector {
    /// `name`: the tools of exactly this name. Never empty.
    Name(String),
    /// `prefix*`: the tools whose name starts with this text (held without the star). Never empty.
    Prefix(String),
    /// `@group`: the tools of this group (held without the at sign). Never empty.
    Group(String),
    /// `*`: every tool.
    All,
}

/// Why a text is not a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSelector {
    #[error("a selector must not be blank; write a tool name, `prefix*`, `@group` or `*`")]
    Blank,
    #[error("a selector has at most {MAX_SELECTOR_CHARS} characters")]
    TooLong,
}

impl Selector {
    /// Reads a selector. The text is taken as it is, spaces included, because tool names are kept as they
    /// were uploaded.
    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        if longer_than(text, MAX_SELECTOR_CHARS) {
            return Err(InvalidSelector::TooLong);
        }
        if text == "*" {
            return Ok(Self::All);
        }
        let (body, make): (&str, fn(String) -> Self) = match (text.strip_prefix('@'), text.strip_suffix('*'))
        {
            (Some(group), _) => (group, Self::Group),
            (None, Some(prefix)) => (prefix, Self::Prefix),
            (None, None) => (text, Self::Name),
        };
        if body.trim().is_empty() {
            return Err(InvalidSelector::Blank);
        }
        Ok(make(body.to_owned()))
    }
}

/// Whether `text` has more than `limit` characters, without counting past the limit.
fn longer_than(text: &str, limit: usize) -> bool {
    text.len() > limit && text.chars().nth(limit).is_some()
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
            Self::Group(group) => write!(f, "@{group}"),
            Self::All => f.write_str("*"),
        }
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_form_is_told_apart() {
        assert_eq!(Selector::parse("read_file"), Ok(Selector::Name("read_file".to_owned())));
        assert_eq!(Selector::parse("read_*"), Ok(Selector::Prefix("read_".to_owned())));
        assert_eq!(Selector::parse("@files"), Ok(Selector::Group("files".to_owned())));
        assert_eq!(Selector::parse("*"), Ok(Selector::All));
        assert_eq!(Selector::parse("a * b"), Ok(Selector::Name("a * b".to_owned())));
    }

    #[test]
    fn blank_and_endless_selectors_are_refused() {
        for blank in ["", "  ", "@", "@ ", " *"] {
            assert_eq!(Selector::parse(blank), Err(InvalidSelector::Blank), "{blank:?}");
        }
        assert!(Selector::parse(&"é".repeat(512)).is_ok());
        assert_eq!(Selector::parse(&"é".repeat(513)), Err(InvalidSelector::TooLong));
    }

    proptest! {
        #[test]
        fn the_text_comes_back(text in "\\PC{1,40}") {
            if let Ok(selector) = Selector::parse(&text) {
                prop_assert_eq!(selector.to_string(), text);
            }
        }
    }
}
