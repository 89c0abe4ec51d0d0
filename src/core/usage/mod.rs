//! Usage: what the requests of a scope came to on a day, as numbers that are only ever added up.
//!
//! Owns the counters with their stored names, the buckets of times, and which tools count as hot. Knows neither when
//! something happened nor where a count is kept.

mod day;
mod histogram;
mod hot;

use std::borrow::Cow;
use std::collections::BTreeMap;

pub use day::{DAY_MS, date_of, day_of};
pub use histogram::Histogram;
pub use hot::{HOT_TOKENS, HotCandidate, HotLimits, LEAST_CALLS, hot_tools};

/// Numbers by a label of a closed list, for example searches by mode.
pub type ByLabel = BTreeMap<Cow<'static, str>, u64>;

/// What stands between a counter's family and its label in a stored name.
const SEPARATOR: char = '/';

/// What requests came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// First assemblies of sessions, also after a reset.
    pub sessions: u64,
    pub assemblies: u64,
    /// What all tools would have cost, summed over assemblies; tokens are o200k counts.
    pub tokens_all: u64,
    /// Arrays and separate listings.
    pub tokens_sent: u64,
    /// The part of `tokens_sent` that separate listings took.
    pub tokens_listing: u64,
    /// Answers that models read.
    pub tokens_answers: u64,
    /// Queries of searches, of which one may hold several.
    pub queries: u64,
    /// Queries without any match.
    pub missed: u64,
    pub describes: u64,
    /// Calls of tools, however they were told.
    pub calls: u64,
    /// Tools that entered a warm set, and that had to leave one for others.
    pub warmed: u64,
    pub evicted: u64,
    /// Searches by mode.
    pub searches: ByLabel,
    /// Searches that a configured endpoint did not rank, by reason.
    pub degraded: ByLabel,
    /// Assemblies that broke a session's prompt cache, by reason.
    pub cache_breaks: ByLabel,
    /// Times of searches and of assemblies.
    pub search_times: Histogram,
    pub assemble_times: Histogram,
}

/// A stored name, or the family that it begins with, and where it counts.
type Field<T> = (&'static str, fn(&mut Counts) -> &mut T);

/// The counters without a label, by stored name.
const PLAIN: [Field<u64>; 12] = [
    ("sessions", |counts| &mut counts.sessions),
    ("assemblies", |counts| &mut counts.assemblies),
    ("tokens_all", |counts| &mut counts.tokens_all),
    ("tokens_sent", |counts| &mut counts.tokens_sent),
    ("tokens_listing", |counts| &mut counts.tokens_listing),
    ("tokens_answers", |counts| &mut counts.tokens_answers),
    ("queries", |counts| &mut counts.queries),
    ("missed", |counts| &mut counts.missed),
    ("describes", |counts| &mut counts.describes),
    ("calls", |counts| &mut counts.calls),
    ("warmed", |counts| &mut counts.warmed),
    ("evicted", |counts| &mut counts.evicted),
];

/// Those with a label.
const LABELLED: [Field<ByLabel>; 3] = [
    ("searches", |counts| &mut counts.searches),
    ("degraded", |counts| &mut counts.degraded),
    ("cache_breaks", |counts| &mut counts.cache_breaks),
];

/// Those of times; the label is the number of the bucket.
const TIMES: [Field<Histogram>; 2] = [
    ("search_times", |counts| &mut counts.search_times),
    ("assemble_times", |counts| &mut counts.assemble_times),
];

impl Counts {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Searches of every mode.
    pub fn all_searches(&self) -> u64 {
        self.searches.values().sum()
    }

    /// Counts one more of a label.
    pub fn one_more(counts: &mut ByLabel, label: &'static str) {
        *counts.entry(Cow::Borrowed(label)).or_default() += 1;
    }

    /// Every counter that is not 0, by the name that it is stored under.
    pub fn rows(mut self) -> Vec<(String, u64)> {
        let mut rows: Vec<(String, u64)> = Vec::new();
        for (name, field) in PLAIN {
            rows.push((name.to_owned(), *field(&mut self)));
        }
        for (family, field) in LABELLED {
            let labels = std::mem::take(field(&mut self)).into_iter();
            rows.extend(labels.map(|(label, value)| (format!("{family}{SEPARATOR}{label}"), value)));
        }
        for (family, field) in TIMES {
            let buckets = field(&mut self).buckets().iter().enumerate();
            rows.extend(buckets.map(|(bucket, value)| (format!("{family}{SEPARATOR}{bucket}"), *value)));
        }
        rows.retain(|(_, value)| *value > 0);
        rows
    }

    /// Adds to the counter of a stored name. What another version counted is passed over.
    pub fn add(&mut self, name: &str, value: u64) {
        if let Some((_, field)) = PLAIN.iter().find(|(known, _)| *known == name) {
            let count = field(self);
            *count = count.saturating_add(value);
            return;
        }
        let Some((family, label)) = name.split_once(SEPARATOR) else { return };
        if let Some((_, field)) = LABELLED.iter().find(|(known, _)| *known == family) {
            let count = field(self).entry(Cow::Owned(label.to_owned())).or_default();
            *count = count.saturating_add(value);
        } else if let Some((_, field)) = TIMES.iter().find(|(known, _)| *known == family)
            && let Ok(bucket) = label.parse()
        {
            field(self).add(bucket, value);
        }
    }

    /// Adds all of another day, or another process.
    pub fn merge(&mut self, other: &Self) {
        for (name, value) in other.clone().rows() {
            self.add(&name, value);
        }
    }
}

/// How often a tool was found and called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolCounts {
    /// Queries that it was a match of.
    pub finds: u64,
    pub calls: u64,
}

impl ToolCounts {
    pub fn merge(&mut self, other: Self) {
        self.finds = self.finds.saturating_add(other.finds);
        self.calls = self.calls.saturating_add(other.calls);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts() -> impl Strategy<Value = Counts> {
        let reason = prop::sample::select(vec!["timeout", "circuit_open", "keyword", "warm"]);
        let labelled = || prop::collection::vec((0..3_usize, reason.clone()), 0..9);
        let plain = prop::array::uniform12(0..1_000_u64);
        let times = prop::collection::vec((any::<bool>(), 0..100_000_000_u64), 0..20);
        (plain, labelled(), times).prop_map(|(plain, labelled, times)| {
            let mut counts = Counts::default();
            for ((_, field), value) in PLAIN.iter().zip(plain) {
                *field(&mut counts) = value;
            }
            for (family, label) in labelled {
                Counts::one_more(LABELLED[family].1(&mut counts), label);
            }
            for (search, micros) in times {
                TIMES[usize::from(search)].1(&mut counts).observe(micros);
            }
            counts
        })
    }

    proptest! {
        #[test]
        fn rows_add_up_to_what_they_were_made_of(parts in prop::collection::vec(counts(), 0..5)) {
            let (mut merged, mut stored) = (Counts::default(), BTreeMap::new());
            for part in &parts {
                merged.merge(part);
                for (name, value) in part.clone().rows() {
                    prop_assert!(value > 0);
                    *stored.entry(name).or_insert(0) += value;
                }
            }
            let mut read = Counts::default();
            stored.iter().for_each(|(name, value)| read.add(name, *value));
            prop_assert_eq!(&read, &merged);
            prop_assert_eq!(read.queries, parts.iter().map(|part| part.queries).sum::<u64>());
            prop_assert_eq!(read.all_searches(), parts.iter().map(Counts::all_searches).sum::<u64>());
        }

        #[test]
        fn names_of_another_version_count_nothing_and_break_nothing(name in "[a-z_]{0,12}(/[a-z0-9]{0,4})?") {
            let mut counts = Counts::default();
            counts.add(&format!("x{name}"), 7);
            counts.add("search_times/9999", 7);
            counts.add("search_times/-1", 7);
            prop_assert!(counts.is_empty());
        }
    }
}
