//! The table of a scope's keys and the two types made from it.
//! Knows no JSON syntax and no merging: each row names the rule that does.

use std::collections::BTreeMap;

use super::join::{ByName, Fill, Intersect, Join, OneLayer, Override, Union};
use super::lists::{Aliases, Groups, Names, Selectors, Toolsets};
use super::matcher::{Matcher, MatcherRule, MatcherSetting};
use super::rules::{Choice, Int, Number, Object, Rule, of};
use super::values::{
    BridgePrefix, Flag, Group, HotTools, HotToolsSetting, ListingPlacement, Preload, PreloadSetting, Switch,
    Toggle, ToggleRule, Toolset, WarmPolicy,
};
use crate::core::format::native::Exposure;
use crate::core::profile::Profile;
use crate::core::selector::Selector;

settings! {
    enabled: Switch = Switch::Auto, by Choice::new(), join Override,
        "Whether tools are deferred. `auto`: not while the grant has at most `min_catalog_size` tools, or \
         the deferred schemas cost less than `activation_pct` of the window.";
    min_catalog_size: u32 = 12, by Int { min: 0, max: 10_000 }, join Override,
        "With `enabled: auto`, a grant of at most this many tools is sent whole.";
    activation_pct: f64 = 0.0, by Number::between(0.0, 100.0), join Override,
        "With `enabled: auto`, deferred schemas that cost less than this share (%) of the context window \
         are sent whole.";
    threshold_pct: f64 = 5.0, by Number::between(0.0, 100.0), join Override,
        "Budget of the listing as a share (%) of the context window.";
    listing: Switch = Switch::Auto, by Choice::new(), join Override,
        "The listing of deferred tools. `on` ignores `threshold_pct`; `off` sends none, with a warning.";
    listing_max_tokens: u32 = 4_000, by Int { min: 200, max: 60_000 }, join Override,
        "The listing is never longer than this many tokens.";
    listing_placement: ListingPlacement = ListingPlacement::Separate, by Choice::new(), join Override,
        "Where the listing stands: beside the tools, or inside `tool_search`'s description.";
    context_window: u32 = 128_000, by Int { min: 1_000, max: 10_000_000 }, join Override,
        "The model's context window in tokens; a request may send its own.";
    search_default_limit: u32 = 5, by Int { min: 1, max: 50 }, join Override,
        "Matches per query when a search names no limit; never more than `max_search_limit`.";
    max_search_limit: u32 = 20, by Int { min: 1, max: 50 }, join Override,
        "The most matches per query that a search may ask for.";
    max_answer_tokens: u32 = 2_000, by Int { min: 200, max: 50_000 }, join Override,
        "Budget of a search answer in tokens.";
    core: Vec<Selector> = Vec::new(), by Selectors::plain(), join Union,
        "Tools that always stand in the array. Both layers' lists are joined.";
    allow: Vec<Selector> => Vec<Vec<Selector>> = Vec::new(), by Selectors::restricting(), join Intersect,
        "The only tools to be seen; empty does not restrict. A tool must be in every layer's list.";
    deny: Vec<Selector> = Vec::new(), by Selectors::plain(), join Union,
        "Tools that are never seen, whatever else selects them. Both layers' lists are joined.";
    groups: Vec<Group> = Vec::new(), by Groups, join ByName,
        "Named sets of tools. Merged by name, the project's entry winning.";
    toolsets: Vec<Toolset> = Vec::new(), by Toolsets, join ByName,
        "Named selections that a session can be limited to. Merged by name, the project's entry winning.";
    default_toolsets: Vec<String> = Vec::new(), by Names::restricting(), join Override,
        "The toolsets of a request that names none; empty is everything.";
    max_warm_tools: u32 = 8, by Int { min: 0, max: 64 }, join Override,
        "The most tools that a session keeps warm.";
    warm_policy: WarmPolicy = WarmPolicy::Immediate, by Choice::new(), join Override,
        "When a found tool enters the array. `epoch`: when the caller says `epoch: true`.";
    preload: PreloadSetting => Preload = PreloadSetting::default(), by Object::new(), join Fill,
        "In the first assembly of a session (also after a reset), the matcher ranks the tools for the user's latest \
         text, and the best matches stand in that array already. Where its endpoint does not answer in time, \
         nothing is preloaded, with a warning.";
    aliases: BTreeMap<String, Vec<String>> = BTreeMap::new(), by Aliases, join ByName,
        "Phrases that people use for a tool, in any language. Merged by tool, the project's entry winning.";
    matcher: MatcherSetting => Option<Matcher> = (), by MatcherRule, join OneLayer,
        "The external endpoint that ranks tools; without one the built-in keyword ranking does. Taken whole \
         from one layer.";
    semantic: bool = true, by Flag, join Override,
        "Built-in vectors take part in keyword ranking: it compares by meaning as well as by words.";
    profile: Profile = Profile::Generic, by Choice::new(), join Override,
        "The provider whose limits the array keeps; `generic` keeps what all accept. A request may choose another one.";
    exposure: Exposure = Exposure::Bridge, by Choice::new(), join Override,
        "How the model reaches deferred tools. `bridge`: three tools in a constant array, which every provider takes. \
         `native`: the provider's own deferred tools, loaded by what a search answers (`anthropic`, \
         `openai_responses`). `namespaced`: as `bridge`, with the tools of a group in a namespace \
         (`openai_responses`). Where this is set, formats without it get `bridge`, with a warning. A request may choose another \
         one, which its format must have.";
    bridge_prefix: String = String::new(), by BridgePrefix, join Override,
        "Stands in front of the names of the bridge and management tools.";
    management_tools: bool = false, by Flag, join Override,
        "Arrays hold two more tools, `toolrack_catalog` and `toolrack_update_config`, by which a model sets this up together \
         with a person. `/v1/bridge` answers their calls; writing takes a key of the role `setup` or `admin`.";
    require_review_on_change: bool = false, by Flag, join Override,
        "A tool of this catalog that an upload changes stays in use as it is, until an administrator approves the new version. \
         Each user and project decides for its own catalog, whatever is merged; only an administrator turns it off again.";
    keep_missed_queries: bool = false, by Flag, join Override,
        "The texts of queries that found nothing are kept for the overview, with the scope whose config says so; at most \
         200, for 90 days. They are gone with the write that takes this back.";
    hot_tools: HotToolsSetting => HotTools = HotToolsSetting::default(), by Object::new(), join Fill,
        "The tools that were called most are proposed for `core`, or join it with `auto`: in sessions alone, chosen at \
         their start and at an epoch, so that an array never changes in between. Calls of a project's \
         tools count for all who share it, those of a user's own tools for that user alone.";
    usage_prior: Toggle = Toggle::default(), by ToggleRule, join Override,
        "Tools in frequent use rank higher. Reserved: not built yet.";
}
