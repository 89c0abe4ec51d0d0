//! Adds to a query what its words may stand for: the forms of the [`lexicon`].

use super::background;
use super::languages::LANGUAGES;
use super::lexicon::{self, MAX_DENSE, MAX_PHRASE, Meaning, Role};
use super::query::{Form, LONE_FACTOR, MAX_UNITS, Query, Unit, What};
use super::stopwords::is_dense_grammar;
use super::terms::{Kind, characters_key, key};

/// Weight of a concept's own words, and of the words near it, for a query that has it by one of its own words, by a near
/// one, or by a word of another language; and the share of the coverage that each earns.
const SAME: Factors = Factors { same: (0.8, 0.9), near: (0.4, 0.5) };
const NEAR: Factors = Factors { same: (0.5, 0.5), near: (0.2, 0.4) };
const FOREIGN: Factors = Factors { same: (0.9, 0.9), near: (0.4, 0.5) };
/// What a word that means other things as well keeps of that.
const AMBIGUOUS_FACTOR: f32 = 0.8;
const PHRASE_FACTOR: f32 = 0.8;
const FOREIGN_FACTOR: f32 = 0.7;
const FOREIGN_EARNED: f32 = 0.9;
/// What the name of a concept counts for when likeness is compared, for a word of its own, a phrase, and a word of another language,
/// which is left out itself.
const READ_WORD: f32 = 0.35;
const READ_PHRASE: f32 = 0.6;
const READ_FOREIGN: f32 = 1.0;
/// A word that a larger share of all tools holds is read as English, even where it is a word elsewhere (`data`).
const ENGLISH_SHARE: f32 = 0.001;

#[derive(Debug, Clone, Copy)]
struct Factors {
    same: (f32, f32),
    near: (f32, f32),
}

/// A concept in a stretch of a script without spaces: its first character and its length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: usize,
    length: usize,
    meanings: &'static [Meaning],
}

/// A word that is part of a phrase with a meaning of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phrase {
    word: usize,
    meanings: &'static [Meaning],
    /// Content words of the phrase.
    words: usize,
    /// For a phrase that is the name of a service: whether the word tells it from others of its maker.
    service: Option<bool>,
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
            let spans =
                (1..=longest).rev().map(|length| (length, lexicon::of_dense(&self.run[at..at + length])));
            if let Some((length, meanings)) = spans.into_iter().find(|(_, meanings)| !meanings.is_empty()) {
                self.spans.push(Span { start: at, length, meanings });
                at += length;
            } else {
                at += 1;
            }
        }
        while let Some(part) = (0..self.spans.len()).find(|&number| self.is_part_of_a_word(number)) {
            self.spans.remove(part);
        }
        for number in 0..self.spans.len() {
            let Span { start, length, meanings } = self.spans[number];
            self.overview.concept(meanings);
            self.read_as(meanings, READ_FOREIGN);
            self.covered[before + start..before + start + length].fill(true);
            self.add_dense_concept(start, length, meanings);
        }
        let unknown = self.run.iter().zip(&self.covered[before..]).filter(|(_, covered)| !**covered);
        unknown.for_each(|(&character, _)| self.overview.character(character));
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
    fn add_dense_concept(&mut self, start: usize, length: usize, meanings: &'static [Meaning]) {
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
            self.add_meanings(first, meanings, share);
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

    /// Takes down what a word may mean, in the words that tools use.
    fn read_as(&mut self, meanings: &[Meaning], weight: f32) {
        let share = weight / meanings.len().max(1) as f32;
        let room = MAX_UNITS.saturating_sub(self.reading.len());
        self.reading.extend(meanings.iter().take(room).map(|meaning| (meaning.concept().head, share)));
    }

    /// Adds the words of concepts to the forms from `first` on, each once.
    fn add_meanings(&mut self, first: usize, meanings: &[Meaning], weight: f32) {
        let several = meanings.len() > 1;
        for meaning in meanings {
            let factors = match meaning.role {
                Role::Same => SAME,
                Role::Near => NEAR,
                Role::Foreign => FOREIGN,
            };
            let sure = |ambiguous: bool| if ambiguous { AMBIGUOUS_FACTOR } else { 1.0 };
            for member in &meaning.concept().members {
                if self.forms[first..].iter().any(|form| form.key == member.key) {
                    continue;
                }
                let (factor, earned) = if member.role == Role::Same { factors.same } else { factors.near };
                self.forms.push(Form {
                    key: member.key,
                    factor: factor * weight * sure(meaning.ambiguous || several) * sure(member.ambiguous),
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
            for window in self.spoken.windows(length) {
                let stems = window.iter().map(|(stem, _)| &self.texts[stem.clone()]);
                let key = lexicon::phrase_key(stems);
                let meanings = lexicon::of_phrase(key);
                if meanings.is_empty() {
                    continue;
                }
                let service = lexicon::is_service_phrase(key);
                let words = window.iter().filter(|(_, word)| word.is_some()).count();
                let phrase = |(at, word)| Phrase {
                    word,
                    meanings,
                    words,
                    // The last one: `drive` of `google drive`.
                    service: service.then_some(at + 1 == words),
                };
                let content = window.iter().filter_map(|(_, word)| *word);
                self.phrases.extend(content.enumerate().map(phrase));
            }
        }
    }

    /// Whether a word names a service, alone or as the part of a phrase that tells it.
    pub(super) fn names_service(&self, number: usize) -> bool {
        let in_phrase =
            self.phrases.iter().filter(|phrase| phrase.word == number).find_map(|phrase| phrase.service);
        in_phrase.unwrap_or_else(|| lexicon::is_service(&self.texts[self.words[number].text.clone()]))
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
        let share = background::share_of(key(Kind::Stem, stem));
        let least = if text.is_ascii() && !self.may_be_foreign { 0.0 } else { ENGLISH_SHARE };
        let is_english = accented.is_empty() && share.is_some_and(|share| share > least);
        let foreign = if accented.is_empty() && !is_english { lexicon::of_foreign(text) } else { accented };
        let phrase = lexicon::phrase_key(std::iter::once(stem));
        if !is_english {
            self.add_foreign_stems(number, first);
        }
        let english = lexicon::of_phrase(phrase);
        self.add_meanings(first, english, weight);
        self.read_as(english, READ_WORD);
        if english.is_empty() || !accented.is_empty() {
            self.add_meanings(first, foreign, weight);
            self.read_as(foreign, READ_FOREIGN);
            // A word that is neither English nor known says nothing about meaning.
            self.words[number].is_foreign = !foreign.is_empty() || (self.is_foreign && share.is_none());
        }
        for at in 0..self.phrases.len() {
            let Phrase { word, meanings, words, .. } = self.phrases[at];
            if word == number {
                self.add_meanings(first, meanings, PHRASE_FACTOR * weight / words as f32);
                self.read_as(meanings, READ_PHRASE / words as f32);
            }
        }
    }
}
