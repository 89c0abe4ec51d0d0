//! Reports of tool definitions that a provider refused, or that came back wrong: each row holds what was uploaded, for whom, and what
//! has to stand in the array; names and arguments lead back through `call` and `bridge`.
//!
//! Rows of one kind stand in one table; rows that others added around a report have its number. What the arrays must be is also held
//! against the provider's rules by `checker`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::app::{TestApp, User};
use crate::checker::{Asked, faults};
use crate::model::{array_names, definition, entries, model_call, warning_codes};

mod arrays;
mod keys;
mod names;
mod schemas;

/// The collected reports by number; those that are missing were about clients and servers.
const REPORTS: [u8; 61] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28, 29, 31, 32,
    33, 34, 35, 37, 38, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 51, 52, 54, 55, 56, 57, 58, 59, 60, 62, 64,
    65, 66, 67, 68, 69, 70, 71,
];

#[test]
fn every_report_has_a_row() {
    let tables = [names::reports(), schemas::reports(), keys::reports(), arrays::REPORTS.to_vec()];
    let rows: BTreeSet<u8> = tables.concat().into_iter().collect();
    assert_eq!(rows, BTreeSet::from(REPORTS));
}

const fn asked(format: &'static str, profile: &'static str) -> Asked<'static> {
    Asked { profile, format, openapi: false }
}

const GENERIC: Asked<'_> = asked("canonical", "generic");
const OPENAI: Asked<'_> = asked("openai_chat", "openai");
const RESPONSES: Asked<'_> = asked("openai_responses", "openai");
const AZURE: Asked<'_> = asked("openai_chat", "azure");
const ANTHROPIC: Asked<'_> = asked("anthropic", "anthropic");
const GEMINI: Asked<'_> = asked("gemini", "gemini");
const OPENAPI: Asked<'_> = Asked { openapi: true, ..GEMINI };
const BEDROCK: Asked<'_> = asked("bedrock_converse", "bedrock");
const NOVA: Asked<'_> = asked("bedrock_converse", "bedrock-nova");
const DEEPSEEK: Asked<'_> = asked("openai_chat", "deepseek");
const GROQ: Asked<'_> = asked("openai_chat", "groq");
const OLLAMA: Asked<'_> = asked("openai_chat", "ollama");
const VLLM: Asked<'_> = asked("openai_chat", "vllm");

/// The body of a request for this provider.
fn body(asked: Asked<'_>) -> Value {
    let mut body = json!({"format": asked.format, "profile": asked.profile});
    if asked.openapi {
        body["schema_dialect"] = json!("openapi");
    }
    body
}

/// A user whose arrays hold all of these.
async fn holder(app: &TestApp, tools: &[Value]) -> User {
    super::holder(app, tools, json!({"enabled": "on", "core": ["*"]})).await
}

/// An assembly that the provider takes as it is.
async fn assembled(user: &User, asked: Asked<'_>, what: &str) -> Value {
    let answer = user.assemble(body(asked)).await.ok();
    let found = faults(asked, &answer["tools"]);
    assert!(found.is_empty(), "{what} {asked:?}: {found:#?}");
    answer
}

/// The schema of an array's only tool; none where there is none.
fn schema(asked: Asked<'_>, answer: &Value) -> Option<Value> {
    let inner = definition(&entries(&answer["tools"])[0]);
    let place = match asked.format {
        "anthropic" => "/input_schema",
        "gemini" if asked.openapi => "/parameters",
        "gemini" => "/parametersJsonSchema",
        "bedrock_converse" => "/inputSchema/json",
        _ => "/parameters",
    };
    inner.pointer(place).cloned()
}

/// What the agent is told to run for a model's call: through the bridge, where the call stands as the provider sends it.
async fn bridged(user: &User, asked: Asked<'_>, name: &str, arguments: &Value) -> Value {
    let mut body = body(asked);
    body["call"] = model_call(asked.format, "c1", name, arguments);
    let result = user.bridge(body).await.ok()["results"][0].clone();
    assert_eq!(result["reply_to"]["id"], "c1", "{result}");
    assert_eq!(result["reply_to"]["name"], json!(name), "as the model wrote it: {result}");
    result
}

/// As [`bridged`], by the route that checks calls.
async fn called(user: &User, asked: Asked<'_>, name: &str, arguments: &Value) -> Value {
    let mut body = body(asked);
    body["name"] = json!(name);
    body["arguments"] = arguments.clone();
    user.call(body).await.ok()["results"][0].clone()
}

/// A schema that was reported, for whom, and how it has to look there.
struct Row {
    reports: &'static [u8],
    asked: Asked<'static>,
    strict: bool,
    uploaded: Value,
    /// None where the provider wants no schema at all.
    sent: Option<Value>,
    /// Whether what is sent says less than the original, which has to be told.
    told: bool,
    /// Arguments as the model writes them, and as the tool takes them.
    arguments: Option<(Value, Value)>,
}

fn row(reports: &'static [u8], asked: Asked<'static>, uploaded: Value, sent: Value) -> Row {
    let sent = Some(sent).filter(|sent| !sent.is_null());
    Row { reports, asked, strict: false, uploaded, sent, told: false, arguments: None }
}

impl Row {
    fn told(self) -> Self {
        Self { told: true, ..self }
    }

    fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    fn called(self, by_the_model: Value, by_the_agent: Value) -> Self {
        Self { arguments: Some((by_the_model, by_the_agent)), ..self }
    }

    async fn check(&self, app: &TestApp) {
        let mut tool = json!({"name": "do_it", "description": "Does it."});
        if self.uploaded != json!("none") {
            tool["parameters"] = self.uploaded.clone();
        }
        let user = holder(app, &[tool]).await;
        let what = format!("{:?} {:?} {}", self.reports, self.asked, self.uploaded);
        let mut request = body(self.asked);
        request["strict"] = json!(self.strict);
        let answer = user.assemble(request).await.ok();
        assert_eq!(faults(self.asked, &answer["tools"]), Vec::<String>::new(), "{what}");
        assert_eq!(array_names(&answer), ["do_it"], "{what}");
        // As text: the order of keys is part of what a model sees.
        let text = |schema: Option<Value>| schema.map(|schema| schema.to_string());
        assert_eq!(text(schema(self.asked, &answer)), text(self.sent.clone()), "{what}");
        let told: &[&str] = if self.told { &["schema_mended"] } else { &[] };
        assert_eq!(warning_codes(&answer), told, "{what}: {answer}");
        let Some((model, agent)) = &self.arguments else { return };
        let mut call = body(self.asked);
        call["strict"] = json!(self.strict);
        call["call"] = model_call(self.asked.format, "c1", "do_it", model);
        let bridged = user.bridge(call.clone()).await.ok()["results"][0].clone();
        assert_eq!(bridged["calls"][0]["arguments"], *agent, "{what}: {bridged}");
        call.as_object_mut().unwrap().shift_remove("call");
        (call["name"], call["arguments"]) = (json!("do_it"), model.clone());
        let called = user.call(call).await.ok()["results"][0].clone();
        assert_eq!(called["dispatch"]["arguments"], *agent, "{what}: {called}");
    }
}

/// An object of these properties.
fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// A schema as the property `a`.
fn a(schema: Value) -> Value {
    object(json!({ "a": schema }))
}

/// An object with further keywords.
fn with(mut schema: Value, more: Value) -> Value {
    let members = more.as_object().unwrap().clone();
    schema.as_object_mut().unwrap().extend(members);
    schema
}
