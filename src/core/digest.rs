//! Digests: SHA-256 over content, so that everything derived can be keyed by what it was made from.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The first 16 bytes of a SHA-256: identity of some content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_parts(&[bytes])
    }

    /// Of several byte strings; each one's length takes part, so that moving a border changes the digest.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Hasher::default();
        for part in parts {
            hasher.add(part);
        }
        hasher.finish()
    }

    /// Of a JSON value, whatever the order of its keys.
    pub fn of_json(value: &Value) -> Self {
        let mut text = String::new();
        write_sorted(value, &mut text);
        Self::of(text.as_bytes())
    }

    /// Reads 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// The first 8 bytes, for places where many are kept and a chance hit does no harm.
    pub fn short(&self) -> u64 {
        let mut head = [0; 8];
        head.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(head)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| D::Error::custom("not a digest"))
    }
}

/// Builds a [`Digest`] piece by piece.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

impl Hasher {
    /// Adds one byte string with its length.
    pub fn add(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    pub fn finish(self) -> Digest {
        let full = self.0.finalize();
        let mut head = [0; 16];
        head.copy_from_slice(&full[..16]);
        Digest(head)
    }
}

/// The eight hexadecimal digits that a changed name ends in: the head of the SHA-256 of a stored name
/// (`tool-formats.md`, section 1.6, rule 2).
pub fn name_suffix(name: &str) -> String {
    hex::encode(&Sha256::digest(name.as_bytes())[..4])
}

/// The head of a digest as 16 hexadecimal digits.
pub fn head_text(head: u64) -> String {
    format!("{head:016x}")
}

/// Writes a value compactly with the keys of every object sorted. Depth is bounded by the parser's own limit.
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_string(key, out);
                out.push(':');
                write_sorted(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        Value::String(text) => push_string(text, out),
        other => out.push_str(&other.to_string()),
    }
}

/// Appends a text as a JSON string.
pub fn push_string(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_order_is_no_difference_and_content_is() {
        let one = json!({"a": 1, "b": {"c": [1, 2], "d": "x"}});
        let same = json!({"b": {"d": "x", "c": [1, 2]}, "a": 1});
        let other = json!({"b": {"d": "x", "c": [2, 1]}, "a": 1});
        assert_eq!(Digest::of_json(&one), Digest::of_json(&same));
        assert_ne!(Digest::of_json(&one), Digest::of_json(&other));
        assert_ne!(Digest::of_parts(&[b"ab", b"c"]), Digest::of_parts(&[b"a", b"bc"]));
    }

    #[test]
    fn hexadecimal_text_reads_back() {
        let digest = Digest::of(b"x");
        assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
        assert_eq!(Digest::from_hex("zz"), None);
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"zz\"").is_err());
    }
}
