//! Any catalog, with some of its tools hidden, and any query over it.

#![no_main]

toolrack_fuzz::target!("lexical_build");
