//! The search over catalogs: by words, and by meaning beside them.
//!
//! Owns how the two halves are put together per catalog and per search. What a word is worth is `lexical`'s, what a vector
//! is `semantic`'s.

use std::borrow::Cow;
use std::cell::RefCell;

use super::lexical::{
    self, Document, Explanation, Index, Likeness, Outcome, UNSEEN, parameter_names, translated,
};
use super::semantic::{self, Builder, Query, ToolText, Vectors, Weights, scan, table};

/// Clauses of one query that are compared by themselves, and the share that the best of them has in a tool's likeness.
const MAX_CLAUSES: usize = 8;
const CLAUSE_SHARE: f32 = 0.5;
/// What ends a clause, and the words of the shortest that says something by itself.
const CLAUSE_ENDS: [&str; 9] = [". ", "? ", "! ", "; ", "\n", ", ", " and ", " then ", " also "];
const SHORTEST_CLAUSE: usize = 3;

/// Reads what is compiled in (lexicon and table) now rather than at the first search; takes some tens of milliseconds.
pub fn prepare() {
    lexical::prepare();
    table();
}

/// What is searched of one catalog.
#[derive(Debug, Default)]
pub struct CatalogIndex {
    words: Index,
    /// None in a build without the table of vectors, and for an index of words alone.
    vectors: Option<Vectors>,
}

impl CatalogIndex {
    /// Indexes `documents`, in their order. Never fails: what cannot be read is left out, and long texts are read in part.
    pub fn build<'a>(documents: impl Iterator<Item = Document<'a>> + Clone) -> Self {
        Self { words: Index::build(documents.clone()), vectors: vectors(documents) }
    }

    /// As [`Self::build`], without a look for stuffed texts: so that what that does can be measured.
    pub fn trusting<'a>(documents: impl Iterator<Item = Document<'a>> + Clone) -> Self {
        Self { words: Index::trusting(documents.clone()), vectors: vectors(documents) }
    }

    /// Indexes by words alone: for an administrator's phrases beside a catalog.
    pub fn of_words<'a>(documents: impl Iterator<Item = Document<'a>>) -> Self {
        Self { words: Index::trusting(documents), vectors: None }
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Approximate size on the heap, for weighing in caches.
    pub fn bytes(&self) -> usize {
        self.words.bytes() + self.vectors.as_ref().map_or(0, Vectors::bytes)
    }
}

fn vectors<'a>(documents: impl Iterator<Item = Document<'a>>) -> Option<Vectors> {
    let mut builder = Builder::new(table()?, Weights::default());
    for document in documents {
        let names = parameter_names(document.parameters);
        let parameters: Vec<&str> = names.iter().map(String::as_str).collect();
        // The table knows English alone.
        let english = translated(document.description).join(" ");
        let description = match english.as_str() {
            "" => Cow::Borrowed(document.description),
            english => Cow::Owned(format!("{english}. {}", document.description)),
        };
        builder.add(&ToolText {
            group: document.group,
            name: document.name,
            description: &description,
            parameters: &parameters,
            aliases: document.aliases,
        });
    }
    Some(builder.finish())
}

/// One index that takes part in a search.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub index: &'a CatalogIndex,
    /// Per document of the index: its candidate, or [`lexical::NONE`] when it must not show. A missing entry is the same.
    pub candidates: &'a [u32],
}

/// Ranks the candidates `0..candidate_count` for `query`; by meaning as well, where the build can and `semantic` says so.
pub fn search(
    parts: &[Part<'_>],
    candidate_count: usize,
    query: &str,
    limit: usize,
    semantic: bool,
) -> Outcome {
    with_likeness(parts, semantic, |words, likeness| {
        lexical::search_with(words, candidate_count, query, limit, likeness)
    })
}

/// Explains the score of `candidate`, with what the search was given. `documents` are its texts in the parts.
pub fn explain(
    parts: &[Part<'_>],
    candidate_count: usize,
    query: &str,
    candidate: u32,
    documents: &[Document<'_>],
    semantic: bool,
) -> Explanation {
    with_likeness(parts, semantic, |words, likeness| {
        lexical::explain(words, candidate_count, query, candidate, documents, likeness)
    })
}

fn with_likeness<T>(
    parts: &[Part<'_>],
    semantic: bool,
    run: impl FnOnce(&[lexical::Part<'_>], Option<&mut dyn Likeness>) -> T,
) -> T {
    thread_local! {
        static QUERIES: RefCell<Option<Queries>> = RefCell::new(table().map(Queries::new));
    }
    let words: Vec<lexical::Part<'_>> = parts
        .iter()
        .map(|part| lexical::Part { index: &part.index.words, candidates: part.candidates })
        .collect();
    QUERIES.with_borrow_mut(|queries| match queries.as_mut().filter(|_| semantic) {
        Some(queries) => {
            let vectors = parts.iter().filter_map(|part| {
                let vectors = part.index.vectors.as_ref()?;
                Some(semantic::Part { vectors, candidates: part.candidates })
            });
            run(&words, Some(&mut ByMeaning { parts: vectors.collect(), queries, clauses: 0 }))
        }
        None => run(&words, None),
    })
}

/// The vectors of a query and of its clauses. A buffer.
struct Queries {
    whole: Query<'static>,
    clauses: Vec<Query<'static>>,
}

impl Queries {
    fn new(table: &'static semantic::Table) -> Self {
        Self {
            whole: Query::new(table),
            clauses: std::iter::repeat_with(|| Query::new(table)).take(MAX_CLAUSES).collect(),
        }
    }
}

/// Likeness of vectors.
struct ByMeaning<'a> {
    parts: Vec<semantic::Part<'a>>,
    queries: &'a mut Queries,
    /// Clauses that were read.
    clauses: usize,
}

impl ByMeaning<'_> {
    fn read_clauses(&mut self, text: &str) {
        let room = self.queries.clauses.iter_mut();
        self.clauses = 0;
        for (query, clause) in room.zip(clauses(text)) {
            query.begin();
            query.add(clause, 1.0);
            query.finish();
            self.clauses += 1;
        }
    }
}

impl Likeness for ByMeaning<'_> {
    fn estimate(&mut self, words: &[(&str, f32)], text: Option<&str>, alike: &mut [f32]) -> bool {
        self.read_clauses(text.unwrap_or_default());
        let whole = &mut self.queries.whole;
        whole.begin();
        for (word, weight) in words {
            whole.add(word, *weight);
        }
        whole.finish();
        if whole.is_empty() {
            return false;
        }
        scan(&self.parts, whole, alike, UNSEEN);
        true
    }

    fn refine(&mut self, wanted: &[bool], alike: &mut [f32]) {
        let whole = &self.queries.whole;
        let clauses = self.queries.clauses[..self.clauses].iter().filter(|clause| !clause.is_empty());
        let clauses: Vec<&Query<'_>> = clauses.collect();
        for part in &self.parts {
            for (document, &candidate) in part.candidates.iter().enumerate().take(part.vectors.len()) {
                if !wanted.get(candidate as usize).copied().unwrap_or(false) {
                    continue;
                }
                let whole = part.vectors.exact(document, whole);
                let best = clauses.iter().map(|clause| part.vectors.exact(document, clause)).reduce(f32::max);
                alike[candidate as usize] =
                    best.map_or(whole, |best| (1.0 - CLAUSE_SHARE) * whole + CLAUSE_SHARE * best);
            }
        }
    }
}

/// The clauses of an English text, where it has several: a tool that serves one of them is not like the whole.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    let mut ends: Vec<(usize, usize)> = Vec::new();
    for separator in CLAUSE_ENDS {
        ends.extend(text.match_indices(separator).map(|(at, separator)| (at, at + separator.len())));
    }
    ends.sort_unstable();
    ends.push((text.len(), text.len()));
    let mut start = 0;
    let mut clauses = Vec::new();
    for (end, next) in ends {
        if end < start {
            continue;
        }
        clauses.push(&text[start..end]);
        start = next;
    }
    clauses.retain(|clause| clause.split_whitespace().nth(SHORTEST_CLAUSE - 1).is_some());
    if clauses.len() < 2 {
        clauses.clear();
    }
    clauses.into_iter()
}

#[cfg(test)]
mod tests;
