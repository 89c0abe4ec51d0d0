//! Sessions in memory and in the store: snapshots that never change, replaced under a lock per session.
//!
//! What an answer promises (warm sets, pins, settings) is written before the answer; ages and counters are written
//! every few seconds. The process is the only one that serves its database, so a snapshot in memory is the truth.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::future::Cache;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use utoipa::ToSchema;

use super::context::{Caller, Context, GrantFields};
use super::{Error, Toolrack, now_ms, uncancelled};
use crate::core::assemble::Sent;
use crate::core::grant::{Resolved, Selection};
use crate::core::id::{Id, SessionKey};
use crate::core::policy::Policy;
use crate::core::tool::ToolKey;
use crate::core::warm::{WarmChange, WarmLimits, WarmSet, WarmTool};
use crate::core::warning::Warning;
use crate::store::{
    InlineKey, InlineTouch, ProjectFilter, SessionQuery, SessionRow, SessionTouch, SessionWrite, WarmRow,
    WarmTouch,
};
use crate::telemetry;

/// Locks that sessions share by hash; more than the writes that are ever under way at once.
const STRIPES: usize = 1_024;

/// How long an inline catalog that nobody used stays known without asking the store.
const KNOWN_INLINE_MS: i64 = 10 * 60 * 1_000;

/// What a session keeps of its last assembly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AssembledState {
    pub selection: Selection,
    pub tools_ref: Option<String>,
    pub format: String,
    pub profile: String,
    pub window: u32,
    pub sent: Sent,
    pub base: ListingBase,
}

/// The tier and listing that a session started from, and what they were made for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ListingBase {
    pub tier: u8,
    /// Digest of the listing's text.
    pub listing: String,
    pub catalog: String,
    pub config: String,
    pub grant: String,
    pub format: String,
}

/// The stored form of what a session keeps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SessionSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assembled: Option<Arc<AssembledState>>,
}

/// Counters of a session, written now and then.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    assemblies: AtomicU64,
    searches: AtomicU64,
    describes: AtomicU64,
    calls: AtomicU64,
}

/// Counters of a session as they are stored and shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct LedgerDocument {
    pub assemblies: u64,
    pub searches: u64,
    pub describes: u64,
    pub calls: u64,
}

/// What a request does, for the ledger.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deed {
    Assembly,
    Search,
    Describe,
    Call,
    /// A change by hand, which the ledger does not count.
    Change,
}

impl Ledger {
    fn from_document(document: LedgerDocument) -> Self {
        Self {
            assemblies: document.assemblies.into(),
            searches: document.searches.into(),
            describes: document.describes.into(),
            calls: document.calls.into(),
        }
    }

    fn document(&self) -> LedgerDocument {
        LedgerDocument {
            assemblies: self.assemblies.load(Ordering::Relaxed),
            searches: self.searches.load(Ordering::Relaxed),
            describes: self.describes.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
        }
    }

    fn count(&self, deed: Deed) {
        let counter = match deed {
            Deed::Assembly => &self.assemblies,
            Deed::Search => &self.searches,
            Deed::Describe => &self.describes,
            Deed::Call => &self.calls,
            Deed::Change => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A snapshot of a session. Only ages and counters move inside one.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) settings: SessionSettings,
    pub(super) warm: WarmSet,
    created_at_ms: i64,
    last_seen_ms: AtomicI64,
    ledger: Arc<Ledger>,
    /// Whether it waits to be flushed already.
    dirty: AtomicBool,
}

impl Session {
    fn new(now: i64) -> Self {
        Self {
            settings: SessionSettings::default(),
            warm: WarmSet::default(),
            created_at_ms: now,
            last_seen_ms: now.into(),
            ledger: Arc::default(),
            dirty: false.into(),
        }
    }

    fn from_row(row: SessionRow) -> Self {
        let warm = row.warm.into_iter().map(|row| WarmTool {
            key: row.tool,
            first_seq: row.first_seq,
            last_used_ms: row.last_used_ms,
            pinned: row.pinned,
            pending: row.pending,
        });
        Self {
            // A row of another version costs the session its settings, not its warm set.
            settings: serde_json::from_str(&row.settings).unwrap_or_default(),
            warm: WarmSet::from_stored(warm.collect()),
            created_at_ms: row.created_at_ms,
            last_seen_ms: row.last_seen_ms.into(),
            ledger: Arc::new(Ledger::from_document(serde_json::from_str(&row.ledger).unwrap_or_default())),
            dirty: false.into(),
        }
    }

    fn with(&self, settings: SessionSettings, warm: WarmSet, now: i64) -> Self {
        Self {
            settings,
            warm,
            created_at_ms: self.created_at_ms,
            last_seen_ms: now.into(),
            ledger: Arc::clone(&self.ledger),
            dirty: false.into(),
        }
    }

    fn last_seen(&self) -> i64 {
        self.last_seen_ms.load(Ordering::Relaxed)
    }
}

/// What an update of a session did.
#[derive(Debug, Default)]
pub(super) struct Update {
    pub warm: WarmChange,
    /// New settings, where they are other than before.
    pub settings: Option<SessionSettings>,
    /// Everything is to start from nothing.
    pub clear: bool,
}

impl Update {
    pub(super) fn of(warm: WarmChange) -> Self {
        Self { warm, ..Self::default() }
    }

    fn is_durable(&self) -> bool {
        self.clear || self.settings.is_some() || self.warm.is_durable()
    }
}

/// All sessions of the process.
pub(super) struct Sessions {
    snapshots: Cache<SessionKey, Arc<Session>>,
    stripes: Stripes,
    /// Sessions whose ages or counters are not stored yet; asked before the store is.
    dirty: Mutex<HashMap<SessionKey, Arc<Session>>>,
    inline: Mutex<HashMap<InlineKey, KnownInline>>,
    ttl_ms: i64,
}

struct KnownInline {
    content_id: Arc<str>,
    last_used_ms: i64,
    flushed: bool,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// The data of a mutex, also after a panic elsewhere: every change under these locks is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks by key, so that what changes one thing waits for what changes the same thing. A lock may be shared by keys.
pub(super) struct Stripes {
    locks: Vec<Arc<AsyncMutex<()>>>,
    hasher: RandomState,
}

impl Default for Stripes {
    fn default() -> Self {
        Self { locks: (0..STRIPES).map(|_| Arc::default()).collect(), hasher: RandomState::new() }
    }
}

impl Stripes {
    pub(super) async fn guard(&self, key: &impl Hash) -> OwnedMutexGuard<()> {
        let at = self.hasher.hash_one(key) as usize % STRIPES;
        let lock = self.locks.get(at).map(Arc::clone).unwrap_or_default();
        lock.lock_owned().await
    }
}

impl Sessions {
    pub(super) fn new(capacity: u64, ttl: Duration) -> Self {
        Self {
            snapshots: Cache::builder().max_capacity(capacity).build(),
            stripes: Stripes::default(),
            dirty: Mutex::default(),
            inline: Mutex::default(),
            ttl_ms: i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX),
        }
    }

    pub(super) fn entry_count(&self) -> u64 {
        self.snapshots.entry_count()
    }

    async fn guard(&self, key: &SessionKey) -> OwnedMutexGuard<()> {
        self.stripes.guard(key).await
    }

    fn mark_dirty(&self, key: &SessionKey, session: &Arc<Session>) {
        if !session.dirty.swap(true, Ordering::Relaxed) {
            lock(&self.dirty).insert(key.clone(), Arc::clone(session));
        }
    }

    /// The content of a reference that is known here, unless it has expired.
    pub(super) fn known_inline(&self, key: &InlineKey, now: i64) -> Option<Arc<str>> {
        self.touch_inline(key, now)
            .then(|| lock(&self.inline).get(key).map(|known| Arc::clone(&known.content_id)))?
    }

    /// Renews the age of a known reference; whether there is one.
    pub(super) fn touch_inline(&self, key: &InlineKey, now: i64) -> bool {
        let mut inline = lock(&self.inline);
        match inline.get_mut(key) {
            Some(known) if now - known.last_used_ms <= self.ttl_ms => {
                known.last_used_ms = now;
                known.flushed = false;
                true
            }
            _ => false,
        }
    }

    pub(super) fn know_inline(&self, key: InlineKey, content_id: Arc<str>, now: i64) {
        lock(&self.inline).insert(key, KnownInline { content_id, last_used_ms: now, flushed: false });
    }

    fn take_touched_inline(&self, now: i64) -> Vec<InlineTouch> {
        let mut inline = lock(&self.inline);
        let mut touches = Vec::new();
        inline.retain(|key, known| {
            if !known.flushed {
                known.flushed = true;
                touches.push(InlineTouch { key: key.clone(), last_used_ms: known.last_used_ms });
            }
            now - known.last_used_ms < KNOWN_INLINE_MS.min(self.ttl_ms)
        });
        touches
    }
}

impl Toolrack {
    /// The present snapshot of a session; an unknown one is empty.
    pub(super) async fn session(&self, key: &SessionKey) -> Result<Arc<Session>, Error> {
        if let Some(session) = self.0.sessions.snapshots.get(key).await
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
        let known = match sessions.snapshots.get(key).await {
            Some(session) => Some(session),
            None => lock(&sessions.dirty).get(key).cloned(),
        };
        let session = match known {
            Some(session) => session,
            None => match self.0.store.session(key).await? {
                Some(row) => Arc::new(Session::from_row(row)),
                None => Arc::new(Session::new(now)),
            },
        };
        let session = if now - session.last_seen() > sessions.ttl_ms {
            lock(&sessions.dirty).remove(key);
            self.0.store.delete_session(key).await?;
            Arc::new(Session::new(now))
        } else {
            session
        };
        sessions.snapshots.insert(key.clone(), Arc::clone(&session)).await;
        Ok(session)
    }

    /// Changes a session. The change is a function of the snapshot; what is durable in it is written before this
    /// answers, also when the caller is gone by then.
    pub(super) async fn update_session<T: Send + 'static>(
        &self,
        key: &SessionKey,
        deed: Deed,
        change: impl FnOnce(&Session, &mut WarmSet, i64) -> Result<(Update, T), Error>,
    ) -> Result<T, Error> {
        let guard = self.0.sessions.guard(key).await;
        let session = self.load_session(key).await?;
        let now = now_ms();
        session.ledger.count(deed);
        let mut warm = session.warm.clone();
        let (update, answer) = change(&session, &mut warm, now)?;
        telemetry::warm_evictions(update.warm.evicted.len());
        if !update.is_durable() {
            if update.warm.touched.is_empty() {
                session.last_seen_ms.store(now, Ordering::Relaxed);
                self.0.sessions.mark_dirty(key, &session);
            } else {
                let next = Arc::new(session.with(session.settings.clone(), warm, now));
                self.0.sessions.snapshots.insert(key.clone(), Arc::clone(&next)).await;
                self.0.sessions.mark_dirty(key, &next);
            }
            return Ok(answer);
        }
        let created_at_ms = session.created_at_ms;
        let write = SessionWrite { created_at_ms, ..session_write(key, &update, &warm, now)? };
        let settings = update.settings.unwrap_or_else(|| session.settings.clone());
        let next = Arc::new(session.with(settings, warm, now));
        let (service, key) = (self.clone(), key.clone());
        uncancelled(async move {
            service.0.store.write_session(write).await?;
            service.0.sessions.snapshots.insert(key.clone(), Arc::clone(&next)).await;
            // Ages that were touched before, and the ledger, follow with the next flush.
            service.0.sessions.mark_dirty(&key, &next);
            drop(guard);
            Ok(())
        })
        .await?;
        Ok(answer)
    }

    /// Notes that a session was used where nothing else changes.
    pub(super) async fn note_deed(&self, context: &Context, deed: Deed) {
        if let Some((key, _)) = &context.session
            && let Some(session) = self.0.sessions.snapshots.get(key).await
        {
            session.ledger.count(deed);
            session.last_seen_ms.store(now_ms(), Ordering::Relaxed);
            self.0.sessions.mark_dirty(key, &session);
        }
    }

    /// Writes buffered ages and counters. What could not be written stays buffered.
    pub async fn flush(&self) -> Result<(), Error> {
        let dirty = std::mem::take(&mut *lock(&self.0.sessions.dirty));
        if !dirty.is_empty()
            && let Err(error) = self.0.store.touch_sessions(dirty.iter().map(session_touch).collect()).await
        {
            let mut waiting = lock(&self.0.sessions.dirty);
            for (key, session) in dirty {
                waiting.entry(key).or_insert(session);
            }
            return Err(error.into());
        }
        let inline = self.0.sessions.take_touched_inline(now_ms());
        if !inline.is_empty() {
            self.0.store.touch_inline(inline).await?;
        }
        Ok(())
    }

    /// Deletes what was idle for longer than the session lifetime.
    pub async fn expire(&self) -> Result<usize, Error> {
        const AT_ONCE: u32 = 500;
        let before = now_ms() - self.0.limits.session_ttl_ms();
        let mut expired = 0;
        loop {
            let sessions = self.0.store.expire_sessions(before, AT_ONCE).await?;
            let inline = self.0.store.expire_inline(before, AT_ONCE).await?;
            for key in &sessions {
                self.0.sessions.snapshots.invalidate(key).await;
            }
            expired += sessions.len() + inline.len();
            if sessions.len() + inline.len() < AT_ONCE as usize {
                return Ok(expired);
            }
        }
    }
}

/// The buffered part of a snapshot, which counts as flushed from now on.
fn session_touch((key, session): (&SessionKey, &Arc<Session>)) -> SessionTouch {
    session.dirty.store(false, Ordering::Relaxed);
    let warm = session.warm.tools().iter();
    SessionTouch {
        key: key.clone(),
        last_seen_ms: session.last_seen(),
        ledger: serde_json::to_string(&session.ledger.document()).ok(),
        warm: warm
            .map(|tool| WarmTouch { tool: tool.key.clone(), last_used_ms: tool.last_used_ms })
            .collect(),
    }
}

/// The rows of an update.
fn session_write(key: &SessionKey, update: &Update, warm: &WarmSet, now: i64) -> Result<SessionWrite, Error> {
    let change = &update.warm;
    let row = |key: &ToolKey| {
        warm.get(key).map(|tool| WarmRow {
            tool: tool.key.clone(),
            first_seq: tool.first_seq,
            last_used_ms: tool.last_used_ms,
            pinned: tool.pinned,
            pending: tool.pending,
        })
    };
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
        ..SessionWrite::new(key.clone(), now)
    })
}

/// The bounds of a session's warm set.
pub(super) fn warm_limits(policy: &Policy) -> WarmLimits {
    WarmLimits { max: policy.max_warm_tools as usize, policy: policy.warm_policy }
}

/// A tool of a session's warm set, as shown.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarmDocument {
    /// Stored name.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_name: Option<String>,
    pub group: String,
    pub pinned: bool,
    /// Found, and waiting for an epoch.
    pub pending: bool,
    pub last_used_ms: i64,
}

/// A session, as shown. An unknown one is empty.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionDocument {
    #[schema(value_type = String)]
    pub user: Id,
    #[schema(value_type = Option<String>)]
    pub project: Option<Id>,
    #[schema(value_type = String)]
    pub session: Id,
    pub created_at_ms: i64,
    pub last_seen_ms: i64,
    /// The session's own limits, from its last assembly; null before the first.
    #[schema(value_type = Option<Object>)]
    pub selection: Option<Selection>,
    pub format: Option<String>,
    pub context_window: Option<u32>,
    pub tools_ref: Option<String>,
    /// Found tools in the order of first warming. Tools that the session may not see are left out.
    pub warm: Vec<WarmDocument>,
    pub ledger: LedgerDocument,
    pub warnings: Vec<Warning>,
}

/// A session in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionSummaryDocument {
    #[schema(value_type = Option<String>)]
    pub project: Option<Id>,
    #[schema(value_type = String)]
    pub session: Id,
    pub created_at_ms: i64,
    pub last_seen_ms: i64,
    /// Tools in the warm set, pending and hidden ones included.
    pub warm: i64,
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionList {
    pub sessions: Vec<SessionSummaryDocument>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which sessions to list.
#[derive(Debug)]
pub struct SessionListQuery {
    pub user: Id,
    /// Only sessions of this project; without it those of all projects and of none.
    pub project: Option<Id>,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// What to do with named tools of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmAction {
    Pin,
    Unpin,
    Release,
}

impl Toolrack {
    /// A session with its warm set.
    pub async fn session_document(&self, caller: &Caller) -> Result<SessionDocument, Error> {
        let context = self.context(caller, &GrantFields::default()).await?;
        let Some((key, session)) = &context.session else { return Err(no_session()) };
        Ok(document(key, session, &context, Vec::new()))
    }

    /// Deletes a session; deleting nothing is fine.
    pub async fn delete_session(&self, key: &SessionKey) -> Result<(), Error> {
        let guard = self.0.sessions.guard(key).await;
        let (service, key) = (self.clone(), key.clone());
        uncancelled(async move {
            lock(&service.0.sessions.dirty).remove(&key);
            service.0.sessions.snapshots.invalidate(&key).await;
            service.0.store.delete_session(&key).await?;
            drop(guard);
            Ok(())
        })
        .await
    }

    /// Empties a session: warm set, pins and what it kept of its last assembly.
    pub async fn reset_session(&self, caller: &Caller) -> Result<SessionDocument, Error> {
        let key = caller.session_key().ok_or_else(no_session)?;
        self.update_session(&key, Deed::Change, |_, warm, _| {
            *warm = WarmSet::default();
            Ok((Update { settings: Some(SessionSettings::default()), clear: true, ..Update::default() }, ()))
        })
        .await?;
        self.session_document(caller).await
    }

    /// Pins, unpins or releases tools of a session.
    pub async fn change_warm(
        &self,
        caller: &Caller,
        action: WarmAction,
        names: &[String],
    ) -> Result<SessionDocument, Error> {
        let context = self.context(caller, &GrantFields::default()).await?;
        let Some((key, _)) = &context.session else { return Err(no_session()) };
        let mut warnings = Vec::new();
        let keys = resolve_names(&context, action, names, &mut warnings)?;
        let limits = warm_limits(context.policy());
        self.update_session(key, Deed::Change, |_, warm, now| {
            let change = match action {
                WarmAction::Pin => warm.pin(&keys, limits, now).map_err(|wanted| {
                    let detail =
                        format!("{wanted} pins are more than max_warm_tools ({}) allows", limits.max);
                    Error::invalid("/names", "too_many_pins", detail)
                })?,
                WarmAction::Unpin => warm.unpin(&keys),
                WarmAction::Release => warm.release(&keys),
            };
            Ok((Update::of(change), ()))
        })
        .await?;
        let session = self.session(key).await?;
        Ok(document(key, &session, &context, warnings))
    }

    /// A page of a user's sessions.
    pub async fn list_sessions(&self, query: SessionListQuery) -> Result<SessionList, Error> {
        let after = query.cursor.as_deref().map(read_cursor).transpose()?;
        let project = query.project.map_or(ProjectFilter::Any, |project| ProjectFilter::Only(Some(project)));
        // One more than asked for tells whether there is a next page.
        let rows = SessionQuery { user: query.user, project, after, limit: query.limit + 1 };
        let mut sessions = self.0.store.list_sessions(rows).await?;
        let more = sessions.len() > query.limit as usize;
        sessions.truncate(query.limit as usize);
        let next_cursor =
            sessions.last().filter(|_| more).map(|last| cursor(last.project.as_ref(), &last.session));
        let shown = sessions.into_iter().map(|row| SessionSummaryDocument {
            project: row.project,
            session: row.session,
            created_at_ms: row.created_at_ms,
            last_seen_ms: row.last_seen_ms,
            warm: row.warm,
        });
        Ok(SessionList { sessions: shown.collect(), next_cursor })
    }
}

fn no_session() -> Error {
    Error::invalid("/session", "missing_key", "this needs a session")
}

fn resolve_names(
    context: &Context,
    action: WarmAction,
    names: &[String],
    warnings: &mut Vec<Warning>,
) -> Result<Vec<ToolKey>, Error> {
    let mut keys: Vec<ToolKey> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let pointer = format!("/names/{at}");
        let ids: &[u32] = match context.view().resolve_tool(name) {
            Resolved::Tool(id) => &[id],
            // Selections of tools take all that match.
            Resolved::Ambiguous(ids) => ids,
            Resolved::Bridge(_) | Resolved::Unknown if action == WarmAction::Pin => {
                return Err(Error::invalid(
                    pointer,
                    "unknown_tool",
                    format!("there is no tool `{name}` to pin"),
                ));
            }
            Resolved::Bridge(_) | Resolved::Unknown => {
                warnings.push(Warning::new("unknown_tool", format!("there is no tool `{name}`")).at(pointer));
                &[]
            }
        };
        for tool in ids.iter().filter_map(|id| context.view().get(*id)) {
            if action == WarmAction::Pin && tool.core {
                let detail = "a core tool is always in the array; it takes no pin";
                warnings.push(Warning::new("core_tool", detail).for_tool(tool.stored_name()));
            } else if !keys.contains(&tool.tool.tool.key()) {
                keys.push(tool.tool.tool.key());
            }
        }
    }
    Ok(keys)
}

fn document(
    key: &SessionKey,
    session: &Session,
    context: &Context,
    warnings: Vec<Warning>,
) -> SessionDocument {
    let view = context.view();
    let shown = |warm: &WarmTool| {
        let tool = view.get(view.by_key(&warm.key)?)?;
        Some(WarmDocument {
            name: tool.stored_name().to_owned(),
            wire_name: tool.mapped_name().map(str::to_owned),
            group: view.group(tool).to_owned(),
            pinned: warm.pinned,
            pending: warm.pending,
            last_used_ms: warm.last_used_ms,
        })
    };
    let assembled = session.settings.assembled.as_deref();
    SessionDocument {
        user: key.user.clone(),
        project: key.project.clone(),
        session: key.session.clone(),
        created_at_ms: session.created_at_ms,
        last_seen_ms: session.last_seen(),
        selection: assembled.map(|assembled| assembled.selection.clone()),
        format: assembled.map(|assembled| assembled.format.clone()),
        context_window: assembled.map(|assembled| assembled.window),
        tools_ref: assembled.and_then(|assembled| assembled.tools_ref.clone()),
        warm: session.warm.tools().iter().filter_map(shown).collect(),
        ledger: session.ledger.document(),
        warnings,
    }
}

/// A cursor is the place of the last row; `/` cannot occur in identifiers.
fn cursor(project: Option<&Id>, session: &Id) -> String {
    hex::encode(format!("{}/{session}", project.map_or("", Id::as_str)))
}

fn read_cursor(cursor: &str) -> Result<(Option<Id>, Id), Error> {
    let read = || {
        let text = String::from_utf8(hex::decode(cursor).ok()?).ok()?;
        let (project, session) = text.split_once('/')?;
        let project = if project.is_empty() { None } else { Some(Id::parse(project).ok()?) };
        Some((project, Id::parse(session).ok()?))
    };
    read().ok_or_else(|| Error::invalid("/cursor", "invalid_value", "this is not a cursor of this list"))
}
