//! One search: adds up what each candidate matches, repairs words that no tool holds, finds the names in a query.

use super::analyzer::stem;
use super::background;
use super::index::Postings;
use super::lexicon::Role;
use super::names::{group_keys, group_word_keys, identifiers, keys_of};
use super::query::{ACTION_MARK, Form, GROUP_MARK, Query, Repair, SERVICE_MARK, Unit, What};
use super::search::{NONE, Part};
use super::spelling::{Counters, Near};
use super::terms::{Kind, key};

/// Rarity is raised to this power (ranking trial).
const IDF_POWER: f32 = 1.3;
/// Weight of the world's tools beside those of the catalog, in tools: in a catalog of ten they decide how rare a word is, in
/// one of thousands they hardly count (from 50 to 500 the development sets do not tell values apart).
const BACKGROUND_TOOLS: f32 = 100.0;
/// The least rarity before that power: a word that all tools hold still finds them.
const IDF_FLOOR: f32 = 0.1;
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
/// Words of a query that may be names written as words, and of the longest such name.
const MAX_NAMED_WORDS: usize = 12;
const MAX_NAME_WORDS: usize = 4;
/// An action counts as a tool's own from this impact on: it stands in its name or in what it leads with, not deep in its text.
const ACTION_IMPACT: f32 = 0.8;
/// Share of its weight that a word keeps which no tool anywhere holds: it is a name or a value (`Paris`, `Alice`), not something
/// that these tools cannot do.
const UNHEARD_SHARE: f32 = 0.2;
/// A query of filler alone says a quarter of what its words would say in another.
const FILLER_DOUBT: f32 = 4.0;
/// A form that earns at least this share of the coverage is the thing itself, not a neighbour.
const FULL_MARK: f32 = 0.6;

/// What a candidate has collected.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Account {
    pub(super) score: f32,
    pub(super) cover: f32,
    pub(super) name_cover: f32,
    /// Twice the number of the last unit that it matched, plus one if in its name; 0 when it matched none.
    stamp: u32,
    /// The marks of the units that it matched.
    pub(super) marks: u32,
    /// Units that its name matches, and words in its name.
    pub(super) named: u8,
    pub(super) name_words: u8,
    /// Its name says that it changes something.
    pub(super) acts: bool,
    /// Its texts are stuffed.
    pub(super) stuffed: bool,
}

/// A candidate that the query names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exact {
    pub(super) candidate: u32,
    pub(super) tier: Tier,
    /// Which word of the query names it.
    pub(super) token: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Words,
    Named,
    /// The query is the part of the name behind a prefix, or the other way round.
    WholePart,
    Whole,
}

/// Weight of the query's units: of those that some visible tool matches, and of all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) known: f32,
    pub(super) all: f32,
    /// Marks that a candidate must have.
    pub(super) required: u32,
    /// Whether the query has a service's name and an action: their marks.
    pub(super) asked: u32,
    /// Rarity of a word that one tool holds.
    pub(super) rarest: f32,
    /// Visible documents.
    pub(super) documents: usize,
}

/// What one candidate's score is made of.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) candidate: u32,
    pub(super) entries: Vec<TraceEntry>,
    unit: usize,
    repaired: Option<String>,
}

impl Trace {
    pub(super) fn of(candidate: u32) -> Self {
        Self { candidate, ..Self::default() }
    }
}

/// What one form of a unit added.
#[derive(Debug)]
pub(super) struct TraceEntry {
    pub(super) unit: usize,
    pub(super) form: Form,
    pub(super) idf: f32,
    pub(super) contribution: f32,
    pub(super) coverage: f32,
    pub(super) in_name: bool,
    pub(super) repaired: Option<String>,
}

pub(super) fn share(part: f32, total: f32) -> f32 {
    if total > 0.0 { (part / total).clamp(0.0, 1.0) } else { 0.0 }
}

/// One search under way.
pub(super) struct Run<'a> {
    pub(super) parts: &'a [Part<'a>],
    pub(super) accounts: &'a mut [Account],
    pub(super) touched: &'a mut Vec<u32>,
    pub(super) postings: Vec<Postings<'a>>,
    /// Visible documents, and whether there are others.
    pub(super) documents: usize,
    pub(super) hides: bool,
    pub(super) stamp: u32,
    /// What one candidate's score is made of, when that was asked for.
    pub(super) trace: Option<Trace>,
    pub(super) totals: Totals,
    pub(super) repairs: &'a mut Vec<Repair>,
}

impl Run<'_> {
    pub(super) fn score(&mut self, query: &Query, counters: &mut Counters, near: &mut Vec<Near>) {
        let mut repairs = 0;
        self.totals.rarest = self.idf(1, 0);
        self.totals.documents = self.documents;
        for (number, unit) in query.units.iter().enumerate() {
            self.totals.asked |= unit.mark & (SERVICE_MARK | ACTION_MARK);
            self.at(number);
            let forms = &query.forms[unit.first..unit.first + unit.count];
            self.totals.required |= unit.mark & !(SERVICE_MARK | ACTION_MARK);
            if self.add(forms, unit, 1.0) {
                continue;
            }
            let repaired = query.repairable(unit).filter(|_| repairs < MAX_REPAIRS).is_some_and(|word| {
                repairs += 1;
                self.split(word, unit) || self.correct(word, unit, counters, near)
            });
            if !repaired {
                let unheard = unit.mark == 0
                    && query.repairable(unit).is_some()
                    && background::share_of(forms[0].key).is_none();
                let share = if unheard { UNHEARD_SHARE } else { 1.0 };
                self.totals.all += share * unit.cover * self.idf(0, forms[0].key);
            }
        }
        if query.is_filler {
            self.totals.all *= FILLER_DOUBT;
        }
    }

    /// Marks the tools of a group; they alone are ranked. With `by_word` a group may be meant by a word of its name, where none has
    /// all of it. False when there are none.
    pub(super) fn restrict_to_group(&mut self, name: &str, by_word: bool) -> bool {
        self.mark_group(group_keys(name));
        if by_word && self.totals.required & GROUP_MARK == 0 {
            self.mark_group(group_word_keys(name));
        }
        self.totals.required & GROUP_MARK != 0
    }

    fn mark_group(&mut self, keys: impl Iterator<Item = u64>) {
        for key in keys {
            for part in self.parts {
                for &document in part.index.postings(key).documents {
                    let candidate = part.candidates.get(document as usize).copied().unwrap_or(NONE);
                    if let Some(account) = self.accounts.get_mut(candidate as usize) {
                        account.marks |= GROUP_MARK;
                        self.totals.required |= GROUP_MARK;
                        if account.stamp == 0 {
                            account.stamp = 1;
                            self.touched.push(candidate);
                        }
                    }
                }
            }
        }
    }

    /// Tells the trace which unit is being scored.
    fn at(&mut self, unit: usize) {
        if let Some(trace) = &mut self.trace {
            trace.unit = unit;
            trace.repaired = None;
        }
    }

    fn traced_account(&self) -> Option<Account> {
        self.trace.as_ref().and_then(|trace| self.accounts.get(trace.candidate as usize)).copied()
    }

    /// Adds the postings of `forms`, which all stand for `unit`, to the candidates; a match earns `earned` of its coverage.
    /// False when no visible tool matches.
    fn add(&mut self, forms: &[Form], unit: &Unit, earned: f32) -> bool {
        self.stamp += 1;
        let (mut weight, mut plain) = (None, None);
        let mut matched = false;
        let most = self.most_of_concepts(forms, unit);
        for form in forms {
            self.postings.clear();
            self.postings.extend(self.parts.iter().map(|part| part.index.postings(form.key)));
            let frequency = self.frequency(form.key);
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
            // A near word of one that no tool holds does not make the query easier to cover.
            let unknown = form.instead && form.earned < FULL_MARK && plain.is_none();
            let weight = *weight
                .get_or_insert_with(|| unit.cover * if unknown { self.idf(0, forms[0].key) } else { idf });
            let own = matches!(form.what, What::Character);
            let share = if own || unit.word.is_none() || weight <= 0.0 {
                1.0
            } else {
                (unit.cover * idf / weight).min(1.0)
            };
            let gain = weight * share * earned * form.earned;
            // What is said in other words is done all the same, what is merely near it may be something else.
            let near = matches!(form.what, What::Concept(member) if member.role == Role::Near);
            let mark = match form.earned >= FULL_MARK {
                true => unit.mark,
                false if near => 0,
                false => unit.mark & ACTION_MARK,
            };
            let faint = mark & !ACTION_MARK;
            let before = self.traced_account();
            let factor = if own { form.factor * idf } else { (form.factor * idf).min(most) };
            for (part, postings) in self.parts.iter().zip(&self.postings) {
                for (&document, &impact) in postings.documents.iter().zip(postings.impacts) {
                    let candidate = part.candidates.get(document as usize).copied().unwrap_or(NONE);
                    let Some(account) = self.accounts.get_mut(candidate as usize) else { continue };
                    matched = true;
                    if account.stamp == 0 {
                        self.touched.push(candidate);
                    }
                    if account.name_words == 0 {
                        let told = part.index.told(document);
                        (account.name_words, account.acts) = (told.words, told.acts);
                        account.stuffed |= told.stuffed;
                    }
                    if form.instead && account.stamp >> 1 == self.stamp {
                        continue;
                    }
                    account.score += factor * impact.value();
                    if account.stamp >> 1 != self.stamp {
                        account.stamp = self.stamp << 1;
                        account.cover += gain;
                        account.marks |= if impact.value() >= ACTION_IMPACT { mark } else { faint };
                    }
                    if impact.in_name() && account.stamp & 1 == 0 {
                        account.stamp |= 1;
                        account.name_cover += gain;
                        account.named = account.named.saturating_add(u8::from(gain > 0.0));
                    }
                }
            }
            if let Some(before) = before {
                self.record(form, idf, before);
            }
        }
        if let Some(weight) = weight.filter(|_| matched) {
            self.totals.known += weight;
            self.totals.all += weight;
        }
        matched
    }

    /// The most that a concept of another script adds to a score, before impact: what its own characters add where a tool
    /// holds them.
    fn most_of_concepts(&self, forms: &[Form], unit: &Unit) -> f32 {
        if unit.word.is_some() || forms.len() < 2 {
            return f32::MAX;
        }
        let own = forms.iter().filter(|form| matches!(form.what, What::Character)).filter_map(|form| {
            let frequency = self.frequency(form.key);
            (frequency > 0).then(|| form.factor * self.idf(frequency, form.key))
        });
        own.reduce(f32::max).unwrap_or(f32::MAX)
    }

    /// `createissue` where the tools say `create` and `issue`: the split whose rarer half is the commonest.
    fn split(&mut self, word: &str, unit: &Unit) -> bool {
        if !word.is_ascii() || !SPLIT_LENGTHS.contains(&word.len()) {
            return false;
        }
        let mut best: Option<(usize, usize, [u64; 2])> = None;
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
                best = Some((count, at, [first, second]));
            }
        }
        let Some((_, at, keys)) = best else { return false };
        let half = Unit { cover: unit.cover / 2.0, ..unit.clone() };
        let (first, second) = word.split_at(at);
        for (key, part) in keys.into_iter().zip([first, second]) {
            self.note(unit, part);
            self.add(&[Form::plain(What::Split, key, SPLIT_FACTOR * unit.weight)], &half, 1.0);
        }
        true
    }

    /// Searches the nearest visible words instead of an unknown one.
    fn correct(&mut self, word: &str, unit: &Unit, counters: &mut Counters, near: &mut Vec<Near>) -> bool {
        near.clear();
        for part in self.parts {
            part.index.near(word, counters, near);
        }
        near.sort_unstable();
        near.dedup();
        near.retain(|near| self.visible(key(Kind::Stem, &stem(&near.word))) > 0);
        let Some(edits) = near.first().map(|near| near.edits) else { return false };
        let factor = CORRECTION_FACTORS[edits.clamp(1, 2) - 1];
        let mut forms = [Form::plain(What::Correction, 0, factor * unit.weight); MAX_CORRECTIONS];
        let mut count = 0;
        for near in near.iter().take_while(|near| near.edits == edits) {
            let key = key(Kind::Stem, &stem(&near.word));
            if count < MAX_CORRECTIONS && !forms[..count].iter().any(|form| form.key == key) {
                forms[count].key = key;
                count += 1;
            }
        }
        self.note(unit, &near[0].word);
        self.add(&forms[..count], unit, factor)
    }

    /// Takes down what a word has been repaired to.
    fn note(&mut self, unit: &Unit, repaired: &str) {
        if let Some(word) = unit.word {
            match self.repairs.last_mut().filter(|repair| repair.word == word) {
                Some(repair) => repair.becomes.push(repaired.to_owned()),
                None => self.repairs.push(Repair { word, becomes: vec![repaired.to_owned()] }),
            }
        }
        if let Some(trace) = &mut self.trace {
            trace.repaired = Some(repaired.to_owned());
        }
    }

    fn record(&mut self, form: &Form, idf: f32, before: Account) {
        let Some(after) = self.traced_account() else { return };
        let Some(trace) = &mut self.trace else { return };
        if after.score > before.score {
            trace.entries.push(TraceEntry {
                unit: trace.unit,
                form: *form,
                idf,
                contribution: after.score - before.score,
                coverage: after.cover - before.cover,
                in_name: after.name_cover > before.name_cover,
                repaired: trace.repaired.clone(),
            });
        }
    }

    /// Number of visible documents with this term. What is not visible must not show, not even in how rare a word is.
    fn frequency(&self, key: u64) -> usize {
        if self.hides {
            return self.visible(key);
        }
        self.parts.iter().map(|part| part.index.postings(key).documents.len()).sum()
    }

    /// The same, counted.
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

    /// Adds the visible tools that the query is the name of, or that a word of it names.
    pub(super) fn find_names(&mut self, query: &str, exact: &mut Vec<Exact>) {
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
        if exact.is_empty() {
            self.find_names_in_words(query, exact);
        }
    }

    /// Finds the names that make up all of a query when it is read in words: `create issue list events`.
    fn find_names_in_words(&mut self, query: &str, exact: &mut Vec<Exact>) {
        let start_of = |word: &str| word.as_ptr() as usize - query.as_ptr() as usize;
        let words: Vec<(usize, usize)> = query
            .split_whitespace()
            .take(MAX_NAMED_WORDS + 1)
            .map(|word| (start_of(word), start_of(word) + word.len()))
            .collect();
        if words.len() > MAX_NAMED_WORDS {
            return;
        }
        let before = exact.len();
        let (mut at, mut names) = (0, 0);
        while at < words.len() {
            let lengths = (2..=MAX_NAME_WORDS.min(words.len() - at)).rev();
            let named = lengths.into_iter().find(|length| {
                let name = &query[words[at].0..words[at + length - 1].1];
                let found = exact.len();
                if let Some(key) = keys_of(name).next() {
                    self.name(key, exact, MAX_IDENTIFIERS + names, |whole, _| whole.then_some(Tier::Named));
                }
                exact.len() > found
            });
            let Some(length) = named else {
                exact.truncate(before);
                return;
            };
            at += length;
            names += 1;
        }
        if names < 2 {
            exact.truncate(before);
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
