//! A running service for a test: the real binary on a port and a database of its own, and clients for it.
//!
//! Owns starting, stopping and killing, and how a request is sent; knows no route's meaning but its path. Every
//! [`TestApp`] is alone on its database, and every [`User`] has an id that no other has, so tests run side by side.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The admin key of every service that does not run with `--no-auth`.
pub(crate) const ADMIN_KEY: &str = "test-admin-key-0123456789abcdef0123456789abcdef";

/// An end that takes longer than this is a failure of the test.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// How to start a service.
#[derive(Debug)]
pub(crate) struct Builder {
    settings: Vec<(String, String)>,
    database: Option<String>,
    no_auth: bool,
    without_key: bool,
}

impl Builder {
    /// A setting by its variable: `.set("TOOLRACK_RERANK_ALLOW_PRIVATE", "true")`.
    pub(crate) fn set(mut self, variable: &str, value: impl ToString) -> Self {
        self.settings.push((variable.to_owned(), value.to_string()));
        self
    }

    /// Another database than a file of its own.
    pub(crate) fn database(mut self, url: &str) -> Self {
        self.database = Some(url.to_owned());
        self
    }

    /// Every request is the administrator's.
    pub(crate) fn no_auth(mut self) -> Self {
        self.no_auth = true;
        self
    }

    /// No admin key by variable.
    pub(crate) fn without_key(mut self) -> Self {
        self.without_key = true;
        self
    }

    /// Starts on a new database.
    pub(crate) async fn start(self) -> TestApp {
        self.start_in(tempfile::tempdir().expect("a temporary folder")).await
    }

    /// Starts on what stands in a folder.
    pub(crate) async fn start_in(self, folder: TempDir) -> TestApp {
        let process = Process::start(&self, folder.path());
        let admin = Client::new(&process.url, Some(ADMIN_KEY), folder.path());
        let app = TestApp { builder: self, folder, process, admin };
        app.admin.get("/readyz").await.ok();
        app
    }
}

/// The running program.
#[derive(Debug)]
struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start(builder: &Builder, folder: &Path) -> Self {
        let log = File::options().create(true).append(true).open(log_file(folder)).expect("a log file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--database-url"]);
        match &builder.database {
            Some(url) => command.arg(url),
            None => command.arg(format!("sqlite://{}", folder.join("toolrack.db").display())),
        };
        // Nothing of the developer's own settings or proxies may reach the service.
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        if builder.no_auth {
            command.arg("--no-auth");
        } else if !builder.without_key {
            command.env("TOOLRACK_AUTH_ADMIN_KEY", ADMIN_KEY);
        }
        command.envs(builder.settings.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("standard output is piped"));
        out.read_line(&mut line).expect("standard output can be read");
        let Some(url) = line.trim_end().strip_prefix("listening on ") else {
            let log = std::fs::read_to_string(log_file(folder)).unwrap_or_default();
            panic!("the first line is {line:?}; the log: {log}");
        };
        Self { child, url: url.to_owned() }
    }

    /// What `kill -9` does: no handler runs, nothing is flushed.
    fn kill(&mut self) -> ExitStatus {
        // An error means that it has ended already, which `wait` tells.
        drop(self.child.kill());
        self.child.wait().expect("the program ends")
    }

    /// SIGTERM; the standard library knows no way to send it.
    fn signal_stop(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status();
        assert!(sent.expect("a shell").success(), "SIGTERM could not be sent");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("log.txt")
}

/// The program on the database of a folder, ready to start.
pub(crate) fn command_on(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    command.args(arguments).arg("--database-url");
    command.arg(format!("sqlite://{}", folder.join("toolrack.db").display()));
    command.env_clear().stdin(Stdio::null());
    command
}

/// A service with a database of its own; it ends with this value.
#[derive(Debug)]
pub(crate) struct TestApp {
    builder: Builder,
    folder: TempDir,
    process: Process,
    admin: Client,
}

impl TestApp {
    pub(crate) fn builder() -> Builder {
        Builder { settings: Vec::new(), database: None, no_auth: false, without_key: false }
    }

    /// Default settings, with the admin key.
    pub(crate) async fn start() -> Self {
        Self::builder().start().await
    }

    /// `http://127.0.0.1:PORT`
    pub(crate) fn url(&self) -> &str {
        &self.process.url
    }

    /// The folder of the database, the key file and the log.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All that the service wrote to standard error, over all its starts.
    pub(crate) fn logs(&self) -> String {
        std::fs::read_to_string(log_file(self.folder())).expect("the log can be read")
    }

    /// The client of the administrator.
    pub(crate) fn admin(&self) -> &Client {
        &self.admin
    }

    /// A client with another key.
    pub(crate) fn with_key(&self, key: &str) -> Client {
        Client::new(self.url(), Some(key), self.folder())
    }

    /// A client without a key.
    pub(crate) fn anonymous(&self) -> Client {
        Client::new(self.url(), None, self.folder())
    }

    /// A user that nobody wrote anything for yet, served with the admin's key.
    pub(crate) fn user(&self) -> User {
        self.user_called(&unique("user"))
    }

    pub(crate) fn user_called(&self, id: &str) -> User {
        User { client: self.admin.clone(), id: id.to_owned() }
    }

    /// A user as the holder of a key meets it.
    pub(crate) fn user_with_key(&self, id: &str, key: &str) -> User {
        User { client: self.with_key(key), id: id.to_owned() }
    }

    /// Ends the process as `kill -9` does. Requests fail from here on, until [`TestApp::start_again`].
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends SIGTERM and does not wait.
    pub(crate) fn signal_stop(&self) {
        self.process.signal_stop();
    }

    /// Waits for the end after [`TestApp::signal_stop`].
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let wait = async {
            loop {
                if let Some(status) = self.process.child.try_wait().expect("the program can be waited for") {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(STOP_TIMEOUT, wait).await {
            Ok(status) => status,
            Err(_) => panic!("still running {STOP_TIMEOUT:?} after SIGTERM; the log: {}", self.logs()),
        }
    }

    /// A setting by its variable, from the next start on.
    pub(crate) fn set(&mut self, variable: &str, value: impl ToString) {
        self.builder.settings.push((variable.to_owned(), value.to_string()));
    }

    /// The program with other arguments on the same database, to its end.
    pub(crate) fn command(&self, arguments: &[&str]) -> Output {
        let mut command = command_on(self.folder(), arguments);
        command.envs(self.builder.settings.iter().map(|(name, value)| (name, value)));
        command.output().expect("the program starts")
    }

    /// A clean stop, without a new start.
    pub(crate) async fn stop(&mut self) {
        self.signal_stop();
        let status = self.ended().await;
        assert!(status.success(), "{status}; the log: {}", self.logs());
    }

    /// Starts the program anew on the same database; clients and users of before are of no use, take new ones.
    pub(crate) async fn start_again(&mut self) {
        self.process = Process::start(&self.builder, self.folder.path());
        self.admin = Client::new(&self.process.url, Some(ADMIN_KEY), self.folder.path());
        self.admin.get("/readyz").await.ok();
    }

    /// A clean stop and a new start on the same database.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }
}

/// Sends requests as the holder of one key.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    key: Option<String>,
    /// Where the cause of a failure inside the service is found.
    log: PathBuf,
}

impl Client {
    fn new(url: &str, key: Option<&str>, folder: &Path) -> Self {
        // Installed already by another test: that is the same provider.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(120));
        let http = http.build().expect("an HTTP client");
        Self { http, url: url.to_owned(), key: key.map(str::to_owned), log: log_file(folder) }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], Bytes::new()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::PUT, path, body).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::POST, path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.json(Method::PATCH, path, body).await
    }

    async fn json(&self, method: Method, path: &str, body: &Value) -> Answer {
        self.send(method, path, &[("content-type", "application/json")], body.to_string().into()).await
    }

    /// Any request.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        let what = format!("{method} {path}");
        let answer = self.try_send(method, path, headers, body).await;
        answer.unwrap_or_else(|error| panic!("{what}: {error:?}"))
    }

    /// Any request to a service that may be gone.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> reqwest::Result<Answer> {
        let request = format!("{method} {path}");
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a header's name");
            all.append(name, HeaderValue::from_str(value).expect("a header's value"));
        }
        let mut builder = self.http.request(method, format!("{}{path}", self.url)).headers(all);
        if let Some(key) = &self.key {
            builder = builder.bearer_auth(key);
        }
        if !body.is_empty() {
            builder = builder.body(body);
        }
        let answer = builder.send().await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        if status >= 500 {
            eprintln!(
                "{request}: {status}; the log: {}",
                std::fs::read_to_string(&self.log).unwrap_or_default()
            );
        }
        Ok(Answer { request, status, headers, body: answer.bytes().await? })
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    request: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("every body is UTF-8")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", self.request, self.text()))
    }

    /// The document of a 200.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        self.expect_status(200);
        // Health answers are plain text.
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The problem document of a refusal with this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        self.expect_status(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.request);
        let document = self.json();
        assert_eq!(document["code"], code, "{}: {document}", self.request);
        assert_eq!(document["status"], json!(status), "{}: {document}", self.request);
        document
    }

    #[track_caller]
    pub(crate) fn expect_status(&self, status: u16) {
        let start: String = self.text().chars().take(2_000).collect();
        assert_eq!(self.status, status, "{}: {start}", self.request);
    }
}

/// One user of the service, in every request that needs one.
#[derive(Debug, Clone)]
pub(crate) struct User {
    client: Client,
    pub(crate) id: String,
}

impl User {
    /// The path of something below this user: `user.path(&["sessions", "s1"])`.
    pub(crate) fn path(&self, parts: &[&str]) -> String {
        let all: Vec<&str> = ["v1", "users", &*self.id].iter().chain(parts).copied().collect();
        path(&all)
    }

    /// Stores the config as it is given.
    pub(crate) async fn put_config(&self, config: &Value) -> Answer {
        self.client.put(&self.path(&["config"]), config).await
    }

    /// Replaces the catalog.
    pub(crate) async fn put_catalog(&self, tools: &[Value]) -> Answer {
        self.client.put(&self.path(&["catalog"]), &json!({ "tools": tools })).await
    }

    pub(crate) async fn assemble(&self, body: Value) -> Answer {
        self.post("/v1/assemble", body).await
    }

    pub(crate) async fn search(&self, body: Value) -> Answer {
        self.post("/v1/search", body).await
    }

    pub(crate) async fn describe(&self, body: Value) -> Answer {
        self.post("/v1/describe", body).await
    }

    pub(crate) async fn call(&self, body: Value) -> Answer {
        self.post("/v1/call", body).await
    }

    pub(crate) async fn bridge(&self, body: Value) -> Answer {
        self.post("/v1/bridge", body).await
    }

    /// Posts a body with this user in it.
    pub(crate) async fn post(&self, path: &str, mut body: Value) -> Answer {
        body["user"] = json!(self.id);
        self.client.post(path, &body).await
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

/// A path of percent-encoded segments.
pub(crate) fn path(parts: &[&str]) -> String {
    let mut url = url::Url::parse("http://host").expect("a URL");
    url.path_segments_mut().expect("a URL with a path").extend(parts);
    url.path().to_owned()
}

/// An id that nothing else in this run has.
pub(crate) fn unique(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{kind}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
