//! Another master key for a database: the key files during the change, and sealing everything anew.
//!
//! At every moment all secrets open with the keys that stand in the files: the old key is put aside before the new one takes
//! its place, and goes when nothing is sealed with it any more. Whoever is interrupted begins again where it stopped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;

use super::backup::sync_folder;
use super::secrets::CANARY_KEY;
use super::{MasterKey, MasterKeyError, Reseal, Store, secret_aad};

/// The key file, and the names that it has during a change.
#[derive(Debug, Clone)]
pub struct KeyFileRotation {
    file: PathBuf,
}

/// What sealing anew did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resealed {
    pub resealed: usize,
    /// Sealed with the present key before.
    pub current: usize,
    /// Opened by no known key; left as they are.
    pub unreadable: usize,
}

impl KeyFileRotation {
    pub fn new(file: &Path) -> Self {
        Self { file: file.to_owned() }
    }

    fn beside(&self, end: &str) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    }

    /// Where the key of before stands while not everything is sealed anew.
    pub fn old_file(&self) -> PathBuf {
        self.beside(".old")
    }

    /// The key of before; `None` while no change is under way.
    pub fn old_key(&self) -> Result<Option<MasterKey>, MasterKeyError> {
        match MasterKey::load(&self.old_file()) {
            Err(MasterKeyError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            loaded => loaded.map(Some),
        }
    }

    /// Puts the key of the file aside and another one in its place. The answer opens what either sealed.
    pub fn begin(&self, present: MasterKey, new: MasterKey) -> Result<MasterKey, MasterKeyError> {
        let file = self.beside(".new");
        remove(&file)?;
        new.write(&file)?;
        // A copy, so that the key file is there at every moment; under its name once it is whole. The key of an earlier change is
        // never overwritten.
        if self.old_file().exists() {
            return Err(MasterKeyError::Io(self.old_file(), io::ErrorKind::AlreadyExists.into()));
        }
        let copy = self.beside(".old.partial");
        remove(&copy)?;
        present.write(&copy)?;
        let moved = |from: &Path, to: &Path| {
            fs::rename(from, to)
                .and_then(|()| sync_folder(&self.file))
                .map_err(|error| MasterKeyError::Io(to.to_owned(), error))
        };
        moved(&copy, &self.old_file())?;
        moved(&file, &self.file)?;
        Ok(new.with_previous(present))
    }

    /// Removes the key of before.
    pub fn end(&self) -> Result<(), MasterKeyError> {
        remove(&self.old_file())
    }
}

fn remove(file: &Path) -> Result<(), MasterKeyError> {
    let gone = match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        gone => gone,
    };
    gone.and_then(|()| sync_folder(file)).map_err(|error| MasterKeyError::Io(file.to_owned(), error))
}

/// Seals everything with the present key that an older one sealed, in one transaction; keys in drafts and signed-in browsers
/// are dropped with it.
pub async fn reseal_all(store: &dyn Store, key: &MasterKey) -> Result<Resealed, MasterKeyError> {
    let mut counts = Resealed { resealed: 0, current: 0, unreadable: 0 };
    let mut changes = Vec::new();
    for place in store.sealed_secrets().await? {
        let aad = secret_aad(&place.scope, &place.name);
        match key.open(&aad, &place.sealed) {
            Err(_) => counts.unreadable += 1,
            Ok(_) if key.is_current(&place.sealed) => counts.current += 1,
            // What was stored is short enough to be sealed again.
            Ok(secret) => match key.seal(&aad, secret.expose_secret()) {
                Ok(sealed) => changes.push(Reseal { place, sealed }),
                Err(_) => counts.unreadable += 1,
            },
        }
    }
    counts.resealed = changes.len();
    store.reseal(changes, (CANARY_KEY.to_owned(), key.canary())).await?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_change_of_the_key_file_can_stop_at_any_step() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.db.key");
        let first = MasterKey::load_or_create(&path).unwrap();
        let sealed = first.seal("a", "secret").unwrap();
        let rotation = KeyFileRotation::new(&path);
        assert!(rotation.old_key().unwrap().is_none());
        // What an earlier attempt left, which nothing was sealed with.
        MasterKey::random().write(&path.with_extension("key.new")).unwrap();

        let both = rotation.begin(first, MasterKey::random()).unwrap();
        assert!(both.has_previous() && both.open("a", &sealed).is_ok());
        let new = MasterKey::load(&path).unwrap();
        assert!(new.open("a", &sealed).is_err());
        let old = rotation.old_key().unwrap().unwrap();
        assert!(old.open("a", &sealed).is_ok());
        assert_eq!(rotation.old_file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // Neither key is overwritten by a second beginning.
        assert!(rotation.begin(new, MasterKey::random()).is_err());
        assert!(rotation.old_key().unwrap().unwrap().open("a", &sealed).is_ok());

        rotation.end().unwrap();
        rotation.end().unwrap();
        assert!(rotation.old_key().unwrap().is_none());
    }
}
