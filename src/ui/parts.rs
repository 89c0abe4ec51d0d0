//! Parts that several pages are made of.

use std::borrow::Cow;

use maud::{Markup, Render, html};

use super::language::{Language, counted, number, percent};
use super::translate::tell_warning;
use crate::core::text::one_line;
use crate::core::warning::Warning;

/// How something stands; always with a word beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Info,
    Ok,
    Warn,
    Bad,
}

impl State {
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// What a page is called, what it answers, and what can be done on it.
pub(super) fn head(title: &str, about: impl Render, actions: Option<Markup>) -> Markup {
    html! {
        div.head {
            div {
                h1 { (title) }
                p.about { (about) }
            }
            @if let Some(actions) = actions { div.actions { (actions) } }
        }
    }
}

/// A surface with a title.
pub(super) fn card(title: impl Render, note: impl Render, content: &Markup) -> Markup {
    html! {
        section.card {
            div.card-head { h2 { (title) } span.note { (note) } }
            (content)
        }
    }
}

/// What happened, what still works and what to do about it.
pub(super) fn notice(state: State, title: impl Render, text: impl Render) -> Markup {
    html! {
        div class={"notice " (state.class())} role=(if state == State::Bad { "alert" } else { "status" }) {
            (mark(state))
            div { strong { (title) } " " (text) }
        }
    }
}

/// The shape of a state: each has its own.
pub(super) fn mark(state: State) -> Markup {
    html! { span class={"mark " (state.class())} aria-hidden="true" {} }
}

/// A deed that nobody can undo: what is pressed first tells what is lost, and shows the button that does it. Stands in the form.
pub(super) fn asked_first(size: &str, word: &str, about: &str, button: &Markup) -> Markup {
    html! {
        details.asked {
            summary class={ "btn " (size) } { (word) }
            div { p { (about) } (button) }
        }
    }
}

/// A short word about something.
pub(super) fn tag(state: State, text: impl Render) -> Markup {
    html! { span class={"tag " (state.class())} { (text) } }
}

/// Warnings that are told one by one.
const SHOWN_WARNINGS: usize = 50;

/// Warnings of what somebody set, which they mend there; all others are of tools.
const OF_THE_CONFIG: [&str; 13] = [
    "empty_grant",
    "empty_catalog",
    "core_not_found",
    "unknown_toolset",
    "too_many_tools",
    "ambiguous_core",
    "clamped",
    "odd_name",
    "preload_inactive",
    "secret_cleared",
    "secret_missing",
    "setting_without_effect",
    "stored_field_ignored",
];

/// The warnings of an answer: first those of the config, which are not folded away.
pub(super) fn warnings(language: Language, warnings: &[Warning]) -> Markup {
    if warnings.is_empty() {
        return html! {};
    }
    let (of_config, of_tools): (Vec<&Warning>, Vec<&Warning>) =
        warnings.iter().partition(|warning| OF_THE_CONFIG.contains(&warning.code));
    let is_open = warnings.len() <= 2 || !of_config.is_empty();
    html! {
        details.notice.warn open[is_open] {
            summary {
                (mark(State::Warn))
                strong {
                    (counted(language, warnings.len(), "warning", "warnings", "条警告"))
                }
            }
            ul.lines {
                @for warning in of_config.iter().chain(&of_tools).take(SHOWN_WARNINGS) {
                    li {
                        code { (warning.code) } " "
                        @if let Some(tool) = &warning.tool { b { (tool) } ": " }
                        (tell_warning(language, warning.code, &warning.detail))
                    }
                }
                @if warnings.len() > SHOWN_WARNINGS {
                    li { "… " (number(warnings.len() - SHOWN_WARNINGS)) (language.say(" more", " 条")) }
                }
            }
        }
    }
}

/// A number of tools, as a sentence has it.
pub(super) fn tools(language: Language, count: usize) -> String {
    counted(language, count, "tool", "tools", "个工具")
}

/// A name that an upload gave, without what would hide or turn it around; said in words where nothing is left.
pub(super) fn visible_name(language: Language, name: &str) -> Cow<'_, str> {
    let seen = one_line(name);
    if seen.is_empty() {
        Cow::Borrowed(language.say("(a name that nobody sees)", "（不可见的名称）"))
    } else {
        seen
    }
}

/// A number of tokens, as a sentence has it.
pub(super) fn token_count(language: Language, count: impl TryInto<u64>) -> String {
    counted(language, count, "token", "tokens", "词元")
}

/// Which entries of a list a page of it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// From 1 on.
    pub(super) page: usize,
    pub(super) pages: usize,
    /// The first entry, and the one behind the last.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) all: usize,
}

impl Slice {
    /// The page that is asked for; one that is not there is the last, and no number the first.
    pub(super) fn of(all: usize, size: usize, asked: &str) -> Self {
        let pages = all.div_ceil(size.max(1)).max(1);
        let page = asked.parse::<usize>().unwrap_or(1).clamp(1, pages);
        let from = (page - 1) * size;
        Self { page, pages, from, to: (from + size).min(all), all }
    }
}

/// Where a page of a list is among the others, with the ways to those before and behind. `link`: a way to a page under a text.
pub(super) fn pager(language: Language, slice: Slice, link: impl Fn(&str, usize) -> Markup) -> Markup {
    if slice.pages <= 1 {
        return html! {};
    }
    let Slice { page, pages, from, to, all } = slice;
    html! {
        nav.bar.flat aria-label=(language.say("Pages", "分页")) {
            span.note {
                (number(from + 1)) "–" (number(to)) (language.say(" of ", " / ")) (number(all))
            }
            span.pages {
                @if page > 2 { (link(language.say("First", "首页"), 1)) }
                @if page > 1 { (link(language.say("Previous", "上一页"), page - 1)) }
                @if page < pages { (link(language.say("Next", "下一页"), page + 1)) }
                @if page + 1 < pages { (link(language.say("Last", "末页"), pages)) }
            }
        }
    }
}

/// An empty page: one sentence and one way on.
pub(super) fn empty(title: &str, text: impl Render, action: Option<Markup>) -> Markup {
    html! {
        div.empty {
            svg viewBox="0 0 120 48" width="120" height="48" aria-hidden="true" {
                path d="M4 6h112M24 6v14M60 6v26M96 6v9";
            }
            h2 { (title) }
            p { (text) }
            @if let Some(action) = action { (action) }
        }
    }
}

/// A part of the tokens of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// The class that gives its colour: `core`, `bridge`, `warm`, `listing` or `rest`.
    pub(super) class: &'static str,
    pub(super) tokens: u64,
}

/// What is sent beside what is not, as a bar with its figures.
pub(super) fn token_bar(language: Language, shares: &[Share], size: &str) -> Markup {
    let named: Vec<_> = shares.iter().map(|share| (*share, share_name(language, share.class))).collect();
    named_token_bar(language, &named, size)
}

/// As [`token_bar`], with names of its own.
pub(super) fn named_token_bar(language: Language, shares: &[(Share, &str)], size: &str) -> Markup {
    let whole: u64 = shares.iter().map(|(share, _)| share.tokens).sum();
    let sent = shares.iter().filter(|(share, _)| share.class != "rest");
    let sent: u64 = sent.map(|(share, _)| share.tokens).sum();
    let label = match language {
        Language::English => {
            format!("{} of {} sent", number(sent), counted(language, whole, "token is", "tokens are", ""))
        }
        Language::Chinese => format!("共 {} 词元，发送 {}", number(whole), number(sent)),
    };
    let mut at = 0;
    html! {
        svg class={"tokens " (size)} role="img" aria-label=(label) {
            @for (share, _) in shares.iter().filter(|(share, _)| share.tokens > 0) {
                rect class={"t-" (share.class)} x=(part(at, whole)) width=(part(share.tokens, whole)) y="0" height="100%" {}
                ({ at += share.tokens; "" })
            }
        }
        ul.legend {
            @for (share, name) in shares { li { (swatch(share.class)) (name) " " b { (number(share.tokens)) } } }
        }
    }
}

/// The colour of a legend's entry.
pub(super) fn swatch(class: &str) -> Markup {
    html! {
        svg width="10" height="10" aria-hidden="true" { rect class={"t-" (class)} width="10" height="10" {} } " "
    }
}

fn share_name(language: Language, class: &str) -> &'static str {
    match class {
        "core" => language.say("Core", "核心"),
        "bridge" => language.say("Bridge", "桥接"),
        "warm" => language.say("Warm", "热集"),
        "listing" => language.say("Listing", "清单"),
        _ => language.say("Not sent", "未发送"),
    }
}

/// A part of a whole as a length in per cent, two decimals.
pub(super) fn part(part: u64, whole: u64) -> String {
    let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// How much less is sent than there is.
pub(super) fn saved(sent: u64, whole: u64) -> String {
    percent(whole.saturating_sub(sent), whole)
}

/// How sure a match is: bars and a word.
pub(super) fn confidence(language: Language, level: &str) -> Markup {
    let (bars, word) = match level {
        "high" => (3, language.say("high", "高")),
        "medium" => (2, language.say("medium", "中")),
        _ => (1, language.say("low", "低")),
    };
    html! {
        span.sure {
            svg width="16" height="12" aria-hidden="true" {
                @for bar in 0..3 {
                    rect.on[bar < bars] x=(bar * 6) width="4" y=(8 - 4 * bar) height=(4 + 4 * bar) {}
                }
            }
            (word)
        }
    }
}

/// One figure with its name and what it means.
pub(super) fn figure(name: &str, value: impl Render, note: impl Render) -> Markup {
    html! { div { dt { (name) } dd { (value) } dd.note { (note) } } }
}
