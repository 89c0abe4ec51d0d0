//! Ranking by the endpoint of the merged config: what is asked of it, and what it is sent.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::super::Toolrack;
use super::super::context::{Caller, Context, ViewEntry};
use super::super::heads::Head;
use super::super::secrets::{Credentials, request_headers};
use super::{Asking, SearchMode};
use crate::core::digest::Digest;
use crate::core::endorsed::{Endorsed, EndpointRules, by_endpoint};
use crate::core::id::Scope;
use crate::core::lexical::Outcome;
use crate::core::matches::{Found, by_keywords};
use crate::core::policy::{Dialect, DialectChoice, Fusion, Matcher, MatcherKind};
use crate::core::tool_text::endpoint_text;
use crate::core::warning::Warning;
use crate::rerank::{RerankRequest, check_url};

/// One place in so many is kept for groups that have no tool among the best.
const GROUP_SHARE: usize = 4;

/// Of the time of a request a tenth is kept for what comes after the endpoint.
const MARGIN_PARTS: u32 = 10;

/// What a rerank endpoint that takes one is told, where the config does not say it.
const INSTRUCTION: &str = "Given a user request to an AI agent, retrieve the tools (functions) whose description says \
                           they can carry out the request.";

/// What an endpoint made of the queries of one search.
#[derive(Debug)]
pub(super) struct Endorsement {
    pub found: Vec<Found>,
    pub mode: SearchMode,
    /// What it could not do.
    pub warnings: Vec<Warning>,
}

/// The endpoint of one request, ready to be asked.
pub(in crate::service) struct Endpoint<'a> {
    pub matcher: &'a Matcher,
    /// Whose config names it.
    pub owner: Scope,
    pub tenant: Digest,
    credentials: Credentials,
    /// When the search has to go on without it.
    latest: Instant,
    /// When its time is over.
    pub ends: Instant,
}

impl Endpoint<'_> {
    /// Its time begins now.
    pub(super) fn begin(self) -> Self {
        Self { ends: self.latest.min(Instant::now() + deadline(self.matcher)), ..self }
    }

    /// The request but for query and documents.
    pub(super) fn settings(&self) -> RerankRequest {
        settings(self.matcher, &self.credentials)
    }

    /// The request for vectors but for the texts.
    pub(super) fn vector_settings(&self) -> RerankRequest {
        vector_settings(self.matcher, &self.credentials)
    }
}

impl Toolrack {
    /// The endpoint of a request's config, where it may be called.
    pub(super) fn endpoint<'a>(
        &self,
        caller: &Caller,
        context: &Context,
        matcher: &'a Matcher,
    ) -> Result<Endpoint<'a>, &'static str> {
        check_url(&matcher.endpoint, &self.0.addresses).map_err(|_| "blocked_address")?;
        let (owner, head) = context.layer(caller, matcher.layer);
        let credentials = self.credentials(&owner, head, matcher)?;
        // A request that takes too long fails as a whole; there must be time left to rank by words.
        let most = self.0.limits.request_timeout;
        let now = Instant::now();
        let latest = now + (most - most / MARGIN_PARTS);
        let ends = latest.min(now + deadline(matcher));
        Ok(Endpoint { matcher, owner, tenant: tenant(caller, head), credentials, latest, ends })
    }

    /// As [`document`], made once.
    async fn document(&self, entry: &ViewEntry, id: u32) -> String {
        let key = (entry.id, id);
        if let Some(document) = self.0.caches.documents.get(&key).await {
            return document.as_ref().to_owned();
        }
        let document = document(entry, id);
        self.0.caches.documents.insert(key, document.as_str().into()).await;
        document
    }

    pub(super) async fn rank_by_endpoint(
        &self,
        asking: &Asking<'_>,
        endpoint: &Endpoint<'_>,
        words: &[Outcome],
    ) -> Result<Endorsement, &'static str> {
        match endpoint.matcher.kind {
            MatcherKind::Rerank => self.rank_by_reranker(asking, endpoint, words).await,
            MatcherKind::Embedding => self.rank_by_vectors(asking, endpoint, words).await,
        }
    }

    async fn rank_by_reranker(
        &self,
        asking: &Asking<'_>,
        endpoint: &Endpoint<'_>,
        words: &[Outcome],
    ) -> Result<Endorsement, &'static str> {
        let &Asking { context, queries, limit, .. } = asking;
        let matcher = endpoint.matcher;
        let most = matcher.max_documents as usize;
        let fuse = matcher.fusion != Fusion::Off;
        let (meanings, warnings) = self.first_stage(asking, endpoint, words, most).await;
        let asked = queries.iter().zip(words).zip(&meanings).map(|((query, words), meaning)| async move {
            let candidates = candidates(context, words, meaning, most);
            let text = asking.text(query);
            if candidates.is_empty() || is_unasked(&text, words) {
                return Ok(by_keywords(words));
            }
            let mut documents = Vec::with_capacity(candidates.len());
            for id in &candidates {
                documents.push(self.document(&context.entry, *id).await);
            }
            let request = RerankRequest {
                query: text,
                documents,
                // Both orders are joined over all that was sent.
                top_n: if fuse { candidates.len() } else { (matcher.top_n as usize).max(limit) },
                ..endpoint.settings()
            };
            let ranking = self.0.reranker.rerank(endpoint.tenant, request, endpoint.ends).await;
            let ranking = ranking.map_err(|fault| fault.reason())?;
            let ranked: Vec<Endorsed> = ranking
                .rows
                .iter()
                .filter_map(|row| {
                    Some(Endorsed { id: *candidates.get(row.index)?, score: row.score, raw: row.raw })
                })
                .collect();
            Ok(by_endpoint(&ranked, words, &rules(matcher, limit)))
        });
        let found = join_all(asked).await.into_iter().collect::<Result<_, &str>>()?;
        Ok(Endorsement { found, mode: SearchMode::Rerank, warnings })
    }
}

/// Whether an endpoint is not asked about a query: one that is blank, and a question about all tools, which the groups answer.
pub(super) fn is_unasked(text: &str, words: &Outcome) -> bool {
    words.asks_for_all || text.trim().is_empty()
}

/// How the ranking of an endpoint becomes matches.
pub(super) fn rules(matcher: &Matcher, limit: usize) -> EndpointRules {
    EndpointRules { min_score: matcher.min_score, limit, fuse: matcher.fusion != Fusion::Off }
}

/// The requests to all endpoints of a matcher but for query and documents: its own, and that of the embedding model beside a
/// reranker. Whatever is told, tried or forgotten about a matcher's endpoint is so about each of them.
pub(in crate::service) fn endpoints(matcher: &Matcher, credentials: &Credentials) -> Vec<RerankRequest> {
    let mut endpoints = vec![settings(matcher, credentials)];
    if has_first_stage(matcher) {
        endpoints.push(vector_settings(matcher, credentials));
    }
    endpoints
}

/// Whether an embedding model stands beside a reranker.
pub(in crate::service) fn has_first_stage(matcher: &Matcher) -> bool {
    matcher.kind == MatcherKind::Rerank && matcher.embedding_model.is_some()
}

/// The request for vectors: of the endpoint itself, or of the embedding model beside a reranker. Both are the same host and
/// key; what a config adds to the body is for the reranker.
pub(in crate::service) fn vector_settings(matcher: &Matcher, credentials: &Credentials) -> RerankRequest {
    let own = settings(matcher, credentials);
    let request = match (matcher.kind, &matcher.embedding_model) {
        (MatcherKind::Rerank, Some(model)) => RerankRequest {
            endpoint: matcher.embedding_endpoint.clone().unwrap_or_else(|| own.endpoint.clone()),
            model: Some(model.clone()),
            extra_body: serde_json::Map::new(),
            omit_model: false,
            ..own
        },
        _ => own,
    };
    RerankRequest { dialect: DialectChoice::Fixed(Dialect::Openai), instruction: None, ..request }
}

/// The request to an endpoint but for query and documents.
pub(in crate::service) fn settings(matcher: &Matcher, credentials: &Credentials) -> RerankRequest {
    let plain_header = matcher.auth_header.eq_ignore_ascii_case("authorization");
    let (dialect, usual) = match matcher.kind {
        MatcherKind::Rerank => (matcher.dialect, Some(INSTRUCTION)),
        MatcherKind::Embedding => (DialectChoice::Fixed(Dialect::Openai), None),
    };
    RerankRequest {
        dialect,
        model: matcher.model.clone(),
        omit_model: matcher.omit_model,
        api_key: credentials.api_key.clone(),
        // Left to the dialect where nothing else was set.
        auth_header: (!plain_header).then(|| matcher.auth_header.clone()),
        auth_scheme: matcher.auth_scheme.clone(),
        extra_headers: request_headers(credentials),
        extra_body: matcher.extra_body.clone(),
        hedge_after: matcher.hedge_ms.map(|wait| Duration::from_millis(wait.into())),
        instruction: matcher.instruction.clone().or(usual.map(str::to_owned)),
        ..RerankRequest::new(matcher.endpoint.clone(), String::new(), Vec::new(), deadline(matcher))
    }
}

fn deadline(matcher: &Matcher) -> Duration {
    Duration::from_millis(u64::from(matcher.timeout_ms))
}

/// Whose answers are kept apart: the user in the project, before and after each time that the endpoint of a scope is to be tried
/// again. So an answer that was under way then is never found, in whichever process it lands.
pub(in crate::service) fn tenant(caller: &Caller, owner: &Head) -> Digest {
    let project = caller.project.as_ref().map(ToString::to_string).unwrap_or_default();
    Digest::of(format!("{}\n{project}\n{}", caller.user, owner.row.renewals).as_bytes())
}

/// The tools that are sent: all that are visible, or where there are more than `most` the best of the keyword ranking and, in
/// turn with it, of the ranking by meaning, with room for the best tool of each group, so that a paraphrase without shared
/// words still has its chance.
pub(super) fn candidates(context: &Context, words: &Outcome, meaning: &[u32], most: usize) -> Vec<u32> {
    let view = context.view();
    let by_words: Vec<u32> = words.hits.iter().map(|hit| hit.candidate).collect();
    let longer = by_words.len().max(meaning.len());
    let in_turn = (0..longer).flat_map(|at| [by_words.get(at), meaning.get(at)]).flatten().copied();
    let mut known = HashSet::new();
    let all: Vec<u32> =
        in_turn.chain(view.visible().map(|(id, _)| id)).filter(|id| known.insert(*id)).collect();
    if all.len() <= most {
        return all;
    }
    let group = |id: u32| view.get(id).map(|tool| tool.group);
    let sure = most - most / GROUP_SHARE;
    let mut chosen: Vec<u32> = all[..sure].to_vec();
    let mut groups: HashSet<_> = chosen.iter().map(|id| group(*id)).collect();
    let firsts: Vec<u32> =
        all[sure..].iter().copied().filter(|id| groups.insert(group(*id))).take(most - sure).collect();
    let taken: HashSet<u32> = firsts.iter().copied().collect();
    chosen.extend(firsts);
    chosen.extend(all[sure..].iter().copied().filter(|id| !taken.contains(id)).take(most - chosen.len()));
    chosen
}

/// A tool's text as it is sent.
pub(in crate::service) fn document(entry: &ViewEntry, id: u32) -> String {
    let view = &entry.view;
    let Some(tool) = view.get(id) else { return String::new() };
    endpoint_text(&tool.tool.tool, tool.stored_name(), view.group(tool), entry.aliases.of(id))
}
