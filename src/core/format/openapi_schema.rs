//! Gemini's `parameters` and `response`, a subset of OpenAPI 3.0: what belongs to it, and the same as JSON Schema, which
//! every other format and the check of arguments need.

use serde_json::{Map, Value};

/// Keys whose numbers Gemini's clients may write as text, because they are 64 bits wide.
const WIDE_NUMBERS: [&str; 6] =
    ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/// A schema as JSON Schema, or nothing when it is that already. Recursive: for text of bounded depth.
pub(super) fn to_json_schema(schema: &str) -> Option<String> {
    let before: Value = serde_json::from_str(schema).ok()?;
    let mut after = before.clone();
    convert(&mut after);
    (after != before).then(|| after.to_string())
}

/// Names of types, in any case.
const TYPES: [&str; 8] =
    ["string", "number", "integer", "boolean", "array", "object", "null", "type_unspecified"];

/// Whether a schema is of the subset: an unknown member is a 400 for the whole array, and so are `required` names that
/// are no properties, values other than texts, what has neither type nor alternatives, and arrays without items. Recursive: for text of bounded depth.
pub(super) fn is_openapi(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return false };
    let kind = schema.get("type").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let is = |wanted: &str| kind.as_deref() == Some(wanted);
    let texts = |value: &Value| value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string));
    let member = |(key, value): (&String, &Value)| match key.as_str() {
        "type" => TYPES.into_iter().any(is),
        "format" | "title" | "description" | "pattern" => value.is_string(),
        "nullable" => value.is_boolean(),
        "enum" => {
            is("string")
                && value.as_array().is_some_and(|texts| !texts.is_empty())
                && texts(value)
                && !value.as_array().is_some_and(|texts| texts.contains(&Value::from("")))
        }
        "items" => is_openapi(value),
        "properties" => value.as_object().is_some_and(|entries| entries.values().all(is_openapi)),
        "anyOf" => value.as_array().is_some_and(|any| !any.is_empty() && any.iter().all(is_openapi)),
        "required" | "propertyOrdering" => {
            let declared = schema.get("properties").and_then(Value::as_object);
            let known = |name: &Value| {
                name.as_str().is_some_and(|name| declared.is_some_and(|known| known.contains_key(name)))
            };
            value.as_array().is_some_and(|names| names.iter().all(known))
        }
        "minimum" | "maximum" => value.is_number(),
        "default" | "example" => true,
        key => WIDE_NUMBERS.contains(&key) && wide_number(value).is_some(),
    };
    let is_typed = kind.is_some() || schema.contains_key("anyOf");
    schema.iter().all(member) && is_typed && is("array") == schema.contains_key("items")
}

fn wide_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn convert(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    // An order of properties is what their order in the text says.
    schema.shift_remove("propertyOrdering");
    let lower = schema.get("type").and_then(Value::as_str).map(str::to_ascii_lowercase);
    match lower.as_deref() {
        Some("type_unspecified") => drop(schema.shift_remove("type")),
        Some(kind @ ("string" | "number" | "integer" | "boolean" | "array" | "object" | "null")) => {
            schema["type"] = Value::from(kind);
        }
        _ => {}
    }
    // Only says that there is an `enum`.
    if schema.get("format").is_some_and(|format| format == "enum") {
        schema.shift_remove("format");
    }
    for key in WIDE_NUMBERS {
        let number = schema.get(key).and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok());
        if let Some(number) = number {
            schema[key] = Value::from(number);
        }
    }
    if schema.get("nullable").is_some_and(Value::is_boolean)
        && schema.shift_remove("nullable") == Some(Value::Bool(true))
    {
        allow_null(schema);
    }
    for key in ["items", "additionalProperties"] {
        schema.get_mut(key).into_iter().for_each(convert);
    }
    for key in ["properties", "$defs", "defs"] {
        let inner = schema.get_mut(key).and_then(Value::as_object_mut);
        inner.into_iter().flat_map(Map::values_mut).for_each(convert);
    }
    for key in ["anyOf", "prefixItems"] {
        schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(convert);
    }
}

fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(kind) = schema.get("type").filter(|kind| kind.is_string()) {
        schema["type"] = Value::Array(vec![kind.clone(), Value::from("null")]);
    }
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.push(Value::Null);
    }
    if let Some(branches) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        branches.push(serde_json::json!({"type": "null"}));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_belongs_to_the_subset_is_told_from_what_does_not() {
        let with =
            |property: Value| json!({"type": "OBJECT", "properties": {"a": property}, "required": ["a"]});
        for property in [
            json!({"type": "STRING", "enum": ["x"], "nullable": true, "default": null, "title": "A"}),
            json!({"type": "array", "items": {"type": "INTEGER", "format": "int32"}, "maxItems": "9"}),
            json!({"anyOf": [{"type": "NUMBER", "minimum": 0.5}, {"type": "NULL"}]}),
            json!({"type": "OBJECT", "properties": {"$ref": {"type": "STRING"}}, "propertyOrdering": ["$ref"]}),
        ] {
            assert!(is_openapi(&with(property.clone())), "{property}");
        }
        for property in [
            json!(true),
            json!({"type": "text"}),
            json!({"type": ["STRING", "NULL"]}),
            json!({"type": "STRING", "const": "x"}),
            json!({"type": "STRING", "enum": []}),
            json!({"type": "STRING", "enum": [""]}),
            json!({"type": "INTEGER", "enum": ["1"]}),
            json!({"type": "ARRAY"}),
            json!({"type": "ARRAY", "items": {"$ref": "#"}}),
            json!({"type": "STRING", "maxLength": "many"}),
            json!({"type": "OBJECT", "required": ["b"]}),
            json!({"anyOf": [{"oneOf": []}]}),
        ] {
            assert!(!is_openapi(&with(property.clone())), "{property}");
        }
    }

    #[test]
    fn the_openapi_subset_becomes_json_schema() {
        let schema = json!({
            "type": "OBJECT", "propertyOrdering": ["b", "type"],
            "properties": {
                "b": {"type": "ARRAY", "minItems": "1", "items": {"type": "STRING", "format": "enum", "enum": ["x"]}},
                "type": {"type": "INTEGER", "format": "int32", "nullable": true},
                "c": {"anyOf": [{"type": "NUMBER"}, {"type": "BOOLEAN"}], "nullable": true},
                "nullable": {"type": "STRING", "nullable": false, "enum": ["STRING"]},
                "any": {"type": "TYPE_UNSPECIFIED"}
            },
            "required": ["b"]
        });
        let converted: Value = serde_json::from_str(&to_json_schema(&schema.to_string()).unwrap()).unwrap();
        assert_eq!(
            converted,
            json!({
                "type": "object",
                "properties": {
                    "b": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["x"]}},
                    "type": {"type": ["integer", "null"], "format": "int32"},
                    "c": {"anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "null"}]},
                    "nullable": {"type": "string", "enum": ["STRING"]},
                    "any": {}
                },
                "required": ["b"]
            })
        );
        assert_eq!(to_json_schema(&converted.to_string()), None, "what is JSON Schema stays as it is");
        assert_eq!(to_json_schema("7"), None);
    }

    #[test]
    fn a_schema_that_the_provider_would_refuse_is_told() {
        let with = |a: Value| json!({"type": "OBJECT", "properties": {"a": a}});
        for taken in [
            json!({"type": "STRING", "title": "A", "enum": ["x"], "format": "enum", "nullable": true}),
            json!({"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": "1"}),
            json!({"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]}),
        ] {
            assert!(is_openapi(&with(taken.clone())), "{taken}");
        }
        for refused in [
            json!({"type": ["string", "null"]}),
            json!({"type": "ARRAY"}),
            json!({"type": "STRING", "items": {"type": "STRING"}}),
            json!({"type": "STRING", "enum": [""]}),
            json!({"enum": ["x"]}),
            json!({"description": "Anything."}),
            json!({"type": "OBJECT", "additionalProperties": false}),
            json!({"$ref": "#/defs/x"}),
            json!({"oneOf": [{"type": "STRING"}]}),
            json!(true),
        ] {
            assert!(!is_openapi(&with(refused.clone())), "{refused}");
        }
    }
}
