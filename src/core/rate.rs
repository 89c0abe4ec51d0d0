//! How often something may be done: an allowance that refills steadily, up to a burst.
//!
//! The state of an allowance is one number, the time at which it will be whole again, so it can be kept in an atomic and
//! changed without a lock. A function of state and time; knows no clock and not what is counted.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Most of anything in one window, and the largest burst.
pub const MAX_COUNT: u32 = 1_000_000;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// So many in a window, after a burst of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Nanoseconds that one costs.
    interval: u64,
    burst: u32,
}

/// What is left of an allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// How many could be taken at once.
    pub count: u32,
    /// Seconds until it is whole, rounded up.
    pub whole_in: u64,
}

/// One was taken, or none was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Yes {
        /// The new state.
        state: u64,
        left: Left,
    },
    No {
        /// Seconds until one is there, rounded up, at least 1.
        retry_in: u64,
        left: Left,
    },
}

impl Rate {
    /// `count` in `seconds` (1 to 3600); count and burst from 1 to [`MAX_COUNT`]. What is outside is taken to the end of the
    /// range.
    pub fn new(count: u32, seconds: u32, burst: u32) -> Self {
        let within = |number: u32| number.clamp(1, MAX_COUNT);
        let window = u64::from(seconds.clamp(1, 3_600)) * NANOS_PER_SECOND;
        Self { interval: window / u64::from(within(count)), burst: within(burst) }
    }

    /// How many can be taken at once when it is whole.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// Seconds in which an empty allowance becomes whole, rounded up.
    pub fn window(self) -> u64 {
        self.span().div_ceil(NANOS_PER_SECOND)
    }

    /// Nanoseconds in which an empty allowance becomes whole.
    fn span(self) -> u64 {
        self.interval * u64::from(self.burst)
    }

    /// Takes one. `state` is 0 at first and then what the last success gave; `now` is in nanoseconds of any clock that does not
    /// go back. A state from far ahead of the clock counts as an empty allowance.
    pub fn take(self, state: u64, now: u64) -> Taken {
        let whole_at = state.clamp(now, now.saturating_add(self.span()));
        let then = whole_at.saturating_add(self.interval);
        let latest = now.saturating_add(self.span());
        if then > latest {
            let retry_in = (then - latest).div_ceil(NANOS_PER_SECOND).max(1);
            return Taken::No { retry_in, left: self.left(whole_at, now) };
        }
        Taken::Yes { state: then, left: self.left(then, now) }
    }

    /// The state of an allowance that has this rate from now on, in the place of `old`: as many count as taken as before, at most
    /// a whole burst.
    fn carried(self, old: Self, state: u64, now: u64) -> u64 {
        let taken = state.saturating_sub(now).min(old.span()).div_ceil(old.interval);
        now.saturating_add(taken.saturating_mul(self.interval).min(self.span()))
    }

    fn left(self, whole_at: u64, now: u64) -> Left {
        let missing = whole_at.saturating_sub(now);
        let count = self.span().saturating_sub(missing) / self.interval;
        Left {
            count: u32::try_from(count).unwrap_or(self.burst),
            whole_in: missing.div_ceil(NANOS_PER_SECOND),
        }
    }
}

/// A rate with its state, for many to take from.
#[derive(Debug)]
pub struct Allowance {
    rate: Rate,
    state: AtomicU64,
}

impl Allowance {
    pub fn new(rate: Rate) -> Self {
        Self { rate, state: AtomicU64::new(0) }
    }

    /// One of another rate in the place of this one; see [`Rate::carried`].
    fn with_rate(&self, rate: Rate, now: u64) -> Self {
        let state = rate.carried(self.rate, self.state.load(Ordering::Relaxed), now);
        Self { rate, state: state.into() }
    }

    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// As [`Rate::take`].
    pub fn take(&self, now: u64) -> Taken {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let taken = self.rate.take(state, now);
            let Taken::Yes { state: next, .. } = taken else { return taken };
            match self.state.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return taken,
                Err(present) => state = present,
            }
        }
    }
}

/// How often the holder of a key may ask, where it is not as usual. 0: as often as it likes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
    /// Requests at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank_per_minute: Option<u32>,
}

impl KeyRate {
    /// The first number that no rate may have, with its name.
    pub fn fault(&self) -> Option<(&'static str, u32)> {
        let numbers = [
            ("requests_per_second", self.requests_per_second),
            ("burst", self.burst),
            ("rerank_per_minute", self.rerank_per_minute),
        ];
        let is_fault = |name: &str, number: u32| number > MAX_COUNT || (name == "burst" && number == 0);
        numbers
            .into_iter()
            .find_map(|(name, number)| number.filter(|number| is_fault(name, *number)).map(|n| (name, n)))
    }

    /// What is not said here is taken from there.
    #[must_use]
    pub fn or(self, usual: Self) -> Self {
        Self {
            requests_per_second: self.requests_per_second.or(usual.requests_per_second),
            // A burst belongs to its rate.
            burst: self.burst.or(usual.burst.filter(|_| self.requests_per_second.is_none())),
            rerank_per_minute: self.rerank_per_minute.or(usual.rerank_per_minute),
        }
    }
}

/// What is left to the holder of a key; nothing where there is no limit.
#[derive(Debug, Default)]
pub struct Allowances {
    /// As they were made.
    rate: KeyRate,
    pub requests: Option<Allowance>,
    pub rerank: Option<Allowance>,
}

impl Allowances {
    /// Whole ones. A burst that is not said is that of two seconds; rerank calls may come all at once.
    pub fn new(rate: KeyRate) -> Self {
        let positive = |number: Option<u32>| number.filter(|number| *number > 0);
        let requests = positive(rate.requests_per_second);
        let rerank = positive(rate.rerank_per_minute);
        Self {
            rate,
            requests: requests.map(|count| {
                Allowance::new(Rate::new(count, 1, rate.burst.unwrap_or(count.saturating_mul(2))))
            }),
            rerank: rerank.map(|count| Allowance::new(Rate::new(count, 60, count))),
        }
    }

    pub fn rate(&self) -> KeyRate {
        self.rate
    }

    /// Those of another rate in the place of these: what was taken stays taken. What had no limit begins whole.
    #[must_use]
    pub fn with_rate(&self, rate: KeyRate, now: u64) -> Self {
        let fresh = Self::new(rate);
        let carry = |old: Option<&Allowance>, new: Option<Allowance>| match (old, new) {
            (Some(old), Some(new)) => Some(old.with_rate(new.rate, now)),
            (_, new) => new,
        };
        Self {
            rate,
            requests: carry(self.requests.as_ref(), fresh.requests),
            rerank: carry(self.rerank.as_ref(), fresh.rerank),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = NANOS_PER_SECOND;

    /// Takes one and tells whether it was there.
    fn take(rate: Rate, state: &mut u64, now: u64) -> bool {
        match rate.take(*state, now) {
            Taken::Yes { state: next, .. } => {
                *state = next;
                true
            }
            Taken::No { .. } => false,
        }
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let rate = Rate::new(2, 1, 3);
        let mut state = 0;
        let now = 5 * SECOND;
        let taken = (0..5).filter(|_| take(rate, &mut state, now)).count();
        assert_eq!(taken, 3);
        assert_eq!(rate.take(state, now), Taken::No { retry_in: 1, left: Left { count: 0, whole_in: 2 } });
        assert!(!take(rate, &mut state, now + SECOND / 2 - 1));
        assert!(take(rate, &mut state, now + SECOND / 2));
        assert!(!take(rate, &mut state, now + SECOND / 2));
        let Taken::Yes { left, .. } = rate.take(state, now + 60 * SECOND) else {
            panic!("it is whole again")
        };
        assert_eq!(left, Left { count: 2, whole_in: 1 });
    }

    #[test]
    fn a_slow_rate_tells_when_to_come_again() {
        let rate = Rate::new(6, 60, 1);
        let mut state = 0;
        assert!(take(rate, &mut state, 0));
        assert_eq!(rate.take(state, SECOND), Taken::No { retry_in: 9, left: Left { count: 0, whole_in: 9 } });
        assert_eq!(rate.window(), 10);
    }

    #[test]
    fn a_key_says_what_is_not_as_usual() {
        let usual = KeyRate { requests_per_second: Some(10), burst: Some(99), rerank_per_minute: Some(30) };
        let allowances = Allowances::new(KeyRate::default().or(usual));
        assert_eq!(allowances.requests.unwrap().rate(), Rate::new(10, 1, 99));
        let slow = KeyRate { requests_per_second: Some(3), ..KeyRate::default() };
        assert_eq!(Allowances::new(slow.or(usual)).requests.unwrap().rate(), Rate::new(3, 1, 6));
        assert_eq!(allowances.rerank.unwrap().rate(), Rate::new(30, 60, 30));
        let own = KeyRate { requests_per_second: Some(0), rerank_per_minute: Some(5), burst: None };
        let allowances = Allowances::new(own.or(usual));
        assert!(allowances.requests.is_none());
        assert_eq!(allowances.rerank.unwrap().rate().burst(), 5);
        assert_eq!(KeyRate { burst: Some(0), ..own }.fault(), Some(("burst", 0)));
        assert_eq!(own.fault(), None);
    }

    #[test]
    fn what_was_taken_stays_taken_under_another_rate() {
        let now = 9 * SECOND;
        let left_at =
            |allowances: &Allowances, now| match allowances.requests.as_ref().map(|all| all.take(now)) {
                Some(Taken::Yes { left, .. } | Taken::No { left, .. }) => left.count,
                None => u32::MAX,
            };
        let left = |allowances: &Allowances| left_at(allowances, now);
        let rate = |per_second, burst| KeyRate {
            requests_per_second: Some(per_second),
            burst,
            ..KeyRate::default()
        };
        let first = Allowances::new(rate(10, Some(5)));
        assert_eq!((0..4).map(|_| left(&first)).last(), Some(1));
        assert_eq!(left(&first.with_rate(rate(1, Some(50)), now)), 50 - 4 - 1);
        assert_eq!(left(&first.with_rate(rate(9_000, Some(6)), now)), 1);
        let less = first.with_rate(rate(1, Some(3)), now);
        assert_eq!((less.rate(), left(&less)), (rate(1, Some(3)), 0));
        assert!(matches!(less.requests.as_ref().unwrap().take(now), Taken::No { retry_in: 1, .. }));
        // No limit, and a limit again.
        let free = first.with_rate(rate(0, None), now);
        assert!(free.requests.is_none());
        assert_eq!(left(&free.with_rate(rate(1, Some(3)), now)), 2);
        let later = now + 60 * SECOND;
        assert_eq!(left_at(&first.with_rate(rate(10, Some(5)), later), later), 4);
    }

    #[test]
    fn many_take_no_more_than_there_is() {
        let allowance = Allowance::new(Rate::new(1, 1, 500));
        let take = || (0..300).filter(|_| matches!(allowance.take(1), Taken::Yes { .. })).count();
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 500);
    }

    proptest! {
        #[test]
        fn no_window_holds_more_than_burst_and_rate(
            count in 1_u32..50, seconds in 1_u32..120, burst in 1_u32..50,
            steps in prop::collection::vec(0_u64..3 * SECOND, 1..200)
        ) {
            let rate = Rate::new(count, seconds, burst);
            let (mut state, mut now, mut taken) = (0, SECOND, 0_u64);
            let start = now;
            for step in steps {
                now += step;
                taken += u64::from(take(rate, &mut state, now));
                prop_assert!(taken <= u64::from(burst) + (now - start) / rate.interval);
            }
        }

        #[test]
        fn who_waits_as_told_gets_one(
            count in 1_u32..MAX_COUNT, seconds in 1_u32..1_000, burst in 1_u32..MAX_COUNT, state: u64, now in 0..u64::MAX / 4
        ) {
            let rate = Rate::new(count, seconds, burst);
            match rate.take(state, now) {
                Taken::Yes { state, left } => prop_assert!(state > now && left.count < burst),
                Taken::No { retry_in, left } => {
                    prop_assert_eq!(left.count, 0);
                    // Only the state of a real clock is told about: one from far ahead counts as empty.
                    let state = state.min(now + rate.span());
                    let later = rate.take(state, now + retry_in * SECOND);
                    prop_assert!(!matches!(later, Taken::No { .. }), "{:?}", later);
                }
            }
        }
    }
}
