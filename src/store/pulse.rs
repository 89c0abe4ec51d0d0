//! Whether a PostgreSQL server is there. A server that was paused, or that the network does not reach any more, leaves everybody
//! waiting: connections stay open and nothing comes. So whoever has waited for a while asks here, on a connection of its own, and
//! goes on waiting only if the server answers others, and, where it is known which of its sessions is waited for, if that is at work: the
//! network may have lost one connection alone.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::StoreError;
use super::failures::sqlstate;

/// A wait of so long raises the question.
const SILENCE: Duration = Duration::from_secs(5);

/// How long the server may take to answer it.
const LONGEST_ANSWER: Duration = Duration::from_secs(2);

/// How long an answer is good for all who ask.
const ANSWER_KEPT: Duration = Duration::from_secs(1);

/// Ends a session that has waited for a while to be told something, which was lost on the way, and so what it locks; whether it did,
/// or there is none. As one statement: a moment later its process may be another's. What does not say that it waits is at work: where
/// `track_activities` is off, none says so.
const END_LOST: &str = "SELECT coalesce((SELECT CASE WHEN state LIKE 'idle%' \
     AND state_change <= clock_timestamp() - INTERVAL '3 seconds' THEN pg_terminate_backend(pid) ELSE FALSE END \
     FROM pg_stat_activity WHERE pid = $1 AND usename = session_user), TRUE)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Welcome,
    /// It lets nobody in: it stops or starts, or does not want this user.
    No,
    Nothing,
}

/// Why somebody waits no more; the connection is in the middle of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// The server does not answer.
    Silent,
    /// It answers others, and not on this connection.
    Lost,
    /// It takes too long.
    Late,
}

impl From<GivenUp> for StoreError {
    fn from(given_up: GivenUp) -> Self {
        match given_up {
            GivenUp::Silent => silent().into(),
            GivenUp::Lost => Self::Database(Arc::new(lost())),
            GivenUp::Late => Self::Busy,
        }
    }
}

/// Asks a server, for all who wait for it.
#[derive(Debug)]
pub(super) struct Pulse {
    options: PgConnectOptions,
    /// When it was asked, and what it said.
    last: Mutex<Option<(Instant, Said)>>,
    /// When the server was last seen to be another one than was meant.
    distrusted: std::sync::Mutex<Option<Instant>>,
}

impl Pulse {
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self { options, last: Mutex::default(), distrusted: std::sync::Mutex::default() }
    }

    /// The connections that there are lead to a server that takes no writes: a new one may lead to one that does.
    pub(super) fn distrust(&self) {
        *self.distrusted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether a connection of this age may be used.
    pub(super) fn trusts(&self, age: Duration) -> bool {
        let distrusted = *self.distrusted.lock().unwrap_or_else(PoisonError::into_inner);
        distrusted.is_none_or(|distrusted| age < distrusted.elapsed())
    }

    /// Whether the server answers. One that lets nobody in may go on with those that it has.
    pub(super) async fn is_there(&self) -> bool {
        self.ask().await != Said::Nothing
    }

    /// Whether the server lets in, but for those that are too many.
    pub(super) async fn lets_in(&self) -> bool {
        self.ask().await == Said::Welcome
    }

    async fn ask(&self) -> Said {
        let mut last = self.last.lock().await;
        if let Some((asked, said)) = *last
            && asked.elapsed() < ANSWER_KEPT
        {
            return said;
        }
        let (said, connection) = self.connect().await;
        *last = Some((Instant::now(), said));
        if let Some(connection) = connection {
            drop(timeout(LONGEST_ANSWER, connection.close()).await);
        }
        said
    }

    async fn connect(&self) -> (Said, Option<PgConnection>) {
        match timeout(LONGEST_ANSWER, self.options.connect()).await {
            Ok(Ok(connection)) => (Said::Welcome, Some(connection)),
            // A refusal is an answer.
            Ok(Err(error)) => match sqlstate(&error) {
                // Too many connections.
                Some("53300") => (Said::Welcome, None),
                Some(_) => (Said::No, None),
                None => (Said::Nothing, None),
            },
            Err(_) => (Said::Nothing, None),
        }
    }

    /// Why the work of a session is to be given up, where it is.
    async fn fault_of(&self, backend: i32) -> Option<GivenUp> {
        // One after the other, so that this takes no more than one connection.
        let mut last = self.last.lock().await;
        if let Some((asked, Said::Nothing)) = *last
            && asked.elapsed() < ANSWER_KEPT
        {
            return Some(GivenUp::Silent);
        }
        let (said, connection) = self.connect().await;
        *last = Some((Instant::now(), said));
        let Some(mut connection) = connection else {
            return (said == Said::Nothing).then_some(GivenUp::Silent);
        };
        let look = async {
            let (is_lost,): (bool,) =
                sqlx::query_as(END_LOST).bind(backend).fetch_one(&mut connection).await?;
            connection.close().await?;
            Ok::<_, sqlx::Error>(is_lost)
        };
        match timeout(LONGEST_ANSWER, look).await {
            Ok(Ok(true)) => Some(GivenUp::Lost),
            Ok(_) => None,
            Err(_) => Some(GivenUp::Silent),
        }
    }

    /// Waits for work on the server, while it is there and at most so long. `backend` is the process of the server's session that does it,
    /// as far as that is known, else 0.
    pub(super) async fn watch<T>(
        &self,
        work: impl Future<Output = T>,
        most: Duration,
        backend: &AtomicI32,
    ) -> Result<T, GivenUp> {
        let began = Instant::now();
        let mut work = pin!(work);
        loop {
            if let Ok(done) = timeout(SILENCE, &mut work).await {
                return Ok(done);
            }
            let fault = async {
                match backend.load(Ordering::Relaxed) {
                    0 => (!self.is_there().await).then_some(GivenUp::Silent),
                    backend => self.fault_of(backend).await,
                }
            };
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                fault = fault => match fault {
                    Some(fault) => return Err(fault),
                    None if began.elapsed() >= most => return Err(GivenUp::Late),
                    None => {}
                },
            }
        }
    }
}

/// Whether a connection can be used.
pub(super) async fn answers(connection: &mut PgConnection) -> bool {
    matches!(timeout(LONGEST_ANSWER, connection.ping()).await, Ok(Ok(())))
}

/// What it is that one connection is lost.
fn lost() -> sqlx::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the connection is lost, and the server answers others").into()
}

/// What it is that nothing came.
pub(super) fn silent() -> sqlx::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the server does not answer").into()
}
