//! The table of token vectors: its file form, read once.
//!
//! Little-endian: `TRTABLE1`, then four u32 (words, rows, dimensions, bytes of the vocabulary), an f32 scale for each row,
//! the vocabulary (each word ended by a line feed; pieces that continue a word begin with `##`), and an i8 for each row and
//! dimension. The first `rows` words have a vector, scale times row; the others only serve to split words rightly.

use std::fmt;

use super::wordpiece::Vocabulary;

const MAGIC: &[u8; 8] = b"TRTABLE1";
/// Most dimensions of a table: keeps sums of products within an i32.
const MAX_DIMENSIONS: usize = 1_024;
/// Largest scale of a row: keeps squares of sums within an f32. Rows are about as long as a unit vector.
const MAX_SCALE: f32 = 1e6;

/// Token vectors: weighted by rarity, and rotated so that the leading dimensions carry the most.
pub struct Table {
    vocabulary: Vocabulary,
    scales: Vec<f32>,
    dimensions: usize,
    /// An i8 for each row and dimension, row by row.
    vectors: &'static [u8],
}

/// The table that is compiled in; none in a build without the feature `semantic`, or if the file is broken.
pub fn table() -> Option<&'static Table> {
    #[cfg(feature = "semantic")]
    {
        static TABLE: std::sync::LazyLock<Option<Table>> =
            std::sync::LazyLock::new(|| Table::read(include_bytes!("table.bin")));
        TABLE.as_ref()
    }
    #[cfg(not(feature = "semantic"))]
    {
        None
    }
}

impl Table {
    /// Reads a table. None if anything about it is not as the format says.
    pub fn read(bytes: &'static [u8]) -> Option<Self> {
        let (numbers, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<16>()?;
        let mut numbers =
            numbers.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number) as usize);
        let (words, rows, dimensions) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let vocabulary_bytes = numbers.next()?;
        if rows > words || dimensions == 0 || dimensions > MAX_DIMENSIONS {
            return None;
        }
        let (scales, rest) = rest.split_at_checked(rows.checked_mul(4)?)?;
        let (vocabulary, vectors) = rest.split_at_checked(vocabulary_bytes)?;
        if vectors.len() != rows.checked_mul(dimensions)? {
            return None;
        }
        let scales: Vec<f32> =
            scales.as_chunks::<4>().0.iter().map(|scale| f32::from_le_bytes(*scale)).collect();
        if !scales.iter().all(|scale| (0.0..=MAX_SCALE).contains(scale)) {
            return None;
        }
        let vocabulary = Vocabulary::read(std::str::from_utf8(vocabulary).ok()?, words)?;
        Some(Self { vocabulary, scales, dimensions, vectors })
    }

    /// Numbers in a vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Approximate size in memory, the compiled-in file included.
    pub fn bytes(&self) -> usize {
        self.vocabulary.bytes() + self.scales.len() * 4 + self.vectors.len()
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Words below this number have a vector.
    pub(super) fn rows(&self) -> usize {
        self.scales.len()
    }

    /// Adds the vector of word `row`, `weight` times, to `sum`.
    pub(super) fn add_to(&self, sum: &mut [f32], row: u32, weight: f32) {
        let row = row as usize;
        let Some(scale) = self.scales.get(row) else { return };
        let factor = scale * weight;
        let start = row * self.dimensions;
        for (sum, byte) in sum.iter_mut().zip(&self.vectors[start..start + self.dimensions]) {
            *sum += factor * f32::from(byte.cast_signed());
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("rows", &self.rows())
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}
