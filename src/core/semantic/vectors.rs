//! Vectors of tools and queries, and how like they are.
//!
//! A vector is kept as whole numbers. The leading dimensions of all tools lie together, so that a scan of a large catalog
//! reads a part of the memory; the few hundred best are then compared again over all dimensions.

use std::fmt;

use super::table::Table;
use super::wordpiece::Reader;

/// Dimensions of a block: as many as the compiler multiplies without a loop, see [`dot`].
const BLOCK: usize = 64;
/// Blocks that a scan of many tools reads. With 128 of 256 dimensions the best 200 by the leading ones hold 99.9 % of the true
/// best 20, with 96 99.3 %, with 64 96 % (6,700 real tools, 750 queries of seven sets). Their sum as it stands estimates the
/// cosine: divided by the lengths of the leading parts it picks hardly better, and spreads wider than the cosines do.
const LEADING_BLOCKS: usize = 2;
/// Largest number in a tool's vector.
const TOOL_STEPS: f32 = 127.0;
/// Largest number in a query's vector. There is one query, so it can be finer; with 1,024 dimensions a sum of products still
/// fits an i32.
const QUERY_STEPS: f32 = 4_095.0;
/// Up to so many candidates are compared at full width, which takes 15 ns each on plain x86-64; of more, the leading
/// dimensions at first.
const MAX_FULL_WIDTH: usize = 2_000;

/// Characters read of a description (recipe of the ranking trial).
const MAX_DESCRIPTION_CHARS: usize = 1_500;
/// Characters read of a name, a group, a parameter's name or an alias.
const MAX_LABEL_CHARS: usize = 256;
/// Aliases read of a tool, and characters of all of its parameter names.
const MAX_ALIASES: usize = 100;
const MAX_PARAMETER_CHARS: usize = 6_000;
/// Characters read of one text of a query, and tokens kept of all of them.
const MAX_QUERY_CHARS: usize = 2_000;
const MAX_TOKENS: usize = 8_192;

/// The text of one tool that makes its vector.
#[derive(Debug, Clone, Copy)]
pub struct ToolText<'a> {
    /// Group (server) of the upload; may be empty.
    pub group: &'a str,
    pub name: &'a str,
    pub description: &'a str,
    /// Names of the parameters, nested ones too.
    pub parameters: &'a [&'a str],
    /// Phrases that people use for the tool.
    pub aliases: &'a [String],
}

/// What one token counts for in each field of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    pub group: f32,
    pub name: f32,
    pub description: f32,
    pub parameters: f32,
    pub aliases: f32,
}

impl Default for Weights {
    /// Those of the ranking trial. Aliases, which it did not have, count as much as the name.
    fn default() -> Self {
        Self { group: 1.0, name: 1.0, description: 1.0, parameters: 0.5, aliases: 1.0 }
    }
}

/// Tokens that are to be summed. A buffer.
#[derive(Debug, Default)]
struct Bag {
    reader: Reader,
    /// Number of a word that has a vector, and its weight.
    tokens: Vec<(u32, f32)>,
    sum: Vec<f32>,
}

impl Bag {
    fn add(&mut self, table: &Table, text: &str, weight: f32, max_chars: usize) {
        if !(weight > 0.0 && weight.is_finite()) {
            return;
        }
        let words = self.reader.read(table.vocabulary(), text, max_chars).iter();
        let rows = words.filter(|&&word| (word as usize) < table.rows());
        let room = MAX_TOKENS.saturating_sub(self.tokens.len());
        self.tokens.extend(rows.take(room).map(|&row| (row, weight)));
    }

    /// Sums the tokens and forgets them. Each word once and in the order of the table: the sum does not depend on the order of
    /// the texts.
    fn sum(&mut self, table: &Table) -> &[f32] {
        self.tokens.sort_unstable_by_key(|&(row, weight)| (row, weight.to_bits()));
        self.sum.clear();
        self.sum.resize(table.dimensions(), 0.0);
        for same in self.tokens.chunk_by(|a, b| a.0 == b.0) {
            let weight = same.iter().map(|&(_, weight)| weight).sum();
            table.add_to(&mut self.sum, same[0].0, weight);
        }
        self.tokens.clear();
        &self.sum
    }
}

/// Shortens `sum` to whole numbers of at most `steps`, and hands each to `push`. The answer is one over their length: times
/// it they are a unit vector. 0 if `sum` has no direction.
fn quantise(sum: &[f32], steps: f32, mut push: impl FnMut(i16)) -> f32 {
    let largest = sum.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let factor = steps / largest;
    if !(factor.is_finite() && factor > 0.0) {
        return 0.0;
    }
    let mut squares = 0;
    for number in sum {
        let number = (number * factor).round() as i16;
        squares += i64::from(number).pow(2);
        push(number);
    }
    (1.0 / (squares as f64).sqrt()) as f32
}

/// The vectors of one catalog's tools, numbered from 0 in the order they were added.
#[derive(Default)]
pub struct Vectors {
    leading: Vec<[[i8; BLOCK]; LEADING_BLOCKS]>,
    /// The other blocks, `rest_blocks` for each tool.
    rest: Vec<[i8; BLOCK]>,
    rest_blocks: usize,
    /// One over the length of each tool's numbers.
    scales: Vec<f32>,
}

impl Vectors {
    /// Number of tools.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Approximate size on the heap, for weighing in caches.
    pub fn bytes(&self) -> usize {
        self.leading.as_flattened().len() * BLOCK + self.rest.len() * BLOCK + self.scales.len() * 4
    }

    /// Cosine of tool `document` and `query`, -1 to 1; 0 if one of them has no known word.
    pub fn exact(&self, document: usize, query: &Query<'_>) -> f32 {
        let (Some(leading), Some(scale)) = (self.leading.get(document), self.scales.get(document)) else {
            return 0.0;
        };
        let start = document * self.rest_blocks;
        let tool = leading.iter().chain(&self.rest[start..start + self.rest_blocks]);
        let sum: i32 = tool.zip(&query.blocks).map(|(tool, query)| dot(tool, query)).sum();
        sum as f32 * (scale * query.scale)
    }

    /// Writes to each candidate what its leading dimensions say about the cosine.
    fn estimate(&self, candidates: &[u32], query: &Query<'_>, scores: &mut [f32]) {
        for ((leading, scale), &candidate) in self.leading.iter().zip(&self.scales).zip(candidates) {
            if let Some(score) = scores.get_mut(candidate as usize) {
                let sum: i32 = leading.iter().zip(&query.blocks).map(|(tool, query)| dot(tool, query)).sum();
                *score = sum as f32 * (scale * query.scale);
            }
        }
    }
}

impl fmt::Debug for Vectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vectors")
            .field("tools", &self.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// Sum of products. Neighbours are added in pairs because x86-64 has had one instruction for that (`pmaddwd`) from the start,
/// which the compiler finds in this shape, and unrolled: three times as fast as a plain sum. Inlined into a loop it may not.
#[inline(never)]
fn dot(tool: &[i8; BLOCK], query: &[i16; BLOCK]) -> i32 {
    let mut lanes = [0; 4];
    for (tool, query) in tool.as_chunks::<8>().0.iter().zip(query.as_chunks::<8>().0) {
        let product = |at: usize| i32::from(tool[at]) * i32::from(query[at]);
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += product(2 * lane) + product(2 * lane + 1);
        }
    }
    lanes.iter().sum()
}

/// Makes the vectors of a catalog.
#[derive(Debug)]
pub struct Builder<'t> {
    table: &'t Table,
    weights: Weights,
    bag: Bag,
    vectors: Vectors,
}

impl<'t> Builder<'t> {
    pub fn new(table: &'t Table, weights: Weights) -> Self {
        let rest_blocks = table.dimensions().div_ceil(BLOCK).saturating_sub(LEADING_BLOCKS);
        Self { table, weights, bag: Bag::default(), vectors: Vectors { rest_blocks, ..Vectors::default() } }
    }

    /// Adds the next tool. One without a known word is like nothing.
    pub fn add(&mut self, tool: &ToolText<'_>) {
        let Self { table, weights, bag, vectors } = self;
        bag.add(table, tool.name, weights.name, MAX_LABEL_CHARS);
        bag.add(table, tool.group, weights.group, MAX_LABEL_CHARS);
        bag.add(table, tool.description, weights.description, MAX_DESCRIPTION_CHARS);
        let mut left = MAX_PARAMETER_CHARS;
        for name in tool.parameters.iter().take(MAX_PARAMETER_CHARS) {
            bag.add(table, name, weights.parameters, left.min(MAX_LABEL_CHARS));
            left = left.saturating_sub(name.len());
        }
        for alias in tool.aliases.iter().take(MAX_ALIASES) {
            bag.add(table, alias, weights.aliases, MAX_LABEL_CHARS);
        }
        let mut leading = [[0; BLOCK]; LEADING_BLOCKS];
        let first = vectors.rest.len();
        vectors.rest.resize(first + vectors.rest_blocks, [0; BLOCK]);
        let mut blocks =
            leading.as_flattened_mut().iter_mut().chain(vectors.rest[first..].as_flattened_mut());
        let scale = quantise(bag.sum(table), TOOL_STEPS, |number| {
            if let Some(slot) = blocks.next() {
                // At most 127 by the steps.
                *slot = number as i8;
            }
        });
        vectors.leading.push(leading);
        vectors.scales.push(scale);
    }

    pub fn finish(mut self) -> Vectors {
        self.vectors.leading.shrink_to_fit();
        self.vectors.rest.shrink_to_fit();
        self.vectors.scales.shrink_to_fit();
        self.vectors
    }
}

/// The vector of a query. A buffer: `begin`, then `add` its texts, then `finish`.
#[derive(Debug)]
pub struct Query<'t> {
    table: &'t Table,
    bag: Bag,
    blocks: Vec<[i16; BLOCK]>,
    scale: f32,
}

impl<'t> Query<'t> {
    pub fn new(table: &'t Table) -> Self {
        Self { table, bag: Bag::default(), blocks: Vec::new(), scale: 0.0 }
    }

    /// Forgets the last query.
    pub fn begin(&mut self) {
        self.bag.tokens.clear();
        self.blocks.clear();
        self.scale = 0.0;
    }

    /// Adds a text; each of its tokens counts `weight`. The order of the texts does not matter.
    pub fn add(&mut self, text: &str, weight: f32) {
        self.bag.add(self.table, text, weight, MAX_QUERY_CHARS);
    }

    /// Makes the vector of what was added.
    pub fn finish(&mut self) {
        self.blocks.clear();
        let numbers = self.bag.sum(self.table);
        self.blocks.resize(numbers.len().div_ceil(BLOCK), [0; BLOCK]);
        let mut slots = self.blocks.as_flattened_mut().iter_mut();
        self.scale = quantise(numbers, QUERY_STEPS, |number| {
            if let Some(slot) = slots.next() {
                *slot = number;
            }
        });
    }

    /// Whether it has no known word, so that all tools are equally unlike it.
    pub fn is_empty(&self) -> bool {
        self.scale == 0.0
    }
}

/// The vectors of one catalog that takes part in a search.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub vectors: &'a Vectors,
    /// Per tool: its candidate. One that is not below the number of candidates is not visible, nor is a missing one.
    pub candidates: &'a [u32],
}

/// Writes to each candidate, by number, how like the query it is; `unseen` to those of no part. Few candidates are compared at full
/// width, of many what their leading dimensions say: [`Vectors::exact`] tells the cosines of the best.
pub fn scan(parts: &[Part<'_>], query: &Query<'_>, scores: &mut [f32], unseen: f32) {
    scores.fill(unseen);
    let full = scores.len() <= MAX_FULL_WIDTH;
    for part in parts {
        if !full {
            part.vectors.estimate(part.candidates, query, scores);
            continue;
        }
        for (document, &candidate) in part.candidates.iter().enumerate().take(part.vectors.len()) {
            if let Some(score) = scores.get_mut(candidate as usize) {
                *score = part.vectors.exact(document, query);
            }
        }
    }
}
