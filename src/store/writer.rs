//! The writer: operations wait in a queue for tasks that own the write connections. An operation belongs to them from the
//! moment it is queued, so a caller that goes away cannot stop it half-way. This module does not know what the operations do.

mod groups;
mod lanes;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;
use tracing::field::Empty;

use super::StoreError;
use super::engine::Engine;
use super::room::Room;

/// Operations that may wait; a longer queue answers [`StoreError::Busy`] at once, so that memory stays bounded
/// when the disk stalls. At the usual rate of over 10,000 operations per second this is a wait of 0.4 s.
const MAX_WAITING: usize = 4096;

/// One write. It runs in a transaction, perhaps with others, and must not begin, commit or roll back anything itself. It
/// may fail, and is then undone; it may be run again after the transaction was rolled back. A
/// [`StoreError::Conflict`] or [`StoreError::TooMany`] is a refusal: it is answered before anything was changed.
pub(super) trait Operation<E: Engine>: Send + Sync + 'static {
    type Output: Send + 'static;

    /// Whether it takes something away, rights or room: such an operation goes on where nothing else finds room.
    fn takes_away(&self) -> bool {
        false
    }

    fn apply(
        &self,
        connection: &mut E::Connection,
    ) -> impl Future<Output = Result<Self::Output, StoreError>> + Send;
}

/// The way to the writer's tasks. They end when this is dropped or closed.
#[derive(Debug)]
pub(super) struct Writer<E: Engine> {
    queue: mpsc::Sender<Message<E>>,
    room: Arc<Room>,
}

enum Message<E: Engine> {
    Write(Box<dyn Queued<E>>),
    Close(oneshot::Sender<Result<(), StoreError>>),
}

impl<E: Engine> Writer<E> {
    /// A queue, and its end for the tasks.
    fn new() -> (Self, mpsc::Receiver<Message<E>>) {
        let (queue, messages) = mpsc::channel(MAX_WAITING);
        (Self { queue, room: Arc::default() }, messages)
    }

    /// Queues an operation and waits until it is committed. Dropping the future does not cancel it.
    pub(super) async fn submit<O: Operation<E>>(&self, operation: O) -> Result<O::Output, StoreError> {
        let span = tracing::info_span!(
            target: crate::SPANS,
            "commit",
            "otel.name" = "COMMIT",
            "otel.kind" = "client",
            "db.system.name" = E::SYSTEM,
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

    async fn commit<O: Operation<E>>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (reply, answer) = oneshot::channel();
        let pending = Pending { operation, queued_at: Instant::now(), outcome: None, reply };
        // Not the waiting `send`: a caller that goes away there would take its write along.
        self.queue.try_send(Message::Write(Box::new(pending))).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
        })?;
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

    /// Commits what is queued, refuses what comes later, and closes the connections. Harmless when closed already.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Message::Close(reply)).await.is_err() {
            return Ok(());
        }
        answer.await.unwrap_or(Ok(()))
    }
}

/// A queued operation, its type hidden.
trait Queued<E: Engine>: Send {
    /// Runs the operation and keeps its outcome; false when it may have left changes that are to be undone.
    fn apply<'a>(&'a mut self, connection: &'a mut E::Connection) -> BoxFuture<'a, bool>;

    /// See [`Operation::takes_away`].
    fn takes_away(&self) -> bool;

    /// Why the operation failed when it last ran.
    fn failure(&self) -> Option<&StoreError>;

    /// Since when it waits.
    fn queued_at(&self) -> Instant;

    /// Tells the caller: the failure of the whole group, else the outcome.
    fn answer(self: Box<Self>, group_failure: Option<&StoreError>);
}

struct Pending<O, T> {
    operation: O,
    queued_at: Instant,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<E: Engine, O: Operation<E>> Queued<E> for Pending<O, O::Output> {
    fn apply<'a>(&'a mut self, connection: &'a mut E::Connection) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let applied = AssertUnwindSafe(self.operation.apply(connection)).catch_unwind().await;
            // A task that writes for all must not end by what one had it do.
            let outcome = applied.unwrap_or(Err(StoreError::Panicked));
            let clean = matches!(outcome, Ok(_) | Err(StoreError::Conflict | StoreError::TooMany));
            self.outcome = Some(outcome);
            clean
        })
    }

    fn takes_away(&self) -> bool {
        self.operation.takes_away()
    }

    fn failure(&self) -> Option<&StoreError> {
        self.outcome.as_ref()?.as_ref().err()
    }

    fn queued_at(&self) -> Instant {
        self.queued_at
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
