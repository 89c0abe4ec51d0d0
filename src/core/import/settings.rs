//! What all foreign settings have in common: a table from their keys to ours, the config that grows from it, and the door
//! that it goes through in the end.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::told::Told;
use crate::core::policy;
use crate::core::warning::pointer_push;

/// Most entries of `core`, and most groups, that are looked at: more than the door takes, so that it refuses a longer list.
const MAX_ENTRIES: usize = 20_001;

/// One foreign key. Its spelling is folded: `thresholdPct`, `threshold-pct` and `threshold_pct` are one.
pub(super) struct Row {
    pub(super) foreign: &'static str,
    pub(super) to: To,
}

/// What becomes of a foreign key. Texts are keys of ours, with a dot before an inner one.
pub(super) enum To {
    /// The value as it is; the door says whether it will do.
    Key(&'static str),
    /// A whole number, fractions cut off.
    Whole(&'static str),
    /// Per cent.
    Percent(&'static str),
    /// A share of 1, which is per cent here.
    Share(&'static str),
    /// True or false, also in the words of YAML 1.1.
    Flag(&'static str),
    /// Entries of `core`.
    Core,
    /// There is no such setting here; what to do instead.
    Nothing(&'static str),
    /// Read by the format itself.
    Special,
}

/// Reads an object by a table. A value under a key that the table calls special goes to `special`.
pub(super) fn read_rows(
    object: &Map<String, Value>,
    at: &str,
    rows: &[Row],
    out: &mut Config,
    told: &mut Told,
    mut special: impl FnMut(&str, &Value, &str, &mut Config, &mut Told),
) {
    let mut seen = HashSet::new();
    for (key, value) in object {
        let pointer = under(at, key);
        let folded = fold(key);
        let Some(row) = rows.iter().find(|row| row.foreign == folded) else {
            told.add_with("unknown_import_key", pointer, || {
                let known: Vec<&str> = rows.iter().map(|row| row.foreign).collect();
                format!("`{key}` is not read here; known keys are {}", known.join(", "))
            });
            continue;
        };
        if !seen.insert(row.foreign) {
            told.add(
                "unknown_import_key",
                pointer,
                "this key stands here in two spellings; the first counts",
            );
            continue;
        }
        // A blank text is how a form keeps what was not filled in.
        if value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty()) {
            continue;
        }
        match row.to {
            To::Key(own) => out.set(own, value.clone(), &pointer, told),
            To::Whole(own) => out.set(own, whole(value), &pointer, told),
            To::Flag(own) => out.set(own, flag(value), &pointer, told),
            To::Percent(own) => {
                if let Some(number) = number(value).filter(|number| *number > 0.0 && *number < 1.0) {
                    let share = number * 100.0;
                    let detail =
                        format!("{number} is taken as per cent; if a share is meant, write {share:.4}");
                    told.add("import_adapted", pointer.clone(), detail);
                }
                out.set(own, value.clone(), &pointer, told);
            }
            To::Share(own) => match number(value) {
                Some(share) if share <= 1.0 => out.set(own, Value::from(share * 100.0), &pointer, told),
                _ => out.set(own, value.clone(), &pointer, told),
            },
            To::Core => out.add_core(value, &pointer),
            To::Nothing(advice) => told.add("no_counterpart", pointer, advice),
            To::Special => special(row.foreign, value, &pointer, out, told),
        }
    }
}

/// A key in the one spelling that tables are written in: lower case with underscores.
pub(super) fn fold(key: &str) -> String {
    let letters: Vec<char> = key.trim().chars().take(100).collect();
    let mut folded = String::with_capacity(letters.len() + 8);
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let is_start = letter.is_uppercase()
            && before.is_some_and(|before| {
                let begins_word = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
                before.is_lowercase() || before.is_ascii_digit() || (before.is_uppercase() && begins_word)
            });
        if is_start {
            folded.push('_');
        }
        match letter {
            '-' | ' ' | '.' => folded.push('_'),
            _ => folded.extend(letter.to_lowercase()),
        }
    }
    folded
}

/// The pointer of a member.
pub(super) fn under(at: &str, token: &str) -> String {
    let mut pointer = at.to_owned();
    let short: String = token.chars().take(200).collect();
    pointer_push(&mut pointer, &short);
    pointer
}

/// A number, also one in quotes.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.len() <= 64 => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite())
}

fn whole(value: &Value) -> Value {
    match number(value) {
        // Beyond this a cast would not be exact; the door clamps such numbers anyway.
        Some(number) if number.abs() < 1e15 => Value::from(number.trunc() as i64),
        _ => value.clone(),
    }
}

/// A boolean in the words that YAML 1.1 has for it.
pub(super) fn flag(value: &Value) -> Value {
    let word = match value {
        Value::String(word) if word.len() <= 16 => word.trim().to_lowercase(),
        Value::Number(number) => number.to_string(),
        _ => return value.clone(),
    };
    match word.as_str() {
        "true" | "yes" | "on" | "1" => Value::Bool(true),
        "false" | "no" | "off" | "0" => Value::Bool(false),
        _ => value.clone(),
    }
}

/// A config in our keys, with the place that each value came from.
#[derive(Debug, Default)]
pub(super) struct Config {
    values: Map<String, Value>,
    /// Our pointer to the place in the import.
    from: BTreeMap<String, String>,
    core: HashSet<String>,
    groups: HashMap<String, usize>,
}

impl Config {
    /// Sets `key` or `parent.key`. A later value goes before an earlier one.
    pub(super) fn set(&mut self, own: &str, value: Value, pointer: &str, told: &mut Told) {
        let place = format!("/{}", own.replace('.', "/"));
        let slot = match own.split_once('.') {
            None => self.values.entry(own).or_insert(Value::Null),
            Some((parent, key)) => {
                let object = self.values.entry(parent).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(entries) = object else { return };
                entries.entry(key).or_insert(Value::Null)
            }
        };
        if let Some(first) = self.from.get(&place)
            && *slot != value
        {
            told.add("import_overridden", pointer, format!("`{own}` stands at {first} too; the later holds"));
        }
        *slot = value;
        self.from.insert(place, pointer.to_owned());
    }

    /// Adds an entry or a list of entries to `core`.
    pub(super) fn add_core(&mut self, value: &Value, pointer: &str) {
        let is_list = value.is_array();
        let entries = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let list = self.values.entry("core").or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = list else { return };
        for (at, entry) in entries.iter().enumerate() {
            if list.len() == MAX_ENTRIES {
                break;
            }
            let entry = entry.as_str().map_or_else(|| entry.clone(), |text| Value::from(text.trim()));
            if entry.as_str().is_some_and(|text| text.is_empty() || !self.core.insert(text.to_owned())) {
                continue;
            }
            let place = if is_list { under(pointer, &at.to_string()) } else { pointer.to_owned() };
            self.from.insert(format!("/core/{}", list.len()), place);
            list.push(entry);
        }
    }

    /// Adds a group behind those that are there; one of the same name is replaced.
    pub(super) fn add_group(&mut self, group: Map<String, Value>, pointer: &str, told: &mut Told) {
        let list = self.values.entry("groups").or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = list else { return };
        if list.len() == MAX_ENTRIES {
            return;
        }
        let name = group.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let index = *self.groups.entry(name.clone()).or_insert(list.len());
        let place = format!("/groups/{index}");
        let group = Value::Object(group);
        if let Some(slot) = list.get_mut(index) {
            if *slot != group {
                let first = self.from.get(&place).map_or("", String::as_str);
                let detail = format!("the group `{name}` stands at {first} too; the later holds");
                told.add("import_overridden", pointer, detail);
            }
            *slot = group;
        } else {
            list.push(group);
        }
        self.from.insert(place, pointer.to_owned());
    }

    /// The config as the door takes it: values in their ranges, what cannot be used left out with a warning.
    pub(super) fn through_door(self, told: &mut Told) -> Map<String, Value> {
        let Self { values, from, .. } = self;
        let (layer, warnings) = policy::load(&Value::Object(values));
        for warning in warnings {
            let code = if warning.code == "clamped" { "clamped" } else { "unusable_import_value" };
            let pointer = warning.pointer.unwrap_or_default();
            told.add(code, origin(&from, &pointer), warning.detail);
        }
        let mut config = layer.to_json();
        // What an older version may have stored is more than what can be written now.
        if let Err(errors) = policy::parse(&Value::Object(config.clone())) {
            for error in errors {
                let key = error.pointer.split('/').nth(1).unwrap_or_default();
                if config.remove(key).is_some() {
                    told.add("unusable_import_value", origin(&from, &error.pointer), error.detail);
                }
            }
        }
        config
    }
}

/// Where a value of the config came from.
fn origin(from: &BTreeMap<String, String>, pointer: &str) -> String {
    let mut head = pointer;
    loop {
        if let Some(place) = from.get(head) {
            return format!("{place}{}", &pointer[head.len()..]);
        }
        match head.rfind('/') {
            Some(end) => head = &head[..end],
            // A value that is made of others, such as a matcher: the first of them.
            None => {
                let inner = format!("{pointer}/");
                let first = from.range(inner.clone()..).next().filter(|(own, _)| own.starts_with(&inner));
                return first.map_or_else(String::new, |(_, place)| place.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn spellings_are_one() {
        for (key, folded) in [
            ("thresholdPct", "threshold_pct"),
            ("threshold_pct", "threshold_pct"),
            ("threshold-pct", "threshold_pct"),
            ("topN", "top_n"),
            ("apiKey", "api_key"),
            ("APIKey", "api_key"),
            ("matcherTimeoutMs", "matcher_timeout_ms"),
            ("ENABLED", "enabled"),
        ] {
            assert_eq!(fold(key), folded);
        }
    }
}
