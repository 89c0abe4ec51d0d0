//! The overview of a scope: what it saves, whether search works, and what wants attention.

mod attention;
mod begin;
mod csv;
mod days;
mod tools;

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use self::days::Days;
use super::language::{Language, counted, number, percent, short};
use super::layout::{Section, kind_name, page};
use super::parts::{Share, State as Standing, figure, head, named_token_bar, notice, saved};
use super::reasons::still_works;
use super::translate::tell;
use super::visitor::{Place, base};
use super::{shown, turn, waiting};
use crate::core::id::{Id, Scope};
use crate::http::problem::Problem;
use crate::service::{BrowseQuery, GrantFields, MatcherState, Overview, Toolrack, UsageNumbers};

pub(super) use csv::export;

/// The periods that one can choose, in days.
const PERIODS: [u32; 3] = [7, 30, 90];

/// The period that is shown unless another one is asked for.
const USUAL_PERIOD: u32 = 30;

/// Projects that are linked where a user's requests are counted.
const SHOWN_PROJECTS: usize = 20;

/// What to show.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    days: String,
    /// Whether the visitor comes from applying a draft.
    applied: String,
}

impl Asked {
    fn days(&self) -> u32 {
        let asked = self.days.parse().ok();
        asked.filter(|days| PERIODS.contains(days)).unwrap_or(USUAL_PERIOD)
    }
}

/// The user and the project that a scope is.
fn named(scope: &Scope) -> (Option<Id>, Option<Id>) {
    match scope {
        Scope::User(user) => (Some(user.clone()), None),
        Scope::Project(project) => (None, Some(project.clone())),
    }
}

/// The overview.
pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let language = place.visitor.language;
    let (user, project) = named(&place.scope);
    let overview = service.overview(user.clone(), project.clone(), asked.days()).await?;
    let attention = service.attention(&place.scope, place.visitor.is_admin()).await?;
    let matcher = service.effective_config(user, project).await?.matcher;
    let waiting = service.waiting_draft(&place.scope).await?;
    let elsewhere = match &place.scope {
        Scope::User(user) => service.projects_of(user).await?,
        Scope::Project(_) => Vec::new(),
    };
    let totals = &overview.totals;
    let is_used = totals.assemblies + totals.searches + totals.describes + totals.calls > 0;
    let content = if is_used {
        html! {
            section.card { (hero(language, totals)) (figures(&place, totals)) }
            (days::charts(&place, &overview, &attention))
            (tools::lists(&place, &overview))
        }
    } else {
        let caller = place.caller();
        let catalog = service.browse_catalog(&caller, &place.scope, BrowseQuery::default()).await?;
        if catalog.tools == 0 {
            begin::first_run(&place)
        } else {
            let turn = service.try_turn(&caller, &GrantFields::default()).await?;
            html! {
                (turn::tokens(language, &turn))
                (begin::unused(&place, overview.days))
                @if let Some(attention) = attention::card(&place, &overview, &attention) { (attention) }
            }
        }
    };
    let title = language.say("Overview", "概览");
    let content = html! {
        (head(title, about(&place, &overview), Some(actions(&place, overview.days))))
        @if asked.applied == "1" { (applied(&place)) }
        (waiting::on_overview(&place, waiting))
        (matcher_notice(&place, &matcher))
        (counted_elsewhere(&place, &elsewhere))
        (content)
    };
    Ok(shown(page(&place, Section::Overview, title, &content)))
}

fn about(place: &Place, overview: &Overview) -> String {
    let language = place.visitor.language;
    let kind = kind_name(language, &place.scope);
    match language {
        Language::English => {
            format!("{kind} {}. Last {} days, all agents; days are UTC.", place.scope.id(), overview.days)
        }
        Language::Chinese => {
            format!("{kind} {}。最近 {} 天，全部代理；日期为 UTC。", place.scope.id(), overview.days)
        }
    }
}

fn actions(place: &Place, days: u32) -> Markup {
    let language = place.visitor.language;
    html! {
        nav.tabs aria-label=(language.say("Period", "时段")) {
            @for period in PERIODS {
                a href={(place.path("overview")) "?days=" (period)} aria-current=[(period == days).then_some("true")] {
                    (period) " " (language.say("days", "天"))
                }
            }
        }
        a.btn href={(place.path("overview.csv")) "?days=" (days)} download { (language.say("Export CSV", "导出 CSV")) }
    }
}

fn applied(place: &Place) -> Markup {
    let language = place.visitor.language;
    let links = html! {
        (language.say("It holds from the next request on. ", "自下个请求起生效。"))
        a href=(place.path("playground")) { (language.say("Try it in the playground", "在试验台试用")) }
        (language.say(", or ", "，或"))
        a href=(place.path("setup/versions")) { (language.say("put an earlier version back", "恢复历史版本")) }
        (language.say(".", "。"))
    };
    notice(Standing::Ok, language.say("Applied.", "已应用。"), links)
}

/// Requests that name a project are counted there, which explains a user's small numbers.
fn counted_elsewhere(place: &Place, projects: &[Id]) -> Markup {
    let language = place.visitor.language;
    let seen: Vec<Scope> = projects
        .iter()
        .map(|project| Scope::Project(project.clone()))
        .filter(|project| place.visitor.covers(project))
        .collect();
    if seen.is_empty() {
        return html! {};
    }
    let links = html! {
        (language.say("Sessions of this user name a project, and what they come to is counted there: ", "此用户的会话指明了项目，其用量计入项目："))
        @for (at, project) in seen.iter().take(SHOWN_PROJECTS).enumerate() {
            @if at > 0 { ", " }
            a href={ (base(project)) "/overview" } { (project.id()) }
        }
        @if seen.len() > SHOWN_PROJECTS { " … " (number(seen.len() - SHOWN_PROJECTS)) }
    };
    notice(Standing::Info, "", links)
}

/// A matcher that cannot be asked: what happened, what still works, what to do.
fn matcher_notice(place: &Place, matcher: &MatcherState) -> Markup {
    let language = place.visitor.language;
    let title = match matcher.status {
        "failing" => language.say("The matcher does not answer.", "匹配器没有应答。"),
        "blocked_address" => {
            language.say("The matcher's address is not allowed here.", "匹配器的地址不被允许。")
        }
        "key_unreadable" => language.say("The matcher's key cannot be read.", "无法读取匹配器的密钥。"),
        _ => return html! {},
    };
    let text = html! {
        (still_works(language))
        @if let Some(detail) = &matcher.detail { p.note { (tell(language, detail)) } }
        p { a href=(place.path("setup/matcher")) { (language.say("Look at the matcher", "查看匹配器")) } }
    };
    notice(Standing::Bad, title, text)
}

/// What a turn costs beside what all tools would.
fn hero(language: Language, totals: &UsageNumbers) -> Markup {
    if totals.assemblies == 0 {
        let text = language.say(
            "No turn was assembled in these days; agents only searched or called.",
            "这段时间没有组装过回合；代理只进行了搜索或调用。",
        );
        return html! { p.body.note { (text) } };
    }
    let a_turn = |tokens: u64| tokens / totals.assemblies;
    let (all, answers) = (a_turn(totals.tokens_all), a_turn(totals.tokens_answers));
    let listing = a_turn(totals.tokens_listing);
    let tools = a_turn(totals.tokens_sent.saturating_sub(totals.tokens_listing));
    let sent = tools + listing + answers;
    let shares = [
        (Share { class: "warm", tokens: tools }, language.say("Tools", "工具")),
        (Share { class: "listing", tokens: listing }, language.say("Listing", "清单")),
        (Share { class: "bridge", tokens: answers }, language.say("Answers", "应答")),
        (Share { class: "rest", tokens: all.saturating_sub(sent) }, language.say("Not sent", "未发送")),
    ];
    let note = match (language, sent <= all) {
        (Language::English, true) => format!("{} fewer. What models read of searches counts as sent.", saved(sent, all)),
        (Language::Chinese, true) => format!("减少 {}。模型读到的搜索应答计入发送。", saved(sent, all)),
        (Language::English, false) => {
            "More than all tools would cost: answers of searches count as sent. With so few tools it may be better to send them all."
                .to_owned()
        }
        (Language::Chinese, false) => "多于全部工具的开销：搜索应答计入发送。工具这么少时，全部发送可能更好。".to_owned(),
    };
    html! {
        div.body {
            div {
                h2 { (language.say("Tool tokens per turn", "每回合的工具词元")) }
                p.big-figure {
                    (number(sent)) " "
                    small { (language.say("sent, of ", "已发送，全部为 ")) (number(all)) }
                }
                p.note { (note) }
            }
            (named_token_bar(language, &shares, "big"))
        }
    }
}

/// The numbers of the period.
fn figures(place: &Place, totals: &UsageNumbers) -> Markup {
    let language = place.visitor.language;
    let sessions = html! {
        a href=(place.path("sessions")) { (counted(language, totals.sessions, "session", "sessions", "个会话")) }
        (language.say(" began", "开始"))
    };
    let lost = if totals.saved < 0 { "−" } else { "" };
    let per_turn = totals.searches as f64 / totals.assemblies.max(1) as f64;
    let per_turn = match language {
        Language::English => format!("{per_turn:.2} per turn"),
        Language::Chinese => format!("每回合 {per_turn:.2} 次"),
    };
    let missed = totals.missed_percent.map_or_else(|| "–".to_owned(), |share| format!("{share:.1} %"));
    let of_queries = match language {
        Language::English => {
            format!(
                "{} of {}",
                number(totals.missed),
                counted(language, totals.queries, "query", "queries", "")
            )
        }
        Language::Chinese => format!("{} 个查询中的 {} 个", number(totals.queries), number(totals.missed)),
    };
    let latency = totals.search_latency;
    let breaks: u64 = totals.cache_breaks.values().sum();
    let kept = totals.assemblies.saturating_sub(breaks);
    html! {
        dl.figures {
            (figure(language.say("Turns", "回合"), number(totals.assemblies), sessions))
            (figure(
                language.say("Tokens saved", "节省词元"),
                html! { (lost) (short(language, totals.saved.unsigned_abs())) },
                language.say("net of answers", "已减去应答"),
            ))
            (figure(language.say("Searches", "搜索"), number(totals.searches), per_turn))
            (figure(language.say("Found nothing", "未找到"), missed, of_queries))
            (figure(
                language.say("Search p95", "搜索 p95"),
                latency.p95_ms.map_or_else(|| "–".to_owned(), days::milliseconds),
                html! { "p50 " (latency.p50_ms.map_or_else(|| "–".to_owned(), days::milliseconds)) },
            ))
            @if totals.assemblies > 0 {
                (figure(
                    language.say("Prompt cache kept", "提示缓存保持"),
                    percent(kept, totals.assemblies),
                    counted(language, breaks, "break", "breaks", "次中断"),
                ))
            }
        }
    }
}

/// The days of an overview with their numbers, ready for charts.
fn days_of(overview: &Overview) -> Days<'_> {
    Days {
        dates: overview.series.iter().map(|day| day.date.as_str()).collect(),
        counts: overview.series.iter().map(|day| &day.counts).collect(),
    }
}
