//! Rules of the keys that hold lists: selectors, groups, toolsets, names and aliases. Owns their bounds.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::reader::{Reader, shorten};
use super::rules::Rule;
use super::values::{Group, Toolset};
use crate::core::selector::{MAX_SELECTOR_CHARS, Selector};
use crate::core::text::{counted, is_hidden};

/// Most entries of a list of names or selectors, and most tools with aliases: the most tools of a catalog.
const MAX_ENTRIES: usize = 20_000;
/// Most groups, and most toolsets, of one layer.
const MAX_GROUPS: usize = 2_000;
/// Longest name of a group or toolset, in characters.
const MAX_NAME_CHARS: usize = 128;
/// Longest description of a group or toolset, in characters.
const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// Most phrases of one tool's aliases.
const MAX_PHRASES: usize = 50;
/// Longest phrase, in characters.
const MAX_PHRASE_CHARS: usize = 200;

/// Reads a list of selectors.
pub(super) struct Selectors {
    restricting: bool,
}

impl Selectors {
    /// A stored entry that cannot be read is left out.
    pub(super) fn plain() -> Self {
        Self { restricting: false }
    }

    /// A list that lets through only what it names: leaving out what cannot be read might empty it, and an
    /// empty list does not restrict. What cannot be read stays as the name of no tool.
    pub(super) fn restricting() -> Self {
        Self { restricting: true }
    }

    fn entry(&self, value: &Value, reader: &mut Reader) -> Option<Selector> {
        let read = read_selector(value, reader);
        if read.is_none() && self.restricting && reader.is_lenient() {
            return Some(Selector::Name(unreadable(value, MAX_SELECTOR_CHARS)));
        }
        read
    }
}

impl Rule for Selectors {
    type Out = Vec<Selector>;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<Vec<Selector>> {
        let read = reader.list(value, MAX_ENTRIES, |reader, entry| self.entry(entry, reader));
        if read.is_none() && self.restricting && reader.is_lenient() {
            return Some(vec![Selector::Name(unreadable(value, MAX_SELECTOR_CHARS))]);
        }
        read
    }

    fn write(&self, selectors: &Vec<Selector>) -> Value {
        selectors.iter().map(Selector::to_string).collect()
    }

    fn range(&self) -> String {
        "a list of names, `prefix*`, `@group` or `*`".to_owned()
    }
}

fn read_selector(value: &Value, reader: &mut Reader) -> Option<Selector> {
    let Some(text) = value.as_str() else {
        reader.wrong_type("a text", value);
        return None;
    };
    match Selector::parse(text) {
        Ok(selector) => Some(selector),
        Err(invalid) => {
            reader.fault("invalid_value", invalid.to_string());
            None
        }
    }
}

/// A name that nothing has, and that shows what stood in its place.
fn unreadable(value: &Value, max_chars: usize) -> String {
    let text = value.to_string();
    let shown: String = text.chars().take(max_chars - "(unreadable: )".len()).collect();
    format!("(unreadable: {shown})")
}

/// Reads a list of names of groups or toolsets.
pub(super) struct Names {
    restricting: bool,
}

impl Names {
    /// A stored name that cannot be read is left out.
    fn plain() -> Self {
        Self { restricting: false }
    }

    /// A list that restricts when it is not empty; see [`Selectors::restricting`].
    pub(super) fn restricting() -> Self {
        Self { restricting: true }
    }

    fn entry(&self, value: &Value, reader: &mut Reader) -> Option<String> {
        let read = reader.text(value, MAX_NAME_CHARS).map(str::to_owned);
        if read.is_none() && self.restricting && reader.is_lenient() {
            return Some(unreadable(value, MAX_NAME_CHARS));
        }
        read
    }
}

impl Rule for Names {
    type Out = Vec<String>;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<Vec<String>> {
        let read = reader.list(value, MAX_ENTRIES, |reader, entry| self.entry(entry, reader));
        if read.is_none() && self.restricting && reader.is_lenient() {
            return Some(vec![unreadable(value, MAX_NAME_CHARS)]);
        }
        read
    }

    fn write(&self, names: &Vec<String>) -> Value {
        write_texts(names)
    }

    fn range(&self) -> String {
        "a list of names".to_owned()
    }
}

fn write_texts(texts: &[String]) -> Value {
    texts.iter().map(String::as_str).collect()
}

/// Reads a list of objects with unique names; a stored entry with a name that stood before is left out.
fn read_named<T>(
    value: &Value,
    reader: &mut Reader,
    read: impl Fn(&Value, &mut Reader) -> Option<T>,
    name: impl Fn(&T) -> &str,
) -> Option<Vec<T>> {
    let mut seen = HashSet::new();
    reader.list(value, MAX_GROUPS, |reader, entry| {
        let read = read(entry, reader)?;
        if !seen.insert(name(&read).to_owned()) {
            let detail = format!("the name {:?} stands twice", shorten(name(&read)));
            reader.at("name", |reader| reader.fault("duplicate_name", detail));
            return None;
        }
        Some(read)
    })
}

/// Why nothing can be called so; nothing where it can. Groups of uploads are called whatever their upload says: this is about
/// names that a config gives.
pub fn name_fault(name: &str) -> Option<String> {
    // A line break is as good as hidden in a name.
    let is_unseen = |character: &char| is_hidden(*character) || character.is_control();
    match name.chars().filter(is_unseen).count() {
        0 if name.trim() == "*" => Some("`*` already means everything".to_owned()),
        0 => None,
        unseen => {
            let unseen = counted(unseen, "character that nobody sees", "characters that nobody sees");
            Some(format!("the name holds {unseen}; write it without"))
        }
    }
}

/// Reads the name of a group or a toolset. One that was stored before stays.
fn read_name(value: &Value, reader: &mut Reader) -> Option<String> {
    let name = reader.text(value, MAX_NAME_CHARS)?;
    match name_fault(name).filter(|_| !reader.is_lenient()) {
        Some(fault) => {
            reader.fault("invalid_value", fault);
            None
        }
        None => {
            if !reader.is_lenient() {
                mark_name(name, reader);
            }
            Some(name.to_owned())
        }
    }
}

/// Marks a name that looks like a selector: servers are called so, and people mistype it.
fn mark_name(name: &str, reader: &mut Reader) {
    if name.starts_with('@') || name.ends_with('*') {
        let detail =
            format!("`{0}` is taken as a name, not as a selector: lists mean it by `@{0}`", shorten(name));
        reader.warn("odd_name", detail);
    }
}

/// Reports an entry without a name; one with a bad name was reported where it stands.
fn require_name(entry: &Value, reader: &mut Reader) {
    if entry.get("name").is_none_or(Value::is_null) {
        reader.fault("missing_key", "an entry needs a `name`");
    }
}

/// Writes the parts of a named entry that say something.
fn write_named(name: &str, description: Option<&String>, lists: &[(&str, Value)]) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), Value::from(name));
    if let Some(description) = description {
        map.insert("description".to_owned(), Value::from(description.as_str()));
    }
    for (key, list) in lists {
        if list.as_array().is_some_and(|entries| !entries.is_empty()) {
            map.insert((*key).to_owned(), list.clone());
        }
    }
    Value::Object(map)
}

/// A description may be empty, and then is none.
fn read_description(value: &Value, reader: &mut Reader) -> Option<String> {
    if value.as_str().is_some_and(|text| text.trim().is_empty()) {
        return None;
    }
    reader.text(value, MAX_DESCRIPTION_CHARS).map(str::to_owned)
}

/// Reads `groups`.
pub(super) struct Groups;

impl Rule for Groups {
    type Out = Vec<Group>;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<Vec<Group>> {
        read_named(value, reader, read_group, |group| &group.name)
    }

    fn write(&self, groups: &Vec<Group>) -> Value {
        let write = |group: &Group| {
            let tools = write_texts(&group.tools);
            let prefixes = write_texts(&group.prefixes);
            write_named(&group.name, group.description.as_ref(), &[("tools", tools), ("prefixes", prefixes)])
        };
        groups.iter().map(write).collect()
    }

    fn range(&self) -> String {
        format!("at most {MAX_GROUPS} of {{name, description?, tools[], prefixes[]}}")
    }
}

fn read_group(value: &Value, reader: &mut Reader) -> Option<Group> {
    let mut name = None;
    let mut description = None;
    let (mut tools, mut prefixes) = (Vec::new(), Vec::new());
    reader.object(value, &["name", "description", "tools", "prefixes"], |reader, key, value| match key {
        "name" => name = read_name(value, reader),
        "description" => description = read_description(value, reader),
        "tools" => tools = reader.list(value, MAX_ENTRIES, read_exact_name).unwrap_or_default(),
        _ => prefixes = reader.list(value, MAX_ENTRIES, read_prefix).unwrap_or_default(),
    })?;
    require_name(value, reader);
    Some(Group { name: name?, description, tools, prefixes })
}

/// A group's `tools` are exact: a prefix among them would silently match nothing.
fn read_exact_name(reader: &mut Reader, value: &Value) -> Option<String> {
    let name = reader.text(value, MAX_SELECTOR_CHARS)?;
    if name.ends_with('*') {
        reader.fault("invalid_value", "the tools of a group are exact names; put a prefix into `prefixes`");
        return None;
    }
    Some(name.to_owned())
}

/// `gh_` and `gh_*` mean the same.
fn read_prefix(reader: &mut Reader, value: &Value) -> Option<String> {
    let text = reader.text(value, MAX_SELECTOR_CHARS)?;
    let prefix = text.trim_end_matches('*');
    if prefix.trim().is_empty() {
        reader.fault("invalid_value", "a prefix must not be empty: it would take every tool");
        return None;
    }
    Some(prefix.to_owned())
}

/// Reads `toolsets`.
pub(super) struct Toolsets;

impl Rule for Toolsets {
    type Out = Vec<Toolset>;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<Vec<Toolset>> {
        read_named(value, reader, read_toolset, |toolset| &toolset.name)
    }

    fn write(&self, toolsets: &Vec<Toolset>) -> Value {
        let write = |toolset: &Toolset| {
            let tools = Selectors::plain().write(&toolset.tools);
            let groups = write_texts(&toolset.groups);
            let includes = write_texts(&toolset.includes);
            let lists = [("tools", tools), ("groups", groups), ("includes", includes)];
            write_named(&toolset.name, toolset.description.as_ref(), &lists)
        };
        toolsets.iter().map(write).collect()
    }

    fn range(&self) -> String {
        format!("at most {MAX_GROUPS} of {{name, description?, tools[], groups[], includes[]}}")
    }
}

fn read_toolset(value: &Value, reader: &mut Reader) -> Option<Toolset> {
    let mut name = None;
    let mut description = None;
    let (mut tools, mut groups, mut includes) = (Vec::new(), Vec::new(), Vec::new());
    let known = ["name", "description", "tools", "groups", "includes"];
    reader.object(value, &known, |reader, key, value| match key {
        "name" => name = read_toolset_name(value, reader),
        "description" => description = read_description(value, reader),
        "tools" => tools = Selectors::plain().read(value, reader).unwrap_or_default(),
        "groups" => groups = Names::plain().read(value, reader).unwrap_or_default(),
        _ => includes = Names::plain().read(value, reader).unwrap_or_default(),
    })?;
    require_name(value, reader);
    Some(Toolset { name: name?, description, tools, groups, includes })
}

/// `*` is the toolset of everything: one of that name is none, also where it was stored.
fn read_toolset_name(value: &Value, reader: &mut Reader) -> Option<String> {
    let name = read_name(value, reader)?;
    if name == "*" {
        reader.fault("invalid_value", "`*` already means everything");
        return None;
    }
    Some(name)
}

/// Reads `aliases`: tool -> phrases; a single phrase may stand without a list.
pub(super) struct Aliases;

impl Rule for Aliases {
    type Out = BTreeMap<String, Vec<String>>;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<Self::Out> {
        let Value::Object(entries) = value else {
            reader.wrong_type("an object of tool names and phrases", value);
            return None;
        };
        if entries.len() > MAX_ENTRIES && !reader.is_lenient() {
            reader.fault("too_many", format!("at most {MAX_ENTRIES} tools, not {}", entries.len()));
            return None;
        }
        let mut aliases = BTreeMap::new();
        for (tool, phrases) in entries {
            reader.at(tool, |reader| {
                if let Some(phrases) = read_phrases(tool, phrases, reader) {
                    aliases.insert(tool.clone(), phrases);
                }
            });
        }
        Some(aliases)
    }

    fn write(&self, aliases: &Self::Out) -> Value {
        let entries = aliases.iter();
        Value::Object(entries.map(|(tool, phrases)| (tool.clone(), write_texts(phrases))).collect())
    }

    fn range(&self) -> String {
        format!("tool -> a phrase, or at most {MAX_PHRASES}, of at most {MAX_PHRASE_CHARS} characters each")
    }
}

fn read_phrases(tool: &str, value: &Value, reader: &mut Reader) -> Option<Vec<String>> {
    if tool.trim().is_empty() || tool.chars().nth(MAX_SELECTOR_CHARS).is_some() {
        reader.fault("invalid_value", format!("a tool name has 1 to {MAX_SELECTOR_CHARS} characters"));
        return None;
    }
    match value {
        Value::Null => None,
        Value::String(_) => reader.text(value, MAX_PHRASE_CHARS).map(|phrase| vec![phrase.to_owned()]),
        _ => reader.list(value, MAX_PHRASES, |reader, phrase| {
            reader.text(phrase, MAX_PHRASE_CHARS).map(str::to_owned)
        }),
    }
}
