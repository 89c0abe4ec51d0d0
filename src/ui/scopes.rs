//! Where one begins: choosing a user or project, and the first steps on an empty server.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::language::Language;
use super::layout::{Section, global_page, kind_name};
use super::parts::{State as Standing, card, head, notice};
use super::visitor::{Visitor, base, scope_of};
use super::{go, shown, waiting};
use crate::core::id::Scope;
use crate::http::problem::Problem;
use crate::service::{Toolrack, WaitingDraft};

/// Scopes that one page shows.
const SHOWN: usize = 200;

/// To the only scope that there is, else to the choice.
pub(super) async fn start(State(service): State<Toolrack>, visitor: Visitor) -> Result<Response, Problem> {
    let scopes = service.scopes(2, |scope| visitor.covers(scope)).await?;
    Ok(match scopes.as_slice() {
        [only] => go(&format!("{}/overview", base(only))),
        _ => go("/ui/scopes"),
    })
}

/// A scope that somebody typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Typed {
    kind: String,
    id: String,
}

/// The scopes that there are, and a field for another one.
pub(super) async fn choose(
    State(service): State<Toolrack>,
    visitor: Visitor,
    Query(typed): Query<Typed>,
) -> Result<Response, Problem> {
    let asked = !typed.id.trim().is_empty();
    let scope = scope_of(&typed.kind, typed.id.trim());
    if let Some(scope) = scope.as_ref().filter(|scope| visitor.covers(scope)) {
        return Ok(go(&format!("{}/setup", base(scope))));
    }
    let fault = asked.then(|| match scope {
        Some(_) => visitor.language.say("your key does not cover it", "您的密钥不涵盖它"),
        None => visitor.language.say(
            "a name is 1 to 128 letters, digits or . _ @ : -",
            "名称为 1 到 128 个字母、数字或 . _ @ : -",
        ),
    });
    let scopes = service.scopes(SHOWN, |scope| visitor.covers(scope)).await?;
    let mut listed = Vec::with_capacity(scopes.len());
    for scope in scopes {
        let waiting = service.waiting_draft(&scope).await?;
        listed.push((scope, waiting));
    }
    let language = visitor.language;
    let title = language.say("Users and projects", "用户与项目");
    let content = html! {
        (head(title, language.say(
            "Each has its own tools and settings. An agent names a user, and a project if it works in one.",
            "每个用户和项目都有自己的工具和设置。代理指明用户，在项目中工作时也指明项目。",
        ), None))
        @if listed.is_empty() { (first_steps(language)) }
        div.columns {
            (list(language, &listed))
            (card(language.say("Set up another one", "设置新的"), "", &html! {
                form.form method="get" action="/ui/scopes" {
                    @if let Some(fault) = fault {
                        (notice(Standing::Bad, language.say("Not opened:", "无法打开："), fault))
                    }
                    fieldset.choice {
                        legend { (language.say("What is it?", "类型")) }
                        label { input type="radio" name="kind" value="users" checked; " " (language.say("User", "用户")) }
                        label { input type="radio" name="kind" value="projects"; " " (language.say("Project, shared by users", "项目（多用户共享）")) }
                    }
                    div.field {
                        label for="scope-id" { (language.say("Name", "名称")) }
                        input #scope-id type="text" name="id" value=(typed.id) required maxlength="128" autocomplete="off"
                            spellcheck="false" aria-invalid=[fault.map(|_| "true")] aria-describedby="scope-hint";
                        p.hint #scope-hint { (language.say("As your agents send it in `user` or `project`.", "与代理在 user 或 project 中发送的一致。")) }
                    }
                    button.btn.primary type="submit" { (language.say("Set up", "开始设置")) }
                }
            }))
        }
    };
    Ok(shown(global_page(&visitor, Section::Overview, title, &content)))
}

fn list(language: Language, scopes: &[(Scope, Option<WaitingDraft>)]) -> Markup {
    if scopes.is_empty() {
        return html! {};
    }
    let note = if scopes.len() == SHOWN { language.say("the first 200", "前 200 个") } else { "" };
    card(
        language.say("There already", "已有"),
        note,
        &html! {
            ul.links {
                @for (scope, waiting) in scopes {
                    li {
                        a href={(base(scope)) "/overview"} { (scope.id()) }
                        (waiting::in_list(language, scope, *waiting))
                        span.note { (kind_name(language, scope)) }
                    }
                }
            }
        },
    )
}

/// What one does first.
pub(super) fn first_steps(language: Language) -> Markup {
    let steps = [
        (
            language.say("Import", "导入"),
            language.say(
                "Paste a tool list or an mcp.json, or ask an MCP server.",
                "粘贴工具列表或 mcp.json，或连接 MCP 服务器。",
            ),
        ),
        (
            language.say("Look", "查看"),
            language.say(
                "See which tools will be hard to find, and the proposed groups.",
                "查看哪些工具不易被找到，以及建议的分组。",
            ),
        ),
        (
            language.say("Apply", "应用"),
            language.say("See the difference first; undo it later if need be.", "先看差异，之后也可撤销。"),
        ),
    ];
    html! {
        ol.first-steps {
            @for (name, about) in steps { li { b { (name) } p { (about) } } }
        }
    }
}
