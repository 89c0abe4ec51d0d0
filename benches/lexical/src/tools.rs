//! The catalogs and the labelled queries that are measured with.

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolrack::core::catalog::{Catalog, read_upload, replace};
use toolrack::core::format::ingest::EntryLimits;

use crate::support::measure::Result;

/// The service's default limits of one tool.
const LIMITS: EntryLimits = EntryLimits { bytes: 256 * 1024, depth: 64 };

/// What is searchable of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: String,
    /// The name with spaces between its parts, and the names and descriptions of the parameters: for engines that take text.
    pub(crate) words: String,
    pub(crate) arguments: String,
}

impl Text {
    fn new(group: &str, name: &str, description: &str, parameters: &str) -> Self {
        let mut arguments = String::new();
        if let Ok(schema) = serde_json::from_str(parameters) {
            add_arguments(&schema, &mut arguments);
        }
        Self {
            group: group.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters.to_owned(),
            words: name.replace(|c: char| !c.is_alphanumeric(), " "),
            arguments,
        }
    }

    fn renamed(&self, copy: usize) -> Self {
        Self {
            group: format!("{}_{copy}", self.group),
            name: format!("{}_{copy}", self.name),
            words: format!("{} {copy}", self.words),
            ..self.clone()
        }
    }
}

/// As deep as `serde_json` reads, which is bounded.
fn add_arguments(schema: &Value, text: &mut String) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        if let ("description", Some(description)) = (keyword.as_str(), value.as_str()) {
            text.push_str(description);
            text.push(' ');
        }
        if let ("properties", Some(properties)) = (keyword.as_str(), value.as_object()) {
            for name in properties.keys() {
                text.extend(name.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }));
                text.push(' ');
            }
            properties.values().for_each(|property| add_arguments(property, text));
        } else {
            add_arguments(value, text);
        }
    }
}

/// The first `count` upload entries as the service reads them; where there are fewer, renamed copies follow.
pub(crate) fn catalog(entries: &[String], count: usize) -> Vec<Text> {
    let entries = &entries[..count.min(entries.len())];
    let upload = read_upload(entries.iter().map(String::as_str), LIMITS, "/tools");
    let catalog = replace(&Catalog::default(), upload.tools).catalog;
    let mut tools: Vec<Text> = catalog
        .tools()
        .iter()
        .map(|tool| {
            let tool = &tool.tool;
            Text::new(tool.group(), tool.name(), &tool.description(), tool.parameters())
        })
        .collect();
    let originals = tools.len();
    while tools.len() < count && originals > 0 {
        let copy = tools[tools.len() % originals].renamed(tools.len() / originals + 1);
        tools.push(copy);
    }
    tools
}

/// A query with the numbers of the tools that serve it, and what kind of query it is.
#[derive(Debug)]
pub(crate) struct Labelled {
    pub(crate) query: String,
    pub(crate) kind: String,
    pub(crate) relevant: Vec<usize>,
}

/// Tools and queries of a labelled set; queries that no tool serves are left out.
pub(crate) fn labelled(folder: &Path) -> Result<(Vec<Text>, Vec<Labelled>)> {
    let lines = |file: &str| -> Result<Vec<Value>> {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    };
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let tools: Vec<Text> = lines("tools.jsonl")?
        .iter()
        .map(|tool| {
            let parameters = tool["parameters"].to_string();
            Text::new(&text(tool, "group"), &text(tool, "name"), &text(tool, "description"), &parameters)
        })
        .collect();
    let number_of = |name: &Value| tools.iter().position(|tool| Some(tool.name.as_str()) == name.as_str());
    let mut queries = Vec::new();
    for line in lines("queries.jsonl")? {
        let relevant: Vec<usize> =
            line["relevant"].as_array().into_iter().flatten().filter_map(number_of).collect();
        if !relevant.is_empty() {
            queries.push(Labelled { query: text(&line, "query"), kind: text(&line, "kind"), relevant });
        }
    }
    Ok((tools, queries))
}
