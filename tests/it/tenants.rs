//! Several tenants at once, with keys of their own: what each may see, by a model that the test keeps beside the service.
//!
//! All tenants use the same names, queries and sessions, so that anything that is kept under less than a tenant's name would
//! be given to another. Every text carries the mark of the scope that it belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::app::{Client, TestApp};
use crate::keys::make;
use crate::messy::Rng;
use crate::model::array_names;

const USERS: usize = 5;
const PROJECTS: [&str; 2] = ["red", "blue"];
const VERBS: [&str; 4] = ["open", "close", "paint", "count"];
const THINGS: [&str; 5] = ["door", "ticket", "barrel", "invoice", "garden"];
const FORMATS: [&str; 4] = ["canonical", "anthropic", "openai_chat", "gemini"];
const STEPS: usize = 40;

/// A scope's catalog as the test knows it: names of tools.
type Book = BTreeSet<String>;

/// The word that stands in all texts of a scope.
fn mark(scope: &str) -> String {
    format!("zqmark{scope}")
}

fn tool(scope: &str, name: &str) -> Value {
    let mark = mark(scope);
    json!({"name": name, "group": format!("{mark} things"), "description": format!("Can {} it. {mark}", name.replace('_', " a ")),
        "parameters": {"type": "object", "properties": {format!("{mark}_key"): {"type": "string"}}, "required": [format!("{mark}_key")]}})
}

fn some_names(rng: &mut Rng) -> Book {
    let all = VERBS.iter().flat_map(|verb| THINGS.iter().map(move |thing| format!("{verb}_{thing}")));
    all.filter(|_| rng.chance(60)).collect()
}

/// Writes a scope's catalog anew.
async fn write(client: &Client, path: &str, scope: &str, names: &Book) {
    let tools: Vec<Value> = names.iter().map(|name| tool(scope, name)).collect();
    client.put(&format!("{path}/catalog"), &json!({ "tools": tools })).await.ok();
    // Aliases and groups are texts of the scope as well.
    let aliases: BTreeMap<&String, Vec<String>> =
        names.iter().take(3).map(|name| (name, vec![format!("unlock {}", mark(scope))])).collect();
    let groups =
        json!([{"name": format!("set {}", mark(scope)), "description": mark(scope), "prefixes": ["open_"]}]);
    client
        .put(&format!("{path}/config"), &json!({"aliases": aliases, "groups": groups, "enabled": "on"}))
        .await
        .ok();
}

/// One tenant with its two keys, and the projects that the keys are good for.
struct Tenant {
    id: String,
    projects: Vec<&'static str>,
    agent: Client,
    setup: Client,
    names: Book,
    rng: Rng,
}

impl Tenant {
    async fn new(app: &TestApp, at: usize, seed: u64) -> Self {
        let id = format!("u{at}");
        let projects: Vec<&'static str> = PROJECTS
            .iter()
            .enumerate()
            .filter(|(bit, _)| at >> bit & 1 == 1)
            .map(|(_, name)| *name)
            .collect();
        let bindings = || json!({"users": [id], "projects": projects});
        let agent = app.with_key(&make(app, "agent", bindings()).await.key);
        let setup = app.with_key(&make(app, "setup", json!({"users": [id]})).await.key);
        Self { agent, setup, projects, names: Book::new(), rng: Rng::new(seed * 100 + at as u64), id }
    }

    /// Random requests; every answer is held against what this tenant may see.
    async fn run(&mut self, projects: &BTreeMap<&'static str, Book>) {
        for _ in 0..STEPS {
            match self.rng.below(10) {
                0 => {
                    self.names = some_names(&mut self.rng);
                    write(&self.setup, &format!("/v1/users/{}", self.id), &self.id, &self.names).await;
                }
                1 => self.reach_over().await,
                _ => self.ask(projects).await,
            }
        }
    }

    /// Asks for what is not this tenant's.
    async fn reach_over(&mut self) {
        let other =
            format!("u{}", (self.rng.below(USERS - 1) + 1 + self.id[1..].parse::<usize>().unwrap()) % USERS);
        for path in ["catalog", "config", "catalog/tools/open_door"] {
            self.setup.get(&format!("/v1/users/{other}/{path}")).await.problem(404, "not_found");
        }
        self.agent.get(&format!("/v1/users/{other}/sessions/s")).await.problem(404, "not_found");
        self.agent
            .post("/v1/search", &json!({"user": other, "query": "open"}))
            .await
            .problem(404, "not_found");
        let foreign = PROJECTS.iter().find(|project| !self.projects.contains(project));
        if let Some(project) = foreign {
            let body = json!({"user": self.id, "project": project, "query": "open"});
            self.agent.post("/v1/search", &body).await.problem(404, "not_found");
        }
    }

    async fn ask(&mut self, projects: &BTreeMap<&'static str, Book>) {
        let project = if self.projects.is_empty() || self.rng.chance(40) {
            None
        } else {
            Some(*self.rng.pick(&self.projects))
        };
        let of_project = project.map(|project| &projects[project]);
        let visible: BTreeSet<&String> = self.names.iter().chain(of_project.into_iter().flatten()).collect();
        let mut body = json!({"user": self.id, "format": self.rng.pick(&FORMATS)});
        if let Some(project) = project {
            body["project"] = json!(project);
        }
        if self.rng.chance(60) {
            body["session"] = json!("s");
        }
        let (verb, thing) = (self.rng.pick(&VERBS), self.rng.pick(&THINGS));
        let name = format!("{verb}_{thing}");
        let path = match self.rng.below(5) {
            0 => "/v1/assemble",
            1 => {
                body["query"] = json!(format!("{verb} the {thing}"));
                "/v1/search"
            }
            2 => {
                body["names"] = json!([name, format!("{verb}_thing")]);
                "/v1/describe"
            }
            3 => {
                body["calls"] = json!([{"name": name, "arguments": {}}, {"name": "unlock", "arguments": {}}]);
                "/v1/call"
            }
            _ => {
                let id =
                    json!({"id": "1", "name": "tool_search", "arguments": {"query": ["unlock it", thing]}});
                body["format"] = json!("canonical");
                body["calls"] =
                    json!([id, {"id": "2", "name": "tool_describe", "arguments": {"name": name}}]);
                "/v1/bridge"
            }
        };
        let answer = self.agent.post(path, &body).await;
        let ok = answer.ok();
        let allowed: Vec<String> = [Some(&*self.id), project].into_iter().flatten().map(mark).collect();
        assert_marks(answer.text(), &allowed, &format!("{} {path} {body}", self.id));
        match path {
            "/v1/assemble" => {
                let listed = ok["listing"]["text"].as_str().unwrap_or_default();
                let counts = &ok["counts"];
                let all = counts["core"].as_u64().unwrap() + counts["deferred"].as_u64().unwrap();
                assert_eq!(all, visible.len() as u64, "{body}: {counts}");
                for name in array_names(&ok).iter().filter(|name| !name.starts_with("tool_")) {
                    assert!(visible.contains(&(*name).to_owned()), "{name}: {body}");
                }
                // A session keeps its listing and tells what is new; without one it is that of the moment.
                if body.get("session").is_none() {
                    let named = visible.iter().filter(|name| listed.contains(&format!("{name}:"))).count();
                    assert_eq!(named, visible.len(), "{body}: {listed}");
                }
            }
            "/v1/search" => {
                for found in ok["results"][0]["matches"].as_array().unwrap() {
                    assert!(visible.contains(&found["name"].as_str().unwrap().to_owned()), "{found}");
                }
            }
            "/v1/describe" => {
                assert_eq!(
                    ok["tools"].as_array().unwrap().len(),
                    usize::from(visible.contains(&name)),
                    "{body}: {ok}"
                );
            }
            "/v1/call" => {
                let code = &ok["results"][0]["error"]["code"];
                let wanted = if visible.contains(&name) { "missing_arguments" } else { "unknown_tool" };
                assert_eq!(code, wanted, "{body}: {ok}");
            }
            _ => {}
        }
    }
}

/// Every mark in a text is one of these.
fn assert_marks(text: &str, allowed: &[String], what: &str) {
    for (at, _) in text.match_indices("zqmark") {
        let word: String = text[at..].chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(allowed.contains(&word), "{what}: {word} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_at_once_see_what_is_theirs_and_nothing_else() {
    for seed in 0..3 {
        let app = Arc::new(TestApp::builder().set("TOOLRACK_LOG_LEVEL", "debug").start().await);
        let mut rng = Rng::new(seed);
        let mut projects = BTreeMap::new();
        let mut tenants = Vec::new();
        for at in 0..USERS {
            tenants.push(Tenant::new(&app, at, seed).await);
        }
        for _ in 0..3 {
            // What several tenants see moves while none of them asks, so that the model stays simple.
            for project in PROJECTS {
                let names = some_names(&mut rng);
                write(app.admin(), &format!("/v1/projects/{project}"), project, &names).await;
                projects.insert(project, names);
            }
            let book = Arc::new(projects.clone());
            let running: Vec<_> = tenants
                .drain(..)
                .map(|mut tenant| {
                    let book = Arc::clone(&book);
                    tokio::spawn(async move {
                        tenant.run(&book).await;
                        tenant
                    })
                })
                .collect();
            for tenant in running {
                tenants.push(tenant.await.unwrap());
            }
        }
        let metrics = app.admin().get("/metrics").await;
        assert_marks(metrics.text(), &[], "metrics");
        assert_marks(&app.logs(), &[], "logs");
        for id in 0..USERS {
            assert!(!metrics.text().contains(&format!("\"u{id}\"")), "a tenant is named in the metrics");
        }
    }
}
