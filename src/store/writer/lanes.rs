//! The writer of PostgreSQL: a few tasks with a connection each, which take operations from one queue. Every operation is a
//! transaction of its own, so that none waits for another's rows longer than it must; the server brings the commits of several
//! connections to its disk together.
//!
//! A task without a connection makes one before it takes an operation, which another task may do meanwhile: the server may let in fewer
//! than there are tasks. Where none of them has one, an operation that has waited long enough is taken, and fails.
//!
//! An operation that lost its connection before its commit, or that the server undid because of others, is run again for a
//! while. When the connection is lost during the commit, nobody can tell whether that happened: the caller is told that it
//! failed. So it is when the server falls silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, Postgres};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Message, Queued, Writer};
use crate::store::failures::{Retry, retry, sqlstate};
use crate::store::outage::{Asked, Outage};
use crate::store::postgres::DOUBTED_AFTER;
use crate::store::pulse::{Pulse, answers, silent};
use crate::store::room::Room;
use crate::store::{Committed, Observe, Observed, StoreError};

/// How long an operation waits for a server that does not answer, from when it was queued.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time between two attempts to reach it.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// Time between two attempts to have one more connection than there are.
const ONE_MORE_EVERY: Duration = Duration::from_secs(1);

/// Longest time for one transaction; the server gives up earlier, if it is there.
const TRANSACTION: Duration = Duration::from_secs(60);

/// Attempts of an operation that the server undoes because of others.
const ATTEMPTS: u32 = 10;

/// With another isolation an operation might not see what those committed that it waited for.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

const BACKEND: &str = "SELECT pg_backend_pid()";

impl Writer<Postgres> {
    /// Starts so many tasks on the current runtime, which ask `pulse` whether their server is there. `observe` is told of every
    /// operation that was handled.
    pub(in crate::store) fn start_lanes(
        options: PgConnectOptions,
        pulse: Arc<Pulse>,
        outage: Arc<Outage>,
        lanes: usize,
        observe: Observe,
    ) -> Self {
        let (writer, messages) = Self::new();
        let shared = Arc::new(Shared {
            line: Mutex::new(Line { first: None, messages }),
            connecting: Arc::default(),
            connected: Arc::default(),
            closing: Mutex::default(),
            options,
            pulse,
            outage,
            is_standby: AtomicBool::new(false),
            observe,
            room: Arc::clone(&writer.room),
        });
        let mut running: JoinSet<()> = (0..lanes).map(|_| run(Arc::clone(&shared))).collect();
        tokio::spawn(async move {
            while running.join_next().await.is_some() {}
            for reply in shared.closing.lock().await.drain(..) {
                drop(reply.send(Ok(())));
            }
        });
        writer
    }
}

struct Shared {
    line: Mutex<Line>,
    /// Held by the task that makes a connection, so that no more are made than are needed.
    connecting: Arc<Mutex<()>>,
    /// Tasks that have a connection.
    connected: Arc<AtomicUsize>,
    /// Who waits until all is written.
    closing: Mutex<Vec<oneshot::Sender<Result<(), StoreError>>>>,
    options: PgConnectOptions,
    pulse: Arc<Pulse>,
    outage: Arc<Outage>,
    /// An operation waited in vain for a server that takes writes, and none was seen since.
    is_standby: AtomicBool,
    observe: Observe,
    room: Arc<Room>,
}

/// The operations that wait.
struct Line {
    /// The one that was looked at by a task that could not take it.
    first: Option<Box<dyn Queued<Postgres>>>,
    messages: mpsc::Receiver<Message<Postgres>>,
}

/// One connection, made when it is needed.
struct Lane {
    shared: Arc<Shared>,
    connection: Option<Counted>,
    /// The process of the server that is at its other end.
    backend: Arc<AtomicI32>,
    used_at: Instant,
    /// The last attempt to make one failed in a way that waiting does not help.
    in_vain: bool,
}

/// A connection, counted for as long as it is there.
struct Counted {
    connection: PgConnection,
    _place: Place,
}

struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(places: &Arc<AtomicUsize>) -> Self {
        places.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(places))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why an attempt failed, and what another one is good for.
struct Missed(StoreError, Retry);

impl From<sqlx::Error> for Missed {
    fn from(error: sqlx::Error) -> Self {
        let error = StoreError::from(error);
        let retry = retry(&error);
        Self(error, retry)
    }
}

async fn run(shared: Arc<Shared>) {
    let used_at = Instant::now();
    let mut lane = Lane { shared, connection: None, backend: Arc::default(), used_at, in_vain: false };
    let mut connecting = None;
    loop {
        // The others wait for their turn to wait for a message.
        let mut line = lane.shared.line.lock().await;
        drop(connecting.take());
        if line.first.is_none() {
            line.first = match line.messages.recv().await {
                Some(Message::Write(operation)) => Some(operation),
                Some(Message::Close(reply)) => {
                    line.messages.close();
                    lane.shared.closing.lock().await.push(reply);
                    None
                }
                None => break,
            };
        }
        match line.first.take() {
            Some(operation) if lane.may_take(&*operation) => {
                drop(line);
                lane.write(operation).await;
            }
            Some(operation) => {
                line.first = Some(operation);
                drop(line);
                connecting = lane.prepare().await;
            }
            None => {}
        }
    }
    if let Some(Counted { connection, .. }) = lane.connection {
        drop(connection.close().await);
    }
}

impl Lane {
    fn may_take(&self, operation: &dyn Queued<Postgres>) -> bool {
        if self.connection.is_some() {
            return true;
        }
        let nobody_can = self.shared.connected.load(Ordering::Relaxed) == 0;
        nobody_can && (self.in_vain || operation.queued_at().elapsed() >= PATIENCE)
    }

    /// Makes a connection, unless another task does so: then it waits for that. Others wait until what is answered is dropped.
    async fn prepare(&mut self) -> Option<OwnedMutexGuard<()>> {
        let Ok(connecting) = Arc::clone(&self.shared.connecting).try_lock_owned() else {
            drop(self.shared.connecting.lock().await);
            return None;
        };
        let Err(Missed(_, retry)) = self.connect().await else { return Some(connecting) };
        drop(connecting);
        self.in_vain = retry == Retry::Vain;
        match self.shared.connected.load(Ordering::Relaxed) {
            0 if self.in_vain => {}
            0 => tokio::time::sleep(RETRY_EVERY).await,
            _ => tokio::time::sleep(ONE_MORE_EVERY).await,
        }
        None
    }

    async fn connect(&mut self) -> Result<(), Missed> {
        self.backend.store(0, Ordering::Relaxed);
        let connected = timeout(PATIENCE, self.shared.options.connect()).await;
        let mut connection = connected.unwrap_or_else(|_| Err(silent()))?;
        let asked = timeout(PATIENCE, sqlx::query_as(BACKEND).fetch_one(&mut connection)).await;
        let (backend,) = asked.unwrap_or_else(|_| Err(silent()))?;
        self.backend.store(backend, Ordering::Relaxed);
        self.connection = Some(Counted { connection, _place: Place::take(&self.shared.connected) });
        (self.used_at, self.in_vain) = (Instant::now(), false);
        Ok(())
    }

    /// Runs an operation to its end and answers its caller.
    async fn write(&mut self, mut operation: Box<dyn Queued<Postgres>>) {
        self.in_vain = false;
        let deadline = operation.queued_at() + PATIENCE;
        let began = Instant::now();
        let waited = began.saturating_duration_since(operation.queued_at());
        let mut attempts = 0;
        let failure = loop {
            // Many wait when the server is away, and none must wait for what all others waited for.
            if began >= deadline && attempts == 0 && !self.shared.pulse.is_there().await {
                break Some(silent().into());
            }
            attempts += 1;
            let (pulse, backend) = (Arc::clone(&self.shared.pulse), Arc::clone(&self.backend));
            let tried = pulse.watch(self.attempt(&mut *operation), TRANSACTION, &backend).await;
            // A connection that was left in the middle of something is of no use.
            let Missed(failure, retry) = match tried {
                Ok(Ok(())) => break None,
                Ok(Err(missed)) => missed,
                Err(given_up) => {
                    self.connection = None;
                    Missed(given_up.into(), Retry::Vain)
                }
            };
            match retry {
                Retry::Reconnect => {
                    self.connection = None;
                    let is_late = Instant::now() >= deadline;
                    if matches!(failure, StoreError::ReadOnly) {
                        self.shared.pulse.distrust();
                        // One has waited for all.
                        if self.shared.is_standby.fetch_or(is_late, Ordering::Relaxed) {
                            break Some(failure);
                        }
                    }
                    if is_late {
                        break Some(failure);
                    }
                    tokio::time::sleep(RETRY_EVERY).await;
                }
                Retry::Again if attempts < ATTEMPTS => {}
                Retry::Again | Retry::Vain => break Some(failure),
            }
        };
        self.shared.outage.note(Asked::Write, failure.as_ref());
        match &failure {
            None => self.shared.room.stored(Instant::now()),
            Some(StoreError::Full) => self.shared.room.missed(Instant::now()),
            Some(StoreError::Conflict | StoreError::TooMany | StoreError::Busy) => {}
            Some(error) if error.is_outage() => tracing::debug!(%error, "a write failed"),
            Some(error) => tracing::error!(%error, "a write failed"),
        }
        operation.answer(failure.as_ref());
        self.used_at = Instant::now();
        (self.shared.observe)(&Observed::Committed(Committed { waited: &[waited], took: began.elapsed() }));
    }

    /// One transaction.
    async fn attempt(&mut self, operation: &mut dyn Queued<Postgres>) -> Result<(), Missed> {
        if let Some(Counted { connection, .. }) = &mut self.connection
            && self.used_at.elapsed() >= DOUBTED_AFTER
            && !answers(connection).await
        {
            self.connection = None;
        }
        if self.connection.is_none() {
            self.connect().await?;
        }
        let Some(Counted { connection, .. }) = &mut self.connection else { return Err(silent().into()) };
        execute(connection, BEGIN).await.map_err(not_begun)?;
        self.shared.is_standby.store(false, Ordering::Relaxed);
        operation.apply(connection).await;
        if let Some(failure) = operation.failure() {
            let missed = Missed(failure.clone(), retry(failure));
            if matches!(failure, StoreError::Panicked) {
                // It may be in the middle of something.
                self.connection = None;
            } else if missed.1 != Retry::Reconnect {
                execute(connection, "ROLLBACK").await?;
            }
            return Err(missed);
        }
        match execute(connection, "COMMIT").await.map_err(Missed::from) {
            Err(Missed(failure, Retry::Reconnect)) => {
                self.connection = None;
                Err(Missed(failure, Retry::Vain))
            }
            done => done,
        }
    }
}

/// A standby has no transactions that write: it calls them an unsupported feature (0A000).
fn not_begun(error: sqlx::Error) -> Missed {
    match sqlstate(&error) {
        Some("0A000") => Missed(StoreError::ReadOnly, Retry::Reconnect),
        _ => error.into(),
    }
}

async fn execute(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop)
}
