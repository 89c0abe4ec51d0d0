//! A map of bounded size that forgets what was used least recently.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Holds at most a set number of entries. Every step costs O(log n).
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    entries: HashMap<K, (u64, V)>,
    /// Time of last use to key, oldest first. The times are counted, not measured, so none occurs twice.
    order: BTreeMap<u64, K>,
    uses: u64,
    most: usize,
}

impl<K: Hash + Eq + Copy, V> Recent<K, V> {
    /// An empty map for at most `most` entries, at least one.
    pub(super) fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), order: BTreeMap::new(), uses: 0, most: most.max(1) }
    }

    /// The value of a key, without counting as a use.
    pub(super) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// The value of a key, which becomes the one used last.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(key)?;
        self.uses += 1;
        self.order.remove(used);
        self.order.insert(self.uses, *key);
        *used = self.uses;
        Some(value)
    }

    /// Sets the value of a key, which becomes the one used last; gives back the value that had to leave for it.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.uses += 1;
        if let Some((used, _)) = self.entries.insert(key, (self.uses, value)) {
            self.order.remove(&used);
        }
        self.order.insert(self.uses, key);
        if self.entries.len() <= self.most {
            return None;
        }
        let (_, oldest) = self.order.pop_first()?;
        self.entries.remove(&oldest).map(|(_, value)| value)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.order.len());
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_least_recently_used_leaves() {
        let mut recent = Recent::new(2);
        assert_eq!(recent.insert('a', 1), None);
        assert_eq!(recent.insert('b', 2), None);
        assert_eq!(recent.get_mut(&'a'), Some(&mut 1));
        assert_eq!(recent.insert('c', 3), Some(2));
        assert_eq!(recent.insert('a', 4), None);
        assert_eq!(recent.peek(&'a'), Some(&4));
        assert_eq!(recent.insert('d', 5), Some(3));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_list(most in 1usize..5, steps in prop::collection::vec((any::<bool>(), 0u8..8), 0..60)) {
            let mut recent = Recent::new(most);
            let mut list: Vec<(u8, usize)> = Vec::new();
            for (at, (write, key)) in steps.into_iter().enumerate() {
                let known = list.iter().position(|(held, _)| *held == key).map(|place| list.remove(place));
                if write {
                    list.push((key, at));
                    let left = (list.len() > most).then(|| list.remove(0).1);
                    prop_assert_eq!(recent.insert(key, at), left);
                } else {
                    prop_assert_eq!(recent.get_mut(&key).map(|value| *value), known.map(|(_, value)| value));
                    list.extend(known);
                }
                prop_assert_eq!(recent.len(), list.len());
            }
        }
    }
}
