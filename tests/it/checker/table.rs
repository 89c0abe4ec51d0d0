//! What the providers say that they take, row by row, written from their documents and error texts.

/// The profiles, each with the formats that its provider speaks.
pub(crate) const PROFILES: [(&str, &[&str]); 14] = [
    (
        "generic",
        &["canonical", "openai_chat", "openai_responses", "anthropic", "gemini", "bedrock_converse", "mcp"],
    ),
    ("openai", &["openai_chat", "openai_responses"]),
    ("azure", &["openai_chat", "openai_responses"]),
    ("anthropic", &["anthropic", "mcp"]),
    ("gemini", &["gemini", "openai_chat"]),
    ("vertex", &["gemini"]),
    ("bedrock", &["bedrock_converse", "anthropic"]),
    ("bedrock-nova", &["bedrock_converse"]),
    ("deepseek", &["openai_chat"]),
    ("groq", &["openai_chat", "openai_responses"]),
    ("mistral", &["openai_chat"]),
    ("cohere", &["openai_chat"]),
    ("ollama", &["openai_chat"]),
    ("vllm", &["openai_chat"]),
];

/// Which keys of arguments are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    Any,
    /// Letters, digits, `_`, `.` and `-` at the root.
    Root,
}

/// A provider's rules for the schemas of a JSON Schema field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) most_tools: Option<usize>,
    pub(super) longest_description: Option<usize>,
    /// Characters of a name besides letters, digits and `_`.
    pub(super) name_marks: &'static str,
    pub(super) digit_first: bool,
    pub(super) longest_name: usize,
    /// Keywords that are refused at the root.
    pub(super) root_without: &'static [&'static str],
    /// The only keywords of the root, where it has such.
    pub(super) root_only: Option<&'static [&'static str]>,
    pub(super) root_properties: bool,
    /// Keywords that are refused anywhere.
    pub(super) without: &'static [&'static str],
    pub(super) references: bool,
    /// Whether `$ref` may have neighbours.
    pub(super) beside_references: bool,
    pub(super) items_needed: bool,
    pub(super) empty_enum_text: bool,
    /// Known formats; none for any.
    pub(super) formats: Option<&'static [&'static str]>,
    pub(super) linear_patterns: bool,
    /// The lengths and counts that are refused begin here.
    pub(super) bounds: Option<f64>,
    pub(super) keys: Keys,
}

const UNIONS: &[&str] = &["oneOf", "anyOf", "allOf"];
const UNIONS_AND_VALUES: &[&str] = &["oneOf", "anyOf", "allOf", "enum", "const", "not"];
const DIALECT: &[&str] =
    &["$schema", "$id", "$comment", "$anchor", "$vocabulary", "$dynamicAnchor", "$recursiveAnchor"];
const DIALECT_AND_UNIONS: &[&str] = &[
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
const NO_GRAMMAR: &[&str] = &[
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
pub(super) const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// OpenAI's own endpoints.
const OPENAI: Rules = Rules {
    most_tools: Some(128),
    longest_description: Some(1_024),
    name_marks: "-",
    digit_first: true,
    longest_name: 64,
    root_without: UNIONS_AND_VALUES,
    root_only: None,
    root_properties: true,
    without: &[],
    references: true,
    beside_references: true,
    items_needed: true,
    empty_enum_text: true,
    formats: None,
    linear_patterns: false,
    bounds: None,
    keys: Keys::Any,
};

/// Servers that speak OpenAI's language.
const COMPATIBLE: Rules = Rules {
    most_tools: None,
    longest_description: None,
    without: DIALECT,
    formats: Some(FORMATS),
    linear_patterns: true,
    ..OPENAI
};

const ANTHROPIC: Rules = Rules {
    most_tools: Some(10_000),
    longest_description: None,
    longest_name: 128,
    root_without: UNIONS,
    root_properties: false,
    without: DIALECT,
    items_needed: false,
    keys: Keys::Root,
    ..OPENAI
};

const GEMINI: Rules = Rules {
    most_tools: None,
    longest_description: None,
    name_marks: ".:-",
    digit_first: false,
    longest_name: 128,
    without: DIALECT_AND_UNIONS,
    beside_references: false,
    empty_enum_text: false,
    ..OPENAI
};

const BEDROCK: Rules = Rules {
    most_tools: None,
    longest_name: 64,
    root_without: UNIONS_AND_VALUES,
    references: false,
    ..ANTHROPIC
};

pub(super) fn rules(profile: &str) -> Rules {
    match profile {
        "generic" => Rules { digit_first: false, bounds: Some(2_000.0), keys: Keys::Root, ..COMPATIBLE },
        "openai" | "azure" => OPENAI,
        "anthropic" => ANTHROPIC,
        "gemini" => GEMINI,
        "vertex" => Rules { most_tools: Some(512), ..GEMINI },
        "bedrock" => BEDROCK,
        "bedrock-nova" => Rules {
            name_marks: "",
            digit_first: false,
            root_only: Some(&["type", "properties", "required"]),
            root_properties: true,
            items_needed: true,
            ..BEDROCK
        },
        "deepseek" | "groq" => Rules { most_tools: Some(128), ..COMPATIBLE },
        "mistral" | "cohere" => COMPATIBLE,
        "ollama" => Rules {
            without: &["allOf", "oneOf"],
            references: false,
            items_needed: false,
            formats: None,
            linear_patterns: false,
            ..COMPATIBLE
        },
        "vllm" => Rules { without: NO_GRAMMAR, bounds: Some(2_000.0), ..COMPATIBLE },
        other => panic!("no such profile: {other}"),
    }
}

/// What strict mode asks of a schema that says that it is strict.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strict {
    /// Keywords that are refused, as far as providers name them.
    pub(super) without: &'static [&'static str],
    pub(super) all_required: bool,
    pub(super) most_min_items: Option<f64>,
    /// Sums over the schema: properties, levels, characters, enum values.
    pub(super) sums: bool,
    /// Sums over a request: tools, optional properties, unions.
    pub(super) request: bool,
}

const NOT_STRICT: &[&str] = &[
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "prefixItems",
    "default",
];
const NOT_STRICT_AT_ANTHROPIC: &[&str] = &[
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "uniqueItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
];

const OPENAI_STRICT: Strict =
    Strict { without: NOT_STRICT, all_required: true, most_min_items: None, sums: true, request: false };
const ANTHROPIC_STRICT: Strict = Strict {
    without: NOT_STRICT_AT_ANTHROPIC,
    all_required: false,
    most_min_items: Some(1.0),
    sums: false,
    request: true,
};

/// Whose strict rules hold: those of the provider, or of the one that a format is known for.
pub(super) fn strict(profile: &str, format: &str) -> Option<Strict> {
    match (profile, format) {
        ("openai" | "azure", _) => Some(OPENAI_STRICT),
        ("anthropic", _) => Some(ANTHROPIC_STRICT),
        (_, "openai_chat" | "openai_responses") => Some(OPENAI_STRICT),
        (_, "anthropic" | "bedrock_converse") => Some(ANTHROPIC_STRICT),
        _ => None,
    }
}
