//! One session: what is warm in it, what it saved, and what can be done about it.

use std::collections::HashMap;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::form::Form;
use super::language::{Language, number, percent, time};
use super::layout::{Section, page, token, with_query};
use super::parts::{State as Standing, asked_first, card, empty, figure, head, notice, tag, warnings};
use super::translate::tell;
use super::visitor::Place;
use super::{go, shown};
use crate::core::id::{Id, Scope};
use crate::http::problem::{Code, Problem};
use crate::service::{Caller, LedgerDocument, SessionDocument, Toolrack, WarmAction, WarmDocument};

/// Slots that are drawn, as many as a warm set can have.
const MAX_SLOTS: usize = 64;

/// What the path does not say of a session: its project, or whose it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    user: String,
    project: String,
}

/// The session that a path and a query name, if this person may see it.
fn caller(place: &Place, path: &HashMap<String, String>, asked: &Asked) -> Result<Caller, Problem> {
    let id = |text: &str| Id::parse(text).map_err(|_| Problem::nothing_here());
    let session = id(path.get("session").map(String::as_str).unwrap_or_default())?;
    let (user, project) = match &place.scope {
        Scope::User(user) if asked.project.is_empty() => (user.clone(), None),
        Scope::User(user) => (user.clone(), Some(id(&asked.project)?)),
        Scope::Project(project) => (id(&asked.user)?, Some(project.clone())),
    };
    let principal = &place.visitor.principal;
    if !principal.covers(Some(&user), project.as_ref()) {
        return Err(Problem::nothing_here());
    }
    let allowances = principal.allowances().cloned();
    Ok(Caller { user, project, session: Some(session), limits: principal.limits(), allowances })
}

/// The page of a session.
fn address(place: &Place, session: &Id, asked: &Asked) -> String {
    let fields = [("user", asked.user.as_str()), ("project", &asked.project)];
    with_query(&place.path(&format!("sessions/{session}")), &fields)
}

/// What a session has and did.
pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Path(path): Path<HashMap<String, String>>,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let caller = caller(&place, &path, &asked)?;
    if !service.has_session(&caller).await? {
        return Ok(unknown(&place, &asked, &caller));
    }
    let document = service.session_document(&caller).await?;
    let config = service.effective_config(Some(caller.user.clone()), caller.project.clone()).await?.config;
    let setting =
        |key: &str| config.get(key).and_then(|entry| entry.get("value")).cloned().unwrap_or_default();
    let most = setting("max_warm_tools").as_u64().unwrap_or_default();
    let language = place.visitor.language;
    let here = address(&place, &document.session, &asked);
    let title = document.session.to_string();
    let content = html! {
        (head(&title, about(&place, &asked, &document), None))
        @if let Some(told) = &place.told { (told) }
        (warnings(language, &document.warnings))
        (slots(&place, &here, &document, usize::try_from(most).unwrap_or(MAX_SLOTS)))
        div.columns.wide-left {
            (ledger(language, &document.ledger))
            div {
                (facts(language, &document, &setting("warm_policy")))
                (dangers(&place, &here))
            }
        }
    };
    Ok(shown(page(&place, Section::Sessions, &title, &content)))
}

/// What is shown in the place of a session that was never begun, or is gone.
fn unknown(place: &Place, asked: &Asked, caller: &Caller) -> Response {
    let language = place.visitor.language;
    let list = with_query(&place.path("sessions"), &[("user", &asked.user)]);
    let name = caller.session.as_ref().map_or("", Id::as_str);
    let title = language.say("There is no such session", "没有此会话");
    let content = html! {
        (head(title, html! { code { (name) } }, None))
        section.card {
            (empty(
                language.say("Nothing is kept under this name", "此名称下没有内容"),
                language.say(
                    "No agent has begun it yet, it was deleted, or it was idle for so long that it was forgotten. An agent begins a session by naming it.",
                    "尚无代理开始此会话，或者它已被删除，或因长期闲置而被清除。代理使用该名称时会话即开始。",
                ),
                Some(html! { a.btn.primary href=(list) { (language.say("To the sessions", "返回会话列表")) } }),
            ))
        }
    };
    let mut response = shown(page(place, Section::Sessions, title, &content));
    *response.status_mut() = Code::NotFound.status();
    response
}

fn about(place: &Place, asked: &Asked, document: &SessionDocument) -> Markup {
    let language = place.visitor.language;
    let list = with_query(&place.path("sessions"), &[("user", &asked.user)]);
    let (began, seen) = (time(document.created_at_ms), time(document.last_seen_ms));
    let text = match language {
        Language::English => format!("began {began}, last seen {seen} UTC"),
        Language::Chinese => format!("始于 {began}，最近活动 {seen} UTC"),
    };
    html! {
        a href=(list) { (language.say("Sessions", "会话")) } " · " (document.user)
        @if let Some(project) = &document.project { " / " (project) }
        " · " (text)
    }
}

fn slots(place: &Place, here: &str, document: &SessionDocument, most: usize) -> Markup {
    let language = place.visitor.language;
    let (warm, most) = (document.warm.len(), most.min(MAX_SLOTS));
    let note = match language {
        Language::English => format!(
            "{warm} of {most}. When it is full, the tool that was used longest ago leaves first. Pinned tools stay."
        ),
        Language::Chinese => format!("{warm}/{most}。满时最久未用的工具先离开，固定的工具保留。"),
    };
    let content = html! {
        div.body {
            ol.slots {
                @for tool in &document.warm { (slot(place, here, tool)) }
                @for _ in warm..most { li.free { (language.say("free", "空位")) } }
            }
            form.bar.flat method="post" action=(here) {
                (token(&place.visitor))
                label for="pin-name" { (language.say("Pin a tool", "固定工具")) }
                input #pin-name.grow.mono type="text" name="name" required maxlength="256" autocomplete="off" spellcheck="false";
                button.btn type="submit" name="do" value="pin" { (language.say("Pin", "固定")) }
            }
        }
    };
    card(language.say("Warm set", "热集"), note, &content)
}

fn slot(place: &Place, here: &str, tool: &WarmDocument) -> Markup {
    let language = place.visitor.language;
    let sheet = with_query(&place.path("catalog/tool"), &[("name", &tool.name)]);
    let (pin, pin_word) = if tool.pinned {
        ("unpin", language.say("Unpin", "取消固定"))
    } else {
        ("pin", language.say("Pin", "固定"))
    };
    html! {
        li {
            a.name href=(sheet) { (tool.name) }
            span.note { (tool.group) ", " (language.say("used", "使用于")) " " (time(tool.last_used_ms)) }
            @if tool.pinned || tool.pending {
                span {
                    @if tool.pinned { (tag(Standing::Ok, language.say("pinned", "已固定"))) }
                    @if tool.pending { (tag(Standing::Warn, language.say("waits for an epoch", "等待下一轮"))) }
                }
            }
            form method="post" action=(here) {
                (token(&place.visitor))
                input type="hidden" name="name" value=(tool.name);
                button.link type="submit" name="do" value=(pin) aria-label={(pin_word) " " (tool.name)} { (pin_word) }
                " "
                button.link type="submit" name="do" value="release" aria-label={(language.say("Release", "释放")) " " (tool.name)} {
                    (language.say("Release", "释放"))
                }
            }
        }
    }
}

fn ledger(language: Language, ledger: &LedgerDocument) -> Markup {
    let saved = ledger.saved.unsigned_abs();
    let sign = if ledger.saved < 0 { "−" } else { "" };
    let part = percent(if ledger.saved < 0 { 0 } else { saved }, ledger.tokens_all);
    let rest = language.say("tokens", "词元");
    let content = html! {
        div.body {
            p.big-figure { (sign) (number(saved)) " " small { (rest) ", " (part) } }
            p.note {
                (language.say(
                    "What all tools in every call would have cost, less what was sent and what answers of searches and descriptions cost.",
                    "每次调用都发送全部工具的成本，减去实际发送以及搜索和说明应答的成本。",
                ))
            }
        }
        dl.figures {
            (figure(language.say("All tools, every call", "每次发送全部工具"), number(ledger.tokens_all), rest))
            (figure(language.say("Sent", "已发送"), number(ledger.tokens_sent), language.say("arrays and listings", "数组与清单")))
            (figure(language.say("Answers", "应答"), number(ledger.tokens_answers), language.say("searches, descriptions", "搜索与说明")))
            (figure(language.say("Model calls", "模型调用"), number(ledger.assemblies), language.say("assemblies", "组装次数")))
            (figure(language.say("Searches", "搜索"), number(ledger.searches), ""))
            (figure(language.say("Descriptions", "查看说明"), number(ledger.describes), ""))
            (figure(language.say("Calls through the bridge", "桥接调用"), number(ledger.calls), ""))
            (figure(
                language.say("Cache breaks", "缓存失效"), number(ledger.cache_breaks),
                language.say("prompt read anew", "提示被重新读取"),
            ))
        }
    };
    card(language.say("Saved, net", "净节省"), "", &content)
}

fn facts(language: Language, document: &SessionDocument, policy: &Value) -> Markup {
    let none = language.say("not assembled yet", "尚未组装");
    let selection = document.selection.as_ref().map(|selection| {
        let parts = [
            (language.say("toolsets", "工具集"), selection.toolsets.as_ref().map_or(0, Vec::len)),
            (language.say("allowed", "允许"), selection.allow.len()),
            (language.say("denied", "禁止"), selection.deny.len()),
        ];
        let parts =
            parts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}"));
        let text = parts.collect::<Vec<_>>().join(", ");
        if text.is_empty() { language.say("none, all tools", "无，全部工具").to_owned() } else { text }
    });
    let yes = |is: Option<bool>| is.filter(|is| *is).map(|_| language.say("yes", "是"));
    let content = html! {
        div.body { dl.facts {
            dt { (language.say("Format", "格式")) } dd { (document.format.as_deref().unwrap_or(none)) }
            @if let Some(profile) = &document.profile { dt { (language.say("Profile", "提供商配置")) } dd { (profile) } }
            @if let Some(exposure) = &document.exposure { dt { (language.say("Deferred tools", "延迟工具")) } dd { (exposure) } }
            @if let Some(window) = document.context_window {
                dt { (language.say("Context window", "上下文窗口")) } dd { (number(window)) }
            }
            @if let Some(selection) = &selection { dt { (language.say("Own limits", "自身限制")) } dd { (selection) } }
            @if let Some(yes) = yes(document.strict) { dt { (language.say("Strict", "严格模式")) } dd { (yes) } }
            @if let Some(yes) = yes(document.openapi) { dt { "OpenAPI" } dd { (yes) } }
            @if document.tools_ref.is_some() {
                dt { (language.say("Tools", "工具")) } dd { (language.say("live, sent by the agent", "由代理实时发送")) }
            }
            dt { (language.say("Warm policy", "热集策略")) } dd { (policy.as_str().unwrap_or("–")) }
        } }
    };
    card(language.say("Settings", "设置"), "", &content)
}

fn dangers(place: &Place, here: &str) -> Markup {
    let language = place.visitor.language;
    let rows = [
        (
            "reset",
            language.say("Reset", "重置"),
            language.say(
                "Empties the warm set, pins included. The next array is as at the start.",
                "清空热集和固定的工具，下一个数组恢复到初始状态。",
            ),
        ),
        (
            "delete",
            language.say("Delete", "删除"),
            language.say(
                "Forgets the session with its counters. Its id starts empty again.",
                "删除会话及其计数，该 ID 将重新开始。",
            ),
        ),
    ];
    let content = html! {
        ul.rows {
            @for (deed, word, about) in rows {
                li {
                    span.note { (about) }
                    form method="post" action=(here) {
                        (token(&place.visitor))
                        @let button = |class: &str, word: &str| html! {
                            button class={ "btn small" (class) } type="submit" name="do" value=(deed) { (word) }
                        };
                        @if deed == "delete" {
                            (asked_first("small", word, language.say("It cannot be brought back.", "无法恢复。"),
                                &button(" danger", language.say("Yes, delete it", "确认删除"))))
                        } @else { (button(" danger", word)) }
                    }
                }
            }
        }
    };
    card(language.say("Start anew", "重新开始"), "", &content)
}

/// Does what a form asks for.
pub(super) async fn change(
    State(service): State<Toolrack>,
    place: Place,
    Path(path): Path<HashMap<String, String>>,
    Query(asked): Query<Asked>,
    form: Form,
) -> Result<Response, Problem> {
    let caller = caller(&place, &path, &asked)?;
    let key = caller.session_key().ok_or_else(Problem::nothing_here)?;
    let actor = &place.visitor.actor;
    let action = match form.text("do") {
        "reset" => {
            service.reset_session(actor, &caller).await?;
            None
        }
        "delete" => {
            service.delete_session(actor, &key).await?;
            return Ok(go(&with_query(&place.path("sessions"), &[("user", &asked.user)])));
        }
        "pin" => Some(WarmAction::Pin),
        "unpin" => Some(WarmAction::Unpin),
        "release" => Some(WarmAction::Release),
        _ => return Err(Problem::new(Code::InvalidRequest, "this form asks for nothing that can be done")),
    };
    if let Some(action) = action {
        let changed = service.change_warm(&caller, action, &[form.text("name").to_owned()]).await;
        if let Err(problem) = changed.map_err(Problem::from) {
            return not_changed(service, place, path, asked, problem).await;
        }
    }
    Ok(go(&address(&place, &key.session, &asked)))
}

/// The page again, with why nothing was changed, such as a name that means no tool.
async fn not_changed(
    service: Toolrack,
    place: Place,
    path: HashMap<String, String>,
    asked: Asked,
    problem: Problem,
) -> Result<Response, Problem> {
    let [error] = problem.errors() else { return Err(problem) };
    let language = place.visitor.language;
    let title = language.say("Nothing was changed:", "未作更改：");
    let told = Some(notice(Standing::Bad, title, tell(language, &error.detail)));
    let status = problem.code().status();
    let place = Place { told, ..place };
    let mut response = show(State(service), place, Path(path), Query(asked)).await?;
    *response.status_mut() = status;
    Ok(response)
}
