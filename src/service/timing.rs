//! What the parts of a request took, for whoever began it: the answer's `Server-Timing` header and the log.
//!
//! Owns the tally, which belongs to the request that is running ([`super::request`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::request;

/// A part of the time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Ranking by words and vectors, and joining what an endpoint said with that.
    Rank,
    /// Waiting for an endpoint.
    Endpoint,
    /// Waiting for the database: writes until they are stored, and reads of what was in no cache.
    Database,
}

impl Part {
    pub const ALL: [Self; 3] = [Self::Rank, Self::Endpoint, Self::Database];
}

/// Time spent, by part. Parts that run side by side may sum up to more than the whole.
#[derive(Debug, Default)]
pub struct Spent([AtomicU64; 3]);

impl Spent {
    /// What a part took; nothing where there was none.
    pub fn on(&self, part: Part) -> Option<Duration> {
        let nanos = self.0[part as usize].load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    fn add(&self, part: Part, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.0[part as usize].fetch_add(nanos, Ordering::Relaxed);
    }
}

/// Adds to what the running request spent.
pub(super) fn spend(part: Part, time: Duration) {
    // Work that belongs to no request is not told to anybody.
    request::with(|running| running.spent.add(part, time));
}

/// Counts the time that something takes; also the time until it is given up.
pub(super) async fn timed<F: Future>(part: Part, work: F) -> F::Output {
    let _until_the_end = Timer { part, began: Instant::now() };
    work.await
}

struct Timer {
    part: Part,
    began: Instant,
}

impl Drop for Timer {
    fn drop(&mut self) {
        spend(self.part, self.began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::service::request::{Running, watched};

    #[tokio::test]
    async fn parts_are_added_up_for_the_request_that_they_belong_to() {
        let (one, other) = (Arc::<Running>::default(), Arc::<Running>::default());
        let work = async {
            timed(Part::Database, async {}).await;
            spend(Part::Rank, Duration::from_millis(2));
            spend(Part::Rank, Duration::from_millis(3));
        };
        watched(Arc::clone(&one), work).await;
        watched(Arc::clone(&other), async {}).await;
        timed(Part::Endpoint, async {}).await;
        assert_eq!(one.spent.on(Part::Rank), Some(Duration::from_millis(5)));
        assert!(one.spent.on(Part::Database).is_some() && one.spent.on(Part::Endpoint).is_none());
        assert_eq!(Part::ALL.map(|part| other.spent.on(part)), [None; 3]);
    }

    #[tokio::test]
    async fn what_is_given_up_counts_until_then() {
        let running = Arc::<Running>::default();
        let waiting = watched(Arc::clone(&running), timed(Part::Endpoint, std::future::pending::<()>()));
        assert!(tokio::time::timeout(Duration::from_millis(5), waiting).await.is_err());
        assert!(running.spent.on(Part::Endpoint).is_some());
    }
}
