//! Ranking: which candidates match a query best, over several indexes searched as one.

use std::cell::RefCell;
use std::cmp::Ordering;

use super::addresses::name_addresses;
use super::directives::directives;
use super::fusion::{Fusion, Spread};
use super::index::Index;
use super::query::{ACTION_MARK, GROUP_MARK, Query, Repair, SERVICE_MARK, clip_query};
use super::run::{Account, Exact, Run, Tier, Totals, Trace, TraceEntry, share};
use super::spelling::{Counters, Near};

/// In [`Part::candidates`]: the document is not visible.
pub const NONE: u32 = u32::MAX;

/// Bonus for covering all of the query, and for covering it in the name (same source).
const COVERAGE_BONUS: f32 = 0.25;
const NAME_COVERAGE_BONUS: f32 = 0.25;
/// Bonus for a name of which the query says all: `get_zones` rather than `get_zones_settings`. It only decides between near equals.
const NAME_FIT_BONUS: f32 = 0.1;
/// What a tool that changes something keeps of its score when the query asks for no change: who asks for "my calendar" wants to see it
/// (from .6 to .9 better than 1 on the development sets).
const UNASKED_FACTOR: f32 = 0.75;
/// What a tool with stuffed texts keeps of its score (`docs/security.md` has what that does to attacks, and to retrieval).
const STUFFED_FACTOR: f32 = 0.3;
/// Candidates whose likeness is made exact, at least; and about how many tell its mean and deviation.
const REFINED: usize = 256;
const SAMPLE: usize = 256;
/// What likeness leaves of the words' score at least.
const LEAST_OF_WORDS: f32 = 0.05;
/// Most candidates for which a thread keeps its scratch memory.
const MAX_KEPT_CANDIDATES: usize = 100_000;

/// One index that takes part in a search. Which words are known, how rare they are, what corrects them and what is found is
/// decided by visible documents alone; only how long a text is counts beside all texts of its index.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub index: &'a Index,
    /// Per document of the index: its candidate, or [`NONE`] when it must not show. A missing entry is [`NONE`].
    pub candidates: &'a [u32],
}

/// How like a query the candidates are in meaning: a second opinion beside the words.
pub trait Likeness {
    /// Writes to each visible candidate, by number, an estimate of how like the query it is; [`UNSEEN`] to the others.
    /// `words` are the query's, with what each counts; `text` is the query itself, where it is English. False when nothing
    /// can be said about them.
    fn estimate(&mut self, words: &[(&str, f32)], text: Option<&str>, alike: &mut [f32]) -> bool;
    /// Replaces the estimates of the `wanted` candidates by what is so.
    fn refine(&mut self, wanted: &[bool], alike: &mut [f32]);
}

/// Likeness of a candidate that is not visible.
pub const UNSEEN: f32 = f32::NEG_INFINITY;

/// A candidate that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub candidate: u32,
    /// Comparable within one search only; 0 for a tool that is named by words that no index holds.
    pub score: f32,
    /// The part of the score that is the words'.
    pub words: f32,
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
    /// -1 to 1: how like the query the tool is in meaning, where that was asked.
    pub alike: Option<f32>,
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
    /// Visible documents that were searched.
    pub tools: usize,
    /// What the query demands (`+term`, `server:`) no tool has, so that the hits are without it.
    pub unmet: Option<Unmet>,
    /// The query asks what tools there are.
    pub asks_for_all: bool,
}

/// A demand of a query that no visible tool meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// There is no group of this name.
    Group(String),
    /// No tool, or none of the group, holds all of these words.
    Terms(Vec<String>),
    /// No tool of this group holds anything of the rest.
    InGroup(String),
}

/// Ranks the candidates `0..candidate_count` for `query`. Ties go to the smaller candidate.
pub fn search(parts: &[Part<'_>], candidate_count: usize, query: &str, limit: usize) -> Outcome {
    search_with(parts, candidate_count, query, limit, None)
}

/// The same with a second opinion, where there is one.
pub fn search_with(
    parts: &[Part<'_>],
    candidate_count: usize,
    query: &str,
    limit: usize,
    likeness: Option<&mut dyn Likeness>,
) -> Outcome {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH.with_borrow_mut(|scratch| scratch.search(parts, candidate_count, query, limit, likeness))
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
    pub(super) whole: bool,
    /// Likeness, and what it adds.
    pub(super) alike: Option<(f32, f32)>,
    /// The candidate as a search has it, alone.
    pub(super) outcome: Outcome,
}

/// Searches as [`search`] does, and tells what the score of `candidate` is made of.
pub(super) fn trace(
    parts: &[Part<'_>],
    candidate_count: usize,
    query: &str,
    candidate: u32,
    likeness: Option<&mut dyn Likeness>,
) -> Traced {
    let mut scratch = Scratch::default();
    let (totals, trace) = scratch.score(parts, candidate_count, query, Some(Trace::of(candidate)));
    scratch.compare(query, candidate_count, totals, 0, likeness, Some(candidate));
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
        whole: hit.whole,
        outcome: Outcome {
            hits: vec![hit],
            terms: query.terms,
            rarest: totals.rarest,
            tools: totals.documents,
            ..Outcome::default()
        },
        alike: scratch
            .fusion
            .zip(hit.alike)
            .map(|(fusion, alike)| (alike, fused(fusion, hit.words, alike, account.stuffed) - hit.words)),
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
    unknown_group: Option<String>,
    repairs: Vec<Repair>,
    /// Likeness by candidate; empty without a second opinion.
    alike: Vec<f32>,
    fusion: Option<Fusion>,
    /// Candidates that may be among the best, and those whose likeness is wanted.
    picked: Vec<u32>,
    wanted: Vec<bool>,
    /// Scores of the picked candidates, by [`order_key`].
    keys: Vec<u32>,
    selected: Vec<u32>,
}

impl Scratch {
    fn search(
        &mut self,
        parts: &[Part<'_>],
        candidate_count: usize,
        query: &str,
        limit: usize,
        likeness: Option<&mut dyn Likeness>,
    ) -> Outcome {
        let (mut totals, _) = self.score(parts, candidate_count, query, None);
        self.compare(query, candidate_count, totals, limit, likeness, None);
        self.rank(totals, limit);
        let mut unmet = None;
        if self.best.is_empty() && totals.required != 0 {
            // The nearest tools are better than none; the caller tells them from what was asked for.
            unmet = Some(unmet_of(query, totals));
            totals.required = 0;
            self.rank(totals, limit);
        }
        if let Some(group) = &self.unknown_group {
            unmet = Some(Unmet::Group(group.clone()));
        }
        let hits = self.take_hits(totals, limit);
        Outcome {
            asks_for_all: self.query.asks_for_all() && !hits.iter().any(|hit| hit.exact),
            hits,
            terms: self.query.terms,
            rarest: totals.rarest,
            tools: totals.documents,
            unmet,
        }
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
        if self.accounts.len() < candidate_count {
            self.accounts.resize(candidate_count, Account::default());
        }
        let shows =
            |part: &Part<'_>| part.candidates.iter().filter(|&&at| (at as usize) < candidate_count).count();
        let documents = parts.iter().map(shows).sum();
        let hides = parts.iter().map(|part| part.index.len()).sum::<usize>() > documents;
        let mut run = Run {
            parts,
            accounts: &mut self.accounts[..candidate_count],
            touched: &mut self.touched,
            postings: Vec::with_capacity(parts.len()),
            documents,
            hides,
            stamp: 0,
            trace,
            totals: Totals::default(),
            repairs: &mut self.repairs,
        };
        let group = directives.server.filter(|server| run.restrict_to_group(server, directives.explicit));
        let unknown = directives.server.filter(|_| directives.explicit && group.is_none());
        // The group is settled, and the rest says what is asked of it.
        let of_group = group.is_some() && !directives.rest.is_empty();
        words.read(if of_group { directives.rest } else { directives.text }, &directives.required);
        if let Some(group) = group.filter(|_| of_group && words.asks_for_all()) {
            // All tools of a group are those that its name finds.
            words.read(group, &[]);
            words.overview.forget();
        }
        run.score(&words, &mut self.counters, &mut self.near);
        self.exact.clear();
        run.find_names(directives.text, &mut self.exact);
        if of_group && self.exact.is_empty() {
            run.find_names(directives.rest, &mut self.exact);
        }
        self.unknown_group = unknown.map(str::to_owned);
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
        self.repairs.clear();
        if self.accounts.len() > MAX_KEPT_CANDIDATES {
            *self = Self::default();
        }
    }

    /// Asks for the second opinion, exactly about those candidates that may be among the first `limit`.
    fn compare(
        &mut self,
        query: &str,
        candidate_count: usize,
        totals: Totals,
        limit: usize,
        likeness: Option<&mut dyn Likeness>,
        also: Option<u32>,
    ) {
        self.alike.clear();
        self.picked.clear();
        self.fusion = None;
        let Some(likeness) = likeness else { return };
        self.alike.resize(candidate_count, UNSEEN);
        let words: Vec<(&str, f32)> = self.query.meaning(&self.repairs).collect();
        let text = name_addresses(directives(clip_query(query)).text);
        let text = (!self.query.is_foreign).then_some(&*text);
        if words.is_empty() || !likeness.estimate(&words, text, &mut self.alike) {
            self.alike.clear();
            return;
        }
        let of_words = |candidate: u32| final_score(&self.accounts[candidate as usize], totals);
        let candidates = (0..).zip(&self.alike).filter(|(_, alike)| **alike > UNSEEN);
        self.picked.extend(candidates.map(|(candidate, _)| candidate));
        let spread = Spread::of(self.touched.iter().map(|&candidate| of_words(candidate)), self.picked.len());
        let sample: Vec<u32> =
            self.picked.iter().step_by(self.picked.len().div_ceil(SAMPLE).max(1)).copied().collect();
        let name_covers = self.touched.iter().map(|&candidate| self.accounts[candidate as usize].name_cover);
        let named = share(name_covers.fold(0.0, f32::max), totals.all);
        let fusion = |alike: &[f32]| {
            let alike = sample.iter().map(|&candidate| alike[candidate as usize]);
            Fusion::new(spread, Spread::of(alike, sample.len()), totals.rarest, named)
        };
        let estimated = fusion(&self.alike);
        let most = limit.saturating_mul(2).max(REFINED);
        let meets =
            |candidate: &u32| self.accounts[*candidate as usize].marks & totals.required == totals.required;
        if totals.required != 0 && self.picked.iter().any(meets) {
            self.picked.retain(meets);
        }
        if self.picked.len() > most {
            self.keep_best(most, estimated, totals);
        }
        self.picked.extend(also.filter(|also| !self.picked.contains(also)));
        self.wanted.clear();
        self.wanted.resize(candidate_count, false);
        for &candidate in self.picked.iter().chain(&sample) {
            self.wanted[candidate as usize] = true;
        }
        likeness.refine(&self.wanted, &mut self.alike);
        self.fusion = Some(fusion(&self.alike));
    }

    /// Leaves about the `most` best of the picked candidates: those as good as the last of them stay too.
    fn keep_best(&mut self, most: usize, fusion: Fusion, totals: Totals) {
        let scores = self.picked.iter().map(|&candidate| {
            let words = final_score(&self.accounts[candidate as usize], totals);
            order_key(fusion.fuse(words, self.alike[candidate as usize]))
        });
        self.keys.clear();
        self.keys.extend(scores);
        self.selected.clone_from(&self.keys);
        let (_, least, _) = self.selected.select_nth_unstable_by(most, |a, b| b.cmp(a));
        let (least, mut keys) = (*least, self.keys.iter());
        self.picked.retain(|_| keys.next().is_some_and(|key| *key >= least));
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
        // With a second opinion a tool may be found that holds none of the words.
        let candidates = if self.fusion.is_some() { &self.picked } else { &self.touched };
        for &candidate in candidates {
            let account = &self.accounts[candidate as usize];
            if account.marks & totals.required != totals.required {
                continue;
            }
            let score = self.score_of(candidate, totals);
            if score <= 0.0 {
                continue;
            }
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
            let score = self.score_of(candidate, totals).max(0.0);
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
            words: final_score(&account, totals),
            coverage: share(account.cover),
            name_coverage: share(account.name_cover),
            exact: ranked.tier > Tier::Words,
            whole,
            other_service: lacks(SERVICE_MARK),
            other_action: lacks(ACTION_MARK),
            alike: self.alike.get(ranked.candidate as usize).copied().filter(|alike| *alike > UNSEEN),
        }
    }

    /// The words' score, with the second opinion where there is one; that never takes a tool away which holds the words.
    fn score_of(&self, candidate: u32, totals: Totals) -> f32 {
        let account = &self.accounts[candidate as usize];
        let words = final_score(account, totals);
        match (&self.fusion, self.alike.get(candidate as usize)) {
            (Some(fusion), Some(&alike)) if alike > UNSEEN => fused(*fusion, words, alike, account.stuffed),
            _ => words,
        }
    }
}

/// A whole number that is larger for a larger `score`: whole numbers are selected several times as fast.
fn order_key(score: f32) -> u32 {
    let bits = score.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

fn unmet_of(query: &str, totals: Totals) -> Unmet {
    let directives = directives(clip_query(query));
    match directives.server.filter(|_| totals.required & GROUP_MARK != 0) {
        Some(server) if directives.required.is_empty() => Unmet::InGroup(server.to_owned()),
        _ => Unmet::Terms(directives.required.iter().map(|&term| term.to_owned()).collect()),
    }
}

/// Words and likeness; a tool that is less like the query than others keeps a trace of what its words earned.
fn fused(fusion: Fusion, words: f32, alike: f32, stuffed: bool) -> f32 {
    let fused = fusion.fuse(words, alike);
    // `words` have lost their part; likeness loses what it would add.
    let fused = if stuffed && fused > words { words + STUFFED_FACTOR * (fused - words) } else { fused };
    fused.max(LEAST_OF_WORDS * words)
}

fn final_score(account: &Account, totals: Totals) -> f32 {
    account.score * bonus(account, totals)
}

/// What a score is multiplied by for coverage and name.
fn bonus(account: &Account, totals: Totals) -> f32 {
    let unasked = account.acts && totals.asked & ACTION_MARK == 0;
    let bonus = 1.0
        + COVERAGE_BONUS * share(account.cover, totals.known)
        + NAME_COVERAGE_BONUS * share(account.name_cover, totals.known)
        + NAME_FIT_BONUS * share(f32::from(account.named), f32::from(account.name_words));
    let stuffed = if account.stuffed { STUFFED_FACTOR } else { 1.0 };
    if unasked { stuffed * UNASKED_FACTOR * bonus } else { stuffed * bonus }
}
