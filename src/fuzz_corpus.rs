//! The checks of the fuzz targets over their committed corpus, without a fuzzer: what must hold whatever comes in holds for
//! these inputs with every build. `just fuzz` looks for others.

#[path = "../fuzz/src/checks/mod.rs"]
mod checks;

use std::fs;
use std::path::{Path, PathBuf};

/// The inputs of a target.
fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn what_must_hold_of_any_input_holds_for_the_corpus() {
    for (target, check) in checks::CHECKS {
        let files = corpus(target);
        assert!(!files.is_empty(), "no input for {target}");
        for file in files {
            let input = fs::read(&file).unwrap();
            let held = std::panic::catch_unwind(|| check(&input));
            assert!(held.is_ok(), "{} breaks {target}", file.display());
        }
    }
}

#[test]
fn each_target_has_a_check() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fuzz_targets");
    let mut names: Vec<String> = fs::read_dir(targets)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    assert_eq!(names, checks::CHECKS.map(|(name, _)| name));
}
