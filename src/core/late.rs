//! Entries that stand behind all others: deferred tools as the provider knows them.
//!
//! Made once per plan. Their order never changes; one that a session has loaded for good stands before them instead, and is
//! left out here.

use std::ops::Range;

/// Entries of an array joined by commas, each with the tool that it is of.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LateEntries {
    json: String,
    /// Ids of tools in a view, and where their entries stand.
    places: Vec<(u32, Range<usize>)>,
}

impl LateEntries {
    pub fn push(&mut self, id: u32, entry: &str) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        let start = self.json.len();
        self.json.push_str(entry);
        self.places.push((id, start..self.json.len()));
    }

    /// Length of the joined entries, in bytes.
    pub fn bytes(&self) -> usize {
        self.json.len() + self.places.len() * size_of::<(u32, Range<usize>)>()
    }

    /// The joined entries in runs between those of `except`.
    pub fn without<'a>(&'a self, except: &[u32]) -> impl Iterator<Item = &'a str> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for (_, place) in self.places.iter().filter(|(id, _)| except.contains(id)) {
            runs.push(start..place.start.saturating_sub(1));
            start = place.end + 1;
        }
        runs.push(start..self.json.len());
        runs.into_iter().filter_map(|run| self.json.get(run)).filter(|run| !run.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_left_out_leaves_the_others_as_they_are(count in 0u32..12, except in prop::collection::vec(0u32..14, 0..6)) {
            let mut late = LateEntries::default();
            (0..count).for_each(|id| late.push(id, &format!("{{\"a\":[{id},\"x\"]}}")));
            let joined: Vec<&str> = late.without(&except).collect();
            let read: Vec<serde_json::Value> = serde_json::from_str(&format!("[{}]", joined.join(","))).unwrap();
            let kept: Vec<u64> = read.iter().map(|entry| entry["a"][0].as_u64().unwrap()).collect();
            let wanted: Vec<u64> = (0..count).filter(|id| !except.contains(id)).map(u64::from).collect();
            prop_assert_eq!(kept, wanted);
        }
    }
}
