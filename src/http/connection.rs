//! Connections that can be cut: axum runs each in a task of its own and offers no way to end one that does not end
//! by itself.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Ends all connections of one listener at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cut {
    /// Looked at on every read and write, where the token's own lock would be felt.
    is_cut: Arc<AtomicBool>,
    wake: CancellationToken,
}

impl Cut {
    pub(crate) fn now(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.wake.cancel();
    }
}

/// A listener whose connections end when they are cut.
#[derive(Debug)]
pub(crate) struct CuttableListener {
    listener: TcpListener,
    cut: Cut,
}

impl CuttableListener {
    pub(crate) fn new(listener: TcpListener, cut: Cut) -> Self {
        Self { listener, cut }
    }
}

impl Listener for CuttableListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Answers go out in one piece; waiting for more to send would only add delay.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let wake = Box::pin(self.cut.wake.clone().cancelled_owned());
        (Connection { stream, is_cut: Arc::clone(&self.cut.is_cut), wake, waits: false }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails from the cut on.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    is_cut: Arc<AtomicBool>,
    wake: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether the connection's task, which stays the same, will be woken by the cut.
    waits: bool,
}

impl Connection {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.waits {
            self.waits = true;
            if self.wake.as_mut().poll(context).is_ready() {
                self.is_cut.store(true, Ordering::Release);
            }
        }
        if self.is_cut.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server stops"));
        }
        Ok(())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
