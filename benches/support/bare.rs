//! The baseline: an axum handler that answers given numbers of bytes and does nothing else.
//!
//! Runs in a process of its own, with the runtime, the server and the socket options of the program, so that the
//! difference is what the program does.

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;

use super::measure::Result;
use super::report::line;

/// The path of the handler that answers `bytes` bytes.
pub(crate) fn path(bytes: usize) -> String {
    format!("/{bytes}")
}

/// The path of the handler that parses the body and answers how many tools it holds.
pub(crate) const PARSE: &str = "/parse";

/// Serves until it is killed.
pub(crate) fn serve(sizes: &[String]) -> Result<()> {
    let mut app = Router::new().route("/readyz", get(|| async { "" })).route(PARSE, post(parse));
    for size in sizes {
        let size: usize = size.parse()?;
        let body = Bytes::from(vec![b' '; size]);
        app = app.route(&path(size), post(async move |_: Bytes| json(body.clone())));
    }
    run(app)
}

/// Serves these routes as the program serves its own, until it is killed.
pub(crate) fn run(app: Router) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        line(&format!("listening on http://{}", listener.local_addr()?))?;
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, app.layer(DefaultBodyLimit::disable())).await?;
        Ok(())
    })
}

async fn parse(body: Bytes) -> Response {
    let tools =
        serde_json::from_slice::<Value>(&body).map_or(0, |body| body["tools"].as_array().map_or(0, Vec::len));
    json(tools.to_string().into())
}

pub(crate) fn json(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
