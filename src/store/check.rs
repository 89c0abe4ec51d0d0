//! Looking at a database file before it is used: whether it is whole, without writing anything.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::failures::sqlite_code;
use super::open::OpenError;
use super::sqlite::BUSY_TIMEOUT;

/// How long [`Check::Quick`] may take: some gigabytes on a common disk. A start must not wait for hours.
const QUICK_TIME: Duration = Duration::from_secs(10);

/// Steps of SQLite between two looks at the clock; each takes about a microsecond.
const STEPS_PER_LOOK: i32 = 1000;

// Primary result codes, <https://sqlite.org/rescode.html>.
const READONLY: u32 = 8;
const INTERRUPT: u32 = 9;
const CORRUPT: u32 = 11;
const CANTOPEN: u32 = 14;
const NOTADB: u32 = 26;

/// How thoroughly a file is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Check {
    /// Every page and row, but not whether indexes agree with them; given up after 10 seconds.
    Quick,
    /// Everything, however long it takes.
    Full,
    #[default]
    Off,
}

/// What an error of SQLite says about the file.
pub(super) fn open_error(file: &Path, error: sqlx::Error) -> OpenError {
    let file = file.to_owned();
    match sqlite_code(&error) {
        Some(CORRUPT) => OpenError::Damaged(file, error.to_string()),
        Some(NOTADB) => OpenError::NoDatabase(file),
        Some(READONLY | CANTOPEN) => OpenError::NotWritable(file, error),
        _ => OpenError::Database(error),
    }
}

/// A connection that writes nothing. The write-ahead log that a killed process left behind is read too, and stays.
pub(super) async fn connect_read_only(file: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(BUSY_TIMEOUT);
    options.disable_statement_logging().connect().await
}

/// Refuses a file that is damaged.
pub(super) async fn check_file(file: &Path, check: Check) -> Result<(), OpenError> {
    if check == Check::Off || file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        return Ok(());
    }
    let looked = async {
        let mut connection = connect_read_only(file).await?;
        let found = findings(&mut connection, check).await;
        connection.close().await?;
        found
    };
    match looked.await {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) => Err(OpenError::Damaged(file.to_owned(), found.join("; "))),
        Err(error) if sqlite_code(&error) == Some(INTERRUPT) => {
            tracing::warn!(
                seconds = QUICK_TIME.as_secs(),
                "the database is too large to be checked in this time; `database.check = \"full\"` takes as long as needed"
            );
            Ok(())
        }
        Err(error) => Err(open_error(file, error)),
    }
}

/// What is wrong with a database, the first few faults.
async fn findings(connection: &mut SqliteConnection, check: Check) -> Result<Vec<String>, sqlx::Error> {
    let pragma = match check {
        Check::Off => return Ok(Vec::new()),
        Check::Quick => {
            let ends = Instant::now() + QUICK_TIME;
            let mut handle = connection.lock_handle().await?;
            handle.set_progress_handler(STEPS_PER_LOOK, move || Instant::now() < ends);
            "PRAGMA quick_check(3)"
        }
        Check::Full => "PRAGMA integrity_check(3)",
    };
    let rows: Vec<(String,)> = sqlx::query_as(pragma).fetch_all(connection).await?;
    let one_line = |(row,): (String,)| row.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(rows.into_iter().map(one_line).filter(|row| row != "ok").collect())
}
