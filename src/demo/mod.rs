//! The demo: the main job, step by step, on an embedded sample catalog, printed as a model would see it.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::core::id::{Id, InvalidId, Scope};
use crate::core::tokens;
use crate::service::{
    Actor, AssembleRequest, BridgeAction, BridgeRequest, BridgeResult, Caller, Error, GrantFields, Toolrack,
};

/// 48 tools of eight made-up servers.
const TOOLS: &str = include_str!("tools.json");

/// The user and session that the demo acts for.
const USER: &str = "demo";
const SESSION: &str = "first";
const FORMAT: &str = "openai_chat";

/// Lines of a long text that are shown.
const SHOWN_LINES: usize = 60;

/// Why the demo stopped.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error(transparent)]
    Service(#[from] Error),
    #[error("the sample cannot be read: {0}")]
    Sample(#[from] serde_json::Error),
    #[error(transparent)]
    Id(#[from] InvalidId),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Walks through upload, assembly, search, call and second assembly.
pub async fn walk(service: &Toolrack, out: &mut impl Write) -> Result<(), DemoError> {
    let session = Some(Id::parse(SESSION)?);
    let caller = Caller { user: Id::parse(USER)?, project: None, session, limits: None, allowances: None };
    let (actor, scope) = (Actor::program(), Scope::User(caller.user.clone()));
    let mut walk = Walk { service, caller, out, step: 0 };

    walk.title("An agent uploads the tools of its eight MCP servers")?;
    let written = service.put_catalog(&actor, &scope, sample()?, None, false).await?;
    walk.line(format_args!("PUT /v1/users/{USER}/catalog -> {} tools stored", written.diff.added.count))?;
    for warning in &written.warnings {
        walk.line(format_args!("  {}: {}", warning.code, warning.detail))?;
    }
    let config = json!({"core": ["read_file", "list_events"], "max_warm_tools": 4});
    service.put_config(&actor, &scope, config.clone(), None, false).await?;
    walk.line(format_args!("PUT /v1/users/{USER}/config <- {config}"))?;

    walk.title("Before each model call it assembles the turn")?;
    let first = walk.assemble(None).await?;
    walk.show_array(&first)?;
    walk.show_listing(&first)?;

    walk.title("The model does not see what it needs, and searches")?;
    let asked =
        call("call_1", "tool_search", &json!({"query": "open a support ticket for a customer's complaint"}));
    walk.bridge(&asked).await?;

    walk.title("It calls what it found, and forgets an argument")?;
    let name = "create_ticket";
    walk.bridge(&call("call_2", "tool_call", &json!({"name": name, "arguments": {}}))).await?;
    let arguments = json!({"project": "CARE", "title": "Invoice was charged twice", "kind": "support"});
    walk.bridge(&call("call_3", "tool_call", &json!({"name": name, "arguments": arguments}))).await?;

    walk.title("The next turn has the found tools in the array, behind bytes that did not change")?;
    let second = walk.assemble(None).await?;
    walk.show_array(&second)?;
    walk.line(format_args!(
        "cache: the first {} of {} entries are byte-equal to the last array, break: {}, reason: {}",
        second["cache"]["stable_prefix_len"],
        array_len(&second),
        second["cache"]["break"],
        text(&second["cache"]["reason"])
    ))?;

    walk.title("Nothing changed since: the agent keeps what it has")?;
    let third = walk.assemble(second["fingerprint"].as_str()).await?;
    walk.line(format_args!(
        "changed: {}, answer without tools: {} bytes",
        third["changed"],
        third.to_string().len()
    ))?;
    Ok(())
}

/// The sample as an agent would send it: the file's line breaks are for readers, and would count as tokens.
fn sample() -> Result<Vec<Box<RawValue>>, serde_json::Error> {
    let tools: Vec<Value> = serde_json::from_str(TOOLS)?;
    tools.iter().map(|tool| RawValue::from_string(tool.to_string())).collect()
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn array_len(answer: &Value) -> usize {
    answer["tools"].as_array().map_or(0, Vec::len)
}

struct Walk<'a, W> {
    service: &'a Toolrack,
    caller: Caller,
    out: &'a mut W,
    step: usize,
}

impl<W: Write> Walk<'_, W> {
    fn line(&mut self, line: impl fmt::Display) -> Result<(), DemoError> {
        Ok(writeln!(self.out, "{line}")?)
    }

    fn title(&mut self, title: &str) -> Result<(), DemoError> {
        self.step += 1;
        let step = self.step;
        self.line(format_args!("\n{step}. {title}"))
    }

    fn fields() -> GrantFields {
        GrantFields { format: Some(FORMAT.to_owned()), ..GrantFields::default() }
    }

    async fn assemble(&mut self, if_fingerprint: Option<&str>) -> Result<Value, DemoError> {
        let request = AssembleRequest {
            caller: self.caller.clone(),
            fields: Self::fields(),
            tools: None,
            used: Vec::new(),
            query: None,
            messages: None,
            epoch: false,
            if_fingerprint: if_fingerprint.map(str::to_owned),
        };
        let answer = self.service.assemble(request).await?;
        self.line(format_args!(
            "POST /v1/assemble {{user: {USER}, session: {SESSION}, format: {FORMAT}{}}}",
            if if_fingerprint.is_some() { ", if_fingerprint: …" } else { "" }
        ))?;
        Ok(serde_json::from_slice(&answer.body)?)
    }

    fn show_array(&mut self, answer: &Value) -> Result<(), DemoError> {
        let tokens = &answer["tokens"];
        self.line(format_args!(
            "tokens: all schemas {}, sent: array {} + listing {}, saved {} ({})",
            tokens["all"],
            tokens["tools"],
            tokens["listing"],
            tokens["saved"],
            text(&tokens["method"])
        ))?;
        let names: Vec<&str> = answer["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect();
        self.line(format_args!("array (tier {}): {}", answer["tier"], names.join(", ")))
    }

    fn show_listing(&mut self, answer: &Value) -> Result<(), DemoError> {
        let listing = &answer["listing"];
        self.line(format_args!("listing ({}), for the system text:", text(&listing["form"])))?;
        let text = listing["text"].as_str().unwrap_or_default();
        for line in text.lines().take(SHOWN_LINES) {
            self.line(format_args!("  | {line}"))?;
        }
        let more = text.lines().count().saturating_sub(SHOWN_LINES);
        if more > 0 {
            self.line(format_args!("  | … {more} more lines"))?;
        }
        Ok(())
    }

    async fn bridge(&mut self, call: &Value) -> Result<(), DemoError> {
        let function = &call["function"];
        let arguments = function["arguments"].as_str().unwrap_or_default();
        self.line(format_args!("model: {}({arguments})", function["name"].as_str().unwrap_or_default()))?;
        let request = BridgeRequest {
            caller: self.caller.clone(),
            fields: Self::fields(),
            actor: Actor::program(),
            calls: vec![call.clone()],
        };
        let answer = self.service.bridge(request).await?;
        for result in &answer.results {
            self.show_result(result)?;
        }
        if !answer.warmed.is_empty() {
            self.line(format_args!("warm from the next turn on: {}", answer.warmed.join(", ")))?;
        }
        Ok(())
    }

    fn show_result(&mut self, result: &BridgeResult) -> Result<(), DemoError> {
        match result.action {
            BridgeAction::Dispatch => {
                for call in result.calls.iter().flatten() {
                    self.line(format_args!(
                        "-> dispatch, the agent runs: {}({})",
                        call.name, call.arguments
                    ))?;
                }
            }
            BridgeAction::Respond => {
                let content = result.content.as_deref().unwrap_or_default();
                let kind = if result.is_error == Some(true) { "error" } else { "answer" };
                self.line(format_args!("-> {kind} for the model, {} tokens:", tokens::count(content)))?;
                let pretty = serde_json::from_str::<Value>(content)
                    .map_or_else(|_| content.to_owned(), |value| outline(&value));
                for line in pretty.lines().take(SHOWN_LINES) {
                    self.line(format_args!("  | {line}"))?;
                }
            }
        }
        Ok(())
    }
}

/// A JSON answer as short lines: one per match, one per other member.
fn outline(value: &Value) -> String {
    let mut lines = Vec::new();
    for (key, member) in value.as_object().into_iter().flatten() {
        match (key.as_str(), member) {
            ("results", Value::Array(results)) => {
                for found in
                    results.iter().flat_map(|result| result["matches"].as_array().into_iter().flatten())
                {
                    lines.push(format!(
                        "{}: {}",
                        found["name"].as_str().unwrap_or_default(),
                        found["description"].as_str().unwrap_or_default()
                    ));
                }
            }
            ("error", Value::Object(error)) => {
                lines.push(error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned());
                lines.extend(error.contains_key("schema").then(|| "(with the tool's schema)".to_owned()));
            }
            (_, Value::String(text)) => lines.push(format!("{key}: {text}")),
            _ => lines.push(format!("{key}: {member}")),
        }
    }
    lines.join("\n")
}

/// What `--serve` says: where the service is, and how to talk to it.
pub fn farewell(address: SocketAddr) -> String {
    let base = format!("http://{address}");
    let assemble = json!({"user": USER, "session": "second", "format": FORMAT});
    let search = json!({"user": USER, "session": "second", "query": "send an email"});
    let call = json!({"user": USER, "session": "second", "name": "create_ticket", "arguments": {"project": "CARE", "title": "x"}});
    let curl = |route: &str, body: &Value| {
        format!("curl -s {base}{route} -H 'content-type: application/json' -d '{body}'")
    };
    [
        String::new(),
        format!("listening on {base} without authentication; stop with Ctrl-C"),
        format!("  API browser   {base}/docs"),
        format!("  API document  {base}/openapi.json"),
        format!("  metrics       {base}/metrics"),
        String::new(),
        curl("/v1/assemble", &assemble),
        curl("/v1/search", &search),
        curl("/v1/call", &call),
    ]
    .join("\n")
}
