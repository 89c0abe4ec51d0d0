//! The tests of the whole service, as one binary: each starts the real program and talks to it over HTTP.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends where something is not as expected"
)]

mod app;
mod architecture;
mod conversation;
mod durability;
mod messy;
mod model;
mod properties;
#[cfg(feature = "data-tests")]
mod real_data;
