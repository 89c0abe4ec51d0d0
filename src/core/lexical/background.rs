//! How common a word is among tools at large, so that a catalog of ten tools knows that `get` says less than `invoice`.
//!
//! `background.txt` holds numbers about words, not texts: per class the English stems of letters that tools of many servers
//! use. Class `c` stands for a share of `2^(-c/4)` of all tools. The test `background_is_fresh` counted them and writes
//! the file anew when `TOOLRACK_REGENERATE` is set:
//! `TOOLRACK_REGENERATE=1 cargo test --features data-tests background_is_fresh`.

use std::sync::LazyLock;

use super::terms::{Kind, TermTable, key};

const TEXT: &str = include_str!("background.txt");

/// Classes per halving of the share.
pub(super) const CLASSES_PER_HALVING: f32 = 4.0;

#[derive(Debug)]
struct Background {
    terms: TermTable,
    /// Share of tools per term, in the order of the table.
    shares: Vec<f32>,
}

static BACKGROUND: LazyLock<Background> = LazyLock::new(|| {
    let mut entries: Vec<(u64, f32)> = Vec::new();
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(' ');
        let Some(class) = fields.next().and_then(|class| class.parse::<f32>().ok()) else { continue };
        let share = (-class / CLASSES_PER_HALVING).exp2();
        entries.extend(fields.map(|stem| (key(Kind::Stem, stem), share)));
    }
    entries.sort_unstable_by_key(|entry| entry.0);
    entries.dedup_by_key(|entry| entry.0);
    let (keys, shares) = entries.into_iter().unzip();
    Background { terms: TermTable::new(keys), shares }
});

/// Share of tools, over all catalogs, that hold the stem with this key; `None` for one that hardly any holds.
pub(super) fn share_of(stem_key: u64) -> Option<f32> {
    BACKGROUND.terms.find(stem_key).map(|place| BACKGROUND.shares[place])
}
