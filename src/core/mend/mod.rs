//! Mending: a tool's schema as a provider accepts it, and the way back for the arguments of a call.
//!
//! [`mend`] is a function of the schema's text and the target alone, and bounded whatever the text says. A schema that
//! needs nothing keeps its bytes. Owns what is done to schemas; which provider asks for what is `core/profile`, and
//! names and descriptions of tools are not looked at here.
//!
//! The steps, in this order; each is told what to do by the rules of the target:
//!
//! 1. `shape`: every keyword has a value of its kind, in the spelling of draft 2020-12;
//! 2. `refs`, `inline`: references lead to `$defs`, or are written out;
//! 3. `root`, with `union` and `merge`: the root is an object without what is refused there;
//! 4. `compose`: joined schemas below the root; between the steps, `negation`: what got stricter by getting weaker;
//! 5. `dialect`, with `values` and `patterns`: the words of each schema;
//! 6. `keys`: names of arguments;
//! 7. `strict`: strict mode, where asked for and possible.
//!
//! What a schema loses is told in the description beside it where that helps a model. Mending what is mended changes
//! nothing.

mod args;
mod compose;
mod dialect;
mod draft;
mod hidden;
mod inline;
mod keys;
mod merge;
mod negation;
mod notes;
mod patterns;
mod refs;
mod root;
mod shape;
mod sound;
mod strict;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_bounds;
#[cfg(any(test, fuzzing))]
mod tests_checker;
#[cfg(test)]
mod tests_properties;
#[cfg(test)]
mod tests_weaker;
#[cfg(test)]
mod tests_words;
mod types;
mod union;
mod values;
mod walk;

use std::borrow::Cow;

use serde_json::{Map, Value};

#[cfg(any(test, fuzzing))]
pub use args::map;
pub use args::{ArgChange, ArgEffect, ArgPath, ArgStep, renamed_keys, unmap, wire_pointer};
pub use notes::{LINTS, Lint};
pub use sound::is_sound;
pub use strict::{StrictUse, strict_as_it_is};
#[cfg(any(test, fuzzing))]
pub use tests_checker::refused;

use super::profile::{Items, KeyRule, Keywords, OPENAPI, Profile, Refs, SchemaRules, StrictRules, Untyped};
use notes::Notes;
use union::Joiner;
use walk::is_deeper_than;

/// Deepest nesting of a schema that is read; the product's limit for request bodies.
pub const MAX_DEPTH: usize = 64;

/// Deepest nesting of a schema that is written: what JSON parsers take by default, with room for what is around it.
pub const MAX_OUT_DEPTH: usize = 100;

/// Most bytes that mending may add to a schema: the product's limit for a whole tool.
pub const MAX_ADDED_BYTES: usize = 256 * 1024;

/// Rounds of joining schemas and of taking out what that made impossible; an alternative that is the last one left is
/// joined in turn.
const MAX_ROUNDS: usize = 16;

/// In which language the schema is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    #[default]
    JsonSchema,
    /// Gemini's `parameters`: a subset of OpenAPI 3.0.
    OpenApi,
}

/// For whom a schema is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SchemaTarget {
    pub profile: Profile,
    pub dialect: Dialect,
    /// Whether the provider's strict mode is wanted.
    pub strict: bool,
}

/// What became of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing had to be done.
    Kept,
    /// It was changed; the notes say how.
    Mended,
    /// It cannot be sent to this target, for this reason.
    LeftOut(String),
}

/// A schema as the target accepts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended<'a> {
    /// Compact JSON; the text as it came where nothing had to be done or the tool is left out.
    pub schema: Cow<'a, str>,
    /// How arguments for this schema differ from those for the original.
    pub arg_map: Vec<ArgChange>,
    pub notes: Vec<Lint>,
    pub outcome: Outcome,
    /// Set where strict mode was asked for and the schema fits it. Where it is not set, the tool must not be sent
    /// as strict.
    pub strict: Option<StrictUse>,
    /// Whether the schema has no properties. Gemini's `parameters` must be left out then.
    pub no_arguments: bool,
}

/// Why a schema cannot be written for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    TooLarge,
    TooDeep,
    NotStrict(&'static str),
}

/// Bytes that may still be added.
#[derive(Debug, Clone, Copy)]
struct Budget(usize);

impl Budget {
    fn take(&mut self, bytes: usize) -> Result<(), Stop> {
        self.0 = self.0.checked_sub(bytes).ok_or(Stop::TooLarge)?;
        Ok(())
    }
}

/// Writes the schema of a tool's arguments as the target accepts it. Blank text is a tool without a schema.
pub fn mend<'a>(parameters: &'a str, target: &SchemaTarget) -> Mended<'a> {
    let read =
        if parameters.trim_ascii().is_empty() { Ok(Value::Null) } else { serde_json::from_str(parameters) };
    let Ok(document) = read else { return left_out(parameters, "unreadable", "the schema is not JSON") };
    if is_deeper_than(&document, MAX_DEPTH) {
        let reason = format!("the schema is nested deeper than {MAX_DEPTH} levels");
        return left_out(parameters, "too_deep", &reason);
    }
    match plan(document, target) {
        Ok(done) => done.finish(parameters),
        Err(Stop::TooDeep) => {
            let reason = format!("the mended schema would be nested deeper than {MAX_OUT_DEPTH} levels");
            left_out(parameters, "too_deep", &reason)
        }
        Err(Stop::TooLarge | Stop::NotStrict(_)) => too_large(parameters),
    }
}

fn too_large(parameters: &str) -> Mended<'_> {
    let reason = format!("writing the schema out would add more than {MAX_ADDED_BYTES} bytes to it");
    left_out(parameters, "too_large", &reason)
}

/// Strict where that is wanted and possible, else not.
fn plan(document: Value, target: &SchemaTarget) -> Result<Done, Stop> {
    if !target.strict {
        return run(document, target, None);
    }
    let strict = target.profile.limits().strict.filter(|_| target.dialect == Dialect::JsonSchema);
    let Some(strict) = strict else {
        let mut done = run(document, target, None)?;
        done.notes.remark("not_strict", "no strict mode is known for this provider and dialect");
        return Ok(done);
    };
    let why = match run(document.clone(), target, Some(&strict)) {
        Ok(done) => return Ok(done),
        Err(stop) => stop,
    };
    let mut done = run(document, target, None)?;
    // What stood in the way may be gone now. That also makes sure that mending again finds nothing new.
    if done.notes.is_changed()
        && let Ok(mut better) = run(Value::Object(done.root.clone()), target, Some(&strict))
    {
        // Keys have their wire names already, so all paths are those of the wire.
        done.changes.append(&mut better.changes);
        done.notes.append(better.notes);
        return Ok(Done { changes: done.changes, notes: done.notes, ..better });
    }
    let why = match why {
        Stop::NotStrict(why) => why,
        Stop::TooLarge | Stop::TooDeep => "the schema would be too large",
    };
    done.notes.remark("not_strict", &format!("not strict: {why}"));
    Ok(done)
}

fn left_out<'a>(parameters: &'a str, code: &'static str, reason: &str) -> Mended<'a> {
    let lint = Lint { code, pointer: String::new(), detail: reason.to_owned(), lossy: true };
    Mended {
        schema: Cow::Borrowed(parameters),
        arg_map: Vec::new(),
        notes: vec![lint],
        outcome: Outcome::LeftOut(reason.to_owned()),
        strict: None,
        no_arguments: false,
    }
}

/// The rules of a target: those of its dialect, and for strict mode what is stricter.
fn rules_of(target: &SchemaTarget, strict: Option<&StrictRules>) -> SchemaRules {
    let rules = match target.dialect {
        Dialect::JsonSchema => target.profile.limits().schema,
        Dialect::OpenApi => OPENAPI,
    };
    let Some(strict) = strict else { return rules };
    let root = super::profile::RootRules { properties: true, ..rules.root };
    SchemaRules {
        root,
        keywords: Keywords::Only(strict.keywords),
        refs: Refs::Inline,
        any_of_with_others: false,
        foreign_keywords: false,
        untyped: Untyped::Inferred,
        items: Items::Typed,
        formats: Some(strict.formats),
        linear_patterns: true,
        required_declared: true,
        ..rules
    }
}

/// A document that went through all steps.
struct Done {
    root: Map<String, Value>,
    changes: Vec<ArgChange>,
    notes: Notes,
    strict: Option<StrictUse>,
}

fn run(mut document: Value, target: &SchemaTarget, strict: Option<&StrictRules>) -> Result<Done, Stop> {
    let mut rules = rules_of(target, strict);
    let mut notes = Notes::default();
    let mut budget = Budget(MAX_ADDED_BYTES);
    let mut changes = Vec::new();
    let seen = shape::fix_document(&mut document, &mut notes);
    if let Value::Object(root) = &mut document {
        let hiding = hidden::settle(root, &mut notes);
        if hiding.references {
            rules.refs = Refs::Inline;
        }
        if hiding.keys {
            rules.keys = KeyRule::Everywhere;
        }
    }
    if let Value::Object(root) = &mut document
        && seen.combined
    {
        negation::settle(root, &mut notes);
    }
    if seen.references {
        let cut = refs::settle(&mut document, &rules, &mut budget, &mut notes)?;
        if cut && strict.is_some() {
            return Err(Stop::NotStrict("the schema refers to itself"));
        }
    }
    let Value::Object(mut root) = document else { return Err(Stop::TooLarge) };
    let defs = match root.get("$defs") {
        Some(Value::Object(defs)) if seen.references => defs.clone(),
        _ => Map::new(),
    };
    let mut joiner =
        Joiner { rules: &rules, defs: &defs, budget: &mut budget, notes: &mut notes, open: Vec::new() };
    root::settle(&mut root, &mut joiner, &mut changes)?;
    joiner.open.clear();
    if seen.combined || seen.references {
        for _ in 0..MAX_ROUNDS {
            compose::settle(&mut root, &mut joiner)?;
            if !negation::settle(&mut root, joiner.notes) {
                break;
            }
        }
    }
    dialect::settle(&mut root, &rules, &mut notes);
    negation::weaken(&mut root, &mut notes);
    keys::rename(&mut root, rules.keys, &mut budget, &mut changes, &mut notes)?;
    let strict = match strict {
        Some(strict) => Some(strict::enforce(&mut root, strict, &mut changes, &mut notes)?),
        None => None,
    };
    root::keep_only(&mut root, &rules, &mut notes);
    if notes.is_changed() && is_deeper_than_map(&root, MAX_OUT_DEPTH) {
        return Err(Stop::TooDeep);
    }
    Ok(Done { root, changes, notes, strict })
}

fn is_deeper_than_map(map: &Map<String, Value>, levels: usize) -> bool {
    map.values().any(|value| is_deeper_than(value, levels.saturating_sub(1)))
}

impl Done {
    fn finish(self, parameters: &str) -> Mended<'_> {
        let no_arguments = self.root.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
        let changed = self.notes.is_changed();
        let schema = if changed {
            Cow::Owned(Value::Object(self.root).to_string())
        } else {
            Cow::Borrowed(parameters)
        };
        if schema.len() > parameters.len() + MAX_ADDED_BYTES {
            return too_large(parameters);
        }
        Mended {
            schema,
            arg_map: self.changes,
            notes: self.notes.finish(),
            outcome: if changed { Outcome::Mended } else { Outcome::Kept },
            strict: self.strict,
            no_arguments,
        }
    }
}
