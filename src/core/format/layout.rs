//! How a tool is written: one writer, and a layout per format that says where the parts stand.
//!
//! Raw parts are copied. Members that Toolrack keeps but does not read go out again where the format has them: those
//! that a provider invented only for tools that came in that provider's shape, because two providers may mean
//! different things by one name (`strict` asks for other schemas at OpenAI than at Anthropic).

use std::borrow::Cow;

use serde::Deserialize as _;
use serde_json::Value;

use super::members::Members;
use super::{How, Source, ToolText};
use crate::core::digest::push_string;
use crate::core::hidden::hidden_in_text;
use crate::core::json::push_compact;
use crate::core::mend::is_sound;
use crate::core::tool::Tool;

/// What goes out for a tool that takes no arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoArguments {
    /// Its schema as it is, also `{}`.
    AsIs,
    /// A schema that says at least that it is an object (`tool-formats.md`, section 1.4, row "no-arg tool").
    Object,
    /// No schema at all.
    LeftOut,
}

/// A member beside name, description and schema.
#[derive(Debug)]
pub struct Member {
    pub key: &'static str,
    /// Whose tools may have it; anyone's where nobody is named.
    pub of: Option<Source>,
    /// Whether a value is one that the provider takes: a wrong one would cost the whole array.
    pub fits: fn(&Value) -> bool,
    /// Says something about the tool's place in one array. An assembly makes another array, so only whole
    /// definitions have it.
    pub is_mark: bool,
}

impl Member {
    /// A member that only tools in the shape of `source` may have.
    pub(super) const fn of(source: Source, key: &'static str, fits: fn(&Value) -> bool) -> Self {
        Self { key, of: Some(source), fits, is_mark: false }
    }

    /// A member that any tool may have.
    pub(super) const fn of_any(key: &'static str, fits: fn(&Value) -> bool) -> Self {
        Self { key, of: None, fits, is_mark: false }
    }

    #[must_use]
    pub(super) const fn mark(mut self) -> Self {
        self.is_mark = true;
        self
    }
}

/// Where a format puts the parts of a tool, and what stands around the tools of an array.
#[derive(Debug)]
pub struct Layout {
    /// Text in front of the name.
    pub open: &'static str,
    /// Text in front of the schema, from the comma on.
    pub schema: &'static str,
    /// As `schema`, for a schema of OpenAPI's subset, where the provider has a place for one.
    pub openapi_schema: Option<&'static str>,
    /// Text that closes what holds the schema alone.
    pub schema_end: &'static str,
    /// Text behind the last member.
    pub close: &'static str,
    /// Whether an empty description is written.
    pub empty_description: bool,
    pub no_arguments: NoArguments,
    /// Kept members that the format has, in the order in which they are written.
    pub members: &'static [Member],
    /// Members that are written where a tool has none of its own.
    pub defaults: &'static [(&'static str, &'static str)],
    /// A member that stands in place of the schema, for tools that came with it.
    pub own_schema: Option<&'static str>,
    /// Longest description in an array, in characters, where the provider has a limit.
    pub description_limit: Option<usize>,
    /// o200k tokens that a tool costs here above its canonical text, up to the end of the schema; a test holds it
    /// against the vocabulary.
    pub more_tokens: usize,
    pub array: ArrayText,
}

/// What stands around the tools: the value of the provider's field.
#[derive(Debug)]
pub struct ArrayText {
    pub open: &'static str,
    pub close: &'static str,
    /// The value when there are no tools: providers refuse an empty array (`tool-formats.md`, section 1.3).
    pub empty: &'static str,
    /// o200k tokens of what stands around the tools besides the array itself.
    pub tokens: usize,
}

/// A plain array, left out when it would be empty.
pub(super) const PLAIN_ARRAY: ArrayText = ArrayText { open: "[", close: "]", empty: "null", tokens: 0 };

impl Layout {
    /// The kept members of a tool that go out in this format; those that say where the tool stands only in a `whole`
    /// definition.
    pub fn members_of<'t>(&self, tool: &'t Tool, whole: bool) -> Vec<(&'static str, &'t str)> {
        if self.members.is_empty() {
            return Vec::new();
        }
        let kept = tool.kept();
        if kept.is_empty() {
            return Vec::new();
        }
        let source = kept.extra_of.as_deref().and_then(Source::parse);
        let extra = kept.extra.and_then(|extra| {
            let mut reader = serde_json::Deserializer::from_str(extra.get());
            Members::deserialize(&mut reader).ok()
        });
        let raw_of = |member: &Member| {
            let raw = match (member.key, &extra) {
                ("annotations", _) => kept.annotations,
                (key, Some(extra)) => extra.get(key),
                _ => None,
            }?;
            let allowed = member.of.is_none_or(|of| Some(of) == source);
            let fits = || serde_json::from_str(raw.get()).is_ok_and(|value| (member.fits)(&value));
            // What nobody sees goes to no model.
            let shows_all = || hidden_in_text(raw.get()) == 0;
            (allowed && fits() && shows_all()).then(|| (member.key, raw.get()))
        };
        self.members.iter().filter(|member| whole || !member.is_mark).filter_map(raw_of).collect()
    }

    /// The schema as it goes out, if one does.
    pub fn schema_of<'t>(&self, tool: &ToolText<'t>) -> Option<Cow<'t, str>> {
        if self.own_schema.is_some_and(|own| tool.members.iter().any(|(key, _)| *key == own)) {
            return None;
        }
        match self.no_arguments {
            NoArguments::AsIs => Some(Cow::Borrowed(tool.parameters)),
            NoArguments::Object => Some(object_schema(tool.parameters)),
            NoArguments::LeftOut => {
                (!takes_no_arguments(tool.parameters)).then_some(Cow::Borrowed(tool.parameters))
            }
        }
    }

    /// Appends a tool of an array.
    pub fn write(&self, tool: &ToolText<'_>, out: &mut String) {
        self.write_as(tool, &How::PLAIN, out);
    }

    /// As [`Layout::write`], for a provider that wants some things otherwise.
    pub fn write_as(&self, tool: &ToolText<'_>, how: &How<'_>, out: &mut String) {
        out.push_str(self.open);
        push_string(tool.wire_name, out);
        let is_told = self.empty_description && !how.omits_empty_description;
        if is_told || tool.description != "\"\"" {
            out.push_str(",\"description\":");
            out.push_str(tool.description);
        }
        let openapi = self.openapi_schema.filter(|_| how.openapi);
        let left_out = openapi.is_some() && how.no_arguments;
        if let Some(schema) = self.schema_of(tool).filter(|_| !left_out) {
            out.push_str(openapi.unwrap_or(self.schema));
            push_compact(&schema, out);
            out.push_str(self.schema_end);
        }
        self.write_end(tool, out);
    }

    /// Appends what stands behind the schema and what closes it.
    pub(super) fn write_end(&self, tool: &ToolText<'_>, out: &mut String) {
        let mut push = |key: &str, value: &str| {
            out.push_str(",\"");
            out.push_str(key);
            out.push_str("\":");
            push_compact(value, out);
        };
        for (key, value) in &tool.members {
            push(key, value);
        }
        for (key, value) in self.defaults {
            if !tool.members.iter().any(|(own, _)| own == key) {
                push(key, value);
            }
        }
        out.push_str(self.close);
    }
}

/// Whether a schema that goes out as it came is an object that every client can compile.
pub(super) fn is_sound_object(schema: &Value) -> bool {
    schema.is_object() && is_sound(schema)
}

/// The schema that goes out for one that says nothing.
fn object_schema(parameters: &str) -> Cow<'_, str> {
    let blank = parameters.trim_start_matches(['{', ' ', '\n', '\t', '\r']).trim_start() == "}";
    if blank { Cow::Borrowed(r#"{"type":"object","properties":{}}"#) } else { Cow::Borrowed(parameters) }
}

/// Longest schema that is looked at for whether it takes arguments, in bytes.
const MAX_EMPTY_SCHEMA_BYTES: usize = 512;

/// Whether a schema is that of an object without properties.
fn takes_no_arguments(parameters: &str) -> bool {
    if parameters.len() > MAX_EMPTY_SCHEMA_BYTES {
        return false;
    }
    let Ok(Value::Object(schema)) = serde_json::from_str(parameters) else { return false };
    schema.iter().all(|(key, value)| match key.as_str() {
        "type" => value == "object",
        "properties" => value.as_object().is_some_and(serde_json::Map::is_empty),
        "required" => value.as_array().is_some_and(Vec::is_empty),
        "additionalProperties" => value == &Value::Bool(false),
        "$schema" | "title" | "description" => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_without_arguments_are_told_from_those_with_any() {
        for schema in [
            "{}",
            r#"{"type":"object"}"#,
            r#"{ "type": "object", "properties": {} }"#,
            r#"{"type":"object","properties":{},"required":[],"additionalProperties":false,"title":"T"}"#,
        ] {
            assert!(takes_no_arguments(schema), "{schema}");
        }
        for schema in [
            r#"{"type":"object","properties":{"a":{}}}"#,
            r#"{"type":"object","additionalProperties":true}"#,
            r#"{"type":"object","required":["a"]}"#,
            r#"{"type":"string"}"#,
            r##"{"$ref":"#/$defs/a"}"##,
            r#"{"anyOf":[]}"#,
        ] {
            assert!(!takes_no_arguments(schema), "{schema}");
        }
    }
}
