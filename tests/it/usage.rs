//! Usage: the overview tells what the answers themselves told, for each scope apart, also after a restart; queries that found
//! nothing are there while the config keeps them; and the most called tools join the core of sessions that begin.

mod apart;
mod hot;

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

use crate::app::{Client, TestApp, User, path, unique};
use crate::samples::{painter, paints};

/// The overview of a user or a project.
async fn overview(client: &Client, kind: &str, id: &str) -> Value {
    client.get(&format!("/v1/setup/overview?{kind}={id}")).await.ok()
}

/// What the answers to requests of one scope add up to.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sums {
    numbers: BTreeMap<&'static str, u64>,
    breaks: BTreeMap<String, u64>,
}

impl Sums {
    fn add(&mut self, key: &'static str, value: u64) {
        *self.numbers.entry(key).or_default() += value;
    }

    /// Whether the totals of an overview are these.
    fn check(&self, totals: &Value) -> Result<(), TestCaseError> {
        for key in [
            "sessions",
            "assemblies",
            "tokens_all",
            "tokens_sent",
            "tokens_listing",
            "searches",
            "queries",
            "missed",
            "describes",
            "calls",
            "warmed",
            "evicted",
        ] {
            let expected = self.numbers.get(key).copied().unwrap_or(0);
            prop_assert_eq!(&totals[key], &json!(expected), "{}: {}", key, totals);
        }
        prop_assert_eq!(&totals["cache_breaks"], &json!(self.breaks));
        let [searches, assemblies] = ["searches", "assemblies"].map(|key| &totals[key]);
        prop_assert_eq!(&totals["search_latency"]["count"], searches);
        prop_assert_eq!(&totals["assemble_latency"]["count"], assemblies);
        let modes = if *searches == json!(0) { json!({}) } else { json!({ "keyword": searches }) };
        prop_assert_eq!(&totals["searches_by_mode"], &modes);
        Ok(())
    }
}

/// Finds and calls of tools, by name.
type ToolSums = BTreeMap<String, [u64; 2]>;

/// What is expected of a user and of a project that the user's requests name.
#[derive(Debug, Clone, Default)]
struct Model {
    of_user: Sums,
    of_project: Sums,
    /// Of the user's own tools, and of the project's.
    user_tools: ToolSums,
    project_tools: ToolSums,
}

impl Model {
    fn scope(&mut self, in_project: bool) -> &mut Sums {
        if in_project { &mut self.of_project } else { &mut self.of_user }
    }

    /// Tools of the project have names of their own.
    fn tool(&mut self, name: &str) -> &mut [u64; 2] {
        let tools = if name.starts_with("brush_") { &mut self.project_tools } else { &mut self.user_tools };
        tools.entry(name.to_owned()).or_default()
    }

    fn warming(&mut self, in_project: bool, answer: &Value) {
        let count = |key: &str| answer[key].as_array().map_or(0, Vec::len) as u64;
        self.scope(in_project).add("warmed", count("warmed"));
        self.scope(in_project).add("evicted", count("evicted"));
    }

    fn assembly(&mut self, in_project: bool, in_session: bool, answer: &Value) {
        let sums = self.scope(in_project);
        let tokens = |key: &str| answer["tokens"][key].as_i64().unwrap();
        sums.add("assemblies", 1);
        sums.add("tokens_all", tokens("all") as u64);
        sums.add("tokens_sent", (tokens("all") - tokens("saved")) as u64);
        sums.add("tokens_listing", tokens("listing") as u64);
        let reason = answer["cache"]["reason"].as_str().unwrap();
        sums.add("sessions", u64::from(in_session && reason == "first"));
        if answer["cache"]["break"] == true {
            *sums.breaks.entry(reason.to_owned()).or_default() += 1;
        }
    }

    fn search(&mut self, in_project: bool, answer: &Value) {
        self.scope(in_project).add("searches", 1);
        for result in answer["results"].as_array().unwrap() {
            let matches = result["matches"].as_array().unwrap();
            self.scope(in_project).add("queries", 1);
            self.scope(in_project).add("missed", u64::from(matches.is_empty()));
            for found in matches {
                self.tool(found["name"].as_str().unwrap())[0] += 1;
            }
        }
        self.warming(in_project, answer);
    }

    fn call(&mut self, in_project: bool, name: &str) {
        self.scope(in_project).add("calls", 1);
        self.tool(name)[1] += 1;
    }
}

/// One request of an agent.
#[derive(Debug, Clone)]
enum Step {
    /// With the names of tools that it ran natively since the last one.
    Assemble {
        format: &'static str,
        used: Vec<usize>,
    },
    Search(Vec<Option<usize>>),
    Describe(usize),
    /// A call, and one that cannot be run.
    Call(usize),
    /// A native call through the bridge, which the next assembly tells again.
    Passed(usize),
    /// Through the bridge: a search, a description, and two calls.
    Bridge(usize),
}

#[derive(Debug, Clone)]
struct Request {
    step: Step,
    in_project: bool,
    in_session: bool,
}

/// The colours of the user, then the brushes of the project.
const TOOLS: usize = 26;

fn name_of(at: usize) -> String {
    match at.checked_sub(20) {
        None => paints()[at]["name"].as_str().unwrap().to_owned(),
        Some(brush) => format!("brush_{brush}"),
    }
}

fn brushes() -> Vec<Value> {
    let brush = |at: usize| json!({"name": format!("brush_{at}"), "group": "brushes", "description": format!("Cleans brush {at}.")});
    (0..TOOLS - 20).map(brush).collect()
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let tool = || 0..TOOLS;
    let format = prop_oneof![Just("openai_chat"), Just("openai_chat"), Just("anthropic")];
    let step = prop_oneof![
        4 => (format, prop::collection::vec(tool(), 0..3)).prop_map(|(format, used)| Step::Assemble { format, used }),
        3 => prop::collection::vec(prop::option::of(tool()), 1..4).prop_map(Step::Search),
        2 => tool().prop_map(Step::Describe),
        2 => tool().prop_map(Step::Call),
        2 => tool().prop_map(Step::Passed),
        1 => tool().prop_map(Step::Bridge),
    ];
    let request = (step, any::<bool>(), prop::bool::weighted(0.8));
    let request = request.prop_map(|(step, in_project, in_session)| Request { step, in_project, in_session });
    prop::collection::vec(request, 1..30)
}

/// A user and a project whose tools and requests nobody else has.
struct Place {
    user: String,
    project: String,
    /// Native calls since the last assembly of the session in the project, and in none.
    passed: [Vec<String>; 2],
}

impl Place {
    async fn new(app: &TestApp) -> Self {
        let user = painter(app, json!({"max_warm_tools": 2})).await;
        let project = unique("project");
        let path = path(&["v1", "projects", &project, "catalog"]);
        app.admin().put(&path, &json!({"tools": brushes()})).await.ok();
        Self { user: user.id, project, passed: Default::default() }
    }

    fn body(&self, request: &Request, mut body: Value) -> Value {
        body["user"] = json!(self.user);
        if request.in_project {
            body["project"] = json!(self.project);
        }
        if request.in_session {
            body["session"] = json!("s");
        }
        body
    }

    async fn send(&mut self, app: &TestApp, request: &Request, model: &mut Model) {
        let Request { step, in_project, in_session } = request;
        let ask =
            async |path: &str, body: Value| app.admin().post(path, &self.body(request, body)).await.ok();
        let is_there = |at: usize| *in_project || at < 20;
        let call =
            |id: &str, name: &str, arguments: Value| json!({"id": id, "name": name, "arguments": arguments});
        match step {
            Step::Assemble { format, used } => {
                let used: Vec<String> = used.iter().map(|at| name_of(*at)).collect();
                let answer = ask("/v1/assemble", json!({ "format": format, "used": used })).await;
                model.assembly(*in_project, *in_session, &answer);
                let mut told: Vec<String> =
                    used.into_iter().filter(|name| *in_project || !name.starts_with("brush_")).collect();
                if *in_session {
                    for passed in std::mem::take(&mut self.passed[usize::from(*in_project)]) {
                        if let Some(at) = told.iter().position(|name| *name == passed) {
                            told.remove(at);
                        }
                    }
                    told.iter().for_each(|name| model.call(*in_project, name));
                }
            }
            Step::Search(queries) => {
                let queries: Vec<String> = queries
                    .iter()
                    .map(|at| at.map_or_else(|| "xylophone quartet".to_owned(), name_of))
                    .collect();
                model.search(*in_project, &ask("/v1/search", json!({ "queries": queries })).await);
            }
            Step::Describe(at) => {
                let answer = ask("/v1/describe", json!({"names": [name_of(*at), "nothing"]})).await;
                model.scope(*in_project).add("describes", 1);
                model.warming(*in_project, &answer);
            }
            Step::Call(at) => {
                let calls =
                    [name_of(*at), "nothing".to_owned()].map(|name| json!({"name": name, "arguments": {}}));
                let answer = ask("/v1/call", json!({ "calls": calls })).await;
                assert_eq!(answer["results"][0]["ok"], json!(is_there(*at)));
                if is_there(*at) {
                    model.call(*in_project, &name_of(*at));
                }
                model.warming(*in_project, &answer);
            }
            Step::Passed(at) => {
                let body = json!({"format": "canonical", "calls": [call("1", &name_of(*at), json!({}))]});
                let answer = ask("/v1/bridge", body).await;
                assert_eq!(answer["results"][0]["action"], "dispatch");
                if is_there(*at) {
                    model.call(*in_project, &name_of(*at));
                    if *in_session {
                        self.passed[usize::from(*in_project)].push(name_of(*at));
                    }
                }
                model.warming(*in_project, &answer);
            }
            Step::Bridge(at) => {
                let name = name_of(*at);
                let calls = json!([
                    call("1", "tool_describe", json!({ "name": name })),
                    call(
                        "2",
                        "tool_call",
                        json!({"calls": [{"name": "red", "arguments": {}}, {"name": "teal", "arguments": {}}]})
                    ),
                    call(
                        "3",
                        "tool_call",
                        json!({"calls": [{"name": "red", "arguments": {}}, {"name": "nothing", "arguments": {}}]})
                    ),
                ]);
                let answer = ask("/v1/bridge", json!({"format": "canonical", "calls": calls})).await;
                let actions: Vec<&str> =
                    (0..3).map(|at| answer["results"][at]["action"].as_str().unwrap()).collect();
                assert_eq!(actions, ["respond", "dispatch", "respond"]);
                model.scope(*in_project).add("describes", 1);
                // Of a batch with a wrong call nothing runs, so nothing counts.
                model.call(*in_project, "red");
                model.call(*in_project, "teal");
                model.warming(*in_project, &answer);
            }
        }
    }

    async fn check(&self, app: &TestApp, model: &Model) -> Result<(), TestCaseError> {
        for (kind, id, sums, tools) in [
            ("user", &self.user, &model.of_user, &model.user_tools),
            ("project", &self.project, &model.of_project, &model.project_tools),
        ] {
            let shown = overview(app.admin(), kind, id).await;
            sums.check(&shown["totals"])?;
            check_tools(&shown["tools"], tools)?;
        }
        Ok(())
    }
}

/// Both lists of an overview, as far as they go, and what was never found.
fn check_tools(shown: &Value, tools: &ToolSums) -> Result<(), TestCaseError> {
    for (list, which) in [("most_found", 0), ("most_called", 1)] {
        let mut expected: Vec<(&String, &[u64; 2])> =
            tools.iter().filter(|(_, counts)| counts[which] > 0).collect();
        expected.sort_by(|a, b| b.1[which].cmp(&a.1[which]).then_with(|| a.0.cmp(b.0)));
        expected.truncate(20);
        let rows = shown[list].as_array().unwrap();
        prop_assert_eq!(rows.len(), expected.len(), "{}: {}", list, shown);
        for (row, (name, counts)) in rows.iter().zip(expected) {
            let read = (row["name"].as_str(), row["finds"].as_u64(), row["calls"].as_u64());
            prop_assert_eq!(read, (Some(name.as_str()), Some(counts[0]), Some(counts[1])), "{}", list);
            prop_assert_eq!(&row["granted"], &json!(true));
        }
    }
    let never = &shown["never_found"];
    let of = never["of"].as_u64().unwrap();
    prop_assert_eq!(never["count"].as_u64().unwrap(), of - tools.len() as u64);
    Ok(())
}

#[test]
fn an_overview_is_the_sum_of_what_the_answers_told() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let app = runtime.block_on(TestApp::start());
    let places = std::cell::RefCell::new(Vec::new());
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let result = runner.run(&requests(), |requests| {
        runtime.block_on(async {
            let (mut place, mut model) = (Place::new(&app).await, Model::default());
            for request in &requests {
                place.send(&app, request, &mut model).await;
            }
            place.check(&app, &model).await?;
            places.borrow_mut().push((place, model));
            Ok(())
        })
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    // What was shown is stored; what comes after it is stored by the stop.
    runtime.block_on(async {
        let (mut app, mut places) = (app, places.into_inner());
        app.kill();
        app.start_again().await;
        for (place, model) in &places {
            place.check(&app, model).await.unwrap();
        }
        for (place, model) in &mut places {
            let step = Step::Search(vec![Some(3), None]);
            place.send(&app, &Request { step, in_project: true, in_session: true }, model).await;
        }
        app.restart().await;
        for (place, model) in &places {
            place.check(&app, model).await.unwrap();
        }
    });
}

#[tokio::test]
async fn a_kill_loses_what_was_not_flushed_and_nothing_else() {
    let mut app = TestApp::builder().set("TOOLRACK_SESSION_FLUSH_MS", 60_000).start().await;
    let id = painter(&app, json!({})).await.id;
    let user = app.user_called(&id);
    for _ in 0..3 {
        user.search(json!({"query": "amber"})).await.ok();
    }
    let flushed = overview(app.admin(), "user", &id).await;
    assert_eq!(flushed["totals"]["searches"], 3);
    for _ in 0..2 {
        user.search(json!({"query": "amber"})).await.ok();
    }
    app.kill();
    app.start_again().await;
    let left = overview(app.admin(), "user", &id).await;
    let searches = left["totals"]["searches"].as_u64().unwrap();
    assert!((3..=5).contains(&searches), "{left}");
    assert_eq!(left["tools"]["most_found"][0]["finds"], json!(searches), "a scope is stored together");
}

#[tokio::test]
async fn an_overview_tells_every_day_and_what_was_never_found() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({"core": ["amber"], "deny": ["teal"]})).await;
    let path = |days: &str| format!("/v1/setup/overview?user={}{days}", user.id);
    for (days, count) in [("", 30), ("&days=1", 1), ("&days=90", 90)] {
        let shown = app.admin().get(&path(days)).await.ok();
        let series = shown["series"].as_array().unwrap();
        assert_eq!((shown["days"].as_u64(), series.len()), (Some(count), count as usize));
        let dates: Vec<&str> = series.iter().map(|day| day["date"].as_str().unwrap()).collect();
        assert!(dates.is_sorted() && dates.iter().all(|date| date.len() == 10), "{dates:?}");
    }
    for bad in ["&days=0", "&days=91", "&days=x", "&more=1"] {
        app.admin().get(&path(bad)).await.expect_status(422);
    }
    app.admin().get("/v1/setup/overview").await.problem(422, "invalid_request");

    let empty = app.admin().get(&path("")).await.ok();
    let never = &empty["tools"]["never_found"];
    assert_eq!((&never["count"], &never["of"]), (&json!(18), &json!(18)), "neither core nor denied: {never}");
    let tokens: Vec<u64> =
        never["tools"].as_array().unwrap().iter().map(|tool| tool["tokens"].as_u64().unwrap()).collect();
    assert!(tokens.is_sorted_by(|a, b| a >= b) && tokens.len() == 18, "{tokens:?}");
    assert!(empty["totals"].get("missed_percent").is_none());
    assert_eq!(empty["totals"]["search_latency"], json!({"count": 0}));

    user.search(json!({"queries": ["navy", "xylophone quartet"]})).await.ok();
    let shown = app.admin().get(&path("&days=1")).await.ok();
    assert_eq!(shown["totals"]["missed_percent"], 50.0);
    let latency = &shown["totals"]["search_latency"];
    let quantiles = ["p50_ms", "p95_ms", "p99_ms"].map(|key| latency[key].as_f64().unwrap());
    assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{latency}");
    assert_eq!(shown["tools"]["never_found"]["count"], 17);
    // Today, unless midnight came in between.
    let last = app.admin().get(&path("&days=2")).await.ok();
    let days: u64 =
        last["series"].as_array().unwrap().iter().map(|day| day["counts"]["queries"].as_u64().unwrap()).sum();
    assert_eq!(days, 2);
}

#[tokio::test]
async fn calls_that_a_conversation_tells_count_once() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    let calls = async |user: &User| overview(app.admin(), "user", &user.id).await["totals"]["calls"].clone();
    let turn = |id: &str| json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": {"name": "navy", "arguments": "{}"}}]});
    let mut messages = vec![json!({"role": "user", "content": "paint"}), turn("1")];
    let tell = async |messages: &[Value], used: &[&str]| {
        user.assemble(json!({"session": "s", "messages": messages, "used": used})).await.ok();
    };
    tell(&messages, &["navy"]).await;
    tell(&messages, &[]).await;
    messages.push(json!({"role": "tool", "tool_call_id": "1", "content": "done"}));
    messages.push(json!({"role": "assistant", "content": "It is navy."}));
    messages.push(json!({"role": "user", "content": "again"}));
    tell(&messages, &[]).await;
    assert_eq!(calls(&user).await, json!(1));
    messages.push(turn("2"));
    tell(&messages, &[]).await;
    assert_eq!(calls(&user).await, json!(2));
    // Without a session nothing tells one assembly from the next.
    user.assemble(json!({"messages": messages})).await.ok();
    assert_eq!(calls(&user).await, json!(2));
}
