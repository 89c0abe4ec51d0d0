//! A quiet tenant beside one that floods: what the quiet one's searches take, alone and while the other sends twice what its key
//! may.
//!
//! The quiet tenant asks at a fixed rate whatever comes back, and counts from when a request was due. The flood is a process of
//! its own at the lowest priority, so that it takes no processor from the server. The quiet tenant searches and the flood
//! assembles, so the server's own histograms tell them apart.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::client::{Client, find, request_with_key};
use crate::support::data::{Data, query_for, upload_body};
use crate::support::measure::{Options, Result, Spread, percentile, seconds};
use crate::support::process::{FLOOD, Server};
use crate::support::report::{Figure, Goal, Unit, line, table};
use crate::{Database, first};

/// The admin key of the server.
const ADMIN: &str = "fairness-admin-key-0123456789abcdef";

/// Searches of the quiet tenant per second.
const QUIET: u32 = 100;
/// Requests per second that the flood's key may send, and that it sends.
const ALLOWED: u32 = 300;
const SENT: u32 = 600;
/// Connections of the flood.
const FLOODERS: u32 = 4;
/// How long a round of each kind takes.
const ROUND: Duration = Duration::from_secs(3);

/// Sends assemblies at a fixed rate until it is killed: `ADDRESS KEY`.
pub(crate) fn flood(arguments: &[String]) -> Result<()> {
    let [address, key] = arguments else { return Err("a flood takes an address and a key".into()) };
    let address: SocketAddr = address.parse()?;
    let body = json!({"user": "loud"}).to_string();
    let assemble = request_with_key("POST", "/v1/assemble", &body, key);
    let pause = Duration::from_secs(1) * FLOODERS / SENT;
    std::thread::scope(|scope| {
        for _ in 0..FLOODERS {
            scope.spawn(|| -> std::result::Result<(), String> {
                let told = |error: Box<dyn std::error::Error>| error.to_string();
                let mut client = Client::connect(address, Vec::new()).map_err(told)?;
                let mut due = Instant::now();
                loop {
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    client.write(&assemble).map_err(told)?;
                    client.receive_any().map_err(told)?;
                    due += pause;
                }
            });
        }
    });
    Ok(())
}

/// The flood as a process, killed when dropped.
struct Flood(Child);

impl Flood {
    fn start(server: &Server, key: &str) -> Result<Self> {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(std::env::current_exe()?);
        command.args([FLOOD, &server.address.to_string(), key]);
        Ok(Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn make_key(server: &Server, user: &str, rate: u32) -> Result<String> {
    let body = json!({"name": user, "role": "agent", "users": [user],
        "rate": {"requests_per_second": rate, "burst": rate}});
    let request = request_with_key("POST", "/v1/keys", &body.to_string(), ADMIN);
    let mut client = server.client(Vec::new())?;
    client.write(&request)?;
    let (_, answer) = client.receive_any()?;
    let document: serde_json::Value = serde_json::from_slice(answer)?;
    Ok(document["key"].as_str().ok_or("no key was made")?.to_owned())
}

/// The server's own histogram of a route: upper bounds with how many took no longer, of answers with this status.
fn histogram(server: &Server, route: &str, status: &str) -> Result<Vec<(String, f64)>> {
    let request = request_with_key("GET", "/metrics", "", ADMIN);
    let mut client = server.client(Vec::new())?;
    let text = String::from_utf8(client.ask(&request)?.to_vec())?;
    let start = "toolrack_http_request_duration_seconds_bucket{";
    let (route, status) = (format!("route=\"{route}\""), format!("status=\"{status}\""));
    let mut buckets = Vec::new();
    for row in text.lines().filter(|row| row.starts_with(start)) {
        let (labels, count) = row.rsplit_once(' ').ok_or("a metric without a value")?;
        if find(labels.as_bytes(), route.as_bytes()).is_none() || !labels.contains(&status) {
            continue;
        }
        let bound = labels.split("le=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        buckets.push((bound.to_owned(), count.parse()?));
    }
    Ok(buckets)
}

/// What was added to a histogram, and to the sum of what was added before.
fn add(sum: &mut Vec<(String, f64)>, before: &[(String, f64)], after: &[(String, f64)]) {
    for (at, (bound, count)) in after.iter().enumerate() {
        let more = count - before.get(at).map_or(0.0, |(_, count)| *count);
        match sum.get_mut(at) {
            Some((_, known)) => *known += more,
            None => sum.push((bound.clone(), more)),
        }
    }
}

/// The upper bound of the bucket that this share of the answers does not exceed, as text.
fn bound_of(buckets: &[(String, f64)], share: f64) -> &str {
    let all = buckets.last().map_or(0.0, |(_, count)| *count);
    buckets.iter().find(|(_, count)| *count >= share * all).map_or("-", |(bound, _)| bound.as_str())
}

/// Answers of each bucket by themselves.
fn shown(buckets: &[(String, f64)]) -> String {
    let mut before = 0.0;
    let mut parts = Vec::new();
    for (bound, count) in buckets {
        if *count > before {
            parts.push(format!("≤ {bound} s: {:.0}", count - before));
        }
        before = *count;
    }
    parts.join(", ")
}

/// The times of one kind of round.
#[derive(Default)]
struct Kind {
    median: Spread,
    p99: Spread,
    server: Vec<(String, f64)>,
}

impl Kind {
    fn round(&mut self, server: &Server, client: &mut Client, searches: &[Vec<u8>]) -> Result<()> {
        let before = histogram(server, "/v1/search", "200")?;
        let pause = Duration::from_secs(1) / QUIET;
        let started = Instant::now();
        let (mut due, mut times) = (started, Vec::new());
        for search in searches.iter().cycle() {
            if due.duration_since(started) >= ROUND {
                break;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            client.ask(search)?;
            times.push(seconds(due.elapsed()));
            due += pause;
        }
        times.sort_by(f64::total_cmp);
        self.median.push(percentile(&times, 50));
        self.p99.push(percentile(&times, 99));
        add(&mut self.server, &before, &histogram(server, "/v1/search", "200")?);
        Ok(())
    }
}

/// Rounds alone and rounds beside the flood take turns.
pub(crate) fn fairness(data: &Data, options: &Options) -> Result<()> {
    let database = Database::new()?;
    let server = Server::toolrack_with_keys(&database.file(), ADMIN)?;
    let tools = first(data, 1_000);
    for user in ["quiet", "loud"] {
        let path = format!("/v1/users/{user}/catalog");
        server.client(Vec::new())?.ask(&request_with_key("PUT", &path, &upload_body(tools), ADMIN))?;
    }
    let (quiet, loud) = (make_key(&server, "quiet", 10 * QUIET)?, make_key(&server, "loud", ALLOWED)?);
    let mut searches = Vec::new();
    for at in 0..100 {
        let body = json!({"user": "quiet", "query": query_for(&tools[(at * 7) % tools.len()])?});
        searches.push(request_with_key("POST", "/v1/search", &body.to_string(), &quiet));
    }
    let mut client = server.client(Vec::new())?;
    Kind::default().round(&server, &mut client, &searches)?;
    let (mut alone, mut beside) = (Kind::default(), Kind::default());
    let (mut served, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        alone.round(&server, &mut client, &searches)?;
        let before = ["200", "429"].map(|status| histogram(&server, "/v1/assemble", status));
        let flood = Flood::start(&server, &loud)?;
        // Its first burst is its allowance too.
        std::thread::sleep(Duration::from_millis(200));
        beside.round(&server, &mut client, &searches)?;
        drop(flood);
        let [served_before, refused_before] = before;
        add(&mut served, &served_before?, &histogram(&server, "/v1/assemble", "200")?);
        add(&mut refused, &refused_before?, &histogram(&server, "/v1/assemble", "429")?);
    }
    let figure = |what: &str, measured: &Spread, baseline: &Spread, goal| Figure {
        what: what.to_owned(),
        unit: Unit::Time,
        measured: measured.clone(),
        baseline: Some(("the same alone", baseline.clone())),
        goal,
    };
    table(
        &format!(
            "Searches of a quiet tenant, {QUIET} per second, beside {SENT} assemblies per second of which {ALLOWED} are allowed"
        ),
        &[
            figure("median", &beside.median, &alone.median, Goal::None),
            figure("99th percentile", &beside.p99, &alone.p99, Goal::ShareAtMost(2.0)),
        ],
    )?;
    line("\nBy the server's own histograms:\n")?;
    for (what, buckets) in [
        ("quiet, alone", &alone.server),
        ("quiet, beside the flood", &beside.server),
        ("flood, answered", &served),
        ("flood, refused", &refused),
    ] {
        line(&format!("- {what}: p99 within {} s ({})", bound_of(buckets, 0.99), shown(buckets)))?;
    }
    Ok(())
}
