//! A database that does not answer. What is in memory answers in its place for a while, where nothing is promised by that:
//! what would have to be written, and who may ask, needs the database.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use super::{Error, Toolrack, request, uptime_ms};
use crate::core::warning::Warning;

/// For so long after a read that failed, the next ones get [`LOOK`] where something is known, but for one that waits as long as ever, and
/// writes are refused.
const LATELY_MS: u64 = 1_000;

/// What a read may take while the database is away, so that it is seen at once that it is back.
const LOOK: Duration = Duration::from_millis(100);

/// What was read longer ago is not used any more.
pub(super) const REMEMBERED_MS: u64 = 5 * 60 * 1_000;

/// How the last reads went.
#[derive(Debug, Default)]
pub(super) struct Away {
    /// When one last failed, in milliseconds of the process, plus one; 0: the last one worked.
    failed: AtomicU64,
    /// Whether a request waits for as long as a read may take, while the others look.
    is_tried: AtomicBool,
}

/// The request that waits in the place of the others.
struct Trial<'a>(&'a AtomicBool);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Away {
    /// Whether a read failed at or after a time of the process, and none has worked since.
    pub(super) fn has_failed_since(&self, ms: u64) -> bool {
        self.failed.load(Ordering::Relaxed) > ms
    }

    fn has_failed_lately(&self) -> bool {
        self.has_failed_since(uptime_ms().saturating_sub(LATELY_MS))
    }

    fn trial(&self) -> Option<Trial<'_>> {
        (!self.is_tried.swap(true, Ordering::Relaxed)).then(|| Trial(&self.is_tried))
    }
}

impl Toolrack {
    /// Refuses what would have to be written while the database does not answer, before the time of a request is spent on it.
    pub(super) fn check_database(&self) -> Result<(), Error> {
        if self.0.away.has_failed_lately() {
            return Err(Error::away());
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
        // A request waits once: what it asks after it has remembered something is looked for as by the others.
        let has_waited = request::has_remembered();
        let look = async |read| {
            let looked = timeout(LOOK, read).await;
            looked.unwrap_or_else(|_| Err(Error::away()))
        };
        let Some(known) = known else {
            return self.noted(if has_waited { look(read).await } else { read.await });
        };
        let is_away = has_waited || away.has_failed_lately();
        let trial = if is_away && !has_waited { away.trial() } else { None };
        let read = if is_away && trial.is_none() { look(read).await } else { read.await };
        drop(trial);
        match self.noted(read) {
            Err(error) if error.is_away() => {
                request::remembers();
                Ok(known)
            }
            read => read,
        }
    }

    /// Notes how a read went.
    pub(super) fn noted<T>(&self, read: Result<T, Error>) -> Result<T, Error> {
        let failed = &self.0.away.failed;
        match &read {
            Ok(_) => failed.store(0, Ordering::Relaxed),
            Err(error) if error.is_away() => {
                failed.store(uptime_ms() + 1, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        read
    }
}

/// Tells that an answer is made of what was known before, where it is.
pub(super) fn remembered_warning() -> Option<Warning> {
    request::has_remembered().then(away_warning)
}

pub(super) fn away_warning() -> Warning {
    let detail =
        "the database does not answer: configs, catalogs and sessions are as this process last read them";
    Warning::new("database_away", detail)
}
