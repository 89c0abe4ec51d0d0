//! MCP servers as other people write them: with the libraries of `tests/clients`, in processes of their own.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clients::installed;

/// The server of `tests/mcp/server.py`.
pub(super) fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py").display().to_string()
}

/// The interpreter that has the library; none where the libraries are not installed.
pub(super) fn python() -> Option<String> {
    installed().map(|folder| folder.join("venv/bin/python").display().to_string())
}

/// The reference server of npm.
pub(super) fn everything() -> Option<String> {
    let at = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    installed().map(|folder| folder.join(at).display().to_string())
}

/// A running server; it ends with this value.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
}

impl Server {
    /// A server of `tests/mcp/server.py` over HTTP; none where the libraries are not installed.
    pub(super) fn start(kind: &str, env: &[(&str, &str)]) -> Option<Self> {
        let mut command = Command::new(python()?);
        command.args([&*script(), kind, "http"]);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(env.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "{url:?}");
        Some(Self { child, url: url.trim_end().to_owned() })
    }

    /// A server that hands out these tools.
    pub(super) fn pages(tools: &Value, env: &[(&str, &str)]) -> Option<Self> {
        let tools = tools.to_string();
        let env: Vec<(&str, &str)> = env.iter().copied().chain([("TOOLS", &*tools)]).collect();
        Self::start("pages", &env)
    }

    /// The reference server over HTTP.
    pub(super) async fn everything() -> Option<Self> {
        let script = everything()?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("node");
        command.args([&*script, "streamableHttp"]).env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self { child: command.spawn().unwrap(), url: format!("http://127.0.0.1:{port}/mcp") };
        let up = async {
            while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), up).await.expect("the server listens");
        Some(server)
    }

    async fn control(&self, path: &str, body: Option<&Value>) -> Value {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = self.url.replace("/mcp", path);
        let request = match body {
            Some(body) => http.post(url).json(body),
            None => http.get(url),
        };
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Sets the tools; connected clients are told.
    pub(super) async fn set_tools(&self, tools: &Value) {
        self.control("/tools", Some(tools)).await;
    }

    /// Lets the second page go.
    pub(super) async fn go(&self) {
        self.control("/go", Some(&json!({}))).await;
    }

    /// The cursors that it was asked for since the last time, and how many clients there were.
    pub(super) async fn seen(&self) -> Value {
        self.control("/seen", None).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Where programs are found.
pub(super) fn path() -> PathBuf {
    std::env::var_os("PATH").map(PathBuf::from).unwrap_or_default()
}
