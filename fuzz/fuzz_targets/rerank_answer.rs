//! Any answer of an endpoint, to any number of documents.

#![no_main]

toolrack_fuzz::target!("rerank_answer");
