//! The sessions of a user, or those that a user has in a project.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::language::{Language, number, time};
use super::layout::{Section, page, with_query};
use super::parts::{State as Standing, card, empty, head, notice};
use super::shown;
use super::visitor::Place;
use crate::core::id::{Id, Scope};
use crate::http::problem::Problem;
use crate::service::{SessionList, SessionListQuery, SessionSummaryDocument, Toolrack};

/// Sessions of one page.
const PAGE: u32 = 50;

/// Whose sessions, and from where on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    user: String,
    after: String,
}

/// A page of sessions.
pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let language = place.visitor.language;
    let (user, project) = match &place.scope {
        Scope::User(user) => (Some(user.clone()), None),
        Scope::Project(project) => (Id::parse(asked.user.trim()).ok(), Some(project.clone())),
    };
    let is_asked = !asked.user.trim().is_empty();
    let covered = user.filter(|user| place.visitor.principal.covers(Some(user), project.as_ref()));
    let sessions = match &covered {
        Some(user) => {
            let query = SessionListQuery {
                user: user.clone(),
                project,
                cursor: Some(asked.after.clone()).filter(|after| !after.is_empty()),
                limit: PAGE,
                principal: place.visitor.principal.clone(),
            };
            Some(service.list_sessions(query).await?)
        }
        None => None,
    };
    let title = language.say("Sessions", "会话");
    let about = language.say(
        "A session keeps the tools that it found in its array. One that is idle for long is forgotten.",
        "会话会把找到的工具保留在数组中，长期闲置的会话会被清除。",
    );
    let content = html! {
        (head(title, about, None))
        @if matches!(place.scope, Scope::Project(_)) {
            @if is_asked && covered.is_none() {
                (notice(
                    Standing::Bad,
                    language.say("Not shown:", "无法显示："),
                    language.say("your key does not cover this user, or it is no name.", "您的密钥不涵盖此用户，或名称无效。"),
                ))
            }
            (user_form(&place, &asked.user))
        }
        @if let Some(sessions) = &sessions { (list(&place, &asked, sessions)) }
    };
    Ok(shown(page(&place, Section::Sessions, title, &content)))
}

fn user_form(place: &Place, user: &str) -> Markup {
    let language = place.visitor.language;
    html! {
        form.card.bar method="get" action=(place.path("sessions")) {
            label for="of-user" { (language.say("Sessions of user", "用户的会话")) }
            input #of-user.grow type="text" name="user" value=(user) required maxlength="128" autocomplete="off" spellcheck="false";
            button.btn type="submit" { (language.say("Show", "显示")) }
        }
    }
}

fn list(place: &Place, asked: &Asked, list: &SessionList) -> Markup {
    let language = place.visitor.language;
    if list.sessions.is_empty() {
        let content = empty(
            language.say("No sessions", "没有会话"),
            language.say(
                "One begins with the first request of an agent that names it.",
                "代理首次请求指明会话时即会开始。",
            ),
            None,
        );
        return html! { section.card { (content) } };
    }
    let of_projects = matches!(place.scope, Scope::User(_));
    let content = html! {
        table.stack {
            thead {
                tr {
                    th scope="col" { (language.say("Session", "会话")) }
                    @if of_projects { th scope="col" { (language.say("Project", "项目")) } }
                    th.number scope="col" { (language.say("Warm tools", "热工具")) }
                    th scope="col" { (language.say("Last seen", "最近活动")) }
                    th scope="col" { (language.say("Began", "开始")) }
                }
            }
            tbody { @for session in &list.sessions { (row(place, asked, session, of_projects)) } }
        }
        footer {
            span { (number(list.sessions.len())) " " (language.say("on this page", "个会话（本页）")) }
            @if let Some(next) = &list.next_cursor {
                nav.pages aria-label=(language.say("Pages", "分页")) {
                    @if !asked.after.is_empty() {
                        a.btn.small href=(with_query(&place.path("sessions"), &[("user", &asked.user)])) { (language.say("First", "首页")) }
                    }
                    a.btn.small rel="next" href=(with_query(&place.path("sessions"), &[("user", &asked.user), ("after", next)])) {
                        (language.say("Next", "下一页"))
                    }
                }
            }
        }
    };
    card(language.say("Sessions", "会话"), language.say("Times in UTC", "时间为 UTC"), &content)
}

fn row(place: &Place, asked: &Asked, session: &SessionSummaryDocument, of_projects: bool) -> Markup {
    let language: Language = place.visitor.language;
    let project = session.project.as_ref().map(Id::as_str).unwrap_or_default();
    let fields = if of_projects { [("project", project)] } else { [("user", asked.user.as_str())] };
    let path = with_query(&place.path(&format!("sessions/{}", session.session)), &fields);
    html! {
        tr {
            th.full scope="row" { a.name href=(path) { (session.session) } }
            @if of_projects { td data-label=[session.project.as_ref().map(|_| language.say("Project", "项目"))] { (project) } }
            td.number data-label=(language.say("Warm tools", "热工具")) { (number(session.warm.unsigned_abs())) }
            td data-label=(language.say("Last seen", "最近活动")) { (time(session.last_seen_ms)) }
            td data-label=(language.say("Began", "开始")) { (time(session.created_at_ms)) }
        }
    }
}
