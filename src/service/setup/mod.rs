//! The setup flow: what an administrator prepares, sees and applies. Pages and routes ask the same functions.

mod ahead;
mod apply;
mod attention;
mod browse;
mod drafts;
mod effect;
mod import;
mod input;
mod overview;
mod proposal;
mod review;
mod scopes;
mod skill;
mod trial;
mod versions;
mod waiting;

pub(super) use ahead::Ahead;
pub use apply::{SetupApplied, SetupApply};
pub use attention::{Attention, EndingKey};
pub use browse::{
    BROWSED_DAYS, BrowseOrder, BrowsePage, BrowseQuery, BrowsedGroup, BrowsedTool, CATALOG_PAGE, ToolSheet,
};
pub use drafts::{AddedTools, DraftBase, SetupDraft, as_array};
pub use effect::NO_TOOL_LEFT;
pub use import::{
    ImportAnswer, ImportRequest, ImportSource, ImportedGroup, ImportedServer, NOTHING_IMPORTED,
    QuarantinedEntry, ReadImport,
};
pub use input::SetupInput;
pub use overview::{
    HotOverview, Latency, MissedOverview, MissedQueryDocument, NeverFound, Overview, ToolUse, ToolsOverview,
    UnfoundTool, UsageDay, UsageNumbers,
};
pub use proposal::{PlanFields, PreviewAnswer, SetupPlan};
pub use review::{RemarkCount, ReviewAnswer, ReviewQuery, ReviewStanding};
pub use skill::setup_skill;
pub use trial::{Trial, TrialRequest, Turn, TurnShares};
pub use versions::{ConfigVersionDocument, ConfigVersionList};
pub use waiting::WaitingDraft;
