//! Parameter schemas of the messy catalogs: from tidy objects to what servers really send in their place.

use serde_json::{Map, Value, json};

use super::{Maker, Server, words};

#[derive(Debug, Clone, Copy)]
pub(super) enum SchemaKind {
    Missing,
    Null,
    Anything,
    NoProperties,
    Flat,
    Pydantic,
    Wide,
    RootUnion,
    Definitions,
    Recursive,
    Deep,
    OddEnum,
    BareArray,
    BooleanSchemas,
    Sloppy,
}

pub(super) const SCHEMAS: &[(usize, SchemaKind)] = &[
    (20, SchemaKind::Missing),
    (10, SchemaKind::Null),
    (60, SchemaKind::Anything),
    (70, SchemaKind::NoProperties),
    (630, SchemaKind::Flat),
    (90, SchemaKind::Pydantic),
    (12, SchemaKind::Wide),
    (12, SchemaKind::RootUnion),
    (16, SchemaKind::Definitions),
    (8, SchemaKind::Recursive),
    (12, SchemaKind::Deep),
    (20, SchemaKind::OddEnum),
    (20, SchemaKind::BareArray),
    (10, SchemaKind::BooleanSchemas),
    (10, SchemaKind::Sloppy),
];

/// Number of parameters: the quantiles of the real collection (median 2, 90 % at most 6).
const PROPERTY_COUNTS: &[usize] = &[1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8, 10, 13];

/// Levels of objects in a deep schema; far below what is refused.
const DEEP_LEVELS: usize = 8;

impl Maker {
    /// The value of the schema key; None to leave the key out.
    pub(super) fn schema(&mut self, kind: SchemaKind, server: &Server) -> Option<Value> {
        let count = *self.rng.pick(PROPERTY_COUNTS);
        let mut schema = match kind {
            SchemaKind::Missing => return None,
            SchemaKind::Null => return Some(Value::Null),
            SchemaKind::Anything => return Some(json!({})),
            SchemaKind::NoProperties => {
                let empty = json!({"type": "object", "properties": {}, "required": []});
                return Some(self.rng.pick(&[empty, json!({"type": "object"})]).clone());
            }
            _ => self.object(if matches!(kind, SchemaKind::Wide) { 38 } else { count }, server),
        };
        let name = self.word(words::OBJECTS).to_owned();
        match kind {
            SchemaKind::Pydantic => {
                schema["title"] = json!(format!("{name}Arguments"));
                schema["properties"][&name] =
                    json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": name});
            }
            SchemaKind::RootUnion => {
                let branches = json!([self.object(1, server), self.object(2, server)]);
                let keyword = *self.rng.pick(&["anyOf", "oneOf"]);
                schema = json!({ keyword: branches });
            }
            SchemaKind::Definitions => {
                schema["properties"][&name] = json!({"$ref": "#/$defs/Item"});
                schema["properties"]["more"] = json!({"type": "array", "items": {"$ref": "#/$defs/Item"}});
                schema["$defs"] = json!({"Item": self.object(2, server), "Unused": {"type": "null"}});
            }
            SchemaKind::Recursive => {
                let mut node = self.object(1, server);
                node["properties"]["children"] = json!({"type": "array", "items": {"$ref": "#/$defs/Node"}});
                schema["properties"]["tree"] = json!({"$ref": "#/$defs/Node"});
                schema["properties"]["self"] = json!({"$ref": "#"});
                schema["$defs"] = json!({ "Node": node });
            }
            SchemaKind::Deep => {
                let mut inner = self.object(2, server);
                for level in (1..DEEP_LEVELS).rev() {
                    let key = format!("level_{level}");
                    inner = json!({"type": "object", "properties": { &key: inner }, "required": [key]});
                }
                schema["properties"]["nested"] = inner;
            }
            SchemaKind::OddEnum => {
                schema["properties"]["mode"] = json!({"type": "string", "enum": ["", "on", null, " off "]});
                schema["properties"]["level"] = json!({"enum": [1, 2.5, true, "3", null], "default": ""});
                schema["properties"]["fixed"] = json!({"const": "v1"});
            }
            SchemaKind::BareArray => {
                schema["properties"]["values"] = json!({"type": "array"});
                schema["properties"]["pairs"] = json!({"type": "array", "items": {}, "minItems": 2});
            }
            SchemaKind::BooleanSchemas => {
                schema["properties"]["anything"] = json!(true);
                schema["properties"]["nothing"] = json!(false);
            }
            // Keywords where they do not belong, types that do not exist, `required` of an unknown name.
            SchemaKind::Sloppy => {
                schema["visible"] = json!(true);
                schema["properties"]["list"] = json!({"type": "list", "required": true});
                schema["properties"]["text"] = json!({"type": ["string", "null"], "nullable": true});
                schema["properties"]["note"] = json!({"type": "str", "description": ["not", "a", "text"]});
                schema["required"] = json!(["list", "not_declared"]);
            }
            _ => {}
        }
        Some(schema)
    }

    /// An object schema with up to `count` parameters: `words::PARAMETERS` may give a name twice.
    fn object(&mut self, count: usize, server: &Server) -> Value {
        let mut properties = Map::new();
        for _ in 0..count {
            let &(name, kind, text) = self.rng.pick(words::PARAMETERS);
            let property = self.property(kind, text, server);
            properties.insert(name.to_owned(), property);
        }
        let mut required: Vec<String> = properties.keys().cloned().collect();
        required.retain(|_| self.rng.chance(45));
        let mut schema = json!({"type": "object", "properties": properties});
        // Servers leave `required` out or empty, in about equal parts.
        if !required.is_empty() || self.rng.chance(50) {
            schema["required"] = json!(required);
        }
        if self.rng.chance(20) {
            schema["additionalProperties"] = json!(false);
        }
        if self.rng.chance(5) {
            schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        }
        schema
    }

    fn property(&mut self, kind: &str, text: &str, server: &Server) -> Value {
        let mut property = json!({ "type": kind });
        match kind {
            "array" => property["items"] = json!({"type": "string"}),
            "integer" if self.rng.chance(40) => {
                property["minimum"] = json!(1);
                property["maximum"] = json!(100);
            }
            "object" if self.rng.chance(50) => property["additionalProperties"] = json!(true),
            "string" if self.rng.chance(12) => {
                let states: Vec<_> = (0..3).map(|_| self.word(words::STATES)).collect();
                property["enum"] = json!(states);
            }
            "boolean" if self.rng.chance(60) => property["default"] = json!(false),
            "?" => property = json!({}),
            _ => {}
        }
        if !text.is_empty() && self.rng.chance(80) {
            property["description"] = json!(self.fill(text, server));
        }
        property
    }
}
