//! `search`: which tools fit a task, with what the session learns from it.

use std::cell::Cell;
use std::time::Instant;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::context::{Caller, Context, GrantFields};
use super::ranking::{Asking, MatchExplanation, Ranking, SearchMode};
use super::search_forms::{AnswerForm, FormedAnswer, FoundTools, text_read};
use super::sessions::Deed;
use super::warming::may_warm;
use super::{Error, Toolrack};
use crate::core::format::Format;
use crate::core::format::signature::signature;
use crate::core::grant::{View, ViewTool};
use crate::core::lexical::Unmet;
use crate::core::matches::{self, Confidence, Found, Scored};
use crate::core::plan::Plan;
use crate::core::text::{clip, counted, one_line};
use crate::core::tokens;
use crate::core::tool_text;
use crate::core::warm::WarmSet;
use crate::core::warning::Warning;
use crate::telemetry;

/// Longest `context`, in characters.
const MAX_TASK_CHARS: usize = 2_000;

/// Groups that an answer names when nothing fits.
const MAX_GROUPS: usize = 50;

/// From this many searches in a row without a sure match on, the hint says to stop.
const REPEATED_MISSES: u64 = 3;

/// What a search asks for.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    pub caller: Caller,
    pub fields: GrantFields,
    pub queries: Vec<String>,
    pub limit: Option<f64>,
    pub detail: Option<String>,
    pub warm: Option<bool>,
    pub explain: Option<bool>,
    pub context: Option<String>,
    /// In which further form the answer is wanted: `text`, `tool_references`, `tool_search_output` or `additional_tools`.
    pub form: Option<String>,
    /// The id of the call that is answered, for the form `tool_search_output`.
    pub call_id: Option<String>,
}

/// For whom a search is made: what a person tries is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Agent,
    Person,
    /// Whatever endpoint is configured is not asked.
    PersonByWords,
}

/// How much a match tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    Names,
    #[default]
    Brief,
    Signature,
    Full,
}

impl Detail {
    fn parse(text: Option<&str>) -> Result<Self, Error> {
        match text {
            None | Some("brief") => Ok(Self::Brief),
            Some("names") => Ok(Self::Names),
            Some("signature") => Ok(Self::Signature),
            Some("full") => Ok(Self::Full),
            Some(other) => {
                let detail = format!(
                    "`{}` is not a detail; there are names, brief, signature and full",
                    clip(other, 40)
                );
                Err(Error::invalid("/detail", "invalid_value", detail))
            }
        }
    }
}

/// Where a tool stands in the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// Always in the array.
    Core,
    /// In the array from the next assembly on.
    Warm,
    /// Found, and waiting for an epoch.
    Pending,
    /// Reached through the bridge.
    Deferred,
}

/// A tool that fits a query.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ToolMatch {
    /// Stored name.
    pub name: String,
    /// The name that providers see, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_name: Option<String>,
    /// On one line and at most 200 characters in `brief`; absent in `names`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The group that the config gives.
    pub group: String,
    /// Comparable within one query only.
    pub score: f64,
    pub confidence: Confidence,
    pub state: ToolState,
    /// Names of required arguments as the provider is sent them; absent in `names` and `signature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<String>>,
    /// The tool on one line, with its arguments as the provider is sent them, in `signature`: in place of `description` and
    /// `required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Why the match has its score, with `explain`. Not counted in `max_answer_tokens`: it is for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<MatchExplanation>,
    /// The JSON Schema of the arguments, in `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Box<RawValue>>,
}

/// A group with the number of its tools that can be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupCount {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub tools: usize,
}

/// The answer to one query.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QueryResult {
    pub query: String,
    /// Best first.
    pub matches: Vec<ToolMatch>,
    /// Only when there are no matches: the closest tools, possibly unrelated. They are never warmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Vec<ToolMatch>>,
    /// Only when there are no matches: the groups that there are, at most 50, the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<GroupCount>>,
    /// Beside `groups`, and when a session finds nothing sure time after time: what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The answer to a search.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SearchAnswer {
    /// One entry per query, in order.
    pub results: Vec<QueryResult>,
    pub mode: SearchMode,
    /// Whether a configured endpoint did not answer, so that keywords ranked.
    pub degraded: bool,
    /// Why, where `degraded`: one of a closed list, for example `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<&'static str>,
    /// Tools that this search put into the session's array.
    pub warmed: Vec<String>,
    /// Tools that had to leave it.
    pub evicted: Vec<String>,
    pub catalog_version: String,
    pub took_ms: u64,
    /// Present and true when descriptions or schemas were shortened to fit `max_answer_tokens`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// What the model reads, in the asked `form`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<FormedAnswer>,
    pub warnings: Vec<Warning>,
}

impl Toolrack {
    /// Finds tools for one or several queries.
    pub async fn search(&self, request: SearchRequest) -> Result<SearchAnswer, Error> {
        let caller = request.caller.clone();
        let answer = self.find(request).await?;
        match &answer.answer {
            Some(formed) => self.answered(&caller, "search", formed.tokens).await,
            None => self.answered_text(&caller, "search", text_read(&answer.results)).await,
        }
        Ok(answer)
    }

    /// As [`Self::search`], for a caller that tells the model what was found in words of its own.
    pub(super) async fn find(&self, request: SearchRequest) -> Result<SearchAnswer, Error> {
        self.find_for(request, Asker::Agent).await
    }

    /// As [`Self::find`], for anybody.
    pub(super) async fn find_for(&self, request: SearchRequest, asker: Asker) -> Result<SearchAnswer, Error> {
        let started = Instant::now();
        let task = task(request.context.as_deref())?;
        let detail = Detail::parse(request.detail.as_deref())?;
        let form = AnswerForm::parse(request.form.as_deref())?;
        self.check_queries(&request.queries)?;
        let queries = request.queries;
        let mut context = self.context(&request.caller, &request.fields).await?;
        if asker == Asker::PersonByWords {
            context.forget_matcher();
        }
        let plan = self.plan(&context).await?;
        if let Some(form) = form {
            form.check(&plan.plan, request.call_id.as_deref())?;
        }
        let mut warnings = context.warnings();
        let limit = limit(request.limit, &context, &mut warnings)?;
        let (caller, task) = (&request.caller, task.as_deref());
        let asking = Asking { caller, context: &context, queries: &queries, task, limit };
        let ranking = self.rank(&asking).await?;
        warnings.extend(ranking.warnings.iter().cloned());
        let found = if request.warm.unwrap_or(true) {
            matches::warming_order(&ranking.found, |id| may_warm(context.view(), context.target, id))
        } else {
            Vec::new()
        };
        let warming = self.warm(&context, &found, Deed::Search).await?;
        warnings.extend(warming.warnings);
        let budget = context.policy().max_answer_tokens as usize;
        let missed = ranking.found.iter().all(|found| !found.is_sure() && !found.asks_for_all);
        let misses = context.session.as_ref().map_or(0, |(_, session)| session.ledger().missed(missed));
        let writer = MatchWriter {
            misses,
            context: &context,
            plan: &plan.plan,
            warm: &warming.warm,
            detail,
            schema_room: Cell::new(budget),
        };
        let results = queries.into_iter().zip(&ranking.found);
        let mut answer = SearchAnswer {
            results: results.map(|(query, found)| writer.result(query, found)).collect(),
            mode: ranking.mode,
            degraded: ranking.fallback.is_some(),
            reason: ranking.fallback,
            warmed: warming.warmed,
            evicted: warming.evicted,
            catalog_version: context.entry.catalogs.version().into_owned(),
            took_ms: 0,
            truncated: false,
            answer: None,
            warnings,
        };
        answer.truncated = shrink(&mut answer.results, budget) || writer.schema_room.get() == 0;
        if let Some(form) = form {
            let found = FoundTools { context: &context, plan: &plan.plan, ranking: &ranking };
            found.answer_in(form, request.call_id.as_deref().unwrap_or_default(), &mut answer);
        }
        if request.explain == Some(true) {
            self.explain_matches(&context, &ranking, &mut answer.results).await?;
        }
        let took = started.elapsed();
        answer.took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if asker == Asker::Agent {
            telemetry::search(answer.mode.as_str(), answer.reason.unwrap_or("none"), took.as_secs_f64());
            if answer.results.iter().all(|result| result.matches.is_empty()) {
                telemetry::no_match(answer.mode.as_str());
            }
            self.usage().searched(caller, &context, &ranking, &answer, took);
        }
        Ok(answer)
    }

    async fn explain_matches(
        &self,
        context: &Context,
        ranking: &Ranking,
        results: &mut [QueryResult],
    ) -> Result<(), Error> {
        for (result, found) in results.iter_mut().zip(&ranking.found) {
            let scored = || found.matches.iter().chain(&found.nearest);
            let explained = self.explain(context, &result.query, scored().map(|scored| scored.id)).await?;
            let shown = result.matches.iter_mut().chain(result.nearest.iter_mut().flatten());
            for ((tool, explanation), scored) in shown.zip(explained).zip(scored()) {
                tool.explain = Some(MatchExplanation { endpoint_score: scored.raw, ..explanation });
            }
        }
        Ok(())
    }

    fn check_queries(&self, queries: &[String]) -> Result<(), Error> {
        let limits = &self.0.limits;
        if queries.is_empty() {
            return Err(Error::invalid("/queries", "missing_key", "a search needs at least one query"));
        }
        if queries.len() > limits.queries {
            let detail = format!("{} queries are more than {} at once", queries.len(), limits.queries);
            return Err(Error::invalid("/queries", "too_many", detail));
        }
        for (at, query) in queries.iter().enumerate() {
            if query.chars().nth(limits.query_chars).is_some() {
                let detail = format!("a query has at most {} characters", limits.query_chars);
                return Err(Error::invalid(format!("/queries/{at}"), "too_long", detail));
            }
        }
        Ok(())
    }
}

/// The agent's task, which an endpoint is told beside the query.
fn task(context: Option<&str>) -> Result<Option<String>, Error> {
    let Some(task) = context.map(str::trim).filter(|task| !task.is_empty()) else { return Ok(None) };
    if task.chars().nth(MAX_TASK_CHARS).is_some() {
        let detail = format!("a context has at most {MAX_TASK_CHARS} characters");
        return Err(Error::invalid("/context", "too_long", detail));
    }
    Ok(Some(task.to_owned()))
}

/// Matches per query; out of range it is clamped, with a warning.
fn limit(asked: Option<f64>, context: &Context, warnings: &mut Vec<Warning>) -> Result<usize, Error> {
    let policy = context.policy();
    let Some(asked) = asked else { return Ok(policy.search_default_limit as usize) };
    if asked.fract() != 0.0 {
        return Err(Error::invalid("/limit", "wrong_type", "`limit` must be a whole number"));
    }
    let limit = asked.clamp(1.0, f64::from(policy.max_search_limit));
    if limit != asked {
        warnings
            .push(Warning::new("clamped", format!("{asked} is out of range; {limit} is used")).at("/limit"));
    }
    Ok(limit as usize)
}

/// Where a tool stands in a session with this warm set.
pub(super) fn state(tool: &ViewTool, plan: &Plan, warm: &WarmSet) -> ToolState {
    if (tool.core || plan.sends_all()) && !tool.for_target(plan.target).left_out {
        return ToolState::Core;
    }
    match warm.get(&tool.tool.tool.key()) {
        Some(_) if tool.for_target(plan.target).left_out => ToolState::Deferred,
        Some(warm) if warm.pending => ToolState::Pending,
        Some(_) => ToolState::Warm,
        None => ToolState::Deferred,
    }
}

/// Writes matches for one answer.
struct MatchWriter<'a> {
    context: &'a Context,
    plan: &'a Plan,
    warm: &'a WarmSet,
    detail: Detail,
    /// Searches in a row, this one included, in which the session found nothing sure.
    misses: u64,
    /// Tokens that whole definitions may still take: what cannot fit the answer is not even copied. 0 once one did not.
    schema_room: Cell<usize>,
}

impl MatchWriter<'_> {
    fn result(&self, query: String, found: &Found) -> QueryResult {
        let matches: Vec<ToolMatch> =
            found.matches.iter().filter_map(|scored| self.tool_match(scored)).collect();
        let nothing = matches.is_empty();
        let groups = nothing.then(|| groups(self.context.view()));
        QueryResult {
            query,
            matches,
            nearest: nothing
                .then(|| found.nearest.iter().filter_map(|scored| self.tool_match(scored)).collect()),
            hint: match &groups {
                Some((groups, more)) => Some(hint(groups, *more, found, self.misses)),
                None => (self.misses >= REPEATED_MISSES).then(|| again(self.misses)),
            },
            groups: groups.map(|(groups, _)| groups),
        }
    }

    /// Whole definitions as long as there is room for them, best matches first; brief ones from then on.
    fn affordable_detail(&self, entry: &ViewTool) -> Detail {
        if self.detail != Detail::Full {
            return self.detail;
        }
        match self.schema_room.get().checked_sub(entry.tool.counts.formats.get(Format::Canonical)) {
            Some(left) if left > 0 => {
                self.schema_room.set(left);
                Detail::Full
            }
            _ => {
                self.schema_room.set(0);
                Detail::Brief
            }
        }
    }

    fn tool_match(&self, scored: &Scored) -> Option<ToolMatch> {
        let view = self.context.view();
        let entry = view.get(scored.id)?;
        let tool = &entry.tool.tool;
        let detail = self.affordable_detail(entry);
        let description = match detail {
            Detail::Names | Detail::Signature => None,
            Detail::Brief => Some(tool_text::brief_description(tool)),
            Detail::Full => Some(tool_text::whole_description(tool)),
        };
        Some(ToolMatch {
            name: entry.stored_name().to_owned(),
            wire_name: entry.mapped_name().map(str::to_owned),
            description,
            group: one_line(view.group(entry)).into_owned(),
            score: scored.score,
            confidence: scored.confidence,
            state: state(entry, self.plan, self.warm),
            signature: (detail == Detail::Signature).then(|| {
                let made = entry.for_target(self.context.target);
                signature(entry.wire_name(), tool, made.schema())
            }),
            explain: None,
            required: (detail != Detail::Names && detail != Detail::Signature).then(|| {
                let made = entry.for_target(self.context.target);
                tool_text::required_arguments(made.schema().unwrap_or_else(|| tool.parameters()))
            }),
            parameters: (detail == Detail::Full)
                .then(|| {
                    let made = entry.for_target(self.context.target);
                    serde_json::from_str(made.schema().unwrap_or_else(|| tool.parameters())).ok()
                })
                .flatten(),
        })
    }
}

/// The groups of a view with their visible tools, the largest first, and how many more there are.
fn groups(view: &View) -> (Vec<GroupCount>, usize) {
    let mut groups: Vec<GroupCount> = view
        .groups
        .iter()
        .map(|group| GroupCount {
            name: one_line(&group.name).into_owned(),
            description: group.description.as_deref().map(|text| one_line(text).into_owned()),
            tools: 0,
        })
        .collect();
    for (_, tool) in view.visible() {
        if let Some(group) = groups.get_mut(tool.group as usize) {
            group.tools += 1;
        }
    }
    groups.retain(|group| group.tools > 0);
    groups.sort_by(|a, b| b.tools.cmp(&a.tools).then_with(|| a.name.cmp(&b.name)));
    let more = groups.len().saturating_sub(MAX_GROUPS);
    groups.truncate(MAX_GROUPS);
    (groups, more)
}

fn hint(groups: &[GroupCount], more: usize, found: &Found, misses: u64) -> String {
    if groups.is_empty() {
        return "There are no tools to find.".to_owned();
    }
    let quoted = |text: &str| format!("`{}`", clip(&one_line(text), 64));
    let mut hint = match &found.unmet {
        _ if found.asks_for_all => {
            "These are the groups of tools. Search for a task to see tools, for example \"create calendar event\"."
                .to_owned()
        }
        Some(Unmet::Group(name)) => format!("There is no group {}.", quoted(name)),
        Some(Unmet::InGroup(name)) => format!("No tool of {} fits.", quoted(name)),
        Some(Unmet::Terms(terms)) => {
            let terms: Vec<String> = terms.iter().map(|term| quoted(&format!("+{term}"))).collect();
            format!("No tool holds {}.", terms.join(" and "))
        }
        None if found.terms == 0 => {
            "The query names no task. Say what is to be done and to what, for example \"create calendar event\"."
                .to_owned()
        }
        None => "No tool fits well. Try other words for the action and its object, or the name of a group.".to_owned(),
    };
    if !found.nearest.is_empty() {
        hint.push_str(" The nearest tools may be unrelated.");
    }
    if misses >= REPEATED_MISSES {
        hint.push(' ');
        hint.push_str(&again(misses));
    }
    if more > 0 {
        let more = counted(more, "more group is", "more groups are");
        hint.push_str(&format!(" {more} not named here."));
    }
    hint
}

/// What is told to a session that finds nothing sure time after time.
fn again(misses: u64) -> String {
    format!(
        "This is search {misses} in a row without a sure match: what is needed is probably not here. Choose from what was \
         found or from the groups, or go on without such a tool; do not reword again."
    )
}

/// Shortens schemas and descriptions from the last match upwards until the results fit `budget` tokens: of each match
/// first the schema, then the description. No match is dropped. Whether anything was shortened.
fn shrink(results: &mut [QueryResult], budget: usize) -> bool {
    let text = serde_json::to_string(&results).unwrap_or_default();
    // A token is at least one byte: most answers fit without being counted.
    if text.len() <= budget {
        return false;
    }
    let mut total = tokens::count(&text);
    let mut truncated = false;
    let steps: [fn(&mut ToolMatch) -> bool; 3] =
        [|tool| tool.parameters.take().is_some(), |tool| shorten(tool, 60), to_name];
    // A match is cut to its name only where short descriptions everywhere do not do.
    for steps in [&steps[..2], &steps[2..]] {
        let matches = results.iter_mut().rev().flat_map(|result| {
            let nearest = result.nearest.iter_mut().flatten();
            result.matches.iter_mut().chain(nearest).rev()
        });
        for tool in matches {
            for step in steps {
                if total <= budget {
                    return truncated;
                }
                let before = tokens::count(&serde_json::to_string(&tool).unwrap_or_default());
                if step(tool) {
                    truncated = true;
                    let after = tokens::count(&serde_json::to_string(&tool).unwrap_or_default());
                    total -= before.saturating_sub(after).min(total);
                }
            }
        }
    }
    truncated
}

fn to_name(tool: &mut ToolMatch) -> bool {
    let described = tool.description.take().is_some() | tool.required.take().is_some();
    tool.signature.take().is_some() | described
}

fn shorten(tool: &mut ToolMatch, limit: usize) -> bool {
    if let Some(signature) = &mut tool.signature {
        // The arguments are what it is asked for; the sentence behind them goes.
        let end = signature.find(") – ").map(|at| at + 1);
        end.inspect(|end| signature.truncate(*end));
        return end.is_some();
    }
    let Some(description) = &mut tool.description else { return false };
    let short = clip(description, limit).into_owned();
    let changed = short != *description;
    *description = short;
    changed
}
