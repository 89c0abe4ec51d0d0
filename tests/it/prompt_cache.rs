//! `docs/cache.md`: what the policies do to a provider's prompt cache, measured on the sessions of `tests/prompt_cache`.
//!
//! `UPDATE_DOCS=1 cargo test --test it prompt_cache` writes the document anew.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::inside::Inside;

mod cache;
mod replay;

use cache::Totals;
use replay::{Event, Listing, Mode, replay};

/// Turns of the second table: about as many as a quick question takes.
const SHORT: usize = 5;

/// The ways that are compared.
fn modes() -> Vec<Mode> {
    let mode = |name, mut config: Value, listing| {
        config["core"] = json!(["read_file", "search_files", "web_search"]);
        Mode { name, config, listing }
    };
    vec![
        mode("all tools in the array", json!({"enabled": "off"}), Listing::Kept),
        mode("`immediate`", json!({"warm_policy": "immediate"}), Listing::Kept),
        mode("`epoch`", json!({"warm_policy": "epoch"}), Listing::Kept),
        mode("`off`", json!({"warm_policy": "off"}), Listing::Kept),
        mode("`exposure: native`", json!({"exposure": "native"}), Listing::Kept),
        mode("`epoch`, were the listing not kept", json!({"warm_policy": "epoch"}), Listing::OfTheMoment),
    ]
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json_lines(path: &str) -> Vec<Value> {
    read(&root().join(path)).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The recorded sessions, each a list of events.
fn recorded() -> Vec<Vec<Event>> {
    let mut sessions: Vec<Vec<Event>> = Vec::new();
    for line in json_lines("tests/prompt_cache/sessions.jsonl") {
        let session = line["session"].as_u64().unwrap() as usize;
        sessions.resize_with(session.max(sessions.len()), Vec::new);
        sessions[session - 1].push(serde_json::from_value(line).unwrap());
    }
    sessions
}

/// The first turns of a session with all that happens between them.
fn beginning(session: &[Event], turns: usize) -> &[Event] {
    let mut ends = (0..).zip(session).filter(|(_, event)| matches!(event, Event::Turn { .. }));
    ends.nth(turns - 1).map_or(session, |(at, _)| &session[..=at])
}

async fn measure(turns: usize) -> Vec<(&'static str, Totals)> {
    let tools = json_lines("tests/quality/tools.jsonl");
    let sessions = recorded();
    let inside = Inside::start().await;
    let mut rows = Vec::new();
    for (number, mode) in modes().iter().enumerate() {
        let mut totals = Totals::default();
        for (at, session) in sessions.iter().enumerate() {
            let user = format!("m{number}-{at}");
            inside.put_catalog(&user, &tools).await;
            inside.put_config(&user, mode.config.clone()).await;
            totals.add(&replay(&inside, &user, mode, beginning(session, turns)).await);
        }
        rows.push((mode.name, totals));
    }
    rows
}

/// What all tools cost in the array.
async fn schema_tokens() -> u64 {
    let inside = Inside::start().await;
    inside.put_catalog("u", &json_lines("tests/quality/tools.jsonl")).await;
    let answer = inside.assemble("u", &json!({"format": replay::FORMAT})).await;
    serde_json::from_str::<Value>(&answer).unwrap()["tokens"]["all"].as_u64().unwrap()
}

fn thousands(tokens: f64) -> String {
    format!("{:.0}", tokens / 1_000.0)
}

fn table(rows: &[(&'static str, Totals)]) -> String {
    let mut table = String::from(
        "| | model calls | prompt, k tokens | hit ratio | read from cache, k | written, k | of these again, k | cost with a cache | without one |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let all = &rows[0].1;
    for (name, totals) in rows {
        table.push_str(&format!(
            "| {name} | {} | {} | {:.1} % | {} | {} | {} | {:.0} % | {:.0} % |\n",
            totals.calls,
            thousands(totals.prompt as f64),
            100.0 * totals.read as f64 / totals.prompt as f64,
            thousands(totals.read as f64),
            thousands(totals.written() as f64),
            thousands(totals.again as f64),
            100.0 * totals.cost() / all.cost(),
            100.0 * totals.prompt as f64 / all.prompt as f64,
        ));
    }
    table
}

/// The text with the tables in their places.
fn document(long: &[(&'static str, Totals)], short: &[(&'static str, Totals)], schemas: u64) -> String {
    let largest = long.iter().map(|(_, totals)| totals.largest).max().unwrap_or_default() as f64;
    let rounded = |tokens: f64| format!("{},000", thousands(tokens));
    read(&root().join("tests/prompt_cache/cache.md.template"))
        .replace("{sessions}", &table(long))
        .replace("{beginnings}", &table(short))
        .replace("{largest}", &rounded(largest))
        .replace("{schemas}", &rounded(schemas as f64))
}

#[tokio::test]
async fn the_document_about_prompt_caches_says_what_is_measured() {
    let (long, short) = (measure(usize::MAX).await, measure(SHORT).await);
    // What the text says, whatever the figures are.
    for rows in [&long, &short] {
        let figure = |name: &str| &rows.iter().find(|(known, _)| *known == name).unwrap().1;
        let (epoch, immediate) = (figure("`epoch`"), figure("`immediate`"));
        let bridged = || rows.iter().filter(|(name, _)| !name.contains("native"));
        assert!(bridged().all(|(_, totals)| epoch.cost() <= totals.cost()));
        assert!(bridged().all(|(_, totals)| immediate.prompt <= totals.prompt));
        assert!(epoch.again < immediate.again);
    }
    let again = |row: usize| long[row].1.again;
    assert!(10 * again(2) < again(5), "the kept listing is what it is kept for");

    let path = root().join("docs/cache.md");
    let current = document(&long, &short, schema_tokens().await);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    assert!(read(&path) == current, "run `UPDATE_DOCS=1 cargo test --test it prompt_cache`");
}
