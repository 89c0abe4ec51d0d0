//! Which regular expressions are offered: those that the provider's engine takes, a linear one within bounds.

use std::collections::HashMap;

use jsonschema::PatternOptions;
use serde_json::{Map, Value, json};

use super::notes::Notes;
use super::walk::At;

/// Longest regular expression, in bytes.
const MAX_LENGTH: usize = 2_000;

/// Different regular expressions of one schema that are looked at; the others are not offered.
const MAX_PATTERNS: usize = 64;

/// Size of one compiled expression, in bytes: the same as where arguments are checked (`core/schema`).
const MAX_COMPILED: usize = 256 * 1024;

/// As [`MAX_COMPILED`], where only what is no expression at all is refused.
const MAX_COMPILED_ANY: usize = 1024 * 1024;

/// Looks at each expression once.
pub(super) struct Patterns {
    linear: bool,
    known: HashMap<String, bool>,
}

impl Patterns {
    /// For an engine without look-around.
    pub(super) fn of_linear_engine() -> Self {
        Self { linear: true, known: HashMap::new() }
    }

    /// For engines that take every expression: only what is none at all is refused.
    pub(super) fn of_any_engine() -> Self {
        Self { linear: false, known: HashMap::new() }
    }

    pub(super) fn usable(&mut self, pattern: &str) -> bool {
        if let Some(usable) = self.known.get(pattern) {
            return *usable;
        }
        if pattern.len() > MAX_LENGTH || self.known.len() >= MAX_PATTERNS {
            return !self.linear;
        }
        let usable = compiles(pattern, self.linear);
        self.known.insert(pattern.to_owned(), usable);
        usable
    }

    /// Takes out the entries of `patternProperties` whose expression is not offered.
    pub(super) fn properties(&mut self, map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) {
        let Some(Value::Object(entries)) = map.get_mut("patternProperties") else { return };
        let before = entries.len();
        entries.retain(|pattern, _| self.usable(pattern));
        if entries.len() < before {
            // What these had allowed would count as additional now.
            map.shift_remove("additionalProperties");
            notes.lost("pattern_dropped", at, "a pattern of property names is no usable regular expression");
        }
    }
}

/// The validator's own reading of a `pattern`, with its translation from ECMA 262. It states its invariants as panics;
/// an expression that breaks one counts as unusable.
fn compiles(pattern: &str, linear: bool) -> bool {
    let build = || {
        let options = jsonschema::options().should_validate_formats(false).offline();
        let options = if linear {
            let limits = PatternOptions::regex();
            options.with_pattern_options(limits.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED))
        } else {
            let limits = PatternOptions::fancy_regex();
            options.with_pattern_options(limits.size_limit(MAX_COMPILED_ANY).dfa_size_limit(MAX_COMPILED_ANY))
        };
        options.build(&json!({ "pattern": pattern })).is_ok()
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(build)).unwrap_or(false)
}
