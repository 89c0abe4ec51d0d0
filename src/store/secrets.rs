//! Sealing of secrets at rest: the master key, and XChaCha20-Poly1305 under it.
//!
//! A sealed secret is bound to its place by the associated data ([`secret_aad`]): copied to another row it does not
//! open. Layout: one byte for format and key (1), 24 bytes of random nonce, then ciphertext and tag. This module
//! does not know which secrets exist.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret, SecretBox, SecretString};

use crate::core::id::Scope;

use super::private_file::{SecretFileError, open_private, read_secret};
use super::{Store, StoreError};

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// First byte of what is sealed now. A second key or another cipher takes the next number.
const FORMAT: u8 = 1;

/// Longest secret, in bytes: far above any API key, and small enough to keep a row small.
pub const MAX_SECRET_BYTES: usize = 16 * 1024;

const CANARY_KEY: &str = "master_key_canary";
const CANARY_TEXT: &str = "toolrack";

/// The key that all secrets of a database are sealed with. `Debug` shows nothing of it.
#[derive(Debug)]
pub struct MasterKey(SecretBox<[u8; KEY_BYTES]>);

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
        "the secrets of this database were sealed with another master key; give the key that it was created with"
    )]
    Wrong,
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
    /// Reads a key from 64 hexadecimal digits; white space around them is ignored.
    pub fn from_setting(text: &str) -> Result<Self, MasterKeyError> {
        SecretBox::try_init_with(|| {
            let mut key = [0; KEY_BYTES];
            hex::decode_to_slice(text.trim(), &mut key).map(|()| key)
        })
        .map(Self)
        .map_err(|_| MasterKeyError::Malformed)
    }

    /// Reads the key file, or makes one with a new random key, readable by its owner only.
    pub fn load_or_create(path: &Path) -> Result<Self, MasterKeyError> {
        let failed = |error| MasterKeyError::Io(path.to_owned(), error);
        match File::open(path) {
            Ok(file) => Self::load(&file, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = SecretBox::init_with(rand::random);
                let text = SecretString::from(hex::encode(key.expose_secret()));
                let mut file =
                    open_private(File::options().write(true).create_new(true), path).map_err(failed)?;
                let written = file.write_all(text.expose_secret().as_bytes()).and_then(|()| file.sync_all());
                if let Err(error) = written {
                    // Half a key would stop every later start; a missing file does not.
                    drop(std::fs::remove_file(path));
                    return Err(failed(error));
                }
                Ok(Self(key))
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn load(file: &File, path: &Path) -> Result<Self, MasterKeyError> {
        let text = read_secret(file, path).map_err(|error| match error {
            SecretFileError::Exposed(path) => MasterKeyError::Exposed(path),
            SecretFileError::Io(path, error) => MasterKeyError::Io(path, error),
        })?;
        Self::from_setting(text.expose_secret()).map_err(|_| MasterKeyError::MalformedFile(path.to_owned()))
    }

    /// Compares this key with the one that the database was first used with; the first use settles it.
    pub async fn check(&self, store: &dyn Store) -> Result<(), MasterKeyError> {
        let aad = format!("meta|{CANARY_KEY}");
        // So short a text always seals.
        let fresh = self.seal(&aad, CANARY_TEXT).map_err(|_| MasterKeyError::Wrong)?;
        let stored = store.init_meta(CANARY_KEY, hex::encode(fresh)).await?;
        let sealed = hex::decode(stored).map_err(|_| StoreError::Corrupt("master key check"))?;
        self.open(&aad, &sealed).map(drop).map_err(|Unreadable| MasterKeyError::Wrong)
    }

    /// Seals a secret for the place that `aad` names.
    pub fn seal(&self, aad: &str, plaintext: &str) -> Result<Vec<u8>, SecretTooLong> {
        if plaintext.len() > MAX_SECRET_BYTES {
            return Err(SecretTooLong);
        }
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload { msg: plaintext.as_bytes(), aad: aad.as_bytes() };
        // The cipher's only fault is a text beyond its own limit of 256 GiB.
        let ciphertext = self.cipher().encrypt(&XNonce::from(nonce), payload).map_err(|_| SecretTooLong)?;
        let mut sealed = Vec::with_capacity(1 + NONCE_BYTES + ciphertext.len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&ciphertext);
        Ok(sealed)
    }

    /// Opens what [`MasterKey::seal`] made for the same `aad`.
    pub fn open(&self, aad: &str, sealed: &[u8]) -> Result<SecretString, Unreadable> {
        let (&format, rest) = sealed.split_first().ok_or(Unreadable)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(Unreadable)?;
        if format != FORMAT {
            return Err(Unreadable);
        }
        let payload = Payload { msg: ciphertext, aad: aad.as_bytes() };
        let plaintext = self.cipher().decrypt(&XNonce::from(*nonce), payload).map_err(|_| Unreadable)?;
        String::from_utf8(plaintext).map(SecretString::from).map_err(|_| Unreadable)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.0.expose_secret().into())
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
