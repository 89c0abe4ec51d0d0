//! Benchmarks of the pure core: keyword search beside a plain scan, and what uploads and assemblies are made of.
//!
//! Figures are shown, never asserted. `cargo bench --bench core -- [--quick] [SECTION]`.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use serde_json::Value;
use toolrack::core::assemble::{AnswerInput, answer};
use toolrack::core::catalog::{Catalog, read_upload, replace};
use toolrack::core::format::ingest::EntryLimits;
use toolrack::core::grant::{Catalogs, Selection, View};
use toolrack::core::lexical::Document;
use toolrack::core::matches::by_keywords;
use toolrack::core::plan::Plan;
use toolrack::core::policy::{self, Layer, Policy};
use toolrack::core::profile::Profile;
use toolrack::core::ranking::{CatalogIndex as Index, Part, search};
use toolrack::core::target::Target;

use support::data::{Data, query_for, upload_body};
use support::measure::{Options, Result, Spread, percentile, timed};
use support::report::{Figure, Goal, Unit, line, table};

mod support {
    pub(crate) mod data;
    pub(crate) mod measure;
    #[expect(dead_code, reason = "shared with the benchmarks over HTTP, which have other units and goals")]
    pub(crate) mod report;
}

/// The service's default limits of one tool.
const LIMITS: EntryLimits = EntryLimits { bytes: 256 * 1024, depth: 64 };
/// Matches of a search: the default of `search_default_limit`.
const MATCHES: usize = 5;
/// Default of `max_warm_tools`.
const WARM: usize = 8;
/// Answers that are timed at once: one alone is too short for the clock.
const ANSWERS: usize = 200;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let Some(options) = Options::from_args() else { return Ok(()) };
    let data = Data::load()?;
    line(&format!("Core benchmarks with {}.", data.source))?;
    let policy = policy::merge(&Layer::default(), &Layer::default());
    if options.wants("search") {
        let mut figures = Vec::new();
        for (count, goal_p99) in [(1_000, 100e-6), (10_000, 1e-3)] {
            figures.extend(keyword_search(&Fixture::new(&data, count, &policy), &data, goal_p99, &options)?);
        }
        table("Keyword search in the core", &figures)?;
    }
    if options.wants("steps") {
        for count in [1_000, 5_000, 10_000] {
            steps(&data, count, &policy, &options)?;
        }
    }
    Ok(())
}

/// A catalog with all that a search needs.
struct Fixture {
    count: usize,
    catalog: Arc<Catalog>,
    index: Index,
    view: View,
}

impl Fixture {
    fn new(data: &Data, count: usize, policy: &Policy) -> Self {
        let catalog = build_catalog(&data.tools[..count.min(data.tools.len())]);
        let index = build_index(&catalog);
        let view = build_view(&catalog, policy);
        Self { count, catalog, index, view }
    }
}

fn build_catalog(tools: &[String]) -> Arc<Catalog> {
    let upload = read_upload(tools.iter().map(String::as_str), LIMITS, "/tools");
    Arc::new(replace(&Catalog::default(), upload.tools).catalog)
}

fn build_index(catalog: &Catalog) -> Index {
    let descriptions: Vec<_> = catalog.tools().iter().map(|tool| tool.tool.description()).collect();
    Index::build(catalog.tools().iter().zip(&descriptions).map(|(tool, description)| Document {
        group: tool.tool.group(),
        name: tool.tool.name(),
        description,
        parameters: tool.tool.parameters(),
        aliases: tool.tool.aliases(),
    }))
}

fn build_view(catalog: &Arc<Catalog>, policy: &Policy) -> View {
    let catalogs = Catalogs::Stored { user: Arc::clone(catalog), project: Arc::default() };
    View::build(&catalogs, policy, &[], &[Selection::default()], Profile::Generic)
}

/// p50 and p99 of two sets of queries. Each round asks every query once, then the scan does.
fn keyword_search(fixture: &Fixture, data: &Data, goal_p99: f64, options: &Options) -> Result<Vec<Figure>> {
    let own = data.tools.iter().take(fixture.count).step_by(fixture.count.div_ceil(400));
    let own: Vec<String> = own.map(|tool| query_for(tool)).collect::<Result<_>>()?;
    let scan = Scan::new(&fixture.catalog);
    let candidates = fixture.view.candidates().first().map(Vec::as_slice).unwrap_or_default();
    let parts = [Part { index: &fixture.index, candidates }];
    let find = |query: &str| by_keywords(&search(&parts, fixture.view.tools.len(), query, MATCHES, true));
    let mut figures = Vec::new();
    for (name, queries) in [("", &data.queries), (", names and descriptions as queries", &own)] {
        let (mut ours, mut plain) =
            ([Spread::default(), Spread::default()], [Spread::default(), Spread::default()]);
        queries.iter().for_each(|query| drop(black_box(find(query))));
        for _ in 0..options.rounds {
            push_percentiles(&mut ours, queries, |query| drop(black_box(find(black_box(query)))));
            push_percentiles(&mut plain, queries, |query| drop(black_box(scan.find(black_box(query)))));
        }
        for (at, percent) in [50, 99].into_iter().enumerate() {
            let goal = if name.is_empty() { Goal::AtMost(goal_p99) } else { Goal::None };
            figures.push(Figure {
                what: format!("p{percent}, {} tools{name}", fixture.count),
                unit: Unit::Time,
                measured: ours[at].clone(),
                baseline: Some(("substring scan", plain[at].clone())),
                goal,
            });
        }
    }
    Ok(figures)
}

/// Asks every query and adds p50 and p99 of their times.
fn push_percentiles(spreads: &mut [Spread; 2], queries: &[String], mut ask: impl FnMut(&str)) {
    let mut times: Vec<f64> = queries.iter().map(|query| timed(|| ask(query)).0).collect();
    times.sort_by(f64::total_cmp);
    spreads[0].push(percentile(&times, 50));
    spreads[1].push(percentile(&times, 99));
}

/// The plain way: how many words of the query stand in the tool's name or description.
struct Scan {
    texts: Vec<String>,
}

impl Scan {
    fn new(catalog: &Catalog) -> Self {
        let text = |name: &str, description: &str| format!("{name} {description}").to_lowercase();
        let texts = catalog.tools().iter().map(|tool| text(&tool.stored_name, &tool.tool.description()));
        Self { texts: texts.collect() }
    }

    fn find(&self, query: &str) -> Vec<(usize, usize)> {
        let query = query.to_lowercase();
        let words: Vec<&str> = query.split_whitespace().collect();
        let score = |text: &String| words.iter().filter(|word| text.contains(**word)).count();
        let mut best: Vec<(usize, usize)> =
            self.texts.iter().map(score).enumerate().filter(|(_, score)| *score > 0).collect();
        best.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        best.truncate(MATCHES);
        best
    }
}

/// The steps of an upload and of an assembly, one by one.
fn steps(data: &Data, count: usize, policy: &Policy, options: &Options) -> Result<()> {
    let tools = &data.tools[..count.min(data.tools.len())];
    let body = upload_body(tools);
    let names = [
        "read the upload",
        "make the catalog (names, token counts)",
        "build the search index",
        "build the view",
    ];
    let mut once: Vec<Spread> = vec![Spread::default(); names.len() + 1];
    let [mut parse, mut stateless, mut session, mut copy] = <[Spread; 4]>::default();
    for _ in 0..options.rounds {
        parse.push(timed(|| black_box(serde_json::from_str::<Value>(black_box(&body)).is_ok())).0);
        let (read, upload) = timed(|| read_upload(tools.iter().map(String::as_str), LIMITS, "/tools"));
        let (make, change) = timed(|| replace(&Catalog::default(), upload.tools));
        let catalog = Arc::new(change.catalog);
        let (index, _) = timed(|| black_box(build_index(&catalog)));
        let (build_view, view) = timed(|| build_view(&catalog, policy));
        let (plan_it, plan) = timed(|| Plan::build(&view, policy, Target::default(), policy.context_window));
        for (spread, time) in once.iter_mut().zip([read, make, index, build_view, plan_it]) {
            spread.push(time);
        }
        let warm: Vec<u32> = view.visible().map(|(id, _)| id).take(WARM).collect();
        let first = answer(&view, &plan, &AnswerInput { warm: &warm, ..AnswerInput::default() });
        stateless.push(each(|| answer(&view, &plan, &AnswerInput::default()).body));
        session.push(each(|| {
            answer(
                &view,
                &plan,
                &AnswerInput { warm: &warm, previous: Some(&first.sent), ..AnswerInput::default() },
            )
            .body
        }));
        copy.push(each(|| first.body.clone()));
    }
    let names = names.into_iter().chain(["plan the array and the listing"]);
    let mut figures: Vec<Figure> = names
        .zip(once)
        .map(|(what, measured)| Figure {
            what: what.to_owned(),
            unit: Unit::Time,
            measured,
            baseline: Some(("upload parsed to `Value`", parse.clone())),
            goal: Goal::None,
        })
        .collect();
    for (what, measured) in [("answer, no session", stateless), ("answer, 8 warm tools", session)] {
        let baseline = Some(("copy of the answer", copy.clone()));
        figures.push(Figure {
            what: what.to_owned(),
            unit: Unit::Time,
            measured,
            baseline,
            goal: Goal::None,
        });
    }
    table(&format!("Steps with {count} tools, {:.1} MB", body.len() as f64 / 1e6), &figures)
}

/// Seconds for one of many runs.
fn each<T>(mut work: impl FnMut() -> T) -> f64 {
    let (time, ()) = timed(|| (0..ANSWERS).for_each(|_| drop(black_box(work()))));
    time / ANSWERS as f64
}
