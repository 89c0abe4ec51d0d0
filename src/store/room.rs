//! Whether writes find room: told from how the last ones ended.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For so long after a write that found none, one that is stored is no sign of room: it may have changed rows in their place.
/// More than twice the usual time between two flushes of ages, which are such writes.
const DOUBT: Duration = Duration::from_secs(12);

/// When a write last found no room; nothing once one was stored after the time of doubt.
#[derive(Debug, Default)]
pub(super) struct Room(Mutex<Option<Instant>>);

impl Room {
    pub(super) fn missed(&self, now: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    pub(super) fn stored(&self, now: Instant) {
        let mut missed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *missed = missed.filter(|missed| now.saturating_duration_since(*missed) < DOUBT);
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_again_once_nothing_was_refused_for_a_while() {
        let (room, now) = (Room::default(), Instant::now());
        room.stored(now);
        assert!(room.is_there());
        room.missed(now);
        room.stored(now + DOUBT / 2);
        room.missed(now + DOUBT / 2);
        room.stored(now + DOUBT);
        assert!(!room.is_there(), "it was refused again meanwhile");
        room.stored(now + DOUBT * 2);
        assert!(room.is_there());
    }
}
