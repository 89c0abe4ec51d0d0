//! Text to words of the table's vocabulary: folding, splitting of identifiers, WordPiece.
//!
//! The rules are those of BERT's uncased tokenizer (lower case, no accents, split at punctuation, each ideograph alone, then
//! the longest piece of the vocabulary again and again), and two more for the way tools are named: parts of an identifier
//! (`getUserByID`, `list_pods`) are words of their own, and compatibility forms (full-width letters, ligatures) are folded.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::core::text::is_hidden;

/// Words with more characters are unknown. English has none, and the search for pieces costs their number squared.
const MAX_WORD_CHARS: usize = 64;
/// Adjacent parts of an identifier that are tried as one word: `Java` and `Script`.
const MAX_JOINED_PARTS: usize = 3;

/// Finds a word or a piece by its text, without keeping the text: the key of a word is its 64-bit hash. Of those bits 40 are
/// compared, so that a piece that is not in the vocabulary is taken for one in it once in about a million million times.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// Open addressing, a power of two of slots: the key's upper bits and the word's number plus one; 0 is empty.
    slots: Vec<u64>,
    /// Bytes of the longest word or piece.
    longest: usize,
}

/// Bits of a slot that hold the word's number plus one.
const NUMBER_BITS: u64 = (1 << 24) - 1;

impl Vocabulary {
    /// Reads `count` words, each ended by a line feed. None if there are not so many, or one is empty or repeated.
    pub(super) fn read(text: &str, count: usize) -> Option<Self> {
        let lines = text.strip_suffix('\n')?;
        if lines.split('\n').count() != count || count as u64 >= NUMBER_BITS {
            return None;
        }
        // At most half full, so that runs of taken slots stay short.
        let mut slots = vec![0; (2 * count).next_power_of_two()];
        let mut longest = 0;
        for (number, line) in (1..).zip(lines.split('\n')) {
            if line.is_empty() {
                return None;
            }
            let (start, piece) =
                line.strip_prefix("##").map_or((Key::WORD, line), |piece| (Key::PIECE, piece));
            let key = piece.bytes().fold(start, Key::byte).finish();
            longest = longest.max(piece.len());
            let place = probe(&slots, key).err()?;
            slots[place] = key & !NUMBER_BITS | number;
        }
        Some(Self { slots, longest })
    }

    fn find(&self, key: Key) -> Option<u32> {
        let place = probe(&self.slots, key.finish()).ok()?;
        u32::try_from(self.slots[place] & NUMBER_BITS).ok()?.checked_sub(1)
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * 8
    }

    /// The whole of `word`, if it is in the vocabulary.
    fn word(&self, word: &[u8]) -> Option<u32> {
        (word.len() <= self.longest)
            .then(|| word.iter().copied().fold(Key::WORD, Key::byte))
            .and_then(|key| self.find(key))
    }

    /// Adds the numbers of the pieces of `word` to `found`; none if a part of it is no piece.
    fn pieces(&self, word: &[u8], found: &mut Vec<u32>) {
        let before = found.len();
        let mut keys = [Key::WORD; 4 * MAX_WORD_CHARS];
        let mut start = Key::WORD;
        let mut rest = word;
        while !rest.is_empty() {
            let most = rest.len().min(self.longest).min(keys.len());
            let mut key = start;
            for (slot, &byte) in keys.iter_mut().zip(&rest[..most]) {
                key = key.byte(byte);
                *slot = key;
            }
            // A key that ends inside a character is that of no piece.
            let longest = (0..most).rev().find_map(|last| Some((last + 1, self.find(keys[last])?)));
            let Some((length, number)) = longest else {
                found.truncate(before);
                return;
            };
            found.push(number);
            rest = &rest[length..];
            start = Key::PIECE;
        }
    }
}

/// The slot that holds `key`, or the free one where it belongs. The caller keeps half of the slots free.
fn probe(slots: &[u64], key: u64) -> Result<usize, usize> {
    let mask = slots.len() - 1;
    let mut place = key as usize & mask;
    loop {
        match slots[place] {
            0 => return Err(place),
            slot if slot & !NUMBER_BITS == key & !NUMBER_BITS => return Ok(place),
            _ => place = (place + 1) & mask,
        }
    }
}

/// FNV-1a (its published 64-bit constants), finished with the mixer of MurmurHash3 so that all bits are even.
#[derive(Debug, Clone, Copy)]
struct Key(u64);

impl Key {
    /// Of what begins a word.
    const WORD: Self = Self(0xcbf2_9ce4_8422_2325);
    /// Of what continues one.
    const PIECE: Self = Self::WORD.byte(b'#').byte(b'#');

    const fn byte(self, byte: u8) -> Self {
        Self((self.0 ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
    }

    fn finish(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}

/// Reads texts. A buffer: the next text reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Reader {
    folded: Vec<char>,
    /// Ends of the parts of an identifier.
    ends: Vec<usize>,
    word: String,
    found: Vec<u32>,
}

impl Reader {
    /// The numbers of the words and pieces in the first `max_chars` characters of `text`, in order.
    pub(super) fn read(&mut self, vocabulary: &Vocabulary, text: &str, max_chars: usize) -> &[u32] {
        self.found.clear();
        let mut folded = std::mem::take(&mut self.folded);
        fold(text, max_chars, &mut folded);
        let mut rest = folded.as_slice();
        while let Some(first) = rest.iter().position(|&c| c.is_alphanumeric()) {
            rest = &rest[first..];
            let length = if is_ideograph(rest[0]) {
                1
            } else {
                rest.iter().position(|&c| !c.is_alphanumeric() || is_ideograph(c)).unwrap_or(rest.len())
            };
            let (run, tail) = rest.split_at(length);
            self.identifier(vocabulary, run);
            rest = tail;
        }
        self.folded = folded;
        &self.found
    }

    /// Reads a run of letters and digits part by part; parts that together are a word (`YouTube`) are read as it.
    fn identifier(&mut self, vocabulary: &Vocabulary, run: &[char]) {
        let mut ends = std::mem::take(&mut self.ends);
        ends.clear();
        ends.extend((1..=run.len()).filter(|&at| at == run.len() || is_boundary(run, at)));
        let (mut start, mut part) = (0, 0);
        while part < ends.len() {
            let last = ends.len().min(part + MAX_JOINED_PARTS) - 1;
            let joined = (part + 1..=last).rev().find_map(|last| {
                self.lower(&run[start..ends[last]])?;
                Some((last, vocabulary.word(self.word.as_bytes())?))
            });
            if let Some((last, number)) = joined {
                self.found.push(number);
                part = last;
            } else if self.lower(&run[start..ends[part]]).is_some() {
                vocabulary.pieces(self.word.as_bytes(), &mut self.found);
            }
            start = ends[part];
            part += 1;
        }
        self.ends = ends;
    }

    /// Puts a word in lower case into the buffer. None if it is too long to be one.
    fn lower(&mut self, word: &[char]) -> Option<()> {
        if word.len() > MAX_WORD_CHARS {
            return None;
        }
        self.word.clear();
        for &character in word {
            if character.is_ascii() {
                self.word.push(character.to_ascii_lowercase());
            } else {
                self.word.extend(character.to_lowercase());
            }
        }
        Some(())
    }
}

/// The first `max_chars` characters without accents, compatibility forms and what is invisible. Case is kept: it tells where
/// the parts of an identifier begin.
fn fold(text: &str, max_chars: usize, out: &mut Vec<char>) {
    out.clear();
    let end = text.char_indices().nth(max_chars).map_or(text.len(), |(end, _)| end);
    let text = &text[..end];
    if text.is_ascii() {
        out.extend(text.bytes().map(char::from));
    } else {
        let plain = text.nfkd().filter(|&c| !is_combining_mark(c) && !is_hidden(c));
        // One character can unfold into 18.
        out.extend(plain.take(max_chars));
    }
}

/// Ideographs, which BERT reads one by one (its own ranges).
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2ceaf}'
        | '\u{2f800}'..='\u{2fa1f}')
}

/// Whether a new part begins at `at`: `getUser`, `XMLParser`, `ec2`, `2fast`.
fn is_boundary(run: &[char], at: usize) -> bool {
    let (before, here) = (run[at - 1], run[at]);
    if before.is_numeric() != here.is_numeric() {
        return true;
    }
    if !here.is_uppercase() {
        return false;
    }
    let lower_at = |index: usize| run.get(index).is_some_and(|c| c.is_lowercase());
    // The last capital of an acronym begins the next word, except before a plural s: `URLs`.
    let plural = run.get(at + 1) == Some(&'s') && !lower_at(at + 2);
    before.is_lowercase() || before.is_uppercase() && lower_at(at + 1) && !plural
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "get\nuser\nby\nid\nlist\npod\n##s\nplay\n##ing\njavascript\njava\nscript\ncafe\n2\nec\nurl\nfile\n書\n\
                         一\n##scri\n##pt\n##é\n";

    fn read(text: &str) -> Vec<&'static str> {
        let vocabulary = Vocabulary::read(WORDS, WORDS.lines().count()).unwrap();
        let numbers: Vec<u32> = Reader::default().read(&vocabulary, text, 1_000).to_vec();
        numbers.into_iter().map(|number| WORDS.lines().nth(number as usize).unwrap()).collect()
    }

    #[test]
    fn identifiers_are_split_where_names_are_put_together() {
        assert_eq!(read("getUserByID"), ["get", "user", "by", "id"]);
        assert_eq!(read("list_pods"), ["list", "pod", "##s"]);
        assert_eq!(read("GET-user.ec2/URLs"), ["get", "user", "ec", "2", "url", "##s"]);
        assert_eq!(read("URLFile"), ["url", "file"]);
    }

    #[test]
    fn a_name_with_a_capital_inside_is_one_word_where_the_vocabulary_says_so() {
        assert_eq!(read("JavaScript"), ["javascript"]);
        assert_eq!(read("getJavaScriptFile"), ["get", "javascript", "file"]);
        assert_eq!(read("Java Script"), ["java", "script"]);
        assert_eq!(read("PlayScript"), ["play", "script"]);
    }

    #[test]
    fn the_longest_piece_is_taken_and_a_word_with_an_unknown_rest_left_out() {
        assert_eq!(read("playing plays"), ["play", "##ing", "play", "##s"]);
        assert_eq!(read("playfoo list"), ["list"]);
        assert_eq!(read("javascripts"), ["javascript", "##s"]);
    }

    #[test]
    fn case_accents_width_and_hidden_characters_do_not_matter() {
        assert_eq!(read("CAFÉ cafe\u{301} ｃａｆｅ ca\u{ad}fe"), ["cafe"; 4]);
        assert_eq!(read("書一list書"), ["書", "一", "list", "書"]);
    }

    #[test]
    fn long_words_are_unknown() {
        let long = format!("play{}", "s".repeat(60));
        assert_eq!(read(&long).len(), 61);
        assert!(read(&format!("{long}s")).is_empty());
    }

    #[test]
    fn only_the_beginning_of_a_text_is_read() {
        let vocabulary = Vocabulary::read(WORDS, WORDS.lines().count()).unwrap();
        assert_eq!(Reader::default().read(&vocabulary, "list list list", 9).len(), 2);
        assert_eq!(Reader::default().read(&vocabulary, "書書書", 2).len(), 2);
        assert_eq!(Reader::default().read(&vocabulary, "list", 0), [0_u32; 0]);
    }

    #[test]
    fn every_word_is_found_and_a_broken_vocabulary_is_refused() {
        let text: String = (0..5_000).map(|n| format!("w{n}\n##w{n}\n")).collect();
        let vocabulary = Vocabulary::read(&text, 10_000).unwrap();
        for n in 0..5_000 {
            let mut found = Vec::new();
            vocabulary.pieces(format!("w{n}w{n}").as_bytes(), &mut found);
            assert_eq!(found, [2 * n, 2 * n + 1]);
        }
        for (text, count) in
            [("", 0), ("", 1), ("a\n", 2), ("a\nb\n", 1), ("a", 1), ("a\n\n", 2), ("a\na\n", 2)]
        {
            assert!(Vocabulary::read(text, count).is_none(), "{text:?}");
        }
    }
}
