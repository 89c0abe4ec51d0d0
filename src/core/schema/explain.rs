//! The one error that helps most, in words.
//!
//! A schema with alternatives answers "matches none of them", which helps nobody. The error inside of the
//! alternative that was probably meant is told instead, where one can be singled out.

use std::fmt::{self, Display, Write};

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::core::text::is_hidden;

use super::{MAX_MESSAGE_CHARS, Violation};

/// Errors that are compared; further ones hardly are the cause of the first.
const MAX_COMPARED: usize = 64;

/// Values longer than this, as JSON, are not repeated in a message.
const MAX_SHOWN_CHARS: usize = 80;

/// The most useful error. None only when there is no error at all.
pub(super) fn best<'a>(
    errors: impl Iterator<Item = ValidationError<'a>>,
    arguments: &Value,
) -> Option<Violation> {
    let errors: Vec<ValidationError<'a>> = errors.take(MAX_COMPARED).collect();
    let chosen = choose(&errors)?;
    Some(Violation {
        path: path_of(chosen.error.instance_path().as_str(), arguments),
        pointer: chosen.error.instance_path().as_str().to_owned(),
        constraint: plain(&chosen.constraint, 64),
        message: chosen.message,
    })
}

/// The answer when the errors must not be gathered.
pub(super) fn unexplained() -> Violation {
    Violation {
        path: "arguments".to_owned(),
        pointer: String::new(),
        constraint: "schema".to_owned(),
        message: "the arguments do not match the tool's schema; they are too large to say where".to_owned(),
    }
}

struct Chosen<'e, 'a> {
    error: &'e ValidationError<'a>,
    constraint: String,
    message: String,
}

/// The best of several errors of one schema.
fn choose<'e, 'a>(errors: &'e [ValidationError<'a>]) -> Option<Chosen<'e, 'a>> {
    let best =
        errors.iter().min_by_key(|error| (class_of(error.kind()), std::cmp::Reverse(depth_of(error))))?;
    let chosen = match best.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternative(best, context),
        _ => None,
    };
    Some(chosen.unwrap_or_else(|| Chosen {
        error: best,
        constraint: best.kind().keyword().to_owned(),
        message: message_of(best),
    }))
}

/// The smaller, the more it says about what to change.
fn class_of(kind: &Kind) -> u8 {
    match kind {
        Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. } | Kind::Required { .. } => 0,
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => 2,
        Kind::OneOfMultipleValid { .. } | Kind::Not { .. } | Kind::FalseSchema => 3,
        _ => 1,
    }
}

fn depth_of(error: &ValidationError<'_>) -> usize {
    error.instance_path().as_str().matches('/').count()
}

/// The error of the alternative that was meant; a joint message when that cannot be told.
///
/// Contexts nest as deep as the schema applies in place, which is bounded before.
fn alternative<'e, 'a>(
    whole: &'e ValidationError<'a>,
    branches: &'e [Vec<ValidationError<'static>>],
) -> Option<Chosen<'e, 'a>> {
    let here = depth_of(whole);
    if let Some(expected) = types_only(branches, here) {
        let found = shown(whole.instance());
        return Some(Chosen {
            error: whole,
            constraint: "type".to_owned(),
            message: plain(&format_args!("{found} is not of type {expected}"), MAX_MESSAGE_CHARS),
        });
    }
    // A branch whose type or tag does not fit was not meant; then few errors, deep ones first.
    let unfit = |branch: &[ValidationError<'static>]| {
        let other_type = |error: &ValidationError<'_>| {
            matches!(error.kind(), Kind::Type { .. }) && depth_of(error) == here
        };
        let other_tag = |error: &ValidationError<'_>| {
            depth_of(error) <= here + 1
                && match error.kind() {
                    Kind::Constant { .. } => true,
                    Kind::Enum { options } => options.as_array().is_some_and(|options| options.len() == 1),
                    _ => false,
                }
        };
        (branch.iter().any(other_type), branch.iter().any(other_tag))
    };
    let rank = |branch: &[ValidationError<'static>]| {
        let deepest = branch.iter().map(depth_of).max().unwrap_or_default();
        (unfit(branch), std::cmp::Reverse(deepest), branch.len())
    };
    let branches: Vec<&[ValidationError<'static>]> =
        branches.iter().take(MAX_COMPARED).filter(|branch| !branch.is_empty()).map(Vec::as_slice).collect();
    let least = branches.iter().map(|branch| rank(branch)).min()?;
    let mut meant = branches.iter().filter(|branch| rank(branch) == least);
    let first = meant.next()?;
    if meant.next().is_none() && least.0 != (true, false) {
        return choose(first);
    }
    let mut reasons: Vec<String> = Vec::new();
    for branch in branches.iter().filter(|branch| rank(branch).0 == least.0).take(4) {
        if let Some(chosen) = choose(branch)
            && !reasons.contains(&chosen.message)
        {
            reasons.push(chosen.message);
        }
    }
    let reasons = reasons.join("; or ");
    Some(Chosen {
        error: whole,
        constraint: whole.kind().keyword().to_owned(),
        message: plain(&format_args!("none of the alternatives matches: {reasons}"), MAX_MESSAGE_CHARS),
    })
}

/// The expected types, when every alternative fails by nothing but the type of this very value.
fn types_only(branches: &[Vec<ValidationError<'static>>], here: usize) -> Option<String> {
    let mut types: Vec<String> = Vec::new();
    for branch in branches {
        let [error] = branch.as_slice() else { return None };
        let Kind::Type { kind } = error.kind() else { return None };
        if depth_of(error) != here {
            return None;
        }
        for name in type_names(kind) {
            if !types.contains(&name) {
                types.push(name);
            }
        }
    }
    (!types.is_empty()).then(|| types.join(" or "))
}

fn type_names(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(single) => vec![single.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|single| single.to_string()).collect(),
    }
}

fn message_of(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => {
            let (found, expected) = (shown(error.instance()), type_names(kind).join(" or "));
            plain(&format_args!("{found} is not of type {expected}"), MAX_MESSAGE_CHARS)
        }
        // The library names two options only; a model needs them all, as far as they fit.
        Kind::Enum { options } => {
            let found = shown(error.instance());
            plain(&format_args!("{found} is not one of {options}"), MAX_MESSAGE_CHARS)
        }
        Kind::FalseSchema => "nothing is allowed here".to_owned(),
        _ if is_long(error.instance()) => plain(&error.masked_with("the value"), MAX_MESSAGE_CHARS),
        _ => plain(error, MAX_MESSAGE_CHARS),
    }
}

/// A value as it stands in a message: its JSON when short, else what it is.
fn shown(value: &Value) -> String {
    if !is_long(value) {
        return value.to_string();
    }
    match value {
        Value::String(_) => "this text",
        Value::Array(_) => "this array",
        Value::Object(_) => "this object",
        _ => "this value",
    }
    .to_owned()
}

fn is_long(value: &Value) -> bool {
    let mut line = Line { text: String::new(), left: MAX_SHOWN_CHARS, cut: false };
    write!(line, "{value}").is_err() || line.cut
}

/// Text on one line without control characters, cut at `limit` characters; never more is rendered than is kept.
pub(super) fn plain(text: &impl Display, limit: usize) -> String {
    let mut line = Line { text: String::new(), left: limit, cut: false };
    // The error only says that the line is full.
    let _ = write!(line, "{text}");
    if line.cut {
        line.text.pop();
        line.text.push('…');
    }
    line.text
}

struct Line {
    text: String,
    left: usize,
    cut: bool,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars().filter(|character| !is_hidden(*character)) {
            if self.left == 0 {
                self.cut = true;
                return Err(fmt::Error);
            }
            self.left -= 1;
            self.text.push(if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
                ' '
            } else {
                character
            });
        }
        Ok(())
    }
}

/// `arguments.options.count`, `arguments[0]`: the JSON pointer as a path into the arguments.
pub fn path_of(pointer: &str, arguments: &Value) -> String {
    let mut path = "arguments".to_owned();
    let mut value = Some(arguments);
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if let Some(Value::Array(items)) = value {
            // Writing to a String cannot fail.
            let _ = write!(path, "[{token}]");
            value = token.parse::<usize>().ok().and_then(|index| items.get(index));
            continue;
        }
        let is_word = |character: char| character.is_alphanumeric() || character == '_' || character == '-';
        if !token.is_empty() && token.chars().all(is_word) {
            path.push('.');
            path.push_str(&token);
        } else {
            let _ = write!(path, "[{}]", Value::String(token.clone()));
        }
        value = value.and_then(|value| value.get(&token));
    }
    plain(&path, MAX_MESSAGE_CHARS)
}
