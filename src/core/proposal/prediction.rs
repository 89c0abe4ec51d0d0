//! What a config costs, in tokens: the real plan over it, and what the same plan would cost with another listing.

use serde::Serialize;
use utoipa::ToSchema;

use crate::core::assemble::{AnswerInput, Counts, Tokens, answer, array};
use crate::core::grant::{View, ViewTool};
use crate::core::listing::{self, Form, GroupCost, ListedGroup};
use crate::core::plan::{Plan, listed_groups, listing_budget};
use crate::core::policy::{ListingPlacement, Policy, Switch, WarmPolicy};
use crate::core::target::Target;
use crate::core::text::counted;
use crate::core::tokens::TokenEstimate;
use crate::core::warning::Warning;

/// What assemblies cost under a config. All counts are o200k tokens.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TokenPrediction {
    #[schema(value_type = String)]
    pub format: &'static str,
    #[schema(value_type = String)]
    pub profile: &'static str,
    pub context_window: u32,
    /// Every visible tool with its schema: what is sent without this service.
    pub all: usize,
    /// What an assembly sends to who has found nothing yet: core, bridge and listing.
    pub assembled: usize,
    /// Tools that always stand in the array; in tier 0 all of them.
    pub core: usize,
    /// The bridge tools without the listing, and the management tools.
    pub bridge: usize,
    pub listing: ListingPrediction,
    pub warm: WarmPrediction,
    /// `all` less `assembled`: an assembly's `tokens.saved`.
    pub saved: i64,
    /// The same as a share of `all`, in percent with one digit.
    pub saved_percent: f64,
    pub counts: Counts,
    /// Length of the array, in bytes.
    pub array_bytes: usize,
    /// As in an assembly.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub estimate: Option<TokenEstimate>,
}

/// Which listing is sent, and what the others would cost.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ListingPrediction {
    /// The tier of an assembly: 0 all tools and no listing, 1 descriptions, 2 names, 3 lines.
    pub tier: u8,
    /// How it tells groups: `full`, `names`, `lines`, `mixed` (some in more words than others, as far as there is room), or `none`.
    #[schema(value_type = String)]
    pub form: &'static str,
    /// Tokens of the listing that is sent. With `mixed` it is more than `tiers` has for this tier, which is every group in that tier's words.
    pub tokens: usize,
    /// Most tokens of the listing.
    pub budget: usize,
    /// Why it is this tier, in a sentence.
    pub reason: String,
    /// What the listing would be with every group told alike, tier by tier: no choice of them, but the steps between which a `mixed`
    /// one lies, of which only the groups that cost most are shortened.
    pub tiers: Vec<TierPrediction>,
}

/// One tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct TierPrediction {
    pub tier: u8,
    /// Tokens of a listing that tells every group so.
    pub listing: usize,
    /// Tokens of array and such a listing.
    pub turn: usize,
    /// Whether such a listing is within its budget.
    pub fits: bool,
}

/// What found tools add once the warm set is full: as many as it takes, of the average deferred tool's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct WarmPrediction {
    pub tools: usize,
    pub tokens: usize,
}

/// The listing that an assembly sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListingPreview {
    pub text: String,
    /// `separate` or `bridge`.
    #[schema(value_type = String)]
    pub placement: &'static str,
    pub tokens: usize,
    /// `full`, `names`, `lines` or `mixed`.
    #[schema(value_type = String)]
    pub form: &'static str,
}

/// What a config comes to.
#[derive(Debug)]
pub struct Preview {
    pub tokens: TokenPrediction,
    pub listing: Option<ListingPreview>,
    /// What an assembly would warn of.
    pub warnings: Vec<Warning>,
    /// By group of the view: what it costs in a listing, where it has deferred tools.
    pub(super) groups: Vec<Option<GroupCost>>,
}

/// Plans an assembly over a view and counts it.
pub fn preview(view: &View, policy: &Policy, target: Target, window: u32) -> Preview {
    let plan = Plan::build(view, policy, target, window);
    let answered = answer(view, &plan, &AnswerInput::default());
    let (target, budget) = (plan.target, listing_budget(policy, window));
    let deferred: Vec<(u32, &ViewTool)> =
        view.visible().filter(|(_, tool)| !tool.core || tool.for_target(target).left_out).collect();
    let groups = listed_groups(view, &deferred);
    let left_out = deferred.iter().any(|(_, tool)| tool.for_target(target).left_out);
    let header = listing::header(target, &view.bridge_prefix, left_out);

    let inside = plan.listing.as_ref().filter(|listing| listing.placement == ListingPlacement::Bridge);
    let bridge = plan.tokens_base - plan.tokens_core;
    // What the format puts around entries counts as core where there is any.
    let (core, bridge) = if plan.tokens_core > 0 {
        (answered.tokens.tools - bridge, bridge)
    } else {
        (0, answered.tokens.tools)
    };
    let bridge = bridge.saturating_sub(inside.map_or(0, |listing| listing.tokens));
    let tokens = TokenPrediction {
        format: target.format.as_str(),
        profile: target.profile.as_str(),
        context_window: window,
        all: answered.tokens.all,
        assembled: answered.tokens.sent(),
        core,
        bridge,
        listing: ListingPrediction {
            tier: plan.tier,
            form: plan.listing.as_ref().map_or("none", |listing| listing.form),
            tokens: answered.tokens.listing,
            budget,
            reason: reason(view, &plan, policy, budget),
            tiers: tiers(view, policy, &plan, &answered.tokens, &groups, &header, budget),
        },
        warm: warm(policy, &plan, &deferred),
        saved: answered.tokens.saved,
        saved_percent: percent(answered.tokens.saved, answered.tokens.all),
        counts: Counts { core: plan.core, warm: 0, deferred: plan.deferred, bridge: plan.bridge },
        array_bytes: array(&plan).len(),
        estimate: answered.tokens.estimate,
    };
    Preview {
        groups: costs(view, &groups, budget, &header),
        listing: plan.listing.as_ref().map(|listing| ListingPreview {
            text: listing.text.clone(),
            placement: listing.placement.as_str(),
            tokens: listing.tokens,
            form: listing.form,
        }),
        warnings: warnings(view, &plan),
        tokens,
    }
}

fn percent(part: i64, of: usize) -> f64 {
    if of == 0 { 0.0 } else { (part as f64 * 1_000.0 / of as f64).round() / 10.0 }
}

fn warnings(view: &View, plan: &Plan) -> Vec<Warning> {
    let mut warnings: Vec<Warning> =
        view.warnings.iter().chain(&view.join_warnings).chain(&plan.warnings).cloned().collect();
    if let Err((there, most)) = plan.room() {
        let detail = format!(
            "{there} tools always stand in the array and {} takes {most}; assemblies are refused",
            plan.target.profile.as_str()
        );
        warnings.push(Warning::new("too_many_tools", detail));
    }
    warnings
}

/// What each tier costs, each as if it held for all groups.
fn tiers(
    view: &View,
    policy: &Policy,
    plan: &Plan,
    tokens: &Tokens,
    groups: &[ListedGroup<'_>],
    header: &str,
    budget: usize,
) -> Vec<TierPrediction> {
    let turn = tokens.all + plan.tokens_management;
    let all = TierPrediction { tier: 0, listing: 0, turn, fits: true };
    if groups.is_empty() {
        return vec![all];
    }
    // What stands beside the listing, also where nothing is deferred at present.
    let beside = if plan.sends_all() {
        let on = Policy { enabled: Switch::On, listing: Switch::Off, ..policy.clone() };
        // Switched on and without a listing, the window decides nothing.
        let deferring = Plan::build(view, &on, plan.target, policy.context_window);
        answer(view, &deferring, &AnswerInput::default()).tokens.sent()
    } else {
        tokens.sent().saturating_sub(tokens.listing)
    };
    let of = |(tier, form)| {
        let listing = listing::uniform(groups, form, header);
        TierPrediction { tier, listing, turn: beside + listing, fits: listing <= budget }
    };
    let forms = [(1, Form::Full), (2, Form::Names), (3, Form::Lines)];
    std::iter::once(all).chain(forms.into_iter().map(of)).collect()
}

fn reason(view: &View, plan: &Plan, policy: &Policy, budget: usize) -> String {
    let tools = view.tools.len();
    match (&plan.listing, plan.tier) {
        (_, 0) if policy.enabled == Switch::Off => "`enabled` is off: every tool is sent.".to_owned(),
        (_, 0) if tools == 0 => "No tool is left to send.".to_owned(),
        (_, 0) if view.tools.iter().all(|tool| tool.core) => "Every tool is core.".to_owned(),
        (_, 0) if tools <= policy.min_catalog_size as usize => {
            format!(
                "{} no more than `min_catalog_size` ({}).",
                counted(tools, "tool is", "tools are"),
                policy.min_catalog_size
            )
        }
        (_, 0) => format!("The deferred schemas cost less than {} % of the window.", policy.activation_pct),
        (None, _) => "`listing` is off.".to_owned(),
        (Some(listing), 1) => {
            format!("{} tokens with descriptions fit the budget of {budget}.", listing.tokens)
        }
        (Some(listing), _) => {
            let form = match listing.form {
                "names" => "names alone",
                "lines" => "one line for each group",
                _ => "descriptions where there is room",
            };
            format!(
                "{} tokens with {form} fit the budget of {budget}; all descriptions do not.",
                listing.tokens
            )
        }
    }
}

fn warm(policy: &Policy, plan: &Plan, deferred: &[(u32, &ViewTool)]) -> WarmPrediction {
    let sendable =
        || deferred.iter().map(|(_, tool)| tool.for_target(plan.target)).filter(|made| !made.left_out);
    let count = sendable().count();
    if plan.sends_all() || count == 0 || policy.warm_policy == WarmPolicy::Off {
        return WarmPrediction::default();
    }
    let room = plan.room().unwrap_or(Some(0)).unwrap_or(usize::MAX);
    let tools = (policy.max_warm_tools as usize).min(count).min(room);
    let all: usize = sendable().map(|made| made.tokens).sum();
    WarmPrediction { tools, tokens: tools * all / count }
}

/// By group of the view.
fn costs(view: &View, groups: &[ListedGroup<'_>], budget: usize, header: &str) -> Vec<Option<GroupCost>> {
    let mut costs =
        groups.iter().map(|group| group.name).zip(listing::costs(groups, budget, header)).peekable();
    let of = |name: &str| costs.next_if(|(known, _)| *known == name).map(|(_, cost)| cost);
    view.groups.iter().map(|group| &*group.name).map(of).collect()
}
