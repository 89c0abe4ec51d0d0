//! The review: every tool with what makes it hard to find or to call, or not fit to be shown.
//!
//! A function of catalogs, config and profiles, in two parts: [`inspect()`] looks at a catalog whatever its config, which is the long
//! part of it, and [`review`] joins that with what a config makes of the tools. It asks what the rest of the service asks (`suspicion`,
//! `lookalike`, `schema`, `target`), so that a remark says what really happens; what is remarked, and how bad that is, is the table in `kinds`. Nothing is changed here.

mod inspect;
mod kinds;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

pub use inspect::{Inspection, inspect};
pub use kinds::{Kind, Severity};

use self::inspect::Inspected;
use super::digest::Digest;
use super::grant::{Catalogs, Selection, View, ViewTool};
use super::grouping::SelectorSet;
use super::policy::Policy;
use super::profile::Profile;
use super::selector::Selector;
use super::target::Target;
use super::warning::{Warning, told};

/// Tokens from which on a tool is oversized: a warm set of eight such tools costs twice what a listing may.
pub const OVERSIZED_TOKENS: usize = 1_000;

/// Providers that a review looks at where nobody names one.
pub const MAIN_PROFILES: [Profile; 3] = [Profile::Openai, Profile::Anthropic, Profile::Gemini];

/// Findings about one schema that are told, and other tools that are named.
const MAX_FINDINGS: usize = 3;

/// One remark about a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Remark {
    pub kind: Kind,
    pub severity: Severity,
    /// What it is about here, in a sentence.
    pub detail: String,
}

impl Remark {
    fn new(kind: Kind, detail: impl AsRef<str>) -> Self {
        Self { kind, severity: kind.severity(), detail: told(detail.as_ref()) }
    }
}

/// A tool with its remarks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReviewedTool {
    /// As the config groups it.
    pub group: String,
    /// Stored name.
    pub name: String,
    /// The beginning of the description, on one line.
    pub description: String,
    /// With its schema, in an array of the format `canonical`.
    pub tokens: usize,
    /// Parameters at the root of the schema.
    pub parameters: usize,
    /// Whether it is core now.
    pub core: bool,
    /// Whether the config hides it, by `deny` or because `allow` does not name it.
    pub excluded: bool,
    /// Phrases that the config and the tool itself give it.
    pub aliases: Vec<String>,
    /// Worst first.
    pub remarks: Vec<Remark>,
}

impl ReviewedTool {
    /// How bad the worst remark is; nothing where there is none.
    pub fn worst(&self) -> Option<Severity> {
        self.remarks.iter().map(|remark| remark.severity).max()
    }

    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let remarks: usize =
            self.remarks.iter().map(|remark| remark.detail.len() + size_of::<Remark>()).sum();
        let aliases: usize = self.aliases.iter().map(|alias| alias.len() + 24).sum();
        size_of::<Self>() + self.group.len() + self.name.len() + self.description.len() + remarks + aliases
    }
}

/// Reviews the tools of catalogs, those that the config hides included. `inspections` are those of the catalogs' parts, in their
/// order. Worst first, then by group and name.
pub fn review(
    catalogs: &Catalogs,
    inspections: &[Arc<Inspection>],
    policy: &Policy,
    user_core: &[Selector],
    selections: &[Selection],
) -> Vec<ReviewedTool> {
    let open = Policy { allow: Vec::new(), deny: Vec::new(), default_toolsets: Vec::new(), ..policy.clone() };
    let view = View::build(catalogs, &open, user_core, selections, Profile::default());
    let shared = Shared::of(&view, inspections);
    let mut tools: Vec<ReviewedTool> =
        (0..).zip(&view.tools).map(|(id, tool)| reviewed(&view, id, tool, &shared)).collect();
    let (deny, allow): (_, Vec<SelectorSet<'_>>) =
        (SelectorSet::new(&policy.deny), policy.allow.iter().map(SelectorSet::new).collect());
    for (reviewed, tool) in tools.iter_mut().zip(&view.tools) {
        let hits = |set: &SelectorSet<'_>| set.hits(&tool.tool, view.group(tool));
        reviewed.excluded = hits(&deny) || !allow.iter().all(hits);
    }
    for (name, phrases) in &policy.aliases {
        for id in view.select(name) {
            let Some(tool) = tools.get_mut(id as usize) else { continue };
            tool.aliases.extend(phrases.iter().cloned());
        }
    }
    tools.sort_by(|a, b| order(a).cmp(&order(b)));
    tools
}

/// The place of a tool in a review.
pub fn order(tool: &ReviewedTool) -> (std::cmp::Reverse<Option<Severity>>, &str, &str) {
    (std::cmp::Reverse(tool.worst()), &tool.group, &tool.name)
}

/// What concerns more than one tool.
struct Shared<'a> {
    inspections: &'a [Arc<Inspection>],
    clashes: HashMap<&'a str, &'a str>,
    /// First tools of each description.
    descriptions: HashMap<Digest, Vec<u32>>,
}

impl<'a> Shared<'a> {
    fn of(view: &'a View, inspections: &'a [Arc<Inspection>]) -> Self {
        let clash = |warning: &'a Warning| Some((warning.tool.as_deref()?, warning.detail.as_str()));
        let clashes = view.join_warnings.iter().filter(|warning| warning.code == "catalog_clash");
        let clashes = clashes.filter_map(clash).collect();
        let mut shared = Self { inspections, clashes, descriptions: HashMap::new() };
        for (id, tool) in (0..).zip(&view.tools) {
            if let Some(text) = shared.inspected(tool).and_then(|inspected| inspected.text) {
                let same = shared.descriptions.entry(text).or_default();
                // Whether there are others, and two of them to name.
                if same.len() <= MAX_FINDINGS {
                    same.push(id);
                }
            }
        }
        shared
    }

    fn inspected(&self, tool: &ViewTool) -> Option<&'a Inspected> {
        self.inspections.get(usize::from(tool.part))?.of(tool.stored_name())
    }
}

fn reviewed(view: &View, id: u32, tool: &ViewTool, shared: &Shared<'_>) -> ReviewedTool {
    let name = tool.stored_name();
    let nothing = Inspected::default();
    let inspected = shared.inspected(tool).unwrap_or(&nothing);
    let tokens = tool.for_target(Target::default()).tokens;
    let mut remarks = inspected.remarks.clone();
    let same = inspected.text.and_then(|text| shared.descriptions.get(&text));
    let others: Vec<&str> = same
        .into_iter()
        .flatten()
        .filter(|other| **other != id)
        .filter_map(|other| view.get(*other))
        .map(ViewTool::stored_name)
        .take(MAX_FINDINGS - 1)
        .collect();
    if !others.is_empty() {
        let detail = format!("`{}` has the same description.", others.join("`, `"));
        remarks.push(Remark::new(Kind::SameDescription, detail));
    }
    if let Some(detail) = shared.clashes.get(name) {
        remarks.push(Remark::new(Kind::CatalogClash, format!("{detail}.")));
    }
    if tokens >= OVERSIZED_TOKENS {
        remarks.push(Remark::new(Kind::Oversized, format!("{tokens} tokens.")));
    }
    remarks.sort_by_key(|remark| remark.kind);
    ReviewedTool {
        group: view.group(tool).to_owned(),
        name: name.to_owned(),
        description: inspected.description.to_string(),
        tokens,
        parameters: inspected.parameters,
        core: tool.core,
        excluded: false,
        aliases: tool.tool.tool.aliases().to_vec(),
        remarks,
    }
}
