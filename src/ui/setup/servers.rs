//! MCP servers that are kept in sync with the catalog: what each did last, and asking it now.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::import::server_fields;
use crate::http::problem::Problem;
use crate::service::{McpServerDocument, McpServerSpec, Toolrack};
use crate::ui::form::Form;
use crate::ui::language::{Language, number, time};
use crate::ui::layout::{Section, page, token, with_query};
use crate::ui::parts::{State as Standing, card, empty, head, notice, tag};
use crate::ui::visitor::Place;
use crate::ui::{go, shown};

/// Fields to begin the form with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Begun {
    name: String,
    url: String,
}

pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(begun): Query<Begun>,
) -> Result<Response, Problem> {
    let servers = service.mcp_servers(&place.scope).await?.servers;
    let running = servers.iter().any(|server| server.job.as_ref().is_some_and(|job| job.state == "running"));
    let list = list(&place, &servers, running);
    let known = servers.iter().find(|server| server.name == begun.name);
    let (minutes, watches) = known.map_or((0, false), |known| (known.resync_minutes, known.watch));
    if place.visitor.part {
        return Ok(shown(list));
    }
    let language = place.visitor.language;
    let title = language.say("MCP servers", "MCP 服务器");
    let content = html! {
        (head(title, language.say(
            "Their tools are read into the catalog, each server into the group of its name: by hand, by the clock, or when the server says that they changed.",
            "将其工具读入目录，每个服务器归入同名分组：手动、定时，或在服务器通知变更时。",
        ), Some(html! { a.btn href=(place.path("setup/import")) { (language.say("Back to Import", "返回导入")) } })))
        div.columns.wide-left {
            (list)
            (card(language.say("Add or change one", "新增或修改"), "", &html! {
                form.form method="post" action=(place.path("setup/servers")) {
                    (token(&place.visitor))
                    (server_fields(language, &begun.name, &begun.url))
                    div.two {
                        div.field {
                            label for="resync" { (language.say("Again every … minutes", "每隔…分钟")) }
                            input #resync type="number" name="resync_minutes" min="0" max="10080" value=(minutes) aria-describedby="resync-hint";
                            p.hint #resync-hint { (language.say("0: by hand alone.", "0：仅手动。")) }
                        }
                        fieldset.choice {
                            legend { (language.say("Listen", "监听")) }
                            label { input type="checkbox" name="watch" checked[watches]; " " (language.say("Read again when it says that its tools changed", "服务器通知工具变更时重新读取")) }
                        }
                    }
                    button.btn.primary type="submit" name="do" value="save" data-busy=(language.say("Storing…", "保存中…")) {
                        (language.say("Store and read", "保存并读取"))
                    }
                }
            }))
        }
    };
    Ok(shown(page(&place, Section::Setup, title, &content)))
}

/// Where a server is, as it was typed: an address, or a command with its arguments, which the operator has to allow. What is
/// beside it is a header of the one and a variable of the other.
pub(super) fn server_spec(form: &Form) -> Map<String, Value> {
    let (place, named, text) = (form.text("url"), form.text("header"), form.text("header_value"));
    let mut spec = Map::new();
    let is_address = place.contains("://");
    if is_address {
        spec.insert("url".to_owned(), place.into());
    } else {
        let mut words = place.split_whitespace();
        spec.insert("command".to_owned(), words.next().unwrap_or_default().into());
        spec.insert("args".to_owned(), words.collect());
    }
    if !text.is_empty() {
        let name = if named.is_empty() { "Authorization" } else { named };
        spec.insert(if is_address { "headers" } else { "env" }.to_owned(), json!({name: text}));
    }
    spec
}

/// Says of headers or variables that are stored and were not typed that they stay.
fn keep_texts(spec: &mut Map<String, Value>, known: &McpServerDocument) {
    for (key, texts) in [("headers", &known.headers), ("env", &known.env)] {
        let is_of_kind = spec.contains_key(if key == "headers" { "url" } else { "command" });
        let Some(texts) = texts.as_ref().filter(|texts| is_of_kind && !texts.is_empty()) else { continue };
        let typed = spec.entry(key).or_insert_with(|| json!({}));
        for name in texts.keys() {
            if let Value::Object(typed) = typed {
                typed.entry(name.clone()).or_insert_with(|| json!({"set": true}));
            }
        }
    }
}

/// Where a server is, as it is typed.
fn place_of(server: &McpServerDocument) -> String {
    let words = server.url.iter().chain(&server.command).chain(server.args.iter().flatten());
    words.map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// The servers; while one is being read the list asks for itself again.
fn list(place: &Place, servers: &[McpServerDocument], running: bool) -> Markup {
    let language = place.visitor.language;
    let trigger = running.then_some("every 1s");
    html! {
        section.card #servers hx-get=[trigger.map(|_| place.path("setup/servers"))] hx-trigger=[trigger] hx-swap="outerHTML" aria-live="polite" {
            div.card-head { h2 { (language.say("Servers", "服务器")) } }
            @if servers.is_empty() {
                (empty(language.say("None yet", "暂无"), language.say("Add one beside.", "请在右侧添加。"), None))
            }
            ul.rows { @for server in servers { (row(place, language, server)) } }
        }
    }
}

fn row(place: &Place, language: Language, server: &McpServerDocument) -> Markup {
    html! {
        li {
            div {
                b { (server.name) } " " (status(language, server))
                p.note.mono { (place_of(server)) }
                @for (label, texts) in [(language.say("Headers: ", "请求头："), &server.headers), (language.say("Variables: ", "变量："), &server.env)] {
                    @if let Some(texts) = texts.as_ref().filter(|texts| !texts.is_empty()) {
                        p.note { (label) (texts.keys().map(String::as_str).collect::<Vec<_>>().join(", ")) }
                    }
                }
                @if server.resync_minutes > 0 || server.watch {
                    p.note {
                        @if server.resync_minutes > 0 { (language.say("again every ", "每隔 ")) (number(server.resync_minutes as usize)) (language.say(" minutes", " 分钟")) }
                        @if server.resync_minutes > 0 && server.watch { ", " }
                        @if server.watch { (language.say("listens", "监听中")) }
                    }
                }
                @if let Some(at) = server.last_sync_at_ms {
                    p.note { (language.say("Read ", "读取于 ")) (time(at)) " UTC" }
                }
                @if let Some(fault) = server.last_status.as_ref().and_then(|status| status.fault.as_ref()) {
                    (notice(Standing::Bad, html! { code { (fault.reason) } }, &fault.detail))
                }
            }
            form.actions method="post" action=(place.path("setup/servers")) {
                (token(&place.visitor))
                input type="hidden" name="name" value=(server.name);
                a.btn.small href=(with_query(&place.path("setup/servers"), &[("name", &server.name), ("url", &place_of(server))])) { (language.say("Change", "修改")) }
                button.btn.small type="submit" name="do" value="sync" { (language.say("Read now", "立即读取")) }
                button.btn.small.danger type="submit" name="do" value="delete" { (language.say("Forget", "移除")) }
            }
        }
    }
}

fn status(language: Language, server: &McpServerDocument) -> Markup {
    if let Some(job) = server.job.as_ref().filter(|job| job.state == "running") {
        let step = match job.step {
            "connecting" => language.say("connecting", "连接中"),
            "listing" => language.say("listing", "列出工具"),
            _ => language.say("storing", "保存中"),
        };
        return html! { (tag(Standing::Info, html! { (step) ", " (number(job.tools_read)) })) };
    }
    let failed = server.last_status.as_ref().is_some_and(|status| status.fault.is_some());
    match (failed, server.last_sync_at_ms) {
        (true, _) => tag(Standing::Bad, language.say("failed", "失败")),
        (false, Some(_)) => tag(
            Standing::Ok,
            html! { (number(server.tools.max(0).unsigned_abs())) " " (language.say("tools", "个工具")) },
        ),
        (false, None) => tag(Standing::Info, language.say("not read yet", "尚未读取")),
    }
}

/// Stores a server, asks it, or forgets it. Its tools stay in the catalog until they are removed.
pub(super) async fn change(
    State(service): State<Toolrack>,
    place: Place,
    form: Form,
) -> Result<Response, Problem> {
    let (name, actor) = (form.text("name"), &place.visitor.actor);
    match form.text("do") {
        "delete" => service.delete_mcp_server(actor, &place.scope, name).await?,
        "save" => {
            let mut spec = server_spec(&form);
            let servers = service.mcp_servers(&place.scope).await?.servers;
            if let Some(known) = servers.iter().find(|server| server.name == name) {
                keep_texts(&mut spec, known);
            }
            spec.insert("watch".to_owned(), form.has("watch").into());
            let minutes = form.text("resync_minutes");
            if !minutes.is_empty() {
                let minutes = minutes.parse::<u32>().map_or_else(|_| minutes.into(), Value::from);
                spec.insert("resync_minutes".to_owned(), minutes);
            }
            let spec: McpServerSpec = serde_json::from_value(Value::Object(spec)).map_err(|error| {
                Problem::new(crate::http::problem::Code::InvalidRequest, error.to_string())
            })?;
            service.put_mcp_server(actor, &place.scope, name, spec).await?;
            drop(service.sync_mcp_server(actor, &place.scope, name, false).await?);
        }
        _ => drop(service.sync_mcp_server(actor, &place.scope, name, false).await?),
    }
    Ok(go(&place.path("setup/servers")))
}
