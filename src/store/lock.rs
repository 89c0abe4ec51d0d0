//! One serving process per database file.
//!
//! A serving process keeps state in memory (caches, buffered touches), so two of them on one SQLite file would
//! answer differently for the same state. The lock is the operating system's, on a file beside the database, and
//! goes with the process however that ends. Other commands (import, backup) do not take it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::private_file::open_private;

/// How long a starting process waits for its predecessor to drain.
pub const SERVE_LOCK_WAIT: Duration = Duration::from_secs(5);

/// Time between two attempts.
const RETRY_EVERY: Duration = Duration::from_millis(50);

/// Held while a process serves a database; let go when dropped.
#[derive(Debug)]
pub struct ServeLock {
    /// Open is locked: closing the file releases the lock.
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another toolrack serves this database ({0} is locked); stop it first, or use another database file"
    )]
    Taken(PathBuf),
    #[error("cannot lock {0}: {1}; the folder of the database must be writable")]
    Io(PathBuf, #[source] io::Error),
}

impl ServeLock {
    /// Takes the lock of the database file, waiting up to [`SERVE_LOCK_WAIT`] for another process.
    pub async fn acquire(database: &Path) -> Result<Self, LockError> {
        Self::acquire_within(database, SERVE_LOCK_WAIT).await
    }

    /// Like [`ServeLock::acquire`] with another wait; zero tries once.
    pub async fn acquire_within(database: &Path, wait: Duration) -> Result<Self, LockError> {
        let mut name = database.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let failed = |error| LockError::Io(path.clone(), error);
        let file =
            open_private(File::options().read(true).write(true).create(true), &path).map_err(failed)?;
        let deadline = Instant::now() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(LockError::Taken(path));
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(RETRY_EVERY).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_process_is_refused_until_the_first_lets_go() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("t.db");
        let first = ServeLock::acquire(&database).await.unwrap();
        let refused = ServeLock::acquire_within(&database, Duration::ZERO).await.unwrap_err();
        assert!(refused.to_string().contains("another toolrack serves this database"), "{refused}");
        drop(first);
        ServeLock::acquire_within(&database, Duration::ZERO).await.unwrap();
    }

    #[tokio::test]
    async fn a_waiting_process_takes_over_from_one_that_ends() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("t.db");
        let first = ServeLock::acquire(&database).await.unwrap();
        let second = ServeLock::acquire(&database);
        let release = async move { drop(first) };
        let (second, ()) = tokio::join!(second, release);
        second.unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_is_missing_is_named() {
        let error = ServeLock::acquire(Path::new("/nonexistent/t.db")).await.unwrap_err();
        assert!(error.to_string().contains("/nonexistent/t.db.lock"), "{error}");
    }
}
