//! Ranking: which candidates match a query best, over several indexes searched as one.

use std::cell::RefCell;
use std::cmp::Ordering;

use super::directives::directives;
use super::index::Index;
use super::query::{ACTION_MARK, GROUP_MARK, Query, SERVICE_MARK, clip_query};
use super::run::{Account, Exact, Run, Tier, Totals, Trace, TraceEntry, share};
use super::spelling::{Counters, Near};

/// In [`Part::candidates`]: the document is not visible.
pub const NONE: u32 = u32::MAX;

/// Bonus for covering all of the query, and for covering it in the name (same source).
const COVERAGE_BONUS: f32 = 0.25;
const NAME_COVERAGE_BONUS: f32 = 0.25;
/// Most candidates for which a thread keeps its scratch memory.
const MAX_KEPT_CANDIDATES: usize = 100_000;

/// One index that takes part in a search. Rarity is counted over whole indexes, so that it can be read off their lists;
/// which words are known, what corrects them and what is found is decided by visible documents alone.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub index: &'a Index,
    /// Per document of the index: its candidate, or [`NONE`] when it must not show. A missing entry is [`NONE`].
    pub candidates: &'a [u32],
}

/// A candidate that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub candidate: u32,
    /// Comparable within one search only; 0 for a tool that is named by words that no index holds.
    pub score: f32,
    /// 0 to 1: share of the query's weight that the tool matches. Words that no visible tool holds weigh the most.
    pub coverage: f32,
    /// 0 to 1: the same share, for the tool's name and aliases alone.
    pub name_coverage: f32,
    /// The query names the tool.
    pub exact: bool,
    /// The query is the tool's name, with or without a server prefix.
    pub whole: bool,
    /// The query names a service (GitHub, Slack) of which the tool holds nothing.
    pub other_service: bool,
    /// The query asks for a change (create, send), and the tool does not lead with it or anything like it.
    pub other_action: bool,
}

/// The answer to one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Best first: tools whose name the query is, tools that it names, the rest. At most `limit`, and behind them the best
    /// tool for each name in the query that had no place among these.
    pub hits: Vec<Hit>,
    /// Content words of the query; 0 when it is empty or filler alone.
    pub terms: usize,
    /// Rarity of a word that one tool of these catalogs holds: what scores are measured in.
    pub rarest: f32,
}

/// Ranks the candidates `0..candidate_count` for `query`. Ties go to the smaller candidate.
pub fn search(parts: &[Part<'_>], candidate_count: usize, query: &str, limit: usize) -> Outcome {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH.with_borrow_mut(|scratch| scratch.search(parts, candidate_count, query, limit))
}

#[derive(Debug, Clone, Copy)]
struct Ranked {
    tier: Tier,
    score: f32,
    candidate: u32,
}

impl Ranked {
    /// Best first.
    fn order(&self, other: &Self) -> Ordering {
        other
            .tier
            .cmp(&self.tier)
            .then(other.score.total_cmp(&self.score))
            .then(self.candidate.cmp(&other.candidate))
    }
}

/// The parts of one candidate's score.
#[derive(Debug, Default)]
pub(super) struct Traced {
    pub(super) entries: Vec<TraceEntry>,
    /// Per unit of the query: its text, and whether it counts for coverage.
    pub(super) units: Vec<(String, bool)>,
    /// Weight of the whole query.
    pub(super) all: f32,
    pub(super) sum: f32,
    pub(super) bonus: f32,
    pub(super) coverage: f32,
    pub(super) name_coverage: f32,
    pub(super) exact: bool,
}

/// Searches as [`search`] does, and tells what the score of `candidate` is made of.
pub(super) fn trace(parts: &[Part<'_>], candidate_count: usize, query: &str, candidate: u32) -> Traced {
    let mut scratch = Scratch::default();
    let (totals, trace) = scratch.score(parts, candidate_count, query, Some(Trace::of(candidate)));
    let account = scratch.accounts.get(candidate as usize).copied().unwrap_or_default();
    let exact = scratch.exact.iter().filter(|exact| exact.candidate == candidate);
    let tier = exact.map(|exact| exact.tier).max().unwrap_or(Tier::Words);
    let hit = scratch.hit(Ranked { tier, score: account.score, candidate }, totals);
    let query = &scratch.query;
    Traced {
        entries: trace.map(|trace| trace.entries).unwrap_or_default(),
        units: query.units.iter().map(|unit| (query.text(unit).to_owned(), unit.cover > 0.0)).collect(),
        all: totals.all,
        sum: account.score,
        bonus: bonus(&account, totals),
        coverage: hit.coverage,
        name_coverage: hit.name_coverage,
        exact: hit.exact,
    }
}

/// Memory of one search, kept for the next on the same thread.
#[derive(Debug, Default)]
struct Scratch {
    query: Query,
    accounts: Vec<Account>,
    touched: Vec<u32>,
    exact: Vec<Exact>,
    best: Vec<Ranked>,
    counters: Counters,
    near: Vec<Near>,
}

impl Scratch {
    fn search(&mut self, parts: &[Part<'_>], candidate_count: usize, query: &str, limit: usize) -> Outcome {
        let (totals, _) = self.score(parts, candidate_count, query, None);
        self.rank(totals, limit);
        let hits = self.take_hits(totals, limit);
        Outcome { hits, terms: self.query.terms, rarest: totals.rarest }
    }

    /// Fills the accounts and the named candidates. The trace that was given comes back filled.
    fn score(
        &mut self,
        parts: &[Part<'_>],
        candidate_count: usize,
        query: &str,
        trace: Option<Trace>,
    ) -> (Totals, Option<Trace>) {
        self.reset();
        let directives = directives(clip_query(query));
        let mut words = std::mem::take(&mut self.query);
        words.read(directives.text, &directives.required);
        if self.accounts.len() < candidate_count {
            self.accounts.resize(candidate_count, Account::default());
        }
        let mut run = Run {
            parts,
            accounts: &mut self.accounts[..candidate_count],
            touched: &mut self.touched,
            postings: Vec::with_capacity(parts.len()),
            documents: parts.iter().map(|part| part.index.len()).sum(),
            stamp: 0,
            trace,
            totals: Totals::default(),
        };
        run.score(&words, &mut self.counters, &mut self.near);
        if let Some(server) = directives.server {
            run.restrict_to_group(server);
        }
        run.find_names(directives.text, &mut self.exact);
        let scored = (run.totals, run.trace);
        self.query = words;
        scored
    }

    /// Forgets the last search. Done before and not after one, so that a search that was cut short leaves nothing behind.
    fn reset(&mut self) {
        for &candidate in &self.touched {
            self.accounts[candidate as usize] = Account::default();
        }
        self.touched.clear();
        if self.accounts.len() > MAX_KEPT_CANDIDATES {
            self.accounts = Vec::new();
        }
    }

    /// Puts all named candidates and the `limit` best of the others into `best`, in order.
    fn rank(&mut self, totals: Totals, limit: usize) {
        self.best.clear();
        // A name that is asked of one server is not that of another's tool.
        let of_group = totals.required & GROUP_MARK;
        self.exact.retain(|exact| self.accounts[exact.candidate as usize].marks & of_group == of_group);
        // The best tier of each candidate comes first and stays.
        self.exact.sort_unstable_by(|a, b| {
            a.candidate.cmp(&b.candidate).then(b.tier.cmp(&a.tier)).then(a.token.cmp(&b.token))
        });
        for &candidate in self.touched.iter() {
            let account = &self.accounts[candidate as usize];
            if account.marks & totals.required != totals.required {
                continue;
            }
            let score = final_score(account, totals);
            let ranked = Ranked { tier: Tier::Words, score, candidate };
            let full = self.best.len() >= limit;
            if full && self.best.last().is_none_or(|last| last.order(&ranked).is_le()) {
                continue;
            }
            if !self.exact.is_empty()
                && self.exact.binary_search_by_key(&candidate, |exact| exact.candidate).is_ok()
            {
                continue;
            }
            if full {
                self.best.pop();
            }
            let place = self.best.partition_point(|other| other.order(&ranked).is_lt());
            self.best.insert(place, ranked);
        }
        for same in self.exact.chunk_by(|a, b| a.candidate == b.candidate) {
            let Exact { candidate, tier, .. } = same[0];
            let score = final_score(&self.accounts[candidate as usize], totals);
            self.best.push(Ranked { tier, score, candidate });
        }
        if !self.exact.is_empty() {
            self.best.sort_unstable_by(Ranked::order);
        }
    }

    /// The first `limit` of `best`, then what has a reserved place.
    fn take_hits(&mut self, totals: Totals, limit: usize) -> Vec<Hit> {
        let within = limit.min(self.best.len());
        let mut hits: Vec<Hit> = self.best[..within].iter().map(|ranked| self.hit(*ranked, totals)).collect();
        let (shown, rest) = self.best.split_at(within);
        if rest.is_empty() || self.exact.is_empty() {
            return hits;
        }
        let names = |ranked: &Ranked, token: usize| {
            let first = self.exact.partition_point(|exact| exact.candidate < ranked.candidate);
            let mut same = self.exact[first..].iter().take_while(|exact| exact.candidate == ranked.candidate);
            same.any(|exact| exact.token == token)
        };
        let mut tokens: Vec<usize> =
            self.exact.iter().filter(|exact| exact.tier == Tier::Named).map(|exact| exact.token).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens.retain(|&token| !shown.iter().any(|ranked| names(ranked, token)));
        for ranked in rest {
            let before = tokens.len();
            tokens.retain(|&token| !names(ranked, token));
            if tokens.len() < before {
                hits.push(self.hit(*ranked, totals));
            }
        }
        hits
    }

    fn hit(&self, ranked: Ranked, totals: Totals) -> Hit {
        let account = self.accounts.get(ranked.candidate as usize).copied().unwrap_or_default();
        let whole = ranked.tier >= Tier::WholePart;
        let lacks = |mark: u32| totals.asked & mark & !account.marks != 0;
        let share = |part: f32| if whole { 1.0 } else { share(part, totals.all) };
        Hit {
            candidate: ranked.candidate,
            score: ranked.score,
            coverage: share(account.cover),
            name_coverage: share(account.name_cover),
            exact: ranked.tier > Tier::Words,
            whole,
            other_service: lacks(SERVICE_MARK),
            other_action: lacks(ACTION_MARK),
        }
    }
}

fn final_score(account: &Account, totals: Totals) -> f32 {
    account.score * bonus(account, totals)
}

/// What a score is multiplied by for coverage, 1 or more.
fn bonus(account: &Account, totals: Totals) -> f32 {
    1.0 + COVERAGE_BONUS * share(account.cover, totals.known)
        + NAME_COVERAGE_BONUS * share(account.name_cover, totals.known)
}
