//! Provider profiles: what each provider accepts of a tool, in one table with sources.
//!
//! Owns the figures and rules only. What is done about a tool that breaks them is `core/mend`; how a tool looks on the
//! wire is `core/format`. A new provider is a variant of [`Profile`] and a row in `table.rs`.

mod docs;
mod rules;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use docs::documentation;
pub use rules::{Enums, Items, KeyRule, Keywords, Refs, RootRules, SchemaRules, StrictRules, Untyped};
pub use table::OPENAPI;

use super::format::{Format, names};

/// Whose limits a `tools` array keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Profile {
    /// Whoever the provider is: what all that take JSON Schema accept.
    #[default]
    Generic,
    Openai,
    Azure,
    Anthropic,
    Gemini,
    Vertex,
    /// Bedrock Converse with models other than Nova.
    Bedrock,
    BedrockNova,
    Deepseek,
    Groq,
    Mistral,
    Cohere,
    Ollama,
    /// vLLM, SGLang, llama.cpp: servers that compile schemas into grammars.
    Vllm,
}

impl Profile {
    pub const ALL: [Self; 14] = [
        Self::Generic,
        Self::Openai,
        Self::Azure,
        Self::Anthropic,
        Self::Gemini,
        Self::Vertex,
        Self::Bedrock,
        Self::BedrockNova,
        Self::Deepseek,
        Self::Groq,
        Self::Mistral,
        Self::Cohere,
        Self::Ollama,
        Self::Vllm,
    ];

    /// The name in config, requests and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Openai => "openai",
            Self::Azure => "azure",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Vertex => "vertex",
            Self::Bedrock => "bedrock",
            Self::BedrockNova => "bedrock-nova",
            Self::Deepseek => "deepseek",
            Self::Groq => "groq",
            Self::Mistral => "mistral",
            Self::Cohere => "cohere",
            Self::Ollama => "ollama",
            Self::Vllm => "vllm",
        }
    }

    /// Reads what [`Profile::as_str`] writes; nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == text)
    }

    /// The profile's row of the table.
    pub fn limits(self) -> &'static Limits {
        table::limits(self)
    }

    /// Longest description in an array, in characters. `generic` says nothing about it, so the format's own limit
    /// holds there; a named provider's figure replaces the format's.
    pub fn description_limit(self, of_format: Option<usize>) -> Option<usize> {
        match self {
            Self::Generic => of_format,
            named => named.limits().max_description_chars.value,
        }
    }

    /// The provider itself; where none is named, the one whose format it is, if that is one provider's alone.
    pub fn spoken_in(self, format: Format) -> Self {
        match (self, format) {
            (Self::Generic, Format::Anthropic) => Self::Anthropic,
            (Self::Generic, Format::Gemini) => Self::Gemini,
            (Self::Generic, Format::BedrockConverse) => Self::Bedrock,
            (profile, _) => profile,
        }
    }

    /// About how many tokens the provider counts for 100 of o200k; none where that is its vocabulary, or nothing is known. Where
    /// no provider is named, the format's own counts.
    pub fn token_factor(self, format: Format) -> Option<u32> {
        match self.spoken_in(format).limits().tokens.value {
            TokenFactor::Times(hundredths) => Some(hundredths),
            TokenFactor::Exact | TokenFactor::Unknown => None,
        }
    }

    /// The wire name of a stored name under this profile: the common wire name (`format/names.rs`), and where that
    /// breaks the profile's own rule, a narrower one that carries the stored name's hash.
    pub fn wire_name(self, stored: &str) -> Cow<'_, str> {
        let common = names::wire_name(stored);
        if self.limits().names.fits(&common) { common } else { Cow::Owned(self.with_suffix(stored)) }
    }

    /// The beginning of a name with what does not fit as `_`.
    pub fn fitted(self, prefix: &str) -> String {
        let also = self.limits().names.also;
        let fits = |character: char| character.is_ascii_alphanumeric() || also.contains(character);
        prefix.chars().map(|character| if fits(character) { character } else { '_' }).collect()
    }

    /// A stored name with its hash, also where it would fit without.
    pub fn with_suffix(self, stored: &str) -> String {
        let common = names::with_suffix(stored);
        if self.limits().names.fits(&common) { common } else { common.replace('-', "_") }
    }
}

/// A figure and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure<T> {
    pub value: T,
    /// Short, for the documentation.
    pub source: &'static str,
}

/// How a provider's own counts of tokens compare with o200k's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFactor {
    /// o200k is its vocabulary.
    Exact,
    /// About this many tokens for 100 of o200k.
    Times(u32),
    Unknown,
}

/// The names of tools that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NameRule {
    /// Characters allowed beside ASCII letters, digits and `_`.
    pub also: &'static str,
    /// Whether the first character must be an ASCII letter or `_`.
    pub starts_with_letter: bool,
    /// Longest name, in characters.
    pub max_chars: usize,
    pub source: &'static str,
}

impl NameRule {
    pub fn fits(&self, name: &str) -> bool {
        let first = name.chars().next();
        let head = first
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_' || !self.starts_with_letter);
        let plain = |character: char| {
            character.is_ascii_alphanumeric() || character == '_' || self.also.contains(character)
        };
        head && name.chars().all(plain) && name.len() <= self.max_chars
    }

    /// The rule as a regular expression, for the documentation.
    pub fn pattern(&self) -> String {
        let also = self.also;
        if self.starts_with_letter {
            format!("^[A-Za-z_][A-Za-z0-9_{also}]{{0,{}}}$", self.max_chars.saturating_sub(1))
        } else {
            format!("^[A-Za-z0-9_{also}]{{1,{}}}$", self.max_chars)
        }
    }
}

/// One row of the table: everything that a provider limits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub profile: Profile,
    pub names: NameRule,
    /// Most tools in one array; none where no figure is known.
    pub max_tools: Figure<Option<usize>>,
    /// Longest description, in characters; none where no figure is known.
    pub max_description_chars: Figure<Option<usize>>,
    /// Whether a description must be left out when it is empty.
    pub omit_empty_description: Figure<bool>,
    /// Whether the field of the tools must be left out when there are none.
    pub omit_empty_array: Figure<bool>,
    /// What schemas may say, in JSON Schema. Gemini's `parameters` field has [`OPENAPI`] instead.
    pub schema: SchemaRules,
    /// What strict mode asks for on top; none where the provider has none that is known.
    pub strict: Option<StrictRules>,
    pub tokens: Figure<TokenFactor>,
}
