//! The writer: one task that owns the only write connection and commits in groups.
//!
//! Operations wait in a queue; the task takes all that have queued up, runs them in one transaction, commits once,
//! and only then answers. The cost of a commit is shared by many callers, and no two writers ever wait for each
//! other's lock. An operation belongs to the task from the moment it is queued, so a caller that goes away cannot
//! stop it half-way. This module does not know what the operations do.
//!
//! One that fails is undone alone. A savepoint around each would see to that, at the price of a third of the
//! throughput; since failures are rare, a group runs without them first, and once more with them when one fails.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;
use tracing::field::Empty;

use super::room::Room;
use super::{Committed, StoreError};

/// Operations in one transaction at most: bounds how long the first of a group waits for the last.
const MAX_GROUP: usize = 256;

/// Operations that may wait; a longer queue answers [`StoreError::Busy`] at once, so that memory stays bounded
/// when the disk stalls. At the usual rate of over 10,000 operations per second this is a wait of 0.4 s.
const MAX_WAITING: usize = 4096;

/// One write. It runs in a transaction with others, and must not begin, commit or roll back anything itself. It
/// may fail, and is then undone; it may be run again after the transaction was rolled back. A
/// [`StoreError::Conflict`] or [`StoreError::TooMany`] is a refusal: it is answered before anything was changed.
pub(super) trait Operation: Send + Sync + 'static {
    type Output: Send + 'static;

    fn apply(
        &self,
        connection: &mut SqliteConnection,
    ) -> impl Future<Output = Result<Self::Output, StoreError>> + Send;
}

/// The way to the writer task. The task ends when this is dropped or closed.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    room: Arc<Room>,
}

enum Message {
    /// With the time at which it was queued.
    Write(Box<dyn Queued>, Instant),
    Close(oneshot::Sender<Result<(), StoreError>>),
}

impl Writer {
    /// Starts the task on the current runtime. `committed` is told of every group that was handled.
    pub(super) fn start(connection: SqliteConnection, committed: fn(&Committed<'_>)) -> Self {
        let (queue, messages) = mpsc::channel(MAX_WAITING);
        let room = Arc::<Room>::default();
        tokio::spawn(run(connection, messages, committed, Arc::clone(&room)));
        Self { queue, room }
    }

    /// Queues an operation and waits until it is committed. Dropping the future does not cancel it.
    pub(super) async fn submit<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        let span = tracing::info_span!(
            target: crate::SPANS,
            "commit",
            "otel.name" = "COMMIT",
            "otel.kind" = "client",
            "db.system.name" = "sqlite",
            "db.operation.name" = "COMMIT",
            "error.type" = Empty,
            "otel.status_code" = Empty,
        );
        let outcome = self.commit(operation).instrument(span.clone()).await;
        if let Err(error) = &outcome
            && let Some(kind) = error.fault()
        {
            span.record("error.type", kind).record("otel.status_code", "ERROR");
        }
        outcome
    }

    async fn commit<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (reply, answer) = oneshot::channel();
        let pending = Pending { operation, outcome: None, reply };
        // Not the waiting `send`: a caller that goes away there would take its write along.
        self.queue.try_send(Message::Write(Box::new(pending), Instant::now())).map_err(
            |error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::Busy,
                mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
            },
        )?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// How many operations wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Whether writes find room, as far as the last ones tell.
    pub(super) fn has_room(&self) -> bool {
        self.room.is_there()
    }

    /// Commits what is queued, refuses what comes later, and closes the connection. Harmless when closed already.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Message::Close(reply)).await.is_err() {
            return Ok(());
        }
        answer.await.unwrap_or(Ok(()))
    }
}

/// A queued operation, its type hidden.
trait Queued: Send {
    /// Runs the operation and keeps its outcome; false when it may have left changes that are to be undone.
    fn apply<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, bool>;

    /// Whether the operation had no room, which may have undone the whole transaction.
    fn was_full(&self) -> bool;

    /// Tells the caller: the failure of the whole group, else the outcome.
    fn answer(self: Box<Self>, group_failure: Option<&StoreError>);
}

struct Pending<O: Operation> {
    operation: O,
    outcome: Option<Result<O::Output, StoreError>>,
    reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

impl<O: Operation> Queued for Pending<O> {
    fn apply<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let outcome = self.operation.apply(connection).await;
            let clean = matches!(outcome, Ok(_) | Err(StoreError::Conflict | StoreError::TooMany));
            self.outcome = Some(outcome);
            clean
        })
    }

    fn was_full(&self) -> bool {
        matches!(self.outcome, Some(Err(StoreError::Full)))
    }

    fn answer(self: Box<Self>, group_failure: Option<&StoreError>) {
        let answer = match (self.outcome, group_failure) {
            (Some(Err(own)), _) => Err(own),
            (_, Some(failure)) => Err(failure.clone()),
            (Some(Ok(output)), None) => Ok(output),
            (None, None) => Err(StoreError::Closed),
        };
        // Nobody may be waiting any more; the write stands all the same.
        drop(self.reply.send(answer));
    }
}

async fn run(
    mut connection: SqliteConnection,
    mut messages: mpsc::Receiver<Message>,
    committed: fn(&Committed<'_>),
    room: Arc<Room>,
) {
    let mut received = Vec::with_capacity(MAX_GROUP);
    let mut closing = Vec::new();
    while messages.recv_many(&mut received, MAX_GROUP).await > 0 {
        let mut group = Vec::with_capacity(received.len());
        let mut waited = Vec::with_capacity(received.len());
        let began = Instant::now();
        for message in received.drain(..) {
            match message {
                Message::Write(operation, queued) => {
                    group.push(operation);
                    waited.push(began.saturating_duration_since(queued));
                }
                Message::Close(reply) => {
                    messages.close();
                    closing.push(reply);
                }
            }
        }
        if !group.is_empty() {
            let took = commit(&mut connection, group, &room).await;
            committed(&Committed { waited: &waited, took });
        }
    }
    let closed = close(connection).await.map_err(StoreError::from);
    for reply in closing {
        drop(reply.send(closed.clone()));
    }
}

/// Commits a group and answers its callers; how long the transaction took.
async fn commit(connection: &mut SqliteConnection, mut group: Vec<Box<dyn Queued>>, room: &Room) -> Duration {
    let began = Instant::now();
    let failure = match try_together(connection, &mut group).await {
        Ok(true) => None,
        Ok(false) => try_apart(connection, &mut group).await.err(),
        Err(failure) => Some(failure),
    };
    let took = began.elapsed();
    // What was undone with an operation that had no room had none either.
    let full = group.iter().any(|operation| operation.was_full());
    let failure = failure.map(|failure| if full { StoreError::Full } else { failure.into() });
    if full || matches!(failure, Some(StoreError::Full)) {
        room.missed(Instant::now());
    } else if failure.is_none() {
        room.stored(Instant::now());
    }
    if let Some(failure) = &failure {
        tracing::error!(error = %failure, operations = group.len(), "a group of writes failed");
        roll_back(connection).await;
    }
    for operation in group {
        operation.answer(failure.as_ref());
    }
    took
}

/// The usual way. False when an operation failed: everything is undone, and the group is to be tried apart.
async fn try_together(
    connection: &mut SqliteConnection,
    group: &mut [Box<dyn Queued>],
) -> Result<bool, sqlx::Error> {
    execute(connection, "BEGIN IMMEDIATE").await?;
    for operation in group {
        if !operation.apply(connection).await {
            roll_back(connection).await;
            return Ok(false);
        }
    }
    execute(connection, "COMMIT").await?;
    Ok(true)
}

/// Each operation in a savepoint. After a fault that makes SQLite roll back the whole transaction (disk full, I/O)
/// the savepoint is gone too and the next statement here fails: nothing slips in outside the transaction.
async fn try_apart(
    connection: &mut SqliteConnection,
    group: &mut [Box<dyn Queued>],
) -> Result<(), sqlx::Error> {
    execute(connection, "BEGIN IMMEDIATE").await?;
    for operation in group {
        execute(connection, "SAVEPOINT operation").await?;
        if !operation.apply(connection).await {
            execute(connection, "ROLLBACK TO operation").await?;
        }
        execute(connection, "RELEASE operation").await?;
    }
    execute(connection, "COMMIT").await
}

/// Fails when SQLite has rolled back by itself, which is as good.
async fn roll_back(connection: &mut SqliteConnection) {
    drop(execute(connection, "ROLLBACK").await);
}

/// Moves the write-ahead log into the database file, so that the file alone is the whole state.
async fn close(mut connection: SqliteConnection) -> Result<(), sqlx::Error> {
    execute(&mut connection, "PRAGMA wal_checkpoint(TRUNCATE)").await?;
    connection.close().await
}

async fn execute(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(sql).execute(connection).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use sqlx::ConnectOptions;
    use sqlx::sqlite::SqliteConnectOptions;

    use super::*;

    async fn writer(directory: &tempfile::TempDir) -> (Writer, SqliteConnection) {
        let options =
            SqliteConnectOptions::new().filename(directory.path().join("t.db")).create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        execute(&mut connection, "PRAGMA journal_mode = WAL").await.unwrap();
        execute(&mut connection, "CREATE TABLE t (name TEXT PRIMARY KEY)").await.unwrap();
        (Writer::start(connection, |_| {}), options.connect().await.unwrap())
    }

    async fn names(reader: &mut SqliteConnection) -> Vec<String> {
        sqlx::query_scalar("SELECT name FROM t ORDER BY name").fetch_all(reader).await.unwrap()
    }

    enum Then {
        Succeed,
        Fail,
        /// What SQLite does by itself when the disk is full.
        LoseTransaction,
    }

    struct Insert(&'static str, Then);

    impl Operation for Insert {
        type Output = &'static str;

        async fn apply(&self, connection: &mut SqliteConnection) -> Result<&'static str, StoreError> {
            sqlx::query("INSERT INTO t VALUES ($1)").bind(self.0).execute(&mut *connection).await?;
            match self.1 {
                Then::Succeed => Ok(self.0),
                Then::Fail => Err(StoreError::Corrupt("row")),
                Then::LoseTransaction => {
                    execute(connection, "ROLLBACK").await?;
                    Err(StoreError::Corrupt("disk"))
                }
            }
        }
    }

    #[tokio::test]
    async fn an_operation_that_fails_is_undone_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, mut reader) = writer(&directory).await;
        let (first, failed, twice, last) = tokio::join!(
            writer.submit(Insert("a", Then::Succeed)),
            writer.submit(Insert("b", Then::Fail)),
            writer.submit(Insert("a", Then::Succeed)),
            writer.submit(Insert("c", Then::Succeed)),
        );
        assert_eq!(first.unwrap(), "a");
        assert!(matches!(failed, Err(StoreError::Corrupt(_))));
        assert!(matches!(twice, Err(StoreError::Database(_))));
        assert_eq!(last.unwrap(), "c");
        assert_eq!(names(&mut reader).await, ["a", "c"]);
    }

    #[tokio::test]
    async fn a_lost_transaction_fails_its_whole_group_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, mut reader) = writer(&directory).await;
        let (before, lost, after) = tokio::join!(
            writer.submit(Insert("a", Then::Succeed)),
            writer.submit(Insert("b", Then::LoseTransaction)),
            writer.submit(Insert("c", Then::Succeed)),
        );
        assert!(matches!(lost, Err(StoreError::Corrupt("disk"))));
        for answer in [before, after] {
            assert!(matches!(answer, Err(StoreError::Database(_))), "{answer:?}");
        }
        assert!(names(&mut reader).await.is_empty(), "what was not promised is not there");
        writer.submit(Insert("d", Then::Succeed)).await.unwrap();
        assert_eq!(names(&mut reader).await, ["d"]);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_at_once_and_loses_nothing_it_took() {
        struct Count;
        impl Operation for Count {
            type Output = ();
            async fn apply(&self, _: &mut SqliteConnection) -> Result<(), StoreError> {
                Ok(())
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let (writer, _reader) = writer(&directory).await;
        let mut context = Context::from_waker(Waker::noop());
        let mut writes: Vec<_> = (0..MAX_WAITING + 10).map(|_| Box::pin(writer.submit(Count))).collect();
        // The writer cannot run on this single thread before all of them have been queued.
        let refused = writes.split_off(MAX_WAITING);
        for write in &mut writes {
            assert!(write.as_mut().poll(&mut context).is_pending());
        }
        for write in refused {
            assert!(matches!(write.await, Err(StoreError::Busy)));
        }
        for write in writes {
            write.await.unwrap();
        }
    }

    #[tokio::test]
    async fn closing_commits_what_waits_and_refuses_what_comes_later() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, mut reader) = writer(&directory).await;
        let (waiting, closed) = tokio::join!(writer.submit(Insert("a", Then::Succeed)), writer.close());
        assert_eq!((waiting.unwrap(), closed.unwrap()), ("a", ()));
        assert!(writer.is_closed());
        assert!(matches!(writer.submit(Insert("b", Then::Succeed)).await, Err(StoreError::Closed)));
        writer.close().await.unwrap();
        assert_eq!(names(&mut reader).await, ["a"]);
    }
}
