//! YAML as JSON values: one document, bounded in bytes, depth and nodes, aliases counted as what they stand for.
//!
//! Plain scalars are read by the core schema of YAML 1.2; `yes`, `no`, `on` and `off` stay texts, which the settings that are
//! switches understand. Knows nothing of what a document means.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

use super::text::Fault;

/// Longest YAML text, in bytes. Settings are a few hundred lines, and long tool lists are JSON.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Most nodes of a document, aliases counted as what they stand for.
const MAX_NODES: usize = 200_000;
/// Most bytes of all scalars, aliases counted as what they stand for.
const MAX_SCALAR_BYTES: usize = 2 * MAX_BYTES;
/// Most lists and mappings inside each other.
const MAX_DEPTH: usize = 64;

/// Reads a text that is one YAML document.
pub(super) fn read(text: &str) -> Result<Value, Fault> {
    if text.len() > MAX_BYTES {
        return Err(Fault::new(1, 1, format!("YAML of more than {MAX_BYTES} bytes is not read; send JSON")));
    }
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| Fault::at(error.marker(), error.info()))?;
        builder.take(event).map_err(|detail| Fault::at(&span.start, detail))?;
    }
    Ok(builder.root.map_or(Value::Null, |node| node.value))
}

impl Fault {
    fn at(place: &Marker, detail: impl Into<String>) -> Self {
        Self::new(place.line(), place.col() + 1, detail)
    }
}

/// A value with what it costs to have it once more.
#[derive(Debug, Clone, Default)]
struct Node {
    value: Value,
    nodes: usize,
    bytes: usize,
}

/// A list or mapping that is not closed yet.
struct Open {
    anchor: usize,
    node: Node,
    /// The key whose value comes next.
    key: Option<String>,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
    bytes: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), Cow<'static, str>> {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                Err("a second document begins; send each as a text of its own".into())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let kind = tag.as_deref().map(|tag| tag.core_suffix().unwrap_or("str"));
                // A key is what stands there, whatever it looks like.
                let value = if self.wants_key() {
                    Value::String(text.into_owned())
                } else {
                    scalar(text, style, kind)
                };
                let bytes = value.as_str().map_or(0, str::len);
                self.put(Node { value, nodes: 1, bytes }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(Value::Array(Vec::new()), anchor),
            Event::MappingStart(_, anchor, _) => self.begin(Value::Object(Map::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { node, anchor, .. }) => self.add(node, anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.put(node, 0),
                None => Err("an alias stands inside of what it names".into()),
            },
            _ => Ok(()),
        }
    }

    fn wants_key(&self) -> bool {
        self.open.last().is_some_and(|open| open.node.value.is_object() && open.key.is_none())
    }

    fn begin(&mut self, value: Value, anchor: usize) -> Result<(), Cow<'static, str>> {
        if self.wants_key() {
            return Err("a key must be a text".into());
        }
        if self.open.len() == MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} lists and mappings stand inside each other").into());
        }
        self.count(1, 0)?;
        self.open.push(Open { anchor, node: Node { value, nodes: 1, bytes: 0 }, key: None });
        Ok(())
    }

    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Cow<'static, str>> {
        self.count(node.nodes, node.bytes)?;
        self.add(node, anchor)
    }

    fn count(&mut self, nodes: usize, bytes: usize) -> Result<(), Cow<'static, str>> {
        self.nodes += nodes;
        self.bytes += bytes;
        if self.nodes > MAX_NODES || self.bytes > MAX_SCALAR_BYTES {
            return Err(
                format!("a document has at most {MAX_NODES} nodes and {MAX_SCALAR_BYTES} bytes").into()
            );
        }
        Ok(())
    }

    /// Adds a whole node to what stands around it.
    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Cow<'static, str>> {
        if anchor > 0 {
            // What is kept for aliases takes as much memory as they do.
            self.count(node.nodes, node.bytes)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.node.nodes += node.nodes;
        open.node.bytes += node.bytes;
        match (&mut open.node.value, open.key.take()) {
            (Value::Object(entries), None) => match node.value {
                Value::String(key) if entries.contains_key(&key) => {
                    return Err("a key stands twice in one mapping".into());
                }
                Value::String(key) => open.key = Some(key),
                _ => return Err("a key must be a text".into()),
            },
            (Value::Object(entries), Some(key)) => {
                entries.insert(key, node.value);
            }
            (Value::Array(items), _) => items.push(node.value),
            _ => {}
        }
        Ok(())
    }
}

/// What a scalar means. `kind` is the tag of the core schema, `str` for any other one.
fn scalar(text: Cow<'_, str>, style: ScalarStyle, kind: Option<&str>) -> Value {
    match kind {
        None if style == ScalarStyle::Plain => {}
        Some("int" | "float" | "bool" | "null") => {}
        _ => return Value::String(text.into_owned()),
    }
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(&text).map_or_else(|| Value::String(text.into_owned()), Value::Number),
    }
}

/// A number of the core schema that JSON can write.
fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    // `inf`, `nan` and the like are no numbers here, though Rust reads them.
    let is_number = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        || !digits.bytes().all(is_number)
    {
        return None;
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    if let Ok(whole) = plain.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = plain.parse::<u64>() {
        return Some(whole.into());
    }
    Number::from_f64(plain.parse().ok()?)
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok().map(Number::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fault(text: &str) -> Fault {
        read(text).expect_err(text)
    }

    #[test]
    fn plain_scalars_are_read_by_the_core_schema() {
        let text = "{a: 5, b: -2.5, c: 0x1F, d: true, e: ~, f: 'true', g: off, h: 1.2.3, i: .inf, j: !!str 7, k: !env HOME, \
                    l: +3, m: 1e3, n: '', o: , p: 18446744073709551615, q: 0o17}";
        let expected = json!({"a": 5, "b": -2.5, "c": 31, "d": true, "e": null, "f": "true", "g": "off", "h": "1.2.3", "i": ".inf",
            "j": "7", "k": "HOME", "l": 3, "m": 1000.0, "n": "", "o": null, "p": u64::MAX, "q": 15});
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(
            read("- a: 1\n  b:\n    - x\n    - |\n      two\n      lines\n").unwrap(),
            json!([{"a": 1, "b": ["x", "two\nlines\n"]}])
        );
        assert_eq!(read("# nothing\n").unwrap(), Value::Null);
        assert_eq!(read("5: five\ntrue: yes\n").unwrap(), json!({"5": "five", "true": "yes"}));
    }

    #[test]
    fn aliases_stand_for_their_anchor() {
        assert_eq!(
            read("a: &x {k: [1, 2]}\nb: *x\nc: &y z\nd: *y\n").unwrap(),
            json!({"a": {"k": [1, 2]}, "b": {"k": [1, 2]}, "c": "z", "d": "z"})
        );
    }

    #[test]
    fn aliases_cannot_make_much_of_little() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let last = level - 1;
            let row = vec![format!("*a{last}"); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{row}]\n"));
        }
        assert!(fault(&bomb).detail.contains("nodes"), "{:?}", fault(&bomb));
        let long = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1_000].join(", "));
        assert!(fault(&long).detail.contains("bytes"));
        assert!(fault("a: &a [*a]").detail.contains("alias"), "{:?}", fault("a: &a [*a]"));
    }

    #[test]
    fn what_is_no_plain_document_is_refused_at_its_place() {
        for text in
            ["a: [1", "a: b: c", "{a: 1, a: 2}", "? [a]\n: b\n", "a: 1\n---\nb: 2\n", "a: *b", "a: 'x"]
        {
            let fault = fault(text);
            assert!(fault.line > 0 && fault.column > 0 && !fault.detail.is_empty(), "{text}: {fault:?}");
        }
        assert_eq!((fault("a: 1\nb: [1, }\n").line, fault("x: 1\nx: 2\n").line), (2, 2));
        let deep = "[".repeat(100_000);
        assert!(!fault(&deep).detail.is_empty());
        let steps: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert!(!fault(&steps).detail.is_empty());
        assert!(fault(&"a".repeat(MAX_BYTES + 1)).detail.contains("send JSON"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_panic(text in "[a-c0-1:,\\-{}\\[\\]&*!|>%@'\"#?~ \n\t\\PC]{0,80}") {
            if let Ok(value) = read(&text) {
                prop_assert!(serde_json::to_string(&value).is_ok());
            }
        }
    }
}
