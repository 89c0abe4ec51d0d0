//! Keys: who gets in, to what, and for how long.

mod lives;
mod master;
mod program;
mod secrets;
mod walk;

use serde_json::{Value, json};

use crate::app::{Client, TestApp};

/// A key that was made over the API, with its document.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) key: String,
    pub(crate) document: Value,
}

impl Made {
    fn from(mut document: Value) -> Self {
        let key = document.as_object_mut().unwrap().shift_remove("key").unwrap();
        Self { key: key.as_str().unwrap().to_owned(), document }
    }

    pub(crate) fn id(&self) -> &str {
        self.document["id"].as_str().unwrap()
    }

    pub(crate) fn path(&self) -> String {
        format!("/v1/keys/{}", self.id())
    }
}

/// Makes a key of a role with these bindings.
pub(crate) async fn make(app: &TestApp, role: &str, bindings: Value) -> Made {
    make_with(app.admin(), role, bindings).await
}

async fn make_with(client: &Client, role: &str, bindings: Value) -> Made {
    let mut body = json!({"name": format!("a key of the role {role}"), "role": role});
    body.as_object_mut().unwrap().extend(bindings.as_object().unwrap().clone());
    let answer = client.post("/v1/keys", &body).await;
    answer.expect_status(201);
    let made = Made::from(answer.json());
    assert_eq!(answer.header("location"), Some(&*made.path()));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    made
}
