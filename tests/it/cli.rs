//! The program on the command line: what it prints, where it prints it, and how it ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::app::{ADMIN_KEY, TestApp};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolrack"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{}", out(output), err(output));
    out(output)
}

#[track_caller]
fn failed(output: &Output, status: i32) -> String {
    assert_eq!(output.status.code(), Some(status), "{}\n{}", out(output), err(output));
    assert_eq!(out(output), "", "errors go to standard error");
    err(output)
}

fn database(folder: &TempDir) -> String {
    format!("sqlite://{}", folder.path().join("toolrack.db").display())
}

#[test]
fn wrong_usage_ends_with_status_2_and_help_with_0() {
    for arguments in [
        &["nonsense"][..],
        &["copy"],
        &["copy", "--to", "postgres://x"],
        &["keys"],
        &["keys", "nonsense"],
        &["serve", "--nonsense"],
        &["import"],
        &["import", "x.json"],
        &["import", "x.json", "--user", "a", "--project", "b"],
        &["eval"],
        &["eval", "--tools", "x.json"],
        &["eval", "--suite", "x", "--tools", "x.json", "--queries", "y.json"],
        &["eval", "--suite", "x", "--limit", "9"],
    ] {
        failed(&run(arguments), 2);
    }
    let help = succeeded(&run(&["--help"]));
    for name in
        ["serve", "demo", "eval", "import", "keys", "migrate", "openapi", "check-config", "backup", "copy"]
    {
        assert!(help.contains(name), "{name}: {help}");
    }
    assert!(succeeded(&run(&["--version"])).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn serve_refuses_to_be_open_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    let url = database(&folder);
    let serve = |more: &[&str]| {
        let arguments: Vec<&str> = ["serve", "--listen", "127.0.0.1:0", "--database-url", &url]
            .iter()
            .chain(more)
            .copied()
            .collect();
        command(&arguments)
    };
    let short = serve(&[]).env("TOOLRACK_AUTH_ADMIN_KEY", "too-short-a-key").output().unwrap();
    let text = failed(&short, 1);
    assert!(text.contains("32") && !text.contains("too-short-a-key"), "{text}");
    for public in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = run(&["serve", "--listen", public, "--database-url", &url, "--no-auth"]);
        let text = failed(&refused, 1);
        assert!(text.contains("--no-auth"), "{public}: {text}");
    }
    // No variable and no file can open it, only the flag.
    let by_variable = serve(&[]).env("TOOLRACK_AUTH_NO_AUTH", "true").output().unwrap();
    failed(&by_variable, 1);
    let file = folder.path().join("settings.toml");
    std::fs::write(&file, "[auth]\nno_auth = true\n").unwrap();
    failed(&serve(&["--config", file.to_str().unwrap()]).output().unwrap(), 1);
    failed(&run(&["serve", "--listen", "nowhere", "--database-url", &url, "--no-auth"]), 1);
    failed(&run(&["serve", "--listen", "127.0.0.1:0", "--database-url", "mysql://x", "--no-auth"]), 1);
    assert!(!folder.path().join("toolrack.db").exists(), "a refused start makes no database");
}

#[tokio::test]
async fn serve_prints_its_address_alone_and_logs_one_line_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let url = database(&folder);
    let mut child = command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &url])
        .env("TOOLRACK_AUTH_ADMIN_KEY", ADMIN_KEY)
        .env("TOOLRACK_NO_SUCH_SETTING", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    let address = first
        .trim_end()
        .strip_prefix("listening on http://")
        .expect("the first line is the address")
        .to_owned();
    address.parse::<std::net::SocketAddr>().expect("an address");
    let client = reqwest_client();
    let healthy = client.get(format!("http://{address}/healthz")).send().await.unwrap();
    assert!(healthy.status().is_success());
    let stopped =
        Command::new("sh").args(["-c", "kill -TERM \"$0\"", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let (mut rest, mut log) = (String::new(), String::new());
    out.read_to_string(&mut rest).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(child.wait().unwrap().success(), "{log}");
    assert_eq!(rest, "", "results only");
    let starts: Vec<&str> = log.lines().filter(|line| line.contains("started")).collect();
    assert_eq!(starts.len(), 1, "{log}");
    for part in [env!("CARGO_PKG_VERSION"), "toolrack.db", "admin key", "matcher", "keyword"] {
        assert!(starts[0].contains(part), "{part}: {}", starts[0]);
    }
    assert!(log.contains("TOOLRACK_NO_SUCH_SETTING"), "an unknown variable is a warning: {log}");
    assert!(!log.contains(ADMIN_KEY) && !log.contains('\u{1b}'), "{log}");
}

fn reqwest_client() -> reqwest::Client {
    // Installed already by another test: that is the same provider.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn logs_can_be_json_lines_without_names_of_tools_or_queries() {
    let app = TestApp::builder()
        .set("TOOLRACK_LOG_FORMAT", "json")
        .set("TOOLRACK_LOG_LEVEL", "debug")
        .start()
        .await;
    let user = app.user();
    user.put_catalog(&[json!({"name": "canary_tool", "description": "canary text"})]).await.ok();
    user.search(json!({"query": "canary query"})).await.ok();
    user.assemble(json!({"messages": ["canary message"]})).await.ok();
    user.search(json!({"query": ["canary query", 7]})).await.problem(422, "invalid_request");
    let logs = app.logs();
    for line in logs.lines() {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(parsed["level"].is_string(), "{line}");
    }
    assert!(logs.lines().count() > 0);
    for canary in ["canary query", "canary message", "canary text", ADMIN_KEY] {
        assert!(!logs.contains(canary), "{canary}: {logs}");
    }
}

#[test]
fn check_config_shows_every_setting_with_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    std::fs::write(&file, "[limits]\nqueries = 7\nnames = 9\n").unwrap();
    let file = file.to_str().unwrap();
    let output = command(&["check-config", "--config", file, "--listen", "127.0.0.1:9999"])
        .env("TOOLRACK_LIMITS_NAMES", "11")
        .env("TOOLRACK_AUTH_ADMIN_KEY", ADMIN_KEY)
        .output()
        .unwrap();
    let text = succeeded(&output);
    let line = |key: &str| {
        text.lines()
            .find(|line| line.starts_with(&format!("{key} ")))
            .unwrap_or_else(|| panic!("{key}: {text}"))
    };
    assert!(
        line("limits.queries").contains('7') && line("limits.queries").contains("settings.toml"),
        "{text}"
    );
    assert!(
        line("limits.names").contains("11") && line("limits.names").contains("TOOLRACK_LIMITS_NAMES"),
        "{text}"
    );
    assert!(line("listen").contains("9999") && line("listen").contains("flag"), "{text}");
    assert!(line("limits.calls").contains("20") && line("limits.calls").contains("default"), "{text}");
    line("auth.admin_key");
    assert!(!text.contains(ADMIN_KEY) && !err(&output).contains(ADMIN_KEY));

    for (settings, part) in [
        ("[limits]\nquerys = 7\n", "querys"),
        ("[limits]\nqueries = \"many\"\n", "queries"),
        ("[limits\n", "settings.toml"),
        ("[rerank]\nallow_private = 1\n", "allow_private"),
        ("[log]\nformat = \"xml\"\n", "format"),
    ] {
        std::fs::write(file, settings).unwrap();
        let text = failed(&run(&["check-config", "--config", file]), 1);
        assert!(text.contains(part), "{settings}: {text}");
    }
    failed(&run(&["check-config", "--config", "/no/such/file.toml"]), 1);
    let unknown = command(&["check-config"]).env("TOOLRACK_LIMITS_QUERYS", "1").output().unwrap();
    succeeded(&unknown);
    assert!(err(&unknown).contains("TOOLRACK_LIMITS_QUERYS"), "{}", err(&unknown));
}

#[test]
fn migrate_makes_a_database_and_does_no_harm_twice() {
    let folder = tempfile::tempdir().unwrap();
    let url = database(&folder);
    for _ in 0..2 {
        succeeded(&run(&["migrate", "--database-url", &url]));
        assert!(folder.path().join("toolrack.db").exists());
    }
    let missing = folder.path().join("no/such/folder/x.db");
    failed(&run(&["migrate", "--database-url", &format!("sqlite://{}", missing.display())]), 1);
    std::fs::write(folder.path().join("toolrack.db"), "this is no database, but a text of some length")
        .unwrap();
    failed(&run(&["migrate", "--database-url", &url]), 1);
}

fn import(url: &str, file: &Path, more: &[&str]) -> Output {
    let arguments: Vec<&str> =
        ["import", file.to_str().unwrap(), "--database-url", url].iter().chain(more).copied().collect();
    run(&arguments)
}

#[tokio::test]
async fn import_takes_lists_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let url = database(&folder);
    let file = folder.path().join("tools.json");
    let tools = [
        json!({"name": "a", "description": "A."}),
        json!({"type": "function", "function": {"name": "b"}}),
        json!({"name": "c", "inputSchema": {"type": "object"}}),
    ];
    let lines: Vec<String> = tools.iter().map(Value::to_string).collect();
    for (name, text) in [
        ("array", json!(tools).to_string()),
        ("object", json!({"tools": tools, "nextCursor": null}).to_string()),
        ("answer", json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string()),
        ("lines", lines.join("\n")),
        ("mark", format!("\u{feff}{}\r\n", lines.join("\r\n"))),
        ("single", lines[0].clone()),
    ] {
        std::fs::write(&file, &text).unwrap();
        let wanted = if name == "single" { "1 added" } else { "3 added" };
        let scope: &[&str] = if name == "array" { &["--project", name] } else { &["--user", name] };
        let dry = succeeded(&import(&url, &file, &[scope, &["--dry-run"]].concat()));
        assert!(dry.contains(wanted), "{name}: {dry}");
        let text = succeeded(&import(&url, &file, scope));
        assert!(text.contains(wanted), "the dry run wrote nothing: {name}: {text}");
        let again = succeeded(&import(&url, &file, scope));
        assert!(again.contains("0 added, 0 changed, 0 removed"), "{name}: {again}");
    }
    // Merged into what is there, or in its place.
    std::fs::write(&file, json!([{"name": "a", "description": "Better."}, {"name": "d"}, 7]).to_string())
        .unwrap();
    let merged = import(&url, &file, &["--user", "object", "--merge"]);
    let text = succeeded(&merged);
    assert!(text.contains("1 added, 1 changed, 0 removed, 2 unchanged"), "{text}");
    assert!(err(&merged).contains("tool_quarantined"), "never silently: {}", err(&merged));
    let replaced = succeeded(&import(&url, &file, &["--user", "object"]));
    assert!(replaced.contains("0 added, 0 changed, 2 removed"), "{replaced}");

    // From standard input.
    let mut child = command(&["import", "-", "--user", "piped", "--database-url", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.join("\n").as_bytes()).unwrap();
    assert!(out(&child.wait_with_output().unwrap()).contains("3 added"));

    for bad in ["", "nonsense", "[", "{\"tools\": 7}", "[7]", "{\"name\": \"a\"}\nnonsense"] {
        std::fs::write(&file, bad).unwrap();
        let refused = import(&url, &file, &["--user", "bad"]);
        assert!(!failed(&refused, 1).is_empty(), "{bad:?}");
    }
    std::fs::write(&file, json!(tools).to_string()).unwrap();
    failed(&import(&url, &file, &["--user", "a b"]), 1);
    failed(&import(&url, Path::new("/no/such/file"), &["--user", "a"]), 1);
}

#[tokio::test]
async fn what_is_imported_is_served() {
    let app = TestApp::start().await;
    let user = app.user();
    let file = app.folder().join("tools.json");
    std::fs::write(&file, json!([{"name": "imported", "description": "Comes from a file."}]).to_string())
        .unwrap();
    let url = format!("sqlite://{}", app.folder().join("toolrack.db").display());
    // Beside the running service, which sees it within a second.
    assert_eq!(app.admin().get(&user.path(&["catalog"])).await.ok()["tools"], json!([]));
    user.assemble(json!({})).await.ok();
    succeeded(&import(&url, &file, &["--user", &user.id]));
    let started = std::time::Instant::now();
    loop {
        let assembled = user.assemble(json!({})).await.ok();
        if assembled["tools"][0]["name"] == "imported" {
            break;
        }
        assert!(started.elapsed().as_millis() < 1_500, "not seen within a second: {assembled}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[test]
fn the_demo_shows_every_step_with_token_counts() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(&["demo"]).current_dir(folder.path()).env("TMPDIR", folder.path()).output().unwrap();
    let text = succeeded(&output);
    for part in [
        "upload",
        "PUT /v1/users/",
        "POST /v1/assemble",
        "tokens",
        "listing",
        "tool_search",
        "tool_call",
        "dispatch",
        "warm",
        "changed: false",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let steps = text
        .lines()
        .filter(|line| line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok()))
        .count();
    assert!(steps >= 5, "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    // The same on every machine.
    let again = succeeded(
        &command(&["demo"]).current_dir(folder.path()).env("TMPDIR", folder.path()).output().unwrap(),
    );
    assert_eq!(again, text);
}

#[tokio::test]
async fn the_demo_can_be_left_running() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(&["demo", "--serve", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (mut text, mut line) = (String::new(), String::new());
    while text.matches("curl ").count() < 3 {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "three curls are shown: {text}");
        text.push_str(&line);
    }
    let address = text.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
    let answer = reqwest_client()
        .post(format!("http://{address}/v1/search"))
        .header("content-type", "application/json")
        .body(json!({"user": "demo", "query": "send an email"}).to_string())
        .send()
        .await
        .unwrap();
    assert!(answer.status().is_success(), "{text}");
    let stopped =
        Command::new("sh").args(["-c", "kill -TERM \"$0\"", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

/// A set of three tools in a folder of its own, as `eval` takes it.
fn small_set(folder: &Path) -> [String; 2] {
    std::fs::create_dir_all(folder).unwrap();
    let tools = [
        ("send_email", "Sends an email to somebody."),
        ("delete_file", "Removes a file from the disk."),
        ("get_forecast", "Weather of the next days."),
    ];
    let tools: String = tools
        .map(|(name, description)| format!("{}\n", json!({"name": name, "description": description})))
        .concat();
    let query = |query: &str, relevant: &[&str], kind: &str| {
        format!("{}\n", json!({"query": query, "relevant": relevant, "kind": kind, "lang": "en"}))
    };
    let queries = [
        query("send email", &["send_email"], "keywords"),
        query("delete a file from disk", &["delete_file"], "task"),
        query("zzz", &[], "none"),
    ]
    .concat();
    ["tools.jsonl", "queries.jsonl"]
        .map(|name| folder.join(name))
        .into_iter()
        .zip([tools, queries])
        .for_each(|(file, text)| std::fs::write(file, text).unwrap());
    ["tools.jsonl", "queries.jsonl"].map(|name| folder.join(name).to_str().unwrap().to_owned())
}

#[test]
fn eval_prints_and_writes_what_it_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [tools, queries] = small_set(&folder.path().join("sets/small"));
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let eval = |more: &[&str]| {
        let arguments = [&["eval", "--tools", &tools, "--queries", &queries][..], more].concat();
        command(&arguments).env("TMPDIR", &temporary).output().unwrap()
    };
    std::fs::write(file("denied.json"), json!({"deny": ["delete_file"]}).to_string()).unwrap();
    let (denied, written, report) = (file("denied.json"), file("report.json"), file("report.md"));
    let text =
        succeeded(&eval(&["--compare", &denied, "--json", &written, "--markdown", &report, "--halves"]));
    for part in ["R@5", "half A", "By kind", "denied against default", "95 %"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(std::fs::read_to_string(&report).unwrap().trim_end(), text.trim_end());
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&written).unwrap()).unwrap();
    let [first, second] = [0, 1].map(|at| &json["sets"][0]["runs"][at]["all"]["figures"]);
    assert_eq!((&first["recall_at_1"], &first["no_match_recall"]), (&json!(1.0), &json!(1.0)), "{text}");
    assert_eq!(second["recall_at_1"], 0.5);
    let recall = json["sets"][0]["comparison"]["figures"][0].clone();
    assert_eq!((&recall["metric"], &recall["difference"]), (&json!("recall_at_1"), &json!(-0.5)));

    let suite = file("sets");
    let text = succeeded(&command(&["eval", "--suite", &suite]).env("TMPDIR", &temporary).output().unwrap());
    assert!(text.contains("small, half B"), "{text}");
    // An endpoint on this machine may be asked; that it does not answer is told.
    let text = succeeded(&eval(&["--matcher-url", "http://127.0.0.1:9/rerank", "--matcher-model", "m"]));
    assert!(text.contains("endpoint failed, `unreachable`"), "{text}");

    for (more, part) in [
        (&["--config", "/no/such/file.json"][..], "/no/such/file.json"),
        (&["--matcher-url", "http://127.0.0.1:9/", "--matcher-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
        (&["--config", &tools], "tools.jsonl"),
        (&["--markdown", "/no/such/folder/x.md"], "/no/such/folder/x.md"),
    ] {
        let output = eval(more);
        assert_eq!(output.status.code(), Some(1), "{more:?}");
        assert!(err(&output).contains(part), "{more:?}: {}", err(&output));
    }
    std::fs::write(&denied, json!({"max_warm_tools": "many"}).to_string()).unwrap();
    let text = failed(&eval(&["--config", &denied]), 1);
    assert!(text.contains("config denied"), "{text}");
    let empty = file("tmp");
    failed(&command(&["eval", "--suite", &empty]).env("TMPDIR", &temporary).output().unwrap(), 1);
    std::fs::write(&queries, "{}").unwrap();
    assert!(failed(&eval(&[]), 1).contains("queries, line 1"));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn openapi_prints_the_document_alone() {
    let text = succeeded(&run(&["openapi"]));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
}
