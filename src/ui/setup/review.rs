//! Step two: every tool with what makes it hard to find or to call; leaving out, aliases and core are kept in the draft.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lists::{add_names, remove_names};
use super::{Step, step_page};
use crate::core::remarks::{Kind, ReviewedTool, Severity};
use crate::http::problem::Problem;
use crate::service::{RemarkCount, ReviewAnswer, ReviewQuery, SetupDraft, Toolrack};
use crate::ui::form::Form;
use crate::ui::language::{Language, number};
use crate::ui::layout::{token, with_query};
use crate::ui::parts::{State as Standing, empty, notice, tag, warnings};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;
use crate::ui::{go, shown};

/// Tools of one page.
const ON_A_PAGE: u32 = 50;

/// What is shown of the tools.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filter {
    kind: String,
    query: String,
    group: String,
    cursor: String,
    /// A phrase to be made an alias, as the overview sends it.
    alias: String,
}

impl Filter {
    fn asked(&self) -> ReviewQuery {
        let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        ReviewQuery {
            profile: None,
            kinds: match self.kind.as_str() {
                // Everything that has a remark.
                "any" => Kind::ALL.iter().map(|kind| kind.as_str().to_owned()).collect(),
                kind => some(kind).into_iter().collect(),
            },
            group: some(&self.group),
            query: some(&self.query),
            cursor: some(&self.cursor),
            limit: Some(ON_A_PAGE),
        }
    }

    fn path(&self, place: &Place) -> String {
        let Self { kind, query, group, cursor, alias } = self;
        let fields =
            [("kind", kind), ("query", query), ("group", group), ("cursor", cursor), ("alias", alias)];
        let fields = fields.map(|(name, value)| (name, value.as_str()));
        with_query(&place.path(Step::Review.path()), &fields)
    }
}

pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(filter): Query<Filter>,
) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    let answer = service.review_setup(draft.input(place.caller()), filter.asked()).await?;
    if place.visitor.part {
        return Ok(shown(table(&place, &filter, &answer)));
    }
    Ok(review_page(&place, &draft, &filter, &answer))
}

/// Keeps what was decided about the chosen tools.
pub(super) async fn decide(
    State(service): State<Toolrack>,
    place: Place,
    Query(mut filter): Query<Filter>,
    form: Form,
) -> Result<Response, Problem> {
    let mut draft = service.draft(&place.scope).await?;
    let names: Vec<&str> = form.all("tool").collect();
    let config = &mut draft.config;
    match form.text("do") {
        "exclude" => {
            add_names(config, "deny", &names);
            remove_names(config, "core", &names);
        }
        "include" => remove_names(config, "deny", &names),
        "core" => add_names(config, "core", &names),
        "uncore" => remove_names(config, "core", &names),
        _ => {
            alias(config, &names, form.text("alias"));
            if !names.is_empty() {
                filter.alias.clear();
            }
        }
    }
    service.save_draft(&place.scope, &mut draft, &place.visitor.actor).await?;
    Ok(go(&filter.path(&place)))
}

/// Adds a phrase to tools.
fn alias(config: &mut serde_json::Map<String, Value>, names: &[&str], phrase: &str) {
    if phrase.is_empty() || names.is_empty() {
        return;
    }
    let aliases = config.entry("aliases").or_insert_with(|| json!({}));
    let Some(aliases) = aliases.as_object_mut() else { return };
    for name in names {
        let phrases = aliases.entry(*name).or_insert_with(|| json!([]));
        if let Some(phrases) = phrases.as_array_mut().filter(|phrases| !phrases.contains(&json!(phrase))) {
            phrases.push(json!(phrase));
        }
    }
}

fn review_page(place: &Place, draft: &SetupDraft, filter: &Filter, answer: &ReviewAnswer) -> Response {
    let language = place.visitor.language;
    let about = match language {
        Language::English => format!(
            "{} of {} have remarks. None of them blocks you; each makes a tool harder to find, to call or to trust.",
            number(answer.with_remarks),
            number(answer.reviewed)
        ),
        Language::Chinese => format!(
            "{} 个工具中有 {} 个带提示。这些不会阻止您，但会影响查找、调用或信任。",
            number(answer.reviewed),
            number(answer.with_remarks)
        ),
    };
    let content = html! {
        (warnings(language, &answer.warnings))
        @if !filter.alias.is_empty() { (for_alias(place, &filter.alias)) }
        section.card {
            form.bar method="get" action=(place.path(Step::Review.path())) role="search" {
                input type="hidden" name="kind" value=(filter.kind);
                @if !filter.alias.is_empty() { input type="hidden" name="alias" value=(filter.alias); }
                input type="search" name="query" value=(filter.query) data-search maxlength="200"
                    aria-label=(language.say("Filter tools", "筛选工具")) placeholder=(language.say("Name, group or description", "名称、分组或描述"))
                    hx-get=(place.path(Step::Review.path())) hx-include="closest form" hx-trigger="input changed delay:250ms"
                    hx-target="#review" hx-swap="outerHTML";
                button.btn.small type="submit" { (language.say("Filter", "筛选")) }
                span.note { kbd { "/" } }
            }
            (kinds(place, filter, answer))
            (table(place, filter, answer))
        }
    };
    step_page(place, Step::Review, draft, (language.say("Review tools", "检查工具"), &about), &content, None)
}

/// What to do with a phrase that somebody brought here.
fn for_alias(place: &Place, phrase: &str) -> Markup {
    let language = place.visitor.language;
    let nearest = with_query(&place.path("playground"), &[("q", phrase)]);
    notice(
        Standing::Info,
        html! { "“" (phrase) "”" },
        html! {
            (language.say(
                "found nothing. Choose the tool that it means, and add it as an alias. ",
                "未找到工具。请选择其所指的工具，并添加为别名。",
            ))
            a href=(nearest) { (language.say("What comes nearest?", "最接近的是什么？")) }
        },
    )
}

/// The kinds of remarks that there are, each a filter.
fn kinds(place: &Place, filter: &Filter, answer: &ReviewAnswer) -> Markup {
    let language = place.visitor.language;
    let link =
        |kind: &str| Filter { kind: kind.to_owned(), cursor: String::new(), ..filter.clone() }.path(place);
    let found: Vec<&RemarkCount> = answer.counts.iter().filter(|count| count.tools > 0).collect();
    html! {
        nav.tabs aria-label=(language.say("Remarks", "提示")) {
            a href=(link("")) aria-current=[filter.kind.is_empty().then_some("true")] {
                (language.say("All ", "全部 ")) (number(answer.reviewed))
            }
            a href=(link("any")) aria-current=[(filter.kind == "any").then_some("true")] {
                (language.say("With remarks ", "有提示 ")) (number(answer.with_remarks))
            }
            @for count in found {
                a href=(link(count.kind.as_str())) title=(tell(language, count.costs)) aria-current=[(filter.kind == count.kind.as_str()).then_some("true")] {
                    (name(language, count.kind)) " " (number(count.tools))
                }
            }
        }
        @if let Some(kind) = Kind::parse(&filter.kind) {
            p.bar { (tell(language, kind.costs())) " " (tell(language, kind.mends())) }
        }
    }
}

fn table(place: &Place, filter: &Filter, answer: &ReviewAnswer) -> Markup {
    let language = place.visitor.language;
    let chosen = language.say("# chosen", "已选 # 个");
    let all = language.say("Choose all on this page", "选择本页全部");
    html! {
        form #review method="post" action=(filter.path(place)) {
            (token(&place.visitor))
            div.bar {
                b data-chosen=(chosen) aria-live="polite" { (chosen.replace('#', "0")) }
                button.btn.small type="submit" name="do" value="core" { (language.say("Make core", "设为核心")) }
                button.btn.small type="submit" name="do" value="uncore" { (language.say("Not core", "取消核心")) }
                button.btn.small.danger type="submit" name="do" value="exclude" { (language.say("Leave out", "排除")) }
                button.btn.small type="submit" name="do" value="include" { (language.say("Let in again", "恢复")) }
                span.alias {
                    input type="text" name="alias" value=(filter.alias) maxlength="200" aria-label=(language.say("Alias", "别名")) placeholder=(language.say("what people call it", "人们的叫法"));
                    button.btn.small type="submit" name="do" value="alias" { (language.say("Add alias", "添加别名")) }
                }
            }
            @if answer.tools.is_empty() {
                (empty(language.say("No tool here", "没有工具"), language.say("Nothing passes this filter.", "没有符合筛选的工具。"), None))
            } @else {
                table.stack.review {
                    thead { tr {
                        th { input type="checkbox" data-check-all aria-label=(all); }
                        th scope="col" { (language.say("Tool", "工具")) }
                        th scope="col" { (language.say("Group", "分组")) }
                        th.number scope="col" { (language.say("Tokens", "词元")) }
                        th.number scope="col" { (language.say("Parameters", "参数")) }
                        th scope="col" { (language.say("Remarks", "提示")) }
                    } }
                    tbody { @for tool in &answer.tools { (row(language, tool)) } }
                }
            }
            footer.bar {
                span.note {
                    (number(answer.tools.len())) (language.say(" of ", " / ")) (number(answer.total))
                    (language.say(", worst first", "，问题严重者在前"))
                }
                span.pages {
                    @if !filter.cursor.is_empty() {
                        a.btn.small href=(Filter { cursor: String::new(), ..filter.clone() }.path(place)) { (language.say("First page", "首页")) }
                    }
                    @if let Some(next) = &answer.next_cursor {
                        a.btn.small href=(Filter { cursor: next.clone(), ..filter.clone() }.path(place)) { (language.say("Next page", "下一页")) }
                    }
                }
            }
        }
    }
}

fn row(language: Language, tool: &ReviewedTool) -> Markup {
    html! {
        tr.dim[tool.excluded] {
            td { input type="checkbox" name="tool" value=(tool.name) aria-label={(language.say("Choose ", "选择 ")) (tool.name)}; }
            th.most scope="row" {
                span.name { (tool.name) } " "
                @if tool.core { span.tag.core { (language.say("core", "核心")) } " " }
                @if tool.excluded { span.tag { (language.say("left out", "已排除")) } }
                span.clip { (tool.description) }
                @if !tool.aliases.is_empty() { span.note { (language.say("also: ", "别名：")) (tool.aliases.join(", ")) } }
            }
            td { (tool.group) }
            td.number data-label=(language.say("Tokens", "词元")) { (number(tool.tokens)) }
            td.number data-label=(language.say("Parameters", "参数")) { (number(tool.parameters)) }
            td.full {
                @for remark in &tool.remarks {
                    p { (tag(standing(remark.severity), name(language, remark.kind))) " " span.note { (tell(language, &remark.detail)) } }
                }
            }
        }
    }
}

fn standing(severity: Severity) -> Standing {
    match severity {
        Severity::Note => Standing::Info,
        Severity::Warn => Standing::Warn,
        Severity::Bad => Standing::Bad,
    }
}

fn name(language: Language, kind: Kind) -> &'static str {
    let (english, chinese) = match kind {
        Kind::SuspiciousText => ("Orders the model", "文本可疑"),
        Kind::LeftOut => ("Not taken by a provider", "服务商不接受"),
        Kind::InvalidSchema => ("Invalid schema", "模式无效"),
        Kind::HiddenCharacters => ("Hidden characters", "隐藏字符"),
        Kind::SchemaNotObject => ("Schema is no object", "模式非对象"),
        Kind::NoDescription => ("No description", "无描述"),
        Kind::LookalikeName => ("Look-alike name", "名称相似"),
        Kind::Oversized => ("Oversized", "过大"),
        Kind::OverLimit => ("Over a limit", "超出限制"),
        Kind::SchemaLosesMeaning => ("Schema is cut", "模式被削减"),
        Kind::SaysLittle => ("Says little", "描述过少"),
        Kind::SameDescription => ("Same description", "描述相同"),
        Kind::DuplicateName => ("Same name", "名称重复"),
        Kind::CatalogClash => ("Clash of catalogs", "目录冲突"),
        Kind::NoParameters => ("No parameters", "无参数"),
    };
    language.say(english, chinese)
}
