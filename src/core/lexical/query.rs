//! A query as units: the words that a tool should match, each with the forms in which a tool may hold it.

use std::ops::Range;

use super::analyzer::{Class, Tokens, stem};
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
/// A repeated word counts with this power of its repetitions (same source).
const REPEAT_POWER: f32 = 0.3;
/// A bigram's share of coverage: about half of a run's bigrams are words, the rest lies across two of them.
const BIGRAM_COVERAGE: f32 = 0.5;

/// One form of a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) key: u64,
    pub(super) factor: f32,
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
        let (mut place, mut skip_until) = (0, 0);
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
                Class::Bigram => self.add_bigram(text),
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

    fn add_bigram(&mut self, text: &str) {
        let bigram = key(Kind::Stem, text);
        if self.units.len() >= MAX_UNITS || self.forms.iter().any(|form| form.key == bigram) {
            return;
        }
        let first = self.forms.len();
        self.forms.push(Form { key: bigram, factor: 1.0 });
        if text.chars().nth(1).is_none() {
            // A lone character is all there is to go by, also where a tool has it inside a longer run.
            self.forms.push(Form { key: key(Kind::Single, text), factor: LONE_FACTOR });
        }
        let count = self.forms.len() - first;
        self.units.push(Unit { first, count, cover: BIGRAM_COVERAGE, weight: 1.0, word: None });
    }

    fn add_single(&mut self, text: &str) {
        let key = key(Kind::Single, text);
        if self.units.len() < MAX_UNITS && !self.forms.iter().any(|form| form.key == key) {
            self.units.push(Unit { first: self.forms.len(), count: 1, cover: 0.0, weight: 1.0, word: None });
            self.forms.push(Form { key, factor: SINGLE_FACTOR });
        }
    }

    /// Makes a unit of every word, and one of every two words that stand together.
    fn add_words(&mut self) {
        for number in 0..self.words.len() {
            let first = self.forms.len();
            let word = &self.words[number];
            let (text, stem) = (&self.texts[word.text.clone()], &self.texts[word.stem.clone()]);
            let weight = word.weight * f32::from(word.count).powf(REPEAT_POWER);
            let mut add = |key: u64, factor: f32| {
                if !self.forms[first..].iter().any(|form| form.key == key) {
                    self.forms.push(Form { key, factor: factor * weight });
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
            self.forms.push(Form { key, factor: PAIR_FACTOR * weight });
        }
    }
}
