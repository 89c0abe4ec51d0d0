//! Any calls of a model, in any format, and any conversation.

#![no_main]

toolrack_fuzz::target!("bridge_calls");
