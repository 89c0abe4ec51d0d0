//! Warnings: what the service changed, left out or could not use, told in the answer.

use serde::Serialize;
use utoipa::ToSchema;

use super::text::{clip, one_line};

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
