//! The ledger of a session: what it did, and what that cost in tokens.
//!
//! Owns the counters and when they move. They are written now and then, with the ages of the session.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::context::Caller;
use super::usage::scope_of;
use super::{Error, Toolrack, blocking, lock};
use crate::core::assemble::Answer;
use crate::core::digest::Digest;
use crate::core::tokens;
use crate::core::usage::Counts;
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
    /// Likewise.
    told: Mutex<Told>,
}

/// Native calls that count already, so that none counts twice.
#[derive(Debug, Default)]
struct Told {
    /// The tools of those that went through the bridge since the last assembly, by the head of their digest.
    passed: Vec<u64>,
    /// The turn of a conversation whose calls were counted last.
    turn: Option<Digest>,
}

/// Calls through the bridge that are remembered until the next assembly; more than a turn has.
const MOST_PASSED: usize = 256;

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
    /// The part of `sent` that a separate listing takes.
    listing: u64,
    breaks_cache: bool,
}

impl AssemblyCost {
    pub(super) fn of(answer: &Answer) -> Self {
        Self {
            all: answer.tokens.all as u64,
            sent: answer.tokens.sent() as u64,
            listing: answer.tokens.sent().saturating_sub(answer.tokens.tools) as u64,
            breaks_cache: answer.cache.breaks,
        }
    }

    pub(super) fn breaks_cache(self) -> bool {
        self.breaks_cache
    }

    /// Counts one assembly of this cost.
    pub(super) fn add_to(self, counts: &mut Counts) {
        counts.assemblies += 1;
        counts.tokens_all += self.all;
        counts.tokens_sent += self.sent;
        counts.tokens_listing += self.listing;
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
            told: Mutex::default(),
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

    /// Notes a native call that went through the bridge, by the head of the tool's digest.
    pub(super) fn passed(&self, tool: u64) {
        let passed = &mut lock(&self.told).passed;
        if passed.len() < MOST_PASSED {
            passed.push(tool);
        }
    }

    /// Of the native calls that an assembly tells of, each with the head of the tool's digest, those that were not told before.
    /// `turn` tells turns of a conversation apart, which agents send again and again.
    pub(super) fn news(&self, mut called: Vec<(u64, u32)>, turn: Option<Digest>) -> Vec<u32> {
        let mut told = lock(&self.told);
        let passed = std::mem::take(&mut told.passed);
        if turn.is_some() && turn == told.turn {
            return Vec::new();
        }
        told.turn = turn;
        for tool in passed {
            if let Some(at) = called.iter().position(|(called, _)| *called == tool) {
                called.remove(at);
            }
        }
        called.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn answered(&self, tokens: usize) {
        self.tokens_answers.fetch_add(tokens as u64, Ordering::Relaxed);
    }
}

impl Toolrack {
    /// Notes what an answer costs that a model reads, in metrics, usage and where there is a session; `route` is `search`,
    /// `describe` or `bridge`.
    pub(super) async fn answered(&self, caller: &Caller, route: &'static str, tokens: usize) {
        telemetry::answer_tokens(route, tokens as u64);
        self.usage().answered(&scope_of(&caller.user, caller.project.as_ref()), tokens);
        let Some(key) = caller.session_key() else { return };
        // A count is not worth an answer: where the session cannot be read, the count is lost.
        if let Ok(held) = self.hold_session(&key).await {
            held.session.ledger().answered(tokens);
            self.keep_for_flush(&key, &held);
        }
    }

    /// As [`Self::answered`], for a text that was not counted yet. Without a session only metrics and usage want to know, and
    /// the answer does not wait for them.
    pub(super) async fn answered_text(&self, caller: &Caller, route: &'static str, text: String) {
        let count = counted(text);
        if caller.session.is_some() {
            if let Ok(tokens) = count.await {
                self.answered(caller, route, tokens).await;
            }
        } else {
            let (service, caller) = (self.clone(), caller.clone());
            drop(tokio::spawn(async move {
                if let Ok(tokens) = count.await {
                    service.answered(&caller, route, tokens).await;
                }
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
        let cost = AssemblyCost { all: 1_000, sent: 300, listing: 100, breaks_cache: false };
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

    #[test]
    fn no_native_call_is_news_twice() {
        let (ledger, turn) = (Ledger::default(), |name: &str| Some(Digest::of(name.as_bytes())));
        let calls = || vec![(11, 1), (11, 1), (22, 2)];
        ledger.passed(11);
        assert_eq!(ledger.news(calls(), turn("a")), [1, 2], "one of them went through the bridge");
        assert!(ledger.news(calls(), turn("a")).is_empty(), "the same conversation again");
        assert_eq!(ledger.news(vec![(22, 2)], turn("b")), [2]);
        // Without a conversation an agent tells each call once.
        assert_eq!(ledger.news(vec![(22, 2)], None), [2]);
        assert_eq!(ledger.news(vec![(22, 2)], None), [2]);
    }
}
