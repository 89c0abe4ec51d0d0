//! Client for external rerank endpoints.
//!
//! Owns what goes over the wire to a matcher, how its answer is read, which addresses may be called, and what counts
//! as a fault. Knows nothing of tools, catalogs, sessions or stores: it gets texts and gives back an order. A fault
//! is never an error for the agent; the caller ranks by keyword instead and tells the reason.
//!
//! `dialect` tells how request shapes differ, `providers` is the table of what is known about hosts, `route` makes URLs,
//! `headers` and `body` make requests, `wire` sends one through `clients`, `parse` reads its answer, `refusal` its error, `batch` cuts and
//! merges, `vectors` knows endpoints that make vectors, `probe` finds out what the table does not know, and `client` puts
//! them in order. `resilience` and `resilient` stand before all that: breaker, cache, shared calls, a limit on calls at
//! once; `shared` is what is kept where other processes find it.

#[cfg(test)]
#[path = "../../fuzz/src/checks/rerank_answer.rs"]
pub(crate) mod answer_check;
mod batch;
mod body;
mod client;
mod clients;
mod dialect;
mod fault;
mod guard;
mod headers;
mod parse;
mod probe;
mod providers;
mod refusal;
mod request;
pub mod resilience;
mod resilient;
mod retry;
mod route;
mod shared;
mod vectors;
mod wire;

use std::fmt;

use async_trait::async_trait;

pub use client::HttpReranker;
pub(crate) use clients::GuardedClients;
pub use fault::{Flaw, RerankFault, Unsendable};
pub use guard::{AddressPolicy, check_url};
pub(crate) use guard::{BlockedAddress, SystemLookup};
pub use probe::WRONG_WAY_ROUND;
pub use request::{Detected, Failed, Ranked, Ranking, RerankRequest, Vectors};
pub use resilience::State;
pub use resilient::{Called, EndpointStatus, Observer, Resilient};
pub use shared::SharedRankings;

/// What ranks documents for a query.
#[async_trait]
pub trait Reranker: Send + Sync + fmt::Debug {
    /// Ranks the documents of one request, in as many calls as the endpoint's limits ask for.
    ///
    /// # Errors
    /// With a [`RerankFault`]; the caller falls back to keyword ranking and tells [`RerankFault::reason`].
    async fn rerank(&self, request: RerankRequest) -> Result<Ranking, Failed>;

    /// Makes the vectors of the documents of one request, whose query is left out.
    ///
    /// # Errors
    /// With a [`RerankFault`].
    async fn embed(&self, request: RerankRequest) -> Result<Vectors, Failed>;

    /// Finds out how the endpoint of a request wants to be asked, with at most three calls of a control pair; the
    /// documents of the request are not sent. [`Reranker::rerank`] does the same where it has to.
    ///
    /// # Errors
    /// A [`RerankFault`], when no way of asking gave a ranking.
    async fn probe(&self, request: &RerankRequest) -> Result<Detected, RerankFault>;
}

/// Stands in where no HTTP client could be made: every call is answered as if the endpoint could not be reached.
#[derive(Debug, Clone, Copy)]
pub struct NoReranker;

#[async_trait]
impl Reranker for NoReranker {
    async fn rerank(&self, _request: RerankRequest) -> Result<Ranking, Failed> {
        Err(RerankFault::Unreachable.into())
    }

    async fn embed(&self, _request: RerankRequest) -> Result<Vectors, Failed> {
        Err(RerankFault::Unreachable.into())
    }

    async fn probe(&self, _request: &RerankRequest) -> Result<Detected, RerankFault> {
        Err(RerankFault::Unreachable)
    }
}
