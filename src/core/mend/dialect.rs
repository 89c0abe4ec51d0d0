//! Each schema in the words that the provider reads: types, items, required names, formats, bounds, keywords.

use serde_json::{Map, Value, json};

use super::notes::{Notes, say, tell};
use super::patterns::Patterns;
use super::walk::{At, each_child, put_first};
use super::{types, union, values};
use crate::core::profile::{Items, SchemaRules, Untyped};

/// Lengths and numbers of things.
const BOUNDS: [&str; 6] =
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];

/// Keywords whose loss a description makes good: they say something to a model. The first of each pair; the second
/// says whether they bound the values.
const TOLD: &[(&str, bool)] = &[
    ("default", false),
    ("examples", false),
    ("example", false),
    ("format", true),
    ("pattern", true),
    ("minLength", true),
    ("maxLength", true),
    ("minItems", true),
    ("maxItems", true),
    ("uniqueItems", true),
    ("minProperties", true),
    ("maxProperties", true),
    ("minimum", true),
    ("maximum", true),
    ("exclusiveMinimum", true),
    ("exclusiveMaximum", true),
    ("multipleOf", true),
    ("not", true),
    ("contains", true),
    ("prefixItems", true),
    ("propertyNames", true),
    ("patternProperties", true),
    ("dependentRequired", true),
];

/// Rewrites every schema of the document.
pub(super) fn settle(root: &mut Map<String, Value>, rules: &SchemaRules, notes: &mut Notes) {
    let patterns =
        if rules.linear_patterns { Patterns::of_linear_engine() } else { Patterns::of_any_engine() };
    let mut writer = Writer { rules, notes, patterns };
    writer.schema(root, &At::ROOT);
}

struct Writer<'a> {
    rules: &'a SchemaRules,
    notes: &'a mut Notes,
    patterns: Patterns,
}

impl Writer<'_> {
    fn schema(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        let mut told = Vec::new();
        values::settle(map, at, self.rules, self.notes);
        self.types(map, at);
        self.items(map, at);
        self.required(map, at);
        self.strings(map, at, &mut told);
        self.bounds(map, at, &mut told);
        self.keywords(map, at, &mut told);
        if !told.is_empty() {
            tell(map, &told.join("; "));
        }
        each_child(map, at, &mut |child, at| self.schema(child, at));
    }

    fn types(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        if at.is_root() && (self.rules.nullable || !self.rules.keywords.accept("nullable")) {
            // Arguments are never null.
            if map.shift_remove("nullable").is_some() {
                self.notes.mended("keyword_dropped", at, "`nullable` says nothing at the root");
            }
        }
        if !self.rules.keywords.accept("nullable") && map.get("nullable") == Some(&Value::Bool(true)) {
            map.shift_remove("nullable");
            types::allow_null(map);
            self.notes.mended("type_changed", at, "`nullable` is written as a type");
        }
        if !self.rules.type_lists && map.get("type").is_some_and(Value::is_array) {
            self.type_list(map, at);
        }
        if self.rules.nullable && types::declared(map) == ["null"] {
            map.insert("type".to_owned(), json!("string"));
            map.insert("nullable".to_owned(), Value::Bool(true));
            self.notes.mended("type_changed", at, "null alone is written as a text that may be null");
        }
        let free = !map.contains_key("type") && !map.contains_key("anyOf");
        if free && self.rules.untyped != Untyped::Allowed {
            self.untyped(map, at);
        }
    }

    /// Several types as one type, with `nullable` for null, or as alternatives.
    fn type_list(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        let mut kinds: Vec<String> = types::declared(map).into_iter().map(str::to_owned).collect();
        let before = kinds.len();
        kinds.retain(|kind| kind != "null");
        if kinds.len() < before && !kinds.is_empty() {
            map.insert("nullable".to_owned(), Value::Bool(true));
        }
        self.notes.mended("type_changed", at, "a list of types is written as one type or as alternatives");
        match kinds.as_slice() {
            [] => {
                map.insert("type".to_owned(), json!("null"));
            }
            [one] => {
                map.insert("type".to_owned(), json!(one));
            }
            several => {
                let branches: Vec<Value> = several.iter().map(|kind| branch(map, kind)).collect();
                map.retain(|keyword, _| types::belongs_to(keyword).is_none());
                for keyword in ["type", "format", "enum"] {
                    map.shift_remove(keyword);
                }
                map.insert("anyOf".to_owned(), Value::Array(branches));
            }
        }
    }

    fn untyped(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        match types::infer(map) {
            Some("null") if self.rules.nullable => {
                put_first(map, "type", json!("string"));
                map.insert("nullable".to_owned(), Value::Bool(true));
                self.notes.mended("type_missing", at, "the type is told by the other keywords");
            }
            Some(kind) => {
                let null =
                    matches!(map.get("enum"), Some(Value::Array(values)) if values.contains(&Value::Null));
                let null = null && kind != "null";
                put_first(map, "type", if null { json!([kind, "null"]) } else { json!(kind) });
                self.notes.mended("type_missing", at, "the type is told by the other keywords");
            }
            None if self.rules.untyped == Untyped::Inferred => {}
            None => {
                let scalars = ["string", "number", "boolean"].map(|kind| json!({ "type": kind }));
                map.insert("anyOf".to_owned(), json!(scalars));
                self.notes.lost(
                    "type_missing",
                    at,
                    "a value of any type may be a text, a number or a boolean",
                );
            }
        }
    }

    fn items(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        if !types::declares(map, "array") || self.rules.items == Items::Optional {
            return;
        }
        if self.rules.items == Items::Needed {
            if !map.contains_key("items") {
                map.insert("items".to_owned(), json!({}));
                self.notes.mended("items_added", at, "the items of an array may be anything");
            }
            return;
        }
        let places = map
            .get("prefixItems")
            .and_then(Value::as_array)
            .filter(|_| !self.rules.keywords.accept("prefixItems"));
        let open = match map.get("items") {
            Some(Value::Object(items)) => {
                !items.contains_key("type") && !items.contains_key("anyOf") && types::infer(items).is_none()
            }
            _ => true,
        };
        if !open {
            return;
        }
        let items = match places {
            Some(places) => {
                let mut variants = places.clone();
                super::walk::dedupe(&mut variants);
                Some(union::either(variants)).filter(|joined| joined != &json!({}))
            }
            None => None,
        };
        match (items, map.get_mut("items")) {
            (Some(items), _) => {
                map.insert("items".to_owned(), items);
                self.notes.lost("items_added", at, "each item may be what one place of the tuple allows");
            }
            (None, Some(Value::Object(there))) => {
                put_first(there, "type", json!("string"));
                self.notes.lost("items_added", at, "the items of an array have the type `string`");
            }
            (None, _) => {
                map.insert("items".to_owned(), json!({ "type": "string" }));
                self.notes.lost("items_added", at, "the items of an array have the type `string`");
            }
        }
    }

    /// Every required name is a property: at the root for all, below where the provider asks for it.
    fn required(&mut self, map: &mut Map<String, Value>, at: &At<'_>) {
        let asked = at.is_root() || (self.rules.required_declared && types::declares(map, "object"));
        let Some(Value::Array(names)) = map.get("required").filter(|_| asked) else { return };
        let declared = map.get("properties").and_then(Value::as_object);
        let known = |name: &str| declared.is_some_and(|properties| properties.contains_key(name));
        let missing: Vec<String> =
            names.iter().filter_map(Value::as_str).filter(|name| !known(name)).map(str::to_owned).collect();
        if missing.is_empty() {
            return;
        }
        if let Value::Object(properties) = map.entry("properties").or_insert_with(|| json!({})) {
            for name in missing {
                properties.insert(name, json!({}));
            }
        }
        self.notes.mended("required_changed", at, "a required name that was no property is declared");
    }

    fn strings(&mut self, map: &mut Map<String, Value>, at: &At<'_>, told: &mut Vec<String>) {
        if let (Some(known), Some(Value::String(format))) = (self.rules.formats, map.get("format"))
            && (!known.contains(&format.as_str()) || (format == "enum" && !map.contains_key("enum")))
        {
            if let Some(format) = map.shift_remove("format").filter(|format| format != "enum") {
                told.push(say("format", &format));
            }
            self.notes.lost("format_dropped", at, "the provider does not know the format");
        }
        if let Some(Value::String(pattern)) = map.get("pattern")
            && !self.patterns.usable(pattern)
        {
            if let Some(pattern) = map.shift_remove("pattern") {
                told.push(say("pattern", &pattern));
            }
            self.notes.lost("pattern_dropped", at, "a pattern is no usable regular expression");
        }
        self.patterns.properties(map, at, self.notes);
    }

    fn bounds(&mut self, map: &mut Map<String, Value>, at: &At<'_>, told: &mut Vec<String>) {
        let Some(limit) = self.rules.bounds_below else { return };
        for keyword in BOUNDS {
            let Some(bound) = map.get(keyword).filter(|bound| bound.as_f64() >= Some(limit as f64)) else {
                continue;
            };
            told.push(say(keyword, bound));
            map.shift_remove(keyword);
            self.notes.lost("bound_dropped", at, &format!("`{keyword}` is larger than the provider takes"));
        }
    }

    fn keywords(&mut self, map: &mut Map<String, Value>, at: &At<'_>, told: &mut Vec<String>) {
        let declared: Vec<String> = types::declared(map).into_iter().map(str::to_owned).collect();
        let declares = |kind: &str| {
            declared.iter().any(|known| known == kind || (kind == "number" && known == "integer"))
        };
        let rules = self.rules;
        let accept = |keyword: &str| {
            let foreign =
                !rules.foreign_keywords && types::belongs_to(keyword).is_some_and(|kind| !declares(kind));
            rules.keywords.accept(keyword) && !foreign
        };
        let mut dropped = false;
        for (keyword, value) in map.iter().filter(|(keyword, _)| !accept(keyword)) {
            dropped = true;
            let detail = format!("`{keyword}` is taken out");
            let bounding = match TOLD.iter().find(|(known, _)| known == keyword) {
                _ if keyword == "additionalProperties" && value.is_object() => Some(true),
                _ if value.is_null() || value == "" => None,
                Some((_, true)) if *value == false => None,
                Some((_, bounding)) => Some(*bounding),
                _ => None,
            };
            if bounding.is_some() {
                let word =
                    if keyword == "additionalProperties" { "values of other keys" } else { keyword.as_str() };
                told.push(say(word, value));
            }
            if bounding == Some(true) {
                self.notes.lost("keyword_dropped", at, &detail);
            } else {
                self.notes.mended("keyword_dropped", at, &detail);
            }
        }
        if dropped {
            map.retain(|keyword, _| accept(keyword));
        }
    }
}

/// The part of a schema that is about values of one type.
fn branch(map: &Map<String, Value>, kind: &str) -> Value {
    let mut branch = Map::new();
    branch.insert("type".to_owned(), json!(kind));
    for (keyword, value) in map {
        let own = types::belongs_to(keyword)
            .is_some_and(|about| about == kind || (about == "number" && kind == "integer"));
        let formatted = keyword == "format" && !matches!(kind, "object" | "array" | "boolean");
        if own || formatted {
            branch.insert(keyword.clone(), value.clone());
        }
        if let (true, Value::Array(values)) = (keyword == "enum", value) {
            let fits = |value: &&Value| {
                let is = types::type_of(value);
                is == kind || (is == "integer" && kind == "number")
            };
            let own: Vec<Value> = values.iter().filter(fits).cloned().collect();
            if !own.is_empty() {
                branch.insert("enum".to_owned(), Value::Array(own));
            }
        }
    }
    Value::Object(branch)
}
