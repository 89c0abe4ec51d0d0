//! Queries and catalogs that no one means well: each has a sensible answer, in work and memory that are bounded.

use proptest::prelude::*;

use super::query::{MAX_UNITS, Query, clip_query};
use super::tests::{Tool, find, first, grouped, index, run, tool};
use super::{Document, NONE, Outcome, Part, explain, search};

/// The most units and forms of a query, whatever it is: each is one look at the index, so they bound what a search does.
/// Words, units of scripts without spaces, pairs of words that stand side by side in 2,000 characters; and all that they may
/// stand for.
const MOST_UNITS: usize = 2 * MAX_UNITS + 1_000;
const MOST_FORMS: usize = 10_000;

fn tools() -> Vec<Tool> {
    vec![
        tool("send_mail", "Sends an email to a person"),
        tool("get_weather", "Weather of a city"),
        grouped("github", "create_issue", "Opens an issue in a repository"),
        tool("search_laws", "日本の法令を検索します"),
        tool("بحث", "يبحث في البريد"),
    ]
}

/// Searches, and checks what holds for every answer.
fn ask(tools: &[Tool], query: &str) -> Outcome {
    let mut words = Query::default();
    words.read(clip_query(query), &[]);
    assert!(words.units.len() <= MOST_UNITS && words.forms.len() <= MOST_FORMS);
    let outcome = run(tools, query, 5);
    for hit in &outcome.hits {
        assert!((hit.candidate as usize) < tools.len());
        assert!(hit.score.is_finite() && hit.score >= 0.0, "{hit:?}");
        assert!((0.0..=1.0).contains(&hit.coverage) && (0.0..=1.0).contains(&hit.name_coverage), "{hit:?}");
    }
    outcome
}

#[test]
fn a_query_without_words_finds_nothing() {
    for query in [
        "",
        " ",
        "\n\t\r ",
        "\u{a0}\u{3000}\u{200b}",
        "?!…—“”",
        "🦀🔥",
        "+++",
        ":",
        "::",
        "\u{0}\u{7}",
        "\u{202e}",
    ] {
        let outcome = ask(&tools(), query);
        assert_eq!((outcome.terms, outcome.hits.len()), (0, 0), "{query:?}");
    }
}

#[test]
fn a_query_of_function_words_finds_nothing_for_sure() {
    for query in ["the", "of in to", "please could you do this for me", "which of these", "a an the"] {
        let outcome = ask(&tools(), query);
        assert_eq!(outcome.terms, 0, "{query}");
        assert!(outcome.hits.iter().all(|hit| hit.coverage <= 0.25), "{query}: {outcome:?}");
    }
}

#[test]
fn one_letter_two_thousand_times_finds_nothing() {
    for letter in ["a", "Z", "1", "é", "я", "ب", "ก", "\u{301}", "_", "🦀"] {
        let outcome = ask(&tools(), &letter.repeat(2_000));
        assert!(outcome.hits.iter().all(|hit| hit.coverage < 0.5), "{letter}: {outcome:?}");
    }
    // Words without spaces between them are read in pairs, so this is the same pair again and again.
    let dense = ask(&tools(), &"漢".repeat(2_000));
    assert!(dense.terms <= 2 && dense.hits.is_empty());
}

#[test]
fn the_longest_queries_are_bounded_work() {
    let every = |make: fn(u32) -> String| (0..2_000).map(make).collect::<String>();
    let queries = [
        every(|n| format!("w{n} ")),
        every(|n| format!("{} ", char::from_u32('a' as u32 + n % 26).unwrap_or('a'))),
        every(|n| char::from_u32(0x4e00 + n * 7).unwrap_or('一').to_string()),
        every(|n| char::from_u32(0xac00 + n * 3).unwrap_or('가').to_string()),
        "delete file send email create issue list search ".repeat(50),
        "删除文件发送邮件".repeat(300),
        "aB".repeat(1_000),
        "a_b-c.d/e:f ".repeat(200),
        "+required ".repeat(250),
        "createissue sendmial wether ".repeat(80),
        "\u{fdfa}".repeat(2_000),
    ];
    for query in queries {
        ask(&tools(), &query);
    }
}

#[test]
fn what_is_behind_the_limit_of_a_query_is_not_read() {
    let query = format!("{} weather", "x ".repeat(1_000));
    assert!(ask(&tools(), &query).hits.is_empty());
}

#[test]
fn a_megabyte_of_emoji_hides_nothing() {
    let mut catalog = tools();
    catalog.push(tool("party_planner", &"🎉".repeat(250_000)));
    catalog.push(tool("mixed", &format!("Bakes a cake. {}", "🎂 ".repeat(200_000))));
    assert_eq!(first(&catalog, "party"), Some("party_planner"));
    assert_eq!(first(&catalog, "bake cake"), Some("mixed"));
    assert_eq!(first(&catalog, "weather"), Some("get_weather"));
    assert!(index(&catalog).bytes() < 1 << 16);
}

#[test]
fn scripts_are_mixed_at_will() {
    for (query, name) in [
        ("weather 天気 погода", "get_weather"),
        ("please 検索 法令 now", "search_laws"),
        ("sendメールmail", "send_mail"),
        ("ｇｉｔｈｕｂ ｉｓｓｕｅ", "create_issue"),
        ("issue\u{200b}\u{feff} создать", "create_issue"),
    ] {
        assert_eq!(ask_first(&tools(), query), Some(name), "{query}");
    }
}

#[test]
fn right_to_left_text_is_searched() {
    for query in ["البريد", "ابحث في البريد", "\u{202b}البريد\u{202c}", "\u{200f}بَرِيد البريد", "بحث"]
    {
        assert_eq!(ask_first(&tools(), query), Some("بحث"), "{query}");
    }
    assert!(ask(&tools(), "שלום עולם").hits.is_empty());
}

#[test]
fn a_query_may_be_json_or_an_address() {
    for (query, name) in [
        (r#"{"query": "weather of a city", "limit": 5, "nested": {"a": [1, null, true]}}"#, "get_weather"),
        (r#"{"name":"create_issue","arguments":{"title":"x"}}"#, "create_issue"),
        ("https://github.example/acme/repo/issues/42?state=open#top", "create_issue"),
        ("mailto:someone@example.org?subject=email", "send_mail"),
        ("SELECT * FROM weather; DROP TABLE city --", "get_weather"),
    ] {
        assert_eq!(ask_first(&tools(), query), Some(name), "{query}");
    }
    let bomb = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    assert_eq!(ask(&tools(), &bomb).terms, 0);
}

#[test]
fn identical_tools_are_all_found_in_order() {
    let same: Vec<Tool> = (0..500).map(|_| grouped("mail", "send_mail", "Sends an email")).collect();
    for query in ["email", "send_mail", "mail: send", "sned mail"] {
        let hits = ask(&same, query).hits;
        assert_eq!(hits.iter().map(|hit| hit.candidate).collect::<Vec<_>>(), [0, 1, 2, 3, 4], "{query}");
        assert!(hits.iter().all(|hit| hit.score == hits[0].score && hit.score > 0.0), "{query}");
    }
    assert!(ask(&same, "weather").hits.is_empty());
}

#[test]
fn tools_without_text_are_found_by_name_alone() {
    let silent = |name: &str| Tool { name: name.into(), ..Tool::default() };
    let catalog = [silent("get_weather"), silent(""), silent("___"), silent("🦀"), Tool::default()];
    assert_eq!(find(&catalog, "weather"), ["get_weather"]);
    for query in ["", "anything", "🦀", "___"] {
        assert!(ask(&catalog, query).hits.iter().all(|hit| hit.exact), "{query}");
    }
    assert!(ask(&[Tool::default(), Tool::default()], "weather").hits.is_empty());
}

#[test]
fn catalogs_of_none_and_of_one_answer() {
    assert_eq!(ask(&[], "weather").hits, []);
    let one = [tool("get_weather", "Weather of a city")];
    assert_eq!(find(&one, "weather"), ["get_weather"]);
    assert!(ask(&one, "invoice").hits.is_empty());
}

#[test]
fn a_catalog_of_twenty_thousand_tools_answers() {
    let mut catalog: Vec<Tool> = (0..20_000_u32)
        .map(|n| tool(&format!("list_things_{n}"), &format!("Lists the things of kind {}", n % 97)))
        .collect();
    catalog[12_345] = tool("water_plants", "Turns the garden pump on");
    let index = index(&catalog);
    assert!(index.len() == 20_000 && index.bytes() < 16 << 20);
    let candidates: Vec<u32> = (0..20_000).collect();
    let parts = [Part { index: &index, candidates: &candidates }];
    let found = |query: &str| -> Vec<u32> {
        search(&parts, 20_000, query, 5).hits.iter().map(|hit| hit.candidate).collect()
    };
    assert_eq!(found("garden pump")[0], 12_345);
    assert_eq!(found("water the plants")[0], 12_345);
    assert_eq!(found("list_things_777")[0], 777);
    // All are alike: the first ones, and no more than were asked for.
    assert_eq!(found("list things"), [0, 1, 2, 3, 4]);
    assert!(found("").is_empty());
}

fn ask_first<'a>(tools: &'a [Tool], query: &str) -> Option<&'a str> {
    ask(tools, query).hits.first().map(|hit| tools[hit.candidate as usize].name.as_str())
}

/// Text as an attacker or a careless generator writes it: any characters, long repeats, scripts side by side, marks of the
/// query language, broken JSON.
fn wild() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9_.:/+ -]{0,40}",
        prop::sample::select(vec![
            "mail",
            "send",
            "the",
            "日本",
            "发送邮件",
            "メール",
            "이메일",
            "البريد",
            "ค้นหา",
            "thẻ",
            "+mail",
            "server:",
            "\u{202e}",
            "{\"a\":[",
            "https://a.example/x?y=z",
            "getHTTPSUrl2",
            "ﷺ",
            "e\u{301}\u{301}\u{301}",
            "\u{0}",
            "𠀀𠀁",
        ])
        .prop_map(str::to_owned),
        (any::<char>(), 1_usize..3_000).prop_map(|(c, times)| c.to_string().repeat(times)),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn wild_tool() -> impl Strategy<Value = Tool> {
    (wild(), wild(), wild(), wild(), prop::collection::vec(wild(), 0..3)).prop_map(
        |(group, name, description, parameters, aliases)| Tool {
            group,
            name,
            description,
            parameters,
            aliases,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same as the fuzz targets, in a few cases.
    #[test]
    fn anything_is_indexed_searched_and_explained(catalog in prop::collection::vec(wild_tool(), 0..5), query in wild(), limit in 0_usize..4) {
        let built = index(&catalog);
        let candidates: Vec<u32> = (0..catalog.len() as u32).map(|n| if n == 3 { NONE } else { n }).collect();
        let parts = [Part { index: &built, candidates: &candidates }];
        let outcome = search(&parts, catalog.len(), &query, limit);
        prop_assert_eq!(&outcome, &search(&parts, catalog.len(), &query, limit));
        for hit in &outcome.hits {
            prop_assert!(candidates.contains(&hit.candidate) && hit.score.is_finite() && hit.score >= 0.0);
            let tool = &catalog[hit.candidate as usize];
            let document = Document {
                group: &tool.group,
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
                aliases: &tool.aliases,
            };
            let told = explain(&parts, catalog.len(), &query, hit.candidate, &[document], None);
            prop_assert!((told.score - hit.score).abs() <= 1e-3 * hit.score.max(1.0), "{:?} {:?}", told, hit);
            prop_assert!((told.coverage - hit.coverage).abs() < 1e-4);
        }
    }
}
