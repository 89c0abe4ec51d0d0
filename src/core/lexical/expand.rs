//! Adds to a query what its words may stand for: the forms of the [`lexicon`].

use std::borrow::Cow;

use super::background;
use super::languages::LANGUAGES;
use super::lexicon::{self, MAX_DENSE, MAX_PHRASE, Meaning, Role};
use super::query::{ACTION_MARK, Form, LONE_FACTOR, MAX_UNITS, Query, Unit, What, clip_query};
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
/// What a reading in another language keeps that nothing else in the query speaks for.
const UNSURE_FACTOR: f32 = 0.5;
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
    /// Content words of the phrase, and whether it has function words too.
    words: usize,
    particle: bool,
    /// For a phrase that is the name of a service: whether the word tells it from others of its maker.
    service: Option<bool>,
}

/// `query` without the spaces inside the Korean words of the lexicon, which people write or leave out (`환경 변수`).
pub(super) fn join_korean(query: &str) -> Cow<'_, str> {
    let is_hangul = |c: char| ('\u{ac00}'..='\u{d7a3}').contains(&c);
    if !query.contains(is_hangul) {
        return Cow::Borrowed(query);
    }
    let mut joined = String::with_capacity(query.len());
    let mut words = query.split(' ').peekable();
    while let Some(word) = words.next() {
        joined.push_str(word);
        let Some(next) = words.peek() else { break };
        let mut letters: Vec<char> = word.chars().filter(|&c| is_hangul(c)).collect();
        let own = letters.len();
        letters.extend(next.chars().take_while(|&c| is_hangul(c)).take(MAX_DENSE.saturating_sub(own)));
        let one = own > 0
            && word.chars().all(is_hangul)
            && (own + 1..=letters.len()).any(|length| !lexicon::of_dense(&letters[..length]).is_empty());
        if !one {
            joined.push(' ');
        }
    }
    Cow::Owned(joined)
}

/// English words for those of a text in other languages, as far as the lexicon has them.
pub fn translated(text: &str) -> Vec<&'static str> {
    // Letters of English alone: it is, or another language that is written without accents, which costs too much to find out.
    if !text.chars().any(|c| c.is_alphabetic() && !c.is_ascii()) {
        return Vec::new();
    }
    let mut query = Query::default();
    query.read(clip_query(text), &[]);
    query.translated
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
            self.translated.extend(meanings.first().map(|meaning| meaning.concept().head));
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
        let acts = meanings.first().is_some_and(|meaning| meaning.concept().acts);
        let mark = if acts { ACTION_MARK } else { 0 };
        for pair in start..start + pairs {
            let characters = || self.run[pair..(start + length).min(pair + 2)].iter().copied();
            let own = characters_key(Kind::Stem, characters());
            let single = characters_key(Kind::Single, characters());
            if self.units.len() >= MAX_UNITS {
                return;
            }
            let first = self.forms.len();
            let repeated = self.forms.iter().any(|form| form.key == own);
            if !repeated {
                self.forms.push(Form::plain(What::Character, own, 1.0));
            }
            if length == 1 && !repeated {
                self.forms.push(Form::plain(What::Character, single, LONE_FACTOR));
            }
            self.add_meanings(first, meanings, share);
            let count = self.forms.len() - first;
            self.units.push(Unit::of_dense_concept(first, count, share, mark, text.clone()));
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
                let (factor, earned) = if member.role == Role::Same { factors.same } else { factors.near };
                let factor = factor * weight * sure(meaning.ambiguous || several) * sure(member.ambiguous);
                match self.forms[first..].iter_mut().find(|form| form.key == member.key) {
                    // The nearest of several concepts counts.
                    Some(form) if form.instead && form.factor < factor => {
                        (form.factor, form.earned) = (factor, earned.max(form.earned));
                    }
                    Some(_) => {}
                    None => self.forms.push(Form {
                        key: member.key,
                        factor,
                        earned,
                        instead: true,
                        what: What::Concept(member),
                    }),
                }
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
                    particle: words < length,
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

    /// Whether a word is read as English. One that tools at large hold is, unless the query may be of another language and it is rare.
    fn is_english(&self, text: &str, stem: &str) -> bool {
        if text.is_ascii() && !self.may_be_foreign {
            return true;
        }
        background::share_of(key(Kind::Stem, stem)).is_some_and(|share| share > ENGLISH_SHARE)
    }

    /// A query without function words may be of another language all the same: when several of its words are, and one of them as the
    /// lexicon has it. Stems alone tell nothing: some stemmer makes a word of any.
    pub(super) fn look_for_foreign_words(&mut self) {
        if self.is_foreign || !self.may_be_foreign {
            return;
        }
        let (mut exact, mut any) = (0, 0);
        for word in &self.words {
            let (text, stem) = (&self.texts[word.text.clone()], &self.texts[word.stem.clone()]);
            if text.is_ascii() && !self.is_english(text, stem) && !lexicon::of_foreign(text).is_empty() {
                any += 1;
                exact += usize::from(!lexicon::of_exact_foreign(text).is_empty());
            }
        }
        self.is_foreign = any >= 2 && exact >= 1;
    }

    /// Whether a word is part of a phrase that has a meaning only with the function word in it.
    pub(super) fn is_in_particle_verb(&self, number: usize) -> bool {
        let same = |meaning: &Meaning| meaning.role == Role::Same;
        self.phrases
            .iter()
            .any(|phrase| phrase.word == number && phrase.particle && phrase.meanings.iter().any(same))
    }

    /// Adds what a word, alone or in a phrase, may stand for.
    /// Whether one of that, in another language, is a verb that changes something.
    pub(super) fn add_word_concepts(&mut self, number: usize, first: usize) -> bool {
        let word = &self.words[number];
        let weight = word.full_weight();
        let stem = &self.texts[word.stem.clone()];
        let text = &self.texts[word.text.clone()];
        let accented = self.accented(text);
        let is_english = accented.is_none() && self.is_english(text, stem);
        let (foreign, sure) = match () {
            () if accented.is_some() => (accented.unwrap_or_default(), true),
            () if is_english => (&[][..], false),
            () if self.is_foreign || !text.is_ascii() => (lexicon::of_foreign(text), true),
            () => (lexicon::of_exact_foreign(text), false),
        };
        let english = lexicon::of_phrase(lexicon::phrase_key(std::iter::once(stem)));
        // The stem of an exact word of another language may be that of an English one: `Termin`, a date, is no terminal.
        let exact = sure && !foreign.is_empty() && !lexicon::is_english(text);
        let unheard = background::share_of(key(Kind::Stem, stem)).is_none();
        if !is_english {
            self.add_foreign_stems(number, first);
        }
        if !exact {
            self.add_meanings(first, english, weight);
            self.read_as(english, READ_WORD);
        }
        if english.is_empty() || accented.is_some() || exact {
            self.add_meanings(first, foreign, if sure { weight } else { UNSURE_FACTOR * weight });
            self.read_as(foreign, if sure { READ_FOREIGN } else { READ_WORD });
            // A word that is neither English nor known says nothing about meaning.
            let known = sure && !foreign.is_empty();
            self.translated.extend(foreign.first().filter(|_| sure).map(|meaning| meaning.concept().head));
            self.words[number].is_foreign = known || (self.is_foreign && unheard);
        }
        for at in 0..self.phrases.len() {
            let Phrase { word, meanings, words, .. } = self.phrases[at];
            if word == number {
                // More than its words by themselves: `قواعد البيانات` is a database, not a dataset.
                self.add_meanings(first, meanings, PHRASE_FACTOR * weight / (words as f32).sqrt());
                self.read_as(meanings, READ_PHRASE / words as f32);
            }
        }
        foreign.first().is_some_and(|meaning| sure && meaning.concept().acts)
    }
}
