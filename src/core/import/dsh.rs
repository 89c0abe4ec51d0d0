//! `dsh-tool-search.json` (version 1), and its static part, which may stand in YAML beside it.

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::placeholders;
use super::settings::{Config, Row, To, fold, number, read_rows, under};
use super::told::Told;
use super::{ImportedKey, Reading};
use crate::core::policy::name_fault;

/// The version that is known.
const VERSION: f64 = 1.0;

const SCOPE: &str =
    "a config belongs to a user or to a project here: write this one to the scope that is meant";

/// The keys of the file and of its static part. What a config calls the same may stand here as well.
pub(super) const ROWS: &[Row] = &[
    Row { foreign: "version", to: To::Special },
    Row { foreign: "groups", to: To::Special },
    Row { foreign: "matcher", to: To::Special },
    Row { foreign: "preload", to: To::Special },
    Row { foreign: "core", to: To::Core },
    Row { foreign: "enabled", to: To::Key("enabled") },
    Row { foreign: "threshold_pct", to: To::Percent("threshold_pct") },
    Row { foreign: "threshold_share", to: To::Share("threshold_pct") },
    Row { foreign: "listing", to: To::Key("listing") },
    Row { foreign: "listing_max_tokens", to: To::Whole("listing_max_tokens") },
    Row { foreign: "context_window", to: To::Whole("context_window") },
    Row { foreign: "search_default_limit", to: To::Whole("search_default_limit") },
    Row { foreign: "max_search_limit", to: To::Whole("max_search_limit") },
    Row { foreign: "min_catalog_size", to: To::Whole("min_catalog_size") },
    Row { foreign: "max_warm_tools", to: To::Whole("max_warm_tools") },
    Row { foreign: "matcher_timeout_ms", to: To::Whole("matcher.timeout_ms") },
    Row { foreign: "config_scope", to: To::Nothing(SCOPE) },
    Row { foreign: "aliases", to: To::Key("aliases") },
    Row { foreign: "allow", to: To::Key("allow") },
    Row { foreign: "deny", to: To::Key("deny") },
    Row { foreign: "warm_policy", to: To::Key("warm_policy") },
];

const MATCHER: &[Row] = &[
    Row { foreign: "enabled", to: To::Special },
    Row { foreign: "api_key", to: To::Special },
    Row { foreign: "endpoint", to: To::Key("matcher.endpoint") },
    Row { foreign: "url", to: To::Key("matcher.endpoint") },
    Row { foreign: "model", to: To::Key("matcher.model") },
    Row { foreign: "kind", to: To::Key("matcher.kind") },
    Row { foreign: "dialect", to: To::Key("matcher.dialect") },
    Row { foreign: "top_n", to: To::Whole("matcher.top_n") },
    Row { foreign: "max_documents", to: To::Whole("matcher.max_documents") },
    Row { foreign: "timeout_ms", to: To::Whole("matcher.timeout_ms") },
    Row { foreign: "min_score", to: To::Key("matcher.min_score") },
    Row { foreign: "instruction", to: To::Key("matcher.instruction") },
    Row { foreign: "fusion", to: To::Key("matcher.fusion") },
    Row {
        foreign: "headers",
        to: To::Nothing("headers are secrets: write them as `matcher.extra_headers` with the config"),
    },
];

const PRELOAD: &[Row] = &[
    Row { foreign: "enabled", to: To::Flag("preload.enabled") },
    Row { foreign: "top_k", to: To::Whole("preload.top_k") },
];

/// Reads the file, or the static part of it.
pub(super) fn read(file: &Map<String, Value>, at: &str, out: &mut Reading) {
    let Reading { config, told, key, .. } = out;
    read_rows(file, at, ROWS, config, told, |name, value, pointer, config, told| match (name, value) {
        ("version", _) if number(value) == Some(VERSION) => {}
        ("version", _) => {
            told.add("import_adapted", pointer, "version 1 is known; this file is read as one");
        }
        ("groups", _) => read_groups(value, pointer, config, told),
        ("matcher", Value::Object(matcher)) => read_matcher(matcher, pointer, config, key, told),
        ("preload", Value::Object(preload)) => {
            read_rows(preload, pointer, PRELOAD, config, told, |_, _, _, _, _| {});
        }
        _ => told.add("unusable_import_value", pointer, format!("`{name}` must be an object")),
    });
}

fn read_matcher(
    matcher: &Map<String, Value>,
    at: &str,
    config: &mut Config,
    key: &mut Option<ImportedKey>,
    told: &mut Told,
) {
    if matcher.get("enabled").is_some_and(|enabled| super::settings::flag(enabled) == Value::Bool(false)) {
        let detail = "the matcher is switched off, so it is left out: without one the words of a query rank";
        told.add("no_counterpart", under(at, "enabled"), detail);
        return;
    }
    read_rows(matcher, at, MATCHER, config, told, |name, value, pointer, _, told| match (name, value) {
        ("api_key", Value::String(text)) => {
            let text = text.trim();
            if !placeholders::names_in(text).is_empty() {
                let detail = "the key stands elsewhere; give its value as `matcher.api_key` with the config";
                told.add("placeholder_kept", pointer, detail);
            } else if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
                *key = Some(ImportedKey { key: SecretString::from(text), pointer: pointer.to_owned() });
            } else {
                told.add("unusable_import_value", pointer, "a key is printable ASCII on one line");
            }
        }
        // Never the value in words: it may be a key all the same.
        ("api_key", _) => told.add("unusable_import_value", pointer, "a key must be a text"),
        _ => {}
    });
}

/// Groups keep their order. Nothing is left out here: the door says what of a group will not do.
fn read_groups(groups: &Value, at: &str, config: &mut Config, told: &mut Told) {
    let named;
    let list: Vec<(String, &Value)> = match groups {
        Value::Array(list) => list.iter().enumerate().map(|(at, group)| (at.to_string(), group)).collect(),
        Value::Object(by_name) => {
            // `{"git": ["git_status"]}` says the same as a list of named groups.
            named = by_name;
            named.iter().map(|(name, group)| (name.clone(), group)).collect()
        }
        _ => return told.add("unusable_import_value", at, "`groups` must be a list"),
    };
    for (token, group) in list {
        let pointer = under(at, &token);
        let mut read = Map::new();
        match group {
            Value::Object(members) => read_group(members, &pointer, &mut read, told),
            Value::Array(_) if groups.is_object() => {
                read.insert("tools".to_owned(), group.clone());
            }
            _ => {
                told.add("unusable_import_value", pointer, "a group is an object with a `name`");
                continue;
            }
        }
        if groups.is_object() {
            read.entry("name").or_insert(Value::from(token));
        }
        let name = read.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.trim().is_empty() {
            told.add("unusable_import_value", pointer, "a group needs a `name`");
            continue;
        }
        // The door would refuse all groups for one.
        if let Some(fault) = name_fault(name) {
            told.add("unusable_import_value", under(&pointer, "name"), fault);
            continue;
        }
        config.add_group(read, &pointer, told);
    }
}

fn read_group(members: &Map<String, Value>, at: &str, read: &mut Map<String, Value>, told: &mut Told) {
    for (key, value) in members {
        let folded = fold(key);
        let pointer = under(at, key);
        let value = match (folded.as_str(), value) {
            ("name", Value::String(name)) => Value::from(name.trim()),
            ("name" | "description" | "tools", value) => value.clone(),
            ("prefixes", value) => prefixes(value, &pointer, told),
            _ => {
                let detail = "a group has `name`, `description`, `tools` and `prefixes`";
                told.add("unknown_import_key", pointer, detail);
                continue;
            }
        };
        read.insert(folded, value);
    }
}

/// Prefixes stand without a star here.
fn prefixes(value: &Value, at: &str, told: &mut Told) -> Value {
    let one = std::slice::from_ref(value);
    let entries = value.as_array().map_or(one, Vec::as_slice).iter().enumerate();
    let read = entries.filter_map(|(index, entry)| {
        let Some(text) = entry.as_str() else { return Some(entry.clone()).filter(|entry| !entry.is_null()) };
        let prefix = text.trim().trim_end_matches('*');
        if prefix.is_empty() {
            let detail = "a prefix without letters would take every tool; it is left out";
            told.add("unusable_import_value", under(at, &index.to_string()), detail);
            return None;
        }
        Some(Value::from(prefix))
    });
    read.collect()
}
