//! Any schema mended for every provider, and any arguments for it.

#![no_main]

toolrack_fuzz::target!("mending");
