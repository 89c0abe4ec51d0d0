//! Provider formats, in and out: one file each, behind one trait.
//!
//! A format owns how a tool, a model's call and a result message look on the wire. It decides nothing: which tools
//! there are and what a call means is settled before. A new format is a new file and a line in [`Format`].

mod anthropic;
mod canonical;
pub mod ingest;
pub mod names;
mod openai_chat;

use std::borrow::Cow;

use serde_json::Value;

use super::digest::push_string;
use super::text::clip;
use super::tokens;
use super::tool::Tool;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Format {
    #[default]
    Canonical,
    OpenaiChat,
    Anthropic,
}

/// Why a text names no format that can be answered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatFault {
    Unknown,
    /// A name that is reserved for a format that is not there yet.
    Unsupported,
}

impl Format {
    pub const ALL: [Self; 3] = [Self::Canonical, Self::OpenaiChat, Self::Anthropic];

    pub fn parse(text: &str) -> Result<Self, FormatFault> {
        match text {
            "canonical" => Ok(Self::Canonical),
            "openai_chat" => Ok(Self::OpenaiChat),
            "anthropic" => Ok(Self::Anthropic),
            "openai_responses" | "gemini" | "bedrock_converse" | "mcp" => Err(FormatFault::Unsupported),
            _ => Err(FormatFault::Unknown),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Canonical => "canonical",
            Self::OpenaiChat => "openai_chat",
            Self::Anthropic => "anthropic",
        }
    }

    /// How this format looks on the wire.
    pub fn wire(self) -> &'static dyn WireFormat {
        match self {
            Self::Canonical => &canonical::Canonical,
            Self::OpenaiChat => &openai_chat::OpenaiChat,
            Self::Anthropic => &anthropic::Anthropic,
        }
    }
}

/// A tool as it goes out, in parts that are JSON text already.
#[derive(Debug, Clone, Copy)]
pub struct ToolText<'a> {
    pub wire_name: &'a str,
    /// A JSON string.
    pub description: &'a str,
    /// A JSON Schema.
    pub parameters: &'a str,
}

/// A model's call of a tool, in whatever shape it came.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    /// The id that the provider gave; empty when it gave none.
    pub id: String,
    pub name: String,
    /// As sent: an object, or a string that holds one, or something that models send instead.
    pub arguments: Option<Value>,
}

/// What a format has to say on the wire.
pub trait WireFormat: Sync {
    /// Longest description in an array, in characters, where the provider has a limit.
    fn description_limit(&self) -> Option<usize>;

    /// Appends a tool of the array.
    fn write_tool(&self, tool: ToolText<'_>, out: &mut String);

    /// Reads a call as the provider sends it. The error says what is missing.
    fn read_call(&self, call: &Value) -> Result<ModelCall, String>;

    /// The message that hands a result back to the model under the id and name that it used.
    fn result_message(&self, id: &str, name: &str, content: &str, is_error: bool) -> Value;
}

/// A tool of an array: its bytes, and whether its description had to be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedTool {
    pub json: String,
    pub clipped: bool,
}

/// Renders a tool of an array: the description within the format's limit.
pub fn render(format: Format, wire_name: &str, tool: &Tool) -> RenderedTool {
    let wire = format.wire();
    let description = tool.description_json();
    let short = wire.description_limit().and_then(|limit| {
        let too_long = description.len() > limit && tool.description().chars().nth(limit).is_some();
        too_long.then(|| {
            let mut json = String::new();
            push_string(&clip(&tool.description(), limit), &mut json);
            json
        })
    });
    let text = ToolText {
        wire_name,
        description: short.as_deref().unwrap_or(description),
        parameters: tool.parameters(),
    };
    let mut json = String::with_capacity(tool.body().len() + 64);
    wire.write_tool(text, &mut json);
    RenderedTool { json, clipped: short.is_some() }
}

/// Renders a tool with its whole description, for `describe`.
pub fn render_whole(format: Format, wire_name: &str, tool: &Tool) -> String {
    let mut json = String::with_capacity(tool.body().len() + 64);
    let text = ToolText { wire_name, description: tool.description_json(), parameters: tool.parameters() };
    format.wire().write_tool(text, &mut json);
    json
}

/// The schema that goes out for one that says nothing: providers want at least the type of the root
/// (`tool-formats.md`, section 1.4, row "no-arg tool").
fn object_schema(parameters: &str) -> Cow<'_, str> {
    let blank = parameters.trim_start_matches(['{', ' ', '\n', '\t', '\r']).trim_start() == "}";
    if blank { Cow::Borrowed(r#"{"type":"object","properties":{}}"#) } else { Cow::Borrowed(parameters) }
}

/// Exact o200k counts of a tool as it stands in an array, per format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCounts {
    counts: [u32; Format::ALL.len()],
}

impl TokenCounts {
    /// Counts a tool once, and derives the other formats from where their text differs.
    ///
    /// `openai_chat` wraps the canonical text, `anthropic` renames one key; where a format changes more (a cut or
    /// empty description, a blank schema), its text is counted on its own.
    pub fn of(wire_name: &str, tool: &Tool) -> Self {
        let canonical = render(Format::Canonical, wire_name, tool).json;
        let base = tokens::count(&canonical);
        let blank =
            tool.description_json().len() <= 2 || object_schema(tool.parameters()) != tool.parameters();
        let count = |format: Format| {
            let rendered = render(format, wire_name, tool);
            let derived = match format {
                Format::Canonical => Some(base),
                Format::OpenaiChat => Some(base + openai_chat::HEAD_TOKENS + tokens::growth(&canonical, "}")),
                Format::Anthropic => Some(base + anthropic::KEY_TOKENS),
            };
            match derived {
                Some(count) if !blank && !rendered.clipped => count,
                _ => tokens::count(&rendered.json),
            }
        };
        Self { counts: Format::ALL.map(|format| count(format) as u32) }
    }

    pub fn get(&self, format: Format) -> usize {
        self.counts[format as usize] as usize
    }

    /// The text that is stored with a tool: a count per format, in the order of [`Format::ALL`].
    pub fn to_text(&self) -> String {
        self.counts.map(|count| count.to_string()).join(",")
    }

    /// Reads the stored text; nothing when it is of another version.
    pub fn from_text(text: &str) -> Option<Self> {
        let read: Vec<u32> = text.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { counts: read.try_into().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(description: &str, parameters: &str) -> Tool {
        let body = format!(
            r#"{{"group":"g","name":"get_x","description":{},"parameters":{parameters}}}"#,
            json!(description)
        );
        Tool::from_body(body.into()).unwrap()
    }

    #[test]
    fn stored_counts_are_exact_in_every_format() {
        let long = "Reads one thing after the other. ".repeat(60);
        for description in ["Reads a thing.", "", "[draft] (x", "法令を検索します。", "ends: ", long.as_str()]
        {
            for parameters in [
                r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
                r#"{ "type": "object", "properties": { } }"#,
                "{\n  \"type\": \"object\"\n}",
                "{}",
            ] {
                let tool = tool(description, parameters);
                let counts = TokenCounts::of("get_x", &tool);
                for format in Format::ALL {
                    let exact = tokens::count(&render(format, "get_x", &tool).json);
                    assert_eq!(counts.get(format), exact, "{format:?} {description} {parameters}");
                }
                assert_eq!(TokenCounts::from_text(&counts.to_text()), Some(counts));
            }
        }
    }

    #[test]
    fn a_description_is_cut_only_where_the_format_has_a_limit() {
        let tool = tool(&"word ".repeat(400), "{}");
        assert!(render(Format::OpenaiChat, "get_x", &tool).clipped);
        assert!(!render(Format::Anthropic, "get_x", &tool).clipped);
        let whole = render_whole(Format::OpenaiChat, "get_x", &tool);
        assert!(whole.len() > 2_000);
        let json: Value = serde_json::from_str(&render(Format::OpenaiChat, "get_x", &tool).json).unwrap();
        assert!(json["function"]["description"].as_str().unwrap().chars().count() <= 1_024);
    }

    #[test]
    fn calls_read_back_what_each_provider_sends() {
        for (format, call) in [
            (Format::Canonical, json!({"id": "1", "name": "t", "arguments": {"a": 1}})),
            (
                Format::OpenaiChat,
                json!({"id": "1", "type": "function", "function": {"name": "t", "arguments": "{\"a\":1}"}}),
            ),
            (Format::Anthropic, json!({"type": "tool_use", "id": "1", "name": "t", "input": {"a": 1}})),
        ] {
            let read = format.wire().read_call(&call).unwrap();
            assert_eq!((read.id.as_str(), read.name.as_str()), ("1", "t"));
            assert!(read.arguments.is_some());
            assert!(format.wire().read_call(&json!({"id": "1"})).is_err());
            assert!(format.wire().read_call(&json!(7)).is_err());
            assert_eq!(Format::parse(format.as_str()), Ok(format));
        }
        assert_eq!(Format::parse("gemini"), Err(FormatFault::Unsupported));
        assert_eq!(Format::parse("yaml"), Err(FormatFault::Unknown));
    }
}
