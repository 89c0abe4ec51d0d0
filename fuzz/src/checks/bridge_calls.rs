//! Calls of models, in the shape of each format, and what stands inside a `tool_call`. The input is the name of a format and,
//! behind an empty line, a call or an array of calls; with `messages` in place of the format, a conversation.
//!
//! Each call is read or refused in words, and its answer goes back under the id and name that the model used.

use std::sync::{Arc, LazyLock};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::upload;
use crate::core::calls::{
    InnerCall, MAX_ARGUMENTS_DEPTH, fold_name, name_candidates, read_arguments, read_calls, suggest,
    unwrap_nested,
};
use crate::core::catalog::Catalog;
use crate::core::format::{Format, ModelCall, ReadFault};
use crate::core::grant::{BridgeTool, Catalogs, Resolved, View};
use crate::core::json::{self, JsonLimits};
use crate::core::mend::unmap;
use crate::core::messages::{MAX_USER_TEXT_CHARS, last_calls, last_user_text};
use crate::core::policy::Policy;
use crate::core::profile::Profile;
use crate::core::schema::{Validator, Verdict};
use crate::core::target::Target;

/// Most calls inside one `tool_call`, as the service allows.
const MOST: usize = 20;

const TOOLS: &str = r#"[
    {"name":"send_mail","group":"mail","parameters":{"type":"object","properties":{"to":{"type":"string"},"n":{"type":"integer"}},"required":["to"]}},
    {"name":"files.read","group":"files","parameters":{"type":"object","properties":{"$path":{"type":"string"},"args":{"type":"object"}}}},
    {"name":"search","group":"a"},{"name":"search","group":"b"},
    {"name":"odd","group":"a","parameters":{"anyOf":[{"type":"object","properties":{"k":{"const":1}}},{"type":"null"}]}}]"#;

static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| Arc::new(upload::catalog(TOOLS)));

pub(crate) fn check(input: &[u8]) {
    let Some((format, calls)) = super::parts(input) else { return };
    let Ok(calls) = json::check(calls.as_bytes(), JsonLimits::strict(MAX_ARGUMENTS_DEPTH)) else { return };
    if format.trim() == "messages" {
        return conversation(calls);
    }
    let format = Format::parse(format.trim()).unwrap_or_default();
    let calls = match serde_json::from_str(calls) {
        Ok(Value::Array(calls)) => calls,
        Ok(call) => vec![call],
        Err(_) => return,
    };
    let view = View::build(
        &Catalogs::Inline(Arc::clone(&CATALOG)),
        &Policy::default(),
        &[],
        &[],
        Profile::default().spoken_in(format),
    );
    for raw in calls.iter().take(MOST) {
        match format.wire().read_call(raw) {
            Err(ReadFault::NotACall(why)) => assert!(!why.is_empty()),
            Err(ReadFault::Broken { call, why }) => answer(format, &call, &json!({ "error": why }), true),
            Ok(call) => {
                assert!(!call.name.is_empty() || call.is_search, "{call:?}");
                let content = handled(&view, format, &call);
                answer(format, &call, &content, false);
            }
        }
    }
}

/// The message of an answer is an object that holds the call's id, and the text where it has a place for one: what is answered to
/// a provider's own search is tools.
fn answer(format: Format, call: &ModelCall, content: &Value, is_error: bool) {
    let text = content.to_string();
    let message = format.wire().result_message(call, &text, is_error);
    assert_eq!(message, format.wire().result_message(call, &text, is_error));
    assert!(message.is_object(), "{message}");
    let id = call.request_id.clone().unwrap_or_else(|| Value::from(call.id.as_str()));
    assert!(call.id.is_empty() || holds(&message, &|value| *value == id), "{call:?} {message}");
    let is_text = |value: &Value| value.as_str() == Some(text.as_str()) || value == content;
    assert!(call.is_search || holds(&message, &is_text), "{text} is not in {message}");
}

fn holds(value: &Value, is_it: &dyn Fn(&Value) -> bool) -> bool {
    is_it(value)
        || match value {
            Value::Array(items) => items.iter().any(|item| holds(item, is_it)),
            Value::Object(map) => map.values().any(|value| holds(value, is_it)),
            _ => false,
        }
}

/// What a call of a tool or of the bridge comes to, as the service does it without its store.
fn handled(view: &View, format: Format, call: &ModelCall) -> Value {
    let arguments = match read_arguments(call.arguments.as_ref()) {
        Ok(arguments) => arguments,
        Err(fault) => {
            assert!(!fault.message.contains(char::is_control), "{fault:?}");
            return json!({"error": fault.message});
        }
    };
    match view.resolve(&call.name) {
        Resolved::Bridge(BridgeTool::Call) => match read_calls(&arguments, MOST) {
            Ok(calls) => {
                assert!((1..=MOST).contains(&calls.len()), "{} calls", calls.len());
                calls
                    .into_iter()
                    .map(|call| call.map_or(Value::Null, |call| inner(view, format, call)))
                    .collect()
            }
            Err(fault) => json!({"error": fault.message}),
        },
        Resolved::Tool(id) => fitted(view, format, id, arguments),
        _ => Value::Object(arguments),
    }
}

fn inner(view: &View, format: Format, call: InnerCall) -> Value {
    assert!(!call.name.trim().is_empty());
    let candidates = name_candidates(&call.name);
    assert!(candidates.first().is_some_and(|first| *first == call.name));
    let _folded: Vec<String> = candidates.iter().map(|name| fold_name(name)).collect();
    let found = candidates.iter().find_map(|name| match view.resolve_tool(name) {
        Resolved::Tool(id) => Some(id),
        _ => None,
    });
    let Some(id) = found else {
        let names = CATALOG.tools().iter().map(|tool| &*tool.stored_name);
        let like = suggest(&call.name, names, 3);
        assert!(like.len() <= 3 && like.iter().all(|name| CATALOG.get(name).is_some()), "{like:?}");
        return json!({ "suggestions": like });
    };
    let Ok(given) = call.arguments else { return Value::Null };
    let declared = |key: &str| key == "to" || key == "args";
    let unwrapped = unwrap_nested(given, &call.name, declared);
    assert_eq!(unwrap_nested(unwrapped.clone(), &call.name, |_| true), unwrapped);
    fitted(view, format, id, unwrapped)
}

/// Arguments in the tool's own keys, held against its schema.
fn fitted(view: &View, format: Format, id: u32, arguments: Map<String, Value>) -> Value {
    let tool = view.get(id).expect("a tool that was found");
    let mut arguments = Value::Object(arguments);
    unmap(&mut arguments, &tool.for_target(Target::of(format)).arg_map);
    if let Verdict::Invalid(violation) = Validator::compile(tool.tool.tool.parameters()).check(&arguments) {
        assert!(!violation.message.contains(char::is_control), "{violation:?}");
    }
    json!({"dispatch": {"name": tool.stored_name(), "arguments": arguments}})
}

fn conversation(messages: &str) {
    let Ok(messages) = serde_json::from_str::<Vec<Box<RawValue>>>(messages) else { return };
    let names = last_calls(&messages).names;
    assert!(names.iter().all(|name| messages.iter().any(|message| message.get().len() > name.len())));
    if let Some(text) = last_user_text(&messages) {
        assert!(text.chars().count() <= MAX_USER_TEXT_CHARS, "{}", text.len());
    }
}
