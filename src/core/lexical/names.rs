//! Exact names: finding the tools that a query names, whatever case, separators or server prefix it writes.

use super::analyzer::fold;
use super::terms::{Key, Kind};

/// Separators between a server and a tool, and between the words of a name.
const JOINERS: [char; 5] = ['_', '-', '.', '/', ':'];
/// Names longer than this, in characters, are not looked up.
const MAX_NAME_CHARS: usize = 256;
/// Prefixes that are tried away from one name: `mcp__server__tool` has two.
const MAX_PREFIXES: usize = 4;
/// Letters of a word that can mean a group.
const SHORTEST_GROUP_WORD: usize = 3;

/// One way to write the name of a document.
#[derive(Debug, Clone, Copy)]
struct NameKey {
    key: u64,
    document: u32,
    /// The name itself or group and name, not a part of it.
    whole: bool,
    /// The name looks like an identifier (two words or more), so it does not turn up in a sentence by chance.
    identifier: bool,
}

/// The names of an index's documents.
#[derive(Debug, Default)]
pub(super) struct Names {
    keys: Vec<NameKey>,
}

/// A document that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) document: u32,
    /// Matched by its whole name, not by the part behind a prefix.
    pub(super) whole: bool,
    pub(super) identifier: bool,
}

impl Names {
    /// Adds the ways in which `document` can be named. Call [`Names::finish`] after the last one.
    pub(super) fn add(&mut self, document: u32, group: &str, name: &str) {
        let identifier = is_identifier(name);
        let mut add = |parts: [&str; 2], whole: bool, identifier: bool| {
            if let Some(key) = folded_key(Kind::Name, &parts) {
                self.keys.push(NameKey { key, document, whole, identifier });
            }
        };
        add([name, ""], true, identifier);
        if !group.is_empty() {
            add([group, name], true, true);
        }
        for suffix in suffixes(name) {
            add([suffix, ""], false, true);
        }
        // Some clients put the server behind the name: `addPerson_mcp_pipedrive`.
        if let Some((tool, _)) = name.split_once("_mcp_") {
            add([tool, ""], false, is_identifier(tool));
        }
    }

    pub(super) fn finish(&mut self) {
        // Of two keys of one document the whole name's stays.
        self.keys.sort_unstable_by_key(|entry| (entry.key, entry.document, !entry.whole));
        self.keys.dedup_by_key(|entry| (entry.key, entry.document));
        self.keys.shrink_to_fit();
    }

    pub(super) fn find(&self, key: u64) -> impl Iterator<Item = Named> {
        let start = self.keys.partition_point(|entry| entry.key < key);
        self.keys[start..].iter().take_while(move |entry| entry.key == key).map(|entry| Named {
            document: entry.document,
            whole: entry.whole,
            identifier: entry.identifier,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.len() * size_of::<NameKey>()
    }
}

/// The keys under which `text` may name a tool, the most complete first: as it stands, then without server prefixes.
pub(super) fn keys_of(text: &str) -> impl Iterator<Item = u64> {
    std::iter::once(text)
        .chain(suffixes(text).filter(|_| !text.contains(char::is_whitespace)))
        .filter_map(|text| folded_key(Kind::Name, &[text, ""]))
}

/// The keys under which people may name a group: as it stands, without what stands before a slash (a registry), and without
/// the words that most servers have in their names.
pub(super) fn group_keys(group: &str) -> impl Iterator<Item = u64> {
    let last = group.rsplit('/').next().unwrap_or_default();
    let own: String = last
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.eq_ignore_ascii_case("mcp") && !word.eq_ignore_ascii_case("server"))
        .collect();
    let keys = [group, last, &own].map(|name| folded_key(Kind::Group, &[name]));
    (0..keys.len()).filter(move |&at| !keys[..at].contains(&keys[at])).filter_map(move |at| keys[at])
}

/// The keys of the words of a group's name, by which people may mean it where no group has the whole name.
pub(super) fn group_word_keys(group: &str) -> impl Iterator<Item = u64> {
    let words = group
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= SHORTEST_GROUP_WORD);
    let own = words.filter(|word| !word.eq_ignore_ascii_case("mcp") && !word.eq_ignore_ascii_case("server"));
    own.filter_map(|word| folded_key(Kind::GroupWord, &[word]))
}

/// The words of a query that look like identifiers, so that a tool called `list` is not named by every sentence with it.
pub(super) fn identifiers(query: &str) -> impl Iterator<Item = &str> {
    query
        .split(|c: char| !c.is_alphanumeric() && !JOINERS.contains(&c))
        .map(|token| token.trim_matches(JOINERS))
        .filter(|token| is_identifier(token))
}

/// Two words or more: a separator or white space inside, or a capital after a small letter.
fn is_identifier(name: &str) -> bool {
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    name.contains(|c: char| JOINERS.contains(&c) || c.is_whitespace())
        || name.chars().zip(name.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase())
}

/// What is left of `name` behind each server prefix. Behind a double underscore that may be one word, behind a single
/// character only an identifier: `and/or` is not a prefixed `or`.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    let double = name.match_indices("__").map(|(at, _)| name[at..].trim_start_matches('_'));
    let single = name
        .match_indices(['.', '/', ':'])
        .map(|(at, separator)| &name[at + separator.len()..])
        .filter(|suffix| is_identifier(suffix));
    double.take(MAX_PREFIXES).chain(single.take(MAX_PREFIXES))
}

/// The key of a name without case, accents and separators; `None` when no letter or digit is left.
fn folded_key(kind: Kind, parts: &[&str]) -> Option<u64> {
    let mut key = Key::new(kind);
    let mut left = MAX_NAME_CHARS;
    let mut folded = Vec::new();
    for part in parts {
        if part.is_ascii() {
            for byte in part.bytes().filter(u8::is_ascii_alphanumeric).take(left) {
                key = key.byte(byte.to_ascii_lowercase());
                left -= 1;
            }
        } else {
            fold(part, &mut folded);
            let mut buffer = [0; 4];
            for &character in folded.iter().filter(|c| c.is_alphanumeric()).take(left) {
                key = character.to_lowercase().fold(key, |key, c| key.text(c.encode_utf8(&mut buffer)));
                left -= 1;
            }
        }
    }
    (left < MAX_NAME_CHARS).then(|| key.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[(&str, &str)]) -> Names {
        let mut names = Names::default();
        for (document, (group, name)) in (0..).zip(list) {
            names.add(document, group, name);
        }
        names.finish();
        names
    }

    fn found(names: &Names, text: &str) -> Vec<u32> {
        keys_of(text)
            .map(|key| names.find(key).map(|named| named.document).collect())
            .find(|d: &Vec<u32>| !d.is_empty())
            .unwrap_or_default()
    }

    #[test]
    fn a_name_is_found_however_it_is_written() {
        let names = names(&[
            ("files", "list_directory"),
            ("", "mcp__git__statusAll"),
            ("", "addPerson_mcp_pipedrive"),
            ("", "日本 検索"),
        ]);
        for text in [
            "list_directory",
            "ListDirectory",
            "list directory",
            "LIST-DIRECTORY",
            "mcp__files__list_directory",
            "files.list_directory",
            "files list directory",
        ] {
            assert_eq!(found(&names, text), [0], "{text}");
        }
        assert_eq!(found(&names, "status_all"), [1]);
        assert_eq!(found(&names, "mcp__git__statusAll"), [1]);
        assert_eq!(found(&names, "addPerson"), [2]);
        assert_eq!(found(&names, "日本検索"), [3]);
        for text in ["", "___", "directory", "list"] {
            assert!(found(&names, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn only_identifiers_are_names_inside_a_sentence() {
        let query = "use `search_graph`, then getUser() or/and list, e.g. file.read: done. - x";
        assert_eq!(
            identifiers(query).collect::<Vec<_>>(),
            ["search_graph", "getUser", "or/and", "e.g", "file.read"]
        );
    }
}
