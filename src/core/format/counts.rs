//! Exact token counts of a tool in every format, made with one count of its text.

use super::{Format, render, shown_description, tool_text};
use crate::core::tokens;
use crate::core::tool::Tool;

/// Exact o200k counts of a tool as it stands in an array, per format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCounts {
    counts: [u32; Format::ALL.len()],
}

impl TokenCounts {
    /// Counts a tool once, and derives the other formats from where their text differs.
    ///
    /// Up to the end of the schema a format differs from the canonical text in constant texts alone. They begin and
    /// end where o200k cuts a text into pieces anyway, so their tokens can be added; behind the schema its last run of
    /// punctuation is counted again together with what follows. Where a format changes more (a cut or empty
    /// description, another schema), its text is counted on its own.
    pub fn of(wire_name: &str, tool: &Tool) -> Self {
        let canonical = render(Format::Canonical, wire_name, tool).json;
        let base = tokens::count(&canonical);
        let close = Format::Canonical.layout().close;
        let body = canonical.strip_suffix(close).unwrap_or(&canonical);
        let base_end = tokens::of_end(body, close);
        let count = |format: Format| {
            let layout = format.layout();
            let text = tool_text(layout, wire_name, tool, false);
            let same_parts = layout.schema_of(&text).as_deref() == Some(tool.parameters())
                && (layout.empty_description || tool.description_json() != "\"\"")
                && shown_description(layout.description_limit, tool).is_none();
            if !same_parts {
                return tokens::count(&render(format, wire_name, tool).json);
            }
            let mut end = layout.schema_end.to_owned();
            layout.write_end(&text, &mut end);
            let same_end = end == close;
            let end = if same_end { base_end } else { tokens::of_end(body, &end) };
            base + layout.more_tokens + end - base_end
        };
        Self { counts: Format::ALL.map(|format| count(format) as u32) }
    }

    pub fn get(&self, format: Format) -> usize {
        self.counts[format as usize] as usize
    }

    /// The text that is stored with a tool: a count per format, in the order of [`Format::ALL`].
    pub fn to_text(&self) -> String {
        self.counts.map(|count| count.to_string()).join(",")
    }

    /// Reads the stored text; nothing when it is of another version.
    pub fn from_text(text: &str) -> Option<Self> {
        let read: Vec<u32> = text.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { counts: read.try_into().ok()? })
    }
}
