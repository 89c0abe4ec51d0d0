//! Vectors of tools that an endpoint made: kept by the scope whose matcher asks, made once for each text, in batches, and
//! compared with a query's.
//!
//! A search makes those of the tools that the words find best, at most `max_documents`, and ranks all that have one; the others
//! are made in the background meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use super::super::context::{Caller, Context};
use super::super::{Error, Toolrack, blocking, now_ms};
use super::endpoint::{Endorsement, Endpoint, candidates, document, rules};
use super::{Asking, SearchMode};
use crate::core::digest::Digest;
use crate::core::embedding::Embedding;
use crate::core::lexical::Outcome;
use crate::core::matches::{Endorsed, by_endpoint, by_keywords};
use crate::core::policy::{Matcher, MatcherKind};
use crate::core::warning::Warning;
use crate::rerank::{RerankFault, RerankRequest};
use crate::store::{VectorRow, VectorSpace};

/// Texts that are sent and stored in one step of the background work.
const STEP: usize = 256;
/// Time of one step: nobody waits for it, and self-hosted models are slow.
const STEP_TIME: Duration = Duration::from_secs(60);
/// How old a vector's last use may be before it is noted anew: an expiry of weeks needs no finer times.
const RENEW_AFTER_MS: i64 = 24 * 60 * 60 * 1_000;
/// More products of numbers than this are summed where they hold up nobody.
const INLINE_PRODUCTS: usize = 1 << 20;

/// The vectors of a view's visible tools, as far as they are there. Shared by all who see the view through one matcher.
#[derive(Debug)]
pub(in crate::service) struct ViewVectors {
    /// Each tool with the digest of its text.
    tools: Box<[(u32, Digest)]>,
    /// By position in `tools`; replaced as a whole.
    found: RwLock<Snapshot>,
    /// Whether somebody makes those that are missing.
    filling: AtomicBool,
}

type Snapshot = Arc<[Option<Arc<Embedding>>]>;

impl ViewVectors {
    fn snapshot(&self) -> Snapshot {
        Arc::clone(&self.found.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, made: Vec<(usize, Arc<Embedding>)>) {
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = found.to_vec();
        for (at, vector) in made {
            next[at] = Some(vector);
        }
        *found = next.into();
    }

    /// Positions without a vector of this width; of any width where there is none to compare with.
    fn missing(&self, width: Option<usize>) -> Vec<usize> {
        let fits = |vector: &Arc<Embedding>| width.is_none_or(|width| vector.width() == width);
        let snapshot = self.snapshot();
        (0..snapshot.len()).filter(|at| !snapshot[*at].as_ref().is_some_and(fits)).collect()
    }

    /// Bytes, if the vectors were nobody else's.
    pub(in crate::service) fn bytes(&self) -> usize {
        let vectors: usize = self.snapshot().iter().flatten().map(|vector| vector.bytes()).sum();
        vectors + self.tools.len() * (size_of::<(u32, Digest)>() + size_of::<usize>())
    }
}

/// Ends the filling of a view's vectors, whichever way.
struct Filling(Arc<ViewVectors>);

impl Filling {
    fn begin(vectors: &Arc<ViewVectors>) -> Option<Self> {
        (!vectors.filling.swap(true, Ordering::AcqRel)).then(|| Self(Arc::clone(vectors)))
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.0.filling.store(false, Ordering::Release);
    }
}

/// Where the vectors of one view come from.
#[derive(Clone)]
struct Source {
    context: Context,
    space: VectorSpace,
    tenant: Digest,
    /// What is asked but for the texts.
    settings: Arc<RerankRequest>,
}

impl Source {
    fn request(&self, documents: Vec<String>) -> RerankRequest {
        RerankRequest { documents, ..RerankRequest::clone(&self.settings) }
    }
}

impl Toolrack {
    /// Ranks by the cosines of the tools' vectors and the queries'.
    pub(super) async fn rank_by_vectors(
        &self,
        asking: &Asking<'_>,
        endpoint: &Endpoint<'_>,
        words: &[Outcome],
    ) -> Result<Endorsement, &'static str> {
        let most = endpoint.matcher.max_documents as usize;
        let (orders, warnings) = self.by_cosine(asking, endpoint, words, endpoint.ends).await?;
        let found = words.iter().zip(&orders).map(|(words, order)| {
            if words.asks_for_all {
                return by_keywords(words);
            }
            by_endpoint(&pool(words, order, most), words, &rules(endpoint.matcher, asking.limit))
        });
        Ok(Endorsement { found: found.collect(), mode: SearchMode::Embedding, warnings })
    }

    /// What a reranker is sent may be chosen by vectors as well as by words: for each query the tools by cosine, or nothing where
    /// there is no such model, no need, or no answer, which is a warning.
    pub(super) async fn first_stage(
        &self,
        asking: &Asking<'_>,
        endpoint: &Endpoint<'_>,
        words: &[Outcome],
        most: usize,
    ) -> (Vec<Vec<u32>>, Vec<Warning>) {
        let nothing = || vec![Vec::new(); asking.queries.len()];
        if endpoint.matcher.embedding_model.is_none() || asking.context.view().visible().nth(most).is_none() {
            return (nothing(), Vec::new());
        }
        // The ranking itself needs its share of the time.
        let now = Instant::now();
        let ends = now + endpoint.ends.saturating_duration_since(now) / 2;
        match self.by_cosine(asking, endpoint, words, ends).await {
            Ok((orders, warnings)) => {
                let ids = |order: Vec<Endorsed>| order.into_iter().take(most).map(|tool| tool.id).collect();
                (orders.into_iter().map(ids).collect(), warnings)
            }
            Err(reason) => {
                let detail = format!(
                    "the embedding model did not answer ({reason}); words alone chose what is ranked"
                );
                (nothing(), vec![Warning::new("first_stage_failed", detail)])
            }
        }
    }

    /// For each query the tools that have a vector, by cosine.
    async fn by_cosine(
        &self,
        asking: &Asking<'_>,
        endpoint: &Endpoint<'_>,
        words: &[Outcome],
        ends: Instant,
    ) -> Result<(Vec<Vec<Endorsed>>, Vec<Warning>), &'static str> {
        let context = asking.context;
        let source = source(context, endpoint);
        let failed = |fault: RerankFault| fault.reason();
        let vectors = self.view_vectors(&source).await.map_err(|error| {
            tracing::warn!(%error, "stored vectors cannot be read");
            "vectors_unreadable"
        })?;
        let prefix = match endpoint.matcher.kind {
            MatcherKind::Embedding => endpoint.matcher.instruction.as_deref().unwrap_or_default(),
            MatcherKind::Rerank => "",
        };
        let asked = asking.queries.iter().map(|query| {
            let text = format!("{prefix}{}", asking.text(query));
            self.0.reranker.embed(source.tenant, source.request(vec![text]), ends, true)
        });
        let made = try_join_all(asked).await.map_err(failed)?;
        let queries: Option<Vec<Embedding>> =
            made.iter().map(|vectors| vectors.rows.first().cloned().flatten()).collect();
        // A blank query.
        let queries = queries.ok_or("invalid_request")?;
        let width = queries.first().map(Embedding::width);

        let mut missing = vectors.missing(width);
        if !missing.is_empty() {
            let most = endpoint.matcher.max_documents as usize;
            let wanted = self.wanted(context, words, &vectors, &missing, most);
            self.make(&source, &vectors, &wanted, ends).await.map_err(failed)?;
            missing = vectors.missing(width);
            if !missing.is_empty() {
                self.fill_in_background(&source, &vectors);
            }
        }
        let warnings = match missing.len() {
            0 => Vec::new(),
            some => {
                let detail = format!(
                    "{some} of {} tools have no vector yet and are ranked by words; they are being made",
                    vectors.tools.len()
                );
                vec![Warning::new("vectors_incomplete", detail)]
            }
        };
        let orders = orders(vectors, queries).await.map_err(|_| "vectors_unreadable")?;
        Ok((orders, warnings))
    }

    /// Of the tools without a vector those that a search waits for: the best by words for any query, with room for each group.
    fn wanted(
        &self,
        context: &Context,
        words: &[Outcome],
        vectors: &ViewVectors,
        missing: &[usize],
        most: usize,
    ) -> Vec<usize> {
        if missing.len() <= most {
            return missing.to_vec();
        }
        let places: HashMap<u32, usize> = missing.iter().map(|at| (vectors.tools[*at].0, *at)).collect();
        let each = (most / words.len().max(1)).max(1);
        let best = words.iter().flat_map(|words| candidates(context, words, &[], each));
        let mut wanted: Vec<usize> = best.filter_map(|id| places.get(&id).copied()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Begins, at the first assembly of a view, to make the vectors that its searches will need.
    pub(in crate::service) async fn prepare_vectors(&self, caller: &Caller, context: &Context) {
        let Some(matcher) =
            context.policy().matcher.as_ref().filter(|matcher| wants_vectors(matcher, context))
        else {
            return;
        };
        let begun = self.0.caches.prepared.entry(context.entry.id).or_insert(()).await;
        if !begun.is_fresh() {
            return;
        }
        let Ok(endpoint) = self.endpoint(caller, context, matcher) else { return };
        let (service, source) = (self.clone(), source(context, &endpoint));
        tokio::spawn(async move {
            match service.view_vectors(&source).await {
                Ok(vectors) => service.fill_in_background(&source, &vectors),
                Err(error) => tracing::warn!(%error, "stored vectors cannot be read"),
            }
        });
    }

    /// Makes all vectors that the caller's tools lack under a matcher that compares them; answers how many.
    ///
    /// # Errors
    /// The database, or an internal error that holds the endpoint's fault.
    pub async fn complete_vectors(&self, caller: &Caller) -> Result<usize, Error> {
        let context = self.context(caller, &super::super::GrantFields::default()).await?;
        let Some(matcher) =
            context.policy().matcher.as_ref().filter(|matcher| wants_vectors(matcher, &context))
        else {
            return Ok(0);
        };
        let endpoint = self.endpoint(caller, &context, matcher).map_err(Error::internal)?;
        let source = source(&context, &endpoint);
        let vectors = self.view_vectors(&source).await?;
        let missing = vectors.missing(None);
        for step in missing.chunks(STEP) {
            self.make(&source, &vectors, step, Instant::now() + STEP_TIME).await.map_err(Error::internal)?;
        }
        Ok(missing.len())
    }

    fn fill_in_background(&self, source: &Source, vectors: &Arc<ViewVectors>) {
        if vectors.missing(None).is_empty() {
            return;
        }
        let Some(filling) = Filling::begin(vectors) else { return };
        let (service, source) = (self.clone(), source.clone());
        tokio::spawn(async move {
            let vectors = &filling.0;
            let missing = vectors.missing(None);
            for step in missing.chunks(STEP) {
                if let Err(fault) = service.make(&source, vectors, step, Instant::now() + STEP_TIME).await {
                    tracing::info!(
                        host = source.settings.endpoint.host_str(),
                        reason = fault.reason(),
                        left = vectors.missing(None).len(),
                        "vectors of tools could not all be made; the next search goes on"
                    );
                    return;
                }
            }
            tracing::debug!(made = missing.len(), "vectors of tools were made");
        });
    }

    /// Makes the vectors of the tools at some positions and keeps them.
    async fn make(
        &self,
        source: &Source,
        vectors: &ViewVectors,
        wanted: &[usize],
        ends: Instant,
    ) -> Result<(), RerankFault> {
        if wanted.is_empty() {
            return Ok(());
        }
        let texts = wanted.iter().map(|at| document(&source.context, vectors.tools[*at].0)).collect();
        let made = self.0.reranker.embed(source.tenant, source.request(texts), ends, false).await?;
        let now = now_ms();
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        for (at, vector) in wanted.iter().zip(&made.rows) {
            let Some(vector) = vector else { continue };
            rows.push(VectorRow { text: vectors.tools[*at].1, vector: vector.to_bytes(), used_at_ms: now });
            found.push((*at, Arc::new(vector.clone())));
        }
        for (at, vector) in &found {
            let key = (source.space.clone(), vectors.tools[*at].1);
            self.0.caches.vectors.insert(key, Arc::clone(vector)).await;
        }
        vectors.put(found);
        // They are used all the same, and made again another time.
        if let Err(error) = self.0.store.write_vectors(&source.space, rows).await {
            tracing::warn!(%error, "vectors of tools could not be stored");
        }
        Ok(())
    }

    /// The vectors of a view, read from the store where they were made before.
    async fn view_vectors(&self, source: &Source) -> Result<Arc<ViewVectors>, Error> {
        let key = (source.context.entry.id, source.space.clone());
        if let Some(vectors) = self.0.caches.view_vectors.get(&key).await {
            return Ok(vectors);
        }
        let read = self.read_vectors(source);
        let vectors = self.0.caches.view_vectors.try_get_with(key, read).await;
        vectors.map_err(|error| Error::clone(&error))
    }

    async fn read_vectors(&self, source: &Source) -> Result<Arc<ViewVectors>, Error> {
        let context = source.context.clone();
        let tools: Vec<(u32, Digest)> = blocking(move || {
            let ids = context.view().visible().map(|(id, _)| id);
            ids.map(|id| (id, Digest::of(document(&context, id).as_bytes()))).collect()
        })
        .await?;
        let mut found = Vec::with_capacity(tools.len());
        let mut unknown = Vec::new();
        for (_, text) in &tools {
            let vector = self.0.caches.vectors.get(&(source.space.clone(), *text)).await;
            if vector.is_none() {
                unknown.push(*text);
            }
            found.push(vector);
        }
        let now = now_ms();
        let rows = self.0.store.vectors(&source.space, &unknown).await?;
        let old = rows.iter().filter(|row| row.used_at_ms < now - RENEW_AFTER_MS).map(|row| row.text);
        self.0.store.touch_vectors(&source.space, old.collect(), now).await?;
        let mut stored = HashMap::with_capacity(rows.len());
        for row in rows {
            // One that cannot be read is made again.
            if let Some(vector) = Embedding::from_bytes(&row.vector).map(Arc::new) {
                self.0.caches.vectors.insert((source.space.clone(), row.text), Arc::clone(&vector)).await;
                stored.insert(row.text, vector);
            }
        }
        for ((_, text), vector) in tools.iter().zip(&mut found) {
            *vector = vector.take().or_else(|| stored.get(text).cloned());
        }
        Ok(Arc::new(ViewVectors {
            tools: tools.into(),
            found: RwLock::new(found.into()),
            filling: AtomicBool::new(false),
        }))
    }
}

/// Whether searches under this matcher compare vectors.
fn wants_vectors(matcher: &Matcher, context: &Context) -> bool {
    let is_large = || context.view().visible().nth(matcher.max_documents as usize).is_some();
    matcher.kind == MatcherKind::Embedding || (matcher.embedding_model.is_some() && is_large())
}

fn source(context: &Context, endpoint: &Endpoint<'_>) -> Source {
    let settings = endpoint.vector_settings();
    // All that may make another vector of a text: address, model, headers and body, not the key.
    let mut text = Vec::new();
    settings.feed(|piece| text.extend_from_slice(piece));
    let owner = endpoint.owner.clone();
    let space = VectorSpace { owner, space: Digest::of(&text) };
    Source { context: context.clone(), space, tenant: endpoint.tenant, settings: Arc::new(settings) }
}

/// For each query the tools that have a vector of its width, by cosine; equal ones by id.
async fn orders(vectors: Arc<ViewVectors>, queries: Vec<Embedding>) -> Result<Vec<Vec<Endorsed>>, Error> {
    let products = vectors.tools.len() * queries.iter().map(Embedding::width).sum::<usize>();
    let work = move || {
        let snapshot = vectors.snapshot();
        let order = |query: &Embedding| {
            let scored = vectors.tools.iter().zip(snapshot.iter()).filter_map(|((id, _), vector)| {
                let raw = query.cosine(vector.as_ref()?)?;
                Some(Endorsed { id: *id, score: raw.max(0.0), raw })
            });
            let mut order: Vec<Endorsed> = scored.collect();
            order.sort_by(|a, b| b.raw.total_cmp(&a.raw).then(a.id.cmp(&b.id)));
            order
        };
        queries.iter().map(order).collect()
    };
    if products <= INLINE_PRODUCTS { Ok(work()) } else { blocking(work).await }
}

/// What both orders are joined over: the best of each in turn, at most `most` tools, by cosine.
fn pool(words: &Outcome, order: &[Endorsed], most: usize) -> Vec<Endorsed> {
    if order.len() <= most {
        return order.to_vec();
    }
    let by_id: HashMap<u32, Endorsed> = order.iter().map(|tool| (tool.id, *tool)).collect();
    let mut by_words = words.hits.iter().filter_map(|hit| by_id.get(&hit.candidate));
    let mut by_cosine = order.iter();
    let mut chosen: HashMap<u32, Endorsed> = HashMap::new();
    while chosen.len() < most {
        let next = [by_cosine.next(), by_words.next()];
        if next == [None, None] {
            break;
        }
        chosen.extend(next.into_iter().flatten().map(|tool| (tool.id, *tool)));
    }
    let mut pool: Vec<Endorsed> = chosen.into_values().collect();
    pool.sort_by(|a, b| b.raw.total_cmp(&a.raw).then(a.id.cmp(&b.id)));
    pool
}
