//! What holds for every proposal, whatever the tools; and what an administrator sees for usual ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::core::catalog::{Catalog, read_upload, replace};
use crate::core::format::ingest::EntryLimits;
use crate::core::policy::parse;

fn catalog(entries: &[Value]) -> Arc<Catalog> {
    let texts: Vec<String> = entries.iter().map(Value::to_string).collect();
    let limits = EntryLimits { bytes: 262_144, depth: 64 };
    let upload = read_upload(texts.iter().map(String::as_str), limits, "/tools");
    Arc::new(replace(&Catalog::default(), upload.tools).catalog)
}

fn layer(document: &Value) -> Layer {
    parse(document).unwrap().layer
}

fn proposed(entries: &[Value], config: &Value, usage: &[(ToolKey, u64)]) -> Proposal {
    let catalogs = Catalogs::Stored { user: catalog(entries), project: Arc::default() };
    propose(&ProposalInput {
        catalogs: &catalogs,
        user: &layer(config),
        project: &Layer::default(),
        for_project: false,
        selections: &[],
        target: Target::default(),
        window: 128_000,
        usage,
    })
}

fn tool(name: &str, group: Option<&str>, description: &str) -> Value {
    let mut tool = json!({"name": name, "description": description, "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}});
    if let Some(group) = group {
        tool["group"] = json!(group);
    }
    tool
}

/// Tools of a server, of a prefix, of a subject, and one that is alone.
fn usual() -> Vec<Value> {
    let mut tools = Vec::new();
    for verb in ["get", "list", "create", "delete"] {
        tools.push(tool(&format!("{verb}_invoice"), None, "Works on an invoice of a customer."));
        tools.push(tool(&format!("{verb}_shipment"), None, "Works on a shipment and its parcels."));
        tools.push(tool(&format!("slack_{verb}_message"), None, "Works on a message in a channel."));
        tools.push(tool(&format!("{verb}_page"), Some("notion"), "Works on a page of the workspace."));
    }
    tools.push(tool("zzyzx", None, "Frobs."));
    tools
}

fn names(proposal: &Proposal) -> Vec<(&str, &str, usize)> {
    proposal.groups.iter().map(|group| (group.name.as_str(), group.by, group.tools.len())).collect()
}

/// The group of every tool once a patch is written.
fn groups_after(entries: &[Value], config: &Value, patch: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut written = config.clone();
    written.as_object_mut().unwrap().extend(patch.clone());
    let policy = merge(&layer(&written), &Layer::default());
    let catalogs = Catalogs::Stored { user: catalog(entries), project: Arc::default() };
    let everything = Selection { toolsets: Some(Vec::new()), ..Selection::default() };
    let view = View::build(&catalogs, &policy, &[], &[everything], crate::core::profile::Profile::Generic);
    view.tools.iter().map(|tool| (tool.stored_name().to_owned(), view.group(tool).to_owned())).collect()
}

/// The door takes the patch, and every tool is then in the one group that the proposal says.
fn check(entries: &[Value], config: &Value, proposal: &Proposal) {
    parse(&Value::Object(proposal.patch.clone())).unwrap();
    let told: Vec<(String, String)> = proposal
        .groups
        .iter()
        .flat_map(|group| group.tools.iter().map(|tool| (tool.clone(), group.name.clone())))
        .collect();
    let after = groups_after(entries, config, &proposal.patch);
    assert_eq!(told.len(), after.len(), "a tool is in two groups, or in none");
    assert_eq!(told.into_iter().collect::<BTreeMap<_, _>>(), after);
    let costs: usize = proposal.groups.iter().map(|group| group.tokens).sum();
    assert!(costs >= proposal.tokens.all, "{costs} {:?}", proposal.tokens);
    let TokenPrediction { core, bridge, listing, assembled, all, saved, .. } = &proposal.tokens;
    assert_eq!((core + bridge + listing.tokens, *saved), (*assembled, *all as i64 - *assembled as i64));
}

#[test]
fn tools_are_grouped_by_server_then_beginning_then_words() {
    let (tools, config) = (usual(), json!({}));
    let proposal = proposed(&tools, &config, &[]);
    check(&tools, &config, &proposal);
    let wanted = [
        ("invoice", "words", 4),
        ("notion", "server", 4),
        ("shipment", "words", 4),
        ("slack", "prefix", 4),
        ("other", "none", 1),
    ];
    assert_eq!(names(&proposal), wanted);
    let slack = proposal.groups.iter().find(|group| group.name == "slack").unwrap();
    assert_eq!((slack.prefixes.as_slice(), slack.origin), (&["slack_".to_owned()][..], Origin::Proposed));
    assert_eq!(slack.description.as_deref(), Some("Message, channel"));
    // 17 tools are more than a grant that is sent whole, and few enough for all descriptions.
    let tiers: Vec<(u8, bool)> =
        proposal.tokens.listing.tiers.iter().map(|tier| (tier.tier, tier.fits)).collect();
    assert_eq!((proposal.tokens.listing.tier, tiers), (1, vec![(0, true), (1, true), (2, true), (3, true)]));
    assert_eq!(proposal.tokens.listing.tiers[1].listing, proposal.tokens.listing.tokens);
    assert_eq!(proposal.tokens.listing.tiers[1].turn, proposal.tokens.assembled);
    assert_eq!(proposal.tokens.listing.tiers[0].turn, proposal.tokens.all);
}

#[test]
fn what_the_config_has_stays_and_comes_first() {
    let tools = usual();
    let config = json!({
        "groups": [{"name": "money", "tools": ["get_invoice"], "prefixes": ["create_inv"]}, {"name": "Slack", "tools": ["zzyzx"]}],
        "core": ["list_page"], "toolsets": [{"name": "mine", "groups": ["money"]}], "min_catalog_size": 3
    });
    let proposal = proposed(&tools, &config, &[]);
    check(&tools, &config, &proposal);
    let first: Vec<(&str, Origin)> =
        proposal.groups.iter().take(2).map(|group| (group.name.as_str(), group.origin)).collect();
    assert_eq!(first, [("money", Origin::Existing), ("Slack", Origin::Existing)]);
    // A name that differs in case alone would be taken for that group.
    assert!(names(&proposal).contains(&("slack-2", "prefix", 4)), "{:?}", names(&proposal));
    assert_eq!(
        (&proposal.core[0].selector.to_string()[..], proposal.core[0].origin),
        ("list_page", Origin::Existing)
    );
    assert_eq!(proposal.toolsets[0].origin, Origin::Existing);
    let groups = proposal.patch["groups"].as_array().unwrap();
    assert_eq!(json!(groups[..2]), config["groups"]);
    assert!(!proposal.patch.contains_key("core") && !proposal.patch.contains_key("min_catalog_size"));
}

#[test]
fn a_setup_that_was_taken_proposes_nothing_more() {
    let tools = usual();
    let first = proposed(&tools, &json!({}), &[]);
    let again = proposed(&tools, &Value::Object(first.patch.clone()), &[]);
    assert!(again.patch.is_empty(), "{:?}", again.patch);
    assert_eq!(again.tokens, first.tokens);
}

#[test]
fn a_beginning_that_others_have_too_gives_way_to_names() {
    let mut tools = usual();
    tools.push(tool("slack_export", Some("notion"), "Exports pages to a channel."));
    let proposal = proposed(&tools, &json!({}), &[]);
    check(&tools, &json!({}), &proposal);
    let slack = proposal.groups.iter().find(|group| group.name == "slack").unwrap();
    assert_eq!((slack.prefixes.len(), slack.tools.len()), (0, 4));
}

#[test]
fn core_is_who_asks_and_what_is_called_most_while_it_is_small() {
    let mut tools = usual();
    tools.push(tool("ask_user", None, "Asks the user."));
    let mut large = tool("get_report", Some("notion"), "Makes a report.");
    large["parameters"]["properties"] =
        (0..400).map(|at| (format!("field_{at}"), json!({"type": "string"}))).collect();
    tools.push(large);
    let usage = [
        ("notion", "get_report", 60),
        ("other", "get_invoice", 39),
        ("other", "zzyzx", 1),
        ("gone", "gone", 100),
    ];
    let usage: Vec<(ToolKey, u64)> =
        usage.iter().map(|(group, name, calls)| (ToolKey::new(group, name), *calls)).collect();
    let proposal = proposed(&tools, &json!({}), &usage);
    let core: Vec<(String, &str, bool, Option<u64>)> = proposal
        .core
        .iter()
        .map(|core| (core.selector.to_string(), core.why, core.chosen, core.calls))
        .collect();
    let wanted = [
        ("ask_user".to_owned(), "asks_user", true, None),
        ("get_report".to_owned(), "most_used", false, Some(60)),
        ("get_invoice".to_owned(), "most_used", true, Some(39)),
    ];
    assert_eq!(core, wanted);
    assert_eq!(proposal.patch["core"], json!(["ask_user", "get_invoice"]));
    assert_eq!(proposal.tokens.counts.core, 2);
}

#[test]
fn toolsets_follow_annotations_and_families() {
    let mut tools = usual();
    for at in 0..8 {
        let mut calendar =
            tool(&format!("google_calendar_thing{at}"), Some("google_calendar"), "Looks at an event.");
        calendar["annotations"] = json!({"readOnlyHint": true});
        tools.push(calendar);
        tools.push(tool(&format!("google_drive_thing{at}"), Some("google_drive"), "Works on a file."));
    }
    let proposal = proposed(&tools, &json!({}), &[]);
    let told: Vec<(&str, usize, usize)> = proposal
        .toolsets
        .iter()
        .map(|toolset| (toolset.name.as_str(), toolset.tools.len(), toolset.groups.len()))
        .collect();
    assert_eq!(told, [("read-only", 8, 0), ("google", 0, 2)]);
    check(&tools, &json!({}), &proposal);
}

#[test]
fn a_group_that_the_listing_has_no_room_for_is_parted() {
    let objects = ["invoice", "shipment", "customer", "coupon"];
    let tools: Vec<Value> = (0..80)
        .map(|at| {
            let object = objects[at % 4];
            let text = format!("Works on the {object} number {at} of the shop, with care and in good time.");
            tool(&format!("shop_{object}_{at}"), Some("shop"), &text)
        })
        .collect();
    let config = json!({"listing_max_tokens": 900});
    let proposal = proposed(&tools, &config, &[]);
    let split = proposal.groups[0].split.as_ref().expect("a split");
    let mut parts: Vec<&str> = split.parts.iter().map(|part| part.name.as_str()).collect();
    parts.sort_unstable();
    assert_eq!(parts, ["shop-coupon", "shop-customer", "shop-invoice", "shop-shipment"]);
    let all: usize = split.parts.iter().map(|part| part.tools.len()).sum();
    assert_eq!((all, proposal.groups[0].listing.unwrap().shown), (80, "names"));
    assert!(split.reason.contains("900"), "{}", split.reason);
}

#[test]
fn many_beginnings_stay_within_what_a_config_takes() {
    let tools: Vec<Value> = (0..6_600).map(|at| tool(&format!("p{}q_a{at}", at / 3), None, "")).collect();
    let proposal = proposed(&tools, &json!({}), &[]);
    check(&tools, &json!({}), &proposal);
    assert!(proposal.patch["groups"].as_array().unwrap().len() <= 2_000);
}

/// Names with the separators, cases and scripts that real ones have, and with what no config can say.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "(mcp__)?(github|slack|jira|get|list|page)([_.A-Z ]{1,2})(issue|page|user|message|状态){1,2}[0-9]?",
        1 => "\\PC{1,12}",
        1 => "[a-z]{1,6}\\*",
        1 => "@?[a-z_]{1,3}",
    ]
}

fn any_tools() -> impl Strategy<Value = Vec<Value>> {
    let group = proptest::option::weighted(0.4, "(github|slack|other|\\*|[a-z /]{1,8})");
    let text = prop_oneof![
        Just(String::new()),
        "\\PC{0,60}",
        "(Creates|Lists) (an? )?(issue|page|invoice)s? [a-z ]{0,30}"
    ];
    proptest::collection::vec((any_name(), group, text), 1..60).prop_map(|tools| {
        tools.iter().map(|(name, group, text)| tool(name, group.as_deref(), text)).collect()
    })
}

fn any_config() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(
            json!({"groups": [{"name": "github", "prefixes": ["g", "mcp__g"]}, {"name": "x", "tools": ["page"]}], "enabled": "on"})
        ),
        Just(
            json!({"core": ["@slack", "list*"], "deny": ["jira*"], "listing_max_tokens": 300, "listing_placement": "bridge"})
        ),
        Just(
            json!({"listing": "off", "toolsets": [{"name": "t", "groups": ["slack"]}], "default_toolsets": ["t"], "enabled": "on"})
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_proposal_is_one_of_its_tools_and_does_what_it_says(tools in any_tools(), config in any_config(), turn in 0usize..60) {
        let proposal = proposed(&tools, &config, &[]);
        check_any(&tools, &config, &proposal);
        let mut turned = tools.clone();
        turned.rotate_left(turn % tools.len());
        turned.reverse();
        prop_assert_eq!(&proposed(&turned, &config, &[]), &proposal);
    }
}

/// As [`check`], where the config may hide tools from an assembly.
fn check_any(tools: &[Value], config: &Value, proposal: &Proposal) {
    parse(&Value::Object(proposal.patch.clone())).unwrap();
    let told: Vec<(String, String)> = proposal
        .groups
        .iter()
        .flat_map(|group| group.tools.iter().map(|tool| (tool.clone(), group.name.clone())))
        .collect();
    let count = told.len();
    let told: BTreeMap<String, String> = told.into_iter().collect();
    assert_eq!(told.len(), count, "a tool is in two groups");
    assert_eq!(told, groups_after(tools, config, &proposal.patch));
}
