//! The log of changes: who changed what, and when.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::deeds::{deed, detail};
use super::keys::tabs;
use super::language::{Language, time};
use super::layout::{Section, global_page, kind_name, with_query};
use super::parts::{State as Standing, card, empty, head, notice};
use super::shown;
use super::visitor::{Visitor, base};
use crate::core::id::{Id, Scope};
use crate::core::keys::KeyId;
use crate::http::problem::Problem;
use crate::service::{AUDIT_ACTIONS, AuditDocument, AuditListQuery, AuditPage, Toolrack};

/// Changes of one page.
const PAGE: u32 = 50;

/// Scopes that somebody may choose from.
const SCOPES: usize = 200;

/// Which changes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    user: String,
    project: String,
    actor: String,
    action: String,
    after: String,
}

/// What was asked for, as far as it can be.
enum Wanted {
    Query(AuditListQuery),
    /// A key that does not cover everything has to say whose changes it wants.
    Choose,
    NoName,
}

impl Asked {
    fn wanted(&self, visitor: &Visitor) -> Result<Wanted, Problem> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let id = |text: &str| given(text).map(|text| Id::parse(&text)).transpose();
        let (Ok(user), Ok(project)) = (id(&self.user), id(&self.project)) else { return Ok(Wanted::NoName) };
        if !visitor.is_admin() && user.is_none() && project.is_none() {
            return Ok(Wanted::Choose);
        }
        if !visitor.principal.covers(user.as_ref(), project.as_ref()) {
            return Err(Problem::nothing_here());
        }
        Ok(Wanted::Query(AuditListQuery {
            user,
            project,
            actor: given(&self.actor),
            action: given(&self.action),
            since_ms: None,
            cursor: given(&self.after),
            limit: PAGE,
            scopes_only: !visitor.is_admin(),
        }))
    }

    fn next(&self, after: &str) -> String {
        let fields = [
            ("user", self.user.as_str()),
            ("project", &self.project),
            ("actor", &self.actor),
            ("action", &self.action),
            ("after", after),
        ];
        with_query("/ui/audit", &fields)
    }
}

/// A page of the log.
pub(super) async fn show(
    State(service): State<Toolrack>,
    visitor: Visitor,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let language = visitor.language;
    let found = match asked.wanted(&visitor)? {
        Wanted::Query(query) => list(&visitor, &asked, &service.audit(query).await?),
        Wanted::Choose => choose(language, &service.scopes(SCOPES, |scope| visitor.covers(scope)).await?),
        Wanted::NoName => notice(
            Standing::Bad,
            language.say("Nothing is shown:", "无法显示："),
            language.say(
                "a name is 1 to 128 letters, digits or . _ @ : -",
                "名称为 1 到 128 个字母、数字或 . _ @ : -",
            ),
        ),
    };
    let title = language.say("Audit", "审计");
    let about = language.say(
        "Who changed what. Names and numbers only, never a value: a value may be a secret.",
        "谁改了什么。只记录名称和数量，不记录值，因为值可能是机密。",
    );
    let content = html! {
        (head(title, about, None))
        (tabs(&visitor, true))
        (filters(language, &asked))
        (found)
    };
    Ok(shown(global_page(&visitor, Section::Keys, title, &content)))
}

fn filters(language: Language, asked: &Asked) -> Markup {
    let fields = [
        ("user", language.say("User", "用户"), &asked.user),
        ("project", language.say("Project", "项目"), &asked.project),
        ("actor", language.say("Changed by", "操作者"), &asked.actor),
    ];
    html! {
        form.card method="get" action="/ui/audit" {
            div.fields {
                @for (name, label, value) in fields {
                    div.field {
                        label for={"a-" (name)} { (label) }
                        input id={"a-" (name)} type="text" name=(name) value=(value) maxlength="128" autocomplete="off" spellcheck="false";
                    }
                }
                div.field {
                    label for="a-action" { (language.say("What", "操作")) }
                    select #a-action name="action" {
                        option value="" { (language.say("everything", "全部")) }
                        @for action in AUDIT_ACTIONS {
                            option value=(action) selected[action == asked.action] { (deed(language, action)) }
                        }
                    }
                }
                button.btn type="submit" { (language.say("Filter", "筛选")) }
            }
        }
    }
}

fn choose(language: Language, scopes: &[Scope]) -> Markup {
    let content = html! {
        ul.links {
            @for scope in scopes {
                li {
                    a href=(with_query("/ui/audit", &[(scope.kind(), scope.id().as_str())])) { (scope.id()) }
                    span.note { (kind_name(language, scope)) }
                }
            }
        }
    };
    card(language.say("Whose changes?", "查看谁的变更？"), "", &content)
}

fn list(visitor: &Visitor, asked: &Asked, page: &AuditPage) -> Markup {
    let language = visitor.language;
    if page.entries.is_empty() {
        let content = empty(
            language.say("No changes", "没有变更"),
            language.say("None fits, or they are too old to be kept.", "没有符合的变更，或已过保留期。"),
            None,
        );
        return html! { section.card { (content) } };
    }
    let content = html! {
        table.stack {
            thead {
                tr {
                    th scope="col" { (language.say("When", "时间")) }
                    th scope="col" { (language.say("What", "操作")) }
                    th scope="col" { (language.say("On", "对象")) }
                    th scope="col" { (language.say("Who", "操作者")) }
                    th scope="col" { (language.say("Detail", "详情")) }
                }
            }
            tbody { @for entry in &page.entries { (row(visitor, entry)) } }
        }
        @if let Some(next) = &page.next_cursor {
            footer { span {} a.btn.small rel="next" href=(asked.next(next)) { (language.say("Older", "更早")) } }
        }
    };
    card(
        language.say("Changes", "变更"),
        language.say("Latest first, times in UTC", "最新在前，时间为 UTC"),
        &content,
    )
}

fn row(visitor: &Visitor, entry: &AuditDocument) -> Markup {
    let language = visitor.language;
    let is_key = entry.actor.parse::<KeyId>().is_ok();
    let told = detail(language, &entry.summary);
    html! {
        tr {
            th.when scope="row" { (time(entry.at_ms)) }
            td { span.tag { (entry.action) } }
            td.mono.on data-label=(language.say("On", "对象")) { (subject(entry)) }
            td.mono.when data-label=(language.say("Who", "操作者")) {
                @if is_key && visitor.is_admin() { a href={"/ui/keys/" (entry.actor)} { (entry.actor) } }
                @else { (entry.actor) }
            }
            td.full {
                (deed(language, &entry.action))
                @if !told.is_empty() { (language.say(": ", "：")) (told) }
                @if let (Some(before), Some(after)) = (&entry.before, &entry.after) {
                " " span.note.mono { (version(before)) " → " (version(after)) }
            } }
        }
    }
}

/// What was changed, with the page that shows it.
fn subject(entry: &AuditDocument) -> Markup {
    let scope = match (&entry.user, &entry.project) {
        (_, Some(project)) => Some(Scope::Project(project.clone())),
        (Some(user), None) => Some(Scope::User(user.clone())),
        (None, None) => None,
    };
    html! {
        @if let Some(scope) = &scope { a href={(base(scope)) "/overview"} { (scope.id()) } }
        @if let (Some(user), Some(_)) = (&entry.user, &entry.project) { " (" (user) ")" }
        @if let Some(session) = &entry.session { " " (session) }
        @if let Some(key) = &entry.key { a href={"/ui/keys/" (key)} { (key) } }
    }
}

/// The beginning of a version, which may be a long hash.
fn version(version: &str) -> String {
    if version.is_empty() { "–".to_owned() } else { version.chars().take(8).collect() }
}
