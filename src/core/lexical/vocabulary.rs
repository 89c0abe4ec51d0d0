//! Words that tell what texts are about, for those who sort tools: how they are written, how they compare, how much they say.
//!
//! The analyzer is that of the search; what is done with the words is decided elsewhere.

use super::analyzer::{Class, Tokens, stem};
use super::background::share_of;
use super::lexicon::{is_action, is_service};
use super::stopwords::{is_dense_grammar, is_stop, query_weight};
use super::terms::{Kind, key};

/// What a word says, in bits, where hardly any tool has it; the background's rarest words have about 12.
const RARE_BITS: f32 = 10.0;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word {
    /// What compares it with others: its stem, or two adjacent characters of a script without spaces.
    pub stem: String,
    /// As it stands, folded and in lower case.
    pub written: String,
}

/// Reads texts into words. A buffer: the next text reuses its memory.
#[derive(Debug, Default)]
pub struct Vocabulary(Tokens);

impl Vocabulary {
    /// The words of a text in their order, without function words, bare numbers and single letters. The name of a service is
    /// one word (`GitHub`).
    pub fn words(&mut self, text: &str) -> Vec<Word> {
        self.0.read(text);
        let mut words: Vec<Word> = Vec::new();
        // Where the parts of an identifier begin among the words: its joined form follows them.
        let mut parts: Vec<usize> = Vec::new();
        for (class, text) in self.0.iter() {
            match class {
                Class::Word => {
                    parts.push(words.len());
                    let says = !is_stop(text)
                        && text.chars().any(char::is_alphabetic)
                        && text.chars().nth(1).is_some();
                    words.extend(
                        says.then(|| Word { stem: stem(text).into_owned(), written: text.to_owned() }),
                    );
                }
                Class::Joined { parts: count } if is_service(text) => {
                    let first = parts.len().saturating_sub(usize::from(count));
                    words.truncate(parts.get(first).copied().unwrap_or(words.len()));
                    words.push(Word { stem: stem(text).into_owned(), written: text.to_owned() });
                }
                Class::Bigram if text.chars().nth(1).is_some() && !text.chars().any(is_dense_grammar) => {
                    words.push(Word { stem: text.to_owned(), written: text.to_owned() });
                }
                Class::Joined { .. } | Class::Bigram | Class::Single | Class::Run => {}
            }
        }
        words
    }
}

impl Word {
    /// How much the word tells tools apart: bits of information by how many tools at large have it, 0 to 10.
    pub fn bits(&self) -> f32 {
        let known = share_of(key(Kind::Stem, &self.stem)).map(|share| -share.log2());
        known.unwrap_or(RARE_BITS).min(RARE_BITS)
    }

    /// Whether it says what is done rather than to what: a verb of the lexicon that changes something.
    pub fn is_action(&self) -> bool {
        is_action(key(Kind::Stem, &self.stem))
    }

    /// Whether it is the name of a service.
    pub fn is_service(&self) -> bool {
        is_service(&self.written)
    }

    /// Whether it is one of those that requests are full of and that say little about tools.
    pub fn is_weak(&self) -> bool {
        query_weight(&self.written) < 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        Vocabulary::default().words(text).into_iter().map(|word| word.written).collect()
    }

    #[test]
    fn words_are_those_that_say_something() {
        assert_eq!(written("listInvoices of the 3 customers, a s3"), ["list", "invoices", "customers", "s3"]);
        assert_eq!(written("Open a GitHub issue"), ["open", "github", "issue"]);
        assert_eq!(written("发送邮件"), ["发送", "送邮", "邮件"]);
        assert!(written("the 12 x").is_empty());
    }

    #[test]
    fn rare_words_say_more() {
        let bits = |text: &str| Vocabulary::default().words(text)[0].bits();
        assert!(
            bits("list") < bits("email") && bits("email") < bits("mortgage") && bits("zzyzx") <= RARE_BITS
        );
        assert!(Vocabulary::default().words("delete")[0].is_action());
    }
}
