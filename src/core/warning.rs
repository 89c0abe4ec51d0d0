//! Warnings: what the service changed, left out or could not use, told in the answer.

use serde::Serialize;
use utoipa::ToSchema;

use super::text::{clip, one_line};

/// Every warning code with what it means, for the page that explains them.
pub const WARNINGS: &[(&str, &str)] = &[
    ("ambiguous_core", "A name in `core` means several tools; all of them are core."),
    (
        "arguments_unchecked",
        "The tool's schema cannot be used, or checking it would cost too much: the arguments were passed on as they are.",
    ),
    (
        "catalog_clash",
        "User and project have a tool of the same stored name; the warning tells whose definition is used.",
    ),
    ("clamped", "A number was out of range; the nearest one in range is used."),
    ("core_not_found", "An entry of `core` means no tool of these catalogs."),
    ("core_tool", "A core tool is always in the array and takes no pin."),
    (
        "database_away",
        "The database does not answer: configs, catalogs and sessions are as this process last read them, and what was found does not enter the array.",
    ),
    (
        "description_clipped",
        "A description is longer than the format allows in an array; describe has all of it.",
    ),
    ("empty_catalog", "The catalogs of this request hold no tools."),
    ("empty_grant", "A selection leaves no tool; the warning names the rule."),
    (
        "exposure_unavailable",
        "The format has no such exposure, or there are too many tools for it: deferred tools are reached through the bridge.",
    ),
    (
        "first_stage_failed",
        "The embedding model beside a reranker did not answer; words alone chose what is ranked. The warning tells why.",
    ),
    (
        "held_dropped",
        "Versions of tools that waited for an administrator are gone: the write has the approved ones, removes the tools, or needs no approval.",
    ),
    (
        "hidden_characters",
        "A tool's texts hold characters that are not shown; whatever a model sees leaves them out.",
    ),
    ("import_adapted", "An imported value means something else here; the detail tells what was made of it."),
    ("import_overridden", "Two imported documents say different things of one setting; the later one holds."),
    ("listing_off", "`listing` is off: the model learns of deferred tools through searches alone."),
    ("listing_over_budget", "The listing's budget is too small for any group; its header stands alone."),
    ("listing_placed_separately", "The format limits descriptions, so the listing stands beside the tools."),
    (
        "lookalike_name",
        "Two tools of one catalog, or a tool and one of the bridge or of management, have names that a reader takes for one another.",
    ),
    ("more_warnings", "There were more warnings than are told; this one counts the rest."),
    ("name_qualified", "Several groups have a tool of this name; each is called `<group>__<name>`."),
    ("no_counterpart", "An imported setting has none here; the detail tells what there is instead."),
    (
        "not_loaded",
        "A found tool was not loaded: `max_answer_tokens` left no room, or the provider does not take its definition; the detail tells.",
    ),
    (
        "not_strict",
        "A tool is sent without strict mode: its schema does not fit it, or the provider takes no more of them in one request.",
    ),
    (
        "not_warmed",
        "What was found could not be noted in the session and does not enter the array; the detail tells why. It can be called all the same.",
    ),
    (
        "nothing_imported",
        "An imported document holds nothing that can be used; further warnings, and entries that were set aside, tell why.",
    ),
    (
        "odd_name",
        "A group or a toolset is called like a selector, `@x` or `x*`; the detail tells how lists mean it.",
    ),
    ("partial_list", "An imported list is one page of a longer one."),
    (
        "placeholder_kept",
        "An imported value is left to another program to fill in (`${env:TOKEN}`); give it before it is used.",
    ),
    (
        "preload_failed",
        "The matcher's endpoint did not rank, so nothing was preloaded; the detail begins with the reason.",
    ),
    ("preload_inactive", "`preload` is enabled, but other settings leave it nothing to do."),
    (
        "query_shortened",
        "A model searched for more, or in more words, than one search takes; the detail tells what was left out.",
    ),
    (
        "rerank_allowance",
        "The searches per minute that may ask an endpoint with this key are used up; keywords ranked.",
    ),
    (
        "schema_mended",
        "A schema was changed for the provider and says less than the tool's own, or something else; the warning tells where.",
    ),
    (
        "schema_not_object",
        "The root of a tool's schema is no object: arguments are sent under the key `value`, and are not checked.",
    ),
    ("search_degraded", "A configured endpoint did not answer; keywords ranked."),
    (
        "secret_cleared",
        "A stored secret was cleared: its endpoint moved, its matcher is gone, or the write does not name it.",
    ),
    ("secret_left_out", "An imported secret is not given back; the detail tells how to send it."),
    ("secret_missing", "A document says that a secret is set, but none is stored."),
    ("server_left_out", "An imported MCP server cannot be used; the detail tells why."),
    (
        "setting_without_effect",
        "A setting was written that does nothing beside the others; the detail tells why.",
    ),
    (
        "storage_full",
        "There is no room to write that a tool was found: the answer is right, but the tool does not enter the array.",
    ),
    ("stored_field_ignored", "A stored config value cannot be read by this version; its default is used."),
    (
        "suspicious_text",
        "A tool's texts speak to the model in place of describing the tool: look at it before agents do. It is stored all the same.",
    ),
    (
        "too_many_tools",
        "More tools always stand in the array than the provider takes: its assemblies are refused until fewer are core.",
    ),
    (
        "tool_held",
        "With `require_review_on_change`: the uploaded version of a tool waits for an administrator, and the approved one stays in use.",
    ),
    (
        "tool_left_out",
        "The provider does not take the tool's schema in any form: it is not in the array, and search, describe and call still reach it.",
    ),
    (
        "tool_moved",
        "With `require_review_on_change`: a tool was not taken, because one of its name was approved in another group and goes or went; an administrator can turn that off, move the tool, and turn it on again.",
    ),
    ("tool_quarantined", "An uploaded entry was set aside; the detail begins with the reason."),
    ("unknown_import_key", "A part of an imported document is not read."),
    ("unknown_tool", "A name means no tool; nothing was done for it."),
    ("unknown_toolset", "There is no toolset of this name; it adds nothing."),
    (
        "unusable_import_value",
        "An imported value does not fit its setting and was left out; the detail tells why.",
    ),
    (
        "vectors_incomplete",
        "Some tools have no vector to compare; the warning tells how many, and whether they are being made or refused.",
    ),
    ("warm_evicted", "The bound of the warm set or an epoch took tools out of the array."),
];

/// Something the caller should know that did not stop the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Warning {
    /// A stable code, for example `tool_quarantined` or `clamped`.
    #[schema(value_type = String)]
    pub code: &'static str,
    /// JSON pointer into the request body, where one place is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The stored name of the tool that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What happened, in a sentence.
    pub detail: String,
}

impl Warning {
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, pointer: None, tool: None, detail: told(&detail.into()) }
    }

    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    #[must_use]
    pub fn for_tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }
}

/// One fault of a refused input, at its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) into the request body; empty for the whole body.
    pub pointer: String,
    /// A stable code, for example `wrong_type` or `unknown_key`.
    #[schema(value_type = String)]
    pub code: &'static str,
    /// What is wrong and what would be right, in a sentence.
    pub detail: String,
}

impl FieldError {
    pub fn new(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code, detail: told(&detail.into()) }
    }
}

/// Longest sentence of a warning or fault, in characters: it may repeat a name that the caller sent.
const DETAIL_CHARS: usize = 1_000;

/// A sentence as it is told: on one line, without hidden characters, and not at any length.
pub fn told(detail: &str) -> String {
    clip(&one_line(detail), DETAIL_CHARS).into_owned()
}

/// Appends one reference token to a JSON pointer, escaped as RFC 6901 asks.
pub fn pointer_push(pointer: &mut String, token: &str) {
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}
