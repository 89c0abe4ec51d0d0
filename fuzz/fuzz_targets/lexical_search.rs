//! Any query over a small catalog of tools in several scripts.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolrack_fuzz::lexical::Index;
use toolrack_fuzz::{Tool, check, index};

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
        })
        .collect();
    let index = index(&tools);
    (tools, index)
});

fuzz_target!(|query: &str| {
    let (tools, index) = &*CATALOG;
    let candidates: Vec<u32> = (0..TOOLS.len() as u32).collect();
    check(tools, index, &candidates, query, 5);
});
