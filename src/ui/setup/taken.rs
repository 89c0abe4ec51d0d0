//! What was read, put into the draft: tools beside or in the place of those that are there, settings, a key, servers.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::set;
use super::told::{self, Told};
use crate::core::warning::Warning;
use crate::http::problem::Problem;
use crate::service::{AddedTools, McpToolsAnswer, ReadImport, SetupDraft, Toolrack};
use crate::ui::visitor::Place;

/// Keys of a config that name lists or objects by entry, which an import adds to.
const JOINED: [&str; 1] = ["core"];

/// Puts what was read into the draft.
pub(super) async fn take(
    service: &Toolrack,
    place: &Place,
    draft: &mut SetupDraft,
    read: ReadImport,
    sources: &[String],
    adds: bool,
) -> Result<(), Problem> {
    let answer = read.answer()?;
    draft.source = answer.kind.to_owned();
    let has_tools = !answer.tools.is_empty();
    if has_tools {
        let before = if adds { present_tools(service, place, draft).await? } else { Vec::new() };
        let added = if adds { added(draft) } else { None };
        let new = answer.tools.iter().filter_map(|entry| identity(entry));
        draft.added = added.map(|mut added| {
            added.tools.extend(new);
            added
        });
        draft.tools = Some(joined(before, answer.tools));
    }
    for (key, value) in answer.config {
        let value = if JOINED.contains(&key.as_str()) { union(draft.config.get(&key), value) } else { value };
        set(draft, &key, Some(value));
    }
    let key_at = read.imported.api_key.as_ref().map(|key| key.pointer.clone());
    if let Some(key) = read.imported.api_key {
        draft.set_api_key(Some(key.key));
    }
    if !answer.servers.is_empty() {
        let servers: Result<Vec<Value>, _> = answer.servers.iter().map(serde_json::to_value).collect();
        let servers = servers.map_err(Problem::internal)?;
        draft.servers.retain(|known| servers.iter().all(|new| new["name"] != known["name"]));
        draft.servers.extend(servers);
    }
    let is_kept = draft.api_key().is_some();
    let warnings = answer.warnings.into_iter().map(|warning| as_kept(warning, key_at.as_deref(), is_kept));
    let told = Told::new(sources, &warnings.collect::<Vec<_>>(), &answer.quarantined);
    told::keep(draft, told, has_tools && !adds);
    Ok(())
}

/// A warning that a secret is left out of an answer, as it is for a draft, which keeps the key of the endpoint.
fn as_kept(warning: Warning, key_at: Option<&str>, is_kept: bool) -> Warning {
    if warning.code != "secret_left_out" {
        return warning;
    }
    let is_key = key_at.is_some() && warning.pointer.as_deref() == key_at;
    let (code, detail) = match (is_key, is_kept) {
        (true, true) => ("secret_kept", "the key is kept in this draft, sealed, for the endpoint beside it"),
        (true, false) => ("secret_left_out", "the key was left out: no endpoint stands beside it"),
        (false, _) => (
            "secret_left_out",
            "values of its headers or variables, secret arguments, and user, password and query of its address are left out: type them when you set the server up",
        ),
    };
    Warning { code, detail: detail.to_owned(), ..warning }
}

/// Both lists as one, each name once.
fn union(before: Option<&Value>, now: Value) -> Value {
    let mut all = before.and_then(Value::as_array).cloned().unwrap_or_default();
    for value in now.as_array().cloned().unwrap_or_default() {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    Value::Array(all)
}

/// The tools that a draft would store.
async fn present_tools(
    service: &Toolrack,
    place: &Place,
    draft: &SetupDraft,
) -> Result<Vec<Box<RawValue>>, Problem> {
    match &draft.tools {
        Some(tools) => Ok(tools.clone()),
        None => stored_tools(service, place).await,
    }
}

pub(super) async fn stored_tools(service: &Toolrack, place: &Place) -> Result<Vec<Box<RawValue>>, Problem> {
    #[derive(serde::Deserialize)]
    struct Stored {
        tools: Vec<Box<RawValue>>,
    }
    let document = service.catalog_document(&place.scope).await?;
    let stored: Stored = serde_json::from_str(&document.json).map_err(Problem::internal)?;
    Ok(stored.tools)
}

/// The identity of an entry: its group and its name as they were uploaded.
#[derive(serde::Deserialize, PartialEq, Eq, Hash)]
struct Identity {
    group: Option<String>,
    uploaded_name: Option<String>,
    name: Option<String>,
}

pub(super) fn identity(entry: &RawValue) -> Option<(String, String)> {
    let Identity { group, uploaded_name, name } = serde_json::from_str(entry.get()).ok()?;
    Some((group.unwrap_or_else(|| "other".to_owned()), uploaded_name.or(name)?))
}

/// The tools of before, with the new ones in the place of those of the same name and group.
fn joined(before: Vec<Box<RawValue>>, new: Vec<Box<RawValue>>) -> Vec<Box<RawValue>> {
    let known: std::collections::HashSet<(String, String)> =
        new.iter().filter_map(|entry| identity(entry)).collect();
    let kept = before.into_iter().filter(|entry| identity(entry).is_none_or(|entry| !known.contains(&entry)));
    kept.chain(new).collect()
}

/// What the draft has put beside the stored tools so far; nothing where it takes the place of all.
fn added(draft: &SetupDraft) -> Option<AddedTools> {
    if draft.tools.is_none() { Some(AddedTools::default()) } else { draft.added.clone() }
}

/// The tools of a draft that puts some beside the stored ones, beside those that are stored now.
pub(super) fn rejoined(
    stored: Vec<Box<RawValue>>,
    tools: Vec<Box<RawValue>>,
    added: &AddedTools,
) -> Vec<Box<RawValue>> {
    let is_added = |entry: &RawValue| {
        identity(entry).is_none_or(|entry| added.groups.contains(&entry.0) || added.tools.contains(&entry))
    };
    let stored = stored.into_iter().filter(|entry| !is_added(entry)).collect();
    joined(stored, tools.into_iter().filter(|entry| is_added(entry)).collect())
}

/// Puts the tools of a server into the draft: its list is all of its group.
pub(super) async fn take_server(
    service: &Toolrack,
    place: &Place,
    draft: &mut SetupDraft,
    name: &str,
    answer: McpToolsAnswer,
) -> Result<(), Problem> {
    let before = present_tools(service, place, draft).await?;
    let of_server = |entry: &RawValue| identity(entry).is_some_and(|(group, _)| group == name);
    let others = before.into_iter().filter(|entry| !of_server(entry)).collect();
    draft.added = added(draft).map(|mut added| {
        added.groups.insert(name.to_owned());
        added
    });
    draft.tools = Some(joined(others, answer.tools));
    draft.source = "mcp".to_owned();
    told::keep(draft, Told::new(&[name.to_owned()], &answer.warnings, &[]), false);
    if let Some(description) = answer.group_description {
        describe_group(&mut draft.config, name, &description);
    }
    Ok(())
}

/// Gives a group a description, unless it has one.
fn describe_group(config: &mut Map<String, Value>, name: &str, description: &str) {
    let groups = config.entry("groups").or_insert_with(|| json!([]));
    let Some(groups) = groups.as_array_mut() else { return };
    match groups.iter_mut().find(|group| group.get("name").and_then(Value::as_str) == Some(name)) {
        Some(Value::Object(group)) => drop(group.entry("description").or_insert_with(|| description.into())),
        _ => groups.push(json!({"name": name, "description": description})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn new_tools_go_in_the_place_of_those_of_the_same_name() {
        let before = vec![
            raw(r#"{"name":"a"}"#),
            raw(r#"{"name":"b","group":"g"}"#),
            raw(r#"{"name":"g__c","uploaded_name":"c","group":"g"}"#),
        ];
        let new =
            vec![raw(r#"{"name":"b","group":"g","description":"new"}"#), raw(r#"{"name":"c","group":"g"}"#)];
        let all: Vec<String> = joined(before, new).iter().map(|entry| entry.get().to_owned()).collect();
        assert_eq!(
            all,
            [
                r#"{"name":"a"}"#,
                r#"{"name":"b","group":"g","description":"new"}"#,
                r#"{"name":"c","group":"g"}"#
            ]
        );
    }

    #[test]
    fn what_others_stored_meanwhile_stays_beside_what_was_added() {
        let texts = |tools: &[&str]| tools.iter().map(|tool| raw(tool)).collect::<Vec<_>>();
        let added = AddedTools {
            tools: [("other".to_owned(), "b".to_owned())].into(),
            groups: ["server".to_owned()].into(),
        };
        let stored = texts(&[
            r#"{"name":"a","description":"theirs"}"#,
            r#"{"name":"b","description":"theirs"}"#,
            r#"{"name":"c"}"#,
            r#"{"name":"gone","group":"server"}"#,
        ]);
        let draft = texts(&[
            r#"{"name":"a"}"#,
            r#"{"name":"b","description":"ours"}"#,
            r#"{"name":"removed by them"}"#,
            r#"{"name":"new","group":"server"}"#,
        ]);
        let all: Vec<String> =
            rejoined(stored, draft, &added).iter().map(|tool| tool.get().to_owned()).collect();
        assert_eq!(
            all,
            [
                r#"{"name":"a","description":"theirs"}"#,
                r#"{"name":"c"}"#,
                r#"{"name":"b","description":"ours"}"#,
                r#"{"name":"new","group":"server"}"#
            ]
        );
    }

    #[test]
    fn core_tools_add_up() {
        assert_eq!(union(Some(&json!(["a", "b"])), json!(["b", "c"])), json!(["a", "b", "c"]));
        assert_eq!(union(None, json!(["a"])), json!(["a"]));
    }
}
