//! What the fuzz targets share: the engine, tools to search, and what holds for every answer.

#[path = "../../src/core/lexical/mod.rs"]
pub mod lexical;

use lexical::{Document, Index, Part, explain, search};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// The most matches that are asked for (`max_search_limit`).
const MOST: usize = 50;

/// The text of a tool.
#[derive(Debug, Clone, Arbitrary)]
pub struct Tool {
    pub group: String,
    pub name: String,
    pub description: String,
    pub parameters: String,
    pub aliases: Vec<String>,
}

impl Tool {
    pub fn document(&self) -> Document<'_> {
        Document {
            group: &self.group,
            name: &self.name,
            description: &self.description,
            parameters: &self.parameters,
            aliases: &self.aliases,
        }
    }
}

pub fn index(tools: &[Tool]) -> Index {
    Index::build(tools.iter().map(Tool::document))
}

/// Searches, and panics when the answer is not what it must be: of the visible tools, in order, finite, the same again, and
/// as it is explained.
pub fn check(tools: &[Tool], index: &Index, candidates: &[u32], query: &str, limit: usize) {
    let limit = limit % (MOST + 1);
    let parts = [Part { index, candidates }];
    let outcome = search(&parts, tools.len(), query, limit);
    assert_eq!(outcome, search(&parts, tools.len(), query, limit), "two answers for {query:?}");
    let mut seen = Vec::new();
    for hit in &outcome.hits {
        assert!(candidates.contains(&hit.candidate) && (hit.candidate as usize) < tools.len(), "{hit:?}");
        assert!(!seen.contains(&hit.candidate), "twice: {hit:?}");
        seen.push(hit.candidate);
        assert!(hit.score.is_finite() && hit.score >= 0.0, "{hit:?}");
        assert!((0.0..=1.0).contains(&hit.coverage) && (0.0..=1.0).contains(&hit.name_coverage), "{hit:?}");
    }
    for pair in outcome.hits.windows(2) {
        assert!(pair[0].exact || !pair[1].exact, "names first: {pair:?}");
        assert!(pair[0].exact || pair[0].score >= pair[1].score, "{pair:?}");
    }
    if let Some(hit) = outcome.hits.first() {
        let told =
            explain(&parts, tools.len(), query, hit.candidate, &[tools[hit.candidate as usize].document()], None);
        assert!((told.score - hit.score).abs() <= 1e-3 * hit.score.max(1.0), "{told:?} is not {hit:?}");
        assert!((told.coverage - hit.coverage).abs() < 1e-4, "{told:?} is not {hit:?}");
    }
}
