//! Benchmarks of the program over HTTP, as its users meet it: assembling, searching, uploading, memory, starting, and
//! searching with an endpoint that ranks, a quiet tenant beside a flood, and
//! PostgreSQL beside SQLite.
//!
//! The program and its baseline, a bare axum handler or a bare endpoint, run as processes of their own and take turns.
//! Figures are shown, never asserted.
//! `cargo bench --bench http -- [--quick] [SECTION]`; the sections are `assemble`, `search`, `upload`, `targets`, `memory`,
//! `start`, `rerank`, `fairness` and `databases`.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use sections::databases::databases;
use sections::fairness::{fairness, flood};
use sections::rerank::rerank;
use sections::targets::targets;
use support::client::{Client, drive, request};
use support::data::{Data, query_for, upload_body};
use support::measure::{Options, Result, Spread, timed};
use support::process::{BARE, ENDPOINT, FLOOD, Server};
use support::report::{Figure, Goal, Unit, line, table};
use support::{bare, endpoint};

mod sections {
    pub(crate) mod databases;
    pub(crate) mod fairness;
    pub(crate) mod rerank;
    pub(crate) mod targets;
}

mod support {
    pub(crate) mod bare;
    pub(crate) mod client;
    pub(crate) mod data;
    pub(crate) mod endpoint;
    pub(crate) mod measure;
    pub(crate) mod postgres;
    pub(crate) mod process;
    pub(crate) mod report;
}

/// How long each round of a load takes.
const ROUND: Duration = Duration::from_millis(600);
/// Connections of an assembly load.
const CONNECTIONS: usize = 8;
/// Clients of the search load, a session each.
const SEARCHERS: usize = 32;
/// Different queries of one searcher; far more than a warm set holds.
const QUERIES: usize = 100;
/// How long a process may settle before its memory is read.
const SETTLE: Duration = Duration::from_secs(2);
/// Tools of the upload that is timed.
const UPLOAD: usize = 5_000;

/// Measures and prints a table or two.
type Section = fn(&Data, &Options) -> Result<()>;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(BARE) => return bare::serve(&arguments.collect::<Vec<_>>()),
        Some(FLOOD) => return flood(&arguments.collect::<Vec<_>>()),
        Some(ENDPOINT) => return endpoint::serve(&arguments.collect::<Vec<_>>()),
        _ => {}
    }
    let Some(options) = Options::from_args() else { return Ok(()) };
    let data = Data::load()?;
    line(&format!("HTTP benchmarks with {}.", data.source))?;
    let sections: [(&str, Section); 9] = [
        ("assemble", assemble),
        ("search", search),
        ("upload", upload),
        ("targets", targets),
        ("memory", memory),
        ("start", start),
        ("rerank", rerank),
        ("fairness", fairness),
        ("databases", databases),
    ];
    for (name, section) in sections {
        if options.wants(name) {
            section(&data, &options)?;
        }
    }
    Ok(())
}

/// A database of its own that goes with the value.
struct Database(TempDir);

impl Database {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("toolrack.db")
    }
}

fn put_catalog(server: &Server, user: &str, tools: &[String]) -> Result<()> {
    server.ask("PUT", &format!("/v1/users/{user}/catalog"), &upload_body(tools)).map(drop)
}

fn first(data: &Data, count: usize) -> &[String] {
    &data.tools[..count.min(data.tools.len())]
}

/// A load that takes its turn in every round.
struct Runner<'a> {
    server: &'a Server,
    clients: Vec<Client>,
    per_second: Spread,
    /// Processor time of the server per answer.
    cost: Spread,
}

impl<'a> Runner<'a> {
    /// One connection per request of `requests`, which it repeats.
    fn new(server: &'a Server, requests: Vec<Vec<u8>>) -> Result<Self> {
        let clients =
            requests.into_iter().map(|request| server.client(vec![request])).collect::<Result<_>>()?;
        Ok(Self { server, clients, per_second: Spread::default(), cost: Spread::default() })
    }

    /// The baseline of requests and their answers: the same numbers of bytes both ways.
    fn bare(server: &'a Server, body: &str, bytes: usize) -> Result<Self> {
        Self::new(server, vec![request("POST", &bare::path(bytes), body); CONNECTIONS])
    }

    fn warm_up(&mut self) -> Result<()> {
        drive(&mut self.clients, ROUND / 2, None).map(drop)
    }

    fn round(&mut self) -> Result<()> {
        let before = self.server.processor_time()?;
        let (time, load) = timed(|| drive(&mut self.clients, ROUND, None));
        let load = load?;
        self.per_second.push(load.per_second);
        self.cost.push((self.server.processor_time()? - before) / (load.per_second * time));
        Ok(())
    }
}

/// Assembly of warm views, beside a bare handler that answers the same number of bytes.
fn assemble(data: &Data, options: &Options) -> Result<()> {
    let database = Database::new()?;
    let server = Server::toolrack(&database.file())?;
    let mut bodies = Vec::new();
    for (user, count) in [("small", 1_000), ("large", 10_000)] {
        put_catalog(&server, user, first(data, count))?;
        bodies.push((
            format!("{count} tools, no session"),
            vec![json!({"user": user}).to_string(); CONNECTIONS],
        ));
        let mut sessions = Vec::new();
        for session in 0..CONNECTIONS {
            let body = json!({"user": user, "session": format!("agent-{session}")});
            let mut search = body.clone();
            search["query"] = query_for(&data.tools[0])?.into();
            server.ask("POST", "/v1/search", &search.to_string())?;
            sessions.push(body.to_string());
        }
        bodies.push((format!("{count} tools, with a session"), sessions));
    }
    let mut sizes = Vec::new();
    for (_, bodies) in &bodies {
        let mut bytes = 0;
        for body in bodies {
            // Twice: the first assembly of a session is another one than those that follow.
            server.ask("POST", "/v1/assemble", body)?;
            bytes = server.ask("POST", "/v1/assemble", body)?.len();
        }
        sizes.push(bytes);
    }
    sizes.dedup();
    let bare_server = Server::bare(&sizes)?;
    let mut pairs = Vec::new();
    for ((name, bodies), bytes) in bodies.iter().zip(&sizes) {
        let requests = bodies.iter().map(|body| request("POST", "/v1/assemble", body)).collect();
        let bare = Runner::bare(&bare_server, &bodies[0], *bytes)?;
        pairs.push((format!("{name} ({bytes} bytes)"), Runner::new(&server, requests)?, bare));
    }
    for (_, ours, bare) in &mut pairs {
        ours.warm_up()?;
        bare.warm_up()?;
    }
    for _ in 0..options.rounds {
        for (_, ours, bare) in &mut pairs {
            bare.round()?;
            ours.round()?;
        }
    }
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for (at, (what, ours, bare)) in pairs.iter().enumerate() {
        let goal = Goal::ShareAtLeast(if at % 2 == 0 { 0.6 } else { 0.4 });
        let figure = |unit, measured: &Spread, baseline: &Spread, goal| Figure {
            what: what.clone(),
            unit,
            measured: measured.clone(),
            baseline: Some(("bare axum handler", baseline.clone())),
            goal,
        };
        rates.push(figure(Unit::PerSecond, &ours.per_second, &bare.per_second, goal));
        costs.push(figure(Unit::Time, &ours.cost, &bare.cost, Goal::None));
    }
    for (what, small, large) in [("no session", 0, 2), ("with a session", 1, 3)] {
        rates.push(Figure {
            what: format!("10000 tools, {what}"),
            unit: Unit::PerSecond,
            measured: pairs[large].1.per_second.clone(),
            baseline: Some(("the same with 1000 tools", pairs[small].1.per_second.clone())),
            goal: Goal::ShareAtLeast(0.8),
        });
    }
    table("Assembly, requests per second", &rates)?;
    table("Assembly, processor time of the server per request", &costs)
}

/// Searches that warm something each, beside the same searches with `warm: false`.
fn search(data: &Data, options: &Options) -> Result<()> {
    let database = Database::new()?;
    let server = Server::toolrack(&database.file())?;
    let tools = first(data, 1_000);
    put_catalog(&server, "small", tools)?;
    let mut warming = Vec::new();
    let mut reading = Vec::new();
    for searcher in 0..SEARCHERS {
        let (mut warm, mut read) = (Vec::new(), Vec::new());
        for turn in 0..QUERIES {
            let query = query_for(&tools[(searcher * 31 + turn * 10) % tools.len()])?;
            let mut body = json!({"user": "small", "session": format!("agent-{searcher}"), "query": query});
            warm.push(request("POST", "/v1/search", &body.to_string()));
            body["warm"] = false.into();
            read.push(request("POST", "/v1/search", &body.to_string()));
        }
        server.ask(
            "POST",
            "/v1/assemble",
            &json!({"user": "small", "session": format!("agent-{searcher}")}).to_string(),
        )?;
        warming.push(server.client(warm)?);
        reading.push(server.client(read)?);
    }
    drive(&mut warming, ROUND, None)?;
    drive(&mut reading, ROUND, None)?;
    let [mut durable, mut plain, mut unwarmed] = <[Spread; 3]>::default();
    let [mut durable_cost, mut plain_cost] = <[Spread; 2]>::default();
    for _ in 0..options.rounds {
        let before = server.processor_time()?;
        let (time, load) = timed(|| drive(&mut reading, ROUND, None));
        let (load, between) = (load?, server.processor_time()?);
        plain.push(load.per_second);
        plain_cost.push((between - before) / (load.per_second * time));
        let (time, load) = timed(|| drive(&mut warming, ROUND, Some(b"\"warmed\":[]")));
        let load = load?;
        durable.push(load.per_second);
        durable_cost.push((server.processor_time()? - between) / (load.per_second * time));
        unwarmed.push(load.holding);
    }
    let figure = |what, unit, measured, baseline, goal| Figure {
        what: format!("search that warms, {SEARCHERS} clients, {what}"),
        unit,
        measured,
        baseline: Some(("the same with `warm: false`", baseline)),
        goal,
    };
    table(
        &format!(
            "Search with a durable warm set ({:.1} % of the answers warmed nothing)",
            100.0 * unwarmed.median()
        ),
        &[
            figure("requests", Unit::PerSecond, durable, plain, Goal::AtLeast(3_000.0)),
            figure("processor time", Unit::Time, durable_cost, plain_cost, Goal::None),
        ],
    )
}

/// An upload, and the first requests after it. Every round has other tools and another user, so that nothing is known.
fn upload(data: &Data, options: &Options) -> Result<()> {
    let database = Database::new()?;
    let server = Server::toolrack(&database.file())?;
    let mut client = server.client(Vec::new())?;
    let spreads: [Spread; 6] = Default::default();
    let [mut put, mut parse, mut first_time, mut later, mut bare_later, mut search] = spreads;
    for round in 0..options.rounds {
        let start = 17 * round;
        let tools = &data.tools[start..data.tools.len().min(start + UPLOAD)];
        let body = upload_body(tools);
        let user = format!("user-{round}");
        let upload = request("PUT", &format!("/v1/users/{user}/catalog"), &body);
        put.push(time_of(&mut client, &upload)?);
        let assemble = request("POST", "/v1/assemble", &json!({ "user": user }).to_string());
        let (time, bytes) = timed(|| client.ask(&assemble).map(<[u8]>::len));
        first_time.push(time);
        later.push(time_of_many(&mut client, &assemble)?);
        let query = json!({"user": user, "query": query_for(&tools[0])?}).to_string();
        search.push(time_of(&mut client, &request("POST", "/v1/search", &query))?);

        let bytes = bytes?;
        let bare = Server::bare(&[bytes])?;
        let mut bare_client = bare.client(Vec::new())?;
        parse.push(time_of(&mut bare_client, &request("POST", bare::PARSE, &body))?);
        let assemble = request("POST", &bare::path(bytes), &json!({ "user": user }).to_string());
        bare_later.push(time_of_many(&mut bare_client, &assemble)?);
    }
    let figure = |what: &str, measured, baseline, goal| Figure {
        what: what.to_owned(),
        unit: Unit::Time,
        measured,
        baseline: Some(baseline),
        goal,
    };
    let parsed = || ("bare handler: upload parsed to `Value`", parse.clone());
    let answered = ("bare handler: the same bytes", bare_later.clone());
    table(
        &format!("Upload of {UPLOAD} tools, and the requests after it, one at a time"),
        &[
            figure("upload", put, parsed(), Goal::None),
            figure("first assembly", first_time, parsed(), Goal::AtMost(0.5)),
            figure("later assembly", later, answered, Goal::None),
            figure("first search (builds the index)", search, parsed(), Goal::None),
        ],
    )
}

fn time_of(client: &mut Client, request: &[u8]) -> Result<f64> {
    let (time, answer) = timed(|| client.ask(request).map(drop));
    answer.map(|()| time)
}

/// The median of some requests after each other.
fn time_of_many(client: &mut Client, request: &[u8]) -> Result<f64> {
    let mut times = Spread::default();
    for _ in 0..51 {
        times.push(time_of(client, request)?);
    }
    Ok(times.median())
}

/// Resident memory, idle and with a large catalog in use.
fn memory(data: &Data, _: &Options) -> Result<()> {
    let bare = Server::bare(&[])?;
    bare.wait_ready()?;
    let database = Database::new()?;
    let server = Server::toolrack(&database.file())?;
    server.wait_ready()?;
    std::thread::sleep(SETTLE);
    let (idle, bare) = (server.memory()?, bare.memory()?);
    put_catalog(&server, "large", first(data, 10_000))?;
    std::thread::sleep(SETTLE);
    let uploaded = server.memory()?;
    use_catalog(&server, data)?;
    std::thread::sleep(SETTLE);
    let loaded = server.memory()?;
    server.stop()?;
    let server = Server::toolrack(&database.file())?;
    use_catalog(&server, data)?;
    std::thread::sleep(SETTLE);
    let restarted = server.memory()?;
    let figure = |what: &str, mib, goal| {
        let [mut measured, mut baseline] = <[Spread; 2]>::default();
        measured.push(mib);
        baseline.push(bare.resident);
        let baseline = Some(("idle bare handler", baseline));
        Figure { what: what.to_owned(), unit: Unit::MiB, measured, baseline, goal }
    };
    let count = first(data, 10_000).len();
    table(
        "Resident memory",
        &[
            figure("idle", idle.resident, Goal::AtMost(40.0)),
            figure(&format!("{count} tools uploaded"), uploaded.resident, Goal::None),
            figure("the same, searched and assembled", loaded.resident, Goal::AtMost(150.0)),
            figure("its peak, from the start on", loaded.peak, Goal::None),
            figure(
                "the same after a restart, searched and assembled",
                restarted.resident,
                Goal::AtMost(150.0),
            ),
        ],
    )
}

/// Assembles and searches, with and without a session.
fn use_catalog(server: &Server, data: &Data) -> Result<()> {
    for (at, query) in data.queries.iter().take(50).enumerate() {
        let mut body: Value = json!({"user": "large"});
        if at % 2 == 0 {
            body["session"] = format!("agent-{at}").into();
        }
        server.ask("POST", "/v1/assemble", &body.to_string())?;
        body["query"] = query.as_str().into();
        server.ask("POST", "/v1/search", &body.to_string())?;
    }
    Ok(())
}

/// From the start of the process until it answers that it is ready, and on to the first assembly.
fn start(data: &Data, options: &Options) -> Result<()> {
    let database = Database::new()?;
    let server = Server::toolrack(&database.file())?;
    put_catalog(&server, "large", first(data, 10_000))?;
    use_catalog(&server, data)?;
    server.stop()?;
    let [mut ready, mut bare_ready, mut assembled] = <[Spread; 3]>::default();
    for _ in 0..options.rounds {
        bare_ready.push(start_time(|| Server::bare(&[]))?.0);
        let (time, server) = start_time(|| Server::toolrack(&database.file()))?;
        ready.push(time);
        let (time, answer) = timed(|| server.ask("POST", "/v1/assemble", r#"{"user":"large"}"#));
        answer?;
        assembled.push(time);
        server.stop()?;
    }
    let figure = |what: &str, measured, goal| Figure {
        what: what.to_owned(),
        unit: Unit::Time,
        measured,
        baseline: Some(("start of the bare handler", bare_ready.clone())),
        goal,
    };
    table(
        "Start on an existing database with 10000 tools",
        &[
            figure("process start to ready", ready, Goal::AtMost(0.3)),
            figure("first assembly after that", assembled, Goal::None),
        ],
    )
}

fn start_time(start: impl FnOnce() -> Result<Server>) -> Result<(f64, Server)> {
    let (time, server) = timed(|| {
        let server = start()?;
        server.wait_ready()?;
        Result::Ok(server)
    });
    Ok((time, server?))
}
