//! Texts that one of several processes has made into vectors while the others wait for them. No answer waits for that: a search takes
//! what is there when its own time is over.

use std::time::Duration;

use super::filler::{BATCH_TIME, Batch, Filler};
use crate::core::digest::Digest;
use crate::service::now_ms;
use crate::telemetry::warn_of;

/// A claim holds for as long as a request may take, and a little; its process may have ended.
const CLAIM: Duration = BATCH_TIME.saturating_add(Duration::from_secs(5));

/// How often it is looked whether others are done.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Filler {
    /// What of a batch is to be made here, and what another process is making; what is stored by now is in neither. Where nobody can
    /// tell, all is made here.
    pub(super) async fn claim(&self, serial: u64, batch: Batch) -> (Batch, Batch) {
        if batch.is_empty() || !self.service.0.store.is_shared() {
            return (batch, Batch::new());
        }
        let (wanted, now) = (texts(&batch), now_ms());
        let until = now + i64::try_from(CLAIM.as_millis()).unwrap_or(i64::MAX);
        let (space, holder) = (&self.source.space.key, &self.service.0.holder);
        match self.service.0.store.claim_vectors(space, wanted, holder, now, until).await {
            Ok(own) => {
                let (own, others) = batch.into_iter().partition(|wanted| own.contains(&wanted.text));
                // Who had a claim until now has stored what it made.
                let mut stored = texts(&own);
                let own = self.without_stored(serial, own).await;
                stored.retain(|text| own.iter().all(|wanted| wanted.text != *text));
                self.release(stored).await;
                (own, others)
            }
            Err(error) => {
                warn_of!(error, "vectors of tools may be made twice");
                (batch, Batch::new())
            }
        }
    }

    /// Lets others make these.
    pub(super) async fn release(&self, texts: Vec<Digest>) {
        if texts.is_empty() || !self.service.0.store.is_shared() {
            return;
        }
        let (space, holder) = (&self.source.space.key, &self.service.0.holder);
        if let Err(error) = self.service.0.store.release_vectors(space, texts, holder).await {
            tracing::debug!(%error, "others wait a little longer for vectors of tools");
        }
    }

    async fn without_stored(&self, serial: u64, batch: Batch) -> Batch {
        match self.service.kept(&self.source.space, serial, &texts(&batch)).await {
            Ok(_) => self.without_known(serial, batch).await,
            Err(error) => {
                tracing::debug!(%error, "vectors of others cannot be read");
                batch
            }
        }
    }

    /// Waits for what another process makes. Answers what it did not make once its claim to some of that has ended; what is handed
    /// out meanwhile is not in it.
    pub(super) async fn left_by_others(&self, serial: u64, mut batch: Batch) -> Batch {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if self.has_failed() || self.source.space.serial() != serial {
                return Batch::new();
            }
            batch = self.without_stored(serial, batch).await;
            if batch.is_empty() {
                return batch;
            }
            let (own, others) = self.claim(serial, batch).await;
            if !own.is_empty() || others.is_empty() {
                return own.into_iter().chain(others).collect();
            }
            batch = others;
        }
    }
}

pub(super) fn texts(batch: &Batch) -> Vec<Digest> {
    batch.iter().map(|wanted| wanted.text).collect()
}
