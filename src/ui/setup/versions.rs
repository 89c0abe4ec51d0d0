//! Earlier documents of a config, what each was, and putting one back.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Query, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::apply::{diff_list, difference};
use crate::core::keys::KeyId;
use crate::http::problem::Problem;
use crate::service::{ConfigVersionDocument, Toolrack};
use crate::ui::form::Form;
use crate::ui::language::{Language, counted, time};
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
    let stored = service.config(&place.scope).await?.document;
    let names = key_names(&service, &place, &versions).await;
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
            @if let [now, before, ..] = versions.as_slice() {
                @if now.config.get("matcher") != before.config.get("matcher") && lacks_key(&stored, &now.config) { (keyless(&place)) }
            }
        }
        @if versions.is_empty() {
            section.card {
                (empty(language.say("Nothing yet", "尚无版本"), language.say("The first version comes with the first write.", "首次写入后出现。"),
                    Some(html! { a.btn.primary href=(place.path("setup/import")) { (language.say("Set up", "开始设置")) } })))
            }
        } @else {
            (card(language.say("Versions", "版本"), "", &html! {
                @for version in &versions {
                    @let lines = difference(&now, &version.config);
                    details.fold {
                        summary {
                            (language.say("Version ", "版本 ")) (version.revision) " "
                            @if version.current { (tag(Standing::Ok, language.say("in force", "当前"))) }
                            span.note {
                                @if version.revision == 0 { (language.say("empty, before the first write", "首次写入之前，为空")) }
                                @else { (time(version.at_ms)) " UTC" }
                                @if !version.actor.is_empty() { ", " (names.get(&version.actor).unwrap_or(&version.actor)) }
                                @if !version.current {
                                    ", " (counted(language, differing(&now, &version.config), "key differs", "keys differ", "项不同"))
                                }
                            }
                        }
                        (written_by(language, &names, &version.actor))
                        @if version.current { pre tabindex="0" { (pretty(&version.config)) } }
                        @else {
                            @if lines.is_empty() { p.body { (language.say("The same as what is in force.", "与当前相同。")) } }
                            @else {
                                (diff_list(&lines))
                                @if lacks_key(&stored, &version.config) { (keyless(&place)) }
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

/// How the keys that wrote versions are called, for who may see keys.
async fn key_names(
    service: &Toolrack,
    place: &Place,
    versions: &[ConfigVersionDocument],
) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    if !place.visitor.is_admin() {
        return names;
    }
    for actor in versions.iter().map(|version| &version.actor) {
        let Ok(id) = actor.parse::<KeyId>() else { continue };
        if names.contains_key(actor) {
            continue;
        }
        // A key that was deleted has no name any more.
        if let Ok(key) = service.key(id).await {
            names.insert(actor.clone(), key.name);
        }
    }
    names
}

/// The way to the key that wrote a version, where its name is known.
fn written_by(language: Language, names: &BTreeMap<String, String>, actor: &str) -> Markup {
    html! {
        @if let Some(name) = names.get(actor) {
            p.body { (language.say("Written with the key ", "写入所用密钥：")) a href={ "/ui/keys/" (actor) } { (name) } }
        }
    }
}

/// How many keys of a config have other values.
fn differing(now: &Map<String, Value>, then: &Map<String, Value>) -> usize {
    let keys: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
    keys.into_iter().filter(|key| now.get(*key) != then.get(*key)).count()
}

/// Whether the endpoint of a version would go without a key: there is none, or it belongs to another origin. Keys are no part of
/// versions.
fn lacks_key(stored: &Map<String, Value>, version: &Map<String, Value>) -> bool {
    let origin = |config: &Map<String, Value>| {
        let endpoint = config.get("matcher")?.get("endpoint")?.as_str()?;
        Url::parse(endpoint).ok().map(|url| url.origin())
    };
    let has_key = stored
        .get("matcher")
        .is_some_and(|matcher| matcher.pointer("/api_key/set") == Some(&Value::Bool(true)));
    origin(version).is_some_and(|wanted| !has_key || origin(stored) != Some(wanted))
}

fn keyless(place: &Place) -> Markup {
    let language = place.visitor.language;
    notice(
        Standing::Warn,
        language.say("No key goes with its endpoint.", "其端点没有密钥。"),
        html! {
            (language.say("Keys are no part of versions. If the endpoint wants one, enter it again under ", "密钥不属于版本。如端点需要密钥，请重新输入："))
            a href=(place.path("setup/matcher")) { (language.say("Matcher", "匹配器")) }
            (language.say(".", "。"))
        },
    )
}

fn pretty(config: &Map<String, Value>) -> String {
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
