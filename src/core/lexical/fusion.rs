//! Words and likeness as one score.

/// In a catalog of three, mean and deviation of what is there say nothing: so many tools of a usual catalog are added.
const PRIOR_TOOLS: f64 = 50.0;
/// Mean and deviation in a usual catalog, over the queries of the development sets: of the words' score in the rarity of a word that
/// one tool holds, and of likeness.
const WORDS: (f64, f64) = (0.05, 0.3);
const LIKENESS: (f64, f64) = (0.06, 0.1);
/// What a deviation of likeness counts for beside one of the words' score. The ranking trial found 1.5 on whole sentences; from 1.2
/// to 2 the development sets do not tell values apart.
const SHARE: f64 = 1.8;

/// Where names hold nearly all of the query, the words know better: what likeness then loses, and how near all is.
const NAMED_SHARE: f64 = 0.8;
const NAMED_POWER: i32 = 6;

/// Numbers of many tools, summed up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Spread {
    /// Of `values`, and so many zeros that there are `count` in all.
    pub(super) fn of(values: impl Iterator<Item = f32>, count: usize) -> Self {
        let spread = Self { count: count as f64, ..Self::default() };
        values.map(f64::from).fold(spread, |spread, value| Self {
            sum: spread.sum + value,
            squares: spread.squares + value * value,
            ..spread
        })
    }

    /// Mean and deviation, as if [`PRIOR_TOOLS`] others of this mean and deviation were there too.
    fn with_prior(self, mean: f64, deviation: f64) -> (f64, f64) {
        let all = self.count + PRIOR_TOOLS;
        let expected = PRIOR_TOOLS * (mean * mean + deviation * deviation);
        let mean = (PRIOR_TOOLS * mean + self.sum) / all;
        let variance = (self.squares + expected) / all - mean * mean;
        (mean, variance.max(f64::EPSILON).sqrt())
    }
}

/// How much likeness adds to the score of the words. Both are told in deviations from the mean of all tools and summed; the
/// sum is given in the unit of the words' score, so that without likeness nothing changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fusion {
    mean: f32,
    /// What one unit of likeness is worth.
    slope: f32,
}

impl Fusion {
    /// `rarest` is the rarity of a word that one tool holds, which scores are measured in; `named` the largest share of the query that
    /// the name of a tool holds.
    pub(super) fn new(words: Spread, likeness: Spread, rarest: f32, named: f32) -> Self {
        let rarest = f64::from(rarest);
        let doubt = 1.0 - NAMED_SHARE * f64::from(named).powi(NAMED_POWER);
        let (_, words) = words.with_prior(WORDS.0 * rarest, WORDS.1 * rarest);
        let (mean, likeness) = likeness.with_prior(LIKENESS.0, LIKENESS.1);
        Self { mean: mean as f32, slope: (doubt * SHARE * words / likeness) as f32 }
    }

    pub(super) fn fuse(self, words: f32, alike: f32) -> f32 {
        words + self.slope * (alike - self.mean)
    }
}
