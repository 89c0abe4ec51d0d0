//! What a search's answer loads: found tools in the provider's own shape, within a budget of tokens.
//!
//! A function of the view, the target and what was found. What a session learns from a search is `warm`.

use std::sync::Arc;

use super::format::Format;
use super::format::native::{self, Exposure};
use super::grant::{View, ViewTool};
use super::target::{ArrayEntry, Target, TargetTool};

/// The shapes in which found tools are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadForm {
    /// Anthropic's blocks that name deferred tools of the array.
    ToolReferences,
    /// The item that answers a `tool_search_call` of the Responses format, with the definitions.
    ToolSearchOutput,
    /// The input item that adds definitions to a Responses conversation.
    AdditionalTools,
}

impl LoadForm {
    /// The format whose providers take this shape.
    pub fn format(self) -> Format {
        match self {
            Self::ToolReferences => Format::Anthropic,
            Self::ToolSearchOutput | Self::AdditionalTools => Format::OpenaiResponses,
        }
    }
}

/// Found tools, as far as they are loaded. All lists hold ids of the view in the order of finding.
#[derive(Debug, Default)]
pub struct Loading {
    /// What the model sees from now on.
    loaded: Vec<(u32, Arc<TargetTool>)>,
    /// Stand in the array already.
    pub present: Vec<u32>,
    /// Did not fit the budget.
    pub over_budget: Vec<u32>,
    /// What the provider does not take: described and called through the bridge.
    pub left_out: Vec<u32>,
    /// Exact o200k count of the loaded definitions.
    pub tokens: usize,
}

impl Loading {
    /// Loads what was found, best first. The first one is always loaded, the others while they fit `budget` tokens.
    pub fn of(
        view: &View,
        target: Target,
        found: &[u32],
        is_present: impl Fn(&ViewTool) -> bool,
        budget: usize,
    ) -> Self {
        let mut loading = Self::default();
        for id in found.iter().copied() {
            let Some(tool) = view.get(id) else { continue };
            // Never strict: how many may be is for the tools of the array.
            let made = tool.plain_for(target);
            if made.left_out {
                loading.left_out.push(id);
            } else if is_present(tool) {
                loading.present.push(id);
            } else if loading.loaded.is_empty() || loading.tokens + made.tokens <= budget {
                loading.tokens += made.tokens;
                loading.loaded.push((id, made));
            } else {
                loading.over_budget.push(id);
            }
        }
        loading
    }

    /// Names of the loaded tools as the model uses them.
    pub fn names<'v>(&self, view: &'v View) -> Vec<&'v str> {
        self.loaded.iter().filter_map(|(id, _)| view.get(*id)).map(ViewTool::wire_name).collect()
    }

    /// The JSON text of what loads the tools; `null` where there is nothing to add.
    pub fn write(&self, view: &View, form: LoadForm, call_id: &str) -> String {
        let entry = |(id, made): &(u32, Arc<TargetTool>)| {
            let tool = view.get(*id)?;
            made.entry(tool.wire_name(), &tool.tool.tool).cloned()
        };
        let entries: Vec<ArrayEntry> = match form {
            LoadForm::ToolReferences => Vec::new(),
            LoadForm::ToolSearchOutput | LoadForm::AdditionalTools => {
                self.loaded.iter().filter_map(entry).collect()
            }
        };
        match form {
            LoadForm::ToolReferences => native::tool_references(&self.names(view)).to_string(),
            LoadForm::ToolSearchOutput => {
                let deferred: Vec<String> =
                    entries.iter().filter_map(|entry| native::deferred(&entry.json)).collect();
                let deferred: Vec<&str> = deferred.iter().map(String::as_str).collect();
                native::tool_search_output(call_id, &deferred)
            }
            LoadForm::AdditionalTools => {
                let plain: Vec<&str> = entries.iter().map(|entry| &*entry.json).collect();
                native::additional_tools(&plain).unwrap_or_else(|| "null".to_owned())
            }
        }
    }
}

/// The shape in which an array's own search tool is answered; none where it is answered in words.
pub fn own_form(target: Target) -> Option<LoadForm> {
    match (target.exposure, target.format) {
        (Exposure::Native, Format::Anthropic) => Some(LoadForm::ToolReferences),
        (Exposure::Native, Format::OpenaiResponses) => Some(LoadForm::ToolSearchOutput),
        _ => None,
    }
}
