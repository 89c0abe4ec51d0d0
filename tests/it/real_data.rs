//! The properties over collections of real tools. Compiled with the feature `data-tests` only; `just data-tests` runs
//! them and says so when the folder of the data is not named.

use serde_json::{Value, json};
use toolrack::core::suspicion::warning;

use crate::app::TestApp;
use crate::messy;
use crate::model::warning_codes;
use crate::properties::{check_every_tool_is_reachable, check_listings, check_same_bytes};
use crate::provider_rules::{Holders, check, check_entries_alone, ways};

/// The tools of a file of the data folder, one per line.
fn tools(file: &str) -> Vec<Value> {
    let folder =
        std::env::var("TOOLRACK_TEST_DATA").expect("TOOLRACK_TEST_DATA names the folder of the shared data");
    let path = std::path::Path::new(&folder).join("catalogs").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let tools: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a tool per line")).collect();
    assert!(tools.len() > 5_000, "{} has {} tools only", path.display(), tools.len());
    tools
}

#[tokio::test]
async fn real_tools_are_all_taken_and_reachable() {
    let app = TestApp::start().await;
    let tools = tools("real_mcp_tools.jsonl");
    let user = app.user();
    let written = user.put_catalog(&tools).await.ok();
    let quarantined = warning_codes(&written).iter().filter(|code| **code == "tool_quarantined").count();
    let added = written["added"]["count"].as_u64().unwrap() as usize;
    assert!(
        quarantined < 100 && added + quarantined <= tools.len(),
        "{added} added, {quarantined} quarantined"
    );
    check_every_tool_is_reachable(&app, &tools).await;
}

#[test]
fn few_real_tools_are_told_of() {
    for file in ["real_mcp_tools.jsonl", "scale_tools.jsonl"] {
        let tools = tools(file);
        let told = tools.iter().filter_map(|tool| warning(&tool.to_string())).count();
        println!("{file}: {told} of {} tools have suspicious texts", tools.len());
        assert!(told * 1_000 < tools.len(), "{file}: {told} of {}", tools.len());
    }
}

#[tokio::test]
async fn real_listings_keep_their_budget() {
    let app = TestApp::start().await;
    check_listings(&app, &tools("real_mcp_tools.jsonl")).await;
}

#[tokio::test]
async fn real_catalogs_give_the_same_bytes() {
    check_same_bytes(&tools("real_mcp_tools.jsonl")).await;
}

#[tokio::test]
async fn real_tools_are_what_every_provider_takes() {
    let app = TestApp::start().await;
    let tools = tools("real_mcp_tools.jsonl");
    let holders = Holders::of(&app, &tools).await;
    for way in ways() {
        let counts = check(&holders, way).await;
        println!("{way:?}: {counts:?}, {}", holders.lint(way).await);
        assert!(counts.left_out * 1_000 <= counts.sent, "{way:?}: {counts:?}");
        assert!(counts.called * 3 >= counts.mapped, "{way:?}: {counts:?}");
    }
    check_entries_alone(&app, &tools).await;
}

#[tokio::test]
async fn a_catalog_of_ten_thousand_tools_works() {
    let app = TestApp::start().await;
    let user = app.user();
    let tools = tools("scale_tools.jsonl");
    let written = user.put_catalog(&messy::shuffled(1, tools)).await.ok();
    assert!(written["added"]["count"].as_u64().unwrap() > 10_000);
    let answer = user.assemble(json!({"session": "s"})).await.ok();
    assert!(
        answer["tokens"]["tools"].as_u64().unwrap() + answer["tokens"]["listing"].as_u64().unwrap() < 4_500
    );
    let found = user.search(json!({"session": "s", "query": "protein structure prediction"})).await.ok();
    assert!(!found["results"][0]["matches"].as_array().unwrap().is_empty());
}
