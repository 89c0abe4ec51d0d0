//! One tool: what it says, what is sent of it, where it comes from, and who finds it.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::language::{Language, number, time};
use super::layout::{Section, page, with_query};
use super::parts::{State as Standing, card, head, notice, tag, token_count, warnings};
use super::translate::tell_lint;
use super::visitor::Place;
use super::{pretty, shown};
use crate::core::format::Format;
use crate::core::text::clip;
use crate::http::problem::Problem;
use crate::service::{GrantFields, LintOutcome, ToolSheet, Toolrack};

/// Arguments that the table shows; the schema below has all.
const MAX_ARGUMENTS: usize = 100;

/// Longest description of an argument in the table, in characters.
const ARGUMENT_CHARS: usize = 400;

/// Which tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    name: String,
    format: String,
}

/// Everything about one tool.
pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let format = Some(asked.format).filter(|format| !format.is_empty());
    let fields = GrantFields { format, ..GrantFields::default() };
    let sheet = service.tool_sheet(&place.caller(), &place.scope, &asked.name, &fields).await?;
    let language = place.visitor.language;
    let catalog = place.path("catalog");
    let about = html! {
        a href=(catalog) { (language.say("Catalog", "工具目录")) } " / "
        a href=(with_query(&catalog, &[("group", &sheet.group)])) { (sheet.group) } " · "
        (token_count(language, sheet.tokens)) (language.say(" as ", "，格式 ")) (sheet.format)
    };
    let content = html! {
        (head(&sheet.name, about, Some(states(language, &sheet))))
        (warnings(language, &sheet.warnings))
        (outcome(language, &sheet))
        div.columns.wide-left {
            div {
                (description(language, &sheet))
                (arguments(language, &sheet))
                (sent(&place, &sheet))
            }
            div {
                (finders(&place))
                (facts(language, &sheet))
            }
        }
    };
    Ok(shown(page(&place, Section::Catalog, &sheet.name, &content)))
}

fn states(language: Language, sheet: &ToolSheet) -> Markup {
    html! {
        @if sheet.core { span.tag.core { (language.say("core: in every array", "核心：始终发送")) } }
        @else if sheet.hidden { (tag(Standing::Info, language.say("not offered, by the config", "配置未提供"))) }
        @else { span.tag { (language.say("found by search", "通过搜索找到")) } }
    }
}

fn outcome(language: Language, sheet: &ToolSheet) -> Markup {
    let lint = &sheet.lint;
    if lint.findings.is_empty() && lint.outcome == LintOutcome::Kept && !lint.description_clipped {
        return html! {};
    }
    let (standing, title) = match lint.outcome {
        LintOutcome::LeftOut => (
            Standing::Bad,
            language.say(
                "This format does not take it; search, describe and call still reach it",
                "此格式不接受该工具；仍可搜索、查看和调用",
            ),
        ),
        _ => (
            Standing::Info,
            language.say("What is sent differs from what was uploaded", "发送内容与上传内容有差异"),
        ),
    };
    let details = html! {
        @if lint.description_clipped { (language.say("The description is cut.", "描述被截短。")) }
        @if !lint.findings.is_empty() {
            ul.lines {
                @for finding in lint.findings.iter().take(20) {
                    li { code { (finding.code) } " " (tell_lint(language, finding.code, &finding.detail)) " " span.note.mono { (finding.pointer) } }
                }
            }
        }
    };
    notice(standing, title, details)
}

fn description(language: Language, sheet: &ToolSheet) -> Markup {
    let content = if sheet.description.trim().is_empty() {
        html! { div.body { (tag(Standing::Warn, language.say("no description", "无描述"))) } }
    } else {
        html! { pre.prose tabindex="0" { (sheet.description) } }
    };
    let note = language.say("As uploaded", "上传原文");
    card(language.say("Description", "描述"), note, &content)
}

fn arguments(language: Language, sheet: &ToolSheet) -> Markup {
    let schema: Value = serde_json::from_str(&sheet.parameters).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|list| list.iter().any(|entry| entry == name))
    };
    let count = properties.map_or(0, serde_json::Map::len);
    let note = match language {
        Language::English => format!("{} in all", number(count)),
        Language::Chinese => format!("共 {} 个", number(count)),
    };
    let content = html! {
        @if let Some(properties) = properties.filter(|properties| !properties.is_empty()) {
            table.stack {
                thead {
                    tr {
                        th scope="col" { (language.say("Name", "名称")) }
                        th scope="col" { (language.say("Type", "类型")) }
                        th scope="col" { (language.say("Description", "描述")) }
                    }
                }
                tbody {
                    @for (name, argument) in properties.iter().take(MAX_ARGUMENTS) {
                        tr {
                            th scope="row" {
                                span.name { (name) }
                                @if required(name) { " " span.tag { (language.say("required", "必填")) } }
                            }
                            td { code { (kind(argument)) } }
                            td.full { @if let Some(text) = argument.get("description").and_then(Value::as_str) {
                                (clip(text, ARGUMENT_CHARS))
                            } }
                        }
                    }
                }
            }
        } @else {
            p.body { (language.say("It takes no arguments.", "不需要参数。")) }
        }
        details.fold {
            summary { (language.say("Schema as uploaded", "上传的模式")) }
            pre tabindex="0" { (pretty(&sheet.parameters)) }
        }
    };
    card(language.say("Arguments", "参数"), note, &content)
}

/// The type of an argument in a word, as far as the schema says it there.
fn kind(argument: &Value) -> String {
    match argument.get("type") {
        Some(Value::String(kind)) => clip(kind, 40).into_owned(),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).take(4).collect();
            clip(&kinds.join(" | "), 40).into_owned()
        }
        _ if argument.get("enum").is_some() => "enum".to_owned(),
        _ => "any".to_owned(),
    }
}

fn sent(place: &Place, sheet: &ToolSheet) -> Markup {
    let language = place.visitor.language;
    let path = |format: Format| {
        let fields = [("name", sheet.name.as_str()), ("format", format.as_str())];
        format!("{}#sent", with_query(&place.path("catalog/tool"), &fields))
    };
    let content = html! {
        nav.tabs aria-label=(language.say("Format", "格式")) {
            @for format in Format::ALL {
                a href=(path(format)) aria-current=[(format.as_str() == sheet.format).then_some("true")] { (format.as_str()) }
            }
        }
        @match &sheet.sent {
            Some(json) => { pre #sent-json tabindex="0" { (pretty(json)) } }
            None => { p.body { (language.say("It is not in the array of this format.", "不在此格式的数组中。")) } }
        }
    };
    let copy = html! {
        @if sheet.sent.is_some() {
            button.btn.small type="button" data-copy="sent-json" data-copied=(language.say("Copied", "已复制")) {
                (language.say("Copy", "复制"))
            }
        }
    };
    html! { div #sent { (card(language.say("As a model gets it", "模型收到的定义"), copy, &content)) } }
}

fn finders(place: &Place) -> Markup {
    let language = place.visitor.language;
    let content = html! {
        form.form method="get" action=(place.path("playground")) {
            div.field {
                label for="who-q" { (language.say("What somebody would ask", "用户会怎么问")) }
                input #who-q type="search" name="q" required maxlength="2000" autocomplete="off" aria-describedby="who-hint";
                p.hint #who-hint {
                    (language.say(
                        "In words of a task, not of the tool. The playground shows where this tool comes in.",
                        "用任务的说法，而不是工具的说法。试验台会显示此工具的排名。",
                    ))
                }
            }
            button.btn type="submit" { (language.say("Try", "试一试")) }
        }
    };
    card(language.say("Who finds it?", "谁能找到它？"), "", &content)
}

fn facts(language: Language, sheet: &ToolSheet) -> Markup {
    let when = |at: Option<i64>| at.map_or_else(|| "–".to_owned(), |at| format!("{} UTC", time(at)));
    let content = html! {
        div.body { dl.facts {
            dt { (language.say("Line in the listing", "清单中的行")) } dd.mono { (sheet.line.trim_end()) }
            @if let Some(name) = &sheet.wire_name {
                dt { (language.say("Providers see", "提供商看到")) } dd.mono { (name) }
            }
            @if let Some(name) = &sheet.uploaded_name {
                dt { (language.say("Uploaded as", "上传名称")) } dd.mono { (name) }
            }
            dt { (language.say("Aliases", "别名")) }
            dd {
                @if sheet.aliases.is_empty() { (language.say("none", "无")) }
                @else { ul.chips { @for alias in sheet.aliases.iter().take(50) { li { (clip(alias, 200)) } } } }
            }
            @if let Some(provenance) = &sheet.provenance {
                dt { (language.say("First seen", "首次出现")) } dd { (when(provenance.first_seen_ms)) }
                dt { (language.say("Last changed", "最近变更")) } dd { (when(provenance.changed_at_ms)) }
                dt { (language.say("Uploaded by", "上传者")) } dd { (provenance.uploaded_by.as_deref().unwrap_or("–")) }
                dt { (language.say("Digest", "摘要")) } dd.mono { (provenance.digest) }
            }
        } }
    };
    card(language.say("Facts", "信息"), "", &content)
}
