//! MCP servers that are kept in sync with the catalog: what each did last, and asking it now.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::refused::{is_mended_in_the_form, refusal};
use super::server_form::{Typed, field_name, place_of, server_fields, server_spec};
use crate::core::warning::FieldError;
use crate::http::problem::Problem;
use crate::service::{McpServerDocument, McpServerSpec, Toolrack};
use crate::ui::form::Form;
use crate::ui::language::{Language, counted, number, time};
use crate::ui::layout::{Section, page, token, with_query};
use crate::ui::parts::{State as Standing, card, empty, head, notice, tag};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;
use crate::ui::{go, shown};

/// Rows for headers that a link begins the form with: as many as a server may have.
const MOST_BEGUN: usize = 32;

/// What led here: fields to begin the form with, or a server that was forgotten.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Begun {
    name: String,
    url: String,
    /// Names of headers or variables that want a value, with commas between them.
    headers: String,
    /// Whether the address was imported without its query, or without user and password.
    left_out: String,
    forgotten: String,
}

/// The form with what stands in it.
struct Filled {
    typed: Typed,
    minutes: String,
    watches: bool,
    /// Whether the group of its name is described by what it says of itself.
    describes: bool,
    problem: Option<Problem>,
}

pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(begun): Query<Begun>,
) -> Result<Response, Problem> {
    let servers = service.mcp_servers(&place.scope).await?.servers;
    if place.visitor.part {
        return Ok(shown(list(&place, &servers)));
    }
    let known = servers.iter().find(|server| server.name == begun.name);
    let mut typed = Typed { name: begun.name, url: begun.url, ..Typed::default() }.with_kept(known);
    typed.is_url_short = begun.left_out == "1";
    let wanted = begun.headers.split(',').filter(|name| !name.is_empty()).take(MOST_BEGUN);
    let wanted: Vec<String> = wanted.map(str::to_owned).filter(|name| !typed.kept.contains(name)).collect();
    typed.headers = wanted;
    // A new one describes its group: without that a model is told of its name alone.
    let (minutes, watches, describes) = known
        .map_or((0, false, true), |known| (known.resync_minutes, known.watch, known.write_group_description));
    let filled = Filled { typed, minutes: minutes.to_string(), watches, describes, problem: None };
    Ok(servers_page(&place, &servers, &filled, &begun.forgotten))
}

fn servers_page(place: &Place, servers: &[McpServerDocument], filled: &Filled, forgotten: &str) -> Response {
    let language = place.visitor.language;
    let title = language.say("MCP servers", "MCP 服务器");
    let errors = filled.problem.iter().flat_map(Problem::errors);
    let refused: Vec<&str> = errors.map(|error| error.pointer.as_str()).collect();
    let content = html! {
        (head(title, language.say(
            "Their tools are read into the catalog, each server into the group of its name: by hand, by the clock, or when the server says that they changed. What is read is stored at once, without a draft.",
            "将其工具读入目录，每个服务器归入同名分组：手动、定时，或在服务器通知变更时。读取的内容立即保存，不经草稿。",
        ), Some(html! { a.btn href=(place.path("setup/import")) { (language.say("Back to Import", "返回导入")) } })))
        @if let Some(problem) = &filled.problem {
            (refusal(language, language.say("Not stored:", "未保存："), problem, |pointer| field_name(language, pointer)))
        }
        @if !forgotten.is_empty() { (forgotten_notice(place, forgotten)) }
        div.columns.wide-left {
            (list(place, servers))
            (card(language.say("Add or change one", "新增或修改"), "", &html! {
                form.form method="post" action=(place.path("setup/servers")) {
                    (token(&place.visitor))
                    (server_fields(language, &filled.typed, &refused))
                    div.two {
                        div.field {
                            label for="resync" { (language.say("Again every … minutes", "每隔…分钟")) }
                            input #resync type="number" name="resync_minutes" min="0" max="10080" value=(filled.minutes) aria-describedby="resync-hint"
                                aria-invalid=[refused.contains(&"/resync_minutes").then_some("true")];
                            p.hint #resync-hint { (language.say("0: by hand alone.", "0：仅手动。")) }
                        }
                        fieldset.choice {
                            legend { (language.say("Listen", "监听")) }
                            label { input type="checkbox" name="watch" checked[filled.watches]; " " (language.say("Read again when it says that its tools changed", "服务器通知工具变更时重新读取")) }
                        }
                    }
                    fieldset.choice {
                        legend { (language.say("Describe", "描述")) }
                        label {
                            input type="checkbox" name="describe" checked[filled.describes]; " "
                            (language.say("Describe its group by what the server says of itself, where the config has no description", "配置中没有描述时，用服务器的自我介绍描述其分组"))
                        }
                    }
                    button.btn.primary type="submit" name="do" value="save" data-busy=(language.say("Storing…", "保存中…")) {
                        (language.say("Store and read", "保存并读取"))
                    }
                }
            }))
        }
    };
    let mut response = shown(page(place, Section::Setup, title, &content));
    if let Some(problem) = &filled.problem {
        *response.status_mut() = problem.code().status();
    }
    response
}

fn forgotten_notice(place: &Place, name: &str) -> Markup {
    let language = place.visitor.language;
    let review = with_query(&place.path("setup/review"), &[("group", name)]);
    notice(
        Standing::Ok,
        html! { (language.say("Forgotten: ", "已移除：")) (name) },
        html! {
            (language.say(
                "It is not read any more. The tools that it gave stay in the catalog and agents keep them, until you ",
                "不再读取。其工具仍在目录中，代理继续使用，直到您",
            ))
            a href=(review) { (language.say("leave them out", "将其排除")) }
            (language.say(" or import a list without them.", "，或导入不含它们的列表。"))
        },
    )
}

/// The servers; while one is being read the list asks for itself again.
fn list(place: &Place, servers: &[McpServerDocument]) -> Markup {
    let language = place.visitor.language;
    let running = servers.iter().any(|server| server.job.as_ref().is_some_and(|job| job.state == "running"));
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
                        @if server.resync_minutes > 0 { (language.say("again every ", "每隔 ")) (counted(language, server.resync_minutes as usize, "minute", "minutes", "分钟")) }
                        @if server.resync_minutes > 0 && server.watch { ", " }
                        @if server.watch { (language.say("listens", "监听中")) }
                    }
                }
                @if let Some(at) = server.last_sync_at_ms {
                    p.note { (language.say("Read ", "读取于 ")) (time(at)) " UTC" }
                }
                @if let Some(fault) = server.last_status.as_ref().and_then(|status| status.fault.as_ref()) {
                    (notice(Standing::Bad, html! { code { (fault.reason) } }, tell(language, &fault.detail)))
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
        let waited = job.waited_ms / 1_000;
        let waited = match language {
            Language::English => format!("{} s", number(waited)),
            Language::Chinese => format!("{} 秒", number(waited)),
        };
        return html! { (tag(Standing::Info, html! { (step) ", " (counted(language, job.tools_read, "tool", "tools", "个工具")) ", " (waited) })) };
    }
    let failed = server.last_status.as_ref().is_some_and(|status| status.fault.is_some());
    match (failed, server.last_sync_at_ms) {
        (true, _) => tag(Standing::Bad, language.say("failed", "失败")),
        (false, Some(_)) => tag(
            Standing::Ok,
            counted(language, server.tools.max(0).unsigned_abs(), "tool", "tools", "个工具"),
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
    let on = place.path("setup/servers");
    match form.text("do") {
        "delete" => {
            service.delete_mcp_server(actor, &place.scope, name).await?;
            return Ok(go(&with_query(&on, &[("forgotten", name)])));
        }
        "save" => {
            let servers = service.mcp_servers(&place.scope).await?.servers;
            let known = servers.iter().find(|server| server.name == name);
            if let Err(problem) = store(&service, &place, &form, known).await {
                if !is_mended_in_the_form(&problem) {
                    return Err(problem);
                }
                let filled = Filled {
                    typed: Typed::of(&form).with_kept(known),
                    minutes: form.text("resync_minutes").to_owned(),
                    watches: form.has("watch"),
                    describes: form.has("describe"),
                    problem: Some(problem),
                };
                return Ok(servers_page(&place, &servers, &filled, ""));
            }
        }
        _ => {}
    }
    drop(service.sync_mcp_server(actor, &place.scope, name, false).await?);
    Ok(go(&on))
}

/// Stores a server as it was typed.
async fn store(
    service: &Toolrack,
    place: &Place,
    form: &Form,
    known: Option<&McpServerDocument>,
) -> Result<(), Problem> {
    let mut spec = server_spec(form, known)?;
    spec.insert("watch".to_owned(), form.has("watch").into());
    spec.insert("write_group_description".to_owned(), form.has("describe").into());
    let minutes = form.text("resync_minutes");
    if !minutes.is_empty() {
        let minutes: u32 = minutes.parse().map_err(|_| {
            let detail = "a whole number of minutes is wanted here, 0 to 10080";
            Problem::invalid(vec![FieldError::new("/resync_minutes", "wrong_type", detail)])
        })?;
        spec.insert("resync_minutes".to_owned(), minutes.into());
    }
    let spec: McpServerSpec = serde_json::from_value(Value::Object(spec)).map_err(Problem::internal)?;
    service.put_mcp_server(&place.visitor.actor, &place.scope, form.text("name"), spec).await?;
    Ok(())
}
