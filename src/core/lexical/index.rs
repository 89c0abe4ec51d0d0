//! The inverted index of one catalog: which terms a tool holds, and what each is worth before rarity is known.
//!
//! Rarity (idf) is left to the search, because several indexes are searched as one.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use serde_json::Value;

use super::analyzer::{Class, Tokens, stem};
use super::background;
use super::expand::translated;
use super::languages::{is_any_function_word, language_of};
use super::lexicon::is_action;
use super::names::{Named, Names, group_keys, group_word_keys};
use super::schema::{SchemaText, clip, split_lead};
use super::spelling::{Counters, Near, Spelling};
use super::stopwords::is_stop;
use super::stuffing::Prose;
use super::terms::{KeyMap, Kind, TermTable, joined_key, key};

/// The searchable text of one tool.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Group (server) of the upload; may be empty.
    pub group: &'a str,
    pub name: &'a str,
    pub description: &'a str,
    /// The parameters as raw JSON Schema text. Text that is no JSON is read as plain words.
    pub parameters: &'a str,
    /// Phrases that people use for the tool, in any language.
    pub aliases: &'a [String],
}

/// A field of a tool. Weights and length norms (`b` of BM25F) follow the ranking trial; aliases, which it did not have,
/// weigh as much as the name and are hardly normalised, since a tool with many phrases is not less likely meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Name,
    Group,
    Lead,
    Rest,
    ParameterNames,
    ParameterTexts,
    Values,
    Aliases,
}

const FIELDS: [Field; FIELD_COUNT] = [
    Field::Name,
    Field::Group,
    Field::Lead,
    Field::Rest,
    Field::ParameterNames,
    Field::ParameterTexts,
    Field::Values,
    Field::Aliases,
];

impl Field {
    /// What a word in it counts, before its length.
    pub(super) fn weight(self) -> f32 {
        WEIGHTS[self as usize]
    }

    /// As explanations call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Group => "group",
            Self::Lead => "lead",
            Self::Rest => "description",
            Self::ParameterNames => "parameter",
            Self::ParameterTexts => "parameter_description",
            Self::Values => "value",
            Self::Aliases => "alias",
        }
    }
}

/// The fields of some documents that hold each term, by the term's key. Each document is read once, however many terms are asked
/// for.
pub(super) fn fields_by_term(documents: &[Document<'_>]) -> KeyMap<BTreeSet<Field>> {
    let mut builder = Builder::default();
    documents.iter().for_each(|document| builder.add(document));
    let mut fields: Vec<BTreeSet<Field>> = vec![BTreeSet::new(); builder.terms.len()];
    for entry in &builder.entries {
        fields[entry.term as usize].insert(FIELDS[usize::from(entry.field)]);
    }
    builder.terms.into_iter().map(|(key, term)| (key, std::mem::take(&mut fields[term as usize]))).collect()
}

const FIELD_COUNT: usize = 8;
const WEIGHTS: [f32; FIELD_COUNT] = [3.0, 1.0, 1.0, 0.3, 1.0, 0.4, 0.6, 3.0];
const LENGTH_NORMS: [f32; FIELD_COUNT] = [0.8, 0.6, 0.6, 0.5, 0.9, 0.6, 0.8, 0.3];
/// BM25's saturation of term frequency (k1; same source).
const SATURATION: f32 = 1.5;

/// Characters read of a name, a group or an alias.
const MAX_LABEL_CHARS: usize = 256;
/// Characters read of a description.
const MAX_DESCRIPTION_CHARS: usize = 6_000;
/// Characters read of all texts of one kind in the parameters.
const MAX_PARAMETER_CHARS: usize = 6_000;
/// Function words from which on a text is taken for one of another language.
const FEWEST_FUNCTION_WORDS: usize = 2;
/// Aliases read per document.
const MAX_ALIASES: usize = 100;

/// Steps of a stored impact; with the flag for the name it fills 16 bits.
const IMPACT_STEPS: f32 = 32_767.0;
/// The most a term can be worth before rarity: the limit of the saturation.
const MAX_IMPACT: f32 = SATURATION + 1.0;

/// An immutable index over the tools of one catalog. Documents are numbered from 0 in the order they were given.
#[derive(Default)]
pub struct Index {
    documents: usize,
    terms: TermTable,
    /// The postings of term `t` are `starts[t]..starts[t + 1]` of the two lists below, by document.
    starts: Vec<u32>,
    posting_documents: Vec<u32>,
    posting_impacts: Vec<Impact>,
    names: Names,
    /// By document.
    told: Vec<Told>,
    spelling: Spelling,
}

/// What a term is worth in a document, and whether it stands in its name or aliases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Impact(u16);

impl Impact {
    fn new(frequency: f32, in_name: bool) -> Self {
        let share = frequency / (frequency + SATURATION);
        // Bounded by the steps; at least one, so that a posting is never worth nothing.
        let steps = (share * IMPACT_STEPS).clamp(1.0, IMPACT_STEPS) as u16;
        Self(steps << 1 | u16::from(in_name))
    }

    /// 0 to [`MAX_IMPACT`].
    pub(super) fn value(self) -> f32 {
        f32::from(self.0 >> 1) * (MAX_IMPACT / IMPACT_STEPS)
    }

    pub(super) fn in_name(self) -> bool {
        self.0 & 1 == 1
    }
}

/// What is known of a document besides its terms.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    /// Words in its name.
    pub(super) words: u8,
    /// Its name says that the tool changes something (`create`, `send`).
    pub(super) acts: bool,
    /// Its texts are stuffed with words, see [`Prose`].
    pub(super) stuffed: bool,
}

/// The documents that hold a term.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Postings<'a> {
    pub(super) documents: &'a [u32],
    pub(super) impacts: &'a [Impact],
}

impl Index {
    /// Indexes `documents`. Never fails: what cannot be read is left out, and long texts are read in part.
    pub fn build<'a>(documents: impl Iterator<Item = Document<'a>>) -> Self {
        let mut builder = Builder::default();
        for document in documents {
            builder.add(&document);
        }
        builder.finish()
    }

    /// As [`Self::build`], of texts that nobody has reason to stuff: those of an administrator.
    pub fn trusting<'a>(documents: impl Iterator<Item = Document<'a>>) -> Self {
        let mut index = Self::build(documents);
        index.told.iter_mut().for_each(|told| told.stuffed = false);
        index
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.documents
    }

    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Approximate size on the heap, for weighing in caches.
    pub fn bytes(&self) -> usize {
        self.terms.bytes()
            + self.starts.len() * 4
            + self.posting_documents.len() * 6
            + self.names.bytes()
            + self.told.len() * size_of::<Told>()
            + self.spelling.bytes()
    }

    pub(super) fn postings(&self, key: u64) -> Postings<'_> {
        self.terms.find(key).map_or_else(Postings::default, |term| {
            let range = self.starts[term] as usize..self.starts[term + 1] as usize;
            Postings {
                documents: &self.posting_documents[range.clone()],
                impacts: &self.posting_impacts[range],
            }
        })
    }

    pub(super) fn told(&self, document: u32) -> Told {
        self.told.get(document as usize).copied().unwrap_or_default()
    }

    pub(super) fn named(&self, key: u64) -> impl Iterator<Item = Named> {
        self.names.find(key)
    }

    pub(super) fn near(&self, word: &str, counters: &mut Counters, near: &mut Vec<Near>) {
        self.spelling.find(word, counters, near);
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("documents", &self.documents)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// A word met before: what it adds to a document.
#[derive(Debug, Clone, Copy)]
struct Word {
    /// Where the word and its stem stand in the builder's texts.
    text: (u32, u32),
    stem: (u32, u32),
    stem_term: u32,
    raw_term: Option<u32>,
    stop: bool,
}

/// How often a term stands in a field of the document that the entry belongs to.
#[derive(Debug, Clone, Copy)]
struct Entry {
    term: u32,
    field: u8,
    count: u16,
}

/// Terms are numbered as they come while building, and renumbered by key at the end.
#[derive(Debug, Default)]
struct Builder {
    terms: KeyMap<u32>,
    words: KeyMap<Word>,
    /// Words and stems without a gap.
    texts: String,
    entries: Vec<Entry>,
    /// Per document: the end of its entries, and the words in each of its fields.
    documents: Vec<(usize, [u32; FIELD_COUNT])>,
    names: Names,
    tokens: Tokens,
    /// `term << 8 | field` for each occurrence in the current document.
    occurrences: Vec<u64>,
    lengths: [u32; FIELD_COUNT],
    told: Vec<Told>,
    /// The description and the aliases of the current document.
    prose: Prose,
    phrases: Prose,
    /// Terms that are verbs of change.
    action_terms: HashSet<u32>,
    /// Terms that tools at large hold.
    known: HashSet<u32>,
}

impl Builder {
    fn add(&mut self, document: &Document<'_>) {
        self.lengths = [0; FIELD_COUNT];
        self.field(Field::Name, clip(document.name, MAX_LABEL_CHARS));
        let words = u8::try_from(self.lengths[Field::Name as usize]).unwrap_or(u8::MAX);
        let mut terms = self.occurrences.iter().map(|occurrence| (occurrence >> 8) as u32);
        let acts = terms.any(|term| self.action_terms.contains(&term));
        self.told.push(Told { words, acts, stuffed: false });
        let group = clip(document.group, MAX_LABEL_CHARS);
        self.field(Field::Group, group);
        group_keys(group).chain(group_word_keys(group)).for_each(|key| self.count(Field::Group, key));
        let (lead, rest) = split_lead(clip(document.description, MAX_DESCRIPTION_CHARS));
        self.prose.begin();
        self.field(Field::Lead, lead);
        self.prose.end();
        for text in [document.name, lead] {
            // So that a request in any language finds a tool that is described in any other.
            self.field(Field::Lead, &translated(text).join(" "));
        }
        self.prose.begin();
        self.field(Field::Rest, rest);
        self.prose.end();
        self.phrases.begin();
        for alias in document.aliases.iter().take(MAX_ALIASES) {
            self.field(Field::Aliases, clip(alias, MAX_LABEL_CHARS));
        }
        self.phrases.end();
        match serde_json::from_str::<Value>(document.parameters) {
            Ok(schema) => {
                let text = SchemaText::of(&schema);
                self.texts(Field::ParameterNames, &text.names);
                self.texts(Field::ParameterTexts, &text.descriptions);
                self.texts(Field::Values, &text.values);
            }
            Err(_) => self.texts(Field::ParameterTexts, &[document.parameters]),
        }
        self.names.add(saturate(self.documents.len()), document.group, document.name);
        self.close_document();
    }

    fn texts(&mut self, field: Field, texts: &[&str]) {
        let mut left = MAX_PARAMETER_CHARS;
        for text in texts {
            let text = clip(text, left);
            self.field(field, text);
            left = left.saturating_sub(text.len());
        }
    }

    fn field(&mut self, field: Field, text: &str) {
        // Function words count only where a text is a label, so that a tool called `who_am_i` can be found by them.
        let keeps_stop_words = matches!(field, Field::Name | Field::Aliases);
        let has_pairs = matches!(field, Field::Name | Field::Lead | Field::Aliases);
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.read(text);
        let words = tokens.iter().filter(|(class, _)| *class == Class::Word).map(|(_, word)| word);
        let language = language_of(words, FEWEST_FUNCTION_WORDS, is_stop);
        let mut before: Option<Word> = None;
        for (class, text) in tokens.iter() {
            match class {
                Class::Word => {
                    let word = self.word(text);
                    self.prose.word(word.stop || is_any_function_word(text));
                    if word.stop && !keeps_stop_words {
                        continue;
                    }
                    self.count_word(field, word);
                    if !word.stop {
                        self.prose.content(word.stem_term);
                        self.phrases.content(word.stem_term);
                    }
                    if let Some(language) = language.filter(|language| !language.is_function_word(text)) {
                        self.count(field, key(Kind::Foreign, &language.stem(text)));
                    }
                    if has_pairs && !word.stop {
                        if let Some(before) = before {
                            let pair = joined_key(Kind::Pair, self.kept(before.stem), self.kept(word.stem));
                            self.count(field, pair);
                        }
                        before = Some(word);
                    }
                }
                Class::Joined { .. } => {
                    let word = self.word(text);
                    self.count_word(field, word);
                }
                Class::Bigram => {
                    self.count(field, key(Kind::Stem, text));
                    self.lengths[field as usize] += 1;
                }
                Class::Single => self.count(field, key(Kind::Single, text)),
                Class::Run => {}
            }
        }
        self.tokens = tokens;
    }

    fn word(&mut self, text: &str) -> Word {
        let raw_key = key(Kind::Raw, text);
        if let Some(word) = self.words.get(&raw_key) {
            return *word;
        }
        let stem = stem(text);
        let word = Word {
            text: self.keep(text),
            stem: self.keep(&stem),
            stem_term: self.term(key(Kind::Stem, &stem)),
            raw_term: (stem != text).then(|| self.term(raw_key)),
            stop: is_stop(text),
        };
        let stem_key = key(Kind::Stem, &stem);
        if is_action(stem_key) {
            self.action_terms.insert(word.stem_term);
        }
        if background::share_of(stem_key).is_some() {
            self.known.insert(word.stem_term);
        }
        self.words.insert(raw_key, word);
        word
    }

    fn keep(&mut self, text: &str) -> (u32, u32) {
        let start = saturate(self.texts.len());
        self.texts.push_str(text);
        (start, saturate(self.texts.len()))
    }

    fn kept(&self, (start, end): (u32, u32)) -> &str {
        &self.texts[start as usize..end as usize]
    }

    fn term(&mut self, key: u64) -> u32 {
        let next = saturate(self.terms.len());
        *self.terms.entry(key).or_insert(next)
    }

    fn count_word(&mut self, field: Field, word: Word) {
        for term in [Some(word.stem_term), word.raw_term].into_iter().flatten() {
            self.occurrences.push(u64::from(term) << 8 | field as u64);
        }
        self.lengths[field as usize] += 1;
    }

    fn count(&mut self, field: Field, key: u64) {
        let term = self.term(key);
        self.occurrences.push(u64::from(term) << 8 | field as u64);
    }

    fn close_document(&mut self) {
        self.occurrences.sort_unstable();
        let first = self.entries.len();
        for same in self.occurrences.chunk_by(|a, b| a == b) {
            let (term, field) = ((same[0] >> 8) as u32, same[0] as u8);
            self.entries.push(Entry { term, field, count: u16::try_from(same.len()).unwrap_or(u16::MAX) });
        }
        self.occurrences.clear();
        let stuffed = self.stuffed(&self.entries[first..]);
        if let Some(told) = self.told.last_mut() {
            told.stuffed = stuffed;
        }
        self.prose.clear();
        self.phrases.clear();
        self.documents.push((self.entries.len(), self.lengths));
    }

    /// Whether the texts of a document with these entries are stuffed: what its name and arguments say, its prose may say too.
    fn stuffed(&self, entries: &[Entry]) -> bool {
        let holds = |entry: &Entry, fields: &[Field]| fields.iter().any(|field| *field as u8 == entry.field);
        let supported = |term: u32| {
            let first = entries.partition_point(|entry| entry.term < term);
            let same = entries[first..].iter().take_while(|entry| entry.term == term);
            same.into_iter().any(|entry| holds(entry, &[Field::Name, Field::ParameterNames, Field::Values]))
        };
        let acts = |term| self.action_terms.contains(&term);
        let known = |term| self.known.contains(&term);
        let description = self.prose.unsupported(supported);
        let phrases = self.phrases.unsupported(supported);
        description.claims_too_much(acts)
            || description.is_list(known)
            || phrases.claims_too_much(acts)
            || phrases.is_net(known)
    }

    fn finish(mut self) -> Index {
        let averages = average_lengths(&self.documents);
        let mut keys: Vec<(u64, u32)> = self.terms.iter().map(|(&key, &term)| (key, term)).collect();
        keys.sort_unstable();
        let mut place_of = vec![0_u32; keys.len()];
        for (place, &(_, term)) in (0..).zip(&keys) {
            place_of[term as usize] = place;
        }
        let mut starts = vec![0_u32; keys.len() + 1];
        self.each_document(|_, entries, _| {
            for same in entries.chunk_by(|a, b| a.term == b.term) {
                starts[place_of[same[0].term as usize] as usize + 1] += 1;
            }
        });
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let total = starts[keys.len()] as usize;
        let mut next = starts.clone();
        let mut posting_documents = vec![0; total];
        let mut posting_impacts = vec![Impact(0); total];
        self.each_document(|document, entries, lengths| {
            let scales = field_scales(lengths, &averages);
            for same in entries.chunk_by(|a, b| a.term == b.term) {
                let frequency =
                    same.iter().map(|entry| f32::from(entry.count) * scales[usize::from(entry.field)]).sum();
                let in_name = same.iter().any(|entry| is_label(entry.field));
                let at = &mut next[place_of[same[0].term as usize] as usize];
                posting_documents[*at as usize] = document;
                posting_impacts[*at as usize] = Impact::new(frequency, in_name);
                *at += 1;
            }
        });
        self.names.finish();
        let spelling = Spelling::new(self.words.values().map(|word| self.kept(word.text)));
        Index {
            documents: self.documents.len(),
            terms: TermTable::new(keys.into_iter().map(|(key, _)| key).collect()),
            starts,
            posting_documents,
            posting_impacts,
            names: self.names,
            told: self.told,
            spelling,
        }
    }

    fn each_document(&self, mut visit: impl FnMut(u32, &[Entry], &[u32; FIELD_COUNT])) {
        let mut start = 0;
        for (document, (end, lengths)) in (0..).zip(&self.documents) {
            visit(document, &self.entries[start..*end], lengths);
            start = *end;
        }
    }
}

fn is_label(field: u8) -> bool {
    field == Field::Name as u8 || field == Field::Aliases as u8
}

/// Mean length of each field over the documents in which it is not empty.
fn average_lengths(documents: &[(usize, [u32; FIELD_COUNT])]) -> [f32; FIELD_COUNT] {
    std::array::from_fn(|field| {
        let filled =
            documents.iter().map(|(_, lengths)| u64::from(lengths[field])).filter(|&length| length > 0);
        // Whole numbers: the sum must not depend on the order of the documents.
        let (sum, count) = filled.fold((0, 0), |(sum, count), length| (sum + length, count + 1_u64));
        if count == 0 { 1.0 } else { sum as f32 / count as f32 }
    })
}

/// What one occurrence in each field counts for: its weight over its length norm.
fn field_scales(lengths: &[u32; FIELD_COUNT], averages: &[f32; FIELD_COUNT]) -> [f32; FIELD_COUNT] {
    std::array::from_fn(|field| {
        let norm = LENGTH_NORMS[field];
        WEIGHTS[field] / (1.0 - norm + norm * (lengths[field] as f32).max(0.5) / averages[field])
    })
}

/// Numbers of documents and terms are far below four thousand million; beyond, the last one stands for the rest.
fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
