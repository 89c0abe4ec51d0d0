//! The text of a key: `trk_<id>_<secret>_<check>`, all in lower-case hexadecimal digits.
//!
//! The check makes a typo another thing than an unknown key, and lets a scanner for leaked secrets be sure of what it found
//! without asking anybody. It is no protection: whoever knows the rest can make it.

use std::fmt;
use std::str::FromStr;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What every key starts with.
const PREFIX: &str = "trk_";

/// Hexadecimal digits of id, secret (256 bits) and check.
const ID_DIGITS: usize = 16;
const SECRET_DIGITS: usize = 64;
const CHECK_DIGITS: usize = 8;

/// Bytes of a key.
const KEY_BYTES: usize = PREFIX.len() + ID_DIGITS + 1 + SECRET_DIGITS + 1 + CHECK_DIGITS;

/// The public part of a key: names it in listings, logs and paths.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; ID_DIGITS / 2]);

impl KeyId {
    pub const fn new(bytes: [u8; ID_DIGITS / 2]) -> Self {
        Self(bytes)
    }

    fn read(digits: &[u8]) -> Result<Self, InvalidKeyId> {
        // One id has one text, so no upper case.
        if digits.iter().any(u8::is_ascii_uppercase) {
            return Err(InvalidKeyId);
        }
        let mut bytes = [0; ID_DIGITS / 2];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| InvalidKeyId)?;
        Ok(Self(bytes))
    }
}

/// Why a text is not the id of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a key is {ID_DIGITS} hexadecimal digits")]
pub struct InvalidKeyId;

impl FromStr for KeyId {
    type Err = InvalidKeyId;

    fn from_str(text: &str) -> Result<Self, InvalidKeyId> {
        Self::read(text.as_bytes())
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// SHA-256 of a whole key: what is stored of it. A key holds 256 random bits, so a fast digest is enough; digests compare
/// in constant time whatever was sent.
#[derive(Clone, Copy)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// Whether both are digests of one key, in constant time.
    pub fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// For the store.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest")
    }
}

/// The text of a key with this id and secret.
pub fn format_key(id: KeyId, secret: &[u8; SECRET_DIGITS / 2]) -> SecretString {
    let body = SecretString::from(format!("{PREFIX}{id}_{}", hex::encode(secret)));
    let body = body.expose_secret();
    SecretString::from(format!("{body}_{}", check_of(body.as_bytes())))
}

/// The id in a text that has the form of a key. Secret and check are not looked at: the digest of a key says all about them,
/// and [`is_misspelt`] tells where that is another.
pub fn key_id(text: &[u8]) -> Option<KeyId> {
    let text = text.strip_prefix(PREFIX.as_bytes()).filter(|_| text.len() == KEY_BYTES)?;
    let (id, rest) = text.split_at_checked(ID_DIGITS)?;
    let between = [rest.first(), rest.get(1 + SECRET_DIGITS)];
    if between != [Some(&b'_'); 2] {
        return None;
    }
    KeyId::read(id).ok()
}

/// Whether a text starts like a key and cannot be one: cut off, or with a wrong character in it.
pub fn is_misspelt(text: &[u8]) -> bool {
    if !text.starts_with(PREFIX.as_bytes()) {
        return false;
    }
    let split = text.len().saturating_sub(CHECK_DIGITS + 1);
    let (body, check) = text.split_at(split);
    key_id(text).is_none() || check.get(1..) != Some(check_of(body).as_bytes())
}

/// The first 8 hexadecimal digits of the SHA-256 of what stands before the check.
fn check_of(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    hex::encode(&digest[..CHECK_DIGITS / 2])
}
