//! Which addresses are called, and what is made of servers that are none.

use std::net::IpAddr;

use reqwest::dns::{Addrs, Name, Resolving};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Every name has these addresses.
#[derive(Clone)]
struct Names(Vec<IpAddr>);

impl Resolve for Names {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Vec<_> = self.0.iter().map(|ip| std::net::SocketAddr::new(*ip, 0)).collect();
        Box::pin(async move { Ok(Box::new(addresses.into_iter()) as Addrs) })
    }
}

fn client(policy: AddressPolicy, addresses: &[&str]) -> McpClient {
    drop(rustls::crypto::ring::default_provider().install_default());
    let lookup: Arc<dyn Resolve> = Arc::new(Names(addresses.iter().map(|ip| ip.parse().unwrap()).collect()));
    McpClient::with_lookup(policy, Vec::new(), &lookup).unwrap()
}

fn private() -> AddressPolicy {
    AddressPolicy { allow_private: true, allowed_hosts: Vec::new() }
}

fn at(url: &str) -> McpAddress {
    McpAddress::Http { url: Url::parse(url).unwrap(), headers: Vec::new() }
}

const BOUNDS: McpBounds = McpBounds { tools: 100, time: Duration::from_secs(20) };

async fn fault(client: &McpClient, url: &str) -> McpFault {
    client.list(&at(url), BOUNDS, &|_| {}).await.unwrap_err().fault
}

/// A server that gives everybody this answer, and counts them.
async fn serve(answer: String) -> (String, Arc<std::sync::atomic::AtomicUsize>) {
    serve_with(move |_| answer.clone()).await
}

/// Reads a request with its whole body.
async fn request(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut read = Vec::new();
    loop {
        let mut part = [0; 4_096];
        let count = stream.read(&mut part).await?;
        read.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let length = head
            .to_lowercase()
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.lines().next().unwrap_or_default().trim().parse().unwrap_or_default());
        if count == 0 || (text.contains("\r\n\r\n") && body.len() >= length) {
            return Ok(text);
        }
    }
}

/// A server that answers requests by their text.
async fn serve_with(
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (String, Arc<std::sync::atomic::AtomicUsize>) {
    let answer = Arc::new(answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://mcp.test:{}/mcp", listener.local_addr().unwrap().port());
    let calls: Arc<std::sync::atomic::AtomicUsize> = Arc::default();
    let count = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                if let Ok(request) = request(&mut stream).await {
                    drop(stream.write_all(answer(&request).as_bytes()).await);
                    drop(stream.shutdown().await);
                }
            });
        }
    });
    (url, calls)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

#[tokio::test]
async fn a_name_is_called_at_allowed_addresses_only() {
    let (url, calls) = serve(answer("200 OK", "content-type: text/html\r\n", "<p>")).await;
    let secure = url.replace("http:", "https:");
    for (policy, addresses, url) in [
        (AddressPolicy::default(), &["127.0.0.1"][..], &secure),
        (AddressPolicy::default(), &["8.8.8.8", "127.0.0.1"], &secure),
        (private(), &["127.0.0.1", "169.254.169.254"], &url),
        (private(), &["8.8.8.8"], &url),
    ] {
        let client = client(policy, addresses);
        assert_eq!(fault(&client, url).await, McpFault::RefusedAddress, "{url} at {addresses:?}");
    }
    for url in [
        "http://127.0.0.1:1/mcp",
        "https://[::1]/",
        "https://169.254.169.254/",
        "http://mcp.test/",
        "ftp://h/",
    ] {
        let client = client(AddressPolicy::default(), &["127.0.0.1"]);
        assert_eq!(client.check(&at(url)).unwrap_err().fault, McpFault::RefusedAddress, "{url}");
    }
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(fault(&client(private(), &["127.0.0.1"]), &url).await, McpFault::NotMcp);
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (target, calls) = serve(answer("200 OK", "content-type: application/json\r\n", "{}")).await;
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let (url, _) = serve(answer(status, &format!("location: {target}\r\n"), "")).await;
        let client = client(private(), &["127.0.0.1"]);
        let failure = client.list(&at(&url), BOUNDS, &|_| {}).await.unwrap_err();
        assert_eq!(failure.fault, McpFault::NotMcp, "{failure:?}");
        assert!(failure.detail.contains("redirects"), "{failure:?}");
    }
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_is_no_server_is_told_without_its_words() {
    let json = "content-type: application/json\r\n";
    let error = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no such tenant"}}"#;
    for (answer, wanted) in [
        (answer("401 Unauthorized", "", "SECRET"), McpFault::Unauthorized),
        (answer("401 Unauthorized", "www-authenticate: Bearer\r\n", "SECRET"), McpFault::Unauthorized),
        (answer("403 Forbidden", json, "{\"x\":\"SECRET\"}"), McpFault::Unauthorized),
        (answer("404 Not Found", "content-type: text/html\r\n", "SECRET"), McpFault::NotMcp),
        (answer("503 Busy", "", "SECRET"), McpFault::Unreachable),
        (answer("200 OK", "", "SECRET"), McpFault::NotMcp),
        (answer("200 OK", json, "SECRET"), McpFault::NotMcp),
        (answer("200 OK", json, "{\"secret\":\"SECRET\"}"), McpFault::NotMcp),
        (answer("202 Accepted", "", ""), McpFault::Unreachable),
        (answer("200 OK", json, error), McpFault::Protocol),
    ] {
        let (url, _) = serve(answer.clone()).await;
        let client = client(private(), &["127.0.0.1"]);
        let failure = client.list(&at(&url), BOUNDS, &|_| {}).await.unwrap_err();
        assert_eq!(failure.fault, wanted, "{failure:?} for {answer}");
        assert!(!failure.detail.contains("SECRET"), "{failure:?}");
    }
}

#[tokio::test]
async fn answers_are_read_up_to_their_bound() {
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"{}\"}}", "x".repeat(MAX_ANSWER_BYTES));
    let event = format!("data: {long}\n\n");
    for (kind, body) in [("application/json", &long), ("text/event-stream", &event)] {
        let (url, _) = serve(answer("200 OK", &format!("content-type: {kind}\r\n"), body)).await;
        assert_eq!(fault(&client(private(), &["127.0.0.1"]), &url).await, McpFault::TooLarge, "{kind}");
    }
}

/// A server whose handshake is right, and whose answers to `tools/list` are these in turn, the last one for ever.
async fn listing(pages: &[&str]) -> String {
    let pages: Vec<String> = pages.iter().map(ToString::to_string).collect();
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let json = "content-type: application/json\r\n";
    let respond = move |request: &str| {
        let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let message: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => {
                serde_json::json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"}})
            }
            Some("tools/list") => {
                let at = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                serde_json::from_str(&pages[at.min(pages.len() - 1)]).unwrap()
            }
            _ => return answer("202 Accepted", "", ""),
        };
        let response = serde_json::json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        answer("200 OK", json, &response.to_string())
    };
    serve_with(respond).await.0
}

#[tokio::test]
async fn one_odd_tool_does_not_cost_the_others() {
    let odd = r#"{"tools":[{"name":"no_schema"},7,{"name":"b","inputSchema":{"type":"object","x":1},"title":"B",
        "group":"evil","always_load":true,"aliases":["a"]}],"nextCursor":"2"}"#;
    let good = r#"{"tools":[{"name":"c","description":"d","inputSchema":{"zz":1,"aa":2},"annotations":{"readOnlyHint":true}}]}"#;
    let url = listing(&[odd, good]).await;
    let read = std::sync::Mutex::new(Vec::new());
    let on_read = |count| read.lock().unwrap().push(count);
    let listing = client(private(), &["127.0.0.1"]).list(&at(&url), BOUNDS, &on_read).await.unwrap();
    let tools: Vec<(&str, &str)> =
        listing.tools.iter().map(|tool| (tool.name.as_str(), tool.json.get())).collect();
    assert_eq!(
        tools,
        [
            ("no_schema", r#"{"name":"no_schema"}"#),
            ("", "7"),
            ("b", r#"{"name":"b","inputSchema":{"type":"object","x":1},"title":"B"}"#),
            (
                "c",
                r#"{"name":"c","description":"d","inputSchema":{"zz":1,"aa":2},"annotations":{"readOnlyHint":true}}"#
            ),
        ]
    );
    assert_eq!(*read.lock().unwrap(), [0, 3, 4]);
    assert_eq!((listing.server_name.as_deref(), listing.instructions), (Some("fake"), None));
}

#[tokio::test]
async fn a_list_without_end_is_given_up() {
    let many = (0..101).map(|at| format!(r#"{{"name":"t{at}","inputSchema":{{}}}}"#)).collect::<Vec<_>>();
    let many = format!(r#"{{"tools":[{}]}}"#, many.join(","));
    for (page, wanted) in [
        (r#"{"tools":[],"nextCursor":"again"}"#, McpFault::Protocol),
        (r#"{"tools":"none"}"#, McpFault::Protocol),
        (r#"{"nothing":1}"#, McpFault::Protocol),
        (&many, McpFault::TooLarge),
    ] {
        let url = listing(&[page]).await;
        assert_eq!(fault(&client(private(), &["127.0.0.1"]), &url).await, wanted, "{page}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let bounds = McpBounds { time: Duration::from_millis(50), ..BOUNDS };
    let client = client(private(), &[]);
    let failure = client.list(&at(&url), bounds, &|_| {}).await.unwrap_err();
    assert_eq!(failure.fault, McpFault::Timeout, "{failure:?}");
    drop(listener);
    assert_eq!(fault(&client, &url).await, McpFault::Unreachable);
}

#[tokio::test]
async fn no_command_is_run_that_is_not_allowed() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let command = |command: &str| McpAddress::Command {
        command: command.to_owned(),
        args: Vec::new(),
        env: Vec::new(),
    };
    let none = McpClient::new(AddressPolicy::default(), Vec::new()).unwrap();
    let one =
        McpClient::new(AddressPolicy::default(), vec!["true".to_owned(), "/missing".to_owned()]).unwrap();
    for (client, name, wanted) in [
        (&none, "true", McpFault::CommandNotAllowed),
        (&one, "/bin/true", McpFault::CommandNotAllowed),
        (&one, "true ", McpFault::CommandNotAllowed),
        (&one, "true", McpFault::CommandFailed),
        (&one, "/missing", McpFault::CommandFailed),
    ] {
        let failure = client.list(&command(name), BOUNDS, &|_| {}).await.unwrap_err();
        assert_eq!(failure.fault, wanted, "{name}: {failure:?}");
    }
}

/// A command that has started another one, which would go on for long, and whose output has no end.
#[tokio::test]
async fn a_command_ends_with_what_it_started() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = McpClient::new(AddressPolicy::default(), vec!["sh".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pid");
    let run = |script: String, time| {
        let address = McpAddress::Command {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script],
            env: vec![("GIVEN".to_owned(), "yes".to_owned().into())],
        };
        let client = &client;
        async move { client.list(&address, McpBounds { time, ..BOUNDS }, &|_| {}).await.unwrap_err() }
    };
    let script = format!("sleep 1000 & echo $! > {}; wait", pids.display());
    let failure = run(script, Duration::from_secs(1)).await;
    assert_eq!(failure.fault, McpFault::Timeout, "{failure:?}");
    let pid: u32 = std::fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
    let gone = async {
        // The kernel takes its time to let go of a killed process.
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();

    let long = format!("head -c {} /dev/zero | tr '\\0' x; sleep 1000", MAX_TOTAL_BYTES + 1);
    let failure = run(long, Duration::from_secs(60)).await;
    assert_eq!(failure.fault, McpFault::TooLarge, "{failure:?}");

    let failure = run("env >&2; exit 3".to_owned(), Duration::from_secs(20)).await;
    assert_eq!(failure.fault, McpFault::CommandFailed);
    assert!(failure.detail.contains("status 3") && failure.detail.contains("GIVEN=yes"), "{failure:?}");
    for variable in ["CARGO", "TOOLRACK", "USER="] {
        assert!(!failure.detail.contains(variable), "{failure:?}");
    }
}
