//! The database file: copies of it, a full disk, damage, and what must not be written to.

mod backup;
mod faults;

use serde_json::{Value, json};

use crate::app::{TestApp, User};

/// Tools of some size, none of which is found for the words of another.
fn tools(count: usize) -> Vec<Value> {
    let tool = |at: usize| {
        let text = format!("Does thing {at}. {}", "It does it well. ".repeat(20));
        json!({"group": "things", "name": format!("thing_{at}"), "description": text})
    };
    (0..count).map(tool).collect()
}

fn matcher() -> Value {
    json!({"matcher": {"endpoint": "https://rerank.example.com/v2/rerank", "api_key": "sk-very-secret-4d06"}})
}

/// How the stored key of a user's endpoint is shown.
async fn shown_key(user: &User) -> Value {
    user.client().get(&user.path(&["config"])).await.ok()["matcher"]["api_key"].clone()
}

/// What stands in the log since a moment.
fn log_since(app: &TestApp, length: usize) -> String {
    app.logs().split_off(length)
}
