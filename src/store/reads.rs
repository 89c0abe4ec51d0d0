//! Reads: each on a connection of the pool, and for a while on another one when its own was lost. A read changes nothing, so it can
//! be made again. This module does not know what is read.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use sqlx::Pool;
use sqlx::pool::PoolConnection;
use tokio::time::{Instant, timeout, timeout_at};

use super::engine::Engine;
use super::failures::{Retry, retry};
use super::outage::{Asked, Outage};
use super::pulse::{GivenUp, Pulse, silent};
use super::{Observe, Observed, SqlStore, StoreError};

/// Time between two attempts.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// A read of a server that takes longer is made again on another connection, in case the network has lost its own.
const FIRST_READ: Duration = Duration::from_secs(5);

/// Longest time for the second; the server gives up earlier (`statement_timeout`), if its answer gets through.
const LONGEST_READ: Duration = Duration::from_secs(40);

/// How long a look at whether reads work may take. Who asks gives up after some seconds, and the server is asked after it.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How long a connection may take to become free again. One that takes longer is closed.
const LONGEST_RETURN: Duration = Duration::from_secs(5);

/// The connections for reads.
#[derive(Debug)]
pub(super) struct Readers<E: Engine> {
    pub(super) pool: Pool<E>,
    /// How long a read waits for a connection, and for a server that is away.
    pub(super) patience: Duration,
    /// Of a server, which may fall silent.
    pub(super) pulse: Option<Arc<Pulse>>,
    pub(super) outage: Arc<Outage>,
    pub(super) observe: Observe,
}

/// A connection of the pool, lent to a read.
pub(super) struct Reader<E: Engine>(PoolConnection<E>);

impl<E: Engine> Deref for Reader<E> {
    type Target = E::Connection;

    fn deref(&self) -> &E::Connection {
        &self.0
    }
}

impl<E: Engine> DerefMut for Reader<E> {
    fn deref_mut(&mut self) -> &mut E::Connection {
        &mut self.0
    }
}

/// The pool looks at a connection when it comes back, for as long as that takes. A server that fell silent would keep its place.
impl<E: Engine> Drop for Reader<E> {
    fn drop(&mut self) {
        tokio::spawn(timeout(LONGEST_RETURN, self.0.return_to_pool()));
    }
}

/// Why a read found nothing out.
enum Missed {
    Failed(StoreError),
    /// It took longer than it might.
    Late,
}

impl From<StoreError> for Missed {
    fn from(failure: StoreError) -> Self {
        Self::Failed(failure)
    }
}

impl<E: Engine> Readers<E> {
    async fn reader(&self, deadline: Instant) -> Result<Reader<E>, sqlx::Error> {
        let began = Instant::now();
        let acquired = timeout_at(deadline, self.pool.acquire()).await;
        (self.observe)(&Observed::ReadWaited(began.elapsed()));
        acquired.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map(Reader)
    }

    async fn attempt<T, F, R>(&self, deadline: Instant, most: Duration, read: &F) -> Result<T, Missed>
    where
        F: Fn(Reader<E>) -> R,
        R: Future<Output = Result<T, StoreError>> + Send,
    {
        let reader = match (self.reader(deadline).await, &self.pulse) {
            // All connections are in use, or none can be made.
            (Err(sqlx::Error::PoolTimedOut), Some(pulse)) if !pulse.lets_in().await => Err(silent()),
            (reader, _) => reader,
        };
        let reading = read(reader.map_err(StoreError::from)?);
        match &self.pulse {
            Some(pulse) => match pulse.watch(reading, most, &AtomicI32::new(0)).await {
                Ok(found) => Ok(found?),
                Err(GivenUp::Late) => Err(Missed::Late),
                Err(given_up) => Err(StoreError::from(given_up).into()),
            },
            None => Ok(reading.await?),
        }
    }
}

impl<E: Engine> SqlStore<E> {
    /// Reads with what `read` does on a connection, which it may be asked to do again.
    pub(super) async fn read<T, F, R>(&self, read: F) -> Result<T, StoreError>
    where
        F: Fn(Reader<E>) -> R + Sync,
        R: Future<Output = Result<T, StoreError>> + Send,
    {
        let outcome = self.patient(read).await;
        self.readers.outage.note(Asked::Read, outcome.as_ref().err());
        outcome
    }

    async fn patient<T, F, R>(&self, read: F) -> Result<T, StoreError>
    where
        F: Fn(Reader<E>) -> R + Sync,
        R: Future<Output = Result<T, StoreError>> + Send,
    {
        let mut deadline = Instant::now() + self.readers.patience;
        let mut most = FIRST_READ;
        loop {
            let failure = match self.readers.attempt(deadline, most, &read).await {
                Ok(found) => return Ok(found),
                Err(Missed::Failed(failure)) => failure,
                Err(Missed::Late) if most == FIRST_READ => {
                    (deadline, most) = (Instant::now() + self.readers.patience, LONGEST_READ);
                    continue;
                }
                Err(Missed::Late) => return Err(StoreError::Busy),
            };
            if retry(&failure) == Retry::Vain || Instant::now() + RETRY_EVERY >= deadline {
                return Err(failure);
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    /// Whether a read works at present, or would if not all connections were in use.
    pub(super) async fn look(&self) -> Result<(), StoreError> {
        let look = self.read(|mut reader| async move {
            let (standby,): (i64,) = sqlx::query_as(E::IS_STANDBY).fetch_one(&mut *reader).await?;
            Ok(standby != 0)
        });
        let Some(pulse) = &self.readers.pulse else { return look.await.map(drop) };
        match timeout(LONGEST_LOOK, look).await {
            Ok(Ok(true)) => {
                pulse.distrust();
                Err(StoreError::ReadOnly)
            }
            Ok(looked) => looked.map(drop),
            Err(_) if pulse.lets_in().await => Ok(()),
            Err(_) => {
                let silent = silent().into();
                self.readers.outage.note(Asked::Read, Some(&silent));
                Err(silent)
            }
        }
    }
}
