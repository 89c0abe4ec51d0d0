//! Any query over a small catalog of tools in several scripts.

#![no_main]

toolrack_fuzz::target!("lexical_search");
