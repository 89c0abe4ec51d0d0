//! Step one: tools and settings from a text, a file or an MCP server, into the draft.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::refused::{GIVEN_BACK_BYTES, is_mended_in_the_form, refusal, setting_name};
use super::server_form::{Typed, field_name, left_out_of_address, line, server_fields, server_spec};
use super::taken::{stored_tools, take, take_server};
use super::told::{self, Told};
use super::{DraftUpload, Step, made_for, step_page, store};
use crate::core::secret_args::masked;
use crate::http::layers::HttpContext;
use crate::http::problem::{Code, Problem};
use crate::service::{
    ImportRequest, ImportSource, McpServerSpec, McpToolsRequest, NOTHING_IMPORTED, SetupDraft, Toolrack,
};
use crate::ui::form::Form;
use crate::ui::go;
use crate::ui::language::{Language, counted};
use crate::ui::parts::{State as Standing, card, notice};
use crate::ui::skill;
use crate::ui::translate::tell;
use crate::ui::visitor::Place;

/// How long a server may take to list its tools for this page: somebody waits before it. Servers that are kept in sync have
/// `mcp.timeout_ms`.
const LONGEST_LOOK: Duration = Duration::from_secs(30);

/// What was read just now.
enum Outcome {
    Nothing,
    /// What was read holds no tool.
    Settings,
    /// `told`: what of it was set aside.
    Refused {
        title: &'static str,
        problem: Problem,
        told: Option<Told>,
    },
    Fault {
        reason: String,
        detail: String,
    },
}

impl Outcome {
    fn refused(title: &'static str, problem: Problem) -> Result<Self, Problem> {
        if is_mended_in_the_form(&problem) {
            Ok(Self::Refused { title, problem, told: None })
        } else {
            Err(problem)
        }
    }

    /// Pointers of what was not taken.
    fn refused_at(&self) -> Vec<&str> {
        match self {
            Self::Refused { problem, .. } => {
                problem.errors().iter().map(|error| error.pointer.as_str()).collect()
            }
            _ => Vec::new(),
        }
    }
}

pub(super) async fn show(State(service): State<Toolrack>, place: Place) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    let stored = stored_tools(&service, &place).await?.len();
    Ok(import_page(&place, &draft, stored, &Outcome::Nothing, &Form::default()))
}

/// Reads what was sent, and keeps it in the draft.
pub(super) async fn read(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    place: Place,
    DraftUpload { form, fault }: DraftUpload,
) -> Result<Response, Problem> {
    let mut draft = service.draft(&place.scope).await?;
    let mut outcome = match fault {
        Some(fault) => Outcome::refused(not_read(place.visitor.language), fault)?,
        None if form.text("do") == "mcp" => {
            from_server(&service, &context, &place, &form, &mut draft).await?
        }
        None => from_texts(&service, &place, &form, &mut draft).await?,
    };
    if matches!(outcome, Outcome::Nothing | Outcome::Settings) {
        if let Some(problem) = store(&service, &place, &mut draft).await? {
            let title = place.visitor.language.say("Not kept:", "未保存：");
            outcome = Outcome::refused(title, problem)?;
            draft = service.draft(&place.scope).await?;
        } else {
            service.prepare_draft(&place.scope, place.caller());
            if matches!(outcome, Outcome::Nothing) {
                return Ok(go(&place.path(Step::Review.path())));
            }
        }
    }
    let typed = if matches!(outcome, Outcome::Settings) { Form::default() } else { form };
    let stored = stored_tools(&service, &place).await?.len();
    Ok(import_page(&place, &draft, stored, &outcome, &typed))
}

fn not_read(language: Language) -> &'static str {
    language.say("Not read:", "无法读取：")
}

/// What was sent to be read: the name of each file, nothing for what was pasted, with its text.
fn texts(form: &Form) -> impl Iterator<Item = (String, &str)> {
    let sent = ["text", "file", "more"].into_iter().flat_map(|name| form.sent(name));
    let is_chosen = |file: Option<&str>| file.is_some_and(|file| !file.is_empty());
    sent.filter(move |(file, text)| is_chosen(*file) || !text.trim().is_empty())
        .map(|(file, text)| (file.unwrap_or_default().to_owned(), text))
}

async fn from_texts(
    service: &Toolrack,
    place: &Place,
    form: &Form,
    draft: &mut SetupDraft,
) -> Result<Outcome, Problem> {
    let language = place.visitor.language;
    let (names, texts): (Vec<String>, Vec<&str>) = texts(form).unzip();
    let sources: Vec<ImportSource> =
        texts.into_iter().map(|text| ImportSource::Text(text.to_owned())).collect();
    let group = Some(form.text("group").to_owned()).filter(|group| !group.is_empty());
    let title = not_read(language);
    if sources.is_empty() {
        let detail = language.say("Paste a text or choose a file.", "请粘贴文本或选择文件。");
        return Outcome::refused(title, Problem::new(Code::InvalidRequest, detail));
    }
    let read = match service.read_import(ImportRequest { sources, kind: None, group }).await {
        Ok(read) => read,
        Err(error) => return Outcome::refused(title, Problem::from(error)),
    };
    let mut answer = read.answer()?;
    if let Some(at) = answer.warnings.iter().position(|warning| warning.code == NOTHING_IMPORTED) {
        let problem = Problem::new(Code::InvalidRequest, answer.warnings.remove(at).detail);
        let told = Some(Told::new(&names, &answer.warnings, &answer.quarantined));
        return Ok(Outcome::Refused { title, problem, told });
    }
    let has_tools = !answer.tools.is_empty();
    take(service, place, draft, read, &names, form.text("how") == "add").await?;
    Ok(if has_tools { Outcome::Nothing } else { Outcome::Settings })
}

/// How long a server may take, at most as long as a request may.
fn longest_look(request_timeout: Duration) -> Duration {
    LONGEST_LOOK.min(request_timeout - request_timeout / 20)
}

async fn from_server(
    service: &Toolrack,
    context: &HttpContext,
    place: &Place,
    form: &Form,
    draft: &mut SetupDraft,
) -> Result<Outcome, Problem> {
    let language = place.visitor.language;
    let title = language.say("Not asked:", "未连接：");
    let name = form.text("name");
    let servers = service.mcp_servers(&place.scope).await?.servers;
    let spec = match server_spec(form, servers.iter().find(|server| server.name == name)) {
        Ok(spec) => Value::Object(spec),
        Err(problem) => return Outcome::refused(title, problem),
    };
    let server: McpServerSpec = serde_json::from_value(spec).map_err(Problem::internal)?;
    let within = longest_look(context.limits().request_timeout);
    let request = McpToolsRequest { scope: place.scope.clone(), name: name.to_owned(), server, within };
    let answer = match service.mcp_tools(request).await {
        Ok(answer) => answer,
        Err(error) => return Outcome::refused(title, Problem::from(error)),
    };
    if let Some(fault) = answer.fault {
        let mut detail = tell(language, &fault.detail).into_owned();
        if fault.reason == "timeout" {
            let waits = language.say(
                "This page does not wait longer; servers kept in sync do.",
                "本页面不会等待更久；保持同步的服务器会等待更久。",
            );
            detail = format!("{detail} {waits}");
        }
        return Ok(Outcome::Fault { reason: fault.reason, detail });
    }
    take_server(service, place, draft, name, answer).await?;
    Ok(Outcome::Nothing)
}

/// What the page calls the field at a pointer of a refusal.
fn field(language: Language, form: &Form, pointer: &str) -> Option<String> {
    if pointer == "/group" {
        return Some(group_name(language).to_owned());
    }
    let Some(text) = pointer.strip_prefix("/texts/") else {
        return field_name(language, pointer).or_else(|| setting_name(language, pointer));
    };
    let (at, inside) = text.find('/').map_or((text, ""), |end| text.split_at(end));
    let (name, _) = texts(form).nth(at.parse().ok()?)?;
    let name = if name.is_empty() { language.say("Paste", "粘贴").to_owned() } else { name };
    Some(if inside.is_empty() { name } else { format!("{name} {inside}") })
}

fn import_page(
    place: &Place,
    draft: &SetupDraft,
    stored: usize,
    outcome: &Outcome,
    typed: &Form,
) -> Response {
    let language = place.visitor.language;
    let has_tools = stored > 0 || draft.tools.is_some();
    let content = html! {
        @match outcome {
            Outcome::Nothing => {}
            Outcome::Settings => (notice(Standing::Ok, language.say("Read.", "已读取。"),
                language.say("Settings or servers came into the draft, and no tools. What was told of them stands below.", "设置或服务器已进入草稿，其中没有工具。相关说明见下。"))),
            Outcome::Refused { title, problem, told } => {
                (refusal(language, title, problem, |pointer| field(language, typed, pointer)))
                @if let Some(told) = told { (told::folds(language, std::slice::from_ref(told))) }
            }
            Outcome::Fault { reason, detail } => (notice(Standing::Bad, html! { code { (reason) } }, detail)),
        }
        (present(place, draft, stored))
        div.columns {
            form.card.form method="post" action=(place.path(Step::Import.path())) enctype="multipart/form-data" {
                (made_for(place, draft))
                (text_fields(language, has_tools, typed, outcome))
            }
            div {
                (server_form(place, draft, typed, outcome))
                (imported_servers(place, draft))
            }
        }
        (skill::about(place))
    };
    let about = language.say(
        "A tool list in any common format, an mcp.json, another program's settings, or a live MCP server. It goes into a draft; agents get none of it before you apply.",
        "任何常见格式的工具列表、mcp.json、其他程序的设置，或在线 MCP 服务器。内容进入草稿，应用之前代理不会获得。",
    );
    let on = has_tools.then(|| html! {
        a.btn.primary href=(place.path(Step::Review.path())) { (language.say("Continue to Review", "继续：检查")) }
    });
    step_page(
        place,
        Step::Import,
        draft,
        (language.say("Import tools", "导入工具"), about),
        &content,
        on.or(Some(html! {})),
    )
}

/// What the draft holds so far, and what was told of each import.
fn present(place: &Place, draft: &SetupDraft, stored: usize) -> Markup {
    let language = place.visitor.language;
    let told = told::all(draft);
    let set_aside = told::set_aside(&told);
    let text = match &draft.tools {
        Some(tools) => html! {
            b { (counted(language, tools.len(), "tool", "tools", "个工具")) } (language.say(" in the draft", "在草稿中"))
            @if set_aside > 0 { (language.say(", ", "，")) b { (counted(language, set_aside, "entry", "entries", "个条目")) } (language.say(" set aside", "被搁置")) }
        },
        None if stored > 0 => html! {
            b { (counted(language, stored, "tool is", "tools are", "个工具")) } (language.say(" stored; you can go on with what is there.", "已保存，可直接继续。"))
        },
        None => html! { (language.say("No tools yet.", "尚无工具。")) },
    };
    html! {
        (notice(Standing::Info, "", text))
        (told::folds(language, &told))
    }
}

fn group_name(language: Language) -> &'static str {
    language.say("Group of tools that name none", "未指定分组的工具归入")
}

fn text_fields(language: Language, has_tools: bool, typed: &Form, outcome: &Outcome) -> Markup {
    let refused = outcome.refused_at();
    let text = typed.sent("text").map(|(_, text)| text).next().unwrap_or_default();
    let given_back = if text.len() <= GIVEN_BACK_BYTES { text } else { "" };
    let files: Vec<&str> =
        ["file", "more"].into_iter().flat_map(|name| typed.sent(name)).filter_map(|(file, _)| file).collect();
    let has_files = files.iter().any(|name| !name.is_empty());
    let replaces = typed.text("how") == "replace";
    html! {
        div.field {
            label for="text" { (language.say("Paste", "粘贴")) }
            textarea #text.mono name="text" rows="10" spellcheck="false" aria-describedby="text-hint"
                placeholder=r#"{"tools": [...]}   {"mcpServers": {...}}   tools: tool_search: ..."# {
                // A browser takes the first line break of a text area away.
                @if !given_back.is_empty() { "\n" (given_back) }
            }
            @if given_back.len() < text.len() {
                p.hint { (language.say("The text was too long to stand here again. Paste it again, or choose it as a file.", "文本过长，无法再次显示。请重新粘贴或作为文件选择。")) }
            }
            p.hint #text-hint {
                (language.say(
                    "JSON, JSON with comments, JSON Lines or YAML: OpenAI, Anthropic, Gemini, Bedrock or MCP tools; dsh-tool-search.json; Hermes' tools.tool_search; mcp.json of Claude Desktop, Cursor or VS Code.",
                    "JSON（可含注释）、JSON Lines 或 YAML：OpenAI、Anthropic、Gemini、Bedrock 或 MCP 工具；dsh-tool-search.json；Hermes 的 tools.tool_search；Claude Desktop、Cursor 或 VS Code 的 mcp.json。",
                ))
            }
        }
        div.field {
            label for="file" { (language.say("Or files", "或上传文件")) }
            input #file type="file" name="file" multiple accept=".json,.jsonl,.jsonc,.yaml,.yml,application/json,text/plain";
            @if has_files {
                p.hint { (language.say("Choose again: ", "请重新选择：")) (files.join(", ")) }
            }
        }
        div.field {
            label for="group" { (group_name(language)) }
            input #group type="text" name="group" value=(typed.text("group")) maxlength="128" autocomplete="off" placeholder="other"
                aria-invalid=[refused.contains(&"/group").then_some("true")];
        }
        @if has_tools {
            fieldset.choice {
                legend { (language.say("And the tools that are there?", "已有的工具怎么办？")) }
                label { input type="radio" name="how" value="add" checked[!replaces]; " " (language.say("Keep them; the same names are replaced", "保留，同名的替换")) }
                label { input type="radio" name="how" value="replace" checked[replaces]; " " (language.say("Replace them all", "全部替换")) }
            }
        }
        button.btn.primary type="submit" name="do" value="text" data-busy=(language.say("Reading… # s", "读取中… # 秒")) {
            (language.say("Read", "读取"))
        }
    }
}

fn server_form(place: &Place, draft: &SetupDraft, form: &Form, outcome: &Outcome) -> Markup {
    let language = place.visitor.language;
    let typed = if form.text("do") == "mcp" { Typed::of(form) } else { Typed::default() };
    let refused = outcome.refused_at();
    let most = LONGEST_LOOK.as_secs();
    let takes = match language {
        Language::English => format!(
            "It takes {most} seconds at most, and nothing of it is stored before you apply. Servers kept in sync store what they read at once."
        ),
        Language::Chinese => {
            format!("最多 {most} 秒；应用之前不会保存。保持同步的服务器会立即保存读取的内容。")
        }
    };
    let busy = language.say("Asking… # s of at most ", "连接中… # 秒，最多 ");
    card(
        language.say("Ask an MCP server", "连接 MCP 服务器"),
        html! {
            a href=(place.path("setup/servers")) { (language.say("Servers kept in sync", "保持同步的服务器")) }
        },
        &html! {
            form.form method="post" action=(place.path(Step::Import.path())) {
                (made_for(place, draft))
                (server_fields(language, &typed, &refused))
                div.actions {
                    button.btn type="submit" name="do" value="mcp" data-busy={ (busy) (most) (language.say(" s", " 秒")) } {
                        (language.say("List its tools", "列出工具"))
                    }
                    a.btn href=(place.path(Step::Import.path())) data-stop hidden { (language.say("Stop", "停止")) }
                }
                p.hint { (takes) }
            }
        },
    )
}

/// The servers of an mcp.json that was read: their tools are not in it.
fn imported_servers(place: &Place, draft: &SetupDraft) -> Markup {
    let language = place.visitor.language;
    let servers: Vec<ServerShown> =
        draft.servers.iter().filter_map(|server| serde_json::from_value(server.clone()).ok()).collect();
    if servers.is_empty() {
        return html! {};
    }
    let note = language.say("their tools have to be asked for", "需向其获取工具");
    card(
        language.say("Servers in what was read", "读取到的服务器"),
        note,
        &html! {
            ul.rows {
                @for server in &servers {
                    li {
                        div {
                            b { (server.name) } " " span.note { (server.transport) }
                            p.note.mono { (server.place()) }
                            @if !server.url_left_out.is_empty() { p.note { (left_out_of_address(language)) } }
                            @if !server.texts().is_empty() {
                                p.note { (language.say("Headers or variables: ", "请求头或变量：")) (server.texts().join(", ")) }
                            }
                        }
                        form method="get" action=(place.path("setup/servers")) {
                            input type="hidden" name="name" value=(server.name);
                            input type="hidden" name="url" value=(server.place());
                            input type="hidden" name="headers" value=(server.texts().join(","));
                            @if !server.url_left_out.is_empty() { input type="hidden" name="left_out" value="1"; }
                            button.btn.small type="submit" { (language.say("Set up", "设置")) }
                        }
                    }
                }
            }
        },
    )
}

/// What a draft keeps of a server that was imported.
#[derive(serde::Deserialize)]
struct ServerShown {
    name: String,
    transport: String,
    url: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    url_left_out: Vec<String>,
    #[serde(default)]
    headers: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
}

impl ServerShown {
    /// Names of its headers or variables.
    fn texts(&self) -> &[String] {
        if self.headers.is_empty() { &self.env } else { &self.headers }
    }

    /// As it is typed into the form.
    fn place(&self) -> String {
        // A draft of an earlier version holds them as they were.
        line(self.url.iter().chain(&self.command).chain(&masked(&self.args)))
    }
}
