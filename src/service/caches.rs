//! Derived things in memory, each keyed by the content that it was made from, bounded by bytes.
//!
//! Nothing here is invalidated by hand: a write makes new content and so new keys; what nobody asks for goes.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;

use super::assemble::PlanEntry;
use super::context::{Merged, MergedKey, ViewEntry, ViewKey};
use super::heads::CachedHead;
use super::listing_bases::KnownBase;
use super::setup::PreviewAnswer;
use super::vectors::{Kept, Space, ViewVectors};
use crate::core::catalog::{Catalog, Upload};
use crate::core::digest::Digest;
use crate::core::id::Scope;
use crate::core::proposal::Proposal;
use crate::core::ranking::CatalogIndex;
use crate::core::remarks::{Inspection, ReviewedTool};
use crate::core::schema::Validator;
use crate::core::target::Target;
use crate::core::warning::Warning;
use crate::store::VectorSpace;

/// How much memory the caches may take.
#[derive(Debug, Clone, Copy)]
pub struct CacheLimits {
    /// Catalogs with what is rendered of them, and their search indexes, in bytes.
    pub catalogs_bytes: u64,
    /// Views and assembled arrays, in bytes.
    pub views_bytes: u64,
    /// Vectors that endpoints made, in bytes: of texts, and as much again of views.
    pub vectors_bytes: u64,
    /// Answers of rerank endpoints, in bytes.
    pub answers_bytes: u64,
    /// Sessions, in number.
    pub sessions: u64,
}

/// How much one cache holds at the moment.
#[derive(Debug, Clone, Copy)]
pub struct CacheUse {
    pub cache: &'static str,
    pub entries: u64,
    pub bytes: u64,
}

/// An inline catalog as it was read from a request.
#[derive(Debug)]
pub(super) struct InlineUpload {
    pub catalog: Arc<Catalog>,
    pub reference: String,
    pub warnings: Vec<Warning>,
    /// How many of the warnings, from the first on, are of the entries alone; the others are of all tools together.
    pub read_warnings: usize,
    pub rejected: Vec<&'static str>,
}

impl InlineUpload {
    /// As the upload of a whole catalog.
    pub(super) fn upload(&self) -> Upload {
        let tools = self.catalog.tools().iter().map(|tool| (tool.tool.key(), Arc::clone(&tool.tool)));
        Upload::again(tools.collect(), self.warnings.iter().take(self.read_warnings).cloned().collect())
    }
}

/// The array plan of a view for a target and a window.
pub(super) type PlanKey = (u64, Target, u32);

/// All caches of the service.
pub(super) struct Caches {
    pub heads: Cache<Scope, Arc<CachedHead>>,
    pub merged: Cache<MergedKey, Arc<Merged>>,
    /// By content id.
    pub catalogs: Cache<Arc<str>, Arc<Catalog>>,
    pub indexes: Cache<Arc<str>, Arc<CatalogIndex>>,
    /// By the digest of the raw request text.
    pub uploads: Cache<Digest, Arc<InlineUpload>>,
    pub views: Cache<ViewKey, Arc<ViewEntry>>,
    pub plans: Cache<PlanKey, Arc<PlanEntry>>,
    pub listing_bases: Cache<Digest, Arc<KnownBase>>,
    /// Plans of sessions that keep the listing of a base which is not the plan's own.
    pub kept_plans: Cache<(PlanKey, Digest), Arc<PlanEntry>>,
    /// Tools as endpoints get them, by view and tool.
    pub documents: Cache<(u64, u32), Arc<str>>,
    pub spaces: Cache<VectorSpace, Arc<Space>>,
    /// Vectors of endpoints, by generation of a space and digest of the text.
    pub vectors: Cache<(u64, Digest), Arc<Kept>>,
    /// By view and generation of a space.
    pub view_vectors: Cache<(u64, u64), Arc<ViewVectors>>,
    /// Bytes that either of the last two may take.
    pub vectors_bytes: u64,
    /// Views whose vectors were begun to be made.
    pub prepared: Cache<u64, ()>,
    /// What is remarked about the tools of a catalog whatever its config, by content id and profiles.
    pub inspections: Cache<Digest, Arc<Inspection>>,
    /// Reviewed tools, by all that a review is a function of; and so the next two.
    pub reviews: Cache<Digest, Arc<Vec<ReviewedTool>>>,
    pub proposals: Cache<Digest, Arc<Proposal>>,
    pub previews: Cache<Digest, Arc<PreviewAnswer>>,
    /// By tool digest.
    pub validators: Cache<Digest, Arc<Validator>>,
    next_view: AtomicU64,
    next_ticket: AtomicU64,
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caches")
    }
}

/// Spaces of vectors whose state is remembered.
const SPACES: u64 = 4_096;

/// Entries that nobody asked for in this time go.
const IDLE: Duration = Duration::from_secs(30 * 60);

fn weighed<K, V>(bytes: u64, weigh: impl Fn(&V) -> usize + Send + Sync + 'static) -> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    Cache::builder()
        .max_capacity(bytes)
        .weigher(move |_: &K, value: &V| u32::try_from(weigh(value) + 256).unwrap_or(u32::MAX))
        .time_to_idle(IDLE)
        .build()
}

fn counted<K, V>(entries: u64) -> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    Cache::builder().max_capacity(entries).time_to_idle(IDLE).build()
}

impl Caches {
    pub(super) fn new(limits: &CacheLimits) -> Self {
        Self {
            heads: weighed(limits.views_bytes / 2, |cached: &Arc<CachedHead>| cached.bytes()),
            merged: weighed(limits.views_bytes / 4, |merged: &Arc<Merged>| merged.bytes),
            catalogs: weighed(limits.catalogs_bytes / 2, |catalog: &Arc<Catalog>| 2 * catalog.bytes()),
            indexes: weighed(limits.catalogs_bytes / 2, |index: &Arc<CatalogIndex>| index.bytes()),
            uploads: weighed(limits.catalogs_bytes / 4, |upload: &Arc<InlineUpload>| upload.catalog.bytes()),
            views: weighed(limits.views_bytes / 2, |entry: &Arc<ViewEntry>| entry.bytes()),
            plans: weighed(limits.views_bytes / 2, |plan: &Arc<PlanEntry>| plan.bytes()),
            listing_bases: weighed(limits.views_bytes / 4, |known: &Arc<KnownBase>| known.base.bytes()),
            kept_plans: weighed(limits.views_bytes / 4, |plan: &Arc<PlanEntry>| plan.bytes()),
            documents: weighed(limits.views_bytes / 4, |document: &Arc<str>| document.len()),
            spaces: counted(SPACES),
            vectors: weighed(limits.vectors_bytes, |kept: &Arc<Kept>| kept.bytes()),
            view_vectors: weighed(limits.vectors_bytes, |vectors: &Arc<ViewVectors>| vectors.bytes()),
            vectors_bytes: limits.vectors_bytes,
            prepared: counted(100_000),
            reviews: weighed(limits.views_bytes / 4, |tools: &Arc<Vec<ReviewedTool>>| {
                tools.iter().map(ReviewedTool::bytes).sum()
            }),
            inspections: weighed(limits.views_bytes / 4, |inspection: &Arc<Inspection>| inspection.bytes()),
            proposals: weighed(limits.views_bytes / 4, |proposal: &Arc<Proposal>| proposal.bytes()),
            previews: weighed(limits.views_bytes / 8, |preview: &Arc<PreviewAnswer>| preview.bytes()),
            validators: weighed(limits.views_bytes / 2, |validator: &Arc<Validator>| validator.bytes()),
            next_view: AtomicU64::new(1),
            next_ticket: AtomicU64::new(1),
        }
    }

    /// A number that no other view of this process has.
    pub(super) fn next_view_id(&self) -> u64 {
        self.next_view.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that is larger than all that were given out before.
    pub(super) fn next_ticket(&self) -> u64 {
        self.next_ticket.fetch_add(1, Ordering::SeqCst)
    }

    /// Tools of the catalogs that are held.
    pub(super) fn tools_held(&self) -> usize {
        self.catalogs.iter().map(|(_, catalog)| catalog.tools().len()).sum()
    }

    /// What the caches hold now.
    pub(super) fn usage(&self) -> Vec<CacheUse> {
        let weighed = |cache, entries, bytes| CacheUse { cache, entries, bytes };
        vec![
            weighed("heads", self.heads.entry_count(), self.heads.weighted_size()),
            weighed("merged", self.merged.entry_count(), self.merged.weighted_size()),
            weighed("catalogs", self.catalogs.entry_count(), self.catalogs.weighted_size()),
            weighed("indexes", self.indexes.entry_count(), self.indexes.weighted_size()),
            weighed("uploads", self.uploads.entry_count(), self.uploads.weighted_size()),
            weighed("views", self.views.entry_count(), self.views.weighted_size()),
            weighed("plans", self.plans.entry_count(), self.plans.weighted_size()),
            weighed("listing_bases", self.listing_bases.entry_count(), self.listing_bases.weighted_size()),
            weighed("kept_plans", self.kept_plans.entry_count(), self.kept_plans.weighted_size()),
            weighed("documents", self.documents.entry_count(), self.documents.weighted_size()),
            weighed("vectors", self.vectors.entry_count(), self.vectors.weighted_size()),
            weighed("view_vectors", self.view_vectors.entry_count(), self.view_vectors.weighted_size()),
            weighed("inspections", self.inspections.entry_count(), self.inspections.weighted_size()),
            weighed("proposals", self.proposals.entry_count(), self.proposals.weighted_size()),
            weighed("previews", self.previews.entry_count(), self.previews.weighted_size()),
            weighed("reviews", self.reviews.entry_count(), self.reviews.weighted_size()),
            weighed("validators", self.validators.entry_count(), self.validators.weighted_size()),
        ]
    }
}
