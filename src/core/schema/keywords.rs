//! Where schemas stand inside a schema: the one table that every walk over a schema document reads.

/// What the value of a keyword holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum Holds {
    /// A schema.
    Schema,
    /// An array of schemas.
    List,
    /// A schema or an array of schemas (`items` before 2020-12).
    SchemaOrList,
    /// An object whose values are schemas.
    Map,
    /// An object whose values are schemas or lists of property names (`dependencies`).
    MapOfSchemas,
    /// No schema: literals, limits, texts, and everything unknown.
    Nothing,
}

/// To which values the schemas under a keyword apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum Applies {
    /// To the same value.
    InPlace,
    /// To the same value, as one of several alternatives whose errors are gathered.
    Alternative,
    /// To the property of that name.
    Property,
    /// To any property.
    EachProperty,
    /// To any item.
    EachItem,
    /// To the names of the properties.
    Names,
    /// To nothing by itself (`$defs`).
    Never,
}

/// The table: JSON Schema drafts 4 to 2020-12.
pub(in crate::core) fn of(keyword: &str) -> (Holds, Applies) {
    match keyword {
        "properties" => (Holds::Map, Applies::Property),
        "patternProperties" => (Holds::Map, Applies::EachProperty),
        "additionalProperties" | "unevaluatedProperties" => (Holds::Schema, Applies::EachProperty),
        "propertyNames" => (Holds::Schema, Applies::Names),
        "items" => (Holds::SchemaOrList, Applies::EachItem),
        "prefixItems" => (Holds::List, Applies::EachItem),
        "additionalItems" | "unevaluatedItems" | "contains" => (Holds::Schema, Applies::EachItem),
        "allOf" => (Holds::List, Applies::InPlace),
        "anyOf" | "oneOf" => (Holds::List, Applies::Alternative),
        "not" | "if" | "then" | "else" => (Holds::Schema, Applies::InPlace),
        "dependentSchemas" => (Holds::Map, Applies::InPlace),
        "dependencies" => (Holds::MapOfSchemas, Applies::InPlace),
        "$defs" | "definitions" => (Holds::Map, Applies::Never),
        _ => (Holds::Nothing, Applies::Never),
    }
}
