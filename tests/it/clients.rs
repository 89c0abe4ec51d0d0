//! What Toolrack sends, loaded into the types of the providers' own client libraries and sent through their clients: the
//! checkers of `tests/clients`, whose libraries `tests/run` installs and names in `TOOLRACK_TEST_CLIENTS`.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::messy;
use crate::model::{FORMATS, array_names, model_call, strings};

mod broken;
mod odd;

/// Formats with the profiles that speak them.
const SPOKEN: [(&str, &[&str]); 7] = [
    ("canonical", &["generic"]),
    ("mcp", &["generic"]),
    (
        "openai_chat",
        &["generic", "openai", "azure", "deepseek", "groq", "mistral", "cohere", "ollama", "vllm"],
    ),
    ("openai_responses", &["generic", "openai", "azure"]),
    ("anthropic", &["generic", "anthropic"]),
    ("gemini", &["generic", "gemini", "vertex"]),
    ("bedrock_converse", &["generic", "bedrock", "bedrock-nova"]),
];

/// Every kind of schema is in a catalog of this size.
const TOOLS: usize = 770;
/// Fewer than any provider's maximum, with the bridge.
const TOOLS_AT_ONCE: usize = 110;

/// Something that a library has to take.
#[derive(Debug, Clone)]
struct Case {
    library: &'static str,
    /// What it is for the library: `check.py` and `check.mjs` say what there is.
    kind: &'static str,
    label: String,
    value: Value,
}

impl Case {
    fn name(&self) -> String {
        format!("{} {}", self.library, self.kind)
    }
}

/// What a checker says.
#[derive(Debug, Deserialize)]
struct Report {
    /// How many cases of each kind it looked at.
    checked: BTreeMap<String, usize>,
    faults: Vec<Fault>,
}

#[derive(Debug, Deserialize)]
struct Fault {
    kind: String,
    label: String,
    fault: String,
}

/// Where the libraries are. Without them there is nothing to test, unless `tests/run` says that there has to be.
pub(crate) fn installed() -> Option<PathBuf> {
    let folder = env::var_os("TOOLRACK_TEST_CLIENTS").map(PathBuf::from);
    if folder.is_none() {
        assert!(
            env::var_os("TOOLRACK_REQUIRE_CLIENTS").is_none(),
            "TOOLRACK_REQUIRE_CLIENTS is set, TOOLRACK_TEST_CLIENTS is not"
        );
        // Past the harness, which keeps what a passing test prints to itself.
        let line = "skipped: no test with the client libraries, since TOOLRACK_TEST_CLIENTS is not set; tests/run sets it\n";
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    folder
}

/// Hands each case to the checker of its library.
fn check(folder: &Path, cases: &[Case]) -> Vec<Fault> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let mut python = Command::new(folder.join("venv/bin/python"));
    python.arg(scripts.join("check.py"));
    let mut node = Command::new("node");
    node.arg(scripts.join("check.mjs")).arg(folder);
    let (of_node, of_python): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| matches!(case.library, "ai" | "@modelcontextprotocol/sdk"));
    thread::scope(|scope| {
        let running = [(python, of_python), (node, of_node)]
            .map(|(mut program, cases)| scope.spawn(move || run(&mut program, &cases)));
        running.into_iter().flat_map(|checker| checker.join().unwrap()).collect()
    })
}

fn run(program: &mut Command, cases: &[&Case]) -> Vec<Fault> {
    let told: Vec<Value> = cases
        .iter()
        .map(|Case { library, kind, label, value }| json!({"library": library, "kind": kind, "label": label, "value": value}))
        .collect();
    // Nothing of the developer's own keys and proxies may reach the libraries.
    program.env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    // Read to its end before anything is answered.
    let mut input = child.stdin.take().unwrap();
    input.write_all(json!(told).to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", output.status);
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    let mut sent = BTreeMap::new();
    for case in cases {
        *sent.entry(case.name()).or_insert(0) += 1;
    }
    assert_eq!(report.checked, sent, "{program:?} did not look at everything");
    report.faults
}

/// Cases without what was there before under another label: most tools are alike for many providers.
#[derive(Debug, Default)]
struct Cases {
    list: Vec<Case>,
    seen: HashSet<String>,
}

impl Cases {
    fn push(&mut self, (library, kind): (&'static str, &'static str), label: &str, value: &Value) {
        if self.seen.insert(format!("{library} {kind} {value}")) {
            self.list.push(Case { library, kind, label: label.to_owned(), value: value.clone() });
        }
    }

    /// An assembly's `tools`.
    fn push_tools(&mut self, format: &str, profile: &str, label: &str, tools: &Value) {
        let kinds: &[(&str, &str)] = match format {
            "canonical" => &[("ai", "tools")],
            "mcp" => &[("mcp", "tools"), ("@modelcontextprotocol/sdk", "tools")],
            "openai_chat" => &[("openai", "chat_tools")],
            "openai_responses" => &[("openai", "responses_tools")],
            "anthropic" => &[("anthropic", "tools")],
            "gemini" if profile == "vertex" => &[("google-genai", "vertex_tools")],
            "gemini" => &[("google-genai", "tools")],
            "bedrock_converse" => &[("botocore", "tools")],
            other => panic!("no such format: {other}"),
        };
        for kind in kinds.iter().filter(|_| !tools.is_null()) {
            self.push(*kind, label, tools);
        }
    }

    /// A message that answers a call.
    fn push_message(&mut self, format: &str, label: &str, message: &Value) {
        let list = json!([message]);
        match format {
            // Of no provider.
            "canonical" => {}
            "mcp" => {
                self.push(("mcp", "message"), label, message);
                self.push(("@modelcontextprotocol/sdk", "message"), label, message);
            }
            "openai_chat" => self.push(("openai", "chat_messages"), label, &list),
            "openai_responses" => self.push(("openai", "responses_items"), label, &list),
            "anthropic" => self.push(("anthropic", "messages"), label, &list),
            "gemini" => self.push(("google-genai", "contents"), label, &list),
            "bedrock_converse" => self.push(("botocore", "messages"), label, &list),
            other => panic!("no such format: {other}"),
        }
    }
}

/// The arrays of a user for each format and profile, plain, strict and in OpenAPI's subset.
async fn assemble_all(user: &User, session: Option<&str>, what: &str, cases: &mut Cases) {
    for (format, profiles) in SPOKEN {
        for profile in profiles {
            for (strict, dialect) in
                [(false, "json_schema"), (true, "json_schema"), (false, "openapi"), (true, "openapi")]
            {
                if dialect == "openapi" && format != "gemini" {
                    continue;
                }
                let mut body = json!({"format": format, "profile": profile, "strict": strict, "schema_dialect": dialect});
                if let Some(session) = session {
                    body["session"] = json!(session);
                }
                let answer = user.assemble(body).await.ok();
                let label = format!("{what}, {format} for {profile}, {dialect}, strict: {strict}");
                cases.push_tools(format, profile, &label, &answer["tools"]);
            }
        }
    }
}

/// The messages that answer a model's calls, good and bad ones, in each format.
async fn answer_all(user: &User, name: &str, cases: &mut Cases) {
    for format in FORMATS {
        let calls = [
            ("c1", "tool_search", json!({"query": "create a list of files"})),
            ("c2", "tool_search", json!({"query": "zzzz qqqq"})),
            ("c3", "tool_describe", json!({"name": name})),
            ("c4", "tool_describe", json!({"name": "no_such_tool"})),
            ("c5", "tool_call", json!({"name": name, "arguments": "no object"})),
            ("c6", "tool_call", json!({})),
            ("c7", name, json!([1])),
        ];
        let calls: Vec<Value> =
            calls.iter().map(|(id, name, arguments)| model_call(format, id, name, arguments)).collect();
        let answer = user.bridge(json!({"format": format, "calls": calls})).await.ok();
        let results = answer["results"].as_array().unwrap();
        let messages: Vec<&Value> = results.iter().filter_map(|result| result.get("message")).collect();
        assert!(messages.len() >= 6, "{answer}");
        for message in messages.into_iter().filter(|message| !message.is_null()) {
            cases.push_message(format, &format!("a message of {format}"), message);
        }
    }
}

/// The arrays of the providers' own deferred tools and of namespaces, and what loads tools.
async fn load_all(user: &User, names: &[&str], cases: &mut Cases) {
    for (format, profile, exposure) in [
        ("anthropic", "anthropic", "native"),
        ("openai_responses", "openai", "native"),
        ("openai_responses", "openai", "namespaced"),
    ] {
        let session = format!("{format} {exposure}").replace(' ', ".");
        let body = json!({"session": session, "format": format, "profile": profile, "exposure": exposure});
        let label = format!("{exposure}, {format}");
        let array = user.assemble(body.clone()).await.ok();
        cases.push_tools(format, profile, &label, &array["tools"]);
        let search = |id: &str, query: Value| {
            if format == "openai_responses" && exposure == "native" {
                return json!({"type": "tool_search_call", "call_id": id, "execution": "client", "arguments": {"query": query}});
            }
            model_call(format, id, "tool_search", &json!({"query": query}))
        };
        let calls = [search("c1", json!(names)), search("c2", json!("zzzz qqqq"))];
        let answer = user.bridge(json!({"session": session, "calls": calls})).await.ok();
        for result in answer["results"].as_array().unwrap() {
            cases.push_message(format, &format!("an answer of {label}"), &result["message"]);
        }
        // What was found stands in the array from the next epoch on.
        let mut epoch = body;
        epoch["epoch"] = json!(true);
        let array = user.assemble(epoch).await.ok();
        cases.push_tools(format, profile, &format!("{label}, after an epoch"), &array["tools"]);
    }
    let search = json!({"queries": names, "profile": "openai", "form": "additional_tools"});
    let found = user.search(search).await.ok();
    assert!(!found["answer"]["content"].is_null(), "{found}");
    cases.push(("openai", "responses_items"), "additional tools", &json!([found["answer"]["content"]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn client_libraries_take_every_array_and_every_answer() {
    let Some(folder) = installed() else { return };
    let app = TestApp::start().await;
    let mut cases = Cases::default();
    let catalog = messy::catalog(11, TOOLS);
    let odd = odd::tools();
    for (at, tools) in catalog.chunks(TOOLS_AT_ONCE).chain([&*odd]).enumerate() {
        let user = app.user();
        user.put_catalog(tools).await.ok();
        user.put_config(&json!({"enabled": "off"})).await.ok();
        assemble_all(&user, None, &format!("catalog {at} whole"), &mut cases).await;
    }
    // Behind the bridge, with found tools.
    let user = app.user();
    let written = user.put_catalog(&odd).await.ok();
    let names = strings(&written["added"]["names"]);
    assert_eq!(names.len(), odd.len(), "an odd tool is no tool: {written}");
    user.put_config(&json!({"enabled": "on", "core": [names[0]], "max_warm_tools": 30})).await.ok();
    assemble_all(&user, Some("s"), "bridge", &mut cases).await;
    for some in names.chunks(10).take(3) {
        user.describe(json!({"session": "s", "names": some})).await.ok();
    }
    let warm = user.assemble(json!({"session": "s"})).await.ok();
    assert!(array_names(&warm).len() > 20, "{warm}");
    assemble_all(&user, Some("s"), "bridge and found tools", &mut cases).await;
    answer_all(&user, names[0], &mut cases).await;
    load_all(&user, &names[1..10], &mut cases).await;
    // A user without any tool.
    assemble_all(&app.user(), None, "nothing", &mut cases).await;

    let shown: HashSet<_> = broken::pairs().iter().map(|pair| pair.kind).collect();
    let unshown = cases.list.iter().find(|case| !shown.contains(&(case.library, case.kind)));
    assert!(unshown.is_none(), "nothing shows that this check can fail: {unshown:?}");
    let faults = tokio::task::spawn_blocking(move || check(&folder, &cases.list)).await.unwrap();
    // One line for what is refused in many arrays.
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Fault { kind, label, fault } in faults {
        told.entry(format!("{kind}: {fault}")).or_default().push(label);
    }
    let told: Vec<String> = told
        .iter()
        .map(|(fault, labels)| format!("{fault}\n  {} arrays: {}", labels.len(), labels[0]))
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn client_libraries_refuse_what_is_broken() {
    let Some(folder) = installed() else { return };
    let pairs = broken::pairs();
    let case = |(library, kind): (&'static str, &'static str), label: String, value: Value| Case {
        library,
        kind,
        label,
        value,
    };
    let cases: Vec<Case> = pairs
        .iter()
        .enumerate()
        .flat_map(|(at, pair)| {
            let good = case(pair.kind, format!("{at} good"), pair.good.clone());
            [good, case(pair.kind, format!("{at} broken"), pair.broken.clone())]
        })
        .collect();
    let faults = tokio::task::spawn_blocking(move || check(&folder, &cases)).await.unwrap();
    for (at, pair) in pairs.iter().enumerate() {
        let said = |label: String| faults.iter().find(|fault| fault.label == label);
        assert!(said(format!("{at} good")).is_none(), "{pair:?}: {faults:?}");
        let fault = said(format!("{at} broken")).unwrap_or_else(|| panic!("taken: {pair:?}"));
        assert!(fault.fault.contains(pair.told), "{pair:?}: {fault:?}");
    }
}
