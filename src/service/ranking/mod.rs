//! Ranking: the endpoint of the merged config where there is one, the keyword engine otherwise and as the fallback.

mod comparison;
mod endpoint;
mod explanation;
mod shared;
mod vectors;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::Instrument as _;
use tracing::field::Empty;
use utoipa::ToSchema;

use self::endpoint::{Endorsement, Endpoint};
use super::context::{Caller, Context};
use super::timing::{Part as TimePart, spend, timed};
use super::{Error, Toolrack};
use crate::core::lexical::Outcome;
use crate::core::matches::{Found, by_keywords};
use crate::core::named::promote;
use crate::core::policy::Matcher;
use crate::core::ranking::{CatalogIndex, Part, search};
use crate::core::spread;
use crate::core::warning::Warning;
use crate::rerank::RerankFault;

pub(super) use endpoint::{document, endpoints, has_first_stage, settings, tenant, vector_settings};
pub use explanation::{FieldWeight, MatchExplanation, TermExplanation};
pub(super) use shared::StoredRankings;

/// Why a configured endpoint may not have ranked: every `reason` of a degraded search.
pub const FALLBACK_REASONS: [&str; 18] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = RerankFault::REASONS;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, "key_unreadable", "vectors_unreadable"]
};

/// The reason where the key of a request may not ask an endpoint so often; that of an endpoint that says so itself.
const ALLOWANCE_USED: &str = "rate_limited";

/// What ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// An external endpoint that orders texts.
    Rerank,
    /// Vectors that an external endpoint made.
    Embedding,
    /// The built-in keyword engine.
    Keyword,
}

impl SearchMode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Rerank => "rerank",
            Self::Embedding => "embedding",
            Self::Keyword => "keyword",
        }
    }
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

impl Asking<'_> {
    /// A query as an endpoint gets it.
    fn text(&self, query: &str) -> String {
        self.task.map_or_else(|| query.to_owned(), |task| format!("{query}\nTask: {task}"))
    }
}

/// What ranked, and what was found.
#[derive(Debug)]
pub(super) struct Ranking {
    pub found: Vec<Found>,
    pub mode: SearchMode,
    /// Why a configured endpoint did not rank.
    pub fallback: Option<&'static str>,
    /// What the endpoint could not do.
    pub warnings: Vec<Warning>,
}

impl Toolrack {
    /// Ranks the visible tools for each query, at most `limit` matches each. Never fails because of an endpoint.
    pub(super) async fn rank(&self, asking: &Asking<'_>) -> Result<Ranking, Error> {
        let began = Instant::now();
        let mut waited = Duration::ZERO;
        let span = tracing::info_span!(
            target: crate::SPANS,
            "retrieval",
            "otel.name" = "retrieval",
            "gen_ai.operation.name" = "retrieval",
            "toolrack.search.queries" = asking.queries.len(),
            "toolrack.search.mode" = Empty,
            "toolrack.search.fallback" = Empty,
        );
        let ranking = self.rank_within(asking, &mut waited).instrument(span.clone()).await;
        spend(TimePart::Rank, began.elapsed().saturating_sub(waited));
        if let Ok(ranking) = &ranking {
            span.record("toolrack.search.mode", ranking.mode.as_str());
            span.record("toolrack.search.fallback", ranking.fallback);
        }
        ranking
    }

    /// As [`Self::rank`]; `waited` is what an endpoint took of it.
    async fn rank_within(&self, asking: &Asking<'_>, waited: &mut Duration) -> Result<Ranking, Error> {
        let &Asking { caller, context, queries, limit, .. } = asking;
        // Nobody is asked about nothing.
        let anything = context.view().visible().next().is_some();
        let matcher = context.policy().matcher.as_ref().filter(|_| anything);
        let endpoint = matcher.map(|matcher| self.willing(caller, context, matcher));
        let is_over = matches!(endpoint, Some(Ok(_))) && !caller.may_rerank();
        let endpoint = if is_over { Some(Err(ALLOWANCE_USED)) } else { endpoint };
        // An endpoint ranks more than is shown, and needs the words' evidence about each.
        let wanted = match &endpoint {
            Some(Ok(endpoint)) => limit.max(endpoint.matcher.max_documents as usize),
            _ => spread::wanted(limit),
        };
        let words = self.keyword_outcomes(context, queries, wanted).await?;
        let ranked = match endpoint {
            None => None,
            Some(Err(reason)) => Some(Err(reason)),
            Some(Ok(endpoint)) => {
                let began = Instant::now();
                let ranked =
                    timed(TimePart::Endpoint, self.rank_by_endpoint(asking, &endpoint.begin(), &words)).await;
                *waited = began.elapsed();
                Some(ranked)
            }
        };
        let fallback = match ranked {
            Some(Ok(Endorsement { found, mode, warnings })) => {
                return Ok(Ranking { found, mode, fallback: None, warnings });
            }
            Some(Err(reason)) => {
                tracing::debug!(reason, "the matcher's endpoint did not rank; keywords do");
                Some(reason)
            }
            None => None,
        };
        let view = context.view();
        let group_of = |id: u32| view.get(id).map_or("", |tool| tool.tool.tool.group());
        let shown = words.into_iter().map(|outcome| spread::first(outcome, limit, group_of));
        let found = shown.map(|outcome| by_keywords(&outcome)).collect();
        let detail =
            "the searches per minute that may ask an endpoint with this key are used up; keywords rank";
        let warnings = is_over.then(|| Warning::new("rerank_allowance", detail)).into_iter().collect();
        Ok(Ranking { found, mode: SearchMode::Keyword, fallback, warnings })
    }

    /// The endpoint, where it may be asked now.
    pub(super) fn willing<'a>(
        &self,
        caller: &Caller,
        context: &Context,
        matcher: &'a Matcher,
    ) -> Result<Endpoint<'a>, &'static str> {
        let endpoint = self.endpoint(caller, context, matcher)?;
        if self.0.reranker.admits(&endpoint.settings()) {
            Ok(endpoint)
        } else {
            Err(RerankFault::CircuitOpen.reason())
        }
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
