//! Comparing the queries of a search with the vectors of the tools that it sees, as far as those are there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::try_join_all;

use super::super::context::Context;
use super::super::vectors::{Outlook, Snapshot, Source, ViewVectors};
use super::super::{Error, Toolrack, blocking};
use super::endpoint::candidates;
use crate::core::digest::Digest;
use crate::core::embedding::Embedding;
use crate::core::endorsed::Endorsed;
use crate::core::lexical::Outcome;
use crate::core::policy::{Matcher, MatcherKind};
use crate::core::warning::Warning;
use crate::rerank::{Flaw, RerankFault};
use crate::telemetry::warn_of;

/// More products of numbers than this are summed where they hold up nobody.
const INLINE_PRODUCTS: usize = 1 << 20;
/// A model that is found to be another is asked anew; twice, because the finding needs an answer as well.
const TURNS: usize = 3;

/// One search that compares vectors.
pub(super) struct Comparing<'a> {
    pub service: &'a Toolrack,
    pub context: &'a Context,
    pub matcher: &'a Matcher,
    pub words: &'a [Outcome],
    pub source: Source,
    /// When its time is over.
    pub ends: Instant,
    /// Whether vectors of tools that are wanted and not there are waited for.
    pub is_patient: bool,
}

/// The tools by cosine for each query of a search.
#[derive(Debug)]
pub(super) struct Comparison {
    /// None for a query that asks nothing of an endpoint; empty where no tool has a vector.
    pub orders: Vec<Option<Vec<Endorsed>>>,
    pub warning: Option<Warning>,
    /// Why no tool has a vector, where none has.
    pub reason: &'static str,
}

/// Vectors to compare, of one generation.
struct Ready {
    serial: u64,
    /// None for a query that is not asked.
    queries: Vec<Option<Embedding>>,
    vectors: Arc<ViewVectors>,
}

/// The vectors of tools as far as they are there.
struct Gathered {
    snapshot: Snapshot,
    warning: Option<Warning>,
    outlook: Outlook,
}

impl Comparing<'_> {
    /// Compares each text of a query that is asked.
    pub(super) async fn compare(&self, texts: &[Option<String>]) -> Result<Comparison, &'static str> {
        let ready = self.agreed(texts).await?;
        let Gathered { snapshot, warning, outlook } = self.gather(&ready).await?;
        self.service.note_use(&self.source.space, &ready.vectors);
        let reason = if outlook.being_made > 0 {
            RerankFault::Timeout
        } else {
            outlook.fault.or(outlook.refusal).unwrap_or(RerankFault::Malformed(Flaw::Vectors))
        };
        let orders = orders(ready.vectors, snapshot, ready.queries).await.map_err(|error| {
            tracing::error!(%error, "vectors could not be compared");
            "vectors_unreadable"
        })?;
        Ok(Comparison { orders, warning, reason: reason.reason() })
    }

    /// The queries' vectors and the view's, which are of one model.
    async fn agreed(&self, texts: &[Option<String>]) -> Result<Ready, &'static str> {
        let space = &self.source.space;
        for _ in 0..TURNS {
            let ready = self.ready(texts).await?;
            if space.serial() != ready.serial {
                continue;
            }
            let width = space.width();
            let fits = |query: &Embedding| width.is_none_or(|width| width == query.width());
            if ready.queries.iter().flatten().all(fits) {
                return Ok(ready);
            }
            space.doubt();
        }
        Err(RerankFault::Malformed(Flaw::Vectors).reason())
    }

    /// The queries' vectors and the view's, asked for at once; by then it is known whether the endpoint's model is still the one
    /// of the vectors that are stored, where that can be waited for.
    async fn ready(&self, texts: &[Option<String>]) -> Result<Ready, &'static str> {
        let (service, source, ends) = (self.service, &self.source, self.ends);
        let (space, entry) = (&source.space, &self.context.entry);
        let serial = space.serial();
        // What was said in another generation does not count in this one.
        let tenant = Digest::of_parts(&[&source.tenant.0, &serial.to_le_bytes()]);
        let asked = texts.iter().map(|text| async move {
            let Some(text) = text else { return Ok(None) };
            let request = source.request(vec![text.clone()]);
            service.0.reranker.embed_query(tenant, request, ends).await.map(Some)
        });
        let view = async {
            let read = service.view_vectors(space, entry);
            let Ok(read) = tokio::time::timeout_at(ends.into(), read).await else {
                return Err(RerankFault::Timeout.reason());
            };
            let vectors = read.map_err(|error| unreadable(&error))?;
            service.fill(source, entry, &vectors, &[], false);
            if self.is_patient && !space.is_checked() {
                space.settled(&[], true, ends).await;
            }
            Ok(vectors)
        };
        // The queries first: where the endpoint fails, it is their fault that is told.
        let (queries, vectors) = tokio::join!(try_join_all(asked), view);
        let queries = queries.map_err(|fault: RerankFault| fault.reason())?;
        Ok(Ready { serial, queries, vectors: vectors? })
    }

    /// What is there of a view's vectors, once those that are wanted are made, or the time is over.
    async fn gather(&self, ready: &Ready) -> Result<Gathered, &'static str> {
        let (service, space, vectors) = (self.service, &self.source.space, &*ready.vectors);
        let (mut snapshot, mut lacking) = (vectors.snapshot(), vectors.missing());
        if lacking.is_empty() && !vectors.is_oversized {
            let outlook = space.outlook([].iter());
            return Ok(Gathered { snapshot, warning: None, outlook });
        }
        let wanted = self.wanted(vectors, &lacking);
        if vectors.is_oversized {
            (snapshot, lacking) = self.part(ready, &wanted).await?;
        }
        let first: Vec<usize> =
            wanted.iter().copied().filter(|at| lacking.binary_search(at).is_ok()).collect();
        let entry = &self.context.entry;
        service.fill(&self.source, entry, vectors, &first, self.is_patient);
        service.fill(&self.source, entry, vectors, &lacking, false);
        if self.is_patient && !first.is_empty() {
            space.settled(&texts_of(vectors, &first), false, self.ends).await;
            if vectors.is_oversized {
                (snapshot, lacking) = self.part(ready, &wanted).await?;
            } else {
                (snapshot, lacking) = (vectors.snapshot(), vectors.missing());
            }
        }
        let outlook = space.outlook(texts_of(vectors, &lacking).iter());
        let warning = self.incomplete(vectors, lacking.len(), wanted.len(), outlook);
        Ok(Gathered { snapshot, warning, outlook })
    }

    /// Some positions of a view whose vectors are not kept together, in order, and those of them without one.
    async fn part(&self, ready: &Ready, positions: &[usize]) -> Result<(Snapshot, Vec<usize>), &'static str> {
        let texts = texts_of(&ready.vectors, positions);
        let kept = self.service.kept(&self.source.space, ready.serial, &texts).await;
        let kept = kept.map_err(|error| unreadable(&error))?;
        let mut part = vec![None; ready.vectors.tools.len()];
        for (at, text) in positions.iter().zip(&texts) {
            part[*at] = kept.get(text).cloned();
        }
        let lacking = positions.iter().copied().filter(|at| part[*at].is_none()).collect();
        Ok((part.into(), lacking))
    }

    /// The tools that a search waits for, by position, in order: of those without a vector (of all, where none is kept) the best
    /// by words for any query, with room for each group.
    fn wanted(&self, vectors: &ViewVectors, missing: &[usize]) -> Vec<usize> {
        let most = self.matcher.max_documents as usize;
        if !vectors.is_oversized && missing.len() <= most {
            return missing.to_vec();
        }
        let missing: HashSet<usize> = missing.iter().copied().collect();
        let places: HashMap<u32, usize> = (0..).zip(&vectors.tools).map(|(at, tool)| (tool.0, at)).collect();
        let each = (most / self.words.len().max(1)).max(1);
        let best = self.words.iter().flat_map(|words| candidates(self.context, words, &[], each));
        let best = best.filter_map(|id| places.get(&id).copied());
        let mut wanted: Vec<usize> = best.filter(|at| vectors.is_oversized || missing.contains(at)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// What is to be said where tools have no vector.
    fn incomplete(
        &self,
        vectors: &ViewVectors,
        lacking: usize,
        compared: usize,
        outlook: Outlook,
    ) -> Option<Warning> {
        let all = vectors.tools.len();
        let mut parts = Vec::new();
        if vectors.is_oversized {
            parts.push(format!(
                "the vectors of {all} tools take more memory than `cache.vectors_bytes`, so only the {compared} that the \
                 words find best are compared"
            ));
        }
        if lacking > 0 {
            let instead = match (self.matcher.kind, self.matcher.min_score) {
                (MatcherKind::Embedding, Some(_)) => "cannot reach `min_score`",
                _ => "are found by words alone",
            };
            parts.push(format!("{lacking} of {all} tools have no vector and {instead}"));
        }
        if outlook.being_made > 0 {
            parts.push(format!("{} are being made", outlook.being_made));
        }
        if outlook.refused > 0 {
            let reason = outlook.refusal.map_or("", |fault| fault.reason());
            let refused = outlook.refused;
            parts
                .push(format!("the endpoint refuses {refused} ({reason}), which are tried again in an hour"));
        }
        if let Some(fault) = outlook.fault.filter(|_| lacking > outlook.being_made + outlook.refused) {
            parts.push(format!("the endpoint failed ({}), and the next search goes on", fault.reason()));
        }
        (!parts.is_empty()).then(|| Warning::new("vectors_incomplete", parts.join("; ")))
    }
}

fn unreadable(error: &Error) -> &'static str {
    warn_of!(error, "stored vectors cannot be read");
    "vectors_unreadable"
}

/// The texts at some positions.
fn texts_of(vectors: &ViewVectors, positions: &[usize]) -> Vec<Digest> {
    positions.iter().filter_map(|at| vectors.tools.get(*at)).map(|tool| tool.1).collect()
}

/// For each query the tools that have a vector of its width, by cosine; equal ones by id.
async fn orders(
    vectors: Arc<ViewVectors>,
    snapshot: Snapshot,
    queries: Vec<Option<Embedding>>,
) -> Result<Vec<Option<Vec<Endorsed>>>, Error> {
    let products = vectors.tools.len() * queries.iter().flatten().map(Embedding::width).sum::<usize>();
    let work = move || {
        let order = |query: &Embedding| {
            let scored = vectors.tools.iter().zip(snapshot.iter()).filter_map(|((id, _), kept)| {
                let raw = query.cosine(&kept.as_ref()?.vector)?;
                Some(Endorsed { id: *id, score: raw.max(0.0), raw })
            });
            let mut order: Vec<Endorsed> = scored.collect();
            order.sort_by(by_cosine);
            order
        };
        queries.iter().map(|query| query.as_ref().map(order)).collect()
    };
    if products <= INLINE_PRODUCTS { Ok(work()) } else { blocking(work).await }
}

/// The most like first; equal ones by id.
pub(super) fn by_cosine(a: &Endorsed, b: &Endorsed) -> std::cmp::Ordering {
    b.raw.total_cmp(&a.raw).then(a.id.cmp(&b.id))
}
