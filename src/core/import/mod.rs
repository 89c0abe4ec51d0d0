//! What administrators bring along: lists of tools, `dsh-tool-search.json`, Hermes' `tools.tool_search`, `mcp.json`.
//!
//! Owns what foreign files look like and what of them there is here: one file per format with a table from its keys to ours.
//! Lenient: a key that cannot be used is a warning with its place, and only a text that is nothing known is refused. Work
//! and memory are bounded by the length of the text. Must not know: storage, HTTP, where secrets are kept.

mod beside;
mod detect;
mod dsh;
mod encoding;
mod hermes;
mod lists;
mod loose;
mod mcp;
mod placeholders;
mod servers;
mod settings;
#[cfg(test)]
mod tests;
mod text;
mod told;
mod yaml;

use std::borrow::Cow;

use secrecy::SecretString;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use self::encoding::decode;
pub use self::servers::{AlwaysLoad, SecretValues, ServerSpec, Transport};

use self::detect::{Found, Part, detect};
use self::settings::Config;
use self::told::Told;
use super::json::{JsonLimits, check};
use super::text::{counted, size_in_words};
use super::warning::{FieldError, Warning};

/// Most tools of one import: five times what a catalog holds by default.
pub const MAX_TOOLS: usize = 100_000;
/// Longest settings or servers of one document, in bytes of JSON: ten thousands of names in groups have room.
const MAX_SETTINGS_BYTES: usize = 4 * 1024 * 1024;
/// Depth of settings.
const MAX_SETTINGS_DEPTH: usize = 64;

/// What an imported document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A list of tools.
    Tools,
    /// `dsh-tool-search.json`, or its static part.
    Dsh,
    /// Hermes' `tools.tool_search`.
    Hermes,
    /// Servers of an `mcp.json`.
    Mcp,
    /// Several documents that are not all of one kind.
    Mixed,
}

impl Kind {
    /// What a caller may say that a document is.
    pub const NAMED: [Self; 4] = [Self::Tools, Self::Dsh, Self::Hermes, Self::Mcp];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Dsh => "dsh",
            Self::Hermes => "hermes",
            Self::Mcp => "mcp",
            Self::Mixed => "mixed",
        }
    }
}

/// A document to import.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// JSON, JSON with comments, JSON Lines or YAML.
    Text(&'a str),
    Json(&'a RawValue),
}

/// What was read.
#[derive(Debug)]
pub struct Imported {
    pub kind: Kind,
    /// Entries as they were found, for [`format::ingest`](crate::core::format::ingest).
    pub tools: Vec<ToolEntry>,
    /// A config in our keys that [`policy::parse`](crate::core::policy::parse) takes; without secrets.
    pub config: Map<String, Value>,
    /// The key of `config.matcher`.
    pub api_key: Option<ImportedKey>,
    /// In the order they stood.
    pub servers: Vec<ServerSpec>,
    pub warnings: Vec<Warning>,
}

/// An entry of a list of tools, its group inside where the list said one.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    pub json: Box<RawValue>,
    pub pointer: String,
}

/// A secret with the place where it stood.
#[derive(Debug, Clone)]
pub struct ImportedKey {
    pub key: SecretString,
    pub pointer: String,
}

/// What grows while documents are read.
#[derive(Debug)]
struct Reading {
    tools: Vec<ToolEntry>,
    /// Tools that may still come.
    room: usize,
    config: Config,
    key: Option<ImportedKey>,
    servers: Vec<ServerSpec>,
    told: Told,
}

/// Reads documents, each with its pointer in the request; where two say different things, the later one holds.
/// `wanted` says what they are, `group` is that of tools that name none.
///
/// # Errors
/// A text that is neither JSON nor YAML (`not_understood`, with line and column), a document that is nothing known
/// (`unknown_import`), or is too large.
pub fn read(
    sources: &[(String, Source<'_>)],
    wanted: Option<Kind>,
    group: Option<&str>,
) -> Result<Imported, Vec<FieldError>> {
    let mut out = Reading {
        tools: Vec::new(),
        room: MAX_TOOLS,
        config: Config::default(),
        key: None,
        servers: Vec::new(),
        told: Told::default(),
    };
    let mut kind = None;
    let mut faults = Vec::new();
    for (pointer, source) in sources {
        match read_one(*source, pointer, wanted, group, &mut out) {
            Ok(found) if kind.is_none_or(|kind| kind == found) => kind = Some(found),
            Ok(_) => kind = Some(Kind::Mixed),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let Reading { tools, config, key, servers, mut told, .. } = out;
    let config = config.through_door(&mut told);
    // A key goes with its endpoint or not at all.
    let has_matcher = config.contains_key("matcher");
    if let Some(lost) = key.as_ref().filter(|_| !has_matcher) {
        told.add(
            "unusable_import_value",
            lost.pointer.clone(),
            "a key without a usable endpoint is left out",
        );
    }
    Ok(Imported {
        kind: kind.unwrap_or(Kind::Mixed),
        tools,
        config,
        api_key: key.filter(|_| has_matcher),
        servers,
        warnings: told.finish(),
    })
}

fn read_one(
    source: Source<'_>,
    at: &str,
    wanted: Option<Kind>,
    group: Option<&str>,
    out: &mut Reading,
) -> Result<Kind, FieldError> {
    let json = match source {
        Source::Text(text) => {
            text::to_json(text).map_err(|detail| FieldError::new(at, "not_understood", detail))?
        }
        Source::Json(json) => Cow::Borrowed(json),
    };
    match detect(&json, at, wanted)? {
        Found::Tools(part) => {
            lists::read(part.value, &part.at, group, out)?;
            Ok(Kind::Tools)
        }
        Found::Dsh(part) => {
            dsh::read(&object(&part)?, &part.at, out);
            Ok(Kind::Dsh)
        }
        Found::Hermes { section, servers, others } => {
            hermes::read(&settings(&section)?, &section.at, out);
            if let Some(servers) = servers {
                mcp::read(&object(&servers)?, None, &servers.at, out);
            }
            if !others.is_empty() {
                let shown: Vec<&str> = others.iter().take(20).map(String::as_str).collect();
                let detail = format!(
                    "{} not read: {}",
                    counted(others.len(), "other section was", "other sections were"),
                    shown.join(", ")
                );
                out.told.add("unknown_import_key", at, detail);
            }
            Ok(Kind::Hermes)
        }
        Found::Mcp { servers, inputs } => {
            let inputs = inputs.map(|value| settings(&Part { value, at: at.to_owned() })).transpose()?;
            mcp::read(&object(&servers)?, inputs.as_ref(), &servers.at, out);
            Ok(Kind::Mcp)
        }
    }
}

/// A part as a value, checked as strictly as a body.
fn settings(part: &Part<'_>) -> Result<Value, FieldError> {
    let text = part.value.get();
    if text.len() > MAX_SETTINGS_BYTES {
        let detail = format!("settings have at most {}", size_in_words(MAX_SETTINGS_BYTES));
        return Err(FieldError::new(part.at.clone(), "too_large", detail));
    }
    check(text.as_bytes(), JsonLimits::strict(MAX_SETTINGS_DEPTH)).map_err(|fault| {
        FieldError::new(format!("{}{}", part.at, fault.pointer), fault.code.as_str(), fault.detail)
    })?;
    serde_json::from_str(text)
        .map_err(|error| FieldError::new(part.at.clone(), "malformed_json", error.to_string()))
}

fn object(part: &Part<'_>) -> Result<Map<String, Value>, FieldError> {
    match settings(part)? {
        Value::Object(object) => Ok(object),
        _ => Err(FieldError::new(part.at.clone(), "wrong_type", "an object is wanted here")),
    }
}
