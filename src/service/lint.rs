//! Linting: what of a stored catalog a provider would not take as it is, and what is done about it.

use serde::Serialize;
use utoipa::ToSchema;

use super::context::GrantFields;
use super::{Error, Toolrack, blocking};
use crate::core::catalog::{Catalog, CatalogTool};
use crate::core::id::Scope;
use crate::core::mend::Lint;
use crate::core::profile::Profile;
use crate::core::target::Target;

/// Tools with findings that one answer tells.
const MAX_TOOLS: usize = 1_000;

/// What becomes of a tool for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LintOutcome {
    /// Sent as it is.
    Kept,
    /// Sent with another schema, name or description.
    Mended,
    /// Not sent to this target; search, describe and call still reach it.
    LeftOut,
}

/// One finding about a tool's schema.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LintFinding {
    /// A stable code; docs/profiles.md explains each.
    #[schema(value_type = String)]
    pub code: &'static str,
    /// JSON pointer into the tool's schema.
    pub pointer: String,
    pub detail: String,
    /// Whether what is sent says less than, or something else than, the original.
    pub lossy: bool,
}

/// A tool with what was found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LintedTool {
    /// Stored name.
    pub name: String,
    /// The name that the provider sees, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_name: Option<String>,
    pub outcome: LintOutcome,
    /// Whether the description is cut.
    pub description_clipped: bool,
    pub findings: Vec<LintFinding>,
}

/// A catalog for a target.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LintAnswer {
    pub catalog_version: String,
    #[schema(value_type = String)]
    pub format: &'static str,
    #[schema(value_type = String)]
    pub profile: &'static str,
    /// Most tools in one array of this provider; absent where no figure is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tools: Option<usize>,
    /// How many tools are kept, mended and left out.
    pub counts: LintCounts,
    /// Tools with findings, another name or a cut description, by stored name; at most 1,000.
    pub tools: Vec<LintedTool>,
    /// How many such tools are not told.
    pub more: usize,
}

/// Tools by what becomes of them.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct LintCounts {
    pub kept: usize,
    pub mended: usize,
    pub left_out: usize,
}

impl Toolrack {
    /// Looks at a scope's stored catalog with the eyes of a provider. The config's profile is the default.
    pub async fn lint_catalog(&self, scope: &Scope, fields: GrantFields) -> Result<LintAnswer, Error> {
        let head = self.head(scope).await?;
        let catalog = self.stored_catalog(scope, &head).await?;
        let profile = head.layer.profile.unwrap_or_default();
        let target = fields.target(Target { profile, ..Target::default() })?;
        blocking(move || lint(&catalog, target)).await
    }
}

fn lint(catalog: &Catalog, target: Target) -> LintAnswer {
    let mut counts = LintCounts::default();
    let (mut tools, mut more) = (Vec::new(), 0);
    for tool in catalog.tools() {
        let linted = lint_tool(tool, target);
        match linted.outcome {
            LintOutcome::Kept => counts.kept += 1,
            LintOutcome::Mended => counts.mended += 1,
            LintOutcome::LeftOut => counts.left_out += 1,
        }
        let is_told = linted.outcome != LintOutcome::Kept || !linted.findings.is_empty();
        if is_told && tools.len() < MAX_TOOLS {
            tools.push(linted);
        } else {
            more += usize::from(is_told);
        }
    }
    let Target { format, profile, .. } = target;
    LintAnswer {
        catalog_version: catalog.version().to_owned(),
        format: format.as_str(),
        profile: profile.as_str(),
        max_tools: target.max_tools(),
        counts,
        tools,
        more,
    }
}

/// What becomes of one tool for a target.
pub(super) fn lint_tool(tool: &CatalogTool, target: Target) -> LintedTool {
    let made = tool.for_target(target);
    let wire_name = wire_name(tool, target.profile);
    let finding = |lint: &Lint| LintFinding {
        code: lint.code,
        pointer: lint.pointer.clone(),
        detail: lint.detail.clone(),
        lossy: lint.lossy,
    };
    let outcome = if made.left_out {
        LintOutcome::LeftOut
    } else if made.schema().is_some() || made.clipped || wire_name.is_some() {
        LintOutcome::Mended
    } else {
        LintOutcome::Kept
    };
    LintedTool {
        name: tool.stored_name.to_string(),
        wire_name,
        outcome,
        description_clipped: made.clipped,
        findings: made.lints.iter().map(finding).collect(),
    }
}

/// The tool's name under a profile, where it is not the stored one.
fn wire_name(tool: &CatalogTool, profile: Profile) -> Option<String> {
    let wire = profile.wire_name(&tool.stored_name);
    (wire != *tool.stored_name).then(|| wire.into_owned())
}
