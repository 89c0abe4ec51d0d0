//! Words that are nearly the ones asked for: candidates by shared trigrams, then judged by edit distance.

use super::terms::{Key, Kind};

/// Lengths of words that are corrected, in characters. Shorter ones are too near to each other.
const LENGTHS: std::ops::RangeInclusive<usize> = 5..=24;
/// From this length on two edits are forgiven, before it one.
const TWO_EDITS_FROM: usize = 8;
/// Words per trigram that are looked at; a trigram that more share says little.
const MAX_BUCKET: usize = 2_000;

/// Trigram index over the words of an index, as written: stems of a typing error and of the word meant can lie far apart.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    /// All words without a gap; `words` holds where each begins and ends.
    text: String,
    words: Vec<(u32, u32)>,
    /// Hashed trigrams: the words of bucket `b` are `members[starts[b]..starts[b + 1]]`.
    starts: Vec<u32>,
    members: Vec<u32>,
}

/// A near word; smaller is nearer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Near {
    pub(super) edits: usize,
    pub(super) word: String,
}

/// Counters of one search, kept for the next.
#[derive(Debug, Default)]
pub(super) struct Counters {
    shared: Vec<u8>,
    touched: Vec<u32>,
}

impl Spelling {
    /// Indexes the words (each once, in any order) that are worth correcting to.
    pub(super) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut index = Self::default();
        let mut sorted: Vec<&str> = words.filter(|word| is_correctable(word)).collect();
        sorted.sort_unstable();
        for word in sorted {
            let start = index.text.len();
            index.text.push_str(word);
            if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(index.text.len())) {
                index.words.push((start, end));
            }
        }
        let buckets = index.words.len().next_power_of_two().max(64);
        let mut starts = vec![0_u32; buckets + 1];
        for word in index.iter() {
            trigrams(word, buckets, |bucket| starts[bucket + 1] += 1);
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut members = vec![0; starts[buckets] as usize];
        for (number, word) in (0..).zip(index.iter()) {
            trigrams(word, buckets, |bucket| {
                members[next[bucket] as usize] = number;
                next[bucket] += 1;
            });
        }
        index.text.shrink_to_fit();
        index.words.shrink_to_fit();
        Self { starts, members, ..index }
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|&(start, end)| &self.text[start as usize..end as usize])
    }

    /// Adds to `near` the words within reach of `word`.
    pub(super) fn find(&self, word: &str, counters: &mut Counters, near: &mut Vec<Near>) {
        if self.words.is_empty() || !is_correctable(word) {
            return;
        }
        let length = word.chars().count();
        let allowed = if length >= TWO_EDITS_FROM { 2 } else { 1 };
        // One edit, also a swap of neighbours, spoils at most four of the `length + 2` trigrams of a padded word.
        let least = (length + 2).saturating_sub(4 * allowed).max(2);
        counters.shared.resize(self.words.len().max(counters.shared.len()), 0);
        trigrams(word, self.starts.len() - 1, |bucket| {
            let (start, end) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
            for &number in self.members[start..end].iter().take(MAX_BUCKET) {
                let shared = &mut counters.shared[number as usize];
                if *shared == 0 {
                    counters.touched.push(number);
                }
                *shared = shared.saturating_add(1);
            }
        });
        for number in counters.touched.drain(..) {
            let shared = std::mem::take(&mut counters.shared[number as usize]);
            let (start, end) = self.words[number as usize];
            let other = &self.text[start as usize..end as usize];
            if usize::from(shared) >= least
                && let Some(edits) = edits(word, other, allowed)
            {
                near.push(Near { edits, word: other.to_owned() });
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.words.len() * 8 + (self.starts.len() + self.members.len()) * 4
    }
}

/// Words of letters only: numbers and identifiers with digits are values, a near one is another value.
pub(super) fn is_correctable(word: &str) -> bool {
    LENGTHS.contains(&word.chars().count()) && word.chars().all(char::is_alphabetic)
}

/// Calls `each` with the bucket of every trigram of the padded word.
fn trigrams(word: &str, buckets: usize, mut each: impl FnMut(usize)) {
    let mut window = ['^', '^', '^'];
    let mut buffer = [0; 4];
    for character in word.chars().chain(['$', '$']) {
        window = [window[1], window[2], character];
        let hash = window
            .iter()
            .fold(Key::new(Kind::Single), |key, c| key.text(c.encode_utf8(&mut buffer)))
            .finish();
        // `buckets` is a power of two.
        each((hash & (buckets as u64 - 1)) as usize);
    }
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other (optimal string
/// alignment), if no more than `allowed`. Both words are at most [`LENGTHS`] long.
fn edits(first: &str, second: &str, allowed: usize) -> Option<usize> {
    const WIDTH: usize = *LENGTHS.end() + 1;
    let (mut a, mut b) = (['\0'; WIDTH], ['\0'; WIDTH]);
    let read = |word: &str, into: &mut [char; WIDTH]| {
        into.iter_mut().zip(word.chars()).map(|(slot, c)| *slot = c).count()
    };
    let (a_len, b_len) = (read(first, &mut a), read(second, &mut b));
    if a_len.abs_diff(b_len) > allowed {
        return None;
    }
    let (mut before, mut last, mut row) = ([0; WIDTH], [0; WIDTH], [0; WIDTH]);
    last.iter_mut().enumerate().for_each(|(at, cell)| *cell = at);
    for i in 1..=a_len {
        row[0] = i;
        let mut best = i;
        for j in 1..=b_len {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
            best = best.min(row[j]);
        }
        if best > allowed {
            return None;
        }
        (before, last, row) = (last, row, before);
    }
    (last[b_len] <= allowed).then_some(last[b_len])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(stems: &[&str], word: &str) -> Vec<String> {
        let (mut counters, mut near) = (Counters::default(), Vec::new());
        Spelling::new(stems.iter().copied()).find(word, &mut counters, &mut near);
        assert!(counters.touched.is_empty() && counters.shared.iter().all(|&count| count == 0));
        near.sort();
        near.into_iter().map(|near| near.word).collect()
    }

    #[test]
    fn one_slip_of_the_finger_is_found() {
        let stems = ["search", "repositori", "calendar", "weather", "whether", "list", "café"];
        for (typo, meant) in
            [("serach", "search"), ("seach", "search"), ("searchh", "search"), ("calender", "calendar")]
        {
            assert_eq!(near(&stems, typo), [meant]);
        }
        assert_eq!(near(&stems, "repostiory"), ["repositori"]);
        assert!(
            near(&stems, "lits").is_empty()
                && near(&stems, "tokyo").is_empty()
                && near(&[], "search").is_empty()
        );
    }

    #[test]
    fn distance_counts_a_swap_as_one() {
        assert_eq!(edits("abcde", "abdce", 2), Some(1));
        assert_eq!(edits("abcde", "abcde", 1), Some(0));
        assert_eq!(edits("abcdef", "abc", 2), None);
        assert_eq!(edits("abcde", "vwxyz", 2), None);
    }
}
