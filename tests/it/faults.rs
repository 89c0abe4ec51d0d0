//! Faults under several processes on one PostgreSQL: while each lasts, requests are answered or refused in time; after it, everything
//! that was promised is there and the service is back without a restart.

pub(crate) mod traffic;

use std::time::Duration;

use serde_json::json;
use sqlx::Connection as _;

use crate::app::{Builder, TestApp, User};
use crate::postgres::{MASTER_KEY, fake_time};
use crate::samples::paints;
use traffic::Traffic;

#[path = "../postgres/own.rs"]
mod own;

use own::OwnServer;

/// What takes longer does not come any more.
const PATIENCE: Duration = Duration::from_secs(90);

/// Requests that are answered again, to say that the service is back.
const ANSWERED_AGAIN: usize = 40;

/// Looks until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let look = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, look).await.is_ok(), "waited for {what} in vain");
}

fn on(server: &OwnServer) -> Builder {
    TestApp::builder().database(&server.url()).set("TOOLRACK_SECRETS_MASTER_KEY", MASTER_KEY)
}

/// Two processes on a server of their own, and a user of both.
struct Stage {
    server: OwnServer,
    apps: Vec<TestApp>,
    user: String,
}

impl Stage {
    async fn new(user: &str) -> Option<Self> {
        let server = OwnServer::start()?;
        let apps = vec![on(&server).start().await, on(&server).start().await];
        let stage = Self { server, apps, user: user.to_owned() };
        stage.at(0).put_catalog(&paints()).await.ok();
        stage.at(0).put_config(&json!({"max_warm_tools": 64})).await.ok();
        Some(stage)
    }

    fn at(&self, app: usize) -> User {
        self.apps[app].user_called(&self.user)
    }

    fn traffic(&self) -> Traffic {
        let urls = self.apps.iter().map(|app| app.url().to_owned()).collect();
        Traffic::start(urls, &self.user)
    }

    /// Every process says that it is ready, or that it is not.
    async fn readiness(&self, wanted: u16) {
        for app in &self.apps {
            let state = &mut 0;
            until(&format!("readiness {wanted}"), async || {
                *state = traffic::status(&format!("{}/readyz", app.url())).await;
                *state == wanted
            })
            .await;
        }
    }

    /// The traffic is answered again, and what it was promised is at every process.
    async fn is_back(&self, traffic: Traffic) {
        self.readiness(200).await;
        traffic.goes_on(ANSWERED_AGAIN).await;
        let promised = traffic.end().await;
        assert_eq!(promised.violations, Vec::<String>::new());
        for app in 0..self.apps.len() {
            promised.is_kept(&self.at(app)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_is_restarted() {
    let Some(mut stage) = Stage::new("restarted").await else { return };
    for down in ["stop", "crash"] {
        let traffic = stage.traffic();
        traffic.goes_on(ANSWERED_AGAIN).await;
        stage.server.tell(down);
        stage.readiness(503).await;
        traffic.is_refused().await;
        stage.server.tell("start");
        stage.is_back(traffic).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_becomes_a_standby() {
    let Some(mut stage) = Stage::new("standby").await else { return };
    let traffic = stage.traffic();
    traffic.goes_on(ANSWERED_AGAIN).await;
    stage.server.tell("standby");
    stage.readiness(503).await;
    for app in 0..stage.apps.len() {
        until("a reason", async || {
            let told = stage.apps[app].admin().get("/readyz").await.json();
            told["components"]["database"]["status"] == "read_only"
        })
        .await;
        let refused = stage.at(app).put_config(&json!({"max_warm_tools": 63})).await;
        let problem = refused.problem(503, "unavailable");
        assert!(problem["detail"].as_str().unwrap().contains("standby"), "{problem}");
    }
    traffic.is_refused().await;
    // Not each of them waits for a server that takes writes.
    let refused = async {
        for _ in 0..40 {
            stage.at(0).put_config(&json!({"max_warm_tools": 63})).await.problem(503, "unavailable");
        }
    };
    assert!(tokio::time::timeout(PATIENCE, refused).await.is_ok());
    stage.server.tell("promote");
    stage.is_back(traffic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_is_paused() {
    let Some(mut stage) = Stage::new("paused").await else { return };
    let traffic = stage.traffic();
    traffic.goes_on(ANSWERED_AGAIN).await;
    stage.server.tell("pause");
    stage.readiness(503).await;
    // A request that hung longer than the client waits is a violation.
    traffic.is_refused().await;
    stage.server.tell("resume");
    stage.is_back(traffic).await;

    // A process that is to end does so, and one that is to start says why it does not.
    stage.at(1).search(json!({"session": "late", "query": "amber"})).await.ok();
    stage.server.tell("pause");
    let start = tokio::task::spawn_blocking({
        let url = stage.server.url();
        move || {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_toolrack"));
            command
                .args(["serve", "--listen", "127.0.0.1:0", "--no-auth", "--database-url", &url])
                .env_clear();
            command.env("TOOLRACK_SECRETS_MASTER_KEY", MASTER_KEY).stdin(std::process::Stdio::null());
            command.output().unwrap()
        }
    });
    stage.apps[1].signal_stop();
    stage.apps[1].ended().await;
    let start = start.await.unwrap();
    let text = String::from_utf8(start.stderr).unwrap();
    assert!(!start.status.success() && text.contains("cannot be reached"), "{text}");
    stage.server.tell("resume");
    stage.apps[1].start_again().await;
    assert_eq!(stage.at(1).assemble(json!({"session": "late"})).await.ok()["warm"], json!(["amber"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connections_are_cut() {
    let Some(stage) = Stage::new("cut").await else { return };
    let mut operator = sqlx::PgConnection::connect(&stage.server.url()).await.unwrap();
    let cut = async |operator: &mut sqlx::PgConnection| {
        let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        let (cut,): (i64,) = sqlx::query_as(all).fetch_one(operator).await.unwrap();
        cut
    };
    // Without writes nobody notices.
    for _ in 0..5 {
        let users: Vec<User> = (0..2).map(|app| stage.at(app)).collect();
        let path = users[0].path(&["sessions"]);
        let reads = || futures_util::future::join_all((0..24).map(|at| users[at % 2].client().get(&path)));
        assert!(reads().await.iter().all(|read| read.status == 200));
        assert!(cut(&mut operator).await > 0);
        assert!(reads().await.iter().all(|read| read.status == 200));
    }
    let traffic = stage.traffic();
    for _ in 0..5 {
        traffic.goes_on(ANSWERED_AGAIN).await;
        assert!(cut(&mut operator).await > 0);
    }
    stage.is_back(traffic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_the_database_is_full() {
    let Some(mut stage) = Stage::new("full").await else { return };
    let traffic = stage.traffic();
    traffic.goes_on(ANSWERED_AGAIN).await;
    stage.server.tell("limit 1300000");
    // Processes of the server that begin later have its limit, too.
    let upload = |at: usize| {
        let words: String =
            (0..4_000).map(|word| format!("{:x} ", (word + 1) * (at + 7) * 2_654_435_761)).collect();
        let tool = |tool: usize| json!({"name": format!("tool_{at}_{tool}"), "description": words});
        (0..4).map(tool).collect::<Vec<_>>()
    };
    let mut stored = Vec::new();
    let refused = loop {
        let user = stage.apps[stored.len() % 2].user_called(&format!("filler-{}", stored.len()));
        let answer = user.put_catalog(&upload(stored.len())).await;
        if answer.status != 200 {
            answer.problem(507, "storage_full");
            break user;
        }
        stored.push((user, answer.ok()["catalog_version"].clone()));
        assert!(stored.len() < 200, "the limit holds");
    };
    let states =
        futures_util::future::join_all(stage.apps.iter().map(|app| app.admin().get("/readyz"))).await;
    let full = states.iter().filter(|state| state.ok()["components"]["storage"]["status"] == "full");
    assert!(full.count() >= 1, "reads go on, and one has met the limit");
    stage.at(0).assemble(json!({})).await.ok();
    stage.at(1).search(json!({"query": "amber"})).await.ok();
    stage.server.tell("limit unlimited");
    until("room", async || refused.put_catalog(&upload(999)).await.status == 200).await;
    stage.is_back(traffic).await;
    for (user, version) in &stored {
        let there = user.client().get(&user.path(&["catalog"])).await.ok();
        assert_eq!(&there["catalog_version"], version);
    }
    let mut windows = 1_000;
    until("room to be told", async || {
        windows += 1;
        let states = stage.apps.iter().map(async |app| {
            // What is stored says that there is room.
            app.user().put_config(&json!({"context_window": windows})).await.ok();
            app.admin().get("/readyz").await.ok()["components"]["storage"]["status"] == "ok"
        });
        futures_util::future::join_all(states).await.into_iter().all(|there| there)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_ends_because_its_log_of_writes_finds_no_room() {
    let Some(mut stage) = Stage::new("log").await else { return };
    let traffic = stage.traffic();
    traffic.goes_on(ANSWERED_AGAIN).await;
    // Less than one file of the log.
    stage.server.tell("limit 500000");
    traffic.is_refused().await;
    stage.server.tell("crash");
    stage.server.tell("start");
    stage.is_back(traffic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_killed() {
    let Some(mut stage) = Stage::new("killed").await else { return };
    let traffic = stage.traffic().that_may_be_cut();
    traffic.goes_on(ANSWERED_AGAIN).await;
    stage.apps[1].kill();
    traffic.goes_on(ANSWERED_AGAIN).await;
    let promised = traffic.end().await;
    assert_eq!(promised.violations, Vec::<String>::new());
    promised.is_kept(&stage.at(0)).await;
    stage.apps[1].start_again().await;
    let traffic = stage.traffic();
    stage.is_back(traffic).await;
    promised.sessions_are_kept(&stage.at(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_are_an_hour_apart() {
    let Some(library) = fake_time() else { return };
    let Some(mut stage) = Stage::new("clocks").await else { return };
    let key = async |app: &TestApp, seconds: u64| {
        let key = json!({"name": "short", "role": "agent", "users": ["*"], "expires_in_seconds": seconds});
        app.admin().post("/v1/keys", &key).await.json()["key"].as_str().unwrap().to_owned()
    };
    let half_an_hour = key(&stage.apps[0], 1_800).await;
    stage.at(0).search(json!({"session": "kept", "query": "amber"})).await.ok();
    stage.at(0).search(json!({"session": "old", "query": "amber"})).await.ok();
    // Ages are written at the end.
    stage.apps[0].restart().await;
    // Both begin with a look for what has expired; half an hour is less than their clocks are wrong by.
    for wrong in ["+1h", "-1h"] {
        let app = on(&stage.server).set("LD_PRELOAD", &library).set("FAKETIME", wrong);
        stage.apps.push(app.set("TOOLRACK_SESSION_TTL_SECONDS", 1_800).start().await);
    }
    let traffic = stage.traffic();
    stage.is_back(traffic).await;
    for app in 0..stage.apps.len() {
        let user = stage.apps[app].user_with_key(&stage.user, &half_an_hour);
        let shown = user.assemble(json!({"session": "kept"})).await.ok();
        assert_eq!(shown["warm"], json!(["amber"]), "{app}");
    }
    // What is old by the clock of the database is old for all.
    let mut operator = sqlx::PgConnection::connect(&stage.server.url()).await.unwrap();
    let age = "UPDATE sessions SET last_seen = last_seen - 2400000 WHERE session_id = 'old'";
    assert_eq!(sqlx::query(age).execute(&mut operator).await.unwrap().rows_affected(), 1);
    for app in 2..stage.apps.len() {
        assert_eq!(stage.at(app).assemble(json!({"session": "old"})).await.ok()["warm"], json!([]), "{app}");
    }
    let short = key(&stage.apps[3], 5).await;
    for app in &stage.apps {
        let user = app.user_with_key(&stage.user, &short);
        until("the end of a key", async || user.assemble(json!({})).await.status == 401).await;
    }
}
