//! Copying a database to a file while others use it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sqlx::Connection;

use super::check::{Check, check_file, connect_read_only, open_error};
use super::open::OpenError;
use super::private_file::open_private;

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    pub bytes: u64,
    /// Schema version of the database.
    pub schema: i64,
}

/// Why there is no backup. Nothing is left of the attempt.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{0} exists, and a backup overwrites nothing; name another file")]
    Exists(PathBuf),
    #[error("{0} is left of a backup that was interrupted; remove it")]
    Leftover(PathBuf),
    #[error("there is no database at {0}")]
    NoDatabase(PathBuf),
    #[error("{0} is no database of toolrack")]
    Foreign(PathBuf),
    #[error("cannot write the backup {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    #[error("the database cannot be copied: {0}")]
    Copy(#[source] OpenError),
    #[error("the copy is not whole and was removed: {0}")]
    Check(#[source] OpenError),
}

/// Copies the database as it is at one moment, checks the copy, and gives it its name when it is on the disk.
pub async fn backup(database: &Path, target: &Path) -> Result<Backup, BackupError> {
    if !database.is_file() {
        return Err(BackupError::NoDatabase(database.to_owned()));
    }
    // Absolute, because SQLite reads a name that begins with `file:` as an address.
    let failed = |error| BackupError::Io(target.to_owned(), error);
    let target = &std::path::absolute(target).map_err(failed)?;
    if target.try_exists().map_err(failed)? {
        return Err(BackupError::Exists(target.clone()));
    }
    let mut name = target.clone().into_os_string();
    name.push(".partial");
    let partial = PathBuf::from(name);
    // Made here, so that it is private from its first byte on.
    open_private(File::options().write(true).create_new(true), &partial).map_err(|error| {
        match error.kind() {
            io::ErrorKind::AlreadyExists => BackupError::Leftover(partial.clone()),
            _ => failed(error),
        }
    })?;
    let copied = copy(database, &partial, target).await;
    if copied.is_err() {
        drop(std::fs::remove_file(&partial));
    }
    copied
}

async fn copy(database: &Path, partial: &Path, target: &Path) -> Result<Backup, BackupError> {
    let failed = |error| BackupError::Io(target.to_owned(), error);
    // Of a damaged file SQLite may copy what is left, without a word.
    check_file(database, Check::Full).await.map_err(BackupError::Copy)?;
    let text = partial.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    let copied = async {
        let mut connection = connect_read_only(database).await?;
        // One read transaction: writers go on meanwhile, and nothing of theirs is in the copy by halves.
        sqlx::query("VACUUM INTO $1").bind(text).execute(&mut connection).await?;
        connection.close().await
    };
    copied.await.map_err(|error| BackupError::Copy(open_error(database, error)))?;
    check_file(partial, Check::Full).await.map_err(BackupError::Check)?;
    let schema = schema(partial).await.map_err(|_| BackupError::Foreign(database.to_owned()))?;
    let file = File::open(partial).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    if target.try_exists().map_err(failed)? {
        return Err(BackupError::Exists(target.to_owned()));
    }
    std::fs::rename(partial, target).map_err(failed)?;
    sync_folder(target).map_err(failed)?;
    Ok(Backup { bytes: file.metadata().map_err(failed)?.len(), schema })
}

async fn schema(file: &Path) -> Result<i64, sqlx::Error> {
    let mut connection = connect_read_only(file).await?;
    let query = sqlx::query_as("SELECT MAX(version) FROM _sqlx_migrations");
    let (version,): (i64,) = query.fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(version)
}

/// Makes a new name in a folder durable.
pub(super) fn sync_folder(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) if cfg!(unix) => {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            File::open(folder)?.sync_all()
        }
        _ => Ok(()),
    }
}
