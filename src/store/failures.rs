//! What the errors of the databases mean for a store.

use std::sync::Arc;

use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use super::StoreError;

/// `SQLITE_FULL` (<https://sqlite.org/rescode.html>).
const SQLITE_FULL: u32 = 13;

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match (&error, sqlstate(&error)) {
            (sqlx::Error::PoolClosed, _) => Self::Closed,
            // disk_full; too many locks wait (`lock_timeout`).
            (_, Some("53100")) => Self::Full,
            _ if cannot_grow(&error) => Self::Full,
            (_, Some("55P03")) => Self::Busy,
            _ if sqlite_code(&error) == Some(SQLITE_FULL) => Self::Full,
            _ => Self::Database(Arc::new(error)),
        }
    }
}

/// The primary result code of SQLite; an extended one has more in its upper bytes.
pub(super) fn sqlite_code(error: &sqlx::Error) -> Option<u32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    let code = sqlx::error::DatabaseError::code(error)?.parse::<u32>().ok()?;
    Some(code & 0xff)
}

/// The SQLSTATE of PostgreSQL (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
pub(super) fn sqlstate(error: &sqlx::Error) -> Option<&str> {
    Some(error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?.code())
}

/// Whether a file of a table could not be made larger. The server calls that an internal error where the file system gives
/// another reason than a full disk, such as a quota (`EDQUOT`) or a limit of the process (`EFBIG`).
fn cannot_grow(error: &sqlx::Error) -> bool {
    let error = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    error.is_some_and(|error| {
        error.code() == "XX000"
            && error.file() == Some("md.c")
            && error.routine().is_some_and(|routine| matches!(routine, "mdextend" | "mdzeroextend"))
    })
}

/// What a failure of PostgreSQL says about trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// It would fail again.
    Vain,
    /// The connection is gone, or there was none: another one may work.
    Reconnect,
    /// The transaction was undone because of others.
    Again,
}

/// Whether another attempt may do better.
pub(super) fn retry(error: &StoreError) -> Retry {
    let StoreError::Database(cause) = error else { return Retry::Vain };
    match cause.downcast_ref::<sqlx::Error>() {
        Some(sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed) => Retry::Reconnect,
        Some(error) => match sqlstate(error) {
            // A serialization failure, a deadlock.
            Some("40001" | "40P01") => Retry::Again,
            // Connection exceptions; too many connections; it stops, starts, or ended this connection; read only until it has
            // taken over from another server.
            Some(code) if code.starts_with("08") => Retry::Reconnect,
            Some("53300" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25006") => Retry::Reconnect,
            _ => Retry::Vain,
        },
        None => Retry::Vain,
    }
}
