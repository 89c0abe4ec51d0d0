//! Ranking: the endpoint of the merged config where there is one, the keyword engine otherwise and as the fallback.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use secrecy::SecretString;
use serde::Serialize;
use utoipa::ToSchema;

use super::context::{Caller, Context};
use super::{Error, Toolrack, blocking};
use crate::core::digest::Digest;
use crate::core::lexical::{Document, Explanation, Matched, Outcome};
use crate::core::matches::{
    Endorsed, EndpointRules, Evidence, Found, by_endpoint, by_keywords, endpoint_text,
};
use crate::core::named::promote;
use crate::core::policy::{Fusion, Matcher, origin_of};
use crate::core::ranking::{CatalogIndex, Part, explain, search};
use crate::rerank::{DialectChoice, RerankFault, RerankRequest, check_url};

/// One place in so many is kept for groups that have no tool among the best.
const GROUP_SHARE: usize = 4;

/// Why a configured endpoint may not have ranked: every `reason` of a degraded search.
pub const FALLBACK_REASONS: [&str; 17] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = RerankFault::REASONS;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, "key_unreadable"]
};

/// What an endpoint that takes one is told, where the config does not say it.
const INSTRUCTION: &str = "Given a user request to an AI agent, retrieve the tools (functions) whose description says \
                           they can carry out the request.";

/// A field of a tool that holds a word.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FieldWeight {
    /// `name`, `group`, `lead` (first sentence), `description` (the rest), `parameter`, `parameter_description`, `value` or
    /// `alias`.
    #[schema(value_type = String)]
    pub field: &'static str,
    /// What a word in this field counts, before the field's length.
    pub weight: f64,
}

/// One word's part in a match's score.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TermExplanation {
    /// The word of the query.
    pub typed: String,
    /// What the tool holds for it.
    pub matched: String,
    /// `word`, `stem`, `pair`, `joined`, `concept`, `characters`, `split` or `correction`.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// Fields of the tool that hold it.
    pub fields: Vec<FieldWeight>,
    /// Rarity in these catalogs.
    pub idf: f64,
    /// What the form counts for beside others, before rarity.
    pub weight: f64,
    /// How much the tool is about it: occurrences by field weight and length, at most 2.5.
    pub impact: f64,
    /// What it adds to the score before the bonus: `weight` times `idf` times `impact`.
    pub contribution: f64,
}

/// Why a match has its score.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MatchExplanation {
    /// `lexical`, or `lexical+vectors` where likeness in meaning was added to the words.
    #[schema(value_type = String)]
    pub ranker: &'static str,
    pub terms: Vec<TermExplanation>,
    /// Words of the query that the tool holds in no form.
    pub missing: Vec<String>,
    /// 0 to 1: share of the query's weight that the tool matches, and that its name does.
    pub coverage: f64,
    pub name_coverage: f64,
    /// What the sum is multiplied by: more for coverage and a name that the query says all of, less for a tool that changes
    /// something where the query asks for no change.
    pub bonus: f64,
    /// -1 to 1: how like the query the tool is in meaning; absent where that was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// What `similarity` adds to the score; less than 0 for a tool that is less like the query than others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity_contribution: Option<f64>,
    /// The keyword score: the sum of the contributions, times the bonus, and what the similarity adds, at least 0. In other modes it is
    /// evidence beside the endpoint's.
    pub score: f64,
    /// What the endpoint said, where one ranked; the match's `score` is that in 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_score: Option<f64>,
    /// Whether the query names the tool, which puts it before all that it does not name.
    pub named: bool,
    /// What the confidence of keyword matches comes from. What stands before a surer match is as sure as that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// Queries of one search.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub caller: &'a Caller,
    pub context: &'a Context,
    pub queries: &'a [String],
    /// The agent's task, which an endpoint is told beside each query.
    pub task: Option<&'a str>,
    /// Most matches of each.
    pub limit: usize,
}

/// What ranked, and what was found.
#[derive(Debug)]
pub(super) struct Ranking {
    pub found: Vec<Found>,
    pub by_endpoint: bool,
    /// Why a configured endpoint did not rank.
    pub fallback: Option<&'static str>,
}

impl Toolrack {
    /// Ranks the visible tools for each query, at most `limit` matches each. Never fails because of an endpoint.
    pub(super) async fn rank(&self, asking: &Asking<'_>) -> Result<Ranking, Error> {
        let &Asking { context, queries, limit, .. } = asking;
        // Nobody is asked about nothing.
        let anything = context.view().visible().next().is_some();
        let matcher = context.policy().matcher.as_ref().filter(|_| anything);
        // An endpoint ranks more than is shown, and needs the words' evidence about each.
        let wanted = matcher.map_or(limit, |matcher| limit.max(matcher.max_documents as usize));
        let words = self.keyword_outcomes(context, queries, wanted).await?;
        let mut fallback = None;
        if let Some(matcher) = matcher {
            match self.rank_by_endpoint(asking, matcher, &words).await {
                Ok(found) => return Ok(Ranking { found, by_endpoint: true, fallback: None }),
                Err(reason) => {
                    tracing::debug!(
                        reason,
                        host = matcher.endpoint.host_str(),
                        "the rerank endpoint did not answer; keywords rank"
                    );
                    fallback = Some(reason);
                }
            }
        }
        let found = words.into_iter().map(|outcome| by_keywords(&cut(outcome, limit))).collect();
        Ok(Ranking { found, by_endpoint: false, fallback })
    }

    pub(super) async fn keyword_outcomes(
        &self,
        context: &Context,
        queries: &[String],
        limit: usize,
    ) -> Result<Vec<Outcome>, Error> {
        let view = context.view();
        let indexes = self.indexes(context).await?;
        let parts = parts(context, &indexes);
        let semantic = context.policy().semantic;
        let ranked = queries.iter().map(|query| {
            let mut outcome = search(&parts, view.tools.len(), query, limit, semantic);
            promote(view, query, &mut outcome);
            outcome
        });
        Ok(ranked.collect())
    }

    /// The search index of each catalog of a view.
    async fn indexes(&self, context: &Context) -> Result<Vec<Arc<CatalogIndex>>, Error> {
        let mut indexes = Vec::new();
        for catalog in context.entry.catalogs.parts() {
            indexes.push(self.index(catalog).await?);
        }
        Ok(indexes)
    }

    /// Why tools have their keyword scores for a query.
    pub(super) async fn explain(
        &self,
        context: &Context,
        query: &str,
        ids: impl Iterator<Item = u32>,
    ) -> Result<Vec<MatchExplanation>, Error> {
        let indexes = self.indexes(context).await?;
        let (context, query, ids) = (context.clone(), query.to_owned(), ids.collect::<Vec<u32>>());
        // A search for each tool: too long for a thread that serves others.
        blocking(move || explanations(&context, &indexes, &query, &ids)).await
    }

    async fn rank_by_endpoint(
        &self,
        asking: &Asking<'_>,
        matcher: &Matcher,
        words: &[Outcome],
    ) -> Result<Vec<Found>, &'static str> {
        let &Asking { caller, context, queries, task, limit } = asking;
        check_url(&matcher.endpoint, &self.0.addresses).map_err(|_| "blocked_address")?;
        let (scope, head) = context.layer(caller, matcher.layer);
        let api_key = match scope {
            Some(scope) => self.open_secret(&scope, head, &origin_of(&matcher.endpoint))?,
            None => None,
        };
        let settings = || settings(matcher, api_key.clone());
        if !self.0.reranker.admits(&settings()) {
            return Err(RerankFault::CircuitOpen.reason());
        }
        let tenant = tenant(caller);
        let fuse = matcher.fusion != Fusion::Off;
        let asked = queries.iter().zip(words).map(|(query, words)| {
            let settings = settings();
            async move {
                let candidates = candidates(context, words, matcher.max_documents as usize);
                // The groups answer a question about all tools.
                if candidates.is_empty() || words.asks_for_all {
                    return Ok(by_keywords(words));
                }
                let request = RerankRequest {
                    query: task.map_or_else(|| query.clone(), |task| format!("{query}\nTask: {task}")),
                    documents: candidates.iter().map(|id| document(context, *id)).collect(),
                    // Both orders are joined over all that was sent.
                    top_n: if fuse { candidates.len() } else { (matcher.top_n as usize).max(limit) },
                    ..settings
                };
                let ranking =
                    self.0.reranker.rerank(tenant, request).await.map_err(|fault| fault.reason())?;
                let ranked: Vec<Endorsed> = ranking
                    .rows
                    .iter()
                    .filter_map(|row| {
                        Some(Endorsed { id: *candidates.get(row.index)?, score: row.score, raw: row.raw })
                    })
                    .collect();
                let rules = EndpointRules { min_score: matcher.min_score, limit, fuse };
                Ok(by_endpoint(&ranked, words, &rules))
            }
        });
        join_all(asked).await.into_iter().collect()
    }
}

/// The request to an endpoint but for query and documents.
pub(super) fn settings(matcher: &Matcher, api_key: Option<SecretString>) -> RerankRequest {
    let deadline = Duration::from_millis(u64::from(matcher.timeout_ms));
    let plain_header = matcher.auth_header.eq_ignore_ascii_case("authorization");
    RerankRequest {
        dialect: DialectChoice::parse(matcher.dialect.name()).unwrap_or_default(),
        model: matcher.model.clone(),
        omit_model: matcher.omit_model,
        api_key,
        // Left to the dialect where nothing else was set.
        auth_header: (!plain_header).then(|| matcher.auth_header.clone()),
        auth_scheme: matcher.auth_scheme.clone(),
        extra_headers: matcher.extra_headers.clone(),
        extra_body: matcher.extra_body.clone(),
        instruction: Some(matcher.instruction.clone().unwrap_or_else(|| INSTRUCTION.to_owned())),
        ..RerankRequest::new(matcher.endpoint.clone(), String::new(), Vec::new(), deadline)
    }
}

/// Whose answers are kept apart: the user in the project.
pub(super) fn tenant(caller: &Caller) -> Digest {
    let project = caller.project.as_ref().map(ToString::to_string).unwrap_or_default();
    Digest::of(format!("{}\n{project}", caller.user).as_bytes())
}

/// What is searched: the catalogs' indexes and the config's aliases.
fn parts<'a>(context: &'a Context, indexes: &'a [Arc<CatalogIndex>]) -> Vec<Part<'a>> {
    let catalogs = indexes.iter().zip(context.view().candidates());
    let mut parts: Vec<Part<'a>> = catalogs.map(|(index, candidates)| Part { index, candidates }).collect();
    let aliases = &context.entry.aliases;
    if !aliases.candidates.is_empty() {
        parts.push(Part { index: &aliases.index, candidates: &aliases.candidates });
    }
    parts
}

/// Why tools have their keyword scores for a query.
fn explanations(
    context: &Context,
    indexes: &[Arc<CatalogIndex>],
    query: &str,
    ids: &[u32],
) -> Vec<MatchExplanation> {
    let parts = parts(context, indexes);
    let view = context.view();
    let explained = ids.iter().filter_map(|&id| view.get(id).map(|tool| (id, tool))).map(|(id, tool)| {
        let upload = &tool.tool.tool;
        let (description, mut aliases) = (upload.description(), upload.other_names());
        aliases.extend_from_slice(context.entry.aliases.of(id));
        let document = Document {
            group: upload.group(),
            name: upload.name(),
            description: &description,
            parameters: upload.parameters(),
            aliases: &aliases,
        };
        explanation(explain(&parts, view.tools.len(), query, id, &[document], context.policy().semantic))
    });
    explained.collect()
}

fn explanation(found: Explanation) -> MatchExplanation {
    let evidence = found.outcome.hits.first().map(|hit| Evidence::of(hit, &found.outcome));
    let rounded = |number: f32| (f64::from(number) * 10_000.0).round() / 10_000.0;
    let kind = |kind: Matched| match kind {
        Matched::Word => "word",
        Matched::Stem => "stem",
        Matched::Pair => "pair",
        Matched::Joined => "joined",
        Matched::Concept => "concept",
        Matched::Characters => "characters",
        Matched::Split => "split",
        Matched::Correction => "correction",
    };
    let terms = found.terms.into_iter().map(|term| TermExplanation {
        typed: term.typed,
        matched: term.matched,
        kind: kind(term.kind),
        fields: term
            .fields
            .into_iter()
            .map(|(field, weight)| FieldWeight { field, weight: rounded(weight) })
            .collect(),
        idf: rounded(term.idf),
        weight: rounded(term.weight),
        impact: rounded(term.impact),
        contribution: rounded(term.contribution),
    });
    MatchExplanation {
        ranker: if found.alike.is_some() { "lexical+vectors" } else { "lexical" },
        terms: terms.collect(),
        missing: found.missing,
        coverage: rounded(found.coverage),
        name_coverage: rounded(found.name_coverage),
        bonus: rounded(found.bonus),
        similarity: found.alike.map(|(alike, _)| rounded(alike)),
        similarity_contribution: found.alike.map(|(_, adds)| rounded(adds)),
        score: rounded(found.score),
        endpoint_score: None,
        named: found.exact,
        evidence,
    }
}

/// The tools that are sent: all that are visible, or where there are more than `most` the best of the keyword ranking, with
/// room for the best tool of each group, so that a paraphrase without shared words still has its chance.
fn candidates(context: &Context, words: &Outcome, most: usize) -> Vec<u32> {
    let view = context.view();
    let ranked = words.hits.iter().map(|hit| hit.candidate);
    let all: Vec<u32> = {
        let known: HashSet<u32> = ranked.clone().collect();
        ranked.chain(view.visible().map(|(id, _)| id).filter(|id| !known.contains(id))).collect()
    };
    if all.len() <= most {
        return all;
    }
    let group = |id: u32| view.get(id).map(|tool| tool.group);
    let sure = most - most / GROUP_SHARE;
    let mut chosen: Vec<u32> = all[..sure].to_vec();
    let mut groups: HashSet<_> = chosen.iter().map(|id| group(*id)).collect();
    let firsts: Vec<u32> =
        all[sure..].iter().copied().filter(|id| groups.insert(group(*id))).take(most - sure).collect();
    let taken: HashSet<u32> = firsts.iter().copied().collect();
    chosen.extend(firsts);
    chosen.extend(all[sure..].iter().copied().filter(|id| !taken.contains(id)).take(most - chosen.len()));
    chosen
}

pub(super) fn document(context: &Context, id: u32) -> String {
    let view = context.view();
    let Some(tool) = view.get(id) else { return String::new() };
    endpoint_text(&tool.tool.tool, tool.stored_name(), view.group(tool), context.entry.aliases.of(id))
}

/// The best hits of a longer list; tools that the query names keep their place.
fn cut(mut outcome: Outcome, limit: usize) -> Outcome {
    let mut place = 0;
    outcome.hits.retain(|hit| {
        place += 1;
        place <= limit || hit.exact || hit.whole
    });
    outcome
}
