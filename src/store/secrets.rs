//! Sealing of secrets at rest: the master key, and XChaCha20-Poly1305 under it.
//!
//! A sealed secret is bound to its place by the associated data ([`secret_aad`]): copied to another row it does not
//! open. Layout: one byte of format (2), 4 bytes that name the key, 24 bytes of random nonce, then ciphertext and tag;
//! format 1, of before keys could change, has no name of a key. This module does not know which secrets exist.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret, SecretBox, SecretString};
use sha2::{Digest as _, Sha256};

use crate::core::digest::Digest;
use crate::core::id::Scope;

use super::backup::sync_folder;
use super::private_file::{SecretFileError, open_private, read_secret};
use super::{Store, StoreError};

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
const ID_BYTES: usize = 4;

/// First byte of what was sealed before keys had names.
const UNNAMED: u8 = 1;

/// First byte of what is sealed now. Another cipher takes the next number.
const FORMAT: u8 = 2;

/// Longest secret, in bytes: far above any API key, and small enough to keep a row small.
pub const MAX_SECRET_BYTES: usize = 16 * 1024;

pub(super) const CANARY_KEY: &str = "master_key_canary";
const CANARY_TEXT: &str = "toolrack";

/// The key that secrets are sealed with, and those of before that may still be needed to open some. `Debug` shows nothing
/// of any.
#[derive(Debug)]
pub struct MasterKey {
    current: Key,
    previous: Vec<Key>,
}

/// One key with its name: the beginning of a digest of it, which tells nothing about 256 random bits.
#[derive(Debug)]
struct Key {
    id: [u8; ID_BYTES],
    bytes: SecretBox<[u8; KEY_BYTES]>,
}

#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    #[error("a master key is 64 hexadecimal digits (32 bytes)")]
    Malformed,
    #[error("the master key file {0} does not hold 64 hexadecimal digits; put the right key there")]
    MalformedFile(PathBuf),
    #[error("others can read the master key file {0}; make it private with: chmod 600 {0}")]
    Exposed(PathBuf),
    #[error("cannot use the master key file {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    #[error(
        "{0} stored secrets of endpoints were sealed with another master key and read as not set; give the key that they \
         were sealed with, or set them anew"
    )]
    Wrong(usize),
    #[error(
        "this database is used with another master key than secrets.master_key, and than secrets.previous_master_key; the processes \
         that share it could not open each other's secrets: set the key that the others have (docs/backup.md tells how to change it, \
         and what to do where it is lost)"
    )]
    NotShared,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A sealed secret does not open: another master key, another place, or damaged bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored secret cannot be read: sealed with another key, or damaged")]
pub struct Unreadable;

/// A secret is longer than [`MAX_SECRET_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is at most {MAX_SECRET_BYTES} bytes long")]
pub struct SecretTooLong;

/// The associated data of a scope's secret: its place.
pub fn secret_aad(scope: &Scope, name: &str) -> String {
    format!("secrets|{}|{}|{name}", scope.kind(), scope.id())
}

impl MasterKey {
    /// A digest of a text that nobody can make without the key; another one after the key was changed.
    pub fn blind(&self, text: &[u8]) -> Digest {
        Digest::of_parts(&[b"toolrack blind", self.current.bytes.expose_secret(), text])
    }
}

fn canary_aad() -> String {
    format!("meta|{CANARY_KEY}")
}

impl Key {
    fn new(bytes: SecretBox<[u8; KEY_BYTES]>) -> Self {
        let digest = Sha256::new().chain_update(b"toolrack master key").chain_update(bytes.expose_secret());
        let id = digest.finalize().first_chunk().copied().unwrap_or_default();
        Self { id, bytes }
    }

    fn random() -> Self {
        Self::new(SecretBox::init_with(rand::random))
    }

    fn open(&self, aad: &str, nonce: [u8; NONCE_BYTES], ciphertext: &[u8]) -> Option<SecretString> {
        let payload = Payload { msg: ciphertext, aad: aad.as_bytes() };
        let plaintext = self.cipher().decrypt(&XNonce::from(nonce), payload).ok()?;
        String::from_utf8(plaintext).map(SecretString::from).ok()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.bytes.expose_secret().into())
    }

    /// Writes a file that does not exist yet; on the disk before its name is.
    fn write(&self, path: &Path) -> io::Result<()> {
        let text = SecretString::from(hex::encode(self.bytes.expose_secret()));
        let mut file = open_private(File::options().write(true).create_new(true), path)?;
        let written = file.write_all(text.expose_secret().as_bytes()).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // Half a key would stop every later start; a missing file does not.
            drop(std::fs::remove_file(path));
            return Err(error);
        }
        sync_folder(path)
    }
}

impl MasterKey {
    /// Reads a key from 64 hexadecimal digits; white space around them is ignored.
    pub fn from_setting(text: &str) -> Result<Self, MasterKeyError> {
        let bytes = SecretBox::try_init_with(|| {
            let mut key = [0; KEY_BYTES];
            hex::decode_to_slice(text.trim(), &mut key).map(|()| key)
        });
        let current = bytes.map(Key::new).map_err(|_| MasterKeyError::Malformed)?;
        Ok(Self { current, previous: Vec::new() })
    }

    /// A new key.
    pub fn random() -> Self {
        Self { current: Key::random(), previous: Vec::new() }
    }

    /// Reads the key file, or makes one with a new random key, readable by its owner only.
    pub fn load_or_create(path: &Path) -> Result<Self, MasterKeyError> {
        match Self::load(path) {
            Err(MasterKeyError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {
                let key = Self::random();
                key.write(path)?;
                Ok(key)
            }
            loaded => loaded,
        }
    }

    /// Reads a key file.
    pub fn load(path: &Path) -> Result<Self, MasterKeyError> {
        let failed = |error| MasterKeyError::Io(path.to_owned(), error);
        let file = File::open(path).map_err(failed)?;
        let text = read_secret(&file, path).map_err(|error| match error {
            SecretFileError::Exposed(path) => MasterKeyError::Exposed(path),
            SecretFileError::Io(path, error) => MasterKeyError::Io(path, error),
        })?;
        Self::from_setting(text.expose_secret()).map_err(|_| MasterKeyError::MalformedFile(path.to_owned()))
    }

    /// Writes the present key into a file that does not exist yet.
    pub(super) fn write(&self, path: &Path) -> Result<(), MasterKeyError> {
        self.current.write(path).map_err(|error| MasterKeyError::Io(path.to_owned(), error))
    }

    /// Opens also what the keys of another one sealed.
    #[must_use]
    pub fn with_previous(mut self, older: Self) -> Self {
        let known = |keys: &[Key], id| keys.iter().any(|key| key.id == id);
        for key in std::iter::once(older.current).chain(older.previous) {
            if key.id != self.current.id && !known(&self.previous, key.id) {
                self.previous.push(key);
            }
        }
        self
    }

    /// Whether there is a key of before.
    pub fn has_previous(&self) -> bool {
        !self.previous.is_empty()
    }

    /// Compares the keys with the one that the database was last sealed with; the first use settles it. Where it is another
    /// one, but no secret is left that needs it, this one takes its place, unless other processes may be using the database with theirs.
    pub async fn check(&self, store: &dyn Store) -> Result<(), MasterKeyError> {
        let aad = canary_aad();
        // Read first: a full disk must not stop a start.
        let stored = match store.meta(CANARY_KEY).await? {
            Some(stored) => stored,
            None => store.init_meta(CANARY_KEY, self.canary()).await?,
        };
        let sealed = hex::decode(stored).map_err(|_| StoreError::Corrupt("master key check"))?;
        if self.open(&aad, &sealed).is_ok() {
            return Ok(());
        }
        if store.is_shared() {
            return Err(MasterKeyError::NotShared);
        }
        let secrets = store.sealed_secrets().await?;
        let readable = |aad: &str, sealed: &[u8]| self.open(aad, sealed).is_ok();
        let lost =
            secrets.iter().filter(|place| !readable(&secret_aad(&place.scope, &place.name), &place.sealed));
        match lost.count() {
            0 => Ok(store.reseal(Vec::new(), (CANARY_KEY.to_owned(), self.canary())).await?),
            lost => Err(MasterKeyError::Wrong(lost)),
        }
    }

    /// What shows later which key this was.
    pub(super) fn canary(&self) -> String {
        // So short a text always seals.
        self.seal(&canary_aad(), CANARY_TEXT).map(hex::encode).unwrap_or_default()
    }

    /// Seals a secret for the place that `aad` names.
    pub fn seal(&self, aad: &str, plaintext: &str) -> Result<Vec<u8>, SecretTooLong> {
        if plaintext.len() > MAX_SECRET_BYTES {
            return Err(SecretTooLong);
        }
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload { msg: plaintext.as_bytes(), aad: aad.as_bytes() };
        // The cipher's only fault is a text beyond its own limit of 256 GiB.
        let ciphertext =
            self.current.cipher().encrypt(&XNonce::from(nonce), payload).map_err(|_| SecretTooLong)?;
        let mut sealed = Vec::with_capacity(1 + ID_BYTES + NONCE_BYTES + ciphertext.len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(&self.current.id);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&ciphertext);
        Ok(sealed)
    }

    /// Opens what [`MasterKey::seal`] of this key, or of one before it, made for the same `aad`.
    pub fn open(&self, aad: &str, sealed: &[u8]) -> Result<SecretString, Unreadable> {
        let (&format, rest) = sealed.split_first().ok_or(Unreadable)?;
        let (id, rest) = match format {
            UNNAMED => (None, rest),
            FORMAT => {
                rest.split_first_chunk::<ID_BYTES>().map(|(id, rest)| (Some(id), rest)).ok_or(Unreadable)?
            }
            _ => return Err(Unreadable),
        };
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(Unreadable)?;
        let keys = std::iter::once(&self.current).chain(&self.previous);
        let mut fitting = keys.filter(|key| id.is_none_or(|id| *id == key.id));
        fitting.find_map(|key| key.open(aad, *nonce, ciphertext)).ok_or(Unreadable)
    }

    /// Whether the present key, and none of before, sealed this.
    pub(super) fn is_current(&self, sealed: &[u8]) -> bool {
        matches!(sealed.split_first(), Some((&FORMAT, rest)) if rest.starts_with(&self.current.id))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::core::id::Id;

    use super::*;

    fn key(byte: u8) -> MasterKey {
        MasterKey::from_setting(&hex::encode([byte; KEY_BYTES])).unwrap()
    }

    #[test]
    fn a_secret_opens_only_in_its_place_and_unchanged() {
        let scope = Scope::User(Id::parse("ann").unwrap());
        let aad = secret_aad(&scope, "matcher.api_key");
        assert_eq!(aad, "secrets|user|ann|matcher.api_key");
        let sealed = key(1).seal(&aad, "sk-very-secret").unwrap();
        assert_eq!(key(1).open(&aad, &sealed).unwrap().expose_secret(), "sk-very-secret");
        let elsewhere = secret_aad(&Scope::Project(Id::parse("ann").unwrap()), "matcher.api_key");
        assert_eq!(key(1).open(&elsewhere, &sealed).unwrap_err(), Unreadable);
        assert_eq!(key(2).open(&aad, &sealed).unwrap_err(), Unreadable);
        for position in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[position] ^= 1;
            assert_eq!(key(1).open(&aad, &damaged).unwrap_err(), Unreadable, "byte {position}");
        }
        assert_ne!(sealed, key(1).seal(&aad, "sk-very-secret").unwrap(), "every seal has its own nonce");
    }

    #[test]
    fn long_secrets_are_refused_and_keys_never_show() {
        assert_eq!(key(1).seal("a", &"x".repeat(MAX_SECRET_BYTES + 1)), Err(SecretTooLong));
        assert!(key(1).seal("a", &"x".repeat(MAX_SECRET_BYTES)).is_ok());
        assert!(!format!("{:?}", key(0xab)).contains("ab"), "{:?}", key(0xab));
        assert!(!format!("{:?}", key(0xab)).contains("171"), "{:?}", key(0xab));
        for bad in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66)] {
            assert!(matches!(MasterKey::from_setting(bad), Err(MasterKeyError::Malformed)));
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_key_file_is_private_and_stays_the_same() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.db.key");
        let sealed = MasterKey::load_or_create(&path).unwrap().seal("a", "secret").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let again = MasterKey::load_or_create(&path).unwrap();
        assert_eq!(again.open("a", &sealed).unwrap().expose_secret(), "secret");

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = MasterKey::load_or_create(&path).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "not a key").unwrap();
        assert!(matches!(MasterKey::load_or_create(&path), Err(MasterKeyError::MalformedFile(_))));
    }

    #[test]
    fn what_an_earlier_key_sealed_opens_while_it_is_known() {
        let old = key(1).seal("a", "secret").unwrap();
        let both = key(2).with_previous(key(1));
        assert!(both.has_previous() && !both.is_current(&old));
        assert_eq!(both.open("a", &old).unwrap().expose_secret(), "secret");
        let new = both.seal("a", "secret").unwrap();
        assert!(both.is_current(&new) && key(2).open("a", &new).is_ok());
        assert_eq!(key(1).open("a", &new).unwrap_err(), Unreadable);
        assert!(!key(1).with_previous(key(1)).has_previous());
        // Before keys had names.
        let unnamed = [&[UNNAMED][..], &old[1 + ID_BYTES..]].concat();
        assert_eq!(both.open("a", &unnamed).unwrap().expose_secret(), "secret");
        assert!(!key(1).is_current(&unnamed) && key(2).open("a", &unnamed).is_err());
    }

    proptest! {
        #[test]
        fn sealing_keeps_every_text(text in any::<String>(), aad in any::<String>()) {
            let sealed = key(3).seal(&aad, &text).unwrap();
            let opened = key(3).open(&aad, &sealed).unwrap();
            prop_assert_eq!(opened.expose_secret(), text.as_str());
        }

        #[test]
        fn arbitrary_bytes_never_open(sealed in proptest::collection::vec(any::<u8>(), 0..128)) {
            prop_assert!(key(3).open("a", &sealed).is_err());
        }
    }
}
