//! Arguments of commands that hold secrets: which part of each is one, and the arguments without them.
//!
//! A guess, by the name that stands before a value and by what keys look like. It may hide what is none, and what is called by
//! nothing and looks like nothing it does not see: such a value belongs into the environment.

use std::ops::Range;

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// Words of a name that say that its value is a secret.
const SECRET_WORDS: [&str; 14] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "key",
    "passwd",
    "password",
    "pat",
    "secret",
    "token",
    "pwd",
];

/// Beginnings of keys as their issuers write them.
const KEY_BEGINNINGS: [&str; 18] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xox",
    "hf_",
    "npm_",
    "AKIA",
    "AIza",
    "eyJ",
    "lin_api_",
    "ntn_",
];

/// Shortest text that may be a key of one of these, and shortest that is taken for one by its letters and digits alone.
const LEAST_KEY: usize = 12;
const LEAST_NAMELESS: usize = 32;

/// The arguments with each secret masked; masked ones stay as they are.
pub fn masked(args: &[String]) -> Vec<String> {
    let mut before = None;
    let mut shown = Vec::with_capacity(args.len());
    for arg in args {
        shown.push(without(arg, &secrets(arg, before)));
        before = Some(arg.as_str());
    }
    shown
}

/// The secrets among the arguments, those behind `Bearer` without that word as well.
pub fn secrets_of(args: &[String]) -> Vec<&str> {
    let mut before = None;
    let mut found = Vec::new();
    for arg in args {
        for secret in secrets(arg, before).into_iter().map(|range| &arg[range]) {
            if !secret.is_empty() && !is_left_open(secret) {
                found.extend(
                    [Some(secret), secret.rsplit_once(' ').map(|(_, last)| last)].into_iter().flatten(),
                );
            }
        }
        before = Some(arg.as_str());
    }
    found
}

fn without(arg: &str, secrets: &[Range<usize>]) -> String {
    let (mut text, mut from) = (String::with_capacity(arg.len()), 0);
    for secret in secrets.iter().filter(|secret| !secret.is_empty() && !is_left_open(&arg[(*secret).clone()]))
    {
        text.push_str(&arg[from..secret.start]);
        text.push_str(MASK);
        from = secret.end;
    }
    text.push_str(&arg[from..]);
    text
}

/// Whether a value is only a place for one: `${TOKEN}`, `Bearer ${env:TOKEN}`, `$TOKEN`.
fn is_left_open(value: &str) -> bool {
    let value = value.strip_prefix("Bearer ").unwrap_or(value);
    let is_braced = value.starts_with("${") && value.find('}') == Some(value.len() - 1);
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    is_braced || value.strip_prefix('$').is_some_and(is_name) || value == MASK
}

/// Where the secrets of an argument stand, in their order. `before`: the argument before it.
fn secrets(arg: &str, before: Option<&str>) -> Vec<Range<usize>> {
    let whole = 0..arg.len();
    let is_flag = arg.starts_with('-');
    if let Some(name) = before.and_then(flag_without_value) {
        if !is_flag && is_header_flag(name) {
            return one(header_value(arg).unwrap_or(whole));
        }
        if !is_flag && is_secret_name(name) {
            return one(whole);
        }
    }
    // `--token=x`, `TOKEN=x`, and a header behind `--header=`.
    if let Some((name, value)) = arg.split_once('=').filter(|(name, _)| is_name(name.trim_start_matches('-')))
    {
        let start = name.len() + 1;
        if is_header_flag(name) {
            let inside = header_value(value).unwrap_or(0..value.len());
            return one(start + inside.start..start + inside.end);
        }
        if is_secret_name(name) {
            return one(start..arg.len());
        }
        let inside = secrets(value, None);
        return inside.into_iter().map(|range| start + range.start..start + range.end).collect();
    }
    if let Some((name, _)) = arg.split_once(':').filter(|(name, _)| is_name(name) && is_secret_name(name))
        && let Some(value) = header_value(arg)
        && arg.as_bytes().get(name.len() + 1) == Some(&b' ')
    {
        return one(value);
    }
    if arg.contains("://") {
        return in_address(arg);
    }
    if looks_like_a_key(arg) { one(whole) } else { Vec::new() }
}

fn one(secret: Range<usize>) -> Vec<Range<usize>> {
    std::iter::once(secret).collect()
}

/// The name of a flag whose value is the next argument.
fn flag_without_value(arg: &str) -> Option<&str> {
    (arg.starts_with('-') && !arg.contains('=') && is_name(arg.trim_start_matches('-'))).then_some(arg)
}

fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_plain)
}

fn is_header_flag(name: &str) -> bool {
    name == "-H" || ["header", "headers"].contains(&name.trim_start_matches('-'))
}

/// Whether one of the words of a name says that a secret is meant: `--api-key`, `GITHUB_TOKEN`, `accessToken`.
fn is_secret_name(name: &str) -> bool {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        let begins = character.is_ascii_uppercase() && was_lower;
        if begins || !character.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        was_lower = character.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| character.is_ascii_alphanumeric()) {
            word.push(character.to_ascii_lowercase());
        }
    }
    let is_secret = |word: &String| {
        let one = word.strip_suffix('s').unwrap_or(word);
        [word.as_str(), one].iter().any(|word| {
            SECRET_WORDS.contains(word)
                || ["token", "apikey", "password", "secret"].iter().any(|end| word.ends_with(end))
        })
    };
    words.iter().any(is_secret)
}

/// The value of a header, `Bearer` and the like included.
fn header_value(header: &str) -> Option<Range<usize>> {
    let colon = header.find(':')?;
    let value = header[colon + 1..].trim_start();
    Some(header.len() - value.len()..header.len())
}

/// User and password of an address, and values of its query that are called like secrets or look like keys.
fn in_address(arg: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let start = arg.find("://").map_or(0, |at| at + 3);
    let end = arg[start..].find(['/', '?', '#']).map_or(arg.len(), |at| start + at);
    if let Some(at) = arg[start..end].rfind('@') {
        let user = &arg[start..start + at];
        let from = user.find(':').map_or(start, |colon| start + colon + 1);
        found.push(from..start + at);
    }
    let Some(query) = arg[end..].find('?').map(|at| end + at + 1) else { return found };
    let mut from = query;
    for pair in arg[query..].split('&') {
        if let Some((name, value)) = pair.split_once('=')
            && (is_secret_name(name) || looks_like_a_key(value))
        {
            found.push(from + name.len() + 1..from + pair.len());
        }
        from += pair.len() + 1;
    }
    found
}

fn looks_like_a_key(text: &str) -> bool {
    let text = text.strip_prefix("Bearer ").unwrap_or(text);
    let is_of_keys = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte);
    if text.len() < LEAST_KEY || !text.bytes().all(is_of_keys) {
        return false;
    }
    if KEY_BEGINNINGS.iter().any(|begin| text.starts_with(begin)) {
        return true;
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    text.len() >= LEAST_NAMELESS
        && is_plain
        && digits >= 4
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(args: &[&str]) -> String {
        masked(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()).join(" | ")
    }

    #[test]
    fn secrets_are_masked_where_people_write_them() {
        for (args, expected) in [
            (&["--api-key", "x"][..], "--api-key | ***"),
            (&["--api-key=x", "--port=1"], "--api-key=*** | --port=1"),
            (&["--apiKey", "x", "y"], "--apiKey | *** | y"),
            (&["-e", "GITHUB_TOKEN=x", "-e", "HOME=/x"], "-e | GITHUB_TOKEN=*** | -e | HOME=/x"),
            (&["--header", "Authorization: Bearer x"], "--header | Authorization: ***"),
            (
                &["--header", "Authorization:x", "-H", "X-One: y"],
                "--header | Authorization:*** | -H | X-One: ***",
            ),
            (&["--header=X-Api-Key: x"], "--header=X-Api-Key: ***"),
            (&["postgres://me:x@h/db"], "postgres://me:***@h/db"),
            (&["https://h/mcp?api_key=x&n=1&exaApiKey=y#f"], "https://h/mcp?api_key=***&n=1&exaApiKey=***"),
            (&["--dsn=postgres://me:x@h/db"], "--dsn=postgres://me:***@h/db"),
            (&["sk-proj-0123456789", "ghp_0123456789abcdef"], "*** | ***"),
            (&["0a1b2c3d4e5f60718293a4b5c6d7e8f9"], "***"),
            // What is none.
            (
                &["-y", "@scope/server-token", "--tokens-file", "-v"],
                "-y | @scope/server-token | --tokens-file | -v",
            ),
            (&["--api-key", "${API_KEY}", "--token=$TOKEN"], "--api-key | ${API_KEY} | --token=$TOKEN"),
            (&["--header", "Authorization: Bearer ${env:T}"], "--header | Authorization: Bearer ${env:T}"),
            (
                &["/home/me/files", "--transport", "http-only", "https://h:8/mcp"],
                "/home/me/files | --transport | http-only | https://h:8/mcp",
            ),
            (&["--api-key", "***", "--token=***"], "--api-key | *** | --token=***"),
        ] {
            assert_eq!(shown(args), expected, "{args:?}");
        }
    }

    #[test]
    fn secrets_are_told_apart_from_what_stands_before_them() {
        let args = ["--header", "Authorization: Bearer abc", "--token=x", "--key", "${K}"].map(str::to_owned);
        assert_eq!(secrets_of(&args), ["Bearer abc", "abc", "x"]);
    }

    proptest! {
        #[test]
        fn masking_twice_is_masking_once(args in proptest::collection::vec("[-=:/@?&a-zäA-K0-9 $*{}]{0,40}|--token|--header", 0..6)) {
            let once = masked(&args);
            prop_assert_eq!(once.len(), args.len());
            prop_assert_eq!(masked(&once), once);
        }
    }
}
