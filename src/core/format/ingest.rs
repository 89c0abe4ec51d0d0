//! Reading uploaded tools: any common tool shape, detected per entry.
//!
//! One bad entry costs only itself: the answer is a [`Tool`] or a [`Rejected`] with the reason. Text is checked here
//! once (depth, duplicate keys, surrogates, NUL) and then kept byte-exact.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::Source;
use super::members::{Members, Text};
use super::openapi_schema::to_json_schema;
use super::shapes::{Hint, SchemaPlace, Shape, has_openapi_type, read_wrapper, shape_of, shown_name};
use crate::core::json::{JsonLimits, check};
use crate::core::tool::{DEFAULT_GROUP, NO_PARAMETERS, Tool, ToolParts};
use crate::core::warning::pointer_push;

/// Longest name of an uploaded tool, in characters.
pub const MAX_NAME_CHARS: usize = 512;
/// Longest group of an uploaded tool, in characters.
pub const MAX_GROUP_CHARS: usize = 128;
/// Most aliases of a tool, and the longest, in characters.
pub const MAX_ALIASES: usize = 50;
const MAX_ALIAS_CHARS: usize = 200;

/// Levels around a member that is kept but not read: the tool, and `extra` in it.
const LEVELS_AROUND_EXTRA: usize = 2;
/// Room for what a tool is shown with and does not keep: its stored name, its name on the wire, where it comes from. A
/// character of a stored name, which holds group and name, takes six bytes at most.
const SHOWN_BYTES: usize = 6 * (MAX_GROUP_CHARS + MAX_NAME_CHARS) + 1_024;

/// Bounds of one entry.
#[derive(Debug, Clone, Copy)]
pub struct EntryLimits {
    /// Of a tool as it is uploaded. One that a catalog shows may be longer by what storing and showing add to it.
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
    pub(super) fn new(reason: &'static str, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason, pointer: pointer.into(), name: None, detail: detail.into() }
    }
}

impl<'a> Members<'a> {
    fn take_text(&mut self, key: &str, at: &str) -> Result<Option<Cow<'a, str>>, Rejected> {
        let Some(raw) = self.take(key) else { return Ok(None) };
        serde_json::from_str::<Text<'a>>(raw.get()).map(|Text(text)| Some(text)).map_err(|_| {
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

/// Reads an uploaded entry: one tool, or a list of them (Gemini's `{functionDeclarations:[…]}`, a namespace of
/// Responses, the result of `tools/list`). `take` gets each with its JSON pointer inside the entry.
///
/// `room` bounds how many tools lists may hold, and goes down with each; what is beyond is told once.
pub fn read_entries(
    entry: &str,
    limits: EntryLimits,
    room: &mut usize,
    take: &mut impl FnMut(&str, Result<Tool, Rejected>),
) {
    let wrapper = match read_wrapper(entry, limits.depth, *room) {
        None => return take("", read_entry(entry, limits)),
        Some(Err(rejected)) => return take("", Err(rejected)),
        Some(Ok(wrapper)) => wrapper,
    };
    for (at, tool) in wrapper.tools.first.iter().enumerate() {
        let pointer = format!("/{}/{at}", wrapper.key);
        take(&pointer, read_tool(tool.get(), limits, &wrapper.hint));
    }
    *room -= wrapper.tools.first.len();
    if wrapper.tools.more {
        let detail =
            format!("a list goes on after {} tools; the rest was not read", wrapper.tools.first.len());
        take("", Err(Rejected::new("too_many", format!("/{}", wrapper.key), detail)));
    }
    for key in wrapper.rest {
        let detail = "beside a list of tools this is a provider's own, and not kept";
        take("", Err(Rejected::new("unsupported_format", place_of(&key), detail)));
    }
}

/// Reads an uploaded entry that is one tool.
pub fn read_entry(entry: &str, limits: EntryLimits) -> Result<Tool, Rejected> {
    read_tool(entry, limits, &Hint::default())
}

fn read_tool<'a>(entry: &'a str, limits: EntryLimits, hint: &Hint<'a>) -> Result<Tool, Rejected> {
    // A schema of Gemini's is stored beside its copy for all others.
    if entry.len() > 2 * limits.bytes + SHOWN_BYTES {
        return Err(too_large(entry, limits));
    }
    check(entry.as_bytes(), JsonLimits::strict(limits.depth))
        .map_err(|fault| Rejected::new(fault.code.as_str(), fault.pointer, fault.detail))?;
    if !entry.trim_start().starts_with('{') {
        return Err(Rejected::new("wrong_type", "", "a tool must be an object"));
    }
    let malformed = |error: serde_json::Error| Rejected::new("malformed_json", "", error.to_string());
    let mut outer: Members<'a> = serde_json::from_str(entry).map_err(malformed)?;
    let shape = shape_of(&outer, hint)?;
    let mut inner = Members::default();
    if !shape.inner.is_empty() {
        let definition = outer.take_object(shape.inner, "")?;
        inner = serde_json::from_str(definition.map_or("{}", RawValue::get)).map_err(malformed)?;
        outer.take("type");
    } else if outer.says("type", "function") {
        outer.take("type");
    }
    let is_shown = shape.inner.is_empty() && outer.has("group") && outer.has("parameters");
    if entry.len() > limits.bytes && !is_shown {
        return Err(too_large(entry, limits));
    }
    let tool = read_parts(&mut outer, &mut inner, &shape, hint, limits).map_err(|mut rejected| {
        rejected.name = shown_name(entry);
        rejected
    })?;
    // What was taken once is taken again: no upload is shorter than its own texts.
    let is_again = entry.len() <= tool.body().len() + SHOWN_BYTES && own_bytes(&tool) <= limits.bytes;
    if entry.len() > limits.bytes && !is_again {
        return Err(too_large(entry, limits));
    }
    Ok(tool)
}

fn too_large(entry: &str, limits: EntryLimits) -> Rejected {
    let detail = format!("the tool has {} bytes; {} is the limit", entry.len(), limits.bytes);
    Rejected::new("too_large", "", detail)
}

/// What of a stored tool came with its upload, in bytes: its texts without the names of members, and one schema.
fn own_bytes(tool: &Tool) -> usize {
    let kept = tool.kept();
    let extra: Members<'_> =
        kept.extra.and_then(|extra| serde_json::from_str(extra.get()).ok()).unwrap_or_default();
    let is_copy = extra.has("parameters") || tool.parameters() == NO_PARAMETERS;
    let schema = if is_copy { 0 } else { tool.parameters().len() };
    let members = extra.0.iter().map(|(key, value)| key.len() + value.get().len());
    tool.name().len()
        + tool.description().len()
        + schema
        + kept.annotations.map_or(0, |annotations| annotations.get().len())
        + tool.aliases().iter().map(String::len).sum::<usize>()
        + members.sum::<usize>()
}

fn read_parts<'a>(
    outer: &mut Members<'a>,
    inner: &mut Members<'a>,
    shape: &Shape,
    hint: &Hint<'a>,
    limits: EntryLimits,
) -> Result<Tool, Rejected> {
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
    let parameters = match shape.schema {
        SchemaPlace::Key(key) => definition.take_object(key, &at)?,
        SchemaPlace::OpenApi => definition.take_object("parameters", &at)?,
        SchemaPlace::Bedrock => {
            let holder = definition.take_object("inputSchema", &at)?;
            let mut holder: Members<'a> =
                holder.map_or(Ok(Members::default()), |raw| serde_json::from_str(raw.get())).map_err(
                    |error| Rejected::new("malformed_json", format!("{at}/inputSchema"), error.to_string()),
                )?;
            holder.take_object("json", &format!("{at}/inputSchema"))?
        }
    };
    // An exported catalog names a qualified tool by its stored name and keeps the uploaded one beside it.
    let uploaded = outer.take_text("uploaded_name", "")?;
    outer.take("wire_name");
    outer.0.retain(|(key, value)| key != "provenance" || !is_provenance(value));
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
    let group = outer.take_text("group", "")?.or_else(|| hint.group.clone());
    let group =
        group.map(|group| Cow::<'a, str>::Owned(group.trim().to_owned())).filter(|group| !group.is_empty());
    if group.as_ref().is_some_and(|group| group.chars().nth(MAX_GROUP_CHARS).is_some()) {
        let detail = format!("`group` has more than {MAX_GROUP_CHARS} characters");
        return Err(Rejected::new("group_too_long", "/group", detail));
    }
    let annotations = outer.take_object("annotations", "")?;
    let (always_load, overrides) = (outer.take_bool("always_load")?, outer.take_bool("override")?);
    let aliases = read_aliases(outer)?;
    let is_gemini = shape.schema == SchemaPlace::OpenApi;
    // A type in upper case tells Gemini's schemas from all others, so that none may be left in a stored tool.
    let converted = parameters
        .filter(|schema| is_gemini || has_openapi_type(Some(schema)))
        .and_then(|schema| RawValue::from_string(to_json_schema(schema.get())?).ok());
    let mut extra_of = shape.source.map(Source::as_str);
    if outer.text("extra_of").is_some_and(|source| Source::parse(&source).is_some()) {
        let stored = outer.take_text("extra_of", "")?;
        extra_of = stored.and_then(|source| Source::parse(&source)).map(Source::as_str);
    }
    let mut kept = Members::default();
    if let Some(stored) = outer.take_object("extra", "")? {
        kept = serde_json::from_str(stored.get())
            .map_err(|error| Rejected::new("malformed_json", "/extra", error.to_string()))?;
    }
    // The schema goes back to its provider as it came; everybody else gets the converted one.
    let own = parameters.filter(|_| is_gemini && !kept.has("parameters"));
    outer.0.extend(own.map(|schema| (Cow::Borrowed("parameters"), schema)));
    let extra = join_extra(&mut inner.0, &mut kept.0, &mut outer.0, limits)?;
    let parts = ToolParts {
        group: group.unwrap_or(Cow::Borrowed(DEFAULT_GROUP)),
        name,
        description,
        parameters: converted.as_deref().or(parameters),
        annotations,
        always_load,
        overrides,
        aliases,
        extra_of: extra_of.filter(|_| !extra.is_empty()),
        extra,
    };
    Tool::from_parts(&parts).map_err(|error| Rejected::new("malformed_json", "", error.to_string()))
}

/// Members of an entry that are kept but not read, in their order.
type Extra<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// Members of the definition, of an exported tool's `extra` and of the entry around the definition as one object. A stored tool is
/// an upload of itself, so what would be no such any more is refused here: one key with two values, and one level too many.
fn join_extra<'a>(
    inner: &mut Extra<'a>,
    kept: &mut Extra<'a>,
    outer: &mut Extra<'a>,
    limits: EntryLimits,
) -> Result<Extra<'a>, Rejected> {
    let depth = limits.depth.saturating_sub(LEVELS_AROUND_EXTRA);
    for (key, value) in outer.iter() {
        if let Err(fault) = check(value.get().as_bytes(), JsonLimits::strict(depth)) {
            return Err(Rejected::new(fault.code.as_str(), place_of(key) + &fault.pointer, fault.detail));
        }
    }
    let mut known: HashMap<Cow<'a, str>, &'a RawValue> = HashMap::new();
    let mut extra = Vec::with_capacity(inner.len() + kept.len() + outer.len());
    for (key, value) in inner.drain(..).chain(kept.drain(..)).chain(outer.drain(..)) {
        match known.get(&key) {
            None => {
                known.insert(key.clone(), value);
                extra.push((key, value));
            }
            Some(first) if is_same(first, value) => {}
            Some(_) => {
                let pointer = place_of(&key);
                let detail = "it stands in two places of the tool, with two values";
                return Err(Rejected::new("duplicate_key", pointer, detail));
            }
        }
    }
    Ok(extra)
}

fn place_of(key: &str) -> String {
    let mut pointer = String::new();
    pointer_push(&mut pointer, key);
    pointer
}

fn is_same(a: &RawValue, b: &RawValue) -> bool {
    let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get());
    a.get() == b.get() || matches!((read(a), read(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether a member is what an answer about one tool tells of where it comes from, rather than the uploader's own.
fn is_provenance(value: &RawValue) -> bool {
    serde_json::from_str::<Members<'_>>(value.get()).is_ok_and(|members| members.text("digest").is_some())
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
    use serde_json::{Value, json};

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
            format!(r#"{{"name":"t","description":"d","parametersJsonSchema":{schema},"group":"g"}}"#),
            format!(r#"{{"name":"t","description":"d","parameters_json_schema":{schema},"group":"g"}}"#),
            format!(r#"{{"name":"t","description":"d","inputSchema":{{"json":{schema}}},"group":"g"}}"#),
            format!(
                r#"{{"toolSpec":{{"name":"t","description":"d","inputSchema":{{"json":{schema}}}}},"group":"g"}}"#
            ),
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
        let end = r#""extra_of":"openai","extra":{"strict":true,"_meta":{"a":1}}}"#;
        assert!(tool.body().ends_with(end), "{tool:?}");
        let again = read_entry(tool.body(), LIMITS).unwrap();
        assert_eq!(again, tool, "a stored body is an upload of itself");
    }

    /// A tool as Gemini takes it, of so many bytes, most of which are its schema.
    fn gemini(bytes: usize) -> String {
        let tool = |text: String| {
            json!({"name": "t", "parameters": {"type": "OBJECT", "description": text}}).to_string()
        };
        tool("d".repeat(bytes - tool(String::new()).len()))
    }

    /// What an administrator exports can be imported, whatever was uploaded.
    #[test]
    fn a_stored_tool_is_an_upload_of_itself() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        for entry in [
            r#"{"type":"function","function":{"name":"t","strict":true},"strict":true}"#.to_owned(),
            r#"{"name":"t","x":{"a":1,"b":2},"extra":{"x":{"b":2,"a":1}}}"#.to_owned(),
            r#"{"name":"t","input_schema":{"type":"OBJECT","properties":{"a":{"type":"STRING"}}},"strict":true}"#.to_owned(),
            r#"{"toolSpec":{"name":"t","inputSchema":{"json":{"type":"OBJECT"}}}}"#.to_owned(),
            r#"{"name":"t","parameters":{"type":"OBJECT"},"extra_of":"gemini","extra":{"parameters":{"type":"OBJECT"}}}"#.to_owned(),
            format!(r#"{{"name":"t","x":{}}}"#, deep(62)),
            format!(r#"{{"function":{{"name":"t","x":{}}}}}"#, deep(62)),
            json!({"name": "t", "description": "d".repeat(256 * 1024 - 29)}).to_string(),
            gemini(256 * 1024),
        ] {
            let tool = read_entry(&entry, LIMITS).unwrap();
            let again = read_entry(tool.body(), LIMITS);
            assert_eq!(again.as_ref(), Ok(&tool), "{}", &entry[..entry.len().min(200)]);
        }
        assert_eq!(reason(r#"{"function":{"name":"t","strict":true},"strict":false}"#), "duplicate_key");
        assert_eq!(reason(r#"{"name":"t","x":1,"extra":{"x":2}}"#), "duplicate_key");
        assert_eq!(reason(&format!(r#"{{"name":"t","x":{}}}"#, deep(63))), "too_deep");
        assert_eq!(
            reason(&json!({"name": "t", "description": "d".repeat(256 * 1024 - 28)}).to_string()),
            "too_large"
        );
        let shown = |text: usize| json!({"group": "other", "name": "t", "description": "d".repeat(text), "parameters": {}});
        assert_eq!(reason(&shown(256 * 1024).to_string()), "too_large");
        assert_eq!(reason(&format!("{}{}", shown(200 * 1024), " ".repeat(100 * 1024))), "too_large");
        assert_eq!(reason(&gemini(256 * 1024 + 1)), "too_large");
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
        assert_eq!(reason(r#"{"toolSpec":{"description":"a"}}"#), "missing_name");
        assert_eq!(reason(r#"{"toolSpec":[]}"#), "bad_schema");
        assert_eq!(reason(r#"{"cachePoint":{"type":"default"}}"#), "unsupported_format");
        assert_eq!(reason(r#"{"name":"a","tools":[]}"#), "unsupported_format");
        assert_eq!(reason(r#"{"type":"web_search_20250305","name":"web_search"}"#), "unsupported_format");
        assert_eq!(reason(r#"{"type":"custom","name":"a","format":{}}"#), "unsupported_format");
        assert_eq!(reason(r#"{"name":"a","inputSchema":{"json":[]}}"#), "bad_schema");
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

    /// Pointers with the group and name of each tool, or with why there is none.
    fn read_list(entry: &Value, mut room: usize) -> Vec<String> {
        let mut read = Vec::new();
        read_entries(&entry.to_string(), LIMITS, &mut room, &mut |pointer, tool| match tool {
            Ok(tool) => read.push(format!("{pointer} {}/{}", tool.group(), tool.name())),
            Err(rejected) => read.push(format!("{pointer}{} {}", rejected.pointer, rejected.reason)),
        });
        read
    }

    #[test]
    fn an_entry_may_be_a_list_of_tools() {
        let gemini = json!({"group": "g", "functionDeclarations": [
            {"name": "a", "parameters": {"type": "OBJECT", "properties": {"x": {"type": "STRING"}}}},
            {"name": "b", "parametersJsonSchema": {"type": "object"}, "group": "own"}, {"name": "c"}, 7,
        ], "googleSearch": {}});
        let all = [
            "/functionDeclarations/0 g/a",
            "/functionDeclarations/1 own/b",
            "/functionDeclarations/2 g/c",
            "/functionDeclarations/3 wrong_type",
            "/googleSearch unsupported_format",
        ];
        assert_eq!(read_list(&gemini, 99), all);
        assert_eq!(
            read_list(&gemini, 1),
            [
                "/functionDeclarations/0 g/a",
                "/functionDeclarations too_many",
                "/googleSearch unsupported_format"
            ]
        );
        let namespace = json!({"type": "namespace", "name": "crm", "description": "Customers.", "tools": [
            {"type": "function", "name": "a", "parameters": {}, "defer_loading": true}, {"type": "custom", "name": "b"}]});
        assert_eq!(read_list(&namespace, 99), ["/tools/0 crm/a", "/tools/1/type unsupported_format"]);
        let listed = json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "x"});
        assert_eq!(read_list(&listed, 99), ["/tools/0 other/a"]);
        let config = json!({"tools": [{"toolSpec": {"name": "a"}}, {"cachePoint": {"type": "default"}}]});
        assert_eq!(read_list(&config, 99), ["/tools/0 other/a", "/tools/1/cachePoint unsupported_format"]);
        for (entry, read) in [
            (json!({"functionDeclarations": {}}), "/functionDeclarations wrong_type"),
            (json!({"name": "a", "tools": [{"name": "b"}]}), "/tools unsupported_format"),
            (json!({"tools": [{"tools": [{"name": "b"}]}]}), "/tools/0/tools unsupported_format"),
            (json!({"tools": [{"name": "b"}], "group": "a\u{0}"}), "/group nul_character"),
            (json!({"name": "tools", "parameters": {"properties": {"tools": {}}}}), " other/tools"),
        ] {
            assert_eq!(read_list(&entry, 99), [read], "{entry}");
        }
        assert_eq!(read_list(&json!({"functionDeclarations": []}), 99), [""; 0]);
    }

    #[test]
    fn geminis_own_schema_is_kept_beside_the_json_schema() {
        let own = r#"{"type":"OBJECT","properties":{"z":{"type":"STRING"},"a":{"type":"INTEGER"}}}"#;
        let tool = read_entry(&format!(r#"{{"name":"t","parameters":{own}}}"#), LIMITS).unwrap();
        assert_eq!(
            tool.parameters(),
            r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}}}"#
        );
        assert!(tool.body().ends_with(&format!(r#""extra_of":"gemini","extra":{{"parameters":{own}}}}}"#)));
    }

    proptest! {
        #[test]
        fn lists_never_panic(text in any::<String>(), key in "functionDeclarations|tools|group|name|type") {
            let value = serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text));
            for list in [json!([value]), value.clone()] {
                let mut entry = json!({"tools": list.clone(), "functionDeclarations": list});
                entry[&key] = value.clone();
                read_list(&entry, 3);
            }
        }

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
