//! What likeness means, over a table of a few words made here.

use proptest::prelude::*;

use super::*;

/// Dimensions of the tables made here: more than two blocks, so that the last one is not full.
pub(super) const DIMENSIONS: usize = 300;

/// A table file: `rows` with their vectors (missing dimensions are 0), then words without one.
pub(super) fn file(rows: &[(&str, f32, Vec<i8>)], bare: &[&str]) -> Vec<u8> {
    let words: String = rows
        .iter()
        .map(|(word, ..)| *word)
        .chain(bare.iter().copied())
        .map(|word| format!("{word}\n"))
        .collect();
    let mut bytes = b"TRTABLE1".to_vec();
    for number in [rows.len() + bare.len(), rows.len(), DIMENSIONS, words.len()] {
        bytes.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    bytes.extend(rows.iter().flat_map(|(_, scale, _)| scale.to_le_bytes()));
    bytes.extend(words.as_bytes());
    for (_, _, vector) in rows {
        let padded = vector.iter().copied().chain(std::iter::repeat(0)).take(DIMENSIONS);
        bytes.extend(padded.map(i8::cast_unsigned));
    }
    bytes
}

/// A table of the service's kind: words of like meaning point the same way, each with a direction of its own besides.
pub(super) fn sample_table() -> Table {
    const MEANINGS: [&[&str]; 6] = [
        &["delete", "remove", "erase", "drop"],
        &["file", "document", "folder", "path"],
        &["weather", "rain", "forecast", "temperature"],
        &["send", "post", "mail", "message"],
        &["user", "person", "member", "account"],
        &["city", "town", "place", "##ville"],
    ];
    let words = MEANINGS
        .iter()
        .enumerate()
        .flat_map(|(meaning, words)| words.iter().map(move |word| (meaning, *word)));
    let rows: Vec<(&str, f32, Vec<i8>)> = words
        .enumerate()
        .map(|(number, (meaning, word))| {
            let mut vector = vec![0; DIMENSIONS];
            vector[meaning] = 100;
            vector[DIMENSIONS - 1 - number] = 50;
            vector[10 + number] = -30;
            (word, 0.01, vector)
        })
        .collect();
    Table::read(file(&rows, &["the", "a", "of", "in"]).leak()).unwrap()
}

pub(super) fn tool<'a>(name: &'a str, description: &'a str) -> ToolText<'a> {
    ToolText { group: "", name, description, parameters: &[], aliases: &[] }
}

pub(super) fn vectors(table: &Table, tools: &[ToolText<'_>]) -> Vectors {
    let mut builder = Builder::new(table, Weights::default());
    tools.iter().for_each(|tool| builder.add(tool));
    builder.finish()
}

pub(super) fn query<'t>(table: &'t Table, text: &str) -> Query<'t> {
    let mut query = Query::new(table);
    query.begin();
    query.add(text, 1.0);
    query.finish();
    query
}

fn likeness(table: &Table, tool: &ToolText<'_>, text: &str) -> f32 {
    vectors(table, &[*tool]).exact(0, &query(table, text))
}

#[test]
fn other_words_of_the_same_meaning_find_the_tool() {
    let table = sample_table();
    let tools = vectors(
        &table,
        &[
            tool("erase_document", ""),
            tool("getForecast", "rain of a town"),
            tool("post-message", "to a member"),
        ],
    );
    for (text, best) in [("remove the file", 0), ("weather in the city", 1), ("mail an account", 2)] {
        let query = query(&table, text);
        let scores: Vec<f32> = (0..3).map(|tool| tools.exact(tool, &query)).collect();
        for other in (0..3).filter(|&other| other != best) {
            assert!(scores[best] > scores[other] + 0.3, "{text}: {scores:?}");
        }
    }
}

#[test]
fn a_text_is_like_itself_and_unknown_words_are_like_nothing() {
    let table = sample_table();
    assert!((likeness(&table, &tool("delete_file", ""), "delete file") - 1.0).abs() < 1e-3);
    assert!(
        (likeness(&table, &tool("", "Rain, rain of the town."), "the RAIN-town rain") - 1.0).abs() < 1e-3
    );
    for (name, text) in [("", "file"), ("file", ""), ("xyzzy", "xyzzy"), ("the", "the"), ("書", "書")] {
        assert_eq!(likeness(&table, &tool(name, ""), text), 0.0);
    }
    assert!(query(&table, "the xyzzy").is_empty());
    assert!(!query(&table, "the file").is_empty());
}

#[test]
fn fields_count_as_their_weights_say() {
    let table = sample_table();
    let aliases = ["rain".to_owned()];
    let whole = ToolText {
        group: "mail",
        name: "delete",
        description: "file",
        parameters: &["user", "city"],
        aliases: &aliases,
    };
    let mut query = Query::new(&table);
    query.begin();
    query.add("user city", 0.5);
    query.add("delete mail file rain", 1.0);
    query.finish();
    assert!((vectors(&table, &[whole]).exact(0, &query) - 1.0).abs() < 1e-3);
    let mut builder = Builder::new(&table, Weights { name: 0.0, ..Weights::default() });
    builder.add(&tool("delete", "file"));
    assert!((builder.finish().exact(0, &self::query(&table, "file")) - 1.0).abs() < 1e-3);
}

#[test]
fn only_the_beginning_of_a_description_counts() {
    let table = sample_table();
    let description = format!("rain {}delete", ". ".repeat(750));
    assert!((likeness(&table, &tool("", &description), "rain") - 1.0).abs() < 1e-3);
}

#[test]
fn a_query_starts_anew() {
    let table = sample_table();
    let mut query = query(&table, "delete the file");
    query.begin();
    assert!(query.is_empty());
    let tools = vectors(&table, &[tool("rain", "")]);
    assert_eq!(tools.exact(0, &query), 0.0);
    query.add("rain", 1.0);
    query.finish();
    assert!((tools.exact(0, &query) - 1.0).abs() < 1e-3);
}

#[test]
fn the_same_bits_on_every_machine() {
    let table = sample_table();
    let tools =
        vectors(&table, &[tool("erase_document", "Drops a path of the user."), tool("getTemperature", "")]);
    let query = query(&table, "remove my documents and forecast rain");
    let bits = [0, 1].map(|tool| tools.exact(tool, &query).to_bits());
    assert_eq!(bits, [0x3e1a_99e3, 0x3f34_066f]);
}

/// Candidates of several catalogs: some hidden, one document without an entry.
const FIRST: [u32; 3] = [4, u32::MAX, 0];
const SECOND: [u32; 2] = [1, 3];

#[test]
fn a_scan_writes_the_visible_tools_of_all_parts() {
    let table = sample_table();
    let first = vectors(&table, &[tool("file", ""), tool("file", ""), tool("rain", "")]);
    let second = vectors(&table, &[tool("document", ""), tool("mail", ""), tool("file", "")]);
    let query = query(&table, "file");
    let parts =
        [Part { vectors: &first, candidates: &FIRST }, Part { vectors: &second, candidates: &SECOND }];
    let mut scores = [9.0; 5];
    scan(&parts, &query, &mut scores, 0.0);
    let expected = [
        first.exact(2, &query),
        second.exact(0, &query),
        0.0,
        second.exact(1, &query),
        first.exact(0, &query),
    ];
    assert_eq!(scores, expected);
    assert!(scores[4] > 0.99 && scores[1] > 0.5 && scores[0] < 0.1);
    let mut swapped = [9.0; 5];
    scan(&[parts[1], parts[0]], &query, &mut swapped, 0.0);
    assert_eq!(swapped, scores);
    scan(&parts, &query, &mut scores[..0], 0.0);
}

#[test]
fn many_candidates_are_estimated() {
    let table = sample_table();
    let tools = vectors(&table, &[tool("file", ""), tool("document", "folder"), tool("rain", "")]);
    let query = query(&table, "remove the file");
    let parts = [Part { vectors: &tools, candidates: &[7, 70_000, 9] }];
    let mut scores = vec![9.0; 100_000];
    scan(&parts, &query, &mut scores, 0.0);
    let estimates = [scores[7], scores[70_000], scores[9]];
    assert_eq!(scores[8], 0.0);
    let exact = [0, 1, 2].map(|tool| tools.exact(tool, &query));
    for (estimate, exact) in estimates.iter().zip(exact) {
        assert!((estimate - exact).abs() < 0.3, "{estimates:?} {exact:?}");
    }
    scan(&parts, &self::query(&table, "xyzzy"), &mut scores, 0.0);
    assert!(scores.iter().all(|&score| score == 0.0));
}

/// Sums in f32 and cosines of them, to compare with.
fn plain_cosine(left: &[f32], right: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    product(left, right) / (product(left, left) * product(right, right)).sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn little_is_lost_in_whole_numbers(numbers in prop::collection::vec(any::<i8>(), 6 * DIMENSIONS)) {
        let names = ["one", "two", "three", "four", "five", "six"];
        let rows: Vec<(&str, f32, Vec<i8>)> = names
            .into_iter()
            .zip(numbers.chunks(DIMENSIONS))
            .map(|(name, row)| (name, 0.02, row.to_vec()))
            .collect();
        let table = Table::read(file(&rows, &[]).leak()).unwrap();
        let sum = |picked: &[usize]| -> Vec<f32> {
            (0..DIMENSIONS).map(|at| picked.iter().map(|&row| f32::from(rows[row].2[at])).sum()).collect()
        };
        let tools = vectors(&table, &[tool("one two three", ""), tool("four", "five")]);
        let query = query(&table, "three six six");
        for (number, rows) in [&[0, 1, 2][..], &[3, 4]].into_iter().enumerate() {
            let expected = plain_cosine(&sum(rows), &sum(&[2, 5, 5]));
            prop_assert!((tools.exact(number, &query) - expected).abs() < 0.01);
        }
    }

    #[test]
    fn the_order_of_words_and_texts_does_not_matter(
        words in prop::collection::vec((prop::sample::select(vec!["file", "rain", "delete", "mail", "townville", "the"]), 0.1_f32..2.0), 1..20),
        turn in 0_usize..20,
    ) {
        let table = sample_table();
        let made = |words: &mut dyn Iterator<Item = &(&str, f32)>| {
            let mut query = Query::new(&table);
            words.for_each(|(word, weight)| query.add(word, *weight));
            query.finish();
            query
        };
        let tools = vectors(&table, &[tool("remove_file", "rain in a city"), tool("mail", "")]);
        let (head, tail) = words.split_at(turn.min(words.len()));
        let (straight, turned) = (made(&mut words.iter()), made(&mut tail.iter().chain(head).rev()));
        for document in 0..2 {
            let score = tools.exact(document, &straight);
            prop_assert_eq!(score.to_bits(), tools.exact(document, &turned).to_bits());
            prop_assert!((-1.001..=1.001).contains(&score));
        }
        let (texts, backwards): (Vec<&str>, Vec<&str>) =
            (words.iter().map(|(word, _)| *word).collect(), words.iter().rev().map(|(word, _)| *word).collect());
        let tools = vectors(&table, &[tool("", &texts.join(" ")), tool(&backwards.join("_"), "")]);
        let query = query(&table, "document");
        prop_assert_eq!(tools.exact(0, &query).to_bits(), tools.exact(1, &query).to_bits());
    }
}
