//! What the next turn of a new session sends: its tokens, the listing and the array.

use maud::{Markup, html};
use serde_json::Value;

use super::language::{Language, number};
use super::parts::{Share, card, saved, token_bar, token_count};
use crate::service::Turn;

/// Longest array that a page shows, in bytes; one with every tool of a large catalog would make a browser wait.
const MOST_SHOWN: usize = 200_000;

/// The next turn.
pub(super) fn turn(language: Language, turn: &Turn) -> Markup {
    let answer = &turn.assembled;
    html! {
        (tokens(language, turn))
        div.columns {
            (listing(language, answer))
            (array(language, answer))
        }
    }
}

/// The tokens alone.
pub(super) fn tokens(language: Language, turn: &Turn) -> Markup {
    let shares = turn.shares;
    let parts = [
        Share { class: "core", tokens: shares.core },
        Share { class: "bridge", tokens: shares.bridge },
        Share { class: "listing", tokens: shares.listing },
        Share { class: "rest", tokens: shares.not_sent },
    ];
    let sent = shares.core + shares.bridge + shares.listing;
    let all = turn.assembled.pointer("/tokens/all").and_then(Value::as_u64).unwrap_or_default();
    let tier = turn.assembled.get("tier").and_then(Value::as_u64).unwrap_or_default();
    let note = match (language, sent <= all) {
        (Language::English, true) => format!("{} fewer, {}", saved(sent, all), tier_name(language, tier)),
        (Language::Chinese, true) => format!("减少 {}，{}", saved(sent, all), tier_name(language, tier)),
        _ => tier_name(language, tier).to_owned(),
    };
    let (sent, all) = (number(sent), number(all));
    let content = html! {
        div.body {
            p.big-figure {
                (sent) " "
                small {
                    @match language {
                        Language::English => { "tokens, of " (all) },
                        Language::Chinese => { "词元，全部为 " (all) },
                    }
                }
            }
            (token_bar(language, &parts, "big"))
        }
    };
    card(language.say("What the next turn sends", "下一轮发送的内容"), note, &content)
}

fn tier_name(language: Language, tier: u64) -> &'static str {
    match tier {
        0 => language.say("tier 0: all tools, no bridge", "第 0 级：全部工具，无桥接"),
        1 => language.say("tier 1: listed with descriptions", "第 1 级：列出名称与描述"),
        2 => language.say("tier 2: listed by name", "第 2 级：列出名称"),
        _ => language.say("tier 3: by groups, in lines", "第 3 级：按分组逐行列出"),
    }
}

fn listing(language: Language, answer: &Value) -> Markup {
    let title = language.say("Listing, as the model sees it", "模型看到的清单");
    let text = answer.pointer("/listing/text").and_then(Value::as_str);
    let Some(text) = text else {
        let content = html! { p.body.note { (language.say("There is none: nothing is deferred, or it is off.", "没有清单：没有延迟工具，或清单已关闭。")) } };
        return card(title, "", &content);
    };
    let count = answer.pointer("/listing/tokens").and_then(Value::as_u64).unwrap_or_default();
    let tokens = token_count(language, count);
    let inside = answer.pointer("/listing/placement").and_then(Value::as_str) == Some("bridge");
    let note = match (language, inside) {
        (Language::English, true) => format!("{tokens}, inside the search tool"),
        (Language::English, false) => format!("{tokens}, beside the tools"),
        (Language::Chinese, true) => format!("{tokens}，位于搜索工具内"),
        (Language::Chinese, false) => format!("{tokens}，与工具并列"),
    };
    card(title, note, &html! { pre tabindex="0" { (text) } })
}

fn array(language: Language, answer: &Value) -> Markup {
    let title = language.say("The array", "工具数组");
    let tools = answer.get("tools").cloned().unwrap_or_default();
    let mut text = serde_json::to_string_pretty(&tools).unwrap_or_default();
    let is_cut = text.len() > MOST_SHOWN;
    if is_cut {
        let end = (0..=MOST_SHOWN).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
    }
    let copy = html! {
        @if is_cut { (language.say("the beginning; ", "仅开头；")) }
        button.btn.small type="button" data-copy="array" data-copied=(language.say("Copied", "已复制")) {
            (language.say("Copy", "复制"))
        }
    };
    card(title, copy, &html! { pre #array tabindex="0" { (text) } })
}
