//! A database of a PostgreSQL server, as a URL names it: what is taken of the URL, what is shown of it, and what a server's
//! refusal means. The password is shown nowhere.

use std::error::Error;
use std::fmt;

use sqlx::postgres::PgConnectOptions;

use super::failures::sqlstate;
use super::open::OpenError;

/// Parameters that a URL may have, as libpq names them (<https://www.postgresql.org/docs/current/libpq-connect.html>).
const PARAMETERS: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// Where a database is, and how it is reached.
#[derive(Clone)]
pub struct Server {
    options: Box<PgConnectOptions>,
    database: String,
}

impl Server {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE`. What the URL does not say is taken from the
    /// variables of libpq (`PGUSER`, `PGPASSWORD`, `PGSSLMODE` and so on).
    ///
    /// # Errors
    /// What is wrong with it, without quoting it.
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let wrong = |reason: String| OpenError::ServerUrl(reason);
        let parsed = url::Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        if let Some((key, _)) = parsed.query_pairs().find(|(key, _)| !PARAMETERS.contains(&&**key)) {
            let known = PARAMETERS.join(", ");
            return Err(wrong(format!("the parameter {key:?} is not known; known are {known}")));
        }
        let options: PgConnectOptions = url.parse().map_err(|error| match error {
            sqlx::Error::Configuration(reason) => wrong(innermost(&*reason)),
            other => wrong(other.to_string()),
        })?;
        let database = options.get_database().map(str::to_owned);
        let database = database.filter(|name| !name.is_empty());
        let database = database.ok_or_else(|| wrong("it names no database".to_owned()))?;
        Ok(Self { options: Box::new(options), database })
    }

    /// A connection as the URL asks for it.
    #[cfg(test)]
    pub(super) async fn connect(&self) -> Result<sqlx::PgConnection, sqlx::Error> {
        sqlx::ConnectOptions::connect(&*self.options).await
    }

    pub(super) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// What it means that no connection was made.
    pub(super) fn refusal(&self, error: sqlx::Error) -> OpenError {
        let server = self.to_string();
        match (&error, sqlstate(&error)) {
            (_, Some("3D000")) => OpenError::NoSuchDatabase { server, database: self.database.clone() },
            (_, Some("28P01" | "28000")) => {
                OpenError::Refused { server, user: self.options.get_username().to_owned(), error }
            }
            (sqlx::Error::Tls(_), _) => OpenError::Tls { server, error },
            _ => OpenError::NoServer { server, error },
        }
    }
}

/// The cause of the causes.
fn innermost(error: &(dyn Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

/// Host, port and database.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.options.get_port();
        match self.options.get_socket() {
            Some(socket) => write!(f, "postgres://{}:{port}/{}", socket.display(), self.database),
            None => write!(f, "postgres://{}:{port}/{}", self.options.get_host(), self.database),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_its_password_is_never_shown() {
        let server = Server::parse("postgres://me:s3cret%21@db.example:5433/rack?sslmode=require").unwrap();
        assert_eq!(server.to_string(), "postgres://db.example:5433/rack");
        assert!(!format!("{server:?}").contains("s3cret"));
        let socket = Server::parse("postgresql://me@%2Frun%2Fpostgresql/rack").unwrap();
        assert_eq!(socket.to_string(), "postgres:///run/postgresql:5432/rack");
        for (url, reason) in [
            ("postgres://me:s3cret@db.example/rack?sslmod=require", "\"sslmod\" is not known"),
            ("postgres://me:s3cret@db.example/rack?sslmode=full", "ssl_mode"),
            ("postgres://me:s3cret@db.example", "names no database"),
            ("postgres://me:s3cret@db.example:port/rack", "port"),
        ] {
            let error = Server::parse(url).unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("s3cret"), "{error}");
        }
    }
}
