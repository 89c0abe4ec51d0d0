//! A session as a snapshot: what it found, what it was sent last, its counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::ledger::{AssemblyCost, Ledger};
use super::uptime_ms;
use crate::core::cache::Sent;
use crate::core::digest::Digest;
use crate::core::format::Format;
use crate::core::format::native::Exposure;
use crate::core::grant::Selection;
use crate::core::id::SessionKey;
use crate::core::mend::Dialect;
use crate::core::plan::Plan;
use crate::core::policy::{Policy, WarmPolicy};
use crate::core::profile::Profile;
use crate::core::target::Target;
use crate::core::tool::ToolKey;
use crate::core::warm::{WarmChange, WarmLimits, WarmSet, WarmTool};
use crate::store::{AuditWrite, ExpectedSession, SessionRow, SessionState, SessionTouch, WarmTouch};

/// What a session keeps of its last assembly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AssembledState {
    pub selection: Selection,
    pub tools_ref: Option<String>,
    pub format: String,
    pub profile: String,
    /// Whether schemas are of OpenAPI's subset.
    pub openapi: bool,
    pub strict: bool,
    pub exposure: String,
    pub window: u32,
    pub sent: Sent,
    /// The listing that it keeps, by the digest of its base; nothing where there is none to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listing_base: Option<Digest>,
    /// Tools that joined its core when it began or at its last epoch, by group and name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hot: Vec<ToolKey>,
}

impl AssembledState {
    /// For whom the arrays of the session are made. A name of another version falls back alone.
    pub(super) fn target(&self) -> Target {
        Target {
            format: Format::parse(&self.format).unwrap_or_default(),
            profile: Profile::parse(&self.profile).unwrap_or_default(),
            dialect: if self.openapi { Dialect::OpenApi } else { Dialect::JsonSchema },
            strict: self.strict,
            exposure: Exposure::parse(&self.exposure).unwrap_or_default(),
        }
    }
}

/// The stored form of what a session keeps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SessionSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assembled: Option<Arc<AssembledState>>,
}

/// A snapshot of a session. Only ages and counters move inside one.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) settings: SessionSettings,
    pub(super) warm: WarmSet,
    created_at_ms: i64,
    last_seen_ms: AtomicI64,
    /// When the store thinks that it was last seen.
    stored_seen_ms: AtomicI64,
    ledger: Arc<Ledger>,
    /// Whether the store has a row of it.
    is_stored: bool,
    /// That of the row that it shows.
    revision: i64,
    /// When it was last known to be what the store has, in milliseconds of the process.
    checked_ms: AtomicU64,
    /// Whether it waits to be flushed already.
    dirty: AtomicBool,
}

impl Session {
    pub(super) fn new(now: i64) -> Self {
        Self {
            settings: SessionSettings::default(),
            warm: WarmSet::default(),
            created_at_ms: now,
            last_seen_ms: now.into(),
            stored_seen_ms: now.into(),
            ledger: Arc::default(),
            is_stored: false,
            revision: 0,
            checked_ms: uptime_ms().into(),
            dirty: false.into(),
        }
    }

    /// A stored session; `known` is what this process knew of it.
    pub(super) fn from_row(row: SessionRow, known: Option<&Self>) -> Self {
        let mut ledger = Ledger::of(&row.ledger, row.counts);
        if let Some(known) = known.filter(|known| known.created_at_ms == row.created_at_ms) {
            ledger.go_on(&known.ledger);
        }
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
            stored_seen_ms: row.last_seen_ms.into(),
            ledger: Arc::new(ledger),
            is_stored: true,
            revision: row.revision,
            checked_ms: uptime_ms().into(),
            dirty: false.into(),
        }
    }

    /// The snapshot after a change that the store has as a revision; that may be the one of before, where only ages
    /// moved.
    pub(super) fn with(&self, settings: SessionSettings, warm: WarmSet, now: i64, revision: i64) -> Self {
        Self {
            settings,
            warm,
            created_at_ms: self.created_at_ms,
            last_seen_ms: now.into(),
            stored_seen_ms: if revision == self.revision { self.stored_seen() } else { now }.into(),
            ledger: Arc::clone(&self.ledger),
            is_stored: true,
            revision,
            checked_ms: uptime_ms().into(),
            dirty: false.into(),
        }
    }

    pub(super) fn revision(&self) -> i64 {
        self.revision
    }

    /// What the store must have for a change of this snapshot to be one of the session.
    pub(super) fn expected(&self) -> ExpectedSession {
        let Self { created_at_ms, revision, .. } = *self;
        if self.is_stored {
            ExpectedSession::Row { created_at_ms, revision }
        } else {
            ExpectedSession::Absent { revision: 1 }
        }
    }

    /// Whether the row is still what the snapshot shows. If so, it was seen when the row says, too.
    pub(super) fn is_row(&self, state: &SessionState) -> bool {
        self.last_seen_ms.fetch_max(state.last_seen_ms, Ordering::Relaxed);
        self.stored_seen_ms.fetch_max(state.last_seen_ms, Ordering::Relaxed);
        let is_row =
            self.is_stored && self.created_at_ms == state.created_at_ms && self.revision == state.revision;
        if is_row {
            self.checked_ms.store(uptime_ms(), Ordering::Relaxed);
        }
        is_row
    }

    /// How long ago it was last known to be what the store has, in milliseconds.
    pub(super) fn unchecked_ms(&self) -> u64 {
        uptime_ms().saturating_sub(self.checked_ms.load(Ordering::Relaxed))
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Relaxed)
    }

    pub(super) fn is_stored(&self) -> bool {
        self.is_stored
    }

    pub(super) fn created_at_ms(&self) -> i64 {
        self.created_at_ms
    }

    pub(super) fn last_seen(&self) -> i64 {
        self.last_seen_ms.load(Ordering::Relaxed)
    }

    /// When it was last seen as far as other processes know.
    pub(super) fn stored_seen(&self) -> i64 {
        self.stored_seen_ms.load(Ordering::Relaxed)
    }

    pub(super) fn seen(&self, now: i64) {
        self.last_seen_ms.store(now, Ordering::Relaxed);
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Marks the snapshot as waiting to be flushed; whether it was not yet.
    pub(super) fn mark_dirty(&self) -> bool {
        !self.dirty.swap(true, Ordering::Relaxed)
    }

    /// The buffered part of the snapshot, which counts as flushed from now on.
    pub(super) fn touch(&self, key: &SessionKey) -> SessionTouch {
        self.dirty.store(false, Ordering::Relaxed);
        let (warm, last_seen_ms) = (self.warm.tools().iter(), self.last_seen());
        self.stored_seen_ms.store(last_seen_ms, Ordering::Relaxed);
        SessionTouch {
            key: key.clone(),
            created_at_ms: self.created_at_ms,
            last_seen_ms,
            counts: self.ledger.take_unstored(),
            warm: warm
                .map(|tool| WarmTouch { tool: tool.key.clone(), last_used_ms: tool.last_used_ms })
                .collect(),
        }
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
    /// What an assembly adds to the ledger.
    pub cost: Option<AssemblyCost>,
    /// Where an administrator did it.
    pub audit: Option<AuditWrite>,
}

impl Update {
    pub(super) fn of(warm: WarmChange) -> Self {
        Self { warm, ..Self::default() }
    }

    pub(super) fn is_durable(&self) -> bool {
        self.clear || self.settings.is_some() || self.warm.is_durable()
    }
}

/// The bounds of a session's warm set: those of its config, and no more tools than the provider takes beside core and bridge.
/// What the provider loads by itself enters the array at an epoch, when the conversation that loaded it may be gone.
pub(super) fn warm_limits(policy: &Policy, plan: &Plan) -> WarmLimits {
    let room = plan.room().unwrap_or(Some(0));
    let max = (policy.max_warm_tools as usize).min(room.unwrap_or(usize::MAX));
    let policy = match policy.warm_policy {
        WarmPolicy::Immediate if plan.target.exposure == Exposure::Native => WarmPolicy::Epoch,
        policy => policy,
    };
    WarmLimits { max, policy }
}
