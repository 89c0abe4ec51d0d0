//! Tells the log that the database went away, and that it is back: a line each. What fails meanwhile is told quietly by whoever it
//! fails for ([`StoreError::is_outage`]). This module does not find out by itself: reads and writes tell it what they met.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Read,
    Write,
}

/// What is wrong with the database, since when.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Option<(Fault, Instant)>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Away,
    /// Reads work.
    ReadOnly,
}

impl Outage {
    /// Whether it is away, as far as was told.
    pub(super) fn is_on(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes note of what became of a read or a write.
    pub(super) fn note(&self, asked: Asked, failure: Option<&StoreError>) {
        let fault = match failure {
            Some(StoreError::Away(_)) => Some(Fault::Away),
            Some(StoreError::ReadOnly) => Some(Fault::ReadOnly),
            // They say nothing about whether it is there.
            Some(_) => return,
            None => None,
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *known;
        if fault == before.map(|(fault, _)| fault) {
            return;
        }
        match before {
            // That it takes writes again is told by a write.
            Some((Fault::ReadOnly, _)) if fault.is_none() && asked == Asked::Read => return,
            _ => *known = fault.map(|fault| (fault, before.map_or_else(Instant::now, |(_, since)| since))),
        }
        match (failure, before) {
            (Some(error), _) => {
                tracing::warn!(%error, "the database is away; what fails because of it is logged at the level debug");
            }
            (None, Some((_, since))) => {
                tracing::info!(away_s = since.elapsed().as_secs(), "the database is back");
            }
            (None, None) => {}
        }
    }
}
