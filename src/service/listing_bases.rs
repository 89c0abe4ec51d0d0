//! The listings that sessions keep: which one the next assembly of a session goes by, and the records behind them.
//!
//! A session that starts, or starts anew, takes the listing of the present state for its base. The base is stored once for
//! all sessions that have it, and renewed with them. One that is gone costs its sessions no more than a new start.

use std::collections::HashMap;
use std::sync::Arc;

use super::assemble::PlanEntry;
use super::context::Context;
use super::sessions::{AssembledState, Session};
use super::timing::{Part, timed};
use super::{Error, Toolrack, blocking, now_ms};
use crate::core::assemble::Origin;
use crate::core::digest::Digest;
use crate::core::listing_base::ListingBase;
use crate::core::plan::Plan;
use crate::store::ListingBaseTouch;

/// How much longer than its sessions a base is kept: one that was stored less than this ago is not stored again for a
/// session that starts with it.
pub(super) const BASE_MARGIN_MS: i64 = 60 * 60 * 1_000;

/// A base in memory.
#[derive(Debug)]
pub(super) struct KnownBase {
    pub base: ListingBase,
    /// When this process stored it; 0 if it did not.
    stored_ms: i64,
}

/// The base that a session keeps: nothing but the catalog may have changed since its last assembly.
fn kept_base(previous: Option<&AssembledState>, plan: &Plan, origin: &Origin) -> Option<Digest> {
    let previous = previous?;
    let sent = &previous.sent;
    let same =
        sent.config == origin.config && sent.grant == origin.grant && sent.format == plan.target.name();
    previous.listing_base.filter(|_| same && !plan.sends_all())
}

impl Toolrack {
    /// What the next assembly of a session goes by: the plan of the present state, or one with the listing that the
    /// session keeps. The base that it starts with is stored when this answers.
    pub(super) async fn session_plan(
        &self,
        previous: Option<&AssembledState>,
        context: &Context,
        fresh: Arc<PlanEntry>,
        origin: &Origin,
        epoch: bool,
    ) -> Result<Arc<PlanEntry>, Error> {
        let kept = kept_base(previous, &fresh.plan, origin).filter(|_| !epoch);
        if kept.is_some() && kept == fresh.plan.listing_base {
            return Ok(fresh);
        }
        if let Some(base) = kept
            && let Some(plan) = self.kept_plan(context, &fresh, base).await?
        {
            return Ok(plan);
        }
        self.store_base(context, &fresh).await?;
        Ok(fresh)
    }

    /// The plan of a view with the listing of a base; nothing when the base is gone.
    async fn kept_plan(
        &self,
        context: &Context,
        fresh: &Arc<PlanEntry>,
        base: Digest,
    ) -> Result<Option<Arc<PlanEntry>>, Error> {
        let key = (context.plan_key(), base);
        if let Some(plan) = self.0.caches.kept_plans.get(&key).await {
            return Ok(Some(plan));
        }
        let Some(known) = self.known_base(base).await? else { return Ok(None) };
        let (entry, merged) = (Arc::clone(&context.entry), Arc::clone(&context.merged));
        let (target, window, fresh) = (context.target, context.window, Arc::clone(fresh));
        let build = async move {
            let build = move || {
                let plan = Plan::with_base(&entry.view, &merged.policy, target, window, &known.base);
                PlanEntry::kept(plan, &fresh.plan)
            };
            blocking(build).await.map(Arc::new)
        };
        Ok(Some(self.0.caches.kept_plans.try_get_with(key, build).await?))
    }

    async fn known_base(&self, digest: Digest) -> Result<Option<Arc<KnownBase>>, Error> {
        if let Some(known) = self.0.caches.listing_bases.get(&digest).await {
            return Ok(Some(known));
        }
        let Some(text) = timed(Part::Database, self.0.store.listing_base(digest)).await? else {
            return Ok(None);
        };
        // What another version wrote is as good as gone.
        let read = move || (ListingBase::digest(&text) == digest).then(|| ListingBase::from_text(&text));
        let Some(base) = blocking(read).await?.flatten() else { return Ok(None) };
        let known = Arc::new(KnownBase { base, stored_ms: 0 });
        self.0.caches.listing_bases.insert(digest, Arc::clone(&known)).await;
        Ok(Some(known))
    }

    /// Stores the base of a plan, unless this process did so a short time ago.
    async fn store_base(&self, context: &Context, fresh: &Arc<PlanEntry>) -> Result<(), Error> {
        let Some(digest) = fresh.plan.listing_base else { return Ok(()) };
        let bases = &self.0.caches.listing_bases;
        if let Some(known) = bases.get(&digest).await {
            if now_ms() - known.stored_ms < BASE_MARGIN_MS {
                return Ok(());
            }
            bases.invalidate(&digest).await;
        }
        let (store, view, fresh) = (Arc::clone(&self.0.store), Arc::clone(&context.entry), Arc::clone(fresh));
        let store_it = async move {
            let make = move || {
                let plan = &fresh.plan;
                let base = plan
                    .listing
                    .as_ref()
                    .map(|listing| ListingBase::of(plan.tier, listing, &view.view, plan.target));
                base.map(|base| (base.to_text(), base))
            };
            let Some((text, base)) = blocking(make).await? else {
                return Err(Error::internal("a plan with a base has a listing"));
            };
            let now = now_ms();
            store.write_listing_base(digest, text.into(), now).await?;
            Ok(Arc::new(KnownBase { base, stored_ms: now }))
        };
        bases.try_get_with(digest, store_it).await?;
        Ok(())
    }
}

/// The bases that sessions keep, as old as the youngest of their sessions.
pub(super) fn touches_of<'a>(sessions: impl Iterator<Item = &'a Session>) -> Vec<ListingBaseTouch> {
    let mut ages: HashMap<Digest, i64> = HashMap::new();
    for session in sessions {
        let base = session.settings.assembled.as_ref().and_then(|assembled| assembled.listing_base);
        if let Some(base) = base {
            let age = ages.entry(base).or_default();
            *age = session.last_seen().max(*age);
        }
    }
    ages.into_iter().map(|(digest, last_used_ms)| ListingBaseTouch { digest, last_used_ms }).collect()
}
