//! Whether a PostgreSQL server is there. A server that was paused, or that the network does not reach any more, leaves everybody
//! waiting: connections stay open and nothing comes. So whoever has waited for a while asks here, on a connection of its own, and
//! goes on waiting only if the server answers others.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// A wait of so long raises the question.
const SILENCE: Duration = Duration::from_secs(5);

/// How long the server may take to answer it.
const LONGEST_ANSWER: Duration = Duration::from_secs(2);

/// How long an answer is good for all who ask.
const ANSWER_KEPT: Duration = Duration::from_secs(1);

/// Asks a server, for all who wait for it.
#[derive(Debug)]
pub(super) struct Pulse {
    options: PgConnectOptions,
    /// When it was asked, and whether it was there.
    last: Mutex<Option<(Instant, bool)>>,
}

impl Pulse {
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self { options, last: Mutex::default() }
    }

    /// Whether the server answers.
    pub(super) async fn is_there(&self) -> bool {
        let mut last = self.last.lock().await;
        if let Some((asked, there)) = *last
            && asked.elapsed() < ANSWER_KEPT
        {
            return there;
        }
        let there = match timeout(LONGEST_ANSWER, self.options.connect()).await {
            Ok(Ok(connection)) => {
                drop(timeout(LONGEST_ANSWER, connection.close()).await);
                true
            }
            // A refusal is an answer.
            Ok(Err(error)) => error.as_database_error().is_some(),
            Err(_) => false,
        };
        *last = Some((Instant::now(), there));
        there
    }

    /// Waits for work on the server, while it is there and at most so long.
    ///
    /// # Errors
    /// [`silent`]: the work was given up, and its connection is in the middle of something.
    pub(super) async fn watch<T>(
        &self,
        work: impl Future<Output = T>,
        most: Duration,
    ) -> Result<T, sqlx::Error> {
        let began = Instant::now();
        let mut work = pin!(work);
        loop {
            if let Ok(done) = timeout(SILENCE, &mut work).await {
                return Ok(done);
            }
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                there = self.is_there() => if !there || began.elapsed() >= most {
                    return Err(silent());
                },
            }
        }
    }
}

/// Whether a connection can be used.
pub(super) async fn answers(connection: &mut PgConnection) -> bool {
    matches!(timeout(LONGEST_ANSWER, connection.ping()).await, Ok(Ok(())))
}

/// What it is that nothing came.
pub(super) fn silent() -> sqlx::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the server does not answer").into()
}
