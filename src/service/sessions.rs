//! All sessions of the process: snapshots in memory, replaced under a lock per session, and their rows.
//!
//! What an answer promises (warm sets, pins, settings) is written before the answer; ages and counters are written
//! every few seconds. Where the process is the only one that serves its database, a snapshot in memory is the truth; else
//! each use of one asks the store whether the row is still what it shows, and reads it anew where it is not. Everything
//! that concerns one session in this process happens under its lock, except reading a snapshot that is there. Between
//! processes the row decides: a change is written only where the row is what the change was made for, else made again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moka::future::Cache;

use super::audit::Actor;
use super::away::REMEMBERED_MS;
pub(super) use super::ledger::Deed;
use super::listing_bases::{BASE_MARGIN_MS, touches_of};
pub(super) use super::session::{AssembledState, Session, SessionSettings, Update, warm_limits};
use super::stripes::{Guard, Stripes};
use super::timing::{Part, timed};
use super::usage::scope_of;
use super::{Error, Kind, Toolrack, WRITE_TRIES, lock, now_ms, uncancelled};
use crate::core::id::SessionKey;
use crate::core::tool::ToolKey;
use crate::core::warm::{WarmSet, WarmTool};
use crate::store::{ExpectedSession, SessionTouch, SessionWrite, StoreError, WarmRow};
use crate::telemetry;

/// Sessions that are deleted at once when they expire; inline catalogs, which have thousands of rows each, a few; and
/// listing bases.
const EXPIRED_AT_ONCE: (u32, u32, u32) = (500, 10, 100);
/// Sessions whose ages and counters are written at once: all of them or none.
const TOUCHED_AT_ONCE: usize = 512;
/// Vectors of tool texts that no view was made with for so long go, so many at once. They cost money to make again.
const VECTOR_TTL_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
const VECTORS_AT_ONCE: u32 = 500;

/// Snapshots with ages or counters that the store does not have yet; asked before the store is.
#[derive(Default)]
struct Unflushed {
    waiting: HashMap<SessionKey, Arc<Session>>,
    /// On their way to the store.
    flushing: HashMap<SessionKey, Arc<Session>>,
}

impl Unflushed {
    fn get(&self, key: &SessionKey) -> Option<Arc<Session>> {
        self.waiting.get(key).or_else(|| self.flushing.get(key)).cloned()
    }

    fn remove(&mut self, key: &SessionKey) {
        self.waiting.remove(key);
        self.flushing.remove(key);
    }
}

/// The sessions in memory.
pub(super) struct Sessions {
    snapshots: Cache<SessionKey, Arc<Session>>,
    stripes: Stripes,
    unflushed: Mutex<Unflushed>,
    ttl_ms: i64,
}

/// The snapshot of a session with its lock.
pub(super) struct HeldSession {
    guard: Guard,
    pub(super) session: Arc<Session>,
}

/// What became of a change of a session.
pub(super) enum Changed<T> {
    Done(T),
    /// Nothing: another process changed the session first. This is what it is now.
    Outdated(HeldSession),
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

impl Sessions {
    pub(super) fn new(capacity: u64, ttl: Duration) -> Self {
        Self {
            snapshots: Cache::builder().max_capacity(capacity).build(),
            stripes: Stripes::default(),
            unflushed: Mutex::default(),
            ttl_ms: i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX),
        }
    }

    pub(super) fn entry_count(&self) -> u64 {
        self.snapshots.entry_count()
    }

    async fn guard(&self, key: &SessionKey) -> Guard {
        self.stripes.guard(key).await
    }

    /// Keeps a snapshot for the next flush. Its session's lock is held.
    fn mark_dirty(&self, key: &SessionKey, session: &Arc<Session>) {
        if session.mark_dirty() {
            lock(&self.unflushed).waiting.insert(key.clone(), Arc::clone(session));
        }
    }

    /// Forgets a session. Its lock is held.
    async fn forget(&self, key: &SessionKey) {
        lock(&self.unflushed).remove(key);
        self.snapshots.invalidate(key).await;
    }
}

impl Toolrack {
    /// The present snapshot of a session; an unknown one is empty.
    pub(super) async fn session(&self, key: &SessionKey) -> Result<Arc<Session>, Error> {
        if let Some(session) = self.0.sessions.snapshots.get(key).await
            && self.is_current(key, &session).await?
            && now_ms() - session.last_seen() <= self.0.sessions.ttl_ms
        {
            return Ok(session);
        }
        let _guard = self.0.sessions.guard(key).await;
        self.load_session(key).await
    }

    /// As [`Self::session`], for a caller that holds the session's lock.
    async fn load_session(&self, key: &SessionKey) -> Result<Arc<Session>, Error> {
        let sessions = &self.0.sessions;
        let now = now_ms();
        let cached = sessions.snapshots.get(key).await;
        let is_cached = cached.is_some();
        let session = match cached.or_else(|| lock(&sessions.unflushed).get(key)) {
            Some(session) if self.is_current(key, &session).await? => {
                if is_cached {
                    return self.unexpired(key, session, now).await;
                }
                session
            }
            outdated => self.read_session(key, outdated, now).await?,
        };
        let session = self.unexpired(key, session, now).await?;
        sessions.snapshots.insert(key.clone(), Arc::clone(&session)).await;
        Ok(session)
    }

    /// Whether nobody else has changed a session since its snapshot was made.
    async fn is_current(&self, key: &SessionKey, session: &Session) -> Result<bool, Error> {
        if !self.0.store.is_shared() {
            return Ok(true);
        }
        let read = async {
            Ok(match timed(Part::Database, self.0.store.session_state(key)).await? {
                Some(state) => session.is_row(&state),
                None => !session.is_stored(),
            })
        };
        // A snapshot is as good as it gets while nobody can tell, for a while.
        let known = (session.unchecked_ms() < REMEMBERED_MS).then_some(true);
        self.read_or_remember(known, read).await
    }

    /// A session as the store has it; the ages and counters that an outdated snapshot has are written before. Its lock
    /// is held.
    async fn read_session(
        &self,
        key: &SessionKey,
        outdated: Option<Arc<Session>>,
        now: i64,
    ) -> Result<Arc<Session>, Error> {
        if let Some(outdated) = outdated.as_ref().filter(|outdated| outdated.is_dirty()) {
            self.flush_session(key, outdated).await?;
        }
        let row = timed(Part::Database, self.0.store.session(key)).await?;
        Ok(Arc::new(match row {
            Some(row) => Session::from_row(row, outdated.as_deref()),
            None => Session::new(now),
        }))
    }

    /// Writes the ages and counters of a snapshot now, also when the caller goes away. Its lock is held.
    async fn flush_session(&self, key: &SessionKey, session: &Arc<Session>) -> Result<(), Error> {
        lock(&self.0.sessions.unflushed).remove(key);
        let touch = session.touch(key);
        let (service, key, session) = (self.clone(), key.clone(), Arc::clone(session));
        uncancelled(async move {
            let counts = touch.counts;
            let written = service.0.store.touch_sessions(vec![touch]).await;
            if written.is_err() {
                session.ledger().give_back(counts);
                if session.mark_dirty() {
                    lock(&service.0.sessions.unflushed).waiting.entry(key).or_insert(session);
                }
            }
            Ok(written?)
        })
        .await
    }

    /// The session, or an empty one in the place of one that was idle for too long.
    async fn unexpired(
        &self,
        key: &SessionKey,
        session: Arc<Session>,
        now: i64,
    ) -> Result<Arc<Session>, Error> {
        let before = now - self.0.sessions.ttl_ms;
        if session.last_seen() >= before {
            return Ok(session);
        }
        self.0.sessions.forget(key).await;
        self.0.store.delete_idle_session(key, before).await?;
        // Another process may have seen it, or begun it anew.
        let session = self.read_session(key, None, now).await?;
        self.0.sessions.snapshots.insert(key.clone(), Arc::clone(&session)).await;
        Ok(session)
    }

    /// A session that nothing else changes until this is dropped.
    pub(super) async fn hold_session(&self, key: &SessionKey) -> Result<HeldSession, Error> {
        let guard = self.0.sessions.guard(key).await;
        let session = self.load_session(key).await?;
        Ok(HeldSession { guard, session })
    }

    /// As [`Self::hold_session`], for one that only counts: what this process knows of the session is enough.
    pub(super) async fn hold_known_session(&self, key: &SessionKey) -> Result<HeldSession, Error> {
        let guard = self.0.sessions.guard(key).await;
        let session = match self.0.sessions.snapshots.get(key).await {
            Some(session) => session,
            None => self.load_session(key).await?,
        };
        Ok(HeldSession { guard, session })
    }

    /// Lets the next flush write the counters of a session.
    pub(super) fn keep_for_flush(&self, key: &SessionKey, held: &HeldSession) {
        self.0.sessions.mark_dirty(key, &held.session);
    }

    /// Changes a session. The change is a function of the snapshot; what is durable in it is written before this
    /// answers, also when the caller is gone by then.
    pub(super) async fn update_session<T: Send + 'static>(
        &self,
        key: &SessionKey,
        deed: Deed,
        change: impl Fn(&Session, &mut WarmSet, i64) -> Result<(Update, T), Error>,
    ) -> Result<T, Error> {
        let mut tries = ChangeTries::default();
        let mut held = self.hold_session(key).await?;
        loop {
            match self.change_held(key, held, deed, &change).await? {
                Changed::Done(answer) => return Ok(answer),
                Changed::Outdated(newer) => held = newer,
            }
            tries.again()?;
        }
    }

    /// As [`Self::update_session`], once: what the change is made of may be another thing where the session is.
    pub(super) async fn change_held<T: Send + 'static>(
        &self,
        key: &SessionKey,
        held: HeldSession,
        deed: Deed,
        change: impl FnOnce(&Session, &mut WarmSet, i64) -> Result<(Update, T), Error>,
    ) -> Result<Changed<T>, Error> {
        let HeldSession { guard, session } = held;
        let now = now_ms();
        let mut warm = session.warm.clone();
        let (update, answer) = change(&session, &mut warm, now)?;
        if !update.is_durable() {
            session.ledger().count(deed, update.cost);
            let next = if update.warm.touched.is_empty() {
                session.seen(now);
                session
            } else {
                telemetry::warm_change(0, update.warm.touched.len(), 0);
                let next = Arc::new(session.with(session.settings.clone(), warm, now, session.revision()));
                self.0.sessions.snapshots.insert(key.clone(), Arc::clone(&next)).await;
                next
            };
            self.0.sessions.mark_dirty(key, &next);
            // Others judge by what is stored whether it is idle, and must know before they do.
            let is_due = now - next.stored_seen() > self.0.sessions.ttl_ms / 2;
            if is_due && next.is_stored() && self.0.store.is_shared() && self.check_database().is_ok() {
                // One that failed waits for the next flush.
                let _ = self.flush_session(key, &next).await;
            }
            drop(guard);
            return Ok(Changed::Done(answer));
        }
        self.check_database()?;
        let created_at_ms = session.created_at_ms();
        let most = (!session.is_stored()).then_some(self.0.limits.sessions);
        let expected = session.expected();
        let write =
            SessionWrite { created_at_ms, expected, most, ..session_write(key, &update, &warm, now)? };
        let (added, touched, evicted) =
            (update.warm.added.len(), update.warm.touched.len(), update.warm.evicted.len());
        let cost = update.cost;
        let settings = update.settings.unwrap_or_else(|| session.settings.clone());
        let (service, key) = (self.clone(), key.clone());
        let outdated = uncancelled(async move {
            let revision = match service.0.store.write_session(write).await {
                Ok(revision) => revision,
                Err(StoreError::Conflict) => {
                    let session = service.read_session(&key, Some(session), now).await?;
                    service.0.sessions.snapshots.insert(key, Arc::clone(&session)).await;
                    return Ok(Some(HeldSession { guard, session }));
                }
                Err(error) => return Err(begun_too_many(error, service.0.limits.sessions)),
            };
            let next = Arc::new(session.with(settings, warm, now, revision));
            next.ledger().count(deed, cost);
            telemetry::warm_change(added, touched, evicted);
            service.usage().warmed(&scope_of(&key.user, key.project.as_ref()), added, evicted);
            service.0.sessions.snapshots.insert(key.clone(), Arc::clone(&next)).await;
            // Ages that were touched before, and the ledger, follow with the next flush.
            service.0.sessions.mark_dirty(&key, &next);
            drop(guard);
            Ok(None)
        })
        .await?;
        Ok(outdated.map_or(Changed::Done(answer), Changed::Outdated))
    }

    /// Deletes a session; deleting nothing is fine.
    pub async fn delete_session(&self, actor: &Actor, key: &SessionKey) -> Result<(), Error> {
        let guard = self.0.sessions.guard(key).await;
        let audit = self.session_audited(actor, "session.delete", key);
        let (service, key) = (self.clone(), key.clone());
        uncancelled(async move {
            service.0.store.delete_session(&key, audit).await?;
            service.0.sessions.forget(&key).await;
            drop(guard);
            Ok(())
        })
        .await
    }

    /// Writes buffered ages and counters. What could not be written stays buffered.
    pub async fn flush(&self) -> Result<(), Error> {
        // One that fails does not hold up the other.
        let (usage, ages) = (self.flush_usage().await, self.flush_ages().await);
        usage.and(ages)
    }

    async fn flush_ages(&self) -> Result<(), Error> {
        let (touches, bases) = {
            let mut unflushed = lock(&self.0.sessions.unflushed);
            let waiting = std::mem::take(&mut unflushed.waiting);
            // What a flush that was cut off left behind goes again, unless there is something newer.
            waiting.into_iter().for_each(|(key, session)| drop(unflushed.flushing.insert(key, session)));
            let sessions = || unflushed.flushing.iter();
            let touches: Vec<SessionTouch> = sessions().map(|(key, session)| session.touch(key)).collect();
            (touches, touches_of(sessions().map(|(_, session)| &**session)))
        };
        if !touches.is_empty() {
            // Bases first: none may be older than a session that keeps it.
            let mut written = self.0.store.touch_listing_bases(bases).await;
            let mut rest = touches.as_slice();
            while written.is_ok() && !rest.is_empty() {
                let (part, later) = rest.split_at(rest.len().min(TOUCHED_AT_ONCE));
                written = self.0.store.touch_sessions(part.to_vec()).await;
                rest = if written.is_ok() { later } else { rest };
            }
            let mut unflushed = lock(&self.0.sessions.unflushed);
            let mut flushing = std::mem::take(&mut unflushed.flushing);
            for SessionTouch { key, counts, .. } in rest {
                if let Some(session) = flushing.remove(key) {
                    session.ledger().give_back(*counts);
                    unflushed.waiting.entry(key.clone()).or_insert(session);
                }
            }
            written?;
        }
        let touches = self.0.inline_refs.unstored();
        if !touches.is_empty() {
            self.0.store.touch_inline(touches.clone()).await?;
        }
        self.0.inline_refs.stored(&touches, now_ms());
        self.flush_keys().await
    }

    /// Deletes what was idle for longer than the session lifetime.
    pub async fn expire(&self) -> Result<usize, Error> {
        // The store must know the present ages.
        self.flush().await?;
        let before = now_ms() - self.0.limits.session_ttl_ms();
        let (sessions_at_once, inline_at_once, bases_at_once) = EXPIRED_AT_ONCE;
        let mut expired = 0;
        loop {
            let sessions = self.0.store.expire_sessions(before, sessions_at_once).await?;
            for key in &sessions {
                let _guard = self.0.sessions.guard(key).await;
                match self.0.sessions.snapshots.get(key).await {
                    // Used between the flush and the deletion: its row comes back, unless it has begun anew.
                    Some(alive) if alive.is_stored() && alive.last_seen() >= before => {
                        match self.0.store.write_session(whole_write(key, &alive)?).await {
                            Ok(_) | Err(StoreError::Conflict) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                    _ => self.0.sessions.forget(key).await,
                }
            }
            expired += sessions.len();
            if sessions.len() < sessions_at_once as usize {
                break;
            }
        }
        loop {
            let inline = self.0.store.expire_inline(before, inline_at_once).await?;
            inline.iter().for_each(|key| self.0.inline_refs.forget(key));
            expired += inline.len();
            if inline.len() < inline_at_once as usize {
                break;
            }
        }
        loop {
            let bases = self.0.store.expire_listing_bases(before - BASE_MARGIN_MS, bases_at_once).await?;
            for digest in &bases {
                self.0.caches.listing_bases.invalidate(digest).await;
            }
            if bases.len() < bases_at_once as usize {
                break;
            }
        }
        self.expire_keys().await?;
        self.expire_audit().await?;
        self.expire_page_sessions().await?;
        self.expire_drafts().await?;
        self.expire_usage().await?;
        self.expire_rankings().await?;
        let unused_since = now_ms() - VECTOR_TTL_MS;
        while self.0.store.expire_vectors(unused_since, VECTORS_AT_ONCE).await? == u64::from(VECTORS_AT_ONCE)
        {
        }
        Ok(expired)
    }
}

/// How often a change was made again.
#[derive(Default)]
pub(super) struct ChangeTries(usize);

impl ChangeTries {
    /// Refuses one more where there were too many.
    pub(super) fn again(&mut self) -> Result<(), Error> {
        self.0 += 1;
        if self.0 < WRITE_TRIES {
            return Ok(());
        }
        Err(Error::new(Kind::Unavailable, "too many requests change this session at once; try again shortly"))
    }
}

fn begun_too_many(error: StoreError, most: u32) -> Error {
    match error {
        StoreError::TooMany => {
            let detail = format!("the user has {most} sessions already; delete some, or let idle ones end");
            Error::new(Kind::TooManySessions, detail)
        }
        other => other.into(),
    }
}

/// A row of the warm set.
fn warm_row(tool: &WarmTool) -> WarmRow {
    WarmRow {
        tool: tool.key.clone(),
        first_seq: tool.first_seq,
        last_used_ms: tool.last_used_ms,
        pinned: tool.pinned,
        pending: tool.pending,
    }
}

/// All of a session whose row is gone. It comes back as the row that it was.
fn whole_write(key: &SessionKey, session: &Session) -> Result<SessionWrite, Error> {
    Ok(SessionWrite {
        created_at_ms: session.created_at_ms(),
        expected: ExpectedSession::Absent { revision: session.revision() },
        settings: Some(serde_json::to_string(&session.settings).map_err(Error::internal)?),
        upsert: session.warm.tools().iter().map(warm_row).collect(),
        ..SessionWrite::new(key.clone(), session.last_seen())
    })
}

/// The rows of an update.
fn session_write(key: &SessionKey, update: &Update, warm: &WarmSet, now: i64) -> Result<SessionWrite, Error> {
    let change = &update.warm;
    let row = |key: &ToolKey| warm.get(key).map(warm_row);
    let settings =
        update.settings.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)?;
    let mut rows: Vec<WarmRow> = Vec::new();
    for tool in change.added.iter().chain(&change.updated).chain(&change.touched).filter_map(row) {
        if !rows.iter().any(|known| known.tool == tool.tool) {
            rows.push(tool);
        }
    }
    Ok(SessionWrite {
        settings,
        clear: update.clear,
        // An updated tool may have moved: its row is written anew.
        remove: change.evicted.iter().chain(&change.removed).chain(&change.updated).cloned().collect(),
        upsert: rows,
        audit: update.audit.clone(),
        ..SessionWrite::new(key.clone(), now)
    })
}
