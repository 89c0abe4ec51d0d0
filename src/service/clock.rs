//! The clock of the service. Processes that share a database go by its clock, so that what one of them calls old is old for all;
//! else it is the machine's.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Error, Toolrack, uptime_ms};

/// Clocks that differ by less than this are the same: the way to the database takes time, too.
const SAME_MS: i64 = 1_000;

/// No database has told its time.
const OWN: i64 = i64::MIN;

/// When the process began, by the database's clock, in milliseconds since the Unix epoch. Counted from there by a clock that
/// nobody sets, so that a machine's clock that is set meanwhile moves nothing. There is one machine, so one value.
static BEGAN_MS: AtomicI64 = AtomicI64::new(OWN);

/// Milliseconds since the Unix epoch.
pub(super) fn now_ms() -> i64 {
    match BEGAN_MS.load(Ordering::Relaxed) {
        OWN => machine_ms(),
        began => began.saturating_add(elapsed_ms()),
    }
}

fn machine_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn elapsed_ms() -> i64 {
    i64::try_from(uptime_ms()).unwrap_or(i64::MAX)
}

/// When the process began, by a clock that showed a time between two times of the process. What is known stays where the
/// clock says nothing else, or was read too slowly to tell.
fn began(known_ms: Option<i64>, before_ms: i64, shown_ms: i64, after_ms: i64) -> i64 {
    let told = shown_ms.saturating_sub(before_ms.midpoint(after_ms));
    let doubt = after_ms.saturating_sub(before_ms).max(0);
    match known_ms {
        Some(known) if known.abs_diff(told) < SAME_MS.saturating_add(doubt).unsigned_abs() => known,
        _ => told,
    }
}

impl Toolrack {
    /// Takes over the time of a database that has a clock of its own.
    pub async fn read_clock(&self) -> Result<(), Error> {
        let before = elapsed_ms();
        if let Some(shown) = self.0.store.clock_ms().await? {
            let known = Some(BEGAN_MS.load(Ordering::Relaxed)).filter(|known| *known != OWN);
            let (thought, began) = (now_ms(), began(known, before, shown, elapsed_ms()));
            BEGAN_MS.store(began, Ordering::Relaxed);
            let ahead_ms = now_ms().saturating_sub(thought);
            if ahead_ms.saturating_abs() >= SAME_MS {
                tracing::warn!(ahead_ms, "the clock of the database shows another time, which is used");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_followed_when_it_is_another_one() {
        assert_eq!(began(None, 100, 1_000_110, 120), 1_000_000, "the first time that is told");
        assert_eq!(began(Some(1_000_000), 100, 1_000_900, 120), 1_000_000, "that may be the way");
        assert_eq!(began(Some(1_000_000), 100, 4_600_110, 120), 4_600_000);
        assert_eq!(began(Some(4_600_000), 100, 1_000_110, 120), 1_000_000);
        // The answer took longer than the clocks differ.
        assert_eq!(began(Some(1_000_000), 100, 1_003_000, 4_100), 1_000_000);
    }
}
