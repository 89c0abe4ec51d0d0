//! Why matches have their scores, in the terms of the keyword engine.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::super::context::Context;
use super::super::{Error, Toolrack, blocking};
use super::parts;
use crate::core::lexical::{Document, Explanation, Matched};
use crate::core::matches::Evidence;
use crate::core::ranking::{CatalogIndex, explain};

/// A field of a tool that holds a word.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FieldWeight {
    /// `name`, `group`, `lead` (first sentence), `description` (the rest), `parameter`, `parameter_description`, `value` or
    /// `alias`.
    #[schema(value_type = String)]
    pub field: &'static str,
    /// What a word in this field counts, before the field's length.
    pub weight: f64,
}

/// One word's part in a match's score.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TermExplanation {
    /// The word of the query.
    pub typed: String,
    /// What the tool holds for it.
    pub matched: String,
    /// `word`, `stem`, `pair`, `joined`, `concept`, `characters`, `split` or `correction`.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// Fields of the tool that hold it.
    pub fields: Vec<FieldWeight>,
    /// Rarity in these catalogs.
    pub idf: f64,
    /// What the form counts for beside others, before rarity.
    pub weight: f64,
    /// How much the tool is about it: occurrences by field weight and length, at most 2.5.
    pub impact: f64,
    /// What it adds to the score before the bonus: `weight` times `idf` times `impact`.
    pub contribution: f64,
}

/// Why a match has its score.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MatchExplanation {
    /// `lexical`, or `lexical+vectors` where likeness in meaning was added to the words.
    #[schema(value_type = String)]
    pub ranker: &'static str,
    pub terms: Vec<TermExplanation>,
    /// Words of the query that the tool holds in no form.
    pub missing: Vec<String>,
    /// 0 to 1: share of the query's weight that the tool matches, and that its name does.
    pub coverage: f64,
    pub name_coverage: f64,
    /// What the sum is multiplied by: more for coverage and a name that the query says all of, less for a tool that changes
    /// something where the query asks for no change.
    pub bonus: f64,
    /// -1 to 1: how like the query the tool is in meaning; absent where that was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// What `similarity` adds to the score; less than 0 for a tool that is less like the query than others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity_contribution: Option<f64>,
    /// The keyword score: the sum of the contributions, times the bonus, and what the similarity adds, at least 0. In other modes it is
    /// evidence beside the endpoint's.
    pub score: f64,
    /// What the endpoint said, where one ranked. With `fusion: off` the match's `score` is that in 0 to 1, otherwise both
    /// orders make it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_score: Option<f64>,
    /// Whether the query names the tool, which puts it before all that it does not name.
    pub named: bool,
    /// What the confidence of keyword matches comes from. What stands before a surer match is as sure as that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl Toolrack {
    /// Why tools have their keyword scores for a query.
    pub(in crate::service) async fn explain(
        &self,
        context: &Context,
        query: &str,
        ids: impl Iterator<Item = u32>,
    ) -> Result<Vec<MatchExplanation>, Error> {
        let indexes = self.indexes(context).await?;
        let (context, query, ids) = (context.clone(), query.to_owned(), ids.collect::<Vec<u32>>());
        // A search for each tool: too long for a thread that serves others.
        blocking(move || explanations(&context, &indexes, &query, &ids)).await
    }
}

/// Why tools have their keyword scores for a query.
fn explanations(
    context: &Context,
    indexes: &[Arc<CatalogIndex>],
    query: &str,
    ids: &[u32],
) -> Vec<MatchExplanation> {
    let parts = parts(context, indexes);
    let view = context.view();
    let explained = ids.iter().filter_map(|&id| view.get(id).map(|tool| (id, tool))).map(|(id, tool)| {
        let upload = &tool.tool.tool;
        let (description, mut aliases) = (upload.description(), upload.other_names());
        aliases.extend_from_slice(context.entry.aliases.of(id));
        let document = Document {
            group: upload.group(),
            name: upload.name(),
            description: &description,
            parameters: upload.parameters(),
            aliases: &aliases,
        };
        explanation(explain(&parts, view.tools.len(), query, id, &[document], context.policy().semantic))
    });
    explained.collect()
}

fn explanation(found: Explanation) -> MatchExplanation {
    let evidence = found.outcome.hits.first().map(|hit| Evidence::of(hit, &found.outcome));
    let rounded = |number: f32| (f64::from(number) * 10_000.0).round() / 10_000.0;
    let kind = |kind: Matched| match kind {
        Matched::Word => "word",
        Matched::Stem => "stem",
        Matched::Pair => "pair",
        Matched::Joined => "joined",
        Matched::Concept => "concept",
        Matched::Characters => "characters",
        Matched::Split => "split",
        Matched::Correction => "correction",
    };
    let terms = found.terms.into_iter().map(|term| TermExplanation {
        typed: term.typed,
        matched: term.matched,
        kind: kind(term.kind),
        fields: term
            .fields
            .into_iter()
            .map(|(field, weight)| FieldWeight { field, weight: rounded(weight) })
            .collect(),
        idf: rounded(term.idf),
        weight: rounded(term.weight),
        impact: rounded(term.impact),
        contribution: rounded(term.contribution),
    });
    MatchExplanation {
        ranker: if found.alike.is_some() { "lexical+vectors" } else { "lexical" },
        terms: terms.collect(),
        missing: found.missing,
        coverage: rounded(found.coverage),
        name_coverage: rounded(found.name_coverage),
        bonus: rounded(found.bonus),
        similarity: found.alike.map(|(alike, _)| rounded(alike)),
        similarity_contribution: found.alike.map(|(_, adds)| rounded(adds)),
        score: rounded(found.score),
        endpoint_score: None,
        named: found.exact,
        evidence,
    }
}
