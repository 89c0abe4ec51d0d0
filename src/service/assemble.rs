//! `assemble`: the tools of the next model call.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::away::remembered_warning;
use super::context::{Caller, Context, GrantFields, MAX_SELECTORS, Seen, window};
use super::ledger::AssemblyCost;
use super::preload::Preload;
use super::sessions::{
    AssembledState, ChangeTries, Changed, Deed, Session, SessionSettings, Update, warm_limits,
};
use super::{Error, Toolrack};
use crate::core::assemble::{Answer, AnswerInput, Origin, answer, grant_digest};
use crate::core::cache::CacheReason;
use crate::core::digest::Digest;
use crate::core::grant::{Catalogs, Resolved, ViewTool};
use crate::core::id::SessionKey;
use crate::core::mend::Dialect;
use crate::core::messages::last_calls;
use crate::core::plan::Plan;
use crate::core::policy::Policy;
use crate::core::tool::ToolKey;
use crate::core::warm::WarmSet;
use crate::core::warning::Warning;
use crate::telemetry;

/// The raw JSON array of an agent's live tools.
pub type InlineTools = Arc<str>;

/// What an assembly asks for.
#[derive(Debug, Clone)]
pub struct AssembleRequest {
    pub caller: Caller,
    pub fields: GrantFields,
    pub tools: Option<InlineTools>,
    /// Tools that the agent ran natively since the last assembly.
    pub used: Vec<String>,
    /// What the user asks for, in place of the conversation.
    pub query: Option<String>,
    /// The conversation, for the calls in its last turn and the user's last text.
    pub messages: Option<Vec<Box<RawValue>>>,
    pub epoch: bool,
    pub if_fingerprint: Option<String>,
}

/// An assembled answer.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The JSON body.
    pub body: Bytes,
}

/// A plan with the answer that every sessionless caller gets from it.
#[derive(Debug)]
pub(super) struct PlanEntry {
    pub plan: Plan,
    stateless: OnceLock<Stateless>,
    bytes: usize,
}

#[derive(Debug)]
struct Stateless {
    body: Bytes,
    cost: AssemblyCost,
}

impl PlanEntry {
    pub(super) fn new(plan: Plan) -> Self {
        // The stateless answer repeats the plan's own bytes.
        let bytes = 2 * (plan.bytes() + plan.late_bytes());
        Self { plan, stateless: OnceLock::new(), bytes }
    }

    /// For sessions that keep an earlier listing than `fresh` has.
    pub(super) fn kept(mut plan: Plan, fresh: &Plan) -> Self {
        let own_late = if plan.share_late(fresh) { 0 } else { plan.late_bytes() };
        let bytes = plan.bytes() + own_late;
        Self { plan, stateless: OnceLock::new(), bytes }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Toolrack {
    /// Assembles the array, the listing and all that the agent should know beside them.
    pub async fn assemble(&self, request: AssembleRequest) -> Result<Assembled, Error> {
        let started = Instant::now();
        request.fields.check()?;
        if request.tools.is_some() && request.fields.tools_ref.is_some() {
            return Err(Error::invalid("/tools_ref", "invalid_value", "send either `tools` or `tools_ref`"));
        }
        if request.used.len() > MAX_SELECTORS {
            let detail = format!("{} names are more than {MAX_SELECTORS}", request.used.len());
            return Err(Error::invalid("/used", "too_many", detail));
        }
        let caller = &request.caller;
        let heads = self.heads(caller).await?;
        let (_, merged) = self.merged(&heads).await?;
        let mut warnings = Vec::new();
        let mut tools_ref = request.fields.tools_ref.clone();
        let catalogs = if let Some(tools) = &request.tools {
            let upload = self.take_inline(&caller.user, tools).await?;
            warnings.extend(upload.warnings.iter().cloned());
            tools_ref = Some(upload.reference.clone());
            Catalogs::Inline(Arc::clone(&upload.catalog))
        } else if let Some(reference) = &tools_ref {
            Catalogs::Inline(self.inline_catalog(&caller.user, reference).await?)
        } else {
            self.stored_catalogs(caller, &heads).await?
        };
        let window = window(request.fields.context_window, merged.policy.context_window, &mut warnings);
        let target = request.fields.target(GrantFields::usual_target(&merged.policy))?;
        let mut selections = vec![request.fields.selection.clone()];
        selections.extend(caller.limits.as_deref().cloned());
        let kept = self.kept_hot(&request, &merged.policy).await?;
        let seen = Seen { catalogs, heads, merged, selections: selections.into(), target, window };
        let mut context = self.context_of(seen, kept.clone().unwrap_or_default()).await?;
        let mut plan = self.plan(&context).await?;
        check_room(&plan.plan)?;
        if caller.session.is_some() && kept.is_none() {
            let hot = self.hot_core(caller, &context, &plan).await;
            context = self.with_hot(context, hot).await?;
            plan = self.plan(&context).await?;
        }
        self.prepare_vectors(caller, &context).await;
        let caller = request.caller.clone();
        let (assembled, cost, cache) = match caller.session_key() {
            None => {
                warnings.extend(remembered_warning());
                telemetry::assemble(plan.plan.tier, target.format.as_str());
                assemble_stateless(&context, &plan, &request, tools_ref.as_deref(), warnings)
            }
            Some(key) => self.assemble_session(&key, context, plan, request, tools_ref, warnings).await?,
        };
        cost.record();
        self.usage().assembled(&caller, cost, cache, started.elapsed());
        Ok(assembled)
    }

    /// The hot tools that a session keeps; nothing where it begins, or has an epoch, and they are chosen anew.
    async fn kept_hot(
        &self,
        request: &AssembleRequest,
        policy: &Policy,
    ) -> Result<Option<Vec<ToolKey>>, Error> {
        match request.caller.session_key().filter(|_| policy.hot_tools.join()) {
            None => Ok(Some(Vec::new())),
            Some(_) if request.epoch => Ok(None),
            Some(key) => {
                let session = self.session(&key).await?;
                Ok(session.settings.assembled.as_ref().map(|assembled| assembled.hot.clone()))
            }
        }
    }

    async fn assemble_session(
        &self,
        key: &SessionKey,
        mut context: Context,
        mut plan: Arc<PlanEntry>,
        request: AssembleRequest,
        tools_ref: Option<String>,
        mut warnings: Vec<Warning>,
    ) -> Result<(Assembled, AssemblyCost, CacheReason), Error> {
        let UsedTools { keys: used, called, turn } = used_tools(&context, &request, &mut warnings);
        // Before the session is locked: others need not wait for an endpoint.
        let preload = self.preload(key, &context, &plan.plan, &request).await?;
        let origin = Origin {
            catalog: context.entry.catalogs.version().into_owned(),
            config: context.merged.digest.to_string(),
            grant: match &request.caller.limits {
                None => grant_digest(&request.fields.selection, context.window),
                Some(limits) => grant_digest(&(&request.fields.selection, limits), context.window),
            },
        };
        let mut held = self.hold_session(key).await?;
        warnings.extend(remembered_warning());
        let news = held.session.ledger().news(called, turn);
        let mut tries = ChangeTries::default();
        let answer = loop {
            let previous = held.session.settings.assembled.clone();
            let previous = previous.as_deref();
            // Another assembly may have begun the session meanwhile: its core does not change unasked.
            let joins = context.policy().hot_tools.join() && !request.epoch;
            if let Some(previous) = previous.filter(|previous| joins && previous.hot != context.hot) {
                context = self.with_hot(context, previous.hot.clone()).await?;
                plan = self.plan(&context).await?;
            }
            let kept =
                self.session_plan(previous, &context, Arc::clone(&plan), &origin, request.epoch).await?;
            let session = SessionAssembly {
                context: &context,
                plan: &kept.plan,
                origin: &origin,
                request: &request,
                tools_ref: &tools_ref,
                used: &used,
                preload: &preload,
            };
            let change = |stored: &Session, warm: &mut WarmSet, now| {
                Ok(session.apply(stored, warm, now, warnings.clone()))
            };
            match self.change_held(key, held, Deed::Assembly, change).await? {
                Changed::Done(answer) => {
                    telemetry::assemble(kept.plan.tier, context.target.format.as_str());
                    break answer;
                }
                Changed::Outdated(newer) => held = newer,
            }
            tries.again()?;
        };
        if answer.cache.breaks {
            telemetry::cache_break(answer.cache.reason.as_str());
        }
        self.usage().called(&request.caller, &context, &news);
        let (cost, cache) = (AssemblyCost::of(&answer), answer.cache.reason);
        Ok((Assembled { body: answer.body.into() }, cost, cache))
    }
}

/// Refuses an array that the provider would not take.
pub(super) fn check_room(plan: &Plan) -> Result<(), Error> {
    let Err((there, most)) = plan.room() else { return Ok(()) };
    let detail = format!(
        "{there} tools always stand in the array and {} takes {most}; make fewer core, or let tools be deferred",
        plan.target.profile.as_str()
    );
    Err(Error::invalid("/profile", "too_many_tools", detail))
}

/// The answer for a caller without a session; the usual one is made once per plan.
fn assemble_stateless(
    context: &Context,
    entry: &PlanEntry,
    request: &AssembleRequest,
    tools_ref: Option<&str>,
    warnings: Vec<Warning>,
) -> (Assembled, AssemblyCost, CacheReason) {
    let first = CacheReason::First;
    let usual = tools_ref.is_none() && warnings.is_empty() && request.if_fingerprint.is_none();
    if !usual {
        let if_fingerprint = request.if_fingerprint.as_deref();
        let input = AnswerInput { if_fingerprint, tools_ref, warnings, ..AnswerInput::default() };
        let answer = answer(context.view(), &entry.plan, &input);
        let cost = AssemblyCost::of(&answer);
        return (Assembled { body: answer.body.into() }, cost, first);
    }
    let stateless = entry.stateless.get_or_init(|| {
        let answer = answer(context.view(), &entry.plan, &AnswerInput::default());
        Stateless { cost: AssemblyCost::of(&answer), body: answer.body.into() }
    });
    (Assembled { body: stateless.body.clone() }, stateless.cost, first)
}

/// The tools that were used since the last assembly, as the request tells them.
struct UsedTools {
    /// All that the names may mean.
    keys: Vec<ToolKey>,
    /// A tool for each name that means one alone, as [`super::ledger::Ledger::news`] takes it.
    called: Vec<(u64, u32)>,
    /// See [`crate::core::messages::LastCalls::turn`].
    turn: Option<Digest>,
}

fn used_tools(context: &Context, request: &AssembleRequest, warnings: &mut Vec<Warning>) -> UsedTools {
    let last = request.messages.as_deref().map(last_calls).unwrap_or_default();
    let (mut keys, mut called) = (Vec::new(), Vec::new());
    for (at, name) in request.used.iter().enumerate() {
        if context.view().resolve(name) == Resolved::Unknown {
            let detail = format!("there is no tool `{name}`");
            warnings.push(Warning::new("unknown_tool", detail).at(format!("/used/{at}")));
        }
    }
    for (at, name) in request.used.iter().chain(&last.names).enumerate() {
        let tools = context.view().select(name);
        // A conversation tells the calls; what is named beside it is the same again.
        let counts = request.messages.is_none() || at >= request.used.len();
        if let (true, [id]) = (counts, tools.as_slice()) {
            let tool = context.view().get(*id);
            called.extend(tool.map(|tool| (tool.tool.tool.digest().short(), *id)));
        }
        keys.extend(
            tools.into_iter().filter_map(|id| context.view().get(id)).map(|tool| tool.tool.tool.key()),
        );
    }
    UsedTools { keys, called, turn: last.turn }
}

/// One assembly of a session: a function of its snapshot.
struct SessionAssembly<'a> {
    context: &'a Context,
    plan: &'a Plan,
    origin: &'a Origin,
    request: &'a AssembleRequest,
    tools_ref: &'a Option<String>,
    used: &'a [ToolKey],
    preload: &'a Preload,
}

impl SessionAssembly<'_> {
    fn apply(
        &self,
        stored: &Session,
        warm: &mut WarmSet,
        now: i64,
        mut warnings: Vec<Warning>,
    ) -> (Update, Answer) {
        let catalogs = &self.context.entry.catalogs;
        let view = self.context.view();
        // Denied tools are outside the view and stay all the same.
        let exists =
            |key: &ToolKey| !view.by_key(key).is_empty() || catalogs.parts().any(|catalog| catalog.has(key));
        let purged = warm.purge(exists);
        let previous = stored.settings.assembled.as_deref();
        let limits = warm_limits(self.context.policy(), self.plan);
        let mut change = warm.touch(self.used, now);
        change.removed = purged.removed;
        // Another assembly may have become the first meanwhile; its array is not changed unasked.
        let preload = Some(self.preload).filter(|_| previous.is_none());
        let keys = preload.map(|preload| preload.keys.as_slice()).unwrap_or_default();
        if !keys.is_empty() {
            change.extend(warm.warm(keys, limits, now));
        }
        // The start of a session is an epoch: no cache holds anything yet, so what was preloaded does not wait.
        change.extend(warm.settle(limits, self.request.epoch || !keys.is_empty()));
        let shown = shown_warm(self.context, self.plan, warm);
        warnings.extend(eviction_warning(self.context, self.plan, &change.evicted));
        warnings.extend(preload.into_iter().flat_map(|preload| preload.warnings.iter().cloned()));

        let input = AnswerInput {
            warm: &shown,
            origin: self.origin.clone(),
            previous: previous.map(|previous| &previous.sent),
            epoch: self.request.epoch,
            if_fingerprint: self.request.if_fingerprint.as_deref(),
            tools_ref: self.tools_ref.as_deref(),
            warnings,
        };
        let answer = answer(self.context.view(), self.plan, &input);
        let state = AssembledState {
            selection: self.request.fields.selection.clone(),
            tools_ref: self.tools_ref.clone(),
            format: self.plan.target.format.as_str().to_owned(),
            profile: self.plan.target.profile.as_str().to_owned(),
            openapi: self.plan.target.dialect == Dialect::OpenApi,
            strict: self.plan.target.strict,
            exposure: self.plan.target.exposure.as_str().to_owned(),
            window: self.context.window,
            sent: answer.sent.clone(),
            listing_base: self.plan.listing_base,
            hot: self.context.hot.clone(),
        };
        let changed = previous != Some(&state);
        let update = Update {
            warm: change,
            settings: changed.then(|| SessionSettings { assembled: Some(Arc::new(state)) }),
            clear: false,
            cost: Some(AssemblyCost::of(&answer)),
            audit: None,
        };
        (update, answer)
    }
}

/// What an assembly took out of the warm set, because the bound is smaller than before or an epoch let new tools in.
fn eviction_warning(context: &Context, plan: &Plan, evicted: &[ToolKey]) -> Option<Warning> {
    let view = context.view();
    let tools = evicted.iter().flat_map(|key| view.by_key(key)).filter_map(|id| view.get(id));
    let names: Vec<&str> = tools.map(ViewTool::stored_name).collect();
    let room = plan.room().ok().flatten().filter(|room| *room < context.policy().max_warm_tools as usize);
    let why = match (room, plan.target.max_tools()) {
        (Some(_), Some(most)) => format!("the provider takes {most} tools"),
        _ => "max_warm_tools allows no more".to_owned(),
    };
    let detail = format!("{why}: {} left the array", names.join(", "));
    (!names.is_empty()).then(|| Warning::new("warm_evicted", detail))
}

/// The warm tools that stand in the array, in their order.
fn shown_warm(context: &Context, plan: &Plan, warm: &WarmSet) -> Vec<u32> {
    if plan.sends_all() {
        return Vec::new();
    }
    let view = context.view();
    let waiting = |tool: &&crate::core::warm::WarmTool| !tool.pending;
    let ids = warm.tools().iter().filter(waiting).flat_map(|tool| view.by_key(&tool.key));
    ids.filter(|id| view.get(*id).is_some_and(|tool| !tool.core && !tool.unavailable)).collect()
}
