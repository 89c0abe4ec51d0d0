//! A provider's prompt cache, as far as it decides what a prompt costs: the longest beginning that was sent before.
//!
//! Counted by whole parts (an entry of the array, the system text, a message), as with breakpoints behind them.

use std::collections::{HashMap, HashSet};

use toolrack::core::digest::Digest;

/// Nothing shorter is cached (`tool-formats.md`, section 2.1: 512 to 4,096 tokens by model).
const LEAST_CACHED: usize = 1_024;

/// Price of a token that is written to the cache, and of one that is read, in prices of a plain one (Anthropic, 5 minutes).
const WRITE: f64 = 1.25;
const READ: f64 = 0.1;

/// What the requests of one or more sessions came to, in tokens.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) calls: usize,
    pub(crate) prompt: usize,
    pub(crate) read: usize,
    /// Not read from the cache, though sent before in the same session.
    pub(crate) again: usize,
    /// The longest prompt.
    pub(crate) largest: usize,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.prompt += other.prompt;
        self.read += other.read;
        self.again += other.again;
        self.largest = self.largest.max(other.largest);
    }

    pub(crate) fn written(&self) -> usize {
        self.prompt - self.read
    }

    /// In tokens of the plain price.
    pub(crate) fn cost(&self) -> f64 {
        WRITE * self.written() as f64 + READ * self.read as f64
    }
}

/// The cache of one session.
#[derive(Debug, Default)]
pub(crate) struct PromptCache {
    prompts: Vec<Vec<Digest>>,
    tokens: HashMap<Digest, usize>,
    sent: HashSet<Digest>,
    pub(crate) totals: Totals,
}

impl PromptCache {
    /// A prompt in the order in which the provider renders it.
    pub(crate) fn request(&mut self, parts: &[&str]) {
        let prompt: Vec<Digest> = parts.iter().map(|part| Digest::of(part.as_bytes())).collect();
        for (digest, part) in prompt.iter().zip(parts) {
            self.tokens.entry(*digest).or_insert_with(|| bpe_openai::o200k_base().count(part));
        }
        let count = |parts: &[Digest]| parts.iter().map(|part| self.tokens[part]).sum::<usize>();
        let common = |old: &Vec<Digest>| old.iter().zip(&prompt).take_while(|(old, new)| old == new).count();
        let hit = self.prompts.iter().map(common).max().unwrap_or_default();
        let hit = if count(&prompt[..hit]) < LEAST_CACHED { 0 } else { hit };
        let again: Vec<Digest> =
            prompt[hit..].iter().filter(|part| self.sent.contains(*part)).copied().collect();
        let request = Totals {
            calls: 1,
            prompt: count(&prompt),
            read: count(&prompt[..hit]),
            again: count(&again),
            largest: count(&prompt),
        };
        self.totals.add(&request);
        self.sent.extend(&prompt);
        self.prompts.push(prompt);
    }
}
