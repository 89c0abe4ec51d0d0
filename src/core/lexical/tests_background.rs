//! Counts `background.txt` over the shared catalogs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use serde_json::Value;

use super::analyzer::{Class, Tokens, stem};
use super::background::CLASSES_PER_HALVING;
use super::schema::SchemaText;
use super::stopwords::is_stop;

/// A stem that fewer tools hold is left out: it is more likely a value than a word of the domain.
const FEWEST_TOOLS: usize = 2;

fn stems_of(tool: &Value, tokens: &mut Tokens, stems: &mut BTreeSet<String>) {
    let text = |field: &str| tool[field].as_str().unwrap_or_default();
    let schema = SchemaText::of(&tool["parameters"]);
    // What stands before the slash is the registry.
    let server = text("group").rsplit('/').next().unwrap_or_default();
    let labels = [text("name"), server, text("description")];
    for text in labels.iter().chain(&schema.names).chain(&schema.descriptions).chain(&schema.values) {
        tokens.read(text);
        for (_, word) in
            tokens.iter().filter(|(class, _)| matches!(class, Class::Word | Class::Joined { .. }))
        {
            let stem = stem(word);
            if (2..=24).contains(&stem.len())
                && stem.bytes().all(|b| b.is_ascii_lowercase())
                && !is_stop(word)
            {
                stems.insert(stem.into_owned());
            }
        }
    }
}

fn count(catalog: &str) -> String {
    let (mut seen, mut tokens, mut tools) = (HashSet::new(), Tokens::default(), 0_usize);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in catalog.lines() {
        let tool: Value = serde_json::from_str(line).unwrap();
        // The same tool of two registries counts once.
        if !seen.insert((tool["name"].to_string(), tool["description"].to_string())) {
            continue;
        }
        tools += 1;
        let mut stems = BTreeSet::new();
        stems_of(&tool, &mut tokens, &mut stems);
        for stem in stems {
            *counts.entry(stem).or_default() += 1;
        }
    }
    let mut classes: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (stem, count) in &counts {
        if *count >= FEWEST_TOOLS {
            let class = (CLASSES_PER_HALVING * (tools as f32 / *count as f32).log2()).round();
            classes.entry(class as u32).or_default().push(stem);
        }
    }
    let mut text = String::from("# class, then the stems that a share of 2^(-class/4) of all tools holds\n");
    for (class, stems) in classes {
        text.push_str(&format!("{class} {}\n", stems.join(" ")));
    }
    text
}

#[test]
fn background_is_fresh() {
    let root = std::env::var("TOOLRACK_TEST_DATA").expect("TOOLRACK_TEST_DATA names the shared data folder");
    let catalog = std::fs::read_to_string(Path::new(&root).join("catalogs/real_mcp_tools.jsonl")).unwrap();
    let text = count(&catalog);
    if std::env::var_os("TOOLRACK_REGENERATE").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core/lexical/background.txt");
        std::fs::write(path, &text).unwrap();
    } else {
        assert!(text == include_str!("background.txt"), "background.txt is stale; regenerate it");
    }
}
