//! Characters that nobody sees and a model reads: no schema that is sent holds any.
//!
//! Texts lose them. Values that an argument would have to repeat are left out with them, since arguments are held against
//! the tool's own schema. Keys are left to the step that renames keys.

use serde_json::{Map, Value};

use super::notes::Notes;
use super::walk::{At, each_schema};
use crate::core::hidden::hidden_in;
use crate::core::schema::keywords::{self, Holds};
use crate::core::text::{hidden_characters, visible};

/// What the later steps have to keep from the model.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hiding {
    /// A key of an argument.
    pub(super) keys: bool,
    /// The name of a definition, or a reference.
    pub(super) references: bool,
}

const CODE: &str = "hidden_characters";

/// Cleans every schema of the document.
pub(super) fn settle(root: &mut Map<String, Value>, notes: &mut Notes) -> Hiding {
    let mut hiding = Hiding::default();
    each_schema(root, &At::ROOT, &mut |map, at| schema(map, at, &mut hiding, notes));
    hiding
}

fn hides(value: &Value) -> bool {
    hidden_in(value) > 0
}

fn schema(map: &mut Map<String, Value>, at: &At<'_>, hiding: &mut Hiding, notes: &mut Notes) {
    let mut dropped = Vec::new();
    for (keyword, value) in map.iter_mut() {
        match (keyword.as_str(), &mut *value) {
            ("description" | "title" | "$comment", Value::String(text)) => {
                if hidden_characters(text) > 0 {
                    *text = visible(text).into_owned();
                    notes.mended(CODE, &at.key(keyword), "characters that are not shown are left out");
                }
            }
            ("enum", Value::Array(values)) => {
                let before = values.len();
                values.retain(|value| !hides(value));
                if values.is_empty() {
                    dropped.push(keyword.clone());
                } else if values.len() < before {
                    notes.lost(
                        CODE,
                        &at.key(keyword),
                        "values with characters that are not shown are left out",
                    );
                }
            }
            ("examples", Value::Array(values)) if values.iter().any(hides) => {
                values.retain(|value| !hides(value));
                notes.mended(
                    CODE,
                    &at.key(keyword),
                    "examples with characters that are not shown are left out",
                );
            }
            // Names of arguments: renamed together with their schemas.
            ("required" | "dependentRequired", value) => hiding.keys |= hides(value),
            ("$ref" | "$dynamicRef" | "$recursiveRef", value) => hiding.references |= hides(value),
            (_, value) => match (keywords::of(keyword).0, &*value) {
                (Holds::Map | Holds::MapOfSchemas, Value::Object(entries)) => {
                    let hidden = entries.keys().any(|key| hidden_characters(key) > 0);
                    match keyword.as_str() {
                        "properties" | "dependentSchemas" => hiding.keys |= hidden,
                        "$defs" | "definitions" => hiding.references |= hidden,
                        _ if hidden => dropped.push(keyword.clone()),
                        _ => {}
                    }
                }
                (Holds::Nothing, value) if hides(value) => dropped.push(keyword.clone()),
                _ => {}
            },
        }
        if hidden_characters(keyword) > 0 {
            dropped.push(keyword.clone());
        }
    }
    for keyword in dropped {
        if map.shift_remove(&keyword).is_some() {
            let detail =
                format!("`{}` holds characters that are not shown and is left out", visible(&keyword));
            notes.lost(CODE, at, &detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::core::mend::{Outcome, SchemaTarget, mend, unmap};
    use crate::core::profile::Profile;
    use crate::core::text::hidden_characters;

    #[test]
    fn no_schema_that_is_sent_hides_anything_and_arguments_find_back() {
        let schema = json!({
            "type": "object", "title": "T\u{200b}",
            "x\u{200b}y": 1, "x-note": {"deep": ["a\u{e0041}"]},
            "properties": {
                "to\u{200b}ken": {"type": "string", "description": "Say\u{202e} it.", "pattern": "a\u{200b}"},
                "mode": {"type": "string", "enum": ["on", "o\u{200b}ff"], "default": "o\u{200b}ff"},
                "only": {"enum": ["\u{feff}"], "examples": ["a", "b\u{200b}"]},
                "ref": {"$ref": "#/$defs/na\u{200b}me"},
            },
            "required": ["to\u{200b}ken"],
            "$defs": {"na\u{200b}me": {"type": "integer", "description": "N\u{200b}."}},
        });
        let text = schema.to_string();
        for profile in Profile::ALL {
            for strict in [false, true] {
                let done = mend(&text, &SchemaTarget { profile, strict, ..SchemaTarget::default() });
                assert_eq!(done.outcome, Outcome::Mended, "{profile:?}");
                assert_eq!(hidden_characters(&done.schema), 0, "{profile:?} {}", done.schema);
                assert!(!done.schema.contains("\\u"), "{profile:?} {}", done.schema);
                assert!(done.notes.iter().any(|note| note.code == "hidden_characters" && note.lossy));
                let sent: serde_json::Value = serde_json::from_str(&done.schema).unwrap();
                let key =
                    sent["properties"].as_object().unwrap().keys().find(|key| key.starts_with("to")).unwrap();
                assert!(sent["required"].as_array().unwrap().contains(&json!(key)));
                let mut arguments = json!({key: "x"});
                unmap(&mut arguments, &done.arg_map);
                assert_eq!(arguments, json!({"to\u{200b}ken": "x"}), "{profile:?}");
            }
        }
    }
}
