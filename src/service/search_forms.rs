//! What a model reads of a search: words for a `tool` message, or what the provider loads tools by.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::Error;
use super::context::Context;
use super::ranking::Ranking;
use super::search::{QueryResult, SearchAnswer, ToolMatch, ToolState, state};
use crate::core::format::native::Exposure;
use crate::core::grant::{BridgeTool, ViewTool};
use crate::core::loading::{LoadForm, Loading, own_form};
use crate::core::matches::{Confidence, found_order};
use crate::core::mend::Dialect;
use crate::core::plan::Plan;
use crate::core::target::Target;
use crate::core::text::clip;
use crate::core::tokens;
use crate::core::warm::WarmSet;
use crate::core::warning::Warning;

/// In which form a search is answered besides its matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerForm {
    Text,
    Load(LoadForm),
}

impl AnswerForm {
    const NAMES: [(&'static str, Self); 4] = [
        ("text", Self::Text),
        ("tool_references", Self::Load(LoadForm::ToolReferences)),
        ("tool_search_output", Self::Load(LoadForm::ToolSearchOutput)),
        ("additional_tools", Self::Load(LoadForm::AdditionalTools)),
    ];

    pub(super) fn parse(text: Option<&str>) -> Result<Option<Self>, Error> {
        let Some(text) = text else { return Ok(None) };
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, form)| Some(*form)).ok_or_else(|| {
            let names = Self::NAMES.map(|(name, _)| name).join(", ");
            let detail = format!("`{}` is not a form; there are {names}", clip(text, 40));
            Error::invalid("/form", "invalid_value", detail)
        })
    }

    /// Refuses a form that the array of the session, or the request, has no place for.
    pub(super) fn check(self, plan: &Plan, call_id: Option<&str>) -> Result<(), Error> {
        match self {
            Self::Load(LoadForm::ToolReferences)
                if own_form(plan.target) != Some(LoadForm::ToolReferences) =>
            {
                let detail = "only arrays of the format anthropic with the exposure native declare the tools that references name";
                Err(Error::invalid("/form", "invalid_value", detail))
            }
            Self::Load(LoadForm::ToolSearchOutput) if call_id.is_none_or(str::is_empty) => {
                let detail = "a tool_search_output answers a call: send its id";
                Err(Error::invalid("/call_id", "missing_key", detail))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(_, form)| *form == self).map_or("text", |(name, _)| name)
    }
}

/// What the model reads of a search.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FormedAnswer {
    /// The form that was asked for.
    #[schema(value_type = String)]
    pub form: &'static str,
    /// A text; in the other forms what goes into the conversation, null where there is nothing to add.
    #[schema(value_type = Value)]
    pub content: Box<RawValue>,
    /// o200k tokens of what the model reads: the text, or the definitions that are loaded.
    pub tokens: usize,
    /// Names, as the model uses them, of the tools that are loaded; empty for a text.
    pub loaded: Vec<String>,
    /// Whether a match that is not in the array can neither be loaded: the provider does not take its definition. It is
    /// described and called through the bridge.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

/// What a search found, for whom it is written.
pub(super) struct FoundTools<'a> {
    pub context: &'a Context,
    pub plan: &'a Plan,
    pub ranking: &'a Ranking,
}

impl FoundTools<'_> {
    /// Adds a form to an answer whose matches are there.
    pub(super) fn answer_in(&self, form: AnswerForm, call_id: &str, answer: &mut SearchAnswer) {
        let formed = match form {
            AnswerForm::Text => self.text(answer),
            AnswerForm::Load(load) => self.load(load, call_id, answer),
        };
        answer.answer = formed;
    }

    fn text(&self, answer: &SearchAnswer) -> Option<FormedAnswer> {
        let text = search_text(self.context, self.plan.target, answer).to_string();
        Some(FormedAnswer {
            form: AnswerForm::Text.as_str(),
            tokens: tokens::count(&text),
            content: raw(&Value::from(text).to_string())?,
            loaded: Vec::new(),
            left_out: false,
        })
    }

    fn load(&self, form: LoadForm, call_id: &str, answer: &mut SearchAnswer) -> Option<FormedAnswer> {
        let view = self.context.view();
        let target = Target { format: form.format(), dialect: Dialect::JsonSchema, ..self.plan.target };
        let budget = self.context.policy().max_answer_tokens as usize;
        // As the array is now: what this search warmed stands in the next one.
        let nothing = WarmSet::default();
        let before = self.context.session.as_ref().map_or(&nothing, |(_, session)| &session.warm);
        let is_present =
            |tool: &ViewTool| matches!(state(tool, self.plan, before), ToolState::Core | ToolState::Warm);
        let found = found_order(&self.ranking.found);
        let loading = Loading::of(view, target, &found, is_present, budget);
        let over = loading.over_budget.iter().filter_map(|id| view.get(*id));
        answer.warnings.extend(over.map(|tool| {
            let detail = format!("its definition has no room in {budget} tokens (`max_answer_tokens`)");
            Warning::new("not_loaded", detail).for_tool(tool.stored_name())
        }));
        let left_out = loading.left_out.iter().filter_map(|id| view.get(*id));
        answer.warnings.extend(left_out.map(|tool| {
            let detail = "the provider does not take its definition; tool_describe and tool_call reach it";
            Warning::new("not_loaded", detail).for_tool(tool.stored_name())
        }));
        answer.truncated |= !loading.over_budget.is_empty();
        Some(FormedAnswer {
            form: AnswerForm::Load(form).as_str(),
            content: raw(&loading.write(view, form, call_id))?,
            tokens: loading.tokens,
            loaded: loading.names(view).into_iter().map(str::to_owned).collect(),
            left_out: !loading.left_out.is_empty(),
        })
    }
}

fn raw(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_owned()).ok()
}

/// A search's answer as the model reads it: what it needs to choose and to call.
pub(super) fn search_text(context: &Context, target: Target, found: &SearchAnswer) -> Value {
    let result = |result: &QueryResult| {
        let mut entry =
            json!({"query": result.query, "matches": result.matches.iter().map(shown).collect::<Vec<_>>()});
        if let Some(nearest) = result.nearest.as_ref().filter(|nearest| !nearest.is_empty()) {
            entry["possibly_unrelated"] = nearest.iter().map(shown).collect();
        }
        if let Some(groups) = &result.groups {
            entry["groups"] =
                groups.iter().map(|group| json!({"name": group.name, "tools": group.tools})).collect();
        }
        if let Some(hint) = &result.hint {
            entry["hint"] = Value::from(hint.as_str());
        }
        entry
    };
    let mut text = json!({"results": found.results.iter().map(result).collect::<Vec<_>>()});
    let matches: Vec<&ToolMatch> = found.results.iter().flat_map(|result| &result.matches).collect();
    if !matches.is_empty() {
        text["next"] = Value::from(next(context, target, &matches));
    }
    if found.truncated {
        text["truncated"] = Value::Bool(true);
    }
    text
}

/// A match as the model reads it.
fn shown(tool: &ToolMatch) -> Value {
    let name = tool.wire_name.as_ref().unwrap_or(&tool.name);
    // A signature holds the name.
    if let Some(signature) = &tool.signature {
        return Value::from(signature.as_str());
    }
    if tool.description.is_none() {
        return Value::from(name.as_str());
    }
    let mut entry = json!({
        "name": name,
        "description": tool.description,
        "group": tool.group,
        "required": tool.required,
    });
    if let Some(parameters) = tool.parameters.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()) {
        entry["parameters"] = parameters;
    }
    if tool.confidence == Confidence::Low {
        entry["confidence"] = Value::from("low");
    }
    entry
}

/// What to do with the matches.
fn next(context: &Context, target: Target, matches: &[&ToolMatch]) -> String {
    let prefix = &context.view().bridge_prefix;
    let [describe, call] = [BridgeTool::Describe, BridgeTool::Call].map(|tool| tool.name(prefix));
    let in_array = |tool: &&ToolMatch| matches!(tool.state, ToolState::Core | ToolState::Warm);
    if target.exposure == Exposure::Native && matches.iter().all(in_array) {
        return "They stand in your tool list: call one directly.".to_owned();
    }
    if matches.iter().any(|tool| tool.confidence > Confidence::Low) {
        return format!("Call one with {call}; {describe} shows all its arguments.");
    }
    format!(
        "These matches are weak: look at one with {describe} before calling it, or search in other words."
    )
}

/// Results as models read them: explanations are for people.
pub(super) fn text_read(results: &[QueryResult]) -> String {
    let mut plain = Cow::Borrowed(results);
    let explained = |result: &QueryResult| {
        result.matches.iter().chain(result.nearest.iter().flatten()).any(|tool| tool.explain.is_some())
    };
    if results.iter().any(explained) {
        let results = plain.to_mut().iter_mut();
        let tools =
            results.flat_map(|result| result.matches.iter_mut().chain(result.nearest.iter_mut().flatten()));
        tools.for_each(|tool| tool.explain = None);
    }
    serde_json::to_string(&plain).unwrap_or_default()
}
