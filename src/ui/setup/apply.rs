//! Step six: what exactly changes, then writing all of it together. Who comes second sees what the first one changed.

use std::collections::BTreeSet;

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::cost::cost;
use super::refused::refusal;
use super::taken::{identity, rejoined, stored_tools};
use super::{DraftForm, Step, keep, made_for, set, step_page};
use crate::http::problem::{Code, Problem};
use crate::service::{
    CatalogWritten, NO_TOOL_LEFT, NameList, PlanFields, PreviewAnswer, SetupApplied, SetupApply, SetupDraft,
    Toolrack, as_array,
};
use crate::ui::language::{Language, counted, number};
use crate::ui::layout::with_query;
use crate::ui::parts::{Slice, State as Standing, card, notice, pager, warnings};
use crate::ui::skill;
use crate::ui::visitor::Place;
use crate::ui::{go, shown};

/// Names of one kind of change that a page shows.
const SHOWN_NAMES: usize = 50;

/// Lines of the config's difference that are shown.
const SHOWN_LINES: usize = 600;

/// The list of changed tools that is open, and which page of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    list: String,
    page: String,
}

pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    let base = service.setup_base(&place.scope).await?;
    let stored = service.config(&place.scope).await?.document;
    if draft.revision > 0 && draft.base != base {
        return Ok(conflict_page(&place, &draft, &stored));
    }
    let asked_for = request(&service, &place, &draft, true).await?;
    match service.apply_setup(&place.visitor.actor, &place.scope, asked_for).await {
        Ok(applied) if place.visitor.part => {
            let lists = applied.catalog.iter().flat_map(|written| changed_tools(Language::English, written));
            let list = lists.into_iter().find(|list| list.key == asked.list);
            let list = list.ok_or_else(Problem::nothing_here)?;
            Ok(shown(tool_names(&place, &list, &asked.page)))
        }
        Ok(applied) => {
            let preview = service.preview_setup(draft.input(place.caller()), PlanFields::default()).await?;
            Ok(apply_page(&place, &draft, &stored, &applied, &preview, &asked))
        }
        Err(error) => {
            let problem = Problem::from(error);
            if matches!(
                problem.code(),
                Code::InvalidRequest | Code::TooManyTools | Code::Unsupported | Code::Forbidden
            ) {
                return Ok(refused_page(&place, &draft, &problem));
            }
            Err(problem)
        }
    }
}

/// What a draft writes. Groups of servers that are kept in sync stay as they are stored, where the draft has none of their tools.
async fn request(
    service: &Toolrack,
    place: &Place,
    draft: &SetupDraft,
    dry_run: bool,
) -> Result<SetupApply, Problem> {
    let mut tools = draft.tools.clone();
    let servers = service.mcp_servers(&place.scope).await?.servers;
    if let Some(tools) = tools.as_mut().filter(|_| !servers.is_empty()) {
        let group = |entry: &RawValue| identity(entry).map(|(group, _)| group);
        let present: BTreeSet<String> = tools.iter().filter_map(|entry| group(entry)).collect();
        let is_kept =
            |name: &String| !present.contains(name) && servers.iter().any(|server| server.name == *name);
        let stored = stored_tools(service, place).await?;
        tools.extend(stored.into_iter().filter(|entry| group(entry).is_some_and(|name| is_kept(&name))));
    }
    let tools = tools.as_deref().map(as_array);
    Ok(SetupApply { config: Some(draft.document()), tools, expected: Some(draft.base.clone()), dry_run })
}

/// Writes the draft, and forgets it.
pub(super) async fn apply(
    State(service): State<Toolrack>,
    place: Place,
    form: DraftForm,
) -> Result<Response, Problem> {
    // What is written is what was looked at.
    let draft = &form.draft;
    let asked_for = request(&service, &place, draft, false).await?;
    match service.apply_setup(&place.visitor.actor, &place.scope, asked_for).await {
        Ok(_) => {
            service.discard_draft(&place.scope).await?;
            Ok(go(&place.path("overview?applied=1")))
        }
        // The page says what happened.
        Err(error) => match Problem::from(error) {
            problem if problem.code() == Code::PreconditionFailed => {
                let stored = service.config(&place.scope).await?.document;
                Ok(conflict_page(&place, draft, &stored))
            }
            problem => Err(problem),
        },
    }
}

/// Takes what is stored now as what the draft is made from: keys that only the others changed come into the draft.
pub(super) async fn rebase(
    State(service): State<Toolrack>,
    place: Place,
    mut form: DraftForm,
) -> Result<Response, Problem> {
    let mut draft = std::mem::take(&mut form.draft);
    let stored = service.draft_base(&place.scope).await?;
    let chosen: BTreeSet<String> = form.all("theirs").map(str::to_owned).collect();
    let theirs = changed_by_others_alone(&draft, &stored.config);
    for key in chosen.union(&theirs) {
        set(&mut draft, key, stored.config.get(key).cloned());
    }
    if let (Some(tools), Some(added)) = (&draft.tools, &draft.added) {
        draft.tools = Some(rejoined(stored_tools(&service, &place).await?, tools.clone(), added));
    }
    (draft.base, draft.base_config) = (stored.base, stored.config);
    let on = place.path(Step::Apply.path());
    keep(service, place, &mut draft, &form, &on).await
}

/// Keys that are stored otherwise than when the draft was begun, and that the draft leaves as they were then.
fn changed_by_others_alone(draft: &SetupDraft, stored: &Map<String, Value>) -> BTreeSet<String> {
    let keys = stored.keys().chain(draft.base_config.keys());
    let is_theirs = |key: &&String| {
        let base = draft.base_config.get(*key);
        !same(stored.get(*key), base) && same(draft.config.get(*key), base)
    };
    keys.filter(is_theirs).cloned().collect()
}

fn apply_page(
    place: &Place,
    draft: &SetupDraft,
    stored: &Map<String, Value>,
    applied: &SetupApplied,
    preview: &PreviewAnswer,
    asked: &Asked,
) -> Response {
    let language = place.visitor.language;
    let config = applied.config.as_ref();
    let shown = config.map(|written| &written.config);
    let lines = shown.map(|config| difference(stored, config)).unwrap_or_default();
    let changes = config.map_or(0, |written| {
        written.changes.added.len() + written.changes.changed.len() + written.changes.removed.len()
    });
    let catalog_changes = applied.catalog.as_ref().map_or(0, |written| {
        written.diff.added.count
            + written.diff.changed.count
            + written.diff.removed.count
            + written.held.count
    });
    let nothing = changes == 0 && catalog_changes == 0 && draft.api_key().is_none();
    let all_warnings: Vec<_> = applied
        .warnings
        .iter()
        .chain(config.iter().flat_map(|written| &written.warnings))
        .chain(applied.catalog.iter().flat_map(|written| &written.warnings))
        .cloned()
        .collect();
    let content = html! {
        @if nothing {
            (notice(Standing::Info, language.say("Nothing to apply.", "没有可应用的更改。"),
                language.say("The draft is what is stored.", "草稿与已保存内容一致。")))
        }
        @if applied.warnings.iter().any(|warning| warning.code == NO_TOOL_LEFT) {
            (notice(Standing::Bad, language.say("No tool is left.", "没有剩下任何工具。"),
                language.say("With this, agents get no tool and find none: look at what is left out and at the lists of the config.",
                    "应用后代理得不到也搜不到任何工具：请检查排除项和配置中的列表。")))
        }
        (warnings(language, &all_warnings))
        div.columns.wide-left {
            (card(language.say("Config", "配置"), counted(language, changes, "key changes", "keys change", "项变更"), &html! {
                @if lines.is_empty() { p.body { (language.say("stays as it is", "保持不变")) } }
                @else { (diff_list(&lines)) }
            }))
            div {
                (cost(language, preview, None))
                @if let Some(written) = &applied.catalog { (catalog_card(place, written, asked)) }
                @if draft.api_key().is_some() {
                    (notice(Standing::Info, language.say("A key for the endpoint", "端点密钥"), language.say("is stored with it, sealed.", "将一并加密保存。")))
                }
                (notice(Standing::Info, language.say("All or nothing.", "整体生效。"), html! {
                    (language.say("It is written together and holds from the next request on. ", "一次写入，从下个请求起生效。"))
                    a href=(place.path("setup/versions")) { (language.say("Earlier versions", "历史版本")) }
                    (language.say(" can be put back.", "可以恢复。"))
                }))
                (skill::about(place))
            }
        }
    };
    let on = html! {
        form method="post" action=(place.path(Step::Apply.path())) {
            (made_for(place, draft))
            button.btn.primary type="submit" disabled[nothing] data-busy=(language.say("Applying…", "应用中…")) {
                (language.say("Apply to ", "应用到 ")) (place.scope.id())
            }
        }
    };
    let about = language.say("What exactly changes, and how is it undone?", "具体会改变什么？如何撤销？");
    step_page(place, Step::Apply, draft, (language.say("Apply", "应用"), about), &content, Some(on))
}

/// Tools that one kind of change is of.
struct ChangedTools<'a> {
    key: &'static str,
    title: &'static str,
    class: &'static str,
    tools: &'a NameList,
}

fn changed_tools(language: Language, written: &CatalogWritten) -> Vec<ChangedTools<'_>> {
    let list = |key, title, class, tools| ChangedTools { key, title, class, tools };
    let all = [
        list("added", language.say("added", "新增"), "plus", &written.diff.added),
        list("changed", language.say("changed", "变更"), "plus", &written.diff.changed),
        list("removed", language.say("removed", "移除"), "minus", &written.diff.removed),
        list("held", language.say("wait for approval", "等待批准"), "", &written.held),
    ];
    all.into_iter().filter(|list| list.tools.count > 0).collect()
}

fn catalog_card(place: &Place, written: &CatalogWritten, asked: &Asked) -> Markup {
    let language = place.visitor.language;
    let unchanged = match written.diff.unchanged.count {
        0 => String::new(),
        count => format!("{} {}", number(count), language.say("unchanged", "未变")),
    };
    card(
        language.say("Catalog", "工具目录"),
        unchanged,
        &html! {
            @for list in changed_tools(language, written) {
                @let is_open = list.key == asked.list;
                details.fold id=[is_open.then_some("open")] open[is_open] {
                    summary { (number(list.tools.count)) " " (list.title) }
                    (tool_names(place, &list, if is_open { &asked.page } else { "" }))
                }
            }
        },
    )
}

/// A page of the names; the others come into its place where scripts run.
fn tool_names(place: &Place, list: &ChangedTools<'_>, page: &str) -> Markup {
    let slice = Slice::of(list.tools.names.len(), SHOWN_NAMES, page);
    let way = |text: &str, page: usize| {
        let to =
            with_query(&place.path(Step::Apply.path()), &[("list", list.key), ("page", &page.to_string())]);
        html! {
            a.btn.small href={(to) "#open"} hx-get=(to) hx-target="closest .names" hx-swap="outerHTML" { (text) }
        }
    };
    html! {
        div.names {
            ul.diff {
                @for tool in &list.tools.names[slice.from..slice.to] { li class=(list.class) { (tool) } }
            }
            @if slice.pages > 1 { div.bar { (pager(place.visitor.language, slice, way)) } }
        }
    }
}

fn refused_page(place: &Place, draft: &SetupDraft, problem: &Problem) -> Response {
    let language = place.visitor.language;
    let title = language.say("This cannot be applied yet:", "暂时无法应用：");
    let content = refusal(language, title, problem, |_| None);
    let about = language.say("Mend what is named in an earlier step.", "请在前面的步骤中改正。");
    let on = html! {};
    step_page(place, Step::Apply, draft, (language.say("Apply", "应用"), about), &content, Some(on))
}

/// Somebody else wrote since this draft was begun: both versions of every key that differs.
fn conflict_page(place: &Place, draft: &SetupDraft, stored: &Map<String, Value>) -> Response {
    let language = place.visitor.language;
    let keys: BTreeSet<&String> = stored.keys().chain(draft.config.keys()).collect();
    let differing: Vec<&String> =
        keys.into_iter().filter(|key| !same(stored.get(*key), draft.config.get(*key))).collect();
    let theirs = changed_by_others_alone(draft, stored);
    let content = html! {
        (notice(Standing::Warn, language.say("What is stored has changed in the meantime.", "已保存的内容在此期间有变。"),
            language.say("By somebody else, or by a server that is kept in sync. What only they changed comes into the draft; say for each other key which value it shall have, then look at the difference again.",
                "由他人或保持同步的服务器更改。仅对方更改的项会进入草稿；其余各项请选择草稿应采用的值，然后重新查看差异。")))
        form.card.whole method="post" action=(place.path("setup/rebase")) #rebase {
            (made_for(place, draft))
            @if differing.is_empty() {
                p.body { (language.say("The config is the same in both; only the catalog was changed.", "两者配置相同，仅工具目录有变。")) }
            }
            @match (&draft.tools, &draft.added) {
                (Some(_), Some(_)) => p.body {
                    (language.say("Of the tools, yours are the ones that you imported; all others are taken as they are stored now.", "工具中，以您导入的为准；其余采用当前已保存的。"))
                }
                (Some(_), None) => p.body {
                    (language.say("Your list of tools takes the place of the stored one: the difference shows what goes.", "您的工具列表会取代已保存的列表：差异中会显示移除的工具。"))
                }
                (None, _) => {}
            }
            @if !differing.is_empty() {
                table.stack {
                    thead { tr {
                        th scope="col" { (language.say("Key", "项")) }
                        th scope="col" { (language.say("Stored now", "当前已保存")) }
                        th scope="col" { (language.say("In your draft", "您的草稿")) }
                        th scope="col" { (language.say("Take theirs", "采用已保存的")) }
                    } }
                    tbody {
                        @for key in &differing {
                            tr {
                                th.name.full scope="row" { (key) }
                                td.full data-label=(language.say("Stored", "已保存")) { span.clip { (text(stored.get(*key))) } }
                                td.full data-label=(language.say("Draft", "草稿")) { span.clip { (text(draft.config.get(*key))) } }
                                td data-label=(language.say("Take theirs", "采用已保存的")) {
                                    input type="checkbox" name="theirs" value=(key) checked[theirs.contains(*key)] disabled[theirs.contains(*key)]
                                        aria-label={(language.say("Take theirs: ", "采用已保存的：")) (key)};
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    let on = html! {
        button.btn.primary type="submit" form="rebase" { (language.say("Go on with these", "按此继续")) }
    };
    let about = language.say("Who changed what, and which value holds?", "谁改了什么？以哪个为准？");
    step_page(
        place,
        Step::Apply,
        draft,
        (language.say("Edit conflict", "编辑冲突"), about),
        &content,
        Some(on),
    )
}

/// Whether two values of a key are the same to a reader: stored secrets show as set, drafts hold none.
fn same(stored: Option<&Value>, draft: Option<&Value>) -> bool {
    let bare = |value: Option<&Value>| {
        let mut value = value.cloned();
        if let Some(Value::Object(object)) = &mut value {
            for secret in ["api_key", "extra_headers"] {
                object.shift_remove(secret);
            }
        }
        value
    };
    bare(stored) == bare(draft)
}

fn text(value: Option<&Value>) -> String {
    value.map_or_else(|| "—".to_owned(), ToString::to_string)
}

/// A line of a difference: in both, only before, only after.
pub(in crate::ui) struct Line {
    class: &'static str,
    text: String,
}

/// The lines of two documents, key by key, as their pretty text differs. Keys that are the same are left out.
pub(in crate::ui) fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Line> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut lines = Vec::new();
    for key in keys {
        let (old, new) = (before.get(key), after.get(key));
        if old == new {
            continue;
        }
        let pretty = |value: Option<&Value>| -> Vec<String> {
            let Some(value) = value else { return Vec::new() };
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            format!("{key}: {text}").lines().map(str::to_owned).collect()
        };
        let (old, new) = (pretty(old), pretty(new));
        let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let left = old.len().min(new.len()) - head;
        let tail =
            old.iter().rev().zip(new.iter().rev()).take(left).take_while(|(old, new)| old == new).count();
        let line = |class: &'static str| move |text: &String| Line { class, text: text.clone() };
        // Of what is the same only the nearest lines are told.
        lines.extend(old[head.saturating_sub(2)..head].iter().map(line("")));
        lines.extend(old[head..old.len() - tail].iter().map(line("minus")));
        lines.extend(new[head..new.len() - tail].iter().map(line("plus")));
        lines.extend(new[new.len() - tail..].iter().take(2).map(line("")));
    }
    lines
}

pub(in crate::ui) fn diff_list(lines: &[Line]) -> Markup {
    html! {
        ul.diff {
            @for line in lines.iter().take(SHOWN_LINES) { li class=(line.class) { (line.text) } }
            @if lines.len() > SHOWN_LINES { li { "… " (number(lines.len() - SHOWN_LINES)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(before: &Value, after: &Value) -> Vec<String> {
        let lines = difference(before.as_object().unwrap(), after.as_object().unwrap());
        lines.iter().map(|line| format!("{:5}{}", line.class, line.text)).collect()
    }

    #[test]
    fn a_difference_tells_what_goes_and_what_comes() {
        let (before, after) =
            (json!({"core": ["a", "b", "c"], "same": 1}), json!({"core": ["a", "d", "c"], "same": 1}));
        assert_eq!(
            lines(&before, &after),
            ["     core: [", "       \"a\",", "minus  \"b\",", "plus   \"d\",", "       \"c\"", "     ]"]
        );
        assert_eq!(lines(&json!({}), &json!({"enabled": "on"})), ["plus enabled: \"on\""]);
        assert_eq!(lines(&json!({"enabled": "on"}), &json!({})), ["minusenabled: \"on\""]);
        assert!(lines(&before, &before).is_empty());
    }
}
