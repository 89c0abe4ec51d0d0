//! Any groups and tools, listed within any budget.

#![no_main]

toolrack_fuzz::target!("listing");
