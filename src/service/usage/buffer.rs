//! Counts on their way to the store, added up in memory by scope and day.
//!
//! Recording is a short lock on one of many shards. What a flush takes out is gone from here, so nothing is stored twice; what
//! it could not store comes back. The memory is bounded: a flush is asked for early, and counts of things that are not known
//! here yet are left out while nothing can be stored.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::core::id::Scope;
use crate::core::tool::ToolKey;
use crate::core::usage::{Counts, ToolCounts};
use crate::service::lock;

/// More than there are threads that record at once.
const SHARDS: usize = 64;

/// Scopes, tools and queries in memory from which on a flush is asked for, and at most: some hundred bytes each.
const FLUSH_FROM: usize = 20_000;
const MOST: usize = 100_000;

/// How often a query found nothing, and when last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Missed {
    pub count: i64,
    pub last_at_ms: i64,
}

/// The counts of one scope on one day.
#[derive(Debug, Default)]
pub(super) struct DayUsage {
    pub counts: Counts,
    tools: HashMap<ToolKey, ToolCounts>,
    missed: HashMap<String, Missed>,
    /// Whether there is room for what is not here yet.
    has_room: bool,
    left_out: u64,
}

/// The counts of one scope on one day, taken out.
#[derive(Debug)]
pub(super) struct Taken {
    pub scope: Scope,
    pub day: i64,
    pub counts: Counts,
    pub tools: HashMap<ToolKey, ToolCounts>,
    pub missed: HashMap<String, Missed>,
}

impl DayUsage {
    pub(super) fn tool(&mut self, key: ToolKey, counts: ToolCounts) {
        if self.has_room || self.tools.contains_key(&key) {
            self.tools.entry(key).or_default().merge(counts);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn missed(&mut self, query: String, missed: Missed) {
        if self.has_room || self.missed.contains_key(&query) {
            let known = self.missed.entry(query).or_default();
            known.count = known.count.saturating_add(missed.count);
            known.last_at_ms = known.last_at_ms.max(missed.last_at_ms);
        } else {
            self.left_out += 1;
        }
    }

    fn len(&self) -> usize {
        self.tools.len() + self.missed.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0 && self.counts.is_empty()
    }

    fn take(&mut self, scope: &Scope, day: i64) -> Taken {
        Taken {
            scope: scope.clone(),
            day,
            counts: std::mem::take(&mut self.counts),
            tools: std::mem::take(&mut self.tools),
            missed: std::mem::take(&mut self.missed),
        }
    }
}

type Shard = HashMap<(Scope, i64), Box<DayUsage>>;

/// All counts that the store does not have yet.
pub(super) struct Buffer {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    /// Scopes, tools and queries in all shards.
    held: AtomicUsize,
    left_out: AtomicU64,
    early: Notify,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            held: AtomicUsize::new(0),
            left_out: AtomicU64::new(0),
            early: Notify::new(),
        }
    }
}

impl Buffer {
    /// Records something of a scope on a day.
    pub(super) fn record(&self, scope: &Scope, day: i64, record: impl FnOnce(&mut DayUsage)) {
        let held = self.held.load(Ordering::Relaxed);
        let has_room = held < MOST;
        let Some(shard) = self.shards.get(self.hasher.hash_one(scope) as usize % SHARDS) else { return };
        let mut shard = lock(shard);
        // Ids are shared, so that the key costs no allocation.
        let key = (scope.clone(), day);
        if !has_room && !shard.contains_key(&key) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut more = 0;
        let usage = shard.entry(key).or_insert_with(|| {
            more = 1;
            Box::default()
        });
        let before = usage.len();
        usage.has_room = has_room;
        record(usage);
        more += usage.len() - before;
        self.left_out.fetch_add(std::mem::take(&mut usage.left_out), Ordering::Relaxed);
        drop(shard);
        let held = self.held.fetch_add(more, Ordering::Relaxed);
        // Once only: where nothing can be stored, what comes back must not ask again and again.
        if held < FLUSH_FROM && held + more >= FLUSH_FROM {
            self.early.notify_one();
        }
    }

    /// Takes everything out. Scopes that counted keep their place for the next counts; those that did not lose it.
    pub(super) fn take(&self) -> Vec<Taken> {
        let mut taken = Vec::new();
        for shard in &self.shards {
            let mut gone = 0;
            lock(shard).retain(|(scope, day), usage| {
                if usage.is_empty() {
                    gone += 1;
                    return false;
                }
                gone += usage.len();
                taken.push(usage.take(scope, *day));
                true
            });
            self.held.fetch_sub(gone, Ordering::Relaxed);
        }
        taken
    }

    /// Drops the queries of a scope.
    pub(super) fn forget_missed(&self, scope: &Scope) {
        let Some(shard) = self.shards.get(self.hasher.hash_one(scope) as usize % SHARDS) else { return };
        let mut shard = lock(shard);
        let of_scope = shard.iter_mut().filter(|((known, _), _)| known == scope);
        let gone: usize = of_scope.map(|(_, usage)| std::mem::take(&mut usage.missed).len()).sum();
        self.held.fetch_sub(gone, Ordering::Relaxed);
    }

    /// Things that were not counted because there was no room, since this was last asked.
    pub(super) fn take_left_out(&self) -> u64 {
        self.left_out.swap(0, Ordering::Relaxed)
    }

    /// Waits until there is so much that it should be stored.
    pub(super) async fn is_large(&self) {
        self.early.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::Id;

    fn scope(name: &str) -> Scope {
        Scope::User(Id::parse(name).unwrap())
    }

    fn found(name: &str) -> impl FnOnce(&mut DayUsage) {
        let key = ToolKey::new("g", name);
        |usage| usage.tool(key, ToolCounts { finds: 1, calls: 0 })
    }

    #[test]
    fn what_is_taken_is_gone_and_days_stay_apart() {
        let buffer = Buffer::default();
        for day in [7, 8, 8] {
            buffer.record(&scope("u"), day, |usage| usage.counts.assemblies += 1);
        }
        let mut taken = buffer.take();
        taken.sort_by_key(|taken| taken.day);
        let of_day: Vec<_> = taken.iter().map(|taken| (taken.day, taken.counts.assemblies)).collect();
        assert_eq!(of_day, [(7, 1), (8, 2)]);
        assert!(buffer.take().is_empty());
        assert_eq!(buffer.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_buffer_counts_what_it_knows_and_asks_for_a_flush() {
        let buffer = Buffer::default();
        let one = scope("one");
        for at in 0..MOST + 10 {
            buffer.record(&one, 1, found(&at.to_string()));
        }
        buffer.record(&one, 1, found("5"));
        buffer.record(&one, 1, |usage| usage.counts.queries += 3);
        buffer.record(&scope("two"), 1, |usage| usage.counts.queries += 1);
        assert_eq!(buffer.take_left_out(), 12);
        let mut asked = std::pin::pin!(buffer.is_large());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(Future::poll(asked.as_mut(), &mut context).is_ready());
        let taken = buffer.take();
        assert_eq!((taken.len(), taken[0].tools.len(), taken[0].counts.queries), (1, MOST - 1, 3));
        assert_eq!(taken[0].tools[&ToolKey::new("g", "5")].finds, 2);
        buffer.record(&scope("two"), 1, |usage| usage.counts.queries += 1);
        assert_eq!(buffer.take().len(), 1, "there is room again");
    }

    #[test]
    fn forgotten_queries_are_not_taken() {
        let buffer = Buffer::default();
        for name in ["u", "w"] {
            let missed = Missed { count: 1, last_at_ms: 9 };
            buffer.record(&scope(name), 1, |usage| usage.missed("where".to_owned(), missed));
        }
        buffer.forget_missed(&scope("u"));
        let left: Vec<_> = buffer.take().into_iter().filter(|taken| !taken.missed.is_empty()).collect();
        assert_eq!((left.len(), &left[0].scope), (1, &scope("w")));
    }
}
