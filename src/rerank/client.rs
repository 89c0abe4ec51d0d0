//! The HTTP client behind [`Reranker`]: all requests of one query under one deadline.
//!
//! Owns the order of the steps: check, route, probe where needed, batches, one more try with a learned limit, merge.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::dns::Resolve;
use reqwest::header::HeaderMap;

use super::Reranker;
use super::batch::{merge, split};
use super::body::{Shape, body};
use super::dialect::Dialect;
use super::fault::{RerankFault, Unsendable};
use super::guard::{AddressPolicy, SystemLookup, check_url};
use super::headers::headers;
use super::parse::{Dropped, ReadAnswer};
use super::probe::probe;
use super::providers::{self, Limits};
use super::refusal;
use super::request::{Detected, Ranking, RerankRequest};
use super::route::{Route, route};
use super::wire::{Budget, Call, Wire};

/// Requests of one query at a time: servers queue more, and TEI refuses them.
const PARALLEL: usize = 4;

/// Calls rerank endpoints over HTTP. Cheap to share; all callers use the same connections.
#[derive(Debug)]
pub struct HttpReranker {
    wire: Wire,
}

impl HttpReranker {
    /// Builds the clients. A rustls crypto provider must have been installed for the process before.
    ///
    /// # Errors
    /// The system's certificate store cannot be used.
    pub fn new(policy: AddressPolicy) -> Result<Self, reqwest::Error> {
        let lookup: Arc<dyn Resolve> = Arc::new(SystemLookup);
        Self::with_lookup(policy, &lookup)
    }

    fn with_lookup(policy: AddressPolicy, lookup: &Arc<dyn Resolve>) -> Result<Self, reqwest::Error> {
        Ok(Self { wire: Wire::new(policy, lookup)? })
    }

    /// The route of a request that may be sent.
    fn route(&self, request: &RerankRequest) -> Result<Route, RerankFault> {
        check_url(&request.endpoint, &self.wire.policy).map_err(|_| RerankFault::Forbidden)?;
        Ok(route(&request.endpoint, request.dialect, request.model.as_deref()))
    }

    async fn call(&self, request: &RerankRequest, budget: Budget) -> Result<Ranking, RerankFault> {
        let route = self.route(request)?;
        let (positions, documents): (Vec<usize>, Vec<&str>) = request
            .documents
            .iter()
            .map(String::as_str)
            .enumerate()
            .filter(|(_, document)| !document.trim().is_empty())
            .unzip();
        if documents.is_empty() {
            let dialect = route.dialect.unwrap_or(Dialect::Cohere);
            return Ok(Ranking {
                rows: Vec::new(),
                dialect,
                notes: route.notes,
                learned_limit: None,
                detected: None,
            });
        }
        if request.query.trim().is_empty() {
            return Err(RerankFault::Unsendable(Unsendable::BlankQuery));
        }
        let (way, is_new) = match known(request, &route) {
            Some(way) => (way, false),
            None => (probe(&self.wire, request, &route, budget).await?, true),
        };
        let batches = Batches::new(&self.wire, request, &route, &way, &documents, budget)?;
        let mut learned_limit = None;
        let answers = match batches.send(batches.limits).await {
            Err((_, Some(limit))) => {
                tracing::debug!(limit, "the rerank endpoint told its limit on documents");
                learned_limit = Some(limit);
                batches.send(Limits { documents: limit, ..batches.limits }).await
            }
            first => first,
        };
        let answers = answers.map_err(|(fault, _)| fault)?;
        let mut notes = way.notes.clone();
        notes.extend(learned_limit.map(|limit| format!("the endpoint takes {limit} documents in a request")));
        notes.extend(dropped_note(&answers));
        if answers.len() > 1 && request.model.as_deref().is_some_and(is_listwise) {
            notes.push(
                "the model scores documents against each other, so scores of several requests compare badly"
                    .to_owned(),
            );
        }
        let mut rows = merge(answers.into_iter().map(|answer| answer.rows).collect(), request.top_n.max(1));
        for row in &mut rows {
            row.index = positions[row.index];
        }
        Ok(Ranking { rows, dialect: way.dialect, notes, learned_limit, detected: is_new.then_some(way) })
    }

    async fn within<T>(
        request: &RerankRequest,
        budget: Budget,
        work: impl Future<Output = Result<T, RerankFault>>,
    ) -> Result<T, RerankFault> {
        let outcome = tokio::time::timeout(budget.deadline, work).await.unwrap_or(Err(RerankFault::Timeout));
        if let Err(fault) = &outcome {
            tracing::debug!(host = request.endpoint.host_str(), reason = fault.reason(), %fault, "rerank failed");
        }
        outcome
    }
}

#[async_trait]
impl Reranker for HttpReranker {
    async fn rerank(&self, request: RerankRequest) -> Result<Ranking, RerankFault> {
        let budget = Budget { started: Instant::now(), deadline: request.deadline };
        Self::within(&request, budget, self.call(&request, budget)).await
    }

    async fn probe(&self, request: &RerankRequest) -> Result<Detected, RerankFault> {
        let budget = Budget { started: Instant::now(), deadline: request.deadline };
        let work = async { probe(&self.wire, request, &self.route(request)?, budget).await };
        Self::within(request, budget, work).await
    }
}

/// How to ask, where that needs no probe: it was found out before, or settings and URL leave one way.
fn known(request: &RerankRequest, route: &Route) -> Option<Detected> {
    let remembered = request.detected.as_ref().filter(|way| {
        // The key belongs to this origin alone.
        way.url.origin() == request.endpoint.origin()
            && route.dialect.is_none_or(|dialect| dialect == way.dialect)
    });
    if let Some(way) = remembered {
        return Some(way.clone());
    }
    let (dialect, [url]) = (route.dialect?, &route.urls[..]) else { return None };
    let (url, notes) = (url.clone(), route.notes.clone());
    Some(Detected { dialect, url, sends_top: true, limit: None, notes })
}

/// Models whose scores depend on the other documents of a request.
fn is_listwise(model: &str) -> bool {
    model.contains("jina-reranker-v3")
}

fn dropped_note(answers: &[ReadAnswer]) -> Option<String> {
    let sum =
        |count: fn(&Dropped) -> usize| answers.iter().map(|answer| count(&answer.dropped)).sum::<usize>();
    let [bad, unscored, duplicates] = [
        sum(|dropped| dropped.bad_index),
        sum(|dropped| dropped.unscored),
        sum(|dropped| dropped.duplicates),
    ];
    (bad + unscored + duplicates > 0).then(|| {
        format!("left out of the answer: {bad} with a wrong index, {unscored} without a score, {duplicates} named twice")
    })
}

/// The requests of one query.
struct Batches<'a> {
    wire: &'a Wire,
    way: &'a Detected,
    shape: Shape<'a>,
    headers: HeaderMap,
    query: &'a str,
    documents: &'a [&'a str],
    top_n: usize,
    limits: Limits,
    budget: Budget,
}

impl<'a> Batches<'a> {
    fn new(
        wire: &'a Wire,
        request: &'a RerankRequest,
        route: &'a Route,
        way: &'a Detected,
        documents: &'a [&'a str],
        budget: Budget,
    ) -> Result<Self, RerankFault> {
        let mut limits = providers::limits(route.provider, way.dialect, route.model.as_deref());
        limits.documents =
            way.limit.unwrap_or(limits.documents).min(request.known_limit.unwrap_or(usize::MAX));
        let shape = Shape::new(request, route, way.dialect, way.sends_top);
        let headers = headers(request, way.dialect)?;
        let (query, top_n) = (request.query.as_str(), request.top_n);
        Ok(Self { wire, way, shape, headers, query, documents, top_n, limits, budget })
    }

    /// Sends all documents; the rows of the answers name documents of the whole.
    ///
    /// # Errors
    /// The first fault of any request, since rows that are missing would look like bad ones; with the limit on
    /// documents that it told, if it did.
    async fn send(&self, limits: Limits) -> Result<Vec<ReadAnswer>, (RerankFault, Option<usize>)> {
        let runs = split(self.query, self.documents, limits);
        let requests = runs.into_iter().map(|run| async move {
            let documents = &self.documents[run.clone()];
            let top_n = self.top_n.clamp(1, documents.len());
            let call = Call {
                url: self.way.url.clone(),
                headers: self.headers.clone(),
                body: body(&self.shape, self.query, documents, top_n).into(),
                documents: documents.len(),
            };
            match self.wire.send(&call, self.budget).await {
                Ok(mut answer) => {
                    for row in &mut answer.rows {
                        row.index += run.start;
                    }
                    // Some servers ignore `top_n`.
                    answer.rows.truncate(self.top_n.max(1));
                    Ok((run.start, answer))
                }
                Err(failure) => {
                    Err((failure.fault, refusal::limit(failure.status(), &failure.text, documents.len())))
                }
            }
        });
        // In any order, so that a fault need not wait for the requests before it.
        let mut answers: Vec<_> = stream::iter(requests).buffer_unordered(PARALLEL).try_collect().await?;
        answers.sort_unstable_by_key(|(start, _)| *start);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }
}

#[cfg(test)]
mod tests;
