#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, dead_code)]
#[path = "../it/app.rs"]
mod app;
#[path = "../it/bad_input.rs"]
mod bad_input;
#[path = "../it/scopes.rs"]
mod scopes;
#[path = "../it/catalogs.rs"]
mod catalogs;
#[path = "../it/search.rs"]
mod search;
#[path = "../it/calls.rs"]
mod calls;
