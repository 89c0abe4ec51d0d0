//! A recorded session, replayed: an agent that assembles before every model call, and a model that finds a tool as the
//! record says, calls it, and answers.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolrack::service::BridgeAction;

use super::cache::{PromptCache, Totals};
use crate::inside::Inside;
use crate::model::entry_name;

pub(super) const FORMAT: &str = "anthropic";

const SYSTEM: &str =
    "You are an assistant of a mid-sized company. You act through tools. Ask before you send or delete.";

/// One of the ways that are compared.
#[derive(Debug)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    pub(super) config: Value,
    pub(super) listing: Listing,
}

/// Which listing the agent puts into the system text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    /// That of the session, with notes about what changed.
    Kept,
    /// What the catalog is at each moment.
    OfTheMoment,
}

/// A line of a record.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Event {
    Turn {
        user: String,
        calls: Vec<Call>,
        reply: usize,
    },
    Edit {
        edit: Edit,
    },
    /// The conversation becomes a summary of so many tokens.
    Compaction {
        compaction: usize,
    },
}

#[derive(Debug, Deserialize)]
pub(super) struct Call {
    tool: String,
    finds: Finds,
    query: String,
    arguments: Value,
    /// Tokens of the result.
    result: usize,
}

/// How the model comes upon a tool that is not in its array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Finds {
    /// It searches.
    Search,
    /// It reads the name in the listing.
    Listing,
}

#[derive(Debug, Deserialize)]
pub(super) struct Edit {
    upsert: Vec<Value>,
    remove: Vec<String>,
}

/// A text of so many tokens, another one for each number.
fn filler(number: usize, tokens: usize) -> String {
    const WORDS: [&str; 8] = [" order", " north", " paper", " seven", " light", " table", " green", " river"];
    let words = (0..tokens.saturating_sub(4)).map(|at| WORDS[(at * 5 + at / 8 + number) % WORDS.len()]);
    format!("Part {number}:{}", words.collect::<String>())
}

/// Whether the provider keeps an entry out of the prompt until it is named.
fn is_deferred(entry: &str) -> bool {
    entry.ends_with(",\"defer_loading\":true}")
}

struct Agent<'a> {
    inside: &'a Inside,
    user: &'a str,
    mode: &'a Mode,
    /// Entries of the array, the listing's text and the fingerprint of the last answer.
    tools: Vec<String>,
    listing: String,
    fingerprint: Option<String>,
    messages: Vec<String>,
    /// Tools whose schemas stand in the conversation.
    described: HashSet<String>,
    /// Deferred tools that a search has loaded into the conversation.
    loaded: HashSet<String>,
    /// The last note about changes.
    note: String,
    epoch: bool,
    ids: usize,
    cache: PromptCache,
}

/// The requests of one session.
pub(super) async fn replay(inside: &Inside, user: &str, mode: &Mode, session: &[Event]) -> Totals {
    let mut agent = Agent {
        inside,
        user,
        mode,
        tools: Vec::new(),
        listing: String::new(),
        fingerprint: None,
        messages: Vec::new(),
        described: HashSet::new(),
        loaded: HashSet::new(),
        note: String::new(),
        epoch: false,
        ids: 0,
        cache: PromptCache::default(),
    };
    for event in session {
        match event {
            Event::Turn { user, calls, reply } => agent.turn(user, calls, *reply).await,
            Event::Edit { edit } => inside.patch_catalog(user, &edit.upsert, &edit.remove).await,
            Event::Compaction { compaction } => agent.compact(*compaction),
        }
    }
    agent.cache.totals
}

impl Agent<'_> {
    fn say(&mut self, role: &str, content: impl Into<Value>) {
        self.messages.push(json!({"role": role, "content": content.into()}).to_string());
    }

    fn next_filler(&mut self, tokens: usize) -> String {
        self.ids += 1;
        filler(self.ids, tokens)
    }

    fn compact(&mut self, tokens: usize) {
        let summary = self.next_filler(tokens);
        self.messages.clear();
        self.say("user", summary);
        self.described.clear();
        self.loaded.clear();
        self.note.clear();
        self.epoch = true;
    }

    async fn turn(&mut self, user: &str, calls: &[Call], reply: usize) {
        self.say("user", user);
        for call in calls {
            self.find_and_call(call).await;
        }
        self.model_call().await;
        let reply = self.next_filler(reply);
        self.say("assistant", reply);
    }

    /// Calls a tool of the array, or finds its schema first and calls it through the bridge.
    async fn find_and_call(&mut self, call: &Call) {
        let mut searches = call.finds == Finds::Search;
        loop {
            self.model_call().await;
            if self.has(&call.tool) {
                return self.use_tool(&call.tool, &call.arguments, call.result).await;
            }
            if self.described.contains(&call.tool) {
                let arguments = json!({"name": call.tool, "arguments": call.arguments});
                return self.use_tool("tool_call", &arguments, call.result).await;
            }
            if searches {
                searches = false;
                self.use_tool("tool_search", &json!({"query": call.query}), 0).await;
            } else if self.entry(&call.tool).is_some() {
                // A deferred tool of the array is loaded by its name.
                self.use_tool("tool_search", &json!({"query": call.tool}), 0).await;
            } else {
                self.use_tool("tool_describe", &json!({"name": call.tool}), 0).await;
                self.described.insert(call.tool.clone());
            }
        }
    }

    /// Whether the model sees the definition of a tool that it can call.
    fn has(&self, tool: &str) -> bool {
        self.loaded.contains(tool) || self.entry(tool).is_some_and(|entry| !is_deferred(entry))
    }

    fn entry(&self, tool: &str) -> Option<&str> {
        let is_it = |entry: &&str| {
            let entry: Value = serde_json::from_str(entry).unwrap();
            entry_name(&entry) == tool
        };
        self.tools.iter().map(String::as_str).find(is_it)
    }

    /// A message that may name tools to load: the provider writes their definitions out at its place.
    fn receive(&mut self, message: &Value) {
        let mut text = message.to_string();
        let blocks = message["content"][0]["content"].as_array();
        for block in blocks.into_iter().flatten().filter(|block| block["type"] == "tool_reference") {
            let name = block["tool_name"].as_str().unwrap();
            let entry = self.entry(name).unwrap_or_else(|| panic!("{name} is not declared"));
            text.push_str(entry);
            self.loaded.insert(name.to_owned());
        }
        self.messages.push(text);
    }

    /// The model calls a tool; the bridge answers it, or the agent runs it and has a result of so many tokens.
    async fn use_tool(&mut self, name: &str, input: &Value, result: usize) {
        self.ids += 1;
        let id = format!("call_{}", self.ids);
        let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let body = json!({"session": "s", "format": FORMAT, "calls": [call]});
        self.say("assistant", json!([call]));
        let answer = self.inside.bridge(self.user, &body).await.results.remove(0);
        assert_ne!(answer.is_error, Some(true), "{body}: {answer:?}");
        match answer.action {
            BridgeAction::Respond => self.receive(&answer.message.unwrap()),
            BridgeAction::Dispatch => {
                let content = self.next_filler(result);
                let result = json!([{"type": "tool_result", "tool_use_id": id, "content": content}]);
                self.say("user", result);
            }
        }
    }

    /// Assembles and sends the prompt.
    async fn model_call(&mut self) {
        self.assemble().await;
        let system = format!("{SYSTEM}\n\n{}", self.listing);
        let shown = self.tools.iter().map(String::as_str).filter(|entry| !is_deferred(entry));
        let parts = shown.chain([system.as_str()]);
        let parts: Vec<&str> = parts.chain(self.messages.iter().map(String::as_str)).collect();
        self.cache.request(&parts);
    }

    async fn assemble(&mut self) {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            tools: Option<Vec<&'a RawValue>>,
            listing: Option<Value>,
            listing_changes: Option<Value>,
            fingerprint: String,
            changed: bool,
        }
        let mut body = json!({"session": "s", "format": FORMAT, "epoch": std::mem::take(&mut self.epoch)});
        body["if_fingerprint"] = json!(self.fingerprint);
        let text = self.inside.assemble(self.user, &body).await;
        let answer: Answer<'_> = serde_json::from_str(&text).unwrap();
        if answer.changed {
            self.tools = answer.tools.iter().flatten().map(|entry| entry.get().to_owned()).collect();
            let text = answer.listing.as_ref().and_then(|listing| listing["text"].as_str());
            self.listing = text.unwrap_or_default().to_owned();
            self.fingerprint = Some(answer.fingerprint);
        }
        if self.mode.listing == Listing::OfTheMoment {
            let text = self.inside.assemble(self.user, &json!({ "format": FORMAT })).await;
            let answer: Value = serde_json::from_str(&text).unwrap();
            self.listing = answer["listing"]["text"].as_str().unwrap_or_default().to_owned();
            return;
        }
        let note = answer.listing_changes.as_ref().and_then(|changes| changes["text"].as_str());
        if let Some(note) = note.filter(|note| *note != self.note) {
            self.note = note.to_owned();
            self.say("user", note);
        }
    }
}
