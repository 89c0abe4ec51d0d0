//! One key: what it may do, putting another in its place, and ending it.

use std::collections::HashMap;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use super::form::Form;
use super::keys::{covers, only_admins, shown_once, status, tabs};
use super::language::{Language, time};
use super::layout::{Section, global_page, token};
use super::parts::{card, head};
use super::visitor::Visitor;
use super::{go, shown};
use crate::core::keys::KeyId;
use crate::http::problem::{Code, Problem};
use crate::service::{DEFAULT_OVERLAP_SECONDS, KeyDocument, KeyStatus, Toolrack};

/// How long the old key of a rotation may stay, in seconds.
const OVERLAPS: [u64; 4] = [DEFAULT_OVERLAP_SECONDS, 3_600, 604_800, 0];

fn id(path: &HashMap<String, String>) -> Result<KeyId, Problem> {
    let id = path.get("key").and_then(|id| id.parse().ok());
    id.ok_or_else(Problem::nothing_here)
}

/// A key with what can be done about it.
pub(super) async fn show(
    State(service): State<Toolrack>,
    visitor: Visitor,
    Path(path): Path<HashMap<String, String>>,
) -> Result<Response, Problem> {
    only_admins(&visitor)?;
    let key = service.key(id(&path)?).await?;
    Ok(shown(key_page(&visitor, &key, &html! {})))
}

/// Rotates or revokes a key.
pub(super) async fn change(
    State(service): State<Toolrack>,
    visitor: Visitor,
    Path(path): Path<HashMap<String, String>>,
    form: Form,
) -> Result<Response, Problem> {
    only_admins(&visitor)?;
    let id = id(&path)?;
    match form.text("do") {
        "revoke" => {
            service.revoke_key(&visitor.actor, id).await?;
            Ok(go("/ui/keys"))
        }
        "rotate" => {
            let overlap = form.text("overlap").parse().unwrap_or(DEFAULT_OVERLAP_SECONDS);
            let created = service.rotate_key(&visitor.actor, id, overlap).await?;
            let told = shown_once(visitor.language, &created);
            let page = key_page(&visitor, &created.document, &told);
            Ok((StatusCode::CREATED, shown(page)).into_response())
        }
        _ => Err(Problem::new(Code::InvalidRequest, "this form asks for nothing that can be done")),
    }
}

fn key_page(visitor: &Visitor, key: &KeyDocument, told: &Markup) -> Markup {
    let language = visitor.language;
    let about = html! { span.mono { "trk_" (key.id) "…" } " · " (key.role) };
    let content = html! {
        (head(&key.name, about, Some(status(language, key.status))))
        (tabs(visitor, false))
        (told)
        div.columns {
            (facts(language, key))
            @if key.status == KeyStatus::Active {
                div { (rotate(visitor, key)) (revoke(visitor, key)) }
            }
        }
    };
    global_page(visitor, Section::Keys, &key.name, &content)
}

fn facts(language: Language, key: &KeyDocument) -> Markup {
    let when =
        |at: Option<i64>, none: &str| at.map_or_else(|| none.to_owned(), |at| format!("{} UTC", time(at)));
    let (never, never_ends) = (language.say("never", "从未"), language.say("never", "永不"));
    let limits = [
        (language.say("Toolsets", "工具集"), &key.toolsets),
        (language.say("Only tools", "仅限工具"), &key.allow),
        (language.say("Not tools", "禁用工具"), &key.deny),
    ];
    let related = [
        (language.say("In place of", "替代"), key.predecessor),
        (language.say("Replaced by", "被替代为"), key.successor),
    ];
    let content = html! {
        div.body { dl.facts {
            dt { (language.say("May act for", "可代表")) } dd { (covers(language, key)) }
            @for (name, list) in limits.iter().filter(|(_, list)| !list.is_empty()) {
                dt { (name) } dd { ul.chips { @for entry in list.iter().take(100) { li { (entry) } } } }
            }
            dt { (language.say("Made", "创建")) } dd { (time(key.created_at_ms)) " UTC" }
            dt { (language.say("Last used", "最近使用")) } dd { (when(key.last_used_ms, never)) }
            dt { (language.say("Expires", "到期")) } dd { (when(key.expires_at_ms, never_ends)) }
            @if let Some(at) = key.revoked_at_ms { dt { (language.say("Revoked", "吊销")) } dd { (time(at)) " UTC" } }
            @for (name, id) in related {
                @if let Some(id) = id { dt { (name) } dd { a.mono href={"/ui/keys/" (id)} { (id) } } }
            }
            dt { (language.say("Its changes", "其变更")) }
            dd { a href={"/ui/audit?actor=" (key.id)} { (language.say("in the audit", "查看审计")) } }
        } }
    };
    card(language.say("Facts", "信息"), "", &content)
}

fn rotate(visitor: &Visitor, key: &KeyDocument) -> Markup {
    let language = visitor.language;
    let content = html! {
        form.form method="post" action={"/ui/keys/" (key.id)} {
            (token(visitor))
            p.note { (language.say("Makes a new key of the same rights; both work until the old one ends.", "创建权限相同的新密钥；旧密钥结束前两者均有效。")) }
            div.field {
                label for="overlap" { (language.say("The old key ends", "旧密钥结束于")) }
                select #overlap name="overlap" {
                    @for seconds in OVERLAPS {
                        option value=(seconds) {
                            (match seconds {
                                0 => language.say("at once", "立即"),
                                3_600 => language.say("in an hour", "1 小时后"),
                                604_800 => language.say("in a week", "1 周后"),
                                _ => language.say("in a day", "1 天后"),
                            })
                        }
                    }
                }
            }
            button.btn type="submit" name="do" value="rotate" { (language.say("Rotate", "轮换")) }
        }
    };
    card(language.say("Rotate", "轮换"), "", &content)
}

fn revoke(visitor: &Visitor, key: &KeyDocument) -> Markup {
    let language = visitor.language;
    let content = html! {
        details.body {
            summary { (language.say("Revoke this key…", "吊销此密钥…")) }
            form.form method="post" action={"/ui/keys/" (key.id)} {
                (token(visitor))
                p { (language.say("The next request with it is refused, and browsers that signed in with it are signed out. This cannot be undone.", "此后使用该密钥的请求将被拒绝，以其登录的浏览器也会退出。此操作无法撤销。")) }
                button.btn.danger type="submit" name="do" value="revoke" { (language.say("Revoke now", "立即吊销")) }
            }
        }
    };
    card(language.say("Revoke", "吊销"), "", &content)
}
