//! The working copy of a schema: references made local, OpenAPI's `nullable` honoured, older spellings of one
//! meaning turned into the newer.
//!
//! Literals (`const`, `default`, `enum`, `example`, `examples`) are never walked: an object in there that looks like
//! a schema is data.

use std::collections::{HashMap, HashSet};

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::keywords::{self, Holds};

/// Deepest nesting of a schema; the product's limit for request bodies.
const MAX_DEPTH: usize = 64;

/// Keywords that refer to another schema. With one place for each name, the dynamic ones mean what `$ref` means.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The draft that the document declares; an unknown or absent one is read as 2020-12, as MCP does.
pub(super) fn take_draft(document: &Value) -> Draft {
    let declared = document.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let known = [
        ("draft-04", Draft::Draft4),
        ("draft-06", Draft::Draft6),
        ("draft-07", Draft::Draft7),
        ("2019-09", Draft::Draft201909),
    ];
    known.into_iter().find(|(mark, _)| declared.contains(mark)).map_or(Draft::Draft202012, |(_, draft)| draft)
}

/// Prepares the document in place. The error says why the schema cannot be used.
///
/// Afterwards every reference is a `$ref` to a JSON pointer that exists in the document, and no schema declares an
/// identifier, an anchor or a dialect, so that nothing can be looked up elsewhere.
pub(super) fn prepare(document: &mut Value, draft: Draft) -> Result<(), String> {
    if !matches!(document, Value::Object(_) | Value::Bool(_)) {
        return Err("the schema is neither an object nor a boolean".to_owned());
    }
    if is_deeper_than(document, MAX_DEPTH) {
        return Err(format!("the schema is nested deeper than {MAX_DEPTH} levels"));
    }
    let mut names = Names::default();
    if has_reference(document) {
        names.collect(document, draft, &mut String::new(), "")?;
    }
    let mut walk = Walk { draft, names: &names, targets: Vec::new() };
    walk.schema(document, "")?;
    // References may point at places that are no schema by position, such as `#/components/schemas/Pet`.
    let mut walked: HashSet<String> = names.places.clone();
    while let Some(target) = walk.targets.pop() {
        if !walked.insert(target.clone()) {
            continue;
        }
        let Some(schema) = document.pointer_mut(&target) else {
            return Err(format!("the reference to {target:?} leads nowhere"));
        };
        let base = names.base_of(&target).to_owned();
        walk.schema(schema, &base)?;
    }
    Ok(())
}

/// The parser has bounded the depth, so the recursion is bounded too.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|item| is_deeper_than(item, levels - 1)),
        _ => false,
    }
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(map) => {
            map.iter().any(|(key, item)| REFERENCES.contains(&key.as_str()) || has_reference(item))
        }
        _ => false,
    }
}

/// The identifier that a schema gives itself, without a trailing `#`.
fn id_of(map: &Map<String, Value>, draft: Draft) -> Option<&str> {
    let key = if draft == Draft::Draft4 { "id" } else { "$id" };
    map.get(key)?.as_str().map(|id| id.trim_end_matches('#')).filter(|id| !id.is_empty())
}

/// Appends an escaped token to a JSON pointer and answers the length before.
fn push(pointer: &mut String, token: &str) -> usize {
    let before = pointer.len();
    crate::core::warning::pointer_push(pointer, token);
    before
}

/// The identifiers and anchors of a document, and the places where schemas stand.
#[derive(Default)]
struct Names {
    /// `$id` (without a trailing `#`) or `base#anchor` -> JSON pointer.
    pointers: HashMap<String, String>,
    /// Pointers of nested resources: `#/...` inside of them counts from there.
    bases: Vec<String>,
    /// Pointers of all schemas by position; filled only when there is a reference.
    places: HashSet<String>,
}

impl Names {
    fn collect(
        &mut self,
        schema: &Value,
        draft: Draft,
        pointer: &mut String,
        base: &str,
    ) -> Result<(), String> {
        self.places.insert(pointer.clone());
        let Value::Object(map) = schema else { return Ok(()) };
        let mut base = base.to_owned();
        if let Some(id) = id_of(map, draft) {
            if let Some(anchor) = id.strip_prefix('#') {
                self.add(format!("{base}#{anchor}"), pointer)?;
            } else {
                self.add(id.to_owned(), pointer)?;
                if !pointer.is_empty() {
                    self.bases.push(pointer.clone());
                    base.clone_from(pointer);
                }
            }
        }
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = map.get(key).and_then(Value::as_str) {
                self.add(format!("{base}#{anchor}"), pointer)?;
            }
        }
        each_schema(map, pointer, &mut |child, pointer| self.collect(child, draft, pointer, &base))
    }

    fn add(&mut self, name: String, pointer: &str) -> Result<(), String> {
        match self.pointers.insert(name, pointer.to_owned()) {
            Some(earlier) if earlier != pointer => {
                Err("two places of the schema carry the same identifier".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The innermost nested resource that holds the place; empty for the document.
    fn base_of(&self, pointer: &str) -> &str {
        self.bases
            .iter()
            .filter(|base| pointer.strip_prefix(base.as_str()).is_some_and(|rest| rest.starts_with('/')))
            .max_by_key(|base| base.len())
            .map_or("", String::as_str)
    }

    /// The JSON pointer that a reference means; none for one that leaves the document.
    fn resolve(&self, reference: &str, base: &str) -> Option<String> {
        if let Some(pointer) = self.pointers.get(reference.trim_end_matches('#')) {
            return Some(pointer.clone());
        }
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = match document {
            "" => base,
            named => self.pointers.get(named)?,
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return Some(format!("{base}{}", decode_percent(fragment)?));
        }
        self.pointers.get(&format!("{base}#{fragment}")).cloned()
    }
}

/// Calls `visit` for every schema directly below, with its pointer.
fn each_schema(
    map: &Map<String, Value>,
    pointer: &mut String,
    visit: &mut impl FnMut(&Value, &mut String) -> Result<(), String>,
) -> Result<(), String> {
    for (keyword, value) in map {
        let (holds, _) = keywords::of(keyword);
        if holds == Holds::Nothing {
            continue;
        }
        let length = push(pointer, keyword);
        match (holds, value) {
            (Holds::Schema | Holds::SchemaOrList, Value::Object(_) | Value::Bool(_)) => {
                visit(value, pointer)?;
            }
            (Holds::List | Holds::SchemaOrList, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let length = push(pointer, &index.to_string());
                    visit(item, pointer)?;
                    pointer.truncate(length);
                }
            }
            (Holds::Map | Holds::MapOfSchemas, Value::Object(entries)) => {
                for (name, entry) in entries {
                    let length = push(pointer, name);
                    visit(entry, pointer)?;
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        pointer.truncate(length);
    }
    Ok(())
}

struct Walk<'a> {
    draft: Draft,
    names: &'a Names,
    /// Pointers that references lead to.
    targets: Vec<String>,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &mut Value, base: &str) -> Result<(), String> {
        let Value::Object(map) = schema else { return Ok(()) };
        let own_base = id_of(map, self.draft)
            .filter(|id| !id.starts_with('#'))
            .and_then(|id| self.names.pointers.get(id))
            .cloned();
        let base = own_base.as_deref().unwrap_or(base);
        self.references(map, base)?;
        for key in ["$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"] {
            map.shift_remove(key);
        }
        // Annotations by the newer drafts; the older ones would have them asserted, like formats.
        for key in ["contentEncoding", "contentMediaType", "contentSchema"] {
            map.shift_remove(key);
        }
        // A list of no values allows none: whoever wrote it had none to name.
        if map.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            map.shift_remove("enum");
        }
        if matches!(self.draft, Draft::Draft202012) {
            modernise(map);
        }
        if map.shift_remove("nullable") == Some(Value::Bool(true)) {
            allow_null(map);
        }
        for (keyword, value) in map.iter_mut() {
            let (holds, _) = keywords::of(keyword);
            match (holds, value) {
                (Holds::Schema | Holds::SchemaOrList, value @ Value::Object(_)) => {
                    self.schema(value, base)?;
                }
                (Holds::List | Holds::SchemaOrList, Value::Array(items)) => {
                    items.iter_mut().try_for_each(|item| self.schema(item, base))?;
                }
                (Holds::Map | Holds::MapOfSchemas, Value::Object(entries)) => {
                    entries.values_mut().try_for_each(|entry| self.schema(entry, base))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Turns whatever refers to another schema into one `$ref` with a JSON pointer.
    fn references(&mut self, map: &mut Map<String, Value>, base: &str) -> Result<(), String> {
        let mut found = None;
        for key in REFERENCES {
            let Some(value) = map.shift_remove(key) else { continue };
            let Value::String(reference) = value else { return Err(format!("{key} is not a text")) };
            let Some(pointer) = self.names.resolve(&reference, base) else {
                return Err(format!(
                    "the reference {reference:?} leads outside of the schema, nothing is fetched"
                ));
            };
            if found.replace(pointer).is_some() {
                return Err("one schema refers to two others".to_owned());
            }
        }
        if let Some(pointer) = found {
            map.insert("$ref".to_owned(), Value::String(format!("#{}", encode_percent(&pointer))));
            self.targets.push(pointer);
        }
        Ok(())
    }
}

/// Spellings of older drafts in a document that declares none of them.
fn modernise(map: &mut Map<String, Value>) {
    if map.get("items").is_some_and(Value::is_array) {
        if let Some(items) = map.shift_remove("items") {
            map.insert("prefixItems".to_owned(), items);
        }
        if let Some(rest) = map.shift_remove("additionalItems") {
            map.insert("items".to_owned(), rest);
        }
    }
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match map.get(exclusive) {
            Some(Value::Bool(true)) => {
                map.shift_remove(exclusive);
                if let Some(limit) = map.shift_remove(limit) {
                    map.insert(exclusive.to_owned(), limit);
                }
            }
            Some(Value::Bool(false)) => {
                map.shift_remove(exclusive);
            }
            _ => {}
        }
    }
}

/// OpenAPI 3.0 `nullable: true`: null is allowed beside what the schema says.
fn allow_null(map: &mut Map<String, Value>) {
    const OTHERS: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"];
    if OTHERS.iter().any(|key| map.contains_key(*key)) {
        let mut strict = Map::new();
        for key in OTHERS.into_iter().chain(["type", "enum", "then", "else"]) {
            if let Some(value) = map.shift_remove(key) {
                strict.insert(key.to_owned(), value);
            }
        }
        map.insert("anyOf".to_owned(), json!([strict, { "type": "null" }]));
        return;
    }
    match map.get_mut("type") {
        Some(kind @ Value::String(_)) if *kind != "null" => *kind = json!([kind.take(), "null"]),
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => kinds.push("null".into()),
        _ => {}
    }
    if let Some(Value::Array(options)) = map.get_mut("enum")
        && !options.contains(&Value::Null)
    {
        options.push(Value::Null);
    }
}

/// Decodes `%XX`; none when the result is not UTF-8.
pub(in crate::core) fn decode_percent(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

/// Encodes what may not stand in a URI fragment (RFC 3986); more than needed is encoded, which is harmless.
fn encode_percent(text: &str) -> String {
    use std::fmt::Write;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~$".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Levels of nesting of a document that [`prepare`] has bounded.
pub(super) fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(depth_of).max().unwrap_or_default(),
        _ => 0,
    }
}
