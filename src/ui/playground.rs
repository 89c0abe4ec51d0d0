//! The playground: a query as a model would send it, what finds which tool, and what the next turn sends.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::explain::hits;
use super::language::{Language, number};
use super::layout::{Section, page};
use super::parts::{State as Standing, head, notice, token_count, warnings};
use super::reasons::{reason, still_works};
use super::translate::tell;
use super::visitor::Place;
use super::{shown, turn};
use crate::core::format::Format;
use crate::core::id::{Id, Scope};
use crate::core::profile::Profile;
use crate::core::warning::Warning;
use crate::http::problem::Problem;
use crate::service::{
    Caller, Error, GrantFields, Kind, QueryResult, SearchAnswer, SearchMode, Toolrack, Trial, TrialRequest,
};

/// What to try, and for whom.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    q: String,
    format: String,
    profile: String,
    limit: String,
    window: String,
    user: String,
}

impl Asked {
    fn fields(&self) -> GrantFields {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        GrantFields {
            format: given(&self.format),
            profile: given(&self.profile),
            context_window: self.window.trim().parse().ok(),
            ..GrantFields::default()
        }
    }

    fn is_special(&self) -> bool {
        [&self.format, &self.profile, &self.limit, &self.window, &self.user]
            .iter()
            .any(|text| !text.is_empty())
    }

    /// Who asks; nothing where this person may not ask for that user.
    fn caller(&self, place: &Place) -> Result<Option<Caller>, Problem> {
        let caller = place.caller();
        if !matches!(place.scope, Scope::Project(_)) || self.user.trim().is_empty() {
            return Ok(Some(caller));
        }
        let user = Id::parse(self.user.trim()).ok();
        let user = user.filter(|user| place.visitor.principal.covers(Some(user), caller.project.as_ref()));
        Ok(user.map(|user| Caller { user, ..caller }))
    }
}

/// Tries a query, if there is one, and the next turn.
pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let language = place.visitor.language;
    let tried = match asked.caller(&place)? {
        Some(caller) => tried(&service, &place, &asked, caller).await?,
        None => notice(
            Standing::Bad,
            language.say("Not tried:", "未执行："),
            language.say(
                "your key does not cover this user, or it is no name.",
                "您的密钥不涵盖此用户，或名称无效。",
            ),
        ),
    };
    let title = language.say("Playground", "试验台");
    let about = language.say(
        "Ask as a model would. Nothing you do here warms a tool or counts as usage.",
        "像模型一样提问。此处的操作不会影响会话，也不计入使用统计。",
    );
    let content = html! { (head(title, about, None)) (form(&place, &asked)) (tried) };
    Ok(shown(page(&place, Section::Playground, title, &content)))
}

fn form(place: &Place, asked: &Asked) -> Markup {
    let language = place.visitor.language;
    let usual = language.say("as configured", "按配置");
    html! {
        form.card method="get" action=(place.path("playground")) role="search" {
            div.ask {
                input type="search" name="q" value=(asked.q) data-search maxlength="2000" autocomplete="off"
                    aria-label=(language.say("What is to be done", "要做什么"))
                    placeholder=(language.say("What is to be done, for example: send the report to my team", "要做什么，例如：把报告发给团队"));
                button.btn.primary type="submit" { (language.say("Search", "搜索")) }
            }
            details.more open[asked.is_special()] {
                summary { (language.say("For another model", "其他模型")) }
                div.fields {
                    div.field {
                        label for="p-format" { (language.say("Format", "格式")) }
                        select #p-format name="format" {
                            option value="" { (usual) }
                            @for format in Format::ALL {
                                option value=(format.as_str()) selected[format.as_str() == asked.format] { (format.as_str()) }
                            }
                        }
                    }
                    div.field {
                        label for="p-profile" { (language.say("Provider", "提供商")) }
                        select #p-profile name="profile" {
                            option value="" { (usual) }
                            @for profile in Profile::ALL {
                                option value=(profile.as_str()) selected[profile.as_str() == asked.profile] { (profile.as_str()) }
                            }
                        }
                    }
                    div.field {
                        label for="p-limit" { (language.say("Results", "结果数")) }
                        input #p-limit type="number" name="limit" value=(asked.limit) min="1" max="50" placeholder=(usual);
                    }
                    div.field {
                        label for="p-window" { (language.say("Context window", "上下文窗口")) }
                        input #p-window type="number" name="window" value=(asked.window) min="1000" max="10000000" placeholder=(usual);
                    }
                    @if matches!(place.scope, Scope::Project(_)) {
                        div.field {
                            label for="p-user" { (language.say("User", "用户")) }
                            input #p-user type="text" name="user" value=(asked.user) maxlength="128" autocomplete="off" spellcheck="false"
                                placeholder=(language.say("the project alone", "仅项目"));
                        }
                    }
                }
            }
        }
    }
}

async fn tried(service: &Toolrack, place: &Place, asked: &Asked, caller: Caller) -> Result<Markup, Problem> {
    let language = place.visitor.language;
    let fields = asked.fields();
    let turn = match service.try_turn(&caller, &fields).await {
        Ok(turn) => turn::turn(language, &turn),
        Err(error) => refused(language, error)?,
    };
    let query = asked.q.trim();
    if query.is_empty() {
        return Ok(turn);
    }
    let limit = asked.limit.trim().parse().ok();
    let request = TrialRequest { caller, fields, query: query.to_owned(), limit };
    let results = match service.try_query(request).await {
        Ok(trial) => results(place, &trial),
        Err(error) => refused(language, error)?,
    };
    Ok(html! { (results) (turn) })
}

/// What the service does not take of what was typed, on the page; what fails is a page of its own.
fn refused(language: Language, error: Error) -> Result<Markup, Problem> {
    if matches!(error.kind(), Kind::Unavailable | Kind::Internal) {
        return Err(error.into());
    }
    Ok(notice(Standing::Bad, language.say("Not tried:", "未执行："), tell(language, error.detail())))
}

fn results(place: &Place, trial: &Trial) -> Markup {
    let language = place.visitor.language;
    let keyword_title = language.say("Keyword", "关键词");
    let ranked = trial.endpoint.as_ref().filter(|answer| !answer.degraded);
    let mut told: Vec<Warning> = trial.keyword.warnings.clone();
    told.extend(trial.endpoint.iter().flat_map(|answer| answer.warnings.iter().cloned()));
    told.dedup();
    html! {
        @if let Some(answer) = trial.endpoint.as_ref().filter(|answer| answer.degraded) {
            @let why = reason(language, answer.reason.unwrap_or_default());
            (notice(
                Standing::Warn,
                language.say("The matcher does not answer.", "匹配器没有应答。"),
                html! {
                    (why) " " (still_works(language)) " "
                    code { "reason: " (answer.reason.unwrap_or_default()) } " "
                    a href=(place.path("setup/matcher")) { (language.say("Test the matcher", "测试匹配器")) }
                },
            ))
        }
        section.card {
            h2.quiet { (language.say("Results", "结果")) }
            div.pair.single[trial.endpoint.is_none()] {
                (answered(place, keyword_title, language.say("needs no server", "无需服务器"), &trial.keyword))
                @if let Some(answer) = ranked {
                    @let name = if answer.mode == SearchMode::Embedding {
                        language.say("Embedding", "向量")
                    } else {
                        language.say("Rerank", "重排")
                    };
                    (answered(place, name, language.say("the configured matcher", "已配置的匹配器"), answer))
                } @else if trial.endpoint.is_some() {
                    section {
                        div.card-head { h3 { (language.say("Matcher", "匹配器")) } }
                        p.body.note { (language.say("No ranking of its own this time.", "此次没有单独的排序。")) }
                    }
                }
            }
            @if trial.endpoint.is_none() {
                footer {
                    span { (language.say("No matcher is configured: keywords rank, which is fine for most catalogs.", "未配置匹配器：使用关键词排序，对多数目录已足够。")) }
                    a href=(place.path("setup/matcher")) { (language.say("Add one", "添加")) }
                }
            }
        }
        (warnings(language, &told))
        (read_by_model(language, trial.endpoint.as_ref().unwrap_or(&trial.keyword)))
    }
}

fn answered(place: &Place, title: &str, about: &str, answer: &SearchAnswer) -> Markup {
    let language = place.visitor.language;
    let Some(result) = answer.results.first() else { return html! {} };
    html! {
        section {
            div.card-head { h3 { (title) } span.note { (number(answer.took_ms)) " ms, " (about) } }
            @if result.matches.is_empty() { (nothing(place, result)) } @else { (hits(place, &result.matches)) }
            @if result.matches.is_empty() && result.nearest.as_ref().is_some_and(|nearest| !nearest.is_empty()) {
                p.body.note { (language.say("Nearest, possibly unrelated; never warmed:", "最接近的工具，可能无关，不会进入热集：")) }
                (hits(place, result.nearest.as_deref().unwrap_or_default()))
            }
        }
    }
}

fn nothing(place: &Place, result: &QueryResult) -> Markup {
    let language = place.visitor.language;
    html! {
        div.body.none {
            p { b { (language.say("Nothing fits well enough.", "没有足够匹配的工具。")) } }
            @if let Some(hint) = &result.hint { p { (language.say("The model is told:", "告知模型：")) " “" (hint) "”" } }
            @if let Some(groups) = result.groups.as_ref().filter(|groups| !groups.is_empty()) {
                details {
                    summary { (language.say("and of these groups", "以及这些分组")) " (" (number(groups.len())) ")" }
                    ul.chips { @for group in groups { li { (group.name) " " (number(group.tools)) } } }
                }
            }
        }
    }
}

/// The answer as the model reads it.
fn read_by_model(language: Language, answer: &SearchAnswer) -> Markup {
    let Some(formed) = &answer.answer else { return html! {} };
    let text: String = serde_json::from_str(formed.content.get()).unwrap_or_default();
    let tokens = token_count(language, formed.tokens);
    let content = html! {
        details.fold {
            summary { (language.say("The answer as the model reads it", "模型读到的应答")) span.note { (tokens) } }
            pre tabindex="0" { (super::pretty(&text)) }
        }
    };
    html! { section.card { (content) } }
}
