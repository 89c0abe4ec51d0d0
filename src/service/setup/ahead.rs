//! What the pages after an import derive of its tools, made while somebody still looks at the import: one draft after the other,
//! through the caches that the pages ask. Who comes before it is made joins the work.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::core::id::Scope;
use crate::service::{Caller, Error, Toolrack, in_background, lock};

use super::ReviewQuery;

/// Drafts that wait for their turn; of more the first look makes what it shows.
const MOST_WAITING: usize = 64;

/// Drafts of which something is made ahead.
#[derive(Default)]
pub(in crate::service) struct Ahead(Mutex<Queue>);

/// A scope waits once, however often something is imported for it: what is read in its turn is the draft as it is then.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Scope, Caller)>,
    is_under_way: bool,
}

impl Queue {
    /// Takes a scope in; whether somebody has to begin with the work.
    fn add(&mut self, scope: Scope, caller: Caller) -> bool {
        let has_room = self.waiting.len() < MOST_WAITING;
        match self.waiting.iter_mut().find(|(known, _)| *known == scope) {
            Some(waiting) => waiting.1 = caller,
            None if has_room => self.waiting.push_back((scope, caller)),
            None => return false,
        }
        !std::mem::replace(&mut self.is_under_way, true)
    }

    /// The next one; where there is none, the work has ended.
    fn next(&mut self) -> Option<(Scope, Caller)> {
        let next = self.waiting.pop_front();
        self.is_under_way = next.is_some();
        next
    }
}

impl Toolrack {
    /// Has made, in the background, what the pages of a draft show of its tools to this caller.
    pub fn prepare_draft(&self, scope: &Scope, caller: Caller) {
        if lock(&self.0.ahead.0).add(scope.clone(), caller) {
            let service = self.clone();
            tokio::spawn(async move { service.prepare_drafts().await });
        }
    }

    async fn prepare_drafts(&self) {
        loop {
            let next = lock(&self.0.ahead.0).next();
            let Some((scope, caller)) = next else { return };
            let service = self.clone();
            let made = in_background(async move { service.prepare(&scope, caller).await });
            if let Err(error) = made.await {
                // The page that asks for it tells what is wrong.
                tracing::debug!(%error, "nothing was made ahead of a draft");
            }
        }
    }

    async fn prepare(&self, scope: &Scope, caller: Caller) -> Result<(), Error> {
        let input = self.draft(scope).await?.input(caller);
        self.review_setup(input.clone(), ReviewQuery::default()).await?;
        self.plan_setup(input).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::Id;

    fn scope(name: &str) -> Scope {
        Scope::User(Id::parse(name).unwrap())
    }

    fn caller() -> Caller {
        Caller { user: Id::nobody(), project: None, session: None, limits: None, allowances: None }
    }

    #[test]
    fn a_scope_waits_once_and_one_works() {
        let mut queue = Queue::default();
        assert!(queue.add(scope("a"), caller()));
        assert!(!queue.add(scope("a"), caller()));
        assert!(!queue.add(scope("b"), caller()));
        assert_eq!(queue.next().map(|(scope, _)| scope), Some(scope("a")));
        // Another import while the first one is looked at has its turn again.
        assert!(!queue.add(scope("a"), caller()));
        assert_eq!(queue.next().map(|(scope, _)| scope), Some(scope("b")));
        assert_eq!(queue.next().map(|(scope, _)| scope), Some(scope("a")));
        assert!(queue.next().is_none());
        assert!(queue.add(scope("a"), caller()));
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let mut queue = Queue::default();
        for at in 0..2 * MOST_WAITING {
            queue.add(scope(&format!("u{at}")), caller());
        }
        assert_eq!(queue.waiting.len(), MOST_WAITING);
    }
}
