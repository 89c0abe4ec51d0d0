//! The program on PostgreSQL beside the program on SQLite: one process, and several on one database. Everything runs on this
//! machine, the server of the database too, so that figures of several processes show a shape and no sum.

use std::fs;

use serde_json::json;

use crate::support::client::{Client, drive, request};
use crate::support::data::{Data, query_for, upload_body};
use crate::support::measure::{Options, Result, Spread, timed};
use crate::support::postgres::Postgres;
use crate::support::process::Server;
use crate::support::report::{Figure, Goal, Unit, line, table};
use crate::{Database, QUERIES, ROUND, first};

/// Connections of each load, shared out among the processes.
const CLIENTS: usize = 24;
/// Processes on one database.
const PROCESSES: [usize; 3] = [1, 2, 3];
const USER: &str = "small";

/// One load on one side.
struct Load {
    clients: Vec<Client>,
    /// What an answer holds that did not do what was asked.
    in_vain: Option<&'static [u8]>,
    per_second: Spread,
    vain: Spread,
    /// Processor time of the processes, and of the server of the database, per answer.
    cost: Spread,
    database_cost: Spread,
}

impl Load {
    fn new(clients: Vec<Client>, in_vain: Option<&'static [u8]>) -> Self {
        let [per_second, vain, cost, database_cost] = <[Spread; 4]>::default();
        Self { clients, in_vain, per_second, vain, cost, database_cost }
    }

    fn round(&mut self, servers: &[Server]) -> Result<()> {
        let spent = || servers.iter().map(Server::processor_time).sum::<Result<f64>>();
        let (before, database_before) = (spent()?, database_time());
        let (time, load) = timed(|| drive(&mut self.clients, ROUND, self.in_vain));
        let load = load?;
        let answers = load.per_second * time;
        self.per_second.push(load.per_second);
        self.vain.push(load.holding);
        self.cost.push((spent()? - before) / answers);
        self.database_cost.push((database_time() - database_before) / answers);
        Ok(())
    }
}

/// Processor time of all processes of PostgreSQL that live, in seconds (Linux).
fn database_time() -> f64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0.0 };
    let time = |folder: std::path::PathBuf| {
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        let stat = fs::read_to_string(folder.join("schedstat")).ok()?;
        (name.trim() == "postgres").then(|| stat.split(' ').next()?.parse::<f64>().ok())?
    };
    processes.flatten().filter_map(|entry| time(entry.path())).sum::<f64>() / 1e9
}

/// A database with the processes on it, and its loads: assembly, assembly with a session, search that warms.
struct Side {
    name: String,
    servers: Vec<Server>,
    loads: Vec<Load>,
}

impl Side {
    fn new(name: String, servers: Vec<Server>, data: &Data) -> Result<Self> {
        let tools = first(data, 1_000);
        let first_server = servers.first().ok_or("a side without a process")?;
        first_server.ask("PUT", &format!("/v1/users/{USER}/catalog"), &upload_body(tools))?;
        let loads = vec![
            stateless(&servers)?,
            with_a_session(&servers, &query_for(&tools[0])?)?,
            searching(&servers, tools)?,
        ];
        Ok(Self { name, servers, loads })
    }

    fn round(&mut self, at: usize) -> Result<()> {
        self.loads[at].round(&self.servers)
    }
}

/// A client of one process after the other, with the requests that `requests` makes for its number.
fn clients(servers: &[Server], requests: impl Fn(usize) -> Result<Vec<Vec<u8>>>) -> Result<Vec<Client>> {
    (0..CLIENTS).map(|at| servers[at % servers.len()].client(requests(at)?)).collect()
}

fn stateless(servers: &[Server]) -> Result<Load> {
    let body = json!({ "user": USER }).to_string();
    let clients = clients(servers, |_| Ok(vec![request("POST", "/v1/assemble", &body)]))?;
    Ok(Load::new(clients, None))
}

fn with_a_session(servers: &[Server], query: &str) -> Result<Load> {
    let body = |at: usize| json!({"user": USER, "session": format!("agent-{at}")});
    for at in 0..CLIENTS {
        let server = &servers[at % servers.len()];
        let mut search = body(at);
        search["query"] = query.into();
        server.ask("POST", "/v1/search", &search.to_string())?;
        // Twice: the first assembly of a session is another one than those that follow.
        for _ in 0..2 {
            server.ask("POST", "/v1/assemble", &body(at).to_string())?;
        }
    }
    let clients = clients(servers, |at| Ok(vec![request("POST", "/v1/assemble", &body(at).to_string())]))?;
    Ok(Load::new(clients, None))
}

fn searching(servers: &[Server], tools: &[String]) -> Result<Load> {
    let clients = clients(servers, |at| {
        let query = |turn: usize| {
            let query = query_for(&tools[(at * 31 + turn * 10) % tools.len()])?;
            let body = json!({"user": USER, "session": format!("searcher-{at}"), "query": query});
            Ok(request("POST", "/v1/search", &body.to_string()))
        };
        (0..QUERIES).map(query).collect()
    })?;
    Ok(Load::new(clients, Some(b"\"warmed\":[]")))
}

/// What is measured, and what is asked of one process on PostgreSQL.
const LOADS: [(&str, [Goal; 2]); 3] = [
    ("assembly", [Goal::ShareAtLeast(0.8), Goal::None]),
    ("assembly with a session", [Goal::AtLeast(2_000.0), Goal::None]),
    ("search that warms", [Goal::AtLeast(1_000.0), Goal::None]),
];

pub(crate) fn databases(data: &Data, options: &Options) -> Result<()> {
    let Some(postgres) = Postgres::start()? else {
        return line("\nPostgreSQL is not installed: nothing was measured on it.");
    };
    let database = Database::new()?;
    let mut sides =
        vec![Side::new("SQLite, 1 process".to_owned(), vec![Server::toolrack(&database.file())?], data)?];
    for count in PROCESSES {
        let url = postgres.database(&format!("with{count}"))?;
        let servers = (0..count).map(|_| Server::toolrack_on(&url)).collect::<Result<_>>()?;
        sides.push(Side::new(format!("PostgreSQL, {count} of {count}"), servers, data)?);
    }
    for load in 0..LOADS.len() {
        for side in &mut sides {
            drive(&mut side.loads[load].clients, ROUND / 2, None)?;
        }
    }
    for _ in 0..options.rounds {
        for load in 0..LOADS.len() {
            for side in &mut sides {
                side.round(load)?;
            }
        }
    }
    report(&sides)
}

fn report(sides: &[Side]) -> Result<()> {
    let Some((sqlite, others)) = sides.split_first() else { return Ok(()) };
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for (at, (what, goals)) in LOADS.into_iter().enumerate() {
        let baseline = &sqlite.loads[at];
        for (processes, side) in others.iter().enumerate() {
            let load = &side.loads[at];
            let what = format!("{what}: {}", side.name);
            let figure = |what, unit, measured: &Spread, baseline: &Spread, goal| Figure {
                what,
                unit,
                measured: measured.clone(),
                baseline: Some(("SQLite, 1 process", baseline.clone())),
                goal,
            };
            let goal = goals[processes.min(1)];
            rates.push(figure(what.clone(), Unit::PerSecond, &load.per_second, &baseline.per_second, goal));
            costs.push(figure(what.clone(), Unit::Time, &load.cost, &baseline.cost, Goal::None));
            costs.push(Figure {
                what: format!("{what}: the server of the database"),
                unit: Unit::Time,
                measured: load.database_cost.clone(),
                baseline: None,
                goal: Goal::None,
            });
        }
    }
    let vain: Vec<f64> = sides.iter().map(|side| 100.0 * side.loads[2].vain.median()).collect();
    table(
        "One database, requests per second of all its processes, which share this machine with it",
        &rates,
    )?;
    table("One database, processor time per request", &costs)?;
    line(&format!("\nOf the searches, these per cent warmed nothing: {vain:.1?}."))
}
