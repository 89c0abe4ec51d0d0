//! The HTTP client behind [`Reranker`]: all requests of one query under one deadline.
//!
//! Owns the order of the steps: check, route, probe where needed, batches, one more try with a learned limit, merge.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::dns::Resolve;
use reqwest::header::HeaderMap;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::Reranker;
use super::batch::{merge, scale, split};
use super::body::{Shape, body};
use super::fault::{Flaw, RerankFault, Unsendable};
use super::guard::{AddressPolicy, SystemLookup, check_url};
use super::headers::headers;
use super::parse::{self, Dropped, ReadAnswer};
use super::probe::probe;
use super::providers::{self, Limits};
use super::refusal;
use super::request::{Detected, Failed, Ranking, RerankRequest, Vectors};
use super::route::{Route, route};
use super::vectors;
use super::wire::{Budget, Call, Wire, max_answer};
use crate::core::embedding::Embedding;
use crate::core::policy::Dialect;

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

    async fn rank(
        &self,
        request: &RerankRequest,
        budget: Budget,
        told: &TellsLimit,
    ) -> Result<Ranking, RerankFault> {
        let (positions, documents) = texts(request);
        let route = self.route(request)?;
        if documents.is_empty() {
            let dialect = route.dialect.unwrap_or(Dialect::Cohere);
            let (rows, notes) = (Vec::new(), route.notes);
            return Ok(Ranking { rows, dialect, notes, learned_limit: None, detected: None });
        }
        if request.query.trim().is_empty() {
            return Err(RerankFault::Unsendable(Unsendable::BlankQuery));
        }
        let (way, is_new) = self.way(request, &route, budget).await?;
        let batches = Batches::new(&self.wire, request, &route, &way, &documents, budget)?;
        let answers = batches.send_all(parse::ranking, told).await?;
        let learned_limit = told.limit();
        let mut answers: Vec<ReadAnswer> = answers
            .into_iter()
            .map(|(start, mut answer)| {
                for row in &mut answer.rows {
                    row.index += start;
                }
                // Some servers ignore `top_n`.
                answer.rows.truncate(request.top_n.max(1));
                answer
            })
            .collect();
        let mut notes = way.notes.clone();
        notes.extend(learned_limit.map(|limit| format!("the endpoint takes {limit} documents in a request")));
        notes.extend(dropped_note(&answers));
        if answers.len() > 1 && request.model.as_deref().is_some_and(is_listwise) {
            notes.push(
                "the model scores documents against each other, so scores of several requests compare badly"
                    .to_owned(),
            );
        }
        let rows = answers.drain(..).map(|answer| answer.rows).collect();
        let mut rows = merge(rows, request.top_n.max(1), scale(way.dialect));
        for row in &mut rows {
            row.index = positions[row.index];
        }
        Ok(Ranking { rows, dialect: way.dialect, notes, learned_limit, detected: is_new.then_some(way) })
    }

    async fn vectors(
        &self,
        request: &RerankRequest,
        budget: Budget,
        told: &TellsLimit,
    ) -> Result<Vectors, RerankFault> {
        let (positions, documents) = texts(request);
        let route = self.route(request)?;
        let mut rows = vec![None; request.documents.len()];
        if documents.is_empty() {
            return Ok(Vectors { rows, learned_limit: None, detected: None });
        }
        let (way, is_new) = self.way(request, &route, budget).await?;
        let batches = Batches::new(&self.wire, request, &route, &way, &documents, budget)?;
        let answers = batches.send_all(vectors::all, told).await?;
        let read = answers.into_iter().flat_map(|(_, vectors)| vectors);
        for (position, vector) in positions.into_iter().zip(read) {
            rows[position] = vector;
        }
        let mut widths = rows.iter().flatten().map(Embedding::width);
        let width = widths.next();
        if widths.any(|other| Some(other) != width) {
            return Err(RerankFault::Malformed(Flaw::Vectors));
        }
        Ok(Vectors { rows, learned_limit: told.limit(), detected: is_new.then_some(way) })
    }

    /// How to ask, and whether that was found out just now.
    async fn way(
        &self,
        request: &RerankRequest,
        route: &Route,
        budget: Budget,
    ) -> Result<(Detected, bool), RerankFault> {
        let (way, is_new) = match known(request, route) {
            Some(way) => (way, false),
            None => (probe(&self.wire, request, route, budget).await?, true),
        };
        Span::current().record("gen_ai.provider.name", way.dialect.name());
        Ok((way, is_new))
    }

    async fn within<T>(
        request: &RerankRequest,
        budget: Budget,
        work: impl Future<Output = Result<T, RerankFault>>,
    ) -> Result<T, RerankFault> {
        let outcome = tokio::time::timeout(budget.deadline, work).await.unwrap_or(Err(RerankFault::Timeout));
        if let Err(fault) = &outcome {
            Span::current().record("error.type", fault.reason()).record("otel.status_code", "ERROR");
            tracing::debug!(host = request.endpoint.host_str(), reason = fault.reason(), %fault, "rerank failed");
        }
        outcome
    }
}

#[async_trait]
impl Reranker for HttpReranker {
    async fn rerank(&self, request: RerankRequest) -> Result<Ranking, Failed> {
        let (budget, told) = (Budget::of(&request), TellsLimit::default());
        let ranked = Self::within(&request, budget, self.rank(&request, budget, &told));
        let ranked = ranked.instrument(call_span("rerank", &request)).await;
        ranked.map_err(|fault| Failed { fault, learned_limit: told.limit() })
    }

    async fn embed(&self, request: RerankRequest) -> Result<Vectors, Failed> {
        let (budget, told) = (Budget::of(&request), TellsLimit::default());
        let request = RerankRequest { query: String::new(), ..request };
        let made = Self::within(&request, budget, self.vectors(&request, budget, &told));
        let made = made.instrument(call_span("embeddings", &request)).await;
        made.map_err(|fault| Failed { fault, learned_limit: told.limit() })
    }

    async fn probe(&self, request: &RerankRequest) -> Result<Detected, RerankFault> {
        let budget = Budget { hedge_after: None, ..Budget::of(request) };
        let work = async { probe(&self.wire, request, &self.route(request)?, budget).await };
        Self::within(request, budget, work).instrument(call_span("rerank", request)).await
    }
}

/// The span of a call, with all its requests (<https://github.com/open-telemetry/semantic-conventions-genai>, where a call covers
/// what is sent again). `rerank` is no name of the conventions, which have none for it.
fn call_span(operation: &'static str, request: &RerankRequest) -> Span {
    tracing::info_span!(
        target: crate::SPANS,
        "endpoint",
        "otel.name" = request.model.as_ref().map_or(operation.to_owned(), |model| format!("{operation} {model}")),
        "otel.kind" = "client",
        "gen_ai.operation.name" = operation,
        "gen_ai.request.model" = request.model.as_deref(),
        "gen_ai.provider.name" = Empty,
        "server.address" = request.endpoint.host_str(),
        "server.port" = request.endpoint.port_or_known_default(),
        "error.type" = Empty,
        "otel.status_code" = Empty,
    )
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

/// Reads a 2xx answer to a request in a dialect with so many documents; the flag says that its content type is that of a web page.
type Reader<T> = fn(&[u8], Dialect, usize, bool) -> Result<T, RerankFault>;

/// The limit on documents that an endpoint told; kept whatever becomes of the call, also where its time runs out.
#[derive(Debug, Default)]
struct TellsLimit(OnceLock<usize>);

impl TellsLimit {
    fn limit(&self) -> Option<usize> {
        self.0.get().copied()
    }
}

/// The documents that are sent, with their places: blank ones would cost the whole request.
fn texts(request: &RerankRequest) -> (Vec<usize>, Vec<&str>) {
    let texts = request.documents.iter().map(String::as_str).enumerate();
    texts.filter(|(_, document)| !document.trim().is_empty()).unzip()
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
        if way.dialect == Dialect::Openai {
            limits.documents = vectors::texts(&way.url);
        }
        limits.documents =
            way.limit.unwrap_or(limits.documents).min(request.known_limit.unwrap_or(usize::MAX));
        let shape = Shape::new(request, route, way.dialect, way.sends_top);
        let headers = headers(request, way.dialect)?;
        let (query, top_n) = (request.query.as_str(), request.top_n);
        Ok(Self { wire, way, shape, headers, query, documents, top_n, limits, budget })
    }

    /// Sends all documents, once more in smaller requests where the endpoint tells a limit. The answers with the place of their
    /// first document, in the order of the documents.
    ///
    /// # Errors
    /// The first fault of any request, since rows that are missing would look like bad ones.
    async fn send_all<T>(&self, read: Reader<T>, told: &TellsLimit) -> Result<Vec<(usize, T)>, RerankFault> {
        let answers = match self.send(self.limits, read).await {
            Err(Failed { learned_limit: Some(limit), .. }) => {
                tracing::debug!(limit, "the endpoint told its limit on documents");
                let limit = *told.0.get_or_init(|| limit);
                self.send(Limits { documents: limit, ..self.limits }, read).await
            }
            first => first,
        };
        answers.map_err(|failed| failed.fault)
    }

    async fn send<T>(&self, limits: Limits, read: Reader<T>) -> Result<Vec<(usize, T)>, Failed> {
        // Where vectors are wanted, the query is a text as well.
        let query = usize::from(self.way.dialect == Dialect::Openai && !self.query.is_empty());
        let limits = Limits { documents: limits.documents.saturating_sub(query).max(1), ..limits };
        let runs = split(self.query, self.documents, limits);
        let requests = runs.into_iter().map(|run| async move {
            let documents = &self.documents[run.clone()];
            let top_n = self.top_n.clamp(1, documents.len());
            let body = body(&self.shape, self.query, documents, top_n);
            let call = Call {
                url: self.way.url.clone(),
                headers: self.headers.clone(),
                max_answer: max_answer(self.way.dialect, &body, documents.len() + query),
                body: body.into(),
            };
            let read =
                |answer: &[u8], is_html: bool| read(answer, self.way.dialect, documents.len(), is_html);
            self.wire.send(&call, self.budget, read).await.map(|answer| (run.start, answer)).map_err(
                |failure| {
                    let learned_limit =
                        refusal::limit(failure.status(), &failure.text, documents.len() + query);
                    Failed { fault: failure.fault, learned_limit }
                },
            )
        });
        // In any order, so that a fault need not wait for the requests before it.
        let mut answers: Vec<(usize, T)> =
            stream::iter(requests).buffer_unordered(PARALLEL).try_collect().await?;
        answers.sort_unstable_by_key(|(start, _)| *start);
        Ok(answers)
    }
}

#[cfg(test)]
mod tests;
