//! Listening, serving and stopping.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// How long a connection may take.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// To the end of the head of its first request.
    first: Duration,
    /// From there on to the end of each further head, idle times included.
    further: Duration,
}

/// Clients keep idle connections for 90 seconds (Go's net/http, reqwest): longer than that, so that none is closed under a request.
const TIMES: Times = Times { first: Duration::from_secs(10), further: Duration::from_secs(120) };

/// After so long without a frame an HTTP/2 client is asked whether it is still there, and has as long again to say so.
const PING_AFTER: Duration = Duration::from_secs(30);

/// How long to wait where no connection can be taken, as when the process has no file descriptors left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// How a server takes connections and ends.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Most connections at the same time; more wait in the queue of the operating system.
    pub connections: usize,
    /// How long running requests have to end.
    pub drain: Duration,
}

/// Serves until `stop`. Then no connection is taken any more, running requests have the time of `limits.drain` to end, and what is
/// left after that is cut.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    stop: CancellationToken,
    limits: ServerLimits,
) -> io::Result<()> {
    serve_with(listener, app, stop, limits, TIMES).await
}

async fn serve_with(
    listener: TcpListener,
    app: Router,
    stop: CancellationToken,
    limits: ServerLimits,
    times: Times,
) -> io::Result<()> {
    let builder = Arc::new(builder(times.further));
    let room = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    while let Some((stream, permit)) = next(&listener, &room, &stop).await {
        let (builder, watcher, app) = (Arc::clone(&builder), graceful.watcher(), app.clone());
        connections.spawn(async move {
            connection(stream, &builder, watcher, app, times.first).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    if tokio::time::timeout(limits.drain, graceful.shutdown()).await.is_err() {
        let drain_ms = limits.drain.as_millis();
        tracing::warn!(drain_ms, "requests did not end in time; their connections are cut");
    }
    connections.shutdown().await;
    Ok(())
}

fn builder(head_time: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_time);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING_AFTER).keep_alive_timeout(PING_AFTER);
    builder
}

/// The next connection, once there is room for one; nothing when the server stops.
async fn next(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let taken = async {
        let permit = Arc::clone(room).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return Some((stream, permit)),
                // It ended before it was taken.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "connections cannot be taken");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        taken = taken => taken,
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Answers the requests of one connection to its end.
async fn connection(
    stream: TcpStream,
    builder: &Builder<TokioExecutor>,
    watcher: Watcher,
    app: Router,
    first: Duration,
) {
    // Answers go out in one piece; waiting for more to send would only add delay.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let has_asked = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&has_asked);
    let app = app.map_request(move |request: Request<_>| {
        asks.store(true, Ordering::Relaxed);
        request
    });
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    // The builder's own time begins when it knows the protocol, for which it waits without one.
    let is_silent = async {
        tokio::time::sleep(first).await;
        if has_asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = watcher.watch(served) => {
            if let Err(error) = ended {
                tracing::debug!(error, "a connection ended early");
            }
        }
        () = is_silent => tracing::debug!("a connection sent no request"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::mpsc;

    use super::*;

    /// Starts a request that signals its arrival and ends after `takes`; stops the server then. What the client
    /// read, and how long the server took to end.
    async fn stop_during(takes: Duration, drain: Duration) -> (String, Duration) {
        let (arrived, mut arrival) = mpsc::channel(1);
        let app = Router::new().route(
            "/",
            get(move || async move {
                arrived.send(()).await.unwrap();
                tokio::time::sleep(takes).await;
                "done"
            }),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, app, stop.clone(), ServerLimits { connections: 8, drain }));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        arrival.recv().await.unwrap();
        stop.cancel();
        let stopped = Instant::now();
        server.await.unwrap().unwrap();
        let took = stopped.elapsed();
        let mut read = Vec::new();
        // A cut connection may end in a reset.
        let _end = client.read_to_end(&mut read).await;
        assert!(TcpStream::connect(address).await.is_err());
        (String::from_utf8(read).unwrap(), took)
    }

    #[tokio::test]
    async fn running_requests_are_answered_before_the_end() {
        let (answer, _) = stop_during(Duration::from_millis(50), Duration::from_secs(20)).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    }

    #[tokio::test]
    async fn requests_that_do_not_end_are_cut() {
        let (answer, took) = stop_during(Duration::from_secs(600), Duration::from_millis(50)).await;
        assert_eq!(answer, "");
        assert!(took < Duration::from_secs(20), "{took:?}");
    }

    #[tokio::test]
    async fn a_client_that_sends_nothing_does_not_hold_up_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let limits = ServerLimits { connections: 8, drain: Duration::from_millis(50) };
        let server = tokio::spawn(serve(listener, Router::new(), stop.clone(), limits));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nho").await.unwrap();
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(10), server).await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_connection_that_asks_nothing_makes_room_for_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let limits = ServerLimits { connections: 1, drain: Duration::ZERO };
        let times = Times { first: Duration::from_secs(1), further: Duration::from_secs(1) };
        let app = Router::new().route("/", get(async || "done"));
        let server = tokio::spawn(serve_with(listener, app, stop.clone(), limits, times));
        let asked = |what: &'static str| async move {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(what.as_bytes()).await.unwrap();
            let mut read = Vec::new();
            let _end = client.read_to_end(&mut read).await;
            String::from_utf8(read).unwrap()
        };
        assert_eq!(asked("").await, "");
        assert_eq!(asked("P").await, "");
        assert_eq!(asked("GET / HTTP/1.1\r\nho").await, "");
        let answer = asked("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.ends_with("done"), "{answer}");
        stop.cancel();
        server.await.unwrap().unwrap();
    }
}
