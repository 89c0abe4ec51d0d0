//! SQLite: a file is opened and brought to the present schema.
//!
//! One write connection belongs to the writer task; reads go through a few read-only connections. The file is in
//! WAL mode, so readers never wait for the writer.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteQueryResult, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, SqlSafeStr, Sqlite, SqliteConnection};
use tokio::time::Instant;

use super::check::{Check, check_file, open_error};
use super::engine::Engine;
use super::failures::sqlite_code;
use super::open::OpenError;
use super::private_file::open_private;
use super::reads::Readers;
use super::schema::{self, MIGRATIONS, Migrations};
use super::writer::Writer;
use super::{Observe, SqlStore};

/// Read connections. Each is a thread; point reads take some 50 µs, so a few serve many callers.
const READERS: u32 = 4;

/// How long a connection waits for another process's lock (`import` beside `serve`).
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two attempts where SQLite does not wait by itself.
const BUSY_RETRY: Duration = Duration::from_millis(10);

/// How long a read waits for a free connection before it fails.
const READER_WAIT: Duration = Duration::from_secs(10);

/// How a database file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SqliteOptions {
    pub check: Check,
    /// The file grows up to this size and no more; one that is larger already does not grow.
    pub max_bytes: Option<u64>,
}

/// Durable state in one SQLite file.
pub type SqliteStore = SqlStore<Sqlite>;

impl Engine for Sqlite {
    const SYSTEM: &'static str = "sqlite";
    const SHARED: bool = false;
    const CLOCK: Option<&'static str> = None;
    const IS_STANDBY: &'static str = "SELECT 0";
    const HAS_MIGRATIONS: &'static str = "SELECT 1 FROM sqlite_master WHERE name = '_sqlx_migrations'";

    fn rows_affected(result: &SqliteQueryResult) -> u64 {
        result.rows_affected()
    }

    /// There is one writer, whose transactions come one after the other.
    async fn exclude(_: &mut SqliteConnection, _: &str) -> Result<(), sqlx::Error> {
        Ok(())
    }

    /// Nobody would hear it.
    async fn tell(_: &mut SqliteConnection, _: &str) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

impl SqlStore<Sqlite> {
    /// Opens the file, makes it when it does not exist (private to its owner), and brings it to the current schema.
    pub async fn open(file: &Path, observe: Observe) -> Result<Self, OpenError> {
        Self::open_with(file, SqliteOptions::default(), observe).await
    }

    /// As [`SqliteStore::open`], with a look at the file first or a bound of its size.
    pub async fn open_with(file: &Path, options: SqliteOptions, observe: Observe) -> Result<Self, OpenError> {
        let SqliteOptions { check, max_bytes } = options;
        open_private(File::options().read(true).write(true).create(true), file)
            .map_err(|error| OpenError::File(file.to_owned(), error))?;
        check_file(file, check).await?;
        let failed = |error| open_error(file, error);
        let options = SqliteConnectOptions::new()
            .filename(file)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let write_options =
            options.clone().journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Normal);
        let mut connection = connect_patiently(&write_options).await.map_err(failed)?;
        migrate(&mut connection, MIGRATIONS).await?;
        if let Some(bytes) = max_bytes {
            limit_size(&mut connection, bytes).await.map_err(failed)?;
        }
        let pool = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(READER_WAIT)
            // A connection to a file does not go stale: checking or replacing it only costs time.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.read_only(true))
            .await
            .map_err(failed)?;
        let readers = Readers { pool, patience: READER_WAIT, pulse: None, outage: Arc::default(), observe };
        Ok(Self { readers, writer: Writer::start(connection, observe), listening: None })
    }
}

/// A connection to a file that is there, for whoever works on it alone.
pub(super) async fn connect(file: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(file).foreign_keys(true).busy_timeout(BUSY_TIMEOUT);
    options.disable_statement_logging().connect().await
}

/// Connects, also while another process opens the same new file: the switch to WAL is the one thing that SQLite
/// refuses at once instead of waiting.
async fn connect_patiently(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                tokio::time::sleep(BUSY_RETRY).await;
            }
            settled => return settled,
        }
    }
}

/// SQLITE_BUSY (<https://sqlite.org/rescode.html>).
fn is_busy(error: &sqlx::Error) -> bool {
    sqlite_code(error) == Some(5)
}

/// Keeps the file from growing beyond so many bytes. Holds for this connection, the only one that writes.
async fn limit_size(connection: &mut SqliteConnection, bytes: u64) -> Result<(), sqlx::Error> {
    let (page,): (i64,) = sqlx::query_as("PRAGMA page_size").fetch_one(&mut *connection).await?;
    let pages = bytes / u64::try_from(page).unwrap_or(u64::MAX).max(1);
    // 4,294,967,294 is the most that SQLite takes; 0 would only ask.
    let pages = pages.clamp(1, 4_294_967_294);
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}")))
        .execute(connection)
        .await?;
    Ok(())
}

/// One transaction for all of it: two processes that open a new file at once do not meet half-way.
async fn migrate(connection: &mut SqliteConnection, migrations: Migrations<'_>) -> Result<(), OpenError> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    schema::update::<Sqlite>(&mut transaction, migrations, SqlSafeStr::into_sql_str).await?;
    Ok(transaction.commit().await?)
}

#[cfg(test)]
mod tests;
