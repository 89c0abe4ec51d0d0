//! Vectors that an endpoint made of texts: kept as whole numbers, compared by cosine.
//!
//! Knows nothing of endpoints and models. Whole numbers make a cosine the same on every machine, and need half the room.

use std::fmt;

/// Longest vector that is taken, in numbers: that of the widest models in use (NV-Embed, SFR, Qwen3-Embedding-8B).
pub const MAX_WIDTH: usize = 4_096;
/// The largest number of a vector as it is kept. Some models have a few numbers that are thirty times as large as the others,
/// of which 7 bits would leave nothing. 12 bits change a cosine by less than .001, and 64 products fit into an `i32`.
const STEPS: f32 = 4_095.0;
/// Numbers whose products are summed before the sum is widened, see [`STEPS`].
const CHUNK: usize = 64;

/// A vector, scaled so that its largest number is 4,095. `Debug` shows its width alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Embedding {
    numbers: Box<[i16]>,
    /// Of the whole numbers.
    length: u64,
}

impl Embedding {
    /// None for an empty or too long vector, one of zeros, and one that holds what is no number.
    pub fn of(vector: &[f32]) -> Option<Self> {
        let most = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        let is_usable = (1..=MAX_WIDTH).contains(&vector.len())
            && most > 0.0
            && vector.iter().all(|number| number.is_finite());
        // Divided first: a scale of tiny numbers would be infinite.
        is_usable
            .then(|| Self::from_numbers(vector.iter().map(|x| (x / most * STEPS).round() as i16).collect()))
    }

    fn from_numbers(numbers: Box<[i16]>) -> Self {
        let length = dot(&numbers, &numbers).unsigned_abs();
        Self { numbers, length }
    }

    /// How many numbers it has.
    pub fn width(&self) -> usize {
        self.numbers.len()
    }

    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of::<i16>() * self.width()
    }

    /// -1 to 1; none between vectors of different widths, which come of different models.
    pub fn cosine(&self, other: &Self) -> Option<f64> {
        if self.width() != other.width() {
            return None;
        }
        let lengths = (self.length as f64).sqrt() * (other.length as f64).sqrt();
        Some((dot(&self.numbers, &other.numbers) as f64 / lengths).clamp(-1.0, 1.0))
    }

    /// The stored form: two bytes a number, the lower one first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Reads the stored form; none for what [`Embedding::to_bytes`] never writes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let numbers: Box<[i16]> = pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
        let most = numbers.iter().map(|number| number.unsigned_abs()).max()?;
        let is_whole = rest.is_empty() && numbers.len() <= MAX_WIDTH && f32::from(most) == STEPS;
        is_whole.then(|| Self::from_numbers(numbers))
    }
}

impl fmt::Debug for Embedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embedding({})", self.width())
    }
}

/// The sum of the products of two vectors of one width.
fn dot(a: &[i16], b: &[i16]) -> i64 {
    let sum = |a: &[i16], b: &[i16]| a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>();
    a.chunks(CHUNK).zip(b.chunks(CHUNK)).map(|(a, b)| i64::from(sum(a, b))).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(a: &[f32], b: &[f32]) -> f64 {
        let dot =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    #[test]
    fn what_is_no_vector_is_none() {
        for bad in [&[][..], &[0.0, 0.0], &[1.0, f32::NAN], &[f32::INFINITY], &vec![1.0; MAX_WIDTH + 1]] {
            assert_eq!(Embedding::of(bad), None);
        }
        assert_eq!(Embedding::of(&[1.0]).unwrap().cosine(&Embedding::of(&[1.0, 0.0]).unwrap()), None);
        for bad in [&[][..], &[1], &[1, 0], &[0xff, 0x0f, 1]] {
            assert_eq!(Embedding::from_bytes(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_widest_vectors_do_not_overflow() {
        let wide = Embedding::of(&vec![-1e30; MAX_WIDTH]).unwrap();
        assert_eq!(wide.cosine(&wide), Some(1.0));
        let tiny = Embedding::of(&[f32::MIN_POSITIVE / 4.0, 0.0]).unwrap();
        assert_eq!(tiny.cosine(&tiny), Some(1.0));
    }

    proptest! {
        #[test]
        fn a_cosine_is_nearly_exact_and_survives_storing(
            (a, b) in (2usize..600).prop_flat_map(|width| {
                let vector = || prop::collection::vec(-1.0f32..1.0, width);
                (vector(), vector())
            }),
        ) {
            let (Some(one), Some(two)) = (Embedding::of(&a), Embedding::of(&b)) else { return Ok(()) };
            let cosine = one.cosine(&two).unwrap();
            prop_assert!((cosine - exact(&a, &b)).abs() < 0.001, "{cosine} {}", exact(&a, &b));
            prop_assert_eq!(Embedding::from_bytes(&one.to_bytes()), Some(one));
        }

        #[test]
        fn stored_bytes_of_any_kind_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(read) = Embedding::from_bytes(&bytes) {
                prop_assert_eq!(read.to_bytes(), bytes);
            }
        }
    }
}
