//! Trying the settings of a matcher without storing them: what the endpoint says to a control pair, how it ranks a
//! sample beside the keyword ranking, and what an administrator can do where it does not.
//!
//! Asks the endpoint itself, past breaker, cache and what was learned before: a test tells how things are now. The key is
//! in no answer and no log.

mod advice;
mod sample;

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use self::advice::advice;
use self::sample::{CONTROLS, Sample, built_in_documents, floor};
use super::context::{Caller, Context, GrantFields};
use super::heads::{API_KEY, header_secret};
use super::ranking::{document, endpoints, has_first_stage, settings, tenant, vector_settings};
use super::scopes::{idle_setting, refused};
use super::secrets::Credentials;
use super::setup::SetupInput;
use super::{Error, Toolrack};
use crate::core::id::Scope;
use crate::core::lexical::Hit;
use crate::core::policy::{self, Matcher, SecretWrite, origin_of};
use crate::core::warning::Warning;
use crate::rerank::{
    Detected, Ranking, RerankFault, RerankRequest, Reranker, Resilient, WRONG_WAY_ROUND, check_url,
};

/// What is looked for where the caller does not say it.
const SAMPLE_QUERY: &str = "Send an email to my team that tomorrow's meeting is cancelled";

/// Most tools of a sample.
const SAMPLE_TOOLS: usize = 30;

/// Settings to try.
pub struct MatcherTestRequest {
    /// Whose tools are ranked and whose stored key may be used; without a session.
    pub caller: Caller,
    /// A draft of that scope, whose tools are ranked in place of the stored ones.
    pub draft: Option<SetupInput>,
    /// As in a config, with or without its `api_key`.
    pub matcher: Value,
    pub query: Option<String>,
    /// Time for everything; each call to the endpoint has the settings' own deadline within it.
    pub within: Duration,
}

impl fmt::Debug for MatcherTestRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings may hold a key.
        f.debug_struct("MatcherTestRequest")
            .field("caller", &self.caller)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// What the endpoint did with these settings.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MatcherTestAnswer {
    /// Whether the endpoint ranked the sample. What is odd about its ranking stands in `notes`.
    pub ok: bool,
    /// The shape of requests that it takes; absent where none was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub dialect: Option<&'static str>,
    /// What is called, without its query string; where nothing answered, the `endpoint` of the settings.
    pub url: String,
    pub latency_ms: MatcherLatency,
    /// Whether the endpoint ranked a control pair the wrong way round, so that what it says of tools cannot be right.
    pub is_reversed: bool,
    /// What was found out, changed or odd, in words for an administrator.
    pub notes: Vec<String>,
    /// What was looked for in the sample.
    pub query: String,
    /// The sample as the endpoint ranks it, best first; empty unless `ok`.
    pub ranking: Vec<RankedSample>,
    /// The same tools as the words of the query rank them, best first; those that have nothing of it are absent.
    pub keyword: Vec<KeywordSample>,
    /// A floor for `min_score`: the middle between obvious hits and obvious misses, by control queries. Absent where they are
    /// not clearly apart, or on scales that differ; a note tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_score_proposed: Option<f64>,
    /// Why the endpoint did not rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<MatcherFault>,
    /// What a write of these settings would warn of.
    pub warnings: Vec<Warning>,
}

/// How long the calls took, in milliseconds; a call that was not made is absent.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct MatcherLatency {
    /// All calls of the control pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<u64>,
    /// The ranking of the sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranking: Option<u64>,
}

/// A tool of the sample with what the endpoint says.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RankedSample {
    pub name: String,
    /// 0 to 1; what `min_score` is compared with.
    pub score: f64,
    /// As the endpoint said it.
    pub raw: f64,
}

/// A tool of the sample with its keyword score.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct KeywordSample {
    pub name: String,
    /// Compares within this ranking alone.
    pub score: f64,
}

/// Why an endpoint does not rank.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MatcherFault {
    /// What a search would give as its `reason`, for example `unauthorized`.
    #[schema(value_type = String)]
    pub reason: &'static str,
    /// What happened, and what to do.
    pub detail: String,
}

impl MatcherFault {
    fn new(reason: &'static str, what: impl fmt::Display) -> Self {
        Self { reason, detail: format!("{what}. {}", advice(reason)) }
    }
}

impl From<RerankFault> for MatcherFault {
    fn from(fault: RerankFault) -> Self {
        Self::new(fault.reason(), fault)
    }
}

impl Toolrack {
    /// Tries the settings of a matcher; nothing is stored. Where the endpoint ranks, its breaker is closed.
    ///
    /// # Errors
    /// What a write of these settings would be refused for, with places below `/matcher`. A fault of the endpoint is an answer.
    pub async fn test_matcher(&self, request: MatcherTestRequest) -> Result<MatcherTestAnswer, Error> {
        let ends = Instant::now() + request.within;
        let query = sample_query(request.query.as_deref(), self.0.limits.query_chars)?;
        let (matcher, secret, mut warnings) = self.read_matcher(&request.matcher)?;
        let caller = &request.caller;
        let context = match request.draft {
            Some(draft) => self.drafted_context(draft).await?,
            None => self.context(caller, &GrantFields::default()).await?,
        };
        let most = SAMPLE_TOOLS.min(matcher.max_documents as usize);
        let tools = self.visible_sample(&context, &query, most).await?;
        let is_built_in = tools.is_none();
        let sample = tools.unwrap_or_else(|| Sample::built_in(&query, context.policy().semantic));

        let mut answer = MatcherTestAnswer {
            ok: false,
            dialect: None,
            url: shown_url(&matcher.endpoint),
            latency_ms: MatcherLatency::default(),
            is_reversed: false,
            notes: Vec::new(),
            query,
            ranking: Vec::new(),
            keyword: sample.keyword.clone(),
            min_score_proposed: None,
            fault: None,
            warnings: Vec::new(),
        };
        match self.credentials_to_try(caller, &context, &matcher, secret, &request.matcher, &mut warnings) {
            Ok(credentials) => {
                let trial =
                    Trial { reranker: self.0.reranker.direct(), matcher: &matcher, credentials, ends };
                match trial.run(&sample, &mut answer).await {
                    Ok(()) => self.tried(caller, &context, &trial).await,
                    Err(fault) => answer.fault = Some(fault.into()),
                }
            }
            Err(reason) => {
                let what = "a stored secret was sealed with another master key";
                answer.fault = Some(MatcherFault::new(reason, what));
            }
        }
        answer.ok = answer.fault.is_none();
        answer.is_reversed = answer.notes.iter().any(|note| note == WRONG_WAY_ROUND);
        if is_built_in {
            let note = "there are no tools to be seen here, so a built-in sample is ranked";
            answer.notes.push(note.to_owned());
        }
        if Instant::now() >= ends {
            let within = request.within.as_millis();
            let note = format!("a test ends after {within} ms, by the service's own limit on requests");
            answer.notes.push(note);
        }
        answer.warnings = warnings;
        tracing::info!(
            host = matcher.endpoint.host_str(),
            ok = answer.ok,
            reason = answer.fault.as_ref().map_or("none", |fault| fault.reason),
            "settings of a matcher were tried"
        );
        Ok(answer)
    }

    /// What failed or was stored with these settings before need not hold any more.
    async fn tried(&self, caller: &Caller, context: &Context, trial: &Trial<'_>) {
        let project = caller.project.clone().map(|id| (Scope::Project(id), &context.heads.project));
        let user = (Scope::User(caller.user.clone()), &context.heads.user);
        for (scope, head) in project.into_iter().chain([user]) {
            let tried = endpoints(trial.matcher, &trial.credentials);
            let stored = self.stored_endpoints(&scope, head);
            if tried.iter().any(|tried| stored.iter().any(|stored| Resilient::are_one(tried, stored))) {
                self.tell_renewal(&scope, head).await;
            }
            for request in tried {
                self.0.reranker.reset(tenant(caller, head), &request).await;
            }
        }
        self.doubt_vectors_by(&vector_settings(trial.matcher, &trial.credentials));
    }

    /// Reads settings as a write of a config would.
    fn read_matcher(&self, settings: &Value) -> Result<(Matcher, SecretWrite, Vec<Warning>), Error> {
        let parsed = policy::parse(&json!({ "matcher": settings })).map_err(refused)?;
        let matcher = policy::merge(&parsed.layer, &policy::Layer::default()).matcher;
        let Some(matcher) = matcher else {
            return Err(Error::invalid("/matcher", "missing_key", "send the settings to be tried"));
        };
        check_url(&matcher.endpoint, &self.0.addresses)
            .map_err(|why| Error::invalid("/matcher/endpoint", "blocked_address", why))?;
        let mut warnings = parsed.warnings;
        warnings.extend(idle_setting(&matcher));
        Ok((matcher, parsed.secrets, warnings))
    }

    /// What goes with the settings: key and headers that they hold, or the stored ones of the project, else of the user, that
    /// belong to the endpoint's origin.
    fn credentials_to_try(
        &self,
        caller: &Caller,
        context: &Context,
        matcher: &Matcher,
        secret: SecretWrite,
        written: &Value,
        warnings: &mut Vec<Warning>,
    ) -> Result<Credentials, &'static str> {
        let origin = origin_of(&matcher.endpoint);
        let project = caller.project.clone().map(|id| (Scope::Project(id), &context.heads.project));
        let user = (Scope::User(caller.user.clone()), &context.heads.user);
        let scopes: Vec<_> = project.into_iter().chain([user]).collect();
        let stored = |name: &str| {
            let opened = scopes.iter().map(|(scope, head)| self.open_secret(scope, head, name, &origin));
            opened.filter_map(Result::transpose).next().transpose()
        };
        let mut headers = Vec::with_capacity(matcher.extra_headers.len());
        for (name, text) in &matcher.extra_headers {
            let text = match text {
                Some(text) => Some(SecretString::from(text.as_str())),
                None => stored(&header_secret(name))?,
            };
            if text.is_none() {
                let detail = "a header says that it is set, but no text is stored for this endpoint; send the text itself";
                warnings.push(Warning::new("secret_missing", detail).at("/matcher/extra_headers"));
            }
            headers.extend(text.map(|text| (name.clone(), text)));
        }
        let api_key = match secret {
            SecretWrite::Set(key) => Some(key),
            SecretWrite::Clear => None,
            SecretWrite::Keep => {
                let key = stored(API_KEY)?;
                if key.is_none() {
                    let elsewhere = scopes.iter().find_map(|(_, head)| head.secret(API_KEY));
                    let detail = match elsewhere.map(|secret| &secret.origin) {
                        Some(origin) => {
                            Some(format!("the stored api_key belongs to {origin} and is not sent elsewhere"))
                        }
                        None => written.get("api_key").map(|_| {
                            "`api_key` says that one is set, but none is stored; send the key itself"
                                .to_owned()
                        }),
                    };
                    let warning = |detail| Warning::new("secret_missing", detail).at("/matcher/api_key");
                    warnings.extend(detail.map(warning));
                }
                key
            }
        };
        Ok(Credentials { api_key, headers })
    }

    /// The visible tools that the keyword ranking finds best, filled up with others; none where there are no tools.
    async fn visible_sample(
        &self,
        context: &Context,
        query: &str,
        most: usize,
    ) -> Result<Option<Sample>, Error> {
        let view = context.view();
        if view.visible().next().is_none() {
            return Ok(None);
        }
        let outcomes = self.keyword_outcomes(context, &[query.to_owned()], most).await?;
        let hits = outcomes.first().map(|outcome| outcome.hits.as_slice()).unwrap_or_default();
        let mut known = HashSet::new();
        let ranked = hits.iter().map(|hit| hit.candidate).chain(view.visible().map(|(id, _)| id));
        let ids: Vec<u32> = ranked.filter(|id| known.insert(*id)).take(most).collect();
        let name_of = |id: u32| view.get(id).map_or("", |tool| tool.stored_name()).to_owned();
        Ok(Some(Sample {
            names: ids.iter().map(|id| name_of(*id)).collect(),
            documents: ids.iter().map(|id| document(&context.entry, *id)).collect(),
            keyword: hits
                .iter()
                .take(most)
                .map(|hit| KeywordSample::new(name_of(hit.candidate), hit))
                .collect(),
        }))
    }
}

impl KeywordSample {
    fn new(name: String, hit: &Hit) -> Self {
        Self { name, score: rounded(hit.score.into()) }
    }
}

/// Settings on trial.
struct Trial<'a> {
    reranker: &'a dyn Reranker,
    matcher: &'a Matcher,
    credentials: Credentials,
    /// When the time of the test is over.
    ends: Instant,
}

impl Trial<'_> {
    /// The request of these settings but for query and documents.
    fn settings(&self) -> RerankRequest {
        settings(self.matcher, &self.credentials)
    }

    fn request(&self, query: &str, documents: &[String], detected: Option<&Detected>) -> RerankRequest {
        let settings = self.settings();
        RerankRequest {
            query: query.to_owned(),
            documents: documents.to_vec(),
            top_n: documents.len().max(1),
            detected: detected.cloned(),
            deadline: settings.deadline.min(self.ends.saturating_duration_since(Instant::now())),
            // A test tells how one call does.
            hedge_after: None,
            ..settings
        }
    }

    /// Asks the endpoint; the answer holds what is known by the time of a fault.
    async fn run(&self, sample: &Sample, answer: &mut MatcherTestAnswer) -> Result<(), RerankFault> {
        let started = Instant::now();
        let detected = self.reranker.probe(&self.request("", &[], None)).await;
        answer.latency_ms.probe = Some(milliseconds(started));
        let detected = detected?;
        answer.dialect = Some(detected.dialect.name());
        answer.url = shown_url(&detected.url);
        answer.notes.clone_from(&detected.notes);

        let started = Instant::now();
        let request = self.request(&answer.query, &sample.documents, Some(&detected));
        let ranking = self.reranker.rerank(request).await;
        answer.latency_ms.ranking = Some(milliseconds(started));
        let ranking = ranking.map_err(|failed| failed.fault)?;
        // Those of the probe are among them.
        answer.notes.clone_from(&ranking.notes);
        let named = ranking.rows.iter().filter_map(|row| {
            let name = sample.names.get(row.index)?.clone();
            Some(RankedSample { name, score: rounded(row.score), raw: row.raw })
        });
        answer.ranking = named.collect();

        if has_first_stage(self.matcher)
            && let Err(fault) = self.first_stage(sample).await
        {
            let what = "the embedding model that helps to choose what is ranked does not answer";
            answer.notes.push(format!("{what}: {fault}"));
        }
        match self.floor(&detected, &ranking).await {
            Ok(floor) => answer.min_score_proposed = Some(floor),
            Err(why) => answer.notes.push(format!("no `min_score` is proposed: {why}")),
        }
        Ok(())
    }

    /// Asks the embedding model beside the reranker for vectors of the sample.
    async fn first_stage(&self, sample: &Sample) -> Result<(), RerankFault> {
        let asked = self.request("", &sample.documents, None);
        let settings = vector_settings(self.matcher, &self.credentials);
        let request = RerankRequest { documents: asked.documents, deadline: asked.deadline, ..settings };
        let made = self.reranker.embed(RerankRequest { hedge_after: None, ..request }).await;
        made.map(drop).map_err(|failed| failed.fault)
    }

    /// The floor that the control queries give, or why there is none.
    async fn floor(&self, detected: &Detected, sample: &Ranking) -> Result<f64, String> {
        let documents = built_in_documents();
        let asked = CONTROLS.iter().map(|(query, _)| {
            let request = self.request(query, &documents, Some(detected));
            self.reranker.rerank(request)
        });
        let controls = try_join_all(asked).await;
        floor(&controls.map_err(|failed| format!("a control query failed, {}", failed.fault))?, sample)
    }
}

/// What to look for; blank is absent.
fn sample_query(asked: Option<&str>, most: usize) -> Result<String, Error> {
    let query = asked.map(str::trim).filter(|query| !query.is_empty()).unwrap_or(SAMPLE_QUERY);
    if query.chars().nth(most).is_some() {
        let detail = format!("a query has at most {most} characters");
        return Err(Error::invalid("/query", "too_long", detail));
    }
    Ok(query.to_owned())
}

/// Without the query string, which may hold a token.
fn shown_url(url: &url::Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.into()
}

/// Scores are told to four digits, as in matches.
fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}

fn milliseconds(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_what_to_do() {
        let fault = MatcherFault::from(RerankFault::Timeout);
        assert_eq!(fault.reason, "timeout");
        assert!(fault.detail.starts_with("the endpoint did not answer in time. Raise `timeout_ms`"));
    }

    #[test]
    fn a_query_string_is_not_shown() {
        let url = url::Url::parse("https://h.example/v1/rerank?api-key=hush").unwrap();
        assert_eq!(shown_url(&url), "https://h.example/v1/rerank");
    }
}
