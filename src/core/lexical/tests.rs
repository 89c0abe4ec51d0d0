//! What a caller of the search notices, whatever the engine inside.

use proptest::prelude::*;

use super::{Document, Hit, Index, NONE, Outcome, Part, search};

#[derive(Debug, Clone, Default)]
pub(super) struct Tool {
    pub(super) group: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: String,
    pub(super) aliases: Vec<String>,
}

pub(super) fn tool(name: &str, description: &str) -> Tool {
    Tool { name: name.into(), description: description.into(), parameters: "{}".into(), ..Tool::default() }
}

pub(super) fn grouped(group: &str, name: &str, description: &str) -> Tool {
    Tool { group: group.into(), ..tool(name, description) }
}

pub(super) fn index(tools: &[Tool]) -> Index {
    Index::build(tools.iter().map(|tool| Document {
        group: &tool.group,
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
        aliases: &tool.aliases,
    }))
}

pub(super) fn run(tools: &[Tool], query: &str, limit: usize) -> Outcome {
    let candidates: Vec<u32> = (0..tools.len() as u32).collect();
    search(&[Part { index: &index(tools), candidates: &candidates }], tools.len(), query, limit)
}

/// Names of the tools found, best first.
pub(super) fn find<'a>(tools: &'a [Tool], query: &str) -> Vec<&'a str> {
    run(tools, query, 5).hits.iter().map(|hit| tools[hit.candidate as usize].name.as_str()).collect()
}

pub(super) fn first<'a>(tools: &'a [Tool], query: &str) -> Option<&'a str> {
    find(tools, query).first().copied()
}

#[test]
fn scripts_without_spaces_are_searched() {
    let tools = [
        tool("search_web", "ウェブを検索します。"),
        tool("search_laws", "日本の法令を検索します。条文も読めます。"),
        tool("send_mail", "发送电子邮件给联系人"),
    ];
    assert_eq!(first(&tools, "法令"), Some("search_laws"));
    assert_eq!(first(&tools, "法令を調べて"), Some("search_laws"));
    assert_eq!(first(&tools, "请帮我发送邮件"), Some("send_mail"));
    assert_eq!(first(&tools, "邮"), Some("send_mail"));
    assert!((run(&tools, "邮", 5).hits[0].coverage - 1.0).abs() < 1e-6);
}

#[test]
fn an_exact_name_is_first_however_it_is_written() {
    let tools = [
        tool("addActivity_mcp_pipedrive", "Add an activity to a person: add person activity"),
        tool("addPerson_mcp_pipedrive", "Creates a contact"),
        tool("find_referencing_symbols", "Find symbols that reference the symbol; find symbol usages"),
        tool("find_symbol", "Performs a global search"),
    ];
    for query in ["addPerson", "addPerson_mcp_pipedrive", "add_person", "ADD PERSON"] {
        assert_eq!(first(&tools, query), Some("addPerson_mcp_pipedrive"), "{query}");
    }
    for query in
        ["find symbol", "find_symbol", "findSymbol", "mcp__serena__find_symbol", "serena.find_symbol"]
    {
        let hit = run(&tools, query, 5).hits[0];
        assert_eq!((hit.candidate, hit.exact, hit.whole, hit.coverage), (3, true, true, 1.0), "{query}");
    }
}

#[test]
fn case_boundaries_split_words() {
    let tools = [
        tool("bitable_v1_app_list", "Lists apps"),
        tool("bitable_v1_appTableRecord_search", "Searches"),
        tool("XMLParser", "Reads documents"),
    ];
    assert_eq!(first(&tools, "table record"), Some("bitable_v1_appTableRecord_search"));
    assert_eq!(first(&tools, "xml"), Some("XMLParser"));
    assert_eq!(first(&tools, "xmlparser"), Some("XMLParser"));
}

#[test]
fn every_name_in_the_query_has_a_place() {
    let named =
        ["search_graph", "trace_path", "get_code_snippet", "query_graph", "search_code", "index_repository"];
    let mut tools: Vec<Tool> = named.iter().map(|name| tool(name, "")).collect();
    tools.extend(
        (0..50).map(|n| tool(&format!("codebase_memory_{n}"), "codebase memory mcp graph code path search")),
    );
    let outcome = run(&tools, &format!("{} codebase-memory-mcp", named.join(" ")), 3);
    let exact: Vec<u32> = outcome.hits.iter().filter(|hit| hit.exact).map(|hit| hit.candidate).collect();
    assert_eq!(exact.len(), 6);
    assert_eq!(outcome.hits.len(), 6);
    assert!(outcome.hits.iter().all(|hit| !hit.whole));
}

#[test]
fn a_plain_word_in_a_sentence_names_nothing() {
    let tools = [tool("list", "Anything"), tool("show_weather", "Weather of a city")];
    let outcome = run(&tools, "list the weather of a city", 5);
    assert_eq!(outcome.hits[0].candidate, 1);
    assert!(outcome.hits.iter().all(|hit| !hit.exact));
    assert!(run(&tools, "list", 5).hits[0].whole);
}

#[test]
fn stop_words_and_substrings_find_nothing() {
    let tools = [
        tool("snow_sp_theme_manage", "Manage themes"),
        tool("address-book-lookup", "Look up an address"),
        tool("add", "Add two numbers"),
        tool("weather", "The weather of the day"),
    ];
    assert_eq!(find(&tools, "what is the weather"), ["weather"]);
    assert_eq!(find(&tools, "add"), ["add"]);
    let filler = run(&tools, "could you please do this for me?", 5);
    assert_eq!((filler.terms, filler.hits.len()), (0, 0));
    for query in ["", "🦀 …"] {
        let nothing = run(&tools, query, 5);
        assert_eq!((nothing.terms, nothing.hits.len()), (0, 0), "{query}");
    }
}

#[test]
fn a_name_of_stop_words_is_found() {
    let tools = [tool("who_am_i", "Identity"), tool("weather", "Weather")];
    assert_eq!(first(&tools, "who am i"), Some("who_am_i"));
    assert_eq!(first(&tools, "so who i am"), Some("who_am_i"));
}

#[test]
fn a_single_tool_answers() {
    let tools = [tool("get_portfolio", "Show portfolio")];
    let hit = run(&tools, "portfolio", 5).hits[0];
    assert!(hit.score > 0.0 && (hit.coverage - 1.0).abs() < 1e-6);
    assert_eq!(first(&tools, "покажи мой портфель"), Some("get_portfolio"));
    assert!(run(&tools, "сыграй вальс", 5).hits.is_empty());
}

#[test]
fn parameters_and_aliases_are_searched() {
    let mut pay = tool("pay", "Makes a payment");
    pay.parameters = serde_json::json!({
        "properties": {"order": {"$ref": "#/$defs/Order"}},
        "$defs": {"Order": {"properties": {
            "iban": {"type": "string", "description": "Recipient account"},
            "speed": {"enum": ["instant", "overnight"]},
        }}},
    })
    .to_string();
    let mut broken = tool("broken", "");
    broken.parameters = "{ not json, but voucher".into();
    let mut mail = tool("compose", "Writes");
    mail.aliases = vec!["rundmail an alle".into(), "写信".into()];
    let tools = [pay, broken, mail, tool("other", "Something else")];
    for (query, name) in [
        ("iban", "pay"),
        ("recipient", "pay"),
        ("overnight", "pay"),
        ("voucher", "broken"),
        ("Rundmail", "compose"),
        ("写信", "compose"),
    ] {
        assert_eq!(find(&tools, query), [name], "{query}");
    }
}

#[test]
fn the_server_in_the_query_decides_between_equal_names() {
    let tools = [
        grouped(
            "desktop-commander",
            "desktop-commander__list_allowed_directories",
            "List the directories it may read",
        ),
        grouped("filesystem", "filesystem__list_allowed_directories", "List the directories it may read"),
    ];
    for query in ["filesystem list_allowed_directories", "list_allowed_directories of the filesystem server"]
    {
        assert_eq!(first(&tools, query), Some("filesystem__list_allowed_directories"), "{query}");
    }
    let hits = run(&tools, "list_allowed_directories", 5).hits;
    assert!(hits.len() == 2 && hits.iter().all(|hit| hit.whole));
}

#[test]
fn forms_of_a_word_are_one() {
    let tools = [
        tool("report_bug", "Files a report"),
        tool("data_dump", "Serialization of data"),
        tool("theme", "Colors"),
    ];
    assert_eq!(first(&tools, "bugs"), Some("report_bug"));
    assert_eq!(first(&tools, "serialize"), Some("data_dump"));
    assert_eq!(first(&tools, "reported bug"), Some("report_bug"));
}

#[test]
fn typing_errors_and_compounds_are_forgiven() {
    let tools = [
        tool("create_calendar_event", "Adds an event"),
        tool("file_system_read", "Reads from disk"),
        tool("github_search", "Searches code"),
        tool("weather", "Weather"),
    ];
    assert_eq!(first(&tools, "calender"), Some("create_calendar_event"));
    assert_eq!(first(&tools, "filesystem"), Some("file_system_read"));
    assert_eq!(first(&tools, "git hub"), Some("github_search"));
    assert_eq!(first(&tools, "calendarevent"), Some("create_calendar_event"));
    // An identifier of two words and its parts side by side are the same; saying it twice is no new word.
    let score = |query: &str| run(&tools, query, 5).hits[0].score;
    assert!(score("git hub git hub git hub") < 2.0 * score("git hub"));
    let typo = run(&tools, "wether", 5).hits[0];
    assert!(typo.candidate == 3 && typo.coverage < 1.0);
}

#[test]
fn coverage_counts_unknown_words_as_missing() {
    let tools = [
        tool("create_incident", "Create an incident and email the team"),
        tool("team_members", "Lists members"),
    ];
    let known = run(&tools, "email team", 5).hits.into_iter().find(|hit| hit.candidate == 0).unwrap();
    let unknown = run(&tools, "send gmail email", 5).hits[0];
    assert!(known.coverage > 0.99);
    assert!(unknown.coverage < 0.5, "{unknown:?}");
    assert!(known.name_coverage < known.coverage);
}

#[test]
fn short_names_win_over_longer_ones_with_the_same_words() {
    let tools = [
        tool("get_accounts_access_apps", "List access applications of an account"),
        tool("get_accounts_members", "List members of an account"),
        tool("get_accounts", "List accounts"),
    ];
    assert_eq!(first(&tools, "list accounts"), Some("get_accounts"));
}

#[test]
fn equal_scores_are_ordered_by_candidate() {
    let tools: Vec<Tool> = (0..30).map(|_| tool("send_mail", "Sends mail")).collect();
    let index = index(&tools);
    let candidates: Vec<u32> = (0..30).rev().collect();
    for query in ["mail", "send mail", "use send_mail now"] {
        let outcome = search(&[Part { index: &index, candidates: &candidates }], 30, query, 4);
        assert_eq!(outcome.hits.iter().map(|hit| hit.candidate).collect::<Vec<_>>(), [0, 1, 2, 3], "{query}");
    }
}

#[test]
fn parts_add_up_and_are_joined() {
    let (user, project) =
        ([tool("send_mail", "Sends mail")], [tool("weather", "Weather"), tool("send_mail", "Old")]);
    let aliases = [Tool { aliases: vec!["Unwetterwarnung".into()], ..Tool::default() }];
    let (user, project, aliases) = (index(&user), index(&project), index(&aliases));
    let parts = [
        Part { index: &user, candidates: &[0] },
        Part { index: &project, candidates: &[1, NONE] },
        Part { index: &aliases, candidates: &[1] },
    ];
    let candidates = |query: &str| -> Vec<u32> {
        search(&parts, 2, query, 5).hits.iter().map(|hit| hit.candidate).collect()
    };
    assert_eq!(candidates("mail"), [0]);
    assert_eq!(candidates("unwetterwarnung"), [1]);
    let one = search(&parts[..2], 2, "weather", 5).hits[0];
    let both = search(&parts, 2, "weather unwetterwarnung", 5).hits[0];
    assert!(both.score > one.score && (both.coverage - 1.0).abs() < 1e-6);
}

#[test]
fn hostile_texts_are_bounded() {
    let mut monster = tool(&"x".repeat(100_000), &"🦀".repeat(250_000));
    monster.parameters = format!("{}{}", "[".repeat(50_000), "a".repeat(50_000));
    monster.aliases = vec!["z ".repeat(50_000); 1_000];
    let tools = [monster, tool("spam", &"mail ".repeat(100_000)), tool("mail", "Sends mail")];
    assert_eq!(first(&tools, "mail"), Some("mail"));
    assert!(index(&tools).bytes() < 1 << 20);
    for query in [
        "a_b ".repeat(5_000),
        "a".repeat(2_000),
        "aB".repeat(2_000),
        "漢".repeat(5_000),
        "\u{301}".repeat(5_000),
    ] {
        run(&tools, &query, 5);
    }
}

/// Words that make matches, repeats and names likely.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(vec!["mail", "send", "list", "issues", "GitHub", "find_symbol", "法令", "calendar", "the", "mcp__a__b"]),
        1 => Just("_"),
    ];
    prop_oneof![
        3 => prop::collection::vec(word, 0..6).prop_map(|words| words.join(" ")),
        1 => any::<String>(),
    ]
}

fn tools() -> impl Strategy<Value = Vec<Tool>> {
    let parameters = prop_oneof![
        text(),
        (text(), text()).prop_map(|(name, about)| {
            serde_json::json!({"properties": {name: {"description": about}}}).to_string()
        }),
    ];
    let tool = (text(), text(), text(), parameters, prop::collection::vec(text(), 0..2)).prop_map(
        |(group, name, description, parameters, aliases)| Tool {
            group,
            name,
            description,
            parameters,
            aliases,
        },
    );
    prop::collection::vec(tool, 0..12)
}

fn check(hits: &[Hit], allowed: &[u32]) {
    let mut seen = std::collections::HashSet::new();
    for hit in hits {
        assert!(allowed.contains(&hit.candidate) && seen.insert(hit.candidate), "{hits:?}");
        assert!(hit.score.is_finite() && hit.score >= 0.0);
        assert!((0.0..=1.0).contains(&hit.coverage) && (0.0..=1.0).contains(&hit.name_coverage));
    }
    for pair in hits.windows(2) {
        assert!(pair[0].exact || !pair[1].exact, "names first: {hits:?}");
        let ordered = pair[0].score > pair[1].score
            || (pair[0].score == pair[1].score && pair[0].candidate < pair[1].candidate);
        assert!(ordered || pair[0].exact, "{hits:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_documents_does_not_matter(tools in tools(), query in text(), seed in any::<u64>(), limit in 0_usize..6) {
        let mut order: Vec<u32> = (0..tools.len() as u32).collect();
        order.sort_by_key(|&n| (u64::from(n) + 1).wrapping_mul(seed | 1));
        let shuffled: Vec<Tool> = order.iter().map(|&n| tools[n as usize].clone()).collect();
        let shuffled = index(&shuffled);
        let moved = search(&[Part { index: &shuffled, candidates: &order }], tools.len(), &query, limit);
        prop_assert_eq!(moved, run(&tools, &query, limit));
    }

    #[test]
    fn only_visible_candidates_are_found(tools in tools(), query in text(), hidden in any::<u16>(), limit in 0_usize..6) {
        let candidates: Vec<u32> =
            (0..tools.len() as u32).map(|n| if hidden >> n & 1 == 1 { NONE } else { n }).collect();
        let visible: Vec<u32> = candidates.iter().copied().filter(|&n| n != NONE).collect();
        let index = index(&tools);
        let outcome = search(&[Part { index: &index, candidates: &candidates }], tools.len(), &query, limit);
        check(&outcome.hits, &visible);
        // A table that is too short, and candidates beyond the count, are not visible either.
        let short = search(&[Part { index: &index, candidates: &candidates[..tools.len() / 2] }], 1, &query, limit);
        check(&short.hits, &[0]);
    }

    #[test]
    fn hidden_tools_answer_nothing(tools in tools(), query in text()) {
        let index = index(&tools);
        let candidates = vec![NONE; tools.len()];
        let outcome = search(&[Part { index: &index, candidates: &candidates }], 50, &query, 5);
        prop_assert!(outcome.hits.is_empty());
    }
}
