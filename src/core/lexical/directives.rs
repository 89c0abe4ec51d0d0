//! What people type besides words: `+term` for a word that must be there, `server: words` for one server's tools.

/// Words of one query that can be required.
pub(super) const MAX_REQUIRED: usize = 8;
/// Longest name of a server before a colon, in characters.
const MAX_SERVER_CHARS: usize = 64;
/// Words before a colon that say that a server's name follows.
const SERVER_KEYWORDS: [&str; 4] = ["server", "group", "mcp", "toolset"];

/// A query with what its marks say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directives<'a> {
    /// All of it but a keyword before the colon.
    pub(super) text: &'a str,
    /// What may be the name of a server; only an index can tell.
    pub(super) server: Option<&'a str>,
    /// What is left to search when it is one; empty when nothing is.
    pub(super) rest: &'a str,
    /// A keyword says that it is one.
    pub(super) explicit: bool,
    pub(super) required: Vec<&'a str>,
}

pub(super) fn directives(query: &str) -> Directives<'_> {
    let query = query.trim();
    let required = query
        .split_whitespace()
        .filter_map(|token| token.strip_prefix('+'))
        // `+1 415` is a telephone number.
        .filter(|term| term.starts_with(char::is_alphabetic))
        .take(MAX_REQUIRED)
        .collect();
    let is_keyword = |keyword: &str| SERVER_KEYWORDS.iter().any(|word| keyword.eq_ignore_ascii_case(word));
    let (text, server, rest, explicit) = match query.split_once(':') {
        Some((keyword, rest)) if is_keyword(keyword) && !rest.starts_with(char::is_whitespace) => {
            let (server, rest_of_it) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            (rest, Some(server), rest_of_it, true)
        }
        // `server: restart it` says what is meant, not where it is.
        Some((keyword, _)) if is_keyword(keyword) => (query, None, "", false),
        // Not a URL, nor a name with two colons.
        Some((server, rest)) if !rest.starts_with(['/', ':']) => (query, Some(server.trim()), rest, false),
        _ => (query, None, "", false),
    };
    let named = |server: &&str| !server.is_empty() && server.chars().nth(MAX_SERVER_CHARS).is_none();
    Directives { text, server: server.filter(named), rest: rest.trim(), explicit, required }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_and_other_signs_are_not() {
        let read = |query| {
            let Directives { text, server, required, .. } = directives(query);
            (text, server, required)
        };
        let rest = |query| {
            let directives = directives(query);
            (directives.rest, directives.explicit)
        };
        assert_eq!(rest("github: create issue"), ("create issue", false));
        assert_eq!(rest("Server:github create issue"), ("create issue", true));
        assert_eq!(rest("github:"), ("", false));
        assert_eq!(read("server: create issue"), ("server: create issue", None, vec![]));
        assert_eq!(read("github: create issue"), ("github: create issue", Some("github"), vec![]));
        assert_eq!(read("github:create_issue"), ("github:create_issue", Some("github"), vec![]));
        assert_eq!(read("server:github issues"), ("github issues", Some("github"), vec![]));
        assert_eq!(read("list +pull requests"), ("list +pull requests", None, vec!["pull"]));
        assert_eq!(read("https://a.example/x"), ("https://a.example/x", None, vec![]));
        assert_eq!(read("call +1 415 555 and c++ + x"), ("call +1 415 555 and c++ + x", None, vec![]));
        assert_eq!(read(": x"), (": x", None, vec![]));
        assert_eq!(read(""), ("", None, vec![]));
    }
}
