//! Broken tables and hostile texts: never a panic, bounded work.

use proptest::prelude::*;

use super::tests::{DIMENSIONS, file, query, sample_table, tool, vectors};
use super::*;

fn small_file() -> Vec<u8> {
    file(&[("file", 0.5, vec![1, -2, 3]), ("##s", 0.25, vec![-128, 127])], &["the"])
}

fn reads(bytes: Vec<u8>) -> bool {
    Table::read(bytes.leak()).is_some()
}

#[test]
fn a_table_of_any_other_length_is_refused() {
    let bytes = small_file();
    assert!(reads(bytes.clone()));
    for length in 0..bytes.len() {
        assert!(!reads(bytes[..length].to_vec()), "{length}");
    }
    assert!(!reads([bytes, vec![0]].concat()));
}

#[test]
fn a_table_that_contradicts_itself_is_refused() {
    let with = |at: usize, number: u32| {
        let mut bytes = small_file();
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        reads(bytes)
    };
    assert!(with(8, 3) && with(12, 2) && with(16, DIMENSIONS as u32));
    for at in [8, 12, 16, 20] {
        for number in [0, 1, 4, 2_000, 1 << 24, u32::MAX / 4 + 1, u32::MAX] {
            assert!(!with(at, number), "{at} {number}");
        }
    }
    for scale in [f32::NAN, f32::INFINITY, -1.0, 1e9] {
        assert!(!with(24, scale.to_bits()), "{scale}");
    }
    assert!(with(24, 0.0_f32.to_bits()));
    assert!(!reads(file(&[("file", 1.0, vec![])], &["file"])));
    assert!(!reads(file(&[("file", 1.0, vec![])], &[""])));
    let mut bytes = small_file();
    bytes[32] = 0xff;
    assert!(!reads(bytes), "a vocabulary that is no text");
}

#[test]
fn hostile_texts_are_bounded() {
    let table = sample_table();
    let texts = [
        "🦀".repeat(250_000),
        "a".repeat(100_000),
        "file".repeat(25_000),
        "file ".repeat(200_000),
        "e\u{301}".repeat(300_000),
        "\u{301}".repeat(500_000),
        "\u{fdfa}".repeat(300_000),
        "aB".repeat(100_000),
        "a1".repeat(100_000),
        "書".repeat(300_000),
        "\u{0}\u{202e}".repeat(200_000),
        "ß".repeat(100_000),
    ];
    let names: Vec<&str> = texts.iter().map(String::as_str).cycle().take(20_000).collect();
    for text in &texts {
        let parameters = &names[..];
        let tools = vectors(
            &table,
            &[ToolText { group: text, name: text, description: text, parameters, aliases: &texts }],
        );
        let mut query = Query::new(&table);
        for _ in 0..100 {
            query.add(text, 1.0);
        }
        query.finish();
        let score = tools.exact(0, &query);
        assert!(score.is_finite() && score.abs() < 1.001);
    }
}

#[test]
fn a_weight_that_is_no_weight_counts_nothing() {
    let table = sample_table();
    let tools = vectors(&table, &[tool("rain", "")]);
    for weight in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let mut query = Query::new(&table);
        query.add("rain", weight);
        query.finish();
        assert!(query.is_empty());
        assert_eq!(tools.exact(0, &query), 0.0);
    }
    for weight in [f32::MIN_POSITIVE, f32::MAX] {
        let mut query = Query::new(&table);
        query.add("rain rain", weight);
        query.finish();
        let score = tools.exact(0, &query);
        assert!(score.is_finite() && score.abs() < 1.001);
    }
}

#[test]
fn a_document_that_is_not_there_is_like_nothing() {
    let table = sample_table();
    let query = query(&table, "rain");
    assert_eq!(Vectors::default().exact(0, &query), 0.0);
    assert_eq!(vectors(&table, &[tool("rain", "")]).exact(usize::MAX, &query), 0.0);
    let empty = Vectors::default();
    scan(&[Part { vectors: &empty, candidates: &[0, 1] }], &query, &mut [0.0; 2], 0.0);
}

proptest! {
    #[test]
    fn a_changed_table_is_refused_or_works(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = small_file();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(table) = Table::read(bytes.leak()) {
            let score = vectors(&table, &[tool("files", "the file")]).exact(0, &query(&table, "file s"));
            prop_assert!(score.is_finite());
        }
    }

    #[test]
    fn any_text_has_a_vector(name in any::<String>(), text in any::<String>(), scale in 0_f32..2.0) {
        let table = sample_table();
        let tools = vectors(&table, &[tool(&name, &text)]);
        let mut query = Query::new(&table);
        query.add(&text, scale);
        query.add(&name, 1.0);
        query.finish();
        prop_assert!(tools.exact(0, &query).abs() < 1.001);
    }
}
