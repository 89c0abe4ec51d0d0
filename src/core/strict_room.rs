//! How many strict tools a request may hold: some providers bound them, together with what they leave open.

use super::format::Format;
use super::profile::{Profile, StrictRules};
use super::target::{Target, TargetTool};

/// How much of what a request may hold of strict tools is left; each none where the provider names no figure.
#[derive(Debug, Clone, Copy)]
pub struct StrictRoom {
    tools: Option<usize>,
    optional: Option<usize>,
    unions: Option<usize>,
}

impl StrictRoom {
    /// All of it.
    pub fn of(target: Target) -> Self {
        let profile = target.profile.spoken_in(target.format);
        // Whose models they are, where the provider itself says nothing.
        let of_format = || match target.format {
            Format::Anthropic | Format::BedrockConverse => Profile::Anthropic.limits().strict,
            _ => None,
        };
        let rules = profile.limits().strict.or_else(of_format);
        let most = |figure: fn(&StrictRules) -> Option<usize>| rules.as_ref().and_then(figure);
        Self {
            tools: most(|rules| rules.max_tools),
            optional: most(|rules| rules.max_optional),
            unions: most(|rules| rules.max_unions),
        }
    }

    /// Takes a tool's share. False, and nothing is taken, for a tool that has to be sent without strict mode.
    pub fn take(&mut self, tool: &TargetTool) -> bool {
        let Some(used) = tool.strict_use() else { return true };
        let less = |room: Option<usize>, share: usize| match room {
            None => Some(None),
            Some(room) => room.checked_sub(share).map(Some),
        };
        let left = (less(self.tools, 1), less(self.optional, used.optional), less(self.unions, used.unions));
        let (Some(tools), Some(optional), Some(unions)) = left else { return false };
        *self = Self { tools, optional, unions };
        true
    }
}
