//! Times in fixed buckets, so that those of many days and processes can be added up and still tell quantiles.

/// Two buckets for each doubling, from 64 µs to 67 s, and one for what took longer: a quantile is off by a fifth at most.
const BUCKETS: usize = 42;

/// The bound of the first bucket, in microseconds: an assembly takes about as long.
const FIRST_US: u64 = 64;

/// Upper bounds of all buckets but the last, in microseconds.
const BOUNDS_US: [u64; BUCKETS - 1] = {
    let mut bounds = [0; BUCKETS - 1];
    let mut at = 0;
    while at < bounds.len() {
        let doubled = FIRST_US << (at / 2);
        // 181 / 128 is the square root of 2.
        bounds[at] = if at % 2 == 0 { doubled } else { doubled * 181 / 128 };
        at += 1;
    }
    bounds
};

/// How many times fell into each bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS] }
    }
}

impl Histogram {
    /// Counts one time.
    pub fn observe(&mut self, micros: u64) {
        self.add(BOUNDS_US.partition_point(|bound| *bound < micros), 1);
    }

    /// Adds to a bucket; one that there is not is passed over.
    pub fn add(&mut self, bucket: usize, times: u64) {
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count = count.saturating_add(times);
        }
    }

    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The time in milliseconds that this share of all stayed below, `share` between 0 and 1; nothing without any time.
    ///
    /// Inside a bucket times are taken to lie evenly; of the last one the lower bound is told.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = (share.clamp(0.0, 1.0) * count as f64).max(1.0);
        let mut below = 0.0;
        for (at, times) in self.buckets.iter().map(|times| *times as f64).enumerate() {
            if times > 0.0 && below + times >= rank {
                let lower = at.checked_sub(1).and_then(|at| BOUNDS_US.get(at)).copied().unwrap_or(0) as f64;
                let upper = BOUNDS_US.get(at).map_or(lower, |bound| *bound as f64);
                let micros = lower + (upper - lower) * (rank - below) / times;
                // Three places are more than the buckets know.
                return Some(micros.round() / 1_000.0);
            }
            below += times;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_rise_and_reach_a_minute() {
        assert!(BOUNDS_US.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((BOUNDS_US[0], BOUNDS_US[1], BOUNDS_US[40]), (64, 90, 67_108_864));
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Histogram::default().quantile_ms(0.5), None);
    }

    proptest! {
        #[test]
        fn a_quantile_is_near_the_true_one(mut times in prop::collection::vec(64_u64..60_000_000, 1..200), share in 0.0..1.0_f64) {
            let mut histogram = Histogram::default();
            times.iter().for_each(|micros| histogram.observe(*micros));
            times.sort_unstable();
            let rank = (share * times.len() as f64).max(1.0).ceil() as usize;
            let (told, truth) = (histogram.quantile_ms(share).unwrap(), times[rank - 1] as f64 / 1_000.0);
            // Both lie in one bucket, whose bounds are a factor of the square root of 2 apart.
            prop_assert!(told <= truth * 1.43 + 0.001 && told >= truth / 1.43 - 0.001, "{told} for {truth}");
            prop_assert_eq!(histogram.count(), times.len() as u64);
        }

        #[test]
        fn quantiles_rise(times in prop::collection::vec(any::<u64>(), 1..50), a in 0.0..1.0_f64, b in 0.0..1.0_f64) {
            let mut histogram = Histogram::default();
            times.iter().for_each(|micros| histogram.observe(*micros));
            let (low, high) = (f64::min(a, b), f64::max(a, b));
            prop_assert!(histogram.quantile_ms(low) <= histogram.quantile_ms(high));
        }
    }
}
