//! `call`: from what a model wrote to a call that the agent can run, or to an error that one retry mends.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::context::{Caller, Context, GrantFields};
use super::describe::{Meaning, meaning, shown, suggestions};
use super::sessions::Deed;
use super::{Error, Toolrack, blocking};
use crate::core::calls::{CallFault, InnerCall, read_calls, unwrap_nested};
use crate::core::grant::{View, ViewTool};
use crate::core::json::push_compact;
use crate::core::mend::{ArgChange, renamed_keys, unmap, wire_pointer};
use crate::core::schema::{Validator, Verdict, path_of};
use crate::core::text::one_line;
use crate::core::warning::Warning;
use crate::telemetry;

/// Keys of the arguments that an error repeats.
const MAX_RECEIVED_KEYS: usize = 32;
/// Longest schema that an error carries, in bytes: twice the longest of 17,000 real tools.
const MAX_ERROR_SCHEMA_BYTES: usize = 64 * 1_024;

/// What a call request asks for.
#[derive(Debug, Clone)]
pub struct CallRequest {
    pub caller: Caller,
    pub fields: GrantFields,
    /// Entries as the model wrote them.
    pub calls: Vec<Value>,
    pub call_id: Option<String>,
}

/// A call for the agent to run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Dispatch {
    /// `<call_id or "call">:tool:<name>`, with `#2` and so on for a repeat.
    pub id: String,
    /// The stored name.
    pub name: String,
    /// The group of the upload; only for a tool whose stored name is qualified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The name of the upload; only for a tool whose stored name is qualified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploaded_name: Option<String>,
    #[schema(value_type = Object)]
    pub arguments: Value,
}

/// Why a call cannot be run, with what is needed to mend it.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct CallError {
    /// `unknown_tool`, `ambiguous_name`, `tool_unavailable`, `bridge_tool`, `missing_arguments`, `invalid_arguments`,
    /// `malformed_arguments`, `arguments_not_an_object`, `arguments_too_deep`, `missing_name` or `invalid_call`.
    #[schema(value_type = String)]
    pub code: &'static str,
    /// For the model.
    pub message: String,
    /// Where in the arguments, like `arguments.options.count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The JSON Schema keyword that was broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// Required arguments that are absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Argument names that were received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_keys: Option<Vec<String>>,
    /// The tool's JSON Schema, when arguments are wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Box<RawValue>>,
    /// Stored names of tools that may be meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

/// What became of one call.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CallResult {
    /// Whether there is a `dispatch`; otherwise there is an `error`.
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<Dispatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
}

impl From<Result<Dispatch, Box<CallError>>> for CallResult {
    fn from(result: Result<Dispatch, Box<CallError>>) -> Self {
        match result {
            Ok(dispatch) => Self { ok: true, dispatch: Some(dispatch), error: None },
            Err(error) => Self { ok: false, dispatch: None, error: Some(*error) },
        }
    }
}

/// One entry per call, in order.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CallAnswer {
    pub results: Vec<CallResult>,
    /// Tools that these calls put into the session's array.
    pub warmed: Vec<String>,
    /// Tools that had to leave it.
    pub evicted: Vec<String>,
    pub warnings: Vec<Warning>,
}

/// What reading and checking some calls gave.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub results: Vec<Result<Dispatch, Box<CallError>>>,
    /// Tools that were meant, also with wrong arguments.
    pub called: Vec<u32>,
    /// The tool of each call that can be run.
    pub ready: Vec<u32>,
    /// Arguments that were not checked, and why.
    pub warnings: Vec<Warning>,
}

impl Dispatch {
    /// A call of a tool under its stored name; a qualified one is told by its upload too.
    pub(super) fn of(tool: &ViewTool, id: String, arguments: Value) -> Self {
        let upload = &tool.tool.tool;
        let qualified = upload.name() != tool.stored_name();
        Self {
            id,
            name: tool.stored_name().to_owned(),
            group: qualified.then(|| upload.group().to_owned()),
            uploaded_name: qualified.then(|| upload.name().to_owned()),
            arguments,
        }
    }
}

impl Toolrack {
    /// Resolves and checks calls; never runs one.
    pub async fn call(&self, request: CallRequest) -> Result<CallAnswer, Error> {
        self.check_calls(&request.calls)?;
        let context = self.context(&request.caller, &request.fields).await?;
        let common = request.call_id.as_deref().unwrap_or("call");
        let mut entries = request.calls;
        let ids: Vec<Option<String>> = entries.iter_mut().map(take_call_id).collect();
        let entries = Map::from_iter([("calls".to_owned(), Value::Array(entries))]);
        let resolved = match read_calls(&entries, self.0.limits.calls) {
            Ok(calls) => {
                let ids = ids.into_iter().map(|id| id.unwrap_or_else(|| common.to_owned()));
                self.resolve_calls(&context, calls.into_iter().zip(ids).collect()).await
            }
            Err(fault) => Resolved { results: vec![Err(CallError::boxed(fault))], ..Resolved::default() },
        };
        count_unknown(&resolved, "call");
        let deed = if resolved.ready.is_empty() { Deed::Change } else { Deed::Call };
        let warming = self.warm(&context, &resolved.called, deed).await?;
        self.usage().called(&request.caller, &context, &resolved.ready);
        let mut warnings = context.warnings();
        warnings.extend(resolved.warnings);
        warnings.extend(warming.warnings);
        Ok(CallAnswer {
            results: resolved.results.into_iter().map(CallResult::from).collect(),
            warmed: warming.warmed,
            evicted: warming.evicted,
            warnings,
        })
    }

    /// At least one call, and not more than the limit.
    pub(super) fn check_calls(&self, calls: &[Value]) -> Result<(), Error> {
        let most = self.0.limits.calls;
        match calls.len() {
            0 => Err(Error::invalid("/calls", "missing_key", "there is no call")),
            count if count > most => Err(Error::invalid(
                "/calls",
                "too_many",
                format!("{count} calls are more than {most} at once"),
            )),
            _ => Ok(()),
        }
    }

    /// Resolves calls in order: names, arguments, schemas. Each comes with the id that its dispatch begins with.
    pub(super) async fn resolve_calls(
        &self,
        context: &Context,
        calls: Vec<(Result<InnerCall, CallFault>, String)>,
    ) -> Resolved {
        let mut resolved = Resolved::default();
        let mut repeats: HashMap<String, usize> = HashMap::new();
        for (call, call_id) in calls {
            let result = match call {
                Ok(call) => self.resolve_call(context, call, &mut resolved).await,
                Err(fault) => Err(CallError::boxed(fault)),
            };
            let dispatch = result.map(|(tool, arguments)| {
                let mut id = format!("{call_id}:tool:{}", tool.stored_name());
                let repeat = repeats.entry(id.clone()).and_modify(|count| *count += 1).or_insert(1);
                if *repeat > 1 {
                    id.push_str(&format!("#{repeat}"));
                }
                Dispatch::of(tool, id, arguments)
            });
            resolved.results.push(dispatch);
        }
        resolved
    }

    async fn resolve_call<'c>(
        &self,
        context: &'c Context,
        call: InnerCall,
        resolved: &mut Resolved,
    ) -> Result<(&'c ViewTool, Value), Box<CallError>> {
        let view = context.view();
        let id = match meaning(view, &call.name) {
            Meaning::Tool(id) => id,
            Meaning::Unavailable(id) => {
                let message = view.get(id).map(unavailable).unwrap_or_default();
                return Err(CallError::plain("tool_unavailable", message));
            }
            Meaning::Bridge => {
                let message = format!(
                    "`{}` is itself a bridge tool; name the tool that it should call.",
                    shown(&call.name)
                );
                return Err(CallError::plain("bridge_tool", message));
            }
            Meaning::Management => {
                let message =
                    format!("`{}` is called directly, never through another tool.", shown(&call.name));
                return Err(CallError::plain("bridge_tool", message));
            }
            Meaning::Ambiguous(ids) => return Err(name_error(view, "ambiguous_name", &call.name, ids)),
            Meaning::Unknown => {
                return Err(name_error(view, "unknown_tool", &call.name, &suggestions(view, &call.name)));
            }
        };
        resolved.called.push(id);
        let Some(entry) = view.get(id) else { return Err(Box::default()) };
        let tool = &entry.tool.tool;
        // The model knows the schema that the target was sent.
        let made = entry.for_target(context.target);
        let schema = made.schema().unwrap_or_else(|| tool.parameters());
        let arguments = call.arguments.map_err(|fault| {
            Box::new(CallError {
                code: fault.code,
                message: format!("{}. The tool was NOT called.", fault.message.trim_end_matches('.')),
                schema: carried(schema),
                ..CallError::default()
            })
        })?;
        let declared = declared_arguments(schema);
        let mut arguments = Value::Object(unwrap_nested(arguments, &call.name, |key| {
            declared.iter().any(|known| known == key)
        }));
        let sent = arguments.clone();
        unmap(&mut arguments, &made.arg_map);
        let verdict = match self.validator(entry).await {
            Ok(validator) => validator.check(&arguments),
            Err(error) => Verdict::Unchecked(error.to_string()),
        };
        let verdict = in_wire_keys(verdict, &sent, &made.arg_map);
        resolved.warnings.extend(check_arguments(entry, schema, verdict, &sent)?);
        resolved.ready.push(id);
        Ok((entry, arguments))
    }

    async fn validator(&self, entry: &ViewTool) -> Result<Arc<Validator>, Error> {
        let digest = entry.tool.tool.digest();
        if let Some(validator) = self.0.caches.validators.get(&digest).await {
            return Ok(validator);
        }
        let tool = Arc::clone(&entry.tool.tool);
        let build = async move { blocking(move || Arc::new(Validator::compile(tool.parameters()))).await };
        Ok(self.0.caches.validators.try_get_with(digest, build).await?)
    }
}

/// Takes an entry's own `call_id` out, so that it is not taken for an argument.
fn take_call_id(entry: &mut Value) -> Option<String> {
    let id = entry.as_object_mut()?.shift_remove("call_id")?;
    id.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}

/// Counts calls of names that mean nothing.
pub(super) fn count_unknown(resolved: &Resolved, route: &'static str) {
    let unknown = resolved
        .results
        .iter()
        .filter(|result| result.as_ref().is_err_and(|error| error.code == "unknown_tool"));
    unknown.for_each(|_| telemetry::unknown_tool_call(route));
}

impl CallError {
    fn plain(code: &'static str, message: String) -> Box<Self> {
        Box::new(Self { code, message, ..Self::default() })
    }

    pub(super) fn boxed(fault: CallFault) -> Box<Self> {
        Self::plain(fault.code, fault.message)
    }
}

/// What is said of a tool that cannot run at the moment.
pub(super) fn unavailable(tool: &ViewTool) -> String {
    let name = tool.wire_name();
    format!(
        "`{name}` is not available at the moment; it was NOT called. Do something else, or try again later."
    )
}

/// The same answer for unknown and forbidden names.
fn name_error(view: &View, code: &'static str, name: &str, ids: &[u32]) -> Box<CallError> {
    let tools: Vec<&ViewTool> = ids.iter().filter_map(|id| view.get(*id)).collect();
    let wire: Vec<&str> = tools.iter().map(|tool| tool.wire_name()).collect();
    let name = shown(name);
    let message = match (code, wire.is_empty()) {
        ("ambiguous_name", _) => format!("`{name}` means several tools; use one of: {}.", wire.join(", ")),
        (_, true) => format!("There is no tool `{name}`. Use {}tool_search to find one.", view.bridge_prefix),
        (_, false) => format!("There is no tool `{name}`. Did you mean {}?", wire.join(", ")),
    };
    Box::new(CallError {
        code,
        message,
        suggestions: tools.iter().map(|tool| view.callable_name(tool).to_owned()).collect(),
        ..CallError::default()
    })
}

/// Names of the arguments that a schema declares at its root.
fn declared_arguments(parameters: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Root<'a> {
        #[serde(borrow)]
        properties: Option<HashMap<std::borrow::Cow<'a, str>, serde::de::IgnoredAny>>,
    }
    let root: Option<Root<'_>> = serde_json::from_str(parameters).ok();
    root.and_then(|root| root.properties)
        .unwrap_or_default()
        .into_keys()
        .map(std::borrow::Cow::into_owned)
        .collect()
}

/// The schema that an error carries, so that one retry mends the call; a very long one is left to `describe`.
fn carried(schema: &str) -> Option<Box<RawValue>> {
    if schema.len() > MAX_ERROR_SCHEMA_BYTES {
        return None;
    }
    let mut compact = String::with_capacity(schema.len());
    push_compact(schema, &mut compact);
    RawValue::from_string(compact).ok()
}

/// What an error says in the place of a schema that it does not carry.
fn schema_note(schema: &str) -> &'static str {
    if schema.len() <= MAX_ERROR_SCHEMA_BYTES {
        ""
    } else {
        " (The schema is very long; describe the tool to see it.)"
    }
}

/// A verdict about original arguments in the keys that the model knows; `sent` are the arguments as it sent them.
fn in_wire_keys(verdict: Verdict, sent: &Value, changes: &[ArgChange]) -> Verdict {
    if changes.is_empty() {
        return verdict;
    }
    match verdict {
        Verdict::Missing(missing) => {
            let wire = |key: String| {
                let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
                let wire = wire_pointer(&pointer, changes);
                wire.rsplit('/').next().map_or(key, |last| last.replace("~1", "/").replace("~0", "~"))
            };
            Verdict::Missing(missing.into_iter().map(wire).collect())
        }
        Verdict::Invalid(mut violation) => {
            violation.path = path_of(&wire_pointer(&violation.pointer, changes), sent);
            for (original, wire) in renamed_keys(changes) {
                // Messages quote keys as JSON, on one line.
                for original in [Value::from(original), Value::from(&*one_line(original))] {
                    violation.message =
                        violation.message.replace(&original.to_string(), &Value::from(wire).to_string());
                }
            }
            Verdict::Invalid(violation)
        }
        other => other,
    }
}

/// Nothing, or a warning, for arguments that the tool can be run with.
fn check_arguments(
    entry: &ViewTool,
    schema: &str,
    verdict: Verdict,
    arguments: &Value,
) -> Result<Option<Warning>, Box<CallError>> {
    let name = entry.wire_name();
    let received = || {
        let keys = arguments.as_object().map(|object| object.keys().take(MAX_RECEIVED_KEYS));
        keys.map(|keys| keys.map(|key| one_line(key).into_owned()).collect())
    };
    match verdict {
        Verdict::Valid => Ok(None),
        Verdict::Unchecked(reason) => {
            let detail = format!("the arguments were not checked: {reason}");
            Ok(Some(Warning::new("arguments_unchecked", detail).for_tool(entry.stored_name())))
        }
        Verdict::Missing(missing) => {
            let shown: Vec<String> = missing.iter().map(|name| one_line(name).into_owned()).collect();
            Err(Box::new(CallError {
                code: "missing_arguments",
                message: format!(
                    "`{name}` is missing required argument(s): {}. It was NOT called.{}",
                    shown.join(", "),
                    schema_note(schema)
                ),
                missing,
                received_keys: received(),
                schema: carried(schema),
                ..CallError::default()
            }))
        }
        Verdict::Invalid(violation) => Err(Box::new(CallError {
            code: "invalid_arguments",
            message: format!(
                "`{name}` was NOT called: {} breaks `{}`: {}{}",
                violation.path,
                violation.constraint,
                violation.message,
                schema_note(schema)
            ),
            path: Some(violation.path),
            constraint: Some(violation.constraint),
            received_keys: received(),
            schema: carried(schema),
            ..CallError::default()
        })),
    }
}
