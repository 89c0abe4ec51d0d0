//! Ranking by the cosines of vectors that an endpoint made of the tools and of a query.
//!
//! A search has the vectors made of the tools that the words find best, at most `max_documents`, waits for them as long as it
//! may, and ranks all that have one. The others are made in the background meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::context::{Caller, Context};
use super::super::vectors::Source;
use super::super::{Error, GrantFields, Toolrack};
use super::comparison::{Comparing, Comparison, by_cosine};
use super::endpoint::{Endorsement, Endpoint, is_unasked, rules};
use super::{Asking, SearchMode};
use crate::core::digest::Digest;
use crate::core::endorsed::{Endorsed, by_endpoint};
use crate::core::grant::Catalogs;
use crate::core::lexical::Outcome;
use crate::core::matches::by_keywords;
use crate::core::policy::{Matcher, MatcherKind};
use crate::core::warning::Warning;
use crate::telemetry::warn_of;

/// Longest wait of [`Toolrack::complete_vectors`], a part of the measuring tool.
const COMPLETE_WITHIN: Duration = Duration::from_secs(60 * 60);

impl Toolrack {
    /// Ranks by the cosines of the tools' vectors and the queries'.
    pub(super) async fn rank_by_vectors(
        &self,
        asking: &Asking<'_>,
        endpoint: &Endpoint<'_>,
        words: &[Outcome],
    ) -> Result<Endorsement, &'static str> {
        let most = endpoint.matcher.max_documents as usize;
        let compared = self.compare(asking, endpoint, words, endpoint.ends, true).await?;
        if compared.orders.iter().flatten().any(Vec::is_empty) {
            return Err(compared.reason);
        }
        let found = words.iter().zip(&compared.orders).map(|(words, order)| match order {
            Some(order) => {
                by_endpoint(&pool(words, order, most), words, &rules(endpoint.matcher, asking.limit))
            }
            None => by_keywords(words),
        });
        let warnings = compared.warning.into_iter().collect();
        Ok(Endorsement { found: found.collect(), mode: SearchMode::Embedding, warnings })
    }

    /// What a reranker is sent may be chosen by vectors as well as by words: for each query the tools by cosine, or nothing where
    /// there is no such model, no need, or no answer, which is a warning. Waits for no vector but the queries'.
    pub(super) async fn first_stage(
        &self,
        asking: &Asking<'_>,
        endpoint: &Endpoint<'_>,
        words: &[Outcome],
        most: usize,
    ) -> (Vec<Vec<u32>>, Vec<Warning>) {
        let nothing = || vec![Vec::new(); asking.queries.len()];
        if endpoint.matcher.embedding_model.is_none() || asking.context.view().visible().nth(most).is_none() {
            return (nothing(), Vec::new());
        }
        // The ranking itself needs its share of the time.
        let now = Instant::now();
        let ends = now + endpoint.ends.saturating_duration_since(now) / 2;
        match self.compare(asking, endpoint, words, ends, false).await {
            Ok(compared) => {
                let ids = |order: Option<Vec<Endorsed>>| {
                    order.into_iter().flatten().take(most).map(|tool| tool.id).collect()
                };
                (compared.orders.into_iter().map(ids).collect(), compared.warning.into_iter().collect())
            }
            Err(reason) => {
                let detail = format!(
                    "the embedding model did not answer ({reason}); words alone chose what is ranked"
                );
                (nothing(), vec![Warning::new("first_stage_failed", detail)])
            }
        }
    }

    /// For each query the tools that have a vector, by cosine. `is_patient`: vectors that are wanted and not there are waited for.
    async fn compare(
        &self,
        asking: &Asking<'_>,
        endpoint: &Endpoint<'_>,
        words: &[Outcome],
        ends: Instant,
        is_patient: bool,
    ) -> Result<Comparison, &'static str> {
        let matcher = endpoint.matcher;
        let prefix = match matcher.kind {
            MatcherKind::Embedding => matcher.instruction.as_deref().unwrap_or_default(),
            MatcherKind::Rerank => "",
        };
        let text = |(query, words): (&String, &Outcome)| {
            let text = asking.text(query);
            (!is_unasked(&text, words)).then(|| format!("{prefix}{text}"))
        };
        let texts: Vec<Option<String>> = asking.queries.iter().zip(words).map(text).collect();
        if texts.iter().all(Option::is_none) {
            return Ok(Comparison { orders: vec![None; texts.len()], warning: None, reason: "none" });
        }
        let (context, source) = (asking.context, self.vector_source(endpoint).await);
        let comparing = Comparing { service: self, context, matcher, words, source, ends, is_patient };
        comparing.compare(&texts).await
    }

    /// Begins, at the first assembly of a view, to make the vectors that its searches will need. Not of an agent's live tools,
    /// which may be others each time and are never searched for the most part.
    pub(in crate::service) async fn prepare_vectors(&self, caller: &Caller, context: &Context) {
        let Some(matcher) =
            context.policy().matcher.as_ref().filter(|matcher| wants_vectors(matcher, context))
        else {
            return;
        };
        if matches!(context.entry.catalogs, Catalogs::Inline(_)) {
            return;
        }
        let begun = self.0.caches.prepared.entry(context.entry.id).or_insert(()).await;
        if !begun.is_fresh() {
            return;
        }
        let Ok(endpoint) = self.endpoint(caller, context, matcher) else { return };
        let source = self.vector_source(&endpoint).await;
        let (service, entry) = (self.clone(), Arc::clone(&context.entry));
        tokio::spawn(async move {
            match service.view_vectors(&source.space, &entry).await {
                Ok(vectors) => service.fill(&source, &entry, &vectors, &vectors.missing(), false),
                Err(error) => warn_of!(error, "stored vectors cannot be read"),
            }
        });
    }

    /// Makes all vectors that the caller's tools lack under a matcher that compares them; answers how many.
    ///
    /// # Errors
    /// The database, or an internal error that holds the endpoint's fault.
    pub async fn complete_vectors(&self, caller: &Caller) -> Result<usize, Error> {
        let context = self.context(caller, &GrantFields::default()).await?;
        let Some(matcher) =
            context.policy().matcher.as_ref().filter(|matcher| wants_vectors(matcher, &context))
        else {
            return Ok(0);
        };
        let endpoint = self.endpoint(caller, &context, matcher).map_err(Error::internal)?;
        let source = self.vector_source(&endpoint).await;
        let mut made = 0;
        // A second time where the model turned out to be another.
        for _ in 0..2 {
            let vectors = self.view_vectors(&source.space, &context.entry).await?;
            let missing = vectors.missing();
            self.fill(&source, &context.entry, &vectors, &missing, false);
            let texts: Vec<Digest> = missing.iter().map(|at| vectors.tools[*at].1).collect();
            source.space.settled(&texts, true, Instant::now() + COMPLETE_WITHIN).await;
            if let Some(fault) = source.space.outlook([].iter()).fault {
                return Err(Error::internal(fault));
            }
            made += missing.len() - vectors.missing().len();
        }
        Ok(made)
    }

    async fn vector_source(&self, endpoint: &Endpoint<'_>) -> Source {
        self.source(endpoint.owner.clone(), endpoint.tenant, endpoint.vector_settings()).await
    }
}

/// Whether searches under this matcher compare vectors.
fn wants_vectors(matcher: &Matcher, context: &Context) -> bool {
    let is_large = || context.view().visible().nth(matcher.max_documents as usize).is_some();
    matcher.kind == MatcherKind::Embedding || (matcher.embedding_model.is_some() && is_large())
}

/// What both orders are joined over: the best of each in turn, at most `most` tools, by cosine.
fn pool(words: &Outcome, order: &[Endorsed], most: usize) -> Vec<Endorsed> {
    if order.len() <= most {
        return order.to_vec();
    }
    let by_id: HashMap<u32, &Endorsed> = order.iter().map(|tool| (tool.id, tool)).collect();
    let by_words = words.hits.iter().filter_map(|hit| by_id.get(&hit.candidate).copied());
    let mut by_words = by_words.fuse();
    let in_turn = order.iter().flat_map(|tool| [Some(tool), by_words.next()]).flatten();
    let mut known = HashSet::new();
    let mut pool: Vec<Endorsed> = in_turn.filter(|tool| known.insert(tool.id)).take(most).copied().collect();
    pool.sort_by(by_cosine);
    pool
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lexical::Hit;

    #[test]
    fn a_pool_holds_the_best_of_both_orders_and_no_more() {
        let tool = |id: u32| Endorsed { id, score: 0.0, raw: -f64::from(id) };
        let hit = |candidate| Hit {
            candidate,
            score: 1.0,
            words: 1.0,
            coverage: 1.0,
            name_coverage: 0.0,
            exact: false,
            whole: false,
            other_service: false,
            other_action: false,
            alike: None,
        };
        let order: Vec<Endorsed> = (0..10).map(tool).collect();
        let words = Outcome { hits: [9, 0, 8, 77].map(hit).to_vec(), ..Outcome::default() };
        let ids = |most| pool(&words, &order, most).iter().map(|tool| tool.id).collect::<Vec<_>>();
        assert_eq!(ids(1), [0]);
        assert_eq!(ids(2), [0, 9]);
        assert_eq!(ids(5), [0, 1, 2, 8, 9]);
        assert_eq!(ids(20).len(), 10);
    }
}
