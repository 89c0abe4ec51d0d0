//! What an answer does to a provider's prompt cache: what was sent last in a session, beside what is sent now.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::grant::View;

/// Why array or listing differ from this session's previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheReason {
    None,
    First,
    Warm,
    Evicted,
    Catalog,
    Config,
    Grant,
    Format,
    Epoch,
}

impl CacheReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::First => "first",
            Self::Warm => "warm",
            Self::Evicted => "evicted",
            Self::Catalog => "catalog",
            Self::Config => "config",
            Self::Grant => "grant",
            Self::Format => "format",
            Self::Epoch => "epoch",
        }
    }
}

/// What this answer does to a prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheReport {
    /// Leading entries of `tools` that are byte-equal to this session's previous answer; core and bridge in a first
    /// or sessionless one.
    pub stable_prefix_len: usize,
    /// Whether that is less than the previous array.
    #[serde(rename = "break")]
    pub breaks: bool,
    pub reason: CacheReason,
    /// Index of the last core or bridge tool in `tools`, counted as `stable_prefix_len` is: the place for a cache
    /// breakpoint. Anthropic: `cache_control` on that entry. Bedrock: a `cachePoint` entry right behind it. Found tools
    /// come after it, so what is cached up to here stays cached while they come and go. Absent where there is no such
    /// tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub breakpoint: Option<usize>,
}

/// What was sent last in a session: enough to tell what a new answer changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub format: String,
    pub catalog: String,
    pub config: String,
    pub grant: String,
    /// Head of the digest of each entry, 16 hexadecimal digits each.
    pub(super) entries: String,
    /// The same of the contents of the found tools, which are the last entries.
    #[serde(default)]
    pub(super) found: String,
    /// Head of the digest of the listing's text; empty without one.
    #[serde(default)]
    pub(super) listing: String,
}

impl Sent {
    fn entry(&self, at: usize) -> Option<&str> {
        self.entries.get(16 * at..16 * (at + 1))
    }

    fn len(&self) -> usize {
        self.entries.len() / 16
    }

    /// Whether an entry was a tool that the session had found and the catalog still has as it was.
    fn is_unchanged(&self, at: usize, view: &View) -> bool {
        let found = at.checked_sub(self.len() - self.found.len() / 16);
        let content = found.and_then(|at| self.found.get(16 * at..16 * (at + 1)));
        let content = content.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        content
            .is_some_and(|content| view.tools.iter().any(|tool| tool.tool.tool.digest().short() == content))
    }
}

/// What a new answer does to the prompt cache of the previous one.
///
/// `base_len` is the number of core and bridge tools; `view` is what `sent` was made from.
pub(super) fn compare(
    sent: &Sent,
    previous: Option<&Sent>,
    epoch: bool,
    view: &View,
    base_len: usize,
) -> CacheReport {
    let breakpoint = base_len.checked_sub(1);
    let Some(previous) = previous else {
        let reason = CacheReason::First;
        return CacheReport { stable_prefix_len: base_len, breaks: false, reason, breakpoint };
    };
    let stable = (0..sent.len()).take_while(|at| sent.entry(*at) == previous.entry(*at)).count();
    let breaks = stable < previous.len();
    let same_listing = sent.listing == previous.listing;
    // An edit of tools that are not in the array shows nowhere, unless the listing that was kept is gone.
    let edited = || {
        let kept: HashSet<&str> = (0..sent.len()).filter_map(|at| sent.entry(at)).collect();
        let gone = |at: &usize| previous.entry(*at).is_some_and(|entry| !kept.contains(entry));
        let fixed = previous.len() - previous.found.len() / 16;
        stable < fixed || (stable..previous.len()).filter(gone).any(|at| !previous.is_unchanged(at, view))
    };
    let reason = if sent.entries == previous.entries && same_listing {
        CacheReason::None
    } else if sent.format != previous.format {
        CacheReason::Format
    } else if sent.grant != previous.grant {
        CacheReason::Grant
    } else if sent.config != previous.config {
        CacheReason::Config
    } else if epoch {
        CacheReason::Epoch
    } else if !same_listing || (breaks && sent.catalog != previous.catalog && edited()) {
        CacheReason::Catalog
    } else if breaks {
        CacheReason::Evicted
    } else {
        CacheReason::Warm
    };
    CacheReport { stable_prefix_len: stable, breaks, reason, breakpoint }
}
