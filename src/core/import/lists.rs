//! Lists of tools, in whatever stands around them: an array, `{tools}`, a request body, a result of `tools/list`, several
//! lists by server. Finds the entries; what an entry is, `format::ingest` tells.

use serde_json::value::RawValue;

use super::beside::{group_of, read_around, read_entry};
use super::settings::under;
use super::{Reading, ToolEntry};
use crate::core::format::members::{Elements, Members};
use crate::core::warning::FieldError;

/// Most lists inside each other: lists by server, a result in an envelope, its list.
const MAX_DEPTH: usize = 5;

/// Most lists by server in one object.
pub(super) const MAX_SERVERS: usize = 10_000;

/// Keys whose array is a list in the shape of one provider, which reading an entry takes apart.
const WRAPPERS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// Reads a list, or a single tool.
pub(super) fn read(
    value: &RawValue,
    at: &str,
    group: Option<&str>,
    out: &mut Reading,
) -> Result<(), FieldError> {
    collect(value, at, group, MAX_DEPTH, out)
}

/// Whether an object is or holds tools in one of the shapes that [`read`] knows.
pub(super) fn is_list(members: &Members<'_>) -> bool {
    let is_array = |key: &str| members.get(key).is_some_and(|value| value.get().starts_with('['));
    let is_object = |key: &str| members.get(key).is_some_and(|value| value.get().starts_with('{'));
    if is_array("tools") || is_object("toolConfig") || WRAPPERS.iter().any(|key| is_array(key)) {
        return true;
    }
    is_tool(members)
}

/// Whether an object is one tool.
fn is_tool(members: &Members<'_>) -> bool {
    const PARTS: [&str; 6] = [
        "description",
        "parameters",
        "input_schema",
        "inputSchema",
        "parametersJsonSchema",
        "parameters_json_schema",
    ];
    let has_name = members.get("name").is_some_and(|name| name.get().starts_with('"'));
    let is_object = |key: &str| members.get(key).is_some_and(|value| value.get().starts_with('{'));
    is_object("function") || is_object("toolSpec") || (has_name && PARTS.iter().any(|key| members.has(key)))
}

/// Whether every member is a list of tools: lists by server.
pub(super) fn is_by_server(members: &Members<'_>) -> bool {
    let holds_tools = |value: &RawValue| match value.get().as_bytes() {
        [b'[', ..] => Elements::read(value, 1)
            .is_ok_and(|list| list.first.first().is_none_or(|first| first.get().starts_with('{'))),
        [b'{', ..] => serde_json::from_str::<Members<'_>>(value.get())
            .is_ok_and(|inner| inner.get("tools").is_some_and(|tools| tools.get().starts_with('['))),
        _ => false,
    };
    let count = members.0.len();
    count > 0 && count <= MAX_SERVERS && members.0.iter().all(|(_, value)| holds_tools(value))
}

fn collect(
    value: &RawValue,
    at: &str,
    group: Option<&str>,
    depth: usize,
    out: &mut Reading,
) -> Result<(), FieldError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(FieldError::new(at, "too_deep", "too many lists stand inside each other"));
    };
    if value.get().starts_with('[') {
        let list = Elements::read(value, out.room)
            .map_err(|error| FieldError::new(at, "malformed_json", error.to_string()))?;
        if list.more {
            let detail = format!("an import reads at most {} tools", super::MAX_TOOLS);
            return Err(FieldError::new(at, "too_many", detail));
        }
        for (index, element) in list.first.into_iter().enumerate() {
            let pointer = under(at, &index.to_string());
            if holds_list(element) {
                collect(element, &pointer, group, depth, out)?;
            } else {
                push(element, pointer, group, out)?;
            }
        }
        return Ok(());
    }
    let Ok(members) = serde_json::from_str::<Members<'_>>(value.get()) else {
        return Err(FieldError::new(at, "wrong_type", "a list of tools is wanted here"));
    };
    for key in ["result", "toolConfig"] {
        if let Some(inner) = members.get(key).filter(|inner| inner.get().starts_with('{')) {
            return collect(inner, &under(at, key), group, depth, out);
        }
    }
    let own = ["group", "server", "serverName", "name"].iter().find_map(|key| members.text(key));
    let toolset = members.text("toolset");
    let own = own.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let own = own.or_else(|| toolset.as_deref().and_then(group_of));
    match members.get("tools").filter(|tools| tools.get().starts_with('[')) {
        Some(tools) if !members.says("type", "namespace") => {
            if members.text("nextCursor").is_some_and(|cursor| !cursor.is_empty()) {
                let detail = "this is one page of a list: its `nextCursor` leads to more tools";
                out.told.add("partial_list", under(at, "nextCursor"), detail);
            }
            read_around(&members, own.or(group), at, &mut out.config, &mut out.told);
            collect(tools, &under(at, "tools"), own.or(group), depth, out)
        }
        _ if is_list(&members) || members.says("type", "namespace") => push(value, at.to_owned(), group, out),
        _ if is_by_server(&members) => {
            for (server, list) in &members.0 {
                let server = server.trim();
                collect(list, &under(at, server), Some(server).filter(|name| !name.is_empty()), depth, out)?;
            }
            Ok(())
        }
        _ => push(value, at.to_owned(), group, out),
    }
}

/// Whether an element of a list is a list itself. Nearly all are single tools, which are not parsed for this.
fn holds_list(element: &RawValue) -> bool {
    let text = element.get();
    if text.starts_with('[') {
        return true;
    }
    if !text.contains("\"tools\"") && !text.contains("\"result\"") {
        return false;
    }
    serde_json::from_str::<Members<'_>>(text).is_ok_and(|members| {
        let has_list = members.get("tools").is_some_and(|tools| tools.get().starts_with('['));
        (has_list && !members.says("type", "namespace")) || members.has("jsonrpc")
    })
}

fn push(element: &RawValue, at: String, group: Option<&str>, out: &mut Reading) -> Result<(), FieldError> {
    let Some(room) = out.room.checked_sub(1) else {
        let detail = format!("an import reads at most {} tools", super::MAX_TOOLS);
        return Err(FieldError::new(at, "too_many", detail));
    };
    out.room = room;
    let Reading { config, told, .. } = out;
    let json = read_entry(element, group, &at, config, told);
    out.tools.push(ToolEntry { json: json.into_owned(), pointer: at });
    Ok(())
}
