//! What a provider accepts, checked on its own: from the rules of the table, not from what the mender does.

use serde_json::{Map, Value};

use super::*;
use crate::core::profile::{Enums, KeyRule};

/// Everything that the target would refuse about a schema.
pub fn refused(schema: &str, target: &SchemaTarget, strict: bool) -> Vec<String> {
    let Ok(Value::Object(root)) = serde_json::from_str(schema) else {
        return vec!["not an object".to_owned()];
    };
    let limits = target.profile.limits();
    let strict_rules = limits.strict.filter(|_| strict);
    let rules = if target.dialect == Dialect::OpenApi { OPENAPI } else { limits.schema };
    let mut checker = Checker { root: &root, rules, strict: strict_rules, faults: Vec::new() };
    if root.get("type") != Some(&Value::from("object")) {
        checker.faults.push("the root is no object".to_owned());
    }
    for keyword in root.keys() {
        if rules.root.banned.contains(&keyword.as_str())
            || rules.root.only.is_some_and(|only| !only.contains(&keyword.as_str()))
        {
            checker.faults.push(format!("{keyword} at the root"));
        }
    }
    if rules.root.properties && !root.get("properties").is_some_and(Value::is_object) {
        checker.faults.push("no properties at the root".to_owned());
    }
    checker.schema(&root, "", true);
    if target.dialect == Dialect::JsonSchema {
        let mut document = root.clone();
        document.shift_remove("$schema");
        if let Err(error) = jsonschema::meta::validate(&Value::Object(document)) {
            checker.faults.push(format!("no valid schema: {error}"));
        }
    }
    checker.faults
}

struct Checker<'a> {
    root: &'a Map<String, Value>,
    rules: SchemaRules,
    strict: Option<StrictRules>,
    faults: Vec<String>,
}

impl Checker<'_> {
    fn fault(&mut self, at: &str, what: &str) {
        self.faults.push(format!("{at}: {what}"));
    }

    fn schema(&mut self, map: &Map<String, Value>, at: &str, is_root: bool) {
        let rules = self.rules;
        for keyword in map.keys() {
            let taken = self.strict.map_or_else(
                || rules.keywords.accept(keyword),
                |strict| strict.keywords.contains(&keyword.as_str()),
            );
            if !taken {
                self.fault(at, &format!("keyword {keyword}"));
            }
        }
        self.types(map, at);
        self.references(map, at);
        self.object(map, at, is_root);
        self.values(map, at);
        let children = [
            ("properties", true),
            ("$defs", false),
            ("patternProperties", false),
            ("dependentSchemas", false),
        ];
        for (keyword, are_properties) in children {
            for (key, child) in map.get(keyword).and_then(Value::as_object).into_iter().flatten() {
                if are_properties {
                    let fits = match rules.keys {
                        KeyRule::TopLevel if !is_root => true,
                        rule => rule.fits(key),
                    };
                    if !fits {
                        self.fault(at, &format!("key {key:?}"));
                    }
                }
                self.child(child, &format!("{at}/{keyword}/{key}"));
            }
        }
        for keyword in ["items", "not", "if", "then", "else", "contains", "propertyNames"] {
            if let Some(child) = map.get(keyword) {
                self.child(child, &format!("{at}/{keyword}"));
            }
        }
        for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            for (index, child) in map.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.child(child, &format!("{at}/{keyword}/{index}"));
            }
        }
        if let Some(child @ Value::Object(_)) = map.get("additionalProperties") {
            self.child(child, &format!("{at}/additionalProperties"));
        }
    }

    fn child(&mut self, child: &Value, at: &str) {
        match child {
            Value::Object(map) => self.schema(map, at, false),
            _ => self.fault(at, "no object"),
        }
    }

    fn types(&mut self, map: &Map<String, Value>, at: &str) {
        match map.get("type") {
            None => {
                let typed = map.contains_key("anyOf");
                let needed = self.rules.untyped == Untyped::Scalars || self.strict.is_some();
                if needed && !typed {
                    self.fault(at, "no type");
                }
            }
            Some(Value::String(kind)) => {
                if self.rules.nullable && kind == "null" {
                    self.fault(at, "type null");
                }
            }
            Some(_) if !self.rules.type_lists => self.fault(at, "list of types"),
            Some(_) => {}
        }
        let is_array = map.get("type").is_some_and(|kind| {
            kind == "array" || kind.as_array().is_some_and(|kinds| kinds.contains(&Value::from("array")))
        });
        let need = if self.strict.is_some() { Items::Typed } else { self.rules.items };
        if is_array && need != Items::Optional && !map.contains_key("items") {
            self.fault(at, "array without items");
        }
        if !self.rules.any_of_with_others
            && map.contains_key("anyOf")
            && (map.contains_key("type") || map.contains_key("properties"))
        {
            self.fault(at, "constraints beside anyOf");
        }
    }

    fn references(&mut self, map: &Map<String, Value>, at: &str) {
        let Some(reference) = map.get("$ref") else { return };
        let inline = self.strict.is_some() || self.rules.refs == Refs::Inline;
        if inline || (self.rules.refs == Refs::KeepAlone && map.len() > 1) {
            self.fault(at, "reference");
        }
        let text = reference.as_str().unwrap_or_default();
        let found = text == "#"
            || text.strip_prefix("#/$defs/").is_some_and(|name| {
                let name = name.replace("%20", " ").replace("~1", "/").replace("~0", "~");
                self.root.get("$defs").is_some_and(|defs| defs.get(&name).is_some())
            });
        if !found {
            self.fault(at, &format!("reference {text} leads nowhere"));
        }
    }

    fn object(&mut self, map: &Map<String, Value>, at: &str, is_root: bool) {
        let properties = map.get("properties").and_then(Value::as_object);
        let names =
            || map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let declared = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        let is_object = map.get("type") == Some(&Value::from("object"));
        if (is_root || (self.rules.required_declared && is_object)) && !names().all(declared) {
            self.fault(at, "required is not declared");
        }
        let Some(strict) = self.strict.filter(|_| is_object) else { return };
        if map.get("additionalProperties") != Some(&Value::Bool(false)) {
            self.fault(at, "open object");
        }
        if strict.all_required
            && properties
                .is_some_and(|properties| properties.keys().any(|key| !names().any(|name| name == key)))
        {
            self.fault(at, "optional property");
        }
    }

    fn values(&mut self, map: &Map<String, Value>, at: &str) {
        if let Some(values) = map.get("enum").and_then(Value::as_array) {
            let fine = match self.rules.enums {
                Enums::Any => true,
                Enums::NoEmptyText => values.iter().all(|value| value != ""),
                Enums::TextsOnly => {
                    values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty()))
                        && map.get("type") == Some(&Value::from("string"))
                }
            };
            if values.is_empty() || !fine {
                self.fault(at, "enum");
            }
        }
        let formats = self.strict.map_or(self.rules.formats, |strict| Some(strict.formats));
        if let (Some(known), Some(format)) = (formats, map.get("format").and_then(Value::as_str))
            && !known.contains(&format)
        {
            self.fault(at, "format");
        }
        for keyword in ["minLength", "maxLength", "minItems", "maxItems"] {
            let bound = map.get(keyword).and_then(Value::as_f64).unwrap_or_default();
            if self.rules.bounds_below.is_some_and(|limit| bound >= limit as f64) {
                self.fault(at, keyword);
            }
        }
    }
}
