//! What must hold for every catalog, whatever is in it: shown over generated ones here, over real ones in `real_data`.
//!
//! - The same state gives the same bytes: in another process, after a restart, for a permuted upload.
//! - A listing is never over its budget, and accounts for every deferred tool.
//! - No tool of a grant is unreachable: it is found by all its names, described and called.
//! - An array is what the provider of its format takes, and its names lead back to the stored ones.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::messy;
use crate::model::{self, FORMATS, array_names, check_array, is_wire_name, strings, warning_codes};

/// Names in one request (`product.md`, section 5).
const NAMES_AT_ONCE: usize = 20;

/// A tool of a grant by its two names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    wire: String,
    stored: String,
}

/// Every tool of a user's grant, read from an array that holds all of them.
async fn whole_grant(user: &User) -> Vec<Named> {
    user.put_config(&json!({"enabled": "off"})).await.ok();
    let mut named = Vec::new();
    for format in FORMATS {
        let answer = user.assemble(json!({"format": format})).await.ok();
        check_array(format, &answer);
        assert_eq!(
            (&answer["tier"], &answer["listing"], &answer["counts"]["bridge"]),
            (&json!(0), &Value::Null, &json!(0))
        );
        let map = answer["name_map"].as_object().unwrap();
        let stored = |wire: &str| map.get(wire).map_or(wire, |stored| stored.as_str().unwrap()).to_owned();
        let names = array_names(&answer);
        assert!(map.iter().all(|(wire, stored)| names.contains(&&**wire) && stored != wire), "{map:?}");
        let of_format: Vec<Named> =
            names.into_iter().map(|wire| Named { wire: wire.to_owned(), stored: stored(wire) }).collect();
        assert!(named.is_empty() || named == of_format, "{format} has other names or another order");
        named = of_format;
    }
    user.put_config(&json!({})).await.ok();
    named
}

/// Arrays lead back to exactly the stored names, and every tool is described and called under each of its names.
pub(crate) async fn check_every_tool_is_reachable(app: &TestApp, tools: &[Value]) {
    let user = app.user();
    let written = user.put_catalog(tools).await.ok();
    let grant = whole_grant(&user).await;
    let mut stored: Vec<&str> = grant.iter().map(|tool| &*tool.stored).collect();
    stored.sort_unstable();
    assert_eq!(stored, strings(&written["added"]["names"]), "the array and the upload tell of other tools");
    // A catalog is shown by stored name, an array goes by group first.
    let catalog = user.client().get(&user.path(&["catalog"])).await.ok();
    let groups =
        catalog["tools"].as_array().unwrap().iter().map(|tool| tool["group"].as_str().unwrap_or("other"));
    let mut order: Vec<(&str, &str)> = groups.zip(stored).collect();
    order.sort_unstable();
    let array: Vec<&str> = grant.iter().map(|tool| &*tool.stored).collect();
    assert_eq!(array, order.into_iter().map(|(_, name)| name).collect::<Vec<_>>());
    // The name of a bridge tool means the bridge: a tool that is called like one is reached by its wire name.
    let (odd, plain): (Vec<Named>, Vec<Named>) =
        grant.into_iter().partition(|tool| model::BRIDGE.contains(&&*tool.stored));
    for tool in &odd {
        assert_ne!(tool.wire, tool.stored);
        let described = user.describe(json!({"names": [tool.wire, tool.stored]})).await.ok();
        assert_eq!(array_names(&described), [&*tool.wire]);
        assert_eq!(described["not_found"][0]["code"], "bridge_tool");
        let called = user.call(json!({"name": tool.wire, "arguments": {}})).await.ok();
        check_called(&called["results"][0], tool, &described["tools"][0]["parameters"]);
    }
    for part in plain.chunks(NAMES_AT_ONCE) {
        let stored: Vec<&str> = part.iter().map(|tool| &*tool.stored).collect();
        let wire: Vec<&str> = part.iter().map(|tool| &*tool.wire).collect();
        for names in [&stored, &wire] {
            let described = user.describe(json!({ "names": names })).await.ok();
            assert_eq!(described["not_found"], json!([]));
            assert_eq!(array_names(&described), wire);
            let calls: Vec<Value> = names.iter().map(|name| json!({"name": name, "arguments": {}})).collect();
            let called = user.call(json!({ "calls": calls })).await.ok();
            for (at, tool) in part.iter().enumerate() {
                check_called(&called["results"][at], tool, &described["tools"][at]["parameters"]);
            }
        }
    }
}

/// A call without arguments: dispatched under the stored name, or told what this tool wants.
fn check_called(result: &Value, tool: &Named, parameters: &Value) {
    if result["ok"] == true {
        assert_eq!(result["dispatch"]["name"], json!(tool.stored), "{tool:?}");
        return;
    }
    let error = &result["error"];
    assert!(
        ["missing_arguments", "invalid_arguments"].contains(&error["code"].as_str().unwrap()),
        "{tool:?}: {error}"
    );
    assert_eq!(&error["schema"], parameters, "{tool:?} was answered for another tool");
}

/// Listings for several windows and bounds: within the budget, and nothing of the grant left out.
pub(crate) async fn check_listings(app: &TestApp, tools: &[Value]) {
    let user = app.user();
    user.put_catalog(tools).await.ok();
    let wire: BTreeSet<String> = whole_grant(&user).await.into_iter().map(|tool| tool.wire).collect();
    let groups = user.client().get(&user.path(&["catalog"])).await.ok();
    let groups = groups["tools"].as_array().unwrap().iter();
    let groups: BTreeSet<&str> = groups.map(|tool| tool["group"].as_str().unwrap_or("other")).collect();
    for (threshold_pct, most) in [(5, 4_000), (100, 60_000), (1, 200), (40, 1_000)] {
        user.put_config(&json!({"threshold_pct": threshold_pct, "listing_max_tokens": most})).await.ok();
        for window in [1_000, 9_000, 40_000, 128_000, 1_000_000] {
            let answer = user.assemble(json!({"context_window": window})).await.ok();
            let budget = (threshold_pct * window / 100).min(most);
            check_listing(&answer, budget, &wire, groups.len());
        }
    }
}

fn check_listing(answer: &Value, budget: u64, wire: &BTreeSet<String>, groups: usize) {
    let listing = &answer["listing"];
    let text = listing["text"].as_str().expect("a listing");
    let count = bpe_openai::o200k_base().count(text) as u64;
    assert_eq!(listing["tokens"], json!(count), "counted as it is sent");
    let read = model::Listing::read(text);
    if warning_codes(answer).contains(&"listing_over_budget") {
        assert_eq!(text, format!("{}\n", read.header), "nothing but the header when even that does not fit");
        return;
    }
    assert!(count <= budget, "{count} tokens are over {budget}");
    let names: BTreeSet<&str> = read.names.iter().copied().collect();
    assert_eq!(names.len(), read.names.len(), "a name is listed twice");
    assert!(names.iter().all(|name| wire.contains(*name)), "a name that is none of the grant");
    assert_eq!(read.groups(), groups, "each group is named, counted or among the rest");
    let told = names.len() + read.counted_tools();
    assert_eq!(read.more_groups == 0, told == wire.len(), "{told} of {} tools, budget {budget}", wire.len());
    assert!(told + read.more_groups <= wire.len(), "more tools are told of than there are");
    let worst = match (read.named_groups.len(), read.counted_groups.len() + read.more_groups) {
        (_, 1..) => 3,
        _ if text.lines().skip(1).all(|line| line.starts_with("- ") || line.ends_with(':')) => 1,
        _ => 2,
    };
    assert_eq!(answer["tier"], json!(worst));
}

/// What a user sees of a state, byte by byte; `took_ms` and stored times are the only things that may differ.
async fn answers(user: &User, queries: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for format in FORMATS {
        seen.push(user.assemble(json!({"format": format})).await.text().to_owned());
    }
    for query in queries {
        let mut found = user.search(json!({"query": query, "detail": "full"})).await.ok();
        found["took_ms"] = json!(0);
        seen.push(found.to_string());
        let names: Vec<Value> = found["results"][0]["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["name"].clone())
            .collect();
        if !names.is_empty() {
            seen.push(user.describe(json!({ "names": names })).await.text().to_owned());
        }
    }
    seen
}

/// The turns of a session; both services are asked the same.
async fn turns(user: &User, session: &str, queries: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for query in queries {
        let mut found = user.search(json!({"session": session, "query": query})).await.ok();
        found["took_ms"] = json!(0);
        seen.push(found.to_string());
        seen.push(user.assemble(json!({"session": session})).await.text().to_owned());
    }
    seen
}

/// Queries that mean something in this catalog: the words of some of its descriptions.
fn queries_of(tools: &[Value], count: usize) -> Vec<String> {
    let texts = messy::shuffled(3, tools.iter().collect())
        .into_iter()
        .filter_map(|tool| messy::definition(tool)["description"].as_str());
    let words = texts.map(|text| text.split_whitespace().take(6).collect::<Vec<_>>().join(" "));
    words
        .filter(|words| words.len() > 12)
        .map(|words| words.chars().take(200).collect())
        .take(count)
        .collect()
}

/// Two processes with the same tools in another order, before and after a restart.
pub(crate) async fn check_same_bytes(tools: &[Value]) {
    let (mut one, other) = (TestApp::start().await, TestApp::start().await);
    let (id, queries) = ("same", queries_of(tools, 12));
    let config = json!({"core": ["search*", "@other"], "max_warm_tools": 5});
    let versions: BTreeSet<String> = {
        let mut versions = BTreeSet::new();
        for (app, seed) in [(&one, 11), (&other, 12)] {
            let user = app.user_called(id);
            let written = user.put_catalog(&messy::shuffled(seed, tools.to_vec())).await.ok();
            versions.insert(written["catalog_version"].as_str().unwrap().to_owned());
            user.put_config(&config).await.ok();
        }
        versions
    };
    assert_eq!(versions.len(), 1, "a version is a hash of the content, whatever its order");
    let expected = answers(&other.user_called(id), &queries).await;
    assert_eq!(answers(&one.user_called(id), &queries).await, expected);
    let (early, late) = queries.split_at(6);
    assert_eq!(
        turns(&one.user_called(id), "s", early).await,
        turns(&other.user_called(id), "s", early).await
    );
    one.restart().await;
    assert_eq!(answers(&one.user_called(id), &queries).await, expected);
    // Edited under the running session, which keeps its listing.
    let edited = &tools[tools.len() / 20..];
    for (app, seed) in [(&one, 13), (&other, 14)] {
        app.user_called(id).put_catalog(&messy::shuffled(seed, edited.to_vec())).await.ok();
    }
    assert_eq!(turns(&one.user_called(id), "s", late).await, turns(&other.user_called(id), "s", late).await);
}

/// Generated catalogs of several sizes.
fn catalogs() -> BTreeMap<&'static str, Vec<Value>> {
    [("tiny", 1, 40), ("small", 2, 300), ("large", 3, 2_500)]
        .into_iter()
        .map(|(label, seed, size)| (label, messy::catalog(seed, size)))
        .collect()
}

#[tokio::test]
async fn every_tool_of_a_grant_is_reachable() {
    let app = TestApp::start().await;
    for tools in catalogs().values() {
        check_every_tool_is_reachable(&app, tools).await;
    }
}

#[tokio::test]
async fn listings_keep_their_budget_and_account_for_every_tool() {
    let app = TestApp::start().await;
    for tools in catalogs().values() {
        check_listings(&app, tools).await;
    }
}

#[tokio::test]
async fn the_same_state_gives_the_same_bytes() {
    check_same_bytes(&messy::catalog(4, 1_200)).await;
}

#[tokio::test]
async fn one_bad_entry_costs_nothing_but_itself() {
    let app = TestApp::start().await;
    let (good, bad) = (messy::catalog(5, 150), messy::broken(5, 21));
    let clean = app.user();
    let expected = clean.put_catalog(&good).await.ok();
    let user = app.user();
    let mixed: Vec<Value> = good.iter().chain(&bad).cloned().collect();
    let written = user.put_catalog(&messy::shuffled(6, mixed.clone())).await.ok();
    assert_eq!(written["added"], expected["added"]);
    assert_eq!(written["catalog_version"], expected["catalog_version"]);
    let quarantined =
        |answer: &Value| warning_codes(answer).iter().filter(|code| **code == "tool_quarantined").count();
    assert_eq!(quarantined(&written), quarantined(&expected) + bad.len());
    for warning in written["warnings"].as_array().unwrap() {
        let place = warning["pointer"].as_str().map(|pointer| pointer.starts_with("/tools/"));
        assert!(place == Some(true) || warning["tool"].is_string(), "no place: {warning}");
    }
    user.put_catalog(&bad).await.expect_status(422);
    let live = user.assemble(json!({"tools": mixed})).await.ok();
    assert_eq!(quarantined(&live), quarantined(&written));
    let counts = |answer: &Value| answer["counts"].clone();
    assert_eq!(counts(&live), counts(&user.assemble(json!({})).await.ok()));
}

#[tokio::test]
async fn names_stay_unique_beside_bridge_names_and_a_prefix() {
    let app = TestApp::start().await;
    let user = app.user();
    let names = ["tool_search", "my_tool_search", "tool.search", "tool call", "my_tool_call", "tool_call"];
    let tools: Vec<Value> = names.iter().map(|name| json!({"name": name, "description": "Odd."})).collect();
    user.put_catalog(&tools).await.ok();
    for prefix in ["", "my_"] {
        user.put_config(&json!({"enabled": "on", "core": ["my_*"], "bridge_prefix": prefix})).await.ok();
        for name in names {
            user.describe(json!({"session": format!("s{prefix}"), "name": name})).await.ok();
        }
        let answer =
            user.assemble(json!({"session": format!("s{prefix}"), "format": "anthropic"})).await.ok();
        check_array("anthropic", &answer);
        let array = array_names(&answer);
        let bridge = model::BRIDGE.map(|name| format!("{prefix}{name}"));
        assert!(bridge.iter().all(|name| array.contains(&&**name)), "{array:?}");
        for name in array.iter().filter(|name| !bridge.contains(&(**name).to_owned())) {
            assert!(is_wire_name(name));
            let call = json!({"type": "tool_use", "id": "1", "name": name, "input": {}});
            let sent = user.bridge(json!({"session": format!("s{prefix}"), "call": call})).await.ok();
            let stored = answer["name_map"].get(*name).map_or(*name, |stored| stored.as_str().unwrap());
            assert_eq!(sent["results"][0]["calls"][0]["name"], json!(stored), "{name}");
        }
    }
}
