//! Step five: who gets it, how found tools enter the array, and where each value in force comes from.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{Step, keep, set, step_page};
use crate::core::id::Scope;
use crate::core::profile::Profile;
use crate::http::problem::Problem;
use crate::service::{EffectiveConfig, SetupDraft, Toolrack};
use crate::ui::form::Form;
use crate::ui::language::Language;
use crate::ui::layout::{kind_name, token};
use crate::ui::parts::{State as Standing, card, notice, tag};
use crate::ui::visitor::Place;

/// Longest value that the table shows, in characters.
const SHOWN_CHARS: usize = 160;

/// Switches that the form shows, each off by default.
const SWITCHES: [&str; 3] = ["require_review_on_change", "keep_missed_queries", "management_tools"];

pub(super) async fn show(State(service): State<Toolrack>, place: Place) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    let (user, project) = match &place.scope {
        Scope::User(user) => (Some(user.clone()), None),
        Scope::Project(project) => (None, Some(project.clone())),
    };
    let effective = service.effective_config(user, project).await?;
    let stored = service.draft_base(&place.scope).await?;
    let changed = |key: &&String| draft.config.get(*key) != stored.config.get(*key);
    let keys: BTreeSet<&String> = draft.config.keys().chain(stored.config.keys()).collect();
    let changed = keys.into_iter().filter(changed).map(String::as_str).collect();
    Ok(scope_page(&place, &draft, &effective, &changed))
}

/// Keeps the choices in the draft. What is as by default is not written down.
pub(super) async fn save(
    State(service): State<Toolrack>,
    place: Place,
    form: Form,
) -> Result<Response, Problem> {
    let mut draft = service.draft(&place.scope).await?;
    let text = |name: &str| Some(form.text(name)).filter(|text| !text.is_empty());
    set(
        &mut draft,
        "warm_policy",
        text("warm_policy").filter(|policy| *policy != "inherit").map(Value::from),
    );
    set(&mut draft, "profile", text("profile").filter(|profile| *profile != "inherit").map(Value::from));
    for name in ["max_warm_tools", "context_window"] {
        let value = text(name).map(|text| text.parse::<u64>().map_or_else(|_| text.into(), Value::from));
        set(&mut draft, name, value);
    }
    let top_k = form.text("preload_top_k").parse::<u64>().unwrap_or(5);
    let preload = if form.has("preload") {
        Some(json!({"enabled": true, "top_k": top_k}))
    } else {
        switched_off(draft.config.get("preload"))
    };
    set(&mut draft, "preload", preload);
    let hot = match (form.text("hot_tools"), draft.config.get("hot_tools")) {
        ("propose", before) => Some(joined(before, json!({"enabled": true, "auto": false}))),
        ("auto", before) => Some(joined(before, json!({"enabled": true, "auto": true}))),
        (_, before) => switched_off(before),
    };
    set(&mut draft, "hot_tools", hot);
    for name in SWITCHES {
        let off = draft.config.get(name).filter(|value| **value == Value::Bool(false)).cloned();
        set(&mut draft, name, if form.has(name) { Some(Value::Bool(true)) } else { off });
    }
    keep(&service, &place, &mut draft, Step::Apply.path()).await
}

/// What the form shows of an object, and the members of it that it does not show.
fn joined(before: Option<&Value>, shown: Value) -> Value {
    let mut all = before.and_then(Value::as_object).cloned().unwrap_or_default();
    if let Value::Object(shown) = shown {
        all.extend(shown);
    }
    // As by default.
    if all.get("auto") == Some(&Value::Bool(false)) {
        all.shift_remove("auto");
    }
    Value::Object(all)
}

/// An object that is switched off: one that says so already stays as it is, since another layer may switch it on.
fn switched_off(before: Option<&Value>) -> Option<Value> {
    before.filter(|before| before.get("enabled") == Some(&Value::Bool(false))).cloned()
}

fn scope_page(
    place: &Place,
    draft: &SetupDraft,
    effective: &EffectiveConfig,
    changed: &BTreeSet<&str>,
) -> Response {
    let language = place.visitor.language;
    let who = match &place.scope {
        Scope::User(_) => language.say(
            "This holds for one user. In a project, the project's values go before it; lists of core and denied tools are joined.",
            "仅对此用户生效。在项目中，项目的值优先；核心与禁用列表会合并。",
        ),
        Scope::Project(_) => language.say(
            "This holds for everybody who works in the project, before what users set for themselves; lists of core and denied tools are joined.",
            "对项目中的所有人生效，优先于用户自己的设置；核心与禁用列表会合并。",
        ),
    };
    let content = html! {
        div.columns {
            form.card.form method="post" action=(place.path(Step::Scope.path())) #scope {
                (token(&place.visitor))
                (fields(language, draft))
            }
            (in_force(language, effective, changed))
        }
    };
    let on = html! {
        button.btn.primary type="submit" form="scope" { (language.say("Continue to Apply", "继续：应用")) }
    };
    let title = format!("{} {}", kind_name(language, &place.scope), place.scope.id());
    step_page(place, Step::Scope, draft, (&title, who), &content, Some(on))
}

fn fields(language: Language, draft: &SetupDraft) -> Markup {
    let value = |name: &str| match draft.config.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let member =
        |name: &str, member: &str| draft.config.get(name).and_then(|value| value.get(member)).cloned();
    let is_on = |name: &str| draft.config.get(name) == Some(&Value::Bool(true));
    let preloads = member("preload", "enabled") == Some(Value::Bool(true));
    let hot = match (member("hot_tools", "enabled"), member("hot_tools", "auto")) {
        (Some(Value::Bool(true)), Some(Value::Bool(true))) => "auto",
        (Some(Value::Bool(true)), _) => "propose",
        _ => "off",
    };
    let policies = [
        ("inherit", language.say("As inherited", "继承")),
        ("immediate", language.say("At the next turn", "下一轮")),
        ("epoch", language.say("When the prompt cache is cold anyway", "提示缓存失效时")),
        ("off", language.say("Never; through the bridge only", "从不，仅通过桥接")),
    ];
    let hot_choices = [
        ("off", language.say("No", "否")),
        ("propose", language.say("Propose them here", "在此处建议")),
        ("auto", language.say("Put them into core at the start of a session", "会话开始时加入核心")),
    ];
    html! {
        fieldset.choice {
            legend { (language.say("When does a found tool enter the array?", "找到的工具何时进入数组？")) }
            @for (policy, name) in policies {
                label {
                    input type="radio" name="warm_policy" value=(policy)
                        checked[value("warm_policy") == policy || (policy == "inherit" && value("warm_policy").is_empty())];
                    " " (name)
                }
            }
        }
        div.two {
            div.field {
                label for="max_warm_tools" { (language.say("Warm tools at most", "热集上限")) }
                input #max_warm_tools type="number" min="0" max="64" name="max_warm_tools" value=(value("max_warm_tools")) placeholder="8";
            }
            div.field {
                label for="context_window" { (language.say("Context window, tokens", "上下文窗口（词元）")) }
                input #context_window type="number" name="context_window" value=(value("context_window")) placeholder="128000";
            }
        }
        div.field {
            label for="profile" { (language.say("Provider", "模型服务商")) }
            select #profile name="profile" {
                option value="inherit" { (language.say("As inherited", "继承")) }
                @for profile in Profile::ALL.map(Profile::as_str) { option value=(profile) selected[value("profile") == profile] { (profile) } }
            }
            p.hint { (language.say("Whose limits every array keeps. A request may name another one.", "数组遵守其限制。请求可另行指定。")) }
        }
        fieldset.choice {
            legend { (language.say("First turn", "首轮")) }
            label {
                input type="checkbox" name="preload" checked[preloads]; " "
                (language.say("Find tools for the first message before the model asks (needs a matcher)", "在模型请求之前先为首条消息查找工具（需要匹配器）"))
            }
            div.field {
                label for="preload_top_k" { (language.say("How many", "数量")) }
                input #preload_top_k type="number" min="1" max="64" name="preload_top_k"
                    value=(member("preload", "top_k").map_or_else(|| "5".to_owned(), |top| top.to_string()));
            }
        }
        fieldset.choice {
            legend { (language.say("Tools that are called most", "最常调用的工具")) }
            @for (choice, name) in hot_choices {
                label { input type="radio" name="hot_tools" value=(choice) checked[hot == choice]; " " (name) }
            }
        }
        fieldset.choice {
            legend { (language.say("Trust", "信任")) }
            label {
                input type="checkbox" name="require_review_on_change" checked[is_on("require_review_on_change")]; " "
                (language.say("A changed tool waits until an administrator approves it", "工具变更须经管理员批准"))
            }
            label {
                input type="checkbox" name="keep_missed_queries" checked[is_on("keep_missed_queries")]; " "
                (language.say("Keep the queries that found nothing, to mend them by aliases", "保留无结果的查询，以便用别名改进"))
            }
            label {
                input type="checkbox" name="management_tools" checked[is_on("management_tools")]; " "
                (language.say("Agents get two tools to set this up in a conversation; writing takes a setup key", "为代理提供两个工具，在对话中完成设置；写入需要 setup 密钥"))
            }
        }
    }
}

/// What agents go by at present, with the layer that each value comes from, and the keys that the draft changes.
fn in_force(language: Language, effective: &EffectiveConfig, changed: &BTreeSet<&str>) -> Markup {
    let origin = |value: &Value| value.get("origin").and_then(Value::as_str).unwrap_or_default().to_owned();
    let set_now = effective.config.iter().filter(|(_, value)| origin(value) != "default");
    let names: BTreeSet<&str> = set_now.map(|(key, _)| key.as_str()).chain(changed.iter().copied()).collect();
    card(
        language.say("Where each value comes from", "各项取值来源"),
        language.say("keys that anybody sets", "已设置的项"),
        &html! {
            @if names.is_empty() { p.body { (language.say("Everything is as by default.", "全部为默认值。")) } }
            @else {
                table.stack {
                    thead { tr {
                        th scope="col" { (language.say("Key", "项")) }
                        th scope="col" { (language.say("In force", "当前")) }
                        th scope="col" { (language.say("From", "来源")) }
                    } }
                    tbody {
                        @for name in names {
                            @let entry = effective.config.get(name);
                            @let value = entry.and_then(|entry| entry.get("value")).cloned().unwrap_or_default();
                            tr {
                                th.name.most scope="row" { (name) }
                                td.full { span.clip { (short(&value)) } }
                                td {
                                    (entry.map(&origin).unwrap_or_default()) " "
                                    @if changed.contains(name) {
                                        (tag(Standing::Info, language.say("changed in this draft", "草稿中已更改")))
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if effective.matcher.status != "none" {
                div.body {
                    (notice(
                        if effective.matcher.status == "configured" { Standing::Ok } else { Standing::Warn },
                        html! { (language.say("Matcher in force:", "当前匹配器：")) " " (effective.matcher.status) },
                        effective.matcher.detail.clone().unwrap_or_default(),
                    ))
                }
            }
        },
    )
}

/// A value as text, cut where it is long.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
