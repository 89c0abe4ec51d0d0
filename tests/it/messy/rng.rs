//! Randomness that a seed decides: numbers, orders, and shares that hold.

/// Small seedable generator of random numbers: splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `n - 1`; 0 when `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let n = n.max(1) as u128;
        ((u128::from(self.next_u64()) * n) >> 64) as usize
    }

    /// One entry of a list that is not empty.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// The items in another order (Fisher and Yates).
pub(crate) fn shuffled<T>(seed: u64, mut items: Vec<T>) -> Vec<T> {
    let mut rng = Rng::new(seed);
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last + 1));
    }
    items
}

/// How often each kind occurs in a thousand; kinds are dealt like cards, so that shares hold in every thousand.
pub(super) struct Deck<T: 'static> {
    table: &'static [(usize, T)],
    cards: Vec<T>,
}

impl<T: Copy> Deck<T> {
    pub(super) fn new(table: &'static [(usize, T)]) -> Self {
        Self { table, cards: Vec::new() }
    }

    pub(super) fn deal(&mut self, rng: &mut Rng) -> T {
        if self.cards.is_empty() {
            let all = self.table.iter().flat_map(|&(share, kind)| std::iter::repeat_n(kind, share));
            self.cards = shuffled(rng.next_u64(), all.collect());
        }
        self.cards.pop().unwrap_or(self.table[0].1)
    }
}
