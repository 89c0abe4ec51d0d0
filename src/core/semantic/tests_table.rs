//! The table that is compiled in.

use sha2::{Digest as _, Sha256};

use super::table;

const NOTICE: &str = include_str!("../../../NOTICE");
const MANUAL: &str = include_str!("../../../tools/vectors/README.md");
const BYTES: &[u8] = include_bytes!("table.bin");

#[test]
fn notice_and_manual_tell_the_table_that_is_compiled_in() {
    let digest = hex::encode(Sha256::digest(BYTES));
    assert!(NOTICE.contains(&digest) && MANUAL.contains(&digest), "{digest}");
    assert!(BYTES.len() <= 8 << 20);
}

#[test]
fn it_is_there_in_builds_with_the_feature_alone() {
    assert_eq!(table().is_some(), cfg!(feature = "semantic"));
    assert!(table().is_none_or(|table| table.bytes() < 14 << 20));
}
