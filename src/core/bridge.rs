//! The three bridge tools as the model sees them: constant bytes for a format, a prefix and a listing.

use super::digest::push_string;
use super::format::{How, ToolText};
use super::grant::BridgeTool;
use super::mend::{Dialect, SchemaTarget, mend};
use super::target::Target;

/// Most tokens of the three tools together, in any format, without a listing (`product.md`, section 3).
pub const MAX_BRIDGE_TOKENS: usize = 350;

/// The arguments of a search.
pub(super) const SEARCH_PARAMETERS: &str = r#"{"type":"object","properties":{"query":{"description":"What you want to do; an array for several tasks.","anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},"limit":{"type":"integer","description":"Matches per query."}},"required":["query"]}"#;

/// The texts of one bridge tool: description and JSON Schema.
fn texts(tool: BridgeTool, prefix: &str) -> (String, &'static str) {
    match tool {
        BridgeTool::Search => (
            format!(
                "Find tools that are available but not in your tool list. Describe the task in a few words, not a tool \
                 name. Listed tools are available: with the exact name known, skip the search. Found tools can be called \
                 with {prefix}tool_call."
            ),
            SEARCH_PARAMETERS,
        ),
        BridgeTool::Describe => (
            "Show what listed or found tools do and which arguments they take.".to_owned(),
            r#"{"type":"object","properties":{"name":{"type":"string"},"names":{"type":"array","items":{"type":"string"}}}}"#,
        ),
        BridgeTool::Call => (
            "Call a listed or found tool by its exact name. Tools that stand in your tool list are called directly.".to_owned(),
            r#"{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object","description":"The tool's own arguments.","additionalProperties":true}},"required":["name","arguments"]}"#,
        ),
    }
}

/// One bridge tool for a target; a listing goes into the description of `tool_search`.
pub fn render(tool: BridgeTool, target: Target, prefix: &str, listing: Option<&str>) -> String {
    let (mut description, parameters) = texts(tool, prefix);
    if let (BridgeTool::Search, Some(listing)) = (tool, listing) {
        description.push_str("\n\n");
        description.push_str(listing.trim_end());
    }
    write(&tool.name(prefix), &description, parameters, target)
}

/// A tool of ours as it stands in an array. Never strict: how many may be is for the catalog's own.
pub(super) fn write(name: &str, description: &str, parameters: &str, target: Target) -> String {
    let mut quoted = String::new();
    push_string(description, &mut quoted);
    let mut json = String::new();
    let mended = mend(parameters, &SchemaTarget { strict: false, ..target.schema() });
    let text =
        ToolText { wire_name: name, description: &quoted, parameters: &mended.schema, members: Vec::new() };
    let how = How { openapi: target.dialect == Dialect::OpenApi, ..How::PLAIN };
    target.format.layout().write_as(&text, &how, &mut json);
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::format::Format;
    use crate::core::tokens;

    #[test]
    fn the_bridge_is_small_in_every_format() {
        for format in Format::ALL {
            let tools: Vec<String> =
                BridgeTool::ALL.iter().map(|tool| render(*tool, Target::of(format), "", None)).collect();
            let tokens = tokens::count(&format!("[{}]", tools.join(",")));
            assert!(tokens <= MAX_BRIDGE_TOKENS, "{format:?}: {tokens}");
        }
    }

    #[test]
    fn gemini_reads_the_bridge_in_the_field_that_was_asked_for() {
        let target = Target { dialect: Dialect::OpenApi, ..Target::of(Format::Gemini) };
        for tool in BridgeTool::ALL {
            let json = render(tool, target, "", None);
            assert!(json.contains(r#""parameters":{"#) && !json.contains("additionalProperties"), "{json}");
            assert!(render(tool, Target::of(Format::Gemini), "", None).contains("parametersJsonSchema"));
        }
    }

    #[test]
    fn a_prefix_shows_in_names_and_texts() {
        let search = render(BridgeTool::Search, Target::default(), "my_", None);
        assert!(search.starts_with(r#"{"name":"my_tool_search""#) && search.contains("my_tool_call"));
        let listed = render(BridgeTool::Search, Target::default(), "", Some("a\n- b\n"));
        assert!(listed.contains("\\n\\na\\n- b\""));
    }
}
