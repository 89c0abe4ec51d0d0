//! Core tools: what is core already, tools that ask the user, and those that are called most; small ones only.

use serde::Serialize;
use utoipa::ToSchema;

use super::Origin;
use super::asking::asks_the_user;
use crate::core::grant::{View, ViewTool};
use crate::core::grouping::SelectorSet;
use crate::core::policy::Policy;
use crate::core::selector::{MAX_SELECTOR_CHARS, Selector};
use crate::core::target::Target;
use crate::core::tool::ToolKey;

/// Most tools of a kind that are proposed.
const MAX_ASKING: usize = 3;
const MAX_USED: usize = 5;
/// Largest tool that is proposed, and all of them together, in tokens: every turn pays for them.
const MAX_TOOL_TOKENS: usize = 1_000;
const MAX_TOKENS: usize = 3_000;
/// Share of all calls from which on a tool counts as one that is used much, in percent.
const LEAST_SHARE_PCT: u64 = 2;
/// Selectors of a config that are told one by one.
const MAX_EXISTING: usize = 200;

/// An entry of `core`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ProposedCore {
    /// As the config writes it: a name, `prefix*` or `@group`.
    #[schema(value_type = String)]
    pub selector: Selector,
    pub origin: Origin,
    /// Whether it is in the proposal; false for what would be worth it and costs too much.
    pub chosen: bool,
    /// `config`, `always_load` (the tool says so itself), `asks_user` or `most_used`.
    #[schema(value_type = String)]
    pub why: &'static str,
    /// The same in a sentence.
    pub reason: String,
    /// How many tools it means, and their tokens with schemas.
    pub tools: usize,
    pub tokens: usize,
    /// Calls of the tool, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub calls: Option<u64>,
}

/// The core of a config, and what is proposed besides. `usage` are calls by tool, in any order.
pub(super) fn propose(
    view: &View,
    policy: &Policy,
    target: Target,
    usage: &[(ToolKey, u64)],
) -> Vec<ProposedCore> {
    let mut core = existing(view, policy, target);
    let mut room = MAX_TOKENS;
    let mut asking: Vec<(usize, &ViewTool)> = view
        .visible()
        .filter(|(_, tool)| !tool.core && is_nameable(view, tool) && asks_the_user(&tool.tool.tool))
        .map(|(_, tool)| (tool.for_target(target).tokens, tool))
        .collect();
    asking.sort_by_key(|(tokens, tool)| (*tokens, tool.stored_name()));
    for (tokens, tool) in asking.into_iter().take(MAX_ASKING) {
        let reason = "It turns to the user: wanted in the turn in which nothing else helps.".to_owned();
        core.push(offered(tool, tokens, &mut room, ("asks_user", reason), None));
    }

    let all: u64 = usage.iter().fold(0, |all, (_, calls)| all.saturating_add(*calls));
    let mut used: Vec<(u64, &ViewTool)> = usage
        .iter()
        .filter(|(_, calls)| {
            u128::from(*calls) * 100 >= u128::from(all) * u128::from(LEAST_SHARE_PCT) && *calls > 0
        })
        .filter_map(|(key, calls)| Some((*calls, view.get(*view.by_key(key).first()?)?)))
        .filter(|(_, tool)| !tool.core && is_nameable(view, tool))
        .collect();
    used.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.stored_name().cmp(b.1.stored_name())));
    used.dedup_by_key(|(_, tool)| tool.stored_name());
    for (calls, tool) in used.into_iter().take(MAX_USED) {
        if core.iter().any(|known| known.selector == Selector::Name(tool.stored_name().to_owned())) {
            continue;
        }
        let share = u128::from(calls) * 100 / u128::from(all.max(1));
        let reason = format!("{share} % of the calls are to it.");
        core.push(offered(
            tool,
            tool.for_target(target).tokens,
            &mut room,
            ("most_used", reason),
            Some(calls),
        ));
    }
    core
}

/// Whether the stored name is a selector that means this tool alone.
fn is_nameable(view: &View, tool: &ViewTool) -> bool {
    let name = tool.stored_name();
    name.chars().nth(MAX_SELECTOR_CHARS).is_none()
        && Selector::parse(name).is_ok_and(|selector| matches!(selector, Selector::Name(_)))
        && view.select(name).len() == 1
}

fn offered(
    tool: &ViewTool,
    tokens: usize,
    room: &mut usize,
    (why, reason): (&'static str, String),
    calls: Option<u64>,
) -> ProposedCore {
    let chosen = tokens <= MAX_TOOL_TOKENS.min(*room) && tokens > 0;
    let reason = match tokens {
        _ if chosen => {
            *room -= tokens;
            reason
        }
        0 => format!("{reason} The provider does not take it."),
        _ => format!("{reason} With {tokens} tokens it is better left to search."),
    };
    let selector = Selector::Name(tool.stored_name().to_owned());
    ProposedCore { selector, origin: Origin::Proposed, chosen, why, reason, tools: 1, tokens, calls }
}

/// What is core by the config, then what tools say of themselves.
fn existing(view: &View, policy: &Policy, target: Target) -> Vec<ProposedCore> {
    let entry = |selector: Selector, why, reason: &str, hits: &[&ViewTool]| ProposedCore {
        selector,
        origin: Origin::Existing,
        chosen: true,
        why,
        reason: reason.to_owned(),
        tools: hits.len(),
        tokens: hits.iter().map(|tool| tool.for_target(target).tokens).sum(),
        calls: None,
    };
    let mut core: Vec<ProposedCore> = Vec::new();
    for selector in policy.core.iter().take(MAX_EXISTING) {
        let set = SelectorSet::new([selector]);
        let hits: Vec<&ViewTool> = view
            .visible()
            .map(|(_, tool)| tool)
            .filter(|tool| set.hits(&tool.tool, view.group(tool)))
            .collect();
        core.push(entry(selector.clone(), "config", "The config has it.", &hits));
    }
    let set = SelectorSet::new(&policy.core);
    let own = view.visible().map(|(_, tool)| tool).filter(|tool| tool.tool.tool.always_load());
    for tool in own.filter(|tool| !set.hits(&tool.tool, view.group(tool))).take(MAX_EXISTING) {
        let selector = Selector::Name(tool.stored_name().to_owned());
        core.push(entry(
            selector,
            "always_load",
            "The tool itself says that it is to be loaded always.",
            &[tool],
        ));
    }
    core
}
