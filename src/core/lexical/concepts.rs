//! Words that mean the same to people who use tools: abbreviations, everyday synonyms, words of other languages.
//!
//! `concepts.txt` says which; this module only finds what the words of a query may stand for. Tools are never expanded, so
//! an index does not grow with the file.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use super::analyzer::{Class, Tokens, fold, is_dense, stem};
use super::languages::LANGUAGES;
use super::stopwords::is_stop;
use super::terms::{Key, KeyMap, KeySet, Kind, joined_key, key};

const TEXT: &str = include_str!("concepts.txt");
/// Most words of a phrase, and most characters of a word in a script without spaces.
pub(super) const MAX_PHRASE: usize = 3;
pub(super) const MAX_DENSE: usize = 8;

/// How near the words of a concept are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nearness {
    /// Ways to write the same, or its translation.
    Same,
    /// Meant alike in requests, yet not the same.
    Near,
}

/// A form in which tools may hold a concept: a term of the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) key: u64,
    /// Where its text stands in [`TEXT`].
    text: (usize, usize),
}

impl Member {
    pub(super) fn text(&self) -> &'static str {
        &TEXT[self.text.0..self.text.1]
    }
}

#[derive(Debug)]
pub(super) struct Concept {
    pub(super) nearness: Nearness,
    /// English words and phrases of two words; what else the line has only leads here.
    pub(super) members: Vec<Member>,
}

#[derive(Debug, Default)]
struct Concepts {
    list: Vec<Concept>,
    /// Concepts per phrase key.
    by_phrase: KeyMap<Vec<u16>>,
    /// Names of services.
    services: KeySet,
    /// Stems of verbs that change something.
    actions: KeySet,
}

static CONCEPTS: LazyLock<Concepts> = LazyLock::new(Concepts::read);

/// Key of a phrase of stems.
pub(super) fn phrase_key<'a>(words: impl Iterator<Item = &'a str>) -> u64 {
    words.fold(Key::new(Kind::Concept), |key, word| key.text(word).byte(b' ')).finish()
}

/// The concepts of a word or phrase, given as the key of its English stems.
pub(super) fn of_phrase(phrase: u64) -> impl Iterator<Item = &'static Concept> {
    let numbers = CONCEPTS.by_phrase.get(&phrase).map_or(&[][..], Vec::as_slice);
    numbers.iter().map(|&number| &CONCEPTS.list[usize::from(number)])
}

/// Whether the folded word is the name of a service, to which a tool belongs or not.
pub(super) fn is_service(word: &str) -> bool {
    CONCEPTS.services.contains(&key(Kind::Raw, word))
}

/// Whether the stem with this key is a verb that changes something.
pub(super) fn is_action(stem_key: u64) -> bool {
    CONCEPTS.actions.contains(&stem_key)
}

/// The concept of a word of another language, as written or in another inflection.
pub(super) fn of_foreign(word: &str) -> Option<&'static Concept> {
    let concept = |language: u8, stem: &str| of_phrase(foreign_key(language, stem)).next();
    concept(0, word)
        .or_else(|| concept(0, &stem(word)))
        .or_else(|| LANGUAGES.iter().find_map(|&language| concept(1 + language as u8, &language.stem(word))))
}

/// The concept of a word of another language that is written with all of its accents.
pub(super) fn of_accented(word: &str) -> Option<&'static Concept> {
    of_phrase(accented_key(word)).next()
}

/// The concept of a text in a script without spaces.
pub(super) fn of_dense(text: &[char]) -> Option<&'static Concept> {
    of_phrase(dense_key(text)).next()
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

/// The English words of the file, as written.
fn english_words(tokens: &mut Tokens) -> KeySet {
    let mut english = KeySet::default();
    for line in TEXT.lines().filter(|line| line.starts_with(['=', '~', '@'])) {
        for phrase in line[1..].split('|').next().unwrap_or_default().split(',') {
            tokens.read(phrase);
            let mut words = words(tokens);
            if let (Some(word), None) = (words.next(), words.next()) {
                english.insert(key(Kind::Raw, word));
            }
        }
    }
    english
}

impl Concepts {
    /// A line: `=` (same) or `~` (near), English words and phrases with commas between them; or `@`, English words that only
    /// are led to, and for each other language `|`, its code, and words with commas. The file is part of the program, so
    /// what does not fit this is skipped. `!` lists names of services, `>` verbs of
    /// actions.
    fn read() -> Self {
        let mut concepts = Self::default();
        let mut tokens = Tokens::default();
        let english = english_words(&mut tokens);
        let base = TEXT.as_ptr() as usize;
        for line in TEXT.lines() {
            let nearness = match line.as_bytes().first() {
                Some(b'=' | b'@') => Nearness::Same,
                Some(b'~') => Nearness::Near,
                Some(b'!') => {
                    tokens.read(&line[1..]);
                    // As written: the stem of a name may be another word.
                    concepts.services.extend(words(&tokens).map(|word| key(Kind::Raw, word)));
                    continue;
                }
                Some(b'>') => {
                    tokens.read(&line[1..]);
                    concepts.actions.extend(words(&tokens).map(|word| key(Kind::Stem, &stem(word))));
                    continue;
                }
                _ => continue,
            };
            let Ok(number) = u16::try_from(concepts.list.len()) else { break };
            let mut members = Vec::new();
            let mut parts = line[1..].split('|');
            for phrase in parts.next().unwrap_or_default().split(',') {
                let phrase = phrase.trim();
                tokens.read(phrase);
                let stems: Vec<String> = words(&tokens).map(|word| stem(word).into_owned()).collect();
                if stems.is_empty() || stems.len() > MAX_PHRASE {
                    continue;
                }
                if !line.starts_with('@') {
                    concepts.add(phrase_key(stems.iter().map(String::as_str)), number);
                }
                let start = phrase.as_ptr() as usize - base;
                let text = (start, start + phrase.len());
                match stems.as_slice() {
                    [stem] => members.push(Member { key: key(Kind::Stem, stem), text }),
                    [first, second] => {
                        members.push(Member { key: joined_key(Kind::Pair, first, second), text });
                    }
                    _ => {}
                }
            }
            for part in parts {
                concepts.add_foreign(part, number, &english, &mut tokens);
            }
            concepts.list.push(Concept { nearness, members });
        }
        concepts
    }

    fn add_foreign(&mut self, part: &str, number: u16, english: &KeySet, tokens: &mut Tokens) {
        let (code, words_of) = part.trim().split_once(' ').unwrap_or_default();
        let language = LANGUAGES.iter().find(|language| language.code() == code);
        for phrase in words_of.split(',').map(str::trim) {
            if phrase.chars().any(is_dense) {
                let mut folded = Vec::new();
                fold(phrase, &mut folded);
                self.add(dense_key(&folded), number);
                continue;
            }
            tokens.read(phrase);
            let raw: Vec<&str> = words(tokens).collect();
            if let ([word], true) = (raw.as_slice(), !phrase.is_ascii()) {
                self.add(accented_key(phrase), number);
                // Without its accents it is a word of English (`the` for `thẻ`): then they must be there.
                if is_stop(word) || english.contains(&key(Kind::Raw, word)) {
                    continue;
                }
            }
            match (raw.as_slice(), language) {
                ([], _) => {}
                ([word], None) => self.add(foreign_key(0, &stem(word)), number),
                ([word], Some(&language)) => {
                    self.add(foreign_key(0, word), number);
                    self.add(foreign_key(1 + language as u8, &language.stem(word)), number);
                }
                (several, _) if several.len() <= MAX_PHRASE => {
                    let stems: Vec<_> = several.iter().map(|word| stem(word)).collect();
                    self.add(phrase_key(stems.iter().map(|stem| &**stem)), number);
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, key: u64, number: u16) {
        let numbers = self.by_phrase.entry(key).or_default();
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
}

fn words(tokens: &Tokens) -> impl Iterator<Item = &str> {
    tokens.iter().filter(|(class, _)| *class == Class::Word).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn english(concept: &'static Concept) -> Vec<&'static str> {
        concept.members.iter().map(Member::text).collect()
    }

    #[test]
    fn every_line_of_the_file_is_read() {
        let lines = TEXT.lines().filter(|line| line.starts_with(['=', '~', '@']));
        assert_eq!(lines.count(), CONCEPTS.list.len());
        for line in TEXT.lines() {
            assert!(line.is_empty() || line.starts_with(['#', '=', '~', '@', '!', '>']), "{line}");
            assert!(line.split(['|', ',']).all(|part| !part.trim().is_empty()), "{line}");
        }
        for concept in &CONCEPTS.list {
            assert!(!concept.members.is_empty(), "{concept:?}");
        }
    }

    #[test]
    fn abbreviations_and_phrases_lead_to_their_words() {
        let of = |words: &[&str]| -> Vec<&str> {
            of_phrase(phrase_key(words.iter().copied())).flat_map(english).collect()
        };
        assert!(of(&["k8s"]).contains(&"kubernetes"));
        assert!(of(&["pull", "request"]).contains(&"pr"));
        assert!(of(&["qwertz"]).is_empty());
    }

    #[test]
    fn accents_tell_a_foreign_word_from_an_english_one() {
        for (word, plain, meaning) in [("thẻ", "the", "card"), ("Thêm", "them", "add"), ("ăn", "an", "eat")]
        {
            assert!(of_accented(word).is_some_and(|concept| english(concept).contains(&meaning)), "{word}");
            assert!(of_foreign(plain).is_none() && of_accented(plain).is_none(), "{plain}");
        }
        // A word that English has not may be typed without them.
        assert!(of_foreign("loschen").is_some() && of_accented("lo\u{308}schen").is_some());
    }

    #[test]
    fn other_languages_lead_to_english() {
        for word in ["eliminar", "loschen", "supprime", "apagar", "удалил", "elimina"] {
            assert!(of_foreign(word).is_some_and(|concept| english(concept).contains(&"delete")), "{word}");
        }
        let dense: Vec<char> = "删除".chars().collect();
        assert!(of_dense(&dense).is_some_and(|concept| english(concept)[0] == "delete"));
        assert!(of_foreign("issue").is_none() && of_dense(&['犬', '吠']).is_none());
    }
}
