//! The vectors of one view's tools, as far as they are there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::core::digest::Digest;
use crate::core::embedding::Embedding;

/// How old the noted last use of a vector may be: an expiry of weeks needs no finer times.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A vector that is in the store.
#[derive(Debug)]
pub(in crate::service) struct Kept {
    pub vector: Embedding,
    /// Its last use by the store.
    noted_ms: AtomicI64,
}

impl Kept {
    pub(super) fn new(vector: Embedding, noted_ms: i64) -> Self {
        Self { vector, noted_ms: AtomicI64::new(noted_ms) }
    }

    pub(in crate::service) fn bytes(&self) -> usize {
        self.vector.bytes() + size_of::<Self>()
    }

    /// Whether its use is to be noted now; told once.
    fn is_due(&self, now_ms: i64) -> bool {
        let is_old = |noted: i64| (noted < now_ms - DAY_MS).then_some(now_ms);
        self.noted_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_old).is_ok()
    }
}

/// By position in [`ViewVectors::tools`].
pub(in crate::service) type Snapshot = Arc<[Option<Arc<Kept>>]>;

/// The vectors of a view's visible tools. Shared by all who see the view through one matcher.
#[derive(Debug)]
pub(in crate::service) struct ViewVectors {
    /// The view's number.
    pub view: u64,
    /// Each tool with the digest of its text.
    pub tools: Box<[(u32, Digest)]>,
    /// They take more memory than there is for all vectors: none is kept here.
    pub is_oversized: bool,
    found: RwLock<Found>,
    /// When ages were looked at.
    looked_ms: AtomicI64,
}

#[derive(Debug)]
struct Found {
    /// Replaced as a whole.
    snapshot: Snapshot,
    /// Positions without a vector, by text.
    missing: HashMap<Digest, Vec<usize>>,
}

impl ViewVectors {
    /// `found` by position in `tools`.
    pub(super) fn new(view: u64, tools: Box<[(u32, Digest)]>, found: Vec<Option<Arc<Kept>>>) -> Self {
        let mut missing: HashMap<Digest, Vec<usize>> = HashMap::new();
        for (at, _) in found.iter().enumerate().filter(|(_, vector)| vector.is_none()) {
            missing.entry(tools[at].1).or_default().push(at);
        }
        let found = RwLock::new(Found { snapshot: found.into(), missing });
        Self { view, tools, is_oversized: false, found, looked_ms: AtomicI64::new(0) }
    }

    pub(super) fn oversized(view: u64, tools: Box<[(u32, Digest)]>) -> Self {
        let found = RwLock::new(Found { snapshot: Arc::new([]), missing: HashMap::new() });
        Self { view, tools, is_oversized: true, found, looked_ms: AtomicI64::new(0) }
    }

    pub(in crate::service) fn snapshot(&self) -> Snapshot {
        Arc::clone(&self.found.read().unwrap_or_else(PoisonError::into_inner).snapshot)
    }

    /// Positions without a vector, in order.
    pub(in crate::service) fn missing(&self) -> Vec<usize> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let mut missing: Vec<usize> = found.missing.values().flatten().copied().collect();
        missing.sort_unstable();
        missing
    }

    /// Takes in vectors that were made; whether it lacked any of them.
    pub(super) fn accept(&self, made: &[(Digest, Arc<Kept>)]) -> bool {
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        if !made.iter().any(|(text, _)| found.missing.contains_key(text)) {
            return false;
        }
        let mut next = found.snapshot.to_vec();
        for (text, vector) in made {
            for at in found.missing.remove(text).unwrap_or_default() {
                next[at] = Some(Arc::clone(vector));
            }
        }
        found.snapshot = next.into();
        true
    }

    /// Texts whose use is to be noted in the store: looked for once a day, each told once.
    pub(in crate::service) fn due(&self, now_ms: i64) -> Vec<Digest> {
        if now_ms - self.looked_ms.load(Ordering::Relaxed) < DAY_MS {
            return Vec::new();
        }
        self.looked_ms.store(now_ms, Ordering::Relaxed);
        let snapshot = self.snapshot();
        let kept = self.tools.iter().zip(snapshot.iter());
        let due = kept.filter(|(_, vector)| vector.as_ref().is_some_and(|kept| kept.is_due(now_ms)));
        due.map(|((_, text), _)| *text).collect()
    }

    /// Bytes, if the vectors were nobody else's.
    pub(in crate::service) fn bytes(&self) -> usize {
        let vectors: usize = self.snapshot().iter().flatten().map(|vector| vector.bytes()).sum();
        vectors + self.tools.len() * (size_of::<(u32, Digest)>() + size_of::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(noted_ms: i64) -> Arc<Kept> {
        Arc::new(Kept::new(Embedding::of(&[1.0, 0.5]).unwrap(), noted_ms))
    }

    fn view(found: Vec<Option<Arc<Kept>>>) -> ViewVectors {
        let tools = (0..).zip(&found).map(|(id, _)| (id, Digest::of(&[id as u8])));
        ViewVectors::new(1, tools.collect(), found)
    }

    #[test]
    fn what_is_made_takes_its_place_and_counts() {
        let view = view(vec![None, Some(kept(0)), None]);
        assert_eq!(view.missing(), [0, 2]);
        let empty = view.bytes();
        assert!(!view.accept(&[(Digest::of(&[1]), kept(0)), (Digest::of(b"other"), kept(0))]));
        assert!(view.accept(&[(Digest::of(&[2]), kept(0))]));
        assert_eq!(view.missing(), [0]);
        assert!(view.snapshot()[2].is_some() && view.bytes() > empty);
    }

    #[test]
    fn what_is_used_is_noted_once_a_day() {
        let day = |days: i64| days * DAY_MS + 1;
        let shared = kept(day(8));
        let (one, other) =
            (view(vec![Some(kept(day(10))), Some(Arc::clone(&shared))]), view(vec![Some(shared)]));
        assert_eq!(one.due(day(10)), [Digest::of(&[1])]);
        assert!(other.due(day(10)).is_empty(), "another view has noted it");
        assert!(one.due(day(10) + DAY_MS / 2).is_empty());
        // Vectors that never leave the memory are noted all the same.
        assert_eq!(one.due(day(12)).len(), 2);
        assert!(one.due(day(12)).is_empty());
    }
}
