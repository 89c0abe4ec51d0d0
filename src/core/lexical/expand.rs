//! Adds to a query what its words may stand for: the forms of [`concepts`](super::concepts).

use super::background;
use super::concepts::{self, Concept, MAX_DENSE, MAX_PHRASE, Nearness};
use super::languages::LANGUAGES;
use super::query::{Form, MAX_UNITS, Query, Unit, What};
use super::terms::{Kind, key};

/// Weights of the other words of a concept, and the share of the coverage that they earn.
const SAME_FACTOR: f32 = 0.8;
const SAME_EARNED: f32 = 0.9;
const NEAR_FACTOR: f32 = 0.6;
const NEAR_EARNED: f32 = 0.5;
const PHRASE_FACTOR: f32 = 0.8;
const FOREIGN_FACTOR: f32 = 0.7;
const FOREIGN_EARNED: f32 = 0.9;
/// A word that a larger share of all tools holds is read as English, even where it is a word elsewhere (`data`).
const ENGLISH_SHARE: f32 = 0.001;
/// A word that is part of a phrase with a meaning of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phrase {
    word: usize,
    concept: &'static Concept,
    /// Length of the phrase.
    words: usize,
}

impl Query {
    /// Makes a unit of every concept in a stretch of a script without spaces, the longest first.
    pub(super) fn add_dense_concepts(&mut self, text: &str) {
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
                let start = self.texts.len();
                self.texts.extend(&self.run[at - length..at]);
                let text = start..self.texts.len();
                self.units.push(Unit::of_dense_concept(first, count, text));
            }
        }
    }

    /// Adds the words of a concept to the forms from `first` on, each once.
    fn add_concept(&mut self, first: usize, concept: &'static Concept, factor: f32, earned: f32) {
        for member in &concept.members {
            if !self.forms[first..].iter().any(|form| form.key == member.key) {
                self.forms.push(Form {
                    key: member.key,
                    factor,
                    earned,
                    instead: true,
                    what: What::Concept(member),
                });
            }
        }
    }

    /// Finds the phrases of the query that are concepts.
    pub(super) fn find_phrases(&mut self) {
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

    /// Adds the stems of a word that is not English, as tools described in its language hold it.
    fn add_foreign_stems(&mut self, number: usize, first: usize) {
        let word = &self.words[number];
        let weight = word.full_weight();
        for language in LANGUAGES {
            let key = key(Kind::Foreign, &language.stem(&self.texts[word.text.clone()]));
            if !self.forms[first..].iter().any(|form| form.key == key) {
                let factor = FOREIGN_FACTOR * weight;
                self.forms.push(Form {
                    key,
                    factor,
                    earned: FOREIGN_EARNED,
                    instead: true,
                    what: What::Stem,
                });
            }
        }
    }

    /// Adds what a word, alone or in a phrase, may stand for.
    pub(super) fn add_word_concepts(&mut self, number: usize, first: usize) {
        let word = &self.words[number];
        let weight = word.full_weight();
        let stem = &self.texts[word.stem.clone()];
        let text = &self.texts[word.text.clone()];
        let is_english = if text.is_ascii() && !self.may_be_foreign {
            true
        } else {
            background::share_of(key(Kind::Stem, stem)).is_some_and(|share| share > ENGLISH_SHARE)
        };
        let foreign = if is_english { None } else { concepts::of_foreign(text) };
        let phrase = concepts::phrase_key(std::iter::once(stem));
        if !is_english {
            self.add_foreign_stems(number, first);
        }
        let mut known = false;
        for concept in concepts::of_phrase(phrase) {
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
}
