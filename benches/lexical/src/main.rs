//! Keyword search of the core beside the `bm25` crate and tantivy: the same tools, the same queries, in the same run, on one
//! thread. A search is all from the text of the query to the best tools, with the analysis of its words.
//!
//! Figures are shown, never asserted. `just bench`, or
//! `cargo run --release --manifest-path benches/lexical/Cargo.toml -- --bench [--quick] [SECTION]` with the sections `search`,
//! `build` and `recall`.

use std::error::Error;
use std::path::Path;

use engines::{Bm25, Engine, MATCHES, Ours, Tantivy};
use support::data::Data;
use support::measure::{Options, Result, Spread, percentile, timed};
use support::report::{Figure, Goal, Unit, line, table};
use tools::{Text, catalog, labelled};

mod engines;
#[path = "../../support"]
mod support {
    #[expect(dead_code, reason = "shared with the other benchmarks, which make uploads")]
    pub(crate) mod data;
    pub(crate) mod measure;
    #[expect(dead_code, reason = "shared with the benchmarks over HTTP, which have other units and goals")]
    pub(crate) mod report;
}
mod tools;

/// Tools and what half of the searches over them should take at most, in seconds: by words and vectors, by words alone.
const SIZES: [(usize, [f64; 2]); 3] =
    [(1_000, [150e-6, 60e-6]), (10_000, [600e-6, 250e-6]), (50_000, [2.5e-3, 1e-3])];
/// The slowest of a hundred searches should take at most this many times what half of them take.
const TAIL: f64 = 4.0;
/// Tools of an index that is built, and what it should take at most, in seconds and MiB: with vectors, of words alone.
const BUILD: (usize, [(f64, f64); 2]) = (5_000, [(0.8, 12.0), (0.5, 10.0)]);
const OURS: [&str; 2] = ["words and vectors", "words"];
const BASELINES: [&str; 2] = ["`bm25` crate", "tantivy"];
const ENGINES: usize = OURS.len() + BASELINES.len();

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let Some(options) = Options::from_args() else { return Ok(()) };
    let data = Data::load()?;
    line(&format!("Keyword search with {}.", data.source))?;
    if options.wants("search") {
        for (count, goals) in SIZES {
            searches(&data, count, goals, &options)?;
        }
    }
    if options.wants("build") {
        builds(&data, &options)?;
    }
    if options.wants("recall") {
        match std::env::var_os("TOOLRACK_TEST_DATA") {
            Some(folder) => recall(&Path::new(&folder).join("bench/agent_dev"))?,
            None => line("\nNo recall: generated tools have no labelled queries.")?,
        }
    }
    Ok(())
}

/// Ours first, then the baselines in their order.
fn engines(tools: &[Text]) -> Result<[Box<dyn Engine>; ENGINES]> {
    Ok([
        Box::new(Ours::build(tools, true)?),
        Box::new(Ours::build(tools, false)?),
        Box::new(Bm25::build(tools)?),
        Box::new(Tantivy::build(tools)?),
    ])
}

/// p50 and p99 over all queries. Each round asks every query of one engine, then of the next.
fn searches(data: &Data, count: usize, goals: [f64; 2], options: &Options) -> Result<()> {
    let tools = catalog(&data.tools, count);
    let engines = engines(&tools)?;
    let mut spreads: [[Spread; 2]; ENGINES] = Default::default();
    for round in 0..=options.rounds {
        for (engine, spreads) in engines.iter().zip(&mut spreads) {
            let mut times = Vec::with_capacity(data.queries.len());
            for query in &data.queries {
                let (time, found) = timed(|| engine.find(std::hint::black_box(query)));
                drop(std::hint::black_box(found?));
                times.push(time);
            }
            // The first round fills caches.
            if round > 0 {
                times.sort_by(f64::total_cmp);
                for (spread, percent) in spreads.iter_mut().zip([50, 99]) {
                    spread.push(percentile(&times, percent));
                }
            }
        }
    }
    let (ours, others) = spreads.split_at(OURS.len());
    let mut figures = Vec::new();
    for ((who, spreads), goal_p50) in OURS.into_iter().zip(ours).zip(goals) {
        let goals = [Goal::AtMost(goal_p50), Goal::AtMost(TAIL * spreads[0].median())];
        for (at, (what, goal)) in ["p50", "p99"].into_iter().zip(goals).enumerate() {
            for (name, other) in BASELINES.into_iter().zip(others) {
                figures.push(Figure {
                    what: format!("{what}, {who}"),
                    unit: Unit::Time,
                    measured: spreads[at].clone(),
                    baseline: Some((name, other[at].clone())),
                    goal,
                });
            }
        }
    }
    table(&format!("A search among {} tools; the goal of p99 is {TAIL} times p50", tools.len()), &figures)
}

/// Time and size of an index.
fn builds(data: &Data, options: &Options) -> Result<()> {
    let (count, goals) = BUILD;
    let tools = catalog(&data.tools, count);
    let mut times: [Spread; ENGINES] = Default::default();
    let mut sizes: [Spread; ENGINES] = Default::default();
    for _ in 0..options.rounds {
        let (both_time, both) = timed(|| Ours::build(&tools, true));
        let (words_time, words) = timed(|| Ours::build(&tools, false));
        let (bm25_time, bm25) = timed(|| Bm25::build(&tools));
        let (tantivy_time, tantivy) = timed(|| Tantivy::build(&tools));
        let built: [Box<dyn Engine>; ENGINES] =
            [Box::new(both?), Box::new(words?), Box::new(bm25?), Box::new(tantivy?)];
        for (spread, time) in times.iter_mut().zip([both_time, words_time, bm25_time, tantivy_time]) {
            spread.push(time);
        }
        for (spread, engine) in sizes.iter_mut().zip(built) {
            if let Some(bytes) = engine.bytes()? {
                spread.push(bytes as f64 / f64::from(1 << 20));
            }
        }
    }
    let [both, words, bm25, tantivy] = times;
    let [both_size, words_size, _, tantivy_size] = sizes;
    let figure =
        |what: &str, unit: Unit, measured: &Spread, name: &'static str, other: Spread, goal: f64| Figure {
            what: what.to_owned(),
            unit,
            measured: measured.clone(),
            baseline: Some((name, other)),
            goal: Goal::AtMost(goal),
        };
    let ours = [(&both, &both_size), (&words, &words_size)];
    let figures = OURS.iter().zip(ours).zip(goals).flat_map(|((who, (time, size)), (seconds, mib))| {
        let build = format!("time to build, {who}");
        [
            figure(&build, Unit::Time, time, BASELINES[0], bm25.clone(), seconds),
            figure(&build, Unit::Time, time, BASELINES[1], tantivy.clone(), seconds),
            figure(&format!("size, {who}"), Unit::MiB, size, BASELINES[1], tantivy_size.clone(), mib),
        ]
    });
    table(&format!("An index of {} tools", tools.len()), &figures.collect::<Vec<_>>())
}

/// Which share of the right tools stands among the first, by kind of query.
fn recall(folder: &Path) -> Result<()> {
    let (tools, queries) = labelled(folder)?;
    let mut kinds: Vec<&str> = queries.iter().map(|query| query.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    line(&format!("\n## Recall@{MATCHES} over {} queries and {} tools\n", queries.len(), tools.len()))?;
    line(&format!("| engine | all | {} |", kinds.join(" | ")))?;
    line(&format!("|---|---|{}", "---|".repeat(kinds.len())))?;
    let names = OURS.map(|who| format!("Toolrack, {who}")).into_iter().chain(BASELINES.map(str::to_owned));
    for (name, engine) in names.zip(engines(&tools)?) {
        let mut found = Vec::with_capacity(queries.len());
        for query in &queries {
            let best = engine.find(&query.query)?;
            let right =
                query.relevant.iter().filter(|tool| best.iter().take(MATCHES).any(|found| found == *tool));
            found.push((query.kind.as_str(), right.count() as f64 / query.relevant.len() as f64));
        }
        let mean = |kind: Option<&str>| {
            let shares: Vec<f64> = found
                .iter()
                .filter(|(of, _)| kind.is_none_or(|kind| kind == *of))
                .map(|(_, share)| *share)
                .collect();
            format!("{:.3}", shares.iter().sum::<f64>() / shares.len().max(1) as f64)
        };
        let cells: Vec<String> =
            std::iter::once(None).chain(kinds.iter().map(|kind| Some(*kind))).map(mean).collect();
        line(&format!("| {name} | {} |", cells.join(" | ")))?;
    }
    Ok(())
}
