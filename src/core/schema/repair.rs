//! Building the validator of a prepared schema, and taking out what keeps it from being built.
//!
//! What is taken out must only ever make the schema weaker, never stricter: valid arguments are never refused
//! because of a keyword that could not be used. Weaker inside of `not`, `if` or `oneOf` can be stricter outside, and
//! what is not evaluated any more counts as unevaluated, so these keywords go too (`oneOf` becomes `anyOf`) as soon
//! as anything is taken out.

use std::collections::HashSet;

use jsonschema::{Draft, PatternCache, PatternOptions, Validator};
use serde_json::{Map, Value, json};

use super::keywords::{self, Holds};

/// Keywords of one schema that may be taken out, beside patterns, before it counts as unusable.
const MAX_REPAIRS: usize = 8;

/// Size of one compiled regular expression and of its lazily built automaton, in bytes. Ordinary patterns stay
/// far below; a larger one is taken for an attack (nested counted repetitions).
const MAX_PATTERN_BYTES: usize = 256 * 1024;

/// Different regular expressions in one schema; the others are not checked.
const MAX_PATTERNS: usize = 64;

/// Longest regular expression, in bytes.
const MAX_PATTERN_LENGTH: usize = 2_000;

/// Builds the validator, repairing `document` where needed; `notes` says what was taken out.
pub(super) fn build(
    document: &mut Value,
    draft: Draft,
    notes: &mut Vec<String>,
) -> Result<Validator, String> {
    let cache = PatternCache::new();
    limit_patterns(document, notes);
    let mut error = match build_once(document, draft, &cache) {
        Ok(validator) => return Ok(validator),
        Err(error) => error,
    };
    take_out_patterns(document, notes, &|pattern| {
        build_once(&json!({ "pattern": pattern }), draft, &cache).is_err()
    });
    for _ in 0..=MAX_REPAIRS {
        error = match build_once(document, draft, &cache) {
            Ok(validator) => return Ok(validator),
            Err(error) => error,
        };
        if !take_out(document, &error.pointer) {
            break;
        }
        weaken(document);
        let Fault { pointer, reason } = &error;
        notes.push(format!("{pointer} is not checked: {reason}"));
    }
    Err(format!("the schema is not valid at {:?}: {}", error.pointer, error.reason))
}

struct Fault {
    /// JSON pointer into the document.
    pointer: String,
    reason: String,
}

fn build_once(document: &Value, draft: Draft, cache: &PatternCache) -> Result<Validator, Fault> {
    let limits = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
    jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(limits)
        .with_pattern_cache(cache.clone())
        .should_validate_formats(false)
        .offline()
        .build(document)
        .map_err(|error| Fault {
            pointer: error.instance_path().as_str().to_owned(),
            reason: super::explain::plain(&error.masked(), 200),
        })
}

/// Takes out the patterns beyond the limits, before any is compiled.
fn limit_patterns(document: &mut Value, notes: &mut Vec<String>) {
    let mut seen = HashSet::new();
    let mut over = HashSet::new();
    each_pattern(document, &mut |pattern| {
        if seen.insert(pattern.to_owned())
            && (seen.len() > MAX_PATTERNS || pattern.len() > MAX_PATTERN_LENGTH)
        {
            over.insert(pattern.to_owned());
        }
    });
    if !over.is_empty() {
        take_out_patterns(document, notes, &|pattern| over.contains(pattern));
    }
}

/// Takes out `pattern` and entries of `patternProperties` whose regular expression is unusable.
fn take_out_patterns(document: &mut Value, notes: &mut Vec<String>, unusable: &dyn Fn(&str) -> bool) {
    let mut known = HashSet::new();
    let mut bad = HashSet::new();
    each_pattern(document, &mut |pattern| {
        if known.insert(pattern.to_owned()) && unusable(pattern) {
            bad.insert(pattern.to_owned());
        }
    });
    if bad.is_empty() {
        return;
    }
    each_schema_mut(document, &mut |map| {
        if map.get("pattern").and_then(Value::as_str).is_some_and(|pattern| bad.contains(pattern)) {
            map.shift_remove("pattern");
        }
        if let Some(Value::Object(entries)) = map.get_mut("patternProperties") {
            let before = entries.len();
            entries.retain(|pattern, _| !bad.contains(pattern));
            if entries.len() < before {
                map.shift_remove("additionalProperties");
            }
        }
    });
    weaken(document);
    notes.push(format!("{} regular expression(s) are not checked: unusable or too large", bad.len()));
}

fn each_pattern(document: &mut Value, visit: &mut dyn FnMut(&str)) {
    each_schema_mut(document, &mut |map| {
        if let Some(Value::String(pattern)) = map.get("pattern") {
            visit(pattern);
        }
        if let Some(Value::Object(entries)) = map.get("patternProperties") {
            entries.keys().for_each(|pattern| visit(pattern));
        }
    });
}

/// Visits every object that is or contains a schema. Targets of references may stand under unknown keywords, so
/// everything but literals is visited; the depth was bounded before.
fn each_schema_mut(value: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_schema_mut(item, visit)),
        Value::Object(map) => {
            visit(map);
            for (keyword, value) in map.iter_mut() {
                let (holds, _) = keywords::of(keyword);
                match (holds, value) {
                    (Holds::Map | Holds::MapOfSchemas, Value::Object(entries)) => {
                        entries.values_mut().for_each(|entry| each_schema_mut(entry, visit));
                    }
                    (Holds::Nothing, _) if is_literal(keyword) => {}
                    (_, value) => each_schema_mut(value, visit),
                }
            }
        }
        _ => {}
    }
}

fn is_literal(keyword: &str) -> bool {
    matches!(keyword, "const" | "default" | "enum" | "example" | "examples")
}

/// Removes what a weaker part could make stricter.
fn weaken(document: &mut Value) {
    each_schema_mut(document, &mut |map| {
        for keyword in ["not", "if", "maxContains", "unevaluatedProperties", "unevaluatedItems"] {
            map.shift_remove(keyword);
        }
        if matches!(map.get("oneOf"), Some(Value::Array(_)))
            && let Some(alternatives) = map.shift_remove("oneOf")
            && !map.contains_key("anyOf")
        {
            map.insert("anyOf".to_owned(), alternatives);
        }
    });
}

/// Takes out the keyword, or the schema, at the pointer. Answers false when there is nothing to take out.
fn take_out(document: &mut Value, pointer: &str) -> bool {
    let Some(pointer) = pointer.strip_prefix('/') else { return false };
    let tokens: Vec<String> =
        pointer.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    take_out_at(document, &tokens)
}

/// The recursion is as deep as the pointer, which is no deeper than the document.
fn take_out_at(schema: &mut Value, tokens: &[String]) -> bool {
    let Value::Object(map) = schema else { return false };
    let Some((keyword, rest)) = tokens.split_first() else { return false };
    let (holds, _) = keywords::of(keyword);
    let deeper = match (holds, map.get_mut(keyword), rest) {
        (_, None, _) => return false,
        (Holds::Schema | Holds::SchemaOrList, Some(child @ Value::Object(_)), [_, ..]) => Some((child, rest)),
        (Holds::List | Holds::SchemaOrList, Some(Value::Array(items)), [index, rest @ ..]) => {
            index.parse::<usize>().ok().and_then(|index| items.get_mut(index)).map(|child| (child, rest))
        }
        (Holds::Map | Holds::MapOfSchemas, Some(Value::Object(entries)), [name, rest @ ..]) => {
            entries.get_mut(name).map(|child| (child, rest))
        }
        _ => None,
    };
    if let Some((child, rest)) = deeper {
        if rest.is_empty() {
            // The schema itself is none: anything goes there.
            *child = json!({});
            return true;
        }
        if take_out_at(child, rest) {
            return true;
        }
    }
    let Some(map) = schema.as_object_mut() else { return false };
    map.shift_remove(keyword);
    // Without these, the keywords for "all others" would refuse what they had allowed.
    match keyword.as_str() {
        "properties" | "patternProperties" => {
            map.shift_remove("additionalProperties");
        }
        "prefixItems" | "items" => {
            map.shift_remove("items");
            map.shift_remove("additionalItems");
        }
        "contains" => {
            map.shift_remove("minContains");
        }
        _ => {}
    }
    true
}
