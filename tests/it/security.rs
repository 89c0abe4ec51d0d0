//! `docs/security.md`: how many searches the tools of `tests/security/hijack.jsonl` win, with and without the defences.
//!
//! `UPDATE_DOCS=1 cargo test --test it security` writes the document anew.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toolrack::core::catalog::{Catalog, read_upload, replace};
use toolrack::core::format::ingest::EntryLimits;
use toolrack::core::grant::{Catalogs, View, ViewTool};
use toolrack::core::lexical::Document;
use toolrack::core::matches::by_keywords;
use toolrack::core::named::promote;
use toolrack::core::policy::Policy;
use toolrack::core::profile::Profile;
use toolrack::core::ranking::{CatalogIndex, Part, search};
use toolrack::core::spread;

/// Queries of each kind that are asked, and the kinds.
const QUERIES: usize = 20;
const KINDS: [&str; 3] = ["keywords", "task", "symptom"];
/// Matches of a search, as by default.
const LIMIT: usize = 5;

/// What stands between an attack and the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Defences {
    stuffing: bool,
    spread: bool,
}

const NONE: Defences = Defences { stuffing: false, spread: false };
const ALL: Defences = Defences { stuffing: true, spread: true };
const COLUMNS: [Defences; 4] =
    [NONE, Defences { stuffing: true, spread: false }, Defences { stuffing: false, spread: true }, ALL];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json_lines(path: &str) -> Vec<Value> {
    read(&root().join(path)).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

struct Query {
    text: String,
    /// Stored names of the tools that serve it.
    right: Vec<String>,
}

/// Ordinary queries: the first of each kind, by number.
fn queries() -> Vec<Query> {
    let all = json_lines("tests/quality/queries.jsonl");
    let of_kind = |kind: &'static str| {
        let same = all.iter().filter(move |query| query["kind"] == kind).take(QUERIES);
        same.map(|query| Query {
            text: query["query"].as_str().unwrap().to_owned(),
            right: serde_json::from_value(query["relevant"].clone()).unwrap(),
        })
    };
    KINDS.into_iter().flat_map(of_kind).collect()
}

/// The committed tools with those of the attack, ready to be searched.
struct Attacked {
    view: View,
    /// With stuffed texts told from others, and without.
    indexes: [CatalogIndex; 2],
    attackers: HashSet<u32>,
}

impl Attacked {
    fn build(attack: &[&Value]) -> Self {
        let tools = json_lines("tests/quality/tools.jsonl");
        let texts: Vec<String> = tools.iter().chain(attack.iter().copied()).map(Value::to_string).collect();
        let limits = EntryLimits { bytes: 256 << 10, depth: 64 };
        let upload = read_upload(texts.iter().map(String::as_str), limits, "");
        assert!(upload.rejected.is_empty(), "{:?}", upload.rejected);
        let catalog = Arc::new(replace(&Catalog::default(), upload.tools).catalog);
        let texts: Vec<(Cow<'_, str>, Vec<String>)> =
            catalog.tools().iter().map(|tool| (tool.tool.description(), tool.tool.other_names())).collect();
        let documents = catalog.tools().iter().zip(&texts).map(|(tool, (description, aliases))| Document {
            group: tool.tool.group(),
            name: tool.tool.name(),
            description,
            parameters: tool.tool.parameters(),
            aliases,
        });
        let indexes = [CatalogIndex::build(documents.clone()), CatalogIndex::trusting(documents)];
        let catalogs = Catalogs::Stored { user: Arc::clone(&catalog), project: Arc::default() };
        let view = View::build(&catalogs, &Policy::default(), &[], &[], Profile::Generic);
        let is_attacker = |tool: &toolrack::core::tool::Tool| {
            attack.iter().any(|attack| attack["name"] == tool.name() && attack["group"] == tool.group())
        };
        let attackers = (0..).zip(&view.tools).filter(|(_, tool)| is_attacker(&tool.tool.tool));
        let attackers: HashSet<u32> = attackers.map(|(id, _)| id).collect();
        assert_eq!(attackers.len(), attack.len());
        Self { view, indexes, attackers }
    }

    /// The matches of a query, as a search by words and built-in meaning shows them.
    fn matches(&self, query: &str, defences: Defences) -> Vec<u32> {
        let index = &self.indexes[usize::from(!defences.stuffing)];
        let parts = [Part { index, candidates: &self.view.candidates()[0] }];
        let mut outcome = search(&parts, self.view.tools.len(), query, spread::wanted(LIMIT), true);
        promote(&self.view, query, &mut outcome);
        let group_of = |id: u32| self.view.get(id).map_or("", |tool| tool.tool.tool.group());
        if defences.spread {
            outcome = spread::first(outcome, LIMIT, group_of);
        } else {
            outcome.hits.truncate(LIMIT);
        }
        by_keywords(&outcome).matches.iter().map(|scored| scored.id).collect()
    }
}

/// Searches whose first match is an attacker's, that have one among their matches, and that have a right tool among them.
#[derive(Clone, Copy, Default)]
struct Won {
    first: usize,
    among: usize,
    right: usize,
}

fn won(attacked: &Attacked, queries: &[Query], defences: Defences) -> Won {
    let mut won = Won::default();
    for query in queries {
        let matches = attacked.matches(&query.text, defences);
        let theirs = |id: &u32| attacked.attackers.contains(id);
        let names = || matches.iter().filter_map(|id| attacked.view.get(*id)).map(ViewTool::stored_name);
        won.first += usize::from(matches.first().is_some_and(theirs));
        won.among += usize::from(matches.iter().any(theirs));
        won.right += usize::from(names().any(|name| query.right.iter().any(|right| right == name)));
    }
    won
}

/// What was measured of one style of attack, by [`COLUMNS`].
struct Row {
    style: String,
    tools: usize,
    won: [Won; 4],
}

fn measure(queries: &[Query]) -> Vec<Row> {
    let attacks = json_lines("tests/security/hijack.jsonl");
    let mut styles: Vec<&str> = attacks.iter().map(|attack| attack["style"].as_str().unwrap()).collect();
    styles.dedup();
    styles.extend(["all of them", "nobody"]);
    let rows = styles.into_iter().map(|style| {
        let of_style = |attack: &&Value| style == "all of them" || attack["style"] == style;
        let tools: Vec<&Value> = attacks.iter().filter(of_style).map(|attack| &attack["tool"]).collect();
        let attacked = Attacked::build(&tools);
        let won = COLUMNS.map(|defences| won(&attacked, queries, defences));
        Row { style: style.to_owned(), tools: tools.len(), won }
    });
    rows.collect()
}

fn table(rows: &[Row], queries: usize) -> String {
    let mut table = String::from(
        "| attack | tools | first: without | with | among five: without | with | right tool shown: without | with |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for Row { style, tools, won: [without, .., with] } in rows {
        let figures = [(without.first, with.first), (without.among, with.among), (without.right, with.right)];
        let percent = |count: usize| format!("{:.0} %", 100.0 * count as f64 / queries as f64);
        let figures = figures.map(|(without, with)| format!("{} | {}", percent(without), percent(with)));
        table.push_str(&format!("| {style} | {tools} | {} |\n", figures.join(" | ")));
    }
    table
}

/// Each defence alone, against all attacks at once.
fn alone(row: &Row, queries: usize) -> String {
    let mut table = String::from("| defences | first | among five | right tool shown |\n|---|--:|--:|--:|\n");
    for (name, won) in ["none", "stuffing", "spread", "both"].into_iter().zip(row.won) {
        let percent = |count: usize| format!("{:.0} %", 100.0 * count as f64 / queries as f64);
        let figures = [won.first, won.among, won.right].map(percent).join(" | ");
        table.push_str(&format!("| {name} | {figures} |\n"));
    }
    table
}

#[test]
fn the_document_about_security_says_what_is_measured() {
    let queries = queries();
    assert_eq!(queries.len(), QUERIES * KINDS.len());
    let rows = measure(&queries);
    let all = rows.iter().find(|row| row.style == "all of them").unwrap();
    let current = read(&root().join("tests/security/security.md.template"))
        .replace("{hijacked}", &table(&rows, queries.len()))
        .replace("{near}", &spread::NEAR.to_string())
        .replace("{tools}", &json_lines("tests/quality/tools.jsonl").len().to_string())
        .replace("{queries}", &queries.len().to_string())
        .replace("{alone}", &alone(all, queries.len()));
    let path = root().join("docs/security.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    // What the text says, whatever the figures are.
    for Row { style, won: [without, .., with], .. } in &rows {
        assert!(with.first <= without.first && with.right >= without.right, "{style}\n{current}");
    }
    assert!(read(&path) == current, "run `UPDATE_DOCS=1 cargo test --test it security`");
}

/// All Rust sources below a folder, as one text.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => sources(&path),
        Some(kind) if kind == "rs" => read(&path),
        _ => String::new(),
    };
    entries.map(text).collect()
}

#[test]
fn each_threat_names_tests_that_there_are() {
    let document = read(&root().join("tests/security/security.md.template"));
    let code = ["src", "tests/it"].map(|folder| sources(&root().join(folder))).concat();
    let table = document.split("| who | what they try |").nth(1).unwrap().split("\n\n").next().unwrap();
    let threats: Vec<&str> = table.lines().skip(2).collect();
    assert!(threats.len() >= 13, "{threats:?}");
    for threat in threats {
        let held_by = threat.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        for name in held_by.split(", ") {
            let name = name.trim_matches('`');
            let at = code.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("there is no test {name}"));
            let head: Vec<&str> = code[..at].lines().rev().take(6).collect();
            let is_test =
                head.iter().any(|line| ["#[test]", "tokio::test"].iter().any(|mark| line.contains(mark)));
            assert!(is_test, "{name} is no test:\n{head:?}");
        }
    }
}
