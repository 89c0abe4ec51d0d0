//! What other processes wrote, for whoever keeps something of it in memory.
//!
//! Owns what was heard and not taken yet. Who hears it is the affair of a database that tells: [`super::postgres`].

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::core::id::Scope;

use super::writes::stored_scope;

/// Scopes that are told apart until they are taken; with more of them all may have changed.
const MOST_SCOPES: usize = 10_000;

/// What is told of a change of keys.
pub(super) const KEYS: &str = "keys";

/// What was written by others since it was last asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whose config or catalog was.
    pub scopes: BTreeSet<Scope>,
    pub keys: bool,
    /// Others may have written anything: for a while nothing was heard of them.
    pub missed: bool,
}

impl Changes {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what one of the others told. What this version does not know may be anything.
    fn add(&mut self, told: &str) {
        let scope = told.split_once('/').and_then(|(kind, id)| stored_scope(kind, id).ok());
        match scope {
            _ if told == KEYS => self.keys = true,
            Some(scope) if self.scopes.len() < MOST_SCOPES => drop(self.scopes.insert(scope)),
            _ => self.missed = true,
        }
    }
}

/// How a change of a scope is told.
pub(super) fn told_of(scope: &Scope) -> String {
    format!("{}/{}", scope.kind(), scope.id())
}

/// What was heard.
#[derive(Debug, Default)]
pub(super) struct Heard {
    waiting: Mutex<Changes>,
    news: Notify,
    listening: AtomicBool,
}

impl Heard {
    /// Whether what others write is heard at present.
    pub(super) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// Begins to hear.
    pub(super) fn begin(&self) {
        self.listening.store(true, Ordering::Relaxed);
        self.with(|changes| changes.missed = true);
    }

    /// Hears no more.
    pub(super) fn end(&self) {
        self.listening.store(false, Ordering::Relaxed);
    }

    pub(super) fn tell(&self, told: &str) {
        self.with(|changes| changes.add(told));
    }

    fn with(&self, add: impl FnOnce(&mut Changes)) {
        add(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        self.news.notify_one();
    }

    /// Takes all that waits, once there is something.
    pub(super) async fn next(&self) -> Changes {
        loop {
            let changes = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            if !changes.is_empty() {
                return changes;
            }
            self.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::Id;

    #[tokio::test]
    async fn what_waits_is_taken_at_once_and_as_much_as_memory_allows() {
        let heard = Heard::default();
        let scope = |id: &str| Scope::User(Id::parse(id).unwrap());
        heard.begin();
        heard.tell("user/ada");
        heard.tell("user/ada");
        heard.tell(&told_of(&Scope::Project(Id::parse("rack").unwrap())));
        heard.tell(KEYS);
        let first = heard.next().await;
        assert!(first.missed && first.keys);
        assert_eq!(first.scopes, [scope("ada"), Scope::Project(Id::parse("rack").unwrap())].into());
        heard.tell("user/ada");
        assert_eq!(heard.next().await, Changes { scopes: [scope("ada")].into(), ..Changes::default() });
        for odd in ["team/ada", "user/", "user", ""] {
            heard.tell(odd);
            assert!(heard.next().await.missed, "{odd:?}");
        }
        for at in 0..=MOST_SCOPES {
            heard.tell(&format!("user/u{at}"));
        }
        let many = heard.next().await;
        assert!(many.missed && many.scopes.len() == MOST_SCOPES);
    }
}
