//! Files that only their owner may read, on systems that know owners.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file; one that is created gets mode 0600. SQLite gives its log files the mode of the database file.
pub(super) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

/// Whether the mode lets anybody but the owner in.
#[cfg(unix)]
pub(super) fn open_to_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.metadata()?.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(super) fn open_to_others(_file: &File) -> io::Result<bool> {
    Ok(false)
}
