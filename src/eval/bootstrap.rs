//! Whether a difference between two settings is more than chance: a paired bootstrap over the queries.
//!
//! Pure and deterministic: the same parts give the same interval on every machine.

use serde::Serialize;

use super::metrics::Share;

/// How often the queries are drawn anew; the ends of a 95 % interval are steady from about a thousand on.
pub const RESAMPLES: usize = 2_000;
const SEED: u64 = 0x746f_6f6c_7261_636b;

/// The difference of a figure, second setting less first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    pub difference: f64,
    /// Ends of the 95 % interval, by percentiles.
    pub low: f64,
    pub high: f64,
}

impl Difference {
    /// Whether the interval leaves out zero.
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// One query's parts of a figure under both settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub first: Share,
    pub second: Share,
}

/// The difference of a figure with its interval; none where either setting has no figure.
pub fn paired(pairs: &[Pair]) -> Option<Difference> {
    let counted = |pair: &&Pair| pair.first.weight > 0.0 || pair.second.weight > 0.0;
    let pairs: Vec<Pair> = pairs.iter().filter(counted).copied().collect();
    let difference = difference(pairs.iter())?;
    let mut random = SplitMix64(SEED);
    // A resample may draw only queries that say nothing about one of the settings.
    let resamples = (0..RESAMPLES).filter_map(|_| {
        self::difference((0..pairs.len()).filter_map(|_| pairs.get(random.below(pairs.len()))))
    });
    let mut drawn: Vec<f64> = resamples.collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let end = |share: f64| {
        let at = (share * drawn.len() as f64) as usize;
        drawn.get(at.min(drawn.len().saturating_sub(1))).copied().unwrap_or(difference)
    };
    Some(Difference { difference, low: end(0.025), high: end(0.975) })
}

fn difference<'a>(pairs: impl Iterator<Item = &'a Pair>) -> Option<f64> {
    let (mut first, mut second) = (Share::default(), Share::default());
    for pair in pairs {
        first = Share { sum: first.sum + pair.first.sum, weight: first.weight + pair.first.weight };
        second = Share { sum: second.sum + pair.second.sum, weight: second.weight + pair.second.weight };
    }
    let figure = |share: Share| (share.weight > 0.0).then(|| share.sum / share.weight);
    Some(figure(second)? - figure(first)?)
}

/// Small seedable generator of random numbers (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
/// OOPSLA 2014). Generators of crates may draw other numbers in other versions.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `n - 1`; 0 when `n` is 0.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(values: impl IntoIterator<Item = (f64, f64)>) -> Vec<Pair> {
        let share = |sum| Share { sum, weight: 1.0 };
        values
            .into_iter()
            .map(|(first, second)| Pair { first: share(first), second: share(second) })
            .collect()
    }

    #[test]
    fn the_same_parts_give_the_same_interval() {
        let mixed = pairs((0..200).map(|at| (f64::from(at % 2), f64::from(at % 3).min(1.0))));
        let first = paired(&mixed).unwrap();
        assert_eq!(paired(&mixed).unwrap(), first);
        assert!(first.low <= first.difference && first.difference <= first.high, "{first:?}");
        assert!(first.low < first.high);
    }

    #[test]
    fn equal_settings_differ_by_nothing() {
        let same = paired(&pairs((0..50).map(|at| (f64::from(at % 2), f64::from(at % 2))))).unwrap();
        assert_eq!(same, Difference { difference: 0.0, low: 0.0, high: 0.0 });
        assert!(!same.is_clear());
    }

    #[test]
    fn a_gain_on_every_query_is_clear_and_one_on_few_is_not() {
        let all = paired(&pairs((0..100).map(|_| (0.0, 0.5)))).unwrap();
        assert!(all.is_clear() && (all.difference - 0.5).abs() < 1e-9);
        // One query better, one worse than before, out of a hundred.
        let few = paired(&pairs((0..100).map(|at| match at {
            0 => (0.0, 1.0),
            1 => (1.0, 0.0),
            _ => (1.0, 1.0),
        })))
        .unwrap();
        assert!(!few.is_clear(), "{few:?}");
    }

    #[test]
    fn the_interval_is_about_two_standard_errors_wide() {
        // Differences of +1 and -1 in equal parts: the standard error of their mean is 1/sqrt(400) = .05.
        let noise = pairs((0..400).map(|at| if at % 2 == 0 { (0.0, 1.0) } else { (1.0, 0.0) }));
        let found = paired(&noise).unwrap();
        assert!((found.high - 0.098).abs() < 0.015 && (found.low + 0.098).abs() < 0.015, "{found:?}");
    }

    #[test]
    fn queries_that_say_nothing_are_left_out() {
        assert_eq!(paired(&[]), None);
        let silent = Pair { first: Share::default(), second: Share::default() };
        assert_eq!(paired(&[silent; 5]), None);
        let mut some = pairs([(0.0, 1.0), (0.0, 1.0)]);
        some.extend([silent; 50]);
        assert_eq!(paired(&some).unwrap(), Difference { difference: 1.0, low: 1.0, high: 1.0 });
    }
}
