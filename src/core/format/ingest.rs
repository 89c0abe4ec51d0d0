//! Reading uploaded tools: any common tool shape, detected per entry.
//!
//! One bad entry costs only itself: the answer is a [`Tool`] or a [`Rejected`] with the reason. Text is checked here
//! once (depth, duplicate keys, surrogates, NUL) and then kept byte-exact.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::core::json::{JsonLimits, check};
use crate::core::text::{clip, one_line};
use crate::core::tool::{DEFAULT_GROUP, Tool, ToolParts};

/// Longest name of an uploaded tool, in characters.
pub const MAX_NAME_CHARS: usize = 512;
/// Longest group of an uploaded tool, in characters.
pub const MAX_GROUP_CHARS: usize = 128;
/// Most aliases of a tool, and the longest, in characters.
pub const MAX_ALIASES: usize = 50;
const MAX_ALIAS_CHARS: usize = 200;

/// Bounds of one entry.
#[derive(Debug, Clone, Copy)]
pub struct EntryLimits {
    pub bytes: usize,
    pub depth: usize,
}

/// Why an entry was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// A stable code: what metrics count.
    pub reason: &'static str,
    /// JSON pointer inside the entry.
    pub pointer: String,
    /// The entry's name where it has one, on one line.
    pub name: Option<String>,
    pub detail: String,
}

impl Rejected {
    fn new(reason: &'static str, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason, pointer: pointer.into(), name: None, detail: detail.into() }
    }
}

/// The members of an object in the order they came, values as JSON text.
#[derive(Default)]
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A key, borrowed where it holds no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Members<'a> {
    fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        let value = self.0.remove(at).1;
        (value.get() != "null").then_some(value)
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    fn take_text(&mut self, key: &str, at: &str) -> Result<Option<Cow<'a, str>>, Rejected> {
        let Some(raw) = self.take(key) else { return Ok(None) };
        serde_json::from_str::<Key<'a>>(raw.get()).map(|Key(text)| Some(text)).map_err(|_| {
            Rejected::new("wrong_type", format!("{at}/{key}"), format!("`{key}` must be a string"))
        })
    }

    fn take_bool(&mut self, key: &str) -> Result<bool, Rejected> {
        let Some(raw) = self.take(key) else { return Ok(false) };
        serde_json::from_str(raw.get()).map_err(|_| {
            Rejected::new("wrong_type", format!("/{key}"), format!("`{key}` must be true or false"))
        })
    }

    fn take_object(&mut self, key: &str, at: &str) -> Result<Option<&'a RawValue>, Rejected> {
        match self.take(key) {
            Some(raw) if !raw.get().starts_with('{') => {
                Err(Rejected::new("bad_schema", format!("{at}/{key}"), format!("`{key}` must be an object")))
            }
            object => Ok(object),
        }
    }
}

/// Where a shape keeps its parts.
struct Shape {
    /// The member that holds the definition, empty when the entry is the definition.
    inner: &'static str,
    schema_key: &'static str,
}

/// Tells the shape of an entry by its keys (`tool-formats.md`, section 1.5).
fn shape_of(members: &Members<'_>) -> Result<Shape, Rejected> {
    const LATER: [&str; 4] = ["functionDeclarations", "parametersJsonSchema", "toolSpec", "tools"];
    // A provider's own tool (a web search, a computer) has no schema that another provider would understand.
    let kind = members.0.iter().find(|(key, _)| key == "type").map(|(_, value)| value.get());
    let ordinary = match kind {
        None | Some("null" | "\"function\"") => true,
        Some("\"custom\"") => members.has("input_schema"),
        Some(_) => members.has("parameters") || members.has("inputSchema"),
    };
    if !ordinary {
        let detail = format!(
            "a tool of type {} is a provider's own; only tools with a schema are kept",
            kind.unwrap_or_default()
        );
        return Err(Rejected::new("unsupported_format", "/type", detail));
    }
    if let Some(key) = LATER.iter().find(|key| members.has(key)) {
        let detail = format!("tools of the shape with `{key}` are not read yet");
        return Err(Rejected::new("unsupported_format", format!("/{key}"), detail));
    }
    Ok(if members.has("function") {
        Shape { inner: "function", schema_key: "parameters" }
    } else if members.has("input_schema") {
        Shape { inner: "", schema_key: "input_schema" }
    } else if members.has("inputSchema") {
        Shape { inner: "", schema_key: "inputSchema" }
    } else {
        Shape { inner: "", schema_key: "parameters" }
    })
}

/// Reads one uploaded entry.
pub fn read_entry(entry: &str, limits: EntryLimits) -> Result<Tool, Rejected> {
    if entry.len() > limits.bytes {
        let detail = format!("the tool has {} bytes; {} is the limit", entry.len(), limits.bytes);
        return Err(Rejected::new("too_large", "", detail));
    }
    check(entry.as_bytes(), JsonLimits::strict(limits.depth))
        .map_err(|fault| Rejected::new(fault.code.as_str(), fault.pointer, fault.detail))?;
    if !entry.trim_start().starts_with('{') {
        return Err(Rejected::new("wrong_type", "", "a tool must be an object"));
    }
    let malformed = |error: serde_json::Error| Rejected::new("malformed_json", "", error.to_string());
    let mut outer: Members<'_> = serde_json::from_str(entry).map_err(malformed)?;
    let shape = shape_of(&outer)?;
    let mut inner = Members::default();
    if !shape.inner.is_empty() {
        let function = outer.take_object(shape.inner, "")?;
        inner = serde_json::from_str(function.map_or("{}", RawValue::get)).map_err(malformed)?;
        outer.take("type");
    } else if outer.0.iter().any(|(key, value)| key == "type" && value.get() == "\"function\"") {
        outer.take("type");
    }
    read_parts(&mut outer, &mut inner, &shape).map_err(|mut rejected| {
        rejected.name = shown_name(entry);
        rejected
    })
}

/// The name in an entry for a message about it.
fn shown_name(entry: &str) -> Option<String> {
    let mut members: Members<'_> = serde_json::from_str(entry).ok()?;
    if let Some(function) = members.take("function") {
        members = serde_json::from_str(function.get()).ok()?;
    }
    let name = members.take_text("name", "").ok()??;
    Some(clip(&one_line(&name), 64).into_owned())
}

fn read_parts<'a>(outer: &mut Members<'a>, inner: &mut Members<'a>, shape: &Shape) -> Result<Tool, Rejected> {
    let at = if shape.inner.is_empty() { String::new() } else { format!("/{}", shape.inner) };
    let definition = if shape.inner.is_empty() { &mut *outer } else { &mut *inner };
    let name = definition.take_text("name", &at)?;
    let description = definition.take("description");
    if description.is_some_and(|raw| !raw.get().starts_with('"')) {
        return Err(Rejected::new(
            "wrong_type",
            format!("{at}/description"),
            "`description` must be a string",
        ));
    }
    let parameters = definition.take_object(shape.schema_key, &at)?;
    if shape.schema_key == "inputSchema"
        && parameters.is_some_and(|raw| {
            serde_json::from_str::<Members<'_>>(raw.get()).is_ok_and(|inner| inner.has("json"))
        })
    {
        let detail = "tools of Bedrock's shape (`inputSchema.json`) are not read yet";
        return Err(Rejected::new("unsupported_format", format!("{at}/inputSchema/json"), detail));
    }
    // An exported catalog names a qualified tool by its stored name and keeps the uploaded one beside it.
    let uploaded = outer.take_text("uploaded_name", "")?;
    outer.take("wire_name");
    let Some(name) = uploaded.or(name).filter(|name| !name.trim().is_empty()) else {
        return Err(Rejected::new(
            "missing_name",
            format!("{at}/name"),
            "a tool needs a `name` that is not blank",
        ));
    };
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        let detail = format!("`name` has more than {MAX_NAME_CHARS} characters");
        return Err(Rejected::new("name_too_long", format!("{at}/name"), detail));
    }
    let group = outer.take_text("group", "")?;
    let group =
        group.map(|group| Cow::<'a, str>::Owned(group.trim().to_owned())).filter(|group| !group.is_empty());
    if group.as_ref().is_some_and(|group| group.chars().nth(MAX_GROUP_CHARS).is_some()) {
        let detail = format!("`group` has more than {MAX_GROUP_CHARS} characters");
        return Err(Rejected::new("group_too_long", "/group", detail));
    }
    let mut extra = std::mem::take(&mut inner.0);
    let parts = ToolParts {
        group: group.unwrap_or(Cow::Borrowed(DEFAULT_GROUP)),
        name,
        description,
        parameters,
        annotations: outer.take_object("annotations", "")?,
        always_load: outer.take_bool("always_load")?,
        overrides: outer.take_bool("override")?,
        aliases: read_aliases(outer)?,
        extra: {
            if let Some(kept) = outer.take_object("extra", "")? {
                let kept: Members<'_> = serde_json::from_str(kept.get())
                    .map_err(|error| Rejected::new("malformed_json", "/extra", error.to_string()))?;
                extra.extend(kept.0);
            }
            extra.append(&mut outer.0);
            extra
        },
    };
    let tool = Tool::from_parts(&parts);
    tool.map_err(|error| Rejected::new("malformed_json", "", error.to_string()))
}

fn read_aliases(members: &mut Members<'_>) -> Result<Vec<String>, Rejected> {
    let Some(raw) = members.take("aliases") else { return Ok(Vec::new()) };
    let one_or_many = if raw.get().starts_with('"') {
        serde_json::from_str(raw.get()).map(|alias: String| vec![alias])
    } else {
        serde_json::from_str(raw.get())
    };
    let aliases: Vec<String> = one_or_many
        .map_err(|_| Rejected::new("wrong_type", "/aliases", "`aliases` must be a list of strings"))?;
    let too_long = |alias: &String| alias.chars().nth(MAX_ALIAS_CHARS).is_some();
    if aliases.len() > MAX_ALIASES || aliases.iter().any(too_long) {
        let detail = format!("at most {MAX_ALIASES} aliases of at most {MAX_ALIAS_CHARS} characters");
        return Err(Rejected::new("too_many_aliases", "/aliases", detail));
    }
    Ok(aliases.into_iter().filter(|alias| !alias.trim().is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const LIMITS: EntryLimits = EntryLimits { bytes: 256 * 1024, depth: 64 };

    fn reason(entry: &str) -> &'static str {
        read_entry(entry, LIMITS).map_or_else(|rejected| rejected.reason, |tool| panic!("{tool:?} was taken"))
    }

    #[test]
    fn all_shapes_read_to_the_same_tool() {
        let schema = r#"{"type":"object","properties":{"b":{},"a":{}}}"#;
        for entry in [
            format!(r#"{{"name":"t","description":"d","parameters":{schema},"group":"g"}}"#),
            format!(
                r#"{{"type":"function","function":{{"name":"t","description":"d","parameters":{schema}}},"group":"g"}}"#
            ),
            format!(
                r#"{{"type":"function","name":"t","description":"d","parameters":{schema},"group":"g"}}"#
            ),
            format!(r#"{{"name":"t","description":"d","input_schema":{schema},"group":"g"}}"#),
            format!(r#"{{"name":"t","description":"d","inputSchema":{schema},"group":"g"}}"#),
        ] {
            let tool = read_entry(&entry, LIMITS).unwrap();
            assert_eq!((tool.group(), tool.name(), tool.parameters()), ("g", "t", schema));
            assert_eq!(tool.digest(), read_entry(&entry, LIMITS).unwrap().digest());
        }
    }

    #[test]
    fn what_is_not_read_is_kept() {
        let entry = r#"{"type":"function","function":{"name":"t","strict":true},"_meta":{"a":1}}"#;
        let tool = read_entry(entry, LIMITS).unwrap();
        assert!(tool.body().ends_with(r#""extra":{"strict":true,"_meta":{"a":1}}}"#), "{tool:?}");
        let again = read_entry(tool.body(), LIMITS).unwrap();
        assert_eq!(again, tool, "a stored body is an upload of itself");
    }

    #[test]
    fn bad_entries_say_what_is_wrong() {
        assert_eq!(reason("[]"), "wrong_type");
        assert_eq!(reason("7"), "wrong_type");
        assert_eq!(reason("{}"), "missing_name");
        assert_eq!(reason(r#"{"name":" "}"#), "missing_name");
        assert_eq!(reason(r#"{"name":7}"#), "wrong_type");
        assert_eq!(reason(r#"{"name":"a","parameters":[]}"#), "bad_schema");
        assert_eq!(reason(r#"{"name":"a","description":{}}"#), "wrong_type");
        assert_eq!(reason(r#"{"name":"a","name":"b"}"#), "duplicate_key");
        assert_eq!(reason(r#"{"name":"a\u0000"}"#), "nul_character");
        assert_eq!(reason(r#"{"name":"a","description":"\ud800"}"#), "invalid_text");
        assert_eq!(reason(r#"{"toolSpec":{"name":"a"}}"#), "unsupported_format");
        assert_eq!(reason(r#"{"type":"web_search_20250305","name":"web_search"}"#), "unsupported_format");
        assert_eq!(reason(r#"{"type":"custom","name":"a","format":{}}"#), "unsupported_format");
        assert_eq!(reason(r#"{"name":"a","inputSchema":{"json":{}}}"#), "unsupported_format");
        assert_eq!(reason(&json!({"name": "x".repeat(513)}).to_string()), "name_too_long");
        assert_eq!(
            reason(&json!({"name": "x", "description": "y".repeat(300_000)}).to_string()),
            "too_large"
        );
        let deep = format!(r#"{{"name":"a","parameters":{}1{}}}"#, r#"{"a":"#.repeat(70), "}".repeat(70));
        assert_eq!(reason(&deep), "too_deep");
        let named = read_entry(r#"{"name":"who\n","parameters":3}"#, LIMITS).unwrap_err();
        assert_eq!((named.name.as_deref(), named.pointer.as_str()), (Some("who"), "/parameters"));
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in any::<String>(), name in any::<String>()) {
            let _ = read_entry(&text, LIMITS);
            let entry = json!({"name": name, "description": text}).to_string();
            if let Ok(tool) = read_entry(&entry, LIMITS) {
                prop_assert_eq!(tool.description(), text);
            }
        }
    }
}
