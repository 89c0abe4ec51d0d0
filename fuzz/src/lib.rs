//! What the fuzz targets share: the parts of Toolrack that they try, what must hold, and how inputs are changed.

mod checks;
#[path = "../../src/core/mod.rs"]
pub mod core;
pub mod mutate;
mod rerank;

/// Tries an input of a target, and panics where what must hold does not.
pub fn check(target: &str, input: &[u8]) {
    let known = checks::CHECKS.iter().find(|(name, _)| *name == target);
    let (_, check) = known.expect("a target has a check");
    check(input);
}

/// The fuzz target of this name.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        libfuzzer_sys::fuzz_target!(|input: &[u8]| $crate::check($name, input));
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::mutate::mutate(data, size, max_size, seed)
        });
    };
}
