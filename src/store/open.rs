//! Where the state is kept, and why a database cannot be used.

use std::fmt;
use std::io;
use std::path::PathBuf;

use sqlx::migrate::MigrateError;

use super::failures::told;
use super::server::Server;

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{0:?} is not a database URL; use sqlite://PATH (a file, for example sqlite://toolrack.db) or \
         postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    Url(String),
    #[error("the database URL is not one of PostgreSQL: {0}; use postgres://USER:PASSWORD@HOST/DATABASE")]
    ServerUrl(String),
    #[error("{server} cannot be reached: {}", told(error))]
    NoServer { server: String, error: sqlx::Error },
    #[error(
        "{server} lets the user {user:?} not in: {}; look at the password in the URL and at the server's pg_hba.conf",
        told(error)
    )]
    Refused { server: String, user: String, error: sqlx::Error },
    #[error(
        "no encrypted connection to {server}: {error}; look at sslmode and sslrootcert in the URL, and at the server's certificate"
    )]
    Tls { server: String, error: sqlx::Error },
    #[error(
        "the database of {server} does not exist; make it with: CREATE DATABASE \"{database}\" ENCODING 'UTF8' TEMPLATE template0"
    )]
    NoSuchDatabase { server: String, database: String },
    #[error("{server} is PostgreSQL {found}, and the least version that works is {least}")]
    OldServer { server: String, found: String, least: u32 },
    #[error("{server} is a standby of another server and takes no writes; name the one that does")]
    Standby { server: String },
    #[error("the database of {server} has the encoding {encoding}, and it must be UTF8")]
    Encoding { server: String, encoding: String },
    #[error("cannot open the database file {0} for reading and writing: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error(
        "the database file {0} cannot be used: {1}; the file and its folder must be writable (beside it stand {0}-wal, \
         {0}-shm and {0}.lock)"
    )]
    NotWritable(PathBuf, #[source] sqlx::Error),
    #[error("{0} is no SQLite database; nothing was written to it")]
    NoDatabase(PathBuf),
    #[error(
        "the database file {0} is damaged, and nothing was written to it ({1}); put it aside together with {0}-wal and \
         {0}-shm, and put a backup in its place (docs/backup.md)"
    )]
    Damaged(PathBuf, String),
    #[error(
        "the database has schema version {found}, this program knows versions up to {known}; \
         use the newer program that wrote it, or a backup from before it (the database was left as it is)"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error(
        "schema version {0} of the database is not the one of this program (the file of that migration was changed \
         or removed after it was applied); use the program that made the database"
    )]
    ForeignSchema(i64),
    #[error("the database cannot be brought to the current schema, and was left as it is: {0}")]
    Migrate(#[source] MigrateError),
    #[error(
        "the database is not at the current schema, and this user may not bring it there: {}; run `toolrack migrate` with \
         the URL of a user who may",
        told(.0)
    )]
    MayNotMigrate(#[source] sqlx::Error),
    #[error("the database cannot be used: {}", told(.0))]
    Database(#[from] sqlx::Error),
}

/// Where the state is kept.
#[derive(Debug, Clone)]
pub enum Place {
    File(PathBuf),
    Server(Server),
}

impl Place {
    /// Reads a database URL: `sqlite://PATH` or `sqlite:PATH`, relative or absolute and taken literally, or
    /// `postgres://...` ([`Server::parse`]).
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let (scheme, rest) = url.split_once(':').ok_or_else(|| OpenError::Url(url.to_owned()))?;
        if matches!(scheme, "postgres" | "postgresql") {
            return Server::parse(url).map(Self::Server);
        }
        let path = rest.strip_prefix("//").unwrap_or(rest);
        // '?' would begin connection settings, which are not taken; ":memory:" is a database per connection.
        if scheme != "sqlite" || path.is_empty() || path.contains(['?', '\0']) || path == ":memory:" {
            // A URL of another database may hold a password.
            let shown = if scheme == "sqlite" { url.to_owned() } else { format!("{scheme}:...") };
            return Err(OpenError::Url(shown));
        }
        Ok(Self::File(PathBuf::from(path)))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(server) => server.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_url_names_its_file_or_server() {
        for (url, path) in [
            ("sqlite://toolrack.db", "toolrack.db"),
            ("sqlite:data/toolrack.db", "data/toolrack.db"),
            ("sqlite:///var/lib/t.db", "/var/lib/t.db"),
            ("sqlite:/var/lib/t.db", "/var/lib/t.db"),
        ] {
            let place = Place::parse(url).unwrap();
            assert!(matches!(&place, Place::File(file) if file == Path::new(path)), "{place}");
        }
        for url in ["", "toolrack.db", "sqlite:", "sqlite://", "sqlite::memory:", "sqlite://t.db?mode=ro"] {
            assert!(matches!(Place::parse(url), Err(OpenError::Url(_))), "{url}");
        }
        let place = Place::parse("postgres://u:pw@db/toolrack").unwrap();
        assert_eq!(place.to_string(), "postgres://db:5432/toolrack");
        assert!(!format!("{place:?}").contains("pw"));
        assert!(!Place::parse("mysql://u:pw@db/toolrack").unwrap_err().to_string().contains("pw"));
    }
}
