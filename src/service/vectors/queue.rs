//! Which texts are to be made into vectors next, and what becomes of a batch that the endpoint refuses.
//!
//! Pure: knows neither endpoint nor store, and what a text is made of is a type parameter. Bounded in number.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::core::digest::Digest;

/// Texts that may wait; those beyond are asked for again by the next search.
const MAX_WAITING: usize = 50_000;
/// A text that was refused by itself is not sent again for so long.
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(60 * 60);
/// So many of these are remembered; more would be sent again.
const MAX_REFUSED: usize = 10_000;

/// A text whose vector is wanted, by its digest, with what it can be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted<T> {
    pub text: Digest,
    pub of: T,
}

/// Where a wanted text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Back,
    /// Somebody waits for it.
    Front,
    /// On its way, or in a part of a batch that was refused.
    Taken,
}

/// The texts of one space that have no vector yet.
#[derive(Debug)]
pub(super) struct Queue<T> {
    front: VecDeque<Wanted<T>>,
    back: VecDeque<Wanted<T>>,
    /// Parts of refused batches, the next one last.
    parts: Vec<Vec<Wanted<T>>>,
    places: HashMap<Digest, Place>,
    /// Until when they are left alone.
    refused: HashMap<Digest, Instant>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            front: VecDeque::new(),
            back: VecDeque::new(),
            parts: Vec::new(),
            places: HashMap::new(),
            refused: HashMap::new(),
        }
    }
}

impl<T> Queue<T> {
    /// Takes a text in, unless it is there or was refused lately; one that somebody waits for goes before those that nobody does.
    pub(super) fn want(&mut self, wanted: Wanted<T>, is_awaited: bool, now: Instant) {
        if self.is_refused(&wanted.text, now) {
            return;
        }
        let (place, line) =
            if is_awaited { (Place::Front, &mut self.front) } else { (Place::Back, &mut self.back) };
        let is_full = self.places.len() >= MAX_WAITING;
        match self.places.entry(wanted.text) {
            Entry::Occupied(mut known) if *known.get() < place => drop(known.insert(place)),
            Entry::Vacant(free) if !is_full => drop(free.insert(place)),
            _ => return,
        }
        line.push_back(wanted);
    }

    /// The next batch, of at most `most` texts, which are taken until they are settled.
    pub(super) fn next(&mut self, most: usize) -> Option<Vec<Wanted<T>>> {
        if let Some(part) = self.parts.pop() {
            return Some(part);
        }
        let mut batch = Vec::new();
        while batch.len() < most
            && let Some(wanted) = self.front.pop_front().or_else(|| self.back.pop_front())
        {
            // One that was moved to the front is in the back still.
            if let Some(place) = self.places.get_mut(&wanted.text).filter(|place| **place != Place::Taken) {
                *place = Place::Taken;
                batch.push(wanted);
            }
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// A text is done, whichever way.
    pub(super) fn settle(&mut self, text: &Digest) {
        self.places.remove(text);
    }

    /// A batch was refused for what is in it: its halves are next, and a single text is refused; whether it was one.
    pub(super) fn refuse(&mut self, mut batch: Vec<Wanted<T>>, now: Instant) -> bool {
        if batch.len() > 1 {
            let second = batch.split_off(batch.len() / 2);
            self.parts.extend([second, batch]);
            return false;
        }
        for wanted in batch {
            self.settle(&wanted.text);
            if self.refused.len() >= MAX_REFUSED {
                self.refused.retain(|_, until| *until > now);
            }
            if self.refused.len() < MAX_REFUSED {
                self.refused.insert(wanted.text, now + REFUSED_FOR);
            }
        }
        true
    }

    /// Whether the text is queued or on its way.
    pub(super) fn holds(&self, text: &Digest) -> bool {
        self.places.contains_key(text)
    }

    pub(super) fn is_refused(&self, text: &Digest, now: Instant) -> bool {
        self.refused.get(text).is_some_and(|until| *until > now)
    }

    /// Whether nothing is queued; what is on its way does not count.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.front.is_empty() && self.back.is_empty()
    }

    /// Forgets what is wanted, and keeps what was refused.
    pub(super) fn clear(&mut self) {
        let refused = std::mem::take(&mut self.refused);
        *self = Self { refused, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wanted(number: u8) -> Wanted<u8> {
        Wanted { text: Digest::of(&[number]), of: number }
    }

    fn queue(numbers: impl IntoIterator<Item = u8>, now: Instant) -> Queue<u8> {
        let mut queue = Queue::default();
        numbers.into_iter().for_each(|number| queue.want(wanted(number), false, now));
        queue
    }

    fn numbers(batch: Option<Vec<Wanted<u8>>>) -> Vec<u8> {
        batch.unwrap_or_default().into_iter().map(|wanted| wanted.of).collect()
    }

    #[test]
    fn what_somebody_waits_for_comes_first_and_nothing_twice() {
        let now = Instant::now();
        let mut queue = queue([1, 2, 3, 2], now);
        queue.want(wanted(3), true, now);
        queue.want(wanted(4), true, now);
        assert_eq!(numbers(queue.next(3)), [3, 4, 1]);
        // On their way, they are not taken in again.
        queue.want(wanted(4), true, now);
        assert_eq!(numbers(queue.next(3)), [2]);
        assert_eq!(queue.next(3), None);
        assert!(queue.holds(&wanted(4).text) && queue.is_empty());
        queue.settle(&wanted(4).text);
        queue.want(wanted(4), false, now);
        assert_eq!(numbers(queue.next(3)), [4]);
    }

    #[test]
    fn a_refused_text_is_left_alone_for_an_hour() {
        let now = Instant::now();
        let mut queue = queue([1], now);
        let batch = queue.next(8).unwrap();
        assert!(queue.refuse(batch, now));
        queue.want(wanted(1), true, now + REFUSED_FOR / 2);
        assert!(!queue.holds(&wanted(1).text) && queue.is_refused(&wanted(1).text, now));
        queue.clear();
        queue.want(wanted(1), true, now + REFUSED_FOR / 2);
        assert_eq!(queue.next(8), None);
        queue.want(wanted(1), true, now + REFUSED_FOR * 2);
        assert_eq!(numbers(queue.next(8)), [1]);
    }

    proptest! {
        #[test]
        fn bad_texts_are_found_and_take_no_others_with_them(
            texts in prop::collection::btree_set(any::<u8>(), 1..60),
            bad in prop::collection::hash_set(any::<u8>(), 0..6),
            most in 1usize..40,
        ) {
            let now = Instant::now();
            let mut queue = queue(texts.iter().copied(), now);
            let (mut made, mut calls) = (Vec::new(), 0);
            while let Some(batch) = queue.next(most) {
                calls += 1;
                prop_assert!(batch.len() <= most);
                if batch.iter().any(|wanted| bad.contains(&wanted.of)) {
                    queue.refuse(batch, now);
                } else {
                    batch.iter().for_each(|wanted| queue.settle(&wanted.text));
                    made.extend(batch.iter().map(|wanted| wanted.of));
                }
            }
            made.sort_unstable();
            let good: Vec<u8> = texts.iter().copied().filter(|text| !bad.contains(text)).collect();
            prop_assert_eq!(made, good);
            let refused = texts.iter().filter(|text| queue.is_refused(&wanted(**text).text, now)).count();
            prop_assert_eq!(refused, texts.intersection(&bad.into_iter().collect()).count());
            prop_assert!(texts.iter().all(|text| !queue.holds(&wanted(*text).text)));
            // A bad text costs two calls for each halving of its batch.
            prop_assert!(calls <= texts.len().div_ceil(most) + refused * 2 * (most.ilog2() as usize + 1));
        }
    }
}
