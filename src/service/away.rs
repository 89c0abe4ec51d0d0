//! A database that does not answer. What is in memory answers in its place for a while, where nothing is promised by that:
//! what would have to be written, and who may ask, needs the database.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Error, Kind, Toolrack, request, uptime_ms};
use crate::core::warning::Warning;

/// For so long after a read that failed, what is in memory is used without another one.
const ASKED_AGAIN_MS: u64 = 1_000;

/// What was read longer ago is not used any more.
pub(super) const REMEMBERED_MS: u64 = 5 * 60 * 1_000;

/// How the last reads went.
#[derive(Debug, Default)]
pub(super) struct Away {
    /// When one last failed, in milliseconds of the process, plus one; 0: the last one worked.
    failed: AtomicU64,
}

impl Away {
    /// Whether a read failed at or after a time of the process, and none has worked since.
    pub(super) fn has_failed_since(&self, ms: u64) -> bool {
        self.failed.load(Ordering::Relaxed) > ms
    }
}

impl Toolrack {
    /// Refuses what would have to be written while the database does not answer, before the time of a request is spent on it.
    pub(super) fn check_database(&self) -> Result<(), Error> {
        if self.0.away.has_failed_since(uptime_ms().saturating_sub(ASKED_AGAIN_MS)) {
            return Err(Error::new(Kind::Unavailable, "the database does not answer"));
        }
        Ok(())
    }

    /// What is read, or what is known where the database does not answer.
    pub(super) async fn read_or_remember<T>(
        &self,
        known: Option<T>,
        read: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let away = &self.0.away;
        let lately = uptime_ms().saturating_sub(ASKED_AGAIN_MS);
        let known = match known {
            Some(known) if away.has_failed_since(lately) => {
                request::remembers();
                return Ok(known);
            }
            known => known,
        };
        match (read.await, known) {
            (Ok(read), _) => {
                away.failed.store(0, Ordering::Relaxed);
                Ok(read)
            }
            (Err(error), known) if error.kind() == Kind::Unavailable => {
                away.failed.store(uptime_ms() + 1, Ordering::Relaxed);
                known.map_or(Err(error), |known| {
                    request::remembers();
                    Ok(known)
                })
            }
            (Err(error), _) => Err(error),
        }
    }
}

/// Tells that an answer is made of what was known before, where it is.
pub(super) fn remembered_warning() -> Option<Warning> {
    request::has_remembered().then(away_warning)
}

pub(super) fn away_warning() -> Warning {
    let detail =
        "the database does not answer: configs, catalogs and sessions are as they were when it last did";
    Warning::new("database_away", detail)
}
