//! Names as models write them: repairs, folding and did-you-mean.

use std::cmp::Reverse;

/// Longer names are not repaired, and are compared by their beginning only.
const MAX_NAME_BYTES: usize = 512;

/// Longest name that takes part in the comparison for suggestions, in bytes after folding.
const MAX_COMPARED_BYTES: usize = 128;

/// Most spellings that [`name_candidates`] answers.
const MAX_CANDIDATES: usize = 12;

/// Namespaces that models put in front of a function's name.
const PREFIXES: [&str; 8] =
    ["functions.", "functions:", "function.", "default_api.", "default_api:", "tools.", "tools:", "tool."];

/// Share of common trigrams (Dice) from which two names count as similar, in percent.
const MIN_TRIGRAM_PCT: usize = 45;

/// Spellings under which a name that a model wrote may be known: the trimmed name first, then repairs (quotes and
/// backticks, a namespace in front, a call's parentheses or `_tool` behind, a doubled name), fewest repairs first.
///
/// Empty only for a blank name. Whether a repaired name may stand for a tool is the caller's decision.
pub fn name_candidates(raw: &str) -> Vec<String> {
    let trimmed = raw.trim();
    if trimmed.is_empty() {
        return Vec::new();
    }
    let mut candidates = vec![trimmed.to_owned()];
    if trimmed.len() > MAX_NAME_BYTES {
        return candidates;
    }
    let mut next = 0;
    while next < candidates.len() && candidates.len() < MAX_CANDIDATES {
        for repaired in repairs(&candidates[next].clone()) {
            let repaired = repaired.trim();
            let known = candidates.iter().any(|candidate| candidate == repaired);
            if !repaired.is_empty() && !known && candidates.len() < MAX_CANDIDATES {
                candidates.push(repaired.to_owned());
            }
        }
        next += 1;
    }
    candidates
}

/// Every single repair that applies, most certain first.
fn repairs(name: &str) -> impl Iterator<Item = &str> {
    let unquoted =
        ['"', '\'', '`'].into_iter().find_map(|quote| name.strip_prefix(quote)?.strip_suffix(quote));
    let bare = PREFIXES.into_iter().find_map(|prefix| name.strip_prefix(prefix));
    let called = name.ends_with(')').then(|| name.split_once('(').map(|(head, _)| head)).flatten();
    let suffixed = name.strip_suffix("_tool");
    let half = name.len() / 2;
    let doubled = (name.len().is_multiple_of(2) && name.is_char_boundary(half))
        .then(|| name.split_at(half))
        .and_then(|(first, second)| (first == second).then_some(first));
    [unquoted, bare, called, suffixed, doubled].into_iter().flatten()
}

/// The form in which spellings of one name are equal: trimmed, lower case, with `_` for `-`, space and `.`.
pub fn fold_name(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    fold_into(name, &mut folded);
    folded
}

fn fold_into(name: &str, folded: &mut String) {
    folded.clear();
    for character in name.trim().chars() {
        match character {
            '-' | ' ' | '.' => folded.push('_'),
            other if other.is_ascii() => folded.push(other.to_ascii_lowercase()),
            other => folded.extend(other.to_lowercase()),
        }
    }
}

/// The names that were probably meant, best first: equal after folding, then one ending with `__` and the other,
/// then few typing errors, then many common trigrams. Ties go to the shorter name, then by name.
///
/// `names` must be the names of the grant and nothing else. The work is linear in their number.
pub fn suggest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    let candidates = name_candidates(wanted);
    // The name as written and the most repaired one: `search_tool` may mean `search_tools` as well as `search`.
    let mut spellings: Vec<String> =
        candidates.first().into_iter().chain(candidates.last()).map(|name| fold_name(name)).collect();
    spellings.dedup();
    spellings.iter_mut().for_each(cut);
    spellings.retain(|spelling| !spelling.is_empty());
    let probes: Vec<Probe<'_>> = spellings.iter().map(|spelling| Probe::new(spelling)).collect();
    let mut best: Vec<(Rank, &'a str)> = Vec::new();
    let mut folded = String::new();
    for name in names {
        let Some(beginning) = name.get(..name.len().min(MAX_NAME_BYTES)) else { continue };
        fold_into(beginning, &mut folded);
        cut(&mut folded);
        let Some(likeness) = probes.iter().filter_map(|probe| probe.likeness(&folded)).min() else {
            continue;
        };
        let entry = (Rank { likeness, length: name.len() }, name);
        let place = best.partition_point(|other| *other < entry);
        if place < limit && best.get(place) != Some(&entry) {
            best.insert(place, entry);
            best.truncate(limit);
        }
    }
    best.into_iter().map(|(_, name)| name).collect()
}

fn cut(folded: &mut String) {
    if folded.len() > MAX_COMPARED_BYTES {
        let mut end = MAX_COMPARED_BYTES;
        while !folded.is_char_boundary(end) {
            end -= 1;
        }
        folded.truncate(end);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    likeness: Likeness,
    length: usize,
}

/// In what way two names are alike; the smaller is the closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Equal,
    Suffix,
    Typos(usize),
    Trigrams(Reverse<usize>),
}

/// A wanted name, prepared to be compared with many.
struct Probe<'a> {
    wanted: &'a [u8],
    letters: u64,
    max_typos: usize,
    /// Which trigrams occur, by a 12-bit hash: a collision can only make two names a little more alike.
    trigrams: Box<[bool; 4096]>,
    trigram_count: usize,
}

impl<'a> Probe<'a> {
    fn new(wanted: &'a str) -> Self {
        let mut trigrams = Box::new([false; 4096]);
        let mut trigram_count = 0;
        for slot in trigram_slots(wanted.as_bytes()) {
            trigrams[slot] = true;
            trigram_count += 1;
        }
        let max_typos = match wanted.len() {
            0..=3 => 1,
            4..=11 => 2,
            _ => 3,
        };
        Self {
            wanted: wanted.as_bytes(),
            letters: letter_set(wanted.as_bytes()),
            max_typos,
            trigrams,
            trigram_count,
        }
    }

    fn likeness(&self, name: &str) -> Option<Likeness> {
        let name = name.as_bytes();
        if name == self.wanted {
            return Some(Likeness::Equal);
        }
        if ends_with_part(name, self.wanted) || ends_with_part(self.wanted, name) {
            return Some(Likeness::Suffix);
        }
        if name.len().abs_diff(self.wanted.len()) <= self.max_typos {
            // One edit changes the set of letters by two at most.
            let different = (letter_set(name) ^ self.letters).count_ones() as usize;
            if different <= 2 * self.max_typos
                && let Some(typos) = edit_distance(self.wanted, name, self.max_typos)
                && typos < self.wanted.len()
            {
                return Some(Likeness::Typos(typos));
            }
        }
        let count = name.len().saturating_sub(2);
        let common = trigram_slots(name).filter(|slot| self.trigrams[*slot]).count();
        let percent = 200 * common / (count + self.trigram_count).max(1);
        (percent >= MIN_TRIGRAM_PCT).then_some(Likeness::Trigrams(Reverse(percent.min(100))))
    }
}

/// Whether `name` is a server's prefix, `__` and `part`.
fn ends_with_part(name: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && name.strip_suffix(part).is_some_and(|prefix| prefix.ends_with(b"__"))
}

fn trigram_slots(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    text.windows(3).map(|window| {
        let code = window.iter().fold(0_u32, |code, byte| (code << 8) | u32::from(*byte));
        // Fibonacci hashing: the top bits of a product with 2^32 / golden ratio.
        (code.wrapping_mul(0x9E37_79B9) >> 20) as usize
    })
}

fn letter_set(text: &[u8]) -> u64 {
    text.iter().fold(0, |set, byte| set | 1 << (byte & 63))
}

/// Edits (insert, delete, replace, swap of neighbours) between two texts; none when there are more than `max`.
fn edit_distance(left: &[u8], right: &[u8], max: usize) -> Option<usize> {
    const WIDTH: usize = MAX_COMPARED_BYTES + 1;
    if left.len() >= WIDTH || right.len() >= WIDTH {
        return None;
    }
    let mut before = [0_usize; WIDTH];
    let mut last: [usize; WIDTH] = std::array::from_fn(|column| column);
    let mut row = [0_usize; WIDTH];
    for (i, left_byte) in left.iter().enumerate() {
        row[0] = i + 1;
        let mut least = row[0];
        for (j, right_byte) in right.iter().enumerate() {
            let replaced = last[j] + usize::from(left_byte != right_byte);
            let mut edits = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && left[i - 1] == *right_byte && *left_byte == right[j - 1] {
                edits = edits.min(before[j - 1] + 1);
            }
            row[j + 1] = edits;
            least = least.min(edits);
        }
        if least > max {
            return None;
        }
        before = last;
        last = row;
    }
    let edits = last[right.len()];
    (edits <= max).then_some(edits)
}
