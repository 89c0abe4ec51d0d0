//! First step, for every target: each keyword has a value of the kind that draft 2020-12 asks for.
//!
//! Works on one schema at a time and needs to know no provider: what it mends is wrong for all of them.

use serde_json::{Map, Value, json};

use super::notes::Notes;
use super::walk::{At, dedupe, distinct, put_first};
use super::{draft, types};
use crate::core::schema::keywords::{self, Holds};

/// The kind of value that a keyword has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Any,
    Type,
    Schema,
    /// A schema, or true or false as they are.
    SchemaOrFlag,
    /// A list of schemas with at least one.
    Schemas,
    /// An object of schemas.
    Map,
    /// A list of different texts.
    Names,
    /// An object of lists of different texts.
    NameLists,
    List,
    Text,
    /// An identifier without a fragment.
    Id,
    /// A name that a fragment may be.
    Anchor,
    Count,
    Number,
    Flag,
}

fn kind_of(keyword: &str) -> Kind {
    match keyword {
        "type" => Kind::Type,
        "items" | "propertyNames" | "contains" | "not" | "if" | "then" | "else" => Kind::Schema,
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" | "additionalItems" => {
            Kind::SchemaOrFlag
        }
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => Kind::Schemas,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Kind::Map,
        "dependentRequired" => Kind::NameLists,
        "required" => Kind::Names,
        "enum" | "examples" => Kind::List,
        "description" | "title" | "pattern" | "format" | "$ref" | "$schema" | "$comment" | "$dynamicRef"
        | "$recursiveRef" | "contentEncoding" | "contentMediaType" => Kind::Text,
        "$id" => Kind::Id,
        "$anchor" | "$dynamicAnchor" => Kind::Anchor,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Kind::Count,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Kind::Number,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable" => Kind::Flag,
        _ => Kind::Any,
    }
}

/// Whether the value of a keyword is of its kind.
pub(super) fn fits(keyword: &str, value: &Value) -> bool {
    match kind_of(keyword) {
        Kind::Any => true,
        Kind::Type => types::is_fine(value),
        Kind::Schema | Kind::SchemaOrFlag => value.is_object() || value.is_boolean(),
        Kind::Schemas => value.as_array().is_some_and(|schemas| !schemas.is_empty()),
        Kind::Map => value.is_object(),
        Kind::Names => are_names(value),
        Kind::NameLists => value.as_object().is_some_and(|lists| lists.values().all(are_names)),
        Kind::List => value.as_array().is_some_and(|values| keyword != "enum" || !values.is_empty()),
        Kind::Text => value.is_string(),
        Kind::Id => value.as_str().is_some_and(|id| !id.trim_end_matches('#').contains('#')),
        Kind::Anchor => value.as_str().is_some_and(|name| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name
                    .chars()
                    .all(|character| character.is_ascii_alphanumeric() || "-._".contains(character))
        }),
        Kind::Count => value.as_u64().is_some() || whole(value).is_some(),
        Kind::Number => value.is_number() && (keyword != "multipleOf" || value.as_f64() > Some(0.0)),
        Kind::Flag => value.is_boolean(),
    }
}

fn are_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string) && distinct(names))
}

/// A number without fraction that was written with one, such as `5.0`.
fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number))?;
    Some(number as u64)
}

/// What the later steps have to look at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// References, or definitions where references may lead.
    pub(super) references: bool,
    /// Keywords that join schemas about one value.
    pub(super) combined: bool,
    /// Keywords that were written anew: what `$schema` says is not true any more.
    pub(super) upgraded: bool,
}

/// Mends the whole document, so that every schema in it is an object.
pub(super) fn fix_document(document: &mut Value, notes: &mut Notes) -> Seen {
    let mut seen = Seen::default();
    match document {
        Value::Object(map) => lift_properties(map, notes),
        Value::Null | Value::Bool(_) => {
            *document = json!({});
            notes.mended("root_changed", &At::ROOT, "there is no schema; the tool takes no arguments");
        }
        _ => {
            *document = json!({});
            notes.lost("root_changed", &At::ROOT, "the schema is no object; the tool takes no arguments");
        }
    }
    fix(document, &At::ROOT, notes, &mut seen);
    if seen.upgraded
        && let Value::Object(root) = document
    {
        root.shift_remove("$schema");
    }
    seen
}

/// Some servers send the value of `properties` alone: only objects, none under a keyword that holds schemas.
fn lift_properties(map: &mut Map<String, Value>, notes: &mut Notes) {
    let is_name = |key: &str, value: &Value| {
        // An argument may be called `properties`; then its value is a schema and no list of schemas.
        let argument = key == "properties" && value.get("type").is_some_and(types::is_fine);
        argument || keywords::of(key).0 == Holds::Nothing
    };
    let is_bare = !map.is_empty() && map.iter().all(|(key, value)| value.is_object() && is_name(key, value));
    let is_schema = |value: &Value| {
        value
            .as_object()
            .is_some_and(|schema| schema.contains_key("type") || schema.contains_key("description"))
    };
    if is_bare && map.values().any(is_schema) {
        let properties = std::mem::take(map);
        map.insert("type".to_owned(), json!("object"));
        map.insert("properties".to_owned(), Value::Object(properties));
        notes.mended("properties_lifted", &At::ROOT, "the schema was a bare list of properties");
    }
}

/// Mends a value that stands where a schema is expected, and all below it.
pub(super) fn fix(schema: &mut Value, at: &At<'_>, notes: &mut Notes, seen: &mut Seen) {
    if !schema.is_object() {
        *schema = as_schema(schema, at, notes);
    }
    let Value::Object(map) = schema else { return };
    seen.upgraded |= draft::upgrade(map, at, notes);
    let wrong: Vec<String> = map
        .iter()
        .filter(|(keyword, value)| !fits(keyword, value))
        .map(|(keyword, _)| keyword.clone())
        .collect();
    for keyword in &wrong {
        repair(map, keyword, at, notes);
    }
    if !wrong.is_empty() {
        // A keyword of an older draft whose value was of the wrong kind can be read only now.
        seen.upgraded |= draft::upgrade(map, at, notes);
    }
    hoist_keywords(map, at, notes);
    hoist_required(map, at, notes);
    for (keyword, value) in map.iter_mut() {
        let (holds, _) = keywords::of(keyword);
        note(keyword, at, seen);
        if holds == Holds::Nothing {
            continue;
        }
        let at = at.key(keyword);
        match (holds, value) {
            (Holds::Schema, Value::Bool(_)) if kind_of(keyword) == Kind::SchemaOrFlag => {}
            (Holds::Schema | Holds::SchemaOrList, value) => fix(value, &at, notes, seen),
            (Holds::List, Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    fix(item, &at.index(index), notes, seen);
                }
            }
            (Holds::Map, Value::Object(entries)) => {
                for (name, entry) in entries.iter_mut() {
                    fix(entry, &at.key(name), notes, seen);
                }
            }
            _ => {}
        }
    }
}

fn note(keyword: &str, at: &At<'_>, seen: &mut Seen) {
    match keyword {
        "$ref" | "$dynamicRef" | "$recursiveRef" | "definitions" => seen.references = true,
        "$defs" => seen.references |= !at.is_root(),
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" => {
            seen.combined = true;
        }
        _ => {}
    }
}

/// A schema for what stands in the place of one.
fn as_schema(value: &Value, at: &At<'_>, notes: &mut Notes) -> Value {
    match value {
        Value::Bool(allowed) => {
            notes.mended("boolean_schema", at, "true or false stood for a schema");
            if *allowed { json!({}) } else { json!({ "not": {} }) }
        }
        Value::String(text) => {
            notes.mended("wrong_value", at, "a text stood for a schema");
            match types::canonical(text) {
                Some(kind) => json!({ "type": kind }),
                None => json!({ "description": text }),
            }
        }
        Value::Null => {
            notes.mended("wrong_value", at, "null stood for a schema");
            json!({})
        }
        _ => {
            notes.lost("wrong_value", at, "a value that is no schema stood for one");
            json!({})
        }
    }
}

/// Gives the keyword a value of its kind, or takes it out.
fn repair(map: &mut Map<String, Value>, keyword: &str, at: &At<'_>, notes: &mut Notes) {
    if kind_of(keyword) == Kind::Type {
        types::normalise(map, at, notes);
        return;
    }
    let Some(value) = map.get(keyword) else { return };
    match repaired(kind_of(keyword), value) {
        Some(better) => {
            map.insert(keyword.to_owned(), better);
            notes.mended("wrong_value", at, &format!("`{keyword}` is written as a value of its kind"));
        }
        None => {
            let empty = value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || (keyword == "required" && value.is_boolean());
            // The object around a property with `required: true` has taken it over before this is reached.
            map.shift_remove(keyword);
            let detail = format!("`{keyword}` had a value of the wrong kind and is taken out");
            if empty {
                notes.mended("wrong_value", at, &detail);
            } else {
                notes.lost("wrong_value", at, &detail);
            }
        }
    }
}

/// The value that was meant, where that is plain.
fn repaired(kind: Kind, value: &Value) -> Option<Value> {
    match (kind, value) {
        (Kind::Schema | Kind::SchemaOrFlag, Value::String(name)) => {
            types::canonical(name).map(|name| json!({ "type": name }))
        }
        (Kind::Schemas, Value::Object(_)) => Some(json!([value])),
        (Kind::Map, Value::Null) => Some(json!({})),
        (Kind::Map, Value::Array(entries)) if entries.is_empty() => Some(json!({})),
        (Kind::Names, Value::String(_)) => Some(json!([value])),
        (Kind::Names, Value::Array(names)) => {
            let mut texts: Vec<Value> = names.iter().filter(|name| name.is_string()).cloned().collect();
            dedupe(&mut texts);
            Some(Value::Array(texts))
        }
        (Kind::NameLists, Value::Object(lists)) => {
            let good = lists.iter().filter(|(_, names)| are_names(names));
            Some(Value::Object(good.map(|(key, names)| (key.clone(), names.clone())).collect()))
        }
        (Kind::List, Value::String(_) | Value::Number(_) | Value::Bool(_)) => Some(json!([value])),
        (Kind::Text, Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        (Kind::Text, Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            (!texts.is_empty() && texts.len() == parts.len()).then(|| Value::String(texts.join(" ")))
        }
        (Kind::Count, Value::String(text)) => text.trim().parse::<u64>().ok().map(Value::from),
        (Kind::Number, Value::String(text)) => {
            let number: Value = serde_json::from_str(text.trim()).ok()?;
            number.is_number().then_some(number)
        }
        (Kind::Flag, Value::String(text)) => {
            text.trim().to_ascii_lowercase().parse::<bool>().ok().map(Value::from)
        }
        _ => None,
    }
}

/// Keywords of the object that stand among its properties, with values that no property has.
fn hoist_keywords(map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) {
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    let names_of_properties = |names: &Value| {
        let names = names.as_array().filter(|names| !names.is_empty());
        names.is_some_and(|names| {
            names.iter().all(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
        })
    };
    let required = properties.get("required").is_some_and(names_of_properties);
    let closed = properties.get("additionalProperties").is_some_and(Value::is_boolean);
    for (found, keyword) in [(required, "required"), (closed, "additionalProperties")] {
        let Some(Value::Object(properties)) = map.get_mut("properties").filter(|_| found) else { continue };
        let Some(value) = properties.shift_remove(keyword) else { continue };
        map.entry(keyword).or_insert(value);
        notes.mended("wrong_value", at, &format!("`{keyword}` stood among the properties"));
    }
}

/// `required: true` on a property, as draft 3 and many servers have it, is the object's to say.
fn hoist_required(map: &mut Map<String, Value>, at: &At<'_>, notes: &mut Notes) {
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    let mut required = Vec::new();
    let mut found = false;
    for (name, property) in properties.iter_mut() {
        let Value::Object(property) = property else { continue };
        let truth = match property.get("required") {
            Some(Value::Bool(truth)) => *truth,
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => true,
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => false,
            _ => continue,
        };
        property.shift_remove("required");
        found = true;
        if truth {
            required.push(Value::from(name.as_str()));
        }
    }
    if !found {
        return;
    }
    notes.mended("required_changed", at, "a property said by itself whether it is required");
    if required.is_empty() {
        return;
    }
    match map.get_mut("required") {
        Some(Value::Array(names)) => {
            names.extend(required);
            dedupe(names);
        }
        _ => {
            map.insert("required".to_owned(), Value::Array(required));
        }
    }
}

/// Makes `object` the type, at the front.
pub(super) fn set_object_type(map: &mut Map<String, Value>) {
    put_first(map, "type", json!("object"));
}
