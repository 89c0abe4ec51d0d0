//! Measuring retrieval: a set of tools and queries run through the service, as an agent would use it.
//!
//! Owns what is asked of the service and how its answers are counted; `set` reads, `metrics` and `bootstrap` count,
//! `report` writes. Knows neither HTTP nor the database: it is given a service, and writes a catalog and a config of a
//! user of its own into it.

mod bootstrap;
mod goals;
mod metrics;
mod modes;
mod report;
mod set;
mod unfloored;

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use self::unfloored::{Unfloored, names_of};
use crate::core::format::ingest::EntryLimits;
use crate::core::id::{Id, InvalidId, Scope};
use crate::core::matches::Confidence;
use crate::core::policy;
use crate::core::tokens;
use crate::core::warning::Warning;
use crate::service::{
    Actor, AssembleRequest, Caller, Error, GrantFields, QueryResult, SearchAnswer, SearchMode, SearchRequest,
    Toolrack,
};

pub use bootstrap::{Difference, Pair, RESAMPLES, paired};
pub use goals::{Goal, Goals};
pub use metrics::{Figures, Metric, Outcome, Share, Summary, places, quantile};
pub use modes::{Mode, SetModes};
pub use report::{Comparison, GroupDifference, MetricDifference, Report, RunReport, SetReport};
pub use set::{Half, Query, Set, SetError};

/// The user whose catalog and config are written.
const USER: &str = "eval";
/// The floor is said to have taken a tool that would have stood among so many: what an answer shows by default.
const SHOWN: usize = 5;
/// Tools of an answer that a report names.
const NAMED: usize = 5;
/// Defaults of the two limits of a config.
const LIMITS: [(&str, u64); 2] = [("max_search_limit", 20), ("search_default_limit", 5)];

/// Matches per query that rankings are measured on: recall at 10 needs 10, a config allows no more than 50.
pub const LIMIT_RANGE: std::ops::RangeInclusive<u32> = 10..=50;

/// Why a set was not measured.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    #[error("{place}: {error}")]
    Service { place: String, error: Error },
    #[error(transparent)]
    Id(#[from] InvalidId),
    #[error("an answer of the service cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
}

/// A config to measure under.
#[derive(Debug, Clone)]
pub struct Setting {
    /// How reports call it.
    pub name: String,
    /// A config document, as `PUT /v1/users/{user}/config` takes it.
    pub config: Value,
}

/// What a set came to under one setting.
#[derive(Debug)]
pub struct Run {
    pub setting: String,
    pub resident: Resident,
    /// What a reader of the figures has to know.
    pub notes: Vec<String>,
    /// Answers that the endpoint did not give, or gave with less than all vectors.
    pub degraded: usize,
    /// One per query, in order.
    pub rows: Vec<Row>,
}

/// Tokens that a catalog takes in every turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resident {
    /// Tools of the catalog.
    pub tools: usize,
    /// All schemas, as tier 0 sends them.
    pub all: u64,
    /// As assembled under the setting, without a session: array and listing.
    pub array: u64,
    pub listing: u64,
    pub tier: u64,
}

/// One query with what came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The first matches, by stored name.
    pub first: Vec<String>,
}

/// Runs all queries of a set, one after the other.
pub async fn evaluate(
    service: &Toolrack,
    set: &Set,
    setting: &Setting,
    limit: u32,
) -> Result<Run, EvalError> {
    let limit = limit.clamp(*LIMIT_RANGE.start(), *LIMIT_RANGE.end());
    let caller =
        Caller { user: Id::parse(USER)?, project: None, session: None, limits: None, allowances: None };
    let (actor, scope) = (Actor::program(), Scope::User(caller.user.clone()));
    let failed = |place: &str| {
        let place = format!("{}, {place}", set.name);
        move |error: Error| EvalError::Service { place, error }
    };
    let config = with_limit(&setting.config, limit);
    let written = service.put_config(&actor, &scope, config.clone(), None, false).await;
    let mut warnings = written.map_err(failed(&format!("config {}", setting.name)))?.warnings;
    let written = service.put_catalog(&actor, &scope, set.tools.clone(), None, false).await;
    warnings.extend(written.map_err(failed("tools"))?.warnings);

    let limits = service.limits();
    let entry = EntryLimits { bytes: limits.tool_bytes, depth: limits.depth };
    let layer = policy::load(&config).0;
    let unfloored = Unfloored::build(&set.tools, entry, &layer);
    let mut asking = Asking {
        service,
        caller,
        limit,
        query_chars: limits.query_chars,
        uploaded: unfloored.names().map(|[stored, name]| (stored.to_owned(), name.to_owned())).collect(),
        unfloored,
        counts: Counts::default(),
    };
    let assembled = asking.assembled().await.map_err(failed("assembly"))?;
    let resident = resident(&serde_json::from_slice(&assembled)?, asking.uploaded.len());
    service.complete_vectors(&asking.caller).await.map_err(failed("vectors"))?;
    // The first search of a catalog builds its index, which no later one pays for.
    if let Some(first) = set.queries.first() {
        asking.search(&asking.cut(&first.query), None).await.map_err(failed("first query"))?;
    }
    let mut rows = Vec::with_capacity(set.queries.len());
    for query in &set.queries {
        rows.push(asking.row(query).await.map_err(failed(&format!("query {}", query.id)))?);
    }
    asking.count_labels(&set.queries);
    let mut notes = notes_of(&warnings);
    notes.extend(asking.counts.notes(limits.query_chars));
    let degraded = asking.counts.degraded.values().sum::<usize>() + asking.counts.incomplete;
    Ok(Run { setting: setting.name.clone(), resident, notes, degraded, rows })
}

/// A config that allows `limit` matches where a search asks for them; what a search shows that does not ask stays.
fn with_limit(config: &Value, limit: u32) -> Value {
    let Value::Object(config) = config else { return config.clone() };
    let value = |(key, default): (&str, u64)| config.get(key).and_then(Value::as_u64).unwrap_or(default);
    let [most, shown] = LIMITS.map(value);
    let mut config: Map<String, Value> = config.clone();
    config.insert(LIMITS[0].0.to_owned(), most.max(u64::from(limit)).into());
    config.insert(LIMITS[1].0.to_owned(), shown.min(most).into());
    Value::Object(config)
}

/// Warnings about the tools, by code, and those about the config as they are.
fn notes_of(warnings: &[Warning]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut tools: BTreeMap<&str, usize> = BTreeMap::new();
    for warning in warnings {
        if warning.tool.is_some() || warning.pointer.as_deref().is_some_and(|at| at.starts_with("/tools")) {
            *tools.entry(warning.code).or_default() += 1;
        } else {
            notes.push(format!("{}: {}", warning.code, warning.detail));
        }
    }
    notes.extend(tools.iter().map(|(code, count)| format!("warnings `{code}` about tools: {count}")));
    notes
}

/// What happened on the way that figures do not tell.
#[derive(Debug, Default)]
struct Counts {
    cut: usize,
    unknown_labels: usize,
    /// By reason.
    degraded: BTreeMap<&'static str, usize>,
    /// Answers that say that some tools had no vector, or that there was no first stage.
    incomplete: usize,
    /// Queries whose matches the ranking before the floor does not hold.
    differing: usize,
}

impl Counts {
    fn notes(&self, query_chars: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if self.cut > 0 {
            notes.push(format!("queries that were cut to {query_chars} characters: {}", self.cut));
        }
        if self.unknown_labels > 0 {
            notes.push(format!(
                "names in `relevant` that are no tool of the catalog: {}",
                self.unknown_labels
            ));
        }
        for (reason, count) in &self.degraded {
            notes.push(format!("answers by keywords because the endpoint failed, `{reason}`: {count}"));
        }
        if self.incomplete > 0 {
            notes.push(format!(
                "answers for which the endpoint had not made all vectors: {}",
                self.incomplete
            ));
        }
        if self.differing > 0 {
            let what =
                "queries with matches that the ranking before the floor has not, so `lost` cannot be trusted";
            notes.push(format!("{what}: {}", self.differing));
        }
        notes
    }
}

/// The asking of one set under one setting.
struct Asking<'a> {
    service: &'a Toolrack,
    caller: Caller,
    limit: u32,
    query_chars: usize,
    unfloored: Unfloored,
    /// Uploaded names by stored name.
    uploaded: BTreeMap<String, String>,
    counts: Counts,
}

impl Asking<'_> {
    /// The body of an assembly of the whole catalog, without a session.
    async fn assembled(&self) -> Result<Bytes, Error> {
        let request = AssembleRequest {
            caller: self.caller.clone(),
            fields: GrantFields::default(),
            tools: None,
            used: Vec::new(),
            query: None,
            messages: None,
            epoch: false,
            if_fingerprint: None,
        };
        Ok(self.service.assemble(request).await?.body)
    }

    fn cut(&self, query: &str) -> String {
        query.chars().take(self.query_chars).collect()
    }

    async fn search(&self, query: &str, limit: Option<u32>) -> Result<SearchAnswer, Error> {
        let request = SearchRequest {
            caller: self.caller.clone(),
            fields: GrantFields::default(),
            queries: vec![query.to_owned()],
            limit: limit.map(f64::from),
            detail: None,
            warm: Some(false),
            explain: None,
            context: None,
            form: None,
            call_id: None,
        };
        self.service.search(request).await
    }

    async fn row(&mut self, query: &Query) -> Result<Row, Error> {
        let text = self.cut(&query.query);
        self.counts.cut += usize::from(text.len() < query.query.len());
        let started = Instant::now();
        let shown = self.search(&text, None).await?;
        let took_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let ranked = self.search(&text, Some(self.limit)).await?;
        for answer in [&shown, &ranked] {
            if let Some(reason) = answer.reason {
                *self.counts.degraded.entry(reason).or_default() += 1;
            }
            let is_incomplete =
                |warning: &Warning| matches!(warning.code, "vectors_incomplete" | "first_stage_failed");
            self.counts.incomplete += usize::from(answer.warnings.iter().any(is_incomplete));
        }
        let names: Vec<&str> = matches(&ranked).map(|found| found.0).collect();
        let with_uploaded = names.iter().map(|name| [*name, self.uploaded_name(name)]);
        let places = places(with_uploaded, &query.relevant);
        let right: HashSet<&String> = query.relevant.iter().collect();
        let lost = (ranked.mode == SearchMode::Keyword).then(|| self.lost(&text, &query.relevant, &names));
        let outcome = Outcome {
            right: right.len(),
            places,
            answered_none: matches(&shown).all(|(_, confidence)| confidence == Confidence::Low),
            lost: lost.map(|(lost, _)| lost),
            tokens: answer_tokens(&shown.results),
            took_us,
        };
        let first = names.iter().take(NAMED).map(|name| (*name).to_owned()).collect();
        self.counts.differing += usize::from(lost.is_some_and(|(_, differs)| differs));
        Ok(Row { id: query.id.clone(), kind: query.kind.clone(), lang: query.lang.clone(), outcome, first })
    }

    /// Whether a right tool that ranks among the first is no match, and whether the matches are others than the ranked
    /// tools.
    fn lost(&self, query: &str, relevant: &[String], matches: &[&str]) -> (bool, bool) {
        let ranked = self.unfloored.rank(query, self.limit as usize);
        let is_right = |names: [&str; 2]| names.iter().any(|name| relevant.iter().any(|right| right == name));
        let mut below = ranked.iter().take(SHOWN).map(|tool| names_of(tool));
        let lost = below.any(|names| is_right(names) && !matches.contains(&names[0]));
        let mut order = ranked.iter().map(|tool| tool.stored_name());
        let differs = !matches.iter().all(|name| order.any(|ranked| ranked == *name));
        (lost, differs)
    }

    fn uploaded_name<'s>(&'s self, stored: &'s str) -> &'s str {
        self.uploaded.get(stored).map_or(stored, String::as_str)
    }

    fn count_labels(&mut self, queries: &[Query]) {
        let known: HashSet<&str> =
            self.uploaded.iter().flat_map(|(stored, name)| [stored.as_str(), name.as_str()]).collect();
        let labels = queries.iter().flat_map(|query| &query.relevant);
        self.counts.unknown_labels = labels.filter(|label| !known.contains(label.as_str())).count();
    }
}

fn resident(assembled: &Value, tools: usize) -> Resident {
    let number = |pointer: &str| assembled.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    Resident {
        tools,
        all: number("/tokens/all"),
        array: number("/tokens/tools"),
        listing: number("/tokens/listing"),
        tier: number("/tier"),
    }
}

/// Stored name and confidence of each match.
fn matches(answer: &SearchAnswer) -> impl Iterator<Item = (&str, Confidence)> {
    let matches = answer.results.iter().flat_map(|result| &result.matches);
    matches.map(|found| (found.name.as_str(), found.confidence))
}

/// What `max_answer_tokens` bounds.
fn answer_tokens(results: &[QueryResult]) -> usize {
    tokens::count(&serde_json::to_string(results).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_is_made_room_for_and_shows_no_more() {
        assert_eq!(with_limit(&json!({}), 20), json!({"max_search_limit": 20, "search_default_limit": 5}));
        assert_eq!(
            with_limit(&json!({"max_search_limit": 3}), 20),
            json!({"max_search_limit": 20, "search_default_limit": 3})
        );
        assert_eq!(
            with_limit(&json!({"max_search_limit": 50, "search_default_limit": 7, "core": ["a"]}), 20),
            json!({"max_search_limit": 50, "search_default_limit": 7, "core": ["a"]})
        );
        assert_eq!(with_limit(&json!([]), 20), json!([]));
    }

    #[test]
    fn notes_count_tools_and_quote_the_config() {
        let warnings = [
            Warning::new("tool_quarantined", "x").at("/tools/3"),
            Warning::new("tool_quarantined", "y").at("/tools/4"),
            Warning::new("clamped", "90 is out of range; 64 is used").at("/max_warm_tools"),
        ];
        assert_eq!(
            notes_of(&warnings),
            ["clamped: 90 is out of range; 64 is used", "warnings `tool_quarantined` about tools: 2"]
        );
    }
}
