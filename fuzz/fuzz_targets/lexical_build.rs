//! Any catalog, with some of its tools hidden, and any query over it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolrack_fuzz::lexical::NONE;
use toolrack_fuzz::{Tool, check, index};

fuzz_target!(|input: (Vec<Tool>, u64, String, u8)| {
    let (tools, hidden, query, limit) = input;
    let index = index(&tools);
    let is_hidden = |number: u32| hidden >> (number % 64) & 1 == 1;
    let candidates: Vec<u32> =
        (0..tools.len() as u32).map(|number| if is_hidden(number) { NONE } else { number }).collect();
    check(&tools, &index, &candidates, &query, usize::from(limit));
    // The names of the catalog are likelier to match than what comes by chance.
    if let Some(tool) = tools.first() {
        check(&tools, &index, &candidates, &tool.name, usize::from(limit));
    }
});
