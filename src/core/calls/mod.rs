//! What models really send as the arguments of a call, and as the calls inside a `tool_call`.
//!
//! Owns the reading only. It must not know which tools exist: whether a name resolves, and whether the arguments
//! fit a schema, is decided by whoever holds the grant. That is also why the unwrapping of arguments that are
//! nested one level too deep is a step of its own ([`unwrap_nested`]), run once the tool is known.

mod names;
#[cfg(test)]
mod tests;

pub use names::{fold_name, name_candidates, suggest};

use serde_json::{Map, Value};

/// Deepest nesting of arguments that came as text; the same as the limit for request bodies (product limits).
pub const MAX_ARGUMENTS_DEPTH: usize = 64;

/// Names under which models send arguments, other than `arguments` itself.
const WRAPPERS: [&str; 5] = ["arguments", "args", "parameters", "params", "input"];

/// Names under which models send the name of the tool, the first that holds a text wins.
const NAME_KEYS: [&str; 3] = ["name", "tool_name", "tool"];

/// How many levels of wrapping are taken off; models that were seen to nest do so once or twice.
const MAX_UNWRAPS: usize = 3;

/// Arguments that cannot be read as an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ArgumentsFault {
    /// `malformed_arguments`, `arguments_not_an_object` or `arguments_too_deep`.
    pub code: &'static str,
    /// One sentence for the model.
    pub message: String,
}

/// A call, or a list of calls, that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallFault {
    /// `missing_name`, `invalid_call`, `malformed_calls`, `no_calls` or `too_many_calls`.
    pub code: &'static str,
    /// One sentence for the model.
    pub message: String,
    /// Place in `calls`, from 0, where one entry is meant.
    pub index: Option<usize>,
}

impl CallFault {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), index: None }
    }

    fn at(mut self, index: usize) -> Self {
        self.index = Some(index);
        self.message = format!("calls[{index}]: {}", self.message);
        self
    }
}

/// One call that a model asks for through the bridge.
#[derive(Debug, Clone, PartialEq)]
pub struct InnerCall {
    /// As sent, trimmed, never empty; see [`name_candidates`] for the repairs.
    pub name: String,
    /// As sent, possibly still wrapped: run [`unwrap_nested`] once the tool is known.
    pub arguments: Result<Map<String, Value>, ArgumentsFault>,
}

/// Reads arguments: an object as it is; a text that holds the JSON of an object, also when it was encoded twice;
/// nothing, null and blank text as `{}`.
///
/// Anything else is a fault that says what was found, and where the JSON broke.
pub fn read_arguments(value: Option<&Value>) -> Result<Map<String, Value>, ArgumentsFault> {
    let text = match value {
        None | Some(Value::Null) => return Ok(Map::new()),
        Some(Value::Object(object)) => return Ok(object.clone()),
        Some(Value::String(text)) => text,
        Some(other) => return Err(not_an_object(other)),
    };
    match parse_text(text)? {
        Value::Null => Ok(Map::new()),
        Value::Object(object) => Ok(object),
        Value::String(inner) => match parse_text(&inner)? {
            Value::Null => Ok(Map::new()),
            Value::Object(object) => Ok(object),
            other => Err(not_an_object(&other)),
        },
        other => Err(not_an_object(&other)),
    }
}

/// Blank text reads as null.
fn parse_text(text: &str) -> Result<Value, ArgumentsFault> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let value: Value = serde_json::from_str(text).map_err(|error| ArgumentsFault {
        code: "malformed_arguments",
        message: if error.is_eof() {
            format!("arguments is not valid JSON, it ends too early: {error}")
        } else {
            format!("arguments is not valid JSON: {error}")
        },
    })?;
    if is_deeper_than(&value, MAX_ARGUMENTS_DEPTH) {
        return Err(ArgumentsFault {
            code: "arguments_too_deep",
            message: format!("arguments is nested deeper than {MAX_ARGUMENTS_DEPTH} levels"),
        });
    }
    Ok(value)
}

/// Only for values that were parsed here: the parser has bounded their depth, so the recursion is bounded too.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|item| is_deeper_than(item, levels - 1)),
        _ => false,
    }
}

fn not_an_object(found: &Value) -> ArgumentsFault {
    ArgumentsFault {
        code: "arguments_not_an_object",
        message: format!("arguments must be an object, found {}", kind_of(found)),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads the arguments of a `tool_call`: `{name, arguments}`, or `{calls}` as an array, one object or the JSON text
/// of either. Arguments may stand beside the name; the whole may be nested once more.
///
/// The outer fault concerns the call as a whole, an inner one a single entry; entries keep their order.
/// `max_calls` is the configured limit of calls per request.
pub fn read_calls(
    arguments: &Map<String, Value>,
    max_calls: usize,
) -> Result<Vec<Result<InnerCall, CallFault>>, CallFault> {
    if let Some(calls) = listed_calls(arguments)? {
        return read_list(calls, max_calls);
    }
    if name_key(arguments).is_none()
        && let Some(inner) = nested_call(arguments)
    {
        return match listed_calls(&inner)? {
            Some(calls) => read_list(calls, max_calls),
            None => Ok(vec![read_entry(&inner)]),
        };
    }
    if name_key(arguments).is_none() && !arguments.contains_key("function") {
        return Err(CallFault::new(
            "no_calls",
            "tool_call needs `name` (the exact name of a tool) and `arguments` (an object)",
        ));
    }
    Ok(vec![read_entry(arguments)])
}

/// What stands under `calls`; none when that says nothing.
fn listed_calls(arguments: &Map<String, Value>) -> Result<Option<Vec<Value>>, CallFault> {
    let entries = match arguments.get("calls") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => {
            let parsed = parse_text(text).map_err(|fault| {
                CallFault::new("malformed_calls", fault.message.replacen("arguments", "calls", 1))
            })?;
            match parsed {
                Value::Null => return Ok(None),
                Value::Array(entries) => entries,
                Value::Object(entry) => vec![Value::Object(entry)],
                other => return Err(calls_of_wrong_kind(&other)),
            }
        }
        Some(Value::Array(entries)) => entries.clone(),
        Some(Value::Object(entry)) => vec![Value::Object(entry.clone())],
        Some(other) => return Err(calls_of_wrong_kind(other)),
    };
    // An empty list beside a name is what decoders emit that must fill every property.
    Ok(if entries.is_empty() && name_key(arguments).is_some() { None } else { Some(entries) })
}

fn calls_of_wrong_kind(found: &Value) -> CallFault {
    CallFault::new(
        "malformed_calls",
        format!("calls must be an array of {{name, arguments}}, found {}", kind_of(found)),
    )
}

fn read_list(entries: Vec<Value>, max_calls: usize) -> Result<Vec<Result<InnerCall, CallFault>>, CallFault> {
    if entries.is_empty() {
        return Err(CallFault::new("no_calls", "calls is empty: it needs at least one {name, arguments}"));
    }
    if entries.len() > max_calls {
        let count = entries.len();
        return Err(CallFault::new(
            "too_many_calls",
            format!("calls holds {count} entries, at most {max_calls} are allowed: split them"),
        ));
    }
    Ok(entries
        .into_iter()
        .enumerate()
        .map(|(index, entry)| {
            let object = match entry {
                Value::Object(object) => Some(object),
                Value::String(text) => as_object(&text),
                _ => None,
            };
            match object {
                Some(object) => read_entry(&object).map_err(|fault| fault.at(index)),
                None => {
                    let fault = CallFault::new("invalid_call", "must be an object {name, arguments}");
                    Err(fault.at(index))
                }
            }
        })
        .collect())
}

/// A call that was put, whole, where its arguments belong.
fn nested_call(arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
    let inner = WRAPPERS.iter().find_map(|key| arguments.get(*key))?;
    let inner = match inner {
        Value::Object(object) => object.clone(),
        Value::String(text) => as_object(text)?,
        _ => return None,
    };
    (name_key(&inner).is_some() || inner.contains_key("calls")).then_some(inner)
}

fn as_object(text: &str) -> Option<Map<String, Value>> {
    match parse_text(text) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

fn name_key(entry: &Map<String, Value>) -> Option<&'static str> {
    NAME_KEYS
        .into_iter()
        .find(|key| entry.get(*key).and_then(Value::as_str).is_some_and(|name| !name.trim().is_empty()))
}

fn read_entry(entry: &Map<String, Value>) -> Result<InnerCall, CallFault> {
    let Some(key) = name_key(entry) else {
        // OpenAI's own shape: {type: "function", function: {name, arguments}}.
        if let Some(Value::Object(function)) = entry.get("function")
            && name_key(function).is_some()
        {
            return read_entry_named(function, name_key(function).unwrap_or("name"));
        }
        return Err(CallFault::new("missing_name", "`name` is missing: give the exact name of a tool"));
    };
    read_entry_named(entry, key)
}

fn read_entry_named(entry: &Map<String, Value>, key: &str) -> Result<InnerCall, CallFault> {
    let name = entry.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let given = entry.get("arguments");
    let empty = match given {
        None | Some(Value::Null) => true,
        Some(Value::Object(object)) => object.is_empty(),
        Some(Value::String(text)) => matches!(text.trim(), "" | "{}" | "null"),
        Some(_) => false,
    };
    if !empty {
        return Ok(InnerCall { name, arguments: read_arguments(given) });
    }
    // Nothing under `arguments`: what stands beside the name is meant. A synonym such as `input` is hoisted like
    // any other key, because only the tool's schema can tell a wrapper from an argument of that name.
    let hoisted = entry.iter().filter(|(other, value)| {
        let noise = *other == "calls" || (*other == "type" && value.as_str() == Some("function"));
        *other != key && *other != "arguments" && !noise
    });
    Ok(InnerCall { name, arguments: Ok(hoisted.map(|(key, value)| (key.clone(), value.clone())).collect()) })
}

/// Takes off wrappers that models put around arguments: `{"arguments": {...}}` and its synonyms, alone or beside
/// the tool's own name.
///
/// `declared` says whether the tool's schema has a property of that name; such a one is never taken for a wrapper.
pub fn unwrap_nested(
    mut arguments: Map<String, Value>,
    name: &str,
    declared: impl Fn(&str) -> bool,
) -> Map<String, Value> {
    for _ in 0..MAX_UNWRAPS {
        let Some(key) = wrapper_of(&arguments, name, &declared) else { break };
        let inner = match arguments.get_mut(key).map(Value::take) {
            Some(Value::Object(object)) => object,
            Some(Value::String(text)) => read_arguments(Some(&Value::String(text))).unwrap_or_default(),
            _ => Map::new(),
        };
        arguments = inner;
    }
    arguments
}

/// The wrapper that holds everything there is, if its content can be read.
fn wrapper_of(
    arguments: &Map<String, Value>,
    name: &str,
    declared: &impl Fn(&str) -> bool,
) -> Option<&'static str> {
    if arguments.len() > 2 {
        return None;
    }
    let key = WRAPPERS.into_iter().find(|key| arguments.contains_key(*key) && !declared(key))?;
    let repeats_name = |(other, value): (&String, &Value)| {
        NAME_KEYS.contains(&other.as_str())
            && value.as_str().is_some_and(|text| {
                let wanted = fold_name(name);
                name_candidates(text).iter().any(|candidate| fold_name(candidate) == wanted)
            })
    };
    if !arguments.iter().filter(|(other, _)| *other != key).all(repeats_name) {
        return None;
    }
    let readable = match arguments.get(key)? {
        Value::Object(_) | Value::Null => true,
        text @ Value::String(_) => read_arguments(Some(text)).is_ok(),
        _ => false,
    };
    readable.then_some(key)
}
