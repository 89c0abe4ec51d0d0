//! Settings of the process: where to listen, where the state is, limits, keys.
//!
//! Owns the order of the layers: built-in defaults (`deploy/toolrack.default.toml`), a file,
//! `TOOLRACK_<SECTION>_<KEY>` variables, flags (`layers` has the table of keys). Reads no files and no environment itself, and must not know what
//! a setting is used for. What users configure for their sessions is not here, but in `core::policy`.

mod kinds;
mod layers;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use url::Url;

use self::layers::Layers;

/// Reads the admin key out of the text of its file; the error says what one must look like.
pub fn admin_key_in_file(text: &str) -> Result<SecretString, &'static str> {
    let key = text.trim();
    if kinds::is_admin_key(key) { Ok(key.to_owned().into()) } else { Err(kinds::ADMIN_KEY_FORM) }
}

/// The lowest layer, and the manual of all settings.
pub const DEFAULTS: &str = include_str!("../../deploy/toolrack.default.toml");

/// All settings, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    pub database: DatabaseSettings,
    pub auth: AuthSettings,
    pub secrets: SecretSettings,
    pub limits: LimitSettings,
    pub session: SessionSettings,
    pub cache: CacheSettings,
    pub rerank: RerankSettings,
    pub mcp: McpSettings,
    pub audit: AuditSettings,
    pub log: LogSettings,
    pub tracing: TracingSettings,
    pub server: ServerSettings,
    effective: Vec<EffectiveSetting>,
}

#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    pub url: DatabaseUrl,
    pub check: DatabaseCheck,
    /// `None`: as large as the disk.
    pub max_bytes: Option<u64>,
}

/// How thoroughly the database is looked at before the service uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseCheck {
    Quick,
    Full,
    Off,
}

/// The address of a database, which may hold a password: shown without it.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The whole text, with a password if there is one.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, parameters) = match self.0.split_once('?') {
            Some((address, _)) => (address, "?..."),
            None => (self.0.as_str(), ""),
        };
        let parts =
            address.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1)));
        match parts {
            Some((scheme, host)) => write!(f, "{scheme}://***@{host}{parameters}"),
            None => write!(f, "{address}{parameters}"),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, Clone)]
pub struct AuthSettings {
    pub admin_key: Option<SecretString>,
    /// Holds the admin key in place of `admin_key`; never set beside it.
    pub key_file: Option<PathBuf>,
    /// Set by the flag alone, so that no file or variable left behind can open a service.
    pub no_auth: bool,
}

#[derive(Debug, Clone)]
pub struct SecretSettings {
    /// 64 hexadecimal digits.
    pub master_key: Option<SecretString>,
    /// The one before it, while not everything is sealed with the present one.
    pub previous_master_key: Option<SecretString>,
    /// `None`: beside the database file.
    pub key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSettings {
    pub body_bytes: usize,
    pub tools_per_catalog: usize,
    pub tool_bytes: usize,
    /// Arrays and objects inside each other.
    pub depth: usize,
    pub query_chars: usize,
    pub queries: usize,
    pub names: usize,
    pub calls: usize,
    pub request_timeout: Duration,
    /// Of a stored key that says nothing else; 0: no limit.
    pub requests_per_second: u32,
    pub burst: u32,
    /// Of a stored key that says nothing else; 0: no limit.
    pub rerank_per_minute: u32,
    /// Of the admin key of the settings, or of all where there is no authentication; 0: no limit.
    pub admin_requests_per_second: u32,
    pub concurrent_requests: usize,
    pub waiting_requests: usize,
    /// Open at the same time.
    pub connections: usize,
    pub sessions_per_user: u32,
    pub scopes_per_key: u32,
    /// How long running requests may take to end on shutdown.
    pub drain: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    pub ttl: Duration,
    pub flush: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    pub catalogs_bytes: u64,
    pub views_bytes: u64,
    pub vectors_bytes: u64,
    pub answers_bytes: u64,
    /// Entries, not bytes.
    pub sessions: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerankSettings {
    pub allow_private: bool,
    /// `host` or `host:port`, in lower case; empty: any public host.
    pub allowed_hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettings {
    /// Names or paths of programs that may be run as MCP servers; empty: none.
    pub allow_commands: Vec<String>,
    /// Of reading one server.
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    pub max_entries: u32,
    pub days: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// A level or filter directives, as `tracing-subscriber` reads them.
    pub level: String,
    pub format: LogFormat,
    /// A request that takes so long is told; `None`: none is.
    pub slow_request: Option<Duration>,
}

/// Where traces are sent.
#[derive(Debug, Clone)]
pub struct TracingSettings {
    /// `None`: nowhere.
    pub otlp_endpoint: Option<Url>,
    /// Sent with each request to it.
    pub otlp_headers: Vec<(String, SecretString)>,
    /// Of the requests that no trace of their caller's decides about, from 0 to 1.
    pub sample_ratio: f64,
    pub service_name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Worker threads; 0: one per processor.
    pub workers: usize,
    /// Origins, as browsers write them, whose pages may read answers.
    pub cors_origins: Vec<String>,
}

/// One setting as `check-config` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// For example `limits.body_bytes`.
    pub key: &'static str,
    /// As it would stand in a settings file; secrets are masked.
    pub value: String,
    /// The layer that the value comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// The name of the file, as it was given.
    File(String),
    /// The name of the variable.
    Env(String),
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(name) => write!(f, "file {name}"),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// Why the settings cannot be used. Never repeats a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{origin}: {message}")]
    Syntax { origin: Origin, message: String },
    #[error("{origin}: there is no setting `{key}`; known here: {known}")]
    UnknownKey { origin: Origin, key: String, known: String },
    #[error("{origin}: `{key}` {reason}")]
    BadValue { origin: Origin, key: &'static str, reason: String },
    #[error("`{0}` has no value")]
    Missing(&'static str),
    #[error(
        "auth.admin_key and auth.key_file are both set; which one counts would be a guess, so set one of them"
    )]
    TwoAdminKeys,
    #[error("--no-auth is allowed on a loopback address only, and {0} is not one")]
    NoAuthInPublic(SocketAddr),
}

/// The layers above the built-in defaults.
#[derive(Debug, Clone, Default)]
pub struct Sources<E> {
    /// Name and text of the settings file.
    pub file: Option<(String, String)>,
    /// The environment; variables of other programs are passed over. (`std::env::vars` panics when any of these is
    /// not Unicode: take `vars_os`.)
    pub env: E,
    /// Keys and values from the command line, such as `("database.url", "sqlite://a.db")`.
    pub flags: Vec<(&'static str, String)>,
}

impl Settings {
    /// Joins and checks all layers. The texts beside the settings are warnings for the operator.
    pub fn load<E>(sources: Sources<E>) -> Result<(Self, Vec<String>), ConfigError>
    where
        E: IntoIterator<Item = (String, String)>,
    {
        let mut layers = Layers::new();
        layers.add_file(DEFAULTS, &Origin::Default)?;
        if let Some((name, text)) = sources.file {
            layers.add_file(&text, &Origin::File(name))?;
        }
        let mut warnings = layers.add_env(sources.env)?;
        for (key, text) in sources.flags {
            layers.add_flag(key, &text)?;
        }
        let settings = layers.settings()?;
        let AuthSettings { admin_key, key_file, no_auth } = &settings.auth;
        if admin_key.is_some() && key_file.is_some() {
            return Err(ConfigError::TwoAdminKeys);
        }
        if *no_auth && (admin_key.is_some() || key_file.is_some()) {
            warnings.push("an admin key is set, but --no-auth makes everybody admin".to_owned());
        }
        Ok((settings, warnings))
    }

    /// Every setting with its origin, in the order of the manual.
    pub fn origins(&self) -> &[EffectiveSetting] {
        &self.effective
    }

    /// Whether a server may start like this: with keys, or without for this machine alone.
    pub fn check_access(&self) -> Result<(), ConfigError> {
        if self.auth.no_auth && !self.listen.ip().is_loopback() {
            return Err(ConfigError::NoAuthInPublic(self.listen));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const KEY: &str = "a-secret-admin-key-of-enough-length";

    fn load(
        file: &str,
        env: &[(&str, &str)],
        flags: &[(&'static str, &str)],
    ) -> Result<(Settings, Vec<String>), ConfigError> {
        Settings::load(Sources {
            file: Some(("my.toml".to_owned(), file.to_owned())),
            env: env.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())),
            flags: flags.iter().map(|(key, text)| (*key, (*text).to_owned())).collect(),
        })
    }

    fn refused(file: &str, env: &[(&str, &str)]) -> String {
        load(file, env, &[]).expect_err("must be refused").to_string()
    }

    #[test]
    fn defaults_are_complete_and_as_published() {
        let (settings, warnings) = load("", &[], &[]).unwrap();
        assert!(warnings.is_empty());
        assert_eq!(settings.listen.to_string(), "127.0.0.1:8480");
        assert_eq!(settings.limits.body_bytes, 16 * 1024 * 1024);
        assert_eq!((settings.limits.tools_per_catalog, settings.limits.depth), (20_000, 64));
        assert_eq!(settings.session.ttl, Duration::from_secs(7 * 24 * 3600));
        assert!(settings.auth.admin_key.is_none() && settings.secrets.key_file.is_none());
        assert!(settings.origins().iter().all(|setting| setting.origin == Origin::Default));
    }

    #[test]
    fn the_manual_lists_every_key_once_with_its_variable() {
        let (settings, _) = load("", &[], &[]).unwrap();
        for setting in settings.origins().iter().filter(|setting| setting.key != "auth.no_auth") {
            let (section, name) = setting.key.split_once('.').unwrap_or(("none", setting.key));
            let section =
                DEFAULTS.split(&format!("[{section}]\n")).last().unwrap().split("\n[").next().unwrap();
            let lines = section.lines().filter(|line| line.starts_with(&format!("{name} = ")));
            assert_eq!(lines.count(), 1, "{name}");
        }
    }

    #[test]
    fn later_layers_win_and_tell_where_a_value_comes_from() {
        let file = "listen = '0.0.0.0:1'\n[limits]\nqueries = 7\nnames = 7\n[rerank]\nallowed_hosts = ['A.example:1']";
        let env = [("TOOLRACK_LIMITS_NAMES", "8"), ("TOOLRACK_RERANK_ALLOW_PRIVATE", "true"), ("HOME", "/x")];
        let (settings, _) = load(file, &env, &[("listen", "localhost:0")]).unwrap();
        assert_eq!((settings.limits.queries, settings.limits.names, settings.limits.calls), (7, 8, 20));
        assert!(settings.rerank.allow_private);
        assert_eq!(settings.rerank.allowed_hosts, ["a.example:1"]);
        assert_eq!(settings.listen.to_string(), "127.0.0.1:0");
        let origin = |key| {
            let setting = settings.origins().iter().find(|setting| setting.key == key).unwrap();
            format!("{} ({})", setting.value, setting.origin)
        };
        assert_eq!(origin("listen"), "\"localhost:0\" (flag)");
        assert_eq!(origin("limits.names"), "8 (env TOOLRACK_LIMITS_NAMES)");
        assert_eq!(origin("limits.queries"), "7 (file my.toml)");
        assert_eq!(origin("limits.calls"), "20 (default)");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let unknown = refused("[limits]\nbody_size = 3", &[]);
        assert!(unknown.starts_with("file my.toml: there is no setting `limits.body_size`"), "{unknown}");
        assert!(unknown.contains("limits.body_bytes"), "{unknown}");
        assert!(refused("[limit]\nx = 3", &[]).contains("known here: listen, database, auth"));
        assert!(refused("limits = 3", &[]).contains("`limits`"));
        assert_eq!(
            refused("[limits]\ndepth = '64'", &[]),
            "file my.toml: `limits.depth` must be an integer from 8 to 127"
        );
        for bad in ["128", "-1", "x", "", "64.0"] {
            let message = refused("", &[("TOOLRACK_LIMITS_DEPTH", bad)]);
            assert_eq!(message, "env TOOLRACK_LIMITS_DEPTH: `limits.depth` must be an integer from 8 to 127");
        }
        assert!(refused("[log]\nformat = 'xml'", &[]).ends_with("must be one of text, json"));
        assert!(refused("a = 1\nb = = 2", &[]).starts_with("file my.toml: line 2: "));
        assert!(refused("[auth]\nno_auth = true", &[]).contains("--no-auth only"));
        assert!(refused("", &[("TOOLRACK_AUTH_NO_AUTH", "true")]).contains("--no-auth only"));
    }

    #[test]
    fn an_unknown_variable_is_a_warning() {
        let (_, warnings) = load("", &[("TOOLRACK_LIMTS_DEPTH", "9"), ("TOOLRACKER", "1")], &[]).unwrap();
        assert_eq!(warnings, ["the variable TOOLRACK_LIMTS_DEPTH is no setting and is not used"]);
    }

    #[test]
    fn secrets_are_read_but_never_shown() {
        let master = "0123456789abcdef".repeat(4);
        let file = format!(
            "[auth]\nadmin_key = '{KEY}'\n[secrets]\nmaster_key = '{master}'\n[tracing]\notlp_headers = 'x-key=trace-canary'"
        );
        let flags = [("database.url", "postgres://me:pass-word@host/db")];
        let (settings, _) = load(&file, &[], &flags).unwrap();
        assert_eq!(settings.auth.admin_key.as_ref().unwrap().expose_secret(), KEY);
        assert_eq!(settings.database.url.expose(), "postgres://me:pass-word@host/db");
        let shown = format!("{settings:?} {:?}", settings.origins());
        for secret in [KEY, &master, "pass-word", "trace-canary"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        for bad in [
            "[auth]\nadmin_key = 'short-secret'",
            "[secrets]\nmaster_key = 'short-secret'",
            "admin_key = short-secret",
            "[tracing]\notlp_headers = 'short-secret'",
        ] {
            assert!(!refused(bad, &[]).contains("short-secret"));
        }
    }

    #[test]
    fn a_server_without_authentication_needs_a_loopback_address() {
        let check = |env: &[(&str, &str)], flags: &[(&'static str, &str)]| {
            load("", env, flags).unwrap().0.check_access()
        };
        assert_eq!(check(&[], &[]), Ok(()), "a first start makes a key");
        assert_eq!(check(&[("TOOLRACK_LISTEN", "0.0.0.0:1")], &[]), Ok(()));
        assert_eq!(check(&[("TOOLRACK_AUTH_ADMIN_KEY", KEY), ("TOOLRACK_LISTEN", "0.0.0.0:1")], &[]), Ok(()));
        assert_eq!(check(&[], &[("auth.no_auth", "true")]), Ok(()));
        let public = check(&[("TOOLRACK_LISTEN", "0.0.0.0:1")], &[("auth.no_auth", "true")]);
        assert!(matches!(public, Err(ConfigError::NoAuthInPublic(_))));
        let (_, warnings) =
            load("", &[("TOOLRACK_AUTH_ADMIN_KEY", KEY)], &[("auth.no_auth", "true")]).unwrap();
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn the_admin_key_has_one_place() {
        let file = "[auth]\nkey_file = '/run/secrets/toolrack'";
        let (settings, _) = load(file, &[], &[]).unwrap();
        assert_eq!(settings.auth.key_file, Some(PathBuf::from("/run/secrets/toolrack")));
        let both = load(file, &[("TOOLRACK_AUTH_ADMIN_KEY", KEY)], &[]).unwrap_err();
        assert_eq!(both, ConfigError::TwoAdminKeys);
        assert_eq!(admin_key_in_file(&format!(" {KEY}\n")).unwrap().expose_secret(), KEY);
        for bad in ["", "too-short", "two keys of enough length in one single line"] {
            assert!(admin_key_in_file(bad).is_err(), "{bad}");
        }
    }
}
