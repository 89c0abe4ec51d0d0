//! What the errors of the databases mean for a store.

use std::sync::Arc;

use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use super::StoreError;

// Result codes (<https://sqlite.org/rescode.html>).
const SQLITE_BUSY: u32 = 5;
const SQLITE_LOCKED: u32 = 6;
const SQLITE_READONLY: u32 = 8;
const SQLITE_IOERR: u32 = 10;
const SQLITE_CORRUPT: u32 = 11;
const SQLITE_FULL: u32 = 13;
const SQLITE_CANTOPEN: u32 = 14;
const SQLITE_TOOBIG: u32 = 18;
const SQLITE_CONSTRAINT: u32 = 19;
const SQLITE_MISMATCH: u32 = 20;
const SQLITE_RANGE: u32 = 25;
const SQLITE_NOTADB: u32 = 26;

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let kind = kind(&error);
        let cause = Arc::new(error);
        match kind {
            Fault::Away => Self::Away(cause),
            Fault::Failed => Self::Database(cause),
            Fault::Refused => Self::Refused(cause),
            Fault::Full => Self::Full,
            Fault::Busy => Self::Busy,
            Fault::ReadOnly => Self::ReadOnly,
            Fault::Closed => Self::Closed,
        }
    }
}

/// The variants of [`StoreError`] that a database's error may be.
enum Fault {
    Away,
    Failed,
    Refused,
    Full,
    Busy,
    ReadOnly,
    Closed,
}

fn kind(error: &sqlx::Error) -> Fault {
    use sqlx::Error::{
        ColumnDecode, ColumnIndexOutOfBounds, ColumnNotFound, Decode, Encode, InvalidArgument, Io,
        PoolClosed, PoolTimedOut, Protocol, RowNotFound, Tls, TypeNotFound, WorkerCrashed,
    };
    if let Some(code) = sqlstate(error) {
        return of_postgres(code, error);
    }
    if let Some(code) = sqlite_code(error) {
        return match code {
            SQLITE_FULL => Fault::Full,
            SQLITE_BUSY | SQLITE_LOCKED => Fault::Busy,
            SQLITE_TOOBIG | SQLITE_CONSTRAINT | SQLITE_MISMATCH | SQLITE_RANGE => Fault::Refused,
            SQLITE_READONLY | SQLITE_IOERR | SQLITE_CORRUPT | SQLITE_CANTOPEN | SQLITE_NOTADB => Fault::Away,
            _ => Fault::Failed,
        };
    }
    match error {
        PoolClosed => Fault::Closed,
        PoolTimedOut => Fault::Busy,
        Io(_) | Tls(_) | Protocol(_) | WorkerCrashed => Fault::Away,
        ColumnDecode { .. }
        | ColumnIndexOutOfBounds { .. }
        | ColumnNotFound(_)
        | Decode(_)
        | Encode(_)
        | InvalidArgument(_)
        | RowNotFound
        | TypeNotFound { .. } => Fault::Refused,
        _ => Fault::Failed,
    }
}

/// What an SQLSTATE of PostgreSQL means.
fn of_postgres(code: &str, error: &sqlx::Error) -> Fault {
    match code {
        // disk_full
        "53100" => Fault::Full,
        _ if cannot_grow(error) => Fault::Full,
        // Too long a wait for a lock; a statement that took longer than it may.
        "55P03" | "57014" => Fault::Busy,
        // A write in a transaction that takes none.
        "25006" => Fault::ReadOnly,
        // The server stops, starts, or ended this connection.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Fault::Away,
        // It lets this process not in: the database takes no connections, is not there, or the user may not.
        "55000" | "3D000" | "28000" | "28P01" => Fault::Away,
        // Connection exceptions.
        _ if code.starts_with("08") => Fault::Away,
        // A value that cannot be, a rule of a table, a statement that this server does not know or this user may not ask.
        _ if ["22", "23", "42", "0A"].iter().any(|class| code.starts_with(class)) => Fault::Refused,
        _ => Fault::Failed,
    }
}

/// What is said of a cause: of PostgreSQL's errors what they say, with their SQLSTATE, and not the line of its source.
pub(super) fn told(cause: &(dyn std::error::Error + 'static)) -> String {
    let error = cause.downcast_ref::<sqlx::Error>();
    let error = error.and_then(|error| error.as_database_error()?.try_downcast_ref::<PgDatabaseError>());
    error
        .map_or_else(|| cause.to_string(), |error| format!("{} (SQLSTATE {})", error.message(), error.code()))
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
    let cause = match error {
        // Until it has taken over from another server.
        StoreError::ReadOnly => return Retry::Reconnect,
        StoreError::Away(cause) | StoreError::Database(cause) => cause,
        _ => return Retry::Vain,
    };
    let cause = cause.downcast_ref::<sqlx::Error>();
    match cause.and_then(sqlstate) {
        // A file does not come back so soon.
        None if cause.is_some_and(|cause| sqlite_code(cause).is_some()) => Retry::Vain,
        Some("55000" | "3D000" | "28000" | "28P01") => Retry::Vain,
        _ if matches!(error, StoreError::Away(_)) => Retry::Reconnect,
        // A serialization failure, a deadlock.
        Some("40001" | "40P01") => Retry::Again,
        // Too many connections.
        Some("53300") => Retry::Reconnect,
        _ => Retry::Vain,
    }
}
