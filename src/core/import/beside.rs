//! What lists of tools say beside the definitions, as exports of Hermes do: `toolset` is a group, `core` is what its name says.
//! What is read here is gone from the entry, so that no provider is sent it.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::settings::{Config, under};
use super::told::Told;
use super::{MAX_SETTINGS_BYTES, Part, settings};
use crate::core::digest::push_string;
use crate::core::format::members::Members;
use crate::core::policy::name_fault;

/// Keys beside a list of tools that would be a setting here, with what to do about them.
const OTHERS: &[(&str, &str)] = &[
    ("toolsets", "toolsets of other programs are not read: write them as `toolsets` into the config"),
    ("enabled_toolsets", "which tools a session gets is said with `toolsets` of an assembly, or in `allow`"),
    ("disabled_toolsets", "to hide groups of tools, name them in `deny`, as `@group`"),
];

/// The group that a toolset of Hermes is: its MCP servers have `mcp-` before their name.
pub(super) fn group_of(toolset: &str) -> Option<&str> {
    let name = toolset.trim();
    let name = name.strip_prefix("mcp-").unwrap_or(name).trim();
    Some(name).filter(|name| !name.is_empty() && name_fault(name).is_none())
}

/// An entry of a list without what is read of it here, and with its group. `group`: that of the list.
pub(super) fn read_entry<'a>(
    entry: &'a RawValue,
    group: Option<&str>,
    at: &str,
    config: &mut Config,
    told: &mut Told,
) -> Cow<'a, RawValue> {
    let text = entry.get();
    // Nearly all entries say nothing of the kind, and are not parsed for this.
    let may_say = ["lwaysLoad\"", "\"toolset\"", "\"core\""].iter().any(|key| text.contains(key));
    if !may_say && group.is_none() {
        return Cow::Borrowed(entry);
    }
    let Ok(mut members) = serde_json::from_str::<Members<'a>>(text) else { return Cow::Borrowed(entry) };
    let name = name_of(&members);
    let is_tool = name.is_some() || members.says("type", "namespace");
    let mut taken = false;
    let mut own = None;
    if let Some(name) = &name {
        let is_true = |value: Option<&RawValue>| value.is_some_and(|value| value.get() == "true");
        let mut core = is_true(members.get("alwaysLoad")) || is_true(meta(&members, "anthropic/alwaysLoad"));
        if let Some(says) = flag(&mut members, "core", at, told) {
            (taken, core) = (true, core || says);
        }
        if core {
            config.add_core(&Value::from(name.as_ref()), at);
        }
    }
    if is_tool && let Some(toolset) = members.text("toolset") {
        match group_of(&toolset) {
            Some(_) => {
                members.take("toolset");
                taken = true;
                own = Some(toolset);
            }
            None => told.add("unusable_import_value", under(at, "toolset"), "this names no group"),
        }
    } else if is_tool && members.get("toolset").is_some_and(|value| value.get() != "null") {
        told.add("unusable_import_value", under(at, "toolset"), "a toolset is a text: the tool's group");
    }
    let group = own.as_deref().and_then(group_of).or(group);
    let group = group.filter(|_| !members.has("group") && !members.says("type", "namespace"));
    match (taken, group) {
        (true, group) => written(entry, &members, group),
        (false, Some(group)) => with_group(entry, group, members.0.is_empty()),
        (false, None) => Cow::Borrowed(entry),
    }
}

/// The entry as it is, a group before all else in it.
fn with_group<'a>(entry: &'a RawValue, group: &str, is_empty: bool) -> Cow<'a, RawValue> {
    let mut json = String::with_capacity(entry.get().len() + group.len() + 16);
    json.push_str("{\"group\":");
    push_string(group, &mut json);
    if !is_empty {
        json.push(',');
    }
    json.push_str(&entry.get()[1..]);
    RawValue::from_string(json).map_or(Cow::Borrowed(entry), Cow::Owned)
}

/// A member that says true or false, taken out; told where it says something else.
fn flag(members: &mut Members<'_>, key: &str, at: &str, told: &mut Told) -> Option<bool> {
    match members.get(key)?.get() {
        "true" => members.take(key).map(|_| true),
        "false" | "null" => {
            members.take(key);
            Some(false)
        }
        _ => {
            told.add("unusable_import_value", under(at, key), format!("`{key}` of a tool is true or false"));
            None
        }
    }
}

/// The name of a tool, in the wrappers that keep it inside as well.
fn name_of<'a>(members: &Members<'a>) -> Option<Cow<'a, str>> {
    let inner = |key: &str| {
        let inner: Members<'a> = serde_json::from_str(members.get(key)?.get()).ok()?;
        inner.text("name")
    };
    let name = members.text("name").or_else(|| inner("function")).or_else(|| inner("toolSpec"));
    name.filter(|name| !name.trim().is_empty())
}

fn meta<'a>(members: &Members<'a>, key: &str) -> Option<&'a RawValue> {
    serde_json::from_str::<Members<'a>>(members.get("_meta")?.get()).ok()?.get(key)
}

/// An entry of these members, its group before them.
fn written<'a>(entry: &'a RawValue, members: &Members<'_>, group: Option<&str>) -> Cow<'a, RawValue> {
    let mut json = String::with_capacity(entry.get().len() + group.map_or(0, str::len) + 16);
    let group = group.map(|group| {
        let mut text = String::new();
        push_string(group, &mut text);
        text
    });
    let group = group.iter().map(|text| ("group", text.as_str()));
    let members = members.0.iter().map(|(key, value)| (key.as_ref(), value.get()));
    for (key, value) in group.chain(members) {
        json.push(if json.is_empty() { '{' } else { ',' });
        push_string(key, &mut json);
        json.push(':');
        json.push_str(value);
    }
    json.push_str(if json.is_empty() { "{}" } else { "}" });
    RawValue::from_string(json).map_or(Cow::Borrowed(entry), Cow::Owned)
}

/// Reads what stands beside a list of tools. `own`: the group that it names.
pub(super) fn read_around(
    members: &Members<'_>,
    own: Option<&str>,
    at: &str,
    config: &mut Config,
    told: &mut Told,
) {
    for (key, value) in &members.0 {
        let pointer = || under(at, key);
        match (key.as_ref(), value.get()) {
            (_, "null") => {}
            ("core", "true") if own.is_some() => {
                let group = own.map(|group| format!("@{group}")).unwrap_or_default();
                config.add_core(&Value::from(group), &pointer());
            }
            ("core", "false") => {}
            ("core", text) if text.starts_with(['[', '"']) && text.len() <= MAX_SETTINGS_BYTES => {
                match settings(&Part { value, at: pointer() }) {
                    Ok(core) => config.add_core(&core, &pointer()),
                    Err(fault) => told.add("unusable_import_value", fault.pointer, fault.detail),
                }
            }
            ("core", _) => {
                let detail = "`core` beside a list of tools is a list of their names";
                told.add("unusable_import_value", pointer(), detail);
            }
            (key, _) => {
                if let Some((_, advice)) = OTHERS.iter().find(|(other, _)| *other == key) {
                    told.add("no_counterpart", pointer(), *advice);
                }
            }
        }
    }
}
