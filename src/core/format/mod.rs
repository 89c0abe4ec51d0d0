//! Provider formats, in and out: one file each, behind one trait.
//!
//! A format owns how a tool, a model's call and a result message look on the wire. It decides nothing: which tools
//! there are and what a call means is settled before. A new format is a new file and a line in [`Format`].

mod anthropic;
mod bedrock_converse;
mod canonical;
mod counts;
mod gemini;
pub mod ingest;
mod layout;
mod mcp;
pub(in crate::core) mod members;
pub mod names;
pub mod native;
mod openai_chat;
mod openai_responses;
mod openapi_schema;
mod shapes;
pub mod signature;
#[cfg(test)]
mod tests;

pub use counts::TokenCounts;
pub use layout::{ArrayText, Layout, Member, NoArguments};

use serde_json::Value;

use super::digest::push_string;
use super::hidden::hidden_in_text;
use super::text::{clip, visible};
use super::tool::Tool;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Format {
    #[default]
    Canonical,
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
    BedrockConverse,
    Mcp,
}

impl Format {
    /// In the order of the enum: stored token counts are indexed by it.
    pub const ALL: [Self; 7] = [
        Self::Canonical,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::BedrockConverse,
        Self::Mcp,
    ];

    /// The format of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Canonical => "canonical",
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::BedrockConverse => "bedrock_converse",
            Self::Mcp => "mcp",
        }
    }

    /// How this format looks on the wire.
    pub fn wire(self) -> &'static dyn WireFormat {
        match self {
            Self::Canonical => &canonical::Canonical,
            Self::OpenaiChat => &openai_chat::OpenaiChat,
            Self::OpenaiResponses => &openai_responses::OpenaiResponses,
            Self::Anthropic => &anthropic::Anthropic,
            Self::Gemini => &gemini::Gemini,
            Self::BedrockConverse => &bedrock_converse::BedrockConverse,
            Self::Mcp => &mcp::Mcp,
        }
    }

    /// Where this format puts the parts of a tool.
    pub fn layout(self) -> &'static Layout {
        self.wire().layout()
    }
}

/// A provider whose own members an uploaded tool may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Chat Completions and Responses.
    Openai,
    Anthropic,
    Gemini,
    Bedrock,
}

impl Source {
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Openai, Self::Anthropic, Self::Gemini, Self::Bedrock]
            .into_iter()
            .find(|source| source.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }
}

/// A tool as it goes out, in parts that are JSON text already.
#[derive(Debug, Clone)]
pub struct ToolText<'a> {
    pub wire_name: &'a str,
    /// A JSON string.
    pub description: &'a str,
    /// A JSON Schema.
    pub parameters: &'a str,
    /// Kept members of the format, see [`Layout::members_of`].
    pub members: Vec<(&'static str, &'a str)>,
}

/// A model's call of a tool, in whatever shape it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelCall {
    /// The id that the provider gave; empty when it gave none.
    pub id: String,
    pub name: String,
    /// The namespace that a Responses call names: there a tool is told by namespace and name.
    pub namespace: Option<String>,
    /// As sent: an object, or a string that holds one, or something that models send instead.
    pub arguments: Option<Value>,
    /// A call of a tool that takes free text: one of the agent's own, since every tool here has a schema.
    pub is_custom: bool,
    /// A call of the provider's own search, which the agent answers with tools.
    pub is_search: bool,
    /// The id of a JSON-RPC request, a number or a string, under which its result goes back.
    pub request_id: Option<Value>,
}

/// Why something is no call that can be handled.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadFault {
    /// A part of a message that was never meant as a call: no message to the model could answer it.
    NotACall(String),
    /// A call that lacks something: what was read of it, and what is missing.
    Broken { call: Box<ModelCall>, why: String },
}

impl ReadFault {
    fn broken(id: String, why: &str) -> Self {
        Self::Broken { call: Box::new(ModelCall { id, ..ModelCall::default() }), why: why.to_owned() }
    }
}

/// What a format has to say on the wire.
pub trait WireFormat: Sync {
    /// Where a tool's parts stand.
    fn layout(&self) -> &'static Layout;

    /// Reads a call as the provider sends it.
    fn read_call(&self, call: &Value) -> Result<ModelCall, ReadFault>;

    /// The message that hands a result back to the model under the id and name that it used.
    fn result_message(&self, call: &ModelCall, content: &str, is_error: bool) -> Value;
}

/// A non-empty string member.
fn text_at(object: &Value, key: &str) -> Option<String> {
    object.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Refuses blocks of text and thought, which stand beside calls in a message's content.
fn refuse_text(block: &Value) -> Result<(), ReadFault> {
    match block.get("type").and_then(Value::as_str) {
        Some(kind @ ("text" | "thinking" | "redacted_thinking")) => {
            Err(ReadFault::NotACall(format!("a block of type `{kind}` is no call")))
        }
        _ => Ok(()),
    }
}

/// A tool of an array: its bytes, and whether its description had to be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedTool {
    pub json: String,
    pub clipped: bool,
}

/// What a tool says about strict mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrictMark {
    /// What it came with, where its schema is its own.
    Own,
    /// That it is strict: its schema fits the provider's strict mode, which is wanted.
    Set,
    /// Nothing: its schema does not fit, or the request takes no more.
    Cleared,
}

/// What a provider wants otherwise than the format alone says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How<'a> {
    /// Stands in place of the tool's own schema.
    pub schema: Option<&'a str>,
    /// Longest description, in characters.
    pub description_limit: Option<usize>,
    pub omits_empty_description: bool,
    /// The schema is of OpenAPI's subset, where the format has a place for that.
    pub openapi: bool,
    pub strict: StrictMark,
    /// The schema names no argument.
    pub no_arguments: bool,
    /// All that the tool came with for this format, also marks that say where it stands in an array.
    pub whole: bool,
}

impl How<'_> {
    /// Nothing otherwise, and no limit on descriptions.
    pub const PLAIN: Self = Self {
        schema: None,
        description_limit: None,
        omits_empty_description: false,
        openapi: false,
        strict: StrictMark::Own,
        no_arguments: false,
        whole: false,
    };

    /// What a format says by itself.
    pub fn usual(format: Format) -> Self {
        Self { description_limit: format.layout().description_limit, ..Self::PLAIN }
    }
}

/// Renders a tool of an array: the description within the format's limit.
pub fn render(format: Format, wire_name: &str, tool: &Tool) -> RenderedTool {
    render_how(format, wire_name, tool, &How::usual(format))
}

/// Whether a tool comes to this format with a mark that it is strict.
pub fn says_strict(format: Format, tool: &Tool) -> bool {
    format.layout().members_of(tool, false).contains(&("strict", "true"))
}

/// Renders a tool of an array as its provider wants it.
pub fn render_how(format: Format, wire_name: &str, tool: &Tool, how: &How<'_>) -> RenderedTool {
    let layout = format.layout();
    let shown = shown_description(how.description_limit, tool);
    let mut text = ToolText {
        description: shown.as_ref().map_or(tool.description_json(), |shown| &shown.json),
        ..tool_text(layout, wire_name, tool, how.whole)
    };
    let another = how.schema.is_some() || how.openapi;
    if another {
        text.members.retain(|(key, _)| fits_any_schema(layout, key));
        text.parameters = how.schema.unwrap_or(text.parameters);
    }
    if another || how.strict != StrictMark::Own {
        text.members.retain(|(key, _)| *key != "strict");
    }
    if how.strict == StrictMark::Set && layout.members.iter().any(|member| member.key == "strict") {
        text.members.push(("strict", "true"));
    }
    let mut json = String::with_capacity(tool.body().len() + 64);
    layout.write_as(&text, how, &mut json);
    RenderedTool { json, clipped: shown.is_some_and(|shown| shown.is_cut) }
}

/// Whether a member that a tool brought holds beside another schema than its own. Examples of arguments are held against the
/// schema, and one that does not fit is refused.
fn fits_any_schema(layout: &Layout, key: &str) -> bool {
    !matches!(key, "strict" | "input_examples") && Some(key) != layout.own_schema
}

fn tool_text<'a>(layout: &Layout, wire_name: &'a str, tool: &'a Tool, whole: bool) -> ToolText<'a> {
    ToolText {
        wire_name,
        description: tool.description_json(),
        parameters: tool.parameters(),
        members: layout.members_of(tool, whole),
    }
}

/// A description that is not shown as it came.
struct ShownDescription {
    /// A JSON string.
    json: String,
    is_cut: bool,
}

/// The description where it has to be cut or holds hidden characters.
fn shown_description(limit: Option<usize>, tool: &Tool) -> Option<ShownDescription> {
    let hides = hidden_in_text(tool.description_json()) > 0;
    let may_be_long = limit.is_some_and(|limit| tool.description_json().len() > limit);
    if !hides && !may_be_long {
        return None;
    }
    let description = tool.description();
    let text = visible(&description);
    let limit = limit.unwrap_or(usize::MAX);
    let is_cut = may_be_long && text.chars().nth(limit).is_some();
    (hides || is_cut).then(|| {
        let mut json = String::new();
        push_string(&clip(&text, limit), &mut json);
        ShownDescription { json, is_cut }
    })
}
