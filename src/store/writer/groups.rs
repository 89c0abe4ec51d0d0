//! The writer of SQLite: one task that owns the only write connection and commits in groups.
//!
//! It takes all operations that have queued up, runs them in one transaction, commits once, and only then answers. The cost
//! of a commit is shared by many callers, and no two writers ever wait for each other's lock.
//!
//! One that fails is undone alone. A savepoint around each would see to that, at the price of a third of the
//! throughput; since failures are rare, a group runs without them first, and once more with them when one fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection, Sqlite, SqliteConnection};
use tokio::sync::mpsc;

use super::{Message, Queued, Writer};
use crate::store::room::Room;
use crate::store::{Committed, Observe, Observed, StoreError};

/// Operations in one transaction at most: bounds how long the first of a group waits for the last.
const MAX_GROUP: usize = 256;

/// Pages of the reserve: some hundreds of revocations with their entries in the log of changes.
const RESERVE_PAGES: i64 = 64;

impl Writer<Sqlite> {
    /// Starts the task on the current runtime. `observe` is told of every group that was handled.
    pub(in crate::store) fn start(connection: SqliteConnection, observe: Observe) -> Self {
        let (writer, messages) = Self::new();
        tokio::spawn(run(connection, messages, observe, Arc::clone(&writer.room)));
        writer
    }
}

async fn run(
    mut connection: SqliteConnection,
    mut messages: mpsc::Receiver<Message<Sqlite>>,
    observe: Observe,
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
                Message::Write(operation) => {
                    waited.push(began.saturating_duration_since(operation.queued_at()));
                    group.push(operation);
                }
                Message::Close(reply) => {
                    messages.close();
                    closing.push(reply);
                }
            }
        }
        if !group.is_empty() {
            let took = commit(&mut connection, group, &room).await;
            observe(&Observed::Committed(Committed { waited: &waited, took }));
        }
    }
    let closed = close(connection).await.map_err(StoreError::from);
    for reply in closing {
        drop(reply.send(closed.clone()));
    }
}

/// Commits a group and answers its callers; how long the transaction took.
async fn commit(
    connection: &mut SqliteConnection,
    mut group: Vec<Box<dyn Queued<Sqlite>>>,
    room: &Room,
) -> Duration {
    let began = Instant::now();
    let failure = match try_together(connection, &mut group).await {
        Ok(true) => None,
        Ok(false) => try_apart(connection, &mut group).await.err(),
        Err(failure) => Some(failure),
    };
    let took = began.elapsed();
    // One that had no room may have undone the whole transaction: then the others had none either.
    let full = group.iter().any(|operation| matches!(operation.failure(), Some(StoreError::Full)));
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
    let is_full = |operation: &dyn Queued<Sqlite>| {
        matches!(failure, Some(StoreError::Full)) || matches!(operation.failure(), Some(StoreError::Full))
    };
    let (mut taking_away, rest): (Vec<_>, Vec<_>) =
        group.into_iter().partition(|operation| operation.takes_away() && is_full(&**operation));
    for operation in rest {
        operation.answer(failure.as_ref());
    }
    if !taking_away.is_empty() {
        let failure = with_reserve(connection, &mut taking_away).await.err().map(StoreError::from);
        if failure.is_some() {
            roll_back(connection).await;
        }
        for operation in taking_away {
            operation.answer(failure.as_ref());
        }
    }
    took
}

/// Runs operations with room beyond the bound that the settings give, which only they get. A disk that is full has none.
async fn with_reserve(
    connection: &mut SqliteConnection,
    group: &mut [Box<dyn Queued<Sqlite>>],
) -> Result<(), sqlx::Error> {
    let (pages,): (i64,) = sqlx::query_as("PRAGMA max_page_count").fetch_one(&mut *connection).await?;
    set_pages(connection, pages + RESERVE_PAGES).await?;
    let done = try_apart(connection, group).await;
    // A bound below what the file has is taken as what it has.
    set_pages(connection, pages).await?;
    done
}

async fn set_pages(connection: &mut SqliteConnection, pages: i64) -> Result<(), sqlx::Error> {
    let text = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    sqlx::raw_sql(text).execute(connection).await.map(drop)
}

/// The usual way. False when an operation failed: everything is undone, and the group is to be tried apart.
async fn try_together(
    connection: &mut SqliteConnection,
    group: &mut [Box<dyn Queued<Sqlite>>],
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
    group: &mut [Box<dyn Queued<Sqlite>>],
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

    use super::super::{MAX_WAITING, Operation};
    use super::*;

    async fn writer(directory: &tempfile::TempDir) -> (Writer<Sqlite>, SqliteConnection) {
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
        Panic,
        /// What SQLite does by itself when the disk is full.
        LoseTransaction,
    }

    struct Insert(&'static str, Then);

    impl Operation<Sqlite> for Insert {
        type Output = &'static str;

        async fn apply(&self, connection: &mut SqliteConnection) -> Result<&'static str, StoreError> {
            sqlx::query("INSERT INTO t VALUES ($1)").bind(self.0).execute(&mut *connection).await?;
            match self.1 {
                Then::Succeed => Ok(self.0),
                Then::Fail => Err(StoreError::Corrupt("row")),
                Then::Panic => panic!("as a fault of the program does"),
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
        assert!(matches!(twice, Err(StoreError::Refused(_))));
        assert_eq!(last.unwrap(), "c");
        assert_eq!(names(&mut reader).await, ["a", "c"]);
    }

    #[tokio::test]
    async fn an_operation_that_panics_is_undone_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, mut reader) = writer(&directory).await;
        let (first, panicked, last) = tokio::join!(
            writer.submit(Insert("a", Then::Succeed)),
            writer.submit(Insert("b", Then::Panic)),
            writer.submit(Insert("c", Then::Succeed)),
        );
        assert_eq!((first.unwrap(), last.unwrap()), ("a", "c"));
        assert!(matches!(panicked, Err(StoreError::Panicked)));
        writer.submit(Insert("d", Then::Succeed)).await.unwrap();
        assert_eq!(names(&mut reader).await, ["a", "c", "d"]);
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
        impl Operation<Sqlite> for Count {
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
