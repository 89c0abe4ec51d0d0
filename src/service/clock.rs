//! The clock of the service. Processes that share a database go by its clock, so that what one of them calls old is old for all;
//! else it is the machine's.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Error, Toolrack};

/// Clocks that differ by less than this are the same: the way to the database takes time, too.
const SAME_MS: i64 = 1_000;

/// How far the clock of the service is ahead of the machine's. There is one machine, so one value.
static AHEAD_MS: AtomicI64 = AtomicI64::new(0);

/// Milliseconds since the Unix epoch.
pub(super) fn now_ms() -> i64 {
    machine_ms().saturating_add(AHEAD_MS.load(Ordering::Relaxed))
}

fn machine_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// How far a clock is ahead that showed a time between two others.
fn ahead(before_ms: i64, shown_ms: i64, after_ms: i64) -> i64 {
    let between = before_ms.midpoint(after_ms);
    let ahead = shown_ms.saturating_sub(between);
    let doubt = after_ms.saturating_sub(before_ms).max(0);
    if ahead.saturating_abs() < SAME_MS.saturating_add(doubt) { 0 } else { ahead }
}

impl Toolrack {
    /// Takes over the time of a database that has a clock of its own.
    pub async fn read_clock(&self) -> Result<(), Error> {
        let before = machine_ms();
        if let Some(shown) = self.0.store.clock_ms().await? {
            let ahead = ahead(before, shown, machine_ms());
            if AHEAD_MS.swap(ahead, Ordering::Relaxed).abs_diff(ahead) >= SAME_MS.unsigned_abs() {
                tracing::warn!(ahead_ms = ahead, "the clock of the database is another one, and used");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_far_ahead_or_behind_is_followed() {
        assert_eq!(ahead(1_000_000, 1_000_900, 1_000_010), 0);
        assert_eq!(ahead(1_000_000, 4_600_005, 1_000_010), 3_600_000);
        assert_eq!(ahead(4_600_000, 1_000_000, 4_600_000), -3_600_000);
        // The answer took longer than the clocks differ.
        assert_eq!(ahead(1_000_000, 1_003_000, 1_004_000), 0);
    }
}
