//! Entries that cannot become a tool, one fault each.

use serde_json::{Map, Value, json};

use super::{Rng, Shape, shuffled};

/// A limit of the service and how far these entries are beyond it.
const NAME_CHARS: usize = 512;
const DEPTH: usize = 64;
const TOOL_BYTES: usize = 256 * 1024;

/// How many different faults there are.
const FAULTS: usize = 21;

/// `count` upload entries that must be quarantined, in mixed shapes. The faults take turns: 21 entries hold each once.
pub(crate) fn broken(seed: u64, count: usize) -> Vec<Value> {
    let mut rng = Rng::new(seed);
    let entries = (0..count).map(|number| entry(&mut rng, number)).collect();
    shuffled(rng.next_u64(), entries)
}

fn entry(rng: &mut Rng, number: usize) -> Value {
    let shape = *rng.pick(&Shape::ALL);
    let name = json!(format!("broken_{number}"));
    let (text, schema) = (json!("Looks like a tool."), json!({"type": "object", "properties": {}}));
    match number % FAULTS {
        0 => tool(shape, None, text, schema),
        1 => tool(shape, Some(json!(42)), text, schema),
        2 => tool(shape, Some(Value::Null), text, schema),
        3 => tool(shape, Some(json!(["broken"])), text, schema),
        4 => tool(shape, Some(json!("")), text, schema),
        5 => tool(shape, Some(json!(" \t\n ")), text, schema),
        6 => tool(shape, Some(json!("n".repeat(NAME_CHARS + 1))), text, schema),
        7 => tool(shape, Some(json!("nul\u{0}name")), text, schema),
        8 => tool(shape, Some(name), json!("text with \u{0} inside"), schema),
        9 => tool(shape, Some(name), text, json!({"type": "object", "properties": {"nul\u{0}key": {}}})),
        10 => tool(shape, Some(name), text, json!({"type": "object", "title": "\u{0}"})),
        11 => tool(shape, Some(name), text, json!([{"type": "object"}])),
        12 => tool(shape, Some(name), text, json!(7)),
        13 => tool(shape, Some(name), text, nested(DEPTH + 6 + rng.below(20))),
        14 => tool(shape, Some(name), json!("x".repeat(TOOL_BYTES + 1)), schema),
        15 => tool(shape, Some(name), text, json!({"enum": vec!["wide"; TOOL_BYTES / 6]})),
        16 => json!({"type": "function", "function": "broken"}),
        17 => json!({}),
        18 => Value::Null,
        19 => json!(number),
        _ => json!([tool(shape, Some(name), text, schema)]),
    }
}

fn tool(shape: Shape, name: Option<Value>, description: Value, schema: Value) -> Value {
    let name = name.map(|name| ("name".to_owned(), name));
    let rest = [("description".to_owned(), description), (shape.schema_key().to_owned(), schema)];
    let tool: Map<String, Value> = name.into_iter().chain(rest).collect();
    let mut entry = match shape {
        Shape::OpenAiChat => json!({"type": "function", "function": tool}),
        _ => Value::Object(tool),
    };
    if shape == Shape::OpenAiResponses {
        entry["type"] = json!("function");
    }
    entry["group"] = json!("broken");
    entry
}

/// A schema of this many objects inside each other; still readable for a parser that stops at 128.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({ "items": inner }))
}
