//! What a document is, by its keys: the first rule that holds counts.

use serde_json::value::RawValue;

use super::settings::{Row, fold, under};
use super::{Kind, dsh, hermes, lists};
use crate::core::format::members::Members;
use crate::core::warning::FieldError;

/// What is taken, for those whose text is nothing of it.
const TAKEN: &str = "a list of tools in any format, `dsh-tool-search.json` or its static part in YAML, Hermes' `tools.tool_search`, or an \
     `mcp.json` (`mcpServers`, `servers`)";

/// Objects with one member that are opened to see what is in them: a section under its program's name.
const MAX_SHELLS: usize = 3;

/// A part of a document that a reader takes, with its pointer.
#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    pub(super) value: &'a RawValue,
    pub(super) at: String,
}

/// What was found in a document.
#[derive(Debug, Clone)]
pub(super) enum Found<'a> {
    Tools(Part<'a>),
    Dsh(Part<'a>),
    /// The section and, where a whole file came, its servers and the names of what else it holds.
    Hermes {
        section: Part<'a>,
        servers: Option<Part<'a>>,
        others: Vec<String>,
    },
    Mcp {
        servers: Part<'a>,
        inputs: Option<&'a RawValue>,
    },
}

/// Finds out what a document is, or finds that part of it which the caller says it is.
pub(super) fn detect<'a>(
    value: &'a RawValue,
    at: &str,
    wanted: Option<Kind>,
) -> Result<Found<'a>, FieldError> {
    let root = Part { value, at: at.to_owned() };
    let members: Option<Members<'a>> = serde_json::from_str(value.get()).ok();
    match wanted {
        Some(Kind::Tools) => return Ok(Found::Tools(root)),
        Some(Kind::Hermes) => {
            let found = members.as_ref().and_then(|members| find_hermes(members, at));
            return Ok(found.unwrap_or(Found::Hermes { section: root, servers: None, others: Vec::new() }));
        }
        Some(Kind::Mcp) => {
            let found = members.as_ref().and_then(|members| find_servers(members, at));
            return Ok(found.unwrap_or(Found::Mcp { servers: root, inputs: None }));
        }
        Some(Kind::Dsh) => return Ok(Found::Dsh(root)),
        Some(Kind::Mixed) | None => {}
    }
    if value.get().starts_with('[') {
        return Ok(Found::Tools(root));
    }
    let Some(mut members) = members else {
        let detail = format!("neither a list nor an object; taken is {TAKEN}");
        return Err(FieldError::new(at, "unknown_import", detail));
    };
    if members.0.len() > lists::MAX_SERVERS {
        let detail = format!("an object of more than {} members is nothing known", lists::MAX_SERVERS);
        return Err(FieldError::new(at, "unknown_import", detail));
    }
    let mut root = root;
    for _ in 0..MAX_SHELLS {
        if let Some(found) = known(&members, &root)? {
            return Ok(found);
        }
        let [(key, inner)] = members.0.as_slice() else { break };
        let Ok(opened) = serde_json::from_str::<Members<'a>>(inner.get()) else { break };
        root = Part { value: inner, at: under(&root.at, key) };
        members = opened;
    }
    let keys: Vec<String> = members.0.iter().take(10).map(|(key, _)| format!("`{key}`")).collect();
    let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
    Err(FieldError::new(
        root.at,
        "unknown_import",
        format!("an object that holds {keys} is nothing known; taken is {TAKEN}"),
    ))
}

fn known<'a>(members: &Members<'a>, root: &Part<'a>) -> Result<Option<Found<'a>>, FieldError> {
    if members.has("jsonrpc") {
        if members.get("result").is_some_and(|result| result.get().starts_with('{')) {
            return Ok(Some(Found::Tools(root.clone())));
        }
        let detail = "this JSON-RPC message holds no result of `tools/list`";
        return Err(FieldError::new(root.at.clone(), "unknown_import", detail));
    }
    if let Some(found) = find_hermes(members, &root.at).or_else(|| find_servers(members, &root.at)) {
        return Ok(Some(found));
    }
    let keys: Vec<String> = members.0.iter().map(|(key, _)| fold(key)).take(200).collect();
    let among = |rows: &[Row], key: &String| rows.iter().any(|row| row.foreign == *key);
    let is_list = lists::is_list(members);
    // Keys that no list of tools has, and no section of Hermes.
    let marks = ["groups", "matcher", "preload", "config_scope", "matcher_timeout_ms", "max_warm_tools"];
    if !is_list && keys.iter().any(|key| marks.contains(&key.as_str())) {
        return Ok(Some(Found::Dsh(root.clone())));
    }
    if is_list || lists::is_by_server(members) {
        return Ok(Some(Found::Tools(root.clone())));
    }
    let is_camel = members.0.iter().any(|(key, _)| key.contains(char::is_uppercase));
    if !keys.is_empty() && !is_camel && keys.iter().all(|key| among(hermes::ROWS, key)) {
        return Ok(Some(Found::Hermes { section: root.clone(), servers: None, others: Vec::new() }));
    }
    // Half of the keys: a file with a few keys of a newer version is one all the same.
    let ours = keys.iter().filter(|key| among(dsh::ROWS, key)).count();
    if ours > 0 && ours * 2 >= keys.len() {
        return Ok(Some(Found::Dsh(root.clone())));
    }
    if is_map_of_servers(members) {
        return Ok(Some(Found::Mcp { servers: root.clone(), inputs: None }));
    }
    Ok(None)
}

/// `tools.tool_search`, or `tool_search` alone.
fn find_hermes<'a>(members: &Members<'a>, at: &str) -> Option<Found<'a>> {
    let inside = members.get("tools").filter(|tools| tools.get().starts_with('{')).and_then(|tools| {
        let inner: Members<'a> = serde_json::from_str(tools.get()).ok()?;
        Some((inner.get("tool_search")?, under(&under(at, "tools"), "tool_search")))
    });
    let (value, section_at) =
        inside.or_else(|| Some((members.get("tool_search")?, under(at, "tool_search"))))?;
    let servers = members.get("mcp_servers").filter(|servers| servers.get().starts_with('{'));
    let others = members.0.iter().map(|(key, _)| key.to_string());
    Some(Found::Hermes {
        section: Part { value, at: section_at },
        servers: servers.map(|value| Part { value, at: under(at, "mcp_servers") }),
        others: others
            .filter(|key| !["tools", "tool_search", "mcp_servers"].contains(&key.as_str()))
            .collect(),
    })
}

/// The servers by name, below the keys that programs keep them under.
fn find_servers<'a>(members: &Members<'a>, at: &str) -> Option<Found<'a>> {
    for key in ["mcpServers", "mcp_servers", "servers"] {
        if let Some(value) = members.get(key).filter(|servers| servers.get().starts_with('{')) {
            let servers = Part { value, at: under(at, key) };
            return Some(Found::Mcp { servers, inputs: members.get("inputs") });
        }
    }
    // In the settings of VS Code they stand one level deeper.
    let inner: Members<'a> = serde_json::from_str(members.get("mcp")?.get()).ok()?;
    inner.get("servers").filter(|servers| servers.get().starts_with('{')).map(|value| Found::Mcp {
        servers: Part { value, at: under(&under(at, "mcp"), "servers") },
        inputs: inner.get("inputs"),
    })
}

/// Whether every member is a server, without a key around them.
fn is_map_of_servers(members: &Members<'_>) -> bool {
    let is_server = |value: &RawValue| {
        serde_json::from_str::<Members<'_>>(value.get()).is_ok_and(|server| {
            ["command", "url", "serverUrl", "httpUrl"].iter().any(|key| server.text(key).is_some())
        })
    };
    !members.0.is_empty() && members.0.iter().all(|(_, value)| is_server(value))
}
