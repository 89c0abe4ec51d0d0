//! A set to measure with: tools, and queries with the tools that are right for them. Owns its files' form.
//!
//! Tools are in any accepted upload format, as a JSON array, as an object with `tools`, or one per line. Queries stand one
//! per line, or in an array: `{id?, query, relevant[], lang?, kind?}`. The two halves of a set are decided by the ids.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A set, as it was read.
#[derive(Debug)]
pub struct Set {
    pub name: String,
    pub tools: Vec<Box<RawValue>>,
    pub queries: Vec<Query>,
}

/// A request with its label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Query {
    /// Its line (from 1) where the file gives none.
    #[serde(default, deserialize_with = "text")]
    pub id: String,
    pub query: String,
    /// Uploaded or stored names; empty: no tool serves the request.
    pub relevant: Vec<String>,
    #[serde(default)]
    pub lang: Option<String>,
    #[serde(default)]
    pub kind: Option<String>,
}

/// Why a set cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    #[error("the {what}: {cause}")]
    Json { what: &'static str, cause: serde_json::Error },
    #[error("the {what}, line {line}: {cause}")]
    Line { what: &'static str, line: usize, cause: serde_json::Error },
    #[error("there are no {0}")]
    Empty(&'static str),
    #[error("the id `{0}` stands twice among the queries")]
    DuplicateId(String),
}

/// One of two halves of a set, so that what was chosen on one can be measured on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Half {
    A,
    B,
}

impl Half {
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// The half of a query, by a hash of its id alone: FNV-1a, with the finalizer of MurmurHash3 so that ids that
    /// differ in a digit fall apart.
    pub fn of(id: &str) -> Self {
        let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        if hash >> 40 & 1 == 0 { Self::A } else { Self::B }
    }
}

impl Set {
    /// Reads a set from the texts of its two files.
    pub fn read(name: impl Into<String>, tools: &str, queries: &str) -> Result<Self, SetError> {
        let tools = read_tools(tools)?;
        if tools.is_empty() {
            return Err(SetError::Empty("tools"));
        }
        let mut queries: Vec<Query> = read_list(queries, "queries")?;
        if queries.is_empty() {
            return Err(SetError::Empty("queries"));
        }
        let mut ids = std::collections::HashSet::new();
        for (at, query) in queries.iter_mut().enumerate() {
            if query.id.is_empty() {
                query.id = (at + 1).to_string();
            }
            if !ids.insert(query.id.clone()) {
                return Err(SetError::DuplicateId(query.id.clone()));
            }
        }
        Ok(Self { name: name.into(), tools, queries })
    }
}

fn read_tools(text: &str) -> Result<Vec<Box<RawValue>>, SetError> {
    #[derive(Deserialize)]
    struct Listed {
        tools: Vec<Box<RawValue>>,
    }
    match serde_json::from_str::<Listed>(text.trim_start_matches('\u{feff}')) {
        Ok(listed) => Ok(listed.tools),
        Err(_) => read_list(text, "tools"),
    }
}

/// An array, or one value per line; blank lines are passed over.
fn read_list<'a, T: Deserialize<'a>>(text: &'a str, what: &'static str) -> Result<Vec<T>, SetError> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('[') {
        return serde_json::from_str(text).map_err(|cause| SetError::Json { what, cause });
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|cause| SetError::Line { what, line: at + 1, cause })
        })
        .collect()
}

/// A text, or a number as a text.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = "{\"name\":\"a\"}\n{\"name\":\"b\"}\n";

    #[test]
    fn sets_are_read_from_lines_and_arrays() {
        let lines = "{\"id\":7,\"query\":\"x\",\"relevant\":[\"a\"],\"lang\":\"en\",\"kind\":\"task\"}\n\n{\"query\":\"y\",\"relevant\":[]}";
        let set = Set::read("s", TOOLS, lines).unwrap();
        assert_eq!(
            set.tools.iter().map(|tool| tool.get()).collect::<Vec<_>>(),
            [r#"{"name":"a"}"#, r#"{"name":"b"}"#]
        );
        assert_eq!(set.queries.iter().map(|query| query.id.as_str()).collect::<Vec<_>>(), ["7", "2"]);
        assert_eq!(set.queries[0].kind.as_deref(), Some("task"));
        assert_eq!(set.queries[1].lang, None);
        let listed = "\u{feff}{\"tools\":[{\"name\":\"a\"}]}";
        let array = Set::read("s", listed, "[{\"id\":\"q\",\"query\":\"x\",\"relevant\":[]}]").unwrap();
        assert_eq!((array.tools.len(), array.queries.len()), (1, 1));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |tools: &str, queries: &str| Set::read("s", tools, queries).unwrap_err().to_string();
        let good = "{\"query\":\"x\",\"relevant\":[]}";
        assert!(message("nonsense", good).starts_with("the tools, line 1"));
        assert!(message("", good).contains("no tools"));
        assert!(message(TOOLS, "").contains("no queries"));
        assert!(message(TOOLS, &format!("{good}\n{{\"query\":\"x\"}}")).starts_with("the queries, line 2"));
        assert!(message(TOOLS, "[7]").starts_with("the queries: "));
        let twice =
            "{\"id\":\"q\",\"query\":\"x\",\"relevant\":[]}\n{\"id\":\"q\",\"query\":\"y\",\"relevant\":[]}";
        assert!(message(TOOLS, twice).contains("`q`"));
    }

    #[test]
    fn halves_are_about_equal_and_never_change() {
        let a = (0..1_000).filter(|at| Half::of(&format!("dev-{at:03}")) == Half::A).count();
        assert!((450..=550).contains(&a), "{a}");
        let known = ["dev-001", "dev-003", "dev-004", "dev-005", "dev-006", ""].map(Half::of);
        assert_eq!(known, [Half::B, Half::B, Half::A, Half::B, Half::A, Half::B]);
    }
}
