//! Tools by the beginnings of their names, as servers and clients write themselves into them (`github_…`, `mcp__github__…`).
//!
//! Pure texts: a prefix ends where a part of a name ends, so that `git` is no prefix of `github_pull`.

use std::collections::BTreeMap;

use super::words::{is_verb, says_how};
use crate::core::lexical::Vocabulary;

/// Fewest tools that make a beginning one of a group.
const LEAST_TOOLS: usize = 3;
/// Parts of a name that are looked at.
const MAX_PARTS: usize = 4;
/// Share of all tools from which on a beginning tells nothing, in percent.
const TELLS_NOTHING_PCT: usize = 70;
/// Share of a beginning's tools that longer ones must take for these to stand in its place, in percent; and fewest tools of each.
const SPLITS_PCT: usize = 80;
const LEAST_PARTED: usize = 5;

/// Bits below which a word that says little elsewhere says nothing in front of a name either.
const COMMON_BITS: f32 = 4.5;

/// Parts that say that something is a tool, not whose.
pub(super) const NOISE: &str =
    "mcp server servers tool tools api apis function functions plugin plugins app apps client my the a x";

/// Tools with a common beginning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prefixed {
    /// What the beginning calls the group.
    pub name: String,
    /// As the names write it, separator included; nothing where the name stands at their end.
    pub prefix: Option<String>,
    /// Ids, ascending.
    pub tools: Vec<u32>,
}

/// Groups by the beginnings of names. `all` is how many tools there are with those that have a group already.
pub(super) fn prefixed(names: &[(u32, &str)], all: usize) -> Vec<Prefixed> {
    let mut finder = Finder { all, vocabulary: Vocabulary::default(), found: Vec::new() };
    let (marked, rest): (Vec<_>, Vec<_>) = names.iter().partition(|(_, name)| server_behind(name).is_some());
    let mut behind: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    marked
        .iter()
        .for_each(|(id, name)| behind.entry(server_behind(name).unwrap_or_default()).or_default().push(*id));
    for (server, tools) in behind.into_iter().filter(|(_, tools)| tools.len() >= LEAST_TOOLS) {
        finder.found.push(Prefixed { name: server.to_lowercase(), prefix: None, tools });
    }
    finder.look(&rest, 0);
    let mut found = finder.found;
    found.iter_mut().for_each(|group| group.tools.sort_unstable());
    found
}

/// The server behind a name, as some clients write it: `addPerson_mcp_pipedrive`.
fn server_behind(name: &str) -> Option<&str> {
    let (tool, server) = name.split_once("_mcp_")?;
    (!tool.is_empty() && !server.is_empty()).then_some(server)
}

struct Finder {
    all: usize,
    vocabulary: Vocabulary,
    found: Vec<Prefixed>,
}

impl Finder {
    /// Finds groups among names that share their first `depth` parts; gives back those that are in none.
    fn look<'a>(&mut self, names: &[(u32, &'a str)], depth: usize) -> Vec<(u32, &'a str)> {
        let mut by_prefix: BTreeMap<&str, Vec<(u32, &str)>> = BTreeMap::new();
        let mut left = Vec::new();
        for (id, name) in names {
            match part(name, depth) {
                // A whole name is no beginning.
                Some((_, end)) if end < name.len() => {
                    by_prefix.entry(&name[..end]).or_default().push((*id, name));
                }
                _ => left.push((*id, *name)),
            }
        }
        for (prefix, tools) in by_prefix {
            if tools.len() < LEAST_TOOLS {
                left.extend(tools);
                continue;
            }
            left.extend(self.group(prefix, tools, depth));
        }
        left
    }

    fn group<'a>(&mut self, prefix: &str, tools: Vec<(u32, &'a str)>, depth: usize) -> Vec<(u32, &'a str)> {
        let said = part(prefix, depth).map(|(part, _)| part.to_lowercase()).unwrap_or_default();
        let is_noise = NOISE.split_whitespace().any(|noise| noise == said);
        let too_common = tools.len() * 100 > self.all * TELLS_NOTHING_PCT && tools.len() > 12;
        if !is_noise && self.says_how(&said) {
            return tools;
        }
        if depth + 1 >= MAX_PARTS {
            if is_noise || too_common {
                return tools;
            }
            self.take(prefix, &tools);
            return Vec::new();
        }
        let before = self.found.len();
        let left = self.look(&tools, depth + 1);
        if is_noise || too_common {
            return left;
        }
        let inner = self.found.get(before..).unwrap_or_default();
        let is_whole = inner.len() == 1 && left.is_empty();
        let large = inner.len() >= 2 && inner.iter().all(|group| group.tools.len() >= LEAST_PARTED);
        if is_whole || (large && (tools.len() - left.len()) * 100 >= tools.len() * SPLITS_PCT) {
            return self.rest(prefix, left);
        }
        self.found.truncate(before);
        self.take(prefix, &tools);
        Vec::new()
    }

    /// What is left of a beginning whose longer ones are groups.
    fn rest<'a>(&mut self, prefix: &str, left: Vec<(u32, &'a str)>) -> Vec<(u32, &'a str)> {
        if left.len() < LEAST_TOOLS {
            return left;
        }
        self.take(prefix, &left);
        Vec::new()
    }

    fn take(&mut self, prefix: &str, tools: &[(u32, &str)]) {
        let parts = (0..MAX_PARTS).map_while(|at| part(prefix, at)).map(|(part, _)| part.to_lowercase());
        let own: Vec<String> =
            parts.filter(|part| !NOISE.split_whitespace().any(|noise| noise == part.as_str())).collect();
        let name = own.join("_");
        let tools = tools.iter().map(|(id, _)| *id).collect();
        self.found.push(Prefixed { name, prefix: Some(prefix.to_owned()), tools });
    }

    /// Whether a part says what is done, or is no word at all.
    fn says_how(&mut self, part: &str) -> bool {
        let words = self.vocabulary.words(part);
        // What the background knows as common is an object all the same where it stands in front: `file_read`.
        words.first().is_none_or(|word| {
            is_verb(&word.written) || (says_how(word) && (word.is_action() || word.bits() < COMMON_BITS))
        })
    }
}

/// The part of a name at a depth, and where what is behind it begins: separators belong to the part before them.
fn part(name: &str, depth: usize) -> Option<(&str, usize)> {
    let mut start = 0;
    for at in 0..=depth {
        let (length, end) = first_part(name.get(start..)?)?;
        if at == depth {
            return Some((&name[start..start + length], start + end));
        }
        start += end;
    }
    None
}

/// Length of the first part of a text, and where the next one begins; nothing where there is no part.
fn first_part(text: &str) -> Option<(usize, usize)> {
    let is_separator = |character: char| !character.is_alphanumeric();
    let mut before: Option<char> = None;
    for (at, character) in text.char_indices() {
        if is_separator(character) {
            if at == 0 {
                return None;
            }
            let end = text[at..].find(|next| !is_separator(next)).map_or(text.len(), |offset| at + offset);
            return Some((at, end));
        }
        if character.is_uppercase() && before.is_some_and(char::is_lowercase) {
            return Some((at, at));
        }
        before = Some(character);
    }
    (!text.is_empty()).then_some((text.len(), text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str], all: usize) -> Vec<(String, Option<String>, usize)> {
        let numbered: Vec<(u32, &str)> = (0..).zip(names.iter().copied()).collect();
        let groups = prefixed(&numbered, all);
        groups.into_iter().map(|group| (group.name, group.prefix, group.tools.len())).collect()
    }

    #[test]
    fn servers_are_found_whatever_they_are_wrapped_in() {
        let names = [
            "mcp__github__create_issue",
            "mcp__github__list_issues",
            "mcp__github__get_issue",
            "mcp__slack__post",
            "mcp__slack__list",
            "mcp__slack__read",
            "gitPush",
            "gitPull",
            "gitStatus",
            "addPerson_mcp_pipedrive",
            "addDeal_mcp_pipedrive",
            "getDeal_mcp_pipedrive",
            "get_weather",
            "get_time",
            "get_place",
            "files",
        ];
        let wanted = [
            ("pipedrive", None, 3),
            ("git", Some("git"), 3),
            ("github", Some("mcp__github__"), 3),
            ("slack", Some("mcp__slack__"), 3),
        ];
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|(name, prefix, tools)| (name.to_owned(), prefix.map(str::to_owned), tools))
            .collect();
        assert_eq!(found(&names, 40), wanted);
    }

    #[test]
    fn families_are_parted_where_their_parts_take_nearly_all() {
        let names = [
            "google_calendar_list",
            "google_calendar_add",
            "google_calendar_drop",
            "google_calendar_move",
            "google_calendar_get",
            "google_drive_list",
            "google_drive_add",
            "google_drive_drop",
            "google_drive_move",
            "google_drive_get",
            "MAIL_BOX__A",
            "MAIL_BOX__B",
            "MAIL_BOX__C",
            "jira_get_issue",
            "jira_get_board",
            "jira_get_sprint",
            "jira_create_issue",
        ];
        let groups: Vec<String> = found(&names, 40).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(groups, ["mail_box", "google_calendar", "google_drive", "jira"]);
    }

    #[test]
    fn a_beginning_that_nearly_all_have_tells_nothing() {
        let names: Vec<String> =
            (0..30).map(|at| format!("acme_{}", ["red", "blue", "green"][at % 3].repeat(at + 1))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(found(&names, 30), []);
        assert_eq!(found(&names, 300).len(), 1);
    }
}
