//! The tests of the whole service, as one binary: each starts the real program and talks to it over HTTP.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends where something is not as expected"
)]

mod app;
mod conversation;
mod isolation;
mod messy;
mod model;
mod properties;
