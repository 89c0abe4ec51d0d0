//! The strict look at JSON text: one pass that refuses what serde would let through or read in two ways.
//!
//! Owns the rules for text at the door: UTF-8 only, no duplicate keys, bounded depth, no half surrogate pairs,
//! no U+0000. Builds no values, and must not know what the text means.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::core::warning::pointer_push;

/// Objects with more keys than this are checked for duplicates with a hash set, smaller ones by looking along.
const LINEAR_KEYS: usize = 16;

/// Longest part of one key that a fault repeats, in characters.
const SHOWN_KEY_CHARS: usize = 200;

/// What [`check`] lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// How many arrays and objects may stand inside each other; `{}` is 1. More than 127 is never let through,
    /// because serde_json itself stops there.
    pub depth: usize,
    /// Whether U+0000 may occur in keys and strings.
    pub allow_nul: bool,
    /// Keys of the outermost object whose values are only checked for syntax, for a reader that checks (and sets
    /// aside) each part of them alone.
    pub opaque: &'static [&'static str],
}

impl JsonLimits {
    /// The strict limits: no U+0000, nothing opaque.
    pub const fn strict(depth: usize) -> Self {
        Self { depth, allow_nul: false, opaque: &[] }
    }
}

/// What kind of fault a text has. The names are the codes of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultCode {
    /// Not JSON.
    MalformedJson,
    /// An object has the same key twice.
    DuplicateKey,
    /// More nesting than allowed.
    TooDeep,
    /// Half of a surrogate pair in an escape, which no Unicode text can hold.
    InvalidText,
    /// U+0000 in a key or string.
    NulCharacter,
    /// The bytes are not UTF-8.
    InvalidUtf8,
}

impl FaultCode {
    /// The code as the API writes it, for example `duplicate_key`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MalformedJson => "malformed_json",
            Self::DuplicateKey => "duplicate_key",
            Self::TooDeep => "too_deep",
            Self::InvalidText => "invalid_text",
            Self::NulCharacter => "nul_character",
            Self::InvalidUtf8 => "invalid_utf8",
        }
    }
}

/// The first fault of a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct JsonFault {
    /// JSON pointer (RFC 6901) to the value with the fault, or to the closest value around it. Keys longer than
    /// 200 characters are cut.
    pub pointer: String,
    pub code: FaultCode,
    /// What is wrong, in a sentence; with line and column (in bytes, both from 1) where the syntax is broken.
    pub detail: String,
}

/// Checks one JSON text and gives it back as UTF-8.
///
/// The work is linear in the length of the text and the stack bounded by the depth limit.
pub fn check(text: &[u8], limits: JsonLimits) -> Result<&str, JsonFault> {
    let text = std::str::from_utf8(text).map_err(|error| not_utf8(text, error.valid_up_to()))?;
    let mut walk = Walk { limits, keys: Vec::new(), fault: None, trail: Vec::new() };
    let mut reader = serde_json::Deserializer::from_str(text);
    let outcome = Node { walk: &mut walk, depth: 0 }.deserialize(&mut reader).and_then(|()| reader.end());
    match outcome {
        Ok(()) => Ok(text),
        Err(error) => Err(walk.into_fault(text, &error)),
    }
}

/// One step of a path, told only once something is wrong.
enum Step {
    Key(String),
    Index(usize),
}

struct Walk<'de> {
    limits: JsonLimits,
    /// The keys seen so far of every open object, innermost last.
    keys: Vec<Cow<'de, str>>,
    /// The fault that made the walk stop, unless serde_json found it.
    fault: Option<(FaultCode, String)>,
    /// The path of the fault, innermost step first; filled while the walk unwinds.
    trail: Vec<Step>,
}

impl Walk<'_> {
    fn stop<E: serde::de::Error>(&mut self, code: FaultCode, detail: String) -> E {
        self.fault = Some((code, detail));
        E::custom("fault")
    }

    fn nul<E: serde::de::Error>(&mut self) -> E {
        self.stop(
            FaultCode::NulCharacter,
            "the character U+0000 is not allowed in keys and strings".to_owned(),
        )
    }

    fn into_fault(self, text: &str, error: &serde_json::Error) -> JsonFault {
        let mut pointer = String::new();
        for step in self.trail.iter().rev() {
            match step {
                Step::Key(key) => pointer_push(&mut pointer, key),
                Step::Index(index) => pointer_push(&mut pointer, &index.to_string()),
            }
        }
        let (code, detail) = self.fault.unwrap_or_else(|| syntax_fault(text, error, self.limits));
        JsonFault { pointer, code, detail }
    }
}

/// Tells apart what serde_json reports; it has no public codes, so its texts have to do (a test holds them).
fn syntax_fault(text: &str, error: &serde_json::Error, limits: JsonLimits) -> (FaultCode, String) {
    let message = error.to_string();
    if message.starts_with("recursion limit exceeded") {
        return (FaultCode::TooDeep, too_deep(limits.depth));
    }
    if message.starts_with("lone leading surrogate") || message.starts_with("unexpected end of hex escape") {
        let detail = format!("a \\u escape holds half of a surrogate pair alone at {}", place(text, error));
        return (FaultCode::InvalidText, detail);
    }
    let message = message.rfind(" at line ").map_or(message.as_str(), |end| &message[..end]);
    let detail = if text.starts_with('\u{feff}') {
        "a byte order mark stands before the JSON text at line 1 column 1".to_owned()
    } else if text.trim_ascii().is_empty() {
        "there is no JSON text (line 1 column 1)".to_owned()
    } else {
        format!("{message} at {}", place(text, error))
    };
    (FaultCode::MalformedJson, detail)
}

/// Where serde_json stopped. It counts a line break that it has just read as column 0 of the next line, which no
/// editor shows; that is the end of the line before.
fn place(text: &str, error: &serde_json::Error) -> String {
    let (mut line, mut column) = (error.line(), error.column());
    if column == 0 && line > 1 {
        line -= 1;
        column = text.split('\n').nth(line - 1).map_or(0, str::len) + 1;
    }
    format!("line {line} column {column}")
}

fn not_utf8(text: &[u8], offset: usize) -> JsonFault {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    JsonFault {
        pointer: String::new(),
        code: FaultCode::InvalidUtf8,
        detail: format!("the bytes are not UTF-8 at line {line} column {column}"),
    }
}

fn too_deep(depth: usize) -> String {
    format!("more than {depth} arrays and objects stand inside each other")
}

fn shown(key: &str) -> String {
    match key.char_indices().nth(SHOWN_KEY_CHARS) {
        Some((end, _)) => format!("{}…", &key[..end]),
        None => key.to_owned(),
    }
}

/// Any JSON value; `depth` is the number of containers around it.
struct Node<'w, 'de> {
    walk: &'w mut Walk<'de>,
    depth: usize,
}

impl Node<'_, '_> {
    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        if self.depth > self.walk.limits.depth {
            let detail = too_deep(self.walk.limits.depth);
            return Err(self.walk.stop(FaultCode::TooDeep, detail));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    /// Text without escapes, where U+0000 cannot stand: JSON allows it as an escape only.
    fn visit_borrowed_str<E>(self, _: &'de str) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if !self.walk.limits.allow_nul && text.as_bytes().contains(&0) {
            return Err(self.walk.nul());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.enter()?;
        let mut index = 0;
        loop {
            match items.next_element_seed(Node { walk: self.walk, depth: self.depth }) {
                Ok(Some(())) => index += 1,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.walk.trail.push(Step::Index(index));
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.enter()?;
        let start = self.walk.keys.len();
        let mut many: Option<HashSet<Cow<'de, str>>> = None;
        while let Some(key) = entries.next_key_seed(Key { walk: self.walk })? {
            let seen = match &many {
                Some(set) => set.contains(&key),
                None => self.walk.keys[start..].contains(&key),
            };
            if seen {
                let key = shown(&key);
                let detail = format!("the key {key:?} occurs twice in one object");
                self.walk.trail.push(Step::Key(key));
                return Err(self.walk.stop(FaultCode::DuplicateKey, detail));
            }
            let outcome = if self.depth == 1 && self.walk.limits.opaque.contains(&&*key) {
                entries.next_value::<IgnoredAny>().map(|_| ())
            } else {
                entries.next_value_seed(Node { walk: self.walk, depth: self.depth })
            };
            if let Err(error) = outcome {
                self.walk.trail.push(Step::Key(shown(&key)));
                return Err(error);
            }
            match &mut many {
                Some(set) => {
                    set.insert(key);
                }
                None => {
                    self.walk.keys.push(key);
                    if self.walk.keys.len() - start > LINEAR_KEYS {
                        many = Some(self.walk.keys.drain(start..).collect());
                    }
                }
            }
        }
        self.walk.keys.truncate(start);
        Ok(())
    }
}

/// A key of an object, without its escapes.
struct Key<'w, 'de> {
    walk: &'w mut Walk<'de>,
}

impl<'de> DeserializeSeed<'de> for Key<'_, 'de> {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key<'_, 'de> {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        if !self.walk.limits.allow_nul && key.as_bytes().contains(&0) {
            return Err(self.walk.nul());
        }
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// Appends JSON text without the white space between its parts: what an uploader's editor put there is no content, and costs
/// tokens.
pub fn push_compact(json: &str, out: &mut String) {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
    let (mut in_text, mut escaped, mut start) = (false, false, 0);
    for (at, byte) in json.bytes().enumerate() {
        if in_text {
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b'"' {
            in_text = true;
        } else if is_space(byte) {
            out.push_str(&json[start..at]);
            start = at + 1;
        }
    }
    out.push_str(&json[start..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fault(text: &str) -> (FaultCode, String) {
        let fault = check(text.as_bytes(), JsonLimits::strict(64)).expect_err(text);
        (fault.code, fault.pointer)
    }

    #[test]
    fn plain_json_passes_unchanged() {
        for text in
            ["{}", " [1, -2.5e3, \"\\ud83d\\ude00\", null, true] ", "\"a\"", r#"{"a":{"a":1},"b":{"a":2}}"#]
        {
            assert_eq!(check(text.as_bytes(), JsonLimits::strict(64)), Ok(text));
        }
    }

    #[test]
    fn syntax_faults_tell_line_and_column() {
        let faulty = check(b"{\n  \"a\": 1,\n  \"b\": tru\n}", JsonLimits::strict(64)).expect_err("broken");
        assert_eq!((faulty.code, &*faulty.pointer), (FaultCode::MalformedJson, "/b"));
        assert!(faulty.detail.ends_with("at line 3 column 11"), "{}", faulty.detail);
        for text in
            ["", "  ", "{\"a\":1", "[1,]", "[NaN]", "[1e999]", "{} {}", "\u{feff}{}", "[\"\t\"]", "[01]"]
        {
            assert_eq!(fault(text).0, FaultCode::MalformedJson, "{text}");
        }
    }

    #[test]
    fn duplicate_keys_are_found_at_any_depth_and_size() {
        assert_eq!(
            fault(r#"{"t":[{},{"a/b":1,"a\u002fb":2}]}"#),
            (FaultCode::DuplicateKey, "/t/1/a~1b".into())
        );
        let keys: Vec<String> = (0..100).map(|n| format!("\"k{n}\":{{\"k{n}\":0}}")).collect();
        let wide = format!("{{{}}}", keys.join(","));
        assert!(check(wide.as_bytes(), JsonLimits::strict(64)).is_ok());
        assert_eq!(fault(&wide.replace("\"k99\":{", "\"k3\":{")), (FaultCode::DuplicateKey, "/k3".into()));
    }

    #[test]
    fn depth_is_counted_in_containers_and_bounded_by_serde_too() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check(nested(64).as_bytes(), JsonLimits::strict(64)).is_ok());
        assert_eq!(fault(&nested(65)), (FaultCode::TooDeep, "/0".repeat(64)));
        for depth in [128, 1_000_000] {
            let faulty = check(nested(depth).as_bytes(), JsonLimits::strict(usize::MAX)).expect_err("deep");
            assert_eq!(faulty.code, FaultCode::TooDeep);
        }
    }

    #[test]
    fn half_surrogates_and_nul_are_refused_in_keys_and_strings() {
        for half in ["\\ud800", "\\udc00", "\\ud800x", "\\ud800\\n", "\\ud800\\ud800"] {
            assert_eq!(fault(&format!(r#"{{"a":["{half}"]}}"#)), (FaultCode::InvalidText, "/a/0".into()));
            assert_eq!(fault(&format!(r#"{{"a":{{"{half}":1}}}}"#)), (FaultCode::InvalidText, "/a".into()));
        }
        assert_eq!(fault(r#"{"a":["x\u0000"]}"#), (FaultCode::NulCharacter, "/a/0".into()));
        assert_eq!(fault(r#"[{"\u0000":1}]"#), (FaultCode::NulCharacter, "/0".into()));
        let limits = JsonLimits { allow_nul: true, ..JsonLimits::strict(64) };
        assert!(check(br#"{"a":"\u0000"}"#, limits).is_ok());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_placed() {
        let faulty = check(b"{\n\"a\":\"\xff\"}", JsonLimits::strict(64)).expect_err("not UTF-8");
        assert_eq!(faulty.code, FaultCode::InvalidUtf8);
        assert!(faulty.detail.contains("line 2 column 6"), "{}", faulty.detail);
    }

    #[test]
    fn opaque_values_are_checked_for_syntax_only() {
        let limits = JsonLimits { opaque: &["tools"], ..JsonLimits::strict(4) };
        assert!(check(br#"{"tools":[[[[[[{"a":"\ud800","a":1}]]]]]]}"#, limits).is_ok());
        assert!(check(br#"{"tools":[}"#, limits).is_err());
        assert!(check(br#"{"x":{"tools":{"a":1,"a":2}}}"#, limits).is_err());
    }

    proptest! {
        #[test]
        fn what_passes_is_json_and_what_is_broken_does_not_panic(text in "[\\[\\]{}:,\"\\\\a-u0-9. \\PC]{0,60}") {
            if check(text.as_bytes(), JsonLimits::strict(64)).is_ok() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
            }
        }

        #[test]
        fn objects_without_duplicates_pass(keys in proptest::collection::hash_set("[^\u{0}]{0,6}", 0..60)) {
            let object: serde_json::Map<_, _> = keys.into_iter().map(|key| (key, 1.into())).collect();
            let text = serde_json::Value::Object(object).to_string();
            prop_assert!(check(text.as_bytes(), JsonLimits::strict(64)).is_ok());
        }
    }

    #[test]
    fn white_space_goes_and_everything_else_stays() {
        let compact = |text: &str| {
            let mut out = String::new();
            push_compact(text, &mut out);
            out
        };
        assert_eq!(
            compact("{ \"a b\" :\n\t[ 1.50 , \"x \\\" { y\\\\\" , true ] , \"č\" : null }\r\n"),
            "{\"a b\":[1.50,\"x \\\" { y\\\\\",true],\"č\":null}"
        );
        for value in [serde_json::json!({"a": [" \\ ", {"b\n": "\""}]}), serde_json::json!(" ")] {
            assert_eq!(compact(&serde_json::to_string_pretty(&value).unwrap()), value.to_string());
        }
    }
}
