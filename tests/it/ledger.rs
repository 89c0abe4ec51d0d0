//! The ledger of a session, in its document and in the metrics: the sum of what the answers themselves told.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolrack::core::tokens;

use crate::app::{Answer, TestApp, User};
use crate::samples::{painter, paints};

/// What the answers to one session add up to.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sums {
    assemblies: u64,
    searches: u64,
    describes: u64,
    calls: u64,
    all: u64,
    sent: u64,
    answers: u64,
    breaks: u64,
}

impl Sums {
    fn assembly(&mut self, answer: &Answer) {
        let answer = answer.ok();
        let (all, saved) = (answer["tokens"]["all"].as_u64(), answer["tokens"]["saved"].as_i64());
        self.assemblies += 1;
        self.all += all.unwrap();
        self.sent += (all.unwrap() as i64 - saved.unwrap()) as u64;
        self.breaks += u64::from(answer["cache"]["break"] == true && answer["cache"]["reason"] != "epoch");
    }

    fn search(&mut self, answer: &Answer) {
        self.searches += 1;
        self.answers += member_tokens(answer, "results");
    }

    fn describe(&mut self, answer: &Answer) {
        self.describes += 1;
        self.answers += member_tokens(answer, "tools");
    }

    fn bridge(&mut self, answer: &Answer) {
        for result in answer.ok()["results"].as_array().unwrap() {
            let content = result["content"].as_str().map(tokens::count);
            assert_eq!(result["tokens"].as_u64(), content.map(|tokens| tokens as u64));
            self.answers += result["tokens"].as_u64().unwrap_or(0);
        }
    }

    fn document(&self) -> Value {
        json!({
            "assemblies": self.assemblies,
            "searches": self.searches,
            "describes": self.describes,
            "calls": self.calls,
            "tokens_all": self.all,
            "tokens_sent": self.sent,
            "tokens_answers": self.answers,
            "saved": self.all as i64 - self.sent as i64 - self.answers as i64,
            "cache_breaks": self.breaks,
        })
    }
}

/// The tokens of a member of an answer as it came, byte for byte.
fn member_tokens(answer: &Answer, member: &str) -> u64 {
    #[derive(Deserialize)]
    struct Members {
        results: Option<Box<RawValue>>,
        tools: Option<Box<RawValue>>,
    }
    answer.expect_status(200);
    let Members { results, tools } = serde_json::from_slice(&answer.body).unwrap();
    let text = if member == "results" { results } else { tools };
    tokens::count(text.unwrap().get()) as u64
}

async fn ledger(user: &User, session: &str) -> Value {
    user.client().get(&user.path(&["sessions", session])).await.ok()["ledger"].clone()
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"id": "c1", "name": name, "arguments": arguments})
}

/// The values of the token counters.
async fn metrics(app: &TestApp) -> [u64; 4] {
    let answer = app.admin().get("/metrics").await;
    let sum = |name: &str| {
        let lines = answer.text().lines().filter(|line| line.starts_with(name));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    ["all", "sent", "answers", "saved"].map(|what| sum(&format!("toolrack_tokens_{what}_total")))
}

/// One thing that an agent does in a session.
#[derive(Debug, Clone)]
enum Step {
    Assemble {
        epoch: bool,
        format: &'static str,
    },
    Search {
        colours: Vec<usize>,
        detail: &'static str,
    },
    Describe(usize),
    Call(usize),
    BridgeSearch(usize),
    BridgeDescribe(usize),
    /// Several calls of one turn: a search, a call that is sent on, and one that is wrong.
    BridgeTurn(usize),
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let colour = 0..20_usize;
    let format = prop_oneof![Just("openai_chat"), Just("openai_chat"), Just("anthropic"), Just("gemini")];
    let detail = prop_oneof![Just("brief"), Just("names"), Just("full")];
    let step = prop_oneof![
        4 => (any::<bool>(), format).prop_map(|(epoch, format)| Step::Assemble { epoch, format }),
        3 => (prop::collection::vec(colour.clone(), 1..4), detail)
            .prop_map(|(colours, detail)| Step::Search { colours, detail }),
        2 => colour.clone().prop_map(Step::Describe),
        1 => colour.clone().prop_map(Step::Call),
        2 => colour.clone().prop_map(Step::BridgeSearch),
        1 => colour.clone().prop_map(Step::BridgeDescribe),
        1 => colour.prop_map(Step::BridgeTurn),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..25)
}

async fn take(user: &User, session: &str, step: &Step, sums: &mut Sums) {
    let colours = paints();
    let name = |at: usize| colours[at]["name"].as_str().unwrap();
    let bridge = async |calls: Value| {
        user.bridge(json!({"session": session, "format": "canonical", "calls": calls})).await
    };
    match step {
        Step::Assemble { epoch, format } => {
            let body = json!({"session": session, "format": format, "epoch": epoch});
            sums.assembly(&user.assemble(body).await);
        }
        Step::Search { colours, detail } => {
            let queries: Vec<&str> = colours.iter().map(|at| name(*at)).collect();
            let body = json!({"session": session, "queries": queries, "detail": detail, "limit": 3});
            sums.search(&user.search(body).await);
        }
        Step::Describe(at) => {
            let names = [name(*at), "no_such_colour"];
            sums.describe(&user.describe(json!({"session": session, "names": names})).await);
        }
        Step::Call(at) => {
            user.call(json!({"session": session, "name": name(*at)})).await.ok();
            sums.calls += 1;
        }
        Step::BridgeSearch(at) => {
            sums.bridge(&bridge(json!([call("tool_search", json!({"query": name(*at)}))])).await);
            sums.searches += 1;
        }
        Step::BridgeDescribe(at) => {
            sums.bridge(&bridge(json!([call("tool_describe", json!({"name": name(*at)}))])).await);
            sums.describes += 1;
        }
        Step::BridgeTurn(at) => {
            let calls = json!([
                call("tool_search", json!({"query": "xylophone quartet"})),
                call("tool_call", json!({"name": name(*at), "arguments": {}})),
                call("tool_call", json!({"name": "no_such_colour", "arguments": {}})),
            ]);
            sums.bridge(&bridge(calls).await);
            sums.searches += 1;
            // What is refused is no call.
            sums.calls += 1;
        }
        Step::Reset => {
            user.client().post(&user.path(&["sessions", session, "reset"]), &json!({})).await.ok();
        }
    }
}

#[test]
fn a_ledger_is_the_sum_of_what_the_answers_told() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (app, user) = runtime.block_on(async {
        let app = TestApp::start().await;
        let user = painter(&app, json!({"max_warm_tools": 2})).await;
        (app, user)
    });
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let result = runner.run(&steps(), |steps| {
        let session = crate::app::unique("ledger");
        let (shown, sums, counted) = runtime.block_on(async {
            let (before, mut sums) = (metrics(&app).await, Sums::default());
            for step in &steps {
                take(&user, &session, step, &mut sums).await;
            }
            let after = metrics(&app).await;
            let counted: [u64; 4] = std::array::from_fn(|at| after[at] - before[at]);
            (ledger(&user, &session).await, sums, counted)
        });
        prop_assert_eq!(shown, sums.document());
        prop_assert_eq!(&counted[..3], &[sums.all, sums.sent, sums.answers]);
        Ok::<(), TestCaseError>(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn a_ledger_survives_a_stop_and_a_reset_and_is_gone_with_its_session() {
    // Nothing is flushed before the stop.
    let mut app = TestApp::builder().set("TOOLRACK_SESSION_FLUSH_MS", 60_000).start().await;
    let user = painter(&app, json!({"max_warm_tools": 2})).await;
    let mut sums = Sums::default();
    let script = [
        Step::Assemble { epoch: false, format: "anthropic" },
        Step::Search { colours: vec![1, 2], detail: "full" },
        Step::Assemble { epoch: false, format: "anthropic" },
        Step::Describe(3),
        Step::Assemble { epoch: false, format: "anthropic" },
        Step::BridgeSearch(4),
    ];
    for step in &script {
        take(&user, "s", step, &mut sums).await;
    }
    assert_eq!(ledger(&user, "s").await, sums.document());
    assert!(sums.breaks > 0 && sums.answers > 100, "{sums:?}");
    app.restart().await;
    let user = app.user_called(&user.id);
    assert_eq!(ledger(&user, "s").await, sums.document());

    take(&user, "s", &Step::Reset, &mut sums).await;
    take(&user, "s", &Step::Assemble { epoch: false, format: "mcp" }, &mut sums).await;
    assert_eq!(ledger(&user, "s").await, sums.document(), "a reset empties the warm set, not the ledger");
    user.client().delete(&user.path(&["sessions", "s"])).await.expect_status(204);
    assert_eq!(ledger(&user, "s").await, Sums::default().document());
}

#[tokio::test]
async fn only_the_sessions_own_answers_stand_in_its_ledger() {
    let app = TestApp::start().await;
    let user = painter(&app, json!({})).await;
    let before = metrics(&app).await;
    let (mut own, mut others) = (Sums::default(), Sums::default());
    let first = user.assemble(json!({"session": "s"})).await;
    own.assembly(&first);
    others.assembly(&user.assemble(json!({})).await);
    others.assembly(&user.assemble(json!({"session": "other", "if_fingerprint": "none"})).await);
    others.search(&user.search(json!({"query": "amber"})).await);
    others.describe(&user.describe(json!({"name": "blue"})).await);
    let bridged =
        user.bridge(json!({"format": "canonical", "call": call("tool_search", json!({"query": "gold"}))}));
    others.bridge(&bridged.await);
    // What the agent has still goes to the model.
    let fingerprint = first.ok()["fingerprint"].clone();
    let unchanged = user.assemble(json!({"session": "s", "if_fingerprint": fingerprint})).await;
    assert_eq!(unchanged.ok()["changed"], false);
    own.assembly(&unchanged);
    let body = json!({"session": "s", "queries": ["navy", "xylophone quartet paints"], "warm": false});
    let plain = user.search(body.clone()).await;
    own.search(&plain);
    let formed =
        user.search(json!({"session": "s", "query": "navy", "warm": false, "form": "text"})).await.ok();
    own.searches += 1;
    own.answers += formed["answer"]["tokens"].as_u64().unwrap();
    // An explanation is for people.
    let mut explained = body;
    explained["explain"] = json!(true);
    user.search(explained).await.ok();
    own.search(&plain);
    assert_eq!(ledger(&user, "s").await, own.document());
    let (all, sent) = (own.all + others.all, own.sent + others.sent);
    // Every one of these arrays saved something.
    let expected = [all, sent, own.answers + others.answers, all - sent];
    // Without a session an answer does not wait for its count.
    let reached = async {
        while std::array::from_fn(|at| before[at] + expected[at]) != metrics(&app).await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(30), reached).await.is_ok(),
        "{before:?} + {expected:?} is not {:?}",
        metrics(&app).await
    );
}

#[tokio::test]
async fn texts_of_every_script_are_counted_exactly() {
    let app = TestApp::start().await;
    let user = app.user();
    let mut tools = paints();
    let texts = [
        "查询指定城市未来七天的天气预报，包括气温、降水概率和风速。",
        "指定した都市の今後7日間の天気予報を取得します。",
        "지정한 도시의 향후 7일간 일기 예보를 조회합니다.",
        "Sends 🎂 and 👨\u{200d}👩\u{200d}👧\u{200d}👦 to friends 🇩🇪 👋🏽.",
        "مرحبا بالعالم हिन्दी भाषा ไทย",
    ];
    for (tool, text) in tools.iter_mut().zip(texts) {
        tool["description"] = json!(text);
        tool["parameters"] =
            json!({"type": "object", "properties": {"x": {"type": "string", "description": text}}});
    }
    user.put_catalog(&tools).await.ok();
    let whole = user.assemble(json!({"format": "openai_chat", "profile": "openai"})).await.ok();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let all = names.iter().copied().map(|name| {
        let described = user.assemble(json!({"format": "openai_chat", "profile": "openai", "allow": [name]}));
        async move {
            let answer = described.await.ok();
            let [tool] = answer["tools"].as_array().unwrap().as_slice() else { panic!("{answer}") };
            let exact = tokens::count(&tool.to_string());
            assert_eq!(answer["tokens"]["tools"], json!(exact), "{tool}");
            exact
        }
    });
    let mut sum = 0;
    for tokens in all {
        sum += tokens.await;
    }
    assert_eq!(whole["tokens"]["all"], json!(sum));
    let listing = whole["listing"]["text"].as_str().unwrap();
    assert!(listing.contains('查') && listing.contains('🎂'), "{listing}");
    assert_eq!(whole["tokens"]["listing"], json!(tokens::count(listing)));
    assert!(whole["tokens"].get("estimate").is_none());

    let gemini = user.assemble(json!({"format": "gemini"})).await.ok();
    let (tokens, estimate) = (&gemini["tokens"], &gemini["tokens"]["estimate"]);
    assert_eq!((&tokens["method"], &estimate["factor"]), (&json!("o200k"), &json!(1.04)));
    for key in ["all", "tools", "listing"] {
        let times = (tokens[key].as_f64().unwrap() * 1.04).round() as u64;
        assert_eq!(estimate[key], json!(times), "{key}");
    }
}
