//! The catalog: what is in it, what is large, what changed last.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::language::{Language, counted, number, time};
use super::layout::{Section, page, with_query};
use super::parts::{State as Standing, card, empty, head, notice, tag, token_count, tools};
use super::shown;
use super::visitor::Place;
use crate::core::id::Scope;
use crate::http::problem::Problem;
use crate::service::{
    AuditDocument, AuditListQuery, BROWSED_DAYS, BrowseOrder, BrowsePage, BrowseQuery, BrowsedTool,
    CATALOG_PAGE, Toolrack,
};

/// Changes of the scope that are looked through for those of its catalog, and how many are shown.
const CHANGES_READ: u32 = 50;
const CHANGES_SHOWN: usize = 3;

/// The value of `show` for tools that no search finds.
const NEVER: &str = "never";

/// Which tools are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    q: String,
    group: String,
    sort: String,
    show: String,
    page: String,
}

impl Asked {
    /// The address of these tools on another page, or in another order.
    fn path(&self, place: &Place, sort: &str, page: usize) -> String {
        let page = if page > 1 { page.to_string() } else { String::new() };
        let (q, group, show) = (self.q.as_str(), &self.group, &self.show);
        let fields = [("q", q), ("group", group), ("show", show), ("sort", sort), ("page", &page)];
        with_query(&place.path("catalog"), &fields)
    }
}

/// A page of the catalog; for a field that is typed in, the table alone.
pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let query = BrowseQuery {
        text: asked.q.clone(),
        group: asked.group.clone(),
        order: match asked.sort.as_str() {
            "tokens" => BrowseOrder::Tokens,
            "found" => BrowseOrder::Found,
            _ => BrowseOrder::Name,
        },
        never_found: asked.show == NEVER,
        page: asked.page.parse().unwrap_or(1),
    };
    let found = service.browse_catalog(&place.caller(), &place.scope, query).await?;
    let table = table(&place, &asked, &found);
    if place.visitor.part {
        return Ok(shown(table));
    }
    let language = place.visitor.language;
    let title = language.say("Catalog", "工具目录");
    let import = html! { a.btn.primary href=(place.path("setup")) { (language.say("Import", "导入")) } };
    let content = if found.tools == 0 {
        html! {
            (head(title, language.say("Every tool that agents here can find.", "此处代理可找到的全部工具。"), None))
            section.card {
                (empty(
                    language.say("No tools yet", "还没有工具"),
                    language.say(
                        "Paste a tool list or an mcp.json, or ask an MCP server.",
                        "粘贴工具列表或 mcp.json，或连接 MCP 服务器。",
                    ),
                    Some(import),
                ))
            }
        }
    } else {
        let changes = changes(&service, &place).await?;
        html! {
            (head(title, about(language, &found), Some(import)))
            @if found.held > 0 { (waiting(&place, found.held)) }
            (changes)
            section.card {
                (filters(&place, &asked, &found))
                div #tools aria-live="polite" { (table) }
            }
        }
    };
    Ok(shown(page(&place, Section::Catalog, title, &content)))
}

fn about(language: Language, found: &BrowsePage) -> Markup {
    let tools = tools(language, found.tools);
    let groups = counted(language, found.groups.len(), "group", "groups", "个分组");
    let tokens = token_count(language, found.tokens);
    let version = found.version.chars().take(8).collect::<String>();
    let text = match language {
        Language::English => {
            format!("{tools} in {groups}, {tokens} as full definitions. Version ")
        }
        Language::Chinese => format!("{groups}共 {tools}，完整定义为 {tokens}。版本 "),
    };
    html! { (text) code title=(found.version) { (version) } }
}

/// That changes wait, and where they are decided on.
fn waiting(place: &Place, held: usize) -> Markup {
    let language = place.visitor.language;
    let text = counted(
        language,
        held,
        "changed tool waits for approval.",
        "changed tools wait for approval.",
        "个已变更的工具等待批准。",
    );
    notice(
        Standing::Warn,
        text,
        html! {
            (language.say("Agents keep the approved version. ", "代理继续使用已批准的版本。"))
            a href=(place.path("reviews")) { (language.say("Look at the changes", "查看变更")) }
        },
    )
}

fn filters(place: &Place, asked: &Asked, found: &BrowsePage) -> Markup {
    let language = place.visitor.language;
    let path = place.path("catalog");
    let label = language.say("Name, description or alias", "名称、描述或别名");
    let never = asked.show == NEVER;
    let shown = |show: &str| with_query(&path, &[("q", &asked.q), ("group", &asked.group), ("show", show)]);
    html! {
        form.bar method="get" action=(path) {
            input type="hidden" name="sort" value=(asked.sort);
            input type="hidden" name="show" value=(asked.show);
            input type="search" name="q" value=(asked.q) aria-label=(label) placeholder=(label) data-search maxlength="200"
                autocomplete="off" hx-get=(path) hx-trigger="input changed delay:250ms" hx-target="#tools"
                hx-include="closest form" hx-replace-url="true" hx-sync="this:replace";
            select name="group" aria-label=(language.say("Group", "分组")) data-send {
                option value="" { (language.say("All groups", "全部分组")) }
                @for group in &found.groups {
                    option value=(group.name) selected[group.name == asked.group] {
                        (group.name) " (" (number(group.tools)) ")"
                    }
                }
            }
            button.btn type="submit" { (language.say("Filter", "筛选")) }
        }
        nav.tabs aria-label=(language.say("Which tools", "哪些工具")) {
            a href=(shown("")) aria-current=[(!never).then_some("page")] {
                (language.say("All", "全部")) " " (number(found.tools))
            }
            a href=(shown(NEVER)) aria-current=[never.then_some("page")] {
                (language.say("Never found", "从未找到")) " " (number(found.unfound))
            }
        }
    }
}

fn table(place: &Place, asked: &Asked, found: &BrowsePage) -> Markup {
    let language = place.visitor.language;
    if found.rows.is_empty() {
        return html! {
            (empty(
                language.say("No tool fits", "没有符合条件的工具"),
                language.say("Try another word, or all groups.", "换一个词，或选择全部分组。"),
                Some(html! { a.btn href=(place.path("catalog")) { (language.say("Show all", "显示全部")) } }),
            ))
        };
    }
    let (by_tokens, by_found) = (asked.sort == "tokens", asked.sort == "found");
    let span = match language {
        Language::English => format!("in {BROWSED_DAYS} days"),
        Language::Chinese => format!("{BROWSED_DAYS} 天内"),
    };
    html! {
        table.stack.browse {
            thead {
                tr {
                    th scope="col" aria-sort=[(!by_tokens && !by_found).then_some("ascending")] {
                        a href=(asked.path(place, "", 1)) { (language.say("Tool", "工具")) }
                    }
                    th scope="col" { (language.say("Description", "描述")) }
                    th scope="col" { (language.say("Group", "分组")) }
                    th.number scope="col" aria-sort=[by_tokens.then_some("descending")] {
                        a href=(asked.path(place, "tokens", 1)) { (language.say("Tokens", "词元")) }
                    }
                    th.number scope="col" aria-sort=[by_found.then_some("descending")] title=(span) {
                        a href=(asked.path(place, "found", 1)) { (language.say("Found", "找到")) }
                    }
                    th.number scope="col" title=(span) { (language.say("Called", "调用")) }
                    th scope="col" { (language.say("Changed", "变更")) }
                }
            }
            tbody { @for tool in &found.rows { (row(place, asked, tool)) } }
        }
        footer.table-foot {
            span { (range(language, found)) }
            nav.pages aria-label=(language.say("Pages", "分页")) {
                @if found.page > 1 {
                    a.btn.small rel="prev" href=(asked.path(place, &asked.sort, found.page - 1)) { (language.say("Previous", "上一页")) }
                }
                @if found.page < found.pages {
                    a.btn.small rel="next" href=(asked.path(place, &asked.sort, found.page + 1)) { (language.say("Next", "下一页")) }
                }
            }
        }
    }
}

fn row(place: &Place, asked: &Asked, tool: &BrowsedTool) -> Markup {
    let language = place.visitor.language;
    let in_group = Asked { group: tool.group.clone(), ..Asked::default() };
    html! {
        tr.dim[tool.hidden] {
            th.full scope="row" {
                a.name href=(with_query(&place.path("catalog/tool"), &[("name", &tool.name)])) { (tool.name) }
                @if tool.core { " " span.tag.core { (language.say("core", "核心")) } }
                @if tool.warm > 0 {
                    " " span.tag.warm title=(language.say("Warm in so many sessions", "在多少会话中为热工具")) {
                        (language.say("warm", "热")) " " (number(tool.warm))
                    }
                }
                @if tool.held {
                    " " a.tag.warn href=(place.path("reviews")) { (language.say("change waits", "变更待批准")) }
                }
                @if tool.hidden { " " (tag(Standing::Info, language.say("not offered", "未提供"))) }
            }
            td.full {
                @if tool.description.is_empty() { (tag(Standing::Warn, language.say("no description", "无描述"))) }
                @else { span.clip { (tool.description) } }
            }
            td data-label=(language.say("Group", "分组")) {
                a href=(in_group.path(place, &asked.sort, 1)) { (tool.group) }
            }
            td.number data-label=(language.say("Tokens", "词元")) { (number(tool.tokens)) }
            td.number data-label=(language.say("Found", "找到")) {
                @if tool.used.finds > 0 { (number(tool.used.finds)) } @else { span.note { (language.say("never", "从未")) } }
            }
            td.number data-label=[(tool.used.calls > 0).then_some(language.say("Called", "调用"))] {
                @if tool.used.calls > 0 { (number(tool.used.calls)) }
            }
            td.when data-label=[tool.changed_at_ms.map(|_| language.say("Changed", "变更"))] {
                @if let Some(at) = tool.changed_at_ms { (time(at)) }
                @if tool.first_seen_ms.is_some() && tool.first_seen_ms == tool.changed_at_ms {
                    " " span.note { (language.say("new", "新增")) }
                }
            }
        }
    }
}

fn range(language: Language, found: &BrowsePage) -> String {
    let first = (found.page - 1) * CATALOG_PAGE + 1;
    let (first, last) = (number(first), number(first - 1 + found.rows.len()));
    let all = number(found.found);
    match language {
        Language::English => format!("{first} to {last} of {all}"),
        Language::Chinese => format!("第 {first} 至 {last} 个，共 {all} 个"),
    }
}

/// The last writes of this catalog.
async fn changes(service: &Toolrack, place: &Place) -> Result<Markup, Problem> {
    let (user, project) = match &place.scope {
        Scope::User(user) => (Some(user.clone()), None),
        Scope::Project(project) => (None, Some(project.clone())),
    };
    let query = AuditListQuery {
        user,
        project,
        actor: None,
        action: None,
        since_ms: None,
        cursor: None,
        limit: CHANGES_READ,
        scopes_only: true,
    };
    let log = service.audit(query).await?;
    let language = place.visitor.language;
    let writes = log.entries.iter().filter(|entry| entry.action.starts_with("catalog."));
    let writes: Vec<&AuditDocument> = writes.take(CHANGES_SHOWN).collect();
    if writes.is_empty() {
        return Ok(html! {});
    }
    let content = html! {
        ul.rows {
            @for write in writes {
                li {
                    span { (change(language, &write.summary)) }
                    span.note { (write.actor) ", " (time(write.at_ms)) " UTC" }
                }
            }
        }
    };
    Ok(card(language.say("What changed last", "最近变更"), "", &content))
}

/// Numbers and first names of what a write added, changed and removed.
fn change(language: Language, summary: &Value) -> Markup {
    let kinds = [
        ("added", language.say("added", "新增")),
        ("changed", language.say("changed", "修改")),
        ("removed", language.say("removed", "移除")),
        ("held", language.say("held for approval", "待批准")),
    ];
    let count = |kind: &str| summary.pointer(&format!("/{kind}/count")).and_then(Value::as_u64).unwrap_or(0);
    let names = |kind: &str| {
        let names = summary.pointer(&format!("/{kind}/names")).and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str).take(3);
        names.collect::<Vec<_>>().join(", ")
    };
    html! {
        @for (kind, word) in kinds.iter().filter(|(kind, _)| count(kind) > 0) {
            span.change {
                b { (number(count(kind))) " " (word) } " "
                span.note { (names(kind)) @if count(kind) > 3 { "…" } }
            }
        }
    }
}
