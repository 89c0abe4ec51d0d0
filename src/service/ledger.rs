//! The ledger of a session: what it did, and what that cost in tokens.
//!
//! Owns the counters and when they move. What was added to them is written now and then, with the ages of the session, so that
//! several processes count one session.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::context::Caller;
use super::session::Session;
use super::usage::scope_of;
use super::{Error, Toolrack, blocking, lock};
use crate::core::assemble::Answer;
use crate::core::cache::CacheReason;
use crate::core::digest::Digest;
use crate::core::id::SessionKey;
use crate::core::tokens;
use crate::core::usage::Counts;
use crate::store::{SessionCounts, SessionRow};
use crate::telemetry;

/// Longest text that is counted where it stands, in bytes: about 0.3 ms.
const INLINE_BYTES: usize = 16 * 1024;

/// Counters of a session, written now and then.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// As it was read.
    ground: SessionCounts,
    added: Counters,
    /// What the store has of `added`.
    stored: Mutex<SessionCounts>,
    /// Searches in a row that found nothing; forgotten when the session leaves the memory.
    misses: AtomicU64,
    /// Likewise.
    told: Mutex<Told>,
}

/// What this process counted.
#[derive(Debug, Default)]
struct Counters {
    assemblies: AtomicU64,
    searches: AtomicU64,
    describes: AtomicU64,
    calls: AtomicU64,
    tokens_all: AtomicU64,
    tokens_sent: AtomicU64,
    tokens_answers: AtomicU64,
    cache_breaks: AtomicU64,
}

impl Counters {
    fn read(&self) -> SessionCounts {
        let read = |counter: &AtomicU64| i64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        SessionCounts {
            assemblies: read(&self.assemblies),
            searches: read(&self.searches),
            describes: read(&self.describes),
            calls: read(&self.calls),
            tokens_all: read(&self.tokens_all),
            tokens_sent: read(&self.tokens_sent),
            tokens_answers: read(&self.tokens_answers),
            cache_breaks: read(&self.cache_breaks),
        }
    }
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
    /// Assemblies with `cache.break`, but for those of an epoch: there the cache was cold anyway.
    pub cache_breaks: u64,
}

impl LedgerDocument {
    fn of(counts: SessionCounts) -> Self {
        let sum = |count: i64| u64::try_from(count).unwrap_or_default();
        let (all, sent, answers) = (counts.tokens_all, counts.tokens_sent, counts.tokens_answers);
        Self {
            assemblies: sum(counts.assemblies),
            searches: sum(counts.searches),
            describes: sum(counts.describes),
            calls: sum(counts.calls),
            tokens_all: sum(all),
            tokens_sent: sum(sent),
            tokens_answers: sum(answers),
            saved: all.saturating_sub(sent).saturating_sub(answers),
            cache_breaks: sum(counts.cache_breaks),
        }
    }

    fn counts(self) -> SessionCounts {
        let count = |sum: u64| i64::try_from(sum).unwrap_or(i64::MAX);
        SessionCounts {
            assemblies: count(self.assemblies),
            searches: count(self.searches),
            describes: count(self.describes),
            calls: count(self.calls),
            tokens_all: count(self.tokens_all),
            tokens_sent: count(self.tokens_sent),
            tokens_answers: count(self.tokens_answers),
            cache_breaks: count(self.cache_breaks),
        }
    }
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
            // The cache was cold at an epoch: nothing was lost.
            breaks_cache: answer.cache.breaks && answer.cache.reason != CacheReason::Epoch,
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
    /// Of a stored session: what an earlier version wrote, and the counts that are added to that.
    pub(super) fn of(ledger: &str, counts: SessionCounts) -> Self {
        let earlier: LedgerDocument = serde_json::from_str(ledger).unwrap_or_default();
        Self { ground: earlier.counts().plus(counts), ..Self::default() }
    }

    /// Takes over what only the memory has of an earlier one of the same session.
    pub(super) fn go_on(&mut self, earlier: &Self) {
        self.told = Mutex::new(std::mem::take(&mut *lock(&earlier.told)));
        self.misses = earlier.misses.load(Ordering::Relaxed).into();
    }

    pub(super) fn document(&self) -> LedgerDocument {
        LedgerDocument::of(self.ground.plus(self.added.read()))
    }

    /// With what other processes have stored since this was read.
    fn document_on(&self, row: &SessionRow) -> LedgerDocument {
        let unstored = self.added.read().minus(*lock(&self.stored));
        LedgerDocument::of(Self::of(&row.ledger, row.counts).ground.plus(unstored))
    }

    /// What the store does not have yet; it counts as stored from now on.
    pub(super) fn take_unstored(&self) -> SessionCounts {
        let mut stored = lock(&self.stored);
        let added = self.added.read();
        added.minus(std::mem::replace(&mut *stored, added))
    }

    /// Takes back what was not stored after all.
    pub(super) fn give_back(&self, counts: SessionCounts) {
        let mut stored = lock(&self.stored);
        *stored = stored.minus(counts);
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
            self.added.tokens_all.fetch_add(cost.all, Ordering::Relaxed);
            self.added.tokens_sent.fetch_add(cost.sent, Ordering::Relaxed);
            self.added.cache_breaks.fetch_add(cost.breaks_cache.into(), Ordering::Relaxed);
        }
        if matches!(deed, Deed::Describe | Deed::Call) {
            self.misses.store(0, Ordering::Relaxed);
        }
        let counter = match deed {
            Deed::Assembly => &self.added.assemblies,
            Deed::Search => &self.added.searches,
            Deed::Describe => &self.added.describes,
            Deed::Call => &self.added.calls,
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
        self.added.tokens_answers.fetch_add(tokens as u64, Ordering::Relaxed);
    }
}

impl Toolrack {
    /// What a session did and cost, in all processes; what others counted in the last seconds is not there yet.
    pub(super) async fn session_ledger(
        &self,
        key: &SessionKey,
        session: &Session,
    ) -> Result<LedgerDocument, Error> {
        let row = if self.0.store.is_shared() && session.is_stored() {
            self.read_or_remember(Some(None), async { Ok(self.0.store.session(key).await?) }).await?
        } else {
            None
        };
        let ledger = session.ledger();
        Ok(row.map_or_else(|| ledger.document(), |row| ledger.document_on(&row)))
    }

    /// Notes what an answer costs that a model reads, in metrics, usage and where there is a session; `route` is `search`,
    /// `describe` or `bridge`.
    pub(super) async fn answered(&self, caller: &Caller, route: &'static str, tokens: usize) {
        telemetry::answer_tokens(route, tokens as u64);
        self.usage().answered(&scope_of(&caller.user, caller.project.as_ref()), tokens);
        let Some(key) = caller.session_key() else { return };
        // A count is not worth an answer: where the session cannot be read, the count is lost.
        if let Ok(held) = self.hold_known_session(&key).await {
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
        let counts = ledger.take_unstored();
        assert_eq!(ledger.take_unstored(), SessionCounts::default(), "it was taken");
        assert_eq!(Ledger::of("{}", counts).document(), document);
        // What could not be stored goes with what comes after it.
        ledger.give_back(counts);
        ledger.count(Deed::Call, None);
        assert_eq!(ledger.take_unstored(), SessionCounts { calls: 1, ..counts });
        // As an earlier version wrote it.
        let old = r#"{"assemblies":2,"searches":2,"describes":1,"calls":1,"saved":-7}"#;
        let old = Ledger::of(old, counts).document();
        assert_eq!((old.assemblies, old.tokens_all, old.saved), (4, 2_000, -100));
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
