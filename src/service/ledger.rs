//! The ledger of a session: what it did, and what that cost in tokens.
//!
//! Owns the counters and when they move. They are written now and then, with the ages of the session.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Error, Toolrack, blocking};
use crate::core::assemble::Answer;
use crate::core::id::SessionKey;
use crate::core::tokens;
use crate::telemetry;

/// Longest text that is counted where it stands, in bytes: about 0.3 ms.
const INLINE_BYTES: usize = 16 * 1024;

/// Counters of a session, written now and then.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    assemblies: AtomicU64,
    searches: AtomicU64,
    describes: AtomicU64,
    calls: AtomicU64,
    tokens_all: AtomicU64,
    tokens_sent: AtomicU64,
    tokens_answers: AtomicU64,
    cache_breaks: AtomicU64,
    /// Searches in a row that found nothing; forgotten when the session leaves the memory.
    misses: AtomicU64,
}

/// What a session did and what that cost, since it was made. Tokens are sums of exact o200k counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct LedgerDocument {
    pub assemblies: u64,
    pub searches: u64,
    pub describes: u64,
    pub calls: u64,
    /// What all tools would have cost: `tokens.all` of every assembly. An assembly stands for one model call.
    pub tokens_all: u64,
    /// What was sent in their place: `tokens.tools` of every assembly, and `tokens.listing` where it is separate.
    pub tokens_sent: u64,
    /// What there was to read for the model: of a search its `answer` where a `form` was asked for, else its `results`
    /// without `explain`; of a description its `tools`; `tokens` of the bridge's responses. Each answer counts once, also
    /// where it stays in the conversation.
    pub tokens_answers: u64,
    /// `tokens_all` less `tokens_sent` and `tokens_answers`. Negative where more was spent than saved.
    pub saved: i64,
    /// Assemblies with `cache.break`.
    pub cache_breaks: u64,
}

/// What a request does, for the ledger.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deed {
    Assembly,
    Search,
    Describe,
    Call,
    /// A change by hand, which the ledger does not count.
    Change,
}

/// What one assembly costs, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AssemblyCost {
    all: u64,
    sent: u64,
    breaks_cache: bool,
}

impl AssemblyCost {
    pub(super) fn of(answer: &Answer) -> Self {
        Self {
            all: answer.tokens.all as u64,
            sent: answer.tokens.sent() as u64,
            breaks_cache: answer.cache.breaks,
        }
    }

    /// Adds the cost to the metrics.
    pub(super) fn record(self) {
        telemetry::assembly_tokens(self.all, self.sent);
    }
}

impl Ledger {
    pub(super) fn from_document(document: LedgerDocument) -> Self {
        Self {
            assemblies: document.assemblies.into(),
            searches: document.searches.into(),
            describes: document.describes.into(),
            calls: document.calls.into(),
            tokens_all: document.tokens_all.into(),
            tokens_sent: document.tokens_sent.into(),
            tokens_answers: document.tokens_answers.into(),
            cache_breaks: document.cache_breaks.into(),
            misses: AtomicU64::new(0),
        }
    }

    pub(super) fn document(&self) -> LedgerDocument {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (all, sent) = (read(&self.tokens_all), read(&self.tokens_sent));
        let answers = read(&self.tokens_answers);
        LedgerDocument {
            assemblies: read(&self.assemblies),
            searches: read(&self.searches),
            describes: read(&self.describes),
            calls: read(&self.calls),
            tokens_all: all,
            tokens_sent: sent,
            tokens_answers: answers,
            saved: (all as i64).saturating_sub_unsigned(sent).saturating_sub_unsigned(answers),
            cache_breaks: read(&self.cache_breaks),
        }
    }

    /// Notes how a search went; how many in a row have missed now.
    pub(super) fn missed(&self, missed: bool) -> u64 {
        if missed {
            return self.misses.fetch_add(1, Ordering::Relaxed) + 1;
        }
        self.misses.store(0, Ordering::Relaxed);
        0
    }

    pub(super) fn count(&self, deed: Deed, cost: Option<AssemblyCost>) {
        if let Some(cost) = cost {
            self.tokens_all.fetch_add(cost.all, Ordering::Relaxed);
            self.tokens_sent.fetch_add(cost.sent, Ordering::Relaxed);
            self.cache_breaks.fetch_add(cost.breaks_cache.into(), Ordering::Relaxed);
        }
        if matches!(deed, Deed::Describe | Deed::Call) {
            self.misses.store(0, Ordering::Relaxed);
        }
        let counter = match deed {
            Deed::Assembly => &self.assemblies,
            Deed::Search => &self.searches,
            Deed::Describe => &self.describes,
            Deed::Call => &self.calls,
            Deed::Change => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, tokens: usize) {
        self.tokens_answers.fetch_add(tokens as u64, Ordering::Relaxed);
    }
}

impl Toolrack {
    /// Notes what an answer costs that a model reads, in metrics and where there is a session; `route` is `search`,
    /// `describe` or `bridge`.
    pub(super) async fn answered(&self, session: Option<&SessionKey>, route: &'static str, tokens: usize) {
        telemetry::answer_tokens(route, tokens as u64);
        let Some(key) = session else { return };
        // A count is not worth an answer: where the session cannot be read, the count is lost.
        if let Ok(held) = self.hold_session(key).await {
            held.session.ledger().answered(tokens);
            self.keep_for_flush(key, &held);
        }
    }

    /// As [`Self::answered`], for a text that was not counted yet. Without a session only the metrics want to know, and the
    /// answer does not wait for them.
    pub(super) async fn answered_text(
        &self,
        session: Option<&SessionKey>,
        route: &'static str,
        text: String,
    ) {
        let count = counted(text);
        if session.is_some() {
            if let Ok(tokens) = count.await {
                self.answered(session, route, tokens).await;
            }
        } else {
            drop(tokio::spawn(async move {
                count.await.map(|tokens| telemetry::answer_tokens(route, tokens as u64))
            }));
        }
    }
}

/// The tokens of a text of any size.
async fn counted(text: String) -> Result<usize, Error> {
    if text.len() <= INLINE_BYTES {
        Ok(tokens::count(&text))
    } else {
        blocking(move || tokens::count(&text)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_reads_back_what_it_wrote() {
        let ledger = Ledger::default();
        let cost = AssemblyCost { all: 1_000, sent: 300, breaks_cache: false };
        ledger.count(Deed::Assembly, Some(cost));
        ledger.count(Deed::Assembly, Some(AssemblyCost { breaks_cache: true, ..cost }));
        ledger.count(Deed::Search, None);
        ledger.count(Deed::Change, None);
        ledger.answered(1_500);
        let document = ledger.document();
        let expected = LedgerDocument {
            assemblies: 2,
            searches: 1,
            tokens_all: 2_000,
            tokens_sent: 600,
            tokens_answers: 1_500,
            saved: -100,
            cache_breaks: 1,
            ..LedgerDocument::default()
        };
        assert_eq!(document, expected);
        let text = serde_json::to_string(&document).unwrap();
        let read = Ledger::from_document(serde_json::from_str(&text).unwrap());
        assert_eq!(read.document(), document);
        // As an earlier version wrote it.
        let old: LedgerDocument =
            serde_json::from_str(r#"{"assemblies":2,"searches":2,"describes":1,"calls":1}"#).unwrap();
        assert_eq!((old.assemblies, old.tokens_all, old.saved), (2, 0, 0));
    }
}
