//! A PostgreSQL server of its own, whose commits reach the disk.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};

use super::measure::Result;

/// What `tests/postgres/run` answers where PostgreSQL is not installed.
const NOT_INSTALLED: i32 = 3;

/// A running server; it ends when this is dropped.
pub(crate) struct Postgres {
    /// To be followed by a database's name.
    url: String,
    _server: Child,
}

impl Postgres {
    /// Nothing where it is not installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        let mut server = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/postgres/run"))
            .env("TOOLRACK_POSTGRES_FSYNC", "on")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = server.stdout.take().ok_or("a server without standard output")?;
        let mut url = String::new();
        BufReader::new(output).read_line(&mut url)?;
        if url.is_empty() {
            let status = server.wait()?;
            let missing = status.code() == Some(NOT_INSTALLED);
            return if missing { Ok(None) } else { Err(format!("PostgreSQL: {status}").into()) };
        }
        Ok(Some(Self { url: url.trim_end().to_owned(), _server: server }))
    }

    /// Makes an empty database, and tells its URL.
    pub(crate) fn database(&self, name: &str) -> Result<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let options: PgConnectOptions = format!("{}postgres", self.url).parse()?;
            let mut connection: PgConnection = options.disable_statement_logging().connect().await?;
            let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0"));
            sqlx::raw_sql(create).execute(&mut connection).await?;
            connection.close().await?;
            Ok(format!("{}{name}", self.url))
        })
    }
}
