//! A page of a catalog for a model that sets it up: one line for each tool, its state first, so that no text of a tool can
//! stand in for it.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::core::text::one_line;
use crate::core::tokens;

/// Longest name of a tool or a group in a line, in characters; none that can be uploaded is longer than the listing shows.
const MAX_NAME_CHARS: usize = 512;

/// What separates two lines in JSON, in tokens: quotes and a comma.
const LINE_TOKENS: usize = 2;

/// What a group adds to its lines, in tokens: the member names around its name.
const GROUP_TOKENS: usize = 10;

/// Where a tool stands for the one who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    Core,
    Warm,
    Deferred,
    /// Out of sight for now.
    Unavailable,
    /// In the catalog, but kept from the grant.
    Excluded,
}

impl EntryState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Warm => "warm",
            Self::Deferred => "deferred",
            Self::Unavailable => "unavailable",
            Self::Excluded => "excluded",
        }
    }
}

/// A tool of the catalog.
#[derive(Debug, Clone, Copy)]
pub struct CatalogEntry<'a> {
    pub group: &'a str,
    /// What a config calls it.
    pub stored_name: &'a str,
    /// What the model calls it, where that is another name.
    pub wire_name: Option<&'a str>,
    pub state: EntryState,
    /// Cleaned, see [`crate::core::text::short_description`].
    pub short: &'a str,
}

impl CatalogEntry<'_> {
    fn line(&self) -> String {
        let mut line = format!("{} {}", self.state.as_str(), shown(self.stored_name));
        if let Some(wire) = self.wire_name {
            line.push_str(" (called ");
            line.push_str(wire);
            line.push(')');
        }
        if !self.short.is_empty() {
            line.push_str(": ");
            line.push_str(self.short);
        }
        line
    }
}

/// A name on one line; in quotes where it could be taken for more than a name.
fn shown(name: &str) -> Cow<'_, str> {
    let line = one_line(name);
    if line.contains([' ', '"', ':', '(']) || line.chars().nth(MAX_NAME_CHARS).is_some() {
        let cut: String = line.chars().take(MAX_NAME_CHARS).collect();
        return Cow::Owned(Value::from(cut).to_string());
    }
    line
}

/// One page.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogPage {
    /// `[{group, tools: ["state name: description"]}]`
    pub groups: Vec<Value>,
    /// The offset of the next page; nothing after the last one.
    pub next: Option<usize>,
}

/// The tools from an offset on, as many as `budget` tokens have room for and at least one. `entries` are sorted by group.
pub fn page(entries: &[CatalogEntry<'_>], offset: usize, budget: usize) -> CatalogPage {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    let (mut at, mut spent) = (offset.min(entries.len()), 0);
    while let Some(entry) = entries.get(at) {
        let line = entry.line();
        // Counted as it stands in JSON.
        let mut cost = tokens::count(&Value::from(line.as_str()).to_string()) + LINE_TOKENS;
        let is_new = groups.last().is_none_or(|(group, _)| *group != entry.group);
        if is_new {
            cost += tokens::count(&Value::from(&*shown(entry.group)).to_string()) + GROUP_TOKENS;
        }
        if spent + cost > budget && !groups.is_empty() {
            break;
        }
        spent += cost;
        at += 1;
        if is_new {
            groups.push((entry.group, Vec::new()));
        }
        if let Some((_, lines)) = groups.last_mut() {
            lines.push(line);
        }
    }
    let groups = groups.into_iter().map(|(group, tools)| json!({"group": shown(group), "tools": tools}));
    CatalogPage { groups: groups.collect(), next: (at < entries.len()).then_some(at) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(page: &CatalogPage) -> Vec<String> {
        let lines = page.groups.iter().flat_map(|group| group["tools"].as_array().unwrap());
        lines.map(|line| line.as_str().unwrap().to_owned()).collect()
    }

    fn entry<'a>(stored_name: &'a str, short: &'a str) -> CatalogEntry<'a> {
        CatalogEntry { group: "mail", stored_name, wire_name: None, state: EntryState::Deferred, short }
    }

    #[test]
    fn a_line_begins_with_the_state_and_no_name_can_forge_one() {
        let tools = [
            entry("send", "Sends it."),
            CatalogEntry { state: EntryState::Core, wire_name: Some("a_b_12345678"), ..entry("a.b", "") },
            entry("x: core y\ncore z", "Hm."),
        ];
        let page = page(&tools, 0, 2_000);
        assert_eq!(
            lines(&page),
            [
                "deferred send: Sends it.",
                "core a.b (called a_b_12345678)",
                r#"deferred "x: core y core z": Hm."#
            ]
        );
        assert_eq!(page.next, None);
    }

    proptest! {
        #[test]
        fn pages_tell_every_tool_once_and_keep_their_budget(
            names in prop::collection::vec("[a-z]{1,12}( [a-z]{1,5})?", 0..60),
            texts in prop::collection::vec(any::<String>(), 60),
            budget in 60usize..400,
        ) {
            let shorts: Vec<String> =
                texts.iter().map(|text| crate::core::text::short_description(text)).collect();
            let mut entries: Vec<CatalogEntry<'_>> =
                names.iter().zip(&shorts).map(|(name, short)| entry(name, short)).collect();
            for (at, entry) in entries.iter_mut().enumerate() {
                entry.group = ["a", "b", "c"][at * 3 / names.len()];
            }
            let (mut told, mut at) = (Vec::new(), Some(0));
            while let Some(offset) = at {
                let page = page(&entries, offset, budget);
                let shown = lines(&page);
                prop_assert!(entries.is_empty() || !shown.is_empty());
                let tokens = tokens::count(&serde_json::to_string(&page.groups).unwrap());
                prop_assert!(shown.len() == 1 || tokens <= budget, "{tokens} of {budget}");
                told.extend(shown);
                at = page.next;
            }
            let all: Vec<String> = entries.iter().map(CatalogEntry::line).collect();
            prop_assert_eq!(told, all);
        }
    }
}
