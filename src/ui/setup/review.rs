//! Step two: every tool with what makes it hard to find or to call; leaving out, aliases and core are kept in the draft.

use std::collections::HashSet;

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lists::{add_names, remove_names, selectors};
use super::names::phrases;
use super::refused::unreadable;
use super::{DraftForm, Step, keep, made_for, step_page};
use crate::core::remarks::{Kind, ReviewedTool, Severity};
use crate::http::problem::Problem;
use crate::service::{RemarkCount, ReviewAnswer, ReviewQuery, ReviewStanding, SetupDraft, Toolrack};
use crate::ui::language::{Language, counted, number};
use crate::ui::layout::with_query;
use crate::ui::parts::{Slice, State as Standing, empty, notice, pager, tag, tools, visible_name, warnings};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;
use crate::ui::{go, shown};

/// Tools of one page.
const ON_A_PAGE: u32 = 50;

/// Values of `kind` beside those of remarks: tools that have one, that are core, that are left out.
const ANY: &str = "any";
const CORE: &str = "core";
const OUT: &str = "out";

/// Entries of a list that are named where a tool stays as it is by one of them.
const MOST_ENTRIES: usize = 10;

/// What is shown of the tools.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filter {
    kind: String,
    query: String,
    group: String,
    page: String,
    /// What was done just now, and with how many tools; of these, how many stand as before all the same.
    said: String,
    count: String,
    left: String,
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
                ANY => Kind::ALL.iter().map(|kind| kind.as_str().to_owned()).collect(),
                CORE | OUT => Vec::new(),
                kind => some(kind).into_iter().collect(),
            },
            group: some(&self.group),
            query: some(&self.query),
            cursor: None,
            limit: Some(ON_A_PAGE),
            standing: match self.kind.as_str() {
                CORE => Some(ReviewStanding::Core),
                OUT => Some(ReviewStanding::Excluded),
                _ => None,
            },
            page: Some(self.page.parse().unwrap_or(1)),
        }
    }

    /// The address of what is shown, with what is said of the last step.
    fn path(&self, place: &Place) -> String {
        let Self { kind, query, group, page, said, count, left, alias } = self;
        let fields = [
            ("kind", kind),
            ("query", query),
            ("group", group),
            ("page", page),
            ("said", said),
            ("count", count),
            ("left", left),
            ("alias", alias),
        ];
        let fields = fields.map(|(name, value)| (name, value.as_str()));
        with_query(&place.path(Step::Review.path()), &fields)
    }

    /// The same tools without what was said.
    fn quiet(&self) -> Self {
        Self { said: String::new(), count: String::new(), left: String::new(), ..self.clone() }
    }

    /// The first page of other tools.
    fn other(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut other = Self { page: String::new(), ..self.quiet() };
        change(&mut other);
        other
    }
}

pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(filter): Query<Filter>,
) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    let answer = match service.review_setup(draft.input(place.caller()), filter.asked()).await {
        Ok(answer) => answer,
        Err(error) => return unreadable(&place, Step::Review, &draft, error.into()),
    };
    if place.visitor.part {
        return Ok(shown(table(&place, &draft, &filter.quiet(), &answer)));
    }
    Ok(review_page(&place, &draft, &filter, &answer))
}

/// Keeps what was decided about the chosen tools, or about all that are shown page by page.
pub(super) async fn decide(
    State(service): State<Toolrack>,
    place: Place,
    Query(filter): Query<Filter>,
    mut form: DraftForm,
) -> Result<Response, Problem> {
    let mut draft = std::mem::take(&mut form.draft);
    let mut filter = filter.quiet();
    let said = |filter: Filter, said: &str| Ok(go(&Filter { said: said.to_owned(), ..filter }.path(&place)));
    let action = form.text("do");
    let names: Vec<String> = if form.has("all") {
        if action == "alias" {
            return said(filter, "one");
        }
        let found = match service.reviewed_names(draft.input(place.caller()), filter.asked()).await {
            Ok(found) => found,
            Err(error) => return unreadable(&place, Step::Review, &draft, error.into()),
        };
        // What is done is done to what was shown.
        if form.text("all") != found.len().to_string() {
            return said(filter, "other");
        }
        found
    } else {
        form.all("tool").map(str::to_owned).collect()
    };
    if names.is_empty() {
        return said(filter, "none");
    }
    let chosen: Vec<&str> = names.iter().map(String::as_str).collect();
    let config = &mut draft.config;
    // A tool may stay as it is all the same, since other entries mean it as well.
    let stays = match action {
        "exclude" => {
            add_names(config, "deny", &chosen);
            remove_names(config, "core", &chosen);
            None
        }
        "include" => {
            remove_names(config, "deny", &chosen);
            Some(OUT)
        }
        "core" => {
            add_names(config, "core", &chosen);
            None
        }
        "uncore" => {
            remove_names(config, "core", &chosen);
            Some(CORE)
        }
        _ if phrases(form.text("alias")).is_empty() => return said(filter, "phrase"),
        _ => {
            for phrase in phrases(form.text("alias")) {
                alias(config, &chosen, phrase);
            }
            filter.alias.clear();
            None
        }
    };
    if let Some(kind) = stays {
        let standing = Filter { kind: kind.to_owned(), ..Filter::default() }.asked();
        let stand = match service.reviewed_names(draft.input(place.caller()), standing).await {
            Ok(stand) => stand,
            Err(error) => return unreadable(&place, Step::Review, &draft, error.into()),
        };
        let stand: HashSet<&str> = stand.iter().map(String::as_str).collect();
        let left = chosen.iter().filter(|name| stand.contains(**name)).count();
        filter.left = if left > 0 { left.to_string() } else { String::new() };
    }
    filter.count = chosen.len().to_string();
    let on = Filter { said: action.to_owned(), ..filter }.path(&place);
    keep(service, place, &mut draft, &form, &on).await
}

/// What came of the last step.
fn outcome(place: &Place, filter: &Filter, draft: &SetupDraft) -> Markup {
    let language = place.visitor.language;
    let (count, left) =
        (filter.count.parse::<usize>().unwrap_or_default(), filter.left.parse::<usize>().unwrap_or_default());
    let many = tools(language, count - left.min(count));
    let many_are = counted(language, count - left.min(count), "tool is", "tools are", "个工具");
    let done = |english: String, chinese: String| {
        let text = if language == Language::English { english } else { chinese };
        notice(Standing::Ok, text, "")
    };
    let not = |english, chinese| {
        notice(
            Standing::Warn,
            language.say("Nothing was changed:", "未作更改："),
            language.say(english, chinese),
        )
    };
    let stay = |key, english: &str, chinese: &str| {
        let text = match (language, left) {
            (Language::English, 1) => format!(" stays {english}"),
            (Language::English, _) => format!(" stay {english}"),
            (Language::Chinese, _) => chinese.to_owned(),
        };
        let entries: Vec<&str> = selectors(&draft.config, key).take(MOST_ENTRIES).collect();
        html! {
            @if left > 0 {
                (notice(Standing::Warn, format!("{}{text}", tools(language, left)), html! {
                    @for entry in entries { code { (entry) } " " }
                    @if key == "deny" {
                        a href=(place.path(Step::Groups.path())) {
                            (language.say("Take a whole group back", "恢复整个分组"))
                        }
                    }
                }))
            }
        }
    };
    match filter.said.as_str() {
        "none" => not(
            "no tool was chosen. Tick some, or take all that match.",
            "没有选择工具。请勾选，或选择全部匹配项。",
        ),
        "phrase" => not("type what people call the tool, then add it.", "请先输入别名。"),
        "one" => {
            not("an alias is for the tools that it means. Tick these.", "别名只用于所指的工具，请逐个勾选。")
        }
        "other" => not(
            "other tools match by now than were shown. This is what matches.",
            "匹配的工具已与所示不同，以下为当前结果。",
        ),
        "exclude" => done(format!("{many_are} left out."), format!("已排除{many}。")),
        "core" => done(format!("{many_are} core."), format!("已将{many}设为核心。")),
        "alias" => done(format!("{many} got the alias."), format!("已为{many}添加别名。")),
        "include" => html! {
            @if count > left { (done(format!("{many_are} let in again."), format!("已恢复{many}。"))) }
            (stay("deny", "left out by an entry for several tools, by `allow`, or by the other scope's config. ", "仍因涵盖多个工具的条目、`allow` 或另一范围的配置而被排除。"))
        },
        "uncore" => html! {
            @if count > left { (done(format!("{many_are} no longer core."), format!("已取消{many}的核心。"))) }
            (stay("core", "core by an entry for several tools, by the other scope's config, or because they say so themselves. ", "仍因涵盖多个工具的条目、另一范围的配置或工具自身声明而为核心。"))
        },
        _ => html! {},
    }
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
            "{} a remark, of {} in all. None of them blocks you; each makes a tool harder to find, to call or to trust.",
            counted(language, answer.with_remarks, "tool has", "tools have", ""),
            number(answer.reviewed)
        ),
        Language::Chinese => format!(
            "{} 个工具中有 {} 个带提示。这些不会阻止您，但会影响查找、调用或信任。",
            number(answer.reviewed),
            number(answer.with_remarks)
        ),
    };
    let content = html! {
        (outcome(place, filter, draft))
        (warnings(language, &answer.warnings))
        @if !filter.alias.is_empty() { (for_alias(place, &filter.alias)) }
        section.card {
            form.bar method="get" action=(place.path(Step::Review.path())) role="search" {
                input type="hidden" name="kind" value=(filter.kind);
                @if !filter.group.is_empty() { input type="hidden" name="group" value=(filter.group); }
                @if !filter.alias.is_empty() { input type="hidden" name="alias" value=(filter.alias); }
                input type="search" name="query" value=(filter.query) data-search maxlength="200"
                    aria-label=(language.say("Filter tools", "筛选工具")) placeholder=(language.say("Name, group or description", "名称、分组或描述"))
                    hx-get=(place.path(Step::Review.path())) hx-include="closest form" hx-trigger="input changed delay:250ms"
                    hx-target="#review" hx-swap="outerHTML";
                button.btn.small type="submit" { (language.say("Filter", "筛选")) }
                span.note { kbd { "/" } }
                @if !filter.group.is_empty() {
                    a.btn.small href=(filter.other(|filter| filter.group.clear()).path(place)) {
                        (language.say("Only group ", "仅分组 ")) b { (visible_name(language, &filter.group)) } " ×"
                        span.quiet { (language.say("; show all groups", "；显示全部分组")) }
                    }
                }
            }
            (kinds(place, filter, answer))
            (table(place, draft, &filter.quiet(), answer))
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
    let link = |kind: &str| filter.other(|filter| kind.clone_into(&mut filter.kind)).path(place);
    let standings = [
        (CORE, language.say("Core ", "核心 "), answer.core),
        (OUT, language.say("Left out ", "已排除 "), answer.excluded),
    ];
    let found: Vec<&RemarkCount> = answer.counts.iter().filter(|count| count.tools > 0).collect();
    html! {
        nav.tabs aria-label=(language.say("Remarks", "提示")) {
            a href=(link("")) aria-current=[filter.kind.is_empty().then_some("true")] {
                (language.say("All ", "全部 ")) (number(answer.reviewed))
            }
            @for (kind, name, count) in standings {
                @if count > 0 || filter.kind == kind {
                    a href=(link(kind)) aria-current=[(filter.kind == kind).then_some("true")] { (name) (number(count)) }
                }
            }
            a href=(link(ANY)) aria-current=[(filter.kind == ANY).then_some("true")] {
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

fn table(place: &Place, draft: &SetupDraft, filter: &Filter, answer: &ReviewAnswer) -> Markup {
    let language = place.visitor.language;
    let chosen = language.say("# chosen", "已选 # 个");
    let all = language.say("Choose all on this page", "选择本页全部");
    let slice = Slice::of(answer.total, ON_A_PAGE as usize, &filter.page);
    let every = match language {
        Language::English => format!("All {} that match", number(answer.total)),
        Language::Chinese => format!("全部 {} 个匹配项", number(answer.total)),
    };
    let way = |text: &str, page: usize| {
        let to = Filter { page: page.to_string(), ..filter.clone() };
        html! { a.btn.small href=(to.path(place)) { (text) } }
    };
    html! {
        form #review method="post" action=(filter.path(place)) {
            (made_for(place, draft))
            div.bar {
                b data-chosen=(chosen) aria-live="polite" { (chosen.replace('#', "0")) }
                @if slice.pages > 1 {
                    label { input type="checkbox" name="all" value=(answer.total) data-every=(answer.total); " " (every) }
                }
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
                    tbody { @for tool in &answer.tools { (row(place, filter, tool)) } }
                }
            }
            footer.bar {
                span.note { (tools(language, answer.total)) (language.say(", worst first", "，问题严重者在前")) }
                (pager(language, slice, way))
            }
        }
    }
}

fn row(place: &Place, filter: &Filter, tool: &ReviewedTool) -> Markup {
    let language = place.visitor.language;
    let only = filter.other(|filter| tool.group.clone_into(&mut filter.group));
    html! {
        tr.dim[tool.excluded] {
            td { input type="checkbox" name="tool" value=(tool.name) aria-label={(language.say("Choose ", "选择 ")) (tool.name)}; }
            th.most scope="row" {
                span.name { (visible_name(language, &tool.name)) } " "
                @if tool.core { span.tag.core { (language.say("core", "核心")) } " " }
                @if tool.excluded { span.tag { (language.say("left out", "已排除")) } }
                span.clip { (tool.description) }
                @if !tool.aliases.is_empty() { span.note { (language.say("also: ", "别名：")) (tool.aliases.join(", ")) } }
            }
            td { a href=(only.path(place)) { (visible_name(language, &tool.group)) } }
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
