//! Text to words: folding, splitting of identifiers, bigrams for scripts without spaces, stems.
//!
//! The same analyzer reads tools and queries; what is done with the words is decided elsewhere.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::irregular::base_of;

/// Longest word, in characters; the rest of a longer one is ignored.
const MAX_WORD_CHARS: usize = 64;
/// Longest identifier that is also kept as one joined word, in characters.
const MAX_JOINED_CHARS: usize = 40;
/// Characters read after folding; one character can unfold into 18, so hostile text is cut here as well.
const MAX_FOLDED_CHARS: usize = 16_384;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A word, or one part of an identifier (`create` and `Issue` of `createIssue`).
    Word,
    /// The whole of an identifier whose parts are the last `parts` words.
    Joined { parts: u8 },
    /// Two adjacent characters of a script without spaces, or a lone one.
    Bigram,
    /// One character of a script without spaces.
    Single,
    /// A stretch of characters of such a script, as they stand; its bigrams and characters follow it.
    Run,
}

/// A token: folded, lower-case text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    start: u32,
    end: u32,
    pub(super) class: Class,
}

/// The tokens of one text. A buffer: reading the next text reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    text: String,
    list: Vec<Token>,
    folded: Vec<char>,
}

impl Tokens {
    /// Replaces the content by the tokens of `text`, in order of appearance; an identifier's joined form follows its parts.
    pub(super) fn read(&mut self, text: &str) {
        self.text.clear();
        self.list.clear();
        let mut folded = std::mem::take(&mut self.folded);
        fold(text, &mut folded);
        let mut rest = folded.as_slice();
        while let Some(first) = rest.iter().position(|&c| is_word(c)) {
            rest = &rest[first..];
            let dense = is_dense(rest[0]);
            let length = rest.iter().position(|&c| !is_word(c) || is_dense(c) != dense).unwrap_or(rest.len());
            let (run, tail) = rest.split_at(length);
            if dense {
                self.push_dense(run);
            } else {
                self.push_identifier(run);
            }
            rest = if dense { tail } else { skip_contraction(tail) };
        }
        self.folded = folded;
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (Class, &str)> {
        self.list.iter().map(|token| (token.class, self.text_of(*token)))
    }

    fn text_of(&self, token: Token) -> &str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Splits a run of letters and digits where its case or its digits change, and keeps the joined form.
    fn push_identifier(&mut self, run: &[char]) {
        let mut start = 0;
        let mut parts = 0_u8;
        for at in 1..=run.len() {
            if at == run.len() || is_boundary(run, start, at) {
                self.push(&run[start..at], Class::Word);
                start = at;
                parts = parts.saturating_add(1);
            }
        }
        if parts > 1 && run.len() <= MAX_JOINED_CHARS {
            self.push(run, Class::Joined { parts });
        }
    }

    fn push_dense(&mut self, run: &[char]) {
        for stretch in run.chunks(MAX_WORD_CHARS) {
            self.push(stretch, Class::Run);
        }
        if run.len() == 1 {
            self.push(run, Class::Bigram);
        }
        for pair in run.windows(2) {
            self.push(pair, Class::Bigram);
        }
        for single in run.chunks(1) {
            self.push(single, Class::Single);
        }
    }

    fn push(&mut self, characters: &[char], class: Class) {
        let start = self.text.len();
        for &character in characters.iter().take(MAX_WORD_CHARS) {
            if character.is_ascii() {
                self.text.push(character.to_ascii_lowercase());
            } else {
                self.text.extend(character.to_lowercase());
            }
        }
        // Folded text is bounded, so these never saturate.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.list.push(Token { start: offset(start), end: offset(self.text.len()), class });
    }
}

/// Folds width, ligatures and accents away, keeps case: the boundaries inside an identifier are read from it later.
pub(super) fn fold(text: &str, out: &mut Vec<char>) {
    out.clear();
    if text.is_ascii() {
        out.extend(text.chars().take(MAX_FOLDED_CHARS));
        return;
    }
    let mut accents_fold = false;
    let stripped = text.nfkd().filter(|&c| match c {
        // Soft hyphen, joiners, direction marks, word joiner, variation selectors, byte order mark: invisible inside words.
        '\u{ad}' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' => false,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}' => false,
        '\u{300}'..='\u{36f}' => !accents_fold,
        // Vowel points of Hebrew and Arabic are optional in writing.
        '\u{591}'..='\u{5bd}' | '\u{64b}'..='\u{65f}' | '\u{670}' => false,
        other => {
            // In Cyrillic and Kana a mark makes another letter; in Latin and Greek people leave it out.
            accents_fold = matches!(other, 'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{3ff}');
            true
        }
    });
    for character in stripped.nfc().take(MAX_FOLDED_CHARS) {
        match character {
            'ß' | 'ẞ' => out.extend(['s', 's']),
            'æ' | 'Æ' => out.extend(['a', 'e']),
            'œ' | 'Œ' => out.extend(['o', 'e']),
            'þ' | 'Þ' => out.extend(['t', 'h']),
            'ø' => out.push('o'),
            'Ø' => out.push('O'),
            'ł' => out.push('l'),
            'Ł' => out.push('L'),
            'đ' | 'ð' => out.push('d'),
            'Đ' | 'Ð' => out.push('D'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            'ё' => out.push('е'),
            'Ё' => out.push('Е'),
            '\u{2019}' | '\u{2bc}' => out.push('\''),
            other => out.push(other),
        }
    }
}

/// Letters, digits and the marks that belong to them.
pub(super) fn is_word(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() || is_combining_mark(c) }
}

/// Scripts that write without spaces between words.
pub(super) fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Myanmar
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{1100}'..='\u{11ff}' // Hangul letters; then ideographs, Kana and Hangul syllables
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3130}'..='\u{318f}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}')
}

/// Whether a new part begins at `at`, given the run and the start of its current part: `getUser`, `XMLParser`, `ec2`, `2fast`.
fn is_boundary(run: &[char], start: usize, at: usize) -> bool {
    let (before, here) = (run[at - 1], run[at]);
    if before.is_numeric() {
        // Digits then at least three letters: `256sum`, but `3d` and `8s` stay whole.
        return here.is_alphabetic()
            && run[at..].iter().take_while(|c| c.is_alphabetic()).take(3).count() == 3;
    }
    if here.is_numeric() {
        // `ec2` splits, `s3` and `v2` do not.
        return at - start >= 2;
    }
    if !here.is_uppercase() {
        return false;
    }
    if before.is_lowercase() {
        return true;
    }
    let lower_at = |index: usize| run.get(index).is_some_and(|c| c.is_lowercase());
    // The last capital of an acronym begins the next word, except before a plural s: `URLs`.
    let plural = run.get(at + 1) == Some(&'s') && !lower_at(at + 2);
    before.is_uppercase() && lower_at(at + 1) && !plural
}

/// Skips the possessive `'s`; the rest of any other contraction is a word of its own.
fn skip_contraction(tail: &[char]) -> &[char] {
    match tail {
        ['\'', 's' | 'S', rest @ ..] if !rest.first().is_some_and(|&c| is_word(c)) => rest,
        _ => tail,
    }
}

/// Stem of a folded lower-case word: English in Latin letters, else the language that its script is most used for. Other
/// scripts, numbers and mixtures are their own stem.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 {
        return Cow::Borrowed(word);
    }
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Stemmer::new(Algorithm::English).stem(base_of(word).unwrap_or(word));
    }
    let all = |range: std::ops::RangeInclusive<char>| word.chars().all(|c| range.contains(&c));
    let algorithm = match word.chars().next() {
        Some('\u{400}'..='\u{4ff}') if all('\u{400}'..='\u{4ff}') => Algorithm::Russian,
        Some('\u{600}'..='\u{6ff}') if all('\u{600}'..='\u{6ff}') => Algorithm::Arabic,
        Some('\u{900}'..='\u{97f}') if all('\u{900}'..='\u{97f}') => Algorithm::Hindi,
        _ => return Cow::Borrowed(word),
    };
    Stemmer::new(algorithm).stem(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut tokens = Tokens::default();
        tokens.read(text);
        tokens
            .iter()
            .filter(|(class, _)| !matches!(class, Class::Single | Class::Run))
            .map(|(_, word)| word.to_owned())
            .collect()
    }

    #[test]
    fn identifiers_split_and_keep_their_joined_form() {
        assert_eq!(
            words("bitable_v1_appTableRecord_search")[2..6],
            ["app", "table", "record", "apptablerecord"]
        );
        assert_eq!(words("XMLParser"), ["xml", "parser", "xmlparser"]);
        assert_eq!(words("kebab-case.dot/slash:colon"), ["kebab", "case", "dot", "slash", "colon"]);
        assert_eq!(
            words("ec2 s3 sha256sum 3d"),
            ["ec", "2", "ec2", "s3", "sha", "256", "sum", "sha256sum", "3d"]
        );
        assert_eq!(words("URLs of APIs, listURLs"), ["urls", "of", "apis", "list", "urls", "listurls"]);
    }

    #[test]
    fn writing_variants_fold() {
        assert_eq!(words("Crème BRÛLÉE ｆｕｌｌ Straße"), ["creme", "brulee", "full", "strasse"]);
        assert_eq!(words("the user's user\u{2019}s don't"), ["the", "user", "user", "don", "t"]);
        assert_eq!(words("мой ёлка"), ["мой", "елка"]);
        assert_eq!(words("soft\u{ad}hyphen zero\u{200d}width"), ["softhyphen", "zerowidth"]);
    }

    #[test]
    fn scripts_without_spaces_become_bigrams() {
        assert_eq!(words("法令を API検索"), ["法令", "令を", "api", "検索"]);
        assert_eq!(words("書"), ["書"]);
        assert_eq!(words("ガギ"), ["ガギ"]);
        assert_eq!(words("이메일"), ["이메", "메일"]);
        assert!(words("ค้นหาอีเมล").len() > 3);
    }

    #[test]
    fn hostile_text_is_bounded() {
        assert_eq!(words(&"a".repeat(2_000)), ["a".repeat(MAX_WORD_CHARS)]);
        assert!(words(&"🦀".repeat(250_000)).is_empty());
        assert!(
            words(&"\u{fdfa}".repeat(10_000)).iter().map(String::len).sum::<usize>() < 64 * MAX_FOLDED_CHARS
        );
    }

    #[test]
    fn stems_join_the_forms_of_a_word() {
        assert_eq!(stem("issues"), stem("issue"));
        assert_eq!(stem("creating"), stem("create"));
        assert_eq!(stem("задачи"), stem("задача"));
        assert_eq!(stem("abc1"), "abc1");
    }
}
