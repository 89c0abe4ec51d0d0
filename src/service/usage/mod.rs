//! Usage: what requests come to, counted by scope and day, for the overview and for hot tools.
//!
//! A request counts once: for the project if it names one, else for the user. A tool's finds and calls count where its
//! definition is: for the project whose catalog has it, else for the user, also where a request names a project. So nobody who
//! looks at a project reads names of tools that are a user's own. Queries that found nothing are kept by the scope whose config
//! says so, and by nobody else. Counts are flushed with the ages of sessions; a kill loses those since the last flush.

mod buffer;
mod flush;
mod hot;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::Mutex;

use self::buffer::{Buffer, DayUsage, Missed};
use self::flush::Written;
use self::hot::KnownCalls;
use super::context::{Caller, Context};
use super::ledger::AssemblyCost;
use super::ranking::Ranking;
use super::search::SearchAnswer;
use super::{Toolrack, now_ms};
use crate::core::cache::CacheReason;
use crate::core::grant::{Catalogs, ViewTool};
use crate::core::id::{Id, Scope};
use crate::core::text::{clip, one_line};
use crate::core::usage::{Counts, ToolCounts, day_of};

pub use hot::HotTool;

/// Days that are kept, today included.
pub const USAGE_DAYS: u32 = 90;

/// Longest kept query, in characters: enough to know it again.
const MISSED_CHARS: usize = 200;

/// Queries that a scope keeps.
pub(super) const MISSED_QUERIES: u32 = 200;

/// Scopes whose calls are remembered for sessions that begin, and for how long where another process counts too.
const KNOWN_SCOPES: u64 = 10_000;
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// The counts of the process that the store does not have yet, and what is remembered of those that it has.
pub(super) struct Usage {
    buffer: Buffer,
    calls: Cache<Scope, Arc<KnownCalls>>,
    /// Held by the flush that is under way.
    flushing: Arc<Mutex<Written>>,
}

impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Usage")
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            buffer: Buffer::default(),
            calls: Cache::builder().max_capacity(KNOWN_SCOPES).time_to_live(KNOWN_FOR).build(),
            flushing: Arc::default(),
        }
    }
}

impl Usage {
    fn record(&self, scope: &Scope, record: impl FnOnce(&mut DayUsage)) {
        self.buffer.record(scope, day_of(now_ms()), record);
    }

    fn count(&self, scope: &Scope, count: impl FnOnce(&mut Counts)) {
        self.record(scope, |usage| count(&mut usage.counts));
    }

    /// Forgets the queries of a scope whose config does not keep them any more.
    pub(super) fn forget_missed(&self, scope: &Scope) {
        self.buffer.forget_missed(scope);
    }

    /// Waits until there is so much in memory that it should be flushed.
    pub(super) async fn is_large(&self) {
        self.buffer.is_large().await;
    }

    /// What an assembly came to.
    pub(super) fn assembled(&self, caller: &Caller, cost: AssemblyCost, cache: CacheReason, took: Duration) {
        self.count(&scope_of(&caller.user, caller.project.as_ref()), |counts| {
            counts.sessions += u64::from(caller.session.is_some() && cache == CacheReason::First);
            cost.add_to(counts);
            if cost.breaks_cache() {
                Counts::one_more(&mut counts.cache_breaks, cache.as_str());
            }
            counts.assemble_times.observe(micros(took));
        });
    }

    /// What a search came to.
    pub(super) fn searched(
        &self,
        caller: &Caller,
        context: &Context,
        ranking: &Ranking,
        answer: &SearchAnswer,
        took: Duration,
    ) {
        let missed = ranking.found.iter().map(|found| found.matches.is_empty() && !found.asks_for_all);
        self.count(&scope_of(&caller.user, caller.project.as_ref()), |counts| {
            Counts::one_more(&mut counts.searches, answer.mode.as_str());
            if let Some(reason) = answer.reason {
                Counts::one_more(&mut counts.degraded, reason);
            }
            counts.queries += ranking.found.len() as u64;
            counts.missed += missed.clone().filter(|missed| *missed).count() as u64;
            counts.search_times.observe(micros(took));
        });
        let matches = ranking.found.iter().flat_map(|found| &found.matches);
        let found = ToolCounts { finds: 1, calls: 0 };
        self.count_tools(caller, context, matches.map(|scored| scored.id), found);
        if let Some(keeper) = missed_keeper(caller, context) {
            let texts = answer.results.iter().zip(missed).filter(|(_, missed)| *missed);
            let texts = texts.map(|(result, _)| clip(&one_line(&result.query), MISSED_CHARS).into_owned());
            for text in texts.filter(|text| !text.is_empty()) {
                let missed = Missed { count: 1, last_at_ms: now_ms() };
                self.record(&keeper, |usage| usage.missed(text, missed));
            }
        }
    }

    pub(super) fn described(&self, caller: &Caller) {
        self.count(&scope_of(&caller.user, caller.project.as_ref()), |counts| counts.describes += 1);
    }

    /// Tools that an agent was told to call, or told to have called.
    pub(super) fn called(&self, caller: &Caller, context: &Context, ids: &[u32]) {
        if ids.is_empty() {
            return;
        }
        let calls = ids.len() as u64;
        self.count(&scope_of(&caller.user, caller.project.as_ref()), |counts| counts.calls += calls);
        self.count_tools(caller, context, ids.iter().copied(), ToolCounts { finds: 0, calls: 1 });
    }

    /// Tokens that a model reads of an answer.
    pub(super) fn answered(&self, scope: &Scope, tokens: usize) {
        self.count(scope, |counts| counts.tokens_answers += tokens as u64);
    }

    /// Tools that entered a session's warm set, and that had to leave it.
    pub(super) fn warmed(&self, scope: &Scope, added: usize, evicted: usize) {
        if added + evicted > 0 {
            self.count(scope, |counts| {
                counts.warmed += added as u64;
                counts.evicted += evicted as u64;
            });
        }
    }

    fn count_tools(
        &self,
        caller: &Caller,
        context: &Context,
        ids: impl Iterator<Item = u32> + Clone,
        counts: ToolCounts,
    ) {
        let view = context.view();
        let tools = ids.filter_map(|id| view.get(id));
        let of_project = |tool: &&ViewTool| is_projects(tool, context);
        let project = caller.project.as_ref().filter(|_| tools.clone().any(|tool| of_project(&tool)));
        if let Some(project) = project {
            self.record(&Scope::Project(project.clone()), |usage| {
                let tools = tools.clone().filter(of_project);
                tools.for_each(|tool| usage.tool(tool.tool.tool.key(), counts));
            });
        }
        if tools.clone().any(|tool| !of_project(&tool)) {
            self.record(&Scope::User(caller.user.clone()), |usage| {
                let tools = tools.clone().filter(|tool| !of_project(tool));
                tools.for_each(|tool| usage.tool(tool.tool.tool.key(), counts));
            });
        }
    }
}

/// The part of stored catalogs that is the project's.
const PROJECT_PART: u8 = 1;

/// Whether a tool's definition is in the project's catalog. Live tools are the user's.
fn is_projects(tool: &ViewTool, context: &Context) -> bool {
    tool.part == PROJECT_PART && matches!(context.entry.catalogs, Catalogs::Stored { .. })
}

/// Where a request counts.
pub(super) fn scope_of(user: &Id, project: Option<&Id>) -> Scope {
    project.map_or_else(|| Scope::User(user.clone()), |project| Scope::Project(project.clone()))
}

/// Who keeps the texts of queries that find nothing: the scope whose layer of the config says so.
fn missed_keeper(caller: &Caller, context: &Context) -> Option<Scope> {
    if !context.policy().keep_missed_queries {
        return None;
    }
    let of_project = context.heads.project.layer.keep_missed_queries;
    let project = caller.project.as_ref().filter(|_| of_project == Some(true));
    Some(scope_of(&caller.user, project))
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

impl Toolrack {
    pub(super) fn usage(&self) -> &Usage {
        &self.0.usage
    }
}
