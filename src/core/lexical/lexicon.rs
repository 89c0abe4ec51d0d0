//! The lexicon: words that mean the same to people who use tools. Abbreviations, everyday paraphrases, other languages.
//!
//! `lexicon/*.txt` say which; this module reads them and finds what the words of a query may stand for. Tools are never
//! expanded, so an index does not grow with the lexicon.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use super::analyzer::{Class, Tokens, fold, is_dense, stem};
use super::languages::LANGUAGES;
use super::stopwords::is_stop;
use super::terms::{Key, KeySet, Kind, TermTable, joined_key, key};

/// The files, in the order in which ties between concepts are broken.
pub(super) const FILES: [(&str, &str); 7] = [
    ("actions", include_str!("lexicon/actions.txt")),
    ("office", include_str!("lexicon/office.txt")),
    ("software", include_str!("lexicon/software.txt")),
    ("business", include_str!("lexicon/business.txt")),
    ("life", include_str!("lexicon/life.txt")),
    ("knowledge", include_str!("lexicon/knowledge.txt")),
    ("situations", include_str!("lexicon/situations.txt")),
];
/// Most words of a phrase, and most characters of a word in a script without spaces.
pub(super) const MAX_PHRASE: usize = 3;
pub(super) const MAX_DENSE: usize = 12;
/// Concepts that one word is taken for; of one that has more, the first.
const MAX_MEANINGS: usize = 4;
/// Letters that a stemmer takes off a word for no more than its inflection; what has lost more shares its stem with others
/// (`customer` and `customize`, `container` and `contain`).
const INFLECTION: usize = 1;

/// How a word belongs to a concept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// The concept's name, or another way to write or say it.
    Same,
    /// What people say where they mean it.
    Near,
    /// Its name in another language.
    Foreign,
}

/// One reading of a word of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meaning {
    concept: u16,
    pub(super) role: Role,
    /// The word means other things as well.
    pub(super) ambiguous: bool,
}

impl Meaning {
    pub(super) fn concept(self) -> &'static Concept {
        &LEXICON.concepts[usize::from(self.concept)]
    }
}

/// A form in which tools may hold a concept: a term of the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) key: u64,
    pub(super) text: &'static str,
    /// [`Role::Same`] or [`Role::Near`].
    pub(super) role: Role,
    /// The term is that of other words too.
    pub(super) ambiguous: bool,
}

#[derive(Debug)]
pub(super) struct Concept {
    /// The word that tools use most.
    pub(super) head: &'static str,
    /// It is a verb that changes something.
    pub(super) acts: bool,
    /// English words and phrases of two words, those that are the same first.
    pub(super) members: Vec<Member>,
}

#[derive(Debug)]
struct Lexicon {
    concepts: Vec<Concept>,
    /// Keys of words and phrases, and where the meanings of each begin.
    phrases: TermTable,
    starts: Vec<u32>,
    meanings: Vec<Meaning>,
    /// Single English words, as written.
    english: KeySet,
    /// Names of services.
    services: KeySet,
    service_phrases: KeySet,
    /// Stems of verbs that change something.
    actions: KeySet,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Reader::default().read());

/// Reads the lexicon now rather than at the first search.
pub fn prepare() {
    LazyLock::force(&LEXICON);
}

/// Key of a phrase of stems.
pub(super) fn phrase_key<'a>(words: impl Iterator<Item = &'a str>) -> u64 {
    words.fold(Key::new(Kind::Concept), |key, word| key.text(word).byte(b' ')).finish()
}

/// What a word or phrase may stand for, given as the key of its English stems.
pub(super) fn of_phrase(phrase: u64) -> &'static [Meaning] {
    let Some(number) = LEXICON.phrases.find(phrase) else { return &[] };
    &LEXICON.meanings[LEXICON.starts[number] as usize..LEXICON.starts[number + 1] as usize]
}

/// Whether the folded word is the name of a service, to which a tool belongs or not.
pub(super) fn is_service(word: &str) -> bool {
    LEXICON.services.contains(&key(Kind::Raw, word))
}

/// Whether the lexicon has a word as one of English.
pub(super) fn is_english(word: &str) -> bool {
    LEXICON.english.contains(&key(Kind::Raw, word))
}

/// Whether the phrase of stems with this key is the name of a service (`google drive`).
pub(super) fn is_service_phrase(phrase: u64) -> bool {
    LEXICON.service_phrases.contains(&phrase)
}

/// Whether the stem with this key is a verb that changes something.
pub(super) fn is_action(stem_key: u64) -> bool {
    LEXICON.actions.contains(&stem_key)
}

/// The meanings of a word of another language that the lexicon has as it is written.
pub(super) fn of_exact_foreign(word: &str) -> &'static [Meaning] {
    of_phrase(foreign_key(0, word))
}

/// The meanings of a word of another language, as written or in another inflection.
pub(super) fn of_foreign(word: &str) -> &'static [Meaning] {
    let of = |language: u8, stem: &str| of_phrase(foreign_key(language, stem));
    let stems = LANGUAGES.iter().map(|&language| of(1 + language as u8, &language.stem(word)));
    let mut ways = [of(0, word), of(0, &stem(word))].into_iter().chain(stems);
    let found = ways.find(|meanings| !meanings.is_empty());
    found.or_else(|| without_article(word).map(|word| of(0, word))).unwrap_or_default()
}

/// An Arabic word without its article and what is written together with that.
fn without_article(word: &str) -> Option<&str> {
    let bare =
        ["وال", "بال", "كال", "فال", "لل", "ال"].iter().find_map(|prefix| word.strip_prefix(prefix))?;
    (bare.chars().count() >= 3).then_some(bare)
}

/// The meanings of a word of another language that is written with all of its accents.
pub(super) fn of_accented(word: &str) -> &'static [Meaning] {
    of_phrase(accented_key(word))
}

/// The meanings of a text in a script without spaces.
pub(super) fn of_dense(text: &[char]) -> &'static [Meaning] {
    of_phrase(dense_key(text))
}

fn dense_key(text: &[char]) -> u64 {
    let mut buffer = [0; 4];
    text.iter().fold(Key::new(Kind::Concept).byte(1), |key, c| key.text(c.encode_utf8(&mut buffer))).finish()
}

fn foreign_key(language: u8, stem: &str) -> u64 {
    Key::new(Kind::Concept).byte(0).byte(language).text(stem).finish()
}

/// Small and capital letters, and composed and separate accents, are the same here; with and without accents are not.
fn accented_key(word: &str) -> u64 {
    let mut buffer = [0; 4];
    let letters = word.nfkc().flat_map(char::to_lowercase);
    letters.fold(Key::new(Kind::Concept).byte(2), |key, c| key.text(c.encode_utf8(&mut buffer))).finish()
}

/// A line of a block behind its head, or the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// English, and the tag behind it.
    Head(&'a str, Option<&'a str>),
    Same(&'a str),
    Near(&'a str),
    /// Code of the language, and its words.
    Foreign(&'a str, &'a str),
}

/// The lines of a file that say something.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(|line| {
        let Some(inner) = line.strip_prefix(' ') else {
            return match line.split_once('[') {
                Some((head, tag)) => Line::Head(head.trim(), Some(tag.trim_end().trim_end_matches(']'))),
                None => Line::Head(line.trim(), None),
            };
        };
        let (mark, words) = inner.trim().split_once(' ').unwrap_or((inner.trim(), ""));
        match mark {
            "=" => Line::Same(words),
            "~" => Line::Near(words),
            code => Line::Foreign(code, words),
        }
    })
}

/// The words of a line, and which are marked as meaning other things too.
pub(super) fn items(words: &str) -> impl Iterator<Item = (&str, bool)> {
    let items = words.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| item.strip_suffix('?').map_or((item, false), |item| (item.trim_end(), true)))
}

/// Builds a [`Lexicon`].
#[derive(Debug, Default)]
struct Reader {
    concepts: Vec<Concept>,
    /// The concept whose block is being read.
    current: u16,
    /// Key, meaning, in the order of the files.
    found: Vec<(u64, Meaning)>,
    services: KeySet,
    service_phrases: KeySet,
    actions: Vec<(&'static str, u64)>,
    /// Words that are the name of something else than an action too (`comment`, `format`).
    things: HashSet<&'static str>,
    tokens: Tokens,
    folded: Vec<char>,
    /// Single English words, as written.
    english: KeySet,
}

impl Reader {
    /// The files are part of the program and a test reads them strictly, so what does not fit is skipped here.
    fn read(mut self) -> Lexicon {
        for (_, text) in FILES {
            self.collect_english(text);
        }
        let mut by_head: HashMap<&str, u16> = HashMap::new();
        for (_, text) in FILES {
            let mut tag = None;
            for line in lines(text) {
                match line {
                    Line::Head(head, its) => {
                        tag = its;
                        // Files may add to the concepts of others.
                        self.current = *by_head.entry(head).or_insert_with(|| {
                            self.concepts.push(Concept {
                                head,
                                acts: its == Some("action"),
                                members: Vec::new(),
                            });
                            u16::try_from(self.concepts.len() - 1).unwrap_or(u16::MAX)
                        });
                        if tag != Some("action") {
                            self.things.insert(head);
                        }
                        self.add_english(head, Role::Same, tag);
                    }
                    Line::Same(words) => self.add_english(words, Role::Same, tag),
                    Line::Near(words) => self.add_english(words, Role::Near, None),
                    Line::Foreign(code, words) => self.add_foreign(code, words),
                }
            }
        }
        self.finish()
    }

    fn add(&mut self, key: u64, role: Role, ambiguous: bool) {
        self.found.push((key, Meaning { concept: self.current, role, ambiguous }));
    }

    fn collect_english(&mut self, text: &str) {
        for line in lines(text) {
            let (Line::Head(words, _) | Line::Same(words) | Line::Near(words)) = line else { continue };
            for (item, _) in items(words).filter(|(item, _)| !item.contains(' ')) {
                self.english.insert(key(Kind::Raw, &item.to_lowercase()));
            }
        }
    }

    fn add_english(&mut self, words_of: &'static str, role: Role, tag: Option<&str>) {
        for (text, ambiguous) in items(words_of) {
            self.tokens.read(text);
            let words: Vec<&str> = words(&self.tokens).collect();
            let stems: Vec<_> = words.iter().map(|word| stem(word)).collect();
            if stems.is_empty() || stems.len() > MAX_PHRASE {
                continue;
            }
            let phrase = phrase_key(stems.iter().map(|stem| &**stem));
            let mut members = Vec::new();
            match (stems.as_slice(), words.as_slice()) {
                ([stem], [word]) => {
                    let term = key(Kind::Stem, stem);
                    match tag {
                        // As written: the stem of a name may be another word.
                        Some("service") if !ambiguous => drop(self.services.insert(key(Kind::Raw, word))),
                        Some("action") if !ambiguous => self.actions.push((text, term)),
                        _ => {}
                    }
                    let shared = word.len() > stem.len() + INFLECTION;
                    if shared {
                        members.push((key(Kind::Raw, word), ambiguous));
                    }
                    members.push((term, ambiguous || shared));
                }
                ([first, second], _) => members.push((joined_key(Kind::Pair, first, second), ambiguous)),
                _ => {}
            }
            if tag == Some("service") && stems.len() > 1 {
                self.service_phrases.insert(phrase);
            }
            self.add(phrase, role, ambiguous);
            let Some(concept) = self.concepts.get_mut(usize::from(self.current)) else { continue };
            for (key, ambiguous) in members {
                if !concept.members.iter().any(|member| member.key == key) {
                    concept.members.push(Member { key, text, role, ambiguous });
                }
            }
        }
    }

    fn add_foreign(&mut self, code: &str, words_of: &str) {
        let language = LANGUAGES.iter().find(|language| language.code() == code);
        for (phrase, ambiguous) in items(words_of) {
            if phrase.chars().any(is_dense) {
                fold(phrase, &mut self.folded);
                self.folded.retain(|c| !c.is_whitespace());
                let key = dense_key(&self.folded);
                self.add(key, Role::Foreign, ambiguous);
                continue;
            }
            self.tokens.read(phrase);
            let raw: Vec<&str> = words(&self.tokens).collect();
            let mut keys = Vec::new();
            if let [word] = raw.as_slice() {
                if !phrase.is_ascii() {
                    keys.push(accented_key(phrase));
                }
                // Without its accents it may be a word of English (`the` for `thẻ`): then they must be there.
                let english = is_stop(word) || self.english.contains(&key(Kind::Raw, word));
                if phrase.is_ascii() || !english {
                    keys.push(foreign_key(0, word));
                    match language {
                        None => keys.push(foreign_key(0, &stem(word))),
                        Some(&language) => keys.push(foreign_key(1 + language as u8, &language.stem(word))),
                    }
                }
            } else if (2..=MAX_PHRASE).contains(&raw.len()) {
                let stems: Vec<_> = raw.iter().map(|word| stem(word)).collect();
                keys.push(phrase_key(stems.iter().map(|stem| &**stem)));
            }
            keys.dedup();
            for key in keys {
                self.add(key, Role::Foreign, ambiguous);
            }
        }
    }

    fn finish(self) -> Lexicon {
        let mut found = self.found;
        // Stable: the order of the files decides between concepts.
        found.sort_by_key(|(key, meaning)| (*key, meaning.role));
        let (mut keys, mut starts) = (Vec::new(), Vec::new());
        let mut meanings: Vec<Meaning> = Vec::with_capacity(found.len());
        for same in found.chunk_by(|a, b| a.0 == b.0) {
            let start = meanings.len();
            keys.push(same[0].0);
            starts.push(u32::try_from(start).unwrap_or(u32::MAX));
            for (_, meaning) in same {
                if !meanings[start..].iter().any(|known| known.concept == meaning.concept)
                    && meanings.len() - start < MAX_MEANINGS
                {
                    meanings.push(*meaning);
                }
            }
        }
        starts.push(u32::try_from(meanings.len()).unwrap_or(u32::MAX));
        let actions = self.actions.into_iter().filter(|(word, _)| !self.things.contains(word));
        let mut concepts = self.concepts;
        // What is the same comes before what is near, also where several files speak of it.
        concepts.iter_mut().for_each(|concept| concept.members.sort_by_key(|member| member.role));
        Lexicon {
            concepts,
            phrases: TermTable::new(keys),
            starts,
            meanings,
            english: self.english,
            services: self.services,
            service_phrases: self.service_phrases,
            actions: actions.map(|(_, stem)| stem).collect(),
        }
    }
}

fn words(tokens: &Tokens) -> impl Iterator<Item = &str> {
    tokens.iter().filter(|(class, _)| *class == Class::Word).map(|(_, text)| text)
}
