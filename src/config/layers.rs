//! The table of settings, and how their values are read from each layer and joined.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::{
    AuditSettings, AuthSettings, CacheSettings, ConfigError, DatabaseCheck, DatabaseSettings, DatabaseUrl,
    EffectiveSetting, LimitSettings, LogFormat, LogSettings, McpSettings, Origin, RerankSettings,
    SecretSettings, ServerSettings, SessionSettings, Settings,
};

/// What every variable of this program starts with.
const PREFIX: &str = "TOOLRACK_";

/// Shortest admin key, in characters: 32 hexadecimal digits hold 128 random bits.
const MIN_ADMIN_KEY_CHARS: usize = 32;

/// What an admin key must have, after "must have" or "has to have".
pub(super) const ADMIN_KEY_FORM: &str = "at least 32 characters, visible ASCII without spaces";

/// The key that only a flag may set.
const NO_AUTH: &str = "auth.no_auth";

const MIB: u64 = 1024 * 1024;

/// What a value must look like.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Address,
    Text,
    /// May be empty, which means that it is not set.
    Path,
    /// May be empty, which means that it is not set.
    AdminKey,
    /// May be empty, which means that it is not set.
    MasterKey,
    DatabaseUrl,
    Integer(u64, u64),
    Flag,
    Hosts,
    Commands,
    Origins,
    OneOf(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy)]
struct Key {
    /// Section and key with a dot between, or the key alone.
    path: &'static str,
    kind: Kind,
}

const fn key(path: &'static str, kind: Kind) -> Key {
    Key { path, kind }
}

/// All settings, in the order of the manual.
const KEYS: &[Key] = &[
    key("listen", Kind::Address),
    key("database.url", Kind::DatabaseUrl),
    key("database.check", Kind::OneOf(&["quick", "full", "off"])),
    key("database.max_bytes", Kind::Integer(0, 1024 * 1024 * 1024 * MIB)),
    key("auth.admin_key", Kind::AdminKey),
    key("auth.key_file", Kind::Path),
    key(NO_AUTH, Kind::Flag),
    key("secrets.master_key", Kind::MasterKey),
    key("secrets.previous_master_key", Kind::MasterKey),
    key("secrets.key_file", Kind::Path),
    key("limits.body_bytes", Kind::Integer(1024, 1024 * MIB)),
    key("limits.tools_per_catalog", Kind::Integer(1, 1_000_000)),
    key("limits.tool_bytes", Kind::Integer(256, 16 * MIB)),
    key("limits.depth", Kind::Integer(8, 127)),
    key("limits.query_chars", Kind::Integer(16, 100_000)),
    key("limits.queries", Kind::Integer(1, 1000)),
    key("limits.names", Kind::Integer(1, 1000)),
    key("limits.calls", Kind::Integer(1, 1000)),
    key("limits.request_timeout_ms", Kind::Integer(100, 3_600_000)),
    key("limits.requests_per_second", Kind::Integer(0, 1_000_000)),
    key("limits.burst", Kind::Integer(1, 1_000_000)),
    key("limits.rerank_per_minute", Kind::Integer(0, 1_000_000)),
    key("limits.admin_requests_per_second", Kind::Integer(0, 1_000_000)),
    key("limits.concurrent_requests", Kind::Integer(2, 100_000)),
    key("limits.waiting_requests", Kind::Integer(0, 100_000)),
    key("limits.connections", Kind::Integer(2, 1_000_000)),
    key("limits.sessions_per_user", Kind::Integer(1, 10_000_000)),
    key("limits.scopes_per_key", Kind::Integer(1, 10_000_000)),
    key("limits.drain_ms", Kind::Integer(0, 600_000)),
    key("session.ttl_seconds", Kind::Integer(60, 315_360_000)),
    key("session.flush_ms", Kind::Integer(10, 60_000)),
    key("cache.catalogs_bytes", Kind::Integer(MIB, 1024 * 1024 * MIB)),
    key("cache.views_bytes", Kind::Integer(MIB, 1024 * 1024 * MIB)),
    key("cache.vectors_bytes", Kind::Integer(MIB, 1024 * 1024 * MIB)),
    key("cache.answers_bytes", Kind::Integer(0, 1024 * 1024 * MIB)),
    key("cache.sessions", Kind::Integer(1, 10_000_000)),
    key("rerank.allow_private", Kind::Flag),
    key("rerank.allowed_hosts", Kind::Hosts),
    key("mcp.allow_commands", Kind::Commands),
    key("mcp.timeout_ms", Kind::Integer(100, 600_000)),
    key("audit.max_entries", Kind::Integer(100, 100_000_000)),
    key("audit.days", Kind::Integer(1, 36_500)),
    key("log.level", Kind::Text),
    key("log.format", Kind::OneOf(&["text", "json"])),
    key("server.workers", Kind::Integer(0, 1024)),
    key("server.cors_origins", Kind::Origins),
];

fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The error for a key that is not in the table, with the keys of its section.
fn unknown(origin: &Origin, path: &str) -> ConfigError {
    let section = path.split_once('.').map(|(section, _)| format!("{section}."));
    let beside = |key: &&Key| section.as_ref().is_some_and(|section| key.path.starts_with(section.as_str()));
    let mut known: Vec<&str> = KEYS.iter().filter(beside).map(|key| key.path).collect();
    if known.is_empty() {
        known = KEYS.iter().map(|key| key.path.split('.').next().unwrap_or_default()).collect();
        known.dedup();
    }
    ConfigError::UnknownKey { origin: origin.clone(), key: path.to_owned(), known: known.join(", ") }
}

impl Key {
    fn variable(&self) -> String {
        format!("{PREFIX}{}", self.path.replace('.', "_").to_uppercase())
    }

    fn flag_only(&self) -> bool {
        self.path == NO_AUTH
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    Integer(u64),
    Flag(bool),
    List(Vec<String>),
}

/// A value, or what it should be.
type Read = Result<Value, String>;

impl Kind {
    /// Reads a variable or a flag.
    fn read_text(self, text: &str) -> Read {
        match self {
            Self::Integer(..) => match text.trim().parse() {
                Ok(number) => self.check(Value::Integer(number)),
                Err(_) => Err(self.wanted()),
            },
            Self::Flag => match text.trim() {
                "true" | "1" => Ok(Value::Flag(true)),
                "false" | "0" => Ok(Value::Flag(false)),
                _ => Err(self.wanted()),
            },
            Self::Hosts | Self::Commands | Self::Origins => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                self.check(Value::List(items.map(str::to_owned).collect()))
            }
            _ => self.check(Value::Text(text.to_owned())),
        }
    }

    /// Reads a value of a file.
    fn read_toml(self, value: toml::Value) -> Read {
        let value = match value {
            toml::Value::String(text) => Value::Text(text),
            toml::Value::Integer(number) => Value::Integer(u64::try_from(number).map_err(|_| self.wanted())?),
            toml::Value::Boolean(flag) => Value::Flag(flag),
            toml::Value::Array(items) => {
                let items = items.into_iter().map(|item| match item {
                    toml::Value::String(text) => Ok(text),
                    _ => Err(self.wanted()),
                });
                Value::List(items.collect::<Result<_, _>>()?)
            }
            _ => return Err(self.wanted()),
        };
        self.check(value)
    }

    fn check(self, value: Value) -> Read {
        let good = match (self, &value) {
            (Self::Address, Value::Text(text)) => address(text).is_some(),
            (Self::Text | Self::DatabaseUrl, Value::Text(text)) => !text.trim().is_empty(),
            (Self::Path, Value::Text(_)) | (Self::Flag, Value::Flag(_)) => true,
            (Self::AdminKey, Value::Text(text)) => text.is_empty() || is_admin_key(text),
            (Self::MasterKey, Value::Text(text)) => {
                text.is_empty() || (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            }
            (Self::Integer(min, max), Value::Integer(number)) => (min..=max).contains(number),
            (Self::Hosts, Value::List(hosts)) => hosts.iter().all(|host| is_host(host)),
            (Self::Commands, Value::List(commands)) => commands.iter().all(|command| is_command(command)),
            (Self::Origins, Value::List(origins)) => origins.iter().all(|origin| is_origin(origin)),
            (Self::OneOf(names), Value::Text(text)) => names.contains(&text.as_str()),
            _ => false,
        };
        if good { Ok(value) } else { Err(self.wanted()) }
    }

    /// The end of the sentence that starts with the key.
    fn wanted(self) -> String {
        match self {
            Self::Address => "must be an IP address and a port, such as 127.0.0.1:8480".to_owned(),
            Self::Text | Self::DatabaseUrl => "must be a text that is not empty".to_owned(),
            Self::Path => "must be the name of a file".to_owned(),
            Self::AdminKey => format!("must have {ADMIN_KEY_FORM}"),
            Self::MasterKey => "must be 64 hexadecimal digits".to_owned(),
            Self::Integer(min, max) => format!("must be an integer from {min} to {max}"),
            Self::Flag => "must be true or false".to_owned(),
            Self::Hosts => "must be a list of hosts, each as `host` or `host:port`".to_owned(),
            Self::Commands => "must be a list of names or absolute paths of programs".to_owned(),
            Self::Origins => {
                "must be a list of origins, each as `https://host` or `https://host:port`".to_owned()
            }
            Self::OneOf(names) => format!("must be one of {}", names.join(", ")),
        }
    }

    /// A value as it would stand in a file, secrets masked.
    fn show(self, value: &Value) -> String {
        match (self, value) {
            (Self::AdminKey | Self::MasterKey, Value::Text(text)) if !text.is_empty() => "\"***\"".to_owned(),
            (Self::DatabaseUrl, Value::Text(text)) => format!("{:?}", DatabaseUrl(text.clone()).to_string()),
            (_, Value::Text(text)) => format!("{text:?}"),
            (_, Value::Integer(number)) => number.to_string(),
            (_, Value::Flag(flag)) => flag.to_string(),
            (_, Value::List(items)) => format!("{items:?}"),
        }
    }
}

/// Whether a text is long enough for an admin key, and can stand in a header.
pub(super) fn is_admin_key(text: &str) -> bool {
    text.len() >= MIN_ADMIN_KEY_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::from(([127, 0, 0, 1], port.parse().ok()?))),
        None => text.parse().ok(),
    }
}

fn is_host(host: &str) -> bool {
    !host.is_empty()
        && host.len() <= 260
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
}

/// Whether a text names a program: by a name without folders, or by its whole path.
fn is_command(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 4_096
        && text.trim() == text
        && !text.chars().any(char::is_control)
        && (text.starts_with('/') || !text.contains('/'))
}

/// Whether a text is an origin as browsers write it, so that it can be compared as it is.
fn is_origin(text: &str) -> bool {
    let written = url::Url::parse(text).map(|url| url.origin().ascii_serialization());
    text.starts_with("http") && written.is_ok_and(|written| written == text)
}

/// The joined values, by key.
#[derive(Debug)]
pub(super) struct Layers {
    values: BTreeMap<&'static str, (Value, Origin)>,
}

impl Layers {
    /// No layer yet; only what can be set by a flag alone has its default, because it may not stand in a file.
    pub(super) fn new() -> Self {
        Self { values: BTreeMap::from([(NO_AUTH, (Value::Flag(false), Origin::Default))]) }
    }

    fn set(&mut self, key: &'static Key, value: Read, origin: Origin) -> Result<(), ConfigError> {
        match value {
            Ok(value) => {
                self.values.insert(key.path, (value, origin));
                Ok(())
            }
            Err(reason) => Err(ConfigError::BadValue { origin, key: key.path, reason }),
        }
    }

    pub(super) fn add_file(&mut self, text: &str, origin: &Origin) -> Result<(), ConfigError> {
        let table: toml::Table = toml::from_str(text).map_err(|error| {
            // The whole error quotes the line, which may hold a key.
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            ConfigError::Syntax {
                origin: origin.clone(),
                message: format!("line {line}: {}", error.message()),
            }
        })?;
        for (section, value) in table {
            match value {
                toml::Value::Table(entries) => {
                    for (name, value) in entries {
                        self.add_entry(&format!("{section}.{name}"), value, origin)?;
                    }
                }
                value => self.add_entry(&section, value, origin)?,
            }
        }
        Ok(())
    }

    fn add_entry(&mut self, path: &str, value: toml::Value, origin: &Origin) -> Result<(), ConfigError> {
        let key = find(path).ok_or_else(|| unknown(origin, path))?;
        let value = if key.flag_only() { Err(only_a_flag()) } else { key.kind.read_toml(value) };
        self.set(key, value, origin.clone())
    }

    pub(super) fn add_env(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Vec<String>, ConfigError> {
        let mut warnings = Vec::new();
        for (name, text) in variables {
            if !name.starts_with(PREFIX) {
                continue;
            }
            let Some(key) = KEYS.iter().find(|key| key.variable() == name) else {
                warnings.push(format!("the variable {name} is no setting and is not used"));
                continue;
            };
            let value = if key.flag_only() { Err(only_a_flag()) } else { key.kind.read_text(&text) };
            self.set(key, value, Origin::Env(name))?;
        }
        warnings.sort();
        Ok(warnings)
    }

    pub(super) fn add_flag(&mut self, path: &str, text: &str) -> Result<(), ConfigError> {
        let key = find(path).ok_or_else(|| unknown(&Origin::Flag, path))?;
        self.set(key, key.kind.read_text(text), Origin::Flag)
    }

    pub(super) fn settings(&self) -> Result<Settings, ConfigError> {
        let milliseconds = |path| self.integer(path).map(Duration::from_millis);
        Ok(Settings {
            listen: address(self.text("listen")?).ok_or(ConfigError::Missing("listen"))?,
            database: DatabaseSettings {
                url: DatabaseUrl(self.text("database.url")?.to_owned()),
                check: match self.text("database.check")? {
                    "full" => DatabaseCheck::Full,
                    "off" => DatabaseCheck::Off,
                    _ => DatabaseCheck::Quick,
                },
                max_bytes: Some(self.integer("database.max_bytes")?).filter(|bytes| *bytes > 0),
            },
            auth: AuthSettings {
                admin_key: self.secret("auth.admin_key")?,
                key_file: self.path("auth.key_file")?,
                no_auth: self.flag(NO_AUTH)?,
            },
            secrets: SecretSettings {
                master_key: self.secret("secrets.master_key")?,
                previous_master_key: self.secret("secrets.previous_master_key")?,
                key_file: self.path("secrets.key_file")?,
            },
            limits: LimitSettings {
                body_bytes: self.size("limits.body_bytes")?,
                tools_per_catalog: self.size("limits.tools_per_catalog")?,
                tool_bytes: self.size("limits.tool_bytes")?,
                depth: self.size("limits.depth")?,
                query_chars: self.size("limits.query_chars")?,
                queries: self.size("limits.queries")?,
                names: self.size("limits.names")?,
                calls: self.size("limits.calls")?,
                request_timeout: milliseconds("limits.request_timeout_ms")?,
                requests_per_second: self.count("limits.requests_per_second")?,
                burst: self.count("limits.burst")?,
                rerank_per_minute: self.count("limits.rerank_per_minute")?,
                admin_requests_per_second: self.count("limits.admin_requests_per_second")?,
                concurrent_requests: self.size("limits.concurrent_requests")?,
                waiting_requests: self.size("limits.waiting_requests")?,
                connections: self.size("limits.connections")?,
                sessions_per_user: self.count("limits.sessions_per_user")?,
                scopes_per_key: self.count("limits.scopes_per_key")?,
                drain: milliseconds("limits.drain_ms")?,
            },
            session: SessionSettings {
                ttl: Duration::from_secs(self.integer("session.ttl_seconds")?),
                flush: milliseconds("session.flush_ms")?,
            },
            cache: CacheSettings {
                catalogs_bytes: self.integer("cache.catalogs_bytes")?,
                views_bytes: self.integer("cache.views_bytes")?,
                vectors_bytes: self.integer("cache.vectors_bytes")?,
                answers_bytes: self.integer("cache.answers_bytes")?,
                sessions: self.integer("cache.sessions")?,
            },
            rerank: RerankSettings {
                allow_private: self.flag("rerank.allow_private")?,
                allowed_hosts: self
                    .list("rerank.allowed_hosts")?
                    .iter()
                    .map(|host| host.to_lowercase())
                    .collect(),
            },
            mcp: McpSettings {
                allow_commands: self.list("mcp.allow_commands")?.to_vec(),
                timeout: milliseconds("mcp.timeout_ms")?,
            },
            audit: AuditSettings {
                max_entries: self.count("audit.max_entries")?,
                days: self.count("audit.days")?,
            },
            log: LogSettings {
                level: self.text("log.level")?.to_owned(),
                format: match self.text("log.format")? {
                    "json" => LogFormat::Json,
                    _ => LogFormat::Text,
                },
            },
            server: ServerSettings {
                workers: self.size("server.workers")?,
                cors_origins: self.list("server.cors_origins")?.to_vec(),
            },
            effective: self.effective(),
        })
    }

    fn effective(&self) -> Vec<EffectiveSetting> {
        let show = |key: &Key| {
            let (value, origin) = self.values.get(key.path)?;
            Some(EffectiveSetting { key: key.path, value: key.kind.show(value), origin: origin.clone() })
        };
        KEYS.iter().filter_map(show).collect()
    }

    fn get<'a, T>(
        &'a self,
        path: &'static str,
        take: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, ConfigError> {
        self.values.get(path).and_then(|(value, _)| take(value)).ok_or(ConfigError::Missing(path))
    }

    fn text(&self, path: &'static str) -> Result<&str, ConfigError> {
        self.get(path, |value| if let Value::Text(text) = value { Some(text.as_str()) } else { None })
    }

    fn secret(&self, path: &'static str) -> Result<Option<SecretString>, ConfigError> {
        let text = self.text(path)?;
        Ok(if text.is_empty() { None } else { Some(text.to_owned().into()) })
    }

    fn path(&self, path: &'static str) -> Result<Option<PathBuf>, ConfigError> {
        Ok(Some(self.text(path)?).filter(|text| !text.is_empty()).map(PathBuf::from))
    }

    fn integer(&self, path: &'static str) -> Result<u64, ConfigError> {
        self.get(path, |value| if let Value::Integer(number) = value { Some(*number) } else { None })
    }

    fn size(&self, path: &'static str) -> Result<usize, ConfigError> {
        Ok(usize::try_from(self.integer(path)?).unwrap_or(usize::MAX))
    }

    fn count(&self, path: &'static str) -> Result<u32, ConfigError> {
        Ok(u32::try_from(self.integer(path)?).unwrap_or(u32::MAX))
    }

    fn flag(&self, path: &'static str) -> Result<bool, ConfigError> {
        self.get(path, |value| if let Value::Flag(flag) = value { Some(*flag) } else { None })
    }

    fn list(&self, path: &'static str) -> Result<&[String], ConfigError> {
        self.get(path, |value| if let Value::List(items) = value { Some(items.as_slice()) } else { None })
    }
}

fn only_a_flag() -> String {
    "can be set by the flag --no-auth only".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DEFAULTS;

    #[test]
    fn a_command_is_a_name_or_a_whole_path() {
        for (command, fine) in [
            ("npx", true),
            ("/opt/mcp/files", true),
            ("./npx", false),
            ("bin/npx", false),
            (" npx", false),
            ("", false),
        ] {
            assert_eq!(is_command(command), fine, "{command:?}");
        }
    }

    #[test]
    fn origins_are_taken_as_browsers_write_them() {
        for good in ["https://app.example", "http://localhost:3000", "http://[::1]:8080"] {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "*",
            "null",
            "",
            "app.example",
            "https://app.example/",
            "https://App.example",
            "https://a.example:443",
        ] {
            assert!(!is_origin(bad), "{bad}");
        }
        assert!(!is_origin("https://a.example/path") && !is_origin("ftp://a.example"));
    }

    #[test]
    fn the_manual_tells_every_range() {
        for key in KEYS {
            let Kind::Integer(min, max) = key.kind else { continue };
            let line = format!("\n{} = ", key.path.rsplit('.').next().unwrap());
            let comment = DEFAULTS.split(&line).next().unwrap().rsplit("\n\n").next().unwrap();
            let comment = comment.lines().rev().take_while(|line| line.starts_with('#')).collect::<String>();
            assert!(comment.contains(&format!("({min} to {max})")), "{}: {comment}", key.path);
        }
    }
}
