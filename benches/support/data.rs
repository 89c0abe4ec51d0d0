//! What is measured with: catalogs and queries, real ones where there is a folder of them, else generated ones.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::measure::Result;

#[expect(
    dead_code,
    unused_imports,
    reason = "the integration tests use more of the generator than benchmarks do"
)]
#[path = "../../tests/it/messy/mod.rs"]
mod messy;

/// Names the folder of real catalogs.
const FOLDER: &str = "TOOLRACK_TEST_DATA";
/// The files of real tools, one JSON object a line; the second one fills up what the first one lacks.
const TOOL_FILES: [&str; 2] = ["catalogs/real_mcp_tools.jsonl", "catalogs/scale_tools.jsonl"];
const QUERY_FILE: &str = "bench/agent_dev/queries.jsonl";

/// The largest catalog that is measured.
const TOOLS: usize = 10_000;
const SEED: u64 = 1;
/// Words of a tool's description that a made query takes.
const DESCRIPTION_WORDS: usize = 6;

/// Tools and queries.
#[derive(Debug)]
pub(crate) struct Data {
    /// Upload entries as JSON text, 10,000 where there are as many.
    pub(crate) tools: Vec<String>,
    /// What agents look for.
    pub(crate) queries: Vec<String>,
    /// Where both are from, in words.
    pub(crate) source: String,
}

impl Data {
    pub(crate) fn load() -> Result<Self> {
        match std::env::var_os(FOLDER).map(PathBuf::from) {
            Some(folder) => Self::real(&folder),
            None => Self::made(),
        }
    }

    fn real(folder: &Path) -> Result<Self> {
        let mut tools = Vec::new();
        for file in TOOL_FILES {
            tools.extend(lines(&folder.join(file))?);
        }
        tools.truncate(TOOLS);
        let mut queries = Vec::new();
        for line in lines(&folder.join(QUERY_FILE))? {
            let line: Value = serde_json::from_str(&line)?;
            queries.extend(line["query"].as_str().map(str::to_owned));
        }
        let source =
            format!("{} real tools and {} queries of {}", tools.len(), queries.len(), folder.display());
        Ok(Self { tools, queries, source })
    }

    fn made() -> Result<Self> {
        let tools: Vec<String> = messy::catalog(SEED, TOOLS)
            .iter()
            .map(serde_json::to_string)
            .collect::<std::result::Result<_, _>>()?;
        let queries =
            tools.iter().step_by(tools.len() / 400).map(|tool| query_for(tool)).collect::<Result<_>>()?;
        let source = format!("{} generated tools, because {FOLDER} is not set", tools.len());
        Ok(Self { tools, queries, source })
    }
}

fn lines(file: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// A query that finds a tool: its name as words, and the first words of its description.
pub(crate) fn query_for(tool: &str) -> Result<String> {
    let tool: Value = serde_json::from_str(tool)?;
    let definition = messy::definition(&tool);
    let name = definition["name"].as_str().unwrap_or_default().replace(['_', '-', '.', '/'], " ");
    let description = definition["description"].as_str().unwrap_or_default();
    let words: Vec<&str> =
        name.split_whitespace().chain(description.split_whitespace().take(DESCRIPTION_WORDS)).collect();
    Ok(words.join(" "))
}

/// The body of an upload, as an agent sends it.
pub(crate) fn upload_body(tools: &[String]) -> String {
    format!("{{\"tools\":[{}]}}", tools.join(","))
}
