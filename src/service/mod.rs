//! The use cases: what the service does for a caller, without knowing HTTP.
//!
//! Owns caches, sessions in memory and the order of reads and writes; decisions are made in `core`, rows are kept by a
//! [`Store`], external ranking is asked of a [`Reranker`], tools of MCP servers of a [`ToolSource`]. Every write is made in a task of its own, so that a client
//! that hangs up cancels nothing.

mod assemble;
mod audit;
mod away;
mod bridge;
mod caches;
mod calls;
mod catalog_change;
mod catalogs;
mod clock;
mod context;
mod describe;
mod error;
mod following;
mod heads;
mod inline_catalogs;
mod inline_refs;
mod keys;
mod ledger;
mod lint;
mod listing_bases;
mod management;
mod matcher_test;
mod mcp_servers;
mod page_sessions;
mod preload;
mod provenance;
mod ranking;
mod request;
mod reviews;
mod scopes;
mod search;
mod search_forms;
mod secrets;
mod session;
mod session_documents;
mod sessions;
mod setup;
mod stripes;
mod timing;
mod upkeep;
mod usage;
mod vectors;
mod warming;

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::Instrument as _;

use self::clock::now_ms;
use crate::core::catalog::Catalog;
use crate::core::rate::KeyRate;
use crate::mcp::ToolSource;
use crate::rerank::{AddressPolicy, Called, Observer, Reranker, Resilient};
use crate::store::{MasterKey, ScopeRow, Store};
use crate::telemetry::{self, EndpointCall};

pub use assemble::{AssembleRequest, Assembled, InlineTools};
pub use audit::{AUDIT_ACTIONS, Actor, AuditDocument, AuditLimits, AuditListQuery, AuditPage};
pub use bridge::{BridgeAction, BridgeAnswer, BridgeRequest, BridgeResult, ReplyTo};
pub use caches::{CacheLimits, CacheUse};
pub use calls::{CallAnswer, CallError, CallRequest, CallResult, Dispatch};
pub use catalogs::{CatalogDiff, CatalogWritten, NameList, ToolDocument};
pub use context::{Caller, GrantFields, MAX_SELECTORS};
pub use describe::{DescribeAnswer, DescribeRequest, NotFound};
pub use error::{Error, Kind};
pub use keys::{
    DEFAULT_OVERLAP_SECONDS, KeyCreated, KeyDocument, KeyList, KeyListQuery, KeyPatch, KeyRateDocument,
    KeyRefusal, KeyStatus, MAX_KEY_SECONDS, MAX_OVERLAP_SECONDS, NewKey,
};
pub use ledger::LedgerDocument;
pub use lint::{LintAnswer, LintCounts, LintFinding, LintOutcome, LintedTool};
pub use matcher_test::{
    KeywordSample, MatcherFault, MatcherLatency, MatcherTestAnswer, MatcherTestRequest, RankedSample,
};
pub use mcp_servers::{
    McpFaultDocument, McpJobDocument, McpServerDocument, McpServerInfo, McpServerList, McpServerSpec,
    McpServerWritten, McpStatusDocument, McpSyncAnswer, McpSynced, McpTextShown, McpToolsAnswer,
    McpToolsRequest,
};
pub use page_sessions::{PAGE_SESSION_SECONDS, PageSession};
pub use provenance::ToolProvenance;
pub use ranking::{FALLBACK_REASONS, FieldWeight, MatchExplanation, SearchMode, TermExplanation};
pub use request::{Revisions, Running, watched};
pub use reviews::{HeldTool, HeldTools, ReviewDone, ReviewedTool, Verdict};
pub use scopes::{ConfigDocument, ConfigWritten, EffectiveConfig, MatcherState};
pub use search::{Detail, GroupCount, QueryResult, SearchAnswer, SearchRequest, ToolMatch, ToolState};
pub use search_forms::FormedAnswer;
pub use session_documents::{
    MAX_SESSION_NAMES, SessionDocument, SessionList, SessionListQuery, SessionSummaryDocument, WarmAction,
    WarmDocument,
};
pub use setup::{
    AddedTools, Attention, BROWSED_DAYS, BrowseOrder, BrowsePage, BrowseQuery, BrowsedGroup, BrowsedTool,
    CATALOG_PAGE, ConfigVersionDocument, ConfigVersionList, DraftBase, EndingKey, HotOverview, ImportAnswer,
    ImportRequest, ImportSource, ImportedGroup, ImportedServer, Latency, MissedOverview, MissedQueryDocument,
    NO_TOOL_LEFT, NOTHING_IMPORTED, NeverFound, Overview, PlanFields, PreviewAnswer, QuarantinedEntry,
    ReadImport, RemarkCount, ReviewAnswer, ReviewQuery, ReviewStanding, SetupApplied, SetupApply, SetupDraft,
    SetupInput, SetupPlan, ToolSheet, ToolUse, ToolsOverview, Trial, TrialRequest, Turn, TurnShares,
    UnfoundTool, UsageDay, UsageNumbers, WaitingDraft, as_array, setup_skill,
};
pub use timing::{Part, Spent};
pub use usage::{HotTool, USAGE_DAYS};

/// Bounds that the settings give; published at `/v1/limits`.
#[derive(Debug, Clone)]
pub struct Limits {
    pub tools_per_catalog: usize,
    pub tool_bytes: usize,
    pub depth: usize,
    /// Characters of one query.
    pub query_chars: usize,
    pub queries: usize,
    pub names: usize,
    pub calls: usize,
    pub session_ttl: Duration,
    /// After this time a request is answered with an error, so an endpoint gets less.
    pub request_timeout: Duration,
    /// Of one user.
    pub sessions: u32,
    pub keys: KeyLimits,
    pub audit: AuditLimits,
    /// Of reading one MCP server.
    pub mcp_timeout: Duration,
}

/// What each stored key may do.
#[derive(Debug, Clone)]
pub struct KeyLimits {
    /// How often the holders of keys may ask that say nothing else.
    pub rate: KeyRate,
    /// Users and projects that one setup key can begin to write for.
    pub scopes: u32,
}

impl Default for KeyLimits {
    fn default() -> Self {
        Self { rate: KeyRate::default(), scopes: u32::MAX }
    }
}

impl Limits {
    fn entry(&self) -> crate::core::format::ingest::EntryLimits {
        crate::core::format::ingest::EntryLimits { bytes: self.tool_bytes, depth: self.depth }
    }

    fn session_ttl_ms(&self) -> i64 {
        i64::try_from(self.session_ttl.as_millis()).unwrap_or(i64::MAX)
    }
}

/// What a service is made of.
#[derive(Debug)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub reranker: Arc<dyn Reranker>,
    pub tool_source: Arc<dyn ToolSource>,
    /// Which endpoints may be stored and called.
    pub addresses: AddressPolicy,
    pub master_key: MasterKey,
    pub limits: Limits,
    pub caches: CacheLimits,
}

/// The service. Cheap to clone.
#[derive(Clone)]
pub struct Toolrack(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    reranker: Resilient,
    tool_source: Arc<dyn ToolSource>,
    addresses: AddressPolicy,
    master_key: MasterKey,
    limits: Limits,
    caches: caches::Caches,
    sessions: sessions::Sessions,
    /// One writer per scope, to its end also where its request is gone: conflicts come from other processes only.
    scope_writes: stripes::Stripes,
    inline_refs: inline_refs::InlineRefs,
    keys: keys::KeyRing,
    mcp: mcp_servers::McpState,
    usage: usage::Usage,
    /// Drafts whose pages are made ready.
    ahead: setup::Ahead,
    away: away::Away,
    following: following::Following,
    /// What this process takes work under that one of several does for all.
    holder: String,
    /// What stands for a project that is not named.
    nothing: Nothing,
}

/// An unwritten scope.
struct Nothing {
    head: Arc<heads::Head>,
    catalog: Arc<Catalog>,
}

impl fmt::Debug for Toolrack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Toolrack")
    }
}

impl Toolrack {
    pub fn new(parts: Parts) -> Self {
        let shared = ranking::StoredRankings::of(&parts.store, &parts.master_key);
        Self(Arc::new(Inner {
            caches: caches::Caches::new(&parts.caches),
            sessions: sessions::Sessions::new(parts.caches.sessions, parts.limits.session_ttl),
            scope_writes: stripes::Stripes::default(),
            inline_refs: inline_refs::InlineRefs::new(parts.limits.session_ttl_ms()),
            keys: keys::KeyRing::new(parts.limits.keys.rate),
            usage: usage::Usage::default(),
            ahead: setup::Ahead::default(),
            away: away::Away::default(),
            following: following::Following::default(),
            holder: hex::encode(rand::random::<[u8; 8]>()),
            nothing: Nothing {
                head: Arc::new(heads::Head::new(ScopeRow::default())),
                catalog: Arc::default(),
            },
            store: parts.store,
            tool_source: parts.tool_source,
            mcp: mcp_servers::McpState::default(),
            reranker: Resilient::new(parts.reranker, parts.caches.answers_bytes, shared, OBSERVER),
            addresses: parts.addresses,
            master_key: parts.master_key,
            limits: parts.limits,
        }))
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Rerank endpoints that are left alone at present.
    pub fn failing_endpoints(&self) -> usize {
        self.0.reranker.failing()
    }

    /// Whether the last writes found room.
    pub fn has_room(&self) -> bool {
        self.0.store.has_room()
    }

    /// Answers once the database answers.
    pub async fn ready(&self) -> Result<(), Error> {
        self.noted(self.0.store.health().await.map_err(Error::from))
    }
}

/// Counts what happens to endpoints.
const OBSERVER: Observer = Observer {
    changed: |to| telemetry::breaker(to.name()),
    called: |Called { kind, outcome, took }| telemetry::endpoint_call(EndpointCall { kind, outcome, took }),
};

/// How often a write without a precondition starts again when another one came first: each time that one went on.
const WRITE_TRIES: usize = 32;

/// When this process first asked for the time.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds since this process first asked; unlike [`now_ms`] it never goes back.
fn uptime_ms() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Time since the start in nanoseconds: the clock of allowances.
pub fn uptime_nanos() -> u64 {
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The data of a mutex, also after a panic elsewhere: whatever is kept behind one is right after each single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a write to its end even when the caller goes away.
async fn uncancelled<T: Send + 'static>(
    write: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    timing::timed(Part::Database, in_background(write)).await
}

/// Runs a future to its end even when the caller goes away.
async fn in_background<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    match tokio::spawn(work.in_current_span()).await {
        Ok(result) => result,
        Err(error) => Err(Error::internal(error)),
    }
}

/// Runs heavy, pure work where it does not hold up other requests.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}
