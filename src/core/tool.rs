//! One tool, kept as the JSON text that was uploaded: what goes out later is copied, never written anew.
//!
//! Owns the stored form of a tool. Knows nothing of upload shapes (`format`), of names over a whole catalog
//! (`catalog`) or of who may see it (`grant`).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::digest::{Digest, push_string};

/// The group of tools that name none.
pub const DEFAULT_GROUP: &str = "other";

/// What identifies a tool over time: the group of the upload and the name of the upload.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolKey {
    pub group: Box<str>,
    pub name: Box<str>,
}

impl ToolKey {
    pub fn new(group: &str, name: &str) -> Self {
        Self { group: group.into(), name: name.into() }
    }
}

/// The parts of a tool before it is stored. Raw parts are JSON text as uploaded.
#[derive(Debug, Clone, Default)]
pub struct ToolParts<'a> {
    pub group: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// A JSON string.
    pub description: Option<&'a RawValue>,
    /// A JSON Schema, normally an object.
    pub parameters: Option<&'a RawValue>,
    pub annotations: Option<&'a RawValue>,
    pub always_load: bool,
    /// A project's tool that wins over a user's tool of the same stored name.
    pub overrides: bool,
    pub aliases: Vec<String>,
    /// The provider in whose shape the upload came, where `extra` may hold members of its own.
    pub extra_of: Option<&'static str>,
    /// Members of the upload that Toolrack keeps but does not read.
    pub extra: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// A stored tool. Immutable; cheap to share behind an `Arc` of its catalog.
#[derive(Clone, PartialEq, Eq)]
pub struct Tool {
    /// `{"group":…,"name":…,"description":…,"parameters":…[,…]}`, raw parts as uploaded.
    body: Arc<str>,
    group: Box<str>,
    name: Box<str>,
    description: Range<u32>,
    parameters: Range<u32>,
    digest: Digest,
    always_load: bool,
    overrides: bool,
    aliases: Box<[String]>,
}

/// The members of a stored body that are read back.
#[derive(Deserialize)]
struct StoredBody<'a> {
    #[serde(borrow)]
    group: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    description: &'a RawValue,
    #[serde(borrow)]
    parameters: &'a RawValue,
    #[serde(default)]
    always_load: bool,
    #[serde(default, rename = "override")]
    overrides: bool,
    #[serde(default)]
    aliases: Vec<String>,
}

/// What a stored body holds behind the schema for formats that have it.
#[derive(Debug, Default, Deserialize)]
pub struct Kept<'a> {
    #[serde(borrow, default)]
    pub annotations: Option<&'a RawValue>,
    /// See [`ToolParts::extra_of`].
    #[serde(borrow, default)]
    pub extra_of: Option<Cow<'a, str>>,
    /// An object.
    #[serde(borrow, default)]
    pub extra: Option<&'a RawValue>,
}

impl Kept<'_> {
    pub fn is_empty(&self) -> bool {
        self.annotations.is_none() && self.extra.is_none()
    }
}

/// What stands for a schema that the upload left out or gave as null.
pub(super) const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

impl Tool {
    /// Puts a tool together from checked parts.
    ///
    /// The error is that of the JSON reader; it does not happen for parts that were read as JSON before.
    pub fn from_parts(parts: &ToolParts<'_>) -> Result<Self, serde_json::Error> {
        let mut body = String::with_capacity(128 + parts.parameters.map_or(0, |raw| raw.get().len()));
        body.push_str("{\"group\":");
        push_string(&parts.group, &mut body);
        body.push_str(",\"name\":");
        push_string(&parts.name, &mut body);
        body.push_str(",\"description\":");
        body.push_str(parts.description.map_or("\"\"", RawValue::get));
        body.push_str(",\"parameters\":");
        body.push_str(parts.parameters.map_or(NO_PARAMETERS, RawValue::get));
        if let Some(annotations) = parts.annotations {
            body.push_str(",\"annotations\":");
            body.push_str(annotations.get());
        }
        if parts.always_load {
            body.push_str(",\"always_load\":true");
        }
        if parts.overrides {
            body.push_str(",\"override\":true");
        }
        if !parts.aliases.is_empty() {
            body.push_str(",\"aliases\":");
            body.push_str(&serde_json::to_string(&parts.aliases)?);
        }
        if let Some(provider) = parts.extra_of {
            body.push_str(",\"extra_of\":");
            push_string(provider, &mut body);
        }
        if !parts.extra.is_empty() {
            body.push_str(",\"extra\":{");
            for (at, (key, value)) in parts.extra.iter().enumerate() {
                if at > 0 {
                    body.push(',');
                }
                push_string(key, &mut body);
                body.push(':');
                body.push_str(value.get());
            }
            body.push('}');
        }
        body.push('}');
        Self::from_body(body.into())
    }

    /// Reads a stored body back and computes its digest.
    pub fn from_body(body: Arc<str>) -> Result<Self, serde_json::Error> {
        let digest = Digest::of_json(&serde_json::from_str(&body)?);
        Self::from_stored(body, digest)
    }

    /// Reads a stored body whose digest is known.
    pub fn from_stored(body: Arc<str>, digest: Digest) -> Result<Self, serde_json::Error> {
        let stored: StoredBody<'_> = serde_json::from_str(&body)?;
        let start = body.as_ptr() as usize;
        let span = |raw: &RawValue| {
            let from = raw.get().as_ptr() as usize - start;
            (from as u32)..((from + raw.get().len()) as u32)
        };
        Ok(Self {
            group: stored.group.as_ref().into(),
            name: stored.name.as_ref().into(),
            description: span(stored.description),
            parameters: span(stored.parameters),
            digest,
            always_load: stored.always_load,
            overrides: stored.overrides,
            aliases: stored.aliases.into(),
            body: Arc::clone(&body),
        })
    }

    /// The stored JSON text.
    pub fn body(&self) -> &Arc<str> {
        &self.body
    }

    /// The stored JSON text from the key `description` on.
    pub fn from_description(&self) -> &str {
        &self.body[self.description.start as usize - "\"description\":".len()..]
    }

    /// The group of the upload.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The name of the upload.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn key(&self) -> ToolKey {
        ToolKey { group: self.group.clone(), name: self.name.clone() }
    }

    /// The description as a JSON string, byte-exact.
    pub fn description_json(&self) -> &str {
        &self.body[self.description.start as usize..self.description.end as usize]
    }

    /// The description's text.
    pub fn description(&self) -> Cow<'_, str> {
        let json = self.description_json();
        match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(inner) if !inner.contains('\\') => Cow::Borrowed(inner),
            _ => Cow::Owned(serde_json::from_str(json).unwrap_or_default()),
        }
    }

    /// The JSON Schema of the arguments, byte-exact.
    pub fn parameters(&self) -> &str {
        &self.body[self.parameters.start as usize..self.parameters.end as usize]
    }

    /// Identity of the content, whatever the order of keys.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub fn always_load(&self) -> bool {
        self.always_load
    }

    /// Whether a project's tool wins over a user's tool of the same stored name.
    pub fn overrides(&self) -> bool {
        self.overrides
    }

    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// What is kept of the upload beside what is read. Most tools have nothing, and are not parsed for it.
    pub fn kept(&self) -> Kept<'_> {
        let ends_with_schema = self.parameters.end as usize + 1 == self.body.len();
        if ends_with_schema { Kept::default() } else { serde_json::from_str(&self.body).unwrap_or_default() }
    }

    /// What the tool is called besides its name: its aliases, and the titles that MCP tools carry.
    pub fn other_names(&self) -> Vec<String> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Titled {
            title: Option<serde_json::Value>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Titles {
            annotations: Option<Titled>,
            extra: Option<Titled>,
        }
        let titles: Titles = serde_json::from_str(&self.body).unwrap_or_default();
        let titled =
            [titles.annotations, titles.extra].into_iter().flatten().filter_map(|titled| titled.title);
        let titles = titled.filter_map(|title| title.as_str().map(str::to_owned));
        self.aliases.iter().cloned().chain(titles).collect()
    }

    /// Approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.body.len() + self.group.len() + self.name.len()
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_parts_keep_their_bytes() {
        let schema: Box<RawValue> = serde_json::from_str(
            "{ \"type\":\"object\", \"properties\":{\"z\":{},\"a\":{\"default\":1.50}} }",
        )
        .unwrap();
        let description: Box<RawValue> = serde_json::from_str(r#""caf\u00e9 \"x\"""#).unwrap();
        let parts = ToolParts {
            group: "g".into(),
            name: "n".into(),
            description: Some(&description),
            parameters: Some(&schema),
            aliases: vec!["phrase".into()],
            ..ToolParts::default()
        };
        let tool = Tool::from_parts(&parts).unwrap();
        assert_eq!(tool.parameters(), schema.get());
        assert_eq!(tool.description_json(), description.get());
        assert_eq!(tool.description(), "café \"x\"");
        assert_eq!(tool.aliases(), ["phrase"]);
        let again = Tool::from_body(Arc::clone(tool.body())).unwrap();
        assert_eq!(again, tool);
    }

    #[test]
    fn a_missing_schema_takes_no_arguments() {
        let tool =
            Tool::from_parts(&ToolParts { group: "g".into(), name: "n".into(), ..ToolParts::default() })
                .unwrap();
        assert_eq!((tool.parameters(), tool.description_json()), (NO_PARAMETERS, "\"\""));
    }
}
