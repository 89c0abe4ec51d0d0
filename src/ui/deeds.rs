//! What an entry of the log of changes says, in words.

use serde_json::Value;

use super::language::{Language, counted, number};
use crate::core::text::clip;

/// Names that are told one by one.
const TOLD_NAMES: usize = 5;

/// Longest name, and longest other text, in characters.
const NAME_CHARS: usize = 60;
const TEXT_CHARS: usize = 120;

/// What was done; an action of a later version is told by its code.
pub(super) fn deed(language: Language, action: &str) -> String {
    let (english, chinese) = match action {
        "config.put" => ("Config replaced", "替换配置"),
        "config.patch" => ("Config changed", "更改配置"),
        "config.restore" => ("Earlier config put back", "恢复历史配置"),
        "config.delete" => ("Config deleted", "删除配置"),
        "catalog.put" => ("Catalog replaced", "替换工具目录"),
        "catalog.patch" => ("Catalog changed", "更改工具目录"),
        "catalog.delete" => ("Catalog deleted", "删除工具目录"),
        "tool.approve" => ("Changed tools approved", "批准已变更的工具"),
        "tool.reject" => ("Changed tools rejected", "拒绝已变更的工具"),
        "mcp_server.put" => ("MCP server stored", "保存 MCP 服务器"),
        "mcp_server.delete" => ("MCP server forgotten", "移除 MCP 服务器"),
        "key.create" => ("Key made", "创建密钥"),
        "key.patch" => ("Key changed", "更改密钥"),
        "key.revoke" => ("Key revoked", "吊销密钥"),
        "key.rotate" => ("Key replaced by another", "轮换密钥"),
        "session.delete" => ("Session deleted", "删除会话"),
        "session.reset" => ("Session reset", "重置会话"),
        other => return other.replace(['.', '_'], " "),
    };
    language.say(english, chinese).to_owned()
}

/// Names and numbers of a change: `3 added (a, b, c)`, `both hold for 60 seconds`. Nothing for lists that are empty.
pub(super) fn detail(language: Language, summary: &Value) -> String {
    let parts =
        summary.as_object().into_iter().flatten().filter_map(|(key, value)| part(language, key, value));
    parts.collect::<Vec<_>>().join(language.say("; ", "；"))
}

fn part(language: Language, key: &str, value: &Value) -> Option<String> {
    let said = |english: &str, chinese: &str| Some(language.say(english, chinese).to_owned());
    match (key, value) {
        // What a version of a tool is known by is for machines.
        ("digests", _) | (_, Value::Null) => None,
        ("is_new", Value::Bool(is)) => is.then(|| language.say("new", "新增").to_owned()),
        ("is_elsewhere", Value::Bool(is)) => {
            let moved =
                language.say("at another place, so that its secrets were cleared", "位置已变，其机密已清除");
            is.then(|| moved.to_owned())
        }
        ("transport", Value::String(text)) if text == "http" => said("over HTTP", "通过 HTTP"),
        ("transport", Value::String(text)) if text == "command" => said("a command", "命令"),
        ("overlap_seconds", value) => {
            let seconds = counted(language, value.as_u64()?, "second", "seconds", "秒");
            Some(match language {
                Language::English => format!("the old one holds for {seconds} more"),
                Language::Chinese => format!("旧密钥再有效 {seconds}"),
            })
        }
        (_, Value::Object(list)) => {
            let count = list.get("count").and_then(Value::as_u64).filter(|count| *count > 0)?;
            let names = list.get("names").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let names = told(names, count);
            Some(match language {
                Language::English => format!("{} {} ({names})", number(count), word(language, key)),
                Language::Chinese => format!("{} {} 个（{names}）", word(language, key), number(count)),
            })
        }
        (_, Value::Array(list)) => {
            let names = told(list, list.len() as u64);
            (!names.is_empty()).then(|| format!("{} {names}", word(language, key)))
        }
        (_, Value::String(text)) => Some(format!("{} {}", word(language, key), clip(text, TEXT_CHARS))),
        (_, Value::Number(count)) => Some(format!("{} {count}", word(language, key))),
        (_, Value::Bool(is)) => {
            let is = if *is { language.say("yes", "是") } else { language.say("no", "否") };
            Some(format!("{} {is}", word(language, key)))
        }
    }
}

fn told(names: &[Value], count: u64) -> String {
    let first = names.iter().filter_map(Value::as_str).take(TOLD_NAMES);
    let first: Vec<_> = first.map(|name| clip(name, NAME_CHARS)).collect();
    let more = if count > first.len() as u64 { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}

/// What a key of a summary is called; one of a later version by its own name.
fn word(language: Language, key: &str) -> String {
    let (english, chinese) = match key {
        "added" => ("added", "新增"),
        "changed" => ("changed", "变更"),
        "removed" => ("removed", "移除"),
        "held" => ("held for approval", "待批准"),
        "held_dropped" => ("no longer held", "不再待批准"),
        "tools" => ("of tools", "工具"),
        "server" => ("server", "服务器"),
        "headers" => ("with headers", "请求头"),
        "env" => ("with variables", "变量"),
        "name" => ("name", "名称"),
        "role" => ("role", "角色"),
        "users" => ("of users", "用户"),
        "projects" => ("of projects", "项目"),
        "successor" => ("followed by", "后继"),
        other => return other.replace('_', " "),
    };
    language.say(english, chinese).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_reads_as_a_sentence() {
        let lists = json!({"added": {"count": 7, "names": ["a", "b"]}, "removed": {"count": 0, "names": []}});
        let server = json!({"server": "s", "transport": "http", "is_new": false, "is_elsewhere": true, "headers": ["A"]});
        let rotated = json!({"successor": "k1", "overlap_seconds": 1, "later_thing": true});
        let both = |summary: &Value| [detail(Language::English, summary), detail(Language::Chinese, summary)];
        assert_eq!(both(&lists), ["7 added (a, b, …)", "新增 7 个（a, b, …）"]);
        assert_eq!(
            both(&server),
            [
                "server s; over HTTP; at another place, so that its secrets were cleared; with headers A",
                "服务器 s；通过 HTTP；位置已变，其机密已清除；请求头 A"
            ]
        );
        assert_eq!(
            both(&rotated),
            [
                "followed by k1; the old one holds for 1 second more; later thing yes",
                "后继 k1；旧密钥再有效 1 秒；later thing 是"
            ]
        );
        assert_eq!(both(&json!({})), ["", ""]);
        assert_eq!(deed(Language::English, "thing.done_now"), "thing done now");
    }
}
