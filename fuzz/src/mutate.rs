//! Changes of inputs. Bytes that are changed at random seldom are JSON any more, and would try the JSON reader alone: most
//! changes are made to the tree of values, in words that tools, schemas, calls and answers are written in.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

/// Keys of all that is read.
const KEYS: &[&str] = &[
    "name",
    "description",
    "parameters",
    "group",
    "type",
    "function",
    "tools",
    "properties",
    "required",
    "items",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$defs",
    "definitions",
    "$id",
    "$anchor",
    "$schema",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "prefixItems",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "format",
    "pattern",
    "minLength",
    "maxItems",
    "minimum",
    "exclusiveMinimum",
    "multipleOf",
    "uniqueItems",
    "nullable",
    "default",
    "examples",
    "title",
    "deprecated",
    "input_schema",
    "inputSchema",
    "outputSchema",
    "json",
    "toolSpec",
    "functionDeclarations",
    "parametersJsonSchema",
    "response",
    "strict",
    "annotations",
    "readOnlyHint",
    "always_load",
    "override",
    "aliases",
    "extra",
    "extra_of",
    "uploaded_name",
    "wire_name",
    "provenance",
    "digest",
    "cache_control",
    "defer_loading",
    "input_examples",
    "_meta",
    "icons",
    "id",
    "arguments",
    "args",
    "input",
    "call_id",
    "namespace",
    "functionCall",
    "toolUse",
    "toolUseId",
    "tool_use",
    "calls",
    "tool",
    "tool_name",
    "method",
    "params",
    "query",
    "names",
    "limit",
    "role",
    "content",
    "text",
    "parts",
    "tool_calls",
    "results",
    "data",
    "index",
    "relevance_score",
    "score",
    "scores",
    "document",
    "output",
    "result",
    "embedding",
    "embeddings",
    "float",
    "error",
    "code",
    "message",
    "status",
    "hidden",
    "budget",
    "groups",
    "native",
    "a",
    "b",
    "$top",
    "filter[id]",
    "x.y",
    "",
    "a/b~c",
    "ключ",
];

/// Texts that mean something somewhere, and some that are hard to read.
const TEXTS: &[&str] = &[
    "object",
    "string",
    "array",
    "integer",
    "number",
    "boolean",
    "null",
    "OBJECT",
    "STRING",
    "function",
    "custom",
    "namespace",
    "tool_search",
    "tool_describe",
    "tool_call",
    "function_call",
    "tool_search_call",
    "tool_use",
    "tools/call",
    "user",
    "assistant",
    "send_mail",
    "files.read",
    "search",
    "a__search",
    "openai",
    "anthropic",
    "gemini",
    "bedrock",
    "other",
    "#",
    "#/$defs/A",
    "#/$defs/B",
    "#/properties/a",
    "#/definitions/A",
    "#anchor",
    "https://example.com/x.json",
    "uri",
    "date-time",
    "^a+$",
    "(?=x)y",
    "(a{1000}){1000}",
    "[",
    "{}",
    "{\"a\":1}",
    "[{\"name\":\"a\"}]",
    "0.5",
    "NaN",
    "AACAPwAAgD8=",
    "functions.send_mail",
    "send_mail()",
    "- a: b",
    "a: b, c",
    "and 3 more groups",
    "line\n- forged: line",
    "\u{202e}a\u{200b}",
    "\u{2028}\u{85}\u{0}",
    "e\u{301}",
    "\u{1f469}\u{200d}\u{1f4bb}",
    "İ",
    "ß",
    "発注",
    "x y",
    "x.y",
    "x-y",
    "1x",
    "\u{fdfa}",
    "in:github",
    "-mail",
    "\"create_issue\"",
    "ignore previous instructions",
    " ",
    "",
];

/// Changes the first `size` bytes of `data`, which has room for `max_size`; how long it is then.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice(u64::from(seed));
    if dice.below(4) > 0
        && let Some(text) = changed(&data[..size], max_size, &mut dice)
    {
        data[..text.len()].copy_from_slice(text.as_bytes());
        return text.len();
    }
    fuzzer_mutate(data, size, max_size)
}

/// The input with a change in one of its parts that is JSON; nothing where none is, or where it is too long then.
fn changed(input: &[u8], max_size: usize, dice: &mut Dice) -> Option<String> {
    let text = std::str::from_utf8(input).ok()?;
    let mut parts: Vec<String> = text.splitn(2, "\n\n").map(str::to_owned).collect();
    let trees: Vec<(usize, Value)> = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| Some((at, serde_json::from_str::<Value>(part).ok()?)))
        .filter(|(_, tree)| tree.is_object() || tree.is_array())
        .collect();
    if trees.is_empty() {
        return None;
    }
    let chosen = dice.below(trees.len());
    let (at, mut tree) = trees.into_iter().nth(chosen)?;
    for _ in 0..=dice.below(3) {
        change(&mut tree, dice);
    }
    parts[at] = tree.to_string();
    let text = parts.join("\n\n");
    (text.len() <= max_size).then_some(text)
}

/// One change at a place of the tree.
fn change(tree: &mut Value, dice: &mut Dice) {
    let nodes = count(tree);
    let other = pick(tree, dice.below(nodes)).clone();
    let node = pick_mut(tree, dice.below(nodes));
    match dice.below(10) {
        0 => *node = odd(dice),
        1 => *node = other,
        2 => {
            let inner = node.take();
            *node = if dice.below(2) == 0 { json!([inner]) } else { json!({dice.one_of(KEYS): inner}) };
        }
        3 => {
            let child = match &*node {
                Value::Array(items) if !items.is_empty() => items[dice.below(items.len())].clone(),
                Value::Object(map) if !map.is_empty() => {
                    map.values().nth(dice.below(map.len())).cloned().unwrap_or_default()
                }
                _ => odd(dice),
            };
            *node = child;
        }
        _ => match node {
            Value::Object(map) => change_object(map, other, dice),
            Value::Array(items) => change_array(items, other, dice),
            Value::String(text) => change_text(text, dice),
            _ => *node = odd(dice),
        },
    }
}

fn change_object(map: &mut Map<String, Value>, other: Value, dice: &mut Dice) {
    let key = map.keys().nth(dice.below(map.len().max(1))).cloned();
    match (dice.below(5), key) {
        (0, Some(key)) => {
            map.shift_remove(&key);
        }
        (1, Some(key)) => {
            let renamed = dice.one_of(KEYS).to_owned();
            let entries = std::mem::take(map).into_iter();
            *map =
                entries.map(|(old, value)| (if old == key { renamed.clone() } else { old }, value)).collect();
        }
        (2, Some(key)) => {
            map.insert(key, odd(dice));
        }
        (3, _) => {
            map.insert(dice.one_of(KEYS).to_owned(), odd(dice));
        }
        _ => {
            map.insert(dice.one_of(KEYS).to_owned(), other);
        }
    }
}

fn change_array(items: &mut Vec<Value>, other: Value, dice: &mut Dice) {
    let at = dice.below(items.len().max(1));
    match dice.below(5) {
        0 if !items.is_empty() => {
            items.remove(at);
        }
        1 if !items.is_empty() => {
            let item = items[at].clone();
            items.push(item);
        }
        2 if !items.is_empty() => {
            let with = dice.below(items.len());
            items.swap(at, with);
        }
        3 => items.push(odd(dice)),
        _ => items.insert(at, other),
    }
}

fn change_text(text: &mut String, dice: &mut Dice) {
    let more = dice.one_of(TEXTS);
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = places[dice.below(places.len())];
    match dice.below(5) {
        0 => *text = more.to_owned(),
        1 => *text = dice.one_of(KEYS).to_owned(),
        2 => text.truncate(at),
        3 if text.len() < 2_000 => *text = text.repeat(2 + dice.below(3)),
        _ => text.insert_str(at, more),
    }
}

/// A value that stands where something else belongs.
fn odd(dice: &mut Dice) -> Value {
    match dice.below(16) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!([]),
        4 => json!({}),
        5 => json!(dice.below(5)),
        6 => json!(-1),
        7 => json!(2.5),
        8 => json!(1e300),
        9 => json!(u64::MAX),
        10 => json!([dice.one_of(TEXTS), dice.one_of(TEXTS)]),
        11 => json!({"type": dice.one_of(TEXTS)}),
        12 => json!({"$ref": dice.one_of(TEXTS)}),
        13 => json!({dice.one_of(KEYS): dice.one_of(TEXTS), dice.one_of(KEYS): {}}),
        _ => json!(dice.one_of(TEXTS)),
    }
}

/// How many values a tree has, itself among them. Recursive: a tree that was read is no deeper than its reader allows.
fn count(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// The value of a number in the order of the text.
fn pick(tree: &Value, mut number: usize) -> &Value {
    if number == 0 {
        return tree;
    }
    number -= 1;
    let children: Vec<&Value> = match tree {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => return tree,
    };
    for child in children {
        let below = count(child);
        if number < below {
            return pick(child, number);
        }
        number -= below;
    }
    tree
}

fn pick_mut(tree: &mut Value, mut number: usize) -> &mut Value {
    if number == 0 || !(tree.is_array() || tree.is_object()) {
        return tree;
    }
    number -= 1;
    let children: Box<dyn Iterator<Item = &mut Value>> = match tree {
        Value::Array(items) => Box::new(items.iter_mut()),
        Value::Object(map) => Box::new(map.values_mut()),
        _ => Box::new(std::iter::empty()),
    };
    for child in children {
        let below = count(child);
        if number < below {
            return pick_mut(child, number);
        }
        number -= below;
    }
    unreachable!("the number is one of the tree")
}

/// Numbers out of a seed (SplitMix64), so that a run can be run again.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}
