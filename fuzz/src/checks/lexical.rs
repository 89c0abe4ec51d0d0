//! Searches by words: the answer is of the tools that may be seen, each once, in order, finite, the same again, and as it is
//! explained.

use std::sync::LazyLock;

use serde_json::Value;

use crate::core::lexical::{Document, Index, NONE, Part, explain};

/// The most matches that are asked for (`max_search_limit`).
const MOST: usize = 50;
/// Longest query that the service lets through, in characters.
const MAX_QUERY_CHARS: usize = 2_000;

/// Group, name, description and parameters.
const TOOLS: [[&str; 4]; 12] = [
    [
        "github",
        "create_issue",
        "Opens an issue in a repository",
        r#"{"properties":{"title":{"type":"string"}}}"#,
    ],
    [
        "github",
        "list_issues",
        "Lists issues. Closed ones too.",
        r#"{"properties":{"state":{"enum":["open","closed"]}}}"#,
    ],
    [
        "mail",
        "send_email",
        "Sends an email to a person",
        r#"{"properties":{"to":{"description":"Recipient"}}}"#,
    ],
    ["mail", "mcp__mail__searchMail", "Searches the mailbox", "{}"],
    ["", "who_am_i", "Identity of the caller", ""],
    ["weather", "getWeather", "Weather and forecast of a city", r#"{"properties":{"city":{}}}"#],
    ["laws", "search_laws", "日本の法令を検索します。条文も読めます。", "{}"],
    ["mail-zh", "t1", "发送电子邮件给联系人", r#"{"properties":{"收件人":{"description":"邮件地址"}}}"#],
    ["mail-ar", "بحث", "يبحث في البريد الإلكتروني", "not json"],
    ["mail-ko", "메일_보내기", "이메일을 보냅니다", "[]"],
    ["fr", "supprimer_fichier", "Supprime un fichier du dossier de l'utilisateur", "{}"],
    ["vi", "xoa_the", "Xóa một thẻ khỏi bảng của bạn", "{}"],
];

static CATALOG: LazyLock<(Vec<Tool>, Index)> = LazyLock::new(|| {
    let tools: Vec<Tool> = TOOLS
        .iter()
        .map(|[group, name, description, parameters]| Tool {
            group: (*group).to_owned(),
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            parameters: (*parameters).to_owned(),
            aliases: vec![format!("{name} alias"), "发票".to_owned()],
            hidden: false,
        })
        .collect();
    let index = index(&tools);
    (tools, index)
});

/// The text of a tool.
struct Tool {
    group: String,
    name: String,
    description: String,
    parameters: String,
    aliases: Vec<String>,
    hidden: bool,
}

impl Tool {
    fn of(entry: &Value) -> Self {
        let text = |key: &str| match entry.get(key) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let aliases = entry.get("aliases").and_then(Value::as_array).into_iter().flatten();
        Self {
            group: text("group"),
            name: text("name"),
            description: text("description"),
            parameters: text("parameters"),
            aliases: aliases.filter_map(Value::as_str).map(str::to_owned).collect(),
            hidden: entry.get("hidden") == Some(&Value::Bool(true)),
        }
    }

    fn document(&self) -> Document<'_> {
        Document {
            group: &self.group,
            name: &self.name,
            description: &self.description,
            parameters: &self.parameters,
            aliases: &self.aliases,
        }
    }
}

fn index(tools: &[Tool]) -> Index {
    Index::build(tools.iter().map(Tool::document))
}

/// Any query over a small catalog of tools in several scripts.
pub(crate) fn search(input: &[u8]) {
    let Ok(query) = std::str::from_utf8(input) else { return };
    let (tools, index) = &*CATALOG;
    let candidates: Vec<u32> = (0..TOOLS.len() as u32).collect();
    check(tools, index, &candidates, query, 5);
}

/// Any catalog, with some of its tools hidden: a JSON array of tools, and a query over them.
pub(crate) fn build(input: &[u8]) {
    let Some((tools, query)) = super::parts(input) else { return };
    let Ok(Value::Array(entries)) = serde_json::from_str(tools) else { return };
    let tools: Vec<Tool> = entries.iter().map(Tool::of).collect();
    let index = index(&tools);
    let candidates: Vec<u32> =
        (0..).zip(&tools).map(|(number, tool)| if tool.hidden { NONE } else { number }).collect();
    check(&tools, &index, &candidates, query, MOST);
    // The names of the catalog are likelier to match than what comes by chance.
    for tool in tools.iter().take(3) {
        check(&tools, &index, &candidates, &tool.name, 5);
        check(&tools, &index, &candidates, &tool.description, 5);
    }
}

fn check(tools: &[Tool], index: &Index, candidates: &[u32], query: &str, limit: usize) {
    let end = query.char_indices().nth(MAX_QUERY_CHARS).map_or(query.len(), |(at, _)| at);
    let query = &query[..end];
    let parts = [Part { index, candidates }];
    let search = || crate::core::lexical::search(&parts, tools.len(), query, limit);
    let outcome = search();
    assert_eq!(outcome, search(), "two answers for {query:?}");
    assert!(outcome.hits.len() <= limit.max(1), "{} hits", outcome.hits.len());
    let mut seen = Vec::new();
    for hit in &outcome.hits {
        assert!(candidates.contains(&hit.candidate) && (hit.candidate as usize) < tools.len(), "{hit:?}");
        assert!(!seen.contains(&hit.candidate), "twice: {hit:?}");
        seen.push(hit.candidate);
        assert!(hit.score.is_finite() && hit.score >= 0.0, "{hit:?}");
        assert!((0.0..=1.0).contains(&hit.coverage) && (0.0..=1.0).contains(&hit.name_coverage), "{hit:?}");
    }
    for pair in outcome.hits.windows(2) {
        assert!(pair[0].exact || !pair[1].exact, "names first: {pair:?}");
        assert!(pair[0].exact || pair[0].score >= pair[1].score, "{pair:?}");
    }
    if let Some(hit) = outcome.hits.first() {
        let document = tools[hit.candidate as usize].document();
        let told = explain(&parts, tools.len(), query, hit.candidate, &[document], None);
        assert!((told.score - hit.score).abs() <= 1e-3 * hit.score.max(1.0), "{told:?} is not {hit:?}");
        assert!((told.coverage - hit.coverage).abs() < 1e-4, "{told:?} is not {hit:?}");
    }
}
