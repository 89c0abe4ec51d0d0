//! The tests of the whole service, as one binary: each starts the real program and talks to it over HTTP.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends where something is not as expected"
)]

mod app;
mod architecture;
mod audit;
mod bad_input;
mod calls;
mod catalogs;
mod checker;
mod chinese;
mod cli;
mod clients;
mod conversation;
mod deploy;
mod durability;
mod examples;
mod faults;
mod field_reports;
mod histories;
mod hostile;
mod hygiene;
mod inside;
mod isolation;
mod kept_listing;
mod keys;
mod ledger;
mod limits;
mod matcher_test;
mod mcp;
mod messy;
mod model;
mod native;
mod openapi;
mod overview_page;
mod pages;
mod postgres;
mod prompt_cache;
mod properties;
mod provider_rules;
mod quality;
mod readme;
#[cfg(feature = "data-tests")]
mod real_data;
mod real_model;
mod replicas;
mod rerank;
mod review_gate;
mod rolling;
mod samples;
mod scopes;
mod search;
mod security;
mod selections;
mod sessions;
mod setup_apply;
mod setup_forms;
mod setup_import;
mod setup_many;
mod setup_pages;
mod setup_proposal;
mod setup_refused;
mod setup_steps;
mod skill;
mod storage;
mod targets;
mod tenants;
mod usage;
