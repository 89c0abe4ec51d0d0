//! Wire names: names that every provider accepts, made from stored names without losing which tool is meant.
//!
//! The alphabet `^[A-Za-z_][A-Za-z0-9_-]{0,63}$` is the intersection of what the providers document
//! (`tool-formats.md`, section 1.2). A name that does not fit is changed and ends in eight hexadecimal digits of the
//! SHA-256 of the stored name, so a wire name depends on its own stored name alone: adding a tool renames no other.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use crate::core::digest::name_suffix;

/// Longest wire name, in characters.
pub const MAX_WIRE_CHARS: usize = 64;

/// Whether a name may stand on the wire as it is.
pub fn fits(name: &str) -> bool {
    let bytes = name.as_bytes();
    let head = bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    head && bytes.len() <= MAX_WIRE_CHARS
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The wire name of a stored name: the same text where that fits, else [`with_suffix`].
pub fn wire_name(stored: &str) -> Cow<'_, str> {
    if fits(stored) { Cow::Borrowed(stored) } else { Cow::Owned(with_suffix(stored)) }
}

/// A stored name with each character that does not fit as `_`, cut, and with its hash at the end.
///
/// Also the name of a tool that would fit but is called like something else on the wire.
pub fn with_suffix(stored: &str) -> String {
    let room = MAX_WIRE_CHARS - 9;
    let mut wire = String::with_capacity(MAX_WIRE_CHARS);
    // Only as much as can stay is normalised: a name may be hundreds of characters long.
    for character in stored.chars().take(4 * MAX_WIRE_CHARS).nfc() {
        let kept = if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' };
        if wire.is_empty() && !kept.is_ascii_alphabetic() && kept != '_' {
            wire.push('_');
        }
        if wire.len() >= room {
            break;
        }
        wire.push(kept);
    }
    wire.push('_');
    wire.push_str(&name_suffix(stored));
    wire
}

/// The stored name of a tool whose name stands in several groups.
pub fn qualified(group: &str, name: &str) -> String {
    format!("{group}__{name}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_fit_stay_and_others_keep_their_reading() {
        for same in ["create_issue", "search-a", "_x", "a", &"x".repeat(64)] {
            assert_eq!(wire_name(same), same);
        }
        for (stored, head) in [
            ("service.doSomething", "service_doSomething_"),
            ("DELETE_/loadpoints/{id}", "DELETE__loadpoints__id__"),
            ("1password", "_1password_"),
            ("発注 する", "______"),
            ("", "_"),
        ] {
            let wire = wire_name(stored);
            assert!(fits(&wire) && wire.starts_with(head), "{stored} -> {wire}");
        }
    }

    #[test]
    fn twins_that_differ_only_behind_the_cut_stay_apart() {
        let common = "confluence_page_with_a_very_long_name_that_goes_on_and_on_for_more_than_64_characters_";
        assert_ne!(wire_name(&format!("{common}create")), wire_name(&format!("{common}delete")));
        assert_ne!(wire_name("a.b"), wire_name("a b"));
    }

    proptest! {
        #[test]
        fn every_wire_name_fits(stored in any::<String>()) {
            prop_assert!(fits(&wire_name(&stored)));
            prop_assert!(fits(&with_suffix(&stored)));
        }
    }
}
