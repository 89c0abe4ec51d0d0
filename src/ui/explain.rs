//! Matches of a search for people: places, scores, and why.

use maud::{Markup, html};

use super::language::{Language, number};
use super::layout::with_query;
use super::parts::confidence;
use super::visitor::Place;
use crate::core::matches::Confidence;
use crate::service::{MatchExplanation, ToolMatch, ToolState};

/// Terms of one match that are shown; their number is that of a query's words.
const MAX_TERMS: usize = 40;

/// Matches in their order.
pub(super) fn hits(place: &Place, matches: &[ToolMatch]) -> Markup {
    html! {
        ol.hits {
            @for (at, hit) in (1..).zip(matches) { (one(place, at, hit)) }
        }
    }
}

fn one(place: &Place, at: usize, hit: &ToolMatch) -> Markup {
    let language = place.visitor.language;
    let sheet = with_query(&place.path("catalog/tool"), &[("name", &hit.name)]);
    let sure = match hit.confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    };
    html! {
        li {
            span { (number(at)) }
            div {
                a.name href=(sheet) { (hit.name) }
                @if hit.state == ToolState::Core { " " span.tag.core { (language.say("always sent", "始终发送")) } }
                @if let Some(description) = &hit.description { p { (description) } }
                @if let Some(explanation) = &hit.explain { (why(language, explanation)) }
            }
            div.right {
                b { (score(hit.score)) }
                (confidence(language, sure))
            }
        }
    }
}

fn why(language: Language, explanation: &MatchExplanation) -> Markup {
    let e = explanation;
    html! {
        details {
            summary { (language.say("Why this score", "评分原因")) }
            @if !e.terms.is_empty() {
                table.why {
                    thead {
                        tr {
                            th scope="col" { (language.say("Word", "词")) }
                            th scope="col" { (language.say("The tool holds", "工具中的")) }
                            th scope="col" { (language.say("In", "位置")) }
                            th.number scope="col" { (language.say("Adds", "加分")) }
                        }
                    }
                    tbody {
                        @for term in e.terms.iter().take(MAX_TERMS) {
                            tr {
                                th scope="row" { (term.typed) }
                                td { (term.matched) " " span.note { (kind(language, term.kind)) } }
                                td {
                                    @for (at, field) in term.fields.iter().enumerate() {
                                        @if at > 0 { ", " } (field_name(language, field.field))
                                    }
                                }
                                td.number { (score(term.contribution)) }
                            }
                        }
                    }
                }
            }
            ul.lines {
                @if let Some(raw) = e.endpoint_score {
                    li { (language.say("The endpoint says", "端点评分")) " " b { (score(raw)) } }
                }
                @if let Some(similarity) = e.similarity {
                    li {
                        (language.say("Likeness in meaning", "语义相似度")) " " b { (score(similarity)) }
                        @if let Some(adds) = e.similarity_contribution { ", " (language.say("adds", "加分")) " " (score(adds)) }
                    }
                }
                li {
                    (language.say("Keyword score", "关键词评分")) " " b { (score(e.score)) } ", "
                    (language.say("times", "系数")) " " (score(e.bonus)) ", "
                    (language.say("covers", "覆盖")) " " (percent_of(e.coverage)) " " (language.say("of the query", "的查询"))
                }
                @if e.named { li { (language.say("The query names this tool.", "查询中点名了此工具。")) } }
                @if !e.missing.is_empty() {
                    li { (language.say("Not in it:", "未包含：")) " " (e.missing.join(", ")) }
                }
            }
        }
    }
}

/// A score with two digits behind the point.
fn score(score: f64) -> String {
    format!("{score:.2}")
}

fn percent_of(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

fn kind(language: Language, kind: &str) -> &'static str {
    match kind {
        "word" => "",
        "stem" => language.say("(same stem)", "（同词干）"),
        "pair" => language.say("(pair)", "（词对）"),
        "joined" => language.say("(joined)", "（合写）"),
        "concept" => language.say("(same meaning)", "（同义）"),
        "characters" => language.say("(characters)", "（字符）"),
        "split" => language.say("(split)", "（拆分）"),
        "correction" => language.say("(misspelt)", "（拼写更正）"),
        _ => language.say("(other)", "（其他）"),
    }
}

fn field_name(language: Language, field: &'static str) -> &'static str {
    match field {
        "name" => language.say("name", "名称"),
        "group" => language.say("group", "分组"),
        "lead" => language.say("first sentence", "首句"),
        "description" => language.say("description", "描述"),
        "parameter" => language.say("argument", "参数"),
        "parameter_description" => language.say("argument's description", "参数描述"),
        "value" => language.say("value", "取值"),
        "alias" => language.say("alias", "别名"),
        other => other,
    }
}
