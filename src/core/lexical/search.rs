//! Ranking: which candidates match a query best, over several indexes searched as one.

use std::cell::RefCell;
use std::cmp::Ordering;

use super::analyzer::stem;
use super::background;
use super::index::{Index, Postings};
use super::names::{identifiers, keys_of};
use super::query::{Form, Query, clip_query};
use super::spelling::{Counters, Near};
use super::terms::{Kind, key};

/// In [`Part::candidates`]: the document is not visible.
pub const NONE: u32 = u32::MAX;

/// Rarity is raised to this power (ranking trial).
const IDF_POWER: f32 = 1.3;
/// Weight of the world's tools beside those of the catalog, in tools: in a catalog of ten they decide how rare a word is, in
/// one of thousands they hardly count (from 50 to 500 the development sets do not tell values apart).
const BACKGROUND_TOOLS: f32 = 100.0;
/// The least rarity before that power: a word that all tools hold still finds them.
const IDF_FLOOR: f32 = 0.1;
/// Bonus for covering all of the query, and for covering it in the name (same source).
const COVERAGE_BONUS: f32 = 0.25;
const NAME_COVERAGE_BONUS: f32 = 0.25;
/// Unknown words of one query that are split or corrected.
const MAX_REPAIRS: usize = 6;
/// Shortest and longest word that is split in two known ones, in bytes, and the shortest half.
const SPLIT_LENGTHS: std::ops::RangeInclusive<usize> = 6..=32;
const SHORTEST_HALF: usize = 3;
/// Weight of a half of a split word (same source).
const SPLIT_FACTOR: f32 = 0.6;
/// Corrections tried for one word; weight and coverage of one that is one or two edits away.
const MAX_CORRECTIONS: usize = 3;
const CORRECTION_FACTORS: [f32; 2] = [0.6, 0.4];
/// Words of one query that are looked up as names.
const MAX_IDENTIFIERS: usize = 100;
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
}

/// The answer to one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Best first: tools whose name the query is, tools that it names, the rest. At most `limit`, and behind them the best
    /// tool for each name in the query that had no place among these.
    pub hits: Vec<Hit>,
    /// Content words of the query; 0 when it is empty or filler alone.
    pub terms: usize,
}

/// Ranks the candidates `0..candidate_count` for `query`. Ties go to the smaller candidate.
pub fn search(parts: &[Part<'_>], candidate_count: usize, query: &str, limit: usize) -> Outcome {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = RefCell::default();
    }
    SCRATCH.with_borrow_mut(|scratch| scratch.search(parts, candidate_count, query, limit))
}

/// What a candidate has collected.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    score: f32,
    cover: f32,
    name_cover: f32,
    /// Twice the number of the last unit that it matched, plus one if in its name; 0 when it matched none.
    stamp: u32,
}

/// A candidate that the query names.
#[derive(Debug, Clone, Copy)]
struct Exact {
    candidate: u32,
    tier: Tier,
    /// Which word of the query names it.
    token: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    Words,
    Named,
    /// The query is the part of the name behind a prefix, or the other way round.
    WholePart,
    Whole,
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

/// Weight of the query's units: of those that some visible tool matches, and of all.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    known: f32,
    all: f32,
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
        self.reset();
        let text = clip_query(query);
        let mut words = std::mem::take(&mut self.query);
        words.read(text);
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
            totals: Totals::default(),
        };
        run.score(&words, &mut self.counters, &mut self.near);
        run.find_names(text, &mut self.exact);
        let totals = run.totals;
        self.rank(totals, limit);
        let hits = self.take_hits(totals, limit);
        let terms = words.terms;
        self.query = words;
        Outcome { hits, terms }
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
        // The best tier of each candidate comes first and stays.
        self.exact.sort_unstable_by(|a, b| {
            a.candidate.cmp(&b.candidate).then(b.tier.cmp(&a.tier)).then(a.token.cmp(&b.token))
        });
        for &candidate in self.touched.iter() {
            let account = &self.accounts[candidate as usize];
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
        let account = &self.accounts[ranked.candidate as usize];
        let whole = ranked.tier >= Tier::WholePart;
        let share = |part: f32| if whole { 1.0 } else { share(part, totals.all) };
        Hit {
            candidate: ranked.candidate,
            score: ranked.score,
            coverage: share(account.cover),
            name_coverage: share(account.name_cover),
            exact: ranked.tier > Tier::Words,
            whole,
        }
    }
}

fn share(part: f32, total: f32) -> f32 {
    if total > 0.0 { (part / total).clamp(0.0, 1.0) } else { 0.0 }
}

fn final_score(account: &Account, totals: Totals) -> f32 {
    let bonus = COVERAGE_BONUS * share(account.cover, totals.known)
        + NAME_COVERAGE_BONUS * share(account.name_cover, totals.known);
    account.score * (1.0 + bonus)
}

/// One search under way.
struct Run<'a> {
    parts: &'a [Part<'a>],
    accounts: &'a mut [Account],
    touched: &'a mut Vec<u32>,
    postings: Vec<Postings<'a>>,
    documents: usize,
    stamp: u32,
    totals: Totals,
}

impl Run<'_> {
    fn score(&mut self, query: &Query, counters: &mut Counters, near: &mut Vec<Near>) {
        let mut repairs = 0;
        for unit in &query.units {
            let forms = &query.forms[unit.first..unit.first + unit.count];
            if self.add(forms, unit.cover, 1.0) {
                continue;
            }
            let repaired = query.word(unit).filter(|_| repairs < MAX_REPAIRS).is_some_and(|word| {
                repairs += 1;
                self.split(word, unit.weight, unit.cover)
                    || self.correct(word, unit.weight, unit.cover, counters, near)
            });
            if !repaired {
                self.totals.all += unit.cover * self.idf(0, forms[0].key);
            }
        }
    }

    /// Adds the postings of `forms`, which all mean the same, to the candidates. `cover` is what matching one of them adds to
    /// the coverage, in multiples of its rarity, of which a match earns `earned`. False when no visible tool matches.
    fn add(&mut self, forms: &[Form], cover: f32, earned: f32) -> bool {
        self.stamp += 1;
        let (mut weight, mut plain) = (None, None);
        let mut matched = false;
        for form in forms {
            self.postings.clear();
            self.postings.extend(self.parts.iter().map(|part| part.index.postings(form.key)));
            let frequency = self.postings.iter().map(|postings| postings.documents.len()).sum();
            if frequency == 0 {
                continue;
            }
            let mut idf = self.idf(frequency, form.key);
            if form.instead {
                // A synonym says no more than the word that was typed.
                idf = plain.map_or(idf, |plain| idf.min(plain));
            } else if plain.is_none() {
                plain = Some(idf);
            }
            let weight = *weight.get_or_insert(cover * idf);
            let factor = form.factor * idf;
            for (part, postings) in self.parts.iter().zip(&self.postings) {
                for (&document, &impact) in postings.documents.iter().zip(postings.impacts) {
                    let candidate = part.candidates.get(document as usize).copied().unwrap_or(NONE);
                    let Some(account) = self.accounts.get_mut(candidate as usize) else { continue };
                    matched = true;
                    if account.stamp == 0 {
                        self.touched.push(candidate);
                    }
                    if form.instead && account.stamp >> 1 == self.stamp {
                        continue;
                    }
                    account.score += factor * impact.value();
                    if account.stamp >> 1 != self.stamp {
                        account.stamp = self.stamp << 1;
                        account.cover += weight * earned * form.earned;
                    }
                    if impact.in_name() && account.stamp & 1 == 0 {
                        account.stamp |= 1;
                        account.name_cover += weight * earned * form.earned;
                    }
                }
            }
        }
        if let Some(weight) = weight.filter(|_| matched) {
            self.totals.known += weight;
            self.totals.all += weight;
        }
        matched
    }

    /// `createissue` where the tools say `create` and `issue`: the split whose rarer half is the commonest.
    fn split(&mut self, word: &str, weight: f32, cover: f32) -> bool {
        if !word.is_ascii() || !SPLIT_LENGTHS.contains(&word.len()) {
            return false;
        }
        let mut best: Option<(usize, u64, u64)> = None;
        for at in SHORTEST_HALF..=word.len() - SHORTEST_HALF {
            let (first, second) = word.split_at(at);
            let first = key(Kind::Stem, &stem(first));
            let first_count = self.visible(first);
            if first_count == 0 {
                continue;
            }
            let second = key(Kind::Stem, &stem(second));
            let count = first_count.min(self.visible(second));
            if count > 0 && best.is_none_or(|(most, ..)| count > most) {
                best = Some((count, first, second));
            }
        }
        let Some((_, first, second)) = best else { return false };
        for key in [first, second] {
            self.add(&[Form::plain(key, SPLIT_FACTOR * weight)], cover / 2.0, 1.0);
        }
        true
    }

    /// Searches the nearest visible words instead of an unknown one.
    fn correct(
        &mut self,
        word: &str,
        weight: f32,
        cover: f32,
        counters: &mut Counters,
        near: &mut Vec<Near>,
    ) -> bool {
        near.clear();
        for part in self.parts {
            part.index.near(word, counters, near);
        }
        near.sort_unstable();
        near.dedup();
        near.retain(|near| self.visible(key(Kind::Stem, &stem(&near.word))) > 0);
        let Some(edits) = near.first().map(|near| near.edits) else { return false };
        let factor = CORRECTION_FACTORS[edits.clamp(1, 2) - 1];
        let mut forms = [Form::plain(0, factor * weight); MAX_CORRECTIONS];
        let mut count = 0;
        for near in near.iter().take_while(|near| near.edits == edits) {
            let key = key(Kind::Stem, &stem(&near.word));
            if count < MAX_CORRECTIONS && !forms[..count].iter().any(|form| form.key == key) {
                forms[count].key = key;
                count += 1;
            }
        }
        self.add(&forms[..count], cover, factor)
    }

    /// Number of visible documents with this term.
    fn visible(&self, key: u64) -> usize {
        let count = |part: &Part<'_>| {
            let documents = part.index.postings(key).documents.iter();
            let candidate = |&document: &u32| part.candidates.get(document as usize).copied().unwrap_or(NONE);
            documents.filter(|document| (candidate(document) as usize) < self.accounts.len()).count()
        };
        self.parts.iter().map(count).sum()
    }

    /// Rarity of the term `key`, which `frequency` documents hold, above zero for any. Counted as if [`BACKGROUND_TOOLS`]
    /// tools of other catalogs were there too.
    fn idf(&self, frequency: usize, key: u64) -> f32 {
        let share = background::share_of(key).unwrap_or(0.0);
        let all = self.documents as f32 + BACKGROUND_TOOLS;
        let with = BACKGROUND_TOOLS.mul_add(share, frequency as f32);
        (1.0 + (all - with + 0.5).max(0.5) / (with + 0.5)).ln().max(IDF_FLOOR).powf(IDF_POWER)
    }

    /// Fills `exact` with the visible tools that the query is the name of, or that a word of it names.
    fn find_names(&mut self, query: &str, exact: &mut Vec<Exact>) {
        exact.clear();
        for (place, key) in keys_of(query).enumerate() {
            self.name(key, exact, usize::MAX, |whole, _| {
                Some(if whole && place == 0 { Tier::Whole } else { Tier::WholePart })
            });
            if !exact.is_empty() {
                break;
            }
        }
        let mut seen = Vec::new();
        for (token, word) in identifiers(query).take(MAX_IDENTIFIERS).enumerate() {
            for key in keys_of(word) {
                // Each name once, so that the work is bounded by the names of the index.
                if seen.contains(&key) {
                    break;
                }
                seen.push(key);
                let before = exact.len();
                self.name(key, exact, token, |_, identifier| identifier.then_some(Tier::Named));
                if exact.len() > before {
                    break;
                }
            }
        }
    }

    fn name(
        &mut self,
        key: u64,
        exact: &mut Vec<Exact>,
        token: usize,
        tier: impl Fn(bool, bool) -> Option<Tier>,
    ) {
        for part in self.parts {
            for named in part.index.named(key) {
                let candidate = part.candidates.get(named.document as usize).copied().unwrap_or(NONE);
                let Some(account) = self.accounts.get_mut(candidate as usize) else { continue };
                let Some(tier) = tier(named.whole, named.identifier) else { continue };
                if account.stamp == 0 {
                    // Not a unit's number, but enough to say that the candidate is touched.
                    account.stamp = 1;
                    self.touched.push(candidate);
                }
                exact.push(Exact { candidate, tier, token });
            }
        }
    }
}
