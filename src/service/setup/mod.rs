//! The setup flow: what an administrator prepares, sees and applies. Pages and routes ask the same functions.

mod drafts;
mod scopes;
mod versions;

pub use drafts::{DraftBase, SetupDraft};
pub use versions::{ConfigVersionDocument, ConfigVersionList};
