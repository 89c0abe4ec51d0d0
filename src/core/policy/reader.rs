//! The reader of a document: where it stands (a JSON pointer), how strict it is, and what it found.
//! Knows no key; the rules tell it what is wrong, and it decides whether that is a fault or a warning.

use std::borrow::Cow;
use std::fmt::Display;

use serde_json::Value;

use crate::core::text::counted;
use crate::core::warning::{FieldError, Warning, pointer_push};

/// Most faults, and most warnings, that one reading reports one by one: a hostile body of a million faults
/// must not make an answer of a million entries.
const MAX_REPORTED: usize = 100;

/// Longest piece of the caller's own text that a message repeats, in characters.
const MAX_QUOTED_CHARS: usize = 100;

/// Longest key that a pointer repeats whole, in characters: as long as the longest tool name, which
/// `aliases` has as keys.
const MAX_POINTER_CHARS: usize = 512;

/// Reads one document and collects what is wrong with it.
pub(super) struct Reader {
    lenient: bool,
    pointer: String,
    errors: Vec<FieldError>,
    more_errors: usize,
    warnings: Vec<Warning>,
    more_warnings: usize,
}

impl Reader {
    /// Every fault refuses the document.
    pub(super) fn strict() -> Self {
        Self::new(false)
    }

    /// Every fault is a warning.
    pub(super) fn lenient() -> Self {
        Self::new(true)
    }

    fn new(lenient: bool) -> Self {
        Self {
            lenient,
            pointer: String::new(),
            errors: Vec::new(),
            more_errors: 0,
            warnings: Vec::new(),
            more_warnings: 0,
        }
    }

    pub(super) fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// The faults and the warnings, each list closed by an entry that counts what it leaves out.
    pub(super) fn finish(mut self) -> (Vec<FieldError>, Vec<Warning>) {
        if self.more_errors > 0 {
            let detail =
                format!("{} not listed", counted(self.more_errors, "more fault is", "more faults are"));
            self.errors.push(FieldError::new("", "more_faults", detail));
        }
        if self.more_warnings > 0 {
            let detail =
                format!("{} not listed", counted(self.more_warnings, "more warning is", "more warnings are"));
            self.warnings.push(Warning::new("more_warnings", detail));
        }
        (self.errors, self.warnings)
    }

    /// Reads what stands under `token`.
    pub(super) fn at<T>(&mut self, token: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        pointer_push(&mut self.pointer, &cut(token, MAX_POINTER_CHARS));
        let out = read(self);
        self.pointer.truncate(length);
        out
    }

    /// Reports something wrong here.
    pub(super) fn fault(&mut self, code: &'static str, detail: impl Into<String>) {
        self.fault_with(code, || detail.into());
    }

    /// The same with a sentence that costs something to make: only faults that are listed pay for it.
    fn fault_with(&mut self, code: &'static str, detail: impl FnOnce() -> String) {
        if self.lenient {
            self.warn_with("stored_field_ignored", || format!("not used: {}", detail()));
        } else if self.errors.len() < MAX_REPORTED {
            self.errors.push(FieldError::new(self.pointer.clone(), code, detail()));
        } else {
            self.more_errors += 1;
        }
    }

    /// Reports a value of the wrong JSON type.
    pub(super) fn wrong_type(&mut self, wanted: &str, found: &Value) {
        self.fault("wrong_type", format!("{wanted} is wanted here, not {}", describe(found)));
    }

    /// Reports a number that was moved into its range.
    pub(super) fn clamped(&mut self, detail: impl Into<String>) {
        self.warn_with("clamped", || detail.into());
    }

    /// Tells something about a value that is taken as it is.
    pub(super) fn warn(&mut self, code: &'static str, detail: impl Into<String>) {
        self.warn_with(code, || detail.into());
    }

    fn warn_with(&mut self, code: &'static str, detail: impl FnOnce() -> String) {
        if self.warnings.len() < MAX_REPORTED {
            self.warnings.push(Warning::new(code, detail()).at(self.pointer.clone()));
        } else {
            self.more_warnings += 1;
        }
    }

    /// Reads the entries of an object with known keys; nulls count as absent. None if it is no object.
    pub(super) fn object(
        &mut self,
        value: &Value,
        known: &[&str],
        mut each: impl FnMut(&mut Self, &str, &Value),
    ) -> Option<()> {
        let Value::Object(entries) = value else {
            self.wrong_type("an object", value);
            return None;
        };
        for (key, value) in entries {
            self.at(key, |reader| {
                if !known.contains(&key.as_str()) {
                    reader.fault_with("unknown_key", || unknown_key(key, known));
                } else if !value.is_null() {
                    each(reader, key, value);
                }
            });
        }
        Some(())
    }

    /// Reads the entries of a list, at the door at most `limit`; entries of which `each` makes nothing are
    /// left out. A stored text counts as a list of one.
    pub(super) fn list<T>(
        &mut self,
        value: &Value,
        limit: usize,
        mut each: impl FnMut(&mut Self, &Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        let entries = match value {
            Value::Array(entries) => entries.as_slice(),
            Value::String(_) if self.lenient => std::slice::from_ref(value),
            _ => {
                self.wrong_type("a list", value);
                return None;
            }
        };
        // A stored list is as long as an older version let it be: cutting a `deny` would let tools through.
        if entries.len() > limit && !self.lenient {
            self.fault("too_many", format!("at most {limit} entries, not {}", entries.len()));
            return None;
        }
        let read =
            |(index, entry): (usize, &Value)| self.at(&index.to_string(), |reader| each(reader, entry));
        Some(entries.iter().enumerate().filter_map(read).collect())
    }

    /// Reads a text that is not blank, of at most `limit` characters.
    pub(super) fn text<'v>(&mut self, value: &'v Value, limit: usize) -> Option<&'v str> {
        let Some(text) = value.as_str() else {
            self.wrong_type("a text", value);
            return None;
        };
        if text.trim().is_empty() {
            self.fault("invalid_value", "a blank text is not allowed here");
            return None;
        }
        if text.len() > limit && text.chars().nth(limit).is_some() {
            self.fault("too_long", format!("at most {limit} characters"));
            return None;
        }
        Some(text)
    }
}

/// A value in a message: its kind, or itself where it is short.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the text {:?}", shorten(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The beginning of a text, for messages.
pub(super) fn shorten(text: &str) -> Cow<'_, str> {
    cut(text, MAX_QUOTED_CHARS)
}

fn cut(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Several names in one sentence.
pub(super) fn join_names(names: impl IntoIterator<Item = impl Display>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn unknown_key(key: &str, known: &[&str]) -> String {
    let key = shorten(key);
    match nearest(&key, known) {
        Some(name) => format!("there is no key `{key}`; did you mean `{name}`?"),
        None => format!("there is no key `{key}`; known keys are {}", join_names(known)),
    }
}

/// The known key that is a few slips away from `key`: a third of its letters may differ; ties go to the
/// first.
fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let folded = key.to_lowercase().replace(['-', ' ', '.'], "_");
    let distances = known.iter().map(|name| (edit_distance(&folded, name), *name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= name.len()).then_some(name)
}

/// Levenshtein distance in characters; both texts are short.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substitution = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}
