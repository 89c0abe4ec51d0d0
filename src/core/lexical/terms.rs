//! Keys of terms and the table that finds a term by its key.
//!
//! A term is known by a 64-bit hash of its kind and text; the text is not kept. Two words that collide would share their
//! postings, which at 100,000 terms happens with a probability of about 1 in 4 thousand million.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// What kind of term a text is; the same text in two kinds is two terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A stem, or two adjacent characters of a script without spaces.
    Stem = 1,
    /// A word as written, kept only where its stem differs.
    Raw = 2,
    /// Two adjacent stems.
    Pair = 3,
    /// One character of a script without spaces.
    Single = 4,
    /// A tool's name without case and separators.
    Name = 5,
    /// A word or phrase of the lexicon; never in an index.
    Concept = 6,
    /// The name of a group (server) without case and separators; each of its tools holds it.
    Group = 7,
    /// A word of the name of a group.
    GroupWord = 9,
    /// A stem by the rules of another language in Latin letters than English.
    Foreign = 8,
}

/// FNV-1a (its published 64-bit constants), finished with the mixer of MurmurHash3 so that the high bits are even.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key(u64);

impl Key {
    pub(super) fn new(kind: Kind) -> Self {
        Self(0xcbf2_9ce4_8422_2325).byte(kind as u8)
    }

    pub(super) fn byte(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    pub(super) fn text(self, text: &str) -> Self {
        text.bytes().fold(self, Self::byte)
    }

    pub(super) fn finish(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}

/// The key of a term of one text.
pub(super) fn key(kind: Kind, text: &str) -> u64 {
    Key::new(kind).text(text).finish()
}

/// The key of a term of one text, given as its characters.
pub(super) fn characters_key(kind: Kind, characters: impl Iterator<Item = char>) -> u64 {
    let mut buffer = [0; 4];
    characters.fold(Key::new(kind), |key, c| key.text(c.encode_utf8(&mut buffer))).finish()
}

/// The key of a term whose text is `first` and `second` without a gap. For [`Kind::Pair`] that makes `file system` and
/// `filesystem` the same.
pub(super) fn joined_key(kind: Kind, first: &str, second: &str) -> u64 {
    Key::new(kind).text(first).text(second).finish()
}

/// Hashes keys by themselves: they are hashes already.
#[derive(Debug, Default)]
pub(super) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

pub(super) type KeyMap<T> = HashMap<u64, T, BuildHasherDefault<Identity>>;

/// A set of keys.
pub(super) type KeySet = HashSet<u64, BuildHasherDefault<Identity>>;

/// Sorted term keys with a directory by their first bits: a lookup reads one directory entry and about one key.
#[derive(Debug, Default)]
pub(super) struct TermTable {
    keys: Vec<u64>,
    directory: Vec<u32>,
    shift: u32,
}

impl TermTable {
    /// `keys` must be sorted and without repeats; the term's number is its place.
    pub(super) fn new(keys: Vec<u64>) -> Self {
        let bits = keys.len().max(2).ilog2();
        let shift = 64 - bits;
        let mut directory = vec![0_u32; (1 << bits) + 1];
        for &key in &keys {
            directory[(key >> shift) as usize + 1] += 1;
        }
        for at in 1..directory.len() {
            directory[at] += directory[at - 1];
        }
        Self { keys, directory, shift }
    }

    /// The number of the term with this key.
    pub(super) fn find(&self, key: u64) -> Option<usize> {
        let bucket = (key >> self.shift) as usize;
        let (start, end) = (self.directory[bucket] as usize, self.directory[bucket + 1] as usize);
        self.keys[start..end].iter().position(|&other| other == key).map(|place| start + place)
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.len() * 8 + self.directory.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_no_other() {
        for count in [0_u32, 1, 2, 3, 1_000] {
            let mut keys: Vec<u64> = (0..count).map(|n| key(Kind::Stem, &n.to_string())).collect();
            keys.sort_unstable();
            let table = TermTable::new(keys.clone());
            for (place, &key) in keys.iter().enumerate() {
                assert_eq!(table.find(key), Some(place));
            }
            assert_eq!(table.find(key(Kind::Raw, "0")), None);
        }
    }

    #[test]
    fn kinds_keep_equal_texts_apart() {
        assert_ne!(key(Kind::Stem, "file"), key(Kind::Raw, "file"));
        assert_eq!(joined_key(Kind::Pair, "file", "system"), key(Kind::Pair, "filesystem"));
    }
}
