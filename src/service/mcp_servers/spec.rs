//! How a server is set: what a caller sends, what of it is stored, and what is shown of it.
//!
//! Owns the rules of a spec. Texts of headers and variables are apart from the rest: they are sealed, and nobody reads
//! them back.

use std::fmt;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use url::Url;
use utoipa::ToSchema;

use super::args::opened;
use crate::core::digest::Digest;
use crate::core::policy::{check_header, origin_of};
use crate::core::warning::{FieldError, pointer_push};
use crate::mcp::McpAddress;
use crate::service::{Error, Kind};

/// Longest name of a server, in characters; it is the group of its tools.
const MAX_NAME_CHARS: usize = 64;

/// Longest URL, in characters.
const MAX_URL_CHARS: usize = 2_048;

/// Most headers or variables, and most arguments.
const MAX_TEXTS: usize = 32;
const MAX_ARGS: usize = 64;

/// Longest command, argument or variable, in bytes.
const MAX_ARG_BYTES: usize = 4_096;

/// Longest time between two syncs: a week.
const MAX_RESYNC_MINUTES: u32 = 10_080;

/// Headers, in lower case, that the protocol itself sends.
const PROTOCOL_HEADERS: [&str; 4] = ["accept", "last-event-id", "mcp-protocol-version", "mcp-session-id"];

/// Variables that choose which program runs, or have it load another: they would get around the settings' list.
const REFUSED_VARIABLES: [&str; 8] =
    ["BASH_ENV", "ENV", "NODE_OPTIONS", "NODE_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP"];
const REFUSED_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];

/// An MCP server as it is set.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"url": "https://mcp.example/mcp"}))]
pub struct McpServerSpec {
    /// Where the server is, over streamable HTTP. Either this or `command`.
    pub url: Option<String>,
    /// Headers for it, by name: each a text, or `{"set": true}` for the stored one, which is kept while scheme, host and port of the
    /// URL stay. Never read back. Without this key all that are stored stay; with it those that it does not name go, each with a
    /// warning; `null` takes all away.
    #[serde(deserialize_with = "null_or_object")]
    #[schema(value_type = Option<Object>)]
    pub headers: Option<Option<Map<String, Value>>>,
    /// A program that speaks MCP over its standard input and output; one that the settings name in `mcp.allow_commands`.
    pub command: Option<String>,
    /// One that holds a secret, such as the value behind `--api-key`, is sealed and read back as `***`; sent so again with the rest of the
    /// command line as it is, the stored one is kept.
    pub args: Option<Vec<String>>,
    /// Its variables beside `PATH` and `HOME`, as `headers`; the stored ones are kept while command and arguments stay.
    #[serde(deserialize_with = "null_or_object")]
    #[schema(value_type = Option<Object>)]
    pub env: Option<Option<Map<String, Value>>>,
    /// Minutes between two syncs, up to 10080; 0 (default): by hand alone.
    #[schema(maximum = 10_080)]
    pub resync_minutes: Option<u32>,
    /// Whether a connection is kept that the server can tell changes of its tools over. For servers over HTTP; default no.
    pub watch: Option<bool>,
    /// Whether a sync gives the group of the server's name a description out of the server's own instructions, where the config
    /// has none. Default no: it is proposed in the answer.
    pub write_group_description: Option<bool>,
}

/// A key that is there, with or without a value: an absent one is `None` by default.
fn null_or_object<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<Map<String, Value>>>, D::Error> {
    Option::deserialize(value).map(Some)
}

impl fmt::Debug for McpServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and variables may be secrets, and so may what stands in a URL or an argument.
        f.write_str("McpServerSpec")
    }
}

/// What is stored of a spec, without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Those that hold a secret are masked, and stand among the texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Names of its headers or variables.
    pub texts: Vec<String>,
    pub resync_minutes: u32,
    pub watch: bool,
    pub write_group_description: bool,
}

/// A name and its text; none for the stored one.
pub(super) type Text = (String, Option<SecretString>);

/// A spec that keeps the rules.
#[derive(Debug)]
pub(super) struct ReadSpec {
    pub stored: StoredSpec,
    pub texts: Vec<Text>,
    pub said: Said,
}

/// What a spec says of the headers or variables that are stored.
#[derive(Debug)]
pub(super) enum Said {
    /// All stay.
    Nothing,
    /// None stays.
    Null,
    /// Those of these names.
    Names(Vec<String>),
}

impl StoredSpec {
    /// Whom the texts are for: they are sent nowhere else.
    pub(super) fn origin(&self) -> String {
        match self.parsed_url() {
            Some(url) => origin_of(&url),
            None => {
                let line = serde_json::json!([self.command, self.args]).to_string();
                format!("command:{}", Digest::of(line.as_bytes()))
            }
        }
    }

    /// The URL, which was checked when it was written.
    fn parsed_url(&self) -> Option<Url> {
        self.url.as_ref().and_then(|url| Url::parse(url).ok())
    }

    pub(super) fn address(&self, texts: Vec<(String, SecretString)>) -> McpAddress {
        match self.parsed_url() {
            Some(url) => McpAddress::Http { url, headers: texts },
            None => {
                let (args, env) = opened(&self.args, texts);
                McpAddress::Command { command: self.command.clone().unwrap_or_default(), args, env }
            }
        }
    }

    /// How the server is spoken to, for the log of changes.
    pub(super) fn transport(&self) -> &'static str {
        if self.url.is_some() { "http" } else { "command" }
    }

    /// The key of a spec that its texts stand under.
    pub(super) fn texts_key(&self) -> &'static str {
        if self.url.is_some() { "headers" } else { "env" }
    }
}

/// Checks the name of a server.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let detail = format!("the name of a server is 1 to {MAX_NAME_CHARS} characters of A-Z a-z 0-9 . _ -");
    Err(Error::invalid("/name", "invalid_value", detail))
}

/// Reads a spec; `root` is the pointer of where it stands.
pub(super) fn read(spec: McpServerSpec, root: &str) -> Result<ReadSpec, Error> {
    let mut reader = Reader { root, faults: Vec::new() };
    let url = spec.url.as_deref().and_then(|url| reader.url(url));
    let resync_minutes = spec.resync_minutes.unwrap_or(0);
    if resync_minutes > MAX_RESYNC_MINUTES {
        reader.fault("/resync_minutes", "invalid_value", format!("0 to {MAX_RESYNC_MINUTES}"));
    }
    let watch = spec.watch.unwrap_or(false);
    let mut idle = |key: &str, is_there: bool| {
        if is_there {
            let other = if spec.url.is_some() { "url" } else { "command" };
            reader.fault(&format!("/{key}"), "invalid_value", format!("this does not go with `{other}`"));
        }
    };
    let entries = if spec.url.is_some() { &spec.headers } else { &spec.env };
    let said = match &entries {
        None => Said::Nothing,
        Some(None) => Said::Null,
        Some(Some(entries)) => Said::Names(entries.keys().cloned().collect()),
    };
    let entries = entries.clone().flatten();
    let texts = match (&spec.url, &spec.command) {
        (Some(_), None) => {
            idle("args", spec.args.is_some());
            idle("env", spec.env.as_ref().is_some_and(Option::is_some));
            reader.texts("headers", entries.unwrap_or_default(), header)
        }
        (None, Some(command)) => {
            idle("headers", spec.headers.as_ref().is_some_and(Option::is_some));
            idle("watch", watch);
            reader.line("/command", command);
            let args = spec.args.iter().flatten();
            args.clone().enumerate().for_each(|(at, arg)| reader.argument(&format!("/args/{at}"), arg));
            if args.count() > MAX_ARGS {
                reader.fault("/args", "too_many", format!("at most {MAX_ARGS} arguments"));
            }
            reader.texts("env", entries.unwrap_or_default(), variable)
        }
        (Some(_), Some(_)) => {
            reader.fault("/command", "invalid_value", "a server has either a `url` or a `command`");
            Vec::new()
        }
        (None, None) => {
            reader.fault("/url", "missing_key", "a server has either a `url` or a `command`");
            Vec::new()
        }
    };
    if !reader.faults.is_empty() {
        return Err(Error::with_errors(Kind::Invalid, reader.faults));
    }
    let stored = StoredSpec {
        url: url.map(String::from),
        command: spec.command,
        args: spec.args.unwrap_or_default(),
        texts: texts.iter().map(|(name, _)| name.clone()).collect(),
        resync_minutes,
        watch,
        write_group_description: spec.write_group_description.unwrap_or(false),
    };
    Ok(ReadSpec { stored, texts, said })
}

struct Reader<'a> {
    root: &'a str,
    faults: Vec<FieldError>,
}

impl Reader<'_> {
    fn fault(&mut self, pointer: &str, code: &'static str, detail: impl Into<String>) {
        self.faults.push(FieldError::new(format!("{}{pointer}", self.root), code, detail));
    }

    fn url(&mut self, text: &str) -> Option<Url> {
        let url = Url::parse(text).ok().filter(|_| text.len() <= MAX_URL_CHARS);
        if url.is_none() {
            let detail = format!("a URL of at most {MAX_URL_CHARS} characters, such as https://host/mcp");
            self.fault("/url", "invalid_value", detail);
        }
        url
    }

    fn line(&mut self, pointer: &str, text: &str) {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            self.fault(pointer, "invalid_value", "a name or path of a program on one line");
        } else {
            self.argument(pointer, text);
        }
    }

    fn argument(&mut self, pointer: &str, text: &str) {
        if text.len() > MAX_ARG_BYTES || text.contains('\0') {
            self.fault(pointer, "invalid_value", format!("at most {MAX_ARG_BYTES} bytes, none of them null"));
        }
    }

    /// Headers or variables; what is null or says that it is not set is absent.
    fn texts(
        &mut self,
        key: &str,
        entries: Map<String, Value>,
        check: fn(&str, &str) -> Result<(), String>,
    ) -> Vec<Text> {
        if entries.len() > MAX_TEXTS {
            self.fault(&format!("/{key}"), "too_many", format!("at most {MAX_TEXTS}"));
            return Vec::new();
        }
        let mut texts: Vec<Text> = Vec::new();
        for (name, value) in entries {
            let mut pointer = format!("/{key}");
            pointer_push(&mut pointer, &name);
            let text = match &value {
                Value::Null => continue,
                Value::String(text) => Some(text.as_str()),
                // As it is shown, with or without the last characters.
                Value::Object(shown) if shown.get("set") == Some(&Value::Bool(true)) => None,
                Value::Object(shown) if shown.get("set") == Some(&Value::Bool(false)) => continue,
                _ => {
                    self.fault(&pointer, "wrong_type", "a text or {\"set\": true} is wanted here");
                    continue;
                }
            };
            if texts.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
                self.fault(&pointer, "duplicate_name", "the name is there twice");
            }
            if let Err(detail) = check(&name, text.unwrap_or_default()) {
                self.fault(&pointer, "invalid_value", detail);
            }
            texts.push((name, text.map(|text| SecretString::from(text.to_owned()))));
        }
        texts
    }
}

fn header(name: &str, text: &str) -> Result<(), String> {
    check_header(name, text)?;
    if PROTOCOL_HEADERS.contains(&&*name.to_ascii_lowercase()) {
        return Err(format!("the header `{name}` belongs to the protocol and may not be set"));
    }
    Ok(())
}

fn variable(name: &str, text: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.bytes().all(is_plain) {
        return Err(format!("a variable's name is 1 to {MAX_NAME_CHARS} letters, digits and `_`"));
    }
    let upper = name.to_ascii_uppercase();
    if REFUSED_VARIABLES.contains(&&*upper) || REFUSED_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
    {
        return Err(format!("the variable `{name}` may not be set: it has another program run or loaded"));
    }
    if text.len() > MAX_ARG_BYTES || text.contains('\0') {
        return Err(format!("at most {MAX_ARG_BYTES} bytes, none of them null"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(spec: Value) -> Vec<String> {
        match read(serde_json::from_value(spec).unwrap(), "") {
            Ok(_) => Vec::new(),
            Err(error) => error.errors().iter().map(|error| error.pointer.clone()).collect(),
        }
    }

    #[test]
    fn a_spec_is_one_or_the_other() {
        for (spec, wanted) in [
            (json!({"url": "https://h/mcp"}), &[][..]),
            (json!({"command": "npx", "args": ["-y", "p"], "env": {"A": "b"}}), &[]),
            (json!({}), &["/url"]),
            (json!({"url": "https://h", "command": "npx"}), &["/command"]),
            (json!({"url": "mcp"}), &["/url"]),
            (json!({"url": "https://h", "args": [], "env": {}}), &["/args", "/env"]),
            (json!({"command": "npx", "headers": {}, "watch": true}), &["/headers", "/watch"]),
            (json!({"command": " "}), &["/command"]),
            (json!({"command": "a\nb"}), &["/command"]),
            (json!({"url": "https://h", "resync_minutes": 10_081}), &["/resync_minutes"]),
        ] {
            assert_eq!(pointers(spec.clone()), wanted, "{spec}");
        }
    }

    #[test]
    fn texts_that_may_not_be_sent_are_refused_without_repeating_them() {
        for name in ["Host", "Mcp-Session-Id", "ACCEPT", "a b", "Cookie"] {
            assert_eq!(pointers(json!({"url": "https://h", "headers": {name: "x"}})).len(), 1, "{name}");
        }
        for name in ["PATH", "ld_preload", "LD_LIBRARY_PATH", "NODE_OPTIONS", "A=B", "", "ENV"] {
            assert_eq!(pointers(json!({"command": "c", "env": {name: "x"}})).len(), 1, "{name}");
        }
        let spec = json!({"url": "https://h", "headers": {"X-A": "hush\n", "x-a": "b", "X-B": 5}});
        let error = read(serde_json::from_value(spec).unwrap(), "/server").unwrap_err();
        let told = format!("{:?}", error.errors());
        assert_eq!(error.errors().len(), 3, "{told}");
        assert!(told.contains("/server/headers/X-A") && !told.contains("hush"), "{told}");
    }

    #[test]
    fn texts_belong_to_one_place() {
        let origin = |spec: Value| read(serde_json::from_value(spec).unwrap(), "").unwrap().stored.origin();
        assert_eq!(origin(json!({"url": "https://h/a?b"})), "https://h:443");
        let command = |args: &[&str]| origin(json!({"command": "c", "args": args}));
        assert_eq!(command(&["a", "b"]), command(&["a", "b"]));
        assert_ne!(command(&["a", "b"]), command(&["a b"]));
        assert_ne!(command(&["a"]), command(&["b"]));
    }
}
