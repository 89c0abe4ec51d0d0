//! Scope configuration: what one scope says ([`Layer`]), what a request sees ([`Policy`]), and how the one
//! becomes the other. Strict at the door ([`parse`]), lenient inside ([`load`]). All keys stand in one
//! table (`keys.rs`). Must not know: storage, HTTP, catalogs (a selector is only text here), the key
//! material behind `matcher.api_key`.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use self::reader::Reader;
use self::rules::Record;
use super::warning::{FieldError, Warning};

#[macro_use]
mod table;

mod dialect;
mod diff;
mod effective;
mod join;
mod keys;
mod lists;
mod matcher;
mod patch;
mod reader;
mod request;
mod rules;
mod values;

#[cfg(test)]
mod tests;

pub use self::dialect::{Dialect, DialectChoice};
pub use self::diff::{ConfigChange, ConfigDiff, diff};
pub use self::effective::effective;
pub use self::keys::{Layer, Policy};
pub use self::lists::name_fault;
pub use self::matcher::{Endpoint, Fusion, Matcher, MatcherKind, MatcherSetting, SecretWrite, origin_of};
pub use self::patch::{apply_patch, merge_patch};
pub use self::request::{ExtraBody, ExtraHeader, ExtraHeaders, TEXT_FIELDS, check_header, is_framing_header};
pub use self::values::{
    Group, HotTools, HotToolsSetting, ListingPlacement, Origin, Preload, PreloadSetting, Switch, Toggle,
    Toolset, WarmPolicy,
};

/// A config document that passed the door.
#[derive(Debug)]
pub struct Parsed {
    pub layer: Layer,
    /// What was clamped (`clamped`), and names that look like something else (`odd_name`), with pointers into the document.
    pub warnings: Vec<Warning>,
    /// What becomes of the stored `matcher.api_key`.
    pub secrets: SecretWrite,
}

/// What one key means, for the documentation. Keys inside `matcher`, `preload` and `hot_tools` follow their
/// parent, with a dot.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct KeyDoc {
    pub key: String,
    /// Null where there is none.
    pub default: Value,
    pub range: String,
    #[schema(value_type = String)]
    pub meaning: &'static str,
}

/// Reads a whole config document at the door. A null is an absent key.
///
/// # Errors
/// Every fault of the document, with JSON pointers: `wrong_type`, `unknown_key`, `missing_key`,
/// `invalid_value`, `unsupported`, `duplicate_name`, `too_long`, `too_many`. Beyond 100 faults, a last one
/// (`more_faults`) counts the rest.
pub fn parse(document: &Value) -> Result<Parsed, Vec<FieldError>> {
    let mut reader = Reader::strict();
    let layer = read_layer(document, &mut reader);
    let secrets = matcher::read_secret(document, &mut reader);
    let (errors, warnings) = reader.finish();
    if errors.is_empty() { Ok(Parsed { layer, warnings, secrets }) } else { Err(errors) }
}

/// Reads a stored document, perhaps one of an older version: a bad field falls back alone, with the warning
/// `stored_field_ignored`. Numeric texts, words such as `yes` for a switch and a text for a list of one are
/// understood. What cannot be read of `allow` and `default_toolsets` is kept as a name that nothing has, so
/// that a restriction never opens by accident.
pub fn load(stored: &Value) -> (Layer, Vec<Warning>) {
    let mut reader = Reader::lenient();
    let layer = read_layer(stored, &mut reader);
    (layer, reader.finish().1)
}

fn read_layer(document: &Value, reader: &mut Reader) -> Layer {
    let mut layer = Layer::default();
    if reader.is_lenient() && document.is_null() {
        return layer;
    }
    reader.object(document, Layer::KEYS, |reader, key, value| layer.set(key, value, reader));
    warn_of_default_limit(&layer, reader);
    layer
}

/// The default limit stays as it was written, because another layer may raise the maximum, but it is never
/// in force above it.
fn warn_of_default_limit(layer: &Layer, reader: &mut Reader) {
    let maximum = layer.max_search_limit.unwrap_or(Policy::default().max_search_limit);
    if let Some(limit) = layer.search_default_limit
        && limit > maximum
    {
        reader.at("search_default_limit", |reader| {
            reader.clamped(format!(
                "{limit} is above max_search_limit; the max_search_limit in force, here {maximum}, is used"
            ));
        });
    }
}

impl Layer {
    /// The document to store and to show: values as clamped, keys in the order of the table, nothing of the
    /// secret. [`parse`] and [`load`] read the same layer from it.
    pub fn to_json(&self) -> Map<String, Value> {
        self.write()
    }
}

/// What a request with these two layers sees. Deterministic, and never fails.
pub fn merge(user: &Layer, project: &Layer) -> Policy {
    let mut policy = keys::merge_keys(user, project);
    policy.search_default_limit = policy.search_default_limit.min(policy.max_search_limit);
    policy
}

impl Default for Policy {
    fn default() -> Self {
        merge(&Layer::default(), &Layer::default())
    }
}

/// Every key with default, range and meaning, in the order of the table.
pub fn documentation() -> Vec<KeyDoc> {
    let mut documents = Vec::new();
    for document in keys::document_keys() {
        let inner = match document.key.as_str() {
            "matcher" => matcher::documentation(),
            "preload" => PreloadSetting::documentation("preload"),
            "hot_tools" => HotToolsSetting::documentation("hot_tools"),
            _ => Vec::new(),
        };
        documents.push(document);
        documents.extend(inner);
    }
    documents
}
