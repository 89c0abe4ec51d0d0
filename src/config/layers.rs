//! The table of settings, and how their values are read from each layer and joined; `kinds` knows what they look like.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::kinds::{Kind, Read, Value, address, collector, headers};
use super::{
    AuditSettings, AuthSettings, CacheSettings, ConfigError, DatabaseCheck, DatabaseSettings, DatabaseUrl,
    EffectiveSetting, LimitSettings, LogFormat, LogSettings, McpSettings, Origin, RerankSettings,
    SecretSettings, ServerSettings, SessionSettings, Settings, TracingSettings,
};

/// What every variable of this program starts with.
const PREFIX: &str = "TOOLRACK_";

/// The key that only a flag may set.
const NO_AUTH: &str = "auth.no_auth";

const MIB: u64 = 1024 * 1024;

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
    key("log.slow_request_ms", Kind::Integer(0, 3_600_000)),
    key("tracing.otlp_endpoint", Kind::Collector),
    key("tracing.otlp_headers", Kind::Headers),
    key("tracing.sample_ratio", Kind::Ratio),
    key("tracing.service_name", Kind::Text),
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
                slow_request: Some(milliseconds("log.slow_request_ms")?).filter(|time| !time.is_zero()),
            },
            tracing: TracingSettings {
                otlp_endpoint: collector(self.text("tracing.otlp_endpoint")?),
                otlp_headers: headers(self.text("tracing.otlp_headers")?).unwrap_or_default(),
                sample_ratio: self.ratio("tracing.sample_ratio")?,
                service_name: self.text("tracing.service_name")?.to_owned(),
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

    fn ratio(&self, path: &'static str) -> Result<f64, ConfigError> {
        self.get(path, |value| if let Value::Ratio(ratio) = value { Some(*ratio) } else { None })
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
