//! Clients that go on writing whatever happens, round robin over the processes, and remember what they were promised.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::until;
use crate::app::{ADMIN_KEY, User, unique};

/// Clients that find tools, each in sessions of its own. One more writes the config, and one the catalog.
const FINDERS: usize = 4;

/// What an answer may take: a few times as long as a request waits for a server that is away.
const HANGS: Duration = Duration::from_secs(30);

/// Between two requests of a client.
const PACE: Duration = Duration::from_millis(5);

/// Tools that are found in a session before the next one begins.
const FOUND: [&str; 5] = ["amber", "blue", "crimson", "denim", "emerald"];

static HTTP: LazyLock<reqwest::Client> =
    LazyLock::new(|| reqwest::Client::builder().no_proxy().timeout(HANGS).build().unwrap());

/// The status of an address; 0: none came.
pub(crate) async fn status(url: &str) -> u16 {
    HTTP.get(url).send().await.map_or(0, |answer| answer.status().as_u16())
}

#[derive(Debug)]
struct Shared {
    urls: Vec<String>,
    user: String,
    next: AtomicUsize,
    ends: AtomicBool,
    may_be_cut: AtomicBool,
    answered: AtomicUsize,
    refused: AtomicUsize,
    /// Of the config and the catalog: the latest that was sent, and that was answered.
    sent: [AtomicU64; 2],
    stored: [AtomicU64; 2],
}

/// Clients at work.
#[derive(Debug)]
pub(crate) struct Traffic {
    shared: Arc<Shared>,
    clients: JoinSet<Promised>,
}

/// What the answers promised.
#[derive(Debug, Default)]
pub(crate) struct Promised {
    /// Tools of sessions, in the order in which they were found.
    warm: BTreeMap<String, Vec<&'static str>>,
    /// Of the config and the catalog: at least, and at most.
    written: [(u64, u64); 2],
    /// Answers that may not be.
    pub(crate) violations: Vec<String>,
    /// Requests that were refused, as may be while something is away.
    pub(crate) refused: usize,
}

impl Traffic {
    pub(crate) fn start(urls: Vec<String>, user: &str) -> Self {
        // What earlier traffic wrote is less.
        static EPOCH: AtomicU64 = AtomicU64::new(1);
        let begin = || AtomicU64::new(EPOCH.fetch_add(1, Ordering::Relaxed) * 100_000);
        let (first, second) = (begin(), begin());
        let shared = Arc::new(Shared {
            urls,
            user: user.to_owned(),
            next: AtomicUsize::new(0),
            ends: AtomicBool::new(false),
            may_be_cut: AtomicBool::new(false),
            answered: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            sent: [first, second],
            stored: [AtomicU64::new(0), AtomicU64::new(0)],
        });
        let mut clients: JoinSet<Promised> = (0..FINDERS).map(|_| find(Arc::clone(&shared))).collect();
        clients.spawn(write(Arc::clone(&shared), 0));
        clients.spawn(write(Arc::clone(&shared), 1));
        Self { shared, clients }
    }

    /// A process may go, and its answers with it.
    pub(crate) fn that_may_be_cut(self) -> Self {
        self.shared.may_be_cut.store(true, Ordering::Relaxed);
        self
    }

    /// Until so many more requests were answered.
    pub(crate) async fn goes_on(&self, more: usize) {
        let wanted = self.shared.answered.load(Ordering::Relaxed) + more;
        until("answers", async || self.shared.answered.load(Ordering::Relaxed) >= wanted).await;
    }

    /// Until one more request was refused.
    pub(crate) async fn is_refused(&self) {
        let before = self.shared.refused.load(Ordering::Relaxed);
        until("a refusal", async || self.shared.refused.load(Ordering::Relaxed) > before).await;
    }

    pub(crate) async fn end(self) -> Promised {
        self.shared.ends.store(true, Ordering::Relaxed);
        let mut all = Promised::default();
        for client in self.clients.join_all().await {
            all.warm.extend(client.warm);
            all.violations.extend(client.violations);
        }
        let shared = &self.shared;
        all.refused = shared.refused.load(Ordering::Relaxed);
        all.written = [0, 1].map(|what| {
            (shared.stored[what].load(Ordering::Relaxed), shared.sent[what].load(Ordering::Relaxed))
        });
        all
    }
}

impl Shared {
    /// The body of a 200, nothing for a refusal; what may not be is put down.
    async fn ask(&self, promised: &mut Promised, method: Method, path: &str, body: &Value) -> Option<Value> {
        let url = &self.urls[self.next.fetch_add(1, Ordering::Relaxed) % self.urls.len()];
        let request = HTTP.request(method, format!("{url}{path}")).bearer_auth(ADMIN_KEY).json(body);
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) if self.may_be_cut.load(Ordering::Relaxed) && !error.is_timeout() => return None,
            Err(error) => {
                promised.violations.push(format!("{path}: {error:?}"));
                return None;
            }
        };
        let (status, retry) = (answer.status().as_u16(), answer.headers().contains_key("retry-after"));
        let text = answer.text().await.unwrap_or_default();
        tokio::time::sleep(PACE).await;
        match status {
            200 => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                return serde_json::from_str(&text).ok();
            }
            503 if retry => {}
            507 => {}
            _ => promised.violations.push(format!("{path}: {status} {text}")),
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        None
    }
}

async fn find(shared: Arc<Shared>) -> Promised {
    let mut promised = Promised::default();
    while !shared.ends.load(Ordering::Relaxed) {
        let session = unique("traffic");
        for tool in FOUND {
            let body = json!({"user": shared.user, "session": session, "query": tool, "limit": 1});
            let Some(answer) = shared.ask(&mut promised, Method::POST, "/v1/search", &body).await else {
                continue;
            };
            // Without room a search answers all the same, and says what it did not keep.
            if answer["warmed"] == json!([tool]) {
                promised.warm.entry(session.clone()).or_default().push(tool);
            }
        }
    }
    promised
}

/// Writes numbers that grow, into the config or the catalog.
async fn write(shared: Arc<Shared>, what: usize) -> Promised {
    let mut promised = Promised::default();
    while !shared.ends.load(Ordering::Relaxed) {
        let number = shared.sent[what].fetch_add(1, Ordering::Relaxed) + 1;
        let user = format!("/v1/users/{}", shared.user);
        let (path, body) = match what {
            0 => ("config", json!({ "context_window": number })),
            _ => {
                let tool = json!({"group": "numbers", "name": "number", "description": number.to_string()});
                ("catalog", json!({ "upsert": [tool] }))
            }
        };
        if shared.ask(&mut promised, Method::PATCH, &format!("{user}/{path}"), &body).await.is_some() {
            shared.stored[what].fetch_max(number, Ordering::Relaxed);
        }
    }
    promised
}

impl Promised {
    /// What was found is warm, and nothing that nobody found.
    pub(crate) async fn sessions_are_kept(&self, user: &User) {
        assert!(!self.warm.is_empty());
        for (session, found) in &self.warm {
            let document = user.client().get(&user.path(&["sessions", session])).await.ok();
            let warm: Vec<&str> = document["warm"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|tool| tool["name"].as_str())
                .collect();
            let kept: Vec<&str> = warm.iter().copied().filter(|name| found.contains(name)).collect();
            assert_eq!(kept, *found, "{session}: {document}");
            assert!(warm.iter().all(|name| FOUND.contains(name)), "{session}: {document}");
        }
    }

    /// Everything that was promised is there, and nothing that nobody sent.
    pub(crate) async fn is_kept(&self, user: &User) {
        self.sessions_are_kept(user).await;
        let config = user.client().get(&user.path(&["config"])).await.ok();
        let catalog = user.client().get(&user.path(&["catalog"])).await.ok();
        let tools = catalog["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == "number").unwrap();
        let numbers = [
            config["context_window"].as_u64().unwrap(),
            tool["description"].as_str().unwrap().parse().unwrap(),
        ];
        for ((least, most), number) in self.written.into_iter().zip(numbers) {
            assert!(least > 0 && (least..=most).contains(&number), "{number} is not in {least}..={most}");
        }
    }
}
