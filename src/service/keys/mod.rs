//! Keys: who holds one, and what an administrator does with them.

mod documents;
mod ring;

pub use documents::{
    DEFAULT_OVERLAP_SECONDS, KeyCreated, KeyDocument, KeyList, KeyListQuery, KeyPatch, KeyRateDocument,
    KeyStatus, MAX_KEY_SECONDS, MAX_OVERLAP_SECONDS, NewKey,
};
pub use ring::KeyRefusal;

pub(super) use ring::KeyRing;
