//! The management tools as the model sees them: constant bytes for a format and a prefix, like the bridge's, behind which they
//! stand where a config says `management_tools`. What a call of one means and who may make it is the service's.

mod entries;
mod page;
mod patch;

pub use entries::{CatalogQuery, entries};
pub use page::{CatalogEntry, CatalogPage, EntryState, page};
pub use patch::secret_in;

use super::bridge::write;
use super::target::Target;

/// Most tokens of both tools together, in any format.
pub const MAX_MANAGEMENT_TOKENS: usize = 300;

/// One of the tools by which an agent sets up the scopes that it works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagementTool {
    Catalog,
    UpdateConfig,
}

impl ManagementTool {
    /// In the order in which they stand in an array.
    pub const ALL: [Self; 2] = [Self::Catalog, Self::UpdateConfig];

    /// The name without a prefix.
    pub fn base_name(self) -> &'static str {
        match self {
            Self::Catalog => "toolrack_catalog",
            Self::UpdateConfig => "toolrack_update_config",
        }
    }

    pub fn name(self, prefix: &str) -> String {
        format!("{prefix}{}", self.base_name())
    }
}

/// The texts of one tool: description and JSON Schema.
fn texts(tool: ManagementTool, target: Target, prefix: &str) -> (String, &'static str) {
    match tool {
        ManagementTool::Catalog => (
            format!(
                "For setting up tools, not for finding one (that is {}): lists the catalog page by page, each tool \
                 marked core, warm, deferred, unavailable or excluded. Listed here is not callable, unless marked core or warm.",
                target.search_name(prefix)
            ),
            r#"{"type":"object","properties":{"query":{"type":"string","description":"Words that name, group or description hold."},"group":{"type":"string"},"offset":{"type":"integer","description":"next_offset of the page before."}}}"#,
        ),
        ManagementTool::UpdateConfig => (
            "Change the tool config of the user or the project by a JSON Merge Patch. Ask first with dry_run, show the \
             person what would change, and write only what they agreed to. Never put a key or password into it."
                .to_owned(),
            r#"{"type":"object","properties":{"patch":{"type":"object","description":"Keys to set; null resets one.","additionalProperties":true},"scope":{"type":"string","enum":["user","project"]},"if_revision":{"type":"integer","description":"The revision that the dry run answered."},"dry_run":{"type":"boolean"}},"required":["patch","scope"]}"#,
        ),
    }
}

/// One management tool for a target.
pub fn render(tool: ManagementTool, target: Target, prefix: &str) -> String {
    let (description, parameters) = texts(tool, target, prefix);
    write(&tool.name(prefix), &description, parameters, target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::format::Format;
    use crate::core::format::native::Exposure;
    use crate::core::tokens;

    #[test]
    fn the_management_tools_are_small_in_every_format() {
        for format in Format::ALL {
            let tools = ManagementTool::ALL.map(|tool| render(tool, Target::of(format), ""));
            let tokens = tokens::count(&format!("[{}]", tools.join(",")));
            assert!(tokens <= MAX_MANAGEMENT_TOKENS, "{format:?}: {tokens}");
        }
    }

    #[test]
    fn names_and_texts_go_by_the_prefix() {
        let catalog = render(ManagementTool::Catalog, Target::default(), "my_");
        assert!(catalog.starts_with(r#"{"name":"my_toolrack_catalog""#), "{catalog}");
        assert!(catalog.contains("that is my_tool_search"), "{catalog}");
        // The search of the Responses format has a name of its own.
        let native = Target { exposure: Exposure::Native, ..Target::of(Format::OpenaiResponses) };
        assert!(render(ManagementTool::Catalog, native, "my_").contains("that is tool_search"));
    }
}
