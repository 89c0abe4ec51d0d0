//! Keys: what one looks like, what its role may do, and whose data it covers.
//!
//! Owns the text form of a key, the roles with the one table of what each may ask ([`OPERATIONS`]), and bindings. Does not
//! know where keys are stored, what time it is, or how a request says its key.

mod access;
mod bindings;
mod docs;
mod principal;
mod text;

#[cfg(test)]
mod tests;

pub use access::{Access, Covers, OPERATIONS, Operation, Role, operation};
pub use bindings::{Bindings, InvalidPattern, MAX_LIMITS, MAX_PATTERNS, Pattern};
pub use docs::documentation;
pub use principal::{KeyRights, Principal};
pub use text::{KeyDigest, KeyId, format_key, is_misspelt, key_id};
