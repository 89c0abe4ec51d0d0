//! Step five: who gets it, how found tools enter the array, and where each value in force comes from.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::refused::not_kept;
use super::{DraftForm, Step, made_for, set, step_page, store};
use crate::core::id::Scope;
use crate::core::profile::Profile;
use crate::http::problem::Problem;
use crate::service::{EffectiveConfig, SetupDraft, Toolrack};
use crate::ui::go;
use crate::ui::language::Language;
use crate::ui::layout::kind_name;
use crate::ui::parts::{State as Standing, card, notice, tag};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;

/// Longest value that the table shows, in characters.
const SHOWN_CHARS: usize = 160;

/// Switches that the form shows.
const SWITCHES: [&str; 3] = ["require_review_on_change", "keep_missed_queries", "management_tools"];

/// What stands for "say nothing, so that another layer does".
const INHERIT: &str = "inherit";

pub(super) async fn show(State(service): State<Toolrack>, place: Place) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    shown_draft(&service, &place, &draft).await
}

/// The page of a draft, also of one that was not kept.
async fn shown_draft(service: &Toolrack, place: &Place, draft: &SetupDraft) -> Result<Response, Problem> {
    let (user, project) = match &place.scope {
        Scope::User(user) => (Some(user.clone()), None),
        Scope::Project(project) => (None, Some(project.clone())),
    };
    let effective = service.effective_config(user, project).await?;
    let stored = service.draft_base(&place.scope).await?;
    let changed = |key: &&String| draft.config.get(*key) != stored.config.get(*key);
    let keys: BTreeSet<&String> = draft.config.keys().chain(stored.config.keys()).collect();
    let changed = keys.into_iter().filter(changed).map(String::as_str).collect();
    // Of nobody: every key by default.
    let default = service.effective_config(None, None).await?;
    let then = draft.effective(&place.scope);
    Ok(scope_page(place, draft, (&effective, &default), (&changed, &then)))
}

/// Keeps the choices in the draft. What is inherited is not written down; what the form does not send stays.
pub(super) async fn save(
    State(service): State<Toolrack>,
    place: Place,
    form: DraftForm,
) -> Result<Response, Problem> {
    let mut draft = service.draft(&place.scope).await?;
    let is_chosen = |name: &str| form.has(name) && form.text(name) != INHERIT && !form.text(name).is_empty();
    // What is no number is taken as it was typed: the page says where it stands.
    let number = |text: &str| text.parse::<u64>().map_or_else(|_| text.into(), Value::from);
    for name in ["warm_policy", "profile"].into_iter().filter(|name| form.has(name)) {
        set(&mut draft, name, is_chosen(name).then(|| form.text(name).into()));
    }
    for name in ["max_warm_tools", "context_window"].into_iter().filter(|name| form.has(name)) {
        set(&mut draft, name, is_chosen(name).then(|| number(form.text(name))));
    }
    for name in SWITCHES.into_iter().filter(|name| form.has(name)) {
        set(&mut draft, name, is_chosen(name).then(|| Value::Bool(form.text(name) == "on")));
    }
    if form.has("preload") {
        let mut shown = json!({"enabled": form.text("preload") == "on"});
        if is_chosen("preload_top_k") {
            shown["top_k"] = number(form.text("preload_top_k"));
        }
        // A layer has such an object as a whole: to inherit it is to say nothing of it.
        let preload = is_chosen("preload").then(|| joined(draft.config.get("preload"), shown));
        set(&mut draft, "preload", preload);
    }
    if form.has("hot_tools") {
        let choice = form.text("hot_tools");
        let shown = json!({"enabled": choice != "off", "auto": choice == "auto"});
        let hot = is_chosen("hot_tools").then(|| joined(draft.config.get("hot_tools"), shown));
        set(&mut draft, "hot_tools", hot);
    }
    let Some(problem) = store(&service, &place, &mut draft).await? else {
        return Ok(go(&place.path(Step::Apply.path())));
    };
    let place = Place { told: Some(not_kept(place.visitor.language, &problem)), ..place };
    let mut response = shown_draft(&service, &place, &draft).await?;
    *response.status_mut() = problem.code().status();
    Ok(response)
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

fn scope_page(
    place: &Place,
    draft: &SetupDraft,
    (effective, default): (&EffectiveConfig, &EffectiveConfig),
    (changed, then): (&BTreeSet<&str>, &Map<String, Value>),
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
                (made_for(place, draft))
                (fields(place, draft, &default.config))
            }
            (in_force(language, effective, changed, then))
        }
    };
    let on = html! {
        button.btn.primary type="submit" form="scope" { (language.say("Continue to Apply", "继续：应用")) }
    };
    let title = format!("{} {}", kind_name(language, &place.scope), place.scope.id());
    step_page(place, Step::Scope, draft, (&title, who), &content, Some(on))
}

/// What holds of a key where this scope says nothing: its default, in a project after what each user has.
fn inherited(place: &Place, value: &str) -> String {
    match (place.visitor.language, &place.scope) {
        (Language::English, Scope::User(_)) => format!("As inherited: {value}, by default"),
        (Language::English, Scope::Project(_)) => format!("As each user has it, else {value}, by default"),
        (Language::Chinese, Scope::User(_)) => format!("继承：默认为{value}"),
        (Language::Chinese, Scope::Project(_)) => format!("依各用户的设置，否则默认为{value}"),
    }
}

fn fields(place: &Place, draft: &SetupDraft, default: &Map<String, Value>) -> Markup {
    let language = place.visitor.language;
    let value = |name: &str| match draft.config.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let usual = |name: &str| match default.get(name).and_then(|entry| entry.get("value")) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let member =
        |name: &str, member: &str| draft.config.get(name).and_then(|value| value.get(member)).cloned();
    let on_off = |is_on: bool| if is_on { language.say("on", "开") } else { language.say("off", "关") };
    // On, off or nothing said, as the draft has it.
    let switch = |name: &str, text: &str, is_on: Option<bool>, usual: bool| {
        html! {
            div.field {
                label for=(name) { (text) }
                select id=(name) name=(name) {
                    option value=(INHERIT) selected[is_on.is_none()] { (inherited(place, on_off(usual))) }
                    option value="on" selected[is_on == Some(true)] { (language.say("On", "开")) }
                    option value="off" selected[is_on == Some(false)] { (language.say("Off", "关")) }
                }
            }
        }
    };
    let flag = |name: &str, text: &str| {
        switch(name, text, draft.config.get(name).and_then(Value::as_bool), usual(name) == "true")
    };
    let is_on =
        |name: &str| draft.config.get(name).map(|value| value.get("enabled") == Some(&Value::Bool(true)));
    let preloads = is_on("preload");
    let hot = match (is_on("hot_tools"), member("hot_tools", "auto")) {
        (Some(true), Some(Value::Bool(true))) => "auto",
        (Some(true), _) => "propose",
        (Some(false), _) => "off",
        (None, _) => INHERIT,
    };
    let policies = [
        ("immediate", language.say("At the next turn", "下一轮")),
        ("epoch", language.say("When the prompt cache is cold anyway", "提示缓存失效时")),
        ("off", language.say("Never; through the bridge only", "从不，仅通过桥接")),
    ];
    let usual_policy = usual("warm_policy");
    let usual_policy =
        policies.iter().find(|(policy, _)| *policy == usual_policy).map_or("", |(_, name)| name);
    let policy_inherited = inherited(place, &usual_policy.to_lowercase());
    let hot_inherited = inherited(place, language.say("no", "否"));
    let hot_choices = [
        (INHERIT, hot_inherited.as_str()),
        ("off", language.say("No", "否")),
        ("propose", language.say("Propose them here", "在此处建议")),
        ("auto", language.say("Put them into core at the start of a session", "会话开始时加入核心")),
    ];
    let number_field = |name: &str, text: &str, limits: Option<(u32, u32)>| {
        html! {
            div.field {
                label for=(name) { (text) }
                input id=(name) type="number" min=[limits.map(|(min, _)| min)] max=[limits.map(|(_, max)| max)] name=(name) value=(value(name))
                    placeholder=(usual(name)) aria-describedby={ (name) "-hint" };
                p.hint id={ (name) "-hint" } { (inherited(place, &usual(name))) }
            }
        }
    };
    html! {
        fieldset.choice {
            legend { (language.say("When does a found tool enter the array?", "找到的工具何时进入数组？")) }
            @for (policy, name) in [(INHERIT, policy_inherited.as_str())].into_iter().chain(policies) {
                label {
                    input type="radio" name="warm_policy" value=(policy)
                        checked[value("warm_policy") == policy || (policy == INHERIT && value("warm_policy").is_empty())];
                    " " (name)
                }
            }
        }
        div.two {
            (number_field("max_warm_tools", language.say("Warm tools at most", "热集上限"), Some((0, 64))))
            (number_field("context_window", language.say("Context window, tokens", "上下文窗口（词元）"), None))
        }
        div.field {
            label for="profile" { (language.say("Provider", "模型服务商")) }
            select #profile name="profile" {
                option value=(INHERIT) { (inherited(place, &usual("profile"))) }
                @for profile in Profile::ALL.map(Profile::as_str) { option value=(profile) selected[value("profile") == profile] { (profile) } }
            }
            p.hint { (language.say("Whose limits every array keeps. A request may name another one.", "数组遵守其限制。请求可另行指定。")) }
        }
        fieldset.choice {
            legend { (language.say("First turn", "首轮")) }
            (switch("preload", language.say("Find tools for the first message before the model asks (needs a matcher)", "在模型请求之前先为首条消息查找工具（需要匹配器）"), preloads, false))
            div.field {
                label for="preload_top_k" { (language.say("How many", "数量")) }
                input #preload_top_k type="number" min="1" max="64" name="preload_top_k" placeholder="5"
                    value=(member("preload", "top_k").map_or_else(String::new, |top| top.as_str().map_or_else(|| top.to_string(), str::to_owned)))
                    aria-describedby="preload_top_k-hint";
                p.hint #preload_top_k-hint { (language.say("Holds with On or Off; inherited, both come from the same place.", "与“开”或“关”一同生效；继承时两者来源相同。")) }
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
            (flag("require_review_on_change", language.say("A changed tool waits until an administrator approves it", "工具变更须经管理员批准")))
            (flag("keep_missed_queries", language.say("Keep the queries that found nothing, to mend them by aliases", "保留无结果的查询，以便用别名改进")))
            (flag("management_tools", language.say("Agents get two tools to set this up in a conversation; writing takes a setup key", "为代理提供两个工具，在对话中完成设置；写入需要 setup 密钥")))
        }
    }
}

/// The layer that a value comes from.
fn origin_name(language: Language, origin: &str) -> &str {
    match (language, origin) {
        (Language::Chinese, "default") => "默认",
        (Language::Chinese, "user") => "用户",
        (Language::Chinese, "project") => "项目",
        (Language::Chinese, "merged") => "合并",
        _ => origin,
    }
}

/// How a matcher stands.
fn matcher_name(language: Language, status: &str) -> &str {
    match (language, status) {
        (Language::Chinese, "configured") => "已配置",
        (Language::Chinese, "failing") => "没有应答",
        (Language::Chinese, "blocked_address") => "地址不被允许",
        (Language::Chinese, "key_unreadable") => "无法读取密钥",
        _ => status,
    }
}

/// What agents go by at present, with the layer that each value comes from; of the keys that the draft changes, what they would go by
/// with it.
fn in_force(
    language: Language,
    effective: &EffectiveConfig,
    changed: &BTreeSet<&str>,
    then: &Map<String, Value>,
) -> Markup {
    let origin = |value: &Value| value.get("origin").and_then(Value::as_str).unwrap_or_default().to_owned();
    let value = |entry: Option<&Value>| entry.and_then(|entry| entry.get("value")).map(short);
    let from =
        |entry: Option<&Value>| origin_name(language, &entry.map(origin).unwrap_or_default()).to_owned();
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
                        th scope="col" { (language.say("With this draft", "应用草稿后")) }
                    } }
                    tbody {
                        @for name in names {
                            @let entry = effective.config.get(name);
                            tr {
                                th.name.most scope="row" { (name) }
                                td.full { span.clip { (value(entry).unwrap_or_default()) } " " span.whole { "(" (from(entry)) ")" } }
                                td.full {
                                    @if changed.contains(name) {
                                        @let entry = then.get(name);
                                        (tag(Standing::Info, language.say("changed", "已更改"))) " "
                                        span.clip { (value(entry).unwrap_or_default()) }
                                        " " span.whole { "(" (from(entry)) ")" }
                                    } @else { (language.say("the same", "不变")) }
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
                        html! { (language.say("Matcher in force:", "当前匹配器：")) " " (matcher_name(language, effective.matcher.status)) },
                        tell(language, effective.matcher.detail.as_deref().unwrap_or_default()),
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
