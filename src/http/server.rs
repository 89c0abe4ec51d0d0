//! Listening, serving and stopping.

use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::http::connection::{Cut, CuttableListener};

/// How long cut connections may take to notice.
const CUT_NOTICED: Duration = Duration::from_secs(1);

/// Serves until `stop`. Then no connection is taken any more, running requests have `drain` to end, and what is left
/// after that is cut.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    stop: CancellationToken,
    drain: Duration,
) -> io::Result<()> {
    let cut = Cut::default();
    let listener = CuttableListener::new(listener, cut.clone());
    let serving = axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
    let mut serving = pin!(serving.into_future());
    let too_long = async {
        stop.cancelled().await;
        tokio::time::sleep(drain).await;
    };
    tokio::select! {
        result = &mut serving => return result,
        () = too_long => {}
    }
    tracing::warn!(drain_ms = drain.as_millis(), "requests did not end in time; their connections are cut");
    cut.now();
    tokio::time::timeout(CUT_NOTICED, serving).await.unwrap_or(Ok(()))
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
        let server = tokio::spawn(serve(listener, app, stop.clone(), drain));
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
        assert!(took < Duration::from_millis(50) + CUT_NOTICED, "{took:?}");
    }

    #[tokio::test]
    async fn a_client_that_sends_nothing_does_not_hold_up_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, Router::new(), stop.clone(), Duration::from_millis(50)));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nho").await.unwrap();
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(10), server).await.unwrap().unwrap().unwrap();
    }
}
