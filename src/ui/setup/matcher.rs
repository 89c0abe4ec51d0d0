//! Step four: the endpoint that ranks tools, tried before it is stored. Doing without is fine.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use super::presets::{KINDS, Preset};
use super::refused::refusal;
use super::{DraftForm, Step, keep, made_for, set, step_page, store};
use crate::http::layers::HttpContext;
use crate::http::problem::{Code, Problem};
use crate::service::{MatcherTestAnswer, MatcherTestRequest, SetupDraft, Toolrack};
use crate::ui::form::Form;
use crate::ui::language::{Language, number};
use crate::ui::parts::{State as Standing, card, notice, warnings};
use crate::ui::translate::tell;
use crate::ui::visitor::Place;

/// Fields that are texts in the document.
const TEXTS: [&str; 5] = ["kind", "endpoint", "model", "dialect", "instruction"];

/// Fields that are whole numbers.
const NUMBERS: [&str; 3] = ["top_n", "max_documents", "timeout_ms"];

/// What the page shows beside the form.
#[derive(Default)]
struct Tried {
    answer: Option<MatcherTestAnswer>,
    /// What was not done, and why.
    refusal: Option<(&'static str, Problem)>,
    /// The sample query as it was typed.
    query: String,
}

/// The form, as the draft has it.
pub(super) async fn show(State(service): State<Toolrack>, place: Place) -> Result<Response, Problem> {
    let draft = service.draft(&place.scope).await?;
    let stored = stored_key(&service, &place).await?;
    // An import may have brought it.
    let title = place.visitor.language.say("This cannot be applied yet:", "暂时无法应用：");
    let refusal = service.endpoint_fault(&draft).map(|error| (title, Problem::from(error)));
    Ok(matcher_page(&place, &draft, stored.as_deref(), &Tried { refusal, ..Tried::default() }))
}

/// Keeps the settings in the draft; tries them, or goes on.
pub(super) async fn save(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    place: Place,
    mut form: DraftForm,
) -> Result<Response, Problem> {
    let mut draft = service.draft(&place.scope).await?;
    if form.text("do") == "skip" {
        set(&mut draft, "matcher", None);
        draft.set_api_key(None);
        let on = place.path(Step::Scope.path());
        return keep(service, place, &mut draft, &form, &on).await;
    }
    let matcher = matcher_of(&form, draft.config.get("matcher"));
    set(&mut draft, "matcher", (!matcher.is_empty()).then(|| Value::Object(matcher.clone())));
    let typed_key = Some(form.text("api_key")).filter(|key| !key.is_empty());
    let typed_key = typed_key.map(|key| SecretString::from(key.to_owned()));
    let had_endpoint = !form.text("endpoint").is_empty();
    if let Some(key) = typed_key.clone() {
        draft.set_api_key(Some(key));
    }
    let preset = Preset::of(form.text("preset"));
    if let Some((kind, preset)) = &preset {
        let matcher = json!({"kind": kind, "endpoint": preset.endpoint, "model": preset.model});
        set(&mut draft, "matcher", Some(matcher));
        // A key that was typed beside no address is for the one that is chosen; one for another address is given up, and the
        // page says so.
        if let Some(key) = typed_key.filter(|_| !had_endpoint) {
            draft.set_api_key(Some(key));
        }
    }
    // What may not be called is told where it is typed, and not at the end.
    let blocked = service.endpoint_fault(&draft).map(Problem::from);
    let refused = match blocked {
        Some(problem) => Some(problem),
        None => store(&service, &place, &mut draft).await?,
    };
    if let Some(problem) = refused {
        let not_kept = place.visitor.language.say("Not kept:", "未保存：");
        let query = form.text("query").to_owned();
        let tried = Tried { refusal: Some((not_kept, problem)), query, ..Tried::default() };
        let stored = stored_key(&service, &place).await?;
        // The key that was typed is not kept either.
        let mut kept = std::mem::take(&mut form.draft);
        kept.config = draft.config;
        return Ok(matcher_page(&place, &kept, stored.as_deref(), &tried));
    }
    if preset.is_some() {
        return Ok(crate::ui::go(&place.path(Step::Matcher.path())));
    }
    if form.text("do") != "test" {
        return Ok(crate::ui::go(&place.path(Step::Scope.path())));
    }
    let limit = context.limits().request_timeout;
    let tried = try_out(&service, &place, &draft, form.text("query"), limit - limit / 20).await?;
    let stored = stored_key(&service, &place).await?;
    Ok(matcher_page(&place, &draft, stored.as_deref(), &tried))
}

async fn try_out(
    service: &Toolrack,
    place: &Place,
    draft: &SetupDraft,
    query: &str,
    within: Duration,
) -> Result<Tried, Problem> {
    let mut tried = Tried { query: query.to_owned(), ..Tried::default() };
    let mut matcher = draft.config.get("matcher").cloned().unwrap_or_else(|| json!({}));
    if let (Some(key), Value::Object(matcher)) = (draft.api_key(), &mut matcher) {
        matcher.insert("api_key".to_owned(), key.expose_secret().into());
    }
    let query = (!query.is_empty()).then(|| query.to_owned());
    let caller = place.caller();
    let input = draft.input(caller.clone());
    let request = MatcherTestRequest { caller, draft: Some(input), matcher, query, within };
    match service.test_matcher(request).await.map_err(Problem::from) {
        Ok(answer) => tried.answer = Some(answer),
        Err(problem) if problem.code() == Code::InvalidRequest => {
            tried.refusal = Some((place.visitor.language.say("Not tried:", "未测试："), problem));
        }
        Err(problem) => return Err(problem),
    }
    Ok(tried)
}

/// The document of the fields; what the form does not show stays as the draft had it.
fn matcher_of(form: &Form, before: Option<&Value>) -> Map<String, Value> {
    let mut matcher = before.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut put = |name: &str, value: Option<Value>| match value {
        Some(value) => drop(matcher.insert(name.to_owned(), value)),
        None => drop(matcher.shift_remove(name)),
    };
    for name in TEXTS {
        let text = form.text(name);
        put(name, (!text.is_empty()).then(|| text.into()));
    }
    for name in NUMBERS {
        // What is no number is taken as it was typed: the page says where it stands.
        let text = form.text(name);
        let value = text.parse::<u64>().map_or_else(|_| text.into(), Value::from);
        put(name, (!text.is_empty()).then_some(value));
    }
    let score = form.text("min_score");
    let value = score.parse::<f64>().map_or_else(|_| score.into(), Value::from);
    put("min_score", (!score.is_empty()).then_some(value));
    if form.text("endpoint").is_empty() {
        matcher.clear();
    }
    matcher
}

/// How the stored key of the scope ends, where there is one.
async fn stored_key(service: &Toolrack, place: &Place) -> Result<Option<String>, Problem> {
    let stored = service.config(&place.scope).await?.document;
    let key = stored.get("matcher").and_then(|matcher| matcher.get("api_key"));
    let is_set = key.and_then(|key| key.get("set")) == Some(&Value::Bool(true));
    let last4 = key.and_then(|key| key.get("last4")).and_then(Value::as_str).unwrap_or_default();
    Ok(is_set.then(|| last4.to_owned()))
}

fn matcher_page(place: &Place, draft: &SetupDraft, stored: Option<&str>, tried: &Tried) -> Response {
    let language = place.visitor.language;
    let content = html! {
        @if let Some((title, problem)) = &tried.refusal {
            (refusal(language, title, problem, |pointer| field_name(language, pointer)))
        }
        (test_card(language, tried))
        div.columns {
            form.card.form method="post" action=(place.path(Step::Matcher.path())) #matcher {
                (made_for(place, draft))
                (fields(language, draft, stored, &tried.query))
            }
            div {
                (presets(place))
                (notice(Standing::Info,
                    language.say("You can go on without one.", "也可以不设置。"),
                    language.say(
                        "Search then goes by words and by the built-in vectors. An endpoint finds more of what is said in other words, and in other languages.",
                        "此时按词语和内置向量搜索。端点更能理解换一种说法或其他语言的请求。",
                    )))
                form method="post" action=(place.path(Step::Matcher.path())) {
                    (made_for(place, draft))
                    button.btn name="do" value="skip" type="submit" { (language.say("Go on without a matcher", "跳过匹配器")) }
                }
            }
        }
    };
    let on = html! {
        button.btn.primary type="submit" form="matcher" name="do" value="on" { (language.say("Continue to Scope", "继续：范围")) }
    };
    let about = language.say(
        "An endpoint of yours that ranks tools for a query. Does it answer, and is it worth having?",
        "由您的端点为查询对工具排序。它能否响应？是否值得？",
    );
    step_page(place, Step::Matcher, draft, (language.say("Matcher", "匹配器"), about), &content, Some(on))
}

fn fields(language: Language, draft: &SetupDraft, stored: Option<&str>, query: &str) -> Markup {
    let matcher = draft.config.get("matcher").and_then(Value::as_object);
    let value = |name: &str| match matcher.and_then(|matcher| matcher.get(name)) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let key_hint = match (draft.api_key(), stored) {
        (Some(_), _) => language
            .say(
                "One is kept in this draft, sealed. Leave empty to keep it.",
                "草稿中已加密保存一个密钥，留空则保留。",
            )
            .to_owned(),
        (None, _) if draft.key_cleared => language
            .say(
                "The key of this draft was cleared, because the endpoint has another address now or the server another master key. \
                 Enter it again.",
                "端点地址或服务器主密钥已变更，草稿中的密钥已清除，请重新输入。",
            )
            .to_owned(),
        (None, Some(last4)) => format!(
            "{} …{last4}. {}",
            language.say("Stored:", "已保存："),
            language.say("Leave empty to keep it.", "留空则保留。")
        ),
        (None, None) => {
            language.say("Sealed when stored, never shown again.", "加密保存，不再显示。").to_owned()
        }
    };
    let number_field = |name: &'static str, label: &'static str, usual: &'static str| {
        html! {
            div.field {
                label for=(name) { (label) }
                input id=(name) type="number" name=(name) value=(value(name)) placeholder=(usual) inputmode="numeric";
            }
        }
    };
    html! {
        div.field {
            label for="endpoint" { (language.say("Endpoint", "端点")) }
            input #endpoint.mono type="url" name="endpoint" value=(value("endpoint")) placeholder="https://api.cohere.com/v2/rerank"
                spellcheck="false" autocomplete="off" aria-describedby="endpoint-hint";
            p.hint #endpoint-hint { (language.say("A base address or the whole URL of the route.", "基础地址或完整的路由 URL。")) }
        }
        div.two {
            div.field {
                label for="model" { (language.say("Model", "模型")) }
                input #model.mono type="text" name="model" value=(value("model")) spellcheck="false" autocomplete="off";
            }
            div.field {
                label for="kind" { (language.say("What it does", "类型")) }
                select #kind name="kind" {
                    @for (kind, name) in KINDS.map(|(kind, _)| (kind, kind_name(language, kind))) {
                        option value=(kind) selected[value("kind") == kind] { (name) }
                    }
                }
            }
        }
        div.field {
            label for="api_key" { (language.say("Key", "密钥")) }
            input #api_key type="password" name="api_key" autocomplete="off" spellcheck="false" aria-describedby="key-hint";
            p.hint #key-hint { (key_hint) }
        }
        div.field {
            label for="query" { (language.say("Sample query", "示例查询")) }
            input #query type="text" name="query" value=(query) data-search maxlength="2000"
                placeholder=(language.say("customer was charged twice, give the money back", "客户被重复扣款，需要退款"));
        }
        div.actions {
            button.btn.primary name="do" value="test" type="submit" data-busy=(language.say("Testing…", "测试中…")) {
                (language.say("Test", "测试"))
            }
            button.btn name="do" value="on" type="submit" { (language.say("Keep and continue", "保存并继续")) }
        }
        details {
            summary { (language.say("More options", "更多选项")) }
            div.form {
                div.two {
                    div.field {
                        label for="dialect" { (language.say("Shape of requests", "请求格式")) }
                        select #dialect name="dialect" {
                            @for dialect in DIALECTS { option value=(dialect) selected[value("dialect") == *dialect] { (dialect) } }
                        }
                    }
                    (number_field("timeout_ms", language.say("Time-out, ms", "超时（毫秒）"), "15000"))
                    (number_field("top_n", language.say("Matches asked for", "返回数量"), "20"))
                    (number_field("max_documents", language.say("Tools sent at most", "最多发送工具数"), "200"))
                    div.field {
                        label for="min_score" { (language.say("Lowest score that counts", "最低分数")) }
                        input #min_score type="text" name="min_score" value=(value("min_score")) inputmode="decimal";
                    }
                    div.field {
                        label for="instruction" { (language.say("Instruction", "指令")) }
                        input #instruction type="text" name="instruction" value=(value("instruction"));
                    }
                }
            }
        }
        p.note { (language.say("Queries and tool texts go to this host, and nowhere else.", "查询和工具文本只发送到该主机。")) }
    }
}

/// What the page calls the field at a pointer of a refusal.
pub(super) fn field_name(language: Language, pointer: &str) -> Option<String> {
    let name = match pointer.rsplit('/').next()? {
        "endpoint" => language.say("Endpoint", "端点"),
        "model" => language.say("Model", "模型"),
        "api_key" => language.say("Key", "密钥"),
        "query" => language.say("Sample query", "示例查询"),
        "dialect" => language.say("Shape of requests", "请求格式"),
        "timeout_ms" => language.say("Time-out, ms", "超时（毫秒）"),
        "top_n" => language.say("Matches asked for", "返回数量"),
        "max_documents" => language.say("Tools sent at most", "最多发送工具数"),
        "min_score" => language.say("Lowest score that counts", "最低分数"),
        "instruction" => language.say("Instruction", "指令"),
        _ => return None,
    };
    Some(name.to_owned())
}

/// What the models of a kind do.
fn kind_name(language: Language, kind: &str) -> &'static str {
    match kind {
        "embedding" => language.say("Makes vectors (embedding)", "向量"),
        _ => language.say("Ranks texts (rerank)", "重排"),
    }
}

/// As the config takes them; the first is the usual one.
const DIALECTS: &[&str] =
    &["auto", "cohere", "tei", "dashscope", "nim", "voyage", "mixedbread", "pinecone", "elastic", "openai"];

fn presets(place: &Place) -> Markup {
    let language = place.visitor.language;
    card(
        language.say("Providers", "服务商"),
        language.say("fills in address and model", "填入地址和模型"),
        &html! {
            div.body {
                @for (kind, presets) in KINDS {
                    p.note { (kind_name(language, kind)) }
                    // With the form, so that a key that was typed is not lost.
                    div.actions {
                        @for preset in presets {
                            button.btn.small type="submit" form="matcher" name="preset" value={ (kind) " " (preset.name) } { (preset.name) }
                        }
                    }
                }
            }
        },
    )
}

fn test_card(language: Language, tried: &Tried) -> Markup {
    let Some(answer) = &tried.answer else { return html! {} };
    let latency = answer.latency_ms.ranking.or(answer.latency_ms.probe);
    let took = latency.map(|ms| format!("{} ms", number(ms))).unwrap_or_default();
    let title = language.say("Test", "测试结果");
    card(
        title,
        html! { code { (answer.url) } },
        &html! {
            div.body {
                @match &answer.fault {
                    Some(fault) => (notice(Standing::Bad, html! { code { (fault.reason) } }, tell(language, &fault.detail))),
                    None if answer.is_reversed => (notice(Standing::Warn, language.say("It answers, and ranks wrongly:", "有响应，但排序有误："), html! {
                        (took) (language.say("; of two texts the one that has nothing to do with the question came first, so look at model and shape of requests.",
                            "；两段文本中无关的一段排在前面，请检查模型和请求格式。"))
                    })),
                    None => (notice(Standing::Ok, language.say("It answers:", "响应正常："), html! {
                        (took) @if let Some(dialect) = answer.dialect { ", " (dialect) }
                    })),
                }
                @if answer.fault.is_some() {
                    p { (language.say("Searches would go on by keywords, with this reason in the answer.", "搜索会改用关键词，并在响应中说明原因。")) }
                }
                @for note in &answer.notes { p.note { (tell(language, note)) } }
                @if let Some(score) = answer.min_score_proposed {
                    p { (language.say("Proposed lowest score:", "建议最低分数：")) " " b { (format!("{score:.3}")) } }
                }
                (warnings(language, &answer.warnings))
            }
            div.pair.single[answer.ranking.is_empty()] {
                section {
                    div.card-head { h3 { (language.say("By words", "关键词")) } span.note { "“" (answer.query) "”" } }
                    ol.hits {
                        @for (at, sample) in answer.keyword.iter().take(8).enumerate() {
                            (hit(at, &sample.name, sample.score))
                        }
                    }
                }
                @if !answer.ranking.is_empty() {
                    section {
                        div.card-head { h3 { (language.say("By the endpoint", "端点")) } span.note { (took) } }
                        ol.hits {
                            @for (at, sample) in answer.ranking.iter().take(8).enumerate() {
                                (hit(at, &sample.name, sample.score))
                            }
                        }
                    }
                }
            }
        },
    )
}

fn hit(at: usize, name: &str, score: f64) -> Markup {
    html! { li { span { (at + 1) } span.name { (name) } span.right { (format!("{score:.2}")) } } }
}
