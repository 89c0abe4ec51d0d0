//! The setup flow: six pages around one draft. What agents see changes by the last of them alone.

mod apply;
mod core;
mod cost;
mod group;
mod groups;
mod import;
mod lists;
mod matcher;
mod names;
mod offer;
mod outcome;
mod presets;
mod refused;
mod review;
mod scope;
mod server_form;
mod servers;
mod stale;
mod taken;
mod told;
mod toolsets;
mod versions;

pub(super) use apply::{diff_list, difference};
use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use maud::{Markup, html};
use serde_json::Value;

use self::refused::is_mended_in_the_form;
use self::stale::{DraftForm, DraftUpload, made_for};
use super::language::{Language, time};
use super::layout::{Section, page};
use super::parts::{asked_first, head};
use super::visitor::Place;
use super::{go, shown};
use crate::http::problem::Problem;
use crate::http::router::AppState;
use crate::service::{SetupDraft, Toolrack};

/// The pages and forms of the flow.
pub(super) fn routes() -> Vec<(&'static str, MethodRouter<AppState>)> {
    vec![
        ("/ui/{kind}/{id}/setup", get(begin)),
        ("/ui/{kind}/{id}/setup/discard", post(discard)),
        ("/ui/{kind}/{id}/setup/import", get(import::show).post(import::read)),
        ("/ui/{kind}/{id}/setup/review", get(review::show).post(review::decide)),
        ("/ui/{kind}/{id}/setup/groups", get(groups::show).post(groups::edit)),
        ("/ui/{kind}/{id}/setup/servers", get(servers::show).post(servers::change)),
        ("/ui/{kind}/{id}/setup/matcher", get(matcher::show).post(matcher::save)),
        ("/ui/{kind}/{id}/setup/scope", get(scope::show).post(scope::save)),
        ("/ui/{kind}/{id}/setup/apply", get(apply::show).post(apply::apply)),
        ("/ui/{kind}/{id}/setup/rebase", post(apply::rebase)),
        ("/ui/{kind}/{id}/setup/versions", get(versions::show).post(versions::restore)),
    ]
}

/// A page of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Import,
    Review,
    Groups,
    Matcher,
    Scope,
    Apply,
}

impl Step {
    const ALL: [Self; 6] =
        [Self::Import, Self::Review, Self::Groups, Self::Matcher, Self::Scope, Self::Apply];

    const fn path(self) -> &'static str {
        match self {
            Self::Import => "setup/import",
            Self::Review => "setup/review",
            Self::Groups => "setup/groups",
            Self::Matcher => "setup/matcher",
            Self::Scope => "setup/scope",
            Self::Apply => "setup/apply",
        }
    }

    fn name(self, place: &Place) -> &'static str {
        let language = place.visitor.language;
        match self {
            Self::Import => language.say("Import", "导入"),
            Self::Review => language.say("Review", "检查"),
            Self::Groups => language.say("Groups", "分组"),
            Self::Matcher => language.say("Matcher", "匹配器"),
            Self::Scope => language.say("Scope", "范围"),
            Self::Apply => language.say("Apply", "应用"),
        }
    }

    fn neighbour(self, by: isize) -> Option<Self> {
        let at = Self::ALL.iter().position(|step| *step == self)?;
        Self::ALL.get(at.checked_add_signed(by)?).copied()
    }
}

/// To where one begins: the import.
async fn begin(place: Place) -> Response {
    go(&place.path(Step::Import.path()))
}

/// Throws the draft away.
async fn discard(
    State(service): State<Toolrack>,
    place: Place,
    _form: DraftForm,
) -> Result<Response, Problem> {
    service.discard_draft(&place.scope).await?;
    Ok(go(&place.path(Step::Import.path())))
}

/// A page of the flow with its steps above and the way on below. `on`: what leads on, where it is not a link.
fn step_page(
    place: &Place,
    step: Step,
    draft: &SetupDraft,
    (title, about): (&str, &str),
    content: &Markup,
    on: Option<Markup>,
) -> Response {
    let language = place.visitor.language;
    let steps = html! {
        nav aria-label=(language.say("Setup steps", "设置步骤")) {
            ol.steps {
                @for other in Step::ALL {
                    li.done[other < step] {
                        a href=(place.path(other.path())) aria-current=[(other == step).then_some("step")] {
                            (other.name(place))
                        }
                    }
                }
            }
        }
    };
    let saved = match draft.revision {
        0 => language.say("Nothing changed yet. ", "尚无更改。").to_owned(),
        _ => match language {
            Language::English => format!("Draft saved {} UTC. ", time(draft.updated_at_ms)),
            Language::Chinese => format!("草稿保存于 {} UTC。", time(draft.updated_at_ms)),
        },
    };
    let back = step.neighbour(-1);
    let next = step.neighbour(1);
    let content = html! {
        (steps)
        (head(title, about, None))
        @if let Some(told) = &place.told { (told) }
        (content)
        div.flow {
            p.note {
                (saved)
                (language.say("Agents keep the current setup until you apply.", "应用之前，代理继续使用当前设置。"))
            }
            @if draft.revision > 0 {
                form method="post" action=(place.path("setup/discard")) {
                    (made_for(place, draft))
                    (asked_first("", language.say("Throw draft away", "丢弃草稿"),
                        language.say("All that was decided since it was begun is lost. What is stored stays.", "自开始以来的所有决定都将丢失。已保存的内容不变。"),
                        &html! { button.btn.danger type="submit" { (language.say("Yes, throw it away", "确认丢弃")) } }))
                }
            }
            @if let Some(back) = back {
                a.btn href=(place.path(back.path())) { (language.say("Back", "上一步")) }
            }
            @match (on, next) {
                (Some(on), _) => (on),
                (None, Some(next)) => {
                    a.btn.primary href=(place.path(next.path())) {
                        (language.say("Continue to ", "继续：")) (next.name(place))
                    }
                }
                (None, None) => {}
            }
        }
    };
    shown(page(place, Section::Setup, title, &content))
}

/// Stores a draft; answers what it was refused for, where somebody mends that in the form.
async fn store(
    service: &Toolrack,
    place: &Place,
    draft: &mut SetupDraft,
) -> Result<Option<Problem>, Problem> {
    match service.save_draft(&place.scope, draft, &place.visitor.actor).await.map_err(Problem::from) {
        Ok(()) => Ok(None),
        Err(problem) if is_mended_in_the_form(&problem) && !problem.errors().is_empty() => Ok(Some(problem)),
        Err(problem) => Err(problem),
    }
}

/// Stores a draft and leads on; where it is refused, the page of its step says why, with what was sent.
async fn keep(
    service: Toolrack,
    place: Place,
    draft: &mut SetupDraft,
    form: &DraftForm,
    on: &str,
) -> Result<Response, Problem> {
    match store(&service, &place, draft).await? {
        None => Ok(go(on)),
        Some(problem) => Ok(form.refused(service, place, &problem).await),
    }
}

/// Sets a key of a draft's config, or takes it away.
fn set(draft: &mut SetupDraft, key: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(draft.config.insert(key.to_owned(), value)),
        None => drop(draft.config.shift_remove(key)),
    }
}
