//! Any upload, shown, uploaded again, and written in every format and for every provider.

#![no_main]

toolrack_fuzz::target!("upload");
