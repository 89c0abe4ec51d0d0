//! MCP servers as an import names them: what a client needs to reach one. Values that may be secret are in no `Debug`.

use std::fmt;

use secrecy::SecretString;

use crate::core::secret_args::masked;

/// Names with values that may be secret, in the order they came.
pub type SecretValues = Vec<(String, SecretString)>;

/// A server of an `mcp.json`.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// 1 to 128 characters, unique in an import; the group of its tools.
    pub name: String,
    pub transport: Transport,
    pub always_load: AlwaysLoad,
    /// Where it stood.
    pub pointer: String,
    /// What its texts leave to another program, as it stands there: `${env:TOKEN}`.
    pub placeholders: Vec<String>,
}

/// How a server is reached.
#[derive(Clone)]
pub enum Transport {
    /// Streamable HTTP. The address may hold placeholders.
    Http { url: String, headers: SecretValues },
    /// A command that speaks over its standard input and output.
    Stdio { command: String, args: Vec<String>, env: SecretValues },
}

/// Which tools of a server are core tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlwaysLoad {
    None,
    All,
    Names(Vec<String>),
}

impl Transport {
    /// `http` or `stdio`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Http { .. } => "http",
            Self::Stdio { .. } => "stdio",
        }
    }

    /// The address without user, password, query and fragment, where a key may stand; empty for a command.
    pub fn shown_url(&self) -> String {
        let Self::Http { url, .. } = self else { return String::new() };
        let end = url.find(['?', '#']).unwrap_or(url.len());
        let plain = &url[..end];
        let (scheme, rest) = plain.split_once("://").unwrap_or(("", plain));
        let host_end = rest.find('/').unwrap_or(rest.len());
        let (host, path) = rest.split_at(host_end);
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
    }

    /// What [`Self::shown_url`] leaves out of the address that a server may need: `user` (with its password), `query`.
    pub fn left_out_of_url(&self) -> Vec<&'static str> {
        let Self::Http { url, .. } = self else { return Vec::new() };
        let url = url.split('#').next().unwrap_or_default();
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let host = place.split_once("://").map_or(place, |(_, rest)| rest);
        let host = host.split('/').next().unwrap_or_default();
        let parts = [("user", host.contains('@')), ("query", !query.is_empty())];
        parts.into_iter().filter_map(|(part, is_there)| is_there.then_some(part)).collect()
    }

    /// Names of its headers.
    pub fn header_names(&self) -> Vec<&str> {
        match self {
            Self::Http { headers, .. } => names(headers),
            Self::Stdio { .. } => Vec::new(),
        }
    }

    /// Whether secrets stand among its arguments.
    pub fn has_secret_args(&self) -> bool {
        matches!(self, Self::Stdio { args, .. } if masked(args) != *args)
    }

    /// Names of the variables in its environment.
    pub fn env_names(&self) -> Vec<&str> {
        match self {
            Self::Http { .. } => Vec::new(),
            Self::Stdio { env, .. } => names(env),
        }
    }
}

fn names(values: &SecretValues) -> Vec<&str> {
    values.iter().map(|(name, _)| name.as_str()).collect()
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { .. } => f
                .debug_struct("Http")
                .field("url", &self.shown_url())
                .field("headers", &self.header_names())
                .finish(),
            // An argument may be a key.
            Self::Stdio { command, args, .. } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &self.env_names())
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_debug_and_no_shown_address_holds_a_secret() {
        for (url, shown) in [
            ("https://u:SECRET@a.example:8/mcp?key=SECRET#SECRET", "https://a.example:8/mcp"),
            ("https://a.example", "https://a.example"),
            ("${env:URL}/mcp", "${env:URL}/mcp"),
            ("https://SECRET@", "https://"),
        ] {
            let headers = vec![("X-Key".to_owned(), SecretString::from("SECRET"))];
            let transport = Transport::Http { url: url.to_owned(), headers };
            assert_eq!(transport.shown_url(), shown);
            let is_whole = url == shown;
            assert_eq!(transport.left_out_of_url().is_empty(), is_whole, "{url}");
            assert!(!format!("{transport:?}").contains("SECRET"), "{transport:?}");
        }
        let stdio = Transport::Stdio {
            command: "npx".to_owned(),
            args: vec!["--key=SECRET".to_owned()],
            env: vec![("TOKEN".to_owned(), SecretString::from("SECRET"))],
        };
        assert_eq!(format!("{stdio:?}"), "Stdio { command: \"npx\", args: 1, env: [\"TOKEN\"] }");
    }
}
