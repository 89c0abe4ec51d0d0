//! `bridge`: a model's raw tool calls in, what the agent has to do out. The one route besides assemble that a loop needs.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::audit::Actor;
use super::calls::{CallError, Dispatch, count_unknown, unavailable};
use super::context::{Caller, Context, GrantFields};
use super::describe::{look_up, shown};
use super::management::not_a_management_call;
use super::search::SearchRequest;
use super::search_forms::{AnswerForm, FormedAnswer, search_text};
use super::sessions::Deed;
use super::{Error, Toolrack};
use crate::core::calls::{read_arguments, read_calls};
use crate::core::format::native::{namespace_name, reference_message};
use crate::core::format::{Format, ModelCall, ReadFault};
use crate::core::grant::{BridgeTool, Resolved, View, ViewTool};
use crate::core::loading::{LoadForm, own_form};
use crate::core::mend::unmap;
use crate::core::tokens;
use crate::core::warning::Warning;

/// What `tool_describe` says when it was given no name.
const NOTHING_ASKED: &str = "name at least one tool";

/// What a bridge request asks for.
#[derive(Debug, Clone)]
pub struct BridgeRequest {
    pub caller: Caller,
    pub fields: GrantFields,
    /// Whose key it is: the management tools write for some, and a setup key is answered nothing else.
    pub actor: Actor,
    /// Calls as the provider sent them.
    pub calls: Vec<Value>,
}

/// What the agent has to do with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BridgeAction {
    /// Hand `message` to the model.
    Respond,
    /// Run `calls`; the results go back under `reply_to`.
    Dispatch,
}

/// The id and name that the model used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReplyTo {
    /// Empty when the call had none.
    pub id: String,
    pub name: String,
    /// A name for the call in a history that is sent again, where the provider refuses the one that the model used: histories are
    /// checked too, and models make names up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_name: Option<String>,
    /// The namespace of a Responses call that named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// One call's answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BridgeResult {
    pub action: BridgeAction,
    pub reply_to: ReplyTo,
    /// The text of the message (`respond`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The message in the provider's shape (`respond`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub message: Option<Value>,
    /// Whether the content tells of an error (`respond`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// o200k tokens of what the model reads (`respond`): the content, or the definitions that are loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// What to run (`dispatch`). Several results go back as one JSON array, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<Dispatch>>,
}

/// One entry per call, in order.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BridgeAnswer {
    pub results: Vec<BridgeResult>,
    /// Tools that these calls put into the session's array.
    pub warmed: Vec<String>,
    /// Tools that had to leave it.
    pub evicted: Vec<String>,
    /// What was asked for and not done as asked, once for all calls.
    pub warnings: Vec<Warning>,
}

/// What handling one call gave.
pub(super) enum Handled {
    Respond(Reply),
    Dispatch(Vec<Dispatch>),
}

/// What the model is answered.
pub(super) struct Reply {
    content: String,
    is_error: bool,
    /// In the provider's shape, where it is not that of a text.
    message: Option<Value>,
    /// o200k count of what the model reads.
    tokens: usize,
}

impl BridgeAnswer {
    /// Adds warnings that are not there yet.
    fn warn(&mut self, warnings: Vec<Warning>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

impl Handled {
    pub(super) fn answer(content: &Value) -> Self {
        Self::text(content.to_string(), false)
    }

    pub(super) fn error(content: &Value) -> Self {
        Self::text(content.to_string(), true)
    }

    pub(super) fn text(content: String, is_error: bool) -> Self {
        let tokens = tokens::count(&content);
        Self::Respond(Reply { content, is_error, message: None, tokens })
    }

    /// Tools that the provider loads.
    fn loaded(answer: &FormedAnswer, message: Value) -> Self {
        let content = match answer.loaded.as_slice() {
            [] => "Nothing was loaded.".to_owned(),
            names => format!("Loaded: {}.", names.join(", ")),
        };
        Self::Respond(Reply { content, is_error: false, message: Some(message), tokens: answer.tokens })
    }
}

impl Toolrack {
    /// Handles a model's calls in order.
    pub async fn bridge(&self, request: BridgeRequest) -> Result<BridgeAnswer, Error> {
        self.check_calls(&request.calls)?;
        let mut answer = BridgeAnswer {
            results: Vec::new(),
            warmed: Vec::new(),
            evicted: Vec::new(),
            warnings: Vec::new(),
        };
        for at in 0..request.calls.len() {
            // The session moves with each call.
            let context = self.context(&request.caller, &request.fields).await?;
            answer.warn(context.warnings());
            let result = self.handle(&context, &request, at, &mut answer).await?;
            answer.results.push(result);
        }
        let tokens = answer.results.iter().filter_map(|result| result.tokens).sum();
        // Who sets something up is no part of a session.
        let session = request.caller.session.filter(|_| !request.actor.is_setup());
        self.answered(&Caller { session, ..request.caller }, "bridge", tokens).await;
        Ok(answer)
    }

    async fn handle(
        &self,
        context: &Context,
        request: &BridgeRequest,
        at: usize,
        answer: &mut BridgeAnswer,
    ) -> Result<BridgeResult, Error> {
        let raw = request.calls.get(at).unwrap_or(&Value::Null);
        let call = match context.target.format.wire().read_call(raw) {
            Ok(call) => call,
            Err(ReadFault::NotACall(why)) => {
                return Err(Error::invalid(format!("/calls/{at}"), "invalid_call", why));
            }
            Err(ReadFault::Broken { call, why }) => {
                let content = json!({"error": {"code": "invalid_call", "message": why}});
                return Ok(result(context, &call, Handled::error(&content)));
            }
        };
        let handled = match meant(context.view(), &call) {
            Resolved::Management(tool) => self.manage(context, request, tool, &call).await?,
            _ if request.actor.is_setup() => not_a_management_call(context),
            Resolved::Bridge(tool) => self.handle_bridge(context, request, tool, &call, answer).await?,
            Resolved::Tool(id) => self.pass_through(context, request, &call, Some(id), answer).await?,
            Resolved::Ambiguous(_) | Resolved::Unknown => {
                self.pass_through(context, request, &call, None, answer).await?
            }
        };
        Ok(result(context, &call, handled))
    }

    /// A call of another tool comes back unchanged; one of the grant under the tool's real name, with the tool's own arguments.
    async fn pass_through(
        &self,
        context: &Context,
        request: &BridgeRequest,
        call: &ModelCall,
        known: Option<u32>,
        answer: &mut BridgeAnswer,
    ) -> Result<Handled, Error> {
        let as_sent = || call.arguments.clone().unwrap_or_default();
        let mut arguments = match read_arguments(call.arguments.as_ref()) {
            Ok(arguments) if !call.is_custom => Value::Object(arguments),
            // Not ours to judge: the agent's own tools may take anything.
            _ => as_sent(),
        };
        let Some((id, tool)) = known.and_then(|id| Some((id, context.view().get(id)?))) else {
            let (id, name) = (call.id.clone(), call.name.clone());
            let dispatch = Dispatch { id, name, group: None, uploaded_name: None, arguments };
            return Ok(Handled::Dispatch(vec![dispatch]));
        };
        if tool.unavailable {
            return Ok(Handled::error(
                &json!({"error": {"code": "tool_unavailable", "message": unavailable(tool)}}),
            ));
        }
        unmap(&mut arguments, &tool.for_target(context.target).arg_map);
        let dispatch = Dispatch::of(tool, call.id.clone(), arguments);
        let warming = self.warm(context, &[id], Deed::Call).await?;
        self.usage().called(&request.caller, context, &[id]);
        if let Some((_, session)) = &context.session {
            session.ledger().passed(tool.tool.tool.digest().short());
        }
        answer.warmed.extend(warming.warmed);
        answer.evicted.extend(warming.evicted);
        answer.warn(warming.warnings);
        Ok(Handled::Dispatch(vec![dispatch]))
    }

    async fn handle_bridge(
        &self,
        context: &Context,
        request: &BridgeRequest,
        tool: BridgeTool,
        call: &ModelCall,
        answer: &mut BridgeAnswer,
    ) -> Result<Handled, Error> {
        let arguments = match read_arguments(call.arguments.as_ref()) {
            Ok(arguments) => arguments,
            // A bare text is a query or a name; only a call cannot be made of it.
            Err(_) if tool != BridgeTool::Call && is_plain_text(call.arguments.as_ref()) => {
                Map::from_iter([("query".to_owned(), call.arguments.clone().unwrap_or_default())])
            }
            Err(fault) => {
                return Ok(Handled::error(&json!({"error": {"code": fault.code, "message": fault.message}})));
            }
        };
        match tool {
            BridgeTool::Search => self.bridge_search(context, request, call, &arguments, answer).await,
            BridgeTool::Describe => self.bridge_describe(context, request, &arguments, answer).await,
            BridgeTool::Call => self.bridge_call(context, request, &arguments, &call.id, answer).await,
        }
    }

    async fn bridge_search(
        &self,
        context: &Context,
        request: &BridgeRequest,
        call: &ModelCall,
        arguments: &Map<String, Value>,
        answer: &mut BridgeAnswer,
    ) -> Result<Handled, Error> {
        let limits = &self.0.limits;
        let mut queries = texts(arguments, &["query", "queries", "q"]);
        queries.retain(|query| !query.trim().is_empty());
        let mut notes = Vec::new();
        let left_out = queries.split_off(queries.len().min(limits.queries));
        if !left_out.is_empty() {
            let left_out: Vec<String> = left_out.iter().map(|query| shown(query)).collect();
            notes.push(json!({"code": "too_many", "most": limits.queries, "not_searched": left_out}));
        }
        for query in &mut queries {
            if let Some((end, _)) = query.char_indices().nth(limits.query_chars) {
                query.truncate(end);
                notes.push(json!({"code": "query_truncated", "characters": limits.query_chars}));
            }
        }
        if queries.is_empty() {
            let message = "say in `query` what you want to do";
            return Ok(Handled::error(&json!({"error": {"code": "missing_query", "message": message}})));
        }
        let limit = arguments
            .get("limit")
            .and_then(|limit| limit.as_f64().or_else(|| limit.as_str()?.trim().parse().ok()));
        // An item of the provider's own search takes no other answer.
        let plan = self.plan(context).await?;
        let own = own_form(plan.plan.target).filter(|form| *form != LoadForm::ToolSearchOutput);
        let load = if call.is_search { Some(LoadForm::ToolSearchOutput) } else { own };
        let search = SearchRequest {
            caller: request.caller.clone(),
            fields: request.fields.clone(),
            queries,
            limit: limit.filter(|limit| limit.is_finite()).map(f64::trunc),
            detail: None,
            warm: None,
            explain: None,
            context: None,
            form: load.map(|form| AnswerForm::Load(form).as_str().to_owned()),
            call_id: Some(call.id.clone()),
        };
        let found = self.find(search).await?;
        answer.warmed.extend(found.warmed.iter().cloned());
        answer.evicted.extend(found.evicted.iter().cloned());
        answer.warn(found.warnings.clone());
        if let Some(reason) = found.reason {
            let detail = format!("the matcher's endpoint did not answer ({reason}); keywords ranked");
            answer.warn(vec![Warning::new("search_degraded", detail)]);
        }
        if load.is_some() {
            // What is loaded has no place for words.
            let told = notes.iter().map(|note| Warning::new("query_shortened", note.to_string()));
            answer.warn(told.collect());
        }
        let formed = found.answer.as_ref().zip(load);
        if let Some((formed, LoadForm::ToolSearchOutput)) = formed {
            let item = serde_json::from_str(formed.content.get()).map_err(Error::internal)?;
            return Ok(Handled::loaded(formed, item));
        }
        // What cannot be loaded is told in words, and with it all the rest.
        if let Some((formed, _)) = formed.filter(|(formed, _)| !formed.left_out && !formed.loaded.is_empty())
        {
            let blocks = serde_json::from_str(formed.content.get()).map_err(Error::internal)?;
            return Ok(Handled::loaded(formed, reference_message(&call.id, &blocks)));
        }
        let mut text = search_text(context, plan.plan.target, &found);
        if !notes.is_empty() {
            text["notes"] = Value::from(notes);
        }
        Ok(Handled::answer(&text))
    }

    async fn bridge_describe(
        &self,
        context: &Context,
        request: &BridgeRequest,
        arguments: &Map<String, Value>,
        answer: &mut BridgeAnswer,
    ) -> Result<Handled, Error> {
        let mut names = texts(arguments, &["name", "names", "query", "tool", "tools"]);
        names.retain(|name| !name.trim().is_empty());
        let most = self.0.limits.names;
        let left_out = names.split_off(names.len().min(most));
        if names.is_empty() {
            return Ok(Handled::error(&json!({"error": {"code": "missing_name", "message": NOTHING_ASKED}})));
        }
        let view = context.view();
        let described = look_up(context, &names, "bridge");
        let wire = |ids: &[u32]| {
            ids.iter().filter_map(|id| view.get(*id)).map(ViewTool::wire_name).collect::<Vec<_>>()
        };
        let tools: Vec<Box<RawValue>> = described
            .ids
            .iter()
            .filter_map(|id| view.get(*id))
            .filter_map(|tool| {
                let made = tool.for_target(context.target);
                RawValue::from_string(made.whole(Format::Canonical, tool.wire_name(), &tool.tool.tool)).ok()
            })
            .collect();
        let mut not_found: Vec<Value> = described
            .missing
            .iter()
            .map(|(name, code, ids)| json!({"name": name, "code": code, "suggestions": wire(ids)}))
            .collect();
        // Nothing is left out in silence: the model can ask for the rest.
        not_found.extend(
            left_out.iter().map(|name| json!({"name": shown(name), "code": "too_many", "most": most})),
        );
        let warming = self.warm(context, &described.ids, Deed::Describe).await?;
        self.usage().described(&request.caller);
        answer.warmed.extend(warming.warmed);
        answer.evicted.extend(warming.evicted);
        answer.warn(warming.warnings);
        let is_error = tools.is_empty();
        #[derive(Serialize)]
        struct Described {
            tools: Vec<Box<RawValue>>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            not_found: Vec<Value>,
        }
        // Serialised from raw text, so that the model sees the keys of a schema in their order.
        let content = serde_json::to_string(&Described { tools, not_found }).map_err(Error::internal)?;
        Ok(Handled::text(content, is_error))
    }

    async fn bridge_call(
        &self,
        context: &Context,
        request: &BridgeRequest,
        arguments: &Map<String, Value>,
        call_id: &str,
        answer: &mut BridgeAnswer,
    ) -> Result<Handled, Error> {
        let calls = match read_calls(arguments, self.0.limits.calls) {
            Ok(calls) => calls,
            Err(fault) => {
                return Ok(Handled::error(&json!({"error": error_text(context, &CallError::boxed(fault))})));
            }
        };
        let call_id = if call_id.is_empty() { "call" } else { call_id };
        let calls = calls.into_iter().map(|call| (call, call_id.to_owned())).collect();
        let mut resolved = self.resolve_calls(context, calls).await;
        answer.warn(std::mem::take(&mut resolved.warnings));
        count_unknown(&resolved, "bridge");
        // What is refused is no call, and warms what was meant all the same.
        let is_run = resolved.results.iter().all(Result::is_ok);
        let deed = if is_run { Deed::Call } else { Deed::Change };
        let warming = self.warm(context, &resolved.called, deed).await?;
        answer.warmed.extend(warming.warmed);
        answer.evicted.extend(warming.evicted);
        answer.warn(warming.warnings);
        if is_run {
            self.usage().called(&request.caller, context, &resolved.ready);
            return Ok(Handled::Dispatch(resolved.results.into_iter().filter_map(Result::ok).collect()));
        }
        if let [Err(error)] = resolved.results.as_slice() {
            return Ok(Handled::error(&json!({"error": error_text(context, error)})));
        }
        // Nothing of the batch runs: the model sees which calls were fine and which were not.
        let results: Vec<Value> = resolved
            .results
            .iter()
            .map(|result| match result {
                Ok(dispatch) => {
                    let name = wire_name(context, &dispatch.name);
                    json!({"ok": true, "name": name, "note": "not run, because another call of the batch was wrong"})
                }
                Err(error) => json!({"ok": false, "error": error_text(context, error)}),
            })
            .collect();
        Ok(Handled::error(&json!({"results": results})))
    }
}

/// What a call means. One that names a namespace means a tool of that group alone: the agent may have a tool of the
/// same name in a namespace of its own.
fn meant<'v>(view: &'v View, call: &ModelCall) -> Resolved<'v> {
    if call.is_custom {
        return Resolved::Unknown;
    }
    if call.is_search {
        return Resolved::Bridge(BridgeTool::Search);
    }
    let Some(namespace) = &call.namespace else { return view.resolve(&call.name) };
    let of_namespace = |id: &u32| {
        view.get(*id).is_some_and(|tool| {
            let groups = [view.group(tool), tool.tool.tool.group()];
            groups.iter().any(|group| namespace_name(group) == *namespace)
        })
    };
    let found = match view.resolve_tool(&call.name) {
        Resolved::Tool(id) => vec![id],
        Resolved::Ambiguous(ids) => ids.to_vec(),
        Resolved::Bridge(_) | Resolved::Management(_) | Resolved::Unknown => Vec::new(),
    };
    match found.into_iter().filter(of_namespace).collect::<Vec<_>>().as_slice() {
        [id] => Resolved::Tool(*id),
        _ => Resolved::Unknown,
    }
}

/// Whether arguments are a text that was never meant to be JSON.
fn is_plain_text(arguments: Option<&Value>) -> bool {
    arguments.and_then(Value::as_str).is_some_and(|text| !text.trim_start().starts_with(['{', '[', '"']))
}

fn result(context: &Context, call: &ModelCall, handled: Handled) -> BridgeResult {
    let reply_to = ReplyTo {
        id: call.id.clone(),
        name: call.name.clone(),
        wire_name: replay_name(context, call),
        namespace: call.namespace.clone(),
    };
    match handled {
        Handled::Dispatch(calls) => BridgeResult {
            action: BridgeAction::Dispatch,
            reply_to,
            content: None,
            message: None,
            is_error: None,
            tokens: None,
            calls: Some(calls),
        },
        Handled::Respond(Reply { content, is_error, message, tokens }) => BridgeResult {
            action: BridgeAction::Respond,
            message: message
                .or_else(|| Some(context.target.format.wire().result_message(call, &content, is_error))),
            reply_to,
            content: Some(content),
            is_error: Some(is_error),
            tokens: Some(tokens),
            calls: None,
        },
    }
}

/// What the provider takes in place of the name of a call, where it refuses that.
fn replay_name(context: &Context, call: &ModelCall) -> Option<String> {
    let profile = context.target.profile;
    if call.name.is_empty() || profile.limits().names.fits(&call.name) {
        return None;
    }
    let view = context.view();
    let known = match view.resolve_tool(&call.name) {
        Resolved::Tool(id) => view.get(id),
        _ => None,
    };
    Some(known.map_or_else(|| profile.wire_name(&call.name).into_owned(), |tool| tool.wire_name().to_owned()))
}

/// The texts under the first of these keys that has some: a string, an array, or an array written as a string.
fn texts(arguments: &Map<String, Value>, keys: &[&str]) -> Vec<String> {
    let read = |value: &Value| -> Vec<String> {
        let of_list = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        match value {
            Value::Array(list) => of_list(list),
            Value::String(text) => match serde_json::from_str::<Vec<Value>>(text) {
                Ok(list) => of_list(&list),
                Err(_) => vec![text.clone()],
            },
            _ => Vec::new(),
        }
    };
    keys.iter()
        .filter_map(|key| arguments.get(*key))
        .map(read)
        .find(|texts| !texts.is_empty())
        .unwrap_or_default()
}

/// A call's error as the model reads it: wire names for suggestions.
fn error_text(context: &Context, error: &CallError) -> Value {
    let mut text = serde_json::to_value(error).unwrap_or_default();
    if let Some(suggestions) = text.get_mut("suggestions").and_then(Value::as_array_mut) {
        for name in suggestions {
            let wire = name.as_str().and_then(|name| wire_name(context, name));
            if let Some(wire) = wire {
                *name = Value::from(wire);
            }
        }
    }
    text
}

fn wire_name(context: &Context, stored: &str) -> Option<String> {
    match context.view().resolve_tool(stored) {
        Resolved::Tool(id) => context.view().get(id).map(|tool| tool.wire_name().to_owned()),
        _ => None,
    }
}
