//! Why a tool stands where it stands: the parts of its score, readable by a person.

use super::index::{Document, fields_by_term};
use super::query::What;
use super::run::{TraceEntry, share};
use super::search::{Likeness, Outcome, Part, trace};

/// What a word of the query was matched by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matched {
    /// The word as written.
    Word,
    /// Another inflection of it.
    Stem,
    /// Two words of the query side by side.
    Pair,
    /// Two words as one, or one as two.
    Joined,
    /// A synonym, an abbreviation or the English of another language.
    Concept,
    /// One or two characters of a script without spaces.
    Characters,
    /// A part of a word that no tool holds.
    Split,
    /// The nearest word to one that no tool holds.
    Correction,
}

/// One term's part in a score.
#[derive(Debug, Clone, PartialEq)]
pub struct TermScore {
    /// The word of the query, without case and accents.
    pub typed: String,
    /// What the tool holds: the same, or what the word stands for.
    pub matched: String,
    pub kind: Matched,
    /// Fields of the tool that hold the term, with their weights: `name`, `group`, `lead` (first sentence), `description`,
    /// `parameter`, `parameter_description`, `value`, `alias`. Empty when the tool's text was not given.
    pub fields: Vec<(&'static str, f32)>,
    /// Rarity of the term, above 0.
    pub idf: f32,
    /// What the term counts for beside others of the query, before rarity.
    pub weight: f32,
    /// How much the tool is about the term: its occurrences by field weight and length, saturated at 2.5.
    pub impact: f32,
    /// What it adds to the score before the bonus: `weight` times `idf` times `impact`.
    pub contribution: f32,
    /// 0 to 1: what it adds to the coverage.
    pub coverage: f32,
    pub in_name: bool,
}

/// Why a candidate has its score.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explanation {
    /// In the order of the query; the contributions add up to `sum`.
    pub terms: Vec<TermScore>,
    /// Words of the query that the tool does not hold in any form.
    pub missing: Vec<String>,
    pub sum: f32,
    /// 0 to 1, as in a hit.
    pub coverage: f32,
    pub name_coverage: f32,
    /// What `sum` is multiplied by: more for coverage and a name that the query says all of, less for a tool that changes something
    /// where the query asks for no change.
    pub bonus: f32,
    /// How like the query the tool is in meaning, where that was asked, and what it adds to the score; less than 0 for one that
    /// is less like it than the others.
    pub alike: Option<(f32, f32)>,
    /// `sum` times `bonus`, and what `alike` adds: the score that the search gives.
    pub score: f32,
    /// The query names the tool, which puts it before all that it does not name.
    pub exact: bool,
    /// The tool as the search has it, alone: what its confidence comes from.
    pub outcome: Outcome,
}

/// Explains the score of `candidate` for `query`, with the same `parts` and `candidate_count` as the search. `documents` are
/// the candidate's texts in the parts, for the fields; without them the rest is told all the same.
pub fn explain(
    parts: &[Part<'_>],
    candidate_count: usize,
    query: &str,
    candidate: u32,
    documents: &[Document<'_>],
    likeness: Option<&mut dyn Likeness>,
) -> Explanation {
    let traced = trace(parts, candidate_count, query, candidate, likeness);
    let fields = fields_by_term(documents);
    let terms = traced.entries.iter().map(|entry| {
        let typed = traced.units[entry.unit].0.clone();
        let fields = fields.get(&entry.form.key).into_iter().flatten();
        TermScore {
            matched: matched(entry, &typed),
            typed,
            kind: kind(&entry.form.what),
            fields: fields.map(|field| (field.name(), field.weight())).collect(),
            idf: entry.idf,
            weight: entry.form.factor,
            impact: entry.contribution / (entry.form.factor * entry.idf).max(f32::MIN_POSITIVE),
            contribution: entry.contribution,
            coverage: share(entry.coverage, traced.all),
            in_name: entry.in_name,
        }
    });
    let held = |number: usize| traced.entries.iter().any(|entry| entry.unit == number);
    let missing = traced.units.iter().enumerate().filter(|(number, (_, covers))| *covers && !held(*number));
    // A query that is the tool's name, in whatever writing, lacks nothing.
    let missing = missing.filter(|_| !traced.whole);
    let mut missing: Vec<String> = missing.map(|(_, (text, _))| text.clone()).collect();
    // A word without spaces around it is several units.
    missing.dedup();
    Explanation {
        terms: terms.collect(),
        missing,
        sum: traced.sum,
        coverage: traced.coverage,
        name_coverage: traced.name_coverage,
        bonus: traced.bonus,
        alike: traced.alike,
        score: (traced.sum * traced.bonus + traced.alike.map_or(0.0, |(_, adds)| adds)).max(0.0),
        exact: traced.exact,
        outcome: traced.outcome,
    }
}

fn matched(entry: &TraceEntry, typed: &str) -> String {
    match (&entry.form.what, &entry.repaired) {
        (What::Concept(member), _) => member.text.to_owned(),
        (What::Split | What::Correction, Some(repaired)) => repaired.clone(),
        _ => typed.to_owned(),
    }
}

fn kind(what: &What) -> Matched {
    match what {
        What::Word => Matched::Word,
        What::Stem => Matched::Stem,
        What::Pair => Matched::Pair,
        What::Joined => Matched::Joined,
        What::Concept(_) => Matched::Concept,
        What::Character => Matched::Characters,
        What::Split => Matched::Split,
        What::Correction => Matched::Correction,
    }
}
