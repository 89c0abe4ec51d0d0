//! Prints tools of the seeded generator, one a line, to be imported in a browser: `messy_catalog COUNT`.

use std::io::Write as _;

#[expect(dead_code, unused_imports, reason = "the integration tests use more of the generator")]
#[path = "../it/messy/mod.rs"]
mod messy;

const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).ok_or("how many tools?")?.parse()?;
    let mut out = std::io::stdout().lock();
    for tool in messy::catalog(SEED, count) {
        writeln!(out, "{tool}")?;
    }
    Ok(())
}
