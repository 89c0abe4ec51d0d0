//! What a provider would refuse about a schema that says that it is strict.

use serde_json::{Map, Value, json};

use super::schema::{inside, is_a};
use super::table::{FORMATS, Strict};

/// What a request has of strict tools.
#[derive(Debug, Default)]
pub(super) struct Sums {
    tools: usize,
    optional: usize,
    unions: usize,
}

impl Sums {
    /// Anthropic's limits of a request.
    pub(super) fn over_a_request(&self) -> Vec<String> {
        let Self { tools, optional, unions } = self;
        let fits = *tools <= 20 && *optional <= 24 && *unions <= 16;
        if fits { Vec::new() } else { vec![format!("strict in a request: {self:?}")] }
    }
}

/// What a schema has.
#[derive(Debug, Default)]
struct Size {
    properties: usize,
    characters: usize,
    values: usize,
}

pub(super) fn faults(strict: &Strict, root: &Map<String, Value>, sums: &mut Sums) -> Vec<String> {
    sums.tools += 1;
    let (mut size, mut faults) = (Size::default(), Vec::new());
    schema(strict, root, "", 1, &mut size, sums, &mut faults);
    let fits = size.properties <= 5_000 && size.characters <= 120_000 && size.values <= 1_000;
    if strict.sums && !fits {
        faults.push(format!("strict: {size:?}"));
    }
    faults
}

fn schema(
    strict: &Strict,
    map: &Map<String, Value>,
    at: &str,
    mut level: usize,
    size: &mut Size,
    sums: &mut Sums,
    faults: &mut Vec<String>,
) {
    let mut fault = |what: &str| faults.push(format!("{at}: strict: {what}"));
    for keyword in map.keys().filter(|keyword| strict.without.contains(&&***keyword)) {
        fault(keyword);
    }
    let chosen = map.contains_key("anyOf");
    if !["type", "anyOf", "$ref", "enum", "const"].iter().any(|keyword| map.contains_key(*keyword)) {
        fault("no type");
    }
    sums.unions += usize::from(chosen || map.get("type").is_some_and(Value::is_array));
    if map.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format)) {
        fault("format");
    }
    if strict.most_min_items.is_some_and(|most| map.get("minItems").and_then(Value::as_f64) > Some(most)) {
        fault("minItems");
    }
    if is_a(map, "array") && !map.get("items").is_some_and(|items| items != &json!({})) {
        fault("an array without typed items");
    }
    if is_a(map, "object") {
        if map.get("additionalProperties") != Some(&Value::Bool(false)) {
            fault("an open object");
        }
        let empty = Map::new();
        let properties = map.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = map.get("required").and_then(Value::as_array);
        let is_required =
            |key: &String| required.is_some_and(|names| names.iter().any(|name| *name == **key));
        let optional = properties.keys().filter(|key| !is_required(key)).count();
        if strict.all_required && optional > 0 {
            fault("an optional property");
        }
        if strict.sums && level > 10 {
            fault("more than ten levels");
        }
        sums.optional += optional;
        size.properties += properties.len();
        size.characters += properties.keys().map(|key| key.chars().count()).sum::<usize>();
        level += 1;
    }
    let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
    size.characters += map.get("const").map_or(0, length);
    if let Some(values) = map.get("enum").and_then(Value::as_array) {
        let characters: usize = values.iter().map(length).sum();
        size.values += values.len();
        size.characters += characters;
        if strict.sums && values.len() > 250 && characters > 15_000 {
            fault("a long enum");
        }
    }
    for (place, child) in inside(map) {
        if let Value::Object(child) = child {
            schema(strict, child, &format!("{at}{place}"), level, size, sums, faults);
        }
    }
}
