//! Whether a schema can go out as it came: the schemas of results, which nobody mends.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::patterns::Patterns;
use super::refs::{Places, REFERENCES};
use super::{shape, types};
use crate::core::schema::keywords::{self, Holds};

/// Whether every keyword has a value of its kind, every regular expression can be read and every reference leads to
/// a schema of the document. Clients compile the schemas of results when they list tools, and one that does not
/// compile costs them the whole list. Recursive: for text of bounded depth.
pub fn is_sound(schema: &Value) -> bool {
    let mut look =
        Look { places: Places::of(schema), patterns: Patterns::of_any_engine(), names: HashSet::new() };
    look.schema(schema)
}

struct Look<'a> {
    places: Places<'a>,
    patterns: Patterns,
    /// `$id` and `$anchor` of each schema: a name for two is a name for none.
    names: HashSet<&'a str>,
}

impl<'a> Look<'a> {
    fn schema(&mut self, schema: &'a Value) -> bool {
        match schema {
            Value::Bool(_) => true,
            Value::Object(map) => {
                nullable_fits(map) && map.iter().all(|(keyword, value)| self.keyword(keyword, value))
            }
            _ => false,
        }
    }

    fn keyword(&mut self, keyword: &'a str, value: &'a Value) -> bool {
        if !shape::fits(keyword, value) {
            return false;
        }
        let is_usable = match (keyword, value) {
            ("pattern", Value::String(pattern)) => self.patterns.usable(pattern),
            ("patternProperties", Value::Object(entries)) => {
                entries.keys().all(|pattern| self.patterns.usable(pattern))
            }
            ("$id" | "$anchor", Value::String(name)) => self.names.insert(name),
            (keyword, Value::String(reference)) if REFERENCES.contains(&keyword) => {
                self.places.find(reference).is_some()
            }
            _ => true,
        };
        is_usable && self.below(keyword, value)
    }

    fn below(&mut self, keyword: &str, value: &'a Value) -> bool {
        match (keywords::of(keyword).0, value) {
            (Holds::Nothing, _) => true,
            (Holds::MapOfSchemas, Value::Object(entries)) => {
                entries.values().all(|entry| entry.is_array() || self.schema(entry))
            }
            (Holds::Map, Value::Object(entries)) => entries.values().all(|entry| self.schema(entry)),
            (Holds::List, Value::Array(items)) => items.iter().all(|item| self.schema(item)),
            (_, value) => self.schema(value),
        }
    }
}

/// Ajv, which MCP's JavaScript client uses, refuses `nullable` without a type or against it.
fn nullable_fits(map: &Map<String, Value>) -> bool {
    map.get("nullable").is_none_or(|nullable| {
        map.contains_key("type") && (*nullable == Value::Bool(true) || !types::declares(map, "null"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_that_compile_are_sound() {
        for schema in [
            json!(true),
            json!({}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "a", "type": "object",
                "properties": {"a": true, "pattern": {"type": "string", "pattern": "^(?!a)\\d+$"}},
                "required": ["a"], "additionalProperties": false}),
            json!({"definitions": {"a": {"type": "string"}}, "items": {"$ref": "#/definitions/a"}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#"}, {"type": ["string", "null"]}]}}}),
            json!({"$ref": "#b", "$defs": {"a": {"$anchor": "b"}}}),
            json!({"type": "string", "nullable": true, "x-vendor": {"type": 7}, "default": {"$ref": "none"}}),
            json!({"dependencies": {"a": ["b"], "b": {"required": ["c"]}}}),
        ] {
            assert!(is_sound(&schema), "{schema}");
        }
    }

    #[test]
    fn what_no_client_compiles_is_not_sound() {
        for schema in [
            json!(null),
            json!("object"),
            json!({"type": "text"}),
            json!({"properties": {"a": {"type": "text"}}}),
            json!({"properties": {"a": null}}),
            json!({"properties": []}),
            json!({"required": "a"}),
            json!({"enum": []}),
            json!({"anyOf": []}),
            json!({"items": [{"required": true}]}),
            json!({"allOf": [{"minLength": -1}]}),
            json!({"not": {"pattern": "(("}}),
            json!({"patternProperties": {"[": {}}}),
            json!({"$ref": "#/$defs/none"}),
            json!({"properties": {"a": {"$ref": "https://schemas.example.com/a.json"}}}),
            json!({"$defs": {"a": {"$id": "x"}, "b": {"$id": "x"}}}),
            json!({"nullable": true}),
            json!({"type": ["string", "null"], "nullable": false}),
        ] {
            assert!(!is_sound(&schema), "{schema}");
        }
    }
}
