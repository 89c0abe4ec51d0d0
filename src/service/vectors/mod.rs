//! Vectors of tools that an endpoint made: kept by the scope whose matcher asks, made once for each text, in batches.
//!
//! `space` is where vectors compare: one endpoint, one model, one way of asking, for one scope. `queue` says what is made
//! next, `filler` is the task that makes it, `claims` keeps several processes from making the same, and `view` holds what one view of the catalogs needs. Knows nothing of ranking.

mod claims;
mod filler;
mod queue;
mod space;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use self::filler::Filler;
use self::queue::Wanted;
use super::context::ViewEntry;
use super::ranking::document;
use super::{Error, Toolrack, blocking, now_ms};
use crate::core::digest::Digest;
use crate::core::embedding::Embedding;
use crate::core::id::Scope;
use crate::rerank::RerankRequest;
use crate::store::VectorSpace;
use crate::telemetry::warn_of;

pub(super) use space::{Outlook, Space};
pub(super) use view::{Kept, Snapshot, ViewVectors};

/// Where vectors come from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub space: Arc<Space>,
    pub tenant: Digest,
    /// What is asked but for the texts.
    pub settings: Arc<RerankRequest>,
}

impl Source {
    pub(super) fn request(&self, documents: Vec<String>) -> RerankRequest {
        RerankRequest { documents, ..RerankRequest::clone(&self.settings) }
    }
}

/// The identity of a space: all that may make another vector of a text (address, model, headers and body), not the key.
fn identity(settings: &RerankRequest) -> Digest {
    let mut text = Vec::new();
    settings.feed(|piece| text.extend_from_slice(piece));
    Digest::of(&text)
}

impl Toolrack {
    pub(super) async fn source(&self, owner: Scope, tenant: Digest, settings: RerankRequest) -> Source {
        let key = VectorSpace { owner, space: identity(&settings) };
        let serial = || self.0.caches.next_ticket();
        let space = self
            .0
            .caches
            .spaces
            .get_with_by_ref(&key, async { Arc::new(Space::new(key.clone(), serial())) })
            .await;
        Source { space, tenant, settings: Arc::new(settings) }
    }

    /// The model behind a matcher may be another: all spaces of its scope.
    pub(super) fn doubt_vectors_of(&self, owner: &Scope) {
        let spaces = self.0.caches.spaces.iter();
        spaces.filter(|(key, _)| key.owner == *owner).for_each(|(_, space)| space.doubt());
    }

    /// The same for all scopes with these settings.
    pub(super) fn doubt_vectors_by(&self, settings: &RerankRequest) {
        let identity = identity(settings);
        let spaces = self.0.caches.spaces.iter();
        spaces.filter(|(key, _)| key.space == identity).for_each(|(_, space)| space.doubt());
    }

    /// Has the vectors of some tools made, by position, those that are awaited first, and the check where it is due. Returns at once.
    pub(super) fn fill(
        &self,
        source: &Source,
        entry: &Arc<ViewEntry>,
        vectors: &ViewVectors,
        positions: &[usize],
        is_awaited: bool,
    ) {
        let wanted = positions.iter().filter_map(|at| vectors.tools.get(*at));
        let wanted = wanted.map(|(id, text)| Wanted { text: *text, of: (Arc::clone(entry), *id) });
        if source.space.want(wanted, is_awaited) {
            let filler = Filler::new(self.clone(), source.clone());
            tokio::spawn(filler.run());
        }
    }

    /// The vectors of a view in the present generation, read from the store where they were made before. Read in a task of its
    /// own: who stops waiting stops nobody else.
    pub(super) async fn view_vectors(
        &self,
        space: &Arc<Space>,
        entry: &Arc<ViewEntry>,
    ) -> Result<Arc<ViewVectors>, Error> {
        let serial = space.serial();
        let key = (entry.id, serial);
        if let Some(vectors) = self.0.caches.view_vectors.get(&key).await {
            return Ok(vectors);
        }
        let (service, space, entry) = (self.clone(), Arc::clone(space), Arc::clone(entry));
        let read = tokio::spawn(async move {
            let read = service.read_vectors(&space, serial, &entry);
            service.0.caches.view_vectors.try_get_with(key, read).await
        });
        read.await.map_err(Error::internal)?.map_err(|error| Error::clone(&error))
    }

    async fn read_vectors(
        &self,
        space: &Arc<Space>,
        serial: u64,
        entry: &Arc<ViewEntry>,
    ) -> Result<Arc<ViewVectors>, Error> {
        let seen = Arc::clone(entry);
        let tools: Box<[(u32, Digest)]> = blocking(move || {
            let ids = seen.view.visible().map(|(id, _)| id);
            ids.map(|id| (id, Digest::of(document(&seen, id).as_bytes()))).collect()
        })
        .await?;
        // By one of them it is known how much all of them are.
        let first: Vec<Digest> = tools.iter().take(1).map(|tool| tool.1).collect();
        self.kept(space, serial, &first).await?;
        let each = size_of::<Kept>() + space.width().unwrap_or_default() * size_of::<i16>();
        if (tools.len() * each) as u64 > self.0.caches.vectors_bytes {
            return Ok(Arc::new(ViewVectors::oversized(entry.id, tools)));
        }
        let texts: Vec<Digest> = tools.iter().map(|tool| tool.1).collect();
        let kept = self.kept(space, serial, &texts).await?;
        let found = texts.iter().map(|text| kept.get(text).cloned()).collect();
        let vectors = Arc::new(ViewVectors::new(entry.id, tools, found));
        space.register(serial, &vectors);
        // What was made since it was looked for.
        let mut made = Vec::new();
        for at in vectors.missing() {
            let text = texts[at];
            made.extend(self.0.caches.vectors.get(&(serial, text)).await.map(|kept| (text, kept)));
        }
        vectors.accept(&made);
        Ok(vectors)
    }

    /// The vectors that there are of some texts, in memory or in the store.
    pub(super) async fn kept(
        &self,
        space: &Space,
        serial: u64,
        texts: &[Digest],
    ) -> Result<HashMap<Digest, Arc<Kept>>, Error> {
        let mut found = HashMap::with_capacity(texts.len());
        let mut unknown = Vec::new();
        for text in texts {
            match self.0.caches.vectors.get(&(serial, *text)).await {
                Some(kept) => drop(found.insert(*text, kept)),
                None => unknown.push(*text),
            }
        }
        if unknown.is_empty() {
            return Ok(found);
        }
        for row in self.0.store.vectors(&space.key, &unknown).await? {
            // One that cannot be read, or is of another model, is made again.
            let vector = Embedding::from_bytes(&row.vector);
            if let Some(vector) = vector.filter(|vector| space.takes(serial, vector.width())) {
                let kept = Arc::new(Kept::new(vector, row.used_at_ms));
                self.0.caches.vectors.insert((serial, row.text), Arc::clone(&kept)).await;
                found.insert(row.text, kept);
            }
        }
        Ok(found)
    }

    /// Notes in the store that a view's vectors are in use, once a day, on nobody's time.
    pub(super) fn note_use(&self, space: &Arc<Space>, vectors: &ViewVectors) {
        let now = now_ms();
        let due = vectors.due(now);
        if due.is_empty() {
            return;
        }
        let (service, space) = (self.clone(), Arc::clone(space));
        tokio::spawn(async move {
            if let Err(error) = service.0.store.touch_vectors(&space.key, due, now).await {
                warn_of!(error, "the use of vectors could not be noted");
            }
        });
    }
}
