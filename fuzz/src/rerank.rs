//! What reads the answers of rerank and embedding endpoints, without what asks them.

#![expect(dead_code, unreachable_pub, reason = "parts of a larger module, of which some are not tried here")]

#[path = "checks/rerank_answer.rs"]
pub(crate) mod answer_check;
#[path = "../../src/rerank/dialect.rs"]
mod dialect;
#[path = "../../src/rerank/fault.rs"]
mod fault;
#[path = "../../src/rerank/parse.rs"]
mod parse;
#[path = "../../src/rerank/providers.rs"]
mod providers;
#[path = "../../src/rerank/refusal.rs"]
mod refusal;
#[path = "../../src/rerank/route.rs"]
mod route;
#[path = "../../src/rerank/vectors.rs"]
mod vectors;
