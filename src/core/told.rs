//! What the answer tells about tools that stand in an array otherwise than they came, or not at all.

use std::sync::Arc;

use super::grant::{View, ViewTool};
use super::strict_room::StrictRoom;
use super::target::{Target, TargetTool};
use super::text::counted;
use super::warning::Warning;

/// Warnings of one kind about the tools of an array; more are counted.
const MAX_TOLD: usize = 20;

/// What is said otherwise about the tools of an array than they came.
#[derive(Debug, Default)]
pub(super) struct Told {
    clipped: Vec<Warning>,
    mended: Vec<Warning>,
    unstrict: Vec<Warning>,
}

impl Told {
    /// A tool as it may stand in the array: without strict mode, where the provider takes no more of that in a request.
    pub(super) fn fitting(
        &mut self,
        tool: &ViewTool,
        made: &Arc<TargetTool>,
        target: Target,
        room: &mut StrictRoom,
    ) -> Arc<TargetTool> {
        if room.take(made) {
            return Arc::clone(made);
        }
        let detail = "sent without strict mode: the provider takes no more strict tools in one request";
        self.unstrict.push(Warning::new("not_strict", detail).for_tool(tool.stored_name()));
        tool.plain_for(target)
    }

    pub(super) fn about(&mut self, tool: &ViewTool, made: &TargetTool) {
        let name = tool.stored_name();
        if made.clipped {
            let detail =
                "the description is longer than the format allows and was cut; tool_describe has all of it";
            self.clipped.push(Warning::new("description_clipped", detail).for_tool(name));
        }
        if let Some(lint) = made.lints.iter().find(|lint| lint.code == "not_strict") {
            self.unstrict.push(Warning::new("not_strict", lint.detail.as_str()).for_tool(name));
        }
        let lossy = || made.lints.iter().filter(|lint| lint.lossy);
        if let Some(lint) = lossy().next() {
            let and = match lossy().count() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            let place = if lint.pointer.is_empty() { "in its schema" } else { &lint.pointer };
            let detail =
                format!("{place}: {}{and}; calls are checked against the tool's own schema", lint.detail);
            self.mended.push(Warning::new("schema_mended", detail).for_tool(name));
        }
    }

    pub(super) fn warnings(self) -> Vec<Warning> {
        let kinds = [self.clipped, self.mended, self.unstrict];
        kinds.into_iter().flat_map(|warnings| bounded(warnings, MAX_TOLD)).collect()
    }
}

/// The first warnings of one kind, and how many more there are.
fn bounded(mut warnings: Vec<Warning>, most: usize) -> Vec<Warning> {
    let more = warnings.len().saturating_sub(most);
    warnings.truncate(most);
    if let Some(code) = warnings.first().map(|warning| warning.code).filter(|_| more > 0) {
        warnings.push(Warning::new(
            code,
            format!("the same holds for {}", counted(more, "more tool", "more tools")),
        ));
    }
    warnings
}

pub(super) fn left_out_warnings(view: &View, made: &[Arc<TargetTool>]) -> Vec<Warning> {
    let left_out = view.tools.iter().zip(made).filter(|(_, made)| made.left_out);
    let warning = |(tool, made): (&ViewTool, &Arc<TargetTool>)| {
        let why = made.lints.first().map_or("it cannot be mended", |lint| &lint.detail);
        let detail = format!("left out of the array: {why}; tool_search and tool_call still reach it");
        Warning::new("tool_left_out", detail).for_tool(tool.stored_name())
    };
    bounded(left_out.map(warning).collect(), MAX_TOLD)
}
