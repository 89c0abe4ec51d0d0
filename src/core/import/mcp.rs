//! `mcp.json` as Claude Desktop, Claude Code and Cursor (`mcpServers`), VS Code (`servers` and `inputs`) and Hermes
//! (`mcp_servers`) keep it.

use std::collections::HashSet;

use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;

use super::Reading;
use super::placeholders;
use super::servers::{AlwaysLoad, SecretValues, ServerSpec, Transport};
use super::settings::{flag, fold, under};
use super::told::Told;
use crate::core::format::ingest::MAX_GROUP_CHARS;
use crate::core::policy::name_fault;
use crate::core::text::{clip, one_line};

/// Most servers of one document.
const MAX_SERVERS: usize = 500;
/// Most arguments, headers or variables of one server.
const MAX_VALUES: usize = 200;

/// Keys that programs have for themselves, with what there is here instead.
const OTHERS: &[(&str, &str)] = &[
    ("env_file", "no file is read here: give its variables in `env`"),
    ("cwd", "a command runs in no folder of its own here: name files by their whole path"),
    ("headers_helper", "no command is run for headers here: give them in `headers`"),
    ("oauth", "signing in by OAuth is the agent's: give a token in `headers`"),
    ("auth", "signing in is the agent's: give a token in `headers`"),
    ("always_allow", "approvals stay with the agent"),
    ("auto_approve", "approvals stay with the agent"),
    ("trust", "approvals stay with the agent"),
    ("tools", "to hide tools of a server, name them in `deny`"),
    ("include_tools", "to hide tools of a server, name them in `deny`"),
    ("exclude_tools", "to hide tools of a server, name them in `deny`"),
    ("disabled_tools", "to hide tools of a server, name them in `deny`"),
    ("timeout", "the time of a listing is the operator's setting"),
    ("connect_timeout", "the time of a listing is the operator's setting"),
    ("dev", "it is for those who develop the server"),
    ("gallery", "it is a note of the editor"),
    ("version", "it is a note of the editor"),
    ("description", "a server's own instructions, or `groups` of a config, describe its tools"),
    ("name", "the key of the entry is the server's name"),
];

/// Reads the object of servers by name. `inputs` is VS Code's list of what it asks people for.
pub(super) fn read(servers: &Map<String, Value>, inputs: Option<&Value>, at: &str, out: &mut Reading) {
    if servers.len() > MAX_SERVERS {
        let detail = format!("the first {MAX_SERVERS} servers are read, not all {}", servers.len());
        out.told.add("server_left_out", at, detail);
    }
    for (name, entry) in servers.iter().take(MAX_SERVERS) {
        let pointer = under(at, name);
        let Value::Object(entry) = entry else {
            out.told.add("server_left_out", pointer, "a server is an object with `url` or `command`");
            continue;
        };
        let name = name.trim();
        if name.is_empty() || name.chars().nth(MAX_GROUP_CHARS).is_some() {
            let detail = format!("a server's name has 1 to {MAX_GROUP_CHARS} characters");
            out.told.add("server_left_out", pointer, detail);
            continue;
        }
        if let Some(fault) = name_fault(name) {
            out.told.add("server_left_out", pointer, fault);
            continue;
        }
        if out.servers.iter().any(|server| server.name == name) {
            out.told.add("server_left_out", pointer, format!("a server `{name}` stands before this one"));
            continue;
        }
        let mut server = Server { entry, at: &pointer, told: &mut out.told, taken: HashSet::new() };
        let Some(transport) = server.transport() else { continue };
        let always_load = server.always_load();
        server.tell_the_rest();
        let placeholders = placeholders_of(&transport);
        if !placeholders.is_empty() {
            let asked: Vec<String> = placeholders.iter().map(|name| described(name, inputs)).collect();
            let detail = format!("give a value for {} before the server is used", asked.join(", "));
            out.told.add("placeholder_kept", pointer.clone(), detail);
        }
        let core = match &always_load {
            AlwaysLoad::None => Value::Null,
            AlwaysLoad::All => Value::from(format!("@{name}")),
            AlwaysLoad::Names(names) => Value::from(names.as_slice()),
        };
        if !core.is_null() {
            out.config.add_core(&core, &pointer);
        }
        out.servers.push(ServerSpec { name: name.to_owned(), transport, always_load, pointer, placeholders });
    }
}

struct Server<'a> {
    entry: &'a Map<String, Value>,
    at: &'a str,
    told: &'a mut Told,
    /// Keys that were read.
    taken: HashSet<&'a str>,
}

impl<'a> Server<'a> {
    /// The value under one of these keys, in any spelling.
    fn take(&mut self, names: &[&str]) -> Option<(&'a str, &'a Value)> {
        let mut found = None;
        for (key, value) in self.entry {
            if names.contains(&fold(key).as_str()) {
                self.taken.insert(key);
                found = found.or_else(|| Some((key.as_str(), value)).filter(|_| !value.is_null()));
            }
        }
        found
    }

    fn text(&mut self, names: &[&str]) -> Option<&'a str> {
        let (_, value) = self.take(names)?;
        value.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    fn left_out<T>(&mut self, detail: impl Into<String>) -> Option<T> {
        self.told.add("server_left_out", self.at, detail);
        None
    }

    fn transport(&mut self) -> Option<Transport> {
        let is_off = self.take(&["disabled"]).is_some_and(|(_, value)| flag(value) == Value::Bool(true))
            || self.take(&["enabled"]).is_some_and(|(_, value)| flag(value) == Value::Bool(false));
        if is_off {
            return self.left_out("the server is switched off");
        }
        let kind = self.text(&["type", "transport"]).map(fold);
        let url = self.text(&["url", "server_url", "http_url"]);
        let command = self.text(&["command"]);
        match (kind.as_deref(), url, command) {
            (Some("ws" | "websocket"), ..) => {
                self.left_out("WebSocket is not spoken here: use the server's streamable HTTP address")
            }
            (Some("stdio"), _, Some(command)) | (None, None, Some(command)) => self.stdio(command),
            (Some("stdio"), _, None) => self.left_out("a server of type stdio needs a `command`"),
            (kind, Some(url), _) => self.http(kind, url),
            // A type that says HTTP beside a command: the command is what there is.
            (_, None, Some(command)) => self.stdio(command),
            (_, None, None) => self.left_out("a server needs a `url` or a `command`"),
        }
    }

    fn stdio(&mut self, command: &str) -> Option<Transport> {
        let args = match self.take(&["args"]) {
            None => Vec::new(),
            Some((_, Value::Array(args))) if args.len() <= MAX_VALUES => {
                let texts: Option<Vec<String>> = args.iter().map(scalar).collect();
                match texts {
                    Some(texts) => texts,
                    None => return self.left_out("`args` must be a list of texts"),
                }
            }
            Some(_) => return self.left_out(format!("`args` must be a list of at most {MAX_VALUES} texts")),
        };
        let env = self.secret_values(&["env"])?;
        Some(Transport::Stdio { command: command.to_owned(), args, env })
    }

    fn http(&mut self, kind: Option<&str>, url: &str) -> Option<Transport> {
        let is_open = !placeholders::names_in(url).is_empty();
        let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        if !is_open && parsed.is_none_or(|url| url.host_str().is_none_or(str::is_empty)) {
            return self.left_out("`url` must be an http or https address");
        }
        if kind == Some("sse") {
            let detail = "the older SSE transport is not spoken here: give the address of the server's streamable HTTP";
            self.told.add("import_adapted", self.at, detail);
        }
        let headers = self.secret_values(&["headers"])?;
        Some(Transport::Http { url: url.to_owned(), headers })
    }

    fn secret_values(&mut self, names: &[&str]) -> Option<SecretValues> {
        let Some((key, value)) = self.take(names) else { return Some(Vec::new()) };
        let Some(values) = value.as_object().filter(|values| values.len() <= MAX_VALUES) else {
            return self.left_out(format!("`{key}` must be an object of at most {MAX_VALUES} texts"));
        };
        let mut read = Vec::new();
        for (name, value) in values.iter().filter(|(_, value)| !value.is_null()) {
            match scalar(value) {
                Some(text) => read.push((name.clone(), SecretString::from(text))),
                None => return self.left_out(format!("the values of `{key}` must be texts")),
            }
        }
        Some(read)
    }

    fn always_load(&mut self) -> AlwaysLoad {
        let Some((key, value)) = self.take(&["always_load"]) else { return AlwaysLoad::None };
        let names: Option<Vec<String>> = match value {
            Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        match (flag(value), names) {
            (Value::Bool(true), _) => AlwaysLoad::All,
            (Value::Bool(false), _) => AlwaysLoad::None,
            (_, Some(names)) if !names.is_empty() => AlwaysLoad::Names(names),
            (_, Some(_)) => AlwaysLoad::None,
            _ => {
                let detail = "`alwaysLoad` is true, false or a list of tools";
                self.told.add("unusable_import_value", under(self.at, key), detail);
                AlwaysLoad::None
            }
        }
    }

    /// Warns of every key that was not read.
    fn tell_the_rest(&mut self) {
        for (key, value) in self.entry {
            if self.taken.contains(key.as_str()) || value.is_null() {
                continue;
            }
            let folded = fold(key);
            let pointer = under(self.at, key);
            match OTHERS.iter().find(|(name, _)| *name == folded) {
                Some((_, advice)) => self.told.add("no_counterpart", pointer, *advice),
                None => {
                    let detail = format!("`{key}` is not read here");
                    self.told.add("unknown_import_key", pointer, detail);
                }
            }
        }
    }
}

/// A text, or what programs write as one.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn placeholders_of(transport: &Transport) -> Vec<String> {
    use secrecy::ExposeSecret as _;
    let (texts, values): (Vec<&str>, _) = match transport {
        Transport::Http { url, headers } => (vec![url], headers),
        Transport::Stdio { command, args, env } => {
            (std::iter::once(command).chain(args).map(String::as_str).collect(), env)
        }
    };
    let values = values.iter().map(|(_, value)| value.expose_secret());
    let mut names: Vec<String> = Vec::new();
    for name in texts.into_iter().chain(values).flat_map(placeholders::names_in) {
        if !names.iter().any(|known| known == name) && names.len() < MAX_VALUES {
            names.push(name.to_owned());
        }
    }
    names
}

/// A placeholder with what the editor would say when it asks for it.
fn described(placeholder: &str, inputs: Option<&Value>) -> String {
    let id = placeholder.strip_prefix("${input:").and_then(|rest| rest.strip_suffix('}'));
    let input = id.and_then(|id| {
        let inputs = inputs?.as_array()?;
        inputs.iter().take(MAX_VALUES).find(|input| input.get("id").and_then(Value::as_str) == Some(id))
    });
    match input.and_then(|input| input.get("description")).and_then(Value::as_str) {
        Some(description) => format!("`{placeholder}` ({})", clip(&one_line(description), 100)),
        None => format!("`{placeholder}`"),
    }
}
