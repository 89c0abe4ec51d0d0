//! The remarks that a review can make: one table of kinds with how bad each is, what it costs and what mends it.

use serde::Serialize;
use utoipa::ToSchema;

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RemarkSeverity)]
pub enum Severity {
    /// Good to know.
    Note,
    /// The tool is harder to find or to call.
    Warn,
    /// The tool does not work for somebody, or should be read before agents get it.
    Bad,
}

/// What a remark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RemarkKind)]
pub enum Kind {
    SuspiciousText,
    LeftOut,
    InvalidSchema,
    HiddenCharacters,
    SchemaNotObject,
    NoDescription,
    LookalikeName,
    Oversized,
    OverLimit,
    SchemaLosesMeaning,
    SaysLittle,
    SameDescription,
    DuplicateName,
    CatalogClash,
    NoParameters,
}

impl Kind {
    /// Worst first.
    pub const ALL: [Self; 15] = [
        Self::SuspiciousText,
        Self::LeftOut,
        Self::InvalidSchema,
        Self::HiddenCharacters,
        Self::SchemaNotObject,
        Self::NoDescription,
        Self::LookalikeName,
        Self::Oversized,
        Self::OverLimit,
        Self::SchemaLosesMeaning,
        Self::SaysLittle,
        Self::SameDescription,
        Self::DuplicateName,
        Self::CatalogClash,
        Self::NoParameters,
    ];

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The name in requests and answers.
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    pub fn severity(self) -> Severity {
        self.row().1
    }

    /// What it costs, in a sentence.
    pub fn costs(self) -> &'static str {
        self.row().2
    }

    /// What mends it, in a sentence.
    pub fn mends(self) -> &'static str {
        self.row().3
    }

    fn row(self) -> (&'static str, Severity, &'static str, &'static str) {
        use Severity::{Bad, Note, Warn};
        match self {
            Self::SuspiciousText => (
                "suspicious_text",
                Bad,
                "A text speaks to the model in place of describing the tool: it may make agents do what nobody asked for.",
                "Read it before you let it through; exclude the tool, or have its source say what it does and no more.",
            ),
            Self::LeftOut => (
                "left_out",
                Bad,
                "A provider does not take the schema in any form: there the tool is reached by search and call alone.",
                "Make the schema smaller and less nested.",
            ),
            Self::InvalidSchema => (
                "invalid_schema",
                Bad,
                "Parts of the schema cannot be used, so arguments are checked without them, or not at all.",
                "Have the source mend the schema where the remark says.",
            ),
            Self::HiddenCharacters => (
                "hidden_characters",
                Warn,
                "The texts hold characters that nobody sees; models do not get them. One may belong to an emoji, many hide something.",
                "Look at the source; upload the tool without them.",
            ),
            Self::SchemaNotObject => (
                "schema_not_object",
                Warn,
                "Arguments are sent under the key `value` and are not checked, because the root of the schema is no object.",
                "Give the schema an object at its root.",
            ),
            Self::NoDescription => (
                "no_description",
                Warn,
                "Search can go only by the name and the arguments.",
                "Write a sentence, or add aliases: phrases that people use for it.",
            ),
            Self::LookalikeName => (
                "lookalike_name",
                Warn,
                "People and models take the name for another one.",
                "Rename one of the two, or exclude it.",
            ),
            Self::Oversized => (
                "oversized",
                Warn,
                "Every turn in which the tool stands in the array pays for all of its schema.",
                "Leave it out of core, and have the source say less, or part it into several tools.",
            ),
            Self::OverLimit => (
                "over_limit",
                Warn,
                "A provider limits what a tool may have: its name is changed or its description cut there.",
                "Shorten the description to its first sentences, the name to 64 plain characters.",
            ),
            Self::SchemaLosesMeaning => (
                "schema_loses_meaning",
                Note,
                "A provider does not take all of the schema; what is sent there says less than the original.",
                "Nothing has to be done; a simpler schema would say the same to all.",
            ),
            Self::SaysLittle => (
                "says_little",
                Note,
                "The description repeats the name: search finds nothing by it, and a model cannot tell when to use the tool.",
                "Say what the tool does and when, or add aliases.",
            ),
            Self::SameDescription => (
                "same_description",
                Note,
                "Another tool says the same of itself: neither search nor a model can tell them apart.",
                "Say what is different, or exclude one of them.",
            ),
            Self::DuplicateName => (
                "duplicate_name",
                Note,
                "Several groups have a tool of this name, so it is qualified with its group.",
                "Nothing has to be done; exclude the one that is not needed.",
            ),
            Self::CatalogClash => (
                "catalog_clash",
                Note,
                "User and project both have the tool, and one definition hides the other.",
                "Remove one of them, or say `override` in the project's.",
            ),
            Self::NoParameters => (
                "no_parameters",
                Note,
                "The schema lists no parameters: right for some tools, and for others a sign that the source tells nothing.",
                "Look whether the tool takes arguments.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_its_names_are_those_of_answers() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
            assert!(kind.costs().ends_with('.') && kind.mends().ends_with('.'));
        }
        assert!(
            Kind::ALL.is_sorted() && Kind::ALL.is_sorted_by_key(|kind| std::cmp::Reverse(kind.severity()))
        );
        assert_eq!(Kind::parse("other"), None);
    }
}
