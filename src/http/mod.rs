//! The HTTP interface: routes and their documents, and everything around them that only HTTP knows.
//!
//! Handlers read a request into the words of the service and write its answer; every decision is the service's. The
//! list of all routes is [`router`]; what is refused becomes a [`problem`].

mod access;
pub mod auth;
pub mod body;
mod by;
pub mod docs;
mod drain;
mod etag;
mod exchange;
mod fields;
mod gate;
pub mod health;
pub mod hygiene;
pub mod layers;
pub mod openapi;
pub mod pages;
pub mod problem;
mod refusal;
mod revision;
pub mod router;
pub mod scoped;
pub mod server;
mod server_timing;
pub mod v1;

#[cfg(test)]
mod tests;

pub use router::app;
pub use server::serve;
