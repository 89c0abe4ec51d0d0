//! What an answer promised is there after the process was killed in the middle of its work, and a stop loses nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::app::{ADMIN_KEY, TestApp, User};
use crate::messy;
use crate::model::{names_after_bridge, strings};

/// Sessions that work at the same time.
const SESSIONS: usize = 12;

/// Room in each warm set; small, so that evictions are among the promises.
const ROOM: usize = 5;

/// Tools that can be told apart by their names alone.
fn numbered(count: usize) -> Vec<Value> {
    let tool =
        |at: usize| json!({"group": "numbers", "name": format!("number_{at}"), "description": "A number."});
    (0..count).map(tool).collect()
}

/// What one session was promised by the answers that arrived.
#[derive(Debug, Clone, Default)]
struct Promised {
    warm: VecDeque<String>,
    /// The tool of a request whose answer did not arrive: it may be warm or not, nothing between.
    in_flight: Option<String>,
    next: usize,
}

impl Promised {
    fn with(&self, name: &str) -> VecDeque<String> {
        let mut warm = self.warm.clone();
        warm.push_back(name.to_owned());
        while warm.len() > ROOM {
            warm.pop_front();
        }
        warm
    }

    /// Finds tools until the service is gone. Every tool once, so that the oldest in the set is the first in it.
    async fn work(
        mut self,
        user: User,
        session: usize,
        answered: Arc<AtomicUsize>,
        progress: Arc<Notify>,
    ) -> Self {
        loop {
            let name = format!("number_{}", self.next);
            self.in_flight = Some(name.clone());
            self.next += 1;
            // Searches and describes in turns: both warm, and both must be durable.
            let (path, mut body) = match self.next % 2 {
                0 => ("/v1/search", json!({"query": name, "limit": 1})),
                _ => ("/v1/describe", json!({ "name": name })),
            };
            body["user"] = json!(user.id);
            body["session"] = json!(format!("s{session}"));
            let headers = [("content-type", "application/json")];
            let sent = user.client().try_send(Method::POST, path, &headers, body.to_string().into()).await;
            let Ok(answer) = sent else { return self };
            let answer = answer.ok();
            let next = self.with(&name);
            let evicted: Vec<&String> = self.warm.iter().filter(|warm| !next.contains(warm)).collect();
            assert_eq!((&answer["warmed"], strings(&answer["evicted"])), (&json!([name]), as_strs(&evicted)));
            self.warm = next;
            self.in_flight = None;
            answered.fetch_add(1, Ordering::Relaxed);
            progress.notify_one();
        }
    }

    /// What the session has after a restart becomes what it is promised from here on.
    fn settle(&mut self, session: usize, found: Vec<&str>) {
        let before: Vec<&str> = self.warm.iter().map(String::as_str).collect();
        if found != before {
            let name =
                self.in_flight.as_deref().expect("a session that lost nothing has what it was promised");
            let after = self.with(name);
            assert_eq!(
                found,
                after.iter().map(String::as_str).collect::<Vec<_>>(),
                "session {session}; before: {before:?}"
            );
            self.warm = after;
        }
        self.in_flight = None;
    }
}

fn as_strs<'a>(names: &[&'a String]) -> Vec<&'a str> {
    names.iter().map(|name| name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_promised_warm_set_survives_a_kill_during_load() {
    let mut app = TestApp::start().await;
    let id = app.user().id;
    app.user_called(&id).put_catalog(&numbered(2_000)).await.ok();
    app.user_called(&id).put_config(&json!({"max_warm_tools": ROOM})).await.ok();
    for session in 0..SESSIONS {
        let body = json!({"session": format!("s{session}"), "format": "anthropic", "deny": [format!("number_{}", 1_900 + session)]});
        app.user_called(&id).assemble(body).await.ok();
    }
    let mut promised = vec![Promised::default(); SESSIONS];
    for kill_after in [60, 200, 331] {
        let (answered, progress) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let mut working = JoinSet::new();
        for (session, state) in promised.drain(..).enumerate() {
            let work =
                state.work(app.user_called(&id), session, Arc::clone(&answered), Arc::clone(&progress));
            working.spawn(async move { (session, work.await) });
        }
        while answered.load(Ordering::Relaxed) < kill_after {
            progress.notified().await;
        }
        app.kill();
        let mut ended = working.join_all().await;
        ended.sort_by_key(|(session, _)| *session);
        promised = ended.into_iter().map(|(_, state)| state).collect();

        app.start_again().await;
        let user = app.user_called(&id);
        for (session, state) in promised.iter_mut().enumerate() {
            let name = format!("s{session}");
            let document = user.client().get(&user.path(&["sessions", &name])).await.ok();
            let warm: Vec<&str> = document["warm"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            state.settle(session, warm.clone());
            assert_eq!(document["format"], "anthropic", "the settings of the last assembly are durable");
            let denied = format!("number_{}", 1_900 + session);
            let hidden = user.describe(json!({"session": name, "name": denied})).await.ok();
            assert_eq!(hidden["not_found"][0]["code"], "unknown_tool");
            let assembled =
                user.assemble(json!({"session": name, "format": "anthropic", "deny": [denied]})).await.ok();
            assert_eq!(names_after_bridge(&assembled), warm);
            assert_ne!(assembled["cache"]["reason"], "first");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_one_session_at_the_same_time_lose_nothing() {
    let mut app = TestApp::start().await;
    let id = app.user().id;
    app.user_called(&id).put_catalog(&numbered(200)).await.ok();
    app.user_called(&id).put_config(&json!({"max_warm_tools": 64})).await.ok();
    let mut working = JoinSet::new();
    for at in 0..40 {
        let user = app.user_called(&id);
        working.spawn(async move {
            let name = format!("number_{at}");
            let answer = user.describe(json!({"session": "s", "name": name})).await.ok();
            assert_eq!((&answer["warmed"], &answer["evicted"]), (&json!([name]), &json!([])));
            name
        });
    }
    let mut expected = working.join_all().await;
    expected.sort_unstable();
    let mut seen = Vec::new();
    for start in 0..2 {
        if start > 0 {
            app.kill();
            app.start_again().await;
        }
        let answer = app.user_called(&id).assemble(json!({"session": "s"})).await.ok();
        seen.push(strings(&answer["warm"]).into_iter().map(str::to_owned).collect::<Vec<_>>());
    }
    assert_eq!(seen[0], seen[1], "the order survives too");
    seen[0].sort_unstable();
    assert_eq!(seen[0], expected);
}

#[tokio::test]
async fn pins_resets_and_deletes_survive_a_kill() {
    let mut app = TestApp::start().await;
    let id = app.user().id;
    let user = app.user_called(&id);
    user.put_catalog(&numbered(20)).await.ok();
    for session in ["pinned", "reset", "deleted"] {
        user.describe(json!({"session": session, "names": ["number_1", "number_2"]})).await.ok();
    }
    let names = json!({"names": ["number_2", "number_7"]});
    user.client().post(&user.path(&["sessions", "pinned", "pin"]), &names).await.ok();
    user.client().post(&user.path(&["sessions", "reset", "reset"]), &json!({})).await.ok();
    user.client().delete(&user.path(&["sessions", "deleted"])).await.expect_status(204);
    app.kill();
    app.start_again().await;
    let user = app.user_called(&id);
    let warm = async |session: &str| {
        let document = user.client().get(&user.path(&["sessions", session])).await.ok();
        let warm = document["warm"].as_array().unwrap().iter();
        warm.map(|tool| (tool["name"].clone(), tool["pinned"].clone())).collect::<Vec<_>>()
    };
    let expected = [("number_1", false), ("number_2", true), ("number_7", true)];
    assert_eq!(warm("pinned").await, expected.map(|(name, pinned)| (json!(name), json!(pinned))));
    assert_eq!((warm("reset").await, warm("deleted").await), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_catalog_is_the_old_or_the_new_one_after_a_kill() {
    let mut app = TestApp::start().await;
    let id = app.user().id;
    let old = app.user_called(&id).put_catalog(&numbered(20)).await.ok();
    let versions = [messy::catalog(21, 1_500), messy::catalog(22, 1_500)];
    let mut allowed = vec![old["catalog_version"].clone()];
    for (tools, rounds) in versions.iter().zip([1, 40]) {
        let dry = format!("{}?dry_run=true", app.user_called(&id).path(&["catalog"]));
        let planned = app.admin().put(&dry, &json!({ "tools": tools })).await.ok();
        allowed.push(planned["catalog_version"].clone());
        let (user, body) = (app.user_called(&id), json!({ "tools": tools }).to_string());
        let upload = tokio::spawn(async move {
            let headers = [("content-type", "application/json")];
            let sent =
                user.client().try_send(Method::PUT, &user.path(&["catalog"]), &headers, body.into()).await;
            sent.is_ok_and(|answer| answer.status == 200)
        });
        // Whenever the kill comes, the catalog must be whole; other requests give the upload some time.
        for _ in 0..rounds {
            app.admin().get("/healthz").await.ok();
        }
        app.kill();
        let answered = upload.await.unwrap();
        app.start_again().await;
        let user = app.user_called(&id);
        let stored = user.client().get(&user.path(&["catalog"])).await.ok();
        assert!(allowed.contains(&stored["catalog_version"]), "{}", stored["catalog_version"]);
        assert!(
            !answered || stored["catalog_version"] == planned["catalog_version"],
            "an answer was a promise"
        );
        let again = user.put_catalog(stored["tools"].as_array().unwrap()).await.ok();
        assert_eq!(
            (&again["catalog_version"], &again["changed"]["count"]),
            (&stored["catalog_version"], &json!(0))
        );
    }
}

#[tokio::test]
async fn a_stop_lets_a_running_request_end_and_keeps_what_it_wrote() {
    let mut app = TestApp::start().await;
    let id = app.user().id;
    let body = json!({"tools": numbered(300)}).to_string();
    let address = app.url().strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "PUT /v1/users/{id}/catalog HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN_KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut seen = [0; 25];
    // The service asks for the body: the request is running.
    stream.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"HTTP/1.1 100 Continue\r\n\r\n");
    app.signal_stop();
    while TcpStream::connect(&address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let status = app.ended().await;
    assert!(status.success(), "{status}: {}", app.logs());
    app.start_again().await;
    let user = app.user_called(&id);
    let stored = user.client().get(&user.path(&["catalog"])).await.ok();
    assert_eq!(stored["tools"].as_array().unwrap().len(), 300);
}

#[tokio::test]
async fn a_stop_writes_ages_and_counters_that_were_buffered() {
    let builder = TestApp::builder().set("TOOLRACK_SESSION_FLUSH_MS", 60_000);
    let mut app = builder.start().await;
    let id = app.user().id;
    let user = app.user_called(&id);
    user.put_catalog(&numbered(30)).await.ok();
    user.describe(json!({"session": "s", "names": ["number_1", "number_2", "number_3"]})).await.ok();
    user.assemble(json!({"session": "s"})).await.ok();
    // None of these changes anything but ages and counters.
    user.call(json!({"session": "s", "name": "number_1"})).await.ok();
    user.search(json!({"session": "s", "query": "number_2", "limit": 1})).await.ok();
    user.search(json!({"session": "s", "query": "nothing like it at all", "warm": false})).await.ok();
    user.assemble(json!({"session": "s"})).await.ok();
    let read = async |app: &TestApp| {
        let user = app.user_called(&id);
        user.client().get(&user.path(&["sessions", "s"])).await.ok()
    };
    let before = read(&app).await;
    let ledger = &before["ledger"];
    for (counter, times) in [("assemblies", 2), ("searches", 2), ("describes", 1), ("calls", 1)] {
        assert_eq!(ledger[counter], times, "{counter}");
    }
    app.restart().await;
    assert_eq!(read(&app).await, before);
    // The age counts: the tool that was not used since is the one that leaves.
    let user = app.user_called(&id);
    user.put_config(&json!({"max_warm_tools": 3})).await.ok();
    let next = user.describe(json!({"session": "s", "name": "number_9"})).await.ok();
    assert_eq!(next["evicted"], json!(["number_3"]));
}

#[tokio::test]
async fn live_tools_survive_a_kill_and_stay_with_their_session() {
    let mut app = TestApp::start().await;
    let id = app.user().id;
    let answer = app.user_called(&id).assemble(json!({"session": "s", "tools": numbered(25)})).await.ok();
    app.user_called(&id).describe(json!({"session": "s", "name": "number_4"})).await.ok();
    app.kill();
    app.start_again().await;
    let user = app.user_called(&id);
    let called = user.call(json!({"session": "s", "name": "number_7"})).await.ok();
    assert_eq!(called["results"][0]["ok"], true);
    let again = user.assemble(json!({"session": "s", "tools_ref": answer["tools_ref"]})).await.ok();
    assert_eq!(again["warm"], json!(["number_4", "number_7"]));
}
