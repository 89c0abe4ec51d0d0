//! Which queries found nothing, and which tools are found, called and never found.

use maud::{Markup, html};

use crate::service::{MissedQueryDocument, Overview, ToolUse, UnfoundTool};
use crate::ui::language::{Language, number, time};
use crate::ui::layout::with_query;
use crate::ui::parts::{State as Standing, card, part, tag, token_count};
use crate::ui::visitor::Place;

/// Rows that are shown before the rest is folded.
const FIRST: usize = 10;

/// The lists.
pub(super) fn lists(place: &Place, overview: &Overview) -> Markup {
    let language = place.visitor.language;
    let tools = &overview.tools;
    let (found, called) = (language.say("Found most", "找到最多"), language.say("Called most", "调用最多"));
    html! {
        @if overview.totals.missed > 0 || !overview.missed_queries.queries.is_empty() { (missed(place, overview)) }
        div.columns {
            (most(place, found, &tools.most_found, |tool| tool.finds))
            (most(place, called, &tools.most_called, |tool| tool.calls))
        }
        @if overview.totals.queries > 0 && tools.never_found.count > 0 { (never(place, overview)) }
    }
}

fn missed(place: &Place, overview: &Overview) -> Markup {
    let language = place.visitor.language;
    let missed = &overview.missed_queries;
    let title = language.say("Queries that found nothing", "未找到工具的查询");
    let change = html! { a href=(place.path("setup/scope")) { (language.say("Change", "更改")) } };
    let content = if missed.kept || !missed.queries.is_empty() {
        let (first, rest) = missed.queries.split_at(missed.queries.len().min(FIRST));
        html! {
            @if first.is_empty() { p.body.note { (language.say("None is kept yet.", "尚未保存任何查询。")) } }
            @else { (queries(place, first)) }
            @if !rest.is_empty() {
                details.fold {
                    summary { (number(rest.len())) " " (language.say("more", "个更多")) }
                    (queries(place, rest))
                }
            }
            footer { (language.say("Their texts are kept because this scope's config says so.", "因本范围的配置允许而保存文本。")) (change) }
        }
    } else {
        html! {
            p.body {
                (language.say(
                    "Their texts are not kept. Where the people behind them agree, turn that on to see what is missing.",
                    "不保存查询文本。如相关人员同意，可开启以查看缺少什么。",
                ))
            }
            footer { code { "keep_missed_queries" } (change) }
        }
    };
    html! { div #missed { (card(title, "", &content)) } }
}

fn queries(place: &Place, rows: &[MissedQueryDocument]) -> Markup {
    let language = place.visitor.language;
    html! {
        table.stack {
            thead {
                tr {
                    th scope="col" { (language.say("Query", "查询")) }
                    th.number scope="col" { (language.say("Times", "次数")) }
                    th scope="col" { (language.say("Last (UTC)", "最近（UTC）")) }
                    th scope="col" { span.quiet { (language.say("What to do", "操作")) } }
                }
            }
            tbody { @for row in rows { (query(place, row)) } }
        }
    }
}

fn query(place: &Place, row: &MissedQueryDocument) -> Markup {
    let language = place.visitor.language;
    let look = with_query(&place.path("playground"), &[("q", &row.query)]);
    let alias = with_query(&place.path("setup/review"), &[("alias", &row.query)]);
    html! {
        tr {
            th.full scope="row" { a href=(look) title=(language.say("What comes nearest?", "最接近的是什么？")) { (row.query) } }
            td.number data-label=(language.say("Times", "次数")) { (number(row.count.unsigned_abs())) }
            td.when data-label=(language.say("Last", "最近")) { (time(row.last_at_ms)) }
            td.number {
                a.btn.small href=(alias) aria-label={(language.say("Make an alias of: ", "设为别名：")) (row.query)} {
                    (language.say("Make an alias", "设为别名"))
                }
            }
        }
    }
}

/// The tools with the largest counts of a kind, the rest folded.
fn most(place: &Place, title: &str, tools: &[ToolUse], count: fn(&ToolUse) -> u64) -> Markup {
    let language = place.visitor.language;
    let largest = tools.first().map(count).unwrap_or_default();
    let (first, rest) = tools.split_at(tools.len().min(FIRST));
    let content = html! {
        @if tools.is_empty() { p.body.note { (language.say("None in these days.", "这段时间没有。")) } }
        @else { (uses(place, first, largest, count)) }
        @if !rest.is_empty() {
            details.fold {
                summary { (number(rest.len())) " " (language.say("more", "个更多")) }
                (uses(place, rest, largest, count))
            }
        }
    };
    card(title, "", &content)
}

fn uses(place: &Place, rows: &[ToolUse], largest: u64, count: fn(&ToolUse) -> u64) -> Markup {
    let language = place.visitor.language;
    html! {
        table.uses {
            thead {
                tr {
                    th scope="col" { (language.say("Tool", "工具")) }
                    th.number scope="col" { (language.say("Found", "找到")) }
                    th.number scope="col" { (language.say("Called", "调用")) }
                }
            }
            tbody {
                @for tool in rows {
                    tr {
                        th scope="row" {
                            (name(place, tool))
                            svg.tokens.thin aria-hidden="true" { rect.t-warm width=(part(count(tool), largest)) height="100%" {} }
                        }
                        td.number { (number(tool.finds)) }
                        td.number { (number(tool.calls)) }
                    }
                }
            }
        }
    }
}

fn name(place: &Place, tool: &ToolUse) -> Markup {
    let language = place.visitor.language;
    html! {
        @if tool.granted {
            a.name href=(with_query(&place.path("catalog/tool"), &[("name", &tool.name)])) { (tool.name) }
        } @else {
            span.name { (tool.name) } " " (tag(Standing::Info, language.say("not offered", "未提供")))
        }
        " " span.note { (tool.group) }
    }
}

fn never(place: &Place, overview: &Overview) -> Markup {
    let language = place.visitor.language;
    let never = &overview.tools.never_found;
    let (first, rest) = never.tools.split_at(never.tools.len().min(FIRST));
    let note = match language {
        Language::English => {
            format!("{} of {} that can be found; the largest first", number(never.count), number(never.of))
        }
        Language::Chinese => {
            format!("可查找的 {} 个中有 {} 个；按大小排序", number(never.of), number(never.count))
        }
    };
    let list = |tools: &[UnfoundTool]| {
        html! {
            ul.rows {
                @for tool in tools {
                    li {
                        span {
                            a.name href=(with_query(&place.path("catalog/tool"), &[("name", &tool.name)])) { (tool.name) }
                            " " span.note { (tool.group) }
                        }
                        span.note { (token_count(language, tool.tokens)) }
                    }
                }
            }
        }
    };
    let content = html! {
        (list(first))
        @if !rest.is_empty() {
            details.fold {
                summary { (number(rest.len())) " " (language.say("more", "个更多")) }
                (list(rest))
            }
        }
        footer {
            span { (language.say("Neither found nor called in these days.", "这段时间既未被找到也未被调用。")) }
            a href=(place.path("catalog")) { (language.say("All tools", "全部工具")) }
        }
    };
    html! { div #never { (card(language.say("Never found", "从未找到"), note, &content)) } }
}
