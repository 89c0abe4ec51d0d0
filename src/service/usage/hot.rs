//! Hot tools: the most called ones, proposed for `core`, or joined to the core of sessions that begin.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::is_projects;
use crate::core::grant::{Catalogs, View};
use crate::core::id::Scope;
use crate::core::tool::ToolKey;
use crate::core::usage::{HOT_TOKENS, HotCandidate, HotLimits, day_of, hot_tools};
use crate::service::assemble::PlanEntry;
use crate::service::context::{Caller, Context, GrantFields, Heads, Seen};
use crate::service::{Error, Toolrack, now_ms};
use crate::telemetry::warn_of;

/// Of a scope, the most called tools that are looked at; a grant may hold few of them.
const MOST_CALLED: u32 = 200;

/// What a scope's tools were called lately, as far as it is stored.
#[derive(Debug)]
pub(super) struct KnownCalls {
    since_day: i64,
    /// The most called first.
    calls: Vec<(ToolKey, u64)>,
}

/// A tool that is called so often that it may as well be core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HotTool {
    /// Stored name.
    pub name: String,
    pub group: String,
    /// Within `hot_tools.window_days`.
    pub calls: u64,
    /// Of its entry in an array.
    pub tokens: usize,
}

impl Toolrack {
    /// How often tools of a scope were called in the last days, today included: the most called first, at most 200. Counts
    /// of the last seconds may be missing.
    pub async fn tool_calls(&self, scope: &Scope, days: u32) -> Result<Vec<(ToolKey, u64)>, Error> {
        Ok(self.known_calls(scope, days).await?.calls.clone())
    }

    /// The tools of a scope that its own config would have as hot, whether that is enabled or not: the most called first.
    pub async fn hot_tools(&self, scope: &Scope) -> Result<Vec<HotTool>, Error> {
        self.hot_of(scope, &self.scope_context(scope).await?).await
    }

    pub(in crate::service) async fn hot_of(
        &self,
        scope: &Scope,
        context: &Context,
    ) -> Result<Vec<HotTool>, Error> {
        let hot = context.policy().hot_tools;
        let known = self.known_calls(scope, hot.window_days).await?;
        let candidates = candidates(context, &known.calls, matches!(scope, Scope::Project(_)));
        let limits = HotLimits { tools: hot.top_k as usize, tokens: HOT_TOKENS };
        let view = context.view();
        let document = |hot: HotCandidate| {
            let tool = view.by_key(&hot.key).first().and_then(|id| view.get(*id))?;
            let (name, group) = (tool.stored_name().to_owned(), view.group(tool).to_owned());
            Some(HotTool { name, group, calls: hot.calls, tokens: hot.tokens })
        };
        Ok(hot_tools(candidates, limits).into_iter().filter_map(document).collect())
    }

    /// What a scope is by itself: its own config and catalog, and everything of it.
    pub(in crate::service) async fn scope_context(&self, scope: &Scope) -> Result<Context, Error> {
        let head = self.head(scope).await?;
        let nothing = &self.0.nothing;
        let catalog = self.stored_catalog(scope, &head).await?;
        let (heads, catalogs) = match scope {
            Scope::User(_) => (
                Heads { user: head, project: Arc::clone(&nothing.head) },
                Catalogs::Stored { user: catalog, project: Arc::clone(&nothing.catalog) },
            ),
            Scope::Project(_) => (
                Heads { user: Arc::clone(&nothing.head), project: head },
                Catalogs::Stored { user: Arc::clone(&nothing.catalog), project: catalog },
            ),
        };
        let (_, merged) = self.merged(&heads).await?;
        let target = GrantFields::usual_target(&merged.policy);
        let window = merged.policy.context_window;
        let seen = Seen { catalogs, heads, merged, selections: Arc::default(), target, window };
        self.context_of(seen, Vec::new()).await
    }

    /// The tools that join the core of a session which begins now, by group and name; none where the config does not have
    /// it. Statistics are not worth an answer: where they cannot be read, none is hot.
    pub(in crate::service) async fn hot_core(
        &self,
        caller: &Caller,
        context: &Context,
        plan: &PlanEntry,
    ) -> Vec<ToolKey> {
        let policy = context.policy();
        if !policy.hot_tools.join() || plan.plan.sends_all() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let scopes = std::iter::once(Scope::User(caller.user.clone()));
        for scope in scopes.chain(caller.project.clone().map(Scope::Project)) {
            match self.known_calls(&scope, policy.hot_tools.window_days).await {
                Ok(known) => {
                    found.extend(candidates(context, &known.calls, matches!(scope, Scope::Project(_))));
                }
                Err(error) => {
                    warn_of!(error, "no tool is hot, because usage cannot be read");
                    return Vec::new();
                }
            }
        }
        // Where the provider takes so many tools and no more, found ones keep their room.
        let room = plan.plan.room().unwrap_or(Some(0));
        let room = room.map(|room| room.saturating_sub(policy.max_warm_tools as usize));
        let top_k = policy.hot_tools.top_k as usize;
        let limits = HotLimits { tools: room.unwrap_or(usize::MAX).min(top_k), tokens: HOT_TOKENS };
        let mut keys: Vec<ToolKey> = hot_tools(found, limits).into_iter().map(|hot| hot.key).collect();
        keys.sort_unstable();
        keys
    }

    /// The same request with other hot tools.
    pub(in crate::service) async fn with_hot(
        &self,
        context: Context,
        hot: Vec<ToolKey>,
    ) -> Result<Context, Error> {
        if context.hot == hot {
            return Ok(context);
        }
        let Context { merged, entry, selections, target, window, warnings, heads, session, .. } = context;
        let catalogs = entry.catalogs.clone();
        let seen = Seen { catalogs, heads, merged, selections, target, window };
        let made = self.context_of(seen, hot).await?;
        Ok(Context { warnings, session, ..made })
    }

    async fn known_calls(&self, scope: &Scope, days: u32) -> Result<Arc<KnownCalls>, Error> {
        let since_day = day_of(now_ms()) - i64::from(days) + 1;
        let cached = self.0.usage.calls.get(scope).await;
        if let Some(known) = cached.filter(|known| known.since_day == since_day) {
            return Ok(known);
        }
        let rows = self.0.store.tool_usage(scope, since_day, MOST_CALLED).await?;
        let called = rows.into_iter().filter(|row| row.counts.calls > 0);
        let calls = called.map(|row| (row.tool, row.counts.calls)).collect();
        let known = Arc::new(KnownCalls { since_day, calls });
        self.0.usage.calls.insert(scope.clone(), Arc::clone(&known)).await;
        Ok(known)
    }
}

/// The called tools of a scope that are deferred in this view.
fn candidates(context: &Context, calls: &[(ToolKey, u64)], of_project: bool) -> Vec<HotCandidate> {
    let view: &View = context.view();
    let mut found = Vec::new();
    for (key, calls) in calls {
        for tool in view.by_key(key).into_iter().filter_map(|id| view.get(id)) {
            let made = tool.for_target(context.target);
            let is_deferred = !tool.core && !tool.unavailable && !made.left_out;
            if is_deferred && is_projects(tool, context) == of_project {
                found.push(HotCandidate { key: key.clone(), calls: *calls, tokens: made.tokens });
            }
        }
    }
    found
}
