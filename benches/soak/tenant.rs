//! One tenant: what it asks at random, and what the answers that arrived have promised it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::Result;

const TOOLS: usize = 40;
const SESSIONS: usize = 3;
/// The code of a 5xx that a limit explains: neither a slot nor a place in the queue was free (`http::gate`).
const SHED: &str = "overloaded";
/// How long is waited after a request that was shed or not answered.
const PAUSE: Duration = Duration::from_millis(20);

/// What all workers have in common.
pub(crate) struct Shared {
    pub(crate) url: watch::Receiver<String>,
    /// While the program is down.
    pub(crate) killed: AtomicBool,
    pub(crate) over: AtomicBool,
    /// Answers by status, and by code where they are problems.
    pub(crate) answers: Mutex<BTreeMap<String, u64>>,
    pub(crate) checked: AtomicU64,
    pub(crate) http: reqwest::Client,
}

impl Shared {
    /// The document of an answer; `None` when it did not arrive because the program was killed. One that was shed did nothing
    /// and is answered as any other.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Option<(u16, Value)>> {
        let url = self.url.borrow().clone();
        let mut request = self.http.request(method.clone(), format!("{url}{path}"));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = async {
            let answer = request.send().await?;
            Ok((answer.status().as_u16(), answer.bytes().await?))
        };
        let (status, bytes) = match answer.await {
            Ok(answer) => answer,
            Err(error) => {
                let error: reqwest::Error = error;
                let is_down = self.killed.load(Ordering::SeqCst) || *self.url.borrow() != url;
                return if is_down { Ok(None) } else { Err(format!("{method} {path}: {error:?}").into()) };
            }
        };
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status >= 500 && document["code"] != SHED {
            return Err(format!("{method} {path}: {status} {document}").into());
        }
        let kind = match document["code"].as_str() {
            Some(code) if status >= 400 => format!("{status} {code}"),
            _ => status.to_string(),
        };
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
        if status == 503 {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(Some((status, document)))
    }

    /// As [`Self::send`], for what has to be done: again, while it is shed.
    async fn insist(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Option<(u16, Value)>> {
        loop {
            match self.send(method.clone(), path, body).await? {
                Some((503, _)) => {}
                answered => return Ok(answered),
            }
        }
    }
}

/// A value that was promised, and one whose answer did not arrive: either may be there.
#[derive(Debug, Default)]
struct Promise<T> {
    kept: T,
    pending: Option<T>,
}

impl<T: PartialEq + Clone + std::fmt::Debug> Promise<T> {
    fn settle(&mut self, found: T, what: &str) -> Result<()> {
        let pending = self.pending.take();
        if found != self.kept && Some(&found) != pending.as_ref() {
            return Err(format!(
                "{what}: {:?} was promised, perhaps {pending:?}; there is {found:?}",
                self.kept
            )
            .into());
        }
        self.kept = found;
        Ok(())
    }
}

/// The warm set of a session. `reset`: a reset that was not answered.
#[derive(Debug, Default)]
struct Warm {
    kept: Vec<String>,
    reset: bool,
    asked: bool,
}

#[derive(Debug)]
pub(crate) struct Tenant {
    user: String,
    config: Promise<u64>,
    catalog: Promise<String>,
    sessions: Vec<Warm>,
    matcher: Value,
}

impl Tenant {
    pub(crate) fn new(number: usize) -> Self {
        let sessions = (0..SESSIONS).map(|_| Warm::default()).collect();
        let user = format!("tenant-{number}");
        Self { user, config: Promise::default(), catalog: Promise::default(), sessions, matcher: Value::Null }
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/users/{}/{rest}", self.user)
    }

    /// Every third tenant has the endpoint. No warm set is ever full, so that nothing leaves one but by a reset.
    pub(crate) async fn set_up(&mut self, shared: &Shared, endpoint: &str) -> Result<()> {
        if self.user.bytes().map(usize::from).sum::<usize>() % 3 == 0 {
            self.matcher = json!({"endpoint": endpoint, "dialect": "cohere", "timeout_ms": 300});
        }
        let tools: Vec<Value> = (0..TOOLS).map(|at| self.tool(at, 0)).collect();
        for (method, path, body) in [
            (Method::PUT, self.path("catalog"), json!({ "tools": tools })),
            (Method::PUT, self.path("config"), self.config_document(1_000)),
        ] {
            loop {
                match shared.insist(method.clone(), &path, Some(&body)).await? {
                    Some((200 | 201, _)) => break,
                    Some((status, document)) => return Err(format!("{path}: {status} {document}").into()),
                    None => tokio::time::sleep(PAUSE).await,
                }
            }
        }
        self.config.kept = 1_000;
        match self.catalog_version(shared).await? {
            Some(version) => self.catalog.kept = version,
            None => self.catalog.pending = Some(String::new()),
        }
        Ok(())
    }

    fn tool(&self, at: usize, edition: u32) -> Value {
        let verbs = ["send", "list", "delete", "archive", "search"];
        let things = ["invoice", "letter", "ticket", "calendar", "repository", "photo", "contact", "report"];
        let (verb, thing) = (verbs[at % verbs.len()], things[at / verbs.len() % things.len()]);
        json!({
            "name": format!("{verb}_{thing}"), "group": thing,
            "description": format!("{verb} a {thing} of {}, edition {edition}", self.user),
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        })
    }

    fn config_document(&self, budget: u64) -> Value {
        let mut config = json!({"max_warm_tools": 64, "min_catalog_size": 0, "listing_max_tokens": budget});
        if !self.matcher.is_null() {
            config["matcher"] = self.matcher.clone();
        }
        config
    }

    async fn catalog_version(&self, shared: &Shared) -> Result<Option<String>> {
        let read = shared.insist(Method::GET, &self.path("catalog"), None).await?;
        let Some((_, document)) = read else { return Ok(None) };
        let version = document["catalog_version"].as_str().ok_or("a catalog without a version")?;
        Ok(Some(version.to_owned()))
    }

    /// One request. Whether its answer arrived.
    pub(crate) async fn ask(&mut self, shared: &Shared, random: &mut StdRng) -> Result<bool> {
        let at = random.random_range(0..TOOLS);
        let tool = self.tool(at, 0);
        let name = tool["name"].as_str().unwrap_or_default().to_owned();
        let session = random.random_range(0..SESSIONS);
        let warming = match random.random_range(0..100) {
            0..30 => Some(("/v1/search", json!({"query": format!("{} please", name.replace('_', " "))}))),
            30..45 => Some(("/v1/describe", json!({ "name": name }))),
            45..60 => Some(("/v1/call", json!({"name": name, "arguments": {"id": "7"}}))),
            60..80 => Some(("/v1/assemble", json!({"format": "anthropic"}))),
            80..85 => return self.write_config(shared, random.random_range(500..5_000)).await,
            85..88 => return self.write_catalog(shared, at, random.random()).await,
            88..90 => return self.reset(shared, session).await,
            _ => None,
        };
        let Some((path, mut body)) = warming else { return self.other(shared, random, &name).await };
        (body["user"], body["session"]) = (json!(self.user), json!(format!("s{session}")));
        self.sessions[session].asked = true;
        let Some((status, answer)) = shared.send(Method::POST, path, Some(&body)).await? else {
            return Ok(false);
        };
        if status != 200 {
            return if status < 500 {
                Err(format!("{path} {body}: {status} {answer}").into())
            } else {
                Ok(true)
            };
        }
        let kept = &mut self.sessions[session].kept;
        if let Some(evicted) = answer["evicted"].as_array().filter(|evicted| !evicted.is_empty()) {
            return Err(format!("{path}: {evicted:?} left a warm set that is not full").into());
        }
        let warmed = answer["warmed"].as_array().into_iter().flatten();
        kept.extend(warmed.filter_map(Value::as_str).map(str::to_owned));
        if path == "/v1/assemble" && answer["warm"] != json!(kept) {
            return Err(format!("{}: warm is {}, promised was {kept:?}", self.user, answer["warm"]).into());
        }
        Ok(true)
    }

    async fn write_config(&mut self, shared: &Shared, budget: u64) -> Result<bool> {
        self.config.pending = Some(budget);
        let body = self.config_document(budget);
        match shared.send(Method::PUT, &self.path("config"), Some(&body)).await? {
            Some((200, _)) => self.config.settle(budget, "config")?,
            Some(_) => self.config.pending = None,
            None => return Ok(false),
        }
        Ok(true)
    }

    async fn write_catalog(&mut self, shared: &Shared, at: usize, edition: u32) -> Result<bool> {
        let body = json!({"upsert": [self.tool(at, edition)]});
        let Some((status, answer)) = shared.send(Method::PATCH, &self.path("catalog"), Some(&body)).await?
        else {
            // Its version is not known: any is good once.
            self.catalog.pending = Some(String::new());
            return Ok(false);
        };
        if status == 200 {
            self.catalog.kept =
                answer["catalog_version"].as_str().ok_or("a catalog without a version")?.to_owned();
        }
        Ok(true)
    }

    async fn reset(&mut self, shared: &Shared, session: usize) -> Result<bool> {
        self.sessions[session].reset = true;
        let path = self.path(&format!("sessions/s{session}/reset"));
        let Some((status, _)) = shared.send(Method::POST, &path, Some(&json!({}))).await? else {
            return Ok(false);
        };
        self.sessions[session].reset = false;
        if status < 300 {
            self.sessions[session].kept.clear();
        }
        Ok(true)
    }

    /// What promises nothing, and what is refused.
    async fn other(&self, shared: &Shared, random: &mut StdRng, name: &str) -> Result<bool> {
        let user = &self.user;
        let (method, path, body) = match random.random_range(0..6) {
            0 => (Method::GET, self.path("sessions"), None),
            1 => (Method::GET, format!("/v1/config/effective?user={user}"), None),
            2 => (Method::GET, "/metrics".to_owned(), None),
            3 => (Method::POST, "/v1/search".to_owned(), Some(json!({"user": user, "query": 7}))),
            4 => {
                let tools: Vec<Value> = (0..5).map(|at| self.tool(at, random.random_range(0..50))).collect();
                let body = json!({"user": user, "tools": tools, "format": "openai_chat", "query": name});
                (Method::POST, "/v1/assemble".to_owned(), Some(body))
            }
            _ => (Method::GET, self.path(&format!("catalog/tools/{name}")), None),
        };
        Ok(shared.send(method, &path, body.as_ref()).await?.is_some())
    }

    /// Compares what is stored with what was promised.
    pub(crate) async fn check(&mut self, shared: &Shared) -> Result<()> {
        let Some((_, config)) = shared.insist(Method::GET, &self.path("config"), None).await? else {
            return Ok(());
        };
        let found = config["listing_max_tokens"].as_u64();
        self.config.settle(found.unwrap_or_default(), &format!("config of {}: {config}", self.user))?;
        let Some(version) = self.catalog_version(shared).await? else { return Ok(()) };
        if self.catalog.pending.take().is_some() {
            self.catalog.kept.clone_from(&version);
        }
        self.catalog.settle(version, &format!("catalog of {}", self.user))?;
        for session in 0..SESSIONS {
            let path = self.path(&format!("sessions/s{session}"));
            let Some((status, document)) = shared.insist(Method::GET, &path, None).await? else {
                return Ok(());
            };
            let warm = &mut self.sessions[session];
            if status == 404 && !warm.asked {
                continue;
            }
            let tools = document["warm"].as_array().into_iter().flatten();
            let found: Vec<String> =
                tools.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect();
            // A request that was not answered may have warmed more, or have emptied the set.
            let is_kept = found.starts_with(&warm.kept) || warm.reset && found.is_empty();
            if !is_kept {
                let text = format!("{path}: {:?} was promised, there is {found:?} {document}", warm.kept);
                return Err(text.into());
            }
            (warm.kept, warm.reset) = (found, false);
        }
        shared.checked.fetch_add(2 + SESSIONS as u64, Ordering::Relaxed);
        Ok(())
    }
}
