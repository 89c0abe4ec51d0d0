//! Searches that an endpoint ranks: what they cost beside the endpoint's own time, how often it is called for the same
//! query, and what searches cost while it is down.

use std::collections::HashSet;
use std::iter::once;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;

use crate::support::client::{Client, drive, find, request};
use crate::support::data::{Data, query_for};
use crate::support::endpoint::{CALLS, RERANK, TAKE};
use crate::support::measure::{Options, Result, Spread, percentile, timed};
use crate::support::process::Server;
use crate::support::report::{Figure, Goal, Unit, table};
use crate::{Database, first, put_catalog};

/// Documents that the endpoint ranks: the default of `max_documents`.
const DOCUMENTS: usize = 200;
/// So many go to an endpoint of an unknown host in one call.
const ONE_CALL: usize = 100;
/// Tools of a catalog of which the service chooses the documents.
const MANY: usize = 1_000;
/// Searches of a round, each with a query of its own.
const SEARCHES: usize = 200;
/// Searches before the first round; more than an endpoint may fail before it is left alone.
const WARM_UP: usize = 20;
/// Clients that ask the same at once.
const CROWD: usize = 32;
/// How long the endpoint of the crowd takes.
const SLOW: Duration = Duration::from_millis(50);
/// The default of `timeout_ms`, and the time after which the endpoint that never answers is given up.
const USUAL_TIMEOUT: u32 = 15_000;
const SHORT_TIMEOUT: u32 = 200;
/// Neighbours among the queries are so far apart in the data, so that all rounds have the same mix.
const STRIDE: usize = 97;

/// What an answer holds that the endpoint ranked, one that keywords ranked, and one whose endpoint was left alone.
const RANKED: &[u8] = br#""mode":"rerank""#;
const BY_WORDS: &[u8] = br#""mode":"keyword""#;
const LEFT_ALONE: &[u8] = br#""reason":"circuit_open""#;

pub(crate) fn rerank(data: &Data, options: &Options) -> Result<()> {
    let queries = queries(data)?;
    overhead(data, options, &queries)?;
    coalescing(data, options, &queries)?;
    down(data, options, &queries)
}

/// Queries that are all different, so that no answer comes from a cache.
fn queries(data: &Data) -> Result<Vec<String>> {
    let made: Vec<String> = data.tools.iter().map(|tool| query_for(tool)).collect::<Result<_>>()?;
    let mut known = HashSet::new();
    let all: Vec<&String> = data.queries.iter().chain(&made).filter(|query| known.insert(*query)).collect();
    Ok((0..STRIDE)
        .flat_map(|start| all.iter().skip(start).step_by(STRIDE))
        .map(|query| (*query).clone())
        .collect())
}

/// A user with so many tools, and with an endpoint where there is one.
fn put_user(server: &Server, user: &str, tools: &[String], endpoint: Option<&Matcher>) -> Result<()> {
    put_catalog(server, user, tools)?;
    let Some(Matcher { address, documents, timeout }) = endpoint else { return Ok(()) };
    let matcher = json!({"endpoint": format!("http://{address}{RERANK}"), "dialect": "cohere",
        "max_documents": documents, "timeout_ms": timeout});
    let config = json!({ "matcher": matcher }).to_string();
    server.ask("PUT", &format!("/v1/users/{user}/config"), &config).map(drop)
}

/// The settings of an endpoint.
#[derive(Debug, Clone, Copy)]
struct Matcher {
    address: SocketAddr,
    documents: usize,
    timeout: u32,
}

impl Matcher {
    fn at(endpoint: &Server, documents: usize) -> Self {
        Self { address: endpoint.address, documents, timeout: USUAL_TIMEOUT }
    }
}

fn search(user: &str, query: &str) -> Vec<u8> {
    request("POST", "/v1/search", &json!({"user": user, "query": query}).to_string())
}

/// One user's searches, one after the other.
struct Searcher {
    user: String,
    client: Client,
    /// What its answers should hold, and how many of them did.
    wanted: &'static [u8],
    holding: usize,
    answers: usize,
    times: Times,
}

impl Searcher {
    fn new(server: &Server, user: String, wanted: &'static [u8]) -> Result<Self> {
        let client = server.client(Vec::new())?;
        Ok(Self { user, client, wanted, holding: 0, answers: 0, times: Times::default() })
    }

    fn search(&mut self, query: &str) -> Result<()> {
        let request = search(&self.user, query);
        let (time, answer) = timed(|| self.client.ask(&request));
        self.holding += usize::from(find(answer?, self.wanted).is_some());
        self.answers += 1;
        self.times.push(time);
        Ok(())
    }

    fn percent_holding(&self) -> f64 {
        100.0 * self.holding as f64 / self.answers as f64
    }
}

/// Times of requests: those of a round, and the percentiles of the rounds before, in seconds.
#[derive(Debug, Default)]
struct Times {
    round: Vec<f64>,
    p50: Spread,
    p99: Spread,
}

impl Times {
    fn push(&mut self, time: f64) {
        self.round.push(time);
    }

    /// Ends the round, and gives its percentiles.
    fn end_round(&mut self) -> [f64; 2] {
        let mut times = std::mem::take(&mut self.round);
        times.sort_by(f64::total_cmp);
        let ends = [percentile(&times, 50), percentile(&times, 99)];
        self.p50.push(ends[0]);
        self.p99.push(ends[1]);
        ends
    }
}

/// The endpoint without the service: the bodies that the service has just sent, at once as it sends them.
struct Straight<'a> {
    endpoint: &'a Server,
    control: Client,
    connections: Vec<Client>,
    times: Times,
    calls: usize,
    bytes: usize,
}

impl<'a> Straight<'a> {
    fn new(endpoint: &'a Server) -> Result<Self> {
        let control = endpoint.client(Vec::new())?;
        Ok(Self { endpoint, control, connections: Vec::new(), times: Times::default(), calls: 0, bytes: 0 })
    }

    fn ask(&mut self) -> Result<()> {
        let bodies = self.take()?;
        while self.connections.len() < bodies.len() {
            self.connections.push(self.endpoint.client(Vec::new())?);
        }
        let requests: Vec<Vec<u8>> = bodies.iter().map(|body| request("POST", RERANK, body.get())).collect();
        let (time, answers) = timed(|| {
            for (connection, request) in self.connections.iter_mut().zip(&requests) {
                connection.write(request)?;
            }
            self.connections
                .iter_mut()
                .take(requests.len())
                .try_for_each(|connection| connection.receive().map(drop))
        });
        answers?;
        self.times.push(time);
        self.calls += bodies.len();
        self.bytes += bodies.iter().map(|body| body.get().len()).sum::<usize>();
        // What it sent itself.
        self.take().map(drop)
    }

    fn take(&mut self) -> Result<Vec<Box<RawValue>>> {
        Ok(serde_json::from_slice(self.control.ask(&request("GET", TAKE, ""))?)?)
    }
}

/// What a search takes more than the endpoint, which answers at once. One search at a time.
fn overhead(data: &Data, options: &Options, queries: &[String]) -> Result<()> {
    let (database, endpoint) = (Database::new()?, Server::endpoint(Duration::ZERO)?);
    let server = Server::toolrack_with_endpoints(&database.file())?;
    for count in [DOCUMENTS, MANY] {
        let tools = first(data, count);
        let mut ranked = Searcher::new(&server, format!("ranked-{count}"), RANKED)?;
        let mut plain = Searcher::new(&server, format!("plain-{count}"), BY_WORDS)?;
        let mut straight = Straight::new(&endpoint)?;
        put_user(&server, &ranked.user, tools, Some(&Matcher::at(&endpoint, DOCUMENTS)))?;
        put_user(&server, &plain.user, tools, None)?;
        let [mut added, mut added_slow] = <[Spread; 2]>::default();
        let (warm_up, queries) = queries.split_at(WARM_UP);
        for (round, queries) in once(warm_up).chain(queries.chunks(SEARCHES).take(options.rounds)).enumerate()
        {
            for query in queries {
                ranked.search(query)?;
                straight.ask()?;
                plain.search(query)?;
            }
            if round == 0 {
                for times in [&mut ranked.times, &mut plain.times, &mut straight.times] {
                    *times = Times::default();
                }
                continue;
            }
            let ([p50, p99], [alone, alone_slow]) = (ranked.times.end_round(), straight.times.end_round());
            plain.times.end_round();
            added.push(p50 - alone);
            added_slow.push(p99 - alone_slow);
        }
        let figure = |what: &str, measured: &Spread, baseline: (&'static str, &Spread), goal| Figure {
            what: what.to_owned(),
            unit: Unit::Time,
            measured: measured.clone(),
            baseline: Some((baseline.0, baseline.1.clone())),
            goal,
        };
        let alone = "the endpoint alone, with the same bodies";
        let by_words = "a search without an endpoint";
        let searches = ranked.answers as f64;
        table(
            &format!(
                "Search that an endpoint ranks, {} tools, one at a time ({:.1} calls of {:.1} KB each, {:.1} % ranked by it)",
                tools.len(),
                straight.calls as f64 / searches,
                straight.bytes as f64 / 1e3 / straight.calls.max(1) as f64,
                ranked.percent_holding(),
            ),
            &[
                figure("p50", &ranked.times.p50, (alone, &straight.times.p50), Goal::None),
                figure("p99", &ranked.times.p99, (alone, &straight.times.p99), Goal::None),
                figure(
                    "what the service adds, p50",
                    &added,
                    (by_words, &plain.times.p50),
                    Goal::AtMost(1e-3),
                ),
                figure("what the service adds, p99", &added_slow, (by_words, &plain.times.p99), Goal::None),
            ],
        )?;
    }
    Ok(())
}

/// Clients that ask the same at the same time.
fn coalescing(data: &Data, options: &Options, queries: &[String]) -> Result<()> {
    let (database, endpoint) = (Database::new()?, Server::endpoint(SLOW)?);
    let server = Server::toolrack_with_endpoints(&database.file())?;
    put_user(&server, "crowd", first(data, DOCUMENTS), Some(&Matcher::at(&endpoint, ONE_CALL)))?;
    let mut control = endpoint.client(Vec::new())?;
    let mut calls =
        || -> Result<f64> { Ok(serde_json::from_slice(control.ask(&request("GET", CALLS, ""))?)?) };
    let requests: Vec<Vec<u8>> =
        queries.iter().take(2 * (options.rounds + 1)).map(|query| search("crowd", query)).collect();
    let (alone, crowds) = requests.split_at(options.rounds + 1);
    let mut client = server.client(Vec::new())?;
    let mut crowd = (0..CROWD).map(|_| server.client(crowds.to_vec())).collect::<Result<Vec<_>>>()?;
    let [mut asked, mut one, mut time, mut one_time, mut ranked] = <[Spread; 5]>::default();
    for (round, alone) in alone.iter().enumerate() {
        let before = calls()?;
        let (alone_took, answer) = timed(|| client.ask(alone).map(drop));
        answer?;
        let between = calls()?;
        // No time: one request of each.
        let (took, load) = timed(|| drive(&mut crowd, Duration::ZERO, Some(RANKED)));
        let load = load?;
        if round > 0 {
            one.push(between - before);
            asked.push(calls()? - between);
            one_time.push(alone_took);
            time.push(took);
            ranked.push(load.holding);
        }
    }
    let figure = |what: &str, unit, measured, baseline, goal| Figure {
        what: what.to_owned(),
        unit,
        measured,
        baseline: Some(("one search", baseline)),
        goal,
    };
    table(
        &format!(
            "{CROWD} searches for the same at once, {} ms of the endpoint ({:.1} % ranked by it)",
            SLOW.as_millis(),
            100.0 * ranked.median()
        ),
        &[
            figure("calls of the endpoint", Unit::Count, asked, one, Goal::AtMost(1.0)),
            figure("time until all are answered", Unit::Time, time, one_time, Goal::None),
        ],
    )
}

/// Searches while the endpoint is left alone because it failed, beside those of a user without one.
fn down(data: &Data, options: &Options, queries: &[String]) -> Result<()> {
    let database = Database::new()?;
    let server = Server::toolrack_with_endpoints(&database.file())?;
    let tools = first(data, MANY);
    put_user(&server, "plain", tools, None)?;
    // The system accepts its connections, and nobody reads from them.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let nobody = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let endpoints =
        [("nobody listens", nobody, USUAL_TIMEOUT), ("never answers", silent.local_addr()?, SHORT_TIMEOUT)];
    for (at, (how, address, timeout)) in endpoints.into_iter().enumerate() {
        let user = format!("failing-{at}");
        put_user(&server, &user, tools, Some(&Matcher { address, documents: DOCUMENTS, timeout }))?;
        let mut plain = Searcher::new(&server, "plain".to_owned(), BY_WORDS)?;
        let mut failing = Searcher::new(&server, user.clone(), LEFT_ALONE)?;
        let (warm_up, queries) = queries.split_at(WARM_UP);
        for query in warm_up {
            plain.search(query)?;
            failing.search(query)?;
        }
        let failures = failing.answers - failing.holding;
        let mut longest = Spread::default();
        longest.push(failing.times.round.iter().copied().fold(0.0, f64::max));
        plain.times = Times::default();
        failing = Searcher::new(&server, user, LEFT_ALONE)?;
        for queries in queries.chunks(SEARCHES).take(options.rounds) {
            for (turn, query) in queries.iter().enumerate() {
                // Neither always goes first.
                let [one, other] =
                    if turn % 2 == 0 { [&mut failing, &mut plain] } else { [&mut plain, &mut failing] };
                one.search(query)?;
                other.search(query)?;
            }
            failing.times.end_round();
            plain.times.end_round();
        }
        let figure = |what: &str, measured, baseline, goal| Figure {
            what: what.to_owned(),
            unit: Unit::Time,
            measured,
            baseline: Some(("a search without an endpoint", baseline)),
            goal,
        };
        table(
            &format!(
                "Search while the endpoint is left alone, {} tools, one at a time ({how}; {:.1} % left it alone)",
                tools.len(),
                failing.percent_holding()
            ),
            &[
                figure("p50", failing.times.p50, plain.times.p50.clone(), Goal::None),
                figure("p99", failing.times.p99, plain.times.p99.clone(), Goal::ShareAtMost(2.0)),
                figure(
                    &format!("the longest of the {failures} searches before that"),
                    longest,
                    plain.times.p50,
                    Goal::None,
                ),
            ],
        )?;
    }
    Ok(())
}
