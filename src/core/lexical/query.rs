//! A query as units: the words that a tool should match, each with the forms in which a tool may hold it.

use std::ops::Range;

use super::analyzer::{Class, Tokens, stem};
use super::background;
use super::concepts::{self, Concept, MAX_DENSE, MAX_PHRASE, Nearness};
use super::schema::clip;
use super::stopwords::{cut_dense_filler, filler_phrase, is_stop, query_weight};
use super::terms::{Kind, joined_key, key};

/// Characters of a query that are read (the limit of the API).
const MAX_QUERY_CHARS: usize = 2_000;
/// Distinct words of a query that are searched.
const MAX_UNITS: usize = 200;

/// Weights of the kinds of terms, from the ranking trial. A joined form weighs half of what it did there, because each of
/// the words that it joins brings it in.
const RAW_FACTOR: f32 = 0.2;
const PAIR_FACTOR: f32 = 0.5;
const SINGLE_FACTOR: f32 = 0.1;
const LONE_FACTOR: f32 = 0.5;
const JOINED_FACTOR: f32 = 0.3;
/// Weights of the other words of a concept, and the share of the coverage that they earn.
const SAME_FACTOR: f32 = 0.8;
const SAME_EARNED: f32 = 0.9;
const NEAR_FACTOR: f32 = 0.5;
const NEAR_EARNED: f32 = 0.5;
const PHRASE_FACTOR: f32 = 0.8;
const FOREIGN_FACTOR: f32 = 0.7;
const FOREIGN_EARNED: f32 = 0.9;
/// A word that a larger share of all tools holds is read as English, even where it is a word elsewhere (`data`).
const ENGLISH_SHARE: f32 = 0.001;
/// A repeated word counts with this power of its repetitions (same source).
const REPEAT_POWER: f32 = 0.3;
/// A bigram's share of coverage: about half of a run's bigrams are words, the rest lies across two of them.
const BIGRAM_COVERAGE: f32 = 0.5;

/// One form of a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) key: u64,
    pub(super) factor: f32,
    /// Share of the unit's coverage that a match earns.
    pub(super) earned: f32,
    /// Another word of the same concept: counts only for tools that no form before it matches.
    pub(super) instead: bool,
}

impl Form {
    pub(super) fn plain(key: u64, factor: f32) -> Self {
        Self { key, factor, earned: 1.0, instead: false }
    }
}

/// Something that the query asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// The unit's forms are `forms[first..first + count]` of the query, the plainest first.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Share in the coverage, to be multiplied by rarity; 0 for a unit that only adds to scores.
    pub(super) cover: f32,
    /// Weight of its words and repetitions, by which the factors of forms found later are multiplied.
    pub(super) weight: f32,
    /// The number of its word; `None` when it is no word.
    word: Option<usize>,
}

/// A content word; its text and stem stand in `Query::texts`.
#[derive(Debug)]
struct QueryWord {
    text: Range<usize>,
    stem: Range<usize>,
    weight: f32,
    count: u16,
    /// Joined form of the identifier that the word is part of.
    joined: Option<u64>,
}

/// A word that is part of a phrase with a meaning of its own.
#[derive(Debug, Clone, Copy)]
struct Phrase {
    word: usize,
    concept: &'static Concept,
    /// Length of the phrase.
    words: usize,
}

/// An analysed query. A buffer: reading the next query reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) units: Vec<Unit>,
    pub(super) forms: Vec<Form>,
    words: Vec<QueryWord>,
    texts: String,
    /// Content words; 0 when the query is empty or filler alone.
    pub(super) terms: usize,
    tokens: Tokens,
    buffer: String,
    /// The content words as they stand in the query: place among all its words, number in `words`.
    sequence: Vec<(usize, usize)>,
    /// A stretch of a script without spaces, and which of its characters belong to a concept.
    run: Vec<char>,
    covered: Vec<bool>,
    phrases: Vec<Phrase>,
}

/// The part of a query that is read.
pub(super) fn clip_query(query: &str) -> &str {
    clip(query, MAX_QUERY_CHARS)
}

fn keep(texts: &mut String, text: &str) -> Range<usize> {
    let start = texts.len();
    texts.push_str(text);
    start..texts.len()
}

impl Query {
    /// The word of a unit that is one.
    pub(super) fn word(&self, unit: &Unit) -> Option<&str> {
        unit.word.map(|number| &self.texts[self.words[number].text.clone()])
    }

    /// Replaces the content by the units of `query`, which [`clip_query`] has cut.
    pub(super) fn read(&mut self, query: &str) {
        let mut tokens = std::mem::take(&mut self.tokens);
        let mut buffer = std::mem::take(&mut self.buffer);
        tokens.read(cut_dense_filler(query, &mut buffer));
        self.collect(&tokens, true);
        self.terms = self.words.len() + self.units.iter().filter(|unit| unit.cover > 0.0).count();
        if self.terms == 0 {
            tokens.read(query);
            self.collect(&tokens, false);
        }
        self.add_words();
        self.tokens = tokens;
        self.buffer = buffer;
    }

    /// Fills the words and the units of scripts without spaces.
    fn collect(&mut self, tokens: &Tokens, skip_filler: bool) {
        self.units.clear();
        self.forms.clear();
        self.words.clear();
        self.texts.clear();
        self.sequence.clear();
        let plain: Vec<&str> =
            tokens.iter().filter(|(class, _)| *class == Class::Word).map(|(_, text)| text).collect();
        let (mut place, mut skip_until, mut bigram) = (0, 0, 0);
        for (class, text) in tokens.iter() {
            match class {
                Class::Word => {
                    if skip_filler && place >= skip_until {
                        skip_until = place + filler_phrase(&plain[place..]);
                    }
                    if !(skip_filler && (place < skip_until || is_stop(text))) {
                        self.add_word(place, text);
                    }
                    place += 1;
                }
                Class::Joined { parts } => {
                    let joined = Some(key(Kind::Stem, &stem(text)));
                    let first = place.saturating_sub(usize::from(parts));
                    for &(_, word) in self.sequence.iter().rev().take_while(|(at, _)| *at >= first) {
                        self.words[word].joined = joined;
                    }
                }
                Class::Run => {
                    self.add_dense_concepts(text);
                    bigram = 0;
                }
                Class::Bigram => {
                    self.add_bigram(text, bigram);
                    bigram += 1;
                }
                Class::Single => self.add_single(text),
            }
        }
    }

    fn add_word(&mut self, place: usize, text: &str) {
        let stem = stem(text);
        let known = self.words.iter().position(|word| self.texts[word.stem.clone()] == stem);
        let number = known.unwrap_or(self.words.len());
        if let Some(word) = self.words.get_mut(number) {
            word.count = word.count.saturating_add(1);
        } else if self.words.len() < MAX_UNITS {
            let weight = query_weight(text);
            let text = keep(&mut self.texts, text);
            let stem = keep(&mut self.texts, &stem);
            self.words.push(QueryWord { text, stem, weight, count: 1, joined: None });
        } else {
            return;
        }
        self.sequence.push((place, number));
    }

    /// Makes a unit of every concept in a stretch of a script without spaces, the longest first.
    fn add_dense_concepts(&mut self, text: &str) {
        self.run.clear();
        self.run.extend(text.chars());
        self.covered.clear();
        self.covered.resize(self.run.len(), false);
        let mut at = 0;
        while at < self.run.len() {
            let longest = MAX_DENSE.min(self.run.len() - at);
            let found = (1..=longest)
                .rev()
                .find_map(|length| Some((length, concepts::of_dense(&self.run[at..at + length])?)));
            let Some((length, concept)) = found else {
                at += 1;
                continue;
            };
            self.covered[at..at + length].fill(true);
            at += length;
            let first = self.forms.len();
            if self.units.len() < MAX_UNITS {
                self.add_concept(first, concept, FOREIGN_FACTOR, FOREIGN_EARNED);
            }
            let count = self.forms.len() - first;
            if count > 0 {
                self.units.push(Unit { first, count, cover: 1.0, weight: 1.0, word: None });
            }
        }
    }

    /// Adds the words of a concept to the forms from `first` on, each once.
    fn add_concept(&mut self, first: usize, concept: &Concept, factor: f32, earned: f32) {
        for member in &concept.members {
            if !self.forms[first..].iter().any(|form| form.key == member.key) {
                self.forms.push(Form { key: member.key, factor, earned, instead: true });
            }
        }
    }

    fn add_bigram(&mut self, text: &str, place: usize) {
        let bigram = key(Kind::Stem, text);
        if self.units.len() >= MAX_UNITS || self.forms.iter().any(|form| form.key == bigram) {
            return;
        }
        let first = self.forms.len();
        self.forms.push(Form::plain(bigram, 1.0));
        if text.chars().nth(1).is_none() {
            // A lone character is all there is to go by, also where a tool has it inside a longer run.
            self.forms.push(Form::plain(key(Kind::Single, text), LONE_FACTOR));
        }
        let count = self.forms.len() - first;
        // Known concepts have been counted; Hiragana alone is grammar.
        let covered = self.covered.iter().skip(place).take(2).any(|&covered| covered);
        let grammar = text.chars().all(|c| matches!(c, '\u{3040}'..='\u{309f}'));
        let cover = if covered || grammar { 0.0 } else { BIGRAM_COVERAGE };
        self.units.push(Unit { first, count, cover, weight: 1.0, word: None });
    }

    fn add_single(&mut self, text: &str) {
        let key = key(Kind::Single, text);
        if self.units.len() < MAX_UNITS && !self.forms.iter().any(|form| form.key == key) {
            self.units.push(Unit { first: self.forms.len(), count: 1, cover: 0.0, weight: 1.0, word: None });
            self.forms.push(Form::plain(key, SINGLE_FACTOR));
        }
    }

    /// Finds the phrases of the query that are concepts.
    fn find_phrases(&mut self) {
        self.phrases.clear();
        for length in 2..=MAX_PHRASE {
            for window in self.sequence.windows(length) {
                let stems = window.iter().map(|&(_, word)| &self.texts[self.words[word].stem.clone()]);
                for concept in concepts::of_phrase(concepts::phrase_key(stems)) {
                    let phrase = |&(_, word): &(usize, usize)| Phrase { word, concept, words: length };
                    self.phrases.extend(window.iter().map(phrase));
                }
            }
        }
    }

    /// Adds what a word, alone or in a phrase, may stand for.
    fn add_word_concepts(&mut self, number: usize, first: usize) {
        let word = &self.words[number];
        let weight = word.weight * f32::from(word.count).powf(REPEAT_POWER);
        let stem = &self.texts[word.stem.clone()];
        let is_english =
            background::share_of(key(Kind::Stem, stem)).is_some_and(|share| share > ENGLISH_SHARE);
        let foreign = if is_english { None } else { concepts::of_foreign(&self.texts[word.text.clone()]) };
        let mut known = false;
        for concept in concepts::of_phrase(concepts::phrase_key(std::iter::once(stem))) {
            known = true;
            let (factor, earned) = match concept.nearness {
                Nearness::Same => (SAME_FACTOR, SAME_EARNED),
                Nearness::Near => (NEAR_FACTOR, NEAR_EARNED),
            };
            self.add_concept(first, concept, factor * weight, earned);
        }
        if let Some(concept) = foreign.filter(|_| !known) {
            self.add_concept(first, concept, FOREIGN_FACTOR * weight, FOREIGN_EARNED);
        }
        for at in 0..self.phrases.len() {
            let Phrase { word, concept, words } = self.phrases[at];
            if word == number {
                self.add_concept(first, concept, PHRASE_FACTOR * weight / words as f32, NEAR_EARNED);
            }
        }
    }

    /// Makes a unit of every word, and one of every two words that stand together.
    fn add_words(&mut self) {
        self.find_phrases();
        for number in 0..self.words.len() {
            let first = self.forms.len();
            let word = &self.words[number];
            let (text, stem) = (&self.texts[word.text.clone()], &self.texts[word.stem.clone()]);
            let weight = word.weight * f32::from(word.count).powf(REPEAT_POWER);
            let mut add = |key: u64, factor: f32| {
                if !self.forms[first..].iter().any(|form| form.key == key) {
                    self.forms.push(Form::plain(key, factor * weight));
                }
            };
            if stem == text {
                add(key(Kind::Stem, stem), 1.0 + RAW_FACTOR);
            } else {
                add(key(Kind::Stem, stem), 1.0);
                add(key(Kind::Raw, text), RAW_FACTOR);
            }
            // `filesystem` where a tool writes `file system`; the identifier whole; and `git hub` where it writes `github`.
            add(key(Kind::Pair, stem), JOINED_FACTOR);
            if let Some(joined) = word.joined {
                add(joined, JOINED_FACTOR);
            }
            for pair in self.sequence.windows(2).filter(|pair| pair[0].1 == number || pair[1].1 == number) {
                let (before, after) = (&self.words[pair[0].1], &self.words[pair[1].1]);
                let (before, after) = (&self.texts[before.text.clone()], &self.texts[after.stem.clone()]);
                add(joined_key(Kind::Stem, before, after), JOINED_FACTOR);
            }
            let cover = word.weight;
            self.add_word_concepts(number, first);
            let count = self.forms.len() - first;
            self.units.push(Unit { first, count, cover, weight, word: Some(number) });
        }
        let pairs_from = self.forms.len();
        for pair in self.sequence.windows(2) {
            let (before, after) = (&self.words[pair[0].1], &self.words[pair[1].1]);
            let key =
                joined_key(Kind::Pair, &self.texts[before.stem.clone()], &self.texts[after.stem.clone()]);
            if self.forms[pairs_from..].iter().any(|form| form.key == key) {
                continue;
            }
            let weight = before.weight.min(after.weight);
            self.units.push(Unit { first: self.forms.len(), count: 1, cover: 0.0, weight, word: None });
            self.forms.push(Form::plain(key, PAIR_FACTOR * weight));
        }
    }
}
