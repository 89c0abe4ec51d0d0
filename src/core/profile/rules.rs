//! The vocabulary of schema rules: what a provider may ask of a tool's parameters.

/// Which keywords a schema may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keywords {
    /// All but these, unknown ones included.
    Without(&'static [&'static str]),
    /// These alone.
    Only(&'static [&'static str]),
}

impl Keywords {
    pub fn accept(self, keyword: &str) -> bool {
        match self {
            Self::Without(banned) => !banned.contains(&keyword),
            Self::Only(known) => known.contains(&keyword),
        }
    }
}

/// What the root of a schema must look like. Its type is always `object`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootRules {
    /// Keywords that are refused at the root and fine below.
    pub banned: &'static [&'static str],
    /// Where set, the only keywords of the root.
    pub only: Option<&'static [&'static str]>,
    /// Whether `properties` must be there.
    pub properties: bool,
}

/// What becomes of `$ref`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refs {
    /// Stays; it leads to `#` or `#/$defs/name`.
    Keep,
    /// Stays, and no keyword may stand beside it.
    KeepAlone,
    /// The schema that is meant stands in its place.
    Inline,
}

/// What an array needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Items {
    Optional,
    /// `items` must be there; `{}` will do.
    Needed,
    /// `items` must be there and have a type.
    Typed,
}

/// What may stand in an `enum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enums {
    Any,
    /// Anything but the empty text.
    NoEmptyText,
    /// Texts that are not empty, in a schema of type `string`.
    TextsOnly,
}

/// What becomes of a schema that says no type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untyped {
    Allowed,
    /// It gets the type that its other keywords show, where they show one.
    Inferred,
    /// It gets the type that its other keywords show, else a choice of the scalar types.
    Scalars,
}

/// Which keys of arguments are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    Any,
    /// `^[a-zA-Z0-9_.-]{1,64}$` for the keys of the root.
    TopLevel,
    /// `^[A-Za-z_][A-Za-z0-9_]{0,63}$` at every depth.
    Everywhere,
}

impl KeyRule {
    /// Longest key, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Whether a key may hold the character.
    pub fn allows(self, character: char) -> bool {
        match self {
            Self::Any => true,
            Self::TopLevel => character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-'),
            Self::Everywhere => character.is_ascii_alphanumeric() || character == '_',
        }
    }

    /// Whether a key may stand as it is where the rule holds.
    pub fn fits(self, key: &str) -> bool {
        let sized = !key.is_empty() && key.len() <= Self::MAX_CHARS;
        let head = self == Self::TopLevel || !key.starts_with(|first: char| first.is_ascii_digit());
        self == Self::Any || (sized && head && key.chars().all(|character| self.allows(character)))
    }

    /// The rule as a regular expression, for the documentation.
    pub fn pattern(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::TopLevel => "top level: ^[a-zA-Z0-9_.-]{1,64}$",
            Self::Everywhere => "^[A-Za-z_][A-Za-z0-9_]{0,63}$",
        }
    }
}

/// What a provider accepts in the schema of a tool's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaRules {
    pub root: RootRules,
    pub keywords: Keywords,
    pub refs: Refs,
    /// Whether `type` may be a list.
    pub type_lists: bool,
    /// Whether null is said by `nullable` instead of by a type.
    pub nullable: bool,
    /// Whether `anyOf` may stand beside constraints.
    pub any_of_with_others: bool,
    /// Whether a keyword may stand beside a type that it says nothing about, such as `items` of a text.
    pub foreign_keywords: bool,
    pub untyped: Untyped,
    pub items: Items,
    pub enums: Enums,
    /// The formats that are accepted; none for any.
    pub formats: Option<&'static [&'static str]>,
    /// Whether a `pattern` must be a regular expression that needs no backtracking.
    pub linear_patterns: bool,
    /// Whether a length or number of items from this on is refused.
    pub bounds_below: Option<u64>,
    /// Whether every name in `required` must be a property, at every depth. At the root it always must.
    pub required_declared: bool,
    pub keys: KeyRule,
    pub source: &'static str,
}

/// What strict mode asks for on top. A tool that cannot be strict is sent without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrictRules {
    pub keywords: &'static [&'static str],
    pub formats: &'static [&'static str],
    /// Whether every property must be required; an optional one then takes null.
    pub all_required: bool,
    /// Largest `minItems`; none for any.
    pub max_min_items: Option<u64>,
    /// Most properties in one schema.
    pub max_properties: Option<usize>,
    /// Most levels of objects.
    pub max_depth: Option<usize>,
    /// Most characters of property names, enum values and constants together.
    pub max_name_chars: Option<usize>,
    /// Most enum values in one schema.
    pub max_enum_values: Option<usize>,
    /// Most characters of the values of one enum with more than 250 values.
    pub max_large_enum_chars: Option<usize>,
    /// Most properties that are not required, over all strict tools of a request.
    pub max_optional: Option<usize>,
    /// Most properties with a union type, over all strict tools of a request.
    pub max_unions: Option<usize>,
    /// Most strict tools in a request.
    pub max_tools: Option<usize>,
    pub source: &'static str,
}

impl StrictRules {
    /// Values from which on an enum counts as large.
    pub const LARGE_ENUM: usize = 250;
}
