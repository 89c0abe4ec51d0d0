//! Files that only their owner may read, on systems that know owners.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use secrecy::SecretString;

/// Longest file with a secret that is read, in bytes.
const MAX_SECRET_FILE_BYTES: u64 = 1024;

/// Why a file with a secret is not used.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("others can read the key file {0}; make it private with: chmod 600 {0}")]
    Exposed(PathBuf),
    #[error("cannot use the key file {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
}

/// Reads a file that holds a secret, if nobody but its owner can.
pub fn read_secret_file(path: &Path) -> Result<SecretString, SecretFileError> {
    let file = File::open(path).map_err(|error| SecretFileError::Io(path.to_owned(), error))?;
    read_secret(&file, path)
}

/// As [`read_secret_file`], of a file that is open.
pub(super) fn read_secret(file: &File, path: &Path) -> Result<SecretString, SecretFileError> {
    let failed = |error| SecretFileError::Io(path.to_owned(), error);
    if open_to_others(file).map_err(failed)? {
        return Err(SecretFileError::Exposed(path.to_owned()));
    }
    let mut text = String::new();
    file.take(MAX_SECRET_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(text.into())
}

/// Opens a file; one that is created gets mode 0600. SQLite gives its log files the mode of the database file.
pub(super) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

/// Whether the mode lets anybody but the owner in.
#[cfg(unix)]
fn open_to_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.metadata()?.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn open_to_others(_file: &File) -> io::Result<bool> {
    Ok(false)
}
