//! Languages in Latin letters besides English: which one a text is in, and the stems of its words.
//!
//! Other scripts tell their language themselves and are stemmed by the analyzer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};

/// A language whose inflection is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Spanish,
    German,
    French,
    Portuguese,
}

pub(super) const LANGUAGES: [Language; 4] =
    [Language::Spanish, Language::German, Language::French, Language::Portuguese];

/// Shorter stems would join words that have nothing to do with each other (`par` of `parar` and of `Paris`).
const SHORTEST_STEM: usize = 4;

/// Function words per language, folded, in the order of [`LANGUAGES`]. None of English (`die`, `me`, `on`, `as`), and none that
/// tools are described with.
const FUNCTION_WORDS: [&str; 4] = [
    "el la los las un una unos unas del al de y que en por para con sin sobre mi mis tu su sus se es esta este esto \
     como cual cuales donde cuando hay quiero puedo puedes lo le les",
    "der das den dem des ein eine einen einem einer eines und oder fur mit von vom zu zum zur im ist sind auf bei nach \
     aus nicht mir mich mein meine meinen meiner bitte wie welche welcher wird alle wo gibt ich",
    "le la les un une des du de et ou pour avec dans sur par est sont mon ma mes son sa ses ce cette ces que qui quel \
     quelle quels au aux je il elle nous vous ne pas l d",
    "um uma uns umas do da dos das de em na nos nas no e ou para por com sem sobre meu minha meus minhas seu sua que \
     como qual quais onde quando eu voce ha ao",
];

/// A bit per language for each function word.
static FUNCTION: LazyLock<HashMap<&str, u8>> = LazyLock::new(|| {
    let mut words: HashMap<&str, u8> = HashMap::new();
    for (number, list) in FUNCTION_WORDS.iter().enumerate() {
        for word in list.split_whitespace() {
            *words.entry(word).or_default() |= 1 << number;
        }
    }
    words
});

impl Language {
    /// ISO 639-1.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Spanish => "es",
            Self::German => "de",
            Self::French => "fr",
            Self::Portuguese => "pt",
        }
    }

    /// Stem of a folded lower-case word.
    pub(super) fn stem(self, word: &str) -> Cow<'_, str> {
        if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Cow::Borrowed(word);
        }
        let algorithm = match self {
            Self::Spanish => Algorithm::Spanish,
            Self::German => Algorithm::German,
            Self::French => Algorithm::French,
            Self::Portuguese => Algorithm::Portuguese,
        };
        let stem = Stemmer::new(algorithm).stem(word);
        if stem.len() < SHORTEST_STEM { Cow::Borrowed(word) } else { stem }
    }

    pub(super) fn is_function_word(self, word: &str) -> bool {
        FUNCTION.get(word).is_some_and(|languages| languages >> self as u8 & 1 == 1)
    }
}

/// Whether a folded word is a function word of any of the languages.
pub(super) fn is_any_function_word(word: &str) -> bool {
    FUNCTION.contains_key(word)
}

/// The language that most function words among `words` (folded, lower case) are of, if at least `least` are and no more are
/// English by `is_english`.
pub(super) fn language_of<'a>(
    words: impl Iterator<Item = &'a str>,
    least: usize,
    is_english: impl Fn(&str) -> bool,
) -> Option<Language> {
    let (mut counts, mut english) = ([0_usize; LANGUAGES.len()], 0);
    for word in words {
        if let Some(languages) = FUNCTION.get(word) {
            for (number, count) in counts.iter_mut().enumerate() {
                *count += usize::from(languages >> number & 1);
            }
        } else if is_english(word) {
            english += 1;
        }
    }
    let most = counts.into_iter().max().filter(|&most| most >= least && most > english)?;
    counts.iter().position(|&count| count == most).map(|number| LANGUAGES[number])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_tell_the_language() {
        let language =
            |text: &str| language_of(text.split(' '), 2, |word| ["the", "of", "a", "to"].contains(&word));
        assert_eq!(language("busca los correos de la semana"), Some(Language::Spanish));
        assert_eq!(language("zeige mir alle rechnungen von heute"), Some(Language::German));
        assert_eq!(language("liste les factures du client"), Some(Language::French));
        assert_eq!(language("procura as mensagens do cliente na pasta"), Some(Language::Portuguese));
        assert_eq!(language("the weather of la paz"), None);
        assert_eq!(language("list all issues"), None);
    }

    #[test]
    fn inflections_share_a_stem() {
        assert_eq!(Language::Spanish.stem("facturas"), Language::Spanish.stem("factura"));
        assert_eq!(Language::German.stem("rechnungen"), Language::German.stem("rechnung"));
        assert_eq!(Language::French.stem("supprimer"), Language::French.stem("supprime"));
        assert_eq!(Language::Portuguese.stem("mensagens2"), "mensagens2");
    }
}
