//! Which shape an uploaded entry has: where it keeps its parts, and whose it is (`tool-formats.md`, section 1.5).

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::Source;
use super::ingest::Rejected;
use super::members::{Elements, Members, Text};
use crate::core::json::{JsonLimits, check};
use crate::core::text::{clip, one_line};
use crate::core::warning::pointer_push;

/// Where a shape keeps its parts.
pub(super) struct Shape {
    /// The member that holds the definition, empty when the entry is the definition.
    pub(super) inner: &'static str,
    pub(super) schema: SchemaPlace,
    /// Whose members stand beside those that are read.
    pub(super) source: Option<Source>,
}

/// Where the schema stands in a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaPlace {
    Key(&'static str),
    /// `inputSchema.json`.
    Bedrock,
    /// `parameters` in the OpenAPI subset.
    OpenApi,
}

/// What is known of an entry because of what it stood in.
#[derive(Debug, Clone, Default)]
pub(super) struct Hint<'a> {
    pub(super) is_gemini: bool,
    pub(super) group: Option<Cow<'a, str>>,
}

/// Tells the shape of an entry by its keys.
pub(super) fn shape_of(members: &Members<'_>, hint: &Hint<'_>) -> Result<Shape, Rejected> {
    // A provider's own tool (a web search, a computer) has no schema that another provider would understand.
    let kind = members.get("type").map(RawValue::get);
    let has_schema = ["parameters", "inputSchema", "parametersJsonSchema", "toolSpec"];
    let ordinary = match kind {
        None | Some("null" | "\"function\"") => true,
        Some("\"custom\"") => members.has("input_schema"),
        Some(_) => has_schema.iter().any(|key| members.has(key)),
    };
    if !ordinary {
        let detail = format!(
            "a tool of type {} is a provider's own; only tools with a schema are kept",
            kind.unwrap_or_default()
        );
        return Err(Rejected::new("unsupported_format", "/type", detail));
    }
    if members.has("cachePoint") {
        let detail = "a cache point is no tool; an assembly tells where one belongs";
        return Err(Rejected::new("unsupported_format", "/cachePoint", detail));
    }
    for key in ["functionDeclarations", "function_declarations", "tools"] {
        if members.has(key) {
            let detail = format!("a list of tools (`{key}`) must not stand inside another or beside a name");
            return Err(Rejected::new("unsupported_format", format!("/{key}"), detail));
        }
    }
    let shape = |inner, schema, source| Shape { inner, schema, source };
    let is_flat_function = kind == Some("\"function\"");
    Ok(if members.has("toolSpec") {
        shape("toolSpec", SchemaPlace::Bedrock, Some(Source::Bedrock))
    } else if members.has("function") {
        shape("function", SchemaPlace::Key("parameters"), Some(Source::Openai))
    } else if members.has("input_schema") {
        shape("", SchemaPlace::Key("input_schema"), Some(Source::Anthropic))
    } else if holds_json_alone(members.get("inputSchema")) {
        shape("", SchemaPlace::Bedrock, Some(Source::Bedrock))
    } else if members.has("inputSchema") {
        shape("", SchemaPlace::Key("inputSchema"), None)
    } else if members.has("parametersJsonSchema") {
        shape("", SchemaPlace::Key("parametersJsonSchema"), Some(Source::Gemini))
    } else if members.has("parameters_json_schema") {
        shape("", SchemaPlace::Key("parameters_json_schema"), Some(Source::Gemini))
    } else if hint.is_gemini || has_openapi_type(members.get("parameters")) {
        shape("", SchemaPlace::OpenApi, Some(Source::Gemini))
    } else {
        shape("", SchemaPlace::Key("parameters"), is_flat_function.then_some(Source::Openai))
    })
}

/// Whether a Bedrock input schema is meant: an object whose `json` holds the schema.
fn holds_json_alone(schema: Option<&RawValue>) -> bool {
    schema
        .and_then(|schema| serde_json::from_str::<Members<'_>>(schema.get()).ok())
        .is_some_and(|members| members.has("json") && !members.has("type"))
}

/// Whether a schema's root is of a type in upper case, as only the OpenAPI subset of Gemini writes it.
pub(super) fn has_openapi_type(schema: Option<&RawValue>) -> bool {
    schema
        .filter(|schema| schema.get().contains("\"OBJECT\""))
        .and_then(|schema| serde_json::from_str::<Members<'_>>(schema.get()).ok())
        .is_some_and(|members| members.says("type", "OBJECT"))
}

/// An entry that holds a list of tools.
pub(super) struct Wrapper<'a> {
    /// The member with the list.
    pub(super) key: &'static str,
    pub(super) tools: Elements<'a>,
    pub(super) hint: Hint<'a>,
    /// What stood beside the list and was not read.
    pub(super) rest: Vec<Cow<'a, str>>,
}

/// Reads an entry as a list of tools: Gemini's `{functionDeclarations:[…]}`, a namespace of Responses, or the result of
/// `tools/list`. Nothing when it is none.
pub(super) fn read_wrapper(entry: &str, depth: usize, most: usize) -> Option<Result<Wrapper<'_>, Rejected>> {
    // Nearly all entries are single tools: they are not parsed for this.
    let key = ["functionDeclarations", "function_declarations", "tools"]
        .into_iter()
        .find(|key| entry.contains(&format!("\"{key}\"")))?;
    let mut members: Members<'_> = serde_json::from_str(entry).ok()?;
    let is_namespace = members.says("type", "namespace");
    if !members.has(key) || (key == "tools" && members.has("name") && !is_namespace) {
        return None;
    }
    let list = members.take(key)?;
    if let Some(rejected) = shell_fault(&members, key, depth) {
        return Some(Err(rejected));
    }
    let Ok(tools) = Elements::read(list, most) else {
        let detail = format!("`{key}` must be an array of tools");
        return Some(Err(Rejected::new("wrong_type", format!("/{key}"), detail)));
    };
    let own_group = if is_namespace { members.text("name") } else { None };
    let group = members.text("group").or(own_group);
    let known: &[&str] = match key {
        "tools" if is_namespace => &["type", "name", "description", "group"],
        // What a list result says about itself is about the list.
        "tools" => return Some(Ok(wrapper(key, tools, group, Vec::new()))),
        _ => &["group"],
    };
    let rest = members.0.into_iter().filter(|(key, value)| !known.contains(&&**key) && value.get() != "null");
    Some(Ok(wrapper(key, tools, group, rest.map(|(key, _)| key).collect())))
}

/// What is wrong with that which stands beside a list; its tools are checked one by one.
fn shell_fault(members: &Members<'_>, list: &str, depth: usize) -> Option<Rejected> {
    if members.has(list) {
        let detail = format!("`{list}` stands twice");
        return Some(Rejected::new("duplicate_key", format!("/{list}"), detail));
    }
    members.0.iter().find_map(|(key, value)| {
        let fault = check(value.get().as_bytes(), JsonLimits::strict(depth)).err()?;
        let mut pointer = String::new();
        pointer_push(&mut pointer, key);
        Some(Rejected::new(fault.code.as_str(), pointer + &fault.pointer, fault.detail))
    })
}

fn wrapper<'a>(
    key: &'static str,
    tools: Elements<'a>,
    group: Option<Cow<'a, str>>,
    rest: Vec<Cow<'a, str>>,
) -> Wrapper<'a> {
    Wrapper { key, tools, hint: Hint { is_gemini: key != "tools", group }, rest }
}

/// The name in an entry for a message about it.
pub(super) fn shown_name(entry: &str) -> Option<String> {
    let mut members: Members<'_> = serde_json::from_str(entry).ok()?;
    if let Some(inner) = members.take("function").or_else(|| members.take("toolSpec")) {
        members = serde_json::from_str(inner.get()).ok()?;
    }
    let Text(name) = serde_json::from_str(members.get("name")?.get()).ok()?;
    Some(clip(&one_line(&name), 64).into_owned())
}
