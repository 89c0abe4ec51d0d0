//! Three processes on one PostgreSQL behind a client that asks them in turn: sessions move between them while configs and catalogs
//! are written. What each answer may show is told by a model, which is asked when all is done.

mod model;
mod one_session;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::app::{Answer, TestApp, User, unique};
use crate::postgres::{database, on};
use crate::samples::paints;
use model::{Log, Observation};

const REPLICAS: usize = 3;
const USERS: usize = 4;
const SESSIONS_OF_USER: usize = 25;

/// Configs and catalogs that each user writes while the sessions are at work.
const WRITES: u64 = 20;

/// What each of a session's two hands finds. They do so at the same time, and on whatever process is next.
const FOUND: [[&str; 6]; 2] = [
    ["amber", "blue", "crimson", "denim", "emerald", "fuchsia"],
    ["gold", "indigo", "jade", "khaki", "lilac", "magenta"],
];

/// Requests of sessions under way at a time.
const AT_ONCE: usize = 24;

/// Requests that sessions make in all: one that finds and one that looks, for each tool.
const REQUESTS: usize = USERS * SESSIONS_OF_USER * FOUND.len() * FOUND[0].len() * 2;

/// The processes, the next in turn, and what was seen of them.
struct Replicas {
    apps: Vec<TestApp>,
    next: AtomicUsize,
    turns: Semaphore,
    /// Requests of sessions that were answered.
    answered: AtomicUsize,
    slowest: Mutex<Duration>,
    /// What a state looked like wherever it was asked for.
    fingerprints: Mutex<HashMap<String, Value>>,
}

/// An answer with its time and place.
struct Told {
    answer: Answer,
    replica: usize,
    asked: Instant,
    answered: Instant,
}

impl Replicas {
    /// Asks the next process when it is a session's turn.
    async fn ask(&self, user: &str, ask: impl AsyncFnOnce(User) -> Answer) -> Told {
        let _turn = self.turns.acquire().await.unwrap();
        self.ask_now(user, ask).await
    }

    async fn ask_now(&self, user: &str, ask: impl AsyncFnOnce(User) -> Answer) -> Told {
        let replica = self.next.fetch_add(1, Ordering::Relaxed) % REPLICAS;
        let asked = Instant::now();
        let answer = ask(self.apps[replica].user_called(user)).await;
        let answered = Instant::now();
        let mut slowest = self.slowest.lock().unwrap();
        *slowest = slowest.max(answered - asked);
        Told { answer, replica, asked, answered }
    }

    /// What an assembly shows, noted.
    async fn look(&self, customer: &Customer, session: &str) -> Vec<String> {
        let told = self
            .ask(&customer.id, async |user| user.assemble(json!({"session": session, "format": "mcp"})).await)
            .await;
        let shown = told.answer.ok();
        let tools = shown["tools"].as_array().unwrap();
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        let mark = tools.iter().find_map(|tool| name(tool).strip_prefix("mark_")?.parse().ok());
        let release = tools.iter().find(|tool| name(tool) == "release").unwrap();
        let release: u64 = release["description"].as_str().unwrap().parse().unwrap();
        for (log, number) in [(&customer.configs, mark.unwrap()), (&customer.catalogs, release)] {
            let Told { replica, asked, answered, .. } = told;
            log.seen(Observation { number, replica, asked, answered });
        }
        let state = format!("{} {} {release} {}", customer.id, mark.unwrap(), shown["warm"]);
        let known = &mut *self.fingerprints.lock().unwrap();
        let fingerprint = known.entry(state.clone()).or_insert_with(|| shown["fingerprint"].clone());
        assert_eq!(*fingerprint, shown["fingerprint"], "one state, one answer: {state}");
        shown["warm"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }
}

/// A user, and the numbers that its configs and catalogs have.
struct Customer {
    id: String,
    configs: Log,
    catalogs: Log,
}

fn release(number: u64) -> Value {
    json!({"group": "releases", "name": "release", "description": number.to_string()})
}

fn config(number: u64) -> Value {
    json!({"core": ["release", format!("mark_{number}")], "max_warm_tools": 64})
}

impl Customer {
    async fn new(replicas: &Replicas) -> Self {
        let id = unique("customer");
        let user = replicas.apps[0].user_called(&id);
        let mark =
            |at: u64| json!({"group": "marks", "name": format!("mark_{at}"), "description": "A mark."});
        let tools: Vec<Value> =
            paints().into_iter().chain((0..=WRITES).map(mark)).chain([release(0)]).collect();
        user.put_catalog(&tools).await.ok();
        user.put_config(&config(0)).await.ok();
        Self { id, configs: Log::default(), catalogs: Log::default() }
    }

    /// Writes one number after the other, spread over the work of the sessions.
    async fn write(&self, replicas: &Replicas, log: &Log, change: impl Fn(u64) -> (&'static str, Value)) {
        for number in 1..=WRITES {
            let due = REQUESTS * usize::try_from(number - 1).unwrap() / usize::try_from(WRITES).unwrap();
            while replicas.answered.load(Ordering::Relaxed) < due {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let (what, body) = change(number);
            log.sent(number);
            let told = replicas
                .ask_now(&self.id, async |user| user.client().patch(&user.path(&[what]), &body).await)
                .await;
            told.answer.ok();
            log.stored(Observation {
                number,
                replica: told.replica,
                asked: told.asked,
                answered: told.answered,
            });
        }
    }
}

/// One hand of a session: finds tools, and looks whether everything is there that any hand was promised.
async fn work(
    replicas: Arc<Replicas>,
    customer: Arc<Customer>,
    session: String,
    hand: usize,
    promised: Arc<Mutex<Vec<&'static str>>>,
) {
    for (at, tool) in FOUND[hand].into_iter().enumerate() {
        let body = match at % 2 {
            0 => json!({"session": session, "query": tool, "limit": 1}),
            _ => json!({"session": session, "name": tool}),
        };
        let route = if at % 2 == 0 { "/v1/search" } else { "/v1/describe" };
        let told = replicas.ask(&customer.id, async |user| user.post(route, body).await).await;
        assert_eq!(told.answer.ok()["warmed"], json!([tool]), "{session}");
        promised.lock().unwrap().push(tool);
        let before = promised.lock().unwrap().clone();
        let warm = replicas.look(&customer, &session).await;
        for name in &before {
            assert!(warm.iter().any(|warm| warm == name), "{session}: {name} was promised: {warm:?}");
        }
        let mine: Vec<&String> = warm.iter().filter(|name| FOUND[hand].contains(&name.as_str())).collect();
        assert_eq!(
            mine,
            FOUND[hand][..=at].iter().collect::<Vec<_>>(),
            "{session}: in the order of their finding"
        );
        replicas.answered.fetch_add(2, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_move_between_processes_while_everything_changes() {
    let Some(url) = database().await else { return };
    let apps = vec![on(&url).start().await, on(&url).start().await, on(&url).start().await];
    let replicas = Arc::new(Replicas {
        apps,
        next: AtomicUsize::new(0),
        turns: Semaphore::new(AT_ONCE),
        answered: AtomicUsize::new(0),
        slowest: Mutex::default(),
        fingerprints: Mutex::default(),
    });
    let mut customers = Vec::new();
    for _ in 0..USERS {
        customers.push(Arc::new(Customer::new(&replicas).await));
    }
    let sessions: Vec<String> = (0..SESSIONS_OF_USER).map(|at| format!("s{at}")).collect();
    let mut all = JoinSet::new();
    for customer in &customers {
        for session in &sessions {
            let promised = Arc::default();
            for hand in 0..FOUND.len() {
                let (replicas, customer) = (Arc::clone(&replicas), Arc::clone(customer));
                all.spawn(work(replicas, customer, session.clone(), hand, Arc::clone(&promised)));
            }
        }
        let (now, writer) = (Arc::clone(&replicas), Arc::clone(customer));
        all.spawn(
            async move { writer.write(&now, &writer.configs, |number| ("config", config(number))).await },
        );
        let (now, writer) = (Arc::clone(&replicas), Arc::clone(customer));
        let upsert = |number| ("catalog", json!({"upsert": [release(number)]}));
        all.spawn(async move { writer.write(&now, &writer.catalogs, upsert).await });
    }
    all.join_all().await;

    let slowest = *replicas.slowest.lock().unwrap();
    for customer in &customers {
        customer.configs.check("config", slowest);
        customer.catalogs.check("catalog", slowest);
    }
    // All is quiet, so that after a while all processes show the same.
    tokio::time::sleep(model::SEEN_BY_ALL).await;
    for customer in &customers {
        for session in &sessions {
            let shown = replicas.apps.iter().map(async |app| {
                let user = app.user_called(&customer.id);
                user.assemble(json!({"session": session, "format": "mcp"})).await.ok()
            });
            let shown = futures_util::future::join_all(shown).await;
            for other in &shown[1..] {
                for part in ["fingerprint", "warm", "tools", "listing"] {
                    assert_eq!(other[part], shown[0][part], "{session}");
                }
            }
            let mut warm: Vec<&str> =
                shown[0]["warm"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            warm.sort_unstable();
            assert_eq!(warm, FOUND.concat(), "{session}: nothing is lost");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_taken_and_revoked_by_all_within_a_second() {
    let Some(url) = database().await else { return };
    let apps = [on(&url).start().await, on(&url).start().await, on(&url).start().await];
    for turn in 0..REPLICAS {
        let (makes, revokes) = (&apps[turn], (turn + 1) % REPLICAS);
        let body = json!({"name": "moving", "role": "agent", "users": ["*"]});
        let made = makes.admin().post("/v1/keys", &body).await.json();
        let (key, path) =
            (made["key"].as_str().unwrap(), format!("/v1/keys/{}", made["id"].as_str().unwrap()));
        let holders: Vec<User> = apps.iter().map(|app| app.user_with_key("holder", key)).collect();
        let mut slowest = Duration::ZERO;
        let mut is_taken = async |at: usize| {
            let asked = Instant::now();
            let answer = holders[at].client().get("/v1/limits").await;
            slowest = slowest.max(asked.elapsed());
            assert!([200, 401].contains(&answer.status), "{}", answer.status);
            (answer.status == 200, asked, slowest)
        };
        assert!(is_taken(turn).await.0, "the process that made it takes it at once");
        for wanted in [true, false] {
            if !wanted {
                apps[revokes].admin().delete(&path).await.expect_status(204);
                assert!(!is_taken(revokes).await.0, "the process that revoked it takes it no more");
            }
            let since = Instant::now();
            for at in 0..REPLICAS {
                loop {
                    let (taken, asked, slowest) = is_taken(at).await;
                    if taken == wanted {
                        break;
                    }
                    assert!(asked <= since + model::SEEN_BY_ALL + slowest, "key taken by {at}: {taken}");
                }
            }
        }
    }
}
