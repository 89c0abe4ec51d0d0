//! Hearing what other processes wrote, by the notifications of PostgreSQL (<https://www.postgresql.org/docs/current/sql-notify.html>),
//! over a connection of its own.
//!
//! A notification goes out with the commit of its transaction. It is a wake-up: who misses one reads a little later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Executor as _, PgConnection};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::store::changes::Heard;
use crate::store::failures::told;
use crate::store::outage::Outage;

/// The channel of all processes. Those of other databases have their own.
const CHANNEL: &str = "toolrack";

/// Time between two attempts to listen.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// After so much silence the server is asked whether it is still there, for so long.
const SILENCE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(3);

/// Where nothing can be heard for so long, though the database is there, the log says so.
const DEAF: Duration = Duration::from_secs(15);

/// A setting of every connection: whose it is, so that nobody is woken by what he wrote himself.
const WRITER: &str = "toolrack.writer";

/// Where a pooler has lost the setting, all are woken.
const TELL: &str =
    "SELECT pg_notify($1, coalesce(current_setting('toolrack.writer', true), '') || '/' || $2)";

/// Who writes over the connections of one store.
#[derive(Debug, Clone)]
pub(super) struct Writer(String);

impl Writer {
    pub(super) fn random() -> Self {
        Self(hex::encode(rand::random::<[u8; 8]>()))
    }

    /// Lets connections say so.
    pub(super) fn on(&self, options: PgConnectOptions) -> PgConnectOptions {
        options.options([(WRITER, &self.0)])
    }

    /// What a notification tells, where another one wrote it.
    fn told_by_another<'t>(&self, text: &'t str) -> Option<&'t str> {
        let (writer, told) = text.split_once('/')?;
        (writer != self.0).then_some(told)
    }
}

/// Tells the others of what the transaction writes, once it is committed.
pub(super) async fn tell(connection: &mut PgConnection, what: &str) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::query(TELL).bind(CHANNEL).bind(what)).await.map(drop)
}

/// Listens until it is aborted.
pub(super) fn start(
    options: PgConnectOptions,
    writer: Writer,
    heard: Arc<Heard>,
    outage: Arc<Outage>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        // Since when nothing is heard, while that was not told.
        let mut deaf_since = Some(Instant::now());
        loop {
            // The listener wants a pool for its connection; one that fell silent would keep the only place of the next.
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .max_lifetime(None)
                .idle_timeout(None)
                .acquire_timeout(PATIENCE)
                .connect_lazy_with(options.clone());
            if let Ok(mut listener) = PgListener::connect_with(&pool).await
                && let Ok(Ok(())) = timeout(PATIENCE, listener.listen(CHANNEL)).await
            {
                listener.eager_reconnect(false);
                heard.begin();
                let end = hear(&mut listener, &writer, &heard).await;
                heard.end();
                deaf_since = Some(Instant::now());
                let error = end.map(|error| told(&error));
                tracing::debug!(error, "what others write is not heard; it is read within a second");
            } else if let Some(since) = deaf_since.take() {
                // The log has a line about a database that is away.
                if outage.is_on() || since.elapsed() < DEAF {
                    deaf_since = Some(since);
                } else {
                    tracing::warn!("what others write cannot be heard; it is read within a second");
                }
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    })
}

/// Hears until the connection is lost.
async fn hear(listener: &mut PgListener, writer: &Writer, heard: &Heard) -> Option<sqlx::Error> {
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => {
                if let Some(told) = writer.told_by_another(notification.payload()) {
                    heard.tell(told);
                }
            }
            Ok(Ok(None)) => return None,
            Ok(Err(error)) => return Some(error),
            Err(_) => match timeout(PATIENCE, listener.execute("SELECT 1")).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Some(error),
                Err(_) => return None,
            },
        }
    }
}
