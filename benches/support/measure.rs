//! How it is measured: options of a run, rounds that take turns, and what is told of their results.

use std::error::Error;
use std::time::{Duration, Instant};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Rounds of each measurement: odd, so that the median is one of them.
const ROUNDS: usize = 9;
const QUICK_ROUNDS: usize = 5;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) rounds: usize,
    /// A part of a section's name; other sections are left out.
    only: Option<String>,
}

impl Options {
    /// Nothing when this is no benchmark run: `cargo test --all-targets` starts benchmarks too, without `--bench`.
    pub(crate) fn from_args() -> Option<Self> {
        let mut options = Self { rounds: ROUNDS, only: None };
        let mut bench = false;
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--bench" => bench = true,
                "--quick" => options.rounds = QUICK_ROUNDS,
                _ => options.only = Some(argument),
            }
        }
        bench.then_some(options)
    }

    pub(crate) fn wants(&self, section: &str) -> bool {
        self.only.as_ref().is_none_or(|only| section.contains(only.as_str()))
    }
}

/// The results of all rounds of one measurement, in its unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    pub(crate) fn push(&mut self, result: f64) {
        self.0.push(result);
    }

    pub(crate) fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    pub(crate) fn median(&self) -> f64 {
        percentile(&self.sorted(), 50)
    }

    /// Each round's result as a share of the same round's baseline: what disturbs a round disturbs both.
    pub(crate) fn share_of(&self, baseline: &Self) -> Self {
        Self(self.0.iter().zip(&baseline.0).map(|(result, baseline)| result / baseline).collect())
    }
}

/// The value that `percent` of the sorted values do not exceed; 0 when there are none.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// How long some work takes, in seconds, and what it gives.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let started = Instant::now();
    let result = work();
    (seconds(started.elapsed()), result)
}

pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
