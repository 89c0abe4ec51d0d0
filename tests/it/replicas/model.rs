//! What an answer may show of something that is written with growing numbers.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A write that was answered is seen by all processes after this time.
pub(super) const SEEN_BY_ALL: Duration = Duration::from_secs(1);

/// A number that a process took or showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    pub(super) number: u64,
    pub(super) replica: usize,
    pub(super) asked: Instant,
    pub(super) answered: Instant,
}

/// All that happened to one thing.
#[derive(Debug, Default)]
pub(super) struct Log {
    sent: Mutex<Vec<(u64, Instant)>>,
    stored: Mutex<Vec<Observation>>,
    seen: Mutex<Vec<Observation>>,
}

impl Log {
    pub(super) fn sent(&self, number: u64) {
        self.sent.lock().unwrap().push((number, Instant::now()));
    }

    pub(super) fn stored(&self, write: Observation) {
        self.stored.lock().unwrap().push(write);
    }

    pub(super) fn seen(&self, read: Observation) {
        self.seen.lock().unwrap().push(read);
    }

    /// Holds every answer against what was written. What a process knows is as old as when it asked the database for it, which
    /// took at most as long as the slowest request.
    pub(super) fn check(&self, what: &str, slowest: Duration) {
        let (sent, stored, seen) =
            (self.sent.lock().unwrap(), self.stored.lock().unwrap(), self.seen.lock().unwrap());
        let latest = |writes: &mut dyn Iterator<Item = u64>| writes.max().unwrap_or_default();
        let mut numbers: Vec<u64> = seen.iter().map(|read| read.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(
            numbers.len() > sent.len() / 3,
            "{what}: the writes were seen while others followed: {numbers:?}"
        );
        for read in seen.iter() {
            let known = sent.iter().filter(|(_, at)| *at <= read.answered).map(|(number, _)| *number);
            assert!(read.number <= latest(&mut known.into_iter()), "{what}: nobody wrote that yet: {read:?}");
            let for_all = stored.iter().filter(|write| write.answered + SEEN_BY_ALL + slowest <= read.asked);
            let for_all = latest(&mut for_all.map(|write| write.number));
            assert!(
                read.number >= for_all,
                "{what}: {for_all} was stored before, all must show it: {read:?}"
            );
            let own =
                stored.iter().filter(|write| write.replica == read.replica && write.answered <= read.asked);
            let own = latest(&mut own.map(|write| write.number));
            assert!(read.number >= own, "{what}: this process took {own} itself: {read:?}");
            let earlier =
                seen.iter().filter(|other| other.replica == read.replica && other.answered <= read.asked);
            let earlier = latest(&mut earlier.map(|other| other.number));
            assert!(read.number >= earlier, "{what}: this process has shown {earlier} already: {read:?}");
        }
    }
}
