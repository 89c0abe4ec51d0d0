//! Keys: who may ask what, and making one.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use secrecy::ExposeSecret as _;
use serde::Deserialize;

use super::form::Form;
use super::language::{Language, number, time};
use super::layout::{Section, global_page, token, with_query};
use super::parts::{State as Standing, card, empty, head, mark, notice, tag};
use super::shown;
use super::visitor::Visitor;
use crate::core::keys::{Bindings, Pattern, Role};
use crate::http::problem::Problem;
use crate::service::{Error, KeyCreated, KeyDocument, KeyListQuery, KeyStatus, Kind, NewKey, Toolrack};

/// Keys of one page.
const PAGE: u32 = 100;

const DAY_SECONDS: u64 = 86_400;

/// Lives of a new key in days; 0: it does not expire.
const LIVES: [u64; 4] = [90, 30, 365, 0];

/// From where on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    after: String,
}

/// Keys are an administrator's; nobody else learns that there are such pages.
pub(super) fn only_admins(visitor: &Visitor) -> Result<(), Problem> {
    if visitor.is_admin() { Ok(()) } else { Err(Problem::nothing_here()) }
}

/// The pages about keys and changes, and which of them this is.
pub(super) fn tabs(visitor: &Visitor, is_audit: bool) -> Markup {
    let language = visitor.language;
    html! {
        @if visitor.is_admin() {
            nav.tabs aria-label=(language.say("Keys and audit", "密钥与审计")) {
                a href="/ui/keys" aria-current=[(!is_audit).then_some("page")] { (language.say("Keys", "密钥")) }
                a href="/ui/audit" aria-current=[is_audit.then_some("page")] { (language.say("Audit", "审计")) }
            }
        }
    }
}

/// The keys that there are, with a form for another one.
pub(super) async fn show(
    State(service): State<Toolrack>,
    visitor: Visitor,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    only_admins(&visitor)?;
    Ok(shown(keys_page(&service, &visitor, &asked, &html! {}, &Form::default()).await?))
}

/// Makes a key and shows it this once.
pub(super) async fn create(
    State(service): State<Toolrack>,
    visitor: Visitor,
    form: Form,
) -> Result<Response, Problem> {
    only_admins(&visitor)?;
    let language = visitor.language;
    let made = match new_key(language, &form) {
        Ok(new) => service.create_key(&visitor.actor, new).await.map_err(|error| refusal(&error)),
        Err(fault) => Err(Some(fault)),
    };
    let (status, told, form) = match made {
        Ok(created) => (StatusCode::CREATED, shown_once(language, &created), Form::default()),
        Err(Some(fault)) => {
            let told = notice(Standing::Bad, language.say("No key was made:", "未创建密钥："), fault);
            (StatusCode::UNPROCESSABLE_ENTITY, told, form)
        }
        Err(None) => return Err(Problem::internal("a key could not be made")),
    };
    let page = keys_page(&service, &visitor, &Asked::default(), &told, &form).await?;
    Ok((status, shown(page)).into_response())
}

fn refusal(error: &Error) -> Option<String> {
    (error.kind() == Kind::Invalid).then(|| error.detail().to_owned())
}

fn new_key(language: Language, form: &Form) -> Result<NewKey, String> {
    let role = Role::parse(form.text("role"))
        .ok_or_else(|| language.say("choose a role", "请选择角色").to_owned())?;
    let patterns = |field: &str| -> Result<Vec<Pattern>, String> {
        let texts = form.text(field).split([',', '，', '、', ' ', '\n', '\t', '\r']);
        let texts = texts.map(str::trim).filter(|text| !text.is_empty());
        texts.map(|text| Pattern::parse(text).map_err(|why| format!("{field}: {why}"))).collect()
    };
    let days: u64 = form.text("days").parse().unwrap_or(LIVES[0]);
    Ok(NewKey {
        name: form.text("name").to_owned(),
        role,
        bindings: Bindings {
            users: patterns("users")?,
            projects: patterns("projects")?,
            ..Bindings::default()
        },
        expires_in_seconds: (days > 0).then(|| days.saturating_mul(DAY_SECONDS)),
    })
}

/// A key that was just made.
pub(super) fn shown_once(language: Language, created: &KeyCreated) -> Markup {
    let name = &created.document.name;
    let title = match language {
        Language::English => format!("The key “{name}” is ready. This is the only time it is shown."),
        Language::Chinese => format!("密钥“{name}”已创建，仅显示这一次。"),
    };
    html! {
        div.notice.ok role="status" {
            (mark(Standing::Ok))
            div.grow {
                strong { (title) }
                div.secret {
                    code #new-key { (created.key.expose_secret()) }
                    button.btn.small type="button" data-copy="new-key" data-copied=(language.say("Copied", "已复制")) {
                        (language.say("Copy", "复制"))
                    }
                }
            }
        }
    }
}

async fn keys_page(
    service: &Toolrack,
    visitor: &Visitor,
    asked: &Asked,
    told: &Markup,
    form: &Form,
) -> Result<Markup, Problem> {
    let language = visitor.language;
    let cursor = Some(asked.after.clone()).filter(|after| !after.is_empty());
    let list = service.list_keys(KeyListQuery { cursor, limit: PAGE }).await?;
    let title = language.say("Keys", "密钥");
    let about = language.say(
        "Who may do what. A key has a role, and the users and projects that it may act for.",
        "谁可以做什么。密钥有角色，以及可代表的用户和项目。",
    );
    let active = list.keys.iter().filter(|key| key.status == KeyStatus::Active).count();
    let note = match language {
        Language::English => format!("{} in use", number(active)),
        Language::Chinese => format!("{} 个有效", number(active)),
    };
    let content = html! {
        (head(title, about, Some(html! { a.btn.primary href="#new" { (language.say("New key", "新建密钥")) } })))
        (tabs(visitor, false))
        (told)
        (card(language.say("Keys", "密钥"), note, &html! {
            @if list.keys.is_empty() {
                (empty(
                    language.say("No stored keys", "没有已存密钥"),
                    language.say("The admin key of the settings is the only one.", "仅有设置中的管理员密钥。"),
                    None,
                ))
            } @else { (table(language, &list.keys)) }
            @if let Some(next) = &list.next_cursor {
                footer { span {} a.btn.small rel="next" href=(with_query("/ui/keys", &[("after", next)])) { (language.say("Next", "下一页")) } }
            }
        }))
        (new_form(visitor, form))
    };
    Ok(global_page(visitor, Section::Keys, title, &content))
}

fn table(language: Language, keys: &[KeyDocument]) -> Markup {
    html! {
        table.stack {
            thead {
                tr {
                    th scope="col" { (language.say("Name", "名称")) }
                    th scope="col" { (language.say("Role", "角色")) }
                    th scope="col" { (language.say("May act for", "可代表")) }
                    th scope="col" { (language.say("Last used", "最近使用")) }
                    th scope="col" { (language.say("Expires", "到期")) }
                    th scope="col" { span.quiet { (language.say("Action", "操作")) } }
                }
            }
            tbody {
                @for key in keys {
                    tr.dim[key.status != KeyStatus::Active] {
                        th.full scope="row" {
                            b { (key.name) } " " span.note.mono { "trk_" (key.id) "…" }
                            @if key.status != KeyStatus::Active { " " (status(language, key.status)) }
                        }
                        td data-label=(language.say("Role", "角色")) { span.tag { (key.role) } }
                        td.full data-label=(language.say("May act for", "可代表")) { (covers(language, key)) }
                        td.when data-label=(language.say("Last used", "最近使用")) {
                            @match key.last_used_ms { Some(at) => (time(at)), None => (language.say("never", "从未")) }
                        }
                        td.when data-label=(language.say("Expires", "到期")) {
                            @match key.expires_at_ms { Some(at) => (time(at)), None => (language.say("never", "永不")) }
                        }
                        td.number {
                            a.btn.small href={"/ui/keys/" (key.id)} aria-label={(language.say("Manage", "管理")) " " (key.name)} {
                                (language.say("Manage", "管理"))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Whether a key is accepted, as a word.
pub(super) fn status(language: Language, status: KeyStatus) -> Markup {
    match status {
        KeyStatus::Active => tag(Standing::Ok, language.say("active", "有效")),
        KeyStatus::Expired => tag(Standing::Warn, language.say("expired", "已过期")),
        KeyStatus::Revoked => tag(Standing::Bad, language.say("revoked", "已吊销")),
    }
}

/// Whom a key covers.
pub(super) fn covers(language: Language, key: &KeyDocument) -> Markup {
    let is_bound = matches!(Role::parse(&key.role), Some(Role::Setup | Role::Agent));
    html! {
        @if !is_bound { (language.say("everything of its role", "该角色的全部")) }
        @if !key.users.is_empty() { (language.say("users", "用户")) " " span.mono { (key.users.join(", ")) } }
        @if !key.users.is_empty() && !key.projects.is_empty() { "; " }
        @if !key.projects.is_empty() { (language.say("projects", "项目")) " " span.mono { (key.projects.join(", ")) } }
    }
}

fn roles(language: Language) -> [(Role, &'static str, &'static str); 4] {
    [
        (
            Role::Agent,
            language.say("Agent", "代理 agent"),
            language.say("Finds, describes and calls tools, turn by turn.", "逐轮查找、查看和调用工具。"),
        ),
        (
            Role::Setup,
            language.say("Setup", "设置 setup"),
            language.say(
                "Configs, catalogs and these pages, for what it covers.",
                "所涵盖范围的配置、目录和这些页面。",
            ),
        ),
        (
            Role::Metrics,
            language.say("Metrics", "指标 metrics"),
            language.say("Reads the metrics and nothing else.", "仅读取指标。"),
        ),
        (
            Role::Admin,
            language.say("Admin", "管理员 admin"),
            language.say("Everything, keys included.", "一切操作，包括密钥。"),
        ),
    ]
}

fn new_form(visitor: &Visitor, form: &Form) -> Markup {
    let language = visitor.language;
    let role = Role::parse(form.text("role")).unwrap_or(Role::Agent);
    let life = form.text("days").parse().unwrap_or(LIVES[0]);
    let hint = language.say(
        "Names, a beginning as team-*, or *; several with spaces between them.",
        "名称、前缀如 team-*，或 *；多个用空格分隔。",
    );
    let content = html! {
        form.form method="post" action="/ui/keys" {
            (token(visitor))
            div.field {
                label for="key-name" { (language.say("Name", "名称")) }
                input #key-name type="text" name="name" value=(form.text("name")) required maxlength="200" autocomplete="off"
                    aria-describedby="key-name-hint";
                p.hint #key-name-hint { (language.say("What uses it, for people.", "用途说明，供人阅读。")) }
            }
            fieldset {
                legend { (language.say("Role", "角色")) }
                div.options {
                    @for (value, name, about) in roles(language) {
                        label {
                            input type="radio" name="role" value=(value.as_str()) checked[value == role];
                            b { (name) } span { (about) }
                        }
                    }
                }
            }
            div.two {
                @for (field, name) in [("users", language.say("Users", "用户")), ("projects", language.say("Projects", "项目"))] {
                    div.field {
                        label for={"key-" (field)} { (name) }
                        input.mono id={"key-" (field)} type="text" name=(field) value=(form.text(field)) maxlength="20000"
                            autocomplete="off" spellcheck="false" aria-describedby="key-scope-hint";
                    }
                }
            }
            p.hint #key-scope-hint { (hint) " " (language.say("Admin and metrics take none.", "admin 和 metrics 不填。")) }
            div.field {
                label for="key-days" { (language.say("Expires", "到期")) }
                select #key-days name="days" {
                    @for days in LIVES {
                        option value=(days) selected[days == life] {
                            @match (language, days) {
                                (_, 0) => (language.say("never", "永不")),
                                (Language::English, days) => { "in " (days) " days" },
                                (Language::Chinese, days) => { (days) " 天后" },
                            }
                        }
                    }
                }
            }
            button.btn.primary type="submit" { (language.say("Make key", "创建密钥")) }
        }
    };
    html! { div #new { (card(language.say("New key", "新建密钥"), "", &content)) } }
}
