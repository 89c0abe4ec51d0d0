//! A query as units: the words that a tool should match, each with the forms in which a tool may hold it.

use std::ops::Range;

use super::addresses::name_addresses;
use super::analyzer::{Class, Tokens, fold, is_word, stem};
use super::directives::MAX_REQUIRED;
use super::expand::{Phrase, Span, join_korean};
use super::languages::{is_any_function_word, language_of};
use super::lexicon::{Meaning, Member, is_action, of_accented};
use super::overview::Overview;
use super::schema::clip;
use super::stopwords::{
    cut_dense_filler, filler_phrase, is_dense_grammar, is_shared_stop, is_stop, query_weight,
};
use super::terms::{Kind, characters_key, joined_key, key};

/// Characters of a query that are read (the limit of the API).
const MAX_QUERY_CHARS: usize = 2_000;
/// Function words of another language from which on they are dropped like English ones.
const FEWEST_FUNCTION_WORDS: usize = 2;
/// Distinct words of a query that are searched.
pub(super) const MAX_UNITS: usize = 200;

/// Weights of the kinds of terms, from the ranking trial. A joined form weighs half of what it did there, because each of
/// the words that it joins brings it in.
const RAW_FACTOR: f32 = 0.2;
const PAIR_FACTOR: f32 = 0.5;
const SINGLE_FACTOR: f32 = 0.1;
pub(super) const LONE_FACTOR: f32 = 0.5;
const JOINED_FACTOR: f32 = 0.3;
/// Weight of a function word or a word of filler in a query without any other: tools that have it in their names stand
/// below the floor of matches.
const FILLER_WEIGHT: f32 = 0.1;
/// What the words of a verb like `turn off`, which has a meaning of its own, count for by themselves.
const PARTICLE_VERB: f32 = 0.4;
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
    pub(super) what: What,
}

/// How a form came about.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Stem,
    Word,
    Pair,
    /// Two words of the query as one, one as two of a tool's, or the identifier that it is part of.
    Joined,
    Concept(&'static Member),
    Character,
    Split,
    Correction,
}

impl Form {
    pub(super) fn plain(what: What, key: u64, factor: f32) -> Self {
        Self { key, factor, earned: 1.0, instead: false, what }
    }
}

/// Something that the query asks for.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// The unit's forms are `forms[first..first + count]` of the query, the plainest first.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Share in the coverage, to be multiplied by rarity; 0 for a unit that only adds to scores.
    pub(super) cover: f32,
    /// Weight of its words and repetitions, by which the factors of forms found later are multiplied.
    pub(super) weight: f32,
    /// Set in the marks of the candidates that match it.
    pub(super) mark: u32,
    /// Where its text stands in the query's texts.
    pub(super) text: Range<usize>,
    /// The word that it is, if it is one.
    pub(super) word: Option<usize>,
}

impl Unit {
    /// A concept, or a part of it, found in a script without spaces.
    pub(super) fn of_dense_concept(
        first: usize,
        count: usize,
        cover: f32,
        mark: u32,
        text: Range<usize>,
    ) -> Self {
        Self { first, count, cover, weight: 1.0, mark, text, word: None }
    }
}

/// Marks: the first bits are required words, in the order of the query.
pub(super) const SERVICE_MARK: u32 = 1 << 31;
pub(super) const ACTION_MARK: u32 = 1 << 29;
pub(super) const GROUP_MARK: u32 = 1 << 30;

/// A content word; its text and stem stand in `Query::texts`.
#[derive(Debug)]
pub(super) struct QueryWord {
    pub(super) text: Range<usize>,
    pub(super) stem: Range<usize>,
    pub(super) weight: f32,
    count: u16,
    /// Joined form of the identifier that the word is part of.
    joined: Option<u64>,
    mark: u32,
    /// Read as a word of another language.
    pub(super) is_foreign: bool,
}

/// A word that no tool holds, and what it was taken for: its parts, or the nearest word.
#[derive(Debug)]
pub(super) struct Repair {
    pub(super) word: usize,
    pub(super) becomes: Vec<String>,
}

/// An analysed query. A buffer: reading the next query reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) units: Vec<Unit>,
    pub(super) forms: Vec<Form>,
    pub(super) words: Vec<QueryWord>,
    pub(super) texts: String,
    /// Content words; 0 when the query is empty or filler alone.
    pub(super) terms: usize,
    /// Filler alone, read because there is nothing else.
    pub(super) is_filler: bool,
    tokens: Tokens,
    buffer: String,
    /// The content words as they stand in the query: place among all its words, number in `words`.
    pub(super) sequence: Vec<(usize, usize)>,
    /// All words with their stems as they stand in the query, for phrases (`log in`); the number of those that are content words.
    pub(super) spoken: Vec<(Range<usize>, Option<usize>)>,
    /// A stretch of a script without spaces, and which of its characters belong to a concept.
    pub(super) run: Vec<char>,
    pub(super) covered: Vec<bool>,
    pub(super) spans: Vec<Span>,
    pub(super) phrases: Vec<Phrase>,
    /// Words that are those of another language with the accents that they have in the query: key of the folded word.
    accented: Vec<(u64, &'static [Meaning])>,
    /// Whether it has letters that English has not.
    has_foreign_letters: bool,
    /// No sentence of English, as far as its letters and function words tell.
    pub(super) may_be_foreign: bool,
    /// A text of another language, by the same signs or by its words.
    pub(super) is_foreign: bool,
    pub(super) overview: Overview,
    /// Names of the concepts that its words in other languages stand for.
    pub(super) translated: Vec<&'static str>,
    /// Names of the concepts that its words may stand for, with what each counts.
    pub(super) reading: Vec<(&'static str, f32)>,
}

/// The part of a query that is read.
pub(super) fn clip_query(query: &str) -> &str {
    clip(query, MAX_QUERY_CHARS)
}

/// Letters that Vietnamese alone has among languages in Latin letters.
fn is_vietnamese(c: char) -> bool {
    matches!(c, '\u{1ea0}'..='\u{1ef9}' | 'ơ' | 'ư' | 'đ' | 'Ơ' | 'Ư' | 'Đ')
}

pub(super) fn keep(texts: &mut String, text: &str) -> Range<usize> {
    let start = texts.len();
    texts.push_str(text);
    start..texts.len()
}

impl QueryWord {
    /// Its weight with its repetitions.
    pub(super) fn full_weight(&self) -> f32 {
        self.weight * f32::from(self.count).powf(REPEAT_POWER)
    }
}

impl Query {
    /// The words that say what is meant, with what each counts: content words, mended where they were, and the concepts that they
    /// may stand for.
    pub(super) fn meaning<'a>(&'a self, repairs: &'a [Repair]) -> impl Iterator<Item = (&'a str, f32)> {
        let own = self.words.iter().enumerate().filter(|(_, word)| !word.is_foreign);
        let own = own.flat_map(move |(number, word)| {
            let repair = repairs.iter().find(|repair| repair.word == number);
            let own = repair.is_none().then(|| &self.texts[word.text.clone()]);
            let mended = repair.into_iter().flat_map(|repair| repair.becomes.iter().map(String::as_str));
            own.into_iter().chain(mended).map(|text| (text, word.full_weight()))
        });
        own.chain(self.reading.iter().map(|&(head, weight)| (head, weight)))
    }

    /// Whether it asks what tools there are.
    pub(super) fn asks_for_all(&self) -> bool {
        self.overview.asked()
    }

    /// The text of a unit, folded.
    pub(super) fn text(&self, unit: &Unit) -> &str {
        &self.texts[unit.text.clone()]
    }

    /// The word of a unit that may be repaired when no tool holds it. The name of a service is what it is.
    pub(super) fn repairable(&self, unit: &Unit) -> Option<&str> {
        (unit.word.is_some() && unit.mark & SERVICE_MARK == 0).then(|| self.text(unit))
    }

    /// Marks the words that must match, each with a bit of its own.
    fn require(&mut self, required: &[&str], tokens: &mut Tokens) {
        let mut bit = 0;
        for term in required {
            tokens.read(term);
            for (_, text) in tokens.iter().filter(|(class, _)| *class == Class::Word) {
                let stem = stem(text);
                let word = self.words.iter_mut().find(|word| self.texts[word.stem.clone()] == *stem);
                if let Some(word) = word.filter(|word| word.mark == 0 && bit < MAX_REQUIRED) {
                    word.mark = 1 << bit;
                    bit += 1;
                }
            }
        }
    }

    /// Replaces the content by the units of `query`, which [`clip_query`] has cut.
    pub(super) fn read(&mut self, query: &str, required: &[&str]) {
        let mut tokens = std::mem::take(&mut self.tokens);
        let mut buffer = std::mem::take(&mut self.buffer);
        let query = &*name_addresses(query);
        let query = &*join_korean(query);
        self.find_accented(query);
        tokens.read(cut_dense_filler(query, &mut buffer));
        self.is_filler = false;
        self.collect(&tokens, true);
        self.terms = self.words.len() + self.units.iter().filter(|unit| unit.cover > 0.0).count();
        self.is_filler = self.terms == 0;
        if self.is_filler {
            tokens.read(query);
            self.collect(&tokens, false);
        }
        self.require(required, &mut tokens);
        self.add_words();
        self.tokens = tokens;
        self.buffer = buffer;
    }

    /// Fills `accented`: folding takes the accents away, so the query is looked at as it was typed.
    fn find_accented(&mut self, query: &str) {
        self.accented.clear();
        self.has_foreign_letters = query.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
        if query.is_ascii() {
            return;
        }
        for word in query.split(|c| !is_word(c)).filter(|word| !word.is_ascii()) {
            let meanings = of_accented(word);
            // In Vietnamese a word with other marks is another word.
            if !meanings.is_empty() || word.chars().any(is_vietnamese) {
                fold(word, &mut self.run);
                let folded = characters_key(Kind::Raw, self.run.iter().flat_map(|c| c.to_lowercase()));
                if self.accented.len() < MAX_UNITS && !self.accented.iter().any(|(known, _)| *known == folded)
                {
                    self.accented.push((folded, meanings));
                }
            }
        }
    }

    /// The meanings of a folded word that has the accents of another language's word in the query.
    pub(super) fn accented(&self, text: &str) -> Option<&'static [Meaning]> {
        if self.accented.is_empty() {
            return None;
        }
        let folded = key(Kind::Raw, text);
        self.accented.iter().find(|(word, _)| *word == folded).map(|(_, meanings)| *meanings)
    }

    /// Fills the words and the units of scripts without spaces.
    fn collect(&mut self, tokens: &Tokens, skip_filler: bool) {
        self.units.clear();
        self.forms.clear();
        self.words.clear();
        self.texts.clear();
        self.sequence.clear();
        self.spoken.clear();
        self.reading.clear();
        self.translated.clear();
        self.overview = Overview::default();
        let plain: Vec<&str> =
            tokens.iter().filter(|(class, _)| *class == Class::Word).map(|(_, text)| text).collect();
        // `thẻ` is no `the`.
        let is_english = |query: &Self, word: &str| is_stop(word) && query.accented(word).is_none();
        let language =
            language_of(plain.iter().copied(), FEWEST_FUNCTION_WORDS, |word| is_english(self, word));
        let hints_at_another = |word: &&str| is_any_function_word(word) && !is_stop(word);
        let tells_english = |word: &&str| is_english(self, word) && !is_shared_stop(word);
        let is_foreign = self.has_foreign_letters || language.is_some();
        self.may_be_foreign = self.has_foreign_letters
            || !plain.iter().any(tells_english)
            || plain.iter().any(hints_at_another);
        self.is_foreign = is_foreign;
        let is_function_word = |word: &str| language.is_some_and(|language| language.is_function_word(word));
        let (mut place, mut skip_until, mut bigram, mut goes_on) = (0, 0, 0, false);
        for (class, text) in tokens.iter() {
            match class {
                Class::Word => {
                    self.overview.word(text);
                    if skip_filler && place >= skip_until {
                        skip_until = place + filler_phrase(&plain[place..]);
                    }
                    if !(skip_filler
                        && (place < skip_until || is_english(self, text) || is_function_word(text)))
                    {
                        self.add_word(place, text);
                    }
                    let word = self.sequence.last().filter(|(at, _)| *at == place).map(|(_, word)| *word);
                    if self.spoken.len() < MAX_UNITS {
                        let stem = match word {
                            Some(word) => self.words[word].stem.clone(),
                            None => keep(&mut self.texts, &stem(text)),
                        };
                        self.spoken.push((stem, word));
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
                    if !goes_on {
                        self.covered.clear();
                    }
                    self.add_dense_concepts(text);
                    bigram = 0;
                }
                Class::Bigram => {
                    self.add_bigram(text, bigram);
                    bigram += 1;
                }
                Class::Single => self.add_single(text),
            }
            goes_on = class == Class::Run;
        }
    }

    fn add_word(&mut self, place: usize, text: &str) {
        let stem = stem(text);
        let known = self.words.iter().position(|word| self.texts[word.stem.clone()] == stem);
        let number = known.unwrap_or(self.words.len());
        if let Some(word) = self.words.get_mut(number) {
            word.count = word.count.saturating_add(1);
        } else if self.words.len() < MAX_UNITS {
            let weight = if self.is_filler { FILLER_WEIGHT } else { query_weight(text) };
            let text = keep(&mut self.texts, text);
            let stem = keep(&mut self.texts, &stem);
            self.words.push(QueryWord {
                text,
                stem,
                weight,
                count: 1,
                joined: None,
                mark: 0,
                is_foreign: false,
            });
        } else {
            return;
        }
        self.sequence.push((place, number));
    }

    fn add_bigram(&mut self, text: &str, place: usize) {
        let bigram = key(Kind::Stem, text);
        if self.units.len() >= MAX_UNITS || self.forms.iter().any(|form| form.key == bigram) {
            return;
        }
        let first = self.forms.len();
        self.forms.push(Form::plain(What::Character, bigram, 1.0));
        if text.chars().nth(1).is_none() {
            // A lone character is all there is to go by, also where a tool has it inside a longer run.
            self.forms.push(Form::plain(What::Character, key(Kind::Single, text), LONE_FACTOR));
        }
        let count = self.forms.len() - first;
        // Known concepts have been counted, and so have the words between them that are grammar alone.
        let known = self.covered.iter().skip(place).copied().chain(std::iter::repeat(false));
        let covered = text.chars().zip(known).all(|(c, known)| known || is_dense_grammar(c));
        let grammar = text.chars().all(|c| matches!(c, '\u{3040}'..='\u{309f}'));
        let cover = if covered || grammar { 0.0 } else { BIGRAM_COVERAGE };
        let text = keep(&mut self.texts, text);
        self.units.push(Unit { first, count, cover, weight: 1.0, mark: 0, text, word: None });
    }

    fn add_single(&mut self, text: &str) {
        let key = key(Kind::Single, text);
        if self.units.len() < MAX_UNITS && !self.forms.iter().any(|form| form.key == key) {
            let text = keep(&mut self.texts, text);
            let first = self.forms.len();
            self.units.push(Unit { first, count: 1, cover: 0.0, weight: 1.0, mark: 0, text, word: None });
            self.forms.push(Form::plain(What::Character, key, SINGLE_FACTOR));
        }
    }

    /// Makes a unit of every word, and one of every two words that stand together.
    fn add_words(&mut self) {
        self.find_phrases();
        self.look_for_foreign_words();
        for number in 0..self.words.len() {
            let first = self.forms.len();
            let word = &self.words[number];
            let (text, stem) = (&self.texts[word.text.clone()], &self.texts[word.stem.clone()]);
            // `turn` in `turn off` is no turn.
            let weight =
                word.full_weight() * if self.is_in_particle_verb(number) { PARTICLE_VERB } else { 1.0 };
            let mut add = |what: What, key: u64, factor: f32| {
                if !self.forms[first..].iter().any(|form| form.key == key) {
                    self.forms.push(Form::plain(what, key, factor * weight));
                }
            };
            if stem == text {
                add(What::Word, key(Kind::Stem, stem), 1.0 + RAW_FACTOR);
            } else {
                add(What::Stem, key(Kind::Stem, stem), 1.0);
                add(What::Word, key(Kind::Raw, text), RAW_FACTOR);
            }
            // `filesystem` where a tool writes `file system`; the identifier whole; and `git hub` where it writes `github`.
            add(What::Joined, key(Kind::Pair, stem), JOINED_FACTOR);
            if let Some(joined) = word.joined {
                add(What::Joined, joined, JOINED_FACTOR);
            }
            for pair in self.sequence.windows(2).filter(|pair| pair[0].1 == number || pair[1].1 == number) {
                let (before, after) = (&self.words[pair[0].1], &self.words[pair[1].1]);
                let (before, after) = (&self.texts[before.text.clone()], &self.texts[after.stem.clone()]);
                add(What::Joined, joined_key(Kind::Stem, before, after), JOINED_FACTOR);
            }
            let stem = key(Kind::Stem, stem);
            let service = if self.names_service(number) { SERVICE_MARK } else { 0 };
            let (cover, mark, text) = (word.weight, word.mark | service, word.text.clone());
            let acts = is_action(stem) | self.add_word_concepts(number, first);
            let mark = mark | if acts { ACTION_MARK } else { 0 };
            let count = self.forms.len() - first;
            self.units.push(Unit { first, count, cover, weight, mark, text, word: Some(number) });
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
            let text = self.texts.len();
            self.texts.extend_from_within(before.text.clone());
            self.texts.push(' ');
            self.texts.extend_from_within(after.text.clone());
            let (first, text) = (self.forms.len(), text..self.texts.len());
            self.units.push(Unit { first, count: 1, cover: 0.0, weight, mark: 0, text, word: None });
            self.forms.push(Form::plain(What::Pair, key, PAIR_FACTOR * weight));
        }
    }
}
