//! Reading an upload: its tools, what was set aside, and what its texts make one warn of.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::format::ingest::{EntryLimits, Rejected, read_entries};
use crate::core::hidden::{hidden_in_text, told};
use crate::core::schema::takes_object;
use crate::core::suspicion;
use crate::core::text::counted;
use crate::core::tool::{Tool, ToolKey};
use crate::core::warning::Warning;

/// What reading an upload gave.
#[derive(Debug, Default)]
pub struct Upload {
    /// Unique by (group, name).
    pub tools: BTreeMap<ToolKey, Arc<Tool>>,
    pub warnings: Vec<Warning>,
    /// Why entries were set aside, one reason each, for counting.
    pub rejected: Vec<&'static str>,
    /// Tools with suspicious texts.
    suspicious: usize,
}

/// Most tools that the entries of one upload may hold in lists of their own, as Gemini's do: five times what a catalog
/// holds by default.
const MAX_LISTED_TOOLS: usize = 100_000;

/// Reads the entries of an upload. `pointer` is where their list stands in the request.
pub fn read_upload<'a>(entries: impl Iterator<Item = &'a str>, limits: EntryLimits, pointer: &str) -> Upload {
    let mut upload = Upload::default();
    let mut room = MAX_LISTED_TOOLS;
    for (at, entry) in entries.enumerate() {
        let mut take = |inside: &str, read: Result<Tool, Rejected>| match read {
            Ok(tool) => upload.take(tool, &format!("{pointer}/{at}{inside}")),
            Err(rejected) => {
                let place = format!("{pointer}/{at}{inside}{}", rejected.pointer);
                upload.set_aside(rejected.reason, &rejected.detail, place, rejected.name);
            }
        };
        read_entries(entry, limits, &mut room, &mut take);
    }
    let untold = upload.suspicious.saturating_sub(suspicion::MAX_TOOLS);
    if untold > 0 {
        let detail = format!("{} suspicious texts", counted(untold, "more tool has", "more tools have"));
        upload.warnings.push(Warning::new("more_warnings", detail));
    }
    upload
}

impl Upload {
    /// Tools that were read before, with what was warned of then.
    pub fn again(tools: BTreeMap<ToolKey, Arc<Tool>>, warnings: Vec<Warning>) -> Self {
        Self { tools, warnings, ..Self::default() }
    }

    fn take(&mut self, tool: Tool, pointer: &str) {
        if let Some(warning) = hidden_warning(&tool) {
            self.warnings.push(warning.at(pointer).for_tool(tool.name()));
        }
        if !takes_object(tool.parameters()) {
            let detail = "the schema's root is no object: arguments are sent under the key `value`, and are not checked";
            self.warnings.push(Warning::new("schema_not_object", detail).at(pointer).for_tool(tool.name()));
        }
        if let Some(warning) = suspicion::warning(tool.body()) {
            self.suspicious += 1;
            if self.suspicious <= suspicion::MAX_TOOLS {
                self.warnings.push(warning.at(pointer).for_tool(tool.name()));
            }
        }
        match self.tools.get(&tool.key()) {
            Some(first) if first.digest() == tool.digest() => {}
            Some(first) => {
                let (stays, goes) = if first.digest() < tool.digest() {
                    (None, tool)
                } else {
                    (Some(tool), (**first).clone())
                };
                let detail = format!(
                    "two different tools `{}` in group `{}`; the one with the smaller digest stays",
                    goes.name(),
                    goes.group()
                );
                self.set_aside("duplicate_name", &detail, pointer.to_owned(), Some(goes.name().to_owned()));
                if let Some(tool) = stays {
                    self.tools.insert(tool.key(), Arc::new(tool));
                }
            }
            None => {
                self.tools.insert(tool.key(), Arc::new(tool));
            }
        }
    }

    fn set_aside(&mut self, reason: &'static str, detail: &str, pointer: String, name: Option<String>) {
        let mut warning = Warning::new("tool_quarantined", format!("{reason}: {detail}")).at(pointer);
        warning.tool = name;
        self.warnings.push(warning);
        self.rejected.push(reason);
    }
}

/// The warning about a tool whose texts hold characters that nobody sees.
fn hidden_warning(tool: &Tool) -> Option<Warning> {
    let hidden = hidden_in_text(tool.body());
    let detail = told(hidden);
    (hidden > 0).then(|| Warning::new("hidden_characters", detail))
}

/// What an upload warns of in the texts of one tool.
pub fn text_warnings(tool: &Tool) -> Vec<Warning> {
    [hidden_warning(tool), suspicion::warning(tool.body())].into_iter().flatten().collect()
}
