//! Adds to a query what its words may stand for: the forms of [`concepts`].

use super::background;
use super::concepts::{self, Concept, MAX_DENSE, MAX_PHRASE, Nearness};
use super::languages::LANGUAGES;
use super::query::{Form, LONE_FACTOR, MAX_UNITS, Query, Unit, What};
use super::stopwords::is_dense_grammar;
use super::terms::{Kind, characters_key, key};

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

/// A concept in a stretch of a script without spaces: its first character and its length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: usize,
    length: usize,
    concept: &'static Concept,
}

/// A word that is part of a phrase with a meaning of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phrase {
    word: usize,
    concept: &'static Concept,
    /// Length of the phrase.
    words: usize,
}

impl Query {
    /// Makes units of the concepts in a stretch of a script without spaces, the longest first. `covered` goes on where the
    /// stretch before ended.
    pub(super) fn add_dense_concepts(&mut self, text: &str) {
        self.run.clear();
        self.run.extend(text.chars());
        let before = self.covered.len();
        self.covered.resize(before + self.run.len(), false);
        self.spans.clear();
        let mut at = 0;
        while at < self.run.len() {
            let longest = MAX_DENSE.min(self.run.len() - at);
            let found = (1..=longest)
                .rev()
                .find_map(|length| Some((length, concepts::of_dense(&self.run[at..at + length])?)));
            if let Some((length, concept)) = found {
                self.spans.push(Span { start: at, length, concept });
                at += length;
            } else {
                at += 1;
            }
        }
        while let Some(part) = (0..self.spans.len()).find(|&number| self.is_part_of_a_word(number)) {
            self.spans.remove(part);
        }
        for number in 0..self.spans.len() {
            let Span { start, length, concept } = self.spans[number];
            self.covered[before + start..before + start + length].fill(true);
            self.add_dense_concept(start, length, concept);
        }
    }

    /// A single character is a word only between other words: `本` is a book, in `日本` it is none.
    fn is_part_of_a_word(&self, number: usize) -> bool {
        let Span { start, length, .. } = self.spans[number];
        let known = |at: usize| {
            let spans = &self.spans[number.saturating_sub(1)..self.spans.len().min(number + 2)];
            spans.iter().any(|span| (span.start..span.start + span.length).contains(&at))
        };
        let ends = |at: usize| self.run.get(at).is_none_or(|&c| known(at) || is_dense_grammar(c));
        length == 1 && !(start.checked_sub(1).is_none_or(ends) && ends(start + 1))
    }

    /// Makes a unit of each two characters of a concept: of what they stand for, and of themselves.
    fn add_dense_concept(&mut self, start: usize, length: usize, concept: &'static Concept) {
        let text = self.texts.len();
        self.texts.extend(&self.run[start..start + length]);
        let text = text..self.texts.len();
        let pairs = length.max(2) - 1;
        let share = 1.0 / pairs as f32;
        for pair in start..start + pairs {
            let characters = || self.run[pair..(start + length).min(pair + 2)].iter().copied();
            let own = characters_key(Kind::Stem, characters());
            let single = characters_key(Kind::Single, characters());
            if self.units.len() >= MAX_UNITS {
                return;
            }
            let first = self.forms.len();
            let repeated = self.forms.iter().any(|form| form.key == own);
            self.add_concept(first, concept, FOREIGN_FACTOR * share, FOREIGN_EARNED);
            if !repeated {
                self.forms.push(Form::plain(What::Character, own, 1.0));
            }
            if length == 1 && !repeated {
                self.forms.push(Form::plain(What::Character, single, LONE_FACTOR));
            }
            let count = self.forms.len() - first;
            self.units.push(Unit::of_dense_concept(first, count, share, text.clone()));
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
        let accented = self.accented(text);
        let is_english = if accented.is_some() {
            false
        } else if text.is_ascii() && !self.may_be_foreign {
            true
        } else {
            background::share_of(key(Kind::Stem, stem)).is_some_and(|share| share > ENGLISH_SHARE)
        };
        let foreign = accented.or_else(|| if is_english { None } else { concepts::of_foreign(text) });
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
        if let Some(concept) = foreign.filter(|_| !known || accented.is_some()) {
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
