//! Step one: tools and settings from a text, a file or an MCP server, into the draft.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::servers::server_spec;
use super::{Step, set, step_page};
use crate::http::layers::HttpContext;
use crate::http::problem::{Code, Problem};
use crate::service::{
    ImportRequest, ImportSource, McpServerSpec, McpToolsRequest, ReadImport, SetupDraft, Toolrack,
};
use crate::ui::form::Form;
use crate::ui::go;
use crate::ui::language::{Language, number};
use crate::ui::layout::token;
use crate::ui::parts::{State as Standing, card, notice};
use crate::ui::visitor::Place;

/// Keys of a config that name lists or objects by entry, which an import adds to.
const JOINED: [&str; 1] = ["core"];

/// What was read just now.
enum Outcome {
    Nothing,
    /// What was read holds no tool.
    Settings,
    Refused {
        title: &'static str,
        problem: Problem,
    },
    Fault {
        reason: String,
        detail: String,
    },
}

pub(super) async fn show(State(service): State<Toolrack>, place: Place) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    let stored = stored_tools(&service, &place).await?.len();
    Ok(import_page(&place, &draft, stored, &Outcome::Nothing))
}

/// Reads what was sent, and keeps it in the draft.
pub(super) async fn read(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    place: Place,
    form: Form,
) -> Result<Response, Problem> {
    let mut draft = service.draft(&place.scope).await?;
    let outcome = if form.text("do") == "mcp" {
        from_server(&service, &context, &place, &form, &mut draft).await?
    } else {
        from_texts(&service, &place, &form, &mut draft).await?
    };
    match outcome {
        Outcome::Nothing => {
            service.save_draft(&place.scope, &mut draft, &place.visitor.actor).await?;
            Ok(go(&place.path(Step::Review.path())))
        }
        Outcome::Settings => {
            service.save_draft(&place.scope, &mut draft, &place.visitor.actor).await?;
            let stored = stored_tools(&service, &place).await?.len();
            Ok(import_page(&place, &draft, stored, &outcome))
        }
        outcome => {
            let stored = stored_tools(&service, &place).await?.len();
            Ok(import_page(&place, &draft, stored, &outcome))
        }
    }
}

async fn from_texts(
    service: &Toolrack,
    place: &Place,
    form: &Form,
    draft: &mut SetupDraft,
) -> Result<Outcome, Problem> {
    let language = place.visitor.language;
    let texts = ["text", "file", "more"].into_iter().flat_map(|name| form.all(name));
    let sources: Vec<ImportSource> = texts
        .filter(|text| !text.trim().is_empty())
        .map(|text| ImportSource::Text(text.to_owned()))
        .collect();
    let group = Some(form.text("group").to_owned()).filter(|group| !group.is_empty());
    let title = language.say("Not read:", "无法读取：");
    if sources.is_empty() {
        let detail = language.say("Paste a text or choose a file.", "请粘贴文本或选择文件。");
        return Ok(Outcome::Refused { title, problem: Problem::new(Code::InvalidRequest, detail) });
    }
    let read = match service.read_import(ImportRequest { sources, kind: None, group }).await {
        Ok(read) => read,
        Err(error) => {
            let problem = Problem::from(error);
            return if problem.code() == Code::InvalidRequest {
                Ok(Outcome::Refused { title, problem })
            } else {
                Err(problem)
            };
        }
    };
    let answer = read.answer()?;
    if answer.tools.is_empty() && answer.config.is_empty() && answer.servers.is_empty() {
        let detail = language
            .say("nothing was found in it: no tool, no setting, no server.", "其中没有工具、设置或服务器。");
        return Ok(Outcome::Refused { title, problem: Problem::new(Code::InvalidRequest, detail) });
    }
    let has_tools = !answer.tools.is_empty();
    take(service, place, draft, read, form.text("how") == "add").await?;
    Ok(if has_tools { Outcome::Nothing } else { Outcome::Settings })
}

/// Puts what was read into the draft.
async fn take(
    service: &Toolrack,
    place: &Place,
    draft: &mut SetupDraft,
    read: ReadImport,
    adds: bool,
) -> Result<(), Problem> {
    let answer = read.answer()?;
    draft.source = answer.kind.to_owned();
    if !answer.tools.is_empty() {
        let before = if adds { present_tools(service, place, draft).await? } else { Vec::new() };
        draft.tools = Some(joined(before, answer.tools));
    }
    for (key, value) in answer.config {
        let value = if JOINED.contains(&key.as_str()) { union(draft.config.get(&key), value) } else { value };
        set(draft, &key, Some(value));
    }
    if let Some(key) = read.imported.api_key {
        draft.set_api_key(Some(key.key));
    }
    if !answer.servers.is_empty() {
        let servers: Result<Vec<Value>, _> = answer.servers.iter().map(serde_json::to_value).collect();
        let servers = servers.map_err(Problem::internal)?;
        draft.servers.retain(|known| servers.iter().all(|new| new["name"] != known["name"]));
        draft.servers.extend(servers);
    }
    let told: Vec<Value> = answer.warnings.iter().take(100).map(|warning| json!(warning)).collect();
    draft.notes = told;
    draft.set_aside = answer.quarantined.len();
    Ok(())
}

/// Both lists as one, each name once.
fn union(before: Option<&Value>, now: Value) -> Value {
    let mut all = before.and_then(Value::as_array).cloned().unwrap_or_default();
    for value in now.as_array().cloned().unwrap_or_default() {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    Value::Array(all)
}

/// The tools that a draft would store.
async fn present_tools(
    service: &Toolrack,
    place: &Place,
    draft: &SetupDraft,
) -> Result<Vec<Box<RawValue>>, Problem> {
    match &draft.tools {
        Some(tools) => Ok(tools.clone()),
        None => stored_tools(service, place).await,
    }
}

pub(super) async fn stored_tools(service: &Toolrack, place: &Place) -> Result<Vec<Box<RawValue>>, Problem> {
    #[derive(serde::Deserialize)]
    struct Stored {
        tools: Vec<Box<RawValue>>,
    }
    let document = service.catalog_document(&place.scope).await?;
    let stored: Stored = serde_json::from_str(&document.json).map_err(Problem::internal)?;
    Ok(stored.tools)
}

/// The identity of an entry: its group and its name as they were uploaded.
#[derive(serde::Deserialize, PartialEq, Eq, Hash)]
struct Identity {
    group: Option<String>,
    uploaded_name: Option<String>,
    name: Option<String>,
}

pub(super) fn identity(entry: &RawValue) -> Option<(String, String)> {
    let Identity { group, uploaded_name, name } = serde_json::from_str(entry.get()).ok()?;
    Some((group.unwrap_or_else(|| "other".to_owned()), uploaded_name.or(name)?))
}

/// The tools of before, with the new ones in the place of those of the same name and group.
fn joined(before: Vec<Box<RawValue>>, new: Vec<Box<RawValue>>) -> Vec<Box<RawValue>> {
    let known: std::collections::HashSet<(String, String)> =
        new.iter().filter_map(|entry| identity(entry)).collect();
    let kept = before.into_iter().filter(|entry| identity(entry).is_none_or(|entry| !known.contains(&entry)));
    kept.chain(new).collect()
}

async fn from_server(
    service: &Toolrack,
    context: &HttpContext,
    place: &Place,
    form: &Form,
    draft: &mut SetupDraft,
) -> Result<Outcome, Problem> {
    let title = place.visitor.language.say("Not asked:", "未连接：");
    let spec = Value::Object(server_spec(form));
    let server: McpServerSpec = serde_json::from_value(spec).map_err(Problem::internal)?;
    let limit = context.limits().request_timeout;
    let request = McpToolsRequest {
        scope: place.scope.clone(),
        name: form.text("name").to_owned(),
        server,
        within: limit - limit / 20,
    };
    let answer = match service.mcp_tools(request).await {
        Ok(answer) => answer,
        Err(error) => {
            let problem = Problem::from(error);
            return if problem.code() == Code::InvalidRequest {
                Ok(Outcome::Refused { title, problem })
            } else {
                Err(problem)
            };
        }
    };
    if let Some(fault) = answer.fault {
        return Ok(Outcome::Fault { reason: fault.reason, detail: fault.detail });
    }
    let before = present_tools(service, place, draft).await?;
    // The server's list is all of its group.
    let of_server = |entry: &RawValue| identity(entry).is_some_and(|(group, _)| group == form.text("name"));
    let others = before.into_iter().filter(|entry| !of_server(entry)).collect();
    draft.tools = Some(joined(others, answer.tools));
    draft.source = "mcp".to_owned();
    draft.notes = answer.warnings.iter().take(100).map(|warning| json!(warning)).collect();
    if let Some(description) = answer.group_description {
        describe_group(&mut draft.config, form.text("name"), &description);
    }
    Ok(Outcome::Nothing)
}

/// Gives a group a description, unless it has one.
fn describe_group(config: &mut Map<String, Value>, name: &str, description: &str) {
    let groups = config.entry("groups").or_insert_with(|| json!([]));
    let Some(groups) = groups.as_array_mut() else { return };
    match groups.iter_mut().find(|group| group.get("name").and_then(Value::as_str) == Some(name)) {
        Some(Value::Object(group)) => drop(group.entry("description").or_insert_with(|| description.into())),
        _ => groups.push(json!({"name": name, "description": description})),
    }
}

fn import_page(place: &Place, draft: &SetupDraft, stored: usize, outcome: &Outcome) -> Response {
    let language = place.visitor.language;
    let has_tools = stored > 0 || draft.tools.is_some();
    let content = html! {
        @match outcome {
            Outcome::Nothing => {}
            Outcome::Settings => (notice(Standing::Ok, language.say("Read.", "已读取。"),
                language.say("Settings or servers came into the draft, and no tools. What was told of them stands below.", "设置或服务器已进入草稿，其中没有工具。相关说明见下。"))),
            Outcome::Refused { title, problem } => (notice(Standing::Bad, title, html! {
                @if problem.errors().is_empty() { (problem.detail()) }
                @for error in problem.errors() { span { code { (error.pointer) } " " (error.detail) " " } }
            })),
            Outcome::Fault { reason, detail } => (notice(Standing::Bad, html! { code { (reason) } }, detail)),
        }
        (present(place, draft, stored))
        div.columns {
            form.card.form method="post" action=(place.path(Step::Import.path())) enctype="multipart/form-data" {
                (token(&place.visitor))
                (text_fields(language, has_tools))
            }
            div {
                (server_form(place))
                (imported_servers(place, draft))
            }
        }
    };
    let about = language.say(
        "A tool list in any common format, an mcp.json, another program's settings, or a live MCP server. Nothing is stored yet.",
        "任何常见格式的工具列表、mcp.json、其他程序的设置，或在线 MCP 服务器。此时不会保存。",
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

/// What the draft holds so far.
fn present(place: &Place, draft: &SetupDraft, stored: usize) -> Markup {
    let language = place.visitor.language;
    let text = match &draft.tools {
        Some(tools) => html! {
            b { (number(tools.len())) } (language.say(" tools in the draft", " 个工具在草稿中"))
            @if draft.set_aside > 0 { (language.say(", ", "，")) b { (number(draft.set_aside)) } (language.say(" entries set aside", " 个条目被搁置")) }
        },
        None if stored > 0 => html! {
            b { (number(stored)) } (language.say(" tools are stored; you can go on with them.", " 个工具已保存，可直接继续。"))
        },
        None => html! { (language.say("No tools yet.", "尚无工具。")) },
    };
    let told: Vec<(String, String)> = draft
        .notes
        .iter()
        .map(|note| {
            let member = |name: &str| note.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            (member("code"), member("detail"))
        })
        .collect();
    html! {
        (notice(Standing::Info, "", text))
        @if !told.is_empty() {
            details.notice.warn {
                summary { strong { (number(told.len())) " " (language.say("remarks about what was read", "条读取提示")) } }
                ul.lines { @for (code, detail) in &told { li { code { (code) } " " (detail) } } }
            }
        }
    }
}

fn text_fields(language: Language, has_tools: bool) -> Markup {
    html! {
        div.field {
            label for="text" { (language.say("Paste", "粘贴")) }
            textarea #text.mono name="text" rows="10" spellcheck="false" aria-describedby="text-hint"
                placeholder=r#"{"tools": [...]}   {"mcpServers": {...}}   tools: tool_search: ..."# {}
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
        }
        div.field {
            label for="group" { (language.say("Group of tools that name none", "未指定分组的工具归入")) }
            input #group type="text" name="group" maxlength="128" autocomplete="off" placeholder="other";
        }
        @if has_tools {
            fieldset.choice {
                legend { (language.say("And the tools that are there?", "已有的工具怎么办？")) }
                label { input type="radio" name="how" value="add" checked; " " (language.say("Keep them; the same names are replaced", "保留，同名的替换")) }
                label { input type="radio" name="how" value="replace"; " " (language.say("Replace them all", "全部替换")) }
            }
        }
        button.btn.primary type="submit" name="do" value="text" data-busy=(language.say("Reading…", "读取中…")) {
            (language.say("Read", "读取"))
        }
    }
}

fn server_form(place: &Place) -> Markup {
    let language = place.visitor.language;
    card(
        language.say("Ask an MCP server", "连接 MCP 服务器"),
        html! {
            a href=(place.path("setup/servers")) { (language.say("Servers kept in sync", "保持同步的服务器")) }
        },
        &html! {
            form.form method="post" action=(place.path(Step::Import.path())) {
                (token(&place.visitor))
                (server_fields(language, "", ""))
                button.btn type="submit" name="do" value="mcp" data-busy=(language.say("Asking…", "连接中…")) {
                    (language.say("List its tools", "列出工具"))
                }
            }
        },
    )
}

/// The fields that a server over HTTP is told by.
pub(super) fn server_fields(language: Language, name: &str, url: &str) -> Markup {
    html! {
        div.two {
            div.field {
                label for="server-name" { (language.say("Name", "名称")) }
                input #server-name type="text" name="name" value=(name) required maxlength="128" placeholder="github" autocomplete="off" spellcheck="false";
            }
            div.field.wide {
                label for="server-url" { (language.say("Address", "地址")) }
                input #server-url.mono type="text" inputmode="url" name="url" value=(url) required placeholder="https://mcp.example.com/mcp"
                    spellcheck="false" autocomplete="off" aria-describedby="server-hint";
                p.hint #server-hint {
                    (language.say("Or a command that the operator allows: npx -y @scope/server", "或运维允许的命令：npx -y @scope/server"))
                }
            }
            div.field {
                label for="server-header" { (language.say("Header or variable", "请求头或变量")) }
                input #server-header.mono type="text" name="header" placeholder="Authorization" autocomplete="off" spellcheck="false";
            }
            div.field {
                label for="server-value" { (language.say("Its value", "请求头的值")) }
                input #server-value type="password" name="header_value" placeholder="Bearer …" autocomplete="off" spellcheck="false";
            }
        }
    }
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
                            @if !server.headers.is_empty() {
                                p.note { (language.say("Headers: ", "请求头：")) (server.headers.join(", ")) }
                            }
                        }
                        form method="get" action=(place.path("setup/servers")) {
                            input type="hidden" name="name" value=(server.name);
                            input type="hidden" name="url" value=(server.place());
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
    headers: Vec<String>,
}

impl ServerShown {
    /// As it is typed into the form.
    fn place(&self) -> String {
        let words = self.url.iter().chain(&self.command).chain(&self.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn new_tools_go_in_the_place_of_those_of_the_same_name() {
        let before = vec![
            raw(r#"{"name":"a"}"#),
            raw(r#"{"name":"b","group":"g"}"#),
            raw(r#"{"name":"g__c","uploaded_name":"c","group":"g"}"#),
        ];
        let new =
            vec![raw(r#"{"name":"b","group":"g","description":"new"}"#), raw(r#"{"name":"c","group":"g"}"#)];
        let all: Vec<String> = joined(before, new).iter().map(|entry| entry.get().to_owned()).collect();
        assert_eq!(
            all,
            [
                r#"{"name":"a"}"#,
                r#"{"name":"b","group":"g","description":"new"}"#,
                r#"{"name":"c","group":"g"}"#
            ]
        );
    }

    #[test]
    fn core_tools_add_up() {
        assert_eq!(union(Some(&json!(["a", "b"])), json!(["b", "c"])), json!(["a", "b", "c"]));
        assert_eq!(union(None, json!(["a"])), json!(["a"]));
    }
}
