//! What the value of a setting must look like, how it is read from a text or a file, and how it is shown.

use std::net::SocketAddr;

use secrecy::SecretString;
use url::Url;

use super::DatabaseUrl;

/// Shortest admin key, in characters: 32 hexadecimal digits hold 128 random bits.
const MIN_ADMIN_KEY_CHARS: usize = 32;

/// What an admin key must have, after "must have" or "has to have".
pub(super) const ADMIN_KEY_FORM: &str = "at least 32 characters, visible ASCII without spaces";

/// What a value must look like.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Address,
    Text,
    /// May be empty, which means that it is not set.
    Path,
    /// May be empty, which means that it is not set.
    AdminKey,
    /// May be empty, which means that it is not set.
    MasterKey,
    DatabaseUrl,
    /// A URL; may be empty, which means that it is not set.
    Collector,
    /// `name=value` with commas between; a secret. May be empty.
    Headers,
    /// From 0 to 1.
    Ratio,
    Integer(u64, u64),
    Flag,
    Hosts,
    Commands,
    Origins,
    OneOf(&'static [&'static str]),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(u64),
    Ratio(f64),
    Flag(bool),
    List(Vec<String>),
}

/// A value, or what it should be.
pub(super) type Read = Result<Value, String>;

impl Kind {
    /// Reads a variable or a flag.
    pub(super) fn read_text(self, text: &str) -> Read {
        match self {
            Self::Integer(..) => match text.trim().parse() {
                Ok(number) => self.check(Value::Integer(number)),
                Err(_) => Err(self.wanted()),
            },
            Self::Ratio => match text.trim().parse() {
                Ok(ratio) => self.check(Value::Ratio(ratio)),
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
    pub(super) fn read_toml(self, value: toml::Value) -> Read {
        let value = match value {
            toml::Value::String(text) => Value::Text(text),
            toml::Value::Float(ratio) => Value::Ratio(ratio),
            toml::Value::Integer(0) if self.is_ratio() => Value::Ratio(0.0),
            toml::Value::Integer(1) if self.is_ratio() => Value::Ratio(1.0),
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

    fn is_ratio(self) -> bool {
        matches!(self, Self::Ratio)
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
            (Self::Collector, Value::Text(text)) => text.is_empty() || collector(text).is_some(),
            (Self::Headers, Value::Text(text)) => headers(text).is_some(),
            (Self::Ratio, Value::Ratio(ratio)) => (0.0..=1.0).contains(ratio),
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
            Self::Collector => {
                "must be a URL with http or https, without a password, such as http://localhost:4318"
                    .to_owned()
            }
            Self::Headers => "must be headers as `name=value`, with commas between".to_owned(),
            Self::Ratio => "must be a number from 0 to 1".to_owned(),
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
    pub(super) fn show(self, value: &Value) -> String {
        match (self, value) {
            (Self::AdminKey | Self::MasterKey | Self::Headers, Value::Text(text)) if !text.is_empty() => {
                "\"***\"".to_owned()
            }
            (Self::DatabaseUrl, Value::Text(text)) => format!("{:?}", DatabaseUrl(text.clone()).to_string()),
            (_, Value::Text(text)) => format!("{text:?}"),
            (_, Value::Integer(number)) => number.to_string(),
            (_, Value::Ratio(ratio)) => format!("{ratio:?}"),
            (_, Value::Flag(flag)) => flag.to_string(),
            (_, Value::List(items)) => format!("{items:?}"),
        }
    }
}

/// Whether a text is long enough for an admin key, and can stand in a header.
pub(super) fn is_admin_key(text: &str) -> bool {
    text.len() >= MIN_ADMIN_KEY_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic())
}

pub(super) fn address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::from(([127, 0, 0, 1], port.parse().ok()?))),
        None => text.parse().ok(),
    }
}

/// Where traces are sent: to the usual path where the URL names none.
pub(super) fn collector(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    let is_fine = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    if url.path() == "/" {
        url.set_path("/v1/traces");
    }
    is_fine.then_some(url)
}

/// Headers out of `name=value` with commas between. Neither can hold a comma.
pub(super) fn headers(text: &str) -> Option<Vec<(String, SecretString)>> {
    let header = |text: &str| {
        let (name, value) = text.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_fine = !name.is_empty()
            && name.bytes().all(is_name)
            && value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        is_fine.then(|| (name.to_ascii_lowercase(), value.to_owned().into()))
    };
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(header).collect()
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
    let written = Url::parse(text).map(|url| url.origin().ascii_serialization());
    text.starts_with("http") && written.is_ok_and(|written| written == text)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

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
    fn traces_are_sent_to_a_url_with_headers() {
        for (text, url) in [
            ("http://localhost:4318", Some("http://localhost:4318/v1/traces")),
            ("https://otlp.example/v1/traces", Some("https://otlp.example/v1/traces")),
            ("https://otlp.example/mine?x=1", Some("https://otlp.example/mine?x=1")),
            ("https://me:secret@otlp.example", None),
            ("grpc://otlp.example", None),
            ("localhost:4318", None),
        ] {
            assert_eq!(collector(text).as_ref().map(Url::as_str), url, "{text}");
        }
        let read = headers("Authorization=Bearer a=b, x-tenant = 7,").unwrap();
        let read: Vec<(&str, &str)> =
            read.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
        assert_eq!(read, [("authorization", "Bearer a=b"), ("x-tenant", "7")]);
        assert!(headers("").is_some_and(|headers| headers.is_empty()));
        for bad in ["authorization", "=x", "a b=c", "a=b\nc"] {
            assert!(headers(bad).is_none(), "{bad}");
        }
    }
}
