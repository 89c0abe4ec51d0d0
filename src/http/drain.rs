//! Lets ordinary clients see a refusal that comes before their body was read.
//!
//! A client that is still sending when the connection closes gets a reset instead of the answer. So a body that
//! nobody read to its end is read and dropped, within bounds, before the answer goes out.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

/// Most that is read and dropped of one body, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Longest time that is spent on it.
const LONGEST: Duration = Duration::from_secs(2);

type Slot = Arc<Mutex<Option<BodyDataStream>>>;

/// Where a watched body comes back to when it is dropped before its end.
#[derive(Debug)]
pub(crate) struct Unread(Slot);

/// Watches a body. `None` in place of [`Unread`] means that there is nothing to watch: the request has no body.
pub(crate) fn watch(body: Body, headers: &HeaderMap) -> (Body, Option<Unread>) {
    if body.is_end_stream() {
        return (body, None);
    }
    let slot = Slot::default();
    let waits = headers.contains_key(header::EXPECT);
    let watched = Watched { body: Some(body.into_data_stream()), slot: Arc::clone(&slot), waits };
    (Body::from_stream(watched), Some(Unread(slot)))
}

impl Unread {
    /// Reads and drops what is left. False if the bounds were met first: then the connection must close.
    pub(crate) async fn drain(self) -> bool {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut body) = left else { return true };
        let reading = async {
            let mut bytes = 0;
            while let Some(Ok(part)) = body.next().await {
                bytes += part.len();
                if bytes > MOST_BYTES {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(LONGEST, reading).await.unwrap_or(false)
    }
}

struct Watched {
    /// `None` from the end on.
    body: Option<BodyDataStream>,
    slot: Slot,
    /// The client asked for `100 Continue` and sends nothing before somebody reads.
    waits: bool,
}

impl Stream for Watched {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.waits = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = body.poll_next_unpin(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.waits {
            *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
        }
    }
}
