//! A service inside the test's process, for tests that ask it thousands of times: the library in place of HTTP.
//!
//! Bodies are those of the routes, so that a test reads the same whichever way it asks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolrack::core::id::{Id, Scope};
use toolrack::mcp::NoToolSource;
use toolrack::rerank::{AddressPolicy, NoReranker};
use toolrack::service::{
    Actor, AssembleRequest, AuditLimits, BridgeAnswer, BridgeRequest, CacheLimits, Caller, DescribeRequest,
    GrantFields, KeyLimits, Limits, Parts, SearchRequest, Toolrack,
};
use toolrack::store::{MasterKey, SqliteStore, Store};

/// A service on a database of its own.
pub(crate) struct Inside {
    folder: TempDir,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) service: Toolrack,
}

/// A service on the database of a folder.
pub(crate) async fn service(folder: &Path) -> (Arc<SqliteStore>, Toolrack) {
    let store = Arc::new(SqliteStore::open(&folder.join("toolrack.db"), |_| {}).await.unwrap());
    let service = Toolrack::new(Parts {
        store: Arc::<SqliteStore>::clone(&store),
        reranker: Arc::new(NoReranker),
        tool_source: Arc::new(NoToolSource),
        addresses: AddressPolicy { allow_private: true, ..AddressPolicy::default() },
        master_key: MasterKey::from_setting(&"ab".repeat(32)).unwrap(),
        limits: Limits {
            tools_per_catalog: 20_000,
            tool_bytes: 256 << 10,
            depth: 64,
            query_chars: 2_000,
            queries: 10,
            names: 20,
            calls: 20,
            session_ttl: Duration::from_secs(3_600),
            request_timeout: Duration::from_secs(60),
            sessions: 10_000,
            keys: KeyLimits::default(),
            audit: AuditLimits { entries: 1_000, age_ms: i64::MAX },
            mcp_timeout: Duration::from_secs(60),
        },
        caches: CacheLimits {
            catalogs_bytes: 64 << 20,
            views_bytes: 64 << 20,
            vectors_bytes: 64 << 20,
            answers_bytes: 16 << 20,
            sessions: 1_000,
        },
    });
    (store, service)
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn raw_list(values: &[Value]) -> Vec<Box<RawValue>> {
    values.iter().map(raw).collect()
}

fn text(body: &Value, key: &str) -> Option<String> {
    body[key].as_str().map(str::to_owned)
}

fn texts(body: &Value, key: &str) -> Vec<String> {
    let list = body[key].as_array().into_iter().flatten();
    list.map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn user(id: &str) -> Scope {
    Scope::User(Id::parse(id).unwrap())
}

fn caller(user: &str, body: &Value) -> Caller {
    let session = body["session"].as_str().map(|session| Id::parse(session).unwrap());
    Caller { user: Id::parse(user).unwrap(), project: None, session, limits: None, allowances: None }
}

fn fields(body: &Value) -> GrantFields {
    GrantFields {
        selection: serde_json::from_value(body.clone()).unwrap(),
        tools_ref: text(body, "tools_ref"),
        format: text(body, "format"),
        context_window: body["context_window"].as_f64(),
        ..GrantFields::default()
    }
}

impl Inside {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, service) = service(folder.path()).await;
        Self { folder, store, service }
    }

    /// A clean stop and a new start on the same database.
    pub(crate) async fn restart(&mut self) {
        self.service.flush().await.unwrap();
        self.store.close().await.unwrap();
        (self.store, self.service) = service(self.folder.path()).await;
    }

    pub(crate) async fn put_config(&self, id: &str, config: Value) {
        self.service.put_config(&Actor::program(), &user(id), config, None, false).await.unwrap();
    }

    pub(crate) async fn put_catalog(&self, id: &str, tools: &[Value]) {
        self.service.put_catalog(&Actor::program(), &user(id), raw_list(tools), None, false).await.unwrap();
    }

    pub(crate) async fn patch_catalog(&self, id: &str, upsert: &[Value], remove: &[String]) {
        let upsert = raw_list(upsert);
        self.service
            .patch_catalog(&Actor::program(), &user(id), upsert, remove.to_vec(), None, false)
            .await
            .unwrap();
    }

    /// The answer's text, byte for byte.
    pub(crate) async fn assemble(&self, user: &str, body: &Value) -> String {
        let tools = body["tools"].as_array().map(|tools| Arc::from(json!(tools).to_string()));
        let request = AssembleRequest {
            caller: caller(user, body),
            fields: fields(body),
            tools,
            used: texts(body, "used"),
            query: text(body, "query"),
            messages: body["messages"].as_array().map(|messages| raw_list(messages)),
            epoch: body["epoch"] == true,
            if_fingerprint: text(body, "if_fingerprint"),
        };
        let answer = self.service.assemble(request).await.unwrap();
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    pub(crate) async fn search(&self, user: &str, body: &Value) -> Value {
        let request = SearchRequest {
            caller: caller(user, body),
            fields: fields(body),
            queries: vec![text(body, "query").unwrap()],
            limit: body["limit"].as_f64(),
            detail: text(body, "detail"),
            warm: body["warm"].as_bool(),
            explain: None,
            context: None,
            form: None,
            call_id: None,
        };
        let mut answer = serde_json::to_value(self.service.search(request).await.unwrap()).unwrap();
        answer["took_ms"] = json!(0);
        answer
    }

    pub(crate) async fn describe(&self, user: &str, body: &Value) -> Value {
        let request =
            DescribeRequest { caller: caller(user, body), fields: fields(body), names: texts(body, "names") };
        serde_json::to_value(self.service.describe(request).await.unwrap()).unwrap()
    }

    pub(crate) async fn bridge(&self, user: &str, body: &Value) -> BridgeAnswer {
        let calls = body["calls"].as_array().unwrap().clone();
        let request = BridgeRequest {
            caller: caller(user, body),
            fields: fields(body),
            actor: Actor::program(),
            calls,
        };
        self.service.bridge(request).await.unwrap()
    }
}
