//! The task that makes the vectors that are wanted in a space, batch by batch.
//!
//! Nobody cancels it: what was asked for is paid for, so each batch is stored and handed out as it lands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::super::{Error, Toolrack, blocking, now_ms};
use super::Source;
use super::claims::texts;
use super::queue::Wanted;
use super::space::{OfTool, Space};
use super::view::Kept;
use crate::core::digest::Digest;
use crate::core::embedding::Embedding;
use crate::rerank::{Flaw, RerankFault, Vectors};
use crate::service::ranking::document;
use crate::store::VectorRow;
use crate::telemetry::warn_of;

/// Requests of one task at a time.
const PARALLEL: usize = 4;
/// Time of one request: nobody need wait so long for it, and self-hosted models are slow.
pub(super) const BATCH_TIME: Duration = Duration::from_secs(60);
/// Vectors that one scope may keep; of a usual width (1,024) they take 80 MB.
const MAX_KEPT: u32 = 40_000;
/// A text whose vector tells one model from another.
const CONTROL: &str = "toolrack control: Send an email message to a contact.";
/// The same model makes the same vector but for rounding and padding; others make one that is no more like it than chance.
const SAME_MODEL: f64 = 0.99;

pub(super) type Batch = Vec<Wanted<OfTool>>;

/// What came back.
enum Flown {
    Batch {
        serial: u64,
        batch: Batch,
        outcome: Result<Arc<Vectors>, RerankFault>,
    },
    Control {
        before: Option<Embedding>,
        outcome: Result<Arc<Vectors>, RerankFault>,
    },
    /// Of texts that another process was making, those that are still to be made.
    Left {
        serial: u64,
        batch: Batch,
    },
}

pub(super) struct Filler {
    pub(super) service: Toolrack,
    pub(super) source: Source,
    /// Nothing is made any more.
    pub(super) has_failed: AtomicBool,
}

/// Ends the work of a space's task that did not end by itself.
struct Ends {
    space: Arc<Space>,
    /// None once nothing is wanted any more.
    fault: Option<RerankFault>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(fault) = self.fault {
            self.space.ended(fault);
        }
    }
}

/// Whether a fault may be that of the texts that were sent rather than of the endpoint.
fn is_about_texts(fault: RerankFault) -> bool {
    match fault {
        RerankFault::Refused { status, .. } => matches!(status, 400 | 413 | 422),
        RerankFault::TooLarge | RerankFault::Malformed(_) => true,
        _ => false,
    }
}

impl Filler {
    pub(super) fn new(service: Toolrack, source: Source) -> Self {
        Self { service, source, has_failed: AtomicBool::new(false) }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Makes what is wanted until nothing is, or the endpoint fails.
    pub(super) async fn run(self) {
        let space = Arc::clone(&self.source.space);
        let mut ends = Ends { space, fault: Some(RerankFault::Overloaded) };
        ends.fault = self.work().await.err();
        if let Some(fault) = ends.fault {
            tracing::info!(
                host = self.source.settings.endpoint.host_str(),
                reason = fault.reason(),
                "vectors of tools could not all be made; the next search goes on"
            );
        }
    }

    async fn work(&self) -> Result<(), RerankFault> {
        let space = &self.source.space;
        let mut flying: FuturesUnordered<BoxFuture<'_, Flown>> = FuturesUnordered::new();
        let mut failed = None;
        // While it is not known whether what is stored still counts, no more is made.
        let mut is_held = false;
        loop {
            if failed.is_none() && space.take_check() {
                let before = self.control_before().await;
                is_held = before.is_some();
                flying.push(Box::pin(self.control(before)));
            }
            while failed.is_none() && !is_held && flying.len() < PARALLEL {
                let most = self.service.0.reranker.texts_in_request(&self.source.settings).await;
                let Some((serial, batch)) = space.next(most) else { break };
                let batch = self.without_known(serial, batch).await;
                self.make(&mut flying, serial, batch).await;
            }
            let landed = match flying.next().await {
                Some(Flown::Batch { serial, batch, outcome }) => {
                    // Whatever came of it, others need not wait for it any more.
                    let texts = texts(&batch);
                    let landed = match outcome {
                        Ok(made) => self.land(serial, batch, &made.rows).await,
                        Err(fault) if is_about_texts(fault) => space.refused(batch, fault),
                        Err(fault) => Err(fault),
                    };
                    self.release(texts).await;
                    landed
                }
                Some(Flown::Control { before, outcome }) => {
                    is_held = false;
                    self.compare(before, outcome).await
                }
                Some(Flown::Left { serial, batch }) => {
                    if failed.is_none() && serial == space.serial() {
                        self.make(&mut flying, serial, batch).await;
                    } else {
                        self.release(texts(&batch)).await;
                    }
                    Ok(())
                }
                None if failed.is_some() || space.may_end() => break,
                None => Ok(()),
            };
            // The others that are on their way are waited for.
            failed = failed.or(landed.err());
            self.has_failed.store(failed.is_some(), Ordering::Relaxed);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Begins to make a batch, but for what another process is making: that is waited for.
    async fn make<'a>(
        &'a self,
        flying: &mut FuturesUnordered<BoxFuture<'a, Flown>>,
        serial: u64,
        batch: Batch,
    ) {
        let (own, others) = self.claim(serial, batch).await;
        if !own.is_empty() {
            flying.push(Box::pin(self.batch(serial, own)));
        }
        if !others.is_empty() {
            flying.push(Box::pin(async move {
                Flown::Left { serial, batch: self.left_by_others(serial, others).await }
            }));
        }
    }

    async fn batch(&self, serial: u64, batch: Batch) -> Flown {
        let tools: Vec<OfTool> = batch.iter().map(|wanted| wanted.of.clone()).collect();
        let texts = blocking(move || tools.iter().map(|(entry, id)| document(entry, *id)).collect());
        let outcome = match texts.await {
            Ok(texts) => self.embed(texts).await,
            Err(_) => Err(RerankFault::Overloaded),
        };
        Flown::Batch { serial, batch, outcome }
    }

    async fn control(&self, before: Option<Embedding>) -> Flown {
        Flown::Control { before, outcome: self.embed(vec![CONTROL.to_owned()]).await }
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Arc<Vectors>, RerankFault> {
        let request = self.source.request(texts);
        let ends = Instant::now() + BATCH_TIME;
        self.service.0.reranker.embed_texts(self.source.tenant, request, ends).await
    }

    /// The control text's vector of another time.
    async fn control_before(&self) -> Option<Embedding> {
        let text = Digest::of(CONTROL.as_bytes());
        let rows = self.service.0.store.vectors(&self.source.space.key, &[text]).await;
        let rows = rows.inspect_err(|error| warn_of!(error, "stored vectors cannot be read")).ok()?;
        rows.first().and_then(|row| Embedding::from_bytes(&row.vector))
    }

    /// Begins a new generation where the endpoint makes other vectors than before.
    async fn compare(
        &self,
        before: Option<Embedding>,
        outcome: Result<Arc<Vectors>, RerankFault>,
    ) -> Result<(), RerankFault> {
        let space = &self.source.space;
        let made = match outcome {
            Ok(made) => made.rows.first().cloned().flatten(),
            // It does not take this one text, which says nothing about others.
            Err(fault) if is_about_texts(fault) => None,
            Err(fault) => {
                space.checked(false);
                return Err(fault);
            }
        };
        if let Some(made) = made {
            let is_same = |before: Embedding| before.cosine(&made).is_some_and(|alike| alike >= SAME_MODEL);
            if !before.is_none_or(is_same) {
                tracing::warn!(
                    host = self.source.settings.endpoint.host_str(),
                    "the embedding model is another than before; all vectors of tools are made anew"
                );
                self.logged(self.service.0.store.drop_vectors(&space.key).await.map_err(Error::from));
                space.renew(self.service.0.caches.next_ticket());
            }
            if !space.takes(space.serial(), made.width()) {
                // What is stored has another width, and no control text beside it.
                space.renew(self.service.0.caches.next_ticket());
                space.takes(space.serial(), made.width());
            }
            self.store(vec![(Digest::of(CONTROL.as_bytes()), Arc::new(Kept::new(made, now_ms())))]).await;
        }
        space.checked(true);
        Ok(())
    }

    /// A batch without what was made since it was wanted.
    pub(super) async fn without_known(&self, serial: u64, batch: Batch) -> Batch {
        let (mut known, mut rest) = (Vec::new(), Vec::with_capacity(batch.len()));
        for wanted in batch {
            match self.service.0.caches.vectors.get(&(serial, wanted.text)).await {
                Some(kept) => known.push((wanted.text, kept)),
                None => rest.push(wanted),
            }
        }
        if !known.is_empty() {
            self.hand_out(serial, &known).await;
        }
        rest
    }

    /// Keeps what was made of a batch.
    async fn land(&self, serial: u64, batch: Batch, rows: &[Option<Embedding>]) -> Result<(), RerankFault> {
        let space = &self.source.space;
        let width = rows.iter().flatten().map(Embedding::width).next();
        if space.serial() != serial {
            // Made before it was known that the model is another.
            return Ok(());
        }
        if !width.is_none_or(|width| space.takes(serial, width)) {
            space.doubt();
            return Err(RerankFault::Malformed(Flaw::Vectors));
        }
        let (mut made, mut bad) = (Vec::with_capacity(batch.len()), Vec::new());
        let now = now_ms();
        for (wanted, row) in batch.into_iter().zip(rows) {
            match row {
                Some(vector) => made.push((wanted.text, Arc::new(Kept::new(vector.clone(), now)))),
                None => bad.push(wanted),
            }
        }
        self.store(made.clone()).await;
        for (text, kept) in &made {
            self.service.0.caches.vectors.insert((serial, *text), Arc::clone(kept)).await;
        }
        self.hand_out(serial, &made).await;
        let flaw = RerankFault::Malformed(Flaw::Vectors);
        bad.into_iter().try_for_each(|wanted| space.refused(vec![wanted], flaw))
    }

    /// They are used all the same where they cannot be stored, and made again another time.
    async fn store(&self, made: Vec<(Digest, Arc<Kept>)>) {
        let now = now_ms();
        let row = |(text, kept): (Digest, Arc<Kept>)| VectorRow {
            text,
            vector: kept.vector.to_bytes(),
            used_at_ms: now,
        };
        let rows = made.into_iter().map(row).collect();
        let written = self.service.0.store.write_vectors(&self.source.space.key, rows, MAX_KEPT).await;
        self.logged(written.map_err(Error::from));
    }

    fn logged(&self, written: Result<(), Error>) {
        if let Err(error) = written {
            warn_of!(error, "vectors of tools could not be stored");
        }
    }

    pub(super) async fn hand_out(&self, serial: u64, made: &[(Digest, Arc<Kept>)]) {
        // A space in use stays in memory.
        drop(self.service.0.caches.spaces.get(&self.source.space.key).await);
        for view in self.source.space.landed(serial, made) {
            // Weighed again, with what it holds now.
            self.service.0.caches.view_vectors.insert((view.view, serial), view).await;
        }
    }
}
