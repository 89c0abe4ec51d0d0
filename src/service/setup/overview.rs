//! The overview of a scope: what its requests came to, day by day and in all, and what its tools are found and called for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use utoipa::ToSchema;

use crate::core::grant::{View, ViewTool};
use crate::core::id::{Id, Scope};
use crate::core::policy::HotTools;
use crate::core::text::one_line;
use crate::core::tool::ToolKey;
use crate::core::usage::{ByLabel, Counts, Histogram, ToolCounts, date_of, day_of};
use crate::service::context::Context;
use crate::service::usage::{HotTool, MISSED_QUERIES, USAGE_DAYS, scope_of};
use crate::service::{Error, Toolrack, blocking, now_ms};
use crate::store::{MissedQuery, ToolUsageRow, UsageRow};
use crate::telemetry::warn_of;

/// Tools that a list of the most found or called names.
const MOST_USED: usize = 20;

/// Tools that were never found which are named.
const MOST_UNFOUND: usize = 50;

/// Tools with counts that are looked at: a catalog of the largest size, and as many that are gone.
const MOST_TOOLS: u32 = 40_000;

/// What a scope's requests came to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Overview {
    /// The user that this is about; absent where it is about a project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub user: Option<Id>,
    /// The project that this is about: of all requests that name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub project: Option<Id>,
    /// How many days are told, today included; days are UTC.
    pub days: u32,
    pub totals: UsageNumbers,
    /// One entry per day, the oldest first, also for days without requests.
    pub series: Vec<UsageDay>,
    pub tools: ToolsOverview,
    pub hot_tools: HotOverview,
    pub missed_queries: MissedOverview,
}

/// One day.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct UsageDay {
    /// `YYYY-MM-DD`
    pub date: String,
    pub counts: UsageNumbers,
}

/// What requests came to. Tokens are o200k counts.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct UsageNumbers {
    /// First assemblies of sessions.
    pub sessions: u64,
    pub assemblies: u64,
    /// What all tools would have cost, summed over assemblies.
    pub tokens_all: u64,
    /// Arrays and separate listings.
    pub tokens_sent: u64,
    /// The part of `tokens_sent` that separate listings took.
    pub tokens_listing: u64,
    /// Answers that models read: of searches, descriptions and the bridge.
    pub tokens_answers: u64,
    /// `tokens_all` less `tokens_sent` and `tokens_answers`. Negative where more was spent than saved.
    pub saved: i64,
    pub searches: u64,
    /// `rerank`, `embedding` or `keyword`: searches by what ranked.
    pub searches_by_mode: BTreeMap<String, u64>,
    /// Searches that a configured endpoint did not rank, by reason.
    pub degraded: BTreeMap<String, u64>,
    /// Queries of searches, of which one may hold several.
    pub queries: u64,
    /// Queries without any match.
    pub missed: u64,
    /// Share of `missed` in `queries`, in per cent; absent without queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_percent: Option<f64>,
    pub describes: u64,
    /// Calls of tools: those that came back from `/v1/call` and `/v1/bridge` to be run, and those that assemblies of sessions
    /// told in `used` or `messages`, each once.
    pub calls: u64,
    /// Assemblies that broke a session's prompt cache, by reason; not those that were told to be an epoch.
    pub cache_breaks: BTreeMap<String, u64>,
    /// Tools that entered the warm set of a session.
    pub warmed: u64,
    /// Tools that had to leave one for others.
    pub evicted: u64,
    pub search_latency: Latency,
    pub assemble_latency: Latency,
}

/// How long something took inside the service, its endpoint included. Quantiles are exact to a fifth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Latency {
    pub count: u64,
    /// Absent where nothing was measured, as the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
}

/// What the scope's own tools are used for: a project's those of its catalog, a user's those of the user's catalog and live
/// tools, also where a request names a project.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ToolsOverview {
    /// Most found first, at most 20.
    pub most_found: Vec<ToolUse>,
    /// Most called first, at most 20.
    pub most_called: Vec<ToolUse>,
    pub never_found: NeverFound,
}

/// A tool with its counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolUse {
    /// Stored name, or the name of the upload where the catalog does not hold the tool (any more).
    pub name: String,
    pub group: String,
    /// Queries that it was a match of.
    pub finds: u64,
    pub calls: u64,
    /// Whether the scope's catalog holds it, and its config grants it.
    pub granted: bool,
}

/// Deferred tools of the present catalog that were neither found nor called.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NeverFound {
    pub count: usize,
    /// Deferred tools in all.
    pub of: usize,
    /// Those with the most tokens, at most 50.
    pub tools: Vec<UnfoundTool>,
}

/// A tool that was never found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnfoundTool {
    /// Stored name.
    pub name: String,
    pub group: String,
    /// Of its entry in an array.
    pub tokens: usize,
}

/// The tools that are called so often that they may as well be core.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct HotOverview {
    /// As in the scope's config.
    pub enabled: bool,
    /// Whether they join the core of sessions that begin.
    pub auto: bool,
    /// Calls of so many days count.
    pub window_days: u32,
    /// Most called first; none while `enabled` is false.
    pub tools: Vec<HotTool>,
}

/// Queries that found nothing.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MissedOverview {
    /// Whether the scope's own config keeps their texts.
    pub kept: bool,
    /// Most frequent first, at most 200.
    pub queries: Vec<MissedQueryDocument>,
}

/// A query that found nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MissedQueryDocument {
    /// On one line, at most 200 characters.
    pub query: String,
    pub count: i64,
    /// Milliseconds since the Unix epoch.
    pub last_at_ms: i64,
}

impl Toolrack {
    /// The projects that a user's sessions name, by name: what their requests come to is counted there.
    pub async fn projects_of(&self, user: &Id) -> Result<Vec<Id>, Error> {
        let mut projects: Vec<Id> =
            self.0.store.session_projects(user).await?.into_iter().flatten().collect();
        projects.sort();
        Ok(projects)
    }

    /// What a scope's requests came to in the last days, today included: of the project if one is named, else of the user.
    pub async fn overview(
        &self,
        user: Option<Id>,
        project: Option<Id>,
        days: u32,
    ) -> Result<Overview, Error> {
        let scope = match (&user, &project) {
            (_, Some(project)) => Scope::Project(project.clone()),
            (Some(user), None) => scope_of(user, None),
            (None, None) => {
                return Err(Error::invalid("/user", "missing_key", "name a user or a project"));
            }
        };
        // What was counted up to now belongs to the answer; where it cannot be stored, the answer goes without.
        if let Err(error) = self.flush_usage().await {
            warn_of!(error, "could not flush usage for an overview");
        }
        let days = days.clamp(1, USAGE_DAYS);
        let today = day_of(now_ms());
        let first = today - i64::from(days) + 1;
        let store = &self.0.store;
        let rows = store.usage(&scope, first).await?;
        let used = store.tool_usage(&scope, first, MOST_TOOLS).await?;
        let missed = store.missed_queries(&scope, MISSED_QUERIES).await?;
        let context = self.scope_context(&scope).await?;
        let hot = context.policy().hot_tools;
        let hot_tools = if hot.enabled { self.hot_of(&scope, &context).await? } else { Vec::new() };
        let kept = match &scope {
            Scope::User(_) => context.heads.user.keeps_missed_queries(),
            Scope::Project(_) => context.heads.project.keeps_missed_queries(),
        };
        let tools = blocking(move || tools(&context, used)).await?;
        let (totals, series) = numbers(rows, first, today);
        let (user, project) = match scope {
            Scope::User(user) => (Some(user), None),
            Scope::Project(project) => (None, Some(project)),
        };
        let HotTools { enabled, auto, window_days, .. } = hot;
        Ok(Overview {
            user,
            project,
            days,
            totals,
            series,
            tools,
            hot_tools: HotOverview { enabled, auto, window_days, tools: hot_tools },
            missed_queries: MissedOverview { kept, queries: missed.into_iter().map(query).collect() },
        })
    }
}

fn query(missed: MissedQuery) -> MissedQueryDocument {
    let MissedQuery { query, count, last_at_ms } = missed;
    MissedQueryDocument { query, count, last_at_ms }
}

/// The counters of all days, and of each.
fn numbers(rows: Vec<UsageRow>, first: i64, last: i64) -> (UsageNumbers, Vec<UsageDay>) {
    let mut days: BTreeMap<i64, Counts> = (first..=last).map(|day| (day, Counts::default())).collect();
    let mut totals = Counts::default();
    for UsageRow { day, counter, value } in rows {
        // A clock that ran ahead may have counted for tomorrow.
        if let (Some(counts), Ok(value)) = (days.get_mut(&day), u64::try_from(value)) {
            counts.add(&counter, value);
            totals.add(&counter, value);
        }
    }
    let series = days.into_iter().map(|(day, counts)| UsageDay { date: date_of(day), counts: counts.into() });
    (totals.into(), series.collect())
}

impl From<Counts> for UsageNumbers {
    fn from(counts: Counts) -> Self {
        let owned = |labels: &ByLabel| -> BTreeMap<String, u64> {
            labels.iter().map(|(label, value)| (label.clone().into_owned(), *value)).collect()
        };
        let Counts { tokens_all, tokens_sent, tokens_answers, queries, missed, .. } = counts;
        let all = i64::try_from(tokens_all).unwrap_or(i64::MAX);
        Self {
            sessions: counts.sessions,
            assemblies: counts.assemblies,
            tokens_all,
            tokens_sent,
            tokens_listing: counts.tokens_listing,
            tokens_answers,
            saved: all.saturating_sub_unsigned(tokens_sent).saturating_sub_unsigned(tokens_answers),
            searches: counts.all_searches(),
            searches_by_mode: owned(&counts.searches),
            degraded: owned(&counts.degraded),
            queries,
            missed,
            missed_percent: (queries > 0).then(|| (missed as f64 / queries as f64 * 1_000.0).round() / 10.0),
            describes: counts.describes,
            calls: counts.calls,
            cache_breaks: owned(&counts.cache_breaks),
            warmed: counts.warmed,
            evicted: counts.evicted,
            search_latency: latency(&counts.search_times),
            assemble_latency: latency(&counts.assemble_times),
        }
    }
}

fn latency(times: &Histogram) -> Latency {
    Latency {
        count: times.count(),
        p50_ms: times.quantile_ms(0.5),
        p95_ms: times.quantile_ms(0.95),
        p99_ms: times.quantile_ms(0.99),
    }
}

/// What the tools of a scope are used for.
fn tools(context: &Context, used: Vec<ToolUsageRow>) -> ToolsOverview {
    let view = context.view();
    let deferred = || view.visible().map(|(_, tool)| tool).filter(|tool| !tool.core);
    let counts: HashMap<&ToolKey, ToolCounts> = used.iter().map(|row| (&row.tool, row.counts)).collect();
    let mut unfound: Vec<UnfoundTool> = deferred()
        .filter(|tool| !counts.contains_key(&tool.tool.tool.key()))
        .map(|tool| UnfoundTool {
            name: tool.stored_name().to_owned(),
            group: view.group(tool).to_owned(),
            tokens: tool.for_target(context.target).tokens,
        })
        .collect();
    unfound.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.name.cmp(&b.name)));
    let count = unfound.len();
    unfound.truncate(MOST_UNFOUND);
    ToolsOverview {
        most_found: most(view, &used, |counts| counts.finds),
        most_called: most(view, &used, |counts| counts.calls),
        never_found: NeverFound { count, of: deferred().count(), tools: unfound },
    }
}

/// The tools with the largest counts of a kind.
fn most(view: &View, used: &[ToolUsageRow], count: fn(&ToolCounts) -> u64) -> Vec<ToolUse> {
    let mut rows: Vec<&ToolUsageRow> = used.iter().filter(|row| count(&row.counts) > 0).collect();
    rows.sort_by_key(|row| (Reverse(count(&row.counts)), &row.tool));
    rows.truncate(MOST_USED);
    let document = |row: &ToolUsageRow| {
        let tool: Option<&ViewTool> = view.by_key(&row.tool).first().and_then(|id| view.get(*id));
        let ToolKey { group, name } = &row.tool;
        ToolUse {
            name: tool.map_or_else(|| one_line(name).into_owned(), |tool| tool.stored_name().to_owned()),
            group: tool.map_or_else(|| one_line(group).into_owned(), |tool| view.group(tool).to_owned()),
            finds: row.counts.finds,
            calls: row.counts.calls,
            granted: tool.is_some(),
        }
    };
    rows.into_iter().map(document).collect()
}
