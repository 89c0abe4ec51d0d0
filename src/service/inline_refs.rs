//! References to inline catalogs that are known without asking the store, with their ages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::store::{InlineKey, InlineTouch};

/// How long a reference that nobody used stays known.
const KNOWN_MS: i64 = 10 * 60 * 1_000;

/// Of more than so many, some 300 bytes each, none stays known beyond the next flush: the store has them.
const MAX_KNOWN: usize = 50_000;

struct Known {
    content_id: Arc<str>,
    last_used_ms: i64,
    /// As of the last flush.
    stored_ms: i64,
}

/// The references in use.
pub(super) struct InlineRefs {
    known: Mutex<HashMap<InlineKey, Known>>,
    ttl_ms: i64,
}

impl InlineRefs {
    pub(super) fn new(ttl_ms: i64) -> Self {
        Self { known: Mutex::default(), ttl_ms }
    }

    /// The content of a reference, whose age is renewed; nothing when it is not known here or has expired.
    pub(super) fn touch(&self, key: &InlineKey, now: i64) -> Option<Arc<str>> {
        let mut known = lock(&self.known);
        let known = known.get_mut(key).filter(|known| now - known.last_used_ms <= self.ttl_ms)?;
        known.last_used_ms = now;
        Some(Arc::clone(&known.content_id))
    }

    /// Remembers a reference that the store has, as used now.
    pub(super) fn remember(&self, key: InlineKey, content_id: Arc<str>, now: i64) {
        lock(&self.known).insert(key, Known { content_id, last_used_ms: now, stored_ms: 0 });
    }

    pub(super) fn forget(&self, key: &InlineKey) {
        lock(&self.known).remove(key);
    }

    /// The ages that the store does not have yet.
    pub(super) fn unstored(&self) -> Vec<InlineTouch> {
        let known = lock(&self.known);
        let unstored = known.iter().filter(|(_, known)| known.last_used_ms > known.stored_ms);
        unstored
            .map(|(key, known)| InlineTouch { key: key.clone(), last_used_ms: known.last_used_ms })
            .collect()
    }

    /// Notes that the store has these ages, and forgets what nobody used for a while.
    pub(super) fn stored(&self, touches: &[InlineTouch], now: i64) {
        let mut known = lock(&self.known);
        for touch in touches {
            if let Some(known) = known.get_mut(&touch.key) {
                known.stored_ms = known.stored_ms.max(touch.last_used_ms);
            }
        }
        let keep_ms = if known.len() > MAX_KNOWN { 0 } else { KNOWN_MS.min(self.ttl_ms) };
        known.retain(|_, known| known.last_used_ms > known.stored_ms || now - known.last_used_ms < keep_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::Id;

    fn key(at: usize) -> InlineKey {
        InlineKey { user: Id::parse(&format!("user-{at}")).unwrap(), reference: format!("ref-{at}") }
    }

    fn flush(refs: &InlineRefs, now: i64) -> usize {
        let touches = refs.unstored();
        refs.stored(&touches, now);
        touches.len()
    }

    #[test]
    fn a_reference_is_known_until_nobody_uses_it() {
        let refs = InlineRefs::new(i64::MAX);
        refs.remember(key(1), "content".into(), 1_000);
        assert_eq!(flush(&refs, 2_000), 1);
        assert_eq!(refs.touch(&key(1), 3_000).as_deref(), Some("content"));
        assert_eq!((flush(&refs, 4_000), flush(&refs, 5_000)), (1, 0));
        assert_eq!(flush(&refs, 3_000 + KNOWN_MS), 0);
        assert_eq!(refs.touch(&key(1), 3_000 + KNOWN_MS), None);
    }

    #[test]
    fn a_flood_of_references_is_forgotten_with_the_next_flush() {
        let refs = InlineRefs::new(i64::MAX);
        for at in 0..=MAX_KNOWN {
            refs.remember(key(at), Arc::default(), 1_000);
        }
        assert_eq!(flush(&refs, 1_001), MAX_KNOWN + 1, "no age is lost");
        assert_eq!(lock(&refs.known).len(), 0);
        refs.remember(key(1), Arc::default(), 2_000);
        flush(&refs, 2_001);
        assert_eq!(lock(&refs.known).len(), 1, "the usual way again");
    }
}
