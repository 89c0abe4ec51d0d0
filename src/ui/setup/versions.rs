//! Earlier documents of a config, what each was, and putting one back.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;
use serde::Deserialize;

use super::apply::{diff_list, difference};
use crate::http::problem::Problem;
use crate::service::Toolrack;
use crate::ui::form::Form;
use crate::ui::language::time;
use crate::ui::layout::{Section, page, token};
use crate::ui::parts::{State as Standing, card, empty, head, notice, tag};
use crate::ui::visitor::Place;
use crate::ui::{go, shown};

/// What was just done.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Done {
    restored: Option<i64>,
}

pub(super) async fn show(
    State(service): State<Toolrack>,
    place: Place,
    Query(done): Query<Done>,
) -> Result<Response, Problem> {
    let versions = service.config_versions(&place.scope).await?.versions;
    let language = place.visitor.language;
    let title = language.say("Earlier versions", "历史版本");
    let current = versions.iter().find(|version| version.current);
    let now = current.map(|version| version.config.clone()).unwrap_or_default();
    let content = html! {
        (head(title, language.say(
            "The last ten configs. Putting one back is a new version, so that it can be undone as well. Catalogs and secrets are no part of it.",
            "最近十个配置。恢复会产生新版本，因此也可撤销。不包括工具目录和密钥。",
        ), None))
        @if let Some(revision) = done.restored {
            (notice(Standing::Ok, html! { (language.say("Version ", "版本 ")) (revision) }, language.say("was put back.", "已恢复。")))
        }
        @if versions.is_empty() {
            section.card {
                (empty(language.say("Nothing yet", "尚无版本"), language.say("The first version comes with the first write.", "首次写入后出现。"),
                    Some(html! { a.btn.primary href=(place.path("setup/import")) { (language.say("Set up", "开始设置")) } })))
            }
        } @else {
            (card(language.say("Versions", "版本"), "", &html! {
                @for version in &versions {
                    details.fold {
                        summary {
                            (language.say("Version ", "版本 ")) (version.revision) " "
                            @if version.current { (tag(Standing::Ok, language.say("in force", "当前"))) }
                            span.note { (time(version.at_ms)) " UTC, " (version.actor) }
                        }
                        @if version.current { pre tabindex="0" { (pretty(&version.config)) } }
                        @else {
                            @let lines = difference(&now, &version.config);
                            @if lines.is_empty() { p.body { (language.say("The same as what is in force.", "与当前相同。")) } }
                            @else {
                                (diff_list(&lines))
                                form.body method="post" action=(place.path("setup/versions")) {
                                    (token(&place.visitor))
                                    input type="hidden" name="expected" value=(current.map_or(0, |current| current.revision));
                                    button.btn type="submit" name="revision" value=(version.revision) {
                                        (language.say("Put version ", "恢复版本 ")) (version.revision) (language.say(" back", ""))
                                    }
                                }
                            }
                        }
                    }
                }
            }))
        }
    };
    Ok(shown(page(&place, Section::Setup, title, &content)))
}

fn pretty(config: &serde_json::Map<String, serde_json::Value>) -> String {
    serde_json::to_string_pretty(config).unwrap_or_default()
}

/// Puts a version back.
pub(super) async fn restore(
    State(service): State<Toolrack>,
    place: Place,
    form: Form,
) -> Result<Response, Problem> {
    let number = |name: &str| form.text(name).parse::<i64>().map_err(|_| Problem::nothing_here());
    let (revision, expected) = (number("revision")?, number("expected")?);
    service.restore_config(&place.visitor.actor, &place.scope, revision, Some(expected), false).await?;
    Ok(go(&place.path(&format!("setup/versions?restored={revision}"))))
}
