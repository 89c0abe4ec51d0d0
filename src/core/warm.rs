//! The warm set of a session: the tools that it found, in the order in which they entered the array.
//!
//! All operations are functions of the set and of `now_ms`; each answers what changed, so that the store can write
//! just those rows. Touching renews a tool's age, never its place; an evicted tool that comes back goes to the end.

use super::policy::WarmPolicy;
use super::tool::ToolKey;

/// A tool of a warm set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmTool {
    pub key: ToolKey,
    /// Place in the array: ascending.
    pub first_seq: i64,
    /// Unix milliseconds; strictly ascending inside a session, so that the order of uses is never a tie.
    pub last_used_ms: i64,
    pub pinned: bool,
    /// Found, and waiting for an epoch to enter the array.
    pub pending: bool,
}

/// The bounds that a scope's config gives.
#[derive(Debug, Clone, Copy)]
pub struct WarmLimits {
    pub max: usize,
    pub policy: WarmPolicy,
}

/// What an operation did to a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WarmChange {
    /// New in the set, in order.
    pub added: Vec<ToolKey>,
    /// Gone from the set because others needed the room, oldest first.
    pub evicted: Vec<ToolKey>,
    /// Gone from the set for another reason.
    pub removed: Vec<ToolKey>,
    /// Still in the set, with other flags or times that must not be lost.
    pub updated: Vec<ToolKey>,
    /// Only used: their age changed.
    pub touched: Vec<ToolKey>,
}

impl WarmChange {
    /// Adds what a later operation on the same set did.
    pub fn extend(&mut self, later: Self) {
        self.added.extend(later.added);
        self.evicted.extend(later.evicted);
        self.removed.extend(later.removed);
        self.updated.extend(later.updated);
        self.touched.extend(later.touched);
    }

    /// Whether the array of the next assembly may differ, or a promise was made that must be kept.
    pub fn is_durable(&self) -> bool {
        !(self.added.is_empty()
            && self.evicted.is_empty()
            && self.removed.is_empty()
            && self.updated.is_empty())
    }
}

/// The found tools of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WarmSet {
    /// By `first_seq`.
    tools: Vec<WarmTool>,
}

impl WarmSet {
    /// A set as it was stored.
    pub fn from_stored(mut tools: Vec<WarmTool>) -> Self {
        tools.sort_by(|a, b| a.first_seq.cmp(&b.first_seq).then_with(|| a.key.cmp(&b.key)));
        Self { tools }
    }

    /// All tools, pending ones included, in order.
    pub fn tools(&self) -> &[WarmTool] {
        &self.tools
    }

    pub fn get(&self, key: &ToolKey) -> Option<&WarmTool> {
        self.tools.iter().find(|tool| tool.key == *key)
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The time of an operation: never before or at one that was given already.
    fn tick(&self, now_ms: i64) -> i64 {
        let latest = self.tools.iter().map(|tool| tool.last_used_ms).max().unwrap_or(i64::MIN);
        now_ms.max(latest.saturating_add(1))
    }

    fn next_seq(&self) -> i64 {
        self.tools.last().map_or(1, |tool| tool.first_seq + 1)
    }

    fn pinned(&self) -> usize {
        self.tools.iter().filter(|tool| tool.pinned).count()
    }

    /// How many of the tools that one call found may be warmed: pins keep their places.
    pub fn room(&self, limits: WarmLimits) -> usize {
        if limits.policy == WarmPolicy::Off { 0 } else { limits.max.saturating_sub(self.pinned()) }
    }

    /// Warms found tools, best first. The first of them, as many as there is [`Self::room`] for, take part; those
    /// that are in the set already are touched. Never evicts a pin or a tool of the same call.
    pub fn warm(&mut self, found: &[ToolKey], limits: WarmLimits, now_ms: i64) -> WarmChange {
        let mut change = WarmChange::default();
        let pinned: Vec<ToolKey> =
            self.tools.iter().filter(|tool| tool.pinned).map(|tool| tool.key.clone()).collect();
        let taken: Vec<&ToolKey> =
            found.iter().filter(|key| !pinned.contains(key)).take(self.room(limits)).collect();
        // The best match is the youngest, so that it is the last of its search to be evicted.
        let oldest = self.tick(now_ms);
        let best_first = found.iter().filter(|key| pinned.contains(key)).chain(taken.iter().copied());
        let ages = (0..i64::try_from(found.len()).unwrap_or(i64::MAX)).rev();
        for (key, age) in best_first.zip(ages) {
            let now_ms = oldest.saturating_add(age);
            if let Some(tool) = self.tools.iter_mut().find(|tool| tool.key == *key) {
                tool.last_used_ms = now_ms;
                change.touched.push(key.clone());
                continue;
            }
            let pending = limits.policy == WarmPolicy::Epoch;
            let first_seq = self.next_seq();
            self.tools.push(WarmTool {
                key: key.clone(),
                first_seq,
                last_used_ms: now_ms,
                pinned: false,
                pending,
            });
            change.added.push(key.clone());
        }
        // Under `epoch` the tools in the array stay until the epoch; only waiting ones make room for each other.
        let evictable = |tool: &WarmTool| limits.policy != WarmPolicy::Epoch || tool.pending;
        self.evict(limits.max, &taken, evictable, &mut change);
        change
    }

    /// Evicts the tools that were not used for the longest time until at most `max` of the kind are left.
    fn evict(
        &mut self,
        max: usize,
        keep: &[&ToolKey],
        of_kind: impl Fn(&WarmTool) -> bool,
        change: &mut WarmChange,
    ) {
        while self.tools.iter().filter(|tool| of_kind(tool)).count() > max {
            let oldest = self
                .tools
                .iter()
                .enumerate()
                .filter(|(_, tool)| of_kind(tool) && !tool.pinned && !keep.contains(&&tool.key))
                .min_by_key(|(_, tool)| (tool.last_used_ms, tool.first_seq));
            let Some((at, _)) = oldest else { return };
            let key = self.tools.remove(at).key;
            change.updated.retain(|updated| *updated != key);
            match change.added.iter().position(|added| *added == key) {
                Some(at) => drop(change.added.remove(at)),
                None => change.evicted.push(key),
            }
        }
    }

    /// Notes that tools were used. Tools outside the set are left alone.
    pub fn touch(&mut self, used: &[ToolKey], now_ms: i64) -> WarmChange {
        let mut change = WarmChange::default();
        for key in used {
            let now_ms = self.tick(now_ms);
            if let Some(tool) = self.tools.iter_mut().find(|tool| tool.key == *key) {
                tool.last_used_ms = now_ms;
                change.touched.push(key.clone());
            }
        }
        change
    }

    /// An assembly: with an epoch, waiting tools enter the array in the order in which they were found; the set is
    /// brought within its bounds, where the array changes anyway or there is an epoch.
    pub fn settle(&mut self, limits: WarmLimits, epoch: bool) -> WarmChange {
        let mut change = WarmChange::default();
        // Outside the `epoch` policy nothing waits, also when the policy was changed in between.
        if epoch || limits.policy != WarmPolicy::Epoch {
            let waiting: Vec<WarmTool> = self.tools.iter().filter(|tool| tool.pending).cloned().collect();
            if !waiting.is_empty() {
                self.tools.retain(|tool| !tool.pending);
                for tool in waiting {
                    // A new place: behind all tools that are in the array already.
                    let first_seq = self.next_seq().max(tool.first_seq);
                    change.updated.push(tool.key.clone());
                    self.tools.push(WarmTool { pending: false, first_seq, ..tool });
                }
            }
        }
        if epoch || limits.policy != WarmPolicy::Epoch {
            self.evict(limits.max, &[], |_| true, &mut change);
            // A bound that became smaller than the number of pins holds for pins too.
            let over = self.tools.len().saturating_sub(limits.max);
            if over > 0 {
                let mut ages: Vec<(i64, ToolKey)> =
                    self.tools.iter().map(|tool| (tool.last_used_ms, tool.key.clone())).collect();
                ages.sort();
                let oldest: Vec<ToolKey> = ages.into_iter().take(over).map(|(_, key)| key).collect();
                self.tools.retain(|tool| !oldest.contains(&tool.key));
                change.updated.retain(|key| !oldest.contains(key));
                change.evicted.extend(oldest);
            }
        }
        change
    }

    /// Removes tools that are gone from the catalog.
    pub fn purge(&mut self, exists: impl Fn(&ToolKey) -> bool) -> WarmChange {
        let gone: Vec<ToolKey> =
            self.tools.iter().map(|tool| tool.key.clone()).filter(|key| !exists(key)).collect();
        self.release(&gone)
    }

    /// Removes tools, pinned ones too.
    pub fn release(&mut self, keys: &[ToolKey]) -> WarmChange {
        let removed: Vec<ToolKey> = keys.iter().filter(|key| self.get(key).is_some()).cloned().collect();
        self.tools.retain(|tool| !removed.contains(&tool.key));
        WarmChange { removed, ..WarmChange::default() }
    }

    /// Pins tools; those outside the set enter it at once. More pins than `max` are refused with their number.
    pub fn pin(&mut self, keys: &[ToolKey], limits: WarmLimits, now_ms: i64) -> Result<WarmChange, usize> {
        let new = keys.iter().filter(|key| !self.get(key).is_some_and(|tool| tool.pinned)).count();
        let wanted = self.pinned() + new;
        if wanted > limits.max {
            return Err(wanted);
        }
        let mut change = WarmChange::default();
        for key in keys {
            let (now_ms, first_seq) = (self.tick(now_ms), self.next_seq());
            match self.tools.iter().position(|tool| tool.key == *key) {
                Some(at) if self.tools[at].pending => {
                    // A pin brings a waiting tool into the array at once, behind all that are in it.
                    let tool = self.tools.remove(at);
                    self.tools.push(WarmTool { pinned: true, pending: false, first_seq, ..tool });
                    change.updated.push(key.clone());
                }
                Some(at) if self.tools[at].pinned => {}
                Some(at) => {
                    self.tools[at].pinned = true;
                    change.updated.push(key.clone());
                }
                None => {
                    let key = key.clone();
                    change.added.push(key.clone());
                    self.tools.push(WarmTool {
                        key,
                        first_seq,
                        last_used_ms: now_ms,
                        pinned: true,
                        pending: false,
                    });
                }
            }
        }
        // As in `warm`: under `epoch` the array keeps its tools until the epoch, which brings the set within bounds.
        if limits.policy != WarmPolicy::Epoch {
            self.evict(limits.max, &[], |_| true, &mut change);
        }
        Ok(change)
    }

    /// Takes pins away; the tools stay in the set.
    pub fn unpin(&mut self, keys: &[ToolKey]) -> WarmChange {
        let mut change = WarmChange::default();
        for tool in self.tools.iter_mut().filter(|tool| tool.pinned && keys.contains(&tool.key)) {
            tool.pinned = false;
            change.updated.push(tool.key.clone());
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> ToolKey {
        ToolKey::new("g", name)
    }

    fn keys(names: &[&str]) -> Vec<ToolKey> {
        names.iter().map(|name| key(name)).collect()
    }

    fn names(set: &WarmSet) -> Vec<&str> {
        set.tools().iter().map(|tool| &*tool.key.name).collect()
    }

    const THREE: WarmLimits = WarmLimits { max: 3, policy: WarmPolicy::Immediate };

    #[test]
    fn the_least_recently_used_goes_and_places_stay() {
        let mut set = WarmSet::default();
        set.warm(&keys(&["a", "b", "c"]), THREE, 10);
        set.touch(&keys(&["a"]), 10);
        let change = set.warm(&keys(&["d"]), THREE, 10);
        assert_eq!(change.evicted, keys(&["c"]));
        assert_eq!(names(&set), ["a", "b", "d"]);
        set.warm(&keys(&["c"]), THREE, 11);
        assert_eq!(names(&set), ["a", "d", "c"], "an evicted tool comes back at the end");
    }

    #[test]
    fn one_call_never_evicts_what_it_adds() {
        let mut set = WarmSet::default();
        let change = set.warm(&keys(&["a", "b", "c", "d", "e"]), THREE, 1);
        assert_eq!(change.added, keys(&["a", "b", "c"]));
        assert!(change.evicted.is_empty());
    }

    #[test]
    fn pins_stay_and_take_room() {
        let mut set = WarmSet::default();
        set.pin(&keys(&["p", "q"]), THREE, 1).unwrap();
        let change = set.warm(&keys(&["a", "b"]), THREE, 2);
        assert_eq!(change.added, keys(&["a"]));
        assert_eq!(set.pin(&keys(&["x", "y"]), THREE, 3), Err(4));
        set.warm(&keys(&["c"]), THREE, 4);
        assert_eq!(names(&set), ["p", "q", "c"]);
        set.unpin(&keys(&["p"]));
        set.warm(&keys(&["d", "e"]), THREE, 5);
        assert_eq!(names(&set), ["q", "d", "e"]);
    }

    #[test]
    fn found_tools_wait_for_the_epoch() {
        let limits = WarmLimits { max: 2, policy: WarmPolicy::Epoch };
        let mut set = WarmSet::default();
        set.warm(&keys(&["a", "b"]), limits, 1);
        assert!(set.tools().iter().all(|tool| tool.pending));
        assert!(!set.settle(limits, false).is_durable());
        set.settle(limits, true);
        set.warm(&keys(&["c"]), limits, 2);
        assert_eq!(names(&set), ["a", "b", "c"], "nothing leaves the array before the epoch");
        let change = set.settle(limits, true);
        assert_eq!((change.updated, change.evicted), (keys(&["c"]), keys(&["b"])));
        assert_eq!(names(&set), ["a", "c"]);
    }

    #[test]
    fn a_smaller_bound_takes_effect_at_the_next_assembly() {
        let mut set = WarmSet::default();
        set.warm(&keys(&["a", "b", "c"]), THREE, 1);
        let change = set.settle(WarmLimits { max: 1, ..THREE }, false);
        assert_eq!(change.evicted, keys(&["c", "b"]));
    }

    proptest! {
        #[test]
        fn the_set_is_bounded_ordered_and_keeps_its_promises(
            steps in proptest::collection::vec((0u8..5, proptest::collection::vec(0u8..12, 1..6)), 1..40),
            max in 0usize..5,
        ) {
            let limits = WarmLimits { max, policy: WarmPolicy::Immediate };
            let mut set = WarmSet::default();
            for (at, (kind, picked)) in (0..).zip(steps) {
                let mut picked: Vec<ToolKey> = picked.iter().map(|n| key(&n.to_string())).collect();
                picked.dedup();
                let before = set.clone();
                let change = match kind {
                    0 | 1 => set.warm(&picked, limits, at),
                    2 => set.touch(&picked, at),
                    3 => set.pin(&picked[..1], limits, at).unwrap_or_default(),
                    _ => set.release(&picked),
                };
                prop_assert!(set.tools().len() <= max.max(before.tools().len()));
                prop_assert!(set.tools().windows(2).all(|pair| pair[0].first_seq < pair[1].first_seq));
                prop_assert!(change.added.iter().all(|key| set.get(key).is_some()));
                prop_assert!(change.evicted.iter().all(|key| set.get(key).is_none() && before.get(key).is_some_and(|tool| !tool.pinned)));
                for tool in before.tools() {
                    let gone = set.get(&tool.key).is_none();
                    prop_assert_eq!(gone, change.evicted.contains(&tool.key) || change.removed.contains(&tool.key));
                }
            }
        }
    }
}
