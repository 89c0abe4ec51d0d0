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

/// Tools and what half of the searches over them should take at most, in seconds.
const SIZES: [(usize, f64); 3] = [(1_000, 60e-6), (10_000, 250e-6), (50_000, 1e-3)];
/// The slowest of a hundred searches should take at most this many times what half of them take.
const TAIL: f64 = 4.0;
/// Tools, seconds and MiB of an index that is built.
const BUILD: (usize, f64, f64) = (5_000, 0.5, 10.0);
const BASELINES: [&str; 2] = ["`bm25` crate", "tantivy"];

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let Some(options) = Options::from_args() else { return Ok(()) };
    let data = Data::load()?;
    line(&format!("Keyword search with {}.", data.source))?;
    if options.wants("search") {
        for (count, goal) in SIZES {
            searches(&data, count, goal, &options)?;
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
fn engines(tools: &[Text]) -> Result<[Box<dyn Engine>; 3]> {
    Ok([Box::new(Ours::build(tools)?), Box::new(Bm25::build(tools)?), Box::new(Tantivy::build(tools)?)])
}

/// p50 and p99 over all queries. Each round asks every query of one engine, then of the next.
fn searches(data: &Data, count: usize, goal_p50: f64, options: &Options) -> Result<()> {
    let tools = catalog(&data.tools, count);
    let engines = engines(&tools)?;
    let mut spreads: [[Spread; 2]; 3] = Default::default();
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
    let goals = [Goal::AtMost(goal_p50), Goal::AtMost(TAIL * spreads[0][0].median())];
    let mut figures = Vec::new();
    for (at, (what, goal)) in ["p50", "p99"].into_iter().zip(goals).enumerate() {
        for (name, other) in BASELINES.into_iter().zip(&spreads[1..]) {
            figures.push(Figure {
                what: what.to_owned(),
                unit: Unit::Time,
                measured: spreads[0][at].clone(),
                baseline: Some((name, other[at].clone())),
                goal,
            });
        }
    }
    table(&format!("A search among {} tools; the goal of p99 is {TAIL} times p50", tools.len()), &figures)
}

/// Time and size of an index.
fn builds(data: &Data, options: &Options) -> Result<()> {
    let (count, goal_seconds, goal_mib) = BUILD;
    let tools = catalog(&data.tools, count);
    let mut times: [Spread; 3] = Default::default();
    let mut sizes: [Spread; 3] = Default::default();
    for _ in 0..options.rounds {
        let (time, ours) = timed(|| Ours::build(&tools));
        let (bm25_time, bm25) = timed(|| Bm25::build(&tools));
        let (tantivy_time, tantivy) = timed(|| Tantivy::build(&tools));
        let built: [Box<dyn Engine>; 3] = [Box::new(ours?), Box::new(bm25?), Box::new(tantivy?)];
        for (spread, time) in times.iter_mut().zip([time, bm25_time, tantivy_time]) {
            spread.push(time);
        }
        for (spread, engine) in sizes.iter_mut().zip(built) {
            if let Some(bytes) = engine.bytes()? {
                spread.push(bytes as f64 / f64::from(1 << 20));
            }
        }
    }
    let [ours, bm25, tantivy] = times;
    let [our_size, _, tantivy_size] = sizes;
    let figure =
        |what: &str, unit: Unit, measured: &Spread, name: &'static str, other: Spread, goal: f64| Figure {
            what: what.to_owned(),
            unit,
            measured: measured.clone(),
            baseline: Some((name, other)),
            goal: Goal::AtMost(goal),
        };
    table(
        &format!("An index of {} tools", tools.len()),
        &[
            figure("time to build", Unit::Time, &ours, BASELINES[0], bm25, goal_seconds),
            figure("time to build", Unit::Time, &ours, BASELINES[1], tantivy, goal_seconds),
            figure("size", Unit::MiB, &our_size, BASELINES[1], tantivy_size, goal_mib),
        ],
    )
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
    let names = ["Toolrack"].into_iter().chain(BASELINES);
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
