//! The generator keeps what it promises: the same output for a seed, and a share of every kind of mess.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::{Shape, broken, catalog, definition, identity, schema, shuffled};

const SEED: u64 = 7;
const COUNT: usize = 7_000;

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Accepted by every provider.
fn is_plain_name(name: &str) -> bool {
    let tail = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let head = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    head && name.len() <= 64 && name.bytes().all(tail)
}

#[test]
fn a_seed_gives_the_same_catalog_every_time() {
    assert_eq!(catalog(SEED, 1_500), catalog(SEED, 1_500));
    assert_eq!(broken(SEED, 50), broken(SEED, 50));
    assert_ne!(catalog(SEED, 1_500), catalog(SEED + 1, 1_500));
    // Known output: a change of the generator shows here, not in a far test that depends on a certain catalog.
    assert_eq!(identity(&catalog(SEED, 1)[0]), ("fellbay-server", "MonitorPendingBranch"));
}

#[test]
fn a_catalog_has_the_size_that_was_asked_for() {
    for count in [0, 1, 2, 9, 100, COUNT] {
        assert_eq!(catalog(SEED, count).len(), count);
    }
    let text = serde_json::to_string(&catalog(SEED, COUNT)).expect("values serialise");
    assert!((4 << 20..12 << 20).contains(&text.len()), "{} bytes do not fit into one upload", text.len());
}

#[test]
fn shuffling_keeps_every_item() {
    let mut items = shuffled(SEED, (0..500).collect());
    assert_ne!(items, (0..500).collect::<Vec<_>>());
    items.sort_unstable();
    assert_eq!(items, (0..500).collect::<Vec<_>>());
}

#[test]
fn every_kind_of_name_has_its_share() {
    let entries = catalog(SEED, COUNT);
    let mut groups_of: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut variants: HashMap<(&str, &str), HashSet<String>> = HashMap::new();
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    let mut shapes: HashMap<Shape, usize> = HashMap::new();
    let mut equal_twins = 0;
    for entry in &entries {
        let (group, name) = identity(entry);
        groups_of.entry(name).or_default().insert(group);
        equal_twins += usize::from(!variants.entry((group, name)).or_default().insert(entry.to_string()));
        *sizes.entry(group).or_default() += 1;
        *shapes.entry(Shape::of(entry)).or_default() += 1;
    }
    let names = || entries.iter().map(|entry| identity(entry).1);
    let count = |matches: &dyn Fn(&str) -> bool| names().filter(|name| matches(name)).count();
    let largest = sizes.values().max().copied().unwrap_or(0);
    let different_twins = variants.values().filter(|bodies| bodies.len() > 1).count();
    let tails = names().filter_map(|name| name.strip_suffix("_create"));
    let tail_twins =
        tails.filter(|stem| stem.len() > 64 && groups_of.contains_key(&*format!("{stem}_delete"))).count();
    let kebabs = names().filter_map(|name| name.strip_prefix("search-"));
    let separator_twins = kebabs.filter(|stem| groups_of.contains_key(&*format!("search_{stem}"))).count();
    let shares = [
        ("names that need a mapping or are long", count(&|name| !is_plain_name(name)), 700..1_100),
        ("names over 64 bytes", count(&|name| name.len() > 64), 100..350),
        ("leading digits", count(&|name| name.starts_with(|c: char| c.is_ascii_digit())), 10..80),
        ("names not in ASCII", count(&|name| !name.is_ascii()), 30..150),
        ("placeholders in names", count(&|name| name.contains("${")), 10..80),
        ("names of bridge tools", count(&|name| name.starts_with("tool_")), 10..50),
        ("tools whose name stands in several groups", count(&|name| groups_of[name].len() > 1), 300..450),
        ("equal twins", equal_twins, 30..90),
        ("different twins", different_twins, 30..90),
        ("twins that differ beyond 64 characters", tail_twins, 20..80),
        ("search-x and search_x", separator_twins, 20..80),
        ("the largest group", largest, 770..830),
        ("groups", sizes.len(), 350..800),
    ];
    for (what, found, wanted) in shares {
        println!("{found:>6}  {what}");
        assert!(wanted.contains(&found), "{what}: {found} is not in {wanted:?}");
    }
    for shape in Shape::ALL {
        println!("{:>6}  {shape:?}", shapes[&shape]);
        assert!(shapes[&shape] > 500, "{shape:?} is rare: {}", shapes[&shape]);
    }
}

#[test]
fn every_kind_of_text_and_schema_has_its_share() {
    let entries = catalog(SEED, COUNT);
    let texts = || entries.iter().map(|entry| definition(entry)["description"].as_str());
    let text = |matches: &dyn Fn(&str) -> bool| texts().filter(|text| text.is_some_and(matches)).count();
    let schemas = || entries.iter().map(schema);
    let like =
        |part: &str| schemas().filter(|schema| schema.is_some_and(|s| s.to_string().contains(part))).count();
    let within =
        |low: char, high: char| text(&move |text| text.contains(|c: char| (low..=high).contains(&c)));
    let properties =
        |schema: Option<&Value>| schema.and_then(|s| s["properties"].as_object()).map_or(0, Map::len);
    let shares = [
        ("no description", texts().filter(Option::is_none).count(), 30..100),
        ("blank descriptions", text(&|text| text.trim().is_empty()), 130..220),
        ("descriptions of several lines", text(&|text| text.contains('\n')), 1_000..1_800),
        ("descriptions of 10,000 bytes", text(&|text| text.len() >= 10_000), 8..30),
        ("Han", within('\u{4e00}', '\u{9fff}'), 40..160),
        ("kana", within('\u{3040}', '\u{30ff}'), 20..80),
        ("Hangul", within('\u{ac00}', '\u{d7af}'), 15..80),
        ("Arabic", within('\u{621}', '\u{64a}'), 15..80),
        ("Devanagari", within('\u{900}', '\u{97f}'), 15..80),
        ("Cyrillic", within('\u{400}', '\u{4ff}'), 15..80),
        ("Thai", within('\u{e00}', '\u{e7f}'), 15..80),
        ("emoji", within('\u{1f300}', '\u{1faff}'), 15..80),
        ("forged lines", text(&|text| text.contains("\n- fake_tool: ")), 3..30),
        ("tag characters", within('\u{e0000}', '\u{e007f}'), 3..30),
        ("line separators", within('\u{2028}', '\u{2029}'), 3..30),
        ("bidirectional controls", within('\u{202a}', '\u{202e}'), 3..30),
        ("zero-width characters", within('\u{200b}', '\u{200d}'), 3..60),
        ("control characters", within('\u{1}', '\u{8}'), 3..30),
        ("no schema or null", schemas().filter(Option::is_none).count(), 180..240),
        ("{}", schemas().filter(|s| s.is_some_and(|s| *s == json!({}))).count(), 380..460),
        (
            "unions at the root",
            schemas().flatten().filter(|s| s.get("type").is_none() && s.is_object()).count(),
            450..520,
        ),
        ("references", like("\"$ref\""), 140..200),
        ("recursion", like("\"$ref\":\"#\""), 40..70),
        ("eight objects deep", schemas().flatten().filter(|s| depth(s) >= 16).count(), 60..110),
        ("enums with an empty string and null", like("[\"\",\"on\",null"), 110..160),
        ("arrays without items", like("{\"type\":\"array\"}"), 110..160),
        ("boolean schemas", like("\"anything\":true"), 50..90),
        ("over 20 parameters", schemas().filter(|s| properties(*s) > 20).count(), 50..110),
    ];
    for (what, found, wanted) in shares {
        println!("{found:>6}  {what}");
        assert!(wanted.contains(&found), "{what}: {found} is not in {wanted:?}");
    }
    let deepest = entries.iter().map(depth).max().unwrap_or(0);
    assert!(deepest < 40, "an entry of the good catalog is {deepest} deep");
    assert!(entries.iter().all(|entry| !entry.to_string().contains("\\u0000")), "NUL is for broken entries");
    assert!(entries.iter().all(|entry| (1..=512).contains(&identity(entry).1.chars().count())));
}

#[test]
fn broken_entries_hold_every_fault() {
    let entries = broken(SEED, 42);
    let count = |matches: &dyn Fn(&Value) -> bool| entries.iter().filter(|entry| matches(entry)).count();
    assert_eq!(count(&|entry| entry.is_null()), 2);
    assert_eq!(count(&|entry| entry.is_number()), 2);
    assert_eq!(count(&|entry| depth(entry) > 64), 2);
    assert!(entries.iter().all(|entry| depth(entry) < 120), "a parser that stops at 128 can still read them");
    assert_eq!(count(&|entry| entry.to_string().len() > 256 * 1024), 4);
    assert_eq!(count(&|entry| entry.to_string().contains("\\u0000")), 8);
    assert_eq!(count(&|entry| identity(entry).1.len() == 513), 2);
}
