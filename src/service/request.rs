//! What belongs to the request that is running, and is not handed from function to function.
//!
//! Owns the way to it: the task that a request is answered in. Outside of such a task nothing is kept.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::lock;
use super::timing::Spent;
use crate::core::id::Scope;

tokio::task_local! {
    static RUNNING: Arc<Running>;
}

/// How much was written of a user and of a project, config and catalog alike: numbers that only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Revisions {
    pub user: Option<i64>,
    pub project: Option<i64>,
}

impl Revisions {
    fn of(&mut self, scope: &Scope) -> &mut Option<i64> {
        match scope {
            Scope::User(_) => &mut self.user,
            Scope::Project(_) => &mut self.project,
        }
    }
}

/// As members of a dictionary: `user=12, project=3`.
impl fmt::Display for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (name, revision) in [("user", self.user), ("project", self.project)] {
            if let Some(revision) = revision {
                write!(f, "{between}{name}={revision}")?;
                between = ", ";
            }
        }
        Ok(())
    }
}

/// One request.
#[derive(Debug, Default)]
pub struct Running {
    pub spent: Spent,
    /// What it wants to see, at least.
    wanted: Revisions,
    /// What its answer shows.
    shown: Mutex<Revisions>,
    /// Whether something was remembered because the database did not answer.
    remembered: AtomicBool,
}

impl Running {
    pub fn new(wanted: Revisions) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// The state that its answer shows of what an administrator looks at or writes; nothing of what was in memory.
    pub fn shown(&self) -> Revisions {
        *lock(&self.shown)
    }
}

/// Runs a request; what is noted of it meanwhile is kept also where it is given up before its end.
pub fn watched<F: Future>(running: Arc<Running>, request: F) -> impl Future<Output = F::Output> {
    RUNNING.scope(running, request)
}

/// Does something with the request that is running; nothing outside of one.
pub(super) fn with<T>(note: impl FnOnce(&Running) -> T) -> Option<T> {
    RUNNING.try_with(|running| note(running)).ok()
}

/// How much of a scope's writes the request wants to see.
pub(super) fn wanted(scope: &Scope) -> i64 {
    with(|running| { running.wanted }.of(scope).unwrap_or_default()).unwrap_or_default()
}

/// Notes which state of a scope the answer shows.
pub(super) fn shows(scope: &Scope, writes: i64) {
    with(|running| {
        let mut shown = lock(&running.shown);
        let known = shown.of(scope);
        *known = (*known).max(Some(writes));
    });
}

/// Notes that something was remembered because the database did not answer.
pub(super) fn remembers() {
    with(|running| running.remembered.store(true, Ordering::Relaxed));
}

pub(super) fn has_remembered() -> bool {
    with(|running| running.remembered.load(Ordering::Relaxed)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::Id;

    #[tokio::test]
    async fn what_an_answer_shows_is_the_latest_that_was_noted() {
        let scope = |id: &str| Scope::User(Id::parse(id).unwrap());
        let running = Arc::new(Running::new(Revisions { user: Some(7), ..Revisions::default() }));
        watched(Arc::clone(&running), async {
            assert_eq!(wanted(&scope("ada")), 7);
            assert_eq!(wanted(&Scope::Project(Id::parse("p").unwrap())), 0);
            shows(&scope("ada"), 9);
            shows(&scope("ada"), 8);
            shows(&Scope::Project(Id::parse("p").unwrap()), 3);
        })
        .await;
        shows(&scope("ada"), 10);
        assert_eq!(wanted(&scope("ada")), 0, "outside of the request");
        assert_eq!(running.shown().to_string(), "user=9, project=3");
        assert_eq!(Revisions::default().to_string(), "");
    }
}
