//! What mending found and did, as it is told: bounded, each kind of finding once.

use serde_json::{Map, Value};

use super::walk::At;
use crate::core::text::{clip, one_line};
use crate::core::warning::told;

/// Every code with what it means, for the page that explains them.
pub const LINTS: &[(&str, &str)] = &[
    (
        "alternatives_rewritten",
        "The provider reads `anyOf` alone; other forms of alternatives are written so.",
    ),
    ("boolean_schema", "`true` and `false` stood for schemas; `{}` and an impossible schema say the same."),
    ("bound_dropped", "A length or number is beyond what the provider takes; it stands in the description."),
    (
        "constant_rewritten",
        "The provider does not take `const`; the value is an enum or stands in the description.",
    ),
    ("dialect_upgraded", "A keyword of an older JSON Schema draft is written as draft 2020-12 has it."),
    ("enum_changed", "Values of an enum that the provider refuses were taken out, or the enum was."),
    ("format_dropped", "The provider does not know the format; it stands in the description."),
    (
        "hidden_characters",
        "Characters that are not shown were left out, and values that hold some; keys that hold some have another name.",
    ),
    ("items_added", "An array did not say what its items are."),
    ("key_renamed", "The provider refuses the key of an argument; the argument map leads back to it."),
    ("keyword_dropped", "The provider does not take the keyword; what it says stands in the description."),
    ("more", "There were more findings than are told."),
    ("not_strict", "The schema cannot be strict for this provider; the tool is offered without strict mode."),
    ("pattern_dropped", "A pattern is no regular expression that the provider takes."),
    ("properties_lifted", "The schema was a bare list of properties; they stand under `properties` now."),
    ("reference_cut", "A schema that refers to itself was written out to a depth and cut there."),
    ("reference_inlined", "The schema that a reference means stands in its place."),
    ("reference_moved", "What a reference means stands under `$defs` now."),
    ("reference_unresolved", "A reference leads nowhere; anything is allowed in its place."),
    ("required_changed", "`required` named what is no property, or was no list of names."),
    ("root_changed", "The root of a schema must be an object that has properties."),
    ("root_wrapped", "The arguments are no object; they are passed as the property `value`."),
    (
        "schemas_merged",
        "Schemas that all have to hold are written as one; where they contradict, the first one holds.",
    ),
    ("strict_closed", "Strict mode: the object takes no other properties."),
    ("strict_nullable", "Strict mode: an optional property is required and may be null, which means absent."),
    ("too_deep", "The schema is nested too deeply; the tool is left out for this provider."),
    ("too_large", "Writing the schema for this provider would make it too large; the tool is left out."),
    ("type_changed", "A type is no type of JSON Schema, or not written as the provider takes it."),
    ("type_missing", "The provider wants a type and the schema says none."),
    (
        "union_flattened",
        "Alternatives that the provider refuses here were joined; the description tells them.",
    ),
    ("unreadable", "The schema is not JSON; the tool is left out."),
    ("wrong_value", "A keyword had a value of the wrong kind."),
];

/// Findings that are told one by one; the others are counted.
const MAX_LINTS: usize = 40;

/// Longest text that is added to a description, in characters.
const TOLD_CHARS: usize = 400;

/// Longest value of a lost keyword in a description, in characters.
const VALUE_CHARS: usize = 100;

/// One finding about a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lint {
    /// Out of [`LINTS`].
    pub code: &'static str,
    /// JSON pointer into the schema, of the first such place. Where parts were moved before, it is the place
    /// where the part stood then.
    pub pointer: String,
    /// What was done, in a sentence.
    pub detail: String,
    /// Whether the schema that is sent says less than, or something else than, the original.
    pub lossy: bool,
}

struct Entry {
    lint: Lint,
    times: usize,
}

/// Gathers findings.
#[derive(Default)]
pub(super) struct Notes {
    entries: Vec<Entry>,
    more: usize,
    more_lossy: bool,
    changed: bool,
    weakened: Weakened,
}

/// Where a schema got weaker in a place that makes what is around it stricter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weakened {
    /// Inside of `not` or `if`.
    pub(super) negated: bool,
    /// Inside of `oneOf`.
    pub(super) exclusive: bool,
}

impl Notes {
    /// The schema was changed without loss.
    pub(super) fn mended(&mut self, code: &'static str, at: &At<'_>, detail: &str) {
        self.changed = true;
        self.add(code, at, detail, false);
    }

    /// The schema was changed and says less now.
    pub(super) fn lost(&mut self, code: &'static str, at: &At<'_>, detail: &str) {
        self.changed = true;
        self.weaker(at);
        self.add(code, at, detail, true);
    }

    /// The schema at this place allows more than before.
    pub(super) fn weaker(&mut self, at: &At<'_>) {
        // What a definition says may be referred to from anywhere.
        let shared = at.is_below("$defs") || at.is_below("definitions");
        self.weakened.negated |= shared || at.is_below("not") || at.is_below("if");
        self.weakened.exclusive |= shared || at.is_below("oneOf");
    }

    pub(super) fn weakened(&self) -> Weakened {
        self.weakened
    }

    /// Something to know about a schema that was not changed for it.
    pub(super) fn remark(&mut self, code: &'static str, detail: &str) {
        self.add(code, &At::ROOT, detail, false);
    }

    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Takes over what was found on the side.
    pub(super) fn append(&mut self, other: Notes) {
        self.changed |= other.changed;
        self.weakened.negated |= other.weakened.negated;
        self.weakened.exclusive |= other.weakened.exclusive;
        self.more += other.more;
        self.more_lossy |= other.more_lossy;
        self.entries.extend(other.entries);
    }

    fn add(&mut self, code: &'static str, at: &At<'_>, detail: &str, lossy: bool) {
        let same = |entry: &&mut Entry| {
            entry.lint.code == code && entry.lint.lossy == lossy && entry.lint.detail == detail
        };
        if let Some(entry) = self.entries.iter_mut().find(same) {
            entry.times += 1;
        } else if self.entries.len() < MAX_LINTS {
            let lint = Lint { code, pointer: at.pointer(), detail: detail.to_owned(), lossy };
            self.entries.push(Entry { lint, times: 1 });
        } else {
            self.more += 1;
            self.more_lossy |= lossy;
        }
    }

    pub(super) fn finish(self) -> Vec<Lint> {
        let mut lints: Vec<Lint> = self
            .entries
            .into_iter()
            .map(|Entry { mut lint, times }| {
                lint.detail = told(&lint.detail);
                if times > 1 {
                    lint.detail.push_str(&format!(" ({times} places)"));
                }
                lint
            })
            .collect();
        if self.more > 0 {
            let detail = format!("{} more findings", self.more);
            lints.push(Lint { code: "more", pointer: String::new(), detail, lossy: self.more_lossy });
        }
        lints
    }
}

/// Adds a text to a schema's description: on one line, without hidden characters, at most [`TOLD_CHARS`] characters.
pub(super) fn tell(map: &mut Map<String, Value>, text: &str) {
    let line = one_line(text);
    let line = clip(&line, TOLD_CHARS);
    match map.get_mut("description") {
        _ if line.is_empty() => {}
        Some(Value::String(description)) if !description.trim().is_empty() => {
            description.push_str(" (");
            description.push_str(&line);
            description.push(')');
        }
        _ => {
            map.insert("description".to_owned(), Value::String(line.into_owned()));
        }
    }
}

/// A keyword and its value as a description tells them: `format: uri`.
pub(super) fn say(keyword: &str, value: &Value) -> String {
    let text = match value {
        Value::String(text) => clip(text, VALUE_CHARS).into_owned(),
        other => clip(&other.to_string(), VALUE_CHARS).into_owned(),
    };
    format!("{keyword}: {text}")
}
